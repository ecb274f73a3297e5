"""The page that says what to add where names files that exist, and an extension for each."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text()
LISTS = PAGE.partition("## What to add where")[2].partition("\n## ")[0]
PLACES = sorted(set(re.findall(r"`((?:windowlib|operators|tests)/[\w/.]*)`", LISTS)))
EXTENSIONS = {
    "An aggregate function": "test_aggregate_function.py",
    "An operator": "test_operator.py",
    "A policy": "test_policy.py",
    "A farm pattern": "test_farm_pattern.py",
    "A state format": "test_state_format.py",
    "A command": "test_command.py",
}


def test_each_extension_of_the_page_is_made_by_a_test():
    assert list(EXTENSIONS) == re.findall(r"^### (.*)$", LISTS, re.M)
    for name in EXTENSIONS.values():
        assert (Path(__file__).parent / name).exists()


@pytest.mark.parametrize("place", PLACES)
def test_a_place_to_add_something_exists(place):
    assert (ROOT / place).exists()


def test_there_are_places_to_look_at():
    assert len(PLACES) > 12


def test_an_aggregate_function_takes_two_files_and_a_policy_six():
    function = LISTS.partition("### An aggregate function")[2].partition("`agg`")[0]
    assert len(re.findall(r"^\d\.", function, re.M)) == 2
    policy = LISTS.partition("### A policy")[2].partition("The columnar")[0]
    assert len(set(re.findall(r"`(windowlib/[\w/]+\.py)`", policy))) == 6
