"""What queries have done so far: the observed metrics of their progress events, added up and shown.

`Listener` adds them up; `progress` shows them while a query runs, in a terminal or a notebook.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TextIO

from pyspark.sql.streaming.listener import StreamingQueryListener

from windowlib.errors import ModelError
from windowlib.spark.bucket.bucket import COUNTS, GAUGES
from windowlib.spark.plan.spark_windows import BY_SPARK
from windowlib.spark.versions import observed_values

PREFIX = "windowlib "
LOOK = 0.5
"""Seconds between two looks at most: Spark keeps 100 batches, and makes fewer in that time."""
WIDTH = 79


@dataclass(frozen=True)
class Totals:
    """What the operators of a query have done, and what they hold."""

    batches: int = 0
    """Micro-batches that were added up."""
    rows_in: int = 0
    rows_out: int = 0
    fired: int = 0
    """Triggers and flushes."""
    evicted: int = 0
    """Tuples that have left windows."""
    late: int = 0
    """Rows that went to an output called "late", or that an operator counted as late."""
    partitions_evicted: int = 0
    loads: int = 0
    """How often the state of a bucket was read from the state store."""
    partitions: int = 0
    """Partitions that there are now."""
    state_bytes: int = 0
    """Snapshots and logs in the state store, now."""
    missed: int = 0
    """Micro-batches of which nothing is known, because they were not read in time."""
    operators: Mapping[str, Totals] = field(default_factory=dict)
    """The same for each operator, if there are several in the query."""

    def lines(self) -> list[str]:
        """The figures as text, to fit a terminal.

        >>> print(*Totals(batches=2, rows_in=1000, rows_out=30).lines(), sep="\\n")
        batches               2  rows in           1,000  rows out             30
        fired                 0  evicted               0  late                  0
        partitions            0  evicted               0  state               0 B
        """
        found = _lines(self)
        if self.missed:
            found.append(f"{self.missed:,} batches are missing: they were not read in time")
        for name, totals in self.operators.items():
            found += [name, *(f"  {line}" for line in _lines(totals))]
        return found

    def line(self) -> str:
        """The figures on one line.

        >>> Totals(batches=2, rows_in=1000, rows_out=30, partitions=4).line()
        'batch 2: 1,000 in, 30 out, 0 fired, 0 late, 4 partitions, 0 B'
        """
        late = f"{self.fired:,} fired, {self.late:,} late, {self.partitions:,} partitions"
        rows = f"{self.rows_in:,} in, {self.rows_out:,} out"
        return f"batch {self.batches:,}: {rows}, {late}, {size_text(self.state_bytes)}"

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        several = [("all", self), *self.operators.items()] if self.operators else [("", self)]
        names = [f.name for f in fields(self) if f.name != "operators"]
        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in ("", *names))
        rows = [
            f"<tr><th>{_escaped(who)}</th>"
            + "".join(f"<td>{getattr(totals, name):,}</td>" for name in names)
            + "</tr>"
            for who, totals in several
        ]
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _lines(totals: Totals) -> list[str]:
    cells = [
        [("batches", totals.batches), ("rows in", totals.rows_in), ("rows out", totals.rows_out)],
        [("fired", totals.fired), ("evicted", totals.evicted), ("late", totals.late)],
        [("partitions", totals.partitions), ("evicted", totals.partitions_evicted)],
    ]
    lines = ["  ".join(f"{name:<10}{n:>13,}" for name, n in row) for row in cells]
    return [*lines[:2], f"{lines[2]}  {'state':<10}{size_text(totals.state_bytes):>13}"]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def size_text(size: int) -> str:
    """A number of bytes, to read.

    >>> size_text(999), size_text(12_345_678)
    ('999 B', '11.8 MiB')
    """
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


class Sums:
    """Adds up the progress of one query, each micro-batch once.

    Counts add up over all runs. Gauges come as changes, and a query that is built again starts them
    from zero under a new name: so only the names of the last batch have their present values.
    """

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, int]] = {}
        self._batches: dict[str, int] = {}
        self._current: list[str] = []
        self._last: dict[str, int] = {}  # the last batch of each run
        self._empty: set[tuple[str, int]] = set()  # batches that had nothing for us, until now
        self._count = self._missed = 0

    def add(self, progress: Any) -> bool:
        """Take a progress event, as an object or as a dict; whether it was news."""
        run, batch = str(_part(progress, "runId")), int(_part(progress, "batchId"))
        found = _part(progress, "observedMetrics") or {}
        ours = {name: row for name, row in found.items() if name.startswith(PREFIX)}
        last = self._last.get(run)
        if not ours:
            self._empty.add((run, batch))
        if not ours or (last is not None and batch <= last):
            return False
        between = range(batch if last is None else last + 1, batch)
        self._missed += sum((run, each) not in self._empty for each in between)
        self._empty.clear()
        self._last[run] = batch
        self._count += 1
        self._current = list(ours)
        for name, row in ours.items():
            values = observed_values(row, (*COUNTS, *GAUGES))
            if name.endswith(BY_SPARK):
                values = {**values, **_sparks_own(progress)}
            sums = self._sums.setdefault(name, dict.fromkeys((*COUNTS, *GAUGES), 0))
            self._batches[name] = self._batches.get(name, 0) + 1
            for metric in sums:
                sums[metric] += int(values.get(metric) or 0)  # null: no bucket had anything to do
        return True

    def totals(self) -> Totals:
        """The totals so far."""
        by_name: dict[str, Totals] = {}
        if len(self._current) > 1:
            for name in self._current:
                sums: dict[str, Any] = {"batches": self._batches[name], **self._sums[name]}
                by_name[name.removeprefix(PREFIX)] = Totals(**sums)
        return Totals(
            batches=self._count,
            missed=self._missed,
            operators=by_name,
            **{name: sum(sums[name] for sums in self._sums.values()) for name in COUNTS},
            **{name: sum(self._sums[each][name] for each in self._current) for name in GAUGES},
        )


def _sparks_own(progress: Any) -> dict[str, int]:
    """Spark's own counts for windows that are left to Spark."""
    dropped = [
        _part(each, "numRowsDroppedByWatermark") for each in _part(progress, "stateOperators")
    ]
    return {"rows_in": int(_part(progress, "numInputRows")), "late": sum(dropped)}


def _part(progress: Any, name: str) -> Any:
    return progress[name] if isinstance(progress, Mapping) else getattr(progress, name)


class Listener(StreamingQueryListener):
    """Adds up what the operators of all queries do: `spark.streams.addListener(listener)`.

    It costs a few additions a micro-batch, and never fails a query. Spark tells it of a batch
    shortly after the batch, from a thread of its own.

    Args:
        told: a function that is called with the id of a query and its totals after every batch,
            such as one that sends them to a monitor. What it raises is ignored.
    """

    def __init__(self, told: Callable[[str, Totals], None] | None = None) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._queries: dict[str, Sums] = {}
        self._names: dict[str, str] = {}

    def totals(self, query: Any) -> Totals:
        """The totals of a query, by its id or name, or the query itself; of an unknown one, none.

        Of queries that had the same name, the last.
        """
        who = str(getattr(query, "id", query))
        with self._lock:
            found = self._queries.get(self._names.get(who, who))
            return Totals() if found is None else found.totals()

    @property
    def queries(self) -> dict[str, Totals]:
        """The totals of all queries, by their ids."""
        with self._lock:
            return {query: sums.totals() for query, sums in self._queries.items()}

    # Spark's names, not ours.
    # ruff: noqa: N802
    def onQueryStarted(self, event: Any) -> None:
        """A query starts."""
        if event.name is not None:
            with self._lock:
                self._names[event.name] = str(event.id)

    def onQueryProgress(self, event: Any) -> None:
        """A micro-batch has been committed, or there was nothing to do."""
        try:
            query = str(event.progress.id)
            with self._lock:
                sums = self._queries.setdefault(query, Sums())
                totals = sums.totals() if sums.add(event.progress) else None
            if self._told is not None and totals is not None:
                self._told(query, totals)
        except Exception:  # watching must not harm what is watched
            return

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to add."""

    def onQueryTerminated(self, event: Any) -> None:
        """The totals stay, to be asked for."""


def progress(query: Any, every: float = 1.0, out: TextIO | None = None) -> Totals:
    """Show what the operators of a query do, until it ends or Ctrl-C; the totals.

    In a terminal it is a block that stays in its place, in a notebook a table, and elsewhere
    one line whenever something has changed. It starts with the batches that Spark still knows,
    which are the last 100; a `Listener` has seen them all.

    Ctrl-C ends the watching, not the query. If the query has failed, its exception is raised after
    the last figures.

    Args:
        query: what `start()` gave.
        every: seconds between two views.
        out: where to write; `sys.stdout` unless given.
    """
    if isinstance(every, bool) or not isinstance(every, int | float) or not every > 0:
        raise ModelError(f"progress(every={every!r}): not a time. Use seconds, more than 0.")
    view = ProgressView(sys.stdout if out is None else out, plain=out is not None)
    sums, failure = Sums(), None
    try:
        alive, shown = True, float("-inf")
        while alive:
            alive = query.isActive  # asked first, so that the last look comes after the end
            look(query, sums)
            if not alive or time.monotonic() - shown >= every:
                view.show(sums.totals())
                shown = time.monotonic()
            if alive:
                time.sleep(min(every, LOOK))
        failure = query.exception()
    except KeyboardInterrupt:
        look(query, sums)
        view.show(sums.totals())
    view.end()
    if failure is not None:
        raise failure
    return sums.totals()


def look(query: Any, sums: Sums) -> None:
    """Add what is new among the batches that Spark still knows."""
    for each in query.recentProgress:
        sums.add(each)


class ProgressView:
    """Where totals are shown: again in the same place, or line by line."""

    def __init__(self, out: TextIO, *, plain: bool) -> None:
        self.out, self.last = out, ""
        self.height = 0
        self.update: Callable[[Totals], None] | None = None if plain else notebook()
        self.block = self.update is None and bool(getattr(out, "isatty", lambda: False)())

    def show(self, totals: Totals) -> None:
        """Show totals, if they have changed."""
        text = "\n".join(totals.lines()) if self.block else totals.line()
        if text == self.last or (not self.block and not totals.batches):
            return
        self.last = text
        if self.update is not None:
            self.update(totals)
            return
        back = f"\x1b[{self.height}A" if self.height else ""  # up to the first line
        lines = [
            f"{line[:WIDTH]}{chr(27) + '[K' if self.block else ''}" for line in text.split("\n")
        ]
        self.out.write(back + "\n".join(lines) + "\n")
        self.out.flush()
        self.height = len(lines) if self.block else 0

    def end(self) -> None:
        """Nothing comes after this."""
        self.out.flush()


def notebook() -> Callable[[Totals], None] | None:
    """What shows totals in a notebook's cell, each time in place of the last; None elsewhere."""
    shell = sys.modules.get("IPython")  # a notebook has imported it
    kernel = None if shell is None else getattr(shell.get_ipython(), "kernel", None)
    if shell is None or kernel is None:
        return None
    handle: Any = None

    def update(totals: Totals) -> None:
        nonlocal handle
        if handle is None:
            handle = shell.display.display(totals, display_id=True)
        else:
            handle.update(totals)

    return update
