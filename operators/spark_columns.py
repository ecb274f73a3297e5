"""Columns of PySpark as expressions: what means the same here is translated, the rest refused.

A column, such as `F.col("price") * 2`, is read as a small tree first: a classic one is a tree of
the JVM, one of Spark Connect a message of its protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from typing import Any, Literal, NoReturn

from windowlib.errors import ModelError
from windowlib.operators import agg
from windowlib.operators.expressions import Binary, Cast, Col, Expr, Negative, When

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
CONSTANTS = (bool, int, float, str, Decimal, type(None))
DIFFERENT = {
    "%": "the remainder has the sign of the first operand there, of the second here",
    "<=>": "two nulls are equal to it, and nulls are not compared here",
}


def expression_of(column: Any) -> Expr:
    """A column of PySpark's as an expression that every host computes."""
    found = _expression(column_tree(column), column)
    if not isinstance(found, Expr):
        _refuse(column, "it is a constant", f"Pass the value itself, {found!r}")
    return found


def _expression(tree: ColumnTree, column: Any) -> Any:
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
    parts = [_expression(part, column) for part in tree.parts]
    if tree.kind == "cast":
        return Cast(parts[0], tree.value)
    if tree.value in SIGNS:
        return Binary(SIGNS[tree.value], *parts)
    return FUNCTIONS[tree.value](*parts)


def _refuse_function(column: Any, name: str) -> NoReturn:
    own = agg.OTHER_NAMES.get(name, name)
    if own in agg.__all__:
        _refuse(column, f"{name} is an aggregate of Spark's", f'Use agg.{own}, as agg.{own}("x")')
    why = DIFFERENT.get(name, f"{name} is not translated")
    _refuse(column, why, 'Compute it before, as df.withColumn("c", ...), and read "c"')


def _refuse(column: Any, why: str, fix: str) -> NoReturn:
    raise ModelError(f"{column}: {why}. {fix}.")


@dataclass(frozen=True)
class ColumnTree:
    """A node: a column, a constant, a function of others, a cast, or something else."""

    kind: Literal["column", "literal", "function", "cast", "other"]
    value: Any
    """The name of the column or function, the constant, or the type in Spark's words."""
    parts: tuple[ColumnTree, ...] = ()


def column_tree(column: Any) -> ColumnTree:
    """The tree of a column.

    >>> from windowlib.spark import session
    >>> from pyspark.sql import functions as F
    >>> spark = session("local[1]")
    >>> column_tree(F.col("price") > 2).parts[0]
    ColumnTree(kind='column', value='price', parts=())
    """
    if hasattr(column, "_jc"):
        return _node_tree(column._jc.node())
    return _plan_tree(column.to_plan(None))


def _node_tree(node: Any) -> ColumnTree:
    """The tree of a node of the JVM."""
    kind = node.getClass().getSimpleName()
    if kind == "Alias":
        return _node_tree(node.child())
    if kind == "UnresolvedAttribute" and node.nameParts().size() == 1:
        return ColumnTree("column", node.nameParts().apply(0))
    if kind == "ExpressionColumnNode":  # a column of a DataFrame, such as df.price
        known = node.expression()
        if known.getClass().getSimpleName() == "AttributeReference":
            return ColumnTree("column", known.name())
    if kind == "Literal":
        return _constant(node.value(), node)
    if kind == "Cast":
        return ColumnTree("cast", node.dataType().sql().lower(), (_node_tree(node.child()),))
    if kind == "UnresolvedFunction" and not node.isDistinct():
        return ColumnTree("function", node.functionName(), _node_trees(node.arguments()))
    if kind == "CaseWhenOtherwise" and node.branches().size() == 1 and node.otherwise().isEmpty():
        branch = node.branches().apply(0)
        return ColumnTree("function", "when", (_node_tree(branch._1()), _node_tree(branch._2())))
    return ColumnTree("other", node.sql())


def _node_trees(listed: Any) -> tuple[ColumnTree, ...]:
    return tuple(_node_tree(listed.apply(i)) for i in range(listed.size()))


def _plan_tree(plan: Any) -> ColumnTree:
    """The tree of an expression in the protocol of Spark Connect."""
    kind = plan.WhichOneof("expr_type")
    found = getattr(plan, kind)
    if kind == "alias":
        return _plan_tree(found.expr)
    if kind == "unresolved_attribute":
        name = found.unparsed_identifier
        if name.startswith("`") and name.endswith("`"):
            return ColumnTree("column", name[1:-1].replace("``", "`"))
        return ColumnTree("other", name) if "." in name else ColumnTree("column", name)
    if kind == "literal":
        which = found.WhichOneof("literal_type")
        value: Any = None if which == "null" else getattr(found, which)
        if which in ("date", "timestamp", "timestamp_ntz", "day_time_interval"):
            return ColumnTree("other", f"lit({which})")  # which are numbers here
        return _constant(Decimal(value.value) if which == "decimal" else value, found)
    if kind == "cast":
        return ColumnTree("cast", found.type_str, (_plan_tree(found.expr),))
    if kind == "unresolved_function" and not found.is_distinct:
        return ColumnTree("function", found.function_name, tuple(map(_plan_tree, found.arguments)))
    return ColumnTree("other", kind)


def _constant(value: Any, shown: Any) -> ColumnTree:
    if isinstance(value, CONSTANTS):
        return ColumnTree("literal", value)
    return ColumnTree("other", str(shown.sql() if hasattr(shown, "sql") else shown).strip())
