"""One Spark session for all tests of this directory."""

import pytest

from tests.spark.killing import QUICK


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session in this process."""
    from windowlib.spark import session

    folder = str(tmp_path_factory.mktemp("spark"))
    conf = dict(setting.split("=", 1) for setting in QUICK)
    conf |= {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": folder}
    spark = session("local[2]", **{name.replace(".", "__"): v for name, v in conf.items()})
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
