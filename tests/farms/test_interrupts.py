"""An interrupt leaves a running farm before the rows, after them, or broken."""

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.helpers.examples import is_thorough
from tests.helpers.interrupts import instructions, interrupted
from windowlib import Count, Sliding
from windowlib.errors import BrokenStateError
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm
from windowlib.farms.pool import CallerPool
from windowlib.operators import Aggregate, agg

EXAMPLES = 40 if is_thorough() else 6
WINDOW = Sliding(Count(6), every=Count(3), by="k")
FARMS = {
    "keys": KeyFarm(Aggregate(WINDOW, s=agg.sum("x")), workers=2),
    "windows": WindowFarm(Aggregate(WINDOW, s=agg.median("x")), workers=2),
    "panes": PaneFarm(Aggregate(WINDOW, s=agg.sum("x")), workers=2),
}


def rows(*numbers):
    return [{"x": n, "k": n % 2} for n in numbers]


def opened(farm):
    running, out = farm.running(0, pool=CallerPool, workers=1), list[Any]()
    running.connect(0, out.append)
    running.insert_many(rows(*range(15)))
    running.drain()
    return running, out


def insert(running):
    running.insert({"x": 90, "k": 1})


def batch(running):
    running.insert_batch(pa.RecordBatch.from_pylist(rows(*range(100, 140))))


def drain(running):
    running.insert_many(rows(50, 51, 52))
    running.drain()


def rest(running, out):
    running.insert_many(rows(801, 803, 804, 805, 807))
    running.finish()
    return list(out)


@pytest.mark.parametrize("name", FARMS)
@pytest.mark.parametrize("change", [insert, batch, drain])
def test_what_follows_is_as_before_or_as_after_or_refused(name, change):
    farm = FARMS[name]
    before = rest(*opened(farm))
    running, out = opened(farm)
    change(running)
    wanted = [before, rest(running, out)]
    for some in (1, 2):  # of three rows that are inserted one after the other
        running, out = opened(farm)
        running.insert_many(rows(50, 51, 52)[:some])
        wanted.append(rest(running, out))
    running, out = opened(farm)
    total = instructions(partial(change, running))
    running.close()
    found: set[Any] = set()
    for nth in range(1, total, max(1, total // EXAMPLES)):
        running, out = opened(farm)
        interrupted(nth, partial(change, running))
        try:
            found.add(rest(running, out) in wanted)
        except BrokenStateError:
            found.add("broken")
            with pytest.raises(BrokenStateError):
                running.snapshot()
        running.close()
    assert found <= {True, "broken"}
    assert found
