"""Rows of count windows in slots: against lists, and against the event engine."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.batch_runs import Fed
from tests.columnar.with_each_engine import engine  # noqa: F401 - a fixture
from tests.helpers.examples import examples
from windowlib import Count, Operator, OperatorModel, Tumbling, TupleCount
from windowlib.columnar import handover, primitives
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.kept_rows import (
    FullWindows,
    KeyTable,
    SlotMoves,
    SlotScatter,
    SlotTable,
    SlotTables,
)
from windowlib.columnar.engines import engine as engines
from windowlib.columnar.engines import tumbling
from windowlib.operators import Sort, asc

WIDTH = 4
numbers = st.integers(0, 99) | st.none()


def column(values: list[Any]) -> Column:
    return Column.of(pa.array(values, pa.int64()))


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.lists(numbers, max_size=WIDTH - 1), st.lists(numbers)), max_size=5))
def test_windows_have_kept_rows_and_new_ones_behind_them(partitions):
    """Each partition keeps some rows, and gets as many as it takes to fill its window."""
    kept = [carried for carried, _ in partitions]
    new = [(more + [7] * WIDTH)[: WIDTH - len(carried)] for carried, more in partitions]
    lengths = np.array(list(map(len, kept)), np.intp)
    ids = np.arange(len(kept))
    names = KeyTable(lambda ids: column(ids.tolist()), WIDTH)
    tables = SlotTables([SlotTable(column([]), 1, WIDTH), names], WIDTH)
    tables.grow(len(kept))
    slots = [i * WIDTH + at for i, carried in enumerate(kept) for at in range(len(carried))]
    values = [each for part in kept for each in part]
    tables.put(np.array(slots, np.intp), [column(values)] * 2)
    held, owners = tables.take(ids, lengths)
    assert values == held.arrow().to_pylist()
    assert np.repeat(ids, lengths).tolist() == owners.arrow().to_pylist()

    arriving = [each for part in new for each in part][::-1]
    rows = np.arange(len(arriving))[::-1]
    slots = [i * WIDTH + at for i, part in enumerate(kept) for at in range(len(part), WIDTH)]
    moves = SlotMoves(rows, np.array(slots, np.intp))
    full, owners = FullWindows(tables, [column(arriving)] * 2, ids, moves)
    windows = [carried + more for carried, more in zip(kept, new, strict=True)]
    assert [each for window in windows for each in window] == full.arrow().to_pylist()
    assert np.repeat(ids, WIDTH).tolist() == owners.arrow().to_pylist()


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@settings(max_examples=examples(150))
@given(
    st.lists(st.tuples(st.integers(-3, 12), numbers), max_size=20, unique_by=lambda each: each[0])
)
def test_rows_that_are_dealt_go_to_their_slots_or_nowhere(dealt):
    first, table = 3, SlotTable(column([]), 2, WIDTH)
    before = list(range(2 * WIDTH))
    table.put(np.arange(2 * WIDTH), column(before))
    places = np.array([place for place, _ in dealt], np.intp)
    SlotScatter(places, first).fill(table, column([value for _, value in dealt]))
    after = before + [None] * 12
    for place, value in dealt:
        if place >= first:
            after[place - first] = value
    assert after[: 2 * WIDTH] == table.whole().arrow().to_pylist()


class Seen(Operator):
    """What handlers read of a window: its rows, and a column that is read by itself."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")
    content = "arrow"

    def before_flush(self, window: Any, key: Any) -> None:
        values = [None if v is None or v != v else float(v) for v in window.column("x", key)]
        self.emit(key=key, values=values, rows=list(window[key]))
        if 9.0 in values:  # after it has told
            raise ValueError(f"nine in {key}")


NAMES = {0: "a", 1: "b", 2: "", 3: "a text that is longer than others"}


def table(rows: list[tuple[Any, ...]], named: bool = False) -> pa.Table:
    keys, x, t = zip(*rows, strict=True)
    k = pa.array(list(map(NAMES.get, keys)), pa.string()) if named else pa.array(keys, pa.int64())
    return pa.table({"k": k, "x": pa.array(x, pa.float64()), "t": pa.array(t, pa.timestamp("us"))})


rows = st.tuples(
    st.integers(0, 3) | st.none(), st.floats(0, 9, width=16) | st.none(), st.integers(0, 99)
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["batch", "batch", "batch", "rows", "restart", "punct"]),
        st.lists(rows, min_size=1, max_size=30),
        st.sampled_from([1 << 20, 1 << 20, 0]),
        st.sampled_from([1 << 20, 1 << 20, 0]),
    ),
    max_size=8,
)
OPERATORS = {
    "handler": lambda size: Seen(Tumbling(Count(size), by="k")),
    "evicting": lambda size: Seen(Tumbling(Count(size), by="k", forget=TupleCount(12))),
    "sort": lambda size: Sort(asc("x", nulls="last"), window=Tumbling(Count(size), by="k")),
}


def attempt(fed: Fed, what: str, value: pa.Table) -> None:
    """Write down what a step raises, too."""
    try:
        fed.step(what, value)
    except ValueError as error:
        fed.out.append((0, f"{error} {error.__notes__}"))


@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
@settings(max_examples=examples(60), deadline=None)
@given(steps=steps, size=st.integers(1, 7), named=st.booleans(), cut=st.sampled_from([5, 1 << 16]))
def test_slots_give_what_single_rows_give(make, steps, size, named, cut):
    fed = [Fed(make(size), batches=batches) for batches in (False, True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "MIN_ROWS", 1)
        patch.setattr(handover, "SLICE_ROWS", cut)
        for what, values, sparse, crowded in steps:
            patch.setattr(tumbling, "SPARSE", sparse)  # in slots, or not
            patch.setattr(engines, "PARTITIONS_PER_ROW", crowded)  # as they come, or sorted
            for each in fed:
                attempt(each, what, table(values, named))
            assert fed[0].out == fed[1].out
        one, other = (repr(each.running.snapshot()) for each in fed)
        assert one == other


class Keeping(Operator):
    """A handler that keeps the arrays it gets."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")
    content = "arrow"

    def before_flush(self, window: Any, key: Any) -> None:
        self.emit(array=window.column("x", key))


def test_arrays_that_a_handler_keeps_stay_as_they_are():
    rng, found = np.random.default_rng(7), list[Any]()
    running = Keeping(Tumbling(Count(10), by="k")).open()
    running.connect(0, lambda row: found.append((row["array"], row["array"].tolist())))
    for _ in range(5):
        keys, x = rng.integers(0, 8, 1000), rng.random(1000)
        running.insert_batch(pa.table({"k": keys, "x": x}))
        (window,) = running._live
        assert window.state.handover().engine._slots is not None
    assert len(found) > 400
    assert all(array.tolist() == then for array, then in found)


@pytest.mark.parametrize("named", [False, True])
def test_rows_of_many_windows(named):
    """Nulls come and go, a handler fails once, and a restart lies in between."""
    rng, rows = np.random.default_rng(7), 1500
    missing = rng.random(rows) < np.repeat([0, 0.5, 0], 500)
    x = [None if none else 8 * value for none, value in zip(missing, rng.random(rows), strict=True)]
    x[700] = 9.0
    drawn = zip(rng.integers(0, 4, rows).tolist(), x, range(rows), strict=True)
    whole = table(list(drawn), named)
    fed = [Fed(Seen(Tumbling(Count(10), by="k")), batches=batches) for batches in (False, True)]
    for at in range(0, rows, 300):
        for each in fed:
            attempt(each, "batch", whole.slice(at, 300))
            if at == 900:
                each.restart()
        assert fed[0].out == fed[1].out
        if fed[1].in_arrays:
            (window,) = fed[1].running._live
            stayed = window.state.handover().engine.stayed
            assert stayed is primitives.compiles()
    assert len(fed[0].out) > 100
    assert fed[1].took == 4
    one, other = (repr(each.running.snapshot()) for each in fed)
    assert one == other


def test_many_partitions_with_few_rows_have_no_slots():
    running = Keeping(Tumbling(Count(10_000), by="k")).open()
    running.insert_batch(pa.table({"k": np.arange(5000), "x": np.zeros(5000)}))
    (window,) = running._live
    assert window.state.in_arrays
    assert window.state.handover().engine._slots is None
