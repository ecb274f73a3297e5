"""Joins that make no sense are refused when they are built, rows that do not fit as they come."""
# ruff: noqa: SIM300 - asserts read expected first

import pickle
from typing import Any

import pytest

from windowlib import (
    KEY,
    Count,
    Delta,
    ModelError,
    PartitionCount,
    PolicyError,
    SchemaError,
    Sliding,
    Time,
    Tumbling,
    replay,
    restart,
    to,
)
from windowlib.operators import Join, Lookup

TWO: dict[str, Any] = {"left": Sliding(Count(2)), "right": Sliding(Count(2))}


def before(left, right):
    return left["x"] < right["x"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"left": Tumbling(Count(10))},
        "Join does not support Tumbling(Count(size=10)): a join looks at the recent tuples of the "
        "other side, and a tumbling window forgets them all at once. Supported: Sliding(...) "
        "without `every=`.",
    ),
    (
        {"right": Sliding(Count(10), every=Count(2))},
        "Join does not support Sliding(Count(size=10), every=Count(size=2)): a join matches every "
        "tuple as it arrives. Supported: Sliding(...) without `every=`.",
    ),
    (
        {"right": "sliding, count(10), time(5)"},
        "Join does not support Sliding(Count(size=10), every=Time(period=datetime.timedelta("
        "seconds=5))): a join matches every tuple as it arrives. Supported: Sliding(...) without "
        "`every=`.",
    ),
    (
        {"left": Count(5)},
        "Join(left=Count(size=5)): not a window. Pass a specification, as "
        "left=Sliding(Count(10)), or SPL text.",
    ),
    (
        {"left": Sliding(Count(0)), "right": Sliding(Count(0))},
        "Join(left=Sliding(Count(size=0), every=Count(size=1)), right=Sliding(Count(size=0), "
        "every=Count(size=1))): neither side keeps a tuple, so nothing could ever match. Give one "
        "of them a size.",
    ),
    (
        {"how": "inne"},
        "Join(how='inne'): use one of 'inner', 'left', 'right', 'outer', 'semi', 'anti'. Did you "
        'mean "inner"?',
    ),
    (
        {"how": ["left"]},
        "Join(how=['left']): use one of 'inner', 'left', 'right', 'outer', 'semi', 'anti'. Did "
        'you mean "left"?',
    ),
    (
        {"on": "a", "left_on": "b"},
        "Join(on='a', left_on='b'): two words for one key. Drop `left_on=`, or give left_on= and "
        "right_on= alone.",
    ),
    (
        {"on": "a", "right_on": "b"},
        "Join(on='a', right_on='b'): two words for one key. Drop `right_on=`, or give left_on= and "
        "right_on= alone.",
    ),
    ({"left_on": "a"}, "Join(left_on='a'): the other side has no key. Add right_on=..."),
    ({"right_on": "a"}, "Join(right_on='a'): the other side has no key. Add left_on=..."),
    (
        {"left_on": ("a", "b"), "right_on": "c"},
        "Join(left_on=('a', 'b'), right_on='c'): 2 columns against 1. Name as many on both sides, "
        "in the same order.",
    ),
    (
        {"on": ()},
        'Join(on=()): name the columns that must be equal, such as on="symbol" or on=("a", "b").',
    ),
    (
        {"on": True},
        'Join(on=True): name the columns that must be equal, such as on="symbol" or on=("a", "b").',
    ),
    (
        {"left_on": "a", "right_on": 2.5},
        "Join(right_on=2.5): name the columns that must be equal, such as "
        'right_on="symbol" or right_on=("a", "b").',
    ),
    (
        {"where": "x"},
        'Join(where=\'x\'): not a function of both rows. Write where=lambda l, r: l["x"] < r["x"].',
    ),
    (
        {"select": ["x"]},
        "Join(select=['x']): not a function of both rows. Write "
        'select=lambda l, r: {**l, "y": r["y"]}.',
    ),
    (
        {"select": before, "how": "semi"},
        'Join(how="semi", select=...): a semi join gives left rows as they are. Drop `select=`, or '
        "shape its output in the next operator.",
    ),
    (
        {"within": ("ts", "10s")},
        "Join(within=('ts', '10s')): not a band. Write within=Delta(\"ts\", \"10s\").",
    ),
    (
        {"within": Delta("ts", "-10s")},
        "Join(within=Delta('ts', \"-10s\")): no distance is negative. Give 0 or more.",
    ),
    (
        {"within": Delta("ts", -1)},
        "Join(within=Delta('ts', -1)): no distance is negative. Give 0 or more.",
    ),
    (
        {"how": "left", "unmatched": "ports"},
        "Join(unmatched='ports'): use one of 'row', 'port'. Did you mean \"port\"?",
    ),
    (
        {"unmatched": "port"},
        'Join(how="inner", unmatched="port"): an inner join gives matches only. Drop '
        '`unmatched=`, or use how="left", "right" or "outer".',
    ),
    (
        {"unmatched": "port", "how": "semi"},
        'Join(how="semi", unmatched="port"): a semi join gives rows that have a match. Drop '
        '`unmatched=`, or use how="left", "right" or "outer".',
    ),
    (
        {"unmatched": "port", "how": "anti"},
        'Join(how="anti", unmatched="port"): the rows without a match are its main output. Drop '
        '`unmatched=`, or use how="left", "right" or "outer".',
    ),
    (
        {"left": Sliding(Count(2), by="a"), "partition_by": "b"},
        "Join(partition_by='b'): the window says by='a'. Drop one of them.",
    ),
    (
        {"right": Sliding(Count(2), by=KEY)},
        "Join(right=Sliding(Count(size=2), every=Count(size=1), by=KEY)): an operator reads its "
        'keys from the rows. Name the columns, such as partition_by="symbol".',
    ),
    (
        {"partition_by": KEY},
        "Join(left=Sliding(Count(size=2), every=Count(size=1), by=KEY)): an operator reads its "
        'keys from the rows. Name the columns, such as partition_by="symbol".',
    ),
    (
        {"suffixes": ("", "_r", "_s")},
        "Join(suffixes=('', '_r', '_s')): give two texts, for left and right, such as "
        'suffixes=("", "_right").',
    ),
    (
        {"suffixes": "_r"},
        "Join(suffixes='_r'): give two texts, for left and right, such as "
        'suffixes=("", "_right").',
    ),
    (
        {"suffixes": ("_x", "_x")},
        "Join(suffixes=('_x', '_x')): both sides get the same suffix, so equal names stay equal. "
        "Give two different ones.",
    ),
    (
        {"suffixes": ("_l", "_r"), "select": before},
        "Join(suffixes=('_l', '_r')): select= makes the rows. Drop `suffixes=`.",
    ),
    (
        {"suffixes": ("_l", "_r"), "how": "anti"},
        "Join(suffixes=('_l', '_r')): how=\"anti\" gives left rows as they are. Drop `suffixes=`.",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[str(a) for a, _ in REFUSED])
def test_a_join_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ModelError) as caught:
        Join(**TWO | arguments)
    assert message == str(caught.value)


def test_a_window_that_makes_no_sense_is_refused_as_everywhere():
    with pytest.raises(PolicyError, match="partition eviction needs a partitioned window"):
        Sliding(Count(2), forget=PartitionCount(1))
    with pytest.raises(PolicyError, match=r"Sliding\(by=2.5\)"):
        Join(**TWO | {"partition_by": 2.5})


LOOKUPS: list[tuple[dict[str, Any], str]] = [
    ({}, 'Lookup(): what is looked up? Name the key: on="user_id".'),
    ({"right_on": "b"}, "Lookup(right_on='b'): the other side has no key. Add left_on=..."),
    (
        {"on": "a", "how": "outer"},
        "Lookup(how='outer'): use one of 'left', 'inner', 'semi', 'anti'.",
    ),
    (
        {"on": "a", "how": "inner", "unmatched": "port"},
        'Lookup(how="inner", unmatched="port"): an inner join gives matches only. Drop '
        '`unmatched=`, or use how="left", "right" or "outer".',
    ),
]


@pytest.mark.parametrize(("arguments", "message"), LOOKUPS, ids=[str(a) for a, _ in LOOKUPS])
def test_a_lookup_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ModelError) as caught:
        Lookup(**arguments)
    assert message == str(caught.value)


# -- rows --


def left(**row):
    return to("left", row)


def right(**row):
    return to("right", row)


ROWS: list[tuple[dict[str, Any], list[Any], str]] = [
    (
        {"on": "symbol"},
        [left(symbl="A", price=1)],
        "on='symbol': no such column. Columns: symbl, price. Did you mean \"symbl\"?",
    ),
    (
        {"left_on": ("day", "user"), "right_on": ("day", "id")},
        [right(day=1, user=2)],
        "right_on=('day', 'id'): no such column. Columns: day, user.",
    ),
    (
        {"partition_by": "g"},
        [right(k=1)],
        "by='g': no such column. Columns: k.",
    ),
    (
        {"within": Delta("ts", 5)},
        [left(at=1, x=2)],
        "within=Delta('ts', 5): no such column. Columns: at, x.",
    ),
    (
        {"on": "k"},
        [left(k=1), left(j=1)],
        "on='k': the tuple {'j': 1} has no 'k'. Columns: j.",
    ),
    (
        {"on": "k"},
        [left(k=[1])],
        "on='k': the value [1] is a list, which cannot be looked up. Join on a column of plain "
        "values, or on a callable that makes one of it.",
    ),
    (
        {"on": ("k", "j"), "within": Delta("ts", 5)},
        [right(k=1, j={2}, ts=1)],
        "on=('k', 'j'): the value {2} is a set, which cannot be looked up. Join on a column of "
        "plain values, or on a callable that makes one of it.",
    ),
    (
        {"on": lambda row: (0, (1, row["k"]))},
        [left(k=[1])],
        "the value (0, (1, [1])) is a tuple, which cannot be looked up. Join on a column of plain "
        "values, or on a callable that makes one of it.",
    ),
    (
        {"on": abs},
        [to("left", 5)],
        "Join: the row 5 has no column names, so it cannot be put together with another. Pass "
        "select=lambda left, right: ..., or use rows with names.",
    ),
    (
        {"on": "k"},
        [left(k=1, x=2, x_right=3), right(k=2, x=1)],
        "Join(suffixes=('', '_right')): the output would have two columns 'x_right'. Choose other "
        "suffixes, or pass select=.",
    ),
    (
        {"on": "k", "how": "left"},
        [left(k=1, x=2), right(k=2, x=1), restart(), right(k=2, x=1), left(k=3, x_right=1)],
        "Join(suffixes=('', '_right')): the output would have two columns 'x_right'. Choose other "
        "suffixes, or pass select=.",
    ),
]


@pytest.mark.parametrize(("arguments", "rows", "message"), ROWS, ids=[m[:40] for _, _, m in ROWS])
def test_a_row_that_does_not_fit_is_refused_with_a_message(arguments, rows, message):
    with pytest.raises(SchemaError) as caught:
        list(replay(Join(**TWO | arguments), rows))
    said = str(caught.value)
    assert message == (said.partition(">: ")[2] or said)  # without the address of a lambda


def test_a_refused_row_leaves_the_join_as_it_was():
    came: list[Any] = []
    running = Join(**TWO, on="k", how="outer").open()
    running.connect(0, came.append)
    running.insert({"k": 1, "x": 2, "x_right": 3}, 0)
    for bad in ({"k": 1, "x": 1}, {"k": [1]}, {}, 5):
        with pytest.raises(SchemaError):
            running.insert(bad, 1)
    running.insert({"k": 1, "y": 0}, 1)
    running.finish()
    assert [{"k": 1, "x": 2, "x_right": 3, "y": 0}] == came


# -- as a value --


def test_a_join_is_the_call_that_made_it():
    join = Join(**TWO, on="k", how="left", where=before)
    assert join == Join(**TWO, on="k", how="left", where=before)
    assert join != Join(**TWO, on="k", how="right", where=before)
    assert join == pickle.loads(pickle.dumps(join))
    assert repr(Lookup(on="k")) == "Lookup(on='k')"


def test_windows_may_be_spl_text_partitioned_by_the_join():
    text = "sliding, count(2), count(1), partitioned, partitionCount(3)"
    join = Join(left=text, right=Sliding(Count(1)), partition_by=["k"])
    assert (Sliding(Count(2), by=("k",), forget=PartitionCount(3))) == join.windows[0]


def test_a_window_may_name_the_same_key_as_the_join():
    join = Join(left=Sliding(Count(2), by="k"), right=Sliding(Count(1)), partition_by="k")
    assert ["k", "k"] == [spec.by for spec in join.windows if spec is not None]


def test_explain_names_index_storage_and_when_unmatched_rows_come():
    join = Join(
        left=Sliding(Time("5s")),
        right=Sliding(Count(0)),
        on="k",
        how="outer",
        where=before,
        within=Delta("ts", 5),
        unmatched="port",
    )
    assert (
        """\
output       matches: punctuation of its own
output       unmatched_left: no punctuation
output       unmatched_right: no punctuation
index        hash of on='k', then sorted by 'ts'
batches      row by row: where= reads each row in Python
where        tests.operators.test_join_errors.before, asked for each candidate
left         stored, found by key
unmatched    left rows come out when they leave their window, or at the end, on unmatched_left
right        only probes, nothing is stored
unmatched    right rows come out at once, on unmatched_right
""".splitlines()
        == join.explain().splitlines()[11:]
    )
    anti = Join(**TWO, how="anti", left_on="a", right_on="b").explain()
    assert "index        hash of left_on='a', right_on='b'" in anti
    assert "unmatched    left rows come out when they leave their window, or at the end\n" in anti
    assert "index        none: every pair is a candidate" in Join(**TWO).explain()
    assert "index        sorted by 'ts'" in Join(**TWO, within=Delta("ts", 5)).explain()
    assert "unmatched    stream rows come out at once, with nulls" in Lookup(on="k").explain()
