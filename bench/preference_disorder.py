"""Rows out of order, and bursts: what waiting costs, in the time of the stream itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.harness import Measure
from bench.preference_panes import within
from windowlib.columnar.kernels.skyline import skyline
from windowlib.operators import KSlack, Panes, PidSlack, QuantileSlack, Reorder
from windowlib.operators.disorder import Slack
from windowlib.workload import Delays, Map2, Points, Poisson, dispersion_of, tuples

TRACE = [10, 12, 11, 15, 13, 9, 20, 14, 21, 30, 22, 31]
REACHED = {
    "new": [10, 12, 12, 12, 12, 12, 12, 12, 12, 19, 19, 20],
    "arrival": [10, 12, 12, 14, 14, 14, 14, 14, 15, 24, 24, 24],
}
"""The trace by hand: up to where the stream is complete, after each timestamp."""
LATE = {"new": [11, 9], "arrival": [11, 13, 9, 22]}

HIGH = 0.6
"""High bursts: the index of dispersion over the tuples of a pane."""

Ints = NDArray[np.int64]


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rate: int = 5000
    seconds: float = 120.0
    delays: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    panes: tuple[float, ...] = (0.05, 0.1, 0.2)
    arrivals: int = 5_000_000
    seeds: int = 4
    looks: int = 40
    """Moments at which it is counted what is held."""


FULL = Scale()


def measured(scale: Scale = FULL) -> Iterator[Measure]:
    """B19 to B21, B24 and B25."""
    yield from order(scale)
    yield from trace()
    yield from targets(scale)
    yield from open_panes(scale)
    yield from generator(scale)


class Stream(NamedTuple):
    """Timestamps and times of arrival in microseconds, in the order of arrival; and points."""

    ts: Ints
    arrival: Ints
    points: NDArray[np.float64]

    @classmethod
    def of(cls, scale: Scale, delays: Delays, dims: int = 4, dispersion: float = 1.0) -> Stream:
        """A stream of so many seconds, with bursts if the index of dispersion is more than 1."""
        size = int(scale.rate * scale.seconds)
        points = Points.correlated(dims)
        process = Map2(scale.rate, dispersion) if dispersion > 1 else Poisson(scale.rate)
        table = tuples(process.arrivals(size), delays, points, seed=1)
        ts, arrival = (
            np.rint(table[name].to_numpy() * 1e6).astype(np.int64) for name in ("ts", "arrival")
        )
        columns = np.stack([table[f"x{i}"].to_numpy() for i in range(dims)])
        return cls(ts, arrival, columns)


# -- B19: in order, or not ------------------------------------------------------------------------


def order(scale: Scale) -> Iterator[Measure]:
    """B19: panes straight from a stream with high bursts, and behind a buffer that sorts it."""
    pane, gaps = 100_000, []
    for delay in scale.delays:
        bursts = HIGH * scale.rate * pane / 1e6
        stream = Stream.of(scale, Delays.uniform(delay), dispersion=bursts)
        done, behind = latencies(stream, pane)
        gaps.append(behind - done)
        label = f"B19 V delay {delay * 1000:g} ms:"
        note = f"{done:.4f} s, {behind:.4f} s"
        yield Measure(f"{label} latency, as they come / in order", done / behind, 0.95, False, note)
        lag, behind = closings(stream, pane)
        note = f"{lag:.4f} s, {behind:.4f} s"
        yield Measure(f"{label} closing, as they come / in order", lag / behind, None, False, note)
        kept, sorted_ = held(stream, pane, scale.looks)
        ratio = kept / sorted_
        yield Measure(f"{label} tuples held, panes as skylines / in order", ratio, 0.6, False)
        ratio = rows_held(Panes("ts", size=pane, slack=KSlack()), stream, scale.looks)
        ratio /= rows_held(Reorder("ts", slack=KSlack()), stream, scale.looks)
        yield Measure(f"{label} rows held, Panes / Reorder", ratio, None, False)
    grows = sum(a < b for a, b in pairwise(gaps)) / (len(gaps) - 1)
    note = ", ".join(f"{gap * 1000:.1f}" for gap in gaps) + " ms"
    yield Measure("B19 V the gap grows with the delay, share of steps", grows, 1.0, True, note)


def latencies(stream: Stream, pane: int) -> tuple[float, float]:
    """Seconds from the first tuple of a pane until its last one is looked at, which costs nothing.

    As tuples come, the last one is looked at when it arrives. In order, all are looked at when they
    leave the buffer, the latest last: when the slack has got there.
    """
    reached = KSlack().start().observe_many(stream.ts)
    complete = int(reached[-1]) // pane - 1
    kept = np.flatnonzero((stream.ts >= reached) & (stream.ts // pane < complete))
    ts, arrival = stream.ts[kept], stream.arrival[kept]
    order = np.argsort(ts // pane, kind="stable")
    ts, arrival = ts[order], arrival[order]
    starts = np.flatnonzero(np.diff(ts // pane, prepend=-1))
    first, last = np.minimum.reduceat(arrival, starts), np.maximum.reduceat(arrival, starts)
    latest = np.maximum.reduceat(ts, starts)
    out = stream.arrival[np.searchsorted(reached, latest, side="left")]
    return float((last - first).mean() / 1e6), float((out - first).mean() / 1e6)


def closings(stream: Stream, pane: int) -> tuple[float, float]:
    """Seconds from the end of a pane to its closing: out of order, and behind a sorting buffer.

    Out of order a pane closes when the punctuation reaches its end. In order it closes when a tuple
    of a later pane leaves the buffer, which the punctuation has to reach.
    """
    reached = KSlack().start().observe_many(stream.ts)
    ends = np.arange(1, int(reached[-1]) // pane) * pane
    kept = np.sort(stream.ts[stream.ts >= reached])
    after = kept[np.searchsorted(kept, ends)]
    found = [
        stream.arrival[np.searchsorted(reached, limits, side="left")] - ends
        for limits in (ends, after)
    ]
    return float(found[0].mean() / 1e6), float(found[1].mean() / 1e6)


def held(stream: Stream, pane: int, looks: int) -> tuple[float, float]:
    """Tuples that are kept on average: as skylines of open panes, or sorted and as one skyline."""
    reached = KSlack().start().observe_many(stream.ts)
    panes, totals = stream.ts // pane, [0, 0]
    for at in np.linspace(len(panes) // 2, len(panes) - 1, looks).astype(int).tolist():
        seen, now = slice(0, at + 1), int(reached[at])
        recent = np.flatnonzero(panes[seen] >= now // pane)
        for each in np.unique(panes[recent]).tolist():
            own = recent[panes[recent] == each]
            totals[0] += len(skyline(stream.points[:, own]))
        totals[1] += int((stream.ts[seen] > now).sum())
        current = recent[(panes[recent] == now // pane) & (stream.ts[recent] <= now)]
        totals[1] += len(skyline(stream.points[:, current]))
    return totals[0] / looks, totals[1] / looks


def rows_held(operator: Any, stream: Stream, looks: int) -> float:
    """Rows that an operator holds on average, in the second half of a stream."""
    running, found = operator.open(), []
    size = max(1, len(stream.ts) // (2 * looks))
    for begin in range(0, len(stream.ts), size):
        running.insert_batch(pa.record_batch({"ts": stream.ts[begin : begin + size]}))
        found.append(sum(_rows(lane) for lane in running.operator._buffers.values()))
    return mean(found[len(found) // 2 :])


def _rows(lane: Any) -> int:
    return len(lane.held) if hasattr(lane, "held") else sum(map(len, lane.slices.values()))


# -- B20, B21: slack ------------------------------------------------------------------------------


def trace() -> Iterator[Measure]:
    """B20: K-slack by hand, and a stream in order."""
    for rule, wanted in REACHED.items():
        slack = KSlack(rule)  # type: ignore[arg-type]
        found = slack.start().observe_many(np.array(TRACE)).tolist()
        late = [ts for ts, reached in zip(TRACE, found, strict=True) if ts < reached]
        wrong = sum(a != b for a, b in zip(found, wanted, strict=True)) + (late != LATE[rule])
        label = f"B20 K-slack, delays against the {rule} timestamp:"
        yield Measure(f"{label} differences from the table", wrong, 0.0, False)
        ordered = np.arange(1000)
        behind = int((ordered < slack.start().observe_many(ordered)).sum())
        yield Measure(f"{label} late rows of a stream in order", behind, 0.0, False)


def targets(scale: Scale) -> Iterator[Measure]:
    """B21: how many rows are late, and how long panes wait, with a few stragglers."""
    stream = Stream.of(scale, Delays.heavy())
    longest, few = waits(KSlack(), stream, 200_000)
    yield Measure("B21 V K-slack: late rows, in percent", few * 100, None, False)
    kinds = (("PID", PidSlack, 0.5), ("quantile", QuantileSlack, 0.05))
    for name, kind, share in kinds:
        for drop in (0.01, 0.02, 0.05):
            wait, late = waits(kind(drop=drop), stream, 200_000)
            label = f"B21 V {name}, target {drop:.0%}:"
            off = abs(late - drop) * 100
            yield Measure(f"{label} late rows, off the target by percent", off, 0.25, False)
            needed = share if drop == 0.01 else None
            note = f"{wait:.2f} s, {longest:.2f} s"
            yield Measure(f"{label} wait / K-slack", wait / longest, needed, False, note)


def waits(slack: Slack, stream: Stream, pane: int) -> tuple[float, float]:
    """Mean seconds from the end of a pane to its closing, and the share of late rows."""
    reached = slack.start().observe_many(stream.ts)
    ends = np.arange(1, int(reached[-1]) // pane + 1) * pane
    closed = stream.arrival[np.searchsorted(reached, ends, side="left")]
    return float((closed - ends).mean() / 1e6), float((stream.ts < reached).mean())


# -- B24, B25: open panes, and the generator ------------------------------------------------------


def open_panes(scale: Scale) -> Iterator[Measure]:
    """B24: how many panes are open, against the slack in panes."""
    slacks, counts = [], []
    for delay in scale.delays:
        stream = Stream.of(scale, Delays.uniform(delay))
        for pane in scale.panes:
            ticks = round(pane * 1e6)
            running = Panes("ts", size=ticks, slack=KSlack()).open()
            size, seen = max(1, len(stream.ts) // (2 * scale.looks)), []
            for begin in range(0, len(stream.ts), size):
                running.insert_batch(pa.record_batch({"ts": stream.ts[begin : begin + size]}))
                running.operator._settle()  # type: ignore[attr-defined]  # columns become rows
                (lane,) = running.operator._buffers.values()  # type: ignore[attr-defined]
                top = int(stream.ts[: begin + size].max())
                seen.append((len(lane.slices), (top - lane.state.punctuation) / ticks))
            late = seen[len(seen) // 2 :]
            counts.append(mean(count for count, _ in late))
            slacks.append(mean(slack for _, slack in late))
    label = "B24 V open panes against slack / size of a pane:"
    yield Measure(f"{label} correlation", float(np.corrcoef(slacks, counts)[0, 1]), 0.95, True)
    slope = float(np.polyfit(slacks, counts, 1)[0])
    yield from within(f"{label} slope", slope, 0.8, 1.2)


def generator(scale: Scale) -> Iterator[Measure]:
    """B25: the mean and the index of dispersion of bursts."""
    for target in (1, 100, 1000, 2500):
        process = Map2(100_000, target) if target > 1 else Poisson(100_000)
        drawn = [process.arrivals(scale.arrivals, seed) for seed in range(scale.seeds)]
        rate = mean(len(each) / float(each[-1]) for each in drawn) / 100_000
        spread = mean(dispersion_of(each) for each in drawn)
        label = f"B25 V {'bursts, I = ' + str(target) if target > 1 else 'Poisson'}:"
        yield from within(f"{label} rate / asked for", rate, 0.98, 1.02)
        off = 0.2 if target > 1 else 0.1
        yield from within(f"{label} I / asked for", spread / target, 1 - off, 1 + off)
