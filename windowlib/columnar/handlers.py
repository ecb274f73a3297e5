"""Handlers that read columns: they are called with a view of the rows they fire for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from windowlib.batched import no_column
from windowlib.columnar.failed import Failed
from windowlib.columnar.firings import Firings
from windowlib.columnar.rows import Rows
from windowlib.errors import AccessError
from windowlib.spec import Spec

if TYPE_CHECKING:
    from windowlib.window import Window


class View:
    """One firing, as its handler sees the window: the partition that it was called for."""

    def __init__(self, window: Window[Any, Any], rows: Rows) -> None:
        self._window, self._rows = window, rows
        self._whole: dict[str, Any] = {}
        self._batch: pa.RecordBatch | None = None
        self._key: Any = None
        self._lo = self._hi = 0

    @property
    def spec(self) -> Spec:
        """The specification of the window."""
        return self._window.spec

    @property
    def now(self) -> float:
        """The window's time in seconds."""
        return self._window.now

    def column(self, name: str, key: Any = None) -> Any:
        """The values of a column, as a numpy array that shares their memory if it can."""
        if key is not self._key:
            self._check(key)
        found = self._whole.get(name)
        if found is None:
            found = self._whole[name] = _shared(self._rows, name)
        if isinstance(found, pa.Array):
            return found.slice(self._lo, self._hi - self._lo).to_numpy(zero_copy_only=False)
        return found[self._lo : self._hi]

    def arrow(self, key: Any = None) -> pa.RecordBatch:
        """The rows as an Arrow batch that shares their memory."""
        self._check(key)
        if self._batch is None:
            columns = {name: self._rows[name].arrow() for name in self._rows}
            self._batch = pa.record_batch(columns)
        return self._batch.slice(self._lo, self._hi - self._lo)

    def __getitem__(self, key: Any) -> list[Any]:
        found: list[Any] = self.arrow(key).to_pylist()
        return found

    def size(self, key: Any = None) -> int:
        """How many tuples it holds."""
        self._check(key)
        return self._hi - self._lo

    def _check(self, key: Any) -> None:
        if key is not self._key and key != self._key:
            msg = (
                f"window, key {key!r}: a handler with content='arrow' is called for "
                f"{self._key!r} and may read that partition only. Pass the key that it got, or say "
                f"content='tuples'."
            )
            raise AccessError(msg)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # what Python itself asks for
            raise AttributeError(name)
        msg = (
            f"window.{name}: a handler with content='arrow' has column, arrow, size, spec and now. "
            f"Use these, or say content='tuples'."
        )
        raise AccessError(msg)


def _shared(rows: Rows, name: str) -> Any:
    """A whole column as numpy, or as Arrow where nulls make its type depend on the slice."""
    if name not in rows.names:
        raise AccessError(no_column(name, rows.names))
    array = rows[name].arrow()
    return array if array.null_count else array.to_numpy(zero_copy_only=False)


def caller(window: Window[Any, Any], handler: Callable[..., None]) -> Callable[[Firings], None]:
    """What tells a handler of all firings of a batch."""

    def call(firings: Firings) -> None:
        view = View(window, firings.content)
        pairs = zip(
            firings.python_keys(),
            firings.lo.tolist(),
            firings.hi.tolist(),
            firings.rows.tolist(),
            strict=True,
        )
        times = None if firings.times is None else firings.times.tolist()
        cause = None if window._batches is None else window._batches.cause
        for at, (key, lo, hi, row) in enumerate(pairs):
            view._key, view._lo, view._hi = key, lo, hi
            if times is not None:
                window._now = times[at]
            if cause is not None:
                cause(row)
            try:
                handler(view, key)
            except Exception as error:
                raise Failed(row, error) from error

    return call
