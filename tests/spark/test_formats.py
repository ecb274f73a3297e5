"""Files of every format of a checkpoint are read, and a stored bucket goes on."""

import json

import pyarrow as pa
import pytest

from tests.formats.stored import CUT, FOLDER, ROWS
from tests.formats.stored_buckets import chunk, micro_batch, spec
from windowlib.columnar.arrays.encoding import stream_table
from windowlib.spark.bucket import state_store
from windowlib.spark.bucket.bucket import Bucket
from windowlib.spark.bucket.state_store import head_of


def as_stored(path):
    """A head as it is read: that of format 2 was in columns, of which all but the data are JSON."""
    if not path.name.startswith("bucket.2."):
        return path.read_bytes()
    values = json.loads(path.read_text())
    assert values.pop("data") is None
    return json.dumps(values).encode()


@pytest.mark.parametrize("head", sorted(FOLDER.glob("bucket.*.head")), ids=lambda path: path.name)
def test_a_stored_bucket_goes_on(head):
    stem = head.name.removesuffix(".head")
    parts = [(FOLDER / f"{stem}.{name}").read_bytes() for name in ("snapshot", "entry0", "entry1")]
    found = head_of(as_stored(head))
    found.check(spec())
    restored = Bucket.restored(spec(), found.nonce, parts[0], parts[1:])
    left_alone = Bucket(spec(), 0)
    left_alone.step(micro_batch(0, CUT, 0, 0))
    rows = [
        stream_table(data).to_pylist()
        for bucket in (left_alone, restored)
        for _, data in bucket.step(micro_batch(CUT, len(ROWS), 0, 0)).rows
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("chunk.*.stream")), ids=lambda path: path.name)
def test_stored_rows_in_few_bytes_are_read(path):
    data = path.read_bytes()
    assert len(data) < chunk().nbytes
    assert pa.table(chunk()).equals(stream_table(data))


def test_every_format_that_is_read_has_files():
    names = {path.name for path in FOLDER.iterdir()}
    for number in state_store.READERS:
        assert {f"bucket.{number}.head", f"chunk.{number}.stream"} <= names
