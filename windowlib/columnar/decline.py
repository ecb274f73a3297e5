"""How the columnar engine says that a batch is not for it."""

from __future__ import annotations


class Decline(Exception):  # noqa: N818 - not an error: the event engine takes the batch
    """Array arithmetic would not be exact here; the message says why in a few words.

    Whoever raises it has changed nothing yet, so the event engine can take the same batch.
    """
