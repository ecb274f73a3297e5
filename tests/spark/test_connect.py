"""Spark Connect: the client has no Spark of its own, and the server need not have this package."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pyspark
import pytest

from tests.spark import job
from tests.spark import killed_job as killing

NEEDED = ("grpc", "grpc_status", "google.rpc", "zstandard")


def lacking() -> list[str]:
    found = []
    for name in NEEDED:
        try:
            found += [name] if find_spec(name) is None else []
        except ModuleNotFoundError:  # not even what it is in
            found.append(name)
    return found


pytestmark = pytest.mark.skipif(
    bool(lacking()), reason=f"Spark Connect needs packages that are not there: {lacking()}"
)

START = """
    import io
    import sys
    import time
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from tests.spark import job
    from windowlib.spark import Listener, progress
    from windowlib.spark.plan.validation import PROVIDER, ROCKSDB
    DefaultChannelBuilder.default_port = staticmethod(lambda: {port})
    builder = SparkSession.builder.remote("local").config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.connect.grpc.binding.port", {port})
    for setting in {quick!r}:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.config(PROVIDER, ROCKSDB).getOrCreate()
    here = Path({here!r})
    means = job.operators()["means"]
    inputs = str(here / "in0")
    static = spark.read.schema(job.SCHEMA).parquet(inputs).transform(means)
    stream = spark.readStream.schema(job.SCHEMA).option("maxFilesPerTrigger", 2).parquet(inputs)
"""


def told(directory, program, python, path=""):
    """What a client says, whose server has a certain Python and Python path."""
    with socket.create_server(("127.0.0.1", 0)) as free:  # several may run at a time
        port = free.getsockname()[1]
    start = textwrap.dedent(START).format(
        root=str(killing.ROOT), here=str(directory), quick=killing.QUICK, port=port
    )
    run = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(program)],
        cwd=directory,
        env=os.environ | {"PYSPARK_PYTHON": python, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=killing.PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    return run.stdout


streams = pytest.mark.skipif(
    pyspark.__version__.startswith("4.0."), reason="Connect of Spark 4.0 has no stateful processing"
)


@streams
def test_streams_and_static_frames_on_connect_give_the_same_rows(tmp_path):
    job.write_input(tmp_path)
    program = """
    rows = [row.asDict() for row in static.collect()]
    print("static", job.by_key(rows) == job.expected("means"))
    def write(frame, batch):
        frame.write.mode("overwrite").json(str(here / f"out-{batch}"))
    writer = stream.transform(means).writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(here / "checkpoint"))
    listener = Listener()
    spark.streams.addListener(listener)
    query = writer.trigger(availableNow=True).start()
    shown = io.StringIO()
    watched = progress(query, every=0.1, out=shown)
    made = [row for n in range(3) for row in spark.read.schema(static.schema)
            .json(str(here / f"out-{n}")).orderBy("at").collect()]
    print("stream", job.by_key([row.asDict() for row in made]) == job.expected("means"))
    print("rows", watched.rows_in, watched.batches)
    print("shown", shown.getvalue().splitlines()[-1] == watched.line())
    until = time.monotonic() + 30
    while listener.totals(query).rows_in < watched.rows_in and time.monotonic() < until:
        time.sleep(0.1)  # it is told a moment after the batch
    print("listener", listener.totals(query) == watched)
    spark.streams.removeListener(listener)  # otherwise its thread keeps the program alive
    """
    said = told(tmp_path, program, sys.executable, str(killing.ROOT))
    assert said.splitlines() == [
        "static True",
        "stream True",
        f"rows {job.FILES * job.ROWS} 3",
        "shown True",
        "listener True",
    ]


@streams
@pytest.mark.long
def test_farms_on_connect_give_the_rows_of_their_operators(tmp_path):
    job.write_input(tmp_path)
    program = """
    from windowlib.spark import attach
    def same(name, rows):
        found = sorted((row.asDict() for row in rows), key=lambda row: row["_window"])
        return job.by_key(found) == job.expected(name)
    source = spark.read.schema(job.SCHEMA).parquet(inputs)
    for name, farm in job.farms().items():
        attached = attach(farm, numbered=True)
        made = attached(source)
        print(name, "static", same(name, made.collect()))
        def write(frame, batch, name=name):
            frame.write.mode("overwrite").json(str(here / name / f"{batch}"))
        writer = attached(stream).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(here / f"checkpoint-{name}"))
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = spark.read.schema(made.schema).json(str(here / name / "*")).collect()
        print(name, "stream", same(name, rows))
    """
    said = told(tmp_path, program, sys.executable, str(killing.ROOT))
    wanted = [f"{name} {how} True" for name in job.farms() for how in ("static", "stream")]
    assert said.splitlines() == wanted


@pytest.mark.long
def test_a_server_without_the_package_runs_static_frames_and_refuses_streams(tmp_path):
    job.write_input(tmp_path)
    program = """
    from windowlib.errors import HostError
    for _ in range(2):
        try:
            stream.transform(means)
        except HostError as error:
            print(error)
        rows = [row.asDict() for row in static.collect()]
        print(job.by_key(rows) == job.expected("means"))
    """
    said = told(tmp_path, program, killing.bare_python(tmp_path))
    message = (
        "a stream on Spark Connect needs windowlib on the server, because files that a client "
        "sends do not reach streams. Run there, with the Python of its workers: "
        "pip install spl-windows"
    )
    assert said.splitlines() == [message, "True", message, "True"]


@pytest.mark.skipif(
    not pyspark.__version__.startswith("4.0."), reason="later ones have stateful processing"
)
def test_a_client_of_spark_40_refuses_streams_and_runs_static_frames(tmp_path):
    job.write_input(tmp_path)
    program = """
    from windowlib.errors import HostError
    try:
        stream.transform(means)
    except HostError as error:
        print(str(error)[:51])
    print(job.by_key([row.asDict() for row in static.collect()]) == job.expected("means"))
    """
    said = told(tmp_path, program, sys.executable, str(killing.ROOT))
    assert said.splitlines() == ["a stream on Spark Connect needs Spark 4.1 or newer;", "True"]
