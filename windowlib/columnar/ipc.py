"""Batches as bytes, and back: one Arrow stream."""

from __future__ import annotations

import pyarrow as pa


def packed(batch: pa.RecordBatch) -> bytes:
    """A batch as one binary value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def unpacked(data: bytes) -> pa.Table:
    """What `packed` was given."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
