"""Watermarks: up to where a stream is complete, so that windows that end there may close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal, get_args

from windowlib.attributes import Getter, one_key
from windowlib.durations import (
    Amount,
    Number,
    amount_of,
    amount_text,
    check_amounts,
    length,
    stable_amount,
)
from windowlib.errors import PolicyError, suggestion
from windowlib.event_time.slack import FixedSlack, Slack, SlackState
from windowlib.spec.policies import Attribute, attribute_text, check_attribute

Scope = Literal["stream", "key"]


@dataclass(frozen=True, slots=True, repr=False)
class Watermark:
    """How far a stream is complete: rows before the watermark are no longer waited for.

    It follows the greatest timestamp at a distance, the slack, and never goes back.

    Args:
        slack: how long to wait: a duration or a number, or one of `FixedSlack`, `KSlack`,
            `QuantileSlack` and `PidSlack`. 0 unless given: rows are expected in order.
        sources: the column that says where a row comes from. Each source has a slack of its own,
            and the watermark is the least of theirs.
        idle: a source whose greatest timestamp is further than this behind the greatest of all
            does not hold the others back. Measured in event time, so that a backfill does as the
            live stream does. With scope="key" it also closes the windows of keys that are that far
            behind, and such keys are forgotten.
        max_ahead: a row that is further than this ahead of all before it does not move the
            watermark, unless the next row of the source is as far ahead: then the stream has moved
            on, to the earlier of the two.
        scope: "stream": one watermark for all keys, so that those without rows close as well;
            "key": one for each key of the window, which only its own rows move.

    >>> Watermark("5s", sources="host", idle="1min")
    Watermark("5s", sources='host', idle="1m")
    """

    slack: Slack
    sources: Attribute | None
    idle: Amount | None
    max_ahead: Amount | None
    scope: Scope

    def __init__(
        self,
        slack: Slack | Amount | str = 0,
        *,
        sources: Attribute | None = None,
        idle: Amount | str | None = None,
        max_ahead: Amount | str | None = None,
        scope: Scope = "stream",
    ) -> None:
        strategy = _slack_of(slack)
        if sources is not None:
            check_attribute(sources, "Watermark(sources={attribute!r})", 'sources="host"')
        apart = _amount("idle", idle)
        ahead = _amount("max_ahead", max_ahead)
        if scope not in get_args(Scope):
            near = suggestion(scope, get_args(Scope))
            raise PolicyError(f'Watermark(scope={scope!r}): say "stream" or "key".{near}')
        if apart is not None and sources is None and scope == "stream":
            msg = (
                f"Watermark(idle={idle!r}): without sources there is nothing that it could hold "
                f'back. Name the column, as sources="host", or drop `idle=`.'
            )
            raise PolicyError(msg)
        given = {"slack": strategy, "sources": sources, "idle": apart, "max_ahead": ahead}
        for name, value in {**given, "scope": scope}.items():
            object.__setattr__(self, name, value)
        check_amounts("Watermark(...)", self.amounts, PolicyError)

    @property
    def amounts(self) -> list[tuple[str, Amount]]:
        """The distances on the axis of time among its arguments, by name."""
        more = [("idle", self.idle), ("max_ahead", self.max_ahead)]
        return [*self.slack.amounts, *((name, each) for name, each in more if each is not None)]

    def start(self) -> Progress:
        """The state of a new stream."""
        return Progress(self)

    @property
    def stable_text(self) -> str:
        """The watermark as text that is the same in every process."""
        named = self.sources
        shown = f"<{attribute_text(named)}>" if callable(named) else repr(named)
        return self._call(shown, stable_amount)

    def _call(self, sources: str, text: Any) -> str:
        fixed = isinstance(self.slack, FixedSlack)
        parts = [
            text(self.slack.amount) if isinstance(self.slack, FixedSlack) else repr(self.slack)
        ]
        parts = [] if fixed and not self.slack.amounts[0][1] else parts
        parts += [] if self.sources is None else [f"sources={sources}"]
        parts += [] if self.idle is None else [f"idle={text(self.idle)}"]
        parts += [] if self.max_ahead is None else [f"max_ahead={text(self.max_ahead)}"]
        parts += [] if self.scope == "stream" else [f"scope={self.scope!r}"]
        return f"Watermark({', '.join(parts)})"

    def __repr__(self) -> str:
        return self._call(repr(self.sources), amount_text)

    def describe(self) -> str:
        """The watermark in words, for `explain`."""
        text = self.slack.describe()
        if self.sources is not None:
            text += f", the least over {attribute_text(self.sources)!r}"
        if self.idle is not None:
            whose = "those" if self.sources is not None else "keys"
            text += f" but for {whose} {amount_text(self.idle)} behind"
        if self.max_ahead is not None:
            text += f", not moved by a row {amount_text(self.max_ahead)} ahead"
        return text + (", for each key" if self.scope == "key" else "")


def watermark_of(value: object, owner: str) -> Watermark:
    """The watermark of an argument: a `Watermark`, a slack, or how long to wait.

    >>> watermark_of("5s", 'Tumbling(watermark="5s")')
    Watermark("5s")
    """
    if isinstance(value, Watermark):
        return value
    usable = isinstance(value, Slack | int | float | Decimal | timedelta | str)
    if isinstance(value, bool) or not usable:
        msg = (
            f'{owner}: not a watermark. Say how long to wait, as "5s" or 5, or use '
            f"Watermark(...) or a slack, as KSlack()."
        )
        raise PolicyError(msg)
    try:
        return Watermark(value)  # type: ignore[arg-type]  # one of those
    except PolicyError as error:
        raise PolicyError(f"{owner}: {error}") from None


def _slack_of(slack: Any) -> Slack:
    if isinstance(slack, Slack):
        return slack
    if isinstance(slack, bool) or not isinstance(slack, int | float | Decimal | timedelta | str):
        msg = (
            f'Watermark({slack!r}): not a slack. Use a duration, as "5s", a number, or a '
            f"strategy, as QuantileSlack()."
        )
        raise PolicyError(msg)
    return FixedSlack(amount_of(slack, f"Watermark({slack!r})", "0"))


def _amount(name: str, value: Any) -> Amount | None:
    return None if value is None else amount_of(value, f"Watermark({name}={value!r})", "more")


# -- state ----------------------------------------------------------------------------------------


class Source:
    """One source of a stream: the state of its slack, and a row that is too far ahead."""

    __slots__ = ("_most", "far", "state")

    def __init__(self, watermark: Watermark) -> None:
        self.state: SlackState = watermark.slack.start()
        ahead = watermark.max_ahead
        self._most: Number = None if ahead is None else length(ahead)
        self.far: Number | None = None
        """The timestamp of the last row, if it was too far ahead of those before it."""

    def observe(self, ts: Number) -> Number:
        """Observe a timestamp; the watermark of the source after it."""
        if self._most is not None:
            top = self.state.top
            if top is not None and _beyond(ts, top, self._most):
                if self.far is None:
                    self.far = ts
                    return self.state.punctuation
                ts = min(ts, self.far)
            self.far = None
        return self.state.observe(ts)

    def snapshot(self) -> list[Any]:
        """The state as plain data."""
        return [self.state.snapshot(), self.far]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what `snapshot` returned."""
        known, self.far = state
        self.state.restore(known)


def _beyond(ts: Number, other: Number, distance: Number) -> bool:
    """Whether a timestamp is further than a distance after another one."""
    if isinstance(distance, float) and isinstance(ts, Decimal):
        distance = Decimal(repr(distance))
    return bool(ts - other > distance)


class Progress:
    """The watermark of one stream, and the state of its sources.

    >>> progress = Watermark(5, sources="host").start()
    >>> [progress.observe(ts, host) for ts, host in ((10, "a"), (9, "b"), (30, "a"), (31, "b"))]
    [5, 5, 5, 25]
    """

    __slots__ = ("_idle", "_spec", "current", "sources")

    def __init__(self, spec: Watermark) -> None:
        self._spec = spec
        self._idle: Number = None if spec.idle is None else length(spec.idle)
        self.sources: dict[Any, Source] = {}
        self.current: Number | None = None
        """The watermark; None before the first row."""

    def observe(self, ts: Number, source: Any = None) -> Number:
        """Observe a timestamp; the watermark after it."""
        known = self.sources.get(source)
        reached = (self.source(source) if known is None else known).observe(ts)
        if len(self.sources) > 1:
            reached = self._least()
        if self.current is None or reached > self.current:
            self.current = reached
        return self.current

    def source(self, name: Any) -> Source:
        """A source, made if it is new."""
        if name not in self.sources:
            self.sources[name] = Source(self._spec)
        return self.sources[name]

    def _least(self) -> Number:
        """The least watermark of the sources that are not idle."""
        sources: Any = self.sources.values()
        if self._idle is not None:
            top = max(each.state.top for each in sources)
            sources = [each for each in sources if not _beyond(top, each.state.top, self._idle)]
        return min(each.state.punctuation for each in sources)

    @property
    def top(self) -> Number | None:
        """The greatest timestamp that moves the watermark; None before the first."""
        tops = [each.state.top for each in self.sources.values() if each.state.top is not None]
        return max(tops, default=None)

    def snapshot(self) -> list[Any]:
        """The state as plain data."""
        return [self.current, [[key, each.snapshot()] for key, each in self.sources.items()]]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what `snapshot` returned."""
        self.current, sources = state
        self.sources = {}
        for key, saved in sources:
            self.sources[one_key(key)] = source = Source(self._spec)
            source.restore(saved)


def source_getter(watermark: Watermark) -> Getter | None:
    """A reader of the source of a row; None if there is only one source."""
    named = watermark.sources
    return None if named is None else Getter(named, f"Watermark(sources={named!r})")
