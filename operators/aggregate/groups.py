"""Groups inside a window: one summary per group of every subwindow.

A partition decides when a window is processed; a group, how one processing is split into rows.
Groups come in the order of their first tuple in the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from windowlib.attributes import key_getter, one_key
from windowlib.operators.functions.value_order import hashable
from windowlib.summaries.incremental import Incremental
from windowlib.summaries.summarizers import FoldSummary, FunctionCall, Plan
from windowlib.window.subwindow import Subwindow


class GroupValues(NamedTuple):
    """One group of a window: its key, how many tuples it has, and the values."""

    key: Any
    n: int
    values: list[Any]


class GroupedPlan(Plan):
    """A plan whose summaries are kept once for each group; a value is a list of `GroupValues`."""

    def __init__(self, calls: Mapping[str, FunctionCall], group_by: Any, shown: str) -> None:
        super().__init__(calls, short=False, named=False)
        self.each = Plan(calls, short=False, named=False)
        self.group_by = group_by
        self._group_of = key_getter(group_by, shown)
        self.shown = shown

    def group_of(self, row: Any) -> Any:
        """The group of a row."""
        return hashable(self.shown, self._group_of(row))

    def __call__(self) -> FoldSummary:
        """A new, empty summary."""
        return GroupedFoldSummary(self)

    @property
    def slots(self) -> bool:
        """Slots hold one row of state, not one per group."""
        return False

    def recompute(self, sample: Any) -> None:
        """None: there is a value for each group."""

    def incremental(self) -> Any:
        """A new summary of a sliding subwindow."""
        return GroupedIncremental(self)

    def __repr__(self) -> str:
        return f"{super().__repr__()}, for each {self.shown}"


class GroupedFoldSummary(FoldSummary):
    """The summaries of one subwindow, by group, tuple by tuple."""

    def __init__(self, plan: GroupedPlan) -> None:
        super().__init__(plan)
        self.grouped = plan
        self.groups: dict[Any, FoldSummary] = {}

    def insert(self, tuple_: Any) -> None:
        """Fold a tuple into the summary of its group."""
        group = self.grouped.group_of(tuple_)
        ready = self.groups.get(group) or self.grouped.each()
        ready.insert(tuple_)
        self.groups[group] = ready  # not before: the tuple may be refused

    def value(self) -> list[GroupValues]:
        """The groups with their values."""
        return [GroupValues(key, ready.n, ready.values()) for key, ready in self.groups.items()]

    def snapshot(self) -> Any:
        """Pairs of group and state."""
        return [[group, ready.snapshot()] for group, ready in self.groups.items()]

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self.groups = {}
        for group, saved in state:
            ready = self.groups[one_key(group)] = self.grouped.each()
            ready.restore(saved)


class _Group:
    """The tuples of one group, as much like a subwindow as `Incremental` needs."""

    __slots__ = ("born", "data", "places", "rough", "summary", "taken")

    def __init__(self, plan: Plan) -> None:
        self.data: deque[Any] = deque()
        self.places: deque[int] = deque()
        self.taken = self.born = 0
        self.rough = False
        self.summary = Incremental(plan)


class GroupedIncremental:
    """The groups of one sliding subwindow, brought up to date when they are read."""

    def __init__(self, plan: GroupedPlan) -> None:
        self.plan = plan
        self.born = -1
        self.lo = self.hi = 0
        self.groups: dict[Any, _Group] = {}
        self.order: deque[Any] = deque()

    def sync(self, s: Subwindow) -> None:
        """Sort what is new into groups, and take from them what has left."""
        hi, size = s.taken, len(s.data)
        new, born = hi - self.hi, self.born
        self.born = -1  # if a value is refused below, the next call rebuilds the groups
        if s.born != born or new * 2 >= size or s.rough:
            self.groups, self.order = {}, deque()
            self._add(s.data, hi - size)
        else:
            self._leave(hi - size - self.lo)
            self._add([s.data[-i] for i in range(new, 0, -1)], self.hi)
        self.born, self.lo, self.hi = s.born, hi - size, hi

    def _add(self, tuples: Any, first: int) -> None:
        for place, tuple_ in enumerate(tuples, first):
            key = self.plan.group_of(tuple_)
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = _Group(self.plan.each)
            group.data.append(tuple_)
            group.places.append(place)
            group.taken += 1
            self.order.append(key)

    def _leave(self, count: int) -> None:
        for _ in range(count):
            key = self.order.popleft()
            group = self.groups[key]
            group.data.popleft()
            group.places.popleft()
            if not group.data:
                del self.groups[key]

    def value(self) -> list[GroupValues]:
        """The groups with their values, in order of the oldest tuple that is still there."""
        found = []
        for key, group in sorted(self.groups.items(), key=lambda entry: entry[1].places[0]):
            group.summary.sync(group)  # type: ignore[arg-type]  # all that it needs of a subwindow
            found.append(GroupValues(key, len(group.data), group.summary.values()))
        return found
