"""A cluster of two executors, which are processes of their own, and die."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.spark import job
from tests.spark import killed_job as killing

MASTER = "local-cluster[2,1,1024]"
EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "pyspark.daemon"


@contextmanager
def cluster(directory, *args):
    """The program on a cluster whose executors have the package only if it is sent to them."""
    env = {
        "PYSPARK_PYTHON": killing.bare_python(directory),
        "SPARK_HOME": killing.spark_home(directory),
    }
    options = ("--conf", "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1")
    with killing.started(directory, "--master", MASTER, *options, *args, **env) as process:
        yield process


@pytest.mark.long
def test_executors_and_workers_that_die_and_tasks_that_fail_change_nothing(tmp_path):
    job.write_input(tmp_path)
    out, marker = tmp_path / "out" / "peaks", tmp_path / "failed"

    def batches(number):
        return lambda: len(list(out.glob("*.json"))) >= number

    executors: list[int] = []

    def two():  # one that is about to start a program looks like two for a moment
        executors[:] = killing.below(process.pid, EXECUTOR)
        return len(executors) == 2

    farms = ("middles", "actives", "slices")
    only = ",".join(("peaks", *farms))
    with cluster(tmp_path, "--only", only, "--fail", str(marker)) as process:
        assert killing.until(process, batches(1)), killing.log_of(tmp_path)
        assert killing.until(process, two), killing.log_of(tmp_path)
        killing.kill(executors[0])
        assert killing.until(process, batches(3)), killing.log_of(tmp_path)
        workers = killing.below(process.pid, WORKER)
        assert workers
        killing.kill(*workers)
        assert killing.ends(process) == 0, killing.log_of(tmp_path)
    assert marker.exists()
    killing.check(tmp_path, only="peaks")
    for name in farms:
        assert job.written(tmp_path, name) == job.expected(name), name
