"""The flights that left New York in 2013, and the weather there."""

from tests.spark.conftest import pytest_collection_modifyitems, spark

__all__ = ["pytest_collection_modifyitems", "spark"]
