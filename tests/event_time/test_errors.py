"""Messages about event time: each is on the page of errors, with the call that causes it."""

import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windowlib
from windowlib import (
    Event,
    EventTimeWindow,
    SchemaError,
    Tumbling,
    WindowEvents,
    WindowlibError,
)
from windowlib.operators import Aggregate, agg

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
SECTION = PAGE.partition("\n## Event time\n")[2].partition("\n## ")[0]
SHOWN = re.compile(
    r"^>>> (.*)\nTraceback \(most recent call last\):\nwindowlib\.errors\.(\w+): (.*)$", re.M
)
CASES = SHOWN.findall(SECTION)


class Leaving(WindowEvents[Any, Any]):
    def before_evict(self, window, tuple_, key): ...


def event(spec, *rows, **options):
    """A window of event time that has taken rows."""
    window = EventTimeWindow(spec, **options)
    window.insert_many(rows)
    return window


SCOPE = {**vars(windowlib), "date": date, "Decimal": Decimal, "Leaving": Leaving, "event": event}


@pytest.mark.parametrize(("code", "kind", "message"), CASES, ids=[case[0] for case in CASES])
def test_a_mistake_about_event_time(code, kind, message):
    with pytest.raises(WindowlibError) as caught:
        eval(code, dict(SCOPE))
    assert (kind, message) == (type(caught.value).__name__, str(caught.value))


def test_there_are_messages_to_look_at():
    assert len(CASES) > 70
    assert len(CASES) == SECTION.count(">>> ")


@pytest.mark.parametrize("message", [message for _, _, message in CASES])
def test_a_message_is_one_line_that_ends_well(message):
    assert message.endswith((".", "?", "=...", "by=..."))
    assert "  " not in message
    assert " at 0x" not in message


@pytest.mark.parametrize("batches", [False, True])
def test_a_window_beyond_the_years_of_datetimes_says_so(batches):
    op = Aggregate(Tumbling(Event("ts", "1h"), late="drop"), to=agg.window_end())
    running = op.open()
    running.connect(0, print)
    rows = [{"ts": datetime.max}] * 300
    if batches:
        running.insert_batch(pa.Table.from_pylist(rows))
    else:
        running.insert_many(rows)
    with pytest.raises(SchemaError, match=r"reaches into the year 10000.* Drop or fill"):
        running.finish()


def test_a_timestamp_that_utc_does_not_have_is_refused():
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    window: Any = EventTimeWindow(Tumbling(Event(0, "1h")))
    with pytest.raises(SchemaError, match="has no place in time"):
        window.insert((early,))
