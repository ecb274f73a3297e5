"""Every mistake gets a message: the argument, its value, the reason and the fix."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
import copy  # noqa: F401 - named in the tables
import pickle
import re
from datetime import UTC, date, datetime, timedelta  # noqa: F401 - named in the tables
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import windowlib
from tests.event_time.test_errors import CASES as EVENT_TIME
from tests.event_time.test_errors import SCOPE
from tests.spec.test_spl import MALFORMED
from windowlib import (
    KEY,
    AccessError,
    ClockError,
    Count,
    Delta,
    PartitionCount,
    PartitionError,
    PolicyError,
    Punct,
    PunctuationError,
    SchemaError,
    Sliding,
    SlidingWindow,
    StateError,
    StateVersionError,
    Summarizer,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WallClock,
    WindowEvents,
    WindowlibError,
    WindowlibWarning,
    errors,
    parse,
    samples,  # noqa: F401 - named in the tables
    summarizers,
)
from windowlib.columnar import primitives
from windowlib.event_time.axis import timestamp_like
from windowlib.window import state_bytes
from windowlib.window.arrow import batch_of
from windowlib.window.clock import HandClock  # noqa: F401 - named in the tables
from windowlib.window.engine.rules import check_measured_columns
from windowlib.window.state_bytes import dump_state, load_state

ENGINES = ("generated", "reference")
engines = pytest.mark.parametrize("engine", ENGINES)


class Longest(Summarizer[str]):
    def open(self, key):
        self.best = ""

    def insert(self, tuple_):
        self.best = max(self.best, tuple_, key=len)

    def value(self):
        return self.best


class Duck:
    """Has a handler, but is none."""

    def before_insert(self, window, tuple_, key): ...

    def __repr__(self):
        return "Duck()"


class Report(WindowEvents[Any, Any]):
    def before_flush(self, window, key): ...


class Price(NamedTuple):
    symbol: str
    price: float


class Slotted:
    __slots__ = ("price", "symbol")

    def __repr__(self):
        return "Slotted"


def tumbling(*spec, **options):
    return TumblingWindow(*spec, **options)


def sliding(*spec, **options):
    return SlidingWindow(*spec, **options)


def broken(call):
    """What a call raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is what we look at
        call()
    return caught.value


# -- construction --

WHOLE = "size must be a whole number, such as"
NOT_ONE = 'is not a duration. Write a number and a unit: "10s", "500ms", "1h30m".'
ATTRIBUTE = 'the attribute must be a name, an index or a callable, such as Delta("ts", 10).'
THRESHOLD = (
    'the threshold must be a number or a duration, such as Delta("ts", 10) or Delta("ts", "10s").'
)
SELECTION = "unknown selection; use one of lru, lfu, oldest, operator."
TOGETHER = 'only a Count and a Time go together. Write Count(500) | Time("5s").'
FIVE, ONE = (f"Time(period=datetime.timedelta(seconds={seconds}))" for seconds in (5, 1))
TUMBLING_ONLY = (
    "a count or a time, whichever comes first, can only close tumbling windows. "
    f"Use Tumbling(Count(size=5) | {FIVE}), or one of the two alone."
)
NOT_HERE = "is not a policy that fits here."
BY = (
    "by must be a column name, an index, a tuple of those, a callable, or KEY if you pass the key "
    "to insert."
)
COLUMNS = 'name the key columns, such as by="symbol" or by=("a", "b").'
NO_PE = "not a partition eviction policy. Use PartitionCount, TupleCount or PartitionAge."
INSTANT = "not a point in time. Pass seconds as a number, or a datetime, or a timedelta."

CONSTRUCTION = [
    # what a specification says to operators and hosts
    (
        "Sliding(Count(3), order_by=KEY)",
        PolicyError,
        'Sliding(order_by=KEY): name columns, such as order_by="ts".',
    ),
    (
        "Tumbling(Count(3), order_by=[])",
        PolicyError,
        'Tumbling(order_by=[]): name columns, such as order_by="ts" or ("day", "n").',
    ),
    (
        'Sliding(Count(3), partial="never")',
        PolicyError,
        "Sliding(partial='never'): say \"skip\" (nothing before the window has been full) or "
        '"emit".',
    ),
    # sizes
    ("Count(-1)", PolicyError, "Count(size=-1): size must not be negative."),
    ("Count(1.5)", PolicyError, f"Count(size=1.5): {WHOLE} Count(10)."),
    ('Count("10")', PolicyError, f"Count(size='10'): {WHOLE} Count(10)."),
    ("Count(True)", PolicyError, f"Count(size=True): {WHOLE} Count(10)."),
    ("Count(None)", PolicyError, f"Count(size=None): {WHOLE} Count(10)."),
    ("PartitionCount(-1)", PolicyError, "PartitionCount(size=-1): size must not be negative."),
    ("PartitionCount(2.0)", PolicyError, f"PartitionCount(size=2.0): {WHOLE} PartitionCount(10)."),
    ("TupleCount(-5)", PolicyError, "TupleCount(size=-5): size must not be negative."),
    ("TupleCount([])", PolicyError, f"TupleCount(size=[]): {WHOLE} TupleCount(10)."),
    # selections
    (
        'PartitionCount(3, "lur")',
        PolicyError,
        f"PartitionCount(select='lur'): {SELECTION} Did you mean \"lru\"?",
    ),
    ("PartitionCount(3, None)", PolicyError, f"PartitionCount(select=None): {SELECTION}"),
    ("PartitionCount(3, [])", PolicyError, f"PartitionCount(select=[]): {SELECTION}"),
    (
        'TupleCount(3, "oldst")',
        PolicyError,
        f"TupleCount(select='oldst'): {SELECTION} Did you mean \"oldest\"?",
    ),
    # deltas
    ("Delta(None, 10)", PolicyError, f"Delta(None, ...): {ATTRIBUTE}"),
    ("Delta(True, 10)", PolicyError, f"Delta(True, ...): {ATTRIBUTE}"),
    ("Delta(1.5, 10)", PolicyError, f"Delta(1.5, ...): {ATTRIBUTE}"),
    ("Delta([], 10)", PolicyError, f"Delta([], ...): {ATTRIBUTE}"),
    ('Delta("ts", None)', PolicyError, f"Delta('ts', None): {THRESHOLD}"),
    ('Delta("ts", True)', PolicyError, f"Delta('ts', True): {THRESHOLD}"),
    ('Delta("ts", 1j)', PolicyError, f"Delta('ts', 1j): {THRESHOLD}"),
    ('Delta("ts", [10])', PolicyError, f"Delta('ts', [10]): {THRESHOLD}"),
    ('Delta("ts", float("nan"))', PolicyError, f"Delta('ts', nan): {THRESHOLD}"),
    ('Delta("ts", Decimal("NaN"))', PolicyError, f"Delta('ts', Decimal('NaN')): {THRESHOLD}"),
    (
        'Delta("ts", "soon")',
        PolicyError,
        f"Delta('ts', 'soon'): \"soon\" {NOT_ONE}",
    ),
    ('Delta("ts", "10")', PolicyError, f"Delta('ts', '10'): \"10\" {NOT_ONE}"),
    # durations
    (
        "Time(10)",
        PolicyError,
        'Time(10): a bare number is ambiguous. Write Time("10s") or Time(timedelta(seconds=10)).',
    ),
    (
        "Time(1.5)",
        PolicyError,
        "Time(1.5): a bare number is ambiguous. "
        'Write Time("1.5s") or Time(timedelta(seconds=1.5)).',
    ),
    (
        "Time(None)",
        PolicyError,
        'Time(None): not a duration. Write Time("10s") or pass a timedelta.',
    ),
    (
        'Time(b"10s")',
        PolicyError,
        "Time(b'10s'): not a duration. Write Time(\"10s\") or pass a timedelta.",
    ),
    ('Time("soon")', PolicyError, f"Time('soon'): \"soon\" {NOT_ONE}"),
    ('Time("")', PolicyError, f"Time(''): \"\" {NOT_ONE}"),
    ('Time("-5s")', PolicyError, 'Time("-5s"): the period must be longer than zero.'),
    ('Time("0s")', PolicyError, 'Time("0s"): the period must be longer than zero.'),
    ('Time("0.1us")', PolicyError, 'Time("0s"): the period must be longer than zero.'),
    ("Time(timedelta(0))", PolicyError, 'Time("0s"): the period must be longer than zero.'),
    (
        "Time(timedelta(seconds=-1))",
        PolicyError,
        'Time("-1s"): the period must be longer than zero.',
    ),
    (
        "PartitionAge(3600)",
        PolicyError,
        "PartitionAge(3600): a bare number is ambiguous. "
        'Write PartitionAge("3600s") or PartitionAge(timedelta(seconds=3600)).',
    ),
    ('PartitionAge("soon")', PolicyError, f"PartitionAge('soon'): \"soon\" {NOT_ONE}"),
    (
        "PartitionAge(None)",
        PolicyError,
        'PartitionAge(None): not a duration. Write PartitionAge("10s") or pass a timedelta.',
    ),
    (
        "PartitionAge(timedelta(seconds=-1))",
        PolicyError,
        'PartitionAge("-1s"): age must not be negative.',
    ),
    # a count or a time, and nothing else
    ("Count(5) | Count(6)", PolicyError, f"Count(size=5) | Count(size=6): {TOGETHER}"),
    (
        'Delta("ts", 5) | Count(6)',
        PolicyError,
        f"Delta(attribute='ts', threshold=5) | Count(size=6): {TOGETHER}",
    ),
    ("Punct() | Punct()", PolicyError, f"Punct() | Punct(): {TOGETHER}"),
    ("Count(5) | 6", PolicyError, f"Count(size=5) | 6: {TOGETHER}"),
    ("None | Count(5)", PolicyError, f"None | Count(size=5): {TOGETHER}"),
    ('Time("5s") | Time("1s")', PolicyError, f"{FIVE} | {ONE}: {TOGETHER}"),
    (
        'Count(5) | Time("5s") | Count(6)',
        PolicyError,
        f"Count(size=5) | {FIVE} | Count(size=6): {TOGETHER}",
    ),
    (
        'Count(0) | Time("5s")',
        PolicyError,
        f"Count(size=0) | {FIVE}: no batch has 0 tuples. Use Count(1) or more, or {FIVE} alone.",
    ),
    (
        'Sliding(Count(5) | Time("5s"))',
        PolicyError,
        f"Sliding(Count(size=5) | {FIVE}): {TUMBLING_ONLY}",
    ),
    (
        'Sliding(Count(9), every=Count(5) | Time("5s"))',
        PolicyError,
        f"Sliding(Count(size=9), every=Count(size=5) | {FIVE}): {TUMBLING_ONLY}",
    ),
    # tumbling takes exactly one eviction policy
    ("Tumbling(10)", PolicyError, f"Tumbling(evict): 10 {NOT_HERE} Write Count(10)."),
    (
        'Tumbling("10s")',
        PolicyError,
        f"Tumbling(evict): '10s' {NOT_HERE} Use one of Count, Delta, Time, Punct, Either, Event.",
    ),
    (
        "Tumbling(None)",
        PolicyError,
        f"Tumbling(evict): None {NOT_HERE} Use one of Count, Delta, Time, Punct, Either, Event.",
    ),
    (
        "Tumbling([Count(3), Count(1)])",
        PolicyError,
        f"Tumbling(evict): [Count(size=3), Count(size=1)] {NOT_HERE} "
        "Use one of Count, Delta, Time, Punct, Either, Event.",
    ),
    (
        "Tumbling(PartitionCount(3))",
        PolicyError,
        f"Tumbling(evict): PartitionCount(size=3, select='lru') {NOT_HERE} "
        "Use one of Count, Delta, Time, Punct, Either, Event.",
    ),
    (
        "Tumbling(Count(100), every=Count(10))",
        PolicyError,
        "Tumbling(..., every=Count(size=10)): a tumbling window is processed when it is full, so "
        "it has no trigger. Drop `every=`, or use Sliding(Count(size=100), every=Count(size=10)).",
    ),
    # sliding one or two, and no punctuation
    ("Sliding(3)", PolicyError, f"Sliding(evict): 3 {NOT_HERE} Write Count(3)."),
    (
        "Sliding(None)",
        PolicyError,
        f"Sliding(evict): None {NOT_HERE} Use one of Count, Delta, Time, Event.",
    ),
    ("Sliding(Count(3), every=1)", PolicyError, f"Sliding(every): 1 {NOT_HERE} Write Count(1)."),
    (
        'Sliding(Count(3), every="1s")',
        PolicyError,
        f"Sliding(every): '1s' {NOT_HERE} Use one of Count, Delta, Time, Event.",
    ),
    (
        "Sliding(Punct())",
        PolicyError,
        "Sliding(Punct()): punctuation can only close tumbling windows. Use Tumbling(Punct()).",
    ),
    (
        "Sliding(Count(3), every=Punct())",
        PolicyError,
        "Sliding(Count(size=3), every=Punct()): punctuation cannot trigger a sliding window. "
        "Use Tumbling(Punct()), or a Count, Delta or Time trigger.",
    ),
    # keys
    ("Tumbling(Count(3), by=1.5)", PolicyError, f"Tumbling(by=1.5): {BY}"),
    ("Tumbling(Count(3), by=True)", PolicyError, f"Tumbling(by=True): {BY}"),
    ("Sliding(Count(3), by={'a'})", PolicyError, f"Sliding(by={{'a'}}): {BY}"),
    ("Tumbling(Count(3), by=[])", PolicyError, f"Tumbling(by=[]): {COLUMNS}"),
    ("Sliding(Count(3), by=('a', 1.5))", PolicyError, f"Sliding(by=('a', 1.5)): {COLUMNS}"),
    ("Tumbling(Count(3), by=('a', KEY))", PolicyError, f"Tumbling(by=('a', KEY)): {COLUMNS}"),
    # partition eviction
    (
        'Tumbling(Count(3), forget=PartitionAge("1h"))',
        PolicyError,
        "Tumbling(forget=PartitionAge(age=datetime.timedelta(seconds=3600))): partition eviction "
        "needs a partitioned window. Add by=..., or drop `forget=`.",
    ),
    (
        "Sliding(Count(3), forget=TupleCount(5))",
        PolicyError,
        "Sliding(forget=TupleCount(size=5, select='lru')): partition eviction needs a partitioned "
        "window. Add by=..., or drop `forget=`.",
    ),
    ('Tumbling(Count(3), by="a", forget=5)', PolicyError, f"Tumbling(forget=5): {NO_PE}"),
    (
        'Sliding(Count(3), by="a", forget=Count(5))',
        PolicyError,
        f"Sliding(forget=Count(size=5)): {NO_PE}",
    ),
    (
        'Tumbling(Count(3), by="a", forget=[TupleCount(5), PartitionCount(3)])',
        PolicyError,
        "Tumbling(forget=[TupleCount(size=5, select='lru'), "
        "PartitionCount(size=3, select='lru')]): only one partition eviction policy is possible. "
        "Keep one.",
    ),
    # SPL text; test_spl has all of it
    (
        'parse("tumbling, cout(3)")',
        PolicyError,
        "'tumbling, cout(3)': unknown word 'cout'. Did you mean \"count\"?",
    ),
    (
        'parse("tumbling count(3)")',
        PolicyError,
        "'tumbling count(3)': cannot read 'tumbling count(3)'. "
        "Write it as 'sliding, count(100), count(10), partitioned'.",
    ),
    (
        'parse("tumbling, count(x)")',
        PolicyError,
        "'tumbling, count(x)': cannot read count(x). Write it as count(100).",
    ),
    ('parse("count(3)")', PolicyError, "'count(3)': say either tumbling or sliding, once."),
    (
        "SlidingWindow(evict=Count(3), trigger=Count(1), every=Count(2))",
        PolicyError,
        "SlidingWindow(trigger=Count(size=1), every=Count(size=2)): two words for one policy. "
        "Drop one of them.",
    ),
    (
        'parse("tumbling(3), count(3)")',
        PolicyError,
        "'tumbling(3), count(3)': cannot read tumbling(3). Write it as tumbling.",
    ),
    (
        'parse("tumbling")',
        PolicyError,
        "'tumbling': a tumbling window takes exactly one eviction policy, here are 0. "
        "Write it as 'tumbling, count(100)'.",
    ),
    (
        'parse("sliding")',
        PolicyError,
        "'sliding': a sliding window takes an eviction policy and at most one trigger policy, here "
        "are 0. Write it as 'sliding, count(100), count(10)'.",
    ),
    (
        'parse("tumbling, count(3), partitioned, tupleCount(1), tupleCount(1)")',
        PolicyError,
        "'tumbling, count(3), partitioned, tupleCount(1), tupleCount(1)': only one partition "
        "eviction policy is possible. Keep one.",
    ),
    (
        'parse("tumbling, count(3)", by="a")',
        PolicyError,
        "'tumbling, count(3)': by='a' is given, but the window is not partitioned. "
        "Add the word 'partitioned', or drop `by=`.",
    ),
    # containers
    (
        "TumblingWindow()",
        PolicyError,
        "TumblingWindow(): give a specification or evict=, such as evict=Count(10).",
    ),
    (
        'SlidingWindow(trigger=Count(3), by="a")',
        PolicyError,
        "SlidingWindow(): give a specification or evict=, such as evict=Count(10).",
    ),
    (
        "TumblingWindow(Tumbling(Count(3)), evict=Count(3))",
        PolicyError,
        "TumblingWindow(spec, ...): give a specification or policies (evict=, ...), not both.",
    ),
    (
        'SlidingWindow(Sliding(Count(3)), by="a")',
        PolicyError,
        "SlidingWindow(spec, ...): give a specification or policies (evict=, ...), not both.",
    ),
    (
        'SlidingWindow("sliding, count(3)", trigger=Count(1))',
        PolicyError,
        "SlidingWindow(spec, ...): give a specification or policies (evict=, ...), not both.",
    ),
    (
        'SlidingWindow("sliding, count(3)", by="a")',
        PolicyError,
        "'sliding, count(3)': by='a' is given, but the window is not partitioned. "
        "Add the word 'partitioned', or drop `by=`.",
    ),
    (
        "TumblingWindow(Sliding(Count(3)))",
        PolicyError,
        "TumblingWindow(Sliding(Count(size=3), every=Count(size=1))): not a Tumbling "
        "specification. Use SlidingWindow.",
    ),
    (
        'SlidingWindow("tumbling, count(3)")',
        PolicyError,
        "SlidingWindow(Tumbling(Count(size=3))): not a Sliding specification. Use TumblingWindow.",
    ),
    (
        "SlidingWindow(evict=Punct())",
        PolicyError,
        "Sliding(Punct()): punctuation can only close tumbling windows. Use Tumbling(Punct()).",
    ),
    ("TumblingWindow(evict=10)", PolicyError, f"Tumbling(evict): 10 {NOT_HERE} Write Count(10)."),
    (
        'TumblingWindow(evict=Count(3), engine="fast")',
        PolicyError,
        'engine=\'fast\': use "generated" (the default) or "reference".',
    ),
    (
        "SlidingWindow(evict=Count(3), engine=None)",
        PolicyError,
        'engine=None: use "generated" (the default) or "reference".',
    ),
    # handlers
    (
        "TumblingWindow(evict=Count(3), events=Report)",
        PolicyError,
        "events=Report: not an object with handlers. Pass events=Report().",
    ),
    (
        "SlidingWindow(evict=Count(3), events=Duck())",
        PolicyError,
        "events=Duck(): not an object with handlers. Pass a subclass of WindowEvents.",
    ),
    (
        "TumblingWindow(evict=Count(3), events={'before_flush': 1})",
        PolicyError,
        "events={'before_flush': 1}: not an object with handlers. Pass a subclass of WindowEvents.",
    ),
    # summarizers
    (
        "TumblingWindow(evict=Count(3), summarizer=Longest())",
        PolicyError,
        "summarizer=Longest(...): one object cannot serve every partition. Pass the class, "
        "summarizer=Longest, or a function that makes one.",
    ),
    (
        'TumblingWindow(evict=Count(3), summarizer="sum")',
        PolicyError,
        "summarizer='sum': pass a Summarizer class or one of windowlib.summarizers.",
    ),
    (
        "TumblingWindow(evict=Count(3), summarizer=[summarizers.count()])",
        PolicyError,
        "summarizer=[summarizers.count()]: pass a Summarizer class or one of "
        "windowlib.summarizers.",
    ),
    (
        "TumblingWindow(evict=Count(3), summarizer={})",
        PolicyError,
        "summarizer={}: a dict holds ready-made summarizers by name, such as "
        '{"n": summarizers.count()}.',
    ),
    (
        "TumblingWindow(evict=Count(3), summarizer={'n': 3})",
        PolicyError,
        "summarizer={'n': 3}: a dict holds ready-made summarizers by name, such as "
        '{"n": summarizers.count()}.',
    ),
    (
        'summarizers.variance("x", ddof=2)',
        PolicyError,
        "variance(ddof=2): ddof must be 0 (population) or 1 (sample).",
    ),
    (
        'summarizers.variance("x", ddof="1")',
        PolicyError,
        "variance(ddof='1'): ddof must be 0 (population) or 1 (sample).",
    ),
    # rows that nobody can make up
    (
        "samples.stream(Tumbling(Delta(len, 1)))",
        PolicyError,
        "<built-in function len>: no rows can be made up for a callable. "
        "Give rows, or name a column.",
    ),
]


def evaluated(code):
    return eval(code, {**vars(windowlib), **globals()})


@pytest.mark.parametrize(
    ("code", "kind", "message"), CONSTRUCTION, ids=[c[0] for c in CONSTRUCTION]
)
def test_a_mistake_in_construction(code, kind, message):
    error = broken(lambda: evaluated(code))
    assert kind is type(error)
    assert message == str(error)


# -- tuples and keys --

NOON = datetime(2024, 3, 1, 12)
OTHER = "Keep the tuples, or summarise another attribute."
NO_KEY = "and gets its keys from the caller. Pass key=..., or build it with by=..."


class Case(NamedTuple):
    """A window, tuples that it takes, and one that it refuses."""

    name: str
    make: Any
    good: list[Any]
    bad: Any
    kind: type[Exception]
    message: str
    key: Any = ...  # of the bad tuple
    keys: Any = None  # of the good ones


def policies(*policies, **options):
    """A maker of windows: tumbling from one policy, sliding from two."""
    if len(policies) == 1:
        return lambda engine: tumbling(evict=policies[0], engine=engine, **options)
    evict, every = policies
    return lambda engine: sliding(evict=evict, trigger=every, engine=engine, **options)


def spec(spec, **options):
    container = tumbling if isinstance(spec, Tumbling) else sliding
    return lambda engine: container(spec, engine=engine, **options)


def rows(name, *values):
    return [{name: value} for value in values]


def delta_cases():
    """Values that the delta test cannot work with, in every place where a delta can be."""
    values = [
        (
            Delta("x", 2),
            rows("x", 1, 2),
            {"x": None},
            "Delta('x', 2): the value None cannot be compared. Drop or fill such tuples before the "
            "window: {'x': None}",
        ),
        (
            Delta("x", 2),
            rows("x", 1.0, 2.0),
            {"x": float("nan")},
            "Delta('x', 2): the value nan cannot be compared. Drop or fill such tuples before the "
            "window: {'x': nan}",
        ),
        (
            Delta("x", 2),
            rows("x", 1, 2),
            {"x": "5"},
            "Delta('x', 2): the value '5' is of type str, which has no distance. Use a number, a "
            "Decimal or a datetime.",
        ),
        (
            Delta("x", 2),
            rows("x", 1, 2),
            {"x": [5]},
            "Delta('x', 2): the value [5] is of type list, which has no distance. Use a number, a "
            "Decimal or a datetime.",
        ),
        (
            Delta("x", 2),
            [],
            {"x": NOON},
            "Delta('x', 2): the value datetime.datetime(2024, 3, 1, 12, 0) is of type datetime, so "
            "the threshold must be a duration. Write Delta('x', \"2s\").",
        ),
        (
            Delta("x", 2.5),
            [],
            {"x": NOON.date()},
            "Delta('x', 2.5): the value datetime.date(2024, 3, 1) is of type date, so the "
            "threshold must be a duration. Write Delta('x', \"2.5s\").",
        ),
        (
            Delta("x", "90s"),
            rows("x", NOON),
            {"x": 7},
            "Delta('x', \"1m30s\"): the value 7 is of type int, so the threshold must be a number. "
            "Write Delta('x', 90).",
        ),
        (
            Delta("x", "2s"),
            rows("x", NOON),
            {"x": None},
            "Delta('x', \"2s\"): the value None cannot be compared. Drop or fill such tuples "
            "before the window: {'x': None}",
        ),
        (
            Delta("x", "2s"),
            [],
            {"x": "noon"},
            "Delta('x', \"2s\"): the value 'noon' is of type str, which has no distance. Use a "
            "number, a Decimal or a datetime.",
        ),
        (
            Delta("x", 2),
            rows("x", 1),
            {"y": 5},
            "Delta('x', 2): the tuple {'y': 5} has no 'x'. Columns: y.",
        ),
    ]
    for policy, good, bad, message in values:
        shown = f"{policy} of {bad}"
        for name, make in [
            ("tumbling", policies(policy)),
            ("tumbling, by", spec(Tumbling(policy, by=lambda row: "same"))),
            ("evict", policies(policy, Count(2))),
            ("trigger", policies(Count(2), policy)),
            ("trigger of nothing", policies(Count(0), policy)),
            ("trigger of time", policies(Time("1s"), policy)),
            ("both", policies(policy, policy)),
        ]:
            yield Case(f"{name}: {shown}", make, good, bad, SchemaError, message)


CASES = [
    *delta_cases(),
    # attributes that are not there
    Case(
        "nearest name of a dict",
        policies(Delta("pirce", 2)),
        [],
        {"price": 1, "symbol": "A"},
        SchemaError,
        "Delta('pirce', 2): the tuple {'price': 1, 'symbol': 'A'} has no "
        "'pirce'. Columns: price, symbol. Did you mean \"price\"?",
    ),
    Case(
        "nearest name of a named tuple",
        spec(Tumbling(Count(3), by="symbl")),
        [],
        Price("A", 1.0),
        SchemaError,
        "by='symbl': the tuple Price(symbol='A', price=1.0) has no 'symbl'. "
        'Columns: symbol, price. Did you mean "symbol"?',
    ),
    Case(
        "nearest name of slots",
        policies(Delta("prices", 2)),
        [],
        Slotted(),
        SchemaError,
        "Delta('prices', 2): the tuple Slotted has no 'prices'. "
        'Columns: price, symbol. Did you mean "price"?',
    ),
    Case(
        "nearest name of an object",
        policies(Delta("ts", 2)),
        [SimpleNamespace(ts=1)],
        SimpleNamespace(tss=1),
        SchemaError,
        "Delta('ts', 2): the tuple namespace(tss=1) has no 'ts'. "
        'Columns: tss. Did you mean "tss"?',
    ),
    Case(
        "no columns at all",
        policies(Delta("ts", 2)),
        [],
        5,
        SchemaError,
        "Delta('ts', 2): the tuple 5 has no 'ts'.",
    ),
    Case(
        "no such index",
        policies(Delta(5, 2)),
        [(1, 2, 3, 4, 5, 6)],
        (1, 2),
        SchemaError,
        "Delta(5, 2): the tuple (1, 2) has no '5'.",
    ),
    Case(
        "a long tuple is cut short",
        policies(Delta("x", 2)),
        [],
        "z" * 200,
        SchemaError,
        f"Delta('x', 2): the tuple '{'z' * 76}... has no 'x'.",
    ),
    Case(
        "one of several key columns",
        spec(Sliding(Count(3), by=("a", "b"))),
        [{"a": 1, "b": 2}],
        {"a": 1, "c": 2},
        SchemaError,
        "by=('a', 'b'): the tuple {'a': 1, 'c': 2} has no 'b'. Columns: a, c.",
    ),
    Case(
        "a summarizer's column",
        policies(Count(3), summarizer=summarizers.sum("price")),
        [{"price": 1}],
        {"prize": 1},
        SchemaError,
        "summarizers.sum('price'): the tuple {'prize': 1} has no 'price'. Columns: prize. "
        'Did you mean "prize"?',
    ),
    Case(
        "a column of one of several summarizers",
        policies(Punct(), summarizer={"n": summarizers.count(), "m": summarizers.max("b")}),
        [{"b": 1}],
        {"a": 1},
        SchemaError,
        "summarizers.max('b'): the tuple {'a': 1} has no 'b'. Columns: a.",
    ),
    Case(
        "the sum of words",
        policies(Count(3), summarizer=summarizers.sum("x")),
        [{"x": 1}],
        {"x": "two"},
        SchemaError,
        f"summarizers.sum('x') of 'two': a str cannot be added up. {OTHER}",
    ),
    Case(
        "the mean of lists",
        policies(Punct(), summarizer=summarizers.mean("x")),
        [],
        {"x": [2]},
        SchemaError,
        f"summarizers.mean('x') of [2]: a list cannot be added up. {OTHER}",
    ),
    # keys
    Case(
        "a key for a window that is not partitioned",
        spec(Tumbling(Count(3))),
        ["a"],
        "b",
        PartitionError,
        "insert(key='k'): the window 'tumbling, count(3)' is not partitioned. "
        "Pass no key, or build it with by=KEY.",
        key="k",
    ),
    Case(
        "a key for a window that reads it",
        spec(Sliding(Count(3), by="k")),
        [{"k": 1}],
        {"k": 2},
        PartitionError,
        "insert(key='k'): the window 'sliding, count(3), count(1), partitioned' reads its key from "
        "by='k'. Pass no key, or build it with by=KEY.",
        key="k",
    ),
    Case(
        "a key that cannot be one",
        policies(Count(3)),
        ["a"],
        "b",
        PartitionError,
        "insert(key=[1]): a list cannot be a partition key. Use a plain value or a tuple of them.",
        key=[1],
        keys=["k"],
    ),
    Case(
        "a key that cannot be one, of a window that keeps nothing",
        policies(Count(0), Count(2)),
        ["a"],
        "b",
        PartitionError,
        "insert(key={}): a dict cannot be a partition key. Use a plain value or a tuple of them.",
        key={},
        keys=["k"],
    ),
    Case(
        "a column that cannot be a key",
        spec(Sliding(Delta("x", 2), by="k")),
        [{"k": "a", "x": 1}],
        {"k": ["a"], "x": 1},
        PartitionError,
        "insert(key=['a']): a list cannot be a partition key. "
        "Use a plain value or a tuple of them.",
    ),
    Case(
        "no key, tumbling",
        spec(Tumbling(Count(3), by=KEY)),
        ["a"],
        "b",
        PartitionError,
        f"insert(tuple): this window is 'tumbling, count(3), partitioned' {NO_KEY}",
        keys=["k"],
    ),
    Case(
        "no key, sliding",
        spec(Sliding(Delta(0, 2), every=Time("1s"), by=KEY)),
        [(1,)],
        (2,),
        PartitionError,
        f"insert(tuple): this window is 'sliding, delta(0, 2), time(1), partitioned' {NO_KEY}",
        keys=["k"],
    ),
]


def fill(window, good, keys=None):
    for row, key in zip(good, keys or [...] * len(good), strict=True):
        window.insert(row) if key is ... else window.insert(row, key=key)


def offer(window, case):
    window.insert(case.bad) if case.key is ... else window.insert(case.bad, key=case.key)


@engines
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_tuple_that_is_refused_leaves_the_window_as_it_was(case, engine):
    window, untouched = case.make(engine), case.make(engine)
    for each in (window, untouched):
        fill(each, case.good, case.keys)
    before = window.snapshot()
    error = broken(lambda: offer(window, case))
    assert case.kind is type(error)
    assert case.message == str(error)
    assert before == window.snapshot()
    window.state.check()
    for each in (window, untouched):
        fill(each, case.good, case.keys)
    assert untouched.snapshot() == window.snapshot(), "it goes on as if nothing had been"


@engines
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["k"], "insert_many(keys=...): 1 key for 2 tuples. Give one key per tuple."),
        (["k"] * 3, "insert_many(keys=...): 3 keys for 2 tuples. Give one key per tuple."),
        ("", "insert_many(keys=...): 0 keys for 2 tuples. Give one key per tuple."),
    ],
)
def test_as_many_keys_as_tuples_are_needed(engine, keys, message):
    window = tumbling(evict=Count(3), engine=engine)
    error = broken(lambda: window.insert_many(["a", "b"], keys))
    assert PartitionError is type(error)
    assert message == str(error)
    assert 0 == window.seen


@engines
@pytest.mark.parametrize(
    ("by", "why"),
    [
        (None, "is not partitioned. Pass no key, or build it with by=KEY."),
        (0, "reads its key from by=0. Pass no key, or build it with by=KEY."),
    ],
)
def test_insert_many_refuses_keys_as_insert_does(engine, by, why):
    window = tumbling(Tumbling(Count(3), by=by), engine=engine)
    error = broken(lambda: window.insert_many([(1,), (2,)], ["a", "b"]))
    assert PartitionError is type(error)
    assert f"insert_many(keys=...): the window '{window.spec}' {why}" == str(error)
    assert 0 == window.seen


@engines
@pytest.mark.parametrize("old", [Decimal(5), 5.0], ids=repr)
@pytest.mark.parametrize("new", [1, 5, 9])
def test_decimals_and_floats_do_not_mix_whichever_is_greater(engine, old, new):
    other = float(new) if isinstance(old, Decimal) else Decimal(new)
    for make in (policies(Delta("x", 2)), policies(Delta("x", 2), Count(1))):
        window = make(engine)
        window.insert({"x": old})
        before = window.snapshot()
        error = broken(lambda window=window: window.insert({"x": other}))
        assert SchemaError is type(error)
        expected = f"Delta('x', 2): the value {other!r} does not mix with {old!r} before it."
        assert f"{expected} Use one type for the whole stream." == str(error)
        assert before == window.snapshot()


@engines
def test_insert_many_stops_at_the_tuple_that_is_refused(engine):
    window = tumbling(evict=Delta("x", 5), engine=engine)
    error = broken(lambda: window.insert_many(rows("x", 1, 2, None, 3)))
    assert SchemaError is type(error)
    assert rows("x", 1, 2) == window[None]
    window.insert({"x": 3})
    assert rows("x", 1, 2, 3) == window[None]


@engines
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("KeyError", lambda row: row["x"]),
        ("ZeroDivisionError", lambda row: 1 / 0),
        ("AttributeError", lambda row: row.x),
        ("TypeError", lambda row: row + 1),
    ],
)
def test_an_error_in_your_own_callable_stays_what_it_is(engine, name, call):
    for window in (
        tumbling(evict=Delta(call, 2), engine=engine),
        tumbling(evict=Count(2), by=call, engine=engine),
        tumbling(evict=Count(2), summarizer=summarizers.sum(call), engine=engine),
        sliding(evict=Count(2), trigger=Delta(call, 2), engine=engine),
    ):
        error = broken(lambda window=window: window.insert({"y": 1}))
        assert name == type(error).__name__
        assert f"in {type(window).__name__} '{window.spec}'" in getattr(error, "__notes__", ())
        assert 0 == window.seen == len(window.keys())


# -- other calls --


def forgetful(answer):
    class Choose(WindowEvents[Any, Any]):
        def select_partitions(self, window, keys):
            return answer

    return Choose()


def choosing(answer):
    forget = PartitionCount(1, "operator")
    window = tumbling(evict=Count(3), forget=forget, events=forgetful(answer))
    window.insert_many("ab", "ab")


def with_tuple(window, row="a"):
    window.insert(row)
    return window


def advanced(window, now):
    window.advance(now)
    return window


def snapshot_of(other, **changes):
    return {**other.snapshot(), **changes}


def arrays_of(**changes):
    window: Any = SlidingWindow(Sliding(Count(2)))
    window.insert_batch(pa.table({"x": range(300)}))
    state = window.snapshot(arrays=True)
    return {**state, "arrays": {**state["arrays"], **changes}}


def attached_twice():
    with WallClock() as clock:
        window = clock.attach(tumbling(evict=Count(3)))
        clock.attach(window)


def attached_late():
    with WallClock() as clock:
        pass
    clock.attach(tumbling(evict=Count(3)))


def attached_far_away(start, wall):
    window = advanced(tumbling(evict=Time("1s"), start=start), start + 1)
    WallClock(lambda: wall).attach(window)


class Restless(WindowEvents[Any, Any]):
    def before_flush(self, window, key):
        window.advance(100)


PUNCT = "which takes no punctuation. Use Tumbling(Punct()), or do not forward punctuations to it."
GONE = "A window's clock only moves forward; use a new window, or restore a snapshot."
AFRESH = "Build the window as it was, or start afresh."
KEPT = (
    "a summarizer stands for the tuples, so they are not kept. "
    "Use window.summary(key), or build the window without summarizer=."
)
CLOSE = "Attach it before it is advanced, or advance it close to the wall clock first."
MARKS: list[Any] = ["typo", "Window", None, 1]
NO_SNAPSHOTS: list[Any] = [{}, None, 3, "state", [], {"v": 1}, {"v": 2, "spec": 3}]
NO_SNAPSHOTS += [{"v": 2, "spec": {}, "arrays": 3}]
sums = summarizers.sum("x")


class Reading(WindowEvents[Any, Any]):
    """Reads the summary at every trigger."""

    def on_trigger(self, window, key):
        window.summary(key).value()


def slices_of_two_types():
    window = sliding(
        "sliding, count(4), count(2)", events=Reading(), summarizer=summarizers.sum("x")
    )
    window.insert_many([{"x": x} for x in (Decimal(1), Decimal(2), 1.5, 2.5)])


class Reads(WindowEvents[Any, Any]):
    """Reads columns at a flush: whatever `read` reads."""

    content = "arrow"

    def __init__(self, read):
        self.read = read

    def before_flush(self, window, key):
        self.read(window, key)


def flushed(read):
    """Batches go into a window whose handler reads columns."""
    window = tumbling(Tumbling(Count(2), by="k"), events=Reads(read))
    window.insert_batch(pa.record_batch({"k": ["a"] * 300, "x": range(300)}))


def used_meanwhile():
    """A handler uses the window itself, while it takes a batch."""
    used: list[Any] = []
    events = Reads(lambda view, key: used[0].size(key))
    used.append(tumbling(Tumbling(Count(2), by="k"), events=events))
    used[0].insert_batch(pa.record_batch({"k": ["a"] * 300, "x": range(300)}))


def changed_meanwhile():
    """A handler inserts into the window that calls it."""

    class Echo(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            window.insert(window[key][0])

    tumbling(Tumbling(Count(2)), events=Echo()).insert_many([1, 2])


def computed_with(engine):
    with primitives.use(engine):
        pass


def filled(rows: list[Any]) -> Any:
    """A window that holds these rows."""
    window = tumbling(evict=Count(9))
    window.insert_many(rows)
    return window


def damaged_parts(change):
    """Restore a window whose partitions somebody has changed."""
    window = tumbling(evict=Count(3), by="k")
    window.insert({"k": "a"})
    taken = window.snapshot()
    window.restore({**taken, "parts": change(taken["parts"])})


def sealed(body, version=1):
    """Bytes in an envelope that fits them."""
    head = state_bytes.ENVELOPE.pack(state_bytes.MAGIC, version, len(body))
    return head + sha256(head + body).digest()[: state_bytes.CHECKSUM] + body


CALLS = [
    (
        "a column of text for a policy that measures distances",
        lambda: check_measured_columns(Tumbling(Delta("at", 5)), pa.schema({"at": pa.string()})),
        SchemaError,
        "Delta('at', 5): the column 'at' is string, which has no distances. Use a column of "
        "numbers, dates or timestamps, or cast it before.",
    ),
    (
        "distances of another kind than those of the column",
        lambda: check_measured_columns(
            Sliding(Count(3), every=Delta("at", "5s")), pa.schema({"at": pa.int64()})
        ),
        SchemaError,
        "Delta('at', \"5s\"): the column 'at' is int64, so distances must be numbers, such as 5.",
    ),
    (
        "a row with a column that the output has not",
        lambda: batch_of([{"x": 1, "y": 2}], pa.schema({"x": pa.int64()})),
        SchemaError,
        "process_batch(...): the row {'x': 1, 'y': 2} has a column 'y', which the output has not. "
        "Columns: x.",
    ),
    (
        "content that is no kind of content",
        lambda: tumbling(evict=Count(2), events=type("Near", (Reads,), {"content": "arow"})(len)),
        PolicyError,
        'Near.content = \'arow\': say "tuples" (the default) or "arrow".',
    ),
    (
        "a column that the rows have not",
        lambda: flushed(lambda window, key: window.column("y", key)),
        AccessError,
        "column('y'): no such column. Columns: k, x.",
    ),
    (
        "a column that the tuples have not",
        lambda: filled([{"x": 1}]).column("y"),
        AccessError,
        "column('y'): no such column. Columns: x.",
    ),
    (
        "columns of another partition",
        lambda: flushed(lambda window, key: window.arrow("b")),
        AccessError,
        "window, key 'b': a handler with content='arrow' is called for 'a' and may read that "
        "partition only. Pass the key that it got, or say content='tuples'.",
    ),
    (
        "more than columns",
        lambda: flushed(lambda window, key: window.keys()),
        AccessError,
        "window.keys: a handler with content='arrow' has column, arrow, size, spec, port and now. "
        "Use these, or say content='tuples'.",
    ),
    (
        "a window that is taking a batch",
        used_meanwhile,
        AccessError,
        "TumblingWindow: it is taking a batch, and what it holds is not worked out. Use it "
        "between two calls; handlers with content='arrow' may read the partition they are called "
        "for.",
    ),
    (
        "a window that calls the handler",
        changed_meanwhile,
        AccessError,
        "insert(tuple): called by a handler of this window, which is at work. Handlers may read "
        "the window, not change it: keep the tuple, and insert it after the call; or emit it to "
        "an operator behind this one.",
    ),
    (
        "an engine that does not exist",
        lambda: computed_with("fast"),
        ValueError,
        "engine 'fast': it is 'numpy' or 'numba'.",
    ),
    (
        "slices of two types in one window",
        slices_of_two_types,
        SchemaError,
        "summarizers.sum('x') of 4.0: it cannot be added to Decimal('3'). Keep the tuples, or "
        "summarise another attribute.",
    ),
    (
        "a punctuation for a count window",
        lambda: tumbling(evict=Count(3)).punctuate(),
        PunctuationError,
        f"punctuate('window'): this window is 'tumbling, count(3), partitioned', {PUNCT}",
    ),
    (
        "another punctuation for a sliding window",
        lambda: sliding("sliding, time(3)").punctuate("other"),
        PunctuationError,
        f"punctuate('other'): this window is 'sliding, time(3), count(1)', {PUNCT}",
    ),
    *[
        (
            f"punctuate({mark!r})",
            lambda mark=mark: tumbling(evict=Punct()).punctuate(mark),
            PunctuationError,
            f'punctuate({mark!r}): unknown mark. Use "window", "final" or "other".',
        )
        for mark in MARKS
    ],
    (
        "time that goes back",
        lambda: advanced(advanced(tumbling(evict=Time("1s")), 10.5), 9),
        ClockError,
        f"advance(9): time went back from 10.5. {GONE}",
    ),
    (
        "time before the start",
        lambda: advanced(sliding(evict=Count(2), start=100), timedelta(seconds=99)),
        ClockError,
        f"advance(99): time went back from 100. {GONE}",
    ),
    *[
        (
            f"advance({instant!r})",
            lambda instant=instant: advanced(tumbling(evict=Punct()), instant),
            ClockError,
            f"advance({instant!r}): {INSTANT}",
        )
        for instant in ("10s", None, True, float("nan"), float("inf"), Decimal(1), date(2024, 3, 1))
    ],
    (
        "the oldest tuple of nothing",
        lambda: tumbling(evict=Count(3)).oldest(),
        AccessError,
        "partition None holds no tuple. Ask window.size(key) first.",
    ),
    (
        "the newest tuple of a partition that is not there",
        lambda: with_tuple(sliding(evict=Count(3))).newest("k"),
        AccessError,
        "partition 'k' holds no tuple. Ask window.size(key) first.",
    ),
    (
        "tuples of a summary",
        lambda: with_tuple(tumbling(evict=Count(3), summarizer=sums), {"x": 1})[None],
        AccessError,
        f"window[None]: {KEPT}",
    ),
    (
        "the oldest tuple of slices",
        lambda: with_tuple(sliding(evict=Count(3), summarizer=sums), {"x": 1}).oldest(),
        AccessError,
        f"window[None]: {KEPT}",
    ),
    (
        "a summary that is not there, tumbling",
        lambda: tumbling(evict=Count(3)).summary("k"),
        AccessError,
        "summary('k'): this window has no summarizer. Build it with summarizer=...",
    ),
    (
        "a summary that is not there, sliding",
        lambda: sliding(evict=Count(3)).summary(),
        AccessError,
        "summary(None): this window has no summarizer. Build it with summarizer=...",
    ),
    (
        "slices between triggers",
        lambda: with_tuple(
            sliding(evict=Count(4), trigger=Count(2), summarizer=sums), {"x": 1}
        ).summary(),
        AccessError,
        "summary(None): this window keeps slices, which make up a window only while a trigger "
        "runs. Read it in on_trigger.",
    ),
    (
        "the selection of a stranger",
        lambda: choosing(["z"]),
        PartitionError,
        "select_partitions returned 'z', which is no partition of this window. "
        "Return a list of some of the keys it was given.",
    ),
    *[
        (
            f"restore({state!r})",
            lambda state=state: tumbling(evict=Count(3)).restore(state),
            StateVersionError,
            "restore(state): this is not a snapshot of a window.",
        )
        for state in NO_SNAPSHOTS
    ],
    (
        "a snapshot of another format",
        lambda: tumbling(evict=Count(3)).restore(snapshot_of(tumbling(evict=Count(3)), v=99)),
        StateVersionError,
        "restore(state): the snapshot has format 99, this version reads 2. "
        "Use the version that wrote it, or start afresh.",
    ),
    (
        "arrays of another format",
        lambda: SlidingWindow(Sliding(Count(2))).restore(arrays_of(v=99)),
        StateVersionError,
        "restore(state): the arrays of the snapshot have format 99, this version reads 1. "
        "Use the version that wrote it, or start afresh.",
    ),
    (
        "arrays that are damaged",
        lambda: SlidingWindow(Sliding(Count(2))).restore(arrays_of(left=-1)),
        StateVersionError,
        "restore(state): the snapshot is damaged (ValueError('the arrays are damaged: left')). "
        "Take it from snapshot() whole.",
    ),
    (
        "arrays for a window that has none",
        lambda: SlidingWindow(Sliding(Count(2)), engine="reference").restore(arrays_of()),
        StateVersionError,
        'restore(state): arrays are not for this window (engine="reference" takes tuples one by '
        "one). Build the window as it was, or restore a snapshot that was taken without "
        "arrays=True.",
    ),
    (
        "a snapshot of two partitions with one key",
        lambda: damaged_parts(lambda parts: parts * 2),
        StateVersionError,
        "restore(state): the snapshot is damaged (ValueError('a key occurs twice')). Take it from "
        "snapshot() whole.",
    ),
    (
        "a snapshot whose keys were tuples before JSON wrote them",
        lambda: tumbling(evict=Count(3), by=("a", "b")).restore(
            {
                **tumbling(evict=Count(3), by=("a", "b")).snapshot(),
                "parts": [{"key": ["x", 1]}],
            }
        ),
        StateVersionError,
        "restore(state): the key ['x', 1] is a list, as JSON makes of a tuple, and lists are no "
        "keys. Write snapshots of windows with several key columns with dump_state.",
    ),
    (
        "an object in a snapshot that is to be written",
        lambda: dump_state({"operator": {"operator": "Spread"}, "state": {"rule": len}}),
        StateError,
        "dump_state(state): state['state']['rule'] of Spread is <built-in function len>, and "
        "objects of builtins.builtin_function_or_method are not plain data. Return plain data from "
        "snapshot(), such as a dict of an object's fields, and rebuild the object in restore().",
    ),
    (
        "bytes of something else",
        lambda: load_state(b"{}"),
        StateError,
        "state of 2 bytes: it was not written by dump_state. Take the bytes whole from where they "
        "were written, or from a copy.",
    ),
    (
        "bytes that were cut",
        lambda: load_state(dump_state("x")[:-1]),
        StateError,
        "state of 42 bytes: its envelope says 3 bytes, and 2 follow. Take the bytes whole from "
        "where they were written, or from a copy.",
    ),
    (
        "bytes that were changed",
        lambda: load_state(dump_state("x")[:-1] + b"y"),
        StateError,
        "state of 43 bytes: its checksum does not fit, so it was changed. Take the bytes whole "
        "from where they were written, or from a copy.",
    ),
    (
        "bytes of another format",
        lambda: load_state(sealed(b"", version=9)),
        StateError,
        "state of 40 bytes: it has format 9, this version of windowlib reads 1. Use the version "
        "that wrote it.",
    ),
    (
        "a snapshot of another kind",
        lambda: tumbling(evict=Count(3)).restore(sliding(evict=Count(3)).snapshot()),
        StateVersionError,
        "restore(state): the snapshot was written with kind=sliding; this window says "
        f"kind=tumbling. {AFRESH}",
    ),
    (
        "a snapshot of another size",
        lambda: tumbling(evict=Count(200)).restore(tumbling(evict=Count(100)).snapshot()),
        StateVersionError,
        "restore(state): the snapshot was written with evict=Count(size=100); this window says "
        f"evict=Count(size=200). {AFRESH}",
    ),
    (
        "a snapshot of another key",
        lambda: tumbling(evict=Count(3), by="a").restore(tumbling(evict=Count(3)).snapshot()),
        StateVersionError,
        f"restore(state): the snapshot was written with by=KEY; this window says by='a'. {AFRESH}",
    ),
    (
        "a snapshot with another summarizer",
        lambda: tumbling(evict=Count(3), summarizer=sums).restore(
            tumbling(evict=Count(3)).snapshot()
        ),
        StateVersionError,
        "restore(state): the snapshot was written with keeps=tuples; this window says keeps=one "
        f"summary per partition: summarizers.sum('x'). {AFRESH}",
    ),
    (
        "a handler that moves its window",
        lambda: advanced(tumbling(evict=Time("1s"), events=Restless()), 1.5),
        ClockError,
        "advance(100): called by a handler while the window is being advanced. "
        "Handlers may read the window, not move it.",
    ),
    (
        "a clock on another scale",
        lambda: attached_far_away(0, 1_700_000_000),
        ClockError,
        f"attach(window): the window's clock is at 1, the wall clock at 1700000000. {CLOSE}",
    ),
    (
        "a clock that is behind",
        lambda: attached_far_away(10_000, 990.5),
        ClockError,
        f"attach(window): the window's clock is at 10001, the wall clock at 990.5. {CLOSE}",
    ),
    (
        "a clock for a window that has one",
        attached_twice,
        ClockError,
        "attach(window): the window is attached to a clock already. Detach it first.",
    ),
    (
        "a clock that is closed",
        attached_late,
        ClockError,
        "attach(window): this clock is closed. Make a new WallClock.",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS]
)
def test_a_mistake_in_a_call(call, kind, message):
    error = broken(call)
    assert kind is type(error)
    assert message == str(error)


def test_a_snapshot_that_does_not_fit_changes_nothing():
    window = with_tuple(tumbling(evict=Count(3)))
    before = window.snapshot()
    for other in (sliding(evict=Count(3)), tumbling(evict=Count(4))):
        broken(lambda other=other: window.restore(other.snapshot()))
        assert before == window.snapshot()


def test_punctuation_that_is_refused_changes_nothing():
    window = with_tuple(sliding(evict=Count(3), trigger=Count(2)))
    before = window.snapshot()
    broken(window.punctuate)
    assert before == window.snapshot()


def test_time_that_goes_back_changes_nothing():
    window = with_tuple(advanced(tumbling(evict=Time("1s")), 10.5))
    before = window.snapshot()
    broken(lambda: window.advance(10))
    assert before == window.snapshot()
    window.advance(10.5)
    window.advance(11)
    assert 0 == len(window)


def test_a_selection_without_a_handler_is_a_warning():
    forget = TupleCount(5, "operator")
    with pytest.warns(WindowlibWarning) as caught:
        sliding(evict=Count(3), forget=forget)
    expected = (
        "TupleCount(size=5, select='operator') has no select_partitions handler: no partition will "
        'ever be evicted. Override select_partitions, or use select="lru".'
    )
    assert [expected] == [str(warning.message) for warning in caught]
    assert __file__ == caught[0].filename, "it points at the line that made the window"


def test_a_handler_that_is_spelt_wrong_is_a_warning():
    class Flush(WindowEvents[Any, Any]):
        def before_flsuh(self, window, key): ...

        def on_tick(self, window): ...

    with pytest.warns(WindowlibWarning) as caught:
        tumbling(evict=Count(3), events=Flush())
    expected = [
        'Flush.before_flsuh is no handler, nothing calls it. Did you mean "before_flush"?',
        "Flush.on_tick is no handler, nothing calls it.",
    ]
    assert expected == [str(warning.message) for warning in caught][:2]


def test_a_handler_silences_the_warning():
    tumbling(evict=Count(3), forget=PartitionCount(5, "operator"), events=forgetful([]))


# -- mistakes that deserve better than Python's own words --


class Idle(Summarizer[Any]): ...


def inserted(window, *values, **options):
    for value in values:
        window.insert(value, **options)
    return window


def nothing():
    return None


def restored_without(name):
    state = tumbling(evict=Count(3)).snapshot()
    del state[name]
    tumbling(evict=Count(3)).restore(state)


def totals(recipe, *values):
    return inserted(tumbling(evict=Count(9), summarizer=recipe), *rows("x", *values))


MIXED = "before it. Use one type for the whole stream."
NO_NUMBER = f"it is no number like the others. {OTHER}"
NAMED = "the attribute must be a name, an index or a callable, such as"
VALUES = [
    ('Tumbling(Count(9), by=("a", True))', PolicyError, f"Tumbling(by=('a', True)): {COLUMNS}"),
    ('Delta("x", Decimal("sNaN"))', PolicyError, f"Delta('x', Decimal('sNaN')): {THRESHOLD}"),
    (
        "Time(True)",
        PolicyError,
        'Time(True): not a duration. Write Time("10s") or pass a timedelta.',
    ),
    (
        'Time("99999999999d")',
        PolicyError,
        "Time('99999999999d'): \"99999999999d\" is too long. The longest is 999999999 days.",
    ),
    ('tumbling(evict=Count(3), start="10s")', ClockError, f"start('10s'): {INSTANT}"),
    ("tumbling(evict=Count(3), start=None)", ClockError, f"start(None): {INSTANT}"),
    (
        "tumbling(evict=Count(3), summarizer=summarizers.sum)",
        PolicyError,
        'summarizer=summarizers.sum: call it, as in summarizers.sum("price").',
    ),
    (
        "tumbling(evict=Count(3), summarizer=summarizers.count)",
        PolicyError,
        "summarizer=summarizers.count: call it, as in summarizers.count().",
    ),
    (
        "tumbling(evict=Count(3), summarizer=int)",
        PolicyError,
        "summarizer=<class 'int'>: pass a Summarizer class or one of windowlib.summarizers.",
    ),
    (
        "inserted(tumbling(evict=Count(3), summarizer=nothing), 'a')",
        PolicyError,
        f"summarizer={__name__}.nothing: it made None, which is no Summarizer. "
        "Derive its class from windowlib.Summarizer.",
    ),
    (
        "summarizers.sum(None)",
        PolicyError,
        f'summarizers.sum(None): {NAMED} summarizers.sum("price").',
    ),
    (
        "summarizers.max(True)",
        PolicyError,
        f'summarizers.max(True): {NAMED} summarizers.max("price").',
    ),
    (
        "summarizers.mean([1])",
        PolicyError,
        f'summarizers.mean([1]): {NAMED} summarizers.mean("price").',
    ),
    (
        "WallClock(now=3)",
        ClockError,
        "WallClock(now=3): not a function. Pass one that returns seconds.",
    ),
    ("WallClock(now=lambda: 'noon')", ClockError, f"WallClock.now('noon'): {INSTANT}"),
    (
        "HandClock(5).advance(3)",
        ClockError,
        "advance(3): time went back from 5 to 3. A clock only moves forward; make a new one.",
    ),
    (
        "HandClock().advance('-1s')",
        ClockError,
        "advance('-1s'): time went back from 0 to -1. A clock only moves forward; make a new one.",
    ),
    (
        "WallClock().attach(Tumbling(Count(3)))",
        ClockError,
        "attach(Tumbling(Count(size=3))): not a window. Pass a TumblingWindow or a SlidingWindow.",
    ),
    (
        "tumbling(evict=Count(9)).insert_many(iter('ab'), 'a')",
        PartitionError,
        "insert_many(keys=...): 1 key for more tuples. Give one key per tuple.",
    ),
    (
        "tumbling(evict=Count(9)).insert_many('ab', iter('abc'))",
        PartitionError,
        "insert_many(keys=...): 3 or more keys for 2 tuples. Give one key per tuple.",
    ),
    (
        "restored_without('parts')",
        StateVersionError,
        "restore(state): the snapshot is damaged (KeyError('parts')). "
        "Take it from snapshot() whole.",
    ),
    # values that do not go together
    (
        "inserted(tumbling(evict=Delta('x', 2)), *rows('x', 1.0, Decimal(5)))",
        SchemaError,
        f"Delta('x', 2): the value Decimal('5') does not mix with 1.0 {MIXED}",
    ),
    (
        "inserted(sliding(evict=Delta('x', '2s')), *rows('x', NOON, NOON.replace(tzinfo=UTC)))",
        SchemaError,
        "Delta('x', \"2s\"): the value datetime.datetime(2024, 3, 1, 12, 0, "
        "tzinfo=datetime.timezone.utc) does not mix with "
        f"datetime.datetime(2024, 3, 1, 12, 0) {MIXED}",
    ),
    (
        "inserted(tumbling(evict=Delta('x', '2s')), *rows('x', NOON, NOON.date()))",
        SchemaError,
        "Delta('x', \"2s\"): the value datetime.date(2024, 3, 1) does not mix with "
        f"datetime.datetime(2024, 3, 1, 12, 0) {MIXED}",
    ),
    (
        "inserted(tumbling(evict=Delta('x', 2)), *rows('x', timedelta(1)))",
        SchemaError,
        "Delta('x', 2): the value datetime.timedelta(days=1) is of type timedelta, so the "
        "threshold must be a duration. Write Delta('x', \"2s\").",
    ),
    (
        "inserted(tumbling(evict=Delta('x', 2)), *rows('x', Decimal('NaN')))",
        SchemaError,
        "Delta('x', 2): the value Decimal('NaN') cannot be compared. Drop or fill such tuples "
        "before the window: {'x': Decimal('NaN')}",
    ),
    (
        "inserted(tumbling(evict=Delta('x', 2)), *rows('x', Decimal('sNaN')))",
        SchemaError,
        "Delta('x', 2): the value Decimal('sNaN') cannot be compared. Drop or fill such tuples "
        "before the window: {'x': Decimal('sNaN')}",
    ),
    (
        "totals(summarizers.sum('x'), {})",
        SchemaError,
        f"summarizers.sum('x') of {{}}: a dict cannot be added up. {OTHER}",
    ),
    (
        "totals(summarizers.sum('x'), NOON, NOON)",
        SchemaError,
        f"summarizers.sum('x') of {NOON!r}: a datetime cannot be added up. {OTHER}",
    ),
    (
        "totals(summarizers.sum('x'), 1.5, Decimal(2))",
        SchemaError,
        f"summarizers.sum('x') of Decimal('2'): it cannot be added to 1.5. {OTHER}",
    ),
    (
        "totals(summarizers.mean('x'), timedelta(1), 2)",
        SchemaError,
        f"summarizers.mean('x') of 2: it cannot be added to datetime.timedelta(days=1). {OTHER}",
    ),
    (
        "totals(summarizers.variance('x'), 'two')",
        SchemaError,
        f"summarizers.variance('x', ddof=0) of 'two': {NO_NUMBER}",
    ),
    (
        "totals(summarizers.variance('x'), timedelta(1))",
        SchemaError,
        f"summarizers.variance('x', ddof=0) of datetime.timedelta(days=1): {NO_NUMBER}",
    ),
    (
        "totals(summarizers.max('x'), 'two', 1)",
        SchemaError,
        f"summarizers.max('x') of 1: it cannot be compared with 'two'. {OTHER}",
    ),
    (
        "totals(summarizers.min('x'), 1, 'two')",
        SchemaError,
        f"summarizers.min('x') of 'two': it cannot be compared with 1. {OTHER}",
    ),
    # calls that leave something out, or bring too much
    (
        "Sliding(Count(9), Count(3))",
        PolicyError,
        "Sliding(Count(size=9), Count(size=3)): name the trigger. "
        "Write Sliding(Count(size=9), every=Count(size=3)).",
    ),
    (
        "Tumbling(Count(9), Count(3))",
        PolicyError,
        "Tumbling(Count(size=9), Count(size=3)): a tumbling window takes exactly one eviction "
        "policy. Use Sliding(Count(size=9), every=Count(size=3)) for an eviction and a trigger.",
    ),
    (
        "tumbling(evict=Count(3), summarizer=Idle)",
        PolicyError,
        "summarizer=Idle: it has no insert. Define insert(self, tuple_) in it.",
    ),
    (
        "inserted(tumbling(Tumbling(Count(0), by=KEY)), 'a')",
        PartitionError,
        f"insert(tuple): this window is 'tumbling, count(0), partitioned' {NO_KEY}",
    ),
    (
        "inserted(sliding(Sliding(Count(0), by=KEY)), 'a')",
        PartitionError,
        f"insert(tuple): this window is 'sliding, count(0), count(1), partitioned' {NO_KEY}",
    ),
    (
        "tumbling(evict=Count(9)).insert_many([], 'a')",
        PartitionError,
        "insert_many(keys=...): 1 key for 0 tuples. Give one key per tuple.",
    ),
    (
        "choosing(None)",
        PartitionError,
        "select_partitions returned None, which is no partition of this window. "
        "Return a list of some of the keys it was given.",
    ),
    (
        "choosing([[]])",
        PartitionError,
        "select_partitions returned [], which is no partition of this window. "
        "Return a list of some of the keys it was given.",
    ),
    (
        "Report().emit(1, price=2)",
        SchemaError,
        "emit(1, price=...): a row and fields at once. Give one of them.",
    ),
    (
        "pickle.dumps(tumbling(evict=Count(3)))",
        windowlib.CopyError,
        "a TumblingWindow cannot be pickled or copied. Use snapshot(), and restore() in a new one.",
    ),
    (
        "copy.deepcopy(sliding(evict=Count(3)))",
        windowlib.CopyError,
        "a SlidingWindow cannot be pickled or copied. Use snapshot(), and restore() in a new one.",
    ),
]


@pytest.mark.parametrize(("code", "kind", "message"), VALUES, ids=[c[0] for c in VALUES])
def test_a_value_of_the_wrong_kind(code, kind, message):
    error = broken(lambda: evaluated(code))
    assert kind is type(error)
    assert message == str(error)


# -- the exceptions themselves --

EXCEPTIONS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, Exception) and not issubclass(each, Warning)
]


def test_there_are_exceptions_to_look_at():
    assert {"PolicyError", "SchemaError"} < {each.__name__ for each in EXCEPTIONS}


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_an_exception_is_ours_and_one_that_people_already_catch(kind):
    assert issubclass(kind, WindowlibError)
    assert getattr(windowlib, kind.__name__) is kind, "and public"
    if kind is not WindowlibError:
        builtin = next(b for b in kind.__mro__ if b.__module__ == "builtins")
        assert issubclass(builtin, ValueError | TypeError | LookupError | RuntimeError)


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_an_exception_survives_pickling(kind):
    again = pickle.loads(pickle.dumps(kind("a: b. c.")))
    assert kind is type(again)
    assert "a: b. c." == str(again)


@pytest.mark.parametrize("wrong", [3, Count(3), Tumbling, [Count(3)]], ids=repr)
def test_no_message_names_a_window_that_does_not_exist(wrong):
    for make in (tumbling, sliding):
        error = broken(lambda make=make: make(wrong))
        assert PolicyError is type(error)
        named = set(re.findall(r"\b\w+Window\b", str(error)))
        assert named <= {"TumblingWindow", "SlidingWindow"}


def test_a_message_starts_with_a_capital_or_an_argument_and_ends_with_a_full_stop():
    for text in [row[2] for row in CONSTRUCTION] + [case.message for case in CASES]:
        assert text[-1] in ".?}", text
        assert "  " not in text


# -- no raise without a case --

PACKAGE = Path(windowlib.__file__).parent
# The rooms whose messages are here; the others have a test_errors.py of their own.
ROOMS = ("spec", "window", "summaries", "columnar", "event_time")
# Messages of operators, in tests/runtime/test_operator_errors.py: windows and operators take
# batches with the same words, and models are made of patterns.
OPERATORS = {PACKAGE / "window" / "arrow.py", PACKAGE / "spec" / "pattern.py"}


def raises():
    """Where the library raises an exception that it makes itself."""
    rooms = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    for path in [*sorted(PACKAGE.glob("*.py")), *rooms]:
        if path in OPERATORS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            name = getattr(node.exc.func, "id", "")
            theirs = name in ("NotImplementedError", "AttributeError")  # Python's own protocols
            if not theirs and name.endswith("Error"):
                yield path, node.lineno, node.end_lineno


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None


def lines_of(error):
    """Where an exception came through, and those that it followed from."""
    seen = set()
    while error is not None:
        traceback = error.__traceback__
        while traceback is not None:
            seen.add((Path(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno))
            traceback = traceback.tb_next
        error = error.__cause__ or error.__context__
    return seen


def test_every_raise_has_a_case():
    seen = set()
    for code, *_ in (*CONSTRUCTION, *VALUES):
        seen |= lines_of(raised(lambda code=code: evaluated(code)))
    for _, call, *_ in CALLS:
        seen |= lines_of(raised(call))
    for case in CASES:
        window = case.make("generated")
        fill(window, case.good, case.keys)
        seen |= lines_of(raised(lambda window=window, case=case: offer(window, case)))
    for text, _ in MALFORMED:
        seen |= lines_of(raised(lambda text=text: parse(text)))
    for code, *_ in EVENT_TIME:
        seen |= lines_of(raised(lambda code=code: eval(code, dict(SCOPE))))
    seen |= lines_of(raised(lambda: parse(None)))  # type: ignore[arg-type]
    seen |= lines_of(raised(lambda: tumbling(evict=Count(3)).insert_many("ab", "a")))
    seen |= lines_of(raised(lambda: timestamp_like(10**18, date(2013, 1, 1))))
    missing = [
        f"{path.relative_to(PACKAGE)}:{first}"
        for path, first, last in raises()
        if not any((path, line) in seen for line in range(first, last + 1))
    ]
    assert [] == missing
