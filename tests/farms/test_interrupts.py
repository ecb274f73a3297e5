"""An interrupt leaves a running farm before the rows, after them, or broken."""

import os
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.helpers.examples import is_thorough
from tests.helpers.interrupts import instructions, interrupted
from windowlib import Count, Sliding
from windowlib.errors import BrokenStateError
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, adaptive
from windowlib.farms.adaptive import AdaptiveFarm
from windowlib.farms.chunks import ChunkStore
from windowlib.farms.pool import CallerPool
from windowlib.farms.virtual import VirtualPool
from windowlib.operators import Aggregate, agg

EXAMPLES = 20 if is_thorough() else 6
# Between `open` and its `with`, an interrupt leaves a file to the collector, which warns.
pytestmark = [
    pytest.mark.search,
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"
    ),
]
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


def left_by(running, out, wanted):
    """What an interrupt has left: whether it goes on as wanted, or "broken"; closes the farm."""
    try:
        return rest(running, out) in wanted
    except BrokenStateError:
        with pytest.raises(BrokenStateError):
            running.snapshot()
        return "broken"
    finally:
        running.close()


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
        found.add(left_by(running, out, wanted))
    assert found <= {True, "broken"}
    assert found


# -- while a farm moves ---------------------------------------------------------------------------

MOVING = {name: FARMS[name] for name in ("keys", "windows")}
PLACES = ("caller", "trial", "starting", "workers")


class ReadyPool(VirtualPool):
    """Processes that have started."""

    ready, waited = True, 0.0

    def __init__(self, workers, setup):
        super().__init__(workers, setup, cost=lambda *_: 0.0)


@pytest.fixture
def restless(monkeypatch):
    """Farms that move with every batch, from one place to the next."""
    for name in (
        "FIRST_REVIEW",
        "EMITTER_COST",
        "PROMISING_PIECES",
        "TRIAL",
        "REVIEW_INTERVAL",
        "MIN_SPEEDUP",
        "SPARE",
    ):
        monkeypatch.setattr(adaptive, name, 0.0)
    monkeypatch.setattr(adaptive, "TRIAL_SHARE", 1e9)
    monkeypatch.setattr(adaptive, "ProcessPool", ReadyPool)
    monkeypatch.setattr(AdaptiveFarm, "_costs", lambda self: (1.0, 0.5))
    made, folders = ChunkStore.__init__, list[str]()

    def noted(self):
        made(self)
        folders.append(self.folder)

    monkeypatch.setattr(ChunkStore, "__init__", noted)
    return folders


def at(farm, place):
    """A farm that has come to a place, and will leave it with the next batch."""
    running, out = farm.open(), list[Any]()
    running.connect(0, out.append)
    numbers = iter(range(15, 90))
    running.insert_many(rows(*range(15)))
    while running.place != place:
        running.insert_batch(pa.RecordBatch.from_pylist(rows(next(numbers))))
    return running, out


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_while_a_farm_moves_loses_no_row_silently(restless, name, place):
    farm = MOVING[name]
    before = rest(*at(farm, place))
    running, out = at(farm, place)
    batch(running)
    assert running.place == PLACES[(PLACES.index(place) + 1) % len(PLACES)]
    wanted = [before, rest(running, out)]
    running, out = at(farm, place)
    total = instructions(partial(batch, running))
    running.close()
    found: set[Any] = set()
    for nth in range(1, total, max(1, total // EXAMPLES)):
        running, out = at(farm, place)
        interrupted(nth, partial(batch, running))
        found.add(left_by(running, out, wanted))
        assert not any(map(os.path.exists, restless))
    assert found <= {True, "broken"}
    assert "broken" in found


@pytest.mark.usefixtures("restless")
def test_a_farm_that_was_interrupted_goes_on_from_a_snapshot():
    farm = MOVING["windows"]
    running, out = at(farm, "caller")
    state, sent = running.snapshot(), len(out)
    running._break("deciding where to work")
    with pytest.raises(BrokenStateError, match="deciding where to work"):
        running.insert_many(rows(1))
    running.restore(state)
    assert rest(running, out)[sent:] == rest(*at(farm, "caller"))[sent:]
