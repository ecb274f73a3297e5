"""What one worker of a farm can do, by the names that tasks have for it.

A station is the same in a process of its own and where time is virtual.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from windowlib.columnar.functions import empty_batch
from windowlib.farms.chunks import Piece, Reader
from windowlib.farms.work import Filled, Given, Item, Work

if TYPE_CHECKING:
    from windowlib.operator import Operator


Pieces: TypeAlias = Sequence[Piece] | pa.Schema
"""Where rows are; or, for an empty window, what columns rows have, as far as any have come."""


class Own(NamedTuple):
    """In place of a part: the how-manieth of those that the same task makes."""

    at: int


Close = tuple[Any, Sequence[Any], int]
"""A window that ends: its key, its parts, and when it fired."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is told when it starts."""

    operator: Operator
    folder: str
    """Where the chunks are."""
    station: type[Any]
    """What makes its station."""
    start: int = 0
    """Where the clock starts, in microseconds."""


class Station:
    """A worker that is given windows, or parts of them."""

    silent = frozenset({"take"})
    """What has no answer."""

    def __init__(self, job: Job) -> None:
        self.work = Work(job.operator)
        self.reader = Reader(job.folder)
        self._open: dict[Any, tuple[Filled, int]] = {}

    def do(self, work: str, args: Any, oldest: int) -> Any:
        """The answer to a task."""
        answer = getattr(self, work)(*args)
        self.reader.forget(oldest)
        return answer

    def _read(self, pieces: Pieces) -> pa.RecordBatch:
        if isinstance(pieces, pa.Schema):
            return empty_batch(pieces)
        return self.reader.read(pieces) if pieces else pa.record_batch({})

    def windows(self, pieces: Pieces, given: Sequence[Given]) -> list[list[Item] | Raised]:
        """What each of several windows sends."""
        return _each(self.work.windows, self._read(pieces), given)

    def take(self, which: Any, pieces: Pieces) -> None:
        """Some tuples of a window that this worker will be given; they are folded in at once."""
        batch = self._read(pieces)
        if self.work.fills(batch.schema):
            filled, size = self._open.get(which) or (Filled(self.work), 0)
            filled.add(batch)
            self._open[which] = filled, size + batch.num_rows

    def close(self, which: Any, taken: int, pieces: Pieces, given: Given) -> list[list[Item]]:
        """What a window sends, of which this worker has taken some tuples."""
        filled, size = self._open.pop(which, (None, 0))
        batch = self._read(pieces)
        if filled is None or size != taken:  # another worker had taken them, and is gone
            return self.work.windows(batch, [given])
        filled.add(batch.slice(size))
        return [filled.fire(given)]

    def parts(
        self, pieces: Pieces, given: Sequence[Given], closes: Sequence[Close]
    ) -> tuple[list[Any], list[list[Item] | Raised | None]]:
        """The results of slices, or of parts of a window; and what windows send that end here."""
        made = _each(self.work.parts, self._read(pieces), given)
        return made, [self._closed(made, *close) for close in closes]

    def _closed(
        self, made: Sequence[Any], key: Any, parts: Sequence[Any], now: int
    ) -> list[Item] | Raised | None:
        """What a window sends; nothing is known if one of its parts could not be made."""
        parts = [made[part.at] if isinstance(part, Own) else part for part in parts]
        if any(isinstance(part, Raised) for part in parts):
            return None
        try:
            return self.work.finish(key, parts, now)
        except Exception as error:
            return Raised.of(error)

    def finish(self, key: Any, parts: Sequence[Any], now: int) -> list[list[Item]]:
        """What a window sends that is made of parts."""
        return [self.work.finish(key, parts, now)]

    def merged(self, parts: Sequence[Any]) -> Any:
        """The results of parts together."""
        return self.work.merged(parts)

    def again(self, pieces: Pieces, given: Given, whole: Any) -> list[list[Item]]:
        """What a part of a window sends, given the result of the whole."""
        return [self.work.again(self._read(pieces), given, whole)]

    def empty(self, now: int) -> list[list[Item]]:
        """What a punctuation sends that closes nothing."""
        return [self.work.empty(now)]


class Raised(NamedTuple):
    """An exception as it is sent: itself, or what can be said of it, and its notes."""

    error: Exception
    notes: list[str]

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """An exception that can be sent."""
        notes = list(getattr(error, "__notes__", ()))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return cls(error, notes)

    def noted(self) -> Exception:
        """The exception with its notes, where it is raised again."""
        for note in self.notes:
            if note not in getattr(self.error, "__notes__", ()):
                self.error.add_note(note)
        return self.error


def _each(act: Any, batch: pa.RecordBatch, given: Sequence[Given]) -> list[Any]:
    """The result for each of several; if something is raised, it is told by whom."""
    try:
        found: list[Any] = act(batch, given)
    except Exception as error:
        if len(given) == 1:
            return [Raised.of(error)]
        return [result for each in given for result in _each(act, batch, [each])]
    return found
