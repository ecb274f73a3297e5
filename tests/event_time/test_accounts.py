"""Every row that comes in is in windows, late, or open, whatever the options."""
# mypy: disable-error-code="misc,arg-type"

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    Event,
    EventTimeWindow,
    KSlack,
    Landmark,
    PidSlack,
    Punct,
    QuantileSlack,
    Session,
    Sliding,
    Tumbling,
    Watermark,
    parse,
    replay,
    restart,
)
from windowlib.columnar import handover
from windowlib.columnar.engines import event_sessions
from windowlib.operators import Aggregate, Panes, Reorder, agg


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(event_sessions, "MIN_ROWS_PER_LATE", 0)


SLACKS = [0, 3, 20, KSlack(), KSlack("arrival"), QuantileSlack(0.2, 5), PidSlack(0.2, every=4)]


@st.composite
def watermarks(draw: Any, keyed: bool) -> Watermark:
    sources = draw(st.sampled_from([None, "host"]))
    scope = draw(st.sampled_from(["stream", "key"])) if keyed else "stream"
    idle = draw(st.sampled_from([None, 15])) if sources or scope == "key" else None
    return Watermark(
        draw(st.sampled_from(SLACKS)),
        sources=sources,
        idle=idle,
        max_ahead=draw(st.sampled_from([None, 30])),
        scope=scope,
    )


@st.composite
def windows(draw: Any) -> Any:
    by = draw(st.sampled_from([None, "k"]))
    kind = draw(st.sampled_from(["tumbling", "sliding", "session", "landmark"]))
    late = draw(st.sampled_from(["drop", "port", "update"] if kind != "landmark" else ["drop"]))
    given: dict[str, Any] = {"by": by, "watermark": draw(watermarks(by is not None)), "late": late}
    if late == "update":
        given |= {"allowed": draw(st.sampled_from([4, 25]))}
        given["retract"] = kind == "session" or draw(st.booleans())
    if kind == "tumbling":
        return Tumbling(Event("ts", 10, offset=draw(st.sampled_from([0, 3]))), **given)
    if kind == "sliding":
        return Sliding(Event("ts", 10), every=Event("ts", 4), **given)
    if kind == "session":
        return Session(Event("ts"), gap=draw(st.sampled_from([2, 6])), **given)
    return Landmark(Event("ts", 10), since=draw(st.sampled_from([None, -10, 20])), **given)


ROWS = st.lists(
    st.tuples(st.integers(-30, 90), st.sampled_from("ab"), st.sampled_from(["h", "i", None])),
    min_size=1,
    max_size=50,
)
KEPT = {"ns": agg.collect("n")}
FOLDED = {"lo": agg.min("n"), "hi": agg.max("n")}
BOUNDS = {"s": agg.window_start(), "e": agg.window_end(), "r": agg.revision(), "size": agg.count()}


class Sink:
    """Holds what counts: the last revision of each window, without what was taken back."""

    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}
        self.late: list[Any] = []
        self.firings = 0

    def take(self, row: dict[str, Any]) -> None:
        self.firings += 1
        window = row.get("k"), row["s"], row["e"]
        if row.get("gone"):
            known = self.rows.pop(window)
            same = [name for name in row if name not in ("gone",)]
            assert [known[name] for name in same] == [row[name] for name in same]
        else:
            before = self.rows.get(window)
            assert row["r"] == 0 or before is None or row["r"] == before["r"] + 1
            self.rows[window] = row


def run(spec: Any, outputs: dict[str, Any], rows: list[dict[str, Any]], cuts: Any) -> Any:
    """The sink, and the window, after rows in pieces: one by one, in batches, after restarts."""
    more = {"gone": agg.retracts()} if spec.retract else {}
    op = Aggregate(spec, {**BOUNDS, **outputs, **more})
    running, sink = op.open(), Sink()

    def connect() -> None:
        running.connect(0, sink.take)
        if spec.late == "port":
            running.connect("late", sink.late.append)

    connect()
    at = 0
    for end, how in [*cuts, (len(rows), "rows")]:
        part, at = rows[at:end], max(at, end)
        if how == "restart":
            state = running.snapshot()
            running = op.open()
            running.restore(state)
            connect()
        if how == "batch" and part:
            running.insert_batch(pa.Table.from_pylist(part))
        else:
            running.insert_many(part)
        (window,) = running.operator.containers
        assert isinstance(window, EventTimeWindow)
        if isinstance(spec, Tumbling) and spec.late != "update":
            inside = sum(row["size"] for row in sink.rows.values())
            assert at == inside + window.late_rows + len(window)
    running.finish()
    (window,) = running.operator.containers
    return sink, window


@given(st.data())
@settings(max_examples=examples(300))
def test_every_row_is_in_windows_late_or_open(data):
    spec = data.draw(windows())
    rows = [
        {"ts": ts, "k": k, "host": host, "n": n} for n, (ts, k, host) in enumerate(data.draw(ROWS))
    ]
    pieces = st.tuples(st.integers(0, len(rows)), st.sampled_from(["rows", "batch", "restart"]))
    cuts = sorted(data.draw(st.lists(pieces, max_size=4)))
    plain, window = run(spec, KEPT, rows, [])
    seen = {n for row in plain.rows.values() for n in row["ns"]}
    assert len(rows) == len(seen) + window.late_rows
    assert len(rows) == window.seen + window.late_rows
    if isinstance(spec, Tumbling):  # and sessions: each row is in one window
        assert len(seen) == sum(row["size"] for row in plain.rows.values())
    if spec.late == "port":
        assert {row["n"] for row in plain.late} == set(range(len(rows))) - seen
    for sink, cut in (run(spec, KEPT, rows, cuts), run(spec, FOLDED, rows, cuts)):
        assert window.late_rows == cut.late_rows
        assert plain.late == sink.late
        assert [(w, row["size"], row["r"]) for w, row in plain.rows.items()] == [
            (w, row["size"], row["r"]) for w, row in sink.rows.items()
        ]
        assert plain.firings == sink.firings
    text = str(spec)
    assert parse(text, by="k" if spec.by else None).fingerprint == spec.fingerprint


def test_a_replay_counts_late_rows_of_windows_and_of_operators():
    stamps = pa.table({"ts": [5, 30, 7, 8, 40, 9]})
    mean = Aggregate(Tumbling(Event("ts", 10), late="drop"), n=agg.count())
    ways: list[Any] = [stamps, stamps.to_pylist(), [*stamps.to_pylist()[:4], restart(), {"ts": 9}]]
    panes = Panes("ts", size=10, slack=0).then(Aggregate(Tumbling(Punct()), n=agg.count()))
    for operator in (mean, panes, Reorder("ts", slack=0)):
        for rows in ways:
            outcome = replay(operator, rows)
            assert outcome.late_rows == 0  # nothing has been read
            list(outcome)
            assert outcome.late_rows == 3
