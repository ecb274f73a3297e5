"""Pair and Barrier: who goes with whom, what is left over, and what happens at the limit."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.operator_runs import P, items, with_restarts
from windowlib import (
    Graph,
    ModelError,
    OperatorError,
    PolicyError,
    Punct,
    PunctuationError,
    SchemaError,
    replay,
    restart,
    to,
)
from windowlib.operators import Barrier, Batch, Filter, Pair

NAN = float("nan")


def together(*rows):
    return rows


@dataclass
class Ask:
    symbol: str
    price: int


# -- who goes with whom --


def brute_groups(ports, rows, key):
    """The i-th row of a key at each input goes with the i-th at the others, when the last comes."""
    made, left = [], []
    for n in range(len(rows)):
        port, row = rows[n]
        rank = sum(p == port and key(r) == key(row) for p, r in rows[:n])
        mates: list[Any] = []
        for other in range(ports):
            same = [(i, r) for i, (p, r) in enumerate(rows) if p == other and key(r) == key(row)]
            mates.append(same[rank] if rank < len(same) else None)
        if None in mates:
            left.append(row)
        elif n == max(i for i, _ in mates):
            made.append(tuple(r for _, r in mates))
    return made, left


@given(
    st.integers(2, 3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=25),
    st.booleans(),
)
def test_rows_of_every_input_go_together_in_order(ports, drawn, keyed):
    rows = [(port % ports, (key, n)) for n, (port, key) in enumerate(drawn)]
    op = Pair(0 if keyed else None, inputs=ports, select=together)
    made, left = brute_groups(ports, rows, (lambda row: row[0]) if keyed else (lambda row: None))
    expected = [each for row in made for each in (("out", row), ("out", P))]
    expected += [("unpaired", row) for row in left]
    stream = [to(port, row) for port, row in rows]
    assert expected == items(op, stream)
    assert expected == items(op, with_restarts(stream))
    barrier = Barrier(0 if keyed else None, inputs=ports, select=together)
    assert [item for item in expected if item[1] != P] == items(barrier, stream)


def test_a_barrier_carries_no_punctuation_and_a_pair_its_own():
    assert ["free", "free"] == [port.punctuation for port in Barrier().model.outputs]
    assert ["generating", "free"] == [port.punctuation for port in Pair().model.outputs]
    stream = [to(0, {"a": 1}), to(0, P), to(1, {"b": 1}), to(1, P)]
    assert [("out", {"a": 1, "b": 1}), ("out", P)] == items(Pair(), stream)
    assert [("out", {"a": 1, "b": 1})] == items(Barrier(), stream)


def test_a_window_may_read_a_pair_and_not_a_barrier():
    def graph(op):
        return Graph(inputs=["a", "b"], pairs=(op, "a", "b"), batches=(Batch(Punct()), "pairs"))

    stream = [to("a", 1), to("b", 2), to("a", 3), to("b", 4)]
    got = list(replay(graph(Pair(select=together)), stream))
    assert [[(1, 2)], [(3, 4)]] == [batch["rows"] for batch in got]
    with pytest.raises(
        PunctuationError, match="'pairs', an output of Barrier that carries no punc"
    ):
        graph(Barrier(select=together))


# -- the row they make --


def test_columns_of_all_are_put_together():
    op = Barrier(on="id", inputs=["order", "payment"])
    stream = [to("order", {"id": 1, "qty": 5}), to("payment", {"id": 1, "sum": 7})]
    assert [{"id": 1, "qty": 5, "sum": 7}] == list(replay(op, stream))


def test_a_column_of_several_inputs_gets_the_name_of_its_input():
    op = Barrier(on="symbol", inputs=["bid", "ask", "last"])
    stream = [
        to("bid", {"symbol": "IBM", "price": 1, "n": 5}),
        to("last", {"symbol": "IBM"}),
        to("ask", Ask("IBM", 2)),
    ]
    assert [{"symbol": "IBM", "price_bid": 1, "n": 5, "price_ask": 2}] == list(replay(op, stream))


def test_inputs_may_have_keys_of_their_own():
    op = Barrier(on={"a": "id", "b": ["ref"]}, inputs=["a", "b"])
    stream = [to("a", {"id": 1}), to("b", {"ref": 2}), to("b", {"ref": 1, "id": 9})]
    assert [{"id_a": 1, "ref": 1, "id_b": 9}] == list(replay(op, stream))


def test_a_key_of_several_columns():
    op = Barrier(on=["x", "y"])
    stream = [to(0, {"x": 1, "y": 1}), to(1, {"x": 1, "y": 2}), to(1, {"x": 1, "y": 1, "z": 0})]
    assert [{"x": 1, "y": 1, "z": 0}] == list(replay(op, stream))


def test_all_nan_are_one_key_also_after_a_restart():
    op = Barrier(on="x", select=lambda a, b: "both")
    stream = [to(0, {"x": NAN}), restart(), to(1, {"x": float("nan")})]
    assert ["both"] == list(replay(op, stream))
    inside = [to(0, {"x": (1, NAN)}), restart(), to(1, {"x": (1, float("nan"))})]
    assert ["both"] == list(replay(op, inside))


# -- failures lose nothing --


def insert_all(running, rows):
    got: list[Any] = []
    running.connect("out", got.append)
    running.connect("unpaired", lambda row: got.append(("unpaired", row)))
    for port, row in rows:
        running.insert(row, port)
    return got


def test_a_select_that_fails_leaves_the_others_waiting():
    running = Barrier(select=lambda a, b: a / b).open()
    got = insert_all(running, [(0, 6)])
    with pytest.raises(ZeroDivisionError) as caught:
        running.insert(0, 1)
    assert ["in Barrier, row 0"] == caught.value.__notes__
    running.insert(3, 1)
    assert [2.0] == got


def test_the_limit_is_for_each_key_and_input_and_refuses_before_it_takes():
    running = Pair(0, inputs=["a", "b"], limit=2, select=together).open()
    got = insert_all(running, [(0, "x1"), (0, "x2"), (0, "y1"), (1, "z1")])
    with pytest.raises(OperatorError) as caught:
        running.insert("x3", 0)
    assert (
        "Pair(limit=2): 2 rows of key 'x' at 'a' wait for 'b', and here is one more. Raise the limit, "
        "or find out why that input is behind." == str(caught.value)
    )
    for row in ("x4", "x5", "z2"):
        running.insert(row, 1)
    running.finish()
    assert [
        ("x1", "x4"),
        ("x2", "x5"),
        ("unpaired", "y1"),
        ("unpaired", "z1"),
        ("unpaired", "z2"),
    ] == got


def test_the_limit_without_a_key():
    running = Barrier(inputs=3, limit=1, select=together).open()
    insert_all(running, [(0, 1)])
    with pytest.raises(OperatorError) as caught:
        running.insert(2, 0)
    assert (
        "Barrier(limit=1): 1 rows at 'in0' wait for 'in1' and 'in2', and here is one more. Raise the "
        "limit, or find out why that input is behind." == str(caught.value)
    )


def test_no_key_is_remembered_once_nothing_waits_for_it():
    running = Barrier(0, select=together).open()
    insert_all(running, [(port, f"{n}x") for n in range(100) for port in (0, 1)])
    assert [] == running.snapshot()["state"]["waiting"]


def test_the_unpaired_output_may_be_connected():
    graph = Graph(
        inputs=["a", "b"],
        outputs=["lost"],
        pairs=(Barrier(inputs=["a", "b"], select=together), "a", "b"),
        lost=(Filter(bool), "pairs.unpaired"),
    )
    assert [2] == list(replay(graph, [to("a", 1), to("b", 1), to("b", 2)]))


def test_explain_says_what_may_wait():
    assert "waiting      no limit; what is left at the end goes to 'unpaired'" in Pair().explain()
    assert "waiting      at most 5 for each key and input; " in Pair(limit=5).explain()


@pytest.mark.parametrize(
    "op",
    [
        Pair(),
        Pair("id", inputs=["a", "b"], limit=3),
        Barrier({"in0": "x", "in1": "y"}, select=together),
    ],
    ids=repr,
)
def test_they_are_values(op):
    other = pickle.loads(pickle.dumps(op))
    assert op == other
    assert op.describe() == other.describe()


def test_a_pair_is_no_barrier():
    assert Pair("id") != Barrier("id")


# -- mistakes --

MISTAKES = [
    ("Pair(inputs=1)", ModelError, "Pair(inputs=1): nothing to wait for. Give 2 or more."),
    ("Barrier(inputs=['a'])", ModelError, "Barrier(inputs=['a']): nothing to wait for. Give 2 or more."),
    ("Pair(limit=0)", ModelError, "Pair(limit=0): give a whole number from 1 on."),
    ("Pair(limit=True)", ModelError, "Pair(limit=True): give a whole number from 1 on."),
    ("Pair(select='a')", ModelError, "Pair(select='a'): not a function. Write select=lambda a, b: ..."),
    ("Pair([])", ModelError, "Pair(on=[]): no column. Name one, or leave it out."),
    ("Pair({'in0': 'x'})", ModelError, "Pair(on={'in0': 'x'}): name the key of every input: in0, in1."),
    ("Pair({'in0': 'x', 'in1': 'x', 'on1': 'x'})", ModelError,
     "Pair(on={'in0': 'x', 'in1': 'x', 'on1': 'x'}): name the key of every input: in0, in1. Did you mean "
     "\"in1\"?"),
    ("Pair({'in0': 'x', 'in1': ['x', 'y']})", ModelError,
     "Pair(on={'in0': 'x', 'in1': ['x', 'y']}): keys of different lengths. Name as many columns."),
    ("Pair({'in0': 'x', 'in1': None})", PolicyError,
     "Pair(on={'in0': 'x', 'in1': None}): the attribute must be a name, an index or a callable, such as "
     "\"user\" or [\"user\", \"day\"]."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "kind", "text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes_are_refused_when_they_are_made(code, kind, text):
    with pytest.raises(kind) as caught:
        eval(code)
    assert text == str(caught.value)


BAD_ROWS = [
    (Pair("id"), [to(1, {"ident": 1})], "on='id': no such column. Columns: ident."),
    (Pair("id"), [to(0, {"id": [1]})],
     "Pair: [1] cannot be a key. Use plain values, not lists or dicts."),
    (Pair(), [to(0, 1), to(1, 2)],
     "Pair: the row 1 has no named columns. Use dicts, or objects with fields."),
    (Pair(select=lambda a, b: None), [to(0, 1), to(1, 2)],
     "Pair(select=tests.operators.test_barrier.<lambda>): it returned None for [1, 2], and rows are not lost silently. "
     "Return a row, or drop rows with a Filter."),
    (Pair(), [to(0, {"x": 1, "x_in1": 2}), to(1, {"x": 3})],
     "Pair: two columns would be called 'x_in1'. Rename one before, or say with select= what to send."),
]  # fmt: skip


@pytest.mark.parametrize(("op", "rows", "text"), BAD_ROWS, ids=[b[2][:40] for b in BAD_ROWS])
def test_rows_that_do_not_fit_are_named(op, rows, text):
    with pytest.raises(SchemaError) as caught:
        items(op, rows)
    assert text == str(caught.value)
