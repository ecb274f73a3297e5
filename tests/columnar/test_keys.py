"""Keys: the same number for the same key, as in a dict over the Python values."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.columnar.arrow_types import FLOAT_TYPES, FORMS, TABLE, contents
from windowlib.attributes import NAN, one_key
from windowlib.columnar.arrays.numbering import LIMIT, IntegerCodes
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.window.consumer import Decline

table = pytest.mark.parametrize(("kind", "values"), TABLE, ids=lambda v: str(v)[:30])
forms = pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)


def one(*batches, keys=None):
    """Numbers of one key column, batch after batch."""
    keys = keys or PartitionKeys(("k",), several=False)
    return keys, [keys.encode([batch]).tolist() for batch in batches]


def checked(keys, batches):
    """Encode batches, columns each, and compare with a dict."""
    seen: dict[object, int] = {}
    for columns in batches:
        rows = list(zip(*[column.to_pylist() for column in columns], strict=True))
        rows = [one_key(row if keys.several else row[0]) for row in rows]
        expected = [seen.setdefault(row, len(seen)) for row in rows]
        ids = keys.encode(columns)
        assert ids.dtype == np.int32
        assert ids.tolist() == expected
        assert len(keys) == len(seen)
    shown = keys.values(range(len(keys)))
    assert repr(shown) == repr(list(seen))
    assert {key: i for i, key in enumerate(shown)} == seen  # NaN too is found again
    return seen


# -- all types in all forms --


@table
@forms
def test_equal_values_are_equal_keys_in_every_type_and_form(kind, values, form):
    keys = PartitionKeys(("k",), several=False)
    batches = [[form(pa.array(rows, kind))] for rows in contents(values).values()]
    seen = checked(keys, [*batches, *reversed(batches)])
    (back,) = keys.arrow(range(len(keys)))
    assert back.type == kind
    assert back.to_pylist() == list(seen)


@table
def test_every_type_can_be_one_of_several_columns(kind, values):
    keys = PartitionKeys(("a", "b"), several=True)
    column = pa.array([values[0], None, values[3], values[0], None], kind)
    other = pa.array(["x", "x", None, "x", "y"])
    checked(keys, [[column, other], [column.slice(2), other.slice(1, 3)]])
    one, two = keys.arrow(np.array([1, 0]))
    assert one.type == kind
    assert [one.to_pylist(), two.to_pylist()] == [[None, values[0]], ["x", "x"]]


def test_a_column_of_the_null_type_is_one_key():
    keys, numbers = one(pa.nulls(3), pa.nulls(0), pa.nulls(2))
    assert numbers == [[0, 0, 0], [], [0, 0]]
    assert keys.values([0]) == [None]
    assert keys.arrow([0]) == [pa.nulls(1)]


def test_a_batch_without_rows_has_no_numbers():
    keys = PartitionKeys(("a", "b"), several=True)
    empty = [pa.array([], "int64"), pa.chunked_array([], "string")]
    assert keys.encode(empty).tolist() == []
    assert len(keys) == 0
    assert keys.values([]) == []
    assert [len(column) for column in keys.arrow([])] == [0, 0]


def test_a_null_key_is_a_partition_of_its_own():
    keys, numbers = one(pa.array([None, 0, None]), pa.array([0, 1, None, -1]))
    assert numbers == [[0, 1, 0], [1, 2, 0, 3]]
    assert keys.values([0, 1, 2, 3]) == [None, 0, 1, -1]


@pytest.mark.parametrize("kind", FLOAT_TYPES, ids=str)
def test_all_nan_are_one_key(kind):
    other = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    batch = pa.array([1.5, math.nan, None, -other, math.nan], kind)
    keys, numbers = one(batch, pa.array([math.nan], kind))
    assert numbers == [[0, 1, 2, 1, 1], [1]]
    assert keys.values([1])[0] is NAN
    (again,) = keys.adopt([NAN], [kind])
    assert again == 1


def test_nan_among_several_is_one_key_too():
    keys = PartitionKeys(("a", "b"), several=True)
    checked(keys, [[pa.array([math.nan, 1.0, math.nan]), pa.array([1, 1, 1])]])
    assert keys.values([0])[0][0] is NAN


def test_one_column_given_as_several_makes_tuples():
    keys = PartitionKeys(("k",), several=True)
    keys.encode([pa.array([5, None])])
    assert keys.values([1, 0]) == [(None,), (5,)]


def test_times_that_clocks_show_twice_are_declined():
    keys = PartitionKeys(("k",), several=False)
    with pytest.raises(Decline, match="twice"):
        keys.encode([pa.array([1_729_990_800], pa.timestamp("s", "Europe/Berlin"))])


# -- ranges of ints --

RANGES = {
    "small": [0, 3, 7],
    "growing": [0, 1, 1000, 100_000, LIMIT - 1],
    "beyond the table": [0, LIMIT - 1, LIMIT, 5, LIMIT + 1],
    "negative": [5, -5, -1000, 1000],
    "far away": [10**15, 10**15 + 7, 10**15 - 3, 10**15 + LIMIT - 5],
    "far apart": [10**15, -(10**15), 0, 3, 2**63 - 1, -(2**63)],
    "ends": [2**63 - 1, -(2**63), 2**63 - 2],
}


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("values", RANGES.values(), ids=RANGES)
def test_ints_of_any_range_keep_their_numbers(values, size, null):
    rows = [*values, *([None] if null else []), *values[::-1], *values]
    batches = [[pa.array(rows[i : i + size], "int64")] for i in range(0, len(rows), size)]
    checked(PartitionKeys(("k",), several=False), batches)


def test_many_scattered_keys_over_many_batches():
    source = np.random.default_rng(1)
    pool = source.integers(-(2**62), 2**62, 5000)
    batches = [[pa.array(source.choice(pool[: 50 * i], 300))] for i in range(1, 100)]
    checked(PartitionKeys(("k",), several=False), batches)


@pytest.mark.parametrize("step", [1, 2**32, 2**32 + 1, 2**40, 10**9])
def test_values_with_any_step_between_them_are_found_by_their_hash(step):
    numbers = IntegerCodes(limit=0)
    values = np.arange(3000) * step
    assert [numbers.encode(values[i : i + 1]).tolist() for i in range(100)] == [
        [i] for i in range(100)
    ]
    assert numbers.encode(values).tolist() == list(range(3000))
    assert numbers.encode(values[::-1].copy()).tolist() == list(range(3000))[::-1]
    assert numbers.encode(values + 1).tolist()[-1] == (5999 if step > 1 else 3000)


# -- strings --

ALIKE = ["", "a", "a\0", "\0", "\0a", "\0\0", "a\0b", *[("abcdefgh" * 9)[:n] for n in range(2, 60)]]
ALIKE += [text[:-1] + "\0" for text in ALIKE[7:]] + [text[:-1] + "é" for text in ALIKE[7:]]
ALIKE += ["x" + text for text in ALIKE]


@pytest.mark.parametrize("most", [7, 8, 9, 16, 17, 40, 41, 99])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_strings_that_are_alike_are_different_keys(kind, most):
    short = [text for text in ALIKE if len(text.encode()) <= most]
    whole = pa.array([*short[::-1], None, *short], kind)
    assert (
        len(checked(PartitionKeys(("k",), several=False), [[whole], [whole.slice(5)]]))
        == len({*short}) + 1
    )
    parts = [[whole.slice(i, 7)] for i in range(0, len(whole), 7)]
    checked(PartitionKeys(("k",), several=False), [*parts, [whole]])


def test_strings_right_at_the_end_of_their_memory():
    text = b"abcdefghij"
    for size in range(1, 11):
        offsets = pa.py_buffer(np.array([0, size - 1, size], np.int32))
        buffers = [None, offsets, pa.py_buffer(text[:size])]
        array = pa.Array.from_buffers(pa.string(), 2, buffers)
        checked(PartitionKeys(("k",), several=False), [[array], [array.slice(1)]])


@given(st.lists(st.lists(st.none() | st.binary(max_size=50), max_size=9), max_size=4))
def test_any_bytes_are_keys(batches):
    checked(
        PartitionKeys(("k",), several=False), [[pa.array(rows, pa.binary())] for rows in batches]
    )


# -- dictionaries --


def coded(rows, entries):
    places = pa.array(rows, pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array(entries))


def test_dictionaries_that_differ_are_matched_by_value():
    keys, numbers = one(
        coded([1, 0, 1], ["a", "b"]),
        coded([0, 1, 2], ["c", "a", "b"]),
        coded([2, None], ["c", "a", "b"]),
        pa.array(["b", None, "d"]),
        coded([0, None], ["d"]),
    )
    assert numbers == [[0, 1, 0], [2, 1, 0], [0, 3], [0, 3, 4], [4, 3]]
    assert keys.values(range(5)) == ["b", "a", "c", None, "d"]


def test_entries_that_no_row_uses_get_no_number():
    keys, numbers = one(coded([2, 2], ["a", "b", "c"]), coded([0], ["a", "b", "c"]))
    assert numbers == [[0, 0], [1]]
    assert len(keys) == 2


def test_entries_that_are_equal_are_one_key():
    _, numbers = one(coded([0, 1, 2, 3, None], ["a", "a", None, "b"]))
    assert numbers == [[0, 0, 1, 2, 1]]


def test_a_dictionary_that_comes_again_is_not_looked_at():
    entries = pa.array(["a", "b"])
    batch = pa.DictionaryArray.from_arrays(pa.array([0, 1], "int8"), entries)
    keys, _ = one(batch)
    remap = keys._parts[0]._remap
    again = pa.DictionaryArray.from_arrays(pa.array([1], "int8"), entries)
    equal = pa.DictionaryArray.from_arrays(pa.array([1], "int8"), pa.array(["a", "b"]))
    assert one(again, equal, keys=keys)[1] == [[1], [1]]
    assert keys._parts[0]._remap is remap
    one(coded([0], ["b"]), keys=keys)
    assert keys._parts[0]._remap is not remap


def test_a_dictionary_sliced_out_of_the_same_memory_is_another():
    entries = pa.array(["a", "b", "c"])
    slices = [entries.slice(0, 2), entries.slice(1, 2)]
    batches = [pa.DictionaryArray.from_arrays(pa.array([0, 1], "int8"), part) for part in slices]
    assert one(*batches)[1] == [[0, 1], [1, 2]]


def test_a_dictionary_with_another_zero_is_another():
    batches = [pa.array([x, 1.0]).dictionary_encode() for x in (0.0, -0.0)]
    keys, _ = one(batches[0])
    with pytest.raises(Decline, match=r"-0\.0"):
        keys.encode([batches[1]])


# -- what is declined --


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1]), pa.array([1.0])),
        (pa.array([1], "int32"), pa.array([1], "int64")),
        (pa.array([1], "timestamp[s]"), pa.array([1], "timestamp[ms]")),
        (pa.array([1], pa.timestamp("s", "UTC")), pa.array([1], pa.timestamp("s", "+01:00"))),
        (pa.array([1], pa.decimal128(5, 1)), pa.array([1], pa.decimal128(5, 2))),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([b"a"]), pa.array([b"a"], pa.binary(1))),
        (pa.array([1]), pa.array(["a"]).dictionary_encode()),
        (pa.array([1]), pa.nulls(1)),
    ],
    ids=lambda v: str(v.type),
)
def test_a_column_that_changes_its_type_is_declined(first, second):
    keys, _ = one(first)
    with pytest.raises(Decline) as caught:
        keys.encode([second])
    assert "'k' changed type from " in str(caught.value)
    assert len(keys) == 1


def test_the_message_names_both_types():
    keys, _ = one(pa.array([1]))
    with pytest.raises(Decline, match="key column 'k' changed type from int64 to double"):
        keys.encode([pa.array([1.5])])


@pytest.mark.parametrize("first", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_of_any_width_is_the_same_key(first):
    batches = [pa.array(["a", None], kind) for kind in (first, pa.large_string(), pa.string())]
    batches += [pa.array(["a", None], pa.string_view()), batches[1].dictionary_encode()]
    keys, numbers = one(*batches)
    assert numbers == [[0, 1]] * 5
    assert keys.arrow([0])[0].type == first


def test_bytes_of_any_width_are_the_same_key():
    kinds = [pa.binary(), pa.large_binary(), pa.binary_view()]
    assert one(*[pa.array([b"a"], kind) for kind in kinds])[1] == [[0]] * 3


@pytest.mark.parametrize("kind", FLOAT_TYPES, ids=str)
def test_a_negative_zero_is_declined_and_leaves_no_trace(kind):
    keys, _ = one(pa.array([1.0], kind))
    for batch in (pa.array([2.0, -0.0], kind), pa.array([-0.0], kind).dictionary_encode()):
        with pytest.raises(Decline, match=r"-0\.0"):
            keys.encode([batch])
    assert len(keys) == 1
    assert one(pa.array([0.0, 1.0], kind), keys=keys)[1] == [[1, 0]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[1]], pa.list_(pa.int64(), 1)),
        pa.nulls(1, pa.uuid()),
        pa.array([2**63], pa.uint64()),
    ],
    ids=lambda a: str(a.type),
)
def test_values_that_are_no_keys_are_declined(array):
    with pytest.raises(Decline):
        one(array)


def test_decimals_keep_their_numbers_when_one_beyond_int64_comes():
    kind = pa.decimal128(38, 1)
    batches = [
        [pa.array([Decimal(n) for n in rows], kind)] for rows in ([5, 6], [2**70, 6], [7, 5])
    ]
    checked(PartitionKeys(("k",), several=False), batches)
    with_null = [[pa.array([None, 1], kind)], [pa.array([2**70, None, 1], kind)]]
    checked(PartitionKeys(("k",), several=False), with_null)


def test_an_extension_is_its_storage():
    kind = pa.opaque(pa.string(), "t", "v")
    array = pa.ExtensionArray.from_storage(kind, pa.array(["a", None, "a"]))
    assert one(array, pa.array(["a"]))[1] == [[0, 1, 0], [0]]


# -- several columns --


def test_more_values_in_a_column_than_there_was_room_for():
    keys = PartitionKeys(("a", "b", "c"), several=True)
    batches = []
    for width in (1, 3, 20, 700, 3, 5000):
        rows = np.arange(2 * width)
        columns = [rows % 2, rows % width, rows // 3]
        batches.append([pa.array(column) for column in columns])
    checked(keys, batches)


def test_combinations_beyond_the_table():
    source = np.random.default_rng(2)
    keys = PartitionKeys(("a", "b"), several=True)
    batches = [[pa.array(source.integers(0, 9000, 9000)) for _ in "ab"] for _ in range(4)]
    checked(keys, batches)


PARTS = {
    pa.int64(): st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    pa.int8(): st.integers(-128, 127),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.sampled_from("ab"), max_size=2),
    pa.float64(): st.sampled_from([math.nan, -math.nan, math.inf, 0.0, 1.5, 1e300]),
    pa.date32(): st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 5)),
    pa.decimal128(20, 0): st.one_of(st.integers(0, 3), st.just(10**19)).map(Decimal),
    pa.binary(): st.binary(max_size=1),
}


@st.composite
def streams(draw):
    """Columns of some types, cut into batches, each in a form of its own."""
    types = draw(st.lists(st.sampled_from(list(PARTS)), min_size=1, max_size=3))
    batches = []
    for rows in draw(st.lists(st.integers(0, 12), max_size=5)):
        columns = []
        for kind in types:
            values = draw(st.lists(st.none() | PARTS[kind], min_size=rows, max_size=rows))
            form = draw(st.sampled_from([lambda array: array, *FORMS]))
            columns.append(form(pa.array(values, kind)))
        batches.append(columns)
    return types, batches


@given(streams(), st.booleans())
def test_keys_are_numbered_as_by_a_dict(stream, several):
    types, batches = stream
    names = tuple("abc"[: len(types)])
    keys = PartitionKeys(names, several=several or len(types) > 1)
    seen = checked(keys, batches)
    if seen:
        again = PartitionKeys(names, keys.several)
        assert again.adopt(list(seen), types).tolist() == list(range(len(seen)))
        for made, found in zip(
            again.arrow(range(len(seen))), keys.arrow(range(len(seen))), strict=True
        ):
            assert repr(made.to_pylist()) == repr(found.to_pylist())


@given(streams(), st.randoms(use_true_random=False))
def test_keys_that_are_kept_have_new_numbers_and_others_come_as_new(stream, random):
    types, batches = stream
    keys = PartitionKeys(tuple("abc"[: len(types)]), several=True)
    seen = list(checked(keys, batches))
    kept = random.sample(range(len(seen)), random.randint(0, len(seen)))
    keys.compact(kept)
    assert len(keys) == len(kept)
    left = [seen[i] for i in kept]
    assert repr(keys.values(range(len(kept)))) == repr(left)
    numbers = {key: i for i, key in enumerate(left)}
    for columns in batches:
        rows = [one_key(row) for row in zip(*[c.to_pylist() for c in columns], strict=True)]
        expected = [numbers.setdefault(row, len(numbers)) for row in rows]
        assert keys.encode(columns).tolist() == expected


# -- handing over --


def test_keys_are_adopted_between_batches():
    keys, _ = one(pa.array(["a", "b"]))
    assert keys.adopt(["c", "a", None], [pa.string()]).tolist() == [2, 0, 3]
    assert one(pa.array([None, "c", "d"]), keys=keys)[1] == [[3, 2, 4]]


def test_no_keys_are_adopted_too():
    keys = PartitionKeys(("a", "b"), several=True)
    assert keys.adopt([], [pa.int64(), pa.string()]).tolist() == []
    assert keys.adopt([(1, "x")], [pa.int64(), pa.string()]).tolist() == [0]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (1, pa.float64()),
        (1.0, pa.int64()),
        (True, pa.int64()),
        ("a", pa.int64()),
        (2**70, pa.int64()),
        (0.1, pa.float32()),
        (-0.0, pa.float64()),
        (Decimal("1.5"), pa.decimal128(5, 2)),
        ((1, 2), pa.int64()),
        (b"a", pa.string()),
    ],
    ids=repr,
)
def test_keys_that_would_show_otherwise_are_not_adopted(key, kind):
    with pytest.raises(Decline):
        PartitionKeys(("k",), several=False).adopt([key], [kind])


@pytest.mark.parametrize("key", [1, (1,), (1, "x", 2), [1, "x"]], ids=repr)
def test_keys_of_another_shape_are_not_adopted(key):
    with pytest.raises(Decline, match="a, b"):
        PartitionKeys(("a", "b"), several=True).adopt([key], [pa.int64(), pa.string()])


def test_adopted_types_must_be_those_of_the_columns():
    keys, _ = one(pa.array([1]))
    with pytest.raises(Decline, match="changed type"):
        keys.adopt(["a"], [pa.string()])
