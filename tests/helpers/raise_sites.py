"""Which places that raise an exception no test has reached."""

import ast
from pathlib import Path

import pytest

from tests.window.test_errors import lines_of
from windowlib import WindowlibError


def everything(made):
    """Whether an exception counts: each does."""
    return True


def raises_in(package, counts=everything):
    """Where the modules of a package raise an exception: the file, and the lines."""
    for path in sorted(Path(package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None and counts(node.exc):
                yield path, range(node.lineno, (node.end_lineno or node.lineno) + 1)


def raised(code, names, kind=WindowlibError):
    """The exception that code raises, which uses these names."""
    with pytest.raises(kind) as caught:
        eval(code, names)
    return caught.value


def unreached(places, errors):
    """Those of some places that none of these exceptions came through."""
    seen = set().union(*map(lines_of, errors))
    return [
        f"{path.name}:{lines.start}"
        for path, lines in places
        if not any((path, line) in seen for line in lines)
    ]
