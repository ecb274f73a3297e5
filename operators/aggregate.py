"""Aggregate: functions of the tuples of a window, one row per firing and group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from operators.aggregate_checks import (
    check_late,
    check_options,
    check_size,
    check_words,
    columns,
    take_aliases,
)
from operators.batches import Made, made
from operators.changes import own, same
from operators.compile import Outputs, merged
from operators.expressions import Expr
from operators.groups import GroupedPlan, GroupValues
from operators.late import Latest
from operators.making import Agg
from operators.parts import Parted
from operators.passing import passed_on
from operators.splitting import (
    aggregate_beyond,
    aggregate_functions,
    aggregate_needs,
    unchanged,
)
from operators.windows import each_partition, window_of
from windowlib.attributes import one_key
from windowlib.incremental import describe
from windowlib.model import OperatorModel
from windowlib.policies import Attribute, Delta, Time
from windowlib.running import nowhere
from windowlib.sliding import SlidingWindow
from windowlib.spec import By, Order, Sliding, Spec, Tumbling
from windowlib.splitting import names_in
from windowlib.summarizers import Plan
from windowlib.window import Window

if TYPE_CHECKING:
    from operators.preaggregated import Preaggregated
    from windowlib.columnar.firings import Firings
    from windowlib.folds import Fold

LATE_MODEL = OperatorModel(
    ports_out=["out", "late"],
    windows=[Tumbling, Sliding],
    punctuation_in="window_bound",
    punctuation_out=["generating", "free"],
)


class Aggregate(Parted):
    """Functions of the tuples of a window: one row per firing, or one per group.

    Each firing is a batch: its rows, then one window punctuation. A row holds the partition key,
    the group, and the outputs. An empty window gives no row; if it fires all the same (at a tick
    or a punctuation), it gives the punctuation alone.

    Args:
        window: any window: tumbling or sliding, partitioned or not.
        outputs: columns of the output by name, as a dict; or give them as keywords.
        by: the partition key, if the window does not name one (SPL: partitionBy).
        group_by: columns that split one firing into a row per group (SPL: groupBy).
        partial: for sliding windows: "skip" (the default) gives nothing until the window has been
            full once, "emit" processes every trigger (SPL: aggregatePartialWindows).
        evicted_partitions: "drop", or "emit" to aggregate what a partition holds when it is
            evicted (SPL: aggregateEvictedPartitions).
        flush_at_end: for tumbling windows: aggregate what they hold when the input ends.
        order_by: columns that order the rows of a batch, for hosts that take batches.
        having: a condition on the row: an expression of aggregates, or a callable; rows for which
            it is not true are left out.
        emit: "always", or "changed" for only those rows that differ from the last one of the same
            partition and group.
        late: what becomes of a row whose delta attribute goes back within its partition: "keep"
            it, as SPL does; "error"; or "port", which sends it to an output named late.
        name: what messages and graphs call it.
        more: outputs by name, and the parameters by SPL's names.

    >>> from operators import agg
    >>> from windowlib import Count, Sliding, replay
    >>> vwap = Aggregate(
    ...     Sliding(Count(3), every=Count(1), by="symbol"),
    ...     vwap=agg.sum("notional") / agg.sum("qty"),
    ...     n=agg.count(),
    ... )
    >>> rows = [{"symbol": "IBM", "notional": 100.0 * n, "qty": n} for n in (1, 2, 3, 4)]
    >>> list(replay(vwap, rows))
    [{'symbol': 'IBM', 'vwap': 100.0, 'n': 3}, {'symbol': 'IBM', 'vwap': 100.0, 'n': 3}]
    """

    model = OperatorModel(
        windows=[Tumbling, Sliding], punctuation_in="window_bound", punctuation_out="generating"
    )

    def __init__(
        self,
        window: Spec | str,
        outputs: Mapping[str, Expr] | None = None,
        /,
        *,
        by: By | Sequence[str] | None = None,
        group_by: Attribute | Sequence[Attribute] | None = None,
        partial: Literal["skip", "emit"] | None = None,
        evicted_partitions: Literal["drop", "emit"] = "drop",
        flush_at_end: bool = False,
        order_by: Order | Sequence[str] = ...,
        having: Expr | Callable[[Any], Any] | None = None,
        emit: Literal["always", "changed"] = "always",
        late: Literal["keep", "error", "port"] = "keep",
        name: str | None = None,
        **more: Any,
    ) -> None:
        given: dict[str, Any] = {"by": by, "group_by": group_by, "partial": partial}
        given["evicted_partitions"] = evicted_partitions
        others = {"flush_at_end": flush_at_end, "order_by": order_by, "emit": emit, "late": late}
        check_words({**given, **others, "name": name})
        take_aliases(given, more)
        spec = window_of("Aggregate", "window", window, given["by"])
        spec = spec if order_by is ... else replace(spec, order_by=order_by)  # type: ignore[arg-type]
        self.group_by = columns(given["group_by"])
        self.partial = given["partial"] or getattr(spec, "partial", None) or "skip"
        self.evicted_partitions = given["evicted_partitions"]
        self.flush_at_end, self.having = flush_at_end, having
        self._only_changes = emit == "changed"
        self._one_row = self.group_by is None and having is None and emit == "always"
        self.late = late
        if late == "port":
            self.model = LATE_MODEL
        super().__init__(spec, name=name)
        check_options(spec, given["partial"], self.evicted_partitions, flush_at_end, emit)
        check_late(spec, late)
        check_size(spec)
        self.outputs = Outputs(merged(outputs, more), spec.by, self.group_by, having)
        self._plan = self._planned()
        self._last: dict[Any, dict[Any, dict[str, Any]]] = {}
        self._latest = Latest(spec)
        self._asked: Any = None
        self._answer: Any = None
        self._register(spec)

    # -- building ---------------------------------------------------------------------------------

    def _planned(self) -> Plan:
        recipes = self.outputs.recipes
        if self.group_by is None:
            return Plan(recipes, short=False, named=False)
        shown = f"group_by={self.group_by!r}"
        return GroupedPlan(recipes, self.group_by, shown)

    def _register(self, spec: Spec) -> None:
        """Only the handlers that this configuration needs: a window pays for each."""
        if isinstance(spec, Sliding):
            self._set("on_trigger", self._triggered)
            if isinstance(spec.evict, Delta) and self.partial == "skip":
                # A delta window knows that it is full in time for its trigger only if asked.
                self._set("on_initial_full", lambda window, key: None)
        else:
            self._set("before_flush", self._fire)
            self._set("on_empty_punctuation", lambda window: self.emit_punct())
        watched = self.evicted_partitions == "emit" or self._only_changes or self.late != "keep"
        if spec.forget is not None and watched:
            self._set("on_partitions_evicted", self._evicted)
        if self.late != "keep":
            self._set("on_tuple", self._in_order)

    def _set(self, event: str, handler: Callable[..., None]) -> None:
        self.__dict__[event] = handler

    @property
    def plain(self) -> bool:
        """Whether it sends one row for each firing, of all that is in the window."""
        kept = self.late == "keep" and self.evicted_partitions == "drop"
        return type(self) is Aggregate and self._one_row and kept

    def preaggregated(self) -> Preaggregated | None:
        """The same in two steps, of which a host may take the first; None if it cannot."""
        from operators.preaggregated import preaggregated

        return preaggregated(self)

    # -- running ----------------------------------------------------------------------------------

    def summarizer(self, port: int) -> Any:
        """One summary a subwindow, or one a group."""
        return self._plan

    def on_open(self) -> None:
        """The window says how it is read: straight into a row, if a firing is one."""
        (window,) = self.containers
        assert window is not None
        use = self.outputs.make if self._one_row else self._rows
        self._full = window._reader(use, partial=self.partial == "emit")
        self._any = window._reader(use, partial=True)
        window._partial = self.partial == "emit"
        if self.late == "keep" and not self._only_changes:
            window._consumer = self._fired

    def _fired(self, firings: Firings) -> None:
        """Send the rows of all firings of a batch, each with its punctuation."""
        from windowlib.columnar.failed import Failed

        columns = made(self.outputs, firings)
        send = self._send_columns if columns.plain and self._many is not None else self._send_rows
        done = 0
        try:
            for done in send(columns):  # noqa: B007 - where it stopped, if it raises
                pass
        except Exception as error:
            raise Failed(int(firings.rows[done]), error) from error

    def _send_rows(self, columns: Made) -> Iterator[int]:
        """Send the rows of each firing, and a punctuation; gives how many are done."""
        row, punct, rows = self._outputs[0], self._puncts[0], columns.rows()
        for done, count in enumerate(columns.counts.tolist(), 1):
            for each in islice(rows, count):
                if columns.passes is None or columns.passes(each):
                    row(each)
            punct()
            yield done

    def _send_columns(self, columns: Made) -> Iterator[int]:
        """Send all rows at once; gives how many firings are done."""
        punct, many, done = self._puncts[0], self._many, 0
        assert many is not None
        try:
            for done in range(len(columns.counts)) if punct is not nowhere else ():
                yield done
                punct()
        except Exception:
            many(columns.head(done + 1))
            raise
        many(columns)

    def _in_order(self, tuple_: Any, port: int) -> None:
        """Take a row, unless it is late."""
        (window,) = self.containers
        assert window is not None
        key, values = self._latest.read(tuple_)
        if not self._latest.behind(key, values):
            window.insert(tuple_)
            self._latest.note(key, values)
        elif self.late == "port":
            self._outputs[1](tuple_)
        else:
            raise self._latest.error(key, values, window.seen + 1)

    def _triggered(self, window: Window[Any, Any], key: Any) -> None:
        found = self._full(key)
        if found is not None:
            self._send(found)
            self._puncts[0]()
        elif isinstance(window.spec.evict, Time) or self.partial == "emit":
            self._puncts[0]()  # fires, and is empty

    def _fire(self, window: Window[Any, Any], key: Any) -> None:
        """Send what a subwindow holds, full or not, and a punctuation."""
        found = self._any(key)
        if found is not None:
            self._send(found)
        self._puncts[0]()

    def _send(self, found: Any) -> None:
        """The row of a firing, or its rows."""
        if self._one_row:
            self._outputs[0](found)
            return
        for row in found:
            self._outputs[0](row)

    def _rows(self, key: Any, n: int, summary: Any) -> Iterable[dict[str, Any]]:
        """The rows of one firing."""
        groups = [GroupValues(None, n, summary)] if self.group_by is None else summary
        rows = self.outputs.rows(key, n, groups)
        return self._changed(key, rows) if self._only_changes else rows

    def _changed(self, key: Any, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        last = self._last.setdefault(one_key(key), {})
        for row in rows:
            group = self._group(row)
            if not same(last.get(group), row):
                last[group] = {name: own(value) for name, value in row.items()}
                yield row

    def _group(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple([one_key(row[name]) for name in self.outputs.keys])

    def _evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        try:
            if self.evicted_partitions == "emit":
                each_partition(window, keys, lambda key: self._fire(window, key))
        finally:  # they go all the same
            for key in keys:
                self._last.pop(one_key(key), None)
                self._latest.forget(key)

    def on_finish(self) -> None:
        """What a tumbling window holds comes out if that was asked for."""
        super().on_finish()
        (window,) = self.containers
        if self.flush_at_end and window is not None:
            each_partition(window, window.keys(), lambda key: self._fire(window, key))

    def snapshot(self) -> Any:
        """The last rows, if only changes come out; the latest values, if late rows do not go in."""
        last = [[key, list(rows.values())] for key, rows in self._last.items()]
        return {"last": last, "latest": self._latest.snapshot()}

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self._last = {
            one_key(key): {self._group(row): row for row in rows} for key, rows in state["last"]
        }
        self._latest.restore(state["latest"])

    # -- words ------------------------------------------------------------------------------------

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns of the window, the groups and the functions."""
        yield from super().reads(port)
        parts = self.group_by if isinstance(self.group_by, tuple) else (self.group_by,)
        for part in parts:
            if part is not None:
                yield part, f"group_by={self.group_by!r}"
        yield from self.outputs.reads()

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The same columns, if no function of the user's and no output reads whole rows."""
        return aggregate_needs(self)

    def passes(self, column: str, port: int) -> bool:
        """The key; late rows stay as they are."""
        (spec,) = self.windows
        assert spec is not None
        return unchanged(self) and (port == 1 or column in (names_in(spec.by) or ()))

    def functions(self) -> Iterable[tuple[str, Fold]] | None:
        """The functions of its outputs."""
        return aggregate_functions(self)

    def beyond_window(self) -> str:
        """The row before, or which rows are late, if it was told to look at them."""
        return aggregate_beyond(self)

    def schema(self, *columns: Any) -> Any:
        """The columns of the output, from those of the input."""
        from operators.schema import output_schema

        (spec,), (given,) = self.windows, columns
        assert spec is not None
        if given is None:
            return None
        if given != self._asked:  # which is the same for every batch
            self._answer = output_schema(self.outputs, spec.by, self.group_by, given)
            self._asked = given
        return self._answer

    def check_types(self, schema: Any, port: int = 0) -> None:
        """Text, bytes, dates and times do not add up."""
        from operators.schema import check_sums

        check_sums(self.outputs, schema)

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        return passed_on(*columns)

    def notes(self) -> Iterable[tuple[str, str]]:
        """How each output is computed."""
        (window,) = self.containers
        if isinstance(window, SlidingWindow):
            yield "partial", f"{self.partial}: windows that have never been full"
        shown = dict(zip(self.outputs.recipes, self._algorithms(), strict=True))
        for name, expression in self.outputs.expressions.items():
            leaves = self.outputs.parts(expression)
            ways = {which: shown.get(which, "size of the window or its groups") for which in leaves}
            if isinstance(expression, Agg):
                yield "column", f"{name} = {expression!r}: {ways[expression.identity]}"
            else:
                yield "column", f"{name} = {expression!r}"
                yield from (("", f"  {leaf!r}: {ways[which]}") for which, leaf in leaves.items())

    def _algorithms(self) -> list[str]:
        """How the functions are kept up to date, in the order of the plan."""
        (window,) = self.containers
        if isinstance(window, SlidingWindow) and window._slices is None:
            return describe(self._plan)
        running = "running summary" if self.group_by is None else "running summary per group"
        way = "slices in two stacks" if isinstance(window, SlidingWindow) else running
        return [way] * len(self._plan.folds)
