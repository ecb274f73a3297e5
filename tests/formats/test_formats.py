"""Files of every format are read, and what was stored goes on as if nothing had happened."""

import json

import pyarrow as pa
import pytest

from tests.formats.stored import CUT, FOLDER, OPERATORS, ROWS, WINDOWS, chunk, micro_batch, spec
from windowlib import load_state
from windowlib.columnar.arrays.encoding import stream_table
from windowlib.runtime import running
from windowlib.spark.bucket import state_store
from windowlib.spark.bucket.bucket import Bucket
from windowlib.spark.bucket.state_store import head_of
from windowlib.window import snapshot, state_bytes

FILES = sorted(FOLDER.glob("*.state"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stored_state_goes_on(path):
    case = {**WINDOWS, **OPERATORS}[path.name.partition(".")[0]]
    uninterrupted = case.make()
    case.feed(uninterrupted, 0, CUT)
    expected = case.feed(uninterrupted, CUT, len(ROWS))
    assert expected
    fresh = case.make()
    fresh.restore(load_state(path.read_bytes()))
    assert expected == case.feed(fresh, CUT, len(ROWS))


@pytest.mark.parametrize("head", sorted(FOLDER.glob("bucket.*.head")), ids=lambda path: path.name)
def test_a_stored_bucket_goes_on(head):
    stem = head.name.removesuffix(".head")
    parts = [(FOLDER / f"{stem}.{name}").read_bytes() for name in ("snapshot", "entry0", "entry1")]
    found = head_of(json.loads(head.read_text()))
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
    assert set(WINDOWS) | set(OPERATORS) == {path.name.partition(".")[0] for path in FILES}
    for number in snapshot.READERS:
        assert any(f".{number}-" in name for name in names)
    for number in snapshot.ARRAY_READERS:
        assert any(f"-{number}.state" in name for name in names)
    for number in state_store.READERS:
        assert {f"bucket.{number}.head", f"chunk.{number}.stream"} <= names
    for path in FILES:
        assert load_state(path.read_bytes())["v"] in {**snapshot.READERS, **running.READERS}
        assert path.read_bytes()[8] in state_bytes.READERS
