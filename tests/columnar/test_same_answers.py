"""The columnar engine gives what the event engine gives: rows, order, errors and state.

Every case feeds one stream twice, as rows and as batches, and compares all there is to see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.columnar.random_streams import streams
from tests.columnar.random_windows import ALL, COLUMNAR, Near, called, first, operators, specs
from tests.columnar.rows_and_batches import Judge, Log, Run, compare, scale_of, through_window
from tests.columnar.with_each_engine import engine  # noqa: F401 - runs each test with each engine
from tests.helpers.declared_functions import declared_functions
from tests.helpers.event_recorder import build
from tests.helpers.examples import at_least, examples
from windowlib import (
    AccessError,
    Count,
    Delta,
    PartitionCount,
    Sliding,
    SlidingWindow,
    Tumbling,
    TumblingWindow,
    WindowEvents,
    summarizers,
)
from windowlib.columnar import handover
from windowlib.columnar.arrays import kept_rows
from windowlib.columnar.engines import engine as engines
from windowlib.columnar.engines import tumbling
from windowlib.columnar.kernels import functions
from windowlib.operators import Aggregate, agg

SLICES = [7, 40, 40, 10**6]
"""How many rows are worked on at once."""
FAILURES = [[], [], [], [3], [4, 11], [20]]
"""What comes out that is not wanted, by number."""


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Small batches are worth it, and what is kept is packed often."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(handover, "SLICE_ROWS", 40)
    monkeypatch.setattr(engines, "PARTITIONS_PER_ROW", 4)  # so that it is as before in the end
    monkeypatch.setattr(tumbling, "SPARSE", 4)
    monkeypatch.setattr(functions, "MIN_POOL_TO_PACK", 60)
    monkeypatch.setattr(kept_rows, "ROOM", 64)


def share_taken(case: Callable[[Any], Log], count: int) -> float:
    """Run a case with many streams; the share of their batches that the columnar engine took."""
    taken: Counter[str] = Counter()
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=examples(count), suppress_health_check=checks)
    @given(st.data())
    def run(data: Any) -> None:
        handover.SLICE_ROWS = data.draw(st.sampled_from(SLICES))
        engines.PARTITIONS_PER_ROW = data.draw(st.sampled_from([0, 10**6]))
        tumbling.SPARSE = data.draw(st.sampled_from([0, 10**6]))
        log = case(data)
        taken["batches"] += log.batches
        taken["columnar"] += log.columnar

    run()
    return taken["columnar"] / taken["batches"]


# -- rows -----------------------------------------------------------------------------------------


def rows_case(data: Any) -> Log:
    """An Aggregate, its rows one by one."""
    stream = data.draw(streams(others=("punctuate", "restart", "advance")))
    definition = data.draw(operators(stream))
    fails, items = data.draw(st.sampled_from(FAILURES)), stream.items()
    one, other = Run(definition, fails), Run(definition, fails)
    got = other.over(items, other.insert_batch)
    Judge(definition, stream, items).check(one.over(items, one.insert_rows), got)
    return got


def process_case(data: Any) -> Log:
    """An Aggregate, its rows as batches of the declared types."""
    stream = data.draw(streams(others=("punctuate", "restart", "advance")))
    definition = data.draw(operators(stream))
    fails, items = data.draw(st.sampled_from(FAILURES)), stream.items()
    one, other = Run(definition, fails), Run(definition, fails)
    got = other.over(items, other.process)
    Judge(definition, stream, items).check(one.over(items, one.process_rows), got)
    return got


@pytest.mark.search
def test_batches_give_the_rows_that_single_rows_give_and_leave_the_same_state():
    assert share_taken(rows_case, 200) > at_least(0.25)


@pytest.mark.search
def test_process_batch_gives_the_same_values_and_types_whichever_engine_runs():
    assert share_taken(process_case, 80) > at_least(0.25)


# -- handlers -------------------------------------------------------------------------------------


class Reader(WindowEvents[Any, Any]):
    """Writes down what it reads of the partition it is called for; fails at some calls."""

    content = "arrow"

    def __init__(self, names: list[str], fails: list[int]) -> None:
        self.names, self.fails = names, fails
        self.log: list[Any] = []
        self.calls = 0

    def read(self, window: Any, key: Any) -> None:
        """Some ways of reading, others at the next call."""
        self.calls += 1
        batch = window.arrow(key) if self.calls % 3 else None
        columns = [window.column(name, key) for name in self.names[self.calls % 2 :: 2]]
        self.log.append((key, window.size(key), list(map(_listed, columns))))
        self.log.append([] if batch is None else [batch.schema, batch.to_pylist()])
        if self.calls % 2:
            self.log.append(list(window[key]))
        if self.calls in self.fails:
            raise ValueError(f"call {self.calls}")


def _listed(column: Any) -> list[Any]:
    """The type and the values of a numpy array, lists in it included."""
    return [str(column.dtype), [x.tolist() if isinstance(x, np.ndarray) else x for x in column]]


class Flushes(Reader):
    def before_flush(self, window, key):
        self.read(window, key)


class Triggers(Reader):
    def on_trigger(self, window, key):
        self.read(window, key)


def handler_case(data: Any) -> Log:
    """A window whose handlers read columns."""
    stream = data.draw(streams(others=("punctuate", "restart")))
    spec = data.draw(specs(stream.columns))
    fails, items = data.draw(st.sampled_from(FAILURES)), stream.items()
    kind = Triggers if isinstance(spec, Sliding) else Flushes
    one, other = (kind(list(stream.columns), fails) for _ in range(2))
    wanted = through_window(lambda: build(spec, events=one), items, False, one.log)
    got = through_window(lambda: build(spec, events=other), items, True, other.log)
    compare(wanted, got)
    return got


@pytest.mark.search
def test_handlers_that_read_columns_are_called_alike_and_read_the_same():
    assert share_taken(handler_case, 70) > at_least(0.25)


class Elsewhere(WindowEvents[Any, Any]):
    """Reads another partition than the one it is called for."""

    content = "arrow"

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read

    def before_flush(self, window, key):
        self.read(window)

    def on_trigger(self, window, key):
        self.read(window)


READS: dict[str, Callable[[Any], Any]] = {
    "column": lambda window: window.column("x", "b"),
    "arrow": lambda window: window.arrow("b"),
    "tuples": lambda window: window["b"],
    "size": lambda window: window.size("b"),
}
KEYED = pa.record_batch({"k": ["b", "a", "a"], "x": [1, 2, 3]})


@pytest.mark.parametrize(
    "spec", [Tumbling(Count(2), by="k"), Sliding(Count(2), every=Count(2), by="k")]
)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_handler_that_reads_columns_may_not_read_other_partitions(spec, read):
    window = build(spec, events=Elsewhere(read))
    with pytest.raises(AccessError, match="called for 'a' and may read that partition only"):
        window.insert_batch(KEYED)
    assert window.seen == 3


# -- windows by themselves ------------------------------------------------------------------------

SUMMARIES: list[Any] = [
    None,
    summarizers.count(),
    summarizers.sum("x"),
    {"n": summarizers.count(), "mean": summarizers.mean("x"), "low": summarizers.min("y")},
    {"sum": summarizers.sum("y", compensated=True), "high": summarizers.max("z")},
    {"var": summarizers.variance("x", ddof=1), "mean": summarizers.mean("y")},
]


def window_case(data: Any) -> Log:
    """A window without handlers."""
    stream = data.draw(streams(others=("punctuate", "restart")))
    spec = data.draw(specs(stream.columns))
    summarizer, items = data.draw(st.sampled_from(SUMMARIES)), stream.items()
    scale = scale_of(items)

    def made() -> Any:
        return build(spec, summarizer=summarizer)

    logs = [through_window(made, items, columnar, []) for columnar in (False, True)]
    for log in logs:
        for state in log.states:
            for part in state["parts"]:
                part["summary"] = _worth(made(), part, state)
    wanted, got = logs
    compare(wanted, got, Near(1e-9, 1e-12 * scale * scale))
    return got


def _worth(window: Any, part: Any, state: Any) -> Any:
    """What a saved summary of a tumbling partition stands for."""
    if isinstance(window, SlidingWindow) or part["summary"] is None:
        return None
    used = None if state["lru"] is None else [part["key"]]
    window.restore({**state, "parts": [part], "lru": used})
    return window.summary(part["key"]).value()


@pytest.mark.search
def test_windows_by_themselves_hold_the_same_tuples_and_summaries():
    assert share_taken(window_case, 70) > at_least(0.25)


# -- what the cases are made of -------------------------------------------------------------------


def test_all_functions_with_a_columnar_form_are_among_those_that_are_tried():
    made = [agg.count(), *(called(first, name, iter("yxy").__next__) for name in COLUMNAR)]
    tried = {each.call.function.kernel for each in made if each.call is not None}
    assert tried == {each.kernel for each in declared_functions() if each.kernel}
    assert {"sum", "mean", "max", "arg_max", "first", "corr"} <= set(COLUMNAR) <= set(ALL)


# -- what is easily missed ------------------------------------------------------------------------


def ran(definition: Aggregate, *batches: Any, fails: Any = ()) -> tuple[Log, Log]:
    """The log of rows, and the log of batches, of which all were taken as such."""
    items = [("batch", batch) for batch in batches]
    one, other = Run(definition, fails), Run(definition, fails)
    wanted, got = one.over(items, one.insert_rows), other.over(items, other.insert_batch)
    assert len(wanted.out) > 0
    return wanted, got


def test_a_failure_early_in_a_batch_of_a_long_window_sends_no_row_twice(monkeypatch):
    monkeypatch.setattr(handover, "SLICE_ROWS", 10**6)
    definition = Aggregate(
        Sliding(Delta("t", 10**6), every=Count(7)), n=agg.sum("t"), partial="emit"
    )
    batches = [pa.record_batch({"t": list(range(n, n + 600))}) for n in (0, 600, 1200)]
    wanted, got = ran(definition, *batches, fails=[2 * 600 // 7 + 4])
    assert wanted.out == got.out
    errors = [item[1] for item in got.out if isinstance(item, tuple)]
    assert errors == ["ValueError"]


def test_the_order_of_use_survives_a_change_of_engines():
    spec = Tumbling(Count(10), by="k", forget=PartitionCount(3))
    definition = Aggregate(spec, n=agg.count(), flush_at_end=True)
    rows = pa.table({"k": ["a", "b", "c", "a"]})
    run = Run(definition)
    items = [
        ("many", rows),
        ("batch", pa.table({"k": ["c", "b"]})),
        ("batch", pa.table({"k": ["d"]})),
    ]
    log = run.over(items, run.insert_batch)
    assert [row["k"] for row in log.out if isinstance(row, dict)] == ["b", "c", "d"]


def test_a_window_with_a_summarizer_shows_whole_tuples_to_its_users():
    window: Any = SlidingWindow(
        Sliding(Count(2), every=Delta("x", 1)), summarizer=summarizers.sum("x")
    )
    window.insert_batch(KEYED)
    assert window.state.in_arrays
    assert list(window[None]) == [{"k": "a", "x": 2}, {"k": "a", "x": 3}]


def test_tuples_with_other_columns_stay_as_they_are():
    window: Any = TumblingWindow(Tumbling(Count(9)))
    window.insert_batch(KEYED)
    window.insert_batch(pa.record_batch({"x": [4], "k": ["c"]}))
    window.insert_batch(pa.record_batch({"y": [5.5]}))
    shown = [repr(row) for row in window[None]]
    assert shown[2:] == ["{'k': 'a', 'x': 3}", "{'x': 4, 'k': 'c'}", "{'y': 5.5}"]


@pytest.mark.parametrize("use", ["snapshot", "insert", "insert_batch"])
def test_an_operator_cannot_be_used_by_those_it_is_sending_to(use):
    running = Aggregate(Tumbling(Count(2)), n=agg.count()).open()
    given = {"snapshot": (), "insert": ({"x": 1},), "insert_batch": (KEYED,)}[use]
    running.connect(0, lambda row: getattr(running, use)(*given))
    with pytest.raises(AccessError, match="it is taking a batch"):
        running.insert_batch(KEYED)
    (window,) = running.snapshot()["windows"]
    assert window["left"] == 2
    assert window["parts"] == []


def test_punctuations_of_process_batch_go_to_those_who_listen():
    running = Aggregate(Tumbling(Count(2)), n=agg.count()).open()
    heard: list[Any] = []
    running.connect(0, heard.append, lambda: heard.append("punctuation"))
    assert running.process_batch(pa.table({"x": [1, 2, 3, 4, 5]})).num_rows == 2
    assert heard == ["punctuation"] * 2
