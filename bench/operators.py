"""Aggregate against peers and the floor; then Join and Sort, as their windows grow.

Every workload runs once before anything is timed, in each implementation, and all must agree on
the results. Ratios are between candidates that took turns in the same run.
"""

from __future__ import annotations

import math
import platform
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from bench import core, peers
from bench.growth import joins, sorts
from bench.harness import Measure, Setup, alternate, at_least, at_most
from bench.peers import SIZE, SLIDE, Candidate, mean, p95
from windowlib import (
    KEY,
    Count,
    Operator,
    OperatorModel,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    Window,
    WindowEvents,
    replay,
    summarizers,
)
from windowlib.operators import Aggregate, agg

Row = tuple[str, float, float]
W1 = Tumbling(Count(SIZE), by=0)
W2 = Sliding(Count(SIZE), every=Count(SLIDE), by=0)
W1_MEAN = Aggregate(W1, mean=agg.mean(2))
W2_BOTH = Aggregate(W2, mean=agg.mean(2), max=agg.max(2))

KEYS, ROWS_PER_KEY = 1_000, 2 * SIZE
ROUNDS = {"W1": 7, "W2": 3, "W5": 3}  # W2 takes quixstreams 8 s a round


def run() -> list[Measure]:
    print(f"Python {platform.python_version()}")
    with peers.scratch() as directory:
        return [
            *against_peers(directory),
            *against_floor(),
            *replays(),
            *timed(),
            *joins(),
            *sorts(),
        ]


# -- Aggregate: W1, W2 and W5 against peers -------------------------------------------------------


class Send(WindowEvents[Row, str]):
    """The event engine alone: reads the summary when the window is processed."""

    def __init__(self) -> None:
        self.out: list[Any] = []

    def before_flush(self, window: Any, key: str) -> None:
        self.out.append((key, window.summary(key).value()))

    def on_trigger(self, window: Any, key: str) -> None:
        if window.size(key) == SIZE:
            both = window.summary(key).value()
            self.out.append((key, both["mean"], both["max"]))


class SendOfContent(WindowEvents[Row, str]):
    """The event engine alone, with a handler over the tuples."""

    def __init__(self, function: Callable[[list[float]], float]) -> None:
        self.out: list[Any] = []
        self.function = function

    def before_flush(self, window: Any, key: str) -> None:
        self.out.append((key, self.function([t[2] for t in window[key]])))


class OfContent(Operator):
    """The same as an operator, as a user writes it."""

    model = OperatorModel(windows=[Tumbling])

    def __init__(self, window: Any, function: Callable[[list[float]], float]) -> None:
        self.function = function
        super().__init__(window)

    def before_flush(self, window: Window[Row, str], key: str) -> None:
        self.emit(key=key, value=self.function([t[2] for t in window[key]]))


def rows() -> list[Row]:
    """1,000 keys, each as often as the others, in random order: no window is left half full."""
    rng = random.Random(7)
    keys = [str(key) for key in range(KEYS)] * ROWS_PER_KEY
    rng.shuffle(keys)
    return [(key, i * 0.01, rng.random()) for i, key in enumerate(keys)]


def engine(
    events_of: Callable[[], Any], make: Callable[[Any], Window[Row, str]], data: list[Row]
) -> Candidate:
    def setup() -> Callable[[], list[Any]]:
        events = events_of()
        window = make(events)

        def timed() -> list[Any]:
            window.insert(data[0], data[0][0])
            insert = window.insert  # built for rows like the first
            for t in islice(data, 1, None):
                insert(t, t[0])
            out: list[Any] = events.out
            return out

        return timed

    return Candidate(setup, lambda row: row)


def operator(op: Operator, data: list[Any], many: bool = False) -> Candidate:
    def setup() -> Callable[[], list[Any]]:
        running, out = op.open(), list[Any]()
        running.connect(0, out.append)

        def timed() -> list[Any]:
            running.insert(data[0])
            insert = running.insert  # built for rows like the first
            for t in islice(data, 1, None):
                insert(t)
            return out

        def timed_many() -> list[Any]:
            running.insert_many(data)
            return out

        return timed_many if many else timed

    return Candidate(setup, lambda row: tuple(row.values()))


def ours(data: list[Row]) -> dict[str, Candidate]:
    one = summarizers.mean(2)
    both = {"mean": summarizers.mean(2), "max": summarizers.max(2)}
    tumbling = Tumbling(Count(SIZE), by=KEY)
    sliding = Sliding(Count(SIZE), every=Count(SLIDE), by=KEY)

    def summary(events: Any) -> Window[Row, str]:
        return TumblingWindow(tumbling, events=events, summarizer=one)

    def slices(events: Any) -> Window[Row, str]:
        return SlidingWindow(sliding, events=events, summarizer=both)

    def content(events: Any) -> Window[Row, str]:
        return TumblingWindow(tumbling, events=events)

    return {
        "W1 engine": engine(Send, summary, data),
        "W1 engine handler": engine(lambda: SendOfContent(mean), content, data),
        "W1 Aggregate": operator(W1_MEAN, data),
        "W1 Aggregate many": operator(W1_MEAN, data, many=True),
        "W1 handler": operator(OfContent(W1, mean), data),
        "W1 handler many": operator(OfContent(W1, mean), data, many=True),
        "W2 engine": engine(Send, slices, data),
        "W2 Aggregate": operator(W2_BOTH, data),
        "W5 engine handler": engine(lambda: SendOfContent(p95), content, data),
        "W5 handler": operator(OfContent(W1, p95), data),
        "W5 handler many": operator(OfContent(W1, p95), data, many=True),
    }


def against_peers(directory: str) -> list[Measure]:
    data = rows()
    found = ours(data) | peers.candidates(data, directory)
    times: dict[str, list[float]] = {}
    for workload, rounds in ROUNDS.items():
        group = {name: c for name, c in found.items() if name.startswith(workload)}
        check_same(group)
        times |= alternate({name: c.setup for name, c in group.items()}, rounds)
    # bytewax takes rows a thousand at a time, quixstreams one; both ways have G6's targets.
    wanted = [
        (10, "G6 W1: bytewax / event engine", "W1 bytewax", "W1 engine"),
        (10, "G6 W1: bytewax / Aggregate, insert_many", "W1 bytewax", "W1 Aggregate many"),
        (10, "G6 W1: bytewax / Aggregate, insert", "W1 bytewax", "W1 Aggregate"),
        (None, "W1: bytewax by hand / Aggregate, insert", "W1 bytewax by hand", "W1 Aggregate"),
        (6, "G6 W1: bytewax / engine, handler over content", "W1 bytewax", "W1 engine handler"),
        (6, "G6 W1: bytewax / operator over content, insert_many", "W1 bytewax", "W1 handler many"),
        (6, "G6 W1: bytewax / operator over content, insert", "W1 bytewax", "W1 handler"),
        (6, "G6 W5: bytewax / engine, handler over content", "W5 bytewax", "W5 engine handler"),
        (6, "G6 W5: bytewax / operator over content, insert_many", "W5 bytewax", "W5 handler many"),
        (6, "G6 W5: bytewax / operator over content, insert", "W5 bytewax", "W5 handler"),
        (None, "W2: bytewax by hand / event engine", "W2 bytewax by hand", "W2 engine"),
        (None, "W2: bytewax by hand / Aggregate, insert", "W2 bytewax by hand", "W2 Aggregate"),
        (40, "G6 W1: quixstreams / event engine", "W1 quixstreams", "W1 engine"),
        (40, "G6 W1: quixstreams / Aggregate, insert", "W1 quixstreams", "W1 Aggregate"),
        (None, "W2: quixstreams / Aggregate, insert", "W2 quixstreams", "W2 Aggregate"),
        (None, "W5: quixstreams / operator over content, insert", "W5 quixstreams", "W5 handler"),
    ]
    return [at_least(*row, times) for row in wanted if row[2] in times]


def check_same(candidates: dict[str, Candidate]) -> None:
    """Refuse to time implementations that do not agree."""
    results = {name: by_key(map(c.read, c.setup()())) for name, c in candidates.items()}
    (first, expected), *others = results.items()
    for name, got in others:
        assert expected.keys() == got.keys(), f"{first} and {name} have results of different keys"
        for key, rows_of_key in expected.items():
            assert close(rows_of_key, got[key]), f"{first} and {name} differ for key {key}"


def by_key(results: Iterable[tuple[Any, ...]]) -> dict[Any, list[tuple[float, ...]]]:
    """Results in order for each key; batches may put keys in another order."""
    found: dict[Any, list[tuple[float, ...]]] = defaultdict(list)
    for key, *values in results:
        found[key].append(tuple(values))
    return found


def close(one: list[tuple[float, ...]], other: list[tuple[float, ...]]) -> bool:
    """Equal but for the last digits of float sums."""
    return len(one) == len(other) and all(
        len(a) == len(b) and all(map(math.isclose, a, b)) for a, b in zip(one, other, strict=True)
    )


# -- Aggregate against the floor ------------------------------------------------------------------


def against_floor() -> list[Measure]:
    data = core.rows()
    found = core.candidates(data)
    setups = {name: found[name] for name in ("floor", "G1", "G3")}
    setups["W1"] = operator(W1_MEAN, data).setup
    setups["W2"] = operator(W2_BOTH, data).setup
    times = alternate(setups)
    return [
        at_most(2.1, "G3 W2: event engine / floor", "G3", "floor", times),
        at_most(None, "W1: Aggregate / floor", "W1", "floor", times),
        at_most(None, "W2: Aggregate / floor", "W2", "floor", times),
        at_most(None, "W1: Aggregate / event engine", "W1", "G1", times),
        at_most(None, "W2: Aggregate / event engine", "W2", "G3", times),
    ]


# -- replay of an iterator against insert_many of a list ------------------------------------------

REPLAYED = {
    "tumbling 100": Aggregate(Tumbling(Count(100), by="key"), mean=agg.mean("value")),
    "sliding 100/10": Aggregate(
        Sliding(Count(100), every=Count(10), by="key"),
        mean=agg.mean("value"),
        max=agg.max("value"),
    ),
    "tumbling 5": Aggregate(Tumbling(Count(5), by="key"), mean=agg.mean("value")),
}


def replayed(op: Operator, data: list[Any]) -> Candidate:
    """Rows from an iterator, each taken before the next is asked for."""

    def setup() -> Callable[[], list[Any]]:
        rows = replay(op, iter(data))
        return lambda: list(rows)

    return Candidate(setup, lambda row: tuple(row.values()))


def replays() -> list[Measure]:
    data = [{"key": key, "ts": ts, "value": value} for key, ts, value in rows()]
    measures = []
    for name, op in REPLAYED.items():
        both = {"many": operator(op, data, many=True), "replay": replayed(op, data)}
        check_same(both)
        times = alternate({which: each.setup for which, each in both.items()}, 9)
        measure = f"{name}: replay of an iterator / insert_many of a list"
        measures.append(at_most(1.2, measure, "replay", "many", times))
    return measures


# -- time policies against the same windows by count ----------------------------------------------

SECOND = 1_000  # rows: 10 of them a key in 10 seconds
BY_TIME: dict[str, tuple[Tumbling | Sliding, Tumbling | Sliding]] = {
    "tumbling": (Tumbling(Time("10s"), by="key"), Tumbling(Count(10), by="key")),
    "sliding": (
        Sliding(Time("10s"), every=Count(5), by="key"),
        Sliding(Count(10), every=Count(5), by="key"),
    ),
}


class Size(WindowEvents[Any, Any]):
    """Asks how many tuples a window has, whenever it is processed."""

    latest = 0

    def before_flush(self, window: Any, key: Any) -> None:
        self.latest = window.size(key)

    def on_trigger(self, window: Any, key: Any) -> None:
        self.latest = window.size(key)


def window_of(spec: Tumbling | Sliding) -> Window[Any, Any]:
    kind = SlidingWindow if isinstance(spec, Sliding) else TumblingWindow
    return kind(spec, events=Size())


def advanced(spec: Tumbling | Sliding, data: list[Any]) -> Callable[[], None]:
    """The clock moves before each insert, for windows with a time policy."""
    window = window_of(spec)
    window.insert(data[0])
    insert, advance = window.insert, window.advance

    def by_count() -> None:
        for row in data:
            insert(row)

    def by_time() -> None:
        for row in data:
            advance(row["ts"])
            insert(row)

    return by_time if spec.timed else by_count


def listed(op: Operator, data: list[Any], times: str | None) -> Callable[[], list[Any]]:
    return partial(list, replay(op, data, times=times))


def timed() -> list[Measure]:
    data = [
        {"key": key, "ts": i / SECOND, "value": value} for i, (key, _, value) in enumerate(rows())
    ]
    measures = []
    for name, (time, count) in BY_TIME.items():
        setups: dict[str, Setup] = {
            "advance": partial(advanced, time, data),
            "count": partial(advanced, count, data),
        }
        for which, spec, times in (("replay times", time, "ts"), ("replay", count, None)):
            op = Aggregate(spec, n=agg.count(), mean=agg.mean("value"))
            setups[which] = partial(listed, op, data, times)
        found = alternate(setups, 5)
        title = f"{name}, time / count"
        measures.append(at_most(2, f"{title}: advance and insert", "advance", "count", found))
        measures.append(at_most(2, f"{title}: replay(times=)", "replay times", "replay", found))
        micros = min(found["replay times"]) / len(data) * 1e6
        line = f"{name}, time: replay(times=), microseconds a row"
        measures.append(Measure(line, micros, 1.0, higher_is_better=False))
    return measures
