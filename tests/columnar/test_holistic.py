"""Functions that need all values of a window: over extents, and carried from batch to batch.

What is right is what the fold of the event engine makes of the values, one by one.
"""

import copy
import datetime as dt
import math
import random
from decimal import Decimal
from pkgutil import resolve_name
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.aggregate_oracle import same
from tests.helpers.declared_functions import declared_functions
from tests.helpers.examples import examples
from windowlib import Count, Delta, SchemaError, Sliding, Tumbling
from windowlib.columnar import primitives
from windowlib.columnar.arrays import value_pool
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.ledger import Ragged
from windowlib.columnar.kernels import distinct, holistic, order_statistics
from windowlib.columnar.kernels.functions import function
from windowlib.columnar.kernels.holistic import HolisticFunction
from windowlib.operators import Aggregate, agg
from windowlib.window.consumer import Decline

NAN, INF = float("nan"), float("inf")
NOON = dt.datetime(2024, 2, 29, 12)
BERLIN = ZoneInfo("Europe/Berlin")

# -- functions and values -------------------------------------------------------------------------

METHODS: tuple[agg.Method, ...] = ("linear", "lower", "higher", "nearest")
OF_ONE = {
    "collect": agg.collect("x"),
    **{f"nth {k}": agg.nth("x", k) for k in (0, 2, -1, -3)},
    "count_distinct": agg.count_distinct("x"),
    "collect_distinct": agg.collect_distinct("x"),
    "count_by_distinct": agg.count_by_distinct("x"),
    "mode": agg.mode("x"),
    **{f"median {method}": agg.median("x", method=method) for method in METHODS},
    **{
        f"quantile {q} {method}": agg.quantile("x", q, method=method)
        for q in (0, 0.07, 0.3, 1 / 3, 1)
        for method in METHODS
    },
}
OF_PAIRS = {
    "top 1": agg.top(1, "x", by="y"),
    "top 3": agg.top(3, "x", by="y"),
    "top 2 smallest": agg.top(2, "x", by="y", largest=False),
    "collect_arg_min": agg.collect_arg_min("x", by="y"),
    "collect_arg_max": agg.collect_arg_max("x", by="y"),
}
FUNCTIONS = {**OF_ONE, **OF_PAIRS}

FLOATS = [NAN, -NAN, 0.0, -0.0, INF, -INF, 1.5, -2.5, 1e308, -1e308, 0.1, 3.0]
ZONED = [(NOON + n * dt.timedelta(hours=1)).replace(tzinfo=BERLIN) for n in range(5)]
CENTS = [Decimal(n).scaleb(-2) for n in (-300, -1, 0, 5, 99999)]
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "ints": (pa.int64(), [0, 1, 2, 3, -7, 2**62, -(2**63), 2**63 - 1]),
    "small ints": (pa.int8(), [0, 1, 2, 3, -7]),
    "floats": (pa.float64(), FLOATS),
    "short floats": (pa.float32(), [NAN, -NAN, 0.0, -0.0, INF, 1.5, -2.5, 3.0]),
    "strings": (pa.string(), ["", "a", "b", "ab", "ä", "z" * 20]),
    "bytes": (pa.binary(), [b"", b"a", b"\xff"]),
    "bools": (pa.bool_(), [False, True]),
    "dates": (pa.date32(), [NOON.date() + n * dt.timedelta(1) for n in range(5)]),
    "times": (pa.timestamp("us"), [NOON + n * dt.timedelta(seconds=7) for n in range(5)]),
    "zoned times": (pa.timestamp("us", "Europe/Berlin"), ZONED),
    "times of day": (pa.time64("us"), [dt.time(n, 30, 59, 7) for n in range(5)]),
    "periods": (pa.duration("ms"), [n * dt.timedelta(seconds=3) for n in range(-2, 3)]),
    "decimals": (pa.decimal128(12, 2), CENTS),
    "large decimals": (pa.decimal128(38, 2), [*CENTS, Decimal(10**30), Decimal(-(10**30))]),
    "nothing": (pa.null(), [None]),
}
OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "lists": (pa.list_(pa.int64()), [[], [1], [1, 2], [None]]),
    "rows": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
    ),
}


def identical(a, b):
    """Whether two values are the same to the sign of a zero, all NaN being one."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(identical(a[name], b[name]) for name in a)
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def fold_of(aggregate):
    return aggregate.call.fold(short=False)


def stepped(aggregate, rows):
    """The definition: one step after the other from the empty state."""
    fold = fold_of(aggregate)
    state = fold.empty
    for row in rows:
        fold.check(state, row)
        state = fold.step(state, row)
    return fold.value(len(rows), state)


def made(aggregate, *types):
    return function(aggregate.call, fold_of(aggregate), types)


def over(aggregate, arrays, lo, hi):
    """The results for extents as Python values."""
    columns = tuple(map(Column.of, arrays))
    each = made(aggregate, *[column.type for column in columns])
    found = each.over(columns, np.array(lo, np.intp), np.array(hi, np.intp))
    return found if isinstance(found, list) else found.to_pylist()


def check(aggregate, arrays, lo, hi):
    """The results are those of the fold; where the fold refuses, so does the function."""
    columns = [array.to_pylist() for array in arrays]
    rows = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    try:
        expected = [stepped(aggregate, rows[a:b]) for a, b in zip(lo, hi, strict=True)]
    except SchemaError:
        with pytest.raises(Decline):
            over(aggregate, arrays, lo, hi)
        return
    found = over(aggregate, arrays, lo, hi)
    assert identical(found, expected), (found, expected)


@st.composite
def extents_of(draw: Any, size: int) -> Any:
    pairs = draw(st.lists(st.tuples(st.integers(0, size), st.integers(0, size)), max_size=8))
    return [min(pair) for pair in pairs], [max(pair) for pair in pairs]


@st.composite
def arrays_of(draw: Any, kinds: list[str]) -> Any:
    """Arrays of the same length of some kinds of values, with nulls."""
    size = draw(st.integers(0, 40))
    made = []
    for kind in kinds:
        type_, values = {**VALUES, **OTHERS}[kind]
        nulls = draw(st.sampled_from([[], [None], [None] * 5]))
        chosen = st.sampled_from([*values, *nulls])
        made.append(pa.array(draw(st.lists(chosen, min_size=size, max_size=size)), type_))
    return made


# -- over extents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=examples(70))
@given(data=st.data())
def test_a_function_of_extents_is_the_fold_of_their_values(kind, data):
    aggregate = OF_ONE[data.draw(st.sampled_from(list(OF_ONE)))]
    arrays = data.draw(arrays_of([kind]))
    check(aggregate, arrays, *data.draw(extents_of(len(arrays[0]))))


@pytest.mark.parametrize("by", VALUES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_function_of_pairs_is_the_fold_of_the_pairs(by, data):
    aggregate = OF_PAIRS[data.draw(st.sampled_from(list(OF_PAIRS)))]
    value = data.draw(st.sampled_from([*VALUES, *OTHERS]))
    arrays = data.draw(arrays_of([value, by]))
    check(aggregate, arrays, *data.draw(extents_of(len(arrays[0]))))


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", ["collect", "nth 0", "nth -1"])
@settings(max_examples=examples(25))
@given(data=st.data())
def test_lists_and_rows_are_collected(name, kind, data):
    arrays = data.draw(arrays_of([kind]))
    check(OF_ONE[name], arrays, *data.draw(extents_of(len(arrays[0]))))


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", ["count_distinct", "mode", "median lower"])
def test_values_that_cannot_be_told_apart_or_compared_are_declined(name, kind):
    with pytest.raises(Decline):
        made(OF_ONE[name], OTHERS[kind][0])


def test_a_union_is_declined_because_its_nulls_are_not_seen():
    union = pa.sparse_union([pa.field("a", pa.int64())])
    with pytest.raises(Decline, match="union"):
        made(OF_ONE["collect"], union)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_extents_give_no_results(name):
    arrays = [pa.array([1, 2])] * (1 + (name in OF_PAIRS))
    assert over(FUNCTIONS[name], arrays, [], []) == []


def test_each_function_that_needs_all_values_has_a_columnar_form():
    calls = [aggregate.call for aggregate in FUNCTIONS.values()]
    tried = {call.function.kernel for call in calls if call is not None}
    declared = {each.kernel for each in declared_functions() if each.kernel}
    assert tried == {name for name in declared if issubclass(resolve_name(name), HolisticFunction)}


def random_array(rng, kind, size, nulls):
    type_, values = VALUES[kind]
    drawn = [None if rng.random() < nulls else rng.choice(values) for _ in range(size)]
    return pa.array(drawn, type_)


def sliding(size, length, step):
    hi = np.arange(step, size + 1, step)
    return np.maximum(hi - length, 0), hi


def two_partitions(size):
    lo, hi = sliding(size // 2, 90, 1)
    return np.append(lo, lo + size // 2), np.append(hi, hi + size // 2)


def slow_then_fast(size):
    """Neighbours always overlap, but not those of a block in the fast part."""
    lo = np.append(np.arange(160) // 8, np.arange(16, size - 60, 30))
    return lo, lo + 60


SHAPES = {
    "slow, then fast": slow_then_fast,
    "tiles": lambda size: sliding(size, 50, 50),
    "overlapping": lambda size: sliding(size, 100, 10),
    "by one": lambda size: sliding(size, 150, 1),
    "two partitions": two_partitions,
    "backwards": lambda size: tuple(part[::-1] for part in sliding(size, 70, 3)),
    "of all lengths": lambda size: (np.arange(size) // 2, np.arange(size)),
    "inside each other": lambda size: (np.arange(size // 2), size - np.arange(size // 2)),
}


@pytest.mark.parametrize("kind", ["small ints", "floats", "strings"])
@pytest.mark.parametrize("shape", SHAPES)
def test_windows_of_every_shape_give_what_each_gives_by_itself(shape, kind, monkeypatch):
    # Portions of the work are small, so that there are many.
    monkeypatch.setattr(order_statistics, "CHUNK_VALUES", 1 << 10)
    monkeypatch.setattr(distinct, "CHUNK_VALUES", 1 << 9)
    monkeypatch.setattr(order_statistics, "CHUNK_VALUES", 1 << 9)
    size = 300
    lo, hi = SHAPES[shape](size)
    for name, aggregate in FUNCTIONS.items():
        if kind == "strings" and "linear" in name:
            continue  # there is nothing between two strings
        rng = random.Random(f"{name} {shape} {kind}")
        nulls = rng.choice([0, 0.2])
        arrays = [random_array(rng, kind, size, nulls) for _ in range(1 + (name in OF_PAIRS))]
        columns = [array.to_pylist() for array in arrays]
        rows = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = over(aggregate, arrays, lo, hi)
        for i in rng.sample(range(len(lo)), min(len(lo), 10)):
            expected = stepped(aggregate, rows[lo[i] : hi[i]])
            assert identical(found[i], expected), (name, lo[i], hi[i])


def test_windows_that_overlap_very_much_share_their_sorting(monkeypatch):
    sorted_values = 0
    around = order_statistics._around

    def counting(*args):
        nonlocal sorted_values
        rows = around(*args)
        sorted_values += rows.size
        return rows

    monkeypatch.setattr(order_statistics, "_around", counting)
    lo, hi = sliding(4000, 1000, 1)
    values = np.random.default_rng(3).random(4000)
    with primitives.use("numpy"):
        found = over(agg.top(9, "x", by="y"), [pa.array(values)] * 2, lo, hi)
    assert len(lo) < sorted_values < 30 * len(lo)  # a thousand each without
    for i in range(0, 4000, 157):
        assert found[i] == sorted(values[lo[i] : hi[i]], reverse=True)[:9]


@pytest.mark.parametrize("method", METHODS)
def test_the_fraction_of_a_quantile_is_what_is_written(method):
    # 0.07 of the way from place 0 to place 100 is place 7, which it is not in floats.
    values = pa.array(list(range(101)))
    for q in (0.07, 0.29, 0.57, 0.1 + 0.2):
        check(agg.quantile("x", q, method=method), [values], [0, 1, 0], [101, 101, 100])


def test_whole_numbers_far_apart_have_a_middle():
    check(agg.median("x"), [pa.array([-(2**63), 2**63 - 1, -1, 5])], [0, 1, 0], [2, 3, 4])


def test_floats_too_far_apart_for_their_distance_have_a_middle():
    values = pa.array([-1.7e308, 1.7e308, INF, -INF, 3.0])
    check(agg.median("x"), [values], [0, 2, 1, 3, 0], [2, 4, 3, 5, 5])


def test_lists_of_very_many_values_are_left_to_the_event_engine(monkeypatch):
    monkeypatch.setattr(holistic, "MAX_VALUES", 100)
    values = [pa.array(list(range(40)))]
    for name in ("collect", "collect_distinct", "count_by_distinct"):
        assert len(over(OF_ONE[name], values, [0, 20], [20, 40])) == 2
        with pytest.raises(Decline, match="memory"):
            over(OF_ONE[name], values, [0, 1, 2], [38, 39, 40])
    for aggregate in (agg.top(40, "x", by="y"), agg.collect_arg_max("x", by="y")):
        lo, hi = [0] * 30, [40] * 30
        with pytest.raises(Decline, match="memory"):
            over(aggregate, [*values, pa.array([0] * 40)], lo, hi)


# -- from batch to batch --------------------------------------------------------------------------

COLUMNS = ("ints", "floats", "strings", "bools", "times", "decimals", "large decimals")
SCHEMA = pa.schema(
    [("k", pa.int64()), ("t", pa.int64()), *((name, VALUES[name][0]) for name in COLUMNS)]
)


def stream(rng, size, keys=3):
    nulls, t = rng.choice([0, 0.1, 0.9]), 0
    rows = []
    for _ in range(size):
        t += rng.choice([0, 1, 1, 9])
        row = {"k": rng.randrange(keys), "t": t}
        for name in COLUMNS:
            null = rng.random() < nulls
            row[name] = None if null else rng.choice(VALUES[name][1])
        rows.append(row)
    return rows


def batch(rows):
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def outputs(name):
    """All functions of one column, and of it with another."""
    made = {
        "collect": agg.collect(name),
        "nth": agg.nth(name, 2),
        "last": agg.nth(name, -2),
        "count_distinct": agg.count_distinct(name),
        "collect_distinct": agg.collect_distinct(name),
        "count_by_distinct": agg.count_by_distinct(name),
        "mode": agg.mode(name),
        "lower": agg.median(name, method="lower"),
        "nearest": agg.quantile(name, 0.3, method="nearest"),
        "top": agg.top(3, name, by="floats"),
        "bottom": agg.top(2, "strings", by=name, largest=False),
        "arg_min": agg.collect_arg_min(name, by="bools"),
        "arg_max": agg.collect_arg_max("decimals", by=name),
        "rows": agg.top(1, by=name),
        "all_rows": agg.collect(),
    }
    if name in ("ints", "floats", "decimals", "times"):
        made["median"] = agg.median(name)
    return made


def opened(operator):
    out: list[Any] = []
    running = operator.open()
    running.connect(0, out.append, lambda: out.append("punctuation"))
    return running, out


def in_arrays(running):
    return running._live[0]._in_arrays


def plain(state):
    """A snapshot with tuples as lists, which it may hold for lists."""
    if isinstance(state, dict):
        return {name: plain(value) for name, value in state.items()}
    return list(map(plain, state)) if isinstance(state, list | tuple) else state


WINDOWS = {
    "count": Tumbling(Count(7)),
    "long count": Tumbling(Count(400)),
    "count by key": Tumbling(Count(20), by="k"),
    "delta": Tumbling(Delta("t", 30)),
    "delta by key": Tumbling(Delta("t", 100), by="k"),
}


def feed(rng, running, rows, *, single):
    """Batches of all sizes, and single rows between them; whether all batches went into arrays."""
    done, at = [], 0
    while at < len(rows):
        if single and rng.random() < 0.2:
            running.insert(rows[at])
            at += 1
            continue
        size = rng.choice([256, 300]) if not in_arrays(running) else rng.choice([1, 5, 64, 300])
        running.insert_batch(batch(rows[at : at + size]))
        done.append(in_arrays(running))
        at += size
    return all(done)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", COLUMNS)
def test_batches_give_what_rows_give(name, window):
    rng = random.Random(f"{name} {window}")
    operator = Aggregate(WINDOWS[window], outputs(name))
    rows = stream(rng, 1500)
    one, expected = opened(operator)
    other, found = opened(operator)
    for part in (rows[:700], rows[700:]):
        one.insert_many(part)
        assert feed(rng, other, part, single=False)
        assert identical(found, expected)
    assert identical(plain(other.snapshot()), plain(one.snapshot()))
    assert not in_arrays(other)  # reading the state brings it back


@settings(max_examples=examples(40))
@given(st.sampled_from(list(WINDOWS)), st.sampled_from(COLUMNS), st.integers(0, 10**6))
def test_the_state_passes_between_the_engines(window, name, seed):
    rng = random.Random(seed)
    chosen = dict(rng.sample(list(outputs(name).items()), 3))
    chosen.pop("all_rows", None)  # NaN in a row does not come back as it was
    chosen = chosen or {"n": agg.collect("k")}
    operator = Aggregate(WINDOWS[window], chosen)
    rows = stream(rng, 1200)
    one, expected = opened(operator)
    one.insert_many(rows)
    other, found = opened(operator)
    feed(rng, other, rows[:500], single=True)
    state = copy.deepcopy(other.snapshot())
    again = operator.open()
    again.restore(state)
    again.connect(0, found.append, lambda: found.append("punctuation"))
    feed(rng, again, rows[500:], single=True)
    assert identical(found, expected)


SLIDING = {
    "count": Sliding(Count(20), every=Count(3), by="k"),
    "by one": Sliding(Count(40), every=Count(1)),
    "delta": Sliding(Delta("t", 50), every=Count(4), by="k"),
}


@pytest.mark.parametrize("window", SLIDING)
@pytest.mark.parametrize("name", ["ints", "floats", "strings", "times"])
def test_sliding_windows_over_batches_give_what_they_give_over_rows(name, window):
    rng = random.Random(f"{name} {window}")
    operator = Aggregate(
        SLIDING[window],
        collect=agg.collect(name),
        nth=agg.nth(name, -2),
        count=agg.count_distinct(name),
        distinct=agg.collect_distinct(name),
        counts=agg.count_by_distinct(name),
        mode=agg.mode(name),
        lower=agg.quantile(name, 0.3, method="lower"),
    )
    rows = stream(rng, 900)
    one, expected = opened(operator)
    other, found = opened(operator)
    one.insert_many(rows)
    assert feed(rng, other, rows, single=False)
    assert same(found, expected)


def engine_of(running):
    assert in_arrays(running)
    return running._live[0]._host().engine


def test_a_batch_that_fails_half_way_leaves_what_its_rows_would_leave():
    rng = random.Random(5)
    rows = stream(rng, 900)
    operator = Aggregate(WINDOWS["count by key"], outputs("strings"))

    def after(count):
        running, out = opened(operator)

        def refuse(row):
            if len(out) >= count:
                raise ValueError("enough")
            out.append(row)

        running.connect(0, refuse)
        return running, out

    one, expected = after(20)
    other, found = after(20)
    with pytest.raises(ValueError, match="enough"):
        one.insert_many(rows)
    other.insert_batch(batch(rows[:300]))
    assert in_arrays(other)
    with pytest.raises(ValueError, match="enough"):
        other.insert_batch(batch(rows[300:]))
    assert identical(found, expected)
    assert identical(plain(other.snapshot()), plain(one.snapshot()))


def test_a_flush_of_all_partitions_gives_what_they_carry_and_forgets_it():
    rows = stream(random.Random(6), 500)
    operator = Aggregate(Tumbling(Count(10**6), by="k"), outputs("strings"))
    running, _ = opened(operator)
    running.insert_batch(batch(rows))
    engine = engine_of(running)
    firings = engine.flush_all()
    for aggregate, values in zip(outputs("strings").values(), firings.values, strict=True):
        for key, found in zip(firings.python_keys(), values.to_pylist(), strict=True):
            mine = [row for row in rows if row["k"] == key]
            read = aggregate.call.attribute
            inputs = [read(row) if callable(read) else row[read] for row in mine]
            assert identical(found, stepped(aggregate, inputs)), aggregate
    engine.commit_flush()
    assert not any(each.store.lengths.any() for each in engine.summaries.functions)


# -- what is carried ------------------------------------------------------------------------------


def test_what_makes_no_difference_is_not_carried():
    operator = Aggregate(
        Tumbling(Count(10**6)),
        distinct=agg.collect_distinct("x"),
        mode=agg.mode("s"),
        top=agg.top(3, "s", by="x"),
        best=agg.collect_arg_max("s", by="y"),
    )
    running, _ = opened(operator)
    rng = np.random.default_rng(8)
    for _ in range(40):
        x, y = rng.integers(0, 9, 1000), rng.random(1000)
        s = pa.array(rng.integers(0, 5, 1000)).cast(pa.string())
        running.insert_batch(pa.record_batch({"x": x, "y": y, "s": s}))
    for each in engine_of(running).summaries.functions:
        assert each.store.lengths[0] < 2500
        assert len(each.store.planes[0]) < 10_000
        for column in each.kept:
            if isinstance(column, value_pool.PooledPlanes):
                assert column.pool.size < 10_000


def test_gone_values_leave_no_garbage_behind():
    running, _ = opened(Aggregate(Tumbling(Count(50), by="k"), c=agg.collect("s")))
    rng = np.random.default_rng(9)
    for _ in range(60):
        keys = rng.integers(0, 40, 2000)
        s = pa.array(rng.integers(0, 5, 2000)).cast(pa.string())
        running.insert_batch(pa.record_batch({"k": keys, "s": s}))
    (each,) = engine_of(running).summaries.functions
    held = int(each.store.lengths.sum())
    assert held < 40 * 50
    assert each.kept[0].pool.size < 2 * held + 2 * value_pool.MIN_POOL_TO_PACK + 2000
    assert len(each.store.planes[0]) < 10 * 40 * 50


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_partition_without_tuples_is_saved_as_the_empty_state(name):
    each = made(FUNCTIONS[name], *[pa.int64()] * (1 + (name in OF_PAIRS)))
    each.grow(1)
    fold = fold_of(FUNCTIONS[name])
    assert each.save(np.array([0]), np.array([0])) == [fold.save(fold.empty)]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "clear"]),
        st.lists(st.integers(0, 5), unique=True, max_size=6),
        st.integers(0, 1500),
    ),
    max_size=25,
)


@settings(max_examples=examples(100))
@given(OPERATIONS)
def test_lists_of_different_lengths_keep_what_they_get(operations):
    lists = Ragged([np.int64, np.float64])
    lists.grow(6)
    expected: dict[int, list[int]] = {i: [] for i in range(6)}
    number = 0
    for what, which, length in operations:
        ids = np.array(which, np.intp)
        if what == "clear":
            lists.clear(ids)
            expected |= {i: [] for i in which}
            continue
        lengths = np.array([length // (i + 1) for i in which], np.intp)
        values = np.arange(number, number + lengths.sum())
        number += len(values)
        lists.append(ids, lengths, [values, values / 2])
        for i, part in zip(which, holistic.split(values.tolist(), lengths), strict=True):
            expected[i] = expected[i] + part
    ids = np.arange(6)
    flat = [value for i in range(6) for value in expected[i]]
    numbers, halves = lists.take(ids)
    assert numbers.tolist() == flat
    assert halves.tolist() == [value / 2 for value in flat]
    assert lists.lengths[:6].tolist() == [len(expected[i]) for i in range(6)]
