"""What the operators of this package refuse when they are built."""

from __future__ import annotations

from typing import Any

from windowlib.errors import ModelError
from windowlib.policies import Count
from windowlib.spec import Sliding, Spec


def check_window(kind: str, spec: Spec) -> None:
    """Refuse windows that hold nothing."""
    if isinstance(spec.evict, Count) and not spec.evict.size:
        msg = (
            f"{kind} does not support {type(spec).__name__}(Count(0)): a window of size 0 keeps "
            f"nothing to choose from. Use Count(1) or more."
        )
        raise ModelError(msg)


def check_options(kind: str, spec: Spec, partial: Any, flush_at_end: Any) -> None:
    """Refuse unknown words, and options that do not fit the window."""
    if partial not in (None, "skip", "emit"):
        raise ModelError(f'{kind}(partial={partial!r}): unknown. Use "skip" or "emit".')
    if not isinstance(flush_at_end, bool):
        raise ModelError(f"{kind}(flush_at_end={flush_at_end!r}): say True or False.")
    if partial is not None and not isinstance(spec, Sliding):
        msg = (
            f"{kind}(partial={partial!r}): a tumbling window fires when it is full. Drop "
            f"`partial=`, or say flush_at_end=True to see the last one."
        )
        raise ModelError(msg)
    if flush_at_end and isinstance(spec, Sliding):
        msg = (
            f"{kind}(flush_at_end=True): a sliding window fires at its triggers, and has nothing "
            f'left at the end. Drop it, or say partial="emit".'
        )
        raise ModelError(msg)


def check_number(kind: str, parameter: str, value: Any, most: int | None = None) -> None:
    """Refuse what is no number of rows or of dimensions."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ModelError(f"{kind}({parameter}={value!r}): use a whole number from 1 on.")
    if most is not None and value > most:
        msg = (
            f"{kind}({parameter}={value}): there are only {most} dimensions. Use {parameter}="
            f"{most} or less."
        )
        raise ModelError(msg)


def check_names(kind: str, names: dict[str, Any]) -> None:
    """Refuse names of added columns that are none, or the same."""
    for parameter, name in names.items():
        if not isinstance(name, str) or not name:
            msg = f"{kind}({parameter}={name!r}): not a name. Use a text, as {parameter}='best'."
            raise ModelError(msg)
    if len(set(names.values())) < len(names):
        both = ", ".join(f"{parameter}={name!r}" for parameter, name in names.items())
        raise ModelError(f"{kind}({both}): two columns with one name. Rename one.")
