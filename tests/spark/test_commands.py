"""The command line on Spark: the same rows as in this process."""
# ruff: noqa: SIM300 - asserts read expected first

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowlib import demo
from windowlib.cli import main
from windowlib.samples import trades

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture
def settled(spark):
    """The session of all tests, which keeps its setting whatever a command says."""
    before = spark.conf.get(PARTITIONS)
    yield spark
    spark.conf.set(PARTITIONS, before)


@pytest.mark.usefixtures("settled")
def test_run_gives_the_rows_of_this_process_on_spark(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.Table.from_pylist(trades(300)), "trades.parquet")
    operator = "Aggregate(Tumbling(Count(50), by='symbol', order_by='ts'), high=agg.max('price'))"
    found = {}
    for place, more in (("here.jsonl", []), ("there.jsonl", ["--spark"])):
        argv = ["run", operator, "--input", "trades.parquet", "--output", place, *more]
        assert 0 == main(argv), capfd.readouterr().err
        rows = [json.loads(line) for line in Path(place).read_text().splitlines()]
        found[place] = sorted(rows, key=lambda row: str(row["symbol"]))
    assert found["here.jsonl"] == found["there.jsonl"]
    assert len(found["here.jsonl"]) > 1
    assert f"300 rows in, {len(rows)} rows out\n" in capfd.readouterr().err


@pytest.mark.usefixtures("settled")
def test_the_demonstration_agrees_with_spark_and_shows_how_it_goes(monkeypatch, capsys):
    monkeypatch.setattr(demo, "TRADES", 400)
    monkeypatch.setattr(demo, "FILES", 1)
    monkeypatch.setattr(demo, "CODE", demo.CODE.replace("trades(5000)", "trades(400)"))
    assert 0 == main(["demo", "--spark"])
    out = capsys.readouterr().out
    assert "\nbatch 1: 400 in, " in out
    last = out.splitlines()[-1]
    assert last.startswith("plain Python, columnar and Spark agree: ")
    same, _, total = last.removesuffix(" rows").rpartition(" ")[2].partition("/")
    assert same == total != "0"
    assert all(len(line) <= 80 for line in out.splitlines())
