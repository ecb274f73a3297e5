"""Punctor: puts window punctuations into a stream, where the data says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import ne
from typing import Any, Literal, NamedTuple

from windowlib.attributes import Getter, brief, key_getter, one_key
from windowlib.errors import ModelError, SchemaError
from windowlib.operators.arguments import Columns, check_callable, column_tuple, function_text
from windowlib.operators.base import PassThrough, unchanged
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.splitting import names_in
from windowlib.spec.policies import Attribute, Delta, check_attribute
from windowlib.window.engine.rules import check_delta


class Punctor(PassThrough):
    """Passes rows on, with a punctuation after or before some of them.

    Give one of the conditions. Punctuations that come in are not passed on.

    Args:
        when: a predicate over a row; or the name of a column that is true for such rows.
        gap: `Delta(column, threshold)`: before a row that is more than the threshold after the
            row before it. With a punct window this gives sessions.
        on_change: a column, or several: before a row where they have another value than in the
            row before it.
        between: a predicate over the row before and the row: before a row where it holds.
        by: compare a row with the one before it that has the same key, not just with the one
            before it. The punctuation is still one for the whole stream. Remembers one value for
            each key it has met.
        position: "after" or "before" the row; the conditions on two rows cut between them, and
            know "before" only.
        name: what messages and graphs call it.

    >>> from windowlib import Delta, Punct, replay
    >>> from windowlib.operators import Batch
    >>> sessions = Punctor(gap=Delta("ts", 30), position="before").then(Batch(Punct()))
    >>> clicks = [{"ts": ts} for ts in (0, 10, 30, 100, 120)]
    >>> [[t["ts"] for t in session["rows"]] for session in replay(sessions, clicks)]
    [[0, 10, 30], [100, 120]]
    """

    model = OperatorModel(punctuation_out="generating")

    def __init__(
        self,
        when: Attribute | None = None,
        *,
        gap: Delta | None = None,
        on_change: Columns | None = None,
        between: Callable[[Any, Any], Any] | None = None,
        by: Columns | None = None,
        position: Literal["after", "before"] | None = None,
        name: str | None = None,
    ) -> None:
        given = {"when": when, "gap": gap, "on_change": on_change, "between": between}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            text = ", ".join(f"{name}=..." for name in given)
            msg = f"Punctor({text}): give one condition, of when=, gap=, on_change= and between=."
            raise ModelError(msg)
        (kind,) = given
        self._check_position(kind, position)
        if by is not None and when is not None:
            msg = (
                f"Punctor(when=..., by={by!r}): `when` looks at one row, and so has no use for a "
                f"key. Drop `by=`, or use gap=, on_change= or between=."
            )
            raise ModelError(msg)
        self._after = position == "after" or (position is None and when is not None)
        if when is not None:
            owner = "Punctor(when={attribute!r})"
            check_attribute(when, owner, 'Punctor(when=lambda t: t["last"])')
        self._when = Getter("" if when is None else when, f"when={function_text(when)}")
        self._gap = gap
        self._condition = None if when is not None else _pair_condition(gap, on_change, between)
        self._by = () if by is None else column_tuple(by, f"Punctor(by={by!r})")
        self._key = key_getter(self._by, f"by={by!r}")
        self._previous: dict[Any, Any] = {}
        super().__init__(name=name)

    def _check_position(self, kind: str, position: object) -> None:
        if position not in (None, "after", "before"):
            msg = f'Punctor(position={position!r}): use "after" or "before".'
            raise ModelError(msg)
        if position == "after" and kind != "when":
            msg = (
                f'Punctor({kind}=..., position="after"): it cuts between a row and the one before '
                f'it. Drop `position=`, or say "before".'
            )
            raise ModelError(msg)

    def natural_order(self, port: int) -> Any:
        """By the attribute whose gaps are measured; otherwise it has to be stated."""
        attribute = None if self._gap is None else self._gap.attribute
        return attribute if isinstance(attribute, str) else ...

    def keeps_order(self, port: int) -> bool:
        """Each row is sent on at once."""
        return unchanged(self)

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Send it, and a punctuation on its side where the condition holds."""
        condition = self._condition
        cut = self._when(tuple_) if condition is None else self._differs(tuple_, condition)
        if cut and not self._after:
            self._puncts[0]()
        self._outputs[0](tuple_)
        if cut and self._after:
            self._puncts[0]()

    def _differs(self, row: Any, pairs: PairCondition) -> Any:
        new = pairs.value(row)
        key = self._key(row)
        try:
            known = key in self._previous
        except TypeError as error:
            by = ", ".join(function_text(column) for column in self._by)
            msg = (
                f"Punctor(by={by}): the values {brief(key)} cannot be a key. Use columns of plain "
                f"values, not lists or dicts."
            )
            raise SchemaError(msg) from error
        cut = known and pairs.cuts(self._previous[key], new)
        self._previous[key] = new
        return cut

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns of the condition and of the key."""
        if self._condition is None:
            yield self._when.attribute, self._when.owner
        else:
            yield from self._condition.reads
        yield from ((column, f"by={column!r}") for column in self._by)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """By the key, within which rows are compared; a condition on one row keeps nothing."""
        if not unchanged(self):
            return super().splits_by(port)
        return None if self._condition is None else names_in(self._by) or ()

    def snapshot(self) -> list[tuple[Any, Any]]:
        """The remembered value of the row before, by key."""
        return list(self._previous.items())

    def restore(self, state: Iterable[tuple[Any, Any]]) -> None:
        """Take back what `snapshot` gave."""
        restored = _identity if self._condition is None else self._condition.restored
        self._previous = {one_key(key): restored(value) for key, value in state}


def _identity(value: Any) -> Any:
    return value


class PairCondition(NamedTuple):
    """A condition on two rows: what is remembered of a row, and the test of two of those."""

    reads: list[tuple[Attribute, str]]
    value: Callable[[Any], Any]
    cuts: Callable[[Any, Any], Any]
    restored: Callable[[Any], Any] = _identity
    """Restores what was remembered from its saved form."""


def _pair_condition(gap: Any, on_change: Any, between: Any) -> PairCondition:
    if gap is not None:
        return _gap_condition(gap)
    if on_change is not None:
        columns = column_tuple(on_change, f"Punctor(on_change={on_change!r})")
        value = key_getter(columns, f"on_change={on_change!r}")
        return PairCondition(
            [(column, f"on_change={column!r}") for column in columns], value, ne, one_key
        )
    owner = f"Punctor(between={between!r})"
    check_callable(between, owner, "between=lambda before, t: ...")
    return PairCondition([], _identity, between)


def _gap_condition(gap: Delta) -> PairCondition:
    if not isinstance(gap, Delta):
        msg = f'Punctor(gap={gap!r}): a gap is a Delta, such as gap=Delta("ts", "30s").'
        raise ModelError(msg)
    get = Getter(gap.attribute, gap.shown)

    def value(row: Any) -> Any:
        found = get(row)
        check_delta(gap, found, row)
        return found

    def cuts(old: Any, new: Any) -> bool:
        try:
            return gap.exceeds(new, old)
        except TypeError as error:
            msg = (
                f"{gap.shown}: the value {new!r} does not mix with {old!r} before it. Use one type "
                f"for the whole stream."
            )
            raise SchemaError(msg) from error

    return PairCondition([(gap.attribute, gap.shown)], value, cuts)
