"""What should happen to rows out of order, said as plainly as can be, and slowly."""

from __future__ import annotations

import math
import random
from typing import Any

from windowlib.durations import length
from windowlib.operators import FixedSlack, KSlack, PidSlack, QuantileSlack

TABLE = [10, 12, 11, 15, 13, 9, 20, 14, 21, 30, 22, 31]
"""The worked example of K-slack."""

SLACKS = [
    FixedSlack(0),
    FixedSlack(7),
    KSlack("new"),
    KSlack("arrival"),
    QuantileSlack(drop=0.1, recent=20),
    QuantileSlack(drop=0, recent=300),
    PidSlack(drop=0.1, every=7),
]


def punctuations(slack: Any, stamps: list[Any]) -> list[Any]:
    """P after each timestamp, from all the timestamps until then."""
    if isinstance(slack, PidSlack):
        return controlled(slack, stamps)
    found: list[Any] = []
    top = None
    for n, ts in enumerate(stamps, 1):
        rises = top is None or ts > top
        if rises:
            top = ts
            reached = ts - slack_at(slack, stamps[:n])
            found.append(max([reached, *found[-1:]]))
        else:
            found.append(found[-1])
    return found


def slack_at(slack: Any, stamps: list[Any]) -> Any:
    """How far P is behind the last timestamp, which is the greatest."""
    if isinstance(slack, FixedSlack):
        return length(slack.amount)
    if isinstance(slack, KSlack):
        return max(delays(slack.delay, stamps))
    every = max(1, slack.recent // 50)
    due = [n for n in range(1, len(stamps) + 1) if n % every == 0 or early(n, every)]
    late = lateness(stamps[: due[-1]])[-slack.recent :]
    return sorted(late)[len(late) - 1 - math.floor(slack.drop * len(late))]


def early(n: int, every: int) -> bool:
    return n < every and math.log2(n).is_integer()


def lateness(stamps: list[Any]) -> list[Any]:
    return [max(stamps[: n + 1]) - ts for n, ts in enumerate(stamps)]


def delays(rule: str, stamps: list[Any]) -> list[Any]:
    """The delays of all rows, of which each is measured when the greatest timestamp moves."""
    found = [0]
    waiting: list[Any] = []
    top = stamps[0]
    for ts in stamps[1:]:
        if ts > top:
            found += [(ts if rule == "new" else top) - each for each in waiting]
            waiting, top = [], ts
        else:
            waiting.append(ts)
    return found


def controlled(slack: PidSlack, stamps: list[Any]) -> list[Any]:
    """The same, with a part of K that is moved after every few rows."""
    found: list[Any] = []
    part, errors, late = 1.0, [0.0, 0.0], 0
    for n, ts in enumerate(stamps, 1):
        late += bool(found) and ts < found[-1]
        if n == 1 or ts > max(stamps[: n - 1]):
            k = part * max(delays("new", stamps[:n]))
            whole = all(isinstance(each, int) for each in stamps)
            found.append(max([ts - (math.ceil(k) if whole else k), *found[-1:]]))
        else:
            found.append(found[-1])
        if n % slack.every == 0:
            error = late / slack.every - slack.drop
            kp, ki, kd = slack.gains
            part += kp * (error - errors[-1]) + ki * error
            part += kd * (error - 2 * errors[-1] + errors[-2])
            part = min(1.0, max(0.0, part))
            errors, late = [*errors, error], 0
    return found


def reordered(slack: Any, stamps: list[Any]) -> tuple[list[int], list[int]]:
    """The numbers of rows in the order in which they come out, and those of late rows."""
    out: list[int] = []
    late: list[int] = []
    held: list[tuple[Any, int]] = []
    for n, reached in enumerate(punctuations(slack, stamps)):
        if stamps[n] < reached:
            late.append(n)
            continue
        held.append((stamps[n], n))
        going = sorted(each for each in held if each[0] <= reached)
        held = [each for each in held if each[0] > reached]
        out += [number for _, number in going]
    return out + [number for _, number in sorted(held)], late


def members(ts: Any, size: Any, every: Any, offset: Any = 0) -> list[int]:
    """The windows that a timestamp belongs to, by looking at windows one by one."""
    near = math.floor((ts - offset) / every)
    span = range(near - math.ceil(size / every) - 2, near + 3)
    return [w for w in span if offset + w * every <= ts < offset + w * every + size]


def paned(
    slack: Any, stamps: list[Any], size: Any, every: Any, offset: Any = 0
) -> tuple[dict[int, list[int]], list[int]]:
    """The numbers of rows of each window that is not empty, in order, and those of late rows."""
    content: dict[int, list[int]] = {}
    late: list[int] = []
    reached: Any = None
    marks = punctuations(slack, stamps)
    for n, ts in enumerate(stamps):
        windows = members(ts, size, every, offset)
        closed = [w for w in windows if n and offset + w * every + size <= reached]
        if closed == windows:
            late.append(n)
        for window in windows:
            if window not in closed:
                content.setdefault(window, []).append(n)
        reached = marks[n]
    ordered = {w: sorted(content[w], key=lambda n: (stamps[n], n)) for w in sorted(content)}
    return ordered, late


def disordered(size: int, seed: int, spread: int = 15, step: int = 3) -> list[int]:
    """Timestamps that rise, with some that come late, and some twice."""
    chance = random.Random(seed)
    at, found = 100, []
    for _ in range(size):
        at += chance.randrange(step + 1)
        found.append(at - (chance.randrange(spread) if chance.random() < 0.4 else 0))
    return found
