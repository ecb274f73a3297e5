"""Ready-made summaries as source text: folding a tuple in, closing a slice, reading a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from windowlib.folds import HIGHEST, Fold
from windowlib.subwindow import Subwindow, place
from windowlib.summarizers import Plan

Row = tuple[Any, ...]
"""The places of all folds of a plan, in a row."""


def update_lines(plan: Plan, sample: Any, names: dict[str, Any]) -> Iterator[str]:
    """Source that folds `t` into the slots of `s`.

    All arithmetic comes before all stores, so a value that raises (a null, an odd type) leaves
    the state as it was, and `slow` folds the tuple the readable way.
    """
    if not any(plan.getters):
        return
    names.update(slow=_slow_path(plan), HIGHEST=HIGHEST)
    reads, value_of = _reads(plan, sample, names)
    texts = list(_texts(plan, value_of))
    yield "try:"
    if len(texts) == 1 and texts[0][2]:
        read = reads[0].partition(" = ")[2]
        if texts[0][2].count("x0") == 1:  # the value is used once: no need to name it
            yield f"    {texts[0][2].replace('x0', read)}"
        else:
            yield f"    {reads[0]}"
            yield f"    {texts[0][2]}"
    else:
        yield from (f"    {line}" for line in reads)
        yield from (f"    {compute}" for compute, _, _ in texts)
        yield from (f"    {store}" for _, store, _ in texts)
    yield "except Exception: slow(s, t)"


def _slow_path(plan: Plan) -> Callable[[Subwindow, Any], None]:
    def slow(s: Subwindow, tuple_: Any) -> None:
        ready = plan.load(s)
        ready.insert(tuple_)
        plan.store(s, ready)
        s.n -= 1  # the insert counts the tuple itself
        plan.odd = True

    return slow


def _reads(plan: Plan, sample: Any, names: dict[str, Any]) -> tuple[list[str], dict[Any, str]]:
    """One line per attribute that is read, and the variable that each is read into."""
    lines: list[str] = []
    variables: dict[Any, str] = {}
    for getter in plan.getters:
        if getter is None or getter.attribute in variables:
            continue
        variable = variables[getter.attribute] = f"x{len(variables)}"
        names[f"get_{variable}"] = getter
        lines.append(f"{variable} = {getter.inline('t', sample) or f'get_{variable}(t)'}")
    return lines, variables


def _texts(plan: Plan, value_of: dict[Any, str]) -> Iterator[tuple[str, str, str]]:
    """The fold's texts with their own places, locals and value."""
    used = 0
    for i, (fold, getter) in enumerate(zip(plan.folds, plan.getters, strict=True)):
        if getter is None:
            continue
        value = value_of[getter.attribute]
        yield tuple(  # type: ignore[misc]  # three of them
            _fill(text, fold, used, i, value) for text in (fold.compute, fold.store, fold.inplace)
        )
        used += len(fold.empty)


def _fill(text: str, fold: Fold, used: int, i: int, value: str) -> str:
    places = [f"s.{place(used + j)}" for j in range(len(fold.empty))]
    text = re.sub(r"\bx\b", value, text).format(*places)
    return re.sub(r"\b_(\d)", rf"_{i}_\1", text)


def close_lines(plan: Plan, names: dict[str, Any]) -> Iterator[str]:
    """Source that closes the open slice of `s`, which holds `n` tuples, as the row `v`."""
    places = [f"s.{place(i)}" for i in range(plan.places)]
    yield f"v = {_row(places)}"
    for i, start in enumerate(plan.start):
        names[f"start{i}"] = start
        yield f"{places[i]} = start{i}"
    yield "s.taken += n"
    yield "s.n = 0"


def slot_reader(plan: Plan) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of the summaries in its slots."""
    loads = [f"{place(i)} = s.{place(i)}" for i in range(plan.places)]
    return _function("s", ["n = s.n", *loads, *_value_lines(plan)], _calls(plan))


def slice_reader(plan: Plan, size: int) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of all its closed slices."""
    lines = ["n = s.taken", f"if n > {size}: n = {size}", "a = s.front", "b = s.back"]
    lines += ["if not a: row = b", "elif b is None: row = a[-1]", "else:"]
    lines += [f"    {line}" for line in ["a = a[-1]", *_merge_lines(plan, "row")]]
    lines += [f"{_row([place(i) for i in range(plan.places)])} = row"] if plan.places else []
    return _function("s", [*lines, *_value_lines(plan)], _calls(plan))


def slice_pusher(plan: Plan, kept: int) -> Callable[[Subwindow, Row], None]:
    """A function that adds a slice to a subwindow; the oldest leaves if there are too many."""
    lines = ["r = s.recent", "r.append(b)", "a = s.back", "if a is None: s.back = b", "else:"]
    lines += [f"    {line}" for line in _merge_lines(plan, "s.back")]
    lines += ["a = s.front", "if a: a.pop()", f"elif len(r) > {kept}: flip(s, r, a)"]
    # All but the oldest recent slice go to the front stack, merged from the newest on.
    flip = ["b = r.pop()", "front.append(b)", "while len(r) > 1:", "    a = r.pop()"]
    flip += [f"    {line}" for line in [*_merge_lines(plan, "b"), "front.append(b)"]]
    flip += ["r.clear()", "s.back = None"]
    flipper = _function("s, r, front", flip, _calls(plan))
    return _function("s, b", lines, {**_calls(plan), "flip": flipper})


def _value_lines(plan: Plan) -> list[str]:
    """Source that returns the value of `n` tuples, given the places as names of their own."""
    shares = list(_shares(plan, [place(i) for i in range(plan.places)]))
    full = [f"value{i}(n, {_row(names)})" for i, names in shares]
    quick = [plan.folds[i].read.format(*names) or full[i] for i, names in shares]
    return [f"if plan.odd: return {_shown(plan, full)}", f"return {_shown(plan, quick)}"]


def _merge_lines(plan: Plan, into: str) -> list[str]:
    """Source that merges the rows `a` and `b`, the earlier first."""
    if not plan.places:
        return [f"{into} = b"]
    names = {run: [f"{run}{i}" for i in range(plan.places)] for run in "ab"}
    quick: list[str] = []
    full: list[str] = []
    pairs = zip(_shares(plan, names["a"]), _shares(plan, names["b"]), strict=True)
    for (i, a), (_, b) in pairs:
        full += [f"*merge{i}({_row(a)}, {_row(b)})"] if a else []
        local = {f"a{j}": name for j, name in enumerate(a)}
        local |= {f"b{j}": name for j, name in enumerate(b)}
        quick += [text.format(**local) for text in plan.folds[i].merged] or full[-1:]
    return [
        f"{_row(names['a'])} = a",
        f"{_row(names['b'])} = b",
        f"if plan.odd: {into} = {_row(full)}",
        f"else: {into} = {_row(quick)}",
    ]


def _calls(plan: Plan) -> dict[str, Any]:
    """What the readable parts of the text call."""
    values = {f"value{i}": fold.value for i, fold in enumerate(plan.folds)}
    merges = {f"merge{i}": fold.merge for i, fold in enumerate(plan.folds)}
    return {"plan": plan, **values, **merges}


def _row(parts: list[str]) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


def _shares(plan: Plan, names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each fold's number and the names of its places."""
    left = iter(names)
    for i, fold in enumerate(plan.folds):
        yield i, [next(left) for _ in fold.empty]


def _function(arguments: str, body: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    exec("\n".join([f"def made({arguments}):", *(f"    {line}" for line in body)]), scope)
    made: Callable[..., Any] = scope["made"]
    return made


def _shown(plan: Plan, parts: list[str]) -> str:
    if plan.names is None:
        return parts[0]
    named = zip(plan.names, parts, strict=True)
    return "{" + ", ".join(f"{name!r}: {part}" for name, part in named) + "}"
