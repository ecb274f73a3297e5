"""The plan of each farm on Spark: the tasks of the cluster are the workers.

| farm | plan |
| --- | --- |
| `KeyFarm` | the bucketed plan of every operator, with more buckets than workers |
| `WindowFarm` | buckets send windows; round robin; each task applies the function |
| `PaneFarm`, and `WindowPartition` by time | tasks compute partials of slices where the rows \
are; buckets merge them |
| `PaneFarm` of event time | tasks fold rows into partials of slices; buckets merge them |
| `PaneFarm` of other windows | buckets send the slices of what fires; tasks compute partials; \
tasks merge them |
| `WindowPartition` | the same with pieces of each window, which may be read twice |

The windows of a row are often known only where all rows of its key are: then rows go there first,
and what fires goes on to the tasks.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.types import BinaryType, DayTimeIntervalType, LongType, StructField, StructType

from windowlib.columnar.kernels.functions import functions_of
from windowlib.errors import FarmError
from windowlib.farms.choice import choose, unsafe
from windowlib.farms.farm import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.models import CountWindows, EventWindows, Slicing, TimeWindows, model_of
from windowlib.farms.window_function import function_of, has_parts, ordered_parts, reads_twice
from windowlib.runtime.operator import Operator
from windowlib.runtime.splitting import names_in
from windowlib.spark.farms.slice_partials import (
    AT,
    PART,
    PLACE,
    NativeSlices,
    PartialMerger,
    SlicePartials,
    native_slices,
    with_row_numbers,
)
from windowlib.spark.farms.window_stages import (
    ID,
    SENT,
    SHARES,
    WORKER,
    ActiveWindows,
    ApplyFunction,
    CollectRows,
    ComputePartials,
    FiringSender,
    MergePartials,
    RereadRows,
    ResultRows,
    ReturnWhole,
)
from windowlib.spark.observe.plan_text import explain_plan
from windowlib.spark.plan import validation
from windowlib.spark.plan.attach import Attached, frame_of, prepare_session
from windowlib.spark.plan.folding import kept_rows
from windowlib.spark.plan.input_merge import order_columns
from windowlib.spark.plan.query_plan import (
    AttachOptions,
    QueryPlan,
    for_each_worker,
    numbered,
    over_partials,
    plan_query,
    with_output,
)
from windowlib.spark.plan.static import time_bounds
from windowlib.spark.plan.types import quoted
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIDTH = 96
TASKS = 3
"""Tasks for each worker, so that no worker waits long for the last task."""
WORTH_IT = "It pays where a window takes milliseconds."


class AttachedFarm(Attached):
    """A farm that can be called on DataFrames; made by `attach`."""

    def __init__(self, farm: Any, options: AttachOptions, *, numbered: bool) -> None:
        if numbered and (not isinstance(farm, Farm) or farm.workers_keep_keys):
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
        validation.warn_clock(self.operator, self.options.has_clock, plan.streaming)
        if farm_plan.ordered:
            order_by = self.options.order_by
            validation.warn_order(self.operator, order_by, frames, plan.ordered_by_time)
        validation.warn_late(self.operator, frames)
        prepare_session(farm_plan.plan)
        return farm_plan.frame()

    def _plan(self, frames: Sequence[DataFrame]) -> FarmPlan:
        plan = plan_query(self.operator, self.options, frames)
        plan = numbered(plan) if self.numbered else plan
        if self.farm.heaviest is not None:
            return best_plan(self.farm, plan, self.numbered)
        return plan_of(self.farm, plan, self.numbered)

    def explain(self, *frames: DataFrame) -> str:
        """The farm with its reason, its stages, and how the operator runs."""
        farm_plan = self._plan(frames)
        said = [("farm", farm_plan.shown)]
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
        self.shown = f"{type(farm).__name__}: {farm.choice}"
        """The farm and its reason."""

    @property
    def tasks(self) -> int:
        """How many tasks share the work: several for each worker."""
        return TASKS * int(self.workers)

    def frame(self) -> DataFrame:
        """The DataFrame of its output."""
        raise NotImplementedError

    def stages(self) -> list[str]:
        """The stages in words, for `explain`."""
        raise NotImplementedError


class OperatorPlan(FarmPlan):
    """The operator alone, where a farm would be slower."""

    def frame(self) -> DataFrame:
        """The plan of the operator."""
        return frame_of(self.plan)

    def stages(self) -> list[str]:
        """The stages in words."""
        return ["buckets run the operator"]


class KeyFarmPlan(FarmPlan):
    """Buckets are the workers: several for each unless given, so that none waits for long."""

    def __init__(self, farm: Any, plan: QueryPlan, numbered: bool) -> None:
        buckets = replace(plan.numbers, least=TASKS * farm.workers)
        super().__init__(farm, replace(plan, numbers=buckets), numbered)

    def frame(self) -> DataFrame:
        """The plan of the operator."""
        return frame_of(self.plan)

    def stages(self) -> list[str]:
        """The stages in words."""
        return [f"{len(self.plan.buckets)} buckets, each with the operator for some of the keys"]


class WindowFarmPlan(FarmPlan):
    """Buckets send windows, and tasks apply the function."""

    passive = ""
    """Why there are no active workers, if these were asked for."""

    def frame(self) -> DataFrame:
        """Two stages."""
        batch = self.farm.batch or 0
        sender = FiringSender(self.operator, batch, numbered=self.numbered, tasks=self.tasks)
        results = ResultRows(self.plan, self.numbered)
        work = ApplyFunction(self.operator, self.plan.inputs[0], results)
        sent = sent_windows(self, sender).repartition(self.tasks)
        return sent.mapInArrow(work, self.plan.output.struct)

    def stages(self) -> list[str]:
        """The stages in words."""
        many = self.farm.batch or "as many"
        rows = f"{many} neighbouring windows in a row" if many != 1 else "a window in a row"
        share = "" if self.farm.batch else " as there are for each task"
        why = f" (no active workers: {self.passive})" if self.passive else ""
        return [
            f"buckets keep the window, and send what fires with its tuples, {rows}{share}{why}",
            f"round robin over {self.tasks} tasks, each of which computes the windows it gets",
        ]


class ActivePlan(FarmPlan):
    """Buckets are workers: each gets all rows and computes its own windows."""

    def frame(self) -> DataFrame:
        """One stage."""
        workers = int(self.workers)
        work = ActiveWindows(self.operator, workers, self.numbered)
        farm = type(self.farm).__name__
        return frame_of(for_each_worker(self.plan, work, farm, WORKER, workers, self.tasks))

    def stages(self) -> list[str]:
        """The stages in words."""
        return [
            f"each row is copied to {self.workers} workers, each of which keeps the window in "
            f"buckets and computes one in {self.workers} of what fires",
        ]


class SharesPlan(FarmPlan):
    """Buckets send shares of what fires, tasks compute them, and tasks merge their results.

    Args:
        farm: the farm.
        plan: the plan of its operator.
        numbered: whether rows have the number of their window.
        why: why rows are brought together first.
    """

    def __init__(self, farm: Any, plan: QueryPlan, numbered: bool, why: str = "") -> None:
        super().__init__(farm, plan, numbered)
        self.why = why
        self.reads_twice = reads_twice(self.operator)
        self.shared = (
            isinstance(farm, PaneFarm) and not self.reads_twice and not self.spec.event_time
        )

    @property
    def spec(self) -> Any:
        """The window."""
        (spec,) = self.operator.windows
        return spec

    @property
    def parts(self) -> int:
        """Into how many pieces a window is cut, if slices are not shared."""
        given = int(self.farm.parts)
        return max(given, self.workers) if isinstance(self.farm, PaneFarm) else given

    def frame(self) -> DataFrame:
        """Three stages; five with a second pass over the tuples."""
        how: dict[str, Any] = {"shared": True} if self.shared else {"pieces": self.parts}
        sender = FiringSender(self.operator, **how, tasks=self.tasks)
        work = ComputePartials(self.operator, self.plan.inputs[0], keeps=self.reads_twice)
        sent = sent_windows(self, sender).repartition(self.tasks)
        found = sent.mapInArrow(work, SHARES).repartition(self.tasks, ID)
        results = ResultRows(self.plan, self.numbered)
        if not self.reads_twice:
            merge = MergePartials(self.operator, results)
            return found.mapInArrow(merge, self.plan.output.struct)
        whole = found.mapInArrow(ReturnWhole(self.operator), SHARES).repartition(self.tasks)
        again = RereadRows(self.operator, self.plan.inputs[0], results)
        rows = whole.mapInArrow(again, SHARES).repartition(self.tasks, ID)
        return rows.mapInArrow(CollectRows(results), self.plan.output.struct)

    def stages(self) -> list[str]:
        """The stages in words."""
        why = f" ({self.why})" if self.why else ""
        what = "the slices of what fires, each of them once" if self.shared else ""
        sent = what or f"what fires in {self.parts} pieces"
        last = "the results of one window meet in one task, which merges them in their order"
        if self.shared:
            last = "the results of windows that share slices meet in one task, which merges them"
        again = [
            f"{last}, and gives the result back with the pieces",
            f"round robin over {self.tasks} tasks, each of which looks at its pieces again",
            "the rows of one window meet in one task, which puts them in their order",
        ]
        return [
            f"buckets keep the window, and send {sent}{why}",
            f"round robin over {self.tasks} tasks, each of which computes what it gets",
            *(again if self.reads_twice else [last]),
        ]


class PaneFarmPlan(FarmPlan):
    """Tasks compute partials of slices where the rows are, and buckets merge them."""

    ordered = False

    @property
    def spec(self) -> Any:
        """The window."""
        (spec,) = self.operator.windows
        return spec

    @property
    def _time_slicing(self) -> Slicing | None:
        """How time is cut, if windows go by time."""
        model = model_of(self.spec)
        if not isinstance(model, TimeWindows):
            return None
        return self.farm.slices if isinstance(self.farm, PaneFarm) else model.pairs()

    @property
    def _order(self) -> tuple[str, ...]:
        """The columns that order rows; none if their order is irrelevant.

        Without such a column, the rows of a static DataFrame are in order as they are.
        """
        if not ordered_function(self.operator):
            return ()
        return order_columns(self.plan.orders[0]) or order_columns(self._default_order)

    @property
    def _default_order(self) -> str | None:
        """The column of arrival times, unless the order is said to be irrelevant."""
        said = self.plan.options.order_by
        irrelevant = (self.spec.order_by if said is ... else said) is None
        return None if irrelevant else self.plan.times

    def frame(self) -> DataFrame:
        """Two stages; only the first sees rows."""
        frame, times = self.plan.frames[0], self.plan.options.times
        if times is not None:
            frame = frame.crossJoin(fn.broadcast(time_bounds([frame], times)))
        picks = self._picking_operator
        if picks is None:
            frame = self._range_partitioned(
                frame
            )  # behind the join, under which Spark removes a sort
        if (native := self.native) is not None:
            return self._merged_frame(native.operator, native.partials(frame))
        slices = self._time_slicing if times is not None else None
        order, operator = self._order, picks or self.operator
        placed = picks is not None
        order = order if placed or self.plan.streaming else ()  # which Spark has sorted by
        work = SlicePartials(operator, self.spec.by, slices, times, order, placed)
        fields = [frame.schema[name] for name in work.columns]
        if times is not None:
            fields.append(StructField(AT, DayTimeIntervalType(), True))
        struct = StructType([*fields, StructField(PART, BinaryType(), True)])
        merger = PartialMerger(operator, self.numbered)
        return self._merged_frame(merger, frame.mapInArrow(work, struct))

    @property
    def _picking_operator(self) -> Operator | None:
        """The operator with partials that carry positions of values; None if it has none.

        With it rows stay where they are, although their order matters.
        """
        return ordered_parts(self.operator) if self._order else None

    def _range_partitioned(self, frame: DataFrame) -> DataFrame:
        """The rows with neighbours in one task, if their order matters.

        The partials of one slice are merged in the order of the tasks that made them.
        """
        order = self._order
        if not order:
            return frame
        columns = [fn.col(quoted(name)) for name in order]
        struct = StructType([*frame.schema.fields, StructField(PLACE, LongType(), True)])
        placed = frame.mapInArrow(with_row_numbers, struct)
        ranged = placed.repartitionByRange(self.tasks, *columns)
        # A stream is not sorted by Spark; its tasks sort what they get.
        return ranged if self.plan.streaming else ranged.sortWithinPartitions(*columns, PLACE)

    def _merged_frame(self, merger: Any, partials: DataFrame) -> DataFrame:
        times = None if self.plan.options.times is None else AT
        farm = type(self.farm).__name__
        if self._picking_operator is not None:  # whose parts are others than those of rows in order
            farm += ", values with their places"
        return frame_of(over_partials(self.plan, merger, partials, farm, times))

    @property
    def native(self) -> NativeSlices | None:
        """How Spark itself computes partials, if it can."""
        times, slices = self.plan.options.times, self._time_slicing
        if times is None or slices is None or self.numbered:
            return None
        names = [str(name) for name in names_in(self.spec.by) or ()]
        return native_slices(self.operator, self.plan.frames[0], names, slices, times)

    def stages(self) -> list[str]:
        """The stages in words."""
        key = ", ".join(map(str, names_in(self.spec.by) or ())) or "none"
        what = "micro-batch" if self.plan.streaming else "slice"
        if self.native is not None:
            return [
                f"Spark's own functions make one row for each key ({key}) and slice",
                "buckets run the window over these rows",
            ]
        order, of = ", ".join(self._order), ordered_function(self.operator)
        first, where = [], ", which stay where they are"
        if self._picking_operator is not None:
            where += f"; the values of {of} have their places in the order by {order}"
        elif order:
            ranges = f"rows go to {self.tasks} tasks by ranges of {order}"
            first, where = [f"{ranges}, because {of} depends on their order"], ""
        return [
            *first,
            f"each task makes one part for each key ({key}) and {what} of its rows{where}",
            "buckets run the window over the parts, and merge those of the windows that fire",
        ]


class FoldedPanePlan(FarmPlan):
    """Tasks fold rows of event time into partials of slices, which the watermark closes."""

    def frame(self) -> DataFrame:
        """The plan of the operator, which folds before the shuffle."""
        return frame_of(self.plan)

    def stages(self) -> list[str]:
        """The stages in words."""
        return [
            "each task folds its rows into one partial for each key and slice of event time",
            "buckets merge the partials, and windows fire when Spark's watermark has passed them",
        ]


def plan_of(farm: Farm, plan: QueryPlan, numbered: bool) -> FarmPlan:
    """The plan of a farm, given that of its operator."""
    if farm.inner is not None:
        return _nested_plan(farm, farm.inner, plan, numbered)
    if isinstance(farm, KeyFarm):
        return KeyFarmPlan(farm, plan, numbered)
    (spec,) = plan.operator.windows
    assert spec is not None
    if isinstance(farm, WindowFarm):
        passive = _passive_reason(spec) if farm.active else ""
        if farm.active and not passive:
            return ActivePlan(farm, plan, numbered)
        found = WindowFarmPlan(farm, plan, numbered)
        found.passive = passive
        return found
    panes = isinstance(farm, PaneFarm)
    if panes and spec.event_time:
        why = "windows are numbered where they fire" if numbered else kept_rows(plan.bucket_spec())
        why = _second_pass_reason(plan.operator) or why
        early: type[FarmPlan] = FoldedPanePlan
    elif panes or isinstance(model_of(spec), TimeWindows):
        why, early = why_rows_meet_first(plan, spec), PaneFarmPlan
    else:
        return SharesPlan(farm, plan, numbered)
    return SharesPlan(farm, plan, numbered, why) if why else early(farm, plan, numbered)


def _nested_plan(farm: Farm, inner: Farm, plan: QueryPlan, numbered: bool) -> FarmPlan:
    """The plan of a farm of farms: as in process, the inner one has the windows of all of them."""
    one = copy(inner)
    one.workers = farm.workers
    found = plan_of(one, plan, numbered)
    found.shown = f"{type(farm).__name__}({type(inner).__name__}): {farm.choice}"
    return found


def best_plan(farm: Farm, plan: QueryPlan, numbered: bool) -> FarmPlan:
    """The plan of the best farm on Spark, or of none, in place of what `farm` chose."""
    kind, reason = best_on_spark(farm, plan, numbered)
    if kind is None:
        alone = OperatorPlan(farm, plan, numbered)
        alone.shown = f"none, the operator alone: {reason}"
        return alone
    found = copy(farm)
    if not isinstance(farm, kind) or (isinstance(farm, WindowFarm) and farm.active):
        found = kind(plan.operator, workers=farm.workers, batch=farm.batch)
    if reason:
        found.choice = replace(found.choice, reason=reason)
    return plan_of(found, plan, numbered)


def best_on_spark(
    farm: Farm, plan: QueryPlan, numbered: bool = False
) -> tuple[type[Farm] | None, str]:
    """The best kind of farm on Spark, None if the operator alone is faster, and the reason.

    Args:
        farm: what is best in process.
        plan: the plan of its operator.
        numbered: whether rows have the number of their window, which the operator does not know.
    """
    operator, workers = plan.operator, int(farm.workers)
    spec = operator.windows[0] if len(operator.windows) == 1 else None
    if spec is None or operator.beyond_window():
        return type(farm), ""
    by_key, function, model = choose(operator, workers), function_of(operator), model_of(spec)
    spread = by_key.pattern == "key" and (farm.heaviest or 0) * workers <= 1
    shown = f"{function.shown} is associative"
    parts = function.kind == "associative" and has_parts(operator)
    if parts and isinstance(model, EventWindows):
        if not numbered and not kept_rows(plan.bucket_spec()):
            kind = None if unsafe(model, function, "pane") else PaneFarm
            return kind, "rows are folded into slices of event time before the shuffle."
    elif parts and not why_rows_meet_first(plan, spec):
        early = PaneFarmPlan(PaneFarm(operator, workers=workers), plan, numbered=False)
        if early.native is not None:
            return PaneFarm, "Spark's own functions make a row of each slice before the shuffle."
        if not spread:
            return PaneFarm, f"{shown}, so tasks make parts of slices where the rows are."
    if spread:
        return KeyFarm, by_key.reason
    if not numbered and has_kernels(operator, plan.inputs[0]):
        return None, "its functions take less time than to send windows to other tasks."
    if not parts or (isinstance(model, CountWindows) and model.slide == 1):
        near = "neighbours go together, so that the tuples which they share are sent once"
        return WindowFarm, f"any task may take any window; {near}. {WORTH_IT}"
    if model.overlapping and not isinstance(model, EventWindows):
        return (
            PaneFarm,
            f"{shown} and windows overlap, so they share slices when they fire. {WORTH_IT}",
        )
    return WindowPartition, f"{shown}, so several tasks share a window. {WORTH_IT}"


def has_kernels(operator: Operator, schema: pa.Schema) -> bool:
    """Whether an operator names functions alone that there are kernels for, of whole columns.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Count, Tumbling
    >>> def takes(function):
    ...     op = Aggregate(Tumbling(Count(3)), out=function)
    ...     return has_kernels(op, pa.schema({"x": pa.int64()}))
    >>> takes(agg.median("x")), takes(agg.custom(int, lambda state, x: state + x, column="x"))
    (True, False)
    """
    (window,) = operator.open().windows
    plan = None if window is None else window.state.summarizer
    try:
        return plan is not None and bool(functions_of(getattr(plan, "each", plan), schema))
    except Decline:
        return False


def _passive_reason(spec: Any) -> str:
    """Why workers cannot keep windows of their own; empty if they can."""
    if names_in(spec.by) is None:
        return "the key of its window is a function"
    if spec.by is None and spec.timed:
        return "a window without a key has results when it is empty, too, which belong to no worker"
    return ""


def why_rows_meet_first(plan: QueryPlan, spec: Any) -> str:
    """Why the rows of a key have to meet before they are sliced; empty if they do not."""
    if why := _second_pass_reason(plan.operator):
        return why
    if not isinstance(model_of(spec), TimeWindows):
        return "which windows a row is in is known where all rows of its key are"
    if plan.holds:
        return "rows wait until the clock has passed them"
    if plan.options.key is not None:
        return "attach(key=...) says which rows meet"
    if names_in(spec.by) is None:
        return "the key of its window is a function"
    return ""


def _second_pass_reason(operator: Any) -> str:
    return "its tuples are looked at twice" if reads_twice(operator) else ""


def sent_windows(plan: FarmPlan, sender: FiringSender) -> DataFrame:
    """The windows that buckets send, in place of the rows of the operator."""
    return frame_of(with_output(plan.plan, sender, SENT, type(plan.farm).__name__))


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
