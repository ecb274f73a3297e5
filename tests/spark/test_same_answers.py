"""The same rows give the same answers: replayed, in a static DataFrame, and in a stream.

A stream is cut into micro-batches, with a restart from the checkpoint between them.
"""
# ruff: noqa: SIM300 - asserts read expected first

import math
import warnings

import pytest

from tests.spark import cases
from tests.spark.running import FileClock, Query, by_key, by_name, shaped, stream, unended, union
from tests.spark.running import write as write_rows
from windowlib import replay, to
from windowlib.errors import OrderWarning
from windowlib.spark import attach

START, STEP = 100.0, 10.0
UNTIMED = {**cases.ONE_INPUT, **cases.TWO_INPUTS, **cases.LATE}
STREAMED = {**UNTIMED, **cases.TIMED}
STATIC = {**UNTIMED, **cases.AT_THE_END}


def sides_of(name, cut):
    """The rows of each input of a case in one cut."""
    if name in cases.LATE:
        return [cases.late_rows(cut)]
    return [cases.kept(cut, side) for side in range(STREAMED.get(name, cases.Case).sides)]


def sides_of_all(name):
    case = {**STATIC, **cases.TIMED}[name]
    per_cut = [
        [cases.late_rows(cut)]
        if name in cases.LATE
        else [cases.kept(cut, side) for side in range(case.sides)]
        for cut in range(cases.CUTS)
    ]
    return [sum((cut[side] for cut in per_cut), []) for side in range(case.sides)]


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
    return columns, by_name(union(made).collect())


def replayed(name, case):
    sides = sides_of_all(name)
    if name in cases.TIMED:
        return replay(case.operator, *sides, times="ts").items()
    if case.sides == 1:
        return replay(case.operator, *sides).items()
    ports = [port.name for port in case.operator.model.inputs]
    tagged = [to(port, row) for port, rows in zip(ports, sides, strict=True) for row in rows]
    if None not in case.orders:
        tagged.sort(key=lambda each: each.row["ts"])  # at equal times the first input first
    return replay(case.operator, tagged).items()


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


@pytest.fixture(scope="module")
def streamed(spark, tmp_path_factory):
    """What every case gives in a stream: three micro-batches, and after each a new query."""
    home = tmp_path_factory.mktemp("streamed")
    clock = FileClock(str(home / "clock"))
    query = Query(home / "checkpoint", clock, START, STEP)
    columns = {}
    for cut in range(cases.CUTS):
        left, right = sides_of("inner", cut)
        write_rows(home / "left", cut, left, cases.SCHEMA)
        write_rows(home / "right", cut, right, cases.RIGHT)
        write_rows(home / "late", cut, cases.late_rows(cut), cases.SCHEMA)
        if cut == 0:
            continue  # the first run takes two files, one after the other
        left_df, right_df, late_df = (stream(spark, home / n) for n in ("left", "right", "late"))
        made = {}
        for name, case in STREAMED.items():
            given = [late_df] if name in cases.LATE else [left_df, right_df][: case.sides]
            made[name] = attached(case, given, clock=clock)
        columns = {name: frame.columns for name, frame in made.items()}
        query.run(union(made))
    return columns, query


def test_the_stream_was_cut_and_restarted(streamed):
    _, query = streamed
    assert cases.CUTS == sum(batch.taken > 0 for batch in query.batches.values())


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_gives_what_replay_gives(streamed, name):
    columns, query = streamed
    case, batches, cut = STREAMED[name], [], 0
    for number in sorted(query.batches):
        batch = query.batches[number]
        batches.append((batch.now, sides_of(name, cut) if batch.taken else [[], []][: case.sides]))
        cut += batch.taken > 0
    want = shaped(rows_only(unended(case.operator, batches, case.orders), case), columns[name])
    check(case, want, by_name(query.rows).get(name, []))
