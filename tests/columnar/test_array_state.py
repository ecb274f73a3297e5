"""State as arrays: going on from it is as if nothing had happened, wherever the cut was."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.columnar import test_time_batches as timely
from tests.columnar.random_streams import streams
from tests.columnar.random_windows import operators
from tests.columnar.rows_and_batches import Run
from tests.columnar.test_sort_batches import SCHEMA as SORTED
from tests.columnar.test_sort_batches import tables
from tests.columnar.timed_pair import KINDS, Restart, Side, operator
from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    Graph,
    Punct,
    Sliding,
    SlidingWindow,
    StateVersionError,
    Time,
    Tumbling,
    TumblingWindow,
    summarizers,
)
from windowlib.columnar import handover
from windowlib.columnar.arrays import kept_rows
from windowlib.columnar.kernels import functions
from windowlib.operators import Aggregate, Sort, agg
from windowlib.runtime.running import Running

# Sketches hold values of columns, as the event engine does.
PYTHON = (date, time, timedelta, Decimal)
PLAIN = (type(None), bool, int, float, str, bytes, np.ndarray, pa.Array, pa.Schema, *PYTHON)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Small batches are worth it, and what is kept is packed often."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(handover, "SLICE_ROWS", 40)
    monkeypatch.setattr(functions, "MIN_POOL_TO_PACK", 60)
    monkeypatch.setattr(kept_rows, "ROOM", 64)
    monkeypatch.setattr(handover, "MIN_ROWS_PER_TICK", 0)


def arrays_of(running: Running) -> list[Any]:
    """The forms of the arrays in which its windows are, None for those that are not."""
    found = []
    for window in running._live:
        engine = window.state.handover().engine if window.state.in_arrays else None
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
            waiting = self.running._made  # behind a row that was refused: output, and not state
            self.running = moved(self.running, self._opened)
            self.running._made = waiting


@pytest.mark.search
def test_going_on_from_arrays_gives_the_same_rows_and_leaves_the_same_state():
    forms: Counter[Any] = Counter()
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=examples(250), suppress_health_check=checks)
    @given(st.data())
    def run(data: Any) -> None:
        handover.SLICE_ROWS = data.draw(st.sampled_from([7, 40, 10**6]))
        stream = data.draw(streams(others=("punctuate", "restart", "restart", "advance")))
        definition, items = data.draw(operators(stream)), stream.items()
        one, other = Moving(definition, None), Moving(definition, forms)
        way = data.draw(st.sampled_from(["insert_batch", "process"]))
        wanted, got = (each.over(items, getattr(each, way)) for each in (one, other))
        assert repr(wanted) == repr(got)

    run()
    assert any(forms)  # which ones come up is a matter of luck


@pytest.mark.parametrize(
    ("form", "window"),
    [
        ("tumbling", Tumbling(Count(500), by="k")),
        ("sliced", Sliding(Count(10), every=Count(5), by="k")),
        ("sliding", Sliding(Delta("i", 3), every=Count(2), by="k")),
        ("aging", Sliding(Time("5s"), every=Count(2), by="k")),
    ],
)
def test_each_form_of_arrays_goes_on(form, window):
    op = Aggregate(window, s=agg.sum("i"))
    batch = pa.record_batch({"k": [1, 2, 2] * 400, "i": range(1200)})
    one, other = op.open(), op.open()
    assert one.process_batch(batch) == other.process_batch(batch)
    assert [form] == arrays_of(other)
    other = moved(other, op.open)
    assert one.process_batch(batch) == other.process_batch(batch)
    assert repr(one.snapshot()) == repr(other.snapshot())


SIZES = st.sampled_from([1, 2, 3, 4, 6, 10]).map(Count)
BYS = st.sampled_from([None, "k", ("k", "g")])
VALUES = st.sampled_from([None, 0.0, -0.0, 0.1, -7.25, 1e16, -1e16, float("nan"), float("inf")])
WORDS = st.sampled_from([None, "", "a", "b", "a text that is longer than a few words of it"])
PARTIAL = {
    "n": agg.count(),
    "sum": agg.sum("x"),
    "mean": agg.mean("x"),
    "most": agg.max("x"),
    "least": agg.min("i"),
    "first": agg.first("w"),
    "last": agg.last("w"),
    "best": agg.arg_max("w", by="i"),
    "spread": agg.var("i"),
}
ALL_VALUES = {
    "median": agg.median("i"),
    "list": agg.collect("w"),
    "words": agg.collect_distinct("w"),
    "often": agg.mode("w"),
}


@st.composite
def batches_of_rows(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Batches with keys of text and numbers, null among them, and values of all sorts."""
    kinds: dict[str, Any] = {
        "k": (WORDS, pa.string()),
        "g": (st.integers(0, 2) | st.none(), pa.int16()),
    }
    kinds |= {"x": (VALUES, pa.float64()), "i": (st.integers(-3, 3) | st.none(), pa.int64())}
    kinds |= {"w": (WORDS, pa.large_string())}
    found = []
    for size in draw(st.lists(st.integers(1, 25), min_size=2, max_size=5)):
        columns = {
            name: pa.array(draw(st.lists(of, min_size=size, max_size=size)), kind)
            for name, (of, kind) in kinds.items()
        }
        found.append(pa.record_batch(columns))
    return found


@st.composite
def aggregates(draw: st.DrawFn, form: str) -> Aggregate:
    """An Aggregate whose state is slices, or that of groups, or all values."""
    if form == "sliced":
        names = draw(st.lists(st.sampled_from(sorted(PARTIAL)), min_size=1, unique=True))
        size = draw(st.sampled_from([4, 6, 9]))
        spec = Sliding(Count(size), every=draw(st.sampled_from([2, 3, 4]).map(Count)), by=draw(BYS))
        return Aggregate(spec, {name: PARTIAL[name] for name in names}, partial="emit")
    functions_ = PARTIAL | ALL_VALUES
    names = draw(st.lists(st.sampled_from(sorted(functions_)), min_size=1, unique=True))
    group = draw(st.sampled_from(["g", ("g", "w")])) if form == "groups" else None
    window = Tumbling(draw(SIZES), by=draw(st.sampled_from([None, "k"])))
    return Aggregate(window, {name: functions_[name] for name in names}, group_by=group)


@pytest.mark.search
@pytest.mark.parametrize("form", ["sliced", "groups", "values"])
def test_slices_groups_and_values_go_on_where_they_were(form):
    forms: Counter[Any] = Counter()

    @settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def run(data: Any) -> None:
        definition, given_ = data.draw(aggregates(form)), data.draw(batches_of_rows())
        items = [step for batch in given_ for step in (("batch", batch), ("restart", None))]
        items.append(("insert", given_[0]))
        one, other = Moving(definition, None), Moving(definition, forms)
        wanted, got = (each.over(items, each.insert_batch) for each in (one, other))
        assert repr(wanted) == repr(got)

    run()
    assert forms["sliced" if form == "sliced" else "tumbling"] > examples(80) // 2


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


@pytest.mark.search
@pytest.mark.parametrize(
    ("specs", "forms"),
    [(timely.tumbling(), {"tumbling", "kept"}), (timely.sliding(), {"sliding", "aging"})],
    ids=["tumbling", "sliding"],
)
def test_going_on_from_arrays_gives_the_same_at_the_same_times(specs, forms):
    carried: Counter[Any] = Counter()

    @settings(max_examples=examples(150))
    @given(st.data())
    def check(data: Any) -> None:
        spec, kind = data.draw(specs), data.draw(st.sampled_from(KINDS))
        made = operator(spec, kind, data.draw(st.sampled_from(["skip", "emit"])))
        one, other = Carried(made, True), Carried(made, True)
        other.carried = carried
        for op in data.draw(timely.streams(spec)):
            if data.draw(st.booleans()):
                other.do(Restart())
            assert one.do(op) == other.do(op)
            assert repr(one.out) == repr(other.out)
            assert one.running.due() == other.running.due()
        assert repr(one.running.snapshot()) == repr(other.running.snapshot())

    check()
    assert forms & set(carried)


# -- other operators ------------------------------------------------------------------------------


def fed(running: Running, out: list[Any]) -> Running:
    running.connect(0, lambda row: out.append(repr(row)), lambda: out.append("punct"))
    return running


@settings(max_examples=examples(60))
@given(st.lists(tables(), min_size=2, max_size=5), st.data())
def test_a_sort_goes_on_with_the_rows_that_it_holds(batches, data):
    names = data.draw(st.lists(st.sampled_from(["i", "f", "s", "d", "t", "b"]), min_size=1))
    window = data.draw(st.sampled_from([Tumbling(Count(7), by="k"), Tumbling(Punct(), by="g")]))
    op = Sort(*dict.fromkeys(names), window=window, flush_at_end=True)
    rows: list[list[Any]] = [[], []]
    one, other = (fed(op.open(), out) for out in rows)
    for batch in batches:
        other = moved(other, lambda: fed(op.open(), rows[1]))
        for running in (one, other):
            running.insert_batch(batch)
            if isinstance(window.evict, Punct) and batch.num_rows % 2 == 0:
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
    window: Any = TumblingWindow(Tumbling(Count(3)), summarizer=summarizers.sum("x"))
    window.insert_batch(of_keys([1, 2, 3, 4]))
    state = window.snapshot(arrays=True)
    assert state["events"] is None
    other: Any = TumblingWindow(Tumbling(Count(3)), summarizer=summarizers.sum("x"))
    other.restore(state)
    assert other._in_arrays
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
    assert running._live[0]._in_arrays
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
    assert large > 28 * 4000


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
                assert running._live[0]._in_arrays
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


def test_arrays_of_another_format_are_refused():
    state = opened(MEAN).snapshot(arrays=True)
    for at in (state, state["windows"][0]["arrays"]):
        name = "arrays" if at is state else "v"
        at[name] += 1
        with pytest.raises(StateVersionError, match="the arrays of the snapshot have format 2, "):
            MEAN.open().restore(state)
        at[name] -= 1
    MEAN.open().restore(state)


def test_arrays_that_are_none_are_no_snapshot_of_a_window():
    state = opened(MEAN).snapshot(arrays=True)
    state["windows"][0]["arrays"] = 3
    with pytest.raises(StateVersionError, match="this is not a snapshot of a window"):
        MEAN.open().restore(state)


def test_arrays_of_another_operator_are_refused():
    state = opened(MEAN).snapshot(arrays=True)
    with pytest.raises(StateVersionError, match="the snapshot was written with"):
        Aggregate(Tumbling(Count(99), by="k"), m=agg.mean("x")).open().restore(state)


def test_a_clock_that_shows_no_time_is_refused():
    state = opened(MEAN).snapshot(arrays=True)
    state["windows"][0]["tick"] = "soon"
    with pytest.raises(StateVersionError, match="the arrays are damaged: the clock"):
        MEAN.open().restore(state)


def test_a_window_that_has_no_arrays_says_why_it_does_not_take_them():
    spec = Sliding(Count(2), by="k")
    window: Any = SlidingWindow(spec)
    window.insert_batch(of_keys([1, 2, 1]))
    assert window.state.in_arrays
    other: Any = SlidingWindow(spec, engine="reference")
    other.insert({"k": 5, "x": 0.5})
    message = r"arrays are not for this window \(engine=.reference. takes tuples one by one\)"
    with pytest.raises(StateVersionError, match=message):
        other.restore(window.snapshot(arrays=True))
    assert list(other.keys()) == [5]
