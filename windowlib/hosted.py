"""What a host asks of an operator: the columns it takes and gives, and how to spread its work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from windowlib.errors import ModelError, OperatorError, suggestion

if TYPE_CHECKING:
    from windowlib.folds import Fold
    from windowlib.model import OperatorModel
    from windowlib.operator import Operator

FunctionKind = Literal["associative", "incremental", "neither"]


class Hosted:
    """The half of an operator that answers hosts; a subclass overrides what it knows better."""

    output: ClassVar[str | Mapping[str, str] | None] = None
    """The columns of the output rows, such as "symbol string, peak double", for hosts that ask.

    Names and types as in Spark's DDL; a column that a row lacks is null. One text is of the first
    output; with several, give a dict from the names of outputs to texts.
    """
    function_kind: ClassVar[FunctionKind] = "neither"
    """How the rows of a firing are made of its tuples, for farms.

    "associative": from the results of parts, merged in order; "incremental": tuple by tuple;
    "neither": from all tuples together. An operator that answers `functions` need not say it.
    """
    model: OperatorModel

    def __call__(self: Operator, *frames: Any) -> Any:  # type: ignore[misc]
        """The operator on Spark DataFrames, one an input: the DataFrame of its output.

        Streaming or static; the same as `df.transform(op)` where there is one input.
        `windowlib.spark.attach` takes what else there is to say.
        """
        for frame in frames:
            if not hasattr(frame, "isStreaming"):
                msg = (
                    f"{self.name}({type(frame).__name__}): not a DataFrame of Spark's. Use "
                    f"replay(op, rows) for plain rows."
                )
                raise OperatorError(msg)
        from windowlib.spark.attach import attach

        return attach(self)(*frames)

    def as_node(self: Operator, node: str) -> Operator:  # type: ignore[misc]
        """What runs as a node of a graph: itself, unless it cannot."""
        return self

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

    def functions(self) -> Iterable[tuple[str, Fold]] | None:
        """The functions of a window that its rows are made of, with their texts, for farms.

        None: nothing is known of them, and `function_kind` says what the author says.
        """
        return None

    def beyond_window(self: Operator) -> str:  # type: ignore[misc]
        """What its rows depend on beside the tuples of the window that fires; "" if nothing.

        Only then may another worker process each window. By default it is what the class overrides
        that says so; override this if that is too careful.
        """
        from windowlib.splitting import beyond_window

        return beyond_window(self)

    # -- parts of windows, for farms that compute them apart ---------------------------------------

    def part_of(self, window: Any, key: Any) -> Any:
        """The result of a part of a window: some of its tuples, next to each other.

        An operator whose function is associative says here what it makes of them, which is sent to
        whoever merges; `window` is read as by a handler with `content = "arrow"`.
        """
        raise NotImplementedError

    def parts_of(self, windows: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
        """`part_of` for each of several; override it where many at once are cheaper."""
        return [self.part_of(window, key) for window, key in zip(windows, keys, strict=True)]

    def merge_parts(self, a: Any, b: Any) -> Any:
        """The result of two parts together; the tuples of `a` came before those of `b`."""
        raise NotImplementedError

    def merge_all_parts(self, parts: Sequence[Any]) -> Any:
        """`merge_parts` for one or more, in order; override it where many at once are cheaper."""
        return reduce(self.merge_parts, parts)

    def emit_part(self, key: Any, part: Any) -> None:
        """Send the rows of a window, given the result of all its parts."""
        raise NotImplementedError

    def emit_again(self, window: Any, key: Any, whole: Any) -> None:
        """Send rows for a part of a window, given the result of the whole.

        For operators that look at the tuples twice, as for those above the mean of the window.
        One that defines it does not need `emit_part`.
        """
        raise NotImplementedError

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
        return self._declared(0)

    def schemas(self, *columns: Any) -> tuple[Any, ...]:
        """The Arrow schema of every output, from those of the inputs; None where only rows tell.

        The first is `schema(*columns)`. Rows that an operator puts aside as they are, such as
        those that come late, have the columns of the input they came from.

        Args:
            columns: the schema of each input, None where it is not known.
        """
        return tuple(
            self._other(port, columns) if port else self.schema(*columns)
            for port in range(len(self.model.outputs))
        )

    def _other(self, port: int, columns: Sequence[Any]) -> Any:
        declared = self._declared(port)
        return self._aside(port, columns) if declared is None else declared

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        """What the operator knows of the schema of an output behind the first."""
        return None

    def _declared(self, port: int) -> Any:
        """What `output` says of the schema of an output."""
        from windowlib.ddl import schema_of

        said, owner = self.output, f"{type(self).__name__}.output"
        if not isinstance(said, Mapping):
            return None if said is None or port else schema_of(said, owner)
        names = [each.name for each in self.model.outputs]
        for name in said:
            if name not in names:
                msg = (
                    f"{owner} = {{{name!r}: ...}}: there is no such output. Outputs: "
                    f"{', '.join(names) or 'none'}.{suggestion(name, names)}"
                )
                raise ModelError(msg)
        text = said.get(names[port]) if names else None
        return None if text is None else schema_of(text, f"{owner}[{names[port]!r}]")
