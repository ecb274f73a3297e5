"""De-duplication with bounded memory: orders that arrive twice within a minute pass once.

The duplicates go to an output of their own, so nothing is lost without a trace.
"""

import random
from typing import Any

from windowlib import Delta, replay
from windowlib.operators import Dedup

fresh = Dedup("order", within=Delta("ts", 60), duplicates="port")


def orders(n: int, seed: int = 5) -> list[dict[str, Any]]:
    """Orders, some of which a nervous client sends again a little later."""
    draw, ts, found = random.Random(seed), 0, []
    for number in range(n):
        ts += draw.randint(1, 20)
        found.append({"order": number, "ts": ts, "amount": draw.randint(1, 500)})
        if draw.random() < 0.3:
            again = ts + draw.choice((2, 5, 30, 90))
            found.append({**found[-1], "ts": again})
    return sorted(found, key=lambda row: row["ts"])


def main() -> None:
    stream = orders(200)
    result = replay(fresh, stream)
    passed, twice = list(result), result.port("duplicates")
    print(f"{len(stream)} orders: {len(passed)} passed, {len(twice)} were duplicates")
    late = len(passed) - 200
    print(f"{late} came again after more than a minute, when the first was forgotten")


if __name__ == "__main__":
    main()
