"""What a tumbling window keeps of its open subwindows: the state of its functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from windowlib.columnar.dumps import need
from windowlib.columnar.functions import Function
from windowlib.columnar.groups import Groups
from windowlib.columnar.inputs import Inputs, Sorted
from windowlib.columnar.kernels.base import Result
from windowlib.columnar.pieces import Grouped, Pieces, Places

Found = tuple[list[Result], Groups | None]
"""What comes out for firings: the values of each function, or groups that have them."""


class Summaries:
    """One state of each function for every partition.

    `fold` and `carried` change nothing; `commit` and `drop` then make it so.
    """

    def __init__(self, functions: list[Function]) -> None:
        self.functions = functions
        self._later: list[Any] = []

    def grow(self, partitions: int) -> None:
        """Make room for so many partitions."""
        for each in self.functions:
            each.grow(partitions)

    def deal(self, inputs: Inputs) -> bool:
        """Whether all functions can do without a layout."""
        return all(each.deals(inputs.read(each.attribute)) for each in self.functions)

    def fold(self, columns: Sorted, grouped: Grouped, pieces: Pieces) -> Found:
        """The values of the pieces that fire."""
        folded = [each.fold(columns.read(each.attribute), pieces) for each in self.functions]
        self._later = [later for _, later in folded]
        return [result for result, _ in folded], None

    def commit(self, pieces: Pieces) -> None:
        """The pieces have been taken: keep the state of those that stay open."""
        ids = pieces.ids[pieces.stays]
        for each, later in zip(self.functions, self._later, strict=True):
            each.commit(ids, later)
        self._later = []

    def carried(self, ids: Places, sizes: Places) -> Found:
        """The values of what some partitions carry."""
        return [each.carried(ids, sizes) for each in self.functions], None

    def drop(self, ids: Places) -> None:
        """Some partitions carry nothing any more; their state is never read again."""
        for each in self.functions:
            each.forget(ids)

    def load(self, ids: Places, sizes: Places, saved: list[Any]) -> None:
        """Take over what windows save of the summaries of some partitions, which hold tuples."""
        for i, each in enumerate(self.functions):
            each.load(ids, [places[i] for ((_, places),) in saved], sizes)

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """What windows save of the summaries of some partitions."""
        saved = [each.save(ids, sizes) for each in self.functions]
        return [[[n, [places[i] for places in saved]]] for i, n in enumerate(sizes.tolist())]

    def dump(self, ids: Places) -> dict[str, Any]:
        """What some partitions carry, as arrays; all of them carry something."""
        held = np.ones(len(ids), bool)
        return {"functions": [each.dump(ids, held) for each in self.functions]}

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        given = state["functions"]
        need(len(given) == len(self.functions), f"{len(given)} functions")
        for each, dump in zip(self.functions, given, strict=True):
            each.load_dump(ids, dump)
