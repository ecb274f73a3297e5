"""Sketches against plain counting and sorting: their bounds, merges, snapshots, and sameness."""
# ruff: noqa: SIM300 - asserts read expected first

import copy
import decimal
import math
import os
import pickle
import random
import subprocess
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import reduce
from hashlib import blake2b
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib.errors import ModelError, SchemaError, StateVersionError
from windowlib.operators.sketches import HeavyHitters, HyperLogLog, QuantileSketch
from windowlib.operators.sketches.hashing import digest, encode
from windowlib.operators.sketches.hyperloglog import _estimate, _larger
from windowlib.operators.sketches.kll import _coin

ROOT = Path(__file__).parents[2]
NAN = float("nan")
LATE = datetime(2024, 5, 1, 12, 30)
EAST = timezone(timedelta(hours=2))


class Point(NamedTuple):
    x: Any
    y: Any


class Level(IntEnum):
    LOW = 1


def filled(sketch, values):
    for value in values:
        sketch.add(value)
    return sketch


def chunks(values, size):
    return [values[i : i + size] for i in range(0, len(values), size)]


def cut(values, cuts):
    """The values in pieces, cut anywhere."""
    places = sorted({0, len(values), *(c % (len(values) + 1) for c in cuts)})
    return [values[a:b] for a, b in pairwise(places)]


def merged_tree(sketches):
    while len(sketches) > 1:
        sketches = [reduce(lambda a, b: a.merge(b), pair) for pair in chunks(sketches, 2)]
    return sketches[0]


MERGES = {
    "one by one": lambda sketches: reduce(lambda a, b: a.merge(b), sketches),
    "from the end": lambda sketches: reduce(lambda a, b: b.merge(a), reversed(sketches)),
    "as a tree": merged_tree,
}
merges = pytest.mark.parametrize("merged", MERGES.values(), ids=MERGES)


def streams(n):
    """Friendly and unfriendly orders of friendly and unfriendly values."""
    rng = random.Random(7)
    return {
        "uniform": [rng.random() for _ in range(n)],
        "zipf": [int(rng.paretovariate(1.0)) for _ in range(n)],
        "sorted": list(range(n)),
        "reversed": list(range(n, 0, -1)),
        "constant": [5] * n,
        "zigzag": [i if i % 2 else -i for i in range(n)],
        "up and down": [min(i, n - i) for i in range(n)],
        "periodic": [i * 7919 % 64 + i / n for i in range(n)],
        "one low in 33": [i if i % 33 else -i for i in range(n)],
    }


def draws(n, distinct, seed):
    rng = random.Random(seed)
    return [rng.randrange(distinct) for _ in range(n)]


# Lists that Hypothesis makes itself are mostly too short to leave the exact range.
long = st.builds(draws, st.integers(0, 300), st.integers(1, 100), st.integers(0, 2**32))
some_cuts = st.lists(st.integers(0, 300), max_size=6)

STREAMS = streams(30_000)
all_streams = pytest.mark.parametrize("values", STREAMS.values(), ids=STREAMS)


# -- hashing --


EQUAL: list[list[Any]] = [
    [0, 0.0, -0.0, False, Decimal(0), Decimal("-0.00"), Decimal("0E+50")],
    [1, 1.0, True, Decimal(1), Decimal("1.00"), Decimal("10E-1"), Level.LOW],
    [-1, -1.0, Decimal(-1)],
    [-2, -2.0],  # hash(-1) == hash(-2)
    [0.5, Decimal("0.5")],
    [0.1, Decimal.from_float(0.1)],
    [Decimal("0.1"), Decimal("0.10")],
    [Decimal("-0.1")],
    [2**53, 2.0**53],
    [2**53 + 1, Decimal(2**53 + 1)],
    [-(2**53) - 1, Decimal(-(2**53) - 1)],
    [2**61, 2.0**61],  # hash(2 ** 61) == hash(1)
    [2**61 - 1],
    [10**300, Decimal("1E+300")],
    [int(1e300), 1e300],
    [10**400, Decimal("1E+400")],
    [-(10**400), Decimal("-1E+400")],
    [2**521 - 1],
    [Decimal("1E+999999")],
    [Decimal("1E-999999")],
    [Decimal("9" * 5000), int(Decimal("9" * 5000))],
    [math.inf, Decimal("Infinity")],
    [-math.inf, Decimal("-Infinity")],
    [NAN, -NAN, float("nan"), Decimal("NaN"), Decimal("sNaN"), math.inf - math.inf],
    [""],
    ["1"],
    ["é"],
    ["e\u0301"],
    ["\ud800"],  # a lone surrogate
    [b""],
    [b"1"],
    [date(2024, 5, 1)],
    [datetime(2024, 5, 1)],
    [LATE, LATE.replace(fold=1)],
    [LATE.replace(tzinfo=UTC), datetime(2024, 5, 1, 14, 30, tzinfo=EAST)],
    [LATE.replace(tzinfo=EAST)],
    [LATE + timedelta(microseconds=1)],
    [datetime.min],
    [datetime.max],
    [datetime.min.replace(tzinfo=EAST)],
    [datetime.max.replace(tzinfo=timezone(-timedelta(hours=2)))],
    [timedelta(0)],
    [timedelta(days=1), timedelta(hours=24)],
    [timedelta.max],
    [timedelta.min],
    [()],
    [(1, 2), (1.0, Decimal(2)), Point(1, 2)],
    [((1,), 2)],
    [(1, (2,))],
    [("a", None)],
    [("a",)],
    [("a", "b")],
    [("a2:sb",)],
    [("a0:sb",)],
    [("ab", "c")],
    [("a", "bc")],
    [(NAN,), (float("nan"),)],
]


@pytest.mark.parametrize("values", EQUAL, ids=lambda values: repr(values[0])[:30])
def test_equal_values_have_one_digest(values):
    assert 1 == len({digest(value) for value in values})


def test_different_values_have_different_digests():
    firsts = [values[0] for values in EQUAL]
    for a, b in combinations(firsts, 2):
        assert digest(a) != digest(b), (a, b)


whole = st.one_of(
    st.integers(-4, 4),
    st.integers(),
    st.integers(2**53 - 4, 2**53 + 4),
    st.integers(-(10**400), 10**400),
)
numbers = st.one_of(
    st.booleans(),
    whole,
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    whole.map(Decimal),
)


def versions(x):
    """The same number in other types."""
    yield x
    if isinstance(x, Decimal) and x.is_finite() and abs(x.adjusted()) < 500:
        yield from (int(x), float(x), Fraction(x).numerator)
    elif isinstance(x, float) and math.isfinite(x):
        yield from (int(x), Decimal(x))
    elif isinstance(x, int):
        yield Decimal(x)
        if abs(x) < 10**300:
            yield float(x)


@given(numbers, numbers)
def test_numbers_have_one_encoding_exactly_if_they_are_equal(a, b):
    for x in versions(a):
        for y in (*versions(a), *versions(b)):
            assert (x == y) == (encode(x) == encode(y)), (x, y)


simple = st.one_of(
    st.text(max_size=3),
    st.binary(max_size=3),
    st.integers(-2, 2),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC) | st.just(EAST)),
    st.timedeltas(),
)
nested = st.recursive(simple, lambda inner: st.lists(inner | st.none(), max_size=3).map(tuple))


@given(nested, nested)
def test_values_have_one_encoding_exactly_if_they_are_equal(a, b):
    assert (a == b) == (encode(a) == encode(b))
    assert encode(a) == encode(pickle.loads(pickle.dumps(a)))


def test_hashing_leaves_the_decimal_context_alone():
    with decimal.localcontext() as context:
        context.clear_flags()
        context.prec = 3
        for flag in context.traps:
            context.traps[flag] = flag is not decimal.Inexact
        before = repr(context)
        ours = digest(Decimal("1.23456789")), digest(Decimal("1E+400")), digest(Decimal("0.5"))
        assert before == repr(context)
    assert ours == (digest(Decimal("1.23456789")), digest(10**400), digest(0.5))


# -- HyperLogLog --


def registers_by_hand(values, precision):
    """The registers, from hashes written out as text."""
    registers = [0] * 2**precision
    for value in values:
        hashed = blake2b(encode(value), digest_size=8).hexdigest()
        bits = f"{int(hashed, 16):064b}"
        place, rest = int(bits[:precision], 2), bits[precision:]
        zeros = len(rest) - len(rest.lstrip("0")) + 1
        registers[place] = max(registers[place], zeros)
    return bytes(registers)


@given(st.lists(st.integers(-300, 300) | st.text(max_size=2), max_size=400))
def test_few_distinct_values_are_counted_exactly(values):
    assert len(set(values)) == filled(HyperLogLog(), values).count()


@pytest.mark.parametrize(("precision", "limit"), [(4, 2), (8, 32), (12, 512)])
def test_counts_are_exact_up_to_an_eighth_of_the_registers(precision, limit):
    sketch = HyperLogLog(precision)
    for n in range(1, limit + 1):
        sketch.add(n)
        assert n == sketch.count()
    assert not sketch.snapshot()["registers"]
    sketch.add(limit)
    assert not sketch.snapshot()["registers"]
    sketch.add(-1)
    assert 2**precision == len(sketch.snapshot()["registers"])
    assert [] == sketch.snapshot()["hashes"]


@given(st.integers(4, 9), st.integers(65, 300), st.integers())
def test_registers_are_those_of_the_definition(precision, n, start):
    values = [start + i for i in range(n)]
    expected = registers_by_hand(values, precision)
    assert expected == filled(HyperLogLog(precision), values).snapshot()["registers"]


@given(st.integers(4, 8), long, some_cuts, st.randoms(use_true_random=False))
def test_a_merged_hyperloglog_is_the_one_that_was_never_split(precision, values, cuts, rng):
    expected = filled(HyperLogLog(precision), values).snapshot()
    shuffled = rng.sample(values, len(values))
    parts = [filled(HyperLogLog(precision), part) for part in cut(shuffled, cuts)]
    parts.append(HyperLogLog(precision))
    for merged in MERGES.values():
        assert expected == merged(parts).snapshot()


@given(st.data(), st.sampled_from([16, 32, 256]))
def test_registers_merge_to_the_larger(data, size):
    column = st.lists(st.integers(0, 61), min_size=size, max_size=size).map(bytearray)
    a, b = data.draw(column), data.draw(column)
    assert bytearray(map(max, a, b)) == _larger(a, b)


@pytest.mark.parametrize(
    ("precision", "n"),
    [(4, 10), (4, 2000), (8, 40), (8, 300), (8, 700), (8, 5000), (12, 600), (12, 9000)],
)
def test_the_standard_error_of_counts_is_as_promised(precision, n):
    rounds = max(20, min(200, 60_000 // n))
    errors = [
        filled(HyperLogLog(precision), ((r, i) for i in range(n))).count() / n - 1
        for r in range(rounds)
    ]
    promised = 1.04 / math.sqrt(2**precision)
    assert promised * 1.3 > math.sqrt(sum(e * e for e in errors) / rounds)
    assert promised * 4 / math.sqrt(rounds) > abs(sum(errors) / rounds)  # no bias
    assert promised * 4 > max(map(abs, errors))


@pytest.mark.parametrize("n", [10**3, 10**6, 10**12, 2**60, 2**64])
def test_the_estimate_has_no_bias_even_where_hashes_run_out(n):
    rng, size, width = random.Random(3), 256, 56

    def register():
        # No hash of its n / size exceeds z zeros with probability e ** (−n / size / 2 ** z).
        bar = rng.random()
        return next((z for z in range(width + 1) if bar < math.exp(-n / size / 2**z)), width + 1)

    estimates = [_estimate(bytearray(register() for _ in range(size))) / n for _ in range(100)]
    assert 1 == pytest.approx(sum(estimates) / 100, abs=4 * 0.065 / 10)


@all_streams
def test_counts_of_any_stream_are_within_four_standard_errors(values):
    expected = len(set(values))
    assert expected == pytest.approx(filled(HyperLogLog(), values).count(), rel=4 * 1.04 / 64)


def test_a_count_over_many_magnitudes_is_never_far_off():
    sketch, n = HyperLogLog(14), 0
    for power in range(1, 18):
        for i in range(n, 2**power):
            sketch.add(f"user-{i}")
        n = 2**power
        assert n == pytest.approx(sketch.count(), rel=4 * 1.04 / 128)


def test_a_hyperloglog_counts_nan_once():
    assert 2 == filled(HyperLogLog(), [NAN, float("nan"), Decimal("NaN"), 1]).count()


# -- QuantileSketch --

SHARES = [0, 0.001, 0.01, 0.07, 0.1, 0.25, 1 / 3, 0.5, 0.501, 0.75, 0.9, 0.99, 0.999, 1]


def exact_quantile(values, q):
    """The smallest value that at least a share of q does not exceed; NaN is largest."""
    for value in sorted((v for v in values if v == v), key=lambda v: v):
        if Fraction(str(q)) * len(values) <= sum(v <= value for v in values):
            return value
    return NAN if values else None


def rank_error(sketch, values):
    """By which share of the values a result is off, at worst."""
    ordered, n = sorted(values), len(values)
    worst = 0
    for q in (*SHARES, *(i / 97 for i in range(97))):
        found, rank = sketch.quantile(q), max(1, math.ceil(Fraction(str(q)) * n))
        first, last = bisect_left(ordered, found) + 1, bisect_right(ordered, found)
        assert first <= last, "a result was added once"
        worst = max(worst, first - rank, rank - last)
    return worst / n


def check_quantiles(sketch, values):
    assert len(values) == sketch.count()
    assert (min(values), max(values)) == (sketch.quantile(0), sketch.quantile(1))
    assert 5 / sketch.size >= rank_error(sketch, values)
    held = sum(map(len, sketch.snapshot()["levels"]))
    assert 3 * sketch.size + 32 * max(0, math.log2(len(values) / sketch.size)) >= held


@given(
    st.lists(st.integers() | st.floats(), max_size=64)
    | st.lists(st.text(max_size=3), max_size=64)
    | st.lists(st.decimals(allow_nan=False) | st.integers(), max_size=64)
    | st.lists(st.datetimes(), max_size=64),
    st.sampled_from(SHARES),
)
def test_few_values_have_exact_quantiles(values, q):
    expected, got = exact_quantile(values, q), filled(QuantileSketch(64), values).quantile(q)
    assert expected == got or (expected != expected and got != got)


@given(st.lists(st.integers(0, 99), max_size=64), st.lists(st.integers(0, 64), max_size=4))
def test_merged_quantiles_are_exact_while_values_are_few(values, cuts):
    parts = [filled(QuantileSketch(64), part) for part in cut(values, cuts)]
    for merged in MERGES.values():
        got = merged([*parts, QuantileSketch(64)])
        assert [exact_quantile(values, q) for q in SHARES] == [got.quantile(q) for q in SHARES]


@pytest.mark.parametrize("size", [8, 33, 100, 512])
@all_streams
def test_quantiles_of_any_stream_are_within_the_bound(values, size):
    check_quantiles(filled(QuantileSketch(size), values), values)


@merges
@pytest.mark.parametrize("piece", [10, 101, 600, 777, 15_000])
@pytest.mark.parametrize("name", ["uniform", "zipf", "sorted", "periodic"])
def test_merged_quantiles_are_within_the_bound(merged, piece, name):
    values = STREAMS[name]
    sketch = merged([filled(QuantileSketch(100), part) for part in chunks(values, piece)])
    check_quantiles(sketch, values)


@merges
def test_the_errors_of_equal_pieces_do_not_grow(merged):
    piece = STREAMS["uniform"][:777]
    check_quantiles(merged([filled(QuantileSketch(100), piece)] * 64), piece * 64)


@given(long.filter(bool), st.integers(1, 10), st.lists(st.integers(0, 3000), max_size=4))
def test_no_value_is_lost_or_invented_by_compaction(values, times, cuts):
    values = values * times
    sketch = reduce(
        lambda a, b: a.merge(b), [filled(QuantileSketch(8), part) for part in cut(values, cuts)]
    )
    assert len(values) == sketch.count()
    assert set(values) >= {x for level in sketch.snapshot()["levels"] for x in level}
    assert (min(values), max(values)) == (sketch.quantile(0), sketch.quantile(1))


def test_a_compaction_that_always_takes_the_lower_breaks_the_bound(monkeypatch):
    monkeypatch.setattr("windowlib.operators.sketches.kll._coin", lambda level, times: 0)
    with pytest.raises(AssertionError):
        check_quantiles(filled(QuantileSketch(100), STREAMS["uniform"]), STREAMS["uniform"])


def test_half_of_the_compactions_take_the_lower():
    for level in range(40):
        flips = [_coin(level, times) for times in range(400)]
        assert [1] * 200 == [a + b for a, b in chunks(flips, 2)]
        assert 60 < sum(flips[::2]) < 140
    starts = [_coin(level, 0) for level in range(40)]
    assert 8 < sum(starts) < 32


def test_nan_is_larger_than_everything():
    sketch = filled(QuantileSketch(), [NAN, 1.0, math.inf, Decimal("NaN")])
    assert (4, 1.0, math.inf) == (sketch.count(), sketch.quantile(0), sketch.quantile(0.5))
    assert math.isnan(sketch.quantile(0.51))
    assert math.isnan(filled(QuantileSketch(), [NAN]).quantile(0))
    nothing, number = filled(QuantileSketch(), [NAN]), filled(QuantileSketch(), [2])
    for both in (nothing.merge(number), number.merge(nothing)):
        assert (2, 2) == (both.count(), both.quantile(0.5))
        assert math.isnan(both.quantile(1))


def test_nothing_has_no_quantile():
    assert QuantileSketch().quantile(0.5) is None
    assert QuantileSketch().merge(QuantileSketch()).quantile(0.5) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda i: LATE + timedelta(seconds=i),
        lambda i: date(2024, 1, 1) + timedelta(days=i),
        lambda i: Decimal(i) / 10,
        lambda i: f"{i:09}",
        lambda i: (i // 10, i % 10),
        lambda i: 10**30 + i,
    ],
)
def test_whatever_has_an_order_has_quantiles(make):
    values = [make(i * 7919 % 3000) for i in range(3000)]
    sketch = filled(QuantileSketch(100), values)
    check_quantiles(sketch, values)
    assert type(values[0]) is type(sketch.quantile(0.5))


def test_the_share_is_what_is_written():
    sketch = filled(QuantileSketch(), range(1, 101))
    assert 7 == sketch.quantile(0.07)  # 0.07 * 100 is 7.000000000000001
    assert 7 == sketch.quantile(Decimal("0.07")) == sketch.quantile(Fraction(7, 100))


# -- HeavyHitters --


def check_hitters(sketch, values):
    """Every promise about counts, against counting."""
    true, error = Counter(values), sketch.error()
    found = dict(sketch.top(sketch.capacity // 2))
    tracked = {value for value, _ in sketch.snapshot()["counts"]}
    assert len(tracked) <= sketch.capacity
    assert len(values) == sketch.count()
    assert error <= len(values) / (sketch.capacity // 2 + 1)
    for value, count in found.items():
        assert true[value] <= count <= true[value] + error
    for value in set(true) - tracked:
        assert true[value] <= error
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert len(found) == min(len(true), sketch.capacity // 2)


@given(st.lists(st.integers(0, 15) | st.sampled_from([1.0, True, 2.0, "1"]), max_size=200))
def test_few_distinct_values_have_exact_counts_and_ties_by_first_appearance(values):
    sketch = filled(HeavyHitters(10, capacity=20), values)
    expected = sorted(Counter(values).items(), key=lambda item: -item[1])[:10]
    assert expected == sketch.top()
    assert 0 == sketch.error()


@given(st.lists(st.integers(0, 15), max_size=100), st.lists(st.integers(0, 100), max_size=4))
def test_merged_counts_are_exact_while_distinct_values_are_few(values, cuts):
    parts = [filled(HeavyHitters(10, capacity=20), part) for part in cut(values, cuts)]
    expected = sorted(Counter(values).items(), key=lambda item: -item[1])[:10]
    assert expected == MERGES["one by one"]([*parts, HeavyHitters(10, capacity=20)]).top()


@settings(max_examples=examples(300))
@given(
    st.integers(2, 9),
    long | st.lists(st.integers(0, 30) | st.integers(0, 3), max_size=150),
    some_cuts,
)
def test_counts_are_within_the_error_however_the_stream_is_split(capacity, values, cuts):
    check_hitters(filled(HeavyHitters(1, capacity), values), values)
    parts = [filled(HeavyHitters(1, capacity), part) for part in cut(values, cuts)]
    for merged in MERGES.values():
        check_hitters(merged([*parts, HeavyHitters(1, capacity)]), values)


@pytest.mark.parametrize("capacity", [20, 21, 512])
@all_streams
def test_counts_of_any_stream_are_within_the_error(values, capacity):
    sketch = filled(HeavyHitters(10, capacity), values)
    check_hitters(sketch, values)
    parts = [filled(HeavyHitters(10, capacity), part) for part in chunks(values, 999)]
    for merged in MERGES.values():
        check_hitters(merged(parts), values)


def test_the_most_frequent_words_are_found_with_their_counts():
    rng = random.Random(11)
    values = [f"w{int(rng.paretovariate(0.3))}" for _ in range(50_000)]
    true = Counter(values)
    assert len(true) > 5000
    sketch = filled(HeavyHitters(10), values)
    check_hitters(sketch, values)
    assert {word for word, _ in true.most_common(10)} == {word for word, _ in sketch.top()}


def test_frequent_values_survive_a_flood_of_rare_ones():
    values = [i if i % 4 else "often" for i in range(40_000)]
    sketch = filled(HeavyHitters(1, capacity=20), values)
    assert [("often", 10_000)] == [(v, c) for v, c in sketch.top() if v == "often"]
    check_hitters(sketch, values)


def test_all_nan_are_one_value():
    sketch = filled(HeavyHitters(3), [NAN, 1, float("nan"), Decimal("NaN")])
    again = HeavyHitters.restore(pickle.loads(pickle.dumps(sketch.snapshot())))
    for each in (sketch, again):
        each.add(float("nan"))
        (first, count), second = each.top()
        assert (True, 4, (1, 1)) == (math.isnan(first), count, second)
    both = sketch.merge(again)
    assert [8, 2] == [count for _, count in both.top()]


# -- all of them --

KINDS: dict[str, Any] = {
    "HyperLogLog": lambda: HyperLogLog(5),
    "QuantileSketch": lambda: QuantileSketch(8),
    "HeavyHitters": lambda: HeavyHitters(2, capacity=6),
}
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def answers(sketch):
    if isinstance(sketch, HyperLogLog):
        return sketch.count()
    if isinstance(sketch, QuantileSketch):
        return [sketch.quantile(q) for q in SHARES]
    return sketch.top(), sketch.error()


def is_plain(state):
    if isinstance(state, dict):
        return all(isinstance(k, str) and is_plain(v) for k, v in state.items())
    if type(state) is list:
        return all(map(is_plain, state))
    return state is None or type(state) in (int, str, bytes, float)


@kinds
@given(values=long, at=st.integers(0, 300))
def test_a_restored_sketch_goes_on_like_the_one_that_never_stopped(make, values, at):
    before, after = values[:at], values[at:]
    sketch = filled(make(), before)
    state = sketch.snapshot()
    assert is_plain(state)
    restored = type(sketch).restore(pickle.loads(pickle.dumps(state)))
    assert state == restored.snapshot()
    for value in after:
        sketch.add(value)
        restored.add(value)
        assert answers(sketch) == answers(restored)
    assert sketch.snapshot() == restored.snapshot()
    assert sketch.merge(restored).snapshot() == restored.merge(sketch).snapshot()


@kinds
@given(a=long, b=long)
def test_merging_changes_neither_and_shares_nothing(make, a, b):
    left, right = filled(make(), a), filled(make(), b)
    was = copy.deepcopy((left.snapshot(), right.snapshot()))
    both = left.merge(right)
    assert was == (left.snapshot(), right.snapshot())
    filled(both, range(100, 150))
    assert was == (left.snapshot(), right.snapshot())


@kinds
@given(values=long)
def test_copies_and_snapshots_go_their_own_way(make, values):
    sketch = filled(make(), values)
    state, twin = sketch.snapshot(), sketch.copy()
    was = copy.deepcopy(state)
    filled(twin, range(100, 150))
    assert was == sketch.snapshot() == state
    filled(sketch, range(100, 150))
    assert was == state
    assert sketch.snapshot() == twin.snapshot()
    restored = type(sketch).restore(state)
    filled(restored, range(100, 150))
    assert was == state


@kinds
def test_sketches_have_slots_and_pickle(make):
    sketch = filled(make(), range(50))
    assert not hasattr(sketch, "__dict__")
    assert sketch.snapshot() == pickle.loads(pickle.dumps(sketch)).snapshot()


SAME = """
import pickle, sys
from datetime import datetime
from windowlib.operators.sketches import HeavyHitters, HyperLogLog, QuantileSketch
words = [f"w{i * 7919 % 1000 % (i % 37 + 1)}" for i in range(5000)]
when = datetime(2024, 1, 1)
out = []
for make in (lambda: HyperLogLog(6), lambda: QuantileSketch(20), lambda: HeavyHitters(3, 10)):
    a, b = make(), make()
    for word in words:
        a.add(word)
    for word in words[::-3]:
        b.add(word)
    out.append(a.merge(b).snapshot())
print(repr(out))
"""


def test_every_process_gives_the_same_state():
    said = {
        subprocess.run(
            [sys.executable, "-c", SAME],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert 1 == len(said)
    assert "HeavyHitters" in said.pop()


@pytest.mark.parametrize(
    ("sketch", "text"),
    [
        (HyperLogLog(), "<HyperLogLog(precision=12): about 0 distinct values>"),
        (filled(HyperLogLog(8), "abca"), "<HyperLogLog(precision=8): about 3 distinct values>"),
        (QuantileSketch(), "<QuantileSketch(size=512): 0 values, from None to None>"),
        (filled(QuantileSketch(8), "abc"), "<QuantileSketch(size=8): 3 values, from 'a' to 'c'>"),
        (
            filled(HeavyHitters(5), "abca"),
            "<HeavyHitters(k=5, capacity=512): 4 values, 3 of them counted>",
        ),
        (HeavyHitters(100), "<HeavyHitters(k=100, capacity=800): 0 values, 0 of them counted>"),
    ],
)
def test_a_sketch_says_what_it_is(sketch, text):
    assert text == repr(sketch)


# -- mistakes --


def table(*rows):
    return pytest.mark.parametrize(("call", "text"), rows, ids=[text[:50] for _, text in rows])


@table(
    (
        lambda: HyperLogLog(3),
        "HyperLogLog(precision=3): precision must be a whole number from 4 to 18, such as "
        "precision=12.",
    ),
    (
        lambda: HyperLogLog(True),
        "HyperLogLog(precision=True): precision must be a whole number from 4 to 18, such as "
        "precision=12.",
    ),
    (
        lambda: QuantileSketch(7),
        "QuantileSketch(size=7): size must be a whole number from 8 to 1048576, such as size=512.",
    ),
    (
        lambda: QuantileSketch(10.0),  # type: ignore[arg-type]
        "QuantileSketch(size=10.0): size must be a whole number from 8 to 1048576, such as "
        "size=512.",
    ),
    (
        lambda: HeavyHitters(0),
        "HeavyHitters(k=0): k must be a whole number from 1 to 524288, such as k=10.",
    ),
    (
        lambda: HeavyHitters(1, 1),
        "HeavyHitters(capacity=1): capacity must be a whole number from 2 to 1048576, such as "
        "capacity=512.",
    ),
    (
        lambda: HeavyHitters(10, 19),
        "HeavyHitters(k=10, capacity=19): half of the values may be forgotten, and fewer than 10 "
        "remain. Use capacity=20 or more.",
    ),
    (
        lambda: HeavyHitters(10, 20).top(11),
        "top(k=11): k must be a whole number from 1 to 10, such as k=10.",
    ),
    (
        lambda: QuantileSketch().quantile(1.5),
        "quantile(q=1.5): q must be a share from 0 to 1, such as 0.5 for the median.",
    ),
    (
        lambda: QuantileSketch().quantile(NAN),
        "quantile(q=nan): q must be a share from 0 to 1, such as 0.5 for the median.",
    ),
    (
        lambda: QuantileSketch().quantile("0.5"),  # type: ignore[arg-type]
        "quantile(q='0.5'): q must be a share from 0 to 1, such as 0.5 for the median.",
    ),
    (
        lambda: QuantileSketch().quantile(True),
        "quantile(q=True): q must be a share from 0 to 1, such as 0.5 for the median.",
    ),
    (
        lambda: HyperLogLog().merge(HyperLogLog(8)),
        "HyperLogLog(precision=12).merge(HyperLogLog(precision=8)): they differ in size, so their "
        "states do not fit together. Build both alike.",
    ),
    (
        lambda: HeavyHitters(2).merge({"a": 1}),  # type: ignore[arg-type]
        "HeavyHitters(k=2, capacity=512).merge({'a': 1}): not a HeavyHitters. Merge sketches of "
        "one kind.",
    ),
)
def test_a_parameter_that_makes_no_sense_is_refused(call, text):
    with pytest.raises(ModelError) as caught:
        call()
    assert text == str(caught.value)


HASHED = (
    "cannot be hashed the same in every process. Use a str, bytes, number, date, datetime, "
    "timedelta or a tuple of these, such as str(value)."
)
ORDERED = "Add values of one ordered type, such as numbers or datetimes, and skip nulls."
NO_KEY = "cannot be a key. Use a value that can, such as a tuple in place of a list."


@pytest.mark.parametrize(
    ("sketch", "value", "text"),
    [
        (HyperLogLog(), [1], f"HyperLogLog.add([1]): a list {HASHED}"),
        (HyperLogLog(), (1, {2}), f"HyperLogLog.add({{2}}): a set {HASHED}"),
        (HyperLogLog(), 1j, f"HyperLogLog.add(1j): a complex {HASHED}"),
        (HyperLogLog(), None, "HyperLogLog.add(None): a null is no value to count. Skip nulls."),
        (
            QuantileSketch(),
            None,
            f"QuantileSketch(size=512).add(None): a NoneType has no order. {ORDERED}",
        ),
        (
            filled(QuantileSketch(), [1, 2]),
            "x",
            f"QuantileSketch(size=512).add('x'): it cannot be compared with 1. {ORDERED}",
        ),
        (
            filled(QuantileSketch(), [1, 2]),
            None,
            f"QuantileSketch(size=512).add(None): it cannot be compared with 1. {ORDERED}",
        ),
        (
            filled(QuantileSketch(), [date(2024, 1, 1)]),
            datetime(2023, 1, 1),
            "QuantileSketch(size=512).add(datetime.datetime(2023, 1, 1, 0, 0)): it cannot be "
            f"compared with datetime.date(2024, 1, 1). {ORDERED}",
        ),
        (HeavyHitters(3), [1], f"HeavyHitters(k=3, capacity=512).add([1]): a list {NO_KEY}"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(sketch, value, text):
    before = copy.deepcopy(sketch.snapshot())
    with pytest.raises(SchemaError) as caught:
        sketch.add(value)
    assert text == str(caught.value)
    assert before == sketch.snapshot()


def test_values_of_two_kinds_do_not_merge():
    with pytest.raises(SchemaError) as caught:
        filled(QuantileSketch(), [1]).merge(filled(QuantileSketch(), "ab"))
    text = f"QuantileSketch(size=512).add('a'): it cannot be compared with 1. {ORDERED}"
    assert text == str(caught.value)


def test_the_message_names_the_value_that_does_not_compare():
    sketch = filled(QuantileSketch(), [(0, 0), (1, "a")])
    text = f"QuantileSketch(size=512).add((1, 2)): it cannot be compared with (1, 'a'). {ORDERED}"
    for call in (
        lambda: sketch.add((1, 2)),
        lambda: sketch.merge(filled(QuantileSketch(), [(0, 1), (1, 2)])),
    ):
        with pytest.raises(SchemaError) as caught:
            call()
        assert text == str(caught.value)


def test_values_that_have_no_order_among_themselves_are_refused_at_the_latest_when_sorted():
    values = [(0,), (9,), (1, "a"), (1, 2), (1, "b"), (2, 2), (3, 3), (4, 4)]
    text = (
        "QuantileSketch(size=8): the values cannot be ordered ('<' not supported between "
        "instances of 'int' and 'str'). Add one type only."
    )
    sketch = filled(QuantileSketch(8), values)
    for call in (lambda: sketch.quantile(0.5), lambda: sketch.add((5, 5))):
        with pytest.raises(SchemaError) as caught:
            call()
        assert text == str(caught.value)


def test_a_snapshot_of_something_else_is_refused():
    text = (
        "HyperLogLog.restore(state): this is not a snapshot of a HyperLogLog. Pass what snapshot() "
        "gave."
    )
    states: list[Any] = [None, [], {}, HeavyHitters(3).snapshot()]
    for state in states:
        with pytest.raises(StateVersionError) as caught:
            HyperLogLog.restore(state)
        assert text == str(caught.value)


def test_a_snapshot_of_another_version_is_refused():
    with pytest.raises(StateVersionError) as caught:
        HyperLogLog.restore({**HyperLogLog().snapshot(), "v": 9})
    text = (
        "HyperLogLog.restore(state): the snapshot has format 9, this version reads 1. "
        "Use the version that wrote it, or start afresh."
    )
    assert text == str(caught.value)


@pytest.mark.parametrize(
    ("make", "damage", "reason"),
    [
        ("HyperLogLog", {"registers": b"12"}, "the registers do not fit the precision"),
        ("HyperLogLog", {"hashes": [1, 2, 3, 4, 5]}, "the registers do not fit the precision"),
        ("HyperLogLog", {"hashes": [2, 1]}, "the hashes are not ascending"),
        ("HyperLogLog", {"hashes": [1, 1]}, "the hashes are not ascending"),
        ("HyperLogLog", {"registers": b"\xff" * 32}, "a register is too large"),
        ("HyperLogLog", {"hashes": [-1]}, "OverflowError"),
        ("HyperLogLog", {"hashes": None}, "TypeError"),
        ("HyperLogLog", {"precision": 2}, "precision must be a whole number"),
        ("QuantileSketch", {"levels": []}, "do not fit their counts of compactions"),
        ("QuantileSketch", {"levels": [[1], [2]]}, "do not fit their counts of compactions"),
        ("QuantileSketch", {"levels": [[1]]}, "the smallest value does not fit the levels"),
        ("QuantileSketch", {"low": 1}, "the smallest value does not fit the levels"),
        ("HeavyHitters", {"counts": [[i, 1] for i in range(9)]}, "the counts do not fit"),
        ("HeavyHitters", {"counts": [["a", 1]], "error": 2}, "the counts do not fit"),
        ("HeavyHitters", {"counts": [1]}, "TypeError"),
    ],
)
def test_a_damaged_snapshot_is_refused(make, damage, reason):
    sketch = KINDS[make]()
    with pytest.raises(StateVersionError) as caught:
        type(sketch).restore({**sketch.snapshot(), **damage})
    text = str(caught.value)
    assert text.startswith(f"{make}.restore(state): the snapshot is damaged (")
    assert reason in text
    assert text.endswith("). Take it from snapshot() whole.")


@kinds
def test_a_snapshot_that_lacks_something_is_refused(make):
    state = make().snapshot()
    for name in set(state) - {"v", "sketch"}:
        with pytest.raises(StateVersionError, match=f"damaged .KeyError.'{name}'"):
            type(make()).restore({k: v for k, v in state.items() if k != name})
