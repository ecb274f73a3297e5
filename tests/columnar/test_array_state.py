"""State as arrays: going on from it is as if nothing had happened, wherever the cut was."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operators import Aggregate, Sort, agg
from tests.columnar import test_time_batches as timely
from tests.columnar.specs import operators
from tests.columnar.streams import streams
from tests.columnar.test_sort_batches import SCHEMA as SORTED
from tests.columnar.test_sort_batches import tables
from tests.columnar.timing import Restart, Side, operator
from tests.columnar.twins import Run
from windowlib import (
    Count,
    Delta,
    Graph,
    Punct,
    Sliding,
    StateVersionError,
    Time,
    Tumbling,
    TumblingWindow,
    summarizers,
)
from windowlib.columnar import functions, host, store, ticks
from windowlib.running import Running

PLAIN = (type(None), bool, int, float, str, bytes, np.ndarray, pa.Array, pa.Schema)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Small batches are worth it, and what is kept is packed often."""
    monkeypatch.setattr(host, "WORTH", 1)
    monkeypatch.setattr(host, "SLICE", 40)
    monkeypatch.setattr(functions, "PACK", 60)
    monkeypatch.setattr(store, "ROOM", 64)
    monkeypatch.setattr(ticks, "FEW", 0)


def arrays_of(running: Running) -> list[Any]:
    """The forms of the arrays in which its windows are, None for those that are not."""
    found = []
    for window in running._live:
        engine = window._host().engine if window._ahead else None
        found.append(None if engine is None else engine.form)
    return found


def plain(state: Any) -> bool:
    """Whether there is nothing in it but data that anybody can read."""
    if isinstance(state, dict):
        return all(type(name) is str for name in state) and all(map(plain, state.values()))
    if isinstance(state, list | tuple):
        return all(map(plain, state))
    return isinstance(state, PLAIN) and "object" not in str(getattr(state, "dtype", ""))


def moved(running: Running, opened: Callable[[], Running]) -> Running:
    """Another one with its state, which came as arrays where it was in arrays."""
    before = arrays_of(running)
    state = running.snapshot(arrays=True)
    assert arrays_of(running) == before  # nothing was settled
    forms = [window.get("arrays", {}).get("form") for window in state["windows"]]
    assert forms == before
    assert all(plain(window["arrays"]) for window in state["windows"] if "arrays" in window)
    fresh = opened()
    fresh.restore(pickle.loads(pickle.dumps(state, protocol=5)))
    assert arrays_of(fresh) == before
    assert fresh.due() == running.due()
    assert shown(fresh.snapshot(arrays=True)) == shown(state)
    return fresh


def shown(state: Any) -> str:
    """A state as text that is the same for the same state."""
    if isinstance(state, dict):
        return f"{{{', '.join(f'{name}: {shown(value)}' for name, value in state.items())}}}"
    if isinstance(state, list | tuple):
        return f"[{', '.join(map(shown, state))}]"
    if isinstance(state, np.ndarray):
        return f"{state.dtype} {state.tolist()}"
    return f"{state.type} {state.to_pylist()}" if isinstance(state, pa.Array) else repr(state)


class Moving(Run):
    """Goes on in another operator at every restart, or does not."""

    def __init__(self, definition: Any, forms: Counter[Any] | None) -> None:
        super().__init__(definition)
        self.forms = forms

    def step(self, what: str, given: Any, take: Callable[[Any], None]) -> None:
        if what != "restart":
            super().step(what, given, take)
        elif self.forms is not None:
            self.forms.update(arrays_of(self.running))
            self.running = moved(self.running, self._opened)


def test_going_on_from_arrays_gives_the_same_rows_and_leaves_the_same_state():
    forms: Counter[Any] = Counter()
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=250, deadline=None, suppress_health_check=checks)
    @given(st.data())
    def run(data: Any) -> None:
        host.SLICE = data.draw(st.sampled_from([7, 40, 10**6]))
        stream = data.draw(streams(others=("punctuate", "restart", "restart", "advance")))
        definition, items = data.draw(operators(stream)), stream.items()
        one, other = Moving(definition, None), Moving(definition, forms)
        way = data.draw(st.sampled_from(["insert_batch", "process"]))
        wanted, got = (each.over(items, getattr(each, way)) for each in (one, other))
        assert repr(wanted) == repr(got)

    run()
    assert {"tumbling", "sliced", "sliding"} <= set(forms)


# -- time -----------------------------------------------------------------------------------------


class Carried(Side):
    """Goes on in another operator at every restart, if it is to."""

    carried: Counter[Any] | None = None

    def do_whole(self, op: Any) -> None:
        if not isinstance(op, Restart):
            super().do_whole(op)
        elif self.carried is not None:
            self.carried.update(arrays_of(self.running))
            self.running = moved(self.running, self.opened)


@pytest.mark.parametrize(
    ("specs", "forms"),
    [(timely.tumbling(), {"tumbling", "kept"}), (timely.sliding(), {"sliding", "aging"})],
    ids=["tumbling", "sliding"],
)
def test_going_on_from_arrays_gives_the_same_at_the_same_times(specs, forms):
    carried: Counter[Any] = Counter()

    @settings(deadline=None, max_examples=150)
    @given(st.data())
    def check(data: Any) -> None:
        spec, kind = data.draw(specs), data.draw(st.sampled_from(timely.KINDS))
        made = operator(spec, kind, data.draw(st.sampled_from(["skip", "emit"])))
        one, other = Carried(made, True), Carried(made, True)
        other.carried = carried
        for op in data.draw(timely.streams(spec)):
            for cut in (False, True):
                if cut and data.draw(st.booleans()):
                    other.do(Restart())
            assert one.do(op) == other.do(op)
            assert repr(one.out) == repr(other.out)
            assert one.running.due() == other.running.due()
        assert repr(one.running.snapshot()) == repr(other.running.snapshot())

    check()
    assert forms <= set(carried)


# -- other operators ------------------------------------------------------------------------------


def fed(running: Running, out: list[Any]) -> Running:
    running.connect(0, lambda row: out.append(repr(row)), lambda: out.append("punct"))
    return running


@settings(deadline=None, max_examples=60)
@given(st.lists(tables(), min_size=2, max_size=5), st.data())
def test_a_sort_goes_on_with_the_rows_that_it_holds(batches, data):
    names = data.draw(st.lists(st.sampled_from(["i", "f", "s", "d", "t", "b"]), min_size=1))
    window = data.draw(st.sampled_from([Tumbling(Count(7), by="k"), Tumbling(Punct(), by="g")]))
    op, rows = Sort(*dict.fromkeys(names), window=window, flush_at_end=True), ([], [])
    one, other = (fed(op.open(), out) for out in rows)
    for batch in batches:
        other = moved(other, lambda: fed(op.open(), rows[1]))
        for running in (one, other):
            running.insert_batch(batch)
            if isinstance(window.evict, Punct) and data.draw(st.just(batch.num_rows % 2 == 0)):
                running.punctuate()
        assert rows[0] == rows[1]
    assert repr(one.snapshot()) == repr(other.snapshot())
    one.finish()
    other.finish()
    assert rows[0] == rows[1]
    assert batches[0].schema == SORTED


def of_keys(keys: Any, x: Any = None) -> pa.RecordBatch:
    """A row for each key."""
    x = np.arange(len(keys)) * 0.5 if x is None else x
    return pa.record_batch({"k": pa.array(keys), "x": pa.array(x)})


def test_every_operator_of_a_graph_gives_its_arrays():
    made = Graph(
        inputs="rows",
        sums=(Aggregate(Tumbling(Count(3), by="k"), s=agg.sum("x")), "rows"),
        most=(Aggregate(Sliding(Count(2), by="k"), m=agg.max("s")), "sums"),
    )
    rows: list[list[Any]] = [[], []]
    one, other = (fed(made.open(), out) for out in rows)
    for batch in (of_keys([1, 2, None] * 5), of_keys([2, 2, 1, 7] * 9)):
        for running in (one, other):
            running.insert_batch(batch)
        state = other.snapshot(arrays=True)
        assert state["state"]["sums"]["windows"][0]["arrays"]["form"] == "tumbling"
        assert "parts" in state["state"]["most"]["windows"][0]  # which gets row after row
        other = fed(made.open(), rows[1])
        other.restore(pickle.loads(pickle.dumps(state, protocol=5)))
        assert arrays_of(other.nodes["sums"]) == ["tumbling"]  # type: ignore[attr-defined]
    for running in (one, other):
        running.insert_many(of_keys([1, 2, 7] * 4).to_pylist())
    assert rows[0] == rows[1] != []
    assert repr(one.snapshot()) == repr(other.snapshot())


def test_a_window_by_itself_gives_its_arrays_with_what_its_handlers_save():
    window = TumblingWindow(Tumbling(Count(3)), summarizer=summarizers.sum("x"))
    window.insert_batch(of_keys([1, 2, 3, 4]))
    state = window.snapshot(arrays=True)
    assert state["events"] is None
    other = TumblingWindow(Tumbling(Count(3)), summarizer=summarizers.sum("x"))
    other.restore(state)
    assert other._ahead
    assert other.size() == 1
    assert other.snapshot() == window.snapshot()


def test_output_columns_are_known_after_a_restart():
    op = Aggregate(Tumbling(Count(2), by="k"), last=agg.last("x"))
    running, other = op.open(), op.open()
    running.process_batch(of_keys([1, 2, 3]))
    other.restore(running.snapshot(arrays=True))
    assert other._schemas == running._schemas
    assert other.process_batch(of_keys([3, 1])) == running.process_batch(of_keys([3, 1]))


# -- what it is -----------------------------------------------------------------------------------

MEAN = Aggregate(Tumbling(Count(100), by="k"), m=agg.mean("x"))
MEANS = Aggregate(Sliding(Count(6), every=Count(2), by="k"), m=agg.mean("x"), last=agg.last("x"))
MEDIAN = Aggregate(Tumbling(Count(9), by="k"), group_by="x", m=agg.median("x"), f=agg.first("k"))
KEPT = Aggregate(Sliding(Delta("x", 3), every=Count(2), by="k"), n=agg.count())
OPS = {"tumbling": MEAN, "sliced": MEANS, "groups": MEDIAN, "sliding": KEPT}


def opened(op: Aggregate, keys: Any = ("a", "b", None, "a")) -> Running:
    running = op.open()
    running.insert_batch(of_keys(list(keys)))
    assert running._live[0]._ahead
    return running


def test_without_arrays_the_snapshot_is_what_it_was():
    running = opened(MEAN)
    state = running.snapshot()
    assert sorted(state) == ["ended", "now", "operator", "state", "v", "windows"]
    assert "arrays" not in state["windows"][0]
    assert [part["key"] for part in state["windows"][0]["parts"]] == ["a", "b", None]


def test_a_window_that_is_not_in_arrays_gives_what_it_always_gives():
    running = MEAN.open()
    running.insert({"k": 1, "x": 2.0})
    state = running.snapshot(arrays=True)
    assert state["windows"] == running.snapshot()["windows"]
    other = MEAN.open()
    other.restore(state)
    assert repr(other.snapshot()) == repr(running.snapshot())


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_a_snapshot_stays_as_it_is_while_the_operator_goes_on(op):
    running = opened(op)
    state = running.snapshot(arrays=True)
    before = shown(state)
    running.insert_batch(of_keys(["b", "c", None, "a"] * 5, np.full(20, 1.5)))
    assert shown(state) == before
    other = op.open()
    other.restore(state)
    other.insert_batch(of_keys(["b", "c", None, "a"] * 5, np.full(20, 1.5)))
    assert shown(state) == before
    assert repr(other.snapshot()) == repr(running.snapshot())


@pytest.mark.parametrize("keys", [np.arange, lambda n: [f"key number {i}" for i in range(n)]])
def test_the_size_follows_the_partitions_that_are_there(keys):
    op = Aggregate(Tumbling(Count(2), by="k"), first=agg.first("x"), all=agg.collect("x"))
    running = op.open()
    names = list(keys(4000))
    running.insert_batch(of_keys(names))
    large = len(pickle.dumps(running.snapshot(arrays=True), protocol=5))
    running.insert_batch(of_keys(names[5:]))  # of five one row is there, of the others none
    small = len(pickle.dumps(running.snapshot(arrays=True), protocol=5))
    fresh = op.open()
    fresh.insert_batch(of_keys(names[:5]))
    assert small < len(pickle.dumps(fresh.snapshot(arrays=True), protocol=5)) + 100
    assert large > 30 * 4000


def test_sleeping_partitions_are_remembered():
    op = Aggregate(Sliding(Time("1s"), every=Count(3), by="k"), s=agg.sum("x"))
    rows: list[list[Any]] = [[], []]
    one, other = (fed(op.open(), out) for out in rows)
    for running in (one, other):
        running.insert_batch(of_keys(["a", "b", "a"]))
        running.advance(5)
    other = moved(other, lambda: fed(op.open(), rows[1]))
    assert other.snapshot(arrays=True)["windows"][0]["arrays"]["size"] == 2
    for running in (one, other):
        running.insert_batch(of_keys(["b", "b", "a"]))
    assert rows[0] == rows[1] != []
    assert [part["key"] for part in other.snapshot()["windows"][0]["parts"]] == ["b", "a"]


# -- what it is not -------------------------------------------------------------------------------


def paths(state: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each thing in a state."""
    found = [at] if at else []
    inner = list(enumerate(state)) if isinstance(state, list) else []
    for name, value in state.items() if isinstance(state, dict) else inner:
        found += paths(value, (*at, name))
    return found


def damaged(value: Any) -> list[Any]:
    """What might stand in place of a value."""
    found: list[Any] = [None if value is not None else 3, "nonsense", [], {}]
    if isinstance(value, np.ndarray):
        found += [value.astype(str), np.append(value, value), np.zeros((2, 3, 4), value.dtype)]
    if type(value) is int:
        found += [-1, value + 1, 2**70]
    return found


FREE = {"born", "last", "stamp", "taken", "seen", "left", "in_vain", "since_tick", "now", "values"}
"""Where another number is as good."""


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_damaged_arrays_are_refused_and_change_nothing(op):
    state = opened(op).snapshot(arrays=True)
    (window,) = state["windows"]
    running = opened(op, ["c", None])
    wanted = shown(running.snapshot(arrays=True))
    refused = 0
    for path in paths(window["arrays"]):
        for copy in _copies(state, path):
            try:
                running.restore(copy)
            except StateVersionError:
                refused += 1
                assert running._live[0]._ahead
                assert shown(running.snapshot(arrays=True)) == wanted
            else:
                running = opened(op, ["c", None])
                assert FREE & set(path), (path, copy)
    assert refused > 60


def _copies(state: Any, path: tuple[Any, ...]) -> list[Any]:
    """The state with something else at a place, in all ways."""
    found = []
    original = state["windows"][0]["arrays"]
    for name in path:
        original = original[name]
    for other in damaged(original):
        if other is None and "planes" in path:  # nothing but zeros
            continue
        copy = pickle.loads(pickle.dumps(state))
        holder = copy["windows"][0]["arrays"]
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = other
        found.append(copy)
    return found
