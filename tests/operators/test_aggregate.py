"""Aggregate in every configuration of the paper, against a recomputation from the tuples."""
# ruff: noqa: SIM300 - asserts read expected first

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.aggregate_oracle import (
    COLUMNS,
    FEW,
    FUNCTIONS,
    MERGEABLE,
    PUNCT,
    Function,
    a_stream,
    aggregate,
    check,
    configurations,
    expected,
    firings,
    in_form,
    output,
    same,
)
from tests.helpers.event_recorder import Advance, Insert, Many
from tests.helpers.examples import examples
from tests.helpers.window_strategies import key_of, specs, streams
from windowlib import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    advance,
    punct,
    replay,
    restart,
)
from windowlib.operators import Aggregate, agg

CONFIGURATIONS = configurations()
every_spec = pytest.mark.parametrize("spec", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
PROFILES = ["", "odd", "wide", "back", "nulls"]


def long(case):
    return pytest.param(case, marks=pytest.mark.long)


def keys_of(spec: Any) -> list[str]:
    return ["k"] if spec.by else []


def slices(spec: Any) -> bool:
    """Whether a window may keep partial results in place of its tuples."""
    return isinstance(spec, Sliding) and all(isinstance(p, Count) for p in spec.policies)


def options_of(spec: Any) -> dict[str, Any]:
    """The parameters that change which firings are processed, as far as the window takes them."""
    more = {"partial": "emit"} if isinstance(spec, Sliding) else {"flush_at_end": True}
    return more | ({"evicted_partitions": "emit"} if spec.forget else {})


def rows_of(operator: Aggregate, items: Any) -> list[Any]:
    return list(replay(operator, items))


def values(*xs: Any, **more: Any) -> list[Any]:
    return [{"x": x, **more} for x in xs]


# -- every configuration ------------------------------------------------------------------------


def test_there_are_52_configurations_in_the_paper_and_65_with_plain_partitioned_ones():
    plain = [spec for spec in CONFIGURATIONS.values() if spec.by and not spec.forget]
    assert (65, 13) == (len(set(CONFIGURATIONS.values())), len(plain))


@every_spec
@pytest.mark.parametrize("profile", ["odd", *map(long, ["", "wide", "back", "nulls"])])
def test_every_configuration_gives_what_a_recomputation_gives(spec, profile):
    items = a_stream(PROFILES.index(profile), profile=profile)
    seen = firings(spec, items)
    for functions in (FUNCTIONS, MERGEABLE) if slices(spec) else (FUNCTIONS,):
        got = output(aggregate(spec, functions), items)
        check(expected(seen, functions, keys_of(spec)), got, functions)


@every_spec
def test_a_restart_anywhere_changes_nothing(spec):
    rng, more = random.Random(str(spec)), options_of(spec)
    items = a_stream(11, 60, "odd")
    for functions in (FEW, {name: FEW[name] for name in FEW if FEW[name].mergeable}):
        often = [x for item in items for x in ([restart()] * (rng.random() < 0.1) + [item])]
        wanted = expected(firings(spec, items, **more), functions, keys_of(spec))
        check(wanted, output(aggregate(spec, functions, **more), often), functions)


@every_spec
def test_groups_split_each_firing_and_come_in_order_of_their_first_tuple(spec):
    items, more = a_stream(12, 90, "back"), options_of(spec)
    wanted = expected(firings(spec, items, **more), FEW, keys_of(spec), ["g"])
    check(wanted, output(aggregate(spec, FEW, group_by="g", **more), items), FEW)
    several = output(aggregate(spec, FEW, group_by=["g", "s"], **more), [*items[:45], restart()])
    wanted = expected(firings(spec, items[:45], **more), FEW, keys_of(spec), ["g", "s"])
    check(wanted, several, FEW)


@every_spec
def test_streams_without_a_row_give_punctuations_at_most(spec):
    items = [advance(1), punct(), advance(10), punct()]
    assert expected(firings(spec, items), FEW) == output(aggregate(spec, FEW), items)


# -- any specification --------------------------------------------------------------------------

keyed = st.sampled_from([None, "k", ("k", "g"), key_of])
NUMBERS = {
    "n": Function(lambda c: agg.count(), len),
    "ids": Function(lambda c: agg.collect("id"), lambda rows: [row["id"] for row in rows]),
    "total": Function(lambda c: agg.sum("age"), lambda rows: sum(row["age"] for row in rows)),
    "high": Function(lambda c: agg.max("ts"), lambda rows: max(row["ts"] for row in rows)),
    "kinds": Function(
        lambda c: agg.count_distinct("age"), lambda rows: len({row["age"] for row in rows})
    ),
    "last": Function(lambda c: agg.last("g"), lambda rows: rows[-1]["g"]),
}


def items_of(ops: list[Any]) -> list[Any]:
    """A stream of the shared strategies as items of a replay."""
    items: list[Any] = [advance(0)]
    now = 0.0
    for op in ops:
        if isinstance(op, Insert):
            items.append(op.row)
        elif isinstance(op, Many):
            items += [insert.row for insert in op.inserts]
        elif isinstance(op, Advance):
            now += op.by
            items.append(advance(now))
        elif op.mark == "window":
            items.append(punct())
    return items


@settings(max_examples=examples(150))
@given(specs(by=keyed), streams(form=st.just("dict")), st.data())
def test_any_window_and_any_stream(spec, ops, data):
    operator = getattr(spec.forget, "select", "lru") == "operator"
    zero = any(isinstance(policy, Count) and not policy.size for policy in spec.policies)
    if zero or operator:
        return
    chosen = data.draw(st.sets(st.sampled_from(sorted(NUMBERS)), min_size=1))
    functions = {name: NUMBERS[name] for name in NUMBERS if name in chosen}
    more = options_of(spec) if data.draw(st.booleans()) else {}
    items = items_of(ops)
    often = [x for item in items for x in ([restart()] * data.draw(st.booleans()) + [item])]
    names = {None: [], "k": ["k"], ("k", "g"): ["k", "g"], key_of: ["key"]}[spec.by]
    wanted = expected(firings(spec, items, **more), functions, names)
    check(wanted, output(aggregate(spec, functions, **more), often), functions)


# -- rows of any form ---------------------------------------------------------------------------

SOME = [
    "tumbling count, partitioned",
    "sliding count count, age",
    "sliding delta time, partitioned",
]
some_specs = pytest.mark.parametrize("name", SOME)


@some_specs
@pytest.mark.parametrize("form", ["named tuple", "dataclass", "dict"])
def test_rows_may_be_of_any_form(name, form):
    spec, items = CONFIGURATIONS[name], a_stream(5, 60, "odd")
    plain = {name: FEW[name] for name in FEW if name != "text"}
    wanted = expected(firings(spec, items), plain, keys_of(spec))
    check(wanted, output(aggregate(spec, plain), in_form(form, items)), plain)


def test_columns_of_plain_tuples_are_places():
    spec = Sliding(Delta(COLUMNS.index("ts"), 6), every=Count(2), by=0)
    named = Sliding(Delta("ts", 6), every=Count(2), by="k")
    items = a_stream(6, 90, "odd")
    wanted = expected(firings(named, items), FEW, ["key"], ["g"])
    wanted = [x if x == PUNCT else {"group" if n == "g" else n: x[n] for n in x} for x in wanted]
    got = output(aggregate(spec, FEW, COLUMNS.index, group_by=1), in_form("tuple", items))
    check(wanted, got, FEW)


@some_specs
def test_arrow_batches_count_as_their_rows(name):
    spec, rows = CONFIGURATIONS[name], [x for x in a_stream(7, 60) if isinstance(x, dict)]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema())
    items = [*batch.slice(0, 20).to_pylist(), advance(2), *batch.slice(20).to_pylist(), advance(9)]
    batches = [batch.slice(0, 20), advance(2), batch.slice(20), advance(9)]
    wanted = expected(firings(spec, items), FEW, keys_of(spec))
    check(wanted, output(aggregate(spec, FEW), batches), FEW)


def arrow_schema() -> Any:
    types = {"k": pa.string(), "g": pa.float64(), "ts": pa.int64(), "i": pa.int64()}
    types |= {"f": pa.float64(), "d": pa.decimal128(10, 2), "s": pa.string()}
    types |= {"t": pa.timestamp("us"), "p": pa.duration("us"), "w": pa.float64()}
    types |= {"v": pa.list_(pa.float64())}
    return pa.schema([(name, types[name]) for name in COLUMNS])


def test_rows_of_one_stream_may_have_different_forms():
    mixed = [{"x": 1}, Named(2), {"x": None}, Named(4)]
    assert [{"s": 3}, {"s": 4}] == rows_of(Aggregate(Tumbling(Count(2)), s=agg.sum("x")), mixed)


class Named:
    def __init__(self, x):
        self.x = x


def test_input_rows_are_left_as_they_are():
    items = a_stream(3, 80)
    before = repr(items)
    output(aggregate(Sliding(Count(3)), FUNCTIONS, group_by="g"), items)
    assert before == repr(items)


# -- batches and punctuations -------------------------------------------------------------------


def test_a_firing_is_its_rows_and_then_one_punctuation():
    op = Aggregate(Tumbling(Count(2), by="k"), n=agg.count(), group_by="g")
    items = [{"k": 1, "g": 1}, {"k": 2, "g": 1}, {"k": 1, "g": 2}, {"k": 2, "g": 1}]
    row = {"k": 1, "g": 1, "n": 1}
    assert [row, row | {"g": 2}, PUNCT, {"k": 2, "g": 1, "n": 2}, PUNCT] == output(op, items)


def test_an_idle_timed_window_gives_a_punctuation_at_each_tick():
    op = Aggregate(Tumbling(Time("2s"), by="k"), n=agg.count())
    items = [advance(2), {"k": 1}, advance(6)]
    assert [PUNCT, {"k": 1, "n": 1}, PUNCT, PUNCT] == output(op, items)


def test_a_punctuation_that_finds_nothing_gives_a_punctuation():
    op = Aggregate(Tumbling(Punct()), n=agg.count())
    assert [PUNCT, {"n": 1}, PUNCT, PUNCT] == output(op, [punct(), {}, punct(), punct()])


def test_the_end_of_the_input_closes_a_punctuated_window_that_holds_something():
    op = Aggregate(Tumbling(Punct()), n=agg.count())
    assert [{"n": 2}, PUNCT] == output(op, [{}, {}])
    assert [] == output(op, [])


def test_other_windows_ignore_punctuations():
    op = Aggregate(Tumbling(Count(2)), n=agg.count())
    assert [{"n": 2}, PUNCT] == output(op, [{}, punct(), {}, punct()])


def test_sliding_windows_that_time_has_emptied_still_fire():
    op = Aggregate(Sliding(Time("1s"), every=Time("2s")), n=agg.count())
    assert [PUNCT, {"n": 1}, PUNCT, PUNCT] == output(op, [advance(3), {}, advance(6)])


@pytest.mark.parametrize("every", [Count(1), Delta("ts", 1), Time("1s")])
@pytest.mark.parametrize("evict", [Count(3), Delta("ts", 2)])
def test_before_a_sliding_window_was_full_nothing_comes_out_not_even_a_punctuation(evict, every):
    items = [{"ts": 0}, advance(1), {"ts": 2}, advance(2)]
    assert [] == output(Aggregate(Sliding(evict, every=every), n=agg.count()), items)
    partial = Sliding(evict, every=every, partial="emit")
    assert [] != output(Aggregate(partial, n=agg.count()), items)


def test_partial_may_be_said_by_the_window_or_by_the_operator_which_decides():
    def sizes(window, **more):
        return [row["n"] for row in rows_of(Aggregate(window, n=agg.count(), **more), [{}] * 3)]

    emit, skip = Sliding(Count(3), partial="emit"), Sliding(Count(3), partial="skip")
    assert [[1, 2, 3], [3], [3]] == [sizes(emit), sizes(skip), sizes(Sliding(Count(3)))]
    assert [3] == sizes(emit, partial="skip")
    assert [1, 2, 3] == sizes(skip, partial="emit")


def test_a_partition_that_is_evicted_starts_again_as_partial():
    window = Sliding(Count(2), by="k", forget=PartitionCount(1))
    items = [{"k": key} for key in "aabaa"]
    assert [{"k": "a", "n": 2}] * 2 == rows_of(Aggregate(window, n=agg.count()), items)


# -- options ------------------------------------------------------------------------------------


def test_partitions_that_are_evicted_come_out_if_asked_for():
    window = Tumbling(Count(3), by="k", forget=PartitionCount(1))
    items = [{"k": key} for key in "aabbb"]
    full = {"k": "b", "n": 3}
    assert [full, PUNCT] == output(Aggregate(window, n=agg.count()), items)
    emit = Aggregate(window, n=agg.count(), evicted_partitions="emit")
    assert [{"k": "a", "n": 2}, PUNCT, full, PUNCT] == output(emit, items)


@pytest.mark.parametrize(
    "forget", [PartitionAge("1s"), PartitionCount(1), TupleCount(2)], ids=lambda f: f.kind
)
@pytest.mark.parametrize("evict", [Count(5), Delta("ts", 9), Time("9s")], ids=lambda p: p.kind)
def test_evicted_partitions_of_sliding_windows_come_out_even_if_they_were_never_full(evict, forget):
    window = Sliding(evict, every=Delta("ts", 99), by="k", forget=forget)
    op = Aggregate(window, ks=agg.collect("ts"), evicted_partitions="emit")
    items = [{"k": "a", "ts": 1}, {"k": "a", "ts": 2}, advance(3), {"k": "b", "ts": 3}]
    assert [{"k": "a", "ks": [1, 2]}, PUNCT] == output(op, items)


def test_what_is_left_at_the_end_comes_out_if_asked_for():
    window = Tumbling(Count(2), by="k")
    items = [{"k": key} for key in "cab"]
    assert [] == rows_of(Aggregate(window, n=agg.count()), items)
    flush = Aggregate(window, n=agg.count(), flush_at_end=True)
    wanted = [x for key in "cab" for x in ({"k": key, "n": 1}, PUNCT)]
    assert wanted == output(flush, items)


def test_a_delta_window_that_was_just_flushed_has_its_last_tuple_left_at_the_end():
    flush = Aggregate(Tumbling(Delta("x", 1)), xs=agg.collect("x"), flush_at_end=True)
    assert [{"xs": [1, 2]}, {"xs": [5]}] == rows_of(flush, values(1, 2, 5))


def test_a_batch_closes_at_a_count_or_a_time():
    op = Aggregate(Tumbling(Count(2) | Time("3s")), xs=agg.collect("x"))
    items = [*values(1, 2, 3), advance(3), *values(4), advance(5), *values(5)]
    assert [{"xs": [1, 2]}, {"xs": [3]}, {"xs": [4, 5]}] == rows_of(op, items)


@every_spec
def test_having_leaves_rows_out_and_keeps_the_punctuation(spec):
    items, more = a_stream(13, 60), options_of(spec)
    functions = {name: FUNCTIONS[name] for name in ("count", "max i", "sum d")}
    seen = firings(spec, items, **more)

    def wanted(row):
        return row["count"] > 1 and (row["max i"] or 0) > 2

    expression = (agg.count() > 1) & (agg.max("i") > 2)
    for having in (wanted, expression):
        got = output(aggregate(spec, functions, having=having, group_by="g", **more), items)
        check(expected(seen, functions, keys_of(spec), ["g"], wanted), got, functions)


def test_having_may_use_an_aggregate_that_is_no_output():
    op = Aggregate(Tumbling(Count(1)), x=agg.sum("x"), having=agg.max("x") > 1)
    assert [{"x": 2}, {"x": 3}] == rows_of(op, values(1, 2, None, 3))


def test_having_sees_the_row_with_its_keys():
    op = Aggregate(Tumbling(Count(1), by="k"), n=agg.count(), having=lambda row: row["k"] == "a")
    assert [{"k": "a", "n": 1}] == rows_of(op, [{"k": "a"}, {"k": "b"}])


@every_spec
def test_only_changes_come_out_if_asked_for(spec):
    items, more = a_stream(14, 60), options_of(spec)
    functions = {name: FUNCTIONS[name] for name in ("max t", "collect_distinct s")}
    last: dict[Any, Any] = {}
    wanted = []
    for item in changes(spec, items, functions, more):
        if item == PUNCT:
            wanted.append(item)
        elif isinstance(item, str):
            last = {key: row for key, row in last.items() if key[0] != item[1:]}
        else:
            key = (str(item.get("k", "")), str(item["g"]))
            if key not in last or not same(last[key], item):
                wanted.append(item)
            last[key] = item
    op = aggregate(spec, functions, emit="changed", group_by="g", **more)
    often = [x for n, item in enumerate(items) for x in (item, *([restart()] * (n % 2)))]
    for stream in (items, often):
        check(wanted, output(op, stream), functions)


def changes(spec, items, functions, more):
    """Rows and punctuations, and the key of each partition that is forgotten, after a dash."""
    seen: list[Any] = firings(spec, items, **more, mark_evicted=True)
    for firing in seen:
        if len(firing) == 1:
            yield f"-{firing[0]}"
        else:
            yield from expected([firing], functions, keys_of(spec), ["g"])


def test_a_row_that_was_sent_may_be_changed_by_who_got_it():
    op = Aggregate(Tumbling(Count(1)), xs=agg.collect("x"), emit="changed")
    got = []
    for row in replay(op, iter(values(1, 1, 2, 1))):
        got.append(dict(row, xs=list(row["xs"])))
        row["xs"].clear()
        row["more"] = 1
    assert [{"xs": [1]}, {"xs": [2]}, {"xs": [1]}] == got


def test_changes_are_those_of_a_partition_and_a_group():
    op = Aggregate(Tumbling(Count(1), by="k"), n=agg.count(), emit="changed", group_by="g")
    nan = float("nan")
    items = [{"k": "nan", "g": 1}, {"k": nan, "g": 1}, {"k": nan, "g": 1}, {"k": nan, "g": 2}]
    got = rows_of(op, [x for item in items for x in (item, restart())])
    assert [("nan", 1), ("nan", 1), ("nan", 2)] == [(str(row["k"]), row["g"]) for row in got]


# -- groups -------------------------------------------------------------------------------------


def test_functions_of_the_whole_subwindow_ignore_groups():
    op = Aggregate(
        Sliding(Count(4), every=Count(2)),
        group_by="g",
        n=agg.count(),
        all=agg.count_all(),
        groups=agg.count_groups(),
        sizes=agg.count_by_group(),
        share=agg.count() / agg.count_all(),
    )
    got = rows_of(op, [{"g": g} for g in "abbabc"])
    first = {"all": 4, "groups": 2, "sizes": [2, 2]}
    last = {"all": 4, "groups": 3, "sizes": [2, 1, 1]}
    assert [
        {"g": "a", "n": 2, **first, "share": 0.5},
        {"g": "b", "n": 2, **first, "share": 0.5},
        {"g": "b", "n": 2, **last, "share": 0.5},
        {"g": "a", "n": 1, **last, "share": 0.25},
        {"g": "c", "n": 1, **last, "share": 0.25},
    ] == got


def test_every_row_has_its_own_list_of_group_sizes():
    op = Aggregate(Tumbling(Count(2)), group_by="g", sizes=agg.count_by_group())
    one, other = rows_of(op, [{"g": 1}, {"g": 2}])
    one["sizes"].append("changed")
    assert [1, 1] == other["sizes"]


@pytest.mark.parametrize("window", [Tumbling(Count(2)), Sliding(Count(2)), Sliding(Time("9s"))])
def test_without_groups_the_whole_subwindow_is_the_only_one(window):
    op = Aggregate(window, a=agg.count_all(), b=agg.count_groups(), c=agg.count_by_group())
    assert {"a": 2, "b": 1, "c": [2]} == rows_of(op, [{}, {}, advance(0)])[-1]


def test_a_refused_tuple_leaves_no_empty_group():
    running = Aggregate(Tumbling(Count(3)), group_by="g", n=agg.count(), s=agg.sum("x")).open()
    got: list[Any] = []
    running.connect(0, got.append)
    running.insert({"g": 1, "x": 1})
    with pytest.raises(ValueError, match=r"sum\(.*\) of 'no'"):
        running.insert({"g": 2, "x": "no"})
    running.insert({"g": 1, "x": 2})
    running.insert({"g": 3, "x": 3})
    assert [{"g": 1, "n": 2, "s": 3}, {"g": 3, "n": 1, "s": 3}] == got


def test_groups_and_partitions_with_nan_in_a_tuple_survive_a_restart():
    nan = [{"a": 1, "b": float("nan")}, restart(), {"a": 1, "b": float("nan")}, restart()]
    by_group = Aggregate(Tumbling(Count(2)), n=agg.count(), group_by=("a", "b"))
    by_key = Aggregate(Tumbling(Count(2), by=("a", "b")), n=agg.count())
    by_pair = Aggregate(Tumbling(Count(2)), n=agg.count(), group_by=lambda t: (t["a"], t["b"]))
    for op in (by_group, by_key, by_pair):
        assert [2] == [row["n"] for row in rows_of(op, nan)]


def test_nan_beside_a_number_is_no_change_also_after_a_restart():
    op = Aggregate(Tumbling(Count(2)), all=agg.collect("x"), emit="changed")
    rows = [{"x": 1}, {"x": float("nan")}, restart()]
    assert 1 == len(rows_of(op, rows * 3))
    assert 2 == len(rows_of(op, [*rows, {"x": 1}, {"x": 2}]))


@pytest.mark.parametrize("forget", [None, PartitionAge("5s")], ids=["at the end", "evicted"])
def test_a_row_that_fails_does_not_cost_the_other_partitions_theirs(forget):
    op = Aggregate(
        Tumbling(Count(9), by="k", forget=forget),
        n=agg.count(),
        x=agg.sum("x"),
        having=lambda row: 1 / row["x"],
        evicted_partitions="drop" if forget is None else "emit",
        flush_at_end=forget is None,
    )
    got: list[Any] = []
    running = op.open()
    running.connect(0, got.append)
    for k, x in enumerate((1, 0, 2, 0)):
        running.insert({"k": k, "x": x})
    running.advance(9)
    with pytest.raises(ZeroDivisionError) as caught:
        running.finish() if forget is None else running.insert({"k": 9, "x": 1})
    assert [0, 2] == [row["k"] for row in got]
    assert "and 1 more failure after it" in caught.value.__notes__


# -- names --------------------------------------------------------------------------------------


def second(row):
    return row["b"]


@pytest.mark.parametrize(
    ("by", "group_by", "names"),
    [
        (None, None, []),
        ("a", None, ["a"]),
        ("a", "b", ["a", "b"]),
        (["a", "b"], None, ["a", "b"]),
        (("a", second), None, ["a", "key_2"]),
        (second, None, ["key"]),
        (second, second, ["key", "group"]),
        (None, (second, "a"), ["group_1", "a"]),
        ("a", "a", ["a"]),
    ],
)
def test_key_columns_come_first_under_their_names(by, group_by, names):
    op = Aggregate(Tumbling(Count(1)), by=by, group_by=group_by, n=agg.count())
    (row,) = rows_of(op, [{"a": "A", "b": "B"}])
    assert [*names, "n"] == list(row)
    letters = {"a": "A", "b": "B", "key": "B", "group": "B", "key_2": "B", "group_1": "B"}
    assert [letters[name] for name in names] == list(row.values())[:-1]


def test_the_names_of_spl_work_too():
    window = Sliding(Count(3), forget=PartitionCount(1), by="k")
    ours = Aggregate(window, n=agg.count(), group_by="g", partial="emit", evicted_partitions="emit")
    for word in ("aggregatePartialWindows", "aggregateIncompleteWindows"):
        more: dict[str, Any] = {"groupBy": "g", word: True, "aggregateEvictedPartitions": True}
        theirs = Aggregate(window, partitionBy="k", n=agg.count(), **more)
        items = a_stream(15)
        assert str(output(ours, items)) == str(output(theirs, items))
        more = {word: False, "aggregateEvictedPartitions": False}
        off: dict[str, Any] = {word: False}
        plain = Aggregate(Sliding(Count(3), partial="emit"), n=agg.count(), **off)
        assert [3, 3] == [row["n"] for row in rows_of(plain, [{}] * 4)]
        assert "skip" == Aggregate(window, n=agg.count(), **more).partial


def test_an_output_may_have_the_name_of_a_parameter_in_a_dict():
    op = Aggregate(Tumbling(Count(1)), {"by": agg.count(), "name": agg.sum("x")}, more=agg.count())
    assert [{"by": 1, "name": 5, "more": 1}] == rows_of(op, values(5))


def test_a_window_may_be_given_as_spl_text():
    op = Aggregate("sliding, count(2), count(1), partitioned", by="k", n=agg.count())
    assert [{"k": 1, "n": 2}] == rows_of(op, [{"k": 1}, {"k": 1}])


def test_order_by_is_a_hint_in_the_window():
    op = Aggregate(Tumbling(Count(1)), n=agg.count(), order_by="ts")
    assert (Tumbling(Count(1), order_by="ts"),) == op.windows


# -- one thing at a time ------------------------------------------------------------------------


def test_lambdas_that_look_alike_are_told_apart():
    op = Aggregate(
        Tumbling(Count(1)),
        a=agg.sum(lambda row: row["a"]),
        b=agg.sum(lambda row: row["b"]),
        c=agg.custom(lambda: 0, lambda state, x: state + 1),
        d=agg.custom(lambda: 0, lambda state, x: state + 5),
    )
    assert [{"a": 1, "b": 2, "c": 1, "d": 5}] == rows_of(op, [{"a": 1, "b": 2}])


@pytest.mark.parametrize("column", ["x", None], ids=["values", "rows"])
def test_nan_in_a_list_is_no_change_also_after_a_restart(column):
    op = Aggregate(Tumbling(Count(1)), emit="changed", found=agg.collect(column))
    rows = [{"x": float("nan")}, {"x": float("nan")}, {"x": 1.0}]
    for stream in (rows, [item for row in rows for item in (row, restart())]):
        assert 2 == len(list(replay(op, stream)))
