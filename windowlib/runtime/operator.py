"""Operators: a model, windows and handlers, as a value that any host can run.

An operator is the call that made it: printable, comparable, picklable. `open()` builds it once
more and gives the copy its windows; the copy is what runs, and what your handlers see as `self`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

from windowlib.durations import Duration, Instant
from windowlib.errors import ModelError, OperatorError, SchemaError, no_such_column, suggestion
from windowlib.extensions import extension
from windowlib.runtime.keyed_state import Keyed, Unkeyed, declarations
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.running import Running
from windowlib.runtime.schema_text import columns_of, schema_of
from windowlib.runtime.splitting import beyond_window, by_default
from windowlib.spec.policies import Attribute, attribute_text
from windowlib.spec.specification import KEY, By, Order, Sliding, Spec, Tumbling
from windowlib.spec.spl import parse
from windowlib.window.engine.rules import check_measured_columns
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.events import UNHEARD, WindowEvents, overridden
from windowlib.window.sliding import SlidingWindow
from windowlib.window.tumbling import TumblingWindow

if TYPE_CHECKING:
    from windowlib.runtime.graph import Graph
    from windowlib.runtime.operator_state import OperatorState
    from windowlib.summaries.folds import Fold
    from windowlib.summaries.summarizers import SummarizerArgument
    from windowlib.window.consumer import Consumer
    from windowlib.window.container import Window

Emit = Callable[[Any], None]

FunctionKind = Literal["associative", "incremental", "neither"]
_signature = lru_cache(maxsize=256)(inspect.signature)


class SetByInit:
    """Stands for an attribute that `Operator.__init__` sets; found only if that was not called."""

    def __get__(self, operator: object, kind: type) -> Any:
        if operator is None:
            return self
        msg = (
            f"{kind.__name__}: its __init__ does not call that of Operator. Call "
            f"super().__init__(window) in it, or super().__init__() without a window."
        )
        raise OperatorError(msg)


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
    hooks = (
        *("on_open", "on_tuple", "on_punctuation", "on_advance", "on_timer"),
        *("on_input_end", "on_finish"),
    )
    waits: ClassVar[bool] = False
    """Whether it waits for all its inputs, so that it is irrelevant which of them is ahead."""
    follows_watermark: bool = False
    """Whether a host tells the watermark of its windows of event time; rows do not move it."""
    punctuated_by: tuple[str, ...] = ()
    """The columns in which all rows between two punctuations that come in are alike, if known."""
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _outputs: tuple[Emit, ...] = ()
    _puncts: tuple[Callable[[], None], ...] = ()
    _many: Callable[[Any], None] | None = None  # takes many rows at once, as columns
    _own: OperatorState | None = None  # what a running operator declares, and its timers
    sends_columns: ClassVar[bool] = False
    """Whether its first output may go to another operator as columns, with punctuations."""
    folded_columns: frozenset[str] | None = None
    """The columns that the operator behind it reads, if it folds rows between two punctuations,
    whatever their order; None: it has to get whole rows in order."""
    containers: tuple[Window[Any, Any] | None, ...] = ()
    """The live windows of a running operator, one a port."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: D102
        self = super().__new__(cls)
        self._arguments = _own(args), _own(kwargs)
        return self

    if not TYPE_CHECKING:  # they are attributes of each operator
        windows = name = SetByInit()

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
        if self.model.parameters:
            taken = list(inspect.signature(type(self).__init__).parameters)[1:]
            self.model.check_parameters(kind, taken, self._parameters())
        self._check_event_time(kind)
        if any(spec is not None and spec.late == "port" for spec in self.windows):
            self.model = self.model.with_late(kind)
        self._check_ports()
        self._check_state(kind)

    def _check_state(self, kind: str) -> None:
        """Refuse a second key for state whose key is that of the windows."""
        said = next((name for name, each in self.keyed_state.items() if each.by), None)
        if said is not None and any(self.windows):
            msg = (
                f"{kind}: {said} = Keyed(by=...), and it has a window, whose key it is. Drop by=, "
                f"and say it in the window."
            )
            raise ModelError(msg)

    def _check_event_time(self, kind: str) -> None:
        """Refuse windows of event time for an operator that lives on events they do not have."""
        timed = next((spec for spec in self.windows if spec is not None and spec.event_time), None)
        name = next((each for each in UNHEARD if each in overridden(self)), None)
        if timed is not None and name is not None:
            msg = (
                f"{kind}({timed!r}): it overrides {name}, and windows of event time have no such "
                f"event, because rows leave with their windows. Use another window."
            )
            raise ModelError(msg)

    def _check_ports(self) -> None:
        """Refuse ports whose rows would get lost, or could never go in."""
        if not self.inserts_directly:
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
    def inserts_directly(self) -> bool:
        """Whether rows go straight into the windows."""
        return getattr(self.on_tuple, "__func__", None) is Operator.on_tuple

    def marks_close(self, port: int) -> bool:
        """Whether a punctuation at a port does no more than to close a window that waits for it."""
        plain = getattr(self.on_punctuation, "__func__", None) is Operator.on_punctuation
        return plain and all(output.preserves != port for output in self.model.outputs)

    def folds_any_order(self, port: int) -> bool:
        """Whether it folds the rows between two punctuations at a port, whatever their order."""
        return False

    @property
    def _watches_clock(self) -> bool:
        """Whether time moves more of it than its windows."""
        watches = getattr(self.on_advance, "__func__", None) is not Operator.on_advance
        return watches or self.has_timers

    @property
    def has_timers(self) -> bool:
        """Whether it wakes up for keys by itself."""
        return getattr(self.on_timer, "__func__", None) is not Operator.on_timer

    @property
    def on_event_time(self) -> bool:
        """Whether a window of it is of event time; then its timers are, too."""
        return any(spec is not None and spec.event_time for spec in self.windows)

    @property
    def timed(self) -> bool:
        """Whether time alone makes something happen in it, before any row has come."""
        clocked = self.has_timers and not self.on_event_time
        return clocked or any(spec is not None and spec.timed for spec in self.windows)

    @property
    def keyed_state(self) -> Mapping[str, Keyed]:
        """The state of keys that its class declares, by name."""
        return declarations(type(self), Keyed)

    @property
    def unkeyed_state(self) -> Mapping[str, Unkeyed]:
        """The state that its class declares for all keys together, by name."""
        return declarations(type(self), Unkeyed)

    @property
    def order_by(self) -> By | None:
        """The columns that order the rows of one batch of input, if it says any."""
        spec = self.windows[0] if len(self.windows) == 1 else None
        return None if spec is None or spec.order_by is ... else spec.order_by

    def order_of(self, port: int) -> Order:
        """The columns that order the rows of one batch at an input. None: any; `...`: not said."""
        spec = self.windows[port]
        return None if spec is None else spec.order_by

    def natural_order(self, port: int) -> Order:
        """The same for hosts that get rows in no order: what is on event time is in its order."""
        said, spec = self.order_of(port), self.windows[port]
        if said is not ... or spec is None or spec.evict.event is None:
            return said
        attribute = spec.evict.event.attribute
        return attribute if isinstance(attribute, str) else ...

    def punctuates_by(self, port: int) -> tuple[str, ...]:
        """The columns in which all rows are alike that an output sends between two punctuations."""
        return ()

    def keeps_order(self, port: int) -> bool:
        """Whether the rows of an output come at once, in the order of those they are made of."""
        return False

    # -- what a subclass may override, besides the handlers ---------------------------------------

    def unsupported(self, spec: Spec) -> str:
        """Why this operator does not take a window that its model refuses, for the message."""
        return ""

    def summarizer(self, port: int) -> SummarizerArgument | None:
        """What the window of a port keeps instead of its tuples; None: the tuples."""
        return None

    def container(self, port: int) -> Callable[..., Window[Any, Any]]:
        """What makes the window of a port; an operator may bring a container of its own."""
        spec = self.windows[port]
        if spec is not None and spec.event_time:
            return EventTimeWindow
        return SlidingWindow if isinstance(self.windows[port], Sliding) else TumblingWindow

    def consumer(self, port: int) -> Consumer | None:
        """What takes the firings of whole batches at a port; None: its handlers are called."""
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
        if container is not None and container.spec.punctuated:
            container.punctuate()

    def forward(self, port: int) -> None:
        """Pass a punctuation on to the outputs that preserve those of a port; after the above."""
        for number, output in enumerate(self.model.outputs):
            if output.preserves == port:
                self._puncts[number]()

    def expect_columns(self, columns: Sequence[Sequence[str]]) -> None:
        """The host knows the columns of each input, and says so before the first row."""

    def on_advance(self) -> None:
        """The clock has moved, and what was due at this instant has happened in every window."""

    def on_timer(self, key: Any, now: Any) -> None:
        """The time has come that `set_timer` said for a key.

        Args:
            key: the key.
            now: the time: in seconds, or a timestamp of event time as it was set.
        """

    def on_late(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row came after its windows of event time were closed; it goes to the output late."""
        self.emit_to("late", tuple_)

    def on_input_end(self, port: int) -> None:
        """One input has ended; at the end of the last, `on_finish` comes after it."""

    def on_finish(self) -> None:
        """All inputs have ended; by default this closes windows that wait for a punctuation."""
        for container in self.containers:
            waits = container is not None and container.spec.punctuated
            if container is not None and waits and container.keys():
                container.punctuate("final")

    def notes(self) -> Iterable[tuple[str, str]]:
        """What `explain` should add about a running operator: topics and texts."""
        return ()

    def _take(self, batch: Any, port: int, insert: Callable[..., None]) -> Any:
        """Take what it can of an Arrow batch at once; the rows that are left, for `insert`."""
        return batch

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns read from the tuples of a port, each with its reader, for messages."""
        spec = self.windows[port] if port < len(self.windows) else None
        if spec is None:
            return
        parts = spec.by if isinstance(spec.by, tuple) else (spec.by,)
        for part in parts:
            if part is not None and part is not KEY:
                yield part, f"by={spec.by!r}"  # type: ignore[misc]
        for delta in spec.deltas:
            yield delta.attribute, delta.shown
        if spec.evict.event is not None:
            yield spec.evict.event.attribute, repr(spec.evict)
        if spec.watermark is not None and spec.watermark.sources is not None:
            yield spec.watermark.sources, repr(spec.watermark)

    # -- keys -------------------------------------------------------------------------------------

    def set_timer(self, key: Any, at: Any = None, *, after: Duration | None = None) -> None:
        """Have `on_timer` called for a key at a time; one that was set before is moved.

        The time is that of the clock; or, if a window is of event time, a timestamp that the
        watermark has to reach. The timer is saved with the operator, and dropped with its key.

        Args:
            key: the key, as handlers get it.
            at: when: seconds, a datetime, or a timestamp of event time.
            after: how long from now on, as "30s", in place of `at`.

        >>> from windowlib import Keyed, advance, replay
        >>> class Silence(Operator):
        ...     state = Keyed(by="k", rows=0)
        ...     def on_tuple(self, row, port):
        ...         self.state[row["k"]].rows += 1
        ...         self.set_timer(row["k"], after="30s")
        ...     def on_timer(self, key, now):
        ...         self.emit(k=key, rows=self.state.pop(key).rows, at=now)
        >>> list(replay(Silence(), [{"k": "a"}, advance("20s"), {"k": "a"}, advance("40s")]))
        [{'k': 'a', 'rows': 2, 'at': 50.0}]
        """
        shown = f"{self.name}.set_timer({key!r}, ...)"
        if not self.has_timers:
            raise OperatorError(f"{shown}: nothing is done then. Override on_timer(key, now).")
        if (at is None) == (after is None):
            raise OperatorError(f'{shown}: say when, either at=... or after="30s".')
        if after is None:
            self._running_state(shown).set_timer(key, at)
        else:
            self._running_state(shown).set_timer_after(key, after)

    def drop_timer(self, key: Any) -> None:
        """Do not call `on_timer` for a key, if that was to be."""
        self._running_state(f"{self.name}.drop_timer({key!r})").timers.drop(key)

    def forget(self, key: Any) -> None:
        """Drop the declared state of a key, and its timer."""
        self._running_state(f"{self.name}.forget({key!r})").forget((key,))

    def _running_state(self, call: str) -> OperatorState:
        if self._own is None:
            raise OperatorError(f"{call}: it is not running. Use replay(op, rows), or op.open().")
        return self._own

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
        return Running(self, start)

    def then(self, *others: Operator) -> Graph:
        """A chain: the rows and punctuations of this operator go to the next, in one process.

        >>> from windowlib import Count, Punct, Tumbling
        >>> from windowlib.operators import Aggregate, Sort, agg
        >>> Sort("ts", window=Tumbling(Count(4))).then(
        ...     Aggregate(Tumbling(Punct()), first=agg.first("ts"))
        ... ).names
        ('Sort', 'Aggregate')
        """
        chained: Graph = extension("chain")((self, *others))
        return chained

    def explain(self, *batches: Any) -> str:
        """Windows, ports, punctuation and algorithms, as text.

        Args:
            batches: for each input an Arrow schema, batch or table like those that will come; then
                it also says which engine takes them, and why. Or a DataFrame of Spark's, or its
                schema; then it says how the operator runs there, too.
        """
        return str(extension("explain")(self, *batches))

    def to_mermaid(self) -> str:
        """The operator and its streams as a Mermaid flowchart; of a graph, every operator."""
        return str(extension("flowchart")(self))

    def to_html(self) -> str:
        """Windows, ports and parameters for a page or a notebook; a graph with its operators.

        It is made of what the operator says without running, so nothing is opened.
        """
        return str(extension("operator_html")(self))

    def _repr_html_(self) -> str:
        return self.to_html()

    @classmethod
    def reference(cls) -> str:
        """What its model says, in Markdown: ports, windows and parameters, for its page.

        >>> from windowlib.operators import Aggregate
        >>> print(Aggregate.reference().splitlines()[-1])
        | out | rows | generating |
        """
        head = (inspect.getdoc(cls) or "").partition("\n")[0]
        return f"**{cls.__name__}**: {head}\n\n{cls.model.markdown()}"

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
        signature = _signature(type(self).__init__)
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
        spec = self.windows[port] if port < len(self.windows) else None
        if spec is not None:
            check_measured_columns(spec, schema)

    def rebuilt(self) -> Self:
        """A new operator from the call that made this one; nothing of it is shared."""
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

    output: ClassVar[str | Mapping[str, str] | None] = None
    """The columns of the output rows, such as "symbol string, peak double", for hosts that ask.

    Names and types as in Spark's DDL; a column that a row lacks is null. One text is of the first
    output; with several, give a dict from the names of outputs to texts.
    """
    function_kind: ClassVar[FunctionKind] = "neither"
    """How the rows of a firing are made of its tuples, for farms.

    "associative": from the results of parts, merged in order; "incremental": tuple by tuple;
    "neither": from all tuples together. An operator that answers `functions` need not say it.
    """

    def __call__(self, *frames: Any) -> Any:
        """The operator on Spark DataFrames, one an input: the DataFrame of its output.

        Streaming or static; the same as `df.transform(op)` where there is one input.
        `windowlib.spark.attach` takes what else there is to say.
        """
        for frame in frames:
            if not hasattr(frame, "isStreaming"):
                msg = (
                    f"{self.name}({type(frame).__name__}): not a DataFrame of Spark's. Use "
                    f"replay(op, rows) for plain rows."
                )
                raise OperatorError(msg)
        return extension("spark_attach")(self)(*frames)

    def as_node(self, node: str) -> Operator:
        """The operator to run as a node of a graph: this one, unless a subclass differs."""
        return self

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that the rows of a port must have; None: whole rows, it may read anything.

        Without any column, as (), it only counts rows.
        """
        return None

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns that keep its work apart: two rows that differ in them never meet.

        Then every place may run its own for some of their values, all on the same time, and
        together they send the same rows, in the same order for equal values. (): all rows may
        meet, so one place must see them all; None: rows never meet, it keeps nothing.

        By default the key of its only window; of several windows, if the state that it declares is
        `Keyed`; or the columns of `Keyed(by=...)`, if it has none. Override it if the class keeps
        anything across partitions that `snapshot` does not tell of, or if `on_tuple` keeps things
        apart by itself.
        Several ports give columns that correspond to one another, in the same order.

        Partition eviction does not forbid splitting: each place then counts its own partitions and
        tuples against the limit, and looks at their age when it has something to do. A window that
        ticks while it is empty fires in every such place.
        """
        return by_default(self, Operator, port)

    def functions(self) -> Iterable[tuple[str, Fold]] | None:
        """The functions of a window that its rows are made of, with their texts, for farms.

        None: nothing is known of them, and `function_kind` says what the author says.
        """
        return None

    def beyond_window(self) -> str:
        """What its rows depend on beside the tuples of the window that fires; "" if nothing.

        Only then may another worker process each window. By default it is what the class overrides
        that says so; override this if that is too careful.
        """
        return beyond_window(self, Operator)

    # -- parts of windows, for farms that compute them apart ---------------------------------------

    def part_of(self, window: Any, key: Any) -> Any:
        """The result of a part of a window: some of its tuples, next to each other.

        An operator whose function is associative says here what it makes of them, which is sent to
        the worker that merges; `window` is read as by a handler with `content = "arrow"`.
        """
        raise NotImplementedError

    def parts_of(self, windows: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
        """`part_of` for each of several; override it where many at once are cheaper."""
        return [self.part_of(window, key) for window, key in zip(windows, keys, strict=True)]

    def merge_parts(self, a: Any, b: Any) -> Any:
        """The result of two parts together; the tuples of `a` came before those of `b`."""
        raise NotImplementedError

    def merge_all_parts(self, parts: Sequence[Any]) -> Any:
        """`merge_parts` for one or more, in order; override it where many at once are cheaper."""
        return reduce(self.merge_parts, parts)

    @property
    def regroups(self) -> bool:
        """Whether what it keeps beside its windows can be told apart by key."""
        kinds = type(self).__mro__
        last = next(kind for kind in kinds if {"snapshot", "regroup"} & set(vars(kind)))
        return "regroup" in vars(last)

    def regroup(
        self, states: Sequence[Mapping[str, Any]], mine: Callable[[int, Any], bool]
    ) -> Any:  # fmt: skip
        """What running operators keep together of some keys, for hosts that move keys.

        An operator with a `snapshot` overrides it, or its keys always stay together. What is not
        of a key goes to all.

        Args:
            states: snapshots of running operators for different keys; what `snapshot` gave each is
                under "state", and those of its windows are under "windows".
            mine: whether a key is wanted, of the window at an input.
        """
        return None

    def snapshot(self) -> Any:
        """State beside the windows and the declared state, as plain data."""
        return None

    def save_part(self, part: Any) -> Any:
        """The result of a part as plain data, for hosts that send it as bytes.

        An operator whose `part_of` returns objects of its own overrides this and `load_part`.
        """
        return part

    def load_part(self, saved: Any) -> Any:
        """What `save_part` got."""
        return saved

    def emit_part(self, key: Any, part: Any) -> None:
        """Send the rows of a window, given the result of all its parts."""
        raise NotImplementedError

    def emit_again(self, window: Any, key: Any, whole: Any) -> Any:
        """Send rows for a part of a window, given the result of the whole.

        For operators that look at the tuples twice, as for those above the mean of the window.
        One that defines it does not need `emit_part`. What it returns, unless that is None, is the
        result of its part for another round: these are merged, and it is called with the whole.
        """
        raise NotImplementedError

    def passes(self, column: str, port: int) -> bool:
        """Whether an output row has the value of a column that all of its input rows had.

        So a graph knows what its next operator can be split by.
        """
        return False

    def schema(self, *columns: Any) -> Any:
        """The Arrow schema of the first output, from those of the inputs; None: as the rows are.

        What `output` says, unless the operator knows better. A field of type null stands for a
        type that only the values tell.

        Args:
            columns: the schema of each input, None where it is not known.
        """
        return self._declared(0)

    def schemas(self, *columns: Any) -> tuple[Any, ...]:
        """The Arrow schema of every output, from those of the inputs; None where only rows tell.

        The first is `schema(*columns)`. Rows that an operator puts aside as they are, such as
        those that come late, have the columns of the input they came from.

        Args:
            columns: the schema of each input, None where it is not known.
        """
        return tuple(
            self._other(port, columns) if port else self.schema(*columns)
            for port in range(len(self.model.outputs))
        )

    def _other(self, port: int, columns: Sequence[Any]) -> Any:
        declared = self._declared(port)
        return self._aside(port, columns) if declared is None else declared

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        """What the operator knows of the schema of an output behind the first."""
        late = self.model.outputs[port].name == "late"
        if not late or len(self.windows) != 1 or self.windows[0] is None:
            return None
        return columns[0] if self.windows[0].late == "port" else None

    def declared_columns(self, port: int) -> frozenset[str] | None:
        """The columns that `output` names for an output; None if it does not say."""
        text, owner = self._output_text(port)
        return None if text is None else frozenset(columns_of(text, owner))

    def _declared(self, port: int) -> Any:
        """What `output` says of the schema of an output."""
        text, owner = self._output_text(port)
        return None if text is None else schema_of(text, owner)

    def _output_text(self, port: int) -> tuple[Any, str]:
        """The text that declares an output, None if there is none, and what to call it."""
        said, owner = self.output, f"{type(self).__name__}.output"
        if not isinstance(said, Mapping):
            return (None if port else said), owner
        names = [each.name for each in self.model.outputs]
        for name in said:
            if name not in names:
                msg = (
                    f"{owner} = {{{name!r}: ...}}: there is no such output. Outputs: "
                    f"{', '.join(names) or 'none'}.{suggestion(name, names)}"
                )
                raise ModelError(msg)
        return (said.get(names[port]), f"{owner}[{names[port]!r}]") if names else (None, owner)


def _rebuild(kind: type[Operator], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operator:
    return kind(*args, **kwargs)


def _own(value: Any) -> Any:
    """A copy of the lists and dicts in it, so that changing the caller's changes no operator.

    Columns of PySpark's are expressions in it: a column belongs to the session of one process.
    """
    if type(value) is dict:
        return {name: _own(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_own, value))
    if type(value).__module__.startswith("pyspark."):
        return extension("translated_column")(value)
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
    return unaddressed(repr(value))


def unaddressed(text: str) -> str:
    """A text without addresses, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
