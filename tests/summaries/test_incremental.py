"""Summaries of sliding windows that are brought up to date when they are read.

Whatever came and went between two reads, a read gives what a summary of the tuples that are there
would give: the same folds, from scratch.
"""
# ruff: noqa: SIM300 - asserts read expected first

import operator
import random
from collections import deque
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.aggregate_oracle import FEW, FUNCTIONS, Function, a_row, named, same
from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    PartitionCount,
    SchemaError,
    Sliding,
    Time,
    advance,
    replay,
    restart,
)
from windowlib.operators import Aggregate, agg
from windowlib.operators.aggregate.groups import GroupedPlan, GroupValues
from windowlib.summaries.incremental import Incremental, describe
from windowlib.summaries.summarizers import FunctionCall, Plan


class Queue:
    """As much of a subwindow as a summary looks at."""

    def __init__(self) -> None:
        self.data: deque[Any] = deque()
        self.taken = self.born = 0
        self.rough = False

    def push(self, rows: list[Any]) -> None:
        self.data.extend(rows)
        self.taken += len(rows)

    def pop(self, count: int) -> None:
        for _ in range(count):
            self.data.popleft()


def calls(functions: dict[str, Function]) -> dict[str, FunctionCall]:
    return {name: each.made(named).call for name, each in functions.items()}


def a_plan(functions: dict[str, Function]) -> Plan:
    return Plan(calls(functions), short=False, named=False)


def read(summary: Any, queue: Queue) -> list[Any]:
    summary.sync(queue)
    found: list[Any] = summary.value()
    return found


def from_scratch(functions: dict[str, Function], queue: Queue) -> list[Any]:
    """The same folds, stepped over the tuples one by one."""
    ready = a_plan(functions)()
    for row in queue.data:
        ready.insert(row)
    return ready.values()


def check(functions: dict[str, Function], queue: Queue, got: list[Any]) -> None:
    again = from_scratch(functions, queue)
    for (name, function), one, value in zip(functions.items(), again, got, strict=True):
        wanted = function.of(list(queue.data))
        assert same(wanted, value, function.rel), (name, wanted, value)
        assert same(wanted, one, function.rel), (name, wanted, one)


def some_rows(rng: random.Random, count: int, profile: str = "odd") -> list[Any]:
    return [a_row(rng, 0, profile) for _ in range(count)]


# -- pushes, pops and reads ---------------------------------------------------------------------

moves = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=25)
ALGORITHMS = {
    "two stacks": ["sum f", "mean i", "sum v", "min f", "max s", "var f 1", "cov f 0", "count d"],
    "two stacks in order": ["weighted_mean", "corr", "product", "max_count f"],
    "monotone deque": ["arg_min f", "arg_max s", "collect_arg_min f", "collect_arg_max i"],
    "sorted multiset": ["median f", "quantile lower s", "quantile nearest t", "top f", "lowest d"],
    "counted multiset": ["mode f", "count_distinct f", "collect_distinct s", "count_by_distinct f"],
    "queue of values": ["first f", "last t", "nth s", "nth from the end i", "collect s"],
    "subtract on evict": ["bag"],
    "recomputed from the tuples": ["text", "approx_count_distinct f"],
    "size of the window": ["count"],
    "of each": list(FEW),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=examples(40))
@given(moves=moves, seed=st.integers(0, 10**6))
def test_every_read_is_what_the_tuples_give(algorithm, moves, seed):
    functions = {name: FUNCTIONS[name] for name in ALGORITHMS[algorithm]}
    rng, queue, summary = random.Random(seed), Queue(), Incremental(a_plan(functions))
    queue.push(some_rows(rng, 12))
    for come, go in moves:
        queue.push(some_rows(rng, come))
        queue.pop(min(go, len(queue.data) - 1))
        check(functions, queue, read(summary, queue))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_slides_one_by_one(name):
    functions = {name: FUNCTIONS[name]}
    rng, queue, summary = random.Random(name), Queue(), Incremental(a_plan(functions))
    queue.push(some_rows(rng, 9))
    for _ in range(25):
        queue.push(some_rows(rng, 1))
        queue.pop(1)
        check(functions, queue, read(summary, queue))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_every_overlap_of_two_reads(size, step):
    rng, queue, summary = random.Random(size * step), Queue(), Incremental(a_plan(FEW))
    queue.push(some_rows(rng, size))
    for _ in range(12):
        queue.push(some_rows(rng, step))
        queue.pop(step)
        check(FEW, queue, read(summary, queue))


def test_a_read_without_a_change_gives_the_same_again():
    rng, queue, summary = random.Random(1), Queue(), Incremental(a_plan(FEW))
    queue.push(some_rows(rng, 9))
    for _ in range(5):
        queue.push(some_rows(rng, 1))
        queue.pop(1)
        assert same(read(summary, queue), read(summary, queue), 1e-15)


def test_windows_that_only_grow_and_windows_that_only_shrink():
    rng, queue, summary = random.Random(2), Queue(), Incremental(a_plan(FEW))
    queue.push(some_rows(rng, 10))
    for _ in range(9):
        queue.push(some_rows(rng, 2))
        check(FEW, queue, read(summary, queue))
    while len(queue.data) > 1:
        queue.pop(1)
        check(FEW, queue, read(summary, queue))


def test_tuples_that_left_out_of_order_are_noticed():
    rng, queue, summary = random.Random(3), Queue(), Incremental(a_plan(FEW))
    queue.push(some_rows(rng, 10))
    read(summary, queue)
    for _ in range(8):
        queue.push(some_rows(rng, 1))
        del queue.data[rng.randrange(len(queue.data))]
        queue.rough = True
        check(FEW, queue, read(summary, queue))


def test_a_new_life_of_the_partition_starts_afresh():
    rng, queue, summary = random.Random(4), Queue(), Incremental(a_plan(FEW))
    for life in range(4):
        queue.data.clear()
        queue.taken, queue.born = 0, life
        queue.push(some_rows(rng, 10))
        read(summary, queue)
        queue.push(some_rows(rng, 1))
        queue.pop(1)
        check(FEW, queue, read(summary, queue))


# -- values that are refused --------------------------------------------------------------------

BAD = {"i": "no", "f": "no", "d": 0.5, "s": 7, "t": 7, "p": "no", "v": [1], "w": "no"}
CHOOSY = [
    "sum i",
    "sum d",
    "sum v",
    "mean p",
    "min f",
    "max s",
    "var f 1",
    "cov f 0",
    "arg_min f",
    "collect_arg_max t",
    "top f",
    "median f",
    "quantile lower s",
    "max_count t",
    "weighted_mean",
]


def whole_rows(rng: random.Random, count: int) -> list[Any]:
    """Rows without a null."""
    rows = (a_row(rng, 0, "") for _ in range(10_000))
    return list(islice((row for row in rows if None not in row.values()), count))


@pytest.mark.parametrize("name", CHOOSY)
def test_a_refused_value_is_refused_at_every_read_until_it_leaves(name):
    functions = {name: FUNCTIONS[name], "count": FEW["count"], "collect t": FUNCTIONS["collect t"]}
    rng, queue, summary = random.Random(5), Queue(), Incremental(a_plan(functions))
    queue.push(whole_rows(rng, 8))
    check(functions, queue, read(summary, queue))
    queue.push([whole_rows(rng, 1)[0] | BAD])
    for come in (0, 0, 2, 9):
        queue.push(whole_rows(rng, come))
        with pytest.raises(SchemaError):
            read(summary, queue)
    queue.pop(9)
    for _ in range(9):
        check(functions, queue, read(summary, queue))
        queue.push(whole_rows(rng, 1))
        queue.pop(1)


class Flaky:
    """A step that fails once in a while, and the next time does what it should."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, state: int, x: Any) -> int:
        self.calls += 1
        if not self.calls % 40:
            raise TimeoutError("try again")
        return state + 1


@pytest.mark.parametrize("more", [{"merge": operator.add}, {"inverse": lambda n, x: n - 1}])
def test_a_read_that_failed_half_way_is_done_anew(more):
    mine = agg.custom(int, Flaky(), column="f", **more).call
    assert mine is not None
    functions = {name: FUNCTIONS[name] for name in ("collect s", "median f", "sum f")}
    plan = Plan({**calls(functions), "mine": mine}, short=False, named=False)
    rng, queue, summary = random.Random(6), Queue(), Incremental(plan)
    queue.push(some_rows(rng, 20, ""))
    failed = 0
    for _ in range(60):
        queue.push(some_rows(rng, 1, ""))
        queue.pop(1)
        try:
            *others, count = read(summary, queue)
        except TimeoutError:
            failed += 1
            continue
        assert 20 == count
        check(functions, queue, others)
    assert failed


def test_an_aggregate_goes_on_after_a_refused_value_has_left():
    running = Aggregate(Sliding(Delta("n", 2)), s=agg.sum("x"), partial="emit").open()
    got: list[Any] = []
    running.connect(0, lambda row: got.append(row["s"]))
    for n, x in enumerate([1, 2, "no", 4, 5, 6, 7]):
        try:
            running.insert({"n": n, "x": x})
        except SchemaError as error:
            got.append(str(error).partition(":")[0])
    assert [1, 3, *["agg.sum(\"x\") of 'no'"] * 3, 15, 18] == got


# -- groups -------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(moves=moves, seed=st.integers(0, 10**6))
def test_groups_of_every_read_are_what_the_tuples_give(moves, seed):
    functions = {name: FEW[name] for name in ("count", "sum f", "max f", "collect s", "median f")}
    plan = GroupedPlan(calls(functions), lambda row: row["g"], "group_by='g'")
    rng, queue, summary = random.Random(seed), Queue(), plan.incremental()
    queue.push(some_rows(rng, 12))
    for come, go in moves:
        queue.push(some_rows(rng, come))
        queue.pop(min(go, len(queue.data) - 1))
        queue.rough = not rng.randrange(5) and len(queue.data) > 2
        if queue.rough:
            del queue.data[rng.randrange(1, len(queue.data))]
        check_groups(functions, queue, read(summary, queue))
        check_groups(functions, queue, folded(plan, queue))


def folded(plan: GroupedPlan, queue: Queue) -> Any:
    """The groups of a tumbling subwindow with these tuples, saved and restored on the way."""
    ready = plan()
    for row in queue.data:
        ready.insert(row)
        state, ready = ready.snapshot(), plan()
        ready.restore(state)
    return ready.value()


def check_groups(functions: dict[str, Function], queue: Queue, got: list[GroupValues]) -> None:
    members: dict[Any, list[Any]] = {}
    for row in queue.data:
        members.setdefault(str(row["g"]), []).append(row)
    assert list(members) == [str(group.key) for group in got]
    for group, rows in zip(got, members.values(), strict=True):
        assert len(rows) == group.n
        for (name, function), value in zip(functions.items(), group.values, strict=True):
            assert same(function.of(rows), value, function.rel), name


# -- in windows ---------------------------------------------------------------------------------


def test_a_partition_that_time_empties_and_that_comes_back():
    window = Sliding(Time("3s"), every=Count(1), by="k")
    op = Aggregate(window, xs=agg.collect("x"), s=agg.sum("x"), high=agg.max("x"))
    items: list[Any] = []
    for i in range(40):
        items += [advance(i + (i // 10) * 10), {"k": "a" if i % 3 else "b", "x": float(i % 7)}]
    got = list(replay(op, items))
    assert 40 == len(got)
    for row in got:
        assert (sum(row["xs"]), max(row["xs"])) == (row["s"], row["high"])


VALUES = st.sampled_from([0, 1, -3, 2.5, 7.25, None])
"""Whose sums are exact in every order."""


@settings(max_examples=examples(60), deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from([0, 0, 1, 3, 9]), VALUES, VALUES, st.booleans()
        ),
        max_size=80,
    ),
    period=st.sampled_from([2, 8, 30]),
    every=st.integers(1, 4),
    restarts=st.sets(st.integers(0, 80), max_size=3),
)
def test_windows_by_time_give_what_their_tuples_give(steps, period, every, restarts):
    """Few tuples or more, of any form, with nulls, after a partition was empty or restored."""
    op = Aggregate(
        Sliding(Time(f"{period}s"), every=Count(every), by="k"),
        n=agg.count(),
        total=agg.sum("x"),
        top=agg.max("y"),
    )
    items: list[Any] = []
    expected, kept, counts, now = [], dict[int, list[Any]](), dict[int, int](), 0
    for number, (key, wait, x, y, plain) in enumerate(steps):
        now += wait
        row = {"k": key, "ts": now, "x": x, "y": y}
        items += [restart()] * (number in restarts)
        items.append(row if plain else SimpleNamespace(**row))
        there = [each for each in kept.get(key, []) if now - each["ts"] <= period]
        kept[key] = there = [*there, row]
        counts[key] = counts.get(key, 0) + 1
        if counts[key] % every == 0:
            xs, ys = ([each[name] for each in there if each[name] is not None] for name in "xy")
            total, top = sum(xs) if xs else None, max(ys, default=None)
            expected.append({"k": key, "n": len(there), "total": total, "top": top})
    assert expected == list(replay(op, items, times="ts"))


@pytest.mark.parametrize("function", [agg.sum, agg.mean, agg.max])
def test_a_window_by_time_goes_on_from_any_place(function):
    op = Aggregate(Sliding(Time("10s"), every=Count(1)), of=function("x"))
    rows = [{"ts": ts, "x": (ts * 7) % 5} for ts in range(40)]
    whole = list(replay(op, rows, times="ts"))
    for cut in range(0, 40, 3):
        assert whole == list(replay(op, [*rows[:cut], restart(), *rows[cut:]], times="ts"))


def test_an_evicted_partition_starts_afresh():
    window = Sliding(Delta("n", 3), every=Count(1), by="k", forget=PartitionCount(1))
    op = Aggregate(window, xs=agg.collect("n"), s=agg.sum("n"), partial="emit")
    got = list(replay(op, [{"k": key, "n": n} for n, key in enumerate("aaaaabaaaabb")]))
    assert [sum(row["xs"]) for row in got] == [row["s"] for row in got]
    assert [[1, 2, 3, 4], [5], [6], [6, 7]] == [row["xs"] for row in got[4:8]]


def test_explain_has_the_words_for_every_algorithm():
    for algorithm, names in ALGORITHMS.items():
        if algorithm in ("of each", "two stacks in order"):
            continue
        functions = {name: FUNCTIONS[name] for name in names}
        assert [algorithm] * len(names) == describe(a_plan(functions))
