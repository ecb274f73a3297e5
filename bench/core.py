"""The event engine against the floor: a call, a dict look-up, `deque.append` and `len`.

Workloads: 200,000 plain tuples `(key, ts, value)` over 1,000 keys, one `insert` call each. The
same driver loop is part of every figure, the floor's too.
"""

from __future__ import annotations

import random
import tracemalloc
from collections import deque
from collections.abc import Callable
from typing import Any

from bench.harness import Measure, Setup, alternate, ratio
from windowlib import (
    KEY,
    Count,
    Delta,
    Sliding,
    SlidingWindow,
    Summarizer,
    Time,
    Tumbling,
    TumblingWindow,
    Window,
    WindowEvents,
    summarizers,
)

Row = tuple[int, float, float]
ROWS, KEYS = 200_000, 1_000

W1 = Tumbling(Count(100), by=KEY)
HOUR = Sliding(Time("1h"), every=Time("1min"))
W2 = Sliding(Count(100), every=Count(10), by=KEY)
DELTAS = Sliding(Delta(1, 200.0), every=Delta(1, 20.0), by=KEY)  # about 20 tuples, every 2


def rows(n: int = ROWS, keys: int = KEYS) -> list[Row]:
    rng = random.Random(7)
    return [(rng.randrange(keys), i * 0.01, rng.random()) for i in range(n)]


def drive(insert: Callable[[Row, int], Any], data: list[Row]) -> Callable[[], None]:
    def timed() -> None:
        for t in data:
            insert(t, t[0])

    return timed


def floor(data: list[Row]) -> Callable[[], None]:
    subs: dict[int, deque[Row]] = {key: deque() for key in range(KEYS)}

    def insert(t: Row, key: int) -> int:
        d = subs[key]
        d.append(t)
        return len(d)

    return drive(insert, data)


def live(window: Window[Row, int], data: list[Row]) -> Callable[[], None]:
    """Time the steady state: the insert function is built and every partition exists."""
    for key in range(KEYS):
        window.insert((key, 0.0, 0.5), key)
    return drive(window.insert, data)


class Read(WindowEvents[Row, int]):
    """Reads the summary whenever the window is processed, and keeps the latest only."""

    latest: Any = None

    def before_flush(self, window: Any, key: int) -> None:
        self.latest = window.summary(key).value()

    def on_trigger(self, window: Any, key: int) -> None:
        self.latest = window.summary(key).value()


class ReadTuples(Read):
    """The same with a handler that may look at tuples, so that these are kept."""

    def on_initial_full(self, window: Any, key: int) -> None:
        pass


class Mean(Summarizer[Row]):
    """A summarizer as a user writes it."""

    def open(self, key: Any) -> None:
        self.n = 0
        self.total = 0.0

    def insert(self, t: Row) -> None:
        self.n += 1
        self.total += t[2]

    def value(self) -> float:
        return self.total / self.n


class Watch(WindowEvents[Row, int]):
    """Insert, evict and trigger handlers that do next to nothing."""

    def after_insert(self, window: Any, t: Row, key: int) -> None:
        pass

    def before_evict(self, window: Any, t: Row, key: int) -> None:
        pass

    def on_trigger(self, window: Any, key: int) -> None:
        pass


def by_hand(data: list[Row]) -> Callable[[], None]:
    """A tumbling window of 100 tuples as one would write it without a library."""
    subs: dict[int, list[Row]] = {key: [] for key in range(KEYS)}

    def insert(t: Row, key: int) -> None:
        try:
            d = subs[key]
        except KeyError:
            d = subs[key] = []
        d.append(t)
        if len(d) == 100:
            del subs[key]

    return drive(insert, data)


def ticking(events: WindowEvents[Row, Any], tuples: int = 50_000) -> Callable[[], Window[Row, Any]]:
    """An hour every minute, with ten tuples a second: mean and maximum."""
    data = [(0, i / 10, i * 0.5) for i in range(tuples)]
    both = {"mean": summarizers.mean(2), "max": summarizers.max(2)}
    window: SlidingWindow[Row, Any] = SlidingWindow(HOUR, events=events, summarizer=both)

    def timed() -> Window[Row, Any]:
        for t in data:
            window.advance(t[1])
            window.insert(t)
        return window

    return timed


def hour_bytes(events: WindowEvents[Row, Any]) -> int:
    """Memory of that window at the end."""
    fill = ticking(events)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    window = fill()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(window) > 30_000
    return used


def candidates(data: list[Row]) -> dict[str, Setup]:
    mean, both = summarizers.mean(2), {"mean": summarizers.mean(2), "max": summarizers.max(2)}
    return {
        "floor": lambda: floor(data),
        "G1": lambda: live(TumblingWindow(W1, events=Read(), summarizer=mean), data),
        "G2": lambda: live(TumblingWindow(W1, events=Read(), summarizer=Mean), data),
        "G3": lambda: live(SlidingWindow(W2, events=Read(), summarizer=both), data),
        "G4": lambda: live(SlidingWindow(DELTAS, events=Watch()), data),
        "by hand": lambda: by_hand(data),
        "silent": lambda: live(TumblingWindow(W1), data),
        "slices": lambda: ticking(Read()),
        "tuples": lambda: ticking(ReadTuples()),
    }


def partition_bytes(summarizer: Any, partitions: int = 20, tuples: int = 1_000_000) -> float:
    """Memory of a partition that stands for nearly `tuples` tuples."""
    window: TumblingWindow[Row, int] = TumblingWindow(
        Tumbling(Count(tuples), by=KEY), events=Read(), summarizer=summarizer
    )
    window.insert((-1, 0.0, 0.5), -1)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for i in range(tuples - 1):
        for key in range(partitions if i < 1_000 else 1):
            window.insert((key, float(i), i * 0.5), key)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used / partitions


def run() -> list[Measure]:
    times = alternate(candidates(rows()))
    hour = hour_bytes(Read()) / hour_bytes(ReadTuples())
    kilobytes = max(partition_bytes(s) for s in (summarizers.mean(2), Mean)) / 1000

    def at_most(target: float, name: str, candidate: str, to: str = "floor") -> Measure:
        return Measure(name, ratio(times, candidate, to), target, higher_is_better=False)

    return [
        at_most(1.3, "G1 tumbling count, ready-made mean / floor", "G1"),
        at_most(1.8, "G2 tumbling count, own summarizer / floor", "G2"),
        at_most(2.1, "G3 sliding 100/10, mean + max / floor", "G3"),
        at_most(5.5, "G4 sliding delta/delta, 3 handlers / floor", "G4"),
        at_most(1.3, "no handlers registered / the same by hand", "silent", "by hand"),
        at_most(1.0, "1 h every minute: slices / kept tuples, time", "slices", "tuples"),
        Measure("1 h every minute: slices / kept tuples, memory", hour, 0.03, False),
        Measure("G17 kB per partition of 1 M tuples", kilobytes, 1.0, higher_is_better=False),
    ]
