"""KeyboardInterrupt at a chosen instruction of the library, by tracing instructions.

CPython looks for signals at calls, loops and the start of functions; tracing reaches nearly every
instruction, which is more than can happen. Left out are those that do nothing: CPython puts the NOP
of a `try` inside another one under neither, and NOT_TAKEN after some jumps under none. From Python
3.12 on every generator ends with two that pass an error on, also when it is thrown away: an error
of theirs is then lost, and signals do not come there.
"""

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import windowlib
from windowlib.window.events import HANDLERS

LEFT_OUT = {"NOP", "NOT_TAKEN"}
LEFT_OUT |= {"CALL_INTRINSIC_1", "RERAISE"} if sys.version_info >= (3, 12) else set()
NOTHING = {code for name, code in dis.opmap.items() if name in LEFT_OUT}
ROOT = str(Path(windowlib.__file__).parent.parent)
LIBRARY = (*(f"{ROOT}/{room}/" for room in ("windowlib", "operators")), "<windowlib insert")


def is_library(frame: Any) -> bool:
    """Whether code is of the library, and not called by a handler, which may be interrupted."""
    if not frame.f_code.co_filename.startswith(LIBRARY):
        return False
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_name in HANDLERS:
            return False
        caller = caller.f_back
    return True


class Interrupt:
    """Raises KeyboardInterrupt before the nth instruction that the library runs, once."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def before(self, code: Any, at: int) -> None:
        """The library is about to run the instruction at this place of its code."""
        if code.co_code[at] not in NOTHING:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


if sys.version_info >= (3, 12):  # where a function that is traced for the first time tells nothing

    @contextmanager
    def watched(interrupt: Interrupt) -> Iterator[None]:
        """While it lasts, the interrupt is told of instructions."""
        tool, events = sys.monitoring.DEBUGGER_ID, sys.monitoring.events
        own = threading.get_ident()  # signals are told to one thread

        def instruction(code: Any, at: int) -> Any:
            if not code.co_filename.startswith(LIBRARY):
                return sys.monitoring.DISABLE
            if threading.get_ident() == own and is_library(sys._getframe(1)):
                interrupt.before(code, at)
            return None

        sys.monitoring.use_tool_id(tool, "interrupts")
        sys.monitoring.register_callback(tool, events.INSTRUCTION, instruction)
        sys.monitoring.set_events(tool, events.INSTRUCTION)
        try:
            yield
        finally:
            sys.monitoring.set_events(tool, events.NO_EVENTS)
            sys.monitoring.free_tool_id(tool)

else:

    @contextmanager
    def watched(interrupt: Interrupt) -> Iterator[None]:
        """While it lasts, the interrupt is told of instructions."""

        def trace(frame: Any, event: str, _: Any) -> Any:
            if event == "call" and not is_library(frame):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            if event == "opcode":
                interrupt.before(frame.f_code, frame.f_lasti)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(before)


def interrupted(nth: int, call: Callable[[], Any]) -> bool:
    """Whether a call was interrupted at the nth instruction, rather than over before that."""
    try:
        with watched(Interrupt(nth)):
            next(apart(call))
    except KeyboardInterrupt:
        stopped = True
    else:
        stopped = False
    assert sys.exc_info() == (None, None, None)
    return stopped


def apart(call: Callable[[], Any]) -> Iterator[None]:
    """Call it in a generator, which has a place of its own for the error that is being handled.

    An interrupt where CPython puts an error there, or takes it away, would leave it for all that
    follows; a signal does not come there.
    """
    call()
    yield


def instructions(call: Callable[[], Any]) -> int:
    """How many instructions of the library a call runs."""
    count = Interrupt(0)
    with watched(count):
        call()
    return -count.left
