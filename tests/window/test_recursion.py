"""A handler that changes the window it is called by is refused, and the window stays sound."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pyarrow as pa
import pytest

from windowlib import (
    AccessError,
    ClockError,
    Count,
    Delta,
    Event,
    EventTimeWindow,
    Operator,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
    replay,
    summarizers,
    to,
)

ROWS = [{"k": "abcab"[i % 5], "x": i * 3 % 20 + i, "ts": i} for i in range(24)]
MORE = {"k": "z", "x": 500, "ts": 500}

CASES: dict[str, list[Any]] = {
    "before_insert": [Tumbling(Count(3), by="k"), Sliding(Time("5s"), every=Count(2), by="k")],
    "after_insert": [Sliding(Count(3), by="k"), Tumbling(Time("5s"), by="k")],
    "before_flush": [
        Tumbling(Count(3), by="k"),
        Tumbling(Delta("x", 4), by="k"),
        Tumbling(Time("5s"), by="k"),
        Tumbling(Count(9) | Time("5s"), by="k"),
        Tumbling(Punct(), by="k"),
    ],
    "after_flush": [Tumbling(Count(3), by="k"), Tumbling(Delta("x", 4), by="k")],
    "before_evict": [
        Sliding(Count(3), by="k"),
        Sliding(Delta("x", 4), by="k"),
        Sliding(Time("5s"), by="k"),
    ],
    "after_evict": [Sliding(Count(3), by="k"), Sliding(Delta("x", 4), every=Delta("x", 2), by="k")],
    "on_trigger": [
        Sliding(Count(3), by="k"),
        Sliding(Count(3), every=Count(2), by="k"),
        Sliding(Count(3), every=Delta("x", 2), by="k"),
        Sliding(Count(3), every=Time("3s"), by="k"),
        Sliding(Count(0), every=Count(2), by="k"),
    ],
    "on_initial_full": [Sliding(Count(3), by="k"), Sliding(Delta("x", 4), by="k")],
    "on_partitions_evicted": [
        Sliding(Count(9), by="k", forget=PartitionCount(2)),
        Tumbling(Count(9), by="k", forget=TupleCount(4)),
        Tumbling(Count(99), by="k", forget=PartitionAge("3s")),
    ],
    "select_partitions": [
        Sliding(Count(9), by="k", forget=PartitionCount(2, select="operator")),
    ],
    "on_empty_punctuation": [Tumbling(Punct(), by="k")],
}
PAIRS = [(handler, spec) for handler, specs in CASES.items() for spec in specs]
CALLS = {
    "insert": lambda window: window.insert(MORE),
    "insert_many": lambda window: window.insert_many([MORE]),
    "insert_batch": lambda window: window.insert_batch(pa.RecordBatch.from_pylist([MORE])),
    "advance": lambda window: window.advance(10_000),
    "restore": lambda window: window.restore(window.snapshot()),
}


class Recursive(WindowEvents[Any, Any]):
    """One handler that changes the window, as often as it is allowed to; all others are quiet."""

    def __init__(self, call):
        self.call, self.refused = call, []

    def tried(self, window, *args):
        try:
            self.call(window)
        except (AccessError, ClockError) as error:
            self.refused.append(str(error))
        return args[-1][:1] if args and isinstance(args[-1], tuple) else None


def recursive(handler, call):
    return type("Recursive", (Recursive,), {handler: Recursive.tried})(call)


def quiet(handler):
    def nothing(self, window, *args):
        return args[-1][:1] if args and isinstance(args[-1], tuple) else None

    return type("Quiet", (WindowEvents,), {handler: nothing})()


def made(spec, events, engine):
    kind = TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow
    return kind(spec, events=events, engine=engine)


def driven(window, way):
    """Rows, time and punctuations, whichever the window takes."""
    for at in range(0, len(ROWS), 4):
        part = ROWS[at : at + 4]
        if way == "batch":
            window.insert_batch(pa.RecordBatch.from_pylist(part))
        elif way == "many":
            window.insert_many(part)
        else:
            for row in part:
                window.insert(row)
        window.advance(at + 4)
        if window.spec.punctuated:
            window.punctuate()
            window.punctuate()
        window.state.check()
    return window


@pytest.mark.parametrize("way", ["one", "many", "batch"])
@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize(("handler", "spec"), PAIRS, ids=lambda each: str(each))
def test_a_handler_that_inserts_is_refused_and_changes_nothing(handler, spec, engine, way):
    for name, call in CALLS.items():
        events = recursive(handler, call)
        window = driven(made(spec, events, engine), way)
        assert events.refused, name
        calls = (f"{name}(", "insert(tuple)") if name == "insert_many" else (f"{name}(",)
        assert all(text.startswith(calls) for text in events.refused), events.refused[0]
        expected = driven(made(spec, quiet(handler), engine), way)
        assert expected.snapshot() == window.snapshot()
        window.insert(MORE)  # between two calls it takes tuples as ever


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize(("handler", "spec"), PAIRS, ids=lambda each: str(each))
def test_a_handler_that_does_not_catch_it_fails_as_others_do(handler, spec, engine):
    """The insert is brought to a sound end, and the next one is not refused."""

    def insert(self, window, *args):
        window.insert(MORE)

    window = made(spec, type("Fails", (WindowEvents,), {handler: insert})(), engine)
    failures = 0
    for at, row in enumerate(ROWS):
        for step in (lambda row=row: window.insert(row), lambda at=at: window.advance(at + 1)):
            try:
                step()
            except AccessError as error:
                failures += "called by a handler of this window" in str(error)
            assert not window.state.guard.held
        if spec.punctuated:
            for _ in range(2):
                try:
                    window.punctuate()
                except AccessError:
                    failures += 1
    assert failures


def test_slices_refuse_it_too():
    events = recursive("on_trigger", CALLS["insert"])
    spec = "sliding, count(6), count(3)"
    window = SlidingWindow(spec, events=events, summarizer=summarizers.count())
    window.insert_many(ROWS)
    assert len(ROWS) // 3 == len(events.refused)


@pytest.mark.parametrize(
    "handler", ["before_insert", "after_insert", "before_flush", "after_flush"]
)
def test_windows_of_event_time_refuse_it_too(handler):
    events = recursive(handler, CALLS["insert"])
    window = EventTimeWindow(Tumbling(Event("ts", 10), by="k"), events=events)
    window.insert_many(ROWS)
    window.finish()
    assert events.refused
    assert len(ROWS) == window.seen


def test_handlers_that_read_columns_are_refused():
    class Columns(WindowEvents[Any, Any]):
        content = "arrow"

        def before_flush(self, view, key):
            with pytest.raises(AccessError):
                window.insert(MORE)
            with pytest.raises(AccessError):
                view.insert(MORE)
            self.emit(key)

    window = TumblingWindow(Tumbling(Count(2), by="k"), events=Columns())
    window.insert_batch(pa.RecordBatch.from_pylist(ROWS * 20))
    assert len(window.events.emitted) == len(ROWS) * 10


def test_an_operator_may_fill_another_window():
    class Second(Operator):
        model = OperatorModel(ports_in=2, windows=[Tumbling])

        def before_flush(self, window, key):
            if window.port == 0:
                other = self.containers[1]
                assert other is not None
                other.insert({"x": sum(t["x"] for t in window[key])})
            else:
                self.emit(x=[t["x"] for t in window[key]])

    op = Second(Tumbling(Count(2)), Tumbling(Count(2)))
    rows = [to("in0", {"x": x}) for x in (1, 2, 3, 4)]
    assert [{"x": [3, 7]}] == list(replay(op, rows))


def test_an_operator_may_not_fill_the_window_it_is_called_by():
    class Own(Operator):
        model = OperatorModel(windows=[Tumbling])

        def before_flush(self, window, key):
            own = self.containers[0]
            assert own is not None
            own.insert({"x": 0})

    with pytest.raises(AccessError, match="called by a handler of this window"):
        list(replay(Own(Tumbling(Count(2))), [{"x": 1}, {"x": 2}]))


def test_a_window_without_handlers_has_no_line_for_it():
    from windowlib.window.engine.generated import source

    window = SlidingWindow[Any, Any]("sliding, count(3), count(1)")
    assert "guard" not in source(window, 1)
    window = SlidingWindow("sliding, count(3), count(1)", events=recursive("on_trigger", None))
    assert source(window, 1).count("guard.subs = busy") == 2  # a handler's call, a whole loop
    window = SlidingWindow("sliding, count(3), count(1)", events=Everything())
    assert source(window, 1).count("guard.subs = busy") == 2  # an insert with its handlers


class Everything(WindowEvents[Any, Any]):
    """Handlers for every tuple."""

    def before_insert(self, window, tuple_, key):
        pass

    def after_insert(self, window, tuple_, key):
        pass

    def on_trigger(self, window, key):
        pass


@pytest.mark.parametrize("spec", [Tumbling(Count(2), by="k"), Sliding(Delta("x", 4), by="k")])
@pytest.mark.parametrize("row", [{"x": 1}, {"k": "a", "x": None}, 7], ids=str)
def test_whatever_else_is_wrong_with_it_it_is_refused_as_a_call_by_a_handler(spec, row):
    """And leaves nothing behind, where the tuple would have been refused in any case."""
    event = "after_flush" if isinstance(spec, Tumbling) else "on_trigger"
    events, other = recursive(event, lambda window: window.insert(row)), quiet(event)
    window = driven(made(spec, events, "generated"), "one")
    assert events.refused
    assert all("called by a handler of this window" in text for text in events.refused)
    assert driven(made(spec, other, "generated"), "one").snapshot() == window.snapshot()


def test_a_hint_that_an_interrupt_has_left_does_no_harm():
    window = TumblingWindow(Tumbling(Count(3), by="k"), events=quiet("before_flush"))
    window.insert_many(ROWS[:2])
    window.state.guard.held = True
    window.insert(ROWS[0])
    assert window.size(ROWS[0]["k"]) == 2
    assert not window.state.guard.held


def test_an_insert_that_was_taken_before_a_batch_finds_its_state():
    events = quiet("before_flush")
    type(events).content = "arrow"
    window = TumblingWindow(Tumbling(Count(50), by="k"), events=events)
    window.insert(ROWS[0])
    insert = window.insert
    window.insert_batch(pa.RecordBatch.from_pylist(ROWS * 40))
    assert window.state.in_arrays
    insert(ROWS[0])
    assert window.seen == 1 + len(ROWS) * 40 + 1
    window.state.check()
