"""Every function of `agg`: its values, on every kind of window, and what it refuses."""
# ruff: noqa: SIM300 - asserts read expected first

import random
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.helpers.aggregate_oracle import FUNCTIONS, a_stream, named, same
from windowlib import (
    Count,
    Delta,
    SchemaError,
    Sliding,
    Time,
    Tumbling,
    advance,
    replay,
    restart,
)
from windowlib.operators import Aggregate, agg, col
from windowlib.operators.functions.call import Agg
from windowlib.operators.functions.firing_facts import OF_EVENT_TIME

NAN, INF = float("nan"), float("inf")
SECOND = timedelta(seconds=1)
DAY = datetime(2024, 2, 29, 12)
D = Decimal

# -- one value, every way -----------------------------------------------------------------------


def stepped(aggregate: Agg, rows: list[Any]) -> Any:
    """The definition: one step after the other from the empty state."""
    call = aggregate.call
    assert call is not None
    fold = call.fold(short=False)
    state = fold.empty
    for row in rows:
        get: Any = call.attribute
        x = None if get is None else get(row) if callable(get) else row[get]
        state = fold.step(state, x)
    return fold.value(len(rows), fold.load(fold.save(state)))


def last_of(window: Any, aggregate: Agg, rows: list[Any], **more: Any) -> Any:
    numbered = [{**row, "n": i} if isinstance(row, dict) else row for i, row in enumerate(rows)]
    *_, row = replay(Aggregate(window, out=aggregate, **more), numbered)
    return row["out"]


def restarted(window: Any, aggregate: Agg, rows: list[Any]) -> Any:
    again = [x for row in rows for x in (row, restart())]
    return last_of(window, aggregate, again[:-1])


WAYS: dict[str, Callable[[Agg, list[Any]], Any]] = {
    "steps": stepped,
    "tumbling": lambda f, rows: last_of(Tumbling(Count(len(rows))), f, rows),
    "tumbling, restarted": lambda f, rows: restarted(Tumbling(Count(len(rows))), f, rows),
    "tumbling, grouped": lambda f, rows: last_of(
        Tumbling(Count(len(rows))), f, rows, group_by=lambda row: 0
    ),
    # The window has slid over the same values before, in the other order.
    "count": lambda f, rows: last_of(Sliding(Count(len(rows))), f, rows[::-1] + rows),
    "count, restarted": lambda f, rows: restarted(Sliding(Count(len(rows))), f, rows[::-1] + rows),
    "delta": lambda f, rows: last_of(
        Sliding(Delta("n", len(rows) - 1), every=Count(1)), f, rows[::-1] + rows, partial="emit"
    ),
    "delta, grouped": lambda f, rows: last_of(
        Sliding(Delta("n", len(rows) - 1), every=Count(1)),
        f,
        rows[::-1] + rows,
        group_by=lambda row: 0,
        partial="emit",
    ),
    "time": lambda f, rows: last_of(
        Sliding(Time("1s"), every=Time("1s")), f, [*rows, advance(1.5)]
    ),
}


def x_rows(*values: Any) -> list[Any]:
    return [{"x": value} for value in values]


def xy_rows(*pairs: Any) -> list[Any]:
    return [{"x": x, "y": y} for x, y in pairs]


X, Y = "x", "y"
VALUES: list[tuple[Agg, list[Any], Any]] = [
    # how many
    (agg.count(), x_rows(None, 1, NAN), 3),
    (agg.count(X), x_rows(None, 1, NAN), 2),
    (agg.count(X), x_rows(None, None), 0),
    (agg.count_distinct(X), x_rows(1, 1.0, True, NAN, NAN, None, "1"), 3),
    (agg.count_distinct(X), x_rows(None), 0),
    (agg.count_by_distinct(X), x_rows("b", "a", "b", None), [2, 1]),
    (agg.count_by_distinct(X), x_rows(None), []),
    # which
    (agg.any(X), x_rows(None, 2, 3), 2),
    (agg.first(X), x_rows(None, 2, 3), 2),
    (agg.first(X), x_rows(None, None), None),
    (agg.first(X), x_rows(0, 3), 0),
    (agg.last(X), x_rows(2, 3, None), 3),
    (agg.last(X), x_rows(None), None),
    (agg.nth(X, 1), x_rows(None, 5, 6, 7), 6),
    (agg.nth(X, -1), x_rows(5, 6, None), 6),
    (agg.nth(X, 2), x_rows(5, 6), None),
    (agg.nth(X, -3), x_rows(5, 6), None),
    (agg.collect(X), x_rows(3, None, 1), [3, 1]),
    (agg.collect(X), x_rows(None), []),
    (agg.collect_distinct(X), x_rows("b", None, "a", "b"), ["b", "a"]),
    (agg.mode(X), x_rows("a", "b", "b", "a"), "a"),
    (agg.mode(X), x_rows("a", "b", "b", None, None, None), "b"),
    (agg.mode(X), x_rows(1, NAN, NAN), NAN),
    (agg.mode(X), x_rows(None), None),
    # sums
    (agg.sum(X), x_rows(1, 2, None), 3),
    (agg.sum(X), x_rows(10**40, 1, -(10**40)), 1),
    (agg.sum(X), x_rows(2**63, 2**63), 2**64),
    (agg.sum(X), x_rows(True, True), 2),
    (agg.sum(X), x_rows(0.1, 0.2, 0.3), 0.6),
    (agg.sum(X), x_rows(1e16, 1.0, -1e16), 1.0),
    (agg.sum(X), x_rows(1, 0.5), 1.5),
    (agg.sum(X), x_rows(0), 0),
    (agg.sum(X), x_rows(None, None), None),
    (agg.sum(X), x_rows(INF, 1.0), INF),
    (agg.sum(X), x_rows(1.0, -INF), -INF),
    (agg.sum(X), x_rows(INF, -INF), NAN),
    (agg.sum(X), x_rows(1.0, NAN), NAN),
    (agg.sum(X), x_rows(D("0.1"), None, D("0.2")), D("0.3")),
    (agg.sum(X), x_rows(D("1e20"), D("1e-20"), D("-1e20")), D("1e-20")),
    (agg.sum(X), x_rows(D("Infinity"), D(1)), D("Infinity")),
    (agg.sum(X), x_rows(Fraction(1, 3), Fraction(1, 6)), Fraction(1, 2)),
    (agg.sum(X), x_rows(SECOND, None, 2 * SECOND), 3 * SECOND),
    (agg.sum(X), x_rows(None, [1, 2.5], [10, None], None), [11, 2.5]),
    (agg.sum(X), x_rows([None], [None]), [None]),
    (agg.sum(X), x_rows([], []), []),
    (agg.sum(X), x_rows((1, 2), [3, 4]), [4, 6]),
    (agg.sum(X), x_rows([1e16], [1.0], [-1e16]), [1.0]),
    (agg.mean(X), x_rows(1, 2, None), 1.5),
    (agg.mean(X), x_rows(2, 2), 2.0),
    (agg.mean(X), x_rows(10**30, 10**30 + 2), 1e30),
    (agg.mean(X), x_rows(D("1"), D("2")), D("1.5")),
    (agg.mean(X), x_rows(SECOND, 3 * SECOND), 2 * SECOND),
    (agg.mean(X), x_rows(None), None),
    (agg.mean(X), x_rows([1, 4], [3, None], None), [2.0, 4.0]),
    (agg.weighted_mean(X, weight=Y), xy_rows((1, 3), (5, 1)), 2.0),
    (agg.weighted_mean(X, weight=Y), xy_rows((1, 3), (None, 9), (5, None)), 1.0),
    (agg.weighted_mean(X, weight=Y), xy_rows((1, 2), (5, -2)), None),
    (agg.weighted_mean(X, weight=Y), xy_rows((None, 1)), None),
    (agg.weighted_mean(X, weight=Y), xy_rows((D(1), D(3)), (D(5), D(1))), D(2)),
    (agg.weighted_mean(X, weight=Y), xy_rows((SECOND, 1), (3 * SECOND, 1)), 2 * SECOND),
    (agg.weighted_mean(X, weight=Y), xy_rows((1e16, 1.0), (1.0, 1.0), (-1e16, 1.0)), 1 / 3),
    # spread
    (agg.var(X), x_rows(1, 2, 3, None), 1.0),
    (agg.var(X), x_rows(5), None),
    (agg.var(X, ddof=0), x_rows(5), 0.0),
    (agg.var(X, ddof=0), x_rows(1.0, 3.0), 1.0),
    (agg.var(X), x_rows(None, None), None),
    (agg.var(X), x_rows(1.0, NAN), NAN),
    (agg.var(X), x_rows(1.0, INF, 2.0), NAN),
    (agg.var(X), x_rows(D(1), D(2), D(3)), D(1)),
    (agg.var(X), x_rows(1e9 + 1, 1e9 + 2, 1e9 + 3), 1.0),
    (agg.std(X), x_rows(1, 2, 3), 1.0),
    (agg.std(X, ddof=0), x_rows(2.0), 0.0),
    (agg.std(X), x_rows(2.0), None),
    (agg.std(X), x_rows(D(2), D(6), D(4)), D(2)),
    (agg.cov(X, Y), xy_rows((1, 2), (3, 6), (None, 9)), 4.0),
    (agg.cov(X, Y, ddof=0), xy_rows((1, 2), (3, 6)), 2.0),
    (agg.cov(X, Y), xy_rows((1, 2)), None),
    (agg.cov(X, Y), xy_rows((1, 2), (INF, 3), (2, 1)), NAN),
    (agg.cov(X, Y), xy_rows((D(1), 2), (3, D(6))), 4.0),
    (agg.corr(X, Y), xy_rows((1, 2), (2, 4), (3, 6)), 1.0),
    (agg.corr(X, Y), xy_rows((1, 2), (2, 1)), -1.0),
    (agg.corr(X, Y), xy_rows((1, 2), (None, 1)), None),
    (agg.corr(X, Y), xy_rows((1, 2), (1, 3)), NAN),
    (agg.corr(X, Y), xy_rows((1, 2), (INF, 3)), NAN),
    # order
    (agg.min(X), x_rows(3, None, 1, 2), 1),
    (agg.max(X), x_rows(3, None, 1, 2), 3),
    (agg.min(X), x_rows(None), None),
    (agg.max(X), x_rows(None), None),
    (agg.min(X), x_rows(NAN, 2.0), 2.0),
    (agg.min(X), x_rows(NAN, None, NAN), NAN),
    (agg.min(X), x_rows(NAN, INF), INF),
    (agg.max(X), x_rows(2.0, NAN, 3.0), NAN),
    (agg.max(X), x_rows(-INF), -INF),
    (agg.min(X), x_rows(INF), INF),
    (agg.max(X), x_rows("bee", "cow", "ant"), "cow"),
    (agg.min(X), x_rows(D("1.5"), D("NaN")), D("1.5")),
    (agg.max(X), x_rows(D("1.5"), D("NaN")), D("NaN")),
    (agg.min(X), x_rows(DAY + SECOND, DAY), DAY),
    (agg.max(X), x_rows(date(2024, 1, 1), None, date(2024, 1, 2)), date(2024, 1, 2)),
    (agg.max(X), x_rows(SECOND, 2 * SECOND), 2 * SECOND),
    (agg.min(X), x_rows([3, "b"], None, [4, "a"]), [3, "a"]),
    (agg.max(X), x_rows([3, NAN], [4, 1.0]), [4, NAN]),
    (agg.min_count(X), x_rows(1, 2, 1, None), 2),
    (agg.max_count(X), x_rows(NAN, 2.0, NAN), 2),
    (agg.max_count(X), x_rows(None), None),
    (agg.arg_min(Y, by=X), xy_rows((1, "a"), (1, "b"), (None, "c")), "a"),
    (agg.arg_max(Y, by=X), xy_rows((1, "a"), (2, None), (2, "c")), None),
    (agg.arg_max(Y, by=X), xy_rows((None, "a")), None),
    (agg.arg_max(Y, by=X), xy_rows((NAN, "a"), (9.0, "b"), (NAN, "c")), "a"),
    (agg.arg_min(Y, by=X), xy_rows((NAN, "a"), (9.0, "b")), "b"),
    (agg.arg_max(Y, by=X), xy_rows(("b", 1), ("a", 2)), 1),
    (agg.collect_arg_min(Y, by=X), xy_rows((1, "a"), (2, "b"), (1, None)), ["a", None]),
    (agg.collect_arg_max(Y, by=X), xy_rows((1, "a"), (2, "b"), (2, "c")), ["b", "c"]),
    (agg.collect_arg_max(Y, by=X), xy_rows((None, "a")), []),
    (agg.top(2, Y, by=X), xy_rows((1, "a"), (3, "b"), (3, "c"), (2, "d")), ["b", "c"]),
    (agg.top(2, Y, by=X, largest=False), xy_rows((2, "a"), (1, "b"), (1, "c")), ["b", "c"]),
    (agg.top(9, Y, by=X), xy_rows((1, "a"), (None, "b"), (NAN, "c")), ["c", "a"]),
    (agg.top(1, Y, by=X), xy_rows((None, "a")), []),
    (agg.median(X), x_rows(3, 1, 2), 2.0),
    (agg.median(X), x_rows(4, 1, None, 2, 3), 2.5),
    (agg.median(X), x_rows(7), 7.0),
    (agg.median(X), x_rows(None), None),
    (agg.median(X), x_rows(D(1), D(2)), D("1.5")),
    (agg.median(X), x_rows(DAY, DAY + SECOND), DAY + SECOND / 2),
    (agg.median(X), x_rows(SECOND, 3 * SECOND), 2 * SECOND),
    (agg.median(X), x_rows(1.0, NAN), NAN),
    (agg.median(X), x_rows(1.0, NAN, 2.0), 2.0),
    (agg.median(X), x_rows(INF, INF), INF),
    (agg.median(X), x_rows(-INF, 1.0), -INF),
    (agg.median(X), x_rows(-INF, INF), NAN),
    (agg.median(X), x_rows(-1e308, 1e308), 0.0),
    (agg.median(X), x_rows("only"), "only"),
    (agg.median(X, method="lower"), x_rows("b", "a"), "a"),
    (agg.median(X, method="higher"), x_rows("b", "a"), "b"),
    (agg.quantile(X, 0), x_rows(3, 1, 2), 1.0),
    (agg.quantile(X, 1), x_rows(3, 1, 2), 3.0),
    (agg.quantile(X, 0.25), x_rows(1, 2, 3, 4), 1.75),
    (agg.quantile(X, 0.1), x_rows(D(1), D(2)), D("1.1")),
    (agg.quantile(X, 0.07, method="higher"), x_rows(*range(101)), 7),
    (agg.quantile(X, 0.29, method="lower"), x_rows(*range(101)), 29),
    (agg.quantile(X, 0.5, method="nearest"), x_rows(1, 2), 1),
    (agg.quantile(X, 0.5, method="nearest"), x_rows(1, 2, 3, 4), 3),
    (agg.quantile(X, 0.6, method="nearest"), x_rows(1, 2), 2),
    # approximate, and exact for so few
    (agg.approx_count_distinct(X), x_rows("a", "b", "a", None, NAN, NAN), 3),
    (agg.approx_count_distinct(X), x_rows(None), 0),
    (agg.approx_quantile(X, 0.5), x_rows(3, 1, None, 2), 2),
    (agg.approx_quantile(X, 0.5), x_rows(None), None),
    (agg.approx_quantile(X, 0.9), x_rows(DAY, DAY + SECOND), DAY + SECOND),
    (agg.approx_top_k(X, 2), x_rows("a", "b", "b", None, "c"), [("b", 2), ("a", 1)]),
    (agg.approx_top_k(X, 2), x_rows(None), []),
]
ROUNDED = {"corr", "weighted_mean", "std", "var", "sum"}


def label(case: Any) -> str:
    aggregate, rows, _ = case
    return f"{aggregate!r} of {[tuple(row.values()) for row in rows[:6]]}"


@pytest.mark.parametrize("case", VALUES, ids=label)
@pytest.mark.parametrize("way", WAYS)
def test_a_function_gives_its_value_on_every_kind_of_window(case, way):
    aggregate, rows, wanted = case
    got = WAYS[way](aggregate, rows)
    function = aggregate.call.function.name
    if isinstance(wanted, Decimal) and wanted.is_nan():
        assert got.is_nan()
    else:
        assert same(wanted, got, 1e-15 if function in ROUNDED else 0.0), (wanted, got)


EMPTY: dict[str, Any] = {
    "count": 0,
    "count_distinct": 0,
    "approx_count_distinct": 0,
    "count_by_distinct": [],
    "collect": [],
    "collect_distinct": [],
    "collect_arg_min": [],
    "collect_arg_max": [],
    "top": [],
    "approx_top_k": [],
}


@pytest.mark.parametrize("case", VALUES, ids=label)
def test_of_nothing_a_function_is_null_zero_or_an_empty_list(case):
    call = case[0].call
    fold = call.fold(short=False)
    assert EMPTY.get(call.function.name) == fold.value(0, fold.empty)
    assert fold.empty == fold.load(fold.save(fold.empty))


def test_every_function_of_the_module_is_in_the_table():
    whole = {"count_all", "count_groups", "count_by_group", "custom"}
    whole |= {function.name for function in OF_EVENT_TIME}  # tests/event_time has them
    tried = {case[0].call.function.name for case in VALUES if case[0].call}
    assert set(agg.__all__) - whole == tried


ROWS: dict[str, Agg] = {
    "arg_min": agg.arg_min(by=X),
    "arg_max": agg.arg_max(by=X),
    "top": agg.top(1, by=X),
    "collect": agg.collect(),
    "collect_arg_min": agg.collect_arg_min(by=X),
    "collect_arg_max": agg.collect_arg_max(by=X),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("window", [Tumbling(Count(2)), Sliding(Count(2)), Sliding(Time("9s"))])
def test_without_a_column_it_is_the_row_itself(name, window):
    rows = [{"x": 1}, {"x": 2}]
    items = [*rows, advance(0)]
    *_, row = replay(Aggregate(window, out=ROWS[name]), items)
    best = rows[:1] if name.endswith("min") else rows[1:]
    wanted = {"collect": rows, "arg_min": best[0], "arg_max": best[0]}.get(name, best)
    assert wanted == row["out"]
    found = row["out"] if isinstance(row["out"], list) else [row["out"]]
    assert all(any(each is one for one in rows) for each in found)


# -- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    ["x", col("x"), col("x") * 1, lambda row: row["x"]],
    ids=["name", "col", "expression", "callable"],
)
@pytest.mark.parametrize("way", ["tumbling", "count", "delta", "time"])
def test_a_column_is_a_name_an_expression_or_a_callable(column, way):
    assert 6 == WAYS[way](agg.sum(column), x_rows(1, 2, 3))
    assert 3 == WAYS[way](agg.arg_max(column, by=column), x_rows(1, 3, 2))


def test_a_column_may_have_any_name():
    name = 'a "strange" \\ name'
    op = Aggregate(Tumbling(Count(1)), {name: agg.sum(name), "b": agg.max(col(name) + 1)})
    assert [{name: 5, "b": 6}] == list(replay(op, [{name: 5}]))


# -- custom -------------------------------------------------------------------------------------


def put(bag, x):
    bag.append(x)
    return bag


def take(bag, x):
    assert x == bag.pop(0)
    return bag


def joined(a, b):
    return a + b


CUSTOM: dict[str, Agg] = {
    "steps": agg.custom(list, put, column=X),
    "merge": agg.custom(list, put, column=X, merge=joined),
    "inverse": agg.custom(list, put, column=X, inverse=take),
    "merge and inverse": agg.custom(list, put, column=X, merge=joined, inverse=take),
    "result": agg.custom(list, put, tuple, column=X),
}


@pytest.mark.parametrize("kind", CUSTOM)
@pytest.mark.parametrize(
    "window",
    [
        Tumbling(Count(3)),
        Sliding(Count(3)),
        Sliding(Count(3), every=Count(2)),
        Sliding(Delta("x", 3), every=Count(2)),
        Sliding(Time("3s"), every=Count(2)),
    ],
    ids=str,
)
def test_a_function_of_ones_own_may_change_its_state_in_place(kind, window):
    items: list[Any] = []
    for i in range(30):
        items += [advance(i), {"x": None if i == 4 and window.evict.kind != "delta" else i}]
    both = Aggregate(window, mine=CUSTOM[kind], n=agg.count(), ts=agg.collect())
    for stream in (items, [x for item in items for x in (item, restart())]):
        got = list(replay(both, stream))
        assert len(got) > 5
        for row in got:  # all of them at the end: a row must not change after it was sent
            assert [each["x"] for each in row["ts"]] == list(row["mine"])


def test_nulls_come_to_a_function_of_ones_own():
    (row,) = replay(Aggregate(Tumbling(Count(2)), out=CUSTOM["steps"]), x_rows(None, 1))
    assert {"out": [None, 1]} == row


def test_a_function_of_ones_own_gets_the_row_without_a_column():
    whole = agg.custom(lambda: 0, lambda state, row: state + row["x"] * row["y"])
    (row,) = replay(Aggregate(Tumbling(Count(2)), out=whole), xy_rows((1, 2), (3, 4)))
    assert {"out": 14} == row


def explode(state, x):
    if x == "bad":
        raise ZeroDivisionError("mine")
    return state + 1


@pytest.mark.parametrize("first", [True, False])
def test_a_tuple_that_a_function_of_ones_own_refuses_is_in_no_other_result(first):
    mine = {"mine": agg.custom(int, explode, column=X)}
    kept = {"all": agg.collect(X), "kinds": agg.collect_distinct(X), "mid": agg.nth(X, 0)}
    outputs = {**mine, **kept} if first else {**kept, **mine}
    running = Aggregate(Tumbling(Count(3)), outputs).open()
    got: list[Any] = []
    running.connect(0, got.append)
    running.insert({"x": "a"})
    with pytest.raises(ZeroDivisionError, match="mine"):
        running.insert({"x": "bad"})
    running.insert({"x": "b"})
    running.insert({"x": "c"})
    assert [{"mine": 3, "all": ["a", "b", "c"], "kinds": ["a", "b", "c"], "mid": "a"}] == got


# -- approximate --------------------------------------------------------------------------------

MANY = 20_000


def big(aggregate: Agg, values: list[Any], window: Any) -> Any:
    *_, row = replay(Aggregate(window, out=aggregate), [*x_rows(*values), advance(0)])
    return row["out"]


large_windows = pytest.mark.parametrize(
    "window",
    [
        Tumbling(Count(MANY)),
        Sliding(Count(MANY), every=Count(1000)),
        Sliding(Count(MANY), every=Delta("x", 10**9)),
    ],
    ids=["tumbling", "slices", "recomputed"],
)


@large_windows
def test_an_approximate_count_is_within_five_standard_errors(window):
    rng = random.Random(1)
    values = [rng.randrange(10**8) for _ in range(MANY - 1)] + [2 * 10**9]
    if isinstance(window, Sliding) and isinstance(window.every, Delta):
        values = [*values, 4 * 10**9]
    got = big(agg.approx_count_distinct(X), values, window)
    exact = len(set(values))
    assert abs(got - exact) <= 5 * 1.04 / 64 * exact


@pytest.mark.parametrize("q", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("size", [64, 512])
def test_an_approximate_quantile_has_about_the_right_rank(q, size):
    rng = random.Random(2)
    values = [rng.gauss(0, 1) for _ in range(MANY)]
    for window in (Tumbling(Count(MANY)), Sliding(Count(MANY), every=Count(1000))):
        got = big(agg.approx_quantile(X, q, size=size), values, window)
        rank = sorted(values).index(got) / MANY
        assert abs(rank - q) <= 5 / size


@pytest.mark.parametrize("capacity", [20, 512])
def test_approximate_counts_of_the_most_frequent_are_never_too_small(capacity):
    rng = random.Random(3)
    values = [int(rng.expovariate(0.3)) for _ in range(MANY)]
    exact = Counter(values)
    for window in (Tumbling(Count(MANY)), Sliding(Count(MANY), every=Count(1000))):
        got = big(agg.approx_top_k(X, 3, capacity=capacity), values, window)
        assert [value for value, _ in exact.most_common(3)] == [value for value, _ in got]
        for value, count in got:
            assert exact[value] <= count <= exact[value] + MANY / (capacity // 2 + 1)


# -- what is refused ----------------------------------------------------------------------------

CANNOT_ADD = "a str cannot be added up. Keep the tuples, or summarise another attribute."
REFUSED: list[tuple[Agg, list[Any], str]] = [
    (agg.sum(X), x_rows("a"), f"of 'a': {CANNOT_ADD}"),
    (agg.mean(X), x_rows(None, "a"), f"of 'a': {CANNOT_ADD}"),
    (
        agg.sum(X),
        x_rows(D(1), 0.5),
        "of 0.5: it cannot be added to Decimal('1'). Keep the tuples, or summarise another "
        "attribute.",
    ),
    (
        agg.mean(X),
        x_rows(DAY),
        f"of {DAY!r}: a datetime cannot be added up. Keep the tuples, or summarise another "
        "attribute.",
    ),
    (
        agg.sum(X),
        x_rows([1, 2], [3]),
        "of [3]: a list of 1 among lists of 2. Lists are taken element by element, so give "
        "all the same length.",
    ),
    (
        agg.max(X),
        x_rows([1], 2),
        "of 2: a window holds lists or plain values, not both. Use one type for the column.",
    ),
    (
        agg.sum(X),
        x_rows(0, [2]),
        "of [2]: a window holds lists or plain values, not both. Use one type for the column.",
    ),
    (
        agg.mean(X),
        x_rows([1], None, 0),
        "of 0: a window holds lists or plain values, not both. Use one type for the column.",
    ),
    (
        agg.min(X),
        x_rows(1, "a"),
        "of 'a': it cannot be compared with 1. Keep the tuples, or summarise another attribute.",
    ),
    (
        agg.var(X),
        x_rows(1.0, D(2)),
        "of Decimal('2'): it is no number like the others. Keep the tuples, or summarise "
        "another attribute.",
    ),
    (
        agg.std(X),
        x_rows("a"),
        "of 'a': it is no number like the others. Keep the tuples, or summarise another attribute.",
    ),
    (
        agg.var(X),
        x_rows(1, D("Infinity")),
        "of Decimal('Infinity'): it is no number like the others. Keep the tuples, or summarise "
        "another attribute.",
    ),
    (
        agg.sum(X),
        x_rows(10**400, 0.5),
        f"of 0.5: it cannot be added to {10**400!r}. Keep the tuples, or summarise another "
        "attribute.",
    ),
    (
        agg.weighted_mean(X, weight=Y),
        xy_rows((D(1), 0.5)),
        "of Decimal('1') with the weight 0.5: they cannot be multiplied. Use numbers "
        "of types that mix.",
    ),
    (
        agg.weighted_mean(X, weight=Y),
        xy_rows(("ab", 2)),
        "of 'abab': a str cannot be added up. Keep the tuples, or summarise another attribute.",
    ),
    (
        agg.cov(X, Y),
        xy_rows(("1", 2)),
        "of ('1', 2): not two numbers. Use columns of numbers.",
    ),
    (
        agg.corr(X, Y),
        xy_rows((0.5, 10**400)),
        f"of (0.5, {10**400!r}): not two numbers. Use columns of numbers.",
    ),
    (
        agg.max_count(X),
        x_rows(1, "a"),
        "of 1: it cannot be compared with 'a'. Use one type for the column.",
    ),
    (
        agg.arg_min(by=X),
        x_rows("a", 1),
        "of 'a': it cannot be compared with 1. Use one type for the column.",
    ),
    (
        agg.collect_arg_max(by=X),
        x_rows("a", 1),
        "of 'a': it cannot be compared with 1. Use one type for the column.",
    ),
    (
        agg.top(1, by=X),
        x_rows("a", 1),
        "of 1: it cannot be compared with 'a'. Use one type for the column.",
    ),
    (
        agg.median(X),
        x_rows("a", 1),
        "of 1: '<' not supported between instances of 'int' and 'str'. Use one type for "
        "the column.",
    ),
    (
        agg.median(X),
        x_rows("a", "b"),
        "of 'a': there is nothing between 'a' and 'b'. "
        'Say method="lower", "higher" or "nearest".',
    ),
    (
        agg.count_distinct(X),
        x_rows([1]),
        "of [1]: a list cannot be told apart from others quickly. Use a plain "
        "value, or a tuple of them.",
    ),
    (
        agg.mode(X),
        x_rows({}),
        "of {}: a dict cannot be told apart from others quickly. Use a plain value, or a "
        "tuple of them.",
    ),
    (
        agg.approx_count_distinct(X),
        x_rows([1]),
        "of [1]: a list cannot be hashed the same in every process. Use a str, "
        "bytes, number, date, datetime, timedelta or a tuple of these, such as str(value).",
    ),
    (
        agg.approx_quantile(X, 0.5),
        x_rows("a", 1),
        "of 1: it cannot be compared with 'a'. Add values of one "
        "ordered type, such as numbers or datetimes, and skip nulls.",
    ),
    (
        agg.approx_top_k(X, 1),
        x_rows([1]),
        "of [1]: a list cannot be a key. Use a value that can, such as a tuple in place of a list.",
    ),
]


def told(aggregate: Agg, message: str) -> str:
    """What is said: the function as it was written, or words of its own."""
    return f"{aggregate!r} {message}" if message.startswith("of ") else message


@pytest.mark.parametrize("case", REFUSED, ids=label)
def test_values_that_do_not_fit_the_function_are_refused(case):
    aggregate, rows, message = case
    op = Aggregate(Tumbling(Count(len(rows))), out=aggregate)
    with pytest.raises(SchemaError) as caught:
        list(replay(op, rows))
    assert told(aggregate, message) == str(caught.value)


def changed(message: str) -> str:
    """The part of a message that does not depend on which of two values came first."""
    return message.partition(" of ")[0]


@pytest.mark.parametrize("case", REFUSED, ids=label)
@pytest.mark.parametrize("kind", ["count", "delta", "time"])
def test_sliding_windows_refuse_them_too(case, kind):
    aggregate, rows, message = case
    size = len(rows)
    window = {
        "count": Sliding(Count(size), every=Count(size)),
        "delta": Sliding(Delta("n", 9), every=Count(size), partial="emit"),
        "time": Sliding(Time("1s"), every=Count(size)),
    }[kind]
    with pytest.raises(SchemaError) as caught:
        last_of(window, aggregate, [*rows, advance(0)])
    assert changed(str(caught.value)) == changed(told(aggregate, message))


# Not those where each value is fine, and the result is not.
REFUSED_AT_ONCE = [c for c in REFUSED if len(c[1]) > 1 and "nothing between" not in c[2]]


@pytest.mark.parametrize("case", REFUSED_AT_ONCE, ids=label)
def test_a_refused_value_leaves_the_window_as_it_was(case):
    aggregate, (*good, bad), _ = case
    running = Aggregate(Tumbling(Count(len(good) + 1)), out=aggregate, n=agg.count()).open()
    got: list[Any] = []
    running.connect(0, got.append)
    for row in good:
        running.insert(row)
    before = repr(running.snapshot())
    with pytest.raises(SchemaError):
        running.insert(bad)
    assert before == repr(running.snapshot())
    running.insert(good[0])
    assert [{"out": stepped(aggregate, [*good, good[0]]), "n": len(good) + 1}] == got


@pytest.mark.parametrize("case", REFUSED_AT_ONCE, ids=label)
@pytest.mark.parametrize("every", [2, 3])
def test_a_value_that_a_slice_refuses_is_in_no_window(case, every):
    aggregate, (*good, bad), _ = case
    running = Aggregate(Sliding(Count(6), every=Count(every)), out=aggregate).open()
    if "slices" not in running.definition.explain():
        return  # the tuples are kept, and the value is refused when they are read
    got: list[Any] = []
    running.connect(0, lambda row: got.append(repr(row["out"])))
    good = [row for row in good if None not in row.values()] or good
    rows = [good[i % len(good)] for i in range(18)]
    for i, row in enumerate(rows):
        if i % every:  # there is an open slice
            with pytest.raises(SchemaError):
                running.insert(bad)
        running.insert(row)
    ends = range(6, len(rows) + 1, every)
    assert [repr(stepped(aggregate, rows[end - 6 : end])) for end in ends] == got


# -- windows with every function ----------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_alone_is_what_it_is_among_others(name):
    """One fold has generated code of its own, and shares no loop with others."""
    function = FUNCTIONS[name]
    rows = [item for item in a_stream(21, 60, "odd") if isinstance(item, dict)]
    for window in (Tumbling(Count(7)), Sliding(Count(7), every=Count(3)), Sliding(Delta("ts", 9))):
        op = Aggregate(window, out=function.made(named), rows=agg.collect())
        alone = Aggregate(window, out=function.made(named))
        pairs = zip(replay(op, rows), replay(alone, rows), strict=True)
        for row, only in pairs:
            wanted = function.of(row["rows"])
            assert same(wanted, row["out"], function.rel), (wanted, row)
            assert same(wanted, only["out"], function.rel), (wanted, only)
