"""The state cache: running operators of buckets, kept in memory between micro-batches.

Spark hands a bucket to any Python worker that is free. To load a bucket's state anew each time
would cost what the state holds, so the worker that has it keeps it, and works for the others
on the same machine through a local socket. What is kept is only ever used if it is exactly what the
state store says is current; otherwise the state comes from the store.

The address in the state store is a name and no secret: the system tells either side which user the
other one is, and processes of other users are refused. Plain data crosses
(`window/state_bytes.py`), and every wait has a limit. A worker that is gone, stopped or not ours
costs a reload from the store.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from windowlib.spark.bucket.bucket import Bucket, BucketSpec, MicroBatch, MicroBatchResult
from windowlib.spark.bucket.state_store import StateHead
from windowlib.spark.plan.shuffle import PackedRows
from windowlib.window.state_bytes import ENVELOPE, HEADER, dump_state, load_state

CAPACITY = 256
"""Buckets that one worker keeps at most; of more, those that were not used for longest go."""
TIME_TO_LIVE = 600.0
"""Seconds after which a bucket that got no micro-batch is no longer kept."""
SILENCE = 10.0
"""Seconds without a byte from the other side after which it is given up."""
BEAT = 1.0
"""Seconds after which a worker that is still at it says so."""
LONGEST = 600.0
"""Seconds after which an answer is no longer waited for, whatever the other side says."""
LARGEST = 1 << 32
"""Bytes of a message."""
PIECE = 1 << 20
WORKING, DONE, ABSENT = b"\0", b"\1", b"\2"
PEER = struct.Struct("3i")
"""Process, user and group at the other end of a socket."""


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
        """When the least recently used bucket was used."""
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

    # -- for other workers ------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where this process can be reached: the machine, and the name of a socket."""
        with self._lock:
            if not self._address:
                name = _new_name()
                listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                listener.bind(_path(name))
                listener.listen(64)
                threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
                self._address = f"{socket.gethostname()} {name}"
            return self._address

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:  # one that gave up
                continue
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        """Take one micro-batch for another worker; if it fails, that one does it once more."""
        with caller:
            try:
                caller.settimeout(SILENCE)
                if not same_user(caller):
                    return
                nonce, batch = _batch_from(_received(caller))
                self._work(caller, nonce, batch)
            except Exception:
                return

    def _work(self, caller: socket.socket, nonce: str, batch: MicroBatch) -> None:
        """Take a micro-batch, and report every second that it is under way."""
        done, found = threading.Event(), list[MicroBatchResult | None]()

        def work() -> None:
            try:
                found.append(self.step(nonce, batch))
            finally:
                done.set()

        threading.Thread(target=work, daemon=True).start()
        while not done.wait(BEAT):
            caller.sendall(WORKING)
        (result,) = found
        if result is None:
            caller.sendall(ABSENT)
        else:
            caller.sendall(DONE)
            _send(caller, dump_state(tuple(vars(result).values())))

    def ask(self, address: str, nonce: str, batch: MicroBatch) -> MicroBatchResult | None:
        """Let another process take a micro-batch, if it is here and has the bucket."""
        machine, _, name = address.partition(" ")
        if not name or address == self._address or machine != socket.gethostname():
            return None
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as home:
                home.settimeout(SILENCE)
                home.connect(_path(name))
                if not same_user(home):
                    return None
                _send(home, dump_state((nonce, _as_tuple(batch))))
                return _answered(home)
        except (OSError, EOFError, ValueError, TypeError):  # ended, failed, or not ours
            return None


def _answered(home: socket.socket) -> MicroBatchResult | None:
    """The result of another worker for a micro-batch; None if it does not have the bucket."""
    end = time.monotonic() + LONGEST
    while (said := home.recv(1)) == WORKING:
        if time.monotonic() > end:
            return None
    if said != DONE:
        return None
    result = MicroBatchResult(*load_state(_received(home)))
    return result if result.plain() else None


def _as_tuple(batch: MicroBatch) -> tuple[Any, ...]:
    chunks = [tuple(chunk) for chunk in batch.chunks]
    return batch.query, chunks, batch.now, batch.saved, batch.logged, batch.fresh


def _batch_from(data: bytearray) -> tuple[str, MicroBatch]:
    nonce, (query, chunks, *others) = load_state(data)
    return nonce, MicroBatch(query, tuple(PackedRows(*chunk) for chunk in chunks), *others)


# -- sockets of one user --------------------------------------------------------------------------


def _new_name() -> str:
    """A new name for a socket: on Linux one without a file, so that nothing is left behind."""
    name = f"windowlib-{os.getpid()}-{secrets.token_hex(8)}"
    if sys.platform.startswith("linux"):
        return name
    return os.path.join(tempfile.mkdtemp(prefix="windowlib-"), name)  # for this user alone


def _path(name: str) -> str:
    return name if os.path.isabs(name) else f"\0{name}"


def same_user(peer: socket.socket) -> bool:
    """Whether the other end of a connection is a process of this user.

    Where the system does not tell, the folder of the socket is for this user alone.
    """
    if hasattr(socket, "SO_PEERCRED"):
        told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        return bool(PEER.unpack(told)[1] == os.getuid())
    path = peer.getsockname() or peer.getpeername()
    folder = os.stat(os.path.dirname(path))
    return folder.st_uid == os.getuid() and not folder.st_mode & 0o077


def _send(to: socket.socket, data: bytes) -> None:
    """Send state, with a limit on the wait for each piece."""
    view = memoryview(data)
    for at in range(0, len(view), PIECE):
        to.sendall(view[at : at + PIECE])


def _received(peer: socket.socket) -> bytearray:
    """State that was sent: its envelope says how much there is."""
    head = _read(peer, bytearray(HEADER))
    _, _, size = ENVELOPE.unpack_from(head)
    if size > LARGEST:
        raise ValueError(f"a message of {size} bytes")
    return head + _read(peer, bytearray(size))


def _read(peer: socket.socket, room: bytearray) -> bytearray:
    view, at = memoryview(room), 0
    while at < len(room):
        got = peer.recv_into(view[at:])
        if not got:
            raise EOFError("the other side is gone")
        at += got
    return room


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
