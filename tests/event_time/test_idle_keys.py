"""A watermark for each key, with idle keys that are closed and forgotten."""
# mypy: disable-error-code="misc,arg-type"

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import Event, EventTimeWindow, Session, Tumbling, Watermark, WindowEvents, parse

Rows = list[tuple[int, str]]


class Told(WindowEvents[Any, Any]):
    def __init__(self) -> None:
        self.found: list[Any] = []

    def before_flush(self, window, key):
        self.found.append((key, *window.bounds(key), [row[2] for row in window[key]]))


def run(spec, rows: Rows, restarts: bool = False) -> tuple[list[list[Any]], int]:
    """What each row closes, in order of keys, and the end; and how many rows were late."""
    events = Told()
    window = EventTimeWindow(spec, events=events)
    steps = []
    for n, (ts, key) in enumerate(rows):
        if restarts:
            state = window.snapshot()
            window = EventTimeWindow(spec, events=events)
            window.restore(state)
        window.insert((ts, key, n))
        steps.append(sorted(events.found))
        events.found.clear()
    window.finish()
    return [*steps, sorted(events.found)], window.late_rows


def expected(rows: Rows, size: int, slack: int, idle: int) -> tuple[list[list[Any]], int]:
    """The same, said plainly: a watermark is the greater of a key's own and that of idle keys."""
    open_: dict[tuple[str, int], list[tuple[int, int]]] = {}
    own: dict[str, int] = {}
    top: int | None = None
    steps, late = [], 0

    def mark(key: str) -> float:
        least = float("-inf") if top is None else top - idle
        return max(own.get(key, float("-inf")), least)

    for n, (ts, key) in enumerate(rows):
        start = ts // size * size
        if start + size <= mark(key):
            late += 1
        else:
            open_.setdefault((key, start), []).append((ts, n))
        own[key] = max(own.get(key, ts - slack), ts - slack)
        top = ts if top is None else max(ts, top)
        over = [each for each in open_ if each[1] + size <= mark(each[0])]
        steps.append(closed(open_, over, size))
    steps.append(closed(open_, list(open_), size))
    return steps, late


def closed(open_: dict[Any, Any], over: list[Any], size: int) -> list[Any]:
    """Some windows, taken out."""
    found = []
    for key, start in over:
        rows = sorted(open_.pop((key, start)))
        found.append((key, start, start + size, [n for _, n in rows]))
    return sorted(found)


@given(
    st.lists(st.tuples(st.integers(0, 90), st.sampled_from("abcd")), min_size=1, max_size=60),
    st.sampled_from([1, 10]),
    st.sampled_from([0, 5]),
    st.sampled_from([1, 12, 40]),
    st.booleans(),
)
@settings(max_examples=examples(200))
def test_idle_keys_close_as_the_rule_says(rows, size, slack, idle, restarts):
    watermark = Watermark(slack, scope="key", idle=idle)
    spec = Tumbling(Event(0, size), by=1, watermark=watermark, late="drop")
    assert expected(rows, size, slack, idle) == run(spec, rows, restarts)


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Event(0, 10), by=1, watermark=Watermark(3, scope="key", idle=20), late="drop"),
        Session(Event(0), gap=5, by=1, watermark=Watermark(3, scope="key", idle=20), late="drop"),
    ],
    ids=str,
)
def test_keys_are_forgotten(spec):
    window: Any = EventTimeWindow(spec)
    most = 0
    for n in range(20_000):
        window.insert((n // 10, n, n))
        most = max(most, len(window.snapshot()["event_time"]["lanes"]) if n % 500 == 0 else 0)
    assert 0 < most < 500
    assert len(window.keys()) < 500


def test_without_idle_a_key_is_remembered():
    spec = Tumbling(Event(0, 10), by=1, watermark=Watermark(scope="key"), late="drop")
    window: Any = EventTimeWindow(spec)
    window.insert_many([(0, "a", 0), (1000, "b", 1), (25, "a", 2), (3, "a", 3)])
    assert window.late_rows == 1
    assert list(window) == ["b", "a"]


def test_it_says_so():
    spec = Tumbling(Event(0, 10), by="k", watermark=Watermark(3, scope="key", idle=20))
    assert spec.watermark is not None
    assert "but for keys 20 behind, for each key" in spec.watermark.describe()
    assert parse(str(spec)).watermark == spec.watermark
