"""Skyline, KDominantSkyline, TopDelta and TopK: the best rows of a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windowlib.errors import ModelError
from windowlib.operators.preference.dimensions import Nan
from windowlib.operators.preference.preference import (
    Dimension,
    PartialWindows,
    Preference,
    check_names,
    check_number,
)
from windowlib.operators.preference.preference_rules import (
    DeltaRule,
    DominantRule,
    PreferenceRule,
    SmallestRule,
)
from windowlib.operators.sort.ordering import SortKey, desc
from windowlib.spec.specification import By, Spec


class Skyline(Preference):
    """The rows of a window that no other row beats: the skyline.

    A row *dominates* another if it is nowhere worse and somewhere better. What no row dominates
    comes out, as it went in and in order of arrival, followed by a punctuation. Equal rows do not
    dominate one another, so all of them come out.

    Args:
        window: any window: tumbling or sliding, partitioned or not.
        dimensions: columns, indexes, callables or expressions; smaller is better, and larger with
            `desc("rating")`.
        by: the partition key, if the window does not name one.
        partial: for sliding windows: "skip" (the default) gives nothing until the window has been
            full once, "emit" answers at every trigger.
        flush_at_end: for tumbling windows: whether what they hold when the input ends comes out.
        nan: what becomes of NaN and null: "error" refuses the row, "worst" makes them worse than
            every value, infinity included, and equal to one another.
        name: what messages and graphs call it.

    >>> from windowlib.operators import Skyline, desc
    >>> from windowlib import Count, Tumbling, replay
    >>> offers = [{"price": 90, "stars": 3}, {"price": 120, "stars": 3}, {"price": 150, "stars": 5}]
    >>> list(replay(Skyline(Tumbling(Count(3)), "price", desc("stars")), offers))
    [{'price': 90, 'stars': 3}, {'price': 150, 'stars': 5}]
    """

    _rule = PreferenceRule()


class KDominantSkyline(Preference):
    """The rows of a window that no other row beats in k dimensions.

    A row *k-dominates* another if in k dimensions it is not worse, and in one of these better.
    With k = all dimensions this is the skyline; with a smaller k fewer rows are left, or none,
    because rows may k-dominate one another in a circle.

    Args:
        window: any window: tumbling or sliding, partitioned or not.
        dimensions: as for `Skyline`.
        k: in how many dimensions, from 1 to all of them.
        by: as for `Skyline`, as are all others.
        partial: see `Skyline`.
        flush_at_end: see `Skyline`.
        nan: see `Skyline`.
        name: what messages and graphs call it.

    >>> from windowlib.operators import KDominantSkyline
    >>> from windowlib import Count, Tumbling, replay
    >>> rows = [{"x": 1, "y": 1, "z": 9}, {"x": 2, "y": 2, "z": 2}, {"x": 9, "y": 9, "z": 1}]
    >>> list(replay(KDominantSkyline(Tumbling(Count(3)), "x", "y", "z", k=2), rows))
    [{'x': 1, 'y': 1, 'z': 9}]
    """

    def __init__(
        self,
        window: Spec | str,
        *dimensions: Dimension,
        k: int,
        by: By | Sequence[str] | None = None,
        partial: PartialWindows | None = None,
        flush_at_end: bool = False,
        nan: Nan = "error",
        name: str | None = None,
    ) -> None:
        super().__init__(
            window,
            *dimensions,
            by=by,
            partial=partial,
            flush_at_end=flush_at_end,
            nan=nan,
            name=name,
        )
        check_number(type(self).__name__, "k", k, len(dimensions))
        self._rule = DominantRule(k)


class TopDelta(Preference):
    """The delta rows of a window that are hardest to beat.

    The *factor* of a row is the largest k for which another row k-dominates it (see
    `KDominantSkyline`), 0 if none does. The rows with the smallest factors come out, in order of
    arrival, each with two more columns: `factor`, and `k`, the smallest k whose k-dominant
    skyline holds all of them. Rows that are dominated never come out, so there may be fewer.

    Args:
        window: any window: tumbling or sliding, partitioned or not.
        dimensions: as for `Skyline`.
        delta: how many rows.
        exact: True: exactly so many, of rows with equal factors those that came first. False: the
            smallest k-dominant skyline that has at least so many.
        factor: the name of the column with the factor.
        k: the name of the column with k.
        by: as for `Skyline`, as are all others.
        partial: see `Skyline`.
        flush_at_end: see `Skyline`.
        nan: see `Skyline`.
        name: what messages and graphs call it.

    >>> from windowlib.operators import TopDelta
    >>> from windowlib import Count, Tumbling, replay
    >>> rows = [{"x": 1, "y": 1, "z": 9}, {"x": 2, "y": 2, "z": 2}, {"x": 9, "y": 9, "z": 1}]
    >>> list(replay(TopDelta(Tumbling(Count(3)), "x", "y", "z", delta=1), rows))
    [{'x': 1, 'y': 1, 'z': 9, 'factor': 1, 'k': 2}]
    """

    def __init__(
        self,
        window: Spec | str,
        *dimensions: Dimension,
        delta: int,
        exact: bool = True,
        factor: str = "factor",
        k: str = "k",
        by: By | Sequence[str] | None = None,
        partial: PartialWindows | None = None,
        flush_at_end: bool = False,
        nan: Nan = "error",
        name: str | None = None,
    ) -> None:
        super().__init__(
            window,
            *dimensions,
            by=by,
            partial=partial,
            flush_at_end=flush_at_end,
            nan=nan,
            name=name,
        )
        check_number(type(self).__name__, "delta", delta)
        check_names(type(self).__name__, {"factor": factor, "k": k})
        self._added = {"factor": factor, "k": k}
        if not isinstance(exact, bool):
            raise ModelError(f"TopDelta(exact={exact!r}): say True or False.")
        self.exact = exact
        self._rule = DeltaRule(delta, exact)


class TopK(Preference):
    """The k rows of a window with the highest score.

    They come out as they went in and in order of arrival, followed by a punctuation; of equal
    ones those that came first. `Sort(..., limit=k)` gives the same rows of tumbling windows in
    the order of the score.

    Args:
        window: any window: tumbling or sliding, partitioned or not.
        by: the score: a column, index, callable or expression. Larger is better, unlike in the
            dimensions of the others; with `asc("price")` smaller is.
        k: how many rows.
        partial: see `Skyline`, as all others.
        flush_at_end: see `Skyline`.
        nan: see `Skyline`.
        name: what messages and graphs call it.

    >>> from windowlib.operators import TopK, asc, col
    >>> from windowlib import Count, Tumbling, replay
    >>> rows = [{"id": id, "qty": qty, "price": 2} for id, qty in enumerate((3, 9, 4))]
    >>> top = TopK(Tumbling(Count(3)), by=col("qty") * col("price"), k=2)
    >>> [row["id"] for row in replay(top, rows)]
    [1, 2]
    >>> [row["id"] for row in replay(TopK(Tumbling(Count(3)), by=asc("qty"), k=1), rows)]
    [0]
    """

    def __init__(
        self,
        window: Spec | str,
        *,
        by: Dimension,
        k: int,
        partial: PartialWindows | None = None,
        flush_at_end: bool = False,
        nan: Nan = "error",
        name: str | None = None,
    ) -> None:
        super().__init__(
            window,
            by if isinstance(by, SortKey) else desc(by),
            partial=partial,
            flush_at_end=flush_at_end,
            nan=nan,
            name=name,
        )
        check_number(type(self).__name__, "k", k)
        self._rule = SmallestRule(k)

    def notes(self) -> Iterable[tuple[str, str]]:
        """The preferred values, and the algorithm."""
        yield "best", str(self.dimensions)
        yield "method", "the k best of each firing by a partial sort"
