"""Sliding windows that keep slices of summaries instead of tuples differ in size alone.

The oracle computes every summary afresh from the tuples that the window would hold.
"""
# ruff: noqa: SIM300 - asserts read expected first

import functools
import gc
import math
import pickle
import statistics
import weakref
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.event_recorder import Advance, Insert, Many, Row, apply, build, recorder
from tests.helpers.examples import examples
from tests.helpers.window_strategies import streams
from windowlib import (
    KEY,
    AccessError,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    SchemaError,
    Sliding,
    Summarizer,
    Time,
    TupleCount,
    WindowEvents,
    summarizers,
)
from windowlib.summaries.summarizers import FunctionCall

NAN, INF = float("nan"), float("inf")

# -- the oracle ---------------------------------------------------------------------------------


def added(values):
    if not values:
        return None
    zero = values[0] * 0 if isinstance(values[0], timedelta) else 0
    return sum(values, start=zero)


def averaged(values):
    return added(values) / len(values) if values else None


def smallest(values):
    numbers = [x for x in values if x == x]
    return min(numbers or values, default=None)


def largest(values):
    return next((x for x in values if x != x), max(values, default=None))


def spread(values, ddof=0):
    if len(values) <= ddof:
        return None
    exact = [Fraction(x) for x in values]
    return float(statistics.pvariance(exact) * len(values) / (len(values) - ddof))


ORACLES: dict[str, Any] = {
    "n": lambda values: None,  # counts nulls too, see `expected`
    "sum": added,
    "mean": averaged,
    "low": smallest,
    "high": largest,
    "spread": spread,
    "sample": functools.partial(spread, ddof=1),
}
READY: dict[str, FunctionCall] = {
    "n": summarizers.count(),
    "sum": summarizers.sum("x"),
    "mean": summarizers.mean("x"),
    "low": summarizers.min("x"),
    "high": summarizers.max("x"),
    "spread": summarizers.variance("x"),
    "sample": summarizers.variance("x", ddof=1),
}
ALL = tuple(READY)
ADDING = ("n", "sum", "mean", "low", "high")
ORDER = ("n", "low", "high")


def expected(values, names):
    """What the summaries of a window of these values are; nulls only count."""
    known = [x for x in values if x is not None]
    return {name: len(values) if name == "n" else ORACLES[name](known) for name in names}


def same(one, other):
    """Equal and of one type, where NaN equals NaN; variances up to rounding."""
    for name, value in one.items():
        got = other[name]
        if name in ("spread", "sample") and value is not None:
            assert float(got) == pytest.approx(value, rel=1e-9, abs=1e-9), name
        elif isinstance(value, float) and value != value:
            assert got != got, name
        else:
            assert value == got, name
            assert type(value) is type(got), name


class Reading(WindowEvents[Any, Any]):
    """Emits every window that is processed, as its key, its size and its summary."""

    def on_trigger(self, window, key):
        self.emit((key, window.size(key), window.summary(key).value()))


def check_against_tuples(n, m, values, names=ALL, batch=None):
    """Every window of a stream of values, by slices and by hand."""
    ready = {name: READY[name] for name in names}
    window = build(Sliding(Count(n), every=Count(m)), events=Reading(), summarizer=ready)
    assert " slices " in window.explain()
    rows = [{"x": x} for x in values]
    for row in rows:
        if batch is None:
            window.insert(row)
            window.state.check()
    if batch is not None:
        for start in range(0, len(rows), batch):
            window.insert_many(rows[start : start + batch])
            window.state.check()
    ends = range(m, len(values) + 1, m)
    assert len(ends) == len(window.events.emitted)
    for end, (key, size, got) in zip(ends, window.events.emitted, strict=True):
        held = values[max(0, end - n) : end]
        assert (None, len(held)) == (key, size)
        same(expected(held, names), got)


# -- slices are brute force ---------------------------------------------------------------------

INTS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7]
KINDS: dict[str, Any] = {
    "ints": (INTS, ALL),
    "floats": ([x / 8 - 0.5 for x in INTS], ALL),
    "some nulls": ([None if x in (3, 5) else x for x in INTS], ALL),
    "mostly nulls": ([x if x in (1, 7, 8) else None for x in INTS], ALL),
    "nothing but nulls": ([None] * 20, ALL),
    "a late null": ([*INTS[:17], None, *INTS[17:]], ALL),
    "an early null": ([None, *INTS], ALL),
    "nan": ([NAN if x in (3, 9) else x / 2 for x in INTS], ADDING),
    "nan and nulls": ([{3: NAN, 5: None, 2: NAN}.get(x, x / 2) for x in INTS], ADDING),
    "nothing but nan": ([NAN] * 12, ADDING),
    "inf": ([INF if x == 9 else x / 2 for x in INTS], ADDING),
    "both inf": ([{9: INF, 3: -INF, 6: None}.get(x, x / 2) for x in INTS], ADDING),
    "big ints": ([x * 10**30 + x for x in INTS], ADDING),
    "huge ints": ([(x - 4) * 10**400 for x in INTS], ("n", "sum", "low", "high")),
    "decimals": ([Decimal(x) / 10 for x in INTS], ALL),
    "decimals and nulls": ([None if x == 5 else Decimal(x) / 10 for x in INTS], ALL),
    "timedeltas": ([timedelta(seconds=x) for x in INTS], ADDING),
    "timedeltas and nulls": ([None if x > 4 else timedelta(seconds=x) for x in INTS], ADDING),
    "words": ([chr(96 + x) * x for x in INTS], ORDER),
    "words and nulls": ([None if x > 4 else chr(96 + x) for x in INTS], ORDER),
    "dates": ([date(2024, 1, x) for x in INTS], ORDER),
    "bools": ([x > 4 for x in INTS], ("n", "sum")),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", range(1, 8))
def test_slices_equal_brute_force(n, kind):
    """Overlapping windows, windows that do not divide evenly (n % m), and hopping ones (m > n)."""
    values, names = KINDS[kind]
    for m in range(1, 9):
        check_against_tuples(n, m, values, names)


@pytest.mark.parametrize("name", READY)
@pytest.mark.parametrize(("n", "m"), [(6, 1), (6, 2), (5, 2), (2, 5)])
def test_a_summary_of_its_own_equals_brute_force(n, m, name):
    """One summarizer alone is not a dict, and has text of its own in the generated insert."""
    values = KINDS["some nulls"][0]
    spec = Sliding(Count(n), every=Count(m))
    window = build(spec, events=Reading(), summarizer=READY[name])
    window.insert_many({"x": x} for x in values)
    for end, (_, _, got) in zip(range(m, 99, m), window.events.emitted, strict=False):
        same(expected(values[max(0, end - n) : end], [name]), {name: got})


odd_numbers = st.one_of(
    st.integers(-64, 64).map(lambda x: x / 8), st.none(), st.sampled_from([NAN, INF, -INF])
)


@settings(max_examples=examples(200))
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.lists(st.integers(-(2**70), 2**70) | st.none(), max_size=60),
    st.none() | st.integers(1, 20),
)
def test_slices_of_any_integers_equal_brute_force(n, m, values, batch):
    check_against_tuples(n, m, values, ADDING, batch)


@settings(max_examples=examples(200))
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.lists(odd_numbers, max_size=60),
    st.none() | st.integers(1, 20),
)
def test_slices_of_any_odd_floats_equal_brute_force(n, m, values, batch):
    check_against_tuples(n, m, values, ADDING, batch)


# -- precision ----------------------------------------------------------------------------------


def test_nothing_drifts_when_a_large_value_leaves():
    values = [1e16, 1.0, 1.0, 1.0, -1e16, 1.0, 1.0, 1.0]
    spec = Sliding(Count(2), every=Count(1))
    window = build(spec, events=Reading(), summarizer=READY["sum"])
    window.insert_many({"x": x} for x in values)
    sums = [value for _, _, value in window.events.emitted]
    assert [1e16, 1e16, 2.0, 2.0, -1e16, -1e16, 2.0, 2.0] == sums


@pytest.mark.parametrize(("n", "m"), [(300, 150), (400, 150), (129, 129), (1000, 200), (100, 300)])
def test_long_slices_add_floats_with_care(n, m):
    values = [0.1 * (i % 7) + (1e9 if i % 97 == 0 else 0) for i in range(2500)]
    ready = {"sum": READY["sum"], "mean": READY["mean"]}
    window = build(Sliding(Count(n), every=Count(m)), events=Reading(), summarizer=ready)
    assert " slices " in window.explain()
    window.insert_many({"x": x} for x in values)
    assert len(values) // m == len(window.events.emitted)
    for end, (_, _, got) in zip(range(m, 2501, m), window.events.emitted, strict=True):
        held = values[max(0, end - n) : end]
        assert math.fsum(held) == pytest.approx(got["sum"], rel=1e-15)
        assert math.fsum(held) / len(held) == pytest.approx(got["mean"], rel=1e-15)


@pytest.mark.parametrize(("n", "m"), [(300, 150), (400, 150), (100, 300)])
@pytest.mark.parametrize("kind", ["some nulls", "decimals", "timedeltas", "big ints", "both inf"])
def test_long_slices_equal_brute_force(n, m, kind):
    values, names = KINDS[kind]
    names = tuple(name for name in names if name in ADDING)
    check_against_tuples(n, m, values * 40, names, batch=101)


# -- partitions ---------------------------------------------------------------------------------


class Watching(Reading):
    """Reads the summary when the window is first full as well."""

    def on_initial_full(self, window, key):
        self.emit(("full", key, window.size(key), window.summary(key).value()))


FORGETS = [None, PartitionAge("1s"), PartitionAge("0s"), PartitionCount(1), PartitionCount(2)]
AGES = {
    "n": summarizers.count(),
    "sum": summarizers.sum("age"),
    "mean": summarizers.mean("age"),
    "low": summarizers.min("age"),
    "high": summarizers.max("age"),
}


@settings(max_examples=examples(200))
@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(FORGETS),
    st.sampled_from([KEY, "k", None]),
    streams(form=st.just("named")),
)
def test_slices_of_partitions_equal_the_reference_engine_with_its_tuples(n, m, forget, by, ops):
    """Partitions that age, that are too many, and that come back start afresh."""
    spec = Sliding(Count(n), every=Count(m), by=by, forget=None if by is None else forget)
    kind = Reading if n % m else Watching
    slices = build(spec, events=kind(), summarizer=AGES)
    tuples = build(spec, events=kind(), summarizer=AGES, engine="reference")
    assert " slices " in slices.explain()
    assert " slices " not in tuples.explain()
    for op in ops:
        if isinstance(op, Insert | Many | Advance):
            for window in (slices, tuples):
                apply(window, op, [])
                window.state.check()
            assert tuples.events.emitted == slices.events.emitted
            keys = list(tuples.keys())
            assert keys == list(slices.keys())
            assert [tuples.size(key) for key in keys] == [slices.size(key) for key in keys]
            assert (tuples.seen, len(tuples)) == (slices.seen, len(slices))
            assert [tuples.full(key) for key in keys] == [slices.full(key) for key in keys]


def test_a_null_in_one_partition_leaves_the_others_right():
    window = build(
        Sliding(Count(4), every=Count(2), by="k"),
        events=Reading(),
        summarizer={"sum": READY["sum"], "low": READY["low"], "mean": READY["mean"]},
    )
    for i in range(1, 5):
        window.insert({"k": "a", "x": i})
        window.insert({"k": "b", "x": None if i > 1 else 10})
    a = [{"sum": 3, "low": 1, "mean": 1.5}, {"sum": 10, "low": 1, "mean": 2.5}]
    b = [{"sum": 10, "low": 10, "mean": 10.0}] * 2
    got = {key: [v for k, _, v in window.events.emitted if k == key] for key in "ab"}
    assert {"a": a, "b": b} == got


# -- slices of different types -------------------------------------------------------------------


@pytest.mark.parametrize("values", [(0.5, Decimal("0.5")), (1.0, 1), (0.0, -0.0)], ids=str)
def test_of_equal_extremes_in_several_slices_the_last_one_counts(values):
    summaries = {"low": summarizers.min("x"), "high": summarizers.max("x")}
    for first, last in (values, values[::-1]):
        for engine in ("reference", "generated"):
            spec = Sliding(Count(4), every=Count(2))
            window = build(spec, events=Careful(), summarizer=summaries, engine=engine)
            window.insert_many([{"x": x} for x in (first, first, last, last)])
            shown = [repr({"low": x, "high": x}) for x in (first, last)]
            assert shown == [text for _, text in window.events.emitted]


EQUAL = (0.0, -0.0, 0, 1, 1.0, Decimal(1), Decimal(0), NAN, None)


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(EQUAL), min_size=1, max_size=60), st.integers(1, 30))
def test_of_equal_extremes_in_a_window_that_is_kept_up_to_date_the_last_one_counts(values, n):
    """Which one counts does not depend on how many tuples have left, or come, at once."""
    summaries = {"low": summarizers.min("x"), "high": summarizers.max("x")}
    windows = [
        build(Sliding(Delta("i", n), every=Count(1)), events=Careful(), summarizer=s, engine=engine)
        for s in (summaries, summaries["low"], summaries["high"])
        for engine in ("reference", "generated")
    ]
    for window in windows:
        window.insert_many([{"i": i, "x": x} for i, x in enumerate(values)])
    said = [window.events.emitted for window in windows]
    assert said[::2] == said[1::2]


class Careful(WindowEvents[Any, Any]):
    """Emits every window that is processed, or that its values do not mix."""

    def on_trigger(self, window, key):
        try:
            self.emit((key, repr(window.summary(key).value())))
        except SchemaError:
            self.emit((key, "refused"))


TYPES: dict[str, list[Any]] = {
    "ints": [1, -2, 3],
    "floats": [0.5, -1.0, INF],
    "decimals": [Decimal("0.5"), Decimal(2)],
    "nulls": [None],
    "some": [None, 4],
    "spans": [timedelta(1), timedelta(hours=-3)],
    "words": ["a", "b"],
}
FAMILIES = [
    (("ints", "floats", "decimals", "nulls", "some"), ("n", "sum", "mean", "low", "high")),
    (("ints", "nulls", "some", "words"), ("n", "low", "high")),
    (("ints", "nulls", "spans"), ("sum", "mean", "n")),
]
LONG = {
    "sum": summarizers.sum("x", compensated=True),
    "mean": summarizers.mean("x", compensated=True),
}


@st.composite
def slices_of_kinds(draw):
    """Windows of a few periods, and periods of two partitions, each of values of one kind."""
    kinds, names = draw(st.sampled_from(FAMILIES))
    ready = READY | LONG if draw(st.booleans()) else READY
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    m = draw(st.integers(1, 3))
    rows = []
    for _ in range(draw(st.integers(1, 9))):
        key, kind = draw(st.sampled_from("ab")), draw(st.sampled_from(kinds))
        values = draw(st.lists(st.sampled_from(TYPES[kind]), min_size=m, max_size=m))
        rows += [{"k": key, "x": x} for x in values]
    return draw(st.integers(1, 4)) * m, m, {name: ready[name] for name in chosen}, rows


@settings(max_examples=examples(300))
@given(slices_of_kinds(), st.integers(0, 30))
def test_slices_that_do_not_mix_are_refused_while_they_are_in_one_window(drawn, cut):
    """As if the tuples were read one by one, and with a snapshot taken anywhere."""
    n, m, summaries, rows = drawn
    spec = Sliding(Count(n), every=Count(m), by="k")
    tuples = build(spec, events=Careful(), summarizer=summaries, engine="reference")
    slices = build(spec, events=Careful(), summarizer=summaries)
    for i, row in enumerate(rows):
        if i == cut:
            state = pickle.loads(pickle.dumps(slices.snapshot()))
            slices = build(spec, events=slices.events, summarizer=summaries)
            slices.restore(state)
        tuples.insert(row)
        slices.insert(row)
        slices._check()
    assert tuples.events.emitted == slices.events.emitted


@settings(max_examples=examples(300))
@given(slices_of_kinds(), st.integers(1, 12), st.integers(1, 3))
def test_tuples_that_do_not_mix_are_refused_while_they_are_in_one_window(drawn, n, m):
    """Summaries that are kept up to date say what reading every tuple says."""
    _, _, summaries, rows = drawn
    spec = Sliding(Delta("i", n), every=Count(m), by="k")
    one_by_one = build(spec, events=Careful(), summarizer=summaries, engine="reference")
    up_to_date = build(spec, events=Careful(), summarizer=summaries)
    for window in (one_by_one, up_to_date):
        window.insert_many({"i": i, **row} for i, row in enumerate(rows))
    assert one_by_one.events.emitted == up_to_date.events.emitted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sum", "summarizers.sum('x') of 7: it cannot be added to datetime.timedelta(days=2). "),
        ("high", "summarizers.max('x') of 4: it cannot be compared with datetime.timed"),
        ("spread", "summarizers.variance('x', ddof=0) of "),
    ],
)
def test_a_window_that_cannot_be_merged_says_so_until_it_can(name, text):
    class Read(WindowEvents[Any, Any]):
        def on_trigger(self, window, key):
            try:
                self.emit(window.summary(key).value())
            except SchemaError as error:
                self.emit(str(error))

    def made():
        return build(Sliding(Count(6), every=Count(2)), events=Read(), summarizer=READY[name])

    first = Decimal(1) if name == "spread" else timedelta(1)
    window = made()
    three, four, five, six = map(float if name == "spread" else int, (3, 4, 5, 6))
    window.insert_many([{"x": first}] * 2 + [{"x": x} for x in (three, four)])
    assert window.events.emitted[-1].startswith(text)
    again = made()
    again.restore(pickle.loads(pickle.dumps(window.snapshot())))
    again.insert_many([{"x": five}] * 2)
    assert again.events.emitted[-1].startswith(text)
    again.insert_many([{"x": six}] * 2)
    same({name: ORACLES[name]([3, 4, 5, 5, 6, 6])}, {name: again.events.emitted[-1]})


def test_a_partition_that_age_evicted_starts_with_an_empty_slice():
    spec = Sliding(Count(4), every=Count(2), by=KEY, forget=PartitionAge("10s"))
    window = build(spec, events=Reading(), summarizer=READY["sum"])
    window.insert_many([{"x": 1}, {"x": 2}, {"x": 4}], "aaa")
    window.advance(11)
    window.insert_many([{"x": 8}, {"x": 16}], "aa")
    assert [("a", 2, 3), ("a", 2, 24)] == window.events.emitted


def test_a_partition_that_was_one_too_many_starts_with_an_empty_slice():
    spec = Sliding(Count(4), every=Count(2), by=KEY, forget=PartitionCount(1))
    window = build(spec, events=Reading(), summarizer=READY["sum"])
    window.insert_many([{"x": 1}, {"x": 2}, {"x": 4}, {"x": 8}, {"x": 16}], "abaaa")
    assert [("a", 2, 12)] == window.events.emitted


# -- which configurations keep slices -----------------------------------------------------------

SLICED = {
    "one slice a period": ((4, 2), [], None),
    "one tuple a slice": ((4, 1), [], None),
    "the whole window a slice": ((4, 4), [], None),
    "two slices a period": ((5, 2), ["on_trigger"], None),
    "hopping": ((2, 5), ["on_trigger"], None),
    "full at the end of a slice": ((4, 2), ["on_trigger", "on_initial_full"], None),
    "aging partitions": ((4, 2), ["on_trigger"], PartitionAge("1s")),
    "few partitions": ((4, 2), ["on_trigger"], PartitionCount(3)),
    "flush handlers, which never fire": ((4, 2), ["before_flush", "after_flush"], None),
}
WHOLE = {
    "before_insert": ((4, 2), ["before_insert"], None),
    "after_insert": ((4, 2), ["after_insert"], None),
    "before_evict": ((4, 2), ["before_evict"], None),
    "after_evict": ((4, 2), ["after_evict"], None),
    "on_partitions_evicted": ((4, 2), ["on_partitions_evicted"], PartitionCount(3)),
    "full within a slice": ((5, 2), ["on_initial_full"], None),
    "full while hopping": ((2, 5), ["on_initial_full"], None),
    "no size": ((0, 2), [], None),
    "no trigger": ((4, 0), [], None),
    "tuple count": ((4, 2), [], TupleCount(9)),
    "no partition": ((4, 2), [], PartitionCount(0)),
    "lfu": ((4, 2), [], PartitionCount(3, "lfu")),
    "oldest": ((4, 2), [], PartitionCount(3, "oldest")),
    "operator": ((4, 2), ["select_partitions"], PartitionCount(3, "operator")),
}


def keeps(spec, names=(), summarizer=READY["sum"], **more):
    window = build(spec, events=recorder(names), summarizer=summarizer, **more)
    [line] = [line for line in window.explain().splitlines() if line.startswith("keeps")]
    return line.removeprefix("keeps").strip()


@pytest.mark.parametrize("why", SLICED)
def test_slices_are_kept_where_nobody_can_tell(why):
    (n, m), names, forget = SLICED[why]
    spec = Sliding(Count(n), every=Count(m), by=KEY, forget=forget)
    assert " slices per partition" in keeps(spec, names)


@pytest.mark.parametrize("why", WHOLE)
def test_tuples_are_kept_where_somebody_could_tell(why):
    (n, m), names, forget = WHOLE[why]
    spec = Sliding(Count(n), every=Count(m), by=KEY, forget=forget)
    kept, _, reason = keeps(spec, names).partition("; no slices: ")
    assert "tuples, read by summarizers.sum('x')" == kept
    assert reason


@pytest.mark.parametrize(
    "spec",
    [
        Sliding(Delta("x", 2), every=Count(2)),
        Sliding(Time("2s"), every=Count(2)),
        Sliding(Count(4), every=Delta("x", 2)),
        Sliding(Count(4), every=Time("2s")),
        Sliding(Delta("x", 2), every=Delta("x", 1)),
    ],
    ids=str,
)
def test_tuples_are_kept_for_policies_whose_windows_begin_anywhere(spec):
    begins = f"a window of {spec.evict} at {spec.every} may begin at any tuple"
    assert f"tuples, read by summarizers.sum('x'); no slices: {begins}" == keeps(spec)


def test_tuples_are_kept_for_summarizers_of_your_own_and_by_the_reference_engine():
    class Own(Summarizer[Any]):
        def insert(self, tuple_):
            pass

    spec = Sliding(Count(4), every=Count(2))
    assert keeps(spec, summarizer=Own).startswith("tuples, read by ")
    assert keeps(spec, engine="reference").startswith("tuples, read by ")


@pytest.mark.parametrize(
    ("n", "m", "kept"), [(4, 2, 2), (4, 4, 1), (100, 1, 100), (5, 2, 5), (7, 3, 5), (2, 5, 1)]
)
def test_explain_says_how_many_slices_make_a_window(n, m, kept):
    assert f"{kept} slices per partition" in keeps(Sliding(Count(n), every=Count(m)))


@pytest.mark.parametrize("why", [*SLICED, *WHOLE])
def test_both_kinds_of_storage_read_alike_at_a_trigger(why):
    (n, m), names, forget = {**SLICED, **WHOLE}[why]
    values = KINDS["some nulls"][0]
    extra: dict[str, Any] = dict.fromkeys(set(names) - {"on_trigger"}, lambda *arguments: None)
    if "select_partitions" in names:
        extra["select_partitions"] = lambda self, window, keys: [keys[0]]
    events = type("Extra", (Reading,), extra)()
    spec = Sliding(Count(n), every=Count(m), by=KEY, forget=forget)
    window = build(spec, events=events, summarizer={name: READY[name] for name in ADDING})
    oracle = build(
        spec, events=type("Extra", (Plain,), extra)(), engine="reference", summarizer=Held
    )
    for x in values:
        window.insert({"x": x}, "a")
        oracle.insert({"x": x}, "a")
    assert len(oracle.events.emitted) == len(window.events.emitted)
    for held, (_, size, got) in zip(oracle.events.emitted, window.events.emitted, strict=True):
        assert len(held) == size
        same(expected(held, ADDING), got)


class Held(Summarizer[Any]):
    """No summary at all: the values themselves."""

    def open(self, key):
        self.values = []

    def insert(self, tuple_):
        self.values.append(tuple_["x"])

    def value(self):
        return self.values


class Plain(WindowEvents[Any, Any]):
    """Emits the values of every window that is processed."""

    def on_trigger(self, window, key):
        self.emit(window.summary(key).value())


# -- what slices do not keep --------------------------------------------------------------------


class Tracked:
    """A tuple whose end can be watched."""

    def __init__(self, x):
        self.x = x


def test_slices_keep_no_tuple():
    window = build(Sliding(Count(100), every=Count(10)), summarizer=READY["sum"])
    rows = [Tracked(x) for x in range(25)]
    watched = [weakref.ref(row) for row in rows]
    window.insert_many(rows)
    del rows
    gc.collect()
    assert 25 == window.size()
    assert [None] * 25 == [ref() for ref in watched]


def sliced(n=4, m=2, **more):
    spec = Sliding(Count(n), every=Count(m), by=KEY)
    return build(spec, summarizer=READY["sum"], **more)


def test_the_tuples_of_slices_cannot_be_read():
    window = sliced()
    window.insert({"x": 1}, "a")
    for read in (window.__getitem__, window.oldest, window.newest):
        with pytest.raises(AccessError, match="summary"):
            read("a")
    assert 1 == window.size("a") == len(window)


@pytest.mark.parametrize(("n", "m"), [(4, 2), (5, 2), (5, 3), (2, 5), (3, 3)])
def test_a_summary_is_refused_wherever_slices_are_no_window(n, m):
    window = sliced(n, m)
    for i in range(1, 4 * m):
        window.insert({"x": i}, "a")
        if i % m:
            with pytest.raises(AccessError, match=r"summary\('a'\).*on_trigger"):
                window.summary("a")
        else:
            assert sum(range(max(1, i - n + 1), i + 1)) == window.summary("a").value()


def test_the_summary_of_a_partition_that_is_not_there_is_that_of_nothing():
    assert sliced().summary("nobody").value() is None
    window = build(Sliding(Count(4), every=Count(2)), summarizer=READY)
    nothing = {**dict.fromkeys(READY), "n": 0}
    assert nothing == window.summary().value()


def test_initial_full_reads_the_window_that_its_trigger_reads():
    window = sliced(4, 2, events=Watching())
    window.insert_many([{"x": x} for x in (1, 2, 4, 8, 16, 32)], "aaaaaa")
    expected = [("a", 2, 3), ("full", "a", 4, 15), ("a", 4, 15), ("a", 4, 60)]
    assert expected == window.events.emitted


def test_a_row_of_another_form_than_the_first_is_folded_all_the_same():
    window = build(Sliding(Count(3)), events=Reading(), summarizer=summarizers.sum("age"))
    window.insert_many([{"age": 1}, Row(2, age=2), {"age": 4}, Row(3, age=8)])
    assert [1, 3, 7, 14] == [value for _, _, value in window.events.emitted]
