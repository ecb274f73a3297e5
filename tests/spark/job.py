"""A program with three queries, which tests kill and start again: `python -m tests.spark.job DIR`.

The queries read files, one a micro-batch, and write a file for each micro-batch, whole or not at
all. A micro-batch that runs once more must bring the same rows as before; if not, it is noted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib import Count, Event, Operator, OperatorModel, Sliding, Tumbling
from windowlib.farms import Farm, PaneFarm, WindowFarm, WindowPartition
from windowlib.operators import Aggregate, Dedup, Join, Sort, agg

KEYS = "abcdefg"
FILES = int(os.environ.get("JOB_FILES", "6"))
"""More of them for programs that run longer."""
ROWS = 60
POISON = 2 * (FILES - 1) * ROWS + 20
"""The `ts` of the row at which an operator can be told to fail, in the last file."""
SCHEMA = "ts long, k string, v long"
STAGES = ("before", "made", "written")
"""Where a program can be told to die: before the rows of a micro-batch are made, when they are made
(and so the state is written), and when they are written (and Spark has yet to commit)."""


class Peaks(Operator):
    """For each window, its largest value, and how often its key has had a new record."""

    model = OperatorModel(windows=[Tumbling])
    output = "k string, first long, peak long, records long, seen long"

    def __init__(self, window, fail: str | None = None):
        super().__init__(window)
        self.fail = fail
        self.records: dict[str, list[int]] = {}
        self.seen: dict[str, int] = {}

    def describe(self):
        """How it fails is not what it means."""
        return {name: text for name, text in super().describe().items() if name != "fail"}

    def splits_by(self, port):
        return ("k",)

    def after_insert(self, window, tuple_, key):
        if self.fail is not None and tuple_["ts"] == POISON and not os.path.exists(self.fail):
            Path(self.fail).touch()
            raise RuntimeError("it fails once")
        self.seen[key] = self.seen.get(key, 0) + 1
        best = self.records.setdefault(key, [])
        if not best or tuple_["v"] > best[-1]:
            best.append(tuple_["v"])

    def before_flush(self, window, key):
        rows = list(window[key])
        peak = max(row["v"] for row in rows)
        records, seen = len(self.records[key]), self.seen[key]
        self.emit(k=key, first=rows[0]["ts"], peak=peak, records=records, seen=seen)

    def snapshot(self):
        return {"records": self.records, "seen": self.seen}

    def restore(self, state):
        self.records, self.seen = state["records"], state["seen"]


def operators(fail: str | None = None) -> dict[str, Operator]:
    """What the queries run, by name; `fail` names a file, without which one of them fails."""
    slide = Sliding(Count(10), every=Count(3), by="k", order_by="ts")
    recent = Sliding(Count(3))
    return {
        "means": Aggregate(slide, at=agg.last("ts"), mean=agg.mean("v"), n=agg.count()),
        "peaks": Peaks(Tumbling(Count(4), by="k", order_by="ts"), fail=fail),
        "pairs": Join(left=recent, right=recent, on="k", partition_by="k"),
    }


def farms() -> dict[str, Farm]:
    """Farms, which run only if they are named; their rows have the number of their window."""
    slide = Sliding(Count(8), every=Count(4), by="k", order_by="ts")
    middles = Aggregate(slide, mid=agg.median("v"))
    ends = Aggregate(slide, first=agg.first("v"), high=agg.max("v"), last=agg.last("v"))
    return {
        "middles": WindowFarm(middles, workers=2),
        "actives": WindowFarm(middles, workers=2, active=True),
        "slices": PaneFarm(ends, workers=2),
        "pieces": WindowPartition(ends, workers=2),
    }


def others() -> dict[str, Operator]:
    """Operators of other kinds, which run only if they are named."""
    recent, hours = Sliding(Count(3)), Tumbling(Event("ts", 25), by="k", late="drop")
    return {
        "sorts": Sort("v", window=Tumbling(Count(5), by="k", order_by="ts")),
        "firsts": Dedup("v", within=Count(20), by="k"),
        "hours": Aggregate(hours, n=agg.count(), most=agg.max("v")),
        "alone": Join(
            left=recent, right=recent, on="k", partition_by="k", how="left", unmatched="port",
            where=lambda left, right: abs(left["v"] - right["v"]) < 100,
        ),
    }  # fmt: skip


# After a kill Spark may cut two sources otherwise, so joins take their rows in the order of time.
HOSTED: dict[str, dict[str, Any]] = {
    "pairs": {"times": "ts", "watermark": "0s"},
    "firsts": {"order_by": "ts"},
    "alone": {"times": "ts", "watermark": "0s", "port": "unmatched_left"},
}
"""What `attach` is told beside the operator."""


def rows(side: int, seed: int = 1) -> list[dict[str, Any]]:
    """The rows of an input, in order; the two inputs never have the same `ts`."""
    rng = random.Random(f"{seed} {side}")
    return [
        {"ts": 2 * at + side, "k": rng.choice(KEYS), "v": rng.randrange(1000)}
        for at in range(FILES * ROWS)
    ]


def write_input(directory: Path, seed: int = 1) -> None:
    """The rows of both inputs as files, of which Spark takes the oldest first."""
    for side in range(2):
        folder = directory / f"in{side}"
        folder.mkdir(parents=True)
        mine = rows(side, seed)
        for number in range(FILES):
            path = folder / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(mine[number * ROWS : (number + 1) * ROWS]), path)
            os.utime(path, (number + 1, number + 1))


def expected(name: str, seed: int = 1) -> dict[str, list[dict[str, Any]]]:
    """What a query writes if nothing happens, by key: the operator without Spark."""
    farm, made = farms().get(name), list[Any]()
    operator = (operators() | others())[name] if farm is None else farm.operator
    running, options = operator.open(), HOSTED.get(name, {})
    running.connect(options.get("port", 0), made.append)
    sides = range(len(operator.model.inputs))
    both = [(row["ts"], side, row) for side in sides for row in rows(side, seed)]
    end = min(rows(side, seed)[-1]["ts"] for side in sides) if "times" in options else math.inf
    for ts, side, row in sorted(both, key=lambda each: each[:2]):
        if ts < end:  # others still wait for the watermark of both
            running.insert(row, side)
    found = by_key(made)
    for mine in found.values() if farm is not None else ():
        for number, row in enumerate(mine):
            row["_window"] = number
    return found


def by_key(found: list[Any]) -> dict[str, list[dict[str, Any]]]:
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        parts.setdefault(row["k"], []).append(dict(row))
    return parts


def written(directory: Path, name: str) -> dict[str, list[dict[str, Any]]]:
    """What a query has written, by key, in the order of its micro-batches."""
    files = sorted((directory / "out" / name).glob("*.json"), key=lambda path: int(path.stem))
    assert [int(path.stem) for path in files] == list(range(len(files)))
    return by_key([row for path in files for row in json.loads(path.read_text())])


class Sink:
    """Writes a micro-batch: its file is there whole, or not at all."""

    def __init__(self, directory: Path, name: str, die: str) -> None:
        self.folder, self.name, self.die = directory / "out" / name, name, die
        self.folder.mkdir(parents=True, exist_ok=True)
        self.differs = directory / "differs"

    def __call__(self, frame: Any, batch: int) -> None:
        self._stage("before", batch)
        found = [row.asDict() for row in frame.collect()]
        found.sort(key=lambda row: row.get("_window", 0))  # the tasks of a farm end in any order
        text = json.dumps(found)
        self._stage("made", batch)
        path = self.folder / f"{batch}.json"
        if path.exists() and by_key(json.loads(path.read_text())) != by_key(json.loads(text)):
            with self.differs.open("a") as out:
                out.write(f"{self.name} {batch}: {path.read_text()} became {text}\n")
        part = path.with_suffix(".part")
        part.write_text(text)
        os.replace(part, path)
        self._stage("written", batch)

    def _stage(self, stage: str, batch: int) -> None:
        if self.die == f"{self.name}:{batch}:{stage}":
            os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run the queries until there is no more input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--only", help="the queries to run, with commas between them")
    parser.add_argument("--die", default="", metavar="QUERY:BATCH:STAGE")
    parser.add_argument("--local", action="store_true", help="checkpoints are on a local disk")
    parser.add_argument("--fail", help="a file without which an operator fails")
    args = parser.parse_args()

    from windowlib.spark import attach, session

    conf = dict(pair.split("=", 1) for pair in args.conf)
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(args.directory / "tmp"),
        "spark.sql.warehouse.dir": str(args.directory / "tmp"),
    } | conf
    named = {name.replace(".", "__"): value for name, value in conf.items()}
    spark = session(args.master, local_checkpoints=args.local, **named)
    queries = []
    known = operators(args.fail)
    wanted = list(known) if args.only is None else args.only.split(",")
    for name in wanted:
        operator = known.get(name) or others().get(name) or farms()[name]
        inputs = [
            spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(args.directory / f"in{side}"))
            for side in range(len(operator.model.inputs))
        ]
        attached = attach(operator, numbered=name in farms(), **HOSTED.get(name, {}))
        writer = attached(*inputs).writeStream.foreachBatch(Sink(args.directory, name, args.die))
        checkpoint = str(args.directory / "checkpoints" / name)
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        queries.append(writer.start())
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
