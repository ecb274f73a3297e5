"""One operator, run in every way there is, over the same tables."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from windowlib import Operator, replay, restart, to

Row = dict[str, Any]


def by_rows(operator: Operator, *tables: pa.Table) -> list[Row]:
    """Row by row, with a restart on the way."""
    if len(tables) == 1:
        rows = tables[0].to_pylist()
        half = len(rows) // 2
        return list(replay(operator, iter([*rows[:half], restart(), *rows[half:]])))
    pieces = [(port, row) for port, table in enumerate(tables) for row in table.to_pylist()]
    half = len(pieces) // 2
    items = [to(port, row) for port, row in pieces]
    return list(replay(operator, [*items[:half], restart(), *items[half:]]))


def uneven(table: pa.Table, most: int, seed: int) -> Iterable[pa.Table]:
    """Pieces of a table of any length up to `most`."""
    draw, at = random.Random(seed), 0
    while at < table.num_rows:
        size = draw.randint(1, most)
        yield table.slice(at, size)
        at += size


def by_batches(operator: Operator, *tables: pa.Table, most: int = 40_000) -> list[Row]:
    """Uneven batches of all inputs in turn, with a restart after a few of them."""
    made: list[Row] = []

    def opened() -> Any:
        running = operator.open()
        running.connect(0, made.append)
        return running

    running = opened()
    pieces = [iter(uneven(table, most, seed)) for seed, table in enumerate(tables)]
    left = dict(enumerate(pieces))
    turn = 0
    while left:
        for port in list(left):
            piece = next(left[port], None)
            if piece is None:
                del left[port]
                continue
            running.insert_batch(piece, port)
            turn += 1
            if turn == 5:
                state = running.snapshot(arrays=True)
                running = opened()
                running.restore(state)
    running.finish()
    return made


def same(expected: Sequence[Row], found: Sequence[Row], key: str) -> None:
    """The same rows, whatever their order; floats to the last digits."""
    assert len(expected) == len(found)
    wanted = sorted(expected, key=lambda row: str(row[key]))
    for one, other in zip(wanted, sorted(found, key=lambda row: str(row[key])), strict=True):
        assert one.keys() <= other.keys()
        for name, value in one.items():
            if isinstance(value, float):
                assert abs(value - other[name]) <= 1e-9 * max(abs(value), 1), (name, one, other)
            else:
                assert value == other[name], (name, one, other)
