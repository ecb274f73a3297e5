"""The generated engine is the reference engine, only faster.

Random specifications, streams and subsets of handlers go through a reference window, a generated
one, and a generated one that gets its tuples in batches. All three must agree on every event, on
the whole storage at every event, and on everything a reader can ask for after every input.
"""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.event_recorder import (
    Advance,
    Insert,
    Many,
    Row,
    apply,
    build,
    id_of,
    key_text,
    recorder,
    state,
)
from tests.helpers.examples import examples
from tests.helpers.window_strategies import (
    SELECTORS,
    age_of,
    forms,
    handlers,
    keys_with_nan,
    row,
    selectors,
    specs,
    streams,
)
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    SlidingWindow,
    Summarizer,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    summarizers,
)
from windowlib.window.engine.generated import source
from windowlib.window.events import HANDLERS

FIRST = SELECTORS["first"]
thorough = settings(max_examples=examples(400))
quick = settings(max_examples=examples(100))


def agree(spec, ops, names=HANDLERS, select=FIRST, **more):
    """Play the stream in three windows and compare them after every input."""
    windows, logs = [], []
    for engine in ("reference", "generated", "generated"):
        events = recorder(names, select=select, deep=True)
        windows.append(build(spec, events=events, engine=engine, **more))
        logs.append(events.log)
    for op in ops:
        for i, (window, log) in enumerate(zip(windows, logs, strict=True)):
            apply(window, op, log, one_by_one=i < 2)
            window.state.check()
        reference, generated, batched = windows
        assert logs[0] == logs[1], spec
        assert logs[0] == logs[2], spec
        assert state(reference) == state(generated), spec
        assert state(reference) == state(batched), spec
        assert ends(reference) == ends(generated) == ends(batched), spec


def ends(window):
    held = [key for key in window if window.size(key)]
    return [(id_of(window.oldest(key)), id_of(window.newest(key))) for key in held]


# -- agreement ----------------------------------------------------------------------------------


@thorough
@given(specs(), streams(), handlers, selectors)
def test_generated_equals_reference_event_for_event(spec, ops, names, select):
    agree(spec, ops, names, select)


@quick
@given(specs(kinds=("tumbling",)), streams(), handlers, selectors)
def test_generated_equals_reference_in_tumbling_windows(spec, ops, names, select):
    agree(spec, ops, names, select)


@quick
@given(specs(kinds=("sliding",)), streams(), handlers, selectors)
def test_generated_equals_reference_in_sliding_windows(spec, ops, names, select):
    agree(spec, ops, names, select)


ROWS = [Insert(Row(i, age, age / 2, "a"), "a") for i, age in enumerate((10, 3, 8, 9, 14, 2, 20))]


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Count(2)),
        Tumbling(Delta("age", 5), by=KEY, forget=TupleCount(3)),
        Sliding(Count(2)),
        Sliding(Count(2), every=Count(2), by=KEY, forget=PartitionCount(1)),
        Sliding(Delta("age", 5)),
        Sliding(Delta("age", 5), every=Delta("age", 2), by=KEY),
    ],
    ids=str,
)
def test_a_single_handler_sees_what_it_sees_among_all_the_others(spec, handler):
    agree(spec, ROWS, [handler])
    alone, among = recorder([handler], select=FIRST), recorder(select=FIRST)
    for events in (alone, among):
        window = build(spec, events=events)
        for op in ROWS:
            apply(window, op, events.log)
    assert [entry for entry in among.log if entry.event == handler] == alone.log


@quick
@given(specs(), streams(mixed=True), handlers)
def test_rows_of_different_forms_may_be_mixed(spec, ops, names):
    agree(spec, ops, names)


@pytest.mark.parametrize("first", ["named", "dict", "dataclass"])
@pytest.mark.parametrize("then", ["named", "dict", "dataclass"])
def test_a_later_row_may_have_another_form_than_the_first(first, then):
    rows = [row(form, i, 4 * i, 0.0, "a", 0) for i, form in enumerate([first, then, then, first])]
    ops = [Insert(r, "a") for r in rows]
    for spec in (
        Tumbling(Delta("age", 5)),
        Sliding(Delta("age", 5), by="k"),
        Sliding(Count(2), every=Delta("age", 5), by=("k", "g")),
    ):
        agree(spec, ops)


@quick
@given(specs(by=st.just(KEY)), streams(keys=keys_with_nan), handlers, selectors)
def test_all_nan_keys_are_one_partition_in_both_engines(spec, ops, names, select):
    agree(spec, ops, names, select)


@quick
@given(specs(by=st.sampled_from([None, "k"]), infinite=True), streams(), handlers)
def test_infinite_thresholds_agree(spec, ops, names):
    agree(spec, ops, names)


@quick
@given(specs(by=st.just("k")), streams(), st.sampled_from([list, tuple, iter]))
def test_a_batch_may_be_any_iterable(spec, ops, kind):
    events, batched = recorder(), recorder()
    one, many = build(spec, events=events), build(spec, events=batched)
    for op in ops:
        if isinstance(op, Many):
            rows = [insert.row for insert in op.inserts]
            for r in rows:
                one.insert(r)
            many.insert_many(kind(rows))
        else:
            apply(one, op, events.log)
            apply(many, op, batched.log)
    assert events.log == batched.log
    assert state(one) == state(many)


def test_a_batch_of_rows_and_keys_may_be_two_generators():
    window = build(Tumbling(Count(9), by=KEY))
    window.insert_many((i for i in range(4)), (key for key in "abab"))
    window.insert_many((i for i in range(4)), (key for key in "bbbb"))
    assert {"a": [0, 2], "b": [1, 3, 0, 1, 2, 3]} == {key: list(window[key]) for key in window}


def test_an_empty_batch_changes_nothing():
    for engine in ("reference", "generated"):
        window = build(Sliding(Count(2)), engine=engine)
        window.insert_many([])
        window.insert_many(iter(()))
        window.insert(1)
        window.insert_many([])
        assert 1 == window.seen == len(window)


@quick
@given(specs(by=st.none()), streams(form=forms), st.booleans())
@example(Tumbling(Count(2)), [Insert(Row(1)), Insert(Row(2))], True)
def test_a_window_made_from_policies_equals_one_made_from_its_specification(spec, ops, keyed):
    """Without `by`, policies make a window that takes keys; without keys it has one partition."""
    events, other = recorder(deep=True), recorder(deep=True)
    window = build(spec, events=events)
    from_policies: Any = (
        SlidingWindow(evict=spec.evict, trigger=spec.every, events=other)
        if isinstance(spec, Sliding)
        else TumblingWindow(evict=spec.evict, events=other)
    )
    for op in ops:
        apply(window, op, events.log)
        if isinstance(op, Insert) and keyed:
            from_policies.insert(op.row, key=None)
        elif isinstance(op, Insert):
            from_policies.insert(op.row)
        elif isinstance(op, Many):
            from_policies.insert_many([insert.row for insert in op.inserts])
        else:
            apply(from_policies, op, other.log)
    assert events.log == other.log
    assert state(window) == state(from_policies)


# -- summarizers --------------------------------------------------------------------------------


class Listed(Summarizer[Any]):
    """Own state that tells every call it got."""

    def open(self, key):
        self.calls = [f"open {key_text(key)}"]

    def insert(self, tuple_):
        self.calls.append(f"insert {id_of(tuple_)}")

    def close(self):
        self.calls.append("close")

    def value(self):
        return tuple(self.calls)


READY = {
    "n": summarizers.count(),
    "sum": summarizers.sum("age"),
    "mean": summarizers.mean("ts"),
    "low": summarizers.min("ts"),
    "high": summarizers.max(age_of),
    "spread": summarizers.variance("age"),
}


class Summaries:
    """Makes recorders whose contents are the summary of the event's partition."""

    def __init__(self, names):
        self.base = recorder(names, select=FIRST)

    def made(self):
        log = []

        def write(self, window, event, key, row="no tuple"):
            summary = window.summary(key)
            held = None if summary is None else summary.value()
            log.append((event, key, held, window.size(key), row))

        made = type("Summarising", (type(self.base),), {"write": write})()
        made.log, made.select = log, FIRST
        return made


@quick
@given(
    specs(kinds=("tumbling",)),
    streams(form=st.just("named")),
    handlers,
    st.sampled_from([Listed, READY, READY["sum"]]),
)
def test_tumbling_summaries_are_the_same_in_both_engines(spec, ops, names, summarizer):
    summaries = Summaries(names)
    windows = []
    for engine in ("reference", "generated"):
        events = summaries.made()
        windows.append(build(spec, events=events, engine=engine, summarizer=summarizer))
    for op in ops:
        for window in windows:
            apply(window, op, window.events.log)
            window.state.check()
        reference, generated = windows
        assert reference.events.log == generated.events.log
        assert state(reference) == state(generated)


# -- what the generated text contains -----------------------------------------------------------

ALL_KINDS: list[Tumbling | Sliding] = [
    *(Tumbling(evict) for evict in (Count(2), Delta("age", 5), Time("1s"), Punct())),
    Tumbling(Count(2) | Time("1s")),
    *(
        Sliding(evict, every=trigger)
        for evict in (Count(2), Delta("age", 5), Time("1s"))
        for trigger in (Count(2), Delta("ts", 1.5), Time("2s"))
    ),
]
KEYED = [
    Sliding(spec.evict, every=spec.every, by="k", forget=forget)
    if isinstance(spec, Sliding)
    else Tumbling(spec.evict, by="k", forget=forget)
    for spec in ALL_KINDS
    for forget in (PartitionCount(2), TupleCount(5), PartitionAge("1s"))
]
IN_THE_INSERT = [
    *("before_insert", "after_insert", "before_evict", "after_evict"),
    *("on_trigger", "on_initial_full"),
]


def text(spec, names, sample=Row(1)):  # noqa: B008 - a NamedTuple is immutable
    return source(build(spec, events=recorder(names)), sample)


def code(spec, names):
    """The text without `def` lines, whose names are no calls."""
    return "\n".join(line for line in text(spec, names).splitlines() if "def " not in line)


@pytest.mark.parametrize("spec", [*ALL_KINDS, *KEYED], ids=str)
def test_no_line_mentions_a_handler_that_is_not_overridden(spec):
    bare = code(spec, [])
    assert [] == [name for name in HANDLERS if name in bare]
    assert "(w, " not in bare.replace("evict_unordered(w, ", "").replace("any_where(w, ", "")
    for name in HANDLERS:
        without = code(spec, set(HANDLERS) - {name})
        assert name not in without
        assert [] == [other for other in set(HANDLERS) - {name} if other in code(spec, [name])]


@pytest.mark.parametrize("spec", [s for s in ALL_KINDS if isinstance(s, Sliding)], ids=str)
def test_an_overridden_handler_of_an_insert_is_called_by_the_text(spec):
    clocked = {"before_evict", "after_evict"} if isinstance(spec.evict, Time) else set()
    clocked |= {"on_trigger"} if isinstance(spec.every, Time) else set()
    for name in IN_THE_INSERT:
        assert (name not in clocked) == (f"{name}(w, " in code(spec, [name])), name


@pytest.mark.parametrize("spec", [*ALL_KINDS, *KEYED], ids=str)
def test_no_insert_has_a_line_for_the_lock_which_is_the_clocks(spec):
    assert "lock" not in text(spec, HANDLERS)


@pytest.mark.parametrize("spec", ALL_KINDS, ids=str)
def test_no_line_is_about_partition_eviction_without_such_a_policy(spec):
    assert "pe." not in text(spec, HANDLERS)
    assert "lru" not in text(spec, HANDLERS)


@pytest.mark.parametrize("spec", KEYED, ids=str)
def test_partition_eviction_has_its_lines(spec):
    assert "pe.total += 1" in text(spec, [])
    assert "lru[key] = s" in text(spec, [])


def test_a_window_that_takes_no_tuple_does_nothing_with_it():
    lines = code(Tumbling(Count(0)), HANDLERS)
    assert "append" not in lines
    assert "subs" not in lines


def test_the_text_follows_the_order_of_the_table():
    lines = code(Sliding(Delta("age", 5), every=Delta("age", 2)), HANDLERS)
    order = [*("on_initial_full", "on_trigger", "before_evict", "after_evict")]
    order += ["before_insert", "d.append(t)", "after_insert"]
    once = lines.partition("for t in tuples")[0]
    places = [once.index(name) for name in order]
    assert sorted(places) == places


@pytest.mark.parametrize(
    ("sample", "expected"),
    [(Row(1), "a = t.age"), ({"age": 1}, "a = t['age']")],
    ids=["attribute", "mapping"],
)
def test_the_first_tuple_decides_how_attributes_are_read(sample, expected):
    assert expected in text(Tumbling(Delta("age", 5)), [], sample)


def test_a_window_keeps_agreeing_while_time_stands_still():
    ops = [Advance(0), ROWS[0], Advance(0), ROWS[1], Advance(1), Advance(0), ROWS[2]]
    for spec in ALL_KINDS:
        agree(spec, ops)


@pytest.mark.parametrize("name", ["\0", "a\0b", "a\nb", "a'b", "{x}", "\\"])
@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_an_attribute_may_have_any_characters(name, engine):
    spec = Sliding(Delta(name, 5), every=Delta(name, 2), by=f"{name}k")
    window: Any = SlidingWindow(spec, engine=engine)
    window.insert_many([{name: n, f"{name}k": 1} for n in range(9)])
    assert [row[name] for row in window[1]] == [3, 4, 5, 6, 7, 8]
