"""The best rows of every window: by definition, and the same however rows come in."""
# ruff: noqa: SIM300 - asserts read expected first

import math
import pickle
import random
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.preference import preference_oracle as oracles
from tests.operators.preference.preference_driver import (
    END,
    arrays_from_the_first_row_on,
    by_batch,
    by_row,
    by_table,
)
from windowlib import (
    Count,
    Delta,
    PartitionCount,
    Punct,
    SchemaError,
    Sliding,
    Time,
    Tumbling,
    advance,
    punct,
    replay,
)
from windowlib.farms.choice import choose
from windowlib.operators import (
    Aggregate,
    KDominantSkyline,
    Skyline,
    TopDelta,
    TopK,
    agg,
    asc,
    col,
    desc,
)
from windowlib.operators.sort.ordering import SortKey

SCHEMA = pa.schema(
    [("city", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.int64())]
)
WINDOWS = [
    Tumbling(Count(5)),
    Tumbling(Count(3), by="city"),
    Tumbling(Delta("ts", 4)),
    Tumbling(Delta("ts", 4), by="city"),
    Sliding(Count(6), every=Count(2)),
    Sliding(Count(4), every=Count(1), by="city"),
    Sliding(Count(6), every=Count(3), partial="emit"),
    Sliding(Delta("ts", 6), every=Delta("ts", 2)),
    Sliding(Delta("ts", 6), every=Count(2), by="city"),
    Sliding(Count(4), every=Count(2), by="city", forget=PartitionCount(1)),
]


def queries(window):
    return [
        Skyline(window, "a", desc("b")),
        KDominantSkyline(window, "a", desc("b"), k=1),
        TopDelta(window, "a", desc("b"), delta=2),
        TopDelta(window, "a", desc("b"), delta=2, exact=False),
        TopK(window, by="a", k=2),
    ]


def chosen(operator, rows):
    """What an operator of this file is to choose from rows, by definition."""
    points = [(row["a"], -row["b"]) for row in rows]
    if isinstance(operator, TopK):
        return [rows[i] for i in oracles.top_k([-row["a"] for row in rows], 2)]
    if isinstance(operator, TopDelta):
        found = oracles.top_delta(points, 2, operator.exact)
        return [rows[i] | {"factor": f, "k": k} for i, f, k in found]
    if isinstance(operator, KDominantSkyline):
        return [rows[i] for i in oracles.k_dominant(points, 1)]
    return [rows[i] for i in oracles.skyline(points)]


OPERATORS = [operator for window in WINDOWS for operator in queries(window)]
each = pytest.mark.parametrize("operator", OPERATORS, ids=lambda op: repr(op).replace("size=", ""))
few = st.integers(0, 3)


@st.composite
def streams(draw, most=40):
    """Rows with many ties, in the order of ts."""
    drawn = draw(st.lists(st.tuples(st.sampled_from("xyz"), few, few, few), max_size=most))
    ts, rows = 0, []
    for city, step, a, b in drawn:
        ts += step
        rows.append({"city": city, "ts": ts, "a": a, "b": b})
    return rows


quick = settings(
    max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@each
@quick
@given(rows=streams())
def test_a_firing_gives_what_the_definition_says_of_its_window(operator, rows):
    (spec,) = operator.windows
    windows = Aggregate(spec, rows=agg.collect())
    want: list[Any] = []
    for found in by_row(windows, rows):
        want += [END] if found == END else chosen(operator, found["rows"])
    assert want == by_row(operator, rows)


@each
@quick
@given(rows=streams(), data=st.data())
def test_rows_batches_and_restarts_give_the_same(monkeypatch, operator, rows, data):
    arrays_from_the_first_row_on(monkeypatch)
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4))
    want = by_row(operator, rows)
    assert want == by_batch(operator, rows, cuts, SCHEMA)
    assert want == by_batch(operator, rows, cuts, SCHEMA, restarts=False)
    assert want == by_batch(operator, rows, cuts, SCHEMA, restarts=True)
    assert [row for row in want if row != END] == by_table(operator, rows, cuts, SCHEMA)


@pytest.mark.parametrize("every", [1, 30, 128])
def test_windows_that_overlap_share_what_they_have_in_common(every):
    draw = random.Random(every)
    rows = [{"city": "x", "ts": n, "a": draw.randrange(50), "b": n % 37} for n in range(700)]
    for operator in queries(Sliding(Count(256), every=Count(every))):
        want = by_row(operator, rows)
        assert want == by_batch(operator, rows, [300], SCHEMA)
        assert END in want


def test_whole_batches_are_taken_as_columns():
    batch = pa.RecordBatch.from_pylist([{"city": "x", "ts": 0, "a": 1, "b": 2}] * 300)
    for operator in OPERATORS[:-5]:  # the last evicts partitions
        fed = operator.open()
        fed.insert_batch(batch)
        (window,) = fed.operator.containers
        assert window is not None
        assert window.state.in_arrays, operator
        assert "columnar" in operator.explain(batch)


# -- one window, looked at closely --


def only(operator, *points):
    """The places of the points that come out of one window."""
    rows = [dict(zip("abc", point, strict=False)) | {"n": n} for n, point in enumerate(points)]
    return [row["n"] for row in replay(operator, [*rows, punct()])]


BORDER = Tumbling(Punct())


def test_a_point_that_is_better_in_the_first_dimension_alone_dominates():
    assert [1] == only(Skyline(BORDER, "a", "b"), (5, 5), (1, 5))
    assert [1] == only(TopDelta(BORDER, "a", "b", delta=2), (5, 5), (1, 5))
    assert [1] == only(KDominantSkyline(BORDER, "a", "b", k=2), (5, 5), (1, 5))


def test_equal_rows_all_stay():
    assert [0, 1, 3] == only(Skyline(BORDER, "a", "b"), (1, 2), (1, 2), (2, 2), (1, 2))
    assert [0, 2] == only(Skyline(BORDER, "a"), (1,), (2,), (1,))


def test_rows_that_beat_one_another_in_a_circle_leave_an_empty_answer():
    circle = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    assert [] == only(KDominantSkyline(BORDER, "a", "b", "c", k=2), *circle)
    assert [0, 1, 2] == only(KDominantSkyline(BORDER, "a", "b", "c", k=3), *circle)


def test_top_delta_cuts_ties_by_arrival_or_takes_them_all():
    circle = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    assert [0, 1] == only(TopDelta(BORDER, "a", "b", "c", delta=2), *circle)
    assert [0, 1, 2] == only(TopDelta(BORDER, "a", "b", "c", delta=2, exact=False), *circle)


def test_a_skyline_of_fewer_than_delta_rows_comes_out_whole():
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 2}, punct()]
    for exact in (True, False):
        found = list(replay(TopDelta(BORDER, "a", "b", delta=5, exact=exact), rows))
        assert [{"a": 1, "b": 1, "factor": 0, "k": 2}] == found


def test_the_added_columns_of_top_delta_can_be_renamed():
    operator = TopDelta(BORDER, "a", delta=1, factor="worst", k="of")
    assert [{"k": 7, "a": 1, "worst": 0, "of": 1}] == list(replay(operator, [{"k": 7, "a": 1}]))
    given = pa.schema({"k": pa.int64(), "a": pa.int64()})
    assert ["k", "a", "worst", "of"] == operator.schema(given).names
    with pytest.raises(SchemaError, match="TopDelta\\(k='k'\\): the rows have a column"):
        TopDelta(BORDER, "a", delta=1).schema(given)


def test_top_k_prefers_those_that_came_first():
    assert [0, 2] == only(TopK(BORDER, by=asc("a"), k=2), (1,), (2,), (1,), (1,))
    assert [1, 3] == only(TopK(BORDER, by="a", k=2), (1,), (2,), (1,), (2,), (2,))


@pytest.mark.parametrize("score", ["a", col("a"), lambda row: row["a"], desc("a"), desc(col("a"))])
def test_the_top_is_the_largest_score_unless_asked_otherwise_and_in_order_of_arrival(score):
    scores = [(2,), (9,), (1,), (7,), (3,)]
    assert [1, 3] == only(TopK(BORDER, by=score, k=2), *scores)
    if not isinstance(score, SortKey):
        assert [0, 2] == only(TopK(BORDER, by=asc(score), k=2), *scores)


def test_a_dimension_may_be_an_expression_an_index_or_a_callable():
    points = [(1, 9), (3, 1), (2, 3)]
    assert [0] == only(TopK(BORDER, by=col("a") * col("b"), k=1), *points)
    assert [1] == only(TopK(BORDER, by=asc(col("a") * col("b")), k=1), *points)
    assert [0] == only(TopK(BORDER, by=asc(lambda row: row["a"]), k=1), *points)
    found = replay(Skyline(BORDER, 0, desc(1)), [(1, 2), (2, 2), (2, 3), punct()])
    assert [(1, 2), (2, 3)] == list(found)


def test_objects_come_out_as_they_went_in():
    @dataclass
    class Offer:
        price: float
        km: int

    offers = [Offer(9.0, 1), Offer(9.5, 2), Offer(3.0, 2)]
    assert [offers[0], offers[2]] == list(replay(Skyline(BORDER, "price", "km"), offers))
    (best,) = replay(TopDelta(BORDER, "price", delta=1), offers)
    assert {"price": 3.0, "km": 2, "factor": 0, "k": 1} == best


# -- values --

NAN, INF = math.nan, math.inf
BIG = 2**53
VALUES = [
    [1.5, -0.0, 0.0, 2.5, -3.0],
    [INF, 1.0, -INF, INF, 5.0],
    [BIG, BIG + 1, BIG + 2, -BIG - 1, -BIG],
    [-(2**63), 2**63 - 1, 0, 1, 2],
    ["b", "ä", "a", "B", "b"],
    [date(2024, 1, 2), date(2023, 1, 2), date(2024, 1, 1), date(1969, 1, 1), date(2024, 1, 2)],
    [Decimal("1.10"), Decimal("1.1"), Decimal("-7"), Decimal("3"), Decimal("0")],
    [True, False, True, True, False],
]
MISSING = [
    [NAN, INF, 1.0, None, NAN],
    [None, None, None, None, None],
    [3, None, BIG + 1, 4, None],
    ["b", None, "a", None, "c"],
]


def as_points(values, others, descending):
    """Tuples that compare as the values do, NaN and null behind all."""
    ranks = sorted({value for value in values if value is not None and value == value})
    found = []
    for value, other in zip(values, others, strict=True):
        missing = value is None or value != value
        rank = len(ranks) if missing else ranks.index(value)
        found.append((rank if missing or not descending else -rank, other))
    return found


@pytest.mark.parametrize("values", VALUES + MISSING, ids=repr)
@pytest.mark.parametrize("descending", [False, True])
def test_whatever_has_an_order_can_be_a_dimension(monkeypatch, values, descending):
    arrays_from_the_first_row_on(monkeypatch)
    others = [5, 4, 3, 2, 1]
    key = desc("a") if descending else asc("a")
    rows = [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate(zip(values, others, strict=True))]
    points = as_points(values, others, descending)
    window = Tumbling(Count(5))
    cases = [
        (Skyline(window, key, "b", nan="worst"), oracles.skyline(points)),
        (TopK(window, by=key, k=2, nan="worst"), oracles.top_k([a for a, _ in points], 2)),
    ]
    for operator, want in cases:
        assert want == [row["n"] for row in by_row(operator, rows) if row != END]
        assert want == [row["n"] for row in by_batch(operator, rows) if row != END]
        assert (
            want
            == operator.partials.rows(operator.partials.of(pa.RecordBatch.from_pylist(rows)))
            .column("n")
            .to_pylist()
        )


@pytest.mark.parametrize("value", [None, NAN])
def test_a_row_with_nan_is_refused_when_it_comes_and_the_others_stay(monkeypatch, value):
    arrays_from_the_first_row_on(monkeypatch)
    rows = [{"a": 3.0, "b": 1.0}, {"a": 1.0, "b": value}, {"a": 2.0, "b": 2.0}]
    batch = pa.RecordBatch.from_pylist(rows)
    said = "'b' is (None|nan) in the row"
    for window in (Tumbling(Count(2)), Sliding(Count(2))):
        operator = Skyline(window, "a", "b")
        one, other = operator.open(), operator.open()
        sent: tuple[list[Any], list[Any]] = ([], [])
        for running, rows_out in zip((one, other), sent, strict=True):
            running.connect(0, rows_out.append)
        one.insert(rows[0])
        with pytest.raises(SchemaError, match=said):
            one.insert(rows[1])
        with pytest.raises(SchemaError, match=said):
            other.insert_batch(batch)
        for running in (one, other):
            running.insert(rows[2])
        assert [rows[0], rows[2]] == sent[0] == sent[1]


def test_values_of_another_type_are_refused_by_rows_and_batches_alike(monkeypatch):
    arrays_from_the_first_row_on(monkeypatch)
    for restarts in (None, False, True):
        with pytest.raises(SchemaError, match="the values 'x' and 1 do not compare"):
            by_batch(
                TopK(Tumbling(Count(9)), by="a", k=1), [{"a": 1}, {"a": "x"}], [1], None, restarts
            )
    with pytest.raises(SchemaError, match="the values 'x' and 1 do not compare"):
        by_row(TopK(Tumbling(Count(9)), by="a", k=1), [{"a": 1}, {"a": "x"}])


def test_rows_from_before_a_batch_may_be_too_large_for_its_arithmetic(monkeypatch):
    arrays_from_the_first_row_on(monkeypatch)
    operator = TopK(Sliding(Count(3), every=Time("1s")), by=asc(col("a") * col("b")), k=1)
    rows = [{"a": 2**40, "b": 2**40}, {"a": 2**41, "b": 2**40}, {"a": 2**30, "b": 1}]
    for rest in ([rows[2]], [{"a": 2**62, "b": 2**20}]):
        running, sent = operator.open(), list[Any]()
        running.connect(0, sent.append)
        running.insert_many(rows[:2])
        running.insert_batch(pa.RecordBatch.from_pylist(rest))
        running.advance(1)
        assert [min([*rows[:2], *rest], key=lambda row: row["a"] * row["b"])] == sent


def test_rows_that_cannot_be_compared_at_a_tick_fail_it_once(monkeypatch):
    arrays_from_the_first_row_on(monkeypatch)

    def fail(rows):
        raise SchemaError("no order")

    operator = TopK(Sliding(Count(3), every=Time("1s")), by="a", k=1)
    running, sent = operator.open(), list[Any]()
    running.connect(0, sent.append)
    running.insert_batch(pa.RecordBatch.from_pylist([{"a": 1}, {"a": 2}, {"a": 0}]))
    with monkeypatch.context() as broken:
        assert isinstance(running.operator, TopK)
        broken.setattr(running.operator.dimensions, "cloud", fail)
        with pytest.raises(SchemaError, match="no order"):
            running.advance(1)
    running.advance(2)
    assert [{"a": 2}] == sent


def test_a_column_that_an_operator_adds_is_refused_in_batches_too(monkeypatch):
    arrays_from_the_first_row_on(monkeypatch)
    with pytest.raises(SchemaError, match="TopDelta\\(k='k'\\)"):
        by_batch(TopDelta(Tumbling(Count(9)), "a", delta=1), [{"a": 1, "k": 1}])


def test_a_reader_that_fails_stops_the_batch_where_a_row_would():
    operator = Skyline(Tumbling(Count(2)), "a")
    rows = [{"a": n} for n in range(600)]

    def taken(feed):
        running, found = operator.open(), []

        def take(row):
            found.append(row)
            if row["a"] == 300:
                raise KeyError("full")

        running.connect(0, take)
        with pytest.raises(KeyError):
            feed(running)
        running.insert({"a": 7})
        return found, running.snapshot()["windows"]

    by_rows = taken(lambda running: running.insert_many(rows))
    assert by_rows == taken(lambda running: running.insert_batch(pa.RecordBatch.from_pylist(rows)))


# -- time, punctuations, ends --


def test_timed_windows_fire_with_the_clock():
    rows = [{"a": 3}, advance("1s"), {"a": 1}, advance("2s"), {"a": 2}, advance("5s")]
    assert [{"a": 1}, {"a": 2}] == list(replay(Skyline(Tumbling(Time("2s")), "a"), rows))
    sliding = Skyline(Sliding(Time("2s"), every=Time("1s")), "a")
    assert [3, 1, 1, 2, 2] == [row["a"] for row in replay(sliding, rows)]


def test_batches_with_times_are_rows_at_these_times(monkeypatch):
    arrays_from_the_first_row_on(monkeypatch)
    rows = [{"at": n // 3, "a": (n * 7) % 5, "b": (n * 3) % 4} for n in range(60)]
    for spec in (Tumbling(Time("4s")), Sliding(Time("5s"), every=Time("2s"))):
        operator = Skyline(spec, "a", desc("b"))
        one, found = operator.open(), list[Any]()
        one.connect(0, found.append, lambda: found.append(END))  # noqa: B023
        for row in rows:
            one.advance(row["at"])
            one.insert(row)
        other, same = operator.open(), list[Any]()
        other.connect(0, same.append, lambda: same.append(END))  # noqa: B023
        other.insert_batch(pa.RecordBatch.from_pylist(rows), times="at")
        assert found == same
        assert found


def test_what_is_left_comes_out_at_the_end_only_if_asked_for():
    rows = [{"a": 2}, {"a": 1}]
    window = Tumbling(Count(9))
    assert [] == list(replay(Skyline(window, "a"), rows))
    assert [{"a": 1}, END] == by_row(Skyline(window, "a", flush_at_end=True), rows)
    assert [{"a": 1}, END] == by_row(Skyline(Tumbling(Punct()), "a"), rows)


def test_an_empty_window_that_fires_sends_its_punctuation():
    for window in (Tumbling(Punct()), Sliding(Time("1s"), every=Time("1s"))):
        running, sent = Skyline(window, "a").open(), list[Any]()
        running.connect(0, sent.append, lambda: sent.append(END))  # noqa: B023
        running.punctuate()
        running.advance(1)
        assert [END] == sent


def test_a_sliding_window_waits_until_it_is_full_unless_told_otherwise():
    rows = [{"a": 3}, {"a": 2}, {"a": 4}]
    window = Sliding(Count(3), every=Count(1))
    assert [{"a": 2}] == list(replay(Skyline(window, "a"), rows))
    emitted = replay(Skyline(window, "a", partial="emit"), rows)
    assert [{"a": 3}, {"a": 2}, {"a": 2}] == list(emitted)


# -- as values, and for hosts --


def test_an_operator_is_its_call():
    operator = TopDelta(Tumbling(Count(5)), "a", desc("b"), delta=2, exact=False)
    assert operator == pickle.loads(pickle.dumps(operator))
    assert "TopDelta(Tumbling(Count(size=5)), 'a', desc('b'), delta=2, exact=False)" == repr(
        operator
    )
    assert "smallest a, largest b" in operator.explain()


def test_farms_know_that_parts_can_be_merged():
    for operator in queries(Sliding(Count(100), every=Count(10))):
        assert "pane" == choose(operator, 4).pattern
    for operator in queries(Tumbling(Count(100))):
        assert "window partition" == choose(operator, 4).pattern
    assert ("city",) == Skyline(Tumbling(Count(5), by="city"), "a").splits_by(0)
    evicting = Skyline(Tumbling(Count(5), by="city", forget=PartitionCount(2)), "a")
    assert "which partitions are evicted" == evicting.beyond_window()


def test_a_subclass_with_handlers_of_its_own_is_given_every_row():
    class Loud(Skyline):
        def after_insert(self, window, tuple_, key):
            heard.append(tuple_)

    heard: list[Any] = []
    rows = [{"a": n} for n in range(300)]
    running = Loud(Tumbling(Count(100)), "a").open()
    running.insert_batch(pa.RecordBatch.from_pylist(rows))
    assert rows == heard
    assert "what before_insert does" == Loud(Tumbling(Count(2)), "a").beyond_window()
    assert not Loud(Tumbling(Count(2)), "a").passes("a", 0)


def test_added_columns_are_not_passed_on():
    operator = TopDelta(Tumbling(Count(2)), "a", delta=1)
    assert operator.passes("a", 0)
    assert not operator.passes("k", 0)
