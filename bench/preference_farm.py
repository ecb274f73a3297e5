"""B15 in a farm: slices of a skyline, cut by policies, in virtual time and with two processes.

`bench.preference_panes` has the policies alone, which send tuple after tuple to workers. A farm has
whole slices to give away, so what it does with a policy is measured here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import inf
from statistics import mean, median
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from bench.farms_real import await_answers
from bench.farms_work import expected, same
from bench.harness import Measure
from bench.preference_panes import HEAVY, SHARES, criteria
from bench.simulated import POWER, cost_of
from windowlib import Sliding, Time
from windowlib.control import Adaptive, AdaptivePid, Utilisation, WorkerStats
from windowlib.farms import PaneFarm
from windowlib.farms.pane_farm import PaneDispatch
from windowlib.farms.virtual import simulate
from windowlib.operators import Skyline
from windowlib.workload import Map2, Points, Poisson

Arrivals = list[tuple[float, pa.RecordBatch]]
PANE = 0.05
N = 2


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    tuples: int = 400
    """Rows of a pane in virtual time, on average."""
    panes: int = 400
    workers: tuple[int, ...] = (2, 4)
    seeds: int = 3
    heavy: int = 3000
    """Rows of a pane with processes."""
    length: int = 200
    """PaneDispatch with processes."""
    dims: int = 4
    """Dimensions of a point; the other is for processes, which need something to do."""
    many: int = 8
    rounds: int = 3


FULL = Scale()

# -- policies that are watched --------------------------------------------------------------------


class Watched(Adaptive):
    """Remembers how busy workers were, and into how many parts slices were cut."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.loads: list[float] = []
        self.splits: list[int] = []

    def sample(
        self, now: float, stats: Sequence[WorkerStats], interval: float | None = None
    ) -> None:
        assert interval is not None
        if (found := Utilisation.of(stats, interval)) is not None:
            self.loads.append(min(found.worst, 10.0))
        super().sample(now, stats, interval)

    def closed(self, pane: int, sizes: Sequence[int] | None = None) -> dict[int, int]:
        self.splits.append(len(sizes or ()))
        return super().closed(pane, sizes)


class Whole(Watched):
    """Never splits."""

    threshold = inf


class Single(Watched):
    """Splits among all workers."""

    threshold = 1.0


class Steered(Watched, AdaptivePid):
    """By how busy workers are."""


POLICIES: Mapping[str, type[Watched]] = {
    "whole panes": Whole,
    "all workers": Single,
    "adaptive": Watched,
    "steered": Steered,
}
IN_TURN = ("whole panes", "all workers")
"""Whose parts go to workers in turn; those of the others to whoever is free."""


class Seen(NamedTuple):
    """Means over the last two thirds of a run."""

    worst: float
    split: float
    size: float
    """Rows of the partial results of a slice."""


def farm_of(name: str, op: Skyline, workers: int, made: list[Watched]) -> PaneFarm:
    """A farm whose policies are put on a list."""

    def policy(workers: int) -> Watched:
        made.append(POLICIES[name](workers))
        return made[-1]

    scheduling = "round-robin" if name in IN_TURN else "on-demand"
    farm = PaneFarm(op, workers=workers, parts=policy, scheduling=scheduling)
    farm.limit = 1 << 30  # so that what is too much piles up, and is seen
    return farm


def watched(run: Callable[[], list[Any]], made: list[Watched]) -> tuple[list[Any], Seen]:
    """The rows of a run, and what was seen of it."""
    sizes, came = [], PaneDispatch._receive_part

    def counting(self: Any, slice_: Any, place: int, part: Any) -> None:
        sizes.append(part.rows.num_rows)
        came(self, slice_, place, part)

    with patch.object(PaneDispatch, "_receive_part", counting):
        rows = run()
    policy = made[-1]
    late = policy.loads[len(policy.loads) // 3 :]
    return rows, Seen(mean(late), mean(policy.splits), sum(sizes) / len(policy.splits))


# -- streams --------------------------------------------------------------------------------------


def stream(burst: str, tuples: int, panes: int, pane: float, dims: int, seed: int) -> Arrivals:
    """Points that come at the ends of panes."""
    rate, share = tuples / pane, SHARES[burst]
    process = Map2(rate, share * tuples) if share else Poisson(rate)
    times = process.arrivals(tuples * panes, seed)
    micros = np.rint(times * 1e6).astype(np.int64)
    drawn = Points("independent", dims).draw(len(times), seed=seed)
    columns = {f"x{i}": drawn[:, i] for i in range(dims)}
    batch = pa.record_batch({"at": pa.array(micros, pa.duration("us")), **columns})
    ends = np.arange(1, int(times[-1] / pane) + 1) * pane
    cuts = [0, *np.searchsorted(micros, np.rint(ends * 1e6)).tolist()]
    pairs = zip(ends.tolist(), cuts, cuts[1:], strict=False)
    return [(round(end, 6), batch.slice(lo, hi - lo)) for end, lo, hi in pairs]


def query(pane: float, dims: int) -> Skyline:
    """The skyline of the last two panes."""
    millis = round(pane * 1000)
    spec = Sliding(Time(f"{2 * millis}ms"), every=Time(f"{millis}ms"))
    return Skyline(spec, *(f"x{i}" for i in range(dims)))


def rows_of(op: Skyline, arrivals: Arrivals) -> list[Any]:
    """What the operator alone sends."""
    batches = [batch for _, batch in arrivals]
    return expected(op, batches, times="at", until=arrivals[-1][0])


# -- measures -------------------------------------------------------------------------------------


def virtual(scale: Scale = FULL) -> Iterator[Measure]:
    """In virtual time, where a part costs what it costs in `bench.simulated`."""
    op = query(PANE, scale.dims)
    for burst in ("none", "high"):
        for n in scale.workers:
            cost = cost_of(HEAVY, n, scale.tuples, PANE) / (1 + POWER)
            found: dict[str, list[Seen]] = {name: [] for name in POLICIES}
            for seed in range(scale.seeds):
                sizes = (scale.tuples, scale.panes, PANE, scale.dims, seed)
                arrivals = stream(burst, *sizes)
                wanted = rows_of(op, arrivals)
                for name in POLICIES:
                    rows, seen = _simulated(name, op, n, arrivals, cost)
                    same(f"B15 V {name}", rows, wanted)
                    found[name].append(seen)
            yield from _criteria(f"B15 V farm, bursts {burst}, n = {n}:", burst, found)


def _simulated(
    name: str, op: Skyline, n: int, arrivals: Arrivals, cost: float
) -> tuple[list[Any], Seen]:
    def seconds(work: str, args: Any) -> float:
        parts = args[1] if work == "partials" else ()
        return float(sum(cost * (given.hi - given.lo) ** (1 + POWER) for given in parts))

    made: list[Watched] = []
    farm = farm_of(name, op, n, made)
    return watched(lambda: simulate(farm, arrivals, seconds, times="at").rows, made)


def real(scale: Scale = FULL) -> Iterator[Measure]:
    """With two processes, by the clock: panes as long as makes workers busy."""
    pane = _length(scale)
    op = query(pane, scale.many)
    for burst in ("none", "high"):
        arrivals = stream(burst, scale.heavy, scale.length, pane, scale.many, 0)
        wanted = rows_of(op, arrivals)
        found: dict[str, list[Seen]] = {name: [] for name in POLICIES}
        for _ in range(scale.rounds):
            for name in POLICIES:
                rows, seen = _paced(name, op, arrivals)
                same(f"B15 R {name}", rows, wanted)
                found[name].append(seen)
        label = f"B15 R bursts {burst}, n = {N}, panes of {pane * 1000:.0f} ms:"
        yield from _criteria(label, burst, found)


def _length(scale: Scale) -> float:
    """How long a pane is with which workers that have half of each are as busy as in B15 V."""
    work, half, tries = query(PANE, scale.many).partials, scale.heavy // 2, []
    ((_, batch), *_) = stream("none", 4 * half, 2, PANE, scale.many, 1)
    for _ in range(5):
        start = time.process_time()
        parts = [work.of(batch.slice(at * half, half), at * half) for at in range(4)]
        own = (time.process_time() - start) / 4
        work.rows(reduce(work.merge, parts)).to_pylist()
        window = time.process_time() - start - 4 * own
        tries.append(own + window / N)  # which one of them does
    return max(0.001, round(median(tries) / HEAVY, 3))


def _paced(name: str, op: Skyline, arrivals: Arrivals) -> tuple[list[Any], Seen]:
    made: list[Watched] = []
    farm = farm_of(name, op, N, made)
    out: list[Any] = []

    def run() -> list[Any]:
        with farm.running() as running:
            running.connect(0, out.append)
            await_answers(running)
            start = time.perf_counter()
            for due, batch in arrivals:
                while (left := start + due - time.perf_counter()) > 0:
                    running.poll()
                    time.sleep(min(left, 0.002))
                running.insert_batch(batch, times="at")
                running.advance(due)
            running.finish()
        return out

    return watched(run, made)


def _criteria(label: str, burst: str, found: Mapping[str, Sequence[Seen]]) -> Iterator[Measure]:
    """The criteria of B15."""
    seen = {name: Seen(*map(median, zip(*each, strict=True))) for name, each in found.items()}
    note = ", ".join(f"{name} {each.worst:.2f} ({each.split:.2f})" for name, each in seen.items())
    return criteria(label, burst, seen, ("whole panes", "all workers"), note)
