"""The worker of a farm: one method for each kind of task.

A worker is the same in a process of its own and in virtual time.
"""

from __future__ import annotations

import os
import pickle
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from windowlib.columnar.inputs import empty_batch
from windowlib.errors import FarmError
from windowlib.farms.chunks import ChunkRange, ChunkReader, write_file
from windowlib.farms.evaluator import (
    BatchExtent,
    ColumnResults,
    FilledWindow,
    Item,
    Moment,
    WindowEvaluator,
)
from windowlib.window.arrow import rows_of

if TYPE_CHECKING:
    from windowlib.runtime.operator import Operator


LARGE = 1 << 12
"""Bytes of a partial beyond which it goes to other workers in a file."""

TaskRows: TypeAlias = Sequence[ChunkRange] | pa.Schema
"""Where rows are; or, for an empty window, what columns rows have, as far as any have come."""


ExtentColumns = tuple[list[Any], list[int], list[int], list[Moment]]
"""Extents as columns, which are smaller and faster to send: keys, starts, ends and times."""


class PartialReference(NamedTuple):
    """In place of a partial: the index of one that the same task makes."""

    at: int


class StoredPartial:
    """In place of a large partial: the file that one worker has written for others to read.

    Its parent passes it on unread, and removes the file with the last reference.
    """

    __slots__ = ("__weakref__", "path")

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[type[StoredPartial], tuple[str]]:
        return StoredPartial, (self.path,)

    def take_ownership(self) -> None:
        """Remove the file with the last reference to it."""
        weakref.finalize(self, _remove_file, self.path).atexit = False

    def bytes(self) -> bytes:
        """The content of the file."""
        return Path(self.path).read_bytes()


def _remove_file(path: str) -> None:
    with suppress(FileNotFoundError):  # with the folder
        os.unlink(path)


WindowResult: TypeAlias = list[Item] | ColumnResults
"""What a window sends."""
WindowEnd = tuple[Any, Sequence[Any], int]
"""A window that ends: its key, its partials, and when it fired."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """The settings that a worker starts with."""

    operator: Operator
    folder: str
    """Where the chunks are."""
    worker: type[Any]
    """The class of the worker."""
    start: int = 0
    """Where the clock starts, in microseconds."""


class WindowWorker:
    """A worker that is given windows, or parts of them."""

    silent = frozenset({"take"})
    """The tasks that have no answer."""

    def __init__(self, setup: WorkerSetup) -> None:
        self.evaluator = WindowEvaluator(setup.operator)
        self.reader = ChunkReader(setup.folder)
        self._open_windows: dict[Any, tuple[FilledWindow, int]] = {}
        self._can_store, self._parts = True, 0  # whether partials may be written, and how many were

    def do(self, work: str, args: Any, oldest: int) -> Any:
        """The answer to a task."""
        answer = getattr(self, work)(*args)
        self.reader.forget(oldest)
        return answer

    def _read(self, rows: TaskRows) -> pa.RecordBatch:
        if isinstance(rows, pa.Schema):
            return empty_batch(rows)
        return self.reader.read(rows) if rows else pa.record_batch({})

    def windows(
        self, rows: TaskRows, columns: ExtentColumns, as_columns: bool = False
    ) -> list[list[Item] | WorkerException] | ColumnResults:
        """The items of each window; with `as_columns`, columns if that is possible."""
        batch, extents = self._read(rows), list(map(BatchExtent, *columns))
        found = self.evaluator.columns(batch, extents) if as_columns else None
        return _evaluate_each(self.evaluator.windows, batch, extents) if found is None else found

    def take(self, which: Any, rows: TaskRows) -> None:
        """Fold in some tuples of a window of this worker before it fires."""
        batch = self._read(rows)
        if self.evaluator.fills_windows(batch.schema):
            filled, size = self._open_windows.get(which) or (self.evaluator.empty_window(), 0)
            filled.add(list(rows_of(batch)))
            self._open_windows[which] = filled, size + batch.num_rows

    def close(
        self, which: Any, taken: int, rows: TaskRows, extent: BatchExtent
    ) -> list[list[Item]]:
        """The items of a window of which this worker may have some tuples."""
        filled, size = self._open_windows.pop(which, (None, 0))
        batch = self._read(rows)
        if filled is None or size != taken:  # another worker had taken them, and is gone
            return self.evaluator.windows(batch, [extent])
        filled.add(list(rows_of(batch.slice(size))))
        return [filled.fire(extent)]

    def partials(
        self,
        rows: TaskRows,
        extents: Sequence[BatchExtent],
        closes: Sequence[WindowEnd],
        as_columns: bool = False,
    ) -> tuple[list[Any], list[WindowResult | WorkerException | None]]:
        """The partials of slices, or of parts of a window; and the items of windows they end."""
        made = _evaluate_each(self.evaluator.partials, self._read(rows), extents)
        sent = [self._end_window(made, *close, as_columns) for close in closes]
        return self._store_large(made), sent

    def _store_large(self, made: list[Any]) -> list[Any]:
        """Partials for other workers, large ones as files."""
        first = next((each for each in made if not isinstance(each, WorkerException)), None)
        if first is None or not self._can_store or len(pickle.dumps(first, protocol=5)) <= LARGE:
            return made
        return [each if isinstance(each, WorkerException) else self._store(each) for each in made]

    def _store(self, partial: Any) -> Any:
        """Store a partial in a file; returns it as it is if it cannot be written."""
        path = os.path.join(self.reader.folder, f"part-{os.getpid()}-{id(self)}-{self._parts}")
        self._parts += 1
        try:
            data = self.evaluator.dump_part(partial)
            write_file(path, data)
        except (FarmError, OSError):
            self._can_store = False
            return partial
        return StoredPartial(path)

    def _load(self, partials: Sequence[Any]) -> list[Any]:
        """Partials, read from their files where they are stored."""
        return [
            self.evaluator.load_part(each.bytes()) if isinstance(each, StoredPartial) else each
            for each in partials
        ]

    def _end_window(
        self, made: Sequence[Any], key: Any, partials: Sequence[Any], now: int, as_columns: bool
    ) -> WindowResult | WorkerException | None:
        """The items of a window; None if one of its partials could not be made."""
        partials = [
            made[each.at] if isinstance(each, PartialReference) else each for each in partials
        ]
        if any(isinstance(each, WorkerException) for each in partials):
            return None
        try:
            return self._finish_window(key, partials, now, as_columns)
        except Exception as error:
            return WorkerException.of(error)

    def finish(
        self, key: Any, partials: Sequence[Any], now: int, as_columns: bool = False
    ) -> list[WindowResult]:
        """The items of a window that is made of partials."""
        return [self._finish_window(key, partials, now, as_columns)]

    def _finish_window(
        self, key: Any, partials: Sequence[Any], now: int, as_columns: bool
    ) -> WindowResult:
        finish = self.evaluator.finish_columns if as_columns else self.evaluator.finish
        return finish(key, self._load(partials), now)

    def merged(self, partials: Sequence[Any]) -> Any:
        """The partials merged."""
        (found,) = self._store_large([self.evaluator.merged(self._load(partials))])
        return found

    def again(self, rows: TaskRows, extent: BatchExtent, whole: Any) -> tuple[list[Item], Any]:
        """The items of a part of a window, given the result of the whole, and the new part."""
        (whole,) = self._load([whole])
        return self.evaluator.emit_round(self._read(rows), extent, whole)

    def empty(self, now: int) -> list[list[Item]]:
        """The items for a punctuation that closes nothing."""
        return [self.evaluator.empty(now)]


class WorkerException(NamedTuple):
    """An exception as it is sent: itself, or one with its message, and its notes."""

    error: Exception
    notes: list[str]

    @classmethod
    def of(cls, error: Exception) -> WorkerException:
        """An exception that can be sent."""
        notes = list(getattr(error, "__notes__", ()))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return cls(error, notes)

    def exception(self) -> Exception:
        """The exception with its notes, where it is raised again."""
        for note in self.notes:
            if note not in getattr(self.error, "__notes__", ()):
                self.error.add_note(note)
        return self.error


def _evaluate_each(act: Any, batch: pa.RecordBatch, extents: Sequence[BatchExtent]) -> list[Any]:
    """The results of several extents, with an exception in place of each that raised one."""
    try:
        found: list[Any] = act(batch, extents)
    except Exception as error:
        if len(extents) == 1:
            return [WorkerException.of(error)]
        return [result for each in extents for result in _evaluate_each(act, batch, [each])]
    return found
