"""IntervalJoin: each left row with all right rows that are close in time."""

from __future__ import annotations

from collections.abc import Sequence

from windowlib.durations import Amount, amount_of, length
from windowlib.operators.arguments import Columns, Late
from windowlib.operators.join.alignment import Interval
from windowlib.operators.join.join_operator import SUFFIXES, PairFunction, Unmatched
from windowlib.operators.join.time_join import Slacks, TimeHow, TimeJoin
from windowlib.spec.policies import Attribute


class IntervalJoin(TimeJoin):
    """Puts to each left row all right rows of its key from `before` before it to `after` after it.

    Both ends are included. It waits for both inputs as `AsOf` does, and so gives the rows of a
    range join of the whole tables: left rows in the order of their timestamps, the matches of each
    in the order of theirs, at equal ones of arrival. `Join(within=...)` matches what its windows
    hold when a row comes, and does not wait.

    Args:
        ts: the timestamp, if it has one name in both inputs; or `left_ts` and `right_ts`.
        before: how far right rows may be before a left one: a duration, or a number for numbers.
        after: how far they may be after it.
        left_ts: the timestamp of left rows, where the names differ.
        right_ts: the timestamp of right rows.
        on: the columns that must be equal; or `left_on` and `right_on`.
        left_on: the key columns of left rows.
        right_on: the key columns of right rows, in the same order.
        how: as in `AsOf`, as are all others; the default is "inner".
        slack: see `AsOf`.
        late: see `AsOf`.
        suffixes: see `Join`.
        unmatched: see `AsOf`.
        select: see `Join`.
        name: what messages and graphs call it.

    >>> from windowlib import replay, to
    >>> join = IntervalJoin("ts", before=0, after=2, select=lambda l, r: (l["ts"], r["ts"]))
    >>> rows = [to("left", {"ts": 1}), *(to("right", {"ts": ts}) for ts in (1, 2, 3, 4))]
    >>> list(replay(join, rows))
    [(1, 1), (1, 2), (1, 3)]
    """

    def __init__(
        self,
        ts: Attribute | None = None,
        *,
        before: Amount | str,
        after: Amount | str,
        left_ts: Attribute | None = None,
        right_ts: Attribute | None = None,
        on: Columns | None = None,
        left_on: Columns | None = None,
        right_on: Columns | None = None,
        how: TimeHow = "inner",
        slack: Slacks = 0,
        late: Late = "drop",
        suffixes: Sequence[str] = SUFFIXES,
        unmatched: Unmatched = "row",
        select: PairFunction | None = None,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        low = amount_of(before, f"{kind}(before={before!r})", "0")
        high = amount_of(after, f"{kind}(after={after!r})", "0")
        super().__init__(
            Interval(length(low), length(high)),
            [("before", low), ("after", high)],
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
