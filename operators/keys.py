"""What key columns are called in output rows."""

from __future__ import annotations

from typing import Any


def key_names(by: Any, word: str = "key") -> list[str]:
    """The names of key columns in output rows: their own, or `key` for what has none.

    >>> key_names("symbol"), key_names(("src", 1)), key_names(None)
    (['symbol'], ['src', 'key_2'], [])
    """
    if by is None:
        return []
    if not isinstance(by, tuple):
        return [by if isinstance(by, str) else word]
    return [part if isinstance(part, str) else f"{word}_{i}" for i, part in enumerate(by, 1)]
