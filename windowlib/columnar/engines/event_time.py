"""Tumbling and sliding windows of event time over whole batches: partials of slices and keys.

A batch is split by slice and key at once, and each function makes one partial of each such group.
A group that is open from before goes on with its partial. What the watermark has passed fires;
a sliding window merges the partials of its slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from windowlib.attributes import one_key
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.kept_rows import RowColumns
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.arrays.physical import gather, plain_type, take_rows
from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs, LayoutColumns, empty_batch
from windowlib.columnar.kernels.functions import AlgebraicFunction, functions_of
from windowlib.columnar.kernels.kernel import Kernel, Planes, concat_planes, planes_at, planes_with
from windowlib.columnar.primitives import NONE, Array, group, ranges
from windowlib.columnar.primitives.grouping import ascending
from windowlib.event_time.axis import FIRST_MOMENT, LAST_MOMENT
from windowlib.spec.specification import KEY
from windowlib.window.consumer import Decline
from windowlib.window.contents import FoldContentStore
from windowlib.window.open_windows import (
    EventTimeConfig,
    OpenHoppingWindows,
    OpenLandmarkWindows,
    OpenWindows,
)

if TYPE_CHECKING:
    from windowlib.window.event_time import EventTimeWindow

MAX_SLICE_SPAN = 1 << 31
"""Slices that are further apart than this are not numbered together."""


@dataclass(slots=True)
class SliceGroups:
    """The folded rows of one key in one slice each, in the order of slices and keys."""

    last: Array
    """The last window of the slice."""
    first: Array
    """The first window of the slice."""
    ids: Array
    """The number of the key."""
    n: Array
    """How many rows there are."""
    born: Array
    """The number of the arrival of the first of them."""
    planes: list[Planes]
    """The state of each function."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: Any) -> Self:
        """Some of the groups."""
        planes = [planes_at(each, places) for each in self.planes]
        named = self.last[places], self.first[places], self.ids[places]
        return type(self)(*named, self.n[places], self.born[places], planes)

    def concat(self, other: Self) -> Self:
        """These groups, followed by others."""
        pairs, sizes = zip(self.planes, other.planes, strict=True), (len(self), len(other))
        last, first, ids, n, born = (
            np.concatenate((getattr(self, name), getattr(other, name)))
            for name in ("last", "first", "ids", "n", "born")
        )
        planes = [concat_planes(a, b, *sizes) for a, b in pairs]
        return type(self)(last, first, ids, n, born, planes)


class SlicePartials(NamedTuple):
    """The partials of slices and keys, for transfer to the engine that has their windows.

    Plain arrays, so that they can be kept as bytes.
    """

    last: Array
    """The last window of a slice, or the timestamp of the last row of a session."""
    first: Array
    """The first one."""
    n: Array
    born: Array
    planes: list[Planes]
    keys: list[Any]
    """An Arrow array for each key column."""
    sample: Any
    """A timestamp, as a row has it."""

    def take(self, places: Array) -> SlicePartials:
        """Some of them."""
        planes = [planes_at(each, places) for each in self.planes]
        keys = [gather(each, pa.array(places)) for each in self.keys]
        last, first, n, born = (each[places] for each in self[:4])
        return SlicePartials(last, first, n, born, planes, keys, self.sample)

    @classmethod
    def concat(cls, parts: Sequence[SlicePartials]) -> SlicePartials:
        """Several in a row, in the order in which their rows came."""
        whole, *others = parts
        for part in others:
            before, sizes = int(whole.n.sum()), (len(whole.n), len(part.n))
            planes = [
                concat_planes(a, b, *sizes) for a, b in zip(whole.planes, part.planes, strict=True)
            ]
            pairs = zip(whole.keys, part.keys, strict=True)
            keys = [pa.concat_arrays([a, b.cast(a.type)]) for a, b in pairs]
            shifted = part._replace(born=part.born + before)
            last, first, n, born = (
                np.concatenate(pair) for pair in zip(whole[:4], shifted[:4], strict=True)
            )
            whole = cls(last, first, n, born, planes, keys, whole.sample)
        return whole


@dataclass(slots=True)
class PendingGroups:
    """The changes of a batch, which `commit` applies."""

    groups: Any
    rows: int
    late: int
    watermark: Any
    sample: Any
    """A timestamp, as a row has it."""


class EventTimeEngine:
    """The open windows of event time as arrays."""

    way = "partials by slice and key"
    windows_type: ClassVar[type[OpenWindows]] = OpenHoppingWindows
    """The class of open windows that it replaces."""
    sends = False
    """Whether another engine gets the partials and decides which rows are late."""

    def __init__(
        self, window: EventTimeWindow[Any, Any], schema: pa.Schema, empty: bool = False
    ) -> None:
        self.window, self.schema = window, schema
        self.event_time_state = window.event_time_state
        self.config: EventTimeConfig = self.event_time_state.config
        self._check()
        self.keys = self._named_keys()
        self.plan: Any = window.state.summarizer
        self.kernels: list[Kernel] = []
        self.attributes: list[Any] = []
        self._read_functions()
        self.windows = self.event_time_state.open_windows()
        self.open: Any = self._loaded(empty)
        self.pending: PendingGroups | None = None
        self._before: Any = None  # the slack before the last batch

    @cached_property
    def windows_overlap(self) -> bool:
        """Whether windows overlap."""
        starts, ends = self.config.starts, self.config.ends
        return starts.origin * ends.scale != (ends.origin - ends.step) * starts.scale

    def _read_functions(self) -> None:
        """The kernel and the columns of each function."""
        for function in functions_of(self.plan, self.schema):
            if not isinstance(function, AlgebraicFunction) or function.kernel.pool is not None:
                raise Decline("a function that keeps values")
            self.kernels.append(function.kernel)
            self.attributes.append(function.attribute)

    def _check_store(self) -> None:
        if not isinstance(self.config.store, FoldContentStore):
            raise Decline("a function that needs rows in order")

    def _check(self) -> None:
        """Decline what only the event engine can do."""
        window, config = self.window, self.config
        if window.state.consumer.fired is None:
            raise Decline("handlers see each window")
        if config.windows_type is not self.windows_type:
            kind = "landmark" if config.windows_type is OpenLandmarkWindows else "session"
            raise Decline(f"{kind} windows are filled row by row")
        if config.revises:
            raise Decline("windows may be sent more than once")
        watermark = config.watermark
        if watermark.scope == "key" or watermark.sources is not None:
            raise Decline("several watermarks")
        if watermark.max_ahead is not None:
            raise Decline("max_ahead= looks at each row")
        self._check_store()

    def _named_keys(self) -> PartitionKeys | None:
        by = self.window.spec.by
        if by is None:
            return None
        parts = by if isinstance(by, tuple) else (by,)
        if by is KEY or not all(isinstance(part, str) for part in parts):
            raise Decline("by= is no list of column names")
        for part in parts:
            if self.schema.get_field_index(part) < 0:
                raise Decline(f"there is no single column {part!r}")
        return PartitionKeys(tuple(map(str, parts)), isinstance(by, tuple))

    # -- from and to the event engine -------------------------------------------------------------

    def _loaded(self, empty: bool) -> SliceGroups:
        """The open slices as arrays; `empty`: none of them."""
        entries = [
            (last, first, key, content)
            for (last, first), keys in sorted(self.windows.slices.items())
            for key, content in keys.items()
            if not empty
        ]
        keys = [key for _, _, key, _ in entries]
        ids = np.zeros(len(entries), np.int64)
        if self.keys is not None:
            ids = self.adopted(keys)
        n = np.array([content.n for *_, content in entries], np.int64)
        saved = [self.plan.encode(content.row) for *_, content in entries]
        planes = [
            kernel.load([each[i] for each in saved], n) for i, kernel in enumerate(self.kernels)
        ]
        last = np.array([last for last, *_ in entries], np.int64)
        first = np.array([first for _, first, *_ in entries], np.int64)
        born = np.array([content.born for *_, content in entries], np.int64)
        found = SliceGroups(last, first, ids, n, born, planes)
        return found.take(np.lexsort((ids, first, last)))

    def adopted(self, keys: list[Any]) -> Array:
        """The numbers of keys of the event engine."""
        assert self.keys is not None
        types = [plain_type(self.schema.field(name).type) for name in self.keys.names]
        found: Array = self.keys.adopt(keys, types).astype(np.int64)
        return found

    def unload(self) -> None:
        """Write the contents back to the event engine."""
        slices: dict[tuple[int, int], dict[Any, Any]] = {}
        order = np.lexsort((self.open.born, self.open.first, self.open.last))
        groups = self.open.take(order)
        saved = [k.save(p, groups.n) for k, p in zip(self.kernels, groups.planes, strict=True)]
        columns = groups.last.tolist(), groups.first.tolist(), self._python_keys(groups.ids)
        load = self.config.store.load
        counted = zip(*columns, groups.born.tolist(), groups.n.tolist(), strict=True)
        for i, (last, first, key, born, n) in enumerate(counted):
            content = load([born, n, [each[i] for each in saved]])
            slices.setdefault((last, first), {})[one_key(key)] = content
        self.windows.slices = slices

    def _python_keys(self, ids: Array) -> list[Any]:
        return [None] * len(ids) if self.keys is None else self.keys.values(ids)

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """The firings of a batch; only the slack changes before `commit` or `undo`."""
        ts = self.event_time_state.axis.array(batch)
        if ts is None:
            raise Decline("timestamps that are read one by one")
        if self.event_time_state.follows:
            return self._insert_following(batch, ts)
        state = self.event_time_state.slack()
        if not state.fits(ts):
            raise Decline("timestamps that change their type")
        self._before = state.snapshot()
        try:
            return self._insert_rows(batch, ts, state)
        except Exception:
            state.restore(self._before)
            raise

    def _insert_rows(self, batch: pa.RecordBatch, ts: Array, state: Any) -> Firings:
        current = self.windows.progress.current
        in_order = bool((ts[1:] >= ts[:-1]).all())
        in_order = in_order and (current is None or bool(ts[0] >= current))
        if in_order:
            places, starts, last, first, late = self._ordered_slices(ts)
            state.observe_many(ts)
        else:
            *slices, late = self._unordered_slices(ts, state, current)
            places, starts, last, first = self._slices(*slices)
        watermark = state.punctuation
        if current is not None and watermark < current:
            watermark = current
        groups = self._grouped(batch, places, starts, last, first)
        (sample,) = batch.column(self.event_time_state.axis.attribute).slice(0, 1).to_pylist()
        whole = self._with_open(groups)
        self.pending = PendingGroups(whole, len(ts) - late, late, watermark, sample)
        return self._close_through(self.config.ends.index(watermark))

    def _insert_following(self, batch: pa.RecordBatch, ts: Array) -> Firings:
        """Insert rows where a host sets the watermark: no window closes."""
        last = self.config.starts.indexes(ts)
        late = self._late_slices(last)
        behind = int(late.sum())
        if behind and not self.event_time_state.drops_quietly:
            raise Decline("late rows that are looked at one by one")
        first = self.config.ends.indexes(ts) + 1 if self.windows_overlap else last
        groups = self._grouped(batch, *self._slices(last, first, late))
        (sample,) = batch.column(self.event_time_state.axis.attribute).slice(0, 1).to_pylist()
        current = self.windows.progress.current
        whole = self._with_open(groups)
        self.pending = PendingGroups(whole, len(ts) - behind, behind, current, sample)
        return self._firings(groups.take(NONE), NONE)

    def _late_slices(self, last: Array) -> Array:
        """Which slices are closed, given their last windows."""
        closed = self.windows.closed
        return np.zeros(len(last), bool) if closed is None else last <= closed

    def reach(self, watermark: Any) -> Firings:
        """The firings of the windows that end up to a watermark."""
        self.pending = PendingGroups(self.open, 0, 0, watermark, None)
        return self._close_through(self.config.ends.index(watermark))

    def partials(self) -> SlicePartials:
        """The partials of all open slices, for another engine."""
        held, sample = self.open, self.event_time_state.sample
        keys = [] if self.keys is None else self.keys.arrow(held.ids)
        return SlicePartials(held.last, held.first, held.n, held.born, held.planes, keys, sample)

    def absorb(self, partials: SlicePartials) -> Firings:
        """Merge in rows that were folded elsewhere, where rows do not move the watermark."""
        groups = SliceGroups(partials.last, partials.first, *self._numbered(partials))
        late = self._late_slices(groups.last)
        behind, whole = int(groups.n[late].sum()), int(groups.n.sum())
        order = np.lexsort((groups.ids, groups.first, groups.last))
        new = self._merged_groups(groups.take(order[~late[order]]))
        current = self.windows.progress.current
        taken = PendingGroups(
            self._with_open(new), whole - behind, behind, current, partials.sample
        )
        self.pending = taken
        return self._firings(groups.take(NONE), NONE)

    def _numbered(self, partials: SlicePartials) -> tuple[Array, Array, Array, list[Planes]]:
        """The numbers of keys, the sizes, the numbers of first arrivals, and the states."""
        ids: Array = np.zeros(len(partials.n), np.int64)
        if self.keys is not None:
            ids = self.keys.encode(partials.keys).astype(np.int64)
        return ids, partials.n, self.event_time_state.next_number + partials.born, partials.planes

    def _merged_groups(self, groups: SliceGroups) -> SliceGroups:
        """Ordered groups, with those of the same slice and key merged."""
        last, first, ids = groups.last, groups.first, groups.ids
        new = (last[1:] != last[:-1]) | (first[1:] != first[:-1]) | (ids[1:] != ids[:-1])
        starts = np.append(0, np.flatnonzero(new) + 1)[: len(groups)]
        if len(starts) == len(groups):
            return groups
        ends = np.append(starts[1:], len(groups))
        planes = [
            kernel.combine(each, starts, ends) if each else each
            for kernel, each in zip(self.kernels, groups.planes, strict=True)
        ]
        n, born = np.add.reduceat(groups.n, starts), np.minimum.reduceat(groups.born, starts)
        return SliceGroups(last[starts], first[starts], ids[starts], n, born, planes)

    def contents(self, partials: SlicePartials) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Key, last and first window, and content of rows that were folded, the last ones first.

        So a part of a session comes after those that keep it open.
        """
        partials = partials.take(np.argsort(-partials.last, kind="stable"))
        ids, n, born, planes = self._numbered(partials)
        saved = [kernel.save(each, n) for kernel, each in zip(self.kernels, planes, strict=True)]
        columns = (born.tolist(), n.tolist(), partials.last.tolist(), partials.first.tolist())
        rows = zip(self._python_keys(ids), *columns, strict=True)
        for i, (key, first_number, size, last, first) in enumerate(rows):
            state = [first_number, size, [each[i] for each in saved]]
            yield one_key(key), last, first, self.config.store.load(state)

    def closes(self) -> Any:
        """Where the first window with rows ends; None: there is none."""
        if not len(self.open):
            return None
        k, closed = int(self.open.first.min()), self.windows.closed
        k = k if closed is None else max(k, closed + 1)
        return self.config.axis.point(self.config.ends, k)

    def _ordered_slices(self, ts: Array) -> tuple[Any, Array, Array, Array, int]:
        """The slices of ordered rows, of which none is late."""
        config = self.config
        cuts = self._cuts(ts, config.starts)
        if self.windows_overlap:
            cuts = np.union1d(cuts, self._cuts(ts, config.ends))
        starts = np.concatenate(([0], cuts))
        heads = ts[starts]
        last = config.starts.indexes(heads)
        first = last if not self.windows_overlap else config.ends.indexes(heads) + 1
        return None, np.append(starts, len(ts)), last, first, 0

    def _cuts(self, ts: Array, grid: Any) -> Array:
        """Where ordered rows pass a point of a grid."""
        low, high = grid.index(ts[0].item()), grid.index(ts[-1].item())
        if high - low > len(ts):  # more points than rows
            found = grid.indexes(ts)
            cuts: Array = np.flatnonzero(found[1:] != found[:-1]) + 1
            return cuts
        edges = grid.points(np.arange(low + 1, high + 1))
        return np.unique(np.searchsorted(ts, edges))

    def _unordered_slices(
        self, ts: Array, state: Any, current: Any
    ) -> tuple[Array, Array, Array, int]:
        """The last and first windows of unordered rows, which rows are late, and how many."""
        config = self.config
        last = first = config.starts.indexes(ts)
        # What is closed after a row is the same for the row as what was before it: it comes from
        # timestamps that are not greater than its own.
        at, closed = state.observe_points(ts, config.ends)
        if current is not None:
            closed = np.maximum(closed, config.ends.index(current))
        late = config.starts.behind(ts, at, closed + 1)
        behind = int(np.count_nonzero(late))
        if behind and not self.event_time_state.drops_quietly:
            raise Decline("late rows that are looked at one by one")
        if self.windows_overlap:
            first = config.ends.indexes(ts) + 1
            if bool((config.ends.behind(ts, at, closed) & ~late).any()):
                raise Decline("rows that come late for some of their windows")
        return last, first, late, behind

    def _slices(self, last: Array, first: Array, late: Array) -> tuple[Array, Array, Array, Array]:
        """The places of rows by slice, where each slice starts, and its windows."""
        places = np.flatnonzero(~late)
        if self.windows_overlap:
            places = places[np.lexsort((first[places], last[places]))]
        else:
            places = places[ascending(last[places])]
        last, first = last[places], first[places]
        changes = (last[1:] != last[:-1]) | (first[1:] != first[:-1])
        starts = np.concatenate(([0], np.flatnonzero(changes) + 1)) if len(places) else NONE
        return places, np.append(starts, len(places)), last[starts], first[starts]

    def _grouped(
        self, batch: pa.RecordBatch, places: Any, starts: Array, last: Array, first: Array
    ) -> SliceGroups:
        """Fold the rows of a batch into one group for each slice and key."""
        lengths = np.diff(starts)
        inputs = Inputs(batch)
        order, lo = places, starts[:-1]
        slices, ids = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
        if self.keys is not None:
            codes = self.keys.encode([inputs.arrow(name) for name in self.keys.names])
            codes = codes if places is None else codes[places]
            many = len(self.keys)
            if len(lengths) * many >= MAX_SLICE_SPAN:
                raise Decline("too many slices and keys in a batch")
            owners = np.repeat(slices, lengths)
            inner, touched, lo = group(owners * many + codes, len(lengths) * many)
            order = inner if places is None or inner is None else places[inner]
            order = places if inner is None else order
            lo, ends = lo[:-1], lo[1:]
            slices, ids = touched // many, (touched % many).astype(np.int64)
        else:
            ends = starts[1:]
        hi = ends
        columns = LayoutColumns(inputs, order)
        planes = [
            kernel.partial(columns.read(attribute), lo, hi)
            for kernel, attribute in zip(self.kernels, self.attributes, strict=True)
        ]
        heads = lo if order is None else order[lo]
        born = self.event_time_state.next_number + heads
        return SliceGroups(last[slices], first[slices], ids, hi - lo, born, planes)

    def _with_open(self, new: SliceGroups) -> SliceGroups:
        """The open groups merged with the groups of a batch."""
        old = self.open
        if not len(old):
            return new
        mine, theirs = self._codes(old, new)
        where = np.searchsorted(mine, theirs)
        where[where == len(mine)] = 0
        same = mine[where] == theirs
        goes_on, fresh = where[same], np.flatnonzero(~same)
        planes = []
        for kernel, a, b in zip(self.kernels, old.planes, new.planes, strict=True):
            merged = (
                kernel.merge(planes_at(a, goes_on), planes_at(b, np.flatnonzero(same))) if a else a
            )
            kept = tuple(None if plane is None else plane.copy() for plane in a)
            if len(goes_on) and a:
                kept = planes_with(kept, goes_on, merged, len(old))
            planes.append(concat_planes(kept, planes_at(b, fresh), len(old), len(fresh)))
        n, born = old.n.copy(), old.born
        n[goes_on] += new.n[same]
        found = SliceGroups(
            np.concatenate((old.last, new.last[fresh])),
            np.concatenate((old.first, new.first[fresh])),
            np.concatenate((old.ids, new.ids[fresh])),
            np.concatenate((n, new.n[fresh])),
            np.concatenate((born, new.born[fresh])),
            planes,
        )
        codes = np.concatenate((mine, theirs[fresh]))
        return found if bool((codes[1:] >= codes[:-1]).all()) else found.take(np.argsort(codes))

    def _codes(self, old: SliceGroups, new: SliceGroups) -> tuple[Array, Array]:
        """A number for each slice and key, ascending with both."""
        last = np.concatenate((old.last, new.last))
        first = np.concatenate((old.first, new.first))
        low, width = int(last.min()), int((last - first).max()) + 1
        slices = (last - low) * width + (width - 1 - (last - first))
        if (
            int(last.max()) - low + 1
        ) * width >= MAX_SLICE_SPAN:  # far apart: by their places in order
            pairs = np.stack((last, first), axis=1)
            slices = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        codes = (slices << 31) | np.concatenate((old.ids, new.ids))
        return codes[: len(old)], codes[len(old) :]

    # -- firings ----------------------------------------------------------------------------------

    def _close_through(self, to: int) -> Firings:
        """The firings of the windows up to a number that are still open."""
        assert self.pending is not None
        groups = self.pending.groups
        if not self.windows_overlap:
            done = groups.take(np.flatnonzero(groups.last <= to))
            order = np.lexsort((done.born, done.last))
            return self._firings(done.take(order), done.last[order])
        closed = self.windows.closed
        low = groups.first if closed is None else np.maximum(groups.first, closed + 1)
        lengths = np.maximum(np.minimum(groups.last, to) - low + 1, 0)
        owners = np.repeat(np.arange(len(groups)), lengths)
        windows = ranges(low, lengths)
        order = np.lexsort((owners, groups.ids[owners], windows))
        owners, windows = owners[order], windows[order]
        ids = groups.ids[owners]
        heads = np.flatnonzero(
            np.concatenate(([True], (ids[1:] != ids[:-1]) | (windows[1:] != windows[:-1])))
        )[: len(owners)]
        return self._merged(groups, owners, windows, heads)

    def _merged(self, groups: SliceGroups, owners: Array, windows: Array, heads: Array) -> Firings:
        """The firings of windows with several slices."""
        if not len(owners):
            return self._firings(groups.take(NONE), NONE)
        ends = np.append(heads[1:], len(owners))
        planes = [
            kernel.combine(planes_at(each, owners), heads, ends) if each else each
            for kernel, each in zip(self.kernels, groups.planes, strict=True)
        ]
        n = np.add.reduceat(groups.n[owners], heads)
        born = np.minimum.reduceat(groups.born[owners], heads)
        whole = SliceGroups(
            windows[heads], windows[heads], groups.ids[owners[heads]], n, born, planes
        )
        order = np.lexsort((born, whole.last))
        return self._firings(whole.take(order), whole.last[order])

    def _firings(self, groups: SliceGroups, windows: Array) -> Firings:
        values = [
            kernel.finish(each, groups.n)
            for kernel, each in zip(self.kernels, groups.planes, strict=True)
        ]
        bounds = tuple(
            self._bound(grid.points(windows)) for grid in (self.config.starts, self.config.ends)
        )
        made = Firings(self.keys, groups.ids, groups.n, values, np.arange(len(groups)))
        made.bounds = bounds
        return made

    def _bound(self, at: Array) -> pa.Array:
        """Places on the axis as timestamps."""
        kind = plain_type(self.schema.field(self.event_time_state.axis.attribute).type)
        types = pa.types
        dated = len(at) and (types.is_timestamp(kind) or types.is_date(kind))
        if dated and not FIRST_MOMENT <= int(at.min()) <= int(at.max()) <= LAST_MOMENT:
            raise Decline("windows that reach beyond the years of datetimes")
        if types.is_timestamp(kind):
            return pa.array(at, pa.timestamp("us", kind.tz))
        if types.is_duration(kind):
            return pa.array(at, pa.duration("us"))
        if types.is_date(kind):
            found = pa.array(at, pa.timestamp("us"))
            return found.cast(pa.date32()) if self.event_time_state.whole_days else found
        return pa.array(at.astype(np.float64) if types.is_floating(kind) else at)

    def undo(self) -> None:
        """Undo the batch."""
        self.pending = None
        if self._before is not None:
            self.event_time_state.slack().restore(self._before)

    def finish(self) -> Firings:
        """The firings of all open windows."""
        self.pending = PendingGroups(self.open, 0, 0, None, None)
        to = int(self.open.last.max()) if len(self.open) else 0
        return self._close_through(to)

    def commit(self) -> None:
        """Commit the batch, after its firings were delivered."""
        pending, self.pending = self.pending, None
        assert pending is not None
        if pending.watermark is None:
            ends = not self.event_time_state.follows or not pending.rows + pending.late
            to = int(self.open.last.max()) if ends and len(self.open) else None
        else:
            to = self.config.ends.index(pending.watermark)
            self.windows.progress.current = pending.watermark
        groups = pending.groups
        if to is not None:
            self.windows.mark_closed(to)
            groups = groups.take(np.flatnonzero(groups.last > to))
        self.open = groups
        self.event_time_state.count(pending.rows, pending.late, pending.sample)

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions open windows have."""
        return int(self.open.n.sum()), len(np.unique(self.open.ids))


# -- rows -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class OpenRows:
    """Rows of open windows, with their timestamps and numbers."""

    batch: pa.RecordBatch
    last: Array
    """The window of each."""
    ids: Array
    """The number of its key."""
    ts: Array
    numbers: Array
    """The number of its arrival."""

    def __len__(self) -> int:
        return len(self.last)

    def take(self, places: Array) -> OpenRows:
        """Some of them."""
        arrays = self.last[places], self.ids[places], self.ts[places], self.numbers[places]
        return OpenRows(take_rows(self.batch, places), *arrays)

    def concat(self, new: OpenRows) -> OpenRows:
        """These rows followed by others."""
        if not len(self):
            return new
        return OpenRows(
            pa.concat_batches([self.batch, new.batch]),
            np.concatenate((self.last, new.last)),
            np.concatenate((self.ids, new.ids)),
            np.concatenate((self.ts, new.ts)),
            np.concatenate((self.numbers, new.numbers)),
        )


class EventTimeRowsEngine(EventTimeEngine):
    """Tumbling windows of event time that keep rows, for operators that look at columns."""

    way = "rows by window and key"

    def _check(self) -> None:
        super()._check()
        if self.windows_overlap:
            raise Decline("windows that overlap keep rows one by one")
        if self.event_time_state.follows:
            raise Decline("a watermark from outside takes rows one by one")
        if self.window.state.consumer.engine is not None:
            raise Decline("its operator keeps rows in a way of its own")

    def _check_store(self) -> None:
        if self.window.state.summarizer is not None:
            raise Decline("a function that needs rows in order")

    def _read_functions(self) -> None:
        self.kernels, self.attributes = [], []

    def _loaded(self, empty: bool) -> Any:
        if self.windows.slices:
            raise Decline("rows that came one by one are open")
        none = np.empty(0, np.int64)
        return OpenRows(empty_batch(self.schema), none, none, none, none)

    def unload(self) -> None:
        """Write the rows back to the event engine."""
        rows: OpenRows = self.open
        store = self.config.store
        slices: dict[tuple[int, int], dict[Any, Any]] = {}
        keys = self._python_keys(rows.ids)
        columns = rows.last.tolist(), keys, rows.ts.tolist(), rows.numbers.tolist()
        order = np.argsort(rows.numbers, kind="stable").tolist()
        entries = list(zip(*columns, rows.batch.to_pylist(), strict=True))
        for last, key, ts, number, row in (entries[place] for place in order):
            contents = slices.setdefault((last, last), {})
            key = one_key(key)
            if key not in contents:
                contents[key] = store.new(number)
            store.add(contents[key], ts, row)
        self.windows.slices = slices

    def _insert_rows(self, batch: pa.RecordBatch, ts: Array, state: Any) -> Firings:
        current = self.windows.progress.current
        last, _, late, behind = self._unordered_slices(ts, state, current)
        watermark = state.punctuation
        watermark = watermark if current is None else max(watermark, current)
        ids: Array = np.zeros(len(ts), np.int64)
        if self.keys is not None:
            inputs = Inputs(batch)
            codes = self.keys.encode([inputs.arrow(name) for name in self.keys.names])
            ids = codes.astype(np.int64)
        numbers = self.event_time_state.next_number + np.arange(len(ts))
        new = OpenRows(batch, last, ids, ts, numbers)
        whole = self.open.concat(new.take(np.flatnonzero(~late)) if behind else new)
        (sample,) = batch.column(self.event_time_state.axis.attribute).slice(0, 1).to_pylist()
        self.pending = PendingGroups(whole, len(ts) - behind, behind, watermark, sample)
        return self._close_through(self.config.ends.index(watermark))

    def _close_through(self, to: int) -> Firings:
        assert self.pending is not None
        rows: Any = self.pending.groups
        done = np.flatnonzero(rows.last <= to)
        # Rows of one window are in the order of their arrival, which stable sorting keeps; and
        # windows are in the order of time.
        if self.keys is None:
            done = done[ascending(rows.ts[done])]
        else:
            done = done[np.lexsort((rows.ts[done], rows.ids[done], rows.last[done]))]
        last, ids = rows.last[done], rows.ids[done]
        new = np.concatenate(([True], (last[1:] != last[:-1]) | (ids[1:] != ids[:-1])))
        heads = np.flatnonzero(new[: len(done)])
        lengths = np.diff(np.append(heads, len(done)))
        born = np.minimum.reduceat(rows.numbers[done], heads) if len(heads) else NONE
        order = np.lexsort((born, last[heads]))
        heads, lengths = heads[order], lengths[order]
        places = done[ranges(heads, lengths)]
        names = list(rows.batch.schema.names)
        content = RowColumns(names, [Column.of(each) for each in rows.batch.columns], places)
        made = Firings(self.keys, ids[heads], lengths, [], np.arange(len(heads)))
        made.hi = np.cumsum(lengths)
        made.lo, made.content = made.hi - lengths, content
        windows, grids = last[heads], (self.config.starts, self.config.ends)
        made.bounds = tuple(self._bound(grid.points(windows)) for grid in grids)
        return made

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions open windows have."""
        return len(self.open.last), len(np.unique(self.open.ids))
