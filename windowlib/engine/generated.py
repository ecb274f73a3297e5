"""Writes one insert function per configuration: only the blocks it needs, in the table's order.

The same construction as `dataclasses`: source text, compiled once, with handlers and helpers as
the text's globals. A window without a handler, a time policy or partition eviction has no line
for it. Everything rare (flush, ticks, partition eviction, values out of order) is a call into
the container. `source(window, sample)` shows the text.

Names in the text: `t` the tuple, `key`, `s` its subwindow, `d` the tuples in it, `a` and `b` the
delta attributes of eviction and trigger.
"""

from __future__ import annotations

import itertools
import linecache
import math
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windowlib.access import DEFAULT_KEY
from windowlib.engine.ready import update_lines
from windowlib.engine.rules import (
    check_delta,
    evict_where,
    key_default,
    leaves_any,
    pair,
    reject_key,
    strange_form,
)
from windowlib.engine.sliced import close_lines
from windowlib.order import Step, steps
from windowlib.policies import Count, Delta, Either, PartitionAge, PartitionCount, Time
from windowlib.sliding import SlidingWindow
from windowlib.spec import KEY
from windowlib.subwindow import UNSET
from windowlib.summarizers import Plan
from windowlib.tumbling import TumblingWindow

if TYPE_CHECKING:
    from windowlib.window import Window

Insert = Callable[..., None]
Lines = Iterator[str]
_serial = itertools.count(1)


def indent(lines: Lines | list[str], by: int = 1) -> list[str]:
    """Lines, moved to the right."""
    return ["    " * by + line for line in lines]


def generate(window: Window[Any, Any], sample: Any) -> tuple[Insert, Insert]:
    """`insert` and `insert_many` of a window, for tuples like `sample`."""
    writer = _Writer(window, sample)
    for s in window._subs.values() if window._getters else ():  # of a snapshot, perhaps
        for tuple_ in s.data:
            strange_form(window, tuple_, sample)
    text = writer.source()
    name = f"<windowlib insert {next(_serial)}: {window.spec}>"
    # The names are globals of the text, which cost nothing in a call that does not use them;
    # closure cells would be copied into every call.
    exec(compile(text, name, "exec"), writer.names)
    # Tracebacks show the generated line, for as long as there is a window to raise them.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    weakref.finalize(window, linecache.cache.pop, name, None)
    return writer.names["insert"], writer.names["insert_many"]


def source(window: Window[Any, Any], sample: Any) -> str:
    """The text of a window's insert, for the curious."""
    return _Writer(window, sample).source()


class _Writer:
    """Collects the lines of one window's insert, and the names they use."""

    def __init__(self, window: Window[Any, Any], sample: Any) -> None:
        self.w = window
        self.sample = sample
        self.spec = window.spec
        self.pe = window._pe
        self.evict = window.spec.evict
        self.trigger = window.spec.policies[-1]
        self.on = window._on
        self.names: dict[str, Any] = {
            "w": window,
            "subs": window._subs,
            "new": window._new,
            "failed": window._failed,
            "pairs": lambda tuples, keys: pair(window, tuples, keys),
            "reject": lambda call: reject_key(window, call),
            "default": key_default(window),
            "UNSET": UNSET,
            "check": check_delta,
            **self.on,
        }
        if self.pe is not None:
            self.names.update(
                pe=self.pe, lru=self.pe.lru, to_end=self.pe.lru.move_to_end, evict=self.pe.evict
            )

    def source(self) -> str:
        """The whole text: both functions."""
        body = self._guarded()
        one = ["def insert(t, /, key=default):"]
        many = ["def insert_many(tuples, keys=None):", "    for t, key in pairs(tuples, keys):"]
        if self.spec.by is not KEY:  # no keys to pair up: a plain loop
            one += ["    if key is not default: reject(f'insert(key={key!r})')"]
            many = [
                "def insert_many(tuples, keys=None):",
                "    if keys is not None: reject('insert_many(keys=...)')",
                "    key = default",
                "    for t in tuples:",
            ]
        return "\n".join([*one, *indent(body), "", *many, *indent(body, 2)]) + "\n"

    def _guarded(self) -> list[str]:
        body = list(self._body()) or ["pass"]
        if self.w._lock is not None:
            self.names["lock"] = self.w._lock
            body = ["with lock:", *indent(body)]
        fail = [
            "except Exception as error:",
            "    raise failed(error, t, key)",
        ]
        return ["try:", *indent(body), *fail]

    def _body(self) -> Lines:
        yield from self._key_lines()
        if isinstance(self.evict, Count) and not self.evict.size:
            if isinstance(self.w, SlidingWindow):
                yield from self._count_zero()
            elif self.names["default"] is not DEFAULT_KEY and self.spec.by is KEY:
                yield "if key is default: new(key)"  # says that the key is missing
            return
        yield from self._value_lines()
        if isinstance(self.spec.forget, PartitionAge):
            yield "evict()"
        yield from self._lookup()
        if isinstance(self.w, SlidingWindow):
            yield from self._sliced() if self.w._slices else self._slide(steps(self.spec))
        else:
            yield from self._tumble(steps(self.spec))

    def _key_lines(self) -> Lines:
        if self.spec.by is KEY or self.w._key_of is None:
            return
        self.names["key_of"] = self.w._key_of
        inline = getattr(self.w._key_of, "inline", lambda *_: None)("t", self.sample)
        # While it is not known, `key` must not be that of the tuple before.
        if inline is None:
            yield "key = default"
            yield "key = key_of(t)"
        else:
            yield f"try: key = {inline}"
            yield "except Exception: key = default; key = key_of(t)"

    def _value_lines(self) -> Lines:
        """Read the delta attributes; NaN would never fire and never be noticed."""
        policies = {"a": self.evict, "b": self.trigger if self._delta_trigger() else None}
        for name, policy in policies.items():
            if not isinstance(policy, Delta):
                continue
            self.names[f"p_{name}"] = policy
            self.names[f"get_{name}"] = self.w._getters[policy]
            if name == "b" and policy.attribute == getattr(self.evict, "attribute", None):
                yield "b = a"
                continue
            if inline := self._inline(policy, "t"):
                self.names["strange"] = lambda t: strange_form(self.w, t, self.sample)
                yield f"try: {name} = {inline}"
                yield f"except Exception: {name} = get_{name}(t); strange(t)"
            else:
                yield f"{name} = get_{name}(t)"
            yield f"if {name} != {name}: check(p_{name}, {name}, t)"

    def _inline(self, policy: Delta, variable: str) -> str | None:
        return self.w._getters[policy].inline(variable, self.sample)

    def _lookup(self) -> Lines:
        yield "try: s = subs[key]"
        yield "except KeyError:"
        yield from (f"    check(p_{x}, {x}, t)" for x in "ab" if f"p_{x}" in self.names)
        yield "    s = new(key)"
        yield "    key = s.key"
        if self._delta_trigger():
            yield "    if s.ref is UNSET: s.ref = b"
        if isinstance(self.evict, Delta) and isinstance(self.w, SlidingWindow):
            yield "    if s.newest is UNSET: s.newest = a"
        if isinstance(self.evict, Either):
            yield "    if s.ref is UNSET: s.ref = w._now"

    def _delta_trigger(self) -> bool:
        return isinstance(self.w, SlidingWindow) and isinstance(self.trigger, Delta)

    def _negative(self, policy: object) -> bool:
        assert isinstance(policy, Delta)
        limit: Any = policy.threshold
        return bool(limit < (timedelta(0) if isinstance(limit, timedelta) else 0))

    def _exceeds(self, policy: object, new: str, old: str) -> str:
        """The delta test; `new >= old` is implied unless the threshold is negative."""
        assert isinstance(policy, Delta)
        limit, threshold = policy.threshold, f"d_{new}"
        self.names[threshold] = limit
        if isinstance(limit, int | float) and abs(limit) < math.inf:  # a literal is faster
            threshold = repr(limit)
        test = f"{new} - {old} > {threshold}"
        if not self._negative(policy):
            return test
        again = "v" if ":=" in old else old
        return f"{new} >= {old} and {new} - {again} > {threshold}"

    def _fire(self, event: str, arguments: str = "key") -> Lines:
        if event in self.on:
            yield f"{event}(w, {arguments})"

    def _tumble(self, order: tuple[Step, ...]) -> Lines:
        assert isinstance(self.w, TumblingWindow)
        self.names["flush"] = self.w._flush
        for step in order:
            if step is Step.INSERT:
                yield from self._fire("before_insert", "t, key")
                yield from self._keep()
                yield from self._touched()
            elif step is Step.FLUSH:
                yield from self._flush(self.w.spec.full_at)

    def _keep(self) -> Lines:
        assert isinstance(self.w, TumblingWindow)
        if isinstance(self.evict, Delta):
            yield f"if not {'s.n' if self.w._factory else 's.data'}: s.ref = a"
        if self.w._factory is None:
            yield "d = s.data"
            yield "d.append(t)"
        elif isinstance(self.w._plan, Plan):
            yield from update_lines(self.w._plan, self.sample, self.names)
            yield "s.n = n = s.n + 1"
        else:
            self.names["open_summary"] = self.w._open
            if not self.w._opens_early:
                yield "if s.summary is None: open_summary(s)"
            yield "s.summary.insert(t)"
            yield "s.n = n = s.n + 1"

    def _flush(self, full_at: int | None) -> Lines:
        if isinstance(self.evict, Delta):
            size = "s.n" if self.w._factory else "s.data"
            yield f"if {size} and {self._exceeds(self.evict, 'a', 's.ref')}: flush(s)"
        else:
            alive = "s.alive and " if self.pe else ""
            size = "n" if self.w._factory else "len(d)"
            yield f"if {alive}{size} == {full_at}: flush(s)"

    def _touched(self) -> Lines:
        """Partition bookkeeping with the tuple in, the after-insert event, partition eviction."""
        if self.pe is not None:
            yield "pe.total += 1"
            yield "s.stamp = w._now"
            yield "lru[key] = s"
            yield "to_end(key)"
        yield from self._fire("after_insert", "t, key")
        if self.pe is not None and not self.pe.by_age:
            need = "len(subs)" if isinstance(self.spec.forget, PartitionCount) else "pe.total"
            yield f"if {need} > {getattr(self.spec.forget, 'size')}: evict()"  # noqa: B009

    def _slide(self, order: tuple[Step, ...]) -> Lines:
        yield "d = s.data"
        blocks: dict[Step, Callable[[], Lines]] = {
            Step.FULL: self._full,
            Step.EVICT: self._evict_count if isinstance(self.evict, Count) else self._evict_delta,
            Step.INSERT: self._insert,
            Step.TRIGGER: self._fire_trigger,
        }
        for step in order:
            if step in blocks:
                yield from blocks[step]()

    def _evict_count(self) -> Lines:
        assert isinstance(self.evict, Count)
        assert isinstance(self.w, SlidingWindow)
        if self.w._maxlen() is not None:
            return  # the deque drops the oldest by itself
        yield f"if len(d) == {self.evict.size}:"
        yield "    e = d[0]"
        yield from indent(self._pop())

    def _evict_delta(self) -> Lines:
        assert isinstance(self.evict, Delta)
        self.names["evict_where"] = evict_where
        yield "if s.rough: evict_where(w, s, p_a, a)"
        yield "else:"
        oldest = self._inline(self.evict, "(e := d[0])") or "get_a(e := d[0])"
        if self._negative(self.evict):  # the test names the oldest value twice
            oldest = f"(v := {oldest})"
        yield f"    while d and {self._exceeds(self.evict, 'a', oldest)}:"
        if "on_initial_full" not in self.on:  # with that handler, FULL has set it before
            yield "        s.full = True"
        yield from indent(self._pop(), 2)

    def _pop(self) -> Lines:
        yield from self._fire("before_evict", "e, key")
        yield "d.popleft()"
        if self.pe is not None:
            yield "pe.total -= 1"
        yield from self._fire("after_evict", "e, key")

    def _insert(self) -> Lines:
        yield from self._fire("before_insert", "t, key")
        yield "d.append(t)"
        yield "s.taken += 1"
        if isinstance(self.evict, Time):
            self.names["arrivals"] = self.w._arrivals
            yield "s.stamps.append(w._now)"
            yield "arrivals.append(s)"
        if isinstance(self.evict, Delta):
            yield "if a < s.newest: s.rough = True"
            yield "s.newest = a"
        yield from self._touched()

    def _full(self) -> Lines:
        if "on_initial_full" not in self.on and not isinstance(self.evict, Time):
            return  # count fullness is the size, delta eviction sets the flag itself
        if isinstance(self.evict, Count):
            alive = "s.alive and " if self.pe else ""
            yield f"if not s.full and {alive}len(d) == {self.evict.size}:"
        elif isinstance(self.evict, Delta):
            self.names["leaves_any"] = leaves_any
            yield "if not s.full and leaves_any(w, s, p_a, a):"
        else:
            yield "if not s.full:"
        yield "    s.full = True"
        yield from indent(self._fire("on_initial_full"))

    def _fire_trigger(self) -> Lines:
        assert isinstance(self.w, SlidingWindow)
        if isinstance(self.trigger, Delta):
            yield f"if {self._exceeds(self.trigger, 'b', 's.ref')}:"
            yield "    s.ref = b"
            yield from indent(self._fire("on_trigger"))
        elif isinstance(self.trigger, Count) and self.trigger.size:
            if self.pe is not None and not self.pe.by_age:
                self.names["revive"] = self.w._revive
                yield "if not s.alive: s = revive(key)"
            yield from self._count_trigger(self.trigger.size)

    def _count_trigger(self, every: int) -> Lines:
        if every == 1:
            yield from self._fire("on_trigger")
            return
        yield "c = s.count + 1"
        yield f"if c == {every}:"
        yield "    s.count = 0"
        yield from indent(self._fire("on_trigger"))
        yield "else: s.count = c"

    def _count_zero(self) -> Lines:
        """A window that keeps nothing still counts and triggers."""
        assert isinstance(self.w, SlidingWindow)
        self.names["revive"] = self.w._revive
        yield from self._value_lines()
        if isinstance(self.spec.forget, PartitionAge):
            yield "evict()"
        if "p_b" in self.names:
            yield "check(p_b, b, t)"
        yield "s = revive(key)"
        yield "key = s.key"
        yield "w._left += 1"
        if self._delta_trigger():
            yield "if s.ref is UNSET: s.ref = b"
        yield from self._fire_trigger()

    def _sliced(self) -> Lines:
        """Ready-made summaries in slices; a trigger looks at a number of closed ones."""
        assert isinstance(self.w, SlidingWindow)
        slices = self.w._slices
        assert slices is not None
        yield from update_lines(slices.plan, self.sample, self.names)
        yield "s.n = n = s.n + 1"
        yield from self._touched()
        self.names.update(limit=slices.limit, turn=slices.turn)
        yield f"if n == {'limit(s)' if slices.tail else slices.every}:"
        yield from indent(close_lines(slices.plan, slices.kept, self.names))
        if "on_initial_full" in self.on:
            self.names["arrived"] = slices.arrived
            yield f"    if not s.full and arrived(s) >= {slices.window}:"
            yield "        s.full = True"
            yield from indent(self._fire("on_initial_full"), 2)
        if "on_trigger" in self.on:
            due = "if turn(s): " if slices.tail else ""
            yield f"    {due}on_trigger(w, key)"
        elif slices.tail:
            yield "    turn(s)"
