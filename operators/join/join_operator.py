"""The base of all joins: two inputs, keys, joined rows, and the checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from windowlib.errors import ModelError, SchemaError, suggestion
from windowlib.operators.arguments import Columns, as_tuple, window_of
from windowlib.operators.arrow_output import pass_through_schema
from windowlib.operators.base import unchanged
from windowlib.operators.join.joined_rows import JoinedRows, pair_schema
from windowlib.runtime.operator import Operator
from windowlib.spec.policies import Attribute, Count, Delta, is_attribute
from windowlib.spec.specification import Sliding, Spec, Tumbling
from windowlib.window.consumer import Decline

How = Literal["inner", "left", "right", "outer", "semi", "anti"]
Unmatched = Literal["row", "port"]
PairFunction = Callable[[Any, Any], Any]
"""A function of a left and a right row: `where` and `select`."""
SUFFIXES = ("", "_right")
SUPPORTED = "Supported: Sliding(...) without `every=`."


class Equality(NamedTuple):
    """The key columns of each side, and what the user called them."""

    columns: tuple[tuple[Attribute, ...], tuple[Attribute, ...]] = ((), ())
    owners: tuple[str, str] = ("", "")

    @property
    def shared(self) -> tuple[str, ...]:
        """The columns that have one name on both sides."""
        both = zip(*self.columns, strict=True)
        return tuple(a for a, b in both if isinstance(a, str) and a == b)


class JoinOperator(Operator):
    """The base of joins: which columns must be equal, and how two rows become one."""

    ports: ClassVar[tuple[str, str]] = ("left", "right")
    _joined_rows: JoinedRows | None

    def _set_join(
        self,
        how: How,
        keys: tuple[Columns | None, Columns | None, Columns | None],
        suffixes: Sequence[str],
        unmatched: Unmatched,
        select: PairFunction | None,
        where: PairFunction | None = None,
    ) -> None:
        """Take the arguments of all joins; `keys` are `on`, `left_on` and `right_on`."""
        kind = type(self).__name__
        check_unmatched(kind, unmatched, how)
        check_functions(kind, where, select, how)
        check_suffixes(kind, suffixes, how, select)
        self.how, self._keys, self._select = how, equality(kind, *keys), select
        self._suffixes = (suffixes[0], suffixes[1])
        self._left_rows_only = how in ("semi", "anti")  # left rows, once each, as they are
        self._diverts_unmatched = unmatched == "port"
        self._known_input: tuple[Any, ...] = ()
        self._known_schema: Any = None

    def passes(self, column: str, port: int) -> bool:
        """The columns of `on` that have one name; rows that are not put together, as they are."""
        if not unchanged(self) or (port == 0 and self._select is not None):
            return False
        return port > 0 or self._left_rows_only or column in self._keys.shared

    def on_open(self) -> None:
        """Get ready to put rows together."""
        self._expected: Sequence[Sequence[str]] = ((), ())
        self._joined_rows = None
        self._combine = self._select
        if self._select is None and not self._left_rows_only:
            self._combine = self._joined_rows = self._new_joined_rows()

    def _new_joined_rows(self) -> JoinedRows:
        return JoinedRows(type(self).__name__, self._keys.shared, self._suffixes)

    def _note_columns(self, names: Sequence[str], port: int) -> None:
        """Take note of the columns of a batch; decline it if rows cannot be put together."""
        if self._joined_rows is not None:
            try:
                self._joined_rows.note(dict.fromkeys(names), port)
            except SchemaError as error:  # which the first row raises as well
                raise Decline("columns that cannot be put together") from error

    def expect_columns(self, columns: Sequence[Sequence[str]]) -> None:
        """Names of output columns do not depend on which side comes first."""
        self._expected = columns
        if self._joined_rows is not None:
            self._joined_rows.expect(columns)

    def schema(self, *columns: Any) -> Any:
        """The schema in `output`; else the columns of both sides, or of the left side."""
        declared = super().schema(*columns)
        if declared is not None or self._select is not None:
            return declared
        if self._left_rows_only:
            return pass_through_schema(columns[0])
        # Rows of a running join may have had more columns.
        pairs = getattr(self, "_joined_rows", None) or self._new_joined_rows()
        asked = (*columns, pairs.columns)
        if asked != self._known_input:  # which is the same for every batch
            self._known_input, self._known_schema = asked, pair_schema(pairs, columns)
        return self._known_schema


# -- keys -----------------------------------------------------------------------------------------


def equality(
    kind: str, on: Columns | None, left_on: Columns | None, right_on: Columns | None
) -> Equality:
    """The equality keys, given once for both sides or once for each."""
    if on is not None:
        for name, value in (("left_on", left_on), ("right_on", right_on)):
            if value is not None:
                msg = (
                    f"{kind}(on={on!r}, {name}={value!r}): two words for one key. Drop `{name}=`, "
                    f"or give left_on= and right_on= alone."
                )
                raise ModelError(msg)
        left_on = right_on = on
        names = ("on", "on")
    elif left_on is None and right_on is None:
        return Equality()
    else:
        names = ("left_on", "right_on")
    given = {"left_on": left_on, "right_on": right_on}
    for name, other in (("left_on", "right_on"), ("right_on", "left_on")):
        if given[name] is None:
            msg = f"{kind}({other}={given[other]!r}): the other side has no key. Add {name}=..."
            raise ModelError(msg)
    left, right = (_columns(kind, n, c) for n, c in zip(names, given.values(), strict=True))
    if len(left) != len(right):
        msg = (
            f"{kind}(left_on={left_on!r}, right_on={right_on!r}): {len(left)} columns against "
            f"{len(right)}. Name as many on both sides, in the same order."
        )
        raise ModelError(msg)
    return Equality((left, right), (f"{names[0]}={left_on!r}", f"{names[1]}={right_on!r}"))


def _columns(kind: str, name: str, columns: Any) -> tuple[Attribute, ...]:
    parts = as_tuple(columns)
    if not parts or not all(map(is_attribute, parts)):
        msg = (
            f"{kind}({name}={columns!r}): name the columns that must be equal, such as "
            f'{name}="symbol" or {name}=("a", "b").'
        )
        raise ModelError(msg)
    return parts


# -- windows --------------------------------------------------------------------------------------


def side_window(kind: str, port: str, window: Spec | str, partition_by: Any) -> Sliding:
    """The window of one side, partitioned as asked."""
    spec = window_of(kind, port, window, partition_by, "partition_by")
    if isinstance(spec, Tumbling):
        msg = (
            f"{kind} does not support {spec!r}: a join looks at the recent tuples of the other "
            f"side, and a tumbling window forgets them all at once. {SUPPORTED}"
        )
        raise ModelError(msg)
    if spec.every != Count(1):
        msg = (
            f"{kind} does not support {spec!r}: a join matches every tuple as it arrives. "
            f"{SUPPORTED}"
        )
        raise ModelError(msg)
    return spec


def evicts_independently(spec: Any, column: Any) -> bool:
    """Whether rows with one value of a column do not evict rows with another."""
    assert isinstance(spec, Sliding)
    if not isinstance(column, str):
        return False
    alone = spec.full_from_start and spec.forget is None
    by = spec.by if isinstance(spec.by, tuple) else (spec.by,)
    return alone or not stores(spec) or column in by


def stores(spec: Spec) -> bool:
    """Whether a side keeps its tuples: `Count(0)` only probes the other."""
    return spec.evict != Count(0)


def check_sides(kind: str, left: Sliding, right: Sliding) -> None:
    """Refuse two sides that both keep nothing."""
    if not stores(left) and not stores(right):
        msg = (
            f"{kind}(left={left!r}, right={right!r}): neither side keeps a tuple, so nothing could "
            f"ever match. Give one of them a size."
        )
        raise ModelError(msg)


# -- other arguments ------------------------------------------------------------------------------


def check_choice(kind: str, name: str, value: object, choices: Any) -> None:
    """Refuse a word that is not one of the choices."""
    known = get_args(choices)
    if value not in known:
        shown = ", ".join(map(repr, known))
        msg = f"{kind}({name}={value!r}): use one of {shown}.{suggestion(value, known)}"
        raise ModelError(msg)


def check_functions(kind: str, where: object, select: object, how: How) -> None:
    """Refuse what cannot be called, and a `select` that nothing would call."""
    sample = {"where": 'l["x"] < r["x"]', "select": '{**l, "y": r["y"]}'}
    for name, function in (("where", where), ("select", select)):
        if function is not None and not callable(function):
            msg = (
                f"{kind}({name}={function!r}): not a function of both rows. Write "
                f"{name}=lambda l, r: {sample[name]}."
            )
            raise ModelError(msg)
    if select is not None and how in ("semi", "anti"):
        msg = (
            f'{kind}(how="{how}", select=...): a {how} join gives left rows as they are. Drop '
            f"`select=`, or shape its output in the next operator."
        )
        raise ModelError(msg)


def check_within(kind: str, within: object) -> None:
    """Refuse what is no band, and a band that nothing is within."""
    if within is None:
        return
    if not isinstance(within, Delta):
        msg = f'{kind}(within={within!r}): not a band. Write within=Delta("ts", "10s").'
        raise ModelError(msg)
    limit: Any = within.threshold
    if limit < (timedelta(0) if isinstance(limit, timedelta) else 0):
        msg = f"{kind}(within={within.shown}): no distance is negative. Give 0 or more."
        raise ModelError(msg)


def check_unmatched(kind: str, unmatched: Unmatched, how: How) -> None:
    """Refuse a port that would never carry a row."""
    check_choice(kind, "unmatched", unmatched, Unmatched)
    if unmatched == "port" and how in ("inner", "semi", "anti"):
        why = {
            "inner": "an inner join gives matches only",
            "semi": "a semi join gives rows that have a match",
            "anti": "the rows without a match are its main output",
        }[how]
        msg = (
            f'{kind}(how="{how}", unmatched="port"): {why}. Drop `unmatched=`, or use how="left", '
            f'"right" or "outer".'
        )
        raise ModelError(msg)


def check_suffixes(kind: str, suffixes: object, how: How, select: object) -> None:
    """Refuse suffixes that do not tell the sides apart, or that nothing would use."""
    pair = tuple(suffixes) if isinstance(suffixes, list | tuple) else ()
    if len(pair) != 2 or not all(isinstance(suffix, str) for suffix in pair):
        msg = (
            f"{kind}(suffixes={suffixes!r}): give two texts, for left and right, such as "
            f'suffixes=("", "_right").'
        )
        raise ModelError(msg)
    if pair[0] == pair[1]:
        msg = (
            f"{kind}(suffixes={suffixes!r}): both sides get the same suffix, so equal names stay "
            f"equal. Give two different ones."
        )
        raise ModelError(msg)
    if pair != SUFFIXES and (select is not None or how in ("semi", "anti")):
        user = "select= makes the rows" if select else f'how="{how}" gives left rows as they are'
        raise ModelError(f"{kind}(suffixes={suffixes!r}): {user}. Drop `suffixes=`.")
