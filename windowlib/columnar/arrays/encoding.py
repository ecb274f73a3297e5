"""Arrays as they are written down: as small as they may be, and checked when they come back.

An array of whole numbers is as narrow as its values allow, and an array that holds one value
throughout is written as one of them. A column is its numbers, or its Arrow array, and which values
are there; its type is that of the batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import Array, Places

NARROW = (np.int8, np.int16, np.int32)


def need(true: Any, what: str) -> None:
    """Refuse arrays that cannot have been written by `dump`."""
    if not true:
        raise ValueError(f"the arrays are damaged: {what}")


def checked_count(number: Any, what: str) -> int:
    """A number that counts something."""
    need(type(number) is int and number >= 0, what)
    return int(number)


def values_at(array: Array, ids: Places) -> Array:
    """Some places of an array, in an array of its own."""
    n = len(ids)
    if n and ids[0] == 0 and ids[-1] == n - 1 and np.array_equal(ids, np.arange(n)):
        return array[:n].copy()  # a good deal faster than one by one
    return array[ids]


def packed(array: Array) -> Array:
    """The same numbers in less room; `unpacked` gives them back.

    >>> packed(np.array([7, 7, 7])), packed(np.array([3, 300]))
    (array([7], dtype=int8), array([  3, 300], dtype=int16))
    """
    if not array.size:
        return array
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = flat.view(np.int64) if flat.dtype == np.float64 else flat  # 0.0 is not -0.0
    if bits[0] == bits[-1] and (bits == bits[0]).all():
        array = flat[:1].copy()
    if array.dtype.kind != "i":
        return array
    low, high = int(array.min()), int(array.max())
    for narrow in NARROW:
        if np.iinfo(narrow).min <= low and high <= np.iinfo(narrow).max:
            return array.astype(narrow)
    return array


def unpacked(array: Any, dtype: Any, *shape: int) -> Array:
    """What `packed` got, as numbers of a type.

    >>> unpacked(packed(np.array([7, 7, 7])), np.int64, 3)
    array([7, 7, 7])
    """
    need(isinstance(array, np.ndarray), f"{type(array).__name__} in place of an array")
    dtype = np.dtype(dtype)
    fits = array.dtype.kind == dtype.kind and array.dtype.itemsize <= dtype.itemsize
    need(fits, f"numbers of {array.dtype} in place of {dtype}")
    need(array.shape in (shape, (1,)), f"{array.shape} numbers in place of {shape}")
    return np.broadcast_to(array.astype(dtype, copy=False), shape)


def checked_lengths(array: Any, size: int) -> Places:
    """How many of something each has, of so many."""
    found: Places = unpacked(array, np.intp, size)
    need(not size or found.min() >= 0, "a length below 0")
    return found


def checked_numbers(array: Any, size: int, below: int, lowest: int = 0) -> Places:
    """So many numbers of things of which there are so many."""
    found: Places = unpacked(array, np.intp, size)
    need(not size or (found.min() >= lowest and found.max() < below), "a number of nothing")
    return found


def dump_column(column: Column) -> dict[str, Any]:
    """A column whose values are its own, without its type."""
    data = packed(column.data) if column.physical else column.data
    valid = column.valid if column.nulls else None
    return {"size": len(column), "data": data, "valid": valid}


def load_column(state: Mapping[str, Any], kind: pa.DataType, size: int) -> Column:
    """The column of a type that `dump_column` got."""
    need(state["size"] == size, f"{state['size']} values in place of {size}")
    data, valid = state["data"], state["valid"]
    if isinstance(data, pa.Array):
        need(data.type == kind and len(data) == size, f"values of {data.type} in place of {kind}")
    else:
        floating = pa.types.is_floating(kind)
        data = np.ascontiguousarray(unpacked(data, np.float64 if floating else np.int64, size))
    if valid is not None:
        valid = unpacked(valid, np.bool_, size)
    return Column(kind, data, valid)


# Batches as bytes, and back: one Arrow stream.


PLAIN = pa.ipc.IpcWriteOptions()  # made once: small batches are written often


def stream_buffer(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch as one Arrow stream in memory."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=PLAIN) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def stream_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch as one binary value."""
    value: bytes = stream_buffer(batch).to_pybytes()
    return value


def stream_table(data: bytes) -> pa.Table:
    """What `packed` was given."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
