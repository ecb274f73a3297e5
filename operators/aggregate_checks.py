"""What `Aggregate` refuses, and how its parameters are read."""

from __future__ import annotations

from typing import Any

from operators.columns import several
from operators.expressions import Col, Expr, quoted
from windowlib.errors import ModelError
from windowlib.policies import Count, Delta, is_attribute
from windowlib.spec import Sliding, Spec

PARTIAL = {True: "emit", False: "skip"}
ALIASES: dict[str, tuple[str, dict[bool, str]]] = {
    "partitionBy": ("by", {}),
    "groupBy": ("group_by", {}),
    "aggregatePartialWindows": ("partial", PARTIAL),
    "aggregateIncompleteWindows": ("partial", PARTIAL),
    "aggregateEvictedPartitions": ("evicted_partitions", {True: "emit", False: "drop"}),
}
"""SPL's names of parameters, ours, and our values for SPL's true and false."""


def check_size(spec: Spec) -> None:
    """Refuse windows that keep nothing, or never fire."""
    if isinstance(spec.evict, Count) and not spec.evict.size:
        kind = type(spec).__name__
        msg = (
            f"Aggregate does not support {kind}(Count(0)): a window of size 0 keeps nothing to "
            f'aggregate. Only Join accepts it (a one-sided join). Use Count(1) for "the latest '
            f'tuple".'
        )
        raise ModelError(msg)
    if isinstance(spec, Sliding) and isinstance(spec.every, Count) and not spec.every.size:
        msg = (
            f"Aggregate does not support {spec!r}: a trigger of 0 never fires, so nothing "
            f"would come out. Use every=Count(1) or more."
        )
        raise ModelError(msg)


def check_late(spec: Spec, late: Any) -> None:
    """Refuse an unknown word for late rows, and windows that have none."""
    if late not in ("keep", "error", "port"):
        raise ModelError(f"Aggregate(late={late!r}): unknown. Use 'keep', 'error' or 'port'.")
    if late != "keep" and not any(isinstance(policy, Delta) for policy in spec.policies):
        msg = (
            f"Aggregate(late={late!r}): the window has no Delta policy, so no row is late. Drop "
            f"it, or use a window such as Tumbling(Delta('ts', '1m'))."
        )
        raise ModelError(msg)


def take_aliases(given: dict[str, Any], more: dict[str, Any]) -> None:
    """Move what came under SPL's names from the keywords to our parameters."""
    for alias, (ours, words) in ALIASES.items():
        if alias not in more or isinstance(more[alias], Expr):
            continue
        value = more.pop(alias)
        value = words.get(value, value) if isinstance(value, bool) else value
        if given[ours] not in (None, "drop", value):
            msg = (
                f"Aggregate({alias}={value!r}): the same as {ours}, which is {given[ours]!r}. Say "
                f"it once."
            )
            raise ModelError(msg)
        given[ours] = value


def check_words(given: dict[str, Any]) -> None:
    """Refuse an output whose name is that of a parameter, and expressions for plain columns."""
    for name, value in given.items():
        if isinstance(value, Col):
            fix = f"Write {name}={quoted(value.name)}."
            raise ModelError(f"Aggregate({name}={value!r}): {name} names a column. {fix}")
        if isinstance(value, Expr):
            msg = (
                f"Aggregate({name}={value!r}): {name} is a parameter. To call an output so, pass "
                f'the outputs as a dict: Aggregate(window, {{"{name}": ...}}).'
            )
            raise ModelError(msg)


def columns(group_by: Any) -> Any:
    """The columns of a group: one, or a tuple of several."""
    if group_by is None:
        return None
    parts = several(group_by)
    if not parts or not all(map(is_attribute, parts)):
        msg = f'Aggregate(group_by={group_by!r}): name columns, such as group_by="side".'
        raise ModelError(msg)
    return parts if isinstance(group_by, list | tuple) else group_by


def check_options(
    spec: Spec, partial: Any, evicted_partitions: Any, flush_at_end: bool, emit: Any
) -> None:
    """Refuse unknown words, and options that do not fit the window."""
    sliding = isinstance(spec, Sliding)
    choices = {
        "partial": (partial, (None, "skip", "emit")),
        "evicted_partitions": (evicted_partitions, ("drop", "emit")),
        "emit": (emit, ("always", "changed")),
        "flush_at_end": (flush_at_end, (True, False)),
    }
    for name, (value, known) in choices.items():
        if not any(value is each or value == each for each in known):
            words = " or ".join(repr(each) for each in known if each is not None)
            raise ModelError(f"Aggregate({name}={value!r}): unknown. Use {words}.")
    if partial is not None and not sliding:
        msg = (
            f"Aggregate(partial={partial!r}): a tumbling window is processed when it is full. "
            f"Drop `partial=`, or say flush_at_end=True to see the last one."
        )
        raise ModelError(msg)
    if flush_at_end and sliding:
        msg = (
            "Aggregate(flush_at_end=True): a sliding window is processed at its triggers, and has "
            'nothing left at the end. Drop it, or say partial="emit".'
        )
        raise ModelError(msg)
    if evicted_partitions == "emit" and spec.forget is None:
        msg = (
            'Aggregate(evicted_partitions="emit"): the window evicts no partitions. Add forget=, '
            "such as forget=PartitionAge('1h'), or drop it."
        )
        raise ModelError(msg)
