import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from windowlib.spark import session

    spark = session(
        master="local[2]",
        spark__sql__shuffle__partitions=2,
        spark__driver__memory="1g",
        spark__sql__warehouse__dir=tmp_path_factory.mktemp("warehouse"),
    )
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
