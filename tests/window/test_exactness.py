"""Corners where engines could differ: each as one claim on rows, batches and snapshots."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionCount,
    SchemaError,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
    summarizers,
)
from windowlib.operators import Aggregate, Punctor, agg

# Handlers that a window never calls are warned of; here each class of them meets every window.
pytestmark = pytest.mark.filterwarnings("ignore::windowlib.WindowlibWarning")
engines = pytest.mark.parametrize("engine", ["reference", "generated"])
INF, NAN = float("inf"), float("nan")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def made(spec: Any, **more: Any) -> Any:
    return (SlidingWindow if isinstance(spec, Sliding) else TumblingWindow)(spec, **more)


# -- window.full(key) in on_trigger of delta/delta ------------------------------------------------


class Fullness(WindowEvents[Any, Any]):
    """Notes at every trigger whether the window counts as full."""

    def __init__(self) -> None:
        self.seen: list[tuple[bool, list[int]]] = []

    def on_trigger(self, window, key):
        self.seen.append((window.full(key), [t["x"] for t in window[key]]))


class FullnessAndMore(Fullness):
    def on_initial_full(self, window, key):
        """Overridden, and does nothing."""


@engines
@pytest.mark.parametrize("events", [Fullness, FullnessAndMore])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (range(7), [(False, [0, 1]), (True, [0, 1, 2, 3]), (True, [2, 3, 4, 5])]),
        # 5 is far from 1, which is not the oldest
        ([2, 1, 4, 5, 7], [(False, [2, 1]), (True, [2, 4, 5])]),
        ([2, 1, 3, 5], [(True, [2, 1, 3])]),
    ],
)
def test_a_delta_window_is_full_at_the_trigger_of_the_tuple_that_evicts_first(
    engine, events, values, expected
):
    spec = Sliding(Delta("x", 3), every=Delta("x", 1))
    handlers = events()
    window = made(spec, events=handlers, engine=engine)
    for x in values:
        window.insert({"x": x})
    assert expected == handlers.seen


def test_partial_windows_of_delta_delta_are_the_same_in_rows_and_batches():
    """The first full window is a full one, also where batches go in as columns."""
    rows = [{"x": x, "v": x % 7} for x in range(600)]
    for partial in ("emit", "skip"):
        query = Aggregate(
            Sliding(Delta("x", 32), every=Delta("x", 10)), {"n": agg.count()}, partial=partial
        )
        by_rows: list[Any] = []
        by_batches: list[Any] = []
        running = query.open()
        running.connect(0, by_rows.append)
        running.insert_many(rows)
        running = query.open()
        running.connect(0, by_batches.append)
        running.insert_batch(pa.Table.from_pylist(rows))
        assert by_rows == by_batches
        assert by_rows[0]["n"] == (11 if partial == "emit" else 33)


# -- delta values that have no distance ------------------------------------------------------------

DELTA_SPECS = [
    Tumbling(Delta("x", 5)),
    Tumbling(Delta("x", 5), by="k", forget=TupleCount(50)),
    Sliding(Delta("x", 5), every=Count(1)),
    Sliding(Delta("x", 5), every=Time("1s")),
    Sliding(Delta("x", 5), every=Delta("x", 2)),
    Sliding(Delta("x", 5), every=Delta("y", 2)),
    Sliding(Delta("y", 5), every=Delta("x", 2)),
    Sliding(Count(3), every=Delta("x", 2), by="k"),
    Sliding(Count(0), every=Delta("x", 2)),
    Sliding(Time("3s"), every=Delta("x", 2)),
]
FAR = [
    INF,
    -INF,
    NAN,
    Decimal("Infinity"),
    Decimal("-Infinity"),
    Decimal("NaN"),
    Decimal("sNaN"),
    None,
    "word",
]


@engines
@pytest.mark.parametrize("summary", [None, "count"])
@pytest.mark.parametrize("value", FAR, ids=repr)
@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("spec", DELTA_SPECS, ids=str)
def test_infinity_and_nan_are_refused_wherever_they_come(spec, before, value, engine, summary):
    number = Decimal if isinstance(value, Decimal) else float
    more = {} if summary is None else {"summarizer": summarizers.count()}
    window = made(spec, engine=engine, **more)
    rows = [{"x": number(x), "y": number(x), "k": 1} for x in (0, 2, 4, 6, 9)]
    for row in rows[:before]:
        window.insert(row)
    saved = window.snapshot()
    far = {**rows[before], "x": value}
    with pytest.raises(SchemaError, match=r'Delta\("x"|Delta\(\'x\''):
        window.insert(far)
    assert saved == window.snapshot()
    with pytest.raises(SchemaError):
        window.insert_many([far])
    assert saved == window.snapshot()
    window.insert_many(rows[before:])
    window.state.check()
    assert window.seen == len(rows)


@pytest.mark.parametrize("value", [INF, -INF, NAN])
@pytest.mark.parametrize("spec", DELTA_SPECS[:8], ids=str)
def test_batches_refuse_infinity_and_nan_at_the_same_row(spec, value):
    xs = [float(i) for i in range(700)]
    xs[500] = value
    table = pa.table({"x": xs, "y": [float(i) for i in range(700)], "k": [1] * 700})
    by_rows, by_batches = made(spec), made(spec)
    messages = []
    for window, insert in (
        (by_rows, lambda w: w.insert_many(table.to_pylist())),
        (by_batches, lambda w: w.insert_batch(table)),
    ):
        with pytest.raises(SchemaError) as refused:
            insert(window)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert by_rows.seen == by_batches.seen == 500
    assert by_rows.snapshot() == by_batches.snapshot()


@pytest.mark.parametrize("value", [INF, Decimal("Infinity"), NAN])
def test_operators_with_a_delta_of_their_own_refuse_them_too(value):
    running = Punctor(gap=Delta("x", 5)).open()
    running.insert({"x": 1})
    with pytest.raises(SchemaError, match="cannot be compared"):
        running.insert({"x": value})


# -- a handler raises, and then comes a value that cannot be compared -----------------------------


class BoomError(Exception):
    """What the handlers of these tests raise."""


class Raises(WindowEvents[Any, Any]):
    """Raises once, when it is told to."""

    armed = False

    def hit(self):
        if self.armed:
            self.armed = False
            raise BoomError


class RaisesAfterEvict(Raises):
    def after_evict(self, window, tuple_, key):
        self.hit()


class RaisesBeforeInsert(Raises):
    def before_insert(self, window, tuple_, key):
        self.hit()


class RaisesAtTrigger(Raises):
    def on_trigger(self, window, key):
        self.hit()


@engines
@pytest.mark.parametrize("events", [RaisesAfterEvict, RaisesBeforeInsert, RaisesAtTrigger])
@pytest.mark.parametrize(
    ("values", "strange"),
    [
        ((1, 10, 12, 30), (None, "word", timedelta(1), NOON, INF)),
        ((1.0, 10.0, 12.0, 30.0), (None, Decimal(11), NAN)),
        ((Decimal(1), Decimal(10), Decimal(12), Decimal(30)), (None, 11.0)),
    ],
    ids=["int", "float", "Decimal"],
)
@pytest.mark.parametrize("spec", DELTA_SPECS[:7], ids=str)
def test_a_window_that_a_raising_handler_has_emptied_still_refuses(
    spec, values, strange, events, engine
):
    handlers = events()
    window = made(spec, events=handlers, engine=engine)
    first, far, near, last = ({"x": v, "y": v, "k": 1} for v in values)
    window.insert(first)
    handlers.armed = True
    with suppress(BoomError):
        window.insert(far)
    handlers.armed = False
    saved = window.snapshot()
    for value in strange:
        if isinstance(spec, Tumbling) and not len(window) and value == 11:
            continue  # an empty tumbling window has no value that it would have to mix with
        with pytest.raises(SchemaError):
            window.insert({"x": value, "y": value, "k": 1})
        assert saved == window.snapshot()
    window.insert(near)
    window.insert(last)
    window.state.check()


@engines
def test_a_type_that_does_not_mix_is_refused_before_the_trigger_of_another_attribute(engine):
    handlers = Fullness()
    window = made(Sliding(Delta("x", 5), every=Delta("y", 2)), events=handlers, engine=engine)
    window.insert({"x": 1.0, "y": 1})
    with pytest.raises(SchemaError, match="does not mix"):
        window.insert({"x": Decimal(2), "y": 9})
    assert handlers.seen == []
    window.insert({"x": 2.0, "y": 9})
    assert len(handlers.seen) == 1


# -- equal keys -----------------------------------------------------------------------------------


class Keys(WindowEvents[Any, Any]):
    """Writes down, as text, the key that each event brings."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def _key(self, window, *arguments):
        self.keys.append(repr(arguments[-1]))

    before_insert = after_insert = before_evict = after_evict = _key
    before_flush = after_flush = on_trigger = on_initial_full = _key

    def on_partitions_evicted(self, window, keys):
        self.keys += map(repr, keys)


EQUAL = [
    (True, 1, 1.0, Decimal(1)),
    (1.0, True, 1),
    (0.0, -0.0, 0, False),
    (-0.0, 0.0),
    (Decimal("1.0"), Decimal("1.00"), 1),
    (NOON, NOON.astimezone(timezone(timedelta(hours=2))), NOON.astimezone(ZoneInfo("Asia/Tokyo"))),
    (("a", 1), ("a", True), ("a", 1.0)),
    ((0.0, NAN), (-0.0, NAN)),
]
STAYING = [  # the partition stays for all of these tuples
    Tumbling(Count(100), by=KEY),
    Tumbling(Delta("x", 2), by=KEY),
    Tumbling(Time("100s"), by=KEY),
    Sliding(Count(2), every=Count(1), by=KEY),
    Sliding(Count(2), every=Count(2), by=KEY, forget=PartitionCount(3)),
    Sliding(Delta("x", 2), every=Count(1), by=KEY),
    Sliding(Delta("x", 2), every=Delta("x", 1), by=KEY),
    Sliding(Count(0), every=Count(2), by=KEY),
    Sliding(Time("1s"), every=Count(2), by=KEY),
    Sliding(Time("1s"), every=Delta("x", 1), by=KEY),
]


@engines
@pytest.mark.parametrize("equal", EQUAL, ids=lambda keys: repr(keys[0]))
@pytest.mark.parametrize("spec", STAYING, ids=str)
def test_handlers_get_the_key_that_the_partition_was_born_with(spec, equal, engine):
    handlers = Keys()
    window = made(spec, events=handlers, engine=engine)
    born = repr(equal[0])
    for x, key in enumerate([*equal, *equal, *equal]):
        window.insert({"x": x}, key)
        window.state.check()
    window.insert_many([{"x": 50 + i} for i in range(len(equal))], equal)
    window.advance(200)  # ticks, and time eviction: trigger state outlives the tuples
    window.insert({"x": 99}, equal[-1])
    stays = not (isinstance(spec, Tumbling) and spec.timed)
    if stays:
        assert {*handlers.keys} <= {born}
        assert {repr(key) for key in window} <= {born}
    window.state.check()
    again = made(spec, events=Keys(), engine=engine)
    again.restore(window.snapshot())
    assert [repr(key) for key in again] == [repr(key) for key in window]
    again.insert({"x": 100}, equal[-1])
    assert {*again.events.keys} <= {repr(key) for key in window} | {born}


@engines
def test_a_partition_that_was_forgotten_is_born_with_another_key(engine):
    handlers = Keys()
    window = made(
        Sliding(Count(3), every=Count(1), by=KEY, forget=PartitionCount(1)),
        events=handlers,
        engine=engine,
    )
    window.insert({"x": 0}, 1)
    window.insert({"x": 0}, "other")
    handlers.keys.clear()
    window.insert({"x": 0}, True)
    assert {*handlers.keys} == {"True", "'other'"}


@engines
@pytest.mark.parametrize("spec", [Sliding(Count(2), by=KEY), Tumbling(Count(9), by=KEY)], ids=str)
def test_a_json_snapshot_keeps_the_key_a_partition_was_born_with(spec, engine):
    window = made(spec, engine=engine)
    window.insert_many([1, 2, 3], [1, True, 1.0])
    again = made(spec, events=Keys(), engine=engine)
    again.restore(json.loads(json.dumps(window.snapshot())))
    again.insert_many([4, 5], [True, 1.0])
    assert {*again.events.keys} == {"1"}


COLUMNS = {
    "zeros": [pa.array([0.0, -0.0] * 200), pa.array([-0.0, 0.0] * 200)],
    "negative zeros": [pa.array([-0.0, 0.0] * 200), pa.array([0.0, -0.0] * 200)],
    "numbers": [pa.array([1] * 400), pa.array([1.0] * 400), pa.array([True] * 400)],
    "decimals": [pa.array([Decimal("1.0")] * 400), pa.array([Decimal("1.00")] * 400)],
    "zones": [
        pa.array([NOON] * 400, pa.timestamp("us", "UTC")),
        pa.array([NOON] * 400, pa.timestamp("us", "Asia/Tokyo")),
    ],
}
BATCHED = [
    Tumbling(Count(1000), by="k"),
    Tumbling(Delta("x", 70), by="k"),
    Sliding(Count(20), every=Count(7), by="k"),
    Sliding(Delta("x", 30), every=Count(7), by="k"),
    Sliding(Delta("x", 30), every=Delta("x", 9), by="k"),
]


class Fired(WindowEvents[Any, Any]):
    def __init__(self) -> None:
        self.fired: list[tuple[str, int]] = []

    def before_flush(self, window, key):
        self.fired.append((repr(key), window.size(key)))

    on_trigger = before_flush


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=list(COLUMNS))
@pytest.mark.parametrize("spec", BATCHED, ids=str)
def test_batches_know_partitions_by_the_key_they_were_born_with(spec, columns):
    windows = [made(spec, events=Fired()) for _ in range(3)]
    rows, batches, both = windows
    for number, keys in enumerate(columns):
        xs = list(range(400 * number, 400 * number + len(keys)))
        table = pa.table({"k": keys, "x": xs})
        rows.insert_many(table.to_pylist())
        batches.insert_batch(table)
        if number % 2:
            both.insert_many(table.to_pylist())
        else:
            both.insert_batch(table)
    assert rows.events.fired == batches.events.fired == both.events.fired
    assert {key for key, _ in rows.events.fired} <= {repr(columns[0][0].as_py())}
    kept = [[repr(key) for key in window] for window in windows]
    assert kept[0] == kept[1] == kept[2]
