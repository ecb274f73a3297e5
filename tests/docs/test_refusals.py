"""The table of farms and windows on the page is what farms really take and refuse."""

import pytest

from docs import refusals


def test_the_table_of_refusals_is_that_of_the_code():
    assert refusals.table() == refusals.on_page(), "run python -m docs.refusals"


@pytest.mark.parametrize("host", refusals.HOSTS)
def test_every_window_has_a_farm(host):
    for name, window in refusals.WINDOWS.items():
        reasons: list[str] = []
        cells = [
            refusals.cell(window, make, refusals.HOSTS[host], reasons)
            for make in refusals.FARMS.values()
        ]
        assert {"a", "i", "n"} >= set("".join(cells)) - {"-"} > {"a"}, name
