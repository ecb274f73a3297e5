"""Random windows and aggregations, as far as the columnar engine might take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from tests.columnar.random_streams import DELTAS, KINDS, Stream, Values
from windowlib import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Tumbling,
    TupleCount,
)
from windowlib.columnar.kernels.functions import functions_of
from windowlib.operators import Aggregate, agg, col
from windowlib.operators.expressions import Binary, Expr, Negative
from windowlib.operators.functions import firing_facts
from windowlib.operators.functions.call import Agg
from windowlib.summaries.summarizers import Plan
from windowlib.window.consumer import Decline

# -- windows --------------------------------------------------------------------------------------

counts = st.sampled_from([1, 2, 3, 4, 5, 7, 10, 30]).map(Count)
forgets = st.one_of(
    st.builds(PartitionCount, st.sampled_from([1, 3, 20, 100]), st.sampled_from(["lru", "oldest"])),
    st.builds(TupleCount, st.sampled_from([4, 60, 10_000]), st.sampled_from(["lru", "lfu"])),
    st.just(PartitionAge("5s")),
)


@st.composite
def deltas(draw: st.DrawFn, columns: dict[str, Values]) -> Delta:
    """A delta policy with a threshold that fits its attribute."""
    name = draw(st.sampled_from(["ts", "ts", "at"]))
    return Delta(name, draw(st.sampled_from(DELTAS[columns[name].kind])))


@st.composite
def specs(draw: st.DrawFn, columns: dict[str, Values], kinds: Any = ("tumbling", "sliding")) -> Any:
    """A window without a clock."""
    by = draw(st.sampled_from([None, "k", "k", ("k", "g"), ("k",)]))
    few = by is not None and draw(st.integers(0, 3)) == 0
    more: dict[str, Any] = {"by": by, "forget": draw(forgets) if few else None}
    one = st.one_of(counts, deltas(columns))
    if draw(st.sampled_from(kinds)) == "tumbling":
        return Tumbling(draw(st.one_of(one, one, st.builds(Punct))), **more)
    return Sliding(draw(one), every=draw(one), **more)


# -- functions ------------------------------------------------------------------------------------

ALL: dict[str, Callable[..., Agg]] = {
    name: getattr(agg, name)
    for name in agg.__all__
    if name not in {"custom", *(fact.name for fact in firing_facts.OF_EVENT_TIME)}
}
"""The aggregate functions that windows of arrivals have."""


def has_form(aggregate: Agg, schema: Any) -> bool:
    """Whether array arithmetic has this function for columns of these types."""
    if aggregate.call is None:
        return True
    try:
        functions_of(Plan({"it": aggregate.call}, short=False, named=False), schema)
    except Decline:
        return False
    return True


def called(choose: Callable[[Any], Any], name: str, column: Callable[[], Any]) -> Agg:
    """One of the functions, with arguments that fit its parameters; `choose` picks one of many."""
    given: list[Any] = []
    options: dict[str, Any] = {}
    for parameter in inspect.signature(ALL[name]).parameters.values():
        if "Column" in str(parameter.annotation):
            wanted = parameter.default is not None or choose([True, True, False])
            value = column() if wanted else None
        elif parameter.name in OPTIONS:
            value = choose(OPTIONS[parameter.name])
            value = abs(value) if name != "nth" and parameter.name == "k" else value
        else:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            options[parameter.name] = value
        else:
            given.append(value)
    return ALL[name](*given, **options)


OPTIONS: dict[str, Any] = {
    "k": [1, 2, 3, -1],
    "q": [0, 0.3, 0.5, 1],
    "ddof": [0, 1],
    "method": ["linear", "lower", "higher", "nearest"],
    "largest": [True, False],
}


def first(choices: Any) -> Any:
    """The usual one."""
    return choices[0]


SIMPLE = pa.schema({"x": pa.int64(), "y": pa.float64()})
COLUMNAR = sorted(
    name for name in ALL if has_form(called(first, name, iter(["y", "x", "y"]).__next__), SIMPLE)
)
"""Those that have a columnar form."""

LOOSE = {"sum", "mean", "weighted_mean", "var", "std", "cov", "corr", "median", "quantile"}
"""Functions that compute with floats, so that the engines may differ in the last digits."""
MOMENTS = {"weighted_mean", "var", "std", "cov", "corr"}


@st.composite
def inputs(draw: st.DrawFn, stream: Stream) -> Any:
    """A column by name, or arithmetic of columns."""
    name = draw(st.sampled_from(["x", "x", "y", "z", "ts"]))
    if draw(st.integers(0, 4)):
        return name
    left = col(draw(st.sampled_from(["x", "y"])))
    right = draw(st.sampled_from([col("y"), col("x"), 2, 0.5, 0, -1]))
    sign = draw(st.sampled_from("+-*/<"))
    return -left if sign == "<" else Binary(sign, left, right)


@st.composite
def aggregates(draw: st.DrawFn, stream: Stream, every: bool, exact: bool = False) -> Agg:
    """An aggregate: any, if `every`; otherwise one that arrays can compute."""
    names = sorted(ALL) if every else COLUMNAR
    name = draw(st.sampled_from([n for n in names if not exact or n not in LOOSE]))

    def choose(choices: Any) -> Any:
        return draw(st.sampled_from(choices))

    found = called(choose, name, lambda: draw(inputs(stream)))
    if every or has_form(found, stream.schema()):
        return found
    others = [called(first, name, repeat(column).__next__) for column in ("x", "y", "z", "ts")]
    fits = [each for each in others if has_form(each, stream.schema())]
    return draw(st.sampled_from(fits)) if fits else agg.count()


@st.composite
def expressions(draw: st.DrawFn, stream: Stream, every: bool) -> Expr:
    """Aggregates, and arithmetic and comparison of them."""
    what = draw(st.integers(0, 9))
    if what < 6:
        return draw(aggregates(stream, every))
    if what == 6:
        one, other = (draw(aggregates(stream, every, exact=True)) for _ in range(2))
        return Binary(draw(st.sampled_from(SIGNS)), one, other)
    leaves = aggregates(stream, every).filter(lambda each: function_of(each) not in MOMENTS)
    left = draw(leaves)
    if what == 7:
        return Negative(left)
    if what == 8:
        return Binary(draw(st.sampled_from("+-*/")), left, draw(leaves))
    return Binary(draw(st.sampled_from(["+", "*", "/", "**"])), left, draw(constants))


SIGNS = ["<", "<=", ">", ">=", "==", "!=", "&", "|", "//", "%"]
constants = st.sampled_from([2, 0.5, 0, -3])


def function_of(aggregate: Any) -> str:
    """What it is called."""
    return "" if aggregate.call is None else aggregate.call.function.name


@st.composite
def operators(draw: st.DrawFn, stream: Stream) -> Aggregate:
    """An Aggregate over a stream's columns."""
    spec = draw(specs(stream.columns))
    names = "abcd"[: draw(st.integers(1, 4))]
    every = draw(st.integers(0, 24)) == 0
    outputs = {name: draw(expressions(stream, every)) for name in names}
    options: dict[str, Any] = {}
    if isinstance(spec, Sliding):
        options["partial"] = draw(st.sampled_from(["skip", "emit"]))
    else:
        options["flush_at_end"] = draw(st.booleans())
    if spec.forget is not None and draw(st.booleans()):
        options["evicted_partitions"] = "emit"
    extra = draw(st.integers(0, 49))
    if extra == 0:
        options["having"] = agg.count() > 2
    elif extra == 1:
        options["group_by"] = "y"
    elif extra == 2:
        options["emit"] = "changed"
    return Aggregate(spec, outputs, **options)


# -- how exactly ----------------------------------------------------------------------------------


class Near(NamedTuple):
    """By how much a float may differ."""

    relative: float
    absolute: float


LIKE_ZERO = Near(0.0, 0.0)
"""Equal, but 0.0 equals -0.0."""
EQUALS = {"min", "max", "mode", "collect_distinct"}
"""Functions that give one of several equal values, any of them."""


def nearness(expression: Any, stream: Stream, scale: float) -> Near | None:
    """How near results must be, for values up to `scale`; None: equal, to the sign of zero."""
    names = {function_of(leaf) for leaf in expression.leaves() if _computes(leaf, stream)}
    if not names:
        equals = any(function_of(leaf) in EQUALS for leaf in expression.leaves())
        return LIKE_ZERO if equals else None
    if names & {"var", "cov"}:
        return Near(1e-9, 1e-12 * scale * scale)
    if names & {"std", "corr"}:
        return Near(1e-9, 1e-7 * (scale if "std" in names else 1.0))
    return Near(1e-9, 1e-24 * scale)


def _computes(leaf: Any, stream: Stream) -> bool:
    """Whether it computes with floats."""
    if function_of(leaf) not in LOOSE:
        return False
    if function_of(leaf) not in ("sum", "mean"):
        return True
    (column,) = leaf.columns
    if not isinstance(column, str):
        return True
    values = stream.columns[column]
    kinds = [KINDS[kind].type for kind in (values.kind, values.later) if kind]
    return any(map(pa.types.is_floating, kinds))
