"""Batches that cannot be taken, and what is left of the operator then."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pyarrow as pa
import pytest

from windowlib import (
    AccessError,
    Count,
    Graph,
    Operator,
    OperatorModel,
    SchemaError,
    Sliding,
    Tumbling,
    TumblingWindow,
    WindowEvents,
)
from windowlib.operators import Aggregate, Filter, Functor, Join, Sort, agg

ROWS = 1000
BATCH = pa.record_batch({"k": ["a", "b"] * (ROWS // 2), "x": range(ROWS)})
TOTAL = Aggregate(Tumbling(Count(2), by="k"), total=agg.sum("x"))

sizes = pytest.mark.parametrize("batch", [BATCH, BATCH.slice(0, 4)], ids=["many rows", "few"])


@sizes
@pytest.mark.parametrize("call", ["insert_batch", "process_batch"])
@pytest.mark.parametrize(
    ("change", "times"),
    [
        (lambda batch: batch.to_pylist(), None),
        (lambda batch: batch.column("x"), None),
        (lambda batch: batch.rename_columns(["x", "x"]), None),
        (lambda batch: batch.rename_columns(["key", "x"]), None),
        (lambda batch: batch.rename_columns(["k", "y"]), None),
        (lambda batch: batch, "ts"),
        (lambda batch: batch, 3.5),
    ],
    ids=["a list", "an array", "two of a name", "no key", "no value", "no times", "odd times"],
)
def test_a_batch_that_is_refused_changes_nothing(batch, call, change, times):
    running = TOTAL.open()
    before = running.snapshot()
    with pytest.raises(SchemaError):
        getattr(running, call)(change(batch), times=times)
    assert before == running.snapshot()
    assert ROWS // 2 == running.process_batch(BATCH).num_rows


def test_a_wrong_output_type_is_found_before_a_row_is_taken():
    class Wrong(Operator):
        model, output = OperatorModel(windows=[Tumbling]), "x strng"

    running = Wrong(Tumbling(Count(2))).open()
    before = running.snapshot()
    with pytest.raises(SchemaError, match="strng"):
        running.process_batch(BATCH)
    assert before == running.snapshot()


def chain_of(error: BaseException | None) -> list[BaseException]:
    """An error, what it followed from, and so on."""
    seen: list[BaseException] = []
    while error is not None:
        assert not any(error is each for each in seen)
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


class Raises(WindowEvents[Any, Any]):
    content = "arrow"

    def before_flush(self, window, key):
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise RuntimeError("outer") from inner


def test_an_error_of_a_handler_keeps_its_cause_and_does_not_follow_from_itself():
    window = TumblingWindow(Tumbling(Count(2), by="k"), events=Raises())
    with pytest.raises(RuntimeError) as caught:
        window.insert_batch(BATCH)
    assert [RuntimeError, KeyError] == list(map(type, chain_of(caught.value)))


@pytest.mark.parametrize("read", ["keys", "full", "newest", "summary"])
def test_a_view_of_columns_says_what_it_has(read):
    class Reads(Raises):
        def before_flush(self, window, key):
            getattr(window, read)(key)

    window = TumblingWindow(Tumbling(Count(2), by="k"), events=Reads())
    with pytest.raises(AccessError, match="has column, arrow, size, spec, port and now"):
        window.insert_batch(BATCH)


# -- punctuation --

SORT = Sort("x", window=Tumbling(Count(100)))
JOIN = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), on="x")


@pytest.mark.parametrize("operator", [TOTAL, SORT, JOIN], ids=["Aggregate", "Sort", "Join"])
def test_who_asks_for_punctuation_gets_it_with_arrow_output_too(operator):
    marks: dict[str, int] = {}
    for call in ("insert_batch", "process_batch"):
        running, seen = operator.open(), list[int]()
        running.connect(0, lambda row: None, lambda seen=seen: seen.append(1))
        for port in range(len(operator.model.inputs)):
            made = getattr(running, call)(BATCH.slice(ROWS - 600), port)
        marks[call] = len(seen)
    assert made.num_rows
    assert 0 < marks["insert_batch"] == marks["process_batch"]


# -- graphs --


def test_a_graph_gives_what_its_operators_say_of_their_columns():
    chain = Filter(lambda row: row["k"] == "a").then(TOTAL)
    expected = pa.schema({"k": pa.string(), "total": pa.int64()})
    assert expected == chain.schema(BATCH.schema)
    running = chain.open()
    found = running.process_batch(BATCH)
    assert expected == found.schema
    assert {"k": "a", "total": 2} == found.to_pylist()[0]
    assert expected == running.process_batch(BATCH.slice(0, 1)).schema


def test_columns_behind_a_callable_are_those_of_the_rows():
    chain = Functor(lambda row: {"k": row["k"], "x": row["x"] / 2}).then(TOTAL)
    assert chain.schema(BATCH.schema) is None
    assert {"k": "a", "total": 1.0} == chain.open().process_batch(BATCH).to_pylist()[0]


def test_merged_streams_of_different_columns_have_no_common_ones():
    graph = Graph(inputs=["one", "two"], both=(Filter(bool), ["one", "two"]))
    other = pa.schema({"y": pa.int64()})
    assert graph.schema(BATCH.schema, other) is None
    assert BATCH.schema == graph.schema(BATCH.schema, BATCH.schema)


def test_rows_that_differ_in_their_columns_lose_none():
    made = Functor(lambda row: {"x": 1} if row["x"] % 2 else {"y": 2}).open()
    assert ["y", "x"] == made.process_batch(BATCH.slice(0, 2)).schema.names


def test_explain_knows_the_operator_that_reads_the_batches():
    chain = TOTAL.then(Filter(lambda row: True))
    assert "batches    columnar" in chain.explain(BATCH)


def test_an_operator_that_takes_batches_itself_says_so_once():
    join = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), left_on="k", right_on="q")
    assert 1 == join.explain(BATCH).count("batches ")


def test_an_error_of_who_reads_a_join_does_not_follow_from_itself():
    def fail(row: Any) -> None:
        raise RuntimeError("full")

    running = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), on="x").open()
    running.connect(0, fail)
    running.insert_batch(BATCH, 0)
    with pytest.raises(RuntimeError) as caught:
        running.insert_batch(BATCH.slice(ROWS - 300), 1)
    assert [RuntimeError] == list(map(type, chain_of(caught.value)))
