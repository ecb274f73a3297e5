"""The tuples of a farm: immutable Arrow chunks that all workers read without a copy.

A chunk is a file in memory (`/dev/shm` where there is one), written once and then mapped by
its readers; a tiny one is read, which is cheaper. Rows have numbers, which go on from chunk
to chunk. A window is a list of runs of numbers, `(lo, hi)`; what a worker needs to find them are
*pieces*: chunk, first and last row in it.

    numbers    0 1 2 3 4 5 | 6 7 8 9 | 10 11 12 ...
    chunks     0             1         2
    run (4, 8) -> pieces (0, 4, 6), (1, 0, 2)

A chunk is removed when all its rows precede the oldest row that is still needed, by a future window
or by one that is being computed. A process that has it mapped keeps it until then.

Chunks do not outlive their writer. It removes them at its end; if it is killed, its workers do,
and if they are killed with it, the next writer: each holds a lock on its folder while it lives.
If the memory is full, chunks go to a folder on disk, with links to them where readers look.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import stream_buffer
from windowlib.columnar.arrays.physical import gather_rows
from windowlib.columnar.primitives import Array
from windowlib.errors import FarmError, WindowlibWarning
from windowlib.window.arrow import joined

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows, where no farm has worker processes
    fcntl = None

RowRange = tuple[int, int]
ChunkRange = tuple[int, int, int]
"""The number of a chunk, and the rows `[lo, hi)` in it."""

SHARED = Path("/dev/shm")
PREFIX = "windowlib-"
LOCK = "lock"
FULL = (errno.ENOSPC, errno.EDQUOT)
SMALL = 1 << 13
"""Bytes up to which it takes longer to map a chunk than to read it."""
SPARSE = 4
"""A chunk is written anew when fewer than one in so many of its rows are still needed."""


@dataclass(slots=True)
class RowChunk:
    """One chunk, as its writer knows it: the number of its first row, and how many there were.

    If it has been thinned out, `numbers` has those of the rows that are left.
    """

    number: int
    base: int
    rows: int
    size: int
    numbers: Array | None = None

    @property
    def row_count(self) -> int:
        """How many rows are in it."""
        return self.rows if self.numbers is None else len(self.numbers)

    def locate(self, lo: int, hi: int) -> ChunkRange:
        """The piece of the chunk with the rows `[lo, hi)`, by their numbers."""
        if self.numbers is None:
            return self.number, lo - self.base, hi - self.base
        first = int(np.searchsorted(self.numbers, lo))
        return self.number, first, first + hi - lo


class ChunkStore:
    """The writer's side: appends batches, finds runs, and removes chunks that are not needed.

    >>> with ChunkStore() as chunks:
    ...     _ = chunks.append(pa.record_batch({"x": [1, 2, 3]}))
    ...     _ = chunks.append(pa.record_batch({"x": [4, 5, 6]}))
    ...     pieces = chunks.chunk_ranges([(1, 5)])
    ...     reader = ChunkReader(chunks.folder)
    ...     pieces, reader.read(pieces).column("x").to_pylist()
    ([(0, 1, 3), (1, 0, 2)], [2, 3, 4, 5])
    """

    def __init__(self) -> None:
        shared = SHARED if SHARED.is_dir() and os.access(SHARED, os.W_OK) else None
        if shared is not None:
            remove_orphans(shared)
        self.folder, self._lock = _new_folder(shared)
        self._finalizer = weakref.finalize(self, _close_folder, self.folder, self._lock)
        self._overflows = False
        self._unwritten: str | None = None
        self.chunks: list[RowChunk] = []
        self.end = 0
        """The number that the next row gets."""
        self.rows = 0
        """How many rows are held."""
        self.oldest = 0
        """The lowest number of a chunk that is still there, for readers to forget others."""
        self._number = 0

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all chunks."""
        self._finalizer()

    @property
    def bytes(self) -> int:
        """How much memory they take."""
        return sum(chunk.size for chunk in self.chunks)

    def append(self, batch: pa.RecordBatch) -> RowChunk:
        """Write a batch; the number of its first row is `base`."""
        number, size = self.write(batch)
        chunk = RowChunk(number, self.end, batch.num_rows, size)
        self.add(chunk)
        self.end += batch.num_rows
        return chunk

    def add(self, chunk: RowChunk) -> None:
        """Add a chunk that has been written."""
        self.chunks.append(chunk)
        self.rows += chunk.row_count

    def write(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """Write rows into a file; returns its number and its length in bytes."""
        number = self._number
        self._number += 1
        data, path = stream_buffer(batch), _path(self.folder, number)
        try:
            try:
                write_file(path, data)
            except OSError as error:
                if error.errno not in FULL:
                    raise
                self._overflow(path, data)
        except OSError as error:
            msg = (
                f"farm(...): {batch.num_rows} rows cannot be written for the workers "
                f"({error.strerror}: {error.filename or path}). Make room in {SHARED} or in "
                f"{tempfile.gettempdir()}; what the farm was given before that is not complete."
            )
            self._unwritten = msg
            raise FarmError(msg) from error
        return number, data.size

    def check(self) -> None:
        """Refuse to go on without rows that could not be written."""
        if self._unwritten is not None:
            raise FarmError(self._unwritten)

    def _overflow(self, path: str, data: Any) -> None:
        """Write a chunk to disk, and link to it from where readers look."""
        folder = overflow_folder(self.folder)
        if not self._overflows:
            os.mkdir(folder, 0o700)
            self._overflows = True
            msg = (
                f"farm(...): {self.folder} is on a full device, so rows for the workers go to "
                f"{folder}, which is slower. Make room, or let fewer rows wait: chunk=, limit=."
            )
            warnings.warn(msg, WindowlibWarning, stacklevel=2)
        target = os.path.join(folder, os.path.basename(path))
        write_file(target, data)
        os.symlink(target, path)

    def _unlink(self, number: int) -> None:
        path = _path(self.folder, number)
        if self._overflows and os.path.islink(path):
            os.unlink(os.readlink(path))
        os.unlink(path)

    def chunk_ranges(self, runs: Iterable[RowRange]) -> list[ChunkRange]:
        """The pieces of chunks with the rows of ascending runs."""
        found: list[ChunkRange] = []
        for lo, hi in runs:
            at = bisect_right(self.chunks, lo, key=lambda chunk: chunk.base) - 1
            while lo < hi:
                chunk = self.chunks[at]
                end = min(hi, chunk.base + chunk.rows)
                found.append(chunk.locate(lo, end))
                lo, at = end, at + 1
        return found

    def release(self, oldest: int) -> None:
        """Remove chunks whose rows all have numbers below `oldest`."""
        gone = 0
        for chunk in self.chunks:
            if chunk.base + chunk.rows > oldest:
                break
            self._unlink(chunk.number)
            gone += 1
        self._set_chunks(self.chunks[gone:])

    def compact(self, needed: Array) -> None:
        """Rewrite chunks of which few rows are needed, and remove those of which none is.

        `needed` has the numbers of all rows that are. So an idle partition does not keep whole
        chunks alive. Only while no worker is reading.
        """
        kept = []
        for chunk in self.chunks:
            lo, hi = np.searchsorted(needed, (chunk.base, chunk.base + chunk.rows))
            some = needed[lo:hi]
            if len(some) * SPARSE <= chunk.row_count:
                if len(some):
                    kept.append(self._compacted(chunk, some))
                self._unlink(chunk.number)
            else:
                kept.append(chunk)
        self._set_chunks(kept)

    def _set_chunks(self, chunks: list[RowChunk]) -> None:
        self.chunks, self.rows = chunks, sum(chunk.row_count for chunk in chunks)
        self.oldest = min((chunk.number for chunk in chunks), default=self._number)

    def _compacted(self, chunk: RowChunk, some: Array) -> RowChunk:
        batch = _load_chunk(self.folder, chunk.number)
        places = (
            some - chunk.base if chunk.numbers is None else np.searchsorted(chunk.numbers, some)
        )
        number, size = self.write(gather_rows(batch, pa.array(places)))
        return RowChunk(number, chunk.base, chunk.rows, size, some)


class ChunkReader:
    """A worker's side: maps chunks when it needs them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._open: dict[int, pa.RecordBatch] = {}
        self._oldest = 0

    def read(self, pieces: Sequence[ChunkRange]) -> pa.RecordBatch:
        """The rows of pieces: one piece without a copy, several put together."""
        return joined([self._chunk(n).slice(lo, hi - lo) for n, lo, hi in pieces])

    def _chunk(self, number: int) -> pa.RecordBatch:
        found = self._open.get(number)
        if found is None:
            found = self._open[number] = _load_chunk(self.folder, number)
        return found

    def forget(self, oldest: int) -> None:
        """Unmap the chunks before this one."""
        if oldest != self._oldest:  # which is seldom, and there may be many
            self._oldest = oldest
            self._open = {n: chunk for n, chunk in self._open.items() if n >= oldest}


def row_ranges(numbers: Array) -> list[RowRange]:
    """Numbers as runs of ascending ones.

    >>> row_ranges(np.array([3, 4, 5, 9, 12, 13]))
    [(3, 6), (9, 10), (12, 14)]
    """
    if not len(numbers):
        return []
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    if not len(cuts):
        return [(int(numbers[0]), int(numbers[-1]) + 1)]
    starts, ends = numbers[np.append(0, cuts)], numbers[np.append(cuts - 1, len(numbers) - 1)] + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def add_range(ranges: list[RowRange], more: RowRange) -> None:
    """Append a range, joined with the last one if it follows that without a gap.

    >>> ranges = [(0, 3)]
    >>> add_range(ranges, (3, 5)), add_range(ranges, (9, 10)), ranges
    (None, None, [(0, 5), (9, 10)])
    """
    if ranges and ranges[-1][1] == more[0]:
        ranges[-1] = (ranges[-1][0], more[1])
    else:
        ranges.append(more)


def _load_chunk(folder: str, number: int) -> pa.RecordBatch:
    """A chunk in the memory that all share; it is unmapped when its last reader is gone."""
    path = _path(folder, number)
    with open(path, "rb", buffering=0) as file:
        data = file.read(SMALL)
    source = pa.py_buffer(data) if len(data) < SMALL else pa.memory_map(path)
    return pa.ipc.open_stream(source).read_next_batch()


def _path(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number}.arrow")


def write_file(path: str, data: Any) -> None:
    """Write a file as a whole, or leave none."""
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


# -- the end of a folder --------------------------------------------------------------------------


def overflow_folder(folder: str) -> str:
    """The folder on disk for chunks that do not fit into memory."""
    return os.path.join(tempfile.gettempdir(), f"{os.path.basename(folder)}-overflow")


def remove_folder(folder: str) -> None:
    """Remove all chunks, wherever they are."""
    shutil.rmtree(overflow_folder(folder), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_orphans(shared: Path) -> None:
    """Remove the folders of writers that were killed together with their workers."""
    for folder in shared.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if (
                folder.stat().st_uid == os.getuid()
                and (lock := _lock_folder(str(folder))) is not None
            ):
                _close_folder(str(folder), lock)


def _new_folder(shared: Path | None) -> tuple[str, int | None]:
    """A folder that is locked before it has the name by which others look for orphans."""
    draft = tempfile.mkdtemp(prefix=f".{PREFIX}", dir=shared)
    lock = _lock_folder(draft, os.O_CREAT)
    folder = os.path.join(os.path.dirname(draft), os.path.basename(draft)[1:])
    os.rename(draft, folder)
    return folder, lock


def _lock_folder(folder: str, create: int = 0) -> int | None:
    """Lock a folder for as long as the process lives; None if another one has locked it."""
    if fcntl is None:
        return None
    lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CLOEXEC | create, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _close_folder(folder: str, lock: int | None) -> None:
    remove_folder(folder)
    if lock is not None:
        os.close(lock)
