"""The declaration of an aggregate function: what rows, arrays, schemas and farms know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.summaries.folds import Fold

OutputType = Callable[[Sequence[Any], Mapping[str, Any]], Any]
"""From the Arrow types of the columns, None for an unknown one, and the options to a type."""


def unknown_type(columns: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """None: only the values tell the type."""
    return None


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function, declared once.

    Every part of the library reads the declaration: windows fold rows with `fold`, farms and
    slices merge by the fold's `merge`, the columnar engine loads `kernel`, and operators ask
    `output_type` for their output columns.

    >>> from windowlib.summaries.folds import MaxFold
    >>> latest = AggregateFunction("latest", MaxFold)
    >>> latest.new_fold({}).step(MaxFold.empty, 3)
    (3,)
    """

    name: str
    """What the function is called in value_methods and messages."""
    fold: Callable[..., Fold]
    """Makes the arithmetic on rows, with its `merge`, from the options of a call."""
    output_type: OutputType = unknown_type
    kernel: str = ""
    """Where the arithmetic on arrays is, as "package.module:Class"; without it a batch is taken
    row by row. The module is imported with the first batch: it may need numpy."""
    adds: bool = False
    """Whether values are added up, so that text, dates and times are refused beforehand."""
    combined_by: str = ""
    """The function of `agg` that makes one result of the results over parts of a window, where
    results alone are enough: a count is a sum of counts."""
    short_form: bool = False
    """Whether `fold` takes `short`: the runs of tuples are known to be short."""

    def new_fold(self, options: Mapping[str, Any], *, short: bool = False) -> Fold:
        """The fold of a call with these options."""
        return self.fold(short=short, **options) if self.short_form else self.fold(**options)
