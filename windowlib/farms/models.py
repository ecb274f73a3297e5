"""Window models: to which windows a tuple belongs, and when that is known.

| model | context | mapping |
| --- | --- | --- |
| `CountWindows`, `TimeWindows` | free | `first`, `last`, `windows`, `extent`: closed forms |
| `SessionWindows`, `DeltaTumbling`, `CountOrTime`, `PunctuationWindows`, `LandmarkWindows` | \
backward | `mapped`: a recurrence |
| `SlideByTuple`, `SlideByTime`, `DeltaWindows`, `Triggered` | forward | `mapped`, once the \
triggers are there |

`model_of` gives the model of a `Tumbling` or a `Sliding` specification.
"""

from __future__ import annotations

from windowlib.errors import FarmError
from windowlib.farms.backward import (
    CountOrTime,
    DeltaTumbling,
    LandmarkWindows,
    PunctuationWindows,
    SessionWindows,
)
from windowlib.farms.extents import Extents
from windowlib.farms.forward import DeltaWindows, SlideByTime, SlideByTuple, Triggered
from windowlib.farms.regular import (
    Context,
    CountWindows,
    Regular,
    TimeWindows,
    WindowModel,
    spl_lowest,
    spl_phase,
)
from windowlib.farms.slices import Slices
from windowlib.policies import Count, Delta, Either, Policy, Punct, Time
from windowlib.spec import Sliding, Spec, Tumbling

__all__ = [
    "Context",
    "CountOrTime",
    "CountWindows",
    "DeltaTumbling",
    "DeltaWindows",
    "Extents",
    "LandmarkWindows",
    "PunctuationWindows",
    "Regular",
    "SessionWindows",
    "Slices",
    "SlideByTime",
    "SlideByTuple",
    "TimeWindows",
    "Triggered",
    "WindowModel",
    "model_of",
    "spl_lowest",
    "spl_phase",
]


def model_of(spec: Spec) -> WindowModel:
    """The model of a specification, for each of its partitions.

    Times are microseconds since the start of the operator. With `partial="emit"` the windows that
    were never full are there, too: of a sliding count window those with negative numbers.

    >>> from windowlib import Count, Sliding, Time
    >>> model_of(Sliding(Count(5), every=Count(2)))
    CountWindows(size=5, slide=2, phase=1, lowest=0)
    >>> model_of(Sliding(Time("5s"), every=Count(2))).context
    'forward'
    """
    if not isinstance(spec, Tumbling | Sliding):
        msg = (
            f"model_of({spec!r}): not a window. Pass a specification, such as "
            f"Sliding(Count(100), every=Count(10))."
        )
        raise FarmError(msg)
    if any(isinstance(policy, Count) and not policy.size for policy in spec.policies):
        msg = (
            f"model_of({spec!r}): with a count of 0 it holds nothing or is never processed, so "
            f"there are no windows to give away. Use Count(1) or more."
        )
        raise FarmError(msg)
    return _tumbling(spec.evict) if isinstance(spec, Tumbling) else _sliding(spec)


def _tumbling(policy: Policy) -> WindowModel:
    match policy:
        case Count(size):
            return CountWindows(size, size)
        case Time():
            return TimeWindows(policy.micros, policy.micros, lowest=0)
        case Delta():
            return DeltaTumbling(policy.threshold)
        case Either():
            return CountOrTime(policy.count.size, policy.time.micros)
        case Punct():
            return PunctuationWindows()


def _sliding(spec: Sliding) -> WindowModel:
    size, slide = _amount(spec.evict), _amount(spec.every)
    partial = spec.partial == "emit"
    match spec.evict.kind, spec.every.kind:
        case "count", "count":
            lowest = spl_lowest(size, slide) if partial else 0
            return CountWindows(size, slide, spl_phase(size, slide), lowest)
        case "time", "time":  # which counts as full from the start
            lowest = spl_lowest(size, slide)
            return TimeWindows(size, slide, spl_phase(size, slide), lowest)
        case "time", "count":
            return SlideByTuple(size, slide, closed=True)
        case "delta", "count":
            return SlideByTuple(size, slide, closed=True, partial=partial)
        case "count", "time":
            return SlideByTime(size, slide, partial=partial)
        case "delta", "delta":
            return DeltaWindows(size, slide, partial=partial)
        case evict, trigger:
            return Triggered(evict, size, trigger, slide, partial=partial)  # type: ignore[arg-type]


def _amount(policy: Policy) -> int:
    """Tuples, microseconds, or the threshold as it is."""
    match policy:
        case Count(size):
            return size
        case Time():
            return policy.micros
        case _:
            return policy.threshold  # type: ignore[union-attr, return-value]
