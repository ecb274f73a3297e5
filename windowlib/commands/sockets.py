"""Rows from a socket: JSON lines, as they come."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from windowlib.commands.texts import json_row
from windowlib.commands.usage import UsageError
from windowlib.marks import Mark, advance

PLACE = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\s]+):(?P<port>\d{1,5})/?")
PATIENCE = 10.0
"""Seconds to wait for the connection."""
TICK = 0.2
"""Seconds of silence after which the clock moves by itself."""
WHILE = 0.5
"""Seconds in which the rows of a piece come."""
MOST = 16_384
"""Rows that a piece has at most."""
UNPUNCTUATED = "Spark has no punctuations among rows. Leave out --spark."


class SocketRows:
    """The rows that somebody sends to us, until they close the connection.

    Args:
        place: tcp://host:port; the connection is made at once.
        schema: the Arrow schema that rows are to have, if it is known.
        clock: what time it is, in seconds.
    """

    def __init__(
        self, place: str, schema: Any = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.place, self.schema, self.clock = place, schema, clock
        found = PLACE.fullmatch(place)
        if found is None or not 0 < int(found["port"]) < 65536:
            raise UsageError(f"{place}: not an address. Write tcp://host:port.")
        try:
            address = found["host"].strip("[]"), int(found["port"])
            self._socket = socket.create_connection(address, timeout=PATIENCE)
        except OSError as error:
            raise UsageError(f"{place}: {error.strerror or error}.") from None
        self._socket.settimeout(TICK)
        self.start = clock()

    def rows(self, *, timed: bool) -> Iterator[Any]:
        """Rows and punctuations; if `timed`, the clock moves before them and in silence, too."""
        with self._socket:
            number = 0
            for line in self._lines():
                if timed:
                    yield advance(self.now())
                if line is None:
                    continue
                number += 1
                if line.strip():
                    yield json_row(f"{self.place}, line {number}", line, self.schema)

    def pieces(self) -> Iterator[list[Any]]:
        """The rows some at a time: those of a while, which may be none."""
        waiting: list[Any] = []
        since, failure = time.monotonic(), None
        try:
            for item in self.rows(timed=True):
                if not isinstance(item, Mark):
                    waiting.append(item)
                elif item.at is None:
                    raise UsageError(f"{self.place}: {UNPUNCTUATED}")
                elif time.monotonic() - since >= WHILE or len(waiting) >= MOST:
                    yield waiting
                    waiting, since = [], time.monotonic()
        except UsageError as error:  # the rows before it are as good as any
            failure = error
        yield waiting
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def now(self) -> float:
        """The time; it never goes back, whatever happens to the clock of the machine."""
        self.start = max(self.start, self.clock())
        return self.start

    def _lines(self) -> Iterator[str | None]:
        """Lines as they come; None whenever nothing has come for a while."""
        rest = b""
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                yield None
                continue
            except OSError as error:
                raise UsageError(f"{self.place}: {error.strerror or error}.") from None
            *lines, rest = (rest + data).split(b"\n")
            if not data and rest:
                lines = [rest]
            for line in lines:
                yield self._text(line)
            if not data:
                return

    def _text(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise UsageError(f"{self.place}: what comes is not text.") from None
