"""Slices as source text: closing one, letting the oldest leave, reading the window.

A row of a slice holds its hot places alone, as long as no tuple was odd: the others are as they
start. From then on rows hold all places; those that do not are padded where they are met.

What the text cannot do, such as adding a float to a Decimal, turns the plan odd and is done again
the readable way, on what has been left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from windowlib.engine.ready import (
    Row,
    calls,
    full,
    function,
    merged_texts,
    merger,
    quick,
    row_text,
    runs,
)
from windowlib.errors import SchemaError, WindowlibError
from windowlib.subwindow import Subwindow, place
from windowlib.summarizers import Plan


class Unmerged:
    """Fills the row of slices that do not go together, until the one that does not fit leaves."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def refuse(self) -> NoReturn:
        """Say why there is no value."""
        raise SchemaError(self.message)


def close_lines(plan: Plan, kept: int, names: dict[str, Any]) -> Iterator[str]:
    """Source that closes the open slice of `s`, which holds `n` tuples (see `windowlib.slices`).

    Its row goes on the stack of recent slices and into the slots of all of them together; the
    oldest slice leaves if there are too many.
    """
    names.update(plan=plan, close=_closer(plan), flip=flipper(plan))
    names.update((f"start{i}", start) for i, start in enumerate(plan.start))
    yield "s.taken += n"
    yield "s.n = 0"
    yield "r = s.recent"
    if joined := _joined(plan):
        a, b = (row_text(runs(run, plan.hot)) for run in "ab")
        opened, back = slots(plan, plan.hot)
        yield "try:"
        yield "    if plan.odd: close(s, r)"
        yield "    else:"
        yield f"        {b} = {opened}"
        yield f"        if r: {a} = {back}; {back} = {joined}"
        yield f"        else: {back} = {b}"
        yield f"        {opened} = {row_text(runs('start', plan.hot))}"
        yield f"        r.append({b})"
        yield "except Exception: plan.odd = True; close(s, r)"
    else:
        yield "close(s, r)"
    yield "a = s.front"
    yield "if a: a.pop()"
    yield f"elif len(r) > {kept}: s.older = r[1:]; flip(r, a)"


def _joined(plan: Plan) -> str:
    """Text for the hot places of two rows together, if there is any for all folds."""
    merged = merged_texts(plan)
    return "" if merged is None else row_text([merged[i] for i in plan.hot])


def slots(plan: Plan, places: Iterable[int]) -> tuple[str, str]:
    """Places of the open slice, and of the recent ones together, as slots of `s`."""
    opened, back = ([f"s.{place(i + first)}" for i in places] for first in (0, plan.places))
    return row_text(opened), row_text(back)


def _closer(plan: Plan) -> Callable[[Subwindow, list[Row]], None]:
    """Does with all places what the insert does with the hot ones."""
    opened, back = slots(plan, range(plan.places))
    lines = [f"b = {opened}", f"{back} = merge({back}, b) if r else b", f"{opened} = start"]
    names = {"start": plan.start, "merge": merger_of(plan)}
    return function("s, r", [*lines, "r.append(b)"], names)


def flipper(plan: Plan) -> Callable[[list[Row], list[Row]], None]:
    """All but the oldest recent slice go to the front stack, merged from the newest on."""
    a, b = (row_text(runs(run, plan.hot)) for run in "ab")
    lines = []
    if joined := _joined(plan):
        lines += [
            "try:",
            "    if not plan.odd:",
            f"        {b} = r[-1]; made = [{b}]",
            f"        for {a} in r[-2:0:-1]: {b} = {joined}; made.append({b})",
            "except Exception: plan.odd = True",
            "if plan.odd:",
        ]
    full = ["b = r[-1]; made = [b]", "for a in r[-2:0:-1]: b = merge(a, b); made.append(b)"]
    lines += [f"    {line}" for line in full] if joined else full
    lines += ["front += made", "r.clear()"]
    return function("r, front", lines, {"plan": plan, "merge": merger_of(plan)})


def slice_reader(plan: Plan, size: int) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of all its closed slices."""
    names = [place(i) for i in range(plan.places)]
    lines = ["n = s.taken", f"if n > {size}: n = {size}", "a = s.front"]
    if (merged := merged_texts(plan)) is not None:
        a, b = (row_text(runs(run, plan.hot)) for run in "ab")
        back, alone = slots(plan, plan.hot)[1], quick(plan, runs("a", range(plan.places)))
        lines += [
            "try:",
            "    if not plan.odd:",
            f"        if not a: {a} = {back}; return {alone}",
            f"        {a} = a[-1]",
            f"        if not s.recent: return {alone}",
            f"        {b} = {back}",
            f"        return {quick(plan, merged)}",
            "except Exception: plan.odd = True",
        ]
    lines += [
        f"b = {slots(plan, range(plan.places))[1]}",
        "if a: b = merge(a[-1], b) if s.recent else whole(a[-1])",
        "if b and type(b[0]) is Unmerged: b[0].refuse()",
        f"{row_text(names)} = b",
        f"return {full(plan, names)}",
    ]
    known = {"Unmerged": Unmerged, "whole": padder(plan)}
    return function("s", lines, calls(plan) | known | {"merge": merger_of(plan)})


def merger_of(plan: Plan) -> Callable[[Row, Row], Row]:
    """Merges rows of any slices; those that do not go together are `Unmerged`, not lost."""
    whole, merge = padder(plan), merger(plan)

    def merged(a: Row, b: Row) -> Row:
        a, b = whole(a), whole(b)
        for row in (a, b):
            if row and type(row[0]) is Unmerged:
                return row
        try:
            return merge(a, b)
        except Exception as error:
            message = str(error)
            if not isinstance(error, WindowlibError):
                message = f"values that do not mix: {error}. Use one type for the column."
            return (Unmerged(message),) * plan.places

    return merged


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
