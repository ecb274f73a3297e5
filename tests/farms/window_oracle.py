"""Windows from their definitions: every window is looked at for every tuple."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

WINDOWS = range(-60, 90)
"""Enough of them for the points of the tests."""


def windows(x, size, slide, phase=0, lowest=None):
    """The windows that hold a point, in exact arithmetic: in whole parts of one."""
    exact = [Fraction(number) for number in (x, size, slide, phase)]
    parts = math.lcm(*(number.denominator for number in exact))
    x, size, slide, phase = (int(number * parts) for number in exact)
    return [
        w
        for w in WINDOWS
        if (lowest is None or w >= lowest) and phase + w * slide <= x < phase + w * slide + size
    ]


def table(points, size, slide, phase):
    """For each point and each of `WINDOWS` whether the window holds it; of whole numbers."""
    begins = phase + np.array(WINDOWS) * slide
    x = np.array(points)[:, None]
    return (begins <= x) & (x < begins + size)


def members(extents):
    """Windows with the tuples in them."""
    return [(w, list(range(lo, hi))) for w, lo, hi in extents]


def by_tuple(times, size, slide, closed=False):
    """Every `slide` tuples those that came and are not too old for the trigger."""
    found: list[Any] = []
    for r in range(slide - 1, len(times), slide):
        ages = [(i, times[r] - times[i]) for i in range(r + 1)]
        kept = [i for i, age in ages if age < size or (closed and age == size)]
        found.append((len(found), kept))
    return found


def by_time(times, size, slide, phase, until):
    """At every tick the last tuples before it, from the first tuple on."""
    found = []
    for w in WINDOWS:
        tick = phase + (w + 1) * slide
        before = [i for i, ts in enumerate(times) if ts < tick]
        if before and tick <= until:
            found.append((w, before[-size:]))
    return found


def by_delta(values, size, slide):
    """The buffer at each trigger, in the order trigger, evict, insert."""
    found: list[Any] = []
    buffer: list[int] = []
    reference = None
    for i, value in enumerate(values):
        if reference is None:
            reference = value
        elif value - reference > slide:
            found.append((len(found), list(buffer)))
            reference = value
        buffer = [j for j in buffer if not value - values[j] > size]
        buffer.append(i)
    return found


def tumbling_delta(values, threshold):
    """Runs that end before the value too far from the first."""
    found: list[list[int]] = []
    for i, value in enumerate(values):
        if not found or value - values[found[-1][0]] > threshold:
            found.append([])
        found[-1].append(i)
    return list(enumerate(found))


def sessions(times, gap):
    """Runs without a longer gap."""
    found: list[list[int]] = []
    for i, ts in enumerate(times):
        if not i or ts - times[i - 1] > gap:
            found.append([])
        found[-1].append(i)
    return list(enumerate(found))
