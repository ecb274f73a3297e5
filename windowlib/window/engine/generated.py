"""Writes one insert function per configuration: only the blocks it needs, in the table's order.

The same construction as `dataclasses`: source text, compiled once, with handlers and helpers as
the text's globals. A window without a handler, a time policy or partition eviction has no line
for it. Everything rare (flush, ticks, partition eviction, values out of order) is a call into
the container. `source(window, sample)` shows the text.

Names in the text: `t` the tuple, `key`, `s` its subwindow, `d` the tuples in it, `a` and `b` the
delta attributes of eviction and trigger.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windowlib.attributes import Getter
from windowlib.durations import as_instant
from windowlib.spec.order import Step, steps
from windowlib.spec.policies import Delta, PartitionAge, PartitionCount
from windowlib.spec.specification import KEY
from windowlib.summaries.slices import close_lines
from windowlib.summaries.source import update_lines
from windowlib.summaries.time_slices import TimeSlices
from windowlib.window.engine.rules import (
    check_delta,
    check_same_kind,
    evict_unordered,
    evicts_any,
    key_default,
    note_mixed_forms,
    pair,
    reject_key,
)
from windowlib.window.events import (
    EVICT_EVENTS,
    FLUSH_EVENTS,
    INSERT_EVENTS,
    PARTITION_EVENTS,
)
from windowlib.window.failure import CHANGES
from windowlib.window.subwindow import DEFAULT_KEY, UNKNOWN, UNSET

if TYPE_CHECKING:
    from windowlib.window.container import Window, WindowState

Insert = Callable[..., None]
InsertEach = Callable[..., Generator[None, None, Any]]
InsertTimed = Callable[[Iterator[Any], Callable[[Any], int], Callable[[int], None]], None]
Failed = Callable[[BaseException, Any, Any], BaseException]
Lines = Iterator[str]
HOLD, RELEASE = "guard.subs = busy", "guard.subs = subs"
"""While handlers are at work, a look-up of a partition finds a stand-in, which asks."""
MICROS = "({} * 1e6).__round__()"
"""Seconds, as a float, in microseconds: as `round` gives them, in half the time."""
_serial = itertools.count(1)
_stale: list[str] = []
"""Texts that are gone. The cache may be in use when the garbage collector finds them."""


def indent(lines: Lines | list[str], by: int = 1) -> list[str]:
    """Lines, moved to the right."""
    return ["    " * by + line for line in lines]


def generate(state: WindowState, sample: Any) -> dict[str, Insert]:
    """`insert`, `insert_many` and `advance` of a window, by name, for tuples like `sample`."""
    writer = _Writer(state, sample)
    for s in state.subwindows.values() if state.getters else ():  # of a snapshot, perhaps
        for tuple_ in s.data:
            note_mixed_forms(state, tuple_, sample)
    made = _compiled(writer, f"{writer.source()}\n{writer.advance_source()}")
    return {name: made[name] for name in ("insert", "insert_many", "advance")}


def generate_each(state: WindowState, sample: Any) -> InsertEach:
    """`insert_each` of a window, for tuples like `sample`; few windows need it."""
    writer = _Writer(state, sample)
    each: InsertEach = _compiled(writer, writer.each_source())["insert_each"]
    return each


def generate_timed(state: WindowState, sample: Any, times: Getter) -> InsertTimed:
    """`insert_timed` of a window, for tuples like `sample` whose times `times` reads."""
    writer = _Writer(state, sample)
    timed: InsertTimed = _compiled(writer, writer.timed_source(times))["insert_timed"]
    return timed


def generate_fused_insert(
    state: WindowState, sample: Any, other: Callable[[Any, int], None], failed: Failed
) -> tuple[Insert, Callable[[], None]] | None:
    """`insert(row, port=0)` of an operator, whose rows of the first port go into this window.

    Args:
        state: the window's.
        sample: a row like all others.
        other: takes the rows of other ports.
        failed: what an insert raises after an error.

    Returns:
        The function, and one that leaves all rows to `other` from then on; None for windows that
        have to do something before they look for a partition.
    """
    writer = _Writer(state, sample)
    if writer.early:
        return None
    names = writer.names
    names.update(other=other, failed=failed, direct=0)
    fused_insert: Insert = _compiled(writer, writer.fused_insert_source())["insert"]
    return fused_insert, lambda: names.update(direct=None)


def generate_fused_advance(
    state: WindowState, host: Any, move: Callable[[int], None]
) -> tuple[Insert, Callable[[], None]] | None:
    """`advance(now)` of an operator that has only this window on the clock.

    Args:
        state: the window's.
        host: the running operator, whose `_now` is the time, too.
        move: advances it, in microseconds, where there is something to be done.

    Returns:
        The function, and one that leaves all calls to `move` from then on; None for windows that
        leave all of them to it in any case.
    """
    writer = _Writer(state, None)
    text = writer.advance_source(also=["host._now = at"])
    if "host" not in text:
        return None
    names = writer.names
    names.update(host=host, move=move)
    fused_advance: Insert = _compiled(writer, text)["advance"]
    return fused_advance, lambda: names.update(subs=None)  # which the guard never has


def _compiled(writer: _Writer, text: str) -> dict[str, Any]:
    shown = str(writer.w.spec).encode("unicode_escape").decode()  # a name may have any characters
    writer.names["text"] = found = _Text.of(text, shown)
    # The names are globals of the text, which cost nothing in a call that does not use them;
    # closure cells would be copied into every call.
    exec(found.code, writer.names)
    return writer.names


class _Text:
    """The text of an insert, compiled; windows that are alike share it.

    Tracebacks show the generated line, for as long as there is a window to raise them.
    """

    def __init__(self, text: str, shown: str) -> None:
        name = f"<windowlib insert {next(_serial)}: {shown}>"
        self.code = compile(text, name, "exec")
        while _stale:
            linecache.cache.pop(_stale.pop(), None)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        weakref.finalize(self, _stale.append, name)

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(text: str, shown: str) -> _Text:
        """The text as it was compiled last, if that is not long ago."""
        return _Text(text, shown)


def source(window: Window[Any, Any], sample: Any) -> str:
    """The text of a window's insert, for the curious."""
    return _Writer(window.state, sample).source()


class _Writer:
    """Collects the lines of one window's insert, and the names they use."""

    def __init__(self, state: WindowState, sample: Any) -> None:
        self.w = state
        self.sample = sample
        self.spec = state.spec
        self.pe = state.eviction
        evict, trigger = state.spec.evict, state.spec.policies[-1]
        self.most, self.delta = evict.tuples, evict.delta
        self.period = evict.tick if state.sliding else None
        self.every = trigger.tuples
        self.trigger_delta = trigger.delta if state.sliding else None
        silent = state.spec.keeps_nothing and not state.sliding
        self.on = {} if silent else state.handlers
        self.held = False  # whether the guard is held for all of it, and not for each call
        # A handler that inserts makes a call of its own, which finds no partition as long as
        # another is at work. Where something comes before the look-up, it has to be asked.
        self.table = "guard.subs" if self.on else "subs"
        self.early = state.spec.keeps_nothing or isinstance(state.spec.forget, PartitionAge)
        self.names: dict[str, Any] = {
            "w": state.window,
            "state": state,
            "subs": state.subwindows,
            "new": state.opener(),
            "failed": state.failed,
            "pairs": lambda tuples, keys: pair(state, tuples, keys),
            "reject": lambda call: reject_key(state, call),
            "default": key_default(state),
            "UNSET": UNSET,
            "check": check_delta,
            "guard": state.guard,
            "busy": state.guard.busy,
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
        if self.early and self.on:
            one.insert(1, "    guard.check('insert(tuple)')")
        loop = self._held_loop(many[1:]) if self.on else [*many[1:], *indent(body, 2)]
        return "\n".join([*one, *indent(body), "", many[0], *loop]) + "\n"

    def fused_insert_source(self) -> str:
        """The text of an operator's `insert`; the state may be in arrays."""
        self.table = "guard.subs"
        start = ["if port is not direct: return other(t, port)", "key = default"]
        return "\n".join(["def insert(t, port=0):", *indent([*start, *self._guarded()])]) + "\n"

    def _held_loop(self, head: list[str]) -> list[str]:
        """The loop of `insert_many`; no handler may insert as long as it runs."""
        start = ["    guard.check('insert_many(tuples)')", f"    {HOLD}"]
        loop = [*head, *indent(self._loop_body(), 2)]
        return [*start, "    try:", *indent(loop), "    finally: guard.held = False"]

    def _loop_body(self, failing: str = "") -> list[str]:
        """The lines for each tuple of a loop that holds the guard."""
        table, self.table, self.held = self.table, "subs", True
        body = self._guarded(failing)
        self.table, self.held = table, False
        return body

    def each_source(self) -> str:
        """The text of `insert_each`: the loop of `insert_many`, which can be left and entered.

        Where tuples have a key by name, what is no tuple has none that can be looked up, and it
        takes no test to find it. No handler may insert as long as the loop runs, as there.
        """
        by = self.spec.by if isinstance(self.spec.by, tuple) else (self.spec.by,)
        named = all(isinstance(name, str) for name in by) and isinstance(self.sample, Mapping)
        loop = [
            *([] if named else ["if type(t) is not kind and is_mark(t): return t"]),
            *(["key = default"] if self.spec.by is KEY else []),
            *self._loop_body("if is_mark(t): return t"),
            f"if out: {RELEASE}; yield; {HOLD}" if self.on else "if out: yield",
        ]
        body = ["for t in tuples:", *indent(loop), "return UNSET"]
        if self.on:
            body = [HOLD, "try:", *indent(body), "finally: guard.held = False"]
        text = ["def insert_each(tuples, kind, is_mark, out):", "    key = default", *indent(body)]
        return "\n".join(text) + "\n"

    # -- time -------------------------------------------------------------------------------------

    def advance_source(self, also: Sequence[str] = ()) -> str:
        """The text of `advance`: what is nearly always the case, and a call for all else."""
        self.names["instant"] = as_instant
        whole = "now * 1000000 if type(now) is int else instant(now)"
        at = [f"try: at = {MICROS.format('now')} if type(now) is float else {whole}"]
        at += ["except (OverflowError, ValueError): at = instant(now)"]
        lines = [*at, *self._clock_lines(also)]
        return "\n".join(["def advance(now):", *indent(lines)]) + "\n"

    def timed_source(self, times: Getter) -> str:
        """The text of `insert_timed`: `advance` and `insert` in one loop.

        `when` reads the time of a tuple of any form, and `move` advances to it where there is
        something to be done.
        """
        read = times.inline("t", self.sample)
        at = ["at = when(t)"]
        if read is not None:
            at = ["try:", f"    at = {read}"]
            at += [f"    at = {MICROS.format('at')} if type(at) is float else when(t)"]
            at += ["except Exception: at = when(t)"]
        body = [*at, *self._clock_lines(), "key = default", *self._guarded()]
        text = ["def insert_timed(tuples, when, move):", "    for t in tuples:", *indent(body, 2)]
        return "\n".join(text) + "\n"

    def _clock_lines(self, also: Sequence[str] = ()) -> list[str]:
        """Move the clock to `at`, if that is all; where tuples leave unseen, they leave here.

        Args:
            also: what else is done if that is all.
        """
        self.names["move"] = self.w.move
        bound = " < w._tick" if self.w.tick is not None else ""
        alike = self.pe is None and not isinstance(self.w.slices, TimeSlices)
        unseen = not any(event in self.on for event in EVICT_EVENTS)
        if not unseen and self.period is not None:
            return ["move(at)"]
        if self.spec.evict.lapse is not None or (self.pe is not None and self.pe.by_age):
            return ["move(at)"]
        moved = ["w._now = at", *also]
        if self.period is not None:
            self._name_arrivals()
            self.names.update(forget=self.w.forget, stopped=self.w.stopped)
            moved += self._evict_lines() if alike else [f"forget(at - {self.period})"]
            moved = ["try:", *indent(moved), "except BaseException as error:"]
            moved += ["    stopped(error, 'advancing its clock')", "    raise"]
        test = f"if guard.subs is subs and w._now <= at{bound}:"
        return [test, *indent(moved), "else: move(at)"]

    def _evict_lines(self) -> list[str]:
        """Let tuples leave that are too old; one that leaves its partition empty needs a call.

        `w._oldest` is when the first in line came: an attribute is faster to read than a queue.
        """
        self.names["UNKNOWN"] = UNKNOWN
        return [
            f"e = at - {self.period}",
            "a = w._oldest",
            "if a < e:",
            "    if a is UNKNOWN: forget(e)",
            "    else:",
            "        while a < e:",
            "            s = arrivals.popleft()",
            "            d = s.data",
            "            v = d.popleft()",
            "            if not d: d.append(v); arrivals.appendleft(s); forget(e); break",
            "            stamps.popleft()",
            "            a = stamps[0]",
            "        else: w._oldest = a",
        ]

    def _name_arrivals(self) -> None:
        arrivals = self.w.arrivals
        self.names.update(arrivals=arrivals.subwindows, stamps=arrivals.stamps)

    def _guarded(self, failing: str = "") -> list[str]:
        body = list(self._body()) or ["pass"]
        fail = [
            "except BaseException as error:",
            *([f"    {failing}"] if failing else []),
            "    raise failed(error, t, key)",
        ]
        return ["try:", *indent(body), *fail]

    def _body(self) -> Lines:
        yield from self._key_lines()
        if self.spec.keeps_nothing:
            if self.w.sliding:
                yield from self._count_zero()
            elif self.names["default"] is not DEFAULT_KEY and self.spec.by is KEY:
                yield "if key is default: new(key)"  # says that the key is missing
            return
        yield from self._value_lines()
        if isinstance(self.spec.forget, PartitionAge):
            yield CHANGES
            yield self._held("evict()", *PARTITION_EVENTS)
        yield from self._lookup()
        # Handlers that are called for every tuple: held once.
        once = not self.held and any(event in self.on for event in INSERT_EVENTS)
        yield from [HOLD] * once
        self.held = self.held or once
        if self.w.sliding:
            yield from self._sliced() if self.w.slices else self._slide(steps(self.spec))
        else:
            yield from self._tumble(steps(self.spec))
        self.held = self.held and not once
        yield from [RELEASE] * once

    def _key_lines(self) -> Lines:
        if self.spec.by is KEY or self.w.key_getter is None:
            return
        self.names["key_of"] = self.w.key_getter
        inline = getattr(self.w.key_getter, "inline", lambda *_: None)("t", self.sample)
        # While it is not known, `key` must not be that of the tuple before.
        if inline is None:
            yield "key = default"
            yield "key = key_of(t)"
        else:
            yield f"try: key = {inline}"
            yield "except Exception: key = default; key = key_of(t)"

    def _value_lines(self) -> Lines:
        """Read the delta attributes; a value that has no distance from itself is refused.

        `check` has the rule. Infinity and NaN leave a difference that is not zero, and what cannot
        be subtracted raises: nothing has changed so far, and `failed` says what is wrong.
        """
        policies = {"a": self.delta, "b": self.trigger_delta}
        for name, policy in policies.items():
            if policy is None:
                continue
            self.names[f"p_{name}"] = policy
            self.names[f"get_{name}"] = self.w.getters[policy]
            if name == "b" and self._one_attribute():
                yield "b = a"
                continue
            if inline := self._inline(policy, "t"):
                self.names["strange"] = self._mixed_forms_lines
                yield f"try: {name} = {inline}"
                yield f"except Exception: {name} = get_{name}(t); strange(t)"
            else:
                yield f"{name} = get_{name}(t)"
            zero = " != 0.0" if type(policy.threshold) is float else ""  # faster between floats
            yield f"if {name} - {name}{zero}: check(p_{name}, {name}, t)"

    def _mixed_forms_lines(self, tuple_: Any) -> None:
        self.w.guard.check("insert(tuple)")
        self.w.sync()
        note_mixed_forms(self.w, tuple_, self.sample)

    def _one_attribute(self) -> bool:
        """Whether eviction and trigger read the same delta attribute."""
        evict, trigger = self.delta, self.trigger_delta
        return bool(evict and trigger and evict.attribute == trigger.attribute)

    def _inline(self, policy: Delta, variable: str) -> str | None:
        return self.w.getters[policy].inline(variable, self.sample)

    def _lookup(self) -> Lines:
        yield f"try: s = {self.table}[key]"
        yield "except KeyError:"
        yield from (f"    check(p_{x}, {x}, t)" for x in "ab" if f"p_{x}" in self.names)
        yield "    s = new(key)"
        yield "    key = s.key"
        yield CHANGES
        if self.trigger_delta is not None:
            yield "    if s.ref is UNSET: s.ref = b"
        if self.delta is not None and self.w.sliding:
            yield "    if s.newest is UNSET: s.newest = a"
        if self.spec.evict.lapse is not None:
            yield "    if s.ref is UNSET: s.ref = w._now"
        if self._full_at_once():
            yield "    s.full = True"

    def _negative(self, policy: Delta) -> bool:
        limit: Any = policy.threshold
        return bool(limit < (timedelta(0) if isinstance(limit, timedelta) else 0))

    def _exceeds(self, policy: Delta, new: str, old: str) -> str:
        """The delta test; `new >= old` is implied unless the threshold is negative."""
        limit, threshold = policy.threshold, f"d_{new}"
        self.names[threshold] = limit
        if isinstance(limit, int | float) and abs(limit) < math.inf:  # a literal is faster
            threshold = repr(limit)
        test = f"{new} - {old} > {threshold}"
        if not self._negative(policy):
            return test
        again = "v" if ":=" in old else old
        return f"{new} >= {old} and {new} - {again} > {threshold}"

    def _fire(self, event: str, arguments: str = "s.key") -> Lines:
        """Call a handler; keys may be equal and not the same, and it gets the partition's own."""
        if event in self.on:
            yield self._held(f"{event}(w, {arguments})", event)

    def _held(self, call: str, *events: str) -> str:
        """A call that may end in handlers, which must not come back."""
        called = not self.held and any(event in self.on for event in events)
        return f"{HOLD}; {call}; {RELEASE}" if called else call

    def _tumble(self, order: tuple[Step, ...]) -> Lines:
        self.names["flush"] = self.w.flush
        for step in order:
            if step is Step.INSERT:
                yield from self._fire("before_insert", "t, s.key")
                yield from self._keep()
                yield from self._touched()
            elif step is Step.FLUSH:
                yield from self._flush(self.w.spec.full_at)

    def _keep(self) -> Lines:
        if self.delta is not None:
            yield f"if not {'s.n' if self.w.summarizer else 's.data'}: s.ref = a"
        if self.w.summarizer is None:
            yield "d = s.data"
            yield "d.append(t)"
        elif self.w.slot_plan is not None:
            yield from update_lines(self.w.slot_plan, self.sample, self.names)
            yield "s.n = n = s.n + 1"
        else:
            self.names["open_summary"] = self.w.open_summary
            if not self.w.opens_early:
                yield "if s.summary is None: open_summary(s)"
            yield "s.summary.insert(t)"
            yield "s.n = n = s.n + 1"

    def _flush(self, full_at: int | None) -> Lines:
        flush = self._held("flush(s)", *FLUSH_EVENTS)
        if self.delta is not None:
            yield f"if {'s.n' if self.w.summarizer else 's.data'}:"
            yield f"    if {self._exceeds(self.delta, 'a', 's.ref')}: {flush}"
            yield "elif s.taken: check(p_a, a, t)"  # nothing is in there to compare it with
        else:
            alive = "s.alive and " if self.pe else ""
            size = "n" if self.w.summarizer else "len(d)"
            yield f"if {alive}{size} == {full_at}: {flush}"

    def _touched(self) -> Lines:
        """Partition bookkeeping with the tuple in, the after-insert event, partition eviction."""
        if self.pe is not None:
            yield "pe.total += 1"
            yield "s.stamp = w._now"
            yield "lru[key] = s"
            yield "to_end(key)"
        yield from self._fire("after_insert", "t, s.key")
        if self.pe is not None and not self.pe.by_age:
            need = "len(subs)" if isinstance(self.spec.forget, PartitionCount) else "pe.total"
            evict = self._held("evict()", *PARTITION_EVENTS)
            yield f"if {need} > {getattr(self.spec.forget, 'size')}: {evict}"  # noqa: B009

    def _slide(self, order: tuple[Step, ...]) -> Lines:
        yield "d = s.data"
        if self.delta is not None and self.trigger_delta is not None and not self._one_attribute():
            yield "a - s.newest"  # a type that does not mix fails before the trigger of the other
        blocks: dict[Step, Callable[[], Lines]] = {
            Step.FULL: self._full,
            Step.EVICT: self._evict_count if self.most is not None else self._evict_delta,
            Step.INSERT: self._insert,
            Step.TRIGGER: self._fire_trigger,
        }
        for step in order:
            if step in blocks:
                yield from blocks[step]()

    def _evict_count(self) -> Lines:
        assert self.most is not None
        if self.w.capacity() is not None:
            return  # the deque drops the oldest by itself
        yield f"if len(d) == {self.most}:"
        yield "    e = d[0]"
        yield from indent(self._pop())

    def _evict_delta(self) -> Lines:
        assert self.delta is not None
        self.names.update(evict_unordered=evict_unordered, mixes=check_same_kind)
        yield f"if s.rough: {self._held('evict_unordered(state, s, p_a, a)', *EVICT_EVENTS)}"
        yield "elif d:"
        oldest = self._inline(self.delta, "e") or "get_a(e)"
        if self._negative(self.delta):  # the test names the oldest value twice
            oldest = f"(v := {oldest})"
        # From Python 3.12 on a conditional jump back is under no `try`, so that an interrupt there
        # would not be noticed: the loop ends with a statement that always runs.
        yield "    e = d[0]"
        yield "    while True:"
        yield f"        if not ({self._exceeds(self.delta, 'a', oldest)}): break"
        if "on_initial_full" not in self.on:  # with that handler, FULL has set it before
            yield "        s.full = True"
        yield from indent(self._pop(), 2)
        yield "        if not d: break"
        yield "        e = d[0]"
        # Emptied by an insert that failed: there is no oldest to compare it with.
        yield "elif s.taken: check(p_a, a, t); mixes(state, p_a, a, s)"

    def _pop(self) -> Lines:
        yield from self._fire("before_evict", "e, s.key")
        yield "d.popleft()"
        if self.pe is not None:
            yield "pe.total -= 1"
        yield from self._fire("after_evict", "e, s.key")

    def _insert(self) -> Lines:
        yield from self._fire("before_insert", "t, s.key")
        yield "d.append(t)"
        yield "s.taken += 1"
        if self.period is not None:
            self._name_arrivals()
            yield "stamps.append(w._now)"
            yield "arrivals.append(s)"
        if self.delta is not None:
            yield "if a < s.newest: s.rough = True"
            yield "s.newest = a"
        yield from self._touched()

    def _full_at_once(self) -> bool:
        """Whether a partition is full from its first tuple on, and nobody is told."""
        return self.period is not None and "on_initial_full" not in self.on

    def _full(self) -> Lines:
        if "on_initial_full" not in self.on:
            return  # by count it is the size, by time the first tuple; delta eviction sets the flag
        if self.most is not None:
            alive = "s.alive and " if self.pe else ""
            yield f"if not s.full and {alive}len(d) == {self.most}:"
        elif self.delta is not None:
            self.names["evicts_any"] = evicts_any
            yield "if not s.full and evicts_any(state, s, p_a, a):"
        else:
            yield "if not s.full:"
        yield "    s.full = True"
        yield from indent(self._fire("on_initial_full"))

    def _fire_trigger(self) -> Lines:
        if self.trigger_delta is not None:
            yield f"if {self._exceeds(self.trigger_delta, 'b', 's.ref')}:"
            yield "    s.ref = b"
            yield from indent(self._full_at_trigger())
            yield from indent(self._fire("on_trigger"))
        elif self.every:
            if self.pe is not None and not self.pe.by_age:
                self.names["revive"] = self.w.revive
                yield "if not s.alive: s = revive(s.key)"
            yield from self._count_trigger(self.every)

    def _full_at_trigger(self) -> Lines:
        """FULL comes before a delta trigger; without its handler, only a trigger can see it."""
        if self.delta is not None and "on_trigger" in self.on and "on_initial_full" not in self.on:
            self.names["evicts_any"] = evicts_any
            oldest = self._inline(self.delta, "d[0]") or "get_a(d[0])"
            if self._negative(self.delta):
                oldest = f"(v := {oldest})"
            leaves = f"d and {self._exceeds(self.delta, 'a', oldest)}"
            yield f"if not s.full and (evicts_any(state, s, p_a, a) if s.rough else {leaves}):"
            yield "    s.full = True"

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
        self.names["revive"] = self.w.revive
        yield from self._value_lines()
        if "p_b" in self.names:
            yield "check(p_b, b, t)"
        yield CHANGES
        if isinstance(self.spec.forget, PartitionAge):
            yield self._held("evict()", *PARTITION_EVENTS)
        yield "s = revive(key)"
        yield "key = s.key"
        yield "w._left += 1"
        if self.trigger_delta is not None:
            yield "if s.ref is UNSET: s.ref = b"
        yield from self._fire_trigger()

    def _sliced(self) -> Lines:
        """Ready-made summaries in slices; a trigger looks at a number of closed ones."""
        slices = self.w.slices
        assert slices is not None
        if isinstance(slices, TimeSlices):
            yield from self._time_sliced(slices)
            return
        yield from update_lines(slices.plan, self.sample, self.names)
        yield from self._touched()
        self.names.update(slice_size=slices.slice_size, next_slice=slices.next_slice)
        yield "n = s.n + 1"
        yield f"if n != {'slice_size(s)' if slices.tail else slices.every}: s.n = n"
        yield "else:"
        yield from indent(close_lines(slices.plan, slices.filled, self.names))
        if "on_initial_full" in self.on:
            self.names["arrived"] = slices.arrived
            yield f"    if not s.full and arrived(s) >= {slices.window}:"
            yield "        s.full = True"
            yield from indent(self._fire("on_initial_full"), 2)
        if "on_trigger" in self.on:
            due = "if next_slice(s): " if slices.tail else ""
            yield f"    {due}{self._held('on_trigger(w, s.key)', 'on_trigger')}"
        elif slices.tail:
            yield "    next_slice(s)"

    def _time_sliced(self, slices: TimeSlices) -> Lines:
        """The same in slices of time, which a tick looks at; `e` is where that of now ends."""
        self.names["next_slice"] = slices.next_slice
        yield "e = w._tick"
        if slices.tail:
            yield f"if w._now < e - {slices.tail}: e -= {slices.tail}"
        yield "if s.ref != e: next_slice(s, e, w._now)"
        yield from update_lines(slices.plan, self.sample, self.names)
        yield "s.n += 1"
        yield "s.taken += 1"
        yield "s.newest = w._now"
        yield from self._touched()
