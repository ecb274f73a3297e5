"""The pictures of the documentation, drawn by the library: `python -m docs.pictures`.

One stream goes through every window of the page about semantics, so that the windows differ and
nothing else does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.charts import panels
from windowlib import advance, punct, trace
from windowlib.tools.svg import FONT, INK, LANES, LINE, tag

FOLDER = Path(__file__).parent
ROWS = [{"ts": ts} for ts in (1, 2, 4, 7, 8, 12, 13, 19, 20, 22, 24, 29)]
END = advance(31)
EVICT = {"count": "count(4)", "delta": "delta(ts, 10)", "time": "time(10)"}
FIGURES = ("figure3", "figure4")
"""From what `python -m bench figures engines` wrote."""
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
    found["soak"] = chart(json.loads((FOLDER / "soak.json").read_text(encoding="utf-8")))
    for name in FIGURES:
        found[name] = panels(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    return {f"{name}.svg": f"{svg}\n" for name, svg in found.items()}


def chart(series: Mapping[str, Sequence[float]]) -> str:
    """Series of MiB over time, one under the other, each from 0 on."""
    width, height, pitch = 640, 44, 76
    parts = []
    for row, (name, values) in enumerate(series.items()):
        top, most = 20 + row * pitch, max(values)
        step, scale = width / max(len(values) - 1, 1), height / (most or 1)
        points = " ".join(
            f"{20 + at * step:.1f},{top + 12 + height - value * scale:.1f}"
            for at, value in enumerate(values)
        )
        base = top + 12 + height
        parts += [
            tag("text", f"{escape(name)}: at most {most:.4g} MiB", x=20, y=top + 4, fill=INK),
            tag("line", x1=20, y1=base, x2=20 + width, y2=base, stroke=LINE),
            tag("polyline", points=points, fill="none", stroke=LANES[0], stroke_width=1.5),
        ]
    size = {"width": width + 40, "height": 20 + pitch * len(series)}
    style = {"font_family": FONT, "font_size": 12, "xmlns": "http://www.w3.org/2000/svg"}
    return tag("svg", "".join(parts), **size, **style)


def main() -> None:
    """Write them all."""
    for name, svg in pictures().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
