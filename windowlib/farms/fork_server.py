"""The fork server: a process that has loaded what workers need, and forks workers.

Each worker would need half a second of a processor to load the libraries. So the first farm of a
program starts one process that only loads them; workers are forks of it, which take milliseconds.
It has no threads, so a fork of it is safe, unlike one of the program, and it ends with the program.

Requests are single messages, with the connection of the worker beside them:

    {"load": ["windowlib.farms", ...]}                                          no answer
    {"start": 3, "path": [...], "folder": "/home/me", "environment": {...}}    no answer
    {"end": 3, "grace": 5.0}                                                    its exit code
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

REQUEST = 1 << 20
"""Bytes of a request at most."""
SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""What keeps a worker from starting threads of its own."""


def environment() -> dict[str, str]:
    """The environment of a worker: the module path of this process, and one processor."""
    path = os.pathsep.join(each for each in sys.path if each)
    return {**os.environ, **SINGLE_THREADED, "PYTHONPATH": path}


class ForkServer:
    """The side of the program: asks for workers, and for their ends."""

    _lock = threading.RLock()
    _shared: ForkServer | None = None

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        command = [sys.executable, "-m", "windowlib.farms.process", "serve", str(number)]
        self._process = subprocess.Popen(
            command, pass_fds=[number], env=environment(), stdin=subprocess.DEVNULL
        )
        theirs.close()
        self._owner, self._tokens = os.getpid(), count()
        loaded = [name for name in sys.modules if name.startswith("windowlib.")]
        loaded = [name for name in loaded if not name.startswith("windowlib.spark")]
        self._socket.send(json.dumps({"load": loaded}).encode())
        weakref.finalize(self, _close, self._socket, self._process)

    @classmethod
    def shared(cls) -> ForkServer:
        """The server of this program; a new one if it is gone, or belongs to a parent process."""
        with cls._lock:
            one = cls._shared
            if one is None or one._owner != os.getpid() or one._process.poll() is not None:
                one = cls._shared = ForkServer()
            return one

    def start(self, connection: int) -> int:
        """Start a worker with a connection; returns the token by which to end it."""
        token = next(self._tokens)
        request = {
            "start": token,
            "path": sys.path,
            "folder": os.getcwd(),
            "environment": environment(),
        }
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [connection])
        return token

    def end(self, token: int, grace: float) -> int | None:
        """Wait until a worker has ended, and kill it if it does not; its exit code, if known."""
        with self._lock, suppress(OSError, ValueError):
            self._socket.send(json.dumps({"end": token, "grace": grace}).encode())
            return int(self._socket.recv(64))
        return None  # the server was killed, and its workers end by themselves


def _close(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Close the connection, which ends the server; its workers may go on for a while."""
    control.close()
    process.wait()


def serve(control: socket.socket, work: Callable[[int], None]) -> None:
    """The side of the server: fork workers until the program is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its program ends it
    workers: dict[int, int] = {}
    while True:
        data, connections, _, _ = socket.recv_fds(control, REQUEST, 1)
        if not data:
            return
        request = json.loads(data)
        if "load" in request:
            _preload(request["load"])
            continue
        if "end" in request:
            code = _wait_for_exit(workers.pop(request["end"]), request["grace"])
            control.send(str(code).encode())
            continue
        (connection,) = connections
        pid = os.fork()
        if not pid:
            control.close()
            _run_worker(request, connection, work)
        os.close(connection)
        workers[request["start"]] = pid


def _preload(names: list[str]) -> None:
    """Load modules that the program has loaded, so that workers have them."""
    for name in names:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # what is there now stays, and pages with it are shared


def _run_worker(request: dict[str, Any], connection: int, work: Callable[[int], None]) -> None:
    """Run a worker in this process, and exit."""
    code = 1
    try:
        sys.path[:] = request["path"]
        os.environ.clear()
        os.environ.update(request["environment"])
        with suppress(OSError):
            os.chdir(request["folder"])
        random.seed()  # or all workers would draw the same
        np.random.seed()
        work(connection)
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait_for_exit(pid: int, grace: float) -> int:
    """The exit code of a worker, which is killed after a while."""
    until = time.monotonic() + grace
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        time.sleep(0.002)
