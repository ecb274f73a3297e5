"""Sliding windows whose operator decides what they hold.

Partitions, their eviction, the clock and snapshots are those of `SlidingWindow`. A subclass defines
how a partition changes with a tuple, and what happens to the parts that expire.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from windowlib.attributes import one_key
from windowlib.spec.policies import Delta
from windowlib.window.engine.rules import check_delta, check_same_kind, clearer_error, reject_key
from windowlib.window.failure import add_note, collect_handler_failures
from windowlib.window.sliding import SlidingWindow
from windowlib.window.subwindow import NO_KEY, Subwindow, Tuples

Part = tuple[Any, int, Any]
"""Something that a partition holds, and that expires as a whole: mark, number, and what it is.

The mark says when it expires: the delta attribute of its tuple, or the time of its arrival. No
two parts share a number, so that parts compare by mark, then by arrival.
"""

SPARE = 64


class PartitionStore:
    """The content of one partition; iterating gives plain data that `extend` takes back."""

    __slots__ = ("by_mark", "live")

    def __init__(self) -> None:
        # For delta: a heap, because attributes come in any order and the smallest is the first to
        # be too far away; and the numbers of the parts in it that have not left by another way.
        self.by_mark: list[Part] = []
        self.live: set[int] = set()

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def parts(self) -> Iterable[Part]:
        """All rows, in the order of arrival."""
        raise NotImplementedError

    def rows(self) -> list[Any]:
        """The tuples in it, in the order of arrival."""
        raise NotImplementedError

    def watch(self, part: Part) -> None:
        """Add a part that delta may expire."""
        if len(self.by_mark) > 2 * len(self.live) + SPARE:  # mostly parts that have left
            self.by_mark = [each for each in self.by_mark if each[1] in self.live]
            heapify(self.by_mark)
        heappush(self.by_mark, part)
        self.live.add(part[1])

    def farthest(self) -> Part | None:
        """The part with the smallest mark."""
        while self.by_mark and self.by_mark[0][1] not in self.live:
            heappop(self.by_mark)
        return self.by_mark[0] if self.by_mark else None


class StoreWindow(SlidingWindow[Any, Any]):
    """A sliding window that holds a `PartitionStore` per partition.

    Insert, for a tuple x: (1) `_read` x, which may refuse it; (2) partition age; (3) `_store` it,
    which evicts what is too far away from x or too much; (4) partition eviction.
    """

    holds_tuples = False
    only_handlers = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._numbers = count()
        # What time will expire, over all partitions, the oldest first.
        self._ages: OrderedDict[int, tuple[Part, Subwindow]] = OrderedDict()
        # Whether parts are known by anything else than the content of their partition.
        self._indexed = self._most is None or self._eviction is not None
        self._engine = "its own"  # type: ignore[assignment]  # for explain

    # -- what a subclass says ---------------------------------------------------------------------

    def _content(self) -> PartitionStore:
        """The content of a new partition."""
        raise NotImplementedError

    def _read(self, tuple_: Any) -> Any:
        """The key or the place of a tuple; raises for an invalid one before anything changes."""
        raise NotImplementedError

    def _store(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        """Take a tuple into a partition, given what `_read` found."""
        raise NotImplementedError

    def _expire_part(self, s: Subwindow, part: Part) -> None:
        """Remove an expired part, and with it all that leave before it."""
        raise NotImplementedError

    # -- input ------------------------------------------------------------------------------------

    def _specialised(self, sample: Any) -> dict[str, Callable[..., None]]:
        return {"insert": self._insert_one, "insert_many": self._insert_all}

    def _insert_one(self, tuple_: Any, /, key: Any = NO_KEY) -> None:
        if key is not NO_KEY or self._lock is not None:
            self._insert_all((tuple_,), None if key is NO_KEY else (key,))
            return
        try:
            self._take(tuple_)
        except BaseException as error:
            self._failed_at(tuple_, error)
            raise

    def _insert_all(self, tuples: Iterable[Any], keys: Iterable[Any] | None = None) -> None:
        if keys is not None:
            reject_key(self.state, "insert(key=...)")
        take = self._take
        self._refuse_broken()
        with self.locked():
            for tuple_ in tuples:
                try:
                    take(tuple_)
                except BaseException as error:
                    self._failed_at(tuple_, error)
                    raise

    def _failed_at(self, tuple_: Any, error: BaseException) -> None:
        """Name the tuple in its error; an interrupt leaves the window half changed."""
        if isinstance(error, Exception):
            add_note(self, error, f"tuple {tuple_!r}")
        self._stopped(error, "taking a tuple")

    def _take(self, tuple_: Any) -> None:
        what = self._read(tuple_)
        key = None if self._key_of is None else self._key(tuple_)
        mark = self._now if self._delta is None else self._value(self._delta, tuple_, key)
        if self._eviction is not None:
            self._age()
        s = self._subs.get(key)
        if s is None:
            s = self._new(key)
        try:
            self._store(s, what, mark, tuple_)
        finally:
            if not len(s.data):  # what left before the tuple failed, and it was not taken
                self._drop(s)
        s.taken += 1
        if self._delta is not None:
            s.newest = mark
        if self._eviction is not None and not self._eviction.by_age:
            self._eviction.evict()

    def _key(self, tuple_: Any) -> Any:
        assert self._key_of is not None
        key = self._key_of(tuple_)
        try:
            hash(key)
        except TypeError as error:
            raise clearer_error(self.state, error, tuple_, key) or error from error
        return key

    def _value(self, policy: Delta, tuple_: Any, key: Any) -> Any:
        value = self._getters[policy](tuple_)
        s = self._find(key)
        known = type(value) is int and s is not None and type(s.newest) is int
        if not known:  # whole numbers have nothing to check
            check_delta(policy, value, tuple_)
            check_same_kind(self.state, policy, value, s)
        return value

    # -- parts: every addition and removal is recorded here ---------------------------------------

    def _index_part(self, s: Subwindow, part: Part) -> None:
        if self._delta is not None:
            s.data.watch(part)
        elif self._most is None:
            self._ages[part[1]] = part, s
        if self._eviction is not None:
            self._eviction.touch(s)

    def _unindex_part(self, s: Subwindow, number: int) -> None:
        if self._delta is not None:
            s.data.live.remove(number)
        elif self._most is None:
            del self._ages[number]
        if self._eviction is not None:
            self._eviction.total -= 1

    def _next_expired(self, s: Subwindow, mark: Any) -> Part | None:
        """The part whose delta attribute is farthest from `mark`, if that is too far."""
        assert self._delta is not None
        part: Part | None = s.data.farthest()
        return part if part is not None and self._delta.exceeds(mark, part[0]) else None

    # -- time -------------------------------------------------------------------------------------

    def _use_handlers(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        super()._use_handlers(handlers)
        self._evicts_unseen = False  # a subclass may send what leaves

    def _expiry(self) -> int | None:
        for part, _ in self._ages.values():
            assert self._period is not None
            return int(part[0]) + self._period + 1
        return None

    def _expire(self, failures: list[Exception]) -> None:
        """Remove what came at the oldest instant, partition by partition."""
        oldest = next(iter(self._ages.values()))[0][0]
        leaving = []
        for part, s in self._ages.values():
            if part[0] > oldest:
                break
            leaving.append((s.born, part[1], part, s))
        for _, number, part, s in sorted(leaving):
            # A failure on the way leaves the part here, and the next turn goes on with it.
            with collect_handler_failures(self, failures):
                if number in self._ages:
                    self._expire_part(s, part)
            if s.alive and not len(s.data):
                self._drop(s)

    # -- partitions and state ---------------------------------------------------------------------

    def _fields(self) -> tuple[str, ...]:
        kept: tuple[str, ...] = ("data",)
        kept += ("newest",) if self._delta is not None else ()
        return kept + (("stamp",) if self._eviction is not None else ())

    def _make(self, key: Any) -> Subwindow:
        s = self._sub.made(key)
        s.data = self._content()
        return s

    def _drop(self, s: Subwindow) -> None:
        if self._ages:
            for _, number, _ in s.data.parts():
                self._ages.pop(number, None)
        super()._drop(s)

    def __getitem__(self, key: Any) -> Tuples[Any]:
        """The tuples that a partition holds, in the order of arrival."""
        s = self._find(key)
        return Tuples(() if s is None else s.data.rows())

    def _storage_replaced(self) -> None:
        self._ages.clear()
        if self._period is not None:
            parts = [(part, s) for s in self._subs.values() for part in s.data.parts()]
            parts.sort(key=lambda entry: entry[0][0])
            self._ages.update((part[1], (part, s)) for part, s in parts)

    def _check(self) -> None:
        births = [s.born for s in self._subs.values()]
        assert births == sorted(births), "storage order is creation order"
        held = [(s, list(s.data.parts())) for s in self._subs.values()]
        for s, parts in held:
            assert s.alive, s.key
            assert 0 < len(parts) == len(s.data), s.key
            assert self._most is None or len(parts) <= self._most, s.key
            numbers = {number for _, number, _ in parts}
            assert s.data.live == (numbers if self._delta else set()), s.key
            assert numbers <= {number for _, number, _ in s.data.by_mark} or not self._delta, s.key
            assert len(s.data.by_mark) <= 2 * len(parts) + 2 * SPARE, s.key
        if self._period is not None:
            assert {number for _, parts in held for _, number, _ in parts} == set(self._ages)
            assert all(self._now - p[0] <= self._period for p, _ in self._ages.values())
        if self._eviction is not None:
            assert set(self._eviction.lru) == set(self._subs)
            assert self._eviction.total == sum(len(parts) for _, parts in held)


# -- remembered keys ------------------------------------------------------------------------------


Emit = Callable[[Any], None]


class KeyStore(PartitionStore):
    """The keys of one partition, in the order they will be forgotten if marks go up."""

    __slots__ = ("_window", "entries")

    def __init__(self, window: KeyWindow) -> None:
        super().__init__()
        self._window = window
        # By key: the number of the arrival, the mark, and the tuple that is held back, if any.
        self.entries: OrderedDict[Hashable, tuple[int, Any, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Any]:
        return ([key, mark, row] for key, (_, mark, row) in self.entries.items())

    def extend(self, saved: Iterable[Any]) -> None:
        """Take back what iterating gave."""
        for written, mark, row in saved:
            key, number = _restored_key(written), self._window.number()
            self.entries[key] = number, mark, row
            if self._window.spec.evict.delta is not None:
                self.watch((mark, number, key))

    def parts(self) -> list[Part]:
        """All rows, in the order of arrival."""
        return [(mark, number, key) for key, (number, mark, _) in self.entries.items()]

    def oldest(self) -> Part:
        """The oldest entry."""
        key, (number, mark, _) = next(iter(self.entries.items()))
        return mark, number, key

    def rows(self) -> list[Any]:
        """The tuples that are held back, in the order of arrival."""
        return [row for _, _, row in self.entries.values()]


def _restored_key(key: Any) -> Hashable:
    """A key from a snapshot, in which every NaN is the same object again; a whole row is a set."""
    found: Hashable = frozenset(map(one_key, key)) if type(key) is frozenset else one_key(key)
    return found


class KeyWindow(StoreWindow):
    """Tells tuples whose key is remembered from others; one entry per key, O(1) per tuple.

    Delta attributes are kept in a heap, which makes that O(log n).

    Args:
        args: as for `SlidingWindow`.
        key: reads what makes tuples equal.
        hold: whether a tuple is held back until its key is forgotten, or goes on at once.
        renew: whether a repeated key is remembered anew.
        emit: takes the tuples that go on.
        emit_duplicate: takes the others.
        opts: as for `SlidingWindow`.
    """

    def __init__(
        self,
        *args: Any,
        key: Callable[[Any], Hashable],
        hold: bool,
        renew: bool,
        emit: Emit,
        emit_duplicate: Emit,
        **opts: Any,
    ) -> None:
        super().__init__(*args, **opts)
        self._holds, self._renews = hold, renew
        self._emit, self._emit_duplicate = emit, emit_duplicate
        self._read = key  # type: ignore[method-assign,assignment]

    def _content(self) -> KeyStore:
        return KeyStore(self)

    def number(self) -> int:
        """The next number of an arrival."""
        return next(self._numbers)

    def _store(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        if self._delta is not None:
            while (part := self._next_expired(s, mark)) is not None:
                self._expire_part(s, part)
        known = s.data.entries.get(what)
        if known is not None:
            self._repeat(s, what, mark, tuple_, known)
            return
        if self._most is not None and len(s.data) == self._most:
            self._expire_part(s, s.data.oldest())
        self._remember(s, what, mark, tuple_)
        if not self._holds:
            self._emit(tuple_)

    def _remember(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        number = self.number()
        s.data.entries[what] = number, mark, tuple_ if self._holds else None
        if self._indexed:
            self._index_part(s, (mark, number, what))

    def _repeat(self, s: Subwindow, what: Any, mark: Any, tuple_: Any, known: Any) -> None:
        number, at, before = known
        if self._renews:
            del s.data.entries[what]
            if self._indexed:
                self._unindex_part(s, number)
            # A late tuple does not make its key expire earlier.
            self._remember(s, what, at if self._most is None and at > mark else mark, tuple_)
        elif self._holds:
            s.data.entries[what] = number, at, tuple_
        if self._eviction is not None and not self._renews:
            self._eviction.touch(s)
            self._eviction.total -= 1  # it was used, and has not grown
        self._emit_duplicate(before if self._holds else tuple_)

    def _expire_part(self, s: Subwindow, part: Part) -> None:
        number, _, row = s.data.entries.pop(part[2])
        if self._indexed:
            self._unindex_part(s, number)
        if self._holds:
            self._emit(row)

    def drain(self) -> None:
        """Forget everything; what is held back goes on, partition by partition."""
        with self.locked():
            for s in list(self._subs.values()):
                for part in s.data.parts():
                    self._expire_part(s, part)
                self._drop(s)

    def _keeps(self) -> str:
        return "keys and the tuples held back" if self._holds else "keys"
