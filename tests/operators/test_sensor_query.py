"""The paper's SensorQuery: a join, then an aggregate over punctuation windows."""
# ruff: noqa: SIM300 - asserts read expected first

import runpy
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import pytest

from windowlib import Graph, PunctuationError, Tumbling, punct, replay, restart
from windowlib.operators import Aggregate, Filter, Union, agg
from windowlib.runtime.marks import Tagged
from windowlib.spec.policies import Punct

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "sensor_query.py"))
query, stream = EXAMPLE["query"], EXAMPLE["stream"]


def answers(rows: list[Any]) -> list[dict[str, Any]]:
    """By hand: the last ten readings of each area, and the nearest of them for each query."""
    recent: dict[str, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=10))
    found = []
    for item in rows:
        row = item.row
        held = recent[row["area"]]
        if item.port == "readings":
            held.append(row)
        elif held:
            best = min(held, key=lambda reading: abs(reading["value"] - row["wanted"]))
            nearest = {"sensor": best["sensor"], "value": best["value"], "of": len(held)}
            found.append({**row, **nearest})
    return found


@pytest.mark.parametrize("seed", range(5))
def test_each_query_gets_the_nearest_of_its_readings(seed):
    rows = stream(800, seed)
    expected = answers(rows)
    assert 15 < len(expected)
    assert expected == list(replay(query, rows))


def test_each_set_of_matches_is_one_punctuated_batch():
    items = list(replay(query, stream(400)).items())
    assert [punct()] * (len(items) // 2) == [item for _, item in items[1::2]]


def test_it_goes_on_after_a_restart_anywhere():
    rows = stream(120)
    expected = list(replay(query, rows))
    for place in range(0, 121, 7):
        assert expected == list(replay(query, [*rows[:place], restart(), *rows[place:]]))


def test_a_query_without_readings_gives_nothing():
    rows = [Tagged("queries", {"query": 1, "area": "north", "wanted": 20})]
    assert [] == list(replay(query, rows).items())


def test_the_punctuations_survive_a_filter_and_not_a_union():
    matches = query.operators["matches"]
    nearest = Aggregate(Tumbling(Punct()), n=agg.count())
    filtered = Graph(
        inputs=["queries", "readings"],
        matches=(matches, "queries", "readings"),
        warm=(Filter(lambda match: match["value"] > 20), "matches"),
        nearest=(nearest, "warm"),
    )
    assert sum(1 for _ in replay(filtered, stream(400)))
    with pytest.raises(PunctuationError, match="an output of Union that carries no punctuation"):
        Graph(
            inputs=["queries", "readings", "more"],
            matches=(matches, "queries", "readings"),
            all=(Union(inputs=2), "matches", "more"),
            nearest=(nearest, "all"),
        )
