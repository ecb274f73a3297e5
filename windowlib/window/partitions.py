"""Partition eviction: which partitions are forgotten, and when (paper, section 3.5).

Exists only for windows with a partition eviction policy. Keeps the partitions from least to most
recently used, where use means the insertion of a tuple.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop
from typing import TYPE_CHECKING, Any, NoReturn

from windowlib.errors import PartitionError
from windowlib.spec.policies import PartitionAge, PartitionCount, PartitionEviction, TupleCount
from windowlib.window.subwindow import Subwindow

if TYPE_CHECKING:
    from windowlib.window.container import WindowState


class Partitions:
    """The least-recently-used order of a window's partitions, and their eviction."""

    def __init__(self, state: WindowState, policy: PartitionEviction) -> None:
        self.state = state
        # Asked for with every eviction, so looked up once.
        self._subwindows, self._size, self._drop = state.subwindows, state.size, state.drop
        self.policy = policy
        self.lru: OrderedDict[Any, Subwindow] = OrderedDict()
        self.by_age = isinstance(policy, PartitionAge)
        self.alone = False  # whether the age of a partition is over by itself, not with others
        self.removed = 0  # partitions evicted so far
        self.total = 0  # tuples over all partitions; right only for a tuple count policy
        self.needed, self._pick = self._rule(policy)

    def _rule(
        self, policy: PartitionEviction
    ) -> tuple[Callable[[], bool], Callable[[], list[Subwindow]]]:
        if isinstance(policy, PartitionCount):
            return self._too_many_partitions, self._surplus_partitions
        if isinstance(policy, TupleCount):
            return self._too_many_tuples, self._first_with_tuples
        return self._too_old, self._old_ones

    def touch(self, s: Subwindow) -> None:
        """A tuple entered `s`: it is now the most recently used."""
        self.total += 1
        s.stamp = self.state.now
        self.lru[s.key] = s
        self.lru.move_to_end(s.key)

    def touch_interrupted(self, s: Subwindow) -> None:
        """An insert into `s` was interrupted, before or while it was touched."""
        s.stamp = self.state.now
        self.lru[s.key] = s
        self.lru.move_to_end(s.key)
        self.total = sum(map(self._size, self.lru.values()))

    def forget(self, s: Subwindow) -> None:
        """`s` left the window, by whatever way."""
        if self.lru.pop(s.key, None) is not None:
            self.total -= self._size(s)

    def refill(self, used: Iterable[Subwindow]) -> None:
        """Start from these partitions, the least recently used first."""
        self.lru.clear()
        self.lru.update((s.key, s) for s in used)
        self.total = sum(map(self._size, self.lru.values()))

    def evict(self) -> None:
        """Evict if needed: one round as selected, and one more with LRU if that was not enough."""
        if not self.needed():
            return
        chosen = self._selected()
        if chosen is None:
            return
        self._remove(chosen)
        if self.needed():
            self._remove(self._pick())

    def _selected(self) -> list[Subwindow] | None:
        select = "lru" if isinstance(self.policy, PartitionAge) else self.policy.select
        if select == "operator":
            handler = self.state.handlers.get("select_partitions")
            return None if handler is None else self._marked(handler)
        if select == "lru":
            return self._pick()
        if select == "oldest":
            return self._enough(self._subwindows.values())
        return self._enough(self._least_used())

    def _least_used(self) -> Iterator[Subwindow]:
        """Partitions by insertions since creation; ties go to the least recently used."""
        arrived = self.state.arrived
        heap = [(arrived(s), i, s) for i, s in enumerate(self.lru.values())]
        heapify(heap)
        while heap:
            yield heappop(heap)[2]

    def _marked(self, handler: Callable[..., Iterable[Any]]) -> list[Subwindow]:
        marked = handler(self.state.window, tuple(self.lru))
        if not isinstance(marked, Iterable) or isinstance(marked, str):
            self._refuse(marked)
        chosen = []
        for key in marked:
            try:
                chosen.append(self.lru[key])
            except (KeyError, TypeError):
                self._refuse(key)
        return chosen

    def _refuse(self, marked: object) -> NoReturn:
        msg = (
            f"select_partitions returned {marked!r}, which is no partition of this window. "
            f"Return a list of some of the keys it was given."
        )
        raise PartitionError(msg) from None

    def _enough(self, ranked: Iterable[Subwindow]) -> list[Subwindow]:
        """The shortest run of `ranked` whose removal ends the need."""
        assert not isinstance(self.policy, PartitionAge)
        by_tuples = isinstance(self.policy, TupleCount)
        over = (self.total if by_tuples else len(self._subwindows)) - self.policy.size
        chosen = []
        for s in ranked:
            if over <= 0:
                break
            chosen.append(s)
            over -= self._size(s) if by_tuples else 1
        return chosen

    def _remove(self, chosen: list[Subwindow]) -> None:
        if not chosen:
            return
        try:
            if handler := self.state.handlers.get("on_partitions_evicted"):
                handler(self.state.window, tuple(s.key for s in chosen))
        finally:
            for s in chosen:
                if s.alive:  # a partition may be marked twice
                    self.removed += 1
                    self._drop(s)

    def _too_many_partitions(self) -> bool:
        assert isinstance(self.policy, PartitionCount)
        return len(self._subwindows) > self.policy.size

    def _surplus_partitions(self) -> list[Subwindow]:
        return self._enough(self.lru.values())

    def _too_many_tuples(self) -> bool:
        assert isinstance(self.policy, TupleCount)
        return self.total > self.policy.size

    def _first_with_tuples(self) -> list[Subwindow]:
        chosen = []
        for s in self.lru.values():
            chosen.append(s)
            if self._size(s):
                break
        return chosen

    def _too_old(self) -> bool:
        assert isinstance(self.policy, PartitionAge)
        head = next(iter(self.lru.values()), None)
        return head is not None and head.stamp + self.policy.micros < self.state.now

    def _old_ones(self) -> list[Subwindow]:
        assert isinstance(self.policy, PartitionAge)
        limit = self.state.now - self.policy.micros
        chosen = []
        for s in self.lru.values():
            if s.stamp > limit or (self.alone and s.stamp == limit):
                break
            chosen.append(s)
        return chosen

    def ages_at(self) -> int | None:
        """When the next partition has been idle for longer than the age."""
        assert isinstance(self.policy, PartitionAge)
        head = next(iter(self.lru.values()), None)
        return None if head is None else int(head.stamp) + self.policy.micros + 1
