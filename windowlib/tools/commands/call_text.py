"""Operators from the text of their constructor calls, read as data and never evaluated.

`repr` of an operator is a call of constructors with plain values. This reads such a text: literals,
the operators, policies and functions that come with the library, and arithmetic on their columns.
There is no way from it to any other name, attribute or statement, so a text from a checkpoint can
do no more than describe an operator.
"""

from __future__ import annotations

import ast
import datetime
import operator as arithmetic
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from windowlib.errors import HostError, WindowlibError
from windowlib.runtime.operator import Operator

LONGEST = 1 << 20
SIGNS: dict[type, Callable[..., Any]] = {
    ast.Add: arithmetic.add,
    ast.Sub: arithmetic.sub,
    ast.Mult: arithmetic.mul,
    ast.Div: arithmetic.truediv,
    ast.FloorDiv: arithmetic.floordiv,
    ast.Mod: arithmetic.mod,
    ast.BitOr: arithmetic.or_,
    ast.BitAnd: arithmetic.and_,
    ast.Lt: arithmetic.lt,
    ast.LtE: arithmetic.le,
    ast.Gt: arithmetic.gt,
    ast.GtE: arithmetic.ge,
    ast.Eq: arithmetic.eq,
    ast.NotEq: arithmetic.ne,
}


class NoDescription(Exception):  # noqa: N818 - it says what a text is
    """Raised for a text that is no description of an operator."""


@cache
def constructors() -> Mapping[str, Callable[..., Any]]:
    """The constructors that a description may call, by name; they make values only."""
    import windowlib
    from windowlib import operators
    from windowlib.spark.farms.slice_partials import PartialMerger
    from windowlib.spark.farms.window_stages import ActiveWindows, FiringSender

    values = (
        *("Count", "Delta", "Either", "Event", "FixedSlack", "KSlack", "Landmark", "PartitionAge"),
        *("PartitionCount", "PidSlack", "Punct", "QuantileSlack", "Session", "Sliding", "Time"),
        *("Tumbling", "TupleCount", "Watermark", "Graph"),
    )
    found = {name: getattr(windowlib, name) for name in values}
    found |= {n: getattr(operators, n) for n in operators.__all__ if n != "agg"}
    found |= {f"agg.{name}": getattr(operators.agg, name) for name in operators.agg.__all__}
    found |= {each.__name__: each for each in (PartialMerger, FiringSender, ActiveWindows)}
    times = {"datetime": datetime.datetime, "timedelta": datetime.timedelta, "date": datetime.date}
    found |= {f"datetime.{name}": kind for name, kind in times.items()}
    return found | {"Decimal": Decimal}


def operator_from(text: str) -> Operator:
    """The operator that a text describes.

    >>> operator_from("Batch(Count(size=3))")
    Batch(Count(size=3))
    """
    try:
        if len(text) > LONGEST:
            raise NoDescription(f"it is longer than {LONGEST} characters")
        found = _value(ast.parse(text, mode="eval").body)
    except (NoDescription, SyntaxError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, WindowlibError):
            raise
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        why = "it is no call" if isinstance(error, SyntaxError) else error
        msg = (
            f'the operator "{shown}" cannot be read: {why}. Pass operator=..., built as it '
            f"was, for one with functions or classes of your own."
        )
        raise HostError(msg) from error
    if not isinstance(found, Operator):
        raise HostError(
            f'the operator "{text[:60]}" cannot be read: it is a {type(found).__name__}.'
        )
    return found


def _value(node: ast.expr) -> Any:
    """The value of a part of the text."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple() | ast.List() | ast.Set():
            kinds: dict[type, Any] = {ast.Tuple: tuple, ast.List: list, ast.Set: set}
            return kinds[type(node)](map(_value, node.elts))
        case ast.Dict():
            if None in node.keys:
                raise NoDescription("a dict that is not written out")
            keys = [_value(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(_value, node.values), strict=True))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.UnaryOp(op=ast.Invert()):
            return ~_value(node.operand)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in SIGNS:
            return _arithmetic(SIGNS[type(sign)], _value(left), _value(right))
        case ast.BinOp() if type(node.op) in SIGNS:
            return _arithmetic(SIGNS[type(node.op)], _value(node.left), _value(node.right))
        case ast.Call():
            return _call(node)
        case ast.Name(id="KEY"):
            from windowlib.spec.specification import KEY

            return KEY
        case ast.Name(id="nan" | "inf"):
            return float(node.id)
    raise NoDescription(f"there is no {ast.unparse(node)[:60]!r} in descriptions")


def _arithmetic(sign: Callable[..., Any], left: Any, right: Any) -> Any:
    """Arithmetic on columns and policies; on numbers and texts it is refused."""
    if isinstance(left, int | float | str | tuple | list) and isinstance(
        right, int | float | str | tuple | list
    ):
        raise NoDescription("arithmetic on numbers or texts")
    return sign(left, right)


def _call(node: ast.Call) -> Any:
    name = ast.unparse(node.func)
    make = constructors().get(name)
    if make is None:
        raise NoDescription(f"there is no {name!r} in descriptions")
    if any(keyword.arg is None for keyword in node.keywords):
        options = [each for each in node.keywords if each.arg is None]
        named = {key: value for each in options for key, value in _mapping(each.value).items()}
    else:
        named = {}
    if any(isinstance(each, ast.Starred) for each in node.args):
        raise NoDescription("arguments that are not written out")
    named |= {each.arg: _value(each.value) for each in node.keywords if each.arg is not None}
    return make(*map(_value, node.args), **named)


def _mapping(node: ast.expr) -> dict[str, Any]:
    found = _value(node)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise NoDescription("arguments that are not written out")
    return found
