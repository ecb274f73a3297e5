"""Sort: batches and progressive, over all windows, against a slow and plain one."""
# ruff: noqa: SIM300 - asserts read expected first

import math
import pickle
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cmp_to_key
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.helpers.naive_operators import PUNCT, Naive, opened, run, without
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
from windowlib.errors import ModelError, PartitionError, SchemaError, StateVersionError
from windowlib.operators import Sort, asc, desc
from windowlib.operators.sort.ordering import Order, sort_keys
from windowlib.operators.store_windows import SPARE
from windowlib.runtime.marks import advance, punct, restart

NAN = float("nan")
X = itemgetter("x")

# -- the plain one ----------------------------------------------------------------------------


def nan(value):
    return value is not None and value != value


def compare(a, b, descending, nulls):
    """The order of two values: nulls where they were wanted, NaN above all numbers."""
    if a is None or b is None:
        if a is None and b is None:
            return 0
        return -1 if (a is None) == (nulls == "first") else 1
    rises = nan(a) - nan(b) if nan(a) or nan(b) else (b < a) - (a < b)
    return -rises if descending else rises


class NaiveSort(Naive):
    def __init__(self, spec, keys, limit=None, flush_at_end=False):
        super().__init__(spec)
        self.keys, self.limit, self.flush_at_end = keys, limit, flush_at_end
        self.tick = spec.evict.micros if isinstance(spec.evict, Time) else None

    def compare(self, a, b):
        for key in self.keys:
            found = compare(a[key.attribute], b[key.attribute], key.descending, key.nulls)
            if found:
                return found
        return 0

    def sorted(self, entries):
        rows = sorted((row for _, row in entries), key=cmp_to_key(self.compare))
        return [row["i"] for row in rows]


class NaiveBatch(NaiveSort):
    def flush(self, key):
        self.out += self.sorted(self.parts[key])[: self.limit]
        self.out.append(PUNCT)
        if isinstance(self.spec.evict, Delta):
            self.parts[key] = []
        else:
            del self.parts[key]
            self.used.pop(key, None)

    def take(self, key, row):
        policy = self.spec.evict
        if isinstance(policy, Delta) and self.parts[key]:
            oldest = self.parts[key][0][1][policy.attribute]
            new = row[policy.attribute]
            if new >= oldest and new - oldest > policy.threshold:
                self.flush(key)
        self.parts[key].append((self.now, row))
        self.use(key)

    def taken(self, key):
        if key in self.parts and self.full(key):
            self.flush(key)

    def gone(self, key):
        if self.parts[key]:
            self.out += self.sorted(self.parts[key])[: self.limit]
            self.out.append(PUNCT)

    def all(self):
        for key in list(self.parts):
            self.flush(key)

    def due(self):
        return self.tick

    def act(self):
        self.tick += self.spec.evict.micros
        self.age()
        if self.parts:
            self.all()
        else:
            self.out.append(PUNCT)

    def punctuate(self):
        if not isinstance(self.spec.evict, Punct):
            return
        if not self.parts:
            self.out.append(PUNCT)
        else:
            self.age()
            self.all()

    def finish(self):
        if isinstance(self.spec.evict, Punct) and self.parts:
            self.punctuate()
        elif self.flush_at_end:
            for key in [key for key, held in self.parts.items() if held]:
                self.flush(key)


class NaiveProgressive(NaiveSort):
    def release(self, key, last):
        """All up to and including an entry, in order; of equal ones those that came before it."""
        place = [each is last for each in self.parts[key]].index(True)
        leaving = []
        for number, entry in enumerate(self.parts[key]):
            order = self.compare(entry[1], last[1])
            if order < 0 or (order == 0 and number <= place):
                leaving.append(entry)
        self.out += self.sorted(leaving)
        for entry in leaving:
            self.parts[key] = without(self.parts[key], entry)

    expired = release

    def take(self, key, row):
        for entry in self.far(key, row):
            if any(entry is each for each in self.parts[key]):
                self.release(key, entry)
        if self.full(key):
            first = self.sorted(self.parts[key])[0]
            (entry,) = [entry for entry in self.parts[key] if entry[1]["i"] == first]
            self.parts[key] = without(self.parts[key], entry)
            self.out.append(first)
        self.parts[key].append((self.now, row))
        self.use(key)

    def gone(self, key):
        self.out += self.sorted(self.parts[key])

    def finish(self):
        for held in self.parts.values():
            self.out += self.sorted(held)
        self.out.append(PUNCT)


def expected(spec, keys, items, **options):
    naive = NaiveBatch if isinstance(spec, Tumbling) else NaiveProgressive
    return naive(spec, keys, **options).run(items)


# -- streams ----------------------------------------------------------------------------------

T0 = datetime(2024, 3, 1, tzinfo=UTC)
FAMILIES = {
    "numbers": st.sampled_from([0, 1, 1.0, True, 2, 2.5, -3, 10**20, NAN, math.inf, None]),
    "strings": st.sampled_from(["", "a", "b", "ab", "é", None]),
    "decimals": st.sampled_from([Decimal("1.10"), Decimal("1.1"), Decimal(-2), 1, 2.5, None])
    | st.just(Decimal("NaN")),
    "timestamps": st.integers(0, 3).map(lambda s: T0 + timedelta(seconds=s)) | st.none(),
    "durations": st.integers(-2, 2).map(lambda s: timedelta(seconds=s)) | st.none(),
    "lists": st.lists(st.integers(0, 2), max_size=2) | st.none(),
}
keys_of_sort = st.builds(
    lambda name, down, nulls: (desc if down else asc)(name, nulls),
    st.sampled_from(["v", "w"]),
    st.booleans(),
    st.sampled_from([None, "first", "last"]),
)


@st.composite
def streams(draw, *, restarts=True, late=4, most=30):
    """Rows whose `ts` goes up and down a little, and what may stand among them."""
    values = FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))]
    marks: list[Any] = [
        st.just(punct()),
        st.sampled_from(["250ms", "1s", "1.5s", "3s"]).map(advance),
    ]
    marks += [st.just(restart())] * restarts
    row = st.fixed_dictionaries(
        {"k": st.sampled_from("aabc"), "v": values, "w": st.integers(0, 2), "step": st.integers()}
    )
    items = draw(st.lists(st.one_of(row, row, row, *marks), max_size=most))
    rows = [item for item in items if isinstance(item, dict)]
    for i, item in enumerate(rows):
        late_by = item.pop("step") % (late + 1)
        item.update(i=i, ts=i - late_by, pad=None)
    return items


PARTITIONS: dict[str, list[Any]] = {
    "unpartitioned": [(None, None)],
    "age": [("k", PartitionAge(age)) for age in ("0s", "1s", "2s")],
    "partition count": [("k", PartitionCount(n)) for n in (0, 1, 2)],
    "tuple count": [("k", TupleCount(n)) for n in (0, 2, 5)],
    "partitioned": [("k", None)],
}
POLICIES: dict[str, list[Any]] = {
    "count": [Count(1), Count(2), Count(4)],
    "delta": [Delta("ts", 0), Delta("ts", 3), Delta("w", 1), Delta("ts", -1)],
    "time": [Time("1s"), Time("2s")],
    "punct": [Punct()],
}
KINDS: dict[Any, list[str]] = {
    Tumbling: ["count", "delta", "time", "punct"],
    Sliding: ["count", "delta", "time"],
}
CONFIGURATIONS = [
    pytest.param(kind, policy, partitions, id=f"{kind.kind} {policy}, {partitions}")
    for kind, policies in KINDS.items()
    for policy in policies
    for partitions in PARTITIONS
]
PAPER = [each for each in CONFIGURATIONS if not str(each.id).endswith(", partitioned")]


@st.composite
def windows(draw, kind, policy, partitions):
    by, forget = draw(st.sampled_from(PARTITIONS[partitions]))
    return kind(draw(st.sampled_from(POLICIES[policy])), by=by, forget=forget)


def test_there_are_28_configurations():
    assert 28 == len(PAPER)


@pytest.mark.parametrize(("kind", "policy", "partitions"), CONFIGURATIONS)
@settings(max_examples=examples(40))
@given(data=st.data(), keys=st.lists(keys_of_sort, min_size=1, max_size=2), items=streams())
def test_every_configuration_gives_what_the_plain_one_gives(
    kind, policy, partitions, data, keys, items
):
    spec = data.draw(windows(kind, policy, partitions))
    tumbling = kind is Tumbling
    limit = data.draw(st.sampled_from([None, None, 1, 2])) if tumbling else None
    flush = data.draw(st.booleans()) if tumbling else False
    sort = Sort(*keys, window=spec, limit=limit, flush_at_end=flush)
    options = {"limit": limit, "flush_at_end": flush}
    assert expected(spec, keys, items, **options) == run(sort, items)["out"]


# -- progressive ------------------------------------------------------------------------------


def xs(values):
    return [{"x": x, "i": i} for i, x in enumerate(values)]


def sorted_xs(sort, values):
    return [row["x"] for row in replay(sort, xs(values))]


@pytest.mark.parametrize(
    ("size", "values", "out"),
    [
        (2, [3, 2, 1, 4], [2, 1, 3, 4]),
        (3, [3, 2, 1, 4], [1, 2, 3, 4]),
        (1, [3, 2, 1, 4], [3, 2, 1, 4]),
        (9, [3, 2, 1, 4], [1, 2, 3, 4]),
        (2, [], []),
        (2, [1, 1, 1], [1, 1, 1]),
    ],
)
def test_a_full_count_window_lets_out_the_smallest_of_those_that_waited(size, values, out):
    assert out == sorted_xs(Sort("x", window=Sliding(Count(size))), values)


@given(st.lists(st.integers(0, 8), max_size=14), st.integers(1, 5))
@example([3, 2, 1, 4], 2)
def test_the_output_is_in_order_if_and_only_if_no_tuple_comes_after_n_greater_ones(values, n):
    worst = max((sum(b > a for b in values[:i]) for i, a in enumerate(values)), default=0)
    got = sorted_xs(Sort("x", window=Sliding(Count(n))), values)
    assert (worst <= n - 1) == (got == sorted(values))


@given(
    st.data(),
    st.sampled_from(["count", "delta", "time"]),
    st.sampled_from(sorted(PARTITIONS)),
    streams(restarts=False),
)
def test_every_tuple_comes_out_once(data, policy, partitions, items):
    spec = data.draw(windows(Sliding, policy, partitions))
    *got, last = run(Sort("v", window=spec), items)["out"]
    assert PUNCT == last
    assert sorted(row["i"] for row in items if isinstance(row, dict)) == sorted(got)


@given(streams(restarts=False, late=3))
def test_a_delta_window_as_wide_as_tuples_are_late_puts_them_in_order(items):
    rows = [item for item in items if isinstance(item, dict)]
    got = [row["ts"] for row in replay(Sort("ts", window=Sliding(Delta("ts", 3))), rows)]
    assert sorted(row["ts"] for row in rows) == got


def test_an_expired_tuple_takes_along_all_before_it_and_none_twice():
    #  sorted by x; ts expires after more than 2
    rows = [
        {"i": i, "ts": ts, "x": x} for i, (ts, x) in enumerate([(0, 5), (1, 9), (2, 1), (3, 7)])
    ]
    running, _, out = opened(Sort("x", window=Sliding(Delta("ts", 2))), X)
    for row in rows:
        running.insert(row)
    assert [1, 5] == out  # 5 was too old, 1 came before it in the order
    running.insert({"i": 4, "ts": 4, "x": 0})
    assert [1, 5, 0 + 7, 9] == out  # 9 was too old and took 7 along; 0 came after that
    running.insert({"i": 5, "ts": 6, "x": 3})  # 7 would be too old now, if it were still here
    assert [1, 5, 7, 9] == out
    running.finish()
    assert [1, 5, 7, 9, 0, 3] == out


def test_time_moves_a_progressive_sort_by_itself():
    running, _, out = opened(Sort("x", window=Sliding(Time("2s"))), X)
    for at, x in ((0, 5), (1, 3), (1, 8)):
        running.advance(at)
        running.insert({"x": x})
    running.advance(2)
    assert [] == out
    running.advance(2.000001)
    assert [3, 5] == out
    running.advance(60)
    assert [3, 5, 8] == out
    assert running.due() is None


def test_a_tuple_count_counts_the_tuples_that_wait():
    # What came out early is not there any more, though a plain time window would still keep it.
    spec = Sliding(Delta("ts", 2), by="k", forget=TupleCount(3))
    rows = [(0, 9, "a"), (1, 1, "a"), (2, 2, "a"), (3, 3, "a"), (3, 0, "b"), (3, 1, "b")]
    items = [{"i": i, "ts": ts, "x": x, "k": k} for i, (ts, x, k) in enumerate(rows)]
    running, window, out = opened(Sort("x", window=spec), itemgetter("k", "x"))
    running.insert_many(items)
    assert [("a", 1), ("a", 2), ("a", 9)] == out
    assert 3 == len(window)
    running.insert({"i": 6, "ts": 3, "x": 2, "k": "b"})
    assert ("a", 3) == out[-1]
    assert ["b"] == list(window.keys())


def test_partitions_that_are_marked_twice_come_out_once():
    class Twice(Sort):
        def select_partitions(self, window, keys):
            return [keys[0], keys[0]]

    spec = Sliding(Count(5), by="k", forget=PartitionCount(1, select="operator"))
    rows = [{"k": k, "x": x} for k, x in (("a", 2), ("a", 1), ("b", 5))]
    assert [1, 2, 5] == [row["x"] for row in replay(Twice("x", window=spec), rows)]


def test_emptied_partitions_of_a_timed_sort_are_forgotten():
    running, window, _ = opened(Sort("x", window=Sliding(Time("1s"), by="x")))
    for x in range(100):
        running.insert({"x": x})
    running.advance(2)
    assert ([], {}, 100) == (list(window.keys()), window.state.asleep, window.seen)


def test_delta_marks_of_tuples_that_are_out_do_not_pile_up():
    # Every second tuple is far back and, when it expires, takes the one before it along. The first
    # of all stays, and has a smaller mark than those that are out.
    running, window, _ = opened(Sort("x", window=Sliding(Delta("ts", 10))))
    running.insert({"ts": 5, "x": 10_000})
    for i in range(2_000):
        running.insert({"ts": 0 if i % 2 else 11, "x": i})
        window.state.check()
    (s,) = window.state.subwindows.values()
    assert len(s.data.by_mark) <= 2 * len(s.data) + SPARE + 1


def test_a_timed_sort_goes_on_in_the_order_of_time_after_a_restart():
    items: list[Any] = [
        {"i": 0, "k": "a"},
        advance(1),
        {"i": 1, "k": "b"},
        advance(5),
        {"i": 2, "k": "a"},
    ]
    items += [restart(), advance(7.5), {"i": 3, "k": "c"}, advance(9)]
    sort = Sort("i", window=Sliding(Time("6s"), by="k"))
    assert [0, 1, 2, 3, PUNCT] == run(sort, items)["out"]


def test_a_partition_that_a_refused_tuple_emptied_gives_no_batch():
    # A delta window is flushed before the tuple that breaks out of it goes in.
    window = Tumbling(Delta("ts", 1), by="k", forget=PartitionCount(1))
    rows = [{"i": 0, "ts": 0, "k": "a"}, {"i": "x", "ts": 9, "k": "a"}, {"i": 1, "ts": 0, "k": "b"}]
    for flush_at_end, forget in ((False, True), (True, False)):
        spec = window if forget else Tumbling(Delta("ts", 1), by="k")
        sort = Sort("i", window=spec, flush_at_end=flush_at_end)
        running: Any = sort.open()
        out: list[Any] = []
        running.connect(
            0, lambda row, out=out: out.append(row["i"]), lambda out=out: out.append(PUNCT)
        )
        running.insert(rows[0])
        with pytest.raises(SchemaError):
            running.insert(rows[1])
        assert [0, PUNCT] == out
        running.insert(rows[2])
        running.finish()
        assert ([0, PUNCT, 1, PUNCT] if flush_at_end else [0, PUNCT]) == out


def test_the_same_object_may_come_twice():
    row = {"x": 1, "ts": 0}
    rows = [row, {"x": 0, "ts": 0}, row, {"x": 2, "ts": 9}]
    got = list(replay(Sort("x", window=Sliding(Delta("ts", 5))), rows))
    assert [0, 1, 1, 2] == [each["x"] for each in got]
    assert got[1] is row
    assert got[2] is row


# -- order ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "out"),
    [
        (asc("x"), [None, -1, 2, NAN]),
        (asc("x", nulls="last"), [-1, 2, NAN, None]),
        (desc("x"), [NAN, 2, -1, None]),
        (desc("x", nulls="first"), [None, NAN, 2, -1]),
    ],
)
@pytest.mark.parametrize("window", [Tumbling(Count(4)), Sliding(Count(4))], ids=str)
def test_nulls_and_nan_have_their_place(key, out, window):
    got = sorted_xs(Sort(key, window=window), [2, None, NAN, -1])
    assert list(map(str, out)) == list(map(str, got))


def test_lists_say_the_same_as_asc_and_desc():
    short = Sort("a", "b", "c", window=Tumbling(Count(2)), ascending=[True, False, False])
    assert "Order(asc('a'), desc('b'), desc('c'))" == repr(short.order)
    short = Sort("a", "b", window=Tumbling(Count(2)), ascending=False, nulls=["first", "last"])
    assert "Order(desc('a', nulls='first'), desc('b'))" == repr(short.order)


@dataclass(frozen=True)
class Trade:
    x: int


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("x", [Trade(2), Trade(1)]),
        ("x", [Pair(2, 0), Pair(1, 0)]),
        (0, [(2, "b"), (1, "a")]),
        (lambda row: row[0], [(2, "b"), (1, "a")]),
        (len, ["bb", "a"]),
        ("x", [{"x": 2}, Trade(1)]),
    ],
)
@pytest.mark.parametrize("window", [Tumbling(Count(2)), Sliding(Count(2))], ids=str)
def test_rows_have_any_form_and_come_out_as_they_are(key, rows, window):
    got = list(replay(Sort(key, window=window), rows))
    assert [rows[1], rows[0]] == got
    assert got[0] is rows[1]


@given(st.lists(st.sampled_from([3, -1, 2.5, Decimal("2.5"), True, 0, -0.0, Decimal(7)])))
def test_descending_is_exact_for_numbers_of_any_kind(values):
    order = Order(sort_keys("Sort", [desc("x")]), "Sort")
    got = [row["i"] for row in order.sorted(xs(values))]
    assert sorted(range(len(values)), key=lambda i: values[i], reverse=True) == got


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.integers(1, 14))
def test_a_limit_gives_the_head_of_the_batch(pairs, limit):
    rows = [{"a": a, "b": b, "i": i} for i, (a, b) in enumerate(pairs)]
    order = Order(sort_keys("Sort", ["a", desc("b")]), "Sort")
    whole = sorted(rows, key=lambda row: (row["a"], -row["b"]))
    assert whole == order.sorted(rows)
    assert whole[:limit] == order.sorted(rows, limit)


# -- batches ----------------------------------------------------------------------------------


def test_a_batch_is_followed_by_a_punctuation_also_an_empty_one():
    sort = Sort("i", window=Tumbling(Punct()))
    items = [{"i": 2}, {"i": 1}, punct(), punct(), {"i": 0}]
    assert [1, 2, PUNCT, PUNCT, 0, PUNCT] == run(sort, items)["out"]
    sort = Sort("i", window=Tumbling(Time("1s")))
    items = [{"i": 2}, {"i": 1}, advance("1s"), advance("1s"), {"i": 0}]
    assert [1, 2, PUNCT, PUNCT] == run(sort, items)["out"]


def test_count_or_time_closes_a_batch():
    sort = Sort("i", window=Tumbling(Count(2) | Time("1s")))
    items = [{"i": 2}, {"i": 1}, {"i": 4}, advance("1s"), advance("1s"), {"i": 3}]
    assert [1, 2, PUNCT, 4, PUNCT] == run(sort, items)["out"]


def test_what_is_left_comes_out_at_the_end_if_it_was_asked_for():
    items = [{"i": i, "k": "ab"[i % 2]} for i in (5, 3, 4, 1, 2)]
    window = Tumbling(Count(3), by="k")
    assert [1, 3, 5, PUNCT] == run(Sort("i", window=window), items)["out"]
    flushed = Sort("i", window=window, flush_at_end=True)
    assert [1, 3, 5, PUNCT, 2, 4, PUNCT] == run(flushed, items)["out"]


@pytest.mark.parametrize(
    "sort",
    [
        Sort("x", window=Tumbling(Count(2) | Time("1s")), flush_at_end=True),
        Sort("x", window=Sliding(Time("1s"))),
    ],
    ids=repr,
)
def test_nothing_comes_out_after_the_end(sort):
    running, _, out = opened(sort)
    running.insert({"x": 1})
    running.finish()
    assert [{"x": 1}] == out
    running.advance(10)
    assert [{"x": 1}] == out


def test_sorted_batches_feed_a_window_of_punctuations():
    graph = Graph(
        inputs="rows",
        low=(Sort("x", window=Tumbling(Count(2)), limit=1), "rows"),
        again=(Sort(desc("x"), window=Tumbling(Punct())), "low"),
    )
    assert [1, 0] == [row["x"] for row in replay(graph, xs([2, 1, 0, 5]))]


# -- the partition key ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "by"),
    [
        (Tumbling(Count(2)), "k"),
        (Tumbling(Count(2), by="k"), "k"),
        (Tumbling(Count(2), by=KEY), "k"),
        ("tumbling, count(2), partitioned", "k"),
        ("tumbling, count(2), partitioned", ["k"]),
        (Tumbling(Count(2), by="k"), None),
    ],
)
def test_by_is_the_partition_key(window, by):
    rows = [{"k": k, "x": x} for k, x in (("a", 2), ("b", 9), ("a", 1), ("b", 8))]
    got = [row["x"] for row in replay(Sort("x", window=window, by=by), rows)]
    assert [1, 2, 8, 9] == got


def test_all_nan_keys_are_one_partition():
    rows = [{"k": float("nan"), "x": x} for x in (2, 1)]
    assert [1, 2] == [r["x"] for r in replay(Sort("x", by="k", window=Sliding(Count(2))), rows)]


# -- as a value -------------------------------------------------------------------------------


def test_a_sort_is_a_value():
    sort = Sort(desc("price"), "ts", window=Sliding(Count(2)), by="symbol")
    assert pickle.loads(pickle.dumps(sort)) == sort
    assert sort != Sort(asc("price"), "ts", window=Sliding(Count(2)), by="symbol")
    shown = (
        "Sort(desc('price'), 'ts', window=Sliding(Count(size=2), every=Count(size=1)), by='symbol')"
    )
    assert shown == repr(sort)


def test_explain_says_the_order_and_how_it_is_made():
    sort = Sort(desc("price"), "ts", window=Sliding(Count(2)))
    assert sort.explain().splitlines() == [
        "operator     Sort",
        "input        in: ignores punctuation",
        "  window     sliding, count(2), count(1)",
        "  insert     age, evict, insert, full, trigger",
        "  keeps      tuples in order",
        "  engine     its own",
        "output       out: punctuation of its own",
        "order        price descending, nulls last; ts ascending, nulls first",
        "sort         progressive: a heap, O(log n) per tuple",
    ]
    last = [Sort("x", window=Tumbling(Punct()), limit=limit) for limit in (None, 3)]
    assert ["sort         batch: sorted when full, stable"] == last[0].explain().splitlines()[-1:]
    assert "sort         batch: the first 3 when full, stable" in last[1].explain()


# -- refusals ---------------------------------------------------------------------------------

BATCH = Tumbling(Count(3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: Sort(window=BATCH),
            'Sort(): nothing to sort by. Name at least one key, as Sort("ts").',
        ),
        (
            lambda: Sort(["a", "b"], window=BATCH),  # type: ignore[arg-type]
            """asc(['a', 'b']): not a key. Name a column, as asc("ts"), or a callable.""",
        ),
        (lambda: desc(True), 'desc(True): not a key. Name a column, as desc("ts"), or a callable.'),
        (
            lambda: asc("x", nulls="frist"),  # type: ignore[arg-type]
            """asc('x', nulls='frist'): say "first" or "last". Did you mean "first"?""",
        ),
        (
            lambda: Sort("a", "b", window=BATCH, ascending=[True]),
            "Sort(ascending=[True]): 1 for 2 keys. Give one per key, or one for all.",
        ),
        (
            lambda: Sort("a", window=BATCH, nulls=["first", "last"]),
            "Sort(nulls=['first', 'last']): 2 for 1 key. Give one per key, or one for all.",
        ),
        (
            lambda: Sort("a", window=BATCH, ascending="down"),  # type: ignore[arg-type]
            "Sort(ascending='down'): say True or False, or one of them per key.",
        ),
        (
            lambda: Sort(desc("a"), window=BATCH, ascending=True),
            "Sort(desc('a'), ascending=...): this key says itself how it is ordered. Drop "
            "`ascending=`, or name the column alone.",
        ),
        (
            lambda: Sort(desc("a"), window=BATCH, nulls="last"),
            "Sort(desc('a'), nulls=...): this key says itself how it is ordered. Drop `nulls=`, or "
            "name the column alone.",
        ),
        (
            lambda: Sort("a", window=None),  # type: ignore[arg-type]
            "Sort(window=None): not a window. Pass a specification, as "
            "window=Sliding(Count(10)), or SPL text.",
        ),
        (
            lambda: Sort("a", window=Tumbling(Count(3), by="k"), by="g"),
            "Sort(by='g'): the window says by='k'. Drop one of them.",
        ),
        (
            lambda: Sort("a", window="sliding, count(3), count(1), partitioned"),
            "Sort(window=Sliding(Count(size=3), every=Count(size=1), by=KEY)): an operator reads "
            'its keys from the rows. Name the columns, such as by="symbol".',
        ),
        (
            lambda: Sort("a", window=Sliding(Count(0))),
            "Sort does not support Sliding(Count(0)): a window of size 0 keeps nothing to sort. "
            "Use Count(1) or more.",
        ),
        (
            lambda: Sort("a", window=Tumbling(Count(0))),
            "Sort does not support Tumbling(Count(0)): a window of size 0 keeps nothing to sort. "
            "Use Count(1) or more.",
        ),
        (
            lambda: Sort("a", window=Sliding(Count(5), partial="skip")),
            "Sort does not support Sliding(..., partial='skip'): a progressive sort lets tuples "
            "out one by one, full or not. Drop `partial=`.",
        ),
        (
            lambda: Sort("a", window=Sliding(Count(5), every=Time("1s"))),
            'Sort does not support Sliding(..., every=Time("1s")); progressive sort fires on every '
            "tuple. Supported: any Tumbling window, or Sliding(...) without `every=`.",
        ),
        (
            lambda: Sort("a", window=Sliding(Count(5), every=Count(2))),
            "Sort does not support Sliding(..., every=Count(2)); progressive sort fires on every "
            "tuple. Supported: any Tumbling window, or Sliding(...) without `every=`.",
        ),
        (
            lambda: Sort("a", window=Sliding(Time("5s"), every=Delta("ts", "1s"))),
            "Sort does not support Sliding(..., every=Delta('ts', \"1s\")); progressive sort fires "
            "on every tuple. Supported: any Tumbling window, or Sliding(...) without `every=`.",
        ),
        (
            lambda: Sort("a", window=BATCH, limit=0),
            "Sort(limit=0): nothing would come out. Use 1 or more.",
        ),
        (
            lambda: Sort("a", window=BATCH, limit=2.5),  # type: ignore[arg-type]
            "Sort(limit=2.5): not a number of tuples. Use limit=10.",
        ),
        (
            lambda: Sort("a", window=Sliding(Count(3)), limit=2),
            "Sort(limit=2, window=Sliding(Count(size=3), every=Count(size=1))): a progressive sort "
            "lets every tuple out, so there is no batch to limit. Drop `limit=`, or use a Tumbling "
            "window.",
        ),
        (
            lambda: Sort("a", window=BATCH, flush_at_end=1),  # type: ignore[arg-type]
            "Sort(flush_at_end=1): say True or False.",
        ),
        (
            lambda: Sort("a", window=Sliding(Count(3)), flush_at_end=True),
            "Sort(flush_at_end=True, window=Sliding(Count(size=3), every=Count(size=1))): a "
            "progressive sort always lets out the rest at the end. Drop `flush_at_end=`.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(make, text):
    with pytest.raises(ModelError) as refused:
        make()
    assert text == str(refused.value)


def test_a_missing_column_is_named_before_anything_runs():
    with pytest.raises(SchemaError) as refused:
        list(replay(Sort("pice", window=BATCH), [{"price": 1}]))
    text = """Sort('pice'): no such column. Columns: price. Did you mean "price"?"""
    assert text == str(refused.value)


CLASH = (
    "Sort('x'): the values 'a' and 1 do not compare. Use one type for the whole stream, or sort by "
    "a callable."
)


@pytest.mark.parametrize("window", [Tumbling(Count(3)), Sliding(Count(3))], ids=str)
@pytest.mark.parametrize("again", [False, True], ids=["", "after a restart"])
def test_a_value_that_does_not_compare_is_refused_and_costs_no_other(window, again):
    sort = Sort("x", window=window)
    running, _, out = opened(sort, X)
    running.insert_many(xs([1, None]))
    if again:
        state = pickle.loads(pickle.dumps(running.snapshot()))
        running, _, out = opened(sort, X)
        running.restore(state)
    with pytest.raises(SchemaError) as refused:
        running.insert({"x": "a"})
    assert CLASH == str(refused.value)
    running.insert({"x": 0})
    running.finish()
    assert [None, 0, 1] == out


def test_a_refused_tuple_moves_nothing():
    spec = Sliding(Delta("ts", 1), by="k", forget=PartitionCount(1))
    running, window, out = opened(Sort("x", window=spec))
    running.insert({"x": 1, "ts": 0, "k": "a"})
    bad = (
        {"x": "a", "ts": 9, "k": "a"},
        {"x": "a", "ts": 9, "k": "b"},
        {"x": 2, "ts": NAN, "k": "b"},
    )
    for row in bad:
        with pytest.raises(SchemaError):
            running.insert(row)
    with pytest.raises(PartitionError, match="a list cannot be a partition key"):
        running.insert({"x": 3, "ts": 0, "k": []})
    assert [] == out
    assert ["a"] == list(window.keys())
    window.state.check()


def test_naive_and_aware_timestamps_do_not_compare():
    running = Sort("x", window=Sliding(Count(3))).open()
    running.insert({"x": T0})
    with pytest.raises(SchemaError, match="do not compare"):
        running.insert({"x": T0.replace(tzinfo=None)})


ODD = [(0, 0), (1, "a"), (1, 2)]  # each compares with the first, the last two not with each other
NESTED = (
    "Sort('x'): the values (1, 2) and (1, 'a') do not compare. Use one type for the whole stream, "
    "or sort by a callable."
)


def test_values_that_clash_deep_inside_are_refused_whole_by_a_progressive_sort():
    running, _, out = opened(Sort("x", window=Sliding(Count(2))), X)
    running.insert_many(xs(ODD[1:2]))
    with pytest.raises(SchemaError) as refused:
        running.insert({"x": (1, 2)})
    assert NESTED == str(refused.value)
    running.finish()
    assert [(1, "a")] == out


class Half:
    """Compares with whole numbers, and with nothing else."""

    def __lt__(self, other):
        return 2.5 < other if type(other) is int else NotImplemented

    def __gt__(self, other):
        return 2.5 > other if type(other) is int else NotImplemented


@pytest.mark.parametrize("again", [False, True], ids=["", "after a restart"])
def test_values_that_compare_with_numbers_but_not_with_one_another_are_refused_whole(again):
    sort = Sort("x", window=Sliding(Count(4)))
    running, window, out = opened(sort, X)
    running.insert_many(xs([3, 1, 2, Decimal("2.5")]))  # a heap of numbers, until the last
    if again:
        state = running.snapshot()
        running, window, out = opened(sort, X)
        running.restore(state)
    with pytest.raises(SchemaError, match="do not compare"):
        running.insert({"x": Half()})
    window.state.check()
    assert [] == out
    running.insert({"x": 0})
    running.finish()
    assert [1, 0, 2, Decimal("2.5"), 3] == out


@pytest.mark.parametrize("key", ["x", desc("x")], ids=str)
def test_rows_of_other_forms_find_their_place_among_dicts(key):
    row = namedtuple("row", "x k")
    sort = Sort(key, window=Sliding(Count(2), by="k"))
    items = [row(3, "a"), {"x": 1, "k": "a"}, row(2, "a"), {"x": 4, "k": "a"}]
    found = [r["x"] if isinstance(r, dict) else r.x for r in replay(sort, items)]
    assert ([1, 2, 3, 4] if key == "x" else [3, 2, 4, 1]) == found


@pytest.mark.parametrize("limit", [None, 2])
def test_a_batch_whose_values_clash_deep_inside_says_so(limit):
    running = Sort("x", window=Tumbling(Count(3)), limit=limit).open()
    with pytest.raises(SchemaError) as refused:
        running.insert_many(xs(ODD))
    assert f"{NESTED} None of the 3 tuples of this batch comes out." == str(refused.value)


def test_a_failing_key_function_keeps_its_error_and_says_where():
    running = Sort(lambda row: 1 / row["x"], window=Sliding(Count(2))).open()
    with pytest.raises(ZeroDivisionError) as failed:
        running.insert({"x": 0})
    assert ["in OrderedWindow 'sliding, count(2), count(1)'"] == failed.value.__notes__


class FullError(Exception):
    pass


def test_a_reader_that_fails_costs_no_tuple_that_still_waits():
    running, window, out = opened(Sort("x", window=Sliding(Delta("ts", 1))))

    def reader(row):
        out.append(row["x"])
        if len(out) == 1:
            raise FullError

    running.connect(0, reader)
    running.insert_many([{"ts": 0, "x": x} for x in (3, 1, 2)])
    with pytest.raises(FullError):
        running.insert({"ts": 5, "x": 0})
    window.state.check()
    running.insert({"ts": 5, "x": 0})
    running.finish()
    assert [1, 2, 3, 0] == out


def test_a_partition_that_a_failing_reader_emptied_is_gone():
    running, window, _ = opened(Sort("x", window=Sliding(Delta("x", 1), by="k")))

    def reader(row):
        raise FullError

    running.connect(0, reader)
    running.insert({"k": "a", "x": 0})
    with pytest.raises(FullError):
        running.insert({"k": "a", "x": 5})
    assert [] == list(window.keys())
    window.state.check()


def test_a_reader_that_fails_on_the_clock_costs_no_tuple():
    running, _, out = opened(Sort("x", window=Sliding(Time("1s"))))

    def reader(row):
        out.append(row["x"])
        raise FullError

    running.connect(0, reader)
    running.insert_many(xs([2, 1, 3]))
    with pytest.raises(FullError) as failed:
        running.advance(5)
    assert [1, 2, 3] == out
    assert "and 2 more failures after it" in failed.value.__notes__


@given(streams(restarts=False), st.integers(0, 30))
def test_a_snapshot_changes_nothing(items, at):
    assume(items)
    sort = Sort("v", window=Sliding(Delta("ts", 2), by="k", forget=TupleCount(4)))
    at %= len(items)
    assert run(sort, items) == run(sort, [*items[:at], restart(), restart(), *items[at:]])


def test_a_running_sort_takes_back_a_state_with_other_types():
    sort = Sort("x", window=Sliding(Count(3)))
    words, _, _ = opened(sort)
    words.insert_many(xs(["b", "a"]))
    running, _, out = opened(sort, X)
    running.insert({"x": 1})
    damaged = words.snapshot()
    damaged["windows"][0]["parts"][0]["data"].append("row")
    with pytest.raises(StateVersionError, match="damaged"):
        running.restore(damaged)
    running.insert({"x": 0})  # nothing has changed
    running.restore(words.snapshot())
    running.insert({"x": "c"})
    running.finish()
    assert ["a", "b", "c"] == out


def refusing(out):
    """A reader that fails at rows of partition a."""

    def read(row):
        if row["k"] == "a":
            raise ValueError("not a")
        out.append(row["k"])

    return read


def test_at_the_end_one_failing_partition_costs_no_other():
    running = Sort("x", window=Tumbling(Count(9), by="k"), flush_at_end=True).open()
    out: list[str] = []
    running.connect(0, refusing(out))
    for k in "abc":
        running.insert({"k": k, "x": 1})
    with pytest.raises(ValueError, match="not a"):
        running.finish()
    assert ["b", "c"] == out


def test_one_failing_partition_that_is_evicted_costs_no_other():
    window = Tumbling(Count(9), by="k", forget=PartitionAge("10s"))
    running = Sort("x", window=window).open()
    out: list[str] = []
    running.connect(0, refusing(out))
    for k in "ab":
        running.insert({"k": k, "x": 1})
    running.advance(11)
    with pytest.raises(ValueError, match="not a"):
        running.insert({"k": "c", "x": 1})
    assert ["b"] == out
