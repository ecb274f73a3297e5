"""The outputs of an operator, each routed to its own target."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.errors import HostError, ModelError, suggestion
from windowlib.spark.plan.types import PORT, PORTS, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    Target = str | Callable[[DataFrame, int], None]

MAIN = "main"
"""Another name of the first output."""


def split(
    frame: DataFrame, /, *, others: str | None = None, **targets: Target
) -> DataStreamWriter:  # fmt: skip
    """A writer that sends the rows of each output of an operator to a target of its own.

    `split(out, main="gold.vwap", late="ops.late")` gives what `out.writeStream` gives, with the
    outputs already routed: add `.option("checkpointLocation", ...)`, a trigger, and `.start()`.
    A target gets the columns of its output, without `_port`, and those that were added later.

    After a failure Spark runs the last batch again, and by then some targets may have its
    rows. Where that matters pass a function which uses `batch_id` to write a batch only once: one
    that overwrites a folder or a partition of that number, or a MERGE.

    Args:
        frame: what the operator gave for streams.
        others: "drop" if outputs without a target are not wanted; otherwise each needs one.
        targets: by the name of an output, or `main` for the first: a table, to which rows are
            appended, or a function of a DataFrame and the number of the batch.
    """
    if not frame.isStreaming:
        msg = (
            "split(out): a static DataFrame has no batches to route. Write its outputs one by one, "
            f"""as with out.where("{PORT} = 'late'")."""
        )
        raise HostError(msg)
    if others not in (None, "drop"):
        raise ModelError(f'split(others={others!r}): not a choice. Use others="drop", or leave it.')
    ports = _ports(frame)
    routes = {_port(name, ports): _target(name, to) for name, to in targets.items()}
    missing = [name for name in ports if name not in routes]
    if len(routes) < len(targets):
        first = next(iter(ports))
        msg = f'split({MAIN}=..., {first}=...): both are the output "{first}". Give one of them.'
        raise ModelError(msg)
    if missing and others is None:
        shown = ", ".join(missing)
        msg = (
            f'split(out): no target for the output {shown}. Name a table, {missing[0]}="...", or '
            f'say others="drop".'
        )
        raise ModelError(msg)
    columns = {name: _columns(name, ports, frame.columns) for name in routes}
    return frame.writeStream.foreachBatch(Router(routes, columns, PORT in frame.columns))


def _ports(frame: DataFrame) -> dict[str, list[str]]:
    """The outputs in a DataFrame, with their columns."""
    if PORT not in frame.columns:
        return {MAIN: frame.columns}
    said = frame.schema[PORT].metadata.get(PORTS)
    if said is None:
        msg = (
            f"split(out): nothing says which columns belong to which output, as its {PORT!r} "
            f"is not the one that an operator made. Pass what the operator gave."
        )
        raise HostError(msg)
    found: dict[str, list[str]] = json.loads(said)
    return found


def _port(name: str, ports: Mapping[str, Sequence[str]]) -> str:
    if name in ports:
        return name
    if name == MAIN:
        return next(iter(ports))
    known = ", ".join(ports)
    why = f" Outputs: {known}.{suggestion(name, ports)}"
    if list(ports) == [MAIN]:
        why = f" It has only one, called {MAIN!r}: there is no column {PORT!r}."
    raise ModelError(f"split({name}=...): there is no such output.{why}")


def _target(name: str, target: Any) -> Target:
    if not callable(target) and not (isinstance(target, str) and target):
        msg = (
            f"split({name}={target!r}): not a target. Pass the name of a table, or a function of a "
            f"DataFrame and the number of the batch."
        )
        raise ModelError(msg)
    found: Target = target
    return found


def _columns(
    port: str, ports: Mapping[str, Sequence[str]], columns: Sequence[str]
) -> list[str]:  # fmt: skip
    """The columns of one output, and those that no output has: the user has added them."""
    known = {PORT}.union(*ports.values())
    own = [column for column in ports[port] if column in columns]
    return own + [column for column in columns if column not in known]


class Router:
    """Routes the rows of a micro-batch; a function for `foreachBatch`."""

    def __init__(
        self, routes: Mapping[str, Target], columns: Mapping[str, Sequence[str]], several: bool
    ) -> None:
        self.routes, self.columns, self.has_ports = dict(routes), dict(columns), several

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Give each target the rows of its output."""
        batch.persist()  # or the operator would run once for every target
        try:
            batch.count()  # whatever targets read of it, the operator runs in full
            for port, target in self.routes.items():
                rows = batch.where(batch[PORT] == port) if self.has_ports else batch
                rows = rows.select([batch[quoted(name)] for name in self.columns[port]])
                if callable(target):
                    target(rows, batch_id)
                else:
                    rows.write.mode("append").saveAsTable(target)
        finally:
            batch.unpersist()
