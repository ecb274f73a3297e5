"""Declared state lives with its key: saved, restored, split and forgotten by the library."""
# ruff: noqa: SIM300 - asserts read expected first

import json
import pickle
from decimal import Decimal
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    Event,
    Keyed,
    Operator,
    OperatorError,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    Session,
    Sliding,
    StateVersionError,
    Time,
    Tumbling,
    TupleCount,
    Unkeyed,
    advance,
    replay,
    restart,
    to,
)
from windowlib.farms import KeyFarm, WindowFarm
from windowlib.farms.virtual import VirtualPool
from windowlib.operators import Filter
from windowlib.testing import assert_same_everywhere


class Seen(Operator):
    """How many rows of a key there were before, whatever its window holds."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    output = "k string, n long, last double"
    state = Keyed(n=0, last=list)

    def before_insert(self, window, row, key):
        mine = self.state[key]
        self.emit(k=key, n=mine.n, last=mine.last[-1] if mine.last else None)
        mine.n += 1
        mine.last.append(row["x"])


def state_of(running: Any) -> Any:
    return running.operator.state


WINDOWS = [
    Tumbling(Count(3), by="k"),
    Tumbling(Delta("x", 2), by="k"),
    Tumbling(Time("4s"), by="k"),
    Sliding(Count(2), by="k"),
    Sliding(Delta("x", 2), every=Delta("x", 1), by="k"),
    Sliding(Time("3s"), every=Count(2), by="k"),
]
ROWS = [{"k": "abca"[i % 4], "x": float(i // 2), "ts": float(i)} for i in range(24)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_state_is_the_same_everywhere(window):
    report = assert_same_everywhere(Seen(window), ROWS, times="ts")
    assert "KeyFarm, restarted" in report.ran
    assert "batches and restarts, saved as arrays" in report.ran


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_state_outlives_a_flush_and_an_eviction_of_tuples(window):
    rows = list(replay(Seen(window), ROWS, times="ts"))
    count: dict[Any, int] = {}
    for row, came in zip(rows, ROWS, strict=True):
        assert (came["k"], count.get(came["k"], 0)) == (row["k"], row["n"])
        count[came["k"]] = row["n"] + 1


def forgotten(forget, rows, window=Sliding(Count(5), by="k"), **more):  # noqa: B008
    spec = type(window)(window.evict, by="k", forget=forget)
    return [(row["k"], row["n"]) for row in replay(Seen(spec), rows, **more)]


def test_a_partition_that_is_evicted_takes_its_state_along():
    rows = [{"k": k, "x": 0.0} for k in "aabca"]
    #    a a b c        more than two partitions: a, the least recently used, leaves with c
    assert [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("a", 0)] == forgotten(PartitionCount(2), rows)
    assert [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("a", 0)] == forgotten(TupleCount(3), rows)


def test_a_partition_that_is_too_old_takes_its_state_along():
    rows = [{"k": "a", "x": 0.0, "ts": 0}, {"k": "b", "x": 0.0, "ts": 5}]
    rows += [{"k": "a", "x": 0.0, "ts": 20}]
    assert [("a", 0), ("b", 0), ("a", 0)] == forgotten(PartitionAge("10s"), rows, times="ts")


@pytest.mark.parametrize("engine", ["rows", "batches"])
def test_a_handler_that_is_told_of_the_eviction_still_has_the_state(engine):
    class Last(Seen):
        model = OperatorModel(windows=[Sliding], ports_out=["out", "gone"])

        def on_partitions_evicted(self, window, keys):
            for key in keys:
                self.emit_to("gone", k=key, n=self.state[key].n)

    op = Last(Sliding(Count(5), by="k", forget=PartitionCount(1)))
    rows = [{"k": k, "x": 0.0} for k in "aabba"]
    source = rows if engine == "rows" else pa.Table.from_pylist(rows)
    assert [{"k": "a", "n": 2}, {"k": "b", "n": 2}] == replay(op, source).port("gone")


def test_a_handler_that_raises_at_the_eviction_does_not_keep_the_state():
    class Fails(Seen):
        def on_partitions_evicted(self, window, keys):
            raise ValueError("no")

    running = Fails(Sliding(Count(5), by="k", forget=PartitionCount(1))).open()
    running.insert({"k": "a", "x": 0.0})
    with pytest.raises(ValueError, match="no") as caught:
        running.insert({"k": "b", "x": 0.0})
    assert ["b"] == list(state_of(running))
    assert "in on_partitions_evicted of Fails, partitions ('a',)" in caught.value.__notes__[0]


def test_two_windows_keep_a_key_until_both_have_evicted_it():
    class Both(Operator):
        model = OperatorModel(ports_in=2, windows=[Sliding])
        state = Keyed(ports=list)

        def after_insert(self, window, row, key):
            self.state[key].ports.append(window.port)
            self.emit(k=key, ports=list(self.state[key].ports))

    spec = Sliding(Count(5), by="k", forget=PartitionCount(1))
    a0, a1, b0, b1 = (to(f"in{port}", {"k": k}) for k in "ab" for port in (0, 1))
    found = [row["ports"] for row in replay(Both(spec, spec), [a0, a1, b0, a1, b1, a0])]
    #  a is in the second window when the first evicts it; then b is in both, and a is gone
    assert [[0], [0, 1], [0], [0, 1, 1], [0, 1], [0]] == found


# -- event time -----------------------------------------------------------------------------------


class Closing(Operator):
    """What the state of a key has at each firing."""

    model = OperatorModel(windows=[Tumbling, Sliding, Session], punctuation_out="free")
    state = Keyed(fired=0)

    def before_flush(self, window, key):
        self.state[key].fired += 1
        self.emit(k=key, fired=self.state[key].fired)

    on_trigger = before_flush


def closing(spec, *rows):
    running = Closing(spec).open()
    found = []
    running.connect(0, lambda row: found.append((row["k"], row["fired"])))
    running.insert_many({"k": k, "ts": ts} for k, ts in rows)
    return found, running


def test_a_key_closes_with_its_last_window_of_event_time():
    spec = Tumbling(Event("ts", 10), by="k")
    found, running = closing(spec, ("a", 1), ("b", 2), ("b", 12), ("b", 25), ("a", 26))
    #  [0, 10): a, b    [10, 20): b      a has no open window after the first, b always has one
    assert [("a", 1), ("b", 1), ("b", 2)] == found
    assert ["b"] == list(state_of(running))
    running.finish()
    assert [("b", 3), ("a", 1)] == found[3:]
    assert [] == list(state_of(running))


def test_windows_that_close_together_count_as_one_end():
    spec = Sliding(Event("ts", 20), every=Event("ts", 10), by="k")
    found, running = closing(spec, ("a", 5), ("b", 100))
    assert [("a", 1), ("a", 2)] == found  # [-10, 10) and [0, 20) at one watermark
    assert [] == list(state_of(running))


def test_a_session_ends_with_its_state():
    spec = Session(Event("ts"), gap=10, by="k")
    found, _ = closing(spec, ("a", 0), ("b", 30), ("a", 60), ("b", 90))
    assert [("a", 1), ("b", 1), ("a", 1)] == found
    found, _ = closing(spec, ("a", 0), ("a", 40), ("b", 80))  # the next has begun when it ends
    assert [("a", 1), ("a", 2)] == found


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Event("ts", 10), by="k", watermark=3, late="drop"),
        Sliding(Event("ts", 20), every=Event("ts", 10), by="k", late="drop"),
        Session(Event("ts"), gap=4, by="k", watermark=2, late="drop"),
    ],
    ids=str,
)
def test_keys_of_event_time_close_in_the_same_place_everywhere(spec):
    rows = [{"k": "aab"[i * i % 3], "ts": i * 3 % 40 + 2 * (i // 3)} for i in range(40)]
    assert_same_everywhere(Closing(spec), rows)


# -- what is kept ---------------------------------------------------------------------------------


class Numbered(Operator):
    state = Unkeyed(n=0, seen=list)

    def on_tuple(self, row, port):
        self.state.n += 1
        self.state.seen.append(row["x"])
        self.emit(n=self.state.n, seen=len(self.state.seen))


def test_state_without_a_key_is_saved_and_not_split():
    op = Numbered()
    assert () == op.splits_by(0)
    assert_same_everywhere(op, [{"x": x} for x in range(9)])
    with pytest.raises(Exception, match="no column keeps its rows apart"):
        KeyFarm(op)


def test_each_copy_has_values_of_its_own():
    class Shared(Operator):
        state = Keyed(by="k", items=[1, [2]])

        def on_tuple(self, row, port):
            self.state[row["k"]].items[1].append(row["x"])
            self.emit(items=self.state[row["k"]].items)

    op = Shared()
    rows = [{"k": "a", "x": 3}, {"k": "b", "x": 4}]
    assert [{"items": [1, [2, 3]]}, {"items": [1, [2, 4]]}] == list(replay(op, rows))
    assert [{"items": [1, [2, 3]]}, {"items": [1, [2, 4]]}] == list(replay(op, rows))


def test_a_snapshot_does_not_change_with_what_comes_after_it():
    running = Seen(Sliding(Count(2), by="k")).open()
    running.insert({"k": "a", "x": 1.0})
    state = running.snapshot()
    saved = pickle.dumps(state)
    running.insert({"k": "a", "x": 2.0})
    assert saved == pickle.dumps(state)


def test_the_snapshot_is_plain_data_and_json_will_do():
    op = Seen(Sliding(Count(2), by="k"))
    running, later, rows = op.open(), op.open(), list[Any]()
    running.insert_many(ROWS[:5])
    state = running.snapshot()
    assert {"keyed", "timers", "unkeyed"} == set(state["own"])
    assert ["a", {"n": 3, "last": [0.0, 1.0, 2.0]}] == state["own"]["keyed"]["state"][0]
    later.restore(json.loads(json.dumps(state)))
    later.connect(0, rows.append)
    later.insert({"k": "a", "x": 9.0})
    assert [{"k": "a", "n": 3, "last": 2.0}] == rows


def test_a_key_of_several_columns_does_not_survive_json():
    op = Seen(Sliding(Count(2), by=("k", "x")))
    running = op.open()
    running.insert(ROWS[0])
    state = json.loads(json.dumps(running.snapshot()["own"]))
    with pytest.raises(StateVersionError, match="is a list, as JSON makes of a tuple"):
        op.open().restore({**running.snapshot(), "own": state})


def test_a_field_that_is_new_is_at_its_start_after_a_restore():
    class More(Seen):
        state = Keyed(n=0, last=list, more=7)

    old, new = Seen(Sliding(Count(2), by="k")).open(), More(Sliding(Count(2), by="k")).open()
    old.insert({"k": "a", "x": 1.0})
    state = old.snapshot()
    new.restore({**state, "operator": {**state["operator"], "operator": "More"}})
    assert (1, [1.0], 7) == tuple(
        getattr(state_of(new)["a"], name) for name in ("n", "last", "more")
    )


NAN = float("nan")


@pytest.mark.parametrize("key", [NAN, (NAN, 1), None, Decimal(2), (1, ("a", NAN))], ids=repr)
def test_a_key_is_found_again_after_a_restore(key):
    class Count2(Operator):
        state = Keyed(n=0)

        def on_tuple(self, row, port):
            self.state[row].n += 1
            self.emit(n=self.state[row].n)

    again = pickle.loads(pickle.dumps(key))
    items = [key, again, restart(), key, restart(), again]
    assert [1, 2, 3, 4] == [row["n"] for row in replay(Count2(), items)]


def test_equal_keys_are_one():
    op = Seen(Sliding(Count(9), by="k"))
    rows = [{"k": k, "x": 0.0} for k in (True, 1, 1.0, Decimal(1))]
    assert [0, 1, 2, 3] == [row["n"] for row in replay(op, rows)]


def test_an_operator_of_a_graph_keeps_its_state():
    window: Any = WINDOWS[0]
    graph = Filter(lambda row: row["x"] >= 0).then(Seen(window))
    items = [each for row in ROWS for each in (row, restart())]
    assert list(replay(graph, ROWS)) == list(replay(graph, items))


def test_the_class_may_be_sent_by_value():
    class Local(Seen):
        state = Keyed(n=0, last=list, more=list)

    op = cloudpickle.loads(cloudpickle.dumps(Local(Sliding(Count(2), by="k"))))
    assert [0, 1] == [row["n"] for row in replay(op, [{"k": "a", "x": 0.0}] * 2)]


class Wrong:
    pass


@pytest.mark.parametrize("value", [Wrong(), [Wrong()], {"a": Wrong()}, {(1, Wrong()): 2}, range(3)])
def test_what_is_not_plain_data_is_refused_by_name(value):
    running = Seen(Sliding(Count(2), by="k")).open()
    state_of(running)["a"].last = value
    message = r"^Seen\.state\.last: a (Wrong|range) is no plain data, and cannot be saved"
    with pytest.raises(OperatorError, match=message):
        running.snapshot()


def test_a_field_that_is_misspelt_is_named():
    running = Seen(Sliding(Count(2), by="k")).open()
    with pytest.raises(AttributeError, match=r"^Seen\.state has no field 'm'\. Fields: n, last"):
        state_of(running)["a"].m  # noqa: B018
    with pytest.raises(AttributeError):
        state_of(running)["a"].m = 1


# -- split ----------------------------------------------------------------------------------------


def test_it_says_what_it_is_split_by():
    class Two(Seen):
        model = OperatorModel(ports_in=2, windows=[Sliding])

    class Read(Operator):
        model = OperatorModel(ports_in=2)
        state = Keyed(by=["src", "dst"], n=0)

        def on_tuple(self, row, port):
            """Nothing."""

    one, other, none = (Sliding(Count(2), by=by) for by in ("k", "j", None))
    assert ("k",) == Seen(one).splits_by(0)
    assert [("k",), ("j",)] == [Two(one, other).splits_by(port) for port in (0, 1)]
    assert [(), ()] == [Two(one, none).splits_by(port) for port in (0, 1)]
    assert [("src", "dst")] * 2 == [Read().splits_by(port) for port in (0, 1)]
    assert "what before_insert does" == Seen(one).beyond_window()
    assert "the state that it declares" == Closing(one).beyond_window()
    with pytest.raises(Exception, match="its rows depend on"):
        WindowFarm(Seen(one))


def test_keys_move_to_other_workers_with_their_state():
    def pool(workers, setup):
        return VirtualPool(workers, setup, cost=lambda *_: 1)

    op = Seen(Tumbling(Count(2), by="k"))  # a partition is gone after its flush, its state is not
    farm = KeyFarm(op, workers=2, chunk=3).open(pool=pool)
    alone, expected, found = op.open(), list[Any](), list[Any]()
    farm.connect(0, found.append)
    alone.connect(0, expected.append)
    for workers, part in ((2, ROWS[:8]), (3, ROWS[8:16]), (1, ROWS[16:])):
        farm.switch_pool(pool(workers, farm.setup), workers)
        for row in part:
            farm.insert(row)
            alone.insert(row)
    farm.finish()
    assert expected == found


# -- random streams -------------------------------------------------------------------------------

ITEMS = st.lists(
    st.one_of(
        st.builds(lambda k, x: {"k": k, "x": float(x)}, st.sampled_from("abcd"), st.integers(0, 9)),
        st.builds(advance, st.sampled_from(["1s", "3s", "7s"])),
        st.builds(restart),
    ),
    max_size=25,
)
FORGET = st.sampled_from([None, PartitionCount(2), TupleCount(4), PartitionAge("5s")])
POLICY = st.sampled_from([Tumbling(Delta("x", 3), by="k"), Sliding(Count(3), by="k")])


@settings(max_examples=examples(300))
@given(ITEMS, FORGET, POLICY)
def test_state_is_there_as_long_as_the_partition(items, forget, window):
    """Where partitions leave by eviction only, the rows of a partition count the same."""

    class Compared(Seen):
        def after_insert(self, window, row, key):
            assert window.insertions(key) == self.state[key].n

    spec = type(window)(window.evict, by="k", forget=forget)
    op = Compared(spec)
    plain = [item for item in items if item != restart()]
    assert list(replay(op, plain)) == list(replay(op, items))
