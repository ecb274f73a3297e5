"""The plan of each farm on Spark: the tasks of the cluster are the workers.

| farm | plan |
| --- | --- |
| `KeyFarm` | the bucketed plan of every operator, with more buckets than workers |
| `WindowFarm` | buckets send windows; round robin; each task applies the function |
| `PaneFarm`, and `WindowPartition` by time | tasks compute partials of slices where the rows \
are; buckets merge them |
| `PaneFarm` of event time | tasks fold rows into partials of slices; buckets merge them |
| `WindowPartition` | buckets send pieces of windows; tasks compute partials; tasks merge \
them |
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import functions as fn
from pyspark.sql.types import BinaryType, DayTimeIntervalType, LongType, StructField, StructType

from windowlib.errors import FarmError
from windowlib.farms.farm import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.models import Slicing, TimeWindows, model_of
from windowlib.farms.window_function import function_of, reads_twice
from windowlib.runtime.splitting import names_in
from windowlib.spark.farms.slice_partials import (
    AT,
    PART,
    PLACE,
    NativeSlices,
    PartialMerger,
    SlicePartials,
    native_slices,
    with_places,
)
from windowlib.spark.farms.window_stages import (
    PIECES,
    SENT,
    ApplyFunction,
    ComputePartials,
    FiringSender,
    MergePartials,
    ResultRows,
)
from windowlib.spark.observe.plan_text import explain_plan
from windowlib.spark.plan import validation
from windowlib.spark.plan.attached import Attached, frame_of, prepare_session
from windowlib.spark.plan.folding import kept_rows
from windowlib.spark.plan.input_merge import order_columns
from windowlib.spark.plan.query_plan import (
    AttachOptions,
    QueryPlan,
    numbered,
    over_partials,
    plan_query,
    with_output,
)
from windowlib.spark.plan.static import bounds
from windowlib.spark.plan.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIDTH = 96
TASKS = 3
"""Tasks for each worker, so that none waits long for the last one."""


class AttachedFarm(Attached):
    """A farm that can be called on DataFrames; made by `attach`."""

    def __init__(self, farm: Any, options: AttachOptions, *, numbered: bool) -> None:
        if numbered and (not isinstance(farm, Farm) or isinstance(farm, KeyFarm)):
            msg = (
                f"attach({farm.name}, numbered=True): buckets send its rows in the order of its "
                f"windows already. Drop it, or use WindowFarm, PaneFarm or WindowPartition."
            )
            raise FarmError(msg)
        super().__init__(farm.operator, options)
        self.farm, self.numbered = farm, numbered

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The DataFrame of the farm's output."""
        farm_plan = self._plan(frames)
        plan = farm_plan.plan
        validation.warn_clock(self.operator, self.options.clock_said, plan.streaming)
        if farm_plan.ordered:
            order_by = self.options.order_by
            validation.warn_order(self.operator, order_by, frames, plan.takes_by_time)
        prepare_session(farm_plan.plan)
        return farm_plan.frame()

    def _plan(self, frames: Sequence[DataFrame]) -> FarmPlan:
        kind = _kind_of_plan(self.farm)
        plan = plan_query(self.operator, kind.options(self.farm, self.options, frames), frames)
        found = kind(self.farm, numbered(plan) if self.numbered else plan, self.numbered)
        found.check()
        return found

    def explain(self, *frames: DataFrame) -> str:
        """Which farm it is and why, what its stages do, and how the operator runs."""
        farm_plan = self._plan(frames)
        said = [("farm", f"{type(self.farm).__name__}: {self.farm.choice}")]
        said += [(f"stage {n}", text) for n, text in enumerate(farm_plan.stages(), 1)]
        lines = [
            line
            for topic, text in said
            for line in textwrap.wrap(
                f"{topic:<12} {text}", WIDTH, subsequent_indent=" " * 13, break_long_words=False
            )
        ]
        return "\n".join([*lines, "", explain_plan(farm_plan.plan)])


class FarmPlan:
    """The stages of a farm on Spark; the base of those of each kind.

    Args:
        farm: the farm.
        plan: the plan of its operator.
        numbered: whether rows have the number of their window.
    """

    ordered = True
    """Whether the order of rows matters to it."""

    def __init__(self, farm: Any, plan: QueryPlan, numbered: bool) -> None:
        self.farm, self.plan, self.numbered = farm, plan, numbered
        self.operator, self.workers = plan.operator, farm.workers

    @staticmethod
    def options(farm: Any, options: AttachOptions, frames: Sequence[DataFrame]) -> AttachOptions:
        """The options of the operator's plan: those that `attach` was told, unless changed."""
        return options

    def check(self) -> None:
        """Refuse what it cannot do."""

    @property
    def tasks(self) -> int:
        """How many tasks share the work: several for each worker, which take them when free."""
        return TASKS * int(self.workers)

    def refuse(self, why: str, fix: str) -> NoReturn:
        """Say what it cannot do."""
        kind = type(self.farm).__name__
        raise FarmError(f"{kind}({self.operator.name}) on Spark: {why}. {fix}")

    def frame(self) -> DataFrame:
        """The DataFrame of its output."""
        raise NotImplementedError

    def stages(self) -> list[str]:
        """What it does, in a few lines."""
        raise NotImplementedError


class KeyFarmPlan(FarmPlan):
    """Buckets are the workers."""

    @staticmethod
    def options(farm: Any, options: AttachOptions, frames: Sequence[DataFrame]) -> AttachOptions:
        """Several buckets for each worker unless given, so that none waits for long."""
        if options.buckets is not None or not frames:
            return options
        return replace(options, least_buckets=TASKS * farm.workers)

    def frame(self) -> DataFrame:
        """The plan of the operator."""
        return frame_of(self.plan)

    def stages(self) -> list[str]:
        """What it does."""
        return [f"{len(self.plan.buckets)} buckets, each with the operator for some of the keys"]


class WindowFarmPlan(FarmPlan):
    """Buckets send windows, and tasks apply the function."""

    def check(self) -> None:
        """Rows are not copied to the tasks of all their windows."""
        refuse_late_port(self)
        if self.farm.active:
            why = "rows would be copied through the shuffle to the tasks of all their windows"
            self.refuse(why, "Use WindowFarm(op, active=False).")

    def frame(self) -> DataFrame:
        """Two stages."""
        sender = FiringSender(self.operator, self.farm.batch or 1, numbered=self.numbered)
        results = ResultRows(self.plan, self.numbered)
        work = ApplyFunction(self.operator, self.plan.inputs[0], results)
        sent = sent_windows(self, sender).repartition(self.tasks)
        return sent.mapInArrow(work, self.plan.output.struct)

    def stages(self) -> list[str]:
        """What it does."""
        many = self.farm.batch or 1
        rows = f", {many} neighbouring windows in a row" if many > 1 else ", a window in a row"
        return [
            f"buckets keep the window, and send what fires with its tuples{rows}",
            f"round robin over {self.tasks} tasks, each of which computes the windows it gets",
        ]


class WindowPartitionPlan(FarmPlan):
    """Buckets send pieces of windows, tasks compute them, and tasks merge their results."""

    def check(self) -> None:
        """Tuples are gone when the result of the whole is known."""
        refuse_second_look(self)
        refuse_late_port(self)

    @property
    def parts(self) -> int:
        """Into how many pieces a window is cut."""
        return int(self.farm.parts)

    def frame(self) -> DataFrame:
        """Three stages."""
        sender = FiringSender(self.operator, pieces=self.parts)
        pieces = sent_windows(self, sender).repartition(self.tasks)
        compute = ComputePartials(self.operator, self.plan.inputs[0])
        partials = pieces.mapInArrow(compute, PIECES)
        merge = MergePartials(self.operator, ResultRows(self.plan, self.numbered))
        together = partials.repartition(self.tasks, PIECES.names[0])
        return together.mapInArrow(merge, self.plan.output.struct)

    def stages(self) -> list[str]:
        """What it does."""
        return [
            f"buckets keep the window, and send what fires in {self.parts} pieces",
            f"round robin over {self.tasks} tasks, each of which computes the pieces it gets",
            "the results of one window meet in one task, which merges them in their order",
        ]


class PaneFarmPlan(FarmPlan):
    """Tasks compute partials of slices where the rows are, and buckets merge them."""

    ordered = False

    def check(self) -> None:
        """Slices are known from the time of a row alone, and partials come in any order."""
        refuse_second_look(self)
        if self.plan.holds:
            why = "the clock of a stream waits for single rows, and slices have none"
            self.refuse(why, "Use KeyFarm or WindowFarm, or drop times=.")
        if self._time is None:
            why = (
                "its windows count the tuples of a key, which only the place that has the whole "
                "key can do, so no task can tell the pane of a row"
            )
            self.refuse(why, "Use KeyFarm or WindowFarm, or replay the farm in process.")
        if self.plan.options.key is not None:
            said = f"attach(key={self.plan.options.key!r}) was said"
            why = f"{said}, and parts have the key of the window"
            self.refuse(why, "Drop key=, or partition the window by these columns.")
        if names_in(self.spec.by) is None:
            why = "the key of its window is a function, and tasks read columns"
            self.refuse(why, "Name a column, which a Functor before it can make.")

    @property
    def spec(self) -> Any:
        """The window."""
        (spec,) = self.operator.windows
        return spec

    @property
    def _time(self) -> Slicing | None:
        """How time is cut, if windows go by time."""
        model = model_of(self.spec)
        if not isinstance(model, TimeWindows):
            return None
        return self.farm.slices if isinstance(self.farm, PaneFarm) else model.pairs()

    @property
    def _order(self) -> tuple[str, ...]:
        """The columns by which tasks get neighbouring rows; none if their order is irrelevant.

        The partials of one slice are merged in the order of the tasks that made them. Without a
        column that orders rows, those of a static DataFrame are in order as they are.
        """
        if not ordered_function(self.operator):
            return ()
        return order_columns(self.plan.orders[0]) or order_columns(self._said(self.plan.times))

    def _said(self, times: str | None) -> str | None:
        """The column that orders rows where nothing else is said to."""
        said = self.plan.options.order_by
        return None if (self.spec.order_by if said is ... else said) is None else times

    def frame(self) -> DataFrame:
        """Two stages; only the first sees rows."""
        frame, times = self.plan.frames[0], self.plan.options.times
        if times is not None:
            frame = frame.crossJoin(fn.broadcast(bounds([frame], times)))
        frame = self._ranged(frame)  # behind the join, under which Spark removes a sort
        if (native := self._native) is not None:
            return self._merged(native.operator, native.partials(frame))
        slices = self._time if times is not None else None
        order = (*self._order, PLACE) if self.plan.streaming and self._order else ()
        work = SlicePartials(self.operator, self.spec.by, slices, times, order)
        fields = [frame.schema[name] for name in work.columns]
        if times is not None:
            fields.append(StructField(AT, DayTimeIntervalType(), True))
        struct = StructType([*fields, StructField(PART, BinaryType(), True)])
        merger = PartialMerger(self.operator, self.numbered)
        return self._merged(merger, frame.mapInArrow(work, struct))

    def _ranged(self, frame: DataFrame) -> DataFrame:
        """The rows with neighbours in one task, if their order matters."""
        order = self._order
        if not order:
            return frame
        columns = [fn.col(quoted(name)) for name in order]
        struct = StructType([*frame.schema.fields, StructField(PLACE, LongType(), True)])
        placed = frame.mapInArrow(with_places, struct)
        ranged = placed.repartitionByRange(self.tasks, *columns)
        # A stream is not sorted by Spark; its tasks sort what they get.
        return ranged if self.plan.streaming else ranged.sortWithinPartitions(*columns, PLACE)

    def _merged(self, merger: Any, partials: DataFrame) -> DataFrame:
        times = None if self.plan.options.times is None else AT
        farm = type(self.farm).__name__
        return frame_of(over_partials(self.plan, merger, partials, farm, times))

    @property
    def _native(self) -> NativeSlices | None:
        """How Spark itself computes partials, if it can."""
        times, slices = self.plan.options.times, self._time
        if times is None or slices is None or self.numbered:
            return None
        names = [str(name) for name in names_in(self.spec.by) or ()]
        return native_slices(self.operator, self.plan.frames[0], names, slices, times)

    def stages(self) -> list[str]:
        """What it does."""
        key = ", ".join(map(str, names_in(self.spec.by) or ())) or "none"
        what = "micro-batch" if self.plan.streaming else "slice"
        if self._native is not None:
            return [
                f"Spark's own functions make one row for each key ({key}) and slice",
                "buckets run the window over these rows",
            ]
        ranges = (
            f"rows go to {self.tasks} tasks by ranges of {', '.join(self._order)}, because "
            f"{ordered_function(self.operator)} depends on their order"
        )
        stay = "" if self._order else ", which stay where they are"
        return [
            *([ranges] if self._order else []),
            f"each task makes one part for each key ({key}) and {what} of its rows{stay}",
            "buckets run the window over the parts, and merge those of the windows that fire",
        ]


class EventPanePlan(WindowPartitionPlan):
    """Tasks fold rows of event time into partials of slices, which the watermark closes.

    Where rows have to be in order, buckets keep the windows and send pieces of them.
    """

    @property
    def _kept(self) -> str:
        """Why rows cross the shuffle; empty if their partials do."""
        if self.numbered:
            return "windows are numbered where they fire"
        return kept_rows(self.plan.bucket_spec())

    @property
    def parts(self) -> int:
        """Into how many pieces a window is cut that is not folded."""
        return max(int(self.farm.parts), int(self.workers))

    def frame(self) -> DataFrame:
        """The plan of the operator folds before the shuffle; else three stages."""
        return super().frame() if self._kept else frame_of(self.plan)

    def stages(self) -> list[str]:
        """What it does."""
        if why := self._kept:
            first, *others = super().stages()
            return [f"{first} ({why})", *others]
        return [
            "each task folds its rows into one partial for each key and slice of event time",
            "buckets merge the partials, and windows fire when Spark's watermark has passed them",
        ]


def _kind_of_plan(farm: Farm) -> type[FarmPlan]:
    if isinstance(farm, KeyFarm):
        return KeyFarmPlan
    if isinstance(farm, WindowFarm):
        return WindowFarmPlan
    (spec,) = farm.operator.windows
    assert spec is not None
    if spec.event_time and isinstance(farm, PaneFarm):
        return EventPanePlan
    timed = isinstance(model_of(spec), TimeWindows)
    return WindowPartitionPlan if isinstance(farm, WindowPartition) and not timed else PaneFarmPlan


def sent_windows(plan: FarmPlan, sender: FiringSender) -> DataFrame:
    """The windows that buckets send, in place of the rows of the operator."""
    return frame_of(with_output(plan.plan, sender, SENT, type(plan.farm).__name__))


def refuse_late_port(plan: FarmPlan) -> None:
    """Refuse late rows as an output: they leave the buckets, which send windows."""
    if any(spec is not None and spec.late == "port" for spec in plan.operator.windows):
        why = "late rows would come out of its first stage, and rows of windows out of its last"
        plan.refuse(why, 'Say late="drop" or late="update", or run the operator without a farm.')


def refuse_second_look(plan: FarmPlan) -> None:
    """Refuse an operator that looks at the tuples again."""
    if reads_twice(plan.operator):
        why = "it defines emit_again, and tuples are gone when the result of a window is known"
        plan.refuse(why, "Use KeyFarm or WindowFarm, or replay the farm in process.")


def ordered_function(operator: Any) -> str:
    """The function that depends on the order of rows; "" if none does.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Time, Tumbling
    >>> ordered_function(Aggregate(Tumbling(Time("1s")), n=agg.count(), x=agg.last("x")))
    'agg.last("x")'
    """
    found = function_of(operator)
    if found.commutative:
        return ""
    named = operator.functions() or ()
    return next((text for text, fold in named if not fold.commutative), found.shown)
