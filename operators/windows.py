"""What operators do with windows: read them from arguments, go through their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from windowlib.errors import ModelError
from windowlib.failure import raise_first
from windowlib.running import kept
from windowlib.spec import KEY, Sliding, Spec, Tumbling
from windowlib.spl import parse
from windowlib.window import Window


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


def each_partition(
    window: Window[Any, Any], keys: Iterable[Any], act: Callable[[Any], None]
) -> None:
    """Call `act(key)` for each partition that holds tuples; a failure costs no other its turn.

    A key may be there twice, as a handler that selects partitions may say.
    """
    failures: list[Exception] = []
    for key in dict.fromkeys(keys):
        if window.size(key):
            with kept(failures):
                act(key)
    raise_first(failures)
