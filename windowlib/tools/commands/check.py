"""`windowlib check`: validates an operator, and shows its model and schemas."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from windowlib.errors import WindowlibError
from windowlib.runtime.operator import Operator
from windowlib.runtime.schema_text import WORDS, schema_of
from windowlib.tools.commands.operator_text import operator_of
from windowlib.tools.commands.usage import CheckError, UsageError, one_line

NAMED = re.compile(r"(?P<port>[A-Za-z_]\w*)=(?P<columns>.*)", re.DOTALL)


def add(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser("check", help="model, punctuation and columns of an operator")
    parser.add_argument("operator", metavar="OPERATOR", help="job.py:name, or an expression")
    parser.add_argument(
        "--schema",
        metavar="COLUMNS",
        action="append",
        default=[],
        help='the columns of the input, as "symbol string, price double"; port=COLUMNS of several',
    )
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a description of the operator; an error in it is exit code 1."""
    try:
        operator = operator_of(arguments.operator)
        columns = _columns(operator, arguments.schema)
        lines = [operator.explain(*columns), *_schemas(operator, columns)]
    except WindowlibError as error:
        raise CheckError(one_line(error)) from None
    print("\n".join(lines))
    print(f"{operator.name} is right.")
    return 0


def _columns(operator: Operator, given: Sequence[str]) -> list[Any]:
    """The Arrow schema of each input, None where nothing was said."""
    ports = [port.name for port in operator.model.inputs]
    found: dict[str, Any] = {}
    for text in given:
        named = NAMED.fullmatch(text)
        free = next((port for port in ports if port not in found), None)
        port = named["port"] if named else free
        if port not in ports or port in found:
            have = f"The operator has {len(ports)}: {', '.join(ports)}."
            raise UsageError(f"--schema {text!r}: no input is left for it. {have}")
        found[port] = schema_option(named["columns"] if named else text)
    for number, port in enumerate(ports):
        if port in found:
            operator.check_columns(found[port].names, number)
            operator.check_types(found[port], number)
    return [found.get(port) for port in ports] if found else []


def schema_option(text: str) -> Any:
    """The Arrow schema of a `--schema` option."""
    try:
        return schema_of(text, "--schema")
    except WindowlibError as error:  # what was typed is wrong, not the operator
        raise UsageError(one_line(error)) from None


def _schemas(operator: Operator, columns: Sequence[Any]) -> list[str]:
    """The schema of each output, if the columns of the input are known."""
    if not columns or None in columns:
        return []
    outputs = zip(operator.model.outputs, operator.schemas(*columns), strict=True)
    return [
        f"{'schema':<12} {output.name}: {'as the rows are' if made is None else ddl(made)}"
        for output, made in outputs
    ]


def ddl(schema: Any) -> str:
    """An Arrow schema in the words of Spark, as `--schema` takes it.

    >>> ddl(schema_of("symbol string, days array<int>, late interval day to second", "x"))
    'symbol string, days array<int>, late interval day to second'
    """
    return ", ".join(f"{_name(field.name)} {_type(field.type)}" for field in schema)


def _name(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


def _type(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_duration(kind):
        return "interval day to second"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_type(kind.key_type)}, {_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{_name(f.name)}: {_type(f.type)}' for f in kind)}>"
    words = (word for word, made in WORDS.items() if getattr(pa, made)() == kind)
    return next(words, str(kind))
