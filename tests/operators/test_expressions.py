"""Expressions over columns and over aggregates: arithmetic, comparison, nulls, and their text."""
# ruff: noqa: SIM300 - asserts read expected first

import operator
import pickle
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import Count, ModelError, SchemaError, Sliding, Tumbling, replay
from windowlib.operators import Aggregate, agg, col
from windowlib.operators.expressions import Col, Expr, RowExpr

NAN, INF = float("nan"), float("inf")


def of_row(expression: Expr, **row: Any) -> Any:
    """The value of an expression for a row: as a column, and once more as generated text."""
    read = RowExpr(expression)(row)
    (out,) = replay(Aggregate(Tumbling(Count(1)), xs=agg.collect(expression)), [row])
    assert str([] if read is None else [read]) == str(out["xs"])
    return read


def of_window(expression: Expr, **row: Any) -> Any:
    """The value of an expression of sums for a window with just this row."""
    (out,) = replay(Aggregate(Tumbling(Count(1)), {"out": expression}), [row])
    return out["out"]


A, B = col("a"), col("b")
SUM_A, SUM_B = agg.first("a"), agg.first("b")
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
every_sign = pytest.mark.parametrize("sign", SIGNS)


# -- values -------------------------------------------------------------------------------------


@every_sign
def test_a_sign_means_what_it_means_between_values(sign):
    apply = SIGNS[sign]
    for a, b in [(7, 2), (-7, 2), (2.5, 2), (3, 3), (Decimal(7), 2), (0, 5)]:
        wanted = apply(a, b)
        assert wanted == of_row(apply(A, B), a=a, b=b)
        assert wanted == of_window(apply(SUM_A, SUM_B), a=a, b=b)


@every_sign
def test_an_operand_may_be_a_constant_on_either_side(sign):
    apply = SIGNS[sign]
    for constant in (2, -2, 0.5, True, Decimal(3)):
        assert apply(3, constant) == of_window(apply(SUM_A, constant), a=3)
        assert apply(constant, 3) == of_window(apply(constant, SUM_A), a=3)
        assert apply(constant, 3) == of_row(apply(constant, A), a=3)


@every_sign
def test_a_null_operand_gives_null(sign):
    apply = SIGNS[sign]
    for a, b in [(None, 1), (1, None), (None, None)]:
        assert of_row(apply(A, B), a=a, b=b) is None
        assert of_window(apply(SUM_A, SUM_B), a=a, b=b) is None
    assert of_window(apply(SUM_A, None), a=1) is None


@pytest.mark.parametrize("sign", ["/", "//", "%"])
@pytest.mark.parametrize("zero", [0, 0.0, Decimal(0)])
def test_a_division_by_zero_gives_null(sign, zero):
    one = Decimal(1) if isinstance(zero, Decimal) else 1
    assert of_row(SIGNS[sign](A, B), a=one, b=zero) is None
    assert of_window(SIGNS[sign](SUM_A, SUM_B) * 2, a=one, b=zero) is None


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (False, False, False, False),
        (True, None, None, True),
        (None, True, None, True),
        (False, None, False, None),
        (None, False, False, None),
        (None, None, None, None),
    ],
)
def test_conditions_combine_as_in_sql(a, b, both, either):
    assert both == of_row(A & B, a=a, b=b)
    assert either == of_row(A | B, a=a, b=b)
    assert both == of_window(SUM_A & SUM_B, a=a, b=b)
    assert either == of_window(SUM_A | SUM_B, a=a, b=b)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(5, -5), (-0.0, 0.0), (0.0, -0.0), (timedelta(1), -timedelta(1)), (None, None), (INF, -INF)],
)
def test_a_sign_in_front_turns_a_value_round(value, wanted):
    assert str(wanted) == str(of_row(-A, a=value))
    assert str(wanted) == str(of_window(-SUM_A, a=value))
    once = -SUM_A
    assert str(value) == str(of_window(-once, a=value))


def test_signs_bind_as_they_are_written():
    assert 4 == of_window((-SUM_A) ** 2, a=2)
    assert -4 == of_window(-(SUM_A**2), a=2)
    assert 4 == of_window((-2) ** SUM_A, a=2)
    assert 0.25 == of_window(SUM_A**-2, a=2)
    assert 9 == of_window((SUM_A + 1) * (SUM_A + 1), a=2)
    assert 5 == of_window(SUM_A - (SUM_B - 4), a=2, b=1)


def test_aggregates_of_expressions_combine_to_expressions():
    vwap = agg.sum(col("price") * col("qty")) / agg.sum("qty")
    rows = [{"price": 10.0, "qty": 1}, {"price": 20.0, "qty": 3}, {"price": None, "qty": 1}]
    assert [{"v": 70.0 / 5}] == list(replay(Aggregate(Tumbling(Count(3)), v=vwap), rows))
    got = list(replay(Aggregate(Sliding(Count(2)), v=vwap, n=agg.count() > 1), rows))
    assert [{"v": 17.5, "n": True}, {"v": 15.0, "n": True}] == got


numbers = st.none() | st.integers(-3, 3) | st.sampled_from([0.5, -1.5, NAN])


@settings(max_examples=examples(100))
@given(st.data(), st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5))
def test_any_expression_is_what_python_makes_of_it(data, pairs):
    """Built at random, and computed step by step beside it."""
    rows = [{"a": a, "b": b} for a, b in pairs]
    expression, value = data.draw(expressions(3))
    got = [row["out"] for row in replay(Aggregate(Tumbling(Count(1)), out=expression), rows)]
    assert [str(value(row)) for row in rows] == [str(x) for x in got]


@st.composite
def expressions(draw: st.DrawFn, depth: int) -> tuple[Any, Callable[[Any], Any]]:
    if not depth or draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from("ab"))
        return agg.first(name), lambda row: row[name]
    left, left_value = draw(expressions(depth - 1))
    if draw(st.integers(0, 5)) == 0:
        return -left, lambda row: None if left_value(row) is None else -left_value(row)
    right, right_value = draw(expressions(depth - 1))
    sign = draw(st.sampled_from(["+", "-", "*", "/", "<", ">=", "==", "!="]))
    return SIGNS[sign](left, right), lambda row: _apply(sign, left_value(row), right_value(row))


def _apply(sign: str, a: Any, b: Any) -> Any:
    if a is None or b is None or (sign == "/" and b == 0):
        return None
    return SIGNS[sign](a, b)


# -- text ---------------------------------------------------------------------------------------

TEXTS: dict[str, Expr] = {
    '(col("a") + 1)': A + 1,
    '(2 / col("a"))': 2 / A,
    '(-col("a"))': -A,
    "col(3)": col(3),
    "col('a\"b')": col('a"b'),
    '(agg.sum("a") / agg.sum((col("a") * col("b"))))': agg.sum("a") / agg.sum(A * B),
    "((agg.count() > 1) & (agg.max(\"a\") != 'x'))": (agg.count() > 1) & (agg.max("a") != "x"),
    '(2 ** agg.quantile("a", q=0.95))': 2 ** agg.quantile("a", 0.95),
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_an_expression_is_what_one_would_write(text):
    assert text == repr(TEXTS[text])
    assert text == repr(eval(text, {"agg": agg, "col": col}))


@pytest.mark.parametrize("text", TEXTS)
def test_expressions_can_be_pickled(text):
    assert text == repr(pickle.loads(pickle.dumps(TEXTS[text])))


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: bool(agg.count() > 1),
            "(agg.count() > 1): an expression is neither true nor false before there are rows. "
            "Combine conditions with & and |, not with `and` and `or`.",
        ),
        (
            lambda: col(1.5),  # type: ignore[arg-type]
            'col(1.5): not a column. Name one, such as col("price"), or give its index.',
        ),
        (
            lambda: col(True),
            'col(True): not a column. Name one, such as col("price"), or give its index.',
        ),
        (
            lambda: agg.sum(agg.max("x") + col("y")),
            '(agg.max("x") + col("y")): agg.max("x") is known only for a whole window, not for a '
            "row. Combine aggregates outside of functions.",
        ),
    ],
)
def test_expressions_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ModelError) as caught:
        make()
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("expression", "a", "message"),
    [
        (
            SUM_A + 1,
            "x",
            '(agg.first("a") + 1): \'x\' + 1 has no value (can only concatenate str (not "int") to '
            "str). Use operands of types that mix.",
        ),
        (
            SUM_A > 1.5,
            "x",
            "(agg.first(\"a\") > 1.5): 'x' > 1.5 has no value ('>' not supported between instances "
            "of 'str' and 'float'). Use operands of types that mix.",
        ),
        (
            SUM_A**SUM_A,
            10.0**200,
            '(agg.first("a") ** agg.first("a")): 1e+200 ** 1e+200 has no value ((34, \'Numerical '
            "result out of range')). Use operands of types that mix.",
        ),
        (
            -SUM_A,
            "x",
            "(-agg.first(\"a\")): -'x' has no value (bad operand type for unary -: 'str'). Use a "
            "number.",
        ),
    ],
)
def test_operands_that_do_not_mix_are_refused(expression, a, message):
    with pytest.raises(SchemaError) as caught:
        of_window(expression, a=a)
    assert message == str(caught.value)


def test_columns_that_do_not_mix_are_refused():
    with pytest.raises(SchemaError, match=r'\(col\("a"\) - col\("b"\)\): .* Use operands of types'):
        of_row(A - B, a="x", b=1)


def test_a_missing_column_of_an_expression_is_named_before_anything_runs():
    op = Aggregate(Tumbling(Count(1)), out=agg.sum(col("price") * col("qyt")))
    with pytest.raises(SchemaError) as caught:
        list(replay(op, [{"price": 1, "qty": 2}]))
    assert (
        'agg.sum((col("price") * col("qyt"))): no such column. Columns: price, qty. Did you mean '
        '"qty"?'
    ) == str(caught.value)


def test_equal_names_are_no_equal_columns():
    assert isinstance(Col("a") == Col("a"), Expr)
    assert 2 == len({Col("a"), Col("a")})
