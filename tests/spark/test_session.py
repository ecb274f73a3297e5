"""What `session()` starts: Java, and workers that load PySpark as it is installed."""
# ruff: noqa: SIM300 - asserts read expected first

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windowlib.spark.session import compiled_pyspark

PROGRAM = """
import os
from windowlib.spark import session

def origin(batches):
    import pyarrow as pa, pyspark
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"at": [pyspark.__file__]})

spark = session("local[1]", spark__ui__enabled="false")
print(os.environ.get("SPARK_HOME"))
print(spark.range(1).mapInArrow(origin, "at string").first()["at"])
"""


@pytest.fixture
def pip(monkeypatch):
    """A program that knows no other Spark than that of pip."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


def test_java_starts_from_a_home_of_spark_without_python(pip):
    with compiled_pyspark("local[2]"):
        home = Path(os.environ["SPARK_HOME"])
        assert {"bin", "jars"} <= {part.name for part in home.iterdir()}
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in os.environ
    with compiled_pyspark("local-cluster[1,1,1024]"):
        assert str(home) == os.environ["SPARK_HOME"]  # one for all sessions of a process


@pytest.mark.parametrize(
    ("name", "value"),
    [("SPARK_HOME", "/opt/spark"), ("PYSPARK_PYTHON", "/usr/bin/another-python")],
)
def test_a_spark_or_a_python_of_ones_own_stays(pip, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with compiled_pyspark("local[*]"):
        assert before == dict(os.environ)


def test_workers_of_a_cluster_have_a_spark_of_their_own(pip):
    with compiled_pyspark("spark://host:7077"):
        assert "SPARK_HOME" not in os.environ


@pytest.mark.long
def test_workers_load_pyspark_as_it_is_installed(pip, tmp_path):
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    home, at = found.stdout.split()
    assert home == "None"
    assert ".zip" not in at
    assert [] == list(tmp_path.glob("windowlib-spark-*"))
