"""Graphs: streams and ports, punctuation, time, the end of input, failures and state."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import pickle
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.helpers.operator_runs import P, items, out, with_restarts
from windowlib import (
    Count,
    Delta,
    Graph,
    ModelError,
    Operator,
    OperatorError,
    OperatorModel,
    Punct,
    PunctuationError,
    SchemaError,
    Sliding,
    StateVersionError,
    Time,
    Tumbling,
    advance,
    replay,
    restart,
    to,
)
from windowlib.operators import (
    Barrier,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    Pair,
    Punctor,
    Sort,
    Split,
    Union,
)


def plus(n):
    return Functor(partial(added, n))


def added(n, row):
    return row + n


def is_even(n):
    return n % 2 == 0


def together(*rows):
    return rows


def rows_of(found):
    return [item if item == P else item["rows"] for item in found]


class Expects(Operator):
    """Needs punctuations, whatever its window; counts them."""

    model = OperatorModel(punctuation_in="expecting", punctuation_out="generating")

    def on_tuple(self, tuple_, port):
        self.emit(tuple_)

    def on_punctuation(self, port):
        self.emit("mark")


class Echo(Operator):
    """Any model at all."""

    def __init__(self, name=None, **model):
        self.model = OperatorModel(**model)
        super().__init__(name=name)

    def on_tuple(self, tuple_, port):
        for number in range(len(self.model.outputs)):
            self.emit_to(number, tuple_)


class Recent(Operator):
    """What leaves a window, with the time."""

    model = OperatorModel(windows=[Sliding])

    def after_evict(self, window, tuple_, key):
        self.emit((window.now, tuple_))


class Ticks(Operator):
    """A row at every tick, and punctuation."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")

    def before_flush(self, window, key):
        self.emit(f"tick {window.now:g}")


# -- streams --


def test_rows_go_along_the_streams():
    graph = Graph(inputs="n", plus=(plus(1), "n"), even=(Filter(is_even), "plus"))
    assert [2, 4] == out(graph, [1, 2, 3])


def test_nodes_may_be_named_in_any_order():
    graph = Graph(inputs="n", even=(Filter(is_even), "plus"), plus=(plus(1), "n"))
    assert ("plus", "even") == graph.names
    assert [2, 4] == out(graph, [1, 2, 3])


def test_a_stream_may_have_several_readers():
    graph = Graph(inputs="n", one=(plus(1), "n"), ten=(plus(10), "n"), more=(plus(100), "one"))
    assert [("ten", 11), ("more", 102)] == sorted(items(graph, [1]), key=lambda item: item[1])


def test_an_input_may_have_several_streams():
    graph = Graph(inputs=["a", "b"], tens=(plus(10), "a"), both=(plus(0), ["tens", "b"]))
    assert [11, 2, 13] == out(graph, [to("a", 1), to("b", 2), to("a", 3)])


def test_other_ports_are_named_after_a_dot():
    graph = Graph(
        inputs="n",
        split=(Split(is_even, ports=["even", "odd"]), "n"),
        more=(plus(10), "split.odd"),
        less=(plus(-10), "split.even"),
    )
    assert [("more", 11), ("less", -8)] == items(graph, [1, 2])
    graph = Graph(
        inputs="n", split=(Split(is_even, ports=["even", "odd"]), "n"), more=(plus(10), "split")
    )
    assert [("split.odd", 1), ("more", 12)] == items(graph, [1, 2])


def test_inputs_of_an_operator_are_in_its_order():
    graph = Graph(inputs=["a", "b"], pair=(Barrier(inputs=["x", "y"], select=together), "b", "a"))
    assert [(2, 1)] == out(graph, [to("a", 1), to("b", 2)])


def test_what_nobody_reads_comes_out_main_outputs_first():
    graph = Graph(
        inputs="n",
        first=(Filter(is_even, rejected="port"), "n"),
        second=(plus(1), "n"),
        third=(plus(1), "second"),
    )
    assert ["first", "third", "first.rejected"] == [port.name for port in graph.model.outputs]
    assert [("first.rejected", 1), ("third", 3), ("first", 2), ("third", 4)] == items(graph, [1, 2])


def test_outputs_may_be_chosen_also_among_those_that_are_read():
    nodes: Any = {"one": (plus(1), "n"), "two": (plus(1), "one")}
    assert [("two", 3), ("one", 2)] == items(
        Graph(inputs="n", outputs=["one", "two"], **nodes), [1]
    )
    assert [("one", 2)] == items(Graph(inputs="n", outputs="one", **nodes), [1])
    assert [("two", 3), ("n", 1)] == sorted(
        items(Graph(inputs="n", outputs=["two", "n"], **nodes), [1]), reverse=True
    )


DAGS = st.lists(
    st.tuples(
        st.integers(-9, 9), st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True)
    ),
    min_size=1,
    max_size=6,
)


@given(DAGS, st.lists(st.integers(0, 100), max_size=5))
@settings(max_examples=examples(60))
def test_every_row_takes_every_path(drawn, rows):
    """Nodes add a number; what comes out of the last is one sum for each path to it."""
    nodes: dict[str, Any] = {}
    sums: list[list[int]] = [[0]]
    for i, (n, picks) in enumerate(drawn):
        feeds = sorted({pick % (i + 1) for pick in picks})
        nodes[f"n{i + 1}"] = (plus(n), [f"n{feed}" for feed in feeds])
        sums.append([n + before for feed in feeds for before in sums[feed]])
    graph = Graph(inputs="n0", outputs=f"n{len(drawn)}", **nodes)
    got = list(replay(graph, rows))
    width = len(sums[-1])
    assert [sorted(row + s for s in sums[-1]) for row in rows] == [
        sorted(got[i * width : (i + 1) * width]) for i in range(len(rows))
    ]
    assert items(graph, rows) == items(graph, with_restarts(rows))


# -- punctuation: who may feed a port that expects it --

GENERATING = [
    ("batch", Batch(Count(2)), 1),
    ("punctor", Punctor(is_even), 1),
    ("pair", Pair(select=together), 2),
    ("expects", Expects(), 1),
]
PRESERVING = [
    ("functor", plus(0), 1),
    ("filter", Filter(bool), 1),
    ("split", Split(is_even, ports=["a", "b"]), 1),
    ("delay", Delay(Count(1)), 1),
]
FREE = [
    ("union", Union(), 2),
    ("barrier", Barrier(select=together), 2),
    ("unpaired", Pair(select=together), 2),
]


def ids(rows):
    return [row[0] for row in rows]


def graph_of(op, ports, reader, source="op", feed=None):
    inputs = [f"i{n}" for n in range(ports)]
    return Graph(inputs=inputs, op=(op, *(feed or inputs)), reader=(reader, source))


@pytest.mark.parametrize("reader", [Batch(Punct()), Expects()], ids=["window_bound", "expecting"])
@pytest.mark.parametrize(
    ("name", "op", "ports"), GENERATING + PRESERVING, ids=ids(GENERATING + PRESERVING)
)
def test_ports_that_expect_punctuation_read_streams_that_carry_it(name, op, ports, reader):
    assert 2 == len(graph_of(op, ports, reader))


@pytest.mark.parametrize(("name", "op", "ports"), FREE, ids=ids(FREE))
def test_they_do_not_read_streams_without(name, op, ports):
    stream = "op.unpaired" if name == "unpaired" else "op"
    with pytest.raises(PunctuationError) as caught:
        graph_of(op, ports, Batch(Punct()), stream)
    assert (
        f"Batch(Tumbling(Punct())) reads {stream!r}, an output of {type(op).__name__} that carries no punctuation. "
        "It would grow without end. Window each stream, then merge; or put a Punctor before it."
        == str(caught.value)
    )
    with pytest.raises(PunctuationError, match=f"'reader' reads '{stream}', an output"):
        graph_of(op, ports, Expects(), stream)


@pytest.mark.parametrize(("name", "op", "ports"), FREE, ids=ids(FREE))
def test_others_read_any_stream(name, op, ports):
    graph_of(op, ports, Batch(Count(2)), "op.unpaired" if name == "unpaired" else "op")
    graph_of(op, ports, Punctor(is_even))


def test_merged_streams_carry_none():
    with pytest.raises(PunctuationError) as caught:
        Graph(inputs=["a", "b"], reader=(Batch(Punct()), ["a", "b"]))
    assert (
        "Batch(Tumbling(Punct())) reads the union of 'a' and 'b', which carries no punctuation because the streams "
        "were merged. It would grow without end. Window each stream, then merge; or put a Punctor before it."
        == str(caught.value)
    )


def test_what_preserves_is_followed_to_its_origin():
    preserving: Any = {
        "one": (plus(1), ["a", "b"]),
        "two": (Filter(bool), "one"),
        "three": (Delay(Count(1)), "two"),
    }
    with pytest.raises(PunctuationError) as caught:
        Graph(inputs=["a", "b"], **preserving, reader=(Batch(Punct()), "three"))
    assert (
        "Batch(Tumbling(Punct())) reads 'three', which preserves the punctuation of 'two', which preserves the "
        "punctuation of 'one', which preserves the punctuation of the union of 'a' and 'b', which carries no "
        "punctuation because the streams were merged. It would grow without end. Window each stream, then merge; or "
        "put a Punctor before it." == str(caught.value)
    )
    Graph(
        inputs=["a", "b"],
        **preserving,
        mark=(Punctor(is_even), "three"),
        reader=(Batch(Punct()), "mark"),
    )


def test_a_port_preserves_the_one_it_names():
    op = Echo(ports_in=2, ports_out=2, punctuation_out="preserving", preserves=[0, 1])
    nodes: Any = {"free": (Union(), "a", "b"), "op": (op, "c", "free")}
    Graph(inputs=["a", "b", "c"], **nodes, reader=(Batch(Punct()), "op.out0"))
    with pytest.raises(
        PunctuationError,
        match=r"'op.out1', which preserves the punctuation of 'free', an output of Union",
    ):
        Graph(inputs=["a", "b", "c"], **nodes, reader=(Batch(Punct()), "op.out1"))


def test_punctuations_go_with_the_rows():
    graph = Punctor(is_even).then(
        plus(10), Filter(lambda n: n != 13), Delay(Count(1)), Batch(Punct())
    )
    assert [[11, 12], P, [14], P, [15], P] == rows_of(out(graph, [1, 2, 3, 4, 5]))


def test_merged_punctuations_go_nowhere():
    graph = Graph(inputs=["a", "b"], both=(plus(0), ["a", "b"]))
    assert "free" == graph.model.outputs[0].punctuation
    assert [("both", 1)] == items(graph, [to("a", 1), to("a", P), to("b", P)])


# -- the model of a graph --


@pytest.mark.parametrize(
    ("nodes", "inputs", "outputs"),
    [
        ({"x": (plus(1), "a")}, ["oblivious"], [("preserving", 0)]),
        ({"x": (Batch(Punct()), "a")}, ["expecting"], [("generating", None)]),
        ({"x": (Batch(Count(1)), "a")}, ["oblivious"], [("generating", None)]),
        ({"x": (plus(1), "a"), "y": (Batch(Punct()), "x")}, ["expecting"], [("generating", None)]),
        ({"x": (Punctor(bool), "a"), "y": (Batch(Punct()), "x")}, ["oblivious"], [("generating", None)]),
        ({"x": (Punctor(bool), "a"), "y": (plus(1), "x")}, ["oblivious"], [("generating", None)]),
        ({"x": (Union(), "a", "b")}, ["oblivious", "oblivious"], [("free", None)]),
        ({"x": (plus(1), ["a", "b"])}, ["oblivious", "oblivious"], [("free", None)]),
        ({"x": (plus(1), "b"), "y": (Expects(), "a")}, ["expecting", "oblivious"], [("preserving", 1), ("generating", None)]),
    ],
)  # fmt: skip
def test_a_graph_has_the_modes_of_what_it_is_made_of(nodes, inputs, outputs):
    graph = Graph(inputs=["a", "b"][: len(inputs)], **nodes)
    assert inputs == [port.punctuation for port in graph.model.inputs]
    assert outputs == [(port.punctuation, port.preserves) for port in graph.model.outputs]


def test_a_graph_may_be_a_node():
    inner = Graph(
        inputs=["l", "r"], odd=(Split(is_even, ports=["even", "odd"]), "l"), more=(plus(10), "r")
    )
    assert ["odd", "more", "odd.odd"] == [port.name for port in inner.model.outputs]
    outer = Graph(inputs="n", inner=(inner, "n", "n"), last=(plus(100), "inner.odd.odd"))
    assert ["inner", "last", "inner.more"] == [port.name for port in outer.model.outputs]
    expected = [("last", 101), ("inner.more", 11), ("inner", 2), ("inner.more", 12)]
    assert expected == items(outer, [1, 2])
    assert expected == items(outer, with_restarts([1, 2]))


def test_a_nested_graph_is_checked_by_its_model():
    needs = Graph(inputs="n", batch=(Batch(Punct()), "n"))
    with pytest.raises(PunctuationError, match="'inner' reads the union of 'a' and 'b'"):
        Graph(inputs=["a", "b"], inner=(needs, ["a", "b"]))
    gives = Graph(inputs="n", mark=(Punctor(is_even), "n"))
    graph = Graph(inputs="n", inner=(gives, "n"), batch=(needs, "inner"))
    assert [[1, 2], P, [3], P] == rows_of(out(graph, [1, 2, 3]))


def test_columns_are_those_of_the_operators_at_the_input():
    graph = Graph(
        inputs=["a", "b"], keep=(Functor(keep=["x"]), "a"), other=(Functor(keep=["y"]), "b")
    )
    graph.check_columns(["x"], 0)
    with pytest.raises(SchemaError, match=r"keep=\['y'\]: no such column"):
        graph.check_columns(["x"], 1)


# -- chains --


def test_then_makes_a_chain():
    chain = plus(1).then(plus(2), Filter(is_even))
    assert ("Functor", "Functor_2", "Filter") == chain.names
    assert [4] == out(chain, [1, 2])
    assert ("input",) == chain.inputs


def test_a_chain_goes_on_as_one():
    assert plus(1).then(plus(2)).then(plus(3)) == plus(1).then(plus(2), plus(3))
    assert ("first", "Functor") == Graph(inputs="input", first=(plus(1), "input")).then(
        plus(2)
    ).names


def test_other_graphs_are_one_link_of_a_chain():
    other = Graph(inputs="n", a=(plus(1), "n"), b=(plus(1), "a"), name="two")
    assert ("Functor", "two") == plus(1).then(other).names
    chosen = Graph(inputs="input", outputs="a", a=(plus(1), "input"), b=(plus(1), "a"))
    assert [102] == out(chosen.then(plus(100)), [1])


def test_names_of_links_are_made_fit():
    named = [Functor(is_even, name=name) for name in ("name", "input", "a.b", "a b", "inputs")]
    chain = named[0].then(*named[1:])
    assert ("name_", "input_", "a_b", "a_b_2", "inputs_") == chain.names


def test_side_outputs_of_a_chain_come_out():
    chain = Filter(is_even, rejected="port").then(plus(10))
    assert [("Filter.rejected", 1), ("Functor", 12)] == items(chain, [1, 2])


# -- time --


def test_time_goes_through_all_operators_upstream_first():
    chain = Batch(Time("2s")).then(Functor(lambda batch: batch["rows"]), Batch(Time("3s")))
    got = out(chain, [1, advance(2), 2, advance(3), 3, advance(6)])
    assert [[[1]], P, [[2, 3]], P] == rows_of(got)


def test_a_row_that_is_sent_at_a_time_arrives_at_that_time():
    chain = Ticks(Tumbling(Time("10s"))).then(Recent(Sliding(Time("4s"))))
    running = chain.open()
    got: list[Any] = []
    running.connect(0, got.append)
    running.advance(25)
    assert [(14.000001, "tick 10"), (24.000001, "tick 20")] == got
    nested = Graph(inputs="n", chain=(chain, "n")).open()
    other: list[Any] = []
    nested.connect(0, other.append)
    nested.advance(25)
    assert got == other


def test_a_graph_is_due_with_the_first_of_its_operators():
    chain = Batch(Time("5s")).then(Batch(Time("2s")))
    running = chain.open(start=10)
    assert (12_000_000, True) == (running.due(), running.timed)
    assert (None, False) == (plus(1).then(plus(1)).open().due(), plus(1).then(plus(1)).open().timed)


# -- the end of input --


def test_the_end_goes_through_unions_after_the_last_input():
    graph = Graph(
        inputs=["a", "b"], one=(Batch(Count(10)), "a"), two=(Batch(Count(10)), ["one", "b"])
    )
    running = graph.open()
    got: list[Any] = []
    running.connect(0, got.append, final=lambda: got.append("end"))
    running.insert(1, 0)
    running.insert(2, 1)
    running.finish(1)
    assert [] == got
    running.finish(0)
    assert [{"rows": [2, {"rows": [1], "n": 1}], "n": 2}, "end"] == got
    running.finish()
    assert 2 == len(got)


def test_which_inputs_have_ended_is_part_of_the_state():
    graph = Graph(inputs=["a", "b"], both=(Batch(Count(10)), ["a", "b"]))
    running = graph.open()
    running.insert(1, 0)
    running.finish(0)
    other = graph.open()
    got: list[Any] = []
    other.connect(0, got.append)
    other.restore(pickle.loads(pickle.dumps(running.snapshot())))
    with pytest.raises(OperatorError) as caught:
        other.insert(2, 0)
    assert "Graph.insert(row): its input of 'a' has ended. Open the operator anew." == str(
        caught.value
    )
    other.insert(3, 1)
    other.finish(1)
    assert [{"rows": [1, 3], "n": 2}] == got


@pytest.mark.parametrize("call", ["insert(1)", "insert_many([1])", "punctuate()"])
def test_input_after_the_end_is_refused(call):
    running = plus(1).then(plus(1)).open()
    running.finish()
    with pytest.raises(OperatorError, match="its input has ended"):
        eval(f"running.{call}", {"running": running})


@pytest.mark.parametrize(
    "call", ["insert(1, 1)", "insert_many([1], 1)", "punctuate(1)", "finish(1)"]
)
def test_there_is_no_input_at_other_ports(call):
    running = plus(1).then(plus(1)).open()
    with pytest.raises(ModelError, match=r"Graph has no input 1\. Ports: input\."):
        eval(f"running.{call}", {"running": running})


# -- failures --


def inverse(n):
    return 1 / n


def test_a_failure_says_in_which_operator():
    graph = Graph(inputs="n", bad=(Functor(inverse, name="inverse"), "n"))
    with pytest.raises(ZeroDivisionError) as caught:
        out(graph, [0])
    assert ["in inverse, row 0"] == caught.value.__notes__


def test_a_failure_of_one_reader_does_not_cost_the_others_the_row():
    graph = Graph(
        inputs="n", bad=(Functor(inverse), "n"), good=(plus(1), "n"), worse=(Functor(inverse), "n")
    )
    running = graph.open()
    got: list[Any] = []
    running.connect("good", got.append)
    with pytest.raises(ZeroDivisionError) as caught:
        running.insert(0)
    assert [1] == got
    assert ["in Functor, row 0", "and 1 more failure after it"] == caught.value.__notes__


def test_a_failure_at_the_end_does_not_keep_the_rest_from_coming_out():
    def fails(rows):
        raise LookupError("broken")

    graph = Graph(
        inputs="n",
        bad=(Batch(Count(5), function=fails), "n"),
        after=(Batch(Count(5)), ["bad", "n"]),
        good=(Batch(Count(5)), "n"),
    )
    running = graph.open()
    got: list[Any] = []
    for name in ("after", "good"):
        running.connect(name, got.append)
    running.insert(1)
    with pytest.raises(LookupError):
        running.finish()
    assert [{"rows": [1], "n": 1}] * 2 == got


def refuses_two(n):
    if n == 2:
        raise LookupError("two")
    return n


SENDERS = [
    Sort(abs, window=Tumbling(Count(4))),
    Sort(abs, window=Sliding(Count(2))),
    Sort(abs, window=Sliding(Delta(abs, 1))),
    Sort(abs, window=Tumbling(Punct())),
    Batch(Count(4), function=list),
    Functor(lambda n: [n, n + 10], many=True),
    Delay(Count(2)),
    Delay(Time("1s")),
    Dedup(abs, within=Count(2), keep="last"),
]


@pytest.mark.parametrize("sender", SENDERS, ids=repr)
def test_a_failure_costs_the_sender_nothing_but_the_row_that_failed(sender):
    graph = sender.then(Functor(refuses_two))
    stream = [4, 3, 2, 1, 5, 6]
    sent = out(sender, [*stream, P, advance("3s")])
    got: list[Any] = []
    failures = []
    running = graph.open()
    running.connect(0, got.append, lambda: got.append(P))
    calls = [partial(running.insert, n) for n in stream]
    calls += [running.punctuate, partial(running.advance, 3), running.finish]
    for call in calls:
        try:
            call()
        except LookupError as error:
            failures.append(error.__notes__)
    assert [["in Functor, row 2"]] == failures
    assert [item for item in sent if item != 2] == got


# -- state --

EVENTS = st.lists(st.one_of(st.integers(0, 9), st.just(P), st.just(advance("1s"))), max_size=15)
GRAPHS = [
    Punctor(is_even).then(Delay(Count(2)), Batch(Punct())),
    Batch(Count(3) | Time("2s")).then(Delay(Time("1s"))),
    Graph(
        inputs="n",
        split=(Split(is_even, ports=["even", "odd"]), "n"),
        pair=(Pair(select=together), "split.even", "split.odd"),
        batch=(Batch(Punct()), "pair"),
        slow=(Delay(Time("2s")), ["pair.unpaired", "n"]),
    ),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=["chain", "timed", "branches"])
@given(rows=EVENTS)
@settings(max_examples=examples(50))
def test_a_graph_goes_on_after_a_restart_anywhere(graph, rows):
    rows = [advance(0), *rows]
    assert items(graph, rows) == items(graph, with_restarts(rows))


def test_the_state_of_another_graph_is_refused():
    one = Graph(inputs="n", a=(Batch(Count(2)), "n"), b=(plus(1), "a"))
    with pytest.raises(StateVersionError) as caught:
        one.open().restore(
            Graph(inputs="n", a=(Batch(Count(3)), "n"), b=(plus(1), "a")).open().snapshot()
        )
    assert (
        "restore(state): the snapshot was written with a.policy=Count(size=3); this operator says "
        "a.policy=Count(size=2). Build it as it was, or start afresh." == str(caught.value)
    )
    with pytest.raises(
        StateVersionError, match="written with b=reads n; this operator says b=reads a"
    ):
        one.open().restore(
            Graph(inputs="n", a=(Batch(Count(2)), "n"), b=(plus(1), "n")).open().snapshot()
        )


def test_a_damaged_state_changes_nothing():
    graph = Graph(inputs="n", a=(Batch(Count(2)), "n"), b=(Batch(Count(1)), "a"))
    running = graph.open()
    got: list[Any] = []
    running.connect(0, got.append)
    running.insert(1)
    state = graph.open().snapshot()
    del state["state"]["b"]
    with pytest.raises(StateVersionError, match="Graph cannot read the snapshot"):
        running.restore(state)
    running.insert(2)
    assert [{"rows": [{"rows": [1, 2], "n": 2}], "n": 1}] == got


# -- as a value --


def test_a_graph_is_a_value():
    def build(**more):
        return Graph(inputs=["a"], x=(Batch(Count(2)), ["a"]), y=(plus(1), "x"), **more)

    assert build() == build() == pickle.loads(pickle.dumps(build()))
    assert hash(build()) == hash(build())
    assert build() != build(outputs="x")
    assert "Graph(inputs=['a'], x=(Batch(Count(size=2)), ['a']), y=(Functor(" in repr(build())
    assert (2, Batch(Count(2))) == (len(build()), build()["x"])


def test_explain_shows_every_operator_and_what_it_reads():
    graph = Graph(inputs=["a", "b"], x=(Filter(is_even), ["a", "b"]), y=(Batch(Punct()), "b"))
    assert """\
graph        Graph
inputs       a, b
outputs      x, y

x reads a + b
  operator     Filter
  input        in: ignores punctuation
  output       out: the punctuation of input in

y reads b
  operator     Batch
  input        in: expects punctuation
    window     tumbling, punct()
    insert     age, insert
    keeps      tuples
    engine     generated
  output       out: punctuation of its own""" == graph.explain()


# -- mistakes --

MISTAKES = [
    ("Graph(inputs=5, a=(plus(1), 'n'))",
     "Graph(inputs=5): not the names of streams. Write inputs=\"a\", or inputs=[\"a\", \"b\"]."),
    ("Graph(inputs=[], a=(plus(1), 'n'))",
     "Graph(inputs=[]): not the names of streams. Write inputs=\"a\", or inputs=[\"a\", \"b\"]."),
    ("Graph(inputs='n', a=(plus(1), 'n'), outputs=[5])",
     "Graph(outputs=[5]): not the names of streams. Write outputs=\"a\", or outputs=[\"a\", \"b\"]."),
    ("Graph(inputs='n', a=(plus(1), 'm'))",
     "Graph(a=...): there is no stream 'm'. Streams: n, a."),
    ("Graph(inputs='trades', a=(plus(1), 'trade'))",
     "Graph(a=...): there is no stream 'trade'. Streams: trades, a. Did you mean \"trades\"?"),
    ("Graph(inputs='n', a=(plus(1), 'n'), outputs='b')",
     "Graph(outputs=...): there is no stream 'b'. Streams: n, a."),
    ("Graph(inputs='n', a=(Filter(bool, rejected='port'), 'n'), b=(plus(1), 'a.reject'))",
     "a has no output 'reject'. Ports: out, rejected. Did you mean \"rejected\"?"),
    ("Graph(inputs='n', a=(Echo(ports_out=0), 'n'), b=(plus(1), 'a'))",
     "a has no output 0. Ports: none."),
    ("Graph(inputs='n', a=plus(1))",
     "Graph(a=Functor(functools.partial(<function added>, 1))): not a node. Write an operator and the streams it "
     "reads: a=(operator, \"stream\")."),
    ("Graph(inputs='n', a=())",
     "Graph(a=()): not a node. Write an operator and the streams it reads: a=(operator, \"stream\")."),
    ("Graph(inputs='n', a=(plus(1),))",
     "Graph(a=...): 0 streams for 1 input ports (in). Name one stream per port, or a list of them to merge."),
    ("Graph(inputs='n', a=(Union(), 'n'))",
     "Graph(a=...): 1 streams for 2 input ports (in0, in1). Name one stream per port, or a list of them to merge."),
    ("Graph(inputs='n', a=(plus(1), []))",
     "Graph(a=...): [] is no stream. Name one stream per port, or a list of them to merge."),
    ("Graph(inputs='n', a=(plus(1), 5))",
     "Graph(a=...): 5 is no stream. Name one stream per port, or a list of them to merge."),
    ("Graph(inputs='n', a=(plus(1), ['n', 'a']))", "Graph(a=...): it reads its own output: a -> a. Rows would go round for ever. Break the loop."),
    ("Graph(inputs='n', a=(plus(1), ['n', 'c']), b=(plus(1), 'a'), c=(plus(1), 'b'))",
     "Graph(a=...): it reads its own output: a -> c -> b -> a. Rows would go round for ever. Break the loop."),
    ("Graph(inputs=['n', 'm'], a=(plus(1), 'n'))",
     "Graph(inputs=['m']): no operator reads it. Drop it, or connect it."),
    ("Graph(inputs=['n', 'a'], a=(plus(1), 'n'))",
     "Graph(inputs=('n', 'a')): 'a' names two streams. Rename one."),
    ("Graph(inputs=['n', 'n'], a=(plus(1), 'n'))",
     "Graph(inputs=('n', 'n')): 'n' names two streams. Rename one."),
    ("plus(1).then(Union())",
     "then(Union): it has 2 inputs, and a chain has one. Connect it in a Graph."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_wrong_graph_is_refused(code, text):
    import re

    with pytest.raises(ModelError) as caught:
        eval(code)
    assert text == re.sub(r" at 0x\w+", "", str(caught.value))


def test_restart_stands_in_a_graph_of_several_inputs():
    graph = Graph(inputs=["a", "b"], pair=(Barrier(select=together), "a", "b"))
    assert [(1, 2)] == out(graph, [to("a", 1), restart(), to("b", 2)])


def test_a_chain_of_600_operators():
    chain = plus(0)
    for _ in range(599):
        chain = chain.then(plus(1))
    running, found = chain.open(), list[Any]()
    running.connect(0, found.append)
    running.insert_many([1, 2])
    running.restore(running.snapshot())
    running.punctuate()
    running.advance(1)
    running.finish()
    assert found == [600, 601]
    assert list(replay(chain, [3])) == [602]
