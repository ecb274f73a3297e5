"""Inserts from a source that may have to wait: the loop that stops where something came out."""
# ruff: noqa: SIM300 - asserts read expected first

from collections import OrderedDict
from typing import Any

import pytest

from windowlib import (
    KEY,
    AccessError,
    Count,
    Delta,
    PartitionCount,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    WindowEvents,
    punct,
    replay,
    summarizers,
)
from windowlib.operators import Aggregate, agg
from windowlib.window.subwindow import UNSET


def is_mark(item):
    return isinstance(item, str)


SPECS = [
    Tumbling(Count(3)),
    Tumbling(Count(2), by="k"),
    Tumbling(Delta("x", 3), by="k"),
    Tumbling(Time("5s"), by="k"),
    Sliding(Count(4), every=Count(2), by="k"),
    Sliding(Count(3), every=Delta("x", 2)),
    Sliding(Delta("x", 4), every=Count(2), by="k", forget=PartitionCount(1)),
    Sliding(Count(0), every=Count(2), by="k"),
]


def rows(n=23):
    return [{"k": i * i % 3, "x": i} for i in range(n)]


class Told(WindowEvents[Any, Any]):
    def __init__(self):
        self.out = []

    def before_flush(self, window, key):
        self.out.append((key, [t["x"] for t in window[key]]))

    on_trigger = before_flush

    def after_insert(self, window, tuple_, key):
        if tuple_["x"] % 7 == 0:
            self.out.append(tuple_["x"])


def made(spec, engine="generated"):
    events = Told()
    kind = SlidingWindow if isinstance(spec, Sliding) else TumblingWindow
    window = kind(spec, events=events, engine=engine)
    if spec.by is KEY:
        window.insert({"k": 0, "x": 0}, 0)
    return window, events.out


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_it_is_insert_many_with_a_pause_after_each_tuple_that_made_something(spec):
    expected, told = made(spec)
    expected.insert_many(rows())
    window, out = made(spec)
    first, *others = rows()
    window.insert(first)
    found, pauses = [*out], []
    out.clear()
    asked = []

    def source():
        for row in others:
            assert not out, "what came out is taken before the next row is asked for"
            asked.append(row["x"])
            yield row

    for _ in window.state.insert_each(source(), out, first, is_mark):
        assert out
        found += out
        pauses.append(asked[-1])
        out.clear()
    assert told == found
    assert sorted(set(pauses)) == pauses
    assert expected.snapshot() == window.snapshot()


@pytest.mark.parametrize("by", [None, "k", lambda t: None])
def test_it_gives_back_the_first_that_is_no_tuple(by):
    window, out = made(Tumbling(Count(2), by=by))
    first = {"k": None, "x": 1}
    window.insert(first)
    tuples = [{"k": None, "x": 2}, OrderedDict(k=None, x=3), "no row", {"x": 4}]
    source = iter(tuples)
    with pytest.raises(StopIteration) as ended:
        next(window.state.insert_each(source, [], first, is_mark))
    assert "no row" == ended.value.value
    assert [{"x": 4}] == list(source)
    assert [(None, [1, 2])] == out
    assert 3 == window.seen


def test_a_batch_among_rows_with_a_key_is_none_of_them():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"k": [1, 1, 2], "x": [2, 3, 4]})
    op = Aggregate(Tumbling(Count(2), by="k"), total=agg.sum("x"))
    rows = [{"k": 1, "x": 1}, {"k": 2, "x": 1}, table, punct(), {"k": 1, "x": 5}]
    expected = [{"k": 1, "total": 3}, {"k": 2, "total": 5}, {"k": 1, "total": 8}]
    assert expected == list(replay(op, iter(rows)))


def test_a_handler_may_not_insert_and_others_may_between_two_tuples():
    class Inserting(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            window.insert({"k": 1, "x": 1})

    window = TumblingWindow(Tumbling(Count(2), by="k"), events=Inserting())
    window.insert({"k": 1, "x": 1})
    with pytest.raises(AccessError, match="called by a handler"):
        list(window.state.insert_each(iter(rows()), [], {"k": 1, "x": 1}, is_mark) or ())
    window, out = made(Tumbling(Count(2), by="k"))
    window.insert({"k": 1, "x": 1})
    next(window.state.insert_each(iter(rows()), out, {"k": 1, "x": 1}, is_mark))
    window.insert({"k": 1, "x": 1})


def test_it_says_that_the_source_has_ended():
    window, _ = made(Tumbling(Count(2)))
    window.insert({"x": 1})
    with pytest.raises(StopIteration) as ended:
        next(window.state.insert_each(iter([]), [], {"x": 1}, is_mark))
    assert ended.value.value is UNSET


def test_a_loop_that_is_given_up_leaves_the_window_as_it_is():
    window, out = made(Tumbling(Count(2), by="k"))
    window.insert({"k": 1, "x": 1})
    each = window.state.insert_each(iter(rows()), out, {"k": 1, "x": 1}, is_mark)
    next(each)
    each.close()
    before = window.snapshot()
    window.state.check()
    window.insert({"k": 9, "x": 1})
    assert before != window.snapshot()
    assert 3 == window.seen


def test_a_tuple_that_fails_is_said_and_counted_as_in_insert():
    window, out = made(Tumbling(Count(2), by="k"))
    window.insert({"k": 1, "x": 1})
    with pytest.raises(Exception, match="cannot be a partition key"):
        next(window.state.insert_each(iter([{"k": [], "x": 1}]), out, {"k": 1, "x": 1}, is_mark))
    assert 1 == window.seen


def test_keys_are_those_of_the_caller_or_none():
    window = TumblingWindow[Any, Any](evict=Count(2), summarizer=summarizers.sum("x"))
    window.insert({"x": 1}, "a")
    each = window.state.insert_each(iter([{"x": 2}, {"x": 3}]), [], {"x": 1}, is_mark)
    assert each is not None
    list(each)
    assert ["a"] == list(window.keys())  # both went in without a key, and that window was full


def test_there_is_no_such_loop_before_a_tuple_nor_in_the_reference_engine():
    window, out = made(Tumbling(Count(2)))
    assert window.state.insert_each(iter(()), out, {"x": 1}, is_mark) is None
    reference, out = made(Tumbling(Count(2)), engine="reference")
    reference.insert({"x": 1})
    assert reference.state.insert_each(iter(()), out, {"x": 1}, is_mark) is None
