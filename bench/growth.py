"""W7 and W8: what a row costs Join and Sort as the window grows tenfold, and against code by hand.

Windows are full before the clock starts, so that every timed row evicts another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from bench import by_hand
from bench.harness import Measure, Setup, alternate, at_most
from windowlib import Count, Operator, Sliding
from windowlib.operators import Join, Sort

Row = dict[str, Any]
SIZES = (100, 1_000, 10_000)
KEYS = 10_000
TIMED = 40_000
ROUNDS = 9


def measures(
    prefix: str, setups: dict[str, Setup], growth: float, hand: float
) -> Iterator[Measure]:
    """Candidates are called "ours 100", "by hand 100", and so on.

    Args:
        prefix: what is measured.
        setups: the candidates.
        growth: how much more a row may cost as a window grows tenfold.
        hand: how much more than by hand.
    """
    times = alternate(setups, rounds=ROUNDS)
    for small, large in pairwise(SIZES):
        name = f"{prefix}, per row: window of {large:,} / {small:,}"
        yield at_most(growth, name, f"ours {large}", f"ours {small}", times)
        name = f"{prefix} by hand: {large:,} / {small:,}"
        yield at_most(None, name, f"by hand {large}", f"by hand {small}", times)
    for n in SIZES:
        yield at_most(hand, f"{prefix} {n:,} / by hand", f"ours {n}", f"by hand {n}", times)


def candidates(
    ours: Callable[[int], Setup], hand: Callable[[int], Setup], check: Callable[[Any], bool]
) -> dict[str, Setup]:
    """By name, once both have given the same."""
    found: dict[str, Setup] = {}
    for n in SIZES:
        expected, got = hand(n)()(), ours(n)()()
        assert expected == got, f"results differ from those by hand for a window of {n}"
        assert check(got)
        found |= {f"ours {n}": ours(n), f"by hand {n}": hand(n)}
    return found


# -- Join -----------------------------------------------------------------------------------------


def sides(n: int, keys: int) -> tuple[list[Row], list[Row]]:
    """Rows for the left and the right in turn: those that fill the windows, and those timed."""
    rng = random.Random(7)
    rows = [{"id": rng.randrange(keys), "xy"[i % 2]: i} for i in range(2 * n + TIMED)]
    return rows[: 2 * n], rows[2 * n :]


def opened(op: Operator) -> tuple[Callable[..., None], list[Row]]:
    """The insert of a running operator, and the list that its rows go to."""
    running, out = op.open(), list[Row]()
    running.connect(0, out.append)
    return running.insert, out


def handmade(make: Callable[..., Any], n: int) -> tuple[Callable[..., None], list[Row]]:
    """The same of an implementation by hand."""
    out: list[Row] = []
    return make(n, out.append), out


def drive(insert: Callable[[Row, int], None], rows: list[Row]) -> None:
    turns = iter(rows)
    for left, right in zip(turns, turns, strict=True):
        insert(left, 0)
        insert(right, 1)


def join(keys: Callable[[int], int]) -> tuple[Callable[[int], Setup], Callable[[int], Setup]]:
    data = {n: sides(n, keys(n)) for n in SIZES}

    def timed(insert: Callable[[Row, int], None], out: list[Row], n: int) -> Callable[[], Any]:
        before, rows = data[n]
        drive(insert, before)
        out.clear()

        def run() -> list[Row]:
            drive(insert, rows)
            return out

        return run

    def ours(n: int) -> Setup:
        window = Sliding(Count(n))
        op = Join(left=window, right=window, on="id")

        return lambda: timed(*opened(op), n)

    def hand(n: int) -> Setup:
        return lambda: timed(*handmade(by_hand.join, n), n)

    return ours, hand


def joins() -> Iterator[Measure]:
    """With the same keys a larger window has more matches; with more keys, only more rows."""
    setups = candidates(*join(lambda n: KEYS), check=bool)
    yield from measures("W7 Join, 10,000 keys", setups, 1.5, 2.0)
    setups = candidates(*join(lambda n: 10 * n), check=bool)
    yield from measures("W7 Join, 0.1 matches a row", setups, 1.5, 2.0)


# -- Sort -----------------------------------------------------------------------------------------


def disordered(n: int) -> tuple[list[Row], list[Row]]:
    """Rows that fewer than n greater ones precede."""
    rng = random.Random(7)
    rows = [{"ts": i + rng.random() * n, "x": i} for i in range(n + TIMED)]
    return rows[:n], rows[n:]


def sorts() -> Iterator[Measure]:
    data = {n: disordered(n) for n in SIZES}

    def timed(insert: Callable[[Row], None], out: list[Row], n: int) -> Callable[[], Any]:
        before, rows = data[n]
        for row in before:
            insert(row)

        def run() -> list[Row]:
            for row in rows:
                insert(row)
            return out

        return run

    def ours(n: int) -> Setup:
        op = Sort("ts", window=Sliding(Count(n)))

        return lambda: timed(*opened(op), n)

    def hand(n: int) -> Setup:
        return lambda: timed(*handmade(by_hand.sort, n), n)

    setups = candidates(ours, hand, check=in_order)
    yield from measures("W8 Sort", setups, 1.5, 3.0)


def in_order(rows: list[Row]) -> bool:
    return rows == sorted(rows, key=lambda row: row["ts"])
