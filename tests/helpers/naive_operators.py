"""Slow and plain: what operators with their own windows should do, tuple by tuple.

A `Naive` keeps lists, looks at everything at every step, and knows nothing of the library but its
specifications. Subclasses say what a partition does with a tuple, and with its end.
"""

from __future__ import annotations

import pickle
from typing import Any

from windowlib import Count, Delta, PartitionAge, PartitionCount, Time, TupleCount
from windowlib.runtime.marks import Mark, Restart

PUNCT = "|"


class Naive:
    """Partitions in storage order and by last use, and what comes out."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.now = 0
        self.parts: dict[Any, list[Any]] = {}  # held tuples, with the time of their arrival
        self.used: dict[Any, int] = {}  # least recently used first, with the time of last use
        self.out: list[Any] = []

    def key(self, row):
        return None if self.spec.by is None else row[self.spec.by]

    def evict_partition(self, key):
        self.gone(key)
        del self.parts[key]
        del self.used[key]

    def age(self):
        forget = self.spec.forget
        if isinstance(forget, PartitionAge) and self.used:
            limit = self.now - forget.micros
            if next(iter(self.used.values())) < limit:
                for key in [key for key, at in self.used.items() if at <= limit]:
                    self.evict_partition(key)

    def crowded(self):
        forget = self.spec.forget
        for _ in range(2):
            if isinstance(forget, TupleCount) and sum(map(len, self.parts.values())) > forget.size:
                for key in list(self.used):
                    held = len(self.parts[key])
                    self.evict_partition(key)
                    if held:
                        break
        while isinstance(forget, PartitionCount) and len(self.parts) > forget.size:
            self.evict_partition(next(iter(self.used)))

    def use(self, key):
        self.used.pop(key, None)
        self.used[key] = self.now

    def insert(self, row):
        self.age()
        key = self.key(row)
        self.parts.setdefault(key, [])
        self.take(key, row)
        self.crowded()
        self.taken(key)

    def far(self, key, row):
        """The tuples of a partition that are too far away from `row`."""
        policy = self.spec.evict
        if not isinstance(policy, Delta):
            return []
        new = row[policy.attribute]
        return [
            entry
            for entry in self.parts[key]
            if (old := entry[1][policy.attribute]) <= new and new - old > policy.threshold
        ]

    def full(self, key):
        policy = self.spec.evict
        return isinstance(policy, Count) and len(self.parts[key]) >= policy.size

    def advance(self, to):
        while isinstance(self.spec.evict, Time) and (due := self.due()) is not None and due <= to:
            self.now = due
            self.act()
        self.now = to

    def due(self):
        """When the oldest tuple of a sliding window is too old."""
        stamps = [at for held in self.parts.values() for at, _ in held]
        return min(stamps) + self.spec.evict.micros + 1 if stamps else None

    def act(self):
        """What came at the oldest instant is too old."""
        oldest = min(at for held in self.parts.values() for at, _ in held)
        for key in list(self.parts):
            for entry in [entry for entry in self.parts[key] if entry[0] == oldest]:
                if any(entry is each for each in self.parts[key]):
                    self.expired(key, entry)
            if not self.parts[key]:
                del self.parts[key]
                self.used.pop(key, None)

    def gone(self, key):
        """A partition is about to be evicted."""

    def take(self, key, row):
        raise NotImplementedError

    def taken(self, key):
        """After partition eviction."""

    def expired(self, key, entry):
        raise NotImplementedError

    def punctuate(self):
        pass

    def finish(self):
        pass

    def run(self, items):
        for item in items:
            if isinstance(item, Restart):
                continue
            if not isinstance(item, Mark):
                self.insert(item)
            elif item.at is None:
                self.punctuate()
            else:
                self.advance(item.moment(self.now))
        self.finish()
        return self.out


def without(held, entry):
    """A list without one of its elements, by identity."""
    return [each for each in held if each is not entry]


def opened(operator, show=lambda row: row):
    """A running operator, its window, and the rows that its first output gives from now on."""
    running: Any = operator.open()
    out: list[Any] = []
    running.connect(0, lambda row: out.append(show(row)))
    return running, running.operator.containers[0], out


def run(operator, items, show=lambda row: row["i"]):
    """What each output of an operator gives, with its windows checked after every step."""
    outputs = [port.name for port in operator.model.outputs]
    out: dict[str, list[Any]] = {name: [] for name in outputs}

    def fresh_one():
        fresh = operator.open()
        for name in outputs:
            fresh.connect(
                name,
                lambda row, name=name: out[name].append(show(row)),
                lambda name=name: out[name].append(PUNCT),
            )
        return fresh

    running: Any = fresh_one()
    for item in items:
        if isinstance(item, Restart):
            state = pickle.loads(pickle.dumps(running.snapshot()))
            running = fresh_one()
            running.restore(state)
        elif not isinstance(item, Mark):
            running.insert(item)
        elif item.at is None:
            running.punctuate()
        else:
            running.advance_micros(item.moment(running.micros))
        running.operator.containers[0]._check()
    running.finish()
    return out
