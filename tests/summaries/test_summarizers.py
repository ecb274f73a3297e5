"""Summaries against plain computation, how exact they are, how small, and your own ones."""
# ruff: noqa: SIM300 - asserts read expected first

import functools
import gc
import math
import pickle
import random
import statistics
import tracemalloc
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    PartitionCount,
    Punct,
    SlidingWindow,
    Summarizer,
    Time,
    TumblingWindow,
    TupleCount,
    WindowEvents,
    summarizers,
)
from windowlib.summaries.folds import _larger

ENGINES = ("generated", "reference")
engines = pytest.mark.parametrize("engine", ENGINES)

READY: dict[str, Any] = {
    "count": summarizers.count(),
    "sum": summarizers.sum("x"),
    "mean": summarizers.mean("x"),
    "variance": summarizers.variance("x"),
    "sample": summarizers.variance("x", ddof=1),
    "min": summarizers.min("x"),
    "max": summarizers.max("x"),
}


class Report(WindowEvents[Any, Any]):
    """The value of every subwindow that is flushed."""

    def __init__(self):
        self.emitted = []

    def before_flush(self, window, key):
        self.emitted.append(window.summary(key).value())


def tumbling(evict, summarizer, engine="generated", events=None, **options):
    events = Report() if events is None else events
    return TumblingWindow(
        evict=evict, summarizer=summarizer, engine=engine, events=events, **options
    )


# -- running batches through each kind of window --
# A batch is what one flush covers. How it comes about differs, what it says must not.


def by_count(batches, summarizer, engine):
    (size,) = {len(batch) for batch in batches}
    window = tumbling(Count(size), summarizer, engine)
    window.insert_many({"x": x} for x in chain(*batches))
    return window.events.emitted


def by_delta(batches, summarizer, engine):
    window = tumbling(Delta("at", 5), summarizer, engine)
    for number, batch in enumerate([*batches, [None]]):
        window.insert_many({"x": x, "at": 10 * number + i % 5} for i, x in enumerate(batch))
    return window.events.emitted


def by_time(batches, summarizer, engine):
    window = tumbling(Time("1s"), summarizer, engine)
    for number, batch in enumerate(batches, 1):
        for x in batch:
            window.insert({"x": x})
        window.advance(number)
    return window.events.emitted


def by_punct(batches, summarizer, engine):
    window = tumbling(Punct(), summarizer, engine)
    for batch in batches:
        window.insert_many([{"x": x} for x in batch])
        window.punctuate()
    return window.events.emitted


def by_either(batches, summarizer, engine):
    longest = max(len(batch) for batch in batches)
    window = tumbling(Count(longest) | Time("1s"), summarizer, engine)
    for number, batch in enumerate(batches, 1):
        window.insert_many([{"x": x} for x in batch])  # the longest fill up, the others wait
        window.advance(number)
    return window.events.emitted


KINDS = {
    "count": by_count,
    "delta": by_delta,
    "time": by_time,
    "punct": by_punct,
    "either": by_either,
}
kinds = pytest.mark.parametrize("kind", KINDS)


def same(a, b):
    """The same to the last bit, in the same type; NaN is itself."""
    return repr(a) == repr(b)


def runs(kind, batches, names, alone=None):
    """What summaries say in a dict, which is what they say alone, and in both engines."""
    run = KINDS[kind]
    chosen = {name: READY[name] for name in names}
    together = run(batches, chosen, "generated")
    assert same(together, run(batches, chosen, "reference"))
    assert [list(chosen)] * len(batches) == [list(each) for each in together]
    for name in names if alone is None else [alone]:
        for engine in ENGINES:
            assert same([each[name] for each in together], run(batches, READY[name], engine))
    return together


# -- the oracle --


def finite(values):
    return all(math.isfinite(x) for x in values if isinstance(x, float))


def total(values):
    """The sum, exactly where there is such a thing."""
    if isinstance(values[0], timedelta):
        return sum(values, timedelta())
    if not finite(values):
        return float(sum(values))
    return math.fsum(values) if any(isinstance(x, float) for x in values) else sum(values)


def close(expected, got, scale):
    if isinstance(expected, float) and not math.isfinite(expected):
        return same(expected, float(got))
    if isinstance(got, float):
        return abs(got - expected) <= 1e-12 * scale
    return same(expected, got)


def check_sum(values, got):
    scale = math.fsum(map(abs, values)) if finite(values) and isinstance(got, float) else 0
    assert close(total(values), got, scale)


def check_mean(values, got):
    scale = math.fsum(map(abs, values)) if finite(values) and isinstance(got, float) else 0
    assert close(total(values) / len(values), got, scale / len(values))


def check_variance(values, got, ddof=0):
    if len(values) <= ddof:
        assert got is None
    elif not finite(values):
        assert math.isnan(got)
    else:
        expected = (statistics.pvariance, statistics.variance)[ddof](values)
        squares = sum(Fraction(x) ** 2 for x in values) / (len(values) - ddof)
        assert abs(Fraction(got) - Fraction(expected)) <= Fraction(1, 10**9) * squares


def is_nan(x):
    return isinstance(x, float) and math.isnan(x)


def check_min(values, got):
    numbers = [x for x in values if not is_nan(x)]
    assert (min(numbers) == got) if numbers else math.isnan(got)


def check_max(values, got):
    assert math.isnan(got) if any(map(is_nan, values)) else max(values) == got


CHECKS: dict[str, Any] = {
    "sum": check_sum,
    "mean": check_mean,
    "variance": check_variance,
    "sample": functools.partial(check_variance, ddof=1),
    "min": check_min,
    "max": check_max,
}


def check(batches, summaries):
    for batch, summary in zip(batches, summaries, strict=True):
        present = [x for x in batch if x is not None]
        for name, got in summary.items():
            if name == "count":
                assert len(batch) == got
            elif not present:
                assert got is None
            else:
                CHECKS[name](present, got)


# -- streams --

ALL = tuple(READY)
EXACT = ("count", "sum", "mean", "min", "max")
ORDER = ("count", "min", "max")
huge = st.integers(-(10**60), 10**60)
odd = st.sampled_from([math.inf, -math.inf, math.nan, 0.0, -0.0])
floats = st.floats(-1e100, 1e100) | odd
decimals = st.decimals(-(10**6), 10**6, places=3)
spans = st.timedeltas(timedelta(days=-999), timedelta(days=999))
STREAMS = {
    "ints": (st.integers(-100, 100), ALL),
    "huge ints": (huge, ALL),
    "ints beyond floats": (st.integers(10**400, 10**401), ("count", "sum", "min", "max")),
    "floats": (floats, ALL),
    "ints and floats": (st.integers(-(2**70), 2**70) | floats, ALL),
    "decimals": (decimals, ALL),
    "timedeltas": (spans, EXACT),
    "datetimes": (st.datetimes(timezones=st.just(UTC)), ORDER),
    "dates": (st.dates(), ORDER),
    "words": (st.text(max_size=3), ORDER),
    "bools": (st.booleans(), ("count", "sum", "mean", "min", "max")),
}


@st.composite
def batches_of(draw, values, equal):
    size = st.integers(1, 6) if equal else st.just(None)
    length = draw(size)
    nullable = values | st.none() if draw(st.booleans()) else values
    batch = st.lists(nullable, min_size=length or 1, max_size=length or 6)
    return draw(st.lists(batch, min_size=1, max_size=5))


@kinds
@pytest.mark.parametrize("stream", STREAMS)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_a_summary_is_what_plain_computation_gives(kind, stream, data):
    values, names = STREAMS[stream]
    batches = data.draw(batches_of(values, kind == "count"))
    alone = data.draw(st.sampled_from(names))
    check(batches, runs(kind, batches, names, alone))


@pytest.mark.parametrize("size", [128, 129, 300])
@pytest.mark.parametrize("stream", ["ints", "huge ints", "floats", "decimals"])
def test_long_windows_say_the_same_as_short_ones(size, stream):
    draw = random.Random(size)
    makers = {
        "ints": lambda: draw.randint(-100, 100),
        "huge ints": lambda: draw.randint(-(10**60), 10**60),
        "floats": lambda: draw.uniform(-1, 1) * 10 ** draw.randint(-30, 30),
        "decimals": lambda: Decimal(draw.randint(-(10**9), 10**9)) / 1000,
    }
    values = [makers[stream]() if draw.random() < 0.9 else None for _ in range(2 * size)]
    batches = [values[i : i + size] for i in range(0, len(values), size)]
    for kind in KINDS:
        check(batches, runs(kind, batches, STREAMS[stream][1]))


@kinds
def test_nothing_but_nulls_is_none(kind):
    batches = [[None, None], [None, 3], [3, None], [None, None]]
    none = dict.fromkeys(ALL) | {"count": 2}
    some = {"count": 2, "sum": 3, "mean": 3.0, "variance": 0.0, "sample": None, "min": 3, "max": 3}
    assert [none, some, some, none] == runs(kind, batches, ALL)


@kinds
@pytest.mark.parametrize("x", [7, -2.5, Decimal("0.1"), 10**80, math.inf, math.nan], ids=repr)
def test_one_value_is_its_own_summary(kind, x):
    (summary,) = runs(kind, [[x]], ALL)
    assert 1 == summary["count"]
    for name in ("sum", "min", "max"):
        assert same(x, summary[name])
    assert summary["sample"] is None
    check([[x]], [summary])


def test_a_summary_that_is_none_is_emitted_as_none():
    class Emit(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            self.emit(window.summary(key).value())

    window = tumbling(Count(1), summarizers.sum("x"), events=Emit())
    window.insert_many([{"x": None}, {"x": 3}])
    assert [None, 3] == window.events.emitted


def test_a_tick_without_tuples_summarises_nothing():
    nothing = dict.fromkeys(ALL) | {"count": 0}
    one = {"count": 1, "sum": 4, "mean": 4.0, "variance": 0.0, "sample": None, "min": 4, "max": 4}
    for engine in ENGINES:
        assert [nothing, one, nothing] == by_time([[], [4], []], READY, engine)
        for name in ALL:
            expected = [nothing[name], one[name], nothing[name]]
            assert expected == by_time([[], [4], []], READY[name], engine)


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([1.0, math.nan, 2.0], 1.0, math.nan),
        ([math.nan, 1.0], 1.0, math.nan),
        ([math.nan, math.inf], math.inf, math.nan),
        ([math.nan, math.nan], math.nan, math.nan),
        ([None, math.nan], math.nan, math.nan),
        ([-math.inf, math.inf], -math.inf, math.inf),
        ([math.inf], math.inf, math.inf),
        ([-math.inf, None], -math.inf, -math.inf),
    ],
)
@kinds
def test_nan_is_above_every_number(kind, values, least, greatest):
    (summary,) = runs(kind, [values], ("min", "max"))
    assert same(least, summary["min"])
    assert same(greatest, summary["max"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([1e308, -math.inf, 5.0], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([math.inf, math.inf, None], math.inf),
    ],
)
@kinds
def test_infinities_add_up_as_they_do(kind, values, expected):
    (summary,) = runs(kind, [values], ("sum", "mean", "variance"))
    assert same(expected, summary["sum"])
    assert same(expected, summary["mean"])
    assert math.isnan(summary["variance"])


def test_types_are_kept():
    cases = [
        (summarizers.sum("x"), [Decimal("0.1")] * 3, Decimal("0.3")),
        (summarizers.mean("x"), [Decimal("0.1"), Decimal("0.2")], Decimal("0.15")),
        (summarizers.sum("x"), [timedelta(hours=1)] * 2, timedelta(hours=2)),
        (summarizers.mean("x"), [timedelta(hours=1), timedelta(hours=2)], timedelta(hours=1.5)),
        (summarizers.sum("x"), [Fraction(1, 3), Fraction(1, 6)], Fraction(1, 2)),
        (summarizers.sum("x"), [1, 2], 3),
        (summarizers.mean("x"), [1, 2], 1.5),
        (summarizers.min("x"), [date(2024, 3, 2), date(2024, 3, 1)], date(2024, 3, 1)),
        (summarizers.max("x"), ["b", "c", "a"], "c"),
        (summarizers.max("x"), [datetime(2024, 1, 1), datetime(2024, 1, 2)], datetime(2024, 1, 2)),
        (summarizers.variance("x"), [Decimal(1), Decimal(3)], Decimal(1)),
        (summarizers.variance("x"), [1, 3], 1.0),
    ]
    for call, values, expected in cases:
        for engine in ENGINES:
            for run in KINDS.values():
                (got,) = run([values], call, engine)
                assert same(expected, got), call


@engines
def test_partitions_keep_their_summaries_apart(engine):
    window = tumbling(Count(2), READY, engine)
    window.insert_many([{"x": x} for x in (1, 10, 2, 30)], keys="abab")
    assert [3, 40] == [row["sum"] for row in window.events.emitted]
    assert [0.25, 100.0] == [row["variance"] for row in window.events.emitted]


@engines
def test_attributes_come_by_name_index_or_callable(engine):
    window = tumbling(
        Count(2),
        {
            "index": summarizers.sum(0),
            "last": summarizers.max(-1),
            "call": summarizers.sum(lambda row: row[0] * row[1]),
            "again": summarizers.min(0),
        },
        engine,
    )
    window.insert_many([(2, 3), (4, 5)])
    assert [{"index": 6, "last": 5, "call": 26, "again": 2}] == window.events.emitted


@engines
def test_rows_of_any_form_may_follow_each_other(engine):
    class Row:
        def __init__(self, x):
            self.x = x

    window = tumbling(Count(3), {"sum": summarizers.sum("x"), "max": summarizers.max("x")}, engine)
    window.insert_many([{"x": 1}, Row(5), {"x": 3}, Row(1), {"x": 2}, Row(3)])
    assert [{"sum": 9, "max": 5}, {"sum": 6, "max": 3}] == window.events.emitted


@engines
def test_a_summary_can_be_read_at_any_time(engine):
    window = tumbling(Punct(), {"n": summarizers.count(), "sum": summarizers.sum("x")}, engine)
    assert {"n": 0, "sum": None} == read(window)
    window.insert({"x": 4})
    assert {"n": 1, "sum": 4} == read(window)
    window.insert({"x": None})
    assert {"n": 2, "sum": 4} == read(window)
    window.punctuate()
    assert {"n": 0, "sum": None} == read(window)
    assert {"n": 0, "sum": None} == read(window, "no such key")


def read(window, *key):
    summary = window.summary(*key)
    return {"n": 0, "sum": None} if summary is None else summary.value()


@engines
def test_a_tuple_that_cannot_be_summarised_leaves_every_state_as_it_was(engine):
    window = tumbling(Punct(), READY, engine)
    window.insert({"x": 4})
    before = window.snapshot()
    with pytest.raises(Exception):  # noqa: B017, PT011 - which one, test_errors says
        window.insert({"x": "five"})
    assert before == window.snapshot()
    window.insert({"x": 6})
    window.punctuate()
    (summary,) = window.events.emitted
    assert [2, 10, 1.0, 4, 6] == [summary[k] for k in ("count", "sum", "variance", "min", "max")]


MIXED = st.sampled_from(
    [
        *(1, -2, 0.5, True, None, "five", b"5", [1], Decimal("1.5"), Fraction(1, 3), 10**400),
        *(timedelta(1), date(2024, 1, 1), math.inf, -math.inf, math.nan),
    ]
)
FUNCTIONS = [
    *(
        getattr(summarizers, name)(column)
        for name in ("sum", "mean", "min", "max")
        for column in "xy"
    ),
    summarizers.sum("x", compensated=True),
    summarizers.variance("y"),
]


@given(st.floats() | st.integers(), st.floats() | st.integers())
def test_the_text_compares_sizes_as_abs_does(a, b):
    larger = eval(f"bool({_larger('a', 'b', 'total')})", {"a": a, "b": b, "total": added(a, b)})
    assert (abs(a) >= abs(b)) == larger


def added(a, b):
    try:
        return a + b
    except OverflowError:  # which ends the text before it compares
        reject()


@given(
    functions=st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=4),
    rows=st.lists(st.fixed_dictionaries({"x": MIXED, "y": MIXED}), max_size=6),
)
@example([FUNCTIONS[6], FUNCTIONS[1]], [{"x": 1, "y": 2}, {"x": 9, "y": "five"}])
@example([FUNCTIONS[0], FUNCTIONS[6]], [{"x": Decimal("1.5"), "y": 0}, {"x": 9.5, "y": 0}])
def test_a_tuple_enters_every_state_or_none(functions, rows):
    chosen = {str(i): function for i, function in enumerate(functions)}
    generated, reference = windows = [tumbling(Count(9), chosen, engine) for engine in ENGINES]
    for row in rows:
        before = repr(generated.snapshot()["parts"])
        refusals = []
        for window in windows:
            try:
                window.insert(row)
            except Exception as error:
                refusals.append(str(error))
        assert len(refusals) in (0, 2)
        assert same(reference.snapshot()["parts"], generated.snapshot()["parts"])
        assert not refusals or before == repr(generated.snapshot()["parts"])


@engines
@pytest.mark.parametrize("name", ["sum", "mean", "variance", "min", "max"])
def test_a_snapshot_that_was_pickled_knows_nulls_from_numbers(engine, name):
    first = tumbling(Punct(), READY[name], engine)
    first.insert({"x": None})
    second = tumbling(Punct(), READY[name], engine)
    second.restore(pickle.loads(pickle.dumps(first.snapshot())))
    second.punctuate()
    assert [None] == second.events.emitted


# -- how exact they are --


def summed(values, evict, name="sum"):
    window = tumbling(evict, READY[name])
    window.insert_many([{"x": x} for x in values])
    if isinstance(evict, Punct):
        window.punctuate()
    (got,) = window.events.emitted
    return got


@pytest.mark.parametrize("triples", [1, 10, 42, 43, 1000])
def test_what_cancels_out_does_not_take_the_rest_along(triples):
    values = [1e16, 1.0, -1e16] * triples
    assert triples == summed(values, Punct())
    if len(values) > 128:
        assert triples == summed(values, Count(len(values)))


@settings(max_examples=examples(30))
@given(
    st.lists(st.floats(-1e16, 1e16), min_size=65, max_size=200),
    st.lists(st.integers(1, 1000), min_size=1, max_size=50),
    st.randoms(use_true_random=False),
)
def test_long_sums_are_exact_to_nine_digits_whatever_cancels_out(large, small, order):
    values = [*large, *(-x for x in large), *map(float, small)]
    order.shuffle(values)
    assert math.fsum(values) == sum(small)
    assert math.isclose(sum(small), summed(values, Punct()), rel_tol=1e-9)
    assert math.isclose(sum(small), summed(values, Count(len(values))), rel_tol=1e-9)
    mean = summed(values, Punct(), "mean")
    assert math.isclose(sum(small) / len(values), mean, rel_tol=1e-9)


@settings(max_examples=examples(30))
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=400))
@example([1e16, 1.0, -1e16] * 100)
@example([0.1] * 128)
def test_sums_are_exact_to_twelve_digits_of_what_was_added(values):
    bound = 1e-12 * math.fsum(map(abs, values))
    for evict in (Count(len(values)), Punct()):
        assert abs(summed(values, evict) - math.fsum(values)) <= bound


@pytest.mark.parametrize("triples", [1, 10, 42])
def test_short_sums_are_compensated_on_demand(triples):
    values = [1e16, 1.0, -1e16] * triples
    for call, expected in (
        (summarizers.sum("x", compensated=True), triples),
        (summarizers.mean("x", compensated=True), triples / len(values)),
    ):
        for engine in ENGINES:
            assert [expected] == by_count([values], call, engine)


def test_half_a_million_tenths_are_fifty_thousand():
    assert 50_000.0 == summed([0.1] * 500_000, Punct())


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, -1e9])
@pytest.mark.parametrize("n", [2, 100, 2000])
def test_variance_does_not_mind_an_offset(offset, n):
    draw = random.Random(n)
    values = [offset + draw.gauss(0, 1) for _ in range(n)]
    expected = statistics.pvariance(values)
    assert math.isclose(expected, summed(values, Punct(), "variance"), rel_tol=1e-6)
    assert math.isclose(expected, summed(values, Count(n), "variance"), rel_tol=1e-6)
    sample = statistics.variance(values)
    assert math.isclose(sample, summed(values, Punct(), "sample"), rel_tol=1e-6)


def test_variance_of_equal_values_is_zero_and_never_less():
    assert 0.0 == summed([1e9 + 0.1] * 1000, Punct(), "variance")
    assert 0.0 == summed([7] * 10, Count(10), "variance")


# -- how small they are --


def memory():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def holds_less_than(limit, measured):
    """Whether one of five runs does: what else the process keeps meanwhile is counted, too."""
    tracemalloc.start()
    try:
        return any(measured() < limit for _ in range(5))
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "evict",
    [Count(200_000), pytest.param(Delta("at", 10), marks=pytest.mark.long)],
    ids=str,
)
def test_a_partition_that_stands_for_100_000_tuples_holds_less_than_a_kilobyte(evict):
    rows = [{"x": float(i), "at": i % 10} for i in range(100)]

    def one_partition():
        window = tumbling(evict, READY)
        window.insert_many(rows, keys=["warm"] * 100)
        before = memory()
        for _ in range(1000):
            window.insert_many(rows, keys=["a"] * 100)
        held = memory() - before
        assert 100_000 == window.size("a")
        assert held > 0
        return held

    assert holds_less_than(1024, one_partition)


def test_windows_that_are_gone_leave_nothing_behind():
    def windows():
        before = memory()
        for _ in range(200):
            window = tumbling(Count(2), READY)
            window.insert_many([{"x": 1.0}] * 3)
        return memory() - before

    assert holds_less_than(200 * 512, windows)


def test_each_partition_holds_less_than_a_kilobyte():
    row = {"x": 0.5}

    def partitions():
        window = tumbling(Punct(), READY)
        window.insert(row, key=-1)
        before = memory()
        for key in range(2000):
            window.insert(row, key=key)
            window.insert(row, key=key)
        return memory() - before

    assert holds_less_than(2000 * 1024, partitions)


# -- your own --


class Log(WindowEvents[Any, Any]):
    """Writes what happens, and what the summary says when it does."""

    def __init__(self):
        self.lines = []

    def write(self, event, window, key):
        summary = window.summary(key)
        self.lines.append(f"{event} {key} {'-' if summary is None else summary.value()}")

    def before_insert(self, window, tuple_, key):
        self.write(f"before_insert {tuple_}", window, key)

    def after_insert(self, window, tuple_, key):
        self.write(f"after_insert {tuple_}", window, key)

    def before_flush(self, window, key):
        self.write("before_flush", window, key)

    def after_flush(self, window, key):
        self.write("after_flush", window, key)

    def on_partitions_evicted(self, window, keys):
        for key in keys:
            self.write("evicted", window, key)


class Flushes(Log):
    """The same, for flushes alone: nobody sees when a summarizer opens."""

    before_insert = WindowEvents.before_insert
    after_insert = WindowEvents.after_insert


def logging_to(events):
    class Letters(Summarizer[str]):
        def open(self, key):
            self.key, self.letters = key, ""
            events.lines.append(f"open {key}")

        def insert(self, letter):
            self.letters += letter
            events.lines.append(f"insert {letter} {self.key}")

        def close(self):
            events.lines.append(f"close {self.key}")
            self.letters += "!"

        def value(self):
            return self.letters

    return Letters


def logged(evict, engine, events=None, **options):
    log = Log() if events is None else events
    return tumbling(evict, logging_to(log), engine, events=log, **options)


@engines
def test_a_summarizer_opens_takes_tuples_and_closes_in_order(engine):
    window = logged(Count(2), engine)
    window.insert("a", key="k")
    window.insert("b", key="k")
    window.insert("c", key="k")
    expected = [
        *("before_insert a k -", "open k", "insert a k", "after_insert a k a"),
        *("before_insert b k a", "insert b k", "after_insert b k ab"),
        *("close k", "before_flush k ab!", "after_flush k ab!"),
        *("before_insert c k -", "open k", "insert c k", "after_insert c k c"),
    ]
    assert expected == window.events.lines


@engines
@pytest.mark.parametrize(
    ("evict", "flush"),
    [
        (Count(2), lambda window: None),
        (Delta(ord, 5), lambda window: window.insert("z")),
        (Time("1s"), lambda window: window.advance(1)),
        (Punct(), lambda window: window.punctuate()),
    ],
    ids=str,
)
def test_a_summary_is_readable_in_both_flush_events(engine, evict, flush):
    window = logged(evict, engine, events=Flushes())
    window.insert_many("ab")
    flush(window)
    lines = window.events.lines
    expected = ["open None", "insert a None", "insert b None", "close None"]
    expected += ["before_flush None ab!", "after_flush None ab!"]
    assert expected == lines[:6]
    assert (["open None", "insert z None"] if evict.kind == "delta" else []) == lines[6:]


@engines
def test_after_the_flush_the_summary_is_gone(engine):
    window = logged(Count(2), engine)
    window.insert_many("ab")
    assert window.summary() is None
    assert 0 == window.size()


@engines
def test_an_idle_tick_opens_and_closes_a_summarizer_on_the_default_key(engine):
    window = logged(Time("1s"), engine)
    window.advance(2)
    tick = ["open None", "close None", "before_flush None !", "after_flush None !"]
    assert [*tick, *tick] == window.events.lines
    assert [] == list(window.keys())


@engines
def test_partition_eviction_destroys_without_closing(engine):
    window = logged(Count(5), engine, forget=PartitionCount(1))
    window.insert("a", key="k")
    window.insert("b", key="l")
    window.insert("c", key="k")
    lines = [line for line in window.events.lines if "_insert" not in line]
    assert ["open k", "insert a k", "open l", "insert b l", "evicted k a"] == lines[:5]
    assert ["open k", "insert c k", "evicted l b"] == lines[5:]


@engines
def test_tuple_count_eviction_counts_what_summaries_stand_for(engine):
    window = logged(Count(9), engine, forget=TupleCount(3))
    window.insert_many("abc", keys="kkl")
    assert 3 == len(window)
    window.insert("d", key="l")
    assert ["l"] == list(window.keys())
    assert "cd" == window.summary("l").value()


@engines
def test_every_partition_has_a_summarizer_of_its_own(engine):
    window = logged(Punct(), engine, events=Flushes())
    window.insert_many("abc", keys="klk")
    window.punctuate()
    flushed = [line for line in window.events.lines if line.startswith("before_flush")]
    assert ["before_flush k ac!", "before_flush l b!"] == flushed


class Slots(Summarizer[int]):
    __slots__ = ("best",)

    def open(self, key):
        self.best = 0

    def insert(self, tuple_):
        self.best = max(self.best, tuple_)

    def value(self):
        return self.best


class MoreSlots(Slots):
    __slots__ = ("seen",)

    def open(self, key):
        super().open(key)
        self.seen = []

    def insert(self, tuple_):
        super().insert(tuple_)
        self.seen.append(tuple_)

    def value(self):
        return self.best, self.seen


class Attributes(Summarizer[int]):
    def open(self, key):
        self.total = 0

    def insert(self, tuple_):
        self.total += tuple_

    def value(self):
        return self.total


class Own(Attributes):
    """Says itself what a snapshot holds."""

    def snapshot(self):
        return {"total": self.total}

    def restore(self, state):
        self.total = state["total"]


class Scaled(Summarizer[int]):
    def __init__(self, factor):
        self.factor, self.total = factor, 0

    def insert(self, tuple_):
        self.total += self.factor * tuple_

    def value(self):
        return self.total


def scaled_by_three():
    return Scaled(3)


FACTORIES = {
    "slots": (Slots, [3, 1, 2], 3),
    "more slots": (MoreSlots, [3, 1, 2], (3, [3, 1, 2])),
    "attributes": (Attributes, [3, 1, 2], 6),
    "own snapshot": (Own, [3, 1, 2], 6),
    "function": (scaled_by_three, [3, 1, 2], 18),
    "lambda": (lambda: Scaled(2), [3, 1, 2], 12),
    "partial": (functools.partial(Scaled, 5), [3, 1, 2], 30),
}
factories = pytest.mark.parametrize(
    ("factory", "values", "expected"), FACTORIES.values(), ids=list(FACTORIES)
)


@engines
@factories
def test_classes_and_functions_make_summarizers(engine, factory, values, expected):
    window = tumbling(Count(3), factory, engine)
    window.insert_many(values)
    assert [expected] == window.events.emitted


@engines
@factories
@pytest.mark.parametrize("cut", [1, 2])
def test_a_snapshot_carries_the_summarizers_state(engine, factory, values, expected, cut):
    first = tumbling(Count(3), factory, engine)
    first.insert_many(values[:cut])
    state = pickle.loads(pickle.dumps(first.snapshot()))
    second = tumbling(Count(3), factory, engine)
    second.restore(state)
    second.insert_many(values[cut:])
    assert [expected] == second.events.emitted


def test_the_default_snapshot_is_every_attribute():
    summary = Attributes()
    summary.open("k")
    summary.insert(4)
    assert {"total": 4} == summary.snapshot()
    other = Attributes()
    other.restore(summary.snapshot())
    assert 4 == other.value()


def test_the_default_snapshot_knows_slots():
    summary = MoreSlots()
    summary.open("k")
    summary.insert(4)
    other = MoreSlots()
    other.restore(summary.snapshot())
    assert (4, [4]) == other.value()


def test_a_summarizer_without_a_value_has_none():
    class Silent(Summarizer[int]):
        def insert(self, tuple_): ...

    window = tumbling(Count(1), Silent)
    window.insert(1)
    assert [None] == window.events.emitted


@engines
def test_a_sliding_window_reads_its_tuples_through_your_summarizer(engine):
    class Sums(WindowEvents[int, Any]):
        def on_trigger(self, window, key):
            self.emit(window.summary(key).value())

    window: Any = SlidingWindow(
        evict=Count(3), trigger=Count(1), summarizer=Attributes, events=Sums(), engine=engine
    )
    window.insert_many([1, 2, 3, 4, 5])
    assert [1, 3, 6, 9, 12] == window.events.emitted
    assert 12 == window.summary().value()


def test_a_ready_made_summarizer_shows_what_it_is():
    shown = [repr(call) for call in READY.values()]
    expected = ["count()", "sum('x')", "mean('x')", "variance('x', ddof=0)"]
    expected += ["variance('x', ddof=1)", "min('x')", "max('x')"]
    assert [f"summarizers.{text}" for text in expected] == shown
    assert "summarizers.sum(builtins.len)" == repr(summarizers.sum(len))
