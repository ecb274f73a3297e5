"""`windowlib run`: an operator on files or a socket, here, on several workers, or on Spark."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from windowlib.attributes import key_getter
from windowlib.errors import SchemaError, WindowlibError, WindowlibWarning
from windowlib.runtime.marks import Mark
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import Replay, replay, sorted_runs
from windowlib.tools.commands.check import schema_option
from windowlib.tools.commands.input_files import (
    Input,
    close_all,
    inputs_of,
    order_columns,
    row_batches,
    text_cells,
)
from windowlib.tools.commands.meter import Meter
from windowlib.tools.commands.operator_text import operator_of
from windowlib.tools.commands.output_files import (
    RowWriter,
    atomic_file,
    check_output,
    named_row,
    output_of,
)
from windowlib.tools.commands.usage import (
    UsageError,
    check_column,
    count_option,
    error_text,
    one_line,
    spark_failures,
)
from windowlib.window.arrow import in_order

EPILOG = """\
OPERATOR is an expression, such as "Aggregate(Tumbling(Count(10)), n=agg.count())", or
job.py:name. FILE is CSV with a header, JSON lines or Parquet, by its suffix; - is stdin. In JSON
lines and on a socket, {"punct": true} is a punctuation. An expression is Python, though only with
the names of windowlib and its operators: run your own.
"""


def add(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser("run", help="an operator on files or a socket", epilog=EPILOG)
    parser.add_argument("operator", metavar="OPERATOR", help="an expression, or job.py:name")
    parser.add_argument(
        "--input",
        "-i",
        metavar="FILE",
        action="append",
        required=True,
        help="rows: a file, - or tcp://host:port; port=FILE for an operator with several inputs",
    )
    parser.add_argument(
        "--schema", metavar="COLUMNS", help='of a socket, as "symbol string, price double"'
    )
    parser.add_argument("--output", "-o", metavar="FILE", help="a .csv, .jsonl or .parquet file")
    parser.add_argument("--port", metavar="NAME", help="only this output, of several")
    parser.add_argument("--times", metavar="COL", help="when each row arrives: moves the clock")
    parser.add_argument("--order-by", metavar="COL[,COL]", help="what rows are ordered by first")
    parser.add_argument(
        "--show", metavar="N", type=count_option("rows"), default=20, help="rows of the table (20)"
    )
    parser.add_argument(
        "--workers", metavar="N", type=count_option("workers"), help="a farm of so many processes"
    )
    parser.add_argument("--spark", action="store_true", help="on Spark, started in this process")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the operator; live output remains even if the run ends with an error."""
    if arguments.spark and arguments.workers is not None:
        raise UsageError("--workers is for this process; with --spark, Spark has its own.")
    operator = operator_of(arguments.operator)
    if arguments.port is not None:
        operator.model.output(arguments.port, operator.name)
    schema = None if arguments.schema is None else schema_option(arguments.schema)
    inputs = inputs_of(operator, arguments.input, schema)
    try:
        check_output(arguments.output, [each.name for each in inputs])
        with atomic_file(arguments.output, live=any(each.live for each in inputs)) as place:
            arguments.output = place
            return _start(operator, inputs, arguments)
    except SchemaError as error:
        raise UsageError(f"{one_line(error)}{text_cells(inputs)}") from None
    finally:
        close_all(inputs)


def _start(operator: Operator, inputs: list[Input], arguments: argparse.Namespace) -> int:
    _check(operator, inputs, arguments)
    if arguments.spark:
        with spark_failures():
            from windowlib.tools.commands.run_spark import run_on_spark

        return run_on_spark(operator, inputs, arguments)
    if arguments.workers is not None:
        from windowlib.farms import farm

        operator = farm(operator, arguments.workers)
    return _run(operator, inputs, arguments)


def _check(operator: Operator, inputs: list[Input], arguments: argparse.Namespace) -> None:
    """Refuse columns that are not there before anything runs."""
    if arguments.schema is not None and not any(each.live for each in inputs):
        raise UsageError("--schema is for a socket; files have columns of their own.")
    for port, each in enumerate(inputs):
        for name in order_columns(arguments.order_by) or ():
            check_column("--order-by", name, each.columns, each.name)
        check_column("--times", arguments.times, each.columns, each.name)
        if each.columns:
            operator.check_columns(each.columns, port)
        if (schema := getattr(each.rows, "schema", None)) is not None:
            operator.check_types(schema, port)
        if each.live and len(inputs) > 1:
            raise UsageError(f"{each.name}: a socket must be the only input. Use files.")
        if each.live and arguments.order_by is not None:
            raise UsageError("--order-by: rows of a socket go in as they come. Put a Sort first.")
    if arguments.times is None and not any(each.live for each in inputs) and _is_timed(operator):
        msg = f"{operator.name} has a time policy, and nothing moves the clock. Say --times COL."
        warnings.warn(msg, WindowlibWarning, stacklevel=2)


# -- in this process ------------------------------------------------------------------------------


def _run(operator: Operator, inputs: list[Input], arguments: argparse.Namespace) -> int:
    live = any(each.live for each in inputs)
    meter = Meter(sys.stderr, sum(each.total for each in inputs), quiet=arguments.quiet)
    replayed = _replay(operator, inputs, arguments, meter)
    out = output_of(operator, inputs, arguments, live=live)
    try:
        with warnings.catch_warnings():  # of the clock, `_check` has spoken
            warnings.filterwarnings("ignore", ".*nothing moved the clock", WindowlibWarning)
            _write_output(operator, replayed, out, meter, arguments.port)
    except (UsageError, WindowlibError) as error:
        row = None if arguments.workers else _failed_row(operator, inputs, arguments, meter)
        if row is None:
            raise
        raise UsageError(f"{row}: {one_line(error)}") from None
    finally:  # on Ctrl-C, too: what has come so far is written
        meter.clear()
        out.close()
    meter.end()
    return 0


def _failed_row(
    operator: Operator, inputs: list[Input], arguments: argparse.Namespace, meter: Meter
) -> str | None:
    """The place of the row that failed, if rows go in one by one in the order of their file."""
    (first, *others), left = inputs, meter.rows_in < (meter.total or 0)
    ordered = order_columns(arguments.order_by) or _operator_order(operator)
    if others or not isinstance(first.rows, list) or ordered or not left:
        return None
    return f"{first.name}, row {meter.rows_in + 1:,}"


def _replay(
    operator: Operator, inputs: list[Input], arguments: argparse.Namespace, meter: Meter
) -> Replay:
    times, order = arguments.times, order_columns(arguments.order_by)
    if len(inputs) == 1:
        (only,) = inputs
        if only.live:
            timed = times is None and _is_timed(operator)
            start = only.rows.start if timed else None
            rows = _metered(enumerate(only.rows.rows(timed=timed), 1), meter)
            return replay(operator, rows, times=times, start=start)
        rows = _ordered(only.rows, order or _operator_order(operator))
        return replay(operator, _metered(row_batches(rows), meter), times=times)
    merge = _merge_column(operator, order, times)
    taken = [0] * len(inputs)
    streams = [
        _metered(row_batches(_ordered(each.rows, (merge,))), meter, taken, port)
        for port, each in enumerate(inputs)
    ]
    return replay(operator, *streams, merge=merge, times=times)


def _is_timed(operator: Operator) -> bool:
    return operator.open().timed


def _operator_order(operator: Operator) -> tuple[str, ...] | None:
    by = operator.order_by
    names = by if isinstance(by, tuple) else (by,)
    return names if all(isinstance(name, str) for name in names) else None  # type: ignore[return-value]


def _merge_column(operator: Operator, order: tuple[str, ...] | None, times: str | None) -> str:
    """The column by which several inputs are merged."""
    if order is not None and len(order) > 1:
        raise UsageError("--order-by: several inputs are merged by one column. Name one.")
    said = {spec.order_by for spec in operator.windows if spec is not None}
    own = said.pop() if len(said) == 1 else None
    found = order[0] if order else times or (own if isinstance(own, str) else None)
    if found is None:
        raise UsageError("--order-by COL is missing: several inputs are merged by a column.")
    return found


def _ordered(rows: Any, order: tuple[str, ...] | None) -> Any:
    """Rows in the order of columns; those that are in order already stay as they are."""
    if order is None:
        return rows
    if not isinstance(rows, list):
        return in_order(rows, order)
    owner = f"--order-by {','.join(order)}"
    return list(sorted_runs(rows, key_getter(order, owner), owner))


def _metered(
    batches: Iterable[tuple[int, Any]],
    meter: Meter,
    taken: list[int] | None = None,
    port: int = 0,
) -> Iterator[Any]:
    """The input, counted on the meter."""
    counts = [0] if taken is None else taken
    for count, batch in batches:
        yield batch
        counts[port] = count
        meter.update(sum(counts), meter.rows_out)


def _write_output(
    operator: Operator, replayed: Replay, out: RowWriter, meter: Meter, port: str | None
) -> None:
    several = len(operator.model.outputs) > 1 and port is None
    try:
        for name, item in replayed.items():
            if isinstance(item, Mark) or port not in (None, name):
                continue
            meter.rows_out += 1
            row = named_row(item)
            out.add({"_port": name, **row} if several else row)
    except (WindowlibError, UsageError, OSError):
        raise
    except Exception as error:
        raise UsageError(error_text(error)) from None
