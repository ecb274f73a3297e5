"""What the snapshots of running operators have in common: their format, and what wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.errors import StateVersionError
from windowlib.snapshot import ARRAYS, check_format, first_change

if TYPE_CHECKING:
    from windowlib.window import Window

VERSION = 1
NO_SNAPSHOT = "restore(state): this is not a snapshot of an operator. Pass what snapshot() gave."


def form_of(schemas: Sequence[Any], windows: Sequence[Window[Any, Any]]) -> dict[str, Any]:
    """What a snapshot with arrays has beside the others: its format, and how batches are taken."""
    hosts = [window._batches for window in windows]
    batches = [None if host is None else host.manner() for host in hosts]
    return {"arrays": ARRAYS, "schemas": list(schemas), "batches": batches}


def put_form(state: Mapping[str, Any], windows: Sequence[Window[Any, Any]]) -> list[Any]:
    """Let windows take batches as they did in a snapshot with arrays; the schemas of the ports."""
    for window, manner in zip(windows, state["batches"], strict=True):
        if manner is not None or window._batches is not None:
            window._host().put_manner(manner)
    return list(state["schemas"])


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
    if (name := first_change(was, now)) is not None:
        msg = (
            f"restore(state): the snapshot was written with {name}={was.get(name)}; this "
            f"operator says {name}={now.get(name)}. Build it as it was, or start afresh."
        )
        raise StateVersionError(msg)
