"""The state of a bucket in Spark's state store.

One value, the head, holds what identifies the state, and a small snapshot; pages of a large
snapshot and the log entries after it are values of a map. A micro-batch reads the head, and writes
it and at most one entry, as long as the running operator itself is still in memory somewhere.

Nothing of it is code. The head says in JSON what the query is; snapshots and entries are bytes of
`window/state_bytes.py`, with a checksum each, and they name the states before and after them, so
that what was changed, lost or mixed up is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from windowlib.errors import StateError, StateVersionError
from windowlib.spark.bucket.bucket import BucketSpec, MicroBatchResult, check_fingerprint

FORMAT = 2
"""1 held pickles, which are not read."""
HEAD = "window"
PAGES = "pages"
TYPES = {"int": IntegerType(), "long": LongType(), "string": StringType(), "binary": BinaryType()}


def _struct(columns: str) -> StructType:
    """Columns by their names and types, which Spark would have to be asked for in every task.

    >>> _struct("number int, data binary").names
    ['number', 'data']
    """
    pairs = (column.split() for column in columns.split(", "))
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


HEAD_TYPE = _struct(
    "format int, version long, nonce string, run string, home string, about string, timer long, "
    "saved long, logged long, pages int, entries int, data binary, checksum string"
)
KEY_TYPE, PAGE_TYPE = _struct("number int"), _struct("data binary")
NAMES = HEAD_TYPE.names
PAGE = 1 << 23
"""Bytes in a page."""
SMALL = 1 << 20
"""Bytes of a snapshot up to which it is kept beside what identifies it."""
TINY = 1 << 14
"""The same once there is a log: then it would be written again with every entry."""


@dataclass(frozen=True)
class StateHead:
    """The identity of a bucket's state, and the worker that has it in memory."""

    format: int
    version: int
    nonce: str
    run: str
    home: str
    about: str
    timer: int
    saved: int
    logged: int
    pages: int
    entries: int
    data: bytes | None
    checksum: str = ""

    def sealed(self) -> StateHead:
        """The same with its checksum."""
        return replace(self, checksum=self._sum())

    def _sum(self) -> str:
        """The checksum of all but the data, which has one of its own."""
        values = [value for name, value in vars(self).items() if name not in ("data", "checksum")]
        return sha256(json.dumps(values).encode()).hexdigest()[:32]

    def check_whole(self) -> None:
        """Refuse a head that is not as it was written."""
        if self.checksum != self._sum():
            msg = (
                "the state in the checkpoint was changed: the checksum of its head does not fit. "
                "Restore the checkpoint from a copy, or use a new one."
            )
            raise StateError(msg)

    def check(self, spec: BucketSpec) -> None:
        """Refuse state that this query cannot go on with."""
        self.check_whole()
        if self.about != spec.about:
            check_fingerprint(json.loads(self.about)["fingerprint"], spec.identity)


def check_format(found: int) -> None:
    """Refuse state of an unknown format."""
    if found not in READERS:
        msg = (
            f"the checkpoint has state of format {found}, this version of windowlib reads "
            f"{', '.join(map(str, READERS))}. Use the version that wrote it, or a new checkpoint."
        )
        raise StateVersionError(msg)


READERS: dict[int, Callable[..., StateHead]] = {FORMAT: StateHead}
"""For each format that was ever released, what makes a head of this one of its values."""


def head_of(values: Mapping[str, Any]) -> StateHead:
    """The head of a stored value, whatever the format that it was written in."""
    check_format(values["format"])
    head = READERS[values["format"]](**values)
    head.check_whole()
    return head


def as_tuple(head: StateHead) -> tuple[Any, ...]:
    """A head as Spark stores it."""
    return tuple(vars(head).values())


def first_key(number: int, *, entry: bool) -> tuple[int]:
    """The key of a page of the snapshot, or of an entry of the log."""
    return (-1 - number if entry else number,)


def assembled(
    head: StateHead, page: Callable[[tuple[int]], bytes | None]
) -> tuple[bytes, list[bytes]]:  # fmt: skip
    """The last snapshot and the log since then, from a function that gives pages by their key."""

    def there(key: tuple[int]) -> bytes:
        found = page(key)
        if found is None:
            msg = (
                f"the state in the checkpoint lacks page {key[0]}. Restore the checkpoint from a "
                f"copy, or use a new one."
            )
            raise StateVersionError(msg)
        return found

    pages = [there(first_key(n, entry=False)) for n in range(head.pages)]
    log = [there(first_key(n, entry=True)) for n in range(head.entries)]
    return head.data if head.data is not None else b"".join(pages), log


class StateStore:
    """Reads and writes the state of the bucket that Spark has made current."""

    def __init__(self, handle: Any) -> None:
        self._head = handle.getValueState(HEAD, HEAD_TYPE)
        self._pages = handle.getMapState(PAGES, KEY_TYPE, PAGE_TYPE)

    def read(self) -> StateHead | None:
        """The head, or None if the bucket is new."""
        found = self._head.get()
        return None if found is None else head_of(dict(zip(NAMES, _plain(found), strict=True)))

    def load(self, head: StateHead) -> tuple[bytes, list[bytes]]:
        """The last snapshot, and the log since then."""
        return assembled(head, self._page)

    def _page(self, key: tuple[int]) -> bytes | None:
        found = self._pages.getValue(key)
        return None if found is None else bytes(found[0])

    def write(
        self,
        before: StateHead | None,
        about: str,
        result: MicroBatchResult,
        run: str,
        home: str,
        timer: int,
    ) -> StateHead:
        """Write what a micro-batch made of the bucket, and who has it now; the new head."""
        version = 0 if before is None else before.version + 1
        saved, logged = (before.saved, before.logged) if before is not None else (0, 0)
        pages, entries, data = 0, 0, None
        if result.snapshot is not None:
            pages, data = self._replace(before, result.snapshot)
            saved, logged = len(result.snapshot), 0
        elif before is not None:
            pages, entries, data = before.pages, before.entries, before.data
            if result.entry is not None:
                if data is not None and len(data) > TINY:
                    pages, data = self._paged(data), None
                self._pages.updateValue(first_key(entries, entry=True), (result.entry,))
                entries, logged = entries + 1, logged + len(result.entry)
        head = StateHead(
            FORMAT, version, result.nonce, run, home, about, timer, saved, logged, pages,
            entries, data,
        )  # fmt: skip
        head = head.sealed()
        self._head.update(as_tuple(head))
        return head

    def put(self, head: StateHead, pages: Mapping[int, bytes]) -> None:
        """Write a head with all its pages and entries, for a bucket that has nothing yet."""
        for number, data in pages.items():
            self._pages.updateValue((number,), (data,))
        self._head.update(as_tuple(head))

    def _replace(self, before: StateHead | None, snapshot: bytes) -> tuple[int, bytes | None]:
        """Put a snapshot in the place of an older one and its log."""
        if before is not None and (before.pages or before.entries):
            self._pages.clear()
        if len(snapshot) <= SMALL:
            return 0, snapshot
        return self._paged(snapshot), None

    def _paged(self, snapshot: bytes) -> int:
        """Write a snapshot as pages; how many."""
        starts = range(0, len(snapshot), PAGE)
        for number, at in enumerate(starts):
            self._pages.updateValue(first_key(number, entry=False), (snapshot[at : at + PAGE],))
        return len(starts)


def _plain(values: Any) -> list[Any]:
    return [bytes(value) if isinstance(value, bytearray) else value for value in values]
