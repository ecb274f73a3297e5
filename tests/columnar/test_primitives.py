"""Layouts, delta boundaries and the choice of an engine, against loops in plain Python."""
# ruff: noqa: SIM300 - asserts read expected first

import os
import subprocess
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.with_each_engine import engine  # noqa: F401 - a fixture for all tests here
from tests.helpers.examples import examples
from windowlib.columnar import primitives
from windowlib.columnar.primitives import (
    chain,
    delta_chains,
    gather,
    group,
    group_keys,
    grouping,
    oldest_within,
    ranges,
    reductions,
    slide,
)

thorough = settings(max_examples=examples(150))
LOWEST, HIGHEST = -(2**63), 2**63 - 1

# -- group --


def check_group(ids, partitions):
    order, touched, starts = group(ids, partitions)
    assert sorted(range(len(ids)), key=ids.tolist().__getitem__) == order.tolist()
    present = sorted(set(ids.tolist()))
    assert present == touched.tolist()
    sizes = [ids.tolist().count(each) for each in present]
    assert [0, *accumulate(sizes)] == starts.tolist()
    assert all(np.int64 == array.dtype for array in (order, touched, starts))


@thorough
@given(
    st.sampled_from([1, 2, 5, 300, 70_000, 5_000_000_000]).flatmap(
        lambda top: st.tuples(st.lists(st.integers(0, top - 1), max_size=40), st.just(top))
    ),
    st.booleans(),
)
def test_a_layout_has_each_partition_in_arrival_order(drawn, wide):
    ids, partitions = drawn
    check_group(np.array(ids, np.int64 if wide or partitions > 2**31 else np.int32), partitions)


@pytest.mark.parametrize("size", [grouping.ARROW_ROWS - 1, grouping.ARROW_ROWS, 5000])
@pytest.mark.parametrize(
    "partitions", [2, 100, grouping.ARROW_SPAN, grouping.ARROW_SPAN + 1, 65_536, 65_537, 9_000_000]
)
def test_batches_of_all_sizes_have_a_stable_layout(size, partitions):
    ids = np.random.default_rng(size).integers(0, partitions, size)
    ids[-1], ids[0] = 0, partitions - 1  # the whole span
    order, touched, starts = group(ids.astype(np.int32), partitions)
    assert (np.argsort(ids, kind="stable") == order).all()
    present, sizes = np.unique(ids, return_counts=True)
    assert (present == touched).all()
    assert (np.append(0, np.cumsum(sizes)) == starts).all()


@pytest.mark.parametrize("base", [0, -5, 2**62])
@pytest.mark.parametrize("span", [1, 30, 3000, grouping.ARROW_SPAN])
def test_keys_are_grouped_without_their_partitions(engine, base, span):  # noqa: F811
    rng = np.random.default_rng(span)
    table = rng.permutation(span).astype(np.int32)
    keys = rng.integers(0, span, 2000) + base
    found = group_keys(keys, base, table)
    if engine == "numba":
        assert found is None
        return
    assert found is not None
    order, touched, starts = found
    assert np.argsort(keys, kind="stable").tolist() == order.tolist()
    present, sizes = np.unique(keys - base, return_counts=True)
    assert table[present].tolist() == touched.tolist()
    assert [0, *np.cumsum(sizes).tolist()] == starts.tolist()
    assert all(np.int64 == array.dtype for array in found)


@pytest.mark.parametrize("key", [-1, 2, 3, LOWEST, HIGHEST])
def test_keys_that_have_no_partition_are_not_grouped(key):
    keys, table = np.zeros(2000, np.int64), np.array([0, 1, -1], np.int32)
    keys[7] = key
    assert group_keys(keys, 0, table) is None
    assert group_keys(keys[:5], 0, table) is None  # few are faster looked up


def test_rows_of_one_partition_stay_as_they_are():
    for ids, partitions in ((np.zeros(5, np.int32), 1), (np.full(5, 7, np.int32), 9)):
        order, touched, starts = group(ids, partitions)
        assert list(range(5)) == order.tolist()
        assert [ids[0]] == touched.tolist()
        assert [0, 5] == starts.tolist()


def test_rows_that_come_sorted_stay_as_they_are():
    ids = np.repeat(np.arange(0, 90, 3), 50)
    check_group(ids, 100)
    ids[-1] = 0  # sorted as far as a glance goes
    check_group(ids, 100)


def test_no_rows_touch_no_partition():
    order, touched, starts = group(np.empty(0, np.int32), 5)
    assert ([], [], [0]) == (order.tolist(), touched.tolist(), starts.tolist())


def test_ids_may_come_from_arrow():
    ids = pa.array([3, 1, 3, 0, 1] * 500, pa.int32()).to_numpy()
    assert not ids.flags.writeable
    check_group(ids, 4)


# -- gather and ranges --


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int32, np.bool_, "datetime64[us]"])
@pytest.mark.parametrize("size", [0, 1, 100, 300_000])
def test_values_in_the_order_of_the_layout(dtype, size):
    values = np.arange(size).astype(dtype)
    order = np.random.default_rng(1).permutation(size)
    result = gather(values, order)
    assert values.dtype == result.dtype
    assert (values[order] == result).all()


def test_part_of_the_values():
    assert [2.5, 2.5] == gather(np.array([1.5, 2.5, 3.5]), np.array([1, 1])).tolist()


@thorough
@given(st.lists(st.tuples(st.integers(-5, 99), st.integers(0, 7)), max_size=12))
def test_ranges_follow_each_other(drawn):
    starts, lengths = np.array(drawn, np.int64).reshape(-1, 2).T
    expected = [place for start, length in drawn for place in range(start, start + length)]
    result = ranges(starts, lengths)
    assert np.int64 == result.dtype
    assert expected == result.tolist()


@pytest.mark.parametrize("most", [0, 5, 100])
def test_places_are_counted_whether_or_not_they_are_kept(most, monkeypatch):
    monkeypatch.setattr(grouping, "COUNTED", most)
    monkeypatch.setattr(grouping, "_counted", np.empty(0, np.intp))
    for stop in (3, 0, 5, 6, 4):
        assert list(range(stop)) == grouping.counting(stop).tolist()
    assert len(grouping._counted) <= most


# -- chain --

# All partitions step together, each alone, every row is looked at, whole numbers of all partitions
# are put on one axis, where they search or look ahead, or as is cheapest.
CHEAP, DEAR = 0, 10**12
WAYS: dict[str, dict[str, int]] = {
    "as it is": {},
    "together": {"STEP": CHEAP, "STEP_EACH": CHEAP, "ROW": DEAR},
    "alone": {"JUMP": CHEAP, "ROW": DEAR, "JUMPS": 3},
    "all rows": {"ROW": CHEAP, "ROWS": 1 << 15},
    "all rows, few at a time": {"ROW": CHEAP, "ROWS": 5, "TICKED": 0},
    "on one axis": {"TOGETHER": 1, "SPARSE": 0, "UNEVEN": DEAR},
    "in lockstep": {"TOGETHER": 1, "SPARSE": 0, "UNEVEN": DEAR, "LOCKSTEP": 1},
}


def followed(values, starts, ends, reference, known, threshold):
    """The definition: one place after the other."""
    fired, last = [], list(reference)
    for partition, (start, end) in enumerate(zip(starts, ends, strict=True)):
        has = known[partition]
        for place in range(start, end):
            if not has:
                last[partition], has = values[place], True
            elif values[place] - last[partition] > threshold:
                fired.append(place)
                last[partition] = values[place]
    return fired, last


def check_chain(values, starts, ends, reference, known, threshold):
    places, last = chain(values, starts, ends, reference, known, threshold)
    fired, expected = followed(
        values.tolist(),
        starts.tolist(),
        ends.tolist(),
        reference.tolist(),
        known.tolist(),
        threshold,
    )
    assert fired == places.tolist()
    assert expected == last.tolist()
    assert np.int64 == places.dtype
    assert values.dtype == last.dtype


@st.composite
def partitions(draw, number):
    """Values that ascend in each partition, with places between that are nobody's."""
    values: list[Any] = []
    starts, ends = [], []
    for drawn in draw(st.lists(st.lists(number, max_size=25), min_size=1, max_size=8)):
        starts.append(len(values))
        values += sorted(drawn)
        ends.append(len(values))
        values += draw(st.lists(number, max_size=1))
    size = len(starts)
    reference = draw(st.lists(number, min_size=size, max_size=size))
    known = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return (
        np.array(values, type(reference[0])),
        np.array(starts),
        np.array(ends),
        np.array(reference),
        np.array(known),
    )


tenths = st.integers(-60, 60).map(lambda n: n / 10)
whole = st.integers(-40, 40)
both = st.one_of(
    st.tuples(partitions(tenths), st.integers(0, 40).map(lambda n: n / 10)),
    st.tuples(partitions(whole), st.one_of(st.integers(0, 30), st.sampled_from([0.5, 2.5, inf]))),
)


@pytest.mark.parametrize("way", WAYS)
@thorough
@given(case=both)
def test_boundaries_are_those_of_the_definition(way, case):
    with ExitStack() as changes:
        for name, value in WAYS[way].items():
            changes.enter_context(patch.object(delta_chains, name, value))
        (values, starts, ends, reference, known), threshold = case
        check_chain(values, starts, ends, reference, known, threshold)


@pytest.mark.parametrize("count", [1, 7, 400, 800])
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 2.0, 5.0, 30.0, 1e9])
@pytest.mark.parametrize("kind", ["steps", "ties", "ints"])
def test_long_partitions_take_the_way_that_is_cheapest(count, threshold, kind):
    rng = np.random.default_rng(count)
    steps = {
        "steps": rng.exponential(0.3, 20_000).round(1),
        "ties": (rng.random(20_000) < 0.02) * 0.7,
        "ints": rng.integers(0, 3, 20_000),
    }
    values = np.cumsum(steps[kind])
    if kind != "ints":
        values = values.round(1)
    ends = np.sort(rng.integers(0, 20_000, count))
    ends[-1] = 20_000
    starts = np.append(0, ends[:-1])
    reference = values[np.minimum(starts, 19_999)]
    check_chain(values, starts, ends, reference, rng.random(count) < 0.5, threshold)


@pytest.mark.parametrize("far", [2**40, 2**61, 2**62])
def test_references_and_values_that_are_far_away(far):
    rng = np.random.default_rng(1)
    ends = np.arange(1, 201) * 50
    values = np.sort(rng.integers(0, 100, (200, 50)), axis=1).ravel()
    reference = rng.choice([-far, 0, 50, far], 200)
    check_chain(values, ends - 50, ends, reference, rng.random(200) < 0.7, 30)
    check_chain(values + far, ends - 50, ends, reference.clip(0), rng.random(200) < 0.7, 30)


def test_a_difference_is_not_a_sum():
    """With tenths, `new - old > threshold` and `new > old + threshold` do not always agree."""
    pairs = [(a / 10, b / 10, d / 10) for a in range(30) for b in range(a) for d in range(20)]
    differ = [(a, b, d) for a, b, d in pairs if (a - b > d) != (a > b + d)]
    assert differ
    for new, old, threshold in differ:
        values, one = np.array([new]), np.array([1])
        places, _ = chain(values, one - 1, one, np.array([old]), one > 0, threshold)
        assert (new - old > threshold) == bool(len(places))
        near = oldest_within(np.array([old]), one - 1, one, values, threshold)
        assert (new - old > threshold) == bool(near[0])


def test_a_threshold_between_two_floats():
    values, threshold = np.array([0.0, 2.0**53 + 4]), 2**53 + 3
    assert float(threshold) == values[1]
    check_chain(values, np.array([0]), np.array([2]), np.zeros(1), np.array([False]), threshold)
    near = oldest_within(values, np.array([0]), np.array([1]), values[1:], threshold)
    assert [1] == near.tolist()


def test_a_reference_beyond_the_values_is_not_forgotten():
    values, one = np.array([1, 50, 90, 120]), np.array([4])
    for known, expected in ((True, [3]), (False, [1, 2, 3])):
        places, last = chain(values, one - 4, one, np.array([100]), np.array([known]), 10)
        assert (expected, [120]) == (places.tolist(), last.tolist())


def test_partitions_at_both_ends_of_the_integers():
    values = np.array([HIGHEST - 5, HIGHEST, LOWEST, LOWEST + 4])
    starts, ends = np.array([0, 2]), np.array([2, 4])
    check_chain(values, starts, ends, values[starts], np.array([True, True]), 4)
    lo, hi = np.array([0, 0, 2]), np.array([2, 2, 4])
    assert [0, 1, 3] == [
        int(oldest_within(values, lo[i : i + 1], hi[i : i + 1], values[new : new + 1], limit)[0])
        for i, new, limit in ((0, 1, 5), (1, 1, 4), (2, 3, 3))
    ]


def test_infinities_are_far_from_all_but_themselves():
    values = np.array([-inf, -inf, 0.0, 1.0, inf, inf])
    check_chain(values, np.array([0]), np.array([6]), np.zeros(1), np.array([False]), 5.0)
    check_chain(values, np.array([0]), np.array([6]), np.array([-inf]), np.array([True]), 5.0)


def test_partitions_without_rows_keep_their_reference():
    none = np.empty(0, np.int64)
    places, last = chain(np.empty(0), none, none, np.empty(0), none > 0, 1.0)
    assert ([], []) == (places.tolist(), last.tolist())
    two = np.array([0, 0])
    places, last = chain(np.empty(0), two, two, np.array([1.5, 2.5]), two == 0, 1.0)
    assert ([], [1.5, 2.5]) == (places.tolist(), last.tolist())


# -- oldest_within --


@thorough
@given(both, st.lists(st.tuples(*[st.integers(0, 99)] * 3), max_size=30), st.booleans())
def test_the_oldest_place_within_a_distance(case, drawn, in_turn):
    (values, starts, ends, newest, _), threshold = case
    queries = []
    for which, a, b in sorted(drawn) if in_turn else drawn:
        start, end = (int(x[which % len(starts)]) for x in (starts, ends))
        lo, hi = sorted((start + a % (end - start + 1), start + b % (end - start + 1)))
        queries.append((lo, hi, newest[which % len(newest)]))
    lo, hi = (np.array([q[i] for q in queries], np.int64) for i in (0, 1))
    new = np.array([q[2] for q in queries], values.dtype)
    expected = [
        next((p for p in range(a, b) if not n - values[p] > threshold), b) for a, b, n in queries
    ]
    result = oldest_within(values, lo, hi, new, threshold)
    assert np.int64 == result.dtype
    assert expected == result.tolist()


def test_windows_of_a_long_stream():
    rng = np.random.default_rng(3)
    values = np.cumsum(rng.exponential(1, 3000).round(1)).round(1)
    places = np.arange(3000)
    expected = np.array([np.argmin(values[p] - values[: p + 1] > 20.0) for p in places])
    for order in (places, rng.permutation(places)):
        result = oldest_within(values, places * 0, order, values[order], 20.0)
        assert (expected[order] == result).all()


# -- slide --

LENGTHS = [1, 2, 3, 15, 16, 17, 40, reductions.LONG - 1, reductions.LONG, reductions.LONG + 7, 5000]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 600, 1500, reductions.BLOCK + 1])
@pytest.mark.parametrize("way", ["random", "ascending", "descending", "few", "whole"])
def test_the_best_of_values_behind_others(length, size, way):
    rng = np.random.default_rng(length * size)
    values = rng.random(length - 1 + size)
    if way in ("ascending", "descending"):
        values = np.sort(values) if way == "ascending" else np.sort(values)[::-1].copy()
    if way in ("few", "whole"):
        values = np.floor(3 * values).astype(float if way == "few" else np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(values, length)
    which = np.unique(np.append(rng.integers(0, size, 200), [0, size - 1]))
    for op in (np.maximum, np.minimum):
        before, new = values[: length - 1], values[length - 1 :]
        kept = before.copy()
        result = slide(op, new, length, before)
        assert size == len(result)
        assert values.dtype == result.dtype
        assert (op.reduce(windows[which], axis=1) == result[which]).all()
        assert (kept == before).all()


# -- engines --


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout.split()


LOADED = """
import sys
from windowlib.columnar import primitives
import numpy as np
print("numba" in sys.modules, primitives.ENGINE)
ids = np.array([1, 0, 1])
order, _, _ = primitives.group(ids, 2)
print("numba" in sys.modules, primitives.ENGINE, *order)
"""


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_numba_is_loaded_by_the_first_call():
    found = python(LOADED, WINDOWLIB_NUMBA="1")
    assert ["False", "numba", "True", "numba", "1", "0", "2"] == found


def test_numba_can_be_turned_off():
    found = python(LOADED, WINDOWLIB_NUMBA="0")
    assert ["False", "numpy", "False", "numpy", "1", "0", "2"] == found


def test_a_numba_that_cannot_be_loaded_is_none(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('not for this numpy')")
    path = f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"
    found = python(LOADED, WINDOWLIB_NUMBA="1", PYTHONPATH=path)
    assert ["False", "numba", "False", "numpy", "1", "0", "2"] == found


def test_an_engine_has_one_of_two_names():
    before = primitives.ENGINE
    with (
        pytest.raises(ValueError, match="'polars': it is 'numpy' or 'numba'"),
        primitives.use("polars"),
    ):
        pass
    assert before == primitives.ENGINE


def test_another_engine_is_used_for_a_while():
    before = primitives.ENGINE
    with primitives.use("numpy"):
        assert "numpy" == primitives.ENGINE
    assert before == primitives.ENGINE
