"""Policies are values, durations are exact, and the delta test is strict."""
# ruff: noqa: SIM300 - asserts read expected first

import copy
import datetime
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields
from datetime import UTC, date, timedelta
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowlib
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    PolicyError,
    Punct,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
    summarizers,
)
from windowlib.durations import as_instant, duration_text, micros, parse_duration, seconds_text

# Each policy as its constructor call, another way to write the same, one that differs, SPL text.
POLICIES = [
    ("Count(10)", "Count(size=10)", "Count(11)", "count(10)"),
    ("Count(0)", "Count(size=0)", "Count(1)", "count(0)"),
    ('Delta("ts", 10)', 'Delta(attribute="ts", threshold=10)', 'Delta("ts", 11)', "delta(ts, 10)"),
    ('Delta("ts", 10)', 'Delta("ts", 10)', 'Delta("age", 10)', "delta(ts, 10)"),
    ('Delta("ts", -2.5)', 'Delta("ts", -2.5)', 'Delta("ts", 2.5)', "delta(ts, -2.5)"),
    ('Delta(0, Decimal("0.1"))', 'Delta(0, Decimal("0.10"))', "Delta(0, 1)", "delta(0, 0.1)"),
    ('Delta("ts", "10s")', 'Delta("ts", "10000ms")', 'Delta("ts", 10)', "delta(ts, 10s)"),
    ('Delta("ts", "1h30m")', 'Delta("ts", "90min")', 'Delta("ts", "1h")', "delta(ts, 1h30m)"),
    ('Time("10s")', "Time(timedelta(seconds=10))", 'Time("11s")', "time(10)"),
    ('Time("500ms")', 'Time("0.5s")', 'Time("50ms")', "time(0.5)"),
    ('Time("1us")', "Time(timedelta(microseconds=1))", 'Time("2us")', "time(0.000001)"),
    ("Punct()", "Punct()", "Count(1)", "punct()"),
    (
        'Count(5) | Time("1m")',
        'Time("60s") | Count(5)',
        'Count(6) | Time("1m")',
        "count(5) | time(60)",
    ),
    (
        'Either(Count(5), Time("1m"))',
        'Either(time=Time("1m"), count=Count(5))',
        "Count(5)",
        "count(5) | time(60)",
    ),
    ("PartitionCount(5)", 'PartitionCount(5, "lru")', "PartitionCount(6)", "partitionCount(5)"),
    (
        'PartitionCount(5, "oldest")',
        'PartitionCount(5, select="oldest")',
        "PartitionCount(5)",
        "partitionCount(5, oldest)",
    ),
    ("TupleCount(5)", 'TupleCount(size=5, select="lru")', "PartitionCount(5)", "tupleCount(5)"),
    (
        'TupleCount(5, "operator")',
        'TupleCount(5, select="operator")',
        'TupleCount(5, "lfu")',
        "tupleCount(5, operator)",
    ),
    ('PartitionAge("1h")', 'PartitionAge("60m")', 'PartitionAge("2h")', "partitionAge(3600)"),
    ('PartitionAge("0s")', "PartitionAge(timedelta(0))", 'PartitionAge("1us")', "partitionAge(0)"),
]
SPECS = [
    ("Tumbling(Count(3))", "tumbling, count(3)"),
    ("Tumbling(Punct(), by=KEY)", "tumbling, punct(), partitioned"),
    ('Tumbling(Delta("ts", "10s"), by=("a", "b"))', "tumbling, delta(ts, 10s), partitioned"),
    ("Tumbling(Count(3), by=len)", "tumbling, count(3), partitioned"),
    (
        'Tumbling(Time("1m"), by=0, forget=TupleCount(5, "lfu"))',
        "tumbling, time(60), partitioned, tupleCount(5, lfu)",
    ),
    (
        'Tumbling(Count(3) | Time("1s"), by="k")',
        "tumbling, count(3) | time(1), partitioned",
    ),
    ("Sliding(Count(3))", "sliding, count(3), count(1)"),
    ('Sliding(Time("1m"), every=Delta(2, 0.5))', "sliding, time(60), delta(2, 0.5)"),
    (
        'Sliding(Count(3), every=Time("1s"), by="k", forget=PartitionAge("1h"))',
        "sliding, count(3), time(1), partitioned, partitionAge(3600)",
    ),
]
NAMES = {**vars(windowlib), "datetime": datetime, "timedelta": timedelta, "Decimal": Decimal}


def made(text):
    return eval(text, dict(NAMES))


calls = pytest.mark.parametrize("call", [row[0] for row in (*POLICIES, *SPECS)])


@pytest.mark.parametrize(("call", "same", "other", "_"), POLICIES)
def test_policies_are_equal_by_value(call, same, other, _):
    assert made(call) == made(same)
    assert hash(made(call)) == hash(made(same))
    assert made(call) != made(other)
    assert {made(call), made(same), made(other)} == {made(call), made(other)}


@calls
def test_a_value_is_found_in_a_set_by_an_equal_one(call):
    assert made(call) is not made(call)
    assert made(call) in {made(call)}


@calls
def test_no_field_can_be_set_or_deleted_or_added(call):
    value = made(call)
    for name in [field.name for field in fields(value)]:
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 7)
        with pytest.raises(FrozenInstanceError):
            delattr(value, name)
    with pytest.raises((AttributeError, TypeError)):
        value.unheard_of = 7
    assert made(call) == value


@calls
def test_no_value_carries_a_dict(call):
    assert not hasattr(made(call), "__dict__")


@calls
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_values_survive_pickling(call, protocol):
    assert made(call) == pickle.loads(pickle.dumps(made(call), protocol))


@calls
def test_values_survive_copying(call):
    assert made(call) == copy.copy(made(call))
    assert made(call) == copy.deepcopy(made(call))


@pytest.mark.parametrize("call", [row[0] for row in (*POLICIES, *SPECS) if "len" not in row[0]])
def test_repr_evaluates_back(call):
    assert made(call) == made(repr(made(call)))


@pytest.mark.parametrize(
    ("call", "text"), [(row[0], row[-1]) for row in (*POLICIES, *SPECS)], ids=str
)
def test_str_is_spl(call, text):
    assert text == str(made(call))


def test_key_stays_the_one_object_that_it_is():
    assert pickle.loads(pickle.dumps(KEY)) is KEY
    assert copy.deepcopy(KEY) is KEY
    assert pickle.loads(pickle.dumps(Tumbling(Count(3), by=KEY))).by is KEY


def test_a_list_of_columns_is_the_tuple_of_them():
    assert Tumbling(Count(3), by=("a", "b")) == Tumbling(Count(3), by=["a", "b"])
    assert ("a", "b") == Sliding(Count(3), by=["a", "b"]).by


def test_a_sliding_window_triggers_with_every_tuple_unless_told():
    assert Count(1) == Sliding(Count(3)).every


def test_kinds_of_policies_never_compare_equal():
    sizes = [Count(3), PartitionCount(3), TupleCount(3)]
    spans = [Time("1h"), PartitionAge("1h")]
    assert 5 == len({*sizes, *spans})


def test_a_spec_knows_its_policies_and_whether_it_needs_a_clock():
    assert (Count(3),) == Tumbling(Count(3)).policies
    assert (Count(3), Time("1s")) == Sliding(Count(3), every=Time("1s")).policies
    assert not Sliding(Count(3), by="k", forget=PartitionAge("1h")).timed
    assert Sliding(Count(3), every=Time("1s")).timed
    assert Sliding(Time("1s")).timed
    assert Tumbling(Time("1s")).timed
    assert Tumbling(Count(3) | Time("1s")).timed
    assert not Tumbling(Punct()).partitioned
    assert Tumbling(Punct(), by=0).partitioned


# -- durations --


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("10s", 10_000_000),
        ("500ms", 500_000),
        ("1h30m", 5_400_000_000),
        ("250us", 250),
        ("1us", 1),
        ("90min", 5_400_000_000),
        ("1m", 60_000_000),
        ("2d", 172_800_000_000),
        ("1d2h3m4s5ms6us", 93_784_005_006),
        (" 1h 30 m ", 5_400_000_000),
        ("0s", 0),
        ("-1s", -1_000_000),
        (" - 1h30m", -5_400_000_000),
        ("1.5h", 5_400_000_000),
        # In binary floating point each of these is a little less or more.
        ("0.1s", 100_000),
        ("0.29s", 290_000),
        ("1.1ms", 1_100),
        ("4.35s", 4_350_000),
        ("1000000.000001s", 1_000_000_000_001),
    ],
)
def test_a_duration_is_exact_to_the_microsecond(text, microseconds):
    assert timedelta(microseconds=microseconds) == parse_duration(text)
    assert microseconds == micros(parse_duration(text))
    assert timedelta(microseconds=microseconds) == Delta("ts", text).threshold


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "10",
        "s",
        "10 parsecs",
        "-",
        "--5s",
        "1h-5m",
        "+5s",
        "1e3s",
        "1.5.5s",
        ".5s",
        "10S",
        "1h30",
        "1h,30m",
    ],
)
def test_anything_else_is_not_a_duration(text):
    with pytest.raises(PolicyError) as caught:
        parse_duration(text)
    reason = "is not a duration. Write a number and a unit"
    assert f'"{text}" {reason}: "10s", "500ms", "1h30m".' == str(caught.value)


def test_a_timedelta_is_taken_as_it_is():
    assert timedelta(days=1, microseconds=1) == Time(timedelta(days=1, microseconds=1)).period
    assert 86_400_000_001 == Time(timedelta(days=1, microseconds=1)).micros


durations = st.integers(-(10**15), 10**15).map(lambda us: timedelta(microseconds=us))


@given(durations)
def test_the_text_of_a_duration_reads_back(duration):
    assert duration == parse_duration(duration_text(duration))
    assert duration == parse_duration(f"{seconds_text(duration)}s")


@given(st.integers(0, 10**9), st.sampled_from(["us", "ms", "s", "m", "h"]))
def test_whole_numbers_of_a_unit_add_up(number, unit):
    sizes = {"us": 1, "ms": 1000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6}
    assert number * sizes[unit] == micros(parse_duration(f"{number}{unit}"))
    doubled = parse_duration(f"{number}{unit}{number}{unit}")
    assert 2 * number * sizes[unit] == micros(doubled)


def test_ten_thousand_ticks_of_a_tenth_of_a_second_are_a_thousand_seconds():
    window: Any = TumblingWindow(evict=Time("0.1s"))
    window.advance(999.95)
    assert 1000.0 == window.next_due


@pytest.mark.parametrize(
    ("instant", "microseconds"),
    [
        (1.5, 1_500_000),
        (7, 7_000_000),
        (0.1, 100_000),
        (timedelta(milliseconds=5), 5_000),
        (datetime.datetime(1970, 1, 2), 86_400_000_000),
        (datetime.datetime(1970, 1, 2, tzinfo=UTC), 86_400_000_000),
        (datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.timezone(timedelta(hours=1))), 0),
        (datetime.datetime(2024, 3, 1, 14, 30, 0, 31001, tzinfo=UTC), 1_709_303_400_031_001),
    ],
)
def test_instants_count_microseconds(instant, microseconds):
    assert microseconds == as_instant(instant)


# -- the delta test --

DAY = datetime.datetime(2024, 3, 1, 12)


@pytest.mark.parametrize(
    ("delta", "old", "new", "fires"),
    [
        # strictly more than the threshold
        (Delta("x", 10), 5, 16, True),
        (Delta("x", 10), 5, 15, False),
        (Delta("x", 10), 5, 14, False),
        # smaller values never
        (Delta("x", 10), 5, 4, False),
        (Delta("x", 10), 5, -1000, False),
        # zero means strictly greater
        (Delta("x", 0), 5, 5, False),
        (Delta("x", 0), 5, 6, True),
        (Delta("x", 0), 5, 4, False),
        # a negative threshold: anything that is not smaller
        (Delta("x", -3), 5, 5, True),
        (Delta("x", -3), 5, 6, True),
        (Delta("x", -3), 5, 4, False),
        (Delta("x", -3), 5, 3, False),
        # integers of any size are exact
        (Delta("x", 1), 10**30, 10**30 + 1, False),
        (Delta("x", 1), 10**30, 10**30 + 2, True),
        # floats as floats are
        (Delta("x", 0.5), 1.0, 1.5, False),
        (Delta("x", 0.5), 1.0, 1.5000000000000002, True),
        (Delta("x", 0.1), 0.2, 0.3, False),  # 0.3 - 0.2 is a little less than 0.1
        (Delta("x", 0.1), 0.7, 0.8, True),  # and 0.8 - 0.7 a little more
        (Delta("x", float("inf")), 1.0, 1e308, False),
        # decimals are exact
        (Delta("x", Decimal("0.1")), Decimal("0.7"), Decimal("0.8"), False),
        (Delta("x", Decimal("0.1")), Decimal("0.7"), Decimal("0.8000000001"), True),
        (Delta("x", 1), Decimal("0.5"), Decimal("1.5"), False),
        (Delta("x", 1), Decimal("0.5"), Decimal("1.51"), True),
        # times
        (Delta("x", "10s"), DAY, DAY + timedelta(seconds=10), False),
        (Delta("x", "10s"), DAY, DAY + timedelta(seconds=10, microseconds=1), True),
        (Delta("x", "10s"), DAY, DAY - timedelta(days=3), False),
        (Delta("x", "0s"), DAY, DAY, False),
        (Delta("x", timedelta(seconds=-1)), DAY, DAY, True),
        (Delta("x", "1d"), date(2024, 2, 28), date(2024, 2, 29), False),
        (Delta("x", "1d"), date(2024, 2, 28), date(2024, 3, 1), True),
        (Delta("x", "36h"), date(2023, 2, 28), date(2023, 3, 1), False),
        (Delta("x", "1s"), timedelta(seconds=5), timedelta(seconds=7), True),
        (Delta("x", "2s"), timedelta(seconds=5), timedelta(seconds=7), False),
        (Delta("x", 1), Fraction(1, 3), Fraction(4, 3), False),
        (Delta("x", 1), Fraction(1, 3), Fraction(5, 3), True),
    ],
)
def test_the_delta_test(delta, old, new, fires):
    assert fires is delta.exceeds(new, old)
    for engine in ("generated", "reference"):
        kept: Any = TumblingWindow(evict=delta, engine=engine)
        kept.insert_many([{"x": old}, {"x": new}])
        assert ([new] if fires else [old, new]) == [row["x"] for row in kept[None]]
        slid: Any = SlidingWindow(evict=delta, engine=engine)
        slid.insert_many([{"x": old}, {"x": new}])
        assert ([new] if fires else [old, new]) == [row["x"] for row in slid[None]]


# -- where the values come from --


class Plain:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Named(NamedTuple):
    x: int


@dataclass
class Data:
    x: int


FORMS: list[Any] = [lambda x: {"x": x}, Plain, Slotted, Named, Data, lambda x: SimpleNamespace(x=x)]


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("first", range(len(FORMS)))
def test_tuples_of_every_form_may_follow_each_other(engine, first):
    forms = FORMS[first:] + FORMS[:first]
    tuples = [form(x) for x, form in enumerate(forms * 3)]
    windows: list[Any] = [
        TumblingWindow(evict=Delta("x", 4), engine=engine),
        SlidingWindow(evict=Delta("x", 4), engine=engine),
        SlidingWindow(evict=Count(5), trigger=Delta("x", 4), engine=engine),
        TumblingWindow(evict=Count(5), by="x", engine=engine),
    ]
    for window in windows:
        window.insert_many(tuples)
        window.state.check()
        kept = [
            window.state.key_getter(t) if window.state.key_getter else None for t in tuples[-3:]
        ]
        assert tuples[-3:] == [window[key][-i] for key, i in zip(kept, lengths(kept), strict=True)]


def lengths(keys):
    """How far from the end each of the last tuples is in its partition."""
    return [3, 2, 1] if len(set(keys)) == 1 else [1, 1, 1]


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("name", ["class", "from", "None", "a b", "größe", "_x", "d", "self", "s"])
def test_any_name_can_be_an_attribute(engine, name):
    for row in ({name: 1}, SimpleNamespace(**{name: 1})):
        windows: list[Any] = [
            TumblingWindow(evict=Delta(name, 4), engine=engine),
            SlidingWindow(evict=Delta(name, 4), trigger=Delta(name, 4), engine=engine),
            TumblingWindow(evict=Count(5), by=name, engine=engine),
            TumblingWindow(evict=Count(5), by=(name, name), engine=engine),
        ]
        for window in windows:
            window.insert(row)
            window.insert(row)
            assert 2 == len(window)
        summed: Any = TumblingWindow(
            evict=Count(5), summarizer=summarizers.sum(name), engine=engine
        )
        summed.insert_many([row, row])
        assert 2 == summed.summary().value()


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_an_index_counts_from_either_end(engine):
    for index in (1, -1):
        window: Any = TumblingWindow(evict=Delta(index, 4), engine=engine)
        window.insert_many([(9, 0), (9, 4), (9, 5)])
        assert [(9, 5)] == window[None]


class Flushed(WindowEvents[Any, Any]):
    def __init__(self):
        self.runs: list[Any] = []

    def before_flush(self, window, key):
        self.runs.append(list(window[key]))


def cut(values, exceeds):
    """Runs of values, each closed by the first that is too far from its first."""
    runs: list[Any] = []
    for value in values:
        if runs and not exceeds(value, runs[-1][0]):
            runs[-1].append(value)
        else:
            runs.append([value])
    return runs


small = st.integers(-20, 20)
kinds = {
    "int": lambda n: n,
    "float": lambda n: n / 8,
    "decimal": lambda n: Decimal(n) / 10,
    "datetime": lambda n: DAY + timedelta(milliseconds=n),
    "date": lambda n: date(2024, 3, 1) + timedelta(days=n),
}
thresholds = {
    "datetime": lambda n: timedelta(milliseconds=n),
    "date": lambda n: timedelta(days=n),
}


@pytest.mark.parametrize("kind", kinds)
@given(steps=st.lists(small, min_size=1, max_size=40), size=small)
def test_a_tumbling_delta_window_is_cut_where_the_test_says(kind, steps, size):
    values = [kinds[kind](n) for n in steps]
    threshold = thresholds.get(kind, kinds[kind])(size)

    def far(new, old):  # written out once more, on purpose
        return new >= old and new - old > threshold

    expected = cut(values, far)
    for engine in ("generated", "reference"):
        events = Flushed()
        window = TumblingWindow(
            evict=Delta(lambda value: value, threshold), events=events, engine=engine
        )
        window.insert_many(values)
        assert expected == [*events.runs, list(window[None])]
