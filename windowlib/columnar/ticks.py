"""The clock and punctuations, where the state is in arrays: all partitions fire at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from windowlib.columnar.decline import Decline
from windowlib.columnar.engine import Engine
from windowlib.columnar.failed import Failed, failure_of
from windowlib.columnar.firings import Firings
from windowlib.columnar.stamps import HUGE, Stamps, stretches
from windowlib.policies import Time
from windowlib.spec import Sliding

if TYPE_CHECKING:
    from windowlib.window import Window

FEW = 200
"""Rows between two ticks from which on it pays to work on them at once."""

Handler = Callable[..., Any]
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

    def _stretches(self, rows: int, stamps: Stamps | None) -> list[tuple[int, int]]:
        """The rows of a batch in runs without a tick in between; not if ticks are too many."""
        window = self.window
        policy, tick = window.spec.policies[-1], window._tick
        if stamps is None or tick is None or not isinstance(policy, Time):
            return [(0, rows)]
        found = stretches(stamps, tick, policy.micros)
        ticks = len(found) - 1
        if isinstance(window.spec, Sliding) and ticks:  # they fire without new rows, too
            ticks = (int(stamps[-1]) - tick) // policy.micros + 1
        if ticks > 1 and rows < FEW * ticks:
            raise Decline(f"fewer than {FEW} rows between two ticks")
        return found

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine has the state, and goes on from where it is."""
        window = self.window
        if abs(now) >= HUGE:
            self.settle()
        while self.engine is not None and window._tick is not None and window._tick <= now:
            self._tick(window._tick, failures)
        if self.engine is None:
            return False
        self.engine.advance(now)
        return True

    def _tick(self, tick: int, failures: list[Exception]) -> None:
        engine, window = self.engine, self.window
        assert engine is not None
        window._now = max(tick, window._now)
        engine.advance(window._now)  # what is too old goes before anything fires
        self.fire_all(window._act, failures)
        if self.engine is not None:
            policy = window.spec.policies[-1]
            assert isinstance(policy, Time)
            window._tick = tick + policy.micros

    def fire_all(
        self, otherwise: Callable[[list[Exception]], None], failures: list[Exception]
    ) -> bool:
        """Let every partition fire; false: the event engine has to, which has the state.

        Args:
            otherwise: how the event engine does it, to go on after a firing that failed.
            failures: where exceptions of handlers go.
        """
        engine, window = self.engine, self.window
        assert engine is not None
        try:
            if not engine.ledger.alive.any():
                raise Decline("there is no partition to fire")
            engine.check_age(window._now)
            firings = engine.fire_all()
        except Decline as reason:
            self.reason = str(reason)
            self.settle()
            return False
        firings.rows = np.arange(len(firings))
        if (failed := failure_of(self._tell, firings)) is not None:
            self._go_on(firings.python_keys(), failed, otherwise, failures)
        else:
            engine.commit_all()
        return True

    def _go_on(
        self,
        keys: list[Any],
        failed: Failed,
        otherwise: Callable[[list[Exception]], None],
        failures: list[Exception],
    ) -> None:
        """Let the event engine fire what is left: those behind the one that failed, and that."""
        self.settle()
        done, broken = set(keys[: failed.row]), [keys[failed.row]]

        def rest(handler: Handler) -> Handler:
            def call(window: Any, key: Any) -> None:
                if key in done:
                    return
                if key in broken:
                    broken.clear()
                    raise failed.error
                handler(window, key)

            return call

        window, handlers = self.window, self.window._on
        window._rehandled(replaced(handlers, rest))
        try:
            otherwise(failures)
        finally:
            window._rehandled(handlers)


def replaced(
    handlers: Mapping[str, Handler], change: Callable[[Handler], Handler]
) -> dict[str, Handler]:
    """The same handlers, but others for firings."""
    return {
        name: change(handler) if name in FIRING else handler for name, handler in handlers.items()
    }
