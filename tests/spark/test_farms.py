"""Farms on Spark give the rows of the operator that they spread: static, streamed, restarted."""
# ruff: noqa: SIM300 - asserts read expected first

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as fn

from tests.spark import cases
from tests.spark.cases import ALL, BY, Middle
from tests.spark.stream_runs import Query, by_key, by_name, grouped, stream, unended, union
from tests.spark.stream_runs import write as write_rows
from tests.spark.test_same_answers import close
from windowlib import (
    Count,
    Delta,
    Event,
    Operator,
    OperatorModel,
    Session,
    Sliding,
    Time,
    Tumbling,
    replay,
    to,
)
from windowlib.errors import OperatorError
from windowlib.farms import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition, farm
from windowlib.farms.models import TimeWindows
from windowlib.operators import Aggregate, Join, Skyline, TopDelta, TopK, agg, desc
from windowlib.spark import attach
from windowlib.spark.farms.slice_partials import SMALL, _group_rows, _slice_starts
from windowlib.spark.farms.window_stages import ActiveWindows
from windowlib.spark.plan.query_plan import AttachOptions, for_each_worker, plan_query
from windowlib.spark.plan.shuffle import partition_of

ROWS = cases.rows(5)
SUMS: dict[str, Any] = {"n": agg.count(), "s": agg.sum("x"), "high": agg.max("n")}
ENDS: dict[str, Any] = {"n": agg.count(), "first": agg.first("n"), "last": agg.last("n")}
WHOLE: dict[str, Any] = {"mid": agg.median("n"), "all": agg.collect("j")}


class Reach(Operator):
    """Lowest and highest value of a window; an empty one has a row, too."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    content = "arrow"
    function_kind = "associative"
    output = "low bigint, high bigint"

    def before_flush(self, window, key):
        self.emit_part(key, self.part_of(window, key) if window.size(key) else None)

    on_trigger = before_flush

    def part_of(self, window, key):
        values = window.column("n", key)
        return [int(values.min()), int(values.max())]

    def merge_parts(self, a, b):
        a[:] = min(a[0], b[0]), max(a[1], b[1])  # which only works if nobody else has it
        return a

    def emit_part(self, key, part):
        low, high = part or (None, None)
        self.emit(low=low, high=high)


class AboveMean(Operator):
    """The values above the mean of their window: it looks at the tuples twice."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    content = "arrow"
    function_kind = "associative"
    output = "k string, n bigint"

    def before_flush(self, window, key):
        if window.size(key):
            self.emit_again(window, key, self.part_of(window, key))

    on_trigger = before_flush

    def part_of(self, window, key):
        values = window.column("n", key)
        return [int(values.sum()), len(values)]

    def merge_parts(self, a, b):
        return [a[0] + b[0], a[1] + b[1]]

    def emit_again(self, window, key, whole):
        total, size = whole
        for value in window.column("n", key).tolist():
            if value * size > total:
                self.emit(k=key if isinstance(key, str) else None, n=value)


class Tuples(Operator):
    """A handler that reads tuples, and the clock of its window."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    output = "k string, size int, last bigint, now double"

    def before_flush(self, window, key):
        rows = list(window[key])
        if rows:  # a bucket without any has a window that ticks all the same
            self.emit(k=key, size=len(rows), last=rows[-1]["ts"], now=window.now)

    on_trigger = before_flush


@dataclass(frozen=True)
class Case:
    farm: Farm
    key: str | tuple[str, ...] | None = "k"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def attached(self):
        numbered = not isinstance(self.farm, KeyFarm)
        return attach(self.farm, numbered=numbered, **self.options)


def key_farm(window, out=SUMS, **more):
    return KeyFarm(Aggregate(window, out), workers=2, **more)


def window_farm(window, out=SUMS, batch=1, **more):
    return WindowFarm(Aggregate(window, out, **more), workers=2, batch=batch)


def partition(window, out=SUMS, parts=3, **more):
    return WindowPartition(Aggregate(window, out, **more), workers=2, parts=parts)


def pane_farm(window, out=SUMS, panes="pairs", **more):
    return PaneFarm(Aggregate(window, out, **more), workers=2, panes=panes)


BOUNDS: dict[str, Any] = {"from": agg.window_start(), "to": agg.window_end()}
EVENT: dict[str, Any] = {"by": "k", "watermark": 3, "late": "drop"}
HOPS = Sliding(Event("ts", 30), every=Event("ts", 12), **EVENT)
SLIDE = Sliding(Count(9), every=Count(4), **BY)
TICKS = Sliding(Time("25s"), every=Time("7s"), **BY)
ANY = "the first, where order is irrelevant"
KEYS: dict[str, Any] = {"by": ("k", "j"), "order_by": "ts"}

UNTIMED = {
    "keys": Case(key_farm(SLIDE, ENDS)),
    "windows": Case(window_farm(SLIDE, WHOLE, batch=3)),
    "windows, no key": Case(
        window_farm(Sliding(Count(20), every=Count(6), **ALL), WHOLE, partial="emit"), key=None
    ),
    "windows, the end": Case(
        window_farm(Tumbling(Count(12), **BY), SUMS, group_by="j", flush_at_end=True)
    ),
    "windows, delta": Case(
        window_farm(Sliding(Delta("ts", 50), every=Delta("ts", 20), **KEYS), WHOLE), ("k", "j")
    ),
    "windows, columns": Case(WindowFarm(Middle(SLIDE), workers=2)),
    "pieces": Case(partition(SLIDE, ENDS)),
    "slices, count": Case(pane_farm(SLIDE, ENDS)),
    "slices, delta": Case(pane_farm(Sliding(Delta("ts", 50), every=Delta("ts", 20), **BY))),
    "windows, active": Case(
        WindowFarm(Aggregate(SLIDE, WHOLE, partial="emit"), workers=3, active=True)
    ),
    "pieces, twice": Case(WindowPartition(AboveMean(SLIDE), workers=2)),
    "pieces, no key": Case(partition(Tumbling(Delta("ts", 40), **ALL), ENDS), key=None),
    "windows, event time": Case(window_farm(HOPS, WHOLE | BOUNDS)),
    "pieces, sessions": Case(partition(Session(Event("ts"), gap=9, **EVENT), ENDS | BOUNDS)),
    "panes, event time": Case(pane_farm(Tumbling(Event("ts", 30), **EVENT), ENDS | BOUNDS)),
}
TIMED = {
    "windows, time and count": Case(window_farm(Sliding(Time("20s"), every=Count(4), **BY), WHOLE)),
    "windows, active by time": Case(
        WindowFarm(Tuples(Sliding(Time("15s"), every=Time("6s"), **BY)), workers=2, active=True)
    ),
    "windows, tuples": Case(WindowFarm(Tuples(Tumbling(Time("15s"), **BY)), workers=2)),
    "panes": Case(pane_farm(TICKS), options={"times": "at"}),
    "panes, hopping": Case(
        pane_farm(Sliding(Time("5s"), every=Time("12s"), **KEYS), panes="gcd"),
        key=("k", "j"),
        options={"times": "seconds"},
    ),
    # Tasks do not know which group came first, so its rows are compared group by group.
    "panes, groups": Case(
        pane_farm(Sliding(Time("9s"), every=Time("2s"), **ALL), group_by="j"), key="j"
    ),
    "panes, in order": Case(pane_farm(TICKS, ENDS | {"best": agg.arg_max("n", by="x")})),
    "panes, skyline": Case(PaneFarm(Skyline(TICKS, "j", desc("n")), workers=2)),
    "panes, best three": Case(PaneFarm(TopK(TICKS, by="j", k=3), workers=2)),
    "panes, top delta": Case(
        PaneFarm(TopDelta(TICKS, "j", desc("n"), delta=2, k="least"), workers=2)
    ),
    "panes, the end": Case(pane_farm(Tumbling(Time("30s"), **BY), flush_at_end=True)),
    "panes, empty ones": Case(
        PaneFarm(Reach(Sliding(Time("4s"), every=Time("2s"), order_by=None))), key=None
    ),
    "parts by time": Case(partition(Tumbling(Time("20s"), **BY))),
    ANY: Case(
        PaneFarm(Aggregate(Tumbling(Time("1h"), by="k"), ENDS, flush_at_end=True)),
        options={"order_by": None},
    ),
}
TIMES = {"at": "timestamp_micros(ts * 1000000 + 250000)", "seconds": "ts + 0.25d"}
"""When rows arrive, in columns of other types: only what lies between them matters."""
CASES = {**UNTIMED, **TIMED}


def ordered(rows):
    """Rows in the order of their windows, which then need no number any more."""
    found = sorted(rows, key=lambda row: row.get("_window") or 0)
    return [{name: row[name] for name in row if name != "_window"} for row in found]


def same(case, want, got):
    """The same rows for every key, in the order of windows."""
    want, got = by_key(want, case.key), by_key(ordered(got), case.key)
    assert want, "a case that makes no rows proves nothing"
    assert want.keys() == got.keys()
    for key, rows in want.items():
        assert len(rows) == len(got[key]), key
        assert all(map(close, rows, got[key])), key


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    """The rows in several files, so that several tasks have some of each key."""
    home = tmp_path_factory.mktemp("farms")
    for number in range(3):
        write_rows(home, number, ROWS[number::3], cases.SCHEMA)
    return spark.read.parquet(str(home))


@pytest.fixture(scope="module")
def static(frame):
    """What every case gives for a static DataFrame."""
    made = {name: case.attached(frame) for name, case in UNTIMED.items()}
    stamped = frame.withColumns({name: fn.expr(text) for name, text in TIMES.items()})
    for name, case in TIMED.items():
        options = {"times": "ts", **case.options}
        source = stamped if options["times"] in TIMES else frame
        made[name] = attach(case.farm, numbered=True, **options)(source)
    found: dict[str, list[dict[str, Any]]] = {}
    for names in grouped(made):
        found |= by_name(union({name: made[name] for name in names}).collect())
    return found


def replayed(name, case):
    return list(replay(case.farm.operator, ROWS, times="ts" if name in TIMED else None))


@pytest.mark.parametrize("name", [name for name in CASES if name != ANY])
def test_a_farm_gives_what_its_operator_gives(static, name):
    same(CASES[name], replayed(name, CASES[name]), static[name])


WHOLES: dict[str, Any] = {
    "n": agg.count(), "there": agg.count("x"), "s": agg.sum("j"), "low": agg.min("n"),
    "high": agg.max("k"),
}  # fmt: skip
NATIVE = {
    "uneven": (pane_farm(TICKS, WHOLES), "at"),
    "hopping": (pane_farm(Sliding(Time("5s"), every=Time("12s"), **KEYS), WHOLES), "seconds"),
    "no key": (pane_farm(Sliding(Time("9s"), every=Time("2s"), **ALL), WHOLES, "gcd"), "ts"),
    "the end": (pane_farm(Tumbling(Time("30s"), **BY), WHOLES, flush_at_end=True), "ts"),
    "partial": (pane_farm(TICKS, WHOLES, partial="emit"), "seconds"),
}
"""What Spark computes by itself, and the column with the time."""


def test_what_spark_computes_by_itself_is_the_same(frame):
    stamped = frame.withColumns({name: fn.expr(text) for name, text in TIMES.items()})
    made = {}
    for name, (each, times) in NATIVE.items():
        attached = attach(each, times=times)
        assert "Spark's own functions make one row" in attached.explain(stamped)
        made[name] = attached(stamped)
    found = by_name(union(made).collect())
    for name, (each, _) in NATIVE.items():
        key = each.operator.windows[0].by
        same(Case(each, key), list(replay(each.operator, ROWS, times="ts")), found[name])


def test_what_python_computes_another_way_is_not_for_spark(spark, frame):
    def native(op, **options):
        return "Spark's own" in attach(PaneFarm(op), times="ts", **options).explain(frame)

    assert native(Aggregate(TICKS, n=agg.count()))
    assert not native(Aggregate(TICKS, n=agg.count()), numbered=True)
    for out in (agg.sum("x"), agg.mean("j"), agg.sum("j") / agg.count(), agg.max("x")):
        assert not native(Aggregate(TICKS, out=out))
    for more in ({"group_by": "j"}, {"having": agg.count() > 2}):
        assert not native(Aggregate(TICKS, n=agg.count(), **more))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert not native(Aggregate(TICKS, n=agg.count()))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_row_without_a_time_is_refused_by_spark_in_the_same_words(frame):
    op = Aggregate(TICKS, n=agg.count())
    some = frame.withColumn("ts", fn.when(fn.col("n") > 3, fn.col("ts")))
    with pytest.raises(Exception, match=r"times='ts': the value None is no point in time\."):
        attach(PaneFarm(op), times="ts")(some).collect()


def test_where_order_is_of_no_matter_some_row_is_the_first(static):
    found = {row["k"]: row for row in static[ANY]}
    for key, rows in by_key(ROWS, "k").items():
        numbers = {row["n"] for row in rows}
        row = found[key[1]]
        assert row["n"] == len(rows)
        assert {row["first"], row["last"]} <= numbers


def test_windows_of_a_key_are_counted_from_0_on(static):
    for name in ("windows", "pieces", "panes, the end"):
        for rows in by_key(static[name], "k").values():
            assert list(range(len(rows))) == sorted(row["_window"] for row in rows)


def test_a_farm_is_called_on_dataframes(frame):
    op = Aggregate(SLIDE, ENDS)
    found = frame.transform(KeyFarm(op, workers=2)).collect()
    want = list(replay(op, ROWS))
    assert sorted(map(str, want)) == sorted(str(row.asDict()) for row in found)
    assert found == farm(op, workers=2)(frame).collect()


def test_a_key_farm_takes_two_inputs(frame):
    recent = Sliding(Count(3), **BY)
    join = Join(left=recent, right=recent, on="k", partition_by="k")
    both = frame.select("ts", "k", "n"), frame.selectExpr("ts", "k", "n as m")
    names = [["ts", "k", "n"], ["ts", "k", "m"]]
    tagged = []
    for row in ROWS:
        tagged.append(to("left", {name: row[name] for name in names[0]}))
        tagged.append(to("right", {"ts": row["ts"], "k": row["k"], "m": row["n"]}))
    want = list(replay(join, tagged))
    assert len(want) == KeyFarm(join, workers=2)(*both).count() > 0


def test_a_key_farm_has_several_buckets_for_each_worker(frame):
    op = Aggregate(SLIDE, ENDS)
    assert "12 buckets" in KeyFarm(op, workers=4).explain(frame)
    assert "5 buckets" in attach(KeyFarm(op, workers=4), buckets=5).explain(frame)


@pytest.mark.parametrize(
    ("name", "stages"), [("keys", 1), ("windows", 2), ("panes", 2), ("pieces", 3)]
)
def test_explain_shows_the_stages_and_the_reason(frame, name, stages):
    case = CASES[name]
    text = case.farm.explain(frame)
    said = text.replace("\n             ", " ")
    assert said.startswith(f"farm         {type(case.farm).__name__}: {case.farm.choice}\n")
    assert [f"stage {n + 1}" in text for n in range(3)] == [n < stages for n in range(3)]
    assert "on Spark" in text
    assert text.splitlines()[0] == case.farm.explain(frame.schema).splitlines()[0]


def test_a_window_that_fails_says_which(frame):
    class Fails(Tuples):
        def before_flush(self, window, key):
            raise RuntimeError("no")

        on_trigger = before_flush

    with pytest.raises(PythonException, match="in Fails, on_trigger, key"):
        WindowFarm(Fails(SLIDE), workers=2)(frame).collect()


def test_a_row_without_a_time_is_refused(frame):
    late = frame.withColumn("at", fn.expr("if(n = 7, null, ts)"))
    with pytest.raises(PythonException, match="the value None is no point in time"):
        attach(TIMED["panes"].farm, times="at")(late).collect()


def test_a_farm_is_not_called_on_rows():
    with pytest.raises(OperatorError, match="not a DataFrame of Spark's"):
        CASES["windows"].farm(ROWS)


LATE: dict[str, Any] = {"by": "k", "watermark": 3, "late": "port"}
DISORDERED = [{**row, "n": number} for number, row in enumerate(cases.rows(7, back=True))]


def test_late_rows_come_out_of_farms(spark):
    rows = spark.createDataFrame(pa.Table.from_pylist(DISORDERED, cases.SCHEMA)).coalesce(1)
    hops = Sliding(Event("ts", 30), every=Event("ts", 12), **LATE)
    farms = {
        "windows": WindowFarm(Aggregate(hops, WHOLE | BOUNDS), workers=2),
        "pieces": WindowPartition(Aggregate(hops, ENDS | BOUNDS), workers=2, parts=2),
    }
    made = {name: attach(each, order_by="n")(rows) for name, each in farms.items()}
    made |= {
        f"{name} alone": attach(each.operator, order_by="n")(rows) for name, each in farms.items()
    }
    found = by_name(union(made).collect())
    for name in farms:
        want, got = found[f"{name} alone"], found[name]
        assert {"out", "late"} == {row["_port"] for row in want}
        assert sorted(map(str, want)) == sorted(map(str, got))


# -- the choice --

SMOOTH = agg.custom(int, lambda state, value: state // 2 + value, column="n")
TWENTY = Sliding(Count(20), every=Count(6), **ALL)
ALONE = ("none, the operator alone", "less time than to send windows to other tasks")
CHOICES = {
    "a key": (Aggregate(SLIDE, SUMS), {}, "KeyFarm", "rows that differ in k never meet"),
    "a heavy key": (
        Reach(SLIDE), {"heaviest": 0.9}, "PaneFarm", "they share slices when they fire"
    ),
    "a heavy key, functions with kernels": (Aggregate(SLIDE, SUMS), {"heaviest": 0.9}, *ALONE),
    "slices by Spark": (Aggregate(TICKS, n=agg.count()), {}, "PaneFarm", "Spark's own functions"),
    "a key, by time": (Aggregate(TICKS, SUMS), {}, "KeyFarm", "rows that differ in k never meet"),
    "no key, by time": (
        Aggregate(Sliding(Time("9s"), every=Time("2s"), **ALL), SUMS), {},
        "PaneFarm", "parts of slices where the rows are",
    ),
    "no key": (Reach(TWENTY), {}, "PaneFarm", "they share slices when they fire"),
    "no key, functions with kernels": (Aggregate(TWENTY, SUMS), {}, *ALONE),
    "step by step": (Aggregate(TWENTY, out=SMOOTH), {}, "WindowFarm", "neighbours go together"),
    "one by one": (
        Reach(Sliding(Count(20), **ALL)), {}, "WindowFarm", "neighbours go together"
    ),
    "apart": (Reach(Tumbling(Count(20), **ALL)), {}, "WindowPartition", "tasks share a window"),
    "all values": (Aggregate(TWENTY, WHOLE, group_by="j"), {}, *ALONE),
    "tuples": (Tuples(TWENTY), {}, "WindowFarm", "pays where a window takes milliseconds"),
    "sessions": (Aggregate(Session(Event("ts"), gap=9, **EVENT), WHOLE), {}, *ALONE),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_the_farm_for_spark_is_chosen_and_says_why(frame, name):
    op, options, kind, why = CHOICES[name]
    told: dict[str, Any] = {"times": "ts"} if op.timed else {}
    if name == "step by step":
        told["schema"] = "out bigint"
    text = attach(farm(op, workers=2, **options), **told).explain(frame)
    said = " ".join(text.split("stage 1")[0].split())
    assert said.startswith(f"farm {kind}: ")
    assert why in said


def test_where_no_farm_pays_the_operator_runs_alone(frame):
    op = Aggregate(TWENTY, SUMS | WHOLE)
    chosen = farm(op, workers=2)
    assert chosen(frame).collect() == attach(op)(frame).collect()
    said = attach(chosen, numbered=True).explain(frame)  # which the operator alone cannot do
    assert said.startswith("farm         WindowFarm: ")


NESTED: dict[str, Any] = {
    "panes": KeyFarm(PaneFarm(Aggregate(SLIDE, SUMS), workers=2), workers=2),
    "pieces": WindowFarm(WindowPartition(Reach(TWENTY), workers=2, parts=3), workers=2),
}


def test_a_farm_of_farms_runs_as_the_inner_one_with_the_workers_of_both(frame):
    found = by_name(
        union({n: attach(f, numbered=True)(frame) for n, f in NESTED.items()}).collect()
    )
    for name, each in NESTED.items():
        key = each.operator.windows[0].by
        same(Case(each, key), list(replay(each.operator, ROWS)), found[name])
    said = {name: each.explain(frame) for name, each in NESTED.items()}
    assert said["panes"].startswith(
        "farm         KeyFarm(PaneFarm): key, 4 workers: 2 windows of 2"
    )
    assert said["pieces"].startswith("farm         WindowFarm(WindowPartition): window agnostic, 4")
    assert "the slices of what fires" in said["panes"]
    assert "in 3 pieces" in said["pieces"]
    assert all("over 12 tasks" in each for each in said.values())


def test_copies_for_active_workers_go_to_tasks_of_their_own(frame):
    op = Aggregate(TWENTY, WHOLE)
    plan = plan_query(op, AttachOptions(), [frame])
    shared = {
        workers: for_each_worker(
            plan, ActiveWindows(op, workers), "WindowFarm", "_worker", workers, 3 * workers
        )
        for workers in (2, 3)
    }
    for workers, each in shared.items():
        (copies,) = each.bucketed()
        where = copies.select("_bucket", "_worker").distinct().collect()
        assert workers == len(where) == len({row._bucket for row in where})
        tasks = {partition_of(row._bucket, each.partitions) for row in where}
        assert len(tasks) == min(workers, each.partitions)


def test_a_farm_that_was_asked_for_is_not_chosen_anew(frame):
    assert "WindowFarm" in WindowFarm(Aggregate(SLIDE, SUMS), workers=2).explain(frame)


def test_what_was_chosen_for_processes_stays_what_it_is(frame):
    chosen = farm(Aggregate(TWENTY, out=SMOOTH), workers=2)
    before = str(chosen.choice)
    attach(chosen, schema="out bigint").explain(frame)
    assert isinstance(chosen, WindowFarm)
    assert chosen.active
    assert before == str(chosen.choice)


def test_rows_are_brought_together_where_slices_need_that_and_explain_says_so(frame):
    def said(made, **options):
        return " ".join(attach(made, **options).explain(frame).split())

    panes = PaneFarm(Aggregate(TICKS, SUMS), workers=2)
    assert "one part for each key" in said(panes, times="ts")
    assert "(attach(key=...) says which rows meet)" in said(panes, times="ts", key="k")
    counted = "(which windows a row is in is known where all rows of its key are)"
    assert counted in said(PaneFarm(Aggregate(SLIDE, SUMS), workers=2))
    initial = Sliding(Time("9s"), every=Time("2s"), by=lambda row: row["k"], order_by="ts")
    first = PaneFarm(Aggregate(initial, SUMS), workers=2)
    function = {"times": "ts", "schema": "key string, n bigint, s double, high bigint"}
    assert "(the key of its window is a function)" in said(first, **function)
    assert "(its tuples are looked at twice)" in said(PaneFarm(AboveMean(TICKS)), times="ts")


@pytest.mark.parametrize(
    ("window", "why"),
    [
        (
            Sliding(Time("9s"), every=Time("2s"), **ALL),
            "a window without a key has results when it is empty",
        ),
        (
            Tumbling(Count(3), by=lambda row: row["k"], order_by="ts"),
            "the key of its window is a function",
        ),
    ],
)
def test_workers_that_cannot_be_active_say_why(frame, window, why):
    active = WindowFarm(Aggregate(window, n=agg.count()), workers=2, active=True)
    said = " ".join(attach(active, schema="key string, n bigint").explain(frame).split())
    assert f"no active workers: {why}" in said


# -- streams --

STREAMED = (
    *("windows, no key", "pieces", "slices, count", "slices, delta"),
    *("windows, active", "pieces, twice"),
)


@pytest.fixture(scope="module")
def streamed(spark, tmp_path_factory):
    """Two micro-batches, then a new query from the checkpoint and a third."""
    home = tmp_path_factory.mktemp("streamed-farms")
    query = Query(home / "checkpoint")
    for cut in range(cases.CUTS):
        write_rows(home / "in", cut, cases.kept(cut), cases.SCHEMA)
        if cut:
            source = stream(spark, home / "in")
            query.run(union({name: UNTIMED[name].attached(source) for name in STREAMED}))
    return query


@pytest.mark.long
@pytest.mark.parametrize("name", STREAMED)
def test_a_streamed_farm_gives_what_its_operator_gives(streamed, name):
    case = UNTIMED[name]
    assert cases.CUTS == sum(batch.taken > 0 for batch in streamed.batches.values())
    batches = [(None, [cases.kept(cut)]) for cut in range(cases.CUTS)]
    want = [row for _, row in unended(case.farm.operator, batches)]
    same(case, want, by_name(streamed.rows)[name])


@pytest.mark.long
def test_a_stream_of_event_time_gives_what_the_operator_gives_on_spark(spark, tmp_path):
    lists, sums = Aggregate(HOPS, WHOLE | BOUNDS), Aggregate(HOPS, SUMS | BOUNDS)
    farms = {
        "lists": lists,
        "windows": WindowFarm(lists, workers=2),
        "sums": sums,
        "pieces": WindowPartition(sums, workers=2, parts=2),
        "panes": PaneFarm(sums, workers=2),
    }
    query = Query(tmp_path / "checkpoint")
    for cut in range(cases.CUTS):
        write_rows(tmp_path / "in", cut, cases.kept(cut), cases.SCHEMA)
        if cut:
            source = stream(spark, tmp_path / "in")
            query.run(union({name: attach(each)(source) for name, each in farms.items()}))
    rows = by_name(query.rows)
    found = {name: {(row["k"], row["from"]): row for row in rows[name]} for name in farms}
    assert len(found["lists"]) > 10
    assert found["lists"] == found["windows"]
    for name in ("pieces", "panes"):
        assert found["sums"].keys() == found[name].keys()
        assert all(close(row, found[name][key]) for key, row in found["sums"].items())
    assert "folds its rows" in farms["panes"].explain(source)


@pytest.mark.long
def test_slices_of_a_stream_on_the_clock_of_its_rows_are_those_of_the_operator(spark, tmp_path):
    timed = Aggregate(TICKS, ENDS | {"high": agg.max("n")})
    both = {"alone": timed, "slices": PaneFarm(timed, workers=2)}
    query = Query(tmp_path / "checkpoint")
    for cut in range(cases.CUTS):
        write_rows(tmp_path / "in", cut, cases.kept(cut), cases.SCHEMA)
        if cut:
            source = stream(spark, tmp_path / "in")
            made = {name: attach(each, times="ts")(source) for name, each in both.items()}
            query.run(union(made))
    rows = by_name(query.rows)
    assert len(rows["alone"]) > 10
    assert sorted(map(str, rows["alone"])) == sorted(map(str, rows["slices"]))


# -- slices --


@pytest.mark.parametrize("far", [1, 50, SMALL])
def test_rows_of_a_key_and_slice_come_together(far):
    rng = np.random.default_rng(far)
    ids, at = rng.integers(0, 5, 200), rng.integers(-3, 4, 200) * far
    order, starts = _group_rows(ids, at)
    runs = [order[lo:hi] for lo, hi in pairwise(starts)]
    seen = [(int(ids[run[0]]), int(at[run[0]])) for run in runs]
    assert sorted(set(zip(ids.tolist(), at.tolist(), strict=True))) == seen
    for run, (key, slice_) in zip(runs, seen, strict=True):
        assert np.flatnonzero((ids == key) & (at == slice_)).tolist() == run.tolist()


def test_slices_begin_where_their_extents_do():
    slices = TimeWindows(18, 5).pairs()
    numbers = np.array([4, -3, 0, 4])
    assert [slices.extent(n)[0] for n in (4, -3, 0, 4)] == _slice_starts(slices, numbers).tolist()
