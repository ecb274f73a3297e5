"""Parts of functions that depend on order, made by tasks on their own and merged in any order."""
# ruff: noqa: SIM300 - asserts read expected first

import math
import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from windowlib import Count, Time, Tumbling
from windowlib.farms.evaluator import BatchExtent, WindowEvaluator
from windowlib.farms.window_function import function_of
from windowlib.operators import Aggregate, agg, col
from windowlib.operators.aggregate.ordered_results import ordered_aggregate
from windowlib.spark.farms import slice_partials
from windowlib.spark.farms.slice_partials import PART, SlicePartials, _comparable
from windowlib.window.arrow import ranks

WINDOW = Tumbling(Time("1h"), by="k")
OUTPUTS: dict[str, Any] = {
    "n": agg.count(),
    "total": agg.sum("x"),
    "first": agg.first("x"),
    "some": agg.any("x"),
    "last": agg.last("x") + 1,
    "last_row": agg.last(lambda row: row["x"]),
    "first_large": agg.first("x").where(col("x") > 2),
    "best": agg.arg_max("id", by="x"),
    "worst": agg.arg_min("id", by="x"),
    "bests": agg.collect_arg_max("id", by="x"),
    "three": agg.top(3, "id", by="x"),
}
AT = [None, math.nan, 0.0, 1.0, 2.5, 4.0]
SCHEMA = pa.schema(
    {"k": pa.string(), "at": pa.float64(), "x": pa.int64(), "id": pa.int64()}
)  # fmt: skip


def tasks_of(rows: list[dict[str, Any]], rng: random.Random) -> list[list[list[dict[str, Any]]]]:
    """Rows of two micro-batches, of three tasks each, which have neighbouring rows in any batch."""
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(5))
    parts = [rows[lo:hi] for lo, hi in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return [parts[:3], parts[3:]]


def parts_of(work: SlicePartials, batch: int, task: int, rows: list[Any], rng: Any) -> Any:
    def said(name: str) -> str:
        assert slice_partials.MICRO_BATCH == name
        return str(batch)

    context = SimpleNamespace(partitionId=lambda: task, getLocalProperty=said)
    cut = rng.randrange(len(rows) + 1)
    given = [pa.RecordBatch.from_pylist(some, SCHEMA) for some in (rows[:cut], rows[cut:])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slice_partials, "TaskContext", SimpleNamespace(get=lambda: context))
        patch.setattr(slice_partials, "end_task", lambda: None)
        patch.setattr(slice_partials, "gathered", lambda batches: filter(len, batches))
        return [row for made in work(given) for row in made.to_pylist()]


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_parts_in_any_order_give_what_rows_in_order_give(seed, by_columns):
    rng = random.Random(seed)
    named = [
        {"k": rng.choice("ab"), "at": rng.choice(AT), "x": rng.choice([None, 0, 1, 2, 3]), "id": n}
        for n in range(rng.choice([1, 9, 60]))
    ]
    names = [name for name in OUTPUTS if not by_columns or name != "last_row"]
    op = Aggregate(WINDOW, {name: OUTPUTS[name] for name in names})
    ordered = ordered_aggregate(op)
    assert ordered is not None
    assert function_of(ordered).commutative
    found: dict[str, list[bytes]] = {}
    work = SlicePartials(ordered, "k", None, None, ("at",), placed=True)
    want: dict[str, list[Any]] = {}
    for batch, tasks in enumerate(tasks_of(named, rng)):
        for task, own in enumerate(tasks):
            for row in parts_of(work, batch, task, own, rng):
                found.setdefault(row["k"], []).append(row[PART])
        rows_of_batch = [row for own in tasks for row in own]
        for row in sorted(rows_of_batch, key=lambda row: ranks([row["at"]])):
            want.setdefault(row["k"], []).append(row)
    assert want.keys() == found.keys()
    merging, alone = WindowEvaluator(ordered), WindowEvaluator(op)
    for key, parts in found.items():
        rng.shuffle(parts)
        while len(parts) > 1:
            both = [merging.load_part(parts.pop(rng.randrange(len(parts)))) for _ in range(2)]
            parts.append(merging.dump_part(merging.merged(both)))
        got = merging.finish(key, [merging.load_part(parts[0])], 0)
        whole = pa.RecordBatch.from_pylist(want[key], SCHEMA)
        (expected,) = alone.windows(whole, [BatchExtent(key, 0, len(whole), 0)])
        assert expected == got


@pytest.mark.parametrize(
    "op",
    [
        Aggregate(WINDOW, out=agg.custom(list, lambda a, x: [*a, x], merge=list.__add__)),
        Aggregate(WINDOW, out=agg.first("x"), all=agg.collect("x")),
        Aggregate(WINDOW, out=agg.first("x"), group_by="id"),
        type("Other", (Aggregate,), {})(Tumbling(Count(3)), out=agg.first("x")),
    ],
)
def test_other_functions_need_rows_in_order(op):
    assert ordered_aggregate(op) is None


def test_times_are_ordered_as_they_passed_when_clocks_go_back():
    passed = [1_667_089_800_000_000, 1_667_091_600_000_000]
    at = pa.array(passed, pa.timestamp("us", "Europe/Rome"))
    before, after = at.to_pylist()
    assert before.hour == after.hour == 2
    assert not before < after  # for Python
    assert passed == _comparable(at).to_pylist()
    assert ["b", "a"] == _comparable(pa.array(["b", "a"])).to_pylist()
