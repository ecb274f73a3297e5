"""var, std, cov and corr of whole numbers and decimals: rounded once, the same in every way."""

import json
import math
import pickle
import random
import statistics
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import Count, SchemaError, Sliding, Tumbling, replay
from windowlib.operators import Aggregate, agg
from windowlib.summaries.exact import decimal_ratio, decimal_root, ratio, root

SIZES = [10, 2**20, 2**31, 2**33, 2**53, 2**62, 2**63 - 1]
WINDOWS: dict[str, Tumbling | Sliding] = {
    "tumbling": Tumbling(Count(7), by="k"),
    "sliding": Sliding(Count(20), every=Count(3), by="k"),
    "slices": Sliding(Count(50), every=Count(5)),
    "long": Tumbling(Count(300)),
}
OUTPUTS = {
    "var": agg.var("x"),
    "population": agg.var("y", ddof=0),
    "std": agg.std("x"),
    "cov": agg.cov("x", "y"),
    "corr": agg.corr("x", "y"),
}
SCHEMA = pa.schema({"k": pa.string(), "x": pa.int64(), "y": pa.int64()})


def rows_of(size, seed=1, count=900):
    """Values far from zero and close together, and others all over the place."""
    rng = random.Random(seed)
    near, y = min(size // 2, 1000), lambda: rng.randrange(-size, size)
    return [
        {"k": "ab"[i % 2], "x": size - 1 - rng.randrange(near), "y": rng.choice([None, y(), y()])}
        for i in range(count)
    ]


def variance(values, ddof):
    exact = [Fraction(value) for value in values if value is not None]
    if len(exact) <= ddof:
        return None
    mean = sum(exact) / len(exact)
    return sum((each - mean) ** 2 for each in exact) / (len(exact) - ddof)


def covariance(pairs, ddof=1):
    known = [(Fraction(x), Fraction(y)) for x, y in pairs if None not in (x, y)]
    if len(known) <= ddof:
        return None
    n = len(known)
    x, y = (sum(side) / n for side in zip(*known, strict=True))
    return sum((a - x) * (b - y) for a, b in known) / (n - ddof)


def wanted(rows):
    """The outputs over some rows, from fractions."""
    xs, ys = [row["x"] for row in rows], [row["y"] for row in rows]
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
    both = covariance(pairs)
    found = {"var": float(variance(xs, 1)), "population": variance(ys, 0)}
    found["population"] = None if found["population"] is None else float(found["population"])
    found["std"] = root(*variance(xs, 1).as_integer_ratio())
    found["cov"] = None if both is None else float(both)
    found["corr"] = None
    if len(pairs) > 1:
        below = variance([x for x, _ in pairs], 1) * variance([y for _, y in pairs], 1)
        one = root(*(both * both / below).as_integer_ratio()) if below else math.nan
        found["corr"] = -one if both < 0 else one
    return found


def texts(rows):
    return [{name: repr(value) for name, value in row.items() if name != "k"} for row in rows]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("size", SIZES)
def test_rows_give_what_fractions_give(size, window):
    op = Aggregate(WINDOWS[window], OUTPUTS, rows=agg.collect())
    found = list(replay(op, rows_of(size, count=400)))
    assert found
    for row in found[:30]:
        assert texts([wanted(row.pop("rows"))]) == texts([row])


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("size", SIZES)
def test_batches_and_restores_give_the_same_to_the_last_bit(size, window):
    op, rows = Aggregate(WINDOWS[window], OUTPUTS), rows_of(size)
    by_row = list(replay(op, rows))
    assert by_row
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    assert "columnar" in op.explain(batch)
    running, found = op.open(), []
    for cut in pairwise([0, 333, 334, 700, 900]):
        found += running.process_batch(batch.slice(cut[0], cut[1] - cut[0])).to_pylist()
        state = running.snapshot(arrays=cut[0] == 334)
        running = op.open()
        running.restore(pickle.loads(pickle.dumps(state)))
    assert texts(by_row) == texts(found)


def test_the_states_of_rows_and_of_batches_are_the_same():
    rows = rows_of(2**62)[:500]
    op = Aggregate(Tumbling(Count(1000), by="k"), OUTPUTS)
    one, other = op.open(), op.open()
    one.insert_many(rows)
    other.insert_batch(pa.RecordBatch.from_pylist(rows, SCHEMA))
    assert one.snapshot() == other.snapshot()
    again = op.open()
    again.restore(json.loads(json.dumps(one.snapshot())))
    assert one.snapshot() == again.snapshot()


def test_rows_and_batches_take_turns():
    rows = rows_of(2**62)
    op = Aggregate(Tumbling(Count(900)), OUTPUTS)
    found: list[dict[str, Any]] = []
    running = op.open()
    running.connect(0, found.append)
    running.insert_many(rows[:100])
    running.insert_batch(pa.RecordBatch.from_pylist(rows[100:600], SCHEMA))
    running.insert_many(rows[600:])
    assert texts([wanted(rows)]) == texts(found)


def test_many_large_numbers_in_one_window_carry_over():
    top = 2**63 - 1
    rows = [{"k": "a", "x": top - i % 2, "y": -top - 1 + i % 3} for i in range(30_000)]
    op = Aggregate(Tumbling(Count(30_000)), OUTPUTS)
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    running, found = op.open(), []
    for first in range(0, 30_000, 5_000):
        found += running.process_batch(batch.slice(first, 5_000)).to_pylist()
    assert texts([wanted(rows)]) == texts(found)


# -- decimals -------------------------------------------------------------------------------------


def over(values, output, window=None):
    rows = [
        {"x": x} if not isinstance(x, tuple) else dict(zip("xy", x, strict=True)) for x in values
    ]
    window = window or Tumbling(Count(len(rows)))
    return list(replay(Aggregate(window, out=output), rows))[-1]["out"]


decimals = st.decimals(
    allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12
)


@given(st.lists(decimals, min_size=2, max_size=12))
def test_decimals_are_rounded_once(values):
    exact = variance(values, 1)
    found = over(values, agg.var("x"))
    assert isinstance(found, Decimal)
    assert Decimal(exact.numerator) / Decimal(exact.denominator) == found
    with localcontext() as context:
        context.prec = 60
        near = (Decimal(exact.numerator) / Decimal(exact.denominator)).sqrt()
    assert +near == over(values, agg.std("x"))


@given(st.lists(st.tuples(decimals, st.integers(-(10**20), 10**20)), min_size=2, max_size=12))
def test_pairs_of_decimals_and_whole_numbers_give_floats_that_are_rounded_once(pairs):
    assert float(covariance(pairs)) == over(pairs, agg.cov("x", "y"))


@given(st.lists(decimals, min_size=4, max_size=12))
def test_a_sliding_window_of_decimals_gives_what_its_values_give(values):
    slid = over(values, agg.var("x"), Sliding(Count(3), every=Count(1)))
    assert over(values[-3:], agg.var("x")) == slid


def test_decimals_and_whole_numbers_mix_in_any_order():
    one, two = [Decimal("1.5"), 2, Decimal("2.25")], [2, Decimal("2.25"), Decimal("1.5")]
    assert (
        over(one, agg.var("x"))
        == over(two, agg.var("x"))
        == Decimal("0.1458333333333333333333333333")
    )


@pytest.mark.parametrize("values", [(1.5, Decimal(2)), (Decimal(2), 1.5), (2, Decimal("NaN"))])
def test_decimals_do_not_mix_with_floats_nor_with_what_is_no_number(values):
    with pytest.raises(SchemaError, match="it is no number like the others"):
        over(values, agg.var("x"))


def test_digits_that_are_too_many_to_be_exact_are_refused():
    with pytest.raises(SchemaError, match="it is no number like the others"):
        over([Decimal("1E+7000"), Decimal(1)], agg.var("x"))


def test_decimals_survive_a_snapshot():
    op = Aggregate(Tumbling(Count(3)), var=agg.var("x"), cov=agg.cov("x", "x"))
    found: list[dict[str, Any]] = []
    first, second = op.open(), op.open()
    first.insert_many([{"x": Decimal("0.1")}, {"x": Decimal("1e3")}])
    second.connect(0, found.append)
    second.restore(pickle.loads(pickle.dumps(first.snapshot())))
    with pytest.raises(SchemaError, match="it is no number like the others"):
        second.insert({"x": 0.5})
    second.insert({"x": 7})
    values = [Decimal("0.1"), Decimal("1e3"), 7]
    assert [{"var": over(values, agg.var("x")), "cov": float(variance(values, 1))}] == found


# -- mixtures -------------------------------------------------------------------------------------


def test_whole_numbers_among_floats_are_near_what_floats_give():
    values = [1, 2.5, 10**15, 3, -7.25]
    assert math.isclose(statistics.variance(values), over(values, agg.var("x")), rel_tol=1e-12)
    pairs = [(1, 2), (2.5, 1), (3, 0.5), (10**6, -(10**6))]
    assert math.isclose(float(covariance(pairs)), over(pairs, agg.cov("x", "y")), rel_tol=1e-12)


def test_a_state_of_an_earlier_release_is_taken():
    one, two = agg.var("x").call, agg.cov("x", "y").call
    assert one is not None
    assert two is not None
    fold, both = one.fold(short=False), two.fold(short=False)
    assert fold.value(2, fold.load([2, 1.5, 0.5])) == 0.5
    assert both.value(2, both.load([2, 1.5, 1.5, 0.5, 0.5, 0.5])) == 0.5


def test_a_result_too_large_for_a_float_is_infinite():
    assert math.inf == over([10**400, -(10**400)], agg.var("x"))
    assert math.inf == over([10**400, -(10**400)], agg.std("x"))
    assert over([(10**400, 10**400), (1, 1)], agg.corr("x", "y")) == 1.0


def test_floats_whose_distance_is_infinite_have_no_negative_variance():
    assert math.inf == over([1e308, -1e308], agg.var("x"))
    assert math.inf == over([1e308, -1e308], agg.std("x"))
    assert math.isnan(over([(1e308, 1e308), (-1e308, -1e308)], agg.corr("x", "y")))


# -- rounding -------------------------------------------------------------------------------------

above, below = st.integers(0, 2**700), st.integers(1, 2**300)


@given(above, below)
def test_roots_are_rounded_once(a, b):
    found = root(a, b)
    if math.isinf(found):
        return
    exact, least = Fraction(a, b), Fraction(math.nextafter(found, 0.0))
    low, high = (
        (Fraction(found) + least) / 2,
        (Fraction(found) + Fraction(math.nextafter(found, math.inf))) / 2,
    )
    assert low * low <= exact <= high * high


@given(above, below, st.integers(0, 9))
def test_decimal_results_are_rounded_once(a, b, digits):
    with localcontext() as context:
        context.prec = 900
        quotient = Decimal(a) / Decimal(b * 10**digits)
        square_root = quotient.sqrt()
    assert +quotient == decimal_ratio(a, b, digits)
    assert +square_root == decimal_root(a, b, digits)
    assert ratio(a, b) == a / b
