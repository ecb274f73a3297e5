"""Timelines: what is recorded, and how it is written."""
# ruff: noqa: SIM300 - asserts read expected first

import textwrap
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windowlib import (
    KEY,
    ClockError,
    Count,
    Delta,
    PartitionError,
    PolicyError,
    PunctuationError,
    SchemaError,
    Sliding,
    Tumbling,
    WindowEvents,
    trace,
)
from windowlib.samples import stream, trades
from windowlib.tools import conformance
from windowlib.tools.tracing import Event, Mark, advance, punct

PAIRS = [("A", 1), ("B", 2), ("A", 4), ("A", 9), ("B", 9), ("A", 12)]
ROWS = [{"k": k, "x": x} for k, x in PAIRS]


def stamps(*values):
    return [{"ts": value} for value in values]


def drawn(text):
    return textwrap.dedent(text).strip()


def body(seen):
    """A timeline without its title and its legend."""
    return "\n\n".join(str(seen).split("\n\n")[1:-1])


def legend(seen):
    return str(seen).split("\n\n")[-1].replace("\n", " ")


def test_a_timeline_has_a_title_a_picture_and_a_legend():
    expected = """
    sliding, count(4), count(2)

    tuple      1   2   3   4   5   6   7   8
    evict                      1   2   3   4
    insert     1   2   3   4   5   6   7   8
    full                   *
    trigger        |       |       |       |
    window       (1-2)    1-4     3-6     5-8

    Each column runs from top to bottom. (1-2) not full yet.
    """
    assert drawn(expected) == str(trace("sliding, count(4), count(2)", range(8)))


def test_a_full_tumbling_count_window_is_flushed_after_the_insert():
    seen = trace("tumbling, count(3)", range(7))
    assert drawn(
        """
        tuple    1   2   3   4   5   6   7
        insert   1   2   3   4   5   6   7
        flush            |           |
        window          1-3         4-6
        """
    ) == body(seen)


def test_a_tumbling_delta_window_is_flushed_before_the_breaking_tuple_enters():
    seen = trace("tumbling, delta(ts, 10)", stamps(0, 4, 9, 10, 11, 15, 30))
    assert drawn(
        """
        tuple    1   2   3   4   5   6   7
        ts       0   4   9  10  11  15  30
        flush                    |       |
        insert   1   2   3   4   5   6   7
        window                  1-4     5-6
        """
    ) == body(seen)


def test_a_tumbling_time_window_is_flushed_by_its_ticks_even_when_empty():
    seen = trace("tumbling, time(10)", range(5), times=[0, 4, 9, 10, 31])
    assert drawn(
        """
        tuple    1   2   3       4           5
        time     0   4   9  10  10  20  30  31
        insert   1   2   3       4           5
        flush                |       |   |
        window              1-3      4   -
        """
    ) == body(seen)


def test_a_batch_is_flushed_by_its_last_tuple_or_at_its_deadline():
    seen = trace("tumbling, count(3) | time(10)", range(6), times=[0, 4, 9, 10, 21, 22])
    assert drawn(
        """
        tuple    1   2   3   4       5   6
        time     0   4   9  10  20  21  22
        insert   1   2   3   4       5   6
        flush            |       |
        window          1-3      4
        """
    ) == body(seen)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 500])
def test_a_stream_for_batches_closes_some_by_time_and_small_ones_by_count(size):
    seen = trace(f"tumbling, count({size}) | time(5), partitioned")
    by_count = [m for m in seen.moments if m.kind == "tuple" and len(m.events) > 1]
    by_time = [m for m in seen.moments if m.kind == "clock"]
    assert bool(by_count) == (size < 10)
    assert bool(by_time) == (size > 1)
    assert all(len(window.tuples) <= size for window in seen.windows)
    assert "flush" in seen.to_svg()


def test_punctuations_flush_or_find_the_window_empty():
    seen = trace("tumbling, punct()", ["a", "b", punct(), "c", punct(), punct()])
    assert drawn(
        """
        tuple    1   2   P   3   P   P
        insert   1   2       3
        flush            |       |
        empty                        *
        window          1-2      3
        """
    ) == body(seen)


def test_a_delta_trigger_comes_above_eviction_and_insertion():
    seen = trace("sliding, count(3), delta(ts, 5)", stamps(0, 4, 6, 7, 13, 14))
    assert drawn(
        """
        tuple      1   2   3   4   5   6
        ts         0   4   6   7  13  14
        trigger            |       |
        evict                  1   2   3
        insert     1   2   3   4   5   6
        full               *
        window           (1-2)    2-4
        """
    ) == body(seen)


def test_a_count_trigger_comes_below_the_insertion():
    seen = trace("sliding, delta(ts, 10), count(2)", stamps(0, 4, 9, 11, 25, 26))
    assert drawn(
        """
        tuple      1   2   3   4   5   6
        ts         0   4   9  11  25  26
        full                   *
        evict                  1  2-4
        insert     1   2   3   4   5   6
        trigger        |       |       |
        window       (1-2)    2-4     5-6
        """
    ) == body(seen)


def test_a_delta_window_is_full_before_it_triggers_and_evicts():
    seen = trace("sliding, delta(ts, 10), delta(ts, 5)", stamps(0, 4, 9, 11, 25, 26))
    assert drawn(
        """
        tuple      1   2   3   4   5   6
        ts         0   4   9  11  25  26
        full                   *
        trigger            |       |
        evict                  1  2-4
        insert     1   2   3   4   5   6
        window           (1-2)    2-4
        """
    ) == body(seen)


def test_too_old_tuples_leave_just_after_their_time():
    seen = trace(
        "sliding, time(3), count(2)", ["a", "b", advance(2), "c", advance(4), "d", advance(9)]
    )
    assert drawn(
        """
        tuple     1   2   3       4
        time      0   0   2  3+   4  5+  7+
        evict                1-2      3   4
        full      *
        insert    1   2   3       4
        trigger       |           |
        window       1-2         3-4
        """
    ) == body(seen)


def test_tuples_arrive_one_second_apart_unless_said_otherwise():
    seen = trace("sliding, time(4), time(2)", range(5))
    assert drawn(
        """
        tuple     1   2       3   4       5
        time      0   1   2   2   3   4   4
        evict
        full      *
        insert    1   2       3   4       5
        trigger           |           |
        window           1-2         1-4
        """
    ) == body(seen)


def test_ticks_have_columns_of_their_own():
    seen = trace("sliding, count(2), time(3)", range(8))
    assert drawn(
        """
        tuple     1   2   3       4   5   6       7   8
        time      0   1   2   3   3   4   5   6   6   7
        evict             1       2   3   4       5   6
        insert    1   2   3       4   5   6       7   8
        full          *
        trigger               |               |
        window               2-3             5-6
        """
    ) == body(seen)


def test_each_partition_has_a_block_and_numbers_run_over_the_whole_stream():
    seen = trace("sliding, count(2), count(2), partitioned", ROWS, by="k")
    assert drawn(
        """
        k = A
        tuple     1   3   4   6
        evict             1   3
        insert    1   3   4   6
        full          *
        trigger       |       |
        window       1 3     4 6

        k = B
        tuple     2   5
        evict
        insert    2   5
        full          *
        trigger       |
        window       2 5
        """
    ) == body(seen)


def test_a_partition_is_forgotten_at_a_tuple_of_another():
    seen = trace("tumbling, count(2), partitioned, partitionCount(1)", ROWS, by="k")
    assert drawn(
        """
        k = A
        tuple    1  [2]  3   4   6
        insert   1       3   4   6
        forget       1
        flush                |
        window              3-4

        k = B
        tuple    2  [3]  5  [6]
        insert   2       5
        forget       2       5
        flush
        window
        """
    ) == body(seen)


def test_partition_age_comes_before_everything_else():
    seen = trace(
        "sliding, delta(x, 4), count(2), partitioned, partitionAge(2)",
        ROWS,
        by="k",
        times=[0, 1, 2, 3, 4, 9],
    )
    assert drawn(
        """
        k = A
        tuple      1   3   4   6
        x          1   4   9  12
        time       0   2   3   9
        forget                 4
        full               *
        evict             1 3
        insert     1   3   4   6
        trigger        |
        window       (1 3)

        k = B
        tuple     2   5  [6]
        x         2   9
        time      1   4   9
        forget        2   5
        evict
        insert    2   5
        trigger
        window
        """
    ) == body(seen)


def test_an_idle_tick_belongs_to_no_partition():
    seen = trace("tumbling, time(2), partitioned", [*ROWS[:3], advance(5)], by="k")
    assert drawn(
        """
        k = A
        tuple    1   3
        time     0   0   2
        insert   1   3
        flush            |
        window          1 3

        k = B
        tuple   2
        time    0   2
        insert  2
        flush       |
        window      2

        no partition
        tuple
        time    4
        flush   |
        window  -
        """
    ) == body(seen)


def test_a_partition_that_evicts_itself_triggers_on_nothing():
    seen = trace("sliding, count(1), count(1), partitioned, tupleCount(0)", ROWS[:1], by="k")
    assert drawn(
        """
        k = A
        tuple    1
        evict
        insert   1
        forget   1
        trigger  |
        window   -
        """
    ) == body(seen)


def test_long_streams_wrap_into_several_blocks_of_columns():
    lines = body(trace("tumbling, count(1)", range(40))).splitlines()
    assert ["1", "19", "37"] == [line.split()[1] for line in lines if line.startswith("tuple")]
    assert all(len(line) <= 80 for line in lines)


def test_the_width_is_the_callers_choice():
    seen = trace("sliding, count(3), count(1)", range(20))
    assert max(map(len, seen.text(60).splitlines())) <= 60


def test_long_lists_of_numbers_are_cut_in_the_middle():
    rows = [{"k": i % 2} for i in range(40)]
    seen = trace("tumbling, count(20), partitioned", rows, by="k")
    assert "1 3 .. 37 39" in seen.text()
    assert tuple(range(1, 40, 2)) == seen.windows[0].tuples


def test_the_legend_explains_only_what_is_there():
    plain = "Each column runs from top to bottom."
    assert plain == legend(trace("tumbling, count(2)", range(4)))
    assert f"{plain} P a punctuation." == legend(trace("tumbling, punct()", [punct()]))
    assert f"{plain} - an empty window." == legend(trace("sliding, count(0), count(1)", range(2)))


def test_the_events_of_a_step_are_recorded_in_order():
    seen = trace("sliding, count(1), count(1)", ["a", "b"])
    assert [
        Event("evict", None, (1,)),
        Event("insert", None, (2,)),
        Event("trigger", None, (2,)),
    ] == seen.moments[1].events


def test_equal_rows_keep_their_own_numbers():
    row = {"x": 1}
    windows = trace("sliding, count(2), count(1)", [row, row, row]).windows
    assert [(1,), (1, 2), (2, 3)] == [window.tuples for window in windows]


def test_decreasing_values_leave_from_the_middle():
    seen = trace("sliding, delta(x, 2), count(1)", [{"x": x} for x in (5, 1, 4, 4)])
    assert [(1,), (1, 2), (1, 3), (1, 3, 4)] == [window.tuples for window in seen.windows]


def test_rows_may_have_any_form():
    by_index = trace(Tumbling(Delta(1, 3), by=0), [("A", 1), ("A", 5)])
    assert "0 = A" in str(by_index)
    by_callable = trace(Tumbling(Delta(lambda n: n, 3), by=lambda n: n % 2), range(8))
    assert [(1, 3), (2, 4)] == [window.tuples for window in by_callable.windows]
    assert "value" in str(by_callable)


def test_several_key_columns_make_one_heading():
    seen = trace(Tumbling(Count(1), by=("k", "x")), ROWS[:1])
    assert "k = A, x = 1" in str(seen)


def test_keys_that_are_nan_are_one_partition():
    rows = [{"k": float("nan")}, {"k": float("nan")}]
    assert [(1, 2)] == [
        w.tuples for w in trace("tumbling, count(2), partitioned", rows, by="k").windows
    ]


def test_headings_and_values_stay_on_one_line():
    seen = trace("tumbling, count(1), partitioned", [{"k": "a\nb" + "c" * 99}], by="k")
    assert f"k = a?b{'c' * 42}..." in str(seen).splitlines()


def test_the_clock_starts_at_the_first_arrival():
    first = datetime(2024, 3, 1, tzinfo=UTC)
    times = [first + timedelta(seconds=s) for s in (0, 4, 11)]
    seen = trace("tumbling, time(10)", range(3), times=times)
    assert [0, 4, 10, 11] == [moment.time for moment in seen.moments]


def test_arrival_times_may_be_a_column():
    seen = trace("tumbling, time(4)", ROWS, times="x", start=0)
    assert [(1, 2), (3,), (4, 5)] == [window.tuples for window in seen.windows]


def test_an_idle_window_without_input_has_nothing_to_show():
    assert "tumbling, count(2)\n\nno tuples" in str(trace("tumbling, count(2)", []))
    assert "</svg>" in trace("tumbling, count(2)", []).to_svg()


def test_repr_is_short():
    assert "<Trace 'tumbling, count(2)', 4 steps, 2 windows>" == repr(
        trace("tumbling, count(2)", range(4))
    )


def test_a_partitioned_window_needs_to_know_its_key():
    with pytest.raises(PartitionError, match=r'the window is partitioned, .* by="symbol"'):
        trace("tumbling, count(2), partitioned", ROWS)


def test_a_key_for_an_unpartitioned_window_is_refused():
    for spec in ("tumbling, count(2)", Tumbling(Count(2))):
        with pytest.raises(PolicyError, match="is not partitioned"):
            trace(spec, ROWS, by="k")


def test_a_key_that_cannot_be_hashed_is_refused():
    with pytest.raises(PartitionError, match=r"the key \[1\] is a list"):
        trace("tumbling, count(2), partitioned", [{"k": [1]}], by="k")


def test_too_few_times_are_refused():
    with pytest.raises(ClockError, match="fewer instants than the 3 tuples"):
        trace("tumbling, time(2)", range(3), times=[0, 1])


def test_a_punctuation_for_another_window_is_refused():
    with pytest.raises(PunctuationError, match="takes no punctuation"):
        trace("tumbling, count(2)", [1, punct()])


def test_a_missing_attribute_is_named():
    with pytest.raises(SchemaError, match=r"has no 'ts'. Columns: k, x"):
        trace("tumbling, delta(ts, 2)", ROWS)


def test_a_value_without_distance_is_shown_as_the_user_wrote_it():
    with pytest.raises(SchemaError, match=r"Delta\('k', 2\): the value 'A' is of type str"):
        trace("tumbling, delta(k, 2)", ROWS)


def test_rows_for_a_callable_cannot_be_made_up():
    with pytest.raises(PolicyError, match="no rows can be made up"):
        trace(Tumbling(Delta(len, 2)))


SPECS = [
    "tumbling, count(0)",
    "tumbling, count(4)",
    "tumbling, delta(ts, 10)",
    "tumbling, delta(ts, 0)",
    "tumbling, delta(ts, 10s)",
    "tumbling, delta(x, 0.5)",
    "tumbling, time(10)",
    "tumbling, time(0.0001)",
    "tumbling, punct()",
    "tumbling, punct(), partitioned",
    "tumbling, time(10), partitioned",
    "sliding, count(4), count(2)",
    "sliding, count(3), delta(ts, 10)",
    "sliding, count(3), time(10)",
    "sliding, delta(ts, 20), count(3)",
    "sliding, delta(ts, 20), delta(ts, 10), partitioned",
    "sliding, delta(ts, 10), time(3)",
    "sliding, time(10), count(2)",
    "sliding, time(10), delta(ts, 5)",
    "sliding, time(10), time(5)",
    "sliding, time(3600), time(1)",
    "sliding, count(3), count(2), partitioned, partitionCount(2)",
    "sliding, count(3), count(2), partitioned, partitionCount(1000)",
    "tumbling, count(3), partitioned, tupleCount(4)",
    "tumbling, count(3), partitioned, partitionAge(10)",
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_generated_stream_fits_80_columns_and_shows_windows(spec):
    seen = trace(spec)
    assert all(len(line) <= 80 for line in str(seen).splitlines())
    assert len(seen.windows) >= (0 if "count(0)" in spec else 2)
    assert len(seen.moments) < 200


@pytest.mark.parametrize(
    "forget", ["partitionCount(1)", "partitionCount(2)", "tupleCount(5)", "partitionAge(10)"]
)
def test_a_generated_stream_makes_partitions_go(forget):
    seen = trace(f"sliding, count(3), count(2), partitioned, {forget}")
    assert any(event.name == "forget" for moment in seen.moments for event in moment.events)


def test_a_generated_stream_has_the_columns_that_the_specification_names():
    spec = Sliding(Count(2), every=Delta("ts", 10), by=("a", "b"))
    assert {"a": "A", "b": "A", "ts": 2} == stream(spec, 1)[0]
    assert {"key": "A"} == stream(Tumbling(Count(2), by=KEY), 1)[0]


def test_trades_are_the_same_every_time():
    assert trades(50) == trades(50) != trades(50, seed=8)
    assert ["AAPL", "IBM", "MSFT"] == sorted({trade["symbol"] for trade in trades(50)})
    times = [trade["ts"] for trade in trades()]
    assert sorted(set(times)) == times


NAMES = {
    "after_insert": "insert",
    "after_evict": "evict",
    "before_flush": "flush",
    "trigger": "trigger",
    "initial_full": "full",
    "empty_punct": "empty",
}


def replayed(case):
    """The input of a recorded case as rows, which carry their keys."""
    clock, rows = 0.0, list[Any]([advance(0)])
    for op in case["input"]:
        if op["op"] == "tuple":
            rows.append({"p": op["p"], **op["t"]})
        elif op["op"] == "sleep":
            clock += op["s"]
            rows.append(advance(clock))
        else:
            rows.append(punct())
    return rows


def recorded(case):
    """The events of a recorded case, in the words of a trace."""
    for event in case["events"]:
        if event["e"] == "partition_eviction":
            yield from (("forget", part["p"], part["w"]) for part in event["parts"])
        elif name := NAMES.get(event["e"]):
            one = [event["t"]] if name in ("insert", "evict") else []
            yield name, event.get("p"), event["w"] if name in ("trigger", "flush") else one


FILES = ("sliding_delta_delta", "time_sliding_time_delta", "tumbling_punct", "partition_eviction")


@pytest.mark.parametrize("name", FILES)
def test_a_trace_tells_what_the_original_library_did(name, request):
    path = request.config.rootpath / "tests" / "conformance" / f"{name}.jsonl.gz"
    for case in conformance.cases([path]):
        if "operator_defined" in str(case["window"]):
            continue  # choosing partitions takes a handler
        window = conformance.build(case["window"], WindowEvents(), "generated")
        rows = replayed(case)
        seen = trace(window.spec, rows, by="p" if window.spec.partitioned else None)
        ids = [row["id"] for row in rows if not isinstance(row, Mark)]
        told = [
            (event.name, event.key, [ids[number - 1] for number in event.tuples])
            for moment in seen.moments
            for event in moment.events
        ]
        assert list(recorded(case)) == told, case["id"]
