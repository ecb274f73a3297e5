"""Every mistake with a workload gets a message: the argument, its value, the reason and the fix."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import datetime  # noqa: F401 - named in the table
from pathlib import Path

import pytest

import windowlib
from tests.helpers.raise_sites import raised, raises_in, unreached
from windowlib import WindowlibError, WorkloadError
from windowlib.workload import *  # noqa: F403

PACKAGE = Path(windowlib.__file__).parent / "workload"

CASES = [
    ("Poisson(0)", "Poisson(rate)=0: not a number that fits. Use more than 0."),
    ('Steady("5")', "Steady(rate)='5': not a number that fits. Use more than 0."),
    ('Poisson(float("inf"))', "Poisson(rate)=inf: not a number that fits. Use more than 0."),
    ("Map2(10, 1)", "Map2(dispersion)=1: not a number that fits. Use more than 1."),
    (
        "Map2(10, 3)",
        "Map2(dispersion=3): with factor=4 the state would have to change more than once an "
        "arrival. Use 4.6 or more, or a smaller factor, or Poisson for 1.",
    ),
    ("Poisson(5).arrivals(-1)", "n=-1: not a whole number that fits. Use 0 or more."),
    ("Poisson(5).arrivals(2.5)", "n=2.5: not a whole number that fits. Use 0 or more."),
    ("Poisson(5).arrivals(5, seed=-1)", "seed=-1: not a whole number that fits. Use 0 or more."),
    ("Poisson(5).stream(5, chunk=0)", "chunk=0: not a whole number that fits. Use 1 or more."),
    (
        'Delays("normal", 1)',
        "Delays(kind='normal'): no such delays. Use Delays.constant, uniform, exponential or "
        "heavy.",
    ),
    (
        "Delays.uniform(-1)",
        "Delays(mean)=-1: not a number that fits. Use no less than 0.",
    ),
    (
        "Delays.heavy(stragglers=2)",
        "Delays(stragglers)=2: not a share of the whole. Use 0 to 1, such as 0.16.",
    ),
    (
        "Delays.heavy(longest=1)",
        "Delays(longest)=1: not a number that fits. Use no less than 2.",
    ),
    (
        'Points("random", 2)',
        "Points(kind='random'): no such points. Use one of correlated, independent, "
        "anticorrelated.",
    ),
    (
        "Points.correlated(0)",
        "Points(dims)=0: not a whole number that fits. Use 1 or more.",
    ),
    (
        "Keys.heaviest(4, 0.1)",
        "Keys(p_max=0.1): less than the share of each of 4 keys. Use 0.25 or more.",
    ),
    (
        "tuples([[1.0]])",
        "tuples(arrivals): not a row of times. Use a flat array of finite numbers, in seconds.",
    ),
    (
        'dispersion_of([1.0, float("nan")])',
        "dispersion_of(arrivals): not a row of times. Use a flat array of finite numbers, in "
        "seconds.",
    ),
    (
        "dispersion_of([1.0, 3.0, 2.0])",
        "dispersion_of(arrivals): time 2 goes back from 3 to 2. Sort it first.",
    ),
    (
        "dispersion_of([1.0, 3.0])",
        "dispersion_of(arrivals): 2 arrivals in 2 seconds are too few to count. Use 200 or more, "
        "at different times.",
    ),
    (
        "dispersion_of([])",
        "dispersion_of(arrivals): 0 arrivals in 0 seconds are too few to count. Use 200 or more, "
        "at different times.",
    ),
    (
        "dispersion_of([1.0] * 500)",
        "dispersion_of(arrivals): 500 arrivals in 0 seconds are too few to count. Use 200 or more, "
        "at different times.",
    ),
    (
        "tuples([1.0], start=datetime(2024, 1, 1))",
        "start=datetime.datetime(2024, 1, 1, 0, 0): without a time zone it is no instant. Add "
        "tzinfo=UTC.",
    ),
    (
        'quotes(5, symbols="IBM")',
        'symbols=\'IBM\': no symbols. Use a number, or names such as ["IBM", "MSFT"].',
    ),
    (
        "quotes(5, symbols=[])",
        'symbols=[]: no symbols. Use a number, or names such as ["IBM", "MSFT"].',
    ),
]


@pytest.mark.parametrize(("code", "message"), CASES, ids=[code for code, _ in CASES])
def test_a_mistake_gets_its_message(code, message):
    error = raised(code, globals(), WorkloadError)
    assert message == str(error)
    assert isinstance(error, WindowlibError)
    assert isinstance(error, ValueError)


def test_every_raise_has_a_case():
    places = list(raises_in(PACKAGE))
    assert len(places) > 8
    assert [] == unreached(places, [raised(code, globals(), WorkloadError) for code, _ in CASES])
