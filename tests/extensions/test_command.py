"""A command is a module and a line in the table of commands."""

from types import ModuleType

import pytest

from windowlib.tools import command_line
from windowlib.tools.commands.usage import UsageError


def module() -> ModuleType:
    """What windowlib/tools/commands/shout.py would hold."""
    shout = ModuleType("shout")

    def add(commands):
        parser = commands.add_parser("shout", help="say something loudly")
        parser.add_argument("word")
        parser.set_defaults(command=run)

    def run(arguments):
        if not arguments.word.isalpha():
            raise UsageError(f"{arguments.word!r}: not a word. Use letters.")
        print(arguments.word.upper())
        return 0

    shout.add = add  # type: ignore[attr-defined]
    return shout


@pytest.fixture(autouse=True)
def _added(monkeypatch):
    monkeypatch.setitem(command_line.COMMANDS, "shout", module())


def test_it_runs(capsys):
    assert command_line.main(["shout", "ho"]) == 0
    assert capsys.readouterr().out == "HO\n"


def test_its_mistakes_are_one_line(capsys):
    assert command_line.main(["shout", "4"]) == 2
    assert capsys.readouterr().err == "windowlib shout: '4': not a word. Use letters.\n"


def test_it_is_in_the_help(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--help"])
    assert "say something loudly" in capsys.readouterr().out
