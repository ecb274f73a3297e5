"""Slices: ready-made summaries of a sliding window without its tuples (paper, section 4.1.8).

For `count(n)` eviction and `count(m)` trigger, cut each period of m tuples at the places where
some window starts or ends: n mod m tuples before its end. A window is then the last few slices.
With n a multiple of m there is one slice a period.

    n = 5, m = 2:   a | b   c | d   e | f   g | h      | cut; a period is a slice of 1 and one of 1
    window at d:    a   b   c   d                      partial
    window at f:        b   c   d   e   f              the last 5 slices

Their rows of summary state are kept in two stacks: `front` holds, for each older slice, the merged
row of it and all that follow it there; `recent` holds the rows of the newer ones, which are also
merged into slots of the subwindow, the back. A window is then one merge of the top of the front and
the back, whatever its length, and a slice that leaves is a pop: nothing is subtracted.

A stack is a chain of tuples: the stack below, None at the bottom, and the places of a row. To push
and to pop takes no call, and touches no memory but that of the row itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, NoReturn

from windowlib.errors import AccessError, SchemaError, WindowlibError
from windowlib.summaries.source import (
    Row,
    function,
    general_text,
    merged_texts,
    merger,
    place_names,
    regular_text,
    row_text,
    value_methods,
)
from windowlib.summaries.summarizers import Plan
from windowlib.window.subwindow import Subwindow, place, subwindow_class


class Slices:
    """The slices of one window, which its subwindows keep.

    In a subwindow, `n` counts the tuples of the open slice; `count` is 0 while the slice after
    the cut of a period is open, so that closed slices make up a window if `count and not n`.
    """

    def __init__(self, plan: Plan, size: int, every: int) -> None:
        self.plan = plan
        self.window = size
        self.every = every
        self.tail = size % every  # tuples between the cut and the end of a period
        periods = size // every
        self.kept = 2 * periods + 1 if self.tail else periods
        self.filled = size if not self.tail else (periods + 1) * every - self.tail
        """How many tuples the first `kept` slices of a subwindow have."""
        self._back = [place(plan.places + i) for i in range(plan.places)]
        self._hot, self._whole = plan.hot, padder(plan)
        fields = ("count", "front", "full", "n", "older", "recent", "stamp")
        every_tuple = ("n", *(place(i) for i in plan.hot))
        every_slice = ("front", "key", "recent", "taken", *(self._back[i] for i in plan.hot))
        # Twice the places: of the open slice, and of the recent ones together.
        start, value = plan.start * 2, slice_reader(plan, size)
        self._sub = subwindow_class(fields, start, value, first=(every_tuple, every_slice))

    def make(self, key: Any) -> Subwindow:
        """A subwindow without a slice."""
        s = self._sub.made(key)
        s.front = s.recent = s.older = None
        s.count = 1
        return s

    def slice_size(self, s: Subwindow) -> int:
        """The number of tuples at which the open slice closes."""
        return self.every - self.tail if s.count else self.tail

    def next_slice(self, s: Subwindow) -> bool:
        """Begin the next of the two slices of a period; whether a period has just ended."""
        s.count = 1 - s.count
        return bool(s.count)

    def arrived(self, s: Subwindow) -> int:
        """How many tuples have entered the subwindow."""
        return s.taken + s.n

    def size(self, s: Subwindow, now: int) -> int:
        """How many tuples the window has, at any time."""
        return min(self.window, self.arrived(s))

    def save(self, s: Subwindow, now: int) -> Any:
        """Closed slices, and the state of the open one, as plain data, at any time."""
        older = sum(1 for _ in rows_on(s.front))
        newest_first = [*rows_on(s.recent), *islice(rows_on(s.older), older)]
        closed = [self._save(row) for row in reversed(newest_first)]
        return [closed, older, self.plan.load(s).snapshot(), self.plan.irregular]

    def load(self, s: Subwindow, state: Any) -> None:
        """Restore what `save` returned."""
        closed, older, open_slice, irregular = state
        self.plan.irregular = self.plan.irregular or irregular
        rows = [self._load(row) for row in closed]
        s.front = s.older = None
        if older:
            s.recent = stack_of(rows[:1] + rows[:older])
            flipper(self.plan)(s)  # which lets the first one go
        s.recent = stack_of(rows[older:])
        if s.recent is not None:
            back = reduce(merger_of(self.plan), rows[older:])
            for name, value in zip(self._back, self._whole(back), strict=True):
                setattr(s, name, value)
        ready = self.plan()
        ready.restore(open_slice)
        self.plan.store(s, ready)

    def _save(self, row: Row) -> Any:
        if row and isinstance(row[0], Unmerged):
            return row[0].message
        return self.plan.encode(self._whole(row))

    def _load(self, saved: Any) -> Row:
        if isinstance(saved, str):
            return (Unmerged(saved),) * self.plan.places
        row = self.plan.decode(saved)
        return tuple(row if self.plan.irregular else [row[i] for i in self._hot])


def refuse_summary(key: Any) -> NoReturn:
    """Refuse a summary between two triggers."""
    msg = (
        f"summary({key!r}): this window keeps slices, which make up a window only while "
        f"a trigger runs. Read it in on_trigger."
    )
    raise AccessError(msg)


# -------------------------------------------------------------------------------------------------
# Slices as source text: closing one, letting the oldest leave, reading the window.
#
# While all tuples are regular, a row of a slice holds its hot places alone: the others still have
# their initial values. From then on rows hold all places; shorter rows are padded.
#
# What the source cannot do, such as adding a float to a Decimal, marks the plan as irregular. It is
# then done again by the methods of the folds; nothing has changed by then.


Stack = tuple[Any, ...] | None
"""The stack below, and a row on top of it; None: there is no row."""


class Unmerged:
    """A row of slices that could not be merged, until the slice that does not fit is evicted."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def refuse(self) -> NoReturn:
        """Raise the reason why there is no value."""
        raise SchemaError(self.message)


def stack_of(rows: Iterable[Row]) -> Stack:
    """A stack of rows, the last on top.

    >>> stack_of([(1.0, 2.0), (3.0, 4.0)])
    ((None, 1.0, 2.0), 3.0, 4.0)
    """
    stack: Stack = None
    for row in rows:
        stack = (stack, *row)
    return stack


def rows_on(stack: Stack) -> Iterator[Row]:
    """The rows of a stack, from the top on."""
    while stack is not None:
        stack, *row = stack
        yield tuple(row)


def close_lines(plan: Plan, filled: int, names: dict[str, Any]) -> Iterator[str]:
    """Source that closes the open slice of `s`, which holds `n` tuples.

    Its row goes on the stack of recent slices and into the slots of all of them together; the
    oldest slice leaves if there are too many, as there are after `filled` tuples.
    """
    names.update(plan=plan, close=_closer(plan), flip=flipper(plan))
    names.update((f"start{i}", start) for i, start in enumerate(plan.start))
    yield "s.taken = s.taken + n"
    yield "s.n = 0"
    if (joined := _joined(plan)) is not None:
        (opened, back), (a, b) = slots(plan, plan.hot), (place_names(run, plan.hot) for run in "ab")
        yield "try:"
        yield "    if plan.irregular: close(s)"
        yield "    else:"
        yield "        r = s.recent"
        yield f"        {assigned(b, opened)}"
        yield f"        if r is None: {assigned(back, b)}"
        yield f"        else: {assigned(a, back)}; {row_text(back)} = {row_text(joined)}"
        yield f"        {assigned(opened, place_names('start', plan.hot))}"
        yield f"        s.recent = {row_text(['r', *b])}"
        yield "except Exception: plan.irregular = True; close(s)"
    else:
        yield "close(s)"
    yield "a = s.front"
    yield "if a is not None: s.front = a[0]"
    yield f"elif s.taken > {filled}: flip(s)"


def assigned(names: list[str], values: list[str]) -> str:
    """Source that gives each name its value."""
    return "; ".join(map(" = ".join, zip(names, values, strict=True))) or "pass"


def _joined(plan: Plan) -> list[str] | None:
    """Texts for the hot places of two rows together; None if some fold has none."""
    merged = merged_texts(plan)
    return None if merged is None else [merged[i] for i in plan.hot]


def slots(plan: Plan, places: Sequence[int]) -> tuple[list[str], list[str]]:
    """Places of the open slice, and of the recent ones together, as slots of `s`."""
    opened, back = ([f"s.{place(i + first)}" for i in places] for first in (0, plan.places))
    return opened, back


def _closer(plan: Plan) -> Callable[[Subwindow], None]:
    """A function that closes the open slice with all places, not just the hot ones."""
    opened, back = map(row_text, slots(plan, range(plan.places)))
    lines = [f"b = {opened}; r = s.recent"]
    lines += [f"{back} = b if r is None else merge({back}, b)"]
    lines += [f"{opened} = start", "s.recent = (r, *b)"]
    return function("s", lines, {"start": plan.start, "merge": merger_of(plan)})


def flipper(plan: Plan) -> Callable[[Subwindow], None]:
    """A function that merges the recent slices of `s` into a new front stack.

    There are two at least, which are taken off from the newest on.
    """
    a, b = (place_names(run, plan.hot) for run in "ab")
    top, under = row_text(["r", *a]), row_text(["r", *b])
    lines = []
    if (joined := _joined(plan)) is not None:
        lines += [
            "try:",
            "    if not plan.irregular:",
            f"        {under} = s.recent; f = {row_text(['None', *b])}; {top} = r",
            "        while r is not None:",
            f"            {row_text(b)} = {row_text(joined)}; f = {row_text(['f', *b])}; {top} = r",
            "except Exception: plan.irregular = True",
            "if plan.irregular:",
        ]
    full = ["r, *b = s.recent; f = (None, *b); r, *a = r"]
    full += ["while r is not None: b = merge(tuple(a), tuple(b)); f = (f, *b); r, *a = r"]
    lines += [f"    {line}" for line in full] if lines else full
    lines += ["s.older = s.recent; s.recent = None; s.front = f"]
    return function("s", lines, {"plan": plan, "merge": merger_of(plan)})


def slice_reader(plan: Plan, size: int) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of all its closed slices."""
    names = [place(i) for i in range(plan.places)]
    lines = ["f = s.front", f"n = {size}", "if f is None and s.taken < n: n = s.taken"]
    if (merged := merged_texts(plan)) is not None:
        a, b = (place_names(run, plan.hot) for run in "ab")
        back = slots(plan, plan.hot)[1]
        alone = regular_text(plan, place_names("a", range(plan.places)))
        lines += [
            "try:",
            "    if not plan.irregular:",
            f"        if f is None: {assigned(a, back)}; return {alone}",
            f"        {row_text(['_', *a])} = f",
            f"        if s.recent is None: return {alone}",
            f"        {assigned(b, back)}",
            f"        return {regular_text(plan, merged)}",
            "except Exception: plan.irregular = True",
        ]
    lines += [
        f"b = {row_text(slots(plan, range(plan.places))[1])}",
        "if f is not None: b = whole(f[1:]) if s.recent is None else merge(f[1:], b)",
        "if b and type(b[0]) is Unmerged: b[0].refuse()",
        f"{row_text(names)} = b",
        f"return {general_text(plan, names)}",
    ]
    known = {"Unmerged": Unmerged, "whole": padder(plan)}
    return function("s", lines, value_methods(plan) | known | {"merge": merger_of(plan)})


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
