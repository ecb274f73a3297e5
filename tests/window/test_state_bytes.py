"""State as bytes: what goes in comes out, and nothing else is ever read."""
# ruff: noqa: SIM300 - asserts read expected first

import contextlib
import datetime as dt
import math
import pickle
import random
import struct
import uuid
import zoneinfo
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.window.test_errors import sealed
from windowlib import Count, Sliding, Tumbling, dump_state, load_state, restart
from windowlib.errors import StateError
from windowlib.operators import Aggregate, agg
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import replay
from windowlib.window import state_bytes
from windowlib.window.state_bytes import DEPTH, HEADER, MAGIC, written_and_read

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 127, 128, -128, -129, 2**31, 2**63 - 1, -(2**63), 2**63, 10**50,
    -(10**50), 1.5, -0.0, math.inf, "é\ud800", "", "x" * 300, b"", b"\0x", (), (1,), [], [[]],
    [[], [1]], {}, {"a": 1}, {1: 2, 1.5: (3,)}, {1, 2}, frozenset({"a", (1, 2)}), Decimal("1.50"),
    Decimal("NaN"), Decimal("-Infinity"), Decimal("1E+10"), dt.date(2020, 1, 1),
    dt.time(1, 2, 3, 4), dt.time(1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1),
    dt.datetime(2020, 10, 25, 2, 30, fold=1, tzinfo=BERLIN), dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))),
    dt.timedelta(-1, 3, 7), dt.timedelta.max, dt.UTC, BERLIN, uuid.UUID(int=7), 1 + 2j,
    np.float64(1.5), np.int8(3), np.datetime64("2020-01-01"), np.bool_(True),
]  # fmt: skip


def same(a, b):
    """Equal with equal types, where NaN is itself, dicts have their order, and sets have none."""
    if type(a) is not type(b):
        return False
    if isinstance(a, set | frozenset):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, dt.datetime | dt.time):
        return (a, a.fold, repr(a.tzinfo)) == (b, b.fold, repr(b.tzinfo))
    return repr(a) == repr(b)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was(value):
    assert same(value, load_state(dump_state(value)))
    assert same([value] * 3, load_state(dump_state([value] * 3)))


def test_values_of_all_kinds_side_by_side_come_back_as_they_were():
    assert same(VALUES, load_state(dump_state(VALUES)))
    rows = [{"n": n, "value": value} for n, value in enumerate(VALUES)]
    assert same(rows, load_state(dump_state(rows)))


def test_keys_that_are_equal_keep_their_types():
    dicts = [{1: "a"}, {True: "b"}, {1.0: "c"}]
    assert same(dicts, load_state(dump_state(dicts)))


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
    | st.decimals() | st.dates() | st.times() | st.datetimes(timezones=st.none() | st.timezones())
    | st.timedeltas() | st.uuids()
)  # fmt: skip
keys = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.lists(inner, max_size=20).map(tuple)
        | st.dictionaries(keys, inner, max_size=20)
        | st.lists(st.fixed_dictionaries({"a": inner, "b": inner}), max_size=20)
    ),
    max_leaves=60,
)


@settings(max_examples=examples(300))
@given(value=plain)
def test_plain_data_comes_back_as_it_was(value):
    data = dump_state(value)
    assert same(value, load_state(data))
    assert data == dump_state(load_state(data))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(10), np.zeros((0, 3)), np.array([[1.5, 2]]).T, np.array(["a", "bc"]),
        np.array(5), np.array(["2020"], "M8[us]"), np.array([True])[::-1],
    ],
)  # fmt: skip
def test_arrays_of_numbers_come_back_and_can_be_written_to(array):
    found = load_state(dump_state([array]))[0]
    assert (array.dtype, array.shape) == (found.dtype, found.shape)
    assert array.tolist() == found.tolist()
    assert found.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        pa.array([1, None]), pa.array(["a", "b"]).slice(1), pa.array([], pa.string()), pa.nulls(3),
        pa.array([{"a": [1]}]), pa.array(["a", "a"]).dictionary_encode(),
        pa.chunked_array([[1], [2]]), pa.table({"a": [1]}), pa.record_batch({"a": [1]}),
        pa.record_batch({"a": [1]}).slice(1), pa.record_batch({"a": [1]}).select([]),
        pa.schema({"a": pa.int8()}, metadata={"k": "v"}), pa.timestamp("us", "UTC"),
    ],
)  # fmt: skip
def test_what_arrow_has_comes_back(value):
    assert load_state(dump_state({"x": value}))["x"].equals(value)


# -- bytes that are not what was written --

SAVED = Aggregate(Sliding(Count(4), every=Count(2), by="k"), m=agg.mean("x"), q=agg.median("x"))


def snapshot(arrays):
    running = SAVED.open()
    rows = [{"k": "ab"[n % 2], "x": float(n)} for n in range(20)]
    running.insert_batch(pa.RecordBatch.from_pylist(rows))
    return running.snapshot(arrays=arrays)


@pytest.mark.parametrize("state", [VALUES, snapshot(False), snapshot(True)])
def test_every_byte_counts(state):
    data = dump_state(state)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        with pytest.raises(StateError):
            load_state(changed)
        with pytest.raises(StateError):
            load_state(data[:at])
    for longer in (data + b"\0", b"\0" + data, data + data):
        with pytest.raises(StateError):
            load_state(longer)


@pytest.mark.parametrize("state", [VALUES, snapshot(True)])
def test_bytes_that_are_made_up_are_refused_or_are_plain_data(state):
    body, random_ = dump_state(state)[HEADER:], random.Random(7)
    refused = 0
    for _ in range(examples(10_000)):
        changed = bytearray(body)
        for _ in range(random_.choice([1, 1, 2, 5])):
            changed[random_.randrange(len(body))] = random_.choice(
                [0, 1, 255, random_.randrange(256)]
            )
        try:
            load_state(sealed(bytes(changed)))
        except StateError:
            refused += 1
    assert refused


def test_bytes_cannot_ask_for_more_memory_than_they_have():
    for code in range(256):
        for body in (bytes([code]) + b"\xff" * 64, bytes([code, 0]) + b"\xff" * 64):
            with contextlib.suppress(StateError):
                load_state(sealed(body))
    deep = dump_state(None)[HEADER:]
    for _ in range(DEPTH + 1):
        deep = bytes([state_bytes.SHORT_LIST, 1]) + deep
    with pytest.raises(StateError, match="levels deep"):
        load_state(sealed(deep))


@pytest.mark.parametrize("foreign", [b"", b"x", pickle.dumps([1]), b"\x80\x05N.", b'{"v": 1}'])
def test_bytes_of_others_are_refused(foreign):
    with pytest.raises(StateError, match="it was not written by dump_state"):
        load_state(foreign)


def test_a_pickle_is_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    bomb = pickle.dumps(Bomb())
    for data in (bomb, sealed(bomb), MAGIC + bomb):
        with pytest.raises(StateError):
            load_state(data)
    assert not (tmp_path / "ran").exists()


def test_another_format_is_named():
    with pytest.raises(StateError, match="it has format 9, this version of windowlib reads 1"):
        load_state(sealed(b"", version=9))


# -- data that is not plain --


class Own:
    def __repr__(self):
        return "Own()"


@pytest.mark.parametrize(
    ("state", "where"),
    [
        (Own(), "state is Own()"),
        ({"a": [1, {"b": Own()}]}, "state['a'][1]['b'] is Own()"),
        ({"operator": {"operator": "Spread"}, "state": [Own()]}, "state['state'][0] of Spread is"),
        ([1, np.array([None], object)], "state[1] is array([None], dtype=object)"),
        ([deque()], "objects of collections.deque are not plain data"),
        ([len], "objects of builtins.builtin_function_or_method are not plain data"),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_refused_with_where_it_is_and_what_to_do(state, where):
    with pytest.raises(StateError) as refused:
        dump_state(state)
    assert where in str(refused.value)
    assert "Return plain data from snapshot()" in str(refused.value)


def test_data_that_holds_itself_is_refused():
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(StateError, match="more than 100 levels deep"):
        dump_state(endless)


# -- restarts in a process --


@dataclass
class Trade:
    k: str
    x: int


class Quote(NamedTuple):
    k: str
    x: int


@pytest.mark.parametrize("kind", [Trade, Quote])
def test_rows_of_any_class_go_on_after_a_restart(kind):
    op = Aggregate(Tumbling(Count(2), by="k"), s=agg.sum("x"))
    assert [{"k": "a", "s": 3}] == list(replay(op, [kind("a", 1), restart(), kind("a", 2)]))
    (read,) = written_and_read([kind("a", 1)])
    assert kind("a", 1) == read
    with pytest.raises(StateError, match="are not plain data"):
        dump_state([kind("a", 1)])


def test_code_in_a_snapshot_is_refused_by_a_restart():
    class Holds(Operator):
        def on_tuple(self, tuple_, port):
            self.emit(tuple_)

        def snapshot(self):
            return {"rule": lambda: 1}

    with pytest.raises(StateError, match=r"state\['state'\]\['rule'\] of Holds is <function"):
        list(replay(Holds(), [1, restart()]))
