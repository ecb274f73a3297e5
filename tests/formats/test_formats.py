"""Files of every format are read, and what was stored goes on as if nothing had happened."""

import pytest

from tests.formats.stored import CUT, FOLDER, OPERATORS, ROWS, WINDOWS
from windowlib import load_state
from windowlib.runtime import running
from windowlib.window import snapshot, state_bytes

FILES = sorted(FOLDER.glob("*.state"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stored_state_goes_on(path):
    case = {**WINDOWS, **OPERATORS}[path.name.partition(".")[0]]
    uninterrupted = case.make()
    case.feed(uninterrupted, 0, CUT)
    expected = case.feed(uninterrupted, CUT, len(ROWS))
    assert expected
    fresh = case.make()
    fresh.restore(load_state(path.read_bytes()))
    assert expected == case.feed(fresh, CUT, len(ROWS))


def test_every_format_that_is_read_has_files():
    names = {path.name for path in FOLDER.iterdir()}
    assert set(WINDOWS) | set(OPERATORS) == {path.name.partition(".")[0] for path in FILES}
    for number in snapshot.READERS:
        assert any(f".{number}-" in name for name in names)
    for number in snapshot.ARRAY_READERS:
        assert any(f"-{number}.state" in name for name in names)
    for path in FILES:
        assert load_state(path.read_bytes())["v"] in {**snapshot.READERS, **running.READERS}
        assert path.read_bytes()[8] in state_bytes.READERS
