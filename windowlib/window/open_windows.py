"""The windows of event time under one watermark: which are open, and what they hold.

The watermark is that of the whole stream, or that of a single key. Rows are kept in slices: a slice
is an interval of time whose rows belong to the same windows. A `Firing` is made for each window
that the watermark has passed, in the order of their ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from windowlib.attributes import one_key
from windowlib.durations import Amount, Number, length
from windowlib.event_time.axis import Axis, Grid, instant, later
from windowlib.event_time.watermark import Progress, Watermark
from windowlib.spec.specification import Landmark, Session, Sliding, Spec
from windowlib.window.contents import ContentStore


class Firing(NamedTuple):
    """The firing of one window of one key."""

    key: Any
    contents: Sequence[Any]
    """Its slices, in order of time."""
    start: Number | None
    end: Number
    revision: int = 0
    """How often it has been sent before."""
    retracts: bool = False
    """Whether this takes back what was sent."""
    settled: int = 0
    """How many of its first rows begin every later window of the key, too."""


Fire = Callable[[Firing], None]


class EventTimeConfig:
    """What the specification of a window fixes: its bounds, its store and its options."""

    def __init__(self, spec: Spec, axis: Axis, store: ContentStore) -> None:
        event = spec.evict.event
        assert event is not None
        self.axis, self.store = axis, store
        self.watermark = spec.watermark or Watermark()
        self.retract, self.early = bool(spec.retract), spec.early is not None
        self.allowed: Amount | None = spec.allowed
        self.revises = self.early or self.allowed is not None
        """Whether a window may be sent more than once."""
        self.since: Number | None = None
        self.gap: Number = 0
        self.windows_type: type[OpenWindows] = OpenHoppingWindows
        if isinstance(spec, Session):
            self.gap, self.windows_type = length(spec.gap), OpenSessions
            return
        assert event.size is not None
        offset: Any = event.offset
        if isinstance(spec, Landmark):
            self.windows_type = OpenLandmarkWindows
            if spec.since is not None:
                self.since = offset = _number(spec.since)
        every = spec.every.event if isinstance(spec, Sliding) else None
        step = event.size if every is None or every.size is None else every.size
        self.starts = Grid(step, offset)
        self.ends = self.starts.shifted(event.size)
        self.expiries = None if self.allowed is None else self.ends.shifted(self.allowed)
        """When a closed window is dropped, if late rows may correct it until then."""


def _number(since: Any) -> Number:
    """The place of a landmark on the axis."""
    at = instant(since)
    return since if at is None else at


class OpenWindows:
    """The windows that one watermark closes."""

    def __init__(self, config: EventTimeConfig) -> None:
        self.config = config
        self.progress: Progress = config.watermark.start()
        self.next: Number | None = None
        """The least watermark that closes or forgets something; None: any may."""
        self.watched: Number | None = None
        """The next timer that `IdleKeys` has for it; None: there is none."""

    def late(self, ts: Number, key: Any) -> bool:
        """Whether all windows of a row are closed and dropped, so that it comes too late."""
        raise NotImplementedError

    def add(self, key: Any, ts: Number, row: Any, number: int, fire: Fire) -> None:
        """Add a row that is not late; closed windows that it belongs to fire again."""
        raise NotImplementedError

    def absorb(self, key: Any, last: Any, first: Any, content: Any) -> bool:
        """Merge in rows that were folded elsewhere, where no window fires twice; false if late."""
        raise NotImplementedError

    def reach(self, watermark: Number, fire: Fire) -> None:
        """Close the windows that end at the watermark or before it."""
        raise NotImplementedError

    def closes(self) -> Number | None:
        """The least watermark that may close or drop a window; None: there is none with rows."""
        raise NotImplementedError

    def finish(self, fire: Fire) -> None:
        """Close all windows."""
        raise NotImplementedError

    def fire_early(self, fire: Fire) -> None:
        """Fire the open windows that have changed since their last early firing."""
        raise NotImplementedError

    @property
    def changed(self) -> bool:
        """Whether an open window has changed since its last early firing."""
        raise NotImplementedError

    def first_arrivals(self) -> dict[Any, int]:
        """The keys with rows in open windows, and the number of the first arrival of each."""
        raise NotImplementedError

    def contents(self, key: Any) -> list[Any]:
        """The contents of a key in open windows, in order of time."""
        raise NotImplementedError

    def growing_contents(self, key: Any) -> list[Any]:
        """The contents of a key to which rows may still be added."""
        return self.contents(key)

    def all_contents(self) -> Iterator[Any]:
        """All contents, including those of closed windows that may be corrected."""
        raise NotImplementedError

    def save(self) -> list[Any]:
        """The state as plain data."""
        raise NotImplementedError

    def load(self, saved: Sequence[Any]) -> None:
        """Restore what `save` returned."""
        raise NotImplementedError

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """The merged states of several, restricted to some keys."""
        raise NotImplementedError


Slice = tuple[int, int]
"""A slice: the numbers of the last and the first window that its rows are in."""


class OpenHoppingWindows(OpenWindows):
    """Tumbling and sliding windows, by number: window k is [starts k, ends k)."""

    def __init__(self, config: EventTimeConfig) -> None:
        super().__init__(config)
        self.slices: dict[Slice, dict[Any, Any]] = {}
        self.closed: int | None = None
        """The last window that is closed; None before the first row."""
        self.dropped: int | None = None
        """The last window that is dropped."""
        self.counts: dict[tuple[int, Any], int] = {}
        """How often each window of a key has fired, where that may happen more than once."""
        self._changed: dict[tuple[int, Any], None] = {}
        self._floor: Number | None = None  # where the first window starts that takes rows

    def late(self, ts: Number, key: Any) -> bool:
        """Whether the last window of a row is closed and dropped."""
        return self._floor is not None and bool(ts < self._floor)

    def add(self, key: Any, ts: Number, row: Any, number: int, fire: Fire) -> None:
        """Add a row; closed windows that it belongs to fire again."""
        config = self.config
        last, first = config.starts.index(ts), config.ends.index(ts) + 1
        sent = self._revised(first, last)
        if sent and config.retract:
            for k in sent:
                if contents := self._contents_of(k, key):
                    fire(self._firing(k, key, contents, retracts=True))
        keys = self.slices.get((last, first))
        content = None if keys is None else keys.get(key)
        if content is None:
            content = config.store.new(number)
            config.store.add(content, ts, row)
            self.slices.setdefault((last, first), {})[key] = content
        else:
            config.store.add(content, ts, row)
        if config.early:
            opened = range(first if self.closed is None else max(first, self.closed + 1), last + 1)
            self._changed.update(dict.fromkeys((k, key) for k in opened))
        for k in sent:
            self._send(k, key, self._contents_of(k, key), fire)

    def absorb(self, key: Any, last: int, first: int, content: Any) -> bool:
        """Merge the rows of a slice; false if it is closed."""
        config = self.config
        if self.late(config.axis.point(config.starts, last), key):
            return False
        keys = self.slices.setdefault((last, first), {})
        if key in keys:
            config.store.absorb(keys[key], content)
        else:
            keys[key] = content
        return True

    def _revised(self, first: int, last: int) -> range:
        """The windows of a row that are closed and may still be corrected."""
        if self.closed is None or self.dropped is None or self.closed == self.dropped:
            return range(0)
        return range(max(first, self.dropped + 1), min(last, self.closed) + 1)

    def reach(self, watermark: Number, fire: Fire) -> None:
        """Close the windows that end at the watermark or before it."""
        config = self.config
        to = config.ends.index(watermark)
        if self.closed is None or to > self.closed:
            self._close(to, fire)
        self.dropped = self.closed if config.expiries is None else config.expiries.index(watermark)
        self._forget()
        self._look_ahead()

    def closes(self) -> Number | None:
        """Where the first window with rows ends or is dropped."""
        config = self.config
        k = self._earliest(self.closed)
        found = [] if k is None else [config.axis.point(config.ends, k)]
        if config.expiries is not None and self.slices:
            kept = min(last for last, _ in self.slices)
            found.append(config.axis.point(config.expiries, kept))
        return min(found, default=None)

    def mark_closed(self, to: int) -> None:
        """Note that all windows up to a number are closed and have fired."""
        self.closed = self.dropped = to if self.closed is None else max(self.closed, to)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Work out the least timestamp that is not late, and the least watermark that matters."""
        if self.closed is None or self.dropped is None:
            return
        config = self.config
        self._floor = config.axis.point(config.starts, self.dropped + 1)
        self.next = config.axis.point(config.ends, self.closed + 1)
        if config.expiries is not None:
            self.next = min(self.next, config.axis.point(config.expiries, self.dropped + 1))

    def finish(self, fire: Fire) -> None:
        """Close all windows."""
        if self.slices:
            self._close(max(last for last, _ in self.slices), fire)
        self.dropped = self.closed
        self._forget()
        self._look_ahead()

    def _close(self, to: int, fire: Fire) -> None:
        at = self.closed
        while True:
            k = self._earliest(at)
            if k is None or k > to:
                break
            self.closed = at = k  # before the handlers run, which may read what is open
            for key, contents in self._window(k):
                self._send(k, key, contents, fire)
                self._changed.pop((k, key), None)
            if self.config.expiries is None:
                self._drop(k)
        self.closed = to if at is None else max(at, to)

    def _earliest(self, at: int | None) -> int | None:
        """The first window after `at` that has rows."""
        if at is None:
            return min((first for _, first in self.slices), default=None)
        opened = (max(first, at + 1) for last, first in self.slices if last > at)
        return min(opened, default=None)

    def _window(self, k: int) -> list[tuple[Any, list[Any]]]:
        """The keys of a window with their contents, in order of their first arrival in it."""
        inside = sorted(each for each in self.slices if each[1] <= k <= each[0])
        if len(inside) == 1:
            return [(key, [content]) for key, content in self.slices[inside[0]].items()]
        found: dict[Any, list[Any]] = {}
        for each in inside:
            for key, content in self.slices[each].items():
                found.setdefault(key, []).append(content)
        return sorted(found.items(), key=lambda entry: min(c.born for c in entry[1]))

    def _contents_of(self, k: int, key: Any) -> list[Any]:
        """The contents of one key in a window."""
        inside = sorted(each for each in self.slices if each[1] <= k <= each[0])
        found = [self.slices[each].get(key) for each in inside]
        return [content for content in found if content is not None]

    def _firing(self, k: int, key: Any, contents: list[Any], retracts: bool = False) -> Firing:
        config = self.config
        sent = self.counts.get((k, key), 0)
        start, end = config.axis.point(config.starts, k), config.axis.point(config.ends, k)
        return Firing(key, contents, start, end, sent - 1 if retracts else sent, retracts)

    def _send(self, k: int, key: Any, contents: list[Any], fire: Fire) -> None:
        firing = self._firing(k, key, contents)
        if self.config.revises:
            self.counts[k, key] = firing.revision + 1
        fire(firing)

    def _drop(self, k: int) -> None:
        """Delete the slices that no later window needs."""
        for each in [each for each in self.slices if each[0] <= k]:
            del self.slices[each]

    def _forget(self) -> None:
        if self.dropped is None:
            return
        self._drop(self.dropped)
        for k, key in [each for each in self.counts if each[0] <= self.dropped]:
            del self.counts[k, key]

    def fire_early(self, fire: Fire) -> None:
        """Fire the open windows that have changed since their last early firing."""
        changed, self._changed = self._changed, {}
        for k, key in sorted(changed, key=lambda each: each[0]):
            self._send(k, key, self._contents_of(k, key), fire)

    @property
    def changed(self) -> bool:
        """Whether an open window has changed since its last early firing."""
        return bool(self._changed)

    def _open_slices(self) -> Iterator[dict[Any, Any]]:
        """The slices that belong to an open window, in order of time."""
        for each in sorted(self.slices):
            if self.closed is None or each[0] > self.closed:
                yield self.slices[each]

    def first_arrivals(self) -> dict[Any, int]:
        """The keys with rows in open windows, and the number of the first arrival of each."""
        found: dict[Any, int] = {}
        for keys in self._open_slices():
            for key, content in keys.items():
                found[key] = min(content.born, found.get(key, content.born))
        return found

    def contents(self, key: Any) -> list[Any]:
        """The contents of a key in open windows, in order of time."""
        return [keys[key] for keys in self._open_slices() if key in keys]

    def all_contents(self) -> Iterator[Any]:
        """All contents, including those of closed windows that may be corrected."""
        for keys in self.slices.values():
            yield from keys.values()

    def save(self) -> list[Any]:
        """The state as plain data."""
        save = self.config.store.save
        slices = [
            [last, first, [[key, save(content)] for key, content in keys.items()]]
            for (last, first), keys in sorted(self.slices.items())
        ]
        counts = [[k, key, count] for (k, key), count in self.counts.items()]
        changed = [[k, key] for k, key in self._changed]
        return [slices, self.closed, self.dropped, counts, changed]

    def load(self, saved: Sequence[Any]) -> None:
        """Restore what `save` returned."""
        load = self.config.store.load
        slices, self.closed, self.dropped, counts, changed = saved
        self.slices = {
            (last, first): {one_key(key): load(content) for key, content in keys}
            for last, first, keys in slices
        }
        self.counts = {(k, one_key(key)): count for k, key, count in counts}
        self._changed = {(k, one_key(key)): None for k, key in changed}
        self._look_ahead()

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """The merged states of several, restricted to some keys; closed is what any has closed."""
        slices: dict[tuple[Any, Any], list[Any]] = {}
        for last, first, keys in (piece for each in saved for piece in each[0]):
            if own := [entry for entry in keys if mine(entry[0])]:
                slices.setdefault((last, first), []).extend(own)
        marks = [max((e[at] for e in saved if e[at] is not None), default=None) for at in (1, 2)]
        counts = [entry for each in saved for entry in each[3] if mine(entry[1])]
        changed = [entry for each in saved for entry in each[4] if mine(entry[1])]
        return [[[*ends, keys] for ends, keys in sorted(slices.items())], *marks, counts, changed]


class OpenLandmarkWindows(OpenHoppingWindows):
    """Landmark windows: all start at one point, and one ends at every step."""

    def __init__(self, config: EventTimeConfig) -> None:
        super().__init__(config)
        self.closed_contents: dict[Any, Any] = {}
        """The merged contents of all closed windows, by key."""
        self._floor = config.since

    def _look_ahead(self) -> None:
        super()._look_ahead()
        since = self.config.since
        if since is not None and (self._floor is None or self._floor < since):
            self._floor = since

    def _send(self, k: int, key: Any, contents: list[Any], fire: Fire) -> None:
        if self.closed is not None and k <= self.closed:  # it is closed now, not looked at early
            store = self.config.store
            known = self.closed_contents.setdefault(key, store.new(contents[0].born))
            for content in contents:
                store.absorb(known, content)
            contents = [known]
        super()._send(k, key, contents, fire)

    def _contents_of(self, k: int, key: Any) -> list[Any]:
        """The contents of a key up to the end of an open window."""
        known = [] if key not in self.closed_contents else [self.closed_contents[key]]
        inside = sorted(each for each in self.slices if each[0] <= k)
        return known + [self.slices[each][key] for each in inside if key in self.slices[each]]

    def _firing(self, k: int, key: Any, contents: list[Any], retracts: bool = False) -> Firing:
        made = super()._firing(k, key, contents, retracts)
        known = [self.closed_contents[key]] if key in self.closed_contents else []
        return made._replace(start=self.config.since, settled=self.config.store.size(known))

    def first_arrivals(self) -> dict[Any, int]:
        """The keys, and the number of the first arrival of each."""
        found = super().first_arrivals()
        for key, content in self.closed_contents.items():
            found[key] = min(content.born, found.get(key, content.born))
        return found

    def contents(self, key: Any) -> list[Any]:
        """The contents of a key, in order of time."""
        return (
            [self.closed_contents[key]] if key in self.closed_contents else []
        ) + super().contents(key)

    def growing_contents(self, key: Any) -> list[Any]:
        """The contents after the last closed window."""
        return super().contents(key)

    def all_contents(self) -> Iterator[Any]:
        """All contents."""
        yield from self.closed_contents.values()
        yield from super().all_contents()

    def save(self) -> list[Any]:
        """The state as plain data."""
        save = self.config.store.save
        return [
            super().save(),
            [[key, save(content)] for key, content in self.closed_contents.items()],
        ]

    def load(self, saved: Sequence[Any]) -> None:
        """Restore what `save` returned."""
        base, whole = saved
        super().load(base)
        load = self.config.store.load
        self.closed_contents = {one_key(key): load(content) for key, content in whole}

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """The merged states of several, restricted to some keys."""
        whole = [entry for each in saved for entry in each[1] if mine(entry[0])]
        return [OpenHoppingWindows.regrouped([each[0] for each in saved], mine), whole]


class SessionState:
    """One session: its first and its last timestamp, and its contents."""

    __slots__ = ("alive", "changed", "closed", "content", "first", "key", "last", "sent")

    def __init__(self, key: Any, first: Number, content: Any) -> None:
        self.key = key
        """The key as the first row of its oldest session had it."""
        self.first = self.last = first
        self.content = content
        self.sent = 0
        """How often it has fired."""
        self.alive, self.changed, self.closed = True, False, False


class OpenSessions(OpenWindows):
    """Sessions: windows of a key that end with a gap between its rows."""

    def __init__(self, config: EventTimeConfig) -> None:
        super().__init__(config)
        self.sessions: dict[Any, list[SessionState]] = {}
        """The sessions of each key, in order of time."""
        # A heap of timers: when a session may end or be dropped. Rows may have extended it by then.
        self._timers: list[tuple[Number, int, Any, SessionState]] = []
        self._number = count()

    def opened(self) -> Iterator[tuple[Any, Number, Number, Any]]:
        """The key, the first and the last timestamp and the content of all open sessions."""
        for key, sessions in self.sessions.items():
            for each in sessions:
                yield key, each.first, each.last, each.content

    def refill(self, opened: Iterable[tuple[Any, Number, Number, Any]]) -> None:
        """Replace all sessions."""
        self.sessions, self._timers, self.next = {}, [], None
        for key, first, last, content in opened:
            session = SessionState(key, first, content)
            session.last = last
            self.sessions.setdefault(key, []).append(session)
            self._watch(key, session)
        for sessions in self.sessions.values():
            sessions.sort(key=lambda each: each.first)

    def _end(self, session: SessionState) -> Number:
        return later(session.last, self.config.gap)

    def _expiry(self, end: Number) -> Number:
        """When a session with this end is dropped."""
        allowed = self.config.allowed
        return end if allowed is None else later(end, length(allowed))

    def _is_past(self, end: Number) -> bool:
        """Whether the watermark has passed an end."""
        reached = self.progress.current
        return reached is not None and bool(end < reached)

    def _overlapping(self, ts: Number, key: Any) -> list[SessionState]:
        """The sessions that a row extends or connects."""
        end = later(ts, self.config.gap)
        known = self.sessions.get(key, ())
        return [each for each in known if each.first <= end and ts <= self._end(each)]

    def _first_spelling(self, key: Any) -> Any:
        """A key as its oldest session has it: 1, 1.0 and True are one key."""
        known = self.sessions.get(key)
        return known[0].key if known else key

    def late(self, ts: Number, key: Any) -> bool:
        """Whether the session of a row would be closed and dropped already."""
        end = later(ts, self.config.gap)
        return self._is_past(self._expiry(end)) and not self._overlapping(ts, key)

    def add(self, key: Any, ts: Number, row: Any, number: int, fire: Fire) -> None:
        """Add a row, which may connect sessions; closed ones fire again."""
        key = self._first_spelling(key)
        overlapping = self._overlapping(ts, key)
        for each in overlapping:
            if each.closed and self.config.retract:
                fire(self._firing(key, each, retracts=True))
        if len(overlapping) == 1:
            (session,) = overlapping
            self.config.store.add(session.content, ts, row)
            session.first, session.last = min(session.first, ts), max(session.last, ts)
        else:
            session = self._with_row(key, ts, row, number, overlapping)
        session.changed = self.config.early
        session.closed = self._is_past(self._end(session))
        if self.config.allowed is not None or len(overlapping) != 1:
            self._watch(key, session)
        if session.closed:
            self._send(key, session, fire)

    def absorb(self, key: Any, last: Number, first: Number, content: Any) -> bool:
        """Merge a part of a session; false if it is closed."""
        end = later(last, self.config.gap)
        known = self.sessions.get(key, ())
        overlapping = [each for each in known if each.first <= end and first <= self._end(each)]
        if not overlapping and self._is_past(end):
            return False
        key = self._first_spelling(key)
        session = SessionState(key, first, content)
        session.last = last
        self._merge(key, session, overlapping)
        self._watch(key, session)
        return True

    def _with_row(
        self, key: Any, ts: Number, row: Any, number: int, overlapping: list[SessionState]
    ) -> SessionState:
        """A new session of a row and the sessions that it connects."""
        store = self.config.store
        session = SessionState(key, ts, store.new(number))
        store.add(session.content, ts, row)
        self._merge(key, session, overlapping)
        return session

    def _merge(self, key: Any, session: SessionState, overlapping: list[SessionState]) -> None:
        """Merge others into a session."""
        store = self.config.store
        for each in overlapping:
            store.absorb(session.content, each.content)
            session.first, session.last = (
                min(session.first, each.first),
                max(session.last, each.last),
            )
            session.sent = max(session.sent, each.sent)
            each.alive = False
        kept = [each for each in self.sessions.get(key, ()) if each.alive]
        self.sessions[key] = sorted([*kept, session], key=lambda each: each.first)

    def _watch(self, key: Any, session: SessionState) -> None:
        """Set a timer for the end of a session; for a closed one, for when it is dropped."""
        end = self._end(session)
        at = self._expiry(end) if session.closed else end
        heapq.heappush(self._timers, (at, next(self._number), key, session))
        self.next = self._timers[0][0]

    def reach(self, watermark: Number, fire: Fire) -> None:
        """Close the sessions whose end the watermark has passed: a row at the end still joins."""
        ended: list[tuple[Number, int, Any, SessionState]] = []
        while self._timers and self._timers[0][0] < watermark:
            _, _, key, session = heapq.heappop(self._timers)
            if not session.alive:
                continue
            end = self._end(session)
            if end >= watermark:  # rows have come since
                self._watch(key, session)
                continue
            if not session.closed:
                session.closed = True
                ended.append((end, session.content.born, key, session))
            if self._expiry(end) < watermark:
                self._remove(key, session)
            else:
                self._watch(key, session)
        self.next = self._timers[0][0] if self._timers else None
        for _, _, key, session in sorted(ended, key=lambda each: each[:2]):
            self._send(key, session, fire)

    def closes(self) -> Number | None:
        """The first timer: the session closes when the watermark has passed it."""
        return self._timers[0][0] if self._timers else None

    def _remove(self, key: Any, session: SessionState) -> None:
        session.alive = False
        left = [each for each in self.sessions[key] if each is not session]
        if left:
            self.sessions[key] = left
        else:
            del self.sessions[key]

    def finish(self, fire: Fire) -> None:
        """Close all sessions."""
        ended = [
            (self._end(each), each.content.born, key, each)
            for key, sessions in self.sessions.items()
            for each in sessions
            if not each.closed
        ]
        self.sessions, self._timers, self.next = {}, [], None
        for _, _, key, session in sorted(ended, key=lambda each: each[:2]):
            self._send(key, session, fire)

    def _firing(self, key: Any, session: SessionState, retracts: bool = False) -> Firing:
        sent = session.sent - 1 if retracts else session.sent
        return Firing(key, [session.content], session.first, self._end(session), sent, retracts)

    def _send(self, key: Any, session: SessionState, fire: Fire) -> None:
        firing = self._firing(key, session)
        session.sent, session.changed = session.sent + 1, False
        fire(firing)

    def fire_early(self, fire: Fire) -> None:
        """Fire the open sessions that have changed since their last early firing."""
        known = [(key, each) for key, sessions in self.sessions.items() for each in sessions]
        for key, session in known:
            if session.changed:
                self._send(key, session, fire)

    @property
    def changed(self) -> bool:
        """Whether an open session has changed since its last early firing."""
        return any(each.changed for sessions in self.sessions.values() for each in sessions)

    def first_arrivals(self) -> dict[Any, int]:
        """The keys with open sessions, and the number of the first arrival of each."""
        found: dict[Any, int] = {}
        for key in self.sessions:
            if born := [content.born for content in self.contents(key)]:
                found[key] = min(born)
        return found

    def contents(self, key: Any) -> list[Any]:
        """The contents of a key in open sessions, in order of time."""
        return [each.content for each in self.sessions.get(key, ()) if not each.closed]

    def all_contents(self) -> Iterator[Any]:
        """All contents, including those of closed sessions that may be corrected."""
        for sessions in self.sessions.values():
            yield from (each.content for each in sessions)

    def save(self) -> list[Any]:
        """The state as plain data."""
        save = self.config.store.save
        return [
            [
                key,
                [[b.first, b.last, b.sent, b.changed, b.closed, save(b.content)] for b in sessions],
            ]
            for key, sessions in self.sessions.items()
        ]

    def load(self, saved: Sequence[Any]) -> None:
        """Restore what `save` returned."""
        self.sessions, self._timers = {}, []
        for key, sessions in saved:
            key = one_key(key)
            known = self.sessions[key] = []
            for first, last, sent, changed, closed, content in sessions:
                session = SessionState(key, first, self.config.store.load(content))
                session.last, session.sent = last, sent
                session.changed, session.closed = changed, closed
                known.append(session)
                self._watch(key, session)

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """The merged states of several, restricted to some keys."""
        return [entry for each in saved for entry in each if mine(entry[0])]


class IdleKeys:
    """Closes the windows of keys that fall behind the others, and forgets idle keys.

    Where each key has a watermark, it is at least a distance behind the greatest timestamp of all
    keys. A key without open windows whose watermark is just that is as good as a new one.

    Args:
        idle: the distance.
        config: the configuration of the window.
    """

    def __init__(self, idle: Amount, config: EventTimeConfig) -> None:
        self._idle, self._config = length(idle), config
        self.top: Number | None = None
        """The greatest timestamp of all keys."""
        self._timers: list[tuple[Number, int, Any, OpenWindows]] = []
        self._number = count()

    @property
    def floor(self) -> Number | None:
        """The least watermark that a key can have; None before the first row."""
        return None if self.top is None else later(self.top, -self._idle)

    def admit(self, key: Any, windows: OpenWindows, fire: Fire) -> None:
        """Raise the watermark of a key to the floor, before one of its rows is taken."""
        if (floor := self.floor) is not None:
            self._raise(windows, floor, fire)
        if windows.watched is None:
            self._watch(key, windows)

    def observe(
        self, key: Any, windows: OpenWindows, by_key: dict[Any, OpenWindows], fire: Fire
    ) -> None:
        """Close and forget other keys that are too far behind a row that was taken."""
        self._watch(key, windows)
        top = windows.progress.top
        if top is not None and (self.top is None or top > self.top):
            self.top = top
            self._sweep(by_key, fire)

    def _sweep(self, by_key: dict[Any, OpenWindows], fire: Fire) -> None:
        floor, due = self.floor, []
        assert floor is not None
        while self._timers and self._timers[0][0] <= floor:
            due.append(heapq.heappop(self._timers))
        for at, _, key, windows in due:
            if by_key.get(key) is not windows:
                continue
            self._raise(windows, floor, fire)
            if windows.watched == at:
                windows.watched = None
            if windows.closes() is None and not _is_after(windows.progress.current, floor):
                del by_key[key]
            else:
                self._watch(key, windows)

    def _raise(self, windows: OpenWindows, floor: Number, fire: Fire) -> None:
        if not _is_after(windows.progress.current, floor):
            windows.progress.current = floor
            windows.reach(floor, fire)

    def _watch(self, key: Any, windows: OpenWindows) -> None:
        """Set a timer for when the first window of a key closes, or the key can be forgotten."""
        at = windows.closes()
        at = windows.progress.current if at is None else at
        if at is not None and (windows.watched is None or at < windows.watched):
            windows.watched = at
            heapq.heappush(self._timers, (at, next(self._number), key, windows))

    def restored(self, top: Number | None, by_key: dict[Any, OpenWindows]) -> None:
        """Set the timers anew, after a snapshot was restored."""
        self.top, self._timers = top, []
        for key, windows in by_key.items():
            windows.watched = None
            self._watch(key, windows)


def _is_after(watermark: Number | None, floor: Number) -> bool:
    return watermark is not None and bool(watermark > floor)
