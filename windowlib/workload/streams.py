"""Streams of tuples, as tables in the order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windowlib.errors import WorkloadError
from windowlib.workload.arrivals import Arrivals, Poisson
from windowlib.workload.checks import Floats, generator, times, whole
from windowlib.workload.delays import Delays
from windowlib.workload.points import Keys, Points

OPENING = datetime(2024, 3, 1, 14, 30, tzinfo=UTC)
NAMES = ("AAPL", "IBM", "MSFT", "ORCL", "INTC", "CSCO", "AMD", "TXN")


def tuples(
    arrivals: Any,
    delays: Delays | None = None,
    points: Points | None = None,
    seed: int = 0,
    *,
    keys: Keys | None = None,
    start: datetime | None = None,
) -> pa.Table:
    """A stream out of order: columns `ts`, `arrival`, `x0`, `x1` and so on, and `key`.

    `arrivals` are the times when tuples come to be, in seconds; each arrives its delay later, and
    the table is in the order of arrival. Times are seconds, or with `start` timestamps in UTC. The
    same arguments give the same table.

    >>> from windowlib.workload import Delays, Points, Steady
    >>> table = tuples(Steady(10).arrivals(4), Delays.uniform(0.2), Points.independent(2), seed=7)
    >>> table.column_names, [round(ts, 6) for ts in table["ts"].to_pylist()]
    (['ts', 'arrival', 'x0', 'x1'], [0.3, 0.1, 0.2, 0.4])
    """
    ts = times("tuples(arrivals)", arrivals)
    n = len(ts)
    arrival = ts if delays is None else ts + delays.draw(n, seed)
    order = np.argsort(arrival, kind="stable")
    columns = {"ts": _stamps(ts[order], start), "arrival": _stamps(arrival[order], start)}
    if points is not None:
        drawn = points.draw(n, seed)[order]
        columns |= {f"x{i}": pa.array(drawn[:, i]) for i in range(points.dims)}
    if keys is not None:
        columns["key"] = pa.array(keys.draw(n, seed)[order])
    return pa.table(columns)


def _stamps(seconds: Floats, start: datetime | None) -> pa.Array:
    if start is None:
        return pa.array(seconds)
    if start.tzinfo is None:
        msg = f"start={start!r}: without a time zone it is no instant. Add tzinfo=UTC."
        raise WorkloadError(msg)
    micros = np.rint(seconds * 1e6).astype(np.int64)
    begin = pa.scalar(start.astimezone(UTC), pa.timestamp("us", "UTC")).value
    return pa.array(micros + begin).cast(pa.timestamp("us", "UTC"))


def quotes(
    n: int,
    symbols: int | Sequence[str] = 3,
    seed: int = 0,
    p_max: float | None = None,
    *,
    arrivals: Arrivals | None = None,
    start: datetime = OPENING,
) -> pa.Table:
    """Quotes of stocks: `symbol`, `ts`, `bid`, `ask`, `bid_volume`, `ask_volume`, in order.

    Prices wander in steps of a hundredth of a percent, each symbol on its own; bid and ask are one
    to four cents apart, volumes are round lots. The first symbol has the share `p_max` of the
    quotes, the others equal shares. `arrivals` says when quotes come; else it is 1,000 a second.

    >>> quotes(1, symbols=["IBM", "MSFT"], seed=7).select(["symbol", "bid", "ask"]).to_pylist()
    [{'symbol': 'MSFT', 'bid': 369.11, 'ask': 369.12}]
    """
    names = _names(symbols)
    size = whole("n", n, least=0)
    which = (Keys(len(names)) if p_max is None else Keys(len(names), p_max=p_max)).draw(size, seed)
    ts = (arrivals or Poisson(rate=1000)).arrivals(size, seed)
    middle = _wandering(which, len(names), seed)
    draws = generator(seed, "quotes")
    spread = 1 + draws.binomial(3, 0.3, size)
    bid = np.maximum(1, np.rint(middle * 100 - spread / 2)).astype(np.int64)
    volumes = 100 * draws.geometric(0.25, (2, size))
    return pa.table(
        {
            "symbol": pa.DictionaryArray.from_arrays(which.astype(np.int32), names).cast("string"),
            "ts": _stamps(ts, start),
            "bid": bid / 100,
            "ask": (bid + spread) / 100,
            "bid_volume": volumes[0],
            "ask_volume": volumes[1],
        }
    )


def _names(symbols: int | Sequence[str]) -> list[str]:
    if isinstance(symbols, str) or (not isinstance(symbols, int) and not len(symbols)):
        msg = f'symbols={symbols!r}: no symbols. Use a number, or names such as ["IBM", "MSFT"].'
        raise WorkloadError(msg)
    if not isinstance(symbols, int):
        return list(symbols)
    more = range(len(NAMES), whole("symbols", symbols))
    return [*NAMES[:symbols], *(f"S{i}" for i in more)]


def _wandering(which: NDArray[np.int64], count: int, seed: int) -> Floats:
    """A price for each row, where each symbol goes on from its own last price."""
    draws = generator(seed, "prices")
    first = draws.uniform(20, 400, count)
    steps = np.rint(draws.normal(0.0, 1.5, len(which))).astype(np.int64)
    order = np.argsort(which, kind="stable")
    # Whole steps, so that the sums of one symbol are exact whatever the others did.
    sums = np.cumsum(steps[order])
    begins = np.searchsorted(which[order], np.arange(count))
    before = np.concatenate([[0], sums])[begins]
    walked = np.empty(len(which), dtype=np.int64)
    walked[order] = sums - before[which[order]]
    return np.asarray(first[which] * np.exp(walked * 1e-4))
