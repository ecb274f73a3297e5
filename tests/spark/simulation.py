"""A simulation of the Spark host: buckets, a versioned state store, workers and their caches.

A seed makes a history: micro-batches of rows for some buckets, and what goes wrong with them. Tasks
are aborted at a write of state or after it, retried elsewhere, run twice at once; answers of other
workers get lost; workers die, or are paused and come back with what they had; drivers die with a
micro-batch half committed, and run it again; a checkpoint is copied, and both copies go on with
other rows. Every committed micro-batch must have given what one process gives that is never
disturbed. Nothing of Spark runs, so a history takes milliseconds.

    python -m tests.spark.simulation --seeds 5000 --first 0
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

from tests.spark.test_bucket import spec_of
from windowlib import Count, Event, Operator, OperatorModel, PartitionCount, Sliding, Time, Tumbling
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.operators import Aggregate, Dedup, Join, Sort, agg
from windowlib.spark.bucket import processor as processor_module
from windowlib.spark.bucket import state_cache as cache_module
from windowlib.spark.bucket.bucket import BucketSpec
from windowlib.spark.bucket.processor import Processor
from windowlib.spark.bucket.state_cache import StateCache

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()})
SLACK = 4


class Spread(Operator):
    """Somebody's own handlers: a count of its own, beside the window."""

    model = OperatorModel(windows=[Sliding])

    def __init__(self, window: Any) -> None:
        super().__init__(window)
        self.count = 0

    def on_trigger(self, window: Any, key: Any) -> None:
        self.count += 1
        values = [row["n"] for row in window[key]]
        self.emit({"k": key, "spread": max(values) - min(values), "count": self.count})

    def schema(self, *_: Any) -> pa.Schema:
        return pa.schema({"k": pa.string(), "spread": pa.int64(), "count": pa.int64()})

    def snapshot(self) -> Any:
        return {"count": self.count}

    def restore(self, state: Any) -> None:
        self.count = state["count"]


SUMS: dict[str, Any] = {"sum": agg.sum("n"), "rows": agg.count()}
OPERATORS: dict[str, Callable[[], Operator]] = {
    "tumbling": lambda: Aggregate(Tumbling(Count(3), by="k", order_by="n"), SUMS),
    "sliding": lambda: Aggregate(Sliding(Count(4), every=Count(2), by="k", order_by="n"), SUMS),
    "forgetful": lambda: Aggregate(
        Tumbling(Count(3), by="k", order_by="n", forget=PartitionCount(2)), SUMS
    ),
    "time": lambda: Aggregate(Tumbling(Time("5s"), by="k", order_by="n"), SUMS),
    "event time": lambda: Aggregate(Tumbling(Event("ts", 6), by="k", watermark=SLACK), SUMS),
    "sessions": lambda: Aggregate(
        Sliding(Event("ts", 8), every=Event("ts", 4), by="k", watermark=SLACK), SUMS
    ),
    "join": lambda: Join(
        left=Sliding(Count(3), order_by="n"), right=Sliding(Count(2), order_by="n"),
        on="k", how="outer", suffixes=("_l", "_r"),
    ),
    "sort": lambda: Sort("ts", window=Sliding(Count(3), by="k", order_by="n")),
    "dedup": lambda: Dedup("ts", within=Count(4), by="k"),
    "handlers": lambda: Spread(Sliding(Count(3), every=Count(2), by="k", order_by="n")),
}  # fmt: skip


# -- the state store ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """The state of one bucket in one version of the store."""

    values: tuple[tuple[Any, Any], ...] = ()
    timers: frozenset[int] = frozenset()


class WriteError(OSError):
    """A write of state that fails."""


class Values:
    """What Spark calls a map state, of a transaction."""

    def __init__(self, transaction: "Transaction") -> None:
        self.t = transaction

    # Spark's names, not ours.
    # ruff: noqa: N802
    def getValue(self, key: Any) -> Any:
        return self.t.values.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.t.write()
        self.t.values[key] = value

    def clear(self) -> None:
        self.t.write()
        self.t.values.clear()


class Transaction:
    """What one attempt of a task changes of a bucket; it counts if the attempt is committed."""

    def __init__(self, stored: Stored, fails_at: int | None = None) -> None:
        self.values, self.timers = dict(stored.values), set(stored.timers)
        self.writes, self.fails_at = 0, fails_at

    def write(self) -> None:
        """Every write of state comes here first."""
        if self.writes == self.fails_at:
            raise WriteError(28, "No space left on device")
        self.writes += 1

    def getMapState(self, *_: Any) -> Values:
        return Values(self)

    def registerTimer(self, at: int) -> None:
        self.write()
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.write()
        self.timers.remove(at)

    def stored(self) -> Stored:
        return Stored(tuple(self.values.items()), frozenset(self.timers))


# -- workers --------------------------------------------------------------------------------------


class Worker(StateCache):
    """A Python worker: its cache, and its answers to others, which may get lost."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        super().__init__()
        self.cluster, self.name = cluster, name

    @property
    def address(self) -> str:
        return f"here {self.name}"

    def ask(self, address: str, nonce: str, batch: Any) -> Any:
        """As over a socket: it may be gone, or paused, or answer when nobody listens any more."""
        other = self.cluster.workers.get(address.partition(" ")[2])
        chance = self.cluster.chance
        if other is None or other is self or chance.random() < 0.1:
            return None
        result = other.step(nonce, batch)
        return None if chance.random() < 0.2 else result


class Cluster:
    """Workers that come and go."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.names = chance, 0
        self.workers: dict[str, Worker] = {}
        self.paused: list[Worker] = []
        for _ in range(3):
            self.start()

    def start(self) -> None:
        self.names += 1
        name = f"w{self.names}"
        self.workers[name] = Worker(self, name)

    def disturb(self) -> None:
        """A worker dies, or stands still for a while, or goes on with what it had."""
        draw = self.chance.random()
        name = self.chance.choice(list(self.workers))
        if draw < 0.15:
            del self.workers[name]
            self.start()
        elif draw < 0.3:
            self.paused.append(self.workers.pop(name))
            self.start()
        elif draw < 0.45 and self.paused:
            worker = self.paused.pop(0)
            self.workers[worker.name] = worker

    def any(self) -> Worker:
        return self.chance.choice(list(self.workers.values()))


@contextmanager
def inside(worker: Worker) -> Iterator[None]:
    """Run in a worker: the cache of the process is its cache."""
    before = cache_module.STATE_CACHE
    for module in (cache_module, processor_module):
        vars(module)["STATE_CACHE"] = worker
    try:
        yield
    finally:
        for module in (cache_module, processor_module):
            vars(module)["STATE_CACHE"] = before


# -- a query --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrivals:
    """A micro-batch as the offset log has it: rows of each input, the time, the watermark."""

    sides: tuple[tuple[dict[str, Any], ...], ...]
    now: int
    watermark: int
    buckets: int


@dataclass
class Query:
    """A query with its checkpoint: versions of the state, and what was committed with each."""

    spec: BucketSpec
    buckets: int
    versions: list[dict[int, Stored]] = field(default_factory=lambda: [{}])
    output: list[list[Any]] = field(default_factory=list)
    inputs: list[Arrivals] = field(default_factory=list)

    def fork(self) -> "Query":
        lists = list(self.versions), list(self.output), list(self.inputs)
        return Query(self.spec, self.buckets, *lists)


def chunks_of(arrivals: Arrivals, bucket: int, chance: random.Random | None) -> list[Row]:
    """What the shuffle brings to a bucket, of two tasks an input, in any order."""
    found = []
    for side, rows in enumerate(arrivals.sides):
        for place, task in enumerate((rows[::2], rows[1::2])):
            mine = [row for row in task if ord(row["k"]) % arrivals.buckets == bucket]
            if mine:
                data = stream_bytes(pa.RecordBatch.from_pylist(mine, SCHEMA))
                found.append(Row(side=side, place=place, data=data))
    if chance is not None:
        chance.shuffle(found)
    return found


def attempt(
    spec: BucketSpec, worker: Worker, transaction: Transaction, bucket: int, arrivals: Arrivals,
    chance: random.Random | None,
) -> list[Any]:  # fmt: skip
    """One attempt of a task at one bucket; the rows that it gives."""
    processor = Processor(spec)
    processor.init(transaction)  # type: ignore[arg-type]
    timers = TimerValues(arrivals.now, arrivals.watermark)
    made: list[Any] = []
    with inside(worker):
        if chunks := chunks_of(arrivals, bucket, chance):
            made += processor.handleInputRows((bucket,), iter(chunks), timers)
        limit = arrivals.watermark - 1 if spec.follows else arrivals.now
        for at in sorted(at for at in transaction.timers if at <= limit):
            info = ExpiredTimerInfo(at)
            made += processor.handleExpiredTimer((bucket,), timers, info)
            transaction.timers.discard(at)  # Spark's to delete
    return [
        (row.port, values)
        for row in made
        if row.data is not None
        for values in stream_table(row.data).to_pylist()
    ]


def undisturbed(query: Query) -> list[list[Any]]:
    """What one process gives that nothing disturbs, micro-batch by micro-batch."""
    worker = Worker(Cluster(random.Random(0)), "only")
    stored: dict[int, Stored] = {}
    found = []
    for arrivals in query.inputs:
        rows: list[Any] = []
        for bucket in range(query.buckets):
            transaction = Transaction(stored.get(bucket, Stored()))
            rows += attempt(query.spec, worker, transaction, bucket, arrivals, None)
            stored[bucket] = transaction.stored()
        found.append(rows)
    return found


# -- a history ------------------------------------------------------------------------------------


@dataclass
class Events:
    """What has happened in a history, for those who doubt that anything has."""

    aborted: int = 0
    failed_writes: int = 0
    speculative: int = 0
    rolled_back: int = 0
    restarts: int = 0
    forks: int = 0
    batches: int = 0


class History:
    """Everything that happens to a query, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = chance = random.Random(seed)
        names = list(OPERATORS)
        self.name = names[seed % len(names)]
        operator = OPERATORS[self.name]()
        self.two = len(operator.model.inputs) == 2
        spec = spec_of(operator, *[SCHEMA] * (1 + self.two))
        if self.name in ("event time", "sessions"):
            spec = replace(spec, follows=1)
        self.cluster = Cluster(chance)
        self.queries = [Query(replace(spec, nonce=f"run {seed} 0"), chance.randint(1, 2))]
        self.events = Events()
        self.ts, self.n, self.now = 1, 0, 1000

    def run(self) -> None:
        """Some micro-batches, with everything that goes wrong; raises if an output is wrong."""
        for _ in range(self.chance.randint(2, 5)):
            query = self.chance.choice(self.queries)
            if self.chance.random() < 0.12 and query.output:
                self._fork(query)
            if self.chance.random() < 0.2:
                self.events.restarts += 1
                nonce = f"run {self.seed} {self.events.restarts}"
                query.spec = replace(query.spec, nonce=nonce)
            self._micro_batch(query)
        self.check()

    def check(self) -> None:
        """Compare what was committed with what an undisturbed process gives."""
        for query in self.queries:
            wanted = undisturbed(query)
            for number, (got, want) in enumerate(zip(query.output, wanted, strict=True)):
                if got != want:
                    msg = f"seed {self.seed} ({self.name}), batch {number}: {got} != {want}"
                    raise AssertionError(msg)

    def _fork(self, query: Query) -> None:
        """A copy of the checkpoint as it is, or as it was some micro-batches ago."""
        self.events.forks += 1
        back = self.chance.randint(0, len(query.output))
        fork = query.fork()
        keep = len(query.output) - back
        fork.versions = fork.versions[: keep + 1]
        fork.output, fork.inputs = fork.output[:keep], fork.inputs[:keep]
        if self.chance.random() < 0.5:  # and not both at once, in one session
            fork.spec = replace(fork.spec, nonce=f"fork {self.seed} {self.events.forks}")
        self.queries.append(fork)

    def _micro_batch(self, query: Query) -> None:
        arrivals = self._arrivals(query)
        self.events.batches += 1
        base = query.versions[-1]
        while True:
            new, rows = dict(base), list[Any]()
            for bucket in range(query.buckets):
                self.cluster.disturb()
                new[bucket], made = self._task(query, base.get(bucket, Stored()), bucket, arrivals)
                rows += made
            if self.chance.random() > 0.1:
                break
            self.events.rolled_back += 1  # the driver dies before the commit: the same once more
        query.versions.append(new)
        query.output.append(rows)
        query.inputs.append(arrivals)

    def _task(
        self, query: Query, stored: Stored, bucket: int, arrivals: Arrivals
    ) -> tuple[Stored, list[Any]]:
        """Attempts at one bucket, until one is committed."""
        while True:
            draw = self.chance.random()
            fails_at = self.chance.randint(0, 2) if draw < 0.15 else None
            transaction = Transaction(stored, fails_at)
            try:
                rows = self._attempt(query, transaction, bucket, arrivals)
            except WriteError:
                self.events.failed_writes += 1
                continue
            if draw > 0.9:  # done, and lost on the way
                self.events.aborted += 1
                continue
            if draw > 0.8:  # another attempt was under way, and one of them counts
                self.events.speculative += 1
                second = Transaction(stored)
                others = self._attempt(query, second, bucket, arrivals)
                if self.chance.random() < 0.5:
                    transaction, rows = second, others
            return transaction.stored(), rows

    def _attempt(
        self, query: Query, transaction: Transaction, bucket: int, arrivals: Arrivals
    ) -> list[Any]:
        worker = self.cluster.any()
        return attempt(query.spec, worker, transaction, bucket, arrivals, self.chance)

    def _arrivals(self, query: Query) -> Arrivals:
        chance = self.chance
        sides = tuple(tuple(self._rows(chance.choice((0, 2, 5)))) for _ in range(1 + self.two))
        self.now += chance.choice((0, 1000, 4000, 20_000))
        before = query.inputs[-1].watermark if query.inputs else 0
        seen = [row["ts"] for done in query.inputs for row in done.sides[0]]
        watermark = max([before, *(ts - SLACK for ts in seen)])
        return Arrivals(sides, self.now, watermark, query.buckets)

    def _rows(self, count: int) -> Iterator[dict[str, Any]]:
        for _ in range(count):
            self.ts += self.chance.randint(0, 3)
            self.n += 1
            late = self.chance.choice((0, 0, 2))
            yield {"ts": self.ts - late, "k": self.chance.choice("abcd"), "n": self.n}


def main() -> int:
    """Run many histories; 1 if one of them gives something else."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    wrong, total = 0, Events()
    for seed in range(given.first, given.first + given.seeds):
        history = History(seed)
        try:
            history.run()
        except Exception as error:
            wrong += 1
            print(f"seed {seed} ({history.name}): {error!r}")
        for name, value in vars(history.events).items():
            setattr(total, name, getattr(total, name) + value)
    print(f"{given.seeds} histories, {wrong} wrong; {total}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
