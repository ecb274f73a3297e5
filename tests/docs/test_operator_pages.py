"""Every operator has a page that names each of its parameters and where its messages are."""
# ruff: noqa: SIM300 - asserts read expected first

import inspect
import re
from pathlib import Path

import pytest

from windowlib import farms, operators
from windowlib.farms import Farm

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "aggregate.md": ["Aggregate"],
    "disorder.md": ["Panes", "Reorder", "FixedSlack", "KSlack", "PidSlack", "QuantileSlack"],
    "join.md": ["Join", "Lookup"],
    "joins-in-time.md": ["AsOf", "IntervalJoin"],
    "more-operators.md": ["Barrier", "Batch", "Dedup", "Delay", "Filter", "Functor", "Pair"],
    "preference.md": ["KDominantSkyline", "Skyline", "SkylineUpdates", "TopDelta", "TopK"],
    "sort.md": ["Sort"],
}
PAGES["more-operators.md"] += ["Punctor", "Split", "Union"]
FARMS = ["KeyFarm", "PaneFarm", "WindowFarm", "WindowPartition", "farm"]
ALL = [(page, getattr(operators, name)) for page, names in PAGES.items() for name in names]
ALL += [("farms.md", getattr(farms, name)) for name in FARMS]


def code_of(page):
    """The code in the sentences and tables of a page, without its examples."""
    text = re.sub(r"^```.*?^```$", "", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.findall(r"`([^`\n]+)`", text))


def parameters(made):
    """The names of its parameters, but for the columns that one names oneself."""
    found = list(inspect.signature(made).parameters.values())
    if isinstance(made, type) and issubclass(made, Farm):
        found += inspect.signature(Farm).parameters.values()
    return {each.name for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}


def test_every_public_operator_has_a_page():
    public = {name for name in operators.__all__ if isinstance(getattr(operators, name), type)}
    assert sorted(public) == sorted(name for names in PAGES.values() for name in names)
    farmed = {each for each in vars(farms).values() if isinstance(each, type)}
    built = {each.__name__ for each in farmed if issubclass(each, Farm) and each is not Farm}
    assert built == {*FARMS} - {"farm"}


@pytest.mark.parametrize(("page", "made"), ALL, ids=lambda each: getattr(each, "__name__", each))
def test_a_page_names_every_parameter(page, made):
    said = code_of(page)
    assert made.__name__ in said
    left = [name for name in parameters(made) if not re.search(rf"\b{name}\b", said)]
    assert [] == sorted(left)


@pytest.mark.parametrize("page", [*PAGES, "farms.md"])
def test_a_page_leads_to_its_messages(page):
    assert re.search(r"\]\(\S*errors\.md", (DOCS / page).read_text())
