"""Failures of handlers: the exception keeps its type, and gains a note that says where it arose.

Nothing is recorded while things go well. The failing handler is found afterwards, in the
traceback, by the code objects of the handlers that the window calls. In the same way `Guard` makes
sure that it is a handler which changes the window that calls it, and refuses it.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from windowlib.durations import instant_text
from windowlib.errors import AccessError, BrokenStateError, WindowlibError
from windowlib.spec.order import Step, steps
from windowlib.spec.policies import PartitionAge
from windowlib.summaries.summarizers import FoldSummary, Summarizer
from windowlib.window.events import EVICT_EVENTS, FLUSH_EVENTS, PARTITION_EVENTS
from windowlib.window.subwindow import Subwindow

if TYPE_CHECKING:
    from windowlib.window.container import Window

_STEP = {
    **dict.fromkeys(EVICT_EVENTS, Step.EVICT),
    **dict.fromkeys(FLUSH_EVENTS, Step.FLUSH),
    "on_trigger": Step.TRIGGER,
    "on_initial_full": Step.FULL,
    "close": Step.FLUSH,  # of a summarizer
}
_UNKNOWN = object()


class FailedCall(NamedTuple):
    """A handler, or a method of a summarizer, that raised."""

    event: str
    owner: str
    keys: Any


@contextmanager
def collect_handler_failures(window: Window[Any, Any], failures: list[Exception]) -> Iterator[None]:
    """Collect an exception, so that the handlers of other partitions still run."""
    try:
        yield
    except Exception as error:
        add_note(window, error, f"time {instant_text(window.state.now)}")
        failures.append(error)


def raise_first(failures: list[Exception]) -> None:
    """Raise the first of the collected exceptions, if there is any."""
    if failures:
        add_count(failures[0], len(failures) - 1)
        raise failures[0]


def add_count(error: BaseException, others: int) -> None:
    """Note how many more failures there were."""
    if others:
        error.add_note(f"and {others} more {'failure' if others == 1 else 'failures'} after it")


def add_note(window: Window[Any, Any], error: BaseException, when: str) -> None:
    """Note the handler, the partition, and the tuple or time of a failure."""
    if isinstance(error, WindowlibError):
        return
    where = f"{type(window).__name__} '{window.spec}'"
    failed = find(window, error)
    if failed is None:
        error.add_note(f"in {where}")
        return
    partition = ""
    if failed.keys is not _UNKNOWN:
        partition = f"partition{'s' * (failed.event in PARTITION_EVENTS)} {failed.keys!r}, "
    error.add_note(f"in {failed.event} of {failed.owner}, {partition}{when}, in {where}")


def find(window: Window[Any, Any], error: BaseException) -> FailedCall | None:
    """The handler or summarizer that raised, if one did."""
    traceback, before = error.__traceback__, None
    while traceback is not None:
        frame = traceback.tb_frame
        events = [
            name
            for name, handler in window.state.handlers.items()
            if code_of(handler) is frame.f_code
        ]
        if events:
            event = events[0] if len(events) == 1 else _called(events, before)
            return FailedCall(event, type(window.events).__name__, _keys(event, frame))
        summarizer = frame.f_locals.get("self")
        own = isinstance(summarizer, Summarizer) and not isinstance(summarizer, FoldSummary)
        if own and before:
            return FailedCall(frame.f_code.co_name, type(summarizer).__name__, _key_near(before))
        traceback, before = traceback.tb_next, traceback
    return None


# -- interrupts -----------------------------------------------------------------------------------

CHANGES = "# changes from here on"
"""The line of a generated insert, as a comment, up to which nothing has changed."""


def before_changes(error: BaseException) -> bool:
    """Whether an insert was interrupted before its first change, empty partitions aside.

    The lines of the insert say it: those that only read come first.
    """
    traceback = error.__traceback__
    if traceback is None:
        return False
    frame = traceback.tb_frame
    if is_generated(frame.f_code):
        lines = linecache.getlines(frame.f_code.co_filename)
        first = frame.f_code.co_firstlineno - 1
        here = [line.strip() for line in lines[first : traceback.tb_lineno]]
        return CHANGES not in here
    return frame.f_locals.get("changing") is False  # the reference engine


def at_insert(error: BaseException) -> bool:
    """Whether the exception passed through a generated `insert` of a single tuple."""
    traceback = error.__traceback__
    code = None if traceback is None else traceback.tb_frame.f_code
    return code is not None and code.co_name == "insert" and is_generated(code)


def is_generated(code: CodeType) -> bool:
    """Whether a code object belongs to a generated insert."""
    return code.co_filename.startswith("<windowlib insert")


def raised_in(error: BaseException, *codes: CodeType) -> bool:
    """Whether an exception came out of one of these functions."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def broken_state(where: str, doing: str, how: str = "") -> BrokenStateError:
    """The error of a use after an interrupt; `how`: what to do before the restore."""
    fix = f"{how}, and restore() the last snapshot" if how else "restore() the last snapshot"
    return BrokenStateError(
        f"{where}: it was interrupted while it was {doing}, and that is half done. {fix}."
    )


def code_of(handler: Any) -> CodeType | None:
    """The code of a handler; None if it is not written in Python."""
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


def _called(events: list[str], caller: TracebackType | None) -> str:
    """Which of several events with the same handler was called, by the line of the call."""
    if caller is None:
        return events[0]
    frame = caller.tb_frame
    line = linecache.getline(frame.f_code.co_filename, caller.tb_lineno)
    told = f"{line} {frame.f_locals.get('event', '')} {frame.f_locals.get('handler', '')}"
    return next((event for event in events if event in told), events[0])


def _keys(event: str, frame: FrameType) -> Any:
    """The key or keys, which are the last argument of every handler that has any."""
    code = frame.f_code
    if event == "on_empty_punctuation" or code.co_argcount < 2:
        return _UNKNOWN
    return frame.f_locals.get(code.co_varnames[code.co_argcount - 1], _UNKNOWN)


def _key_near(caller: TracebackType) -> Any:
    """The key of the subwindow whose summarizer was called."""
    s = caller.tb_frame.f_locals.get("s")
    return s.key if isinstance(s, Subwindow) else _UNKNOWN


def tuple_entered(window: Window[Any, Any], event: str) -> bool:
    """Whether the tuple had entered the window when this event fired."""
    if event in ("before_insert", "after_insert"):
        return event == "after_insert"
    order = steps(window.spec)
    step = _STEP.get(event)
    if step is None:  # partition events: of the age check, or of the insertion
        return event in PARTITION_EVENTS and not isinstance(window.spec.forget, PartitionAge)
    return step in order and order.index(step) > order.index(Step.INSERT)


class GuardedTable(dict[Any, Subwindow]):
    """An empty table of subwindows whose look-ups ask for permission first."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], dict[Any, Subwindow]]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, key: Any) -> Subwindow:
        """The subwindow in the table that it stands for, if that may be changed."""
        return self._ask()[key]


class Guard:
    """Guards a window against inserts while a handler runs or the state is in arrays.

    An insert looks its partition up in `subs`, as it would in any case. While a handler is at work
    or the state is in arrays, a stand-in is there, so that the insert finds nothing and asks; one
    that may go on tests nothing. It is a hint: whether a handler is really at work, the stack
    tells, so that an interrupt which leaves the stand-in does no harm.
    """

    __slots__ = ("_elsewhere", "_table", "_window", "busy", "subs")

    def __init__(self, window: Window[Any, Any], table: dict[Any, Subwindow]) -> None:
        self._window, self._table = window, table
        self.busy = GuardedTable(self._when_busy)
        """The table that `subs` is while a handler runs."""
        self._elsewhere = GuardedTable(self._when_in_arrays)
        self.subs: dict[Any, Subwindow] = table
        """The table of subwindows, or what stands in for it."""

    @property
    def held(self) -> bool:
        """Whether a handler may be at work."""
        return self.subs is self.busy

    @held.setter
    def held(self, held: bool) -> None:
        free = self._elsewhere if self._window.state.in_arrays else self._table
        self.subs = self.busy if held else free

    def _when_busy(self) -> dict[Any, Subwindow]:
        self.check("insert(tuple)")
        return self.subs

    def _when_in_arrays(self) -> dict[Any, Subwindow]:
        self._window.state.sync()
        self.held = False
        return self.subs

    def check(self, call: str) -> None:
        """Refuse a call by a handler."""
        if not self.held:
            return
        if self._in_handler():
            raise self._refusal(call)
        self.held = False

    def refused(self, error: BaseException) -> BaseException | None:
        """What to raise for an insert that a handler made: a refusal; None: no handler made it."""
        nested = self.held and at_insert(error) and before_changes(error) and self._in_handler()
        if not nested:
            return None
        return self._refusal("insert(tuple)") if isinstance(error, Exception) else error

    def _refusal(self, call: str) -> AccessError:
        msg = (
            f"{call}: called by a handler of this window, which is at work. Handlers may read the "
            f"window, not change it: keep the tuple, and insert it after the call; or emit it to "
            f"an operator behind this one."
        )
        error = AccessError(msg)
        error.__suppress_context__ = True  # whatever else was wrong with it
        return error

    def _in_handler(self) -> bool:
        codes = {code_of(handler) for handler in self._window.state.handlers.values()}
        codes.add(code_of(self._window.events.on_late))
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code not in codes:
            frame = frame.f_back
        return frame.f_code in codes
