"""Columns as text, in the words of Spark's DDL, and the Arrow schema they stand for.

symbol string, price decimal(10, 2), tags array<string>, `last seen` timestamp NOT NULL
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from windowlib.errors import SchemaError, suggestion

USUAL = "Use string, double, bigint, timestamp, or another type of Spark"
SAMPLE = '"symbol string, peak double"'

# Words of Spark for one Arrow type each; pyarrow is asked for it by name when it is needed.
WORDS = {
    "string": "string",
    "double": "float64",
    "float": "float32",
    "real": "float32",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "smallint": "int16",
    "short": "int16",
    "tinyint": "int8",
    "byte": "int8",
    "boolean": "bool_",
    "binary": "binary",
    "date": "date32",
    "void": "null",
}
STAMPS = {"timestamp": "UTC", "timestamp_ltz": "UTC", "timestamp_ntz": None}
DECIMALS = ("decimal", "dec", "numeric")
NESTED = ("array", "struct", "map")
INTERVAL = "interval"
DAY_TIME = ("day", "hour", "minute", "second")
"""The units of an interval that is a duration; years and months have no fixed length."""
KNOWN = (*WORDS, *STAMPS, *DECIMALS, *NESTED, INTERVAL, "varchar", "char")
PRECISION = 38

TOKEN = re.compile(r"\s*(?:`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|\w+|[<>(),:])")


def schema_of(text: str, owner: str) -> Any:
    """The Arrow schema of a text such as "symbol string, peak double".

    Args:
        text: names and types, as Spark writes them: `name type` or `name: type`, with or without
            NOT NULL and COMMENT.
        owner: what messages say before the text.

    >>> print(schema_of("symbol string, days array<int>", "Spread.output"))
    symbol: string
    days: list<element: int32>
      child 0, element: int32
    """
    import pyarrow as pa

    if not isinstance(text, str):
        raise SchemaError(f"{owner} = {text!r}: not a text. Write {owner} = {SAMPLE}.")
    return pa.schema(_Parser(text, owner).whole())


def columns_of(text: str, owner: str) -> list[str]:
    """The names of the columns of such a text; what is wrong with its types is not seen.

    >>> columns_of("symbol string, pair struct<a: int, b: int>, `odd name` double", "Spread.output")
    ['symbol', 'pair', 'odd name']
    """
    return _Parser(text, owner).names() if isinstance(text, str) else []


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str, owner: str) -> None:
        self._text, self._owner = text, owner
        self._tokens = list(self._cut(text))
        self._at = 0

    def _cut(self, text: str) -> Any:
        at, end = 0, len(text.rstrip())
        while at < end:
            found = TOKEN.match(text, at)
            if found is None:
                rest = text[at:].strip()
                self._refuse(f"{rest[0]!r} is no part of a name or a type", "Put odd names in `…`")
            yield found[0].lstrip()
            at = found.end()

    def _refuse(self, why: str, fix: str = f"Write columns as in {SAMPLE}") -> NoReturn:
        stop = "" if fix.endswith("?") else "."
        raise SchemaError(f"{self._owner} = {self._text!r}: {why}. {fix}{stop}")

    # -- tokens -----------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, token: str) -> bool:
        """Whether this comes next; then it is behind us."""
        if self._peek().lower() != token:
            return False
        self._at += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            seen = f", where {self._peek()!r} is" if self._peek() else ""
            self._refuse(f"{token!r} is missing after {self._tokens[self._at - 1]!r}{seen}")

    def names(self) -> list[str]:
        """The first token of each column."""
        found, depth, first = [], 0, True
        for token in self._tokens:
            if first:
                found.append(token.strip("`").replace("``", "`"))
            depth += (token in "<(") - (token in ">)")
            first = token == "," and depth == 0
        return found

    # -- grammar ----------------------------------------------------------------------------------

    def whole(self) -> list[Any]:
        """All columns."""
        fields = self._fields("")
        if self._peek():
            self._refuse(f"there is {self._peek()!r} where a comma or the end should be")
        return fields

    def _fields(self, close: str) -> list[Any]:
        """Columns up to a bracket, or to the end."""
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        if close:
            self._expect(close)
        names = [field.name for field in fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            self._refuse(f"two columns are called {twice!r}", "Rename one of them")
        return fields

    def _field(self) -> Any:
        import pyarrow as pa

        name = self._name()
        self._take(":")
        kind = self._type(f"column {name!r}")
        nullable = True
        if self._take("not"):
            self._expect("null")
            nullable = False
        if self._take("comment"):
            self._next()
        return pa.field(name, kind, nullable)

    def _name(self) -> str:
        token = self._next()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not token or not (token[0].isalnum() or token[0] == "_"):
            self._refuse(f"a column name is missing{f' before {token!r}' if token else ''}")
        return token

    def _type(self, of: str) -> Any:
        import pyarrow as pa

        given = self._next()
        word = given.lower()
        if not word or not word[0].isalpha():
            self._refuse(f"{of} has no type")
        if word not in KNOWN:
            near = suggestion(word, KNOWN).strip()
            self._refuse(f"{of}: there is no type {given!r}", near or USUAL)
        if word in WORDS:
            return getattr(pa, WORDS[word])()
        if word in STAMPS:
            return pa.timestamp("us", STAMPS[word])
        if word in DECIMALS:
            return self._decimal(given)
        if word in NESTED:
            return self._nested(word, of)
        if word == INTERVAL:
            return self._interval(of)
        self._numbers(given, 1)  # of a text, which may be any length in Arrow
        return pa.string()

    def _interval(self, of: str) -> Any:
        import pyarrow as pa

        first = self._next().lower()
        last = self._next().lower() if self._take("to") else first
        units = [DAY_TIME.index(unit) for unit in (first, last) if unit in DAY_TIME]
        if len(units) != 2 or (first != last and units[0] >= units[1]):
            self._refuse(
                f"{of}: an interval is of days, hours, minutes and seconds",
                "Write interval day to second",
            )
        return pa.duration("us")

    def _decimal(self, word: str) -> Any:
        import pyarrow as pa

        given = self._numbers(word, 2) or [10]
        precision, scale = given if len(given) == 2 else (given[0], 0)
        if not (1 <= precision <= PRECISION and scale <= precision):
            self._refuse(
                f"there is no {word}({precision}, {scale})",
                f"Use up to {PRECISION} digits, and no more of them behind the point",
            )
        return pa.decimal128(precision, scale)

    def _numbers(self, word: str, most: int) -> list[int]:
        """Numbers in brackets, if there are any."""
        if not self._take("("):
            return []
        found: list[int] = []
        while not found or self._take(","):
            token = self._next()
            if not token.isdecimal() or len(found) == most:
                self._refuse(
                    f"{word}(…) takes {'one number' if most == 1 else 'up to two numbers'}"
                )
            found.append(int(token))
        self._expect(")")
        return found

    def _nested(self, word: str, of: str) -> Any:
        import pyarrow as pa

        self._expect("<")
        if word == "struct":
            return pa.struct(self._fields(">"))
        first = self._type(f"{word} of {of}")
        if word == "array":
            self._expect(">")
            return pa.list_(pa.field("element", first))
        self._expect(",")
        second = self._type(f"{word} of {of}")
        self._expect(">")
        return pa.map_(first, second)
