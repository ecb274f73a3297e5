"""Scripted runs: what goes in, step by step, and what has to come out.

>>> from windowlib.operators import Aggregate, agg
>>> from windowlib import Count, Either, Time, Tumbling
>>> batches = Aggregate(Tumbling(Either(Count(3), Time("5s"))), n=agg.count())
>>> _ = (
...     script(batches)
...     .rows({"x": 1}, {"x": 2})
...     .expect()
...     .advance("5s")
...     .expect({"n": 2})
... )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from windowlib.durations import Instant, instant_text
from windowlib.errors import OperatorError
from windowlib.runtime.counters import Counters
from windowlib.runtime.marks import Mark, Tagged, advance, punct, restart
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import ordered_input
from windowlib.runtime.running import Running
from windowlib.spec.policies import Attribute
from windowlib.testing.comparison import at, equal, first_difference, shown
from windowlib.testing.stepped_replay import OutputEvent, SteppedReplay


class ScriptStep(NamedTuple):
    """One step of a script: its text, and what came out in it."""

    text: str
    out: tuple[OutputEvent, ...]

    def __str__(self) -> str:
        sent = ", ".join(f"{port} {shown(item)}" for _, port, item in self.out)
        return f"{self.text}  ->  {sent or 'nothing'}"


class Script:
    """An operator at work, and what it has sent; made by `script`.

    Every method gives the script itself, so that calls can be chained. Rows of one call are one
    batch: where the window says `order_by`, they are put in that order.
    """

    def __init__(
        self,
        operator: Operator,
        *,
        times: Attribute | None = None,
        start: Instant | None = None,
    ) -> None:
        if not isinstance(operator, Operator):
            msg = f"script({operator!r}): not an operator. Pass an Operator object."
            raise OperatorError(msg)
        self.operator = operator
        self.steps: list[ScriptStep] = []
        """What was done, and what came out each time."""
        self._replay = CountedReplay(operator, times=times, start=start)
        self._read = {port.name: 0 for port in operator.model.outputs}

    # -- what goes in -----------------------------------------------------------------------------

    def rows(self, *rows: Any, port: int | str | None = None) -> Self:
        """Rows come in, one after the other.

        Args:
            rows: the rows; `to(port, row)`, `punct()` and `advance(...)` may stand among them.
            port: the input they are for, if there are several.
        """
        for row in rows:
            if isinstance(row, list) and row and all(isinstance(each, Mapping) for each in row):
                msg = "rows([...]): a list of rows is not a row. Write rows(*rows)."
                raise OperatorError(msg)
        text = f"rows({', '.join(map(shown, rows))}{self._of(port)})"
        items = list(rows if port is None else (Tagged(port, row) for row in rows))
        return self._do(
            text, lambda: self._replay.take(ordered_input(self.operator.order_by, items))
        )

    def batch(self, batch: Any, *, port: int | str = 0) -> Self:
        """An Arrow batch or table comes in whole."""
        number = self.operator.model.input(port, self.operator.name)
        text = f"batch(<{batch.num_rows} rows>{self._of(port or None)})"
        return self._do(text, lambda: self._replay.take_batch(batch, number))

    def advance(self, to: Instant | str) -> Self:
        """The clock moves: to a point in time, or on by a text such as "3s"."""
        return self._do(f"advance({to!r})", lambda: self._replay.take([advance(to)]))

    def punct(self, port: int | str | None = None) -> Self:
        """A window punctuation comes in."""
        mark = punct() if port is None else Tagged(port, punct())
        text = "punct()" if port is None else f"punct({port!r})"
        return self._do(text, lambda: self._replay.take([mark]))

    def restart(self) -> Self:
        """It is saved as bytes, and goes on from there in a new copy."""
        return self._do("restart()", lambda: self._replay.take([restart()]))

    def finish(self) -> Self:
        """The input ends."""
        return self._do("finish()", self._replay.finish)

    # -- what comes out ---------------------------------------------------------------------------

    def expect(
        self, *rows: Any, port: int | str = 0, puncts: bool = False, exact: bool = True
    ) -> Self:
        """These rows have come out of an output since this was last asked of it, and no others.

        Args:
            rows: what is expected, in order; nothing at all if there are none. Values are compared
                with `==`, so that `pytest.approx` may stand among them; NaN is NaN.
            port: the output.
            puncts: whether punctuations count; they do if `punct()` is among the rows.
            exact: whether they have to come in this order.
        """
        number = self.operator.model.output(port, self.operator.name)
        name = self.operator.model.outputs[number].name
        puncts = puncts or any(isinstance(row, Mark) for row in rows)
        of_port = self.port(name, puncts=True)
        fresh, self._read[name] = of_port[self._read[name] :], len(of_port)
        got = [item for item in fresh if puncts or not isinstance(item, Mark)]
        wanted = list(rows) if exact else _matched(rows, got)
        text = f"expect({', '.join(map(shown, rows))}{self._of(port or None)})"
        if (place := first_difference(wanted, got, equal)) is not None:
            raise AssertionError(self._failure(text, name, wanted, got, place))
        self.steps.append(ScriptStep(text, ()))
        return self

    def port(self, name: int | str = 0, *, puncts: bool = False) -> list[Any]:
        """Everything that one output has sent."""
        number = self.operator.model.output(name, self.operator.name)
        wanted = self.operator.model.outputs[number].name
        events = [item for _, port, item in self._replay.events if port == wanted]
        return [item for item in events if puncts or not isinstance(item, Mark)]

    @property
    def last(self) -> tuple[OutputEvent, ...]:
        """The output of the last step that inserted something."""
        steps = [step for step in self.steps if not step.text.startswith("expect")]
        return steps[-1].out if steps else ()

    @property
    def counters(self) -> dict[str, int]:
        """What its windows did so far: firings, evicted tuples, partitions; see `Counters`."""
        return self._replay.counts()

    # -- how --------------------------------------------------------------------------------------

    def _of(self, port: int | str | None) -> str:
        return "" if port is None else f", port={port!r}"

    def _do(self, text: str, step: Any) -> Self:
        try:
            out = step()
        except Exception as error:
            error.add_note(f"in step {len(self.steps) + 1} of a script, {text}")
            raise
        self.steps.append(ScriptStep(text, tuple(out)))
        return self

    def _failure(self, text: str, port: str, wanted: list[Any], got: list[Any], place: int) -> str:
        number = len(self.steps) + 1
        now = instant_text(self._replay.now)
        lines = [
            f"step {number} of a script of {self.operator.name}, at time {now}: {port!r} differs "
            f"at row {place + 1}.",
            f"  expected  {at(wanted, place)}",
            f"  got       {at(got, place)}",
            f"All that was expected ({len(wanted)}):",
            *(f"  {shown(row)}" for row in wanted),
            f"All that came ({len(got)}):",
            *(f"  {shown(row)}" for row in got),
            "The script:",
            *(f"  {at_} {step}" for at_, step in enumerate(self.steps, 1)),
            f"> {number} {text}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<script of {self.operator.name}, {len(self.steps)} steps>"


def _matched(rows: tuple[Any, ...], got: list[Any]) -> list[Any]:
    """The rows in the order of what came; those that did not come are at the end."""
    left, found = list(rows), []
    for item in got:
        place = next((i for i, row in enumerate(left) if equal(row, item)), None)
        if place is None:
            break
        found.append(left.pop(place))
    return [*found, *left]


def script(
    operator: Operator, *, times: Attribute | None = None, start: Instant | None = None
) -> Script:
    """Start an operator, for a test that says step by step what goes in and what comes out.

    Args:
        operator: an operator, or a `Graph`.
        times: the column that says when a row arrives, which moves the clock.
        start: where the clock starts; at the first arrival if `times` is given, else at 0.
    """
    return Script(operator, times=times, start=start)


# -- what the windows of a script do, restarts or not ---------------------------------------------


class CountedReplay(SteppedReplay):
    """A replay whose windows are watched from the start, and again after each restart."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watched: list[Counters] = []

    def counts(self) -> dict[str, int]:
        """What `Counters` counts, of all that ran one after the other; partitions of the last."""
        each = [counters.read() for counters in self._watched]
        return {
            name: each[-1][name] if name == "partitions" else sum(counts[name] for counts in each)
            for name in (each[-1] if each else ())
        }

    def _opened(self, chunk: Sequence[Any]) -> Running:
        return self._seen(super()._opened(chunk))

    def _restarted(self, running: Running) -> Running:
        return self._seen(super()._restarted(running))

    def _seen(self, running: Running) -> Running:
        self._watched.append(Counters(running))
        return running
