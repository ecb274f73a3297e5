"""Window models: to which windows a tuple belongs, and when that is known.

| model | context | known |
| --- | --- | --- |
| `CountWindows`, `TimeWindows` | free | from the tuple alone: closed forms |
| `SessionWindows`, `DeltaTumbling`, `CountOrTime`, `PunctuationWindows`, `LandmarkWindows` | \
backward | from the tuple and those before it |
| `EventWindows` | backward | from the tuple, and late tuples from the watermark |
| `SlideByTuple`, `SlideByTime`, `DeltaWindows`, `Triggered` | forward | when the trigger has come |

`semantics` has the names of the papers: CF, FCF, and of those with forward context FCB where it is
known how many windows a tuple may be in, and FCU where it is not.

`model_of` gives the model of a `Tumbling` or a `Sliding` specification; `Slicing` cuts the windows
of a regular model into the slices that they share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from math import gcd, lcm
from typing import Any, ClassVar, Literal

import numpy as np

from windowlib.errors import FarmError
from windowlib.farms.exact_axis import Array, Exact, exact, floors, length, spread, whole
from windowlib.spec.policies import Count, Delta, Either, Policy, Time
from windowlib.spec.specification import Sliding, Spec, Tumbling

__all__ = [
    "Context",
    "CountOrTime",
    "CountWindows",
    "DeltaTumbling",
    "DeltaWindows",
    "EventWindows",
    "LandmarkWindows",
    "PunctuationWindows",
    "RegularWindows",
    "SessionWindows",
    "Slicing",
    "SlideByTime",
    "SlideByTuple",
    "TimeWindows",
    "Triggered",
    "WindowModel",
    "model_of",
    "spl_lowest",
    "spl_phase",
]

Context = Literal["free", "backward", "forward"]
Semantics = Literal["CF", "FCF", "FCB", "FCU"]
PolicyKind = Literal["count", "delta", "time"]


class WindowModel:
    """How tuples belong to windows, and what has to be known to say so.

    `context` is what decides to which windows a tuple belongs: the tuple alone ("free"), also
    those before it ("backward"), or those behind it ("forward"). With the first two a tuple can
    be sent to its windows when it comes; with the last only once their triggers have come.
    """

    __slots__ = ()
    context: ClassVar[Context]

    @property
    def overlapping(self) -> bool:
        """Whether a tuple may be in several windows."""
        return False

    @property
    def semantics(self) -> Semantics:
        """The class of the papers: context free, forward context free, bounded or unbounded."""
        return "CF" if self.context == "free" else "FCF"


# -- context free: windows of one length at one distance ------------------------------------------


@dataclass(frozen=True, slots=True)
class RegularWindows(WindowModel):
    """Windows of a size at a slide; the base of `CountWindows` and `TimeWindows`.

    Window w covers `[phase + w * slide, phase + w * slide + size)` of the axis, which is the index
    of a tuple (count) or its timestamp (time). From a point x back to its windows:

        last(x)  = floor((x - phase) / slide)
        first(x) = floor((x - phase - size) / slide) + 1, and `lowest` if that is more

    Where first is behind last, the point lies between two windows (hopping, slide > size).
    """

    context: ClassVar[Context] = "free"
    size: Any
    slide: Any
    phase: Any = 0
    lowest: int | None = None

    def __post_init__(self) -> None:
        kind = type(self).__name__
        self._keep(
            size=length(self.size, f"{kind}(size"),
            slide=length(self.slide, f"{kind}(slide"),
            phase=exact(self.phase, f"{kind}(phase"),
            lowest=None if self.lowest is None else whole(self.lowest, f"{kind}(lowest"),
        )

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def overlapping(self) -> bool:
        """Whether a tuple may be in several windows."""
        return bool(self.size > self.slide)

    def first(self, x: Any) -> Any:
        """The first window that holds a point; behind `last` if none does."""
        found = floors(x, self.phase + self.size, self.slide) + 1
        if self.lowest is None:
            return found
        return np.maximum(found, self.lowest) if _is_array(x) else max(found, self.lowest)

    def last(self, x: Any) -> Any:
        """The last window that holds a point; before `first` if none does."""
        return floors(x, self.phase, self.slide)

    def windows(self, x: Any) -> Any:
        """The windows that hold a point, as a range.

        Of an array of points: two arrays, with a row number and a window for each that holds it.
        """
        first, last = self.first(x), self.last(x)
        return spread(first, last - first + 1) if _is_array(x) else range(first, last + 1)

    def extent(self, w: Any) -> tuple[Any, Any]:
        """The interval `[lo, hi)` of a window, or of each of an array."""
        begin = self.phase + _times(w, self.slide)
        return begin, begin + self.size

    def complete(self, mark: Any) -> Any:
        """The last window that ends at or before `mark`, which may be none that there is.

        Nothing is added to it once time has come to `mark`, or so many tuples have come.
        """
        return floors(mark, self.phase + self.size, self.slide)

    def panes(self) -> Slicing:
        """Slices of equal length, the greatest that divides size and slide."""
        return panes(self)

    def pairs(self) -> Slicing:
        """Slices cut where a window starts or ends: at most two a slide."""
        return pairs(self)


@dataclass(frozen=True, slots=True)
class TimeWindows(RegularWindows):
    """Windows of `size` ticks, one every `slide` ticks; window 0 starts at `phase`.

    Numbers are exact, whole or not: 0.1 is what the float is, so write tenths as `Fraction(1, 10)`
    or count in tenths. An axis of time has no start, so by default there are windows before
    window 0, with negative numbers; `lowest` says which is the first that there is.

    >>> model = TimeWindows(4, 2)
    >>> model.windows(5.5), model.extent(1)
    (range(1, 3), (2, 6))
    >>> list(TimeWindows(4, 2).windows(-1)), list(TimeWindows(2, 5).windows(3))
    ([-2, -1], [])
    """


@dataclass(frozen=True, slots=True)
class CountWindows(RegularWindows):
    """Windows of `size` tuples, one every `slide` tuples; window 0 starts with tuple `phase`.

    Tuples have the indexes 0, 1, …. With a `lowest` below 0 the first windows reach back before
    tuple 0 and are cut off there: the partial windows of SPL.

    >>> spl = CountWindows(5, 2, phase=spl_phase(5, 2), lowest=-2)
    >>> [spl.extent(w) for w in (-2, -1, 0, 1)]
    [(0, 2), (0, 4), (1, 6), (3, 8)]
    >>> spl.windows(0), spl.windows(4)
    (range(-2, 0), range(0, 2))
    """

    lowest: int | None = 0

    def __post_init__(self) -> None:
        RegularWindows.__post_init__(self)
        for name in ("size", "slide", "phase"):
            whole(getattr(self, name), f"CountWindows({name}")

    def extent(self, w: Any) -> tuple[Any, Any]:
        """The indexes `[lo, hi)` of a window, or of each of an array; none is below 0."""
        begin, end = RegularWindows.extent(self, w)
        return (np.maximum(begin, 0) if _is_array(w) else max(begin, 0)), end


def spl_phase(size: Any, slide: Any) -> Any:
    """The phase of SPL's windows, which end at multiples of the slide and do not start there.

    >>> spl_phase(5, 2), spl_phase(7, 3), spl_phase(6, 3), spl_phase(2, 5)
    (1, 2, 0, 3)
    """
    size, slide = length(size, "spl_phase(size"), length(slide, "spl_phase(slide")
    return -size % slide


def spl_lowest(size: Any, slide: Any) -> int:
    """The first window of SPL that fires, full or not: the one that ends after one slide.

    >>> spl_lowest(5, 2), spl_lowest(4, 4)
    (-2, 0)
    """
    return 1 + int(-size // slide)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def _times(w: Any, slide: Exact) -> Any:
    if isinstance(w, np.ndarray) and isinstance(slide, Fraction):
        product: Array = w.astype(object) * slide
        return product
    return w * slide


# -- slices ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slicing:
    """How the windows of a regular model are cut into slices that they share.

    Panes all have one length, the greatest common divisor of size and slide. Pairs are cut only
    where a window starts or ends: at most two a slide, however small the divisor is.

        size 5, slide 2     0 . 1 . 2 . 3 . 4 . 5 . 6 . 7
        panes               |   |   |   |   |   |   |   |     5 a window, 2 a slide
        pairs               |   |   |   |   |   |   |   |     the same here
        size 18, slide 5    panes of 1: 18 a window;  pairs of 3 and 2: 7 a window

    Seen from the slices, windows are again windows: `per_window` slices, one every `per_slide`.
    Slice numbers start with 0 at the start of window 0, and are negative before it.

    Args:
        model: the windows.
        per_window: how many slices make up a window.
        per_slide: how many slices a slide has.
        period: the length after which the cuts are the same again.
        cuts: where the slices of one period begin, counted from its start; the first is 0.
    """

    model: RegularWindows
    per_window: int
    per_slide: int
    period: Exact
    cuts: tuple[Exact, ...] = (0,)
    _windows: TimeWindows = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        windows = TimeWindows(self.per_window, self.per_slide, lowest=self.model.lowest)
        object.__setattr__(self, "_windows", windows)

    def of(self, x: Any) -> Any:
        """The slice that holds a point, or each of an array of points."""
        # The n-th cuts of all periods are a grid of their own: count those before the point.
        found = [floors(x, self.model.phase + cut, self.period) + 1 for cut in self.cuts]
        return sum(found[1:], found[0]) - 1

    def extent(self, p: int) -> tuple[Exact, Exact]:
        """The interval `[lo, hi)` of a slice."""
        return self._boundary(p), self._boundary(p + 1)

    def _boundary(self, p: int) -> Exact:
        periods, number = divmod(p, len(self.cuts))
        begin: Exact = self.model.phase + periods * self.period + self.cuts[number]
        return begin

    def panes_of(self, w: Any) -> Any:
        """The slices of a window, as a range; of an array of windows, a row of slices each."""
        if isinstance(w, np.ndarray):
            return w[:, None] * self.per_slide + np.arange(self.per_window)
        return range(w * self.per_slide, w * self.per_slide + self.per_window)

    def windows_of_pane(self, p: Any) -> Any:
        """The windows that a slice is part of, as a range; none for a gap between windows.

        Of an array of slices: two arrays, with a row number and a window for each.
        """
        return self._windows.windows(p)


def panes(model: RegularWindows) -> Slicing:
    """Slices of equal length.

    >>> cut = panes(CountWindows(5, 2))
    >>> cut.per_window, cut.per_slide, cut.panes_of(1), cut.windows_of_pane(4)
    (5, 2, range(2, 7), range(0, 3))
    """
    scale = lcm(*(Fraction(each).denominator for each in (model.size, model.slide)))
    size, slide = int(model.size * scale), int(model.slide * scale)
    common = gcd(size, slide)
    return Slicing(
        model, size // common, slide // common, exact(Fraction(common, scale), "panes(width")
    )


def pairs(model: RegularWindows) -> Slicing:
    """Slices between the places where windows start or end.

    >>> cut = pairs(CountWindows(18, 5))
    >>> cut.per_window, [cut.extent(p) for p in (0, 1, 2)]
    (7, [(0, 3), (3, 5), (5, 8)])
    """
    slides, rest = divmod(model.size, model.slide)
    if not rest:
        return Slicing(model, int(slides), 1, model.slide)
    return Slicing(model, 2 * int(slides) + 1, 2, model.slide, (0, rest))


# -- backward context: the next tuple changes nothing ---------------------------------------------
#
# The emitter keeps a few numbers for each key, and knows the window of a tuple when it comes. Apart
# from landmark windows, each tuple is in one window.


@dataclass(frozen=True, slots=True)
class SessionWindows(WindowModel):
    """A window ends where nothing comes for longer than `gap`; tuples come in order.

    With a gap of 3, tuples at 0, 3, 4, 8 and 20 make the windows {0, 3, 4}, {8} and {20}.
    """

    context: ClassVar[Context] = "backward"
    gap: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", length(self.gap, "SessionWindows(gap"))


@dataclass(frozen=True, slots=True)
class DeltaTumbling(WindowModel):
    """A window ends before the tuple whose value is more than `threshold` past its first.

    With a threshold of 10, the values 0, 9, 10, 11, 15 and 30 make {0, 9, 10}, {11, 15} and {30}.
    """

    context: ClassVar[Context] = "backward"
    threshold: Any


@dataclass(frozen=True, slots=True)
class CountOrTime(WindowModel):
    """A window ends with its tuple number `size`, or `period` after its first one came.

    With 3 tuples or 5 ticks, arrivals at 0, 1, 2, 3, 8 and 9 make {0, 1, 2}, {3} and {8, 9}.
    """

    context: ClassVar[Context] = "backward"
    size: int
    period: Any

    def __post_init__(self) -> None:
        size = whole(length(self.size, "CountOrTime(size"), "CountOrTime(size")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "period", length(self.period, "CountOrTime(period"))


@dataclass(frozen=True, slots=True)
class PunctuationWindows(WindowModel):
    """A window ends at a punctuation in the stream; two in a row make an empty one."""

    context: ClassVar[Context] = "backward"


@dataclass(frozen=True, slots=True)
class EventWindows(WindowModel):
    """Windows of event time, sessions and landmarks included: a watermark closes them.

    Tuples come in any order, and a session may join others, so the emitter keeps them all until
    they close; the worker that computes a window gets its tuples in the order of event time.
    """

    context: ClassVar[Context] = "backward"
    shared: bool
    """Whether a tuple may be in several windows."""

    @property
    def overlapping(self) -> bool:
        """Whether a tuple may be in several windows."""
        return self.shared


@dataclass(frozen=True, slots=True)
class LandmarkWindows(WindowModel):
    """Window w reaches from `start` to the end of slide w: `[start, start + (w + 1) * slide)`.

    A tuple is in every window from `first` on; before `start` it is in none, and `first` is
    negative. Only results can be kept, not tuples: there is no end to them.

    >>> model = LandmarkWindows(10, start=100)
    >>> model.first(125), model.extent(2), model.panes_of(2)
    (2, (100, 130), range(0, 3))
    """

    context: ClassVar[Context] = "backward"
    slide: Any
    start: Any = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide", length(self.slide, "LandmarkWindows(slide"))
        object.__setattr__(self, "start", exact(self.start, "LandmarkWindows(start"))

    @property
    def overlapping(self) -> bool:
        """Each window holds all before it."""
        return True

    def first(self, x: Any) -> Any:
        """The first window that holds a point, or each of an array; negative before the start."""
        return floors(x, self.start, self.slide)

    def extent(self, w: Any) -> tuple[Any, Any]:
        """The interval `[lo, hi)` of a window."""
        return self.start, self.start + (w + 1) * self.slide

    def panes_of(self, w: int) -> range:
        """The slices of a window, one for each slide."""
        return range(w + 1)

    def windows(self, x: Any) -> Iterator[int]:
        """The windows that hold a point, without end."""
        first = int(self.first(x))
        return count(first) if first >= 0 else iter(())


# -- forward context: known only when the trigger has come ----------------------------------------


class ForwardWindows(WindowModel):
    """Base of the models with forward context."""

    __slots__ = ()
    context: ClassVar[Context] = "forward"

    @property
    def overlapping(self) -> bool:
        """Yes: how far the next trigger reaches back is not known."""
        return True

    @property
    def most(self) -> int | None:
        """How many windows hold a tuple at most; None if there is no bound to that."""
        return None

    @property
    def semantics(self) -> Semantics:
        """Bounded if it is known when a tuple comes how many windows may hold it, at most."""
        return "FCU" if self.most is None else "FCB"


@dataclass(frozen=True, slots=True)
class SlideByTuple(ForwardWindows):
    """Every `slide` tuples, those of the last `size` ticks.

    Of the tuples up to the trigger, window w takes those newer than `size` before it:
    `(ts - size, ts]`. With `closed` also those of exactly that age, as windows of `windowlib` do.

    With 5 ticks every 2 tuples, timestamps 0, 1, 6 and 20 make {0, 1} and {20}: the tuple at 6 is
    too old when its trigger comes, and in no window.
    """

    size: Any
    slide: int
    closed: bool = False
    partial: bool = True

    def __post_init__(self) -> None:
        slide = whole(length(self.slide, "SlideByTuple(slide"), "SlideByTuple(slide")
        object.__setattr__(self, "slide", slide)


@dataclass(frozen=True, slots=True)
class SlideByTime(ForwardWindows):
    """Every `slide` ticks, the last `size` tuples.

    Window w is taken at `phase + (w + 1) * slide`, of the tuples before that. Without `repeat`
    only those that hold a tuple that no window before them held; without `partial` only those of
    `size` tuples.

    With 2 tuples every 10 ticks, timestamps 0, 5, 9, 31 and 40 make {5, 9} at 10, 20 and 30, and
    {9, 31} at 40.
    """

    size: int
    slide: Any
    phase: Any = 0
    repeat: bool = True
    partial: bool = True

    def __post_init__(self) -> None:
        size = whole(length(self.size, "SlideByTime(size"), "SlideByTime(size")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "slide", length(self.slide, "SlideByTime(slide"))
        object.__setattr__(self, "phase", exact(self.phase, "SlideByTime(phase"))


@dataclass(frozen=True, slots=True)
class DeltaWindows(ForwardWindows):
    """When a value is more than `slide` past that of the last trigger, what came before it.

    The first tuple is the first reference and triggers nothing. A trigger is not in its own
    window, and what counts as old is measured from the tuple before it.

    With a size of 5 and a slide of 2, the values 0, 1, 2, 3 and 10 make {0, 1, 2} when 3 comes, and
    {0, 1, 2, 3} when 10 does.
    """

    size: Any
    slide: Any
    partial: bool = True
    alike: bool = True
    """Whether size and slide are of the same value."""

    @property
    def most(self) -> int | None:
        """Triggers are more than a slide apart, and a tuple leaves after the size."""
        if not self.alike or not self.slide:
            return None
        return 1 - int(-self.size // self.slide)


@dataclass(frozen=True, slots=True)
class Triggered(ForwardWindows):
    """Any other pair: a count, delta or time that evicts, and another of them that triggers."""

    evict: PolicyKind
    size: Any
    trigger: PolicyKind
    slide: Any
    partial: bool = True

    @property
    def most(self) -> int | None:
        """A tuple leaves after so many others, each of which may trigger; time needs no tuples."""
        counted = self.evict == "count" and self.trigger == "delta"
        return int(self.size) if counted else None


# -- specifications -------------------------------------------------------------------------------


def model_of(spec: Spec) -> WindowModel:
    """The model of a specification, for each of its partitions.

    Times are microseconds since the start of the operator. With `partial="emit"` the windows that
    were never full are there, too: of a sliding count window those with negative numbers.

    >>> from windowlib import Count, Sliding, Time
    >>> model_of(Sliding(Count(5), every=Count(2)))
    CountWindows(size=5, slide=2, phase=1, lowest=0)
    >>> model_of(Sliding(Time("5s"), every=Count(2))).context
    'forward'
    """
    if not isinstance(spec, Tumbling | Sliding):
        msg = (
            f"model_of({spec!r}): not a window. Pass a specification, such as "
            f"Sliding(Count(100), every=Count(10))."
        )
        raise FarmError(msg)
    if any(policy.tuples == 0 for policy in spec.policies):
        msg = (
            f"model_of({spec!r}): with a count of 0 it holds nothing or is never processed, so "
            f"there are no windows to give away. Use Count(1) or more."
        )
        raise FarmError(msg)
    if spec.event_time:
        return EventWindows(isinstance(spec, Sliding))
    return _tumbling(spec.evict) if isinstance(spec, Tumbling) else _sliding(spec)


def _tumbling(policy: Policy) -> WindowModel:
    match policy:
        case Count(size):
            return CountWindows(size, size)
        case Time():
            return TimeWindows(policy.micros, policy.micros, lowest=0)
        case Delta():
            return DeltaTumbling(policy.threshold)
        case Either():
            return CountOrTime(policy.count.size, policy.time.micros)
        case _:
            return PunctuationWindows()


def _sliding(spec: Sliding) -> WindowModel:
    size, slide = _amount(spec.evict), _amount(spec.every)
    partial = spec.partial == "emit"
    match spec.evict.kind, spec.every.kind:
        case "count", "count":
            lowest = spl_lowest(size, slide) if partial else 0
            return CountWindows(size, slide, spl_phase(size, slide), lowest)
        case "time", "time":  # which counts as full from the start
            lowest = spl_lowest(size, slide)
            return TimeWindows(size, slide, spl_phase(size, slide), lowest)
        case "time", "count":
            return SlideByTuple(size, slide, closed=True)
        case "delta", "count":
            return SlideByTuple(size, slide, closed=True, partial=partial)
        case "count", "time":
            return SlideByTime(size, slide, partial=partial)
        case "delta", "delta":
            alike = len({delta.attribute for delta in spec.deltas}) == 1
            return DeltaWindows(size, slide, partial=partial, alike=alike)
        case evict, trigger:
            return Triggered(evict, size, trigger, slide, partial=partial)  # type: ignore[arg-type]


def _amount(policy: Policy) -> int:
    """Tuples, microseconds, or the threshold as it is."""
    match policy:
        case Count(size):
            return size
        case Time():
            return policy.micros
        case _:
            return policy.threshold  # type: ignore[union-attr, return-value]
