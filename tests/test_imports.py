"""What `import windowlib` needs, does and costs, and which module may know which."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "windowlib"
FILES = sorted(PACKAGE.rglob("*.py"))
OPERATORS = sorted((ROOT / "operators").rglob("*.py"))
COLUMNAR = PACKAGE / "columnar"
SPARK = PACKAGE / "spark"
FARMS = PACKAGE / "farms"
WORKLOAD = PACKAGE / "workload"
TESTING = PACKAGE / "testing"
COMMANDS = PACKAGE / "commands"
# Those of the testing kit that are of no use without the library they are for.
KIT = {TESTING / "plugin.py": {"pytest"}, TESTING / "strategies.py": {"hypothesis"}}
COMPILED = {"compiled", "speed"}  # need numba, and are loaded where it is installed
# What is built on the library, and what the command line is made of.
TOOLS = {"cli", "conformance", "demo", "plots", "samples", "svg", "timeline", "trace"}
TOOLS |= {"drawing", "layers", "listing", "notebook"}


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


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
        timeout=60,
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
    tools = ("cli", "commands", "conformance", "demo", "drawing", "listing", "notebook", "samples")
    for tool in (*tools, "testing"):
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
    """Whether a module is of the Spark host."""
    return SPARK in path.parents


@pytest.mark.parametrize("alone", [True, False], ids=["the library", "its arrays"])
def test_every_module_can_be_the_first_to_be_imported(alone):
    skipped = {"__main__"} if importlib.util.find_spec("numba") else {"__main__", *COMPILED}
    kept = [path for path in FILES if path.stem not in skipped and path != FACADE]
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


def known(path, *, anywhere):
    return set(imports(ast.parse(path.read_text()), anywhere=anywhere))


def tops(names):
    return {name.partition(".")[0] for name in names}


FACADE = PACKAGE / "operators.py"  # shows the operators under our name, and does nothing else
# What the command line is made of may use them, when it runs.
USERS = {PACKAGE / "demo.py"}


@pytest.mark.parametrize("path", [p for p in FILES if p not in {FACADE} | USERS], ids=module_of)
def test_windowlib_does_not_know_the_operators(path):
    assert "operators" not in tops(known(path, anywhere=True))
    assert not tops(known(path, anywhere=True)) & {"tests", "bench", "examples"}


def test_the_operators_have_our_name_too():
    import operators
    from windowlib import operators as ours

    assert sorted(operators.__all__) == sorted(ours.__all__)
    assert all(getattr(operators, name) is getattr(ours, name) for name in operators.__all__)


@pytest.mark.parametrize("path", [p for p in FILES if p != FACADE], ids=module_of)
def test_a_module_imports_the_standard_library_and_windowlib(path):
    arrays = {"numpy", "pyarrow"} if columnar(path) else set()
    arrays |= {"pyspark"} if on_spark(path) else set()
    compiled = {"numba"} if columnar(path) and path.stem in COMPILED else set()
    ours = {"windowlib"} | arrays | compiled | KIT.get(path, set())
    assert tops(known(path, anywhere=False)) <= sys.stdlib_module_names | ours


@pytest.mark.parametrize("path", OPERATORS, ids=module_of)
def test_an_operator_imports_the_standard_library_windowlib_and_other_operators(path):
    ours = {"windowlib", "operators"}
    assert tops(known(path, anywhere=False)) <= sys.stdlib_module_names | ours
    later = {"sortedcontainers", "numpy", "pyarrow"}
    assert tops(known(path, anywhere=True)) <= sys.stdlib_module_names | ours | later


OTHERS = [path for path in [*FILES, *OPERATORS] if not columnar(path) and path != FACADE]


@pytest.mark.parametrize("path", OTHERS, ids=module_of)
def test_the_arrays_are_imported_by_the_first_batch_and_not_before(path):
    assert not [name for name in known(path, anywhere=False) if "columnar" in name.split(".")]


def is_core(path):
    if COMMANDS in path.parents:
        return False
    return not TOOLS & {path.stem} and path.stem != "__main__" and path != PACKAGE / "__init__.py"


@pytest.mark.parametrize("path", [path for path in FILES if is_core(path)], ids=module_of)
def test_the_core_does_not_know_the_tools(path):
    tools = {f"windowlib.{tool}" for tool in (*TOOLS, "commands")}
    assert not known(path, anywhere=False) & tools


def test_there_are_core_modules_and_tools_to_look_at():
    stems = {path.stem for path in FILES}
    assert {"window", "tumbling", "sliding", "policies", "generated"} <= stems
    assert {"cli", "trace"} <= stems & TOOLS


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


# -- size --


@pytest.mark.parametrize("path", [*FILES, *OPERATORS], ids=module_of)
def test_a_module_fits_in_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400
