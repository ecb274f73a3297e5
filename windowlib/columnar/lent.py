"""Windows whose state an operator keeps as arrays of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.columnar.engine import Engine
from windowlib.columnar.host import Batches

if TYPE_CHECKING:
    from windowlib.window import Window


class Lent(Batches):
    """Asks for the window's state back when somebody looks at the window."""

    def __init__(
        self,
        window: Window[Any, Any],
        give_back: Callable[[], None],
        arrays: Callable[[Window[Any, Any]], Engine | None],
    ) -> None:
        super().__init__(window)
        self.reason = "its operator takes the batches"
        self._give_back, self._arrays = give_back, arrays

    @property
    def arrays(self) -> Engine | None:
        """What the operator has; None if that is nothing yet."""
        return self._arrays(self.window)

    def lend(self, schema: pa.Schema | None) -> None:
        """The operator has the state from now on."""
        self.schema = schema
        self.window._batches = self
        self.window._lead(True)

    def dump(self) -> None:
        """The arrays are those of the operator."""

    def manner(self) -> None:
        """It is the operator that takes batches."""

    def settle(self) -> None:
        """Give the state back to the event engine."""
        self._give_back()
