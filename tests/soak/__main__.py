"""Long runs that must end as they began: `python -m tests.soak [NAME ...] [--minutes 60]`.

Each scenario compares what it gives with an undisturbed run or with arithmetic, and looks at memory
and the size of state where these must not grow. A table says how it went; 1 if anything differed.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from tests.soak import drift, faults, kills, tampers
from tests.spark.simulation import History
from tests.spark.test_bucket import spec_of
from windowlib import Count, Event, PartitionCount, Sliding, Time, Tumbling
from windowlib.columnar.arrays.encoding import stream_bytes
from windowlib.operators import Aggregate, agg
from windowlib.spark.bucket.bucket import Bucket, MicroBatch
from windowlib.spark.plan.shuffle import PackedRows

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "n": pa.int64()})
MIB = 1 << 20
MEASURED: dict[str, list[float]] = {}
"""MiB over the time of a scenario, by what they are of."""


def memory() -> float:
    """MiB that this process has now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


class Loop:
    """One bucket that is fed as Spark feeds it, and is restored from its state now and then."""

    def __init__(self, operator: Any, restores: int = 50) -> None:
        self.spec = spec_of(operator, SCHEMA)
        self.bucket, self.restores, self.batches = Bucket(self.spec, 0), restores, 0
        self.saved, self.log = b"", list[bytes]()
        self.rows = 0

    def step(self, batch: pa.RecordBatch, now: int | None = None) -> None:
        """One micro-batch."""
        chunk = PackedRows(0, 0, stream_bytes(batch))
        logged = sum(map(len, self.log))
        result = self.bucket.step(MicroBatch("run", (chunk,), now, len(self.saved), logged, False))
        if result.snapshot is not None:
            self.saved, self.log = result.snapshot, []
        elif result.entry is not None:
            self.log.append(result.entry)
        self.rows += result.counts["rows_out"]
        self.batches += 1
        if self.batches % self.restores == 0:
            self.bucket = Bucket.restored(self.spec, result.nonce, self.saved, self.log)

    @property
    def state(self) -> int:
        """Bytes in the store."""
        return len(self.saved) + sum(map(len, self.log))


def batch_of(ts: Any, k: Any, n: Any) -> pa.RecordBatch:
    """A micro-batch of rows."""
    return pa.record_batch([pa.array(ts), pa.array(k), pa.array(n)], schema=SCHEMA)


def flat(name: str, values: list[float], slack: float) -> None:
    """What is measured all the time must not be higher at the end than after the first third."""
    third = len(values) // 3
    early, late = max(values[third : 2 * third]), max(values[2 * third :])
    assert late <= early * 1.1 + slack, f"{name} grows: {early:.1f}, then {late:.1f}"


# -- scenarios ------------------------------------------------------------------------------------


def simulation(end: float) -> str:
    """Histories of a simulated Spark host, with faults of all kinds."""
    seed, batches = 10_000, 0
    while time.monotonic() < end:
        history = History(seed)
        history.run()
        seed, batches = seed + 1, batches + history.events.batches
    return f"{seed - 10_000:,} histories, {batches:,} micro-batches"


def churn(end: float) -> str:
    """500 micro-batches, each with other keys; partition eviction keeps the newest."""
    loop = Loop(Aggregate(Tumbling(Count(5), by="k", forget=PartitionCount(2000)), s=agg.sum("n")))
    sizes, used, seen = [], [], 0
    for number in range(500):
        keys = [number * 1000 + i // 4 for i in range(4000)]
        loop.step(batch_of([number] * 4000, keys, range(4000)))
        seen += 4000
        if number % 10 == 0:
            sizes.append(loop.state / MIB)
            used.append(memory())
    MEASURED["state of one bucket, churning keys"] = sizes
    MEASURED["memory of a process, churning keys"] = used
    flat("the state", sizes, 0.1)
    flat("memory", used, 10)
    return f"500 micro-batches, {seen:,} rows, state {sizes[-1]:.2f} MiB, memory {used[-1]:.0f} MiB"


def many_keys(end: float) -> str:
    """2,000,000 keys, each with two rows of one window."""
    loop = Loop(Aggregate(Tumbling(Count(2), by="k"), s=agg.sum("n")), restores=12)
    size = 200_000
    for turn in range(2):
        for at in range(0, 2_000_000, size):
            keys = range(at, at + size)
            loop.step(batch_of([turn] * size, keys, [turn + 1] * size))
        if not turn:
            held = loop.state / MIB
    assert loop.rows == 2_000_000, loop.rows
    return f"2,000,000 keys, {held:.0f} MiB of state with one row each; all windows came out"


def hot_key(end: float) -> str:
    """One key with 10,000,000 rows."""
    loop = Loop(Aggregate(Sliding(Count(1000), every=Count(100), by="k"), s=agg.sum("n")))
    size, used = 50_000, []
    for number in range(200):
        first = number * size
        loop.step(batch_of([number] * size, [7] * size, range(first, first + size)))
        used.append(memory())
    assert loop.rows == 99_991, loop.rows  # the first with the 1000th row, then each 100
    MEASURED["memory of a process, one hot key"] = used
    flat("memory", used, 20)
    return f"10,000,000 rows, memory {used[-1]:.0f} MiB, state {loop.state / MIB:.2f} MiB"


def idle(end: float) -> str:
    """A window with a time policy, without rows for a week of ticks, then rows again."""
    loop = Loop(Aggregate(Tumbling(Time("1min"), by="k"), s=agg.sum("n")))
    empty, now, sizes = batch_of([], [], []), 0, []
    loop.step(batch_of([0], [1], [5]), now)
    for _ in range(2000):
        now += 300_000_000
        loop.step(empty, now)
        sizes.append(loop.state / MIB)
    loop.step(batch_of([0], [1], [6]), now)
    loop.step(empty, now + 60_000_000)
    assert loop.rows == 2, loop.rows
    flat("the state", sizes, 0.01)
    return f"2,000 micro-batches without rows, {now / 86_400e6:.1f} days, state {sizes[-1]:.3f} MiB"


def clock_back(end: float) -> str:
    """The clock of the machine is set back by an hour: nothing fires twice, or is lost."""
    found = []
    for jump in (0, -3600):
        loop, now = Loop(Aggregate(Tumbling(Time("10s"), by="k"), s=agg.sum("n")), 7), 7_200
        for number in range(300):
            at = now + number * 3 + (jump if 100 <= number < 200 else 0)
            stands = now + 297 if 100 <= number < 200 else now + number * 3
            loop.step(batch_of([number], [1], [1]), (at if jump else stands) * 1_000_000)
        found.append(loop.rows)
    assert found[0] == found[1], found
    return (
        f"300 micro-batches, 100 of them an hour earlier: {found[0]} windows as if it stood still"
    )


def daylight_saving(end: float) -> str:
    """Hourly windows of local times over a night with 23, and one with 25 hours."""
    zone, counts = ZoneInfo("Europe/Berlin"), []
    for day, hours in (("2024-03-31", 23), ("2024-10-27", 25)):
        start = datetime.fromisoformat(day).replace(tzinfo=zone)
        first = start.astimezone(ZoneInfo("UTC"))
        times = [first + timedelta(minutes=10 * i) for i in range(6 * hours)]
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", "Europe/Berlin"))})
        op = Aggregate(Tumbling(Event("ts", "1h")), rows=agg.count(), at=agg.window_start())
        running, out = op.open(), list[Any]()
        running.connect(0, out.append)
        running.insert_batch(table)
        running.finish()
        assert [row["rows"] for row in out] == [6] * hours, (day, out)
        assert len({row["at"].timestamp() for row in out}) == hours
        counts.append(len(out))
    return f"{counts[0]} and {counts[1]} windows, with six rows each"


def sums(end: float) -> str:
    """Sums that slide over adversarial floats."""
    drift.main(100_000)
    return "no drift"


def killed(end: float) -> str:
    """Queries whose driver is killed (-9) at random steps, until the time is up."""
    done, seed = 0, random.randrange(1 << 30)
    while not done or time.monotonic() < end:
        done += kills.round_of(seed)
        seed += 1
    return f"{done} kills of the driver; the same rows"


def faulty(master: str, end: float) -> str:
    """Operators of all kinds whose processes are killed and stopped, until the time is up."""
    found = faults.run(end, master)
    where = "two executors" if master == faults.CLUSTER else "local"
    MEASURED[f"largest Python worker under faults, {where}"] = found.memory
    MEASURED[f"seven checkpoints under faults, {where}"] = found.state
    return found.told()


def tampered(end: float) -> str:
    """3,000 tampers of stored buckets: each is refused, or changes nothing."""
    went = tampers.main(3000, random.randrange(1 << 30), tell=str)
    return ", ".join(f"{count} {name}" for name, count in went.most_common())


SCENARIOS: dict[str, tuple[float, Callable[[float], str]]] = {
    "simulation": (10, simulation),
    "churn": (0, churn),
    "many_keys": (0, many_keys),
    "hot_key": (0, hot_key),
    "idle": (0, idle),
    "clock_back": (0, clock_back),
    "daylight_saving": (0, daylight_saving),
    "sums": (0, sums),
    "tampers": (0, tampered),
    "killed": (10, killed),
    "faults": (15, partial(faulty, faults.LOCAL)),
    "cluster": (15, partial(faulty, faults.CLUSTER)),
}
"""By name: how many of 60 minutes it takes (0: as long as it needs), and what it does."""


def main(argv: list[str] | None = None) -> int:
    """Run scenarios, and print how they went."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--record", type=Path, help="a JSON file for memory and state over time")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(unknown)}. There are {', '.join(SCENARIOS)}")
    chosen = {name: SCENARIOS[name] for name in given.names or SCENARIOS}
    wrong = 0
    for name, (part, run) in chosen.items():
        start = time.monotonic()
        try:
            share = 1 if len(chosen) == 1 else part / 60
            told = f"ok     {run(start + 60 * given.minutes * share)}"
        except Exception as error:
            wrong += 1
            told = f"WRONG  {type(error).__name__}: {error}"
        print(f"{name:<16}{time.monotonic() - start:7.0f} s  {told}", flush=True)
    if given.record is not None:
        before = json.loads(given.record.read_text()) if given.record.exists() else {}
        given.record.write_text(json.dumps(before | {k: thinned(v) for k, v in MEASURED.items()}))
    return int(wrong > 0)


def thinned(values: list[float], most: int = 100) -> list[float]:
    """The largest values of parts of a series."""
    step = -(-len(values) // most)
    return [round(max(values[at : at + step]), 3) for at in range(0, len(values), step)]


if __name__ == "__main__":
    sys.exit(main())
