"""Rules that both engines and hosts call, off the hot path."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sized
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from windowlib.errors import PartitionError, SchemaError, WindowlibError
from windowlib.spec.policies import Attribute, Delta
from windowlib.spec.specification import KEY, Spec
from windowlib.window.subwindow import DEFAULT_KEY, NO_KEY, UNSET, Subwindow

if TYPE_CHECKING:
    from windowlib.window.container import WindowState


def check_delta(policy: Delta, value: Any, tuple_: Any) -> None:
    """Refuse a value that the delta test cannot work with, before anything has changed.

    A value must have a distance from itself, which is zero: infinity and NaN have none. All that
    comes after them would be equally far away, and nothing would ever leave.
    """
    try:
        apart = value - value
        sound = not apart and (apart > policy.threshold) in (True, False)
    except (TypeError, ArithmeticError):
        sound = False
    if sound:
        return
    raise SchemaError(f"{policy.shown}: the value {value!r} {_why_not(policy, value, tuple_)}")


def _why_not(policy: Delta, value: Any, tuple_: Any) -> str:
    kind, threshold = type(value).__name__, policy.threshold
    number, timed = isinstance(value, int | float | Decimal), isinstance(threshold, timedelta)
    if value is None or (number and not timed):
        return f"cannot be compared. Drop or fill such tuples before the window: {tuple_!r}"
    if isinstance(value, date | timedelta) and not timed:
        fix = f'Delta({policy.attribute!r}, "{threshold}s")'
        return f"is of type {kind}, so the threshold must be a duration. Write {fix}."
    if number and isinstance(threshold, timedelta):
        fix = f"Delta({policy.attribute!r}, {threshold.total_seconds():g})"
        return f"is of type {kind}, so the threshold must be a number. Write {fix}."
    return f"is of type {kind}, which has no distance. Use a number, a Decimal or a datetime."


def check_measured_columns(spec: Spec, schema: Any) -> None:
    """Refuse Arrow columns without distances, and distances of another kind than theirs.

    >>> import pyarrow as pa
    >>> from windowlib import Tumbling
    >>> check_measured_columns(Tumbling(Delta("ts", 5)), pa.schema({"ts": pa.int64()}))
    >>> times = pa.schema({"ts": pa.timestamp("us")})
    >>> check_measured_columns(Tumbling(Delta("ts", 5)), times)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    windowlib.errors.SchemaError: ...: the column 'ts' is timestamp[us], so distances ...
    """
    for shown, column, distances in _measures(spec):
        place = schema.get_field_index(column) if isinstance(column, str) else -1
        if place < 0:
            continue
        kind = schema.field(place).type
        measure = _measure_of(kind)
        if measure == "none":
            msg = (
                f"{shown}: the column {column!r} is {kind}, which has no distances. Use a column "
                f"of numbers, dates or timestamps, or cast it before."
            )
            raise SchemaError(msg)
        times, told = measure == "time", filter(None, distances)  # 0 is a distance of either kind
        if measure != "any" and any(isinstance(each, timedelta) is not times for each in told):
            fix = 'durations, such as "5s"' if times else "numbers, such as 5"
            msg = f"{shown}: the column {column!r} is {kind}, so distances must be {fix}."
            raise SchemaError(msg)


def _measures(spec: Spec) -> Iterator[tuple[str, Attribute, list[Any]]]:
    """The text, the column and the distances of each policy that measures a column."""
    if (event := spec.evict.event) is not None:
        yield repr(event), event.attribute, [amount for _, amount in spec.amounts]
    for policy in spec.policies:
        if (delta := policy.delta) is not None:
            yield delta.shown, delta.attribute, [delta.threshold]


def _measure_of(kind: Any) -> Literal["number", "time", "any", "none"]:
    """What distances between values of an Arrow type are; "any" if only the values tell."""
    import pyarrow as pa

    of = pa.types
    if of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind):
        return "number"
    if of.is_timestamp(kind) or of.is_date(kind) or of.is_duration(kind):
        return "time"
    encoded = of.is_dictionary(kind) or of.is_run_end_encoded(kind)
    untold = of.is_null(kind) or of.is_boolean(kind) or isinstance(kind, pa.BaseExtensionType)
    return "any" if encoded or untold else "none"


def clearer_error(
    state: WindowState, error: BaseException, tuple_: Any, key: Any
) -> Exception | None:
    """A clearer exception, if the tuple or its key is to blame for an error."""
    if isinstance(error, WindowlibError) or not isinstance(error, Exception):
        return None
    better: WindowlibError | None = None
    try:
        hash(key)
    except TypeError:
        msg = (
            f"insert(key={key!r}): a {type(key).__name__} cannot be a partition key. "
            f"Use a plain value or a tuple of them."
        )
        better = PartitionError(msg)
    else:
        better = _delta_error(state, tuple_, key)
    if better is not None:
        better.__cause__ = error
    return better


def _delta_error(state: WindowState, tuple_: Any, key: Any) -> SchemaError | None:
    for policy, get in state.getters.items():
        try:
            value = get(tuple_)
            check_delta(policy, value, tuple_)
            check_same_kind(state, policy, value, state.find(key))
        except SchemaError as found:
            return found
        except Exception:
            return None  # the user's own callable: its error speaks for itself
    return None


def check_same_kind(state: WindowState, policy: Delta, value: Any, s: Subwindow | None) -> None:
    """Refuse a value that has no distance from the one before it."""
    known = UNSET
    if s is not None:  # a sliding window evicts by its newest value; all else has a reference
        evicts = state.sliding and policy == state.spec.evict
        known = s.newest if evicts else s.ref
    try:
        if known is not UNSET:
            value - known
    except TypeError:
        msg = (
            f"{policy.shown}: the value {value!r} does not mix with {known!r} before it. "
            f"Use one type for the whole stream."
        )
        raise SchemaError(msg) from None


def evict_unordered(state: WindowState, s: Subwindow, policy: Delta, new: Any) -> None:
    """Delta eviction over unordered values: each tuple that is too far is evicted, oldest first."""
    get = state.getters[policy]
    leaving = [t for t in s.data if policy.exceeds(new, get(t))]
    s.full = s.full or bool(leaving)
    if leaving and "summary" in s.fields:
        s.summary = None  # it counts on tuples leaving in the order in which they came
    for tuple_ in leaving:
        state.evict_one(s, tuple_)
    values = [get(t) for t in s.data]
    s.rough = state.mixed or values != sorted(values)
    if values:
        s.newest = values[-1]


def note_mixed_forms(state: WindowState, tuple_: Any, sample: Any) -> None:
    """Note a tuple that the inlined way of reading attributes does not fit.

    From then on delta eviction reads all tuples through their getters, which fit every form.
    """
    if isinstance(tuple_, Mapping) == isinstance(sample, Mapping) or state.mixed:
        return
    state.mixed = True
    for s in state.subwindows.values():
        if "rough" in s.fields:
            s.rough = True


def evicts_any(state: WindowState, s: Subwindow, policy: Delta, new: Any) -> bool:
    """Whether delta eviction would evict a tuple: the oldest decides, if values are ordered."""
    get = state.getters[policy]
    asked = s.data if s.rough else itertools.islice(s.data, 1)
    return any(policy.exceeds(new, get(t)) for t in asked)


def key_default(state: WindowState) -> Any:
    """What `insert` takes for a key that is not given."""
    unpartitioned = state.spec.by is None
    return DEFAULT_KEY if unpartitioned or state.open_key else NO_KEY


def reject_key(state: WindowState, call: str) -> NoReturn:
    """Refuse a key that was passed to a window that reads its keys itself, or has none."""
    why = "is not partitioned"
    if state.spec.by is not None:
        why = f"reads its key from by={state.spec.by!r}"
    msg = f"{call}: the window '{state.spec}' {why}. Pass no key, or build it with by=KEY."
    raise PartitionError(msg)


def pair(
    state: WindowState, tuples: Iterable[Any], keys: Iterable[Any] | None
) -> Iterable[tuple[Any, Any]]:
    """Tuples with the keys to insert them under; lengths are checked first where they are known."""
    if keys is None:
        return zip(tuples, itertools.repeat(key_default(state)))  # there is no end of keys
    if state.spec.by is not KEY:
        reject_key(state, "insert_many(keys=...)")
    if not isinstance(tuples, Sized) or not isinstance(keys, Sized):
        return _paired(tuples, keys)
    if len(tuples) != len(keys):
        _unpaired(len(keys), f"{len(tuples)} tuples")
    return zip(tuples, keys, strict=True)


def _paired(tuples: Iterable[Any], keys: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    left, number = iter(keys), 0
    for number, tuple_ in enumerate(tuples, 1):
        key = next(left, UNSET)
        if key is UNSET:
            _unpaired(number - 1, "more tuples")
        yield tuple_, key
    if next(left, UNSET) is not UNSET:
        _unpaired(number + 1, f"{number} tuples", "or more ")


def _unpaired(keys: int, tuples: str, more: str = "") -> NoReturn:
    noun = "key" if keys == 1 and not more else "keys"
    msg = f"insert_many(keys=...): {keys} {more}{noun} for {tuples}. Give one key per tuple."
    raise PartitionError(msg)
