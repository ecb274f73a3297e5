"""Which operators warn of rows in no order, and that their advice is right."""

import inspect
import random
import warnings
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import cases
from tests.spark.stream_runs import by_name, stream, union
from tests.spark.test_same_answers import close
from windowlib import (
    Count,
    Delta,
    Event,
    Operator,
    OrderWarning,
    Session,
    Sliding,
    Tumbling,
    replay,
    to,
)
from windowlib import operators as bundled
from windowlib.operators import (
    Aggregate,
    AsOf,
    Barrier,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    IntervalJoin,
    Join,
    KDominantSkyline,
    Lookup,
    Pair,
    Panes,
    Punctor,
    Reorder,
    Skyline,
    SkylineUpdates,
    Sort,
    Split,
    TopDelta,
    TopK,
    Union,
    agg,
    desc,
)
from windowlib.spark import attach

THREE = Tumbling(Count(3), by="k")
LAST = Sliding(Count(3), by="k")
N: dict[str, Any] = {"n": agg.last("n"), "s": agg.sum("n")}
WARNS: dict[str, Operator] = {
    "count": Aggregate(THREE, N),
    "delta": Aggregate(Tumbling(Delta("ts", 9), by="k"), N),
    "behind a filter": Filter("n").then(Aggregate(THREE, N)),
    "sort": Sort("x", window=LAST),
    "dedup": Dedup("j", within=Count(2), by="k"),
    "batch": Batch(Count(3), by="k"),
    "delay": Delay(Count(3)),
    "punctor": Punctor(on_change="j").then(Aggregate(Tumbling(Count(2)), N)),
    "top k": TopK(THREE, by=desc("n"), k=2),
    "skyline": Skyline(THREE, "n", "j"),
    "k-dominant": KDominantSkyline(THREE, "n", "j", "ts", k=2),
    "top delta": TopDelta(THREE, "n", "j", "ts", delta=1, k="rank"),
    "updates": SkylineUpdates(LAST, "n", "j"),
    "join": Join(left=LAST, right=LAST, on="k"),
    "lookup": Lookup(on="k"),
    "pair": Pair(on="k"),
    "barrier": Barrier(on="k"),
}
QUIET: dict[str, Operator] = {
    "filter": Filter("n"),
    "functor": Functor(keep=["n"]),
    "split": Split("j", ports=["zero", "one", "two", "three"]),
    "union": Union(),
    "reorder": Reorder("ts", slack=5, by="k"),
    "panes": Panes("ts", size=40, slack=5, by="k"),
    "session": Aggregate(Session(Event("ts"), gap=6, by="k"), N),
    "tumbling": Aggregate(Tumbling(Event("ts", 40), by="k"), N),
    "as of": AsOf("ts", on="k"),
    "interval": IntervalJoin("ts", before=9, after=5, on="k"),
    "gaps": Punctor(gap=Delta("ts", 9)).then(Aggregate(Tumbling(Count(2), order_by="ts"), N)),
}
WITHOUT_WINDOWS = ("pair", "barrier")
"""They warn of any static DataFrame, others of those whose rows come from several files."""


def test_every_bundled_operator_is_in_the_table():
    kinds = {type(node) for op in (*WARNS.values(), *QUIET.values()) for node in nodes(op)}
    known = (getattr(bundled, name) for name in bundled.__all__)
    ours = {each for each in known if inspect.isclass(each) and issubclass(each, Operator)}
    assert {each.__name__ for each in ours} == {each.__name__ for each in kinds & ours}


def nodes(operator: Any) -> list[Any]:
    return list(getattr(operator, "operators", {}).values()) or [operator]


@pytest.fixture(scope="module")
def sources(spark, tmp_path_factory):
    """Rows in files whose names say nothing about their order: a stream, and a static DataFrame."""
    folder = tmp_path_factory.mktemp("order")
    for side in (0, 1):
        mixed = random.Random(side).sample(side_rows(side), 60)
        schema = (cases.SCHEMA, cases.RIGHT)[side]
        (folder / str(side)).mkdir()
        for number in range(3):
            table = pa.Table.from_pylist(mixed[number::3], schema)
            pq.write_table(table, folder / str(side) / f"{number}.parquet")
    moving = [stream(spark, folder / str(side)) for side in (0, 1)]
    return moving, [spark.read.parquet(str(folder / str(side))) for side in (0, 1)]


def side_rows(side: int) -> list[dict[str, Any]]:
    """Rows whose timestamps are their own."""
    found = [row for cut in range(cases.CUTS) for row in cases.kept(cut, side)][:60]
    return [{**row, "ts": 2 * n + side, "k": row["k"] or "e"} for n, row in enumerate(found)]


def warned(operator: Operator, frames: Any, **said: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attach(operator, **said)(*frames[: len(operator.model.inputs)])
    return any(each.category is OrderWarning for each in caught)


@pytest.mark.parametrize("name", [*WARNS, *QUIET])
def test_what_depends_on_order_warns_until_it_is_said(sources, name):
    operator = (WARNS | QUIET)[name]
    for frames in sources:
        assert (name in WARNS) is warned(operator, frames)
        for order in ("ts", None):  # as the warning says
            assert not warned(operator, frames, order_by=order)


def test_a_sorted_dataframe_has_an_order(sources):
    _, frames = sources
    in_order = [frame.orderBy("ts").where("n IS NOT NULL") if "n" in frame.columns else
                frame.orderBy("ts").withColumnRenamed("y", "z") for frame in frames]  # fmt: skip
    for name, operator in WARNS.items():
        assert (name in WITHOUT_WINDOWS) is warned(operator, in_order), name


def test_rows_out_of_a_shuffle_have_no_order(spark):
    rows = spark.range(40, numPartitions=4).selectExpr("id AS ts", "id % 3 AS k")
    op = Aggregate(Tumbling(Count(3), by="k"), last=agg.last("ts"))
    for shuffled in (
        rows.groupBy("k", "ts").count(),
        rows.distinct().where("ts > 1"),
        rows.dropDuplicates(["ts"]),
        rows.repartition(3),
        rows.repartition("k").withColumnRenamed("ts", "t").withColumnRenamed("t", "ts"),
    ):
        assert warned(op, [shuffled])
        assert not warned(op, [shuffled], order_by="ts")
        assert not warned(op, [shuffled.sortWithinPartitions("ts")])
    for kept in (rows, rows.coalesce(1), rows.where("ts > 3")):
        assert not warned(op, [kept])


@pytest.mark.long
def test_the_advice_gives_the_rows_of_replay(sources):
    _, frames = sources
    both = WARNS | QUIET
    made = {}
    for name, operator in both.items():
        given = frames[: len(operator.model.inputs)]
        said: dict[str, Any] = {} if name in QUIET else {"order_by": "ts"}
        made[name] = attach(operator, buckets=2, **said)(*given)
    found = by_name(union(made).collect())
    for name, operator in both.items():
        inputs = [side_rows(side) for side in range(len(operator.model.inputs))]
        tagged = [(row["ts"], port, row) for port, rows in enumerate(inputs) for row in rows]
        items = [to(port, row) for _, port, row in sorted(tagged, key=lambda each: each[:2])]
        want = [row for _, row in replay(operator, items).items() if isinstance(row, dict)]
        alike(name, want, found.get(name, []))


def alike(name: str, want: list[Any], found: list[Any]) -> None:
    """The same rows, in any order; of those with a port, the columns that they have."""
    assert len(want) == len(found) > 0, name
    shown = [{column: row[column] for column in row if column != "_port"} for row in found]
    names = sorted({column for row in want for column in row})
    rows = [[{c: row.get(c) for c in names} for row in each] for each in (want, shown)]
    for one, other in zip(*(sorted(each, key=repr) for each in rows), strict=True):
        assert close(one, other), name
