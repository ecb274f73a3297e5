"""Rows of count windows in slots: against lists, and against the event engine."""

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
from windowlib.columnar import handover
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.kept_rows import FullWindows, SlotTables
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
    tables = SlotTables([column([])], 1, WIDTH)
    tables.grow(len(kept))
    slots = [i * WIDTH + at for i, carried in enumerate(kept) for at in range(len(carried))]
    tables.put(np.array(slots, np.intp), [column([each for part in kept for each in part])])
    (held,) = tables.take(ids, lengths)
    assert [each for part in kept for each in part] == held.arrow().to_pylist()

    arriving = [each for part in new for each in part][::-1]
    rows = np.arange(len(arriving))[::-1]
    (full,) = FullWindows(tables, [column(arriving)], ids, lengths, rows)
    windows = [carried + more for carried, more in zip(kept, new, strict=True)]
    assert [each for window in windows for each in window] == full.arrow().to_pylist()


class Seen(Operator):
    """What handlers read of a window: its rows, and a column that is read by itself."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")
    content = "arrow"

    def before_flush(self, window: Any, key: Any) -> None:
        values = [None if v is None or v != v else float(v) for v in window.column("x", key)]
        self.emit(key=key, values=values, rows=list(window[key]))


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = {"k": pa.int64(), "x": pa.float64(), "t": pa.timestamp("us")}
    arrays = [[row[place] for row in rows] for place in range(3)]
    return pa.table({name: pa.array(a, types[name]) for name, a in zip(types, arrays, strict=True)})


rows = st.tuples(
    st.integers(0, 3) | st.none(), st.floats(0, 9, width=16) | st.none(), st.integers(0, 99)
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["batch", "batch", "batch", "rows", "restart", "punct"]),
        st.lists(rows, min_size=1, max_size=30),
        st.sampled_from([1 << 20, 1 << 20, 0]),
    ),
    max_size=8,
)
OPERATORS = {
    "handler": lambda size: Seen(Tumbling(Count(size), by="k")),
    "evicting": lambda size: Seen(Tumbling(Count(size), by="k", forget=TupleCount(12))),
    "sort": lambda size: Sort(asc("x", nulls="last"), window=Tumbling(Count(size), by="k")),
}


@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
@settings(max_examples=examples(60), deadline=None)
@given(steps=steps, size=st.integers(1, 7))
def test_slots_give_what_single_rows_give(make, steps, size):
    fed = [Fed(make(size), batches=batches) for batches in (False, True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "MIN_ROWS", 1)
        for what, values, sparse in steps:
            patch.setattr(tumbling, "SPARSE", sparse)  # in slots, or not
            for each in fed:
                each.step(what, table(values))
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


def test_many_partitions_with_few_rows_have_no_slots():
    running = Keeping(Tumbling(Count(10_000), by="k")).open()
    running.insert_batch(pa.table({"k": np.arange(5000), "x": np.zeros(5000)}))
    (window,) = running._live
    assert window.state.in_arrays
    assert window.state.handover().engine._slots is None
