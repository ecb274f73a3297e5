"""Farms: an operator on several workers, as an operator.

>>> from windowlib.operators import Aggregate, agg
>>> from windowlib import Count, Sliding, replay
>>> high = Aggregate(Sliding(Count(4), every=Count(2)), high=agg.max("x"))
>>> rows = [{"x": x} for x in (3, 1, 4, 1, 5, 9, 2, 6)]
>>> list(replay(PaneFarm(high, workers=2), rows)) == list(replay(high, rows))
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from windowlib.control import Adaptive
from windowlib.durations import Instant
from windowlib.errors import FarmError
from windowlib.farms.adaptive import AdaptiveFarm, processor_count
from windowlib.farms.choice import Choice, FarmPattern, choose
from windowlib.farms.key_farm import RunningKeyFarm
from windowlib.farms.models import CountWindows, RegularWindows, Slicing, TimeWindows, model_of
from windowlib.farms.pane_farm import (
    GRAIN,
    CountSlicer,
    EventPaneDispatch,
    PaneDispatch,
    PartitionDispatch,
    RunPaneDispatch,
    TimeSlicer,
)
from windowlib.farms.running_farm import check_workers
from windowlib.farms.scheduler import SCHEDULERS, Scheduling
from windowlib.farms.window_farm import ActiveDispatch, AgnosticDispatch, RunningWindowFarm
from windowlib.runtime.operator import Operator
from windowlib.spec.policies import Count, Time
from windowlib.spec.specification import Landmark, Session
from windowlib.summaries.folds import Fold

INNER = ("window partition", "pane")
"""What the workers of a farm may be, in place of one process each."""
MOST_ROWS = 1 << 16
"""Rows of a chunk by time at most."""
_GRAINS = CountWindows(GRAIN, GRAIN).pairs()


class Farm(Operator):
    """An operator on several workers; use one of its kinds, or `farm` to have one chosen.

    It gives the same rows as the operator, in the same order. `open` starts worker processes on
    this machine, which `finish` stops; on Spark the executors are the workers.

    Args:
        operator: what each worker does; or, for a `KeyFarm` or a `WindowFarm`, a `WindowPartition`
            or a `PaneFarm`, which each worker is then.
        workers: how many there are; as many as the machine has processors, unless given. With
            "auto" it begins with two, and has more while these are busy.
        scheduling: "on-demand", the next task goes to a free worker; or "round-robin".
        batch: how many neighbouring windows, or slices, make one task at least; unless given, as
            many as are about 5 ms of work.
        chunk: how many rows are stored and processed together; or those of a time span, as
            Time("50ms"): windows whose size and slide it divides are made of whole chunks.
        when: "auto", workers are used while they pay, and else the operator works in the calling
            process; or "always".
    """

    pattern: FarmPattern
    model: Any
    operator: Operator
    inner: Farm | None
    workers: int
    batch: int | None
    parts: int

    def __init__(
        self,
        operator: Operator,
        *,
        workers: int | Literal["auto"] | None = None,
        scheduling: Scheduling = "on-demand",
        batch: int | None = None,
        chunk: int | Time = 4096,
        when: Literal["auto", "always"] = "auto",
    ) -> None:
        kind = type(self).__name__
        self.inner = operator if isinstance(operator, Farm) else None
        """The farm that each worker is, if that is one."""
        if self.inner is not None:
            self._check_nesting(self.inner)
            operator = self.inner.operator
        if not isinstance(operator, Operator):
            msg = f"{kind}({operator!r}): not an operator. Pass one, such as Aggregate(...)."
            raise FarmError(msg)
        self.operator, self.model, self.windows = operator, operator.model, operator.windows
        nested = 1 if self.inner is None else self.inner.workers
        self.workers = _worker_number(kind, workers) * nested
        self.follows_load = workers == "auto"
        self.name = operator.name
        self.choice = self._choose()
        self.span = chunk.micros if isinstance(chunk, Time) else None
        """Microseconds of which the rows are stored together; None: any."""
        chunk = MOST_ROWS if isinstance(chunk, Time) else chunk
        _check_options(kind, scheduling, batch, chunk, when)
        self.scheduling, self.batch, self.chunk, self.when = scheduling, batch, chunk, when
        self.limit = 4 * self.workers
        """How many tasks may be under way before rows have to wait."""
        self.heaviest: float | None = None
        """Of one that `farm` chose: the share of the most frequent key, for other hosts."""
        self.parts = 1 if self.inner is None else self.inner.parts
        self.policy: Callable[[int], Adaptive] | None = None
        """Makes the policy that decides how slices are cut, for a number of workers."""
        if self.inner is not None:
            self.policy = self.inner.policy

    def _choose(self) -> Choice:
        found = choose(self.operator, self.workers, pattern=self.pattern)
        return found if self.inner is None else found.nested(self.inner.choice)

    def _check_nesting(self, inner: Farm) -> None:
        """Refuse nested farms other than those of the papers."""
        if self.pattern in ("key", "window agnostic") and inner.pattern in INNER:
            return
        msg = (
            f"{type(self).__name__}({type(inner).__name__}({inner.name})): no such nesting. Put a "
            f"KeyFarm or a WindowFarm around a WindowPartition or a PaneFarm."
        )
        raise FarmError(msg)

    @property
    def workers_keep_keys(self) -> bool:
        """Whether workers have operators of their own, not windows that they are given."""
        return self.pattern == "key" and self.inner is None

    # -- running ----------------------------------------------------------------------------------

    def open(self, start: Instant = 0, **options: Any) -> Any:
        """Start the farm; workers start when they pay, or at once with `when="always"`."""
        if self.when == "always" or options:
            return self.running(start, **options)
        return AdaptiveFarm(self, start)

    def running(self, start: Instant = 0, **options: Any) -> Any:
        """Start the workers."""
        return RunningWindowFarm(self, start, **options)

    def dispatch(self, run: Any) -> Any:
        """How windows become tasks; with a nested farm, as that one does it."""
        assert self.inner is not None
        return self.inner.dispatch(run)

    # -- the operator behind it -------------------------------------------------------------------

    @property
    def order_by(self) -> Any:
        """The columns that order a batch of input."""
        return self.operator.order_by

    def reads(self, port: int) -> Iterable[tuple[Any, str]]:
        """The columns that the operator reads."""
        return self.operator.reads(port)

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that the operator needs."""
        return self.operator.needs(port)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns that keep the operator's work apart."""
        return self.operator.splits_by(port)

    def passes(self, column: str, port: int) -> bool:
        """Whether the operator passes a column of its input on unchanged."""
        return self.operator.passes(column, port)

    def functions(self) -> Iterable[tuple[str, Fold]] | None:
        """The operator's functions."""
        return self.operator.functions()

    def check_types(self, schema: Any, port: int = 0) -> None:
        """Refuse what the operator cannot compute with."""
        self.operator.check_types(schema, port)

    def schema(self, *columns: Any) -> Any:
        """The columns of the operator's output."""
        return self.operator.schema(*columns)

    def schemas(self, *columns: Any) -> tuple[Any, ...]:
        """The columns of all its outputs."""
        return self.operator.schemas(*columns)

    def as_node(self, node: str) -> Operator:
        """Refused: the output of a farm comes later than its input."""
        msg = (
            f"Graph: {node!r} is a farm, which runs by itself. Build the graph of operators, and "
            f"give that to a farm: KeyFarm(graph)."
        )
        raise FarmError(msg)

    def describe(self) -> dict[str, str]:
        """The operator's description, and the options of the farm that its state depends on."""
        if self.inner is not None:  # which has the windows
            return self.inner.describe()
        return {**self.operator.describe(), "farm": type(self).__name__}

    def explain(self, *batches: Any) -> str:
        """The farm with its reason, and `explain` of the operator; on DataFrames also the plan."""
        if any(type(batch).__module__.startswith("pyspark.") for batch in batches):
            return super().explain(*batches)
        return f"{type(self).__name__}: {self.choice}\n{self.operator.explain(*batches)}"


class WindowFarm(Farm):
    """Whole windows on workers.

    Args:
        operator: any operator whose rows depend on one window alone.
        active: whether each worker has windows of its own, one in n of each partition, and gets
            their tuples as they come; otherwise a window goes to a free worker when it fires.
        partials: whether windows are merged from slices, where the function allows it: for windows
            whose tuples are known only when they fire.
        more: as for `Farm`.
    """

    def __init__(
        self, operator: Operator, *, active: bool = False, partials: bool = False, **more: Any
    ) -> None:
        self.active, self.partials = active, partials
        self.pattern = "window active" if active else "window agnostic"
        super().__init__(operator, **more)
        if partials and not self.choice.partials:
            msg = (
                f"WindowFarm({operator.name}, partials=True): that is for associative functions "
                f"of windows that are known only when they fire. Use PaneFarm, or drop it."
            )
            raise FarmError(msg)

    def dispatch(self, run: Any) -> Any:
        """Windows, or slices of them if they are merged."""
        if self.inner is not None:
            return super().dispatch(run)
        if self.partials:
            return PaneDispatch(run, CountSlicer(_GRAINS))
        return (ActiveDispatch if self.active else AgnosticDispatch)(run)


class PaneFarm(Farm):
    """Slices on workers, each computed once for all windows that share it; then windows of them.

    Args:
        operator: one whose function is associative.
        panes: how slices are cut: "pairs", where a window starts or ends; "gcd", all of one
            length, the longest that fits; or that length, as Count(10) or Time("1s"). Windows that
            do not follow count or time alone have slices of one length in process.
        parts: into how many parts a slice is cut, for workers to share it; or `Adaptive` or
            `AdaptivePid` of `windowlib.control`, to have a large slice cut and a small one not.
            Options are said with `partial(AdaptivePid, setpoint=0.8)`.
        more: as for `Farm`.
    """

    pattern = "pane"

    def __init__(
        self,
        operator: Operator,
        *,
        panes: Literal["pairs", "gcd"] | Count | Time = "pairs",
        parts: int | Callable[[int], Adaptive] = 1,
        **more: Any,
    ) -> None:
        super().__init__(operator, **more)
        (spec,) = self.windows
        model = model_of(spec)  # type: ignore[arg-type]
        self.slices: Slicing | None = None  # where windows start and end is known when they fire
        if isinstance(model, RegularWindows):
            self.slices = _slices(model, panes)
        elif panes != "pairs":
            kind = "windows of event time" if spec and spec.event_time else f"windows as {spec!r}"
            msg = (
                f"PaneFarm(panes={panes!r}): {kind} are cut where one starts or ends. Drop panes=."
            )
            raise FarmError(msg)
        if callable(parts):
            self.policy = _check_policy(parts, self.workers)
        else:
            self.parts = _check_parts("PaneFarm", parts)

    def describe(self) -> dict[str, str]:
        """The slices, too."""
        cuts = None if self.slices is None else (self.slices.period, self.slices.cuts)
        return {**super().describe(), "panes": repr(cuts)}

    def dispatch(self, run: Any) -> Any:
        """Slices that windows share."""
        if self.slices is None:
            (spec,) = self.windows
            if isinstance(spec, Session | Landmark):
                return RunPaneDispatch(run)
            if spec is not None and spec.event_time:
                return EventPaneDispatch(run)
            return PaneDispatch(run, CountSlicer(_GRAINS))
        by_time = isinstance(self.slices.model, TimeWindows)
        return PaneDispatch(run, TimeSlicer(self.slices) if by_time else CountSlicer(self.slices))


class WindowPartition(Farm):
    """Each window on several workers: each has a part of it, and the parts are merged.

    An operator that defines `emit_again` gets its tuples twice: the result of the whole window is
    given back to the workers, which then send rows for their parts (synchronous reduce).

    Args:
        operator: one whose function is associative.
        parts: into how many parts a window is cut; as many as there are workers, unless given.
            With fewer, several windows are under way at once.
        more: as for `Farm`.
    """

    pattern = "window partition"

    def __init__(self, operator: Operator, *, parts: int | None = None, **more: Any) -> None:
        super().__init__(operator, **more)
        self.parts = self.workers if parts is None else _check_parts("WindowPartition", parts)

    def dispatch(self, run: Any) -> Any:
        """Parts of each window."""
        return PartitionDispatch(run)


class KeyFarm(Farm):
    """The tuples of some keys on each worker, which has an operator of its own for them.

    Args:
        operator: any operator that keeps keys apart; graphs and joins, too.
        order: "rows", all rows come out as the operator alone would send them; or "keys", only
            those of one key do, which lets workers take whole batches with every operator. What
            time, a punctuation or the end of the input sends comes worker by worker.
        more: as for `Farm`.
    """

    pattern = "key"

    def __init__(
        self, operator: Operator, *, order: Literal["rows", "keys"] = "rows", **more: Any
    ) -> None:
        super().__init__(operator, **more)
        if order not in ("rows", "keys"):
            raise FarmError(f'KeyFarm(order={order!r}): no such order. Use "rows" or "keys".')
        self.order = order

    def running(self, start: Instant = 0, **options: Any) -> Any:
        """Start the workers."""
        if self.inner is not None:
            return super().running(start, **options)
        return RunningKeyFarm(self, start, **options)


def farm(
    operator: Operator,
    workers: int | Literal["auto"] | None = None,
    *,
    heaviest: float = 0.0,
    **more: Any,
) -> Farm:
    """The farm that fits an operator best; `choice` says why.

    On DataFrames of Spark's another one may fit better: then that is taken, and `explain` says why.

    Args:
        operator: any operator.
        workers: how many workers, "auto" for as many as keep busy; as many as the machine has
            processors, unless given.
        heaviest: the share of the rows that have the most frequent key, if that is known.
        more: options of the farm that is chosen.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Sliding
    >>> chosen = farm(Aggregate(Sliding(Count(60), every=Count(7)), high=agg.max("x")), workers=2)
    >>> print(type(chosen).__name__, "-", chosen.choice.reason)
    PaneFarm - its function is associative and windows overlap, so 17 slices make up a window \
and each is computed once.
    """
    if not isinstance(operator, Operator):
        raise FarmError(f"farm({operator!r}): not an operator. Pass one, such as Aggregate(...).")
    choice = choose(operator, _worker_number("farm", workers), heaviest=heaviest)
    kinds: dict[FarmPattern, type[Farm]] = {
        "key": KeyFarm,
        "pane": PaneFarm,
        "window partition": WindowPartition,
    }
    kind = kinds.get(choice.pattern, WindowFarm)
    if kind is WindowFarm:
        more["active"] = choice.pattern == "window active"
        more["partials"] = choice.partials
    found = kind(operator, workers=workers, **more)
    found.heaviest = heaviest
    return found


def _worker_number(kind: str, given: int | Literal["auto"] | None) -> int:
    """The number of workers: as given, two for "auto", else the number of processors."""
    if given == "auto":
        return min(2, processor_count())
    return processor_count() if given is None else check_workers(kind, given, ', or "auto"')


def _slices(model: RegularWindows, panes: str | Count | Time) -> Slicing:
    if panes == "pairs":
        return model.pairs()
    if panes == "gcd":
        return model.panes()
    length = panes.micros if isinstance(panes, Time) else getattr(panes, "size", None)
    fits = isinstance(panes, Time) == isinstance(model, TimeWindows) and bool(length)
    found = _equal_slices(model, length) if fits else None
    if found is None:
        kinds = "Time" if isinstance(model, TimeWindows) else "Count"
        msg = (
            f"PaneFarm(panes={panes!r}): windows of {model.size} every {model.slide} are not made "
            f'of such panes. Use "pairs", "gcd", or a {kinds}(...) that divides both.'
        )
        raise FarmError(msg)
    return found


def _check_options(kind: str, scheduling: str, batch: int | None, chunk: int, when: str) -> None:
    for word, value in (("batch", 1 if batch is None else batch), ("chunk", chunk)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            what, or_ = ("tasks", "") if word == "batch" else ("rows", ', or Time("50ms")')
            msg = f"{kind}({word}={value!r}): not a number of {what}. Use 1 or more{or_}."
            raise FarmError(msg)
    if scheduling not in SCHEDULERS:
        names = " or ".join(map(repr, SCHEDULERS))
        raise FarmError(f"{kind}(scheduling={scheduling!r}): no such way. Use {names}.")
    if when not in ("auto", "always"):
        raise FarmError(f'{kind}(when={when!r}): no such time. Use "auto" or "always".')


def _equal_slices(model: RegularWindows, length: Any) -> Slicing | None:
    """Slices of a length, if it divides size and slide."""
    if model.size % length or model.slide % length:
        return None
    return Slicing(model, model.size // length, model.slide // length, length)


def _check_parts(kind: str, parts: int) -> int:
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise FarmError(f"{kind}(parts={parts!r}): not a number of parts. Use 1 or more.")
    return parts


def _check_policy(parts: Callable[[int], Adaptive], workers: int) -> Callable[[int], Adaptive]:
    """A factory of policies with a threshold: each run has its own, because policies learn."""
    if not isinstance(found := parts(workers), Adaptive):
        msg = (
            f"PaneFarm(parts={parts!r}): {type(found).__name__} has no threshold to cut slices "
            f"at. Use a number, Adaptive or AdaptivePid."
        )
        raise FarmError(msg)
    return parts
