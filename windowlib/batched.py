"""Whole Arrow batches into a window; the arrays themselves are in `windowlib.columnar`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from windowlib.errors import SchemaError

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings
    from windowlib.columnar.host import Batches


class Batched:
    """The half of a window that takes batches, and knows where its state is."""

    _ahead = False  # whether the state is in arrays, and the subwindows are behind
    _batches: Batches | None = None
    _consumer: Callable[[Firings], None] | None = None  # is told of firings instead of handlers
    _partial = True  # whether it is told of windows that have never been full, too
    _on: Mapping[str, Callable[..., Any]]

    def insert_batch(self, batch: Any) -> None:
        """Take the rows of an Arrow batch or table in order: `insert` for each, only faster.

        Rows count as dicts. Where array arithmetic gives exactly what inserting them one by one
        would give, whole columns are worked on at once; `explain()` says which.

        Args:
            batch: a `pyarrow.RecordBatch` or `pyarrow.Table`.

        >>> import pyarrow as pa
        >>> from windowlib import Count, TumblingWindow, summarizers
        >>> window = TumblingWindow(evict=Count(3), summarizer=summarizers.sum("x"))
        >>> window.insert_batch(pa.table({"x": [1, 2, 3, 4, 5]}))
        >>> window.size(), window.summary().value()
        (2, 9)
        """
        for part in record_batches(batch, "insert_batch"):
            self._host().insert(part)

    def _host(self) -> Batches:
        if self._batches is None:
            from windowlib.columnar.host import Batches

            self._batches = Batches(self)  # type: ignore[arg-type]  # Window is the only subclass
        return self._batches

    def _settle(self) -> None:
        """Bring the subwindows up to date: somebody is going to look at them."""
        if self._ahead:
            assert self._batches is not None
            self._batches.settle()

    def _lead(self, ahead: bool) -> None:
        """Say where the state is; inserts of single tuples then find out by themselves."""
        self._ahead = ahead
        if ahead and "_clock" not in self.__dict__:
            for name in ("insert", "insert_many"):
                self.__dict__.pop(name, None)

    def _rehandled(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        """Call other handlers from now on."""
        self._on = handlers
        self._before_flush = handlers.get("before_flush")
        self._after_flush = handlers.get("after_flush")
        self._reset_insert()

    def _reset_insert(self) -> None:
        raise NotImplementedError


def record_batches(batch: Any, call: str) -> list[Any]:
    """An Arrow batch or table as record batches that hold at least one row."""
    if hasattr(batch, "to_batches"):
        found = batch.to_batches()
    elif hasattr(batch, "to_pylist") and hasattr(batch, "schema"):
        found = [batch]
    else:
        kind = type(batch).__name__
        msg = (
            f"{call}({kind}): not an Arrow batch. Pass a pyarrow.RecordBatch or Table; rows go in "
            f"with insert_many."
        )
        raise SchemaError(msg)
    return [part for part in found if part.num_rows]
