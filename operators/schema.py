"""The Arrow types of an aggregation's columns, from those of its input.

They depend on the types alone, not on the rows, so that every batch of output has the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from operators.compile import Outputs
from operators.expressions import Binary, Col, Expr, Negative, RowExpr
from operators.keys import key_names
from operators.making import ROW, Agg
from windowlib.attributes import Several
from windowlib.errors import SchemaError
from windowlib.policies import Attribute

PLACES = 6
"""Decimal places that a quotient of decimals has more than its operands."""
WIDEST = 38
"""Digits of a decimal."""

COUNTS = {
    "count",
    "count_distinct",
    "min_count",
    "max_count",
    "approx_count_distinct",
}
LISTS = {"collect", "collect_distinct", "collect_arg_min", "collect_arg_max", "top"}
PICKS = {"any", "first", "last", "nth", "mode", "min", "max", "arg_min", "arg_max"}
FLOATS = {"cov", "corr"}
SUMS = {"sum", "mean", "weighted_mean", "var", "std", *FLOATS}


def output_schema(outputs: Outputs, by: Any, group_by: Any, schema: Any) -> Any:
    """The columns of the output; a type that only the rows tell is null.

    A null type in the result stands for "as the values are": what a function of the user's gives.
    """
    import pyarrow as pa

    fields = []
    for keys, word in ((by, "key"), (group_by, "group")):
        parts = keys if isinstance(keys, tuple) else (keys,)
        for name, part in zip(key_names(keys, word), parts, strict=False):
            fields.append((name, _of_attribute(part, schema)))
    fields += [(name, _of(each, schema)) for name, each in outputs.expressions.items()]
    unique = dict(fields)  # a column may be a key and a group
    return pa.schema([pa.field(name, kind or pa.null()) for name, kind in unique.items()])


def check_sums(outputs: Outputs, schema: Any) -> None:
    """Refuse a sum, or what is made of one, over a column of a type that does not add up."""
    import pyarrow as pa

    types = pa.types
    for recipe in outputs.recipes.values():
        name = recipe.attribute
        kind = _of_attribute(name, schema) if isinstance(name, str) else None
        if recipe.function not in SUMS or kind is None:
            continue
        text = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)
        if text or types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind):
            fix = "Use a column of numbers, or cast it before."
            raise SchemaError(f"{recipe!r}: a column of {kind} does not add up. {fix}")


def _of(expression: Expr, schema: Any) -> Any:
    """The type of an expression of aggregates, None if it is not known."""
    if isinstance(expression, Agg):
        return _of_aggregate(expression, schema)
    return _computed(expression, lambda leaf: _of(leaf, schema))


def _computed(expression: Any, type_of: Callable[[Expr], Any]) -> Any:
    """The type of arithmetic."""
    import pyarrow as pa

    if isinstance(expression, Negative):
        return _negative(_computed(expression.operand, type_of))
    if not isinstance(expression, Binary):
        return type_of(expression) if isinstance(expression, Expr) else _of_constant(expression)
    if expression.sign in ("<", "<=", ">", ">=", "==", "!=", "&", "|"):
        return pa.bool_()
    kinds = [_computed(each, type_of) for each in (expression.left, expression.right)]
    if not all(kind is not None and _number(kind) for kind in kinds):
        return None
    if any(map(pa.types.is_floating, kinds)):
        return pa.float64()
    if any(map(pa.types.is_decimal, kinds)):
        scale = max(getattr(kind, "scale", 0) for kind in kinds)
        return _decimal(scale + PLACES)
    if expression.sign == "**":  # a negative power of a whole number is none
        return None
    return pa.float64() if expression.sign == "/" else pa.int64()


def _negative(kind: Any) -> Any:
    """The type of values with the other sign: -(-128) is no int8, and -True is -1."""
    import pyarrow as pa

    if kind is None or pa.types.is_decimal(kind) or pa.types.is_duration(kind):
        return kind
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.int64() if _number(kind) else None


def _of_constant(value: Any) -> Any:
    import pyarrow as pa

    return pa.scalar(value).type if isinstance(value, int | float) else None


def _of_aggregate(aggregate: Agg, schema: Any) -> Any:
    import pyarrow as pa

    recipe = aggregate.recipe
    if recipe is None:  # of the whole subwindow
        return pa.list_(pa.int64()) if "by_group" in aggregate.shown else pa.int64()
    name = recipe.function
    if name in COUNTS:
        return pa.int64()
    if name == "count_by_distinct":
        return pa.list_(pa.int64())
    if name in FLOATS:
        return pa.float64()
    attribute = recipe.attribute
    parts = attribute.attributes if isinstance(attribute, Several) else (attribute,)
    kinds = [_of_attribute(part, schema) for part in parts]
    if any(kind is None for kind in kinds):
        return None
    if name in LISTS:
        return pa.list_(kinds[0])
    return kinds[0] if name in PICKS else _folded(name, dict(recipe.options), kinds)


def _folded(name: str, options: dict[str, Any], kinds: Sequence[Any]) -> Any:
    """The type of a function that computes with values."""
    import pyarrow as pa

    kind = kinds[0]
    if pa.types.is_list(kind) and name in ("sum", "mean"):
        inner = _folded(name, options, [kind.value_type])
        return None if inner is None else pa.list_(inner)
    if name in ("quantile", "median"):
        computed = options.get("method") == "linear" and _number(kind)
        return _quotient([kind]) if computed else kind
    if name == "sum":
        return _sum(kind)
    if name in ("mean", "weighted_mean", "var", "std"):
        return _quotient(kinds) if all(map(_number, kinds)) else _spell(kind)
    return None


def _sum(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return _decimal(kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.int64() if _number(kind) else _spell(kind)


def _spell(kind: Any) -> Any:
    """Durations add up, and nothing else that is no number."""
    import pyarrow as pa

    return kind if pa.types.is_duration(kind) else None


def _quotient(kinds: Iterable[Any]) -> Any:
    import pyarrow as pa

    decimals = [kind.scale for kind in kinds if pa.types.is_decimal(kind)]
    return _decimal(max(decimals) + PLACES) if decimals else pa.float64()


def _decimal(scale: int) -> Any:
    import pyarrow as pa

    return pa.decimal128(WIDEST, min(scale, WIDEST))


def _number(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def _of_attribute(attribute: Attribute | None, schema: Any) -> Any:
    """The type of a column that is read, None if only the rows tell."""
    import pyarrow as pa

    if isinstance(attribute, str):
        index = schema.get_field_index(attribute)
        return None if index < 0 else _plain(schema.field(index).type)
    if attribute is ROW:
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in schema])
    if isinstance(attribute, RowExpr):
        return _computed(
            attribute.expression,
            lambda leaf: _of_attribute(leaf.name, schema) if isinstance(leaf, Col) else None,
        )
    return None


def _plain(kind: Any) -> Any:
    """A type without its encoding."""
    import pyarrow as pa

    encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return _plain(kind.value_type) if encoded else kind
