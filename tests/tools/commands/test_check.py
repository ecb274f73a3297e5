"""`windowlib check`: what is right, what is wrong with the operator, and what with the command."""
# ruff: noqa: SIM300 - asserts read expected first

import pyarrow as pa
import pytest

from windowlib.runtime.schema_text import schema_of
from windowlib.tools.command_line import main
from windowlib.tools.commands.check import ddl

MEAN = "Aggregate(Tumbling(Count(10), by='symbol'), mean=agg.mean('price'))"
COLUMNS = "symbol string, price double"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("operator", ["job.py:vwap", "job:peaks", MEAN])
def test_an_operator_that_is_right_is_explained(operator, ran):
    out, err = ran("check", operator)
    assert "" == err
    assert out.startswith("operator     ")
    assert "ignores punctuation" in out
    assert out.endswith(" is right.\n")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (MEAN, "out: symbol string, mean double"),
        ("job.py:peaks", "out: symbol string, peak double"),
        ("Filter(lambda t: True)", "out: symbol string, price double"),
    ],
)
def test_the_columns_of_the_output_are_shown(operator, expected, ran):
    assert f"schema       {expected}" in ran("check", operator, "--schema", COLUMNS)[0].splitlines()


def test_each_input_has_columns_of_its_own(ran):
    join = "Join(left=Sliding(Count(1)), right=Sliding(Count(1)), on='id')"
    given = ("--schema", "right=id bigint, bid double", "--schema", "left=id bigint, qty int")
    out, _ = ran("check", join, *given)
    assert "schema       matches: id bigint, qty int, bid double" in out.splitlines()
    assert "schema" not in ran("check", join, *given[:2])[0]


def test_punctuation_is_part_of_what_is_said(ran):
    assert "input        in: expects punctuation" in ran(
        "check", "Aggregate(Tumbling(Punct()), n=agg.count())"
    )[0].split("\n")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["Sort('ts', window=Sliding(Count(5), every=Time('1s')))"], "Sort does not support"),
        (["Aggregate(Sliding(Count(0)), n=agg.count())"], "Aggregate"),
        (
            ["Filter(lambda t: True).then(Aggregate(Tumbling(Punct()), n=agg.count()), Batch(3))"],
            "",
        ),
        ([MEAN, "--schema", "symbol string, prize double"], 'Did you mean "prize"?'),
        ([MEAN, "--schema", "symbol string, price string"], "a column of string does not add up"),
        ([MEAN, "--schema", "symbol string, price date"], "a column of date32[day] does not add"),
    ],
)
def test_an_operator_that_is_wrong_is_one_line_and_1(argv, expected, capsys):
    assert 1 == main(["check", *argv])
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    assert err.startswith("windowlib check: ")
    assert expected in err


def test_a_job_whose_operator_is_wrong_is_1(folder, capsys):
    (folder / "wrong.py").write_text(
        "from windowlib import *\nfrom windowlib.operators import *\n"
        "op = Graph(inputs=['a', 'b'], both=(Union(2), 'a', 'b'), "
        "n=(Aggregate(Tumbling(Punct()), n=agg.count()), 'both'))\n"
    )
    assert 1 == main(["check", "wrong.py:op"])
    assert "punctuation" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "symbol string, price double, n bigint, day date, ok boolean",
        "at timestamp, local timestamp_ntz, amount decimal(10,2)",
        "tags array<string>, m map<string, int>, s struct<a: int, b: array<double>>",
        "`last seen` void",
    ],
)
def test_columns_are_written_as_they_are_read(text):
    assert text == ddl(schema_of(text, "x"))


def test_a_type_without_a_word_keeps_its_own_name():
    assert "a uint8" == ddl(pa.schema({"a": pa.uint8()}))
