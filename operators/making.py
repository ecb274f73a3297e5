"""From a call such as `agg.sum("x")` to an aggregate: its text, its columns and its recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from operators.expressions import Col, Expr, RowExpr, quoted
from windowlib.attributes import Several
from windowlib.errors import ModelError
from windowlib.folds import Fold
from windowlib.policies import Attribute, attribute_text, is_attribute
from windowlib.summarizers import Recipe


class _Row:
    """Reads the whole row."""

    __qualname__ = "row"

    def __call__(self, row: Any) -> Any:
        return row

    def __reduce__(self) -> str:
        return "ROW"

    def columnar(self, inputs: Any) -> Any:
        """All rows of a batch (`windowlib.columnar.inputs`)."""
        return inputs.whole()

    def inline(self, variable: str, sample: object) -> str:
        """The variable itself."""
        return variable


ROW = _Row()


class Agg(Expr):
    """An aggregate of a window: a function and the columns it reads."""

    def __init__(
        self,
        shown: str,
        columns: tuple[Attribute, ...],
        recipe: Recipe | None,
        callables: tuple[Callable[..., Any], ...] = (),
    ) -> None:
        self.shown, self.columns, self.recipe = shown, columns, recipe
        self.callables = callables

    @property
    def identity(self) -> tuple[Any, ...]:
        """The same for aggregates that compute the same; two lambdas look alike and are not."""
        return (self.shown, *map(id, self.callables))

    def __repr__(self) -> str:
        return self.shown


def shown_text(value: Any) -> str:
    """An argument as one writes it."""
    if isinstance(value, str):
        return quoted(value)
    plain = isinstance(value, Expr) or not callable(value)
    return repr(value) if plain else attribute_text(value)


def made(
    function: str,
    make: Callable[..., Fold],
    columns: dict[str, Any],
    hidden: tuple[str, ...] = (),
    **options: Any,
) -> Agg:
    """An aggregate of a function; `columns` by argument name, "" for those without one.

    `hidden` names options that are not shown, or is the whole text.
    """
    given = {name: column for name, column in columns.items() if column is not None}
    shown = [
        f"{name}={shown_text(c)}" if name.isidentifier() else shown_text(c)
        for name, c in given.items()
    ]
    shown += [f"{name}={shown_text(v)}" for name, v in options.items() if name not in hidden]
    text = f"agg.{function}({', '.join(shown)})"
    text = hidden[0] if hidden and hidden[0].startswith("agg.") else text
    attributes = [_attribute(column, text) for column in columns.values()]
    one = attributes[0] if len(attributes) == 1 else Several(attributes, text)
    recipe = Recipe(function, one if attributes else None, tuple(options.items()), make, text)
    read = tuple(each for each in attributes if each is not ROW)
    callables = tuple(each for each in (*columns.values(), *options.values()) if callable(each))
    return Agg(text, read, recipe, callables)


def _attribute(column: Any, owner: str) -> Attribute:
    if column is None:
        return ROW
    if isinstance(column, Col):
        return column.name
    if isinstance(column, Expr):
        return RowExpr(column)
    if not is_attribute(column):
        msg = (
            f"{owner}: {column!r} is no column. Give a name, an index, a callable, or an "
            f'expression such as col("price") * col("qty").'
        )
        raise ModelError(msg)
    found: Attribute = column
    return found


def whole(value: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def refuse(call: str, argument: str, value: Any, fix: str) -> NoReturn:
    """Refuse an argument of a function."""
    raise ModelError(f"agg.{call}({argument}={value!r}): {fix}")
