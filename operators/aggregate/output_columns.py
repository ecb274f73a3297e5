"""The output columns of an aggregation: the summaries they need, and the rows made of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from windowlib.errors import ModelError, suggestion
from windowlib.operators import agg
from windowlib.operators.aggregate.groups import GroupValues
from windowlib.operators.expressions import Col, Expr, RowExpr, from_spark, is_inlinable
from windowlib.operators.functions.call import Agg
from windowlib.operators.functions.firing_facts import OF_EVENT_TIME
from windowlib.spec.policies import Attribute
from windowlib.summaries.source import compiled
from windowlib.summaries.summarizers import FunctionCall

PARAMETERS = (
    "by",
    "group_by",
    "partial",
    "evicted_partitions",
    "flush_at_end",
    "order_by",
    "having",
    "emit",
    "late",
    "name",
)


class AggregateOutputs:
    """The columns of an aggregation: which summaries they need, and how rows are made of them.

    `make_row` builds a row from a partition key, the size of the subwindow, the values of the
    summaries and, where there are groups, the group and the sizes of all groups.
    """

    def __init__(
        self,
        outputs: Mapping[str, Any],
        by: Any,
        group_by: Any,
        having: Expr | Callable[[Any], Any] | None,
    ) -> None:
        if not outputs:
            msg = "Aggregate(...): no output. Name at least one, such as n=agg.count()."
            raise ModelError(msg)
        outputs = {name: from_spark(value) for name, value in outputs.items()}
        having = from_spark(having)
        keys = [*_key_texts(by, "key"), *_key_texts(group_by, "group")]
        _check_keys(by, group_by)
        self.keys = [name for name, _ in keys]
        for name, value in outputs.items():
            _check_output(name, value, self.keys)
        self.expressions: dict[str, Expr] = dict(outputs)
        _check_having(having)
        self.having = having
        condition = [having] if isinstance(having, Expr) else []
        leaves = [leaf for e in [*outputs.values(), *condition] for leaf in e.leaves()]
        self.aggregates: dict[Any, Agg] = {leaf.identity: leaf for leaf in leaves}
        self.calls: dict[Any, FunctionCall] = {
            which: each.call for which, each in self.aggregates.items() if each.call is not None
        }
        firings = {which: each.firing for which, each in self.aggregates.items() if each.firing}
        places = [*self.calls, *firings]
        self.places = {leaf: places.index(leaf.identity) for leaf in leaves}
        """Where each aggregate is among the summaries, or behind them the facts of the firing."""
        self._facts = [f.alone if group_by is None else f.grouped for f in firings.values()]
        self.of_event_time = [each for each in firings.values() if each in OF_EVENT_TIME]
        """The facts among them that only windows of event time have."""
        self._bounds: list[Any] = [None] * len(OF_EVENT_TIME)  # of the window that fires
        scope = {"at": self._bounds}
        self._firing = eval(f"lambda n, sizes: [{', '.join(self._facts)}]", scope)
        self.make_row = self._compile(keys)

    def reads(self) -> Iterator[tuple[Attribute, str]]:
        """The columns that the functions read, each with the function."""
        for each in self.aggregates.values():
            for column in each.columns:
                yield from ((name, each.shown) for name in _column_names(column))

    def bind_window(self, window: Any, key: Any) -> None:
        """Note which window of event time fires, for the columns that say so."""
        self._bounds[:] = [*window.bounds(key), window.revision(key), window.retracts(key)]

    def aggregates_in(self, expression: Expr) -> dict[Any, Agg]:
        """The different aggregates in one of the expressions."""
        found = [leaf for leaf in expression.leaves() if isinstance(leaf, Agg)]
        return {leaf.identity: leaf for leaf in found}

    def rows(self, key: Any, n: int, groups: Sequence[GroupValues]) -> Iterator[dict[str, Any]]:
        """The rows of one firing: one for each group that the condition lets through."""
        sizes = [group.n for group in groups]
        for group in groups:
            row = self.make_row(key, n, group.values, group.key, sizes)
            if self._satisfies_having(row, n, group.values, sizes):
                yield row

    def _satisfies_having(
        self, row: dict[str, Any], n: int, values: list[Any], sizes: list[int]
    ) -> bool:
        having = self.having
        if isinstance(having, Expr):
            return bool(self._evaluate(having, n, values, sizes))
        return having is None or bool(having(row))

    def _compile(self, keys: list[tuple[str, str]]) -> Callable[..., dict[str, Any]]:
        """A function that builds a row; where a null makes it fail, expression by expression."""
        names: dict[str, Any] = {"slow": self._slow_row, "at": self._bounds}
        parts = list(keys)
        for i, (name, expression) in enumerate(self.expressions.items()):
            names[f"slow{i}"] = partial(self._evaluate, expression)
            inline = is_inlinable(expression)
            text = expression.text(self._leaf_text) if inline else f"slow{i}(n, v, sizes)"
            parts.append((name, text))
        lines = [
            "def make(key, n, v, group=None, sizes=None):",
            f"    try: return {_dict_text(parts)}",
            "    except (TypeError, ArithmeticError):",
            f"        return slow({_dict_text(keys)}, n, v, sizes)",
        ]
        exec(compiled("\n".join(lines)), names)
        make: Callable[..., dict[str, Any]] = names["make"]
        return make

    def _leaf_text(self, leaf: Expr) -> str:
        place = self.places[leaf]
        first = len(self.calls)
        return f"v[{place}]" if place < first else self._facts[place - first]

    def _evaluate(self, expression: Expr, n: int, values: list[Any], sizes: Any) -> Any:
        found = [*values, *self._firing(n, sizes)]
        return expression.evaluate(lambda leaf: found[self.places[leaf]])

    def _slow_row(self, row: dict[str, Any], n: int, values: Any, sizes: Any) -> dict[str, Any]:
        for name, expression in self.expressions.items():
            row[name] = self._evaluate(expression, n, values, sizes)
        return row


def _key_texts(by: Any, variable: str) -> list[tuple[str, str]]:
    """The name of each part of a key, and source text that reads it from `variable`."""
    names = key_names(by, variable)
    if not isinstance(by, tuple):
        return [(name, variable) for name in names]
    return [(name, f"{variable}[{i}]") for i, name in enumerate(names)]


def _dict_text(parts: list[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{name!r}: {text}' for name, text in parts)}}}"


def _column_names(column: Attribute) -> Iterator[str]:
    """The column names in an attribute: itself, or those of an expression."""
    if isinstance(column, RowExpr):
        for leaf in column.expression.leaves():
            if isinstance(leaf, Col) and isinstance(leaf.name, str):
                yield leaf.name
    elif isinstance(column, str):
        yield column


def merge_outputs(outputs: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a dict and those of keywords together."""
    if outputs is None:
        return dict(more)
    if not isinstance(outputs, Mapping):
        fix = f"n={outputs!r}" if isinstance(outputs, Expr) else 'mean=agg.mean("price")'
        msg = (
            f"Aggregate(window, {outputs!r}): outputs are columns by name. Write {fix}, or a dict."
        )
        raise ModelError(msg)
    for name in outputs:
        if not isinstance(name, str):
            msg = f"Aggregate({{{name!r}: ...}}): a column has a name. Use a str, such as 'n'."
            raise ModelError(msg)
        if name in more:
            msg = f"Aggregate({name}=...): given twice, in the dict and as a keyword. Drop one."
            raise ModelError(msg)
    return {**outputs, **more}


def _check_keys(by: Any, group_by: Any) -> None:
    """Refuse two different keys under one name."""
    named: dict[str, Any] = {}
    for keys, word in ((by, "key"), (group_by, "group")):
        parts = keys if isinstance(keys, tuple) else (keys,)
        for name, part in zip(key_names(keys, word), parts, strict=False):
            if named.setdefault(name, part) is not part and named[name] != part:
                msg = (
                    f"Aggregate(by={by!r}, group_by={group_by!r}): two keys would be called "
                    f"{name!r}. Name columns instead of callables and indexes."
                )
                raise ModelError(msg)


def _check_output(name: str, value: Any, keys: list[str]) -> None:
    if name in keys:
        msg = (
            f"Aggregate({name}=...): the rows have a column {name!r} already, which is a key. Give "
            f"this one another name."
        )
        raise ModelError(msg)
    if not isinstance(value, Expr):
        _refuse_output(name, value)
    for leaf in value.leaves():
        if not isinstance(leaf, Agg):
            msg = (
                f"Aggregate({name}={value!r}): {leaf!r} has a value for each row, and there is one "
                f'row for many. Say which: agg.last("{getattr(leaf, "name", "x")}").'
            )
            raise ModelError(msg)


def _refuse_output(name: str, value: Any) -> NoReturn:
    shown = repr(value)
    fix = 'Write a function of a column, such as agg.sum("x").'
    if callable(value) and any(value is vars(agg)[each] for each in agg.__all__):
        shown = f"agg.{value.__name__}"
        fix = f"Call it: {shown}()." if value.__name__ == "count" else f'Call it: {shown}("x").'
    near = suggestion(name, PARAMETERS)
    raise ModelError(f"Aggregate({name}={shown}): not an aggregate. {fix}{near}")


def _check_having(having: Any) -> None:
    if isinstance(having, Expr):
        _check_output("having", having, [])
    elif having is not None and not callable(having):
        msg = (
            f"Aggregate(having={having!r}): not a condition. Write an expression such as "
            f"agg.count() > 1, or a function of the row."
        )
        raise ModelError(msg)


def key_names(by: Any, word: str = "key") -> list[str]:
    """The names of key columns in output rows: their own, or `key` for what has none.

    >>> key_names("symbol"), key_names(("src", 1)), key_names(None)
    (['symbol'], ['src', 'key_2'], [])
    """
    if by is None:
        return []
    if not isinstance(by, tuple):
        return [by if isinstance(by, str) else word]
    return [part if isinstance(part, str) else f"{word}_{i}" for i, part in enumerate(by, 1)]
