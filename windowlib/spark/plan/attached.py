"""An operator with its options on Spark: called on DataFrames, it gives a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.runtime.operator import Operator
from windowlib.spark.deployment import check_server, is_connect, ship
from windowlib.spark.observe.plan_text import explain_plan
from windowlib.spark.plan import validation
from windowlib.spark.plan.query_plan import AttachOptions, QueryPlan, plan_query
from windowlib.spark.plan.spark_windows import aggregated_frame
from windowlib.spark.plan.static import static_frame
from windowlib.spark.plan.streaming import streamed_frame
from windowlib.spark.versions import check_protobuf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Attached:
    """An operator that can be called on DataFrames; made by `attach`."""

    def __init__(self, operator: Operator, options: AttachOptions) -> None:
        self.operator, self.options = operator, options

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The DataFrame of the operator's output."""
        plan = plan_query(self.operator, self.options, frames)
        validation.warn_clock(self.operator, self.options.clock_said, plan.streaming)
        validation.warn_order(self.operator, self.options.order_by, frames, plan.takes_by_time)
        validation.warn_cuts(self.operator, self.options.order_by, frames, plan.takes_by_time)
        prepare_session(plan)
        return frame_of(plan)

    def explain(self, *frames: DataFrame) -> str:
        """How the operator runs on these DataFrames, as text."""
        return explain_plan(plan_query(self.operator, self.options, frames))


def prepare_session(plan: QueryPlan) -> None:
    """Refuse a session that cannot run a plan, and send the package where it is needed."""
    if plan.streaming:
        validation.store_provider(plan.spark)
        check_server(plan.spark)
        if not is_connect(plan.spark):
            check_protobuf()
    ship(plan.spark)


def frame_of(plan: QueryPlan) -> DataFrame:
    """The DataFrame of a plan's output."""
    if plan.options.by_spark:
        return aggregated_frame(plan)
    return streamed_frame(plan) if plan.streaming else static_frame(plan)
