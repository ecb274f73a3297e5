"""A benchmark as a picture: a bar for each measure, as long as it is beyond its target."""

from __future__ import annotations

import json
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from bench import harness
from windowlib.tools.svg import FONT, INK, LANES, LEAVES, LINE, MUTED, label, line, tag

ROW, BAR, TOP, MARGIN, ACROSS = 22, 13, 66, 20, 320
LETTER = 6.3


def draw(name: str) -> Path:
    """Draw bench/out/NAME.json into bench/out/NAME.svg; where that is."""
    source = harness.OUT / f"{name}.json"
    target = source.with_suffix(".svg")
    target.write_text(picture(name, json.loads(source.read_text())), encoding="utf-8")
    return target


def beyond(row: dict[str, Any]) -> float | None:
    """How many times its target a measure reached: 1 is just met, whichever way is better."""
    if not row["target"] or not row["ratio"]:
        return None
    by: float = row["ratio"] / row["target"]
    return by if row["higher_is_better"] else 1 / by


def picture(name: str, rows: list[dict[str, Any]]) -> str:
    """The measures from top to bottom, with a line where the targets are."""
    scale = _Scale([found for row in rows if (found := beyond(row)) is not None])
    left = MARGIN + LETTER * max((len(row["name"]) for row in rows), default=0) + 10
    wide = left + ACROSS + 150
    high = TOP + ROW * len(rows) + MARGIN
    parts = [
        label(MARGIN, 26, f"bench {name}", 15, text_anchor="start", font_weight="600"),
        label(MARGIN, 44, "times its target; to the right of 1 it is met", 11, MUTED, **START),
    ]
    for value in scale.ticks:
        x = left + scale(value)
        parts.append(line(x, TOP - 8, x, high - MARGIN, MUTED if value == 1 else LINE))
        parts.append(label(x, TOP - 12, f"{value:g}", 10, MUTED))
    for i, row in enumerate(rows):
        parts += _row(row, left, TOP + ROW * (i + 0.5), scale)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}" '
        f'width="{wide:g}" height="{high:g}" viewBox="0 0 {wide:g} {high:g}">\n'
        f"<title>{escape(name)}</title>\n"
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


START = {"text_anchor": "start"}


def _row(row: dict[str, Any], left: float, y: float, scale: _Scale) -> list[str]:
    found = beyond(row)
    parts = [label(left - 10, y + 4, row["name"], 11, INK, text_anchor="end")]
    sign = "≥" if row["higher_is_better"] else "≤"
    said = f"{row['ratio']:.3g}" + ("" if row["target"] is None else f" ({sign} {row['target']:g})")
    end = left
    if found is not None:
        # From the target on: what is met goes to the right, what is missed to the left.
        begin, end = sorted((left + scale(1), left + scale(found)))
        place = {"x": f"{begin:.1f}", "y": f"{y - BAR / 2:g}", "width": f"{end - begin:.1f}"}
        fill, kind = (LANES[2], "met") if found >= 1 else (LEAVES, "missed")
        parts.append(tag("rect", **place, height=BAR, rx=2, fill=fill, class_=kind))
    halo = {"stroke": "white", "stroke_width": 3, "paint_order": "stroke"}
    return [*parts, label(end + 8, y + 4, said, 11, MUTED, **START, **halo)]


class _Scale:
    """Logarithmic, so that half and double are equally far from 1, which is always on it."""

    def __init__(self, values: list[float]) -> None:
        logs = [log10(value) for value in values] + [0.0]
        self.low, high = min(logs), max(logs)
        self.span = max(high - self.low, log10(2))
        marks = [m * 10.0**p for p in range(-6, 7) for m in (1, 2, 5)]
        within = [m for m in marks if self.low <= log10(m) <= self.low + self.span]
        whole = [m for m in within if abs(log10(m) - round(log10(m))) < 1e-9]
        self.ticks = within if len(within) <= 8 else whole

    def __call__(self, value: float) -> float:
        return (log10(value) - self.low) / self.span * ACROSS
