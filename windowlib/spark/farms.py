"""Farms on Spark: the tasks of the cluster are the workers.

| farm | plan |
| --- | --- |
| `KeyFarm` | the bucketed plan of every operator, with more buckets than workers |
| `WindowFarm` | buckets send windows; round robin; each task applies the function |
| `PaneFarm`, and `WindowPartition` by time | tasks compute parts of slices where the rows are; \
buckets merge them |
| `WindowPartition` | buckets send pieces of windows; tasks compute parts; tasks merge them |
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import functions as fn
from pyspark.sql.types import BinaryType, DayTimeIntervalType, StructField, StructType

from windowlib.errors import FarmError
from windowlib.farms.farm import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.functions import function_of, reads_twice
from windowlib.farms.models import Slices, TimeWindows, model_of
from windowlib.spark import checks
from windowlib.spark.attach import Attached, Plan
from windowlib.spark.batch import bounds
from windowlib.spark.given import PIECES, SENT, Apply, Compute, Merge, Sender
from windowlib.spark.native import Native, native
from windowlib.spark.paned import AT, PART, Merger, Slice
from windowlib.spark.stages import Results, Stage, number
from windowlib.splitting import names_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIDTH = 96


class AttachedFarm(Attached):
    """A farm that can be called on DataFrames; made by `attach`."""

    def __init__(self, farm: Any, *given: Any, numbered: bool) -> None:
        if numbered and (not isinstance(farm, Farm) or isinstance(farm, KeyFarm)):
            msg = (
                f"attach({farm.name}, numbered=True): buckets send its rows in the order of its "
                f"windows already. Drop it, or use WindowFarm, PaneFarm or WindowPartition."
            )
            raise FarmError(msg)
        super().__init__(farm.operator, *given)
        self.farm, self.numbered = farm, numbered
        self._way: type[Way] = _way(farm)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The DataFrame of the farm's output."""
        way = self._on(frames)
        if way.ordered:
            checks.warn_order(self.operator, self.order_by, way.plan.streaming)
        way.plan.prepare()
        return way.frame()

    def _on(self, frames: Sequence[DataFrame]) -> Way:
        way = self._way(self, Plan(self, frames))
        way.check()
        return way

    def explain(self, *frames: DataFrame) -> str:
        """Which farm it is and why, what its stages do, and how the operator runs."""
        from windowlib.spark.explain import explain

        way = self._on(frames)
        said = [("farm", f"{type(self.farm).__name__}: {self.farm.choice}")]
        said += [(f"stage {n}", text) for n, text in enumerate(way.stages(), 1)]
        lines = [
            line
            for topic, text in said
            for line in textwrap.wrap(
                f"{topic:<12} {text}", WIDTH, subsequent_indent=" " * 13, break_long_words=False
            )
        ]
        return "\n".join([*lines, "", explain(way.plan)])


class Way:
    """How a farm runs on Spark; the base of those that there are."""

    ordered = True
    """Whether the order of rows matters to it."""

    def __init__(self, attached: AttachedFarm, plan: Plan) -> None:
        self.farm, self.plan, self.numbered = attached.farm, plan, attached.numbered
        self.operator, self.workers = plan.operator, attached.farm.workers
        if self.numbered:
            number(plan)

    def check(self) -> None:
        """Refuse what it cannot do."""

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


class ByKey(Way):
    """Buckets are the workers."""

    def __init__(self, attached: AttachedFarm, plan: Plan) -> None:
        super().__init__(attached, plan)
        if plan.attached.buckets is None:  # several for each worker, so that none waits for long
            plan.attached.buckets = max(3 * self.workers, plan.partitions)
            plan.buckets = plan._buckets()

    def frame(self) -> DataFrame:
        """The plan of the operator."""
        return self.plan.frame()

    def stages(self) -> list[str]:
        """What it does."""
        return [f"{len(self.plan.buckets)} buckets, each with the operator for some of the keys"]


class ByWindow(Way):
    """Buckets send windows, and tasks apply the function."""

    def check(self) -> None:
        """Rows are not copied to the tasks of all their windows."""
        if self.farm.active:
            why = "rows would be copied through the shuffle to the tasks of all their windows"
            self.refuse(why, "Use WindowFarm(op, active=False).")

    def frame(self) -> DataFrame:
        """Two stages."""
        sender = Sender(self.operator, self.farm.batch, numbered=self.numbered)
        results = Results(self.plan, self.numbered)
        work = Apply(self.operator, self.plan.inputs[0], results)
        return sent(self, sender).repartition(self.workers).mapInArrow(work, self.plan.output)

    def stages(self) -> list[str]:
        """What it does."""
        many = self.farm.batch
        rows = f", {many} neighbouring windows in a row" if many > 1 else ", a window in a row"
        return [
            f"buckets keep the window, and send what fires with its tuples{rows}",
            f"round robin over {self.workers} tasks, each of which computes the windows it gets",
        ]


class ByPiece(Way):
    """Buckets send pieces of windows, tasks compute them, and tasks merge their results."""

    def check(self) -> None:
        """Tuples are gone when the result of the whole is known."""
        twice(self)

    def frame(self) -> DataFrame:
        """Three stages."""
        sender = Sender(self.operator, pieces=self.farm.parts)
        pieces = sent(self, sender).repartition(self.workers)
        parts = pieces.mapInArrow(Compute(self.operator, self.plan.inputs[0]), PIECES)
        merge = Merge(self.operator, Results(self.plan, self.numbered))
        return parts.repartition(self.workers, PIECES.names[0]).mapInArrow(merge, self.plan.output)

    def stages(self) -> list[str]:
        """What it does."""
        return [
            f"buckets keep the window, and send what fires in {self.farm.parts} pieces",
            f"round robin over {self.workers} tasks, each of which computes the pieces it gets",
            "the results of one window meet in one task, which merges them in their order",
        ]


class BySlice(Way):
    """Tasks compute parts of slices where the rows are, and buckets merge them."""

    ordered = False

    def check(self) -> None:
        """Slices are known from the time of a row alone, and parts come in any order."""
        twice(self)
        if self._time is None:
            why = (
                "its windows count the tuples of a key, which only the place that has the whole "
                "key can do, so no task can tell the pane of a row"
            )
            self.refuse(why, "Use KeyFarm or WindowFarm, or replay the farm in process.")
        if self.plan.attached.key is not None:
            said = f"attach(key={self.plan.attached.key!r}) was said"
            why = f"{said}, and parts have the key of the window"
            self.refuse(why, "Drop key=, or partition the window by these columns.")
        if names_in(self.spec.by) is None:
            why = "the key of its window is a function, and tasks read columns"
            self.refuse(why, "Name a column, which a Functor before it can make.")
        text = in_order(self.operator)
        if text and self._order is not None:
            why = f"{text} depends on the order of rows, and the parts of tasks come in any order"
            fix = "Use KeyFarm or WindowFarm, or say order_by=None if order is of no matter."
            self.refuse(why, fix)

    @property
    def spec(self) -> Any:
        """The window."""
        (spec,) = self.operator.windows
        return spec

    @property
    def _time(self) -> Slices | None:
        """How time is cut, if windows go by time."""
        model = model_of(self.spec)
        if not isinstance(model, TimeWindows):
            return None
        return self.farm.slices if isinstance(self.farm, PaneFarm) else model.pairs()

    @property
    def _order(self) -> Any:
        """What is said of the order of rows; None: it is of no matter."""
        said = self.plan.attached.order_by
        return self.spec.order_by if said is ... else said

    def frame(self) -> DataFrame:
        """Two stages; only the first sees rows."""
        frame, times = self.plan.frames[0], self.plan.attached.times
        if times is not None:
            frame = frame.crossJoin(fn.broadcast(bounds([frame], times)))
        if (native := self._native) is not None:
            return self._merged(native.operator, native.parts(frame))
        slices = self._time if times is not None else None
        cut = Slice(self.operator, self.spec.by, slices, times)
        fields = [frame.schema[name] for name in cut.columns]
        if times is not None:
            fields.append(StructField(AT, DayTimeIntervalType(), True))
        parts = frame.mapInArrow(cut, StructType([*fields, StructField(PART, BinaryType(), True)]))
        return self._merged(Merger(self.operator, self.numbered), parts)

    def _merged(self, merger: Any, parts: DataFrame) -> DataFrame:
        stage = Stage(self.plan, merger, parts, type(self.farm).__name__)
        stage.orders = (None,)
        return (stage if self.plan.attached.times is None else stage.timed_by(AT)).frame()

    @property
    def _native(self) -> Native | None:
        """How Spark itself computes parts, if it can."""
        times, slices = self.plan.attached.times, self._time
        if times is None or slices is None or self.numbered:
            return None
        names = [str(name) for name in names_in(self.spec.by) or ()]
        return native(self.operator, self.plan.frames[0], names, slices, times)

    def stages(self) -> list[str]:
        """What it does."""
        key = ", ".join(map(str, names_in(self.spec.by) or ())) or "none"
        what = "micro-batch" if self.plan.streaming else "slice"
        if self._native is not None:
            return [
                f"Spark's own functions make one row for each key ({key}) and slice",
                "buckets run the window over these rows",
            ]
        return [
            f"each task makes one part for each key ({key}) and {what} of its rows, which stay "
            f"where they are",
            "buckets run the window over the parts, and merge those of the windows that fire",
        ]


def _way(farm: Farm) -> type[Way]:
    if isinstance(farm, KeyFarm):
        return ByKey
    if isinstance(farm, WindowFarm):
        return ByWindow
    (spec,) = farm.operator.windows
    timed = isinstance(model_of(spec), TimeWindows)  # type: ignore[arg-type]
    return ByPiece if isinstance(farm, WindowPartition) and not timed else BySlice


def sent(way: Way, sender: Sender) -> DataFrame:
    """What buckets send, in place of the rows of the operator."""
    name = type(way.farm).__name__
    return Stage(way.plan, sender, way.plan.frames[0], name).sends(SENT).frame()


def twice(way: Way) -> None:
    """Refuse an operator that looks at the tuples again."""
    if reads_twice(way.operator):
        why = "it defines emit_again, and tuples are gone when the result of a window is known"
        way.refuse(why, "Use KeyFarm or WindowFarm, or replay the farm in process.")


def in_order(operator: Any) -> str:
    """The function that depends on the order of rows; "" if none does.

    >>> from operators import Aggregate, agg
    >>> from windowlib import Time, Tumbling
    >>> in_order(Aggregate(Tumbling(Time("1s")), n=agg.count(), x=agg.last("x")))
    'agg.last("x")'
    """
    found = function_of(operator)
    if found.commutative:
        return ""
    named = operator.functions() or ()
    return next((text for text, fold in named if not fold.commutative), found.shown)
