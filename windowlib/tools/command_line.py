"""The command line: `demo`, `run`, `check`, `state`, `trace` and `conformance`.

A user's mistake is one line on stderr and exit code 2; Ctrl-C ends a command with 130.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from windowlib.errors import WindowlibError, WindowlibWarning
from windowlib.tools import conformance
from windowlib.tools.commands import check, demo, run, state, trace
from windowlib.tools.commands.usage import CheckError, UsageError, one_line

# A command is a module with a function `add`, which declares it; this table is how it is found.
COMMANDS = {
    "demo": demo,
    "run": run,
    "check": check,
    "state": state,
    "trace": trace,
    "conformance": conformance,
}


LONGEST = 2000
"""Characters of a message, which may contain a row."""


class _CommandParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    _make_streams_safe()
    who = f"windowlib {words[0]}" if words and words[0] in COMMANDS else "windowlib"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", WindowlibWarning)
            warnings.showwarning = lambda message, *_, **__: _print_message(who, str(message))
            code = _run(words)
        sys.stdout.flush()
    except CheckError as error:
        _print_message(who, one_line(error))
        return 1
    except (UsageError, WindowlibError, OSError) as error:
        if isinstance(error, OSError) and isinstance(sys.stdout, io.TextIOWrapper):
            # Python must not find out again that it cannot write, when it flushes at exit.
            with contextlib.suppress(OSError):
                sys.stdout.flush()
        if isinstance(error, BrokenPipeError):  # the reader has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        _print_message(who, one_line(error))
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _make_streams_safe() -> None:
    """Make printing safe: where a stream is closed, and where it lacks letters."""
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _run(words: Sequence[str]) -> int:
    parser = _parser()
    arguments = parser.parse_args(words)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    code: int = arguments.command(arguments)
    return code


def _print_message(who: str, text: str) -> None:
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    print(f"{who}: {shown}", file=sys.stderr)


class ClosedOutput(io.TextIOBase):
    """Standard output that was closed: rows for it must not vanish."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        """Refuse to lose what is written."""
        raise OSError(errno.EBADF, "it is closed. Redirect it, or use --output FILE", "stdout")


def _parser() -> argparse.ArgumentParser:
    typed = Path(sys.argv[0]).stem == "windowlib"  # the script, which is on the PATH
    prog = "windowlib" if typed else "python -m windowlib"
    parser = _CommandParser(prog=prog, description="SPL-style windows for Python.")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS.values():
        command.add(commands)
    return parser
