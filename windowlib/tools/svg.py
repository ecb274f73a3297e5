"""Timelines as pictures: plain SVG, without a library.

A lane per partition. Tuples are numbered circles; below them, each processed window is a bar over
the tuples it held, with a dot for each, and a sign at the step that processed it.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from windowlib.tools.timeline import PROCESSING, contents, ranges, row_names, seconds, short

if TYPE_CHECKING:
    from windowlib.tools.tracing import Event, Moment, Trace

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LANES = ("#2563eb", "#c2570c", "#0f8a5f", "#7c3aed", "#0e7490", "#be185d")
INK, MUTED, LINE, GONE, LEAVES, STAR = (
    "#1f2937",
    "#6b7280",
    "#d1d5db",
    "#eef0f3",
    "#b91c1c",
    "#d99a06",
)
PITCH, MARGIN, RADIUS = 40, 24, 12
BAR, ROW = 13, 20
LEAST = 560


def draw(trace: Trace) -> str:
    """The picture of a trace as SVG text."""
    return _Picture(trace).svg()


def tag(name: str, body: str | None = None, /, **attributes: object) -> str:
    """An element; the body is markup, attributes are escaped."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}/>" if body is None else f"<{name}{given}>{body}</{name}>"


def label(x: float, y: float, text: str, size: int = 11, fill: str = INK, **more: object) -> str:
    """Text at a point, in its middle unless `text_anchor` says otherwise."""
    more = {"text_anchor": "middle", **more}
    return tag("text", escape(text), x=f"{x:g}", y=f"{y:g}", font_size=size, fill=fill, **more)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = LINE, **more: object) -> str:
    """A straight line."""
    ends = {
        name: f"{value:g}"
        for name, value in zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
    }
    return tag("line", **ends, stroke=stroke, **more)


def _dot(x: float, y: float, r: float, fill: str, **more: object) -> str:
    return tag("circle", cx=f"{x:g}", cy=f"{y:g}", r=f"{r:g}", fill=fill, **more)


def _circle(x: float, y: float, number: str, fill: str, *, gone: bool) -> str:
    ring = LINE if gone else fill
    return _dot(x, y, RADIUS, GONE if gone else fill, stroke=ring) + label(
        x, y + 4, number, fill=MUTED if gone else "white", font_weight="600"
    )


def _bar(x1: float, x2: float, y: float, fill: str, *, partial: bool) -> str:
    look: dict[str, object] = {"fill": fill}
    if partial:
        look = {"fill": "white", "stroke": fill, "stroke_dasharray": "3 2"}
    edges = {"x": f"{x1:g}", "y": f"{y - BAR / 2:g}", "width": f"{x2 - x1:g}", "height": BAR}
    return tag("rect", **edges, rx=BAR / 2, class_="window", **look)


def _sign(name: str, x: float, y: float, fill: str) -> str:
    """A triangle for a trigger, a square for a flush."""
    if name == "flush":
        return tag(
            "rect", x=f"{x - 4:g}", y=f"{y - 4:g}", width=8, height=8, fill=fill, class_=name
        )
    points = f"{x - 4:g},{y - 5:g} {x + 5:g},{y:g} {x - 4:g},{y + 5:g}"
    return tag("polygon", points=points, fill=fill, class_=name)


def _cross(x: float, y: float) -> str:
    arms = f"M{x - 5:g} {y - 5:g}l10 10m0 -10l-10 10"
    return tag("path", d=arms, stroke=LEAVES, stroke_width=2.5, class_="forget")


class _WindowBar(NamedTuple):
    """A bar: the window, the x of its tuples, and of what processed it."""

    event: Event
    members: list[float]
    at: float

    @property
    def begin(self) -> float:
        return min([*self.members, self.at]) - RADIUS

    @property
    def sign(self) -> float:
        """The sign stands where the window was processed, or behind a bar that reaches that far."""
        beyond = not self.members or self.at > self.members[-1]
        return self.at if beyond else self.members[-1] + RADIUS + 7

    @property
    def end(self) -> float:
        return self.sign + 5


class _Picture:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.moments = trace.moments
        self.order = row_names(trace.spec)
        self.left = MARGIN + RADIUS + 28 * trace.clocked
        self.x_of = {m.number: self._x(i) for i, m in enumerate(self.moments) if m.kind == "tuple"}
        last = self._x(len(self.moments) - 1) + 20
        self.width = max(LEAST, last + MARGIN, 9 * len(str(trace.spec)) + 2 * MARGIN)
        self.parts: list[str] = []
        self.used: set[str] = set()
        self.y = 0.0

    def _x(self, index: int) -> float:
        return self.left + PITCH * index

    def svg(self) -> str:
        spec = str(self.trace.spec)
        self.parts.append(label(MARGIN, 30, spec, 15, text_anchor="start", font_weight="600"))
        self.y = 60.0 if any(moment.kind == "punct" for moment in self.moments) else 48.0
        if self.trace.clocked:
            self._times()
        top, before = self.y, len(self.parts)
        for i, key in enumerate(self.trace.partitions):
            self._lane(key, LANES[i % len(LANES)])
        self.parts[before:before] = list(self._verticals(top))
        self._legend()
        body = tag("rect", width="100%", height="100%", fill="white") + "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}" '
            f'width="{self.width:g}" height="{self.y:g}" viewBox="0 0 {self.width:g} {self.y:g}">'
            f"\n<title>{escape(spec)}</title>\n{body}\n</svg>"
        )

    def _times(self) -> None:
        self.y += 8
        self.parts.append(label(MARGIN, self.y, "sec", 10, MUTED, text_anchor="start"))
        for i, moment in enumerate(self.moments):
            time = seconds(moment.time)
            if time.endswith("+"):
                self.used.add("after")
            self.parts.append(label(self._x(i), self.y, time, 10, MUTED))
        self.y += 6

    def _verticals(self, top: float) -> list[str]:
        """Lines through all lanes where a punctuation or a tick comes."""
        found = []
        for i, moment in enumerate(self.moments):
            ticks = any(event.name in PROCESSING for event in moment.events)
            if moment.kind == "punct" or (moment.kind == "clock" and ticks):
                self.used.add(moment.kind)
                dashes = "2 3" if moment.kind == "clock" else None
                x = self._x(i)
                found.append(
                    line(x, top, x, self.y, "#9ca3af", stroke_dasharray=dashes, class_=moment.kind)
                )
                if moment.kind == "punct":
                    found.append(label(x, top - 4, "P", 11, MUTED, font_weight="600"))
        return found

    def _lane(self, key: Any, colour: str) -> None:
        heading = self.trace.heading(key)
        if heading:
            self.y += 16
            more = {"text_anchor": "start", "font_weight": "600"}
            self.parts.append(label(MARGIN, self.y, heading, 12, colour, **more))
        self.y += 32
        self.parts.append(line(MARGIN, self.y, self._x(len(self.moments) - 1) + 20, self.y))
        gone = self._gone(key)
        bars: list[_WindowBar] = []
        for i, moment in enumerate(self.moments):
            own = [event for event in moment.events if event.key == key]
            if moment.kind == "tuple" and moment.key == key:
                self._tuple(self._x(i), moment, colour, moment.number in gone)
            self._changes(self._x(i), own)
            bars += [self._processed(e, moment, self._x(i)) for e in own if e.name in PROCESSING]
        self.y += RADIUS + 14 + 12 * any(moment.values for moment in self.moments)
        self._bars(bars, colour)

    def _processed(self, event: Event, moment: Moment, x: float) -> _WindowBar:
        """A window that is processed before the tuple enters has its sign before the tuple."""
        before = moment.kind == "tuple" and self.order.index(event.name) < self.order.index(
            "insert"
        )
        members = [self.x_of[number] for number in event.tuples]
        return _WindowBar(event, members, x - PITCH / 2 if before else x)

    def _gone(self, key: Any) -> set[int]:
        """The tuples of a lane that are no longer in the window at the end."""
        events = [e for m in self.moments for e in m.events if e.key == key]
        entered = {n for e in events if e.name == "insert" for n in e.tuples}
        left = {n for e in events if e.name in ("evict", "flush", "forget") for n in e.tuples}
        arrived = {m.number for m in self.moments if m.kind == "tuple" and m.key == key}
        return left | (arrived - entered)

    def _tuple(self, x: float, moment: Moment, colour: str, gone: bool) -> None:
        self.used.add("gone" if gone else "kept")
        self.parts.append(_circle(x, self.y, str(moment.number), colour, gone=gone))
        values = " ".join(dict.fromkeys(short(value) for value in moment.values.values()))
        if values:
            self.parts.append(label(x, self.y + RADIUS + 12, values, 10, MUTED))

    def _changes(self, x: float, events: list[Event]) -> None:
        """Mark tuples that leave at a step, and the first time the window is full."""
        evicted = [n for e in events if e.name == "evict" for n in e.tuples]
        names = {event.name for event in events}
        if evicted:
            self.used.add("evict")
            self.parts.append(label(x, self.y - RADIUS - 5, f"−{ranges(evicted)}", 10, LEAVES))
        if "full" in names:
            self.used.add("full")
            self.parts.append(label(x + RADIUS + 2, self.y - RADIUS + 5, "★", 12, STAR))
        if "forget" in names:
            self.used.add("forget")
            self.parts.append(_cross(x, self.y))
        if "empty" in names:
            self.used.add("empty")
            self.parts.append(_dot(x, self.y, 5, "white", stroke=MUTED, class_="empty"))

    def _bars(self, bars: list[_WindowBar], colour: str) -> None:
        """Stack the bars, each in the first row where it does not touch another."""
        ends: list[float] = []
        for bar in bars:
            row = next((i for i, end in enumerate(ends) if end <= bar.begin), len(ends))
            ends[row : row + 1] = [bar.end]
            self._one_bar(bar, self.y + row * ROW, colour)
        self.y += len(ends) * ROW + 6

    def _one_bar(self, bar: _WindowBar, y: float, colour: str) -> None:
        event = bar.event
        self.used.update((event.name, "partial" if event.partial else "whole"))
        drawn = [tag("title", escape(f"{event.name}: {contents(event)}"))]
        if bar.members:
            first, last = bar.members[0] - RADIUS, bar.members[-1] + RADIUS
            drawn.append(line(last, y, bar.sign, y, colour))
            drawn.append(_bar(first, last, y, colour, partial=event.partial))
            inside = colour if event.partial else "white"
            drawn += [_dot(x, y, 2.5, inside) for x in bar.members]
        drawn.append(_sign(event.name, bar.sign, y, colour))
        self.parts.append(tag("g", "".join(drawn)))

    def _legend(self) -> None:
        self.y += 18
        self.parts.append(line(MARGIN, self.y - 16, self.width - MARGIN, self.y - 16, "#e5e7eb"))
        x = float(MARGIN)
        for name, width, glyph, text in LEGEND:
            if name not in self.used:
                continue
            whole = width + 8 + 5.8 * len(text)
            if x + whole > self.width - 12:
                x, self.y = float(MARGIN), self.y + 20
            self.parts.append(glyph(x + width / 2, self.y - 4))
            self.parts.append(label(x + width + 6, self.y, text, 11, MUTED, text_anchor="start"))
            x += whole + 14
        self.y += 16


Glyph = Callable[[float, float], str]


def _sample_bar(x: float, y: float, partial: bool) -> str:
    bar = _bar(x - 17, x + 17, y, MUTED, partial=partial)
    return bar + "".join(_dot(x + dx, y, 2.5, MUTED if partial else "white") for dx in (-9, 9))


LEGEND: tuple[tuple[str, float, Glyph, str], ...] = (
    ("kept", 14, lambda x, y: _dot(x, y, 6, MUTED), "in the window at the end"),
    ("gone", 14, lambda x, y: _dot(x, y, 6, GONE, stroke=LINE), "gone"),
    ("whole", 36, lambda x, y: _sample_bar(x, y, False), "processed, a dot per tuple"),
    ("partial", 36, lambda x, y: _sample_bar(x, y, True), "not full yet"),
    ("trigger", 10, lambda x, y: _sign("trigger", x, y, MUTED), "trigger"),
    ("flush", 10, lambda x, y: _sign("flush", x, y, MUTED), "flush"),
    ("evict", 14, lambda x, y: label(x, y + 4, "−1", 10, LEAVES), "evicts 1"),
    ("full", 12, lambda x, y: label(x, y + 4, "★", 12, STAR), "first time full"),
    ("forget", 12, _cross, "partition forgotten"),
    (
        "empty",
        12,
        lambda x, y: _dot(x, y, 5, "white", stroke=MUTED),
        "punctuation of an empty window",
    ),
    ("punct", 10, lambda x, y: line(x, y - 7, x, y + 7, "#9ca3af"), "punctuation"),
    (
        "clock",
        10,
        lambda x, y: line(x, y - 7, x, y + 7, "#9ca3af", stroke_dasharray="2 3"),
        "tick",
    ),
    ("after", 16, lambda x, y: label(x, y + 4, "9+", 10, MUTED), "just after second 9"),
)
