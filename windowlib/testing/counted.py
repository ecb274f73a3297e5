"""What the windows of a script do, counted, restarts or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windowlib.counters import Counters
from windowlib.running import Running
from windowlib.testing.driving import Drive


class Counted(Drive):
    """A drive whose windows are watched from the start, and again after each restart."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watched: list[Counters] = []

    def counts(self) -> dict[str, int]:
        """What `Counters` counts, of all that ran one after the other; partitions of the last."""
        each = [counters.read() for counters in self._watched]
        return {
            name: each[-1][name] if name == "partitions" else sum(counts[name] for counts in each)
            for name in (each[-1] if each else ())
        }

    def _opened(self, chunk: Sequence[Any]) -> Running:
        return self._seen(super()._opened(chunk))

    def _restarted(self, running: Running) -> Running:
        return self._seen(super()._restarted(running))

    def _seen(self, running: Running) -> Running:
        self._watched.append(Counters(running))
        return running
