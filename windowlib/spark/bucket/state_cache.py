"""The state cache: running operators of buckets, kept in memory between micro-batches.

Spark hands a bucket to any Python worker that is free. To load a bucket's state anew each time
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

from windowlib.spark.bucket.bucket import Bucket, BucketSpec, MicroBatch, MicroBatchResult
from windowlib.spark.bucket.state_store import StateHead

CAPACITY = 256
"""Buckets that one worker keeps at most; of more, those that were not used for longest go."""
TIME_TO_LIVE = 600.0
"""Seconds after which a bucket that got no micro-batch is no longer kept."""


class StateCache:
    """The buckets that this process keeps."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, str], tuple[float, Bucket]] = OrderedDict()
        self._lock = threading.Lock()
        self._address = ""

    def keep(self, bucket: Bucket) -> None:
        """Keep a bucket for the next micro-batch."""
        now = time.monotonic()
        with self._lock:
            self._buckets[bucket.spec.nonce, bucket.nonce] = now, bucket
            while len(self._buckets) > CAPACITY or self._since() < now - TIME_TO_LIVE:
                self._buckets.popitem(last=False)

    def _since(self) -> float:
        """When the bucket was last used that was not used for longest."""
        return next(iter(self._buckets.values()))[0]

    def step(self, nonce: str, batch: MicroBatch) -> MicroBatchResult | None:
        """Let a bucket in exactly this state take a micro-batch; None if it is not here."""
        with self._lock:
            found = self._buckets.pop((batch.query, nonce), None)
        if found is None:
            return None
        _, bucket = found
        result = bucket.step(batch)  # if it fails, the bucket is no longer kept
        self.keep(bucket)
        return result

    @property
    def address(self) -> str:
        """Where this process can be reached: the machine, a socket, and a key to it.

        It is written into the state store, so all who can read the state can use it.
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

    def ask(self, address: str, nonce: str, batch: MicroBatch) -> MicroBatchResult | None:
        """Let another process take a micro-batch, if it is here and has the bucket."""
        machine, name, key = address.split(" ")
        if address == self._address or machine != socket.gethostname():
            return None
        try:
            with Client(_path(name), "AF_UNIX", authkey=bytes.fromhex(key)) as home:
                home.send((nonce, batch))
                result: MicroBatchResult | None = home.recv()
                return result
        except (OSError, EOFError, ValueError, AuthenticationError):  # it has ended, or failed
            return None


def _path(name: str) -> str:
    """Where a socket is: on Linux a name without a file, so that nothing is left behind."""
    if sys.platform.startswith("linux"):
        return f"\0{name}"
    return os.path.join(tempfile.gettempdir(), name)


STATE_CACHE = StateCache()


def run_micro_batch(
    spec: BucketSpec, head: StateHead | None, batch: MicroBatch, load: Callable[[StateHead], Any]
) -> tuple[MicroBatchResult, str]:
    """Let a bucket take a micro-batch, in any process; the result, and the address it is at now."""
    if head is None:
        bucket = Bucket(spec, 0 if spec.follows else batch.now or 0)
    else:
        if (result := STATE_CACHE.step(head.nonce, batch)) is not None:
            return result, STATE_CACHE.address
        # To send rows to another process costs more than to load a state that is smaller.
        large = head.saved + head.logged > batch.size
        if large and (result := STATE_CACHE.ask(head.home, head.nonce, batch)) is not None:
            return result, head.home
        bucket = Bucket.restored(spec, head.nonce, *load(head))
    result = bucket.step(batch)
    result.counts["loads"] = int(head is not None)
    STATE_CACHE.keep(bucket)
    return result, STATE_CACHE.address
