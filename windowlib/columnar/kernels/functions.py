"""The functions of a plan over extents, and the state that they carry from batch to batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import (
    checked_count,
    checked_numbers,
    dump_column,
    load_column,
    need,
    packed,
    values_at,
)
from windowlib.columnar.arrays.value_pool import NOTHING
from windowlib.columnar.extents.layout import Extents
from windowlib.columnar.inputs import Inputs, empty_batch
from windowlib.columnar.kernels.kernel import (
    Kernel,
    PartialStore,
    Planes,
    Result,
    Values,
    concat_planes,
    planes_at,
    planes_with,
)
from windowlib.columnar.primitives import Array, Places
from windowlib.spec.policies import Attribute
from windowlib.summaries.folds import Fold
from windowlib.summaries.summarizers import FunctionCall, Plan
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns

MIN_POOL_TO_PACK = 1 << 20
"""A pool of more values than this, and than twice the partitions, is packed."""


class Function:
    """One function of a plan, with the state that it carries for open subwindows."""

    overlaps = True  # whether it copes with windows that overlap very much

    def __init__(self, attribute: Attribute | None) -> None:
        self.attribute = attribute

    def over(self, values: Values, lo: Array, hi: Array) -> Result:
        """The result for each extent of places; nothing is carried."""
        raise NotImplementedError

    def limit(self, rows: int) -> None:
        """Note the most rows that a window can have."""

    def takes_arrivals(self, values: Values) -> bool:
        """Whether these values can be folded in order of arrival, without a layout."""
        return False

    def grow(self, size: int) -> None:
        """Make room for at least that many partitions."""
        raise NotImplementedError

    def fold(self, values: Values, extents: Extents) -> tuple[Result, Any]:
        """The results of the extents that fire, and the state of those that stay open."""
        raise NotImplementedError

    def commit(self, ids: Places, later: Any) -> None:
        """Carry the open state that `fold` returned, for these partitions."""
        raise NotImplementedError

    def takes_spread(self, values: Values) -> bool:
        """Whether these values can be added up by partition in any order."""
        return False

    def spread(self, values: Values, ids: Array, partitions: int) -> Any:
        """The state of all partitions after folding rows with these partition numbers."""
        raise NotImplementedError

    def fold_arrivals(self, values: Values, runs: ArrivalRuns, sizes: Places) -> tuple[Result, Any]:
        """The results of the runs that close among rows in order of arrival, and the new state."""
        raise NotImplementedError

    def commit_arrivals(self, later: Any) -> None:
        """Replace the state by what `fold_arrivals` returned."""
        raise NotImplementedError

    def forget(self, ids: Places) -> None:
        """These partitions carry nothing any more; what is left of them is of no use."""

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results of the state that some partitions carry."""
        raise NotImplementedError

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """The state of each partition, as the fold's `save` returns it."""
        raise NotImplementedError

    def load(self, ids: Places, saved: Sequence[Any], sizes: Places) -> None:
        """Restore what the fold's `save` returned; `Decline` if that is not exact."""
        raise NotImplementedError

    def dump(self, ids: Places, held: Array) -> dict[str, Any]:
        """The state of some partitions as arrays; `held`: which of them have any."""
        raise NotImplementedError

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        raise NotImplementedError


class AlgebraicFunction(Function):
    """A function whose state is a few numbers for each partition: a kernel and its planes."""

    def __init__(self, attribute: Attribute | None, kernel: Kernel) -> None:
        super().__init__(attribute)
        self.kernel = kernel
        self.overlaps = kernel.overlaps
        self.state = PartialStore(kernel)

    def over(self, values: Values, lo: Array, hi: Array) -> Result:
        """Fold each extent by itself."""
        found = self.kernel.finish(self.kernel.partial(values, lo, hi), hi - lo)
        if self.kernel.pool is not None:
            self.kernel.pool.clear()
        return found

    def limit(self, rows: int) -> None:
        """Note the most rows that a window can have."""
        self.kernel.most = rows

    def grow(self, size: int) -> None:
        """Make room for at least that many partitions."""
        self.state.grow(size)

    def fold(self, values: Values, extents: Extents) -> tuple[Result, Any]:
        """Fold each extent, after what it goes on with."""
        planes = self.planes(values, extents)
        later = planes_at(planes, extents.stays)
        if len(extents.bare):
            bare = self.state.take(extents.bare)
            planes = concat_planes(planes, bare, len(extents.starts), len(extents.bare))
        return self.kernel.finish(planes_at(planes, extents.fires), extents.fired_sizes), later

    def takes_spread(self, values: Values) -> bool:
        """Whether the kernel can do without an order."""
        return self.kernel.takes_spread(values)

    def spread(self, values: Values, ids: Array, partitions: int) -> Any:
        """Fold the rows of each partition, and merge that into what it carries."""
        more = self.kernel.spread(values, ids, partitions)
        return self.kernel.merge(planes_at(self.state.all_planes(), slice(0, partitions)), more)

    def takes_arrivals(self, values: Values) -> bool:
        """Whether the kernel can do without a layout."""
        return self.kernel.takes_arrivals(values)

    def fold_arrivals(self, values: Values, runs: ArrivalRuns, sizes: Places) -> tuple[Result, Any]:
        """Fold each run where its rows are."""
        closed, later = self.kernel.arrived(values, runs, self.state.all_planes())
        return self.kernel.finish(closed, sizes), later

    def commit_arrivals(self, later: Any) -> None:
        """Put the planes of all partitions."""
        self.state.replace(later)

    def planes(self, values: Values, extents: Extents) -> Planes:
        """The planes of extents with what is carried merged into those that go on with it."""
        joins = extents.joins
        planes = self.kernel.partial(values, extents.starts, extents.ends)
        if not len(joins) or not planes:
            return planes
        before = self.state.take(extents.ids[joins])
        merged = self.kernel.merge(before, planes_at(planes, joins))
        return planes_with(planes, joins, merged, len(extents.starts))

    def commit(self, ids: Places, later: Any, history: PartialStore | None = None) -> None:
        """Put the planes of what stays open; picked values that no state refers to are forgotten.

        Args:
            ids: the partitions.
            later: their planes.
            history: more state of the same kernel.
        """
        self.state.put(ids, later)
        pool = self.kernel.pool
        if pool is not None:
            states = [self.state] if history is None else [self.state, history]
            numbers = [state.planes[0] for state in states]
            if pool.size > max(MIN_POOL_TO_PACK, 4 * sum(each.size for each in numbers)):
                packed = pool.pack(np.concatenate([each.ravel() for each in numbers]))
                for state, part in zip(states, np.split(packed, [numbers[0].size]), strict=False):
                    state.planes[0] = part.reshape(state.planes[0].shape)

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results of the state that some partitions carry."""
        return self.kernel.finish(self.state.take(ids), sizes)

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """The fold's saved states."""
        return self.kernel.save(self.state.take(ids), sizes)

    def load(self, ids: Places, saved: Sequence[Any], sizes: Places) -> None:
        """Restore the fold's saved states."""
        self.state.put(ids, self.kernel.load(saved, sizes))

    def dump(
        self, ids: Places, held: Array, *history: tuple[PartialStore, Array]
    ) -> dict[str, Any]:
        """The planes, and the values that they refer to.

        Args:
            ids: the partitions.
            held: whether they carry anything.
            history: more state of the same kernel, and which of its places carry anything.
        """
        states = [(self.state, held), *history]
        planes = [state.dump(ids) for state, _ in states]
        pool = self.kernel.pool
        if pool is None:
            return {"planes": planes}
        picked = [
            np.where(used, values_at(state.planes[0], ids), NOTHING) for state, used in states
        ]
        flat, values = pool.packed(np.concatenate([each.ravel() for each in picked]))
        parts = np.split(flat, np.cumsum([each.size for each in picked[:-1]], dtype=int))
        for some, like, part in zip(planes, picked, parts, strict=True):
            some[0] = packed(part.reshape(like.shape))
        return {"planes": planes, "values": None if values is None else dump_column(values)}

    def load_dump(self, ids: Places, state: Mapping[str, Any], *history: PartialStore) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        states, given = [self.state, *history], state["planes"]
        need(len(given) == len(states), f"{len(given)} states")
        for each, planes in zip(states, given, strict=True):
            each.load_dump(ids, planes)
        pool = self.kernel.pool
        if pool is not None:
            values = state["values"]
            if values is not None:
                size = checked_count(values["size"], "values")
                pool.add(load_column(values, self.kernel.types[0], size))
            for each in states:
                picked = each.planes[0][ids].ravel()
                checked_numbers(picked, len(picked), pool.size, NOTHING)


def functions_of(plan: Any, schema: pa.Schema) -> list[Function]:
    """The functions of a plan over columns of a schema; `Decline` if one has no columnar form."""
    if type(plan) is not Plan:
        raise Decline(f"{plan!r} folds tuples in Python")
    inputs = Inputs(empty_batch(schema))
    return [
        function(call, fold, [c.type for c in inputs.read(call.attribute)])
        for fold, call in zip(plan.folds, plan.calls, strict=True)
    ]


def function(call: FunctionCall, fold: Fold, types: Sequence[pa.DataType]) -> Function:
    """The columnar form that a function declares, over columns of these types.

    It is a kernel, or a `Function` itself if it needs all values of a window.
    """
    if not call.function.kernel:
        raise Decline(f"{fold.name} has no columnar form")
    form = resolve_name(call.function.kernel)
    if issubclass(form, Kernel):
        return AlgebraicFunction(call.attribute, form.for_types(fold, types))
    holistic: Callable[..., Function] = form
    return holistic(fold, call.attribute, types)
