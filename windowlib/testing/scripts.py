"""Scripted runs: the input of an operator, step by step, and the expected output.

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
from windowlib.testing.comparison import equal, first_difference, item_at, item_text
from windowlib.testing.stepped_replay import OutputEvent, SteppedReplay


class ScriptStep(NamedTuple):
    """One step of a script: its text, and what came out in it."""

    text: str
    out: tuple[OutputEvent, ...]

    def __str__(self) -> str:
        sent = ", ".join(f"{port} {item_text(item)}" for _, port, item in self.out)
        return f"{self.text}  ->  {sent or 'nothing'}"


class Script:
    """A running operator and its output; made by `script`.

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
        """The steps so far, each with its output."""
        self._replay = CountedReplay(operator, times=times, start=start)
        self._read = {port.name: 0 for port in operator.model.outputs}

    # -- input ------------------------------------------------------------------------------------

    def rows(self, *rows: Any, port: int | str | None = None) -> Self:
        """Insert rows, one after the other.

        Args:
            rows: the rows; `to(port, row)`, `punct()` and `advance(...)` may stand among them.
            port: the input they are for, if there are several.
        """
        for row in rows:
            if isinstance(row, list) and row and all(isinstance(each, Mapping) for each in row):
                msg = "rows([...]): a list of rows is not a row. Write rows(*rows)."
                raise OperatorError(msg)
        text = f"rows({', '.join(map(item_text, rows))}{self._port_text(port)})"
        items = list(rows if port is None else (Tagged(port, row) for row in rows))
        return self._run_step(
            text, lambda: self._replay.take(ordered_input(self.operator.order_by, items))
        )

    def batch(self, batch: Any, *, port: int | str = 0) -> Self:
        """Insert an Arrow batch or table."""
        number = self.operator.model.input(port, self.operator.name)
        text = f"batch(<{batch.num_rows} rows>{self._port_text(port or None)})"
        return self._run_step(text, lambda: self._replay.take_batch(batch, number))

    def advance(self, to: Instant | str) -> Self:
        """Move the clock: to a point in time, or on by a text such as "3s"."""
        return self._run_step(f"advance({to!r})", lambda: self._replay.take([advance(to)]))

    def punct(self, port: int | str | None = None) -> Self:
        """Insert a window punctuation."""
        mark = punct() if port is None else Tagged(port, punct())
        text = "punct()" if port is None else f"punct({port!r})"
        return self._run_step(text, lambda: self._replay.take([mark]))

    def restart(self) -> Self:
        """Save the operator as bytes, and go on from there in a new copy."""
        return self._run_step("restart()", lambda: self._replay.take([restart()]))

    def finish(self) -> Self:
        """End the input."""
        return self._run_step("finish()", self._replay.finish)

    # -- output -----------------------------------------------------------------------------------

    def expect(
        self, *rows: Any, port: int | str = 0, puncts: bool = False, exact: bool = True
    ) -> Self:
        """Check that an output has sent these rows, and no others, since the last `expect`.

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
        wanted = list(rows) if exact else _in_arrival_order(rows, got)
        text = f"expect({', '.join(map(item_text, rows))}{self._port_text(port or None)})"
        if (place := first_difference(wanted, got, equal)) is not None:
            raise AssertionError(self._failure(text, name, wanted, got, place))
        self.steps.append(ScriptStep(text, ()))
        return self

    def port(self, name: int | str = 0, *, puncts: bool = False) -> list[Any]:
        """All rows that one output has sent."""
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
        """The counters of its windows: firings, evicted tuples, partitions; see `Counters`."""
        return self._replay.counts()

    # -- helpers ----------------------------------------------------------------------------------

    def _port_text(self, port: int | str | None) -> str:
        return "" if port is None else f", port={port!r}"

    def _run_step(self, text: str, step: Any) -> Self:
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
            f"  expected  {item_at(wanted, place)}",
            f"  got       {item_at(got, place)}",
            f"All that was expected ({len(wanted)}):",
            *(f"  {item_text(row)}" for row in wanted),
            f"All that came ({len(got)}):",
            *(f"  {item_text(row)}" for row in got),
            "The script:",
            *(f"  {at_} {step}" for at_, step in enumerate(self.steps, 1)),
            f"> {number} {text}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<script of {self.operator.name}, {len(self.steps)} steps>"


def _in_arrival_order(rows: tuple[Any, ...], got: list[Any]) -> list[Any]:
    """Expected rows in the order of arrival; those that did not arrive are at the end."""
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
    """Start an operator, for a test that goes through input and output step by step.

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
        self._counters: list[Counters] = []

    def counts(self) -> dict[str, int]:
        """The counters summed over all restarts; the partitions are those of the last."""
        each = [counters.read() for counters in self._counters]
        return {
            name: each[-1][name] if name == "partitions" else sum(counts[name] for counts in each)
            for name in (each[-1] if each else ())
        }

    def _opened(self, chunk: Sequence[Any]) -> Running:
        return self._watch(super()._opened(chunk))

    def _restarted(self, running: Running) -> Running:
        return self._watch(super()._restarted(running))

    def _watch(self, running: Running) -> Running:
        self._counters.append(Counters(running))
        return running
