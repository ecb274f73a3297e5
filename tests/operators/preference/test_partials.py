"""Any split of a window gives the same answer as the window."""
# ruff: noqa: SIM300 - asserts read expected first

import pickle
from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.preference import preference_oracle as oracles
from windowlib import Count, SchemaError, Tumbling
from windowlib.operators import KDominantSkyline, Skyline, TopDelta, TopK, desc
from windowlib.operators.preference import Partial
from windowlib.operators.preference.preference_partials import SPARE

WINDOW = Tumbling(Count(10))
NAMES = ("a", "b", "c")


def wanted(operator, points):
    """What an operator of this file is to answer, by definition."""
    rows = [dict(zip("abc", point, strict=True)) | {"n": i} for i, point in enumerate(points)]
    flipped = [(a, -b, c) for a, b, c in points]
    if isinstance(operator, TopK):
        return [rows[i] for i in oracles.top_k([-a for a, _, _ in points], 4)]
    if isinstance(operator, TopDelta):
        found = oracles.top_delta(flipped, 3, operator.exact)
        return [rows[i] | {"factor": f, "k": k} for i, f, k in found]
    if isinstance(operator, KDominantSkyline):
        return [rows[i] for i in oracles.k_dominant(flipped, 2)]
    return [rows[i] for i in oracles.skyline(flipped)]


DIMENSIONS = ("a", desc("b"), "c")
OPERATORS = [
    Skyline(WINDOW, *DIMENSIONS),
    KDominantSkyline(WINDOW, *DIMENSIONS, k=2),
    TopDelta(WINDOW, *DIMENSIONS, delta=3),
    TopDelta(WINDOW, *DIMENSIONS, delta=3, exact=False),
    TopK(WINDOW, by="a", k=4),
]
each = pytest.mark.parametrize("operator", OPERATORS, ids=lambda op: repr(op)[:60])
numbers = st.integers(0, 3)
clouds = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=24)


def batch_of(points, places):
    columns = {name: [points[i][at] for i in places] for at, name in enumerate(NAMES)}
    types = pa.schema([*((name, pa.int64()) for name in NAMES), ("n", pa.int64())])
    return pa.record_batch(columns | {"n": list(places)}, schema=types)


@each
@settings(max_examples=examples(50))
@given(clouds, st.data())
def test_any_split_in_any_order_gives_the_answer_of_the_window(operator, points, data):
    salts = [data.draw(st.integers(0, 3)) for _ in points]
    partials = operator.partials
    parts = []
    for salt in range(4):
        places = [i for i, each in enumerate(salts) if each == salt]
        parts.append(partials.of(batch_of(points, places), places))
    order = data.draw(st.permutations(range(4)))
    merged = reduce(partials.merge, [parts[i] for i in order])
    assert wanted(operator, points) == partials.rows(merged).to_pylist()
    pairs = [partials.merge(parts[order[0]], parts[order[1]])]
    pairs.append(partials.merge(parts[order[2]], parts[order[3]]))
    assert merged == partials.merge(*pairs), "in whatever way they are put together"
    assert merged == partials.merge(*(parts[i] for i in order)), "or all at once"
    sent = [pickle.loads(pickle.dumps(parts[i])) if i % 2 else parts[i] for i in order]
    assert merged == partials.merge(*sent), "or come from elsewhere"


@each
@settings(max_examples=examples(30))
@given(clouds, st.integers(0, 24))
def test_two_panes_give_the_answer_of_the_window(operator, points, cut):
    cut = min(cut, len(points))
    partials = operator.partials
    places = range(len(points))
    panes = [partials.of(batch_of(points, places[:cut]), 0)]
    panes.append(partials.of(batch_of(points, places[cut:]), cut))
    assert wanted(operator, points) == partials.rows(partials.merge(*panes)).to_pylist()


@each
def test_a_part_without_rows_changes_nothing(operator):
    partials = operator.partials
    points = [(1, 2, 3), (3, 2, 1)]
    part, none = partials.of(batch_of(points, [0, 1])), partials.of(batch_of(points, []))
    assert part == partials.merge(part, none)
    assert part == partials.merge(none, part)


@each
def test_a_partial_result_can_be_sent_elsewhere(operator):
    points = [(1, 2, 3), (3, 2, 1), (2, 2, 2)]
    part = operator.partials.of(batch_of(points, [0, 1, 2]))
    assert part == pickle.loads(pickle.dumps(part))
    assert isinstance(part, Partial)
    assert isinstance(part.rows, pa.RecordBatch)


def test_a_pane_of_a_top_delta_keeps_what_beats_rows_of_another():
    # Of the first pane, (0, 9, 9) alone has the smallest factor; (9, 0, 0) still matters.
    operator = TopDelta(WINDOW, "a", "b", "c", delta=1)
    points = [(0, 9, 9), (9, 0, 0), (9, 1, 1)]
    partials = operator.partials
    panes = [partials.of(batch_of(points, [0, 1])), partials.of(batch_of(points, [2]), 2)]
    found = partials.rows(partials.merge(*panes)).to_pylist()
    want = oracles.top_delta(points, 1, True)
    assert want == [(row["n"], row["factor"], row["k"]) for row in found]


def test_rows_come_as_a_table_or_as_columns_too():
    partials = Skyline(WINDOW, "a", "b").partials
    columns = {"a": [1, 2, 0], "b": [1, 2, 5]}
    want = [{"a": 1, "b": 1}, {"a": 0, "b": 5}]
    for rows in (columns, pa.table(columns), pa.record_batch(columns)):
        assert want == partials.rows(partials.of(rows)).to_pylist()
    empty = pa.table(columns).slice(0, 0)
    assert [] == partials.rows(partials.of(empty)).to_pylist()
    pieces = pa.concat_tables([pa.table(columns).slice(0, 1), pa.table(columns).slice(1)])
    assert want == partials.rows(partials.of(pieces)).to_pylist()


def test_what_only_python_can_read_has_partial_results():
    partials = Skyline(WINDOW, lambda row: row["a"] % 10, "b").partials
    found = partials.rows(partials.of({"a": [13, 2, 21], "b": [1, 2, 3]})).to_pylist()
    assert [{"a": 13, "b": 1}, {"a": 2, "b": 2}, {"a": 21, "b": 3}] == found


def test_a_part_with_nan_is_refused_or_worst():
    columns = {"a": [1.0, None, float("nan"), 2.0], "b": [3.0, 1.0, 2.0, 9.0]}
    with pytest.raises(SchemaError, match=r"'a' is None in the row \{'a': None, 'b': 1.0\}"):
        Skyline(WINDOW, "a", "b").partials.of(columns)
    partials = Skyline(WINDOW, "a", "b", nan="worst").partials
    found = partials.rows(partials.of(columns)).to_pylist()
    assert [{"a": 1.0, "b": 3.0}, {"a": None, "b": 1.0}] == found


INF = float("inf")


@pytest.mark.parametrize(
    ("values", "more"),
    [
        (["b", "a", "c"], ["aa", "d", ""]),
        ([2**60, 2**60 + 1, 3], [2**60 - 1, 4, 2**60]),
        ([INF, 1.0, -INF], [2.0, INF, 0.5]),
        ([1.0, 2.0, 3.0], [INF, 0.5, 2.5]),
        ([None, 2.0, 3.0], [2.5, 0.5, None]),
    ],
    ids=["texts", "large integers", "infinite", "infinite in one part", "null"],
)
def test_coordinates_that_mean_nothing_elsewhere_are_found_again(values, more):
    partials = Skyline(WINDOW, "a", "b", nan="worst").partials
    kind = pa.array([*values, *more]).type
    columns = {"a": pa.array([*values, *more], kind), "b": pa.array([3, 1, 2, 2, 3, 1])}
    batch = pa.record_batch(columns)
    parts = [partials.of(batch.slice(at, 2), at) for at in (0, 2, 4)]
    whole = partials.of(batch)
    assert whole == partials.merge(*parts)
    assert whole == reduce(partials.merge, parts)


@pytest.mark.parametrize("values", [[2.5, 1], [1, 2.5], [2.5, 3]])
def test_parts_with_columns_of_other_types_merge_like_their_rows(values):
    partials = Skyline(WINDOW, "a").partials
    first, second = (partials.of({"a": [value]}, at) for at, value in enumerate(values))
    assert partials.of({"a": list(map(float, values))}) == partials.merge(first, second)


def test_what_is_left_out_is_not_held_for_ever():
    partials = Skyline(WINDOW, "a", "b").partials
    merged = partials.of({"a": [0], "b": [0]})
    for number in range(1, 100):
        part = partials.of({"a": [-number] * 3, "b": [-number] * 3}, 3 * number)
        merged = partials.merge(merged, part)
        held = sum(batch.num_rows for batch in merged._rows.batches)
        assert held <= SPARE * (len(merged) + 1)
    assert [{"a": -99, "b": -99}] * 3 == partials.rows(merged).to_pylist()


@each
@settings(max_examples=examples(30))
@given(clouds, st.lists(st.integers(0, 24), max_size=4))
def test_parts_without_arrival_numbers_follow_each_other(operator, points, cuts):
    edges = [0, *sorted(min(cut, len(points)) for cut in cuts), len(points)]
    parts = [operator.partials.of(batch_of(points, range(*ends))) for ends in pairwise(edges)]
    for merged in (operator.merge_all_parts(parts), reduce(operator.merge_parts, parts)):
        assert wanted(operator, points) == operator.partials.rows(merged).to_pylist()
