"""Every mistake with the kit gets a message: the argument, its value, the reason and the fix."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
import importlib
import sys
from pathlib import Path

import pytest

import windowlib
from tests.helpers.raise_sites import raised, raises_in, unreached
from tests.testing.broken_operators import Total  # noqa: F401 - named in the table
from windowlib import KEY, Count, Tumbling, WindowlibError  # noqa: F401 - named in the table
from windowlib.testing import *  # noqa: F403
from windowlib.testing import strategies

PACKAGE = Path(windowlib.__file__).parent / "testing"


class TestNothing(OperatorContract):  # noqa: F405
    __test__ = False


class TestNoSummarizer(SummarizerContract):  # noqa: F405
    __test__ = False
    tuples = (1,)


def drawn(strategy):
    from hypothesis import find

    return find(strategy, lambda _: True)


CASES = [
    ("script(3)", "script(3): not an operator. Pass an Operator object."),
    (
        "script(op()).rows([{'x': 1}])",
        "rows([...]): a list of rows is not a row. Write rows(*rows).",
    ),
    ("transcript(3, [])", "transcript(3, ...): not an operator. Pass an Operator object."),
    (
        "assert_same_everywhere(3, [])",
        "assert_same_everywhere(3, ...): not an operator. Pass an Operator object.",
    ),
    (
        "TestNothing().test_it_explains_itself()",
        "TestNothing.operator = None: not an operator. Say which one, as operator = "
        "Mine(Tumbling(Count(2))).",
    ),
    (
        "TestNoSummarizer().test_open_starts_afresh()",
        "TestNoSummarizer.summarizer = None: it makes no Summarizer. Say which class, as "
        "summarizer = Longest.",
    ),
    (
        "drawn(strategies.specs(policies='counts'))",
        "specs(policies='counts'): there is no 'counts'. Use count, delta, time, punct, either.",
    ),
    (
        "drawn(strategies.specs(kinds=[]))",
        "specs(kinds=[]): nothing to choose from. Use tumbling, sliding.",
    ),
    (
        "drawn(strategies.specs(kinds='sliding', policies='punct'))",
        "specs(policies='punct'): none of them is for sliding windows. Add one, such as "
        '"count", or say kinds="tumbling".',
    ),
    (
        "drawn(strategies.streams(Tumbling(Count(2), by=KEY)))",
        "streams(Tumbling(Count(size=2), by=KEY)): KEY is no column of a row. Use names of "
        "columns.",
    ),
    (
        "without_hypothesis()",
        "windowlib.testing.strategies: Hypothesis is not installed, and makes the examples. "
        "Install it: pip install hypothesis.",
    ),
]


def op():
    from windowlib.operators import Aggregate, agg

    return Aggregate(Tumbling(Count(2)), n=agg.count())


def without_hypothesis():
    """Import the strategies where Hypothesis cannot be found."""
    name, kept = "windowlib.testing.strategies", dict(sys.modules)
    try:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
        del sys.modules[name]
        importlib.import_module(name)
    finally:
        sys.modules.update(kept)
        windowlib.testing.strategies = strategies


@pytest.mark.parametrize(("code", "message"), CASES, ids=[code for code, _ in CASES])
def test_a_mistake_gets_its_message(code, message):
    error = raised(code, globals())
    assert message == str(error)
    assert isinstance(error, ValueError | RuntimeError)


OURS = {"AssertionError", "AttributeError", "NotApplicable", "RefusedRow"}
"""What a failing test is told; Python's own protocol; between ourselves."""


def ours(made):
    """Whether it is an exception of the library, made on the spot."""
    return isinstance(made, ast.Call) and getattr(made.func, "id", "") not in OURS


def test_every_raise_has_a_case():
    places = list(raises_in(PACKAGE, ours))
    assert len(places) > 8
    assert [] == unreached(places, [raised(code, globals()) for code, _ in CASES])


def test_a_name_that_is_not_there_is_refused_as_python_does():
    with pytest.raises(AttributeError, match=r"module 'windowlib.testing' has no attribute 'rows'"):
        _ = windowlib.testing.rows


def test_every_public_name_says_what_it_is():
    for name in windowlib.testing.__all__:
        assert (getattr(windowlib.testing, name).__doc__ or "").strip()
