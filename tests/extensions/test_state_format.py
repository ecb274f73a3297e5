"""A state format is a number: raised where the state is written, known to nobody else."""

import pytest

from windowlib import Count, StateVersionError, Tumbling, replay
from windowlib.operators import Aggregate, agg
from windowlib.runtime import running
from windowlib.window import snapshot

OP = Aggregate(Tumbling(Count(3)), total=agg.sum("x"))
ROWS = [{"x": i} for i in range(6)]


def stopped():
    first = OP.open()
    first.insert_many(ROWS[:4])
    return first.snapshot()


def rest(state):
    got: list[dict[str, int]] = []
    second = OP.open()
    second.connect(0, got.append)
    second.restore(state)
    second.insert_many(ROWS[4:])
    return got


@pytest.mark.parametrize("module", [snapshot, running], ids=["windows", "operators"])
def test_another_format_reads_what_it_wrote_and_refuses_the_former(module, monkeypatch):
    former = stopped()
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    assert list(replay(OP, ROWS))[1:] == rest(stopped())
    known = f"format {module.VERSION - 1}, this version reads {module.VERSION}"
    with pytest.raises(StateVersionError, match=known):
        rest(former)
