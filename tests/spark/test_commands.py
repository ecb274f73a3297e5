"""The command line on Spark: the same rows as in this process."""
# ruff: noqa: SIM300 - asserts read expected first

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowlib import Count, Tumbling
from windowlib.operators import Aggregate, agg
from windowlib.samples import trades
from windowlib.tools.command_line import main
from windowlib.tools.commands import demo

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


COLUMNS = ["--schema", "symbol string, price double, qty bigint"]
SORT = "Sort('price', window=Sliding(Count(20)))"
HIGH = "Aggregate(Tumbling(Count(5), by='symbol', order_by='price'), high=agg.max('price'))"
BAD = b'{"qty": "many"}\n'


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    ("operator", "last", "code"),
    [(SORT, b"", 0), pytest.param(HIGH, BAD, 2, marks=pytest.mark.long)],
)
def test_a_socket_gives_the_rows_of_this_process_on_spark(
    operator, last, code, sender, monkeypatch, tmp_path, capfd
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "windowlib.tools.commands.input_files.MOST", 40
    )  # so there are two micro-batches
    text = b"".join(json.dumps(row, default=str).encode() + b"\n" for row in trades(60))
    found, said = [], []
    for place, more in (("here.jsonl", []), ("there.jsonl", ["--spark"])):
        argv = ["run", operator, "-i", sender(text + last), *COLUMNS, "-q", "-o", place, *more]
        assert code == main(argv)
        said.append(capfd.readouterr().err.rpartition("tcp://")[2].partition(", ")[2])
        rows = [json.loads(line) for line in Path(place).read_text().splitlines()]
        found.append(sorted(rows, key=lambda row: str(row["symbol"]) if code else ""))
    assert found[0] == found[1]
    assert len(found[0]) > 5
    assert said[0] == said[1]


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


@pytest.mark.usefixtures("settled")
def test_the_state_of_a_checkpoint_is_shown_and_verified(spark, tmp_path, capfd):
    pq.write_table(pa.Table.from_pylist(trades(30)), tmp_path / "trades.parquet")
    op = Aggregate(Tumbling(Count(50), by="symbol", order_by="ts"), high=agg.max("price"))
    schema = spark.read.parquet(str(tmp_path / "trades.parquet")).schema
    out = spark.readStream.schema(schema).parquet(str(tmp_path / "*.parquet")).transform(op)
    writer = out.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "chk"))
    writer.trigger(availableNow=True).start().awaitTermination()
    capfd.readouterr()
    assert 0 == main(["state", "inspect", str(tmp_path / "chk")])
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert 30 == sum(row["size"] for row in rows)
    assert {row["symbol"] for row in trades(30)} == {row["key"] for row in rows}
    assert 0 == main(["state", "verify", str(tmp_path / "chk")])
    said = capfd.readouterr().out
    assert f"0 Aggregate: {len(rows)} subwindows in " in said
    assert "The state is whole.\n" in said
    another = ["--operator", "Sort('price', window=Sliding(Count(20)))"]
    assert 1 == main(["state", "verify", str(tmp_path / "chk"), *another])
    assert "the checkpoint was written with operator=Aggregate" in capfd.readouterr().err
    chk, new = str(tmp_path / "chk"), str(tmp_path / "new")
    assert 0 == main(["state", "migrate", chk, new])
    assert "in the present format already; nothing was written" in capfd.readouterr().out
    assert 2 == main(["state", "rescale", chk, new])
    assert "nothing changes. Say --buckets or --partitions." in capfd.readouterr().err
    assert 1 == main(["state", "rescale", chk, chk, "--partitions", "3"])
    assert "the second exists already" in capfd.readouterr().err
    assert 1 == main(["state", "verify", str(tmp_path / "none")])
    assert "no checkpoint with a committed batch" in capfd.readouterr().err
