"""Operators: a model, windows and handlers, as a value that any host can run.

An operator is the call that made it: printable, comparable, picklable. `open()` builds it once
more and gives the copy its windows; the copy is what runs, and what your handlers see as `self`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from windowlib.durations import Instant
from windowlib.errors import ModelError, OperatorError, SchemaError, suggestion
from windowlib.events import WindowEvents
from windowlib.model import OperatorModel
from windowlib.policies import Attribute, Delta, Punct, attribute_text
from windowlib.spec import KEY, Sliding, Spec, Tumbling
from windowlib.spl import parse

if TYPE_CHECKING:
    from windowlib.graph import Graph
    from windowlib.running import Running
    from windowlib.summarizers import SummarizerArgument
    from windowlib.window import Window

Emit = Callable[[Any], None]


class Operator(WindowEvents[Any, Any]):
    """Base class of operators; subclass it with a `model` and handlers.

    The handlers are those of `WindowEvents`, called with the window of the port where something
    happens. An operator without windows overrides `on_tuple`. Send rows with `emit`, and a window
    punctuation with `emit_punct`.

    Args:
        windows: a specification, or its SPL text, for each input port that has a window.
        name: what messages and graphs call it; the name of its class unless given.

    >>> from windowlib import Count, Tumbling, replay
    >>> class Spread(Operator):
    ...     model = OperatorModel(windows=[Tumbling], punctuation_out="generating")
    ...     def before_flush(self, window, key):
    ...         prices = [t["price"] for t in window[key]]
    ...         self.emit(symbol=key, spread=max(prices) - min(prices))
    ...         self.emit_punct()
    >>> spread = Spread(Tumbling(Count(2), by="symbol"))
    >>> list(replay(spread, [{"symbol": "IBM", "price": price} for price in (190, 193, 191)]))
    [{'symbol': 'IBM', 'spread': 3}]
    """

    model: OperatorModel = OperatorModel()
    output: ClassVar[str | None] = None
    """The columns of the output rows, such as "symbol string, peak double", for hosts that ask."""

    hooks = ("on_open", "on_tuple", "on_punctuation", "on_advance", "on_finish")
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _outputs: tuple[Emit, ...] = ()
    _puncts: tuple[Callable[[], None], ...] = ()
    containers: tuple[Window[Any, Any] | None, ...] = ()
    """The live windows of a running operator, one a port."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: D102
        self = super().__new__(cls)
        self._arguments = args, kwargs
        return self

    def __init__(self, *windows: Spec | str | None, name: str | None = None) -> None:
        self.windows: tuple[Spec | None, ...] = tuple(map(_spec, windows))
        self.name = type(self).__name__ if name is None else name
        if not self.windows and not any(port.windows for port in self.model.inputs):
            self.windows = (None,) * len(self.model.inputs)
        reason = next((why for w in self.windows if w and (why := self.unsupported(w))), "")
        self.model.check(type(self).__name__, self.windows, reason)

    # -- what a subclass may override, besides the handlers ---------------------------------------

    def unsupported(self, spec: Spec) -> str:
        """Why this operator does not take a window that its model refuses, for the message."""
        return ""

    def summarizer(self, port: int) -> SummarizerArgument | None:
        """What the window of a port keeps instead of its tuples; None: the tuples."""
        return None

    def on_open(self) -> None:
        """The operator starts: `containers` are there, nothing has come in."""

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """A tuple comes in; by default it goes into the window of its port."""
        container = self.containers[port]
        if container is not None:
            container.insert(tuple_)

    def on_punctuation(self, port: int) -> None:
        """A window punctuation comes in; by default it closes a window that waits for it."""
        container = self.containers[port]
        if container is not None and isinstance(container.spec.evict, Punct):
            container.punctuate()

    def on_advance(self) -> None:
        """The clock has moved, and what was due at this instant has happened in every window."""

    def on_finish(self) -> None:
        """All inputs have ended; by default this closes windows that wait for a punctuation."""
        for container in self.containers:
            waits = container is not None and isinstance(container.spec.evict, Punct)
            if container is not None and waits and container.keys():
                container.punctuate("final")

    def notes(self) -> Iterable[tuple[str, str]]:
        """What `explain` should add about a running operator: topics and texts."""
        return ()

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns read from the tuples of a port, each with who reads it, for messages."""
        spec = self.windows[port] if port < len(self.windows) else None
        if spec is None:
            return
        parts = spec.by if isinstance(spec.by, tuple) else (spec.by,)
        for part in parts:
            if part is not None and part is not KEY:
                yield part, f"by={spec.by!r}"  # type: ignore[misc]
        for policy in spec.policies:
            if isinstance(policy, Delta):
                yield policy.attribute, policy.shown

    # -- output -----------------------------------------------------------------------------------

    def emit(self, row: Any = ..., /, **fields: Any) -> None:
        """Send a row to the first output: an object, or fields that become a dict."""
        if fields and row is not ...:
            self._two_forms(row, fields)
        (self._outputs or self._closed())[0](fields if row is ... else row)

    def emit_to(self, port: int | str, row: Any = ..., /, **fields: Any) -> None:
        """Send a row to an output port, by number or name."""
        if fields and row is not ...:
            self._two_forms(row, fields)
        number = self.model.output(port, self.name)
        (self._outputs or self._closed())[number](fields if row is ... else row)

    def emit_punct(self, port: int | str = 0) -> None:
        """Send a window punctuation to an output port."""
        number = self.model.output(port, self.name)
        if self.model.outputs[number].punctuation == "free":
            msg = (
                f"{self.name}.emit_punct({port!r}): its model says that this output is free of "
                f'punctuations. Say punctuation_out="generating" in the model.'
            )
            raise ModelError(msg)
        (self._puncts or self._closed())[number]()

    def _two_forms(self, row: Any, fields: Mapping[str, Any]) -> NoReturn:
        shown = f"emit({row!r}, {', '.join(fields)}=...)"
        raise SchemaError(f"{shown}: a row and fields at once. Give one of them.")

    def _closed(self) -> NoReturn:
        msg = f"{self.name}.emit(...): it is not running. Use replay(op, rows), or op.open()."
        raise OperatorError(msg)

    # -- the operator as a value ------------------------------------------------------------------

    def open(self, start: Instant = 0) -> Running:
        """Start it: a copy of its own, with live windows whose clocks are at `start`."""
        from windowlib.running import Running

        return Running(self, start)

    def then(self, *others: Operator) -> Graph:
        """A chain: the rows and punctuations of this operator go to the next, in one process.

        >>> from windowlib import Count, Punct, Tumbling
        >>> from operators import Aggregate, Sort, agg
        >>> Sort("ts", window=Tumbling(Count(4))).then(
        ...     Aggregate(Tumbling(Punct()), first=agg.first("ts"))
        ... ).names
        ('Sort', 'Aggregate')
        """
        from windowlib.graph import chain

        return chain((self, *others))

    def explain(self) -> str:
        """Windows, ports, punctuation and algorithms, as text."""
        from windowlib.explain import explain

        return explain(self)

    def describe(self) -> dict[str, str]:
        """Whatever changes the operator's meaning, in words that are the same in every process."""
        args, kwargs = self._arguments
        shown = {str(i): value for i, value in enumerate(args)} | kwargs
        shown.pop("name", None)
        return {"operator": type(self).__name__} | {k: stable_text(v) for k, v in shown.items()}

    def check_columns(self, columns: Sequence[str], port: int = 0) -> None:
        """Refuse input rows that lack a column which this operator reads."""
        for attribute, owner in self.reads(port):
            if isinstance(attribute, str) and attribute not in columns:
                near = suggestion(attribute, columns)
                missing = "" if repr(attribute) in owner else f" {attribute!r}"
                msg = f"{owner}: no such column{missing}. Columns: {', '.join(columns)}.{near}"
                raise SchemaError(msg)

    def _rebuilt(self) -> Self:
        args, kwargs = self._arguments
        return type(self)(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), *self._arguments)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        args, kwargs = self._arguments
        shown = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        return f"{type(self).__name__}({', '.join(shown)})"


def _rebuild(kind: type[Operator], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operator:
    return kind(*args, **kwargs)


def _spec(window: Spec | str | None) -> Spec | None:
    if isinstance(window, str):
        return parse(window)
    if window is None or isinstance(window, Tumbling | Sliding):
        return window
    msg = f"{window!r}: not a window. Pass a specification, as Tumbling(Count(10)), or SPL text."
    raise ModelError(msg)


def stable_text(value: object) -> str:
    """A value as text that is the same in every process: no addresses, no order of a set."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {stable_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(stable_text, value))})"
    if isinstance(value, Tumbling | Sliding):
        return ", ".join(f"{name}={text}" for name, text in value.describe().items())
    if callable(value) and not isinstance(value, Operator):
        return f"<{attribute_text(value)}>"
    return repr(value)
