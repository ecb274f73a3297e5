"""The versions that are installed of all that `dev` needs: `make constraints` writes them.

Some have no version for the newest Python; there, pip is free to choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = "spl-windows"


def needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> None:
    """Add what a distribution needs, and what that needs."""
    if (name, extras) in seen:
        return
    try:
        told = distribution(name).requires or []
    except PackageNotFoundError:  # not for this system
        return
    seen.add((name, extras))
    for each in map(Requirement, told):
        wanted = [{"extra": extra} for extra in (*extras, "")]
        if each.marker is None or any(each.marker.evaluate(given) for given in wanted):
            needed(canonicalize_name(each.name), frozenset(each.extras), seen)


def constraints() -> Iterator[str]:
    """A line for each distribution."""
    seen: set[tuple[str, frozenset[str]]] = set()
    needed(OURS, frozenset({"dev"}), seen)
    for name in sorted({name for name, _ in seen} - {OURS}):
        yield f"{name}=={distribution(name).version}"


if __name__ == "__main__":
    print("# Written by `make constraints`.")
    print("\n".join(constraints()))
