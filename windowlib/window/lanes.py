"""Which windows of event time there are, which are closed, and what is in them.

A lane has one watermark: that of the whole stream with all its keys, or that of a single key. It
keeps rows in slices, the stretches of time that are in the same windows, and hands out a `Firing`
for each window that the watermark has passed, in the order of their ends.
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
from windowlib.window.contents import Store


class Firing(NamedTuple):
    """One window of one key that is processed."""

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
    """How many of its rows, the first ones, all later windows of the key begin with."""


Fire = Callable[[Firing], None]


class Layout:
    """What all lanes of a window share: its points in time, its store and its options."""

    def __init__(self, spec: Spec, axis: Axis, store: Store) -> None:
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
        self.lane: type[Lane] = Hopping
        if isinstance(spec, Session):
            self.gap, self.lane = length(spec.gap), Sessions
            return
        assert event.size is not None
        offset: Any = event.offset
        if isinstance(spec, Landmark):
            self.lane = Landmarks
            if spec.since is not None:
                self.since = offset = _number(spec.since)
        every = spec.every.event if isinstance(spec, Sliding) else None
        step = event.size if every is None or every.size is None else every.size
        self.starts = Grid(step, offset)
        self.ends = self.starts.shifted(event.size)
        self.keeps = None if self.allowed is None else self.ends.shifted(self.allowed)
        """When a closed window is no longer kept, if it is for a while."""


def _number(since: Any) -> Number:
    """Where a landmark is on the axis."""
    at = instant(since)
    return since if at is None else at


class Lane:
    """The windows that one watermark closes."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.progress: Progress = layout.watermark.start()
        self.next: Number | None = None
        """The least watermark that closes or forgets something; None: any may."""
        self.watched: Number | None = None
        """When `IdleKeys` looks at it next, if that is known."""

    def late(self, ts: Number, key: Any) -> bool:
        """Whether all windows of a row are closed, and it can no longer be taken."""
        raise NotImplementedError

    def add(self, key: Any, ts: Number, row: Any, number: int, fire: Fire) -> None:
        """Take a row that is not late; corrects windows that were sent."""
        raise NotImplementedError

    def absorb(self, key: Any, last: Any, first: Any, content: Any) -> bool:
        """Take rows that were folded elsewhere, where no window is sent twice; not if late."""
        raise NotImplementedError

    def reach(self, watermark: Number, fire: Fire) -> None:
        """Close the windows that end up to the watermark."""
        raise NotImplementedError

    def closes(self) -> Number | None:
        """The least watermark that may close or forget what it has; None: it has nothing."""
        raise NotImplementedError

    def finish(self, fire: Fire) -> None:
        """Close all windows."""
        raise NotImplementedError

    def early(self, fire: Fire) -> None:
        """Look at the open windows that have changed."""
        raise NotImplementedError

    @property
    def changed(self) -> bool:
        """Whether an open window has changed since it was looked at."""
        raise NotImplementedError

    def firsts(self) -> dict[Any, int]:
        """The keys that have rows for open windows, with the numbers of their first arrivals."""
        raise NotImplementedError

    def contents(self, key: Any) -> list[Any]:
        """What is kept of a key for open windows, in order of time."""
        raise NotImplementedError

    def filling(self, key: Any) -> list[Any]:
        """Those of the contents of a key that may still get rows."""
        return self.contents(key)

    def kept(self) -> Iterator[Any]:
        """All contents, those of closed windows that may be corrected included."""
        raise NotImplementedError

    def save(self) -> list[Any]:
        """All of it, as plain data."""
        raise NotImplementedError

    def load(self, saved: Sequence[Any]) -> None:
        """Take back what `save` gave."""
        raise NotImplementedError

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """What several have saved together of some keys."""
        raise NotImplementedError


Slice = tuple[int, int]
"""The last and the first window that the rows of a slice are in."""


class Hopping(Lane):
    """Tumbling and sliding windows, by number: window k is [starts k, ends k)."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.slices: dict[Slice, dict[Any, Any]] = {}
        self.closed: int | None = None
        """The last window that is closed; None before the first row."""
        self.gone: int | None = None
        """The last window that is no longer kept."""
        self.counts: dict[tuple[int, Any], int] = {}
        """How often a window of a key was sent, where that may happen more than once."""
        self._changed: dict[tuple[int, Any], None] = {}
        self._floor: Number | None = None  # where the first window starts that takes rows

    def late(self, ts: Number, key: Any) -> bool:
        """Whether the last window of a row is closed, and no longer kept."""
        return self._floor is not None and bool(ts < self._floor)

    def add(self, key: Any, ts: Number, row: Any, number: int, fire: Fire) -> None:
        """Take a row; windows that were sent are sent again."""
        layout = self.layout
        last, first = layout.starts.index(ts), layout.ends.index(ts) + 1
        sent = self._sent(first, last)
        if sent and layout.retract:
            for k in sent:
                if contents := self._of(k, key):
                    fire(self._firing(k, key, contents, retracts=True))
        keys = self.slices.get((last, first))
        content = None if keys is None else keys.get(key)
        if content is None:
            content = layout.store.new(number)
            layout.store.add(content, ts, row)
            self.slices.setdefault((last, first), {})[key] = content
        else:
            layout.store.add(content, ts, row)
        if layout.early:
            opened = range(first if self.closed is None else max(first, self.closed + 1), last + 1)
            self._changed.update(dict.fromkeys((k, key) for k in opened))
        for k in sent:
            self._send(k, key, self._of(k, key), fire)

    def absorb(self, key: Any, last: int, first: int, content: Any) -> bool:
        """Take the rows of a slice; not if it is closed."""
        layout = self.layout
        if self.late(layout.axis.point(layout.starts, last), key):
            return False
        keys = self.slices.setdefault((last, first), {})
        if key in keys:
            layout.store.absorb(keys[key], content)
        else:
            keys[key] = content
        return True

    def _sent(self, first: int, last: int) -> range:
        """Those of the windows of a row that are closed, and kept to be corrected."""
        if self.closed is None or self.gone is None or self.closed == self.gone:
            return range(0)
        return range(max(first, self.gone + 1), min(last, self.closed) + 1)

    def reach(self, watermark: Number, fire: Fire) -> None:
        """Close the windows that end up to the watermark."""
        layout = self.layout
        to = layout.ends.index(watermark)
        if self.closed is None or to > self.closed:
            self._close(to, fire)
        self.gone = self.closed if layout.keeps is None else layout.keeps.index(watermark)
        self._forget()
        self._look_ahead()

    def closes(self) -> Number | None:
        """Where the first window with rows ends, or is no longer kept."""
        layout = self.layout
        k = self._earliest(self.closed)
        found = [] if k is None else [layout.axis.point(layout.ends, k)]
        if layout.keeps is not None and self.slices:
            kept = min(last for last, _ in self.slices)
            found.append(layout.axis.point(layout.keeps, kept))
        return min(found, default=None)

    def passed(self, to: int) -> None:
        """All windows up to a number are closed, and have been told of."""
        self.closed = self.gone = to if self.closed is None else max(self.closed, to)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Note from where on a row is late, and a watermark matters."""
        if self.closed is None or self.gone is None:
            return
        layout = self.layout
        self._floor = layout.axis.point(layout.starts, self.gone + 1)
        self.next = layout.axis.point(layout.ends, self.closed + 1)
        if layout.keeps is not None:
            self.next = min(self.next, layout.axis.point(layout.keeps, self.gone + 1))

    def finish(self, fire: Fire) -> None:
        """Close all windows."""
        if self.slices:
            self._close(max(last for last, _ in self.slices), fire)
        self.gone = self.closed
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
            if self.layout.keeps is None:
                self._drop(k)
        self.closed = to if at is None else max(at, to)

    def _earliest(self, at: int | None) -> int | None:
        """The first window behind a closed one that has rows."""
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

    def _of(self, k: int, key: Any) -> list[Any]:
        """The contents of one key in a window."""
        inside = sorted(each for each in self.slices if each[1] <= k <= each[0])
        found = [self.slices[each].get(key) for each in inside]
        return [content for content in found if content is not None]

    def _firing(self, k: int, key: Any, contents: list[Any], retracts: bool = False) -> Firing:
        layout = self.layout
        sent = self.counts.get((k, key), 0)
        start, end = layout.axis.point(layout.starts, k), layout.axis.point(layout.ends, k)
        return Firing(key, contents, start, end, sent - 1 if retracts else sent, retracts)

    def _send(self, k: int, key: Any, contents: list[Any], fire: Fire) -> None:
        firing = self._firing(k, key, contents)
        if self.layout.revises:
            self.counts[k, key] = firing.revision + 1
        fire(firing)

    def _drop(self, k: int) -> None:
        """Let go of what no window after this one needs."""
        for each in [each for each in self.slices if each[0] <= k]:
            del self.slices[each]

    def _forget(self) -> None:
        if self.gone is None:
            return
        self._drop(self.gone)
        for k, key in [each for each in self.counts if each[0] <= self.gone]:
            del self.counts[k, key]

    def early(self, fire: Fire) -> None:
        """Look at the open windows that have changed."""
        changed, self._changed = self._changed, {}
        for k, key in sorted(changed, key=lambda each: each[0]):
            self._send(k, key, self._of(k, key), fire)

    @property
    def changed(self) -> bool:
        """Whether an open window has changed since it was looked at."""
        return bool(self._changed)

    def _held(self) -> Iterator[dict[Any, Any]]:
        """The slices with rows that an open window will have, in order of time."""
        for each in sorted(self.slices):
            if self.closed is None or each[0] > self.closed:
                yield self.slices[each]

    def firsts(self) -> dict[Any, int]:
        """The keys that have rows for open windows, with the numbers of their first arrivals."""
        found: dict[Any, int] = {}
        for keys in self._held():
            for key, content in keys.items():
                found[key] = min(content.born, found.get(key, content.born))
        return found

    def contents(self, key: Any) -> list[Any]:
        """What is kept of a key for open windows, in order of time."""
        return [keys[key] for keys in self._held() if key in keys]

    def kept(self) -> Iterator[Any]:
        """All contents, those of closed windows that may be corrected included."""
        for keys in self.slices.values():
            yield from keys.values()

    def save(self) -> list[Any]:
        """All of it, as plain data."""
        save = self.layout.store.save
        slices = [
            [last, first, [[key, save(content)] for key, content in keys.items()]]
            for (last, first), keys in sorted(self.slices.items())
        ]
        counts = [[k, key, count] for (k, key), count in self.counts.items()]
        changed = [[k, key] for k, key in self._changed]
        return [slices, self.closed, self.gone, counts, changed]

    def load(self, saved: Sequence[Any]) -> None:
        """Take back what `save` gave."""
        load = self.layout.store.load
        slices, self.closed, self.gone, counts, changed = saved
        self.slices = {
            (last, first): {one_key(key): load(content) for key, content in keys}
            for last, first, keys in slices
        }
        self.counts = {(k, one_key(key)): count for k, key, count in counts}
        self._changed = {(k, one_key(key)): None for k, key in changed}
        self._look_ahead()

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """What several have saved together of some keys; all have closed what one has closed."""
        slices: dict[tuple[Any, Any], list[Any]] = {}
        for last, first, keys in (piece for each in saved for piece in each[0]):
            if own := [entry for entry in keys if mine(entry[0])]:
                slices.setdefault((last, first), []).extend(own)
        marks = [max((e[at] for e in saved if e[at] is not None), default=None) for at in (1, 2)]
        counts = [entry for each in saved for entry in each[3] if mine(entry[1])]
        changed = [entry for each in saved for entry in each[4] if mine(entry[1])]
        return [[[*ends, keys] for ends, keys in sorted(slices.items())], *marks, counts, changed]


class Landmarks(Hopping):
    """Windows that all start at one point, and end at point after point."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.whole: dict[Any, Any] = {}
        """What came up to the last window that is closed."""
        self._floor = layout.since

    def _look_ahead(self) -> None:
        super()._look_ahead()
        since = self.layout.since
        if since is not None and (self._floor is None or self._floor < since):
            self._floor = since

    def _send(self, k: int, key: Any, contents: list[Any], fire: Fire) -> None:
        if self.closed is not None and k <= self.closed:  # it is closed now, not looked at early
            store = self.layout.store
            known = self.whole.setdefault(key, store.new(contents[0].born))
            for content in contents:
                store.absorb(known, content)
            contents = [known]
        super()._send(k, key, contents, fire)

    def _of(self, k: int, key: Any) -> list[Any]:
        """All that there is of a key up to a window that is not closed."""
        known = [] if key not in self.whole else [self.whole[key]]
        inside = sorted(each for each in self.slices if each[0] <= k)
        return known + [self.slices[each][key] for each in inside if key in self.slices[each]]

    def _firing(self, k: int, key: Any, contents: list[Any], retracts: bool = False) -> Firing:
        made = super()._firing(k, key, contents, retracts)
        known = [self.whole[key]] if key in self.whole else []
        return made._replace(start=self.layout.since, settled=self.layout.store.size(known))

    def firsts(self) -> dict[Any, int]:
        """The keys with the numbers of their first arrivals."""
        found = super().firsts()
        for key, content in self.whole.items():
            found[key] = min(content.born, found.get(key, content.born))
        return found

    def contents(self, key: Any) -> list[Any]:
        """What is kept of a key, in order of time."""
        return ([self.whole[key]] if key in self.whole else []) + super().contents(key)

    def filling(self, key: Any) -> list[Any]:
        """Those behind the last window that is closed."""
        return super().contents(key)

    def kept(self) -> Iterator[Any]:
        """All contents."""
        yield from self.whole.values()
        yield from super().kept()

    def save(self) -> list[Any]:
        """All of it, as plain data."""
        save = self.layout.store.save
        return [super().save(), [[key, save(content)] for key, content in self.whole.items()]]

    def load(self, saved: Sequence[Any]) -> None:
        """Take back what `save` gave."""
        base, whole = saved
        super().load(base)
        load = self.layout.store.load
        self.whole = {one_key(key): load(content) for key, content in whole}

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """What several have saved together of some keys."""
        whole = [entry for each in saved for entry in each[1] if mine(entry[0])]
        return [Hopping.regrouped([each[0] for each in saved], mine), whole]


class Burst:
    """One session: from its first row to its last, and what it holds."""

    __slots__ = ("alive", "changed", "closed", "content", "first", "key", "last", "sent")

    def __init__(self, key: Any, first: Number, content: Any) -> None:
        self.key = key
        """As the first row had it, of those whose sessions are still known."""
        self.first = self.last = first
        self.content = content
        self.sent = 0
        """How often it was sent."""
        self.alive, self.changed, self.closed = True, False, False


class Sessions(Lane):
    """Windows that last as long as rows keep coming, key by key."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.bursts: dict[Any, list[Burst]] = {}
        """The sessions of each key, in order of time."""
        # When to look at each of them again, as a heap; its end may have moved on by then.
        self._timers: list[tuple[Number, int, Any, Burst]] = []
        self._number = count()

    def opened(self) -> Iterator[tuple[Any, Number, Number, Any]]:
        """The key, the first and the last timestamp and the content of all open sessions."""
        for key, bursts in self.bursts.items():
            for each in bursts:
                yield key, each.first, each.last, each.content

    def refill(self, opened: Iterable[tuple[Any, Number, Number, Any]]) -> None:
        """Have these sessions and no others."""
        self.bursts, self._timers, self.next = {}, [], None
        for key, first, last, content in opened:
            burst = Burst(key, first, content)
            burst.last = last
            self.bursts.setdefault(key, []).append(burst)
            self._watch(key, burst)
        for bursts in self.bursts.values():
            bursts.sort(key=lambda each: each.first)

    def _end(self, burst: Burst) -> Number:
        return later(burst.last, self.layout.gap)

    def _dropped(self, end: Number) -> Number:
        """When a session with this end is no longer kept."""
        allowed = self.layout.allowed
        return end if allowed is None else later(end, length(allowed))

    def _over(self, end: Number) -> bool:
        """Whether the watermark has passed an end."""
        reached = self.progress.current
        return reached is not None and bool(end < reached)

    def _met(self, ts: Number, key: Any) -> list[Burst]:
        """The sessions that a row belongs to, or joins."""
        end = later(ts, self.layout.gap)
        known = self.bursts.get(key, ())
        return [each for each in known if each.first <= end and ts <= self._end(each)]

    def _known(self, key: Any) -> Any:
        """A key as it is written where it has sessions: 1, 1.0 and True are one."""
        known = self.bursts.get(key)
        return known[0].key if known else key

    def late(self, ts: Number, key: Any) -> bool:
        """Whether the session that a row would be in is closed, and no longer kept."""
        end = later(ts, self.layout.gap)
        return self._over(self._dropped(end)) and not self._met(ts, key)

    def add(self, key: Any, ts: Number, row: Any, number: int, fire: Fire) -> None:
        """Take a row, which may join sessions; those that were sent are sent again."""
        key = self._known(key)
        met = self._met(ts, key)
        for each in met:
            if each.closed and self.layout.retract:
                fire(self._firing(key, each, retracts=True))
        if len(met) == 1:
            (burst,) = met
            self.layout.store.add(burst.content, ts, row)
            burst.first, burst.last = min(burst.first, ts), max(burst.last, ts)
        else:
            burst = self._joined(key, ts, row, number, met)
        burst.changed = self.layout.early
        burst.closed = self._over(self._end(burst))
        if self.layout.allowed is not None or len(met) != 1:
            self._watch(key, burst)
        if burst.closed:
            self._send(key, burst, fire)

    def absorb(self, key: Any, last: Number, first: Number, content: Any) -> bool:
        """Take a part of a session; not if it is closed."""
        end = later(last, self.layout.gap)
        known = self.bursts.get(key, ())
        met = [each for each in known if each.first <= end and first <= self._end(each)]
        if not met and self._over(end):
            return False
        key = self._known(key)
        burst = Burst(key, first, content)
        burst.last = last
        self._join(key, burst, met)
        self._watch(key, burst)
        return True

    def _joined(self, key: Any, ts: Number, row: Any, number: int, met: list[Burst]) -> Burst:
        """A new session of a row and of those that it joins."""
        store = self.layout.store
        burst = Burst(key, ts, store.new(number))
        store.add(burst.content, ts, row)
        self._join(key, burst, met)
        return burst

    def _join(self, key: Any, burst: Burst, met: list[Burst]) -> None:
        """Let a session take others in."""
        store = self.layout.store
        for each in met:
            store.absorb(burst.content, each.content)
            burst.first, burst.last = min(burst.first, each.first), max(burst.last, each.last)
            burst.sent = max(burst.sent, each.sent)
            each.alive = False
        kept = [each for each in self.bursts.get(key, ()) if each.alive]
        self.bursts[key] = sorted([*kept, burst], key=lambda each: each.first)

    def _watch(self, key: Any, burst: Burst) -> None:
        """Look at a session again when it ends, or if it is closed when it is no longer kept."""
        end = self._end(burst)
        at = self._dropped(end) if burst.closed else end
        heapq.heappush(self._timers, (at, next(self._number), key, burst))
        self.next = self._timers[0][0]

    def reach(self, watermark: Number, fire: Fire) -> None:
        """Close the sessions whose end the watermark has passed: a row at the end still joins."""
        ended: list[tuple[Number, int, Any, Burst]] = []
        while self._timers and self._timers[0][0] < watermark:
            _, _, key, burst = heapq.heappop(self._timers)
            if not burst.alive:
                continue
            end = self._end(burst)
            if end >= watermark:  # rows have come since
                self._watch(key, burst)
                continue
            if not burst.closed:
                burst.closed = True
                ended.append((end, burst.content.born, key, burst))
            if self._dropped(end) < watermark:
                self._remove(key, burst)
            else:
                self._watch(key, burst)
        self.next = self._timers[0][0] if self._timers else None
        for _, _, key, burst in sorted(ended, key=lambda each: each[:2]):
            self._send(key, burst, fire)

    def closes(self) -> Number | None:
        """The first time to look at a session again; it closes once the watermark is past that."""
        return self._timers[0][0] if self._timers else None

    def _remove(self, key: Any, burst: Burst) -> None:
        burst.alive = False
        left = [each for each in self.bursts[key] if each is not burst]
        if left:
            self.bursts[key] = left
        else:
            del self.bursts[key]

    def finish(self, fire: Fire) -> None:
        """Close all sessions."""
        ended = [
            (self._end(each), each.content.born, key, each)
            for key, bursts in self.bursts.items()
            for each in bursts
            if not each.closed
        ]
        self.bursts, self._timers, self.next = {}, [], None
        for _, _, key, burst in sorted(ended, key=lambda each: each[:2]):
            self._send(key, burst, fire)

    def _firing(self, key: Any, burst: Burst, retracts: bool = False) -> Firing:
        sent = burst.sent - 1 if retracts else burst.sent
        return Firing(key, [burst.content], burst.first, self._end(burst), sent, retracts)

    def _send(self, key: Any, burst: Burst, fire: Fire) -> None:
        firing = self._firing(key, burst)
        burst.sent, burst.changed = burst.sent + 1, False
        fire(firing)

    def early(self, fire: Fire) -> None:
        """Look at the open sessions that have changed."""
        known = [(key, each) for key, bursts in self.bursts.items() for each in bursts]
        for key, burst in known:
            if burst.changed:
                self._send(key, burst, fire)

    @property
    def changed(self) -> bool:
        """Whether an open session has changed since it was looked at."""
        return any(each.changed for bursts in self.bursts.values() for each in bursts)

    def firsts(self) -> dict[Any, int]:
        """The keys with open sessions, with the numbers of their first arrivals."""
        found: dict[Any, int] = {}
        for key in self.bursts:
            if born := [content.born for content in self.contents(key)]:
                found[key] = min(born)
        return found

    def contents(self, key: Any) -> list[Any]:
        """What is kept of a key in open sessions, in order of time."""
        return [each.content for each in self.bursts.get(key, ()) if not each.closed]

    def kept(self) -> Iterator[Any]:
        """All contents, those of closed sessions that may be corrected included."""
        for bursts in self.bursts.values():
            yield from (each.content for each in bursts)

    def save(self) -> list[Any]:
        """All of it, as plain data."""
        save = self.layout.store.save
        return [
            [key, [[b.first, b.last, b.sent, b.changed, b.closed, save(b.content)] for b in bursts]]
            for key, bursts in self.bursts.items()
        ]

    def load(self, saved: Sequence[Any]) -> None:
        """Take back what `save` gave."""
        self.bursts, self._timers = {}, []
        for key, bursts in saved:
            key = one_key(key)
            known = self.bursts[key] = []
            for first, last, sent, changed, closed, content in bursts:
                burst = Burst(key, first, self.layout.store.load(content))
                burst.last, burst.sent = last, sent
                burst.changed, burst.closed = changed, closed
                known.append(burst)
                self._watch(key, burst)

    @staticmethod
    def regrouped(saved: Sequence[Any], mine: Callable[[Any], bool]) -> list[Any]:
        """What several have saved together of some keys."""
        return [entry for each in saved for entry in each if mine(entry[0])]


class IdleKeys:
    """Closes the windows of keys that stay behind the others, and forgets such keys.

    Where each key has a watermark, it is at least a distance behind the greatest timestamp of all
    keys. A key without open windows whose watermark is just that is as good as a new one.

    Args:
        idle: the distance.
        layout: what the lanes share.
    """

    def __init__(self, idle: Amount, layout: Layout) -> None:
        self._idle, self._layout = length(idle), layout
        self.top: Number | None = None
        """The greatest timestamp of all keys."""
        self._timers: list[tuple[Number, int, Any, Lane]] = []
        self._number = count()

    @property
    def floor(self) -> Number | None:
        """Where the watermark of each key is at least; None before the first row."""
        return None if self.top is None else later(self.top, -self._idle)

    def admit(self, key: Any, lane: Lane, fire: Fire) -> None:
        """A row of a key comes: all before the least watermark is closed for it."""
        if (floor := self.floor) is not None:
            self._raise(lane, floor, fire)
        if lane.watched is None:
            self._watch(key, lane)

    def observe(self, key: Any, lane: Lane, lanes: dict[Any, Lane], fire: Fire) -> None:
        """A row of a key has been taken: close, and forget, what is too far behind it."""
        self._watch(key, lane)
        top = lane.progress.top
        if top is not None and (self.top is None or top > self.top):
            self.top = top
            self._sweep(lanes, fire)

    def _sweep(self, lanes: dict[Any, Lane], fire: Fire) -> None:
        floor, due = self.floor, []
        assert floor is not None
        while self._timers and self._timers[0][0] <= floor:
            due.append(heapq.heappop(self._timers))
        for at, _, key, lane in due:
            if lanes.get(key) is not lane:
                continue
            self._raise(lane, floor, fire)
            if lane.watched == at:
                lane.watched = None
            if lane.closes() is None and not _beyond(lane.progress.current, floor):
                del lanes[key]
            else:
                self._watch(key, lane)

    def _raise(self, lane: Lane, floor: Number, fire: Fire) -> None:
        if not _beyond(lane.progress.current, floor):
            lane.progress.current = floor
            lane.reach(floor, fire)

    def _watch(self, key: Any, lane: Lane) -> None:
        """Look at a key again when its first window closes, or when it can be forgotten."""
        at = lane.closes()
        at = lane.progress.current if at is None else at
        if at is not None and (lane.watched is None or at < lane.watched):
            lane.watched = at
            heapq.heappush(self._timers, (at, next(self._number), key, lane))

    def restored(self, top: Number | None, lanes: dict[Any, Lane]) -> None:
        """Go on from a snapshot."""
        self.top, self._timers = top, []
        for key, lane in lanes.items():
            lane.watched = None
            self._watch(key, lane)


def _beyond(watermark: Number | None, floor: Number) -> bool:
    return watermark is not None and bool(watermark > floor)
