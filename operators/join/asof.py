"""AsOf: each left row with the right row that held at its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from windowlib.durations import Amount, amount_of, length
from windowlib.errors import ModelError
from windowlib.operators.arguments import Columns, Late
from windowlib.operators.join.alignment import Alignment, Backward, Forward, Nearest
from windowlib.operators.join.join_operator import (
    SUFFIXES,
    PairFunction,
    Unmatched,
    check_choice,
)
from windowlib.operators.join.time_join import Slacks, TimeHow, TimeJoin
from windowlib.spec.policies import Attribute

Direction = Literal["backward", "forward", "nearest"]
ALIGNMENTS: dict[str, type[Backward] | type[Forward] | type[Nearest]] = {
    "backward": Backward,
    "forward": Forward,
    "nearest": Nearest,
}


class AsOf(TimeJoin):
    """Puts to each left row the right row of its key that is the latest at its time.

    Both inputs may come out of order and unevenly. Each has a watermark, which its slack keeps
    behind its greatest timestamp. A left row waits until the left watermark has reached it, and
    the right one is past all that could still match better; at the end of an input nothing more
    is waited for there. So the rows are those of an as-of join of the whole, sorted tables, and
    come out in the order of their timestamps, at equal ones of arrival; if it looks forward, in
    that order for each key.

    Of right rows at the same time, "backward" takes the last to arrive, "forward" the first. Null
    equals nothing, and a row whose timestamp is null matches nothing and waits for nothing.

    A row behind the watermark of its input is late. Right rows are forgotten when no left row can
    need them; without `tolerance`, "backward" keeps the last one of each key, and "forward" waits
    for the next of the key, however long that takes.

    Args:
        ts: the timestamp, if it has one name in both inputs. Its values are numbers or datetimes.
        left_ts: the timestamp of left rows, where the names differ.
        right_ts: the timestamp of right rows.
        on: the columns that must be equal; or `left_on` and `right_on`.
        left_on: the key columns of left rows.
        right_on: the key columns of right rows, in the same order.
        direction: "backward": the last right row at or before a left one; "forward": the first at
            or after it; "nearest": the nearer of the two, the one before if they are equally near.
        strict: leave out right rows at the very same time.
        tolerance: how far away the right row may be: a duration, or a number for numbers.
        how: "left": a left row without a match comes out with nulls; "inner": it is dropped;
            "semi", "anti": left rows as they are, if there is a match, or if there is none.
        slack: how long to wait for rows that come out of order: a duration or a number, or one of
            `FixedSlack`, `KSlack`, `QuantileSlack` and `PidSlack`; or a pair, for left and right.
        late: what becomes of a late row: "drop" it; send it to a "port", late_left or late_right;
            or "error". `running.operator.late_rows` counts them.
        suffixes: see `Join`; the timestamp of right rows is a column as any other.
        unmatched: "row", or "port": left rows without a match as they are, on `unmatched_left`.
        select: see `Join`.
        name: what messages and graphs call it.

    >>> from windowlib import replay, to
    >>> rows = [
    ...     to("right", {"k": "A", "ts": 1, "bid": 9.9}),
    ...     to("left", {"k": "A", "ts": 3, "price": 10.0}),
    ...     to("right", {"k": "A", "ts": 3, "bid": 10.1}),
    ...     to("right", {"k": "A", "ts": 4, "bid": 10.2}),
    ... ]
    >>> list(replay(AsOf("ts", on="k"), rows))
    [{'k': 'A', 'ts': 3, 'price': 10.0, 'ts_right': 3, 'bid': 10.1}]
    """

    def __init__(
        self,
        ts: Attribute | None = None,
        *,
        left_ts: Attribute | None = None,
        right_ts: Attribute | None = None,
        on: Columns | None = None,
        left_on: Columns | None = None,
        right_on: Columns | None = None,
        direction: Direction = "backward",
        strict: bool = False,
        tolerance: Amount | str | None = None,
        how: TimeHow = "left",
        slack: Slacks = 0,
        late: Late = "drop",
        suffixes: Sequence[str] = SUFFIXES,
        unmatched: Unmatched = "row",
        select: PairFunction | None = None,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        check_choice(kind, "direction", direction, Direction)
        if not isinstance(strict, bool):
            msg = (
                f"{kind}(strict={strict!r}): say True to leave out right rows at the same time, or "
                f"False."
            )
            raise ModelError(msg)
        far = None
        if tolerance is not None:
            far = amount_of(tolerance, f"{kind}(tolerance={tolerance!r})", "0")
        reach = None if far is None else length(far)
        alignment: Alignment = ALIGNMENTS[direction](strict, reach)
        super().__init__(
            alignment,
            [] if far is None else [("tolerance", far)],
            ts,
            left_ts,
            right_ts,
            on,
            left_on,
            right_on,
            how,
            slack,
            late,
            suffixes,
            unmatched,
            select,
            name,
        )
