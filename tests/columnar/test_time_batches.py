"""Time policies over batches: the same as advancing to each row's time, and inserting it."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.timed_pair import (
    KINDS,
    PUNCT,
    Advance,
    Batch,
    Mark,
    Now,
    Restart,
    Side,
    Single,
    at,
    operator,
    same,
)
from tests.helpers.examples import at_least, examples
from windowlib import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
)
from windowlib.columnar import handover
from windowlib.columnar.engines import row_engine
from windowlib.columnar.engines.sliding import AgingEngine
from windowlib.window.consumer import Consumer


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    """Batches go to arrays however short they are, whatever was declined before."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(handover, "MAX_PAUSE", 1)
    monkeypatch.setattr(handover, "MIN_ROWS_PER_TICK", 0)
    monkeypatch.setattr(handover, "MAX_FIRINGS", handover.MAX_FIRINGS)


# -- anything -----------------------------------------------------------------------------------

periods = st.sampled_from([0.5, 1, 1.5, 2, 5]).map(lambda s: Time(timedelta(seconds=s)))
counts = st.integers(1, 5).map(Count)
deltas = st.integers(0, 6).map(lambda d: Delta("a", d))
ages = st.sampled_from([0, 1, 3, 8, 60]).map(lambda s: PartitionAge(timedelta(seconds=s)))
sizes = st.one_of(
    st.integers(2, 4).map(PartitionCount),
    st.integers(3, 30).map(TupleCount),
)


def forgets(by):
    return st.one_of(st.none(), st.none(), ages, sizes) if by else st.none()


@st.composite
def tumbling(draw):
    """Windows that time closes, or that punctuations close, or whose partitions grow old."""
    by = draw(st.sampled_from([None, "k", "k"]))
    forget = draw(forgets(by))
    either = st.builds(lambda count, time: count | time, counts, periods)
    closing = [periods, periods, either, either, st.just(Punct())]
    if isinstance(forget, PartitionAge):
        closing += [counts, deltas]
    return Tumbling(draw(st.one_of(closing)), by=by, forget=forget)


@st.composite
def sliding(draw):
    """All nine windows, with a time in them or with partitions that grow old."""
    by = draw(st.sampled_from([None, "k", "k"]))
    forget = draw(forgets(by))
    evict = draw(st.one_of(periods, counts, deltas))
    free = isinstance(evict, Time) or isinstance(forget, PartitionAge)
    every = draw(st.one_of(periods, counts, deltas) if free else periods)
    return Sliding(evict, every=every, by=by, forget=forget)


STEPS = {
    "ties": [0, 0, 0, 0.000001, 0.25],
    "gaps": [0, 0, 0, 0.000001, 0.25, 0.5, 0.5, 1, 3, 9],
    "on the beat": [0.25, 0.5],
}


@st.composite
def streams(draw, spec):
    """Rows with times that stand still, go on and jump, in batches and one by one."""
    ops: list[Any] = []
    now, a, x = 0.0, 0, 0
    steps = st.sampled_from(STEPS[draw(st.sampled_from(sorted(STEPS)))])
    kinds = ["batch"] * 6 + ["now", "single", "advance", "restart"]
    kinds += ["mark", "mark"] if isinstance(spec.evict, Punct) else []
    for _ in range(draw(st.integers(1, 7))):
        kind, rows = draw(st.sampled_from(kinds)), []
        for _ in range(draw(st.integers(1, 12)) if kind in ("batch", "now") else 1):
            now = now if kind == "now" else round(now + draw(steps), 6)
            a, x = a + draw(st.integers(0, 3)), x + 1
            key, group = draw(st.sampled_from(["p", "q", "r", None])), draw(st.integers(1, 2))
            rows.append({"t": at(now), "k": key, "a": a, "x": x, "g": group})
        if kind == "now":
            ops += [Advance(now), Now(rows)]
        elif kind in ("batch", "single"):
            ops.append(Batch(rows) if kind == "batch" else Single(rows[0]))
        else:
            ops.append({"advance": Advance(now), "restart": Restart(), "mark": Mark()}[kind])
    return ops


def whatever_comes(specs, failing):
    """Any window over any stream, with a reader that fails or does not; what happened, counted."""
    ran: Counter[str] = Counter()

    @settings(max_examples=examples(150))
    @given(st.data())
    def check(data):
        spec, kind = data.draw(specs), data.draw(st.sampled_from(KINDS))
        partial = data.draw(st.sampled_from(["skip", "emit"]))
        handover.MAX_FIRINGS = data.draw(st.sampled_from([6, 1 << 20]))
        ops = data.draw(streams(spec))
        broken = data.draw(st.frozensets(st.integers(1, 30), min_size=1, max_size=4))
        same(operator(spec, kind, partial), ops, ran, broken if failing else frozenset())

    check()
    return ran


@pytest.mark.search
@pytest.mark.parametrize("specs", [tumbling(), sliding()], ids=["tumbling", "sliding"])
def test_batches_give_what_advancing_and_inserting_each_row_gives(specs):
    ran = whatever_comes(specs, failing=False)
    assert ran["columnar"] > at_least(0.6) * ran["batches"] > 0
    assert ran["fired"]


@pytest.mark.search
@pytest.mark.parametrize("specs", [tumbling(), sliding()], ids=["tumbling", "sliding"])
def test_a_failure_leaves_what_it_leaves_row_by_row(specs):
    ran = whatever_comes(specs, failing=True)
    assert ran["columnar"] > at_least(0.4) * ran["batches"] > 0


@pytest.mark.parametrize(
    "spec", [Tumbling(Time("10s")), Sliding(Count(2), every=Time("10s")), Tumbling(Punct())]
)
def test_a_reader_of_firings_that_fails_without_saying_where_is_told_of_none_twice(spec):
    told: list[int] = []

    def fail(firings: Any) -> None:
        told.append(len(firings))
        raise RuntimeError("full")

    kind: Any = SlidingWindow if isinstance(spec, Sliding) else TumblingWindow
    window = kind(spec, consumer=Consumer(fail))
    window.insert_batch(pa.record_batch({"x": [1, 2, 3]}))
    for now in (10, 20):
        with pytest.raises(RuntimeError, match="full") if now == 10 else nullcontext():
            window.punctuate() if isinstance(spec.evict, Punct) else window.advance(now)
        window.state.intercept(lambda _: lambda firings: told.append(10 * len(firings)))
    again = [10] if isinstance(spec, Sliding) else []  # which fires the same at the next tick
    assert [1, *again] == told


# -- exact instants -----------------------------------------------------------------------------

TEN = Time("10s")
LAST = 9.999999
INSTANTS: dict[str, tuple[Any, list[float], list[tuple[float, list[int]]]]] = {
    "a row at a tick comes behind it": (
        Tumbling(TEN),
        [3, 10, 20],
        [(10, [1]), (20, [2])],
    ),
    "a row just before a tick": (Tumbling(TEN), [LAST, 10], [(10, [1])]),
    "ticks before the first row": (Tumbling(TEN), [25], [(10, []), (20, [])]),
    "ticks between two rows": (Tumbling(TEN), [5, 35], [(10, [1]), (20, []), (30, [])]),
    "a tuple as old as the period": (
        Sliding(TEN, every=Count(1)),
        [0, 10],
        [(0, [1]), (10, [1, 2])],
    ),
    "a tuple older than the period": (
        Sliding(TEN, every=Count(1)),
        [0, 10.000001],
        [(0, [1]), (10.000001, [2])],
    ),
    "a delta trigger looks at what time has emptied": (
        Sliding(TEN, every=Delta("a", 1)),
        [0, 10.000001, 20.000001],
        [(10.000001, []), (20.000001, [2])],
    ),
    "a tick finds what is as old as the period": (
        Sliding(TEN, every=TEN),
        [10, 25],
        [(10, []), (20, [1])],
    ),
    "a tick at the instant of an expiry comes behind it": (
        Sliding(TEN, every=TEN),
        [LAST, 25],
        [(10, [1]), (20, [])],
    ),
    "the last tuple is gone before a tick, and others come": (
        Sliding(TEN, every=TEN),
        [LAST, 20, 30],
        [(10, [1]), (20, []), (30, [2])],
    ),
    "ticks fire the same again": (
        Sliding(Count(2), every=TEN),
        [1, 2, 3, 25],
        [(10, [2, 3]), (20, [2, 3])],
    ),
    "full in time": (Tumbling(Count(2) | TEN), [0, LAST], [(LAST, [1, 2])]),
    "too late to be full": (Tumbling(Count(2) | TEN), [0, 10, 10], [(10, [1]), (10, [2, 3])]),
    "over long before the next row": (Tumbling(Count(2) | TEN), [4, 35], [(14, [1])]),
}


@pytest.mark.parametrize("cut", range(3))
@pytest.mark.parametrize("name", INSTANTS)
def test_an_exact_instant(name, cut):
    spec, times, expected = INSTANTS[name]
    side = Side(operator(spec, "looks"), batches=True)
    rows = [
        {"t": at(t), "k": None, "a": 2 * i, "x": i, "g": 0} for i, t in enumerate(times, start=1)
    ]
    for part in (rows[:cut], rows[cut:]):
        if part:
            side.do_whole(Batch(part))
            assert side.window.state.in_arrays
    assert [(row["now"], row["x"]) for row in side.out] == expected


# -- partitions ---------------------------------------------------------------------------------


def keyed(*rows):
    """Rows from times and keys."""
    return [{"t": at(t), "k": k, "a": 0, "x": x, "g": 0} for x, (t, k) in enumerate(rows, start=1)]


def fired(side):
    return [(row["key"], row["x"]) for row in side.out]


def test_a_tick_fires_partitions_in_the_order_in_which_they_came():
    side = Side(operator(Tumbling(TEN, by="k"), "looks"), batches=True)
    side.do(Batch(keyed((1, "q"), (2, "p"))))
    side.do(Batch(keyed((3, "r"), (4, "p"), (11, "p"), (12, "q"), (30, "q"))))
    assert side.window.state.in_arrays
    first = [("q", [1]), ("p", [2, 2]), ("r", [1])]
    assert fired(side) == [*first, ("p", [3]), ("q", [4]), (None, [])]


def test_a_partition_that_comes_back_is_the_last_in_storage():
    side = Side(operator(Sliding(TEN, every=TEN, by="k"), "looks"), batches=True)
    side.do(Batch(keyed((1, "p"), (9, "q"), (18, "q"), (19, "p"), (20, "q"))))
    assert side.window.state.in_arrays
    assert fired(side) == [("p", [1]), ("q", [2]), ("q", [3]), ("p", [4])]


def test_a_partition_that_time_has_emptied_keeps_what_its_trigger_has_counted():
    side = Side(operator(Sliding(TEN, every=Count(3), by="k"), "looks"), batches=True)
    side.do(Batch(keyed((0, "p"), (1, "p"), (2, "q"))))
    side.do(
        Batch(
            keyed(
                (30, "q"),
            )
        )
    )
    assert side.window.state.in_arrays
    state = side.state()["windows"][0]
    assert [part["key"] for part in state["asleep"]] == ["p"]
    side.do(Batch(keyed((31, "p"), (32, "q"))))
    assert fired(side) == [("p", [1]), ("q", [1, 2])]


@pytest.mark.parametrize(
    ("rows", "evicted"),
    [
        ([(0, "p"), (4, "q"), (6, "q")], ["p"]),  # when another's row arrives
        ([(0, "p"), (6, "p")], ["p"]),  # when its own arrives
        ([(0, "p"), (5, "p"), (10, "p")], []),  # as old as the age is not too old
        ([(0, "p"), (4, "q"), (5, "p"), (9, "q")], []),
    ],
)
@pytest.mark.parametrize("cut", range(3))
def test_partitions_of_an_age_are_evicted_when_a_row_arrives(rows, evicted, cut):
    spec = Tumbling(Count(9), by="k", forget=PartitionAge("5s"))
    made = operator(spec, "numbers")
    one, many = Side(made, batches=False), Side(made, batches=True)
    parts = [part for part in (keyed(*rows)[:cut], keyed(*rows)[cut:]) if part]
    for part in parts:
        one.do(Batch(part))
        many.do(Batch(part))
    # Where one is evicted, the event engine has taken the batch.
    assert many.window.state.in_arrays is not bool(evicted)
    assert one.state() == many.state()


# -- where the state is -------------------------------------------------------------------------


def test_punctuations_flush_arrays_and_leave_them():
    side = Side(operator(Tumbling(Punct(), by="k"), "numbers"), batches=True)
    for _ in range(3):
        side.do(Batch(keyed((1, "q"), (1, "p"), (1, "q"))))
        side.do(Mark())
        assert side.window.state.in_arrays
    rows = [row for row in side.out if row != PUNCT]
    assert [(row["n"], row["sum"]) for row in rows] == [(2, 4), (1, 2)] * 3


def test_a_punctuation_for_nothing_is_said_once():
    side = Side(operator(Tumbling(Punct()), "numbers"), batches=True)
    side.do(Batch(keyed((1, "p"))))
    side.do(Mark())
    side.do(Mark())
    assert side.out[1:] == [PUNCT, PUNCT]


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(TEN, by="k"),
        Tumbling(Count(5) | TEN, by="k"),
        Sliding(TEN, every=Count(1), by="k"),
        Sliding(Count(3), every=TEN, by="k"),
        Sliding(TEN, every=Time("4s"), by="k"),
    ],
    ids=str,
)
def test_the_clock_moves_arrays(spec):
    made = operator(spec, "looks")
    one, many = Side(made, batches=False), Side(made, batches=True)
    for op in (Batch(keyed((1, "q"), (8, "p"))), Advance(9), Advance(10.5)):
        one.do(op)
        many.do(op)
        assert many.window.state.in_arrays
    assert one.out == many.out
    assert one.running.due() == many.running.due()
    assert one.state() == many.state()


def test_ticks_that_find_nothing_again_and_again_are_for_the_event_engine(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS_PER_TICK", 300)
    side = Side(operator(Tumbling(TEN), "numbers"), batches=True)
    rows = keyed(*((30 * i, "p") for i in range(20)))
    side.do(Batch(rows))
    assert not side.window.state.in_arrays
    assert side.window.state.batches.reason == "fewer than 300 rows between ticks that stop them"
    assert [row["sum"] for row in side.out if row != PUNCT] == list(range(1, 20))


def test_long_windows_are_not_moved_for_a_few_rows_for_ever(monkeypatch):
    monkeypatch.setattr(row_engine, "ROOM", 0)
    monkeypatch.setattr(AgingEngine, "worth", 1)
    side = Side(operator(Sliding(Time("1h"), every=Count(50)), "numbers"), batches=True)
    side.do(Batch(keyed(*((i, "p") for i in range(40)))))
    ahead = []
    for i in range(40, 100):
        side.do(Batch(keyed((i, "p"))))
        ahead.append(side.window.state.in_arrays)
    assert ahead[:20] == [True] * 20  # giving up at once would cost more
    assert not ahead[-1]
    assert side.window.state.batches.reason.startswith("windows that are long against the batch")
    assert [row["n"] for row in side.out if row != PUNCT] == [50, 100]
