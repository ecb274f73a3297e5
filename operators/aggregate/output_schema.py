"""The Arrow types of an aggregation's columns, from those of its input.

They depend on the types alone, not on the rows, so that every batch of output has the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windowlib.attributes import Several
from windowlib.durations import length
from windowlib.errors import SchemaError
from windowlib.event_time.axis import DAY
from windowlib.operators.aggregate.output_columns import AggregateOutputs, key_names
from windowlib.operators.expressions import Binary, Cast, Col, Expr, Negative, RowExpr, When
from windowlib.operators.functions.call import ROW, Agg
from windowlib.operators.functions.firing_facts import BOUNDS
from windowlib.operators.functions.output_types import (
    QUOTIENT_PLACES,
    decimal_of,
    is_addable,
    is_number,
)
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import Spec


def output_schema(outputs: AggregateOutputs, spec: Spec, group_by: Any, schema: Any) -> Any:
    """The columns of the output; a type that only the rows tell is null.

    A null type in the result stands for "as the values are": what a function of the user's gives.
    """
    import pyarrow as pa

    fields = []
    for keys, word in ((spec.by, "key"), (group_by, "group")):
        parts = keys if isinstance(keys, tuple) else (keys,)
        for name, part in zip(key_names(keys, word), parts, strict=False):
            fields.append((name, attribute_type(part, schema)))
    for name, each in outputs.expressions.items():
        bound = isinstance(each, Agg) and each.firing in BOUNDS
        fields.append((name, bound_type(spec, schema) if bound else _output_type(each, schema)))
    unique = dict(fields)  # a column may be a key and a group
    return pa.schema([pa.field(name, kind or pa.null()) for name, kind in unique.items()])


def bound_type(spec: Spec, schema: Any) -> Any:
    """The type of where windows of event time start and end, None if the values tell."""
    import pyarrow as pa

    event = spec.evict.event
    kind = None if event is None else attribute_type(event.attribute, schema)
    amounts = [length(amount) for _, amount in spec.amounts]
    if kind is None:
        return None
    if pa.types.is_timestamp(kind):  # windows may start between two seconds
        return kind if kind.unit == "ns" else pa.timestamp("us", kind.tz)
    if pa.types.is_date(kind):
        days = all(amount % DAY == 0 for amount in amounts)
        return pa.date32() if days else pa.timestamp("us")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_integer(kind):
        return pa.int64() if all(isinstance(each, int) for each in amounts) else pa.float64()
    return pa.float64() if pa.types.is_floating(kind) else None


def check_sums(outputs: AggregateOutputs, schema: Any) -> None:
    """Refuse a sum, or what is made of one, over a column of a type that does not add up."""
    for call in outputs.calls.values():
        name = call.attribute
        kind = attribute_type(name, schema) if isinstance(name, str) else None
        if call.function.adds and kind is not None and not is_addable(kind):
            fix = "Use a column of numbers, or cast it before."
            raise SchemaError(f"{call!r}: a column of {kind} does not add up. {fix}")


def _output_type(expression: Expr, schema: Any) -> Any:
    """The type of an expression of aggregates, None if it is not known."""
    if isinstance(expression, Agg):
        return _aggregate_type(expression, schema)
    return _expression_type(expression, lambda leaf: _output_type(leaf, schema))


def _expression_type(expression: Any, type_of: Callable[[Expr], Any]) -> Any:
    """The type of arithmetic."""
    import pyarrow as pa

    if isinstance(expression, Cast):
        return expression.type
    if isinstance(expression, When):
        return _expression_type(expression.operand, type_of)
    if isinstance(expression, Negative):
        return _negated_type(_expression_type(expression.operand, type_of))
    if not isinstance(expression, Binary):
        return type_of(expression) if isinstance(expression, Expr) else _constant_type(expression)
    if expression.sign in ("<", "<=", ">", ">=", "==", "!=", "&", "|"):
        return pa.bool_()
    kinds = [_expression_type(each, type_of) for each in (expression.left, expression.right)]
    if not all(kind is not None and is_number(kind) for kind in kinds):
        return None
    if any(map(pa.types.is_floating, kinds)):
        return pa.float64()
    if any(map(pa.types.is_decimal, kinds)):
        scale = max(getattr(kind, "scale", 0) for kind in kinds)
        return decimal_of(scale + QUOTIENT_PLACES)
    if expression.sign == "**":  # a negative power of a whole number is none
        return None
    return pa.float64() if expression.sign == "/" else pa.int64()


def _negated_type(kind: Any) -> Any:
    """The type of values with the other sign: -(-128) is no int8, and -True is -1."""
    import pyarrow as pa

    if kind is None or pa.types.is_decimal(kind) or pa.types.is_duration(kind):
        return kind
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.int64() if is_number(kind) else None


def _constant_type(value: Any) -> Any:
    import pyarrow as pa

    return pa.scalar(value).type if isinstance(value, int | float) else None


def _aggregate_type(aggregate: Agg, schema: Any) -> Any:
    if aggregate.firing is not None:
        return aggregate.firing.output_type((), {})
    call = aggregate.call
    assert call is not None
    kinds = [attribute_type(part, schema) for part in _columns(call.attribute)]
    return call.function.output_type(kinds, dict(call.options))


def _columns(attribute: Attribute | None) -> Sequence[Any]:
    """The columns that a function reads."""
    if attribute is None:
        return ()
    return attribute.attributes if isinstance(attribute, Several) else (attribute,)


def attribute_type(attribute: Attribute | None, schema: Any) -> Any:
    """The type of a column that is read, None if only the rows tell."""
    import pyarrow as pa

    if isinstance(attribute, str):
        index = schema.get_field_index(attribute)
        return None if index < 0 else _decoded(schema.field(index).type)
    if attribute is ROW:
        return pa.struct([pa.field(field.name, _decoded(field.type)) for field in schema])
    if isinstance(attribute, RowExpr):
        return _expression_type(
            attribute.expression,
            lambda leaf: attribute_type(leaf.name, schema) if isinstance(leaf, Col) else None,
        )
    return None


def _decoded(kind: Any) -> Any:
    """A type without its encoding."""
    import pyarrow as pa

    encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return _decoded(kind.value_type) if encoded else kind
