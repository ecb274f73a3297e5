"""Tumbling and sliding windows of event time over whole batches: partials of slices and keys.

A batch is split by slice and key at once, and each function makes one partial of each such group.
A group that is open from before goes on with its partial. What the watermark has passed fires;
a sliding window merges the partials of its slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

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
from windowlib.window.contents import FoldStore
from windowlib.window.lanes import Hopping, Landmarks, Lane, Layout

if TYPE_CHECKING:
    from windowlib.window.event_time import EventTimeWindow

SPAN = 1 << 31
"""Slices that are further apart than this are not numbered together."""


@dataclass(slots=True)
class SliceGroups:
    """The rows of one key in one slice each, in the order of slices and keys."""

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

    def at(self, places: Any) -> SliceGroups:
        """Some of them."""
        planes = [planes_at(each, places) for each in self.planes]
        named = self.last[places], self.first[places], self.ids[places]
        return SliceGroups(*named, self.n[places], self.born[places], planes)


class SlicePartials(NamedTuple):
    """The partials of slices and keys, on their way from where rows were folded to their windows.

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

    def at(self, places: Array) -> SlicePartials:
        """Some of them."""
        planes = [planes_at(each, places) for each in self.planes]
        keys = [gather(each, pa.array(places)) for each in self.keys]
        last, first, n, born = (each[places] for each in self[:4])
        return SlicePartials(last, first, n, born, planes, keys, self.sample)

    @classmethod
    def joined(cls, parts: Sequence[SlicePartials]) -> SlicePartials:
        """Several, one behind the other, as if the rows of the first had come first."""
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
class Pending:
    """What a batch changes, once those who are told have been told."""

    groups: Any
    rows: int
    late: int
    watermark: Any
    sample: Any
    """A timestamp, as a row has it."""


class EventTimeEngine:
    """The open windows of event time as arrays."""

    way = "partials by slice and key"
    lanes: ClassVar[type[Lane]] = Hopping
    """The windows that it has arrays for."""
    sends = False
    """Whether another engine gets what is folded here, and says which rows are late."""

    def __init__(
        self, window: EventTimeWindow[Any, Any], schema: pa.Schema, empty: bool = False
    ) -> None:
        self.window, self.schema = window, schema
        self.inside = window.inside
        self.layout: Layout = self.inside.layout
        self._check()
        self.keys = self._named_keys()
        self.plan: Any = window.state.summarizer
        self.kernels: list[Kernel] = []
        self.attributes: list[Any] = []
        self._read_functions()
        self.lane = self.inside.lane()
        self.open: Any = self._loaded(empty)
        self.pending: Pending | None = None
        self._before: Any = None  # the slack before the last batch

    @cached_property
    def hops(self) -> bool:
        """Whether windows overlap."""
        starts, ends = self.layout.starts, self.layout.ends
        return starts.origin * ends.scale != (ends.origin - ends.step) * starts.scale

    def _read_functions(self) -> None:
        """The kernel and the columns of each function."""
        for function in functions_of(self.plan, self.schema):
            if not isinstance(function, AlgebraicFunction) or function.kernel.pool is not None:
                raise Decline("a function that keeps values")
            self.kernels.append(function.kernel)
            self.attributes.append(function.attribute)

    def _check_store(self) -> None:
        if not isinstance(self.layout.store, FoldStore):
            raise Decline("a function that needs rows in order")

    def _check(self) -> None:
        """Refuse what is done row by row."""
        window, layout = self.window, self.layout
        if window.state.consumer.fired is None:
            raise Decline("handlers see each window")
        if layout.lane is not self.lanes:
            kind = "landmark" if layout.lane is Landmarks else "session"
            raise Decline(f"{kind} windows are filled row by row")
        if layout.revises:
            raise Decline("windows may be sent more than once")
        watermark = layout.watermark
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
        """The contents of the lane, as arrays; or none, if it starts empty."""
        entries = [
            (last, first, key, content)
            for (last, first), keys in sorted(self.lane.slices.items())
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
        return found.at(np.lexsort((ids, first, last)))

    def adopted(self, keys: list[Any]) -> Array:
        """Numbers for keys of the event engine."""
        assert self.keys is not None
        types = [plain_type(self.schema.field(name).type) for name in self.keys.names]
        found: Array = self.keys.adopt(keys, types).astype(np.int64)
        return found

    def unload(self) -> None:
        """Give the contents back to the lane."""
        slices: dict[tuple[int, int], dict[Any, Any]] = {}
        order = np.lexsort((self.open.born, self.open.first, self.open.last))
        groups = self.open.at(order)
        saved = [k.save(p, groups.n) for k, p in zip(self.kernels, groups.planes, strict=True)]
        columns = groups.last.tolist(), groups.first.tolist(), self._python_keys(groups.ids)
        load = self.layout.store.load
        counted = zip(*columns, groups.born.tolist(), groups.n.tolist(), strict=True)
        for i, (last, first, key, born, n) in enumerate(counted):
            content = load([born, n, [each[i] for each in saved]])
            slices.setdefault((last, first), {})[one_key(key)] = content
        self.lane.slices = slices

    def _python_keys(self, ids: Array) -> list[Any]:
        return [None] * len(ids) if self.keys is None else self.keys.values(ids)

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """The firings of a batch; nothing changes but the slack, until `commit` or `undo`."""
        ts = self.inside.axis.array(batch)
        if ts is None:
            raise Decline("timestamps that are read one by one")
        if self.inside.follows:
            return self._followed(batch, ts)
        state = self.inside.slack()
        if not state.fits(ts):
            raise Decline("timestamps that change their type")
        self._before = state.snapshot()
        try:
            return self._inserted(batch, ts, state)
        except Exception:
            state.restore(self._before)
            raise

    def _inserted(self, batch: pa.RecordBatch, ts: Array, state: Any) -> Firings:
        current = self.lane.progress.current
        in_order = bool((ts[1:] >= ts[:-1]).all())
        in_order = in_order and (current is None or bool(ts[0] >= current))
        if in_order:
            places, starts, last, first, late = self._runs(ts)
            state.observe_many(ts)
        else:
            *slices, late = self._scattered(ts, state, current)
            places, starts, last, first = self._slices(*slices)
        watermark = state.punctuation
        if current is not None and watermark < current:
            watermark = current
        groups = self._grouped(batch, places, starts, last, first)
        (sample,) = batch.column(self.inside.axis.attribute).slice(0, 1).to_pylist()
        whole = self._together(groups)
        self.pending = Pending(whole, len(ts) - late, late, watermark, sample)
        return self._fired(self.layout.ends.index(watermark))

    def _followed(self, batch: pa.RecordBatch, ts: Array) -> Firings:
        """The same where rows do not move the watermark: no window closes."""
        last = self.layout.starts.indexes(ts)
        late = self._late_slices(last)
        behind = int(late.sum())
        if behind and not self.inside.drops_quietly:
            raise Decline("late rows that are looked at one by one")
        first = self.layout.ends.indexes(ts) + 1 if self.hops else last
        groups = self._grouped(batch, *self._slices(last, first, late))
        (sample,) = batch.column(self.inside.axis.attribute).slice(0, 1).to_pylist()
        current = self.lane.progress.current
        whole = self._together(groups)
        self.pending = Pending(whole, len(ts) - behind, behind, current, sample)
        return self._firings(groups.at(NONE), NONE)

    def _late_slices(self, last: Array) -> Array:
        """Which slices are closed, by their last windows."""
        closed = self.lane.closed
        return np.zeros(len(last), bool) if closed is None else last <= closed

    def reach(self, watermark: Any) -> Firings:
        """The firings of the windows that end up to a watermark."""
        self.pending = Pending(self.open, 0, 0, watermark, None)
        return self._fired(self.layout.ends.index(watermark))

    def partials(self) -> SlicePartials:
        """All that is open, to be taken by another engine."""
        held, sample = self.open, self.inside.sample
        keys = [] if self.keys is None else self.keys.arrow(held.ids)
        return SlicePartials(held.last, held.first, held.n, held.born, held.planes, keys, sample)

    def absorb(self, partials: SlicePartials) -> Firings:
        """Take rows that were folded elsewhere, where rows do not move the watermark."""
        groups = SliceGroups(partials.last, partials.first, *self._numbered(partials))
        late = self._late_slices(groups.last)
        behind, whole = int(groups.n[late].sum()), int(groups.n.sum())
        order = np.lexsort((groups.ids, groups.first, groups.last))
        new = self._united(groups.at(order[~late[order]]))
        current = self.lane.progress.current
        taken = Pending(self._together(new), whole - behind, behind, current, partials.sample)
        self.pending = taken
        return self._firings(groups.at(NONE), NONE)

    def _numbered(self, partials: SlicePartials) -> tuple[Array, Array, Array, list[Planes]]:
        """The numbers of keys, the sizes, the numbers of first arrivals, and the states."""
        ids: Array = np.zeros(len(partials.n), np.int64)
        if self.keys is not None:
            ids = self.keys.encode(partials.keys).astype(np.int64)
        return ids, partials.n, self.inside.next_number + partials.born, partials.planes

    def _united(self, groups: SliceGroups) -> SliceGroups:
        """Groups in order, those of one slice and key put together."""
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
        partials = partials.at(np.argsort(-partials.last, kind="stable"))
        ids, n, born, planes = self._numbered(partials)
        saved = [kernel.save(each, n) for kernel, each in zip(self.kernels, planes, strict=True)]
        columns = (born.tolist(), n.tolist(), partials.last.tolist(), partials.first.tolist())
        rows = zip(self._python_keys(ids), *columns, strict=True)
        for i, (key, first_number, size, last, first) in enumerate(rows):
            state = [first_number, size, [each[i] for each in saved]]
            yield one_key(key), last, first, self.layout.store.load(state)

    def closes(self) -> Any:
        """Where the first window with rows ends; None: there are none."""
        if not len(self.open):
            return None
        k, closed = int(self.open.first.min()), self.lane.closed
        k = k if closed is None else max(k, closed + 1)
        return self.layout.axis.point(self.layout.ends, k)

    def _runs(self, ts: Array) -> tuple[Any, Array, Array, Array, int]:
        """The slices of rows in order, which are runs of them; none is late."""
        layout = self.layout
        cuts = self._cuts(ts, layout.starts)
        if self.hops:
            cuts = np.union1d(cuts, self._cuts(ts, layout.ends))
        starts = np.concatenate(([0], cuts))
        heads = ts[starts]
        last = layout.starts.indexes(heads)
        first = last if not self.hops else layout.ends.indexes(heads) + 1
        return None, np.append(starts, len(ts)), last, first, 0

    def _cuts(self, ts: Array, grid: Any) -> Array:
        """Where rows in order pass a point of a grid."""
        low, high = grid.index(ts[0].item()), grid.index(ts[-1].item())
        if high - low > len(ts):  # more points than rows
            found = grid.indexes(ts)
            cuts: Array = np.flatnonzero(found[1:] != found[:-1]) + 1
            return cuts
        edges = grid.points(np.arange(low + 1, high + 1))
        return np.unique(np.searchsorted(ts, edges))

    def _scattered(self, ts: Array, state: Any, current: Any) -> tuple[Array, Array, Array, int]:
        """The last and the first window of rows in any order, which of them are late, how many."""
        layout = self.layout
        last = first = layout.starts.indexes(ts)
        # What is closed after a row is the same for the row as what was before it: it comes from
        # timestamps that are not greater than its own.
        at, closed = state.observe_points(ts, layout.ends)
        if current is not None:
            closed = np.maximum(closed, layout.ends.index(current))
        late = layout.starts.behind(ts, at, closed + 1)
        behind = int(np.count_nonzero(late))
        if behind and not self.inside.drops_quietly:
            raise Decline("late rows that are looked at one by one")
        if self.hops:
            first = layout.ends.indexes(ts) + 1
            if bool((layout.ends.behind(ts, at, closed) & ~late).any()):
                raise Decline("rows that come late for some of their windows")
        return last, first, late, behind

    def _slices(self, last: Array, first: Array, late: Array) -> tuple[Array, Array, Array, Array]:
        """The places of rows by slice, where slices start in them, and their windows."""
        places = np.flatnonzero(~late)
        if self.hops:
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
        """One group for each slice and key of a batch, folded."""
        lengths = np.diff(starts)
        inputs = Inputs(batch)
        order, lo = places, starts[:-1]
        slices, ids = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
        if self.keys is not None:
            codes = self.keys.encode([inputs.arrow(name) for name in self.keys.names])
            codes = codes if places is None else codes[places]
            many = len(self.keys)
            if len(lengths) * many >= SPAN:
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
        born = self.inside.next_number + heads
        return SliceGroups(last[slices], first[slices], ids, hi - lo, born, planes)

    def _together(self, new: SliceGroups) -> SliceGroups:
        """The groups of a batch with those that are open, which go on with them."""
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
        return found if bool((codes[1:] >= codes[:-1]).all()) else found.at(np.argsort(codes))

    def _codes(self, old: SliceGroups, new: SliceGroups) -> tuple[Array, Array]:
        """One number for each slice and key, in their order."""
        last = np.concatenate((old.last, new.last))
        first = np.concatenate((old.first, new.first))
        low, width = int(last.min()), int((last - first).max()) + 1
        slices = (last - low) * width + (width - 1 - (last - first))
        if (int(last.max()) - low + 1) * width >= SPAN:  # far apart: by their places in order
            pairs = np.stack((last, first), axis=1)
            slices = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        codes = (slices << 31) | np.concatenate((old.ids, new.ids))
        return codes[: len(old)], codes[len(old) :]

    # -- firings ----------------------------------------------------------------------------------

    def _fired(self, to: int) -> Firings:
        """The windows up to a number that are not closed yet."""
        assert self.pending is not None
        groups = self.pending.groups
        if not self.hops:
            done = groups.at(np.flatnonzero(groups.last <= to))
            order = np.lexsort((done.born, done.last))
            return self._firings(done.at(order), done.last[order])
        closed = self.lane.closed
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
        """The firings of windows that are made of several slices."""
        if not len(owners):
            return self._firings(groups.at(NONE), NONE)
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
        return self._firings(whole.at(order), whole.last[order])

    def _firings(self, groups: SliceGroups, windows: Array) -> Firings:
        values = [
            kernel.finish(each, groups.n)
            for kernel, each in zip(self.kernels, groups.planes, strict=True)
        ]
        bounds = tuple(
            self._bound(grid.points(windows)) for grid in (self.layout.starts, self.layout.ends)
        )
        made = Firings(self.keys, groups.ids, groups.n, values, np.arange(len(groups)))
        made.bounds = bounds
        return made

    def _bound(self, at: Array) -> pa.Array:
        """Points in time in the form of the timestamps."""
        kind = plain_type(self.schema.field(self.inside.axis.attribute).type)
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
            return found.cast(pa.date32()) if self.inside.whole_days else found
        return pa.array(at.astype(np.float64) if types.is_floating(kind) else at)

    def undo(self) -> None:
        """The batch is not taken after all."""
        self.pending = None
        if self._before is not None:
            self.inside.slack().restore(self._before)

    def finish(self) -> Firings:
        """The firings of all open windows."""
        self.pending = Pending(self.open, 0, 0, None, None)
        to = int(self.open.last.max()) if len(self.open) else 0
        return self._fired(to)

    def commit(self) -> None:
        """The firings have been told of: the batch is taken."""
        pending, self.pending = self.pending, None
        assert pending is not None
        if pending.watermark is None:
            ends = not self.inside.follows or not pending.rows + pending.late
            to = int(self.open.last.max()) if ends and len(self.open) else None
        else:
            to = self.layout.ends.index(pending.watermark)
            self.lane.progress.current = pending.watermark
        groups = pending.groups
        if to is not None:
            self.lane.passed(to)
            groups = groups.at(np.flatnonzero(groups.last > to))
        self.open = groups
        self.inside.count(pending.rows, pending.late, pending.sample)

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions open windows have."""
        return int(self.open.n.sum()), len(np.unique(self.open.ids))


# -- rows -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class OpenRows:
    """Rows of open windows, with what orders them."""

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

    def at(self, places: Array) -> OpenRows:
        """Some of them."""
        arrays = self.last[places], self.ids[places], self.ts[places], self.numbers[places]
        return OpenRows(take_rows(self.batch, places), *arrays)

    def with_more(self, new: OpenRows) -> OpenRows:
        """These and others behind them."""
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
        if self.hops:
            raise Decline("windows that overlap keep rows one by one")
        if self.inside.follows:
            raise Decline("a watermark from outside takes rows one by one")
        if self.window.state.consumer.engine is not None:
            raise Decline("its operator keeps rows in a way of its own")

    def _check_store(self) -> None:
        if self.window.state.summarizer is not None:
            raise Decline("a function that needs rows in order")

    def _read_functions(self) -> None:
        self.kernels, self.attributes = [], []

    def _loaded(self, empty: bool) -> Any:
        if self.lane.slices:
            raise Decline("rows that came one by one are open")
        none = np.empty(0, np.int64)
        return OpenRows(empty_batch(self.schema), none, none, none, none)

    def unload(self) -> None:
        """Give the rows back to the lane."""
        rows: OpenRows = self.open
        store = self.layout.store
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
        self.lane.slices = slices

    def _inserted(self, batch: pa.RecordBatch, ts: Array, state: Any) -> Firings:
        current = self.lane.progress.current
        last, _, late, behind = self._scattered(ts, state, current)
        watermark = state.punctuation
        watermark = watermark if current is None else max(watermark, current)
        ids: Array = np.zeros(len(ts), np.int64)
        if self.keys is not None:
            inputs = Inputs(batch)
            codes = self.keys.encode([inputs.arrow(name) for name in self.keys.names])
            ids = codes.astype(np.int64)
        numbers = self.inside.next_number + np.arange(len(ts))
        new = OpenRows(batch, last, ids, ts, numbers)
        whole = self.open.with_more(new.at(np.flatnonzero(~late)) if behind else new)
        (sample,) = batch.column(self.inside.axis.attribute).slice(0, 1).to_pylist()
        self.pending = Pending(whole, len(ts) - behind, behind, watermark, sample)
        return self._fired(self.layout.ends.index(watermark))

    def _fired(self, to: int) -> Firings:
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
        windows, grids = last[heads], (self.layout.starts, self.layout.ends)
        made.bounds = tuple(self._bound(grid.points(windows)) for grid in grids)
        return made

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions open windows have."""
        return len(self.open.last), len(np.unique(self.open.ids))
