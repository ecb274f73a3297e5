"""What batches and slices save: columns against tuple by tuple, slices against buckets.

Everything here runs in one process. Kernels are those of `windowlib.columnar.primitives`,
computed with numpy; what they are compared with is written the way one writes it for single tuples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.harness import Measure, Setup, alternate, at_least, at_most
from windowlib import Sliding, Time
from windowlib.columnar import primitives
from windowlib.farms.models import TimeWindows
from windowlib.operators import Aggregate, agg

MINUTE = 60_000_000
"""The length of windows, in microseconds."""


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rows: int = 1 << 16
    """As many as the engine looks at together; twice the window if that is more."""
    sizes: tuple[int, ...] = (16, 1000, 100_000)
    bucketed: int = 50_000
    """Tuples of an hour that go to buckets, up to 120 each."""
    sliced: int = 1_000_000
    """Tuples of an hour that go to slices."""
    rounds: int = 5


FULL = Scale()


def run(scale: Scale = FULL) -> Iterator[Measure]:
    """B26 and B27."""
    with primitives.use("numpy"):
        yield from kernels(scale)
        yield from slicing(scale)


# -- B26: tuple by tuple --------------------------------------------------------------------------


def two_stacks(values: Sequence[float], size: int) -> list[float]:
    """The largest of the last `size` values: two stacks, of which each value passes both."""
    back: list[float] = []
    front: list[float] = []  # the largest of what is left of the older half
    high, out = -np.inf, []
    for value in values:
        back.append(value)
        high = max(high, value)
        if len(front) + len(back) > size:
            if not front:
                largest = -np.inf
                while back:
                    largest = max(largest, back.pop())
                    front.append(largest)
                high = -np.inf
            front.pop()
        if len(front) + len(back) == size:
            out.append(max(high, front[-1]) if front else high)
    return out


def subtract_on_evict(values: Sequence[float], size: int) -> list[float]:
    """The sum of the last `size` values: what leaves is subtracted."""
    held: deque[float] = deque()
    total: float = 0
    out = []
    for value in values:
        held.append(value)
        total += value
        if len(held) > size:
            total -= held.popleft()
        if len(held) == size:
            out.append(total)
    return out


def kernels(scale: Scale) -> Iterator[Measure]:
    """B26: the same results from whole columns."""
    for size in scale.sizes:
        rows = max(scale.rows, 2 * size)
        whole = np.random.default_rng(26).integers(0, 1000, rows)
        slide = max(1, size // 10)
        ways = _ways(whole, size, slide)
        _agree(ways["two stacks"](), ways["largest"]())
        _agree(ways["evict"](), ways["sums"]())
        _agree(ways["evict"](), ways["float sums"]())
        _agree(ways["evict"](), ways["cumsum"]())
        if slide > 1:
            _agree(ways["two stacks"]()[::slide], ways["sliced"]())
        times = alternate({name: _setup(way) for name, way in ways.items()}, scale.rounds)
        label = f"B26 window of {size:,}"
        yield at_least(8, f"{label}: two stacks / largest", "two stacks", "largest", times)
        yield at_least(15, f"{label}: subtract on evict / sums", "evict", "sums", times)
        name = f"{label}: subtract on evict / sums of floats, without subtraction"
        yield at_least(None, name, "evict", "float sums", times)
        name = f"{label}: subtract on evict / differences of one cumsum"
        yield at_least(None, name, "evict", "cumsum", times)
        if slide > 1:
            name = f"{label}: largest, slide 1 / slices, slide {slide:,}"
            yield at_least(3, name, "largest", "sliced", times)


def _ways(whole: Any, size: int, slide: int) -> dict[str, Callable[[], Any]]:
    floats, single = whole.astype(np.float64), whole.tolist()
    ends = np.arange(size, len(whole) + 1)
    starts = np.arange(0, len(whole) - slide + 1, slide)

    def cumsum() -> Any:
        running = np.concatenate(([0], np.cumsum(whole)))
        return running[size:] - running[:-size]

    def sliced() -> Any:
        tiles = primitives.largest(floats, starts, starts + slide)
        return primitives.slide(np.maximum, tiles, size // slide)

    found: dict[str, Callable[[], Any]] = {
        "two stacks": lambda: two_stacks(single, size),
        "largest": lambda: primitives.slide(np.maximum, floats, size),
        "evict": lambda: subtract_on_evict(single, size),
        "sums": lambda: primitives.sums(whole, ends - size, ends),
        "float sums": lambda: primitives.sums(floats, ends - size, ends),
        "cumsum": cumsum,
    }
    return found | ({"sliced": sliced} if slide > 1 else {})


def _setup(way: Callable[[], Any]) -> Setup:
    return lambda: way


def _agree(one: Any, other: Any) -> None:
    assert len(one), "nothing to compare"
    assert np.array_equal(np.asarray(one), np.asarray(other)), "kernels differ"


# -- B27: buckets ---------------------------------------------------------------------------------


def buckets(micros: Any, values: Any, slide: int) -> dict[int, float]:
    """The sum of each window of a minute: every tuple is put into all of its windows."""
    rows, windows = TimeWindows(MINUTE, slide).windows(micros)
    found, which = np.unique(windows, return_inverse=True)
    totals = np.bincount(which, weights=values[rows])
    return dict(zip(found.tolist(), totals.tolist(), strict=True))


def slicing(scale: Scale) -> Iterator[Measure]:
    """B27: how the cost grows when windows slide more often."""
    few, many = (_hour(rows) for rows in (scale.bucketed, scale.sliced))
    micros, values = (few.column(name).to_numpy(False) for name in ("at", "x"))
    micros = micros.astype(np.int64)
    setups: dict[str, Setup] = {}
    for name, slide in {"60": MINUTE, "0.5": MINUTE // 120}.items():
        same_sums(few, micros, values, slide)
        setups[f"buckets {name}"] = _setup(partial(buckets, micros, values, slide))
        setups[f"slices {name}"] = partial(sliced, many, slide)
    times = alternate(setups, scale.rounds)
    label, slow, fast = "B27 an hour in windows of 60 s", "0.5", "60"
    name = f"{label}: buckets, slide 0.5 s / 60 s"
    yield at_least(10, name, f"buckets {slow}", f"buckets {fast}", times)
    name = f"{label}: Aggregate, slide 0.5 s / 60 s"
    yield at_most(1.5, name, f"slices {slow}", f"slices {fast}", times)


def _hour(rows: int) -> pa.RecordBatch:
    rng = np.random.default_rng(27)
    micros = np.sort(rng.integers(0, 60 * MINUTE, rows))
    values = rng.integers(0, 1000, rows).astype(np.float64)
    return pa.record_batch({"at": pa.array(micros, pa.duration("us")), "x": values})


def sliced(batch: pa.RecordBatch, slide: int) -> Callable[[], pa.Table]:
    """The same with an operator: sums of slices, of which windows are made."""
    window = Sliding(Time(f"{MINUTE}us"), every=Time(f"{slide}us"))
    running = Aggregate(window, total=agg.sum("x")).open()
    return lambda: running.process_batch(batch, times="at")


def same_sums(batch: pa.RecordBatch, micros: Any, values: Any, slide: int) -> None:
    """Refuse to time sums that differ; the first windows of the operator reach before 0."""
    found = sliced(batch, slide)().column("total").to_pylist()
    wanted = buckets(micros, values, slide)
    first = min(wanted)
    # Window w ends at w * slide + MINUTE; those that the stream has not come to the end of are out.
    ended = [w for w in wanted if w * slide + MINUTE <= micros[-1] and w * slide + MINUTE > 0]
    assert found == [wanted[w] for w in range(first, max(ended) + 1)], f"slide {slide}: sums differ"
