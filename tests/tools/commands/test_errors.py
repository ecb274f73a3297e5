"""Whatever is wrong with a command is one line on stderr and exit code 2."""
# ruff: noqa: SIM300 - asserts read expected first

import errno
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import windowlib.tools.commands
from tests.runtime.test_operator_errors import unseen
from tests.window.test_errors import lines_of
from windowlib.tools import command_line
from windowlib.tools.commands.input_files import LONGEST, Input, SocketRows
from windowlib.tools.commands.output_files import JsonLinesWriter
from windowlib.tools.commands.run_spark import LiveQuery
from windowlib.tools.commands.usage import UsageError, spark_failures, spark_message

SOURCES = sorted(Path(windowlib.tools.commands.__file__).parent.rglob("*.py"))
SUM = "Aggregate(Tumbling(Count(2)), s=agg.sum('qty'))"
ALL = "Filter(lambda t: True)"
JOIN = "Join(left=Sliding(Count(1)), right=Sliding(Count(1)), on='symbol')"
COLUMNS = ["--schema", "qty bigint, symbol string"]
NOWHERE = "tcp://127.0.0.1:1"

FILES = {
    "empty.csv": b"",
    "empty.jsonl": b"\n\n",
    "bytes.csv": b"\xff\xfe\x00",
    "bytes.jsonl": b"\xff\xfe\x00",
    "short.csv": b"a,b\n1,2\n3\n",
    "quote.csv": b'a,b\n1,"2\n',
    "twice.csv": b"a,a\n1,2\n",
    "wide.csv": b"a,b\n1," + b"x" * 3_000_000 + b"\n",
    "text.parquet": b"a,b\n",
    "cut.jsonl": b'{"a": 1}\n{"a": \n',
    "list.jsonl": b"[1]\n",
    "mixed.jsonl": b'{"a": 1}\n{"a": "x"}\n',
    "more.jsonl": b'{"a": 1}\n{"a": 1, "b": 2}\n',
    "punct.jsonl": b'{"symbol": "A", "qty": 1}\n{"punct": true}\n',
    "rows.xml": b"<a/>",
    "fails.py": b"x = 1\nop = 1 / 0\n",
    "syntax.py": b"x = 1\nop = (\n",
    "farmed.py": f"""\
from windowlib import Count, Tumbling
from windowlib.farms import farm
from windowlib.operators import Aggregate, agg
op = farm({SUM.replace("(2)", "(2), by='symbol'")}, workers=2)
""".encode(),
    "lacks.py": b"import nothing_of_that_name\n",
    "exits.py": b"raise SystemExit(3)\n",
    "bare.py": b"x = 1\n",
    "odd.csv": b"a,qty\n1,1\n2,\n3,lost\n",
    "odd.jsonl": b'{"qty": 1}\n{"qty": 2}\n{"qty": "n/a"}\n',
}

CASES = [
    # what is to run
    (["Agregate(1)"], "there is no 'Agregate'. Did you mean \"Aggregate\"?"),
    (["open('x')"], "there is no 'open'. Operators, policies, agg and col are there."),
    (["Aggregate("], "'Aggregate(' is neither an expression ('(' was never closed)"),
    (["Aggregate"], "Aggregate: a class, not an operator. Give Aggregate(...)."),
    (["3"], "3: of type int, not an operator."),
    (["agg.__class__"], ".__class__ is not for expressions. Put it into a job.py."),
    (["(lambda f: f._x)(1)"], "._x is not for expressions."),
    (["1 / 0"], "1 / 0: ZeroDivisionError: division by zero"),
    (["Aggregate(Sliding(Punct()))"], "punctuation can only close tumbling windows"),
    (["no.py:op"], "no.py: there is no such file."),
    (["nomodule:op"], "nomodule: there is no such module. For a file, write nomodule.py:name."),
    (["job.py:vwep"], "job.py: there is no 'vwep' in it. Did you mean \"vwap\"?"),
    (["job.py:x"], "job.py: there is no 'x' in it. Operators: vwap, peaks."),
    (["bare.py:op"], "bare.py: there is no 'op' in it. It has no operators."),
    (["job.py"], "job.py: which operator of it? Write job.py:name."),
    (["exits.py:op"], "exits.py: it ends the program when it is loaded. Put what is not for"),
    (["job.py:Peaks"], "job.py:Peaks: a class, not an operator."),
    (["fails.py:op"], "fails.py, line 2: ZeroDivisionError: division by zero"),
    (["syntax.py:op"], "syntax.py, line 2: SyntaxError: '(' was never closed"),
    (["lacks.py:op"], "lacks.py, line 1: ModuleNotFoundError: No module named"),
    # where rows come from
    ([SUM, "-i", "no.csv"], "no.csv: No such file or directory"),
    ([SUM, "-i", "no.parquet"], "no.parquet: No such file or directory"),
    ([SUM, "-i", "rows.xml"], "rows.xml: .xml is no kind of file that is read here."),
    ([SUM, "-i", "."], ".: no suffix is no kind of file"),
    ([SUM, "-i", "empty.csv"], "empty.csv: there are no rows in it."),
    ([SUM, "-i", "empty.jsonl"], "empty.jsonl: there are no rows in it."),
    ([SUM, "-i", "bytes.csv"], "bytes.csv: not text in UTF-8."),
    ([SUM, "-i", "bytes.jsonl"], "bytes.jsonl: not text in UTF-8."),
    ([SUM, "-i", "short.csv"], "short.csv, line 3: the header has 2 columns, and this row 1."),
    ([SUM, "-i", "quote.csv"], "quote.csv: malformed CSV: a quote is not closed."),
    ([SUM, "-i", "wide.csv"], "wide.csv: malformed CSV: "),
    ([SUM, "-i", "twice.csv"], "twice.csv: two columns are called 'a'. Rename one of them."),
    ([SUM, "-i", "text.parquet"], "text.parquet: not a Parquet file: "),
    ([SUM, "-i", "cut.jsonl"], "cut.jsonl, line 2: malformed JSON: Expecting value."),
    ([SUM, "-i", "list.jsonl"], "list.jsonl, line 1: not a JSON object"),
    ([SUM, "-i", "tcp://nowhere"], "tcp://nowhere: not an address. Write tcp://host:port."),
    ([SUM, "-i", "tcp://a:70000"], "tcp://a:70000: not an address."),
    ([SUM, "-i", NOWHERE], f"{NOWHERE}: Connection refused."),
    ([SUM, "-i", "left=trades.csv"], "there is no input 'left'. The operator has 1: in."),
    ([SUM, "-i", "trades.csv", "-i", "trades.csv"], "'in' has an input already, trades.csv."),
    ([JOIN, "-i", "left=trades.csv"], "--input right=FILE is missing. The operator has 2: left"),
    ([JOIN, "-i", "trades.csv", "-i", "trades.csv"], "--order-by COL is missing: several inputs"),
    (
        [JOIN, "-i", "trades.csv", "-i", "trades.csv", "--order-by", "ts,symbol"],
        "--order-by: several inputs are merged by one column.",
    ),
    # columns and values
    ([SUM.replace("qty", "qt")], 'agg.sum("qt"): no such column. Columns: symbol, price'),
    ([SUM, "--times", "tz"], "--times tz: no such column in trades.csv. Columns: symbol"),
    ([SUM, "--order-by", "tz"], "--order-by tz: no such column in trades.csv. Columns: symbol"),
    ([SUM, "--times", "symbol"], "times='symbol': the value 'AAPL' is no point in time."),
    ([SUM.replace("qty", "symbol")], 'agg.sum("symbol"): a column of string does not add up.'),
    ([SUM, "-i", "odd.csv"], "The column 'qty' of odd.csv is text, because row 3 has 'lost'."),
    ([SUM, "-i", "odd.jsonl", "-o", "x.csv"], "odd.jsonl, row 3: agg.sum(\"qty\") of 'n/a': a str"),
    (["Filter(lambda t: t['x'])"], "KeyError: 'x' (in Filter, row {'symbol': 'AAPL'"),
    # where they go, and how
    ([SUM, "--output", "x.xls"], "--output x.xls: .xls is no kind of file that is written here."),
    ([SUM, "--output", "x"], "--output x: no suffix is no kind of file"),
    ([SUM, "--output", "no/x.csv"], "no/x.csv: No such file or directory"),
    ([SUM, "--output", "no/x.parquet"], "no/x.parquet: No such file or directory"),
    ([ALL, "-i", "mixed.jsonl", "-o", "x.parquet"], "the values of a column are not of one type"),
    ([ALL, "-i", "more.jsonl", "-o", "x.csv"], "a row has a column 'b' that the first had not."),
    ([SUM, "--port", "late"], "Aggregate has no output 'late'. Ports: out."),
    ([SUM, "--show", "0"], "--show: '0' is not a number of rows"),
    ([SUM, "--workers", "x"], "--workers: 'x' is not a number of workers"),
    ([SUM, "--workers", "2", "--spark"], "--workers is for this process; with --spark"),
    ([SUM, *COLUMNS], "--schema is for a socket; files have columns of their own."),
    ([SUM, "--schema", "qty bigit"], "there is no type 'bigit'."),
    ([SUM, "-i", "punct.jsonl", "--spark"], "Spark has no punctuations among rows."),
    (["Aggregate(Tumbling(Count(2)), s=agg.sum('qty'))", "--bogus"], "unrecognized arguments"),
]


def argv_of(words):
    """A `run`, over the trades if the case does not say over what."""
    given = () if "-i" in words else ("-i", "trades.csv")
    return ["run", *words, *given]


@pytest.fixture
def files(folder):
    """Files of which each has something wrong with it."""
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_a_mistake_is_one_line_and_2(words, expected, capsys):
    assert 2 == command_line.main(argv_of(words))
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    assert err.startswith("windowlib run: ")
    assert expected in err


def test_what_came_before_an_error_is_kept(files, capsys):
    (files / "a.jsonl").write_text('{"a": 1}\n{"a": 0}\n')
    assert 2 == command_line.main(
        ["run", "Filter(lambda t: 1 / t['a'])", "-i", "a.jsonl", "-o", "-"]
    )
    out, err = capsys.readouterr()
    assert '{"a": 1}\n' == out
    assert err.startswith("windowlib run: a.jsonl, row 2: ZeroDivisionError: ")


def test_without_java_spark_is_refused_in_one_line(files, capsys, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(files))
    assert 2 == command_line.main(["run", SUM, "-i", "trades.csv", "--spark"])
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    assert err.startswith("windowlib run: Spark needs Java 17 or newer, and there is none")


def sockets(sender):
    """Commands that a socket spoils, with what is spark_message."""
    good = b'{"qty": 1, "symbol": "A"}\n'
    return [
        (["run", SUM, "-i", sender(good + b"\xff\n")], "what comes is not text."),
        (["run", SUM, "-i", sender(good + b"{\n")], "line 2: malformed JSON: "),
        (["run", SUM, "-i", sender(good), "--spark"], "Spark asks for the columns before the"),
        (["run", SUM, "-i", sender(good), *COLUMNS, "--times", "qty", "--spark"], "--times: on"),
        (
            ["run", "farmed.py:op", "-i", sender(good), *COLUMNS, "--spark"],
            "a farm on Spark does",
        ),
        (["run", SUM, "-i", sender(b'{"qty": 1.5}'), *COLUMNS], "line 1: qty is 1.5, and --schema"),
        (["run", SUM, "-i", sender(good), "--order-by", "qty"], "rows of a socket go in as they"),
        (["run", JOIN, "-i", sender(good), "-i", "trades.csv"], "a socket must be the only input."),
    ]


@pytest.mark.usefixtures("files")
def test_a_socket_that_fails_is_one_line_and_2(sender, capsys):
    for argv, expected in sockets(sender):
        assert 2 == command_line.main(argv)
        out, err = capsys.readouterr()
        assert ("", 1) == (out, err.count("\n"))
        assert expected in err


class Reset:
    """A connection that the other side gives up."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def recv(self, size):
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def reset():
    rows: Any = SocketRows.__new__(SocketRows)
    rows.place, rows._socket = "tcp://x:1", Reset()
    return list(rows.rows(timed=False))


class Endless(Reset):
    """A connection that sends something else than lines."""

    def recv(self, size):
        return b"y" * size


def endless():
    rows: Any = SocketRows.__new__(SocketRows)
    rows.place, rows._socket = "tcp://x:1", Endless()
    return list(rows.rows(timed=False))


def punctuated(sender):
    return list(SocketRows(sender(b'{"qty": 1}\n{"punct": true}\n')).batches())


def test_punctuations_of_a_socket_are_not_for_spark(sender):
    with pytest.raises(UsageError, match=r": Spark has no punctuations among rows\."):
        punctuated(sender)


def failed():
    query: Any = LiveQuery.__new__(LiveQuery)
    query.query = SimpleNamespace(exception=lambda: RuntimeError("a row"))
    query.take([])


def test_a_connection_that_is_given_up_is_said_so():
    with pytest.raises(UsageError, match=r"^tcp://x:1: Connection reset by peer\.$"):
        reset()


CHECKS = [
    (["check", SUM, "--schema", "qty bigint", "--schema", "x int"], "no input is left for it."),
    (["check", SUM, "--schema", "left=qty bigint"], "no input is left for it. The operator has 1"),
    (["check", SUM, "--schema", "qty bigit"], "there is no type 'bigit'. Did you mean \"bigint\"?"),
    (["check", "no.py:op"], "no.py: there is no such file."),
]


@pytest.mark.parametrize(("argv", "expected"), CHECKS)
def test_a_check_that_cannot_be_made_is_2(argv, expected, capsys):
    assert 2 == command_line.main(argv)
    assert expected in capsys.readouterr().err


def test_what_spark_raises_is_one_line():
    with pytest.raises(UsageError, match=r"^Spark: Job aborted$"), spark_failures():
        raise RuntimeError("Job aborted\nand much more\n")
    assert 401 == len(spark_message("x" * 1000))


def test_values_that_no_column_holds_are_refused():
    with pytest.raises(UsageError, match=r"^a\.jsonl: the values of a column are not of one type"):
        Input("a.jsonl", [{"a": 1}, {"a": "x"}]).table()


# -- no raise without a case --

# Their mistakes are in test_cli.py and, of what is read from a checkpoint, in tests/spark.
ELSEWHERE = {"trace.py", "conformance.py", "call_text.py", "state.py"}
# Read by `trace` alone.
TRACED = [["trace", "tumbling, count(2)", file] for file in ("empty.csv", "short.csv", "quote.csv")]


def raised(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what it is does not matter here
        call()
    return caught.value


@pytest.mark.usefixtures("files")
def test_every_raise_has_a_case(sender):
    seen = set()
    cases = [argv_of(words) for words, _ in CASES]
    cases += [argv for argv, _ in (*CHECKS, *sockets(sender))] + TRACED
    cases += [["check", "Aggregate(Sliding(Punct()))"]]
    cases += [["trace", "tumbling, time(2)", "trades.csv", "--time", "tz"]]
    Path("deep.jsonl").write_text('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    Path("long.jsonl").write_text('{"x": "' + "y" * LONGEST + '"}\n')
    cases += [["run", ALL, "-i", name] for name in ("deep.jsonl", "long.jsonl")]
    cases += [["run", ALL, "-i", "far.jsonl", "-o", "far.jsonl"]]
    Path("far.jsonl").write_text("{}\n")
    for argv in cases:
        seen |= lines_of(raised(lambda argv=argv: command_line._run(argv)))
    seen |= lines_of(raised(Input("a", [{"a": 1}, {"a": "x"}]).table))

    def failing():
        with spark_failures():
            raise RuntimeError

    for call in (failing, failed, reset, endless, lambda: punctuated(sender)):
        seen |= lines_of(raised(call))
    left = [path for path in SOURCES if path.name not in ELSEWHERE]
    assert [] == [place for path in left for place in unseen(path.read_text(), path, seen)]


def test_a_parquet_file_that_is_refused_leaves_nothing_half_written(files):
    argv = ["run", ALL, "-i", "mixed.jsonl", "-o", "x.parquet", "-q"]
    before = {path.name for path in files.iterdir()}
    assert 2 == command_line.main(argv)
    assert before == {path.name for path in files.iterdir()}
    (files / "x.parquet").write_text("as it was")
    assert 2 == command_line.main(argv)
    assert "as it was" == (files / "x.parquet").read_text()


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize("before", [None, "something of value"])
def test_what_fails_leaves_files_as_they_were(name, before, files):
    if before is not None:
        (files / name).write_text(before)
    there = sorted(files.iterdir())
    assert 2 == command_line.main(["run", SUM, "-i", "odd.jsonl", "-o", name, "-q"])
    assert there == sorted(files.iterdir())
    assert before is None or before == (files / name).read_text()


def test_a_link_stays_one_and_a_device_is_written_to(files):
    (files / "link.jsonl").symlink_to("there.jsonl")
    (files / "null.jsonl").symlink_to("/dev/null")
    for name in ("link.jsonl", "null.jsonl"):
        assert 0 == command_line.main(["run", SUM, "-i", "trades.csv", "-o", name, "-q"])
        assert (files / name).is_symlink()
    assert 150 == len((files / "there.jsonl").read_text().splitlines())


def test_a_full_device_is_told_of_by_name(files, capsys, monkeypatch):
    def full(self, row):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(JsonLinesWriter, "add", full)
    assert 2 == command_line.main(["run", SUM, "-i", "trades.csv", "-o", "x.jsonl", "-q"])
    assert "windowlib run: x.jsonl: No space left on device\n" == capsys.readouterr().err
    assert not (files / "x.jsonl").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_terminal_does_not_know_do_no_harm(encoding, files, monkeypatch):
    (files / "far.jsonl").write_text('{"a": "\\u2192"}\n' * 30, encoding="utf-8")
    seen = []
    for more in ([], ["-o", "-"]):
        raw = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding=encoding))
        assert 0 == command_line.main(["run", ALL, "-i", "far.jsonl", "-q", *more])
        seen.append(raw.getvalue().decode("ascii").splitlines())
    table, rows = seen
    assert ["a", "?"] == table[:2]
    assert [{"a": "\u2192"}] * 30 == [json.loads(row) for row in rows]


def test_closed_output_is_a_mistake_if_there_is_something_to_print(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert 2 == command_line.main(["trace", "tumbling, count(2)"])
