"""The OPERATOR argument of commands: an expression, or `job.py:name`."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from windowlib.errors import WindowlibError, suggestion
from windowlib.runtime.operator import Operator
from windowlib.tools.commands.usage import UsageError, error_text

JOB = re.compile(r"[\w./-]+\.py")
PLACE = re.compile(r"(?P<module>[^()\s=]+):(?P<name>[A-Za-z_][\w.]*)")
SAMPLE = "Aggregate(Tumbling(Count(10)), n=agg.count())"
# All that an expression may call of Python itself.
BUILTINS = (
    *("abs", "bool", "dict", "float", "int", "len", "list", "max", "min", "range", "round"),
    *("set", "sorted", "str", "sum", "tuple"),
)


def operator_of(text: str) -> Operator:
    """The operator of an expression, or of `job.py:name`.

    >>> operator_of("Batch(Count(3))")
    Batch(Count(size=3))
    """
    if JOB.fullmatch(text.strip()):
        raise UsageError(f"{text}: which operator of it? Write {text}:name.")
    place = PLACE.fullmatch(text.strip())
    found = from_module(place["module"], place["name"]) if place else expression_value(text)
    if not isinstance(found, Operator):
        fix = f"{found.__name__}(...)" if isinstance(found, type) else f"one, such as {SAMPLE}"
        what = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise UsageError(f"{text}: {what}, not an operator. Give {fix}.")
    return found


# -- expressions ----------------------------------------------------------------------------------


def expression_names() -> dict[str, Any]:
    """The names in expressions: those of windowlib and the operators, and a few of Python."""
    import builtins
    from datetime import UTC, datetime, timedelta

    import windowlib
    from windowlib import operators

    found = {name: getattr(windowlib, name) for name in windowlib.__all__}
    found |= {name: getattr(operators, name) for name in operators.__all__}
    found |= {name: getattr(builtins, name) for name in BUILTINS}
    return found | {"UTC": UTC, "datetime": datetime, "timedelta": timedelta}


def expression_value(text: str) -> Any:
    """The value of an expression, which may use `expression_names()` and nothing else."""
    known = expression_names()
    code = _compile(text, known)
    try:
        return eval(code, {"__builtins__": {}, **known})
    except WindowlibError:
        raise
    except Exception as error:
        raise UsageError(f"{text}: {error_text(error)}") from None


def _compile(text: str, known: dict[str, Any]) -> CodeType:
    try:
        tree = ast.parse(text.strip(), "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        msg = f"{text!r} is neither an expression ({said}) nor job.py:name."
        raise UsageError(f"{msg} Write one, such as {SAMPLE}") from None
    own = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    own |= {
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise UsageError(f"{text}: .{node.attr} is not for expressions. Put it into a job.py.")
        if isinstance(node, ast.Name) and node.id not in known and node.id not in own:
            near = suggestion(node.id, known) or " Operators, policies, agg and col are there."
            raise UsageError(f"{text}: there is no {node.id!r}.{near}")
    return compile(tree, "<expression>", "eval")


# -- jobs -----------------------------------------------------------------------------------------


def from_module(module: str, name: str) -> Any:
    """The object `name` of a file or a module."""
    found: Any = load_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            near = suggestion(part, vars(found)) or _operators(found)
            raise UsageError(f"{module}: there is no {name!r} in it.{near}")
        found = getattr(found, part)
    return found


def _operators(module: Any) -> str:
    known = [name for name, each in vars(module).items() if isinstance(each, Operator)]
    return f" Operators: {', '.join(known)}." if known else " It has no operators."


def load_module(module: str) -> ModuleType:
    """A module by its name, or by that of its file; the folder of a file can be imported from."""
    is_file = module.endswith(".py") or "/" in module
    if is_file and not Path(module).is_file():
        raise UsageError(f"{module}: there is no such file.")
    folder = str(Path(module).resolve().parent) if is_file else str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for rows
            return _from_file(Path(module)) if is_file else importlib.import_module(module)
    except WindowlibError:
        raise
    except SystemExit:
        fix = 'Put what is not for loading under `if __name__ == "__main__":`.'
        raise UsageError(f"{module}: it ends the program when it is loaded. {fix}") from None
    except SyntaxError as error:
        file = error.filename or module  # of a module that it imports, perhaps
        where = module if Path(file).name == Path(module).name else file
        raise UsageError(f"{where}, line {error.lineno}: SyntaxError: {error.msg}") from None
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0] and not is_file:
            msg = f"{module}: there is no such module. For a file, write {module}.py:name."
            raise UsageError(msg) from None
        raise UsageError(f"{module}{_line_text(error, module)}: {error_text(error)}") from None
    except Exception as error:
        raise UsageError(f"{module}{_line_text(error, module)}: {error_text(error)}") from None


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None  # of a file that ends in .py, there always is one
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # where dataclasses and pickle look for it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        if before is not None:
            sys.modules[path.stem] = before
        raise
    return module


def _line_text(error: Exception, module: str) -> str:
    """The line of a module where an error was raised, if it is known."""
    name = Path(module).name
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if
             Path(at.filename).name == name]  # fmt: skip
    return f", line {lines[-1]}" if lines else ""
