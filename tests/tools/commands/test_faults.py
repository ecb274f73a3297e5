"""Rows that cannot be read or written: one clear line, a code that is not 0, and no file harmed."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from windowlib.tools.command_line import main

ROOT = Path(__file__).parents[3]
SUM = 'Aggregate(Tumbling(Count(1)), s=agg.sum("x"))'
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"x": 1.5}\n{"x": NaN}\n{"x": -Infinity}\n')
    return tmp_path


def complaint(capsys, *argv):
    assert main(["run", *argv, "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix("windowlib run: ").rstrip("\n")


def started(*argv, **options):
    """The command in a process, whose standard output may be anything."""
    command = [sys.executable, "-m", "windowlib", "run", SUM, "-i", "rows.jsonl", "-q", *argv]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=env, stderr=subprocess.PIPE, text=True, check=False, **options
    )


def test_what_is_no_number_is_null_in_json(folder):
    assert main(["run", SUM, "-i", "rows.jsonl", "-o", "out.jsonl", "-q"]) == 0
    text = (folder / "out.jsonl").read_text()
    assert text == '{"s": 1.5}\n{"s": null}\n{"s": null}\n'
    lists = 'Aggregate(Tumbling(Count(3)), s=agg.collect("x"))'
    assert main(["run", lists, "-i", "rows.jsonl", "-o", "lists.jsonl", "-q"]) == 0
    assert (folder / "lists.jsonl").read_text() == '{"s": [1.5, null, null]}\n'


def test_a_closed_standard_output_is_an_error(folder):
    done = started("-o", "-", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (
        2,
        "windowlib run: stdout: it is closed. Redirect it, or use --output FILE\n",
    )
    done = started("-o", "out.jsonl", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")  # it has nothing to say there


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_a_full_standard_output_is_an_error(folder):
    with open("/dev/full", "w") as full:
        done = started("-o", "-", stdout=full)
    assert (done.returncode, done.stderr) == (2, "windowlib run: No space left on device\n")


@pytest.mark.parametrize("name", ["rows.jsonl", "link.jsonl", "./rows.jsonl"])
def test_an_input_is_not_written_over(name, folder, capsys):
    (folder / "link.jsonl").symlink_to("rows.jsonl")
    before = (folder / "rows.jsonl").read_bytes()
    told = complaint(capsys, SUM, "-i", "rows.jsonl", "-o", name)
    assert told == (f"--output {name}: it is an input as well, rows.jsonl. Write to another file.")
    assert (folder / "rows.jsonl").read_bytes() == before


def test_deep_json_is_one_line(folder, capsys):
    (folder / "deep.jsonl").write_text('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    assert complaint(capsys, SUM, "-i", "deep.jsonl") == (
        "deep.jsonl, line 1: the JSON is nested too deep."
    )


def test_a_huge_line_is_one_line(folder, capsys):
    (folder / "huge.jsonl").write_text('{"x": "' + "a" * 20_000_000 + '"}\n')
    assert complaint(capsys, SUM, "-i", "huge.jsonl") == (
        "huge.jsonl, line 1: a line of 20,000,009 characters; 16,777,216 are read. Each line is "
        "one JSON object."
    )


def test_a_message_with_a_large_row_is_cut(folder, capsys):
    (folder / "large.jsonl").write_text('{"x": "' + "a" * 1_000_000 + '"}\n')
    told = complaint(capsys, SUM, "-i", "large.jsonl")
    assert len(told) == 2000
    assert told.endswith("…")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(suffix, folder):
    """A limit on the size of files stands for a full disk: the write is short, then refused."""
    out = folder / f"out.{suffix}"
    out.write_text("as it was")
    (folder / "rows.jsonl").write_text("".join(f'{{"x": {n}.5}}\n' for n in range(5000)))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    done = started("-o", out.name, preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert out.read_text() == "as it was"
    assert sorted(os.listdir(folder)) == sorted(["rows.jsonl", out.name])
