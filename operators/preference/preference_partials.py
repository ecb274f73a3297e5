"""Partial results: the rows of a part of a window that can be in the answer of the whole.

A window may be divided in any way: by time, or row by row in turn. The rows that a partial leaves
out can be in no answer, and change none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.errors import SchemaError
from windowlib.extensions import extension
from windowlib.operators.preference.dimensions import Dimensions, PointCloud, check_added
from windowlib.operators.preference.preference_rules import PreferenceRule
from windowlib.spec.policies import attribute_text
from windowlib.window.arrow import joined
from windowlib.window.consumer import Decline
from windowlib.window.state_bytes import dump_state, load_state

if TYPE_CHECKING:
    from windowlib.columnar.kernels.skyline import Places, Points

SPARE = 4
"""Rows that are not concatenated yet hold up to so many times as many as there are."""


class _Rows:
    """Rows at some places of batches, concatenated when they are read."""

    __slots__ = ("batches", "places")

    def __init__(self, batches: Sequence[Any], places: Places | None = None) -> None:
        self.batches, self.places = batches, places

    def batch(self) -> Any:
        """The rows, as one batch."""
        import pyarrow as pa

        if self.places is not None:
            whole = joined(self.batches)
            rows = extension("gather_rows")(whole, pa.array(self.places))
            self.batches, self.places = [rows], None
        return self.batches[0]

    @classmethod
    def concatenated(cls, parts: Sequence[_Rows], lengths: Sequence[int], chosen: Places) -> _Rows:
        """Rows of several partials, by their places in the concatenation."""
        import numpy as np

        batches = [batch for part in parts for batch in part.batches]
        base = sum(batch.num_rows for batch in batches)
        if any(part.places is not None for part in parts):
            found, before = [], 0
            for part, length in zip(parts, lengths, strict=True):
                found.append(before + (np.arange(length) if part.places is None else part.places))
                before += sum(batch.num_rows for batch in part.batches)
            chosen = np.concatenate(found)[chosen]
        rows = cls(batches, chosen)
        if base > SPARE * len(chosen) + SPARE:
            rows.batch()  # so that what is left out is not kept alive
        return rows


class Partial:
    """The rows of a part of a window that can be in the answer; it can be pickled.

    Most of the rows that come out of a merge only go into the next one, so rows are concatenated
    when they are read.
    """

    __slots__ = ("_rows", "arrivals", "factors", "points")

    def __init__(
        self, rows: Any, arrivals: Any, factors: Any = None, points: Points | None = None
    ) -> None:
        self._rows = rows if isinstance(rows, _Rows) else _Rows([rows])
        self.arrivals = arrivals
        """The arrival number of each row, as an array of int64."""
        self.factors = factors
        """Its dominance factor within the part, if the operator asks for factors."""
        self.points = points
        """The rows as points, if their coordinates compare with those of all other rows."""

    @property
    def rows(self) -> Any:
        """The rows that may be in the answer: a `pyarrow.RecordBatch`, in order of arrival."""
        return self._rows.batch()

    @property
    def schema(self) -> Any:
        """The columns of the rows."""
        return self._rows.batches[0].schema

    def __len__(self) -> int:
        return len(self.arrivals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partial):
            return NotImplemented
        return self._content() == other._content() and bool(self.rows == other.rows)

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> tuple[Any, ...]:
        """What equality compares besides the rows."""
        return self.arrivals.tolist(), None if self.factors is None else self.factors.tolist()

    def saved(self) -> tuple[Any, Any, Any]:
        """The partial as plain data: its rows, arrivals and factors."""
        return self.rows, self.arrivals, self.factors  # points can be found again

    def __reduce__(self) -> Any:
        return Partial, self.saved()

    def shifted(self, first: int) -> Partial:
        """A copy with arrival numbers increased by `first`."""
        return Partial(self._rows, self.arrivals + first, self.factors, self.points)


def renumbered(parts: Iterable[Partial]) -> Iterator[Partial]:
    """Parts whose arrival numbers follow those of the part before."""
    first = 0
    for part in parts:
        yield part.shifted(first)
        first += int(part.arrivals[-1]) + 1 if len(part) else 0


class Partials:
    """The work of an operator on parts of a window; `operator.partials` makes it.

    >>> import pyarrow as pa
    >>> from windowlib.operators import Skyline
    >>> from windowlib import Count, Tumbling
    >>> partials = Skyline(Tumbling(Count(4)), "price", "km").partials
    >>> one = partials.of(pa.record_batch({"price": [5, 9], "km": [2, 2]}), 0)
    >>> other = partials.of(pa.record_batch({"price": [4, 6], "km": [2, 1]}), 2)
    >>> partials.rows(partials.merge(one, other)).to_pylist()
    [{'price': 4, 'km': 2}, {'price': 6, 'km': 1}]
    """

    def __init__(
        self, owner: str, dimensions: Dimensions, rule: PreferenceRule, added: Mapping[str, str]
    ) -> None:
        self._owner, self._dimensions, self._rule, self._added = owner, dimensions, rule, added

    def of(self, rows: Any, first: int | Iterable[int] = 0) -> Partial:
        """The partial result of some rows.

        Args:
            rows: a `pyarrow.RecordBatch` or `Table`, or columns by name.
            first: the arrival number of the first row, if the others follow one by one; or that
                of each row, ascending.
        """
        import pyarrow as pa

        batch = as_batch(rows)
        check_added(self._owner, self._added, batch.schema.names)
        numbers = self._arrivals(first, batch.num_rows)
        points, _, absolute = self._cloud(batch)
        places = self._rule.survivors(points)
        points = points.take(places, axis=1)
        factors = self._rule.factors(points) if self._rule.factored else None
        kept = points if absolute else None
        rows = extension("gather_rows")(batch, pa.array(places))
        return Partial(rows, numbers.take(places), factors, kept)

    def dump(self, part: Partial) -> bytes:
        """A partial result as bytes, to be stored or sent; see `windowlib.dump_state`."""
        return dump_state(part.saved())

    def load(self, data: bytes) -> Partial:
        """The partial result that `dump` wrote."""
        return Partial(*load_state(data))

    def _arrivals(self, first: Any, rows: int) -> Any:
        import numpy as np

        if isinstance(first, int):
            return np.arange(first, first + rows, dtype=np.int64)
        numbers = np.array(list(first), np.int64)
        if len(numbers) != rows or (numbers[1:] <= numbers[:-1]).any():
            msg = (
                f"{self._owner}.partials.of(rows, first=...): {len(numbers)} arrival numbers for "
                f"{rows} rows. Give one per row, ascending, or that of the first row."
            )
            raise SchemaError(msg)
        return numbers

    def merge(self, one: Partial, *others: Partial) -> Partial:
        """The partial result of the rows of all; in which order they come makes no difference."""
        import numpy as np

        parts = [one, *others]
        lengths = [len(each) for each in parts]
        numbers = np.concatenate([each.arrivals for each in parts])
        part = np.repeat(np.arange(len(parts)), lengths)
        points, absolute = self._points(parts)
        order = None
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers, part, points = numbers[order], part[order], points.take(order, axis=1)
        places = self._rule.merged_survivors(points, part)
        points = points.take(places, axis=1)
        chosen = places if order is None else order[places]
        factors = None
        if self._rule.factored:
            known = np.concatenate([each.factors for each in parts])[chosen]
            factors = self._rule.merged_factors(points, part[places], known)
        rows = _Rows.concatenated([each._rows for each in parts], lengths, chosen)
        return Partial(rows, numbers[places], factors, points if absolute else None)

    def _points(self, parts: Sequence[Partial]) -> tuple[Points, bool]:
        """The rows of several parts as points; and whether these compare with others, too."""
        import numpy as np

        schema = parts[0].schema
        for each in parts:
            if each.points is None:  # it comes from elsewhere
                cloud = self._cloud(each.rows)
                each.points = cloud.points if cloud.absolute else None
            if each.points is None or not each.schema.equals(schema):
                cloud = self._cloud(joined([part.rows for part in parts]))
                return cloud.points, cloud.absolute
        return np.concatenate([each.points for each in parts], axis=1), True

    def rows(self, partial: Partial) -> Any:
        """The rows that the operator sends for a window of which this is the result."""
        import pyarrow as pa

        if not self._rule.factored:
            return partial.rows
        places, more = self._rule.select(partial.factors, len(self._dimensions))
        found = extension("gather_rows")(partial.rows, pa.array(places))
        for name, values in zip(self._added.values(), more, strict=True):
            found = found.append_column(name, pa.array(values))
        return found

    def _cloud(self, batch: Any) -> PointCloud:

        dimensions = self._dimensions
        try:
            cloud = dimensions.cloud(batch)
            if dimensions.nan == "worst" or cloud.complete:
                return cloud
        except Decline:  # what only Python can read
            pass
        rows = batch.to_pylist()
        for row in rows:
            dimensions.check(row)
        return PointCloud(dimensions.points(rows), True, False)


def as_batch(rows: Any) -> Any:
    """Rows as one Arrow batch: a batch, a table, or columns by name."""
    import pyarrow as pa

    if isinstance(rows, pa.RecordBatch):
        return rows
    if isinstance(rows, pa.Table):
        empty = pa.RecordBatch.from_pylist([], schema=rows.schema)
        return pa.concat_batches([empty, *rows.to_batches()])
    if isinstance(rows, Mapping):
        return pa.record_batch(dict(rows))
    msg = f"partials.of({attribute_text(type(rows))}): not columns. Pass an Arrow batch or a dict."
    raise SchemaError(msg)
