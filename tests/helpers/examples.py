"""How many examples a search draws: few in `make test`, all of them in `make test-all`."""

from hypothesis import settings

QUICK, THOROUGH = "quick", "thorough"
SHARE = 10
"""The quick profile draws one of so many examples."""
FEWEST = 5

# How long an example takes depends on the machine, and on what the first one has to import. The
# quick profile draws the same examples in every run; what is found by chance is for the other one.
settings.register_profile(QUICK, deadline=None, max_examples=100 // SHARE, derandomize=True)
settings.register_profile(THOROUGH, deadline=None, max_examples=100)


def is_thorough() -> bool:
    """Whether this run draws all examples."""
    return settings.default == settings.get_profile(THOROUGH)


def examples(thorough: int) -> int:
    """As many examples as a search draws that draws `thorough` of them when there is time.

    A search that says nothing draws 100, or 10.
    """
    return thorough if is_thorough() else min(thorough, max(FEWEST, thorough // SHARE))


def at_least(share: float) -> float:
    """A share of the examples that a thorough search reaches; few examples reach a part of it."""
    return share if is_thorough() else share / SHARE
