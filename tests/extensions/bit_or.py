"""An aggregate function as docs/contributing.md has one added: fold, declaration and call."""

from __future__ import annotations

from typing import Any

from windowlib.errors import SchemaError
from windowlib.operators.functions.call import Agg, Column, aggregate
from windowlib.operators.functions.output_types import count_type
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fold, State


class BitOrFold(Fold):
    """The bits that at least one value has. State: the bits, and how many values there were."""

    name = "bit_or"
    empty = (0, 0)

    def step(self, state: State, x: Any) -> State:
        """Add the bits of a value; nulls have none."""
        if x is None:
            return state
        if not isinstance(x, int):
            raise SchemaError(f"{self.name} of {x!r}: not a whole number. Use a column of those.")
        return state[0] | x, state[1] + 1

    def value(self, n: int, state: State) -> int | None:
        """The bits; None if every value was null."""
        return state[0] if state[1] else None

    def merge(self, a: State, b: State) -> State:
        """The bits of both."""
        return a[0] | b[0], a[1] + b[1]


BIT_OR = AggregateFunction(
    "bit_or",
    BitOrFold,
    count_type,
    kernel="tests.extensions.bit_or_kernel:BitOrKernel",
    adds=True,
)


def bit_or(column: Column) -> Agg:
    """The bits that at least one value has."""
    return aggregate(BIT_OR, {"": column})
