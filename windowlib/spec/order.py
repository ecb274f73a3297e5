"""Tables I and II of the paper: the only place that decides the order of events.

Steps of one arriving tuple, left to right. A policy on the clock has no step here: its work is
done by `advance`. Two steps are ours to place, because the paper's tables do not name them:

- `AGE`, the check of partition age, comes before anything else of an insert;
- `FULL`, the initial-full event, comes with the insert that fills a count window, before the
  first eviction (and a trigger of the same insert) of a delta window, and at the very first
  insert of a time window.

`INSERT` ends with partition eviction, right after the after-insert event.
"""

from __future__ import annotations

from enum import Enum, auto

from windowlib.spec.specification import Sliding, Spec


class Step(Enum):
    """One thing that an insert does."""

    AGE = auto()
    FULL = auto()
    EVICT = auto()
    INSERT = auto()
    TRIGGER = auto()
    FLUSH = auto()

    def __repr__(self) -> str:
        return self.name


AGE, FULL, EVICT, INSERT, TRIGGER, FLUSH = Step

TUMBLING_ORDER: dict[str, tuple[Step, ...]] = {
    "count": (AGE, INSERT, FLUSH),
    "delta": (AGE, FLUSH, INSERT),
    "time": (AGE, INSERT),  # flushed by the clock
    "punct": (AGE, INSERT),  # flushed by a punctuation
    "either": (AGE, INSERT, FLUSH),  # ours: count | time, also flushed by the clock
    "event": (INSERT, FLUSH),  # ours: what the watermark has passed after the insert
}

SLIDING_ORDER: dict[tuple[str, str], tuple[Step, ...]] = {
    ("count", "count"): (AGE, EVICT, INSERT, FULL, TRIGGER),
    ("count", "delta"): (AGE, TRIGGER, EVICT, INSERT, FULL),
    ("count", "time"): (AGE, EVICT, INSERT, FULL),
    ("delta", "count"): (AGE, FULL, EVICT, INSERT, TRIGGER),
    ("delta", "delta"): (AGE, FULL, TRIGGER, EVICT, INSERT),
    ("delta", "time"): (AGE, FULL, EVICT, INSERT),
    ("time", "count"): (AGE, FULL, INSERT, TRIGGER),
    ("time", "delta"): (AGE, TRIGGER, FULL, INSERT),
    ("time", "time"): (AGE, FULL, INSERT),
    ("event", "event"): (INSERT, TRIGGER),  # ours, as for tumbling
}


def steps(spec: Spec) -> tuple[Step, ...]:
    """The steps of one insert, in order.

    >>> from windowlib import Count, Delta, Sliding
    >>> steps(Sliding(Count(4), every=Delta("ts", 10)))
    (AGE, TRIGGER, EVICT, INSERT, FULL)
    """
    if isinstance(spec, Sliding):
        return SLIDING_ORDER[spec.evict.kind, spec.every.kind]
    return TUMBLING_ORDER[spec.evict.kind]
