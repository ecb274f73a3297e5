"""Operators as values, and running operators: input, time, failures and state."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import copy
import functools
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.operator_runs import P, items, with_restarts
from windowlib import (
    ClockError,
    Count,
    Delta,
    ModelError,
    Operator,
    OperatorError,
    OperatorModel,
    Punct,
    SchemaError,
    Sliding,
    StateVersionError,
    Time,
    Tumbling,
    WindowlibWarning,
    replay,
    to,
)
from windowlib.runtime.operator import stable_text

ROOT = Path(__file__).parents[2]


class Lists(Operator):
    """The rows of every window, as a list."""

    model = OperatorModel(
        windows=[Tumbling, Sliding], punctuation_in="window_bound", punctuation_out="generating"
    )

    def __init__(self, window, scale=1, *, label=None, name=None, **more):
        self.scale, self.label, self.more = scale, label, more
        super().__init__(window, name=name)

    def before_flush(self, window, key):
        self.emit([t * self.scale for t in window[key]])
        self.emit_punct()

    def on_trigger(self, window, key):
        self.emit(list(window[key]))


class Counts(Operator):
    """How many rows have come, with a state of its own."""

    def on_open(self):
        self.n = {"rows": 0}

    def on_tuple(self, tuple_, port):
        self.n["rows"] += 1
        self.emit(n=self.n["rows"], row=tuple_)

    def snapshot(self):
        return self.n

    def restore(self, state):
        self.n = {"rows": state["rows"]}


class Two(Operator):
    """Two windows on one clock."""

    model = OperatorModel(
        ports_in=["left", "right"], windows=[Tumbling, Sliding], punctuation_in="window_bound"
    )

    def before_flush(self, window, key):
        self.emit((self.containers.index(window), window.now, list(window[key])))

    def after_evict(self, window, tuple_, key):
        self.emit((self.containers.index(window), window.now, tuple_))


def collected(running):
    got: list[Any] = []
    for port in running.model.outputs:
        running.connect(port.name, got.append, lambda: got.append(P))
    return got


def inside(running) -> Any:
    return running.operator


def by_one(value):
    return value + 1


# -- values --

C2 = Tumbling(Count(2))


def test_an_operator_is_shown_as_it_was_built():
    assert "Lists(Tumbling(Count(size=2)), 3, label='x')" == repr(Lists(C2, 3, label="x"))
    assert "Lists('tumbling, count(2)')" == repr(Lists("tumbling, count(2)"))
    assert "Counts()" == repr(Counts())
    assert "<Running Counts>" == repr(Counts().open())


SAME = [
    (Lists(C2), Lists(C2)),
    (Lists(C2, 3), Lists(C2, scale=3)),
    (Lists(window=C2, scale=3), Lists(C2, 3)),
    (Lists(C2), Lists(C2, 1)),
    (Lists(C2, label=None), Lists(C2)),
    (Lists(C2, a=by_one), Lists(C2, a=by_one)),
]
DIFFERENT = [
    (Lists(C2), Lists(Tumbling(Count(3)))),
    (Lists(C2, 3), Lists(C2, 4)),
    (Lists(C2), Lists(C2, name="other")),
    (Lists(C2, a=1), Lists(C2, b=1)),
    (Lists(C2, 1), Lists(C2, True)),
    (Counts(), Two(C2, C2)),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=repr)
def test_operators_built_alike_are_equal(one, other):
    assert one == other
    assert hash(one) == hash(other)
    assert one.describe() == other.describe()


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_operators_built_differently_are_not(one, other):
    assert one != other
    assert 2 == len({one, other})


def test_an_operator_is_not_equal_to_other_things():
    assert Counts() != "Counts()"


@pytest.mark.parametrize("op", [Lists(C2, 3, label=["a"]), Counts(name="n"), Two(C2, C2)], ids=repr)
def test_copies_are_equal(op):
    for other in (pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op)):
        assert op == other
        assert op.name == other.name
        assert op.windows == other.windows


def test_what_the_caller_changes_later_changes_no_operator():
    labels, options = ["a"], {"x": [1]}
    op = Lists(C2, label=labels, more=options)
    before = repr(op)
    labels.append("b")
    options["x"].append(2)
    assert before == repr(op)
    assert ["a"] == inside(op.open()).label


def test_a_running_operator_is_a_copy():
    op = Counts()
    running = op.open()
    running.insert(1)
    assert "n" not in vars(op)
    assert op is running.definition
    assert 1 == inside(running).n["rows"]


def test_an_operator_runs_as_often_as_one_likes():
    op = Lists(C2)
    for _ in range(2):
        assert [[1, 2]] == list(replay(op, [1, 2, 3]))


def test_the_name_is_that_of_the_class_unless_given():
    assert ("Lists", "mine") == (Lists(C2).name, Lists(C2, name="mine").name)


# -- descriptions --


def test_a_description_names_parameters_and_leaves_out_defaults_and_the_name():
    assert {
        "operator": "Lists",
        "window.kind": "tumbling",
        "window.evict": "Count(size=2)",
        "window.by": "None",
        "window.forget": "None",
        "label": "'x'",
        "extra": "5",
    } == Lists(C2, 1, label="x", extra=5, name="n").describe()
    assert ["operator", "windows"] == list(Two(C2, C2).describe())


class Plain:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": by_one}, "{'b': 1, 'a': <tests.runtime.test_operator.by_one>}"),
        ({"x", "b", "a"}, "{'a', 'b', 'x'}"),
        (frozenset([2, 1]), "{1, 2}"),
        ([1, (2, by_one)], "(1, (2, <tests.runtime.test_operator.by_one>))"),
        (Plain, "<tests.runtime.test_operator.Plain>"),
        (len, "<builtins.len>"),
        (functools.partial(by_one, 3), "partial(<tests.runtime.test_operator.by_one>, 3)"),
        (
            functools.partial(by_one, value=3),
            "partial(<tests.runtime.test_operator.by_one>, ('value', 3))",
        ),
        (Counts(name="x"), "operator=Counts"),
        (Tumbling(Delta("x", 1.0)), "kind=tumbling, evict=Delta('x', 1), by=None, forget=None"),
        ("text", "'text'"),
        (None, "None"),
    ],
    ids=repr,
)
def test_a_value_is_described_by_what_it_is(value, text):
    assert text == stable_text(value)


def test_no_address_gets_into_a_description():
    for value in (Plain(), Delta(lambda t: 1, 5), SimpleNamespace(f=by_one), [lambda: 1]):
        assert "0x" not in stable_text(value)


def test_a_description_is_the_same_in_every_process():
    code = (
        "from tests.runtime.test_operator import *\n"
        "op = Lists(Tumbling(Count(2), by=by_one), label={'z', 'y', 'x', 'w'}, f=functools.partial(by_one, 1),"
        " g=Delta(by_one, 3), h=Plain())\n"
        "print(op.describe())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert 1 == len(told)
    assert "0x" not in told.pop()


# -- running: rows and ports --


def test_handlers_of_the_class_are_called_with_the_window_of_their_port():
    got = items(
        Two(Tumbling(Count(2)), Tumbling(Count(1))), [to("left", 1), to("right", 2), to("left", 3)]
    )
    assert [("out", (1, 0.0, [2])), ("out", (0, 0.0, [1, 3]))] == got


def test_a_handler_may_be_set_on_the_instance():
    class Chosen(Operator):
        model = OperatorModel(windows=[Tumbling])

        def __init__(self, window, name=None):
            self.before_flush = lambda window, key: self.emit(sum(window[key]))  # type: ignore[method-assign]
            super().__init__(window, name=name)

    assert [3] == list(replay(Chosen(C2), [1, 2]))


def test_on_tuple_may_be_set_on_the_instance():
    class Chosen(Operator):
        def __init__(self, name=None):
            self.on_tuple = lambda tuple_, port: self.emit(tuple_ * 10)  # type: ignore[method-assign]
            super().__init__(name=name)

    assert [10, 20] == list(replay(Chosen(), [1, 2]))


def test_insert_many_is_insert_for_each():
    for op in (Counts(), Lists(C2)):
        one, many = op.open(), op.open()
        got = collected(one), collected(many)
        for n in range(5):
            one.insert(n)
        many.insert_many(range(5))
        assert got[0] == got[1] != []


def test_outputs_that_nobody_connects_go_nowhere():
    Lists(C2).open().insert_many([1, 2, 3])


def test_outputs_are_connected_by_name_or_number():
    running = Counts().open()
    first, second = list[Any](), list[Any]()
    running.connect("out", first.append)
    running.insert(1)
    running.connect(0, second.append)
    running.insert(2)
    assert [[{"n": 1, "row": 1}], [{"n": 2, "row": 2}]] == [first, second]
    with pytest.raises(ModelError, match=r"Counts has no output 'oout'. Ports: out. Did you mean"):
        running.connect("oout", first.append)


def test_the_end_comes_when_all_inputs_have_ended():
    told = []
    running = Two(Tumbling(Punct()), C2).open()
    got = collected(running)
    running.connect("out", got.append, final=lambda: told.append("end"))
    running.insert(1, 0)
    running.finish(0)
    assert ([], []) == (told, got)
    running.finish(0)
    running.insert(2, 1)
    running.finish(1)
    assert (["end"], [(0, 0.0, [1])]) == (told, got)
    running.finish()
    assert ["end"] == told


@pytest.mark.parametrize("call", ["insert(row)", "insert_many(rows)", "punctuate()"])
def test_input_after_the_end_is_refused(call):
    row = {"row": 1, "rows": [1]}
    running = Lists(C2).open()
    running.finish()
    with pytest.raises(OperatorError) as caught:
        eval(f"running.{call}", {"running": running, **row})
    assert f"Lists.{call}: its input has ended. Open the operator anew." == str(caught.value)


def test_input_at_a_port_that_has_ended_is_refused():
    running = Two(C2, C2).open()
    running.finish(1)
    running.insert(1, 0)
    with pytest.raises(OperatorError) as caught:
        running.insert(1, 1)
    assert "Two.insert(row): its input of 'right' has ended. Open the operator anew." == str(
        caught.value
    )


@pytest.mark.parametrize(
    "call", ["insert(1, 2)", "insert(1, -1)", "insert_many([1], 2)", "punctuate(2)", "finish(2)"]
)
def test_there_is_no_input_at_other_ports(call):
    running = Two(C2, C2).open()
    with pytest.raises(ModelError, match=r"Two has no input -?\d. Ports: left, right."):
        eval(f"running.{call}")
    running.finish(0)
    running.insert(1, 1)


# -- output --


def test_emit_takes_a_row_or_fields():
    with pytest.raises(SchemaError) as caught:
        Counts().open().operator.emit({"a": 1}, b=2)
    assert "emit({'a': 1}, b=...): a row and fields at once. Give one of them." == str(caught.value)
    with pytest.raises(SchemaError):
        Counts().open().operator.emit_to(0, {"a": 1}, b=2)


def test_emit_to_names_a_port():
    class Sides(Operator):
        model = OperatorModel(ports_out=["a", "b"])

        def on_tuple(self, tuple_, port):
            self.emit_to("b", x=tuple_)
            self.emit_to(0, tuple_)

    assert [("b", {"x": 1}), ("a", 1)] == items(Sides(), [1])
    with pytest.raises(ModelError, match=r"Sides has no output 'c'. Ports: a, b."):
        Sides().open().operator.emit_to("c", 1)


def test_an_operator_that_is_not_running_sends_nothing():
    for send in (Counts().emit, lambda row: Lists(C2).emit_punct()):
        with pytest.raises(
            OperatorError, match=r"it is not running. Use replay.op, rows., or op.open"
        ):
            send(1)


def test_a_sink_has_no_output():
    class Sink(Operator):
        model = OperatorModel(ports_out=0)

        def on_tuple(self, tuple_, port):
            self.emit(1)

    with pytest.raises(ModelError, match=r"Sink has no output 0. Ports: none."):
        Sink().open().insert(1)


def test_a_free_output_carries_no_punctuation():
    with pytest.raises(ModelError) as caught:
        Counts().open().operator.emit_punct()
    assert (
        "Counts.emit_punct(0): its model says that this output is free of punctuations. Say "
        'punctuation_out="generating" in the model.' == str(caught.value)
    )


# -- punctuation --


def test_a_punctuation_closes_the_window_that_waits_for_it():
    assert [("out", [1, 2]), ("out", P), ("out", [3]), ("out", P)] == items(
        Lists(Tumbling(Punct())), [1, 2, P, P, 3]
    )


def test_other_windows_ignore_punctuations():
    assert [("out", [1, 2]), ("out", P)] == items(Lists(C2), [1, P, 2, P, 3])
    assert [("out", [1])] == items(Lists(Sliding(Count(2), every=Count(1))), [P, 1, P])


def test_preserving_outputs_pass_on_those_of_their_input():
    class Both(Operator):
        model = OperatorModel(
            ports_in=2,
            ports_out=3,
            punctuation_out=["preserving", "preserving", "free"],
            preserves=[1, 0, 0],
        )

        def on_tuple(self, tuple_, port):
            self.emit_to(2, tuple_)

    assert [("out0", P), ("out1", P)] == items(Both(), [to(1, P), to(0, P)])


# -- time --


def test_what_is_due_in_two_windows_happens_in_the_order_of_time():
    running = Two(Tumbling(Time("3s")), Tumbling(Time("2s"))).open()
    got = collected(running)
    running.advance(12)
    expected = [
        (1, 2.0),
        (0, 3.0),
        (1, 4.0),
        (0, 6.0),
        (1, 6.0),
        (1, 8.0),
        (0, 9.0),
        (1, 10.0),
        (0, 12.0),
        (1, 12.0),
    ]
    assert expected == [(port, now) for port, now, _ in got]
    assert 12.0 == running.now


def test_all_windows_know_the_time_when_one_of_them_acts():
    class Moves(Two):
        def before_flush(self, window, key):
            _, right = self.containers
            assert right is not None
            right.insert("ticked")

    running = Moves(Tumbling(Time("10s")), Sliding(Time("4s"))).open()
    got = collected(running)
    running.advance(14)
    assert [] == got
    running.advance(15)
    assert [(1, 14.000001, "ticked")] == got


def test_time_does_not_go_back():
    running = Two(C2, C2).open(start=10)
    running.advance(12.5)
    with pytest.raises(ClockError) as caught:
        running.advance(12)
    assert (
        "advance(12): time went back from 12.5. An operator's clock only moves forward; open it "
        "anew, or restore a snapshot." == str(caught.value)
    )
    with pytest.raises(ClockError, match="start"):
        Two(C2, C2).open(start="x")  # type: ignore[arg-type]


def test_due_is_the_first_of_all_windows():
    running = Two(Tumbling(Time("3s")), Sliding(Time("1s"))).open(start=5)
    assert (8_000_000, True) == (running.due(), running.timed)
    running.insert(1, 1)
    assert 6_000_001 == running.due()
    other = Two(C2, C2).open()
    assert (None, False) == (other.due(), other.timed)


# -- failures --


class Fails(Operator):
    model = OperatorModel(ports_in=2, windows=[Tumbling, Sliding], punctuation_in="window_bound")

    def before_flush(self, window, key):
        self.emit((self.containers.index(window), window.now))
        if self.containers.index(window) == 0:
            raise ZeroDivisionError("broken")


def test_a_failing_handler_is_named():
    running = Fails(C2, C2).open()
    running.insert(1)
    with pytest.raises(ZeroDivisionError) as caught:
        running.insert(2)
    assert [
        "in before_flush of Fails, partition None, tuple 2, in TumblingWindow 'tumbling, count(2)'",
        "the tuple: 2",
    ] == caught.value.__notes__


@pytest.mark.parametrize(
    ("hook", "call", "note"),
    [
        ("on_tuple", "insert('x')", "in Own, row 'x'"),
        ("on_punctuation", "punctuate()", "in Own, at a punctuation"),
        ("on_finish", "finish()", "in Own, at the end of its input"),
    ],
)
def test_a_failing_hook_is_named(hook, call, note):
    def fails(self, *_):
        raise LookupError("broken")

    kind = type("Own", (Counts,), {hook: fails})
    running = kind().open()
    with pytest.raises(LookupError) as caught:
        eval(f"running.{call}", {"running": running})
    assert [note] == caught.value.__notes__


def test_the_end_is_told_though_on_finish_fails():
    class Own(Counts):
        def on_finish(self):
            raise LookupError("broken")

    told = []
    running = Own().open()
    running.connect(0, print, final=lambda: told.append("end"))
    with pytest.raises(LookupError):
        running.finish()
    assert ["end"] == told


def test_one_window_that_fails_does_not_stop_the_clock_of_the_other():
    running = Fails(Tumbling(Time("2s")), Tumbling(Time("3s"))).open()
    got = collected(running)
    with pytest.raises(ZeroDivisionError) as caught:
        running.advance(6)
    assert [(0, 2.0), (1, 3.0), (0, 4.0), (0, 6.0), (1, 6.0)] == got
    assert "and 2 more failures after it" == caught.value.__notes__[-1]
    assert 6.0 == running.now
    running.advance(9 - 2)
    assert 5 == len(got)


def test_a_method_that_looks_like_a_handler_is_warned_about():
    class Typo(Operator):
        model = OperatorModel(windows=[Tumbling])

        def before_flsh(self, window, key):
            pass

    with pytest.warns(WindowlibWarning, match="Typo.before_flsh is no handler"):
        Typo(C2).open()


# -- columns --


def test_columns_are_checked_with_the_first_row():
    op = Lists(Tumbling(Delta("price", 5), by=("symbol", "day")))
    op.check_columns(["price", "symbol", "day"])
    with pytest.raises(SchemaError) as caught:
        op.check_columns(["prices", "symbol", "day"])
    assert (
        "Delta('price', 5): no such column. Columns: prices, symbol, day. Did you mean \"prices\"?"
        == str(caught.value)
    )
    with pytest.raises(SchemaError) as caught:
        op.check_columns(["price", "symbol"])
    assert "by=('symbol', 'day'): no such column. Columns: price, symbol." == str(caught.value)


# -- state --

NUMBERS = st.lists(st.one_of(st.integers(0, 9), st.just(P)), max_size=15)


@given(
    st.sampled_from(
        [Lists(C2), Lists(Tumbling(Punct())), Lists(Sliding(Count(3), every=Count(2))), Counts()]
    ),
    NUMBERS,
)
def test_going_on_after_a_restart_anywhere_gives_the_same(op, rows):
    assert items(op, rows) == items(op, with_restarts(rows))


def test_a_snapshot_is_not_changed_by_what_comes_after():
    running = Counts().open()
    running.insert(1)
    state = running.snapshot()
    saved = pickle.dumps(state)
    running.insert(2)
    assert saved == pickle.dumps(state)
    other = Counts().open()
    other.restore(state)
    other.insert(3)
    assert saved == pickle.dumps(state)
    assert 2 == inside(other).n["rows"]


def test_a_snapshot_knows_the_time_and_which_inputs_have_ended():
    running = Two(Tumbling(Time("3s")), C2).open()
    running.advance(2)
    running.finish(1)
    other = Two(Tumbling(Time("3s")), C2).open()
    got = collected(other)
    other.restore(pickle.loads(pickle.dumps(running.snapshot())))
    assert 2.0 == other.now
    with pytest.raises(OperatorError, match="its input of 'right' has ended"):
        other.insert(1, 1)
    other.advance(3)
    assert [(0, 3.0, [])] == got


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (Lists(C2, 3), Lists(C2, 4),
         "restore(state): the snapshot was written with scale=3; this operator says scale=4. Build it as it was, or start afresh."),
        (Lists(C2), Lists(Tumbling(Count(3))),
         "restore(state): the snapshot was written with window.evict=Count(size=2); this operator says window.evict=Count(size=3). "
         "Build it as it was, or start afresh."),
        (Lists(C2, a=1), Lists(C2),
         "restore(state): the snapshot was written with a=1; this operator says a=None. Build it as it was, or start afresh."),
        (Counts(), Lists(C2),
         "restore(state): the snapshot was written with operator=Counts; this operator says operator=Lists. Build it as it was, or start afresh."),
    ],
)  # fmt: skip
def test_the_state_of_another_operator_is_refused(before, after, text):
    with pytest.raises(StateVersionError) as caught:
        after.open().restore(before.open().snapshot())
    assert text == str(caught.value)


def test_a_new_name_takes_the_state_of_the_old():
    running = Counts(name="old").open()
    running.insert(1)
    other = Counts(name="new").open()
    other.restore(running.snapshot())
    assert 1 == inside(other).n["rows"]


@pytest.mark.parametrize("state", [{}, 5, {"v": 1}, {"v": 1, "operator": 3, "state": None}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(StateVersionError) as caught:
        Counts().open().restore(state)
    assert (
        "restore(state): this is not a snapshot of an operator. Pass what snapshot() gave."
        == str(caught.value)
    )


def test_a_state_of_another_format_is_refused():
    state = Counts().open().snapshot() | {"v": 2}
    with pytest.raises(StateVersionError) as caught:
        Counts().open().restore(state)
    assert (
        "restore(state): the snapshot has format 2, this version reads 1. Use the version that wrote it, or start "
        "afresh." == str(caught.value)
    )


@pytest.mark.parametrize("gone", ["now", "windows", "ended"])
def test_a_damaged_state_is_refused_and_changes_nothing(gone):
    running = Two(Tumbling(Punct()), C2).open()
    got = collected(running)
    running.insert(1, 0)
    state = Two(Tumbling(Punct()), C2).open().snapshot()
    del state[gone]
    with pytest.raises(StateVersionError) as caught:
        running.restore(state)
    assert (
        f"restore(state): Two cannot read the snapshot (KeyError('{gone}')). Take it from snapshot() whole."
        == str(caught.value)
    )
    running.punctuate(0)
    assert [(0, 0.0, [1])] == got


def test_a_state_that_the_operator_refuses_changes_nothing():
    running = Counts().open()
    running.insert(1)
    with pytest.raises(
        StateVersionError, match=r"Counts cannot read the snapshot .KeyError.'rows'"
    ):
        running.restore(Counts().open().snapshot() | {"state": {}})
    assert 1 == inside(running).n["rows"]


def test_a_window_that_does_not_fit_changes_nothing():
    running = Two(Tumbling(Punct()), Tumbling(Punct())).open()
    got = collected(running)
    running.insert(1, 0)
    state = Two(Tumbling(Punct()), Tumbling(Punct())).open().snapshot()
    state["windows"][1] = {}
    with pytest.raises(StateVersionError, match="this is not a snapshot of a window"):
        running.restore(state)
    running.punctuate(0)
    assert [(0, 0.0, [1])] == got


# -- explain --


def test_explain_names_ports_windows_and_notes():
    class Noted(Lists):
        def notes(self):
            yield "algorithm", "none to speak of"

    assert """\
operator     mine
input        in: ignores punctuation
  window     tumbling, count(2)
  insert     age, insert, flush
  keeps      tuples
  engine     generated
output       out: punctuation of its own
algorithm    none to speak of""" == Noted(C2, name="mine").explain()
    assert "input        in: expects punctuation" in Lists(Tumbling(Punct())).explain()
    assert "output       out: no punctuation" in Counts().explain()


def test_after_the_end_the_clock_moves_and_nothing_ticks():
    class Ticks(Operator):
        model = OperatorModel(windows=[Tumbling], punctuation_out="generating")

        def before_flush(self, window, key):
            self.emit_punct()

    running = Ticks(Tumbling(Time("1s"))).open()
    marks: list[str] = []
    running.connect(0, print, lambda: marks.append("punct"))
    running.advance(2)
    running.finish()
    running.advance(10)
    assert ["punct", "punct"] == marks
    assert (10.0, None) == (running.now, running.due())
