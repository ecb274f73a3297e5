"""What an event-time window keeps of a key's rows in one stretch of time: rows, or a partial.

Rows are kept in the order in which they came and read in the order of event time, equal timestamps
as they came. Where every function of the operator folds into a small state, whatever the order of
its values, the state is kept instead (`Partials`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from windowlib.durations import Number
from windowlib.summaries.source import Row, folder, merger, row_reader
from windowlib.summaries.summarizers import FoldSummary, Plan, Summarizer, new_summarizer


class Content:
    """The rows of one key in one slice."""

    __slots__ = ("born",)

    def __init__(self, born: int) -> None:
        self.born = born
        """The number of the arrival of the first row."""


class RowContent(Content):
    """Rows, with their timestamps."""

    __slots__ = ("ordered", "rows", "stamps")

    def __init__(self, born: int) -> None:
        super().__init__(born)
        self.stamps: list[Number] = []
        self.rows: list[Any] = []
        self.ordered = True


class FoldContent(Content):
    """The number of rows, and the states of all functions over them."""

    __slots__ = ("n", "row")

    def __init__(self, born: int, row: Row) -> None:
        super().__init__(born)
        self.n, self.row = 0, row


class ContentStore:
    """How the contents of slices are filled, merged and read; sequences are in order of time."""

    def new(self, born: int) -> Any:
        """An empty content."""
        raise NotImplementedError

    def add(self, content: Any, ts: Number, row: Any) -> None:
        """Add a row; one that is refused changes nothing."""
        raise NotImplementedError

    def absorb(self, content: Any, other: Any) -> None:
        """Merge another content into this one."""
        raise NotImplementedError

    def size(self, contents: Iterable[Any]) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def tuples(self, contents: Iterable[Any], start: int = 0) -> list[Any]:
        """The rows in order, from number `start` on."""
        raise NotImplementedError

    def before(self, content: Any, ts: Number, start: int) -> list[Any]:
        """The rows before a timestamp in order, from number `start` on."""
        raise NotImplementedError

    def value(self, key: Any, contents: Sequence[Any]) -> Any:
        """The value of the summarizer over the rows."""
        raise NotImplementedError

    def save(self, content: Any) -> list[Any]:
        """A content as plain data."""
        raise NotImplementedError

    def load(self, saved: Sequence[Any]) -> Any:
        """Restore what `save` returned."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """What is kept, for `explain`."""
        raise NotImplementedError


class RowContentStore(ContentStore):
    """Keeps rows; a summarizer, if there is one, sees them when the window fires."""

    def __init__(self, factory: Callable[[], Summarizer[Any]] | None, shown: str) -> None:
        self._factory, self._shown = factory, shown
        self._fold: tuple[Callable[..., Row], Callable[..., Any]] | None = None

    def new(self, born: int) -> RowContent:
        """An empty content."""
        return RowContent(born)

    def add(self, content: RowContent, ts: Number, row: Any) -> None:
        """Take a row."""
        if content.stamps and ts < content.stamps[-1]:
            content.ordered = False
        content.stamps.append(ts)
        content.rows.append(row)

    def absorb(self, content: RowContent, other: RowContent) -> None:
        """Merge another content into this one."""
        _sorted(other)  # so that what is appended in order need not be sorted with the rest
        apart = not content.stamps or not other.stamps or content.stamps[-1] <= other.stamps[0]
        content.ordered = content.ordered and other.ordered and apart
        content.stamps += other.stamps
        content.rows += other.rows
        content.born = min(content.born, other.born)

    def size(self, contents: Iterable[RowContent]) -> int:
        """How many rows there are."""
        return sum(len(content.rows) for content in contents)

    def tuples(self, contents: Iterable[RowContent], start: int = 0) -> list[Any]:
        """The rows in order, from number `start` on."""
        found: list[Any] = []
        for content in contents:
            rows = _sorted(content).rows
            found += rows[start:] if start else rows
            start = max(0, start - len(rows))
        return found

    def before(self, content: RowContent, ts: Number, start: int) -> list[Any]:
        """The rows before a timestamp in order, from number `start` on."""
        return _sorted(content).rows[start : bisect_left(content.stamps, ts)]

    def value(self, key: Any, contents: Sequence[RowContent]) -> Any:
        """The value of the summarizer over the rows."""
        rows = self.tuples(contents)
        assert self._factory is not None
        if isinstance(self._factory, Plan) and self._factory.slots and rows:
            return self._folded(self._factory, rows)
        summary = new_summarizer(self._factory)
        summary.open(key)
        for row in rows:
            summary.insert(row)
        summary.close()
        return summary.value()

    def _folded(self, plan: Plan, rows: list[Any]) -> Any:
        """The same by generated code."""
        if self._fold is None:
            self._fold = folder(plan, rows[0])[0], row_reader(plan)
        run, read = self._fold
        return read(len(rows), run(rows, plan.start))

    def save(self, content: RowContent) -> list[Any]:
        """A content as plain data."""
        _sorted(content)
        return [content.born, list(content.stamps), list(content.rows)]

    def load(self, saved: Sequence[Any]) -> RowContent:
        """Restore what `save` returned."""
        content = RowContent(saved[0])
        content.stamps, content.rows = list(saved[1]), list(saved[2])
        return content

    @property
    def text(self) -> str:
        """What is kept, for `explain`."""
        return "tuples" if self._factory is None else f"tuples, read by {self._shown}"


def _sorted(content: RowContent) -> RowContent:
    """A content with its rows in order; which rows came first only matters for equal stamps."""
    if not content.ordered:
        stamps, rows = content.stamps, content.rows
        order = sorted(range(len(stamps)), key=stamps.__getitem__)
        content.stamps, content.rows = [stamps[i] for i in order], [rows[i] for i in order]
        content.ordered = True
    return content


class FoldContentStore(ContentStore):
    """Folds rows into the states of ready-made functions."""

    def __init__(self, plan: Plan, shown: str) -> None:
        self._plan, self._shown = plan, shown
        self._start = plan.start
        self._merge, self._read = merger(plan), row_reader(plan)
        self._run: Callable[..., Row] | None = None

    def new(self, born: int) -> FoldContent:
        """An empty content."""
        return FoldContent(born, self._start)

    def add(self, content: FoldContent, ts: Number, row: Any) -> None:
        """Add a row; one that is refused changes nothing."""
        if self._run is None:
            self._run = folder(self._plan, row)[0]
        content.row = self._run((row,), content.row)
        content.n += 1

    def absorb(self, content: FoldContent, other: FoldContent) -> None:
        """Merge another content into this one."""
        content.row = self._merge(content.row, other.row)
        content.n += other.n
        content.born = min(content.born, other.born)

    def size(self, contents: Iterable[FoldContent]) -> int:
        """How many rows there are."""
        return sum(content.n for content in contents)

    def tuples(self, contents: Iterable[FoldContent], start: int = 0) -> list[Any]:
        """Never: the container refuses it."""
        raise NotImplementedError

    def value(self, key: Any, contents: Sequence[FoldContent]) -> Any:
        """The values of the functions over the rows."""
        if len(contents) == 1:
            return self._read(contents[0].n, contents[0].row)
        rows = [content.row for content in contents]
        return self._read(self.size(contents), reduce(self._merge, rows) if rows else self._start)

    def save(self, content: FoldContent) -> list[Any]:
        """A content as plain data."""
        return [content.born, content.n, self._plan.encode(content.row)]

    def load(self, saved: Sequence[Any]) -> FoldContent:
        """Restore what `save` returned."""
        content = FoldContent(saved[0], tuple(self._plan.decode(saved[2])))
        content.n = saved[1]
        self._plan.irregular = True  # unknown; this is merely slower to read
        return content

    @property
    def text(self) -> str:
        """What is kept, for `explain`."""
        return f"one partial per key and slice: {self._shown}"


def store_of(
    factory: Callable[[], Summarizer[Any]] | None, shown: str, merges: bool
) -> RowContentStore | FoldContentStore:
    """The store for the rows of a window; `merges`: whether contents are merged."""
    if isinstance(factory, Plan) and factory.slots and type(factory()) is FoldSummary:
        apart = all(fold.commutative and (fold.mergeable or not merges) for fold in factory.folds)
        if apart:
            return FoldContentStore(factory, shown)
    return RowContentStore(factory, shown)
