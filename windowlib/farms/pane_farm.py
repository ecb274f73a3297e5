"""Pane farming and window partitioning: workers compute parts, and windows are made of them.

In pane farming a part is a slice that several windows share, so it is computed once, as soon as
all its tuples are there. Windows whose extents are known only when they fire are covered by slices
of one length, and by what is left at both ends; those of event time by slices that their tuples
make, of which sessions and landmark windows keep what the one before had. In window partitioning
each window is cut into as many parts as workers shall have of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from windowlib.attributes import one_key
from windowlib.columnar.primitives import Array
from windowlib.control import Adaptive, WorkerStats
from windowlib.farms.chunks import RowRange, add_range, row_ranges
from windowlib.farms.emitter import StoredExtent, StoredFiring
from windowlib.farms.evaluator import BatchExtent
from windowlib.farms.models import Slicing
from windowlib.farms.running_farm import FailedResult
from windowlib.farms.scheduler import Task
from windowlib.farms.window_farm import Dispatch, RunningWindowFarm
from windowlib.farms.window_function import reads_twice
from windowlib.farms.worker import PartialReference, StoredPartial, WorkerException

if TYPE_CHECKING:
    from windowlib.farms.window_farm import RunningWindowFarm

EMPTY: Mapping[Any, Any] = {}
KEYS = 1024
"""Keys whose slices are kept before unneeded ones are dropped."""
GRAIN = 1024
"""Tuples in a slice where it is not known where windows start."""
AHEAD = 8
"""An open window is sliced further when one in so many of its tuples is new, so that the cost for
each tuple does not depend on its length."""
MERGED = 8
"""So many slices that all later windows begin with are merged into one."""


class PaneSlice:
    """Consecutive tuples of a partition, and their partials."""

    __slots__ = ("hi", "id", "key", "lo", "partials", "pending", "runs", "waiting")

    def __init__(self, key: Any, id: Any, lo: int, hi: int, runs: list[RowRange]) -> None:
        self.key, self.id, self.lo, self.hi, self.runs = key, id, lo, hi, runs
        self.partials: list[Any] = []
        self.pending = -1  # parts that have not come; -1: not asked for
        self.waiting: list[PendingWindow] = []


class PendingWindow:
    """A window that waits for its slices."""

    __slots__ = ("firing", "missing", "number", "slices")

    def __init__(self, firing: StoredFiring, number: int, slices: list[PaneSlice]) -> None:
        self.firing, self.number, self.slices = firing, number, slices
        self.missing = 0

    def partials(self, own: Mapping[tuple[PaneSlice, int], PartialReference] = EMPTY) -> list[Any]:
        """The partials of its slices, in order; for pending ones, references from `own`."""
        return [
            own.get((slice_, place), part)
            for slice_ in self.slices
            for place, part in enumerate(slice_.partials)
        ]

    def failed(self) -> FailedResult | None:
        """The first part that could not be made."""
        return next(filter(_failed, self.partials()), None)


PartialRequest = tuple[PaneSlice, int, list[RowRange], int]
"""A part that is requested: its slice, its index there, its rows, and how many."""


class SlicedDispatch(Dispatch):
    """Base: windows made of slices."""

    def __init__(self, run: RunningWindowFarm) -> None:
        super().__init__(run)
        self._requests: list[PartialRequest] = []
        self._reads_twice = reads_twice(self.farm.operator)
        self._reread_rows: dict[int, int] = {}  # the oldest rows of windows that are read again

    # -- parts ------------------------------------------------------------------------------------

    def request(self, slice_: PaneSlice) -> None:
        """Request the partials of a slice, as a whole or in parts."""
        sizes = self._sizes(slice_.hi - slice_.lo)
        slice_.pending, slice_.partials = len(sizes), [None] * len(sizes)
        at = 0
        for place, size in enumerate(sizes):
            self._requests.append((slice_, place, _rows_between(slice_.runs, at, at + size), size))
            at += size

    def _sizes(self, size: int) -> list[int]:
        """How many tuples the parts of a slice have."""
        return [size]

    def flush_full(self) -> None:
        """Submit the parts that were requested: a few tasks for each worker."""
        ready, self._requests = self._requests, []
        size = max(self.farm.batch or 1, -(-len(ready) // (2 * self.run.workers)))
        for at in range(0, len(ready), size):
            self._submit(ready[at : at + size])

    def _submit(self, ready: Sequence[PartialRequest]) -> None:
        runs = [run for _, _, own, _ in ready for run in own]
        given, at = [], 0
        for slice_, _, _, size in ready:
            given.append(BatchExtent(slice_.key, at, at + size, self.run.micros))
            at += size
        first = min((lo for lo, _ in runs), default=None)
        windows = self._windows_ended_by(ready)

        def received(found: Any) -> None:
            failed = isinstance(found, FailedResult)
            for i, (slice_, place, _, _) in enumerate(ready):
                self._receive_part(slice_, place, found if failed else found[0][i])
            for i, window in enumerate(windows):
                items = None if failed else found[1][i]
                self._finish_if_complete(window) if items is None else self._deliver(window, items)

        own = {
            (slice_, place): PartialReference(i) for i, (slice_, place, _, _) in enumerate(ready)
        }
        closes = [(w.firing.key, w.partials(own), w.firing.now) for w in windows]
        args = (self.run.chunk_ranges(runs), given, closes, self.run.as_columns)
        self.run.submit(Task("partials", args, first=first, then=received, rows=at))

    def _windows_ended_by(self, ready: Sequence[PartialRequest]) -> list[PendingWindow]:
        """The windows that lack only these parts: the worker of the parts ends the windows, too.

        That saves a second message, which is most of the latency of a small window.
        """
        made = Counter(slice_ for slice_, *_ in ready)
        ends = [slice_ for slice_, parts in made.items() if parts == slice_.pending]
        lack = Counter(window for slice_ in ends for window in slice_.waiting)
        found = {w for w, slices in lack.items() if slices == w.missing and not w.failed()}
        if self._reads_twice or not found:
            return []
        for slice_ in ends:
            slice_.waiting = [window for window in slice_.waiting if window not in found]
        for window in found:
            window.missing = 0
        return sorted(found, key=lambda window: window.number)

    def _receive_part(self, slice_: PaneSlice, place: int, part: Any) -> None:
        if isinstance(part, StoredPartial):
            part.take_ownership()
        slice_.partials[place] = (
            FailedResult(part.exception()) if isinstance(part, WorkerException) else part
        )
        slice_.pending -= 1
        if not slice_.pending:
            waiting, slice_.waiting = slice_.waiting, []
            for window in waiting:
                window.missing -= 1
                self._finish_if_complete(window)

    # -- windows ----------------------------------------------------------------------------------

    def fired(self, firing: StoredFiring, number: int) -> None:
        """A window waits for its slices; one without tuples is processed at once."""
        if firing.lo == firing.hi:
            args = (self.run.chunk_ranges([]), ([firing.key], [0], [0], [firing.now]))
            self.run.submit(Task("windows", args, then=self.run.receiver([number])))
            return
        window = PendingWindow(firing, number, list(self.slices(firing)))
        if self._reads_twice:
            self._reread_rows[number] = firing.oldest or 0
        for slice_ in window.slices:
            if slice_.pending:
                slice_.waiting.append(window)
                window.missing += 1
        self._finish_if_complete(window)

    def slices(self, firing: StoredFiring) -> Iterator[PaneSlice]:
        """The slices of a window, all of which have been requested."""
        raise NotImplementedError

    def _finish_if_complete(self, window: PendingWindow) -> None:
        if window.missing:
            return
        partials, firing = window.partials(), window.firing
        if (failed := window.failed()) is not None:
            self._deliver(window, failed)
        elif self._reads_twice:
            self._merge_round(window, [], partials)
        else:
            then = self.run.receiver([window.number])
            args = (firing.key, partials, firing.now, self.run.as_columns)
            self.run.submit(Task("finish", args, then=then))

    def _deliver(self, window: PendingWindow, items: Any) -> None:
        self._reread_rows.pop(window.number, None)
        self.run.deliver(window.number, items)

    def oldest(self) -> int | None:
        """The oldest row that is read again."""
        return min(self._reread_rows.values(), default=None)

    def _merge_round(self, window: PendingWindow, sent: list[Any], partials: Sequence[Any]) -> None:
        """Have partials merged before another pass over the tuples; `sent` are earlier items."""
        self.run.submit(
            Task("merged", (partials,), then=_callback(self._start_round, window, sent))
        )

    def _start_round(self, window: PendingWindow, sent: list[Any], whole: Any) -> None:
        """Start another pass over the tuples, given the result of the whole window."""
        if isinstance(whole, FailedResult):
            self._deliver(window, whole)
            return
        if isinstance(whole, StoredPartial):
            whole.take_ownership()
        firing, found = window.firing, {}

        def received(place: int, answer: Any) -> None:
            found[place] = answer
            if len(found) == len(window.slices):
                self._end_round(window, sent, [found[i] for i in sorted(found)])

        for place, slice_ in enumerate(window.slices):
            seen = BatchExtent(firing.key, 0, slice_.hi - slice_.lo, firing.now)
            args = (self.run.chunk_ranges(slice_.runs), seen, whole)
            first = min(lo for lo, _ in slice_.runs)
            self.run.submit(Task("again", args, first=first, then=_callback(received, place)))

    def _end_round(self, window: PendingWindow, sent: list[Any], answers: Sequence[Any]) -> None:
        """End a pass over the tuples; if parts remain, they are merged for another one."""
        failed = next((each for each in answers if isinstance(each, FailedResult)), None)
        if failed is not None:
            self._deliver(window, failed)
            return
        items = sent + [item for items, _ in answers for item in items]
        partials = [part for _, part in answers if part is not None]
        self._merge_round(window, items, partials) if partials else self._deliver(window, items)


class SharedSlices(SlicedDispatch):
    """Base of pane farming: windows share slices, which may be cut into parts."""

    def __init__(self, run: RunningWindowFarm) -> None:
        super().__init__(run)
        self.resized()

    def resized(self) -> None:
        """Make a new policy, for the present number of workers."""
        policy = self.farm.policy
        self.splitter = None if policy is None else SliceSplitter(policy(self.run.workers))

    def _sizes(self, size: int) -> list[int]:
        """About equal ones, or as large as the policy says."""
        if self.splitter is not None:
            self.splitter.look(self.run.pool.now)
            return self.splitter.cut(size)
        parts = self.farm.parts
        return [b - a for a, b in pairwise(size * i // parts for i in range(parts + 1)) if a < b]

    def worked(self, worker: int, task: Task, seconds: float) -> None:
        """Report the task to the policy that decides how large parts are."""
        if self.splitter is not None:
            self.splitter.worked(worker, task.rows, seconds)


class PaneDispatch(SharedSlices):
    """Windows share slices; `slicer` says where a slice ends."""

    def __init__(self, run: RunningWindowFarm, slicer: Slicer) -> None:
        super().__init__(run)
        self._slicer = slicer
        self._slices: dict[Any, deque[PaneSlice]] = {}

    def arrived(self, stored_extents: Iterable[StoredExtent]) -> None:
        """Add tuples to their slices, and request slices that end."""
        for extent in stored_extents:
            for id, lo, hi, ends in self._slicer.cut(extent, self.run):
                at = extent.at + lo - extent.first
                slice_ = self._slice(extent.key, id, lo)
                slice_.hi = hi
                add_range(slice_.runs, (at, at + hi - lo))
                if ends:
                    self.request(slice_)

    def adopted(self, extents: Iterable[StoredExtent], counts: Mapping[Any, int]) -> None:
        """Cut stored tuples into slices, as if they came now."""
        self.arrived(extents)

    def _slice(self, key: Any, id: Any, lo: int) -> PaneSlice:
        """The open slice of a partition; another id ends it and begins a new one."""
        slices = self._slices.setdefault(key, deque())
        if slices and slices[-1].id == id:
            return slices[-1]
        if slices and slices[-1].pending == -1:
            self.request(slices[-1])
        slices.append(PaneSlice(key, id, lo, lo, []))
        return slices[-1]

    def slices(self, firing: StoredFiring) -> Iterator[PaneSlice]:
        """Whole slices, and parts of those that are not whole in the window."""
        known = self._slices.get(firing.key, deque())
        while known and known[0].hi <= firing.lo:
            known.popleft()  # no later window goes back
        for slice_ in known:
            lo, hi = max(slice_.lo, firing.lo), min(slice_.hi, firing.hi)
            if lo >= hi:
                break
            ends = slice_.pending != -1 or self._slicer.ended(slice_.id, self.run)
            if not ends or (lo, hi) != (slice_.lo, slice_.hi):
                slice_ = PaneSlice(firing.key, None, lo, hi, firing.runs(lo, hi))
            if slice_.pending == -1:
                self.request(slice_)
            yield slice_

    def oldest(self) -> int | None:
        """The oldest row that is read again, or of a slice that has not been asked for."""
        rows = [
            slices[-1].runs[0][0]
            for slices in self._slices.values()
            if slices and slices[-1].pending == -1
        ]
        again = super().oldest()
        return min(rows if again is None else [*rows, again], default=None)

    def saved(self) -> Any:
        """The slices with their parts."""
        return [
            (key, [(s.id, s.lo, s.hi, s.runs, self._values(s), s.pending) for s in slices])
            for key, slices in self._slices.items()
            if slices
        ]

    def _values(self, slice_: PaneSlice) -> list[Any]:
        """The parts of a slice, as data."""
        read = self.run.evaluator.load_part
        return [
            read(part.bytes()) if isinstance(part, StoredPartial) else part
            for part in slice_.partials
        ]

    def load(self, state: Any) -> None:
        """Take back what `saved` gave."""
        self._slices = {}
        for key, slices in state:
            found = self._slices[one_key(key)] = deque()
            for id, lo, hi, runs, partials, left in slices:
                found.append(slice_ := PaneSlice(key, id, lo, hi, [tuple(run) for run in runs]))
                slice_.partials, slice_.pending = partials, left


class EventPaneDispatch(SharedSlices):
    """Windows of event time share slices, which are known when a window fires.

    A slice may still get tuples after a window that has it is closed; it is then computed anew for
    the next one.
    """

    def __init__(self, run: RunningWindowFarm) -> None:
        super().__init__(run)
        self._known_slices: dict[Any, dict[int, PaneSlice]] = {}  # of the last window of each key

    def slices(self, firing: StoredFiring) -> Iterator[PaneSlice]:
        """The slices of a window; those of the window before are not requested again."""
        before, at = self._known_slices.get(firing.key, EMPTY), firing.lo
        found = self._known_slices[firing.key] = {}
        for id, size in firing.slices:
            slice_ = before.get(id)
            if slice_ is None or slice_.hi - slice_.lo != size:
                runs = firing.runs(at, at + size)
                slice_ = PaneSlice(firing.key, id, at, at + size, runs)
                self.request(slice_)
            found[id] = slice_
            yield slice_
            at += size

    def after_firings(self) -> None:
        """Drop keys without open windows, once the number of keys has doubled."""
        if len(self._known_slices) > 2 * self._kept_keys:
            keys = self.run.open_keys()
            self._known_slices = {
                key: found for key, found in self._known_slices.items() if key in keys
            }
            self._kept_keys = max(KEYS, len(self._known_slices))

    _kept_keys = KEYS


class RunPaneDispatch(SharedSlices):
    """Sessions and landmark windows of event time: a slice is any run of their tuples.

    A window that grows has the tuples of the one before, in the same order but for those that came
    late. A slice is known by its tuples: it is taken again where a window has them next to each
    other. Of long windows, what the watermark has passed is computed before they fire. Slices that
    all later windows begin with, as those of a landmark do, become one.
    """

    def __init__(self, run: RunningWindowFarm) -> None:
        super().__init__(run)
        self._known_slices: dict[Any, dict[int, PaneSlice]] = {}  # by key and first row
        self._slice_count, self._slice_limit = 0, KEYS  # from the limit on, old ones are dropped
        self._new_tuples: dict[Any, int] = {}  # of a key since its open windows were sliced
        self._sliced: dict[Any, dict[int, int]] = {}  # how many are in slices of open windows
        self._long_keys: list[Any] = []  # keys with many of these
        self._merging: set[Any] = set()

    def slices(self, firing: StoredFiring) -> Iterator[PaneSlice]:
        """The known slices, with new ones between them."""
        assert firing.at is not None
        found = list(self._cover(firing.key, firing.at))
        self._merge_settled(firing, found)
        yield from found

    def _cover(self, key: Any, numbers: Array) -> Iterator[PaneSlice]:
        """Slices of some rows: those that are known, and new ones in between."""
        known, at = self._known_slices.setdefault(key, {}), 0
        for begin in np.flatnonzero(np.isin(numbers, list(known))).tolist():
            slice_ = known[int(numbers[begin])]
            end = begin + slice_.hi - slice_.lo
            if at <= begin and row_ranges(numbers[begin:end]) == slice_.runs:
                yield from self._new_slices(key, numbers[at:begin])
                yield slice_
                at = end
        yield from self._new_slices(key, numbers[at:])

    def _new_slices(self, key: Any, numbers: Array) -> Iterator[PaneSlice]:
        """New slices of rows."""
        for at in range(0, len(numbers), GRAIN):
            rows = numbers[at : at + GRAIN]
            slice_ = PaneSlice(key, None, 0, len(rows), row_ranges(rows))
            self.request(slice_)
            self._slice_count += 1
            self._known_slices[key][int(rows[0])] = slice_
            yield slice_

    def _merge_settled(self, firing: StoredFiring, slices: Sequence[PaneSlice]) -> None:
        """Merge the slices that all later windows begin with, if there are many."""
        done, size = list[PaneSlice](), 0
        for each in slices:
            size += each.hi - each.lo
            if size > firing.settled or each.pending or any(map(_failed, each.partials)):
                break
            done.append(each)
        if len(done) < MERGED or firing.key in self._merging:
            return
        self._merging.add(firing.key)
        partials = [part for each in done for part in each.partials]
        self.run.submit(
            Task("merged", (partials,), then=_callback(self._replace_merged, firing.key, done))
        )

    def _replace_merged(self, key: Any, done: Sequence[PaneSlice], whole: Any) -> None:
        """Put one slice in place of several; if merging failed, windows will report it."""
        self._merging.discard(key)
        known = self._known_slices.get(key, {})
        gone = any(known.get(each.runs[0][0]) is not each for each in done)
        if gone or isinstance(whole, FailedResult):
            return
        runs: list[RowRange] = []
        for each in done:
            for run in each.runs:
                add_range(runs, run)
            del known[each.runs[0][0]]
        joined = PaneSlice(key, None, 0, sum(each.hi - each.lo for each in done), runs)
        joined.pending, joined.partials = 1, [None]
        self._receive_part(joined, 0, whole)
        known[runs[0][0]] = joined
        self._slice_count -= len(done) - 1

    def arrived(self, stored_extents: Iterable[StoredExtent]) -> None:
        """Count tuples, and note the keys whose open windows are to be sliced."""
        for key, _, _, size in stored_extents:
            self._new_tuples[key] = size = self._new_tuples.get(key, 0) + size
            if size >= max(GRAIN, sum(self._sliced.get(key, EMPTY).values()) // AHEAD):
                self._long_keys.append(key)

    def after_firings(self) -> None:
        """Slice the rows of long open windows that the watermark has passed."""
        long, self._long_keys = self._long_keys, []
        for key in long:
            self._slice_ahead(key)
        if self._slice_count > self._slice_limit:
            self._forget()

    def _slice_ahead(self, key: Any) -> None:
        del self._new_tuples[key]
        before = self._sliced.get(key, EMPTY)
        cut = self._sliced[key] = {}
        for which, rows in self.run.passed(key, before).items():
            size = len(rows) // GRAIN * GRAIN
            cut[which] = before.get(which, 0) + size
            for _ in self._cover(key, rows[:size]):
                pass  # which asks for it

    def _forget(self) -> None:
        """Drop slices of tuples that no window has any more."""
        held = set(self.run.needed().tolist())
        for key, known in self._known_slices.items():
            self._known_slices[key] = {row: each for row, each in known.items() if row in held}
        self._known_slices = {key: known for key, known in self._known_slices.items() if known}
        self._sliced = {key: cut for key, cut in self._sliced.items() if key in self._known_slices}
        self._new_tuples = {
            key: size for key, size in self._new_tuples.items() if key in self._known_slices
        }
        self._slice_count = sum(map(len, self._known_slices.values()))
        self._slice_limit = max(KEYS, 2 * self._slice_count)


class PartitionDispatch(SlicedDispatch):
    """Each window is cut into `parts` parts of about the same size."""

    def slices(self, firing: StoredFiring) -> Iterator[PaneSlice]:
        """The parts of a window, one by one."""
        size = firing.hi - firing.lo
        parts = min(self.farm.parts, size)
        for i in range(parts):
            lo, hi = firing.lo + size * i // parts, firing.lo + size * (i + 1) // parts
            slice_ = PaneSlice(firing.key, None, lo, hi, firing.runs(lo, hi))
            self.request(slice_)
            yield slice_


# -- helpers --------------------------------------------------------------------------------------


def _rows_between(runs: Sequence[RowRange], a: int, b: int) -> list[RowRange]:
    """The rows from the a-th to the b-th of runs.

    >>> _rows_between([(0, 3), (10, 14)], 1, 5)
    [(1, 3), (10, 12)]
    """
    found, before = [], 0
    for lo, hi in runs:
        start, end = max(lo, lo + a - before), min(hi, lo + b - before)
        if start < end:
            found.append((start, end))
        before += hi - lo
    return found


def _failed(part: Any) -> bool:
    return isinstance(part, FailedResult)


def _callback(call: Callable[..., None], *args: Any) -> Callable[[Any], None]:
    return lambda found: call(*args, found)


# -- how a policy cuts slices into parts ----------------------------------------------------------
#
# The policies of `windowlib.control` assign each tuple to a worker. A farm dispatches whole slices,
# whose parts go to any free worker; so it takes the size of parts from a policy, and reports the
# sizes of parts and the utilisation of workers to it.

INTERVAL = 0.25
"""Seconds between two samples of the workers, at least."""
SLICES = 5
"""So many slices have to have ended in between, too."""


class SliceSplitter:
    """The parts of slices: each has up to `policy.threshold` tuples next to each other.

    What is left of a slice is a part of its own. If that were more parts than there are workers,
    all of them have equal ones.

    >>> splitter = SliceSplitter(Adaptive(2, warmup=1))
    >>> splitter.cut(100), splitter.cut(130), splitter.cut(500)
    ([100], [100, 30], [250, 250])
    """

    def __init__(self, policy: Adaptive) -> None:
        self.policy = policy
        self.slices = 0
        """How many slices have been cut."""
        self._since: float | None = None
        self._begin()

    def _begin(self) -> None:
        self._given, self._first = 0, self.slices
        self._done = [0] * self.policy.workers
        self._busy = [0.0] * self.policy.workers

    def cut(self, size: int) -> list[int]:
        """The sizes of the parts of a slice, which the policy learns from."""
        found = self._cut(size)
        self.policy.closed(self.slices, found)
        self.slices += 1
        self._given += size
        return found

    def _cut(self, size: int) -> list[int]:
        threshold, workers = self.policy.threshold, self.policy.workers
        if size <= threshold:
            return [size]
        most = int(threshold)
        if size > most * workers:
            return [size // workers + (i < size % workers) for i in range(min(size, workers))]
        whole, rest = divmod(size, most)
        return [most] * whole + [rest] * bool(rest)

    def worked(self, worker: int, rows: int, seconds: float) -> None:
        """A worker has done a task."""
        self._done[worker] += rows
        self._busy[worker] += seconds

    def look(self, now: float) -> None:
        """Report to the policy how busy workers were, if it is time to."""
        if self._since is None:
            self._since = now
        interval = now - self._since
        if interval < INTERVAL or self.slices - self._first < SLICES:
            return
        self.policy.sample(now, self._stats(), interval)
        self._since = now
        self._begin()

    def _stats(self) -> list[WorkerStats]:
        """What each worker did. A task has no worker until one is free, so the input counts as
        given to workers in proportion to what they have done."""
        done = sum(self._done)
        return [
            WorkerStats(self._given * (own / done if done else 1 / len(self._done)), own, busy)
            for own, busy in zip(self._done, self._busy, strict=True)
        ]


# -- where the slices of a partition end, as its tuples come --------------------------------------

SliceExtent = tuple[int, int, int, bool]
"""Which slice, its tuples `[lo, hi)` among those that came, and whether it ends with them."""


class Slicer(Protocol):
    """Says which slices tuples belong to."""

    def cut(self, extent: StoredExtent, run: RunningWindowFarm) -> Iterator[SliceExtent]:
        """The slices of some tuples."""
        ...

    def ended(self, slice_: Any, run: RunningWindowFarm) -> bool:
        """Whether no tuple can come to a slice any more."""
        ...


class CountSlicer:
    """Slices of the numbers of tuples: each ends with its last one."""

    def __init__(self, slices: Slicing) -> None:
        self.slices = slices

    def cut(self, extent: StoredExtent, run: RunningWindowFarm) -> Iterator[SliceExtent]:
        """By the numbers of the tuples."""
        at, end = extent.first, extent.first + extent.size
        number = self.slices.of(at)
        while at < end:
            _, last = self.slices.extent(number)
            stop = min(end, int(last))
            yield number, at, stop, stop == last
            at, number = stop, number + 1

    def ended(self, slice_: Any, run: RunningWindowFarm) -> bool:
        """False: more tuples may come."""
        return False


class TimeSlicer:
    """Slices of the clock: each ends when its time is over."""

    def __init__(self, slices: Slicing) -> None:
        self.slices = slices

    def cut(self, extent: StoredExtent, run: RunningWindowFarm) -> Iterator[SliceExtent]:
        """By arrival time."""
        at, end = extent.first, extent.first + extent.size
        if run.stamps is None:  # they came when the emitter was last told the time
            yield int(self.slices.of(run.worker_time - run.start)), at, end, False
            return
        begin = extent.at - run.base
        stamps = run.stamps[begin : begin + extent.size] - run.start
        numbers = self.slices.of(stamps)
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for lo, hi in pairwise(cuts):
            if lo < hi:
                yield int(numbers[lo]), at + lo, at + hi, False

    def ended(self, slice_: Any, run: RunningWindowFarm) -> bool:
        """Whether its time is over."""
        return slice_ is not None and bool(self.slices.extent(slice_)[1] <= run.micros - run.start)
