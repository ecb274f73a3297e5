"""A farm that is killed, or that finds its memory full: nothing stays behind, no row is lost."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windowlib.farms.chunks import LOCK, ChunkStore, remove_orphans

PROGRAM = [sys.executable, "-W", "ignore", "-m", "tests.farms.farm_process"]


def gone(path, seconds=60):
    """Whether a folder is removed, sooner or later."""
    end = time.monotonic() + seconds
    while os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.05)
    return not os.path.exists(path)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_in_shared_memory_when_the_parent_is_killed(how):
    with subprocess.Popen([*PROGRAM, "hang"], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        folder, *workers = program.stdout.readline().split()
        assert os.listdir(folder)
        assert len(workers) == 2
        program.send_signal(how)
        program.wait()
        assert gone(folder)
        assert all(gone(f"/proc/{worker}") for worker in workers)


def test_what_a_parent_leaves_that_is_killed_with_its_workers_is_removed_by_the_next(tmp_path):
    with subprocess.Popen([*PROGRAM, "hang"], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        folder, *workers = program.stdout.readline().split()
        for pid in [*map(int, workers), program.pid]:
            os.kill(pid, signal.SIGSTOP)  # so that none of them can remove anything
        remove_orphans(Path(folder).parent)
        assert os.path.exists(folder)  # it lives
        for pid in [*map(int, workers), program.pid]:
            os.kill(pid, signal.SIGKILL)
        program.wait()
    ChunkStore().close()
    assert gone(folder)


def test_folders_of_others_are_left_alone(tmp_path):
    with ChunkStore() as chunks:
        remove_orphans(Path(chunks.folder).parent)
        assert os.listdir(chunks.folder) == [LOCK]


@pytest.fixture(scope="module")
def small_memory():
    """A command in front of others that gives them 4 MiB of shared memory."""
    mount = 'mount -t tmpfs -o size=4m tmpfs /dev/shm && exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"]).returncode:
        pytest.skip("file systems cannot be mounted here")
    return command


def test_rows_that_do_not_fit_into_shared_memory_go_to_disk(small_memory, tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    found = subprocess.run(
        [*small_memory, *PROGRAM, "full"], env=env, capture_output=True, text=True, check=True
    )
    assert found.stdout == "3200 []\n"
    assert not os.listdir(tmp_path)


def test_rows_that_fit_nowhere_are_an_error_and_again_at_the_end():
    found = subprocess.run(
        [*PROGRAM, "nowhere"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    first, second = found.stdout.splitlines()
    assert first == second
    assert "rows cannot be written for the workers" in first
