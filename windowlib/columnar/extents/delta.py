"""Delta policies over columns: values as physical numbers, and the threshold in their unit."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import Places
from windowlib.spec.policies import Delta
from windowlib.window.consumer import Decline

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_HUGE = 2**62


class DeltaColumn:
    """One delta attribute: how its values and its threshold become numbers that compare alike."""

    def __init__(self, policy: Delta, kind: pa.DataType) -> None:
        self.policy, self.kind = policy, kind
        if not isinstance(policy.attribute, str):
            raise Decline(f"{policy.shown} reads each row in Python")
        self.floating = pa.types.is_floating(kind)
        self.dtype: Any = np.float64 if self.floating else np.int64
        self.threshold = self._threshold(policy.threshold)
        if self.threshold < 0:
            raise Decline(f"{policy.shown} has a negative threshold")

    def _threshold(self, limit: Any) -> Any:
        """The largest distance that does not exceed it, in the unit of the column."""
        kind, types = self.kind, pa.types
        number = isinstance(limit, int | float | Decimal)
        if types.is_timestamp(kind) and isinstance(limit, timedelta) and kind.unit != "ns":
            return math.floor(
                Fraction(limit // timedelta(microseconds=1), 10**6) * _UNITS[kind.unit]
            )
        if types.is_date32(kind) and isinstance(limit, timedelta):
            return limit // timedelta(days=1)
        if types.is_integer(kind) and number and not isinstance(limit, Decimal):
            return self._whole(limit)
        exact = types.is_integer(kind) or types.is_decimal(kind)
        if exact and isinstance(limit, int | Decimal):
            return self._whole(Fraction(limit) * 10 ** getattr(kind, "scale", 0))
        if self.floating and isinstance(limit, int | float) and abs(limit) <= 2**53:
            return float(limit)
        raise Decline(f"{self.policy.shown} over {kind} needs Python values")

    def _whole(self, limit: Any) -> int:
        if isinstance(limit, float) and math.isinf(limit):
            return _HUGE if limit > 0 else -1
        return int(min(math.floor(limit), _HUGE))

    def read(self, column: Column) -> Any:
        """The values; nulls and NaN are for the event engine, which says what is wrong."""
        if column.valid is not None:
            raise Decline(f"{self.policy.shown}: a value is null")
        if not column.physical:
            raise Decline(f"{self.policy.shown}: values that need Python numbers")
        data = column.data
        if self.floating:
            if len(data) and not np.isfinite(data).all():
                raise Decline(f"{self.policy.shown}: a value is not finite")
        elif len(data) and (data.min() <= -_HUGE // 2 or data.max() >= _HUGE // 2):
            raise Decline(f"{self.policy.shown}: values too far apart for 64 bits")
        return data

    def ordered(self, values: Any, starts: Places) -> None:
        """Refuse values that go backwards within a partition."""
        if len(values) < 2:
            return
        back = values[1:] < values[:-1]
        heads = starts[1:-1]
        back[heads[(heads > 0) & (heads <= len(back))] - 1] = False
        if back.any():
            raise Decline(f"{self.policy.shown}: values go backwards")

    def python(self, values: Any) -> list[Any]:
        """Numbers as the values that the event engine keeps."""
        found: list[Any] = Column(self.kind, values, None).arrow().to_pylist()
        return found

    def load(self, values: list[Any]) -> Any:
        """Values of the event engine as numbers."""
        return self.read(Column.from_values(values, self.kind))
