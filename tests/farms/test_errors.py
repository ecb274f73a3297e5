"""Every mistake with farms gets a message: the argument, its value, the reason and the fix."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
from datetime import timedelta  # noqa: F401 - named in the table
from pathlib import Path

import numpy as np  # noqa: F401 - named in the table
import pytest

import windowlib
from operators import Aggregate, agg
from tests.test_errors import lines_of
from windowlib import Count, FarmError, Sliding, Tumbling, WindowlibError
from windowlib.farms.choice import choose  # noqa: F401 - named in the table
from windowlib.farms.functions import Function  # noqa: F401 - named in the table
from windowlib.farms.mapping import RoundRobin  # noqa: F401 - named in the table
from windowlib.farms.models import *  # noqa: F403

PACKAGE = Path(windowlib.__file__).parent / "farms"
high = Aggregate(Sliding(Count(9)), high=agg.max("x"), name="high")
rows = Aggregate(Tumbling(Count(9)), rows=agg.collect(), name="rows")

POINT = (
    "not a point or a length on an axis. Use a finite number; for instants and durations, ticks "
    "such as microseconds."
)
LENGTH = "a length is more than zero. Use 1, for example."
WHOLE = "tuples and windows are counted. Use a whole number."
BACK = "and its windows go by the order of the values. Sort them first."

CASES = [
    ('TimeWindows("5s", 1)', f"TimeWindows(size='5s'): {POINT}"),
    ("TimeWindows(True, 1)", f"TimeWindows(size=True): {POINT}"),
    ('TimeWindows(4, float("inf"))', f"TimeWindows(slide=inf): {POINT}"),
    ('TimeWindows(4, 2).windows(float("nan"))', f"windows(x=nan): {POINT}"),
    ('TimeWindows(4, 2).first(np.array([1.0, float("nan")]))', f"windows(x=nan): {POINT}"),
    ("TimeWindows(4, 2).last(timedelta(1))", f"windows(x=datetime.timedelta(days=1)): {POINT}"),
    ("TimeWindows(0, 2)", f"TimeWindows(size=0): {LENGTH}"),
    ("CountWindows(4, -2)", f"CountWindows(slide=-2): {LENGTH}"),
    ("SessionWindows(0)", f"SessionWindows(gap=0): {LENGTH}"),
    ("CountWindows(4, 0.5)", f"CountWindows(slide=Fraction(1, 2)): {WHOLE}"),
    ("CountWindows(4, 2, lowest=0.5)", f"CountWindows(lowest=0.5): {WHOLE}"),
    ("SlideByTuple(4, 1.5)", f"SlideByTuple(slide=Fraction(3, 2)): {WHOLE}"),
    (
        "SessionWindows(3).mapped([0, 5, 4])",
        f"SessionWindows.mapped(values): value 2 goes back from 5 to 4, {BACK}",
    ),
    (
        "model_of(5)",
        "model_of(5): not a window. Pass a specification, such as Sliding(Count(100), "
        "every=Count(10)).",
    ),
    (
        "model_of(Sliding(Count(5), every=Count(0)))",
        "model_of(Sliding(Count(size=5), every=Count(size=0))): with a count of 0 it holds nothing "
        "or is never processed, so there are no windows to give away. Use Count(1) or more.",
    ),
    (
        'Function("linear")',
        "function_kind='linear': no kind of function. Use associative, incremental, neither.",
    ),
    ("RoundRobin(0)", "RoundRobin(workers=0): not a number of workers. Use 1 or more."),
    ("RoundRobin(2, 1.5)", "RoundRobin(batch=1.5): not a number of windows. Use 1 or more."),
    (
        "RoundRobin(2, 3).private(CountWindows(4, 2), 0)",
        "RoundRobin(2, batch=3).private(...): windows that go round in batches have no one slide. "
        "Use batch=1, or window() for each of them.",
    ),
    ("choose(high, 0)", "choose(high, workers=0): not a number of workers. Use 1 or more."),
    (
        'choose(high, 2, pattern="panes")',
        "choose(high, pattern='panes'): no such farm. Use key, window agnostic, window active, "
        'pane, window partition. Did you mean "pane"?',
    ),
    (
        "choose(high, 2, heaviest=16)",
        "choose(high, heaviest=16): not a share of the rows. Use 0 to 1, such as 0.16.",
    ),
    (
        'choose(rows, 2, pattern="window partition")',
        "WindowPartition(rows): agg.collect() is not associative, so parts of a window cannot be "
        "combined. Use KeyFarm or WindowFarm.",
    ),
]


def raised(code):
    with pytest.raises(FarmError) as caught:
        eval(code, globals())
    return caught.value


@pytest.mark.parametrize(("code", "message"), CASES, ids=[code for code, _ in CASES])
def test_a_mistake_gets_its_message(code, message):
    error = raised(code)
    assert message == str(error)
    assert isinstance(error, WindowlibError)
    assert isinstance(error, ValueError)


def raises():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                yield path, range(node.lineno, (node.end_lineno or node.lineno) + 1)


def test_every_raise_has_a_case():
    seen = set().union(*(lines_of(raised(code)) for code, _ in CASES))
    places = list(raises())
    assert len(places) > 8
    assert [] == [
        f"{path.name}:{lines.start}"
        for path, lines in places
        if not any((path, line) in seen for line in lines)
    ]
