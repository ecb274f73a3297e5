"""The rows that the columnar benchmark feeds, and when two results are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.harness import Setup

SIZE, SLIDE = 100, 10
LONG = 1_000
"""The windows of W1, W2 and W5 have `SIZE` rows, those of W4 and G14 `LONG`."""

SECOND = 1_000_000
RANGE, EVERY = 60 * SECOND, 10 * SECOND
"""W3's, in microseconds."""

Windows = dict[str, npt.NDArray[Any]]
"""Results as columns: by key, the windows of a key in the order in which they fire."""


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rows: int = 2_000_000
    keys: int = 1_000
    many: int = 100_000
    """Keys of W6."""
    large: int = 100_000
    """Rows of G16's large window."""
    sums: int = 12 * LONG
    """Rows of each of G13's data sets."""
    rounds: int = 7


class Candidate(NamedTuple):
    """What is timed, and how to read what it returns for the comparison before that."""

    setup: Setup
    read: Callable[[Any], Windows]


class Data(NamedTuple):
    """The same rows with integer keys and with string keys, and a tenth of them for G14."""

    rows: pa.Table
    named: pa.Table
    few: pa.Table


def data(scale: Scale) -> Data:
    """Keys at random; a key has a row a second on average, as W3 wants it."""
    rng = np.random.default_rng(7)
    key = rng.integers(0, scale.keys, scale.rows)
    ts = np.arange(scale.rows) * (SECOND // scale.keys)
    columns = {
        "key": pa.array(key),
        "ts": pa.array(ts).cast(pa.timestamp("us")),
        "value": pa.array(rng.random(scale.rows)),
    }
    names = pa.array([str(number) for number in range(scale.keys)])
    rows = pa.table(columns)
    named = pa.table({**columns, "key": names.take(columns["key"])})
    return Data(rows, named, rows.slice(0, scale.rows // 10))


def batches(table: pa.Table, size: int) -> list[pa.RecordBatch]:
    """The rows in batches with buffers of their own, as batches that arrive have."""
    found: list[pa.RecordBatch] = []
    for start in range(0, len(table), size):
        part = table.slice(start, size)
        found += part.take(np.arange(len(part))).combine_chunks().to_batches()
    return found


# -- comparing ------------------------------------------------------------------------------------


def windows(table: pa.Table) -> Windows:
    """The columns of a result, with its windows in order: as `w` numbers them, or as they come."""
    columns = {name: numbers(table.column(name)) for name in table.column_names}
    if "key" not in columns:
        return columns
    number = columns.pop("w", np.arange(len(table)))
    order = np.lexsort((number, columns["key"]))
    return {name: column[order] for name, column in columns.items()}


def numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column as numbers; string keys are written numbers."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        found: npt.NDArray[Any] = column.to_numpy()
        return found
    return np.asarray(column.to_pylist()).astype(np.int64)


def same(one: Windows, other: Windows) -> bool:
    """The same windows, equal but for the last digits of float sums."""
    return one.keys() == other.keys() and all(
        len(column) == len(other[name]) and np.allclose(column, other[name], rtol=1e-9, atol=0)
        for name, column in one.items()
    )


def check_same(candidates: Mapping[str, Candidate]) -> None:
    """Refuse to time implementations that do not agree."""
    results = {name: c.read(c.setup()()) for name, c in candidates.items()}
    (first, expected), *others = results.items()
    assert all(map(len, expected.values())), f"{first} gives nothing"
    for name, got in others:
        assert same(expected, got), f"{first} and {name} differ"


def check_similar(candidates: Mapping[str, Candidate]) -> None:
    """For queries that are not the same: refuse those that do not give about as many windows."""
    counts = {name: len(c.read(c.setup()())["mean"]) for name, c in candidates.items()}
    (first, expected), *others = counts.items()
    for name, got in others:
        assert expected / 2 < got < expected * 2, f"{first} has {expected} windows, {name} {got}"
