"""`windowlib conformance`: do recorded event traces still come out?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from windowlib import conformance
from windowlib.commands.usage import UsageError, one_line


def add(commands: Any) -> None:
    """Tell the command line what there is to say."""
    checking = commands.add_parser("conformance", help="check recorded event traces")
    checking.add_argument("paths", metavar="PATH", nargs="+", help="trace files, or their folders")
    checking.add_argument("--engine", choices=("generated", "reference"), default="generated")
    checking.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what differs, and how many cases there were."""
    total = wrong = 0
    for case in _cases(arguments.paths):
        total += 1
        mismatch = conformance.check(case, arguments.engine)
        if mismatch is not None:
            wrong += 1
            print(mismatch)
    if not total:
        raise UsageError(f"{', '.join(arguments.paths)}: there are no recorded cases in it.")
    print(f"{total} cases, {wrong} mismatches")
    return 1 if wrong else 0


def _cases(paths: list[str]) -> Iterator[dict[str, Any]]:
    try:
        yield from conformance.cases(paths)
    except ValueError as error:
        raise UsageError(one_line(error)) from None
