"""The choice of a farm for an operator: the best pattern, its reason, and unsafe patterns.

A keyed operator is split by its keys. Otherwise the windows decide, and the function:

| windows | associative | incremental | neither |
| --- | --- | --- | --- |
| overlapping, context free | pane | window active | window agnostic |
| overlapping, a slide of one tuple | window active | window active | window agnostic |
| apart (tumbling, hopping, sessions, …) | window partition | window active | window agnostic |
| landmark | pane | window active | refused |
| forward context | window agnostic, on partial results | refused | window agnostic |
| event time, sliding or landmark | pane | window agnostic | window agnostic |
| event time, tumbling or session | window agnostic | window agnostic | window agnostic |

Active workers get tuples and keep windows of their own; agnostic workers get whole windows from
the emitter, which keeps the tuples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NoReturn, get_args

from windowlib.errors import FarmError, suggestion
from windowlib.farms.models import (
    CountWindows,
    EventWindows,
    LandmarkWindows,
    RegularWindows,
    WindowModel,
    model_of,
)
from windowlib.farms.window_function import WindowFunction, function_of, has_parts
from windowlib.runtime.graph import Graph
from windowlib.runtime.operator import Operator
from windowlib.spec.specification import Sliding

FarmPattern = Literal["key", "window agnostic", "window active", "pane", "window partition"]
PATTERNS: tuple[FarmPattern, ...] = get_args(FarmPattern)
FARMS = {
    "key": "KeyFarm",
    "window agnostic": "WindowFarm",
    "window active": "WindowFarm",
    "pane": "PaneFarm",
    "window partition": "WindowPartition",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The farm for an operator.

    Args:
        pattern: how the work is spread.
        workers: over how many workers.
        reason: why, in a sentence or two.
        columns: for "key", the columns by which rows are kept apart; none if rows never meet.
        partials: for "window agnostic", whether workers merge results of slices over the window,
            in place of going through its tuples.
    """

    pattern: FarmPattern
    workers: int
    reason: str
    columns: tuple[str, ...] = ()
    partials: bool = False
    ordered: bool = True
    """Whether all rows come out in the order of the operator, and not only those of each key."""

    def nested(self, inner: Choice) -> Choice:
        """The choice for a farm whose workers are farms: the inner one has the windows."""
        many = self.workers // inner.workers
        reason = (
            f"{many} windows of {inner.workers} workers each are under way: {inner.pattern}, as "
            f"{inner.reason} A worker that is free helps the others."
        )
        return replace(self, reason=reason, partials=False, ordered=True)

    def __str__(self) -> str:
        many = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"{self.pattern}, {many}: {self.reason}"


def choose(
    operator: Operator, workers: int, *, pattern: FarmPattern | None = None, heaviest: float = 0.0
) -> Choice:
    """The farm for an operator, with the reason.

    Args:
        operator: any operator.
        workers: how many workers there are.
        pattern: the one that is wanted; refused if it could give other rows.
        heaviest: the share of the rows that have the most frequent key, if that is known. A farm
            by key is at most 1 / heaviest times as fast as one worker, so if that is less than
            the number of workers another is taken, where one is possible.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Count, Sliding
    >>> print(choose(Aggregate(Sliding(Count(18), every=Count(5)), high=agg.max("x")), 4))
    pane, 4 workers: its function is associative and windows overlap, so 7 slices make up a \
window and each is computed once.
    """
    _check_arguments(operator, workers, pattern, heaviest)
    keyed = _by_key(operator, workers)
    skewed = heaviest * workers > 1
    if pattern == "key" or (pattern is None and keyed is not None and not skewed):
        return keyed or _refuse(operator, "key", *_no_key(operator))
    try:
        return _by_window(operator, workers, pattern)
    except FarmError:
        if pattern is None and keyed is not None:
            return keyed  # the skew costs speed, and nothing else would be right
        raise


def _check_arguments(
    operator: Operator, workers: int, pattern: str | None, heaviest: float
) -> None:
    owner = f"choose({operator.name}"
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise FarmError(f"{owner}, workers={workers!r}): not a number of workers. Use 1 or more.")
    if pattern is not None and pattern not in PATTERNS:
        near = suggestion(pattern, PATTERNS)
        msg = f"{owner}, pattern={pattern!r}): no such farm. Use {', '.join(PATTERNS)}.{near}"
        raise FarmError(msg)
    if not 0 <= heaviest <= 1:
        msg = f"{owner}, heaviest={heaviest!r}): not a share of the rows. Use 0 to 1, such as 0.16."
        raise FarmError(msg)


def _refuse(operator: Operator, pattern: FarmPattern, why: str, fix: str) -> NoReturn:
    raise FarmError(f"{FARMS[pattern]}({operator.name}): {why}. {fix}")


# -- by key ---------------------------------------------------------------------------------------


def _by_key(operator: Operator, workers: int) -> Choice | None:
    splits = [operator.splits_by(port) for port in range(len(operator.model.inputs))]
    if all(each is None for each in splits):
        return Choice("key", workers, "rows never meet, so any worker may take any of them.")
    if any(each == () for each in splits):
        return None
    columns = next(each for each in splits if each)
    reason = (
        f"rows that differ in {', '.join(columns)} never meet, so no row is copied and any "
        f"function will do."
    )
    later = _sends_later(operator)
    if later:
        reason += (
            f" What {later} makes it send comes worker by worker, in order for each key; a "
            f"WindowFarm has the order of the operator."
        )
    return Choice("key", workers, reason, columns, ordered=not later)


def _sends_later(operator: Operator) -> str:
    """What besides a row makes an operator send rows of several keys at once; "" if nothing."""
    if isinstance(operator, Graph):
        found = dict.fromkeys(filter(None, map(_sends_later, operator.operators.values())))
        return " or ".join(found)
    specs = [spec for spec in operator.windows if spec is not None]
    if any(spec.event_time for spec in specs):
        return "the watermark or the end of the input"
    if any(spec.timed for spec in specs) or operator.has_timers:
        return "time"
    if any(spec.punctuated for spec in specs):
        return "a punctuation"
    return "the end of the input" if sends_at_end(operator) else ""


def sends_at_end(operator: Operator) -> bool:
    """Whether an operator may send rows when its input ends."""
    sliding = any(isinstance(spec, Sliding) for spec in operator.windows)
    told = getattr(operator, "flush_at_end", None)
    if told is not None and (told or not sliding or not operator.beyond_window()):
        return bool(told)
    own = type(operator)
    return (own.on_finish, own.on_input_end) != (Operator.on_finish, Operator.on_input_end)


def _no_key(operator: Operator) -> tuple[str, str]:
    if any(
        spec is not None and spec.event_time and spec.by is not None for spec in operator.windows
    ):
        why = "one watermark closes the windows of all keys, so one worker must see all rows"
        return why, 'Use WindowFarm, or say Watermark(..., scope="key").'
    why = "no column keeps its rows apart, so one worker must see them all"
    return why, 'Partition its window, by="symbol", or say the columns in splits_by.'


# -- by window ------------------------------------------------------------------------------------


def _by_window(operator: Operator, workers: int, wanted: FarmPattern | None) -> Choice:
    shown = wanted or "window agnostic"
    spec = operator.windows[0] if len(operator.windows) == 1 else None
    if spec is None:
        many = len(operator.windows)
        why = "it has no window" if many == 1 else f"its rows depend on {many} windows at once"
        _refuse(operator, shown, f"{why}, so there are no windows to give away", _KEY_ONLY)
    beyond = operator.beyond_window()
    if beyond:
        why = f"its rows depend on {beyond}, and not on the tuples of a window alone"
        _refuse(operator, shown, why, _KEY_ONLY)
    model, function = model_of(spec), function_of(operator)
    pattern = wanted or best_pattern(model, function)
    reason = unsafe(model, function, pattern)
    if reason:
        _refuse(operator, pattern, *reason)
    forward = model.context == "forward" and function.kind == "associative"
    partials = forward and pattern == "window agnostic"
    if (partials or pattern in ("pane", "window partition")) and not has_parts(operator):
        _refuse(operator, pattern, *_NO_PARTS)
    return Choice(pattern, workers, _reason(model, function, pattern), partials=partials)


_AGNOSTIC = 'Use agnostic workers: without active=True, or with pattern="window agnostic".'
_KEY_ONLY = "Use KeyFarm, with a window partitioned by a column."
_NO_PARTS = (
    "it says that its function is associative, and has no part_of",
    "Define part_of(window, key), merge_parts(a, b) and emit_part(key, part), or leave "
    "function_kind as it is, for WindowFarm.",
)


def best_pattern(model: WindowModel, function: WindowFunction) -> FarmPattern:
    """The farm for windows and a function without keys: a cell of the table above.

    It may still be unsafe, if there is none.
    """
    if model.context == "forward" or function.kind == "neither":
        return "window agnostic"
    if isinstance(model, EventWindows):
        shares = function.kind == "associative" and model.overlapping
        return "pane" if shares else "window agnostic"
    if function.kind == "incremental":
        return "window active"
    if not model.overlapping:
        return "window partition"
    return "window active" if _tuple_by_tuple(model) else "pane"


def _tuple_by_tuple(model: WindowModel) -> bool:
    """Whether each tuple ends a slice, so that slices save nothing."""
    return isinstance(model, CountWindows) and model.slide == 1


def unsafe(
    model: WindowModel, function: WindowFunction, pattern: FarmPattern
) -> tuple[str, str] | None:
    """Why a farm is wrong for windows and a function, and which to use; None if it is right."""
    kind, forward = function.kind, model.context == "forward"
    if pattern in ("pane", "window partition") and kind != "associative":
        parts = "panes" if pattern == "pane" else "parts of a window"
        why = f"{function.shown} is not associative, so {parts} cannot be combined"
        return why, "Use KeyFarm or WindowFarm."
    if isinstance(model, LandmarkWindows) and kind == "neither":
        why = f"{function.shown} needs all tuples, and a landmark window never lets one go"
        return why, "Use a function that is incremental or associative, or a window that slides."
    if isinstance(model, EventWindows) and pattern == "window active":
        why = (
            "tuples of event time come in any order, so what a worker has folded early would have "
            "to be folded again"
        )
        return why, _AGNOSTIC
    if forward and pattern == "window active":
        why = (
            "which windows hold a tuple is known only when they are triggered, so it cannot be "
            "sent to their workers when it comes"
        )
        return why, _AGNOSTIC
    if forward and pattern == "window agnostic" and kind == "incremental":
        why = (
            f"{function.shown} is computed tuple by tuple, and which windows hold a tuple is known "
            f"only when they are triggered"
        )
        fix = (
            "Make it associative with a merge, say that it needs all tuples "
            '(function_kind = "neither"), or use KeyFarm.'
        )
        return why, fix
    return None


def _reason(model: WindowModel, function: WindowFunction, pattern: FarmPattern) -> str:
    """The reason for a farm that is right."""
    shown = function.shown
    if pattern == "pane":
        if isinstance(model, RegularWindows):
            many = f"{model.pairs().per_window} slices make up a window"
            many = f"windows overlap, so {many}" if model.overlapping else many
            return f"{shown} is associative and {many} and each is computed once."
        if isinstance(model, EventWindows):
            many = "share slices" if model.overlapping else "are made of slices"
            return f"{shown} is associative, and windows of event time {many}."
        if not isinstance(model, LandmarkWindows):
            return f"{shown} is associative, and windows are covered by slices as they fire."
        return f"{shown} is associative, and each window is the one before and one slice more."
    if pattern == "window partition":
        apart = "" if model.overlapping else " and windows share no tuples"
        return f"{shown} is associative{apart}, so each worker takes a part of every window."
    if pattern == "window active":
        return (
            "a tuple can be sent to the workers of its windows when it comes, and each worker "
            "keeps its own windows up to date."
        )
    if isinstance(model, EventWindows):
        return (
            "a window of event time is whole when the watermark has passed it; then any free "
            "worker may take it."
        )
    if model.context != "forward":
        whole = f"{shown} needs whole windows, and " if function.kind == "neither" else ""
        return f"{whole}any free worker may take the next window."
    way = "merges the results of its slices" if function.kind == "associative" else "computes it"
    return f"a window is known only when it is triggered; then any free worker {way}."
