"""The windows that an operator takes, from its model: the matrix of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from windowlib.runtime.model import OperatorModel
from windowlib.runtime.operator import Operator
from windowlib.spec.policies import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    PartitionEviction,
    Policy,
    Punct,
    Time,
    TupleCount,
)
from windowlib.spec.specification import Sliding, Spec, Tumbling

EVICTIONS: tuple[PartitionEviction | None, ...] = (
    None,
    PartitionAge("7s"),
    PartitionCount(2),
    TupleCount(9),
)


def configurations(
    operator: type[Operator] | OperatorModel,
    port: int = 0,
    *,
    by: str = "k",
    column: str = "x",
    small: int = 3,
) -> list[Spec]:
    """One window for each combination of policies that an input of an operator takes.

    Tumbling by count, delta, time and punctuation; sliding by each of count, delta and time with
    each as a trigger, or by every tuple; without a key and with one, and then with each policy that
    evicts partitions. What the model does not take is left out.

    Args:
        operator: the class, or its model.
        port: the input.
        by: the column of keys.
        column: a column of numbers, for delta policies.
        small: how large windows are: so many tuples, so many seconds, such a distance.

    >>> from windowlib import Count, OperatorModel, Sliding
    >>> for spec in configurations(OperatorModel(windows=[Sliding[Count, Count]])):
    ...     print(spec)
    sliding, count(3), count(2)
    sliding, count(3), count(2), partitioned
    sliding, count(3), count(2), partitioned, partitionAge(7)
    sliding, count(3), count(2), partitioned, partitionCount(2)
    sliding, count(3), count(2), partitioned, tupleCount(9)
    sliding, count(3), count(1)
    sliding, count(3), count(1), partitioned
    sliding, count(3), count(1), partitioned, partitionAge(7)
    sliding, count(3), count(1), partitioned, partitionCount(2)
    sliding, count(3), count(1), partitioned, tupleCount(9)
    """
    model = operator if isinstance(operator, OperatorModel) else operator.model
    takes = model.inputs[port].supports
    found: list[Spec] = []
    for spec in _windows(column, small):
        if model.partitioned != "only":
            found.append(spec)
        if model.partitioned != "never":
            found += [replace(spec, by=by, forget=forget) for forget in EVICTIONS]
    return [spec for spec in found if takes(spec)]


def _windows(column: str, small: int) -> Iterator[Spec]:
    """All kinds of windows without a key."""
    evictions: list[Policy] = [Count(small), Delta(column, small), Time(f"{small}s")]
    for policy in (*evictions, Punct()):
        yield Tumbling(policy)
    triggers: list[Policy] = [Count(small - 1), Delta(column, small - 1), Time(f"{small - 1}s")]
    for evict, every in product(evictions, [*triggers, Count(1)]):
        yield Sliding(evict, every=every)
