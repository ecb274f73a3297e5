"""Ready-made summaries as source text: folding a tuple in, closing a slice, reading a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import fsum
from typing import Any

from windowlib.folds import Fold
from windowlib.subwindow import Subwindow, place
from windowlib.summarizers import Plan


def update_lines(plan: Plan, sample: Any, names: dict[str, Any]) -> Iterator[str]:
    """Source that folds `t` into the slots of `s`.

    All arithmetic comes before all stores, so a value that raises (a null, an odd type) leaves
    the state as it was, and `slow` folds the tuple the readable way.
    """
    if not any(plan.getters):
        return
    names["slow"] = _slow_path(plan)
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
            _fill(text, fold, used, i, value)
            for text in (fold.compute, fold.store, fold.inplace)
        )
        used += len(fold.empty)


def _fill(text: str, fold: Fold, used: int, i: int, value: str) -> str:
    places = [f"s.{place(used + j)}" for j in range(len(fold.empty))]
    text = re.sub(r"\bx\b", value, text).format(*places)
    return re.sub(r"\b_(\d)", rf"_{i}_\1", text)


def close_lines(plan: Plan, names: dict[str, Any]) -> Iterator[str]:
    """Source that closes the open slice of `s`, which holds `n` tuples."""
    names["plan"] = plan
    spare, nan = set(plan.spare), plan.may_be_nan
    for i in nan:
        yield f"if s.{place(i)} != s.{place(i)}: plan.odd = True"
    columns = [f"c{i}" for i in range(plan.places)]
    if columns:
        yield f"{', '.join(columns)}, = s.summary"
    for i, start in enumerate(plan.start):
        names[f"start{i}"] = start
        lines = f"c{i}.append(s.{place(i)}); s.{place(i)} = start{i}"
        yield f"if plan.odd: {lines}" if i in spare else lines
    yield "s.taken += n"
    yield "s.n = 0"


def slot_reader(plan: Plan) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of the summaries in its slots."""
    names = [f"s.{place(i)}" for i in range(plan.places)]
    tuples = [f"v{i}(n, ({''.join(f'{p}, ' for p in ps)}))" for i, ps in _shares(plan, names)]
    return _reader(plan, ["n = s.n"], names, tuples, "read", "value")


def slice_reader(plan: Plan, size: int) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of its closed slices."""
    names = [f"c{i}" for i in range(plan.places)]
    calls = [f"v{i}({', '.join(['n', *cs])})" for i, cs in _shares(plan, names)]
    setup = [f"n = s.taken if s.taken < {size} else {size}"]
    if names:
        setup.append(f"{', '.join(names)}, = s.summary")
    return _reader(plan, setup, names, calls, "read_joined", "joined")


def _shares(plan: Plan, names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each fold's number and the names of its places."""
    left = iter(names)
    for i, fold in enumerate(plan.folds):
        yield i, [next(left) for _ in fold.empty]


def _reader(
    plan: Plan, setup: list[str], names: list[str], full: list[str], text: str, method: str
) -> Callable[[Subwindow], Any]:
    """`read(s)`: the folds' texts while all is plain, their methods after an odd value."""
    quick = [
        getattr(plan.folds[i], text).format(*share) or full[i] for i, share in _shares(plan, names)
    ]
    lines = ["def read(s):", *(f"    {line}" for line in setup)]
    lines += ["    if not plan.odd:", f"        try: return {_shown(plan, quick)}"]
    lines += ["        except (OverflowError, ValueError): pass"]  # fsum of infinities
    lines += [f"    return {_shown(plan, full)}"]
    scope: dict[str, Any] = {"plan": plan, "fsum": fsum}
    scope |= {f"v{i}": getattr(fold, method) for i, fold in enumerate(plan.folds)}
    exec("\n".join(lines), scope)
    read: Callable[[Subwindow], Any] = scope["read"]
    return read


def _shown(plan: Plan, parts: list[str]) -> str:
    if plan.names is None:
        return parts[0]
    named = zip(plan.names, parts, strict=True)
    return "{" + ", ".join(f"{name!r}: {part}" for name, part in named) + "}"
