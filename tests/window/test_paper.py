"""Both engines against an oracle that is written from the paper's tables and shares no code."""

import json
import math
import pickle
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.helpers.examples import is_thorough
from tests.helpers.paper_oracle import Case, Paper, Refused
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    SchemaError,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
)
from windowlib.attributes import one_key
from windowlib.window.state_bytes import written_and_read

SHARES = 20
CASES = 750 if is_thorough() else 10
"""So many cases in each share."""
NOON = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)  # the night in which clocks go forward in Europe
ZONES = [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")]
PLAIN_KEYS = ["a", "a", "b", "c", None, 1, 1.0, True, 0, -0.0, 0.0]
KEYS = [
    [None],
    PLAIN_KEYS,
    [1, 1.0, True, Decimal("1.0"), Decimal("1.00"), 2, float("nan")],
    [NOON.astimezone(zone) + timedelta(hours=h) for zone in ZONES for h in (0, 1)],
    [("a", 1), ("a", 1.0), ("b", True), ("b", 1)],
]
SELECTORS = {
    "none": lambda keys: [],
    "first": lambda keys: keys[:1],
    "last": lambda keys: keys[-1:],
    "twice": lambda keys: [keys[0], keys[0]],
    "all": lambda keys: list(keys),
}
NUMBERS: dict[str, Any] = {
    "int": (int, [None, float("nan"), float("inf"), float("-inf"), "word"]),
    "float": (lambda x: x / 4, [None, float("nan"), float("inf"), float("-inf")]),
    "Decimal": (lambda x: Decimal(x) / 10, [None, Decimal("NaN"), Decimal("Infinity")]),
    "datetime": (lambda x: NOON + timedelta(minutes=10 * x), [None, "word"]),
}


class Log(WindowEvents[Any, Any]):
    """Writes down what the oracle writes down."""

    def __init__(self, log, select):
        self.log, self.select = log, select

    def held(self, window):
        return [(repr(key), [row["id"] for row in window[key]]) for key in window]

    def tell(self, event, window, key, row=None):
        self.log.append((event, repr(key), row and row["id"], self.held(window)))

    def before_insert(self, window, tuple_, key):
        self.tell("before_insert", window, key, tuple_)

    def after_insert(self, window, tuple_, key):
        self.tell("after_insert", window, key, tuple_)

    def before_evict(self, window, tuple_, key):
        self.tell("before_evict", window, key, tuple_)

    def after_evict(self, window, tuple_, key):
        self.tell("after_evict", window, key, tuple_)

    def before_flush(self, window, key):
        self.tell("before_flush", window, key)

    def after_flush(self, window, key):
        self.tell("after_flush", window, key)

    def on_initial_full(self, window, key):
        self.tell("on_initial_full", window, key)

    def on_trigger(self, window, key):
        self.tell("on_trigger", window, key)
        self.log.append(("full", window.full(key)))

    def on_partitions_evicted(self, window, keys):
        self.log.append(("forget", [repr(key) for key in keys], self.held(window)))

    def on_empty_punctuation(self, window):
        self.log.append(("empty",))


class Selects(Log):
    def select_partitions(self, window, keys):
        return [] if self.select is None else self.select(list(keys))


class HandlerError(Exception):
    """What a handler raises."""


class Raises(Log):
    """Handlers that fail now and then, once the tuple is in: the rest is done as if they had not.

    A delta trigger comes before its tuple, which is then not taken; it does not fail here.
    """

    triggers = 0

    def after_insert(self, window, tuple_, key):
        super().after_insert(window, tuple_, key)
        if tuple_["id"] % 3 == 0:
            raise HandlerError

    def on_trigger(self, window, key):
        super().on_trigger(window, key)
        self.triggers += 1
        late = isinstance(window.spec, Sliding) and window.spec.every.delta is not None
        if not late and self.triggers % 3 == 0:
            raise HandlerError

    def on_empty_punctuation(self, window):
        super().on_empty_punctuation(window)
        raise HandlerError


class OnlyTriggers(WindowEvents[Any, Any]):
    """Few handlers, which is another insert function; the same log as far as it goes."""

    SEEN = ("on_trigger", "full", "before_flush")
    held, tell, __init__ = Log.held, Log.tell, Log.__init__
    before_flush, on_trigger = Log.before_flush, Log.on_trigger


def rule(rng, number, kinds):
    kind = rng.choice(kinds)
    if kind == "count":
        return ("count", rng.randrange(6))
    if kind == "time":
        return ("time", rng.choice([250_000, 500_000, 1_000_000, 2_000_000]))
    if kind == "delta":
        at = {"int": 1, "float": 0.25, "Decimal": Decimal("0.1")}.get(number)
        steps = rng.choice([-1, 0, 1, 2, 3, 6])
        threshold = timedelta(minutes=10 * steps) if at is None else steps * at
        return ("delta", rng.choice("xxy"), threshold)
    return ("punct",)


def a_case(rng):
    """A window, what the keys of its stream are, and of which type its values."""
    number, keys = rng.choice(list(NUMBERS)), rng.choice(KEYS)
    selection = rng.choice(["lru", "lru", "lfu", "oldest", "operator"])
    forget = rng.choice(
        [("none",)] * 3
        + [("partitions", rng.randrange(4), selection), ("tuples", rng.randrange(7), selection)]
        + [("age", rng.choice([0, 250_000, 1_000_000]))]
    )
    select = SELECTORS[rng.choice(list(SELECTORS))] if selection == "operator" else None
    if rng.random() < 0.35:
        evict = rule(rng, number, ["count", "delta", "time", "punct"])
        return Case("tumbling", evict, forget=forget, select=select), keys, number
    evict, every = (rule(rng, number, ["count", "delta", "time"]) for _ in "ab")
    return Case("sliding", evict, every, forget, select), keys, number


def policy(given):
    kind, *more = given
    if kind == "time":
        return Time(timedelta(microseconds=more[0]))
    return {"count": Count, "delta": Delta, "punct": Punct}[kind](*more)


def window_of(case, events, engine):
    """The library's window of a case."""
    forget: Any = None
    if case.forget[0] == "age":
        forget = PartitionAge(timedelta(microseconds=case.forget[1]))
    elif case.forget[0] != "none":
        made = PartitionCount if case.forget[0] == "partitions" else TupleCount
        forget = made(*case.forget[1:])
    if case.kind == "tumbling":
        spec: Any = Tumbling(policy(case.evict), by=KEY, forget=forget)
        return TumblingWindow(spec, events=events, engine=engine)
    spec = Sliding(policy(case.evict), every=policy(case.trigger), by=KEY, forget=forget)
    return SlidingWindow(spec, events=events, engine=engine)


def json_copy(state):
    return json.loads(json.dumps(state))


def pickled(state):
    return pickle.loads(pickle.dumps(state))


def a_stream(rng, case, keys, number):
    """Inserts, the passing of time, punctuations, and snapshots in all encodings."""
    value, bad = NUMBERS[number]
    x, y, now = 0, 0, 0
    steps = rng.choice([[0, 1, 1, 2], [0, 1, 2, 7], [-4, -1, 1, 1, 2, 3]])
    for i in range(rng.randrange(4, 30)):
        what = rng.random()
        if what < 0.72:
            x, y = x + rng.choice(steps), y + rng.choice(steps)
            row = {"id": i, "x": value(x), "y": value(y)}
            if rng.random() < 0.05:
                row[rng.choice("xy")] = rng.choice(bad)
            yield "insert", row, rng.choice(keys)
        elif what < 0.88:
            now += rng.choice([0, 1, 250_000, 500_000, 1_000_001, 3_000_000])
            yield "advance", now
        elif what < 0.94 and case.evict[0] == "punct":
            yield ("punctuate",)
        elif what > 0.97:
            as_json = number in ("int", "float") and keys is PLAIN_KEYS
            yield "snapshot", json_copy if as_json else rng.choice([pickled, written_and_read])


def give(window, op):
    """Do one thing to a window of the library; whether it refused."""
    try:
        if op[0] == "insert":
            window.insert(op[1], op[2])
        elif op[0] == "advance":
            window.advance(timedelta(microseconds=op[1]))
        else:
            window.punctuate()
    except SchemaError:
        return True
    except HandlerError:
        pass
    window.state.check()
    return False


def expected(case, ops):
    """What the oracle does at each step: whether it refuses, what it tells, and what it holds."""
    paper, found = Paper(case), []
    for op in ops:
        before, refused = len(paper.log), False
        if op[0] == "insert":
            try:
                paper.insert(op[1], op[2])
            except Refused:
                refused = True
        elif op[0] == "advance":
            paper.advance(op[1])
        elif op[0] == "punctuate":
            paper.punctuate()
        found.append((refused, paper.log[before:], paper.held()))
    return found


def compare(case, ops, wanted, events, engine):
    """The same stream in a window; all that a handler is told must be the same after every step."""
    log: list[Any] = []
    made = Selects if events is Log and case.select is not None else events
    window = window_of(case, made(log, case.select), engine)
    for op, (refused, told, held) in zip(ops, wanted, strict=True):
        if op[0] == "snapshot":
            again = window_of(case, made(log, case.select), engine)
            again.restore(op[1](window.snapshot()))  # stored and read again
            window = again
            continue
        log.clear()
        assert give(window, op) == refused, (case, op)
        if events is OnlyTriggers:
            told = [e for e in told if e[0] in events.SEEN]
        assert log == told, (case, ops, op)
        assert events.held(window.events, window) == held, (case, op)


@pytest.mark.search
@pytest.mark.filterwarnings("ignore::windowlib.WindowlibWarning")
@pytest.mark.parametrize("share", range(SHARES))
def test_the_engines_do_what_the_tables_say(share):
    for number in range(CASES):
        rng = random.Random(f"{share} {number}")
        case, keys, kind = a_case(rng)
        ops = list(a_stream(rng, case, keys, kind))
        wanted = expected(case, ops)
        compare(case, ops, wanted, Log, "reference")
        compare(case, ops, wanted, Log, "generated")
        if case.select is None:
            compare(case, ops, wanted, OnlyTriggers, "generated")
            compare(case, ops, wanted, Raises, ("reference", "generated")[number % 2])


def test_the_streams_have_all_that_could_make_a_difference():
    """Nulls, NaN, infinities, Decimals, zones, equal keys of several types, all encodings."""
    met: Counter[str] = Counter()
    for share in range(SHARES):
        for number in range(10):  # as many as every run has
            rng = random.Random(f"{share} {number}")
            case, keys, kind = a_case(rng)
            met[kind] += 1
            met["equal keys"] += len({*map(one_key, keys)}) < len({*map(repr, keys)})
            met["zones"] += len({getattr(key, "tzinfo", None) for key in keys}) > 2
            met["a null key"] += None in keys and len(keys) > 1
            for what, *more in a_stream(rng, case, keys, kind):
                met[what] += 1
                if what == "snapshot":
                    met[more[0].__name__] += 1
                elif what == "insert":
                    met.update(repr(value) for value in more[0].values() if not _finite(value))
    wanted = [*NUMBERS, "equal keys", "zones", "a null key", "advance", "punctuate"]
    wanted += ["json_copy", "pickled", "written_and_read", "None", "nan", "inf", "-inf", "'word'"]
    wanted += ["Decimal('NaN')", "Decimal('Infinity')"]
    assert not [name for name in wanted if not met[name]]


def _finite(value):
    return isinstance(value, datetime) or (
        isinstance(value, int | float | Decimal) and math.isfinite(value)
    )
