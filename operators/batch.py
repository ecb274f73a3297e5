"""Batch: rows collected into lists, for work that is cheaper in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from windowlib.errors import ModelError
from windowlib.operators.aggregate.output_columns import key_names
from windowlib.operators.arguments import check_callable, function_text, many_rows, window_of
from windowlib.operators.arrow_output import pass_through_schema, schema_with, type_of
from windowlib.operators.base import Partitioned, each_partition, unchanged
from windowlib.runtime.model import OperatorModel
from windowlib.spec.policies import Count, PartitionEviction, Policy
from windowlib.spec.specification import By, Tumbling


class Batch(Partitioned):
    """One row for each full window: its key, its rows as a list, and their number.

    Every batch is followed by a punctuation; a window that ends without rows gives that alone.
    No row gets lost: a partition that is evicted is sent before it goes, and at the end of input
    the rest is sent, full or not.

    Args:
        policy: when a batch is full: `Count(500)`, `Time("5s")`, `Count(500) | Time("5s")`,
            `Delta(...)`, `Event(...)` or `Punct()`; or a whole specification, as a `Session`.
        by: collect by key: a column, several, or a callable.
        forget: `PartitionCount`, `TupleCount` or `PartitionAge`, which close batches early.
        rows: the name of the column with the list.
        n: the name of the column with their number.
        function: called with the list of rows; the rows it gives are sent in place of the batch.
        flush_at_end: whether what is collected at the end of input is sent.
        name: what messages and graphs call it.

    >>> from windowlib import Count, Time, replay
    >>> batches = Batch(Count(2) | Time("5s"), by="host")
    >>> list(replay(batches, [{"host": "a", "x": 1}, {"host": "a", "x": 2}], times="x"))
    [{'host': 'a', 'rows': [{'host': 'a', 'x': 1}, {'host': 'a', 'x': 2}], 'n': 2}]
    >>> scored = Batch(Count(2), function=lambda rows: [{"sum": sum(t["x"] for t in rows)}])
    >>> list(replay(scored, [{"x": 1}, {"x": 2}, {"x": 5}]))
    [{'sum': 3}, {'sum': 5}]
    """

    model = OperatorModel(
        windows=[Tumbling], punctuation_in="window_bound", punctuation_out="generating"
    )

    def __init__(
        self,
        policy: Policy | Tumbling,
        *,
        by: By | Sequence[str] | None = None,
        forget: PartitionEviction | None = None,
        rows: str = "rows",
        n: str = "n",
        function: Callable[[list[Any]], Iterable[Any]] | None = None,
        flush_at_end: bool = True,
        name: str | None = None,
    ) -> None:
        if policy == Count(0):
            raise ModelError("Batch(Count(0)): no batch has 0 rows. Use Count(1) or more.")
        if function is not None:
            check_callable(function, f"Batch(function={function!r})", "function=send_rows")
        self.function, self.flush_at_end = function, flush_at_end
        if isinstance(policy, Tumbling):
            spec: Any = window_of("Batch", "policy", policy, by)
            spec = spec if forget is None else replace(spec, forget=forget)
        else:
            spec = Tumbling(policy, by=by, forget=forget)
        self._keys = key_names(spec.by)
        self._columns = (rows, n)
        names = [*self._keys, rows, n]
        twice = next((each for each in names if names.count(each) > 1), None)
        if twice is not None and function is None:
            msg = f"Batch(...): two output columns are called {twice!r}. Use rows= or n= to rename."
            raise ModelError(msg)
        super().__init__(spec, name=name)

    def before_flush(self, window: Any, key: Any) -> None:
        """A batch is full, or its time is over."""
        if window.size(key):
            self._send(window, key)
        self._puncts[0]()

    def on_empty_punctuation(self, window: Any) -> None:
        """A punctuation closes a batch without rows."""
        self._puncts[0]()

    def on_partitions_evicted(self, window: Any, keys: Sequence[Any]) -> None:
        """Send the batches of partitions before these are evicted."""
        each_partition(window, keys, lambda key: self.before_flush(window, key))

    def on_finish(self) -> None:
        """Send the rest."""
        window = self.containers[0]
        assert window is not None
        if not self.flush_at_end:
            super().on_finish()
            return
        each_partition(window, window.keys(), lambda key: self.before_flush(window, key))

    def schema(self, *columns: Any) -> Any:
        """The schema in `output`; else the key, a list of rows, and a number."""
        import pyarrow as pa

        declared, (given,), (spec,) = super().schema(*columns), columns, self.windows
        if declared is not None or self.function is not None or given is None or spec is None:
            return declared
        by = spec.by if isinstance(spec.by, tuple) else (spec.by,)
        keys = [(name, type_of(part, given)) for name, part in zip(self._keys, by, strict=False)]  # type: ignore[arg-type]
        rows, n = self._columns
        listed = pa.list_(pa.struct(list(pass_through_schema(given))))
        return schema_with([*keys, (rows, listed), (n, pa.int64())])

    def passes(self, column: str, port: int) -> bool:
        """The key, unless a function makes the rows."""
        return self.function is None and column in self._keys and unchanged(self)

    def _send(self, window: Any, key: Any) -> None:
        rows = list(window[key])
        if self.function is None:
            listed, n = self._columns
            parts = key if isinstance(window.spec.by, tuple) else (key,)
            made = dict(zip(self._keys, parts, strict=False))  # no names if there is no key
            self._outputs[0](made | {listed: rows, n: len(rows)})
            return
        owner = f"{self.name}(function={function_text(self.function)})"
        for row in many_rows(self.function(rows), owner, rows):
            self._outputs[0](row)
