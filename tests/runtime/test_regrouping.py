"""State that moves with its keys: taken apart, put together, and gone on with."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    Count,
    Event,
    Keyed,
    Operator,
    OperatorError,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    Session,
    Sliding,
    Time,
    Tumbling,
    Watermark,
)
from windowlib.operators import Aggregate, Dedup, Filter, Join, Sort, agg
from windowlib.runtime.regrouping import check_regroups, key_columns, regrouped
from windowlib.window.state_bytes import dump_state, load_state


class Rise(Operator):
    model = OperatorModel(windows=[Tumbling])
    last = Keyed(n=0)

    def before_flush(self, window, key):
        newest = window[key][-1]["n"]
        self.emit({"k": key, "rise": newest - self.last[key].n})
        self.last[key].n = newest


SIDE = Sliding(Count(3))
OWN = Watermark(5, scope="key")
OPERATORS = {
    "tumbling": lambda: Aggregate(Tumbling(Count(3), by="k"), s=agg.sum("n")),
    "late": lambda: Aggregate(Tumbling(Count(2), by="k"), s=agg.sum("n"), emit="changed"),
    "sliding": lambda: Aggregate(Sliding(Count(4), every=Count(2), by="k"), s=agg.max("n")),
    "evicting": lambda: Aggregate(
        Tumbling(Count(3), by="k", forget=PartitionCount(50)), s=agg.sum("n")
    ),
    "idle": lambda: Aggregate(
        Tumbling(Count(3), by="k", forget=PartitionAge("2500ms")), s=agg.sum("n")
    ),
    "count or time": lambda: Aggregate(
        Tumbling(Count(3) | Time("4s"), by="k"), s=agg.sum("n")
    ),
    "sliding time": lambda: Aggregate(
        Sliding(Time("6s"), every=Count(2), by="k"), s=agg.sum("n"), partial="emit"
    ),
    "sort": lambda: Sort("n", window=Sliding(Count(3), by="k")),
    "dedup": lambda: Dedup("n", within=Count(3), by="k"),
    "join": lambda: Join(
        left=SIDE, right=SIDE, on="k", partition_by="k", how="outer", unmatched="port"
    ),
    "rise": lambda: Rise(Tumbling(Count(2), by="k")),
    "graph": lambda: Filter(lambda row: row["n"] != 3).then(
        Aggregate(Tumbling(Count(2), by="k"), s=agg.sum("n"))
    ),
    "event time of keys": lambda: Aggregate(
        Sliding(Event("ts", 6), every=Event("ts", 3), by="k", watermark=OWN), s=agg.sum("n")
    ),
    "sessions": lambda: Aggregate(
        Session(Event("ts"), gap=3, by="k", watermark=OWN), s=agg.sum("n")
    ),
}  # fmt: skip


def opened(operator, made):
    running = operator.open()
    for port in operator.model.outputs:
        running.connect(port.name, lambda row, name=port.name: made.append((name, row)))
    return running


def by_key(made):
    found = defaultdict(list)
    for port, row in made:
        found[row["k"]].append((port, row))
    return dict(found)


def placed(places, operator, port, key):
    return key % places


def fed(places, rows, ports):
    for number, row in enumerate(rows):
        for place in places:
            place.advance(row["ts"])
        places[row["k"] % len(places)].insert(row, number % ports)


COUNTS = st.lists(st.integers(1, 4), min_size=2, max_size=3)
ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=40)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=examples(40))
@given(pairs=ROWS, cut=st.integers(0, 40), counts=COUNTS)
@example(pairs=[(0, 0), (1, 0), (1, 0)], cut=2, counts=[2, 1])  # each knows one input alone
def test_keys_that_move_go_on_as_if_they_had_stayed(name, pairs, cut, counts):
    rows = [{"ts": at, "k": k, "n": n} for at, (k, n) in enumerate(pairs)]
    operator, whole, moved = OPERATORS[name](), list[Any](), list[Any]()
    ports = len(operator.model.inputs)
    alone = opened(operator, whole)
    fed([alone], rows, ports)
    alone.finish()
    places = [opened(operator, moved) for _ in range(counts[0])]
    at = 0
    for count in counts[1:]:
        end = min(cut - cut % 2, len(rows)) if at == 0 else at
        fed(places, rows[at:end], ports)
        at = end
        states = [load_state(dump_state(place.snapshot())) for place in places]
        split = [regrouped(operator, [s], partial(placed, count), count) for s in states]
        places = [opened(operator, moved) for _ in range(count)]
        for number, place in enumerate(places):
            (state,) = regrouped(operator, [each[number] for each in split], lambda *_: 0, 1)
            place.restore(state)
    fed(places, rows[at:], ports)
    for place in places:
        place.finish()
    want, got = by_key(whole), by_key(moved)
    if name == "join":  # at the end, windows give their rows partition by partition
        want, got = ({k: sorted(v, key=str) for k, v in each.items()} for each in (want, got))
    assert want == got


def test_one_watermark_of_all_keys_is_as_far_as_the_furthest():
    hourly = Aggregate(Tumbling(Event("ts", 10), by="k"), s=agg.sum("n"))
    made = list[Any]()
    places = [opened(hourly, made) for _ in range(2)]
    for place in places:
        place.follow()
    for ts, k in ((1, 0), (12, 1), (3, 1), (14, 0), (21, 2)):
        places[k % 2].insert({"ts": ts, "k": k, "n": ts})
    for place in places:
        place.reach(10)
    assert [row for _, row in made] == [{"k": 0, "s": 1}, {"k": 1, "s": 3}]
    made.clear()
    (state,) = regrouped(hourly, [p.snapshot() for p in places], lambda *_: 0, 1)
    first, second, third = regrouped(hourly, [state], lambda op, port, k: k, 3)
    for state in (first, second, third):
        place = opened(hourly, made)
        place.follow()
        place.restore(state)
        place.reach(30)
    assert [row for _, row in made] == [{"k": 0, "s": 14}, {"k": 1, "s": 12}, {"k": 2, "s": 21}]


def test_state_that_cannot_be_told_apart_by_key_is_refused():
    unpartitioned = Aggregate(Tumbling(Count(2)), n=agg.count())
    with pytest.raises(OperatorError, match="window of 'in' is not partitioned by 'k'"):
        check_regroups(unpartitioned, [["k"]])

    class Odd(Rise):
        def snapshot(self):
            return 7

    with pytest.raises(OperatorError, match="Odd: it keeps more than its windows, and that"):
        check_regroups(Odd(Tumbling(Count(2), by="k")), [["k"]])
    check_regroups(OPERATORS["graph"](), [["k"]])


def test_a_key_of_several_columns_has_those_that_choose_the_place():
    pairs = Aggregate(Tumbling(Count(2), by=("a", "b")), n=agg.count())
    assert key_columns(pairs, [["b"]], 0, (1, 2)) == (2,)
