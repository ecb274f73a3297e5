"""The dimensions of a preference: the attribute of a row, and which direction is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from windowlib.attributes import Getter, brief, column_names
from windowlib.errors import ModelError, SchemaError, suggestion
from windowlib.operators.functions.value_order import comparable
from windowlib.operators.sort.ordering import SortKey, descending, sort_keys
from windowlib.spec.policies import attribute_text
from windowlib.window.consumer import Decline
from windowlib.window.subwindow import UNSET

if TYPE_CHECKING:
    from windowlib.columnar.arrays.columns import Column
    from windowlib.columnar.kernels.skyline import Points

Nan = Literal["error", "worst"]

EXACT = 1 << 53
"""Whole numbers up to here are exact as floats."""

MISSING = (1, 0)
"""The place of NaN and null: behind all values."""


class PointCloud(NamedTuple):
    """Rows as points, and what these are good for."""

    points: Points
    complete: bool
    """Whether no value is NaN or null."""
    absolute: bool
    """Whether coordinates compare with those of other rows, too; else with each other only."""


class Dimension:
    """One dimension: reads a row, and says how its values compare."""

    __slots__ = ("get", "key", "known", "owner")

    def __init__(self, key: SortKey, owner: str) -> None:
        self.key = key
        self.owner = f"{owner}({key!r})" if key.descending else f"{owner}({key.attribute!r})"
        self.get = Getter(key.attribute, self.owner)
        self.known: Any = UNSET  # the first value, which all others must compare with

    def values(self, rows: Sequence[Any]) -> list[Any]:
        """The values of some rows."""
        name = self.key.attribute
        if isinstance(name, str) and set(map(type, rows)) == {dict}:  # the common form
            return [row[name] for row in rows]
        return [self.get(row) for row in rows]

    def place(self, value: Any) -> tuple[int, Any]:
        """A key that compares as the value does: the smaller, the better."""
        if value is None or value != value:
            return MISSING
        return 0, descending(value) if self.key.descending else value

    def coordinates(self, values: Sequence[Any]) -> Any:
        """Finite floats that compare as the values of some rows do among each other."""
        import numpy as np

        if are_exact(values):
            found = np.array(values, np.float64)
            if np.isfinite(found).all():
                return -found if self.key.descending else found
        return self._ranks(values)

    def _ranks(self, values: Sequence[Any]) -> Any:
        """The rank of each value, the same for equal ones."""
        import numpy as np

        places = [self.place(value) for value in values]
        try:
            order = sorted(range(len(places)), key=places.__getitem__)
        except TypeError as error:
            raise self._mixed(values, error) from error
        found, rank = np.empty(len(places)), 0
        for before, number in zip([order[0], *order], order, strict=False):
            rank += places[before] < places[number]
            found[number] = rank
        return found

    def _mixed(self, values: Sequence[Any], error: Exception) -> Exception:
        """Why some values have no order."""
        there = [value for value in values if self.place(value) is not MISSING]
        for number, value in enumerate(there):
            for other in there[:number]:
                if not comparable(value, other):
                    return self.clash(value, other)
        return error

    def clash(self, value: Any, other: Any) -> SchemaError:
        """The error for two values that do not compare."""
        msg = (
            f"{self.owner}: the values {value!r} and {other!r} do not compare, so none is better. "
            f"Use one type for the whole stream, or a callable that gives numbers."
        )
        return SchemaError(msg)

    def missing(self, value: Any, row: Any) -> SchemaError:
        """The error for NaN or null."""
        name = attribute_text(self.key.attribute)
        msg = (
            f"{self.owner}: {name!r} is {value!r} in the row {brief(row)}, which is neither better "
            f'nor worse than a number. Say nan="worst", or drop such rows with a Filter.'
        )
        return SchemaError(msg)

    def column_coordinates(self, column: Column, out: Any) -> tuple[bool, bool]:
        """As `coordinates`, for the values of an Arrow column; may decline.

        Returns what a `PointCloud` says of all dimensions: whether it is complete, and absolute.
        """
        import numpy as np

        if is_exact_column(column):
            np.multiply(column.data, -1.0 if self.key.descending else 1.0, out=out)
            return True, True
        there = valid_mask(column)
        out[:] = len(out)
        if there.any():
            ranks = np.unique(column.order_keys()[there], return_inverse=True)[1]
            out[there] = -1.0 * ranks if self.key.descending else ranks
        return bool(there.all()), False

    def first(self, column: Column) -> Any:
        """The first value of a column that is there; UNSET if none is."""
        import pyarrow as pa

        plain = pa.types.is_float64(column.type) or pa.types.is_int64(column.type)
        if plain and len(column) and is_exact_column(column):
            return column.data[0].item()
        there = valid_mask(column)
        if not there.any():
            return UNSET
        place = int(there.argmax())
        return column.slice(place, place + 1).arrow().to_pylist()[0]


def are_exact(values: Sequence[Any]) -> bool:
    """Whether values are numbers that floats hold exactly.

    >>> are_exact([1, 2.5]), are_exact([2**60]), are_exact(["a"]), are_exact([None])
    (True, False, False, False)
    """
    kinds = set(map(type, values))
    if kinds <= {float}:
        return True
    if kinds == {int}:
        return bool(min(values) >= -EXACT and max(values) <= EXACT)
    if not kinds <= {float, int, bool}:
        return False
    return all(type(value) is float or -EXACT <= value <= EXACT for value in values)


def is_exact_column(column: Column) -> bool:
    """Whether a column has numbers alone, finite ones that floats hold exactly."""
    import numpy as np

    if column.valid is not None or not column.physical:
        return False
    if column.floating:
        return bool(np.isfinite(column.data).all())
    low, high = (column.data.min(), column.data.max()) if len(column) else (0, 0)
    return bool(low >= -EXACT and high <= EXACT)


def valid_mask(column: Column) -> Any:
    """A mask of the values of a column that are neither null nor NaN."""
    import numpy as np

    there = np.ones(len(column), bool) if column.valid is None else column.valid
    return there & ~np.isnan(column.data) if column.floating else there


class Dimensions:
    """All dimensions of an operator, with what becomes of NaN and null."""

    def __init__(self, owner: str, keys: Sequence[Any], nan: Nan) -> None:
        if not keys:
            msg = (
                f"{owner}(window): nothing to compare rows by. Name the dimensions, as "
                f'{owner}(window, "price", desc("rating")).'
            )
            raise ModelError(msg)
        if nan not in get_args(Nan):
            near = suggestion(nan, get_args(Nan))
            raise ModelError(f'{owner}(nan={nan!r}): say "error" or "worst".{near}')
        self.keys = sort_keys(owner, keys)
        for key in self.keys:
            if key.nulls != ("last" if key.descending else "first"):
                msg = (
                    f"{owner}({key!r}): nulls have no place of their own here. Drop `nulls=`; "
                    f'nan="worst" makes them worse than all values.'
                )
                raise ModelError(msg)
        self.nan = nan
        self.all = [Dimension(key, owner) for key in self.keys]

    def __len__(self) -> int:
        return len(self.all)

    def __str__(self) -> str:
        ways = ("smallest", "largest")
        return ", ".join(f"{ways[k.descending]} {attribute_text(k.attribute)}" for k in self.keys)

    def check(self, row: Any) -> None:
        """Refuse a row that does not compare with the others, before it goes anywhere."""
        for dimension in self.all:
            value, known = dimension.get(row), dimension.known
            if value is None or value != value:
                if self.nan == "error":
                    raise dimension.missing(value, row)
            elif type(value) is not float or type(known) is not float:
                if not comparable(value, value if known is UNSET else known):
                    raise dimension.clash(value, value if known is UNSET else known)
                if known is UNSET:
                    dimension.known = value

    def points(self, rows: Sequence[Any]) -> Points:
        """Rows as points."""
        import numpy as np

        found = np.empty((len(self.all), len(rows)))
        for number, dimension in enumerate(self.all if rows else ()):
            found[number] = dimension.coordinates(dimension.values(rows))
        return found

    def cloud(self, rows: Any) -> PointCloud:
        """Rows as points, given their columns; declines what only Python can read."""
        import numpy as np

        columns = self._columns(rows)
        points = np.empty((len(columns), len(columns[0])))
        said = [
            dimension.column_coordinates(column, out)
            for dimension, column, out in zip(self.all, columns, points, strict=True)
        ]
        return PointCloud(
            points, all(complete for complete, _ in said), all(same for _, same in said)
        )

    def _columns(self, rows: Any) -> list[Column]:
        import pyarrow as pa

        from windowlib.columnar.inputs import Inputs

        inputs = Inputs(rows)
        found = [inputs.read(dimension.key.attribute)[0] for dimension in self.all]
        for column in found:
            if pa.types.is_nested(column.type):
                raise Decline(f"{column.type} has no order")
        return found

    def guard(self, batch: Any) -> None:
        """Decline a batch in which a row may be refused; the rows after it must compare with it."""

        firsts = []
        for dimension, column in zip(self.all, self._columns(batch), strict=True):
            if self.nan == "error" and not is_exact_column(column) and not valid_mask(column).all():
                raise Decline(f"NaN or null in {attribute_text(dimension.key.attribute)}")
            first = dimension.first(column)
            if first is UNSET:
                continue
            if not comparable(first, first if dimension.known is UNSET else dimension.known):
                raise Decline("values that do not compare with earlier ones")
            firsts.append((dimension, first))
        for dimension, first in firsts:
            if dimension.known is UNSET:
                dimension.known = first

    # -- state: without it, what is refused would depend on restarts ------------------------------

    def snapshot(self) -> list[list[Any]]:
        """The values that all others have to compare with."""
        return [[] if each.known is UNSET else [each.known] for each in self.all]

    def restore(self, state: Iterable[list[Any]]) -> None:
        """Take back what `snapshot` gave."""
        for dimension, known in zip(self.all, state, strict=True):
            dimension.known = known[0] if known else UNSET


def check_added(owner: str, added: Mapping[str, str], columns: Iterable[str]) -> None:
    """Refuse rows with a column that is called like one that the operator adds."""
    there = set(columns)
    for parameter, name in added.items():
        if name in there:
            msg = (
                f"{owner}({parameter}={name!r}): the rows have a column of that name already. Use "
                f"another one, such as {parameter}={name + '_'!r}."
            )
            raise SchemaError(msg)


def columns_in(row: Any) -> Iterable[str]:
    """The names of the columns of a row."""
    return row if isinstance(row, Mapping) else column_names(row)
