"""A running operator: what every host drives, in process or inside Spark.

Rows and punctuations go in, and come out where `connect` sends them, before the call returns.
Between two calls nothing is under way, so a snapshot may be taken there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from windowlib.arrivals import Times
from windowlib.batched import Made, columns_of, in_order, record_batches
from windowlib.dicts import rows_of
from windowlib.durations import Instant, as_instant, instant_text
from windowlib.errors import ClockError, OperatorError, StateVersionError, WindowlibError
from windowlib.failure import raise_first
from windowlib.spec import Spec
from windowlib.states import VERSION, check_state, form_of, put_form
from windowlib.window import Window

if TYPE_CHECKING:
    from windowlib.operator import Operator

Row = Callable[[Any], None]
Punct = Callable[[], None]


def nowhere(*_: Any) -> None:
    """An output that nobody listens to."""


class Running:
    """One operator at work.

    >>> from windowlib import Count, Tumbling
    >>> from operators import Aggregate, agg
    >>> running = Aggregate(Tumbling(Count(2)), total=agg.sum("x")).open()
    >>> rows = []
    >>> running.connect(0, rows.append)
    >>> running.insert({"x": 1})
    >>> running.insert({"x": 2})
    >>> rows
    [{'total': 3}]
    """

    def __init__(self, operator: Operator, start: Instant = 0) -> None:
        self.definition = operator
        self.operator = op = operator._rebuilt()
        self._now = as_instant(start, argument="start")
        self.model = op.model
        self._ended: set[int] = set()
        ports = len(self.model.outputs)
        self._rows: list[Row] = [nowhere] * ports
        self._marks: list[Punct] = [nowhere] * ports
        self._finals: list[Punct] = [nowhere] * ports
        self._made = Made()
        self._schemas: list[Any] = [None] * len(self.model.inputs)  # of batches that held rows
        self._wire()
        op.containers = tuple(
            None if spec is None else self._container(spec, port, start)
            for port, spec in enumerate(op.windows)
        )
        self._live = [container for container in op.containers if container is not None]
        # Where rows go straight into the windows, they do so without asking the operator.
        self._direct = op.containers if op._plain else (None,) * len(self.model.inputs)
        op.on_open()

    def _container(self, spec: Spec, port: int, start: Instant) -> Window[Any, Any]:
        op = self.operator
        make = op.container(port)
        return make(spec, events=op, summarizer=op.summarizer(port), start=start)

    def connect(
        self, port: int | str, row: Row, punct: Punct = nowhere, final: Punct = nowhere
    ) -> None:
        """Send what an output port gives to functions: of a row, at a punctuation, at the end."""
        number = self.model.output(port, self.operator.name)
        self._rows[number], self._marks[number], self._finals[number] = row, punct, final
        self._wire()

    def _wire(self) -> None:
        self.operator._outputs, self.operator._puncts = tuple(self._rows), tuple(self._marks)

    # -- input ------------------------------------------------------------------------------------

    def insert(self, row: Any, port: int = 0) -> None:
        """Take one row."""
        if port not in self._taking:
            self._refuse("insert(row)", port)
        window = self._direct[port]
        try:
            if window is not None:
                window.insert(row)
            else:
                self.operator.on_tuple(row, port)
        except Exception as error:
            self._note(error, f"row {row!r}")
            raise

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order: the same as `insert` for each, only faster."""
        if port not in self._taking:
            self._refuse("insert_many(rows)", port)
        window = self._direct[port]
        if window is not None:
            window.insert_many(rows)
        else:
            for row in rows:
                self.insert(row, port)

    def insert_batch(self, batch: Any, port: int = 0, times: str | None = None) -> None:
        """Take the rows of an Arrow batch or table in order, whole columns at once if it can.

        Args:
            batch: a `pyarrow.RecordBatch` or `pyarrow.Table`; its rows are taken in the order that
                the window's `order_by` says, if it says any.
            port: the input port.
            times: the column that says when a row arrives, as seconds or timestamps: `advance` to
                that time comes before its `insert`. Without it all rows arrive now.
        """
        self._take_batch(batch, port, times, self.operator.order_by)

    def _take_batch(self, batch: Any, port: int, times: str | None, order: Any) -> None:
        """`insert_batch` in an order; None if somebody has seen to that."""
        self._offered(batch, "insert_batch", port, times)
        if order is not None and batch.num_rows:
            batch = in_order(batch, order)
        window = self._direct[port]
        for part in record_batches(batch, "insert_batch"):
            if times is not None:
                self._insert_timed(part, port, times)
            elif window is not None:
                window.insert_batch(part)
            else:
                left = self.operator._take(part, port, self.insert)
                self.insert_many(rows_of(left), port)

    def _offered(self, batch: Any, call: str, port: int, times: str | None) -> list[Any]:
        """Refuse a batch that cannot be taken, before any of its rows is; the schemas of ports."""
        if port not in self._taking:
            self._refuse(f"{call}(batch)", port)
        schemas = [*self._schemas]
        schemas[port] = columns_of(batch, call, times)
        if batch.num_rows:
            self._schemas[port] = schemas[port]
        return schemas

    def _insert_timed(self, batch: Any, port: int, times: str) -> None:
        """Advance to the time of each row, and insert it."""
        window, when = self._direct[port], Times(times)
        if window is not None and self._one_clock:
            try:
                rows = window._host().insert_timed(batch, times)
            finally:
                self._now = window._now
        else:
            rows = batch.to_pylist()
        for row in rows:  # of several windows, or with a time that is none
            self.advance_micros(when(row))
            self.insert(row, port)

    @property
    def _one_clock(self) -> bool:
        """Whether time moves one window and nothing else."""
        return len(self._live) == 1 and not self.operator._watches_clock

    def process_batch(self, batch: Any, port: int = 0, times: str | None = None) -> Any:
        """Take an Arrow batch and give the rows of the first output that it made as another.

        The rows are those that `insert` of each row would send, in the same order. If a row is
        refused, the exception comes out, the rows before it have been taken, and what they made
        comes with the next call. The arguments are those of `insert_batch`.

        >>> import pyarrow as pa
        >>> from windowlib import Count, Tumbling
        >>> from operators import Aggregate, agg
        >>> running = Aggregate(Tumbling(Count(2)), total=agg.sum("x")).open()
        >>> running.process_batch(pa.record_batch({"x": [1, 2, 3, 4, 5]})).to_pylist()
        [{'total': 3}, {'total': 7}]
        """
        schemas = self._offered(batch, "process_batch", port, times)
        made, schema = self._made, self.operator.schema(*schemas)
        row, self._rows[0] = self._rows[0], made.add
        self._wire()
        self.operator._many = made.add_columns
        try:
            self.insert_batch(batch, port, times)
        finally:
            self._rows[0], self.operator._many = row, None
            self._wire()
        return made.taken(schema)

    def punctuate(self, port: int = 0) -> None:
        """Take a window punctuation; outputs that preserve this port's pass it on."""
        if port not in self._taking:
            self._refuse("punctuate()", port)
        try:
            self.operator.on_punctuation(port)
            self.operator.forward(port)
        except Exception as error:
            self._note(error, "at a punctuation")
            raise

    def finish(self, port: int | None = None) -> None:
        """The input of a port ends, or of all; when the last has ended, so does the output."""
        if not self._end(port) or self._taking:
            return
        failures: list[Exception] = []
        with kept(failures):  # whatever fails, those who read the output learn of its end
            try:
                self.operator.on_finish()
            except Exception as error:
                self._note(error, "at the end of its input")
                raise
        for final in self._finals:
            with kept(failures):
                final()
        raise_first(failures)

    def _end(self, port: int | None) -> list[int]:
        """Take no more input at a port, or at all; which ports that changes."""
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.operator.name}>"

    def _refuse(self, call: str, port: int) -> NoReturn:
        """Input at a port that takes none: there is no such port, or its input is over."""
        number = self.model.input(port, self.operator.name)
        if number in self._taking:
            msg = f"{self.operator.name}.{call}: port={port!r} is a name. Pass port={number}."
            raise OperatorError(msg)
        name = self.model.inputs[number].name
        of = f" of {name!r}" if len(self.model.inputs) > 1 else ""
        msg = f"{self.operator.name}.{call}: its input{of} has ended. Open the operator anew."
        raise OperatorError(msg)

    def _note(self, error: Exception, where: str) -> None:
        """Windows say where a handler failed; anything else is said here."""
        told = any(note.startswith("in ") for note in getattr(error, "__notes__", ()))
        if not told and not isinstance(error, WindowlibError):
            error.add_note(f"in {self.operator.name}, {where}")

    # -- time -------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Where the clock is, in seconds."""
        return self._now / 1e6

    @property
    def timed(self) -> bool:
        """Whether something in it runs on the clock."""
        return any(window.spec.timed for window in self._live)

    def due(self) -> int | None:
        """When it next has to act by itself, in microseconds, or None."""
        times = [due for window in self._awake if (due := window._due()) is not None]
        return min(times, default=None)

    def _wakes(self) -> int | None:
        """When next something happens that can be seen."""
        if self.operator._watches_clock:
            return self.due()
        times = [at for window in self._awake if (at := window._wakes()) is not None]
        return min(times, default=None)

    @property
    def _awake(self) -> list[Window[Any, Any]]:
        """The windows that still act: after the end of the input, none does."""
        return self._live if self._taking else []

    def advance(self, now: Instant) -> None:
        """Move the clock; whatever is due in any window happens at its own time, in order."""
        self.advance_micros(as_instant(now))

    def advance_micros(self, now: int) -> None:
        """`advance`, in microseconds."""
        self._check_time(now)
        failures: list[Exception] = []
        while (due := self._wakes()) is not None and due <= now:
            self._tell(max(due, self._now))
            self._act(failures)
        self._tell(now)
        self._act(failures)
        raise_first(failures)

    def _check_time(self, now: int) -> None:
        if now < self._now:
            msg = (
                f"advance({now / 1e6:g}): time went back from {self.now:g}. An operator's clock "
                f"only moves forward; open it anew, or restore a snapshot."
            )
            raise ClockError(msg)

    def _tell(self, now: int) -> None:
        """Set all clocks, before anything happens: what is sent at a time arrives at that time."""
        self._now = now
        for window in self._live:
            window._now = now

    def _act(self, failures: list[Exception]) -> None:
        """Do what is due now, if anything is."""
        for window in self._awake:
            with kept(failures), window.locked():
                window._advance(self._now)
        with kept(failures):
            try:
                self.operator.on_advance()
            except Exception as error:
                self._note(error, f"at time {instant_text(self._now)}")
                raise

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """Everything it holds, as plain data; going on after `restore` gives the same output.

        Args:
            arrays: whether what batches have left in arrays comes out as numpy and Arrow arrays,
                as it is. That is much faster and smaller where there are many partitions.
        """
        op = self.operator
        windows = []
        for window in self._live:
            state = window.snapshot(arrays=True) if arrays else window.snapshot()
            del state["events"]  # the operator's own state is kept once, not once a window
            windows.append(state)
        return {
            "v": VERSION,
            **(form_of(self._schemas, self._live) if arrays else {}),
            "operator": self.definition.describe(),
            "now": self._now,
            "ended": sorted(self._ended),
            "windows": windows,
            "state": copy.deepcopy(op.snapshot()),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back the state of a running operator that was built the same way.

        Nothing changes if the state does not fit.
        """
        check_state(state, self.definition.describe())
        before = self.snapshot(arrays=True)
        try:
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
            self._schemas = put_form(state, self._live)
        self.operator.restore(copy.deepcopy(state["state"]))


@contextmanager
def kept(failures: list[Exception]) -> Iterator[None]:
    """Keep an exception for later, so that one failure does not cost the others their turn."""
    try:
        yield
    except Exception as error:
        failures.append(error)
