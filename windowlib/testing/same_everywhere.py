"""One operator, one case, one answer: in plain Python, in batches, restarted, farmed, on Spark.

>>> from windowlib.operators import Aggregate, agg
>>> from windowlib import Count, Sliding
>>> high = Aggregate(Sliding(Count(3), every=Count(2)), high=agg.max("x"))
>>> report = assert_same_everywhere(high, [{"x": x} for x in (3, 1, 4, 1, 5, 9, 2, 6)])
>>> "batches of 3" in report.ran, "PaneFarm" in report.ran
(True, True)
>>> print(report.left_out["KeyFarm"].partition(".")[0])
KeyFarm(Aggregate): no column keeps its rows apart, so one worker must see them all
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windowlib.errors import OperatorError
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import items_of, ordered_input
from windowlib.spec.policies import Attribute
from windowlib.testing.comparison import Same, first_difference, item_text, within_tolerance
from windowlib.testing.executions import (
    Case,
    Execution,
    NotApplicable,
    OutputItems,
    as_arrow,
    batch_executions,
    farm_executions,
    row_by_row,
    row_executions,
    sorted_by_key,
    spark_execution,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = "plain Python, row by row"


@dataclass
class Report:
    """The executions that gave the same rows, and those that do not apply, with the reason."""

    ran: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    """How many rows, and punctuations, came out each time."""

    def __str__(self) -> str:
        lines = [f"{self.rows} rows, the same in {len(self.ran)} ways"]
        lines += [f"  {name}" for name in self.ran]
        lines += [f"  not: {name}: {reason}" for name, reason in self.left_out.items()]
        return "\n".join(lines)


def assert_same_everywhere(
    operator: Operator,
    rows: Iterable[Any],
    *,
    times: Attribute | None = None,
    batches: bool = True,
    restarts: bool = True,
    farms: bool = True,
    spark: SparkSession | None = None,
    tolerance: float = 1e-9,
) -> Report:
    """Run an operator in every way that applies, and compare each with plain Python, row by row.

    Values have to be the same to the type. The report says which ways were compared, and why the
    others were not.

    Args:
        operator: an operator, or a `Graph`.
        rows: the rows, with marks among them; where the window says `order_by`, they are put in
            that order first.
        times: the column that says when a row arrives.
        batches: whether Arrow batches, cut in several ways, are among the ways.
        restarts: whether saving and restoring is, before every item and at single ones.
        farms: whether the farms that fit are, on workers in virtual time.
        spark: a session; then a static DataFrame is, too.
        tolerance: by how much floats may differ, relative to their size.
    """
    __tracebackhide__ = True
    if not isinstance(operator, Operator):
        msg = (
            f"assert_same_everywhere({operator!r}, ...): not an operator. Pass an Operator object."
        )
        raise OperatorError(msg)
    items = list(items_of(list(ordered_input(operator.order_by, rows))))
    case = Case(operator, items, times)
    check = Check(operator, within_tolerance(tolerance), Report())
    expected = row_by_row(case)
    check.report.rows = len(expected)
    for execution in row_executions(case, restarts=restarts):
        check(execution, expected)
    if batches or farms or spark is not None:
        _compare_columnar(check, case, expected, batches, restarts, farms, spark)
    return check.report


def _compare_columnar(
    check: Check,
    case: Case,
    expected: OutputItems,
    batches: bool,
    restarts: bool,
    farms: bool,
    spark: SparkSession | None,
) -> None:
    """Compare the executions on columns with the rows as columns hold them."""
    try:
        arrow_case = as_arrow(case)
    except NotApplicable as reason:
        wanted = {"batches": batches, "farms": farms, "Spark": spark is not None}
        check.report.left_out |= {name: str(reason) for name, is_ in wanted.items() if is_}
        return
    rows = arrow_case.rows()
    if repr(rows.items) != repr(case.items):
        expected = row_by_row(rows)
    if batches:
        for execution in batch_executions(arrow_case, restarts=restarts):
            check(execution, expected)
    if farms:
        for execution in farm_executions(rows, restarts=restarts):
            by_key = execution.name.startswith("KeyFarm")
            check(
                execution, expected, (lambda found: sorted_by_key(rows, found)) if by_key else None
            )
    if spark is not None:
        check(*spark_execution(spark, arrow_case, expected))


@dataclass
class Check:
    """Compares executions with the expected output."""

    operator: Operator
    same: Same
    report: Report

    def __call__(
        self,
        execution: Execution,
        expected: OutputItems,
        grouped: Callable[[OutputItems], OutputItems] | None = None,
    ) -> None:
        """Run an execution, and raise if its output differs."""
        __tracebackhide__ = True
        try:
            got = execution.run()
        except NotApplicable as reason:
            self.report.left_out[execution.name] = str(reason)
            return
        except Exception as error:
            msg = (
                f"{self.operator!r} is not the same everywhere: {execution.name} raised "
                f"{type(error).__name__}: {error}"
            )
            raise AssertionError(msg) from error
        if grouped is not None and first_difference(expected, got, self.same) is not None:
            expected, got = grouped(expected), grouped(got)
        place = first_difference(expected, got, self.same)
        if place is not None:
            raise AssertionError(self._message(execution.name, expected, got, place))
        self.report.ran.append(execution.name)

    def _message(self, name: str, expected: OutputItems, got: OutputItems, place: int) -> str:
        width = max(len(name), len(PLAIN))
        port = (expected if place < len(expected) else got)[place][0]
        ports = len(self.operator.model.outputs) > 1
        ours, theirs = ([output_text(item, ports) for item in items] for items in (expected, got))
        return "\n".join(
            [
                f"{self.operator!r} is not the same everywhere: {name} differs at row {place + 1} "
                f"of what comes out (output {port!r}).",
                f"  {PLAIN:<{width}}  {_at(ours, place)}  ({len(ours)} in all)",
                f"  {name:<{width}}  {_at(theirs, place)}  ({len(theirs)} in all)",
                f"The same in {len(self.report.ran)} ways before: "
                f"{', '.join(self.report.ran) or 'none'}.",
            ]
        )


def output_text(item: tuple[str, Any], ports: bool) -> str:
    """A row that came out, with its output if there are several."""
    return f"{item[0]} {item_text(item[1])}" if ports else item_text(item[1])


def _at(texts: list[str], place: int) -> str:
    return texts[place] if place < len(texts) else "nothing"
