"""When a handler raises: its exception keeps its type and gains a note that says where it was.

Nothing is recorded while things go well. The failing handler is found afterwards, in the
traceback, by the code objects of the handlers that the window calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from windowlib.errors import WindowlibError
from windowlib.events import EVICT_EVENTS, FLUSH_EVENTS, PARTITION_EVENTS
from windowlib.order import Step, steps
from windowlib.policies import PartitionAge

if TYPE_CHECKING:
    from windowlib.window import Window

_STEP = {
    **dict.fromkeys(EVICT_EVENTS, Step.EVICT),
    **dict.fromkeys(FLUSH_EVENTS, Step.FLUSH),
    "on_trigger": Step.TRIGGER,
    "on_initial_full": Step.FULL,
}


@contextmanager
def collected(failures: list[Exception]) -> Iterator[None]:
    """Keep an exception for later, so that one partition's failure does not cost the others."""
    try:
        yield
    except Exception as error:
        failures.append(error)


def raise_first(window: Window[Any, Any], failures: list[Exception]) -> None:
    """Raise the first of the collected exceptions, if there is any, with its note."""
    if not failures:
        return
    first, *others = failures
    add_note(window, first)
    add_count(first, len(others))
    raise first


def add_count(error: Exception, others: int) -> None:
    """Mention that it was not the only one."""
    if others:
        error.add_note(f"and {others} more {'failure' if others == 1 else 'failures'} after it")


def add_note(window: Window[Any, Any], error: Exception, *, inserting: bool = False) -> str | None:
    """Say which handler, partition and tuple it was; the event, if a handler raised."""
    found = _handler_frame(window, error.__traceback__)
    if isinstance(error, WindowlibError):
        return None if found is None else found[0]
    where = f"{type(window).__name__} '{window.spec}'"
    if found is None:
        error.add_note(f"in {where}")
        return None
    event, frame = found
    what = f"time {window.now:g}"
    if inserting:
        what = f"tuple {window.seen + (not entered(window, event))}"
    owner = type(window.events).__name__
    error.add_note(f"in {event} of {owner}, {_partition(event, frame)}{what}, in {where}")
    return event


def _handler_frame(
    window: Window[Any, Any], traceback: TracebackType | None
) -> tuple[str, FrameType] | None:
    codes = {_code(handler): name for name, handler in window._on.items()}
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in codes:
            return codes[frame.f_code], frame
        traceback = traceback.tb_next
    return None


def _code(handler: Any) -> CodeType | None:
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


def _partition(event: str, frame: FrameType) -> str:
    """The key or keys, which are the last argument of every handler that has any."""
    code = frame.f_code
    if event == "on_empty_punctuation" or code.co_argcount < 2:
        return ""
    last = frame.f_locals.get(code.co_varnames[code.co_argcount - 1])
    return f"partition{'s' * (event in PARTITION_EVENTS)} {last!r}, "


def entered(window: Window[Any, Any], event: str) -> bool:
    """Whether the tuple being inserted was already in when this event fired."""
    if event in ("before_insert", "after_insert"):
        return event == "after_insert"
    order = steps(window.spec)
    step = _STEP.get(event)
    if step is None:  # partition events: of the age check, or of the insertion
        return not isinstance(window.spec.forget, PartitionAge)
    return step in order and order.index(step) > order.index(Step.INSERT)
