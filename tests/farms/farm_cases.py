"""Farms to be tested: operators, windows, streams, and workers whose delays are drawn."""

from __future__ import annotations

import pickle
import random
from functools import cache
from heapq import heapify
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from windowlib import (
    Count,
    Delta,
    Either,
    Event,
    FarmError,
    Landmark,
    ModelError,
    Operator,
    OperatorModel,
    PartitionError,
    Punct,
    Session,
    Sliding,
    Time,
    Tumbling,
    Watermark,
    advance,
    punct,
    replay,
)
from windowlib.control import AdaptivePid
from windowlib.farms import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.pool import WorkerDeath
from windowlib.farms.virtual import VirtualPool
from windowlib.operators import Aggregate, Skyline, Sort, TopDelta, agg, desc

# -- operators ------------------------------------------------------------------------------------


class Spread(Operator):
    """Reads tuples."""

    model = OperatorModel(windows=[Tumbling, Sliding], punctuation_out="generating")

    def on_trigger(self, window: Any, key: Any) -> None:
        values = [row["x"] for row in window[key]]
        spread = max(values, default=0) - min(values, default=0)
        self.emit(k=key, size=window.size(key), spread=spread, at=window.now)
        self.emit_punct()

    before_flush = on_trigger


class Total(Operator):
    """Reads columns; associative, and in the order of tuples."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    content = "arrow"
    function_kind = "associative"

    def on_trigger(self, window: Any, key: Any) -> None:
        self.emit_part(key, self.part_of(window, key))

    before_flush = on_trigger

    def part_of(self, window: Any, key: Any) -> Any:
        return [row["x"] for row in window[key]]

    def merge_parts(self, a: Any, b: Any) -> Any:
        return a + b

    def emit_part(self, key: Any, part: Any) -> None:
        self.emit(k=key, xs=part)


class AboveMean(Total):
    """Looks at its tuples twice: sends those above the mean of the window."""

    def on_trigger(self, window: Any, key: Any) -> None:
        self.emit_again(window, key, self.part_of(window, key))

    before_flush = on_trigger

    def part_of(self, window: Any, key: Any) -> Any:
        values = [row["x"] for row in window[key]]
        return sum(values), len(values)

    def merge_parts(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]

    def emit_again(self, window: Any, key: Any, whole: Any) -> None:
        total, size = whole
        for row in window[key]:
            if row["x"] * size > total:
                self.emit(k=key, x=row["x"])


class Trimmed(AboveMean):
    """Looks at its tuples until nothing changes: drops what is far above the mean of the others."""

    def on_trigger(self, window: Any, key: Any) -> None:
        whole = self.part_of(window, key)
        while whole is not None:
            whole = self.emit_again(window, key, whole)

    before_flush = on_trigger

    def part_of(self, window: Any, key: Any) -> Any:
        return self._of(window, key, 100), 100, 0

    def _of(self, window: Any, key: Any, below: float) -> Any:
        values = [row["x"] for row in window[key] if row["x"] < below]
        return sum(values), len(values)

    def merge_parts(self, a: Any, b: Any) -> Any:
        return (a[0][0] + b[0][0], a[0][1] + b[0][1]), min(a[1], b[1]), max(a[2], b[2])

    def emit_again(self, window: Any, key: Any, whole: Any) -> Any:
        (total, size), below, rounds = whole
        limit = 1.5 * total / size if size else 0
        for row in window[key]:
            if limit <= row["x"] < below:
                self.emit(k=key, dropped=row["x"], round=rounds)
        return None if limit >= below else (self._of(window, key, limit), limit, rounds + 1)


def step(state: int, x: int) -> int:
    """One tuple more; the order counts."""
    return (state * 31 + x) % 1_000_003


OPERATORS: dict[str, Any] = {
    "merged": lambda window: Aggregate(
        window, n=agg.count(), s=agg.sum("x"), hi=agg.max("x"), a=agg.first("x"), m=agg.mean("x")
    ),
    "groups": lambda window: Aggregate(window, group_by="g", n=agg.count(), s=agg.sum("x")),
    "holistic": lambda window: Aggregate(window, m=agg.median("x"), xs=agg.collect("x")),
    "folded": lambda window: Aggregate(window, h=agg.custom(int, step, column="x")),
    "some": lambda window: Aggregate(window, s=agg.sum("x"), having=agg.sum("x") > 20),
    "skyline": lambda window: Skyline(window, "x", desc("g")),
    "top delta": lambda window: TopDelta(window, "x", desc("g"), "ts", delta=2, k="least"),
    "sort": lambda window: Sort("x", window=window),
    "at end": lambda window: Aggregate(window, s=agg.sum("x"), flush_at_end=True),
    "tuples": Spread,
    "columns": Total,
    "twice": AboveMean,
    "rounds": Trimmed,
}

# -- windows --------------------------------------------------------------------------------------

WINDOWS: dict[str, Any] = {
    "tumbling count": lambda **by: Tumbling(Count(4), **by),
    "tumbling time": lambda **by: Tumbling(Time("3s"), **by),
    "tumbling delta": lambda **by: Tumbling(Delta("ts", 4), **by),
    "tumbling punct": lambda **by: Tumbling(Punct(), **by),
    "tumbling either": lambda **by: Tumbling(Either(Count(4), Time("3s")), **by),
    "count count": lambda **by: Sliding(Count(5), every=Count(2), **by),
    "count count partial": lambda **by: Sliding(Count(7), every=Count(3), partial="emit", **by),
    "count by one": lambda **by: Sliding(Count(3), every=Count(1), **by),
    "hopping": lambda **by: Sliding(Count(2), every=Count(5), **by),
    "time time": lambda **by: Sliding(Time("5s"), every=Time("2s"), **by),
    "time hopping": lambda **by: Sliding(Time("2s"), every=Time("5s"), **by),
    "time count": lambda **by: Sliding(Time("4s"), every=Count(3), **by),
    "count time": lambda **by: Sliding(Count(4), every=Time("3s"), **by),
    "delta count": lambda **by: Sliding(Delta("ts", 5), every=Count(2), **by),
    "delta delta": lambda **by: Sliding(Delta("ts", 6), every=Delta("ts", 2), **by),
    "delta time": lambda **by: Sliding(Delta("ts", 5), every=Time("2s"), **by),
    "time delta": lambda **by: Sliding(Time("4s"), every=Delta("ts", 2), **by),
    "count delta": lambda **by: Sliding(Count(4), every=Delta("ts", 2), **by),
    "event tumbling": lambda **by: Tumbling(Event("at", 5), watermark=2, late="drop", **by),
    "event sliding": lambda **by: Sliding(
        Event("at", 6), every=Event("at", 4), watermark=4, late="port", **by
    ),
    "event session": lambda **by: Session(Event("at"), gap=2, watermark=3, late="drop", **by),
    "event landmark": lambda **by: Landmark(
        Event("at", 4), since=2, watermark=3, late="drop", **by
    ),
    "event session early": lambda **by: Session(
        Event("at"), gap=2, watermark=3, late="port", early="1s", **by
    ),
    "event session updated": lambda **by: Session(
        Event("at"), gap=1, watermark=1, late="update", allowed=8, retract=True, **by
    ),
    "event landmark early": lambda **by: Landmark(
        Event("at", 3), watermark=2, late="port", early="1s", **by
    ),
    "event keys": lambda **by: Tumbling(
        Event("at", 5), watermark=Watermark(2, scope="key"), late="drop", **by
    ),
    "event updated": lambda **by: Sliding(
        Event("at", 6), every=Event("at", 3), watermark=1, late="update", allowed=6, **by
    ),
    "event early": lambda **by: Tumbling(
        Event("at", 8), watermark=3, late="drop", early="2s", **by
    ),
}


def eager(workers: int) -> AdaptivePid:
    """A policy that splits whatever is larger than what came before it."""
    return AdaptivePid(workers, warmup=0, weight=1.0, patience=2)


FARMS: dict[str, Any] = {
    "agnostic": WindowFarm,
    "active": lambda op, **more: WindowFarm(op, active=True, **more),
    "partials": lambda op, **more: WindowFarm(op, partials=True, **more),
    "pane": PaneFarm,
    "gcd panes in parts": lambda op, **more: PaneFarm(op, panes="gcd", parts=2, **more),
    "panes by a policy": lambda op, **more: PaneFarm(op, parts=eager, **more),
    "partition": WindowPartition,
    "two parts": lambda op, **more: WindowPartition(op, parts=2, **more),
    "key": KeyFarm,
    "keys of parts": lambda op, **more: KeyFarm(WindowPartition(op, workers=2), **more),
    "keys of panes": lambda op, **more: KeyFarm(PaneFarm(op, workers=2), **more),
    "windows of parts": lambda op, **more: WindowFarm(WindowPartition(op, workers=2), **more),
    "windows of panes": lambda op, **more: WindowFarm(PaneFarm(op, workers=2), **more),
}


def made(kind: str, operator: Operator, **more: Any) -> Farm | None:
    """A farm, if the operator allows it."""
    try:
        found: Farm = FARMS[kind](operator, **more)
    except FarmError:
        return None
    return found


def operator_of(window: str, by: bool, operator: str) -> Any:
    """The operator of a case."""
    spec = WINDOWS[window](by="k") if by else WINDOWS[window]()
    return OPERATORS[operator](spec)


def allowed(window: str, by: bool, operator: str, kind: str) -> bool:
    """Whether there is such an operator, and such a farm of it."""
    try:
        return made(kind, operator_of(window, by, operator)) is not None
    except (ModelError, PartitionError):
        return False


@cache
def cases() -> list[tuple[str, bool, str, str]]:
    """All that is allowed; found when it is asked for, because workers import this module, too."""
    return [
        (window, by, operator, kind)
        for window in WINDOWS
        for by in (False, True)
        for operator in OPERATORS
        for kind in FARMS
        if allowed(window, by, operator, kind)
    ]


drawn_cases = st.deferred(lambda: st.sampled_from(cases()))

# -- running --------------------------------------------------------------------------------------


class Pickling(VirtualPool):
    """Virtual workers that are told and tell everything as bytes, as real ones do."""

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        super().send(worker, work, pickle.loads(pickle.dumps(args)), oldest)

    def wait(self, *, block: bool) -> Any:
        for answer in super().wait(block=block):
            yield pickle.loads(pickle.dumps(answer))


def slowly(farm: Farm | None, seed: int) -> Farm:
    """A farm with virtual workers that take random times."""
    assert farm is not None
    rng, kind = random.Random(seed), type(farm)

    def open_(start: Any = 0) -> Any:
        def pool(workers: int, setup: Any) -> Any:
            return Pickling(workers, setup, cost=lambda *_: rng.random())

        return kind.open(farm, start, pool=pool)

    farm.__dict__["open"] = open_
    return farm


class Failing(Pickling):
    """Workers that are killed now and then, with all that they had."""

    def __init__(self, workers: int, setup: Any, *, rng: random.Random) -> None:
        super().__init__(workers, setup, cost=lambda *_: rng.random())
        self._rng, self.kills = rng, 0

    def wait(self, *, block: bool) -> Any:
        if self._under_way and self.kills < 2 and self._rng.random() < 0.1:  # 3 of one task end it
            self.kills += 1
            worker = self._under_way[0][2]
            self._under_way = [task for task in self._under_way if task[2] != worker]
            heapify(self._under_way)
            self._workers[worker] = self._setup.worker(self._setup)
            yield WorkerDeath(worker, -9)
            return
        yield from super().wait(block=block)


def unlucky(farm: Farm | None, seed: int) -> tuple[Farm, Any]:
    """A farm whose workers are killed, and what changes their number while rows go in."""
    assert farm is not None
    rng, kind, running = random.Random(seed), type(farm), list[Any]()

    def open_(start: Any = 0) -> Any:
        def pool(workers: int, setup: Any) -> Any:
            return Failing(workers, setup, rng=rng)

        running.append(kind.open(farm, start, pool=pool))
        return running[-1]

    def resized(items: list[Any]) -> Any:
        for item in items:
            yield item
            if rng.random() < 0.1:
                running[-1].resize(rng.randint(1, 4))

    farm.__dict__["open"] = open_
    return farm, resized


def stream(seed: int, size: int, *, clock: bool, puncts: bool) -> list[Any]:
    """Rows with time that passes, punctuations, and values that come back."""
    rng, disorder, now = random.Random(seed), random.Random(seed), 0.0
    items: list[Any] = []
    for i in range(size):
        now += rng.choice([0, 0.25, 0.5, 1, 4])
        if clock and rng.random() < 0.5:
            items.append(advance(now))
        if puncts and rng.random() < 0.2:
            items.append(punct())
        row = {"k": rng.choice("aab"), "g": rng.randint(0, 2), "x": rng.randint(0, 9), "ts": i // 2}
        items.append({**row, "at": max(0, i // 2 + disorder.randint(-4, 4))})
    return items


streams = st.builds(
    stream, st.integers(0, 10**6), st.integers(0, 60), clock=st.just(True), puncts=st.booleans()
)


def sent(operator: Any, items: Any) -> list[Any]:
    """All that comes out, in order."""
    return list(replay(operator, items).items())


def by_key(items: list[Any]) -> dict[Any, list[Any]]:
    """The rows of each key, in order; without those of empty windows, which belong to none."""
    found: dict[Any, list[Any]] = {}
    for _, row in items:
        if isinstance(row, dict) and row["k"] is not None:
            found.setdefault(row["k"], []).append(row)
    return found


def batches(items: list[Any], size: int) -> list[pa.RecordBatch]:
    """Rows as Arrow batches."""
    rows = [item for item in items if isinstance(item, dict)]
    return [pa.RecordBatch.from_pylist(rows[at : at + size]) for at in range(0, len(rows), size)]


def total_order(window: str, operator: str, kind: str) -> bool:
    """Whether all rows come in one order: with keys on workers, only what rows themselves send."""
    later = any(word in window for word in ("time", "either", "punct", "event"))
    at_end = operator == "at end" or (operator == "sort" and "tumbling" not in window)
    later = later or at_end  # of the input, when a progressive sort lets out the rest
    return kind != "key" or not later
