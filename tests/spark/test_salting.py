# ruff: noqa: SIM300 - asserts read expected first
"""Salts spread the rows of hot panes, and the answer does not depend on them."""

import pickle
import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from operators import Skyline
from tests.preference import oracles
from windowlib import Count, FarmError, Tumbling
from windowlib.control import Adaptive, AdaptivePid, PaneRoundRobin
from windowlib.spark import Salting
from windowlib.spark.salting import parts

QUERY = Skyline(Tumbling(Count(10)), "price", "km")


def progress(came, went, milliseconds=1000, name="offers"):
    return {
        "name": name,
        "inputRowsPerSecond": came,
        "processedRowsPerSecond": went,
        "durationMs": {"triggerExecution": milliseconds},
    }


def salting(**options):
    found = Salting(AdaptivePid(4, warmup=1, **options))
    found.learn([100] * 8)
    return found


def test_a_group_gets_a_salt_for_every_threshold_and_no_more_than_there_are_workers():
    found = salting()
    assert [1, 1, 2, 3, 4, 4] == [found.sigma(rows) for rows in (1, 100, 101, 300, 400, 10**9)]
    assert 2 == Salting(found.policy, workers=2).sigma(10**9)
    assert 1 == Salting(Adaptive(4)).sigma(10**9)  # nothing is known yet


def test_batches_that_take_too_long_get_more_salts_and_short_ones_fewer():
    found = salting(patience=9)
    before = found.policy.threshold
    found.told(progress(came=1000.0, went=1500.0))
    assert before < (rested := found.policy.threshold)
    for _ in range(4):
        found.told(progress(came=1500.0, went=1000.0))
    assert found.policy.threshold < before < rested
    assert 1.5 == found.policy.utilisation.worst


def test_a_stream_that_stays_behind_has_all_hot_rows_spread():
    found = salting(patience=3)
    for _ in range(3):
        found.told(progress(came=1500.0, went=1000.0))
    assert [1, 2, 4] == [found.sigma(rows) for rows in (1, 2, 9)]


@pytest.mark.parametrize(
    "unknown",
    [
        progress(0.0, 100.0),
        progress(float("nan"), 100.0),
        progress(100.0, float("inf")),
        progress(100.0, None),
        progress(100.0, 100.0, 0),
    ],
)
def test_a_batch_whose_rate_is_unknown_moves_nothing(unknown):
    found = salting()
    found.told(unknown)
    assert found.policy.utilisation is None


def test_a_listener_tells_of_its_query_only():
    found = salting()
    listener = found.listener("offers")
    event = SimpleNamespace(progress=SimpleNamespace(**progress(9.0, 10.0, name="others")))
    listener.onQueryProgress(event)
    assert found.policy.utilisation is None
    event = SimpleNamespace(progress=SimpleNamespace(**progress(9.0, 10.0)))
    for tell in (listener.onQueryStarted, listener.onQueryIdle, listener.onQueryProgress):
        tell(event)
    listener.onQueryTerminated(event)
    assert 0.9 == getattr(found.policy.utilisation, "worst", None)


def test_a_policy_without_threshold_is_refused():
    with pytest.raises(FarmError, match=r"Salting\(PaneRoundRobin\): it has no threshold to cut"):
        Salting(PaneRoundRobin(2))  # type: ignore[arg-type]
    with pytest.raises(FarmError, match=r"Salting\(workers\)=0: not a number of them"):
        Salting(Adaptive(2), workers=0)


def offers(size):
    """Most are of one city and one pane; some have no city."""
    draw = random.Random(3)
    return [
        {
            "city": draw.choice(["Pisa"] * 8 + ["Rome", None]),
            "ts": ts,
            "pane": ts // 100,
            "n": n,
            "price": draw.randint(40, 200),
            "km": draw.randint(1, 50),
        }
        for n in range(size)
        for ts in [draw.choice([draw.randrange(100, 200), draw.randrange(500)])]
    ]


def skylines(rows):
    """The arrival numbers of the skyline of every city and pane, by definition."""
    groups: dict[tuple[str, int], list[dict[str, int]]] = {}
    for row in rows:
        groups.setdefault((row["city"], row["pane"]), []).append(row)
    return {
        key: [group[i]["n"] for i in oracles.skyline([(r["price"], r["km"]) for r in group])]
        for key, group in groups.items()
    }


def test_the_skyline_of_event_time_panes_does_not_depend_on_salts(spark):
    rows = offers(900)
    found = Salting(AdaptivePid(4, warmup=1, patience=9))
    merged: dict[tuple[str, int], Any] = {}
    most: list[dict[tuple[str, int], int]] = []
    for begin in range(0, 900, 300):  # micro-batches; every pane has rows in each of them
        frame = spark.createDataFrame(pa.Table.from_pylist(rows[begin : begin + 300]))
        salted = found.salted(frame, "city", "pane").persist()
        salts = salted.groupBy("city", "pane").agg({"salt": "max"}).collect()
        most.append({row[:2]: row[2] for row in salts})
        for city, pane, part in parts(salted, QUERY, "city", "pane", order_by="n").collect():
            part, before = pickle.loads(part), merged.get((city, pane))
            after = part if before is None else QUERY.partials.merge(before, part)
            merged[city, pane] = after
        salted.unpersist()
        found.told(progress(came=1300.0, went=1000.0))
    got = {key: QUERY.partials.rows(part)["n"].to_pylist() for key, part in merged.items()}
    assert skylines(rows) == got
    assert {0} == set(most[0].values())  # nothing was known of panes yet
    hot = [each["Pisa", 1] for each in most]
    assert hot == sorted(hot)
    assert 1 <= hot[-1] <= 3
    assert 0 == most[1]["Rome", 4]
