"""`windowlib state`: inspects, verifies, rescales and migrates the checkpoint of a Spark query."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from windowlib.errors import WindowlibError
from windowlib.tools.commands.operator_text import operator_of
from windowlib.tools.commands.usage import CheckError, UsageError, one_line

LIMIT = 20


def add(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser("state", help="the state in the checkpoint of a Spark query")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, act, text in (
        ("inspect", inspect, "the subwindows, a JSON line each"),
        ("verify", verify, "read all of it, and say whether it is whole"),
        ("rescale", rescale, "write a checkpoint with other buckets or shuffle partitions"),
        ("migrate", migrate, "write a checkpoint in the present format of state"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("checkpoint", metavar="CHECKPOINT", help="its checkpointLocation")
        action.add_argument(
            "--operator",
            metavar="OPERATOR",
            action="append",
            default=[],
            help="job.py:name, where an operator has functions or classes of your own",
        )
        action.set_defaults(command=act)
        if name in ("inspect", "verify"):
            action.add_argument("--batch", type=int, help="after which batch; the last one")
        else:
            action.add_argument("new", metavar="NEW", help="where the new checkpoint goes")
    rescaled = actions.choices["rescale"]
    rescaled.add_argument("--buckets", type=int, help="how many; as before, or as partitions")
    rescaled.add_argument("--partitions", type=int, help="shuffle partitions; as before")
    inspected = actions.choices["inspect"]
    inspected.add_argument(
        "--limit", type=int, default=LIMIT, help=f"tuples of a subwindow that are shown; {LIMIT}"
    )


def inspect(arguments: argparse.Namespace) -> int:
    """Print the subwindows."""
    for row in _rows(arguments, arguments.limit):
        fields = {name: value for name, value in row.asDict().items() if value is not None}
        for name in ("key", "oldest", "newest", "content"):
            if name in fields:
                fields[name] = json.loads(fields[name])
        print(json.dumps(fields, ensure_ascii=False, default=str))
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """Restore every bucket and print a summary; damage is reported, with exit code 1."""
    found: dict[tuple[int, str], list[Any]] = {}
    for row in _rows(arguments, 0):
        found.setdefault((row.id, row.operator), []).append(row)
    for (number, name), rows in sorted(found.items()):
        buckets = {row.bucket: row.bucket_bytes for row in rows}
        print(
            f"{number} {name}: {len(rows)} subwindows in {len(buckets)} buckets, "
            f"{sum(buckets.values())} bytes"
        )
    print("The state is whole.")
    return 0


def rescale(arguments: argparse.Namespace) -> int:
    """Write a checkpoint with other buckets or shuffle partitions."""
    from windowlib.spark import rescale_state, session

    if arguments.buckets is None and arguments.partitions is None:
        raise UsageError("state rescale: nothing changes. Say --buckets or --partitions.")
    operators = [operator_of(text) for text in arguments.operator]
    with _checkpoint_errors():
        rescale_state(
            arguments.checkpoint,
            arguments.new,
            session(),
            operators,
            buckets=arguments.buckets,
            partitions=arguments.partitions,
        )
    print(f"The query goes on from {arguments.new}.")
    return 0


def migrate(arguments: argparse.Namespace) -> int:
    """Write a checkpoint in the present format."""
    from windowlib.spark import migrate_state, session

    operators = [operator_of(text) for text in arguments.operator]
    with _checkpoint_errors():
        done = migrate_state(arguments.checkpoint, arguments.new, session(), operators)
    go = f"The query goes on from {arguments.new}."
    print(go if done else "The state is in the present format already; nothing was written.")
    return 0


@contextmanager
def _checkpoint_errors() -> Iterator[None]:
    """Turn errors of a checkpoint into the result of the command."""
    from pyspark.errors import PySparkException

    try:
        yield
    except WindowlibError as error:
        raise CheckError(one_line(error)) from None
    except PySparkException as error:  # of a worker, with its traceback
        raise CheckError(worker_message(str(error))) from None


def _rows(arguments: argparse.Namespace, limit: int) -> list[Any]:
    """The subwindows of a checkpoint; its errors are the result of the command."""
    from windowlib.spark import inspect_state, session

    operators = [operator_of(text) for text in arguments.operator]
    with _checkpoint_errors():
        frame = inspect_state(
            arguments.checkpoint, session(), operators, batch_id=arguments.batch, limit=limit
        )
        found: list[Any] = frame.collect()
    return found


def worker_message(text: str) -> str:
    """The message of a windowlib error in a Python worker, from Spark's text about it.

    >>> worker_message("Job aborted\\n  windowlib.errors.StateError: it was changed.\\n\\n at java")
    'it was changed.'
    """
    for line in text.splitlines():
        kind, _, said = line.strip().partition(": ")
        if kind.startswith("windowlib.errors."):
            return said
    return text.strip().partition("\n")[0]
