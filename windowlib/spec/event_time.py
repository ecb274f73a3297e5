"""The options of windows of event time: the watermark, and the treatment of late rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, get_args

from windowlib.durations import (
    Amount,
    amount_of,
    check_amounts,
    length,
    parse_duration,
    plain_amount,
)
from windowlib.errors import PolicyError, suggestion
from windowlib.event_time.slack import FixedSlack, KSlack, PidSlack, QuantileSlack, Slack
from windowlib.event_time.watermark import Watermark, watermark_of
from windowlib.spec.policies import Event, Policy, attribute_text

Late = Literal["drop", "port", "error", "update"]
OPTIONS = ("watermark", "late", "allowed", "retract", "early")
"""The keywords of a specification that only windows of event time take."""


def event_options(owner: str, policy: Policy, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of event time, checked; refused for other windows."""
    said = [name for name in OPTIONS if given[name] is not None]
    if policy.event is None:
        if said:
            name = said[0]
            msg = (
                f"{owner}({policy!r}, {name}={given[name]!r}): only windows of event time have "
                f'late rows. Use an Event policy, as Event("ts", "1h"), or drop `{name}=`.'
            )
            raise PolicyError(msg)
        return dict.fromkeys(OPTIONS)
    late, retract = given["late"], given["retract"]
    _check_late(owner, late)
    if retract not in (None, True, False):
        raise PolicyError(f"{owner}(retract={retract!r}): say True or False.")
    found = {"late": late, "retract": retract or None}
    found["watermark"] = _watermark(owner, given["watermark"])
    found["allowed"] = _allowed(owner, late, given["allowed"])
    found["early"] = _early(owner, given["early"])
    if retract and late != "update":
        msg = (
            f'{owner}(retract=True): only late="update" sends rows again. Say late="update" with '
            f"`allowed=`, or drop `retract=`."
        )
        raise PolicyError(msg)
    if retract and given["early"] is not None:
        msg = (
            f"{owner}(early={given['early']!r}, retract=True): early rows are replaced by those "
            f"that follow, not taken back. Drop one of the two."
        )
        raise PolicyError(msg)
    return found


def _check_late(owner: str, late: object) -> None:
    if late is not None and late not in get_args(Late):
        words = '"drop", "port", "error" or "update"'
        near = suggestion(late, get_args(Late))
        raise PolicyError(f"{owner}(late={late!r}): say {words}.{near}")


def _watermark(owner: str, value: Any) -> Watermark | None:
    return None if value is None else watermark_of(value, f"{owner}(watermark={value!r})")


def _allowed(owner: str, late: Any, value: Any) -> Amount | None:
    if (late == "update") == (value is not None):
        return None if value is None else amount_of(value, f"{owner}(allowed={value!r})", "more")
    if value is None:
        msg = (
            f'{owner}(late="update"): say for how long closed windows are kept, as allowed="1h"; '
            f"with no end they would all be kept."
        )
        raise PolicyError(msg)
    msg = (
        f'{owner}(allowed={value!r}): only late="update" keeps closed windows. Say late="update", '
        f"or allow more slack, as watermark={value!r}."
    )
    raise PolicyError(msg)


def _early(owner: str, value: Any) -> timedelta | None:
    if value is None:
        return None
    found = amount_of(value, f"{owner}(early={value!r})", "more")
    if not isinstance(found, timedelta):
        msg = (
            f'{owner}(early={value!r}): not a period of the clock. Use a duration, as early="1min".'
        )
        raise PolicyError(msg)
    return found


def check_event_size(owner: str, policy: Policy) -> None:
    """Refuse an event-time policy without a size, where a window has one."""
    if isinstance(policy, Event) and policy.size is None:
        msg = (
            f"{owner}({policy!r}): nothing says how long a window is. Write "
            f'Event({policy.attribute!r}, "1h").'
        )
        raise PolicyError(msg)


def check_hop(evict: Policy, every: Policy) -> None:
    """Refuse a trigger that does not fit an event-time window, or the reverse."""
    owner = f"Sliding({evict!r}, every={every!r})"
    if evict.event is None and every.event is None:
        return
    if not isinstance(evict, Event) or not isinstance(every, Event):
        event = evict.event or every.event
        assert event is not None
        msg = (
            f"{owner}: event time does not mix with another policy, because windows close in the "
            f"order of their ends. Write both as Event({event.attribute!r}, ...)."
        )
        raise PolicyError(msg)
    check_event_size("Sliding", evict)
    if every.size is None or evict.attribute != every.attribute:
        msg = (
            f"{owner}: the trigger says how far apart windows start. Write "
            f'every=Event({evict.attribute!r}, "10min").'
        )
        raise PolicyError(msg)
    if every.offset:
        msg = f"{owner}: the offset is of the windows. Write it in the first Event."
        raise PolicyError(msg)
    check_amounts(owner, [("size", _size(evict)), ("every", every.size)], PolicyError)
    if length(every.size) > length(_size(evict)):
        msg = (
            f"{owner}: rows between two windows would be lost. Use an `every` up to the size of a "
            f"window."
        )
        raise PolicyError(msg)


def _size(policy: Event) -> Amount:
    assert policy.size is not None
    return policy.size


def check_no_eviction(
    owner: str,
    policy: Policy,
    forget: object,
    why: str = "event-time windows forget a key when its windows are closed",
) -> None:
    """Refuse partition eviction of event-time windows, which forget by themselves, or never."""
    if policy.event is not None and forget is not None:
        msg = f"{owner}({policy!r}, forget={forget!r}): {why}. Drop `forget=`."
        raise PolicyError(msg)


def gap_of(policy: object, gap: Any) -> Amount:
    """The gap of a session, checked together with its policy."""
    owner = f"Session({policy!r}, gap={gap!r})"
    if not isinstance(policy, Event):
        msg = f'{owner}: sessions are of event time. Write Session(Event("ts"), gap="30min").'
        raise PolicyError(msg)
    if policy.size is not None or policy.offset:
        msg = (
            f"{owner}: a session is as long as rows keep coming, so it has neither size nor "
            f"offset. Write Event({policy.attribute!r})."
        )
        raise PolicyError(msg)
    return amount_of(gap, owner, "more")


Since = int | float | Decimal | datetime | date
"""Where a landmark window starts."""


def since_of(policy: object, since: Any) -> Since | None:
    """Where a landmark window starts, checked together with its policy."""
    owner = f"Landmark({policy!r}, since={since!r})"
    if not isinstance(policy, Event):
        msg = (
            f"{owner}: landmark windows are of event time. Write "
            f'Landmark(Event("ts", "1h"), since="2013-01-01").'
        )
        raise PolicyError(msg)
    check_event_size("Landmark", policy)
    if since is None:
        return None
    found = since
    if isinstance(since, str):
        try:
            found = datetime.fromisoformat(since)
        except ValueError:
            found = None
    usable = isinstance(found, int | float | Decimal | datetime | date)
    if isinstance(found, bool) or not usable:
        msg = (
            f"{owner}: not a point in time. Write a number, a datetime, or text such as "
            f'"2013-01-01T06:00".'
        )
        raise PolicyError(msg)
    if policy.offset:
        msg = f"{owner}: the windows start at `since`. Drop the offset."
        raise PolicyError(msg)
    if isinstance(found, date) != isinstance(policy.size, timedelta):
        msg = (
            f"{owner}: `since` and the size do not go together. Use a datetime with a duration, a "
            f"number with a number."
        )
        raise PolicyError(msg)
    return found  # type: ignore[no-any-return]


def since_text(since: Since) -> str:
    """A start as text that is the same in every process and for equal points in time."""
    if isinstance(since, datetime):
        moved = since if since.tzinfo is None else since.astimezone(UTC).replace(tzinfo=None)
        return moved.isoformat()
    return since.isoformat() if isinstance(since, date) else str(since)


# -- as SPL text ----------------------------------------------------------------------------------


def option_words(spec: Any) -> list[str]:
    """The keywords of event time as SPL text: watermark(5s), late(port), allowed(1h)."""
    words = [] if spec.watermark is None else [f"watermark({_watermark_words(spec.watermark)})"]
    words += [] if spec.late is None else [f"late({spec.late})"]
    words += [] if spec.allowed is None else [f"allowed({plain_amount(spec.allowed)})"]
    words += ["retract"] if spec.retract else []
    return words + ([] if spec.early is None else [f"early({plain_amount(spec.early)})"])


def _watermark_words(watermark: Watermark) -> str:
    slack = watermark.slack
    if isinstance(slack, FixedSlack):
        parts = [plain_amount(slack.amount)]
    else:
        name = {KSlack: "k", QuantileSlack: "quantile", PidSlack: "pid"}[type(slack)]
        parts = [" ".join([name, *map(str, _numbers(slack))])]
    parts += [] if watermark.sources is None else [f"sources {attribute_text(watermark.sources)}"]
    parts += [] if watermark.idle is None else [f"idle {plain_amount(watermark.idle)}"]
    ahead = watermark.max_ahead
    parts += [] if ahead is None else [f"max_ahead {plain_amount(ahead)}"]
    return ", ".join(parts + (["scope key"] if watermark.scope == "key" else []))


def _numbers(slack: Slack) -> tuple[Any, ...]:
    if isinstance(slack, KSlack):
        return (slack.delay,)
    if isinstance(slack, QuantileSlack):
        return slack.drop, slack.recent
    assert isinstance(slack, PidSlack)
    return slack.drop, slack.every, *slack.gains


def parse_watermark(slack: str, *more: str) -> Watermark:
    """Read what `watermark(...)` holds in SPL text; ValueError for anything else."""
    options: dict[str, Any] = {}
    for each in more:
        name, _, value = each.partition(" ")
        if name not in ("sources", "idle", "max_ahead", "scope") or name in options:
            raise ValueError(each)
        amount = name in ("idle", "max_ahead")
        options[name] = parse_amount(value.strip()) if amount else value.strip()
    return Watermark(_parse_slack(slack), **options)


def _parse_slack(text: str) -> Slack | Amount:
    name, *values = text.split()
    if name == "k" and len(values) <= 1:
        return KSlack(*values)  # type: ignore[arg-type]  # refused if it is no delay
    if name == "quantile":
        return QuantileSlack(*map(parse_number, values))  # type: ignore[arg-type]
    if name == "pid":
        drop, every, *gains = map(parse_number, values)
        return PidSlack(drop, every, *([tuple(gains)] if gains else []))  # type: ignore[arg-type]
    return parse_amount(text)


_LITERAL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([sufd]?[bhwlq]?)")


def parse_number(text: str) -> int | float:
    """A number as SPL text has it."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def parse_literal(text: str) -> int | float | Decimal:
    """A number with the suffix that gives SPL its type: 10ul, 0.5fl; decimals stay exact.

    >>> parse_literal("100u"), parse_literal("1.5w"), parse_literal("0.1dl")
    (100, 1.5, Decimal('0.1'))
    """
    found = _LITERAL.fullmatch(text)
    if found is None:
        return parse_number(text)
    number, suffix = found.groups()
    if suffix.startswith("d"):
        return Decimal(number)
    if suffix.startswith("f"):
        return float(number)
    return int(number) if suffix[:1] in ("s", "u") else parse_number(number)


def without_suffix(text: str) -> str:
    """A literal without the letters that give its type."""
    found = _LITERAL.fullmatch(text)
    return text if found is None else found[1]


def parse_amount(text: str) -> Amount:
    """A distance as SPL text has it: 10, 0.5, 1h30m, 10ul; a unit of time comes before a type."""
    try:
        return parse_number(text)
    except ValueError:
        try:
            return parse_duration(text)
        except PolicyError:
            return parse_literal(text)


def parse_since(text: str) -> Since:
    """A point on the axis as SPL text has it: a number, or a datetime."""
    try:
        return parse_number(text)
    except ValueError:
        return datetime.fromisoformat(text)
