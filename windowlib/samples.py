"""Small, reproducible streams: trades, and streams that suit a specification."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, cycle, islice
from math import ceil
from typing import Any

from windowlib.errors import PolicyError
from windowlib.spec.policies import (
    Delta,
    PartitionAge,
    PartitionCount,
    TupleCount,
)
from windowlib.spec.specification import KEY, Session, Sliding, Spec
from windowlib.tools.tracing import advance, punct

__all__ = ["stream", "trades"]
DAY = datetime(2024, 3, 1, 14, 30, tzinfo=UTC)
PRICES = {"AAPL": 180.0, "IBM": 190.0, "MSFT": 410.0}


def trades(n: int = 500, seed: int = 7) -> list[dict[str, Any]]:
    """Trades of three symbols whose prices wander: the same list for the same arguments.

    >>> first = trades()[0]
    >>> first["symbol"], first["price"], first["qty"], first["notional"]
    ('AAPL', 180.08, 300, 54024.0)
    >>> print(first["ts"])
    2024-03-01 14:30:00.031000+00:00
    """
    draw = random.Random(seed)
    prices, ts, found = dict(PRICES), DAY, []
    for _ in range(n):
        symbol = draw.choices(list(prices), weights=(5, 2, 4))[0]
        prices[symbol] *= 1 + draw.gauss(0, 0.0005)
        ts += timedelta(milliseconds=round(draw.expovariate(1 / 400)) + 1)
        price, qty = round(prices[symbol], 2), 100 * draw.choice((1, 1, 1, 2, 3, 5))
        notional = round(price * qty, 2)
        found.append({"symbol": symbol, "price": price, "qty": qty, "notional": notional, "ts": ts})
    return found


# Uneven on purpose, in tenths of the policy's unit: small steps, and sometimes a leap.
STEPS = (3, 2, 5, 3, 4, 2, 6, 13, 3, 2, 7, 4)
MEAN = sum(STEPS) / len(STEPS) / 10
FEWEST, MOST = 10, 40
KEYS = "ABCDEFGH"


def stream(spec: Spec, n: int | None = None) -> list[Any]:
    """Dicts and marks that show what a window does: `n` tuples, or as many as that takes.

    >>> from windowlib import parse
    >>> stream(parse("tumbling, delta(ts, 10)"), n=4)
    [{'ts': 3}, {'ts': 5}, {'ts': 10}, {'ts': 13}]
    """
    keys = _keys(spec)
    rows: list[dict[Any, Any]] = [
        {} for _ in range(_tuple_count(spec, len(keys)) if n is None else n)
    ]
    for name, values in _columns(spec, keys):
        for row, value in zip(rows, values, strict=False):
            row[name] = value
    return list(_with_marks(spec, rows, len(keys)))


def _keys(spec: Spec) -> str:
    """One key for no partitions, two for some, and more where partitions are forgotten."""
    if not spec.partitioned:
        return KEYS[:1]
    if isinstance(spec.forget, PartitionCount) and spec.forget.size < len(KEYS):
        return KEYS[: max(2, spec.forget.size + 1)]
    return KEYS[: 2 if spec.forget is None else 3]


def _tuple_count(spec: Spec, keys: int) -> int:
    spans = _spans(spec)
    each = spans[0] + 2 * spans[-1] if isinstance(spec, Sliding) else 2.5 * spans[0]
    total = min(max(ceil(each), FEWEST), MOST) * keys
    more = spec.forget.size + keys if isinstance(spec.forget, TupleCount) else 0
    return max(total, more if more <= MOST * keys else 0)


def _spans(spec: Spec) -> list[float]:
    """About how many tuples of one partition each policy spans."""
    found = []
    for policy in spec.policies:
        if policy.tuples is not None:
            closes_early = policy.lapse is not None
            found.append(float(min(policy.tuples, FEWEST) if closes_early else policy.tuples))
        elif policy.event is not None:
            found.append(8.0)
        elif policy.delta is not None:
            unit = _unit(spec, policy.delta)
            found.append(policy.delta.threshold / unit / MEAN if unit else 1.0)
        else:
            periods = [time.period for time in policy.times]
            found.append(periods[0] / _tick(spec) / MEAN if periods else 4.0)
    return found


def _unit(spec: Spec, policy: Delta) -> Any:
    """The smallest threshold that the window has for this policy's attribute."""
    deltas = spec.deltas
    return min(p.threshold for p in deltas if p.attribute == policy.attribute)


def _tick(spec: Spec) -> timedelta:
    """The shortest period that the window has."""
    periods = [policy.period for policy in spec.times]
    if spec.evict.lapse is not None:  # a little faster than batches need, so that most fill up
        tuples = min(spec.full_at or 1, FEWEST)
        pace = 0.8 * periods[0].total_seconds() / tuples / MEAN
        periods = [max(timedelta(seconds=float(f"{pace:.1g}")), timedelta.resolution)]
    if isinstance(spec.forget, PartitionAge):
        periods.append(spec.forget.age)
    if spec.early is not None:
        periods.append(spec.early)
    return min(periods, default=timedelta(seconds=1))


def _columns(spec: Spec, keys: str) -> Iterator[tuple[Any, Iterable[Any]]]:
    if spec.by is not None:
        names = spec.by if isinstance(spec.by, tuple) else (spec.by,)
        for name in names:
            yield "key" if name is KEY else _name(name), _interleaved(keys)
    for delta in (policy.delta for policy in spec.policies):
        if delta is not None:
            yield _name(delta.attribute), _increasing(_unit(spec, delta), len(keys))
    if (event := spec.policies[-1].event) is not None:
        unit = spec.gap if isinstance(spec, Session) else event.size
        values = _increasing(unit, len(keys))
        yield _name(event.attribute), values if spec.watermark is None else _out_of_order(values)


def _name(attribute: object) -> Any:
    if callable(attribute):
        msg = f"{attribute!r}: no rows can be made up for a callable. Give rows, or name a column."
        raise PolicyError(msg)
    return attribute


def _interleaved(keys: str) -> Iterator[str]:
    """A key comes often, then seldom, then not at all: A B A A B A, B C B B C B."""
    for i, often in cycle(enumerate(keys)):
        seldom = keys[(i + 1) % len(keys)]
        yield from (often, seldom, often, often, seldom, often)


def _increasing(unit: Any, keys: int) -> Iterator[Any]:
    """Values that go up by uneven parts of `unit`, in each of `keys` partitions."""
    if isinstance(unit, timedelta):
        return accumulate((unit * step / 10 / keys for step in cycle(STEPS)), initial=DAY)
    if isinstance(unit, int):
        whole = (max(1, round(unit * step / 10 / keys)) for step in cycle(STEPS))
        return accumulate(whole if unit else cycle((1, 0, 2)))
    return (round(float(unit) * total / 10 / keys, 6) for total in accumulate(cycle(STEPS)))


def _out_of_order(values: Iterator[Any]) -> Iterator[Any]:
    """Values of which every third comes after the one behind it."""
    for number, value in enumerate(values):
        if number % 3 == 2:
            yield next(values)
        yield value


def _with_marks(spec: Spec, rows: list[dict[Any, Any]], keys: int) -> Iterator[Any]:
    """Put arrival times before tuples, or punctuations between them."""
    tick = _tick(spec).total_seconds()
    times = _increasing(tick, min(keys, 2))
    clocked = spec.timed or isinstance(spec.forget, PartitionAge)
    closing = set(islice(accumulate(cycle((3 * keys, 2, 4))), len(rows)))
    now = 0.0
    for number, row in enumerate(rows, 1):
        if clocked:
            now = next(times)
            yield advance(now)
        yield row
        if spec.punctuated and number in closing - {len(rows)}:
            yield punct()
    if spec.punctuated:
        yield from (punct(), punct())
    if spec.timed:
        longest = max([policy.period for policy in spec.times], default=_tick(spec))
        yield advance(now + min(1.2 * longest.total_seconds(), FEWEST * tick))
