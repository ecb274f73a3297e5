"""SPL text, both ways, and fingerprints."""
# ruff: noqa: SIM300 - asserts read expected first

import datetime
import os
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windowlib import (
    KEY,
    Count,
    Delta,
    Either,
    PartitionAge,
    PartitionCount,
    PolicyError,
    Punct,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    parse,
)

ROOT = Path(__file__).parents[2]

# -- all legal specifications --

names = st.from_regex(r"[^\W\d]\w*", fullmatch=True).filter(str.isidentifier)
counts = st.builds(Count, st.integers(0, 10**12))
spans = st.integers(1, 10**14).map(lambda us: timedelta(microseconds=us))
times = st.builds(Time, spans)
batches = st.builds(Either, counts.filter(lambda count: count.size > 0), times)
numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
deltas = st.builds(Delta, names | st.integers(-9, 99), numbers | spans | st.just(timedelta(0)))
selections = st.sampled_from(["lru", "lfu", "oldest", "operator"])
forgets = (
    st.none()
    | st.builds(PartitionCount, st.integers(0, 10**9), selections)
    | st.builds(TupleCount, st.integers(0, 10**9), selections)
    | st.builds(PartitionAge, spans | st.just(timedelta(0)))
)


@st.composite
def specs(draw):
    forget = draw(forgets)
    by = KEY if forget is not None or draw(st.booleans()) else None
    if draw(st.booleans()):
        policies = counts | deltas | times | batches | st.just(Punct())
        return Tumbling(draw(policies), by=by, forget=forget)
    evict, every = draw(counts | deltas | times), draw(counts | deltas | times)
    return Sliding(evict, every=every, by=by, forget=forget)


@given(specs())
@example(Tumbling(Delta("ts", 1e300)))
@example(Tumbling(Delta("ts", -0.0)))
@example(Sliding(Time(timedelta(microseconds=1)), every=Time(timedelta(days=365))))
@example(Tumbling(Delta("ms", "10s")))
def test_what_is_printed_is_read_back(spec):
    assert spec == parse(str(spec))
    assert spec.fingerprint == parse(str(spec)).fingerprint
    assert str(spec) == str(parse(str(spec)))


@given(specs())
def test_repr_evaluates_back(spec):
    assert spec == eval(repr(spec), {**globals()})


@given(specs(), st.randoms(use_true_random=False))
def test_words_come_in_any_order_and_case(spec, random):
    text = str(spec)
    policies = [str(policy) for policy in spec.policies]
    words = [spec.kind] + ["partitioned"] * spec.partitioned
    words += [str(spec.forget)] if spec.forget is not None else []
    random.shuffle(words)
    # The eviction policy comes before the trigger, wherever the other words are.
    for policy, at in zip(
        policies, sorted(random.choices(range(len(words) + 1), k=2)), strict=False
    ):
        words.insert(at + policies.index(policy), policy)
    shouted = [
        word[: word.find("(")].upper() + word[word.find("(") :] if "(" in word else word.upper()
        for word in words
    ]
    assert spec == parse(", ".join(words)), text
    assert spec == parse(" ,\t".join(shouted)), text


# -- the text that everyone knows --

TEXT = "sliding, count(100), count(10), partitioned, partitionAge(3600)"
SPEC = Sliding(Count(100), every=Count(10), by=KEY, forget=PartitionAge("1h"))


def test_the_text_of_the_paper_is_read_and_written():
    assert SPEC == parse(TEXT)
    assert TEXT == str(SPEC)
    assert TEXT == str(parse(TEXT))


def test_the_same_words_in_every_order_are_the_same_window():
    words = ["sliding", "count(100), count(10)", "partitioned", "partitionAge(3600)"]
    assert {SPEC} == {parse(", ".join(order)) for order in permutations(words)}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("tumbling, count(3)", Tumbling(Count(3))),
        ("TUMBLING,COUNT(3)", Tumbling(Count(3))),
        ("tumbling, count(3) | time(5)", Tumbling(Count(3) | Time("5s"))),
        ("time( 5 )|count(3) ,tumbling", Tumbling(Count(3) | Time("5s"))),
        ("  Tumbling\n,\tcount ( 3 )  ", Tumbling(Count(3))),
        ("tumbling, count(3),", Tumbling(Count(3))),
        ("count(0), tumbling", Tumbling(Count(0))),
        ("tumbling, punct()", Tumbling(Punct())),
        ("tumbling, punct", Tumbling(Punct())),
        ("tumbling, time(10)", Tumbling(Time("10s"))),
        ("tumbling, time(0.1)", Tumbling(Time("100ms"))),
        ("tumbling, time(500ms)", Tumbling(Time("500ms"))),
        ("tumbling, time(1h30m)", Tumbling(Time("90m"))),
        ("tumbling, delta(ts, 10)", Tumbling(Delta("ts", 10))),
        ("tumbling, delta(ts, 10.5)", Tumbling(Delta("ts", 10.5))),
        ("tumbling, delta(ts, -5)", Tumbling(Delta("ts", -5))),
        ("tumbling, delta(ts, 1e3)", Tumbling(Delta("ts", 1000.0))),
        ("tumbling, delta(ts, 10s)", Tumbling(Delta("ts", "10s"))),
        ("tumbling, delta(ts, -1h30m)", Tumbling(Delta("ts", timedelta(minutes=-90)))),
        ("tumbling, delta(ts, inf)", Tumbling(Delta("ts", float("inf")))),
        ("tumbling, delta(2, 10)", Tumbling(Delta(2, 10))),
        ("tumbling, delta(-1, 10)", Tumbling(Delta(-1, 10))),
        ("sliding, count(3)", Sliding(Count(3))),
        ("sliding, count(3), count(1)", Sliding(Count(3), every=Count(1))),
        ("sliding, count(3), time(1)", Sliding(Count(3), every=Time("1s"))),
        ("count(3), sliding, time(1)", Sliding(Count(3), every=Time("1s"))),
        ("time(1), count(3), sliding", Sliding(Time("1s"), every=Count(3))),
        ("partitioned, tumbling, count(3)", Tumbling(Count(3), by=KEY)),
        (
            "tumbling, count(3), partitioned, partitionCount(5)",
            Tumbling(Count(3), by=KEY, forget=PartitionCount(5)),
        ),
        (
            "tumbling, count(3), partitioned, partitioncount(5, lfu)",
            Tumbling(Count(3), by=KEY, forget=PartitionCount(5, "lfu")),
        ),
        (
            "TUPLECOUNT(5, operator), tumbling, count(3), partitioned",
            Tumbling(Count(3), by=KEY, forget=TupleCount(5, "operator")),
        ),
        (
            "tumbling, count(3), partitioned, partitionAge(90m)",
            Tumbling(Count(3), by=KEY, forget=PartitionAge("90m")),
        ),
    ],
)
def test_reading(text, spec):
    assert spec == parse(text)


@pytest.mark.parametrize("by", ["symbol", 0, ("a", "b"), len, KEY])
def test_the_key_of_a_partitioned_window_is_given_beside_the_text(by):
    assert Tumbling(Count(3), by=by) == parse("tumbling, count(3), partitioned", by=by)


def test_a_list_of_columns_becomes_a_tuple():
    assert ("a", "b") == parse("tumbling, count(3), partitioned", by=["a", "b"]).by


def test_containers_take_the_text():
    assert Tumbling(Count(3)) == TumblingWindow("tumbling, count(3)").spec
    assert SPEC == SlidingWindow(TEXT).spec


@pytest.mark.parametrize(("text", "kind"), [("10", int), ("10.0", float), ("10s", timedelta)])
def test_numbers_keep_their_type(text, kind):
    evict: Any = parse(f"tumbling, delta(x, {text})").evict
    assert kind is type(evict.threshold)


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Delta("ts", float("inf"))),
        Tumbling(Delta("ts", float("-inf"))),
        Tumbling(Delta("ts", timedelta(seconds=-1))),
        Tumbling(Delta("ts", timedelta(hours=-1, minutes=-30))),
    ],
    ids=repr,
)
def test_odd_thresholds_are_read_back_too(spec):
    assert spec == parse(str(spec))


# -- text that is none --

EXAMPLE = "'sliding, count(100), count(10), partitioned'"
DURATION = 'is not a duration. Write a number and a unit: "10s", "500ms", "1h30m".'
ONE = "a tumbling window takes exactly one eviction policy, here are"
TWO = "a sliding window takes an eviction policy and at most one trigger policy, here are"
BY = (
    "by must be a column name, an index, a tuple of those, a callable, or KEY if you pass the key "
    "to insert."
)
SELECTIONS = "unknown selection; use one of lru, lfu, oldest, operator."
MALFORMED = [
    ("", "'': say either tumbling or sliding, once."),
    ("   ", f"'   ': cannot read '   '. Write it as {EXAMPLE}."),
    ("count(3)", "'count(3)': say either tumbling or sliding, once."),
    (
        "tumbling, sliding, count(3)",
        "'tumbling, sliding, count(3)': say either tumbling or sliding, once.",
    ),
    (
        "tumbling, tumbling, count(3)",
        "'tumbling, tumbling, count(3)': say either tumbling or sliding, once.",
    ),
    # commas and brackets
    (
        "tumbling count(3)",
        f"'tumbling count(3)': cannot read 'tumbling count(3)'. Write it as {EXAMPLE}.",
    ),
    (
        "tumbling; count(3)",
        f"'tumbling; count(3)': cannot read 'tumbling; count(3)'. Write it as {EXAMPLE}.",
    ),
    ("tumbling, count(3", f"'tumbling, count(3': cannot read ' count(3'. Write it as {EXAMPLE}."),
    ("tumbling, count 3", f"'tumbling, count 3': cannot read ' count 3'. Write it as {EXAMPLE}."),
    (
        "tumbling,, count(3)",
        f"'tumbling,, count(3)': cannot read ', count(3)'. Write it as {EXAMPLE}.",
    ),
    (
        ", tumbling, count(3)",
        f"', tumbling, count(3)': cannot read ', tumbling, count(3)'. Write it as {EXAMPLE}.",
    ),
    (
        "tumbling, delta((ts), 3)",
        f"'tumbling, delta((ts), 3)': cannot read ' delta((ts), 3)'. Write it as {EXAMPLE}.",
    ),
    (
        "tumbling, count(3) partitioned",
        "'tumbling, count(3) partitioned': cannot read ' count(3) partitioned'. "
        f"Write it as {EXAMPLE}.",
    ),
    # a count or a time
    (
        "tumbling, count(3) |",
        f"'tumbling, count(3) |': cannot read ' count(3) |'. Write it as {EXAMPLE}.",
    ),
    (
        "tumbling, count(3) || time(5)",
        "'tumbling, count(3) || time(5)': cannot read ' count(3) || time(5)'. "
        f"Write it as {EXAMPLE}.",
    ),
    (
        "tumbling | count(3)",
        "'tumbling | count(3)': no 'tumbling' beside |. Write it as count(100) | time(10).",
    ),
    (
        "tumbling, cout(3) | time(5)",
        "'tumbling, cout(3) | time(5)': no 'cout' beside |. Write it as count(100) | time(10). "
        'Did you mean "count"?',
    ),
    (
        "tumbling, count(3) | time(x)",
        "'tumbling, count(3) | time(x)': cannot read time(x). Write it as time(10).",
    ),
    (
        "tumbling, count(3) | delta(ts, 5)",
        "'tumbling, count(3) | delta(ts, 5)': Count(size=3) | "
        "Delta(attribute='ts', threshold=5): only a Count and a Time go together. "
        'Write Count(500) | Time("5s").',
    ),
    (
        "tumbling, count(0) | time(5)",
        "'tumbling, count(0) | time(5)': Count(size=0) | "
        "Time(period=datetime.timedelta(seconds=5)): no batch has 0 tuples. "
        "Use Count(1) or more, or Time(period=datetime.timedelta(seconds=5)) alone.",
    ),
    # words
    ("tumbling, cout(3)", "'tumbling, cout(3)': unknown word 'cout'. Did you mean \"count\"?"),
    (
        "tumblin, count(3)",
        "'tumblin, count(3)': unknown word 'tumblin'. Did you mean \"tumbling\"?",
    ),
    ("tumbling, xyz(3)", "'tumbling, xyz(3)': unknown word 'xyz'."),
    (
        "tumbling, count(3), partitoned",
        "'tumbling, count(3), partitoned': unknown word 'partitoned'. "
        'Did you mean "partitioned"?',
    ),
    (
        "tumbling, count(3), partitioned, partitionAges(3)",
        "'tumbling, count(3), partitioned, partitionAges(3)': unknown word 'partitionAges'. "
        'Did you mean "partitionAge"?',
    ),
    # arguments
    ("tumbling, count", "'tumbling, count': cannot read count(). Write it as count(100)."),
    ("tumbling, count()", "'tumbling, count()': cannot read count(). Write it as count(100)."),
    ("tumbling, count(x)", "'tumbling, count(x)': cannot read count(x). Write it as count(100)."),
    (
        "tumbling, count(1, 2)",
        "'tumbling, count(1, 2)': cannot read count(1, 2). Write it as count(100).",
    ),
    (
        "tumbling, count(10.0)",
        "'tumbling, count(10.0)': cannot read count(10.0). Write it as count(100).",
    ),
    ("tumbling, count(-1)", "'tumbling, count(-1)': Count(size=-1): size must not be negative."),
    ("tumbling, punct(3)", "'tumbling, punct(3)': cannot read punct(3). Write it as punct()."),
    ("tumbling, time()", "'tumbling, time()': cannot read time(). Write it as time(10)."),
    (
        "tumbling, time(1, 2)",
        "'tumbling, time(1, 2)': cannot read time(1, 2). Write it as time(10).",
    ),
    (
        "tumbling, delta(ts)",
        "'tumbling, delta(ts)': cannot read delta(ts). Write it as delta(ts, 10).",
    ),
    (
        "tumbling, delta(ts, )",
        "'tumbling, delta(ts, )': cannot read delta(ts). Write it as delta(ts, 10).",
    ),
    (
        "tumbling, delta(10)",
        "'tumbling, delta(10)': cannot read delta(10). Write it as delta(ts, 10).",
    ),
    (
        "tumbling, count(3), partitioned, partitionCount()",
        "'tumbling, count(3), partitioned, partitionCount()': cannot read partitionCount(). "
        "Write it as partitionCount(100).",
    ),
    (
        "tumbling, count(3), partitioned, tupleCount(x)",
        "'tumbling, count(3), partitioned, tupleCount(x)': cannot read tupleCount(x). "
        "Write it as tupleCount(1000).",
    ),
    (
        "tumbling, count(3), partitioned, partitionAge()",
        "'tumbling, count(3), partitioned, partitionAge()': cannot read partitionAge(). "
        "Write it as partitionAge(3600).",
    ),
    (
        "tumbling, count(3), partitioned, partitionCount(3, fifo)",
        "'tumbling, count(3), partitioned, partitionCount(3, fifo)': "
        f"PartitionCount(select='fifo'): {SELECTIONS}",
    ),
    (
        "tumbling, count(3), partitioned, tupleCount(-1)",
        "'tumbling, count(3), partitioned, tupleCount(-1)': TupleCount(size=-1): size must not be "
        "negative.",
    ),
    # numbers of policies
    ("tumbling", f"'tumbling': {ONE} 0. Write it as 'tumbling, count(100)'."),
    (
        "tumbling, count(3), count(4)",
        f"'tumbling, count(3), count(4)': {ONE} 2. Write it as 'tumbling, count(100)'.",
    ),
    ("sliding", f"'sliding': {TWO} 0. Write it as 'sliding, count(100), count(10)'."),
    (
        "sliding, count(3), count(4), time(5)",
        f"'sliding, count(3), count(4), time(5)': {TWO} 3. "
        "Write it as 'sliding, count(100), count(10)'.",
    ),
    (
        "tumbling, count(3), partitioned, partitionAge(3), tupleCount(4)",
        "'tumbling, count(3), partitioned, partitionAge(3), tupleCount(4)': only one partition "
        "eviction policy is possible. Keep one.",
    ),
    # combinations
    (
        "sliding, punct()",
        "'sliding, punct()': Sliding(Punct()): punctuation can only close tumbling windows. "
        "Use Tumbling(Punct()).",
    ),
    (
        "sliding, count(3), punct()",
        "'sliding, count(3), punct()': Sliding(Count(size=3), every=Punct()): punctuation cannot "
        "trigger a sliding window. "
        "Use Tumbling(Punct()), or a Count, Delta or Time trigger.",
    ),
    (
        "tumbling, count(3), partitionCount(3)",
        "'tumbling, count(3), partitionCount(3)': partitionCount(3) needs a partitioned window. "
        "Add the word 'partitioned', or drop it.",
    ),
    # durations
    (
        "tumbling, time(0)",
        "'tumbling, time(0)': Time(\"0s\"): the period must be longer than zero.",
    ),
    (
        "tumbling, time(-1)",
        "'tumbling, time(-1)': Time(\"-1s\"): the period must be longer than zero.",
    ),
    (
        "tumbling, count(3), partitioned, partitionAge(-1)",
        "'tumbling, count(3), partitioned, partitionAge(-1)': PartitionAge(\"-1s\"): age must not "
        "be negative.",
    ),
    (
        "tumbling, delta(ts, nan)",
        "'tumbling, delta(ts, nan)': Delta('ts', nan): the threshold must be a number or a "
        'duration, such as Delta("ts", 10) or Delta("ts", "10s").',
    ),
    *(
        (
            f"tumbling, time({span})",
            f"'tumbling, time({span})': cannot read time({span}). Write it as time(10).",
        )
        for span in ("ten", "1e3", "10 parsecs", "9" * 20)
    ),
    (
        "tumbling, delta(ts, ten)",
        "'tumbling, delta(ts, ten)': cannot read delta(ts, ten). Write it as delta(ts, 10).",
    ),
    (
        "tumbling, count(3), partitioned, partitionAge(x)",
        "'tumbling, count(3), partitioned, partitionAge(x)': cannot read partitionAge(x). "
        "Write it as partitionAge(3600).",
    ),
]


@pytest.mark.parametrize(
    ("text", "message"), MALFORMED, ids=[text or "empty" for text, _ in MALFORMED]
)
def test_malformed_text_gets_a_message(text, message):
    with pytest.raises(PolicyError) as caught:
        parse(text)
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("text", "clause", "sample"),
    [
        ("tumbling(3), count(3)", "tumbling(3)", "tumbling"),
        ("tumbling, count(3), partitioned(x)", "partitioned(x)", "partitioned"),
    ],
)
def test_words_without_arguments_take_none(text, clause, sample):
    with pytest.raises(PolicyError) as caught:
        parse(text)
    assert f"{text!r}: cannot read {clause}. Write it as {sample}." == str(caught.value)


@pytest.mark.parametrize("text", [None, 3, b"tumbling, count(3)", Tumbling(Count(3))], ids=repr)
def test_text_that_is_not_text_gets_a_message(text):
    with pytest.raises(PolicyError) as caught:
        parse(text)
    assert f"parse({text!r}): not SPL text. Write it as {EXAMPLE}." == str(caught.value)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (1.5, f"Tumbling(by=1.5): {BY}"),
        ([], 'Tumbling(by=[]): name the key columns, such as by="symbol" or by=("a", "b").'),
    ],
)
def test_a_key_that_is_none_gets_a_message(by, message):
    with pytest.raises(PolicyError) as caught:
        parse("tumbling, count(3), partitioned", by=by)
    assert f"'tumbling, count(3), partitioned': {message}" == str(caught.value)


def test_a_key_for_a_window_that_is_not_partitioned_gets_a_message():
    with pytest.raises(PolicyError) as caught:
        parse("tumbling, count(3)", by="symbol")
    expected = (
        "'tumbling, count(3)': by='symbol' is given, but the window is not partitioned. "
        "Add the word 'partitioned', or drop `by=`."
    )
    assert expected == str(caught.value)


@given(st.text(alphabet="tumblingsldcop(), |0123456789-.", max_size=40))
def test_any_text_is_read_or_refused_with_a_policy_error(text):
    spec = None
    with suppress(PolicyError):
        spec = parse(text)
    assert spec is None or spec == parse(str(spec))


# -- fingerprints --


def change_attribute(row):
    return row["ts"]


# Each line differs from every other in what its window means.
DIFFERENT = [
    Tumbling(Count(3)),
    Tumbling(Count(4)),
    Tumbling(Punct()),
    Tumbling(Time("3s")),
    Tumbling(Time("4s")),
    Tumbling(Delta("ts", 3)),
    Tumbling(Delta("ts", 4)),
    Tumbling(Delta("ts", "3s")),
    Tumbling(Delta("age", 3)),
    Tumbling(Delta(3, 3)),
    Tumbling(Delta(change_attribute, 3)),
    Tumbling(Count(3), by=KEY),
    Tumbling(Count(3), by="KEY"),
    Tumbling(Count(3), by="symbol"),
    Tumbling(Count(3), by="venue"),
    Tumbling(Count(3), by=0),
    Tumbling(Count(3), by=1),
    Tumbling(Count(3), by=("symbol", "venue")),
    Tumbling(Count(3), by=("venue", "symbol")),
    Tumbling(Count(3), by=change_attribute),
    Tumbling(Count(3), by="symbol", forget=PartitionCount(5)),
    Tumbling(Count(3), by="symbol", forget=PartitionCount(6)),
    Tumbling(Count(3), by="symbol", forget=PartitionCount(5, "lfu")),
    Tumbling(Count(3), by="symbol", forget=PartitionCount(5, "oldest")),
    Tumbling(Count(3), by="symbol", forget=PartitionCount(5, "operator")),
    Tumbling(Count(3), by="symbol", forget=TupleCount(5)),
    Tumbling(Count(3), by="symbol", forget=PartitionAge("5s")),
    Tumbling(Count(3), by="symbol", forget=PartitionAge("6s")),
    Sliding(Count(3)),
    Sliding(Count(4)),
    Sliding(Count(3), every=Count(2)),
    Sliding(Count(2), every=Count(3)),
    Sliding(Count(3), every=Delta("ts", 3)),
    Sliding(Count(3), every=Time("3s")),
    Sliding(Time("3s"), every=Count(3)),
    Sliding(Count(3), by=KEY),
    Sliding(Count(3), by="symbol"),
]


@pytest.mark.parametrize(
    "threshold",
    [10**400, -(10**400), Decimal("1E+500"), float("inf"), 1e308, 5e-324, timedelta.max],
    ids=lambda threshold: str(threshold)[:20],
)
def test_extreme_thresholds_have_fingerprints(threshold):
    one, other = (Tumbling(Delta("x", value)) for value in (threshold, 7))
    assert one.fingerprint == Tumbling(Delta("x", +threshold)).fingerprint
    assert one.fingerprint != other.fingerprint


def test_a_fingerprint_is_sixteen_hex_digits():
    assert 16 == len(SPEC.fingerprint)
    assert SPEC.fingerprint == f"{int(SPEC.fingerprint, 16):016x}"


def test_whatever_changes_the_window_changes_its_fingerprint():
    by_print = {spec.fingerprint: spec for spec in DIFFERENT}
    assert [] == [spec for spec in DIFFERENT if by_print[spec.fingerprint] is not spec]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Tumbling(Count(3), by="1"), Tumbling(Count(3), by=1)),
        (Tumbling(Delta("1", 3)), Tumbling(Delta(1, 3))),
        (Tumbling(Count(3), by="a, b"), Tumbling(Count(3), by=("a", "b"))),
        (Tumbling(Count(3), by="a"), Tumbling(Count(3), by=("a",))),
        (Tumbling(Count(3), by="None"), Tumbling(Count(3))),
        (Tumbling(Count(3), by="builtins.len"), Tumbling(Count(3), by=len)),
    ],
    ids=repr,
)
def test_keys_that_look_alike_have_different_fingerprints(one, other):
    assert one != other
    assert one.fingerprint != other.fingerprint


@given(specs())
def test_equal_specs_have_equal_fingerprints(spec):
    again = eval(repr(spec), {**globals()})
    assert again is not spec
    assert spec.fingerprint == again.fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Tumbling(Delta("x", 10)), Tumbling(Delta("x", 10.0))),
        (Tumbling(Delta("x", Decimal("0.5"))), Tumbling(Delta("x", Decimal("0.50")))),
        (Tumbling(Delta("x", 10)), Tumbling(Delta("x", Decimal(10)))),
    ],
    ids=repr,
)
def test_equal_thresholds_have_equal_fingerprints(one, other):
    assert one == other
    assert one.fingerprint == other.fingerprint


@given(specs(), specs())
def test_different_specs_have_different_fingerprints(one, other):
    assert (one == other) is (one.fingerprint == other.fingerprint)


def in_another_process(code, seed):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout.split()


def test_fingerprints_are_the_same_in_every_process():
    code = """
from windowlib import *
import operator
specs = [
    Sliding(Count(100), every=Count(10), by=KEY, forget=PartitionAge("1h")),
    Tumbling(Delta("ts", "10s"), by=("a", "b"), forget=TupleCount(5, "lfu")),
    Sliding(Time("1s"), every=Delta(len, 0.5), by=operator.neg),
    Tumbling(Punct(), by=operator.itemgetter("a")),
]
for spec in specs:
    print(hash("windowlib"), spec.fingerprint)
"""
    runs = [in_another_process(code, seed) for seed in ("0", "1", "12345")]
    assert 3 == len({run[0] for run in runs}), "the seeds make a difference"
    assert runs[0][1::2] == runs[1][1::2] == runs[2][1::2]
    assert SPEC.fingerprint == runs[0][1]


def test_a_description_names_what_a_window_is():
    expected = {
        "kind": "sliding",
        "evict": "Count(size=100)",
        "every": "Count(size=10)",
        "by": "KEY",
        "forget": f"PartitionAge(age={datetime.timedelta(hours=1)!r})",
    }
    assert expected == SPEC.describe()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("tumbling, count(100u)", "tumbling, count(100)"),
        ("tumbling, count(100ul)", "tumbling, count(100)"),
        ("tumbling, count(5sb)", "tumbling, count(5)"),
        ("sliding, count(10w), count(2h)", "sliding, count(10), count(2)"),
        ("tumbling, delta(ts, 10ul)", "tumbling, delta(ts, 10)"),
        ("tumbling, delta(ts, 0.5fl)", "tumbling, delta(ts, 0.5)"),
        ("tumbling, time(10.5l)", "tumbling, time(10.5)"),
        ("tumbling, time(10u)", "tumbling, time(10)"),
        (
            "sliding, count(1), count(1), partitioned, partitionCount(7u)",
            "sliding, count(1), count(1), partitioned, partitionCount(7)",
        ),
    ],
)
def test_suffixes_of_literals_are_read(text, plain):
    assert parse(plain) == parse(text)


def test_a_decimal_literal_is_a_decimal():
    assert Tumbling(Delta("price", Decimal("0.1"))) == parse("tumbling, delta(price, 0.1dl)")


@pytest.mark.parametrize("unit", ["s", "h", "d"])
def test_a_unit_of_time_comes_before_a_suffix(unit):
    assert Tumbling(Time(f"10{unit}")) == parse(f"tumbling, time(10{unit})")
    assert Tumbling(Delta("ts", f"10{unit}")) == parse(f"tumbling, delta(ts, 10{unit})")


@pytest.mark.parametrize(
    "text", ["count(1.5)", "count(2fl)", "count(3dl)", "count(3x)", "count(1.5u)"]
)
def test_a_count_is_a_whole_number_whatever_its_suffix(text):
    with pytest.raises(PolicyError, match=r"cannot read count\("):
        parse(f"tumbling, {text}")
