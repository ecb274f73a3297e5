"""Punctor: where the punctuations stand, whatever the condition, and after any restart."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import pickle
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.operator_runs import P, out, with_restarts
from windowlib import Delta, ModelError, PolicyError, Punct, SchemaError
from windowlib.operators import Batch, Punctor

NAN = float("nan")


class Point(NamedTuple):
    x: int


def row(x, k=0):
    return {"x": x, "k": k}


def values(found):
    return [item if item == P else item["x"] for item in found]


def is_even(t):
    return t["x"] % 2 == 0


def grows(before, t):
    return t["x"] > before["x"]


# -- one row --


def test_a_punctuation_follows_a_row_for_which_the_predicate_holds():
    rows = [row(1), row(2), row(3), row(4)]
    assert [1, 2, P, 3, 4, P] == values(out(Punctor(is_even), rows))
    assert [1, 2, P, 3, 4, P] == values(out(Punctor(when=is_even, position="after"), rows))


def test_a_punctuation_goes_before_the_row_if_asked():
    rows = [row(2), row(3), row(4)]
    assert [P, 2, 3, P, 4] == values(out(Punctor(is_even, position="before"), rows))


def test_a_column_may_be_the_predicate():
    rows = [row(1, k=0), row(2, k=1)]
    assert [1, 2, P] == values(out(Punctor("k"), rows))
    objects = [SimpleNamespace(x=1, k=1), SimpleNamespace(x=2, k=0)]
    assert [objects[0], P, objects[1]] == out(Punctor("k"), objects)


def test_punctuations_that_come_in_end_here():
    assert [1, 3] == values(out(Punctor(is_even), [P, row(1), P, row(3), P]))


# -- two rows --


def cut_before(rows, by, differ):
    """Each row with a mark before it if it differs from the last earlier one of its key."""
    made: list[object] = []
    for i, new in enumerate(rows):
        earlier = [old for old in rows[:i] if by is None or old[by] == new[by]]
        if earlier and differ(earlier[-1], new):
            made.append(P)
        made.append(new)
    return made


STREAMS = st.lists(st.builds(row, st.integers(0, 20), st.integers(0, 2)), max_size=20)
CONDITIONS: list[tuple[dict[str, Any], Any]] = [
    ({"gap": Delta("x", 3)}, lambda old, new: new["x"] - old["x"] > 3),
    ({"on_change": "x"}, lambda old, new: new["x"] != old["x"]),
    ({"on_change": ["x", "k"]}, lambda old, new: new != old),
    ({"between": grows}, lambda old, new: new["x"] > old["x"]),
]


@pytest.mark.parametrize(
    ("condition", "differ"), CONDITIONS, ids=[next(iter(c)) for c, _ in CONDITIONS]
)
@pytest.mark.parametrize("by", [None, "k"])
@given(rows=STREAMS)
def test_a_cut_goes_before_the_row_that_differs_from_the_one_before_it(condition, differ, by, rows):
    punctor = Punctor(**condition, by=by, position="before")
    expected = cut_before(rows, by, differ)
    assert expected == out(punctor, rows)
    assert expected == out(Punctor(**condition, by=by), rows)
    assert expected == out(punctor, with_restarts(rows))


def test_a_gap_is_more_than_its_threshold_and_never_backwards():
    rows = [row(0), row(3), row(7), row(1), row(4)]
    assert [0, 3, P, 7, 1, 4] == values(out(Punctor(gap=Delta("x", 3)), rows))


def test_a_gap_may_be_a_duration():
    start = datetime(2024, 5, 1)
    rows = [row(start + timedelta(seconds=s)) for s in (0, 30, 61)]
    got = out(Punctor(gap=Delta("x", "30s")), rows)
    assert [rows[0], rows[1], P, rows[2]] == got


def test_nan_is_the_same_as_nan_also_after_a_restart():
    rows = [row(NAN), row(float("nan")), row(1), row(float("nan"))]
    expected = [rows[0], rows[1], P, rows[2], P, rows[3]]
    for stream in (rows, with_restarts(rows)):
        got = out(Punctor(on_change="x"), stream)
        assert len(expected) == len(got)
        assert [i for i, item in enumerate(expected) if item == P] == [
            i for i, item in enumerate(got) if item == P
        ]


def test_a_named_tuple_is_one_also_after_a_restart():
    rows = [Point(1), Point(1), Point(2)]
    op = Punctor(between=lambda before, t: before.x != t.x)
    assert [Point(1), Point(1), P, Point(2)] == out(op, with_restarts(rows))


def test_nan_is_one_key_also_after_a_restart():
    rows = [row(1, k=NAN), row(2, k=float("nan"))]
    for stream in (rows, with_restarts(rows)):
        assert [1, P, 2] == values(out(Punctor(on_change="x", by="k"), stream))
        by = Punctor(on_change="x", by=lambda t: (1, t["k"]))
        assert [1, P, 2] == values(out(by, stream))


class Reading(NamedTuple):
    x: float


def test_a_named_tuple_is_the_row_before_also_after_a_restart():
    rows = [Reading(1), Reading(3), Reading(2)]
    op = Punctor(between=lambda before, t: t.x > before.x)
    for stream in (rows, with_restarts(rows)):
        assert [rows[0], P, rows[1], rows[2]] == out(op, stream)


def test_sessions_are_a_gap_and_a_punct_window():
    sessions = Punctor(gap=Delta("x", 10), position="before").then(Batch(Punct()))
    rows = [row(x) for x in (0, 5, 15, 40, 41, 90)]
    expected = [[0, 5, 15], [40, 41], [90]]
    for stream in (rows, with_restarts(rows)):
        got = [item for item in out(sessions, stream) if item != P]
        assert expected == [[t["x"] for t in batch["rows"]] for batch in got]


def test_a_predicate_that_fails_remembers_nothing_and_sends_nothing():
    running = Punctor(between=grows).open()
    got: list[object] = []
    running.connect(0, got.append, lambda: got.append(P))
    running.insert(row(5))
    with pytest.raises(KeyError) as caught:
        running.insert({"k": 1})
    assert ["in Punctor, row {'k': 1}"] == caught.value.__notes__
    running.insert(row(6))
    assert [row(5), P, row(6)] == got


@pytest.mark.parametrize(
    "op",
    [
        Punctor(is_even),
        Punctor("k", position="before"),
        Punctor(gap=Delta("x", 3), by=["k"]),
        Punctor(between=grows),
    ],
    ids=repr,
)
def test_punctors_are_values(op):
    other = pickle.loads(pickle.dumps(op))
    assert op == other
    assert op.describe() == other.describe()


# -- mistakes --

MISTAKES = [
    ("Punctor()", ModelError, "Punctor(): give one condition, of when=, gap=, on_change= and between=."),
    ("Punctor('x', on_change='k')", ModelError,
     "Punctor(when=..., on_change=...): give one condition, of when=, gap=, on_change= and between=."),
    ("Punctor('x', by='k')", ModelError,
     "Punctor(when=..., by='k'): `when` looks at one row, and so has no use for a key. Drop `by=`, or use "
     "gap=, on_change= or between=."),
    ("Punctor('x', position='behind')", ModelError,
     "Punctor(position='behind'): use \"after\" or \"before\"."),
    ("Punctor(on_change='x', position='after')", ModelError,
     "Punctor(on_change=..., position=\"after\"): it cuts between a row and the one before it. Drop "
     "`position=`, or say \"before\"."),
    ("Punctor(gap=30)", ModelError, "Punctor(gap=30): a gap is a Delta, such as gap=Delta(\"ts\", \"30s\")."),
    ("Punctor(between='x')", ModelError,
     "Punctor(between='x'): not a function. Write between=lambda before, t: ..."),
    ("Punctor(on_change=[])", ModelError,
     "Punctor(on_change=[]): no column. Name one, or leave it out."),
    ("Punctor(on_change=1.5)", PolicyError,
     "Punctor(on_change=1.5): the attribute must be a name, an index or a callable, such as \"user\" or "
     "[\"user\", \"day\"]."),
    ("Punctor(on_change='x', by=[None])", PolicyError,
     "Punctor(by=[None]): the attribute must be a name, an index or a callable, such as \"user\" or "
     "[\"user\", \"day\"]."),
    ("Punctor(1.5)", PolicyError,
     "Punctor(when=1.5): the attribute must be a name, an index or a callable, such as "
     "Punctor(when=lambda t: t[\"last\"])."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "kind", "text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes_are_refused_when_they_are_made(code, kind, text):
    with pytest.raises(kind) as caught:
        eval(code)
    assert text == str(caught.value)


BAD_ROWS = [
    (Punctor("last"), [{"lost": 1}], "when='last': no such column. Columns: lost. Did you mean \"lost\"?"),
    (Punctor(gap=Delta("ts", 3)), [row(1)], "Delta('ts', 3): no such column. Columns: x, k."),
    (Punctor(on_change="user"), [row(1)], "on_change='user': no such column. Columns: x, k."),
    (Punctor(on_change="x", by="user"), [row(1)], "by='user': no such column. Columns: x, k."),
    (Punctor(on_change="x", by="k"), [row(1, k=[1])],
     "Punctor(by='k'): the values ([1],) cannot be a key. Use columns of plain values, not lists or dicts."),
    (Punctor(gap=Delta("x", 3)), [row(1), row("b")],
     "Delta('x', 3): the value 'b' is of type str, which has no distance. Use a number, a Decimal or a "
     "datetime."),
    (Punctor(gap=Delta("x", 3)), [row(datetime(2024, 1, 1))], None),
    (Punctor(gap=Delta("x", 3.0)), [row(1), row(1j)], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "rows", "text"), BAD_ROWS, ids=[repr(b[0]) + str(i) for i, b in enumerate(BAD_ROWS)]
)
def test_rows_that_do_not_fit_are_named(op, rows, text):
    with pytest.raises(SchemaError) as caught:
        out(op, rows)
    if text is None:
        assert str(caught.value).startswith(f"{op._arguments[1]['gap'].shown}: the value ")
    else:
        assert text == str(caught.value)


def test_values_that_do_not_mix_are_named():
    from decimal import Decimal

    with pytest.raises(SchemaError) as caught:
        out(Punctor(gap=Delta("x", 3)), [row(1.5), row(Decimal(2))])
    assert (
        "Delta('x', 3): the value Decimal('2') does not mix with 1.5 before it. Use one type for the "
        "whole stream." == str(caught.value)
    )
