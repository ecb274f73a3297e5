"""A file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from windowlib.commands.results import SUFFIXES
from windowlib.commands.usage import UsageError


@contextlib.contextmanager
def whole(place: str | None, *, live: bool) -> Iterator[str | None]:
    """Where to write what is meant for a place: beside it, until nothing can go wrong any more.

    A device, and what rows of a socket go into one by one, are written at once.
    """
    if place is None or live or Path(place).suffix.lower() not in SUFFIXES or _special(place):
        yield place
        return
    path = Path(os.path.realpath(place))  # what a link leads to
    beside = path.with_name(f".{path.stem}.{os.getpid()}{Path(place).suffix}")
    try:
        yield str(beside)
        beside.replace(path)
    except UsageError as error:
        raise UsageError(str(error).replace(str(beside), place)) from None
    except OSError as error:
        if error.filename in (None, str(beside)):
            error.filename = place
        raise
    finally:
        with contextlib.suppress(OSError):  # if it could not be made, it cannot be removed
            beside.unlink(missing_ok=True)


def _special(place: str) -> bool:
    """Whether it is there, and no file that another can take the place of."""
    return Path(place).exists() and not Path(place).is_file()
