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
from windowlib.farms.figures import FarmFigures, FigureObserver
from windowlib.farms.key_farm import why_keys_stay
from windowlib.farms.pool import CallerPool, ProcessPool, why_no_processes
from windowlib.farms.running_farm import RunningFarm, check_workers
from windowlib.farms.transfer import holds_tuples
from windowlib.runtime.running import Running, collect_failures, insert_in_runs, nowhere
from windowlib.window.arrow import Times, as_arrow, in_order, joined
from windowlib.window.failure import broken_state, raise_first

if TYPE_CHECKING:
    from windowlib.farms.farm import Farm

Place = Literal["caller", "trial", "starting", "workers"]

EMITTER_COST = 3e-6
"""Seconds that the emitter of a farm takes for a row: no farm pays if a row takes less."""
FIRST_REVIEW = 0.05
"""Seconds of work after which the costs of the operator alone are first reviewed."""
PROMISING = 10e-6
"""Seconds for a row above which workers are likely: they start while the farm is on trial."""
PROMISING_PIECES = 2
"""Pieces in a row that must be so slow for an earlier review: one may have met a hiccup."""
TRIAL = 0.03
"""Seconds of work that a trial takes."""
TRIAL_LIMIT = 8
"""A trial in which no window was computed takes so many times as long at most."""
REVIEW_INTERVAL = 0.5
"""Seconds of work after which the costs of workers are reviewed."""
MIN_SPEEDUP = 1.15
"""How many times as fast workers have to be for a move to them."""
PIECE, SLOW_PIECE = 0.025, 0.008
"""Seconds that a piece of a batch takes, so that costs can be reviewed within a long batch: of
cheap rows, whose review can wait, and of others."""
BUSY, IDLE = 0.9, 0.4
"""Shares of their time that workers work, beyond which a farm with "auto" workers has others."""
TRIAL_SHARE = 0.03
"""The share of its time that a farm may lose with trials."""
SPARE = 1.4
"""Processors that must be free for a trial, the caller's included."""
SAMPLE = 0.03
"""Seconds between two samples of the processors, at least."""
STAT = Path("/proc/stat")
SKIP = 960
"""Rows that come one by one between two samples of `LEAST` that are measured."""
FIRST, LEAST = 256, 64
"""Rows of the first piece of a batch, and of any."""


class Decision(NamedTuple):
    """A place where a farm works from some row on, and the reason.

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
    """The rows, time and work since the last review."""

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

    The estimate is from the time that processors were idle since the last sample, where the system
    counts it. Work of others at a lower priority does not count, because it makes room.
    """

    def __init__(self) -> None:
        self.all = processor_count()
        self.free = float(self.all)
        """How many, one at least."""
        self._last, self._before = time.monotonic(), _processor_ticks()
        self._weight = 1.0  # of the next sample: the first is all that is known

    def sample(self) -> None:
        """Measure how long processors were idle, unless that was just done."""
        now = time.monotonic()
        if now - self._last < SAMPLE:
            return
        (idle, ticks), self._last = _processor_ticks(), now
        before, self._before = self._before, (idle, ticks)
        if ticks > before[1]:
            found = 1 + self.all * (idle - before[0]) / (ticks - before[1])
            self.free += self._weight * (min(found, self.all) - self.free)
            self._weight = 0.5

    def __str__(self) -> str:
        return f"{self.free:.1f} of {self.all} processors are free"


def _processor_ticks() -> tuple[int, int]:
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
        """What runs now: the operator alone, or a farm of it."""
        self.rows = 0
        """How many rows have come."""
        self.seconds = 0.0
        """How long they took."""
        self._start, self._piece_rows = start, FIRST
        self._single, self._singles, self._skip = 0.0, 0, 0  # of rows that come one by one
        self._connected: dict[int, tuple[Any, ...]] = {}
        self._ready: list[Any] = []
        self._pool: ProcessPool | None = None
        self._interval, self._next_review, self._warm = WorkInterval(), FIRST_REVIEW, False
        self._promising = 0  # pieces in a row that were so slow that workers are likely
        self._processors = Processors()
        self._started = 0.0
        self._observer: FigureObserver | None = None
        self._every = 1.0
        self._patience = FIRST_REVIEW
        """Seconds of work until workers are tried again; more each time they did not pay."""
        self._trial_start = 0.0  # when workers were last tried
        self._free = self._processors.free  # before workers that start used some
        self._operator_state: Any = None
        """The state of the operator besides its windows, while a farm has these."""
        self._alone_cost = 0.0
        """Microseconds that a row took the operator alone, when that was last measured."""
        self.decisions: list[Decision] = []
        self._alone_reason = self._why_alone()
        self._decide("caller", self._alone_reason or "what its windows cost is not known yet")
        if self._alone_reason is not None:
            self._skip_timing()

    def _skip_timing(self) -> None:
        """Pass single rows straight to the operator: to measure them costs too much."""
        vars(self)["insert"] = self.current.insert

    def _why_alone(self) -> str | None:
        """Why the operator can only run alone; None if it can move to a farm."""
        farm, operator = self.farm, self.farm.operator
        if (why := why_no_processes()) is not None:
            return why
        if self.workers == 1:
            return "one worker is no faster than the caller"
        if farm.workers_keep_keys:
            why = why_keys_stay(operator)
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
        if not holds_tuples(state):
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
            self._record_time(SKIP + LEAST, seconds * (SKIP + LEAST) / LEAST)
        raise_first(failures)

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order."""
        if self._alone_reason is not None:  # nothing to decide, so nothing to measure
            self.rows += len(rows) if isinstance(rows, Sized) else 0
            self.current.insert_many(rows, port)
            return
        if isinstance(rows, list | tuple):
            left, source = len(rows), iter(rows)
            while left:
                size = left if self._on_workers else min(left, self._piece_rows)
                left -= size
                self._timed(size, self.current.insert_many, islice(source, size), port)
            return
        remaining, taken = iter(rows), 1

        def pull() -> Iterator[Any]:
            nonlocal taken
            for row in islice(remaining, LEAST):
                taken += 1
                yield row

        def pulled() -> int:
            return taken

        while taken:  # one by one, because the next row may come much later
            taken = 0
            self._timed(pulled, self.current.insert_many, pull(), port)

    def insert_each(
        self, rows: Iterator[Any], out: Sized, port: int = 0, **row: Any
    ) -> Generator[None, None, Any]:
        """Take each row before the next is asked for, and pause after one with results."""
        if self._alone_reason is None:
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
        """A batch in pieces, each of which is timed."""
        size = getattr(batch, "num_rows", 0)
        if self._alone_reason or self._on_workers or size <= self._piece_rows:
            yield batch
            return
        if (order := self.farm.operator.order_by) is not None:
            batch = in_order(batch, order)
        at = 0
        while at < size:
            piece = batch.slice(at) if self._on_workers else batch.slice(at, self._piece_rows)
            at += piece.num_rows
            yield piece

    def _timed(self, rows: int | Callable[[], int], call: Callable[..., Any], *args: Any) -> Any:
        """Call something, measure its time, and decide where to go on.

        A failure is a result like others; after an interrupt nothing moves.
        """
        failures, found, start = list[Exception](), None, time.perf_counter()
        with collect_failures(failures):
            found = call(*args)
        seconds = time.perf_counter() - start
        if isinstance(rows, int):
            self._record_time(rows, seconds)
        else:
            self._record_time(rows(), seconds, waited=True)
        raise_first(failures)
        return found

    def _record_time(self, rows: int, seconds: float, *, waited: bool = False) -> None:
        """Record the time of some rows; `waited`: it includes the waits for each of them."""
        self.rows += rows
        self.seconds += seconds
        if self._alone_reason is not None:
            return
        if not self._warm:  # the first call loads libraries and compiles
            self._warm = True
            return
        cheap = seconds <= EMITTER_COST * rows
        if rows >= self._piece_rows:
            wanted = rows * (PIECE if cheap else SLOW_PIECE) / max(seconds, 1e-6)
            self._piece_rows = max(
                LEAST, int(wanted if cheap else min(wanted, 4 * self._piece_rows))
            )
        if rows:
            slow = seconds > PROMISING * rows and not waited
            self._promising = self._promising + 1 if slow else 0
        since = self._interval
        since.rows += rows
        since.seconds += seconds
        if not self._on_workers:
            self._processors.sample()
        if since.seconds >= self._next_review or self._review_due:
            with self._atomic("deciding where to work"):
                _REVIEWS[self.place](self)

    @property
    def _review_due(self) -> bool:
        """Whether the costs can be reviewed at once."""
        if self.place == "caller":
            return self._next_review == FIRST_REVIEW and self._promising >= PROMISING_PIECES
        return self.place == "starting"

    @contextmanager
    def _atomic(self, doing: str) -> Iterator[None]:
        """A step that an interrupt must not leave half done: the farm is then refused."""
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

    # -- calls that are passed on -----------------------------------------------------------------

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
        """The place where the farm works now."""
        return self.decisions[-1].place

    @property
    def _on_workers(self) -> bool:
        return self.place == "workers"

    def _decide(self, place: Place, reason: str) -> None:
        self.decisions.append(Decision(place, reason, self.rows))
        self._interval = self._new_interval()

    def _new_interval(self) -> WorkInterval:
        farm = self.current
        return WorkInterval(farm.worked, farm.pool.waited) if _is_farm(farm) else WorkInterval()

    def _review_operator(self) -> None:
        """Start a trial if a row is enough work for a farm."""
        since = self._interval
        if since.seconds < EMITTER_COST * since.rows:
            self._postpone(f"a row takes {since.micros(since.seconds):.2g} µs, less than a farm")
            return
        if self._processors.free < SPARE:
            self._postpone(f"{self._processors}, so workers would have none")
            return
        self._alone_reason = self._move_to_farm()
        if self._alone_reason is not None:
            self._decide("caller", self._alone_reason)
            return
        self._trial_start, self._free = time.perf_counter(), self._processors.free
        alone = self._alone_cost = since.micros(since.seconds)
        self._decide("trial", f"a row takes {alone:.3g} µs, which may be enough for workers")
        self._next_review = TRIAL
        if self._promising >= PROMISING_PIECES:
            self._start_pool()

    def _postpone(self, reason: str) -> None:
        """Stay alone, and review again after four times the work."""
        if self.decisions[-1].reason != reason:
            self.decisions.append(Decision("caller", reason, self.rows))
        self._skip_timing()
        self._next_review = min(4 * self._next_review, 60.0)
        self._interval = WorkInterval()

    def _review_trial(self) -> None:
        """Start workers if several are faster than the operator alone."""
        parent, work = self._costs()
        if not work and self._interval.seconds < TRIAL_LIMIT * TRIAL:
            return  # what windows cost is not known before one has fired
        workers = min(self.workers, self._free)
        gain = self._alone_cost / max(parent, work / workers, 1e-9)
        if work and gain >= MIN_SPEEDUP:
            self._start_pool()
            self._decide("starting", f"{_costs_text(parent, work)}, so {gain:.2g} times as fast")
            return
        self._stop_pool()
        rows = self._interval.rows
        why = f"{_costs_text(parent, work)}, which workers do not outweigh"
        self._move_to_operator(why if work else f"no window has fired in {rows:,} rows of a trial")
        lost = time.perf_counter() - self._trial_start - rows * self._alone_cost / 1e6
        self._next_review = max(self._next_review, lost / TRIAL_SHARE)

    def _review_start(self) -> None:
        """Move to the workers if they are ready."""
        assert self._pool is not None
        if not self._pool.ready:
            return
        self._started = time.perf_counter()
        self.current.switch_pool(self._pool, self.workers)
        self._pool = None
        self._next_review = REVIEW_INTERVAL
        self._decide("workers", f"{self.workers} processes are ready")

    def _review_workers(self) -> None:
        """Move back if the farm costs more than its windows, or a row more than it did alone."""
        parent, work = self._costs()
        if not work and len(self.current.scheduler):
            return  # how long they take is not known before they have answered
        spread, alone = self._interval.micros(self._interval.seconds), self._alone_cost
        if work < 0.8 * parent:
            self._move_to_operator(f"{_costs_text(parent, work)}, so the operator alone is faster")
        elif alone and spread > alone and work < 2 * self.workers * alone:
            # The machine has no processors left for them; heavier windows are another matter.
            self._move_to_operator(f"a row takes workers {spread:.3g} µs, and took {alone:.3g} µs")
        else:
            self._follow_load()
            self._interval = self._new_interval()

    def _follow_load(self) -> None:
        """Add a worker if all are busy, or remove one if many are idle, with "auto" workers."""
        now = time.perf_counter()
        elapsed, self._started = now - self._started, now
        busy = (self.current.worked - self._interval.worked) / max(elapsed, 1e-9) / self.workers
        workers = self.workers + (busy > BUSY) - (busy < IDLE)
        fits = 2 <= workers <= self._processors.all and workers != self.workers
        if self.farm.follows_load and fits:
            self.resize(workers)
            self.decisions.append(
                Decision("workers", f"{workers} workers, which were {busy:.0%} busy", self.rows)
            )

    def _costs(self) -> tuple[float, float]:
        """Microseconds for each row: of the farm in the caller, and of the windows."""
        since, farm = self._interval, self.current
        work = farm.worked - since.worked
        idle = farm.pool.waited - since.waited
        return since.micros(max(0.0, since.seconds - idle)), since.micros(work)

    # -- moving -----------------------------------------------------------------------------------

    def _move_to_farm(self) -> str | None:
        """Go on as a farm whose worker is the caller; returns why that is impossible, if it is."""
        state, schemas = self.current.snapshot(), self.current._schemas
        farm: RunningFarm = self.farm.running(self._start, pool=CallerPool, workers=1)
        try:
            farm.adopt(state, schemas[0])
        except BaseException as error:
            farm.close()
            if isinstance(error, SchemaError | FarmError):
                return f"a farm cannot go on from here: {error}"
            raise
        farm._schemas, self._operator_state = list(schemas), state["state"]
        self._switch_to(farm)
        return None

    def _move_to_operator(self, reason: str) -> None:
        """Go on as the operator alone."""
        farm = self.current
        alone: Running = self.farm.operator.open(self._start)
        state = farm.operator_snapshot()
        if not self.farm.workers_keep_keys:  # which has moved what belongs to no window, too
            state["state"] = self._operator_state
        alone.restore(state)
        alone._schemas = list(farm._schemas)
        farm.close()
        self._switch_to(alone)
        self._decide("caller", reason)
        self._patience *= 8
        self._next_review = self._patience

    def _switch_to(self, running: Any) -> None:
        if _is_farm(running):
            self._attach_observer(running)
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
        workers = check_workers("resize", workers)
        if self.place == "workers":
            self.current.resize(workers)
        vars(self).pop("insert", None)
        with self._atomic("changing its workers"):
            self.workers = workers
            if self.place == "caller":
                self._alone_reason = self._why_alone()
            elif self._pool is not None:
                self._stop_pool()
                self._start_pool()

    # -- counters and figures ---------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """The present place, the number of changes, and the work so far."""
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

    def observe(self, tell: FigureObserver, every: float = 1.0) -> None:
        """Report the figures while it works, at most once in `every` seconds."""
        self._observer, self._every = tell, every
        if _is_farm(self.current):
            self._attach_observer(self.current)
        else:
            tell(self.figures())

    def _attach_observer(self, farm: RunningFarm) -> None:
        if (tell := self._observer) is not None:
            farm.observe(lambda found: tell(replace(found, place=self.place)), self._every)

    def explain(self) -> str:
        """The choice of the farm, and its decisions with their reasons."""
        return "\n".join([f"farm         {self.farm.choice}", *map(_decision_text, self.decisions)])

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
            self._replace_running(self.farm.operator.open(self._start)).restore(found["alone"])
            self._decide(
                "caller", self._alone_reason or "restored from the state of the operator alone"
            )
            return
        farm = self._replace_running(self.farm.running(self._start, workers=self.workers))
        farm.restore(state)
        self._next_review = REVIEW_INTERVAL
        self._decide("workers", "restored from the state of workers")

    def _replace_running(self, running: Any) -> Any:
        old = self.current
        self._stop_pool()
        self._switch_to(running)
        if _is_farm(old):
            old.close()
        return running


class BrokenFarm:
    """A farm that was interrupted while it moved: it can only be restored or closed."""

    def __init__(self, name: str, doing: str) -> None:
        self._broken = broken_state(name, doing)

    def __getattr__(self, name: str) -> Any:
        raise self._broken


_REVIEWS: dict[Place, Callable[[AdaptiveFarm], None]] = {
    "caller": AdaptiveFarm._review_operator,
    "trial": AdaptiveFarm._review_trial,
    "starting": AdaptiveFarm._review_start,
    "workers": AdaptiveFarm._review_workers,
}


def _is_farm(running: Any) -> bool:
    return isinstance(running, RunningFarm)


def _costs_text(parent: float, work: float) -> str:
    return f"a row costs the farm {parent:.3g} µs, and its windows {work:.3g} µs"


def _decision_text(decision: Decision) -> str:
    return f"{decision.place:<12} {decision.reason} (row {decision.rows})"
