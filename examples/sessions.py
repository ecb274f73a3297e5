"""Sessions: the clicks of a user, up to half an hour without one, as one row.

Each user has sessions of their own. One closes when the stream is complete up to half an hour after
its last click, also for users who do not come back; clicks may come a minute late.
"""

import random
from typing import Any

from windowlib import Event, Session, replay
from windowlib.operators import Aggregate, agg

GAP = 1800

sessions = Aggregate(
    Session(Event("ts"), gap=GAP, by="user", watermark=60),
    begin=agg.window_start(),
    minutes=(agg.max("ts") - agg.min("ts")) / 60,
    clicks=agg.count(),
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
    rows = list(replay(sessions, clicks(40)))
    print(f"{len(rows)} sessions of 3 users; the longest:")
    for row in sorted(rows, key=lambda row: -row["clicks"])[:3]:
        print(f"{row['user']}  {row['clicks']} clicks in {row['minutes']:.0f} minutes")


if __name__ == "__main__":
    main()
