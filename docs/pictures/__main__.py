"""The pictures of the documentation, drawn by the library: `python -m docs.pictures`.

One stream goes through every window of the page about semantics, so that the windows differ and
nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from windowlib import advance, punct, trace

FOLDER = Path(__file__).parent
ROWS = [{"ts": ts} for ts in (1, 2, 4, 7, 8, 12, 13, 19, 20, 22, 24, 29)]
END = advance(31)
EVICT = {"count": "count(4)", "delta": "delta(ts, 10)", "time": "time(10)"}
TRIGGER = {"count": "count(2)", "delta": "delta(ts, 5)", "time": "time(5)"}


def policies() -> dict[str, str]:
    """The windows of the page, by the names of their pictures."""
    found = {f"tumbling-{name}": f"tumbling, {policy}" for name, policy in EVICT.items()}
    found["tumbling-punct"] = "tumbling, punct()"
    found["tumbling-either"] = "tumbling, count(4) | time(5)"
    for evict, kept in EVICT.items():
        for trigger, every in TRIGGER.items():
            found[f"sliding-{evict}-{trigger}"] = f"sliding, {kept}, {every}"
    return found


def stream(spec: str) -> list[Any]:
    """The rows; with punctuations for a window that waits for them."""
    if "punct" in spec:
        return [*ROWS[:4], punct(), *ROWS[4:9], punct(), punct(), *ROWS[9:]]
    return [*ROWS, END]


def partitioned() -> tuple[str, Iterable[Any]]:
    """Two partitions, of which one is forgotten when a third comes."""
    rows = [{"symbol": symbol} for symbol in "ABAABACACC"]
    return "tumbling, count(3), partitioned, partitionCount(2)", rows


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    found = {}
    for name, spec in policies().items():
        found[name] = trace(spec, stream(spec), times="ts", start=0).to_svg()
    spec, rows = partitioned()
    found["partitions"] = trace(spec, rows, by="symbol").to_svg()
    return {f"{name}.svg": f"{svg}\n" for name, svg in found.items()}


def main() -> None:
    """Write them all."""
    for name, svg in pictures().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
