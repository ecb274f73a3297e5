"""Any operator with one window takes windows of event time; those that cannot say so."""
# mypy: disable-error-code="misc"
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pyarrow as pa
import pytest

from windowlib import (
    Event,
    Landmark,
    ModelError,
    Operator,
    OperatorModel,
    Punct,
    Session,
    Sliding,
    Tumbling,
    Watermark,
    replay,
    restart,
)
from windowlib.operators import Aggregate, Batch, Filter, Skyline, Sort, TopK, agg

ROWS = [
    {"ts": ts, "k": "ab"[n % 2], "x": x}
    for n, (ts, x) in enumerate([(1, 5), (12, 2), (7, 9), (16, 4), (3, 7), (14, 1), (31, 8)])
]
MINUTES: Any = Tumbling(Event("ts", 10), watermark=10)


def xs(op, key="x"):
    return [row[key] for row in replay(op, ROWS)]


def test_sort_sorts_each_window():
    assert [5, 7, 9, 1, 2, 4, 8] == xs(Sort("x", window=MINUTES))


def test_a_batch_is_a_window_or_a_session():
    assert [3, 3, 1] == xs(Batch(MINUTES), "n")
    sessions = Batch(Session(Event("ts"), gap=3, watermark=10), by="k")
    found = [(row["k"], [each["ts"] for each in row["rows"]]) for row in replay(sessions, ROWS)]
    # The first session is closed when the row at 3 comes, which is then one by itself.
    expected = [("a", [1]), ("a", [3]), ("a", [7]), ("b", [12, 14, 16]), ("a", [31])]
    assert expected == found


def test_the_best_rows_of_each_window():
    assert [9, 4, 8] == xs(TopK(MINUTES, by="x", k=1))
    assert [5, 1, 8] == xs(Skyline(MINUTES, "x"))
    hops = Sliding(Event("ts", 20), every=Event("ts", 10), watermark=20)
    assert [9, 9, 4, 8, 8] == xs(TopK(hops, by="x", k=1))


class Spread(Operator):
    model = OperatorModel(windows=[Tumbling, Sliding], punctuation_out="generating")

    def before_flush(self, window, key):
        self._emit(window, key)

    def on_trigger(self, window, key):
        self._emit(window, key)

    def _emit(self, window, key):
        values = [row["x"] for row in window[key]]
        self.emit(start=window.bounds(key)[0], spread=max(values) - min(values))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (MINUTES, [(0, 4), (10, 3), (30, 0)]),
        (Landmark(Event("ts", 10), since=0, watermark=10), [(0, 4), (0, 8), (0, 8)]),
        (Session(Event("ts"), gap=6, watermark=10), [(1, 8), (31, 0)]),
    ],
    ids=str,
)
def test_an_operator_of_your_own(window, expected):
    found = [(row["start"], row["spread"]) for row in replay(Spread(window), ROWS)]
    assert expected == found
    table = replay(Spread(window), pa.Table.from_pylist(ROWS))
    assert expected == [(row["start"], row["spread"]) for row in table]


def test_only_kinds_that_a_model_names():
    class Only(Spread):
        model = OperatorModel(windows=[Session])

    with pytest.raises(ModelError, match="Only does not support Tumbling"):
        Only(MINUTES)
    assert Only(Session(Event("ts"), gap=5))
    assert Tumbling[Event].matches(MINUTES)
    assert not Tumbling[Event].matches(Session(Event("ts"), gap=5))


def test_behind_others_and_before_them():
    counted = Aggregate(Tumbling(Punct()), windows=agg.count())
    chain = Filter(lambda row: row["x"] > 1).then(
        Aggregate(MINUTES, n=agg.count(), start=agg.window_start()), counted
    )
    assert [{"windows": 1}] * 3 == list(replay(chain, ROWS))


def test_groups_of_a_window():
    op = Aggregate(MINUTES, n=agg.count(), start=agg.window_start(), group_by="k")
    found = [(row["start"], row["k"], row["n"]) for row in replay(op, ROWS)]
    assert [(0, "a", 3), (10, "b", 3), (30, "a", 1)] == found


@pytest.mark.parametrize(
    "window",
    [
        Tumbling(Event("ts", 10), by="k", late="update", allowed=20, retract=True),
        Sliding(Event("ts", 10), every=Event("ts", 5), late="update", allowed=9),
        Session(Event("ts"), gap=4, late="update", allowed=20, retract=True),
        Tumbling(Event("ts", 10), watermark=Watermark(2, sources="k", idle=9), late="port"),
        Tumbling(Event("ts", 10), watermark=Watermark(2, max_ahead=9, scope="key"), by="k"),
        Landmark(Event("ts", 10), since=2, by="k", watermark=3, late="drop"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::windowlib.WindowlibWarning")
def test_a_restart_at_any_row_changes_nothing(window):
    outputs: Any = {"r": agg.revision(), "gone": agg.retracts(), "xs": agg.collect("x")}
    op = Aggregate(window, outputs, start=agg.window_start())
    expected = list(replay(op, ROWS).items())
    for cut in range(len(ROWS) + 1):
        assert expected == list(replay(op, [*ROWS[:cut], restart(), *ROWS[cut:]]).items())
