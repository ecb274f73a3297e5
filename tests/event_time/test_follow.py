"""A watermark from outside: rows do not move it, and partials folded elsewhere are taken."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import Event, Landmark, Session, Sliding, Tumbling, replay
from windowlib.columnar import handover
from windowlib.columnar.engines.event_sessions import event_time_engine
from windowlib.columnar.engines.event_time import SlicePartials
from windowlib.operators import Aggregate, agg

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()})
OUT: dict[str, Any] = {"start": agg.window_start(), "rows": agg.count(), "sum": agg.sum("n")}
WINDOWS: dict[str, Any] = {
    "tumbling": Tumbling(Event("ts", 10, offset=3), by="k"),
    "sliding": Sliding(Event("ts", 10), every=Event("ts", 5), by="k"),
    "session": Session(Event("ts"), gap=6, by="k"),
    "landmark": Landmark(Event("ts", 10), since=0, by="k"),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {"ts": st.integers(0, 99), "k": st.sampled_from("abc"), "n": st.integers(0, 9)}
    ),
    min_size=1,
    max_size=30,
)


def opened(window):
    """A running operator that is told the watermark, and what it makes."""
    running = Aggregate(window, OUT).open()
    running.follow()
    made: list[Any] = []
    running.connect(0, made.append)
    return running, made


def folded(window, rows):
    """The partials of rows, from an engine elsewhere."""
    running, _ = opened(window)
    engine = event_time_engine(running.windows[0], SCHEMA)
    engine.sends = True
    engine.insert(pa.RecordBatch.from_pylist(rows, SCHEMA))
    engine.commit()
    return SlicePartials(*tuple(engine.partials()))


@pytest.mark.parametrize("worth", [1, 1000], ids=["arrays", "rows"])
@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=examples(30), deadline=None)
@given(rows=ROWS, cut=st.integers(0, 30), folds=st.booleans())
def test_windows_close_when_they_are_told_to(name, worth, rows, cut, folds):
    window = WINDOWS[name]
    running, made = opened(window)
    container: Any = running.operator.containers[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "MIN_ROWS", worth)
        for part in (rows[:cut], rows[cut:]):
            if part and folds:
                tasks = [task for task in (part[::2], part[1::2]) if task]
                container.absorb([folded(window, task) for task in tasks], SCHEMA)
            elif part:
                running.insert_batch(pa.RecordBatch.from_pylist(part, SCHEMA))
        assert made == []  # whatever the rows
        while (at := running.closes()) is not None:
            before = len(made)
            running.reach(at)
            if len(made) == before:
                running.reach(at + 1)  # a session closes behind its end
        assert container.late_rows == 0
    ordered = sorted(rows, key=lambda row: row["ts"])
    assert sorted(map(repr, made)) == sorted(map(repr, replay(Aggregate(window, OUT), ordered)))


def test_rows_behind_the_watermark_are_late():
    running, made = opened(WINDOWS["tumbling"])
    container: Any = running.operator.containers[0]
    row = {"ts": 5, "k": "a", "n": 1}
    running.insert(row)
    running.reach(13)
    running.insert(row)
    assert [each["rows"] for each in made] == [1]
    assert container.late_rows == 1
    container.absorb([folded(WINDOWS["tumbling"], [row, {**row, "ts": 20}])], SCHEMA)
    assert (container.late_rows, running.closes()) == (2, 23)


def test_parts_of_sessions_are_late_if_no_open_session_joins_them():
    window = WINDOWS["session"]
    running, made = opened(window)
    container: Any = running.operator.containers[0]
    running.insert({"ts": 5, "k": "a", "n": 1})
    running.reach(20)
    assert [row["rows"] for row in made] == [1]
    # 6 is late; 10 and 13 are in one session with 16, which reaches 22, whichever task has them.
    tasks = [(6, 10), (16,), (13,)]
    parts = [folded(window, [{"ts": ts, "k": "a", "n": 1} for ts in task]) for task in tasks]
    container.absorb([folded(window, [{"ts": 2, "k": "b", "n": 1}]), *parts], SCHEMA)
    assert (container.late_rows, running.closes()) == (1, 22)
    container.absorb([folded(window, [{"ts": 4, "k": "a", "n": 1}])], SCHEMA)
    assert container.late_rows == 1  # it touches that session
    running.reach(23)
    assert made[1:] == [{"k": "a", "start": 4, "rows": 5, "sum": 5}]


def test_rows_before_a_landmark_are_late():
    window = WINDOWS["landmark"]
    running, made = opened(window)
    container: Any = running.operator.containers[0]
    rows = [{"ts": ts, "k": "a", "n": 1} for ts in (-1, 5, -30, 7)]
    container.absorb([folded(window, rows[1:])], SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "MIN_ROWS", 1)
        running.insert_batch(pa.RecordBatch.from_pylist(rows, SCHEMA))
    running.reach(10)
    assert [row["rows"] for row in made] == [4]
    assert container.late_rows == 3


@pytest.mark.parametrize("name", WINDOWS)
def test_sums_that_leave_64_bits_are_taken_one_by_one(name):
    window = WINDOWS[name]
    rows = [{"ts": ts, "k": "a", "n": 2**61} for ts in (1, 2, 1, 2, 3)]
    out: dict[str, Any] = {"rows": agg.count(), "mean": agg.mean("n")}
    running = Aggregate(window, out).open()
    running.follow()
    made: list[Any] = []
    running.connect(0, made.append)
    container: Any = running.operator.containers[0]

    def part(row):
        other = Aggregate(window, out).open()
        other.follow()
        engine = event_time_engine(other.windows[0], SCHEMA)  # type: ignore[arg-type]
        engine.insert(pa.RecordBatch.from_pylist([row], SCHEMA))
        engine.commit()
        return SlicePartials(*tuple(engine.partials()))

    for row in rows:  # the sums are soon too large for arrays
        container.absorb([part(row)], SCHEMA)
    running.finish()
    assert container.late_rows == 0
    want = {tuple(row.items()) for row in replay(Aggregate(window, out), rows)}
    assert {tuple(row.items()) for row in made} == want
