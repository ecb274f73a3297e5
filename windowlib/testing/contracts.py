"""Contracts: tests that the author of an operator, or of a summarizer, inherits.

class TestSpread(OperatorContract):
    operator = Spread(Tumbling(Count(2), by="symbol"))
    rows = [{"symbol": "IBM", "price": price} for price in (190, 193, 191, 195)]

pytest collects the subclass, because its name starts with Test. Without pytest, call the methods.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from windowlib.errors import OperatorError
from windowlib.runtime.marks import Mark
from windowlib.runtime.operator import Operator
from windowlib.spec.policies import Attribute
from windowlib.summaries.summarizers import Summarizer
from windowlib.testing.comparison import (
    equal,
    first_difference,
    item_at,
    item_text,
    within_tolerance,
)
from windowlib.testing.executions import (
    Case,
    NotApplicable,
    OutputItems,
    as_arrow,
    outputs,
    row_by_row,
    with_restarts,
)
from windowlib.testing.same_everywhere import assert_same_everywhere
from windowlib.testing.stepped_replay import SteppedReplay
from windowlib.window.arrow import exact_array
from windowlib.window.state_bytes import written_and_read


class RefusedRow(Exception):  # noqa: N818 - raised by the readers of rows below
    """Raised by a reader that refuses a row."""


def check_examples(examples: Any, count: int, check: Callable[[Any], None]) -> None:
    """Call `check` with one list of examples, or with each that a Hypothesis strategy makes."""
    if not hasattr(examples, "flatmap"):
        check(list(examples))
        return
    from hypothesis import given, settings

    def example(rows: Any) -> None:
        check(rows)

    settings(max_examples=count, deadline=None, database=None)(given(rows=examples)(example))()


class OperatorContract:
    """The rules for every operator; a subclass says which operator and which rows.

    Attributes:
        operator: the operator.
        rows: its input, as for `replay`; or a Hypothesis strategy that makes such lists.
        times: the column that says when a row arrives.
        tolerance: by how much floats may differ.
        examples: how many streams a strategy makes for each test.
        silent: whether it is right that nothing comes out.
    """

    operator: ClassVar[Any] = None
    rows: ClassVar[Any] = ()
    times: ClassVar[Attribute | None] = None
    tolerance: ClassVar[float] = 1e-9
    examples: ClassVar[int] = 10
    silent: ClassVar[bool] = False

    def test_it_is_the_same_everywhere(self) -> None:
        """In plain Python, with both engines, in batches, restarted, and in farms that fit."""
        op = self._operator()
        self._each(
            lambda case: assert_same_everywhere(
                op, case.items, times=self.times, tolerance=self.tolerance
            )
        )

    def test_a_snapshot_may_be_taken_anywhere(self) -> None:
        """Saved as bytes and restored before any item, it goes on as if nothing had happened."""

        def check(case: Case) -> None:
            expected = row_by_row(case)
            for place in range(len(case.items) + 1):
                got = with_restarts(case, [place])
                self._compare(f"restarted before item {place + 1}", expected, got)

        self._each(check)

    def test_it_is_a_value(self) -> None:
        """Pickled and read again, it is equal, looks the same, and does the same."""
        op = self._operator()
        try:
            other = pickle.loads(pickle.dumps(op))
        except Exception as error:
            msg = f"{op!r}: it cannot be pickled ({error}). Give it what can be, no lambdas."
            raise AssertionError(msg) from error
        assert other == op, f"{op!r}: pickled and read again, it is another one: {other!r}"

        def check(case: Case) -> None:
            expected, got = row_by_row(case), row_by_row(case._replace(operator=other))
            self._compare("pickled and read again", expected, got)

        self._each(check)

    def test_its_description_is_stable(self) -> None:
        """A copy has the same description, without anything that differs between runs."""
        op = self._operator()
        said, again = op.describe(), op.rebuilt().describe()
        assert said == again, f"{op!r}: a copy describes itself otherwise: {said} and {again}"
        for name, text in said.items():
            assert isinstance(text, str), f"{op!r}: describe()[{name!r}] is no text: {text!r}"
            assert " at 0x" not in text, f"{op!r}: describe()[{name!r}] has an address: {text}"

    def test_its_rows_are_as_its_schema_says(self) -> None:
        """All rows have the columns and types of the schema of their output, if it has one."""
        op = self._operator()

        def check(case: Case) -> None:
            try:
                arrow_case = as_arrow(case)
            except NotApplicable:
                return
            schemas = [
                arrow_case.tables[port].schema if port in arrow_case.tables else None
                for port in range(len(op.model.inputs))
            ]
            check_schemas(op, op.schemas(*schemas), row_by_row(arrow_case.rows()))

        self._each(check)

    def test_a_failure_leaves_a_state_to_go_on_from(self) -> None:
        """A failure of a reader is raised; a copy of the state then goes on the same."""

        def check(case: Case) -> None:
            count = sum(not isinstance(item, Mark) for _, item in row_by_row(case))
            for number in sorted({0, count // 2, count - 1} & set(range(count))):
                self._fail(case, number)

        self._each(check)

    def test_it_leaves_its_rows_alone(self) -> None:
        """The input rows are unchanged at the end."""

        def check(case: Case) -> None:
            before = copy.deepcopy(list(case.items))
            row_by_row(case)
            place = first_difference(before, case.items, within_tolerance(0))
            assert place is None, (
                f"{case.operator!r}: it changes its input. It was {item_at(before, place)} and is "
                f"{item_at(case.items, place)}."
            )

        self._each(check)

    def test_two_of_it_share_nothing(self) -> None:
        """Two instances that run at the same time give what one gives."""

        def check(case: Case) -> None:
            expected = row_by_row(case)
            one, other = case.replay(), case.replay()
            for item in case.items:
                one.take([item])
                other.take([item])
            for run in (one, other):
                run.finish()
                self._compare("beside another one", expected, outputs(run.events))

        self._each(check)

    def test_it_explains_itself(self) -> None:
        """`explain` says something, and names the operator."""
        op = self._operator()
        said = op.explain()
        assert op.name in said, f"{op!r}: explain() does not name it: {said!r}"

    def test_something_comes_out(self) -> None:
        """The rows make it send something; otherwise these tests show little."""
        seen: list[int] = []
        self._each(lambda case: seen.append(len(row_by_row(case))))
        assert self.silent or any(seen), (
            f"{type(self).__name__}: nothing ever comes out of {self.operator!r}. Give more rows, "
            f"or say silent = True."
        )

    # -- helpers ----------------------------------------------------------------------------------

    def _operator(self) -> Operator:
        if not isinstance(self.operator, Operator):
            msg = (
                f"{type(self).__name__}.operator = {self.operator!r}: not an operator. Say which "
                f"one, as operator = Mine(Tumbling(Count(2)))."
            )
            raise OperatorError(msg)
        return self.operator

    def _each(self, check: Callable[[Case], Any]) -> None:
        op = self._operator()
        check_examples(self.rows, self.examples, lambda rows: check(Case(op, rows, self.times)))

    def _compare(self, how: str, expected: OutputItems, got: OutputItems) -> None:
        place = first_difference(expected, got, within_tolerance(self.tolerance))
        assert place is None, (
            f"{self.operator!r}: {how}, it differs at row {place + 1} of what comes out.\n"
            f"  expected  {item_at(expected, place)}\n  got       {item_at(got, place)}"
        )

    def _fail(self, case: Case, number: int) -> None:
        """Refuse the row of this number once, and compare with a copy restored from then on."""
        run, copied = FailingReplay(case, number), None
        for place, item in enumerate(case.items):
            try:
                run.take([item])
            except RefusedRow:
                copied = self._restored_output(run, case, case.items[place + 1 :])
                break
        if copied is None:
            return  # it came at the end of the input, after which there is nothing to go on with
        seen = len(run.events)
        for item in case.items[place + 1 :]:
            run.take([item])
        run.finish()
        self._compare("restored after a failure", outputs(run.events)[seen:], copied)

    def _restored_output(self, run: SteppedReplay, case: Case, rest: Sequence[Any]) -> OutputItems:
        assert run.running is not None
        other = case.replay(start=run.running.now)
        other.take([])
        assert other.running is not None
        other.running.restore(written_and_read(run.running.snapshot()))
        other.take(rest)
        other.finish()
        return outputs(other.events)


class FailingReplay(SteppedReplay):
    """A run whose reader refuses one row."""

    def __init__(self, case: Case, number: int) -> None:
        super().__init__(case.operator, times=case.times)
        self._remaining = number

    def _listeners(self, running: Any, name: str) -> Any:
        row, mark = super()._listeners(running, name)

        def refusing(item: Any) -> None:
            self._remaining -= 1
            if self._remaining == -1:
                raise RefusedRow(item_text(item))
            row(item)

        return refusing, mark


def check_schemas(operator: Operator, schemas: Sequence[Any], found: OutputItems) -> None:
    """Refuse rows that have other columns, or other types, than the schema of their output."""
    import pyarrow as pa

    for port, schema in zip(operator.model.outputs, schemas, strict=True):
        rows = [r for name, r in found if name == port.name and not isinstance(r, Mark)]
        for row in rows if schema is not None else ():
            whose = f"{operator!r}: the row {item_text(row)} of {port.name!r}"
            if extra := [name for name in row if name not in schema.names]:
                msg = f"{whose} has {extra}, and its schema has only {schema.names}."
                raise AssertionError(msg)
            for field in schema:
                if pa.types.is_null(field.type):
                    continue  # a type that only the values tell
                try:
                    exact_array([row.get(field.name)], field.type)
                except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                    msg = f"{whose} has no {field.type} in {field.name!r}: {error}"
                    raise AssertionError(msg) from error


class SummarizerContract:
    """The rules for every summarizer.

    Attributes:
        summarizer: its class, or what makes one.
        tuples: what goes in; or a Hypothesis strategy that makes such lists.
        examples: how many lists a strategy makes for each test.
    """

    summarizer: ClassVar[Any] = None
    tuples: ClassVar[Any] = ()
    examples: ClassVar[int] = 20

    def test_open_starts_afresh(self) -> None:
        """A summarizer that is opened again is like a new one."""

        def check(tuples: list[Any]) -> None:
            used, fresh = self._filled(tuples), self._filled(tuples)
            used.open(None)
            for tuple_ in tuples:
                used.insert(tuple_)
            self._compare("opened again", fresh.value(), used.value())

        self._each(check)

    def test_reading_the_value_changes_nothing(self) -> None:
        """Whether `value` is called after each tuple or at the end, it is the same."""

        def check(tuples: list[Any]) -> None:
            read = self._filled([])
            for tuple_ in tuples:
                read.insert(tuple_)
                read.value()
            self._compare("read after every tuple", self._filled(tuples).value(), read.value())

        self._each(check)

    def test_a_snapshot_may_be_taken_anywhere(self) -> None:
        """Saved as bytes after any tuple, another one goes on from there."""

        def check(tuples: list[Any]) -> None:
            whole = self._filled(tuples).value()
            for place in range(len(tuples) + 1):
                state = self._filled(tuples[:place]).snapshot()
                other = self._new()
                other.restore(written_and_read(state))
                for tuple_ in tuples[place:]:
                    other.insert(tuple_)
                self._compare(f"restored after {place} tuples", whole, other.value())

        self._each(check)

    def test_two_of_it_share_nothing(self) -> None:
        """Two instances that are filled at the same time are independent."""

        def check(tuples: list[Any]) -> None:
            whole = copy.deepcopy(self._filled(tuples).value())  # before there are two
            one, other = self._filled([]), self._filled([])
            for tuple_ in tuples:
                one.insert(tuple_)
                other.insert(tuple_)
            for each_ in (one, other):
                self._compare("beside another one", whole, each_.value())

        self._each(check)

    # -- helpers ----------------------------------------------------------------------------------

    def _new(self) -> Summarizer[Any]:
        make = type(self).__dict__.get("summarizer", self.summarizer)
        made = make() if callable(make) else make
        if not isinstance(made, Summarizer):
            msg = (
                f"{type(self).__name__}.summarizer = {make!r}: it makes no Summarizer. Say which "
                f"class, as summarizer = Longest."
            )
            raise OperatorError(msg)
        return made

    def _filled(self, tuples: Sequence[Any]) -> Summarizer[Any]:
        made = self._new()
        made.open(None)
        for tuple_ in tuples:
            made.insert(tuple_)
        return made

    def _each(self, check: Callable[[list[Any]], None]) -> None:
        check_examples(self.tuples, self.examples, check)

    def _compare(self, how: str, expected: Any, got: Any) -> None:
        assert equal(expected, got), (
            f"{type(self).__name__}: {how}, its value is another one.\n"
            f"  expected  {item_text(expected)}\n  got       {item_text(got)}"
        )
