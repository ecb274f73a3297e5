"""`make test` and `make test-more` run all of their parts, also if one of them fails."""
# ruff: noqa: SIM300 - asserts read expected first

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case "$*" in *"$BROKEN"*) exit 1;; esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def make(tmp_path):
    """Runs make with tools that only write down how they are called; one of them may fail."""
    log, tools = tmp_path / "log", tmp_path / "venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("python", "ruff", "mypy"):
        (tools / name).write_text(STUB)
        (tools / name).chmod(0o755)
    (tools.parent / ".installed").touch()

    def run(target, broken="nothing is broken"):
        log.write_text("")
        clean = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        done = subprocess.run(
            ["make", "-C", str(ROOT), target, f"VENV={tools.parent}"],
            env={**clean, "LOG": str(log), "BROKEN": broken},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return done.returncode, sorted(log.read_text().splitlines())

    return run


PARTS = (
    *("tests/spark ", "tests/spark/test_recovery.py", "tests/columnar", "tests/operators"),
    *("tests/window", "--ignore=tests/columnar"),
)


def test_every_part_runs_once(make):
    code, called = make("test")
    assert 0 == code
    assert ["mypy ", "ruff check .", "ruff format --check ."] == [
        call for call in called if not call.startswith("python")
    ]
    tests = [call for call in called if "pytest" in call]
    assert len(PARTS) == len(tests)
    for part in PARTS:
        assert 1 == sum(f" {part}" in call for call in tests)
    assert all("not long" in call for call in tests)


def test_the_long_parts_draw_all_examples(make):
    code, called = make("test-more")
    assert 0 == code
    tests = [call for call in called if "pytest" in call]
    assert len(PARTS) == len(tests)
    assert all("--hypothesis-profile=thorough" in call for call in tests)
    assert 1 == sum("tests.soak" in call for call in called)


@pytest.mark.parametrize("broken", ["check .", "tests/columnar"])
def test_a_part_that_fails_lets_the_others_run(make, broken):
    _, whole = make("test")
    code, called = make("test", broken)
    assert code
    assert whole == called


def test_what_comes_after_a_failure_runs_too(make):
    code, called = make("test-all", "check .")
    assert code
    assert any("--hypothesis-profile=thorough" in call for call in called)
