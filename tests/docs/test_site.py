"""The site: every page is in its menu, and links stay inside it."""

import re
from pathlib import Path

import pytest

from docs.site_hooks import inside, on_page_markdown, readme

ROOT = Path(__file__).parents[2]
MENU = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


class Page:
    """As much of a page of mkdocs as the hooks look at."""

    def __init__(self, name):
        self.file = self
        self.src_uri = name


def test_every_page_is_in_the_menu_once():
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    written = [page for page in MENU if not page.startswith("api/")]  # those are test_api_pages'
    assert sorted([*pages, "readme.md"]) == sorted(written)


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("[a](windows.md#count)", "[a](windows.md#count)"),
        ("[a](#here)", "[a](#here)"),
        ("[a](https://example.org)", "[a](https://example.org)"),
        ("[README](../README.md)", "[README](readme.md)"),
        ("[`vwap.py`](../examples/vwap.py)", "`vwap.py`"),
        ("![a](pictures/graph.svg)", "![a](pictures/graph.svg)"),
    ],
)
def test_a_link_that_leaves_the_site_is_plain_text(link, found):
    assert found == inside(link, ROOT / "docs")


def test_the_readme_is_a_page_whose_links_stay_inside():
    text = on_page_markdown(readme(), Page("readme.md"), None, None)
    assert "](docs/" not in text
    assert "](aggregate.md)" in text
    assert "`vwap`" in text
    assert "](examples/" not in text


def test_code_is_left_alone():
    code = "```python\nx = [0](../README.md)\n```"
    assert code == on_page_markdown(code, Page("windows.md"), None, None)


def test_code_is_shown_without_the_marks_of_doctest():
    code = "```python\n>>> print(x)\na\n<BLANKLINE>\nb\n\n```"
    shown = on_page_markdown(code, Page("windows.md"), None, None)
    assert shown == "```pycon\n>>> print(x)\na\n\nb\n```"


def test_a_bar_in_the_code_of_a_table_needs_no_backslash():
    row = "| `Count(n) \\| Time(p)` | a \\| b |"
    assert on_page_markdown(row, Page("w.md"), None, None) == "| `Count(n) | Time(p)` | a \\| b |"
