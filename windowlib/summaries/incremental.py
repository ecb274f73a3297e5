"""Summaries of a sliding window that are updated when they are read.

An insert does nothing for them. A read compares the extent `[lo, hi)` of arrivals that the window
holds with the one it held at the last read: what has come since is folded in, what has left is
taken off. Each tuple is looked at twice in its life, whatever the size of the window.

    last read    lo ........ boundary ........ hi
    front        one merged row per tuple of [lo, boundary), each up to the boundary: pop = leave
    back         one merged row of [boundary, hi)
    window       top of front + back, one merge

When a tuple of the back leaves, everything in the window becomes the front (two stacks). Nothing
is subtracted, so nothing drifts. Folds that have an algorithm of their own (`Fold.sliding`) are
queues of values beside the stacks.

All of it is derived from the tuples: it is not part of a snapshot, and is built anew where the
overlap of two reads is small or the tuples did not leave in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.summaries.folds import Fifo, Fold
from windowlib.summaries.source import Row, folder, pair_reader, row_reader, tuple_reader
from windowlib.window.subwindow import Subwindow

if TYPE_CHECKING:
    from windowlib.summaries.summarizers import Plan


SMALL = 16
"""Up to so many tuples are folded from scratch at each read, which is fastest."""


class Program:
    """The generated code that keeps a plan's folds up to date on a sliding window.

    One for all subwindows of a window, built for tuples like `sample`.
    """

    def __init__(self, plan: Plan, sample: Any) -> None:
        self.plan = plan
        fifos = [fold.sliding() for fold in plan.folds]
        numbers = range(len(fifos))
        self.stacked = [i for i in numbers if fifos[i] is None and _stackable(plan.folds[i])]
        self.queued = [i for i in numbers if fifos[i] is not None]
        self.recomputed = [i for i in numbers if i not in self.stacked and i not in self.queued]
        self.only_stacks = len(self.stacked) == len(numbers)
        part = plan.subset(self.stacked)
        self.start: Row = part.start
        self.run, self.suffixes = folder(part, sample)
        self.read, self.read_pair = row_reader(part), pair_reader(part)
        again = plan.subset(self.recomputed)
        self.again_start: Row = again.start
        self.run_again, _ = folder(again, sample)
        self.read_again = row_reader(again)
        self.fold_all = tuple_reader(plan, sample) if self.only_stacks else None
        """Folds all tuples from scratch; None if that is slow even for few."""

    def completed(self, values: list[Any], fifos: list[Fifo], tuples: Any) -> list[Any]:
        """All values in the order of the plan, given those of the stacks."""
        found: list[Any] = [None] * len(self.plan.folds)
        for i, value in zip(self.stacked, values, strict=True):
            found[i] = value
        for i, fifo in zip(self.queued, fifos, strict=True):
            found[i] = fifo.value()
        if self.recomputed:
            again = self.read_again(len(tuples), self.run_again(tuples, self.again_start))
            for i, value in zip(self.recomputed, again, strict=True):
                found[i] = value
        return found


class Incremental:
    """The summary of one subwindow; `sync` before `value`."""

    __slots__ = (
        "back",
        "born",
        "boundary",
        "fifos",
        "front",
        "hi",
        "lo",
        "plan",
        "program",
        "tuples",
    )

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.program: Program | None = None
        self.born = -1
        self.lo = self.hi = self.boundary = 0
        self.front: list[Row] = []
        self.back: Row | None = None
        self.fifos: list[Fifo] = []
        self.tuples: Any = ()

    def sync(self, s: Subwindow) -> None:
        """Fold in the tuples that came since the last call, and remove those that left."""
        self.tuples = tuples = s.data
        program = self.program
        if program is None:
            program = self.program = self.plan.program(tuples[-1])
        hi, size = s.taken, len(tuples)
        new, lo, born = hi - self.hi, hi - size, self.born
        self.born = -1  # half done, should a value be refused: the next time builds it anew
        if s.born != born or new * 2 >= size or s.rough:
            self._rebuild(program, s)
        elif new or lo != self.lo:
            fresh = (tuples[-1],) if new == 1 else [tuples[-i] for i in range(new, 0, -1)]
            self._slide(program, fresh, lo)
        self.born, self.lo, self.hi = s.born, lo, hi

    def _rebuild(self, program: Program, s: Subwindow) -> None:
        self.front, self.boundary = [], s.taken - len(s.data)
        self.back = program.run(s.data, program.start) if program.stacked else None
        folds, getters = self.plan.folds, self.plan.getters
        self.fifos = []
        for i in program.queued:
            fifo = folds[i].sliding()
            assert fifo is not None
            self.fifos.append(fifo)
            _push(fifo, getters[i], s.data)

    def _slide(self, program: Program, fresh: Sequence[Any], lo: int) -> None:
        gone = lo - self.lo
        if not program.only_stacks:
            for i, fifo in zip(program.queued, self.fifos, strict=True):
                if gone:
                    fifo.pop(gone)
                _push(fifo, self.plan.getters[i], fresh)
            if not program.stacked:
                return
        if lo > self.boundary:  # a tuple of the back has left: flip
            self.front = program.suffixes(reversed(self.tuples))
            self.back, self.boundary = None, self.hi + len(fresh)
            return
        if gone:
            del self.front[-gone:]
        if fresh:
            self.back = program.run(fresh, program.start if self.back is None else self.back)

    def values(self) -> list[Any]:
        """The values, in the order of the plan."""
        program, front, back, n = self.program, self.front, self.back, len(self.tuples)
        assert program is not None
        if front and back is not None:
            values = program.read_pair(n, front[-1], back)
        else:
            values = program.read(n, front[-1] if front else back or program.start)
        if program.only_stacks:
            return values
        return program.completed(values, self.fifos, self.tuples)

    def value(self) -> Any:
        """The value, or a dict of them if the window was given a dict."""
        values = self.values()
        return values if self.plan.names == () else self.plan.named(values)


def _push(fifo: Fifo, get: Callable[[Any], Any] | None, tuples: Any) -> None:
    push = fifo.push
    if get is None:
        for tuple_ in tuples:
            push(tuple_)
    else:
        for tuple_ in tuples:
            push(get(tuple_))


def _stackable(fold: Fold) -> bool:
    return fold.mergeable and fold.stackable


def describe(plan: Plan) -> list[str]:
    """The algorithm of each fold of a plan on a sliding window."""
    found = []
    for fold in plan.folds:
        fifo = fold.sliding()
        if not fold.empty and fifo is None:
            found.append("size of the window")
        elif fifo is not None:
            found.append(fifo.algorithm)
        else:
            found.append("two stacks" if _stackable(fold) else "recomputed from the tuples")
    return found
