"""Figure 2 of the paper: counting tuples and measuring their ids process the same windows.

    count(2), count(1)               delta(id, 1), delta(id, 0)
    +1   insert 1                    +1   insert 1
    +2   insert 2; trigger [1 2]     +2   insert 2
    +3   evict 1; insert 3;          +3   trigger [1 2]; evict 1; insert 3
         trigger [2 3]               +4   trigger [2 3]; ...

The delta window sees each of them one tuple later, because its trigger comes before the insert.
Triggers before initial_full are ignored: those windows are partial.
"""

from typing import Any

import pytest

from tests.helpers.event_recorder import build
from windowlib import Count, Delta, Sliding, WindowEvents

LENGTH = 50


class Processed(WindowEvents[Any, Any]):
    """Emits the windows that are processed once the window was full, with the arriving id."""

    full = False
    arriving = 0

    def on_initial_full(self, window, key):
        self.full = True

    def on_trigger(self, window, key):
        if self.full:
            self.emit((self.arriving, list(window[key])))


def processed(spec, ids, engine):
    events = Processed()
    window = build(spec, events=events, engine=engine)
    for number in ids:
        events.arriving = number
        window.insert({"id": number})
    return events.emitted


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("m", range(1, 9))
@pytest.mark.parametrize("n", range(1, 9))
def test_counts_and_deltas_of_ids_process_the_same_windows(n, m, engine):
    by_count = Sliding(Count(n), every=Count(m))
    by_delta = Sliding(Delta("id", n - 1), every=Delta("id", m - 1))
    counted = processed(by_count, range(1, LENGTH + 1), engine)
    measured = processed(by_delta, range(1, LENGTH + 2), engine)
    assert [(last + 1, window) for last, window in counted] == measured
    # Every m-th tuple closes a window of n, from the first that has n tuples.
    ends = [end for end in range(m, LENGTH + 1, m) if end >= n]
    windows = [[{"id": i} for i in range(end - n + 1, end + 1)] for end in ends]
    assert windows == [window for _, window in counted]


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_the_windows_of_the_figure(engine):
    pairs = [[{"id": 1}, {"id": 2}], [{"id": 2}, {"id": 3}], [{"id": 3}, {"id": 4}]]
    by_count = Sliding(Count(2), every=Count(1))
    assert list(zip((2, 3, 4), pairs, strict=True)) == processed(by_count, range(1, 5), engine)
    by_delta = Sliding(Delta("id", 1), every=Delta("id", 0))
    assert list(zip((3, 4, 5), pairs, strict=True)) == processed(by_delta, range(1, 6), engine)


def test_ids_that_skip_a_number_break_the_equivalence():
    """The reverse emulation is impossible: a count window does not see the gap."""
    ids = [1, 2, 3, 7, 8, 9, 10]
    counted = [w for _, w in processed(Sliding(Count(2)), ids, "generated")]
    by_delta = Sliding(Delta("id", 1), every=Delta("id", 0))
    measured = [w for _, w in processed(by_delta, [*ids, 11], "generated")]
    assert [{"id": 3}, {"id": 7}] in counted
    assert [{"id": 3}, {"id": 7}] not in measured
