"""The same rows give the same answers: replayed, in a static DataFrame, and in a stream.

A stream is cut into micro-batches, with a restart from the checkpoint between them.
"""
# ruff: noqa: SIM300 - asserts read expected first

import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.spark import cases
from tests.spark.stream_runs import (
    Query,
    by_key,
    by_name,
    grouped,
    shaped,
    stream,
    unended,
    union,
)
from tests.spark.stream_runs import write as write_rows
from windowlib import replay, to
from windowlib.errors import OrderWarning
from windowlib.spark import attach

UNTIMED = {**cases.ONE_INPUT, **cases.TWO_INPUTS, **cases.LATE}
# Of those that differ only within the operator, one: each costs a process of Spark's. That all of
# them may be cut and restored anywhere is shown without Spark, in test_bucket.py; time, in
# test_time.py.
STREAMED = {
    name: UNTIMED[name]
    for name in (
        "tumbling count",
        "tumbling delta",
        "sliding count",
        "sliding delta, delta",
        "without a key",
        "groups",
        "changed",
        "partition eviction, one bucket",
        "many buckets",
        "progressive sort",
        "dedup, duplicates",
        "handlers",
        "handlers with columns, sliding",
        "declared state, sliding",
        "declared state, two inputs",
        "one output of two",
        "a chain",
        "a chain with punctuation",
        "late rows aside",
        "reordered, late rows aside",
        "outer",
        "unmatched",
        "band",
        "lookup",
        "pair",
        "graph",
    )
}
# One query of very different cases shows in a minute what the others show at length.
SHORT = (
    "tumbling count",
    "partition eviction, one bucket",
    "handlers",
    "late rows aside",
    "outer",
    "graph",
)
GROUPS = [list(SHORT), *grouped((name for name in STREAMED if name not in SHORT), 9)]
STATIC = {**UNTIMED, **cases.AT_THE_END}


def sides_of(name, cut):
    """The rows of each input of a case in one cut."""
    if name in cases.LATE:
        return [cases.late_rows(cut)]
    return [cases.kept(cut, side) for side in range({**STATIC, **cases.TIMED}[name].sides)]


def sides_of_all(name):
    """All rows of each input of a case."""
    cuts = [sides_of(name, cut) for cut in range(cases.CUTS)]
    return [[row for rows in side for row in rows] for side in zip(*cuts, strict=True)]


def attached(case, frames, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderWarning)  # some have no windows to say it of
        return attach(case.operator, **case.attach, **options)(*frames)


def close(a, b):
    """Whether two values are the same; floats may differ in how they were added up."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return type(a) is type(b) and a == b


def check(case, want, got):
    """The same rows for every key, in the same order."""
    want, got = by_key(want, case.key), by_key(got, case.key)
    assert want.keys() == got.keys()
    for key, rows in want.items():
        assert len(rows) == len(got[key]), key
        for number, (row, other) in enumerate(zip(rows, got[key], strict=True)):
            assert close(row, other), (key, number, row, other)
    assert want, "a case that makes no rows proves nothing"


# -- static DataFrames --


@pytest.fixture(scope="module")
def static(spark, tmp_path_factory):
    """What every case gives for static DataFrames, all computed at once."""
    home = tmp_path_factory.mktemp("static")
    sources = {
        "left": (sides_of_all("inner")[0], cases.SCHEMA),
        "right": (sides_of_all("inner")[1], cases.RIGHT),
        "late": (sides_of_all("late rows aside")[0], cases.SCHEMA),
    }
    frames = {}
    for name, (rows, schema) in sources.items():
        write_rows(home / name, 0, rows, schema)
        frames[name] = spark.read.parquet(str(home / name))
    made = {}
    for name, case in {**STATIC, **cases.TIMED}.items():
        given = [frames["left"], frames["right"]][: case.sides]
        given = [frames["late"]] if name in cases.LATE else given
        made[name] = attached(case, given, **({"times": "ts"} if name in cases.TIMED else {}))
    columns = {name: frame.columns for name, frame in made.items()}
    found: dict[str, list[dict[str, Any]]] = {}
    for names in grouped(made):
        found |= by_name(union({name: made[name] for name in names}).collect())
    return columns, found


def replayed(name, case):
    sides = sides_of_all(name)
    if name == "age":
        return aged(case.operator, *sides)
    if name in cases.TIMED:
        return replay(case.operator, *sides, times="ts").items()
    if case.sides == 1:
        (rows,) = sides
        if None not in case.orders:  # a static DataFrame is sorted as a whole
            rows = sorted(rows, key=lambda row: row["ts"])
        return replay(case.operator, rows).items()
    ports = [port.name for port in case.operator.model.inputs]
    tagged = [to(port, row) for port, rows in zip(ports, sides, strict=True) for row in rows]
    if None not in case.orders:
        tagged.sort(key=lambda each: each.row["ts"])  # at equal times the first input first
    return replay(case.operator, tagged).items()


def aged(operator, rows):
    """What replay gives where partitions age by themselves, as on Spark."""
    running, out = operator.open(rows[0]["ts"]), list[Any]()
    running.isolate_partition_ages()
    for number, port in enumerate(operator.model.outputs):
        running.connect(number, lambda row, name=port.name: out.append((name, row)))
    for row in rows:
        running.advance(row["ts"])
        running.insert(row)
    running.finish()
    return out


def rows_only(items, case):
    wanted = case.attach.get("port")
    return [
        (port, row)
        for port, row in items
        if isinstance(row, dict) and (wanted is None or port == wanted)
    ]


@pytest.mark.parametrize("name", [*STATIC, *cases.TIMED])
def test_a_static_dataframe_gives_what_replay_gives(static, name):
    columns, found = static
    case = {**STATIC, **cases.TIMED}[name]
    want = shaped(rows_only(replayed(name, case), case), columns[name])
    check(case, want, found.get(name, []))


# -- streams --


class Streams:
    """What cases give in a stream: two micro-batches, then a new query and the third.

    The cases of a group are one query, which runs when the first of them is asked for.
    """

    def __init__(self, spark, home):
        self.spark, self.home = spark, home
        self._queries: dict[int, tuple[Query, dict[str, list[str]]]] = {}

    def of(self, name):
        """The query that a case is part of, and the columns of the case."""
        (number,) = (at for at, names in enumerate(GROUPS) if name in names)
        if number not in self._queries:
            self._queries[number] = self._run(number)
        query, columns = self._queries[number]
        return query, columns[name]

    def _run(self, number):
        home = Path(tempfile.mkdtemp(dir=self.home))  # a new one, where a test runs again
        query = Query(home / "checkpoint")
        columns: dict[str, list[str]] = {}
        for cut in range(cases.CUTS):
            left, right = sides_of("inner", cut)
            write_rows(home / "left", cut, left, cases.SCHEMA)
            write_rows(home / "right", cut, right, cases.RIGHT)
            write_rows(home / "late", cut, cases.late_rows(cut), cases.SCHEMA)
            if cut == 0:
                continue  # the first run takes two files, one after the other
            inputs = [stream(self.spark, home / side) for side in ("left", "right", "late")]
            made = {name: on_stream(name, inputs) for name in GROUPS[number]}
            columns |= {name: frame.columns for name, frame in made.items()}
            query.run(union(made))
        return query, columns


@pytest.fixture(scope="module")
def streams(spark, tmp_path_factory):
    return Streams(spark, tmp_path_factory.mktemp("streamed"))


def on_stream(name, inputs):
    case = STREAMED[name]
    left, right, late = inputs
    given = [late] if name in cases.LATE else [left, right][: case.sides]
    return attached(case, given)


def each_stream(name):
    return pytest.param(name, marks=() if name in SHORT else pytest.mark.long)


@pytest.mark.parametrize("name", [each_stream(name) for name in STREAMED])
def test_a_stream_gives_what_replay_gives(streams, name):
    query, columns = streams.of(name)
    case = STREAMED[name]
    assert cases.CUTS == sum(batch.taken > 0 for batch in query.batches.values())
    batches, cut = [], 0
    for number in sorted(query.batches):
        batch = query.batches[number]
        batches.append((None, sides_of(name, cut) if batch.taken else [[], []][: case.sides]))
        cut += batch.taken > 0
    want = shaped(rows_only(unended(case.operator, batches, case.orders), case), columns)
    check(case, want, by_name(query.rows).get(name, []))
