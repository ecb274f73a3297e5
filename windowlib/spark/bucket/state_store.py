"""The state of a bucket in Spark's state store.

All of it is in one map from numbers to bytes, because Spark writes code for the types of each state
variable anew in every task. One value, the head, holds what identifies the state, and a small
snapshot; others are pages of a large snapshot and the log entries after it. A micro-batch reads the
head, and writes it and at most one entry, as long as the running operator itself is still in memory
somewhere.

Nothing of it is code. The head is a line of JSON with a checksum, which also says what the query
is, and the snapshot behind it; snapshots and entries are bytes of `window/state_bytes.py`, with a
checksum each, and they name the states before and after them, so that what was changed, lost or
mixed up is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from windowlib.errors import StateError, StateVersionError, WindowlibError
from windowlib.spark.bucket.bucket import BucketSpec, MicroBatchResult, check_fingerprint

FORMAT = 3
"""1 held pickles, which are not read. 2 had the head in a variable of its own, a column for each of
its fields. It is read where it lies, and no query goes on from it before it was migrated."""
STATE = "window"
"""The map. The head of format 2 had this name, too, so Spark refuses such a checkpoint at once; a
map under another name would begin without state."""
KEY_TYPE = StructType([StructField("number", IntegerType())])
VALUE_TYPE = StructType([StructField("data", BinaryType())])
HEAD = -(1 << 31)
"""The number of the head. Pages count from 0 up, and entries from -1 down."""
HEAD_OF_2, PAGES_OF_2 = "window", "pages"
"""The variables of format 2."""
PAGE = 1 << 23
"""Bytes in a page."""
SMALL = 1 << 20
"""Bytes of a snapshot up to which it is kept beside what identifies it."""
TINY = 1 << 14
"""The same once there is a log: then it would be written again with every entry."""
CHANGED = (
    "the state in the checkpoint was changed: the checksum of its head does not fit. Restore the "
    "checkpoint from a copy, or use a new one."
)


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
            raise StateError(CHANGED)

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


READERS: dict[int, Callable[..., StateHead]] = {2: StateHead, FORMAT: StateHead}
"""For each format that was ever released, what makes a head of this one of its values."""


def head_bytes(head: StateHead) -> bytes:
    """A head as it is stored: all but the data as a line of JSON, and the data.

    >>> head = StateHead(3, 0, "n", "run", "home", "{}", 0, 1, 0, 0, 0, b"x").sealed()
    >>> head_bytes(head).partition(b"\\n")[2], head_of(head_bytes(head)) == head
    (b'x', True)
    """
    values = {name: value for name, value in vars(head).items() if name != "data"}
    return json.dumps(values, separators=(",", ":")).encode() + b"\n" + (head.data or b"")


def head_of(stored: bytes) -> StateHead:
    """The head that is stored in these bytes, of whatever format."""
    line, _, data = stored.partition(b"\n")
    try:
        values = json.loads(line)
        check_format(values["format"])
        head = READERS[values["format"]](**values, data=data or None)
    except WindowlibError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):  # no JSON, or none of a head
        raise StateError(CHANGED) from None
    head.check_whole()
    return head


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
        self._values = handle.getMapState(STATE, KEY_TYPE, VALUE_TYPE)

    def read(self) -> StateHead | None:
        """The head, or None if the bucket is new."""
        found = self._value((HEAD,))
        return None if found is None else head_of(found)

    def load(self, head: StateHead) -> tuple[bytes, list[bytes]]:
        """The last snapshot, and the log since then."""
        return assembled(head, self._value)

    def _value(self, key: tuple[int]) -> bytes | None:
        found = self._values.getValue(key)
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
                self._values.updateValue(first_key(entries, entry=True), (result.entry,))
                entries, logged = entries + 1, logged + len(result.entry)
        head = StateHead(
            FORMAT, version, result.nonce, run, home, about, timer, saved, logged, pages,
            entries, data,
        )  # fmt: skip
        head = head.sealed()
        self._values.updateValue((HEAD,), (head_bytes(head),))
        return head

    def put(self, head: StateHead, pages: Mapping[int, bytes]) -> None:
        """Write a head with all its pages and entries, for a bucket that has nothing yet."""
        for number, data in pages.items():
            self._values.updateValue((number,), (data,))
        self._values.updateValue((HEAD,), (head_bytes(head),))

    def _replace(self, before: StateHead | None, snapshot: bytes) -> tuple[int, bytes | None]:
        """Put a snapshot in the place of an older one and its log."""
        if before is not None and (before.pages or before.entries):
            self._values.clear()
        if len(snapshot) <= SMALL:
            return 0, snapshot
        return self._paged(snapshot), None

    def _paged(self, snapshot: bytes) -> int:
        """Write a snapshot as pages; how many."""
        starts = range(0, len(snapshot), PAGE)
        for number, at in enumerate(starts):
            self._values.updateValue(first_key(number, entry=False), (snapshot[at : at + PAGE],))
        return len(starts)
