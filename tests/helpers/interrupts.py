"""KeyboardInterrupt at a chosen instruction of the library, by opcode tracing.

CPython looks for signals at calls, loops and the start of functions; tracing reaches nearly every
instruction, which is more than can happen. Left out is NOP: CPython puts that of a `try` inside
another one under neither.
"""

import dis
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import windowlib
from windowlib.window.events import HANDLERS

NOP = dis.opmap["NOP"]
ROOT = str(Path(windowlib.__file__).parent.parent)
OURS = tuple(f"{ROOT}/{room}/" for room in ("windowlib", "operators"))


def is_library(frame: Any) -> bool:
    """Whether code is of the library, and not called by a handler, which may be interrupted."""
    if not frame.f_code.co_filename.startswith((*OURS, "<windowlib insert")):
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

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if event == "call" and not is_library(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] != NOP:
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def interrupted(nth: int, call: Callable[[], Any]) -> bool:
    """Whether a call was interrupted at the nth instruction, rather than over before that."""
    before = sys.gettrace()
    sys.settrace(Interrupt(nth))
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def instructions(call: Callable[[], Any]) -> int:
    """How many instructions of the library a call runs."""
    count = Interrupt(0)
    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    return -count.left
