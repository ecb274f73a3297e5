"""Base classes of operators, by what they keep and send: stateless, partitioned, pass-through.

A base class tells hosts by which columns the work can be split. A subclass that changes how an
operator works is treated like any class of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from windowlib.attributes import Several
from windowlib.operators.arrow_output import pass_through_schema
from windowlib.operators.expressions import Col, RowExpr
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import collect_failures
from windowlib.runtime.splitting import Names, by_window, names_in, works_as
from windowlib.window.container import Window
from windowlib.window.failure import raise_first


def unchanged(operator: Operator) -> bool:
    """Whether an operator works as the built-in class that it is, or is derived from."""
    kinds = type(operator).__mro__
    ours = (k for k in kinds if k.__module__.startswith("windowlib.operators."))
    return works_as(operator, next(ours))


class Stateless(Operator):
    """An operator on single rows, without state."""

    def splits_by(self, port: int) -> Names | None:
        """By anything: rows are independent, as long as the user's functions keep no state."""
        return None if unchanged(self) else super().splits_by(port)

    def keeps_order(self, port: int) -> bool:
        """Each row is sent on at once."""
        return unchanged(self)


class Partitioned(Operator):
    """An operator whose only state are the partitions of its window."""

    def splits_by(self, port: int) -> Names | None:
        """By the key of its window."""
        return by_window(self) if unchanged(self) else super().splits_by(port)


class PassThrough(Operator):
    """An operator that sends rows on as they are."""

    def schema(self, *columns: Any) -> Any:
        """The columns of the input, or of all inputs."""
        return pass_through_schema(*columns)

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        return pass_through_schema(*columns)

    def passes(self, column: str, port: int) -> bool:
        """Every column, unless a subclass handles rows in its own way."""
        return unchanged(self)


def each_partition(
    window: Window[Any, Any], keys: Iterable[Any], act: Callable[[Any], None]
) -> None:
    """Call `act(key)` for each partition that holds tuples, also after a failure.

    A key may occur twice, because a handler may select a partition twice.
    """
    failures: list[Exception] = []
    for key in dict.fromkeys(keys):
        if window.size(key):
            with collect_failures(failures):
                act(key)
    raise_first(failures)


def read_names(attributes: Iterable[Any]) -> Names | None:
    """The columns that attributes read; None if one of them may read anything.

    >>> from windowlib.operators import col
    >>> read_names(["x", RowExpr(col("y") * 2), None]), read_names([len])
    (('x', 'y'), None)
    """
    found: dict[str, None] = {}
    for attribute in attributes:
        names = _attribute_columns(attribute)
        if names is None:
            return None
        found |= dict.fromkeys(names)
    return tuple(found)


def _attribute_columns(attribute: Any) -> Names | None:
    if isinstance(attribute, Several):
        return read_names(attribute.attributes)
    if isinstance(attribute, RowExpr):
        leaves = attribute.expression.leaves()
        return read_names(leaf.name for leaf in leaves if isinstance(leaf, Col))
    return names_in(attribute)
