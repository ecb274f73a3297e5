"""Every exception windowlib raises, and the note a failing handler gains.

All derive from `WindowlibError` and from the builtin people already catch. A message says the
argument, its value, the reason and the fix, in that order.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WindowlibError(Exception):
    """Base of everything windowlib raises on purpose."""


class PolicyError(WindowlibError, ValueError):
    """A policy or a window specification that makes no sense."""


class SchemaError(WindowlibError, ValueError):
    """A tuple lacks an attribute, or the attribute's type does not fit its use."""


class DeltaOrderError(SchemaError):
    """A delta attribute that goes back, where that was to be an error."""


class PartitionError(WindowlibError, ValueError):
    """A partition key that is missing, not wanted, or unknown."""


class PunctuationError(WindowlibError, ValueError):
    """A punctuation where none is taken."""


class ClockError(WindowlibError, ValueError):
    """Time that runs backwards, or a clock used outside its life."""


class StateError(WindowlibError, ValueError):
    """Stored state that is damaged, or data that cannot be stored."""


class StateVersionError(StateError):
    """A snapshot written by another specification or another format."""


class ModelError(WindowlibError, ValueError):
    """An operator built or connected in a way that its model does not allow."""


class FunctionError(ModelError, AttributeError):
    """An aggregate function that is not there."""


class OperatorError(WindowlibError, RuntimeError):
    """An operator used outside its life: input after its end, or output before its start."""


class BrokenStateError(WindowlibError, RuntimeError):
    """A window or an operator that an interrupt stopped half-way through a change."""


class FieldError(OperatorError, AttributeError):
    """A field that declared state does not have."""


class AccessError(WindowlibError, LookupError):
    """Window contents that this window does not keep."""


class CopyError(WindowlibError, TypeError):
    """A live window that someone tried to pickle or copy."""


class HostError(WindowlibError, RuntimeError):
    """A host that lacks something it takes to run operators."""


class FarmError(WindowlibError, ValueError):
    """Work that cannot be spread over workers in the way that was asked for."""


class WorkloadError(WindowlibError, ValueError):
    """A workload that cannot be made, or cannot be measured, as asked for."""


class WindowlibWarning(UserWarning):
    """A configuration that is legal and probably not what was meant."""


class OrderWarning(WindowlibWarning):
    """Rows of one batch whose order nothing says."""


class CutWarning(OrderWarning):
    """Rows of two streams that meet as Spark happens to cut them into micro-batches."""


class ClockWarning(WindowlibWarning):
    """A clock that never stops, where nothing says that it was meant."""


class LateWarning(WindowlibWarning):
    """Late rows that are dropped, where nothing says how long to wait for them."""


def no_such_column(owner: str, name: object, columns: Iterable[str]) -> str:
    r"""The error of a missing column; `owner` is its reader, and may contain its name.

    >>> no_such_column("by='symbl'", "symbl", ["symbol", "price"])
    'by=\'symbl\': no such column. Columns: symbol, price. Did you mean "symbol"?'
    """
    known = list(columns)
    missing = "" if repr(name) in owner or f'"{name}"' in owner else f" {name!r}"
    near = suggestion(name, known) if isinstance(name, str) else ""
    return f"{owner}: no such column{missing}. Columns: {', '.join(known)}.{near}"


def suggestion(name: object, known: Iterable[object]) -> str:
    """Name the nearest of `known`, as the tail of a message: ` Did you mean "x"?` or nothing.

    >>> suggestion("notionl", ["price", "notional"])
    ' Did you mean "notional"?'
    >>> suggestion("ts", ["TS", "tss"])  # another case is the nearest, however short the name
    ' Did you mean "TS"?'
    """
    names = [str(each) for each in known]
    near = [each for each in names if each.lower() == str(name).lower()]
    near = near or difflib.get_close_matches(str(name), names, n=1)
    return f' Did you mean "{near[0]}"?' if near else ""
