"""A skyline of offers: hotels that no other hotel beats in price, distance and stars at once.

Offers come in for three cities. `Skyline` shows the best of the last 60 of each city, `TopDelta`
the three of them that are hardest to beat, and `SkylineUpdates` what changes with every offer.
"""

import random
from collections import Counter
from typing import Any

from windowlib import Count, Sliding, replay
from windowlib.operators import Skyline, SkylineUpdates, TopDelta, desc

CITIES = ("Pisa", "Rome", "Turin")
BEST = ("price", "km", desc("stars"))


def offers(n: int, seed: int = 11) -> list[dict[str, Any]]:
    """Offers in which stars cost money, and so does being near."""
    draw, found = random.Random(seed), []
    for number in range(n):
        stars, km = draw.randint(1, 5), round(draw.expovariate(0.5), 1)
        price = round(30 + 25 * stars - 4 * km + draw.gauss(0, 15))
        found.append(
            {
                "offer": number,
                "city": draw.choice(CITIES),
                "price": max(price, 20),
                "km": km,
                "stars": stars,
            }
        )
    return found


def shown(row: dict[str, Any]) -> str:
    return f"{row['price']:4} EUR  {row['km']:4} km  {'*' * row['stars']}"


def main() -> None:
    stream = offers(600)
    last = Sliding(Count(60), every=Count(20), by="city")

    skyline = list(replay(Skyline(last, *BEST), stream))
    print(f"{len(skyline)} rows in the skylines of all windows")

    # The factor says in how many dimensions another offer is as good, and better in one of them.
    top = [row for row in replay(TopDelta(last, *BEST, delta=3), stream) if row["city"] == "Pisa"]
    print("the three offers that were hardest to beat, when Pisa was last asked:")
    for row in top[-3:]:
        print(f"{row['offer']:5}  {shown(row)}  factor {row['factor']} of {len(BEST)}")

    updates = list(replay(SkylineUpdates(Sliding(Count(60), by="city"), *BEST), stream))
    counted = Counter(row["change"] for row in updates)
    print(f"{counted['+']} offers entered a skyline, {counted['-']} left it; the last three:")
    for row in updates[-3:]:
        print(f"{row['change']} {row['city']:6} {shown(row)}")


if __name__ == "__main__":
    main()
