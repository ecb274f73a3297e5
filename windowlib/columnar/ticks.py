"""The clock and punctuations, where the state is in arrays: all partitions fire at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from windowlib.columnar.decline import Decline
from windowlib.columnar.engine import Engine, beat_of
from windowlib.columnar.failed import Failed, failure_of
from windowlib.columnar.firings import Firings
from windowlib.columnar.stamps import HUGE, Stamps, stretches
from windowlib.policies import Either, Time
from windowlib.spec import Tumbling

if TYPE_CHECKING:
    from windowlib.window import Window

FEW = 300
"""Rows between two ticks from which on it pays to work on them at once."""

MANY = 1 << 20
"""The most firings that are looked for at once."""
FIRING = {"before_flush", "on_trigger"}
"""Events that a batch can tell of at once."""


class Ticks:
    """The half of `Batches` that lets all partitions fire."""

    window: Window[Any, Any]
    engine: Engine | None
    reason: str

    def settle(self) -> None:
        """Give the state back to the event engine."""
        raise NotImplementedError

    def _tell(self, firings: Firings) -> None:
        raise NotImplementedError

    def _check_idle(self) -> None:
        raise NotImplementedError

    def _stretches(self, rows: int, stamps: Stamps | None) -> list[tuple[int, int]]:
        """The rows of a batch in runs that are inserted at once; not if these get too short."""
        tick, beat = self.window._tick, beat_of(self.window)
        if stamps is None or tick is None or beat is None:
            return [(0, rows)]
        quiet = self._quiet(beat)
        found = stretches(stamps, tick, beat, quiet, HUGE)
        if len(found) > 2 and rows < FEW * len(found):
            raise Decline(f"fewer than {FEW} rows between ticks that stop them")
        if isinstance(self.window.spec, Tumbling):
            return found
        return stretches(stamps, tick, beat, quiet, self._most(rows))

    def _quiet(self, beat: int) -> int:
        """How long after the last row a tick finds a partition in storage, which then fires."""
        evict = self.window.spec.evict
        if isinstance(self.window.spec, Tumbling):
            return beat
        return evict.micros if isinstance(evict, Time) else HUGE

    def _most(self, rows: int) -> int:
        """How many ticks fire all partitions of a sliding window at once."""
        known = self.engine.keys if self.engine is not None else None
        partitions = rows if known is None else len(known)
        return MANY // (partitions if self.window.spec.partitioned else 1)

    def _tick_after(self, ticks: int) -> int:
        """When the clock ticks after some more ticks."""
        tick, beat = self.window._tick, beat_of(self.window)
        assert tick is not None
        assert beat is not None
        return tick + ticks * beat

    def due(self) -> int | None:
        """When time does something by itself next, apart from ticks."""
        return None if self.engine is None else self.engine.due()

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine has the state, and goes on from where it is."""
        self._check_idle()
        window = self.window
        if abs(now) >= HUGE or self._lapses(now):
            self.settle()
        while self.engine is not None and window._tick is not None and window._tick <= now:
            self._tick(window._tick, failures)
        if self.engine is None:
            return False
        self.engine.advance(now)
        return True

    def _lapses(self, now: int) -> bool:
        """Whether the time of a subwindow of its own is over."""
        if not isinstance(self.window.spec.evict, Either):
            return False
        due = self.due()
        return due is not None and due <= now

    def _tick(self, tick: int, failures: list[Exception]) -> None:
        engine, window = self.engine, self.window
        assert engine is not None
        window._now = max(tick, window._now)
        engine.advance(window._now)  # what is too old goes before anything fires
        self.fire_all(window._act, failures)
        if self.engine is not None:
            window._tick = self._tick_after(1)

    def fire_all(
        self, otherwise: Callable[[list[Exception]], None], failures: list[Exception]
    ) -> bool:
        """Let every partition fire; false: the event engine has to, which has the state.

        Args:
            otherwise: how the event engine does it, to go on after a firing that failed.
            failures: where exceptions of handlers go, and of whoever else is told.
        """
        self._check_idle()
        engine, window = self.engine, self.window
        assert engine is not None
        try:
            if not engine.ledger.alive.any():
                raise Decline("there is no partition to fire")
            engine.check_age(window._now)
            firings = engine.fire_all()
            firings.rows = np.arange(len(firings))
            failed = self._told(firings, failures)
        except Decline as reason:
            self.reason = str(reason)
            self.settle()
            return False
        if failed is not None:
            keys = firings.python_keys()
            self.settle()
            with Broken(keys[: failed.row], keys[failed.row], failed.error).in_place(window):
                otherwise(failures)
        else:
            engine.commit_all()
        return True

    def _told(self, firings: Firings, failures: list[Exception]) -> Failed | None:
        """Tell of firings that time caused; which one failed, if anybody says so.

        Who does not say which is told of none of them again: time goes on all the same.
        """
        try:
            return failure_of(self._tell, firings)
        except Decline:
            raise
        except Exception as error:
            failures.append(error)
            return None


class Broken:
    """A firing that failed: the event engine repeats what caused it, and goes on behind it.

    Args:
        done: the keys of firings with the same cause that are over.
        key: the key of the one that failed.
        error: what it raised.
    """

    def __init__(self, done: Sequence[Any], key: Any, error: Exception) -> None:
        self._done, self._key, self._error = list(done), [key], error

    @contextmanager
    def in_place(self, window: Window[Any, Any]) -> Iterator[None]:
        """Let handlers do nothing for what is over, and raise for what failed."""
        with handling(window, self._rest):
            yield

    def _rest(self, handler: Callable[..., None]) -> Callable[..., None]:
        def call(window: Any, key: Any) -> None:  # named as handlers are, for the note
            if key in self._done:
                self._done.remove(key)
            elif key in self._key:
                self._key.clear()
                raise self._error
            else:
                handler(window, key)

        return call


@contextmanager
def handling(
    window: Window[Any, Any], change: Callable[[Callable[..., None]], Callable[..., None]]
) -> Iterator[None]:
    """Call other handlers of firings for a while."""
    handlers = window._on
    window._rehandled(
        {name: change(each) if name in FIRING else each for name, each in handlers.items()}
    )
    try:
        yield
    finally:
        window._rehandled(handlers)


def quiet(window: Window[Any, Any]) -> AbstractContextManager[None]:
    """Tell nobody of firings for a while."""
    return handling(window, lambda _: lambda window, key: None)
