"""Dedup: what is remembered, for how long, and what becomes of duplicates."""
# ruff: noqa: SIM300 - asserts read expected first

import pickle
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.helpers.naive_operators import PUNCT, Naive, opened, run
from windowlib import (
    KEY,
    Count,
    Delta,
    Graph,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    replay,
)
from windowlib.errors import ModelError, PolicyError, SchemaError
from windowlib.operators import Dedup, Sort
from windowlib.operators.store_windows import SPARE
from windowlib.runtime.marks import advance, punct, restart
from windowlib.window.state_bytes import dump_state, load_state

NAN = float("nan")
ID = itemgetter("id")

# -- the plain one ----------------------------------------------------------------------------


def same(a, b):
    return (a is None) == (b is None) and (a == b or (a != a and b != b))


class NaiveDedup(Naive):
    """Keeps, for every key, the row that stands for it: a list `[stamp, mark row, row]`."""

    def __init__(self, spec, keep="first", renew=False):
        super().__init__(spec)
        self.keep, self.renew = keep, renew
        self.repeated: list[Any] = []

    def far(self, key, row):
        if not isinstance(self.spec.evict, Delta):
            return []
        entries = self.parts[key]
        new, least = row["ts"], self.spec.evict.threshold
        leaving = [e for e in entries if e[1]["mark"] <= new and new - e[1]["mark"] > least]
        # The smallest attribute first; of equal ones the one that was remembered first.
        return sorted(leaving, key=lambda e: e[1]["mark"])

    def leave(self, key, entry):
        self.parts[key] = [each for each in self.parts[key] if each is not entry]
        if self.keep == "last":
            self.out.append(entry[1]["row"]["i"])

    expired = leave

    def take(self, key, row):
        for entry in self.far(key, row):
            self.leave(key, entry)
        self.use(key)
        for place, entry in enumerate(self.parts[key]):
            if same(entry[1]["row"]["id"], row["id"]):
                self.duplicate(key, place, row)
                return
        if self.full(key):
            self.leave(key, self.parts[key][0])
        self.parts[key].append((self.now, {"mark": row["ts"], "row": row}))
        if self.keep == "first":
            self.out.append(row["i"])

    def duplicate(self, key, place, row):
        at, held = self.parts[key][place]
        stays = row if self.keep == "last" else held["row"]
        self.repeated.append((held["row"] if self.keep == "last" else row)["i"])
        if self.renew:
            mark = max(held["mark"], row["ts"])
            del self.parts[key][place]
            self.parts[key].append((self.now, {"mark": mark, "row": stays}))
        else:
            self.parts[key][place] = (at, {"mark": held["mark"], "row": stays})

    def gone(self, key):
        for entry in list(self.parts[key]):
            self.leave(key, entry)

    def finish(self):
        for key in self.parts:
            self.gone(key)

    def punctuate(self):
        self.out.append(PUNCT)
        self.repeated.append(PUNCT)


# -- streams ----------------------------------------------------------------------------------

ids = st.sampled_from([1, 1.0, 2, 3, "1", "x", None, NAN, Decimal("NaN"), (1, 2)])
marks = [st.just(punct()), st.sampled_from(["250ms", "1s", "3s"]).map(advance)]


@st.composite
def streams(draw, *, late=4, most=30):
    row = st.fixed_dictionaries({"k": st.sampled_from("aab"), "id": ids, "step": st.integers()})
    others: list[Any] = [*marks, st.just(restart())]
    items = draw(st.lists(st.one_of(row, row, row, *others), max_size=most))
    for i, item in enumerate(item for item in items if isinstance(item, dict)):
        item.update(i=i, ts=i - item.pop("step") % (late + 1))
    return items


MEMORIES: dict[str, list[Any]] = {
    "count": [Count(1), Count(2), Count(4)],
    "delta": [Delta("ts", 0), Delta("ts", 3), Delta("ts", 8)],
    "time": [Time("1s"), Time("2s")],
}
PARTITIONS: list[Any] = [
    (None, None),
    ("k", None),
    ("k", PartitionCount(1)),
    ("k", TupleCount(3)),
    ("k", PartitionAge("1s")),
]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("renew", [False, True], ids=["", "renew"])
@settings(max_examples=examples(60))
@given(data=st.data(), items=streams())
def test_every_memory_gives_what_the_plain_one_gives(memory, keep, renew, data, items):
    within = data.draw(st.sampled_from(MEMORIES[memory]))
    by, forget = data.draw(st.sampled_from(PARTITIONS))
    naive = NaiveDedup(Sliding(within, by=by, forget=forget), keep, renew)
    options = {"within": within, "by": by, "forget": forget, "keep": keep, "renew": renew}
    got = run(Dedup("id", duplicates="port", **options), items)
    assert {"out": naive.run(items), "duplicates": naive.repeated} == got
    assert {"out": got["out"]} == run(Dedup("id", **options), items)


# -- what is remembered -----------------------------------------------------------------------


def rows(*pairs):
    return [{"id": key, "ts": ts} for key, ts in pairs]


def passed(dedup, items):
    return [(row["id"], row["ts"]) for row in replay(dedup, items)]


def test_a_count_remembers_the_last_rows_that_passed():
    #  a passes, is forgotten when b and c have passed, and passes again
    items = rows(*zip("aabaca", range(6), strict=True))
    expected = [("a", 0), ("b", 2), ("c", 4), ("a", 5)]
    assert expected == passed(Dedup("id", within=Count(2)), items)


def test_a_duplicate_renews_the_memory_if_it_was_asked_to():
    items = rows(*zip("abacada", range(7), strict=True))
    assert [0, 1, 3, 4, 5] == [ts for _, ts in passed(Dedup("id", within=Count(2)), items)]
    renewing = Dedup("id", within=Count(2), renew=True)
    assert [0, 1, 3, 5] == [ts for _, ts in passed(renewing, items)]


def test_a_delta_remembers_keys_at_most_that_far_away():
    items = rows(("a", 0), ("a", 10), ("a", 11), ("b", 12), ("a", 21), ("a", 22))
    plain = [("a", 0), ("a", 11), ("b", 12), ("a", 22)]
    assert plain == passed(Dedup("id", within=Delta("ts", 10)), items)
    renewing = Dedup("id", within=Delta("ts", 10), renew=True)
    assert [("a", 0), ("b", 12)] == passed(renewing, items)


def test_a_late_duplicate_does_not_shorten_the_memory():
    items = rows(("a", 10), ("a", 3), ("a", 15), ("a", 26))
    renewing = Dedup("id", within=Delta("ts", 10), renew=True)
    assert [("a", 10), ("a", 26)] == passed(renewing, items)


@pytest.mark.parametrize(("renew", "out"), [(False, [0, 2.5]), (True, [0])])
def test_time_remembers_a_key_until_its_age_is_more_than_the_period(renew, out):
    running, window, got = opened(Dedup("id", within=Time("2s"), renew=renew), itemgetter("ts"))
    for at in (0, 1, 2, 2.5):
        running.advance(at)
        running.insert({"id": "a", "ts": at})
    assert out == got
    running.advance(4.5)
    assert 1 == len(window)
    running.advance(4.500001)
    assert 0 == len(window)


def test_by_and_a_count_of_one_let_changes_through():
    values = [("x", 1), ("y", 1), ("x", 1), ("x", 2), ("y", 1), ("x", 1)]
    items = [
        {"sensor": sensor, "value": value, "ts": i} for i, (sensor, value) in enumerate(values)
    ]
    dedup = Dedup("value", within=Count(1), by="sensor")
    assert [0, 1, 3, 5] == [row["ts"] for row in replay(dedup, items)]


# -- keep="last" ------------------------------------------------------------------------------


def test_the_last_row_of_a_key_comes_out_when_its_key_is_forgotten():
    items = rows(("a", 0), ("b", 1), ("a", 2), ("c", 3), ("b", 4))
    dedup = Dedup("id", within=Count(2), keep="last", duplicates="port")
    out = replay(dedup, items)
    assert [("a", 2), ("b", 4), ("c", 3)] == [(row["id"], row["ts"]) for row in out]
    assert [{"id": "a", "ts": 0}, {"id": "b", "ts": 1}] == out.port("duplicates")


def test_time_lets_out_what_is_held_back():
    running, _, out = opened(Dedup("id", within=Time("2s"), keep="last"), itemgetter("ts"))
    for at in (0, 1):
        running.advance(at)
        running.insert({"id": "a", "ts": at})
    running.advance(2)
    assert [] == out
    running.advance(3)
    assert [1] == out
    running.insert({"id": "b", "ts": 3})
    running.finish()
    running.advance(9)
    assert [1, 3] == out


# -- keys -------------------------------------------------------------------------------------


@dataclass
class Trade:
    id: Any
    price: float = 1.0


class Loose:
    def __init__(self, id):
        self.id = id


Pair = namedtuple("Pair", "id price")


@pytest.mark.parametrize(
    ("on", "rows"),
    [
        ("id", [{"id": NAN}, {"id": Decimal("NaN")}, {"id": 1}]),
        (("id", "x"), [{"id": NAN, "x": None}, {"id": NAN, "x": None}, {"id": NAN, "x": NAN}]),
        ("id", [{"id": (1, NAN)}, {"id": (1, NAN)}, {"id": (1, 2)}]),
        (None, [{"id": NAN, "x": 1}, {"x": 1, "id": NAN}, {"id": NAN, "x": 2}]),
    ],
)
@pytest.mark.parametrize("within", [Count(5), Delta(lambda row: 0, 5)], ids=str)
def test_a_key_that_is_nan_is_remembered_in_bytes(on, rows, within):
    state = Dedup(on, within=within).open().snapshot()
    out: list[Any] = []
    for row in rows:
        running = Dedup(on, within=within).open()
        running.restore(load_state(dump_state(state)))
        running.connect(0, out.append)
        running.insert(row)
        state = running.snapshot()
    assert [rows[0], rows[2]] == out


@pytest.mark.parametrize(
    ("on", "items", "places"),
    [
        ("id", [{"id": None}, {"id": 0}, {"id": None}], [0, 1]),
        ("id", [{"id": NAN}, {"id": float("nan")}, {"id": Decimal("NaN")}], [0]),
        (["id", "price"], [Pair(1, NAN), Pair(1, 2), Pair(1, -NAN)], [0, 1]),
        ("id", [{"id": (1, (2, NAN))}, {"id": (1, (2, float("nan")))}, {"id": (1, 2)}], [0, 2]),
        (0, [Pair(1, 1), Pair(1, 2)], [0]),
        (len, ["aa", "bb", "c"], [0, 2]),
        (None, [{"a": 1, "b": NAN}, {"b": float("nan"), "a": 1}, {"a": 1}], [0, 2]),
        (None, [{"a": 1}, {"b": 1}], [0, 1]),
        (None, [Pair(1, NAN), Pair(1, float("nan")), Pair(2, 1)], [0, 2]),
        (None, [Trade(1), Trade(1), Trade(1, 2)], [0, 2]),
        (None, [Loose(1), Loose(1), Loose(2)], [0, 2]),
        (None, ["a", "a", 1, 1.0, True, NAN, float("nan")], [0, 2, 5]),
        (None, [("a", 1), ("a", 1), ("a",), "a"], [0, 2, 3]),
    ],
)
@pytest.mark.parametrize("again", [False, True], ids=["", "with restarts"])
def test_what_makes_rows_equal(on, items, places, again):
    stream = [each for item in items for each in ((item, restart()) if again else (item,))]
    got = list(replay(Dedup(on, within=Count(9)), stream))
    assert [items[place] for place in places] == got
    assert all(items[place] is row for place, row in zip(places, got, strict=True))


def test_rows_held_back_come_out_as_they_are():
    row = {"id": 1}
    (got,) = replay(Dedup("id", within=Count(3), keep="last"), [{"id": 1}, row])
    assert got is row


@pytest.mark.parametrize(
    ("on", "row", "text"),
    [
        (
            "tags",
            {"id": 1, "tags": ["a"]},
            "Dedup(on='tags'): the value ['a'] of 'tags' is a list, which cannot be remembered. "
            "Name other columns, or a callable that gives a plain value.",
        ),
        (
            ("id", "tags"),
            {"id": 1, "tags": {}},
            "Dedup(on=('id', 'tags')): the value {} of 'tags' is a dict, which cannot be "
            "remembered. Name other columns, or a callable that gives a plain value.",
        ),
        (
            None,
            {"id": 1, "tags": [2]},
            "Dedup(): the value [2] of 'tags' is a list, which cannot be remembered. Name other "
            "columns, or a callable that gives a plain value.",
        ),
        (
            None,
            (1, [2]),
            "Dedup(): the value [2] of '1' is a list, which cannot be remembered. Name other "
            "columns, or a callable that gives a plain value.",
        ),
        (
            "id",
            ("no", "columns"),
            "Dedup(on='id'): the tuple ('no', 'columns') has no 'id'.",
        ),
    ],
)
def test_a_key_that_cannot_be_remembered_is_refused_and_changes_nothing(on, row, text):
    running, window, out = opened(Dedup(on, within=Count(3)))
    with pytest.raises(SchemaError) as refused:
        running.insert(row)
    assert text == str(refused.value)
    assert ([], 0) == (out, len(window))


def test_a_missing_column_is_named_before_anything_runs():
    with pytest.raises(SchemaError) as refused:
        list(replay(Dedup(("id", "pice"), within=Count(1)), [{"id": 1, "price": 1}]))
    text = "Dedup(on=('id', 'pice')): no such column. Columns: id, price. Did you mean \"price\"?"
    assert text == str(refused.value)


# -- bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("within", [Count(5), Delta("ts", 100), Time("100s")], ids=str)
@pytest.mark.parametrize("keep", ["first", "last"])
def test_duplicates_that_renew_leave_nothing_behind(within, keep):
    running, window, _ = opened(Dedup("id", within=within, keep=keep, renew=True))
    running.insert({"id": "rare", "ts": 0})
    for i in range(2_000):
        running.insert({"id": i % 3, "ts": i / 100})
        window.state.check()
    (s,) = window.state.subwindows.values()
    assert 4 == len(window)
    assert len(window._ages) <= 4
    assert len(s.data.by_mark) <= 2 * 4 + SPARE + 1


def test_a_memory_of_time_forgets_partitions_that_are_empty():
    running, window, _ = opened(Dedup("id", within=Time("1s"), by="id"))
    for i in range(50):
        running.insert({"id": i})
    running.advance(2)
    assert ([], {}, 0) == (list(window.keys()), window.state.asleep, len(window._ages))


def test_any_row_is_a_use_of_its_partition():
    # Partition a gets only duplicates and stays; b goes, because it is the least recently used.
    dedup = Dedup("id", within=Count(3), by="k", forget=PartitionCount(2))
    pairs = [("a", 1), ("b", 1), ("a", 1), ("c", 1), ("a", 1), ("b", 1)]
    items = [{"k": k, "id": key, "ts": i} for i, (k, key) in enumerate(pairs)]
    got = [row["ts"] for row in replay(dedup, items)]
    assert [0, 1, 3, 5] == got


def test_a_partition_that_is_marked_twice_comes_out_once():
    class Twice(Dedup):
        def select_partitions(self, window, keys):
            return [keys[0], keys[0]]

    forget = PartitionCount(1, select="operator")
    dedup = Twice("id", within=Count(3), by="k", forget=forget, keep="last")
    items = [{"k": k, "id": key} for k, key in (("a", 1), ("a", 2), ("b", 3))]
    assert [1, 2, 3] == list(map(ID, replay(dedup, items)))


# -- in a graph -------------------------------------------------------------------------------


def test_punctuations_pass_to_both_outputs():
    items = [{"i": 2, "id": 1}, {"i": 1, "id": 1}, punct(), {"i": 0, "id": 2}]
    got = run(Dedup("id", within=Count(5), duplicates="port"), items)
    assert {"out": [2, PUNCT, 0], "duplicates": [1, PUNCT]} == got


def test_batches_go_through_a_dedup():
    graph = Graph(
        inputs="rows",
        batches=(Sort("x", window=Tumbling(Count(3))), "rows"),
        unique=(Dedup("x", within=Count(9), duplicates="port"), "batches"),
        down=(Sort("x", ascending=False, window=Tumbling(Punct())), "unique"),
        again=(Sort("x", window=Tumbling(Punct())), "unique.duplicates"),
    )
    out = replay(graph, [{"x": x} for x in (2, 1, 2, 5, 1, 3)])
    assert [2, 1, 5, 3] == [row["x"] for row in out]
    assert [2, 1] == [row["x"] for row in out.port("again")]


# -- as a value -------------------------------------------------------------------------------


def test_a_dedup_is_a_value():
    dedup = Dedup("id", within=Count(2), keep="last")
    assert pickle.loads(pickle.dumps(dedup)) == dedup
    assert dedup != Dedup("id", within=Count(2))
    assert "Dedup('id', within=Count(size=2), keep='last')" == repr(dedup)


def test_explain_says_what_is_remembered():
    assert Dedup(("id", "x"), within=Count(2), renew=True).explain().splitlines() == [
        "operator     Dedup",
        "input        in: ignores punctuation",
        "  window     sliding, count(2), count(1)",
        "  insert     age, evict, insert, full, trigger",
        "  keeps      keys",
        "  engine     its own",
        "output       out: the punctuation of input in",
        "dedup        by id, x; the first of each key, which duplicates renew",
    ]
    last = Dedup(within=Count(2), keep="last", duplicates="port").explain().splitlines()
    assert "  keeps      keys and the tuples held back" in last
    assert "dedup        by the whole row; the last of each key" == last[-1]


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"within": "10m"},
            "Dedup(within='10m'): not a memory. Say how far back to look: Count(1000), "
            'Delta("ts", 60) or Time("10m").',
        ),
        (
            {"within": Punct()},
            "Dedup(within=Punct()): not a memory. Say how far back to look: Count(1000), "
            'Delta("ts", 60) or Time("10m").',
        ),
        (
            {"within": Count(0)},
            "Dedup(within=Count(0)): no row would be remembered. Use Count(1) or more.",
        ),
        ({"keep": "frist"}, 'Dedup(keep=\'frist\'): say "first" or "last". Did you mean "first"?'),
        ({"duplicates": True}, 'Dedup(duplicates=True): say "drop" or "port".'),
        ({"renew": "yes"}, "Dedup(renew='yes'): say True or False."),
        ({"by": KEY}, 'Dedup(by=KEY): nothing passes the keys. Use by="symbol".'),
        (
            {"on": ()},
            'Dedup(on=()): not a key. Name a column, as on="id", several, or a callable; or leave '
            "it out to compare whole rows.",
        ),
        (
            {"on": ["id", True]},
            "Dedup(on=['id', True]): not a key. Name a column, as on=\"id\", several, or a "
            "callable; or leave it out to compare whole rows.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(options, text):
    with pytest.raises(ModelError) as refused:
        Dedup(**{"within": Count(5), **options})
    assert text == str(refused.value)


def test_dropping_partitions_needs_partitions():
    with pytest.raises(PolicyError, match="partition eviction needs a partitioned window"):
        Dedup("id", within=Count(1), forget=PartitionCount(3))


class FullError(Exception):
    pass


@pytest.mark.parametrize("within", [Delta("ts", 1), Time("1s")], ids=str)
def test_a_reader_that_fails_costs_no_row_that_is_held_back(within):
    running, window, out = opened(Dedup("id", within=within, keep="last"))

    def reader(row):
        out.append(row["id"])
        if len(out) == 1:
            raise FullError

    running.connect(0, reader)
    running.insert_many([{"id": key, "ts": 0} for key in "abc"])
    timed = isinstance(within, Time)
    with pytest.raises(FullError):
        running.advance(9) if timed else running.insert({"id": "d", "ts": 9})
    window.state.check()
    running.finish()
    assert ["a", "b", "c"] == out
