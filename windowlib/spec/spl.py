"""SPL window text: `"sliding, count(100), count(10), partitioned, partitionAge(3600)"`.

Times are in seconds, as in SPL; a duration with a unit (`time(500ms)`) is read too, and so are
SPL's suffixes of numbers (`count(100u)`, `delta(ts, 10ul)`). `str(spec)` writes this text; `parse`
reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any

from windowlib.durations import parse_duration
from windowlib.errors import PolicyError, suggestion
from windowlib.spec.event_time import (
    parse_amount,
    parse_literal,
    parse_since,
    parse_watermark,
    without_suffix,
)
from windowlib.spec.policies import (
    Count,
    Delta,
    Event,
    PartitionAge,
    PartitionCount,
    PartitionEviction,
    Policy,
    Punct,
    Time,
    TupleCount,
)
from windowlib.spec.specification import (
    KEY,
    By,
    Landmark,
    Session,
    Sliding,
    Spec,
    Tumbling,
)

_TERM = re.compile(r"\s*([A-Za-z_]+)\s*(?:\(([^()]*)\))?\s*")
_CLAUSE = re.compile(rf"({_TERM.pattern}(?:\|{_TERM.pattern})*)(?:,|$)")
Term = tuple[str, list[str]]


def _size(text: str) -> int:
    size = parse_literal(text)
    if not isinstance(size, int):
        raise ValueError(text)
    return size


def _span(text: str) -> timedelta:
    try:
        return _duration(text if text[-1:].isalpha() else f"{text}s")
    except ValueError:
        return _duration(f"{without_suffix(text)}s")


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except PolicyError:
        raise ValueError(text) from None  # the clause as a whole makes the better message


def _delta(attribute: str, threshold: str) -> Delta:
    return Delta(_attribute(attribute), parse_amount(threshold))


def _attribute(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text


def _event(attribute: str, size: str | None = None, offset: str = "0") -> Event:
    length = None if size is None else parse_amount(size)
    return Event(_attribute(attribute), length, offset=parse_amount(offset))


POLICIES: dict[str, tuple[str, Callable[..., Policy]]] = {
    "count": ("count(100)", lambda n: Count(_size(n))),
    "delta": ("delta(ts, 10)", _delta),
    "time": ("time(10)", lambda p: Time(_span(p))),
    "punct": ("punct()", lambda: Punct()),
    "event": ("event(ts, 1h)", _event),
}
PARTITION_POLICIES: dict[str, tuple[str, Callable[..., PartitionEviction]]] = {
    "partitioncount": ("partitionCount(100)", lambda n, *s: PartitionCount(_size(n), *s)),
    "tuplecount": ("tupleCount(1000)", lambda n, *s: TupleCount(_size(n), *s)),
    "partitionage": ("partitionAge(3600)", lambda a: PartitionAge(_span(a))),
}
KINDS: dict[str, Callable[..., Spec]] = {
    "tumbling": Tumbling,
    "sliding": Sliding,
    "session": Session,
    "landmark": Landmark,
}
EVENT_TIME: dict[str, tuple[str, Callable[..., Any]]] = {
    "watermark": ("watermark(5s)", parse_watermark),
    "late": ("late(port)", lambda word: word),
    "allowed": ("allowed(1h)", parse_amount),
    "retract": ("retract", lambda: True),
    "early": ("early(1m)", _span),
    "gap": ("gap(30m)", parse_amount),
    "since": ("since(2013-01-01)", parse_since),
}
"""The keywords of event-time windows, by their words."""
_WORDS = (*KINDS, "partitioned", *POLICIES, *EVENT_TIME)
_WORDS += ("partitionCount", "tupleCount", "partitionAge")


def _clauses(text: str) -> list[list[Term]]:
    """What stands between commas: words with their arguments, one or several with | between."""
    found, end = [], 0
    while end < len(text):
        clause = _CLAUSE.match(text, end)
        if not clause:
            msg = f"{text!r}: cannot read {text[end:]!r}. Write it as {EXAMPLE!r}."
            raise PolicyError(msg)
        found.append([_term(*term.groups("")) for term in _TERM.finditer(clause[1])])
        end = clause.end()
    return found


def _term(word: str, arguments: str) -> Term:
    return word, [a.strip() for a in arguments.split(",") if a.strip()]


EXAMPLE = "sliding, count(100), count(10), partitioned"


def _build(text: str, word: str, arguments: list[str], sample: str, make: Callable[..., object]):  # type: ignore[no-untyped-def]
    try:
        return make(*arguments)
    except PolicyError as error:
        raise PolicyError(f"{text!r}: {error}") from None
    except (TypeError, ValueError):
        msg = f"{text!r}: cannot read {word}({', '.join(arguments)}). Write it as {sample}."
        raise PolicyError(msg) from None


def _joined(text: str, terms: list[Term]) -> Policy:
    parts = []
    for word, arguments in terms:
        if word.lower() not in POLICIES:
            near = suggestion(word, POLICIES)
            msg = f"{text!r}: no {word!r} beside |. Write it as count(100) | time(10).{near}"
            raise PolicyError(msg)
        parts.append(_build(text, word, arguments, *POLICIES[word.lower()]))
    joined: Policy = _build(text, "|", [], "", lambda: reduce(or_, parts))
    return joined


def parse(text: str, *, by: By | Sequence[str] | None = None) -> Spec:
    """Read a window specification written as SPL text.

    Args:
        text: the window clause; words in any order, the eviction policy before the trigger.
        by: the partition key of a partitioned window; `KEY` if left out.

    >>> parse("sliding, count(100), count(10), partitioned", by="symbol")
    Sliding(Count(size=100), every=Count(size=10), by='symbol')
    """
    if not isinstance(text, str):
        raise PolicyError(f"parse({text!r}): not SPL text. Write it as {EXAMPLE!r}.")
    kinds: list[str] = []
    policies: list[Policy] = []
    forget: list[PartitionEviction] = []
    options: dict[str, Any] = {}
    partitioned = False
    for terms in _clauses(text):
        word, arguments = terms[0]
        name = word.lower()
        if len(terms) > 1 or name in POLICIES:
            policies.append(_joined(text, terms))
        elif name in PARTITION_POLICIES:
            forget.append(_build(text, word, arguments, *PARTITION_POLICIES[name]))
        elif name in EVENT_TIME and name not in options:
            options[name] = _build(text, word, arguments, *EVENT_TIME[name])
        elif name in (*KINDS, "partitioned") and arguments:
            shown = f"{word}({', '.join(arguments)})"
            raise PolicyError(f"{text!r}: cannot read {shown}. Write it as {name}.")
        elif name in KINDS:
            kinds.append(name)
        elif name == "partitioned":
            partitioned = True
        else:
            msg = f"{text!r}: unknown word {word!r}.{suggestion(word, _WORDS)}"
            raise PolicyError(msg)
    if len(kinds) != 1:
        raise PolicyError(f"{text!r}: say either tumbling or sliding, once.")
    (kind,) = kinds
    _check_counts(text, kind, policies, forget, partitioned)
    _check_options(text, kind, options)
    options |= {"by": _key(text, partitioned, by), "forget": forget[0] if forget else None}
    if kind == "sliding":
        options["every"] = policies[1] if len(policies) > 1 else None
    try:
        return KINDS[kind](policies[0], **options)
    except PolicyError as error:
        raise PolicyError(f"{text!r}: {error}") from None


def _check_counts(
    text: str,
    kind: str,
    policies: list[Policy],
    forget: list[PartitionEviction],
    partitioned: bool,
) -> None:
    if kind != "sliding" and len(policies) != 1:
        msg = (
            f"{text!r}: a {kind} window takes exactly one eviction policy, here are "
            f"{len(policies)}. Write it as 'tumbling, count(100)'."
        )
        raise PolicyError(msg)
    if kind == "sliding" and len(policies) not in (1, 2):
        msg = (
            f"{text!r}: a sliding window takes an eviction policy and at most one trigger policy, "
            f"here are {len(policies)}. Write it as 'sliding, count(100), count(10)'."
        )
        raise PolicyError(msg)
    if len(forget) > 1:
        raise PolicyError(f"{text!r}: only one partition eviction policy is possible. Keep one.")
    if forget and not partitioned:
        msg = (
            f"{text!r}: {forget[0]} needs a partitioned window. Add the word 'partitioned', or "
            f"drop it."
        )
        raise PolicyError(msg)


def _check_options(text: str, kind: str, options: dict[str, Any]) -> None:
    """Refuse words of one kind of window in the text of another, and a session without a gap."""
    for word, owner in (("gap", "session"), ("since", "landmark")):
        if word in options and kind != owner:
            msg = f"{text!r}: only a {owner} window has {word}(...). Write {owner} for {kind}."
            raise PolicyError(msg)
    if kind == "session" and "gap" not in options:
        msg = f"{text!r}: a session ends after a gap. Write it as 'session, event(ts), gap(30m)'."
        raise PolicyError(msg)


def _key(text: str, partitioned: bool, by: By | Sequence[str] | None) -> By | Sequence[str] | None:
    if partitioned:
        return KEY if by is None else by
    if by is not None:
        msg = (
            f"{text!r}: by={by!r} is given, but the window is not partitioned. "
            f"Add the word 'partitioned', or drop `by=`."
        )
        raise PolicyError(msg)
    return None


# -------------------------------------------------------------------------------------------------
# From what a user passes to a container to its specification.


def combine(
    spec: Spec | str | None,
    make: Callable[..., Spec],
    evict: Policy | None,
    by: By | Sequence[str] | None,
    forget: PartitionEviction | None,
    **more: Policy | None,
) -> tuple[Spec | str, bool]:
    """A specification from either a spec or policies, and whether keys are the caller's choice."""
    name = f"{make.__name__}Window"
    given = [evict, forget, *more.values()]
    if isinstance(spec, str) and not any(given):
        return parse(spec, by=by), False
    if spec is not None:
        if by is not None or any(value is not None for value in given):
            msg = f"{name}(spec, ...): give a specification or policies (evict=, ...), not both."
            raise PolicyError(msg)
        return spec, False
    if evict is None:
        msg = f"{name}(): give a specification or evict=, such as evict=Count(10)."
        raise PolicyError(msg)
    return make(evict, by=KEY if by is None else by, forget=forget, **more), by is None
