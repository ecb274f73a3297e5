"""Arrays in compact encodings for snapshots and batches, checked when they are decoded.

An array of whole numbers is as narrow as its values allow, and an array that holds one value
throughout is written as one of them. A column is its numbers, or its Arrow array, and which values
are there; its type is that of the batches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import Array, Places

NARROW = (np.int8, np.int16, np.int32)


def need(true: Any, what: str) -> None:
    """Refuse arrays that `dump` cannot have written."""
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
    """The same numbers in a smaller type; `unpacked` is the inverse.

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
    """The inverse of `packed`, as numbers of a type.

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
    """Checked lengths of that many lists."""
    found: Places = unpacked(array, np.intp, size)
    need(not size or found.min() >= 0, "a length below 0")
    return found


def checked_numbers(array: Any, size: int, below: int, lowest: int = 0) -> Places:
    """Checked numbers, each within bounds."""
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
ORIGINAL, FORMS = b"windowlib.schema", b"windowlib.forms"
"""Metadata of a compact batch: the schema that it had, and the form of each column."""
MIN_COMPACT_ROWS = 256
"""Rows from which on a compact form pays."""
SAMPLE = 2048
"""Values that are looked at to see whether texts repeat, or numbers ascend."""


def write_stream(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    """Write a batch as one Arrow stream."""
    with pa.ipc.new_stream(sink, batch.schema, options=PLAIN) as writer:
        writer.write_batch(batch)


def stream_buffer(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch as one Arrow stream in memory."""
    sink = pa.BufferOutputStream()
    write_stream(batch, sink)
    return sink.getvalue()


def stream_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch as one binary value."""
    value: bytes = stream_buffer(batch).to_pybytes()
    return value


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in few bytes, for rows that travel far; `stream_table` widens what it reads.

    Whole numbers and points in time are written as distances from the least one, or from the one
    before, in as few bytes as these need; texts that repeat as a dictionary.

    >>> rows = pa.record_batch({"ts": pa.array(range(10**15, 10**15 + 10_000))})
    >>> len(stream_bytes(rows)) > 80_000, len(stream_bytes(compact(rows))) < 11_000
    (True, True)
    >>> stream_table(stream_bytes(compact(rows))).equals(pa.table(rows))
    True
    """
    if batch.num_rows < MIN_COMPACT_ROWS:
        return batch
    found = [_compact(column) for column in batch.columns]
    forms = [form for form, _ in found]
    if not any(forms):
        return batch
    names = batch.schema.names
    fields = [pa.field(name, each.type) for name, (_, each) in zip(names, found, strict=True)]
    notes = {ORIGINAL: batch.schema.serialize().to_pybytes(), FORMS: json.dumps(forms).encode()}
    schema = pa.schema(fields, metadata=notes)
    return pa.RecordBatch.from_arrays([each for _, each in found], schema=schema)


def stream_table(data: bytes) -> pa.Table:
    """The table that `stream_bytes` encoded, compacted or not."""
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all()
    notes = table.schema.metadata
    if not notes or FORMS not in notes:
        return table
    schema = pa.ipc.read_schema(pa.py_buffer(notes[ORIGINAL]))
    forms = json.loads(notes[FORMS])
    columns = [
        column if form is None else _widened(column.combine_chunks(), form, kind)
        for column, form, kind in zip(table.columns, forms, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _compact(column: pa.Array) -> tuple[Any, pa.Array]:
    """A column in fewer bytes with its form, or the column itself with None."""
    kind, found = column.type, None
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        found = _coded(column)
    elif pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind):
        found = _distances(column)
    return (None, column) if found is None else found


def _coded(column: pa.Array) -> tuple[Any, pa.Array] | None:
    """Texts as numbers of a dictionary, if they repeat."""
    sample = column.slice(0, SAMPLE)
    if 2 * pc.count_distinct(sample).as_py() > len(sample):
        return None
    coded = column.dictionary_encode()
    most = len(coded.dictionary)
    narrow = pa.int8() if most < 1 << 7 else pa.int16() if most < 1 << 15 else pa.int32()
    indices = coded.indices.cast(narrow)
    return ["texts"], pa.DictionaryArray.from_arrays(indices, coded.dictionary)


def _distances(column: pa.Array) -> tuple[Any, pa.Array] | None:
    """Numbers as distances from the least, or from the one before if that is shorter."""
    own = column.type.bit_width // 8
    if own not in (4, 8) or column.null_count == len(column):
        return None
    whole = column.view(pa.int64() if own == 8 else pa.int32())
    ends = pc.min_max(whole).as_py()
    low, span = ends["min"], ends["max"] - ends["min"]
    least = _bytes_for(span)
    if least > 1 and not column.null_count and span < 1 << 62 and _ascends(whole):
        values = whole.to_numpy()
        steps = values[1:] - values[:-1]
        if steps.min() >= 0 and (short := _bytes_for(int(steps.max()))) < min(least, own):
            narrow = np.zeros(len(values), f"u{short}")
            narrow[1:] = steps
            return ["steps", int(values[0])], pa.array(narrow)
    if least >= own:
        return None
    return ["base", low], pc.subtract(whole, pa.scalar(low, whole.type)).cast(UNSIGNED[least])


def _ascends(whole: pa.Array) -> bool:
    """Whether the first numbers do, which says enough of most columns that do not."""
    first = whole.slice(0, SAMPLE).to_numpy()
    return bool((first[1:] >= first[:-1]).all())


def _bytes_for(number: int) -> int:
    return next((size for size in UNSIGNED if number < 1 << 8 * size), 8)


UNSIGNED = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32()}


def _widened(column: pa.Array, form: Any, kind: pa.DataType) -> pa.Array:
    """A column as it was."""
    if form[0] == "texts":
        return column.cast(kind)
    physical = pa.int64() if kind.bit_width == 64 else pa.int32()
    if form[0] == "steps":
        whole = pa.array(np.cumsum(column.to_numpy(), dtype=np.int64) + form[1]).cast(physical)
    else:
        whole = pc.add(column.cast(pa.int64()), form[1]).cast(physical)
    return whole.view(kind)
