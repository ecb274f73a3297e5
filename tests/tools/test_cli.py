"""The command line: what it prints, and how it takes mistakes."""
# ruff: noqa: SIM300 - asserts read expected first

import gzip
import io
import json
import os
import subprocess
import sys
import textwrap

import pytest

from windowlib.tools import conformance
from windowlib.tools.command_line import COMMANDS, main

CSV = "symbol,ts,day\nA,1,2024-03-01T10:00:00\nB,2.5,2024-03-01T10:00:05\nA,9,2024-03-01T10:00:20\n"


@pytest.fixture
def rows(tmp_path):
    """A function that writes a file of rows and gives its name."""

    def write(text, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


@pytest.fixture
def complaint(capsys):
    """A function that runs a command that must fail, and gives its one line on stderr."""

    def run(*argv):
        assert 2 == main(argv)
        out, err = capsys.readouterr()
        assert "" == out
        assert 1 == err.count("\n")
        who = f"windowlib {argv[0]}: " if argv[0] in COMMANDS else "windowlib: "
        assert err.startswith(who)
        return err.removeprefix(who).rstrip("\n")

    return run


def command(*argv, **more):
    return subprocess.run(
        [sys.executable, "-m", "windowlib", *argv],
        capture_output=True,
        text=True,
        check=False,
        **more,
    )


def test_without_a_command_there_is_help(capsys):
    assert 2 == main([])
    assert "demo" in capsys.readouterr().err


def test_trace_makes_rows_up(capsys):
    assert 0 == main(["trace", "tumbling, count(2)", "--rows", "4"])
    expected = """\
    tumbling, count(2)

    tuple    1   2   3   4
    insert   1   2   3   4
    flush        |       |
    window      1-2     3-4

    Each column runs from top to bottom.
    """
    assert textwrap.dedent(expected) == capsys.readouterr().out


def test_made_up_rows_have_the_key_that_was_asked_for(capsys):
    assert 0 == main(["trace", "tumbling, count(2), partitioned", "--by", "symbol"])
    assert "symbol = B" in capsys.readouterr().out


def test_the_window_may_be_python(rows, capsys):
    for spl, python in (
        (["sliding, count(3), count(2)"], ["Sliding(Count(3), every=Count(2))"]),
        (["tumbling, count(2), partitioned", "--by", "ts"], ["Tumbling(Count(2), by='ts')"]),
        (["tumbling, count(2), partitioned", "--by", "ts"], ["Tumbling(Count(2))", "--by", "ts"]),
    ):
        shown = []
        for spec, *more in (spl, python):
            assert 0 == main(["trace", spec, rows(CSV), *more])
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1]


def test_trace_reads_csv(rows, capsys):
    spec = "sliding, delta(ts, 2), count(1), partitioned"
    assert 0 == main(["trace", spec, rows(CSV), "--by", "symbol"])
    assert "symbol = A\ntuple     1   3\nts        1   9\n" in capsys.readouterr().out


def test_dates_are_read_as_dates(rows, capsys):
    assert 0 == main(["trace", "tumbling, delta(day, 10s)", rows(CSV)])
    assert "10:00:00" in capsys.readouterr().out
    lines = '{"day": "2024-03-01T10:00:00"}\n{"day": "2024-03-01T10:00:20"}\n'
    assert 0 == main(["trace", "tumbling, delta(day, 10s)", rows(lines)])
    assert "10:00:20" in capsys.readouterr().out


def test_trace_reads_json_lines_with_punctuations(rows, capsys):
    lines = '{"a": 1}\n\n{"a": 2}\n{"punct": true}\n'
    assert 0 == main(["trace", "tumbling, punct()", rows(lines)])
    assert "tuple    1   2   P\n" in capsys.readouterr().out


def test_trace_reads_stdin(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n1\n2\n3\n"))
    assert 0 == main(["trace", "tumbling, count(2)", "-", "--rows", "2"])
    assert "tuple    1   2\n" in capsys.readouterr().out


def test_time_is_when_tuples_arrive(rows, capsys):
    assert 0 == main(["trace", "tumbling, time(5)", rows(CSV), "--time", "ts"])
    assert "time     0  1.5  5   8\n" in capsys.readouterr().out


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(rows, capsys):
    path = rows("\ufeffk,x\r\nA,1\r\n\r\nA,2\r\n")
    assert 0 == main(["trace", "tumbling, count(2), partitioned", path, "--by", "k"])
    assert "k = A\ntuple    1   2\n" in capsys.readouterr().out


def test_svg_is_written_beside_the_text(tmp_path, capsys):
    path = tmp_path / "out.svg"
    assert 0 == main(["trace", "tumbling, count(2)", "--svg", str(path)])
    assert "flush" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8").startswith("<svg ")


def test_a_questionable_window_is_traced_with_a_warning(capsys):
    assert 0 == main(["trace", "tumbling, count(2), partitioned, partitionCount(1, operator)"])
    assert capsys.readouterr().err.startswith("windowlib trace: PartitionCount(size=1")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["foo"], "invalid choice: 'foo'"),
        (["trace"], "required: SPEC. See python -m windowlib trace --help"),
        (["trace", "slidng, count(3)"], "unknown word 'slidng'. Did you mean \"sliding\"?"),
        (["trace", "sliding, punct()"], "punctuation can only close tumbling windows"),
        (["trace", "tumbling, count(2)", "--by", "k"], "the window is not partitioned"),
        (["trace", "tumbling, count(2)", "--rows", "0"], "'0' is not a number of tuples"),
        (["trace", "tumbling, count(2)", "--rows", "x"], "'x' is not a number of tuples"),
        (["trace", "tumbling, time(2)", "--time", "ts"], "--time ts: there is no FILE"),
        (["trace", "tumbling, count(2)", "no.csv"], "no.csv: No such file or directory"),
        (["trace", "tumbling, count(2)", "."], ".: Is a directory"),
        (["trace", "tumbling, count(2)", "--svg", "no/x.svg"], "no/x.svg: No such file"),
        (["trace", "Tumbling(Count(2)).by"], "of type NoneType, not a window."),
        (["trace", "Tumbling(Cont(2))"], "there is no 'Cont'. Did you mean \"Count\"?"),
        (["conformance"], "required: PATH"),
        (["conformance", "no.jsonl"], "no.jsonl: No such file or directory"),
        (["conformance", "p", "--engine", "x"], "--engine: invalid choice: 'x'"),
    ],
)
def test_a_mistake_is_one_line(argv, expected, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in complaint(*argv)


EACH = "Each line is a JSON object."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "rows: there are no rows in it."),
        (b"\xff\xfe\x00", "rows: not text in UTF-8."),
        ("a,b\n1,2\n3\n", "rows, line 3: the header has 2 columns, and this row 1."),
        ('a,b\n1,"2\n', "rows, line 2: malformed CSV: unexpected end of data."),
        (
            '{"a": 1}\n{"a": \n',
            f"rows, line 2: malformed JSON: Expecting value. {EACH}",
        ),
        ("[1]\n", 'rows, line 1: not a JSON object, such as {"ts": 7}, one a line.'),
        ('{"a": 1}\n3\n', 'rows, line 2: not a JSON object, such as {"ts": 7}, one a line.'),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(text, expected, rows, complaint, monkeypatch):
    monkeypatch.chdir(rows(text, "rows").removesuffix("rows"))
    assert expected == complaint("trace", "tumbling, count(2)", "rows")


def test_rows_for_a_partitioned_window_need_a_key(rows, complaint):
    assert (
        "'tumbling, count(2), partitioned' is partitioned: name its key with --by COL. "
        "Columns: symbol, ts, day."
    ) == complaint("trace", "tumbling, count(2), partitioned", rows(CSV))


@pytest.mark.parametrize("option", ["--by", "--time"])
def test_an_unknown_column_is_named_with_its_neighbours(option, rows, complaint):
    path = rows(CSV)
    assert (
        f"{option} symbl: no such column in {path}. Columns: symbol, ts, day. "
        'Did you mean "symbol"?'
    ) == complaint(
        "trace", "tumbling, time(2), partitioned", path, "--by", "symbol", option, "symbl"
    )


def test_a_missing_delta_attribute_is_one_line(rows, complaint):
    assert "has no 'tz'" in complaint("trace", "tumbling, delta(tz, 2)", rows(CSV))


def test_a_column_that_is_no_time_is_one_line(rows, complaint):
    told = complaint("trace", "tumbling, time(2)", rows(CSV), "--time", "symbol")
    assert told.startswith("--time symbol: ")


def test_time_that_goes_back_is_one_line(rows, complaint):
    told = complaint("trace", "tumbling, time(2)", rows("t\n5\n3\n"), "--time", "t")
    assert told.startswith("--time t: advance(3): time went back from 5")


def test_a_key_that_is_a_list_is_one_line(rows, complaint):
    path = rows('{"a": [1]}\n')
    told = complaint("trace", "tumbling, count(2), partitioned", path, "--by", "a")
    assert "the key [1] is a list" in told


def test_a_punctuation_for_another_window_is_one_line(rows, complaint):
    path = rows('{"a": 1}\n{"punct": true}\n')
    assert "takes no punctuation" in complaint("trace", "tumbling, count(2)", path)


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("argv", ["trace 'tumbling, count(2)' --rows 9000", "demo"])
def test_a_reader_that_stops_early_gets_no_traceback(argv):
    shell = f"'{sys.executable}' -m windowlib {argv} | head -n 1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=True)
    assert "" == done.stderr
    assert 1 == done.stdout.count("\n")


@pytest.fixture
def recorded(request):
    """The path of the recorded edge cases."""
    return request.config.rootpath / "tests" / "conformance" / "edge.jsonl.gz"


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_conformance_counts_cases(engine, recorded, capsys):
    total = sum(1 for _ in conformance.cases([recorded]))
    assert 0 == main(["conformance", str(recorded), "--engine", engine])
    assert f"{total} cases, 0 mismatches\n" == capsys.readouterr().out


def test_conformance_prints_each_mismatch_and_fails(recorded, tmp_path, capsys):
    first, second, *_ = (case for case in conformance.cases([recorded]) if case["events"])
    told = first["events"][0]
    first["events"][0] = {"i": 0, "e": "wrong"}
    path = tmp_path / "doctored.jsonl.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(first)}\n{json.dumps(second)}\n".encode()))
    assert 1 == main(["conformance", str(tmp_path)])
    expected = f'{first["id"]}: event 0: expected {{"i": 0, "e": "wrong"}}, got {json.dumps(told)}'
    assert [expected, "2 cases, 1 mismatches"] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CSV, ", line 1: not a recorded case: Expecting value"),
        ("[]\n", ", line 1: not a recorded case: "),
        ('\n{"id": 1}\n', ", line 2: not a recorded case: 'window'."),
        (b"\xff\xfe\x00", ": not a trace file: "),
    ],
)
def test_what_is_no_trace_file_is_one_line(text, expected, rows, complaint):
    path = rows(text, "cases.jsonl")
    assert complaint("conformance", path).startswith(f"{path}{expected}")


def test_a_case_that_cannot_be_run_is_a_mismatch(rows, capsys):
    path = rows('{"id": "x", "window": {}, "input": [], "events": []}\n', "cases.jsonl")
    assert 1 == main(["conformance", path])
    told, last = capsys.readouterr().out.splitlines()
    assert told.startswith('x: event 0: expected null, got {"e": "KeyError"')
    assert "1 cases, 1 mismatches" == last


def test_a_damaged_archive_is_one_line(recorded, rows, complaint):
    path = rows(recorded.read_bytes()[:1000], "cut.jsonl.gz")
    assert complaint("conformance", path).startswith(f"{path}: not a trace file: ")


def test_a_file_without_cases_is_no_success(rows, complaint):
    path = rows("\n", "cases.jsonl")
    assert f"{path}: there are no recorded cases in it." == complaint("conformance", path)


def test_a_folder_without_traces_is_one_line(tmp_path, complaint):
    assert complaint("conformance", str(tmp_path)).startswith(f"{tmp_path}: no trace files")
