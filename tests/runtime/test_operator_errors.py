"""Every mistake with an operator gets a message, and the page of errors shows it."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
import doctest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import windowlib
from tests.docs.test_docs import blocks
from tests.window.test_errors import lines_of
from windowlib import (
    DeltaOrderError,
    ModelError,
    OperatorError,
    PunctuationError,
    SchemaError,
    StateVersionError,
    WindowlibError,
)

PAGE = Path(__file__).parents[2] / "docs" / "operator-errors.md"
PACKAGE = Path(windowlib.__file__).parent
SOURCES = [
    *(
        path
        for path in sorted((PACKAGE / "operators").rglob("*.py"))
        if path.name != "spark_columns.py"  # its messages are on the page about Spark
    ),
    *sorted((PACKAGE / "runtime").rglob("*.py")),
    *(PACKAGE / "window" / "arrow.py", PACKAGE / "spec" / "pattern.py"),
]


class Case(NamedTuple):
    code: str
    kind: type[WindowlibError]
    message: str


def damaged(code, kind, why):
    message = f"{kind}.restore(state): the snapshot is damaged (ValueError('{why}')). "
    return Case(code, StateVersionError, f"{message}Take it from snapshot() whole.")


# What the page does not show: messages that it shows already, raised elsewhere, and snapshots that
# nobody gets without damaging one. With the names of the page.
OTHERS = [
    Case(
        'Dedup("id", within=Count(2))([{"id": 1}])',
        OperatorError,
        "Dedup(list): not a DataFrame of Spark's. Use replay(op, rows) for plain rows.",
    ),
    Case(
        'Dedup("id", within=Count(2)).open().restore({"v": 1, "operator": "Dedup", "state": 0})',
        StateVersionError,
        "restore(state): this is not a snapshot of an operator. Pass what snapshot() gave.",
    ),
    Case(
        'run(near, to("left", {"id": [1], "ts": 1}))',
        SchemaError,
        "on='id': the value [1] is a list, which cannot be looked up. Join on a column of plain "
        "values, or on a callable that makes one of it.",
    ),
    damaged(
        'HyperLogLog.restore(HyperLogLog().snapshot() | {"registers": b"123"})',
        "HyperLogLog",
        "the registers do not fit the precision",
    ),
    damaged(
        'HyperLogLog.restore(HyperLogLog(4).snapshot() | {"registers": bytes([99] * 16)})',
        "HyperLogLog",
        "a register is too large",
    ),
    damaged(
        'HeavyHitters.restore(HeavyHitters(1).snapshot() | {"counts": [["a", 1]], "error": 2})',
        "HeavyHitters",
        "the counts do not fit the capacity or the error",
    ),
    damaged(
        'QuantileSketch.restore(QuantileSketch().snapshot() | {"compactions": []})',
        "QuantileSketch",
        "the levels do not fit their counts of compactions",
    ),
    damaged(
        'QuantileSketch.restore(QuantileSketch().snapshot() | {"low": 1})',
        "QuantileSketch",
        "the smallest value does not fit the levels",
    ),
]


FIX = "Filter such rows before, or cast to a type that holds them."
CASTS = [
    (b"1", "string", "string (only numbers, text and booleans are cast)"),
    ("yes", "boolean", "bool (text is true or false)"),
    (1000, "decimal(4, 2)", "decimal128(4, 2) (it has no 4 digits, 2 of them places)"),
]
OTHERS += [
    Case(
        f'run(Aggregate(Tumbling(Count(1)), n=agg.last("x").cast("{kind}")), {{"x": {value!r}}})',
        SchemaError,
        f'agg.last("x").cast("{kind}"): {value!r} is no {why}. {FIX}',
    )
    for value, kind, why in CASTS
]


REGROUPS = "from windowlib.runtime.regrouping import check_regroups; check_regroups"
WHOLE_BUCKETS = "Keep the number of buckets, and change the shuffle partitions alone."
OTHERS += [
    Case(
        f'{REGROUPS}(Aggregate(Tumbling(Count(2)), n=agg.count()), [["k"]])',
        OperatorError,
        f"Aggregate: its window of 'in' is not partitioned by 'k', so what it holds cannot be told "
        f"apart by that. {WHOLE_BUCKETS}",
    ),
    Case(
        f'{REGROUPS}(Punctor(lambda row: True), [["k"]])',
        OperatorError,
        f"Punctor: it keeps more than its windows, and that cannot be told apart by key. "
        f"{WHOLE_BUCKETS}",
    ),
]


class Examples(NamedTuple):
    """What the examples of the page raise, by their source, and the names that they leave."""

    errors: list[tuple[str, Exception]]
    names: dict[str, Any]


def raised(source, names):
    try:
        exec(compile(source, "<example>", "single"), names)
    except Exception as error:
        return error
    return None


def shown(page):
    """What the examples of a page raise."""
    names: dict[str, Any] = {"__name__": "__main__"}
    errors = []
    for block in blocks(page.read_text()):
        if ">>>" not in block.text:
            if block.language == "python":
                exec(block.text, names)
            continue
        for example in doctest.DocTestParser().get_examples(block.text):
            if (error := raised(example.source, names)) is not None:
                errors.append((example.source, error))
    return Examples(errors, names)


@pytest.fixture(scope="module")
def page():
    return shown(PAGE)


@pytest.mark.parametrize("case", OTHERS, ids=[case.code for case in OTHERS])
def test_a_mistake_that_the_page_does_not_show(page, case):
    error = raised(case.code, dict(page.names))
    assert case.kind is type(error)
    assert case.message == str(error)


# -- what users were promised --

PROMISED = [
    Case(
        "Aggregate(Sliding(Count(0)), n=agg.count())",
        ModelError,
        "Aggregate does not support Sliding(Count(0)): a window of size 0 keeps nothing to "
        'aggregate. Only Join accepts it (a one-sided join). Use Count(1) for "the latest tuple".',
    ),
    Case(
        'Sort("ts", window=Sliding(Count(10), every=Time("1s")))',
        ModelError,
        'Sort does not support Sliding(..., every=Time("1s")); progressive sort fires on every '
        "tuple. Supported: any Tumbling window, or Sliding(...) without `every=`.",
    ),
    Case(
        'run(panes, {"symbol": "IBM", "ts": 7}, {"symbol": "IBM", "ts": 5})',
        DeltaOrderError,
        "Delta('ts', 60), symbol='IBM': the value went back from 7 to 5 (row 2). Sort first: "
        "Sort('ts', window=Sliding(Delta('ts', 60))).then(...), or pass late=\"port\" to divert "
        "such rows.",
    ),
    Case(
        'Graph(inputs=["x", "y"], a=(cut, "x"), b=(cut, "y"), total=(total, ["a", "b"]))',
        PunctuationError,
        "Aggregate(Tumbling(Punct())) reads the union of 'a' and 'b', which carries no punctuation "
        "because the streams were merged. It would grow without end. Window each stream, then "
        "merge; or put a Punctor before it.",
    ),
    Case(
        'run(Aggregate(two, total=agg.sum("notionl")), trade)',
        SchemaError,
        'agg.sum("notionl"): no such column. Columns: symbol, price, qty, notional, ts. '
        'Did you mean "notional"?',
    ),
]


@pytest.mark.parametrize("case", PROMISED, ids=[case.code for case in PROMISED])
def test_the_page_shows_what_users_were_promised(page, case):
    shown = [(source.strip(), type(error), str(error)) for source, error in page.errors]
    assert tuple(case) in shown


# -- the form of messages --


def test_a_message_is_shown_once(page):
    messages = [str(error) for _, error in page.errors]
    assert [] == sorted({each for each in messages if messages.count(each) > 1})


def test_an_exception_is_ours_and_one_that_people_already_catch(page):
    for source, error in page.errors:
        assert isinstance(error, WindowlibError), source
        assert isinstance(error, ValueError | TypeError | LookupError | RuntimeError), source


def test_a_message_is_one_line_that_ends_well(page):
    for text in [str(error) for _, error in page.errors] + [case.message for case in OTHERS]:
        assert text.endswith((".", "?", "}", '"')), text
        assert not text.endswith("...."), text
        assert "  " not in text
        assert "\n" not in text
        assert " at 0x" not in text, "which is another one tomorrow"


# -- no raise without an example --

THEIRS = {"NotImplementedError", "AssertionError", "Decline", "FiringFailed", "ReaderStopped"}
"""For those who write operators, and for ourselves; between the engines, which no user sees."""


def raises(source):
    """The lines of each statement that makes an exception; passing one on does not count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = getattr(made, "id", "")
            passed_on = isinstance(node.exc, ast.Name | ast.Attribute) and not name.endswith(
                "Error"
            )
            if name not in THEIRS and not passed_on:
                yield range(node.lineno, (node.end_lineno or node.lineno) + 1)


def unseen(source, path, seen):
    return [
        f"{path.name}:{lines.start}"
        for lines in raises(source)
        if not any((path, line) in seen for line in lines)
    ]


def test_every_raise_has_an_example(page):
    seen = set()
    for error in [error for _, error in page.errors]:
        seen |= lines_of(error)
    for case in OTHERS:
        seen |= lines_of(raised(case.code, dict(page.names)))
    assert [] == [place for path in SOURCES for place in unseen(path.read_text(), path, seen)]


def test_a_raise_without_an_example_is_found():
    source = (
        "raise SchemaError(msg)\n"
        "raise SchemaError\n"
        "raise self.clash(a, b) from error\n"
        "raise better(error) or error\n"
        "raise ModelError(\n"
        "    msg\n"
        ")\n"
        "raise\n"
        "raise failure\n"
        "raise failed.error\n"
        "raise NotImplementedError\n"
        "raise AssertionError('no')\n"
    )
    path = Path("x.py")
    assert ["x.py:1", "x.py:3", "x.py:4", "x.py:5"] == unseen(source, path, {(path, 2)})
    assert ["x.py:1", "x.py:2", "x.py:3", "x.py:4"] == unseen(source, path, {(path, 6)})
