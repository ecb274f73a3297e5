"""Functor, Filter, Union, Split, Delay and Batch, each against what it says."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import pickle
from collections import namedtuple
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.operator_runs import P, items, out, with_restarts
from windowlib import (
    Count,
    Delta,
    ModelError,
    PartitionAge,
    PartitionCount,
    PolicyError,
    Punct,
    SchemaError,
    Time,
    TupleCount,
    advance,
    replay,
    restart,
    to,
)
from windowlib.operators import Batch, Delay, Filter, Functor, Split, Union, agg, col

Named = namedtuple("Named", "a b")


@dataclass
class Data:
    a: int
    b: int


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


FORMS = [dict, Named, Data, Slots, SimpleNamespace]
forms = pytest.mark.parametrize("form", FORMS)


def double(t):
    return t["a"] * 2


clear: Any = list.clear


def is_even(n):
    return n % 2 == 0


def third(n):
    return n % 3


# -- Functor --


def test_a_functor_sends_what_its_function_gives():
    assert [2, 4] == out(Functor(lambda n: n * 2), [1, 2])


@forms
def test_computed_columns_are_added_to_a_dict_of_the_row(form):
    add = Functor(c=lambda t: 9, d="a")
    assert [{"a": 1, "b": 2, "c": 9, "d": 1}] == out(add, [form(a=1, b=2)])


@forms
def test_keep_and_drop_project(form):
    row = form(a=1, b=2)
    assert [{"b": 2, "a": 1}] == out(Functor(keep=["b", "a"]), [row])
    assert ["b", "a"] == list(out(Functor(keep=["b", "a"]), [row])[0])
    assert [{"b": 2}] == out(Functor(keep="b"), [row])
    assert [{"b": 2}] == out(Functor(drop="a"), [row])
    assert [{"b": 2, "c": 1}] == out(Functor(drop=["a"], c="a"), [row])


@forms
def test_expressions_of_columns_stand_for_functions(form):
    rows = [form(a=a, b=a % 2) for a in (1, 2)]
    made = Functor(keep="a", c=col("a") * 2 + col("b"), d=col("b"))
    want = [{"a": 1, "c": 3, "d": 1}, {"a": 2, "c": 4, "d": 0}]
    assert want == out(made, rows)
    assert want[1:] == out(Filter(col("a") > 1).then(made), rows)
    copied = pickle.loads(pickle.dumps(made))
    assert made == copied
    assert want == out(copied, rows)


def test_expressions_of_columns_have_types_and_name_what_they_read():
    given = pa.schema({"a": pa.int32(), "b": pa.string()})
    made = Functor(c=col("a") / 2, d=col("a") > 1, e=col("b"))
    assert [pa.float64(), pa.bool_(), pa.string()] == made.schema(given).types[2:]
    assert ("b", "a") == Functor(keep="b", c=col("a") / 2).needs(0)
    for operator in (Functor(c=col("x") + col("a")), Filter(col("x") > col("a"))):
        assert ["x", "a"] == [name for name, _ in operator.reads(0)]
    with pytest.raises(ModelError, match="is known only for a whole window, not for a row"):
        Filter(agg.sum("a") > 1)


def test_a_row_for_which_a_condition_is_null_does_not_pass():
    kept = Filter(col("a") > 1, rejected="port")
    result = replay(kept, [{"a": 2}, {"a": None}])
    assert ([{"a": 2}], [{"a": None}]) == (list(result), result.port("rejected"))


def test_computed_columns_see_the_row_as_it_came():
    swap = Functor(a="b", b="a")
    assert [{"a": 2, "b": 1}] == out(swap, [{"a": 1, "b": 2}])


def test_the_input_row_is_left_alone():
    row = {"a": 1}
    (made,) = out(Functor(a=double, c=double), [row])
    assert ({"a": 1}, {"a": 2, "c": 2}) == (row, made)


def test_a_functor_of_many_gives_any_number_of_rows():
    assert [0, 0, 1] == out(Functor(range, many=True), [0, 1, 2])
    assert [1, 1] == out(Functor(lambda n: (n for _ in range(n)), many=True), [0, 1, 1])


def test_a_functor_of_many_sends_nothing_if_it_fails_half_way():
    def fails(n):
        yield n
        raise RuntimeError("half way")

    result = replay(Functor(fails, many=True), [1])
    with pytest.raises(RuntimeError, match="half way"):
        next(result)
    assert [] == result.port()


def test_a_functor_passes_punctuations_on():
    assert [P, 2, P, P] == out(Functor(lambda n: n * 2), [P, 1, P, P])


# -- Filter --


@given(st.lists(st.integers()))
def test_a_filter_passes_or_rejects_and_keeps_the_order(numbers):
    result = replay(Filter(is_even, rejected="port"), numbers)
    assert [n for n in numbers if n % 2 == 0] == list(result)
    assert [n for n in numbers if n % 2] == result.port("rejected")
    assert [n for n in numbers if n % 2 == 0] == list(replay(Filter(is_even), numbers))


@forms
def test_a_filter_takes_a_column(form):
    yes, no = form(a=1, b=5), form(a=0, b=6)
    assert [yes] == out(Filter("a"), [yes, no])


def test_a_filter_passes_punctuations_on_at_both_outputs():
    got = items(Filter(is_even, rejected="port"), [1, P, 2])
    assert [("rejected", 1), ("out", P), ("rejected", P), ("out", 2)] == got


# -- Union --


@given(st.lists(st.tuples(st.integers(0, 2), st.integers())))
def test_a_union_gives_rows_as_they_come_and_no_punctuation(rows):
    marked = [each for port, n in rows for each in (to(port, n), to(port, P))]
    assert [n for _, n in rows] == out(Union(inputs=3), marked)


def test_a_union_names_its_inputs():
    assert [2, 1] == out(Union(["left", "right"]), [to("right", 2), to("left", 1)])


# -- Split --


@given(st.lists(st.integers(0, 20)))
def test_a_split_sends_each_row_where_it_is_told(numbers):
    for ports in (3, ["zero", "one", "two"]):
        result = replay(Split(third, ports=ports), numbers)
        got = [result.port(i) for i in range(3)]
        assert [[n for n in numbers if n % 3 == i] for i in range(3)] == got


def test_a_split_takes_names_numbers_lists_and_predicates():
    split = Split(lambda n: {0: "b", 1: 0, 2: ["b", 0], 3: True, 4: False}[n], ports=["a", "b"])
    got = items(split, [0, 1, 2, 3, 4])
    assert [("b", 0), ("a", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 4)] == got


def test_a_split_passes_punctuations_on_at_every_output():
    assert [("a", P), ("b", P), ("a", {"x": "a"})] == items(
        Split("x", ports=["a", "b"]), [P, {"x": "a"}]
    )


def test_a_row_that_names_an_unknown_port_among_others_goes_nowhere():
    result = replay(Split(lambda n: ["a", "c"], ports=["a", "b"]), [1])
    with pytest.raises(SchemaError):
        list(result)
    assert [] == result.port("a")


# -- Delay --

ROWS_AND_MARKS = st.lists(st.one_of(st.integers(0, 9), st.just(P)), max_size=25)


def delayed_by_count(n, seen):
    """What is out after `seen`: all but the last n rows, and the marks behind those that are."""
    ranks = [sum(item is not P for item in seen[: i + 1]) for i in range(len(seen))]
    sent = max(sum(item is not P for item in seen) - n, 0)
    return [item for item, rank in zip(seen, ranks, strict=True) if rank <= sent]


@given(st.integers(1, 4), ROWS_AND_MARKS)
def test_delay_by_count_holds_the_last_rows_and_loses_none(n, stream):
    running = Delay(Count(n)).open()
    got: list[object] = []
    running.connect(0, got.append, lambda: got.append(P))
    for i, item in enumerate(stream):
        running.punctuate() if item is P else running.insert(item)
        assert delayed_by_count(n, stream[: i + 1]) == got
    running.finish()
    assert stream == got


TIMED = st.lists(
    st.one_of(st.integers(0, 9), st.just(P), st.integers(1, 4).map(advance)), max_size=30
)


def on_the_clock(stream):
    """The same with the steps of time added up, and the time of each row."""
    now, made = 0, list[tuple[int, Any]]()
    for item in stream:
        if item is not P and not isinstance(item, int):
            now += item.at
            made.append((now, advance(now)))
        else:
            made.append((now, item))
    return made


@given(st.integers(1, 5), TIMED)
def test_delay_by_time_sends_rows_that_are_older_and_loses_none(seconds, stream):
    running = Delay(Time(f"{seconds}s")).open()
    got: list[object] = []
    running.connect(0, got.append, lambda: got.append(P))
    come: list[tuple[float, object]] = []
    for now, item in on_the_clock(stream):
        if item is P:
            running.punctuate()
            before = [at for at, row in come if row is not P]
            come.append((before[-1] if before else now - seconds - 1, P))
        elif isinstance(item, int):
            running.insert(item)
            come.append((now, item))
        else:
            running.advance(now)
        assert [row for at, row in come if now - at > seconds] == got
    running.finish()
    assert [row for _, row in come] == got


@given(st.sampled_from([Count(1), Count(3), Time("2s")]), TIMED)
def test_delay_goes_on_after_a_restart_anywhere(by, stream):
    rows = [item for _, item in on_the_clock(stream)] + [advance(1000)]
    assert items(Delay(by), rows) == items(Delay(by), with_restarts(rows))


def test_a_mark_between_held_rows_waits_for_the_row_before_it():
    running = Delay(Time("10s")).open()
    got: list[object] = []
    running.connect(0, got.append, lambda: got.append(P))
    running.insert(1)
    running.advance(9)
    running.punctuate()
    running.insert(2)
    running.advance(10)
    assert [] == got
    running.advance(10.5)
    assert [1, P] == got
    running.advance(20)
    assert [1, P, 2] == got


# -- Batch --


def brute_batches(policy, rows):
    """Lists of rows, cut as Count and Delta say."""
    made: list[list[dict[str, int]]] = []
    current: list[dict[str, int]] = []
    for row in rows:
        if isinstance(policy, Delta) and current and row["x"] - current[0]["x"] > policy.threshold:
            made.append(current)
            current = []
        current.append(row)
        if isinstance(policy, Count) and len(current) == policy.size:
            made.append(current)
            current = []
    return [*made, current] if current else made


@given(
    st.one_of(st.integers(1, 5).map(Count), st.integers(0, 9).map(lambda d: Delta("x", d))),
    st.lists(st.integers(0, 30)),
)
def test_batches_hold_every_row_once(policy, numbers):
    rows = [{"x": n} for n in numbers]
    expected = [
        each for rows in brute_batches(policy, rows) for each in ({"rows": rows, "n": len(rows)}, P)
    ]
    assert expected == out(Batch(policy), rows)
    assert expected == out(Batch(policy), with_restarts(rows))


def test_a_batch_by_key_starts_with_the_key():
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 2}]
    assert [{"b": 2, "rows": rows, "n": 2}, P] == out(Batch(Count(2), by="b"), rows)
    assert [{"b": 2, "rows": rows, "n": 2}, P] == out(Batch(Count(2), by=["b"]), rows)
    both = out(Batch(Count(2), by=("b", "a"), rows="all", n="size"), rows[:1])
    assert [{"b": 2, "a": 1, "all": rows[:1], "size": 1}, P] == both
    computed = out(Batch(Count(2), by=lambda t: t["b"] > 1), rows)
    assert [{"key": True, "rows": rows, "n": 2}, P] == computed
    mixed = out(Batch(Count(2), by=("b", lambda t: 7)), rows)
    assert [{"b": 2, "key_2": 7, "rows": rows, "n": 2}, P] == mixed
    index = out(Batch(Count(2), by=0), [(5, 1), (5, 2)])
    assert [{"key": 5, "rows": [(5, 1), (5, 2)], "n": 2}, P] == index


def sizes(found):
    return [item if item == P else item["n"] for item in found]


def test_a_batch_is_full_by_number_or_by_time_whichever_comes_first():
    batch = Batch(Count(2) | Time("5s"))
    rows = [
        1,
        advance(3),
        2,
        advance(4),
        3,
        advance(8.9),
        4,
        advance(9),
        5,
        advance(14),
        advance(99),
    ]
    assert [2, P, 2, P, 1, P] == sizes(out(batch, rows))
    assert [2, P, 2, P, 1, P] == sizes(out(batch, with_restarts(rows)))


def test_a_timed_batch_without_rows_is_a_punctuation_alone():
    assert [1, P, P, 1, P] == sizes(out(Batch(Time("5s")), [1, advance(11), 2]))


def test_a_batch_closes_at_a_punctuation():
    assert [2, P, P, 1, P] == sizes(out(Batch(Punct()), [1, 2, P, P, 3]))
    assert [2, P, 1, P] == sizes(out(Batch(Punct(), flush_at_end=False), [1, 2, P, 3]))


@pytest.mark.parametrize(
    ("forget", "expected"),
    [
        (PartitionCount(1), [("a", 2), ("b", 1), ("a", 1)]),
        (TupleCount(2), [("a", 2), ("b", 1), ("a", 1)]),
        (PartitionAge("1s"), [("a", 2), ("b", 1), ("a", 1)]),
        (None, [("a", 3), ("b", 1)]),
    ],
)
def test_an_evicted_partition_is_sent_before_it_goes(forget, expected):
    keys = ["a", "a", advance(5), "b", advance(10), "a"]
    rows = [{"k": k} if isinstance(k, str) else k for k in keys]
    for stream in (rows, with_restarts(rows)):
        got = [row for row in out(Batch(Count(10), by="k", forget=forget), stream) if row != P]
        assert expected == [(row["k"], row["n"]) for row in got]


def test_a_partition_that_is_evicted_twice_is_sent_once():
    class Twice(Batch):
        def select_partitions(self, window, keys):
            return [keys[0], keys[0]]

    twice = Twice(Count(10), by="k", forget=PartitionCount(1, select="operator"))
    got = [row for row in out(twice, [{"k": "a"}, {"k": "b"}]) if row != P]
    assert [("a", 1), ("b", 1)] == [(row["k"], row["n"]) for row in got]


def test_what_is_left_at_the_end_is_sent_unless_told_otherwise():
    assert [2, P, 1, P] == sizes(out(Batch(Count(2)), [1, 2, 3]))
    assert [2, P] == sizes(out(Batch(Count(2), flush_at_end=False), [1, 2, 3]))


def test_a_batch_calls_its_function_and_sends_its_rows():
    calls = []

    def send(rows):
        calls.append(rows)
        return (n * 10 for n in rows if n > 1)

    assert [20, P, 30, P] == out(Batch(Count(2), function=send), [1, 2, 3])
    assert [[1, 2], [3]] == calls


def test_a_failing_function_says_where_it_was():
    def fails(rows):
        raise OSError("no network")

    result = replay(Batch(Count(2), function=fails), [1, 2])
    with pytest.raises(OSError, match="no network") as caught:
        list(result)
    assert "in before_flush of Batch, partition None, tuple 2" in caught.value.__notes__[0]


# -- as values --

VALUES = [
    Functor(double, many=True, name="two"),
    Functor(keep=["a"], b="c"),
    Filter("ok", rejected="port"),
    Union(["a", "b"]),
    Split(third, ports=3),
    Delay(Time("5s")),
    Batch(Count(5) | Time("1s"), by="k", forget=PartitionCount(3), function=sorted),
]


@pytest.mark.parametrize("op", VALUES, ids=repr)
def test_they_are_values(op):
    other = pickle.loads(pickle.dumps(op))
    assert op == other
    assert repr(op) == repr(other)
    assert op.model == other.model
    assert op.describe() == other.describe()


# -- mistakes --

MISTAKES = [
    ('Functor()', ModelError, "Functor(): nothing to do. Give a function, Functor(f), or columns, "
     'Functor(total=lambda t: t["a"] + t["b"]).'),
    ('Functor(3)', ModelError, "Functor(3): not a function. Write Functor(lambda t: ...)."),
    ('Functor(len, keep="a")', ModelError,
     "Functor(builtins.len, ...): a function gives whole rows, and so has no use for columns, keep= or "
     "drop=. Put them into a Functor of their own."),
    ('Functor(many=True, a="b")', ModelError,
     "Functor(many=True, ...): a function gives whole rows, and so has no use for columns, keep= or "
     "drop=. Put them into a Functor of their own."),
    ('Functor(keep="a", drop="b")', ModelError,
     "Functor(keep='a', drop='b'): two projections. Give one of them."),
    ('Functor(keep=5)', ModelError,
     'Functor(keep=5): name columns, such as "price" or ["price", "qty"].'),
    ('Functor(keep=[])', ModelError,
     'Functor(keep=[]): name columns, such as "price" or ["price", "qty"].'),
    ('Functor(drop=[1])', ModelError,
     'Functor(drop=[1]): name columns, such as "price" or ["price", "qty"].'),
    ('Functor(total=3)', ModelError,
     'Functor(total=3): not a function. Write total=lambda t: t["x"], or total="x" for a copy.'),
    ('Filter(None)', PolicyError,
     'Filter(None): the attribute must be a name, an index or a callable, such as '
     'Filter(lambda t: t["x"] > 0).'),
    ('Filter("a", rejected="drop")', ModelError,
     "Filter(rejected='drop'): rows that fail are dropped, or go to an output of their own with "
     'rejected="port".'),
    ('Union(0)', ModelError, "Union(inputs=0): give a number from 1 on, or names."),
    ('Union(None)', ModelError, "Union(inputs=None): give a number from 1 on, or names."),
    ('Split(None, ports=2)', PolicyError,
     "Split(None, ports=...): the attribute must be a name, an index or a callable, such as "
     'Split(lambda t: t["side"], ports=["buy", "sell"]).'),
    ('Split("a", ports=[])', ModelError,
     "Split(ports=[]): rows need somewhere to go. Name the ports."),
    ('Split("a", ports=["x", "x"])', ModelError,
     "Split(ports=['x', 'x']): a name is given twice. Rename one."),
    ('Delay(Count(0))', PolicyError,
     'Delay(Count(size=0)): delay by Count(n) rows, from 1 on, or by Time("10s").'),
    ('Delay(Punct())', PolicyError,
     'Delay(Punct()): delay by Count(n) rows, from 1 on, or by Time("10s").'),
    ('Batch(Count(0))', ModelError,
     "Batch(Count(0)): no batch has 0 rows. Use Count(1) or more."),
    ('Batch(5)', PolicyError,
     "Tumbling(evict): 5 is not a policy that fits here. Write Count(5)."),
    ('Batch(Count(5), function=3)', ModelError,
     "Batch(function=3): not a function. Write function=send_rows."),
    ('Batch(Count(5), by="n")', ModelError,
     "Batch(...): two output columns are called 'n'. Use rows= or n= to rename."),
    ('Batch(Count(5), rows="n")', ModelError,
     "Batch(...): two output columns are called 'n'. Use rows= or n= to rename."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "kind", "text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes_are_refused_when_they_are_made(code, kind, text):
    with pytest.raises(kind) as caught:
        eval(code)
    assert text == str(caught.value)


BAD_ROWS = [
    (Functor(dict.clear), {"a": 1}, SchemaError,
     "Functor(builtins.dict.clear): it returned None for {}, and rows are not lost silently. Return a "
     "row, or drop rows with a Filter."),
    (Functor(dict.copy, many=True), {"a": 1}, SchemaError,
     "Functor(builtins.dict.copy): it returned {'a': 1} for {'a': 1}, which is no list of rows. Return "
     "a list or an iterator of rows; [] for none."),
    (Functor(dict.clear, many=True), {}, SchemaError,
     "Functor(builtins.dict.clear): it returned None for {}, which is no list of rows. Return a list "
     "or an iterator of rows; [] for none."),
    (Functor(a=len), (1, 2), SchemaError,
     "Functor(): the row (1, 2) has no named columns. Use dicts, or objects with fields."),
    (Functor(keep=["price"]), {"prize": 1}, SchemaError,
     "keep=['price']: no such column. Columns: prize. Did you mean \"prize\"?"),
    (Functor(drop=["price"]), {"prize": 1}, SchemaError,
     "drop=['price']: no such column. Columns: prize. Did you mean \"prize\"?"),
    (Functor(cost="price"), {"prize": 1}, SchemaError,
     "Functor(cost='price'): no such column. Columns: prize. Did you mean \"prize\"?"),
    (Filter("ok"), {"okay": 1}, SchemaError,
     "Filter('ok'): no such column. Columns: okay. Did you mean \"okay\"?"),
    (Split("side", 2), {"sides": 1}, SchemaError,
     "Split('side'): no such column. Columns: sides. Did you mean \"sides\"?"),
    (Split("side", ["buy", "sell"]), {"side": "sel"}, SchemaError,
     "Split('side'): 'sel' for {'side': 'sel'} names no port. Return one of buy, sell, or drop rows with "
     'a Filter. Did you mean "sell"?'),
    (Split("side", 3), {"side": 3}, SchemaError,
     "Split('side'): 3 for {'side': 3} names no port. Return one of out0, out1, out2, or drop rows with "
     "a Filter."),
    (Split("side", 3), {"side": True}, SchemaError,
     "Split('side'): True for {'side': True} chooses between two ports. Return one of out0, out1, out2, "
     "or drop rows with a Filter."),
    (Split("side", 2), {"side": None}, SchemaError,
     "Split('side'): None for {'side': None} names no port. Return one of out0, out1, or drop rows with "
     "a Filter."),
    (Split("side", 2), {"side": []}, SchemaError,
     "Split('side'): [] for {'side': []} names no port. Return one of out0, out1, or drop rows with a "
     "Filter."),
    (Batch(Count(1), function=clear), {"a": 1}, SchemaError,
     "Batch(function=builtins.list.clear): it returned None for [], which is no list of rows. "
     "Return a list or an iterator of rows; [] for none."),
    (Batch(Count(2), by="key"), {"kay": 1}, SchemaError,
     "by='key': no such column. Columns: kay. Did you mean \"kay\"?"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "row", "kind", "text"), BAD_ROWS, ids=[b[3][:40] for b in BAD_ROWS])
def test_rows_that_do_not_fit_are_named(op, row, kind, text):
    with pytest.raises(kind) as caught:
        items(op, [row])
    assert text == str(caught.value)


def test_a_row_that_lacks_a_column_later_is_named():
    with pytest.raises(SchemaError, match=r"keep=\['a'\]: the tuple \{'b': 1\} has no 'a'"):
        out(Functor(keep=["a"]), [{"a": 1}, {"b": 1}])


def test_a_row_that_lacks_a_column_that_goes_anyway_is_fine():
    assert [{}, {"b": 1}] == out(Functor(drop=["a"]), [{"a": 1}, {"b": 1}])


def test_a_restart_of_another_delay_is_refused():
    running = Delay(Time(timedelta(seconds=5))).open()
    with pytest.raises(ValueError, match="the snapshot was written with by="):
        running.restore(Delay(Count(5)).open().snapshot())


def test_restart_stands_among_the_rows_of_several_inputs():
    assert [1, 2] == out(Union(), [to(0, 1), restart(), to(1, 2)])


@pytest.mark.parametrize("forget", [None, PartitionAge("5s")], ids=["at the end", "evicted"])
def test_a_batch_that_fails_does_not_cost_the_others_theirs(forget):
    op = Batch(Count(9), by="k", forget=forget, function=lambda rows: [1 / t["x"] for t in rows])
    got: list[Any] = []
    running = op.open()
    running.connect(0, got.append)
    for k, x in enumerate((1, 0, 2, 0)):
        running.insert({"k": k, "x": x})
    running.advance(9)
    with pytest.raises(ZeroDivisionError) as caught:
        running.finish() if forget is None else running.insert({"k": 9, "x": 1})
    assert [1.0, 0.5] == got
    assert "and 1 more failure after it" in caught.value.__notes__
