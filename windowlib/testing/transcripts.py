"""Transcripts: a whole run as text, a line for each event; and golden files for them.

>>> from windowlib.operators import Aggregate, agg
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

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from windowlib.durations import Instant, instant_text
from windowlib.errors import OperatorError
from windowlib.runtime.marks import Mark, Restart, Tagged
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import items_of, joined_inputs
from windowlib.spec.policies import Attribute
from windowlib.testing.comparison import item_text
from windowlib.testing.stepped_replay import OutputEvent, SteppedReplay

Line = tuple[str, str, str]


def transcript(
    operator: Operator,
    items: Iterable[Any],
    *,
    times: Attribute | None = None,
    start: Instant | None = None,
) -> str:
    """Run an operator, and write its input and output as text, a line for each event.

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
    lines = list(_lines(SteppedReplay(operator, times=times, start=start), items))
    clock = max(len(time) for time, _, _ in lines)
    ports = max(len(port) for _, port, _ in lines)
    body = [f"{time:>{clock}}  {port:<{ports}}  {text}".rstrip() for time, port, text in lines]
    return "\n".join([operator.name, *body]) + "\n"


def _lines(run: SteppedReplay, items: Iterable[Any]) -> Iterator[Line]:
    ordered = joined_inputs(run.operator, (items,), None)
    for item in items_of(ordered):
        out, now = run.take([item]), run.now
        # What time sends on the way there comes before what it is the time of.
        yield from (_output(event) for event in out if event.at < now)
        yield (instant_text(now), *_input(run, item))
        yield from (_output(event) for event in out if event.at >= now)
    out = run.finish()
    yield instant_text(run.now), "end", ""
    yield from map(_output, out)


def _input(run: SteppedReplay, item: Any) -> tuple[str, str]:
    row = item.row if isinstance(item, Tagged) else item
    inputs = run.operator.model.inputs
    number = run.operator.model.input(item.port, "") if isinstance(item, Tagged) else 0
    if isinstance(row, Restart):
        return "restart", ""
    if isinstance(row, Mark) and row.at is not None:
        return "time", ""
    return inputs[number].name if inputs else "in", item_text(row)


def _output(event: OutputEvent) -> Line:
    return instant_text(event.at), event.port, f"  {item_text(event.item)}"


# -- golden files: texts that were reviewed once, for comparison --

VARIABLE = "WINDOWLIB_UPDATE_GOLDEN"
UPDATE_HINT = f"Run pytest --update-golden, or set {VARIABLE}=1, look at the file, and commit it."
_update_requested = False


def update_all(asked: bool) -> None:
    """Set whether golden files are written; for test runners."""
    global _update_requested
    _update_requested = asked


def updating() -> bool:
    """Whether golden files are written, by `update_all` or the environment."""
    return _update_requested or os.environ.get(VARIABLE, "0") not in ("", "0")


def assert_golden(text: str, path: str | Path, *, update: bool | None = None) -> None:
    """Compare a text with the one that is kept in a file.

    Args:
        text: what was made now.
        path: the file; a relative path starts where the process runs.
        update: whether the file is written instead. Unless given, it is if pytest was called with
            `--update-golden`, or if the environment has WINDOWLIB_UPDATE_GOLDEN=1.
    """
    __tracebackhide__ = True
    path, text = Path(path), text if text.endswith("\n") else f"{text}\n"
    if updating() if update is None else update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    if not path.exists():
        raise AssertionError(
            f"{path}: there is no such golden file. {UPDATE_HINT} It would be:\n{text}"
        )
    kept = path.read_text(encoding="utf-8")
    if kept != text:
        diff = difflib.unified_diff(
            kept.splitlines(), text.splitlines(), f"{path} (kept)", "made now", lineterm=""
        )
        msg = "\n".join(
            [f"{path}: the text is another one now.", *diff, f"If it is right: {UPDATE_HINT}"]
        )
        raise AssertionError(msg)
