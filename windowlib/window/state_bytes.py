"""State as bytes: the one encoding of what is written to a checkpoint, a file or a socket.

It holds plain data and nothing that could run: reading it calls no class or function that the bytes
name. An envelope comes first, with a length and a checksum, which are verified before anything is
decoded:

    magic "WLSTATE\\n" | version u16 | 6 zero bytes | length of the body u64 | checksum, 16 bytes

The checksum is the start of the SHA-256 of what stands before it and the body. The body is a
*column* of one value. A column of n values is the code of their kind, and then all of them as that
kind writes them: numbers as one array, texts as their lengths and one text, lists as their lengths
and one column of what is in them, dicts with the same keys as one column for each key. Values of
several kinds are n codes, and then a column for each kind. So the work is done by the loops of
`struct`, `str` and `map`, and a list of a million rows costs a few calls for each of its columns.
A column of one value may have a *short* form: small numbers and texts, and lists, tuples and dicts
of a few values, which follow one by one.

Every value takes a byte at least, and each kind checks what it reads against what is left; so bytes
cannot ask for more memory than a multiple of their own size, nor for more than `DEPTH` levels.
"""

from __future__ import annotations

import copy
import datetime as dt
import math
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from hashlib import sha256
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from windowlib.errors import StateError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MAGIC = b"WLSTATE\n"
VERSION = 1
ENVELOPE = struct.Struct("<8sH6xQ")
CHECKSUM = 16
HEADER = ENVELOPE.size + CHECKSUM
DEPTH = 100
"""Levels of lists and dicts within each other."""
COUNT = struct.Struct("<Q")
WIDTHS = "bhiq"
"""Whole numbers take 1, 2, 4 or 8 bytes, all of a column the same."""
WIDE = 64
"""Lists of one length are written by position up to this length."""
DAMAGED = "Take the bytes whole from where they were written, or from a copy."


def dump_state(state: Any) -> bytes:
    """A snapshot, or other plain data, as bytes that `load_state` reads.

    Plain data are None, bool, int of any size, float, Decimal, str, bytes, dates, times and
    durations with their zones, UUID, tuple, list, dict, set and frozenset of these, numpy arrays
    and scalars, and Arrow arrays, batches, tables and schemas. Anything else is refused, with where
    it is.

    >>> load_state(dump_state({"a": (1, 2.5), ("b", None): [b"x", 10**30]}))
    {'a': (1, 2.5), ('b', None): [b'x', 1000000000000000000000000000000]}
    """
    writer = _written(state)
    head = ENVELOPE.pack(MAGIC, VERSION, writer.size)
    return b"".join((head, _checksum(head, *writer.parts), *writer.parts))


def _written(state: Any, aside: list[Any] | None = None) -> Writer:
    writer = Writer(aside)
    try:
        writer.value(state)
    except NotPlain as error:
        raise StateError(_refusal(state, error.value, error.why)) from None
    return writer


def load_state(data: bytes | bytearray | memoryview) -> Any:
    """What `dump_state` got. Bytes that are cut, changed or of something else are refused.

    >>> load_state(dump_state([1, True, None]))
    [1, True, None]
    """
    view = memoryview(data)
    return READERS[_checked(view)](view[HEADER:]).whole()


def written_and_read(state: Any) -> Any:
    """What a snapshot is after a restart, for trying one in a process.

    Rows may be objects of any class there, so those are copied. Code is refused as elsewhere.
    """
    writer = _written(state, aside=[])
    return Reader(memoryview(b"".join(writer.parts)), writer.aside).whole()


def _checksum(*parts: Any) -> bytes:
    found = sha256()
    for part in parts:
        found.update(part)
    return found.digest()[:CHECKSUM]


def _checked(view: memoryview) -> int:
    """The version of bytes that are as they were written."""
    what = f"state of {len(view)} bytes"
    if len(view) < HEADER or bytes(view[: len(MAGIC)]) != MAGIC:
        raise StateError(f"{what}: it was not written by dump_state. {DAMAGED}")
    head = bytes(view[: ENVELOPE.size])
    _, version, length = ENVELOPE.unpack(head)
    if length != len(view) - HEADER:
        said = f"its envelope says {length} bytes, and {len(view) - HEADER} follow"
        raise StateError(f"{what}: {said}. {DAMAGED}")
    if _checksum(head, view[HEADER:]) != view[ENVELOPE.size : HEADER]:
        raise StateError(f"{what}: its checksum does not fit, so it was changed. {DAMAGED}")
    if version not in READERS:
        known = ", ".join(map(str, READERS))
        msg = (
            f"{what}: it has format {version}, this version of windowlib reads {known}. Use the "
            f"version that wrote it."
        )
        raise StateError(msg)
    return int(version)


# -- writing --------------------------------------------------------------------------------------


class NotPlain(Exception):  # noqa: N818 - it says what a value is
    """A value that is no plain data."""

    def __init__(self, value: Any, why: str) -> None:
        super().__init__(why)
        self.value, self.why = value, why


class Writer:
    """Puts columns of values one behind the other."""

    def __init__(self, aside: list[Any] | None = None) -> None:
        self.parts: list[Any] = []
        self.size = self.depth = 0
        self.aside = aside
        """Where copies of objects go that are not plain data; None: they are refused."""

    def raw(self, data: Any) -> None:
        """Bytes as they are."""
        self.parts.append(data)
        self.size += len(data)

    def blob(self, data: Any) -> None:
        """Bytes with their length, at a place that is a multiple of 8."""
        self.raw(COUNT.pack(memoryview(data).nbytes))
        self.raw(bytes(-self.size % 8))
        self.parts.append(data)
        self.size += memoryview(data).nbytes

    def value(self, value: Any) -> None:
        """One value, which is a column of one."""
        kind = type(value)
        if kind is float:
            self.raw(ONE_FLOAT.pack(FLOAT, value))
        elif kind is int and SMALLEST <= value <= LARGEST:
            self.raw(ONE_INT.pack(SHORT_INT, value))
        elif kind is str and len(value) < SHORT and value.isascii():
            self.raw(bytes((SHORT_TEXT, len(value))) + value.encode())
        elif kind in SHORT_FORMS and len(value) < SHORT:
            self._short(kind, value)
        else:
            self._kind(self._code(kind, (value,)), (value,))

    def _short(self, kind: type, values: Any) -> None:
        self.raw(bytes((SHORT_FORMS[kind], len(values))))
        self._deeper(values)
        for each in values if kind is not dict else chain.from_iterable(values.items()):
            self.value(each)
        self.depth -= 1

    def _deeper(self, value: Any) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise NotPlain(value, f"it is more than {DEPTH} levels deep")

    def column(self, values: Sequence[Any]) -> None:
        """Values, whose number the reader knows."""
        if len(values) == 1:
            self.value(values[0])
            return
        kinds = set(map(type, values))
        if len(kinds) == 1:
            (kind,) = kinds
            self._kind(self._code(kind, values), values)
        elif not kinds:
            self.raw(bytes([NONE]))
        else:
            self._mixed(values, kinds)

    def _kind(self, code: int, values: Sequence[Any]) -> None:
        self.raw(bytes([code]))
        self._deeper(values[0])
        KINDS[code].write(self, values)
        self.depth -= 1

    def _mixed(self, values: Sequence[Any], kinds: set[type]) -> None:
        codes = {kind: self._code(kind, values) for kind in kinds}
        each = bytes(map(codes.__getitem__, map(type, values)))
        self.raw(bytes([MIXED]))
        self.raw(each)
        for code in sorted(set(codes.values())):
            self._kind(
                code, [value for value, own in zip(values, each, strict=True) if own == code]
            )

    def _code(self, kind: type, values: Iterable[Any]) -> int:
        """The code of a type."""
        code = CODES.get(kind)
        if code is None:
            code = _foreign_code(kind)
        if code is None and self.aside is not None and not issubclass(kind, CODE):
            return ASIDE
        if code is None:
            value = next(each for each in values if type(each) is kind)
            name = f"{kind.__module__}.{kind.__qualname__}"
            raise NotPlain(value, f"objects of {name} are not plain data")
        return code


@cache
def _foreign_code(kind: type) -> int | None:
    """The code of a type of numpy or pyarrow, which are there if a value of theirs is."""
    package = kind.__module__.partition(".")[0]
    if package == "numpy":
        import numpy as np

        plain = issubclass(kind, np.generic) and not issubclass(kind, np.object_ | np.void)
        return ARRAY if kind is np.ndarray else SCALAR if plain else None
    if package == "pyarrow":
        import pyarrow as pa

        found = {
            pa.Array: ARROW, pa.ChunkedArray: CHUNKED, pa.RecordBatch: BATCH, pa.Table: TABLE,
            pa.Schema: SCHEMA, pa.DataType: TYPE,
        }  # fmt: skip
        return next((code for each, code in found.items() if issubclass(kind, each)), None)
    if issubclass(kind, dt.tzinfo):
        return ZONE
    return None


# -- reading --------------------------------------------------------------------------------------


class Reader:
    """Reads what a `Writer` wrote; one is made for each version of the encoding."""

    def __init__(self, view: memoryview, aside: Sequence[Any] | None = None) -> None:
        self.view, self.at, self.depth = view, 0, 0
        self.aside = aside

    def whole(self) -> Any:
        """The one value that is all there is."""
        try:
            found = self.value()
        except StateError:
            raise
        except Exception as error:  # a kind whose bytes have the wrong form
            raise self.wrong(f"{type(error).__name__}: {error}") from error
        if self.at != len(self.view):
            raise self.wrong(f"{len(self.view) - self.at} bytes are left over")
        return found

    def wrong(self, why: str) -> StateError:
        """What to say of bytes that no `Writer` has written."""
        return StateError(f"state of {len(self.view) + HEADER} bytes: {why}. {DAMAGED}")

    def raw(self, n: int) -> memoryview:
        """The next bytes."""
        end = self.at + n
        if n < 0 or end > len(self.view):
            raise self.wrong(f"{n} bytes are missing at {self.at}")
        found = self.view[self.at : end]
        self.at = end
        return found

    def count(self) -> int:
        """A length or a number of things."""
        return int(COUNT.unpack(self.raw(COUNT.size))[0])

    def blob(self) -> memoryview:
        """Bytes with their length."""
        size = self.count()
        self.raw(-self.at % 8)
        return self.raw(size)

    def value(self) -> Any:
        """One value."""
        view, at = self.view, self.at + 1
        code, self.at = view[self.at], at
        if code in ONE_NUMBER:
            self.at = at + 8
            return ONE_NUMBER[code].unpack_from(view, at)[0]
        if code == SHORT_TEXT:
            return str(self.raw(self.raw(1)[0]), "ascii")
        make = SHORT_KINDS.get(code)
        if make is None:
            return self._kind(code, 1)[0]
        size, self.at = view[at], at + 1
        self._deeper()
        if make is dict:
            found = {self.value(): self.value() for _ in range(size)}
            if len(found) != size:
                raise self.wrong("a dict with a key twice")
        else:
            found = make([self.value() for _ in range(size)])
        self.depth -= 1
        return found

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.wrong(f"it is more than {DEPTH} levels deep")

    def column(self, n: int) -> list[Any]:
        """So many values."""
        if n == 1:
            return [self.value()]
        (code,) = self.raw(1)
        if not n:
            return []
        if code != MIXED:
            return self._kind(code, n)
        each = bytes(self.raw(n))
        parts = {}
        for code in sorted(set(each)):
            if self.raw(1)[0] != code:
                raise self.wrong("kinds of values that are not those of a column")
            parts[code] = iter(self._kind(code, each.count(code)))
        return list(map(next, map(parts.__getitem__, each)))

    def _kind(self, code: int, n: int) -> list[Any]:
        kind = KINDS.get(code)
        if kind is None:
            raise self.wrong(f"there is no kind {code} of values")
        self._deeper()
        found = kind.read(self, n)
        self.depth -= 1
        return found

    def lengths(self, n: int) -> list[int]:
        """So many lengths."""
        found = self.column(n)
        if set(map(type, found)) - {int} or (found and min(found) < 0):
            raise self.wrong("lengths that are none")
        return found

    def texts(self, n: int) -> list[str]:
        """So many texts."""
        found = self.column(n)
        if set(map(type, found)) - {str}:
            raise self.wrong("texts that are none")
        return found


READERS: dict[int, Callable[[memoryview], Reader]] = {1: Reader}
"""What reads each version that was ever released."""


# -- the kinds of values --------------------------------------------------------------------------

(
    NONE, BOOL, INT, FLOAT, TEXT, BYTES, LIST, TUPLE, DICT, SET, FROZENSET,
    DECIMAL, DATE, TIME, DATETIME, DURATION, ZONE, UUID,
    ARRAY, SCALAR, ARROW, CHUNKED, BATCH, TABLE, SCHEMA, TYPE, COMPLEX, ASIDE,
) = range(28)  # fmt: skip
MIXED = 255
CODE = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, GeneratorType, type)
SHORT_INT, SHORT_TEXT, SHORT_LIST, SHORT_TUPLE, SHORT_DICT = range(128, 133)
SHORT_FORMS: dict[type, int] = {list: SHORT_LIST, tuple: SHORT_TUPLE, dict: SHORT_DICT}
SHORT_KINDS: dict[int, Any] = {code: kind for kind, code in SHORT_FORMS.items()}
SHORT = 16
"""Lists, tuples, dicts and texts of fewer are written short."""
ONE_NUMBER = {SHORT_INT: struct.Struct("<q"), FLOAT: struct.Struct("<d")}
ONE_INT, ONE_FLOAT = struct.Struct("<Bq"), struct.Struct("<Bd")
SMALLEST, LARGEST = -(2**63), 2**63 - 1


class Kind:
    """How many values of one kind are written and read."""

    def __init__(
        self,
        write: Callable[[Writer, Sequence[Any]], None],
        read: Callable[[Reader, int], list[Any]],
    ) -> None:
        self.write, self.read = write, read


def _as(to: Callable[[Any], Any], back: Callable[[Any], Any]) -> Kind:
    """Values that are written as others."""

    def write(w: Writer, values: Sequence[Any]) -> None:
        w.column(list(map(to, values)))

    def read(r: Reader, n: int) -> list[Any]:
        return list(map(back, r.column(n)))

    return Kind(write, read)


def _write_none(w: Writer, values: Sequence[Any]) -> None:
    w.raw(bytes(len(values)))


def _read_none(r: Reader, n: int) -> list[Any]:
    if any(r.raw(n)):
        raise r.wrong("a null with a value")
    return [None] * n


def _write_bool(w: Writer, values: Sequence[bool]) -> None:
    w.raw(bytes(values))


def _read_bool(r: Reader, n: int) -> list[bool]:
    found = bytes(r.raw(n))
    if max(found) > 1:
        raise r.wrong("a bool that is neither true nor false")
    return list(map(bool, found))


def _write_ints(w: Writer, values: Sequence[int]) -> None:
    size = max(max(values).bit_length(), min(values).bit_length())
    if size > 63:
        w.raw(b"L")
        w.column([_large(each) for each in values])
        return
    width = WIDTHS[(size > 7) + (size > 15) + (size > 31)]
    w.raw(width.encode())
    w.raw(struct.pack(f"<{len(values)}{width}", *values))


def _read_ints(r: Reader, n: int) -> list[int]:
    width = chr(r.raw(1)[0])
    if width == "L":
        return [int.from_bytes(each, "little", signed=True) for each in r.column(n)]
    if width not in WIDTHS:
        raise r.wrong(f"whole numbers of width {width!r}")
    form = f"<{n}{width}"
    return list(struct.unpack(form, r.raw(struct.calcsize(form))))


def _large(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _write_floats(w: Writer, values: Sequence[float]) -> None:
    w.raw(struct.pack(f"<{len(values)}d", *values))


def _read_floats(r: Reader, n: int) -> list[float]:
    return list(struct.unpack(f"<{n}d", r.raw(8 * n)))


def _write_texts(w: Writer, values: Sequence[str]) -> None:
    """Texts one behind the other; where most occur again, their places among the distinct ones."""
    distinct = list(dict.fromkeys(values))
    often = 2 * len(distinct) <= len(values)
    w.raw(bytes([often]))
    if often:
        places = dict(zip(distinct, range(len(distinct)), strict=True))
        w.raw(COUNT.pack(len(distinct)))
        w.column([places[each] for each in values])
        values = distinct
    w.column(list(map(len, values)))
    w.blob("".join(values).encode("utf-8", "surrogatepass"))


def _read_texts(r: Reader, n: int) -> list[str]:
    (often,) = r.raw(1)
    places: list[int] = []
    if often:
        distinct = r.count()
        places, n = r.lengths(n), distinct
        if distinct > len(r.view) or max(places) >= distinct:
            raise r.wrong("texts that are not there")
    lengths = r.lengths(n)
    text = str(r.blob(), "utf-8", "surrogatepass")
    if sum(lengths) != len(text):
        raise r.wrong("texts of another length")
    found = [text[lo:hi] for lo, hi in pairwise(accumulate(lengths, initial=0))]
    return list(map(found.__getitem__, places)) if often else found


def _write_bytes(w: Writer, values: Sequence[bytes]) -> None:
    w.column(list(map(len, values)))
    w.blob(values[0] if len(values) == 1 else b"".join(values))


def _read_bytes(r: Reader, n: int) -> list[bytes]:
    lengths, data = r.lengths(n), r.blob()
    if sum(lengths) != len(data):
        raise r.wrong("bytes of another length")
    return [bytes(data[lo:hi]) for lo, hi in pairwise(accumulate(lengths, initial=0))]


def _sequences(make: Callable[[Iterable[Any]], Any]) -> Kind:
    """Lists, tuples and sets: by position if all have one length, otherwise one after the other."""
    ordered = make in (list, tuple)

    def write(w: Writer, values: Sequence[Any]) -> None:
        lengths = list(map(len, values))
        width = lengths[0]
        even = ordered and len(values) > width and 0 < width <= WIDE and set(lengths) == {width}
        w.raw(bytes([even]))
        if even:
            w.raw(bytes([width]))
            for position in zip(*values, strict=True):
                w.column(position)
        else:
            w.column(lengths)
            w.column(list(chain.from_iterable(values)))

    def read(r: Reader, n: int) -> list[Any]:
        if r.raw(1)[0]:
            columns = [r.column(n) for _ in range(r.raw(1)[0])]
            if not columns:
                raise r.wrong("lists without a length")
            rows = zip(*columns, strict=True)
            return list(rows) if make is tuple else list(map(make, rows))
        lengths = r.lengths(n)
        flat = r.column(sum(lengths))
        return [make(flat[lo:hi]) for lo, hi in pairwise(accumulate(lengths, initial=0))]

    return Kind(write, read)


def _write_dicts(w: Writer, values: Sequence[dict[Any, Any]]) -> None:
    """Dicts: by key if all have the same, otherwise their items one after the other."""
    keys = list(values[0])
    even = len(values) > 1 and len(keys) > 0 and set(map(tuple, values)) == {tuple(keys)}
    w.raw(bytes([even]))
    if even:
        w.raw(COUNT.pack(len(keys)))
        w.column(keys)
        if set(map(type, keys)) != {str}:  # keys that are equal may differ in type: 1, 1.0, True
            w.column(list(chain.from_iterable(values)))
        for key in keys:
            w.column(list(map(itemgetter(key), values)))
    else:
        w.column(list(map(len, values)))
        w.column(list(chain.from_iterable(values)))
        w.column(list(chain.from_iterable(each.values() for each in values)))


def _read_dicts(r: Reader, n: int) -> list[dict[Any, Any]]:
    if not r.raw(1)[0]:
        lengths = r.lengths(n)
        total = sum(lengths)
        keys, values = r.column(total), r.column(total)
        items = zip(keys, values, strict=True)
        found = [dict([next(items) for _ in range(size)]) for size in lengths]
        if list(map(len, found)) != lengths:
            raise r.wrong("a dict with a key twice")
        return found
    keys = r.column(r.count())
    if not keys or len(set(keys)) != len(keys):
        raise r.wrong("a dict with a key twice, or without any")
    own = None if set(map(type, keys)) == {str} else iter(r.column(n * len(keys)))
    rows = zip(*(r.column(n) for _ in keys), strict=True)
    if own is None:
        return [dict(zip(keys, row, strict=True)) for row in rows]
    return [{next(own): value for value in row} for row in rows]


def _times(read: Callable[[str], Any]) -> Kind:
    """Times of day and datetimes: as they are written, which of two equal ones, and their zones."""

    def write(w: Writer, values: Sequence[Any]) -> None:
        w.column([each.replace(tzinfo=None).isoformat() for each in values])
        w.column([each.fold for each in values])
        w.column([each.tzinfo for each in values])

    def back(r: Reader, n: int) -> list[Any]:
        parts = zip(r.texts(n), r.column(n), r.column(n), strict=True)
        return [read(text).replace(fold=fold, tzinfo=zone) for text, fold, zone in parts]

    return Kind(write, back)


def _zone_text(zone: dt.tzinfo) -> str:
    """A zone as its key, or as a fixed offset in microseconds with its name."""
    key = getattr(zone, "key", None) or getattr(zone, "zone", None)  # the second is of pytz
    if isinstance(key, str):
        return key
    if zone is dt.UTC:
        return "+"
    offset = zone.utcoffset(None)
    if offset is None:
        raise NotPlain(zone, f"a zone of {type(zone).__module__} has neither key nor fixed offset")
    return f"{offset // dt.timedelta(microseconds=1):+}"


@cache
def _zone(text: str) -> dt.tzinfo:
    if text == "+":
        return dt.UTC
    if text[:1] in "+-":
        return dt.timezone(dt.timedelta(microseconds=int(text)))
    from zoneinfo import ZoneInfo  # which loads a good deal

    return ZoneInfo(text)


def _micros(value: dt.timedelta) -> int:
    return value // dt.timedelta(microseconds=1)


def _write_arrays(w: Writer, values: Sequence[np.ndarray]) -> None:
    import numpy as np

    for each in values:
        if each.dtype.hasobject or each.dtype.names:
            raise NotPlain(each, f"an array of {each.dtype} has no plain form")
        w.column((each.dtype.str, each.shape))
        w.blob(np.ascontiguousarray(each).reshape(-1).view(np.uint8).data if each.size else b"")


def _read_arrays(r: Reader, n: int) -> list[Any]:
    import numpy as np

    found = []
    for _ in range(n):
        text, shape = r.column(2)
        dtype, data = _dtype(r, text), r.blob()
        if any(type(each) is not int or each < 0 for each in shape):
            raise r.wrong("an array with no shape")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise r.wrong("an array of another size")
        found.append(np.frombuffer(data, dtype).reshape(shape).copy())  # which can be written to
    return found


def _write_scalars(w: Writer, values: Sequence[np.generic]) -> None:
    w.column([each.dtype.str for each in values])
    w.column([each.tobytes() for each in values])


def _read_scalars(r: Reader, n: int) -> list[Any]:
    import numpy as np

    pairs = zip(r.texts(n), r.column(n), strict=True)
    return [np.frombuffer(data, _dtype(r, text))[0] for text, data in pairs]


def _dtype(r: Reader, text: str) -> np.dtype[Any]:
    import numpy as np

    dtype = np.dtype(text)
    if dtype.hasobject or dtype.names or not dtype.itemsize:
        raise r.wrong(f"{text!r} is no type of plain numbers")
    return dtype


def _ipc(
    to: Callable[[Any], pa.Table], back: Callable[[pa.Schema, list[pa.RecordBatch]], Any]
) -> Kind:
    """What Arrow itself writes: an IPC stream, read without a copy."""

    def write(w: Writer, values: Sequence[Any]) -> None:
        import pyarrow as pa

        for each in values:
            table, sink = to(each), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write(table)
            w.blob(sink.getvalue())

    def read(r: Reader, n: int) -> list[Any]:
        import pyarrow as pa

        found = []
        for _ in range(n):
            with pa.ipc.open_stream(pa.py_buffer(r.blob())) as stream:
                batches = list(stream)
            for batch in batches:
                batch.validate(full=True)  # offsets that point elsewhere are not looked at later
            found.append(back(stream.schema, batches))
        return found

    return Kind(write, read)


def _column_of(array: pa.Array) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([array], [""])


def _chunks_of(array: pa.ChunkedArray) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_arrays([array], [""])


def _one_array(_: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Array:
    (batch,) = batches
    return batch.column(0)


def _one_batch(_: pa.Schema, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    (batch,) = batches
    return batch


def _one_table(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(batches, schema)


def _no_rows(kind: pa.DataType) -> pa.Table:
    import pyarrow as pa

    return pa.schema([("", kind)]).empty_table()


def _write_aside(w: Writer, values: Sequence[Any]) -> None:
    assert w.aside is not None
    first = len(w.aside)
    w.aside += map(copy.deepcopy, values)
    w.column(range(first, len(w.aside)))


def _read_aside(r: Reader, n: int) -> list[Any]:
    if r.aside is None:
        raise r.wrong("objects that were not written")
    return list(map(r.aside.__getitem__, r.column(n)))


KINDS: dict[int, Kind] = {
    NONE: Kind(_write_none, _read_none),
    BOOL: Kind(_write_bool, _read_bool),
    INT: Kind(_write_ints, _read_ints),
    FLOAT: Kind(_write_floats, _read_floats),
    TEXT: Kind(_write_texts, _read_texts),
    BYTES: Kind(_write_bytes, _read_bytes),
    LIST: _sequences(list),
    TUPLE: _sequences(tuple),
    SET: _sequences(set),
    FROZENSET: _sequences(frozenset),
    DICT: Kind(_write_dicts, _read_dicts),
    DECIMAL: _as(str, Decimal),
    DATE: _as(dt.date.toordinal, dt.date.fromordinal),
    TIME: _times(dt.time.fromisoformat),
    DATETIME: _times(dt.datetime.fromisoformat),
    DURATION: _as(_micros, lambda micros: dt.timedelta(microseconds=micros)),
    ZONE: _as(_zone_text, _zone),
    UUID: _as(lambda value: value.bytes, lambda data: uuid.UUID(bytes=data)),
    COMPLEX: _as(lambda value: (value.real, value.imag), lambda parts: complex(*parts)),
    ARRAY: Kind(_write_arrays, _read_arrays),
    SCALAR: Kind(_write_scalars, _read_scalars),
    ARROW: _ipc(_column_of, _one_array),
    CHUNKED: _ipc(_chunks_of, lambda schema, found: _one_table(schema, found).column(0)),
    BATCH: _ipc(lambda batch: batch, _one_batch),
    TABLE: _ipc(lambda table: table, _one_table),
    SCHEMA: _ipc(lambda schema: schema.empty_table(), lambda schema, _: schema),
    ASIDE: Kind(_write_aside, _read_aside),
    TYPE: _ipc(_no_rows, lambda schema, _: schema.field(0).type),
}
CODES: dict[type, int] = {
    type(None): NONE, bool: BOOL, int: INT, float: FLOAT, str: TEXT, bytes: BYTES, list: LIST,
    tuple: TUPLE, dict: DICT, set: SET, frozenset: FROZENSET, Decimal: DECIMAL, dt.date: DATE,
    dt.time: TIME, dt.datetime: DATETIME, dt.timedelta: DURATION, dt.timezone: ZONE,
    uuid.UUID: UUID, complex: COMPLEX,
}  # fmt: skip


# -- what is said of data that is not plain -------------------------------------------------------


def _refusal(state: Any, value: Any, why: str) -> str:
    path = next(_paths(state, value, 0), None)
    where = "".join(f"[{step!r}]" for step in path or ())
    owner = ""
    if isinstance(state, dict) and isinstance(about := state.get("operator"), dict):
        owner = f" of {about.get('operator', 'an operator')}"
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return (
        f"dump_state(state): state{where}{owner} is {shown}, and {why}. Return plain data from "
        f"snapshot(), such as a dict of an object's fields, and rebuild the object in restore()."
    )


def _paths(state: Any, value: Any, depth: int) -> Iterator[tuple[Any, ...]]:
    """Where a value is in plain data."""
    if state is value:
        yield ()
    elif depth <= DEPTH and isinstance(state, dict | list | tuple):
        steps = state.items() if isinstance(state, dict) else enumerate(state)
        for step, inner in steps:
            if step is value:
                yield (step,)
            for path in _paths(inner, value, depth + 1):
                yield step, *path
