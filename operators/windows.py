"""The window of an operator, with the partition key that the operator was given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from windowlib.errors import ModelError
from windowlib.spec import KEY, Sliding, Spec, Tumbling
from windowlib.spl import parse


def window_of(kind: str, argument: str, window: Spec | str, by: Any, word: str = "by") -> Spec:
    """A window as a user passes it, a specification or SPL text, partitioned by `by` if given.

    `kind`, `argument` and `word` are what messages call the operator, the window and the key.

    >>> from windowlib import Count
    >>> window_of("Sort", "window", Tumbling(Count(2)), "symbol")
    Tumbling(Count(size=2), by='symbol')
    """
    spec = parse(window) if isinstance(window, str) else window
    if not isinstance(spec, Tumbling | Sliding):
        msg = (
            f"{kind}({argument}={window!r}): not a window. Pass a specification, as "
            f"{argument}=Sliding(Count(10)), or SPL text."
        )
        raise ModelError(msg)
    made = spec if by is None else replace(spec, by=by)
    if spec.by not in (None, KEY, made.by):
        msg = f"{kind}({word}={by!r}): the window says by={spec.by!r}. Drop one of them."
        raise ModelError(msg)
    if made.by is KEY:
        msg = (
            f"{kind}({argument}={made!r}): an operator reads its keys from the rows. Name the "
            f'columns, such as {word}="symbol".'
        )
        raise ModelError(msg)
    return made
