"""What the README says of speed is what the pages on speed have measured."""

import re

import pytest

from tests.docs.test_docs import ROOT

README = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").glob("performance-*.md"))
MEASURED = "\n".join(page.read_text() for page in PAGES)


def rows(text, start):
    """The cells of the rows of a table that begin in a certain way."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def measured(start):
    """The cells of such rows of the pages on speed that were measured with this version."""
    header: list[str] = []
    found: list[str] = []
    for line in MEASURED.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif line.startswith(f"| {start}"):
            named = zip(header[1:], cells[1:], strict=True)
            found += [cell for name, cell in named if name not in ("before", "target")]
    return found


def numbers(cells):
    """The figures in cells, as they are written."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", " ".join(cells))


def claims(start):
    """The figures in the last cell of a row of the README."""
    ((*_, said),) = rows(README, start)
    return numbers([said])


@pytest.mark.parametrize(
    ("claim", "measure"),
    [
        ("one row into a window", "G1: "),
        ("`Aggregate`, row by row", "W1: bytewax"),
        ("`Aggregate`, Arrow batches", "G7: tumbling"),
        ("a query on Spark", "W2 / the same, 4,000,000 rows a micro-batch"),
        ("sliding windows on Spark", "W2 / Spark's own sliding window"),
    ],
)
def test_a_figure_of_the_readme_is_that_of_its_measure(claim, measure):
    (said,) = claims(claim)
    places = len(said.partition(".")[2])
    found = [f"{float(each):.{places}f}" for each in numbers(measured(measure))]
    assert said in found, f"README.md says {said}, the pages on speed {found}"


def test_joins_and_sorts_are_faster_by_what_the_table_says():
    section = MEASURED.partition("## Join and Sort over batches")[2].partition("\n#")[0]
    times = [float(cells[3].removesuffix(" ×")) for cells in rows(section, "") if "×" in cells[3]]
    low, high = (float(each) for each in claims("`Join` and `Sort`"))
    assert (low, high) == (min(times), max(times))
