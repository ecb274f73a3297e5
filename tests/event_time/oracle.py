"""What windows of event time should give, said as plainly as can be, and slowly.

A row is (timestamp, key, value). Everything is looked up again for each row, in all rows before it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple


class Row(NamedTuple):
    ts: Any
    key: str
    value: int


class Result(NamedTuple):
    key: str
    start: Any
    end: Any
    values: tuple[int, ...]


def watermarks(rows: list[Row], slack: Any) -> list[Any]:
    """The watermark before each row, and after the last: None, or behind the greatest so far."""
    greatest = [max(row.ts for row in rows[:n]) for n in range(1, len(rows) + 1)]
    return [None, *(ts - slack for ts in greatest)]


def windows_of(ts: Any, size: Any, every: Any, offset: Any) -> list[tuple[Any, Any]]:
    """All windows that a timestamp is in: [offset + k * every, offset + k * every + size)."""
    last = (Fraction(ts) - Fraction(offset)) // Fraction(every)
    found = []
    k = last
    while offset + k * every + size > ts:
        found.append((offset + k * every, offset + k * every + size))
        k -= 1
    return found[::-1]


Taken = list[tuple[Row, list[tuple[Any, Any]]]]
"""Rows with those of their windows that were open when they came."""


def hopping(
    rows: list[Row], size: Any, every: Any, offset: Any, slack: Any
) -> tuple[list[Result], list[Row], list[int]]:
    """Results in order, late rows, and after how many rows each result comes."""
    marks = watermarks(rows, slack)
    taken: Taken = []
    late: list[Row] = []
    results: list[Result] = []
    after: list[int] = []
    for n, row in enumerate(rows):
        mark, own = marks[n], windows_of(row.ts, size, every, offset)
        opened = [window for window in own if mark is None or window[1] > mark]
        if opened:
            taken.append((row, opened))
        else:
            late.append(row)
        results += closed(taken, mark, marks[n + 1])
        after += [n + 1] * (len(results) - len(after))
    results += closed(taken, marks[-1], None)
    after += [len(rows)] * (len(results) - len(after))
    return results, late, after


def closed(taken: Taken, before: Any, mark: Any) -> list[Result]:
    """The windows that end between two watermarks, in order of ends; keys as they came."""
    known = {window for _, windows in taken for window in windows}
    found = []
    for window in sorted(known, key=lambda each: each[1]):
        if (before is not None and window[1] <= before) or (mark is not None and window[1] > mark):
            continue
        inside = [row for row, windows in taken if window in windows]
        for key in dict.fromkeys(row.key for row in inside):
            own = sorted((row for row in inside if row.key == key), key=lambda row: row.ts)
            found.append(Result(key, *window, tuple(row.value for row in own)))
    return found


def sessions(rows: list[Row], gap: Any, slack: Any) -> tuple[list[Result], list[Row]]:
    """Results in order, and late rows."""
    marks = watermarks(rows, slack)
    alive: list[list[Row]] = []  # rows of one session each, in order of arrival
    late: list[Row] = []
    results: list[Result] = []

    def end(session: list[Row]) -> Any:
        return max(row.ts for row in session) + gap

    def close_up_to(mark: Any) -> None:
        over = [each for each in alive if mark is None or end(each) < mark]
        for each in sorted(over, key=lambda each: (end(each), rows.index(each[0]))):
            alive.remove(each)
            own = sorted(each, key=lambda row: row.ts)
            found = tuple(row.value for row in own)
            results.append(Result(each[0].key, own[0].ts, end(each), found))

    for n, row in enumerate(rows):
        met = [
            each
            for each in alive
            if each[0].key == row.key
            and min(r.ts for r in each) <= row.ts + gap
            and row.ts <= end(each)
        ]
        if not met and marks[n] is not None and row.ts + gap < marks[n]:
            late.append(row)
        else:
            for each in met:
                alive.remove(each)
            joined = [r for each in met for r in each] + [row]
            alive.append(sorted(joined, key=rows.index))
        close_up_to(marks[n + 1])
    close_up_to(None)
    return results, late
