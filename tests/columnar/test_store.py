"""Rows that partitions keep, against a dict of lists."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib.columnar.arrays import kept_rows
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.kept_rows import RowColumns, RowStore

PARTITIONS = 3
TYPES = [pa.int64(), pa.string()]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Garbage is removed often."""
    monkeypatch.setattr(kept_rows, "ROOM", 4)


def columns(rows: list[Any]) -> list[Column]:
    """Rows as a column of numbers and one of texts; None is null in both."""
    texts = [None if row is None else str(row) for row in rows]
    return [
        Column.of(pa.array(each, kind)) for each, kind in zip((rows, texts), TYPES, strict=True)
    ]


def listed(found: list[Column], lengths: Any) -> list[list[Any]]:
    """The rows of each partition, if both columns agree on them."""
    numbers, texts = (column.arrow().to_pylist() for column in found)
    assert [None if each is None else str(each) for each in numbers] == texts
    ends = np.cumsum(lengths)
    return [numbers[end - length : end] for end, length in zip(ends, lengths, strict=True)]


rows = st.lists(st.integers(0, 99) | st.none(), min_size=1, max_size=12)
steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "keep", "lay", "drop"]),
        rows,
        st.lists(st.integers(0, PARTITIONS - 1), min_size=1, max_size=3, unique=True),
        st.integers(0, 9),
    ),
    max_size=12,
)


@settings(max_examples=examples(150))
@given(steps)
def test_partitions_have_the_rows_that_were_put_last(steps):
    held: dict[int, list[Any]] = {i: [] for i in range(PARTITIONS)}
    mine = RowStore(columns([]))
    mine.grow(PARTITIONS)
    for what, new, partitions, newest in steps:
        ids = np.array(partitions)
        if what == "put":
            parts = [new[place :: len(ids)] for place in range(len(ids))]
            mine.put(
                ids,
                columns([row for part in parts for row in part]),
                np.array(list(map(len, parts))),
            )
            held |= dict(zip(partitions, parts, strict=True))
        elif what == "drop":
            mine.drop(ids)
            held |= {i: [] for i in partitions}
        else:  # new rows for the first partition, of which it keeps the newest
            laid, first = mine.lay(columns(new))
            places = np.append(mine.places(ids[:1]), np.arange(first, first + len(new)))
            expected = held[partitions[0]] + new
            assert [expected] == listed([each.take(places) for each in laid], [len(places)])
            if what == "keep":
                places = places[len(places) - min(newest, len(places)) :]
                mine.keep(ids[:1], places, np.array([len(places)]), len(new))
                held[partitions[0]] = expected[len(expected) - len(places) :]
        assert [*held.values()] == listed(*mine.take(np.arange(PARTITIONS)))


def test_garbage_does_not_grow_without_end():
    mine, ids = RowStore(columns([])), np.array([0])
    mine.grow(1)
    for number in range(100):
        _, first = mine.lay(columns([number] * 10))
        mine.keep(ids, np.arange(first + 5, first + 10), np.array([5]), 10)
        assert len(mine.whole(0)) <= 50
    assert [[99] * 5] == listed(*mine.take(ids))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_places_have_the_number_of_their_partition(lengths, data):
    rows = RowColumns([], [], None)
    rows.ends = np.cumsum(lengths)
    rows.base = rows.ends - lengths
    numbers = np.repeat(np.arange(len(lengths)), lengths)
    some = sorted(data.draw(st.sets(st.sampled_from(range(len(numbers))))) if len(numbers) else [])
    places = np.array(some, np.intp)
    for ascending in (False, True):
        found = rows.partition(places, ascending=ascending)
        assert found.tolist() == numbers[places].tolist()
