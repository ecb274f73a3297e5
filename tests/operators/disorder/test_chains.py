"""Chains behind Panes and Reorder: columns with punctuations give what single rows give."""
# mypy: disable-error-code="arg-type"

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.disorder.disorder_driver import Watched, by_batch, by_row
from tests.operators.disorder.disorder_oracle import SLACKS, disordered
from windowlib import Count, Operator, OperatorModel, Punct, Sliding, Tumbling
from windowlib.columnar import handover
from windowlib.columnar.engines import open_panes
from windowlib.operators import Aggregate, Dedup, Panes, Reorder, Skyline, Sort, agg
from windowlib.operators.disorder import disorder_operator


@pytest.fixture(autouse=True)
def arrays_for_any_batch(monkeypatch):
    monkeypatch.setattr(disorder_operator, "FEW", 1)
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(handover, "MIN_ROWS_PER_TICK", 2)  # rows between empty windows


FUNCTIONS: Any = {
    "n": agg.count(),
    "all": agg.collect("n"),
    "s": agg.sum("x"),
    "first": agg.first("ts"),
}
FOLDED: Any = {"n": agg.count(), "s": agg.sum("x"), "most": agg.max("n")}
BEHIND = {
    "folded": lambda: Aggregate(Tumbling(Punct()), **FOLDED),
    "counted": lambda: Aggregate(Tumbling(Punct()), n=agg.count()),
    "folded groups": lambda: Aggregate(Tumbling(Punct()), group_by="k", **FOLDED),
    "folded by key": lambda: Aggregate(Tumbling(Punct(), by="k"), **FOLDED),
    "folded count": lambda: Aggregate(Tumbling(Count(3)), **FOLDED),
    "aggregate": lambda: Aggregate(Tumbling(Punct()), **FUNCTIONS),
    "by key": lambda: Aggregate(Tumbling(Punct(), by="k"), **FUNCTIONS),
    "groups": lambda: Aggregate(Tumbling(Punct()), group_by="k", **FUNCTIONS),
    "skyline": lambda: Skyline(Tumbling(Punct()), "x", "n"),
    "skyline by key": lambda: Skyline(Tumbling(Punct(), by="k"), "x", "n"),
    "sort": lambda: Sort("x", window=Tumbling(Punct())),
    "count": lambda: Aggregate(Tumbling(Count(3)), **FUNCTIONS),
    "sliding": lambda: Aggregate(Sliding(Count(4), every=Count(2)), **FUNCTIONS),
    "dedup": lambda: Dedup("x", within=Count(5)),
    "two": lambda: Aggregate(Tumbling(Punct(), by="k"), **FUNCTIONS).then(
        Aggregate(Tumbling(Punct()), n=agg.sum("n"))
    ),
}


def stream(stamps: list[int], keys: int) -> list[dict[str, Any]]:
    return [
        {"ts": ts, "n": n, "k": "abc"[n * 7 % keys], "x": n * 5 % 11 / 4}
        for n, ts in enumerate(stamps)
    ]


@pytest.mark.parametrize("behind", BEHIND)
@given(data=st.data())
@settings(max_examples=examples(25))
def test_batches_give_the_rows_and_punctuations_of_single_rows(behind, data):
    stamps = data.draw(st.lists(st.integers(-30, 60), min_size=1, max_size=60))
    rows = stream(stamps, data.draw(st.integers(1, 3)))
    size, every = data.draw(st.sampled_from([(10, 10), (10, 5), (7, 3), (2, 2)]))
    panes = Panes(
        "ts",
        size=size,
        every=every,
        slack=data.draw(st.sampled_from(SLACKS)),
        late=data.draw(st.sampled_from(["drop", "port"])),
        by=data.draw(st.sampled_from([None, "k"])),
        empty=data.draw(st.sampled_from([0, 2, 1000])),
        start=data.draw(st.sampled_from([None, "from", "x"])),
    )
    chain = panes.then(BEHIND[behind]())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stamps)), max_size=4)))
    expected = by_row(chain, rows)
    assert ports(expected) == ports(by_batch(chain, rows, cuts))
    assert ports(expected) == ports(by_batch(chain, rows, cuts, restarts=True))
    mixed = Watched(chain)
    for number, (low, high) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        mixed.give(rows[low:high], whole=number % 2 == 0)
    mixed.running.finish()
    assert ports(expected) == ports(mixed.items)


def ports(items: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    """What came out, in the order of each port."""
    names = dict.fromkeys(name for name, _ in items)
    return {name: [row for each, row in items if each == name] for name in names}


@given(data=st.data())
@settings(max_examples=examples(25))
def test_columns_of_a_reordered_stream_give_the_same_rows(data):
    stamps = data.draw(st.lists(st.integers(-30, 60), min_size=1, max_size=60))
    rows = stream(stamps, 3)
    slack = data.draw(st.sampled_from(SLACKS))
    behind = BEHIND[data.draw(st.sampled_from(["count", "sliding", "dedup"]))]()
    chain = Reorder("ts", slack=slack, late="port").then(behind)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stamps)), max_size=4)))
    assert ports(by_row(chain, rows)) == ports(by_batch(chain, rows, cuts))


@pytest.mark.parametrize("behind", BEHIND)
def test_rows_that_are_only_folded_come_in_any_order_with_the_columns_that_are_read(behind):
    chain = Panes("ts", size=10, slack=5).then(BEHIND[behind]())
    running: Any = chain.open()
    panes = running.nodes["Panes"].operator
    want = {"folded": {"x", "n"}, "counted": set()}.get(behind)
    assert panes.folded_columns == want
    rows = stream([3, 1, 2, 14, 11, 30], 1)
    running.insert_batch(pa.RecordBatch.from_pylist(rows))
    held = [row for lane in running.snapshot()["state"]["Panes"]["state"]["lanes"] for row in lane]
    assert "30" in repr(held)  # rows that wait are whole


@pytest.mark.parametrize("behind", ["aggregate", "by key", "skyline", "sort", "count"])
def test_no_row_behind_it_is_looked_at_alone(behind, monkeypatch):
    def unwanted(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(handover.MarkedRows, "_insert_one", unwanted)
    chain = Panes("ts", size=10, slack=3).then(BEHIND[behind]())
    rows = stream(disordered(200, 4), 3)
    assert by_batch(chain, rows, [70, 140])


class Picky(Operator):
    """Fails at the windows that hold some row."""

    model = OperatorModel(
        windows=[Tumbling], punctuation_in="window_bound", punctuation_out="generating"
    )
    content = "arrow"

    def before_flush(self, window, key):
        numbers = window.arrow(key).column("n").to_pylist()
        if {7, 31} & set(numbers):
            raise ValueError(f"cannot take {numbers[0]}")
        self.emit({"all": numbers})
        self.emit_punct()


class PickyRows(Operator):
    """The same, which reads tuples."""

    model = Picky.model

    def before_flush(self, window, key):
        numbers = [row["n"] for row in window[key]]
        if {7, 31} & set(numbers):
            raise ValueError(f"cannot take {numbers[0]}")
        self.emit({"all": numbers})
        self.emit_punct()


@pytest.mark.parametrize("kind", [Picky, PickyRows])
@pytest.mark.parametrize("by", [None, "k"])
def test_a_failure_costs_no_other_window_its_turn(kind, by):
    rows = stream(disordered(120, 3), 3)
    chain = Panes("ts", size=10, slack=10_000).then(kind(Tumbling(Punct(), by=by)))
    found = []
    for whole in (False, True):
        watched = Watched(chain)
        watched.give(rows, whole)
        with pytest.raises(ValueError, match="cannot take") as caught:
            watched.running.finish()
        found.append((watched.items, str(caught.value)))
    assert found[0] == found[1]
    assert len(found[0][0]) > 10


def test_a_row_that_the_next_operator_refuses_costs_no_other():
    rows = stream(list(range(40)), 3)
    rows[5]["x"] = rows[25]["x"] = "bad"
    chain = Panes("ts", size=10, slack=100).then(BEHIND["aggregate"]())
    found = []
    for whole in (False, True):
        watched = Watched(chain)
        if whole:
            texts = [None if isinstance(row["x"], float) else row["x"] for row in rows]
            table = pa.Table.from_pylist([{**row, "x": None} for row in rows])
            table = table.set_column(3, "x", pa.array(texts, pa.string()))
            watched.running.insert_batch(table)
        else:
            plain = [{**row, "x": row["x"] if row["x"] == "bad" else None} for row in rows]
            watched.running.insert_many(plain)
        with pytest.raises(Exception, match="bad") as caught:
            watched.running.finish()
        found.append((watched.items, type(caught.value)))
    assert found[0] == found[1]


def test_encodings_and_types_of_a_batch_go_through(monkeypatch):
    table = pa.table(
        {
            "ts": pa.array([3, 1, 12, 25, 14], pa.int32()),
            "k": pa.array(["a", None, "b", "a", "b"]).dictionary_encode(),
            "x": pa.array([[1], None, [2, 3], [], [4]], pa.list_(pa.int8())),
        }
    )
    panes = Panes("ts", size=10, slack=0)
    watched = Watched(panes)
    for batch in table.to_batches(max_chunksize=2):
        watched.running.insert_batch(batch)
    watched.running.finish()
    rows = table.to_pylist()
    assert by_row(panes, rows) == watched.items


def test_rows_that_wait_are_released_from_large_batches():
    """A row from the far future does not keep its batch in memory."""
    held = []
    panes = Panes("ts", size=10, slack=0)
    running = panes.open()
    running.connect(0, lambda row: None)
    for start in range(0, 50_000, 5_000):
        stamps = [*range(start, start + 5_000)]
        running.insert_batch(pa.table({"ts": stamps}))
        live: Any = running.operator
        assert isinstance(live._columns, open_panes.PaneColumns)
        held.append(sum(part.batch.nbytes for part in live._columns._parts))
    assert max(held) < 10 * 8 + 100
