"""The rows of several inputs as one sequence: in the order of their columns, if they name any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.sorting import order_of
from windowlib.errors import SchemaError
from windowlib.window.arrow import in_order
from windowlib.window.consumer import Decline


def merged_inputs(
    tables: Sequence[Any], orders: Sequence[Any], *, merge: bool = True
) -> Iterator[tuple[int, pa.Table]]:
    """Runs of rows with the input they are for.

    If every input has columns that order it, the inputs are merged by these, at equal values the
    earlier input first. Otherwise, and if nothing depends on it (`merge=False`), all rows of the
    first input come before those of the second.

    >>> import pyarrow as pa
    >>> left, right = pa.table({"ts": [1, 4]}), pa.table({"at": [1, 2]})
    >>> [(port, run.num_rows) for port, run in merged_inputs([left, right], ["ts", "at"])]
    [(0, 1), (1, 2), (0, 1)]
    """
    there = [port for port, table in enumerate(tables) if table is not None and table.num_rows]
    ordered = {
        port: tables[port] if orders[port] is None else in_order(tables[port], orders[port])
        for port in there
    }
    if len(there) < 2 or not merge or any(order is None for order in orders):
        yield from ordered.items()
        return
    sides = np.repeat(there, [ordered[port].num_rows for port in there])
    sides = sides[_order([_keys(ordered[port], orders[port]) for port in there])]
    cuts = np.flatnonzero(np.diff(sides)) + 1
    taken = dict.fromkeys(there, 0)
    for run in np.split(sides, cuts):
        port, at = int(run[0]), taken[int(run[0])]
        yield port, ordered[port].slice(at, len(run))
        taken[port] += len(run)


def order_columns(order: Any) -> tuple[Any, ...]:
    """The columns of an order, or of none.

    >>> order_columns("ts"), order_columns(("day", "n")), order_columns(None)
    (('ts',), ('day', 'n'), ())
    """
    return order if isinstance(order, tuple) else () if order is None else (order,)


def time_order(times: str, order: Any) -> tuple[Any, ...]:
    """The columns that order rows by time, and those of one time as the operator says.

    >>> time_order("ts", None), time_order("ts", ("ts", "n")), time_order("ts", "n")
    (('ts',), ('ts', 'n'), ('ts', 'n'))
    """
    return tuple(dict.fromkeys((times, *order_columns(order))))


def input_orders(
    orders: Sequence[Any], times: str | None, *, apart: bool
) -> list[tuple[Any, ...]]:  # fmt: skip
    """For each input, the columns that order its rows among those of all inputs.

    >>> input_orders(["ts", ("at", "n")], None, apart=False)
    [('ts',), ('at', 'n')]
    >>> input_orders(["n", None], "ts", apart=False)
    [('ts',), ('ts',)]
    """
    ordered = apart or all(order is not None for order in orders)
    found = [order_columns(order if ordered else None) or order_columns(times) for order in orders]
    return found if times is None or apart else [time_order(times, own) for own in found]


def _keys(table: pa.Table, order: Any) -> pa.Table:
    names = order_columns(order)
    return table.select(list(names)).rename_columns([str(n) for n in range(len(names))])


def _order(keys: Sequence[pa.Table]) -> Any:
    try:
        whole = pa.concat_tables(keys, promote_options="permissive").combine_chunks()
        order = order_of(whole, whole.column_names)
    except (pa.ArrowException, Decline) as error:
        types = " and ".join(", ".join(str(f.type) for f in table.schema) for table in keys)
        msg = (
            f"order_by: the columns of the inputs cannot be compared ({types}). Order both by "
            f"columns of one type."
        )
        raise SchemaError(msg) from error
    return np.arange(whole.num_rows) if order is None else order
