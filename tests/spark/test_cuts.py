"""Joins in time give the same rows however the two inputs are cut into micro-batches."""

import random

import pyarrow as pa
import pytest

from tests.helpers.examples import examples
from tests.spark.test_bucket import spec_of
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.operators import AsOf, IntervalJoin
from windowlib.spark.bucket.bucket import Bucket, MicroBatch
from windowlib.spark.plan.shuffle import PackedRows

LEFT = pa.schema({"ts": pa.int64(), "k": pa.string(), "a": pa.int64()})
RIGHT = pa.schema({"ts": pa.int64(), "k": pa.string(), "b": pa.int64()})
JOINS = {
    "as of": AsOf("ts", on="k"),
    "forward": AsOf("ts", on="k", direction="forward", tolerance=9),
    "interval": IntervalJoin("ts", on="k", before=3, after=2),
}


def streams(chance):
    """Two inputs in the order of time, with ties."""
    found = []
    for schema in (LEFT, RIGHT):
        ts, rows = 0, []
        for n in range(chance.randint(5, 25)):
            ts += chance.randint(0, 3)
            rows.append({"ts": ts, "k": chance.choice("ab"), schema.names[2]: n})
        found.append(rows)
    return found


def cut(rows, parts, chance):
    """Rows in so many micro-batches, some of them empty."""
    edges = [0, *sorted(chance.randint(0, len(rows)) for _ in range(parts - 1)), len(rows)]
    return [rows[lo:hi] for lo, hi in zip(edges, edges[1:], strict=False)]


def joined(op, sides, chance):
    """What comes out, with other cuts each time, and a restart in the middle."""
    spec = spec_of(op, LEFT, RIGHT)
    bucket, out = Bucket(spec, 0), []
    parts = chance.randint(1, 5)
    cuts = [cut(rows, parts, chance) for rows in sides]
    for number in range(parts):
        chunks = tuple(
            PackedRows(side, 0, stream_bytes(pa.RecordBatch.from_pylist(each[number], schema)))
            for side, (each, schema) in enumerate(zip(cuts, (LEFT, RIGHT), strict=True))
            if each[number]
        )
        result = bucket.step(MicroBatch("run", chunks, None, 0, 0, False))
        for _, data in result.rows:
            out += stream_table(data).to_pylist()
        if number == parts // 2 and result.snapshot is not None:
            bucket = Bucket.restored(spec, result.nonce, result.snapshot, [])
    for _, batch in bucket.finished():
        out += batch.to_pylist()
    return sorted(out, key=repr)


@pytest.mark.search
@pytest.mark.parametrize("name", JOINS)
def test_the_cuts_cannot_be_seen(name):
    for seed in range(examples(100)):
        chance = random.Random(seed)
        sides = streams(chance)
        wanted = joined(JOINS[name], sides, chance)
        assert wanted, seed
        for _ in range(3):
            assert joined(JOINS[name], sides, chance) == wanted, seed
