"""The parts of the host, each by itself and without Spark: packing, merging, buckets, state."""
# ruff: noqa: SIM300 - asserts read expected first

import contextlib
import gc
import json
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from tests.spark import cases
from tests.spark.test_bucket import spec_of
from windowlib.columnar.arrays import sorting
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.errors import StateError, StateVersionError
from windowlib.spark import python_worker as worker
from windowlib.spark.bucket import state_cache, state_store
from windowlib.spark.bucket.bucket import Bucket, MicroBatch, MicroBatchResult
from windowlib.spark.bucket.state_cache import StateCache, run_micro_batch
from windowlib.spark.bucket.state_store import FORMAT, HEAD, StateHead, StateStore
from windowlib.spark.plan import output_rows, shuffle, types
from windowlib.spark.plan.input_merge import merged_inputs
from windowlib.spark.plan.output_rows import OutputArrays, Unpack
from windowlib.spark.plan.shuffle import (
    HELLO,
    REGISTER,
    BucketNumbers,
    Pack,
    PackedRows,
    common_types,
    gathered,
    partition_of,
    spread,
)
from windowlib.spark.plan.types import PORT
from windowlib.spark.versions import arrow_schema
from windowlib.window.arrow import in_order, ranks
from windowlib.window.state_bytes import ENVELOPE, MAGIC, dump_state

ROOT = Path(__file__).parents[2]

# -- packing --


THREE = BucketNumbers(2, 3)


def bucketed(hashes, values):
    return pa.record_batch({shuffle.BUCKET: pa.array(hashes, pa.int64()), "x": values})


def chunks(pack, batches):
    return [row for out in pack(iter(batches)) for row in out.to_pylist()]


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), max_size=4))
def test_packing_keeps_every_row_in_its_bucket_in_order(parts):
    number, batches, want = 0, [], dict[int, list[int]]()
    for part in parts:
        values = list(range(number, number + len(part)))
        number += len(part)
        batches.append(bucketed(part, pa.array(values, pa.int64())))
        for hashed, value in zip(part, values, strict=True):
            want.setdefault(THREE.here()[hashed % 3], []).append(value)
    pack = Pack(1, THREE, "packing")
    found = [c for c in chunks(pack, batches) if c["side"] != HELLO]
    assert {1} >= {chunk["side"] for chunk in found}
    places = [chunk["place"] for chunk in found]
    assert sorted(set(places)) == places
    got: dict[int, list[int]] = {}
    for chunk in found:
        got.setdefault(chunk["_bucket"], []).extend(
            stream_table(chunk["data"]).column("x").to_pylist()
        )
    assert want == got


def test_a_process_greets_every_bucket_once_a_query():
    first = chunks(Pack(0, THREE, "greeting"), [])
    greeted = [(bucket, HELLO) for bucket in (REGISTER, *THREE.here())]
    assert greeted == [(c["_bucket"], c["side"]) for c in first]
    assert [] == chunks(Pack(0, THREE, "greeting"), [])
    assert 4 == len(chunks(Pack(0, THREE, "another query"), []))


def test_many_small_batches_are_packed_together(monkeypatch):
    monkeypatch.setattr(shuffle, "ROWS", 10)
    batches = [pa.record_batch({"x": [n] * 3}) for n in range(8)]
    assert [12, 12] == [batch.num_rows for batch in gathered(batches)]
    monkeypatch.setattr(shuffle, "BYTES", 1)
    assert [3] * 8 == [batch.num_rows for batch in gathered(batches)]
    assert [] == list(gathered([]))


def test_unpacking_names_the_output_and_fills_what_it_lacks():
    schema = pa.schema({PORT: pa.string(), "x": pa.int64(), "y": pa.string()})
    blobs = [
        stream_bytes(pa.record_batch({"x": [1, 2]})),
        stream_bytes(pa.record_batch({"y": ["a"]})),
        None,
    ]
    batch = pa.record_batch({"port": [0, 1, None], "data": blobs})
    rows = [row for out in Unpack(["main", "late"], schema)([batch]) for row in out.to_pylist()]
    assert [
        {PORT: "main", "x": 1, "y": None},
        {PORT: "main", "x": 2, "y": None},
        {PORT: "late", "x": None, "y": "a"},
    ] == rows


def test_unpacking_gives_large_outputs_in_parts(monkeypatch):
    monkeypatch.setattr(output_rows, "OUT_ROWS", 4)
    table = pa.table({"x": range(10)})
    parts = list(Unpack([None], table.schema).rows(None, table))
    assert [4, 4, 2] == [part.num_rows for part in parts]
    assert list(range(10)) == [row["x"] for part in parts for row in part.to_pylist()]


def test_arrays_make_the_rows_that_unpacking_makes(spark, monkeypatch):
    monkeypatch.setattr(output_rows, "OUT_ROWS", 2)
    day = date(1969, 12, 31)
    table = pa.table(
        {
            "a.b": pa.array([1, 2, 3], pa.int8()),
            "n": pa.array([2**63 - 1, None, -(2**63)], pa.int64()),
            "x": pa.array([0.5, math.nan, None], pa.float64()),
            "f": pa.array([0.5, -0.0, math.inf], pa.float32()),
            "text": pa.array(["ü", None, ""], pa.string()),
            "at": pa.array([-1, None, 1 << 50], pa.timestamp("us", "UTC")),
            "day": pa.array([day, None, day], pa.date32()),
        }
    )
    struct = types.spark_schema(table.schema, "test")
    assert OutputArrays.fit(struct)
    arrays = OutputArrays(struct)
    data = stream_bytes(table.combine_chunks().to_batches()[0])
    sent = [dict.fromkeys(arrays.names), *arrays(data)]
    assert [2, 1] == [len(each["_0"]) for each in sent[1:]]
    declared: Any = StructType.fromDDL(", ".join(arrays.columns))
    kinds = arrow_schema(declared, "UTC")
    frame = spark.createDataFrame(pa.Table.from_pylist(sent, kinds))
    assert struct == arrays.rows(frame).schema
    made = arrays.rows(frame).toArrow()
    assert repr(table.to_pylist()) == repr(made.cast(table.schema).to_pylist())


@pytest.mark.parametrize(
    "kind", [pa.decimal128(3, 1), pa.list_(pa.int32()), pa.binary(), pa.timestamp("us"), pa.bool_()]
)
def test_other_columns_are_unpacked(kind):
    assert not OutputArrays.fit(types.spark_schema(pa.schema({"x": kind}), "test"))


def test_what_a_task_has_loaded_is_left_out_of_garbage_collections(monkeypatch):
    monkeypatch.setattr(worker, "TaskContext", SimpleNamespace(get=lambda: "a task"))
    monkeypatch.setattr(worker, "_loaded", 0)
    before = gc.get_freeze_count()
    try:
        worker.end_task()
        after = gc.get_freeze_count()
        assert after > before
        more: list[list[int]] = [[] for _ in range(10)]
        worker.end_task()
        assert after >= gc.get_freeze_count()
        assert any(each is more for each in gc.get_objects())
    finally:
        gc.unfreeze()


def test_a_process_that_runs_no_task_collects_what_it_will(monkeypatch):
    monkeypatch.setattr(worker, "_loaded", 0)
    before = gc.get_freeze_count()
    worker.end_task()
    assert before == gc.get_freeze_count()


# -- merging --


def ordered(values):
    return sorted(values, key=ranks)


stamps = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=8)


pairs = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.integers(0, 2)), max_size=8)


@given(
    st.lists(pairs.map(ordered), max_size=6),
    st.sampled_from([0, 2, 64]),
    st.sampled_from([("ts",), ("ts", "m")]),
)
def test_the_chunks_of_tasks_that_come_in_any_order_are_put_in_order(runs, most, names):
    values = [value for run in runs for value in run]
    ts, m = zip(*values, strict=True) if values else ((), ())
    table = pa.table({"ts": pa.array(ts, pa.int64()), "m": m, "n": range(len(values))})
    expected = sorted(table.to_pylist(), key=lambda row: ranks([row[name] for name in names]))
    with mock.patch.object(sorting, "MAX_RUNS", most):
        assert expected == in_order(table, names).to_pylist()


@given(st.lists(stamps, min_size=2, max_size=3))
def test_inputs_are_merged_by_their_columns_the_earlier_input_first(sides):
    tables = [
        pa.table({"at": pa.array(values, pa.int64()), "n": range(len(values))}) for values in sides
    ]
    tagged = [
        (value is not None, value or 0, port, number)
        for port, values in enumerate(sides)
        for number, value in enumerate(values)
    ]
    got = [
        (port, n)
        for port, run in merged_inputs(tables, ["at"] * len(tables))
        for n in run.column("n").to_pylist()
    ]
    assert [(port, number) for _, _, port, number in sorted(tagged)] == got


@given(st.lists(stamps, min_size=2, max_size=3))
def test_without_columns_one_input_comes_after_the_other(sides):
    tables = [pa.table({"at": pa.array(values, pa.int64())}) for values in sides]
    orders = ["at"] * (len(sides) - 1) + [None]
    got = [(port, run.column("at").to_pylist()) for port, run in merged_inputs(tables, orders)]
    ordered = [sorted(s, key=lambda v: (v is not None, v or 0)) for s in sides[:-1]] + sides[-1:]
    assert [(port, values) for port, values in enumerate(ordered) if values] == got


def test_one_input_is_ordered_if_it_names_columns():
    table = pa.table({"at": [2, 1]})
    assert [(0, table)] == list(merged_inputs([table], [None]))
    assert [(0, table.take([1, 0]))] == list(merged_inputs([table], ["at"]))
    assert [] == list(merged_inputs([None, None], ["at", "at"]))
    assert [(1, [1, 2])] == [
        (port, run.column("at").to_pylist())
        for port, run in merged_inputs([None, table], ["at", "at"])
    ]


# -- buckets --


@given(st.integers(1, 60), st.integers(1, 40))
def test_buckets_spread_evenly_over_partitions(buckets, partitions):
    numbers = spread(buckets, partitions)
    assert buckets == len(set(numbers))
    where = [partition_of(number, partitions) for number in numbers]
    assert [n % partitions for n in range(buckets)] == where
    counts = Counter(where)
    assert max(counts.values()) - min(counts.get(n, 0) for n in range(partitions)) <= 1


def test_the_partition_of_a_bucket_is_where_spark_sends_it(spark):
    from pyspark.sql import functions as fn

    numbers = spark.range(50).select(fn.col("id").cast("int").alias("b"))
    found = numbers.select("b", fn.pmod(fn.hash("b"), fn.lit(7)).alias("p")).collect()
    assert [(n, partition_of(n, 7)) for n in range(50)] == [(row.b, row.p) for row in found]


def test_keys_of_several_inputs_are_hashed_in_one_type():
    from pyspark.sql.types import IntegerType, LongType, StringType

    one, two, text = IntegerType(), LongType(), StringType()
    assert [one, "double", text] == common_types([[one, one, text], [one, two, text]])
    assert [text] == common_types([[text], [two]])


# -- the state store --


class Values:
    def __init__(self) -> None:
        self.held: dict[Any, Any] = {}
        self.writes = 0

    def getValue(self, key):  # noqa: N802
        return self.held.get(key)

    def updateValue(self, key, value):  # noqa: N802
        self.writes += 1
        self.held[key] = tuple(map(bytearray, value))

    def clear(self):
        self.held.clear()


class Handle:
    """What Spark gives a stateful processor, as far as we use it."""

    def __init__(self) -> None:
        self.values = Values()

    def getMapState(self, name, key, value):  # noqa: N802
        assert ("window", ["number"], ["data"]) == (name, key.names, value.names)
        return self.values


CASE = cases.ONE_INPUT["sliding count"]
SPEC = spec_of(CASE.operator, cases.SCHEMA)


def some(lo, hi):
    batch = pa.RecordBatch.from_pylist(cases.rows(0)[lo:hi], cases.SCHEMA)
    return (PackedRows(0, 0, stream_bytes(batch)),)


def written(handle, bucket, lo, hi):
    """A micro-batch, up to what the state store has of it."""
    found = StateStore(handle)
    head = found.read()
    saved, logged = (0, 0) if head is None else (head.saved, head.logged)
    result = bucket.step(MicroBatch("run", some(lo, hi), None, saved, logged, False))
    found.write(head, SPEC.about, result, "run", "home", 0)
    return result


@pytest.mark.parametrize(("small", "page"), [(1 << 20, 1 << 23), (100, 700)])
def test_what_is_written_is_what_is_read(monkeypatch, small, page):
    monkeypatch.setattr(state_store, "SMALL", small)
    monkeypatch.setattr(state_store, "PAGE", page)
    handle, bucket = Handle(), Bucket(SPEC, 0)
    assert StateStore(handle).read() is None
    for at in range(0, 400, 10):
        written(handle, bucket, at, at + 10)
        head = StateStore(handle).read()
        assert head is not None
        head.check(SPEC)
        assert bucket.nonce == head.nonce
        assert at // 10 == head.version
        copy = Bucket.restored(SPEC, head.nonce, *StateStore(handle).load(head))
        assert bucket.snapshot() == copy.snapshot()
        assert head.pages + head.entries + 1 == len(handle.values.held)
        assert (small == 100) == (head.data is None)


def test_a_micro_batch_writes_one_entry_or_a_snapshot():
    handle, bucket = Handle(), Bucket(SPEC, 0)
    for at in range(0, 200, 10):
        before = handle.values.writes
        result = written(handle, bucket, at, at + 10)
        assert 1 + (result.entry is not None) == handle.values.writes - before


def test_with_a_log_a_snapshot_is_not_written_again_with_every_entry(monkeypatch):
    monkeypatch.setattr(state_store, "TINY", 100)
    handle, bucket = Handle(), Bucket(SPEC, 0)
    kinds = set()
    for at in range(0, 200, 10):
        result = written(handle, bucket, at, at + 10)
        head = StateStore(handle).read()
        assert head is not None
        assert (result.entry is None) == (head.data is not None)
        copy = Bucket.restored(SPEC, head.nonce, *StateStore(handle).load(head))
        assert bucket.snapshot() == copy.snapshot()
        kinds.add(result.entry is None)
    assert {True, False} == kinds


def test_state_of_another_operator_is_refused():
    handle = Handle()
    written(handle, Bucket(SPEC, 0), 0, 10)
    head = StateStore(handle).read()
    assert head is not None
    other = spec_of(cases.ONE_INPUT["tumbling count"].operator, cases.SCHEMA)
    with pytest.raises(StateVersionError, match="the checkpoint was written with"):
        head.check(other)
    assert SPEC.fingerprint == json.loads(head.about)["fingerprint"]


def stored():
    """A bucket in the state store: its head, and its pages with a log."""
    handle, bucket = Handle(), Bucket(SPEC, 0)
    for at in range(0, 60, 10):
        written(handle, bucket, at, at + 10)
    head = StateStore(handle).read()
    assert head is not None
    assert head.entries > 1
    return handle, head


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"nonce": "another"},
        {"about": '{"fingerprint": {}}'},
        {"timer": 1},
        {"entries": 1},
        {"saved": 0},
    ],
)
def test_a_head_that_was_changed_is_refused(change):
    _, head = stored()
    head.check(SPEC)
    with pytest.raises(StateError, match="checksum of its head"):
        replace(head, **change).check(SPEC)


def test_a_head_of_which_any_byte_was_changed_is_refused():
    handle, head = stored()
    place, (data,) = (HEAD,), handle.values.held[(HEAD,)]
    line = len(data) - len(head.data or b"") - 1  # and a line feed
    for at in range(line):
        for changed in (data[:at], data[:at] + data[at + 1 :], data[:at] + b"\0" + data[at + 1 :]):
            handle.values.held[place] = (changed,)
            with pytest.raises(StateError, match=r"checksum of its head|has state of format"):
                StateStore(handle).read()
    for other in (b"[]", b"7", b"{}", b'{"format": []}', b'{"format": 3}', b"[" * 100_000):
        handle.values.held[place] = (other + data[line:],)
        with pytest.raises(StateError, match="checksum of its head"):
            StateStore(handle).read()


def test_every_byte_of_a_stored_bucket_is_checked():
    handle, head = stored()
    snapshot, log = StateStore(handle).load(head)
    for number, blob in enumerate((snapshot, *log)):
        for at in range(0, len(blob), 1 if number == 0 else 7):
            damaged = bytearray(blob)
            damaged[at] ^= 1 << at % 8
            blobs = [bytes(damaged) if n == number else b for n, b in enumerate((snapshot, *log))]
            with pytest.raises(StateError):
                Bucket.restored(SPEC, head.nonce, blobs[0], blobs[1:])


def test_entries_of_a_log_that_are_lost_or_mixed_up_are_refused():
    handle, head = stored()
    snapshot, log = StateStore(handle).load(head)
    assert Bucket.restored(SPEC, head.nonce, snapshot, log).nonce == head.nonce
    for other in (log[:-1], log[1:], [log[1], log[0], *log[2:]], [log[0], *log]):
        with pytest.raises(StateError, match="does not belong together"):
            Bucket.restored(SPEC, head.nonce, snapshot, other)


# -- where buckets live --

OTHER = """
import sys
from tests.spark.test_parts import SPEC, some
from windowlib.spark.bucket.state_cache import STATE_CACHE
from windowlib.spark.bucket.bucket import Bucket, MicroBatch

bucket = Bucket(SPEC, 0)
result = bucket.step(MicroBatch("run", some(0, 100), None, 0, 0, True))
STATE_CACHE.keep(bucket)
print(STATE_CACHE.address)
print(result.nonce)
print(result.snapshot.hex(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def other():
    """Another process that keeps a bucket which has taken 100 rows; it, and the state."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    address, nonce, snapshot = (process.stdout.readline().strip() for _ in range(3))
    yield process, head_at(address, nonce), bytes.fromhex(snapshot)
    process.stdin.close()
    process.wait()
    process.stdout.close()


def head_at(address, nonce):
    return StateHead(FORMAT, 0, nonce, "run", address, "{}", 0, 1 << 20, 0, 0, 0, b"")


def micro_batch(lo, hi):
    return MicroBatch("run", some(lo, hi), None, 1 << 20, 0, False)


@pytest.fixture
def cache(monkeypatch):
    fresh = StateCache()
    monkeypatch.setattr(state_cache, "STATE_CACHE", fresh)
    return fresh


def never(head):
    raise AssertionError("the state was loaded")


def expected(lo, hi):
    """What a bucket makes of rows after the first 100."""
    bucket = Bucket(SPEC, 0)
    bucket.step(MicroBatch("run", some(0, 100), None, 0, 0, True))
    return bucket.step(micro_batch(lo, hi)).rows


def test_a_bucket_that_another_process_keeps_is_used_there(cache, other):
    _, head, _ = other
    result, home = run_micro_batch(SPEC, head, micro_batch(100, 130), never)
    assert expected(100, 130) == result.rows
    assert head.home == home
    again, home = run_micro_batch(SPEC, head_at(home, result.nonce), micro_batch(130, 160), never)
    assert result.nonce != again.nonce


def test_a_bucket_that_is_ahead_of_the_state_store_is_not_used(cache, other):
    _, head, snapshot = other
    run_micro_batch(SPEC, head, micro_batch(100, 130), never)  # that task then failed
    loads = []

    def load(found):
        loads.append(found)
        return snapshot, []

    result, home = run_micro_batch(SPEC, head, micro_batch(100, 130), load)
    assert [head] == loads
    assert expected(100, 130) == result.rows
    assert cache.address == home


def test_a_bucket_whose_process_has_ended_comes_from_the_state_store(cache, other):
    process, head, snapshot = other
    process.kill()
    process.wait()
    result, home = run_micro_batch(SPEC, head, micro_batch(100, 130), lambda _: (snapshot, []))
    assert expected(100, 130) == result.rows
    assert cache.address == home


def test_a_bucket_of_another_machine_comes_from_the_state_store(cache, other):
    _, head, snapshot = other
    machine, name = head.home.split(" ")
    far = head_at(f"not-{machine} {name}", head.nonce)
    result, _ = run_micro_batch(SPEC, far, micro_batch(100, 130), lambda _: (snapshot, []))
    assert expected(100, 130) == result.rows


def left_alone():
    """The nonce and the snapshot of a bucket that has taken 100 rows."""
    result = Bucket(SPEC, 0).step(MicroBatch("run", some(0, 100), None, 0, 0, True))
    return result.nonce, result.snapshot


def reloaded(head, snapshot):
    """What a micro-batch makes of a bucket that nobody keeps, or will not give."""
    result, _ = run_micro_batch(SPEC, head, micro_batch(100, 130), lambda _: (snapshot, []))
    assert expected(100, 130) == result.rows
    assert 1 == result.counts["loads"]


def test_a_worker_that_is_stopped_costs_a_reload(cache, other, monkeypatch):
    monkeypatch.setattr(state_cache, "SILENCE", 0.2)
    process, head, snapshot = other
    process.send_signal(signal.SIGSTOP)
    try:
        reloaded(head, snapshot)
    finally:
        process.send_signal(signal.SIGCONT)


class Peer:
    """A socket where a worker should be: it does what it is told with each caller."""

    def __init__(self, act):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        name = f"windowlib-test-{os.getpid()}-{id(self)}"
        self.socket.bind(f"\0{name}")
        self.socket.listen()
        self.address = f"{socket.gethostname()} {name}"
        self.act, self.held = act, []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.socket.accept()
                self.held.append(caller)
                self.act(caller)

    def close(self):
        for each in (*self.held, self.socket):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def lying(caller):
    """An answer in the right form, of the wrong types."""
    caller.recv(1 << 20)
    caller.sendall(b"\1" + dump_state(("nonce", [("0", 1)], {"rows_in": "many"}, None, 7, None)))


PEERS = {
    "silent": lambda caller: None,
    "gone": lambda caller: caller.close(),
    "garbage": lambda caller: caller.sendall(b"\1" + bytes(range(256)) * 10),
    "endless": lambda caller: caller.sendall(b"\1" + ENVELOPE.pack(MAGIC, 1, 1 << 60) + bytes(16)),
    "forever at work": lambda caller: caller.sendall(b"\0" * 3),
    "pickles": lambda caller: caller.sendall(b"\1" + pickle.dumps(print)),
    "lying": lying,
}


@pytest.mark.parametrize("act", PEERS.values(), ids=list(PEERS))
def test_whatever_answers_in_place_of_a_worker_costs_a_reload(cache, monkeypatch, act):
    monkeypatch.setattr(state_cache, "SILENCE", 0.2)
    nonce, snapshot = left_alone()
    peer = Peer(act)
    try:
        reloaded(head_at(peer.address, nonce), snapshot)
    finally:
        peer.close()


def test_a_worker_that_only_says_that_it_is_at_work_is_given_up(cache, monkeypatch):
    monkeypatch.setattr(state_cache, "LONGEST", 0.0)
    peer = Peer(lambda caller: caller.sendall(b"\0" * 100))
    try:
        assert cache.ask(peer.address, "nonce", micro_batch(100, 130)) is None
    finally:
        peer.close()


def test_a_worker_survives_whatever_it_is_sent(cache, other):
    _, head, _ = other
    for said in (b"", b"garbage", dump_state("no batch"), dump_state(("n", ("run", [(0,)])))):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(f"\0{head.home.split(' ')[1]}")
            caller.sendall(said)
            caller.shutdown(socket.SHUT_WR)
            assert b"" == caller.recv(1)
    result, _ = run_micro_batch(SPEC, head, micro_batch(100, 130), never)  # it is still there
    assert expected(100, 130) == result.rows


def test_a_worker_says_while_it_works_that_it_does(cache, monkeypatch):
    monkeypatch.setattr(state_cache, "BEAT", 0.01)
    monkeypatch.setattr(state_cache, "SILENCE", 5.0)
    keeper, goes_on = StateCache(), threading.Event()
    result = MicroBatchResult("n", (), {"rows_in": 1}, None, None, None)
    monkeypatch.setattr(keeper, "step", lambda nonce, batch: goes_on.wait() and result)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        threading.Thread(
            target=keeper._work, args=(theirs, "n", micro_batch(0, 1)), daemon=True
        ).start()
        assert b"\0\0\0" == mine.recv(1) + mine.recv(1) + mine.recv(1)
        goes_on.set()
        assert result == state_cache._answered(mine)


STRANGER = """
import os, socket, sys
from windowlib.window.state_bytes import dump_state
os.setgid(65534)
os.setuid(65534)
caller = socket.socket(socket.AF_UNIX)
caller.connect("\\0" + sys.argv[1])
try:
    caller.sendall(dump_state(("n", ("run", [], None, 0, 0, False))))
    print(caller.recv(1))
except (BrokenPipeError, ConnectionResetError):
    print(b"")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_not_served(other):
    _, head, _ = other
    name = head.home.split(" ")[1]
    told = subprocess.run(
        [sys.executable, "-c", STRANGER, name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("b''\n", "") == (told.stdout, told.stderr)


SQUATTER = """
import os, socket, sys
os.setuid(65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0" + sys.argv[1])
listener.listen()
print("there", flush=True)
caller, _ = listener.accept()
print(caller.recv(1 << 20))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_at_the_address_of_a_worker_gets_no_rows(cache):
    name = f"windowlib-squatter-{os.getpid()}"
    command = [sys.executable, "-c", SQUATTER, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as squatter:
        assert squatter.stdout is not None
        assert "there\n" == squatter.stdout.readline()
        nonce, snapshot = left_alone()
        reloaded(head_at(f"{socket.gethostname()} {name}", nonce), snapshot)
        assert "b''\n" == squatter.stdout.read()


def test_a_worker_of_another_user_is_not_asked(cache, monkeypatch):
    nonce, snapshot = left_alone()
    keeper = StateCache()
    keeper.keep(Bucket.restored(SPEC, nonce, snapshot, []))
    address = keeper.address
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    reloaded(head_at(address, nonce), snapshot)


def test_a_bucket_that_this_process_keeps_is_used(cache):
    first, home = run_micro_batch(
        SPEC, None, MicroBatch("run", some(0, 100), None, 0, 0, True), never
    )
    assert cache.address == home
    assert socket.gethostname() == home.split(" ")[0]
    second, again = run_micro_batch(SPEC, head_at(home, first.nonce), micro_batch(100, 130), never)
    assert (home, expected(100, 130)) == (again, second.rows)


def test_of_too_many_buckets_the_least_recently_used_go(cache, monkeypatch):
    monkeypatch.setattr(state_cache, "CAPACITY", 2)
    heads = []
    for _ in range(3):
        result, home = run_micro_batch(
            SPEC, None, MicroBatch("run", some(0, 100), None, 0, 0, True), never
        )
        heads.append(head_at(home, result.nonce))
    assert cache.step(heads[0].nonce, micro_batch(100, 130)) is None
    assert cache.step(heads[1].nonce, micro_batch(100, 130)) is not None


def test_a_bucket_that_failed_is_no_longer_kept(cache):
    result, _ = run_micro_batch(
        SPEC, None, MicroBatch("run", some(0, 100), None, 0, 0, True), never
    )
    broken = MicroBatch("run", (PackedRows(0, 0, b"no Arrow"),), None, 1 << 20, 0, False)
    with pytest.raises(pa.ArrowInvalid):
        cache.step(result.nonce, broken)
    assert cache.step(result.nonce, micro_batch(100, 130)) is None
