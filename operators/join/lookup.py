"""Lookup: enrich a stream with the latest row per key of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from windowlib.errors import ModelError
from windowlib.operators.arguments import Columns
from windowlib.operators.join.join import Join, matching_model
from windowlib.operators.join.join_operator import (
    SUFFIXES,
    PairFunction,
    Unmatched,
    check_choice,
    equality,
)
from windowlib.spec.policies import Count, PartitionEviction
from windowlib.spec.specification import Sliding

LookupHow = Literal["left", "inner", "semi", "anti"]


class Lookup(Join):
    """Puts to each row of a stream the latest row with its key of a reference input.

    A `Join` whose left side, the stream, only probes (`Count(0)`), and whose right side keeps one
    row per key (`Count(1)`, partitioned by the key). A stream row is answered at once, with what
    the reference holds then, and never again.

    Args:
        on: the key columns; or `left_on` for the stream and `right_on` for the reference.
        left_on: the key columns of the stream.
        right_on: the key columns of the reference.
        how: "left": a stream row without a reference row comes out with nulls; "inner": it is
            dropped; "semi", "anti": stream rows as they are, if there is one, or if there is none.
        forget: which keys are forgotten: `PartitionCount`, `TupleCount` or `PartitionAge`.
        where: as in `Join`, as are all others.
        suffixes: see `Join`.
        unmatched: see `Join`; the output is called `unmatched_stream`.
        select: see `Join`.
        name: what messages and graphs call it.

    >>> from windowlib import replay, to
    >>> rows = [
    ...     to("reference", {"user": 1, "name": "Ann"}),
    ...     to("stream", {"user": 1, "page": "/"}),
    ...     to("stream", {"user": 2, "page": "/"}),
    ... ]
    >>> list(replay(Lookup(on="user"), rows))
    [{'user': 1, 'page': '/', 'name': 'Ann'}, {'user': 2, 'page': '/', 'name': None}]
    """

    ports: ClassVar[tuple[str, str]] = ("stream", "reference")
    model = matching_model(ports)

    def __init__(
        self,
        *,
        on: Columns | None = None,
        left_on: Columns | None = None,
        right_on: Columns | None = None,
        how: LookupHow = "left",
        forget: PartitionEviction | None = None,
        where: PairFunction | None = None,
        suffixes: Sequence[str] = SUFFIXES,
        unmatched: Unmatched = "row",
        select: PairFunction | None = None,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        check_choice(kind, "how", how, LookupHow)
        by: Any = equality(kind, on, left_on, right_on).columns[1]
        if not by:
            msg = f'{kind}(): what is looked up? Name the key: on="user_id".'
            raise ModelError(msg)
        super().__init__(
            left=Sliding(Count(0)),
            right=Sliding(Count(1), by=by[0] if len(by) == 1 else by, forget=forget),
            on=on,
            left_on=left_on,
            right_on=right_on,
            where=where,
            how=how,
            suffixes=suffixes,
            unmatched=unmatched,
            select=select,
            name=name,
        )
