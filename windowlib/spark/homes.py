"""Where the running operators of buckets live, between micro-batches.

Spark hands a bucket to whichever Python worker is free. To load a bucket's state anew each time
would cost what the state holds, so the worker that has it keeps it, and works for the others
on the same machine through a local socket. What is kept is only ever used if it is exactly what the
state store says is current; otherwise the state comes from the store.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from windowlib.spark.store import Head
from windowlib.spark.unit import Job, Outcome, Request, Unit

ROOM = 256
"""Buckets that one worker keeps at most; of more, those that were not used for longest go."""
PATIENCE = 600.0
"""Seconds after which a bucket that nobody asks for is no longer kept."""


class Homes:
    """The buckets that this process keeps."""

    def __init__(self) -> None:
        self._units: OrderedDict[tuple[str, str], tuple[float, Unit]] = OrderedDict()
        self._lock = threading.Lock()
        self._address = ""

    def keep(self, unit: Unit) -> None:
        """Keep a bucket for the next micro-batch."""
        now = time.monotonic()
        with self._lock:
            self._units[unit.job.nonce, unit.nonce] = now, unit
            while len(self._units) > ROOM or self._since() < now - PATIENCE:
                self._units.popitem(last=False)

    def _since(self) -> float:
        """When the bucket was last used that was not used for longest."""
        return next(iter(self._units.values()))[0]

    def step(self, nonce: str, request: Request) -> Outcome | None:
        """Let a bucket in exactly this state take a micro-batch; None if it is not here."""
        with self._lock:
            found = self._units.pop((request.job, nonce), None)
        if found is None:
            return None
        _, unit = found
        outcome = unit.step(request)  # if it fails, the bucket is no longer kept
        self.keep(unit)
        return outcome

    # -- for other workers of this machine --------------------------------------------------------

    @property
    def address(self) -> str:
        """Where this process can be reached: the machine, a socket, and a key to it.

        It is written into the state store, so whoever can read the state can use it.
        """
        if not self._address:
            name, key = f"windowlib-{os.getpid()}-{secrets.token_hex(8)}", secrets.token_hex(16)
            listener = Listener(_path(name), "AF_UNIX", backlog=64, authkey=bytes.fromhex(key))
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
            self._address = f"{socket.gethostname()} {name} {key}"
        return self._address

    def _serve(self, listener: Listener) -> None:
        while True:
            try:
                caller = listener.accept()
            except Exception:  # a stranger, or one that gave up
                continue
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: Connection) -> None:
        """Take one micro-batch for another worker; if it fails, that one does it once more."""
        with caller:
            try:
                caller.send(self.step(*caller.recv()))
            except Exception:
                return

    def ask(self, address: str, nonce: str, request: Request) -> Outcome | None:
        """Let another process take a micro-batch, if it is here and has the bucket."""
        machine, name, key = address.split(" ")
        if address == self._address or machine != socket.gethostname():
            return None
        try:
            with Client(_path(name), "AF_UNIX", authkey=bytes.fromhex(key)) as home:
                home.send((nonce, request))
                outcome: Outcome | None = home.recv()
                return outcome
        except (OSError, EOFError, ValueError, AuthenticationError):  # it has ended, or failed
            return None


def _path(name: str) -> str:
    """Where a socket is: on Linux a name without a file, so that nothing is left behind."""
    if sys.platform.startswith("linux"):
        return f"\0{name}"
    return os.path.join(tempfile.gettempdir(), name)


HOMES = Homes()


def taken(
    job: Job, head: Head | None, request: Request, load: Callable[[Head], Any]
) -> tuple[Outcome, str]:
    """Let a bucket take a micro-batch, wherever it is; and where it is now."""
    if head is None:
        unit = Unit(job, request.now or 0)
    else:
        if (outcome := HOMES.step(head.nonce, request)) is not None:
            return outcome, HOMES.address
        # To send rows to another process costs more than to load a state that is smaller.
        large = head.saved + head.logged > request.size
        if large and (outcome := HOMES.ask(head.home, head.nonce, request)) is not None:
            return outcome, head.home
        unit = Unit.restored(job, head.nonce, *load(head))
    outcome = unit.step(request)
    outcome.counts["loads"] = int(head is not None)
    HOMES.keep(unit)
    return outcome, HOMES.address
