"""A bucket without Spark: however its input is cut, and wherever it is restored, it goes on."""
# ruff: noqa: SIM300 - asserts read expected first

import warnings
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.spark import cases
from tests.spark.stream_runs import unended
from tests.spark.test_same_answers import close
from windowlib import Count, Sliding, Time, Tumbling
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.errors import StateVersionError
from windowlib.operators import Aggregate, Filter, Sort, agg
from windowlib.spark.bucket.bucket import Bucket, BucketSpec, MicroBatch, check_fingerprint
from windowlib.spark.plan import validation
from windowlib.spark.plan.shuffle import ENDED, HELLO, PackedRows

CASES = {**cases.ONE_INPUT, **cases.TWO_INPUTS, **cases.LATE, **cases.TIMED}


def spec_of(operator, *inputs):
    made = operator.schemas(*inputs)
    return BucketSpec(
        operator=operator,
        inputs=tuple(inputs),
        outputs=made,
        made=made,
        orders=validation.orders(operator),
        fingerprint=operator.describe(),
        nonce="run",
        timed=validation.timed(operator),
        aged=validation.aged(operator),
    )


def schemas_of(case):
    return [cases.SCHEMA, cases.RIGHT][: case.sides]


def chunks_of(sides, schemas, cuts):
    """The rows of each input in chunks; Spark may hand them over in any order."""
    found = []
    for side, (rows, schema) in enumerate(zip(sides, schemas, strict=True)):
        edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
        for place, (lo, hi) in enumerate(pairwise(edges)):
            batch = pa.RecordBatch.from_pylist(rows[lo:hi], schema)
            found.append(PackedRows(side, place, stream_bytes(batch)))
    return tuple(reversed(found))


class Kept:
    """A bucket with what the state store has of it."""

    def __init__(self, spec):
        self.spec, self.bucket = spec, None
        self.snapshot: bytes | None = None
        self.log: list[bytes] = []
        self.rows: list[tuple[str, Any]] = []

    def step(self, chunks, now, restore):
        request = MicroBatch(
            "run", chunks, now, len(self.snapshot or b""), sum(map(len, self.log)), restore
        )
        if self.bucket is None:
            self.bucket = Bucket(self.spec, now or 0)
        elif restore:
            assert self.snapshot is not None
            self.bucket = Bucket.restored(self.spec, self.bucket.nonce, self.snapshot, self.log)
        outcome = self.bucket.step(request)
        if outcome.snapshot is not None:
            self.snapshot, self.log = outcome.snapshot, []
        elif outcome.entry is not None:
            self.log.append(outcome.entry)
        for port, data in outcome.rows:
            self.rows += [(self.bucket.names[port], row) for row in stream_table(data).to_pylist()]
        return outcome


def by_port(rows, columns):
    found: dict[str, list[Any]] = {}
    for port, row in rows:
        if isinstance(row, dict):
            found.setdefault(port, []).append({name: row.get(name) for name in columns[port]})
    return found


batches = st.lists(
    st.tuples(
        st.integers(0, 60),  # rows of the first input
        st.integers(0, 20),  # rows of the second
        st.sampled_from([0, 0, 1, 4, 30]),  # seconds that pass before
        st.lists(st.integers(0, 60), max_size=3),  # where the rows are cut into chunks
        st.booleans(),  # restored before
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(CASES)), steps=batches)
def test_a_bucket_that_is_restored_anywhere_goes_on_as_if_nothing_had_happened(name, steps):
    case = CASES[name]
    schemas = schemas_of(case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = spec_of(case.operator, *schemas)
    restored, left_alone = Kept(spec), Kept(spec)
    timed = spec.timed or spec.aged
    left = cases.rows(7, back=True) if name in cases.LATE else cases.rows(0)
    right = cases.rows(1)
    right = [{"ts": r["ts"], "k": r["k"], "j": r["j"], "y": r["n"] * 0.5} for r in right]
    at, now, taken = [0, 0], 100.0, []
    for first, second, passed, cuts, restore in steps:
        now += passed
        sides = [left[at[0] : at[0] + first], right[at[1] : at[1] + second]][: case.sides]
        at = [at[0] + first, at[1] + second]
        taken.append((now if timed else None, sides))
        chunks = chunks_of(sides, schemas, cuts)
        micros = round(now * 1e6) if timed else None
        restored.step(chunks, micros, restore)
        left_alone.step(chunks, micros, False)
    columns = {
        port.name: schema.names
        for port, schema in zip(case.operator.model.outputs, spec.made, strict=True)
    }
    want = by_port(unended(case.operator, taken, case.orders), columns)
    assert close(want, by_port(left_alone.rows, columns))
    assert close(want, by_port(restored.rows, columns))


def one(name="sliding count"):
    case = CASES[name]
    return Kept(spec_of(case.operator, *schemas_of(case)))


def some(lo, hi, schema=cases.SCHEMA):
    return (
        PackedRows(0, 0, stream_bytes(pa.RecordBatch.from_pylist(cases.rows(0)[lo:hi], schema))),
    )


def test_the_log_is_replaced_by_a_snapshot_when_it_has_become_larger():
    kept, written = one(), []
    for at in range(0, 200, 5):
        outcome = kept.step(some(at, at + 5), None, False)
        written.append("snapshot" if outcome.snapshot is not None else "entry")
        assert (outcome.snapshot is None) != (outcome.entry is None)
    assert "snapshot" == written[0]
    assert {"snapshot", "entry"} == set(written[1:])
    assert written.count("entry") > written.count("snapshot")


def test_a_greeting_changes_nothing_and_writes_nothing():
    kept = one()
    kept.step(some(0, 50), None, False)
    nonce = kept.bucket.nonce
    outcome = kept.step((PackedRows(HELLO, 0, b""),), None, False)
    assert (None, None, (), nonce) == (
        outcome.snapshot, outcome.entry, outcome.rows, outcome.nonce,
    )  # fmt: skip


def test_whatever_changes_a_bucket_changes_its_nonce():
    kept = one()
    seen = {kept.step(some(at, at + 9), None, False).nonce for at in range(0, 90, 9)}
    assert 10 == len(seen)


def test_counts_of_micro_batches_add_up():
    kept, total = one(), dict[str, int]()
    for at in range(0, 200, 20):
        counts = kept.step(some(at, at + 20), None, at == 100).counts
        total = {name: total.get(name, 0) + counts[name] for name in counts}
    assert 200 == total["rows_in"]
    assert len(kept.rows) == total["rows_out"]
    assert total["fired"] >= total["rows_out"] > 0


def test_gauges_are_told_whole_to_a_run_that_has_not_heard_of_the_bucket():
    kept = one()
    first = kept.step(some(0, 100), None, False).counts
    second = kept.step(some(100, 200), None, False).counts
    again = kept.step(some(200, 300), None, True).counts
    assert 5 == first["partitions"]
    assert 0 == second["partitions"]
    assert 5 == again["partitions"]
    assert again["state_bytes"] >= len(kept.snapshot or b"")


def test_the_clock_of_a_bucket_never_goes_back():
    kept = one("sliding time")
    kept.step(some(0, 50), 100_000_000, False)
    kept.step(some(50, 60), 90_000_000, False)  # another machine, whose clock is behind
    assert 100.0 == kept.bucket.running.now


def test_the_order_of_the_query_goes_before_that_of_the_window():
    window = Tumbling(Count(2), order_by="ts")
    schema = pa.schema({"ts": pa.int64(), "n": pa.int64()})
    rows = [{"ts": 3, "n": 1}, {"ts": 2, "n": 3}, {"ts": 1, "n": 2}, {"ts": 4, "n": 4}]
    firsts = Aggregate(window, first=agg.first("n"))
    for operator in (firsts, firsts.then(Filter(lambda row: True))):
        for order, expected in ((("n",), [1, 3]), (None, [1, 2]), ("ts", [2, 1])):
            kept = Kept(replace(spec_of(operator, schema), orders=(order,)))
            kept.step(chunks_of([rows], [schema], []), None, False)
            assert expected == [row["first"] for _, row in kept.rows]


def test_the_end_of_a_stream_finishes_a_bucket_and_nothing_is_due_after_it():
    schema = pa.schema({"n": pa.int64()})
    window = Sliding(Count(9), order_by=None)
    kept = Kept(spec_of(Sort("n", window=window), schema))
    kept.step(chunks_of([[{"n": n} for n in (3, 1, 2)]], [schema], []), None, False)
    assert [] == kept.rows
    kept.step((PackedRows(ENDED, 0, b""),), None, True)
    assert [1, 2, 3] == [row["n"] for _, row in kept.rows]
    timed = Kept(spec_of(Aggregate(Tumbling(Time("1s")), n=agg.count()), schema))
    assert timed.step(chunks_of([[{"n": 1}]], [schema], []), 0, False).due is not None
    assert timed.step((PackedRows(ENDED, 0, b""),), 10, False).due is None


def test_other_settings_are_refused_by_name():
    with pytest.raises(StateVersionError, match="written with key=k; this query says key=None"):
        check_fingerprint({"key": "k"}, {})
    with pytest.raises(StateVersionError, match=r"attach\(op, buckets=4\), or move its state: w"):
        check_fingerprint({"buckets": "4"}, {"buckets": "2"})
    with pytest.raises(StateVersionError, match="or move its state: windowlib state res"):
        check_fingerprint(
            {"spark.sql.shuffle.partitions": "2"}, {"spark.sql.shuffle.partitions": "3"}
        )
    check_fingerprint({"key": "k"}, {"key": "k"})
