"""What the operators here need of rows, and by which columns their work can be kept apart.

A subclass that changes how an operator works is treated like any class of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from operators.expressions import Col, RowExpr
from windowlib.attributes import Several
from windowlib.operator import Operator
from windowlib.policies import Time
from windowlib.spec import Sliding
from windowlib.splitting import Names, by_window, names_in, works_as

if TYPE_CHECKING:
    from operators.aggregate import Aggregate
    from operators.dedup import Dedup
    from operators.join import Join
    from windowlib.folds import Fold


def unchanged(operator: Operator) -> bool:
    """Whether it works as the operator here does that it is, or that it is a subclass of."""
    kinds = type(operator).__mro__
    return works_as(operator, next(k for k in kinds if k.__module__.startswith("operators.")))


class Stateless(Operator):
    """An operator that looks at one row at a time."""

    def splits_by(self, port: int) -> Names | None:
        """By nothing: rows never meet, if the functions it was given keep nothing either."""
        return None if unchanged(self) else super().splits_by(port)


class Partitioned(Operator):
    """An operator that keeps nothing but what is in the partitions of its only window."""

    def splits_by(self, port: int) -> Names | None:
        """By the key of its window."""
        return by_window(self) if unchanged(self) else super().splits_by(port)


# -- columns --------------------------------------------------------------------------------------


def read_names(attributes: Iterable[Any]) -> Names | None:
    """The columns that attributes read; None if one of them may read anything.

    >>> from operators import col
    >>> read_names(["x", RowExpr(col("y") * 2), None]), read_names([len])
    (('x', 'y'), None)
    """
    found: dict[str, None] = {}
    for attribute in attributes:
        names = _read(attribute)
        if names is None:
            return None
        found |= dict.fromkeys(names)
    return tuple(found)


def _read(attribute: Any) -> Names | None:
    if isinstance(attribute, Several):
        return read_names(attribute.attributes)
    if isinstance(attribute, RowExpr):
        leaves = attribute.expression.leaves()
        return read_names(leaf.name for leaf in leaves if isinstance(leaf, Col))
    return names_in(attribute)


def aggregate_needs(operator: Aggregate) -> Names | None:
    """The columns of the window, of groups, and of functions; late rows go on whole."""
    (spec,) = operator.windows
    if spec is None or operator.late == "port" or not unchanged(operator):
        return None
    window = (attribute for attribute, _ in Operator.reads(operator, 0))
    recipes = operator.outputs.recipes.values()
    functions = (recipe.attribute for recipe in recipes)
    return read_names([*window, operator.group_by, *functions, operator.order_by])


def join_needs(operator: Join, port: int) -> Names | None:
    """Of the right rows of a semi or anti join only what finds them; else whole rows."""
    asked = operator._once and port == 1 and operator._where is None
    if not asked or not unchanged(operator):
        return None
    return read_names(attribute for attribute, _ in operator.reads(port))


# -- farms ----------------------------------------------------------------------------------------


def aggregate_functions(operator: Aggregate) -> list[tuple[str, Fold]] | None:
    """The functions of the outputs and of the condition; None if a subclass changes the work."""
    if not unchanged(operator):
        return None
    folds = zip(operator.outputs.recipes, operator._plan.folds, strict=True)
    return [(operator.outputs.aggregates[which].shown, fold) for which, fold in folds]


def aggregate_beyond(operator: Aggregate) -> str:
    """What the rows of a firing depend on beside its window."""
    if not unchanged(operator):
        return Operator.beyond_window(operator)
    (spec,) = operator.windows
    if spec is not None and spec.forget is not None:
        return "which partitions are evicted"
    if operator._only_changes:
        return 'the row before (emit="changed")'
    return "" if operator.late == "keep" else f"which rows are late (late={operator.late!r})"


# -- keys -----------------------------------------------------------------------------------------


def dedup_splits(operator: Dedup) -> Names:
    """The key of the window; and what makes rows equal, if only time makes it forget."""
    (spec,) = operator.windows
    assert spec is not None
    by, on = names_in(spec.by), names_in(operator.on)
    if by is None:
        return ()
    # Otherwise the rows of one value push out, or make old, those of another.
    alone = isinstance(spec.evict, Time) and spec.forget is None
    return tuple(dict.fromkeys((*by, *(on or ())))) if alone else by


def join_splits(operator: Join, port: int) -> Names:
    """Of the columns that must be equal those by which rows do not evict one another, either."""
    if _named_by_others(operator):
        return ()
    pairs = zip(*operator._keys.columns, strict=True)
    sides = operator.windows
    return tuple(
        str(pair[port])
        for pair in dict.fromkeys(pairs)
        if all(_apart(spec, column) for spec, column in zip(sides, pair, strict=True))
    )


def _apart(spec: Any, column: Any) -> bool:
    """Whether rows that differ in a column leave a side of a join for reasons of their own."""
    from operators.join_checks import stores

    assert isinstance(spec, Sliding)
    if not isinstance(column, str):
        return False
    alone = isinstance(spec.evict, Time) and spec.forget is None
    by = spec.by if isinstance(spec.by, tuple) else (spec.by,)
    return alone or not stores(spec) or column in by


def _named_by_others(operator: Join) -> bool:
    """Whether a column of a row without a match is called as the rows of the other side say."""
    if operator._once or operator._apart or operator._select is not None:
        return False
    sides = zip(operator._outer, operator._suffixes, strict=True)
    return any(outer and suffix for outer, suffix in sides)
