"""`windowlib demo`: one operator, from the question to the answer."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from windowlib.samples import trades
from windowlib.spec.policies import Count
from windowlib.spec.specification import Sliding
from windowlib.tools.commands.meter import colours
from windowlib.tools.commands.output_files import table_lines
from windowlib.tools.commands.usage import muted_stderr, spark_failures
from windowlib.tools.tracing import trace

QUESTION = "VWAP per symbol over the last 100 trades, after every 10 trades."
TRADES = 5000
FILES = 5

# Shown and run, so that what is shown is what runs.
CODE = """\
from windowlib import Count, Sliding, replay
from windowlib.operators import Aggregate, agg
from windowlib.samples import trades

vwap = Aggregate(
    Sliding(Count(100), every=Count(10), by="symbol", order_by="ts"),
    vwap=agg.sum("notional") / agg.sum("qty"),
    high=agg.max("price"),
    until=agg.last("ts"),
)
rows = list(replay(vwap, trades(5000)))
"""

ON_SPARK = """\
from windowlib.spark import progress, session

spark = session()
stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
query = (
    stream.parquet(folder)
    .transform(vwap)
    .writeStream.format("memory").queryName("vwap")
    .trigger(availableNow=True)
    .start()
)
progress(query)
"""

ONE_LINE = "On a Spark stream it is one line: stream.transform(vwap). See it: demo --spark"

TRY = """\
Try:
  python -m windowlib trace "sliding, delta(ts, 20), delta(ts, 10)"
  python -m windowlib check "Aggregate(Tumbling(Count(10)), n=agg.count())"
  python -m windowlib run --help
"""


def add(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser("demo", help="one operator, from the question to the answer")
    parser.add_argument("--spark", action="store_true", help="on Spark, too; it needs Java")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the demo; 1 if the results differ between plain Python, columns and Spark."""
    if arguments.spark:  # without Java, say so before anything else
        from windowlib.spark.session import check_java

        check_java()
    _print_heading("Question", QUESTION)
    print(f"\n{picture()}\n")
    names: dict[str, Any] = {}
    exec(CODE, names)
    _print_heading("The code")
    print(f"\n{textwrap.indent(CODE.rstrip(), '    ')}\n")
    found = {"plain Python": names["rows"], "columnar": _columnar(names["vwap"])}
    if arguments.spark:
        _print_heading("On a Spark stream")
        print(f"\n{textwrap.indent(ON_SPARK.rstrip(), '    ')}\n", flush=True)
        found["Spark"] = on_spark(names["vwap"])
    _print_heading(
        "The answer", f"{len(names['rows']):,} rows from {TRADES:,} trades; the last are"
    )
    print("\n".join(["", *(f"  {line}" for line in answer(names["rows"])), ""]))
    if not arguments.spark:
        print(f"{ONE_LINE}\n\n{TRY}")
    same, total = agreement(list(found.values()))
    print(f"{joined_names(list(found))} agree: {same:,}/{total:,} rows")
    return 0 if same == total else 1


def _print_heading(title: str, text: str = "") -> None:
    bold, plain = ("\x1b[1m", "\x1b[0m") if colours(sys.stdout) else ("", "")
    print(f"{bold}{title}:{plain} {text}".rstrip())


def joined_names(names: Sequence[str]) -> str:
    """Names as a phrase.

    >>> joined_names(["a", "b", "c"])
    'a, b and c'
    """
    return f"{', '.join(names[:-1])} and {names[-1]}"


def picture(symbol: str = "IBM") -> str:
    """The timeline of the window of one symbol, ten trades in a column."""
    small = Sliding(Count(10), every=Count(1), by="symbol")
    seen = trace(small, [{"symbol": symbol}] * 11)
    # The first line is the small window, which is not the one that is asked about.
    _, _, drawn = seen.text(78).partition("\n\n")
    return "\n".join(
        [
            "What the window does; each column stands for 10 trades of one symbol:",
            "",
            textwrap.indent(drawn, "  "),
        ]
    )


def answer(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The last row of each symbol, as a table."""
    last = {row["symbol"]: row for row in rows}
    shown = [
        {**row, "vwap": f"{row['vwap']:.3f}", "until": f"{row['until']:%H:%M:%S}"}
        for _, row in sorted(last.items())
    ]
    yield from table_lines(["symbol", "vwap", "high", "until"], shown, 78)


def _columnar(vwap: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    table = pa.Table.from_pylist(trades(TRADES))
    found: list[dict[str, Any]] = vwap.open().process_batch(table).to_pylist()
    return found


def on_spark(vwap: Any) -> list[dict[str, Any]]:
    """The rows that a streaming query gives, which is shown while it runs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with (
        muted_stderr(),
        spark_failures(),
        tempfile.TemporaryDirectory(prefix="windowlib-") as folder,
    ):
        table = pa.Table.from_pylist(trades(TRADES))
        step = -(-TRADES // FILES)
        for number in range(FILES):
            path = Path(folder, f"{number:03}.parquet")
            pq.write_table(table.slice(number * step, step), path)
            os.utime(path, (number + 1, number + 1))  # Spark takes the oldest first
        from windowlib.spark import session

        spark = session()
        spark.sparkContext.setLogLevel("OFF")
        schema = spark.read.parquet(folder).schema
        names: dict[str, Any] = {"vwap": vwap, "folder": folder, "schema": schema}
        exec(ON_SPARK, names)
        print(flush=True)
        rows: list[dict[str, Any]] = spark.table("vwap").toArrow().to_pylist()
    return rows


def agreement(results: Sequence[Sequence[dict[str, Any]]]) -> tuple[int, int]:
    """How many rows are the same in all results, and how many there are.

    Rows of one symbol have an order, which must be the same; those of several have none on Spark.

    >>> agreement([[{"symbol": "A", "x": 1}], [{"symbol": "A", "x": 2}]])
    (0, 1)
    """
    each = [_by_symbol(rows) for rows in results]
    same = total = 0
    for symbol in {symbol for one in each for symbol in one}:
        columns = [one[symbol] for one in each]
        longest = max(map(len, columns))
        total += longest
        shortest = min(map(len, columns))
        same += sum(all(c[i] == columns[0][i] for c in columns) for i in range(shortest))
    return same, total


def _by_symbol(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["symbol"]].append(row)
    return found
