"""How long to wait for late rows: a fixed time, or derived from the delays so far.

A strategy is a frozen value; `start()` gives its state, a few numbers. The state watches the
timestamps of a stream and says up to where the stream is complete: the punctuation P, a promise
that rows before P are no longer waited for. P never goes back, and moves only when a timestamp
comes that is greater than all before it.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, get_args

from windowlib.durations import Amount, Number, amount_of, amount_text, length
from windowlib.errors import PolicyError, suggestion
from windowlib.event_time.axis import Grid

Delay = Literal["new", "arrival"]
FEW_POINTS = 16
"""Up to so many points of a grid that P passes in an array are looked for one by one."""


class SlackState:
    """The state of a strategy for one stream.

    Timestamps are numbers; those of datetimes are microseconds.
    """

    def __init__(self) -> None:
        self.top: Number | None = None
        """The greatest timestamp so far."""
        self.punctuation: Number | None = None
        """Up to where the stream is complete; None before the first timestamp."""

    def observe(self, ts: Number) -> Number:
        """Observe a timestamp; the punctuation P after it."""
        before = self.top
        self._note(ts)
        if before is None or ts > before:
            self.top = ts
            reached = ts - self._slack(ts, before)
            if self.punctuation is None or reached > self.punctuation:
                self.punctuation = reached
        assert self.punctuation is not None
        return self.punctuation

    def observe_many(self, ts: Any) -> Any:
        """Observe an array of timestamps; the punctuation P after each."""
        import numpy as np

        ts = np.asarray(ts)
        if not len(ts):
            return ts
        if not self.fits(ts):
            return np.array([self.observe(each) for each in ts.tolist()])
        return self._many(ts)

    def observe_points(self, ts: Any, grid: Grid) -> tuple[Any, Any]:
        """Observe an array that `fits`; where P reaches points of a grid, and these points."""
        return grid.runs(self._many(ts))

    def release(self) -> None:
        """Raise P to the greatest timestamp."""
        if self.top is not None:
            self.punctuation = self.top

    def fits(self, ts: Any) -> bool:
        """Whether array arithmetic is exact for these timestamps."""
        kind = {"i": int, "f": float}.get(ts.dtype.kind)
        known = (self.top, self.punctuation)
        return kind is not None and all(x is None or type(x) is kind for x in known)

    def _note(self, ts: Number) -> None:
        """Note a timestamp, before it is compared with the greatest."""

    def _slack(self, ts: Number, before: Number | None) -> Number:
        """The distance of P to a new maximum `ts`, where `before` was the maximum."""
        raise NotImplementedError

    def _many(self, ts: Any) -> Any:
        raise NotImplementedError

    def _reached(self, records: RunningMaxima, at_records: Any) -> Any:
        """Move on to the end of an array, given P - or less - at its records."""
        import numpy as np

        if not len(records.at):
            return np.full(len(records.record), self.punctuation)
        if self.punctuation is not None:
            at_records = np.maximum(at_records, self.punctuation)
        marks = np.maximum.accumulate(at_records)
        which = np.cumsum(records.record) - 1
        found = marks[np.maximum(which, 0)]
        if which[0] < 0:
            found[which < 0] = self.punctuation
        self.top, self.punctuation = records.tops[-1].item(), marks[-1].item()
        return found

    def snapshot(self) -> list[Any]:
        """The state as plain data."""
        return [self.top, self.punctuation]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what `snapshot` returned."""
        self.top, self.punctuation = state


class RunningMaxima:
    """Where an array of timestamps rises above all before it."""

    def __init__(self, ts: Any, top: Number | None) -> None:
        import numpy as np

        tops = np.maximum.accumulate(ts)
        self.tops = tops if top is None else np.maximum(tops, top)
        """The greatest timestamp, after each."""
        self.before = np.empty_like(self.tops)
        """The greatest timestamp, before each."""
        self.before[1:] = self.tops[:-1]
        self.before[0] = ts[0] if top is None else top
        self.record = ts > self.before
        """Whether each is the greatest until now."""
        self.record[0] |= top is None
        self.at = np.flatnonzero(self.record)


class Slack:
    """A strategy: how long to wait for late rows."""

    whole = True
    """Whether P is a whole number for whole timestamps."""

    @property
    def amounts(self) -> list[tuple[str, Amount]]:
        """The distances on the axis of time among its arguments, by name."""
        return []

    def start(self) -> SlackState:
        """The state of a new stream."""
        raise NotImplementedError

    def describe(self) -> str:
        """The strategy in words, for `explain`."""
        raise NotImplementedError


# -- a fixed slack --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FixedSlack(Slack):
    """P stays a fixed distance behind the greatest timestamp.

    Args:
        amount: a duration for datetimes, as "5s"; a number for numbers.

    >>> state = FixedSlack(5).start()
    >>> [state.observe(ts) for ts in (10, 12, 8, 20)]
    [5, 7, 7, 15]
    """

    amount: Amount = field()

    def __init__(self, amount: Amount | str) -> None:
        object.__setattr__(self, "amount", amount_of(amount, f"FixedSlack({amount!r})", "0"))

    def __repr__(self) -> str:
        return f"FixedSlack({amount_text(self.amount)})"

    @property
    def amounts(self) -> list[tuple[str, Amount]]:
        """The slack."""
        return [("slack", self.amount)]

    def start(self) -> FixedState:
        """The state of a new stream."""
        return FixedState(length(self.amount))

    def describe(self) -> str:
        """The strategy in words, for `explain`."""
        return f"{amount_text(self.amount)} behind the greatest timestamp"


class FixedState(SlackState):
    """The state of a `FixedSlack`."""

    def __init__(self, amount: Number) -> None:
        super().__init__()
        self._amount = amount

    def _slack(self, ts: Number, before: Number | None) -> Number:
        amount = self._amount
        if isinstance(ts, Decimal) and isinstance(amount, float):
            return Decimal(repr(amount))
        return float(amount) if isinstance(ts, float) and isinstance(amount, Decimal) else amount

    def fits(self, ts: Any) -> bool:
        """Whether array arithmetic is exact for these timestamps."""
        kind = type(self._amount)
        return super().fits(ts) and (kind is int or (kind is float and ts.dtype.kind == "f"))

    def _many(self, ts: Any) -> Any:
        import numpy as np

        tops = np.maximum.accumulate(ts)
        if self.top is not None and self.top > ts[0]:
            np.maximum(tops, self.top, out=tops)
        found = tops - self._amount
        if self.punctuation is not None and self.punctuation > found[0]:
            np.maximum(found, self.punctuation, out=found)
        self.top, self.punctuation = tops[-1].item(), found[-1].item()
        return found

    def observe_points(self, ts: Any, grid: Grid) -> tuple[Any, Any]:
        """Observe an array that `fits`; where P reaches points of a grid, and these points."""
        import numpy as np

        behind, top = ts - self._amount, ts.max().item()
        known = behind[0].item() if self.punctuation is None else self.punctuation
        first, last = max(known, behind[0].item()), max(known, top - self._amount)
        low, high = grid.index(first), grid.index(last)
        if high - low > FEW_POINTS:
            return super().observe_points(ts, grid)
        self.top, self.punctuation = top if self.top is None else max(self.top, top), last
        at, points, place = [0], [low], 0
        later = range(low + 1, high + 1)
        for k, edge in zip(later, grid.edges(np.array(later), ts.dtype.kind), strict=True):
            place += int((behind[place:] >= edge).argmax())
            if place > at[-1]:
                at.append(place)
                points.append(k)
            points[-1] = k
        return np.array(at), np.array(points)


# -- as late as any has been ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KSlack(Slack):
    """P stays K behind the greatest timestamp, where K is the largest delay that there has been.

    K never shrinks: after one straggler every wait is long. For that, hardly a row is late.

    Args:
        delay: what the delay of a row is measured against, whenever the greatest timestamp moves:
            "new" is the one that it moves to, "arrival" the one that was there when the row came.
            "new" waits longer, by the step, and has fewer late rows.

    >>> state = KSlack().start()
    >>> [state.observe(ts) for ts in (10, 12, 11, 15, 13, 9, 20, 14, 21, 30, 22, 31)]
    [10, 12, 12, 12, 12, 12, 12, 12, 12, 19, 19, 20]
    """

    delay: Delay = "new"

    def __post_init__(self) -> None:
        known = get_args(Delay)
        if self.delay not in known:
            near = suggestion(self.delay, known)
            raise PolicyError(f'KSlack(delay={self.delay!r}): use "new" or "arrival".{near}')

    def start(self) -> LargestState:
        """The state of a new stream."""
        return LargestState(self.delay)

    def describe(self) -> str:
        """The strategy in words, for `explain`."""
        return f"the largest delay that there has been ({self.delay})"


class LargestState(SlackState):
    """The state of a `KSlack`."""

    def __init__(self, delay: Delay) -> None:
        super().__init__()
        self._new = delay == "new"
        self.k: Number = 0
        """The largest delay."""
        self._low: Number | None = None  # the smallest since the greatest one moved

    def _note(self, ts: Number) -> None:
        if self._low is None or ts < self._low:
            self._low = ts

    def _slack(self, ts: Number, before: Number | None) -> Number:
        low, self._low = self._low, None
        against = ts if self._new or before is None else before
        if low is not None and against - low > self.k:
            self.k = against - low
        return self.k

    def fits(self, ts: Any) -> bool:
        """Whether array arithmetic is exact for these timestamps."""
        return super().fits(ts) and not (ts.dtype.kind == "i" and type(self.k) is float)

    def _many(self, ts: Any) -> Any:
        records = RunningMaxima(ts, self.top)
        return self._reached(records, records.tops[records.at] - self._largest(ts, records))

    def _largest(self, ts: Any, records: RunningMaxima) -> Any:
        """K at each record of an array; and K and the smallest at its end."""
        import numpy as np

        at = records.at
        rest = ts if not len(at) else ts[at[-1] + 1 :]
        low = self._low
        self._low = rest.min().item() if len(rest) else None
        if not len(at):
            if low is not None and self._low is not None:
                self._low = min(low, self._low)
            return at
        starts = np.concatenate(([0], at[:-1] + 1))
        lows = np.minimum.reduceat(ts[: at[-1] + 1], starts)
        if low is not None:
            lows[0] = min(low, lows[0])
        against = records.tops if self._new else records.before
        found = np.maximum.accumulate(np.maximum(against[at] - lows, self.k))
        self.k = found[-1].item()
        return found

    def snapshot(self) -> list[Any]:
        """The state as plain data."""
        return [*super().snapshot(), self.k, self._low]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what `snapshot` returned."""
        *base, self.k, self._low = state
        super().restore(base)


# -------------------------------------------------------------------------------------------------
# Slack that adapts: to a share of rows that may be late.


def _check_share(owner: str, drop: object) -> None:
    if isinstance(drop, bool) or not isinstance(drop, int | float) or not 0 <= drop < 1:
        msg = f"{owner}(drop={drop!r}): not a share of rows. Use 0 to less than 1, as drop=0.01."
        raise PolicyError(msg)


def _check_rows(owner: str, argument: str, rows: object) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        msg = f"{owner}({argument}={rows!r}): not a number of rows. Use 1 or more, as 500."
        raise PolicyError(msg)


# -- quantile -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuantileSlack(Slack):
    """P stays behind the greatest timestamp as far as most of the recent rows were late.

    The lateness of a row is how far it is behind the greatest timestamp when it comes, 0 for those
    that are in order. The slack is the (1 - drop)-quantile of the lateness of the recent rows. It
    is taken anew after every `recent // 50` rows, and at first after 1, 2, 4, 8, ... rows; so the
    result does not depend on how rows come in batches. A straggler is forgotten.

    Args:
        drop: the share of rows that may be late.
        recent: of how many rows the lateness is kept.

    >>> state = QuantileSlack(drop=0.1, recent=4).start()
    >>> [state.observe(ts) for ts in (10, 20, 17, 30, 40, 50, 60)]
    [10, 20, 20, 27, 37, 47, 60]
    """

    drop: float = 0.01
    recent: int = 5000

    def __post_init__(self) -> None:
        _check_share("QuantileSlack", self.drop)
        _check_rows("QuantileSlack", "recent", self.recent)

    def start(self) -> QuantileState:
        """The state of a new stream."""
        return QuantileState(self.drop, self.recent)

    def describe(self) -> str:
        """The strategy in words, for `explain`."""
        return f"so that {self.drop:.3g} of the last {self.recent} rows would be late"


class QuantileState(SlackState):
    """The state of a `QuantileSlack`."""

    def __init__(self, drop: float, recent: int) -> None:
        super().__init__()
        self._drop, self._every = drop, max(1, recent // 50)
        self._lateness: deque[Number] = deque(maxlen=recent)
        self._seen = 0
        self._k: Number = 0

    def _due(self, seen: int) -> bool:
        early = seen < self._every and not seen & (seen - 1)
        return early or seen % self._every == 0

    def _spared(self, size: int) -> int:
        """How many of the latest rows may be dropped."""
        return math.floor(self._drop * size)

    def _note(self, ts: Number) -> None:
        lateness = 0 if self.top is None or ts > self.top else self.top - ts
        self._lateness.append(lateness)
        self._seen += 1
        if self._due(self._seen):
            spared = self._spared(len(self._lateness))
            # The few largest are found faster than all are sorted.
            few = spared < len(self._lateness) // 8
            ranked = (
                heapq.nlargest(spared + 1, self._lateness)
                if few
                else sorted(self._lateness, reverse=True)
            )
            self._k = ranked[spared]

    def _slack(self, ts: Number, before: Number | None) -> Number:
        return self._k

    def fits(self, ts: Any) -> bool:
        """Whether array arithmetic is exact for these timestamps."""
        if ts.dtype.kind == "i" and any(type(each) is float for each in self._lateness):
            return False  # the numbers have changed their type on the way
        return super().fits(ts)

    def _many(self, ts: Any) -> Any:
        import numpy as np

        records = RunningMaxima(ts, self.top)
        old = np.fromiter(self._lateness, ts.dtype, len(self._lateness))
        every = np.concatenate((old, np.maximum(records.before - ts, 0)))
        steps, ks = [0], [self._k]
        most = self._lateness.maxlen or 0
        for number in self._dues(len(ts)):
            end = len(old) + number
            window = every[max(0, end - most) : end]
            place = len(window) - 1 - self._spared(len(window))
            steps.append(number - 1)  # it holds for the row itself
            ks.append(np.partition(window, place)[place].item())
        self._k = ks[-1]
        self._seen += len(ts)
        self._lateness.extend(every[len(old) :].tolist())
        which = np.searchsorted(np.array(steps[1:]), records.at, side="right")
        slack = np.array(ks, ts.dtype)[which]
        return self._reached(records, records.tops[records.at] - slack)

    def _dues(self, size: int) -> list[int]:
        """After which rows of a batch the quantile is due, counted from 1."""
        end = self._seen + size
        found = {1 << bit for bit in range(self._every.bit_length()) if 1 << bit < self._every}
        found |= set(range(self._every * (self._seen // self._every + 1), end + 1, self._every))
        return sorted(seen - self._seen for seen in found if self._seen < seen <= end)

    def snapshot(self) -> list[Any]:
        """The state as plain data."""
        return [*super().snapshot(), list(self._lateness), self._seen, self._k]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what `snapshot` returned."""
        *base, lateness, self._seen, self._k = state
        self._lateness = deque(lateness, maxlen=self._lateness.maxlen)
        super().restore(base)


# -- controlled -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PidSlack(Slack):
    """P stays a part of K behind the greatest timestamp, with K as of `KSlack("new")`.

    A controller moves the part, from 0 to all of K, so that the share of late rows meets a target.
    It looks at the share among the last rows, `every` so many. It adds up changes and keeps the
    part within bounds, so that nothing winds up while a bound holds it. K never shrinks, so after
    a straggler small steps of the part are long steps of P; `QuantileSlack` settles sooner.

    Args:
        drop: the share of rows that may be late.
        every: after how many rows the controller acts.
        gains: of the change of the error, of the error, and of the change of its change.

    >>> PidSlack(drop=0.02)
    PidSlack(drop=0.02, every=100, gains=(0.2, 0.2, 0.05))
    """

    drop: float = 0.01
    every: int = 100
    gains: tuple[float, float, float] = (0.2, 0.2, 0.05)

    def __post_init__(self) -> None:
        _check_share("PidSlack", self.drop)
        _check_rows("PidSlack", "every", self.every)
        gains = self.gains
        right = isinstance(gains, tuple) and len(gains) == 3
        if not right or not all(isinstance(g, int | float) and 0 <= g < math.inf for g in gains):
            msg = (
                f"PidSlack(gains={gains!r}): not three gains. Use numbers from 0 on, as "
                f"gains=(0.2, 0.2, 0.05)."
            )
            raise PolicyError(msg)

    def start(self) -> PidState:
        """The state of a new stream."""
        return PidState(self)

    def describe(self) -> str:
        """The strategy in words, for `explain`."""
        return f"a part of the largest delay, controlled so that {self.drop:.3g} of rows are late"


class PidState(LargestState):
    """The state of a `PidSlack`."""

    def __init__(self, spec: PidSlack) -> None:
        super().__init__("new")
        self._spec = spec
        self.part = 1.0
        """How much of K is waited for."""
        self._seen = self._late = 0  # since the controller acted
        self._errors = (0.0, 0.0)  # the last one, and the one before

    def observe(self, ts: Number) -> Number:
        """Observe a timestamp; the punctuation P after it."""
        self._late += self.punctuation is not None and ts < self.punctuation
        found = super().observe(ts)
        self._seen += 1
        if self._seen == self._spec.every:
            self._act()
        return found

    def _act(self) -> None:
        last, before = self._errors
        error = self._late / self._seen - self._spec.drop
        change, rate, bend = self._spec.gains
        step = change * (error - last) + rate * error + bend * (error - 2 * last + before)
        self.part = min(1.0, max(0.0, self.part + step))
        self._errors = error, last
        self._seen = self._late = 0

    def _slack(self, ts: Number, before: Number | None) -> Number:
        k = super()._slack(ts, before)
        if type(k) is int:
            return math.ceil(self.part * k)
        return Decimal(self.part) * k if isinstance(k, Decimal) else self.part * k

    def _many(self, ts: Any) -> Any:
        """Piece by piece, because the part changes in between."""
        import numpy as np

        pieces = []
        start = 0
        while start < len(ts):
            piece = ts[start : start + self._spec.every - self._seen]
            pieces.append(self._piece(piece))
            self._seen += len(piece)
            self._late += int((piece < pieces[-1]).sum())
            if self._seen == self._spec.every:
                self._act()
            start += len(piece)
        return np.concatenate(pieces)

    def _piece(self, ts: Any) -> Any:
        import numpy as np

        records = RunningMaxima(ts, self.top)
        slack = self.part * self._largest(ts, records)
        if ts.dtype.kind == "i":
            slack = np.ceil(slack).astype(np.int64)
        return self._reached(records, records.tops[records.at] - slack)

    def snapshot(self) -> list[Any]:
        """The state as plain data."""
        return [*super().snapshot(), self.part, self._seen, self._late, list(self._errors)]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what `snapshot` returned."""
        *base, self.part, self._seen, self._late, errors = state
        self._errors = errors[0], errors[1]
        super().restore(base)
