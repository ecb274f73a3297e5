"""Join and Sort as one would write them without a library, for one workload each.

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
