"""An operator with timers: a visit ends when nothing has come for a while, without another row."""

from collections.abc import Iterator
from typing import Any

from windowlib import Keyed, Operator, replay


class Visits(Operator):
    """One row for each visit of a user: it ends when nothing has come for a while."""

    output = "user string, rows long, amount double, ended double"
    state = Keyed(by="user", rows=0, amount=0.0)

    def __init__(self, age: str, *, name: str | None = None) -> None:
        super().__init__(name=name)
        self.age = age

    def on_tuple(self, row: Any, port: int) -> None:
        mine = self.state[row["user"]]
        mine.rows, mine.amount = mine.rows + 1, mine.amount + row["amount"]
        self.set_timer(row["user"], after=self.age)

    def on_timer(self, user: str, now: float) -> None:
        mine = self.state.pop(user)
        self.emit(user=user, rows=mine.rows, amount=mine.amount, ended=now)


def clicks(number: int) -> Iterator[dict[str, Any]]:
    """Users who come back now and then; `ts` in seconds."""
    for i in range(number):
        user = ("ann", "bob", "eve")[i * i * i // 7 % 3]
        yield {"user": user, "amount": i % 7 / 2, "ts": float(7 * i + i % 5)}


def main() -> None:
    visits = list(replay(Visits("30s"), clicks(200), times="ts"))
    print(f"{len(visits)} visits; the longest had {max(row['rows'] for row in visits)} clicks")


if __name__ == "__main__":
    main()
