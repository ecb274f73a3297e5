"""The plugin in a project of its own: pytest runs there, in a process of its own."""
# ruff: noqa: SIM300 - asserts read expected first

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from windowlib.testing import plugin

ROOT = Path(__file__).parents[2]
OP = """
from windowlib.operators import Aggregate, agg
from windowlib import Count, Tumbling
from windowlib.testing import transcript
pairs = Aggregate(Tumbling(Count(2)), total=agg.sum("x"))
rows = [{"x": 1}, {"x": 2}]
"""
GOLDEN = OP + "def test_it(windowlib_golden):\n    windowlib_golden(transcript(pairs, rows))\n"


@pytest.fixture
def project(tmp_path):
    """Runs pytest on a test file, with the plugin and nothing else; gives how it ended."""

    def run(code, *flags, **env):
        (tmp_path / "test_mine.py").write_text(code)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "WINDOWLIB"))}
        # Named here, because it may not be installed as an entry point yet.
        plugin = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
        options = ["-p", "windowlib.testing.plugin", "-p", "no:cacheprovider", "-W", "error"]
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-rs", *options, *flags],
            cwd=tmp_path,
            env={**clean, **plugin, **env},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


def test_the_entry_point_is_the_plugin():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {"windowlib": "windowlib.testing.plugin"} == told["project"]["entry-points"]["pytest11"]


def test_every_fixture_has_the_prefix():
    fixtures = re.findall(r"@pytest\.fixture.*\ndef (\w+)", Path(plugin.__file__).read_text())
    assert 4 == len(fixtures)
    assert all(name.startswith("windowlib_") for name in fixtures)


def test_a_clock_and_a_script_are_at_hand(project):
    code = OP + (
        "def test_clock(windowlib_clock):\n"
        "    assert windowlib_clock() == 0\n"
        "    assert windowlib_clock.advance('3s') == windowlib_clock.now == 3\n"
        "def test_script(windowlib_script):\n"
        "    windowlib_script(pairs).rows(*rows).expect({'total': 3})\n"
        "def test_broken(windowlib_script):\n"
        "    windowlib_script(pairs).rows(*rows).expect({'total': 4})\n"
    )
    done = project(code)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "expected  {'total': 4}" in done.stdout


def test_golden_files_are_made_kept_and_compared(project, tmp_path):
    path = tmp_path / "golden" / "test_mine.test_it.txt"
    missing = project(GOLDEN)
    assert "there is no such golden file" in missing.stdout, missing.stdout + missing.stderr
    assert 0 == project(GOLDEN, "--update-golden").returncode
    assert "{'total': 3}" in path.read_text()
    assert 0 == project(GOLDEN).returncode
    path.write_text(path.read_text().replace("3", "4"))
    changed = project(GOLDEN)
    assert 1 == changed.returncode
    assert "+0  out    {'total': 3}" in changed.stdout
    assert 0 == project(GOLDEN, WINDOWLIB_UPDATE_GOLDEN="1").returncode
    assert "{'total': 3}" in path.read_text()


def test_a_second_text_of_a_test_has_a_name_and_the_option_reaches_plain_calls(project, tmp_path):
    code = OP + (
        "from windowlib.testing import assert_golden\n"
        "def test_it(windowlib_golden):\n"
        "    windowlib_golden('one', 'a b')\n"
        "    assert_golden('two', 'plain.txt')\n"
    )
    assert 0 == project(code, "--update-golden").returncode
    assert "one\n" == (tmp_path / "golden" / "test_mine.test_it.a_b.txt").read_text()
    assert "two\n" == (tmp_path / "plain.txt").read_text()


def test_without_java_tests_on_spark_are_skipped_and_say_why(project, tmp_path):
    code = "def test_it(windowlib_spark):\n    raise AssertionError\n"
    done = project(code, JAVA_HOME=str(tmp_path))
    assert "1 skipped" in done.stdout, done.stdout + done.stderr
    assert "Spark needs Java 17 or newer" in done.stdout


def test_without_pyspark_tests_on_spark_are_skipped_and_say_why(project, tmp_path):
    hide = "import sys\nsys.modules['pyspark'] = None\n"
    finder = (
        "import importlib.util as u\n"
        "import windowlib.testing.plugin as p\n"
        "p.find_spec = lambda name: None\n"
    )
    (tmp_path / "conftest.py").write_text(hide + finder)
    done = project("def test_it(windowlib_spark):\n    raise AssertionError\n")
    assert "1 skipped" in done.stdout, done.stdout + done.stderr
    assert "PySpark is not installed" in done.stdout


def test_a_run_that_uses_no_fixture_loads_nothing(project):
    code = (
        "import sys\n"
        "def test_it():\n"
        "    kit = {m for m in sys.modules if m.startswith('windowlib.testing')}\n"
        "    assert kit == {'windowlib.testing', 'windowlib.testing.plugin'}\n"
        "    assert not {'numpy', 'pyarrow', 'pyspark', 'hypothesis'} & set(sys.modules)\n"
    )
    done = project(code)
    assert 0 == done.returncode, done.stdout + done.stderr
