"""Windows of event time in timelines, counters and explanations."""
# ruff: noqa: SIM300 - asserts read expected first

import pyarrow as pa
import pytest

from windowlib import Event, Session, Tumbling, trace
from windowlib.operators import Aggregate, agg
from windowlib.runtime.counters import Counters

ROWS = [{"ts": ts, "k": "a"} for ts in (1, 12, 7, 16, 3, 31)]

TIMELINE = """\
tumbling, event(ts, 10), watermark(5), late(drop)

tuple       1   2   3   4   5   6   E
ts          1  12   7  16   3  31
watermark  -4   7   7  11  11  26
late                        5
insert      1   2   3   4       6
flush                   |       |   |
window                 1 3     2 4  6

Each column runs from top to bottom. E the end."""


def test_a_timeline_shows_the_watermark_and_late_rows():
    assert TIMELINE == str(trace("tumbling, event(ts, 10), watermark(5), late(drop)", ROWS))


@pytest.mark.parametrize(
    "spec",
    [
        "tumbling, event(ts, 10), watermark(5)",
        "tumbling, event(ts, 10s), partitioned, early(5s)",
        "sliding, event(ts, 10), event(ts, 5), partitioned",
        "session, event(ts), gap(1m)",
        "landmark, event(ts, 10), since(5)",
        "tumbling, event(ts, 10), watermark(5, sources host)",
    ],
)
def test_every_kind_can_be_drawn(spec):
    rows = [{"ts": ts, "host": "a"} for ts in range(20)] if "host" in spec else None
    drawn = trace(spec, rows)
    assert drawn.windows
    assert drawn.to_svg().startswith("<svg")
    assert all(len(line) <= 80 for line in str(drawn).splitlines())


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(
    "window",
    [
        Tumbling(Event("ts", 10), by="k", watermark=5, late="drop"),
        Session(Event("ts"), gap=3, by="k", watermark=5, late="drop"),
    ],
    ids=str,
)
def test_counters_account_for_every_row(window, batches, monkeypatch):
    monkeypatch.setattr("windowlib.columnar.handover.MIN_ROWS", 1)
    running = Aggregate(window, n=agg.count()).open()
    counters = Counters(running)
    if batches:
        running.insert_batch(pa.Table.from_pylist(ROWS))
    else:
        running.insert_many(ROWS)
    (held,) = running.operator.containers
    assert held is not None
    found = counters.read()
    assert 1 == found["late"]
    assert len(ROWS) == found["late"] + found["evicted"] + held.held()[0]  # type: ignore[attr-defined]
    assert 1 == found["partitions"]
    running.finish()
    assert {"evicted": 5, "partitions": 0, "late": 1} == {
        name: counters.read()[name] for name in ("evicted", "partitions", "late")
    }


def test_explain_says_how_long_it_waits_and_what_it_keeps():
    window = Tumbling(Event("ts", 10), by="k", watermark=5, late="port")
    text = Aggregate(window, n=agg.count(), all=agg.collect("ts")).explain()
    assert "  watermark  5 behind the greatest timestamp\n" in text
    assert "  late rows  to the output late\n" in text
    assert "keeps      tuples, read by" in text
    assert "output       late: no punctuation\n" in text
    assert "one partial per key and slice" in Aggregate(window, n=agg.count()).explain()
