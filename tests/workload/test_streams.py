"""Streams out of order, points and keys, and quotes of stocks."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from windowlib.workload import Delays, Keys, Map2, Points, Poisson, Steady, quotes, tuples
from windowlib.workload.checks import generator
from windowlib.workload.streams import _wandering

ARRIVALS = Poisson(rate=1000).arrivals(50_000, seed=1)


def column(table, name):
    return table[name].to_numpy()


# -- delays --


@pytest.mark.parametrize(
    ("delays", "mean", "longest"),
    [
        (Delays.constant(0.3), 0.3, 0.3),
        (Delays.uniform(0.1), 0.1, 0.2),
        (Delays.exponential(0.1), 0.1, 2.0),
    ],
    ids=["constant", "uniform", "exponential"],
)
def test_delays_have_their_mean(delays, mean, longest):
    drawn = delays.draw(500_000, seed=2)
    assert drawn.mean() == pytest.approx(mean, rel=0.01)
    assert 0 <= drawn.min() <= drawn.max() <= longest


def test_few_stragglers_are_far_later_than_all_others():
    drawn = Delays.heavy().draw(1_000_000, seed=2)
    late = drawn[drawn >= 2]
    assert len(late) == pytest.approx(200, abs=45)
    assert 2 <= late.min() < 3 < 19 < late.max() <= 20
    assert drawn[drawn < 2].mean() == pytest.approx(0.03, rel=0.01)
    assert drawn[drawn < 2].max() < 0.6


def test_a_stream_is_in_the_order_of_arrival_and_out_of_that_of_its_timestamps():
    table = tuples(ARRIVALS, Delays.uniform(0.1), seed=3)
    ts, arrival = column(table, "ts"), column(table, "arrival")
    assert (np.diff(arrival) >= 0).all()
    assert (np.diff(ts) < 0).mean() > 0.3
    assert np.sort(ts).tolist() == ARRIVALS.tolist()
    late = arrival - ts
    assert 0 <= late.min() <= late.max() <= 0.2


def test_the_longer_the_delay_the_more_tuples_are_late():
    def late(delay):
        ts = column(tuples(ARRIVALS, Delays.uniform(delay), seed=3), "ts")
        return (ts < np.maximum.accumulate(ts)).mean()

    assert 0 == late(0.0) < late(0.0005) < late(0.005) < late(0.05)


def test_without_delays_a_stream_is_in_order():
    table = tuples(ARRIVALS)
    assert ["ts", "arrival"] == table.column_names
    assert ARRIVALS.tolist() == column(table, "ts").tolist() == column(table, "arrival").tolist()


def test_times_are_seconds_or_instants():
    start = datetime(2024, 3, 1, 15, 30, tzinfo=timezone(timedelta(hours=1)))
    arrivals, delays = Steady(rate=4).arrivals(2), Delays.constant(1.5)
    assert [pa.float64()] * 2 == tuples(arrivals, delays).schema.types
    table = tuples(arrivals, delays, start=start)
    assert [pa.timestamp("us", "UTC")] * 2 == table.schema.types
    first = datetime(2024, 3, 1, 14, 30, tzinfo=UTC)
    assert [first + timedelta(seconds=s) for s in (0.25, 0.5)] == table["ts"].to_pylist()
    assert [first + timedelta(seconds=s) for s in (1.75, 2)] == table["arrival"].to_pylist()


def test_a_row_keeps_what_it_was_given_when_the_stream_is_put_in_order():
    """Delays change the order of rows, and nothing else of them."""
    points, keys = Points.independent(3), Keys.uniform(10)
    plain = tuples(ARRIVALS, None, points, 4, keys=keys)
    mixed = tuples(ARRIVALS, Delays.exponential(1.0), points, 4, keys=keys).sort_by("ts")
    assert ["ts", "arrival", "x0", "x1", "x2", "key"] == plain.column_names
    rest = ["ts", "x0", "x1", "x2", "key"]
    assert plain.select(rest) == mixed.select(rest)


def test_the_same_seed_gives_the_same_stream():
    def made(seed):
        return tuples(
            Map2(rate=100, dispersion=10).arrivals(1000, seed),
            Delays.heavy(),
            Points.anticorrelated(4),
            seed,
            keys=Keys.zipf(7),
        )

    assert made(1) == made(1)
    assert made(1) != made(2)


# -- points --


def undominated(points):
    """How many points no other one is better than."""
    points = points[np.argsort(points.sum(axis=1))]
    kept, n = np.empty_like(points), 0
    for point in points:
        if not (kept[:n] <= point).all(axis=1).any():
            kept[n], n = point, n + 1
    return n


@pytest.mark.parametrize("kind", ["correlated", "independent", "anticorrelated"])
@pytest.mark.parametrize("dims", [1, 2, 8])
def test_points_are_in_the_unit_cube(kind, dims):
    points = Points(kind, dims).draw(20_000, seed=1)
    assert (20_000, dims) == points.shape
    assert 0 <= points.min() <= points.max() < 1
    assert points.mean() == pytest.approx(0.5, abs=0.02)


def test_points_are_correlated_as_they_say():
    def correlation(kind):
        x, y = Points(kind, 2).draw(20_000).T
        return np.mean((x - x.mean()) * (y - y.mean())) / (x.std() * y.std())

    assert correlation("correlated") > 0.8
    assert abs(correlation("independent")) < 0.03
    assert correlation("anticorrelated") < -0.8


@pytest.mark.parametrize("dims", [2, 4, 8])
def test_the_less_points_agree_the_more_of_them_are_best(dims):
    few, some, most = (
        undominated(make(dims).draw(3000, seed=1))
        for make in (Points.correlated, Points.independent, Points.anticorrelated)
    )
    assert 2 * few < some < 0.7 * most


# -- keys --


def test_keys_have_their_shares():
    for keys in (Keys.uniform(4), Keys.zipf(50, 1.2), Keys.heaviest(1000, 0.16)):
        assert 1 == pytest.approx(keys.shares.sum())
        drawn = np.bincount(keys.draw(400_000, seed=1), minlength=keys.count) / 400_000
        assert keys.count == len(drawn)
        assert drawn == pytest.approx(keys.shares, abs=0.003)


def test_the_first_key_is_the_heaviest():
    assert 0.16 == Keys.heaviest(1000, 0.16).shares.max() == Keys.heaviest(1000, 0.16).shares[0]
    assert [1.0] == Keys.heaviest(1, 1.0).shares.tolist()
    assert {0} == set(Keys.heaviest(1, 1.0).draw(100).tolist())
    assert Keys.zipf(3, 1.0).shares == pytest.approx(np.array([6, 3, 2]) / 11)


# -- quotes --


def test_quotes_look_like_quotes():
    table = quotes(50_000, symbols=5, seed=3)
    names = ["symbol", "ts", "bid", "ask", "bid_volume", "ask_volume"]
    assert names == table.column_names
    assert 5 == len(set(table["symbol"].to_pylist()))
    bid, ask = column(table, "bid"), column(table, "ask")
    cents = np.rint((ask - bid) * 100)
    assert {1, 2, 3, 4} == set(cents.tolist())
    assert bid.min() > 1
    assert (np.rint(bid * 100) / 100).tolist() == bid.tolist()
    for name in ("bid_volume", "ask_volume"):
        volume = column(table, name)
        assert volume.min() == 100
        assert not (volume % 100).any()
    assert (np.diff(column(table, "ts").astype(np.int64)) >= 0).all()


def test_a_price_goes_on_from_the_last_one_of_its_symbol():
    table = quotes(50_000, symbols=5, seed=3)
    symbols, bid = column(table, "symbol"), column(table, "bid")
    for symbol in set(symbols):
        own = bid[symbols == symbol]
        assert np.abs(np.diff(np.log(own))).max() < 0.003
        assert own.max() / own.min() > 1.01


def test_the_walk_of_a_symbol_is_that_of_its_own_steps():
    which = Keys.zipf(4).draw(2000, seed=3)
    draws = generator(3, "prices")
    first = draws.uniform(20, 400, 4)
    steps = np.rint(draws.normal(0.0, 1.5, 2000))
    walked, expected = np.zeros(4), []
    for symbol, step in zip(which, steps, strict=True):
        walked[symbol] += step
        expected.append(first[symbol] * np.exp(walked[symbol] * 1e-4))
    assert expected == pytest.approx(_wandering(which, 4, 3).tolist())


def test_one_symbol_may_have_most_of_the_quotes():
    table = quotes(40_000, symbols=["A", "B", "C"], seed=3, p_max=0.75)
    share = np.mean(column(table, "symbol") == "A")
    assert share == pytest.approx(0.75, abs=0.01)


def test_quotes_come_when_arrivals_say():
    bursts = Map2(rate=500, dispersion=30)
    table = quotes(1000, seed=3, arrivals=bursts, start=datetime(2025, 1, 1, tzinfo=UTC))
    expected = np.rint(bursts.arrivals(1000, seed=3) * 1e6).astype(np.int64)
    got = column(table, "ts").astype("datetime64[us]") - np.datetime64("2025-01-01", "us")
    assert expected.tolist() == got.astype(np.int64).tolist()


def test_there_are_names_for_any_number_of_symbols():
    table = quotes(5000, symbols=20, seed=1)
    assert 20 == len(set(table["symbol"].to_pylist()))
    assert 0 == quotes(0).num_rows
