"""Joins in time: what the sorted tables give, whichever input is ahead, by rows and in batches."""
# ruff: noqa: SIM300 - asserts read expected first

import itertools
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import DeltaOrderError, Graph, SchemaError, replay, restart, to
from windowlib.columnar.engines import time_join as arrays
from windowlib.operators import AsOf, Filter, IntervalJoin
from windowlib.operators.join import time_join

DIRECTIONS = ("backward", "forward", "nearest")
HOWS = ("left", "inner", "semi", "anti")
KEYS = ["a", "b", None]


# -- an oracle that looks at every pair --


def before(left, right, strict):
    return right["ts"] < left["ts"] or (not strict and right["ts"] == left["ts"])


def found(left: Any, rights: Any, join: Any) -> Any:
    """The right rows of a left one, by the definition."""
    same = [r for r in rights if left["k"] is not None and r["k"] == left["k"]]
    same.sort(key=lambda r: r["ts"])
    if isinstance(join, IntervalJoin):
        rule: Any = join.alignment
        low, high = left["ts"] - rule.before, left["ts"] + rule.after
        return [r for r in same if low <= r["ts"] <= high]
    strict, near = join.alignment.strict, join.alignment.tolerance
    if near is not None:
        same = [r for r in same if left["ts"] - near <= r["ts"] <= left["ts"] + near]
    back = [r for r in same if before(left, r, strict)][-1:]
    forth = [r for r in same if before(r, left, strict)][:1]
    kind = type(join.alignment).__name__
    if kind != "Nearest":
        return back if kind == "Backward" else forth
    forth = [r for r in same if r["ts"] > left["ts"]][:1]
    if back and forth and forth[0]["ts"] - left["ts"] < left["ts"] - back[0]["ts"]:
        return forth
    return back or forth


def expected(lefts, rights, join):
    """Pairs of numbers, in the order of the left timestamps."""
    pairs = []
    for left in sorted(lefts, key=lambda row: row["ts"]):
        matches = found(left, rights, join)
        if join.how in ("semi", "anti"):
            pairs += [(left["n"], None)] * (bool(matches) == (join.how == "semi"))
        elif matches or join.how == "left":
            pairs += [(left["n"], r and r["m"]) for r in matches or [None]]
    return pairs


def numbers(rows):
    return [(row["n"], row.get("m")) for row in rows]


# -- random streams --


@st.composite
def streams(draw, *, most=25):
    """Two inputs that come out of order by less than a slack, and how they interleave."""
    real = draw(st.booleans())
    slack = draw(st.sampled_from([0, 3]))

    def side(name):
        steps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5]), max_size=most))
        rows: list[Any] = []
        for ts in itertools.accumulate(steps):
            value = ts * 0.1 if real else ts
            delay = draw(st.floats(0, slack * 0.99)) if slack else 0
            rows.append((value + delay, {"k": draw(st.sampled_from(KEYS)), "ts": value}))
        rows.sort(key=lambda pair: pair[0])
        return [row | {name: number} for number, (_, row) in enumerate(rows)]

    turns = draw(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30))
    return side("n"), side("m"), turns, slack, real


@st.composite
def joins(draw, slack):
    how = draw(st.sampled_from(HOWS))
    options = {
        "on": "k",
        "how": how,
        "slack": slack,
        "late": draw(st.sampled_from(["drop", "port"])),
    }
    if how == "left":
        options["unmatched"] = draw(st.sampled_from(["row", "port"]))
    if draw(st.booleans()):
        low, high = draw(st.sampled_from([0, 1, 4])), draw(st.sampled_from([0, 3]))
        return IntervalJoin("ts", before=low, after=high, **options)
    return AsOf(
        "ts",
        direction=draw(st.sampled_from(DIRECTIONS)),
        strict=draw(st.booleans()),
        tolerance=draw(st.sampled_from([None, 0, 2])),
        **options,
    )


def pieces(lefts, rights, turns):
    """Pieces of both inputs in turn, until both have ended."""
    rest = [list(lefts), list(rights)]
    for right, size in itertools.chain(turns, itertools.cycle([(False, 7), (True, 7)])):
        if not any(rest):
            return
        part, rest[right] = rest[right][:size], rest[right][size:]
        if part:
            yield int(right), part


def connected(join, out):
    running = join.open()
    for number in range(len(join.model.outputs)):
        running.connect(number, lambda row, number=number: out.append((number, row)))
    return running


def schemas(real):
    stamp = pa.float64() if real else pa.int64()
    return [pa.schema({"k": pa.string(), "ts": stamp, name: pa.int64()}) for name in "nm"]


@settings(max_examples=examples(300))
@given(st.data())
def test_uneven_streams_give_what_sorted_tables_give(data):
    lefts, rights, turns, slack, _ = data.draw(streams())
    join = data.draw(joins(slack))
    items: list[Any] = []
    for port, part in pieces(lefts, rights, turns):
        items += [to(port, row) for row in part]
        items += [restart()] * data.draw(st.integers(0, 1))
    rows = [row for _, row in replay(join, items).items()]
    same = expected(lefts, rights, join)
    if type(join.alignment).__name__ in ("Backward", "Interval"):
        assert same == numbers(rows)
    else:
        assert sorted(same, key=str) == sorted(numbers(rows), key=str)


@pytest.fixture
def small(monkeypatch):
    """Arrays for every batch, and nothing that is kept for convenience."""
    monkeypatch.setattr(time_join, "FEW", 1)
    monkeypatch.setattr(time_join, "SPARE", 2)
    monkeypatch.setattr(arrays, "MAX_UNUSED_ROWS", 4)


@pytest.mark.search
@pytest.mark.usefixtures("small")
def test_batches_give_what_rows_give_however_they_are_cut():
    engines = []

    @settings(max_examples=examples(300))
    @given(st.data())
    def check(data):
        lefts, rights, turns, slack, real = data.draw(streams())
        join = data.draw(joins(data.draw(st.sampled_from([0, slack]))))
        one: list[Any] = []
        many: list[Any] = []
        rows, batches = connected(join, one), connected(join, many)
        for port, part in pieces(lefts, rights, turns):
            for row in part:
                rows.insert(row, port)
            if data.draw(st.integers(0, 4)):
                batches.insert_batch(pa.RecordBatch.from_pylist(part, schemas(real)[port]), port)
                engines.append(batches.operator._engine is not None)
            else:
                batches.insert_many(part, port)
            assert one == many
            if not data.draw(st.integers(0, 9)):
                state = batches.snapshot(arrays=True)
                batches = connected(join, many)
                batches.restore(state)
        rows.finish()
        batches.finish()
        assert one == many
        assert rows.operator.late_rows == batches.operator.late_rows
        known = [running.snapshot()["state"] for running in (rows, batches)]
        for name in ("states", "over", "late", "columns", "axes"):
            assert known[0][name] == known[1][name]

    check()
    assert sum(engines) > len(engines) // 2


# -- foreign oracles --


def tables(seed, left, right, keys):
    import numpy as np

    rnd = np.random.default_rng(seed)
    trades = pa.table(
        {
            "k": rnd.integers(0, keys, left),
            "ts": np.sort(rnd.integers(0, 10 * left, left)),
            "n": np.arange(left),
        }
    )
    stamps = rnd.choice(10 * left, right, replace=False)  # of equal ones a database takes any
    quotes = pa.table(
        {"k": rnd.integers(0, keys, right), "ts": np.sort(stamps), "m": np.arange(right)}
    )
    return trades, quotes


def queried(query: str, trades: Any, quotes: Any) -> list[Any]:
    found: Any = pytest.importorskip("duckdb").sql(query)
    return found.fetchall()  # type: ignore[no-any-return]


def in_batches(join, trades, quotes, size):
    out: list[Any] = []
    running = connected(join, out)
    for at in range(0, max(len(trades), len(quotes)), size):
        for port, table in enumerate((trades, quotes)):
            running.insert_batch(table.slice(at, size), port)
    running.finish()
    return [row for _, row in out]


@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("how", ["left", "inner"])
def test_an_as_of_join_is_that_of_duckdb(direction, strict, how):
    trades, quotes = tables(1, 3000, 900, 20)
    sign = {"backward": ">", "forward": "<"}[direction] + "=" * (not strict)
    kind = "LEFT" if how == "left" else ""
    query = f"SELECT n, m FROM trades t ASOF {kind} JOIN quotes q ON t.k = q.k AND t.ts {sign} q.ts"
    join = AsOf("ts", on="k", direction=direction, strict=strict, how=how)
    assert sorted(queried(query, trades, quotes), key=str) == sorted(
        numbers(in_batches(join, trades, quotes, 300)), key=str
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("tolerance", [None, 40])
def test_an_as_of_join_is_that_of_polars(direction, tolerance):
    trades, quotes = tables(2, 3000, 900, 5)
    pl = pytest.importorskip("polars")
    frames: list[Any] = [pl.from_arrow(table) for table in (trades, quotes)]
    theirs = frames[0].join_asof(
        frames[1],
        on="ts",
        by="k",
        strategy=direction,
        tolerance=tolerance,
        check_sortedness=False,
    )
    join = AsOf("ts", on="k", direction=direction, tolerance=tolerance)
    ours = in_batches(join, trades, quotes, 300)
    if direction == "nearest":  # of two that are equally near, each has its own
        stamps = dict(zip(quotes["m"].to_pylist(), quotes["ts"].to_pylist(), strict=True))
        of = {row["n"]: row["ts"] for row in trades.to_pylist()}

        def far(pairs):
            return sorted((n, None if m is None else abs(of[n] - stamps[m])) for n, m in pairs)

        assert far(theirs.select("n", "m").rows()) == far(numbers(ours))
    else:
        assert sorted(theirs.select("n", "m").rows()) == sorted(numbers(ours))


def test_an_interval_join_is_a_range_join_of_duckdb():
    trades, quotes = tables(3, 2000, 900, 5)
    query = (
        "SELECT n, m FROM trades t LEFT JOIN quotes q "
        "ON t.k = q.k AND q.ts BETWEEN t.ts - 100 AND t.ts + 30 ORDER BY t.ts, n, q.ts"
    )
    join = IntervalJoin("ts", before=100, after=30, on="k", how="left")
    assert queried(query, trades, quotes) == numbers(in_batches(join, trades, quotes, 300))


# -- by example --


def stamps(join, lefts, rights):
    rows = replay(join, [{"ts": ts} for ts in lefts], [{"ts": ts} for ts in rights])
    return [(row["ts"], row.get("ts_right")) for row in rows]


def test_datetimes_of_any_zone_are_instants():
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    east = timezone(timedelta(hours=2))
    quotes = [noon.astimezone(east) - timedelta(seconds=1), noon + timedelta(hours=1)]
    join = AsOf("ts", tolerance="1s")
    assert [(noon, quotes[0])] == stamps(join, [noon], quotes)
    assert [(noon, None)] == stamps(AsOf("ts", tolerance="999ms"), [noon], quotes)


def test_decimals_and_times_before_1970():
    old = datetime(1960, 1, 1)
    assert [(old, old)] == stamps(AsOf("ts"), [old], [old])
    assert [(Decimal("0.3"), Decimal("0.1"))] == stamps(
        AsOf("ts", tolerance=Decimal("0.2")), [Decimal("0.3")], [Decimal("0.1"), Decimal(1)]
    )


def test_a_row_without_a_timestamp_matches_nothing_and_waits_for_nothing():
    running = AsOf("ts").open()
    rows: list[Any] = []
    running.connect(0, rows.append)
    running.insert({"ts": None, "x": 1}, 0)
    running.insert({"ts": math.nan, "x": 2}, 0)
    running.insert({"ts": None, "y": 1}, 1)
    assert [1, 2] == [row["x"] for row in rows]


def test_nulls_among_timestamps_in_batches_are_taken_row_by_row():
    trades = pa.table({"ts": [1, None] * 400, "n": range(800)})
    quotes = pa.table({"ts": [0, 5], "m": [0, 1]})
    rows = numbers(replay(AsOf("ts"), trades, quotes))
    assert {0: 0, 1: None} == {n % 2: m for n, m in rows}
    assert 800 == len(rows)


def test_the_end_of_one_input_is_enough():
    running = AsOf("ts").open()
    rows: list[Any] = []
    running.connect(0, rows.append)
    running.insert({"ts": 1}, 1)
    running.finish(1)
    running.insert({"ts": 5}, 0)
    assert [{"ts": 5, "ts_right": 1}] == rows


def test_of_equal_timestamps_backward_takes_the_last_and_forward_the_first():
    quotes = [{"ts": 3, "q": "first"}, {"ts": 3, "q": "last"}, {"ts": 9, "q": "other"}]
    for direction, q in (("backward", "last"), ("forward", "first"), ("nearest", "last")):
        join = AsOf("ts", direction=direction)  # type: ignore[arg-type]
        (row,) = replay(join, [{"ts": 3}], quotes)
        assert q == row["q"]


def test_right_rows_that_no_left_row_can_need_are_forgotten():
    for join, most in ((AsOf("ts", on="k"), 200), (AsOf("ts", on="k", tolerance=5), 200)):
        running = join.open()
        for ts in range(5000):
            running.insert({"k": ts % 3, "ts": ts}, 1)
            running.insert({"k": ts % 3, "ts": ts}, 0)
        held = running.snapshot()["state"]["held"]
        assert len(held[0]) + len(held[1]) < most


def test_keys_that_have_gone_are_forgotten_with_a_tolerance(monkeypatch):
    monkeypatch.setattr(arrays, "MAX_UNUSED_ROWS", 64)
    for batches in (False, True):
        running = AsOf("ts", on="k", tolerance=5).open()
        for start in range(0, 9000, 300):
            rows = [{"k": ts, "ts": ts} for ts in range(start, start + 300)]
            for port in (1, 0):
                if batches:
                    running.insert_batch(pa.RecordBatch.from_pylist(rows), port)
                else:
                    running.insert_many(rows, port)
        operator: Any = running.operator
        assert batches == (operator._engine is not None)
        held = running.snapshot()["state"]["held"]
        assert len(held[0]) + len(held[1]) < 2000
        if batches:
            assert len(operator._engine.keys) < 3000


def test_a_failure_downstream_costs_no_other_row_its_turn():
    def fail(row):
        if row["n"] == 1:
            raise ValueError("no")
        seen.append(row["n"])

    for size in (1, 1000):
        seen: list[int] = []
        running = AsOf("ts").open()
        running.connect(0, fail)
        running.insert_batch(pa.table({"ts": range(1000), "n": [5, 1, *range(2, 1000)]}), 0)
        with pytest.raises(ValueError, match="no"):
            running.insert_batch(pa.table({"ts": [2000 + i for i in range(size)]}), 1)
        assert [5, *range(2, 1000)] == seen


def test_a_slack_of_its_own_for_each_input():
    join = AsOf("ts", slack=(0, 6), late="error")
    assert [(5, 4)] == stamps(join, [5], [1, 9, 4])
    with pytest.raises(DeltaOrderError, match="the left input is complete up to 5"):
        stamps(join, [5, 4], [9])


def test_inputs_of_two_kinds_do_not_mix_in_batches_either():
    running = AsOf("ts").open()
    running.insert_batch(pa.table({"ts": range(500)}), 0)
    with pytest.raises(SchemaError, match="does not mix with those before it"):
        running.insert_batch(pa.table({"ts": pa.array(range(500), pa.timestamp("us"))}), 1)


def test_it_stands_in_a_graph():
    graph = Graph(
        inputs=["trades", "quotes"],
        big=(Filter(lambda row: row["n"] > 1), "trades"),
        joined=(AsOf("ts", on="k"), "big", "quotes"),
    )
    items = [to("trades", {"k": 1, "ts": n, "n": n}) for n in range(4)]
    items += [to("quotes", {"k": 1, "ts": ts, "m": ts}) for ts in (1, 3, 9)]
    assert [(2, 1), (3, 3)] == numbers(replay(graph, items))


def test_it_says_what_it_does():
    text = AsOf("ts", on="k", slack="5s", late="port").explain()
    assert "the last right row at or before" in text
    assert '"5s" behind the greatest timestamp' in text
    assert "late_left and late_right" in text
    own = AsOf("ts", select=lambda left, right: left).explain()
    assert "select= reads each row in Python" in own
