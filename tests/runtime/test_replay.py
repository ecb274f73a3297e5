"""The in-process host: all forms of input, marks among the rows, laziness, failures, warnings."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import importlib.util
import warnings
from collections import deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.operator_runs import P, items, out
from windowlib import (
    ClockError,
    Count,
    Delta,
    Graph,
    ModelError,
    Operator,
    OperatorError,
    OperatorModel,
    PolicyError,
    Punct,
    SchemaError,
    Sliding,
    StateError,
    StateVersionError,
    Time,
    Tumbling,
    WindowlibWarning,
    advance,
    punct,
    replay,
    restart,
    to,
)
from windowlib.operators import Aggregate, Barrier, Batch, Delay, Filter, Functor, Pair, Union, agg
from windowlib.runtime.replay import CHUNK

found = importlib.util.find_spec("pyarrow") is not None
pa: Any = importlib.import_module("pyarrow") if found else None
arrow = pytest.mark.skipif(not found, reason="needs pyarrow")

Named = namedtuple("Named", "k x")


@dataclass
class Data:
    k: str
    x: int


SUMS = Batch(Delta("x", 2), by="k", function=lambda rows: [len(rows)])


class Ticks(Operator):
    """When each window ended, and what it had."""

    model = OperatorModel(windows=[Tumbling])

    def before_flush(self, window, key):
        self.emit((window.now, list(window[key])))


def times_of(op, rows, **options):
    return [now for now, _ in replay(op, rows, **options)]


def dicts(numbers):
    return [{"k": "a", "x": n} for n in numbers]


# -- forms of rows --


class Slotted:
    __slots__ = "k"


class Inherited(Slotted):
    __slots__ = ("x",)

    def __init__(self, k, x):
        self.k, self.x = k, x


class Computed:
    def __init__(self, k, x):
        self._both = k, x

    @property
    def k(self):
        return self._both[0]

    @property
    def x(self):
        return self._both[1]


@pytest.mark.parametrize("form", [dict, Named, Data, SimpleNamespace, Inherited, Computed])
def test_rows_may_be_any_objects(form):
    assert [2, 1] == out(SUMS, [form(k="a", x=n) for n in (1, 2, 5)])[::2]


def test_inherited_slots_are_columns():
    assert [{"k": "a", "x": 1, "y": 2}] == out(Functor(y=lambda t: 2), [Inherited("a", 1)])


def test_a_property_that_is_not_there_is_named_before_the_first_row_goes_in():
    with pytest.raises(SchemaError, match=r"by=\'kk\': no such column. Columns: _both, x"):
        out(Batch(Delta("x", 2), by="kk"), [Computed("a", 1)])


@arrow
@given(st.lists(st.integers(0, 99), max_size=12))
def test_arrow_counts_as_its_rows(numbers):
    rows = dicts(numbers)
    schema = pa.schema([("k", pa.string()), ("x", pa.int64())])
    table = pa.Table.from_pylist(rows, schema=schema)
    batches = table.to_batches(max_chunksize=5)
    expected = items(SUMS, rows)
    assert expected == items(SUMS, table)
    assert expected == items(SUMS, batches)
    assert expected == items(SUMS, iter(batches))
    assert expected == items(SUMS, pa.RecordBatchReader.from_batches(schema, batches))
    if len(batches) == 1:
        assert expected == items(SUMS, batches[0])


@arrow
def test_batches_may_stand_among_rows_and_marks():
    batch = pa.RecordBatch.from_pylist(dicts([1, 2]))
    op = Batch(Punct(), function=lambda rows: [[t["x"] for t in rows]])
    assert [[0, 1, 2], [3]] == list(
        replay(op, [{"k": "a", "x": 0}, batch, punct(), {"k": "a", "x": 3}])
    )


def test_a_long_input_is_the_same_as_a_short_one():
    rows = list(range(2 * CHUNK + 7))
    assert rows == out(Functor(abs), rows)


@arrow
def test_a_long_table_is_the_same_as_a_short_one():
    rows = list(range(2 * CHUNK + 7))
    assert rows == out(Functor(lambda t: t["x"]), pa.table({"x": rows}))


@pytest.mark.parametrize(
    "form",
    [list, tuple, deque, iter, set, dict.fromkeys],
    ids=["list", "tuple", "deque", "iter", "set", "keys"],
)
def test_rows_may_come_in_any_iterable(form):
    rows: Any = form([1, 2, 3])
    assert [1, 2, 3] == out(Functor(abs), rows.keys() if isinstance(rows, dict) else rows)


def test_nothing_comes_of_nothing():
    inputs: list[Any] = [[], iter([])]
    for rows in inputs:
        assert [] == items(Batch(Count(2)), rows)


class Frame:
    def to_dict(self):
        return {}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (Frame(), "replay(op, Frame): a Frame is no list of rows. Pass pa.Table.from_pandas(df)."),
        ({"x": 1}, "replay(op, {'x': 1}): a dict is no list of rows. Pass a list, as [row]."),
        ("text", "replay(op, 'text'): a str is no list of rows. Pass a list, as [row]."),
        (5, "replay(op, 5): a int is no list of rows. Pass a list, as [row]."),
    ],
)
def test_what_is_no_list_of_rows_is_refused(rows, text):
    with pytest.raises(SchemaError) as caught:
        out(Functor(abs), rows)
    assert text == str(caught.value)


def test_what_is_no_operator_is_refused():
    with pytest.raises(OperatorError) as caught:
        replay(Tumbling(Count(2)), [])  # type: ignore[arg-type]
    assert "replay(Tumbling(Count(size=2)), ...): not an operator. Pass an Operator object." == str(
        caught.value
    )


# -- columns --


def test_columns_are_checked_before_the_first_row_goes_in():
    with pytest.raises(SchemaError) as caught:
        out(Batch(Delta("price", 1)), [{"prize": 1}])
    assert "Delta('price', 1): no such column. Columns: prize. Did you mean \"prize\"?" == str(
        caught.value
    )


def test_columns_of_every_input_are_checked():
    op = Barrier({"in0": "x", "in1": "y"})
    with pytest.raises(SchemaError, match=r"on='y': no such column. Columns: x"):
        out(op, [to(0, {"x": 1}), to(1, {"x": 1})])


# -- several inputs --


def test_tagged_rows_go_to_their_input():
    op = Barrier(inputs=["l", "r"], select=lambda a, b: (a, b))
    assert [(1, 2)] == out(op, [to("r", 2), to("l", 1)])
    assert [(1, 2)] == out(op, [to(1, 2), to(0, 1)])
    with pytest.raises(ModelError, match=r"Barrier has no input 'm'. Ports: l, r"):
        out(op, [to("m", 1)])


ORDERED = st.lists(st.integers(0, 9), max_size=8).map(sorted)


@given(ORDERED, ORDERED, ORDERED)
def test_inputs_are_merged_by_a_column_earlier_ports_first(first, second, third):
    inputs = (first, second, third)
    rows = [
        [{"ts": ts, "from": i, "n": n} for n, ts in enumerate(each)]
        for i, each in enumerate(inputs)
    ]
    expected = sorted(
        (t for each in rows for t in each), key=lambda t: (t["ts"], t["from"], t["n"])
    )
    assert expected == list(replay(Union(3), *rows, merge="ts"))
    assert expected == list(replay(Union(3), *map(iter, rows), merge=lambda t: t["ts"]))


def test_marks_stay_behind_their_row_when_inputs_are_merged():
    op = Graph(
        inputs=["a", "b"],
        a_=(Functor(lambda t: t["ts"]), "a"),
        b_=(Functor(lambda t: t["ts"]), "b"),
    )
    left = [P, {"ts": 1}, P, {"ts": 5}, P]
    right = [{"ts": 2}, restart(), {"ts": 3}, P]
    expected = [
        ("a_", P),
        ("a_", 1),
        ("a_", P),
        ("b_", 2),
        ("b_", 3),
        ("b_", P),
        ("a_", 5),
        ("a_", P),
    ]
    assert expected == list(replay(op, left, right, merge="ts").items())


def test_the_clock_may_move_in_merged_inputs():
    op = Graph(inputs=["a", "b"], ticks=(Ticks(Tumbling(Time("2s"))), ["a", "b"]))
    left, right = [{"ts": 1}, advance(2), {"ts": 3}], [{"ts": 1}, {"ts": 2}, advance(4)]
    found = list(replay(op, left, right, merge="ts"))
    assert [2.0, 4.0] == [now for now, _ in found]
    assert [1, 2] == [len(rows) for _, rows in found]


@arrow
def test_arrow_tables_are_merged_too():
    left, right = pa.table({"ts": [1, 4]}), pa.table({"ts": [2, 3]})
    assert [1, 2, 3, 4] == [t["ts"] for t in replay(Union(), left, right, merge="ts")]


@pytest.mark.parametrize(
    ("inputs", "options", "text"),
    [
        (((), ()), {},
         "replay(Union, ...): nothing says how the 2 inputs interleave. Name the column they are ordered by, "
         'merge="ts", or tag the rows: to(port, row).'),
        (((), (), ()), {"merge": "ts"},
         "replay(Union, ...): 3 inputs given, and it has 2 (in0, in1). Give one iterable per input, or one of "
         "to(port, row)."),
        ((), {},
         "replay(Union, ...): 0 inputs given, and it has 2 (in0, in1). Give one iterable per input, or one of "
         "to(port, row)."),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_refused_at_once(inputs, options, text):
    with pytest.raises(OperatorError) as caught:
        replay(Union(), *inputs, **options)
    assert text == str(caught.value)


def test_rows_and_marks_without_a_port_are_refused():
    for item in (5, P):
        with pytest.raises(OperatorError) as caught:
            out(Union(["l", "r"]), [item])
        assert (
            f"replay(Union, rows): it has 2 inputs, and {item!r} does not say which it is for. Write to('l', row), or "
            'give one iterable per input and merge="ts".' == str(caught.value)
        )


def test_inputs_out_of_order_are_not_merged():
    with pytest.raises(SchemaError) as caught:
        list(replay(Union(), [{"ts": 1}], [{"ts": 5}, {"ts": 3}], merge="ts"))
    assert (
        "replay(..., merge='ts'): the rows for 'in1' are not in order, 3 comes after 5. Sort them first."
        == str(caught.value)
    )


# -- the clock --

EVERY5 = Ticks(Tumbling(Time("5s")))


def test_the_clock_moves_to_a_time_or_by_a_time():
    assert [5.0, 10.0] == times_of(EVERY5, [1, advance(4), advance("6s")])
    assert [5.0] == times_of(EVERY5, [1, advance(timedelta(seconds=7))])
    assert [105.0] == times_of(EVERY5, [1, advance(105)], start=100)
    at = datetime(2024, 5, 1, tzinfo=UTC)
    assert [at.timestamp() + 5] == times_of(EVERY5, [advance(at), 1, advance("5s")], start=at)


def test_a_column_may_move_the_clock():
    rows = [{"ts": ts} for ts in (1.7e9, 1.7e9 + 4, 1.7e9 + 11)]
    assert [1.7e9 + 5, 1.7e9 + 10] == times_of(EVERY5, rows, times="ts")
    assert [1.7e9 + 5, 1.7e9 + 10] == times_of(EVERY5, iter(rows), times=lambda t: t["ts"])
    assert [1.7e9 + 3, 1.7e9 + 8] == times_of(EVERY5, rows, times="ts", start=1.7e9 - 2)
    at = datetime(2024, 5, 1, tzinfo=UTC)
    found = times_of(EVERY5, [{"ts": at}, {"ts": at + timedelta(seconds=5)}], times="ts")
    assert [at.timestamp() + 5] == found


def test_the_clock_starts_with_the_first_row_though_marks_come_before():
    rows = [P, restart(), {"ts": 1.7e9}, {"ts": 1.7e9 + 5}]
    for form in (list, iter):
        assert [1.7e9 + 5] == times_of(EVERY5, form(rows), times="ts")
    assert [] == items(EVERY5, [P], times="ts")


def test_a_row_arrives_after_what_is_due_at_its_time():
    assert [(5.0, [{"ts": 0}])] == out(EVERY5, [{"ts": 0}, {"ts": 5}], times="ts")


def test_one_iterable_is_merged_with_nothing():
    for rows in ([{"ts": 1}], iter([{"ts": 1}])):
        with pytest.raises(
            OperatorError, match=r"merge='ts'\): there is one iterable, and nothing"
        ):
            replay(EVERY5, rows, merge="ts")


@pytest.mark.parametrize(
    ("rows", "options", "kind", "text"),
    [
        ([{"ts": 5}, {"ts": 4}], {"times": "ts"}, ClockError, "times='ts': time went back from 5 to 4. Sort the rows by it, or let them wait for one another with replay(..., watermark=\"5s\")."),
        ([{"ts": "x"}], {"times": "ts"}, ClockError, "times='ts': the value 'x' is no point in time. Use a column with seconds as numbers, or with datetimes."),
        ([{"ts": 1}, {"ts": None}], {"times": "ts"}, ClockError, "times='ts': the value None is no point in time. Use a column with seconds as numbers, or with datetimes."),
        ([{"t": 1}], {"times": "ts"}, SchemaError, "times='ts': the tuple {'t': 1} has no 'ts'. Columns: t. Did you mean \"t\"?"),
        ([1, advance(5), advance(3)], {}, ClockError, "advance(3): time went back from 5. An operator's clock only moves forward; open it anew, or restore a snapshot."),
    ],
)  # fmt: skip
def test_times_that_do_not_fit_are_named(rows, options, kind, text):
    with pytest.raises(kind) as caught:
        out(EVERY5, rows, **options)
    assert text == str(caught.value)


@pytest.mark.parametrize("wrong", [None, "soon", [], True, float("nan")])
def test_what_is_no_time_is_refused_where_it_is_written(wrong):
    with pytest.raises((ClockError, PolicyError), match=r"^advance\("):
        advance(wrong)


def test_tagged_marks_are_marks():
    op = Graph(inputs=["a", "b"], ticks=(EVERY5, ["a", "b"]))
    assert [5.0] == times_of(op, [to("a", 1), to("b", advance(5)), to("a", restart())])


def test_marks_are_shown_as_they_are_written():
    assert "[punct(), advance('2s'), advance(3), restart(), to('a', 1)]" == repr(
        [punct(), advance("2s"), advance(3), restart(), to("a", 1)]
    )


# -- warnings --


def test_a_clock_that_never_moves_is_warned_about():
    with pytest.warns(WindowlibWarning) as caught:
        items(Batch(Time("5s")), [1])
    assert [
        'replay(Batch, ...): it has a time policy, and nothing moved the clock. Pass times="ts", or put advance(...) '
        "among the rows."
    ] == [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("op", "rows", "options"),
    [
        (Batch(Time("5s")), [], {}),
        (Batch(Time("5s")), [1, advance(0)], {}),
        (Batch(Time("5s")), [{"ts": 1}], {"times": "ts"}),
        (Batch(Count(5)), [1], {}),
    ],
)
def test_there_is_no_warning_without_cause(op, rows, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        items(op, rows, **options)


# -- what comes out, and when --


def test_rows_come_out_as_soon_as_they_can():
    taken = []

    def source() -> Iterator[int]:
        for n in range(10):
            taken.append(n)
            yield n

    result = replay(Batch(Count(2)), source())
    assert [] == taken
    assert [0, 1] == next(result)["rows"]
    assert [0, 1] == taken
    assert [2, 3] == next(result)["rows"]
    assert [0, 1, 2, 3] == taken


def test_an_endless_input_is_fine():
    def naturals():
        n = 0
        while True:
            yield n
            n += 1

    result = replay(Filter(lambda n: n % 3 == 0), naturals())
    assert [0, 3, 6] == [next(result) for _ in range(3)]


def test_ports_hold_what_was_not_iterated_over():
    result = replay(Filter(lambda n: n > 1, rejected="port"), [0, 1, 2, 3])
    assert 2 == next(result)
    assert [0, 1] == result.port("rejected")
    assert [3] == result.port()
    assert [3] == result.port("out") == result.port(0)
    with pytest.raises(ModelError, match=r"Filter has no output 'reject'. Ports: out, rejected"):
        result.port("reject")


def test_items_are_everything_in_order():
    op = Pair(inputs=["a", "b"], select=lambda a, b: a + b)
    got = list(replay(op, [to("a", 1), to("a", 2), to("b", 3)]).items())
    assert [("out", 4), ("out", P), ("unpaired", 2)] == got


@pytest.mark.parametrize("form", [list, iter])
def test_rows_that_came_out_before_a_failure_are_delivered(form):
    result = replay(Functor(lambda n: 6 // n), form([1, 2, 0, 3]))
    got: list[Any] = []
    with pytest.raises(ZeroDivisionError) as caught:
        got.extend(result)
    assert [6, 3] == got
    assert ["in Functor, row 0"] == caught.value.__notes__
    assert [] == list(result)


def test_rows_that_came_out_before_the_input_failed_are_delivered():
    def source():
        yield 1
        raise OSError("gone")

    result = replay(Functor(abs), source())
    assert 1 == next(result)
    with pytest.raises(OSError, match=r"gone"):
        next(result)


def test_ports_keep_what_came_out_before_a_failure():
    result = replay(Functor(lambda n: 6 // n), [1, 0])
    with pytest.raises(ZeroDivisionError):
        result.port()
    assert [6] == result.port()


# -- restarts --


def test_a_restart_writes_the_state_as_bytes():
    class Holds(Operator):
        def on_tuple(self, tuple_, port):
            self.emit(tuple_)

        def snapshot(self):
            return lambda: 1

    with pytest.raises(StateError, match=r"objects of builtins\.function are not plain data"):
        out(Holds(), [1, restart()])
    assert [1] == out(Holds(), [1])


def test_a_restart_starts_from_what_was_saved():
    class Forgets(Operator):
        def on_open(self):
            self.n = 0

        def on_tuple(self, tuple_, port):
            self.n += 1
            self.emit(self.n)

    assert [1, 2, 1] == out(Forgets(), [0, 0, restart(), 0])


def test_a_restart_keeps_the_time():
    assert [5.0, 10.0] == times_of(
        EVERY5, [1, advance(4), restart(), advance("1s"), restart(), advance("5s")]
    )


def test_a_restart_needs_a_state_that_fits():
    class Wrong(Operator):
        def on_tuple(self, tuple_, port):
            pass

        def snapshot(self):
            return {}

        def restore(self, state):
            if state:
                return
            self.n = state["n"]

    with pytest.raises((StateVersionError, KeyError)):
        out(Wrong(), [1, restart()])


def test_delayed_rows_survive_restarts_in_every_form_of_row():
    rows = [Named("a", 1), {"k": "b", "x": 2}, Data("c", 3)]
    stream = [each for row in rows for each in (row, restart())]
    assert rows == out(Delay(Count(2)), stream)


# -- order_by --


BY_X = Aggregate(Tumbling(Count(2), order_by="x"), xs=agg.collect("x"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([3, 1, 2, 4], [[1, 2], [3, 4]]),
        ([3, None, 2, 1], [[1], [2, 3]]),  # nulls first, and skipped by collect
        ([3, punct(), 2, 1], [[3, 1]]),  # marks stay where they are; 2 waits
    ],
)
def test_a_list_is_put_in_the_order_that_the_window_asks_for(rows, expected):
    given = [row if row == punct() else {"x": row} for row in rows]
    assert expected == [row["xs"] for row in replay(BY_X, given)]


def test_rows_that_come_one_by_one_are_taken_as_they_come():
    rows = ({"x": x} for x in (3, 1, 2, 4))
    assert [[3, 1], [2, 4]] == [row["xs"] for row in replay(BY_X, rows)]


def test_nan_comes_last_and_what_does_not_compare_is_refused():
    nan = float("nan")
    (first, *_) = replay(BY_X, [{"x": nan}, {"x": 2.0}, {"x": 1.0}])
    assert [1.0, 2.0] == first["xs"]
    with pytest.raises(SchemaError, match="order_by='x': the values cannot be compared"):
        replay(BY_X, [{"x": "a"}, {"x": 2}])


def test_a_chain_has_the_order_of_its_first_operator():
    chain = BY_X.then(Aggregate(Tumbling(Punct()), n=agg.count()))
    assert "x" == chain.order_by
    assert 2 == len(list(replay(chain, [{"x": x} for x in (4, 3, 2, 1)])))


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_row_without_a_place_in_the_order_of_a_merge_is_refused(value):
    rows = [{"ts": 1}, {"ts": value}]
    with pytest.raises(SchemaError, match="for 'in1' has no place in that order"):
        list(replay(Union(inputs=2), [{"ts": 1}], rows, merge="ts"))


# -- sources that may have to wait --


class Source:
    """An iterator that notes what was taken from the replay before each row is asked for."""

    def __init__(self, items):
        self.items, self.taken, self.asked = iter(items), [], []

    def __iter__(self):
        return self

    def __next__(self):
        self.asked.append(len(self.taken))
        return next(self.items)


def pairs():
    return Aggregate(Tumbling(Count(2)), n=agg.count(), total=agg.sum("x"))


def test_a_source_is_asked_for_a_row_when_all_that_came_out_before_is_taken():
    source = Source([{"x": x} for x in range(6)])
    for row in replay(pairs(), source):
        source.taken.append(row)
    assert [1, 5, 9] == [row["total"] for row in source.taken]
    assert [0, 0, 1, 1, 2, 2, 3] == source.asked


def mixed():
    """Rows of two types, with marks of all kinds and a batch among them."""
    rows = [{"x": 1}, Data("", 2), Data("", 3), punct(), {"x": 4}, restart(), {"x": 5}, {"x": 6}]
    return [*rows, pa.table({"x": [7, 8, 9]}), advance(5), Data("", 10), {"x": 11}]


@pytest.mark.parametrize("spec", [Tumbling(Count(2)), Sliding(Count(3)), Tumbling(Punct())])
def test_a_source_gives_what_a_list_gives(spec):
    totals = Aggregate(spec, n=agg.count(), total=agg.sum("x"))
    listed = list(replay(totals, mixed()).items())
    assert listed
    assert listed == list(replay(totals, iter(mixed())).items())


def test_what_a_source_raises_comes_after_the_rows_before_it():
    def failing():
        yield from ({"x": x} for x in (1, 2, 3))
        raise RuntimeError("the line is cut")

    found = replay(pairs(), failing())
    assert {"n": 2, "total": 3} == next(found)
    with pytest.raises(RuntimeError, match="the line is cut"):
        next(found)
    assert [] == list(found)
