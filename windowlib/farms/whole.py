"""Window farming: whole windows go to workers, which apply the operator's function to each.

Agnostic workers are given a window when it fires, whoever is free. Active workers have windows of
their own, one in n of each partition, and are given the tuples as they come: what folds tuples one
by one has done most of the work when the window fires. That is for windows by count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from windowlib.farms.chunks import Run
from windowlib.farms.emitter import Firing, Stretch
from windowlib.farms.mapping import RoundRobin, key_shift
from windowlib.farms.models import CountWindows, model_of
from windowlib.farms.schedule import Task
from windowlib.farms.windowed import Pattern, RunningWindows, given
from windowlib.farms.work import Given


class Agnostic(Pattern):
    """Any worker may have any window; `batch` neighbours of a partition go together."""

    def __init__(self, run: RunningWindows) -> None:
        super().__init__(run)
        self._held: dict[Any, list[tuple[Firing, int]]] = {}

    def fired(self, firing: Firing, number: int) -> None:
        """Hold it until there are enough of its partition."""
        held = self._held.setdefault(firing.key, [])
        held.append((firing, number))
        if len(held) >= self.farm.batch:
            self._give(self._held.pop(firing.key))

    def _give(self, held: list[tuple[Firing, int]]) -> None:
        runs, windows, first = given(firing for firing, _ in held)
        then = self.run.receiver([number for _, number in held])
        self.run.put(Task("windows", (self.run.pieces(runs), windows), first=first, then=then))

    def flush(self) -> None:
        """Give away what is held."""
        for key in list(self._held):
            self._give(self._held.pop(key))

    def oldest(self) -> int | None:
        """The oldest row of what is held."""
        rows = [
            firing.at[0] for held in self._held.values() for firing, _ in held if len(firing.at)
        ]
        return int(min(rows)) if rows else None


class Active(Pattern):
    """A window goes to its owner, `batch` neighbours of a partition to the same one."""

    def __init__(self, run: RunningWindows) -> None:
        super().__init__(run)
        self.turns = RoundRobin(self.farm.workers, self.farm.batch)
        (spec,) = self.farm.operator.windows
        assert spec is not None
        self.model = model_of(spec)
        self._fired: dict[Any, int] = {}
        self._new: list[Stretch] = []
        self._taken: dict[tuple[Any, int], int] = {}

    def _owner(self, key: Any, number: int) -> int:
        found: int = self.turns.owner(number, key_shift(key, self.farm.workers))
        return found

    def arrived(self, stretches: Iterable[Stretch]) -> None:
        """Remember what came: which of it is in open windows is known when the others fired."""
        if self._early():
            self._new += stretches

    def _early(self) -> bool:
        """Whether tuples go to the owners of their windows as they come.

        Not where all tuples of a window are read at once, nor where windows go by time. Then an
        owner has nothing that others have not, and a window is for whoever is free.
        """
        schema = self.run.schema
        counted = isinstance(self.model, CountWindows)
        return counted and schema is not None and self.run.local.fills(schema)

    def fired(self, firing: Firing, number: int) -> None:
        """Its owner gets what it does not have, and the word."""
        which = (firing.key, firing.number)
        self._fired[firing.key] = firing.number + 1
        pieces, taken = self.run.pieces(firing.runs()), self._taken.pop(which, 0)
        args = (which, taken, pieces, Given(firing.key, 0, firing.hi - firing.lo, firing.now))
        owner = self._owner(*which) if self._early() else None
        first = int(firing.at[0]) if len(firing.at) else None
        then = self.run.receiver([number])
        self.run.put(Task("close", args, owner=owner, first=first, then=then))

    def behind(self) -> None:
        """Send tuples on to the owners of their open windows."""
        stretches, self._new = self._new, []
        for stretch in stretches:
            for number, begin, lo, hi in self._open(stretch):
                which = (stretch.key, number)
                # A window of which a worker has not had the beginning comes to it as a whole.
                if begin + self._taken.get(which, 0) == lo:
                    at = stretch.at + lo - stretch.first
                    self._take(which, [(at, at + hi - lo)])

    def _take(self, which: tuple[Any, int], runs: list[Run]) -> None:
        self._taken[which] = self._taken.get(which, 0) + sum(hi - lo for lo, hi in runs)
        oldest = self.run.chunks.oldest
        self.run.pool.send(self._owner(*which), "take", (which, self.run.pieces(runs)), oldest)

    def _open(self, stretch: Stretch) -> Iterable[tuple[int, int, int, int]]:
        """The windows that are still open: number, first tuple, and those of a stretch in it."""
        begin, end = stretch.first, stretch.first + stretch.size
        fired = self._fired.get(stretch.key, 0)
        model = self.model
        assert isinstance(model, CountWindows)
        lowest = model.lowest or 0
        for w in range(max(model.first(begin), fired + lowest), model.last(end - 1) + 1):
            lo, hi = model.extent(w)
            if max(lo, begin) < min(hi, end):
                yield w - lowest, max(lo, 0), max(lo, begin), min(hi, end)

    def saved(self) -> Any:
        """How many windows have fired; what workers have taken is given to them again."""
        self._taken.clear()
        return list(self._fired.items())

    def load(self, state: Any) -> None:
        """Take back what `saved` gave."""
        self._fired = dict(state)
