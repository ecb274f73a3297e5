"""The axis of event time: exact points, and timestamps of every kind."""
# ruff: noqa: SIM300 - asserts read expected first

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import Event, SchemaError, Session, replay
from windowlib.durations import length
from windowlib.event_time.axis import Axis, Grid, later, later_many, timestamp_like
from windowlib.operators import Aggregate, Panes, agg


def exact(amount):
    """What an amount stands for: a float for the decimal that it is written as."""
    size = length(amount)
    return Fraction(repr(size)) if isinstance(size, float) else Fraction(size)


def brute(size, offset, ts):
    """The largest k whose point, rounded once, is not after a timestamp: by the definition."""
    step, origin = exact(size), exact(offset)
    k = (Fraction(ts) - origin) // step + 2
    rounds = float if isinstance(ts, float) else Fraction
    while rounds(origin + k * step) > ts:
        k -= 1
    return k


SIZES = st.one_of(
    st.integers(1, 1000),
    st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.5, 1e-3, 2.5e-7, 1 / 3, 86400.0]),
    st.decimals("0.001", "100", places=3),
)
OFFSETS = st.one_of(st.integers(-50, 50), st.sampled_from([0.1, -0.3, 0.05, 1e6]))
FLOATS = st.one_of(
    st.integers(-(10**5), 10**5).map(lambda i: i / 10),
    st.integers(0, 10**5).map(lambda i: i * 0.1),
    st.floats(-1e7, 1e7),
    st.integers(17 * 10**9, 17 * 10**9 + 1000).map(lambda i: i / 10),
)


@given(SIZES, OFFSETS, FLOATS)
def test_a_float_belongs_to_the_last_point_that_is_not_after_it(size, offset, ts):
    grid = Grid(size, offset)
    assert brute(size, offset, ts) == grid.index(ts)
    assert grid.point(grid.index(ts)) <= ts < grid.point(grid.index(ts) + 1)


@given(SIZES, OFFSETS, st.integers(-(10**15), 10**15))
def test_whole_numbers_are_exact(size, offset, ts):
    assert brute(size, offset, ts) == Grid(size, offset).index(ts)


@given(SIZES, OFFSETS, st.decimals(-(10**6), 10**6, places=6))
def test_decimals_are_exact(size, offset, ts):
    assert brute(size, offset, ts) == Grid(size, offset).index(ts)


@given(SIZES, OFFSETS, st.lists(FLOATS, min_size=1), st.booleans())
def test_columns_have_the_numbers_of_rows(size, offset, stamps, whole):
    stamps = [int(ts) for ts in stamps] if whole else stamps
    grid = Grid(size, offset)
    assert [grid.index(ts) for ts in stamps] == grid.indexes(np.array(stamps)).tolist()
    ks = np.array([grid.index(ts) for ts in stamps])
    assert [grid.point(k) for k in ks.tolist()] == grid.points(ks).tolist()


@given(SIZES, OFFSETS, st.lists(FLOATS, min_size=1), st.booleans(), st.data())
def test_edges_and_runs_of_columns_say_what_numbers_say(size, offset, stamps, whole, data):
    stamps = np.array([int(ts) for ts in stamps] if whole else stamps)
    grid = Grid(size, offset)
    numbers = grid.indexes(stamps)
    k = data.draw(st.sampled_from(numbers.tolist())) + data.draw(st.integers(-2, 2))
    (edge,) = grid.edges(np.array([k]), stamps.dtype.kind)
    assert (numbers < k).tolist() == (stamps < edge).tolist()
    at, ks = grid.runs(np.sort(stamps))
    lengths = np.diff(at, append=len(stamps))
    assert np.sort(numbers).tolist() == np.repeat(ks, lengths).tolist()
    assert 0 < lengths.min()
    points = ks + data.draw(st.integers(-2, 2))
    behind = grid.behind(stamps, at, points)
    assert (numbers < np.repeat(points, lengths)).tolist() == behind.tolist()


def test_edges_of_whole_numbers_are_exact_where_floats_are_not():
    grid, ts = Grid(0.3), np.arange(2**52, 2**52 + 20)
    for k in grid.indexes(ts).tolist():
        (edge,) = grid.edges(np.array([k]), "i")
        assert (grid.indexes(ts) < k).tolist() == (ts < edge).tolist()


def test_a_stream_of_ten_rows_a_second_has_ten_in_every_second():
    for made in (lambda i: i / 10, lambda i: i * 0.1, lambda i: round(i * 0.1, 1)):
        seconds = Counter(Grid(1.0).index(made(i)) for i in range(10_000))
        assert {10} == set(seconds.values())
        pairs = Counter(Grid(0.2).index(made(i)) for i in range(10_000))
        assert {2} == set(pairs.values())


def test_panes_of_float_seconds_have_as_many_rows_each():
    panes = Panes("ts", size=0.2, slack=0, start="from")
    found = Counter(row["from"] for row in replay(panes, [{"ts": i / 10} for i in range(100)]))
    assert [k / 5 for k in range(50)] == list(found)
    assert {2} == set(found.values())


def test_ends_are_points_of_a_grid_that_is_shifted():
    ends = Grid(0.1, 0.05).shifted(0.25)
    assert [0.3, 0.4, 0.5] == [ends.point(k) for k in range(3)]
    assert 1 == ends.index(0.4)


def test_a_tiny_size_far_away_falls_back_to_exact_arithmetic():
    grid, ts = Grid(1 / 3), np.array([1e15, 1e15 + 0.5])
    assert [grid.index(each) for each in ts.tolist()] == grid.indexes(ts).tolist()
    assert 3 * 10**15 == round(grid.indexes(ts)[0] / 10) * 10


BERLIN = ZoneInfo("Europe/Berlin")


def axis():
    return Axis("ts", "Event('ts')", [])


def at(value):
    return axis().number({"ts": value})


def test_timestamps_before_1970_round_down():
    before = at(datetime(1969, 12, 31, 23, 59, 59, 999_999))
    assert -1 == before
    assert -1 == Grid(timedelta(hours=1)).index(before)
    assert datetime(1969, 12, 31, 23) == timestamp_like(
        Grid(timedelta(hours=1)).point(-1), datetime.min
    )


def test_an_hour_that_daylight_saving_repeats_is_two_hours():
    first = datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
    again = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN)
    hours = Grid(timedelta(hours=1))
    assert 1 == hours.index(at(again)) - hours.index(at(first))
    begun = timestamp_like(hours.point(hours.index(at(again))), first)
    assert (2, 0, 1) == (begun.hour, begun.minute, begun.fold)


def test_zones_are_one_axis():
    noon = datetime(2024, 6, 1, 12, tzinfo=UTC)
    assert at(noon) == at(noon.astimezone(BERLIN)) == at(datetime(2024, 6, 1, 12))
    assert noon == timestamp_like(
        at(noon), datetime(2000, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    )


def test_a_place_takes_the_form_of_a_timestamp():
    assert date(2024, 2, 29) == timestamp_like(at(date(2024, 2, 29)), date(2000, 1, 1))
    assert datetime(2024, 2, 29, 1) == timestamp_like(
        at(datetime(2024, 2, 29, 1)), date(2000, 1, 1)
    )
    assert timedelta(seconds=5) == timestamp_like(5_000_000, timedelta(0))
    assert Decimal("0.6") == timestamp_like(Grid(0.2).point(3), Decimal(1))
    assert isinstance(timestamp_like(3, 1.5), float)
    assert 3 == timestamp_like(3, 1)


def test_floats_and_decimals_do_not_mix():
    mixed = axis()
    assert 1.5 == mixed.number({"ts": 1.5})
    assert 2 == mixed.number({"ts": 2})
    with pytest.raises(SchemaError, match="does not mix with those before it"):
        mixed.number({"ts": Decimal("2.5")})


@pytest.mark.parametrize("value", [None, "x", True, float("nan"), float("inf"), Decimal("NaN")])
def test_other_values_have_no_place_in_time(value):
    with pytest.raises(SchemaError, match="has no place in time"):
        at(value)


def test_a_column_of_floats_after_decimals_is_read_row_by_row():
    decimals = axis()
    decimals.number({"ts": Decimal("1.5")})
    assert decimals.array(pa.record_batch({"ts": [1.5]})) is None
    assert [1.5] == axis().array(pa.record_batch({"ts": [1.5]})).tolist()


DISTANCES = st.one_of(
    st.integers(1, 1000), st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.5, 1e-3, 2.5e-7, 1 / 3])
)


@given(FLOATS, DISTANCES)
def test_a_float_is_moved_on_by_what_is_written(ts, distance):
    assert float(exact(ts) + exact(distance)) == later(ts, distance)


@given(st.lists(FLOATS, min_size=1), DISTANCES, st.booleans())
def test_columns_are_moved_on_as_rows_are(stamps, distance, whole):
    stamps = [int(ts) for ts in stamps] if whole else stamps
    expected = [later(ts, distance) for ts in stamps]
    assert expected == later_many(np.array(stamps), distance).tolist()


@pytest.mark.parametrize("gap", [0.1, 0.3, 1])
@pytest.mark.parametrize("batches", [False, True])
def test_sessions_of_ten_rows_a_second_are_not_cut_by_rounding(gap, batches):
    stamps = [n / 10 for n in range(1000) if n % 100 < 90]
    op = Aggregate(Session(Event("ts"), gap=gap), n=agg.count(), to=agg.window_end())
    if batches:
        running, found = op.open(), list[Any]()
        running.connect(0, found.append)
        for lo in range(0, 900, 300):
            running.insert_batch(pa.table({"ts": stamps[lo : lo + 300]}))
        running.finish()
    else:
        found = list(replay(op, [{"ts": ts} for ts in stamps]))
    ends = [float(Fraction(100 * k + 89, 10) + exact(gap)) for k in range(10)]
    assert [(90, end) for end in ends] == [(row["n"], row["to"]) for row in found]
