"""The way of one Arrow batch through the library: how many modules, and how often it is checked."""
# ruff: noqa: SIM300 - asserts read expected first

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.columnar.with_each_engine import engine  # noqa: F401 - a fixture that all tests use
from windowlib import Count, Tumbling
from windowlib.operators import Aggregate, agg

ROOT = Path(__file__).parents[2]
ROOMS = [str(ROOT / name) for name in ("windowlib", "operators")]


def walk(call):
    """The module and the name of each function of the library that a call enters, in order."""
    entered: list[tuple[str, str]] = []

    def note(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(tuple(ROOMS)):
            entered.append((file, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


def batch(rng):
    return pa.record_batch({"k": rng.integers(0, 50, 4096), "x": rng.random(4096)})


def mean_by_key():
    """The way of a batch into a running mean by key, after others have come."""
    running, rng = Aggregate(Tumbling(Count(10), by="k"), m=agg.mean("x")).open(), _rng()
    for _ in range(3):
        running.process_batch(batch(rng))
    found = []
    last = batch(rng)
    way = walk(lambda: found.append(running.process_batch(last)))
    assert 300 < found[0].num_rows < 500
    return way


def _rng():
    return np.random.default_rng(1)


def test_a_batch_is_checked_once():
    checks = [name for _, name in mean_by_key() if name == "columns_of"]
    assert ["columns_of"] == checks


def test_a_batch_crosses_few_modules():
    files = [file for file, _ in mean_by_key()]
    assert 15 < len(set(files)) <= 22
    switches = sum(one != other for one, other in pairwise(files))
    assert 50 < switches <= 100
