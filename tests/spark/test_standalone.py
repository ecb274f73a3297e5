"""The script of docs/clusters.md: a standalone cluster from the pip package, and `--py-files`."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pyarrow.parquet as pq
import pytest

from tests.spark import job
from tests.spark import killed_job as killing
from windowlib import Count, Sliding, replay
from windowlib.operators import Aggregate, agg
from windowlib.spark.deployment import archive

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from windowlib.spark.plan.validation import PROVIDER, ROCKSDB
from windowlib import Count, Sliding
from windowlib.operators import Aggregate, agg
import windowlib

folder, schema = sys.argv[1:]
spark = SparkSession.builder.config(PROVIDER, ROCKSDB).config("spark.sql.shuffle.partitions", 2)
spark = spark.getOrCreate()
assert ".zip" in windowlib.__file__, windowlib.__file__
stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(f"{folder}/in0")
window = Sliding(Count(5), every=Count(2), by="k", order_by="ts")
sums = Aggregate(window, n=agg.count(), v=agg.sum("v"))
query = stream.transform(sums).writeStream.format("json").option("path", f"{folder}/out").option(
    "checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
for row in spark.read.json(f"{folder}/out").collect():
    print("row", row.k, row.n, row.v)
"""


def test_the_archive_holds_the_package_and_can_be_written_anywhere(tmp_path):
    command = [sys.executable, "-m", "windowlib.spark.deployment", str(tmp_path / "w.zip")]
    ran = subprocess.run(command, cwd=killing.ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(tmp_path / "w.zip")]
    names = zipfile.ZipFile(tmp_path / "w.zip").namelist()
    assert {"windowlib/__init__.py", "windowlib/operators/agg.py"} <= set(names)
    code = "from windowlib.spark.deployment import archive; print(archive())"
    env = os.environ | {"PYTHONPATH": str(tmp_path / "w.zip")}
    ran = subprocess.run(
        [killing.bare_python(tmp_path), "-c", code],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == [str(tmp_path / "w.zip")]  # itself, and not an empty one


@pytest.mark.long
def test_a_standalone_cluster_runs_a_job_that_is_submitted_with_the_archive(tmp_path):
    job.write_input(tmp_path)
    (tmp_path / "job.py").write_text(PROGRAM)
    env = os.environ | {
        "PYSPARK_PYTHON": killing.bare_python(tmp_path),
        "WINDOWLIB_ZIP": str(archive(tmp_path / "windowlib.zip")),
    }
    script = killing.ROOT / "examples" / "standalone.sh"
    env.pop("PYTHONPATH", None)
    ran = subprocess.run(
        [script, tmp_path / "job.py", tmp_path, job.SCHEMA],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-5000:]
    window = Sliding(Count(5), every=Count(2), by="k", order_by="ts")
    files = sorted((tmp_path / "in0").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    sums = Aggregate(window, n=agg.count(), v=agg.sum("v"))
    want = sorted(f"row {row['k']} {row['n']} {row['v']}" for row in replay(sums, rows))
    assert sorted(line for line in ran.stdout.splitlines() if line.startswith("row ")) == want
