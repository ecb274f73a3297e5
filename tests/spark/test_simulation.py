"""Histories of a simulated Spark host give what an undisturbed process gives; see `simulation`."""

import random
from dataclasses import replace

import pytest

from tests.helpers.examples import is_thorough
from tests.spark.simulation import (
    OPERATORS,
    Arrivals,
    Cluster,
    Events,
    History,
    Stored,
    Transaction,
    Worker,
    WriteError,
    attempt,
)
from windowlib import WindowlibError

HISTORIES = 2000 if is_thorough() else 200


@pytest.mark.search
def test_every_history_gives_what_an_undisturbed_process_gives():
    total = Events()
    for seed in range(HISTORIES):
        history = History(seed)
        history.run()
        for name, value in vars(history.events).items():
            setattr(total, name, getattr(total, name) + value)
    assert min(vars(total).values()) > HISTORIES // 10, f"too little has happened: {total}"


def test_a_wrong_output_is_found():
    history = History(0)
    history.run()
    query = next(query for query in history.queries if any(query.output))
    at = next(n for n, rows in enumerate(query.output) if rows)
    query.output[at] = query.output[at][:-1]
    history.chance = random.Random(3)
    with pytest.raises(AssertionError, match="seed 0"):
        history.check()


def arrivals_of(history, count=6):
    history.chance = random.Random(7)
    sides = tuple(tuple(history._rows(count)) for _ in range(1 + history.two))
    return Arrivals(sides, history.now, 0, 1)


@pytest.mark.parametrize("seed", range(len(OPERATORS)), ids=OPERATORS)
def test_a_write_of_state_that_fails_fails_the_task_and_a_retry_recovers(seed):
    """Each write in turn: nothing that the failed attempt leaves in a cache is used."""
    history = History(seed)
    spec = replace(history.queries[0].spec, nonce="faults")
    first, second = arrivals_of(history), arrivals_of(history)
    worker = Worker(Cluster(random.Random(0)), "only")
    base = Transaction(Stored())
    attempt(spec, worker, base, 0, first, None)
    whole = Transaction(base.stored())
    want = attempt(spec, Worker(Cluster(random.Random(0)), "cold"), whole, 0, second, None)
    assert whole.writes
    for number in range(whole.writes):
        failing = Transaction(base.stored(), fails_at=number)
        with pytest.raises(WriteError, match="No space left"):
            attempt(spec, worker, failing, 0, second, None)
        again = Transaction(base.stored())
        assert attempt(spec, worker, again, 0, second, None) == want
        assert again.timers == whole.timers


@pytest.mark.parametrize("seed", range(len(OPERATORS)), ids=OPERATORS)
def test_a_short_write_of_state_is_refused(seed):
    """A value or a page of which only a part was written is never taken for state."""
    history = History(seed)
    spec = replace(history.queries[0].spec, nonce="short")
    first, second = arrivals_of(history, 9), arrivals_of(history, 2)
    base = Transaction(Stored())
    attempt(spec, Worker(Cluster(random.Random(0)), "a"), base, 0, first, None)
    attempt(spec, Worker(Cluster(random.Random(0)), "b"), base, 0, second, None)
    stored = base.stored()
    for share in (0.0, 0.3, 0.9, 0.999):
        for short in shortened(stored, share):
            cold = Worker(Cluster(random.Random(0)), "cold")
            transaction = Transaction(short)
            with pytest.raises(WindowlibError, match=r"checkpoint|snapshot|state"):
                attempt(spec, cold, transaction, 0, second, None)


def shortened(stored, share):
    """The state with one of its values cut short."""
    for place, (key, (data,)) in enumerate(stored.values):
        values = list(stored.values)
        values[place] = key, (data[: int(len(data) * share)],)
        yield replace(stored, values=tuple(values))
