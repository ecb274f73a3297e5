"""How long to wait for late rows: fixed, or as late as any has been. Specifications and state.

A strategy is a frozen value; `start()` gives its state, a few numbers. The state watches the
timestamps of a stream and says up to where the stream is complete: the punctuation P, a promise
that rows before P are no longer waited for. P never goes back, and moves only when a timestamp
comes that is greater than all before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from operators.disorder.axis import Amount, Number, amount_of, amount_text, length
from windowlib.errors import PolicyError, suggestion

Delay = Literal["new", "arrival"]


class State:
    """What a strategy knows of one stream.

    Timestamps are numbers; those of datetimes are microseconds.
    """

    def __init__(self) -> None:
        self.top: Number | None = None
        """The greatest timestamp so far."""
        self.punctuation: Number | None = None
        """Up to where the stream is complete; None before the first timestamp."""

    def observe(self, ts: Number) -> Number:
        """Take a timestamp; the punctuation after it."""
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
        """Take an array of timestamps; the punctuation after each, as `observe` would give it."""
        import numpy as np

        ts = np.asarray(ts)
        if not len(ts):
            return ts
        if not self._fits(ts):
            return np.array([self.observe(each) for each in ts.tolist()])
        return self._many(ts)

    def release(self) -> None:
        """Wait no longer for anything before the greatest timestamp."""
        if self.top is not None:
            self.punctuation = self.top

    def _fits(self, ts: Any) -> bool:
        """Whether arithmetic with this array is the same as with its numbers."""
        kind = {"i": int, "f": float}.get(ts.dtype.kind)
        known = (self.top, self.punctuation)
        return kind is not None and all(x is None or type(x) is kind for x in known)

    def _note(self, ts: Number) -> None:
        """A timestamp comes; before it can become the greatest."""

    def _slack(self, ts: Number, before: Number | None) -> Number:
        """How far P stays behind `ts`, which is greater than `before`, the greatest until now."""
        raise NotImplementedError

    def _many(self, ts: Any) -> Any:
        raise NotImplementedError

    def _reached(self, rising: Rising, at_records: Any) -> Any:
        """Move on to the end of an array, given P - or less - at its records."""
        import numpy as np

        if not len(rising.at):
            return np.full(len(rising.record), self.punctuation)
        if self.punctuation is not None:
            at_records = np.maximum(at_records, self.punctuation)
        marks = np.maximum.accumulate(at_records)
        which = np.cumsum(rising.record) - 1
        found = marks[np.maximum(which, 0)]
        if which[0] < 0:
            found[which < 0] = self.punctuation
        self.top, self.punctuation = rising.tops[-1].item(), marks[-1].item()
        return found

    def snapshot(self) -> list[Any]:
        """All of it, as plain data."""
        return [self.top, self.punctuation]

    def restore(self, state: Sequence[Any]) -> None:
        """Take back what `snapshot` gave."""
        self.top, self.punctuation = state


class Rising:
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
        """The distances on the axis of time that it was given."""
        return []

    def start(self) -> State:
        """The state of a new stream."""
        raise NotImplementedError

    def shown(self) -> str:
        """What it does, in words."""
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

    def start(self) -> Fixed:
        """The state of a new stream."""
        return Fixed(length(self.amount))

    def shown(self) -> str:
        """What it does, in words."""
        return f"{amount_text(self.amount)} behind the greatest timestamp"


class Fixed(State):
    """The state of a `FixedSlack`."""

    def __init__(self, amount: Number) -> None:
        super().__init__()
        self._amount = amount

    def _slack(self, ts: Number, before: Number | None) -> Number:
        return self._amount

    def _fits(self, ts: Any) -> bool:
        return super()._fits(ts) and (type(self._amount) is int or ts.dtype.kind == "f")

    def _many(self, ts: Any) -> Any:
        rising = Rising(ts, self.top)
        return self._reached(rising, rising.tops[rising.at] - self._amount)


# -- as late as any has been ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KSlack(Slack):
    """P stays K behind the greatest timestamp, where K is the largest delay that there has been.

    K never shrinks: one straggler costs a long wait for ever after. For that, hardly a row is late.

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

    def start(self) -> Largest:
        """The state of a new stream."""
        return Largest(self.delay)

    def shown(self) -> str:
        """What it does, in words."""
        return f"the largest delay that there has been ({self.delay})"


class Largest(State):
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

    def _fits(self, ts: Any) -> bool:
        return super()._fits(ts) and not (ts.dtype.kind == "i" and type(self.k) is float)

    def _many(self, ts: Any) -> Any:
        rising = Rising(ts, self.top)
        return self._reached(rising, rising.tops[rising.at] - self._largest(ts, rising))

    def _largest(self, ts: Any, rising: Rising) -> Any:
        """K at each record of an array; and K and the smallest at its end."""
        import numpy as np

        at = rising.at
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
        against = rising.tops if self._new else rising.before
        found = np.maximum.accumulate(np.maximum(against[at] - lows, self.k))
        self.k = found[-1].item()
        return found

    def snapshot(self) -> list[Any]:
        """All of it, as plain data."""
        return [*super().snapshot(), self.k, self._low]

    def restore(self, state: Sequence[Any]) -> None:
        """Take back what `snapshot` gave."""
        *base, self.k, self._low = state
        super().restore(base)
