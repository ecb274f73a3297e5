"""Ready-made summaries as source text: folding a tuple in, closing a slice, reading a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from windowlib.folds import HIGHEST, Fold
from windowlib.subwindow import Subwindow, place
from windowlib.summarizers import Plan

Row = tuple[Any, ...]
"""The places of all folds of a plan, in a row."""


def update_lines(plan: Plan, sample: Any, names: dict[str, Any]) -> Iterator[str]:
    """Source that folds `t` into the slots of `s`.

    A value that raises (a null, an odd type) is folded once more the readable way, by `slow`. So
    what has been stored by then must not matter: arithmetic comes before all stores, or only
    idempotent folds come before the one that counts.
    """
    if not any(plan.getters):
        return
    names["slow"] = _slow_path(plan)
    yield "try:"
    yield from (f"    {line}" for line in _fold_lines(plan, sample, names, "s."))
    yield "except Exception: slow(s, t)"


def _fold_lines(plan: Plan, sample: Any, names: dict[str, Any], prefix: str) -> list[str]:
    """Source that folds `t` into places whose names start with `prefix`."""
    names.update(HIGHEST=HIGHEST)
    names.update((f"fold{i}", fold) for i, fold in enumerate(plan.folds))
    reads, value_of = _reads(plan, sample, names)
    texts = list(_texts(plan, value_of, prefix))
    lines = [*reads, *(compute for compute, _, _ in texts), *(store for _, store, _ in texts)]
    folds = [fold for fold, getter in zip(plan.folds, plan.getters, strict=True) if getter]
    if all(f.inplace for f in folds) and sum(not f.idempotent for f in folds) <= 1:
        order = sorted(range(len(folds)), key=lambda i: not folds[i].idempotent)
        lines = [*reads, *(texts[i][2] for i in order)]
    if len(lines) == 2 and lines[1].count("x0") == 1:  # used once: no need to name the value
        lines = [lines[1].replace("x0", lines[0].partition(" = ")[2])]
    return [line for line in lines if line]


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


def _texts(
    plan: Plan, value_of: dict[Any, str], prefix: str = "s."
) -> Iterator[tuple[str, str, str]]:
    """The fold's texts with their own places, locals and value."""
    used = 0
    for i, (fold, getter) in enumerate(zip(plan.folds, plan.getters, strict=True)):
        if getter is None:
            continue
        value = value_of[getter.attribute]
        compute, store, inplace = fold.compute, fold.store, fold.inplace
        if not compute and not store and fold.empty:  # no text of its own
            row = _row([f"{{{j}}}" for j in range(len(fold.empty))])
            compute, store = f"_0 = F.step({row}, x)", f"{row} = _0"
        yield tuple(  # type: ignore[misc]  # three of them
            _fill(text, fold, used, i, value, prefix) for text in (compute, store, inplace)
        )
        used += len(fold.empty)


def _fill(text: str, fold: Fold, used: int, i: int, value: str, prefix: str) -> str:
    places = [f"{prefix}{place(used + j)}" for j in range(len(fold.empty))]
    text = re.sub(r"\bx\b", value, text).format(*places)
    text = re.sub(r"\bF\b", f"fold{i}", text)
    return re.sub(r"\b_(\d)", rf"_{i}_\1", text)


def close_lines(plan: Plan, kept: int, names: dict[str, Any]) -> Iterator[str]:
    """Source that closes the open slice of `s`, which holds `n` tuples (see `windowlib.slices`).

    Its row goes on the stack of recent slices; the oldest slice leaves if there are too many.
    """
    places = [f"s.{place(i)}" for i in range(plan.places)]
    names.update(_calls(plan), flip=_flipper(plan))
    yield "s.taken += n"
    yield "s.n = 0"
    yield f"b = {_row(places)}"
    for i, start in enumerate(plan.start):
        names[f"start{i}"] = start
        yield f"{places[i]} = start{i}"
    yield "r = s.recent"
    yield "r.append(b)"
    yield "a = s.back"
    yield "if a is None: s.back = b"
    yield "else:"
    yield from (f"    {line}" for line in _merge_lines(plan, "s.back"))
    yield "a = s.front"
    yield "if a: a.pop()"
    yield f"elif len(r) > {kept}: flip(s, r, a)"


def _flipper(plan: Plan) -> Callable[[Subwindow, list[Row], list[Row]], None]:
    """All but the oldest recent slice go to the front stack, merged from the newest on."""
    lines = ["b = r.pop()", "front.append(b)", "while len(r) > 1:", "    a = r.pop()"]
    lines += [f"    {line}" for line in [*_merge_lines(plan, "b"), "front.append(b)"]]
    lines += ["r.clear()", "s.back = None"]
    return _function("s, r, front", lines, _calls(plan))


def folder(plan: Plan, sample: Any) -> tuple[Callable[..., Row], Callable[..., list[Row]]]:
    """Two functions over tuples like `sample`.

    One folds tuples into a row of places. The other takes tuples from the newest on and gives, for
    each, the row of it and all that are newer: what two stacks hold in front.
    """
    row = _row([place(i) for i in range(plan.places)])
    if not any(plan.getters):  # nothing to fold, but a row for every tuple all the same
        return (lambda tuples, row: row), (lambda tuples: [plan.start for _ in tuples])
    names: dict[str, Any] = {"slow": _slow_row(plan), "start": plan.start}
    fold = ["try:", *(f"    {line}" for line in _fold_lines(plan, sample, names, ""))]
    fold += [f"except Exception: {row} = slow({row}, t)"]
    loop = ["for t in tuples:", *(f"    {line}" for line in fold)]
    run = _function("tuples, row", [f"{row} = row", *loop, f"return {row}"], dict(names))
    if all(f.commutative for f in plan.folds):
        kept = [f"{row} = start", "front = []", *loop, f"    front.append({row})", "return front"]
        return run, _function("tuples", kept, dict(names))
    merge = merger(plan)

    def suffixes(tuples: Iterable[Any]) -> list[Row]:
        front: list[Row] = []
        for t in tuples:
            alone = run((t,), plan.start)
            front.append(merge(alone, front[-1]) if front else alone)
        return front

    return run, suffixes


def _slow_row(plan: Plan) -> Callable[[Row, Any], Row]:
    def slow(row: Row, tuple_: Any) -> Row:
        ready = plan()
        ready.states = plan.states(row)
        ready.insert(tuple_)
        plan.odd = True
        return tuple(value for state in ready.states for value in state)

    return slow


def merger(plan: Plan) -> Callable[[Row, Row], Row]:
    """A function that merges two rows, the earlier first."""
    return _function("a, b", [*_merge_lines(plan, "b"), "return b"], _calls(plan))


def values_reader(plan: Plan) -> Callable[[int, Row], list[Any]]:
    """A function from a number of tuples and their row to the values of all folds."""
    unpack = [f"{_row([place(i) for i in range(plan.places)])} = row"] if plan.places else []
    return _function("n, row", [*unpack, *_value_lines(plan)], _calls(plan))


def slot_reader(plan: Plan) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of the summaries in its slots."""
    loads = [f"{place(i)} = s.{place(i)}" for i in range(plan.places)]
    return _function("s", ["n = s.n", *loads, *_value_lines(plan)], _calls(plan))


def slice_reader(plan: Plan, size: int) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of all its closed slices."""
    names = [place(i) for i in range(plan.places)]
    merged = _merged(plan)
    shares = list(_shares(plan, [f"({text})" for text in merged or names]))
    texts = [plan.folds[i].read.format(*share, m=f"_m{i}") for i, share in shares]
    lines = ["n = s.taken", f"if n > {size}: n = {size}", "a = s.front", "b = s.back"]
    lines += ["if a and b is not None:", "    a = a[-1]"]
    if merged and all(texts):  # merge and read in one expression
        lines += [f"    {_row(_runs(plan, run))} = {run}" for run in "ab" if names]
        lines += [f"    if not plan.odd: return {_shown(plan, texts)}"]
    lines += [f"    {line}" for line in _merge_lines(plan, "b")]
    lines += ["elif a: b = a[-1]"]
    lines += [f"{_row(names)} = b"] if names else []
    return _function("s", [*lines, *_value_lines(plan)], _calls(plan))


def _value_lines(plan: Plan) -> list[str]:
    """Source that returns the value of `n` tuples, given the places as names of their own."""

    shares = list(_shares(plan, [place(i) for i in range(plan.places)]))
    full = [f"value{i}(n, {_row(names)})" for i, names in shares]
    quick = [plan.folds[i].read.format(*names, m=f"_m{i}") or full[i] for i, names in shares]
    return [f"if plan.odd: return {_shown(plan, full)}", f"return {_shown(plan, quick)}"]


def _runs(plan: Plan, run: str) -> list[str]:
    """The names of a row's places: a0, a1 and so on."""
    return [f"{run}{i}" for i in range(plan.places)]


def _merged(plan: Plan) -> list[str]:
    """What the places of two rows merge to, as text; nothing if some fold has no text for it."""
    texts: list[str] = []
    shares = zip(_shares(plan, _runs(plan, "a")), _shares(plan, _runs(plan, "b")), strict=True)
    for (i, a), (_, b) in shares:
        local = {f"a{j}": name for j, name in enumerate(a)}
        local |= {f"b{j}": name for j, name in enumerate(b)} | {"m": f"_m{i}"}
        texts += [text.format(**local) for text in plan.folds[i].merged]
    return texts if len(texts) == plan.places else []


def _merge_lines(plan: Plan, into: str) -> list[str]:
    """Source that merges the rows `a` and `b`, the earlier first."""
    if not plan.places:
        return [f"{into} = b"]
    rows = [_runs(plan, run) for run in "ab"]
    shares = zip(_shares(plan, rows[0]), _shares(plan, rows[1]), strict=True)
    full = _row([f"*merge{i}({_row(a)}, {_row(b)})" for (i, a), (_, b) in shares if a])
    lines = [f"{_row(rows[0])} = a", f"{_row(rows[1])} = b"]
    if merged := _merged(plan):
        return [*lines, f"if plan.odd: {into} = {full}", f"else: {into} = {_row(merged)}"]
    return [*lines, f"{into} = {full}"]


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
    if not plan.names:
        return f"[{', '.join(parts)}]"
    named = zip(plan.names, parts, strict=True)
    return "{" + ", ".join(f"{name!r}: {part}" for name, part in named) + "}"
