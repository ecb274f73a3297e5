"""Timelines as text: a block per partition, a column per step, rows in order of execution."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, Any

from windowlib.spec.order import Step, steps
from windowlib.spec.policies import Delta, PartitionAge, attribute_text
from windowlib.spec.specification import Sliding, Spec

if TYPE_CHECKING:
    from windowlib.tools.tracing import Event, Moment, Trace

LONGEST = 6  # numbers and ranges that a cell spells out
PROCESSING = ("trigger", "flush")
OPTIONAL = ("late", "full", "forget", "empty")
SIGNS = {"full": "*", "trigger": "|", "flush": "|", "empty": "*"}


def render(trace: Trace, width: int) -> str:
    """The whole timeline of a trace, in lines of at most `width` characters."""
    blocks = [_block(trace, key, width) for key in trace.partitions] or ["no tuples"]
    return "\n\n".join([str(trace.spec), *blocks, textwrap.fill(_legend(trace), width)])


def label(source: object) -> str:
    """A short name for an attribute or a delta policy, to head a row.

    >>> label(Delta("ts", 10)), label(len), label(lambda row: row)
    ('ts', 'len', 'value')
    """
    name = attribute_text(source.attribute if isinstance(source, Delta) else source).split(".")[-1]
    return "value" if "<" in name else name


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as text: runs joined, long lists cut in the middle.

    >>> ranges([1, 2]), ranges([1, 2, 4]), ranges([1, 2, 3, 7]), ranges(range(1, 100, 3))
    ('1-2', '1 2 4', '1-3 7', '1 4 .. 94 97')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts: list[str] = []
    for run in runs:
        joined = len(run) > 2 or (len(run) == 2 and len(runs) == 1)
        parts += [f"{run[0]}-{run[-1]}"] if joined else map(str, run)
    if len(parts) > LONGEST:
        parts[2:-2] = [".."]
    return " ".join(parts)


def seconds(time: float) -> str:
    """A time as text; a microsecond after a millisecond, when tuples get too old, is a plus.

    >>> seconds(2.5), seconds(10.000001)
    ('2.5', '10+')
    """
    micros = round(time * 1_000_000)
    after = micros % 1000 == 1
    return f"{(micros - after) / 1_000_000:.12g}{'+' * after}"


def short(value: Any, longest: int = 12) -> str:
    """A value as a few printable characters.

    >>> short(2.50), short("a\\nb"), short("a" * 99)
    ('2.5', 'a?b', 'aaaaaaaaa...')
    """
    if hasattr(value, "strftime"):
        return f"{value:%H:%M:%S}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = "".join(sign if sign.isprintable() else "?" for sign in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def contents(event: Event) -> str:
    """A processed window as text."""
    text = ranges(event.tuples) or "-"
    return f"({text})" if event.partial else text


def row_names(spec: Spec) -> list[str]:
    """The rows of a timeline, in the order of execution.

    >>> from windowlib.spec.spl import parse
    >>> row_names(parse("sliding, count(4), delta(ts, 10)"))
    ['trigger', 'evict', 'insert', 'full', 'window']
    """
    names = [step.name.lower() for step in steps(spec) if step is not Step.AGE]
    if spec.event_time:
        return ["late", *names, "window"]
    if spec.forget is not None:
        place = 0 if isinstance(spec.forget, PartitionAge) else names.index("insert") + 1
        names.insert(place, "forget")
    # What the clock or a punctuation does has columns of its own, so only habit places its row.
    if isinstance(spec, Sliding):
        names = ["evict"] * ("evict" not in names) + names + ["trigger"] * ("trigger" not in names)
    else:
        names += ["flush"] * ("flush" not in names) + ["empty"] * (spec.evict.kind == "punct")
    return [*names, "window"]


def _cell(name: str, events: list[Event]) -> str:
    if name == "window":
        return " ".join(contents(e) for e in events if e.name in PROCESSING)
    named = [event for event in events if event.name == name]
    if name in SIGNS:
        return SIGNS[name] * bool(named)
    return ranges(number for event in named for number in event.tuples)


def _head(moment: Moment, key: Any) -> str:
    if moment.kind == "tuple":
        return str(moment.number) if moment.key == key else f"[{moment.number}]"
    return {"punct": "P", "end": "E"}.get(moment.kind, "")


def _rows(trace: Trace, key: Any) -> list[tuple[str, list[str]]]:
    lane = trace.lane(key)
    rows = [("tuple", [_head(moment, key) for moment in lane])]
    own = [moment.values if moment.key == key else {} for moment in lane]
    for name in dict.fromkeys(name for values in own for name in values):
        rows.append((short(name, 24), [short(values[name]) if values else "" for values in own]))
    if trace.clocked:
        rows.append(("time", [seconds(moment.time) for moment in lane]))
    optional = row_names(trace.spec) if trace.idle(key) else OPTIONAL
    for name in row_names(trace.spec):
        cells = [_cell(name, moment.events) for moment in lane]
        if any(cells) or name not in optional:
            rows.append((name, cells))
    return rows


def _pitch(cells: list[str]) -> int:
    """How far apart the columns must be, so that no two cells of this row touch."""
    need, last = 4, -1
    for i, cell in enumerate(cells):
        if cell and last >= 0:
            before = cells[last]
            gap = 2 if " " in before + cell else 1
            room = len(before) - len(before) // 2 + len(cell) // 2 + gap
            need = max(need, ceil(room / (i - last)))
        last = i if cell else last
    return need


def _block(trace: Trace, key: Any, width: int) -> str:
    rows = _rows(trace, key)
    pitch = max(_pitch(cells) for _, cells in rows)
    half = max(len(cell) for _, cells in rows for cell in cells) // 2
    left = max(len(name) for name, _ in rows) + 2
    columns = max(1, (width - left - 2 * half - 1) // pitch + 1)
    parts = [
        "\n".join(
            _line(name, cells[begin : begin + columns], left + half, pitch) for name, cells in rows
        )
        for begin in range(0, len(rows[0][1]), columns)
    ]
    heading = trace.heading(key)
    return (f"{heading}\n" if heading else "") + "\n\n".join(parts)


def _line(name: str, cells: list[str], centre: int, pitch: int) -> str:
    line = name
    for i, cell in enumerate(cells):
        if cell:
            line = line.ljust(centre + i * pitch - len(cell) // 2) + cell
    return line


def _legend(trace: Trace) -> str:
    """Explains the notation that this timeline uses."""
    moments = trace.moments
    notes = {
        "(1-2) not full yet.": any(window.partial for window in trace.windows),
        "- an empty window.": not all(window.tuples for window in trace.windows),
        "[7] a tuple of another partition.": any(
            m.kind == "tuple" and event.key != m.key for m in moments for event in m.events
        ),
        "P a punctuation.": any(m.kind == "punct" for m in moments),
        "E the end.": any(m.kind == "end" for m in moments),
        "9+ just after second 9.": trace.clocked and any("+" in seconds(m.time) for m in moments),
    }
    used = [note for note, is_used in notes.items() if is_used]
    return " ".join(["Each column runs from top to bottom.", *used])
