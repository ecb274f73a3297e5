"""What `import windowlib` needs, does and costs, and which module may know which."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
import functools
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.versions import CORE
from windowlib.extensions import registered

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "windowlib"
OPERATORS = sorted((PACKAGE / "operators").rglob("*.py"))
FILES = sorted(path for path in PACKAGE.rglob("*.py") if PACKAGE / "operators" not in path.parents)
COLUMNAR = PACKAGE / "columnar"
SPARK = PACKAGE / "spark"
FARMS = PACKAGE / "farms"
WORKLOAD = PACKAGE / "workload"
TESTING = PACKAGE / "testing"
TOOLS = PACKAGE / "tools"
# Those of the testing kit that are of no use without the library they are for.
KIT = {TESTING / "plugin.py": {"pytest"}, TESTING / "strategies.py": {"hypothesis"}}
COMPILED = {"arrivals", "compiled", "compiled_loops", "compiled_ranks"}  # need numba


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    named = parts if parts[0] == "windowlib" else ("windowlib", *parts)
    return ".".join(named[:-1] if named[-1] == "__init__" else named)


files = pytest.mark.parametrize("path", FILES, ids=module_of)


def python(code, *flags, alone=True):
    """What a new process writes, which knows the standard library and this folder alone."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, *(["-S"] if alone else []), "-W", "error", *flags, "-c", code],
        env={**clean, "PYTHONPATH": str(ROOT)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "" == done.stderr
    return done.stdout


# -- what it needs and does --


def test_importing_needs_the_standard_library_alone():
    loaded = python("import sys, windowlib; print(*sys.modules)").split()
    tops = {name.partition(".")[0] for name in loaded} - {"__main__", "__mp_main__"}
    assert {"windowlib"} == tops - sys.stdlib_module_names
    for heavy in ("numpy", "pandas", "pyarrow", "pyspark", "sortedcontainers"):
        assert heavy not in loaded


def test_importing_loads_no_tools():
    loaded = python("import sys, windowlib; print(*sys.modules)").split()
    for tool in ("tools.commands", "tools.mermaid", "tools.notebook", "samples", "testing"):
        assert f"windowlib.{tool}" not in loaded
    for slow in ("argparse", "asyncio", "http", "json", "multiprocessing", "unittest", "urllib"):
        assert slow not in loaded


def test_importing_writes_nothing():
    assert "" == python("import windowlib")


def test_importing_starts_no_thread_and_touches_no_setting():
    code = """
import locale, logging, os, signal, sys, threading, warnings
def settings():
    root = logging.getLogger()
    return (
        [thread.name for thread in threading.enumerate()],
        root.level, list(root.handlers), logging.raiseExceptions, logging.lastResort,
        list(warnings.filters), dict(os.environ), os.getcwd(), list(sys.path),
        sys.getrecursionlimit(), sys.excepthook, threading.excepthook,
        [signal.getsignal(s) for s in signal.valid_signals()],
        locale.setlocale(locale.LC_ALL), sys.stdout, sys.stderr,
    )
import decimal
decimal.getcontext()
before, context = settings(), repr(decimal.getcontext())
import windowlib
assert settings() == before
assert repr(decimal.getcontext()) == context
print("untouched")
"""
    assert "untouched\n" == python(code)


def test_the_logger_is_silent_until_someone_listens():
    code = """
import logging, windowlib
logger = logging.getLogger("windowlib")
print([type(h).__name__ for h in logger.handlers], logger.level, logger.propagate)
logger.error("nobody hears this")
"""
    assert "['NullHandler'] 0 True\n" == python(code)


def test_windows_run_on_the_standard_library_alone():
    code = """
import pickle, windowlib
from windowlib import *
class Show(WindowEvents):
    def before_flush(self, window, key):
        print(key, window.summary(key).value())
mean = summarizers.mean(0)
window = TumblingWindow("tumbling, count(2), partitioned", events=Show(), summarizer=mean)
window.insert_many([(1,), (3,)], keys="aa")
other = TumblingWindow(window.spec, events=Show(), summarizer=mean)
other.restore(pickle.loads(pickle.dumps(window.snapshot())))
"""
    assert "a 2.0\n" == python(code)


def columnar(path):
    """Whether a module works on arrays, and may need what the library does not."""
    folders = {COLUMNAR, FARMS, WORKLOAD}
    return bool(folders & set(path.parents)) or on_spark(path)


def needs_more(path):
    """Whether a module can only be imported where other libraries are."""
    return columnar(path) or path in KIT


def on_spark(path):
    """Whether a module is of the Spark host, or is loaded for a command that asks for it."""
    return SPARK in path.parents or path == TOOLS / "commands" / "run_spark.py"


@pytest.mark.parametrize(
    "alone",
    [
        pytest.param(True, id="the library"),
        pytest.param(False, id="its arrays", marks=pytest.mark.long),
    ],
)
def test_every_module_can_be_the_first_to_be_imported(alone):
    skipped = {"__main__"} if importlib.util.find_spec("numba") else {"__main__", *COMPILED}
    kept = [path for path in FILES if path.stem not in skipped]
    names = [module_of(path) for path in kept if needs_more(path) != alone]
    code = f"""
import importlib, sys
for name in {names!r}:
    for loaded in [m for m in sys.modules if m.partition(".")[0] == "windowlib"]:
        del sys.modules[loaded]
    importlib.import_module(name)
print("all")
"""
    assert "all\n" == python(code, alone=alone)


HEAVY = {"hypothesis", "numpy", "pandas", "pyarrow", "pyspark", "sortedcontainers"}


def test_the_testing_kit_needs_neither_pytest_nor_hypothesis_to_be_imported():
    shown = [name for name in windowlib_testing_names() if name != "strategies"]
    code = f"import sys\nfrom windowlib.testing import {', '.join(shown)}\nprint(*sys.modules)"
    loaded = tops(python(code).split())
    assert not loaded & (HEAVY | {"pytest", "_pytest"})


def windowlib_testing_names():
    import windowlib.testing

    return windowlib.testing.__all__


def test_the_pytest_plugin_loads_no_more_than_pytest_and_the_library():
    code = """
import sys, pytest
before = set(sys.modules)
import windowlib.testing.plugin
print(*(set(sys.modules) - before))
"""
    loaded = python(code, alone=False).split()
    assert not tops(loaded) & HEAVY
    kit = {name for name in loaded if name.startswith("windowlib.testing")}
    assert {"windowlib.testing", "windowlib.testing.plugin"} == kit


# -- who knows whom --


def imports(tree, *, anywhere):
    """The modules that a file imports: when it is imported itself, or in any of its functions."""
    for node in ast.walk(tree) if anywhere else top_level(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def top_level(node):
    """Statements that run at import, which excludes functions and `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from top_level(child)


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


@functools.cache
def known(path, *, anywhere):
    return frozenset(imports(tree_of(path), anywhere=anywhere))


def tops(names):
    return {name.partition(".")[0] for name in names}


# What the command line is made of may use the operators, when it runs.
TEXTS = {TOOLS / "commands" / name for name in ("operator_text.py", "call_text.py")}
USERS = {TOOLS / "demo.py", *TEXTS}


@pytest.mark.parametrize("path", [p for p in FILES if p not in USERS], ids=module_of)
def test_windowlib_does_not_know_the_operators(path):
    assert not [name for name in known(path, anywhere=True) if "operators" in name.split(".")]
    assert not tops(known(path, anywhere=True)) & {"tests", "bench", "examples"}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_imports_the_standard_library_and_windowlib(path):
    arrays = {"numpy", "pyarrow"} if columnar(path) else set()
    arrays |= {"pyspark"} if on_spark(path) else set()
    arrays |= {"cloudpickle"} if FARMS in path.parents else set()
    compiled = {"numba"} if columnar(path) and path.stem in COMPILED else set()
    ours = {"windowlib"} | arrays | compiled | KIT.get(path, set())
    assert tops(known(path, anywhere=False)) <= sys.stdlib_module_names | ours


@pytest.mark.parametrize("path", OPERATORS, ids=module_of)
def test_an_operator_imports_the_standard_library_windowlib_and_other_operators(path):
    ours = {"windowlib"} | ({"numpy", "pyarrow"} if path in LATER else set())
    assert tops(known(path, anywhere=False)) <= sys.stdlib_module_names | ours
    later = {"sortedcontainers", "numpy", "pyarrow"} | ({"pyspark"} if path in TYPED else set())
    assert tops(known(path, anywhere=True)) <= sys.stdlib_module_names | ours | later


# What an operator imports with its first batch.
TYPED = {PACKAGE / "operators" / "functions" / "call.py"}  # a type that its functions take
LATER = {PACKAGE / "operators" / "join" / "batches.py"}
OTHERS = [path for path in [*FILES, *OPERATORS] if not columnar(path) and path not in LATER]


@pytest.mark.parametrize("path", OTHERS, ids=module_of)
def test_the_arrays_are_imported_by_the_first_batch_and_not_before(path):
    assert not [name for name in known(path, anywhere=False) if "columnar" in name.split(".")]


# -- layers and walls --

# A room imports from its own and from those with a smaller number, in functions and for types too.
LAYERS = {
    **dict.fromkeys(("errors", "durations", "extensions"), 0),
    **dict.fromkeys(("spec", "attributes", "event_time"), 1),
    "summaries": 2,
    "window": 3,
    "runtime": 4,
    **dict.fromkeys(("columnar", "control", "workload"), 5),
    "farms": 6,
    "spark": 7,
    **dict.fromkeys(("samples", "testing", "tools"), 8),
    "operators": 9,
}
# The record of one partition: windows fill it, and summaries have slots in it.
SHARED = {"windowlib.window.subwindow"}
ROOMS = [path for path in [*FILES, *OPERATORS] if len(module_of(path).split(".")) > 2]


def room_of(module):
    return module.split(".")[1] if module.count(".") else ""


def upward(path):
    """What a module imports from rooms above its own, wherever in the file."""
    own = LAYERS[room_of(module_of(path))]
    found = [name for name in known(path, anywhere=True) if name.startswith("windowlib.")]
    return [
        name
        for name in found
        if LAYERS.get(room_of(name), 0) > own and not any(name.startswith(s) for s in SHARED)
    ]


@pytest.mark.parametrize("path", [path for path in ROOMS if path not in USERS], ids=module_of)
def test_a_room_imports_from_the_rooms_below_it(path):
    assert [] == upward(path)


def test_every_room_has_its_place_in_the_layers():
    rooms = {room_of(module_of(path)) for path in ROOMS}
    assert rooms <= LAYERS.keys()
    assert {"spec", "window", "runtime", "columnar", "spark"} <= rooms


ON_SPARK = ("pyspark", "windowlib.spark", "tests.spark")
MODULE = re.compile(r"^(?:from|import) (\S+)(?: import (\w+))?", re.MULTILINE)


def reached(paths):
    """What modules of the tests import when they are imported, themselves or through each other."""
    todo, seen, found = list(paths), set(), set()
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        names = {
            name for pair in MODULE.findall(path.read_text()) for name in (pair[0], ".".join(pair))
        }
        found |= names
        todo += [ROOT.joinpath(*n.split(".")).with_suffix(".py") for n in names if n[:5] == "tests"]
    return found


def test_the_tests_of_the_core_are_imported_without_spark():
    """In the environments of `make test-versions` with other Pythons there is none."""
    tests = [path for folder in CORE for path in (ROOT / folder).rglob("test_*.py")]
    assert len(tests) > 50
    assert [] == [name for name in reached(tests) if name.startswith(ON_SPARK)]
    helper = ROOT / "tests" / "spark" / "test_formats.py"
    assert "windowlib.spark.plan.shuffle.PackedRows" in reached([helper])  # by what it imports


WINDOW = re.compile(r"(^|[._])(window|w|container)$")


def private_names_of_windows(tree):
    """Where something that is called a window is asked for a private name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            owner = ast.unparse(node.value)
            if WINDOW.search(owner):
                yield f"{owner}.{node.attr}"


OUTSIDE = [p for p in [*FILES, *OPERATORS] if PACKAGE / "window" not in p.parents]


@pytest.mark.parametrize("path", OUTSIDE, ids=module_of)
def test_a_window_is_asked_through_its_state(path):
    assert [] == list(private_names_of_windows(tree_of(path)))


def test_the_check_of_private_names_can_fail():
    text = "window._now\nself.window._subs[key]\nside.w._tick\nself._window()\nwindow.state.now"
    found = ["window._now", "self.window._subs", "side.w._tick"]
    assert sorted(found) == sorted(private_names_of_windows(ast.parse(text)))


def test_every_extension_is_where_it_is_registered():
    places = registered()
    assert {"handover", "spark_attach", "operator_html"} <= places.keys()
    ours = {name: place for name, place in places.items() if place.startswith("windowlib.")}
    for name, place in ours.items():
        module, _, attribute = place.partition(":")
        path = PACKAGE.joinpath(*module.split(".")[1:])
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        defined = {getattr(node, "name", "") for node in ast.parse(source.read_text()).body}
        assert attribute in defined, name


def test_an_extension_is_loaded_when_it_is_asked_for():
    code = """
import sys
import windowlib
from windowlib.extensions import extension, register
before = "windowlib.tools.notebook" in sys.modules
extension("spec_html")
print(before, "windowlib.tools.notebook" in sys.modules)
register("greeting", "string:digits")
first = extension("greeting")
register("greeting", "string:hexdigits")
print(first, extension("greeting"))
"""
    assert "False True\n0123456789 0123456789abcdefABCDEF\n" == python(code)


def is_core(path):
    if {TOOLS, SPARK, TESTING, WORKLOAD} & set(path.parents):
        return False
    return path.parent != PACKAGE


@pytest.mark.parametrize("path", [path for path in FILES if is_core(path)], ids=module_of)
def test_the_core_does_not_know_the_tools(path):
    assert not [name for name in known(path, anywhere=False) if name.startswith("windowlib.tools")]


def test_there_are_core_modules_and_tools_to_look_at():
    core = {path.stem for path in FILES if is_core(path)}
    assert {"container", "tumbling", "sliding", "policies", "generated"} <= core
    assert not core & {"command_line", "tracing"}


def test_the_checks_of_imports_can_fail(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import numpy\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import pandas\n"
        "try:\n    import pyarrow\nexcept ImportError: pass\n"
        "class C:\n    from operators import agg\n    def f(self):\n        import pyspark.sql\n"
    )
    always = {"numpy", "pyarrow", "operators", "typing"}
    assert always == tops(known(path, anywhere=False))
    assert always | {"pandas", "pyspark"} == tops(known(path, anywhere=True))
