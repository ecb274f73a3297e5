"""Operators on single rows, for graphs: change, drop, merge, route and delay.

Only `Delay` has a window. All but `Union` pass on the punctuations of their input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from windowlib.attributes import Getter, brief
from windowlib.errors import ModelError, PolicyError, SchemaError, suggestion
from windowlib.operators.aggregate.output_schema import attribute_type
from windowlib.operators.arguments import (
    as_dict,
    check_callable,
    function_text,
    many_rows,
    name_tuple,
    one_row,
)
from windowlib.operators.arrow_output import decoded_type, schema_with, type_of
from windowlib.operators.base import PassThrough, Stateless, read_names, unchanged
from windowlib.operators.expressions import RowExpr, row_attribute
from windowlib.operators.functions.call import Column
from windowlib.runtime.model import OperatorModel, port_names
from windowlib.spec.policies import Attribute, Count, Time, check_attribute
from windowlib.spec.specification import Sliding

PRESERVING = OperatorModel(punctuation_out="preserving")


def _columns_read(getter: Getter) -> Iterable[tuple[Attribute, str]]:
    """An attribute, or each column of an expression, with its owner, for messages."""
    names = read_names([getter.attribute]) if isinstance(getter.attribute, RowExpr) else None
    return [(name, getter.owner) for name in ((getter.attribute,) if names is None else names)]


class Functor(Stateless):
    """Each row as a function of it, or with computed columns.

    Args:
        function: of a row, gives the row to send. Without it the output is a dict of the row's
            columns and the computed ones.
        many: whether the function gives a list or an iterator of rows, empty for none.
        keep: the columns that stay, in this order; all unless given.
        drop: the columns that go.
        name: what messages and graphs call it.
        columns: computed columns: a function of the row, an expression such as
            `col("price") * 2`, or the name of a column to copy. A column of that name is
            replaced, where it stands.

    >>> from windowlib import replay
    >>> notional = Functor(keep=["symbol"], notional=lambda t: t["price"] * t["qty"])
    >>> list(replay(notional, [{"symbol": "IBM", "price": 190, "qty": 2}]))
    [{'symbol': 'IBM', 'notional': 380}]
    >>> words = Functor(str.split, many=True)
    >>> list(replay(words, ["in a row", "", "of rows"]))
    ['in', 'a', 'row', 'of', 'rows']
    """

    model = PRESERVING

    def __init__(
        self,
        function: Callable[[Any], Any] | None = None,
        /,
        *,
        many: bool = False,
        keep: str | Sequence[str] | None = None,
        drop: str | Sequence[str] | None = None,
        name: str | None = None,
        **columns: Column,
    ) -> None:
        self.keep = None if keep is None else name_tuple(keep, f"Functor(keep={keep!r})")
        self.drop = () if drop is None else name_tuple(drop, f"Functor(drop={drop!r})")
        self.columns = {column: self._computed(column, value) for column, value in columns.items()}
        projected = keep is not None or drop is not None or bool(columns)
        self._check_arguments(function, projected, many)
        if keep is not None and drop is not None:
            msg = f"Functor(keep={keep!r}, drop={drop!r}): two projections. Give one of them."
            raise ModelError(msg)
        self.many = many
        self._owner = "Functor()" if function is None else f"Functor({function_text(function)})"
        self._function = self._project if function is None else function
        self._kept_columns = [(each, Getter(each, f"keep={keep!r}")) for each in self.keep or ()]
        super().__init__(name=name)

    def _computed(self, column: str, value: Any) -> Getter:
        owner = f"Functor({column}={value!r})"
        value = row_attribute(value)
        if not isinstance(value, str):
            check_callable(value, owner, f'{column}=lambda t: t["x"], or {column}="x" for a copy')
        return Getter(value, owner)

    def _check_arguments(self, function: Any, projected: bool, many: bool) -> None:
        if function is None and not projected:
            msg = (
                "Functor(): nothing to do. Give a function, Functor(f), or columns, "
                'Functor(total=lambda t: t["a"] + t["b"]).'
            )
            raise ModelError(msg)
        if function is not None:
            check_callable(function, f"Functor({function!r})", "Functor(lambda t: ...)")
        if projected and (function is not None or many):
            first = function_text(function) if function is not None else "many=True"
            msg = (
                f"Functor({first}, ...): a function gives whole rows, and so has no use for "
                f"columns, keep= or drop=. Put them into a Functor of their own."
            )
            raise ModelError(msg)

    def _project(self, row: Any) -> dict[str, Any]:
        if self.keep is None:
            made = as_dict(row, self._owner)
            for name in self.drop:
                made.pop(name, None)
        else:
            made = {name: get(row) for name, get in self._kept_columns}
        return made | {name: get(row) for name, get in self.columns.items()}

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Send what the function makes of it."""
        result = self._function(tuple_)
        if self.many:
            for row in many_rows(result, self._owner, tuple_):
                self._outputs[0](row)
        else:
            self._outputs[0](one_row(result, self._owner, tuple_))

    def schema(self, *columns: Any) -> Any:
        """The schema in `output`; else the columns that are kept, and the computed ones."""
        declared, (given,) = super().schema(*columns), columns
        if declared is not None or given is None or self._function != self._project:
            return declared
        kept = [(field.name, decoded_type(field.type)) for field in given]
        if self.keep is not None:
            kept = [(name, type_of(name, given)) for name in self.keep]
        computed = {
            name: attribute_type(get.attribute, given) for name, get in self.columns.items()
        }
        left = {name: kind for name, kind in kept if name not in self.drop}
        return schema_with((left | computed).items())

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns that are kept, dropped and copied."""
        yield from ((name, f"keep={list(self.keep or ())!r}") for name in self.keep or ())
        yield from ((name, f"drop={list(self.drop)!r}") for name in self.drop)
        yield from (each for get in self.columns.values() for each in _columns_read(get))

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that are kept or copied, if they are named."""
        if self.keep is None or not unchanged(self):
            return None
        return read_names([self.keep, *(get.attribute for get in self.columns.values())])

    def passes(self, column: str, port: int) -> bool:
        """Columns that are kept, and not computed."""
        if self._function != self._project or not unchanged(self):
            return False
        if column in self.columns:
            return self.columns[column].attribute == column
        return column not in self.drop if self.keep is None else column in self.keep


class Filter(Stateless, PassThrough):
    """The rows for which a predicate holds.

    Args:
        predicate: of a row; or the name of a column that is true for the rows to pass, or an
            expression such as `col("qty") >= 100`.
        rejected: "port" sends the other rows to a second output, "rejected"; they are dropped
            unless given.
        name: what messages and graphs call it.

    >>> from windowlib import replay
    >>> large = Filter(lambda t: t["qty"] >= 100, rejected="port")
    >>> result = replay(large, [{"qty": qty} for qty in (10, 200, 30)])
    >>> list(result), result.port("rejected")
    ([{'qty': 200}], [{'qty': 10}, {'qty': 30}])
    """

    def __init__(
        self, predicate: Column, *, rejected: str | None = None, name: str | None = None
    ) -> None:
        holds = row_attribute(predicate)
        check_attribute(holds, "Filter({attribute!r})", 'Filter(lambda t: t["x"] > 0)')
        if rejected not in (None, "port"):
            msg = (
                f"Filter(rejected={rejected!r}): rows that fail are dropped, or go to an output of "
                f'their own with rejected="port".'
            )
            raise ModelError(msg)
        self._predicate = Getter(holds, f"Filter({function_text(holds)})")
        outputs = ["out"] if rejected is None else ["out", "rejected"]
        self.model = OperatorModel(ports_out=outputs, punctuation_out="preserving")
        super().__init__(name=name)

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Send it, or send it to the other output."""
        if self._predicate(tuple_):
            self._outputs[0](tuple_)
        elif len(self._outputs) > 1:
            self._outputs[1](tuple_)

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The predicate, if it is a column, or the columns of an expression."""
        yield from _columns_read(self._predicate)


class Union(Stateless, PassThrough):
    """The rows of several inputs, as they come; punctuations end here.

    Args:
        inputs: how many inputs, or their names.
        name: what messages and graphs call it.

    >>> from windowlib import replay, to
    >>> list(replay(Union(["a", "b"]), [to("b", 1), to("a", 2)]))
    [1, 2]
    """

    def __init__(self, inputs: int | Sequence[str] = 2, *, name: str | None = None) -> None:
        names = port_names("in", inputs, f"Union(inputs={inputs!r})")
        self.model = OperatorModel(ports_in=names)
        super().__init__(name=name)

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Send it on."""
        self._outputs[0](tuple_)


class Split(Stateless, PassThrough):
    """Each row to one of several outputs, or to a few of them.

    Args:
        function: of a row, gives the name or the number of an output, or a list of those; or the
            name of a column that says it. A predicate chooses between two outputs: the first
            where it holds.
        ports: the names of the outputs, or how many there are.
        name: what messages and graphs call it.

    >>> from windowlib import replay
    >>> sides = Split("side", ports=["buy", "sell"])
    >>> result = replay(sides, [{"side": "sell", "qty": 5}, {"side": "buy", "qty": 7}])
    >>> result.port("sell"), result.port("buy")
    ([{'side': 'sell', 'qty': 5}], [{'side': 'buy', 'qty': 7}])
    """

    def __init__(
        self, function: Attribute, ports: int | Sequence[str], *, name: str | None = None
    ) -> None:
        sample = 'Split(lambda t: t["side"], ports=["buy", "sell"])'
        check_attribute(function, "Split({attribute!r}, ports=...)", sample)
        names = port_names("out", ports, f"Split(ports={ports!r})")
        if not names:
            raise ModelError(f"Split(ports={ports!r}): rows need somewhere to go. Name the ports.")
        self.model = OperatorModel(ports_out=names, punctuation_out="preserving")
        self._route = Getter(function, f"Split({function_text(function)})")
        super().__init__(name=name)

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Send it where the function says."""
        choice = self._route(tuple_)
        several = choice if isinstance(choice, list | tuple) else [choice]
        numbers = [self._port_number(each, tuple_) for each in several]
        if not numbers:
            self._refuse(choice, tuple_, "names no port")
        for number in numbers:
            self._outputs[number](tuple_)

    def _port_number(self, choice: Any, row: Any) -> int:
        if isinstance(choice, bool):
            if len(self.model.outputs) != 2:
                self._refuse(choice, row, "chooses between two ports")
            return 0 if choice else 1
        names = [port.name for port in self.model.outputs]
        if isinstance(choice, int) and 0 <= choice < len(names):
            return choice
        if choice not in names:
            self._refuse(choice, row, "names no port")
        return names.index(choice)

    def _refuse(self, choice: Any, row: Any, why: str) -> NoReturn:
        names = [port.name for port in self.model.outputs]
        near = suggestion(choice, names) if isinstance(choice, str) else ""
        msg = (
            f"{self._route.owner}: {choice!r} for {brief(row)} {why}. Return one of "
            f"{', '.join(names)}, or drop rows with a Filter.{near}"
        )
        raise SchemaError(msg)

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The column that says where rows go, if it is one."""
        yield self._route.attribute, self._route.owner


class Delay(PassThrough):
    """Every row later, in order: by a number of rows, or by a time of the clock.

    A row leaves when more than n are held, or when it is older than the time, as from a sliding
    window. Punctuations keep their place between the rows. At the end of input the rest comes out.

    Args:
        by: `Count(n)` or `Time(t)`.
        name: what messages and graphs call it.

    >>> from windowlib import Count, replay
    >>> list(replay(Delay(Count(2)), [1, 2, 3]).items())
    [('out', 1), ('out', 2), ('out', 3)]
    """

    model = OperatorModel(windows=[Sliding], punctuation_out="preserving")

    def __init__(self, by: Count | Time, *, name: str | None = None) -> None:
        if not isinstance(by, Count | Time) or by == Count(0):
            msg = f'Delay({by!r}): delay by Count(n) rows, from 1 on, or by Time("10s").'
            raise PolicyError(msg)
        # How many rows go before each punctuation that is held, counted from the first row.
        self._marks: deque[int] = deque()
        self._sent = 0
        super().__init__(Sliding(by, every=Count(0)), name=name)

    def keeps_order(self, port: int) -> bool:
        """All rows are as late as the others."""
        return unchanged(self)

    def after_evict(self, window: Any, tuple_: Any, key: Any) -> None:
        """The row's time has come."""
        self._send(tuple_)

    def _send(self, row: Any) -> None:
        self._sent += 1
        self._outputs[0](row)
        while self._marks and self._marks[0] <= self._sent:
            self._marks.popleft()
            self._puncts[0]()

    def forward(self, port: int) -> None:
        """A punctuation follows the rows before it."""
        held = len(self.containers[0] or ())
        if held:
            self._marks.append(self._sent + held)
        else:
            self._puncts[0]()

    def on_finish(self) -> None:
        """Send the rest."""
        assert self.containers[0] is not None
        for row in list(self.containers[0][None]):
            self._send(row)

    def snapshot(self) -> dict[str, Any]:
        """The state besides the window: the punctuations among its rows."""
        return {"sent": self._sent, "marks": list(self._marks)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `snapshot` gave."""
        self._sent, self._marks = state["sent"], deque(state["marks"])
