"""Batches as bytes, and back: one Arrow stream."""

from __future__ import annotations

import pyarrow as pa

PLAIN = pa.ipc.IpcWriteOptions()  # made once: small batches are written often


def written(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch as one Arrow stream in memory."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=PLAIN) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def packed(batch: pa.RecordBatch) -> bytes:
    """A batch as one binary value."""
    value: bytes = written(batch).to_pybytes()
    return value


def unpacked(data: bytes) -> pa.Table:
    """What `packed` was given."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
