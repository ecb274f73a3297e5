"""The operators of the examples, and every window that an operator's model takes."""
# ruff: noqa: SIM300 - asserts read expected first

from itertools import product
from typing import Any

import pytest

from examples.clean_vwap import CleanVwap
from examples.correlation import Correlation
from examples.visits import Visits, clicks
from windowlib import (
    Count,
    Delta,
    Operator,
    OperatorModel,
    Sliding,
    Time,
    Tumbling,
    advance,
    punct,
    replay,
    to,
)
from windowlib.operators import Aggregate, Join, agg
from windowlib.samples import trades
from windowlib.testing import assert_same_everywhere, configurations

TRADES = [{**row, "ts": row["ts"].timestamp()} for row in trades(120)]
SIDES = [to(("left", "right")[i % 2], row) for i, row in enumerate(TRADES)]
FARMED = {"KeyFarm", "KeyFarm, restarted", "batches and restarts, saved as arrays"}


@pytest.mark.parametrize(
    ("operator", "rows", "times"),
    [
        (CleanVwap(Sliding(Count(9), every=Count(3), by="symbol"), width=0.001), TRADES, None),
        (CleanVwap(Sliding(Delta("ts", 20), every=Time("5s"), by="symbol")), TRADES, "ts"),
        (Correlation(8), SIDES, None),
        (Visits("30s"), list(clicks(120)), "ts"),
    ],
    ids=repr,
)
def test_an_operator_from_the_docs_is_the_same_everywhere(operator, rows, times):
    report = assert_same_everywhere(operator, rows, times=times)
    assert FARMED <= set(report.ran)
    assert report.rows > 9


class Widest(Operator):
    """The largest value of each window, read as a column."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    content = "arrow"

    def on_trigger(self, window: Any, key: Any) -> None:
        values = window.column("x", key)
        self.emit(k=key, size=len(values), most=max(values, default=None))

    before_flush = on_trigger


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Time("2s"), by="k"),
        Sliding(Time("3s"), every=Time("2s"), by="k"),
        Sliding(Count(3), every=Time("2s"), by="k"),
        Sliding(Time("3s"), every=Time("2s")),
    ],
    ids=str,
)
def test_columns_of_an_idle_window_are_empty(spec):
    rows = [{"k": "ab"[i % 2], "x": float(i * 7 % 5), "ts": i**2 / 4} for i in range(12)]
    items = [advance("5s"), *rows, advance("60s")]
    assert "batches of 3" in assert_same_everywhere(Widest(spec), items).ran
    assert assert_same_everywhere(Widest(spec), rows, times="ts").rows > 9


def test_visits_are_what_gaps_in_a_sorted_list_say():
    rows = list(clicks(300))
    expected, last = list[Any](), dict[Any, Any]()
    for row in [*rows]:
        over = [u for u, (_, _, at) in last.items() if at + 30 <= row["ts"]]
        for user in sorted(over, key=lambda u: last[u][2]):
            count, amount, at = last.pop(user)
            expected.append({"user": user, "rows": count, "amount": amount, "ended": at + 30.0})
        count, amount, _ = last.get(row["user"], (0, 0.0, 0))
        last[row["user"]] = count + 1, amount + row["amount"], row["ts"]
    assert expected == list(replay(Visits("30s"), rows, times="ts"))


MATRIX = configurations(Aggregate)


def test_the_matrix_has_the_windows_of_the_paper():
    assert 4 + 12 == len([spec for spec in MATRIX if not spec.partitioned])
    assert len(MATRIX) == len({str(spec) for spec in MATRIX})


def test_the_matrix_of_each_side_of_a_join_has_the_windows_of_the_paper():
    """Three evictions on each side, without a key and with one: of these, 9 and 81 are pairs."""
    sides = [configurations(Join, port) for port in range(2)]
    assert [15, 15] == [*map(len, sides)]
    plain = [[spec for spec in side if not spec.partitioned] for side in sides]
    evicting = [[spec for spec in side if spec.forget is not None] for side in sides]
    pairs = [*product(*plain), *product(*evicting)]
    assert 9 + 81 == len(pairs)
    for left, right in pairs:
        Join(left=left, right=right, on="k").open()


@pytest.mark.parametrize("spec", MATRIX[::7], ids=str)
def test_an_operator_takes_all_that_its_model_says(spec):
    rows = [{"k": "ab"[i * i % 2], "x": i * 3 % 7 + i // 2} for i in range(12)]
    items = [each for row in rows for each in (row, advance("1s"))]
    items += [punct()] if spec.punctuated else []
    op = Aggregate(spec, n=agg.count(), total=agg.sum("x"))
    assert "batches of 3" in assert_same_everywhere(op, items, farms=False).ran
