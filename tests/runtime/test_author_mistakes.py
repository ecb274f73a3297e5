"""Mistakes of authors of operators get a message that says what was forgotten."""

import json
import warnings
from typing import Any

import pyarrow as pa
import pytest

from windowlib import (
    Count,
    ModelError,
    Operator,
    OperatorError,
    OperatorModel,
    SchemaError,
    Sliding,
    SlidingWindow,
    StateVersionError,
    Tumbling,
    TumblingWindow,
    WindowEvents,
    WindowlibWarning,
    replay,
)
from windowlib.farms import KeyFarm
from windowlib.operators import Aggregate, Join, Sort, agg

# -- a forgotten super().__init__() ---------------------------------------------------------------


class Forgetful(Operator):
    model = OperatorModel()

    def __init__(self, factor):
        self.factor = factor

    def on_tuple(self, tuple_, port):
        self.emit(x=tuple_["x"] * self.factor)


@pytest.mark.parametrize(
    "use",
    [
        lambda op: list(replay(op, [{"x": 1}])),
        lambda op: op.open(),
        lambda op: op.explain(),
        lambda op: KeyFarm(op),
        lambda op: op.name,
    ],
    ids=["replay", "open", "explain", "farm", "name"],
)
def test_a_forgotten_init_is_named_wherever_the_operator_is_used(use):
    message = r"^Forgetful: its __init__ does not call that of Operator\. Call super\(\)\.__init__"
    with pytest.raises(OperatorError, match=message):
        use(Forgetful(2))


def test_an_operator_that_calls_it_has_its_windows():
    assert Doubles("x int").windows == (None,)


# -- columns that are not declared ----------------------------------------------------------------


class Doubles(Operator):
    model = OperatorModel()

    def __init__(self, declared):
        super().__init__()
        self.output = declared  # type: ignore[misc]

    def on_tuple(self, tuple_, port):
        self.emit({"x": 2 * tuple_["x"], **tuple_.get("more", {})})


def test_a_column_that_is_not_declared_is_refused_in_replay_as_in_batches():
    rows: list[dict[str, Any]] = [{"x": 1}, {"x": 2, "more": {"double": 4}}]
    wrong = (
        r"the row {'x': 4, 'double': 4} has a column 'double', which the output has not\. Columns"
    )
    with pytest.raises(SchemaError, match=r"^Doubles\.emit\(\.\.\.\): " + wrong):
        list(replay(Doubles("x int"), rows))
    schema = pa.schema({"x": pa.int64(), "more": pa.map_(pa.string(), pa.int64())})
    full = [{**row, "more": row.get("more", {})} for row in rows]
    batch = pa.RecordBatch.from_pylist(full, schema)
    with pytest.raises(SchemaError, match=r"^process_batch\(\.\.\.\): " + wrong):
        Mapped("x int").open().process_batch(batch)


class Mapped(Doubles):
    def on_tuple(self, tuple_, port):
        super().on_tuple({**tuple_, "more": dict(tuple_["more"])}, port)


def test_what_comes_before_the_refused_row_comes_out():
    found = replay(Doubles("x int"), [{"x": 1}, {"x": 2, "more": {"y": 1}}])
    assert next(found) == {"x": 2}
    with pytest.raises(SchemaError, match="has a column 'y'"):
        next(found)


@pytest.mark.parametrize(
    "declared", [None, "x int, y int", "`x` struct<a: int>, y int", {"out": "x int, y int"}]
)
def test_declared_columns_go_through_and_may_be_left_out(declared):
    rows = [{"x": 1}, {"x": 2, "more": {"y": 1}}]
    assert list(replay(Doubles(declared), rows)) == [{"x": 2}, {"x": 4, "y": 1}]


# -- snapshots as JSON ----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_tuple_keys_that_went_through_json_are_named(engine):
    def made(by):
        return TumblingWindow(Tumbling(Count(9), by=by), engine=engine)

    window = made(("k", "x"))
    window.insert_many([{"k": "a", "x": 1}])
    state = json.loads(json.dumps(window.snapshot()))
    with pytest.raises(
        StateVersionError, match=r"the key \['a', 1\] is a list, as JSON makes of a tuple"
    ):
        made(("k", "x")).restore(state)
    single = made("k")
    single.insert_many([{"k": "a", "x": 1}])
    again = made("k")
    again.restore(json.loads(json.dumps(single.snapshot())))
    assert single.snapshot() == again.snapshot()


# -- partition keys of windows that are not partitioned -------------------------------------------

TEXT = "sliding, count(2)"


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda text: Aggregate(text, partitionBy="k", n=agg.count()), "Aggregate(by='k')"),
        (lambda text: Aggregate(text, by="k", n=agg.count()), "Aggregate(by='k')"),
        (lambda text: Sort("x", window=text, by="k"), "Sort(by='k')"),
        (
            lambda text: Join(left=text, right=text, on="x", partition_by="k"),
            "Join(partition_by='k')",
        ),
    ],
    ids=["partitionBy", "Aggregate", "Sort", "Join"],
)
def test_a_key_for_a_window_that_says_it_is_not_partitioned_is_refused(make, word):
    with pytest.raises(ModelError) as caught:
        make(TEXT)
    assert str(caught.value).startswith(
        f"{word}: the window '{TEXT}' is not partitioned. Add the word"
    )
    make(f"{TEXT}, partitioned")


# -- handlers that never fire ---------------------------------------------------------------------


class Triggered(WindowEvents[Any, Any]):
    def on_trigger(self, window, key):
        self.emit(key)


class Flushed(WindowEvents[Any, Any]):
    def before_flush(self, window, key):
        self.emit(key)


class Both(Triggered, Flushed):
    pass


class Evicted(WindowEvents[Any, Any]):
    def after_evict(self, window, tuple_, key):
        self.emit(tuple_)


@pytest.mark.parametrize(
    ("make", "events", "name", "instead"),
    [
        (TumblingWindow, Triggered, "Triggered.on_trigger", "before_flush"),
        (TumblingWindow, Evicted, "Evicted.after_evict", "before_flush"),
        (SlidingWindow, Flushed, "Flushed.before_flush", "on_trigger"),
    ],
)
def test_a_handler_that_never_fires_is_warned_about_at_construction(make, events, name, instead):
    with pytest.warns(WindowlibWarning, match=rf"^{name} is never called: this is .* {instead}"):
        make(evict=Count(2), events=events())


@pytest.mark.parametrize(
    ("make", "events"),
    [
        (TumblingWindow, Flushed),
        (TumblingWindow, Both),
        (SlidingWindow, Triggered),
        (SlidingWindow, Both),
        (SlidingWindow, Evicted),
    ],
)
def test_a_handler_that_fires_or_is_written_for_both_kinds_is_not(make, events):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(evict=Count(2), events=events())


def test_operators_are_warned_about_too():
    class Late(Operator):
        model = OperatorModel(windows=[Tumbling, Sliding])

        def on_trigger(self, window, key):
            self.emit(key)

    with pytest.warns(WindowlibWarning, match=r"^Late\.on_trigger is never called"):
        Late(Tumbling(Count(2))).open()
