"""How many examples searches draw, and that all of them ask."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.examples import QUICK, THOROUGH, at_least, examples, is_thorough

TESTS = Path(__file__).parent
# These are about what a strategy finds, so their numbers are part of the claim.
THEIRS = {TESTS / "testing" / "test_strategies.py"}


@pytest.fixture(params=[QUICK, THOROUGH])
def thorough(request):
    """Whether the profile of this test is the thorough one."""
    before = QUICK if not is_thorough() else THOROUGH
    settings.load_profile(request.param)
    yield request.param == THOROUGH
    settings.load_profile(before)


def test_a_quick_search_draws_a_tenth_and_a_thorough_one_all(thorough):
    assert examples(400) == (400 if thorough else 40)
    assert settings().max_examples == (100 if thorough else 10)
    assert at_least(0.5) == (0.5 if thorough else 0.05)


def test_a_small_search_draws_a_few_examples_at_least(thorough):
    assert examples(8) == (8 if thorough else 5)
    assert examples(3) == 3


def test_every_search_asks_how_many_examples_to_draw():
    fixed = re.compile(r"max_examples=\d")
    found = {path for path in TESTS.rglob("test_*.py") if fixed.search(path.read_text())}
    assert found == THEIRS


def test_a_search_without_hypothesis_is_marked_so_that_make_test_all_finds_it():
    texts = {path: path.read_text() for path in TESTS.rglob("test_*.py")}
    searching = {path for path, text in texts.items() if re.search(r"is_thorough\(\) else", text)}
    marked = {path for path, text in texts.items() if re.search(r"mark\.search|@given", text)}
    assert searching
    assert not searching - marked
