"""Expressions over columns and over aggregates: arithmetic and comparison, nulls as in SQL.

`col("price") * col("qty")` is computed from a row and may stand wherever a column name may.
`agg.sum("notional") / agg.sum("qty")` is computed from the results of a window. A null operand
gives null, and so does a division by zero; but false & null is false, and true | null is true.
A column of PySpark's, as `F.col("price")`, becomes an expression where it meets one.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any, NoReturn

from windowlib.attributes import Getter
from windowlib.errors import ModelError, SchemaError
from windowlib.runtime.schema_text import schema_of

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
}
ABSORBING: dict[str, bool] = {"&": False, "|": True}
"""The truth of one operand that decides the result, whatever the other."""
INLINE = frozenset(["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">="])
"""Signs whose Python operator raises for a null, so that the generated text can leave it to us."""
CASTABLE = (str, int, float, Decimal)
TRUTHS = {"true": True, "false": False}
CASTS = "tinyint, smallint, int, bigint, float, double, decimal(10, 2), string or boolean"


class Expr:
    """A value that is computed later; operators on it make larger expressions."""

    def leaves(self) -> Iterator[Expr]:
        """The columns or aggregates that it is made of."""
        yield self

    def evaluate(self, value_of: Callable[[Expr], Any]) -> Any:
        """The result, given the values of the leaves."""
        return value_of(self)

    def text(self, text_of: Callable[[Expr], str]) -> str:
        """Python source of the expression for operands that are not null."""
        return text_of(self)

    def columnar(self, column_of: Callable[[Expr], Any]) -> Any:
        """The result as a column, given those of the leaves."""
        return column_of(self)

    def cast(self, kind: str) -> Expr:
        """The value as another type: a number, text, or a boolean; null stays null.

        Numbers become whole ones by dropping their places, text becomes what it spells. A value
        that does not fit is refused.

        Args:
            kind: the type in Spark's words, such as "double", "bigint" or "decimal(10, 2)".
        """
        return Cast(self, kind)

    def __bool__(self) -> NoReturn:
        msg = (
            f"{self!r}: an expression is neither true nor false before there are rows. Combine "
            f"conditions with & and |, not with `and` and `or`."
        )
        raise ModelError(msg)

    def __add__(self, other: Any) -> Expr:
        return Binary("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return Binary("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return Binary("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return Binary("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return Binary("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return Binary("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return Binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return Binary("/", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return Binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return Binary("//", other, self)

    def __mod__(self, other: Any) -> Expr:
        return Binary("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return Binary("%", other, self)

    def __pow__(self, other: Any) -> Expr:
        return Binary("**", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return Binary("**", other, self)

    def __neg__(self) -> Expr:
        return Negative(self)

    def __invert__(self) -> Expr:
        return Binary("==", self, False)

    def __lt__(self, other: Any) -> Expr:
        return Binary("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return Binary("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return Binary(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return Binary(">=", self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return Binary("==", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return Binary("!=", self, other)

    def __and__(self, other: Any) -> Expr:
        return Binary("&", self, other)

    def __or__(self, other: Any) -> Expr:
        return Binary("|", self, other)

    __hash__ = object.__hash__  # of the object: `==` makes an expression


class Binary(Expr):
    """Two operands and a sign."""

    def __init__(self, sign: str, left: Any, right: Any) -> None:
        self.sign, self.left, self.right = sign, from_spark(left), from_spark(right)

    def leaves(self) -> Iterator[Expr]:
        """The leaves of both operands."""
        for operand in (self.left, self.right):
            if isinstance(operand, Expr):
                yield from operand.leaves()

    def evaluate(self, value_of: Callable[[Expr], Any]) -> Any:
        """Null if an operand is, or if it divides by zero."""
        left, right = (
            operand.evaluate(value_of) if isinstance(operand, Expr) else operand
            for operand in (self.left, self.right)
        )
        if left is None or right is None:
            decides = ABSORBING.get(self.sign)
            known = [each for each in (left, right) if each is not None and bool(each) is decides]
            return known[0] if known else None
        try:
            return SIGNS[self.sign](left, right)
        except (TypeError, ArithmeticError) as error:
            # Decimals have another error for the remainder of a division by zero.
            if isinstance(error, ZeroDivisionError) or (self.sign == "%" and right == 0):
                return None
            msg = f"{self!r}: {left!r} {self.sign} {right!r} has no value ({error})."
            raise SchemaError(f"{msg} Use operands of types that mix.") from error

    def columnar(self, column_of: Callable[[Expr], Any]) -> Any:
        """The sign applied to both columns at once."""
        from windowlib.columnar.arrays.arithmetic import binary

        left, right = (
            operand.columnar(column_of) if isinstance(operand, Expr) else operand
            for operand in (self.left, self.right)
        )
        return binary(self.sign, left, right)

    def text(self, text_of: Callable[[Expr], str]) -> str:
        """The operands' texts with the sign between them."""
        sign = {"&": "and", "|": "or"}.get(self.sign, self.sign)
        shown = (
            operand.text(text_of) if isinstance(operand, Expr) else f"({operand!r})"
            for operand in (self.left, self.right)
        )
        return f"({f' {sign} '.join(shown)})"

    def __repr__(self) -> str:
        return f"({self.left!r} {self.sign} {self.right!r})"


class Negative(Expr):
    """An operand with the other sign."""

    def __init__(self, operand: Expr) -> None:
        self.operand = operand

    def leaves(self) -> Iterator[Expr]:
        """The leaves of the operand."""
        return self.operand.leaves()

    def evaluate(self, value_of: Callable[[Expr], Any]) -> Any:
        """Null if the operand is."""
        value = self.operand.evaluate(value_of)
        try:
            return None if value is None else -value
        except TypeError as error:
            msg = f"{self!r}: -{value!r} has no value ({error}). Use a number."
            raise SchemaError(msg) from error

    def columnar(self, column_of: Callable[[Expr], Any]) -> Any:
        """The column with the other sign."""
        from windowlib.columnar.arrays.arithmetic import negative

        return negative(self.operand.columnar(column_of))

    def text(self, text_of: Callable[[Expr], str]) -> str:
        """The operand's text after the sign."""
        return f"(-{self.operand.text(text_of)})"

    def __repr__(self) -> str:
        return f"(-{self.operand!r})"


class When(Expr):
    """An operand where a condition is true; elsewhere null."""

    def __init__(self, condition: Expr, operand: Any) -> None:
        self.condition, self.operand = condition, operand

    def leaves(self) -> Iterator[Expr]:
        """The leaves of the condition and of the operand."""
        yield from self.condition.leaves()
        if isinstance(self.operand, Expr):
            yield from self.operand.leaves()

    def evaluate(self, value_of: Callable[[Expr], Any]) -> Any:
        """Null unless the condition is true."""
        if not self.condition.evaluate(value_of):
            return None
        constant = not isinstance(self.operand, Expr)
        return self.operand if constant else self.operand.evaluate(value_of)

    def columnar(self, column_of: Callable[[Expr], Any]) -> Any:
        """The column of the operand with nulls where the condition is not true."""
        from windowlib.columnar.arrays.arithmetic import where

        constant = not isinstance(self.operand, Expr)
        operand = self.operand if constant else self.operand.columnar(column_of)
        return where(self.condition.columnar(column_of), operand)

    def __repr__(self) -> str:
        return f"when({self.condition!r}, {self.operand!r})"


class Cast(Expr):
    """An operand as another type."""

    def __init__(self, operand: Expr, kind: str) -> None:
        self.operand, self.kind, self.type = operand, kind, _cast_type(kind, f"{operand!r}.cast")

    def __reduce__(self) -> tuple[Any, ...]:
        return Cast, (self.operand, self.kind)

    def leaves(self) -> Iterator[Expr]:
        """The leaves of the operand."""
        return self.operand.leaves()

    def evaluate(self, value_of: Callable[[Expr], Any]) -> Any:
        """Null if the operand is."""
        value = self.operand.evaluate(value_of)
        return None if value is None else _cast_value(value, self.type, repr(self))

    def columnar(self, column_of: Callable[[Expr], Any]) -> Any:
        """The column as another type."""
        from windowlib.columnar.arrays.arithmetic import cast

        return cast(self.operand.columnar(column_of), self.type)

    def __repr__(self) -> str:
        return f"{self.operand!r}.cast({quoted(self.kind)})"


def _cast_type(kind: str, owner: str) -> Any:
    """The Arrow type for a type in Spark's words, if values can become it."""
    import pyarrow as pa

    try:
        found = schema_of(f"x {kind}", owner).field(0).type
    except SchemaError:
        found = None
    types = pa.types
    known = found is not None and any(
        test(found)
        for test in (
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_string,
            types.is_boolean,
        )
    )
    if not known:
        raise ModelError(f"{owner}({kind!r}): not a type to cast to. Use {CASTS}.")
    return found


def _cast_value(value: Any, kind: Any, owner: str) -> Any:
    """A value as one of an Arrow type.

    >>> import pyarrow as pa
    >>> [_cast_value(x, pa.int32(), "x") for x in (7.9, -7.9, "12", True, Decimal("1e2"))]
    [7, -7, 12, 1, 100]
    """
    import pyarrow as pa

    try:
        if not isinstance(value, CASTABLE):
            raise TypeError("only numbers, text and booleans are cast")
        if pa.types.is_integer(kind):
            return _integer(value, kind.bit_width)
        if pa.types.is_floating(kind):
            return _floating(value, kind.bit_width)
        if pa.types.is_decimal(kind):
            return _decimal(value, kind.precision, kind.scale)
        return _boolean(value) if pa.types.is_boolean(kind) else _text(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        msg = (
            f"{owner}: {value!r} is no {kind} ({error}). Filter such rows before, or cast to a "
            f"type that holds them."
        )
        raise SchemaError(msg) from error


def _integer(value: Any, bits: int) -> int:
    found = int(value.strip()) if isinstance(value, str) else math.trunc(value)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError(f"it does not fit into {bits} bits")
    return found


def _floating(value: Any, bits: int) -> float:
    found = float(value)
    return found if bits == 64 else ctypes.c_float(found).value


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    exact = repr(value) if isinstance(value, float) else value
    with localcontext(prec=precision):
        try:
            return Decimal(exact).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        except InvalidOperation:
            raise ValueError(f"it has no {precision} digits, {scale} of them places") from None


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        if value.strip().lower() not in TRUTHS:
            raise ValueError("text is true or false")
        return TRUTHS[value.strip().lower()]
    return bool(value != 0)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


class Col(Expr):
    """A column of the input, by name or position."""

    def __init__(self, name: str | int) -> None:
        if isinstance(name, bool) or not isinstance(name, str | int):
            msg = f'col({name!r}): not a column. Name one, such as col("price"), or give its index.'
            raise ModelError(msg)
        self.name = name
        self.getter = Getter(name, repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Col, (self.name,)

    def __repr__(self) -> str:
        return f"col({quoted(self.name)})"


def col(name: str | int) -> Expr:
    """A column of the input rows, to compute with.

    >>> col("price") * col("qty")
    (col("price") * col("qty"))
    """
    return Col(name)


def from_spark(value: Any) -> Any:
    """A column of PySpark's as an expression; anything else as it is."""
    kind = type(value)
    if kind.__name__ != "Column" or not kind.__module__.startswith("pyspark."):
        return value
    from windowlib.operators.spark_columns import expression_of

    return expression_of(value)


class RowExpr:
    """An expression over columns as an attribute that windows and functions can read."""

    def __init__(self, expression: Expr) -> None:
        for leaf in expression.leaves():
            if not isinstance(leaf, Col):
                msg = (
                    f"{expression!r}: {leaf!r} is known only for a whole window, not for a row. "
                    f"Combine aggregates outside of functions."
                )
                raise ModelError(msg)
        self.expression = expression
        self.__qualname__ = repr(expression)

    def __call__(self, row: Any) -> Any:
        """The value for a row."""
        return self.expression.evaluate(lambda leaf: leaf.getter(row))  # type: ignore[attr-defined]

    def columnar(self, inputs: Any) -> Any:
        """The values for all rows of a batch (`windowlib.columnar.inputs`)."""
        return self.expression.columnar(lambda leaf: inputs.read(leaf.name)[0])  # type: ignore[attr-defined]

    def inline(self, variable: str, sample: object) -> str | None:
        """Source text, unless an operand cannot be written as one."""
        if not is_inlinable(self.expression):
            return None
        texts = {
            leaf: leaf.getter.inline(variable, sample)  # type: ignore[attr-defined]
            for leaf in self.expression.leaves()
        }
        return None if None in texts.values() else self.expression.text(texts.__getitem__)

    def __repr__(self) -> str:
        return repr(self.expression)


def row_attribute(column: Any) -> Any:
    """The attribute that reads a column: its name, an expression as a callable; others as they are.

    >>> row_attribute(col("price")), row_attribute(col("price") * 2)
    ('price', (col("price") * 2))
    """
    column = from_spark(column)
    if isinstance(column, Col):
        return column.name
    return RowExpr(column) if isinstance(column, Expr) else column


def quoted(value: object) -> str:
    """A value as source text: text in double quotes, where that needs no escapes."""
    simple = isinstance(value, str) and value.isprintable() and not {'"', "\\"} & set(value)
    return f'"{value}"' if simple else repr(value)


def is_inlinable(operand: Any) -> bool:
    """Whether source text says the same: signs that refuse nulls, and constants with a literal."""
    if isinstance(operand, When | Cast):
        return False
    if isinstance(operand, Negative):
        return is_inlinable(operand.operand)
    if isinstance(operand, Binary):
        return operand.sign in INLINE and is_inlinable(operand.left) and is_inlinable(operand.right)
    literal = isinstance(operand, int | str) or (
        isinstance(operand, float) and operand - operand == 0
    )
    return isinstance(operand, Expr) or literal
