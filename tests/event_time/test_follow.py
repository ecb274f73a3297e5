"""A watermark from outside: rows do not move it, and partials folded elsewhere are taken."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import Event, Landmark, Session, Sliding, Tumbling, replay
from windowlib.columnar import handover
from windowlib.columnar.engines.event_time import EventTimeEngine, SlicePartials
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
    engine = EventTimeEngine(running.operator.containers[0], SCHEMA)
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
        patch.setattr(handover, "WORTH", worth)
        for part in (rows[:cut], rows[cut:]):
            if part and folds and name in ("tumbling", "sliding"):
                container.absorb(folded(window, part), SCHEMA)
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
    container.absorb(folded(WINDOWS["tumbling"], [row, {**row, "ts": 20}]), SCHEMA)
    assert (container.late_rows, running.closes()) == (2, 23)
