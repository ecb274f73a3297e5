"""Joins: every configuration against nested loops, restarts anywhere, and nothing lost."""
# ruff: noqa: SIM300 - asserts read expected first

import itertools
import random
from collections import namedtuple
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples, is_thorough
from tests.helpers.join_oracle import MARK, NestedLoops, outcome, plain
from windowlib import (
    Count,
    Delta,
    Graph,
    Operator,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    Punct,
    SchemaError,
    Sliding,
    StateVersionError,
    Time,
    Tumbling,
    TupleCount,
    advance,
    replay,
    restart,
    to,
)
from windowlib.operators import Join, Lookup

NAN = float("nan")
HOWS = ("inner", "left", "right", "outer", "semi", "anti")
EVICTIONS: list[Any] = [Count(3), Delta("ts", 4), Time("4s")]
FORGETS: list[Any] = [PartitionCount(2), TupleCount(4), PartitionAge("3s")]
KEYS = [1, 2, 2.0, 3, None, NAN]


def closer(left, right):
    return (left["x"] + right["x"]) % 3 > 0


def numbered(steps, seed, *, time):
    """A stream: rows for both sides with ties, nulls, NaN and values that go back; and restarts."""
    rnd = random.Random(seed)
    ts, now, numbers = 0, 0, itertools.count(1)
    for _ in range(steps):
        what = rnd.choice(["left"] * 5 + ["right"] * 5 + ["advance"] * 2 * time + ["restart"])
        if what == "restart":
            yield "restart", None
        elif what == "advance":
            now += rnd.choice([0, 1, 1, 2, 3, 9])
            yield "advance", now
        else:
            ts += rnd.choice([0, 0, 1, 1, 2, 3, -2])
            row = {"k": rnd.choice(KEYS), "g": rnd.choice("abc"), "ts": ts, "x": rnd.randrange(3)}
            yield what, row | {"n" if what == "left" else "m": next(numbers)}


def timed(*specs):
    return any(spec.timed or isinstance(spec.forget, PartitionAge) for spec in specs)


def check(left, right, steps, **options):
    """The join gives what nested loops give, to the order of rows and punctuations."""
    options = {"how": "inner"} | options
    on = options.get("on") or ()
    oracle = NestedLoops(left, right, **options | {"on": [on] if isinstance(on, str) else on})
    join = Join(left=left, right=right, **options | {"on": on or None})
    assert plain(oracle.run(steps)) == plain(outcome(join, steps))


def config_name(value):
    return str(value).replace("sliding, ", "").replace(", count(1)", "")


UNPARTITIONED = [Sliding(evict) for evict in EVICTIONS]
PARTITIONED = [Sliding(e, by="g", forget=f) for e in EVICTIONS for f in FORGETS]
NINETY = [*itertools.product(UNPARTITIONED, repeat=2), *itertools.product(PARTITIONED, repeat=2)]
PLAIN = [Sliding(evict, by="g") for evict in EVICTIONS]
ONE_SIDED = [
    pair
    for other in (PLAIN[0], PLAIN[1], PARTITIONED[3], Sliding(Count(0)))
    for pair in ((UNPARTITIONED[0], other), (other, UNPARTITIONED[2]))
]


def some_hows(number):
    """All kinds of joins, with a seed each; one of them in a quick run, another for each number."""
    known = list(enumerate(HOWS))
    return known if is_thorough() else [known[number % len(known)]]


def test_there_are_ninety_configurations():
    assert 90 == len(NINETY) == len({(repr(left), repr(right)) for left, right in NINETY})


@pytest.mark.search
@pytest.mark.parametrize(("left", "right"), NINETY, ids=config_name)
def test_a_join_equals_nested_loops_in_all_ninety_configurations(left, right):
    for seed, how in some_hows(NINETY.index((left, right))):
        steps = list(numbered(70, seed, time=timed(left, right)))
        check(left, right, steps, how=how, on="k")
        check(left, right, steps, how=how, on=["k", "x"], where=closer)


@pytest.mark.filterwarnings("ignore:.*nothing moved the clock")
@pytest.mark.parametrize(
    ("left", "right"), [*itertools.product(PLAIN, repeat=2), *ONE_SIDED], ids=config_name
)
def test_partitions_without_eviction_and_on_one_side_only_equal_nested_loops(left, right):
    for seed, how in enumerate(HOWS):
        steps = list(numbered(70, seed, time=timed(left, right)))
        check(left, right, steps, how=how, on="k")


@pytest.mark.search
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "options",
    [{}, {"where": closer}, {"within": Delta("ts", 2)}, {"within": Delta("ts", 1), "on": "k"}],
    ids=["every pair", "where", "band", "band and key"],
)
def test_every_way_of_finding_matches_equals_nested_loops(how, options):
    for seed, (left, right) in enumerate(NINETY[:: 7 if is_thorough() else 17]):
        steps = list(numbered(50, seed, time=timed(left, right)))
        check(left, right, steps, how=how, **options)


# -- random everything --

sizes = st.integers(1, 4)
evictions = st.one_of(
    sizes.map(Count), sizes.map(lambda d: Delta("ts", d)), sizes.map(lambda t: Time(f"{t}s"))
)
forgets = st.one_of(
    st.none(),
    st.integers(0, 3).map(PartitionCount),
    st.integers(0, 5).map(TupleCount),
    sizes.map(lambda t: PartitionAge(f"{t}s")),
)
specs = st.one_of(
    st.builds(Sliding, evictions),
    st.builds(Sliding, evictions, by=st.sampled_from(["g", "k"]), forget=forgets),
)
rows = st.fixed_dictionaries(
    {
        "k": st.sampled_from(KEYS),
        "g": st.sampled_from(["a", "b", None]),
        "ts": st.integers(0, 9),
        "x": st.integers(0, 2),
    },
    optional={"note": st.booleans()},
)


@st.composite
def streams(draw):
    """Steps in which a row may come several times, as the same object."""
    known = draw(st.lists(rows, min_size=1, max_size=12))
    steps, now = [], 0
    for _ in range(draw(st.integers(0, 30))):
        what = draw(st.sampled_from(["left", "right", "left", "right", "advance", "restart"]))
        if what == "advance":
            now += draw(st.integers(0, 3))
        values = {"advance": now, "restart": None}
        steps.append((what, values[what] if what in values else draw(st.sampled_from(known))))
    return steps


OPTIONS = st.fixed_dictionaries(
    {"how": st.sampled_from(HOWS)},
    optional={
        "on": st.sampled_from(["k", ["k", "g"]]),
        "where": st.just(closer),
        "within": st.integers(0, 3).map(lambda d: Delta("ts", d)),
    },
)


@pytest.mark.filterwarnings("ignore:.*nothing moved the clock")
@settings(max_examples=examples(400))
@given(left=specs, right=specs, steps=streams(), options=OPTIONS, apart=st.booleans())
def test_any_join_over_any_stream_with_restarts_equals_nested_loops(
    left, right, steps, options, apart
):
    if apart and options["how"] in ("left", "right", "outer"):
        options = options | {"unmatched": "port"}
    check(left, right, steps, **options)


@pytest.mark.filterwarnings("ignore:.*nothing moved the clock")
@given(left=specs, right=specs, steps=streams(), apart=st.booleans())
def test_an_outer_join_loses_no_row(left, right, steps, apart):
    join = Join(
        left=left,
        right=right,
        on="k",
        how="outer",
        unmatched="port" if apart else "row",
        select=lambda a, b: (a and ("left", a["id"]), b and ("right", b["id"])),
    )
    numbers = itertools.count()
    steps = [
        (what, row | {"id": next(numbers)} if row and "k" in row else row)
        if what in ("left", "right")
        else (what, row)
        for what, row in steps
    ]
    sent = {(what, row["id"]) for what, row in steps if what in ("left", "right")}
    came: set[Any] = set()
    for port, item in outcome(join, steps):
        if port != "matches":
            came.add((port.removeprefix("unmatched_"), item["id"]))
        elif item != MARK:
            came |= {part for part in item if part}
    assert sent == came


@pytest.mark.filterwarnings("ignore:.*nothing moved the clock")
@given(left=specs, right=specs, steps=streams(), options=OPTIONS)
def test_the_indexes_hold_the_residents_and_nothing_else(left, right, steps, options):
    running = Join(left=left, right=right, **options).open()
    join = running.operator
    assert isinstance(join, Join)
    for what, value in steps:
        if what == "advance":
            running.advance(value)
        elif what != "restart":
            running.insert(value, running.model.input(what, ""))
        for side in join._sides:
            inside = list(side.residents())
            assert len(side.window) == len(side)
            assert [*map(id, side.rows())] == [id(resident.row) for resident in inside]
            findable = {id(resident) for resident in inside if resident.key is not None}
            assert findable == {*map(id, side.index)}


# -- what comes out, and when --


def L(k, **more):  # noqa: N802 - reads as the side it is
    return to("left", {"k": k, **more})


def R(k, **more):  # noqa: N802
    return to("right", {"k": k, **more})


def shown(join, steps):
    """Rows as short text, `|` for a punctuation, other ports with their name."""
    texts = []
    for port, item in replay(join, steps).items():
        if repr(item) == "punct()":
            texts.append("|")
        else:
            text = " ".join(f"{name}={value}" for name, value in item.items())
            texts.append(text if port == "matches" else f"{port}: {text}")
    return texts


def two(how="inner", **more):
    return Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k", how=how, **more)


def test_matches_come_oldest_to_newest_and_end_with_one_punctuation():
    assert ["k=1 l=1 r=3", "k=1 l=2 r=3", "|"] == shown(two(), [L(1, l=1), L(1, l=2), R(1, r=3)])


def test_a_tuple_never_joins_its_own_side():
    assert [] == shown(two(), [L(1), L(1), L(1)])


def test_matches_come_before_the_row_that_is_evicted_unmatched():
    steps = [R(2, r=0), L(1, l=1), L(3, l=2), L(2, l=3)]
    assert ["k=2 l=3 r=0", "k=1 l=1 r=None", "|", "k=3 l=2 r=None", "|"] == shown(
        two("left"), steps
    )


def test_a_row_that_matched_on_arrival_does_not_come_out_again_when_it_leaves():
    assert ["k=1 l=1 r=1", "|", "k=2 l=None r=None", "|"] == shown(
        two("left"), [R(1, r=1), L(1, l=1), L(2)]
    )


def test_a_probe_without_a_match_comes_out_at_once():
    join = Join(left=Sliding(Count(0)), right=Sliding(Count(5)), on="k", how="left")
    assert ["k=1", "|", "k=1 r=1", "|", "k=2 r=None", "|"] == shown(
        join, [L(1), R(1, r=1), L(1), L(2)]
    )


def test_a_probe_is_not_stored():
    join = Join(left=Sliding(Count(0)), right=Sliding(Count(5)), on="k")
    assert [] == shown(join, [L(1), L(1), R(1)])


def test_unmatched_rows_may_have_their_own_ports_and_these_carry_no_punctuation():
    join = two("outer", unmatched="port")
    assert ["matches", "unmatched_left", "unmatched_right"] == [
        port.name for port in join.model.outputs
    ]
    assert ["k=3", "|", "unmatched_left: k=1", "unmatched_right: k=2"] == shown(
        join, [L(1), R(2), L(3), R(3)]
    )


def test_one_outer_side_has_one_port():
    join = two("right", unmatched="port")
    assert ["matches", "unmatched_right"] == [port.name for port in join.model.outputs]
    assert ["unmatched_right: k=2"] == shown(join, [L(1), R(2)])


def test_time_evicts_one_batch_per_instant_over_both_sides():
    join = Join(left=Sliding(Time("5s")), right=Sliding(Time("3s")), on="k", how="outer")
    steps = [L(1), L(2), advance(2), R(3), L(4), advance(20)]
    assert ["k=1", "k=2", "k=3", "|", "k=4", "|"] == shown(join, steps)


def test_evicted_partitions_give_their_unmatched_rows():
    join = Join(
        left=Sliding(Count(5), by="k", forget=PartitionCount(1)),
        right=Sliding(Count(5)),
        on="k",
        how="left",
    )
    steps = [L(1, l=1), L(1, l=2), R(1), L(1, l=3), L(2, l=4)]
    assert ["k=1 l=1", "k=1 l=2", "|", "k=1 l=3", "|", "k=2 l=4", "|"] == shown(join, steps)
    steps = [L(1, l=1), L(1, l=2), L(2, l=3), R(2)]
    assert ["k=1 l=1", "k=1 l=2", "|", "k=2 l=3", "|"] == shown(join, steps)


def test_a_partition_that_evicts_itself_gives_the_new_row_too():
    join = Join(
        left=Sliding(Count(5), by="k", forget=TupleCount(1)),
        right=Sliding(Count(1)),
        on="k",
        how="left",
    )
    assert ["k=1 l=1", "k=1 l=2", "|"] == shown(join, [L(1, l=1), L(1, l=2)])


def test_semi_gives_a_left_row_once_at_its_first_match():
    steps = [L(1, l=1), L(2, l=2), R(1), R(1), L(1, l=3), R(1)]
    assert ["k=1 l=1", "|", "k=1 l=3", "|"] == shown(two("semi"), steps)


def test_anti_gives_left_rows_that_leave_or_stay_without_a_match():
    steps = [L(1, l=1), L(2, l=2), R(2), L(3, l=3), L(4, l=4)]
    assert ["k=1 l=1", "|", "k=3 l=3", "k=4 l=4", "|"] == shown(two("anti"), steps)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_give_the_very_row(how):
    row = {"k": 1}
    steps = [to("left", row)] + [to("right", {"k": 1})] * (how == "semi")
    (came,) = replay(two(how), steps)
    assert row is came


def test_null_keys_never_match_and_nan_equals_nan():
    assert [] == shown(two(), [L(None), R(None)])
    assert ["k=nan", "|"] == shown(two(), [L(float("nan")), R(float("nan"))])
    pair = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on=("k", "j"))
    assert [] == shown(pair, [L(1, j=None), R(1, j=None)])
    assert ["k=1 j=nan", "|"] == shown(pair, [L(1, j=float("nan")), R(1, j=float("nan"))])
    both = (1, float("nan")), (1, float("nan"))
    assert ["k=(1, nan)", "|"] == shown(two(), [L(both[0]), R(both[1])])
    made = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on=lambda t: (1, t["k"]))
    assert 2 == len(shown(made, [L(float("nan")), R(float("nan"))]))


def test_without_on_partitions_scope_eviction_and_not_matching():
    join = Join(left=Sliding(Count(1)), right=Sliding(Count(1)), partition_by="k")
    assert ["k=1 k_right=3", "k=2 k_right=3", "|"] == shown(join, [L(1), L(2), R(3)])


def test_at_the_end_left_comes_before_right_in_storage_order():
    join = Join(left=Sliding(Count(2), by="k"), right=Sliding(Count(9)), on="k", how="outer")
    steps = [R(9), L(1, l=1), L(2, l=2), L(1, l=3)]
    texts = ["k=1 l=1", "k=1 l=3", "k=2 l=2", "k=9 l=None", "|"]
    assert texts == shown(join, steps)


def test_time_that_still_runs_after_the_end_puts_nothing_out_twice():
    came: list[Any] = []
    join = Join(left=Sliding(Time("1s")), right=Sliding(Time("1s")), on="k", how="outer")
    running = join.open()
    running.connect(0, came.append)
    running.insert({"k": 1})
    running.finish()
    running.advance(10)
    assert [{"k": 1}] == came


# -- rows --


class Trade(NamedTuple):
    symbol: str
    ts: int
    price: float


@dataclass(frozen=True)
class Quote:
    symbol: str
    ts: int
    bid: float


class Thing:
    def __init__(self, **fields):
        vars(self).update(fields)


def test_an_as_of_join_as_users_write_it():
    match = Join(
        left=Sliding(Delta("ts", 10)),
        right=Sliding(Count(1)),
        on="symbol",
        how="left",
        where=lambda t, q: q.ts <= t.ts,
    )
    steps = [
        to("right", Quote("A", 1, 9.5)),
        to("left", Trade("A", 2, 10.0)),
        to("left", Trade("B", 3, 20.0)),
        to("right", Quote("B", 5, 19.0)),
        to("left", Trade("A", 14, 11.0)),
    ]
    expected = [
        {"symbol": "A", "ts": 2, "price": 10.0, "ts_right": 1, "bid": 9.5},
        {"symbol": "B", "ts": 3, "price": 20.0, "ts_right": None, "bid": None},
        {"symbol": "A", "ts": 14, "price": 11.0, "ts_right": None, "bid": None},
    ]
    assert expected == list(replay(match, steps))


@pytest.mark.parametrize(
    "row",
    [
        {"symbol": "A", "ts": 2, "price": 1.0},
        Trade("A", 2, 1.0),
        Thing(symbol="A", ts=2, price=1.0),
    ],
    ids=["dict", "named tuple", "object"],
)
def test_rows_of_any_form_with_names_are_put_together(row):
    join = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="symbol")
    expected = {"symbol": "A", "ts": 2, "price": 1.0, "ts_right": 1, "bid": 3.0}
    steps = [to("right", Quote("A", 1, 3.0)), restart(), to("left", row)]
    assert [expected] == list(replay(join, steps))


class Sold:
    def __init__(self, text):
        self.text = text

    @property
    def symbol(self):
        return self.text.upper()


def test_a_key_may_be_a_property():
    join = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="symbol", how="outer")
    steps = [to("left", Sold("a")), to("right", Quote("A", 1, 3.0)), to("right", Sold("b"))]
    first, second = replay(join, [each for step in steps for each in (step, restart())])
    assert {"symbol": "A", "text": "a", "ts": 1, "bid": 3.0} == first
    assert "B" == second["symbol"]


def test_forms_may_mix_within_a_side():
    steps = [L(1, a=1), to("left", Thing(k=1, b=2)), R(1)]
    assert ["k=1 a=1 b=None", "k=1 a=None b=2", "|"] == shown(two(), steps)


def test_select_shapes_rows_and_sees_none_for_the_side_that_is_missing():
    join = Join(
        left=Sliding(Count(2)),
        right=Sliding(Count(2)),
        on=abs,
        how="outer",
        select=lambda left, right: (left, right),
    )
    steps = [to("left", 1), to("right", -1), to("right", 2), to("left", 3)]
    assert [(1, -1), (3, None), (None, 2)] == list(replay(join, steps))


def test_columns_with_other_names_are_both_kept_and_shared_ones_come_once():
    join = Join(
        left=Sliding(Count(1)),
        right=Sliding(Count(1)),
        left_on=("day", "user"),
        right_on=("day", "id"),
        suffixes=("_l", "_r"),
    )
    steps = [
        to("left", {"day": 1, "user": 7, "x": 1}),
        to("right", {"day": 1, "id": 7, "x": 2}),
    ]
    assert [{"day": 1, "user": 7, "x_l": 1, "id": 7, "x_r": 2}] == list(replay(join, steps))


def test_the_key_of_an_unmatched_right_row_is_in_its_column():
    assert ["k=1 l=None r=1", "|"] == shown(two("right"), [L(2, l=1), R(1, r=1)])[-2:]


def test_equal_keys_of_two_types_show_the_left_one():
    (row,) = replay(two(), [L(1), R(1.0)])
    assert "{'k': 1}" == repr(row)


def test_input_rows_are_not_changed_and_output_rows_are_new():
    left, right = {"k": 1, "x": 1}, {"k": 1, "x": 2}
    (row,) = replay(two(), [to("left", left), to("right", right)])
    assert ({"k": 1, "x": 1}, {"k": 1, "x": 2}) == (left, right)
    assert row is not left


def test_one_object_may_come_many_times():
    row = {"k": 1}
    steps = [to("left", row)] * 3 + [to("right", {"k": 2})] + [to("left", row)] * 3
    assert 7 == len(list(replay(two("outer"), steps)))


def test_of_one_object_that_came_several_times_the_oldest_leaves_first():
    join = Join(left=Sliding(Count(3)), right=Sliding(Count(1)), on="k", how="left")
    twin = to("left", {"k": 1})
    for pause in ([], [restart()]):
        # Two that have matched leave for 3 and 4; only then, for 5, the one that has not.
        steps = [twin, twin, R(1), R(2), twin, *pause, L(3), L(4), R(9), R(3), L(5)]
        assert ["k=1", "k=1", "|", "k=3", "|", "k=1", "|", "k=4", "k=5", "|"] == shown(join, steps)


# -- bands --


def test_a_band_matches_up_to_its_width_in_order_of_arrival():
    join = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), within=Delta("ts", 2))
    steps = [L(1, ts=7), L(2, ts=3), L(3, ts=5), L(4, ts=8), R(0, ts=5)]
    rows = [row["k"] for row in replay(join, steps)]
    assert [1, 2, 3] == rows


def test_a_band_computes_distances_as_they_are_defined():
    join = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), within=Delta("ts", 0.1))
    values = [i / 10 for i in range(40)]
    for value in values:
        steps = [*(L(v, ts=v) for v in values), R(0, ts=value)]
        expected = [v for v in values[-9:] if abs(v - value) <= 0.1]
        assert expected == [row["k"] for row in replay(join, steps)]


def test_a_band_over_datetimes_reaches_to_the_ends_of_time():
    join = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), within=Delta("ts", "1d"))
    steps = [
        L(1, ts=datetime.max),
        R(2, ts=datetime.max - timedelta(hours=1)),
        L(3, ts=datetime.min),
    ]
    assert [(1, 2)] == [(row["k"], row["k_right"]) for row in replay(join, steps)]


@pytest.mark.parametrize("nothing", [None, NAN])
def test_null_and_nan_are_within_no_band_and_are_not_lost(nothing):
    join = Join(
        left=Sliding(Count(9)),
        right=Sliding(Count(9)),
        within=Delta("ts", 5),
        how="outer",
        select=lambda a, b: (a and a["k"], b and b["k"]),
    )
    steps = [L(1, ts=nothing), R(2, ts=nothing), R(3, ts=0), restart(), L(4, ts=2)]
    assert [(4, 3), (1, None), (None, 2)] == list(replay(join, steps))


def test_a_band_refuses_values_that_do_not_mix_and_goes_on():
    join = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), within=Delta("ts", 5))
    for restarts in ([], [restart()]):
        steps = [L(1, ts=1), *restarts, R(2, ts="x")]
        with pytest.raises(SchemaError, match="'x' is of type str, which has no distance"):
            list(replay(join, steps))
    join = Join(left=Sliding(Count(1)), right=Sliding(Count(9)), within=Delta("ts", "5s"))
    aware = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    came: list[Any] = []
    running = join.open()
    running.connect(0, came.append)
    running.insert({"ts": aware}, 0)
    with pytest.raises(SchemaError) as caught:
        running.insert({"ts": datetime(2026, 1, 1)}, 1)
    message = (
        f"within=Delta('ts', \"5s\"): the value {datetime(2026, 1, 1)!r} does not mix with "
        f"{aware!r} before it. Use one type for both inputs."
    )
    assert message == str(caught.value)
    running.insert({"ts": aware}, 1)
    assert [{"ts": aware, "ts_right": aware}] == came


def test_a_band_remembers_the_types_it_has_seen_across_a_restart():
    join = Join(left=Sliding(Count(1)), right=Sliding(Count(1)), within=Delta("ts", 1))
    for pause in ([], [restart()]):
        steps = [L(1, ts=0.5), L(2, ts=None), *pause, L(3, ts=Decimal(1))]
        with pytest.raises(SchemaError, match=r"does not mix with 0\.5 before it"):
            list(replay(join, steps))


# -- cost --


def test_only_rows_with_the_same_key_are_ever_looked_at():
    asked = []
    join = Join(
        left=Sliding(Count(100)),
        right=Sliding(Count(100)),
        on="k",
        where=lambda a, b: asked.append((a["k"], b["k"])),
    )
    list(replay(join, [step for i in range(200) for step in (L(i), R(i))]))
    assert [(i, i) for i in range(200)] == asked


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_left_row_that_has_matched_is_not_looked_at_again(how):
    asked = []

    def where(left, right):
        asked.append(right["n"])
        return True

    join = Join(left=Sliding(Count(9)), right=Sliding(Count(9)), on="k", how=how, where=where)
    list(replay(join, [L(1), R(1, n=1), R(1, n=2), restart(), R(1, n=3), L(1), L(1)]))
    assert [1, 1, 1] == asked


# -- when something goes wrong --


def opened(join):
    came: list[Any] = []
    running = join.open()
    running.connect(0, came.append, lambda: came.append(MARK))
    return running, came


def test_a_row_whose_predicate_fails_was_never_there():
    def where(left, right):
        return 1 / right["d"]

    running, came = opened(two("outer", where=where))
    running.insert({"k": 1}, 0)
    with pytest.raises(ZeroDivisionError) as caught:
        running.insert({"k": 1, "d": 0}, 1)
    assert ["in Join, row {'k': 1, 'd': 0}"] == caught.value.__notes__
    assert [] == came
    running.insert({"k": 1, "d": 1}, 1)
    running.finish()
    assert [{"k": 1, "d": 1}, MARK] == came


def test_a_row_that_its_window_refuses_has_matched_nothing():
    join = Join(left=Sliding(Delta("ts", 5)), right=Sliding(Count(5)), on="k", how="outer")
    running, came = opened(join)
    running.insert({"k": 1}, 1)
    running.insert({"k": 2, "ts": 1}, 0)
    with pytest.raises(SchemaError, match="the value None cannot be compared"):
        running.insert({"k": 1, "ts": None}, 0)
    assert [] == came
    running.finish()
    assert [{"k": 2, "ts": 1}, {"k": 1, "ts": None}, MARK] == came


def test_what_left_before_a_row_was_refused_still_comes_out():
    class Picky(Join):
        def before_insert(self, window, tuple_, key):
            if tuple_.get("bad"):
                raise ValueError("bad")

    running, came = opened(Picky(left=Sliding(Count(1)), right=Sliding(Count(1)), how="left"))
    running.insert({"k": 1}, 0)
    with pytest.raises(ValueError, match="bad"):
        running.insert({"k": 2, "bad": 1}, 0)
    assert [{"k": 1, "bad": None}, MARK] == came
    running.finish()
    assert 2 == len(came)


def test_a_row_that_entered_before_a_handler_failed_has_matched():
    class Fails(Join):
        def on_trigger(self, window, key):
            raise ValueError("no")

    running, came = opened(Fails(left=Sliding(Count(1)), right=Sliding(Count(0)), on="k"))
    with pytest.raises(ValueError, match="no"):
        running.insert({"k": 1}, 0)
    running.insert({"k": 1}, 1)
    assert [{"k": 1}, MARK] == came


def test_one_row_that_cannot_be_shaped_costs_no_other():
    def select(left, right):
        return 1 / left["d"]

    join = Join(left=Sliding(Count(9)), right=Sliding(Count(1)), how="left", select=select)
    running, came = opened(join)
    for d in (1, 0, 2):
        running.insert({"d": d}, 0)
    with pytest.raises(ZeroDivisionError):
        running.finish()
    assert [1.0, 0.5, MARK] == came


def test_a_failure_when_time_evicts_says_in_which_operator():
    join = Join(
        left=Sliding(Time("1s")),
        right=Sliding(Count(1)),
        how="left",
        select=lambda left, right: 1 / left["d"],
    )
    running, came = opened(join)
    for d in (0, 2, 0):
        running.insert({"d": d}, 0)
    with pytest.raises(ZeroDivisionError) as caught:
        running.advance(5)
    notes = caught.value.__notes__
    assert ["and 1 more failure after it", "in Join, at time 1.000001"] == notes
    assert [0.5, MARK] == came


def test_a_snapshot_does_not_change_when_the_join_goes_on():
    running, _ = opened(two("outer"))
    running.insert({"k": 1}, 0)
    state = running.snapshot()
    before = repr(state)
    running.insert({"k": 1}, 1)
    assert before == repr(state)
    fresh, came = opened(two("outer"))
    fresh.insert({"k": 5}, 0)
    fresh.restore(state)
    fresh.finish()
    assert [{"k": 1}, MARK] == came


def test_a_snapshot_with_residents_missing_is_refused():
    running, _ = opened(two())
    running.insert({"k": 1}, 0)
    state = running.snapshot()
    state["state"]["residents"][0].clear()
    with pytest.raises(StateVersionError) as caught:
        two().open().restore(state)
    assert (
        "restore(state): the snapshot is damaged (1 rows, 0 residents). Take it from snapshot() "
        "whole." == str(caught.value)
    )


# -- in a graph --


def test_a_join_punctuates_for_a_window_that_waits_for_it():
    class Size(Operator):
        model = OperatorModel(windows=[Tumbling], punctuation_in="window_bound")

        def before_flush(self, window, key):
            self.emit(size=window.size(key))

    graph = Graph(
        inputs=["a", "b"],
        both=(two("outer"), "a", "b"),
        size=(Size(Tumbling(Punct())), "both"),
    )
    steps = [to("a", {"k": 1}), to("a", {"k": 1}), to("b", {"k": 1}), to("b", {"k": 2})]
    assert [{"size": 2}, {"size": 1}] == list(replay(graph, steps))


# -- lookup --


def test_lookup_puts_the_latest_reference_row_to_a_stream_row():
    steps = [
        to("stream", {"id": 1, "n": 1}),
        to("reference", {"id": 1, "name": "Ann"}),
        to("stream", {"id": 1, "n": 2}),
        restart(),
        to("reference", {"id": 1, "name": "Bea"}),
        to("reference", {"id": None, "name": "Nobody"}),
        to("stream", {"id": 1, "n": 3}),
        to("stream", {"id": None, "n": 4}),
    ]
    found = [{"id": 1, "n": 2, "name": "Ann"}, {"id": 1, "n": 3, "name": "Bea"}]
    nothing = [{"id": 1, "n": 1}, {"id": None, "n": 4, "name": None}]
    assert found == list(replay(Lookup(on="id", how="inner"), steps))
    assert [nothing[0], *found, nothing[1]] == list(replay(Lookup(on="id"), steps))
    assert [2, 3] == [row["n"] for row in replay(Lookup(on="id", how="semi"), steps)]
    assert [1, 4] == [row["n"] for row in replay(Lookup(on="id", how="anti"), steps)]


def test_lookup_forgets_as_it_is_told():
    steps = [
        to("reference", {"a": 1, "b": 1, "x": 1}),
        to("reference", {"a": 1, "b": 2, "x": 2}),
        to("stream", {"a": 1, "c": 1}),
        to("stream", {"a": 1, "c": 2}),
    ]
    both: dict[str, Any] = {"left_on": ("a", "c"), "right_on": ("a", "b")}
    everything = Lookup(**both, select=lambda a, b: b and b["x"])
    assert [1, 2] == list(replay(everything, steps))
    last = Lookup(**both, forget=PartitionCount(1), select=lambda a, b: b and b["x"])
    assert [None, 2] == list(replay(last, steps))


def test_lookup_gives_what_it_did_not_find_on_a_port():
    lookup = Lookup(on="id", unmatched="port")
    assert ["matches", "unmatched_stream"] == [port.name for port in lookup.model.outputs]
    assert [{"id": 1}] == replay(lookup, [to("stream", {"id": 1})]).port("unmatched_stream")


@pytest.mark.parametrize("first", [0, 1])
def test_a_host_that_knows_the_columns_gets_the_same_names_whichever_side_comes_first(first):
    schema = pa.schema({"k": pa.int64(), "x": pa.int64()})
    op = Join(left=Sliding(Count(1)), right=Sliding(Count(1)), on="k", how="outer")
    running, out = op.open(), list[Any]()
    running.begin(0, (schema, schema))
    running.connect(0, out.append)
    running.insert({"k": 1, "x": 5}, first)
    running.restore(running.snapshot())
    running.insert({"k": 2, "x": 6}, first)  # the first one leaves, unmatched
    want = {"k": 1, "x": None, "x_right": None} | {("x", "x_right")[first]: 5}
    assert out == [want]


def test_a_subclass_with_its_own_way_of_taking_rows_is_asked_for_each():
    seen = []

    class Seen(Join):
        def on_tuple(self, tuple_, port):
            seen.append((port, tuple_["id"]))
            super().on_tuple(tuple_, port)

    running = Seen(left=Sliding(Count(2)), right=Sliding(Count(2)), on="id").open()
    for port in (0, 1, 0):
        running.insert({"id": port, "ab"[port]: 1}, port)
    assert [(0, 0), (1, 1), (0, 0)] == seen


def test_rows_of_several_forms_meet_in_queues():
    row = namedtuple("row", "id y")
    join = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="id", how="outer")
    lefts = [{"id": 1, "x": 1}, {"id": 1.0}, {"id": None, "x": 3}, {"x": 4, "id": (1, NAN)}]
    rights = [row(1, 5), {"id": 1, "y": 6}, {"y": 7, "id": (1, NAN)}, {"id": NAN, "y": 8}]
    running, out = join.open(), list[Any]()
    running.connect(0, out.append)
    for left, right in zip(lefts, rights, strict=True):
        running.insert(left, 0)
        running.insert(right, 1)
    running.finish()
    wanted = [
        {"id": 1, "x": 1, "y": 5},
        {"id": 1.0, "x": None, "y": 5},
        {"id": 1, "x": 1, "y": 6},
        {"id": 1.0, "x": None, "y": 6},
        {"x": 4, "id": (1, NAN), "y": 7},
        {"id": None, "x": 3, "y": None},
        {"id": NAN, "x": None, "y": 8},
    ]
    assert repr(wanted) == repr(out), "values, types and the order of columns"
