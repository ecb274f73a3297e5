"""A running operator: what every host drives, in process or inside Spark.

Rows and punctuations go in, and come out where `connect` sends them, before the call returns.
Between two calls nothing is under way, so a snapshot may be taken there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from windowlib.durations import Instant, as_instant, instant_text
from windowlib.errors import ClockError, OperatorError, StateVersionError, WindowlibError
from windowlib.runtime.arrival_order import stated_order
from windowlib.runtime.operator_state import OperatorState
from windowlib.spec.specification import Spec
from windowlib.window.arrow import (
    OutputRows,
    Times,
    as_arrow,
    chunks_of,
    columns_of,
    in_order,
    rows_of,
)
from windowlib.window.container import Window
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.failure import broken_state, raise_first
from windowlib.window.snapshot import ARRAY_READERS, ARRAYS, first_change, reader
from windowlib.window.subwindow import UNSET

if TYPE_CHECKING:
    from windowlib.runtime.operator import Operator
    from windowlib.window.container import Bound, Window

Row = Callable[[Any], None]
Punct = Callable[[], None]


def nowhere(*_: Any) -> None:
    """Discard a row, for outputs without a reader."""


class Running:
    """A running operator: its windows, its state and its outputs.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.operators import Aggregate, agg
    >>> running = Aggregate(Tumbling(Count(2)), total=agg.sum("x")).open()
    >>> rows = []
    >>> running.connect(0, rows.append)
    >>> running.insert({"x": 1})
    >>> running.insert({"x": 2})
    >>> rows
    [{'total': 3}]
    """

    streams: ClassVar[bool] = True
    """Whether `insert_each` takes each row before it asks for the next, and fails at once."""

    _broken: str | None = None  # what an interrupt stopped half-way; the state is lost
    _binds = False  # whether `insert` and `advance` may be one function with those of a window
    _retire: Mapping[str, Callable[[], None]] = MappingProxyType({})  # of such functions, by name

    def __init__(self, operator: Operator, start: Instant = 0) -> None:
        self.definition = operator
        self.operator = op = operator.rebuilt()
        self._now = as_instant(start, argument="start")
        self.model = op.model
        self._ended: set[int] = set()
        ports = len(self.model.outputs)
        self._rows: list[Row] = [nowhere] * ports
        self._marks: list[Punct] = [nowhere] * ports
        self._finals: list[Punct] = [nowhere] * ports
        self._made = OutputRows()
        self._schemas: list[Any] = [None] * len(self.model.inputs)  # of batches that held rows
        self._wire()
        op.containers = tuple(
            None if spec is None else self._container(spec, port, start)
            for port, spec in enumerate(op.windows)
        )
        for port, container in enumerate(op.containers):
            if container is not None:
                container.port = port
        self._live = [container for container in op.containers if container is not None]
        self._own = op._own = OperatorState(op, self)
        # Where rows go straight into the windows, they do so without asking the operator.
        self._direct = op.containers if op.inserts_directly else (None,) * len(self.model.inputs)
        op.on_open()

    def _container(self, spec: Spec, port: int, start: Instant) -> Window[Any, Any]:
        op = self.operator
        make, consumer = op.container(port), op.consumer(port)
        told = {} if consumer is None else {"consumer": consumer}
        return make(spec, events=op, summarizer=op.summarizer(port), start=start, **told)

    def connect(
        self, port: int | str, row: Row, punct: Punct = nowhere, final: Punct = nowhere
    ) -> None:
        """Connect an output port: functions for a row, for a punctuation and for the end."""
        number = self.model.output(port, self.operator.name)
        self._rows[number], self._marks[number], self._finals[number] = row, punct, final
        self._wire()

    def _wire(self) -> None:
        self.operator._outputs, self.operator._puncts = tuple(self._rows), tuple(self._marks)

    # -- input ------------------------------------------------------------------------------------

    def insert(self, row: Any, port: int = 0) -> None:
        """Take one row."""
        try:
            take = self._takers[port]["insert"]
        except KeyError:
            take = self._row_inserter(port)
        try:
            if take is None:
                self.operator.on_tuple(row, port)
            else:
                take(row)
        except BaseException as error:
            self._failed(error, row, take is None)
            raise
        if self._binds and port == 0:
            self._binds = False
            self._bind(row)
            self._bind_clock()

    def _failed(self, error: BaseException, row: Any, by_operator: bool = False) -> None:
        """The exception to raise after a failed row."""
        if isinstance(error, Exception):
            self._note(error, f"row {row!r}")
        elif by_operator or any(window.state.interrupts for window in self._live):
            self._break("taking a row")

    def _row_inserter(self, port: int) -> Row | None:
        """The function that inserts a row at a port; None: the operator's `on_tuple`."""
        if port not in self._taking:
            self._refuse("insert(row)", port)
        window = self._direct[port]
        if window is not None:  # its insert is built by the first row, and there from then on
            self._takers[port] = window.state.calls
            return window.insert
        self._takers[port] = {"insert": None}
        return None

    def _bind(self, row: Any) -> None:
        """Fuse `insert` with that of the window, for rows like this one."""
        window = self._direct[0]
        if window is None:
            return
        failed = window.state.failed

        def row_failed(error: BaseException, row: Any, key: Any) -> BaseException:
            try:
                error = failed(error, row, key)
            except BaseException as other:
                error = other
            self._failed(error, row)
            return error

        other = partial(Running.insert, self)
        self._replace_method(
            "insert", window.state.fused_insert(row, other, row_failed, self._unbind)
        )

    def _bind_clock(self) -> None:
        """Fuse `advance` with that of the only window, if nothing else is timed."""
        window = self._only_timed_window
        if window is not None and type(self).advance_micros is Running.advance_micros:
            self._replace_method(
                "advance", window.state.fused_advance(self, self.advance_micros, self._unbind)
            )

    def _replace_method(self, name: str, made: Bound | None) -> None:
        """Replace a method by a function."""
        if made is not None:
            call, retire = made
            self._retire = {**self._retire, name: retire}  # before there is anything to retire
            vars(self)[name] = call

    def _unbind(self) -> None:
        """Restore the methods, which handle all cases, for callers that hold the functions, too."""
        for name, retire in self._retire.items():
            vars(self).pop(name, None)  # an interrupt may have come before
            retire()
        self._retire = Running._retire
        self._binds = type(self).insert is Running.insert

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order: the same as `insert` for each, only faster."""
        if port not in self._taking:
            self._refuse("insert_many(rows)", port)
        window = self._direct[port]
        if window is not None:
            try:
                window.insert_many(rows)
            except BaseException:
                if window.state.interrupts:  # and not while it waited for a row
                    self._break("taking a row")
                raise
        else:
            for row in rows:
                self.insert(row, port)

    def insert_timed(self, rows: Iterable[Any], times: Times, port: int = 0) -> None:
        """Advance to the time of each row, and insert it."""
        left, window = iter(rows), self._direct[port]
        for row in left:
            self.advance_micros(times.forward(times(row), self.micros))
            self.insert(row, port)
            if window is not None and self._only_timed_window is window and type(times) is Times:
                loop = window.state.insert_timed(row, times.get)
                if loop is not None:
                    self._take_timed(window, partial(loop, left, times), times)

    def _take_timed(
        self, window: Window[Any, Any], loop: Callable[..., None], times: Times
    ) -> None:
        """Insert rows with their times straight into a window; the own clock follows at the end."""

        def move(now: int) -> None:
            self._now = window.state.now
            self.advance_micros(times.forward(now, self._now))

        try:
            loop(move)
        except BaseException:
            if window.state.interrupts:
                self._break("taking a row")
            raise
        finally:
            self._now = window.state.now

    def insert_each(
        self,
        rows: Iterator[Any],
        out: Sized,
        port: int = 0,
        *,
        sample: Any,
        is_mark: Callable[[Any], bool],
    ) -> Generator[None, None, Any]:
        """Insert each row before the next is requested, and pause after one that has caused output.

        Args:
            rows: where rows come from.
            out: what the outputs put their rows into: anything in it is a reason to pause.
            port: the input port.
            sample: the row before.
            is_mark: whether what is given is no row. It is the last that is asked for.

        Returns:
            A generator, whose value is what is no row, or UNSET.
        """
        window = self._direct[port]
        each = None if window is None else window.state.insert_each(rows, out, sample, is_mark)
        return each or insert_in_runs(self, rows, out, port, sample=sample, is_mark=is_mark)

    def insert_batch(self, batch: Any, port: int = 0, times: str | None = None) -> None:
        """Take the rows of an Arrow batch or table in order, whole columns at once if it can.

        Args:
            batch: a `pyarrow.RecordBatch` or `pyarrow.Table`, or a DataFrame of pandas, polars or
                another library with Arrow streams. Its rows are taken in the order that the
                window's `order_by` says, if it says any.
            port: the input port.
            times: the column that says when a row arrives, as seconds or timestamps: `advance` to
                that time comes before its `insert`. Without it all rows arrive now.
        """
        batch, _ = self._checked_batch(batch, "insert_batch", port, times)
        self._take_batch(batch, port, times, self._orders[port])

    def insert_ordered(self, batch: Any, port: int = 0, times: str | None = None) -> None:
        """`insert_batch` of rows that are in order, whatever the window's `order_by` says."""
        batch, _ = self._checked_batch(batch, "insert_ordered", port, times)
        self._take_batch(batch, port, times, None)

    def begin(self, now: int, schemas: Sequence[Any]) -> None:
        """For hosts, before the first row: the time in microseconds, and the columns of inputs."""
        self._set_clocks(now)
        self._schemas = list(schemas)
        if all(schema is not None for schema in schemas):
            self.operator.expect_columns([schema.names for schema in schemas])

    def isolate_partition_ages(self) -> None:
        """For hosts that split keys: partitions age by themselves, whichever share a window."""
        for window in self._live:
            window.state.isolate_partition_ages()

    def collect(self, outputs: Sequence[OutputRows]) -> None:
        """For hosts: collect the rows of each output, those of the first as columns if possible."""
        for port, made in enumerate(outputs):
            self.connect(port, made.add)
        if outputs:
            self._collect_columns(0, outputs[0])

    @contextmanager
    def sending_columns(self, take: Callable[[Any], None]) -> Iterator[None]:
        """For hosts: a context in which rows of the first output are sent as columns if possible.

        Those rows come without punctuations.
        """
        marks, self._marks = self._marks, [nowhere] * len(self._marks)
        try:
            with self._columns_to(take):
                yield
        finally:
            self._marks = marks
            self._wire()

    @contextmanager
    def _columns_to(self, take: Callable[[Any], None]) -> Iterator[None]:
        self._wire()
        self.operator._many = take
        try:
            yield
        finally:
            self.operator._many = None

    def _collect_columns(self, port: int, made: OutputRows) -> None:
        self.operator._many = made.add_columns

    def _take_batch(self, batch: Any, port: int, times: str | None, order: Any) -> None:
        """Insert a batch that `_checked_batch` returned, after sorting it; None: it is in order."""
        if order is not None and batch.num_rows:
            batch = in_order(batch, order)
        window = self._direct[port]
        with self._atomic("taking a batch"):
            for part in chunks_of(batch):
                if times is not None:
                    self._insert_timed(part, port, times)
                elif window is not None:
                    window.state.handover().insert(part)
                else:
                    left = self.operator._take(part, port, self.insert)
                    if left.num_rows:
                        self.insert_many(rows_of(left), port)

    def take_columns(self, columns: Any, port: int) -> None:
        """Take rows that another operator sends as columns, with punctuations between them.

        After a failure the other rows are still sent.
        """
        batch = columns.batch()
        self._note_schema(batch, port)
        window, failures = self._direct[port], list[Exception]()
        if window is None or window.event_time or not self.operator.marks_close(port):
            self._one_by_one(batch, columns.marks, port, failures)
        else:
            marks = columns.marks if window.spec.punctuated else columns.marks[:0]
            insert = partial(self.insert, port=port)
            with self._atomic("taking a batch"):
                failures += window.state.handover().insert_marked(batch, marks, insert)
        raise_first(failures)

    def _one_by_one(self, batch: Any, marks: Any, port: int, failures: list[Exception]) -> None:
        """Rows and punctuations, one after the other."""
        rows, at = rows_of(batch), 0
        for end, marked in [*((int(mark), True) for mark in marks), (len(rows), False)]:
            for row in rows[at:end]:
                with collect_failures(failures):
                    self.insert(row, port)
            at = end
            if marked:
                with collect_failures(failures):
                    self.punctuate(port)

    def _checked_batch(
        self, batch: Any, call: str, port: int, times: str | None
    ) -> tuple[Any, list[Any]]:
        """Check a batch before any row is inserted, convert it to Arrow, and note its schema."""
        if port not in self._taking:
            self._refuse(f"{call}(batch)", port)
        schemas, batch = [*self._schemas], as_arrow(batch, call)
        schemas[port] = columns_of(batch, call, times)
        self._note_schema(batch, port)
        return batch, schemas

    @cached_property
    def _orders(self) -> list[Any]:
        """The columns that order the rows of a batch at each port, the same for all batches."""
        return [
            stated_order(self.operator.order_of(port)) for port in range(len(self.model.inputs))
        ]

    def _note_schema(self, batch: Any, port: int) -> None:
        """Note the schema of a port."""
        if batch.num_rows:
            self._schemas[port] = batch.schema

    def _insert_timed(self, batch: Any, port: int, times: str) -> None:
        """Advance to the time of each row, and insert it."""
        window, when = self._direct[port], Times(times)
        if window is not None and self._only_timed_window is window and not window.event_time:
            try:
                rows = window.state.handover().insert_timed(batch, times)
            finally:
                self._now = window.state.now
        else:
            rows = batch.to_pylist()
        self.insert_timed(rows, when, port)  # of several windows, or with a time that is none

    @cached_property
    def _only_timed_window(self) -> Window[Any, Any] | None:
        """The only window that time moves; None: there are others, or other timers."""
        return None if len(self._live) != 1 or self.operator._watches_clock else self._live[0]

    def process_batch(self, batch: Any, port: int = 0, times: str | None = None) -> Any:
        """Take a batch and give the rows of the first output that it made as an Arrow batch.

        The rows are those that `insert` of each row would send, in the same order. If a row is
        refused, the exception comes out, the rows before it have been taken, and what they made
        comes with the next call. The arguments are those of `insert_batch`.

        >>> import pyarrow as pa
        >>> from windowlib import Count, Tumbling
        >>> from windowlib.operators import Aggregate, agg
        >>> running = Aggregate(Tumbling(Count(2)), total=agg.sum("x")).open()
        >>> running.process_batch(pa.record_batch({"x": [1, 2, 3, 4, 5]})).to_pylist()
        [{'total': 3}, {'total': 7}]
        """
        batch, schemas = self._checked_batch(batch, "process_batch", port, times)
        made, schema = self._made, self.operator.schema(*schemas)
        row, self._rows[0] = self._rows[0], made.add
        try:
            with self._columns_to(made.add_columns):
                self._take_batch(batch, port, times, self._orders[port])
        finally:
            self._rows[0] = row
            self._wire()
        return made.taken(schema)

    def punctuate(self, port: int = 0) -> None:
        """Take a window punctuation; outputs that preserve this port's pass it on."""
        if port not in self._taking:
            self._refuse("punctuate()", port)
        try:
            self.operator.on_punctuation(port)
            self.operator.forward(port)
        except BaseException as error:
            if isinstance(error, Exception):
                self._note(error, "at a punctuation")
            else:
                self._break("taking a punctuation")
            raise

    def finish(self, port: int | None = None) -> None:
        """The input of a port ends, or of all; when the last has ended, so does the output."""
        failures: list[Exception] = []
        with self._atomic("ending its input"):
            ending = self._end(port)
            for each in ending:
                self._call_at_end(failures, partial(self.operator.on_input_end, each))
            if ending and not self._taking:
                for window in self._event_time:
                    self._call_at_end(failures, window.finish)
                if self.operator.on_event_time:
                    self._own.close(failures)
                self._call_at_end(failures, self.operator.on_finish)
                for final in self._finals:
                    with collect_failures(
                        failures
                    ):  # whatever fails, readers of the output learn of its end
                        final()
        raise_first(failures)

    def _call_at_end(self, failures: list[Exception], tell: Callable[[], None]) -> None:
        with collect_failures(failures):
            try:
                tell()
            except Exception as error:
                self._note(error, "at the end of its input")
                raise

    def _end(self, port: int | None) -> list[int]:
        """Close a port, or all of them; the ports that were open."""
        ports = range(len(self.model.inputs))
        if port is not None and port not in ports:
            self._refuse("finish()", port)
        ending = [each for each in ports if port in (None, each) and each in self._taking]
        self._ended |= set(ending)
        return ending

    @property
    def _ended(self) -> set[int]:
        return set(range(len(self.model.inputs))) - self._taking

    @_ended.setter
    def _ended(self, ports: Iterable[int]) -> None:
        self._taking = set(range(len(self.model.inputs))) - set(ports)
        self._takers: dict[int, Mapping[str, Row | None]] = {}  # by the ports that take rows
        self._unbind()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.operator.name}>"

    def _refuse(self, call: str, port: int) -> NoReturn:
        """Refuse input at a port that does not exist or has ended."""
        self._refuse_broken()
        number = self.model.input(port, self.operator.name)
        if number in self._taking:
            msg = f"{self.operator.name}.{call}: port={port!r} is a name. Pass port={number}."
            raise OperatorError(msg)
        name = self.model.inputs[number].name
        of = f" of {name!r}" if len(self.model.inputs) > 1 else ""
        msg = f"{self.operator.name}.{call}: its input{of} has ended. Open the operator anew."
        raise OperatorError(msg)

    def _break(self, doing: str) -> None:
        """Refuse every later use: an interrupt has left the state or the output incomplete."""
        self._broken = doing
        self._ended = range(len(self.model.inputs))

    def _refuse_broken(self) -> None:
        if self._broken is None and any(window.state.interrupts for window in self._live):
            self._break("taking a row")
        if self._broken is not None:
            raise broken_state(f"{self.operator.name}", self._broken, "Open the operator anew")

    @contextmanager
    def _atomic(self, doing: str) -> Iterator[None]:
        """A context in which an interrupt leaves the operator broken."""
        self._refuse_broken()
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                self._break(doing)
            raise

    def _note(self, error: Exception, where: str) -> None:
        """Add a note to an error that has none from a window."""
        told = any(note.startswith("in ") for note in getattr(error, "__notes__", ()))
        if not told and not isinstance(error, WindowlibError):
            error.add_note(f"in {self.operator.name}, {where}")

    # -- time -------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The time in seconds."""
        return self._now / 1e6

    @property
    def micros(self) -> int:
        """The time in microseconds."""
        return self._now

    @property
    def windows(self) -> Sequence[Window[Any, Any]]:
        """The live windows of the operator."""
        return self._live

    @property
    def timed(self) -> bool:
        """Whether something in it runs on the clock."""
        return self.operator.timed

    @property
    def _event_time(self) -> list[EventTimeWindow[Any, Any]]:
        return [window for window in self._live if isinstance(window, EventTimeWindow)]

    def follow(self) -> None:
        """Let the host set the watermark with `reach`, not the rows; only before the first row."""
        for window in self._event_time:
            window.follow()

    def reach(self, watermark: Any) -> None:
        """Raise the watermark, and fire the windows that it closes.

        Args:
            watermark: a number, or microseconds for datetimes.
        """
        failures: list[Exception] = []
        with self._atomic("taking a watermark"):
            for window in self._event_time:
                with collect_failures(failures):
                    window.reach(watermark)
        raise_first(failures)

    def closes(self) -> Any:
        """The least watermark that may close or forget a window; None: there is none with rows."""
        found = [at for window in self._event_time if (at := window.closes()) is not None]
        timer = self._own.timers.due() if self.operator.on_event_time else None
        return min(found if timer is None else [*found, timer], default=None)

    def due(self) -> int | None:
        """The next deadline in microseconds, or None."""
        times = [due for window in self._active_windows if (due := window.state.due()) is not None]
        return min([*times, *self._timer()], default=None)

    def _timer(self) -> list[int]:
        """When the first timer of the clock is due, if there is one."""
        due = None if self.operator.on_event_time else self._own.timers.due()
        return [due] if due is not None and self._taking else []

    def _visible_due(self) -> int | None:
        """The next deadline with a visible effect, or None."""
        if self.operator._watches_clock:
            return self.due()
        times = [
            at for window in self._active_windows if (at := window.state.visible_due()) is not None
        ]
        return min(times, default=None)

    @property
    def _active_windows(self) -> list[Window[Any, Any]]:
        """The windows with deadlines: none after the end of the input."""
        return self._live if self._taking else []

    def advance(self, now: Instant) -> None:
        """Move the clock; whatever is due in any window happens at its own time, in order."""
        move = vars(self).get("advance")  # a caller may have this method from before there was one
        if move is None:
            self.advance_micros(as_instant(now))
        else:
            move(now)

    def advance_micros(self, now: int) -> None:
        """`advance`, in microseconds."""
        self._refuse_broken()
        self._check_time(now)
        window = self._only_timed_window
        if window is not None and self._taking and window.state.try_advance(now):
            self._now = now
            return
        failures: list[Exception] = []
        try:
            while (due := self._visible_due()) is not None and due <= now:
                self._set_clocks(max(due, self._now))
                self._act(failures)
            self._set_clocks(now)
            self._act(failures)
        except BaseException as error:
            if not isinstance(error, Exception):
                self._break("advancing its clock")
            raise
        raise_first(failures)

    def _check_time(self, now: int) -> None:
        if now < self._now:
            msg = (
                f"advance({now / 1e6:g}): time went back from {self.now:g}. An operator's clock "
                f"only moves forward; open it anew, or restore a snapshot."
            )
            raise ClockError(msg)

    def _set_clocks(self, now: int) -> None:
        """Set all clocks before anything fires, so that output is sent at the right time."""
        self._now = now
        for window in self._live:
            window.state.now = now

    def _act(self, failures: list[Exception]) -> None:
        """Do what is due now, if anything is."""
        for window in self._active_windows:
            try:
                with window.locked():
                    window.state.advance(self._now)
            except Exception as error:  # the others are still done after one failure
                failures.append(error)
        if not self.operator._watches_clock:
            return
        if self._timer():
            self._own.wake(self._now, failures)
        with collect_failures(failures):
            try:
                self.operator.on_advance()
            except Exception as error:
                self._note(error, f"at time {instant_text(self._now)}")
                raise

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """The complete state as plain data, from which `restore` continues with the same output.

        Args:
            arrays: whether what batches have left in arrays comes out as numpy and Arrow arrays,
                as it is. That is much faster and smaller where there are many partitions.
        """
        self._refuse_broken()
        op = self.operator
        windows = []
        for window in self._live:
            state = window.snapshot(arrays=True) if arrays else window.snapshot()
            del state["events"]  # the operator's own state is kept once, not once a window
            windows.append(state)
        return {
            "v": VERSION,
            **(batch_states(self._schemas, self._live) if arrays else {}),
            "operator": self.definition.describe(),
            "now": self._now,
            "ended": sorted(self._ended),
            "windows": windows,
            "state": copy.deepcopy(op.snapshot()),
            **self._own.save(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a running operator that was built in the same way.

        Nothing changes if the state does not fit.
        """
        state = checked_state(state, self.definition.describe())
        before = self.snapshot(arrays=True)
        try:
            with self._atomic("restoring a snapshot"):
                self._put(state)
        except Exception as error:
            self._put(before)
            if isinstance(error, WindowlibError):
                raise
            msg = (
                f"restore(state): {self.operator.name} cannot read the snapshot ({error!r}). Take "
                f"it from snapshot() whole."
            )
            raise StateVersionError(msg) from error

    def _put(self, state: Mapping[str, Any]) -> None:
        for window, saved in zip(self._live, state["windows"], strict=True):
            window.restore(saved)
        self._now, self._ended = state["now"], set(state["ended"])
        if "arrays" in state:
            self._schemas = restore_batch_states(state, self._live)
        self._own.load(state)
        self.operator.restore(copy.deepcopy(state["state"]))


def insert_in_runs(
    running: Any,
    rows: Iterator[Any],
    out: Sized,
    port: int,
    *,
    sample: Any,
    is_mark: Callable[[Any], bool],
) -> Generator[None, None, Any]:
    """`insert_each` by `insert_many`, which is called again after each pause."""
    kind, other = type(sample), []

    def alike() -> Iterator[Any]:
        for row in rows:
            if type(row) is not kind and is_mark(row):
                other.append(row)
                return
            yield row
            if out:
                return
        other.append(UNSET)

    while not other:
        running.insert_many(alike(), port)
        if out:
            yield
    return other[0]


@contextmanager
def collect_failures(failures: list[Exception]) -> Iterator[None]:
    """Collect an exception, so that the remaining work is still done."""
    try:
        yield
    except Exception as error:
        failures.append(error)


# -------------------------------------------------------------------------------------------------
# What the snapshots of running operators have in common: their format, and what wrote them.


VERSION = 1
READERS: dict[int, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {VERSION: dict}
"""For each format that was ever released, what makes a snapshot of this one of it."""
NO_SNAPSHOT = "restore(state): this is not a snapshot of an operator. Pass what snapshot() gave."


def batch_states(schemas: Sequence[Any], windows: Sequence[Window[Any, Any]]) -> dict[str, Any]:
    """The entries of a snapshot with arrays: schemas of ports, and batch states of windows."""
    hosts = [window.state.batches for window in windows]
    batches = [None if host is None else host.batch_state() for host in hosts]
    return {"arrays": ARRAYS, "schemas": list(schemas), "batches": batches}


def restore_batch_states(
    state: Mapping[str, Any], windows: Sequence[Window[Any, Any]]
) -> list[Any]:
    """Restore the batch states of windows from a snapshot with arrays; the schemas of the ports."""
    for window, batch_state in zip(windows, state["batches"], strict=True):
        if batch_state is not None or window.state.batches is not None:
            window.state.handover().restore_batch_state(batch_state)
    return list(state["schemas"])


def checked_state(state: Mapping[str, Any], now: Mapping[str, str]) -> Mapping[str, Any]:
    """A snapshot in this format; one of an unknown format or of another operator is refused."""
    if not isinstance(state, Mapping) or not {"v", "operator", "state"} <= set(state):
        raise StateVersionError(NO_SNAPSHOT)
    state = reader("the snapshot has", state["v"], READERS)(state)
    if "arrays" in state:
        reader("the arrays of the snapshot have", state["arrays"], ARRAY_READERS)
    was = state["operator"]
    if not isinstance(was, Mapping):
        raise StateVersionError(NO_SNAPSHOT)
    if (name := first_change(was, now)) is not None:
        msg = (
            f"restore(state): the snapshot was written with {name}={was.get(name)}; this "
            f"operator says {name}={now.get(name)}. Build it as it was, or start afresh."
        )
        raise StateVersionError(msg)
    return state
