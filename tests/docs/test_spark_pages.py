"""What pages and docstrings show that start Spark; with other tests of Spark they share its JVM."""

import runpy

import pytest

from tests.docs import test_examples
from tests.docs.test_docs import (
    ON_SPARK,
    PAGES,
    folder,
    name,
    run_docstrings,
    run_page,
    starts_spark,
)

__all__ = ["folder"]  # a fixture
SPARK = [page for page in PAGES if starts_spark(page)]
STREAMS = ("recipes.md", "spark-operations.md")
"""Those with many streams are long."""


def each(page):
    return pytest.param(page, id=name(page), marks=pytest.mark.long if page.name in STREAMS else ())


@pytest.mark.parametrize("page", [each(page) for page in SPARK])
@pytest.mark.usefixtures("folder")
def test_the_examples_of_a_page_run(page):
    text = page.read_text()
    assert text.count("```python") == run_page(text, name(page))


def test_the_pages_about_spark_are_among_them():
    assert {"spark.md", "spark-errors.md", *STREAMS} <= {page.name for page in SPARK}


@pytest.mark.parametrize("module", ON_SPARK)
def test_the_examples_in_docstrings_run(module):
    run_docstrings(module)


def test_the_docstrings_about_spark_are_among_them():
    assert "windowlib.spark.plan.attach" in ON_SPARK


def test_the_example_on_spark_prints_its_result(capsys):
    """The last one, because it stops Spark."""
    path = test_examples.ROOT / "examples" / test_examples.ON_SPARK
    runpy.run_path(str(path), run_name="__main__")
    test_examples.check_printed(test_examples.ON_SPARK, capsys.readouterr().out)
