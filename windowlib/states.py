"""What the snapshots of running operators have in common: their format, and what wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windowlib.errors import StateVersionError
from windowlib.snapshot import ARRAYS, check_format

VERSION = 1
NO_SNAPSHOT = "restore(state): this is not a snapshot of an operator. Pass what snapshot() gave."


def form_of(schemas: Sequence[Any] | None) -> dict[str, Any]:
    """What a snapshot with arrays has beside the others: its format, and what batches look like."""
    return {} if schemas is None else {"arrays": ARRAYS, "schemas": list(schemas)}


def check_state(state: Mapping[str, Any], now: Mapping[str, str]) -> None:
    """Refuse a snapshot of another format or of another operator, and say what changed."""
    if not isinstance(state, Mapping) or not {"v", "operator", "state"} <= set(state):
        raise StateVersionError(NO_SNAPSHOT)
    check_format("the snapshot has", state["v"], VERSION)
    if "arrays" in state:
        check_format("the arrays of the snapshot have", state["arrays"], ARRAYS)
    was = state["operator"]
    if not isinstance(was, Mapping):
        raise StateVersionError(NO_SNAPSHOT)
    for name in {**was, **now}:
        if was.get(name) != now.get(name):
            msg = (
                f"restore(state): the snapshot was written with {name}={was.get(name)}; this "
                f"operator says {name}={now.get(name)}. Build it as it was, or start afresh."
            )
            raise StateVersionError(msg)
