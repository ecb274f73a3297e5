"""Join: two inputs, each with a sliding window, matched tuple by tuple as they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from windowlib.errors import StateVersionError
from windowlib.operators.arguments import Columns
from windowlib.operators.arrow_output import pass_through_schema
from windowlib.operators.base import read_names, unchanged
from windowlib.operators.join.index import (
    BandIndex,
    Measure,
    Read,
    Resident,
    ResidentIndex,
    key_reader,
)
from windowlib.operators.join.join_operator import (
    SUFFIXES,
    How,
    JoinOperator,
    PairFunction,
    Unmatched,
    check_choice,
    check_sides,
    check_within,
    evicts_independently,
    side_window,
    stores,
)
from windowlib.runtime.model import OperatorModel, OutputMode
from windowlib.runtime.running import collect_failures
from windowlib.spec.pattern import Pattern
from windowlib.spec.policies import Attribute, Count, Delta, Time, attribute_text
from windowlib.spec.specification import By, Spec
from windowlib.window.container import Window
from windowlib.window.failure import raise_first

if TYPE_CHECKING:
    from windowlib.operators.join.batches import JoinHandover

NO_RESIDENTS: list[Any] = []
HANDLERS = ("after_insert", "after_evict", "on_partitions_evicted")


def matching_model(ports: Sequence[str], aside: Sequence[str] = ()) -> OperatorModel:
    """The model of a join of two inputs, with outputs for rows that are put aside."""
    modes: list[OutputMode] = ["free" for _ in aside]
    return OperatorModel(
        ports_in=ports,
        ports_out=["matches", *aside],
        windows=[Pattern("sliding", (Count | Delta | Time, Count(1)))],
        punctuation_out=["generating", *modes],
    )


class Join(JoinOperator):
    """Matches each tuple of one input with the recent tuples of the other.

    One arriving tuple, in this order:

    1. It is matched against the other window, oldest to newest: a row for each match.
    2. It enters its own window, which evicts first. A tuple that leaves without ever having
       matched is put out, if its side is outer.
    3. If its window is `Count(0)`, it is not stored: it only probes, and without a match it is
       put out at once, if its side is outer.
    4. If any of this gave a row of the first output, a window punctuation follows there.

    Tuples that time evicts are one such batch per instant. At the end of the input, and when a
    partition is evicted, the tuples that never matched are put out too, so an outer join loses
    none. Finding matches by `on` costs one lookup, whatever the size of the windows.

    | how | rows |
    | --- | --- |
    | "inner" | a row for each match |
    | "left", "right", "outer" | and the rows of that side (of both) that leave without a match |
    | "semi" | left rows, once, at their first match: on arrival, or when a right row comes |
    | "anti" | left rows that leave without a match, or are still there at the end |

    A semi or anti join gives left rows as they are, each as soon as its match is decided. Any other
    gives dicts with the columns of both; columns of a side that has sent no row yet are missing.

    Args:
        left: the window of the left input: `Sliding`, without `every`.
        right: the window of the right input.
        on: the columns that must be equal; null equals nothing, NaN equals NaN. Without it every
            pair is a candidate.
        left_on: the left columns, where they have other names than the right ones.
        right_on: the right columns, in the same order.
        where: a function of a left and a right row; the pair matches if it says so.
        how: see above.
        partition_by: the partition key of both windows. Partitions decide what is evicted, and
            `on` what matches.
        suffixes: appended to names that both sides have, which shows once both have sent a row;
            columns of `on` come out once.
        unmatched: "row": unmatched rows come with nulls for the other side. "port": as they are,
            on an output of their own, `unmatched_left` or `unmatched_right`, without punctuation.
        within: `Delta(a, d)`: only pairs whose values of `a` differ by at most d, found through a
            sorted index. Null and NaN are within no distance.
        select: makes the output row of a left and a right row, one of which is None if unmatched.
        name: what messages and graphs call it.

    >>> from windowlib import Count, Sliding, replay, to
    >>> join = Join(left=Sliding(Count(2)), right=Sliding(Count(1)), on="id", how="left")
    >>> rows = [
    ...     to("left", {"id": "a", "x": 1}),
    ...     to("left", {"id": "b", "x": 2}),
    ...     to("right", {"id": "b", "y": 3}),
    ...     to("left", {"id": "b", "x": 4}),
    ... ]
    >>> for row in replay(join, rows):
    ...     print(row)
    {'id': 'b', 'x': 2, 'y': 3}
    {'id': 'b', 'x': 4, 'y': 3}
    {'id': 'a', 'x': 1, 'y': None}
    """

    model = matching_model(JoinOperator.ports)

    def __init__(
        self,
        *,
        left: Spec | str,
        right: Spec | str,
        on: Columns | None = None,
        left_on: Columns | None = None,
        right_on: Columns | None = None,
        where: PairFunction | None = None,
        how: How = "inner",
        partition_by: By | Sequence[str] | None = None,
        suffixes: Sequence[str] = SUFFIXES,
        unmatched: Unmatched = "row",
        within: Delta | None = None,
        select: PairFunction | None = None,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        check_choice(kind, "how", how, How)
        check_within(kind, within)
        self._set_join(how, (on, left_on, right_on), suffixes, unmatched, select, where)
        self._where, self._within = where, within
        self._outer = [how in ("left", "outer", "anti"), how in ("right", "outer")]
        if aside := self._unmatched_outputs():
            self.model = matching_model(self.ports, aside)
        specs = [
            side_window(kind, port, window, partition_by)
            for port, window in zip(("left", "right"), (left, right), strict=True)
        ]
        check_sides(kind, *specs)
        super().__init__(*specs, name=name)

    def _unmatched_outputs(self) -> list[str]:
        """The outputs of rows without a match, if they have any."""
        sides = zip(self.ports, self._outer, strict=True)
        return [f"unmatched_{port}" for port, outer in sides if outer and self._diverts_unmatched]

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns of the window, of the key, and of the band."""
        yield from super().reads(port)
        for column in self._keys.columns[port]:
            yield column, self._keys.owners[port]
        if self._within is not None:
            yield self._within.attribute, f"within={self._within.shown}"

    def needs(self, port: int) -> tuple[str, ...] | None:
        """Whole rows, except where only the key of the right ones is asked for."""
        asked = self._left_rows_only and port == 1 and self._where is None
        if not asked or not unchanged(self):
            return None
        return read_names(attribute for attribute, _ in self.reads(port))

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """By columns of `on`, if each side is partitioned by them, or evicts by time alone.

        Not if a row without a match has columns that are called as the other side says: use
        `unmatched="port"` or `select=` for those.
        """
        if not unchanged(self):
            return super().splits_by(port)
        if self._names_depend_on_other_side():
            return ()
        pairs = dict.fromkeys(zip(*self._keys.columns, strict=True))
        return tuple(
            str(pair[port]) for pair in pairs if all(map(evicts_independently, self.windows, pair))
        )

    def _names_depend_on_other_side(self) -> bool:
        """Whether a column of a row without a match is called as rows of the other side say."""
        if self._left_rows_only or self._diverts_unmatched or self._select is not None:
            return False
        sides = zip(self._outer, self._suffixes, strict=True)
        return any(outer and suffix for outer, suffix in sides)

    # -- running ----------------------------------------------------------------------------------

    def on_open(self) -> None:
        """Build the indexes."""
        super().on_open()
        self._arriving: Resident | None = None
        self._number = 0  # of the tuple that entered last, on either side
        self._leaving: deque[tuple[int, Any]] = deque()  # unmatched: the side, and the row
        self._measure = None if self._within is None else Measure(self._within)
        self._sides = (self._side(0), self._side(1))
        self._hand_over: JoinHandover | None = None  # made by the first batch
        if (fast_path := self._fast_path()) is not None:
            self.on_tuple = fast_path  # type: ignore[method-assign,assignment]

    def _take(self, batch: Any, port: int, insert: Callable[..., None]) -> Any:
        """Take the rows of an Arrow batch as columns, if it can."""
        if self._hand_over is None:
            from windowlib.operators.join.batches import JoinHandover

            self._hand_over = JoinHandover(self, self._rows_reason())
        return self._hand_over.take(batch, port, insert)

    def _rows_reason(self) -> str:
        """Why batches are always taken row by row; empty if they need not be."""
        kind, windows = type(self), [side.window for side in self._sides]
        ours = [getattr(kind, name) is getattr(Join, name) for name in (*HANDLERS, "on_tuple")]
        if not all(ours) or any(
            name not in HANDLERS for window in windows for name in window.state.handlers
        ):
            return f"{kind.__name__} has handlers of its own"
        for name, value in (("where", self._where), ("select", self._select)):
            if value is not None:
                return f"{name}= reads each row in Python"
        if self._within is not None:
            return "within= has an index of its own"
        if not all(isinstance(column, str) for side in self._keys.columns for column in side):
            return "a key is read from each row in Python"
        timed = [window.spec for window in windows if window.spec.timed]
        return f"{timed[0].evict} runs on the clock" if timed else ""

    def _settle_arrays(self) -> None:
        """Bring windows and indexes up to date: they are going to be used."""
        if self._hand_over is not None:
            self._hand_over.hand_back()

    def _side(self, port: int) -> Side:
        window = self.containers[port]
        assert window is not None
        owner = self._keys.owners[port]
        key = key_reader(self._keys.columns[port], owner)
        index = ResidentIndex(owner) if self._within is None else BandIndex(owner, self._within)
        output = 1 + sum(self._outer[:port]) if self._diverts_unmatched else 0
        kind = QueueSide if QueueSide.fits(self, window) else Side
        return kind(window, key, self._measure, index, output if self._outer[port] else None)

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Match, insert, put out. Whatever may refuse the tuple runs before anything is put out."""
        if self._hand_over is not None and self._hand_over.in_arrays:
            self._hand_over.hand_back()
        mine, other = self._sides[port], self._sides[1 - port]
        pairs = self._joined_rows
        if pairs is not None and (type(tuple_) is not dict or tuple_.keys() != pairs.names[port]):
            pairs.note(tuple_, port)
        resident = mine.resident_of(tuple_)
        candidates = other.index.candidates(resident)
        found = self._matches(tuple_, port, candidates) if candidates else []
        rows = self._rows(tuple_, port, found) if found else []
        if found:
            resident.matched = True
            if self._left_rows_only and port == 0:
                resident.key = None  # no later row looks for it
        self._arriving = resident
        try:
            if isinstance(mine, QueueSide):
                self._enqueue(mine, resident, port)
            elif mine.stores:
                mine.window.insert(tuple_)
            else:
                self._probe(mine, resident, port)
        finally:
            if found and resident.number:  # otherwise it was refused, and has matched nothing
                self._send_results(rows, found, port)
            elif self._leaving:
                self._send_results([])

    def _matches(self, tuple_: Any, port: int, candidates: Iterable[Resident]) -> list[Resident]:
        where = self._where
        found = iter(candidates)
        if where is not None and port == 0:
            found = (r for r in candidates if where(tuple_, r.row))
        elif where is not None:
            found = (r for r in candidates if where(r.row, tuple_))
        # Whether a left row has a match, one match is enough to know.
        return list(islice(found, 1) if self._left_rows_only and port == 0 else found)

    def _rows(self, tuple_: Any, port: int, found: list[Resident]) -> list[Any]:
        if self.how == "anti":
            return []
        if self.how == "semi":
            return [tuple_] if port == 0 else [r.row for r in found]
        make = self._combine
        assert make is not None
        if port == 0:
            return [make(tuple_, r.row) for r in found]
        return [make(r.row, tuple_) for r in found]

    def _fast_path(self) -> Callable[[Any, int], None] | None:
        """`on_tuple` for dicts, where two queues are joined by one column; None for other joins.

        It takes the same steps as the general `on_tuple`, but without calls in between. Rows of
        other forms go to the general one.
        """
        pairs, keys = self._joined_rows, self._keys.columns
        left, right = self._sides
        named = len(keys[0]) == 1 and isinstance(keys[0][0], str) and isinstance(keys[1][0], str)
        if not named or pairs is None or self._where is not None or self._within is not None:
            return None
        if type(self).on_tuple is not Join.on_tuple:
            return None
        if not isinstance(left, QueueSide) or not isinstance(right, QueueSide):
            return None
        general = partial(Join.on_tuple, self)
        firsts = left.index.firsts, right.index.firsts
        ports = [
            (keys[port][0], pairs.names[port], side, firsts[port], firsts[1 - port])
            for port, side in enumerate((left, right))
        ]

        def on_tuple(t: Any, port: int) -> None:
            name, columns, side, mine, others = ports[port]
            hand_over = self._hand_over
            ahead = hand_over is not None and hand_over.in_arrays
            key = None
            if not ahead and type(t) is dict and t.keys() == columns:
                key = t[name]
            try:
                match = others.get(key)
            except TypeError:  # the general way says why
                key = None
            if key is None or key != key or type(key) is tuple:
                general(t, port)
                return
            resident = Resident(t, key)
            found, rows = NO_RESIDENTS, NO_RESIDENTS
            if match is not None:
                found, rows, merged = [], [], pairs.merged
                while match is not None:
                    found.append(match)
                    rows.append(merged(match.row, t) if port else merged(t, match.row))
                    match = match.next
                resident.matched = True
            side.window.insert(t)
            queue = side.queue
            if len(queue) == side.capacity:
                old = queue.popleft()
                newer = old.next
                if old.key is None:
                    pass
                elif newer is None:  # the oldest of all is the first of its key
                    del mine[old.key]
                else:
                    mine[old.key] = newer
                    newer.prev = None if old.prev is newer else old.prev
                if side.outer and not old.matched:
                    self._leaving.append((port, old.row))
            queue.append(resident)
            first = mine.setdefault(key, resident)
            if first is not resident:
                last = first.prev or first
                last.next, resident.prev, first.prev = resident, last, resident
            self._number = resident.number = self._number + 1
            if self._leaving:
                self._send_results(rows, found, port)
            elif found:
                for other in found:
                    other.matched = True
                emit = self._outputs[0]
                for row in rows:
                    emit(row)
                self._puncts[0]()

        return on_tuple

    def _enqueue(self, mine: QueueSide, resident: Resident, port: int) -> None:
        """A row enters a queue, and the oldest one leaves it for that."""
        leaving = mine.take(resident, self._number + 1)
        self._number = resident.number
        if leaving is not None and mine.outer and not leaving.matched:
            self._leaving.append((port, leaving.row))

    def _probe(self, mine: Side, resident: Resident, port: int) -> None:
        self._number = resident.number = self._number + 1
        if mine.outer and not resident.matched:
            self._leaving.append((port, resident.row))

    def after_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """The tuple can be found from now on."""
        resident = self._arriving
        assert resident is not None
        self._number = resident.number = self._number + 1
        self._sides[window is not self._sides[0].window].enter(resident)

    def after_evict(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """The tuple can no longer be found, and is put out if that is its last chance."""
        port = window is not self._sides[0].window
        side = self._sides[port]
        resident = side.leave(tuple_)
        if side.outer and not resident.matched:
            self._leaving.append((port, tuple_))

    def on_partitions_evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        """All tuples of these partitions leave."""
        for key in dict.fromkeys(keys):  # one may have been chosen twice
            for tuple_ in window[key]:
                self.after_evict(window, tuple_, key)

    def on_advance(self) -> None:
        """Put out what time has evicted at this instant, from both windows."""
        if self._leaving:
            self._send_results([])

    def on_finish(self) -> None:
        """Put out the residents that have not matched: left, then right."""
        self._settle_arrays()
        for port, side in enumerate(self._sides):
            for resident in side.residents() if side.outer else ():
                if not resident.matched:
                    resident.matched = True  # it is put out once, should time still evict it
                    self._leaving.append((port, resident.row))
        self._send_results([])

    def _send_results(self, rows: list[Any], found: Sequence[Resident] = (), port: int = 0) -> None:
        """Put out matches, then rows that left unmatched, then a punctuation."""
        for resident in found:
            resident.matched = True
            if self._left_rows_only and port == 1:
                self._sides[0].hide(resident)
        emit = self._outputs[0]
        for row in rows:
            emit(row)
        sent = bool(rows)
        failures: list[Exception] = []
        while self._leaving:
            port, row = self._leaving.popleft()
            output = self._sides[port].output
            with collect_failures(failures):  # a row that select= refuses does not cost the others
                self._outputs[output](self._unmatched(row, port))
                sent = sent or not output
        if sent:
            self._puncts[0]()
        raise_first(failures)

    def _unmatched(self, row: Any, port: int) -> Any:
        if self._diverts_unmatched or self._combine is None:
            return row
        return self._combine(None, row) if port else self._combine(row, None)

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        sides = [side for side, outer in zip(columns, self._outer, strict=True) if outer]
        return pass_through_schema(sides[port - 1])

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The state besides the windows: arrival order over all partitions, and past matches."""
        self._settle_arrays()
        return {
            "number": self._number,
            "residents": [side.numbers() for side in self._sides],
            "leaving": list(self._leaving),
            "columns": None if self._joined_rows is None else self._joined_rows.columns,
            "samples": None if self._measure is None else self._measure.samples,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Build the indexes anew, from the windows and what `snapshot` gave."""
        self._settle_arrays()
        self._number, self._leaving = state["number"], deque(state["leaving"])
        if self._joined_rows is not None:
            self._joined_rows.columns = state["columns"]
            self._joined_rows.expect(self._expected)
        if self._measure is not None:
            self._measure.samples = state["samples"]
        for side, numbers in zip(self._sides, state["residents"], strict=True):
            side.restore_residents(numbers, hide=self._left_rows_only and side is self._sides[0])

    def regroup(
        self, states: Sequence[Mapping[str, Any]], mine: Callable[[int, Any], bool]
    ) -> Any:  # fmt: skip
        """The residents of some keys; those of one key stay in their order."""
        own = [state["state"] for state in states]
        columns = [each["columns"] for each in own if each["columns"] is not None]
        samples = [each["samples"] for each in own if each["samples"] is not None]
        # One place may know the columns of one input alone, and another those of the other.
        return {
            "number": max(each["number"] for each in own),
            "residents": [
                [each for state in states for each in _residents_of(state, port, mine)]
                for port in (0, 1)
            ],
            "leaving": [],  # they have left when a batch is over
            "columns": [list(dict.fromkeys(chain(*side))) for side in zip(*columns, strict=True)]
            or None,
            "samples": list(chain(*samples)) if samples else None,
        }

    # -- in words ---------------------------------------------------------------------------------

    def notes(self) -> Iterator[tuple[str, str]]:
        """How matches are found, what each side keeps, and when unmatched rows come out."""
        yield "index", self._index_text()
        never = self._rows_reason()
        way = f"row by row: {never}" if never else "columns, matched by one look-up"
        yield "batches", way
        if self._where is not None:
            yield "where", f"{attribute_text(self._where)}, asked for each candidate"
        for port, side in zip(self.ports, self._sides, strict=True):
            text = "stored, found by key" if self._keys.columns[0] else "stored"
            yield port, text if side.stores else "only probes, nothing is stored"
            if side.outer:
                yield "unmatched", self._unmatched_text(port, side)

    def _index_text(self) -> str:
        left, right = self._keys.owners
        keys = left if left == right else f"{left}, {right}"
        text = f"hash of {keys}" if keys else "none: every pair is a candidate"
        if self._within is None:
            return text
        band = f"sorted by {attribute_text(self._within.attribute)!r}"
        return f"{text}, then {band}" if keys else band

    def _unmatched_text(self, port: str, side: Side) -> str:
        when = "when they leave their window, or at the end" if side.stores else "at once"
        where = f"on unmatched_{port}" if self._diverts_unmatched else "with nulls"
        return f"{port} rows come out {when}" + ("" if self._left_rows_only else f", {where}")


class Side:
    """One input of a join: its window, and the resident of each row, by the row's identity."""

    def __init__(
        self,
        window: Window[Any, Any],
        key: Read,
        measure: Measure | None,
        index: ResidentIndex,
        output: int | None,
    ) -> None:
        self.window = window
        self.index = index
        self.stores = stores(window.spec)
        self.outer = output is not None
        self.output = output or 0  # where its unmatched rows go
        self._key, self._measure = key, measure
        self._residents: dict[int, Resident] = {}
        self._twins: dict[int, deque[Resident]] = {}  # of objects that were inserted again

    def __len__(self) -> int:
        return len(self._residents) + sum(map(len, self._twins.values()))

    def resident_of(self, row: Any) -> Resident:
        """A row that may become a resident."""
        resident = Resident(row, self._key(row))
        if self._measure is not None:
            resident.value = self._measure(row)
            if resident.value is None:
                resident.key = None  # what has no value is within no band
        return resident

    def enter(self, resident: Resident) -> None:
        """Add a resident whose row has entered the window."""
        place = id(resident.row)
        if self._residents.setdefault(place, resident) is not resident:
            self._twins.setdefault(place, deque()).append(resident)
        if resident.key is not None:
            self.index.add(resident)

    def leave(self, row: Any) -> Resident:
        """Remove the resident of a row that has left; the older, if an object is there twice."""
        place = id(row)
        resident = self._residents.pop(place)
        if place in self._twins:
            self._residents[place] = self._twins[place].popleft()
            if not self._twins[place]:
                del self._twins[place]
        if resident.key is not None:
            self.index.remove(resident)
        return resident

    def _clear(self) -> None:
        for held in (self._residents, self._twins, self.index):
            held.clear()

    def hide(self, resident: Resident) -> None:
        """Keep the row, but hide it from later rows."""
        self.index.remove(resident)
        resident.key = None

    def rows(self) -> Iterator[Any]:
        """All rows: partitions in storage order, oldest first."""
        for key in self.window.keys():  # noqa: SIM118 - it is no dict
            yield from self.window[key]

    def residents(self) -> Iterator[Resident]:
        """The rows of the window as residents."""
        met: dict[int, Iterator[Resident]] = {}
        for row in self.rows():
            place = id(row)
            if place not in self._twins:
                yield self._residents[place]
                continue
            if place not in met:
                met[place] = iter((self._residents[place], *self._twins[place]))
            yield next(met[place])

    def numbers(self) -> list[tuple[int, bool]]:
        """The saved state of each resident: its number, and whether it has matched."""
        return [(resident.number, resident.matched) for resident in self.residents()]

    def restore_residents(self, numbers: Sequence[tuple[int, bool]], *, hide: bool) -> None:
        """Make residents of the rows of a restored window; `hide` those that have matched."""
        rows = list(self.rows())
        if len(rows) != len(numbers):
            msg = (
                f"restore(state): the snapshot is damaged ({len(rows)} rows, {len(numbers)} "
                f"residents). Take it from snapshot() whole."
            )
            raise StateVersionError(msg)
        back = [self.resident_of(row) for row in rows]
        for resident, (number, matched) in zip(back, numbers, strict=True):
            resident.number, resident.matched = number, matched
            if matched and hide:
                resident.key = None
        self._clear()
        for resident in sorted(back, key=attrgetter("number")):
            self.enter(resident)


class QueueSide(Side):
    """A side whose window is one queue: the last n rows, of which the oldest leaves first."""

    def __init__(self, window: Window[Any, Any], *args: Any) -> None:
        super().__init__(window, *args)
        window.state.handlers = {}
        self.capacity = window.spec.evict.tuples
        self.queue: deque[Resident] = deque()

    @staticmethod
    def fits(join: Join, window: Window[Any, Any]) -> bool:
        """Whether a join leaves a window alone that evicts the oldest of n rows, and no other."""
        spec = window.spec
        ours = [getattr(type(join), name) is getattr(Join, name) for name in HANDLERS]
        told = set(window.state.handlers) <= set(HANDLERS)
        alone = spec.by is None and not spec.timed and spec.evict.delta is None
        return all(ours) and told and alone and stores(spec)

    def __len__(self) -> int:
        return len(self.queue)

    def take(self, resident: Resident, number: int) -> Resident | None:
        """A row enters the window; the resident that leaves for it."""
        self.window.insert(resident.row)
        resident.number = number
        leaving = None
        if len(self.queue) == self.capacity:
            leaving = self.queue.popleft()
            if leaving.key is not None:
                self.index.remove(leaving)
        self.enter(resident)
        return leaving

    def enter(self, resident: Resident) -> None:
        """Add a resident whose row has entered the window."""
        self.queue.append(resident)
        if resident.key is not None:
            self.index.add(resident)

    def residents(self) -> Iterator[Resident]:
        """All resident rows, oldest first."""
        return iter(self.queue)

    def _clear(self) -> None:
        self.queue.clear()
        self.index.clear()


def _residents_of(
    state: Mapping[str, Any], port: int, mine: Callable[[int, Any], bool]
) -> Iterator[Any]:  # fmt: skip
    """The residents of some keys: those of a partition stand together, in its order."""
    numbers = iter(state["state"]["residents"][port])
    for part in state["windows"][port]["parts"]:
        found = list(islice(numbers, len(part["data"])))
        if mine(port, part["key"]):
            yield from found
