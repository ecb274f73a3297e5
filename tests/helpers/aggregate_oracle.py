"""What Aggregate must give, worked out the long way round.

A plain container with the reference engine says which tuples each firing sees. Each function is
then computed from the list of those tuples, as its definition reads.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import make_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from tests.helpers.event_recorder import build
from windowlib import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    WindowEvents,
    advance,
    punct,
    replay,
)
from windowlib.operators import Aggregate, agg
from windowlib.runtime.marks import Mark

NAN, INF = float("nan"), float("inf")
PUNCT = "punctuation"

# -- configurations -----------------------------------------------------------------------------

PARTITIONINGS: dict[str, dict[str, Any]] = {
    "unpartitioned": {},
    "partitioned": {"by": "k"},
    "age": {"by": "k", "forget": PartitionAge("5s")},
    "partition count": {"by": "k", "forget": PartitionCount(2)},
    "tuple count": {"by": "k", "forget": TupleCount(7)},
}
TUMBLING: dict[str, Any] = {
    "count": Count(4),
    "delta": Delta("ts", 5),
    "time": Time("3s"),
    "punct": Punct(),
}
EVICTIONS: dict[str, Any] = {"count": Count(5), "delta": Delta("ts", 6), "time": Time("4s")}
TRIGGERS: dict[str, Any] = {"count": Count(2), "delta": Delta("ts", 3), "time": Time("3s")}


def configurations() -> dict[str, Tumbling | Sliding]:
    """The 13 windows of the paper, each with the 5 kinds of partitioning."""
    made: dict[str, Tumbling | Sliding] = {}
    for how, partitioning in PARTITIONINGS.items():
        for name, policy in TUMBLING.items():
            made[f"tumbling {name}, {how}"] = Tumbling(policy, **partitioning)
        for name, evict in EVICTIONS.items():
            for trigger, every in TRIGGERS.items():
                text = f"sliding {name} {trigger}, {how}"
                made[text] = Sliding(evict, every=every, **partitioning)
    return made


# -- streams ------------------------------------------------------------------------------------

EPOCH = datetime(2024, 2, 28, 23, 59)
COLUMNS = ("k", "g", "ts", "i", "f", "d", "s", "t", "p", "v", "w")
"""Key, group, delta attribute; ints, floats, decimals, strings, times, periods, lists, weights."""


def a_row(rng: random.Random, ts: int, profile: str) -> dict[str, Any]:
    """A row with ties and nulls in every column; NaN and infinities if the profile says so."""
    floats: list[Any] = [
        rng.uniform(-10, 10),
        rng.choice([0.1, 0.2, 0.3]),
        1e6 * rng.random(),
        None,
    ]
    if profile == "odd":
        floats += [NAN, NAN, INF, -INF]
    wild = profile == "wide"
    return {
        "k": rng.choice(["a", "a", "a", "b", "b", "c", None]),
        "g": rng.choice([1, 1, 2, 3, None, NAN]),
        "ts": ts,
        "i": rng.choice([rng.randint(-5, 5), rng.randint(-(10**30), 10**30) if wild else 3, None]),
        "f": rng.choice([1e15, 1.0, -1e15, 1e-3]) if wild else rng.choice(floats),
        "d": rng.choice([Decimal(rng.randint(-999, 999)) / 100, Decimal("0.10"), None]),
        "s": rng.choice(["ant", "bee", "cow", "", None]),
        "t": rng.choice([EPOCH + timedelta(seconds=rng.randint(0, 3)), None]),
        "p": rng.choice([timedelta(seconds=rng.randint(-3, 3)), timedelta(microseconds=1), None]),
        "v": rng.choice([[rng.randint(0, 3), rng.random()], [1, 0.5], None]),
        "w": rng.choice([0, 1, 2, 0.5, None]),
    }


def a_stream(seed: int, size: int = 70, profile: str = "") -> list[Any]:
    """Rows among advances of the clock and punctuations; `profile` is odd, wide, back or nulls."""
    rng = random.Random(seed)
    steps = [0, 0, 1, 1, 2, 4] + [-3, -1] * (profile == "back")
    items: list[Any] = []
    ts, now = 0, 0.0
    for _ in range(size):
        what = rng.random()
        if what < 0.75:
            ts += rng.choice(steps)
            row = a_row(rng, ts, profile)
            items.append({c: row[c] if c == "ts" or profile != "nulls" else None for c in row})
        elif what < 0.92:
            now += rng.choice([0, 0.5, 1, 1, 2, 7])
            items.append(advance(now))
        else:
            items.append(punct())
    return [*items, advance(now + 1)]


Named = NamedTuple("Named", [(name, Any) for name in COLUMNS])  # type: ignore[misc]
Data: Any = make_dataclass("Data", [(name, Any) for name in COLUMNS], frozen=True)
FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": dict,
    "named tuple": lambda row: Named(**row),
    "dataclass": lambda row: Data(**row),
    "tuple": lambda row: tuple(row.values()),
}


def in_form(form: str, items: Iterable[Any]) -> list[Any]:
    """The same stream with rows of another form."""
    return [FORMS[form](item) if isinstance(item, dict) else item for item in items]


# -- which tuples a firing sees -----------------------------------------------------------------

Firing = tuple[Any, list[dict[str, Any]]]


class Sees(WindowEvents[Any, Any]):
    """Writes down the key and the tuples of every firing that Aggregate should process."""

    def __init__(self, spec: Tumbling | Sliding, partial: str, evicted: str, mark: bool) -> None:
        self.firings: list[Any] = []
        self.mark = mark
        self.always = partial == "emit" or isinstance(spec.evict, Time)
        self.evicted = evicted
        self.been_full: list[Any] = []

    def on_initial_full(self, window, key):
        self.been_full.append(key)

    def on_trigger(self, window, key):
        if self.always or key in self.been_full:
            self.firings.append((key, list(window[key])))

    def before_flush(self, window, key):
        self.firings.append((key, list(window[key])))

    def on_empty_punctuation(self, window):
        self.firings.append((None, []))

    def on_partitions_evicted(self, window, keys):
        for key in dict.fromkeys(keys):
            if self.evicted == "emit" and len(window[key]):
                self.firings.append((key, list(window[key])))
            if key in self.been_full:
                self.been_full.remove(key)
            if self.mark:
                self.firings.append((key,))


def firings(
    spec: Tumbling | Sliding,
    items: Iterable[Any],
    partial: str = "skip",
    evicted_partitions: str = "drop",
    flush_at_end: bool = False,
    mark_evicted: bool = False,
) -> list[Any]:
    """Every firing of a window over a stream, by the reference engine.

    With `mark_evicted`, also the key of each partition that is evicted, alone in a tuple.
    """
    sees = Sees(spec, partial, evicted_partitions, mark_evicted)
    window = build(spec, events=sees, engine="reference")
    for item in items:
        if not isinstance(item, Mark):
            window.insert(item)
        elif item.at is not None:
            window.advance(item.at)
        elif isinstance(spec.evict, Punct):
            window.punctuate()
    if isinstance(spec.evict, Punct) and window.keys():
        window.punctuate("final")
    elif flush_at_end:
        sees.firings += [(key, list(window[key])) for key in window if len(window[key])]
    return sees.firings


# -- what the functions are ---------------------------------------------------------------------


class Near(NamedTuple):
    """A float, and by how much a result may differ from it."""

    value: float
    slack: float

    def is_near(self, got: Any) -> bool:
        apart = abs(self.value - got) if isinstance(got, float) else INF
        return apart <= self.slack or (self.value != self.value and got != got)


def same(expected: Any, got: Any, rel: float = 0.0) -> bool:
    """Whether two results are equal and of one type; floats up to `rel`, NaN equals NaN."""
    if isinstance(expected, Near):
        return expected.is_near(got)
    if type(expected) is not type(got):
        return False
    if isinstance(expected, list | tuple):
        pairs = zip(expected, got, strict=False)
        return len(expected) == len(got) and all(same(e, g, rel) for e, g in pairs)
    if isinstance(expected, dict):
        pairs = zip(expected.values(), got.values(), strict=False)
        return list(expected) == list(got) and all(same(e, g, rel) for e, g in pairs)
    if expected != expected:
        return bool(got != got)
    if isinstance(expected, float) and rel:
        return expected == got or math.isclose(expected, got, rel_tol=rel, abs_tol=0.0)
    return bool(expected == got)


def added(values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], list):
        return [added([x[i] for x in values]) for i in range(len(values[0]))]
    if any(isinstance(x, float) for x in values):
        odd = [x for x in values if x - x != 0]  # infinities and NaN
        return sum(odd) if odd else math.fsum(values)
    return sum(values[1:], start=values[0])


def averaged(values: list[Any]) -> Any:
    if values and isinstance(values[0], list):
        return [averaged([x[i] for x in values]) for i in range(len(values[0]))]
    if values and all(isinstance(x, int) for x in values):
        return float(Fraction(sum(values), len(values)))
    return added(values) / len(values) if values else None


def ranked(values: Iterable[Any]) -> list[Any]:
    """Sorted, NaN last."""
    held = list(values)
    return sorted(x for x in held if x == x) + [x for x in held if x != x]


def smallest(values: list[Any]) -> Any:
    if values and isinstance(values[0], list):
        return [smallest([x[i] for x in values]) for i in range(len(values[0]))]
    return ranked(values)[0] if values else None


def largest(values: list[Any]) -> Any:
    if values and isinstance(values[0], list):
        return [largest([x[i] for x in values]) for i in range(len(values[0]))]
    return ranked(values)[-1] if values else None


def equal(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def scale_of(values: list[Any]) -> float:
    """The largest distance from zero: what rounding errors are measured by."""
    return max(float(abs(x)) for x in values)


def variance(values: list[Any], ddof: int) -> Any:
    exact = spread(values, ddof)
    return exact and Near(exact, 1e-9 * exact + 1e-13 * scale_of(values) ** 2)


def deviation(values: list[Any], ddof: int) -> Any:
    exact = spread(values, ddof)
    return exact and Near(math.sqrt(exact), 1e-9 * math.sqrt(exact) + 1e-7 * scale_of(values))


def spread(values: list[Any], ddof: int) -> Any:
    if len(values) <= ddof:
        return None
    if any(x - x != 0 for x in values):
        return NAN
    exact = [Fraction(x) for x in values]
    mean = sum(exact) / len(exact)
    variance = sum((x - mean) ** 2 for x in exact) / (len(exact) - ddof)
    return float(variance)


def covariance(pairs: list[tuple[Any, Any]], ddof: int) -> Any:
    if len(pairs) <= ddof:
        return None
    if any(x - x != 0 for pair in pairs for x in pair):
        return NAN
    xs, ys = [Fraction(x) for x, _ in pairs], [Fraction(y) for _, y in pairs]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    products = [(x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)]
    exact = float(sum(products) / (len(xs) - ddof))
    return Near(exact, 1e-9 * abs(exact) + 1e-13 * scale_of(xs) * scale_of(ys))


def correlation(pairs: list[tuple[Any, Any]]) -> Any:
    if len(pairs) < 2:
        return None
    x_spread, y_spread = (spread([pair[i] for pair in pairs], 0) for i in (0, 1))
    if x_spread * y_spread == 0 or x_spread * y_spread != x_spread * y_spread:
        return NAN
    together = covariance(pairs, 0).value
    return Near(together / math.sqrt(x_spread) / math.sqrt(y_spread), 1e-9)


def at_fraction(values: list[Any], q: str, method: str = "linear") -> Any:
    """The value at a fraction of the way through the sorted values."""
    if not values:
        return None
    held = ranked(values)
    place = Fraction(q) * (len(held) - 1)
    low, high = held[math.floor(place)], held[math.ceil(place)]
    part = place - math.floor(place)
    if method != "linear":
        return {"lower": low, "higher": high, "nearest": held[round(place)]}[method]
    if isinstance(low, Decimal) and isinstance(high, Decimal):
        return low + (high - low) * Decimal(part.numerator) / Decimal(part.denominator)
    if isinstance(low, int):
        return float(low + (high - low) * part)
    if equal(low, high) or not part:
        return low
    if isinstance(low, float):
        return low * float(1 - part) + high * float(part)
    return low + (high - low) * float(part)


def distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for x in values:
        if not any(equal(x, other) for other in found):
            found.append(x)
    return found


def how_often(values: list[Any]) -> list[int]:
    return [sum(equal(x, other) for other in values) for x in distinct(values)]


def commonest(values: list[Any]) -> Any:
    counts = how_often(values)
    return distinct(values)[counts.index(max(counts))] if counts else None


def best(rows: list[Any], by: str, which: Callable[[list[Any]], Any]) -> list[Any]:
    """The rows whose `by` is the extreme one."""
    held = [row for row in rows if row[by] is not None]
    extreme = which([row[by] for row in held])
    return [row for row in held if equal(row[by], extreme)]


def weighted(rows: list[Any], value: str, weight: str) -> Any:
    pairs = [(r[value], r[weight]) for r in rows if r[value] is not None and r[weight] is not None]
    below = sum(Fraction(w) for _, w in pairs)
    if not below:
        return None
    if any(x - x != 0 for x, _ in pairs):
        return added([x * float(w) for x, w in pairs])
    return float(sum(Fraction(x) * Fraction(w) for x, w in pairs) / below)


def first_of(values: Sequence[Any]) -> Any:
    return values[0] if values else None


def nth_of(values: Sequence[Any], k: int) -> Any:
    return dict(enumerate(values)).get(k if k >= 0 else len(values) + k)


def top_of(rows: list[Any], k: int, by: str, largest_first: bool) -> list[Any]:
    held = [row for row in rows if row[by] is not None]
    order = {id(row): i for i, row in enumerate(held)}
    values = ranked(row[by] for row in held)
    place = {id(row): next(i for i, x in enumerate(values) if equal(x, row[by])) for row in held}
    sign = -1 if largest_first else 1
    return sorted(held, key=lambda row: (sign * place[id(row)], order[id(row)]))[:k]


class Function(NamedTuple):
    """An aggregate over columns, what it must be for a list of rows, and how exactly."""

    made: Callable[[Callable[[str], Any]], Any]
    of: Callable[[list[Any]], Any]
    rel: float = 0.0
    mergeable: bool = True


def known(rows: list[Any], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def both(rows: list[Any], x: str, y: str) -> list[tuple[Any, Any]]:
    return [(r[x], r[y]) for r in rows if r[x] is not None and r[y] is not None]


def _over(column: str, make: Callable[..., Any], of: Callable[..., Any], **more: Any) -> Function:
    return Function(lambda c: make(c(column)), lambda rows: of(known(rows, column)), **more)


def _functions() -> dict[str, Function]:
    made: dict[str, Function] = {
        "count": Function(lambda c: agg.count(), len),
        "weighted_mean": Function(
            lambda c: agg.weighted_mean(c("f"), weight=c("w")),
            lambda rows: weighted(rows, "f", "w"),
            1e-9,
        ),
        "corr": Function(
            lambda c: agg.corr(c("f"), c("w")), lambda rows: correlation(both(rows, "f", "w"))
        ),
        "product": Function(
            lambda c: agg.custom(_one, _times, column=c("w"), merge=_product),
            lambda rows: math.prod(known(rows, "w"), start=1),
            1e-12,
            False,
        ),
        "bag": Function(
            lambda c: agg.custom(Counter, _put, _bag, column=c("s"), inverse=_take),
            lambda rows: sorted(Counter(known(rows, "s")).items()),
            mergeable=False,
        ),
        "text": Function(
            lambda c: agg.custom(str, _append, column=c("s")),
            lambda rows: "".join(str(row["s"])[:1] for row in rows),
            mergeable=False,
        ),
    }
    for c in "ifdpv":
        made[f"sum {c}"] = _over(c, agg.sum, added, rel=1e-12)
        made[f"mean {c}"] = _over(c, agg.mean, averaged, rel=1e-12)
    for c in "ifdstpv":
        made[f"min {c}"] = _over(c, agg.min, smallest)
        made[f"max {c}"] = _over(c, agg.max, largest)
        made[f"count {c}"] = _over(c, agg.count, len)
        made[f"first {c}"] = _over(c, agg.first, first_of)
        made[f"last {c}"] = _over(c, agg.last, lambda values: first_of(values[::-1]))
        made[f"collect {c}"] = _over(c, agg.collect, list, mergeable=False)
    for c in "ifdstp":
        made |= _ordered(c)
    for c in "if":
        for ddof in (0, 1):
            made[f"var {c} {ddof}"] = Function(
                lambda col, c=c, ddof=ddof: agg.var(col(c), ddof=ddof),  # type: ignore[misc]
                lambda rows, c=c, ddof=ddof: variance(known(rows, c), ddof),  # type: ignore[misc]
            )
            made[f"cov {c} {ddof}"] = Function(
                lambda col, c=c, ddof=ddof: agg.cov(col(c), col("w"), ddof=ddof),  # type: ignore[misc]
                lambda rows, c=c, ddof=ddof: covariance(both(rows, c, "w"), ddof),  # type: ignore[misc]
            )
        made[f"std {c}"] = Function(
            lambda col, c=c: agg.std(col(c)),  # type: ignore[misc]
            lambda rows, c=c: deviation(known(rows, c), 1),  # type: ignore[misc]
        )
    return made


def _ordered(c: str) -> dict[str, Function]:
    """The functions of values that have an order."""

    def picked(make: Any, of: Callable[[list[Any]], Any], mergeable: bool = True) -> Function:
        return Function(lambda col: make(col("s"), by=col(c)), of, mergeable=mergeable)

    def values(rows: list[Any]) -> list[Any]:
        return [row["s"] for row in rows]

    made = {
        "min_count": _over(c, agg.min_count, lambda xs: _count_of(xs, smallest)),
        "max_count": _over(c, agg.max_count, lambda xs: _count_of(xs, largest)),
        "arg_min": picked(agg.arg_min, lambda rows: first_of(values(best(rows, c, smallest)))),
        "arg_max": picked(agg.arg_max, lambda rows: first_of(values(best(rows, c, largest)))),
        "collect_arg_min": picked(
            agg.collect_arg_min, lambda rows: values(best(rows, c, smallest))
        ),
        "collect_arg_max": picked(agg.collect_arg_max, lambda rows: values(best(rows, c, largest))),
        "top": Function(
            lambda col: agg.top(3, col("s"), by=col(c)),
            lambda rows: values(top_of(rows, 3, c, True)),
        ),
        "lowest": Function(
            lambda col: agg.top(2, by=col(c), largest=False),
            lambda rows: top_of(rows, 2, c, False),
        ),
        "count_distinct": _over(
            c, agg.count_distinct, lambda xs: len(distinct(xs)), mergeable=False
        ),
        "collect_distinct": _over(c, agg.collect_distinct, distinct, mergeable=False),
        "count_by_distinct": _over(c, agg.count_by_distinct, how_often, mergeable=False),
        "mode": _over(c, agg.mode, commonest, mergeable=False),
        "nth": _over(c, lambda x: agg.nth(x, 1), lambda xs: nth_of(xs, 1), mergeable=False),
        "nth from the end": _over(
            c, lambda x: agg.nth(x, -2), lambda xs: nth_of(xs, -2), mergeable=False
        ),
        "approx_count_distinct": _over(c, agg.approx_count_distinct, lambda xs: len(distinct(xs))),
    }
    for method in ("lower", "higher", "nearest") + ("linear",) * (c != "s"):
        made[f"quantile {method}"] = _over(
            c,
            lambda x, method=method: agg.quantile(x, 0.3, method=method),
            lambda xs, method=method: at_fraction(xs, "0.3", method),
            rel=1e-12,
            mergeable=False,
        )
    if c != "s":
        made["median"] = _over(
            c, agg.median, lambda xs: at_fraction(xs, "0.5"), rel=1e-12, mergeable=False
        )
    return {f"{name} {c}": function for name, function in made.items()}


def _count_of(values: list[Any], which: Callable[[list[Any]], Any]) -> int | None:
    return sum(equal(x, which(values)) for x in values) or None


def _one() -> int:
    return 1


def _times(state: Any, x: Any) -> Any:
    return state if x is None else state * x


def _product(a: Any, b: Any) -> Any:
    return a * b


def _put(bag: Counter[str], x: str | None) -> Counter[str]:
    """Changes its state in place, as an author's step may."""
    if x is not None:
        bag[x] += 1
    return bag


def _take(bag: Counter[str], x: str | None) -> Counter[str]:
    if x is not None:
        bag[x] -= 1
    return +bag


def _bag(bag: Counter[str]) -> list[tuple[str, int]]:
    return sorted(bag.items())


def _append(text: str, x: Any) -> str:
    return text + str(x)[:1]


FUNCTIONS = _functions()
MERGEABLE = {name: each for name, each in FUNCTIONS.items() if each.mergeable}


# -- whole outputs ------------------------------------------------------------------------------


def named(name: str) -> str:
    return name


def aggregate(
    spec: Any, functions: dict[str, Function], column: Callable[[str], Any] = named, **more: Any
) -> Aggregate:
    """An Aggregate of all these functions at once."""
    return Aggregate(spec, {name: each.made(column) for name, each in functions.items()}, **more)


def expected(
    seen: Iterable[Firing],
    functions: dict[str, Function],
    keys: Sequence[str] = (),
    groups: Sequence[str] = (),
    having: Callable[[dict[str, Any]], Any] | None = None,
) -> list[Any]:
    """Rows and punctuations for firings: each is a batch of a row per group, and a punctuation."""
    out: list[Any] = []
    for key, rows in seen:
        parts = key if isinstance(key, tuple) else (key,)
        for group in _split(rows, groups):
            row = dict(zip(keys, parts, strict=False))
            row |= {name: group[0][name] for name in groups}
            row |= {name: each.of(group) for name, each in functions.items()}
            if having is None or having(row):
                out.append(row)
        out.append(PUNCT)
    return out


def _split(rows: list[Any], groups: Sequence[str]) -> list[list[Any]]:
    """The groups of some rows, in order of first appearance."""
    found: list[tuple[list[Any], list[Any]]] = []
    for row in rows:
        key = [row[name] for name in groups]
        for other, members in found:
            if all(equal(a, b) for a, b in zip(key, other, strict=True)):
                members.append(row)
                break
        else:
            found.append((key, [row]))
    return [members for _, members in found]


def output(operator: Aggregate, items: Iterable[Any]) -> list[Any]:
    """Rows and punctuations of a run."""
    return [PUNCT if isinstance(x, Mark) else x for _, x in replay(operator, items).items()]


def check(wanted: list[Any], got: list[Any], functions: dict[str, Function]) -> None:
    """Everything in order; each value as exactly as its function promises."""
    assert [item == PUNCT for item in wanted] == [item == PUNCT for item in got]
    for number, (want, have) in enumerate(zip(wanted, got, strict=True)):
        if want == PUNCT:
            continue
        assert list(want) == list(have)
        for name in want:
            rel = functions[name].rel if name in functions else 0.0
            assert same(want[name], have[name], rel), (number, name, want[name], have[name])


FEW = {
    name: FUNCTIONS[name]
    for name in (
        "count",
        "count f",
        "sum i",
        "sum f",
        "sum v",
        "mean d",
        "mean p",
        "min t",
        "max f",
        "max v",
        "max_count i",
        "var f 1",
        "cov f 0",
        "weighted_mean",
        "first s",
        "last t",
        "nth s",
        "collect s",
        "collect_distinct f",
        "count_by_distinct i",
        "mode s",
        "arg_max f",
        "collect_arg_min i",
        "top f",
        "median f",
        "quantile lower s",
        "approx_count_distinct s",
        "product",
        "bag",
        "text",
    )
}
"""One function of each kind, where there is no time for all."""
