"""A state format is a number, raised where the state is written, and a reader of the former one."""

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
def test_another_format_refuses_the_former_or_has_a_reader_for_it(module, monkeypatch):
    former, old, new = stopped(), module.VERSION, module.VERSION + 1
    monkeypatch.setattr(module, "VERSION", new)
    monkeypatch.setattr(module, "READERS", {new: dict})
    assert list(replay(OP, ROWS))[1:] == rest(stopped())
    with pytest.raises(StateVersionError, match=f"format {old}, this version reads {new}"):
        rest(former)
    monkeypatch.setattr(module, "READERS", {old: lambda state: {**state, "v": new}, new: dict})
    assert list(replay(OP, ROWS))[1:] == rest(former)
