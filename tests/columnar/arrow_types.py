"""Arrow types with values of theirs, and the forms in which an array of them may come."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0)
HOUR = dt.timedelta(hours=1)

INTS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
DECIMALS = [pa.decimal128(5, 2), pa.decimal128(38, 2)]
DECIMALS += [getattr(pa, name)(5, 2) for name in ("decimal32", "decimal64") if hasattr(pa, name)]

# Types whose values are int64 numbers, and five values in rising order.
NUMBERS = {
    **{kind: [0, 1, 5, 7, 100] for kind in INTS},
    pa.bool_(): [False, False, False, True, True],
    **{kind: [DAY + n * dt.timedelta(1) for n in range(5)] for kind in (pa.date32(), pa.date64())},
    **{pa.time32(unit): [dt.time(n, 30, 59) for n in range(5)] for unit in ("s", "ms")},
    **{pa.time64(unit): [dt.time(n, 1, 2, 345678) for n in range(5)] for unit in ("us", "ns")},
    **{pa.timestamp(unit): [NOON + n * HOUR for n in range(5)] for unit in ("s", "ms", "us")},
    **{pa.duration(unit): [n * HOUR for n in range(-2, 3)] for unit in ("s", "ms", "us")},
    **{kind: [Decimal(n).scaleb(-2) for n in (-300, -1, 0, 5, 99999)] for kind in DECIMALS},
}
ZONES = ("UTC", "+02:00", "Europe/Berlin", "America/New_York")


def takes_floats(kind):
    """Whether Python floats become it: half floats do not in every pyarrow."""
    try:
        return len(pa.array([1.5], kind)) == 1
    except pa.ArrowTypeError:
        return False


FLOAT_TYPES = [each for each in (pa.float16(), pa.float32(), pa.float64()) if takes_floats(each)]
FLOATS = {kind: [float("-inf"), -2.5, 0.0, 1.5, 1024.0] for kind in FLOAT_TYPES}
BIG = [Decimal(n).scaleb(-2) for n in (-(10**30), -(2**63), 0, 2**63, 10**30)]
# Types whose values are no numbers, or too large ones, but have an order.
OBJECTS = {
    **{kind: ["", "Z", "a", "ab", "ä"] for kind in (pa.string(), pa.large_string())},
    **{kind: [b"", b"A", b"a", b"a\0", b"\xff"] for kind in (pa.binary(), pa.large_binary())},
    pa.string_view(): ["", "Z", "a", "a string too long for a view", "ä"],
    pa.binary_view(): [b"", b"A", b"a", b"bytes too long for a view", b"\xff"],
    pa.binary(2): [b"\0\0", b"\0a", b"a\0", b"aa", b"\xff\0"],
    pa.decimal128(38, 2): BIG,
    pa.decimal256(60, 2): BIG,
}


def zoned():
    """Timestamp types with a zone, and five of their values."""
    for zone in ZONES:
        for unit in ("s", "ms", "us"):
            kind = pa.timestamp(unit, zone)
            plain = pa.array([NOON + n * HOUR for n in range(5)], pa.timestamp(unit))
            yield kind, plain.cast(pa.timestamp(unit, "UTC")).cast(kind).to_pylist()


TABLE = [*NUMBERS.items(), *zoned(), *FLOATS.items(), *OBJECTS.items()]


def sliced(array):
    around = pa.concat_arrays([pa.nulls(3, array.type), array, pa.nulls(5, array.type)])
    return around.slice(3, len(array))


def sliced_between_values(array):
    if not len(array):
        return array
    around = pa.concat_arrays([array.slice(0, 1)] * 9 + [array] + [array.slice(0, 1)] * 2)
    return around.slice(9, len(array))


def chunked(array):
    return pa.chunked_array([array.slice(0, 2), array.slice(2, 0), array.slice(2)], array.type)


def no_chunk(array):
    return chunked(array) if len(array) else pa.chunked_array([], array.type)


def dictionary(array):
    """Indices into the values backwards, a null in the indices for a null."""
    n, indices = len(array), [None if x is None else i for i, x in enumerate(array.to_pylist())]
    values = array.slice(0, n)
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), values)


def dictionary_with_nulls_inside(array):
    places = pa.array(range(len(array)), pa.int16())
    return pa.DictionaryArray.from_arrays(places, array)


def sliced_dictionary(array):
    n = len(array)
    places = pa.array([None, *range(n), 0 if n else None], pa.int64())
    return pa.DictionaryArray.from_arrays(places, sliced(array)).slice(1, n)


def chunked_dictionary(array):
    """Each chunk with a dictionary of its own."""
    kind = pa.dictionary(pa.int8(), array.type)
    return pa.chunked_array([dictionary(array.slice(0, 2)), dictionary(array.slice(2))], kind)


def runs(array):
    ends = pa.array(range(1, len(array) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, array)


def sliced_runs(array):
    ends = pa.array(range(3, 2 * len(array) + 2, 2), pa.int16())
    twice = pa.RunEndEncodedArray.from_arrays(ends, array)  # one value three times, others twice
    if not len(array):
        return twice
    halves = [twice.slice(1 + 2 * i + (i > 0), 1) for i in range(len(array))]
    return pa.chunked_array(halves, twice.type)


FORMS = [
    sliced,
    sliced_between_values,
    chunked,
    no_chunk,
    dictionary,
    dictionary_with_nulls_inside,
    sliced_dictionary,
    chunked_dictionary,
    runs,
    sliced_runs,
]


def contents(values):
    """Which of the values come, by name."""
    return {
        "all": values,
        "nulls": [None, values[3], None, values[0], values[3], None],
        "one": values[:1],
        "all_null": [None] * 5,
        "empty": [],
    }
