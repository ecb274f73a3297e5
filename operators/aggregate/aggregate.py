"""Aggregate: functions of the tuples of a window, one row per firing and group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from windowlib.attributes import Getter, key_getter, one_key
from windowlib.errors import DeltaOrderError, ModelError
from windowlib.operators.aggregate.groups import GroupedPlan, GroupValues
from windowlib.operators.aggregate.output_batch import AggregateBatch, aggregate_batch
from windowlib.operators.aggregate.output_columns import AggregateOutputs, merge_outputs
from windowlib.operators.aggregate.partial_results import (
    PartialResult,
    group_values,
    merged_results,
    partial_results,
    preaggregated,
)
from windowlib.operators.arguments import as_tuple, window_of
from windowlib.operators.arrow_output import pass_through_schema
from windowlib.operators.base import Partitioned, each_partition, read_names, unchanged
from windowlib.operators.expressions import Col, Expr, from_spark, quoted
from windowlib.operators.functions.call import Agg
from windowlib.operators.functions.firing_facts import RETRACTS
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.operator import Operator, unaddressed
from windowlib.runtime.running import nowhere
from windowlib.runtime.splitting import names_in
from windowlib.spec.policies import Attribute, is_attribute
from windowlib.spec.specification import By, Order, Sliding, Spec, Tumbling
from windowlib.summaries.incremental import describe
from windowlib.summaries.summarizers import Plan
from windowlib.window.consumer import Consumer, FiringFailed
from windowlib.window.container import Window
from windowlib.window.sliding import SlidingWindow

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings
    from windowlib.operators.aggregate.partial_results import Preaggregated
    from windowlib.summaries.folds import Fold

LATE_MODEL = OperatorModel(
    ports_out=["out", "late"],
    windows=[Tumbling, Sliding],
    punctuation_in="window_bound",
    punctuation_out=["generating", "free"],
)


class Aggregate(Partitioned):
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

    >>> from windowlib.operators import agg
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
        check_parameters({**given, **others, "name": name})
        resolve_aliases(given, more)
        spec = window_of("Aggregate", "window", window, given["by"])
        spec = spec if order_by is ... else replace(spec, order_by=order_by)  # type: ignore[arg-type]
        self.group_by = group_columns(given["group_by"])
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
        columns = merge_outputs(outputs, more)
        self.outputs = AggregateOutputs(columns, spec.by, self.group_by, having)
        check_bounds(spec, self.outputs)
        self._plan = self._make_plan()
        self._last_rows: dict[Any, dict[Any, dict[str, Any]]] = {}
        self._latest_values = LatestValues(spec)
        self._known_input: Any = None
        self._known_schema: Any = None
        self._register(spec)

    # -- building ---------------------------------------------------------------------------------

    def _make_plan(self) -> Plan:
        calls = self.outputs.calls
        if self.group_by is None:
            return Plan(calls, short=False, named=False)
        shown = f"group_by={self.group_by!r}"
        return GroupedPlan(calls, self.group_by, shown)

    def _register(self, spec: Spec) -> None:
        """Only the handlers that this configuration needs: a window pays for each."""
        if isinstance(spec, Sliding):
            self._set("on_trigger", self._on_trigger)
            if spec.evict.delta is not None and self.partial == "skip":
                # A delta window knows that it is full in time for its trigger only if asked.
                self._set("on_initial_full", lambda window, key: None)
        else:
            self._set("before_flush", self._send_window)
            self._set("on_empty_punctuation", lambda window: self.emit_punct())
        watched = self.evicted_partitions == "emit" or self._only_changes or self.late != "keep"
        if spec.forget is not None and watched:
            self._set("on_partitions_evicted", self._on_evicted)
        if self.late != "keep":
            self._set("on_tuple", self._insert_unless_late)

    def _set(self, event: str, handler: Callable[..., None]) -> None:
        self.__dict__[event] = handler

    @property
    def one_row_per_firing(self) -> bool:
        """Whether each firing gives one row over all tuples of the window."""
        kept = self.late == "keep" and self.evicted_partitions == "drop"
        return type(self) is Aggregate and self._one_row and kept

    def folds_any_order(self, port: int) -> bool:
        """Whether windows end with punctuations alone, and no function depends on order."""
        (spec,) = self.windows
        closes = spec is not None and spec.punctuated and spec.by is None
        commutative = all(fold.commutative for fold in self._plan.folds)
        return self.one_row_per_firing and closes and commutative

    def preaggregated(self) -> Preaggregated | None:
        """This aggregation in two steps, the first for the host; None if it cannot be split."""
        return preaggregated(self)

    def with_ordered_parts(self) -> Aggregate | None:
        """This aggregation with partials that merge in any order; None if there are none."""
        from windowlib.operators.aggregate.ordered_results import ordered_aggregate

        return ordered_aggregate(self)

    # -- running ----------------------------------------------------------------------------------

    def summarizer(self, port: int) -> Any:
        """One summary a subwindow, or one a group."""
        return self._plan

    def on_open(self) -> None:
        """Prepare the readers of the window; they build the row directly if a firing has one."""
        (window,) = self.containers
        assert window is not None
        use = self._with_bounds(window, self.outputs.make_row if self._one_row else self._rows)
        self._read_full = window.state.reader(use, partial=self.partial == "emit")
        self._read_any = window.state.reader(use, partial=True)

    def consumer(self, port: int) -> Consumer:
        """Firings of a batch are processed at once, unless each row has to be examined."""
        whole = self.late == "keep" and not self._only_changes
        return Consumer(self._on_firings if whole else None, partial=self.partial == "emit")

    def _with_bounds(self, window: Any, use: Callable[..., Any]) -> Callable[..., Any]:
        """`use`, called after the bounds of the window are noted, if an output reads them."""

        def located(key: Any, n: int, summary: Any) -> Any:
            self.outputs.bind_window(window, key)
            return use(key, n, summary)

        return located if self.outputs.of_event_time else use

    def _on_firings(self, firings: Firings) -> None:
        """Send the rows of all firings of a batch, each with its punctuation."""

        columns = aggregate_batch(self.outputs, firings)
        whole = columns.columns_only and self._many is not None
        send = self._send_columns if whole else self._send_rows
        done = 0
        try:
            for done in send(columns):  # noqa: B007 - where it stopped, if it raises
                pass
        except Exception as error:
            raise FiringFailed(int(firings.rows[done]), error) from error

    def _send_rows(self, columns: AggregateBatch) -> Iterator[int]:
        """Send the rows of each firing, and a punctuation; gives how many are done."""
        row, punct, rows = self._outputs[0], self._puncts[0], columns.rows()
        for done, count in enumerate(columns.counts.tolist(), 1):
            for each in islice(rows, count):
                if columns.passes is None or columns.passes(each):
                    row(each)
            punct()
            yield done

    def _send_columns(self, columns: AggregateBatch) -> Iterator[int]:
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

    def _insert_unless_late(self, tuple_: Any, port: int) -> None:
        """Take a row, unless it is late."""
        (window,) = self.containers
        assert window is not None
        key, values = self._latest_values.read(tuple_)
        if not self._latest_values.is_late(key, values):
            window.insert(tuple_)
            self._latest_values.note(key, values)
        elif self.late == "port":
            self._outputs[1](tuple_)
        else:
            raise self._latest_values.error(key, values, window.seen + 1)

    def _on_trigger(self, window: Window[Any, Any], key: Any) -> None:
        found = self._read_full(key)
        if found is not None:
            self._send(found)
            self._puncts[0]()
        elif window.spec.full_from_start or self.partial == "emit":
            self._puncts[0]()  # fires, and is empty

    def _send_window(self, window: Window[Any, Any], key: Any) -> None:
        """Send what a subwindow holds, full or not, and a punctuation."""
        found = self._read_any(key)
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
        return self._changed_rows(key, rows) if self._only_changes else rows

    def _changed_rows(self, key: Any, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        last = self._last_rows.setdefault(one_key(key), {})
        for row in rows:
            group = self._group(row)
            if not equal_rows(last.get(group), row):
                last[group] = {name: detached(value) for name, value in row.items()}
                yield row

    def _group(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple([one_key(row[name]) for name in self.outputs.keys])

    def _on_evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        try:
            if self.evicted_partitions == "emit":
                each_partition(window, keys, lambda key: self._send_window(window, key))
        finally:  # the partitions are evicted even after a failure
            for key in keys:
                self._last_rows.pop(one_key(key), None)
                self._latest_values.forget(key)

    def on_finish(self) -> None:
        """Send what a tumbling window holds, with `flush_at_end`."""
        super().on_finish()
        (window,) = self.containers
        if self.flush_at_end and window is not None:
            each_partition(window, window.keys(), lambda key: self._send_window(window, key))

    def describe(self) -> dict[str, str]:
        """The window, the options, and the functions whose state is kept.

        What is computed from their values may change between runs: names, expressions and the
        condition. With `emit="changed"` the last rows are state, so these may not change.
        """
        text = super().describe()
        if self._only_changes:
            return text
        for name in ("outputs", "having", *self.outputs.expressions):
            text.pop(name, None)
        kept = [self.outputs.aggregates[which].shown for which in self.outputs.calls]
        return text | {"functions": ", ".join(map(unaddressed, kept))}

    def snapshot(self) -> Any:
        """The last rows, for `emit="changed"`, and the latest values, for `late=`."""
        last = [[key, list(rows.values())] for key, rows in self._last_rows.items()]
        return {"last": last, "latest": self._latest_values.snapshot()}

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self._last_rows = {
            one_key(key): {self._group(row): row for row in rows} for key, rows in state["last"]
        }
        self._latest_values.restore(state["latest"])

    def regroup(
        self, states: Sequence[Mapping[str, Any]], mine: Callable[[int, Any], bool]
    ) -> Any:  # fmt: skip
        """The last rows and the latest values of some keys."""
        return {
            name: [entry for each in states for entry in each["state"][name] if mine(0, entry[0])]
            for name in ("last", "latest")
        }

    # -- partial results --------------------------------------------------------------------------

    def parts_of(self, windows: Sequence[Any], keys: Sequence[Any]) -> list[PartialResult]:
        """The partial results of slices: views of the same rows."""
        return partial_results(self._plan, windows, keys)

    def merge_parts(self, a: PartialResult, b: PartialResult) -> PartialResult:
        """Two partial results as one; groups come in the order of their first tuples."""
        return merged_results(self._plan, a, b)

    def emit_part(self, key: Any, part: PartialResult) -> None:
        """The rows of a window, and a punctuation."""
        groups = group_values(self._plan, part)
        if self.outputs.of_event_time:
            self.outputs.bind_window(self.containers[0], key)
        for row in self.outputs.rows(key, sum(group.n for group in groups), groups):
            self._outputs[0](row)
        self._puncts[0]()

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
        """The columns that are read, unless an own function or an output reads whole rows."""
        (spec,) = self.windows
        if spec is None or "port" in (self.late, spec.late) or not unchanged(self):
            return None
        window = (attribute for attribute, _ in Operator.reads(self, 0))
        functions = (call.attribute for call in self.outputs.calls.values())
        return read_names([*window, self.group_by, *functions, self.order_by])

    def passes(self, column: str, port: int) -> bool:
        """The key; late rows stay as they are."""
        (spec,) = self.windows
        assert spec is not None
        return unchanged(self) and (port == 1 or column in (names_in(spec.by) or ()))

    def functions(self) -> Iterable[tuple[str, Fold]] | None:
        """The functions of the outputs and of the condition; None if a subclass changes them."""
        if not unchanged(self):
            return None
        folds = zip(self.outputs.calls, self._plan.folds, strict=True)
        return [(self.outputs.aggregates[which].shown, fold) for which, fold in folds]

    def beyond_window(self) -> str:
        """What rows depend on besides their window: the previous row, or which rows are late."""
        if not unchanged(self):
            return super().beyond_window()
        (spec,) = self.windows
        if spec is not None and spec.forget is not None:
            return "which partitions are evicted"
        if self._only_changes:
            return 'the row before (emit="changed")'
        return "" if self.late == "keep" else f"which rows are late (late={self.late!r})"

    def schema(self, *columns: Any) -> Any:
        """The columns of the output, from those of the input."""
        from windowlib.operators.aggregate.output_schema import output_schema

        (spec,), (given,) = self.windows, columns
        assert spec is not None
        if given is None:
            return None
        if given != self._known_input:  # which is the same for every batch
            self._known_schema = output_schema(self.outputs, spec, self.group_by, given)
            self._known_input = given
        return self._known_schema

    def check_types(self, schema: Any, port: int = 0) -> None:
        """Refuse sums of text, bytes, dates and times."""
        from windowlib.operators.aggregate.output_schema import check_sums

        super().check_types(schema, port)
        check_sums(self.outputs, schema)

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        return pass_through_schema(*columns)

    def notes(self) -> Iterable[tuple[str, str]]:
        """How each output is computed."""
        (window,) = self.containers
        if isinstance(window, SlidingWindow):
            yield "partial", f"{self.partial}: windows that have never been full"
        shown = dict(zip(self.outputs.calls, self._algorithms(), strict=True))
        for name, expression in self.outputs.expressions.items():
            leaves = self.outputs.aggregates_in(expression)
            ways = {which: shown.get(which, "a fact of the firing") for which in leaves}
            if isinstance(expression, Agg):
                yield "column", f"{name} = {expression!r}: {ways[expression.identity]}"
            else:
                yield "column", f"{name} = {expression!r}"
                yield from (("", f"  {leaf!r}: {ways[which]}") for which, leaf in leaves.items())

    def _algorithms(self) -> list[str]:
        """How the functions are kept up to date, in the order of the plan."""
        (window,) = self.containers
        if window is not None and window.event_time:
            folded = window.state.storage.startswith("one partial")
            way = "partials of slices, folded as rows come" if folded else "rows in order of time"
            return [way] * len(self._plan.folds)
        if isinstance(window, SlidingWindow) and window.state.slices is None:
            return describe(self._plan)
        running = "running summary" if self.group_by is None else "running summary per group"
        way = "slices in two stacks" if isinstance(window, SlidingWindow) else running
        return [way] * len(self._plan.folds)


# -- parameters ------------------------------------------------------------------------------------


PARTIAL = {True: "emit", False: "skip"}
ALIASES: dict[str, tuple[str, dict[bool, str]]] = {
    "partitionBy": ("by", {}),
    "groupBy": ("group_by", {}),
    "aggregatePartialWindows": ("partial", PARTIAL),
    "aggregateIncompleteWindows": ("partial", PARTIAL),
    "aggregateEvictedPartitions": ("evicted_partitions", {True: "emit", False: "drop"}),
}
"""SPL's names of parameters, ours, and our values for SPL's true and false."""


def check_size(spec: Spec) -> None:
    """Refuse windows that keep nothing, or never fire."""
    if spec.keeps_nothing:
        kind = type(spec).__name__
        msg = (
            f"Aggregate does not support {kind}(Count(0)): a window of size 0 keeps nothing to "
            f'aggregate. Only Join accepts it (a one-sided join). Use Count(1) for "the latest '
            f'tuple".'
        )
        raise ModelError(msg)
    if isinstance(spec, Sliding) and spec.never_fires:
        msg = (
            f"Aggregate does not support {spec!r}: a trigger of 0 never fires, so nothing "
            f"would come out. Use every=Count(1) or more."
        )
        raise ModelError(msg)


def check_bounds(spec: Spec, outputs: AggregateOutputs) -> None:
    """Refuse columns of event time for other windows, and retractions that nothing tells apart."""
    if outputs.of_event_time and not spec.event_time:
        msg = (
            f"Aggregate(agg.{outputs.of_event_time[0].name}()): only windows of event time have "
            f'bounds and revisions. Use a window such as Tumbling(Event("ts", "1h")), or drop it.'
        )
        raise ModelError(msg)
    if spec.retract and RETRACTS not in outputs.of_event_time:
        msg = (
            "Aggregate(retract=True): nothing tells a row that takes back another from one that "
            "counts. Add an output, as gone=agg.retracts()."
        )
        raise ModelError(msg)


def check_late(spec: Spec, late: Any) -> None:
    """Refuse an unknown word for late rows, and windows that have none."""
    if late not in ("keep", "error", "port"):
        raise ModelError(f"Aggregate(late={late!r}): unknown. Use 'keep', 'error' or 'port'.")
    if late != "keep" and not spec.deltas:
        msg = (
            f"Aggregate(late={late!r}): the window has no Delta policy, so no row is late. Drop "
            f"it, or use a window such as Tumbling(Delta('ts', '1m'))."
        )
        raise ModelError(msg)


def resolve_aliases(given: dict[str, Any], more: dict[str, Any]) -> None:
    """Move what came under SPL's names from the keywords to our parameters."""
    for alias, (ours, words) in ALIASES.items():
        if alias not in more or isinstance(more[alias], Expr):
            continue
        value = more.pop(alias)
        value = words.get(value, value) if isinstance(value, bool) else value
        if given[ours] not in (None, "drop", value):
            msg = (
                f"Aggregate({alias}={value!r}): the same as {ours}, which is {given[ours]!r}. Say "
                f"it once."
            )
            raise ModelError(msg)
        given[ours] = value


def check_parameters(given: dict[str, Any]) -> None:
    """Refuse an output whose name is that of a parameter, and expressions for plain columns."""
    for name, each in given.items():
        value = from_spark(each)
        if isinstance(value, Col):
            fix = f"Write {name}={quoted(value.name)}."
            raise ModelError(f"Aggregate({name}={value!r}): {name} names a column. {fix}")
        if isinstance(value, Expr):
            msg = (
                f"Aggregate({name}={value!r}): {name} is a parameter. To call an output so, pass "
                f'the outputs as a dict: Aggregate(window, {{"{name}": ...}}).'
            )
            raise ModelError(msg)


def group_columns(group_by: Any) -> Any:
    """The columns of a group: one, or a tuple of several."""
    if group_by is None:
        return None
    parts = as_tuple(group_by)
    if not parts or not all(map(is_attribute, parts)):
        msg = f'Aggregate(group_by={group_by!r}): name columns, such as group_by="side".'
        raise ModelError(msg)
    return parts if isinstance(group_by, list | tuple) else group_by


def check_options(
    spec: Spec, partial: Any, evicted_partitions: Any, flush_at_end: bool, emit: Any
) -> None:
    """Refuse unknown words, and options that do not fit the window."""
    choices = {
        "partial": (partial, (None, "skip", "emit")),
        "evicted_partitions": (evicted_partitions, ("drop", "emit")),
        "emit": (emit, ("always", "changed")),
        "flush_at_end": (flush_at_end, (True, False)),
    }
    for name, (value, known) in choices.items():
        if not any(value is each or value == each for each in known):
            words = " or ".join(repr(each) for each in known if each is not None)
            raise ModelError(f"Aggregate({name}={value!r}): unknown. Use {words}.")
    check_fit(spec, partial, evicted_partitions, flush_at_end)


def check_fit(spec: Spec, partial: Any, evicted_partitions: Any, flush_at_end: bool) -> None:
    """Refuse options that do not fit the window."""
    sliding = isinstance(spec, Sliding)
    if spec.event_time and (partial is not None or flush_at_end):
        word = "partial" if partial is not None else "flush_at_end"
        msg = (
            f"Aggregate({word}={partial if partial is not None else flush_at_end!r}): windows of "
            f"event time are whole, and all come out at the end. Drop `{word}=`."
        )
        raise ModelError(msg)
    if partial is not None and not sliding:
        msg = (
            f"Aggregate(partial={partial!r}): a tumbling window is processed when it is full. "
            f"Drop `partial=`, or say flush_at_end=True to see the last one."
        )
        raise ModelError(msg)
    if flush_at_end and sliding:
        msg = (
            "Aggregate(flush_at_end=True): a sliding window is processed at its triggers, and has "
            'nothing left at the end. Drop it, or say partial="emit".'
        )
        raise ModelError(msg)
    if evicted_partitions == "emit" and spec.forget is None:
        msg = (
            'Aggregate(evicted_partitions="emit"): the window evicts no partitions. Add forget=, '
            "such as forget=PartitionAge('1h'), or drop it."
        )
        raise ModelError(msg)


# -- late rows -------------------------------------------------------------------------------------


class LatestValues:
    """The newest values of a window's delta attributes, partition by partition.

    A row is late if one of its values is less. A window takes such a row, as SPL does: a smaller
    value never fires. `late=` asks for something else.
    """

    def __init__(self, spec: Spec) -> None:
        self.by = spec.by
        self._deltas = spec.deltas
        self._getters = [Getter(policy.attribute, policy.shown) for policy in self._deltas]
        by: Any = spec.by
        self._key = (lambda row: None) if by is None else key_getter(by, f"by={by!r}")
        self._values: dict[Any, list[Any]] = {}

    def read(self, row: Any) -> tuple[Any, list[Any]]:
        """A row's partition and values."""
        return one_key(self._key(row)), [get(row) for get in self._getters]

    def is_late(self, key: Any, values: list[Any]) -> bool:
        """Whether a value is less than one that came before it."""
        known = self._values.get(key)
        return known is not None and any(map(_less, values, known))

    def note(self, key: Any, values: list[Any]) -> None:
        """Record the values of a row that was inserted."""
        self._values[key] = values

    def forget(self, key: Any) -> None:
        """Drop the values of an evicted partition."""
        self._values.pop(one_key(key), None)

    def error(self, key: Any, values: list[Any], number: int) -> DeltaOrderError:
        """The error for a value that went back, with what to do about it."""
        before = self._values[key]
        which = next(i for i, value in enumerate(values) if _less(value, before[i]))
        policy = self._deltas[which]
        partition = "" if self.by is None else f", {self.by}={key!r}"
        msg = (
            f"{policy.shown}{partition}: the value went back from {before[which]} to "
            f"{values[which]} (row {number}). Sort first: Sort({policy.attribute!r}, "
            f'window=Sliding({policy.shown})).then(...), or pass late="port" to divert such rows.'
        )
        return DeltaOrderError(msg)

    def snapshot(self) -> list[Any]:
        """Pairs of partition and values."""
        return [[key, list(values)] for key, values in self._values.items()]

    def restore(self, state: list[Any]) -> None:
        """Take back what `snapshot` gave."""
        self._values = {one_key(key): list(values) for key, values in state}


def _less(value: Any, known: Any) -> bool:
    try:
        return bool(value < known)
    except TypeError:  # the window refuses it, and knows how to say why
        return False


# -- changed rows ----------------------------------------------------------------------------------


def detached(value: Any) -> Any:
    """A copy of a value, which changes to the sent row do not reach."""
    return value.copy() if isinstance(value, list) else value


def equal_rows(before: dict[str, Any] | None, row: dict[str, Any]) -> bool:
    """Whether a row is as the one before, if there was one.

    >>> equal_rows({"x": [float("nan")]}, {"x": [float("nan")]}), equal_rows(None, {})
    (True, False)
    """
    return before is not None and _equal(before, row)


def _equal(a: Any, b: Any) -> bool:
    """Whether two values are equal; all NaN are, also in lists and rows."""
    if type(a) is type(b) and isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if type(a) is type(b) is dict:
        return a.keys() == b.keys() and all(_equal(value, b[name]) for name, value in a.items())
    return bool(a == b) or bool(a != a and b != b)
