"""A window gets the rows of a batch in the order that it asks for, wherever it stands."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pyarrow as pa
import pytest

from windowlib import Count, Graph, ModelError, Operator, Sliding, Tumbling, replay, to
from windowlib.operators import (
    Aggregate,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    Join,
    Punctor,
    Reorder,
    Split,
    Union,
    agg,
)

ROWS = [{"ts": ts, "k": ts % 2} for ts in (5, 1, 4, 0, 3, 2)]
PAIRS = [[0, 1], [2, 3], [4, 5]]
ORDERED = Tumbling(Count(2), order_by="ts")
KEEPING = [
    Filter(lambda row: True),
    Functor(x=lambda row: 1),
    Functor(keep=["ts"]),
    Dedup(on="ts", within=Count(9)),
    Punctor(on_change="k"),
    Delay(Count(2)),
    Filter(lambda row: True).then(Functor(x=lambda row: 1)),
]


def taken(operator):
    def pairs(rows):
        return [row["pair"] for row in rows]

    rows = pairs(replay(operator, ROWS))
    table = pairs(replay(operator, pa.Table.from_pylist(ROWS)))
    sent: list[Any] = []
    running = operator.open()
    running.connect(0, sent.append)
    running.insert_batch(pa.Table.from_pylist(ROWS))
    running.finish()
    assert rows == table == pairs(sent)
    return rows


@pytest.mark.parametrize("before", KEEPING, ids=repr)
def test_behind_operators_that_send_rows_on(before):
    window = Aggregate(ORDERED, pair=agg.collect("ts"), flush_at_end=False)
    assert PAIRS == taken(before.then(window))


def test_in_a_graph_with_branches():
    window = Aggregate(ORDERED, pair=agg.collect("ts"))
    graph = Graph(
        inputs="rows",
        parts=(Split("k", ports=["even", "odd"]), "rows"),
        whole=(Union(), "parts.even", "parts.odd"),
        pairs=(window, "whole"),
    )
    assert PAIRS == taken(graph)


def test_each_input_of_a_join_in_its_own_order():
    window = Sliding(Count(1), order_by="ts")
    join = Join(left=window, right=Sliding(Count(3)), how="left", unmatched="port")
    sent: list[Any] = []
    running = join.open()
    running.connect("unmatched_left", sent.append)
    running.insert_batch(pa.Table.from_pylist(ROWS), 0)
    running.finish()
    assert list(range(6)) == [row["ts"] for row in sent]
    rows = replay(join, ROWS, [], merge="ts").port("unmatched_left")
    assert list(range(6)) == [row["ts"] for row in rows]


class Late(Operator):
    """Changes how rows are sent on, and so nothing is known of their order."""

    def on_tuple(self, tuple_, port):
        self.emit(tuple_)


class Backwards(Filter):
    """The same of an operator that otherwise keeps it."""

    def on_tuple(self, tuple_, port):
        super().on_tuple(tuple_, port)


@pytest.mark.parametrize(
    "before",
    [
        Late(),
        Backwards(lambda row: True),
        Dedup(on="ts", within=Count(9), keep="last"),
        Batch(Count(2)),
        Functor(lambda row: row),
        Reorder("ts", slack=1, by="k"),
    ],
    ids=repr,
)
def test_refused_behind_what_sends_rows_in_an_order_of_its_own(before):
    with pytest.raises(ModelError, match="order_by='ts'"):
        before.then(Aggregate(ORDERED, pair=agg.collect("ts")))


def test_accepted_behind_anything_if_the_order_is_irrelevant():
    window = Aggregate(Tumbling(Count(2), order_by=None), pair=agg.collect("ts"))
    chain = Late().then(window)
    assert [[5, 1], [4, 0], [3, 2]] == taken(chain)


def test_two_windows_may_ask_for_the_same_order():
    graph = Graph(
        inputs="rows",
        one=(Aggregate(ORDERED, pair=agg.collect("ts")), "rows"),
        two=(Aggregate(Tumbling(Count(3), order_by="ts"), pair=agg.collect("ts")), "rows"),
    )
    result = replay(graph, ROWS)
    assert [[0, 1, 2], [3, 4, 5]] == [row["pair"] for row in result.port("two")]
    items = [to("rows", row) for row in ROWS]
    assert [0, 1] == next(replay(graph, items))["pair"]
