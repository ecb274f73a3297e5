"""A folder with trades in every kind of file, and commands that run there."""

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from windowlib.samples import trades
from windowlib.tools.command_line import main

JOB = '''\
"""A job: an operator, and an operator of its own kind."""
from __future__ import annotations
from dataclasses import dataclass
from windowlib import Count, Operator, OperatorModel, Sliding, Tumbling
from windowlib.operators import Aggregate, agg

@dataclass
class Peak:
    symbol: str
    peak: float

class Peaks(Operator):
    model = OperatorModel(windows=[Tumbling])
    output = "symbol string, peak double"

    def before_flush(self, window, key):
        self.emit(Peak(key, max(t["price"] for t in window[key])))

vwap = Aggregate(
    Sliding(Count(100), every=Count(10), by="symbol"), vwap=agg.sum("notional") / agg.sum("qty")
)
peaks = Peaks(Tumbling(Count(50), by="symbol"))
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder: trades.csv, .jsonl and .parquet, and job.py."""
    rows = trades(300)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "trades.parquet")
    pa_csv.write_csv(table, tmp_path / "trades.csv")
    with (tmp_path / "trades.jsonl").open("w") as file:
        for row in rows:
            file.write(json.dumps(row, default=str) + "\n")
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # so that what a job adds to the path goes again
    return tmp_path


@pytest.fixture
def ran(capsys):
    """A function that runs a command that must go well, and gives what it prints."""

    def run(*argv):
        code = main(argv)
        out, err = capsys.readouterr()
        assert code == 0, err
        return out, err

    return run
