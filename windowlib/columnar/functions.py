"""The functions of a plan: what each computes from pieces and extents, and what it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.decline import Decline
from windowlib.columnar.dumps import at, column_of, dumped, need, numbers, packed, whole
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.kernels import kernel
from windowlib.columnar.kernels.base import (
    Array,
    Kernel,
    Planes,
    Result,
    Values,
    replaced,
    side_by_side,
    taken,
)
from windowlib.columnar.kernels.picks import Pick
from windowlib.columnar.kernels.pool import NOTHING
from windowlib.columnar.ledger import State
from windowlib.columnar.pieces import Pieces, Places
from windowlib.folds import Fold
from windowlib.policies import Attribute
from windowlib.summarizers import Plan

PACK = 1 << 20
"""A pool of more values than this, and than twice the partitions, is packed."""


class Function:
    """One function of a plan, with the state that it carries for open subwindows."""

    overlaps = True  # whether it copes with windows that overlap very much

    def __init__(self, attribute: Attribute | None) -> None:
        self.attribute = attribute

    def over(self, values: Values, lo: Array, hi: Array) -> Result:
        """The result for each extent of places; nothing is carried."""
        raise NotImplementedError

    def deals(self, values: Values) -> bool:
        """Whether the rows of these values need not be side by side."""
        return False

    def grow(self, size: int) -> None:
        """Make room for so many partitions."""
        raise NotImplementedError

    def fold(self, values: Values, pieces: Pieces) -> tuple[Result, Any]:
        """The results of the pieces that fire, and the state of those that stay open."""
        raise NotImplementedError

    def commit(self, ids: Places, later: Any) -> None:
        """What `fold` said stays open is carried by these partitions from now on."""
        raise NotImplementedError

    def forget(self, ids: Places) -> None:
        """These partitions carry nothing any more; what is left of them is of no use."""

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results for what some partitions carry."""
        raise NotImplementedError

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """What the fold's own `save` would give, for each partition."""
        raise NotImplementedError

    def load(self, ids: Places, saved: Sequence[Any], sizes: Places) -> None:
        """Take over what the fold's own `save` gave; `Decline` if that cannot be done exactly."""
        raise NotImplementedError

    def dump(self, ids: Places, held: Array) -> dict[str, Any]:
        """What some partitions carry, as arrays; `held`: whether they carry anything."""
        raise NotImplementedError

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        raise NotImplementedError


class Partial(Function):
    """A function whose state is a few numbers for each partition: a kernel and its planes."""

    def __init__(self, attribute: Attribute | None, kernel: Kernel) -> None:
        super().__init__(attribute)
        self.kernel = kernel
        self.overlaps = kernel.overlaps
        self.state = State(kernel)

    def over(self, values: Values, lo: Array, hi: Array) -> Result:
        """Fold each extent by itself."""
        found = self.kernel.finish(self.kernel.partial(values, lo, hi), hi - lo)
        if isinstance(self.kernel, Pick):
            self.kernel.pool.clear()
        return found

    def grow(self, size: int) -> None:
        """Make room for so many partitions."""
        self.state.grow(size)

    def fold(self, values: Values, pieces: Pieces) -> tuple[Result, Any]:
        """Fold each piece, after what it goes on with."""
        planes = self.planes(values, pieces)
        later = taken(planes, pieces.stays)
        if len(pieces.bare):
            bare = self.state.take(pieces.bare)
            planes = side_by_side(planes, bare, len(pieces.starts), len(pieces.bare))
        return self.kernel.finish(taken(planes, pieces.fires), pieces.fired_sizes), later

    def deals(self, values: Values) -> bool:
        """Whether the kernel can do without a layout."""
        return self.kernel.deals(values)

    def planes(self, values: Values, pieces: Pieces) -> Planes:
        """The planes of pieces with what is carried merged into those that go on with it."""
        joins = pieces.joins
        before = self.state.take(pieces.ids[joins])
        if pieces.runs is not None:
            return self.kernel.dealt(values, pieces.runs, before)
        planes = self.kernel.partial(values, pieces.starts, pieces.ends)
        if not len(joins) or not planes:
            return planes
        merged = self.kernel.merge(before, taken(planes, joins))
        return replaced(planes, joins, merged, len(pieces.starts))

    def commit(self, ids: Places, later: Any, history: State | None = None) -> None:
        """Put the planes of what stays open; picked values that no state refers to are forgotten.

        Args:
            ids: the partitions.
            later: their planes.
            history: more state of the same kernel.
        """
        self.state.put(ids, later)
        if isinstance(self.kernel, Pick):
            states = [self.state] if history is None else [self.state, history]
            numbers = [state.planes[0] for state in states]
            if self.kernel.pool.size > max(PACK, 4 * sum(each.size for each in numbers)):
                packed = self.kernel.pool.pack(np.concatenate([each.ravel() for each in numbers]))
                for state, part in zip(states, np.split(packed, [numbers[0].size]), strict=False):
                    state.planes[0] = part.reshape(state.planes[0].shape)

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results for what some partitions carry."""
        return self.kernel.finish(self.state.take(ids), sizes)

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """The fold's saved states."""
        return self.kernel.save(self.state.take(ids), sizes)

    def load(self, ids: Places, saved: Sequence[Any], sizes: Places) -> None:
        """Take over the fold's saved states."""
        self.state.put(ids, self.kernel.load(saved, sizes))

    def dump(self, ids: Places, held: Array, *history: tuple[State, Array]) -> dict[str, Any]:
        """The planes, and the values that they refer to.

        Args:
            ids: the partitions.
            held: whether they carry anything.
            history: more state of the same kernel, and which of its places carry anything.
        """
        states = [(self.state, held), *history]
        planes = [state.dump(ids) for state, _ in states]
        if not isinstance(self.kernel, Pick):
            return {"planes": planes}
        picked = [np.where(used, at(state.planes[0], ids), NOTHING) for state, used in states]
        flat, values = self.kernel.pool.packed(np.concatenate([each.ravel() for each in picked]))
        parts = np.split(flat, np.cumsum([each.size for each in picked[:-1]], dtype=int))
        for some, like, part in zip(planes, picked, parts, strict=True):
            some[0] = packed(part.reshape(like.shape))
        return {"planes": planes, "values": None if values is None else dumped(values)}

    def load_dump(self, ids: Places, state: Mapping[str, Any], *history: State) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        states, given = [self.state, *history], state["planes"]
        need(len(given) == len(states), f"{len(given)} states")
        for each, planes in zip(states, given, strict=True):
            each.load_dump(ids, planes)
        if isinstance(self.kernel, Pick):
            pool, values = self.kernel.pool, state["values"]
            if values is not None:
                size = whole(values["size"], "values")
                pool.add(column_of(values, self.kernel.types[0], size))
            for each in states:
                picked = each.planes[0][ids].ravel()
                numbers(picked, len(picked), pool.size, NOTHING)


def functions_of(plan: Any, schema: pa.Schema) -> list[Function]:
    """The functions of a plan over columns of a schema; `Decline` if one has no columnar form."""
    if type(plan) is not Plan:
        raise Decline(f"{plan!r} folds tuples in Python")
    inputs = Inputs(empty_batch(schema))
    return [
        function(fold, recipe.attribute, [c.type for c in inputs.read(recipe.attribute)])
        for fold, recipe in zip(plan.folds, plan.recipes, strict=True)
    ]


def function(fold: Fold, attribute: Attribute | None, types: Sequence[pa.DataType]) -> Function:
    """The columnar form of a fold over columns of these types."""
    from windowlib.columnar.holistic import HOLISTIC  # which are functions themselves

    if fold.kernel in HOLISTIC:
        return HOLISTIC[fold.kernel](fold, attribute, types)
    return Partial(attribute, kernel(fold, types))


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
