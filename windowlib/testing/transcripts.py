"""Transcripts: a whole run as text, one line an event, to be read and to be kept.

>>> from operators import Aggregate, agg
>>> from windowlib import Count, Tumbling
>>> total = Aggregate(Tumbling(Count(2)), total=agg.sum("x"))
>>> print(transcript(total, [{"x": 1}, {"x": 2}, {"x": 5}]), end="")
Aggregate
0  in   {'x': 1}
0  in   {'x': 2}
0  out    {'total': 3}
0  out    punct()
0  in   {'x': 5}
0  end
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from windowlib.durations import Instant, instant_text
from windowlib.errors import OperatorError
from windowlib.marks import Mark, Restart, Tagged
from windowlib.operator import Operator
from windowlib.policies import Attribute
from windowlib.replay import _chunks, _joined
from windowlib.testing.comparing import shown
from windowlib.testing.driving import Drive, Event

Line = tuple[str, str, str]


def transcript(
    operator: Operator,
    items: Iterable[Any],
    *,
    times: Attribute | None = None,
    start: Instant | None = None,
) -> str:
    """Run an operator, and write down what goes in and comes out: a line an event.

    Each line has the time in seconds, the port, and the row. What comes out stands further to the
    right, below what made it; what time sends stands at its own time, before the line that says how
    far the clock went. Restarts and the end of the input have lines of their own.

    Args:
        operator: an operator, or a `Graph`.
        items: rows, with `punct()`, `advance(...)`, `restart()` and `to(port, row)` among them.
        times: the column that says when a row arrives.
        start: where the clock starts, as for `replay`.
    """
    if not isinstance(operator, Operator):
        msg = f"transcript({operator!r}, ...): not an operator. Pass an Operator object."
        raise OperatorError(msg)
    lines = list(_lines(Drive(operator, times=times, start=start), items))
    clock = max(len(time) for time, _, _ in lines)
    ports = max(len(port) for _, port, _ in lines)
    body = [f"{time:>{clock}}  {port:<{ports}}  {text}".rstrip() for time, port, text in lines]
    return "\n".join([operator.name, *body]) + "\n"


def _lines(drive: Drive, items: Iterable[Any]) -> Iterator[Line]:
    ordered = _joined(drive.operator, (items,), None)
    for item in (item for chunk in _chunks(ordered) for item in chunk):
        out, now = drive.take([item]), drive.now
        # What time sends on the way there comes before what it is the time of.
        yield from (_output(event) for event in out if event.at < now)
        yield (instant_text(now), *_input(drive, item))
        yield from (_output(event) for event in out if event.at >= now)
    out = drive.finish()
    yield instant_text(drive.now), "end", ""
    yield from map(_output, out)


def _input(drive: Drive, item: Any) -> tuple[str, str]:
    row = item.row if isinstance(item, Tagged) else item
    inputs = drive.operator.model.inputs
    number = drive.operator.model.input(item.port, "") if isinstance(item, Tagged) else 0
    if isinstance(row, Restart):
        return "restart", ""
    if isinstance(row, Mark) and row.at is not None:
        return "time", ""
    return inputs[number].name if inputs else "in", shown(row)


def _output(event: Event) -> Line:
    return instant_text(event.at), event.port, f"  {shown(event.item)}"
