"""What the files of this folder hold that Spark's state store has: a bucket, and packed rows."""

from __future__ import annotations

import pyarrow as pa

from tests.formats.stored import CUT, MEANS, ROWS, SCHEMA
from windowlib.columnar.arrays.encoding import compact, stream_bytes
from windowlib.spark.bucket.bucket import Bucket, BucketSpec, MicroBatch
from windowlib.spark.bucket.state_store import FORMAT, StateHead, head_bytes
from windowlib.spark.plan.shuffle import PackedRows


def spec() -> BucketSpec:
    """What a bucket of `MEANS` runs on Spark."""
    made = MEANS.schemas(SCHEMA)
    return BucketSpec(
        operator=MEANS,
        inputs=(SCHEMA,),
        outputs=made,
        made=made,
        orders=(None,),
        fingerprint=MEANS.describe(),
        nonce="run",
    )


def micro_batch(lo: int, hi: int, saved: int, logged: int) -> MicroBatch:
    """Some of the rows, as they come to a bucket."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(pa.RecordBatch.from_pylist(ROWS[lo:hi], SCHEMA))
    chunk = PackedRows(0, 0, sink.getvalue().to_pybytes())
    return MicroBatch("run", (chunk,), None, saved, logged, False)


def _bucket() -> dict[str, bytes]:
    """Its state as the state store has it: a head, a snapshot, and a log."""
    bucket = Bucket(spec(), 0)
    snapshot = bucket.step(micro_batch(0, CUT - 6, 0, 0)).snapshot
    assert snapshot is not None
    found = {"snapshot": snapshot}
    saved = 1 << 20  # so that what follows is logged
    for number, lo in enumerate((CUT - 6, CUT - 3)):
        entry = bucket.step(micro_batch(lo, lo + 3, saved, 0)).entry
        assert entry is not None
        found[f"entry{number}"] = entry
    head = StateHead(FORMAT, 3, bucket.nonce, "run", "", spec().about, 0, 0, 0, 0, 2, None)
    found["head"] = head_bytes(head.sealed())
    return found


def chunk() -> pa.RecordBatch:
    """Rows that cross the shuffle in few bytes, and stand in the log so."""
    n = range(400)
    return pa.record_batch(
        {
            "ts": pa.array([10**15 + 7 * i for i in n], pa.timestamp("us", "UTC")),
            "k": pa.array(["abc"[i % 3] for i in n]),
            "i": pa.array([None if i % 9 == 0 else i * 37 % 251 - 10**12 for i in n]),
            "x": pa.array([i / 3 for i in n]),
        }
    )


def files() -> dict[str, bytes]:
    """What the files of the present format hold, by their names."""
    parts = {f"bucket.{FORMAT}.{name}": data for name, data in _bucket().items()}
    return {**parts, f"chunk.{FORMAT}.stream": stream_bytes(compact(chunk()))}
