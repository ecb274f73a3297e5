"""One operator, one stream, one answer: in plain Python, in batches, restarted, farmed, on Spark.

>>> from operators import Aggregate, agg
>>> from windowlib import Count, Sliding
>>> high = Aggregate(Sliding(Count(3), every=Count(2)), high=agg.max("x"))
>>> report = assert_same_everywhere(high, [{"x": x} for x in (3, 1, 4, 1, 5, 9, 2, 6)])
>>> "batches of 3" in report.ran, "PaneFarm" in report.ran
(True, True)
>>> print(report.left_out["KeyFarm"].partition(".")[0])
KeyFarm(Aggregate): no column keeps its rows apart, so one worker must see them all
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windowlib.errors import OperatorError
from windowlib.marks import Mark
from windowlib.operator import Operator
from windowlib.policies import Attribute
from windowlib.replay import _chunks, _is_row, _ordered
from windowlib.testing.comparing import Same, first_difference, near, shown
from windowlib.testing.ways import (
    LeftOut,
    Sent,
    Stream,
    Way,
    _row,
    as_arrow,
    batch_ways,
    farm_ways,
    plain,
    row_ways,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = "plain Python, row by row"


@dataclass
class Report:
    """Which ways gave the same, and which do not apply to this operator or these rows."""

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
    items = [item for chunk in _chunks(list(_ordered(operator, rows))) for item in chunk]
    stream = Stream(operator, items, times)
    check = Check(operator, near(tolerance), Report())
    expected = plain(stream)
    check.report.rows = len(expected)
    for way in row_ways(stream, restarts=restarts):
        check(way, expected)
    if batches or farms or spark is not None:
        _with_arrow(check, stream, expected, batches, restarts, farms, spark)
    return check.report


def _with_arrow(
    check: Check,
    stream: Stream,
    expected: Sent,
    batches: bool,
    restarts: bool,
    farms: bool,
    spark: SparkSession | None,
) -> None:
    """The ways that take columns, compared with rows as columns have them."""
    try:
        arrowed = as_arrow(stream)
    except LeftOut as reason:
        wanted = {"batches": batches, "farms": farms, "Spark": spark is not None}
        check.report.left_out |= {name: str(reason) for name, is_ in wanted.items() if is_}
        return
    rows = arrowed.rows()
    if repr(rows.items) != repr(stream.items):
        expected = plain(rows)
    if batches:
        for way in batch_ways(arrowed, restarts=restarts):
            check(way, expected)
    if farms:
        for way in farm_ways(rows, restarts=restarts):
            by_key = way.name.startswith("KeyFarm")
            check(way, expected, (lambda found: in_keys(rows, found)) if by_key else None)
    if spark is not None:
        from windowlib.testing.sparks import spark_way

        check(*spark_way(spark, arrowed, expected))


@dataclass
class Check:
    """Compares ways with what they should give."""

    operator: Operator
    same: Same
    report: Report

    def __call__(
        self, way: Way, expected: Sent, grouped: Callable[[Sent], Sent] | None = None
    ) -> None:
        """Run one, and raise if it gives something else."""
        __tracebackhide__ = True
        try:
            got = way.run()
        except LeftOut as reason:
            self.report.left_out[way.name] = str(reason)
            return
        except Exception as error:
            msg = (
                f"{self.operator!r} is not the same everywhere: {way.name} raised "
                f"{type(error).__name__}: {error}"
            )
            raise AssertionError(msg) from error
        if grouped is not None and first_difference(expected, got, self.same) is not None:
            expected, got = grouped(expected), grouped(got)
        place = first_difference(expected, got, self.same)
        if place is not None:
            raise AssertionError(self._message(way.name, expected, got, place))
        self.report.ran.append(way.name)

    def _message(self, name: str, expected: Sent, got: Sent, place: int) -> str:
        width = max(len(name), len(PLAIN))
        port = (expected if place < len(expected) else got)[place][0]
        ports = len(self.operator.model.outputs) > 1
        ours, theirs = ([shown_item(item, ports) for item in items] for items in (expected, got))
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


def shown_item(item: tuple[str, Any], ports: bool) -> str:
    """A row that came out, with its output if there are several."""
    return f"{item[0]} {shown(item[1])}" if ports else shown(item[1])


def _at(texts: list[str], place: int) -> str:
    return texts[place] if place < len(texts) else "nothing"


# -- rows whose order is fixed within a key only --------------------------------------------------


def in_keys(stream: Stream, found: Sent) -> Sent:
    """What came out, key by key: for hosts where time and the end come to each key on its own.

    Rows of no key that came in are left out: those of empty windows, which fire in every place.
    Without the key in the rows that come out, all of them are put in one order, by their texts.
    """
    columns = stream.operator.splits_by(0) or ()
    rows = [(port, item) for port, item in found if not isinstance(item, Mark)]
    if not columns or not all(_has(item, columns) for _, item in rows):
        return sorted(rows, key=repr)
    came = {_key(_row(item), columns) for item in stream.items if _is_row(item)}
    kept = [each for each in rows if _key(each[1], columns) in came]
    return sorted(kept, key=lambda each: (_key(each[1], columns), each[0]))


def _has(item: Any, columns: tuple[str, ...]) -> bool:
    return isinstance(item, Mapping) and all(name in item for name in columns)


def _key(item: Any, columns: tuple[str, ...]) -> str:
    return repr([item.get(name) if isinstance(item, Mapping) else None for name in columns])
