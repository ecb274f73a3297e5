"""Charts of workloads and of what became of them, as SVG text.

>>> from windowlib.workload import Map2
>>> picture = arrivals(Map2(rate=1000, dispersion=100).arrivals(20_000), every=0.1)
>>> picture[:4], picture[-6:]
('<svg', '</svg>')
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from windowlib.errors import WorkloadError
from windowlib.tools.svg import FONT, INK, LANES, MUTED, label, line, tag
from windowlib.workload.checks import Floats, number, times

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 68, 20, 56, 52
POINTS = 4000  # more than this look the same


def arrivals(found: Any, *, every: float = 0.1, title: str = "Arrivals") -> str:
    """How many tuples arrive in each interval of `every` seconds."""
    at = times("arrivals", found, ordered=True)
    number("every", every)
    last = float(at[-1]) if len(at) else every
    edges = np.arange(ceil(last / every) + 1) * every
    counts = np.histogram(at, edges)[0]
    frame = _Frame(title, "seconds", f"tuples in {every:g} s", (0.0, edges[-1]), (0, counts.max()))
    # Each count goes on until the next interval begins.
    frame.curve(np.repeat(edges, 2)[1:-1], np.repeat(counts, 2), LANES[0], fill=True)
    return frame.svg()


def delay(ts: Any, arrival: Any, *, title: str = "Delay") -> str:
    """How late each tuple is: its arrival minus its timestamp, over the time of arrival."""
    begun, come = times("ts", ts), times("arrival", arrival)
    if len(begun) != len(come):
        msg = f"ts and arrival: {len(begun)} and {len(come)} times. Give one of each for a tuple."
        raise WorkloadError(msg)
    late = come - begun
    shown = np.unique(np.linspace(0, max(0, len(late) - 1), POINTS).astype(int))[: len(late)]
    # The latest are what matters, and sampling alone would miss them.
    shown = np.union1d(shown, np.argsort(late)[-POINTS // 10 :])
    frame = _Frame(title, "seconds", "seconds late", _range(come), _range(late))
    frame.dots(come[shown], late[shown], LANES[0])
    return frame.svg()


def utilisation(
    at: Any,
    found: Mapping[str, Any],
    *,
    setpoint: float | None = None,
    title: str = "Utilisation",
) -> str:
    """One curve for each name, over the same times, and a line at the set point."""
    now = times("at", at)
    curves = {name: times(name, values) for name, values in found.items()}
    for name, values in curves.items():
        if len(values) != len(now):
            msg = f"{name}: {len(values)} values at {len(now)} times. Give one for each time."
            raise WorkloadError(msg)
    tops = [1.0, *(float(values.max()) for values in curves.values() if len(values))]
    frame = _Frame(title, "seconds", "utilisation", _range(now, zero=False), (0.0, max(tops)))
    if setpoint is not None:
        frame.level(setpoint, f"set point {setpoint:g}")
    for (name, values), colour in zip(curves.items(), _colours(), strict=False):
        frame.curve(now, values, colour)
        frame.name(name, colour)
    return frame.svg()


def curves(
    xs: Sequence[float],
    found: Mapping[str, Sequence[float]],
    *,
    x: str,
    y: str,
    title: str,
    dashed: str,
) -> str:
    """One curve for each name, with logarithms on both axes.

    Names that end with `dashed` are drawn so, in the colour of the name without it.
    """
    at = [log10(number("xs", value)) for value in xs]
    logs = {name: [log10(number(name, v)) for v in ys] for name, ys in found.items()}
    heights = [v for ys in logs.values() for v in ys]
    ys = (floor(min(heights)), ceil(max(heights)))
    frame = _Frame(title, x, y, (min(at), max(at)), ys, logarithmic=True)
    names = list(dict.fromkeys(name.removesuffix(dashed) for name in found))
    colours = dict(zip(names, _colours(), strict=False))
    for name, values in logs.items():
        plain = name.removesuffix(dashed)
        frame.curve(at, values, colours[plain], dashed=plain != name)
        frame.legend.append((name, colours[plain], plain != name))
    return frame.svg()


def panels(numbers: Mapping[str, Any]) -> str:
    """Pictures of curves one below the other, as one; from what `written` wrote."""
    each = numbers["panels"].items()
    pictures = [curves(**panel, **numbers["axes"], title=title) for title, panel in each]
    high = HEIGHT * len(pictures)
    inner = [
        picture.replace("<svg", f'<svg y="{HEIGHT * i}"', 1) for i, picture in enumerate(pictures)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{high}" '
        f'viewBox="0 0 {WIDTH} {high}">\n' + "\n".join(inner) + "\n</svg>"
    )


def written(name: str, found: Mapping[str, Any], axes: Mapping[str, str]) -> Path:
    """Write NAME.json and NAME.svg into bench/out; where the picture is."""
    harness.OUT.mkdir(exist_ok=True)
    numbers, path = {"axes": axes, "panels": found}, harness.OUT / f"{name}.svg"
    path.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    path.write_text(panels(numbers) + "\n", encoding="utf-8")
    return path


def bars(
    found: Mapping[str, float] | Mapping[str, Mapping[str, float]],
    *,
    unit: str,
    title: str,
    level: float | None = None,
) -> str:
    """A bar for each name, or a group of bars: `{"PB_RR": 1.2}`, `{"PB_RR": {"n=2": 1.2}}`."""
    groups = {
        name: dict(each) if isinstance(each, Mapping) else {"": each}
        for name, each in found.items()
    }
    values = [
        number(name, value, strict=False) for g in groups.values() for name, value in g.items()
    ]
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    colours = dict(zip(series, _colours(), strict=False))
    frame = _Frame(title, "", unit, (0.0, max(1, len(groups))), (0.0, max(values, default=1.0)))
    for i, (name, group) in enumerate(groups.items()):
        frame.under(i + 0.5, name)
        wide = 0.7 / max(1, len(group))
        for j, (inner, value) in enumerate(group.items()):
            frame.bar(i + 0.15 + j * wide, i + 0.15 + (j + 1) * wide, value, colours[inner])
    for name, colour in colours.items():
        if name:
            frame.name(name, colour)
    if level is not None:
        frame.level(level, f"{level:g}")
    return frame.svg()


def lines(
    found: Mapping[str, Mapping[float, float]],
    *,
    x: str,
    y: str,
    title: str,
    measured: Mapping[str, Mapping[float, float]] | None = None,
) -> str:
    """A line for each name, from `{"WF": {1: 1.0, 2: 1.98}}`; what was `measured` as dots on it."""
    series = [*found.values(), *(measured or {}).values()]
    xs = np.array([each for points in series for each in points], float)
    ys = np.array([each for points in series for each in points.values()], float)
    frame = _Frame(title, x, y, _range(xs, zero=False), (0.0, float(ys.max(initial=1e-9))))
    for (name, points), colour in zip(found.items(), _colours(), strict=False):
        frame.curve(list(points), list(points.values()), colour)
        frame.name(name, colour)
        dots = (measured or {}).get(name, {})
        frame.dots(list(dots), list(dots.values()), colour, size=8)
    return frame.svg()


def _colours() -> list[str]:
    """More names than colours begin again."""
    return list(LANES) * 20


def _range(values: Floats, *, zero: bool = True) -> tuple[float, float]:
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (min(low, 0.0) if zero else low), high


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers within a range, `most` of them or fewer.

    >>> ticks(0, 1.37), ticks(0, 96)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2], [0, 20, 40, 60, 80])
    """
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m * (1 + 1e-9) >= rough)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    digits = max(0, -floor(log10(step) + 1e-9))
    return [round(i * step, digits) if digits else round(i * step) for i in range(first, last + 1)]


def decades(low: float, high: float, most: int = 7) -> list[float]:
    """Whole decimal logarithms within a range; where these are few, those of 2 and 5 as well.

    >>> decades(1, 4), [round(10**power) for power in decades(1, 2)]
    ([1, 2, 3, 4], [10, 20, 50, 100])
    """
    whole: list[float] = list(range(ceil(low - 1e-9), floor(high + 1e-9) + 1))
    finer = sorted([power + log10(m) for power in range(floor(low), ceil(high)) for m in (2, 5)])
    within = sorted([*whole, *(power for power in finer if low <= power <= high)])
    return within if len(within) <= most else whole


class _Frame:
    """Axes with labels, and what is drawn between them."""

    def __init__(
        self,
        title: str,
        x: str,
        y: str,
        xs: tuple[float, float],
        ys: tuple[float, float],
        *,
        logarithmic: bool = False,
    ) -> None:
        self.title = title
        marks = decades if logarithmic else ticks
        shown = (lambda power: _short(10**power)) if logarithmic else _short
        self.legend: list[tuple[str, str, bool]] = []  # of each: text, colour, dashed
        self.xs = (float(xs[0]), float(xs[1] if xs[1] > xs[0] else xs[0] + 1))
        self.ys = (float(ys[0]), float(ys[1] * 1.05 if ys[1] > ys[0] else ys[0] + 1))
        self.parts = [label(LEFT, 24, title, 15, text_anchor="start", font_weight="600")]
        self.over: list[str] = []
        bottom = HEIGHT - BOTTOM
        for value in marks(*self.ys, most=6):
            at = self._y(value)
            self.parts.append(line(LEFT, at, WIDTH - RIGHT, at))
            self.parts.append(label(LEFT - 8, at + 4, shown(value), fill=MUTED, text_anchor="end"))
        for value in marks(*self.xs, most=10) if x else []:
            at = self._x(value)
            self.parts.append(line(at, bottom, at, bottom + 4, MUTED))
            self.parts.append(label(at, bottom + 17, shown(value), fill=MUTED))
        self.parts.append(line(LEFT, bottom, WIDTH - RIGHT, bottom, MUTED))
        self.parts.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x, 12))
        self.parts.append(label(LEFT, 44, y, 12, MUTED, text_anchor="start"))

    def _x(self, value: float) -> float:
        low, high = self.xs
        return LEFT + (value - low) / (high - low) * (WIDTH - RIGHT - LEFT)

    def _y(self, value: float) -> float:
        low, high = self.ys
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP)

    def curve(
        self,
        xs: Sequence[Any] | Floats,
        ys: Sequence[Any] | Any,
        colour: str,
        *,
        fill: bool = False,
        dashed: bool = False,
    ) -> None:
        """A line through points; with `fill`, what is below it is tinted."""
        path = " ".join(
            f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in zip(*_thin(xs, ys), strict=True)
        )
        if fill and path:
            left, right, low = self._x(xs[0]), self._x(xs[-1]), self._y(self.ys[0])
            area = f"{left:.1f},{low:.1f} {path} {right:.1f},{low:.1f}"
            self.parts.append(tag("polygon", points=area, fill=colour, fill_opacity=0.18))
        look = {"fill": "none", "stroke": colour, "stroke_width": 1.4, "class_": "curve"}
        look |= {"stroke_dasharray": "5 4"} if dashed else {}
        self.parts.append(tag("polyline", points=path, stroke_linejoin="round", **look))

    def dots(self, xs: Any, ys: Any, colour: str, size: float = 2.4) -> None:
        """A small dot for each point."""
        path = "".join(f"M{self._x(x):.1f} {self._y(y):.1f}h0" for x, y in zip(xs, ys, strict=True))
        look = {"stroke": colour, "stroke_width": size, "stroke_linecap": "round"}
        self.parts.append(tag("path", d=path, stroke_opacity=0.5, class_="dots", **look))

    def bar(self, left: float, right: float, value: float, colour: str) -> None:
        """A bar, with its value on top."""
        x, y = self._x(left) + 1, self._y(value)
        wide, high = self._x(right) - x - 1, HEIGHT - BOTTOM - y
        size = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{wide:.1f}", "height": f"{high:.1f}"}
        self.parts.append(tag("rect", **size, rx=2, fill=colour, class_="bar"))
        halo = {"stroke": "white", "stroke_width": 3, "paint_order": "stroke"}
        self.over.append(label(x + wide / 2, y - 4, _short(value), 10, INK, **halo))

    def under(self, at: float, text: str) -> None:
        """A name below the axis."""
        self.parts.append(label(self._x(at), HEIGHT - BOTTOM + 17, text))

    def level(self, value: float, text: str) -> None:
        """A dashed line across, below the numbers on bars; the legend says what it is."""
        if self.ys[0] <= value <= self.ys[1]:
            at = self._y(value)
            look = {"stroke_dasharray": "5 4", "class_": "level"}
            self.over.insert(0, line(LEFT, at, WIDTH - RIGHT, at, INK, **look))
            self.legend.append((text, INK, True))

    def name(self, text: str, colour: str) -> None:
        """An entry of the legend."""
        self.legend.append((text, colour, False))

    def _legend(self) -> list[str]:
        """The names, in their order, up to the right edge."""
        wide = [32 + 6.4 * len(text) for text, _, _ in self.legend]
        x, found = WIDTH - RIGHT - sum(wide) + 8, []
        for (text, colour, dashed), step in zip(self.legend, wide, strict=True):
            sample = {"x": f"{x:.1f}", "y": 36, "width": 10, "height": 10}
            found += [
                line(x - 4, 41, x + 11, 41, colour, stroke_dasharray="5 4")
                if dashed
                else tag("rect", **sample, rx=2, fill=colour),
                label(x + 15, 45, text, 11, INK, text_anchor="start"),
            ]
            x += step
        return found

    def svg(self) -> str:
        """The whole picture."""
        body = "\n".join([*self.parts, *self.over, *self._legend()])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}" '
            f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">\n'
            f"<title>{escape(self.title)}</title>\n"
            f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>'
        )


def _thin(xs: Any, ys: Any) -> tuple[Any, Any]:
    """Fewer points that look the same: of each stretch, its lowest and its highest."""
    if len(xs) <= POINTS:
        return xs, ys
    stretch = ceil(2 * len(xs) / POINTS)
    begins = np.arange(0, len(xs), stretch)
    shown = {int(b) + int(pick(ys[b : b + stretch])) for b in begins for pick in _ENDS}
    kept = sorted(shown | {0, len(xs) - 1})
    return np.asarray(xs)[kept], np.asarray(ys)[kept]


_ENDS: tuple[Callable[[Any], Any], ...] = (np.argmin, np.argmax)


def _short(value: float) -> str:
    """A number with few digits, and commas in a long one.

    >>> _short(1500), _short(0.123456), _short(2.0)
    ('1,500', '0.123', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
