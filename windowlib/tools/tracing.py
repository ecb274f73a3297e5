"""Traces of windows: a stream runs through a window, and each step is recorded and drawn.

>>> print(trace("sliding, count(4), count(2)", range(8)))
sliding, count(4), count(2)
<BLANKLINE>
tuple      1   2   3   4   5   6   7   8
evict                      1   2   3   4
insert     1   2   3   4   5   6   7   8
full                   *
trigger        |       |       |       |
window       (1-2)    1-4     3-6     5-8
<BLANKLINE>
Each column runs from top to bottom. (1-2) not full yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from windowlib.attributes import Getter, key_getter
from windowlib.durations import Instant, as_instant
from windowlib.errors import ClockError, PartitionError
from windowlib.runtime.marks import Mark, advance, punct
from windowlib.spec.policies import Attribute, Delta, PartitionAge
from windowlib.spec.policies import Event as EventPolicy
from windowlib.spec.specification import KEY, By, Sliding, Spec
from windowlib.spec.spl import parse
from windowlib.tools.svg import draw
from windowlib.tools.timeline import PROCESSING, label, render, short
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.events import WindowEvents
from windowlib.window.sliding import SlidingWindow
from windowlib.window.subwindow import DEFAULT_KEY
from windowlib.window.tumbling import TumblingWindow

__all__ = ["Event", "Mark", "Moment", "Trace", "advance", "punct", "trace"]

EventName = Literal["evict", "insert", "late", "full", "trigger", "flush", "forget", "empty"]
WIDTH = 80


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a window did in one partition.

    `tuples` are numbers: of the tuple that entered or left, or of all that were processed or
    forgotten. `partial` windows are processed before they have been full.
    """

    name: EventName
    key: Any
    tuples: tuple[int, ...] = ()
    partial: bool = False


@dataclass(slots=True)
class Moment:
    """A tuple, a punctuation, or an instant at which the clock did something; and its events."""

    kind: Literal["tuple", "punct", "clock", "end"]
    time: float
    number: int = 0
    key: Any = DEFAULT_KEY
    values: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


class _Arrival:
    """A row with its number, so that equal rows stay apart."""

    __slots__ = ("number", "row")

    def __init__(self, number: int, row: Any) -> None:
        self.number = number
        self.row = row

    def __repr__(self) -> str:
        return repr(self.row)


class _ArrivalGetter(Getter):
    """Reads an attribute of the row inside an arrival, and looks like that attribute."""

    __slots__ = ()

    def __call__(self, arrival: _Arrival) -> Any:
        return super().__call__(arrival.row)

    def inline(self, variable: str, sample: object) -> str | None:
        return super().inline(f"{variable}.row", getattr(sample, "row", sample))

    def __repr__(self) -> str:
        return repr(self.attribute)


def _arrival_spec(spec: Spec) -> Spec:
    """The window for arrivals in place of rows, with keys that the caller passes."""
    changes: dict[str, Any] = {"by": KEY if spec.partitioned else None}
    stamp: _ArrivalGetter | None = None
    for name in ("evict", "every"):
        policy = getattr(spec, name, None)
        if policy is not None and policy.delta is not None:
            of = _ArrivalGetter(
                policy.attribute, f"Delta({policy.attribute!r}, {policy.threshold!r})"
            )
            changes[name] = Delta(of, policy.threshold)
        elif policy is not None and policy.event is not None:
            # One getter for both policies, which must be equal.
            stamp = stamp or _ArrivalGetter(policy.attribute, repr(policy))
            changes[name] = EventPolicy(stamp, policy.size, offset=policy.offset)
    if spec.watermark is not None and spec.watermark.sources is not None:
        sources = _ArrivalGetter(spec.watermark.sources, repr(spec.watermark))
        changes["watermark"] = replace(spec.watermark, sources=sources)
    return replace(spec, **changes)


def _lane_key(key: Any) -> Any:
    """A key that a lane can be found by again, which NaN cannot."""
    try:
        hash(key)
    except TypeError:
        msg = f"the key {key!r} is a {type(key).__name__}. Use a column of plain values."
        raise PartitionError(msg) from None
    return "nan" if key != key else key


class _Recorder(WindowEvents[_Arrival, Any]):
    """Runs a stream through a window and keeps what it did, moment by moment."""

    def __init__(self, spec: Spec, start: Instant) -> None:
        self.moments: list[Moment] = []
        self._full: set[Any] = set()
        self._late = 0
        self._start = as_instant(start) / 1e6
        self._deltas = spec.deltas
        self._key: Callable[[Any], Any] | None = None
        if spec.by is not None and spec.by is not KEY:
            self._key = key_getter(spec.by, f"by={spec.by!r}")  # type: ignore[arg-type]
        make: Any = SlidingWindow if isinstance(spec, Sliding) else TumblingWindow
        make = EventTimeWindow if spec.event_time else make
        self.window: Any = make(_arrival_spec(spec), events=self, start=start)

    def take(self, number: int, row: Any) -> None:
        key = DEFAULT_KEY if self._key is None else _lane_key(self._key(row))
        values = {label(d): Getter(d.attribute, repr(d))(row) for d in self._deltas}
        self._begin_moment("tuple", number, key, values)
        arrival = _Arrival(number, row)
        if self._key is None:
            self.window.insert(arrival)
        else:
            self.window.insert(arrival, key)
        if isinstance(self.window, EventTimeWindow):
            self._note_watermark(arrival, key, values)

    def _note_watermark(self, arrival: _Arrival, key: Any, values: dict[str, Any]) -> None:
        """Note the timestamp of a tuple, where the watermark is after it, and if it was late."""
        event = self.window.spec.evict.event
        values[label(event.attribute.attribute)] = event.attribute(arrival)
        values["watermark"] = self.window.watermark
        if self.window.late_rows > self._late:
            self._late = self.window.late_rows
            self._add("late", key, [arrival])

    def finish(self) -> None:
        """The stream ends, which closes what is open."""
        self._begin_moment("end")
        self.window.finish()
        if not self.moments[-1].events:
            self.moments.pop()

    def punctuate(self) -> None:
        self._begin_moment("punct")
        self.window.punctuate()

    def advance(self, to: Instant) -> None:
        self._begin_moment("clock")
        self.window.advance(to)
        if not self.moments[-1].events:
            self.moments.pop()

    def _begin_moment(self, kind: Any, *more: Any) -> None:
        self.moments.append(Moment(kind, self._now(), *more))

    def _now(self) -> float:
        return round(float(self.window.now) - self._start, 6)

    def _add(
        self, name: EventName, key: Any, tuples: Iterable[_Arrival] = (), **more: bool
    ) -> None:
        moment = self.moments[-1]
        if moment.kind == "clock" and moment.time != self._now():
            if moment.events:
                self._begin_moment("clock")
            else:
                moment.time = self._now()
        event = Event(name, key, tuple(arrival.number for arrival in tuples), **more)
        self.moments[-1].events.append(event)

    def after_insert(self, window: Any, tuple_: _Arrival, key: Any) -> None:
        self._add("insert", key, [tuple_])

    def before_flush(self, window: Any, key: Any) -> None:
        self._add("flush", key, window[key])

    def on_trigger(self, window: Any, key: Any) -> None:
        partial = bool(window[key]) and key not in self._full and not window.event_time
        self._add("trigger", key, window[key], partial=partial)

    def on_partitions_evicted(self, window: Any, keys: Sequence[Any]) -> None:
        for key in dict.fromkeys(keys):
            self._full.discard(key)
            self._add("forget", key, window[key])

    def on_empty_punctuation(self, window: Any) -> None:
        self._add("empty", DEFAULT_KEY)


class _EvictionRecorder(_Recorder):
    """A recorder for windows that evict single tuples."""

    def after_evict(self, window: Any, tuple_: _Arrival, key: Any) -> None:
        self._add("evict", key, [tuple_])

    def on_initial_full(self, window: Any, key: Any) -> None:
        self._full.add(key)
        self._add("full", key)


def trace(
    spec: Spec | str,
    rows: Iterable[Any] | None = None,
    *,
    by: By | Sequence[str] | None = None,
    times: Attribute | Iterable[Instant] | None = None,
    start: Instant | None = None,
) -> Trace:
    """Run a stream through a window and record what it does at each step.

    Args:
        spec: a specification, or its SPL text. Windows of event time are closed at the end.
        rows: tuples of any form, and `punct()` and `advance(seconds)` among them; a small stream
            that suits the window if left out.
        by: the partition key, if the specification does not name it.
        times: when the tuples arrive: a column, or one instant per tuple. Left out, the clock
            moves at each `advance` among the rows, or else by one second per tuple.
        start: when the clock starts; at the first arrival if left out.

    >>> trace("tumbling, punct()", ["a", "b", punct(), punct()]).windows
    [Event(name='flush', key=None, tuples=(1, 2), partial=False)]
    """
    from windowlib.samples import stream  # generated streams contain marks, which are made here

    whole = _resolve(spec, by, generated=rows is None)
    items = stream(whole) if rows is None else list(rows)
    arrivals = _arrivals(items, times)
    if start is None:
        start = next((at for at in arrivals if at is not None), 0) if times is not None else 0
    recorder = (_Recorder if whole.event_time else _EvictionRecorder)(whole, start)
    numbers = count(1)
    for item, at in zip(items, arrivals, strict=True):
        if at is not None:
            recorder.advance(at)
        if not isinstance(item, Mark):
            recorder.take(next(numbers), item)
        elif item.at is None:
            recorder.punctuate()
    if whole.event_time:
        recorder.finish()
    return Trace(whole, recorder.moments)


def _resolve(spec: Spec | str, by: By | Sequence[str] | None, *, generated: bool) -> Spec:
    whole = parse(spec) if isinstance(spec, str) else spec
    if by is None and whole.by is KEY:
        if not generated:
            msg = (
                f"trace({str(whole)!r}, rows): the window is partitioned, so name the key: "
                f'by="symbol".'
            )
            raise PartitionError(msg)
        by = "key"
    if by is None:
        return whole
    if not whole.partitioned:
        return parse(str(whole), by=by)  # refuses, and says why
    return replace(whole, by=by)  # type: ignore[arg-type]


def _arrivals(
    items: list[Any], times: Attribute | Iterable[Instant] | None
) -> list[Instant | None]:
    """When the clock moves before each item, and where to."""
    tuples = [item for item in items if not isinstance(item, Mark)]
    given: Iterator[Any]
    if times is None:
        moved = any(isinstance(item, Mark) and item.at is not None for item in items)
        given = iter([None] * len(tuples)) if moved else iter(range(len(tuples)))
    elif isinstance(times, str | int) or callable(times):
        given = map(Getter(times, f"times={times!r}"), tuples)
    else:
        given = iter(times)
    found: list[Any] = [i.at if isinstance(i, Mark) else next(given, items) for i in items]
    if any(at is items for at in found):
        msg = f"times: fewer instants than the {len(tuples)} tuples. Give one per tuple."
        raise ClockError(msg)
    return found


class Trace:
    """The steps of a window on a stream: `print` it, or show `to_svg()`."""

    def __init__(self, spec: Spec, moments: Sequence[Moment]) -> None:
        self.spec = spec
        self.moments = list(moments)

    @property
    def partitions(self) -> list[Any]:
        """The keys, in the order in which they appear."""
        seen: dict[Any, None] = {}
        for moment in self.moments:
            if moment.kind == "tuple":
                seen[moment.key] = None
            seen.update(dict.fromkeys(event.key for event in moment.events))
        return list(seen)

    @property
    def windows(self) -> list[Event]:
        """The windows that were processed, in order."""
        return [e for m in self.moments for e in m.events if e.name in PROCESSING]

    @property
    def clocked(self) -> bool:
        """Whether time matters to this window."""
        return self.spec.timed or isinstance(self.spec.forget, PartitionAge)

    def lane(self, key: Any) -> list[Moment]:
        """The moments of one partition, with the events of that partition alone."""
        own = [replace(m, events=[e for e in m.events if e.key == key]) for m in self.moments]
        return [m for m in own if m.events or (m.kind == "tuple" and m.key == key)]

    def idle(self, key: Any) -> bool:
        """Whether `key` only stands in for all partitions, at a time when there was none."""
        return self.spec.partitioned and not any(
            m.kind == "tuple" and m.key == key for m in self.moments
        )

    def heading(self, key: Any) -> str:
        """The heading of a partition; empty if there is only one."""
        by = self.spec.by
        if by is None or self.idle(key):
            return "" if by is None else "no partition"
        named = zip(by, key, strict=True) if isinstance(by, tuple) else [(by, key)]
        return ", ".join(f"{short(label(name))} = {short(value, 48)}" for name, value in named)

    def text(self, width: int = WIDTH) -> str:
        """The timeline as text: a block per partition, a column per step."""
        return render(self, width)

    def to_svg(self) -> str:
        """The timeline as a picture."""
        return draw(self)

    def to_html(self) -> str:
        """The picture for a page or a notebook, scrolling sideways if it is wide."""
        return f'<div style="overflow-x:auto">{self.to_svg()}</div>'

    _repr_html_ = to_html

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Trace '{self.spec}', {len(self.moments)} steps, {len(self.windows)} windows>"
