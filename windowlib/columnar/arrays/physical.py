"""Arrow arrays as numpy arrays of int64 or float64, and back: no copy where none is needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.window.consumer import Decline

Valid = npt.NDArray[np.bool_] | None
DAY = 86_400_000
INT64 = np.iinfo(np.int64)
EXACT = 2**53
"""Whole numbers up to here are floats."""
LIMIT = 2.0**62
"""Sums of whole numbers stay below this, so that none wraps around."""


WHOLE = {pa.int64().id: np.dtype(np.int64), pa.float64().id: np.dtype(np.float64)}
"""Types whose values need no other form."""
KINDS = {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}


def plain(array: Any) -> Any:
    """One array without an encoding: chunks joined, dictionaries and runs decoded, storage bare."""
    if isinstance(array, pa.ChunkedArray):
        chunks = [plain(chunk) for chunk in array.chunks]
        if len(chunks) == 1:
            return chunks[0]
        return pa.concat_arrays(chunks) if chunks else pa.nulls(0, plain_type(array.type))
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        plain_type(kind)
        return plain(array.storage)
    if pa.types.is_dictionary(kind):
        return gather(plain(array.dictionary), array.indices)
    if pa.types.is_run_end_encoded(kind):
        rows = np.arange(array.offset, array.offset + len(array))
        runs = array.run_ends.to_numpy().searchsorted(rows, side="right")
        return gather(plain(array.values), pa.array(runs))
    return array


def plain_type(kind: Any) -> Any:
    """The type of `plain(array)` for arrays of this type.

    >>> plain_type(pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    """
    if isinstance(kind, pa.BaseExtensionType):
        own = kind.__arrow_ext_scalar_class__(), kind.__arrow_ext_class__()
        if own[0].as_py is not pa.ExtensionScalar.as_py or own[1].to_pylist is not LISTED:
            raise Decline(f"the values of {kind} are not those of its storage")
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


LISTED = pa.ExtensionArray.to_pylist
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def gather(array: Any, places: Any) -> Any:
    """`array.take(places)`, for types that Arrow cannot take from too.

    >>> names = pa.array([["a"], ["b"]], pa.list_(pa.string_view()))
    >>> gather(names, pa.array([1, None])).to_pylist()
    [['b'], None]
    """
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        taken = gather(pc.run_end_decode(array), places)
        return pc.run_end_encode(taken, run_end_type=kind.run_end_type)
    stand_in = _without_views(kind)
    if stand_in is None:
        return array.take(places)
    return array.cast(stand_in).take(places).cast(kind)


def gather_rows(rows: Any, places: Any) -> Any:
    """`rows.take(places)` of a batch or a table, for types that Arrow cannot take from too.

    >>> rows = pa.table({"name": pa.array(["x", "y"], pa.string_view())})
    >>> gather_rows(rows, pa.array([1])).to_pylist()
    [{'name': 'y'}]
    """
    kinds = rows.schema.types
    if not any(pa.types.is_run_end_encoded(kind) or _without_views(kind) for kind in kinds):
        return rows.take(places)
    columns = [gather(column, places) for column in rows.columns]
    return type(rows).from_arrays(columns, schema=rows.schema)


def unencoded(array: Any) -> Any:
    """The same values without dictionary, runs or views, as Arrow brings them together with others.

    >>> unencoded(pa.array(["a", "a"]).dictionary_encode()).type
    DataType(string)
    """
    if isinstance(array.type, pa.BaseExtensionType):
        return array
    array = plain(array)
    stand_in = _without_views(array.type)
    return array if stand_in is None else array.cast(stand_in)


@lru_cache(maxsize=256)
def _without_views(kind: Any) -> Any:
    """The type without the views in it, which may be nested; None: it has none."""
    types = pa.types
    if types.is_struct(kind):
        found = pa.struct([_field_without_views(field) for field in kind])
    elif types.is_map(kind):
        key, item = (_without_views(each) or each for each in (kind.key_type, kind.item_type))
        found = pa.map_(key, item, kind.keys_sorted)
    elif types.is_fixed_size_list(kind):
        found = pa.list_(_field_without_views(kind.value_field), kind.list_size)
    elif types.is_list(kind):
        found = pa.list_(_field_without_views(kind.value_field))
    elif types.is_large_list(kind):
        found = pa.large_list(_field_without_views(kind.value_field))
    else:
        return VIEWS.get(kind)
    return None if found == kind else found


def _field_without_views(field: Any) -> Any:
    return field.with_type(_without_views(field.type) or field.type)


@lru_cache(maxsize=256)
def check_movable(kind: Any) -> None:
    """Decline a plain type whose values Arrow cannot put in another order."""
    try:
        gather(pa.nulls(0, kind), pa.array([], pa.int64()))
    except pa.ArrowNotImplementedError as error:
        raise Decline(f"Arrow cannot put values of {kind} in order") from error


@lru_cache(maxsize=256)
def word(kind: Any) -> npt.DTypeLike | None:
    """The numpy type of one value in an Arrow buffer; None: no number, or not one word."""
    types = pa.types
    if types.is_floating(kind):
        return f"f{kind.bit_width // 8}"
    if types.is_unsigned_integer(kind):
        return f"u{kind.bit_width // 8}"
    timely = types.is_date(kind) or types.is_time(kind)
    timely = timely or types.is_timestamp(kind) or types.is_duration(kind)
    if types.is_integer(kind) or timely or (types.is_decimal(kind) and kind.bit_width <= 64):
        return f"i{kind.bit_width // 8}"
    return None


def numeric(kind: Any) -> bool:
    """Whether arrays of a plain type are int64 or float64 numbers, unless too large."""
    types = pa.types
    many = types.is_null(kind) or types.is_boolean(kind) or types.is_decimal128(kind)
    return many or word(kind) is not None


def validity(array: Any) -> Valid:
    """Which values are there; None: all."""
    if not array.null_count:
        return None
    bits = array.buffers()[0]
    if bits is None:  # the null type has no buffers at all; unions do not come here
        return np.zeros(len(array), bool)
    return _bits(bits, array.offset, len(array))


def _bits(buffer: Any, offset: int, length: int) -> npt.NDArray[np.bool_]:
    first = offset // 8
    octets = np.frombuffer(buffer, np.uint8)[first : (offset + length + 7) // 8]
    bits = np.unpackbits(octets, bitorder="little")[offset - first * 8 :][:length]
    return bits.view(np.bool_)


def numbers(array: Any, valid: Valid) -> npt.NDArray[Any] | None:
    """The values of a plain array as int64 or float64, 0 for nulls; None: it has no such form."""
    kind, length = array.type, len(array)
    if valid is None and kind.id in WHOLE:  # as they are
        return _words(array, WHOLE[kind.id], 1)
    if pa.types.is_null(kind):
        return np.zeros(length, np.int64)
    if pa.types.is_boolean(kind):
        found: npt.NDArray[Any] = _bits(array.buffers()[1], array.offset, length).astype(np.int64)
    elif pa.types.is_decimal128(kind):
        words = _words(array, np.int64, 2)
        if not _narrow(words, valid):
            return None
        found = np.ascontiguousarray(words[:, 0])
    elif (dtype := word(kind)) is not None:
        found = _words(array, dtype, 1)
    else:
        return None
    found = found.astype(np.float64 if found.dtype.kind == "f" else np.int64, copy=False)
    if valid is not None:
        found = np.where(valid, found, found.dtype.type(0))
    return _checked(found, kind, valid)


def _words(array: Any, dtype: npt.DTypeLike, per_value: int) -> npt.NDArray[Any]:
    first, stop = array.offset * per_value, (array.offset + len(array)) * per_value
    buffer = array.buffers()[1]
    words = np.empty(0, dtype) if buffer is None else np.frombuffer(buffer, dtype)
    words = words[first:stop]
    return words if per_value == 1 else words.reshape(-1, per_value)


def _narrow(words: npt.NDArray[Any], valid: Valid) -> bool:
    """Whether the high words only repeat the signs of the low ones."""
    same = words[:, 1] == words[:, 0] >> 63
    return bool((same if valid is None else same | ~valid).all())


def _checked(found: npt.NDArray[Any], kind: Any, valid: Valid) -> npt.NDArray[Any]:
    """The same values; declines if Python has other values for them than Arrow."""
    types = pa.types
    if types.is_uint64(kind) and (found < 0).any():
        raise Decline("uint64 values of 2**63 and more")
    if types.is_date64(kind) and (found % DAY).any():
        raise Decline("date64 values with a time of day")
    if types.is_time64(kind) and kind.unit == "ns" and (found % 1000).any():
        raise Decline("times of day with fractions of a microsecond")
    if uses_wall_clock(kind):
        if valid is None:
            return wall_clock(found, kind)
        found[valid] = wall_clock(found[valid], kind)
    return found


RowRanges = Sequence[tuple[int, npt.NDArray[np.intp]]]
"""Places, each with the number of the array that they are in."""


def take_rows(batch: Any, places: npt.NDArray[np.intp]) -> Any:
    """The rows of a batch at some places.

    >>> take_rows(pa.record_batch({"a": [1.5, 2.5], "b": ["x", "y"]}), np.array([1])).to_pylist()
    [{'a': 2.5, 'b': 'y'}]
    """
    return take_ranges([batch], [(0, places)])


def take_ranges(batches: Sequence[Any], pieces: RowRanges) -> Any:
    """Rows of batches of one schema, piece after piece; there is one at least.

    >>> batches = [pa.record_batch({"a": [1, 2, 3]}), pa.record_batch({"a": [4]})]
    >>> take_ranges(batches, [(1, np.array([0])), (0, np.array([2, 1]))]).column("a").to_pylist()
    [4, 3, 2]
    """
    columns = zip(*(batch.columns for batch in batches), strict=True)
    arrays = [_take_ranges(arrays, pieces) for arrays in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batches[0].schema)


def _take_ranges(arrays: Sequence[Any], pieces: RowRanges) -> Any:
    """Values of 64 bits are moved without Arrow, which takes longer."""
    kind = arrays[0].type
    if not _one_word(kind) or any(array.null_count for array in arrays):
        return pa.concat_arrays([gather(arrays[n], pa.array(places)) for n, places in pieces])
    words = [_words(array, np.int64, 1) for array in arrays]
    taken, at = np.empty(sum(len(places) for _, places in pieces), np.int64), 0
    for n, places in pieces:
        words[n].take(places, out=taken[at : at + len(places)], mode="clip")
        at += len(places)
    return pa.Array.from_buffers(kind, at, [None, pa.py_buffer(taken)], 0)


@lru_cache(maxsize=256)
def _one_word(kind: Any) -> bool:
    """Whether a value is 64 bits and nothing else."""
    return bool(pa.types.is_primitive(kind)) and kind.bit_width == 64


def arrow(data: npt.NDArray[Any], valid: Valid, kind: Any) -> Any:
    """An Arrow array of a type from int64 or float64 values."""
    if valid is None and kind.id in WHOLE and WHOLE[kind.id] == data.dtype:
        stored = np.ascontiguousarray(data)
        return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(stored)])
    if pa.types.is_null(kind):
        return pa.nulls(len(data))
    if uses_wall_clock(kind):
        return instants(arrow(data, valid, pa.timestamp(kind.unit)), kind)
    missing = None if valid is None else _packed(valid)
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(data), [missing, _packed(data != 0)])
    if pa.types.is_decimal(kind):
        _fits(data, kind, -(10**kind.precision) + 1, 10**kind.precision - 1)
    if pa.types.is_decimal128(kind):
        data = np.stack([data, data >> 63], axis=1)
        return pa.Array.from_buffers(kind, len(data), [missing, pa.py_buffer(data)])
    dtype = np.dtype(word(kind))
    if dtype.kind != "f" and dtype != data.dtype:
        _fits(data, kind, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(data, dtype)
    if (
        stored.dtype != data.dtype
        and dtype.kind == "f"
        and not np.array_equal(stored, data, equal_nan=True)
    ):
        raise Decline(f"a value that is not exact as {kind}")
    return pa.Array.from_buffers(kind, len(data), [missing, pa.py_buffer(stored)])


def _packed(bits: npt.NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def _fits(data: npt.NDArray[Any], kind: Any, low: int, high: int) -> None:
    if not len(data) or (low <= INT64.min and high >= INT64.max):
        return
    if int(data.min()) < low or int(data.max()) > high:
        raise Decline(f"a value that does not fit in {kind}")


def max_magnitude(data: npt.NDArray[Any]) -> int:
    """The distance from 0 of the whole number that is max_magnitude from it."""
    return max(-int(data.min()), int(data.max())) if len(data) else 0  # 2**53 + 1 is no float


# Time zones: which timestamps compare as wall clocks in Python, and those wall clocks.
#
# Python compares and subtracts two times of the same zone by what the clock on the wall shows, not
# by the instants. So does the event engine, and so must arrays.


UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu"})
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY_SECONDS = 86_400  # seconds
REGULAR = range(1_096, 365 * 400)  # days since 1970: from 1973 no zone changes twice in a day

Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=256)
def uses_wall_clock(kind: Any) -> bool:
    """Whether Python compares the values of a timestamp type as wall clocks.

    It does so for zones of the standard library. Where pytz is installed, as by older pandas,
    pyarrow makes times of pytz, which compare as instants.

    >>> uses_wall_clock(pa.timestamp("us", "UTC")), uses_wall_clock(pa.timestamp("us"))
    (False, False)
    """
    if not pa.types.is_timestamp(kind) or kind.tz is None or kind.tz in UTC:
        return False
    try:
        (value,) = pa.array([0], kind).to_pylist()
    except (pa.ArrowException, ValueError, LookupError) as error:
        raise Decline(f"the time zone {kind.tz!r} is not known") from error
    # A fixed offset is as good as UTC, and other libraries' times compare as instants.
    return type(value).__module__ == "datetime" and isinstance(value.tzinfo, ZoneInfo)


def wall_clock(instants: Ints, kind: Any) -> Ints:
    """What the clocks of the type's zone show at these instants, in the same unit.

    Instants in the hour that a clock shows twice are declined: there is no way back.
    """
    if not len(instants):
        return instants
    day = DAY_SECONDS * PER_SECOND[kind.unit]
    days = instants // day
    low, high = int(days.min()) - 1, int(days.max()) + 1
    if low not in REGULAR or high not in REGULAR:
        return _each(instants, kind)
    grid = np.arange(low, high + 2) * day
    offsets = _local(grid, kind) - grid
    changes = np.diff(offsets) != 0  # in the course of a day
    near = changes.copy()
    near[1:] |= changes[:-1]
    near[:-1] |= changes[1:]
    days -= low
    shown: Ints = instants + offsets[days]
    if near.any():
        rows = np.flatnonzero(near[days])
        shown[rows] = _each(instants[rows], kind)
    return shown


def _each(instants: Ints, kind: Any) -> Ints:
    """Wall clocks, looked up one by one."""
    shown = _local(instants, kind)
    clocks = pa.array(shown).view(pa.timestamp(kind.unit))
    for which in ("earliest", "latest"):
        back = pc.assume_timezone(clocks, kind.tz, ambiguous=which)
        if not np.array_equal(back.view(pa.int64()).to_numpy(), instants):
            raise Decline(f"times in an hour that the clocks of {kind.tz} show twice")
    return shown


def instants(shown: Any, kind: Any) -> Any:
    """The timestamps of a type with a zone at which its clocks show these times."""
    try:
        return pc.assume_timezone(shown, kind.tz)
    except pa.ArrowInvalid as error:
        raise Decline(f"a time that the clocks of {kind.tz} show twice or never") from error


def _local(instants: Ints, kind: Any) -> Ints:
    shown: Ints = pc.local_timestamp(pa.array(instants).view(kind)).view(pa.int64()).to_numpy()
    return shown
