"""A farm that stays in the calling process until workers pay.

The operator runs alone at first, and the time that it takes is measured. If a row takes long enough
for workers to be worth a try, the state moves to a farm whose only worker is the caller: that shows
what the farm itself costs and what its windows cost. If several workers would be faster, processes
start in the background, and take over when they are ready. While they work, both costs are watched
on, and if the farm costs more than its windows, the operator goes on alone.

    caller  ->  trial  ->  starting  ->  workers
      ^___________|                         |
      ^_____________________________________|
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from windowlib.durations import Instant
from windowlib.errors import FarmError, SchemaError
from windowlib.farms.figures import FarmFigures, Tell
from windowlib.farms.key_farm import fixed_keys
from windowlib.farms.pool import CallerPool, ProcessPool, no_processes
from windowlib.farms.running_farm import RunningFarm, worker_count
from windowlib.farms.transfer import movable
from windowlib.runtime.running import Running, collect_failures, insert_in_runs, nowhere
from windowlib.window.arrow import Times, as_arrow, in_order, joined
from windowlib.window.failure import broken_state, raise_first

if TYPE_CHECKING:
    from windowlib.farms.farm import Farm

Place = Literal["caller", "trial", "starting", "workers"]

ROW = 3e-6
"""Seconds for a row below which no farm pays: that is what its emitter costs."""
LOOK = 0.05
"""Seconds of work after which the operator alone is looked at first."""
PROMISING = 10e-6
"""Seconds for a row above which workers are likely: they start while the farm is on trial."""
SURE = 2
"""Pieces in a row that must be so slow for a look before `LOOK`: one may have met a hiccup."""
TRIAL = 0.03
"""Seconds of work that a trial takes."""
PATIENT = 8
"""A trial in which no window was computed takes so many times as long at most."""
WATCH = 0.5
"""Seconds of work after which workers are looked at."""
GAIN = 1.15
"""How many times as fast workers have to be."""
PIECE, SLOW_PIECE = 0.025, 0.008
"""Seconds that a piece of a batch takes, so that a long batch can be looked at on the way: of rows
that are cheap, which are not looked at soon, and of others."""
BUSY, IDLE = 0.9, 0.4
"""Shares of their time that workers work, beyond which a farm with "auto" workers has others."""
SHARE = 0.03
"""The share of its time that a farm may lose with trials."""
SPARE = 1.4
"""Processors that must be free for a trial, the caller's included."""
SAMPLE = 0.03
"""Seconds between two looks at the processors, at least."""
STAT = Path("/proc/stat")
SKIP = 960
"""Rows that come one by one between two samples of `LEAST` that are measured."""
FIRST, LEAST = 256, 64
"""Rows of the first piece of a batch, and of any."""


class Decision(NamedTuple):
    """Where a farm works from some row on, and why.

    Args:
        place: "caller", the operator alone; "trial", the farm with the caller as its worker;
            "starting", the same while processes start; "workers".
        reason: what was measured.
        rows: how many rows had come.
    """

    place: Place
    reason: str
    rows: int

    def __str__(self) -> str:
        return f"{self.place} from row {self.rows}: {self.reason}"


class WorkInterval:
    """What has been done since the last look."""

    __slots__ = ("rows", "seconds", "waited", "worked")

    def __init__(self, worked: float = 0.0, waited: float = 0.0) -> None:
        self.rows, self.seconds = 0, 0.0
        self.worked, self.waited = worked, waited

    def micros(self, seconds: float) -> float:
        """Microseconds for each row."""
        return 1e6 * seconds / max(self.rows, 1)


def processor_count() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processors:
    """How many processors this process could use: its own, and those that are idle.

    It goes by how long they were idle since the last look, where the system says so. What others do
    at a lower priority does not count, because they make room.
    """

    def __init__(self) -> None:
        self.all = processor_count()
        self.free = float(self.all)
        """How many, one at least."""
        self._last, self._before = time.monotonic(), _idle_and_all()
        self._weight = 1.0  # of the next look: the first is all that is known

    def look(self) -> None:
        """Look how long processors were idle, unless that was just done."""
        now = time.monotonic()
        if now - self._last < SAMPLE:
            return
        (idle, ticks), self._last = _idle_and_all(), now
        before, self._before = self._before, (idle, ticks)
        if ticks > before[1]:
            found = 1 + self.all * (idle - before[0]) / (ticks - before[1])
            self.free += self._weight * (min(found, self.all) - self.free)
            self._weight = 0.5

    def __str__(self) -> str:
        return f"{self.free:.1f} of {self.all} processors are free"


def _idle_and_all() -> tuple[int, int]:
    """The time of all processors so far: how much of it was idle, and all; 0 where unknown."""
    try:
        with STAT.open() as file:
            _, user, nice, system, idle, waiting, *others = file.readline().split()
        unwanted = int(idle) + int(waiting) + (int(nice) if not os.nice(0) else 0)
        ticks = sum(map(int, (user, nice, system, idle, waiting, *others[:3])))
    except (OSError, ValueError):
        return 0, 0
    return unwanted, ticks


class AdaptiveFarm:
    """A running farm that decides where it works.

    It has the methods of every running operator; `decisions` says where it worked and why.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.farms import WindowFarm
    >>> from windowlib.operators import Aggregate, agg
    >>> farm = WindowFarm(Aggregate(Tumbling(Count(2)), total=agg.sum("x")), workers=2)
    >>> with farm.open() as running:
    ...     running.insert_many([{"x": 1}, {"x": 2}])
    ...     running.counters()["place"]
    'caller'
    """

    def __init__(self, farm: Farm, start: Instant = 0) -> None:
        self.farm = self.operator = self.definition = farm
        self.workers = farm.workers
        self.current: Any = farm.operator.open(start)
        """What works now: the operator alone, or a farm of it."""
        self.rows = 0
        """How many rows have come."""
        self.seconds = 0.0
        """How long they took."""
        self._start, self._piece = start, FIRST
        self._single, self._singles, self._skip = 0.0, 0, 0  # of rows that come one by one
        self._connected: dict[int, tuple[Any, ...]] = {}
        self._ready: list[Any] = []
        self._pool: ProcessPool | None = None
        self._since, self._look, self._warm = WorkInterval(), LOOK, False
        self._promising = 0  # pieces in a row that were so slow that workers are likely
        self._processors = Processors()
        self._started = 0.0
        self._set_clocks: Tell | None = None
        self._every = 1.0
        self._patience = LOOK
        """Seconds of work until workers are tried again; more each time they did not pay."""
        self._tried = 0.0  # when workers were last tried
        self._free = self._processors.free  # before workers that start used some
        self._own: Any = None
        """What the operator keeps beside its windows, while a farm has these."""
        self._alone = 0.0
        """Microseconds that a row took the operator alone, when that was last measured."""
        self.decisions: list[Decision] = []
        self._fixed = self._stays()
        self._decide("caller", self._fixed or "what its windows cost is not known yet")
        if self._fixed is not None:
            self._settle()

    def _settle(self) -> None:
        """Rows that come one by one go straight to the operator: to measure them costs too much."""
        vars(self)["insert"] = self.current.insert

    def _stays(self) -> str | None:
        """Why the operator can only work alone; None if it can move."""
        farm, operator = self.farm, self.farm.operator
        if (why := no_processes()) is not None:
            return why
        if self.workers == 1:
            return "one worker is no faster than the caller"
        if farm.workers_keep_keys:
            why = fixed_keys(operator)
            return None if why is None else f"{why}, so it cannot move while it runs"
        state = self.current.snapshot()
        moves = ("parts", "event_time")
        if "windows" not in state or not all(
            any(form in each for form in moves) for each in state["windows"]
        ):
            return f"{operator.name} is no single window, so it cannot move while it runs"
        (window,) = self.current.windows
        if farm.pattern in ("pane", "window partition") and window.state.consumer.fired is not None:
            return "it computes whole batches at once, and shares the work of its windows by itself"
        if not movable(state):
            return "its window keeps results and no tuples, and takes rows as fast as a farm"
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["current"], name)

    def __enter__(self) -> AdaptiveFarm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.farm.name}, {self.place}>"

    # -- input ------------------------------------------------------------------------------------

    def connect(
        self, port: int | str, row: Any, punct: Any = nowhere, final: Any = nowhere
    ) -> None:
        """Send what an output port gives to functions: of a row, at a punctuation, at the end."""
        number = self.farm.model.output(port, self.farm.name)
        self._connected[number] = (row, punct, final)
        self.current.connect(number, row, punct, final)

    def insert(self, row: Any, port: int = 0) -> None:
        """Take one row; of many, only some are measured."""
        if self._skip:
            self._skip -= 1
            self.current.insert(row, port)
            return
        failures, start = list[Exception](), time.perf_counter()
        try:
            self.current.insert(row, port)
        except Exception as error:
            failures.append(error)
        self._single += time.perf_counter() - start
        self._singles += 1
        if self._singles == LEAST:
            seconds, self._single, self._singles, self._skip = self._single, 0.0, 0, SKIP
            self._took(SKIP + LEAST, seconds * (SKIP + LEAST) / LEAST)
        raise_first(failures)

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order."""
        if self._fixed is not None:  # nothing to decide, so nothing to measure
            self.rows += len(rows) if isinstance(rows, Sized) else 0
            self.current.insert_many(rows, port)
            return
        if isinstance(rows, list | tuple):
            left, source = len(rows), iter(rows)
            while left:
                size = left if self._spread else min(left, self._piece)
                left -= size
                self._timed(size, self.current.insert_many, islice(source, size), port)
            return
        remaining, taken = iter(rows), 1

        def some() -> Iterator[Any]:
            nonlocal taken
            for row in islice(remaining, LEAST):
                taken += 1
                yield row

        def had() -> int:
            return taken

        while taken:  # one by one, because the next row may come much later
            taken = 0
            self._timed(had, self.current.insert_many, some(), port)

    def insert_each(
        self, rows: Iterator[Any], out: Sized, port: int = 0, **row: Any
    ) -> Generator[None, None, Any]:
        """Take each row before the next is asked for, and pause after one that made something."""
        if self._fixed is None:
            return insert_in_runs(self, rows, out, port, **row)
        each: Generator[None, None, Any] = self.current.insert_each(rows, out, port, **row)
        return each

    def insert_timed(self, rows: Iterable[Any], times: Times, port: int = 0) -> None:
        """Advance to the time of each row, and insert it."""
        for row in rows:
            self.advance_micros(times.forward(times(row), self.micros))
            self.insert(row, port)

    def insert_batch(self, batch: Any, port: int = 0, times: str | None = None) -> None:
        """Take the rows of an Arrow batch or table in order."""
        with self._atomic("taking a batch"):
            for piece in self._pieces(as_arrow(batch, "insert_batch")):
                self._timed(piece.num_rows, self.current.insert_batch, piece, port, times)

    def process_batch(self, batch: Any, port: int = 0, times: str | None = None) -> Any:
        """Take an Arrow batch, wait, and give the rows of the first output that it made."""
        with self._atomic("taking a batch"):
            for piece in self._pieces(as_arrow(batch, "process_batch")):
                found = self._timed(piece.num_rows, self.current.process_batch, piece, port, times)
                self._ready.append(found)
        ready, self._ready = self._ready, []
        some = [each for each in ready if each.num_rows]
        return joined(some) if len(some) > 1 else (some or ready)[0]

    def _pieces(self, batch: Any) -> Iterable[Any]:
        """A batch, cut so that it can be looked at how long it takes."""
        size = getattr(batch, "num_rows", 0)
        if self._fixed or self._spread or size <= self._piece:
            yield batch
            return
        if (order := self.farm.operator.order_by) is not None:
            batch = in_order(batch, order)
        at = 0
        while at < size:
            piece = batch.slice(at) if self._spread else batch.slice(at, self._piece)
            at += piece.num_rows
            yield piece

    def _timed(self, rows: int | Callable[[], int], call: Callable[..., Any], *args: Any) -> Any:
        """Do something that takes time, and look whether it should be done elsewhere.

        A failure is a result like others; after an interrupt nothing moves.
        """
        failures, found, start = list[Exception](), None, time.perf_counter()
        with collect_failures(failures):
            found = call(*args)
        seconds = time.perf_counter() - start
        if isinstance(rows, int):
            self._took(rows, seconds)
        else:
            self._took(rows(), seconds, waited=True)
        raise_first(failures)
        return found

    def _took(self, rows: int, seconds: float, *, waited: bool = False) -> None:
        """So many rows took so long; `waited`: with the time until each of them came."""
        self.rows += rows
        self.seconds += seconds
        if self._fixed is not None:
            return
        if not self._warm:  # the first call loads libraries and compiles
            self._warm = True
            return
        cheap = seconds <= ROW * rows
        if rows >= self._piece:
            wanted = rows * (PIECE if cheap else SLOW_PIECE) / max(seconds, 1e-6)
            self._piece = max(LEAST, int(wanted if cheap else min(wanted, 4 * self._piece)))
        if rows:
            slow = seconds > PROMISING * rows and not waited
            self._promising = self._promising + 1 if slow else 0
        since = self._since
        since.rows += rows
        since.seconds += seconds
        if not self._spread:
            self._processors.look()
        if since.seconds >= self._look or self._soon:
            with self._atomic("deciding where to work"):
                _LOOKS[self.place](self)

    @property
    def _soon(self) -> bool:
        """Whether there is no need to wait any longer for a look."""
        if self.place == "caller":
            return self._look == LOOK and self._promising >= SURE
        return self.place == "starting"

    @contextmanager
    def _atomic(self, doing: str) -> Iterator[None]:
        """Something of which an interrupt must not leave a half."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                self._break(doing)
            raise

    def _break(self, doing: str) -> None:
        """Refuse every later use, and leave no worker and no chunk behind."""
        old = self.current
        self.current = BrokenFarm(self.farm.name, doing)
        vars(self).pop("insert", None)
        self._stop_pool()
        if _is_farm(old):
            old.close()

    # -- what is passed on ------------------------------------------------------------------------

    def advance(self, now: Instant) -> None:
        """Move the clock."""
        self._timed(0, self.current.advance, now)

    def advance_micros(self, now: int) -> None:
        """Move the clock, in microseconds."""
        self._timed(0, self.current.advance_micros, now)

    def drain(self) -> None:
        """Wait until everything that was put in has come out."""
        if _is_farm(self.current):
            self.current.drain()

    def poll(self) -> None:
        """Send on what is ready, without waiting for more."""
        if _is_farm(self.current):
            self.current.poll()

    def finish(self, port: int | None = None) -> None:
        """The input of a port ends, or of all; when the last has, all comes out."""
        try:
            self.current.finish(port)
        finally:
            self._stop_pool()

    def close(self) -> None:
        """Stop the workers; what has not come out does not."""
        self._stop_pool()
        if _is_farm(self.current):
            self.current.close()

    # -- decisions --------------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        """Where it works now."""
        return self.decisions[-1].place

    @property
    def _spread(self) -> bool:
        return self.place == "workers"

    def _decide(self, place: Place, reason: str) -> None:
        self.decisions.append(Decision(place, reason, self.rows))
        self._since = self._interval()

    def _interval(self) -> WorkInterval:
        farm = self.current
        return WorkInterval(farm.worked, farm.pool.waited) if _is_farm(farm) else WorkInterval()

    def _look_at_operator(self) -> None:
        """Is a row so much work that a farm might pay?"""
        since = self._since
        if since.seconds < ROW * since.rows:
            self._later(f"a row takes {since.micros(since.seconds):.2g} µs, less than a farm")
            return
        if self._processors.free < SPARE:
            self._later(f"{self._processors}, so workers would have none")
            return
        self._fixed = self._move_to_farm()
        if self._fixed is not None:
            self._decide("caller", self._fixed)
            return
        self._tried, self._free = time.perf_counter(), self._processors.free
        alone = self._alone = since.micros(since.seconds)
        self._decide("trial", f"a row takes {alone:.3g} µs, which may be enough for workers")
        self._look = TRIAL
        if self._promising >= SURE:
            self._start_pool()

    def _later(self, reason: str) -> None:
        """Stay, and look again after four times the work."""
        if self.decisions[-1].reason != reason:
            self.decisions.append(Decision("caller", reason, self.rows))
        self._settle()
        self._look = min(4 * self._look, 60.0)
        self._since = WorkInterval()

    def _look_at_trial(self) -> None:
        """Are several workers faster than the operator alone?"""
        parent, work = self._costs()
        if not work and self._since.seconds < PATIENT * TRIAL:
            return  # what windows cost is not known before one has fired
        workers = min(self.workers, self._free)
        gain = self._alone / max(parent, work / workers, 1e-9)
        if work and gain >= GAIN:
            self._start_pool()
            self._decide("starting", f"{_costs_text(parent, work)}, so {gain:.2g} times as fast")
            return
        self._stop_pool()
        rows = self._since.rows
        why = f"{_costs_text(parent, work)}, which workers do not outweigh"
        self._move_to_operator(why if work else f"no window has fired in {rows:,} rows of a trial")
        lost = time.perf_counter() - self._tried - rows * self._alone / 1e6
        self._look = max(self._look, lost / SHARE)

    def _look_at_start(self) -> None:
        """Are the workers ready?"""
        assert self._pool is not None
        if not self._pool.ready:
            return
        self._started = time.perf_counter()
        self.current.use(self._pool, self.workers)
        self._pool = None
        self._look = WATCH
        self._decide("workers", f"{self.workers} processes are ready")

    def _look_at_workers(self) -> None:
        """Does the farm cost more than its windows, or a row more than it did alone?"""
        parent, work = self._costs()
        if not work and len(self.current.scheduler):
            return  # how long they take is not known before they have answered
        spread, alone = self._since.micros(self._since.seconds), self._alone
        if work < 0.8 * parent:
            self._move_to_operator(f"{_costs_text(parent, work)}, so the operator alone is faster")
        elif alone and spread > alone and work < 2 * self.workers * alone:
            # The machine has no processors left for them; heavier windows are another matter.
            self._move_to_operator(f"a row takes workers {spread:.3g} µs, and took {alone:.3g} µs")
        else:
            self._follow()
            self._since = self._interval()

    def _follow(self) -> None:
        """One worker more if all are busy, or one less if many are not; if the farm may choose."""
        now = time.perf_counter()
        elapsed, self._started = now - self._started, now
        busy = (self.current.worked - self._since.worked) / max(elapsed, 1e-9) / self.workers
        workers = self.workers + (busy > BUSY) - (busy < IDLE)
        fits = 2 <= workers <= self._processors.all and workers != self.workers
        if self.farm.follows_load and fits:
            self.resize(workers)
            self.decisions.append(
                Decision("workers", f"{workers} workers, which were {busy:.0%} busy", self.rows)
            )

    def _costs(self) -> tuple[float, float]:
        """Microseconds for each row: of the farm in the caller, and of the windows."""
        since, farm = self._since, self.current
        work = farm.worked - since.worked
        idle = farm.pool.waited - since.waited
        return since.micros(max(0.0, since.seconds - idle)), since.micros(work)

    # -- moving -----------------------------------------------------------------------------------

    def _move_to_farm(self) -> str | None:
        """Go on as a farm whose worker is the caller; why not, if that cannot be."""
        state, schemas = self.current.snapshot(), self.current._schemas
        farm: RunningFarm = self.farm.running(self._start, pool=CallerPool, workers=1)
        try:
            farm.adopt(state, schemas[0])
        except BaseException as error:
            farm.close()
            if isinstance(error, SchemaError | FarmError):
                return f"a farm cannot go on from here: {error}"
            raise
        farm._schemas, self._own = list(schemas), state["state"]
        self._go_on(farm)
        return None

    def _move_to_operator(self, reason: str) -> None:
        """Go on as the operator alone."""
        farm = self.current
        alone: Running = self.farm.operator.open(self._start)
        state = farm.released()
        if not self.farm.workers_keep_keys:  # which has moved what belongs to no window, too
            state["state"] = self._own
        alone.restore(state)
        alone._schemas = list(farm._schemas)
        farm.close()
        self._go_on(alone)
        self._decide("caller", reason)
        self._patience *= 8
        self._look = self._patience

    def _go_on(self, running: Any) -> None:
        if _is_farm(running):
            self._observed(running)
        for port, outputs in self._connected.items():
            running.connect(port, *outputs)
        vars(self).pop("insert", None)
        self.current = running

    def _start_pool(self) -> None:
        """Let processes start in the background, unless they do already."""
        if self._pool is None:
            self._pool = ProcessPool(self.workers, self.current.setup)

    def _stop_pool(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def resize(self, workers: int) -> None:
        """Use another number of workers, now or as soon as there are any."""
        workers = worker_count("resize", workers)
        if self.place == "workers":
            self.current.resize(workers)
        vars(self).pop("insert", None)
        with self._atomic("changing its workers"):
            self.workers = workers
            if self.place == "caller":
                self._fixed = self._stays()
            elif self._pool is not None:
                self._stop_pool()
                self._start_pool()

    # -- what can be asked ------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """Where it works, how often that changed, and what has been done."""
        farm = self.current if _is_farm(self.current) else None
        return {
            "place": self.place,
            "changes": len({(d.place, d.rows) for d in self.decisions}) - 1,
            "workers": self.workers if self.place == "workers" else 0,
            "rows": self.rows,
            "seconds": self.seconds,
            "worked": 0.0 if farm is None else farm.worked,
            "waited": 0.0 if farm is None else farm.pool.waited,
            "tasks": 0 if farm is None else len(farm.scheduler),
            "deaths": 0 if farm is None else farm.deaths,
        }

    def figures(self) -> FarmFigures:
        """How busy workers are, what waits, and how long results take; see `FarmFigures`."""
        if not _is_farm(self.current):
            return FarmFigures(self.place)
        found: FarmFigures = self.current.figures()
        return replace(found, place=self.place)

    def observe(self, tell: Tell, every: float = 1.0) -> None:
        """Report the figures while it works, every so many seconds at most."""
        self._set_clocks, self._every = tell, every
        if _is_farm(self.current):
            self._observed(self.current)
        else:
            tell(self.figures())

    def _observed(self, farm: RunningFarm) -> None:
        if (tell := self._set_clocks) is not None:
            farm.observe(lambda found: tell(replace(found, place=self.place)), self._every)

    def explain(self) -> str:
        """Where it works and has worked, and why."""
        return "\n".join([f"farm         {self.farm.choice}", *map(_line, self.decisions)])

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """Everything it holds, for any place and any number of workers."""
        if _is_farm(self.current):
            spread: dict[str, Any] = self.current.snapshot()
            return spread
        alone = self.current.snapshot(arrays=arrays)
        return {
            "v": alone["v"],
            "operator": self.farm.describe(),
            "now": alone["now"],
            "ended": alone["ended"],
            "state": {"alone": alone},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back the state of a farm that was built the same way, wherever that worked."""
        found = state.get("state") if isinstance(state, Mapping) else None
        if isinstance(found, Mapping) and "alone" in found:
            self._fresh(self.farm.operator.open(self._start)).restore(found["alone"])
            self._decide("caller", self._fixed or "restored from the state of the operator alone")
            return
        farm = self._fresh(self.farm.running(self._start, workers=self.workers))
        farm.restore(state)
        self._look = WATCH
        self._decide("workers", "restored from the state of workers")

    def _fresh(self, running: Any) -> Any:
        old = self.current
        self._stop_pool()
        self._go_on(running)
        if _is_farm(old):
            old.close()
        return running


class BrokenFarm:
    """What is left of a farm that was interrupted while it moved: it can be restored, or closed."""

    def __init__(self, name: str, doing: str) -> None:
        self._broken = broken_state(name, doing)

    def __getattr__(self, name: str) -> Any:
        raise self._broken


_LOOKS: dict[Place, Callable[[AdaptiveFarm], None]] = {
    "caller": AdaptiveFarm._look_at_operator,
    "trial": AdaptiveFarm._look_at_trial,
    "starting": AdaptiveFarm._look_at_start,
    "workers": AdaptiveFarm._look_at_workers,
}


def _is_farm(running: Any) -> bool:
    return isinstance(running, RunningFarm)


def _costs_text(parent: float, work: float) -> str:
    return f"a row costs the farm {parent:.3g} µs, and its windows {work:.3g} µs"


def _line(decision: Decision) -> str:
    return f"{decision.place:<12} {decision.reason} (row {decision.rows})"
