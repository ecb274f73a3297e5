"""An interrupt leaves a running operator before the row, after it, or broken."""

import os
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.helpers.examples import is_thorough
from tests.helpers.interrupts import instructions, interrupted
from windowlib import Count, Event, Sliding, Tumbling
from windowlib.errors import BrokenStateError
from windowlib.operators import Aggregate, Dedup, Filter, Join, Sort, agg

pytestmark = pytest.mark.search
EXAMPLES = int(os.environ.get("INTERRUPTS", 20 if is_thorough() else 8))
OPERATORS = {
    "tumbling": Aggregate(Tumbling(Count(4), by="k"), s=agg.sum("x")),
    "sliding": Aggregate(Sliding(Count(3), every=Count(2), by="k"), s=agg.sum("x")),
    "event time": Aggregate(Tumbling(Event("x", 4), by="k", watermark=1), s=agg.sum("x")),
    "join": Join(left=Sliding(Count(3)), right=Sliding(Count(3)), on="k", how="outer"),
    "sort": Sort("x", window=Sliding(Count(3))),
    "dedup": Dedup("x", within=Count(9)),
    "graph": Filter(lambda row: row["x"] != 4).then(Aggregate(Tumbling(Count(3)), s=agg.sum("x"))),
}
operators = pytest.mark.parametrize("op", OPERATORS.values(), ids=OPERATORS)


def rows(*numbers):
    return [{"x": n, "k": n % 2} for n in numbers]


def opened(op):
    running, out = op.open(), []
    for port in range(len(running.model.outputs)):
        running.connect(port, lambda row, port=port: out.append((port, row)))
    for row in rows(5, 1, 2, 3, 5, 7):
        running.insert(row)
    return running, out


def insert(running):
    running.insert({"x": 9, "k": 1})


def batch(running):
    running.insert_batch(pa.RecordBatch.from_pylist(rows(*range(10, 310))))


def end(running):
    running.finish()


def rest(running, out):
    for row in rows(801, 803, 804, 805, 807):
        running.insert(row)
    running.finish()
    return list(out)


@operators
@pytest.mark.parametrize("change", [insert, batch])
def test_what_follows_is_as_before_or_as_after_or_refused(op, change):
    before = rest(*opened(op))
    running, out = opened(op)
    saved = running.snapshot()
    change(running)
    after = rest(running, out)
    running, out = opened(op)
    total = instructions(partial(change, running))
    found: set[Any] = set()
    for nth in range(1, total, max(1, total // EXAMPLES)):
        running, out = opened(op)
        interrupted(nth, partial(change, running))
        try:
            found.add(rest(running, out) in (before, after))
        except BrokenStateError:
            fix = r"Open the operator anew, and restore\(\) the last snapshot"
            with pytest.raises(BrokenStateError, match=fix):
                running.snapshot()
            with pytest.raises(BrokenStateError):
                running.finish()
            again, made = opened(op)
            again.restore(saved)
            assert rest(again, made) == before
            found.add("broken")
    assert found
    assert found <= {True, "broken"}


@operators
def test_the_end_of_the_input_is_told_whole_or_refused(op):
    running, _ = opened(op)
    total = instructions(partial(end, running))
    whole = rest(*opened(op)) and opened(op)
    whole[0].finish()
    for nth in range(1, total, max(1, total // EXAMPLES)):
        running, out = opened(op)
        stopped = interrupted(nth, partial(end, running))
        try:
            running.finish()
        except BrokenStateError:
            continue
        assert out == whole[1] or not stopped


def test_an_interrupt_while_it_waits_for_a_row_changes_nothing():
    running = OPERATORS["tumbling"].open()
    out: list[Any] = []
    running.connect(0, out.append)

    def source():
        yield from rows(1, 3, 5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        running.insert_many(source())
    running.insert({"x": 7, "k": 1})
    assert out == [{"k": 1, "s": 16}]
