"""The page about the inside names modules that are there, and the layers as they are."""

import re
from pathlib import Path

import pytest

from tests.test_house import FILES, OPERATORS, PACKAGE, known

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engines.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+(?:\.py|/))`", PAGE)))
PLACES = (ROOT, PACKAGE, PACKAGE / "columnar")
DRAWN = re.search(r"^```mermaid\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", NAMED)
def test_a_module_that_is_named_is_there(name):
    assert any((place / name).exists() for place in PLACES)


def test_there_are_names_to_look_for():
    assert len(NAMED) > 30


def layers():
    """The rooms of each box of the drawing, and which box each line leads to."""
    assert DRAWN is not None
    boxes = re.findall(r'^ +(\w+)\["<b>([\w, ]+)</b>', DRAWN[1], re.MULTILINE)
    lines = re.findall(r"^ +(\w+) --> (\w+)$", DRAWN[1], re.MULTILINE)
    return {box: set(rooms.split(", ")) for box, rooms in boxes}, lines


def test_every_room_is_drawn_once():
    boxes, _ = layers()
    drawn = sorted(room for rooms in boxes.values() for room in rooms)
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert drawn == sorted(there | {"errors", "durations", "attributes"})


def test_a_layer_imports_those_below_it_alone():
    boxes, lines = layers()
    below: dict[str, set[str]] = {box: {box} for box in boxes}
    for _ in boxes:  # as often as the longest way down
        for upper, lower in lines:
            below[upper] |= below[lower]
    wrong = []
    for path in (*FILES, *OPERATORS):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        box = next((box for box, rooms in boxes.items() if room in rooms), None)
        if box is None:
            continue
        allowed = set().union(*(boxes[each] for each in below[box]))
        used = {name.split(".")[1] for name in known(path, anywhere=False) if name.count(".")}
        above = used & set().union(*boxes.values()) - allowed
        wrong += [f"{path.relative_to(PACKAGE)} imports {', '.join(above)}"] if above else []
    assert wrong == []
