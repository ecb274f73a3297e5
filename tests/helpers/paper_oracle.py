"""Windows as the paper's tables say them, with lists and loops: a third opinion on both engines.

It shares no code with the library, not even its specifications: a `Case` is plain data. It knows
no laziness and no index. Each step reads as the tables and the rules beside them do; partitions are
found by comparing keys one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Rule = tuple[Any, ...]
"""A policy: ("count", n), ("delta", attribute, threshold), ("time", microseconds) or ("punct",)."""


@dataclass(frozen=True)
class Case:
    """What a window is made of."""

    kind: str
    evict: Rule
    trigger: Rule = ("none",)
    forget: Rule = ("none",)
    """("partitions", n, selection), ("tuples", n, selection) or ("age", microseconds)."""
    select: Callable[[list[Any]], list[Any]] | None = None
    """What the handler marks of the keys, for the selection "operator"."""


@dataclass
class Part:
    """A partition."""

    key: Any
    rows: list[tuple[Any, int]] = field(default_factory=list)
    """Tuples with their times of arrival."""
    counter: int = 0
    reference: list[Any] = field(default_factory=list)
    """The value that the last delta trigger left, if there was one."""
    full: bool = False
    insertions: int = 0
    stamp: int = 0


def same(one: Any, other: Any) -> bool:
    """Whether two keys are one: all NaN are."""
    return bool(one == other or (one != one and other != other))


def far(new: Any, old: Any, threshold: Any) -> bool:
    """The delta test."""
    return False if new < old else bool(new - old > threshold)


class Refused(Exception):  # noqa: N818 - what the window does, not what went wrong
    """The tuple has a value that the delta test cannot use; nothing has changed."""


class Paper:
    """A window of a case, and all that it has told its handlers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.storage: list[Part] = []
        self.lru: list[Part] = []
        self.memory: list[Part] = []  # partitions without tuples whose trigger state survives
        self.now = 0
        beat = case.evict if case.kind == "tumbling" else case.trigger
        self.period = beat[1] if beat[0] == "time" else None
        self.next_tick = self.period
        self.log: list[Any] = []

    # -- what is told -----------------------------------------------------------------------------

    def held(self) -> list[Any]:
        """All partitions with the ids of their tuples."""
        return [(repr(p.key), [row["id"] for row, _ in p.rows]) for p in self.storage]

    def tell(self, event: str, key: Any, row: Any = None) -> None:
        """An event of one partition."""
        self.log.append((event, repr(key), row and row["id"], self.held()))

    def trigger(self, key: Any) -> None:
        """A trigger, and whether the partition has been full."""
        stored = [p for p in self.storage if same(p.key, key)]
        timed = self.case.evict[0] == "time"
        self.tell("on_trigger", key)
        self.log.append(("full", bool(stored) and (timed or stored[0].full)))

    # -- partitions -------------------------------------------------------------------------------

    def find(self, key: Any) -> Part:
        """The partition of a key, made if there is none."""
        for part in self.storage:
            if same(part.key, key):
                return part
        found = self.remembered(key)
        if found is None:
            found = Part(key)
        else:
            self.memory.remove(found)
        self.storage.append(found)
        return found

    def remembered(self, key: Any) -> Part | None:
        """The trigger state of a key that is not in storage."""
        return next((part for part in self.memory if same(part.key, key)), None)

    def drop(self, part: Part) -> None:
        """A partition leaves storage and the list of recent use."""
        self.storage = [each for each in self.storage if each is not part]
        self.lru = [each for each in self.lru if each is not part]

    def stored(self, part: Part) -> bool:
        """Whether it is still there."""
        return any(each is part for each in self.storage)

    def needed(self) -> bool:
        """Whether partitions have to go."""
        what = self.case.forget
        if what[0] == "partitions":
            return bool(len(self.storage) > what[1])
        if what[0] == "tuples":
            return bool(sum(len(part.rows) for part in self.lru) > what[1])
        return what[0] == "age" and bool(self.lru) and self.lru[0].stamp + what[1] < self.now

    def least_recent(self) -> list[Part]:
        """The choice of LRU."""
        what = self.case.forget
        if what[0] == "age":
            chosen = []
            for part in self.lru:
                if part.stamp + what[1] > self.now:
                    break
                chosen.append(part)
            return chosen
        if what[0] == "partitions":
            return self.lru[: len(self.storage) - what[1]]
        chosen = []
        for part in self.lru:
            chosen.append(part)
            if part.rows:
                break
        return chosen

    def as_many_as_needed(self, ranked: list[Part]) -> list[Part]:
        """The first of a ranking."""
        what, chosen = self.case.forget, []
        weigh = (lambda p: len(p.rows)) if what[0] == "tuples" else (lambda p: 1)
        over = sum(map(weigh, self.lru if what[0] == "tuples" else self.storage)) - what[1]
        for part in ranked:
            if over <= 0:
                break
            chosen.append(part)
            over -= weigh(part)
        return chosen

    def partition_eviction(self) -> None:
        """Section 3.5: a round as selected, and one more with LRU."""
        if not self.needed():
            return
        selection = "lru" if self.case.forget[0] == "age" else self.case.forget[2]
        if selection == "operator":
            if self.case.select is None:
                return
            marked = self.case.select([part.key for part in self.lru])
            chosen = [next(p for p in self.lru if same(p.key, key)) for key in marked]
        elif selection == "oldest":
            chosen = self.as_many_as_needed(self.storage)
        elif selection == "lfu":
            chosen = self.as_many_as_needed(sorted(self.lru, key=lambda p: p.insertions))
        else:
            chosen = self.least_recent()
        self.forget(chosen)
        if self.needed():
            self.forget(self.least_recent())

    def forget(self, chosen: list[Part]) -> None:
        """One event for all of them, and then they go."""
        if chosen:
            self.log.append(("forget", [repr(part.key) for part in chosen], self.held()))
        for part in chosen:
            self.drop(part)

    def age(self) -> None:
        """The check before anything else."""
        if self.case.forget[0] == "age":
            self.partition_eviction()

    # -- steps ------------------------------------------------------------------------------------

    def check(self, row: Any) -> None:
        """A value must be at distance zero from itself, on the scale of the threshold."""
        for rule in (self.case.evict, self.case.trigger):
            if rule[0] != "delta":
                continue
            value = row[rule[1]]
            try:
                apart = value - value
                sound = apart == apart and not apart
            except (TypeError, ArithmeticError):
                sound = False
            if not sound:
                raise Refused

    def insert(self, row: Any, key: Any) -> None:
        """A tuple arrives: Tables I and II."""
        case = self.case
        empty = case.evict == ("count", 0)
        if case.kind == "tumbling" and empty:
            return
        self.check(row)
        self.age()
        if empty:
            self.insert_nowhere(row, key)
            return
        part = self.find(key)
        if case.kind == "tumbling":
            self.insert_tumbling(part, row)
        elif case.trigger[0] == "delta":
            if case.evict[0] == "delta":
                self.full_delta(part, row)
            self.trigger_delta(part, row)
            self.evict(part, row)
            self.insert_sliding(part, row)
        else:
            if case.evict[0] == "delta":
                self.full_delta(part, row)
            self.evict(part, row)
            self.insert_sliding(part, row)
            if case.trigger[0] == "count":
                self.trigger_count(part)

    def insert_nowhere(self, row: Any, key: Any) -> None:
        """A sliding window of no tuples still triggers; its partitions are trigger state alone."""
        trigger = self.case.trigger
        part = self.remembered(key)
        if part is None:
            part = Part(key)
            if trigger[0] == "delta" or (trigger[0] == "count" and trigger[1] > 1):
                self.memory.append(part)
        if trigger[0] == "delta":
            self.trigger_delta(part, row)
        elif trigger[0] == "count":
            self.count(part)

    def insert_tumbling(self, part: Part, row: Any) -> None:
        """Table I."""
        what = self.case.evict
        if what[0] == "delta" and part.rows:
            oldest, _ = part.rows[0]
            if far(row[what[1]], oldest[what[1]], what[2]):
                self.flush(part)
        self.put(part, row)
        if what[0] == "count" and self.stored(part) and len(part.rows) == what[1]:
            self.flush(part)
            self.drop(part)

    def put(self, part: Part, row: Any) -> None:
        """The tuple enters, and partitions may have to go for it."""
        self.tell("before_insert", part.key, row)
        part.rows.append((row, self.now))
        self.tell("after_insert", part.key, row)
        part.insertions += 1
        part.stamp = self.now
        if self.case.forget[0] != "none":
            self.lru = [*[each for each in self.lru if each is not part], part]
        if self.case.forget[0] != "age":
            self.partition_eviction()

    def flush(self, part: Part) -> None:
        """Processed, and emptied."""
        self.tell("before_flush", part.key)
        part.rows = []
        self.tell("after_flush", part.key)

    def insert_sliding(self, part: Part, row: Any) -> None:
        """INSERT with the initial-full events of count and time."""
        what = self.case.evict
        if what[0] == "time" and not part.full:
            part.full = True
            self.tell("on_initial_full", part.key)
        self.put(part, row)
        filled = what[0] == "count" and len(part.rows) == what[1]
        if filled and not part.full and self.stored(part):
            part.full = True
            self.tell("on_initial_full", part.key)

    def leaving(self, part: Part, row: Any) -> list[Any]:
        """What delta eviction will drop."""
        _, name, threshold = self.case.evict
        return [each for each in part.rows if far(row[name], each[0][name], threshold)]

    def full_delta(self, part: Part, row: Any) -> None:
        """The first insert that will evict something."""
        if not part.full and self.leaving(part, row):
            part.full = True
            self.tell("on_initial_full", part.key)

    def evict(self, part: Part, row: Any) -> None:
        """EVICT of count and delta; time has its own."""
        what, going = self.case.evict, []
        if what[0] == "count" and len(part.rows) == what[1]:
            going = part.rows[:1]
        elif what[0] == "delta":
            going = self.leaving(part, row)
        for each in going:
            self.evict_one(part, each)

    def evict_one(self, part: Part, gone: tuple[Any, int]) -> None:
        """A tuple leaves, bracketed by its events."""
        self.tell("before_evict", part.key, gone[0])
        part.rows = [each for each in part.rows if each is not gone]
        self.tell("after_evict", part.key, gone[0])

    def trigger_delta(self, part: Part, row: Any) -> None:
        """TRIGGER delta."""
        _, name, threshold = self.case.trigger
        # The first is compared with itself, which is too far for a threshold below zero.
        if not part.reference:
            part.reference = [row[name]]
        if far(row[name], part.reference[0], threshold):
            part.reference = [row[name]]
            self.trigger(part.key)

    def trigger_count(self, part: Part) -> None:
        """TRIGGER count; an insert that has evicted its own partition starts again at 1."""
        if not self.stored(part):
            part = Part(part.key)
            if self.case.trigger[1] > 1:
                self.memory.append(part)
        self.count(part)

    def count(self, part: Part) -> None:
        """One more of so many."""
        part.counter += 1
        if part.counter == self.case.trigger[1]:
            self.trigger(part.key)
            part.counter = 0

    # -- punctuations and time --------------------------------------------------------------------

    def punctuate(self) -> None:
        """A window marker comes to a tumbling window."""
        if not self.storage:
            self.log.append(("empty",))
            return
        self.age()
        self.flush_all()

    def flush_all(self) -> None:
        """All partitions, in storage order."""
        for part in list(self.storage):
            self.flush(part)
            self.drop(part)

    def expiry(self) -> int | None:
        """When the age of the oldest tuple exceeds the period of eviction."""
        if self.case.kind == "tumbling" or self.case.evict[0] != "time":
            return None
        stamps = [stamp for part in self.storage for _, stamp in part.rows]
        return min(stamps) + self.case.evict[1] + 1 if stamps else None

    def advance(self, now: int) -> None:
        """Time passes; what is due happens at its time, and eviction before a trigger."""
        while True:
            due = [at for at in (self.expiry(), self.next_tick) if at is not None and at <= now]
            if not due:
                break
            self.now = min(due)
            if self.now == self.expiry():
                self.expire()
            else:
                assert self.period is not None
                self.next_tick = self.now + self.period
                self.tick()
        self.now = now

    def expire(self) -> None:
        """Tuples whose age is more than the period, partition by partition."""
        for part in list(self.storage):
            for each in list(part.rows):
                if self.now - each[1] > self.case.evict[1]:
                    self.evict_one(part, each)
            if not part.rows:
                self.drop(part)
                part.insertions = 0
                self.memory.append(part)

    def tick(self) -> None:
        """A flush or a trigger of all partitions; an idle window has the default key."""
        self.age()
        if self.case.kind == "sliding":
            for key in [part.key for part in self.storage] or [None]:
                self.trigger(key)
        elif self.storage:
            self.flush_all()
        else:
            self.storage = [Part(None)]
            self.flush_all()
