"""What an operator's function allows, and what its rows depend on."""
# ruff: noqa: SIM300 - asserts read expected first

import pytest

from windowlib import Count, Delta, Operator, OperatorModel, PartitionAge, Sliding, Tumbling
from windowlib.farms.window_function import WindowFunction, fold_kind, function_of, kind_of
from windowlib.operators import Aggregate, Batch, Dedup, Sort, agg
from windowlib.operators.functions.call import Agg
from windowlib.operators.functions.firing_facts import OF_EVENT_TIME

TEN = Tumbling(Count(10))

NEITHER = {
    *("collect", "nth", "median", "quantile"),
    *("count_distinct", "collect_distinct", "count_by_distinct", "mode"),
}
ARGUMENTS = {
    "nth": ("x", 1),
    "weighted_mean": ("x",),
    "cov": ("x", "y"),
    "corr": ("x", "y"),
    "top": (3,),
    "quantile": ("x", 0.5),
    "approx_quantile": ("x", 0.5),
    "approx_top_k": ("x", 3),
}
BY = ("arg_min", "arg_max", "collect_arg_min", "collect_arg_max", "top")
OPTIONS = {
    "weighted_mean": {"weight": "w"},
    **{name: {"by": "y"} for name in BY},
}
OF_GROUPS = {"count_all", "count_groups", "count_by_group"}


def made(name):
    return getattr(agg, name)(*ARGUMENTS.get(name, ("x",)), **OPTIONS.get(name, {}))


OF_WINDOWS = {function.name for function in OF_EVENT_TIME}  # farms refuse windows of event time
PLAIN = [name for name in agg.__all__ if name not in OF_GROUPS | OF_WINDOWS | {"custom"}]


def adds(**more):
    return agg.custom(lambda: 0, lambda state, x: state + x, column="x", **more)


@pytest.mark.parametrize("name", PLAIN)
def test_functions_that_need_all_values_are_neither_and_all_others_can_be_merged(name):
    kind = "neither" if name in NEITHER else "associative"
    assert kind == kind_of(Aggregate(TEN, x=made(name)))


def test_there_are_functions_to_look_at():
    assert len(PLAIN) > 25
    assert set(PLAIN) >= NEITHER


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in NEITHER])
def test_what_is_called_associative_has_a_merge_that_takes_parts_in_any_grouping(name):
    call = made(name).call
    assert call is not None
    fold = call.fold(short=False)
    assert fold.mergeable
    wide = name in ("weighted_mean", "cov", "corr") or "by" in OPTIONS.get(name, {})
    rows = [(3, 1), (1, 2), (4, 1), (1, 5), (5, 2), (9, 6)]
    parts = []
    for row in rows:
        parts.append(fold.step(fold.empty, row if wide else row[0]))
    a, b, c = (fold.merge(*parts[i : i + 2]) for i in (0, 2, 4))
    left = fold.value(6, fold.merge(fold.merge(a, b), c))
    right = fold.value(6, fold.merge(a, fold.merge(b, c)))
    assert left == pytest.approx(right) if isinstance(left, float) else left == right


@pytest.mark.parametrize("name", sorted(OF_GROUPS))
def test_counts_of_groups_stand_in_no_ones_way(name):
    assert "associative" == kind_of(Aggregate(TEN, group_by="y", x=getattr(agg, name)()))


def test_your_own_function_is_associative_if_it_has_a_merge_and_else_incremental():
    assert "incremental" == kind_of(Aggregate(TEN, x=adds()))
    assert "associative" == kind_of(Aggregate(TEN, x=adds(merge=lambda a, b: a + b)))


def test_an_operator_is_as_good_as_the_worst_of_its_functions():
    high, middle = agg.max("x"), agg.median("x")
    assert "associative" == kind_of(Aggregate(TEN, a=high, b=agg.sum("x") / agg.count()))
    assert "incremental" == kind_of(Aggregate(TEN, a=high, b=adds()))
    assert "neither" == kind_of(Aggregate(TEN, a=high, b=adds(), c=middle))
    assert "neither" == kind_of(Aggregate(TEN, a=high, having=middle > 3))
    assert 'agg.median("x")' == function_of(Aggregate(TEN, a=high, b=adds(), c=middle)).shown


def test_groups_do_not_change_the_kind():
    assert "associative" == kind_of(Aggregate(TEN, group_by="y", a=agg.sum("x")))
    assert "neither" == kind_of(Aggregate(TEN, group_by="y", a=agg.collect("x")))


def test_a_function_says_whether_parts_may_be_merged_in_any_order():
    assert function_of(Aggregate(TEN, a=agg.sum("x"), b=agg.max("x"))).commutative
    assert not function_of(Aggregate(TEN, a=agg.sum("x"), b=agg.first("x"))).commutative
    assert not function_of(Aggregate(TEN, a=adds())).commutative


def test_a_fold_knows_its_kind():
    call = agg.collect("x").call
    assert call is not None
    assert "neither" == fold_kind(call.fold(short=False))
    assert isinstance(agg.collect("x"), Agg)


# -- operators of users --


class Spread(Operator):
    model = OperatorModel(windows=[Tumbling, Sliding])

    def before_flush(self, window, key):
        self.emit(n=len(window[key]))


class Merged(Spread):
    function_kind = "associative"


class Remembers(Spread):
    def after_insert(self, window, tuple_, key): ...


class Saves(Spread):
    def snapshot(self):
        return 1


class Careful(Remembers):
    def beyond_window(self):
        return ""


def test_of_a_class_nothing_is_known_but_what_it_says():
    assert "neither" == kind_of(Spread(TEN))
    assert "associative" == kind_of(Merged(TEN))
    assert "the function of Spread" == function_of(Spread(TEN)).shown


class Doubled(Aggregate):
    def _unrelated(self): ...


class Watched(Aggregate):
    def after_insert(self, window, tuple_, key): ...


def test_a_subclass_that_changes_the_work_is_a_class_of_which_nothing_is_known():
    assert "associative" == kind_of(Doubled(TEN, x=agg.sum("x")))
    assert "neither" == kind_of(Watched(TEN, x=agg.sum("x")))
    assert "" != Watched(TEN, x=agg.sum("x")).beyond_window()


def test_a_kind_is_one_of_three():
    assert "neither" == WindowFunction("neither").kind


# -- beside the window --


@pytest.mark.parametrize(
    ("operator", "beyond"),
    [
        (Aggregate(TEN, x=agg.sum("x")), ""),
        (Aggregate(TEN, x=agg.sum("x"), emit="changed"), 'the row before (emit="changed")'),
        (
            Aggregate(Tumbling(Delta("ts", 5)), x=agg.sum("x"), late="error"),
            "which rows are late (late='error')",
        ),
        (
            Aggregate(Tumbling(Count(9), by="k", forget=PartitionAge("1h")), x=agg.sum("x")),
            "which partitions are evicted",
        ),
        (Spread(TEN), ""),
        (
            Spread(Tumbling(Count(9), by="k", forget=PartitionAge("1h"))),
            "which partitions are evicted",
        ),
        (Remembers(TEN), "what after_insert does"),
        (Saves(TEN), "what snapshot does"),
        (Careful(TEN), ""),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_operator_says_what_its_rows_depend_on_beside_the_window(operator, beyond):
    assert beyond == operator.beyond_window()


@pytest.mark.parametrize(
    "operator",
    [Sort("ts", window=Sliding(Count(9))), Dedup("id", within=Count(9)), Batch(Count(9))],
    ids=lambda value: value.name,
)
def test_operators_that_work_at_inserts_say_so(operator):
    assert operator.beyond_window().startswith("what ")
