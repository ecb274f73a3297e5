"""The base of preference operators, which send the best rows of every firing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from windowlib.errors import ModelError
from windowlib.operators.arguments import as_dict, window_of
from windowlib.operators.arrow_output import send_firings
from windowlib.operators.base import Partitioned, PassThrough, each_partition, unchanged
from windowlib.operators.functions.call import Column
from windowlib.operators.preference.dimensions import Dimensions, Nan, check_added, columns_in
from windowlib.operators.preference.preference_partials import (
    Partial,
    Partials,
    renumbered,
)
from windowlib.operators.preference.preference_rules import PreferenceRule, answers
from windowlib.operators.sort.ordering import SortKey, first_known
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.operator import FunctionKind, Operator
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import By, Sliding, Spec, Tumbling
from windowlib.window.arrow import dict_rows
from windowlib.window.consumer import Consumer, Decline, FiringFailed
from windowlib.window.container import Window

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings
    from windowlib.columnar.kernels.skyline import Points

Dimension: TypeAlias = "Column | SortKey"
PartialWindows = Literal["skip", "emit"]


class ComparisonOperator(Partitioned, PassThrough):
    """Sends rows on that it has compared with others, with some more columns or as they are."""

    dimensions: Dimensions
    _added: Mapping[str, str] = {}  # columns that rows get, by the parameters that name them
    _numbers = True  # whether these are whole numbers; else they are texts

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
        check_added(type(self).__name__, self._added, found.names)
        kind = pa.int64() if self._numbers else pa.string()
        for name in self._added.values():
            found = found.append(pa.field(name, kind))
        return found

    def passes(self, column: str, port: int) -> bool:
        """All columns but those that are added."""
        return column not in self._added.values() and super().passes(column, port)

    def _check(self, row: Any) -> None:
        """Refuse a row that does not compare with the others, or has a column that is added."""
        self.dimensions.check(row)
        if self._added:
            check_added(type(self).__name__, self._added, columns_in(row))

    def snapshot(self) -> Any:
        """The values that tell which others compare with them."""
        return self.dimensions.snapshot()

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self.dimensions.restore(state)

    def regroup(
        self, states: Sequence[Mapping[str, Any]], mine: Callable[[int, Any], bool]
    ) -> Any:  # fmt: skip
        """The values that all others have to compare with, whatever their keys."""
        return first_known([state["state"] for state in states])


class Preference(ComparisonOperator):
    """Sends the best rows of every firing, in order of arrival, and a punctuation."""

    model = OperatorModel(
        windows=[Tumbling, Sliding], punctuation_in="window_bound", punctuation_out="generating"
    )
    function_kind: ClassVar[FunctionKind] = "associative"
    _rule: PreferenceRule

    def __init__(
        self,
        window: Spec | str,
        *dimensions: Dimension,
        by: By | Sequence[str] | None = None,
        partial: PartialWindows | None = None,
        flush_at_end: bool = False,
        nan: Nan = "error",
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        spec = window_of(kind, "window", window, by)
        self.dimensions = Dimensions(kind, dimensions, nan)
        self.partial = partial or getattr(spec, "partial", None) or "skip"
        self.flush_at_end = flush_at_end
        super().__init__(spec, name=name)
        check_window(kind, spec)
        check_options(kind, spec, partial, flush_at_end)
        if isinstance(spec, Sliding):
            self.__dict__["on_trigger"] = self._on_trigger
            if spec.evict.delta is not None and self.partial == "skip":
                # A delta window knows that it is full in time for its trigger only if asked.
                self.__dict__["on_initial_full"] = lambda window, key: None

    # -- as the framework asks --------------------------------------------------------------------

    @property
    def partials(self) -> Partials:
        """Partial results of parts of a window: made, merged, and turned into rows."""
        keys = Dimensions(type(self).__name__, self.dimensions.keys, self.dimensions.nan)
        return Partials(type(self).__name__, keys, self._rule, self._added)

    def beyond_window(self) -> str:
        """Nothing, unless partitions are evicted: before_insert only refuses rows."""
        (spec,) = self.windows
        if not unchanged(self):
            return Operator.beyond_window(self)
        return "" if spec is None or spec.forget is None else "which partitions are evicted"

    def part_of(self, window: Any, key: Any) -> Partial:
        """The partial result of a part of a window, for farms."""
        return self.partials.of(window.arrow(key))

    def merge_parts(self, a: Partial, b: Partial) -> Partial:
        """Two parts together: the rows of `b` came behind those of `a`."""
        return self.merge_all_parts([a, b])

    def merge_all_parts(self, parts: Sequence[Partial]) -> Partial:
        """All parts together, each with rows that came behind those of the one before."""
        return self.partials.merge(*renumbered(parts))

    def save_part(self, part: Partial) -> Any:
        """The part as plain data."""
        return part.saved()

    def load_part(self, saved: Any) -> Partial:
        """The part that `save_part` saved."""
        return Partial(*saved)

    def emit_part(self, key: Any, part: Partial) -> None:
        """The best rows, and a punctuation."""
        import numpy as np

        rows = self.partials.rows(part)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        send_firings(self, columns, np.array([rows.num_rows]), np.zeros(1, np.intp))

    def notes(self) -> Iterable[tuple[str, str]]:
        """The preferred values, and the algorithm."""
        yield "best", str(self.dimensions)
        yield "method", "each firing sorted by the sum of coordinates, then in blocks"
        if self._rule.factored:
            yield "factors", "of the skyline among itself"

    # -- whole batches ----------------------------------------------------------------------------

    def consumer(self, port: int) -> Consumer:
        """Whole batches are processed as columns, unless a subclass has handlers of its own."""
        emits = self.partial == "emit"
        if not unchanged(self):
            return Consumer(partial=emits)
        return Consumer(self._on_firings, partial=emits, guard=self._guard)

    def _guard(self, batch: Any) -> None:
        if set(self._added.values()) & set(batch.schema.names):
            raise Decline("a column that is to be added is there")
        self.dimensions.guard(batch)

    def _on_firings(self, firings: Firings) -> None:
        """Send the best rows of all firings of a batch."""
        import numpy as np
        import pyarrow as pa

        try:
            points = self._points(firings.content)
        except Exception as error:  # said of a firing, so that the window gets past it
            raise FiringFailed(int(firings.rows[0]), error) from error
        found = answers(self._rule, points, firings.lo, firings.hi)
        lengths = np.array([len(each.places) for each in found], np.intp)
        rows = firings.content.at(np.concatenate([each.places for each in found]))
        columns = {name: rows[name].arrow() for name in rows.names}
        for number, name in enumerate(self._added.values()):
            columns[name] = pa.array(np.concatenate([each.more[number] for each in found]))
        send_firings(self, columns, lengths, firings.rows)

    def _points(self, rows: Any) -> Points:
        """The rows of all firings as points; those from before the batch may need Python."""
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

    def _on_trigger(self, window: Window[Any, Any], key: Any) -> None:
        """A sliding window is due: as an aggregate does, it waits until it has been full."""
        emits = self.partial == "emit" or window.spec.full_from_start
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
            row(as_dict(each, type(self).__name__) | added)

    def on_finish(self) -> None:
        """Send what a tumbling window holds, with `flush_at_end`."""
        super().on_finish()  # closes a window that waits for a punctuation
        (window,) = self.containers
        if self.flush_at_end and window is not None:
            each_partition(window, window.keys(), lambda key: self.before_flush(window, key))


# -- refusals -------------------------------------------------------------------------------------


def check_window(kind: str, spec: Spec) -> None:
    """Refuse windows that hold nothing."""
    if spec.keeps_nothing:
        msg = (
            f"{kind} does not support {type(spec).__name__}(Count(0)): a window of size 0 keeps "
            f"nothing to choose from. Use Count(1) or more."
        )
        raise ModelError(msg)


def check_options(kind: str, spec: Spec, partial: Any, flush_at_end: Any) -> None:
    """Refuse unknown words, and options that do not fit the window."""
    if partial not in (None, "skip", "emit"):
        raise ModelError(f'{kind}(partial={partial!r}): unknown. Use "skip" or "emit".')
    if not isinstance(flush_at_end, bool):
        raise ModelError(f"{kind}(flush_at_end={flush_at_end!r}): say True or False.")
    if partial is not None and not isinstance(spec, Sliding):
        msg = (
            f"{kind}(partial={partial!r}): a tumbling window fires when it is full. Drop "
            f"`partial=`, or say flush_at_end=True to see the last one."
        )
        raise ModelError(msg)
    if flush_at_end and isinstance(spec, Sliding):
        msg = (
            f"{kind}(flush_at_end=True): a sliding window fires at its triggers, and has nothing "
            f'left at the end. Drop it, or say partial="emit".'
        )
        raise ModelError(msg)


def check_number(kind: str, parameter: str, value: Any, most: int | None = None) -> None:
    """Refuse what is no number of rows or of dimensions."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ModelError(f"{kind}({parameter}={value!r}): use a whole number from 1 on.")
    if most is not None and value > most:
        msg = (
            f"{kind}({parameter}={value}): there are only {most} dimensions. Use {parameter}="
            f"{most} or less."
        )
        raise ModelError(msg)


def check_names(kind: str, names: dict[str, Any]) -> None:
    """Refuse names of added columns that are none, or the same."""
    for parameter, name in names.items():
        if not isinstance(name, str) or not name:
            msg = f"{kind}({parameter}={name!r}): not a name. Use a text, as {parameter}='best'."
            raise ModelError(msg)
    if len(set(names.values())) < len(names):
        both = ", ".join(f"{parameter}={name!r}" for parameter, name in names.items())
        raise ModelError(f"{kind}({both}): two columns with one name. Rename one.")
