"""What a row costs approximate functions in batches; `datasketches` where it is installed.

Our sketches have the state that single rows give, which is compared first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.harness import Measure, Setup, alternate
from windowlib import Count, Tumbling
from windowlib.operators import Aggregate, agg

TARGET = 200  # nanoseconds a row
BATCH = 64 * 1024


class Scale(NamedTuple):
    """How much is measured."""

    rows: int = 1_000_000
    window: int = 100_000
    compared: int = 200_000
    rounds: int = 5


class Case(NamedTuple):
    """One function over one stream."""

    name: str
    function: Callable[[str], Any]
    stream: str


quantile = partial(agg.approx_quantile, q=0.95)
top = partial(agg.approx_top_k, k=10)
CASES = (
    Case("approx_count_distinct, floats", agg.approx_count_distinct, "floats"),
    Case("approx_count_distinct, whole numbers, skewed", agg.approx_count_distinct, "skewed"),
    Case("approx_count_distinct, text", agg.approx_count_distinct, "text"),
    Case("approx_quantile, floats", quantile, "floats"),
    Case("approx_quantile, text", quantile, "text"),
    Case("approx_top_k, whole numbers, skewed", top, "skewed"),
    Case("approx_top_k, floats, none twice", top, "floats"),
)


def measured(scale: Scale) -> Iterator[Measure]:
    """Nanoseconds a row."""
    found = streams(scale.rows)
    for case in CASES:
        check_same(case, found[case.stream].slice(0, scale.compared), scale.window)
    setups: dict[str, Setup] = {
        case.name: partial(ours, case, found[case.stream], scale) for case in CASES
    }
    setups |= peers(found)
    times = alternate(setups, scale.rounds)
    targets = dict.fromkeys((case.name for case in CASES), TARGET)
    for name, each in times.items():
        nanos = min(each) / scale.rows * 1e9
        yield Measure(f"{name}, nanoseconds a row", nanos, targets.get(name), False)


def streams(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    words = pa.array([f"user {i}" for i in range(100_000)])
    return {
        "floats": pa.array(rng.random(rows)),
        "skewed": pa.array(rng.zipf(1.3, rows) % 100_000),
        "text": words.take(pa.array(rng.integers(0, len(words), rows))),
    }


def ours(case: Case, values: Any, scale: Scale) -> Callable[[], list[Any]]:
    out: list[Any] = []
    running = Aggregate(Tumbling(Count(scale.window)), it=case.function("x")).open()
    running.connect(0, out.append)
    arriving = pa.table({"x": values}).to_batches(BATCH)

    def run() -> list[Any]:
        for batch in arriving:
            running.insert_batch(batch)
        return out

    return run


def check_same(case: Case, values: Any, window: int) -> None:
    """Refuse to time sketches that differ from those of single rows."""
    op = Aggregate(Tumbling(Count(window)), it=case.function("x"))
    one, other = op.open(), op.open()
    table = pa.table({"x": values})
    for batch in table.to_batches(BATCH):
        one.insert_batch(batch)
    other.insert_many(table.to_pylist())
    assert one.snapshot() == other.snapshot(), f"{case.name}: another state than of single rows"


def peers(found: dict[str, Any]) -> dict[str, Setup]:
    """Sketches of about the same accuracy, in the fastest way that the package has."""
    if not find_spec("datasketches"):
        print("datasketches is not installed, and left out. To compare: pip install datasketches")
        return {}
    import datasketches

    def counted() -> Callable[[], Any]:
        values = found["floats"].to_pylist()

        def run() -> Any:
            update = datasketches.hll_sketch(12).update
            for value in values:
                update(value)

        return run

    def ranked() -> Callable[[], Any]:
        values = found["floats"].to_numpy().copy()  # it takes none that cannot be written
        return lambda: datasketches.kll_doubles_sketch(512).update(values)

    return {"datasketches hll, floats": counted, "datasketches kll, floats": ranked}
