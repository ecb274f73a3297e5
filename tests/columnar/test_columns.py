"""Columns: Arrow arrays of every type and form as numbers, and back."""

import datetime as dt
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tests.columnar.arrow_types import FLOATS, FORMS, NUMBERS, OBJECTS, TABLE, contents, zoned
from windowlib.columnar.arrays.columns import Column
from windowlib.window.consumer import Decline

table = pytest.mark.parametrize(("kind", "values"), TABLE, ids=lambda v: str(v)[:30])
forms = pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
CONTENTS = list(contents([0] * 5))
which = pytest.mark.parametrize("name", CONTENTS)
NAN, INF = math.nan, math.inf


def bits(value):
    return struct.unpack("q", struct.pack("d", value))[0]


# -- there and back --


@table
@which
def test_a_column_goes_back_to_what_it_was(kind, values, name):
    array = pa.array(contents(values)[name], kind)
    column = Column.of(array)
    back = column.arrow()
    back.validate(full=True)
    assert back.type == column.type == kind
    assert back.to_pylist() == array.to_pylist()
    assert back.equals(array)
    assert len(column) == len(array)
    assert column.nulls == array.null_count
    assert (column.valid is None) == (not array.null_count)


@table
@which
@forms
def test_the_form_of_an_array_makes_no_difference(kind, values, name, form):
    array = pa.array(contents(values)[name], kind)
    formed = form(array)
    assert formed.to_pylist() == array.to_pylist()
    column, expected = Column.of(formed), Column.of(array)
    assert column.type == kind
    assert column.arrow().to_pylist() == array.to_pylist()
    assert column.physical == expected.physical
    if column.physical:
        assert column.data.dtype == expected.data.dtype
        assert column.data.tolist() == expected.data.tolist()


@pytest.mark.parametrize(
    ("kind", "values"), [*NUMBERS.items(), *zoned()], ids=lambda v: str(v)[:30]
)
def test_ints_dates_times_and_decimals_are_int64(kind, values):
    column = Column.of(pa.array([*values, None], kind))
    assert column.physical
    assert not column.floating
    assert column.data.dtype == np.int64
    assert column.data[-1] == 0
    assert column.data[:-1].tolist() == sorted(column.data[:-1].tolist())


@pytest.mark.parametrize(("kind", "values"), FLOATS.items(), ids=lambda v: str(v)[:30])
def test_floats_are_float64(kind, values):
    column = Column.of(pa.array([*values, None], kind))
    assert column.floating
    assert column.data.dtype == np.float64
    assert column.data.tolist() == [*values, 0.0]


@pytest.mark.parametrize(("kind", "values"), OBJECTS.items(), ids=lambda v: str(v)[:30])
def test_text_bytes_and_huge_decimals_stay_arrow_arrays(kind, values):
    column = Column.of(pa.array([*values, None], kind))
    assert not column.physical
    assert not column.floating
    assert column.nulls == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("us", "UTC")], ids=str)
def test_a_column_is_a_view_both_ways(kind):
    array = pa.array(range(9), pa.int64()).cast(kind).slice(2, 5)
    column = Column.of(array)
    address = array.buffers()[1].address
    assert column.data.__array_interface__["data"][0] == address + 2 * 8
    assert column.arrow().buffers()[1].address == address + 2 * 8
    part = column.slice(1, 3)
    assert part.data.__array_interface__["data"][0] == address + 3 * 8


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns")])
def test_nanoseconds_are_exact(kind):
    array = pa.array([-1, 1_700_000_000_000_000_001, None], pa.int64()).view(kind)
    column = Column.of(array)
    assert column.data.tolist() == [-1, 1_700_000_000_000_000_001, 0]
    assert column.arrow().equals(array)


def test_ints_at_the_ends_are_exact():
    ends = [-(2**63), 2**63 - 1, 2**53 + 1, None]
    assert Column.of(pa.array(ends)).arrow().to_pylist() == ends
    assert Column.of(pa.array([2**63 - 1, None], pa.uint64())).data.tolist() == [2**63 - 1, 0]


def test_decimals_keep_their_scale():
    array = pa.array([Decimal("-1.50"), None, Decimal("0.07")], pa.decimal128(7, 2))
    column = Column.of(array)
    assert column.data.tolist() == [-150, 0, 7]
    assert list(map(str, column.arrow().to_pylist())) == ["-1.50", "None", "0.07"]


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_decimals_are_numbers_up_to_the_ends_of_int64(number):
    kind = pa.decimal128(38, 0)
    assert Column.of(pa.array([Decimal(number)], kind)).data.tolist() == [number]
    beyond = number + (1 if number > 0 else -1)
    column = Column.of(pa.array([Decimal(1), Decimal(beyond)], kind))
    assert not column.physical
    assert column.arrow().to_pylist() == [1, beyond]


def test_a_huge_decimal_below_a_null_is_not_seen():
    words = np.array([5, 0, 7, 99], np.int64)  # the second would be huge
    buffers = [pa.py_buffer(b"\x01"), pa.py_buffer(words)]
    array = pa.Array.from_buffers(pa.decimal128(38, 0), 2, buffers)
    assert array.to_pylist() == [5, None]
    assert Column.of(array).data.tolist() == [5, 0]


def test_what_is_stored_below_nulls_is_not_seen():
    for kind, stored in [(pa.int64(), [5, 7]), (pa.float64(), [5.0, NAN])]:
        buffers = [pa.py_buffer(b"\x01"), pa.array(stored, kind).buffers()[1]]
        column = Column.of(pa.Array.from_buffers(kind, 2, buffers))
        assert column.data.tolist() == [5, 0]


def test_the_null_type_is_a_column_of_nulls():
    column = Column.of(pa.nulls(3))
    assert column.physical
    assert column.nulls == 3
    assert column.arrow().equals(pa.nulls(3))
    assert column.take(np.array([2, 0])).nulls == 2
    assert Column.of(pa.nulls(0)).nulls == 0


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], None, []]),
        pa.array([{"a": 1}, None, {"a": None}]),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([(1, 2, 3), None, (0, 0, 1)], pa.month_day_nano_interval()),
    ],
    ids=lambda a: str(a.type),
)
def test_lists_structs_and_maps_pass_through(array):
    column = Column.of(array.slice(1))
    assert not column.physical
    assert column.nulls == 1
    assert column.arrow().to_pylist() == array.to_pylist()[1:]
    assert column.take(np.array([1, 0])).arrow().to_pylist() == array.to_pylist()[:0:-1]
    with pytest.raises(Decline):
        Column.of(array).order_keys()


def test_a_dictionary_without_entries_has_only_nulls():
    array = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], "int64"))
    assert Column.of(array).arrow().to_pylist() == [None, None]


def test_extension_types_are_their_storage_if_that_shows_the_same():
    array = pa.ExtensionArray.from_storage(
        pa.opaque(pa.int32(), "t", "v"), pa.array([1, None], "int32")
    )
    column = Column.of(array.slice(0, 2))
    assert column.type == pa.int32()
    assert column.arrow().to_pylist() == array.to_pylist() == [1, None]


class Celsius(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self):
        super().__init__(pa.float64(), "tests.celsius")

    def __arrow_ext_serialize__(self):
        return b""


class Shown(pa.ExtensionScalar):  # type: ignore[misc]
    def as_py(self, **_options):
        return f"{self.value} °C"


class Written(Celsius):
    def __arrow_ext_scalar_class__(self):
        return Shown


def test_an_extension_type_of_ones_own_is_its_storage_unless_it_shows_something_else():
    storage = pa.array([1.5, None])
    plain = pa.ExtensionArray.from_storage(Celsius(), storage)
    assert Column.of(plain).arrow().equals(storage)
    with pytest.raises(Decline, match="storage"):
        Column.of(pa.ExtensionArray.from_storage(Written(), storage))


@pytest.mark.parametrize("kind", [pa.uuid(), pa.bool8()], ids=str)
def test_extension_types_that_show_something_else_are_declined(kind):
    with pytest.raises(Decline, match="storage"):
        Column.of(pa.nulls(2, kind.storage_type).cast(kind))


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (pa.array([1, 2**63], pa.uint64()), "uint64"),
        (pa.array([86_400_001]).view(pa.date64()), "time of day"),
        (pa.array([1_001]).view(pa.time64("ns")), "microsecond"),
        (pa.array([0], pa.timestamp("s", "Nowhere/Never")), "zone"),
    ],
    ids=lambda v: v if isinstance(v, str) else str(v.type),
)
def test_values_that_python_sees_otherwise_are_declined(array, why):
    with pytest.raises(Decline, match=why):
        Column.of(array)


# -- wall clocks --

BERLIN = pa.timestamp("s", "Europe/Berlin")
BACK = 1_729_990_800  # 2024-10-27 01:00 UTC: clocks go from 3:00 back to 2:00
FORTH = 1_711_846_800  # 2024-03-31 01:00 UTC: clocks go from 2:00 to 3:00


@pytest.mark.parametrize("step", [1, 7, 3600, 86400])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_times_of_a_zone_differ_as_in_python(zone, unit, step):
    start = FORTH - step * 500 + (0 if step < 86_400 else 43_200)  # else at noon
    array = pa.array([start + step * n for n in range(1000)], pa.timestamp("s", zone))
    array = array.cast(pa.timestamp(unit, zone))
    column, values = Column.of(array), array.to_pylist()
    assert column.arrow().equals(array)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    expected = [(value - values[0]).total_seconds() * per_second for value in values]
    assert (column.data - column.data[0]).tolist() == expected


@pytest.mark.parametrize("before", [[], [BACK - 86_400], [BACK - 10**8, BACK + 10**8]])
@pytest.mark.parametrize("second", [-3600, -1, 0, 3599])
def test_times_that_clocks_show_twice_are_declined(second, before):
    with pytest.raises(Decline, match="twice"):
        Column.of(pa.array([*before, BACK + second], BERLIN))


@pytest.mark.parametrize("before", [[], [BACK - 86_400], [BACK - 10**8, BACK + 10**8]])
@pytest.mark.parametrize("second", [-3601, 3600])
def test_times_around_those_that_clocks_show_twice_are_not(second, before):
    array = pa.array([*before, BACK + second, None], BERLIN)
    assert Column.of(array).arrow().equals(array)


@pytest.mark.parametrize("zone", ["America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_wall_clocks_are_those_of_python_at_every_hour_of_ten_years(zone):
    hours = np.arange(1_000_000_000, 1_000_000_000 + 10 * 365 * 86_400, 3600)
    kind = pa.timestamp("s", zone)
    values = pa.array(hours).view(kind).to_pylist()
    twice = [
        value.replace(fold=1 - value.fold).utcoffset() != value.utcoffset() for value in values
    ]
    kept = hours[~np.array(twice)]
    shown = [value.replace(tzinfo=dt.UTC).timestamp() for value in values]
    assert (
        Column.of(pa.array(kept).view(kind)).data.tolist()
        == np.array(shown)[~np.array(twice)].tolist()
    )
    assert any(twice)


def test_times_before_clocks_were_regular_are_exact():
    ancient = [-(10**10) + 977 * n for n in range(3000)]  # an offset of 53 minutes and 28 seconds
    array = pa.array(ancient, BERLIN)
    assert Column.of(array).arrow().equals(array)
    assert Column.of(array).data[0] == ancient[0] + 53 * 60 + 28


# -- parts --


@table
def test_take_and_slice_select_values(kind, values):
    shown = [None, values[1], values[4], None, values[0]]
    column = Column.of(pa.array(shown, kind))
    for places in ([4, 0, 0, 2], [], [1]):
        taken = column.take(np.array(places, np.int64))
        assert taken.type == kind
        assert taken.arrow().to_pylist() == [shown[i] for i in places]
        assert taken.nulls == sum(shown[i] is None for i in places)
    for lo, hi in ((1, 4), (0, 5), (2, 2), (4, 5)):
        part = column.slice(lo, hi)
        assert len(part) == hi - lo
        assert part.arrow().to_pylist() == shown[lo:hi]
        again = part.take(np.arange(hi - lo)[::-1]).arrow()
        assert again.to_pylist() == shown[lo:hi][::-1]


@table
def test_gathered_values_are_those_that_are_taken(kind, values):
    for shown in ([*values[:5]] * 4, [None, *values[:5]] * 4):
        column = Column.of(pa.array(shown, kind))
        for places in ([3, 0, 19, 19, 1] * 8, [7], []):
            found = column.gathered(np.array(places, np.int64))
            assert found.type == kind
            assert found.arrow().to_pylist() == [shown[i] for i in places]


@table
def test_columns_of_one_type_join(kind, values):
    parts = [values[:2], [], [None, values[3]], values[4:]]
    joined = Column.concat([Column.of(pa.array(part, kind)) for part in parts])
    assert joined.type == kind
    assert joined.arrow().to_pylist() == [value for part in parts for value in part]
    assert joined.nulls == 1
    assert Column.concat([joined]) is joined


def test_decimals_join_whether_they_are_numbers_or_not():
    kind = pa.decimal128(38, 0)
    columns = [Column.of(pa.array([Decimal(n), None], kind)) for n in (5, 2**70)]
    assert Column.concat(columns).arrow().to_pylist() == [5, None, 2**70, None]


def test_columns_of_different_types_do_not_join():
    with pytest.raises(Decline, match="from int64 to double"):
        Column.concat([Column.of(pa.array([1])), Column.of(pa.array([1.5]))])


def test_new_values_get_the_type_of_the_column_or_another():
    column = Column.of(pa.array([dt.date(2024, 1, 1), None]))
    later = column.with_values(column.data + 1, column.valid)
    assert later.arrow().to_pylist() == [dt.date(2024, 1, 2), None]
    count = column.with_values(np.array([3]), type=pa.int64())
    assert count.arrow().equals(pa.array([3]))


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (pa.int8(), 128),
        (pa.int32(), -(2**31) - 1),
        (pa.uint64(), -1),
        (pa.decimal128(3, 1), 1000),
        (pa.float32(), 0.1),
        (pa.float32(), 1e300),
    ],
    ids=str,
)
def test_a_number_that_its_type_does_not_hold_is_declined(kind, number):
    with pytest.raises(Decline, match=r"does not fit|not exact"):
        Column(kind, np.array([number])).arrow()


# -- Python values --


@table
@which
def test_python_values_are_the_column_they_came_from(kind, values, name):
    array = pa.array(contents(values)[name], kind)
    assert Column.from_values(array.to_pylist(), kind).arrow().equals(array)


AWARE = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3.5, pa.int64()),
        (3.0, pa.int64()),
        (True, pa.int64()),
        ("3", pa.int64()),
        (Decimal(3), pa.int64()),
        (2**63, pa.int64()),
        (-1, pa.uint8()),
        (2**53 + 1, pa.float64()),
        ("1.5", pa.float64()),
        (Decimal("1.5"), pa.float64()),
        (0.1, pa.float32()),
        (1, pa.bool_()),
        (5, pa.string()),
        (b"a", pa.string()),
        ("a", pa.binary()),
        (b"abc", pa.binary(2)),
        ("\ud800", pa.string()),
        (Decimal("1.234"), pa.decimal128(5, 2)),
        (Decimal("1000.00"), pa.decimal128(5, 2)),
        (1.5, pa.decimal128(5, 2)),
        (5, pa.timestamp("s")),
        (dt.datetime(2024, 1, 1, microsecond=1), pa.timestamp("ms")),
        (AWARE, pa.timestamp("ms")),
        (dt.datetime(2024, 1, 1), pa.timestamp("ms", "UTC")),
        (AWARE, pa.timestamp("ms", "Europe/Berlin")),
        (dt.datetime(2024, 1, 1, 5), pa.date32()),
        (dt.date(2024, 1, 1), pa.timestamp("ms")),
        (dt.timedelta(microseconds=1), pa.duration("ms")),
        (dt.time(microsecond=1), pa.time32("ms")),
        (object(), pa.int64()),
        (1, pa.float64()),
        ([1, 2.0], pa.list_(pa.float64())),
        ({"b": 1, "a": 2}, pa.struct({"a": pa.int64(), "b": pa.int64()})),
        (1, pa.null()),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_python_values_that_do_not_convert_exactly_are_declined(value, kind):
    with pytest.raises(Decline):
        Column.from_values([None, value], kind)


def test_python_values_that_convert_exactly():
    assert Column.from_values([1.0, 2.0**53, NAN], pa.float64()).data.tolist()[:2] == [1.0, 2.0**53]
    decimals = Column.from_values([Decimal("1.5")], pa.decimal128(5, 2))
    assert decimals.data.tolist() == [150]
    coded = Column.from_values(["a", None], pa.dictionary(pa.int8(), pa.string()))
    assert coded.arrow().equals(pa.array(["a", None]))


# -- order and distinct values --


@table
def test_order_keys_compare_like_the_values(kind, values):
    shown = [values[3], None, values[0], values[4], values[3], None, values[1], values[2]]
    column = Column.of(pa.array(shown, kind))
    keys = column.order_keys()
    assert keys.dtype in (np.int64, np.float64)
    there = [i for i, value in enumerate(shown) if value is not None]
    for i in there:
        for j in there:
            assert (keys[i] < keys[j]) == (shown[i] < shown[j])
            assert (keys[i] == keys[j]) == (shown[i] == shown[j])
    assert len(Column.of(pa.array([], kind)).order_keys()) == 0
    assert len(Column.of(pa.array([None], kind)).order_keys()) == 1


def numbered(values):
    """Codes and distinct values, one row at a time."""
    seen: dict[object, int] = {}
    codes = [-1 if value is None else seen.setdefault(value, len(seen)) for value in values]
    return codes, list(seen)


@table
@which
def test_codes_number_distinct_values_as_they_appear(kind, values, name):
    shown = contents(values)[name]
    shown = [*shown, *shown[::-1], *shown]
    codes, distinct = Column.of(pa.array(shown, kind)).codes()
    assert codes.dtype == np.int64
    assert (codes.tolist(), distinct.arrow().to_pylist()) == numbered(shown)
    assert distinct.type == kind
    assert distinct.nulls == 0


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_all_nan_are_one_value(kind):
    other = -np.frombuffer(struct.pack("Q", 0x7FF8_0000_0000_0001), np.float64)[0]
    codes, distinct = Column.of(pa.array([NAN, 1.0, None, other, NAN], kind)).codes()
    assert codes.tolist() == [0, 1, -1, 0, 0]
    assert str(distinct.arrow().to_pylist()) == "[nan, 1.0]"


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]], ids=str)
def test_zeros_are_one_value_spelled_as_the_first(zeros):
    codes, distinct = Column.of(pa.array([2.0, *zeros, None])).codes()
    assert codes.tolist() == [0, 1, 1, -1]
    assert list(map(bits, distinct.data)) == [bits(2.0), bits(zeros[0])]


def test_lists_cannot_be_told_apart():
    with pytest.raises(Decline, match="list"):
        Column.of(pa.array([[1], [1]])).codes()


def test_a_column_says_what_it_is():
    assert repr(Column.of(pa.array([1, None]))) == "Column(int64, 2 values, 1 nulls)"
