"""Columns of PySpark as expressions: what means the same here is translated, the rest refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NoReturn

from windowlib.errors import ModelError
from windowlib.operators import agg
from windowlib.operators.expressions import Binary, Cast, Col, Expr, Negative, When

if TYPE_CHECKING:
    from windowlib.spark.column_tree import ColumnTree

SIGNS = {"=": "==", "==": "==", "and": "&", "or": "|"}
SIGNS |= {sign: sign for sign in ("+", "-", "*", "/", "<", "<=", ">", ">=")}
_or = partial(Binary, "|")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "negative": Negative,
    "!": lambda condition: Binary("==", condition, False),
    "not": lambda condition: Binary("==", condition, False),
    "power": lambda a, b: Cast(Binary("**", a, b), "double"),
    "when": When,
    "in": lambda column, *values: reduce(_or, [Binary("==", column, value) for value in values]),
}
DIFFERENT = {
    "%": "the remainder has the sign of the first operand there, of the second here",
    "<=>": "two nulls are equal to it, and nulls are not compared here",
}


def expression_of(column: Any) -> Expr:
    """A column of PySpark's as an expression that every host computes."""
    from windowlib.spark.column_tree import column_tree

    found = _translated(column_tree(column), column)
    if not isinstance(found, Expr):
        _refuse(column, "it is a constant", f"Pass the value itself, {found!r}")
    return found


def _translated(tree: ColumnTree, column: Any) -> Any:
    """The expression of a tree, or the value of a constant."""
    if tree.kind == "column":
        return Col(tree.value)
    if tree.kind == "literal":
        return tree.value
    if tree.kind == "other":
        before = 'Compute it before, as df.withColumn("c", ...), and read "c"'
        _refuse(column, f"{tree.value} is not translated", before)
    known = tree.value in FUNCTIONS or tree.value in SIGNS
    if tree.kind == "function" and (not known or (tree.value == "in" and len(tree.parts) == 1)):
        _refuse_function(column, tree.value)
    parts = [_translated(part, column) for part in tree.parts]
    if tree.kind == "cast":
        return Cast(parts[0], tree.value)
    if tree.value in SIGNS:
        return Binary(SIGNS[tree.value], *parts)
    return FUNCTIONS[tree.value](*parts)


def _refuse_function(column: Any, name: str) -> NoReturn:
    own = agg.ELSEWHERE.get(name, name)
    if own in agg.__all__:
        _refuse(column, f"{name} is an aggregate of Spark's", f'Use agg.{own}, as agg.{own}("x")')
    why = DIFFERENT.get(name, f"{name} is not translated")
    _refuse(column, why, 'Compute it before, as df.withColumn("c", ...), and read "c"')


def _refuse(column: Any, why: str, fix: str) -> NoReturn:
    raise ModelError(f"{column}: {why}. {fix}.")
