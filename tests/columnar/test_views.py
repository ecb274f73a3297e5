"""Columns whose values Arrow cannot put in another order: views, as polars has them, and runs."""

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windowlib import Count, Event, Operator, OperatorModel, Sliding, Tumbling, replay
from windowlib.columnar import handover
from windowlib.columnar.arrays.physical import gather, gather_rows
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm
from windowlib.operators import (
    Aggregate,
    AsOf,
    IntervalJoin,
    Panes,
    Reorder,
    Skyline,
    Sort,
    TopDelta,
    TopK,
    agg,
    desc,
)

TEXTS = ["", "a", "b", None, "a text too long to be in a view"]
VIEW = pa.string_view()
VIEWS = [
    pa.array(TEXTS, VIEW),
    pa.array([None if text is None else text.encode() for text in TEXTS], pa.binary_view()),
    pa.array([None if text is None else [text, "z"] for text in TEXTS], pa.list_(VIEW)),
    pa.array([{"a": text, "b": 1} for text in TEXTS], pa.struct({"a": VIEW, "b": pa.int8()})),
    pa.array([[(text, text)] if text else None for text in TEXTS], pa.map_(VIEW, VIEW)),
    pa.array([None if text is None else [text] for text in TEXTS], pa.list_(VIEW, 1)),
    pa.array([None if text is None else [text] for text in TEXTS], pa.large_list(VIEW)),
    pc.run_end_encode(pa.array(TEXTS)),
]


def kind(values):
    """What a test is called."""
    return str(values.type)


@pytest.fixture(autouse=True)
def all_batches_are_worth_it(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS", 1)


@pytest.mark.parametrize("values", VIEWS, ids=kind)
def test_values_are_taken_and_keep_their_type(values):
    places, listed = pa.array([4, None, 1, 1]), values.to_pylist()
    expected = [listed[4], None, listed[1], listed[1]]
    taken = gather(values, places)
    assert (values.type, expected) == (taken.type, taken.to_pylist())
    for rows in (pa.record_batch({"x": values}), pa.table({"x": values, "y": values})):
        found = gather_rows(rows, places)
        assert (type(rows), rows.schema) == (type(found), found.schema)
        assert expected == found.column("x").to_pylist()


class Last(Operator):
    """The last row of each window, read as columns."""

    model = OperatorModel(windows=[Tumbling])
    content = "arrow"

    def before_flush(self, window, key):
        self.emit(window.arrow(key).to_pylist()[-1])


EVENT = Tumbling(Event("ts", 10), by="k", watermark=50)
OPERATORS = [
    Aggregate(Sliding(Count(5), by="k", order_by="ts"), last=agg.last("x"), of=agg.collect("x")),
    Aggregate(EVENT, last=agg.last("x")),
    Last(Tumbling(Count(5), by="k", order_by=("k", "ts"))),
    Last(EVENT),
    Sort(desc("ts"), window=Tumbling(Count(10), by="k")),
    TopK(Tumbling(Count(10), by="k"), by="ts", k=2),
    Skyline(Tumbling(Count(10), by="k"), "ts", desc("n")),
    TopDelta(Tumbling(Count(10), by="k"), "ts", desc("n"), delta=2, k="how"),
    Reorder("ts", slack=20, late="port"),
    Reorder("ts", slack=20, by="k", late="port"),
    Panes("ts", size=10, slack=20, by="k", late="port"),
    AsOf("ts", on="k", slack=50),
    AsOf("ts", on="k", slack=10, late="port"),
    IntervalJoin("ts", before=2, after=2, on="k", slack=50),
]


def stream(values):
    """A table of 300 rows in disorder."""
    rng, n = random.Random(1), 300
    places = pa.array([rng.randrange(5) for _ in range(n)])
    stamps = [i // 3 + rng.randrange(30) for i in range(n)]
    names = pa.array([rng.choice("abc") for _ in range(n)], pa.string_view())
    return pa.table({"k": names, "ts": stamps, "n": range(n), "x": gather(values, places)})


@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize("values", [VIEWS[0], VIEWS[2], VIEWS[-1]], ids=kind)
def test_operators_take_them_as_they_take_rows(op, values):
    table, inputs = stream(values), len(op.model.inputs)
    found = [replay(op, *[source] * inputs) for source in (table.to_pylist(), table)]
    rows, columns = ([repr(item) for item in each.items()] for each in found)
    assert sorted(rows) == sorted(columns)
    assert len(rows) > 20
    if inputs == 1:
        assert op.open().process_batch(table).num_rows


@pytest.mark.parametrize("farm", [KeyFarm, WindowFarm, PaneFarm])
def test_farms_take_them(farm):
    op = Aggregate(Sliding(Count(20), every=Count(10), by="k"), high=agg.max("x"), n=agg.max("n"))
    table = stream(VIEWS[0])
    assert list(replay(farm(op, workers=2, when="always"), table)) == list(replay(op, table))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([dt.date(2024, 1, 1), None]),
        pa.array([dt.datetime(2024, 1, 1, 12)], pa.timestamp("us", "UTC")),
        pa.array([dt.timedelta(seconds=3)]),
        pa.array([Decimal("1.5"), Decimal("2.5")]),
        pa.array([b"a", b"b"]),
    ],
    ids=kind,
)
def test_dictionaries_may_have_values_of_any_type(values):
    places = pa.array([n % len(values) for n in range(60)])
    table = pa.table({"x": values.take(places).dictionary_encode(), "n": range(60)})
    for window in (Tumbling(Count(7)), Sliding(Count(5), every=Count(2))):
        op = Aggregate(window, last=agg.last("x"), n=agg.sum("n"))
        running = op.open()
        assert list(replay(op, table.to_pylist())) == running.process_batch(table).to_pylist()
        assert running.windows[0].explain().count("columnar") == 1
