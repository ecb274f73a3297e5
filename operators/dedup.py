"""Dedup: every key once, for as long as it is remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from windowlib.attributes import Getter, column_names, one_key
from windowlib.errors import ModelError, SchemaError, suggestion
from windowlib.operators.arguments import as_tuple
from windowlib.operators.base import PassThrough, unchanged
from windowlib.operators.store_windows import KeyWindow
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.splitting import names_in
from windowlib.spec.policies import (
    Attribute,
    Count,
    Delta,
    PartitionEviction,
    Time,
    attribute_text,
    is_attribute,
)
from windowlib.spec.specification import KEY, By, Sliding
from windowlib.window.container import Window

Keep = Literal["first", "last"]
Duplicates = Literal["drop", "port"]
On = Attribute | Sequence[Attribute] | None


class Dedup(PassThrough):
    """Lets a row through unless its key is remembered from an earlier one.

    What is remembered is one entry per key: O(1) per row, O(log n) for `Delta`.

    | `within=` | remembers |
    | --- | --- |
    | `Count(n)` | the keys of the last n rows that passed |
    | `Delta(a, d)` | keys whose `a` is at most d less than that of the row that comes |
    | `Time(p)` | keys for at most p |

    Keys are equal as Python says, so 1 is 1.0; null is a value like any other, and NaN equals
    NaN. Punctuations pass. They do not wait for rows that are held back by `keep="last"`, so
    such a row comes behind the punctuation that followed it.

    Args:
        on: what makes rows equal: a column, an index, a callable, or several; the whole row
            unless given.
        within: how long a key is remembered: `Count`, `Delta` or `Time`.
        by: the partition key: each partition has its own memory. `on="value", by="sensor"` with
            `Count(1)` lets changes through.
        forget: `PartitionCount`, `TupleCount` (which counts keys) or `PartitionAge`: which
            memories are dropped. Any row is a use of its partition.
        keep: "first" lets a row through at once. "last" holds it back until its key is forgotten,
            and another row with the key takes its place; at the end of the input, and before a
            partition is dropped, what is held back comes out.
        renew: whether a duplicate renews the memory of its key.
        duplicates: "drop" them, or send them to a "port" of their own, which is named duplicates
            and carries the punctuations, too, so that a window there has the same borders.
        name: what messages and graphs call it.

    >>> from windowlib.operators import Dedup
    >>> from windowlib import Count, replay
    >>> rows = [{"id": id} for id in (1, 1, 2, 3, 1)]
    >>> [row["id"] for row in replay(Dedup("id", within=Count(2)), rows)]
    [1, 2, 3, 1]
    """

    model = OperatorModel(
        windows=[Sliding[Count | Delta | Time, Count(1)]],  # type: ignore[misc]
        punctuation_out="preserving",
    )

    def __init__(
        self,
        on: On = None,
        *,
        within: Count | Delta | Time,
        by: By | Sequence[str] | None = None,
        forget: PartitionEviction | None = None,
        keep: Keep = "first",
        renew: bool = False,
        duplicates: Duplicates = "drop",
        name: str | None = None,
    ) -> None:
        _check_memory(within)
        _check_word("keep", keep, get_args(Keep))
        _check_word("duplicates", duplicates, get_args(Duplicates))
        if not isinstance(renew, bool):
            raise ModelError(f"Dedup(renew={renew!r}): say True or False.")
        if by is KEY:
            raise ModelError('Dedup(by=KEY): nothing passes the keys. Use by="symbol".')
        self.on = _key_columns(on)
        self.keep, self.renew, self.duplicates = keep, renew, duplicates
        if duplicates == "port":
            self.model = OperatorModel(
                ports_out=["out", "duplicates"],
                windows=self.model.inputs[0].windows,
                punctuation_out="preserving",
            )
        super().__init__(Sliding(within, by=by, forget=forget), name=name)

    # -- as the framework asks --------------------------------------------------------------------

    def container(self, port: int) -> Callable[..., Window[Any, Any]]:
        """A memory of keys."""
        return partial(
            KeyWindow,
            key=row_key if self.on is None else key_reader(self.on),
            hold=self.keep == "last",
            renew=self.renew,
            emit=self._send,
            emit_duplicate=self._drop if self.duplicates == "drop" else self._divert,
        )

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns that make rows equal, besides what the window reads."""
        yield from super().reads(port)
        for attribute in self.on or ():
            yield attribute, _owner(self.on or ())

    def keeps_order(self, port: int) -> bool:
        """Rows that it does not hold back are sent on at once."""
        return self.keep == "first" and unchanged(self)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """By the key of its memories; within a time also by what makes rows equal."""
        if not unchanged(self):
            return super().splits_by(port)
        (spec,) = self.windows
        assert spec is not None
        by, on = names_in(spec.by), names_in(self.on)
        if by is None:
            return ()
        # Otherwise the rows of one value push out, or make old, those of another.
        alone = spec.full_from_start and spec.forget is None
        return tuple(dict.fromkeys((*by, *(on or ())))) if alone else by

    def notes(self) -> Iterable[tuple[str, str]]:
        """The key, and the treatment of duplicates."""
        names = "the whole row" if self.on is None else ", ".join(map(attribute_text, self.on))
        renewed = ", which duplicates renew" if self.renew else ""
        yield "dedup", f"by {names}; the {self.keep} of each key{renewed}"

    # -- at work ----------------------------------------------------------------------------------

    def _send(self, row: Any) -> None:
        self._outputs[0](row)

    def _divert(self, row: Any) -> None:
        self._outputs[1](row)

    def _drop(self, row: Any) -> None:
        """A duplicate that is dropped."""

    def on_partitions_evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        """Rows that are held back are sent before their partitions are evicted."""
        if self.keep == "last":
            for key in dict.fromkeys(keys):  # a partition may be marked twice
                for row in window[key]:
                    self._send(row)

    def on_finish(self) -> None:
        """Send the rows that are held back."""
        (memory,) = self.containers
        assert isinstance(memory, KeyWindow)
        memory.drain()


def _check_memory(within: object) -> None:
    if not isinstance(within, Count | Delta | Time):
        msg = (
            f"Dedup(within={within!r}): not a memory. Say how far back to look: Count(1000), "
            f'Delta("ts", 60) or Time("10m").'
        )
        raise ModelError(msg)
    if within.tuples == 0:
        msg = "Dedup(within=Count(0)): no row would be remembered. Use Count(1) or more."
        raise ModelError(msg)


def _check_word(argument: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        words = " or ".join(f'"{word}"' for word in known)
        msg = f"Dedup({argument}={given!r}): say {words}.{suggestion(given, known)}"
        raise ModelError(msg)


def _key_columns(on: Any) -> tuple[Attribute, ...] | None:
    if on is None:
        return None
    columns = as_tuple(on)
    if not columns or not all(map(is_attribute, columns)):
        msg = (
            f'Dedup(on={on!r}): not a key. Name a column, as on="id", several, or a callable; or '
            f"leave it out to compare whole rows."
        )
        raise ModelError(msg)
    return columns


# -- keys -----------------------------------------------------------------------------------------


def _owner(on: tuple[Attribute, ...]) -> str:
    return f"Dedup(on={(on[0] if len(on) == 1 else on)!r})"


def key_reader(on: tuple[Attribute, ...]) -> Callable[[Any], Hashable]:
    """Reads the key of a row: one value, or several as a tuple."""
    owner = _owner(on)
    getters = [Getter(attribute, owner) for attribute in on]

    def read(row: Any) -> Hashable:
        return _checked_key(tuple([get(row) for get in getters]), on, owner)

    return read


def row_key(row: Any) -> Hashable:
    """A row as a key: its columns with their values, or what it is if it has none.

    >>> row_key({"a": 1, "b": 2}) == row_key({"b": 2, "a": 1})
    True
    """
    if isinstance(row, Mapping):
        values = _checked_key(tuple(row.values()), tuple(row), "Dedup()")
        return frozenset(zip(row, values, strict=True))
    if isinstance(row, tuple):
        return _checked_key(tuple(row), range(len(row)), "Dedup()")
    if names := column_names(row):
        return _checked_key(tuple([getattr(row, name) for name in names]), names, "Dedup()")
    return _checked_key((row,), ("row",), "Dedup()")[0]


def _checked_key(values: tuple[Any, ...], names: Sequence[Any], owner: str) -> tuple[Hashable, ...]:
    """The values as a key, in which all NaN are equal; refuses values that have no hash."""
    found: tuple[Hashable, ...] = one_key(values)
    try:
        hash(found)
    except TypeError as error:
        raise _unhashable(found, names, owner) from error
    return found


def _unhashable(values: tuple[Any, ...], names: Sequence[Any], owner: str) -> SchemaError:
    name, value = next(pair for pair in zip(names, values, strict=True) if not _hashable(pair[1]))
    msg = (
        f"{owner}: the value {value!r} of {attribute_text(name)!r} is a {type(value).__name__}, "
        f"which cannot be remembered. Name other columns, or a callable that gives a plain value."
    )
    return SchemaError(msg)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
