"""The kind of an operator's function: incremental, associative or neither.

| kind | a result is made | so |
| --- | --- | --- |
| associative | from the results of parts, merged in order | windows can share parts |
| incremental | tuple by tuple | a window need not keep its tuples |
| neither | from all tuples together | its worker needs the whole window |

An associative function is incremental, too: a tuple is a part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from windowlib.errors import FarmError
from windowlib.runtime.operator import FunctionKind, Operator
from windowlib.summaries.folds import Fold

NUMBER, ORDER = "_number", "_order"
"""Columns of the rows of which an operator `with_ordered_parts` makes parts: which row of the batch
it is, and a struct of what rows are ordered by, which no two rows have in common."""
KINDS: tuple[FunctionKind, ...] = get_args(FunctionKind)


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """The function that an operator computes of a window.

    Args:
        kind: "associative", "incremental" or "neither".
        shown: the part of the function that decides its kind, for messages.
        commutative: whether parts may be merged in any order.
    """

    kind: FunctionKind
    shown: str = "its function"
    commutative: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            msg = f"function_kind={self.kind!r}: no kind of function. Use {', '.join(KINDS)}."
            raise FarmError(msg)


def kind_of(operator: Operator) -> FunctionKind:
    """The kind of an operator's function.

    An operator that names its functions, as `Aggregate` does, is as good as the worst of them.
    For others the attribute `function_kind` of the class says it, and by default "neither".

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Count, Tumbling
    >>> window = Tumbling(Count(10))
    >>> kind_of(Aggregate(window, high=agg.max("price"), total=agg.sum("price")))
    'associative'
    >>> kind_of(Aggregate(window, high=agg.max("price"), middle=agg.median("price")))
    'neither'
    """
    return function_of(operator).kind


def function_of(operator: Operator) -> WindowFunction:
    """The function of an operator: its kind, what decides it, and whether order matters."""
    named = operator.functions()
    if named is None:
        return WindowFunction(operator.function_kind, f"the function of {operator.name}")
    return _combined_function(named)


def _combined_function(named: Iterable[tuple[str, Fold]]) -> WindowFunction:
    kind, shown, commutative = KINDS[0], "its function", True
    for text, fold in named:
        commutative = commutative and fold.commutative
        if KINDS.index(own := fold_kind(fold)) > KINDS.index(kind):
            kind, shown = own, text
    return WindowFunction(kind, shown, commutative and kind == "associative")


def has_parts(operator: Operator) -> bool:
    """Whether an operator defines partials of a window."""
    own = type(operator)
    return own.part_of is not Operator.part_of or own.parts_of is not Operator.parts_of


def ordered_parts(operator: Operator) -> Operator | None:
    """The operator with partials that merge in any order; None if it has no such partials.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Count, Tumbling
    >>> function_of(ordered_parts(Aggregate(Tumbling(Count(3)), out=agg.first("x")))).commutative
    True
    """
    found: Operator | None = getattr(operator, "with_ordered_parts", lambda: None)()
    return found


def reads_twice(operator: Operator) -> bool:
    """Whether an operator reads the tuples again, given the result of the whole window."""
    return type(operator).emit_again is not Operator.emit_again


def fold_kind(fold: Fold) -> FunctionKind:
    """The kind of one fold: what can be merged, what is small, and the rest."""
    if fold.mergeable:
        return "associative"
    return "neither" if fold.holistic else "incremental"
