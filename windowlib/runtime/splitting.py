"""The columns by which the work of an operator can be split over several workers.

Rows that differ in the columns of `Operator.splits_by` never meet, so each place may have a
running operator of its own. Whatever is not known to be so is kept in one place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windowlib.spec.policies import Punct
from windowlib.spec.specification import Tumbling
from windowlib.window.events import HANDLERS

if TYPE_CHECKING:
    from windowlib.runtime.operator import Operator

Names = tuple[str, ...]

WORK = (
    *HANDLERS,
    *("on_tuple", "on_punctuation", "on_advance", "on_timer"),
    *("on_input_end", "on_finish", "forward"),
)
STATE = ("snapshot", "summarizer", "container")


def names_in(by: Any) -> Names | None:
    """The columns of a key, once each; None if something in it is no name.

    >>> names_in("symbol"), names_in(("src", "dst")), names_in(("src", 1)), names_in(None)
    (('symbol',), ('src', 'dst'), None, ())
    """
    parts = by if isinstance(by, tuple) else () if by is None else (by,)
    return tuple(dict.fromkeys(parts)) if all(isinstance(part, str) for part in parts) else None


def works_as(operator: Operator, kind: type[Operator]) -> bool:
    """Whether a subclass overrides nothing of the work that `kind` does."""
    own = type(operator)
    return all(getattr(own, name) is getattr(kind, name) for name in (*WORK, *STATE))


def punctuated(operator: Operator) -> bool:
    """Whether punctuations, which are of the whole stream, change what it holds."""
    ports = zip(operator.model.inputs, operator.windows, strict=True)
    return any(port.expects(spec) or (spec is not None and spec.punctuated) for port, spec in ports)


def by_window(operator: Operator) -> Names:
    """The columns that partition the only window; none if it has other work than that."""
    spec = operator.windows[0] if len(operator.windows) == 1 else None
    if spec is None:
        return ()
    if punctuated(operator):
        # A punctuation that is of one key's rows finds no others, if every one empties the window.
        emptied = isinstance(spec.evict, Punct) and isinstance(spec, Tumbling)
        known = names_in(spec.by) or ()
        return tuple(c for c in operator.punctuated_by if c in known) if emptied else ()
    stream = spec.event_time and (spec.watermark is None or spec.watermark.scope == "stream")
    if stream and not operator.follows_watermark:
        return ()  # the rows of all keys move its watermark
    return names_in(spec.by) or ()


def by_default(operator: Operator, base: type[Operator], port: int) -> Names:
    """The same for a class of which nothing is known but what it overrides, and declares."""
    own = ("snapshot", "container", "on_punctuation")  # may keep something across partitions
    plain = all(getattr(type(operator), name) is getattr(base, name) for name in own)
    if not plain or operator.unkeyed_state:
        return ()
    if operator.inserts_directly:
        by = by_window(operator)
        return by if by or not operator.keyed_state else _by_windows(operator)[port]
    return _by_state(operator)


def _by_windows(operator: Operator) -> list[Names]:
    """The columns that partition each of several windows, whose keys it says to keep apart."""
    specs = operator.windows
    found = [() if spec is None else names_in(spec.by) or () for spec in specs]
    timed = any(spec is None or spec.event_time for spec in specs)
    if timed or punctuated(operator) or len({len(names) for names in found}) > 1:
        return [()] * len(specs)
    return found


def _by_state(operator: Operator) -> Names:
    """The columns of the state of an operator that reads rows itself and has no windows."""
    said = {state.by for state in operator.keyed_state.values()}
    windows = any(spec is not None for spec in operator.windows)
    return () if windows or len(said) != 1 or punctuated(operator) else said.pop()


def under_watermark(operator: Operator, port: int) -> Names | None:
    """`splits_by` where a host tells the watermark, so that rows of other keys do not move it.

    >>> from windowlib import Event, Tumbling
    >>> from windowlib.operators import Aggregate, agg
    >>> hourly = Aggregate(Tumbling(Event("ts", "1h"), by="k"), n=agg.count())
    >>> hourly.splits_by(0), under_watermark(hourly, 0)
    ((), ('k',))
    """
    led = operator.rebuilt()
    led.follows_watermark = True
    return led.splits_by(port)


FIRINGS = ("before_flush", "on_trigger", "on_empty_punctuation")
"""What a class may do and still depend on the window that fires alone."""


def beyond_window(operator: Operator, base: type[Operator]) -> str:
    """What the rows of a class of which nothing is known depend on beside the window that fires."""
    for name in (*WORK, "snapshot", "container"):
        if name not in FIRINGS and getattr(type(operator), name) is not getattr(base, name):
            return f"what {name} does"
    if operator.keyed_state or operator.unkeyed_state:
        return "the state that it declares"
    evicts = any(spec is not None and spec.forget is not None for spec in operator.windows)
    return "which partitions are evicted" if evicts else ""
