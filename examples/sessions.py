"""Sessions: the clicks of a user, up to half an hour without one, as one row.

A small operator of its own numbers the sessions of each user; behind it, a tumbling window closes
when that number changes: `Delta("session", 0)`, one window per user. The age of a partition closes
the sessions of users who do not come back.
"""

import random
from typing import Any

from windowlib import Delta, Operator, OperatorModel, PartitionAge, Tumbling, replay
from windowlib.operators import Aggregate, agg

GAP = 1800


class Numbered(Operator):
    """Adds the number of the session; it grows by one with every gap of a user."""

    model = OperatorModel()

    def on_open(self) -> None:
        self.last: dict[str, tuple[int, int]] = {}

    def on_tuple(self, row: Any, port: int) -> None:
        ts, session = self.last.get(row["user"], (row["ts"], 0))
        session += row["ts"] - ts > GAP
        self.last[row["user"]] = row["ts"], session
        self.emit({**row, "session": session})

    def snapshot(self) -> Any:
        return list(self.last.items())

    def restore(self, state: Any) -> None:
        self.last = {user: tuple(last) for user, last in state}


sessions = Numbered().then(
    Aggregate(
        Tumbling(Delta("session", 0), by="user", forget=PartitionAge("1h")),
        begin=agg.first("ts"),
        minutes=(agg.last("ts") - agg.first("ts")) / 60,
        clicks=agg.count(),
        evicted_partitions="emit",
    )
)


def clicks(n: int, seed: int = 3) -> list[dict[str, Any]]:
    """Clicks of a few users during a day, in the order of time."""
    draw, found = random.Random(seed), []
    for user in ("ann", "bob", "eve"):
        ts = draw.randint(0, 3600)
        for _ in range(n):
            ts += draw.choice((20, 60, 120, 300, 4000))
            found.append({"user": user, "ts": ts, "page": draw.choice("abc")})
    return sorted(found, key=lambda row: row["ts"])


def main() -> None:
    rows = list(replay(sessions, clicks(40), times="ts"))
    print(f"{len(rows)} sessions of 3 users; the longest:")
    for row in sorted(rows, key=lambda row: -row["clicks"])[:3]:
        print(f"{row['user']}  {row['clicks']} clicks in {row['minutes']:.0f} minutes")


if __name__ == "__main__":
    main()
