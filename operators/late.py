"""Rows that come late: whose delta attribute goes back within their partition.

A window takes them, as SPL does: a smaller value never fires. Whoever wants to know says so.
"""

from __future__ import annotations

from typing import Any

from windowlib.attributes import Getter, key_getter, one_key
from windowlib.errors import DeltaOrderError
from windowlib.policies import Delta
from windowlib.spec import Spec


class Latest:
    """The newest values of a window's delta attributes, partition by partition."""

    def __init__(self, spec: Spec) -> None:
        self.by = spec.by
        self._deltas = list(dict.fromkeys(p for p in spec.policies if isinstance(p, Delta)))
        self._getters = [Getter(policy.attribute, policy.shown) for policy in self._deltas]
        by: Any = spec.by
        self._key = (lambda row: None) if by is None else key_getter(by, f"by={by!r}")
        self._values: dict[Any, list[Any]] = {}

    def read(self, row: Any) -> tuple[Any, list[Any]]:
        """A row's partition and values."""
        return one_key(self._key(row)), [get(row) for get in self._getters]

    def behind(self, key: Any, values: list[Any]) -> bool:
        """Whether a value is less than one that came before it."""
        known = self._values.get(key)
        return known is not None and any(map(_less, values, known))

    def note(self, key: Any, values: list[Any]) -> None:
        """These values have gone in."""
        self._values[key] = values

    def forget(self, key: Any) -> None:
        """A partition is gone."""
        self._values.pop(one_key(key), None)

    def error(self, key: Any, values: list[Any], number: int) -> DeltaOrderError:
        """Which value went back, and what to do about it."""
        before = self._values[key]
        which = next(i for i, value in enumerate(values) if _less(value, before[i]))
        policy = self._deltas[which]
        partition = "" if self.by is None else f", {self.by}={key!r}"
        msg = (
            f"{policy.shown}{partition}: the value went back from {before[which]} to "
            f"{values[which]} (row {number}). Sort first: Sort({policy.attribute!r}, "
            f'window=Sliding({policy.shown})).then(...), or pass late="port" to divert such rows.'
        )
        return DeltaOrderError(msg)

    def snapshot(self) -> list[Any]:
        """Pairs of partition and values."""
        return [[key, list(values)] for key, values in self._values.items()]

    def restore(self, state: list[Any]) -> None:
        """Take back what `snapshot` gave."""
        self._values = {one_key(key): list(values) for key, values in state}


def _less(value: Any, known: Any) -> bool:
    try:
        return bool(value < known)
    except TypeError:  # the window refuses it, and knows how to say why
        return False
