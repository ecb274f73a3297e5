"""Pair and Barrier: one row of every input, together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from windowlib.attributes import key_getter, one_key
from windowlib.errors import ModelError, OperatorError, SchemaError, suggestion
from windowlib.operators.arguments import (
    Columns,
    as_dict,
    check_callable,
    column_tuple,
    function_text,
    one_row,
)
from windowlib.operators.arrow_output import decoded_type, pass_through_schema, schema_with
from windowlib.operators.base import unchanged
from windowlib.runtime.model import OperatorModel, OutputMode, port_names
from windowlib.runtime.operator import Operator
from windowlib.spec.policies import Attribute

Queues = tuple[deque[tuple[int, Any]], ...]
"""Of one key: for each input, the rows that wait, with the number of their arrival."""


class Barrier(Operator):
    """Waits for one row of every input, of the same key, and sends them together as one row.

    First come, first served: within a key and an input, rows are taken in order. What still waits
    at the end of input comes out, in order of arrival and as it is, at the output "unpaired".

    Args:
        on: the key: a column, several, or a dict from the name of each input to those; the next
            row of every input, whatever it is, unless given.
        inputs: how many inputs, or their names.
        select: a function of one row per input that gives the row to send. Without it, a dict of
            all their columns; a column that several have, except the key, gets the name of its
            input appended.
        limit: how many rows may wait for each key and input, for streams that may drift apart.
        name: what messages and graphs call it.

    >>> from windowlib import replay, to
    >>> quotes = Barrier(on="symbol", inputs=["bid", "ask"])
    >>> ibm, sap = {"symbol": "IBM", "price": 190}, {"symbol": "SAP", "price": 7}
    >>> result = replay(quotes, [to("bid", ibm), to("ask", sap), to("ask", ibm)])
    >>> list(result)
    [{'symbol': 'IBM', 'price_bid': 190, 'price_ask': 190}]
    >>> result.port("unpaired")
    [{'symbol': 'SAP', 'price': 7}]
    """

    _punctuation: ClassVar[OutputMode] = "free"

    def __init__(
        self,
        on: Columns | Mapping[str, Columns] | None = None,
        *,
        inputs: int | Sequence[str] = 2,
        select: Callable[..., Any] | None = None,
        limit: int | None = None,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        self._names = port_names("in", inputs, f"{kind}(inputs={inputs!r})")
        if len(self._names) < 2:
            raise ModelError(f"{kind}(inputs={inputs!r}): nothing to wait for. Give 2 or more.")
        self.model = OperatorModel(
            ports_in=self._names,
            ports_out=["out", "unpaired"],
            punctuation_out=[self._punctuation, "free"],
        )
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or limit < 1
        ):
            raise ModelError(f"{kind}(limit={limit!r}): give a whole number from 1 on.")
        if select is not None:
            check_callable(select, f"{kind}(select={select!r})", "select=lambda a, b: ...")
        self.select, self.limit = select, limit
        self._on = self._key_columns(on)
        self._key = [key_getter(columns, f"on={on!r}") for columns in self._on]
        # A key has one name in all inputs, or each input's own stays as any other column.
        self._shared = {c for c in self._on[0] if all(c in columns for columns in self._on)}
        self._waiting: dict[Any, Queues] = {}
        self._arrived = 0
        super().__init__(name=name)

    def _key_columns(self, on: Any) -> list[tuple[Attribute, ...]]:
        kind = type(self).__name__
        if on is None:
            return [()] * len(self._names)
        if not isinstance(on, Mapping):
            return [column_tuple(on, f"{kind}(on={on!r})")] * len(self._names)
        for port in {**on, **dict.fromkeys(self._names)}:
            if port not in self._names or port not in on:
                msg = (
                    f"{kind}(on={on!r}): name the key of every input: {', '.join(self._names)}."
                    f"{suggestion(port, self._names) if port not in self._names else ''}"
                )
                raise ModelError(msg)
        keys = [column_tuple(on[port], f"{kind}(on={on!r})") for port in self._names]
        if len({len(columns) for columns in keys}) > 1:
            raise ModelError(f"{kind}(on={on!r}): keys of different lengths. Name as many columns.")
        return keys

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Let it wait, or send it with the rows that waited for it."""
        key = self._key[port](tuple_)
        waiting = self._queues(key)
        if all(queue for i, queue in enumerate(waiting) if i != port):  # so its own is empty
            heads = [tuple_ if i == port else queue[0][1] for i, queue in enumerate(waiting)]
            row = self._combined(heads)  # before the rows leave, in case it fails
            self._dequeue(key, waiting, port)
            self._send(row)
        else:
            self._check_limit(key, waiting, port)
            waiting[port].append((self._arrived, tuple_))
            self._waiting[key] = waiting
        self._arrived += 1

    def _queues(self, key: Any) -> Queues:
        try:
            found = self._waiting.get(key)
        except TypeError:
            msg = (
                f"{self.name}: {_shown_key(key)!r} cannot be a key. Use plain values, not lists or "
                f"dicts."
            )
            raise SchemaError(msg) from None
        return tuple(deque() for _ in self._names) if found is None else found

    def _dequeue(self, key: Any, waiting: Queues, port: int) -> None:
        for i, queue in enumerate(waiting):
            if i != port:
                queue.popleft()
        if not any(waiting):
            self._waiting.pop(key, None)

    def _check_limit(self, key: Any, waiting: Queues, port: int) -> None:
        if self.limit is not None and len(waiting[port]) >= self.limit:
            of = f" of key {_shown_key(key)!r}" if self._on[0] else ""
            others = [name for i, name in enumerate(self._names) if not waiting[i]]
            msg = (
                f"{self.name}(limit={self.limit}): {self.limit} rows{of} at {self._names[port]!r} "
                f"wait for {' and '.join(map(repr, others))}, and here is one more. Raise the "
                f"limit, or find out why that input is behind."
            )
            raise OperatorError(msg)

    def _send(self, row: Any) -> None:
        self._outputs[0](row)

    def _combined(self, rows: list[Any]) -> Any:
        if self.select is not None:
            owner = f"{self.name}(select={function_text(self.select)})"
            return one_row(self.select(*rows), owner, rows)
        columns = [as_dict(row, self.name) for row in rows]
        common = Counter(name for each in columns for name in each)
        made: dict[str, Any] = {}
        for port, each in zip(self._names, columns, strict=True):
            for name, value in each.items():
                clash = common[name] > 1 and name not in self._shared
                column = f"{name}_{port}" if clash else name
                if column in made and name not in self._shared:
                    msg = (
                        f"{self.name}: two columns would be called {column!r}. Rename one before, "
                        f"or say with select= what to send."
                    )
                    raise SchemaError(msg)
                made.setdefault(column, value)
        return made

    def schema(self, *columns: Any) -> Any:
        """The schema in `output`; else the columns of all inputs, named as in the rows."""
        declared = super().schema(*columns)
        if declared is not None or self.select is not None or None in columns:
            return declared
        common = Counter(name for each in columns for name in each.names)
        found: dict[str, Any] = {}
        for port, each in zip(self._names, columns, strict=True):
            for field in each:
                clash = common[field.name] > 1 and field.name not in self._shared
                name = f"{field.name}_{port}" if clash else field.name
                found.setdefault(name, decoded_type(field.type))
        return schema_with(found.items())

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        return None if None in columns else pass_through_schema(*columns)

    def on_finish(self) -> None:
        """Send what is left to the output for it."""
        queues = (queue for waiting in self._waiting.values() for queue in waiting)
        for _, row in sorted((entry for queue in queues for entry in queue), key=lambda e: e[0]):
            self._outputs[1](row)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """By the key, within which rows wait for one another."""
        if not unchanged(self):
            return super().splits_by(port)
        named = all(isinstance(column, str) for columns in self._on for column in columns)
        return tuple(map(str, self._on[port])) if named else ()

    def natural_order(self, port: int) -> Any:
        """Unknown but relevant: rows of one key are paired in the order of arrival."""
        return ...

    def passes(self, column: str, port: int) -> bool:
        """The key, where it has one name in all inputs; unpaired rows stay as they are."""
        return unchanged(self) and (port == 1 or (self.select is None and column in self._shared))

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The key."""
        yield from ((column, f"on={column!r}") for column in self._on[port])

    def notes(self) -> Iterable[tuple[str, str]]:
        """How many rows may wait."""
        most = "no limit" if self.limit is None else f"at most {self.limit} for each key and input"
        yield "waiting", f"{most}; what is left at the end goes to 'unpaired'"

    def snapshot(self) -> dict[str, Any]:
        """The rows that wait."""
        waiting = [(key, [list(queue) for queue in w]) for key, w in self._waiting.items()]
        return {"arrived": self._arrived, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `snapshot` gave."""
        self._arrived = state["arrived"]
        self._waiting = {
            one_key(key): tuple(map(deque, queues)) for key, queues in state["waiting"]
        }


def _shown_key(key: tuple[Any, ...]) -> Any:
    """A key as its user thinks of it: one column is no tuple."""
    return key[0] if len(key) == 1 else key


class Pair(Barrier):
    """A `Barrier` that sends a punctuation after every row, so that each is a batch of its own.

    >>> from windowlib import replay, to
    >>> pairs = Pair(inputs=["a", "b"], select=lambda a, b: (a, b))
    >>> list(replay(pairs, [to("a", 1), to("a", 2), to("b", 3)]).items())
    [('out', (1, 3)), ('out', punct()), ('unpaired', 2)]
    """

    _punctuation = "generating"

    def _send(self, row: Any) -> None:
        self._outputs[0](row)
        self._puncts[0]()
