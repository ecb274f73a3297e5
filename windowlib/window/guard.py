"""A handler must not change the window that calls it: that is found, and refused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from windowlib.errors import AccessError
from windowlib.window.failure import code_of

if TYPE_CHECKING:
    from windowlib.window.container import Window


class Guard:
    """Whether a window may be calling a handler.

    A slot that is set around calls, and looked at when a tuple comes: both cost nanoseconds, and a
    window without handlers does neither. It is a hint: whether a handler is really at work, the
    stack tells, so that an interrupt which leaves it set does no harm.
    """

    __slots__ = ("_window", "held")

    def __init__(self, window: Window[Any, Any]) -> None:
        self._window = window
        self.held = False

    def check(self, call: str) -> None:
        """Refuse a call by a handler."""
        if self.held:
            self.refuse(call)

    def refuse(self, call: str) -> None:
        """Refuse a call if a handler makes it."""
        if not self._in_handler():
            self.held = False
            return
        msg = (
            f"{call}: called by a handler of this window, which is at work. Handlers may read the "
            f"window, not change it: keep the tuple, and insert it after the call; or emit it to "
            f"an operator behind this one."
        )
        raise AccessError(msg)

    def _in_handler(self) -> bool:
        codes = {code_of(handler) for handler in self._window.state.handlers.values()}
        codes.add(code_of(self._window.events.on_late))
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code not in codes:
            frame = frame.f_back
        return frame.f_code in codes
