"""The pictures of the documentation are those that the library draws today."""
# ruff: noqa: SIM300 - asserts read expected first

import re

from docs.pictures.__main__ import FOLDER, pictures, policies

DRAWN = pictures()
PAGES = FOLDER.parent


def test_every_picture_is_up_to_date():
    stored = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}
    assert sorted(DRAWN) == sorted(stored)
    for name, svg in DRAWN.items():
        assert svg == stored[name], f"{name} is out of date. Run: python -m docs.pictures"


def test_every_picture_is_on_a_page():
    text = "".join(page.read_text() for page in PAGES.glob("*.md"))
    assert [] == [name for name in DRAWN if f"(pictures/{name})" not in text]


def test_every_policy_has_a_picture():
    specs = policies().values()
    for evict in ("count", "delta", "time", "punct"):
        assert any(spec.startswith(f"tumbling, {evict}(") for spec in specs)
    for evict in ("count", "delta", "time"):
        for trigger in ("count", "delta", "time"):
            assert any(
                spec.startswith(f"sliding, {evict}(") and f", {trigger}(" in spec[12:]
                for spec in specs
            )


def test_every_picture_of_a_policy_stands_with_its_text():
    page = (PAGES / "semantics.md").read_text()
    for name, spec in policies().items():
        assert f"`{spec}`." in page
        assert f"![Timeline of {spec}](pictures/{name}.svg)" in page


def test_the_flowchart_of_a_graph_is_the_one_that_it_gives():
    page = (PAGES / "graphs.md").read_text()
    shown = re.search(r"^>>> print\(query\.to_mermaid\(\)\)\n(.*?)\n\n", page, re.M | re.S)
    drawn = re.search(r"^```mermaid\n(.*?)\n```$", page, re.M | re.S)
    assert shown is not None
    assert drawn is not None
    assert shown[1] == drawn[1]
