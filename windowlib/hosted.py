"""What a host asks of an operator: the columns it takes and gives, and how to spread its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from windowlib.operator import Operator


class Hosted:
    """The half of an operator that answers hosts; a subclass overrides what it knows better."""

    output: ClassVar[str | None] = None
    """The columns of the output rows, such as "symbol string, peak double", for hosts that ask.

    Names and types as in Spark's DDL; a column that a row lacks is null.
    """

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that the rows of a port must have; None: whole rows, it may read anything.

        Without any column, as (), it only counts rows.
        """
        return None

    def splits_by(self: Operator, port: int) -> tuple[str, ...] | None:  # type: ignore[misc]
        """The columns that keep its work apart: two rows that differ in them never meet.

        Then every place may run its own for some of their values, all on the same time, and
        together they send the same rows, in the same order for equal values. (): all rows may
        meet, so one place must see them all; None: rows never meet, it keeps nothing.

        By default the key of its only window. Override it if the class keeps anything across
        partitions that `snapshot` does not tell of, or if `on_tuple` keeps things apart by itself.
        Several ports give columns that correspond to one another, in the same order.

        Partition eviction does not forbid splitting: each place then counts its own partitions and
        tuples against the limit, and looks at their age when it has something to do. A window that
        ticks while it is empty fires in every such place.
        """
        from windowlib.splitting import by_default

        return by_default(self)

    def passes(self, column: str, port: int) -> bool:
        """Whether rows of an output have a column as all the rows had it that they are made of.

        So a graph knows what its next operator can be split by.
        """
        return False

    def schema(self, *columns: Any) -> Any:
        """The Arrow schema of the first output, from those of the inputs; None: as the rows are.

        What `output` says, unless the operator knows better. A field of type null stands for a
        type that only the values tell.

        Args:
            columns: the schema of each input, None where it is not known.
        """
        if self.output is None:
            return None
        from windowlib.ddl import schema_of

        return schema_of(self.output, f"{type(self).__name__}.output")
