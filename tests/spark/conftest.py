import pytest


@pytest.fixture(scope="session")
def spark():
    from windowlib.spark import session

    spark = session(
        master="local[2]",
        spark__sql__shuffle__partitions=2,
        spark__driver__memory="1g",
    )
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
