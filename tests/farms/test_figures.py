"""Figures of a farm at work: how busy workers are, what waits, and how long results take."""
# ruff: noqa: SIM300 - asserts read expected first

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from windowlib import Count, Operator, OperatorModel, Tumbling
from windowlib.farms import WindowFarm, live
from windowlib.farms.adaptive import AdaptiveFarm
from windowlib.farms.figures import FarmFigures
from windowlib.farms.virtual import VirtualPool


class Total(Operator):
    model = OperatorModel(windows=[Tumbling])

    def before_flush(self, window, key):
        self.emit(total=sum(row["x"] for row in window[key]))


FARM = WindowFarm(Total(Tumbling(Count(2))), workers=2, batch=1, chunk=4, when="always")
ROWS = [{"x": x} for x in range(16)]


def opened():
    return FARM.open(pool=lambda n, setup: VirtualPool(n, setup, cost=lambda *_: 0.5))


def test_workers_that_have_no_break_are_busy():
    with opened() as run:
        run.insert_many(ROWS)
        run.drain()
        figures = run.figures()
    assert (1.0, 1.0) == figures.busy
    assert 4.0 == figures.rate  # each worker has two a second
    assert figures.latency is not None
    assert 0.5 <= figures.latency[0] <= figures.latency[1] <= 2.0
    assert (0, 0, 0) == (figures.under_way, figures.queue, figures.due)
    assert len(ROWS) == figures.rows


def test_what_is_not_done_waits():
    with opened() as run:
        run.insert_many(ROWS)
        figures = run.figures()
        assert 4 == figures.under_way
        assert figures.queue + figures.under_way == figures.due == 8
        run.drain()


def test_figures_are_told_while_it_works_and_no_more_often_than_asked():
    told: list[FarmFigures] = []
    with opened() as run:
        run.observe(told.append, every=1.0)
        run.insert_many(ROWS)
        run.drain()
    assert 2 == len(told)  # after one second and after two
    assert all(max(each.busy) == 1.0 for each in told)


def test_a_farm_in_the_caller_says_so():
    running, out = AdaptiveFarm(FARM), io.StringIO()
    assert "caller" == str(running.figures())
    live(running, out=out)
    assert "caller\n" == out.getvalue()
    running.close()


def test_other_workers_have_made_no_result_yet():
    with opened() as run:
        run.insert_many(ROWS)
        run.resize(3)
        figures = run.figures()
    assert (0.0, (0.0, 0.0, 0.0)) == (figures.rate, figures.busy)
    assert "after 500 ms (99%: 2.0 s)" in str(FarmFigures("workers", (1.0,), latency=(0.5, 2.0)))


def test_a_terminal_has_one_line_that_is_written_over():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for out, ends in ((Terminal(), "\r\x1b[K"), (io.StringIO(), "")):
        with opened() as run:
            live(run, every=1.0, out=out)
            run.insert_many(ROWS)
            run.drain()
        first, *_ = out.getvalue().splitlines() if not ends else [out.getvalue()]
        assert first.startswith(f"{ends}workers: 100% ")


def test_a_notebook_has_a_cell(monkeypatch):
    shown: list[FarmFigures] = []
    handle = SimpleNamespace(update=shown.append)
    shell: Any = ModuleType("IPython")
    shows: Any = ModuleType("IPython.display")
    shell.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})
    shows.display = lambda *_, **__: handle
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    with opened() as run:
        live(run, every=1.0)
        run.insert_many(ROWS)
        run.drain()
    assert "<th>busy</th><td>100% " in shown[0]._repr_html_()


@pytest.mark.parametrize("latency", [None, (0.001, 0.25)])
def test_what_is_unknown_is_not_said(latency):
    assert ("results/s" in str(FarmFigures("workers", (0.5,), latency=latency))) == bool(latency)
