"""Messages about event time: each is on the page of errors, with the call that causes it."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import windowlib
from windowlib import EventTimeWindow, WindowEvents, WindowlibError

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
