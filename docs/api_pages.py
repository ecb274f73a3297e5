"""The reference: a page for each public package, with every public name once.

The pages hold directives of mkdocstrings, which reads docstrings and types; see `mkdocs.yml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pkgutil import resolve_name
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class ApiPage:
    """A page of the reference: what of a package stands on it."""

    name: str
    package: str
    text: str
    errors: bool | None = None
    """Whether exceptions and warnings stand here, or all else; None: both."""

    def names(self) -> Iterator[tuple[str, str]]:
        """The public names, each with the path of where it is defined."""
        package = resolve_name(self.package)
        for name in sorted(package.__all__, key=str.lower):
            found = getattr(package, name)
            kind = isinstance(found, type) and issubclass(found, Exception)
            if not isinstance(found, ModuleType) and self.errors in (None, kind):
                yield name, defined(found, name)


def defined(found: Any, name: str) -> str:
    """Where something is defined.

    >>> from windowlib import Count
    >>> defined(Count, "Count")
    'windowlib.spec.policies.Count'
    """
    return f"{found.__module__}.{getattr(found, '__qualname__', name)}"


PAGES = (
    ApiPage("windowlib", "windowlib", "Policies, windows, operators and `replay`.", errors=False),
    ApiPage("operators", "windowlib.operators", "The operators that come along."),
    ApiPage("agg", "windowlib.operators.agg", "The functions of `Aggregate`."),
    ApiPage("summarizers", "windowlib.summarizers", "What windows keep in place of tuples."),
    ApiPage("disorder", "windowlib.operators.disorder", "Rows that come out of order."),
    ApiPage("preference", "windowlib.operators.preference", "Skylines and their like."),
    ApiPage("sketches", "windowlib.operators.sketches", "What the approximate functions keep."),
    ApiPage("spark", "windowlib.spark", "The host on Spark."),
    ApiPage("farms", "windowlib.farms", "Several workers for one operator."),
    ApiPage(
        "control", "windowlib.control", "How work is given to workers, and how many there are."
    ),
    ApiPage("testing", "windowlib.testing", "The kit for tests of operators."),
    ApiPage("workload", "windowlib.workload", "Streams to test and measure with."),
    ApiPage("samples", "windowlib.samples", "Rows to try things with."),
    ApiPage("errors", "windowlib", "What is raised, and what is warned of.", errors=True),
)


def api_pages() -> dict[str, str]:
    """The Markdown of each page by its path; what several packages export stands on the first."""
    shown: dict[str, str] = {}
    pages = {}
    for page in PAGES:
        path = f"api/{page.name}.md"
        lines, elsewhere = [f"# {_title(page)}", "", page.text, ""], []
        for name, where in page.names():
            if shown.setdefault(where, path) != path:
                elsewhere.append(f"[`{name}`]({shown[where].removeprefix('api/')}#{where})")
                continue
            heading = f"{page.package}.{name}"
            lines += [f"::: {where}", "    options:", f"      heading: {heading}"]
            lines += [f"      toc_label: {name}", ""]
        if elsewhere:
            lines += [f"Also here: {', '.join(elsewhere)}.", ""]
        pages[path] = "\n".join(lines)
    return pages


def _title(page: ApiPage) -> str:
    return "Exceptions" if page.errors else page.package
