"""The loops over points and their rivals that numba compiles; only `speed` uses them.

Rivals are kept in blocks of shape (dimensions, LANES): the same coordinate of so many rivals
fills vector registers, and one look at a block says whether any of them can still win.
"""

from __future__ import annotations

import numpy as np

from windowlib.columnar.compiled import compiled
from windowlib.columnar.grouping import Array, Places

LANES = 64
STRONG = 4


@compiled
def front(
    points: Array, part: Places, starts: Places, among: bool, blocks: Array, places: Places
) -> int:
    """Where the points of a front are; returns how many these are.

    `starts` says which block is the first of each part; there is room for all points. Points of
    one part are compared with each other only `among` themselves.
    """
    dimensions, size = points.shape
    known = np.zeros(len(starts), np.int64)
    point = np.empty(dimensions)
    found = 0
    for at in range(size):
        if _hopeless(points, at, places[: min(found, STRONG)]):
            continue
        for k in range(dimensions):
            point[k] = points[k, at]
        own, beaten = part[at], False
        for number in range(len(starts)):
            if among or number != own:
                first = starts[number]
                last = first + (known[number] + LANES - 1) // LANES
                beaten = beaten or _beaten(point, blocks, first, last)
        if beaten:
            continue
        block, lane = blocks[starts[own] + known[own] // LANES], known[own] % LANES
        if not lane:
            block[:] = np.inf  # beats nobody
        for k in range(dimensions):
            block[k, lane] = point[k]
        known[own] += 1
        places[found] = at
        found += 1
    return found


@compiled
def _hopeless(points: Array, at: int, strong: Places) -> bool:
    """Whether one of the strongest points is nowhere greater: that is so for most, so ask first."""
    for rival in strong:
        k = 0
        while k < len(points) and points[k, rival] <= points[k, at]:
            k += 1
        if k == len(points):
            return True
    return False


@compiled
def _beaten(point: Array, blocks: Array, first: int, last: int) -> bool:
    """Whether a rival in these blocks is nowhere greater than a point."""
    wins = np.empty(LANES, np.uint8)
    for number in range(first, last):
        block = blocks[number]
        for lane in range(LANES):
            wins[lane] = 1
        anyone = np.uint8(1)
        for k in range(len(point)):
            value = point[k]
            anyone = np.uint8(0)
            for lane in range(LANES):
                wins[lane] &= block[k, lane] <= value
                anyone |= wins[lane]
            if not anyone:
                break
        if anyone:
            return True
    return False


@compiled
def most(points: Array, blocks: Array, found: Array) -> None:
    """In how many dimensions a rival is at most not greater than a point, but not in all."""
    dimensions, size = points.shape
    counts = np.empty(LANES, np.int64)
    point = np.empty(dimensions)
    for at in range(size):
        for k in range(dimensions):
            point[k] = points[k, at]
        best = 0
        for number in range(len(blocks)):
            block = blocks[number]
            for lane in range(LANES):
                counts[lane] = 0
            for k in range(dimensions):
                value = point[k]
                for lane in range(LANES):
                    counts[lane] += block[k, lane] <= value
            for lane in range(LANES):
                best = max(best, counts[lane] * (counts[lane] < dimensions))
            if best == dimensions - 1:
                break
        found[at] = best
