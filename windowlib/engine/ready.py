"""Ready-made summaries as source text: folding a tuple in, closing a slice, reading a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from windowlib.folds import HIGHEST, Fold
from windowlib.subwindow import Subwindow, place
from windowlib.summarizers import Plan

P = TypeVar("P")

Row = tuple[Any, ...]
"""The places of all folds of a plan, in a row; of slices, only the hot ones until one is odd."""


def update_lines(plan: Plan, sample: Any, names: dict[str, Any]) -> Iterator[str]:
    """Source that folds `t` into the slots of `s`.

    A value that raises (a null, an odd type) is left to `slow`, which folds it the readable way or
    refuses it. So nothing may have been stored by then.
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
    # All arithmetic comes before all stores; between them, one fold may do both at once. Best one
    # that compares, because a comparison costs least where it is tested.
    inplace = [i for i, text in enumerate(texts) if text[2]]
    last = max(inplace, key=lambda i: texts[i][2].startswith("if "), default=None)
    others = [text for i, text in enumerate(texts) if i != last]
    lines = [*reads, *(text[0] for text in others)]
    lines += [] if last is None else [texts[last][2]]
    lines += [text[1] for text in others]
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

    Its row goes on the stack of recent slices and into the slots of all of them together; the
    oldest slice leaves if there are too many.
    """
    names.update(_calls(plan), flip=_flipper(plan), close=_full_closer(plan))
    opened, back = _slots(plan, plan.hot)
    starts = [_literal(plan.start[i], f"start{i}", names) for i in plan.hot]
    a, b = (_row(_runs(run, plan.hot)) for run in "ab")
    yield "s.taken += n"
    yield "s.n = 0"
    yield "r = s.recent"
    yield "if plan.odd: close(s, r)"
    yield "else:"
    yield f"    {b} = {opened}"
    yield f"    {opened} = {_row(starts)}"
    yield f"    if r: {a} = {back}; {back} = {_joined(plan, plan.hot)}"
    yield f"    else: {back} = {b}"
    yield f"    r.append({b})"
    yield "a = s.front"
    yield "if a: a.pop()"
    yield f"elif len(r) > {kept}: flip(r, a)"


def _slots(plan: Plan, places: Iterable[int]) -> tuple[str, str]:
    """Places of the open slice, and of the recent ones together, as slots of `s`."""
    names = [[f"s.{place(i + j)}" for i in places] for j in (0, plan.places)]
    return _row(names[0]), _row(names[1])


def _literal(value: Any, name: str, names: dict[str, Any]) -> str:
    """Text for a value: itself for an int, else a name for it."""
    names[name] = value
    return repr(value) if type(value) is int else name


def _full_closer(plan: Plan) -> Callable[[Subwindow, list[Row]], None]:
    """Does with all places what the insert does with the hot ones."""
    opened, back = _slots(plan, range(plan.places))
    lines = [f"b = {opened}", f"{opened} = start", f"{back} = merge({back}, b) if r else b"]
    return _function("s, r", [*lines, "r.append(b)"], {"start": plan.start, **_calls(plan)})


def _flipper(plan: Plan) -> Callable[[list[Row], list[Row]], None]:
    """All but the oldest recent slice go to the front stack, merged from the newest on."""
    lines = ["b = r.pop()", "front.append(b)", "while len(r) > 1:", "    a = r.pop()"]
    lines += [f"    {line}" for line in [*_merge_lines(plan, "b", plan.hot), "front.append(b)"]]
    return _function("r, front", [*lines, "r.clear()"], _calls(plan))


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
    lines = [*_merge_lines(plan, "b", range(plan.places)), "return b"]
    return _function("a, b", lines, _calls(plan))


def values_reader(plan: Plan) -> Callable[[int, Row], list[Any]]:
    """A function from a number of tuples and their row to the values of all folds."""
    names = [place(i) for i in range(plan.places)]
    unpack = [f"{_row(names)} = row"] if names else []
    return _function("n, row", [*unpack, *_value_lines(plan, names)], _calls(plan))


def pair_reader(plan: Plan) -> Callable[[int, Row, Row], list[Any]]:
    """A function from a number of tuples and two rows, the earlier first, to their values."""
    every = range(plan.places)
    names = [place(i) for i in every]
    a, b = (_row(_runs(run, every)) for run in "ab")
    lines = [
        f"if plan.odd: {_row(names)} = merge(a, b)",
        f"else: {a} = a; {b} = b; {_read_joined(plan, every)}",
    ]
    return _function("n, a, b", [*lines, *_value_lines(plan, names)], _calls(plan))


def slot_reader(plan: Plan) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of the summaries in its slots."""
    names = [f"s.{place(i)}" for i in range(plan.places)]
    return _function("s", ["n = s.n", *_value_lines(plan, names)], _calls(plan))


def slice_reader(plan: Plan, size: int) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of all its closed slices."""
    names = [place(i) for i in range(plan.places)]
    hot, back = _row([names[i] for i in plan.hot]), _slots(plan, plan.hot)[1]
    a, b = (_row(_runs(run, plan.hot)) for run in "ab")
    lines = [
        "n = s.taken",
        f"if n > {size}: n = {size}",
        "a = s.front",
        "if plan.odd:",
        f"    b = {_slots(plan, range(plan.places))[1]}",
        f"    {_row(names)} = b if not a else merge(a[-1], b) if s.recent else whole(a[-1])",
        f"elif not a: {hot} = {back}",
        f"elif not s.recent: {hot} = a[-1]",
        f"else: {a} = a[-1]; {b} = {back}; {_read_joined(plan, plan.hot)}",
    ]
    return _function("s", [*lines, *_value_lines(plan, names)], _calls(plan))


def _read_joined(plan: Plan, kept: Iterable[int]) -> str:
    """Source that merges a0, … and b0, … and returns the value, or names what is to be read."""
    merged = _merged(plan)
    if merged is None:
        return f"{_row([place(i) for i in kept])} = {_joined(plan, kept)}"
    return f"return {_quick(plan, [f'({text})' for text in merged])}"


def _value_lines(plan: Plan, names: list[str]) -> list[str]:
    """Source that returns the value of `n` tuples, given the names of the places."""
    full = [f"value{i}(n, {_row(share)})" for i, share in _shares(plan, names)]
    return [f"if plan.odd: return {_shown(plan, full)}", f"return {_quick(plan, names)}"]


def _quick(plan: Plan, places: list[str]) -> str:
    """The value of `n` tuples of which none was odd, given the texts of the places."""
    texts = []
    for i, share in _shares(plan, places):
        read = plan.folds[i].read.format(*share, m=f"_m{i}")
        texts.append(read or f"value{i}(n, {_row(share)})")
    return _shown(plan, texts)


def _runs(run: str, places: Iterable[int]) -> list[str]:
    """The names of a row's places: a0, a1 and so on."""
    return [f"{run}{i}" for i in places]


def _merged(plan: Plan) -> list[str] | None:
    """What the places of two rows merge to, as text; None if some fold has no text for it."""
    texts: list[str] = []
    for i, numbers in _shares(plan, range(plan.places)):
        local = {f"{run}{j}": f"{run}{k}" for run in "ab" for j, k in enumerate(numbers)}
        texts += [text.format(**local, m=f"_m{i}") for text in plan.folds[i].merged]
    return texts if len(texts) == plan.places else None


def _joined(plan: Plan, kept: Iterable[int]) -> str:
    """Text for the row of a0, … and b0, …, the earlier first, of which no tuple was odd."""
    merged = _merged(plan)
    if merged is not None:
        return _row([merged[i] for i in kept])
    return f"merge({_row(_runs('a', kept))}, {_row(_runs('b', kept))})"


def _merge_lines(plan: Plan, into: str, kept: Iterable[int]) -> list[str]:
    """Source that merges the rows `a` and `b` of the places `kept`.

    Once a tuple was odd, a row of all places comes out, whatever goes in.
    """
    if _merged(plan) is None:
        return [f"{into} = merge(a, b)"]
    unpack = "; ".join(f"{_row(_runs(run, kept))} = {run}" for run in "ab")
    return [
        f"if plan.odd: {into} = merge(a, b)",
        f"else: {unpack}; {into} = {_joined(plan, kept)}",
    ]


def _calls(plan: Plan) -> dict[str, Any]:
    """What the text calls for what it cannot do itself."""
    values = {f"value{i}": fold.value for i, fold in enumerate(plan.folds)}
    return {"plan": plan, "whole": padder(plan), "merge": _full_merger(plan), **values}


def padder(plan: Plan) -> Callable[[Row], Row]:
    """A function that gives a row of hot places the cold ones, as they start."""
    start, hot = plan.start, plan.hot

    def whole(row: Row) -> Row:
        if len(row) == len(start):
            return row
        places = list(start)
        for i, value in zip(hot, row, strict=True):
            places[i] = value
        return tuple(places)

    return whole


def _full_merger(plan: Plan) -> Callable[[Row, Row], Row]:
    """Merges rows of any tuples, by the folds' own methods."""
    lines = [f"{_row(_runs(run, range(plan.places)))} = whole({run})" for run in "ab"]
    parts = []
    for i, numbers in _shares(plan, range(plan.places)):
        a, b = (_row(_runs(run, numbers)) for run in "ab")
        parts.append(f"*merge{i}({a}, {b})")
    names = {f"merge{i}": fold.merge for i, fold in enumerate(plan.folds)}
    return _function("a, b", [*lines, f"return {_row(parts)}"], {"whole": padder(plan), **names})


def _row(parts: list[str]) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


def _shares(plan: Plan, places: Iterable[P]) -> Iterator[tuple[int, list[P]]]:
    """Each fold's number and its share of the places."""
    left = iter(places)
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
