"""Several inputs as one, in the order of a column."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from windowlib.attributes import Getter
from windowlib.errors import SchemaError
from windowlib.marks import Mark, Restart, Tagged


def merged(inputs: Mapping[str, Iterable[Any]], get: Getter) -> Iterator[Any]:
    """The rows and marks of all inputs, tagged with their ports, in the order of what `get` reads.

    >>> rows = merged({"left": [1, 5], "right": [2]}, Getter(lambda row: row, "merge=row"))
    >>> [row.row for row in rows]
    [1, 2, 5]
    """
    firsts: list[Any] = []
    keyed = [_keyed(port, items, get, firsts) for port, items in inputs.items()]
    return (item for _, item in heapq.merge(*keyed, key=itemgetter(0)))


def _keyed(
    port: str, items: Iterable[Any], get: Getter, firsts: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """The rows for a port with what they are merged by; a mark stays behind the row before it."""
    last: Any = _First()
    for item in items:
        if isinstance(item, Restart):
            yield last, item
            continue
        if not isinstance(item, Mark):
            key = get(item)
            if key is None or key != key:
                msg = (
                    f"replay(..., {get.owner}): the row {item!r} for {port!r} has no place in "
                    f"that order. Drop or fill such rows first."
                )
                raise SchemaError(msg)
            if isinstance(last, _First):  # the first of each input stands for its type
                for other in firsts:
                    _before(key, other, get)
                firsts.append(key)
            elif _before(key, last, get):
                msg = (
                    f"replay(..., {get.owner}): the rows for {port!r} are not in order, {key!r} "
                    f"comes after {last!r}. Sort them first."
                )
                raise SchemaError(msg)
            last = key
        yield last, Tagged(port, item)


def _before(key: Any, other: Any, get: Getter) -> bool:
    try:
        return bool(key < other)
    except TypeError:
        msg = (
            f"replay(..., {get.owner}): the values {other!r} and {key!r} do not compare. Use one "
            f"type in all inputs."
        )
        raise SchemaError(msg) from None


class _First:
    """Comes before every value."""

    def __lt__(self, other: object) -> bool:
        return not isinstance(other, _First)

    def __gt__(self, other: object) -> bool:
        return False
