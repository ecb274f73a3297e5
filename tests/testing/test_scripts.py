"""Scripts say what goes in and what must come out, and are clear when it does not."""
# ruff: noqa: SIM300 - asserts read expected first

import pyarrow as pa
import pytest

from windowlib import Count, Either, PartitionAge, Sliding, Time, Tumbling
from windowlib.operators import Aggregate, Dedup, Join, Reorder, agg
from windowlib.testing import punct, script, to

PAIRS = Aggregate(Tumbling(Count(2)), total=agg.sum("x"))
TIMED = Aggregate(Tumbling(Either(Count(3), Time("5s"))), n=agg.count())


def failure(call):
    with pytest.raises(AssertionError) as caught:
        call()
    return str(caught.value)


def test_rows_come_out_after_the_step_that_made_them():
    run = script(PAIRS).rows({"x": 1}).expect().rows({"x": 2}, {"x": 5}).expect({"total": 3})
    assert [[], [], [{"total": 3}, punct()], []] == [
        [event.item for event in step.out] for step in run.steps
    ]


def test_time_restarts_and_the_end_are_steps():
    run = script(TIMED).rows({"x": 1}, {"x": 2}).restart().advance("4s").expect()
    run.advance("1s").expect({"n": 2}).rows({"x": 3}).finish()
    assert [{"n": 2}] == run.port()[:1]
    assert 5_000_000 == run.steps[4].out[0].at


def test_the_clock_may_follow_a_column():
    rows = [{"x": 1, "ts": 100.0}, {"x": 2, "ts": 101.0}, {"x": 3, "ts": 105.0}]
    script(TIMED, times="ts").restart().rows(*rows[:2]).expect().rows(rows[2]).expect({"n": 2})


def test_a_punctuation_counts_if_it_is_asked_for():
    script(PAIRS).rows({"x": 1}, {"x": 2}).expect({"total": 3}, punct())
    script(PAIRS).rows({"x": 1}, {"x": 2}).expect({"total": 3})
    told = failure(lambda: script(PAIRS).rows({"x": 1}, {"x": 2}).expect(punct(), {"total": 3}))
    assert "expected  punct()" in told
    told = failure(lambda: script(PAIRS).rows({"x": 1}, {"x": 2}).expect({"total": 3}, puncts=True))
    assert "got       punct()" in told


def test_a_punctuation_closes_a_window():
    total = Aggregate("tumbling, punct()", total=agg.sum("x"))
    script(total).rows({"x": 1}, {"x": 2}).punct().expect({"total": 3})


def test_what_windows_do_is_counted_across_restarts():
    idle = Aggregate(Sliding(Count(2), by="k", forget=PartitionAge("1h")), n=agg.count())
    run = script(idle)
    assert {} == run.counters
    run.rows({"k": "a"}, {"k": "a"}, {"k": "b"}).restart().rows({"k": "a"}).advance("2h").restart()
    counts = {"fired": 2, "evicted": 1, "partitions": 2, "partitions_evicted": 0}
    assert counts == run.counters
    counts |= {"evicted": 4, "partitions": 1, "partitions_evicted": 2}  # ages count at a row
    assert counts == run.rows({"k": "c"}).counters
    late = script(Reorder("ts", slack=1)).rows({"ts": 5}, {"ts": 1}, {"ts": 9}, {"ts": 2})
    assert (2, 3) == (late.counters["late"], late.restart().rows({"ts": 0}).counters["late"])


def test_rows_go_to_inputs_and_come_from_outputs_by_name():
    pairs = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k")
    run = script(pairs).rows({"k": 1, "a": 1}, port="left").rows(to("right", {"k": 1, "b": 2}))
    assert 1 == len(run.port())
    odd = Dedup("x", within=Count(5), duplicates="port")
    run = script(odd).rows({"x": 1}, {"x": 1}).expect({"x": 1})
    other = odd.model.outputs[1].name
    run.expect({"x": 1}, port=other)
    assert f"port={other!r}" in failure(lambda: run.expect({"x": 9}, port=other))


def test_a_batch_goes_in_whole():
    script(PAIRS).batch(pa.table({"x": [1, 2, 3, 4]})).expect({"total": 3}, {"total": 7})


def test_the_order_may_be_left_open():
    by_key = Aggregate(Tumbling(Count(1), by="k"), n=agg.count())
    rows = [{"k": "a", "n": 1}, {"k": "b", "n": 1}]
    script(by_key).rows({"k": "b"}, {"k": "a"}).expect(*rows, exact=False)
    run = script(by_key).rows({"k": "b"}, {"k": "c"})
    assert "differs at row 2" in failure(lambda: run.expect(*rows, exact=False))


def test_values_may_be_approximate_and_nan_is_nan():
    mean = Aggregate(Tumbling(Count(3)), mean=agg.mean("x"))
    thirds = [{"x": x} for x in (0.1, 0.2, 0.3)]
    script(mean).rows(*thirds).expect({"mean": pytest.approx(0.2)})
    script(mean).rows(*[{"x": float("nan")}] * 3).expect({"mean": float("nan")})


def test_a_failure_says_what_which_step_and_what_was_before():
    run = script(PAIRS).rows({"x": 1}, {"x": 2}).advance("3s")
    assert (
        failure(lambda: run.expect({"total": 4}))
        == """\
step 3 of a script of Aggregate, at time 3: 'out' differs at row 1.
  expected  {'total': 4}
  got       {'total': 3}
All that was expected (1):
  {'total': 4}
All that came (1):
  {'total': 3}
The script:
  1 rows({'x': 1}, {'x': 2})  ->  out {'total': 3}, out punct()
  2 advance('3s')  ->  nothing
> 3 expect({'total': 4})"""
    )


def test_too_few_and_too_many_rows_are_found():
    told = failure(lambda: script(PAIRS).rows({"x": 1}).expect({"total": 1}))
    assert "got       nothing" in told
    told = failure(lambda: script(PAIRS).rows({"x": 1}, {"x": 2}).expect())
    assert "expected  nothing" in told


def test_an_error_says_in_which_step_it_came():
    run = script(PAIRS).rows({"x": 1})
    with pytest.raises(Exception, match="x") as caught:
        run.rows({"y": 1})
    assert "in step 2 of a script, rows({'y': 1})" in caught.value.__notes__


def test_the_last_step_is_at_hand():
    run = script(PAIRS)
    assert not run.last
    run.rows({"x": 1}, {"x": 2}).expect({"total": 3})
    assert [{"total": 3}, punct()] == [event.item for event in run.last]
    assert "<script of Aggregate, 2 steps>" == repr(run)
