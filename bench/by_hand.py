"""Aggregate, Join and Sort as one would write them without a library, for one workload each.

No other kind of join or window, no check, no snapshot: the least that these results cost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heapreplace
from typing import Any

Row = dict[str, Any]
Send = Callable[[Row], None]


def join(n: int, send: Send) -> Callable[[Row, int], None]:
    """Equality on `id` between the last n rows of each side: a dict of deques each."""
    windows: tuple[deque[Row], deque[Row]] = deque(), deque()
    indexes: tuple[dict[int, deque[Row]], dict[int, deque[Row]]] = {}, {}

    def insert(row: Row, port: int) -> None:
        key = row["id"]
        for match in indexes[1 - port].get(key, ()):
            send({**match, **row} if port else {**row, **match})
        window, index = windows[port], indexes[port]
        if len(window) == n:
            old = window.popleft()["id"]
            same = index[old]
            same.popleft()
            if not same:
                del index[old]
        window.append(row)
        try:
            index[key].append(row)
        except KeyError:
            index[key] = deque((row,))

    return insert


def sort(n: int, send: Send) -> Callable[[Row], None]:
    """The smallest of n rows by `ts` goes when another comes: a heap."""
    heap: list[tuple[float, int, Row]] = []
    number = 0

    def insert(row: Row) -> None:
        nonlocal number
        number += 1
        entry = row["ts"], number, row
        if number > n:
            send(heapreplace(heap, entry)[2])
        else:
            heap.append(entry)
            if number == n:
                heapify(heap)

    return insert


# -- Aggregate: rows are tuples of a key, a time and a value, by key or, with None, all together ---

Result = Callable[[float], None]
Insert = Callable[[tuple[Any, ...]], None]


def mean_by_count(n: int, by: int | None, send: Result) -> Insert:
    """The mean of every n rows."""
    sums: dict[Any, list[Any]] = {}

    def insert(row: tuple[Any, ...]) -> None:
        key = None if by is None else row[by]
        held = sums.get(key)
        if held is None:
            held = sums[key] = [0, 0.0]
        held[0] += 1
        held[1] += row[2]
        if held[0] == n:
            send(held[1] / n)
            held[0], held[1] = 0, 0.0

    return insert


def mean_by_delta(d: int, by: int | None, send: Result) -> Insert:
    """The mean of rows whose times differ by d at most from the first."""
    sums: dict[Any, list[Any]] = {}

    def insert(row: tuple[Any, ...]) -> None:
        key = None if by is None else row[by]
        held = sums.get(key)
        if held is None:
            sums[key] = [row[1], 1, row[2]]
        elif row[1] - held[0] > d:
            send(held[2] / held[1])
            held[:] = row[1], 1, row[2]
        else:
            held[1] += 1
            held[2] += row[2]

    return insert


def mean_by_time(period: int, by: int | None, send: Result) -> Insert:
    """The mean of the rows of each period, sent when it is over."""
    sums: dict[Any, list[Any]] = {}
    end = period

    def insert(row: tuple[Any, ...]) -> None:
        nonlocal end
        while row[1] >= end:
            for number, total in sums.values():
                send(total / number)
            sums.clear()
            end += period
        key = None if by is None else row[by]
        held = sums.get(key)
        if held is None:
            sums[key] = [1, row[2]]
        else:
            held[0] += 1
            held[1] += row[2]

    return insert


def percentile_by_count(n: int, by: int | None, send: Result) -> Insert:
    """Of the last n rows, at each row."""
    windows: dict[Any, deque[float]] = {}

    def insert(row: tuple[Any, ...]) -> None:
        key = None if by is None else row[by]
        held = windows.get(key)
        if held is None:
            held = windows[key] = deque(maxlen=n)
        held.append(row[2])
        send(percentile(held))

    return insert


def percentile_by_delta(d: int, by: int | None, send: Result) -> Insert:
    """Of the rows of the last d seconds, at each row: by their times, or by a clock."""
    windows: dict[Any, deque[tuple[Any, ...]]] = {}

    def insert(row: tuple[Any, ...]) -> None:
        key = None if by is None else row[by]
        held = windows.get(key)
        if held is None:
            held = windows[key] = deque()
        first = row[1] - d
        while held and held[0][1] < first:
            held.popleft()
        held.append(row)
        send(percentile([value for _, _, value in held]))

    return insert


def percentile(values: deque[float] | list[float]) -> float:
    return sorted(values)[95 * (len(values) - 1) // 100]


MEANS = {"count": mean_by_count, "delta": mean_by_delta, "time": mean_by_time}
PERCENTILES = {
    "count": percentile_by_count,
    "delta": percentile_by_delta,
    "time": percentile_by_delta,
}
