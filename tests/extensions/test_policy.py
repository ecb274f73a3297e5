"""Every policy stands in the tables that docs/contributing.md names, and answers all questions."""

import random
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from windowlib import (
    Count,
    Delta,
    PolicyError,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    WindowEvents,
    parse,
    replay,
    restart,
)
from windowlib.attributes import Getter
from windowlib.operators import Aggregate, agg
from windowlib.spec import order, policies, specification, spl
from windowlib.spec.order import (
    AGE,
    EVICT,
    FLUSH,
    FULL,
    INSERT,
    SLIDING_ORDER,
    TRIGGER,
    TUMBLING_ORDER,
    Step,
)
from windowlib.window.engine import generated, reference

POLICIES = {
    kind.__name__: kind
    for kind in vars(policies).values()
    if isinstance(kind, type) and hasattr(kind, "punctuated") and hasattr(kind, "kind")
}


def test_there_are_policies_to_look_at():
    assert {"Count", "Delta", "Time", "Punct", "Either"} <= set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_the_order_of_its_steps_is_in_the_tables(name):
    kind = POLICIES[name].kind
    assert Step.INSERT in TUMBLING_ORDER[kind]
    slides = {kind for pair in SLIDING_ORDER for kind in pair}
    assert kind in slides or kind in {"punct", "either"}, "it closes tumbling windows alone"


class Dozens(Count):
    """So many times twelve tuples: a policy that answers the question `tuples` in its own way."""

    __slots__ = ()

    @property
    def tuples(self):
        return 12 * self.size


def test_a_policy_that_answers_a_known_question_needs_no_engine_of_its_own():
    op = Aggregate(Tumbling(Dozens(2)), n=agg.count(), last=agg.last("x"))
    rows = list(replay(op, [{"x": i} for i in range(50)]))
    assert rows == [{"n": 24, "last": 23}, {"n": 24, "last": 47}]


# -- a kind of policy that asks a question of its own, in the six files of the page ---------------


@dataclass(frozen=True, slots=True)
class When(policies._Policy):
    """spec/policies.py: fires at each tuple whose attribute is true."""

    kind: ClassVar[str] = "when"
    attribute: str

    def __str__(self):
        return f"when({self.attribute})"


def getter(policy):
    return Getter(policy.attribute, str(policy))


class ReferenceSteps(reference.Reference):
    """window/engine/reference.py: what its steps do."""

    def _asked(self, arrival):
        policy = self.w.spec.policies[-1]
        return getter(policy)(arrival.tuple) if isinstance(policy, When) else None

    def _trigger(self, arrival):
        asked = self._asked(arrival)
        if asked is None:
            super()._trigger(arrival)
        elif asked:
            self._fire("on_trigger", arrival.key)

    def _flush(self, arrival):
        asked = self._asked(arrival)
        if asked is None:
            super()._flush(arrival)
        elif asked and arrival.s.alive:
            self.w.flush(arrival.s)


class GeneratedLines(generated._Writer):
    """window/engine/generated.py: the lines for them."""

    def _test(self, policy):
        self.names["fires"] = getter(policy)
        return getter(policy).inline("t", self.sample) or "fires(t)"

    def _fire_trigger(self):
        policy = self.spec.policies[-1]
        if not isinstance(policy, When):
            yield from super()._fire_trigger()
        else:
            yield f"if {self._test(policy)}:"
            yield from generated.indent(["pass", *self._fire("on_trigger")])

    def _flush(self, full_at):
        policy = self.spec.policies[-1]
        if not isinstance(policy, When):
            yield from super()._flush(full_at)
        else:
            alive = "s.alive and " if self.pe else ""
            yield f"if {alive}{self._test(policy)}: flush(s)"


@pytest.fixture
def when(monkeypatch):
    """The six files with the new kind in them."""
    monkeypatch.setitem(order.TUMBLING_ORDER, "when", (AGE, INSERT, FLUSH))
    monkeypatch.setitem(order.SLIDING_ORDER, ("count", "when"), (AGE, EVICT, INSERT, FULL, TRIGGER))
    monkeypatch.setitem(order.SLIDING_ORDER, ("delta", "when"), (AGE, FULL, EVICT, INSERT, TRIGGER))
    monkeypatch.setitem(order.SLIDING_ORDER, ("time", "when"), (AGE, FULL, INSERT, TRIGGER))
    monkeypatch.setattr(specification, "TRIGGERS", (*specification.TRIGGERS, When))
    monkeypatch.setattr(specification, "TUMBLING", (*specification.TUMBLING, When))
    monkeypatch.setitem(spl.POLICIES, "when", ("when(flag)", When))
    monkeypatch.setattr("windowlib.window.engine.Reference", ReferenceSteps)
    monkeypatch.setattr("windowlib.window.container.Reference", ReferenceSteps)
    monkeypatch.setattr(generated, "_Writer", GeneratedLines)


def rows(n=60):
    rng = random.Random(5)
    return [{"k": rng.randrange(3), "x": i, "end": rng.random() < 0.3} for i in range(n)]


def specs() -> list[Any]:
    when: Any = When("end")
    return [
        Tumbling(when, by="k"),
        Tumbling(when),
        Sliding(Count(4), every=when, by="k"),
        Sliding(Delta("x", 7), every=when, by="k"),
        Sliding(Time("5s"), every=when, by="k"),
    ]


SPECS = range(5)


class Told(WindowEvents[Any, Any]):
    def __init__(self):
        self.told = []

    def before_flush(self, window, key):
        self.told.append((key, [t["x"] for t in window[key]]))

    on_trigger = before_flush


def told(spec, engine):
    kind = SlidingWindow if isinstance(spec, Sliding) else TumblingWindow
    events = Told()
    window: Any = kind(spec, events=events, engine=engine)
    for row in rows():
        window.advance(row["x"])
        window.insert(row)
    window.state.check()
    return events.told, window.snapshot()["parts"]


@pytest.mark.parametrize("index", SPECS)
def test_both_engines_run_a_new_kind_of_policy(index, when):
    spec = specs()[index]
    fired, parts = told(spec, "generated")
    assert (fired, parts) == told(spec, "reference")
    asked = [row for row in rows() if row["end"]]
    assert len(fired) == len(asked)
    assert [xs[-1] for _, xs in fired] == [row["x"] for row in asked]


@pytest.mark.parametrize("index", SPECS)
def test_its_text_is_read_back(index, when):
    spec = specs()[index]
    assert parse(str(spec), by=spec.by) == spec


@pytest.mark.parametrize("index", SPECS)
def test_operators_batches_and_restarts_take_it(index, when):
    spec = specs()[index]
    partial: dict[str, Any] = {"partial": "emit"} if isinstance(spec, Sliding) else {}
    op = Aggregate(spec, n=agg.count(), xs=agg.collect("x"), **partial)
    expected = list(replay(op, rows(), times="x"))
    assert len(expected) == sum(row["end"] for row in rows())
    restarted = [item for row in rows() for item in (row, restart())]
    assert expected == list(replay(op, restarted, times="x"))
    assert expected == list(replay(op, iter(rows()), times="x"))
    running, out = op.open(), list[Any]()
    running.connect(0, out.append)
    running.insert_batch(pa.Table.from_pylist(rows()), times="x")
    assert expected == out


def test_what_it_does_not_fit_is_still_refused(when):
    with pytest.raises(PolicyError, match="not a policy that fits here"):
        Sliding(When("end"), every=Count(1))  # type: ignore[arg-type]
