"""Operators and summarizers with one mistake each, which the kit has to find."""

from __future__ import annotations

from typing import Any, ClassVar

from windowlib import Count, Operator, OperatorModel, Sliding, Summarizer, Tumbling

ROWS: list[dict[str, Any]] = [{"k": "ab"[i % 2], "x": i * 3 % 7, "ts": float(i)} for i in range(12)]


class Spread(Operator):
    """Without a mistake."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    output = "k string, spread bigint"

    def before_flush(self, window: Any, key: Any) -> None:
        values = [row["x"] for row in window[key]]
        self.emit(k=key, spread=max(values) - min(values))

    on_trigger = before_flush


class Numbered(Spread):
    """Keeps a number that its snapshot does not have."""

    number = 0

    def before_flush(self, window: Any, key: Any) -> None:
        self.number += 1
        self.emit(k=key, spread=self.number)


class Shared(Spread):
    """Keeps what it has seen in its class, for all that run."""

    seen: ClassVar[list[int]] = []

    def before_flush(self, window: Any, key: Any) -> None:
        self.seen.append(1)
        self.emit(k=key, spread=len(self.seen))


class Batched(Operator):
    """Passes rows on, and loses the first row of a batch."""

    def on_tuple(self, tuple_: Any, port: int) -> None:
        self.emit(tuple_)

    def _take(self, batch: Any, port: int, insert: Any) -> Any:
        return batch.slice(1)


class Farmed(Spread):
    """Says that its function is associative, and merges parts wrongly."""

    content = "arrow"
    function_kind = "associative"

    def before_flush(self, window: Any, key: Any) -> None:
        self.emit_part(key, self.part_of(window, key))

    on_trigger = before_flush

    def part_of(self, window: Any, key: Any) -> Any:
        return sum(row["x"] for row in window[key])

    def merge_parts(self, a: Any, b: Any) -> Any:
        return a

    def emit_part(self, key: Any, part: Any) -> None:
        self.emit(k=key, spread=part)


class Unread(Spread):
    """Cannot read its own snapshot."""

    def snapshot(self) -> Any:
        return {"handle": lambda: None}


class Undeclared(Spread):
    """Sends a column that its output lacks."""

    def before_flush(self, window: Any, key: Any) -> None:
        self.emit(k=key, spread=0, more=1)


class Mistyped(Spread):
    """Sends a text where it says a number."""

    def before_flush(self, window: Any, key: Any) -> None:
        self.emit(k=key, spread="much")


class Changing(Spread):
    """Writes into the rows that come in."""

    def before_insert(self, window: Any, tuple_: Any, key: Any) -> None:
        tuple_["x"] += 1


class Addressed(Spread):
    """Describes itself by where it is in memory."""

    def describe(self) -> dict[str, str]:
        return {"operator": object.__repr__(self)}


class Unstable(Addressed):
    """Has an address in its description, and the same in a copy."""

    def describe(self) -> dict[str, str]:
        return {"operator": "<Unstable at 0x7f00>"}


class Textless(Addressed):
    """Describes itself with a number."""

    def describe(self) -> dict[str, Any]:
        return {"operator": 1}


class Other(Spread):
    """Is no longer equal when it was pickled."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Spread.__hash__


class Silent(Spread):
    """Sends nothing."""

    def before_flush(self, window: Any, key: Any) -> None:
        """Nothing."""


class Dumb(Spread):
    """Does not explain itself."""

    def explain(self, *batches: Any) -> str:
        return "an operator"


class Stuck(Spread):
    """Swallows the state that a failure leaves: after one, a copy sends other rows."""

    failed = False

    def before_flush(self, window: Any, key: Any) -> None:
        try:
            self.emit(k=key, spread=-1 if self.failed else 1)
        except Exception:
            self.failed = True
            raise


def tumbling(kind: type[Spread], size: int = 2) -> Spread:
    """One of them on a small window."""
    return kind(Tumbling(Count(size), by="k"))


# -- summarizers ----------------------------------------------------------------------------------


class Total(Summarizer[int]):
    """Without a mistake."""

    def open(self, key: Any) -> None:
        self.total = 0

    def insert(self, tuple_: int) -> None:
        self.total += tuple_

    def value(self) -> int:
        return self.total


class NeverOpened(Total):
    """Starts once, and never again."""

    total = 0

    def open(self, key: Any) -> None:
        """Nothing."""


class ReadOnce(Total):
    """Forgets what was read."""

    def value(self) -> int:
        value, self.total = self.total, 0
        return value


class Unsaved(Total):
    """Saves nothing."""

    total = 0

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Nothing."""


class Common(Total):
    """Has one list for all."""

    seen: ClassVar[list[int]] = []

    def open(self, key: Any) -> None:
        self.seen.clear()

    def insert(self, tuple_: int) -> None:
        self.seen.append(tuple_)

    def value(self) -> int:
        return sum(self.seen)
