"""Spark's watermark for windows of event time, and as a clock.

A stream's watermark is Spark's own: that of `df.withWatermark`, or one that the plan adds with the
slack of the window. Spark moves it between micro-batches, for all buckets at once, so keys can be
split; and it wakes a bucket whose windows are over, also if no rows come for it. Rows of a static
DataFrame are sorted by event time, so that none is late in any bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from windowlib.durations import Amount, amount_text
from windowlib.errors import HostError, SchemaError
from windowlib.event_time.slack import FixedSlack
from windowlib.event_time.watermark import Watermark
from windowlib.runtime.graph import Graph
from windowlib.runtime.operator import Operator
from windowlib.spark.plan.types import free_name, quoted
from windowlib.spec.specification import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELAY = "spark.watermarkDelayMs"
"""The metadata of a column that has a watermark: its delay."""
COLUMN = "_watermark"
"""The timestamp of a row as Spark's type, where the column has another one."""
WHOLE = (ByteType, ShortType, IntegerType, LongType)
TIMESTAMPS = (TimestampType, TimestampNTZType)
MARKED = (*TIMESTAMPS, DateType, *WHOLE)
"""Types that Spark can have a watermark of."""
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class StreamWatermark:
    """Spark's watermark, as that of an operator's windows."""

    column: str
    delay: int | None
    """How far it stays behind, in milliseconds; None: as the DataFrame says."""
    unit: int
    """The length of a millisecond of Spark's on the axis of the window."""
    text: str
    """A description, for `explain`."""
    seconds: bool = False
    """Whether numbers are seconds, as those of a clock."""

    def with_watermark(self, frame: DataFrame) -> DataFrame:
        """A DataFrame that has the watermark."""
        field = frame.schema[self.column]
        if DELAY in field.metadata:
            return frame
        kind = field.dataType
        if self.seconds and isinstance(kind, NumericType):
            stamp = fn.timestamp_seconds(fn.col(quoted(self.column)))
        else:
            stamp = _timestamp(self.column, kind)
        name = free_name(COLUMN, frame.columns)
        return frame.withColumn(name, stamp).withWatermark(name, f"{self.delay} milliseconds")


def event_window(operator: Operator) -> Spec | None:
    """The only window of an operator, if it is of event time with one watermark for all keys."""
    if isinstance(operator, Graph) or len(operator.windows) != 1:
        return None
    spec = operator.windows[0]
    if spec is None or not spec.event_time:
        return None
    return None if spec.watermark is not None and spec.watermark.scope == "key" else spec


def event_column(spec: Spec) -> str | None:
    """The column with the timestamps of a window of event time; None if it is no column."""
    attribute = None if spec.evict.event is None else spec.evict.event.attribute
    return attribute if isinstance(attribute, str) else None


def stream_watermark(operator: Operator, frame: Any) -> StreamWatermark | None:
    """The watermark of an operator on a stream; None if its windows have to keep their own."""
    spec = event_window(operator)
    if spec is None:
        return None
    column = event_column(spec)
    _check_column(operator, column, frame, "the windows")
    if own_reason(spec, frame):
        return None
    assert column is not None
    kind = frame.schema[column].dataType
    unit = 1 if isinstance(kind, WHOLE) else 1000
    if DELAY in frame.schema[column].metadata:
        delay = frame.schema[column].metadata[DELAY]
        behind = _duration_text(int(delay) * MILLISECOND)
        return StreamWatermark(column, None, unit, f"that of df.withWatermark, {behind}")
    amount = _slack(spec)
    assert amount is not None
    shown = "the slack of the window, " + amount_text(amount).strip('"')
    return StreamWatermark(column, _milliseconds(amount), unit, shown)


def check_clock_type(times: str, frame: Any, types: tuple[type[DataType], ...]) -> None:
    """Refuse a column for `attach(times=...)` whose type is none of these."""
    kind = frame.schema[times].dataType
    if not isinstance(kind, types):
        msg = (
            f"attach(times={times!r}): {kind.simpleString()} is no point in time. Use a column "
            f"with seconds as numbers, or with timestamps."
        )
        raise SchemaError(msg)


def clock_watermark(
    operator: Operator, times: str, said: Watermark | None, frames: Sequence[Any]
) -> StreamWatermark:
    """The watermark that is the clock of an operator on streams.

    Args:
        operator: the operator.
        times: the column with the time of a row.
        said: what `attach(watermark=...)` was given; a DataFrame with a watermark has its own.
        frames: the streams.
    """
    for frame in frames:
        check_clock_type(times, frame, (*TIMESTAMPS, *WHOLE, FloatType, DoubleType))
        _check_column(operator, times, frame, "the clock")
    delays = [frame.schema[times].metadata.get(DELAY) for frame in frames]
    amount = timedelta(0) if said is None else _clock_slack(said)
    texts = [
        f"the slack of attach(watermark=...), {_duration_text(amount)}"
        if delay is None
        else f"that of df.withWatermark, {_duration_text(int(delay) * MILLISECOND)}"
        for delay in delays
    ]
    text = "; ".join(dict.fromkeys(texts))
    return StreamWatermark(times, _milliseconds(amount), 1000, text, seconds=True)


def _clock_slack(said: Watermark) -> timedelta:
    """How far the clock stays behind, as Spark can have it."""
    slack = said.slack
    plain = said.sources is None and said.max_ahead is None and said.scope == "stream"
    if isinstance(slack, FixedSlack) and plain:
        if isinstance(slack.amount, timedelta):
            return slack.amount
        if not slack.amount:
            return timedelta(0)
    msg = (
        f"attach(watermark={said!r}): the clock of a stream is Spark's watermark, which stays "
        f'behind by a fixed time. Say how long, as watermark="5s".'
    )
    raise HostError(msg)


def _duration_text(amount: timedelta) -> str:
    return amount_text(amount).strip('"')


def marked_columns(frame: Any) -> list[str]:
    """The columns of a DataFrame that have a watermark."""
    return [field.name for field in frame.schema if DELAY in field.metadata]


def _check_column(operator: Operator, column: str | None, frame: Any, of: str) -> None:
    """Refuse a DataFrame whose watermark is of another column."""
    marked = marked_columns(frame)
    if marked and column not in marked:
        msg = (
            f"{operator.name}(df): df.withWatermark({marked[0]!r}, ...) is of another column than "
            f"{of}, {column!r}. Use withWatermark({column!r}, ...), or drop it and say "
            f'watermark="5s".'
        )
        raise HostError(msg)


def own_reason(spec: Spec, frame: Any) -> str:
    """Why windows have to keep their own watermark on a stream; empty if they follow Spark's."""
    column = event_column(spec)
    if column is None:
        return "the timestamp is not a column"
    if spec.early is not None:
        return "early= runs on the clock"
    field = frame.schema[column]
    if not isinstance(field.dataType, MARKED):
        return f"Spark has no watermark for {field.dataType.simpleString()}"
    if DELAY in field.metadata:
        return ""
    said = spec.watermark
    if said is not None and (said.sources is not None or said.max_ahead is not None):
        return "sources= and max_ahead= look at each row"
    return "" if _slack(spec) is not None else "its slack looks at each row"


def _slack(spec: Spec) -> Amount | None:
    """The fixed slack of a window; None if it has another one."""
    if spec.watermark is None:
        return 0
    slack = spec.watermark.slack
    return slack.amount if isinstance(slack, FixedSlack) else None


def _milliseconds(amount: Amount) -> int:
    """A slack as Spark counts it, rounded up: never less than what was said."""
    if isinstance(amount, timedelta):
        return -(-amount // MILLISECOND)
    return -int(-amount // 1)


def _timestamp(name: str, kind: DataType) -> Any:
    """A column as timestamps of Spark's, in the same order."""
    column = fn.col(quoted(name))
    if isinstance(kind, TimestampType):
        return column
    if isinstance(kind, WHOLE):
        return fn.timestamp_millis(column)
    days = fn.unix_date(column.cast("date")).cast("long") * 86400
    if isinstance(kind, DateType):
        return fn.timestamp_seconds(days)
    clock = fn.hour(column) * 3600 + fn.minute(column) * 60
    return fn.timestamp_seconds(days + clock + fn.date_part(fn.lit("SECOND"), column))
