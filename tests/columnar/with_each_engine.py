"""Runs the tests of a module once with each engine that is installed."""

from importlib.util import find_spec

import pytest

from windowlib.columnar import primitives

missing = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


@pytest.fixture(
    scope="module", autouse=True, params=["numpy", pytest.param("numba", marks=missing)]
)
def engine(request):
    with primitives.use(request.param):
        yield request.param
