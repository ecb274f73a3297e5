"""Columns as rows: a dict for each, made by an expression that is written for their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any


def dict_rows(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The rows of columns that are equally long, of which there must be at least one.

    >>> list(dict_rows({"x": [1, 2], "y": ["a", "b"]}))
    [{'x': 1, 'y': 'a'}, {'x': 2, 'y': 'b'}]
    """
    return _maker(tuple(columns))(*columns.values())


@lru_cache(maxsize=64)
def _maker(names: tuple[str, ...]) -> Callable[..., Iterator[dict[str, Any]]]:
    """A dict display takes a quarter of the time of dict(zip(names, row))."""
    values = [f"v{i}" for i in range(len(names))]
    lists = ", ".join(f"l{i}" for i in range(len(names)))
    shown = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    source = f"lambda {lists}: ({{{shown}}} for {', '.join(values)}, in zip({lists}, strict=True))"
    made: Callable[..., Iterator[dict[str, Any]]] = eval(source)
    return made


def rows_of(batch: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow batch: what its `to_pylist` gives, only faster."""
    names = batch.schema.names
    if not names or len(set(names)) < len(names):
        found: list[dict[str, Any]] = batch.to_pylist()
        return found
    return list(dict_rows({name: batch.column(name).to_pylist() for name in names}))
