"""Pane farming and window partitioning: workers compute parts, and windows are made of them.

In pane farming a part is a slice that several windows share, so it is computed once, as soon as
all its tuples are there. Windows whose extents are known only when they fire are covered by slices
of one length, and by what is left at both ends. In window partitioning each window is cut into as
many parts as workers shall have of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from windowlib.attributes import one_key
from windowlib.farms.chunks import Run
from windowlib.farms.cuts import Cuts
from windowlib.farms.emitter import Firing, Stretch
from windowlib.farms.functions import reads_twice
from windowlib.farms.running import Failure
from windowlib.farms.schedule import Task
from windowlib.farms.shares import Shares
from windowlib.farms.station import Own, Raised
from windowlib.farms.windowed import Pattern, RunningWindows
from windowlib.farms.work import Given

NONE: Mapping[Any, Any] = {}


class Slice:
    """Some tuples of a partition, next to each other, and what workers made of them."""

    __slots__ = ("hi", "id", "key", "left", "lo", "parts", "runs", "waiting")

    def __init__(self, key: Any, id: Any, lo: int, hi: int, runs: list[Run]) -> None:
        self.key, self.id, self.lo, self.hi, self.runs = key, id, lo, hi, runs
        self.parts: list[Any] = []
        self.left = -1  # parts that have not come; -1: nobody has been asked
        self.waiting: list[Window] = []


class Window:
    """A window that waits for its slices."""

    __slots__ = ("firing", "missing", "number", "slices")

    def __init__(self, firing: Firing, number: int, slices: list[Slice]) -> None:
        self.firing, self.number, self.slices = firing, number, slices
        self.missing = 0

    def parts(self, own: Mapping[tuple[Slice, int], Own] = NONE) -> list[Any]:
        """What its slices have become, in order; what is yet to come by where it will be."""
        return [
            own.get((slice_, place), part)
            for slice_ in self.slices
            for place, part in enumerate(slice_.parts)
        ]

    def failed(self) -> Failure | None:
        """The first part that could not be made."""
        return next((part for part in self.parts() if isinstance(part, Failure)), None)


Ready = tuple[Slice, int, list[Run], int]
"""A part that is asked for: of which slice, the how-manieth, its rows, and how many."""


class Parted(Pattern):
    """Base: windows made of slices."""

    def __init__(self, run: RunningWindows) -> None:
        super().__init__(run)
        self._ready: list[Ready] = []
        self._twice = reads_twice(self.farm.operator)
        self._again_from: dict[int, int] = {}  # the oldest rows of windows that are read again

    # -- parts ------------------------------------------------------------------------------------

    def ask(self, slice_: Slice) -> None:
        """Have a slice computed, as a whole or in parts."""
        sizes = self._sizes(slice_.hi - slice_.lo)
        slice_.left, slice_.parts = len(sizes), [None] * len(sizes)
        at = 0
        for place, size in enumerate(sizes):
            self._ready.append((slice_, place, _between(slice_.runs, at, at + size), size))
            at += size

    def _sizes(self, size: int) -> list[int]:
        """How many tuples the parts of a slice have."""
        return [size]

    def flush_full(self) -> None:
        """Give away the parts that were asked for: a few tasks for each worker."""
        ready, self._ready = self._ready, []
        size = max(self.farm.batch, -(-len(ready) // (2 * self.farm.workers)))
        for at in range(0, len(ready), size):
            self._give(ready[at : at + size])

    def _give(self, ready: Sequence[Ready]) -> None:
        runs = [run for _, _, own, _ in ready for run in own]
        given, at = [], 0
        for slice_, _, _, size in ready:
            given.append(Given(slice_.key, at, at + size, self.run._now))
            at += size
        first = min((lo for lo, _ in runs), default=None)
        windows = self._complete_with(ready)

        def received(found: Any) -> None:
            failed = isinstance(found, Failure)
            for i, (slice_, place, _, _) in enumerate(ready):
                self._came(slice_, place, found if failed else found[0][i])
            for i, window in enumerate(windows):
                items = None if failed else found[1][i]
                self._complete(window) if items is None else self._done(window, items)

        own = {(slice_, place): Own(i) for i, (slice_, place, _, _) in enumerate(ready)}
        closes = [(w.firing.key, w.parts(own), w.firing.now) for w in windows]
        args = (self.run.pieces(runs), given, closes)
        self.run.put(Task("parts", args, first=first, then=received, rows=at))

    def _complete_with(self, ready: Sequence[Ready]) -> list[Window]:
        """The windows that lack nothing but these parts: whoever makes them ends the windows, too.

        That saves a second message, which is most of what a small window has to wait for.
        """
        made = Counter(slice_ for slice_, *_ in ready)
        ends = [slice_ for slice_, parts in made.items() if parts == slice_.left]
        lack = Counter(window for slice_ in ends for window in slice_.waiting)
        found = {w for w, slices in lack.items() if slices == w.missing and not w.failed()}
        if self._twice or not found:
            return []
        for slice_ in ends:
            slice_.waiting = [window for window in slice_.waiting if window not in found]
        for window in found:
            window.missing = 0
        return sorted(found, key=lambda window: window.number)

    def _came(self, slice_: Slice, place: int, part: Any) -> None:
        slice_.parts[place] = Failure(part.noted()) if isinstance(part, Raised) else part
        slice_.left -= 1
        if not slice_.left:
            waiting, slice_.waiting = slice_.waiting, []
            for window in waiting:
                window.missing -= 1
                self._complete(window)

    # -- windows ----------------------------------------------------------------------------------

    def fired(self, firing: Firing, number: int) -> None:
        """A window waits for its slices; one without tuples has none, and is processed as it is."""
        if firing.lo == firing.hi:
            args = (self.run.pieces([]), [Given(firing.key, 0, 0, firing.now)])
            self.run.put(Task("windows", args, then=self.run.receiver([number])))
            return
        window = Window(firing, number, list(self.slices(firing)))
        if self._twice:
            self._again_from[number] = int(firing.at[0])
        for slice_ in window.slices:
            if slice_.left:
                slice_.waiting.append(window)
                window.missing += 1
        self._complete(window)

    def slices(self, firing: Firing) -> Iterator[Slice]:
        """The slices of a window, all of which have been asked for."""
        raise NotImplementedError

    def _complete(self, window: Window) -> None:
        if window.missing:
            return
        parts, firing = window.parts(), window.firing
        if (failed := window.failed()) is not None:
            self._done(window, failed)
        elif self._twice:
            then = _then(self._again, window)
            self.run.put(Task("merged", (parts,), then=then))
        else:
            then = self.run.receiver([window.number])
            self.run.put(Task("finish", (firing.key, parts, firing.now), then=then))

    def _done(self, window: Window, items: Any) -> None:
        self._again_from.pop(window.number, None)
        self.run.deliver(window.number, items)

    def oldest(self) -> int | None:
        """The oldest row that is read again."""
        return min(self._again_from.values(), default=None)

    def _again(self, window: Window, whole: Any) -> None:
        """The tuples are looked at once more, now that the result of the whole is known."""
        if isinstance(whole, Failure):
            self._done(window, whole)
            return
        firing, found = window.firing, {}

        def received(place: int, items: Any) -> None:
            found[place] = items
            if len(found) == len(window.slices):
                self._done(window, _joined([found[i] for i in sorted(found)]))

        for place, slice_ in enumerate(window.slices):
            seen = Given(firing.key, 0, slice_.hi - slice_.lo, firing.now)
            args = (self.run.pieces(slice_.runs), seen, whole)
            first = min(lo for lo, _ in slice_.runs)
            self.run.put(Task("again", args, first=first, then=_then(received, place)))


class Panes(Parted):
    """Windows share slices; `cuts` says where a slice ends."""

    def __init__(self, run: RunningWindows, cuts: Cuts) -> None:
        super().__init__(run)
        self._cuts = cuts
        self.shares = None if self.farm.policy is None else Shares(self.farm.policy())
        self._slices: dict[Any, deque[Slice]] = {}

    def arrived(self, stretches: Iterable[Stretch]) -> None:
        """Tuples go to their slices; a slice that ends is given away."""
        for stretch in stretches:
            for id, lo, hi, ends in self._cuts.cut(stretch, self.run):
                at = stretch.at + lo - stretch.first
                slice_ = self._slice(stretch.key, id, lo)
                slice_.hi = hi
                _add(slice_.runs, (at, at + hi - lo))
                if ends:
                    self.ask(slice_)

    def _slice(self, key: Any, id: Any, lo: int) -> Slice:
        """The open slice of a partition; another one begins a new slice, and ends the last."""
        slices = self._slices.setdefault(key, deque())
        if slices and slices[-1].id == id:
            return slices[-1]
        if slices and slices[-1].left == -1:
            self.ask(slices[-1])
        slices.append(Slice(key, id, lo, lo, []))
        return slices[-1]

    def _sizes(self, size: int) -> list[int]:
        """About equal ones, or as large as the policy says."""
        if self.shares is not None:
            self.shares.look(self.run.pool.now)
            return self.shares.cut(size)
        parts = self.farm.parts
        return [b - a for a, b in pairwise(size * i // parts for i in range(parts + 1)) if a < b]

    def worked(self, worker: int, rows: int, seconds: float) -> None:
        """Tell whoever decides how large parts are."""
        if self.shares is not None:
            self.shares.worked(worker, rows, seconds)

    def slices(self, firing: Firing) -> Iterator[Slice]:
        """Whole slices, and parts of those that are not whole in the window."""
        known = self._slices.get(firing.key, deque())
        while known and known[0].hi <= firing.lo:
            known.popleft()  # no later window goes back
        for slice_ in known:
            lo, hi = max(slice_.lo, firing.lo), min(slice_.hi, firing.hi)
            if lo >= hi:
                break
            ends = slice_.left != -1 or self._cuts.ended(slice_.id, self.run)
            if not ends or (lo, hi) != (slice_.lo, slice_.hi):
                slice_ = Slice(firing.key, None, lo, hi, firing.runs(lo, hi))
            if slice_.left == -1:
                self.ask(slice_)
            yield slice_

    def oldest(self) -> int | None:
        """The oldest row that is read again, or of a slice that nobody has been asked for."""
        rows = [
            slices[-1].runs[0][0]
            for slices in self._slices.values()
            if slices and slices[-1].left == -1
        ]
        again = super().oldest()
        return min(rows if again is None else [*rows, again], default=None)

    def saved(self) -> Any:
        """The slices with their parts."""
        return [
            (key, [(s.id, s.lo, s.hi, s.runs, s.parts, s.left) for s in slices])
            for key, slices in self._slices.items()
            if slices
        ]

    def load(self, state: Any) -> None:
        """Take back what `saved` gave."""
        self._slices = {}
        for key, slices in state:
            found = self._slices[one_key(key)] = deque()
            for id, lo, hi, runs, parts, left in slices:
                found.append(slice_ := Slice(key, id, lo, hi, [tuple(run) for run in runs]))
                slice_.parts, slice_.left = parts, left


class Partition(Parted):
    """Each window is cut into `parts` parts of about the same size."""

    def slices(self, firing: Firing) -> Iterator[Slice]:
        """The parts of a window, one by one."""
        size = firing.hi - firing.lo
        parts = min(self.farm.parts, size)
        for i in range(parts):
            lo, hi = firing.lo + size * i // parts, firing.lo + size * (i + 1) // parts
            slice_ = Slice(firing.key, None, lo, hi, firing.runs(lo, hi))
            self.ask(slice_)
            yield slice_


# -- helpers --------------------------------------------------------------------------------------


def _between(runs: Sequence[Run], a: int, b: int) -> list[Run]:
    """The rows from the a-th to the b-th of runs.

    >>> _between([(0, 3), (10, 14)], 1, 5)
    [(1, 3), (10, 12)]
    """
    found, before = [], 0
    for lo, hi in runs:
        start, end = max(lo, lo + a - before), min(hi, lo + b - before)
        if start < end:
            found.append((start, end))
        before += hi - lo
    return found


def _add(runs: list[Run], run: Run) -> None:
    """One run more, which may go on with the last."""
    if runs and runs[-1][1] == run[0]:
        runs[-1] = (runs[-1][0], run[1])
    else:
        runs.append(run)


def _then(call: Callable[..., None], *args: Any) -> Callable[[Any], None]:
    return lambda found: call(*args, found)


def _joined(results: Sequence[Any]) -> Any:
    """What the parts of a window send, one after the other; or the first failure."""
    failed = next((each for each in results if isinstance(each, Failure)), None)
    return failed or [item for ((*items,),) in results for item in items]
