"""The pytest plugin: an option and four fixtures, which load nothing until they are used.

The names of the fixtures begin with `windowlib_`, because every project that installs the library
gets them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowlib.window.clock import HandClock

# What Spark and its libraries do themselves, which no test of an operator can change.
SPARK_WARNINGS = ("ResourceWarning", "DeprecationWarning", "FutureWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    group = parser.getgroup("windowlib")
    group.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files of windowlib.testing instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Pass the option on to `assert_golden`, which may be called without a fixture."""
    if config.getoption("--update-golden"):
        _set_update(True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Reset the option for later runs in the same process."""
    if config.getoption("--update-golden"):
        _set_update(False)


def _set_update(asked: bool) -> None:
    from windowlib.testing.transcripts import update_all

    update_all(asked)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests on Spark pass where warnings are errors."""
    for item in items:
        if "windowlib_spark" in getattr(item, "fixturenames", ()):
            for kind in SPARK_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))


@pytest.fixture
def windowlib_clock() -> HandClock:
    """A clock at 0 that the test moves with `advance("3s")`; call it for the time in seconds."""
    from windowlib.window.clock import HandClock

    return HandClock()


@pytest.fixture
def windowlib_script() -> Callable[..., Any]:
    """The function `windowlib.testing.script`."""
    from windowlib.testing.scripts import script

    return script


@pytest.fixture
def windowlib_golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that compares a text with `golden/<module>.<test>.txt` beside the test's file.

    Given a name as its second argument, the file has that too: `windowlib_golden(text, "late")`.
    """
    from windowlib.testing.transcripts import assert_golden

    def compare(text: str, name: str = "") -> None:
        __tracebackhide__ = True
        path, parts = request.path, [request.path.stem, request.node.name, *([name] * bool(name))]
        file = re.sub(r"[^\w.\-]+", "_", ".".join(parts))
        assert_golden(text, path.parent / "golden" / f"{file}.txt")

    return compare


@pytest.fixture(scope="session")
def windowlib_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session in this process, one for all tests; they are skipped where there is none."""
    if find_spec("pyspark") is None:
        pytest.skip('PySpark is not installed: pip install "spl-windows[spark]"')
    from windowlib.errors import HostError
    from windowlib.spark import session
    from windowlib.spark.session import check_java

    try:
        check_java()
    except HostError as error:
        pytest.skip(str(error))
    found = session(
        master="local[2]",
        spark__sql__shuffle__partitions=2,
        spark__driver__host="127.0.0.1",
        spark__sql__warehouse__dir=tmp_path_factory.mktemp("warehouse"),
    )
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()
