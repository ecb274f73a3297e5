"""Operators: a model, windows and handlers, as a value that any host can run.

An operator is the call that made it: printable, comparable, picklable. `open()` builds it once
more and gives the copy its windows; the copy is what runs, and what your handlers see as `self`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

from windowlib.durations import Instant
from windowlib.errors import ModelError, OperatorError, SchemaError, no_such_column
from windowlib.events import WindowEvents
from windowlib.hosted import Hosted
from windowlib.model import OperatorModel
from windowlib.policies import Attribute, Delta, Punct, attribute_text
from windowlib.shown import Drawn
from windowlib.spec import KEY, By, Sliding, Spec, Tumbling
from windowlib.spl import parse

if TYPE_CHECKING:
    from windowlib.graph import Graph
    from windowlib.running import Running
    from windowlib.summarizers import SummarizerArgument
    from windowlib.window import Window

Emit = Callable[[Any], None]


class Operator(Hosted, Drawn, WindowEvents[Any, Any]):
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
    hooks = ("on_open", "on_tuple", "on_punctuation", "on_advance", "on_finish")
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _outputs: tuple[Emit, ...] = ()
    _puncts: tuple[Callable[[], None], ...] = ()
    _many: Callable[[Any], None] | None = None  # takes many rows at once, as columns
    containers: tuple[Window[Any, Any] | None, ...] = ()
    """The live windows of a running operator, one a port."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: D102
        self = super().__new__(cls)
        self._arguments = _own(args), _own(kwargs)
        return self

    def __init__(self, *windows: Spec | str | None, name: str | None = None) -> None:
        kind = type(self).__name__
        self.windows: tuple[Spec | None, ...] = tuple([_spec(each, kind) for each in windows])
        self.name = kind if name is None else name
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(f'{kind}(name={name!r}): not a name. Use a text, as name="prices".')
        if not self.windows and not any(port.windows for port in self.model.inputs):
            self.windows = (None,) * len(self.model.inputs)
        reason = next((why for w in self.windows if w and (why := self.unsupported(w))), "")
        self.model.check(kind, self.windows, reason)
        self._check_ports()

    def _check_ports(self) -> None:
        """Refuse ports whose rows would get lost, or could never go in."""
        if not self._plain:
            return
        kind = type(self).__name__
        for port, spec in zip(self.model.inputs, self.windows, strict=True):
            if spec is None:
                msg = (
                    f"{kind}(): nothing takes the rows of input {port.name!r}. Give it a window, "
                    f"or override on_tuple."
                )
                raise ModelError(msg)
            if spec.by is KEY:
                msg = (
                    f"{kind}({spec!r}): nothing gives its window a key. Name the column, "
                    f'by="symbol", or override on_tuple to insert rows with a key.'
                )
                raise ModelError(msg)

    @property
    def _plain(self) -> bool:
        """Whether rows go straight into the windows."""
        return getattr(self.on_tuple, "__func__", None) is Operator.on_tuple

    @property
    def _watches_clock(self) -> bool:
        """Whether time moves more of it than its windows."""
        return getattr(self.on_advance, "__func__", None) is not Operator.on_advance

    @property
    def order_by(self) -> By | None:
        """The columns that order the rows of one batch of input, if it says any."""
        spec = self.windows[0] if len(self.windows) == 1 else None
        return None if spec is None or spec.order_by is ... else spec.order_by

    # -- what a subclass may override, besides the handlers ---------------------------------------

    def unsupported(self, spec: Spec) -> str:
        """Why this operator does not take a window that its model refuses, for the message."""
        return ""

    def summarizer(self, port: int) -> SummarizerArgument | None:
        """What the window of a port keeps instead of its tuples; None: the tuples."""
        return None

    def container(self, port: int) -> Callable[..., Window[Any, Any]]:
        """What makes the window of a port; an operator may bring a container of its own."""
        from windowlib.sliding import SlidingWindow
        from windowlib.tumbling import TumblingWindow

        return SlidingWindow if isinstance(self.windows[port], Sliding) else TumblingWindow

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

    def forward(self, port: int) -> None:
        """Pass a punctuation on to the outputs that preserve those of a port; after the above."""
        for number, output in enumerate(self.model.outputs):
            if output.preserves == port:
                self._puncts[number]()

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

    def _take(self, batch: Any, port: int, insert: Callable[..., None]) -> Any:
        """Take what it can of an Arrow batch at once; the rows that are left, for `insert`."""
        return batch

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
        self.model.output(0, self.name)  # or there is no output at all, which is said here
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

    def explain(self, *batches: Any) -> str:
        """Windows, ports, punctuation and algorithms, as text.

        Args:
            batches: for each input an Arrow schema, batch or table like those that will come; then
                it also says which engine takes them, and why. Or a DataFrame of Spark's, or its
                schema; then it says how the operator runs there, too.
        """
        from windowlib.explain import explain

        return explain(self, *batches)

    def describe(self) -> dict[str, str]:
        """Whatever changes the operator's meaning, in words that are the same in every process."""
        text = {"operator": type(self).__name__}
        for name, value in self._parameters().items():
            if isinstance(value, Tumbling | Sliding):  # field by field, so that one can be named
                text |= {f"{name}.{field}": shown for field, shown in value.describe().items()}
            elif name != "name":
                text[name] = stable_text(value)
        return text

    def _parameters(self) -> dict[str, Any]:
        """What it was built with, by name, except what it would be without being said."""
        args, kwargs = self._arguments
        signature = inspect.signature(type(self).__init__)
        _, *given = signature.bind(self, *args, **kwargs).arguments.items()
        found: dict[str, Any] = {}
        for name, value in given:
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD:
                found |= value
            elif parameter.default is parameter.empty or repr(value) != repr(parameter.default):
                found[name] = value
        return found

    def check_columns(self, columns: Sequence[str], port: int = 0) -> None:
        """Refuse input rows that lack a column which this operator reads."""
        for attribute, owner in self.reads(port):
            if isinstance(attribute, str) and attribute not in columns:
                raise SchemaError(no_such_column(owner, attribute, columns))

    def check_types(self, schema: Any, port: int = 0) -> None:
        """Refuse Arrow columns that this operator cannot compute with, whatever their values."""

    def _rebuilt(self) -> Self:
        args, kwargs = self._arguments
        return type(self)(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), *self._arguments)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        # By their texts, because the values of parameters may have an == of their own.
        return repr(self._parameters()) == repr(other._parameters())

    def __hash__(self) -> int:
        return hash((type(self), repr(self._parameters())))

    def __repr__(self) -> str:
        args, kwargs = self._arguments
        shown = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        return f"{type(self).__name__}({', '.join(shown)})"


def _rebuild(kind: type[Operator], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operator:
    return kind(*args, **kwargs)


def _own(value: Any) -> Any:
    """A copy of the lists and dicts in it, so that changing the caller's changes no operator."""
    if type(value) is dict:
        return {name: _own(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_own, value))
    return set(value) if type(value) is set else value


def _spec(window: Spec | str | None, kind: str) -> Spec | None:
    if isinstance(window, str):
        return parse(window)
    if window is None or isinstance(window, Tumbling | Sliding):
        return window
    msg = (
        f"{kind}({window!r}): not a window. Pass a specification, as Tumbling(Count(10)), or SPL "
        f"text."
    )
    raise ModelError(msg)


def stable_text(value: object) -> str:
    """A value as text that is the same in every process: no addresses, no order of a set."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {stable_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(stable_text, value)))}}}"
    if isinstance(value, list) or type(value) is tuple:
        return f"({', '.join(map(stable_text, value))})"
    if isinstance(value, Tumbling | Sliding | Operator):
        return ", ".join(f"{name}={text}" for name, text in value.describe().items())
    if isinstance(value, partial):
        parts = [value.func, *value.args, *value.keywords.items()]
        return f"partial({', '.join(map(stable_text, parts))})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):  # a function
        return f"<{attribute_text(value)}>"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
