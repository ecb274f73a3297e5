"""Nested loops: what a join must put out, computed in the slowest way one can think of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from windowlib import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Sliding,
    Time,
    TupleCount,
    advance,
    replay,
    restart,
    to,
)
from windowlib.operators import Join

MARK = "punct"
Step = tuple[str, Any]
"""("left", row), ("right", row), ("advance", seconds) or ("restart", None)."""
Output = list[tuple[str, Any]]


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def same(a: Any, b: Any) -> bool:
    """Equality as in SQL, with NaN as in Spark."""
    if a is None or b is None:
        return False
    return (is_nan(a) and is_nan(b)) or a == b


@dataclass
class Item:
    """A row that has come, with its place in the order of arrival and its time."""

    row: Any
    number: int
    time: float
    matched: bool = False


@dataclass
class Side:
    """A sliding window, by its definition; every method says who leaves, in order."""

    spec: Sliding
    parts: dict[Any, list[Item]] = field(default_factory=dict)  # in storage order

    def key(self, row: Any) -> Any:
        if self.spec.by is None:
            return "all"
        value = row[self.spec.by]
        return "nan" if is_nan(value) else value

    def items(self) -> list[Item]:
        return [item for part in self.parts.values() for item in part]

    def by_use(self) -> list[Any]:
        """Least recently used first; the newest tuple of a partition is always there."""
        return sorted(self.parts, key=lambda key: self.parts[key][-1].number)

    def forget(self, keys: Iterable[Any]) -> list[Item]:
        return [item for key in list(keys) for item in self.parts.pop(key)]

    def aged(self, now: float) -> list[Item]:
        if not isinstance(self.spec.forget, PartitionAge):
            return []
        limit = self.spec.forget.age.total_seconds()
        idle = {key: now - self.parts[key][-1].time for key in self.by_use()}
        if not any(age > limit for age in idle.values()):
            return []
        return self.forget(key for key, age in idle.items() if age >= limit)

    def evicted(self, row: Any) -> list[Item]:
        part, evict = self.parts.get(self.key(row), []), self.spec.evict
        gone: list[Item] = []
        if isinstance(evict, Count):
            gone = part[:1] if len(part) == evict.size else []
        elif isinstance(evict, Delta):
            name: Any = evict.attribute
            gone = [item for item in part if row[name] - item.row[name] > evict.threshold]
        for item in gone:
            part[:] = [other for other in part if other is not item]
        return gone

    def crowded(self) -> list[Item]:
        rule = self.spec.forget
        if isinstance(rule, PartitionCount):
            surplus = max(0, len(self.parts) - rule.size)
            return self.forget(self.by_use()[:surplus])
        gone: list[Item] = []
        if isinstance(rule, TupleCount):
            for _ in range(2):  # two rounds, and never a third
                if len(self.items()) > rule.size:
                    gone += self.forget(self.by_use()[:1])
        return gone

    def insert(self, item: Item, now: float) -> list[Item]:
        gone = self.aged(now) + self.evicted(item.row)
        self.parts.setdefault(self.key(item.row), []).append(item)
        return gone + self.crowded()

    def instants(self) -> set[int]:
        """When time evicts, in microseconds."""
        if not isinstance(self.spec.evict, Time):
            return set()
        return {round(item.time * 1e6) + self.spec.evict.micros + 1 for item in self.items()}

    def expired(self, instant: int) -> list[Item]:
        if not isinstance(self.spec.evict, Time):
            return []
        gone = []
        for key, part in list(self.parts.items()):
            limit = instant - self.spec.evict.micros
            gone += [item for item in part if round(item.time * 1e6) < limit]
            part[:] = [item for item in part if round(item.time * 1e6) >= limit]
            if not part:
                del self.parts[key]
        return gone


class NestedLoops:
    """A join without an index."""

    def __init__(
        self,
        left: Sliding,
        right: Sliding,
        how: str,
        on: Sequence[str] = (),
        where: Callable[[Any, Any], bool] | None = None,
        within: Delta | None = None,
        unmatched: str = "row",
    ) -> None:
        self.sides = [Side(left), Side(right)]
        self.how, self.on, self.where, self.within = how, on, where, within
        self.apart = unmatched == "port"
        self.outer = [how in ("left", "outer", "anti"), how in ("right", "outer")]
        self.columns: list[list[str]] = [list(on), list(on)]
        self.out: Output = []
        self.number, self.now = 0, 0.0

    def run(self, steps: Iterable[Step]) -> Output:
        for what, value in steps:
            if what == "advance":
                self.advance(value)
            elif what in ("left", "right"):
                self.take(value, int(what == "right"))
        before = len(self.out)
        for port in (0, 1):
            self.leave(port, self.sides[port].items())
        self.mark(before)
        return self.out

    def matches(self, left: Any, right: Any) -> bool:
        if not all(same(left[name], right[name]) for name in self.on):
            return False
        if self.within is not None:
            name: Any = self.within.attribute
            a, b = left[name], right[name]
            if a is None or b is None or not abs(a - b) <= self.within.threshold:
                return False
        return self.where is None or self.where(left, right)

    def take(self, row: Any, port: int) -> None:
        before = len(self.out)
        self.number += 1
        item = Item(row, self.number, self.now)
        self.columns[port] += [name for name in row if name not in self.columns[port]]
        for other in sorted(self.sides[1 - port].items(), key=lambda other: other.number):
            pair = (item, other) if port == 0 else (other, item)
            if self.matches(pair[0].row, pair[1].row):
                self.met(*pair)
        side = self.sides[port]
        if side.spec.evict == Count(0):
            self.leave(port, [item])
        else:
            self.leave(port, side.insert(item, self.now))
        self.mark(before)

    def met(self, left: Item, right: Item) -> None:
        if self.how == "semi" and not left.matched:
            self.out.append(("matches", left.row))
        elif self.how not in ("semi", "anti"):
            self.out.append(("matches", self.pair(left.row, right.row)))
        left.matched = right.matched = True

    def pair(self, left: Any, right: Any) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for side, mine, theirs in ((left, *self.columns), (right, *self.columns[::-1])):
            for name in mine:
                clash = name in theirs and name not in self.on
                if name in self.on and side is None:
                    continue
                value = None if side is None else side.get(name)
                row.setdefault(
                    f"{name}_right" if clash and mine is self.columns[1] else name, value
                )
        return row

    def leave(self, port: int, items: Iterable[Item]) -> None:
        for item in items:
            if not self.outer[port] or item.matched:
                continue
            if self.how == "anti":
                self.out.append(("matches", item.row))
            elif self.apart:
                self.out.append((f"unmatched_{('left', 'right')[port]}", item.row))
            else:
                pair = (item.row, None) if port == 0 else (None, item.row)
                self.out.append(("matches", self.pair(*pair)))

    def mark(self, before: int) -> None:
        if any(port == "matches" for port, _ in self.out[before:]):
            self.out.append(("matches", MARK))

    def advance(self, now: float) -> None:
        target = round(now * 1e6)
        while due := [t for side in self.sides for t in side.instants() if t <= target]:
            before = len(self.out)
            for port, side in enumerate(self.sides):
                self.leave(port, side.expired(min(due)))
            self.mark(before)
        self.now = now


def script(steps: Iterable[Step]) -> list[Any]:
    """Steps as `replay` reads them."""
    marks = {"advance": advance, "restart": lambda _: restart()}
    return [marks[what](value) if what in marks else to(what, value) for what, value in steps]


def outcome(join: Join, steps: Iterable[Step]) -> Output:
    """What the join itself puts out."""
    items = replay(join, script(steps)).items()
    return [(port, MARK if repr(item) == "punct()" else item) for port, item in items]


def plain(output: Output) -> list[str]:
    """Text, because NaN does not equal itself."""
    return [f"{port} {sorted(row.items()) if row != MARK else row}" for port, row in output]
