"""What the tests of operators share: everything that comes out, with and without restarts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from windowlib import Operator, punct, replay, restart

P = punct()


def items(op: Operator, rows: Iterable[Any], **options: Any) -> list[tuple[str, Any]]:
    """Rows and punctuations in order, each with its port."""
    return list(replay(op, rows, **options).items())


def out(op: Operator, rows: Iterable[Any], **options: Any) -> list[Any]:
    """Rows and punctuations of the first output."""
    first = op.model.outputs[0].name
    return [item for port, item in items(op, rows, **options) if port == first]


def with_restarts(rows: Sequence[Any]) -> list[Any]:
    """The same rows with a crash before and after each of them."""
    return [restart(), *(each for row in rows for each in (row, restart()))]
