"""One Spark session for all tests of this folder."""

import pytest

from tests.helpers.examples import is_thorough
from windowlib.spark import session

# What Spark and its libraries do themselves, which no user of ours can change.
THEIRS = ("ResourceWarning", "DeprecationWarning", "FutureWarning")
# What tests of joins know: they cut both inputs alike.
KNOWN = ("windowlib.errors.CutWarning",)

# Spark compiles a plan to Java, which for a few rows takes longer than to interpret it.
INTERPRETED = {
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__codegen__factoryMode": "NO_CODEGEN",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            for kind in (*THEIRS, *KNOWN):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    found = session(
        master="local[2]",
        # Those of HDFS are in tests of faults, each a program of its own.
        local_checkpoints=True,
        spark__sql__shuffle__partitions=2,
        spark__driver__memory="1g",
        spark__driver__host="127.0.0.1",
        spark__sql__streaming__metricsEnabled="false",
        spark__sql__adaptive__enabled="false",
        spark__sql__files__minPartitionNum=1,
        # A machine with other work to do starts a Python worker slowly.
        spark__python__authenticate__socketTimeout="300s",
        spark__network__timeout="600s",
        spark__sql__warehouse__dir=tmp_path_factory.mktemp("warehouse"),
        **({} if is_thorough() else INTERPRETED),
    )
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()
