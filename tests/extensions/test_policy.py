"""Every policy stands in the tables that docs/contributing.md names, and answers all questions."""

import pytest

from windowlib import Count, Tumbling, replay
from windowlib.operators import Aggregate, agg
from windowlib.spec import policies
from windowlib.spec.order import SLIDING_ORDER, TUMBLING_ORDER, Step

POLICIES = {
    kind.__name__: kind
    for kind in vars(policies).values()
    if isinstance(kind, type) and hasattr(kind, "punctuated") and hasattr(kind, "kind")
}


def test_there_are_policies_to_look_at():
    assert {"Count", "Delta", "Time", "Punct", "Either"} <= set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_the_order_of_its_steps_is_in_the_tables(name):
    kind = POLICIES[name].kind
    assert Step.INSERT in TUMBLING_ORDER[kind]
    slides = {kind for pair in SLIDING_ORDER for kind in pair}
    assert kind in slides or kind in {"punct", "either"}, "it closes tumbling windows alone"


class Dozens(Count):
    """So many times twelve tuples: a policy that answers the question `tuples` in its own way."""

    __slots__ = ()

    @property
    def tuples(self):
        return 12 * self.size


def test_a_policy_that_answers_a_known_question_needs_no_engine_of_its_own():
    op = Aggregate(Tumbling(Dozens(2)), n=agg.count(), last=agg.last("x"))
    rows = list(replay(op, [{"x": i} for i in range(50)]))
    assert rows == [{"n": 24, "last": 23}, {"n": 24, "last": 47}]
