"""Who has which part of a pane, and which window: real policies in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from bench.harness import Measure
from bench.simulated import Seen, Times, cost_of, merge, pane_tasks, run
from windowlib.control import (
    Adaptive,
    AdaptivePid,
    PanePolicy,
    PaneRoundRobin,
    TupleRoundRobin,
    Utilisation,
    WindowFeedback,
    WindowRoundRobin,
    WorkerStats,
)
from windowlib.workload import Map2, Poisson

RATE, PANE = 20_000, 0.05
SHARES = {"none": 0.0, "low": 0.1, "medium": 0.25, "high": 0.6}
"""The index of dispersion over the tuples of a pane."""
LIGHT, HEAVY, TOO_MUCH = 0.33, 0.6, 1.4
"""How busy workers are without bursts if tuples go to them in turn."""
IDLE = 0.7
"""Workers that are no busier than this need less splitting, not more."""
POLICIES: dict[str, Callable[[int], PanePolicy]] = {
    "panes in turn": PaneRoundRobin,
    "tuples in turn": TupleRoundRobin,
    "adaptive": Adaptive,
    "steered": AdaptivePid,
}


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    workers: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    seconds: float = 60.0
    seeds: int = 5


FULL = Scale()


def measured(scale: Scale = FULL) -> Iterator[Measure]:
    """B15 to B18, and B22."""
    yield from policies(scale)
    yield from precision(scale)
    yield from failures(scale)
    yield from soundness()
    yield from windows(scale)


def within(name: str, value: float, low: float, high: float) -> list[Measure]:
    """Two measures for a value that has to be in a range."""
    return [Measure(name, value, low, True), Measure(name, value, high, False)]


def streams(share: float, scale: Scale) -> list[Times]:
    """Arrivals of so many seeds, because a policy has its good and its bad days."""
    size = int(RATE * scale.seconds)
    process = Map2(RATE, share * RATE * PANE) if share else Poisson(RATE)
    return [process.arrivals(size, seed) for seed in range(scale.seeds)]


def medians(
    make: Callable[[int], PanePolicy], arrivals: list[Times], load: float, workers: int
) -> Seen:
    """What a policy does, as the median of several streams."""
    cost = cost_of(load, workers, RATE * PANE, PANE)
    runs = [run(make(workers), each, cost, pane=PANE) for each in arrivals]
    return Seen(*(median(values) for values in zip(*runs, strict=True)))


# -- B15 to B18: parts of panes -------------------------------------------------------------------


def policies(scale: Scale) -> Iterator[Measure]:
    """B15: the four policies, with bursts from none to high."""
    for burst, share in SHARES.items():
        arrivals = streams(share, scale)
        for n in scale.workers:
            found = {name: medians(make, arrivals, HEAVY, n) for name, make in POLICIES.items()}
            label = f"B15 V bursts {burst}, n = {n}:"
            note = ", ".join(f"{name} {each.worst:.2f}" for name, each in found.items())
            yield from criteria(label, burst, found, ("panes in turn", "tuples in turn"), note)


def criteria(
    label: str, burst: str, found: Mapping[str, Any], ways: tuple[str, str], note: str
) -> Iterator[Measure]:
    """The criteria of B15; `ways` are those that split nothing and everything."""
    (one, all_), steered = ways, found["steered"]
    whole, single = found[one], found[all_]
    needed = 1.1 if burst == "high" else None
    yield Measure(f"{label} utilisation, {one}", whole.worst, needed, True, note)
    yield Measure(f"{label} utilisation, {all_}", single.worst, 1.0, False)
    if burst == "high":
        yield from within(f"{label} utilisation, steered", steered.worst, 0.85, 1.0)
    else:
        yield Measure(f"{label} utilisation, steered", steered.worst, 1.0, False)
    sizes = f"{label} size of results,"
    yield Measure(f"{sizes} steered / {one}", steered.size / whole.size, 1.0, True)
    yield Measure(f"{sizes} steered / {all_}", steered.size / single.size, 1.0, False)
    yield Measure(f"{sizes} {all_} / {one}", single.size / whole.size, 1.2, True)


def precision(scale: Scale) -> Iterator[Measure]:
    """B16: how far from its set point the steered policy is, and what it does with too much."""
    for burst in ("low", "medium", "high"):
        arrivals = streams(SHARES[burst], scale)
        for n in scale.workers:
            found = medians(AdaptivePid, arrivals, HEAVY, n)
            label = f"B16 V bursts {burst}, n = {n}: utilisation, off the set point 0.9 by"
            yield Measure(label, abs(found.worst - 0.9), 0.05, False)
    arrivals = streams(SHARES["high"], scale)
    for n in scale.workers:
        found = medians(AdaptivePid, arrivals, TOO_MUCH, n)
        label = f"B16 V more than anybody can do, n = {n}: parts of a pane / n"
        yield Measure(label, found.split / n, 0.9, True, f"utilisation {found.worst:.2f}")


def failures(scale: Scale) -> Iterator[Measure]:
    """B17: loads for which a fixed threshold splits too much, and too little."""
    arrivals = streams(SHARES["high"], scale)
    for n in scale.workers:
        light, fixed = _light(arrivals, n)
        steered = medians(AdaptivePid, arrivals, light, n)
        label = f"B17 V light load, n = {n}: parts of a pane, steered / adaptive"
        note = f"utilisation {steered.worst:.2f}, {fixed.worst:.2f}"
        yield Measure(label, steered.split / fixed.split, 1.0, False, note)
        fixed, steered = (medians(make, arrivals, HEAVY, n) for make in (Adaptive, AdaptivePid))
        label = f"B17 V heavy load, n = {n}: utilisation, adaptive / steered"
        note = f"parts {fixed.split:.2f}, {steered.split:.2f}"
        yield Measure(label, fixed.worst / steered.worst, 1.0, True, note)


def _light(arrivals: list[Times], workers: int) -> tuple[float, Seen]:
    """A load with which the fixed threshold leaves workers idle, so that it splits too much."""
    load = LIGHT
    while (found := medians(Adaptive, arrivals, load, workers)).worst > IDLE:
        load *= 0.8
    return load, found


def soundness() -> Iterator[Measure]:
    """B18: one of two workers falls behind, and the mean does not say so."""
    stats = [WorkerStats(600, 500, 1.0), WorkerStats(400, 400, 0.6)]
    found = Utilisation.of(stats, interval=1.0)
    assert found is not None
    label = "B18 utilisation of one worker too busy of two,"
    yield Measure(f"{label} mean, off 0.976 by", abs(found.weighted - 0.976), 5e-4, False)
    yield Measure(f"{label} worst, off 1.2 by", abs(found.worst - 1.2), 1e-9, False)


# -- B22: windows ---------------------------------------------------------------------------------


def windows(scale: Scale) -> Iterator[Measure]:
    """B22: windows in turn, and to whoever is free."""
    for share in (0.0, 0.6, 2.0):
        arrivals = streams(share, scale)
        for panes in (2, 5):
            for m in (2, 3, 5):
                found = [_gain(each, panes, m) for each in arrivals]
                label = f"B22 V I/Np {share:g}, {panes} panes a window, m = {m}: latency,"
                label += " in turn / feedback"
                yield Measure(f"{label}, least", min(found), 0.98, True)
                needed = 1.2 if share == 2.0 and (panes, m) == (2, 3) else None
                yield Measure(f"{label}, median", median(found), needed, True)


def _gain(arrivals: Times, panes: int, workers: int, load: float = 0.8) -> float:
    """How much longer windows take in turn than with feedback."""
    tasks, counts = pane_tasks(arrivals, panes_per_window=panes, pane=PANE)
    costs = counts / counts.mean() * load * workers * PANE / panes
    turn, feedback = (
        merge(make(workers), tasks, costs) for make in (WindowRoundRobin, WindowFeedback)
    )
    return turn / feedback
