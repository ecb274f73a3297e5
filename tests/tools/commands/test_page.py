"""What the page of the command line shows is what happens."""
# ruff: noqa: SIM300 - asserts read expected first

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import blocks, run_page
from windowlib.tools.command_line import COMMANDS, _parser

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "cli.md"


def transcripts(text):
    """The commands of a page, each with what it shows."""
    found = []
    for block in blocks(text):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                found.append((command, shown))
    return found


METER = re.compile(r"^\[[#.]{24}\].* rows in, .* out\n", re.MULTILINE)
"""What a command says after five seconds, which any may take on a busy machine."""


def printed(command, folder):
    """What a command prints, on stdout and stderr, however long it takes."""
    here = f"'{sys.executable}' -m windowlib"
    line = re.sub(r"^(python -m )?windowlib\b", here.replace("\\", r"\\"), command)
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return METER.sub("", done.stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(PAGE.read_text(), "cli.md")
    return tmp_path


def test_commands_print_what_the_page_shows(folder):
    shown = transcripts(PAGE.read_text())
    assert len(shown) >= 6
    assert shown == [(command, printed(command, folder)) for command, _ in shown]


def test_a_page_that_shows_something_else_is_found(tmp_path):
    ((command, shown),) = transcripts("```console\n$ windowlib trace\nnothing\n```\n")
    assert "windowlib trace" == command
    assert shown != printed(command, tmp_path)


def test_the_page_has_every_command_and_every_option_of_run():
    text = PAGE.read_text()
    assert all(f"| `{name}" in text for name in COMMANDS)
    told = _parser().parse_args(["run", "x", "-i", "y"])
    options = set(vars(told)) - {"command", "operator"}
    assert [] == [name for name in options if f"--{name.replace('_', '-')}" not in text]
