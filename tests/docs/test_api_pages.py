"""The reference of the site has every public name, once."""
# ruff: noqa: SIM300 - asserts read expected first

import importlib
import pkgutil
import re
from collections import Counter
from pkgutil import resolve_name
from types import ModuleType

import pytest

import windowlib
from docs.api_pages import PAGES, api_pages
from tests.docs.test_docs import HAS_SPARK, ROOT, only_spark

DIRECTIVE = re.compile(r"^::: (\S+)\n    options:\n      heading: (\S+)$", re.MULTILINE)
pytestmark = pytest.mark.skipif(not HAS_SPARK, reason="a part of the reference is that of Spark")
INSIDE = {
    "windowlib.columnar.primitives": "loops over arrays, which windowlib itself calls",
}
"""Packages with `__all__` that are no part of the interface."""


@pytest.fixture(scope="module")
def directives():
    return [each for text in api_pages().values() for each in DIRECTIVE.findall(text)]


def test_every_public_name_is_there_once(directives):
    shown = Counter(where for where, _ in directives)
    assert {} == {where: n for where, n in shown.items() if n > 1}
    public = {where: name for page in PAGES for name, where in page.names() if name != page.package}
    assert set(public) == set(shown)
    for name in windowlib.__all__:
        value = getattr(windowlib, name)
        if not isinstance(value, ModuleType):
            assert any(resolve_name(where) is value for where in shown), name


def test_a_heading_is_what_one_imports(directives):
    for where, heading in directives:
        package, _, name = heading.rpartition(".")
        assert getattr(resolve_name(package), name) is resolve_name(where)


def test_every_package_that_says_what_is_public_has_a_page():
    known = {page.package for page in PAGES}
    packages = pkgutil.walk_packages(windowlib.__path__, "windowlib.", only_spark)
    public = {
        info.name
        for info in packages
        if info.ispkg and hasattr(importlib.import_module(info.name), "__all__")
    }
    assert set() == public - known - set(INSIDE)


def test_every_page_is_in_the_menu():
    menu = re.findall(r"api/\w+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(api_pages()) == sorted(menu)


def test_pages_link_to_what_stands_on_others():
    pages = api_pages()
    for text in pages.values():
        for page, where in re.findall(r"\]\((\w+\.md)#(\S+)\)", text):
            assert f"::: {where}\n" in pages[f"api/{page}"]
