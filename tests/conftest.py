"""Settings of all tests, and a server that sends to a socket."""

import gc
import os
import socket
import threading

import pytest
from hypothesis import settings

from tests.helpers import java
from tests.helpers.examples import QUICK

for _name, _value in java.environment().items():
    os.environ.setdefault(_name, _value)

# Tests make little garbage that has to be searched for; looking for it is a tenth of their time.
gc.set_threshold(10_000, 20, 50)

settings.load_profile(QUICK)  # unless --hypothesis-profile=thorough says otherwise


@pytest.fixture
def sender():
    """A function that serves bytes to the first who connects, and gives the address."""
    threads, servers = [], []

    def serve(data):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def send():
            connection, _ = server.accept()
            with connection:
                connection.sendall(data)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        threads.append(thread)
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"

    yield serve
    for thread in threads:
        thread.join(10)
    for server in servers:
        server.close()
