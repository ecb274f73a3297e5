"""The base of operators on disorder: timestamps, a slack for each key, late rows, idle streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, get_args

from windowlib.attributes import brief, key_getter, one_key
from windowlib.durations import Amount, Duration, Number
from windowlib.errors import DeltaOrderError, ModelError, PartitionError, PolicyError, suggestion
from windowlib.event_time.axis import Axis
from windowlib.event_time.slack import Slack, SlackState
from windowlib.operators.arguments import Late, as_tuple, slack_of
from windowlib.operators.base import PassThrough, unchanged
from windowlib.operators.store_windows import KeyWindow
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.splitting import names_in
from windowlib.spec.policies import Attribute, Count, Time
from windowlib.spec.specification import KEY, By, Sliding
from windowlib.window.container import Window
from windowlib.window.failure import raise_first

Entry = tuple[Number, int, Any]
"""A timestamp, the number of the arrival, and the row."""
FEW = 32
"""Fewer rows than this are not worth an array."""


class KeyBuffer:
    """One key: the state of its slack, and the rows that wait."""

    def __init__(self, key: Any, state: SlackState) -> None:
        self.key, self.state = key, state


class BufferedRows(NamedTuple):
    """The rows of one buffer in a batch."""

    buffer: Any
    at: Any
    """Their places in the batch."""
    ts: Any
    reached: Any
    """How far the stream is complete, as the operator has to know it."""
    late: Any
    """Whether each is late."""


class DisorderOperator(PassThrough):
    """The base of operators that wait for late rows."""

    model = OperatorModel()
    sends_columns = True

    def __init__(
        self,
        ts: Attribute,
        slack: Slack | Amount | str,
        amounts: Sequence[tuple[str, Amount]],
        late: Late,
        idle: Duration | None,
        by: By | Sequence[str] | None,
        name: str | None,
    ) -> None:
        self._owner = f"{type(self).__name__}({ts!r})"
        self.slack = slack_of(slack, f"{self._owner[:-1]}, slack={slack!r})")
        self.axis = Axis(ts, self._owner, [*self.slack.amounts, *amounts])
        if late not in get_args(Late):
            words = '"drop", "port" or "error"'
            near = suggestion(late, get_args(Late))
            raise ModelError(f"{self._owner[:-1]}, late={late!r}): say {words}.{near}")
        self.late = late
        self.late_rows = 0
        """How many rows came late so far, dropped or not."""
        timer = self._timer(idle, by)
        columns: Any = tuple(by) if isinstance(by, list) else by
        self.by = columns
        self._key: Callable[[Any], Any] | None = None
        if columns is not None:
            self._key = key_getter(columns, f"by={by!r}")
        self._buffers: dict[Any, Any] = {}
        self.model = self._model()
        super().__init__(timer, name=name)

    def _model(self) -> OperatorModel:
        generates = type(self).model.outputs[0].punctuation
        port = self.late == "port"
        return OperatorModel(
            ports_out=["out", "late"] if port else ["out"],
            windows=[Sliding[Time, Count(1)]],  # type: ignore[misc]
            punctuation_out=[generates, "free"] if port else generates,
        )

    def _timer(self, idle: Duration | None, by: Any) -> Sliding | None:
        """The window whose evictions show that a key is idle; building it checks the key."""
        if by is KEY:
            msg = f'{self._owner[:-1]}, by=KEY): nothing passes the keys. Use by="symbol".'
            raise ModelError(msg)
        try:
            keyed = Sliding(Count(1), by=by, order_by=None)
            return None if idle is None else replace(keyed, evict=Time(idle))
        except PolicyError as error:
            said = "" if idle is None else f", idle={idle!r}"
            said += "" if by is None else f", by={by!r}"
            raise ModelError(f"{self._owner[:-1]}{said}): {error}") from None

    # -- what a subclass does ---------------------------------------------------------------------

    def _new_buffer(self, key: Any) -> KeyBuffer:
        """A new buffer."""
        raise NotImplementedError

    def _is_late(self, buffer: Any, ts: Number) -> bool:
        """Whether a row with this timestamp comes too late."""
        raise NotImplementedError

    def _observe_many(self, buffer: Any, ts: Any) -> tuple[Any, Any]:
        """Let a buffer see an array of timestamps: how far it is complete, and which are late."""
        raise NotImplementedError

    def _admit(self, buffer: Any, ts: Number, row: Any) -> None:
        """Take a row that is not late, and send what may go after it."""
        raise NotImplementedError

    def _admit_many(
        self, batch: Any, taken: Sequence[BufferedRows], failures: list[Exception]
    ) -> None:
        """Take the rows of a batch, and send what may go after each of them."""
        raise NotImplementedError

    def _drain(self, buffer: Any, failures: list[Exception]) -> None:
        """Send all that a buffer holds."""
        raise NotImplementedError

    # -- row by row -------------------------------------------------------------------------------

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Take a row, and send what may go."""
        ts = self.axis.number(tuple_)
        buffer = self._buffer_of(None if self._key is None else one_key(self._key(tuple_)))
        late = self._is_late(buffer, ts)
        if late and self.late == "error":
            self._refuse(buffer, tuple_)
        try:
            if late:
                buffer.state.observe(ts)
                self._divert_late(tuple_)
            else:
                self._admit(buffer, ts, tuple_)
        finally:
            if self.containers[0] is not None:
                self.containers[0].insert(tuple_)

    def _buffer_of(self, key: Any) -> Any:
        """The buffer of a key."""
        try:
            buffer = self._buffers.get(key)
        except TypeError as error:
            msg = (
                f"by={self.by!r}: a {type(key).__name__} cannot be a key ({brief(key)}). Use a "
                f"plain value or a tuple of them."
            )
            raise PartitionError(msg) from error
        if buffer is None:
            buffer = self._buffers[key] = self._new_buffer(key)
        return buffer

    def _divert_late(self, row: Any) -> None:
        self.late_rows += 1
        if self.late == "port":
            self._outputs[1](row)

    def _refuse(self, buffer: KeyBuffer, row: Any) -> NoReturn:
        key = "" if self._key is None else f" for {self.by!r}={buffer.key!r}"
        shown: Any = buffer.state.punctuation
        if self.axis.timed:
            shown = self.axis.value(shown, row)
        msg = (
            f"{self._owner}: the row {brief(row)} is late, the stream{key} is complete up to "
            f'{shown}. Allow more slack, or pass late="port" to divert such rows.'
        )
        raise DeltaOrderError(msg)

    # -- whole batches ----------------------------------------------------------------------------

    def _take(self, batch: Any, port: int, insert: Callable[..., None]) -> Any:
        """Take the rows of an Arrow batch as columns, if it can; the rows that are left."""
        if batch.num_rows < FEW or not unchanged(self) or not self._worthwhile(batch):
            return batch
        ts = self.axis.array(batch)
        groups = None if ts is None else self._groups(batch)
        if groups is None:
            return batch
        if not all(buffer.state.fits(ts) for buffer, _ in groups):
            return batch
        taken = self._observe_groups(ts, groups)
        if taken is None:  # one of them is an error; row by row tells which
            return batch
        failures: list[Exception] = []
        self._admit_many(batch, taken, failures)
        self._renew_timers(batch, taken)
        raise_first(failures)
        return batch.slice(0, 0)

    def _worthwhile(self, batch: Any) -> bool:
        """Whether a batch costs less as columns than row by row."""
        return True

    def _groups(self, batch: Any) -> list[tuple[Any, Any]] | None:
        """The buffers of a batch, each with the places of its rows; None if a key is unusual."""
        import numpy as np

        if self.by is None:
            return [(self._buffer_of(None), np.arange(batch.num_rows))]
        names = names_in(self.by)
        if names is None or not set(names) <= set(batch.schema.names):
            return None
        columns = [batch.column(name).to_pylist() for name in as_tuple(self.by)]
        keys = columns[0] if not isinstance(self.by, tuple) else list(zip(*columns, strict=True))
        places: dict[Any, list[int]] = {}
        try:
            for place, key in enumerate(keys):
                places.setdefault(one_key(key), []).append(place)
        except TypeError:
            return None
        return [(self._buffer_of(key), np.array(at)) for key, at in places.items()]

    def _observe_groups(
        self, ts: Any, groups: Sequence[tuple[Any, Any]]
    ) -> list[BufferedRows] | None:
        """Let each buffer see its timestamps; None, and nothing seen, if one is not allowed."""
        import numpy as np

        before = [buffer.state.snapshot() for buffer, _ in groups] if self.late == "error" else []
        found = []
        for buffer, at in groups:
            own = ts if self.by is None else ts[at]
            found.append(BufferedRows(buffer, at, own, *self._observe_many(buffer, own)))
        if self.late == "error" and any(each.late.any() for each in found):
            for (buffer, _), state in zip(groups, before, strict=True):
                buffer.state.restore(state)
            return None
        self.late_rows += sum(int(np.count_nonzero(each.late)) for each in found)
        return found

    def _renew_timers(self, batch: Any, taken: Sequence[BufferedRows]) -> None:
        """Restart the idle time of all keys of a batch."""
        window = self.containers[0]
        if window is None:
            return
        for place in sorted(int(each.at[-1]) for each in taken):
            window.insert(batch.slice(place, 1).to_pylist()[0])

    # -- idle, and the end ------------------------------------------------------------------------

    def container(self, port: int) -> Callable[..., Window[Any, Any]]:
        """A memory of the last row of each key, which tells when it becomes too old."""
        return partial(
            KeyWindow,
            key=_ignore,
            hold=True,
            renew=True,
            emit=self._idle,
            emit_duplicate=_ignore,
        )

    def _idle(self, row: Any) -> None:
        """A key has been idle since this row: send what it holds."""
        buffer = self._buffers[None if self._key is None else one_key(self._key(row))]
        failures: list[Exception] = []
        buffer.state.release()
        self._drain(buffer, failures)
        raise_first(failures)

    def on_finish(self) -> None:
        """Send all held rows, key by key."""
        failures: list[Exception] = []
        for buffer in self._buffers.values():
            buffer.state.release()
            self._drain(buffer, failures)
        raise_first(failures)

    def on_punctuation(self, port: int) -> None:
        """A punctuation has no place among rows that wait, and is dropped."""

    def _send(self, row: Any, failures: list[Exception]) -> None:
        """Send a row; after a failure the others are still sent."""
        try:  # not `collect_failures`, which takes longer than most of the other work
            self._outputs[0](row)
        except Exception as error:
            failures.append(error)

    # -- as the framework asks --------------------------------------------------------------------

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The timestamp and the key."""
        yield self.axis.attribute, self._owner
        for part in () if self.by is None else as_tuple(self.by):
            yield part, f"by={self.by!r}"

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """By the key: each has a slack of its own."""
        return names_in(self.by) or () if unchanged(self) else super().splits_by(port)

    def natural_order(self, port: int) -> Any:
        """By its timestamp, so that rows which come in no order are not late for no reason."""
        return self.axis.attribute if isinstance(self.axis.attribute, str) else ...

    def notes(self) -> Iterable[tuple[str, str]]:
        """The slack, and what happens to late rows."""
        yield "slack", self.slack.describe()
        fates = {"drop": "dropped, and counted", "port": "to the output late", "error": "refused"}
        yield "late rows", fates[self.late]

    def snapshot(self) -> Any:
        """The buffers, how many rows were late, and what kind of timestamps there are."""
        buffers = [[k, b.state.snapshot(), self._dump_buffer(b)] for k, b in self._buffers.items()]
        return {"lanes": buffers, "late": self.late_rows, "timed": self.axis.timed}

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        buffers: dict[Any, Any] = {}
        for key, known, held in state["lanes"]:
            buffer = buffers[one_key(key)] = self._new_buffer(one_key(key))
            buffer.state.restore(known)
            self._load_buffer(buffer, held)
        self._buffers = buffers
        self.late_rows, self.axis.timed = state["late"], state["timed"]

    def _dump_buffer(self, buffer: Any) -> Any:
        """The rows of a buffer, as plain data."""
        raise NotImplementedError

    def _load_buffer(self, buffer: Any, held: Any) -> None:
        """Take back what `_dump_buffer` gave."""
        raise NotImplementedError


def _ignore(row: Any) -> None:
    """The same key for every row; as a reader, drops the row."""
