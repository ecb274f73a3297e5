"""Random streams as Arrow tables: columns of every type, cut into batches of every form."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NAN, INF = float("nan"), float("inf")
NOON = dt.datetime(2024, 2, 29, 12)
LONG = "a text that is far too long for a few words of eight bytes each"


@dataclass(frozen=True)
class Kind:
    """An Arrow type: values that ascend with their number, and unusual ones."""

    type: Any
    nth: Callable[[int], Any]
    odd: tuple[Any, ...] = ()
    form: str = ""  # or "dictionary", or "runs"

    @property
    def number(self) -> bool:
        """Whether one can compute with it."""
        types = pa.types
        return bool(
            types.is_integer(self.type)
            or types.is_floating(self.type)
            or types.is_decimal(self.type)
            or types.is_boolean(self.type)
        )

    @property
    def arrow(self) -> Any:
        """The type that batches have."""
        if self.form == "runs":
            return pa.run_end_encoded(pa.int32(), self.type)
        return pa.dictionary(pa.int16(), self.type) if self.form else self.type


def _steps(unit: str, i: int) -> dt.timedelta:
    """Whole units, so that nothing is lost in them."""
    return {
        "s": dt.timedelta(seconds=i),
        "ms": dt.timedelta(milliseconds=250 * i),
        "us": dt.timedelta(microseconds=333 * i),
    }[unit]


def _instant(unit: str, i: int) -> dt.datetime:
    return NOON + _steps(unit, i)


def _text(i: int) -> str:
    return f"{i + 1000}" + ("and so on" if i % 5 == 4 else "")


def _timely() -> dict[str, Kind]:
    made: dict[str, Kind] = {}
    for unit in ("s", "ms", "us"):
        for zone in (None, "UTC", "+02:00", "Europe/Berlin"):
            # Hours that a zone's clocks show twice are odd, and so are times long ago.
            days = (1970, 1, 1), (2023, 10, 29, 0, 30), (1900, 5, 5)
            odd = tuple(dt.datetime(*day) for day in days)
            made[f"timestamp {unit} {zone}"] = Kind(
                pa.timestamp(unit, zone), partial(_instant, unit), odd
            )
        made[f"duration {unit}"] = Kind(
            pa.duration(unit), partial(_steps, unit), (dt.timedelta(0),)
        )
    made["date"] = Kind(pa.date32(), lambda i: NOON.date() + dt.timedelta(i))
    made["date in ms"] = Kind(pa.date64(), lambda i: NOON.date() + dt.timedelta(i))
    made["time"] = Kind(pa.time64("us"), lambda i: (NOON + _steps("us", i)).time())
    return made


def _floats() -> dict[str, Kind]:
    made: dict[str, Kind] = {}
    for bits in (32, 64):
        kind = getattr(pa, f"float{bits}")()
        made[f"float{bits}"] = Kind(kind, lambda i: i / 10, (0.0, 0.0, -0.0, 2.5))
        made[f"float{bits} with NaN"] = Kind(kind, lambda i: i / 8, (NAN, NAN, INF, -INF))
    made["large floats"] = Kind(pa.float64(), float, (1e16, -1e16, 1e15, 1e-3, 1e10, -1e10))
    made["huge floats"] = Kind(pa.float64(), float, (1e300, -1e300, 1e-300, -1e-300))
    return made


def _whole() -> dict[str, Kind]:
    made: dict[str, Kind] = {}
    for bits in (8, 16, 32, 64):
        top = 2 ** (bits - 1) - 1
        made[f"int{bits}"] = Kind(getattr(pa, f"int{bits}")(), lambda i: i, (top, -top, -top - 1))
        made[f"uint{bits}"] = Kind(
            getattr(pa, f"uint{bits}")(), lambda i: i + 20, (0, top, 2 * top + 1)
        )
    large = (2**53 + 1, -(2**53) - 1, 2**40, 2**58, -(2**60))
    made["large ints"] = Kind(pa.int64(), lambda i: i, large)
    return made


KINDS: dict[str, Kind] = {
    **_whole(),
    **_floats(),
    **_timely(),
    "bool": Kind(pa.bool_(), lambda i: i % 2 == 0),
    "decimal": Kind(pa.decimal128(7, 2), lambda i: Decimal(i).scaleb(-2)),
    "large decimal": Kind(
        pa.decimal128(38, 3), lambda i: Decimal(i).scaleb(-3), (Decimal(10**18), Decimal(10**30))
    ),
    "string": Kind(pa.string(), _text, ("", "ä", "a\0", LONG)),
    "large string": Kind(pa.large_string(), _text, ("", LONG)),
    "string view": Kind(pa.string_view(), _text, ("", LONG)),
    "bytes": Kind(pa.binary(), lambda i: _text(i).encode(), (b"", b"\xff")),
    "dictionary": Kind(pa.string(), _text, ("", LONG), "dictionary"),
    "dictionary of ints": Kind(pa.int64(), lambda i: i, (), "dictionary"),
    "dictionary of floats": Kind(pa.float64(), lambda i: i / 10, (), "dictionary"),
    "runs": Kind(pa.int32(), lambda i: i, (), "runs"),
    "null": Kind(pa.null(), lambda i: None),
    "list": Kind(pa.list_(pa.int64()), lambda i: [i, 1]),
    "struct": Kind(pa.struct({"a": pa.int64()}), lambda i: {"a": i}),
}
NUMBERS = [name for name, kind in KINDS.items() if kind.number]
NESTED = ["list", "struct"]
UNORDERED = [*NESTED, "null"]
KEYS = [name for name in KINDS if name not in (*NESTED, "large ints", "huge floats")]
# Attributes of delta policies, with thresholds that fit them.
SPELLS = [_steps("us", 3), _steps("ms", 3), _steps("s", 2), dt.timedelta(0)]
DELTAS: dict[str, list[Any]] = {
    **{
        name: [0, 1, 3, 6, 2.5, 40, 10**20, -1, INF, Decimal("2.5")]
        for name in ("int16", "int32", "int64", "uint16", "uint64", "dictionary of ints", "runs")
    },
    "large ints": [0, 3, 2**53, 2**62, 1e18],
    **{
        name: [0, 1, 0.3, 0.1, 0.6, 5, -0.5, INF, 2**60]
        for name in ("float64", "float32", "float64 with NaN", "dictionary of floats")
    },
    "decimal": [0, 1, Decimal("0.03"), Decimal("0.05"), Decimal("0.015"), 0.05],
    **{name: SPELLS for name in _timely() if name.startswith("timestamp")},
    "date": [dt.timedelta(days) for days in (0, 1, 3)],
}


@dataclass(frozen=True)
class Values:
    """Where the values of a column come from."""

    kind: str
    later: str = ""  # the kind from some batch on
    width: int = 20  # how many different ones
    odd: float = 0.0  # the share of odd ones
    nulls: float = 0.0
    ascends: bool = False  # as delta attributes do
    back: float = 0.0  # and how often they go back


@dataclass(frozen=True)
class Batch:
    """Some rows, and the form in which they come."""

    size: int
    form: str = "batch"


@dataclass(frozen=True)
class Other:
    """Something else that happens: punctuate, restart or advance."""

    what: str


@dataclass
class Stream:
    """Columns, and what comes in."""

    columns: dict[str, Values]
    steps: list[Batch | Other]
    seed: int
    turns: int  # the step from which on batches are different
    later: tuple[str, ...] = ()  # the columns that they have then, and in which order

    def schema(self, late: bool = False) -> Any:
        """The schema of its batches."""
        names = self.later if late and self.later else self.columns
        metadata = {"late": "yes"} if late else None
        return pa.schema({name: self.kind(name, late).arrow for name in names}, metadata)

    def kind(self, name: str, late: bool = False) -> Kind:
        values = self.columns[name]
        return KINDS[values.later if late and values.later else values.kind]

    def items(self) -> list[tuple[str, Any]]:
        """What comes in, with the rows made."""
        rngs = {name: Random(f"{self.seed} {name}") for name in self.columns}
        cuts, at = Random(self.seed), dict.fromkeys(self.columns, 0)
        found: list[tuple[str, Any]] = []
        for number, step in enumerate(self.steps):
            if isinstance(step, Other):
                found.append((step.what, None))
                continue
            late = number >= self.turns
            columns = {
                name: [self._value(name, rngs[name], at, late) for _ in range(step.size)]
                for name in self.columns
            }
            found.append((_way(step.form), self._formed(columns, step, late, cuts)))
        return found

    def _value(self, name: str, rng: Random, at: dict[str, int], late: bool) -> Any:
        values, kind = self.columns[name], self.kind(name, late)
        if values.ascends:
            step = rng.choice([0, 0, 1, 1, 1, 2, 3, 7])
            at[name] += -rng.randint(1, 5) if rng.random() < values.back else step
        number = at[name] if values.ascends else rng.randrange(values.width) - values.width // 2
        if rng.random() < values.nulls:
            return None
        if kind.odd and rng.random() < values.odd:
            return rng.choice(kind.odd)
        return kind.nth(number)

    def _formed(self, columns: dict[str, list[Any]], step: Batch, late: bool, rng: Random) -> Any:
        schema = self.schema(late)

        def made(lo: int, hi: int) -> Any:
            arrays = [
                _array(self.kind(name, late), columns[name][lo:hi], rng) for name in schema.names
            ]
            return pa.RecordBatch.from_arrays(arrays, schema=schema)

        n = step.size
        if step.form == "chunks":
            cuts = sorted(rng.randint(0, n) for _ in range(rng.randint(0, 4)))
            edges = zip([0, *cuts], [*cuts, n], strict=True)
            return pa.Table.from_batches([made(lo, hi) for lo, hi in edges], schema)
        if step.form == "sliced" and n:
            front, back = rng.randint(0, 9), rng.randint(0, 9)
            around = {name: [v[0]] * front + v + [v[-1]] * back for name, v in columns.items()}
            columns = around
            return made(0, n + front + back).slice(front, n)
        return pa.Table.from_batches([made(0, n)]) if step.form == "table" else made(0, n)


def _way(form: str) -> str:
    return form if form in ("insert", "many") else "batch"


def _array(kind: Kind, values: list[Any], rng: Random) -> Any:
    if kind.form != "dictionary":
        return pa.array(values, kind.arrow)
    # Another dictionary every time, with a value that nobody has, and with null or without.
    held = list(dict.fromkeys([*values, kind.nth(99)]))
    rng.shuffle(held)
    place = {value: i for i, value in enumerate(held)}
    if rng.random() < 0.5:
        place[None] = None  # type: ignore[assignment]
    indices = pa.array([place[value] for value in values], pa.int16())
    return pa.DictionaryArray.from_arrays(indices, pa.array(held, kind.type))


# -- strategies -----------------------------------------------------------------------------------

shares = st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.5])
sizes = st.sampled_from([0, 1, 2, 3, 5, 8, 13, 20, 30, 50, 120])
forms = st.sampled_from(["batch"] * 6 + ["sliced", "table", "chunks", "chunks", "insert", "many"])


@st.composite
def key_columns(draw: st.DrawFn) -> Values:
    """A key: few or many different ones, and null."""
    kind = draw(st.sampled_from(["string", "int64", "dictionary", *KEYS]))
    width = draw(st.sampled_from([1, 2, 3, 8, 40]))
    odd = draw(st.sampled_from([0.0, 0.0, 0.1]))
    return Values(kind, draw(laters(kind)), width, odd, draw(shares))


@st.composite
def delta_columns(draw: st.DrawFn) -> Values:
    """An attribute that ascends, mostly."""
    kind = draw(st.sampled_from(["int64", "float64"] * 3 + [*DELTAS]))
    wrong = draw(st.integers(0, 14)) == 0
    back, nulls = (0.05, 0.02) if wrong else (draw(st.sampled_from([0] * 6 + [0.01])), 0.0)
    odd = 0.02 if kind == "large ints" or wrong else 0.0
    return Values(kind, draw(laters(kind)), odd=odd, nulls=nulls, ascends=True, back=back)


@st.composite
def value_columns(draw: st.DrawFn, kinds: list[str]) -> Values:
    """Values of any kind, with nulls, or nothing but nulls."""
    kind = draw(st.sampled_from(kinds))
    nulls = draw(st.sampled_from([0.0, 0.0, 0.2, 0.7, 1.0]))
    # Whole numbers at the end of their range often need more than 64 bits, which is declined.
    odd = draw(st.sampled_from([0.0, 0.1] if KINDS[kind].type in WHOLE else [0.0, 0.2, 0.4]))
    return Values(kind, draw(laters(kind)), draw(st.sampled_from([1, 3, 20])), odd, nulls)


@st.composite
def laters(draw: st.DrawFn, kind: str) -> str:
    """Rarely another kind, from some batch on."""
    others = {
        "int64": ["float64", "int32", "dictionary of ints"],
        "int32": ["int64", "runs"],
        "float32": ["float64"],
        "float64": ["int64", "dictionary of floats"],
        "string": ["dictionary", "large string"],
        "dictionary": ["string"],
    }
    turns = kind in others and draw(st.integers(0, 24)) == 0
    return draw(st.sampled_from(others[kind])) if turns else ""


WHOLE = {kind.type for kind in _whole().values()}


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Values]:
    """Keys `k` and `g`, delta attributes `ts` and `at`, numbers `x` and `y`, `z` of any kind."""
    made: dict[str, Values] = {}
    for name in ("k", "g"):
        made[name] = draw(key_columns())
    for name in ("ts", "at"):
        made[name] = draw(delta_columns())
    usual = ["int64", "float64", "float64"]
    made["x"] = draw(value_columns([*usual, *NUMBERS]))
    made["y"] = draw(value_columns([*usual, *NUMBERS]))
    made["z"] = draw(value_columns(list(KINDS)))
    return made


@st.composite
def streams(draw: st.DrawFn, *, others: tuple[str, ...] = ()) -> Stream:
    """Columns and batches, with `others` happening between some of them."""
    steps: list[Batch | Other] = []
    for _ in range(draw(st.integers(1, 7))):
        if others and draw(st.integers(0, 3)) == 0:
            steps.append(Other(draw(st.sampled_from(others))))
        steps.append(Batch(draw(sizes), draw(forms)))
    made, turns = draw(columns()), draw(st.integers(1, len(steps)))
    later: tuple[str, ...] = ()
    if draw(st.integers(0, 24)) == 0:  # other columns from some batch on
        later = tuple(draw(st.permutations(list(made)))[draw(st.integers(0, 1)) :])
    return Stream(made, steps, draw(st.integers(0, 2**16)), turns, later)
