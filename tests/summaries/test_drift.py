"""Sums, means and variances that slide never drift, whatever comes and leaves."""

import math
import operator
import random
from itertools import islice

import pytest

from tests.soak.drift import STREAMS, TOLERANCE, WINDOWS, slide
from windowlib import Count, Tumbling, replay
from windowlib.operators import Aggregate, agg

SLIDES = 200_000


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("size", [3, 50, 200])
def test_every_window_has_the_sum_of_its_values(stream, kind, size):
    # Long windows hold rare values for long; tests.soak.drift, in `make test-more`, slides further.
    slides = SLIDES // 36 if size > 100 else SLIDES // 120
    found = slide(stream, kind, size, slides)
    assert found.slides >= 2 * slides
    assert found.worst <= TOLERANCE
    assert found.strict > 0.5 * found.slides  # else the comparison says little


@pytest.mark.parametrize("stream", STREAMS)
def test_a_sum_that_subtracts_what_leaves_would_be_found_out(stream):
    drifting = agg.custom(float, operator.add, column=0, inverse=operator.sub)
    with pytest.raises(AssertionError):
        slide(stream, "two stacks, delta", 50, 20_000, total=drifting)


@pytest.mark.parametrize("stream", ["cancelling", "wide"])
def test_long_tumbling_windows_have_the_sum_of_their_values(stream):
    values = list(islice(STREAMS[stream](random.Random(1)), 60_000))
    calm = [x for x in values if abs(x) < 1e100]
    op = Aggregate(Tumbling(Count(10_000)), s=agg.sum(0), m=agg.mean(0))
    got = list(replay(op, [(x,) for x in calm]))
    assert len(calm) // 10_000 == len(got)
    for i, row in enumerate(got):
        exact = math.fsum(calm[10_000 * i : 10_000 * (i + 1)])
        assert math.isclose(exact, row["s"], rel_tol=TOLERANCE)
        assert math.isclose(exact / 10_000, row["m"], rel_tol=TOLERANCE)
