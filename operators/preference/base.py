"""What the operators of this package have in common: the best rows of every firing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from operators.columns import as_dict
from operators.passing import Passing, send_firings
from operators.preference.checks import check_options, check_window
from operators.preference.dimensions import Dimensions, Nan, check_added, names_of
from operators.preference.partials import Partial, Partials, one_behind_the_other
from operators.preference.rules import Rule
from operators.splitting import Partitioned, unchanged
from operators.windows import each_partition, window_of
from windowlib.dicts import dict_rows
from windowlib.hosted import FunctionKind
from windowlib.model import OperatorModel
from windowlib.operator import Operator
from windowlib.policies import Attribute, Delta, Time
from windowlib.spec import By, Sliding, Spec, Tumbling
from windowlib.window import Window

if TYPE_CHECKING:
    from windowlib.columnar.dominance import Points
    from windowlib.columnar.firings import Firings

PartialWindows = Literal["skip", "emit"]


class Comparing(Partitioned, Passing):
    """Sends rows on that it has compared with others, with some more columns or as they are."""

    dimensions: Dimensions
    _added: Mapping[str, str] = {}  # columns that rows get, by the parameters that name them
    _numbers = True  # whether these are whole numbers; else they are texts

    @classmethod
    def _kind(cls) -> str:
        return cls.__name__

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The dimensions, besides what the window reads."""
        yield from super().reads(port)
        for dimension in self.dimensions.all:
            yield dimension.key.attribute, dimension.owner

    def schema(self, *columns: Any) -> Any:
        """The columns of the input, and those that are added."""
        import pyarrow as pa

        found = super().schema(*columns)
        if found is None or not self._added:
            return found
        check_added(self._kind(), self._added, found.names)
        kind = pa.int64() if self._numbers else pa.string()
        for name in self._added.values():
            found = found.append(pa.field(name, kind))
        return found

    def passes(self, column: str, port: int) -> bool:
        """Whatever was there before."""
        return column not in self._added.values() and super().passes(column, port)

    def _check(self, row: Any) -> None:
        """Refuse a row that does not compare with the others, or has a column that is added."""
        self.dimensions.check(row)
        if self._added:
            check_added(self._kind(), self._added, names_of(row))

    def snapshot(self) -> Any:
        """The values that tell which others compare with them."""
        return self.dimensions.snapshot()

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self.dimensions.restore(state)


class Preference(Comparing):
    """Sends the best rows of every firing, in order of arrival, and a punctuation."""

    model = OperatorModel(
        windows=[Tumbling, Sliding], punctuation_in="window_bound", punctuation_out="generating"
    )
    function_kind: ClassVar[FunctionKind] = "associative"
    _rule: Rule

    def __init__(
        self,
        window: Spec | str,
        dimensions: Sequence[Any],
        *,
        by: By | Sequence[str] | None,
        partial: PartialWindows | None,
        flush_at_end: bool,
        nan: Nan,
        name: str | None,
    ) -> None:
        kind = self._kind()
        spec = window_of(kind, "window", window, by)
        self.dimensions = Dimensions(kind, dimensions, nan)
        self.partial = partial or getattr(spec, "partial", None) or "skip"
        self.flush_at_end = flush_at_end
        super().__init__(spec, name=name)
        check_window(kind, spec)
        check_options(kind, spec, partial, flush_at_end)
        if isinstance(spec, Sliding):
            self.__dict__["on_trigger"] = self._triggered
            if isinstance(spec.evict, Delta) and self.partial == "skip":
                # A delta window knows that it is full in time for its trigger only if asked.
                self.__dict__["on_initial_full"] = lambda window, key: None

    # -- as the framework asks --------------------------------------------------------------------

    @property
    def partials(self) -> Partials:
        """Its work on parts of a window: of each part, merged, and the rows in the end."""
        keys = Dimensions(self._kind(), self.dimensions.keys, self.dimensions.nan)
        return Partials(self._kind(), keys, self._rule, self._added)

    def beyond_window(self) -> str:
        """Nothing, unless partitions are evicted: before_insert only refuses rows."""
        (spec,) = self.windows
        if not unchanged(self):
            return Operator.beyond_window(self)
        return "" if spec is None or spec.forget is None else "which partitions are evicted"

    def part_of(self, window: Any, key: Any) -> Partial:
        """What matters of a part of a window, for farms."""
        return self.partials.of(window.arrow(key))

    def merge_parts(self, a: Partial, b: Partial) -> Partial:
        """Two parts together: the rows of `b` came behind those of `a`."""
        return self.merge_all_parts([a, b])

    def merge_all_parts(self, parts: Sequence[Partial]) -> Partial:
        """All parts together, each with rows that came behind those of the one before."""
        return self.partials.merge(*one_behind_the_other(parts))

    def emit_part(self, key: Any, part: Partial) -> None:
        """The best rows, and a punctuation."""
        for row in self.partials.rows(part).to_pylist():
            self._outputs[0](row)
        self._puncts[0]()

    def notes(self) -> Iterable[tuple[str, str]]:
        """What is best, and how it is found."""
        yield "best", str(self.dimensions)
        yield "method", "each firing sorted by the sum of coordinates, then in blocks"

    # -- whole batches ----------------------------------------------------------------------------

    def on_open(self) -> None:
        """Whole batches are looked at as columns; a subclass may have handlers of its own."""
        (window,) = self.containers
        assert window is not None
        window._partial = self.partial == "emit"
        if unchanged(self):
            window._guard, window._consumer = self._guard, self._fired

    def _guard(self, batch: Any) -> None:
        from windowlib.columnar.decline import Decline

        if set(self._added.values()) & set(batch.schema.names):
            raise Decline("a column that is to be added is there")
        self.dimensions.guard(batch)

    def _fired(self, firings: Firings) -> None:
        """Send the best rows of all firings of a batch."""
        import numpy as np
        import pyarrow as pa

        from operators.preference.extents import answers
        from windowlib.columnar.failed import Failed

        try:
            points = self._points(firings.content)
        except Exception as error:  # said of a firing, so that the window gets past it
            raise Failed(int(firings.rows[0]), error) from error
        found = answers(self._rule, points, firings.lo, firings.hi)
        lengths = np.array([len(each.places) for each in found], np.intp)
        rows = firings.content.at(np.concatenate([each.places for each in found]))
        columns = {name: rows[name].arrow() for name in rows.names}
        for number, name in enumerate(self._added.values()):
            columns[name] = pa.array(np.concatenate([each.more[number] for each in found]))
        send_firings(self, columns, lengths, firings.rows)

    def _points(self, rows: Any) -> Points:
        """The rows of all firings as points; those from before the batch may need Python."""
        from windowlib.columnar.decline import Decline

        try:
            return self.dimensions.cloud(rows).points
        except Decline:
            lists = {name: rows[name].arrow().to_pylist() for name in rows.names}
            return self.dimensions.points(list(dict_rows(lists)))

    # -- row by row -------------------------------------------------------------------------------

    def before_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """Refuse a row that does not compare with the others now, not when the window fires."""
        self._check(tuple_)

    def before_flush(self, window: Window[Any, Any], key: Any) -> None:
        """A tumbling window is full, or is closed without being so."""
        self._send(list(window[key]))
        self._puncts[0]()

    def on_empty_punctuation(self, window: Window[Any, Any]) -> None:
        """A punctuation without rows."""
        self._puncts[0]()

    def _triggered(self, window: Window[Any, Any], key: Any) -> None:
        """A sliding window is due: as an aggregate does, it waits until it has been full."""
        emits = self.partial == "emit" or isinstance(window.spec.evict, Time)
        if not emits and not window.full(key):
            return
        rows = list(window[key])
        if rows or emits:
            self._send(rows)
            self._puncts[0]()

    def _send(self, rows: list[Any]) -> None:
        if not rows:
            return
        row, (places, more) = self._outputs[0], self._rule.answer(self.dimensions.points(rows))
        chosen = [rows[place] for place in places.tolist()]
        if not self._added:
            for each in chosen:
                row(each)
            return
        lists = zip(*(values.tolist() for values in more), strict=True)
        for each, values in zip(chosen, lists, strict=True):
            added = dict(zip(self._added.values(), values, strict=True))
            row(as_dict(each, self._kind()) | added)

    def on_finish(self) -> None:
        """What a tumbling window holds comes out if that was asked for."""
        super().on_finish()  # closes a window that waits for a punctuation
        (window,) = self.containers
        if self.flush_at_end and window is not None:
            each_partition(window, window.keys(), lambda key: self.before_flush(window, key))
