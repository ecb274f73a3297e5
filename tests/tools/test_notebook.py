"""What a notebook shows: of specifications, operators, graphs and replays; and tables of rows."""
# ruff: noqa: SIM300 - asserts read expected first

from collections import deque
from dataclasses import dataclass
from html import escape
from typing import NamedTuple
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from windowlib import (
    KEY,
    Count,
    Delta,
    Operator,
    OperatorModel,
    PartitionCount,
    Punct,
    Replay,
    SchemaError,
    Sliding,
    Time,
    Tumbling,
    replay,
)
from windowlib.operators import Aggregate, Filter, Functor, Join, Sort, agg
from windowlib.runtime.replay import Lookahead
from windowlib.tools.listing import Listing
from windowlib.tools.notebook import scaled_down


def html(shown):
    """What a notebook gets, checked to be well-formed."""
    text = shown._repr_html_()
    ElementTree.fromstring(text)
    return text


def totals(n=2):
    return Aggregate(Tumbling(Count(n)), total=agg.sum("x"))


def xs(*values):
    return [{"x": value} for value in values]


# -- specifications --


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Count(3)),
        Tumbling(Punct()),
        Tumbling(Count(3) | Time("5s")),
        Tumbling(Count(2), by=("a", "b")),
        Sliding(Time("1m"), every=Time("10s"), by=KEY),
        Sliding(Delta("ts", 10), every=Count(2)),
        Sliding(Count(3), by="k", forget=PartitionCount(2)),
        Sliding(Count(0)),
    ],
    ids=str,
)
def test_a_specification_shows_its_timeline(spec):
    shown = html(spec)
    assert "<svg" in shown
    assert f">{spec}</text>" in shown
    assert "drawn as" not in shown


def test_large_counts_are_drawn_smaller_and_it_says_so():
    shown = html(Sliding(Count(1000), every=Count(100), by="symbol"))
    assert "drawn as sliding, count(10), count(1), partitioned" in shown


@pytest.mark.parametrize(
    ("spec", "drawn"),
    [
        (Tumbling(Count(10)), Tumbling(Count(10))),
        (Tumbling(Count(11)), Tumbling(Count(1))),
        (Tumbling(Count(500), by="k"), Tumbling(Count(10), by="k")),
        (Sliding(Count(64), every=Count(16)), Sliding(Count(8), every=Count(2))),
        (Sliding(Count(64), every=Count(0)), Sliding(Count(8), every=Count(0))),
        (Sliding(Count(64)), Sliding(Count(64))),
        (Sliding(Count(64), every=Time("4s")), Sliding(Count(64), every=Time("4s"))),
    ],
)
def test_counts_are_divided_by_one_number_or_left_alone(spec, drawn):
    assert drawn == scaled_down(spec)


def test_a_specification_with_a_callable_is_only_named():
    shown = html(Tumbling(Delta(lambda t: t, 3)))
    assert "&lt;lambda&gt;" in shown
    assert "<svg" not in shown


# -- operators --


def test_an_operator_shows_ports_windows_and_parameters():
    vwap = Aggregate(Sliding(Count(9), by="symbol"), name="<vwap>", v=agg.sum("x") / agg.count())
    shown = html(vwap)
    for text in (
        "<b>&lt;vwap&gt;: Aggregate</b>",
        "input in",
        "sliding, count(9), count(1), partitioned, by &#x27;symbol&#x27;",
        "age, evict, insert, full, trigger",
        "agg.sum(&quot;x&quot;)",
        "punctuation of its own",
    ):
        assert text in shown


def test_an_operator_shows_whose_punctuation_it_preserves():
    assert "the punctuation of input in" in html(Filter(bool))
    assert "expects punctuation" in html(Aggregate(Tumbling(Punct()), n=agg.count()))


class Opens(Operator):
    model = OperatorModel()

    def on_open(self):
        raise AssertionError("looked at, and opened")

    def on_tuple(self, tuple_, port): ...


def test_showing_an_operator_does_not_open_it():
    assert "no punctuation" in html(Opens())
    assert "Opens" in Opens().to_mermaid()
    with pytest.raises(AssertionError, match="opened"):
        Opens().open()


def test_a_graph_shows_its_operators_and_its_flowchart():
    graph = Sort("x", window=Tumbling(Count(2))).then(Filter(bool))
    shown = html(graph)
    for text in ("Sort", "reads input; tumbling, count(2)", "reads Sort", "outputs"):
        assert f">{text}</td>" in shown
    assert escape(graph.to_mermaid()) in shown
    assert "<script" not in shown


def test_every_port_of_a_join_is_shown():
    shown = html(Join(left=Sliding(Count(0)), right=Sliding(Count(9)), on="x"))
    assert "input left" in shown
    assert "input right" in shown


# -- replays --


def test_a_table_takes_nothing_from_who_iterates():
    found = replay(totals(), xs(1, 2, 3, 4, 5, 6))
    assert [{"total": 3}, {"total": 7}] == found.table(2).rows
    assert [{"total": 3}, {"total": 7}, {"total": 11}] == list(found)


def test_a_table_in_the_midst_shows_what_comes_next():
    found = replay(totals(), xs(1, 2, 3, 4, 5, 6))
    assert {"total": 3} == next(found)
    assert [{"total": 7}, {"total": 11}] == found.table().rows
    assert {"total": 7} == next(found)


def test_a_table_computes_as_many_rows_as_it_shows():
    read: list[int] = []

    def source():
        for row in xs(1, 2, 3, 4, 5, 6):
            read.append(row["x"])
            yield row

    found = replay(totals(), source())
    assert 1 == len(found.table(1).rows)
    assert [1, 2] == read
    assert 1 == len(found.table(1).rows)
    assert [1, 2] == read


def test_marks_and_other_ports_are_still_there_after_a_table():
    split = Filter(lambda t: t["x"] > 1, rejected="port")
    found = replay(split, xs(1, 2))
    assert xs(2) == found.table().rows
    assert xs(1) == found.port("rejected")
    assert xs(2) == found.port()
    assert xs(2) == found.table().rows
    marked = replay(totals(), xs(1, 2))
    marked.table()
    assert 2 == len(list(marked.items()))


def test_a_failure_is_told_and_stays_for_who_iterates():
    def checked(row):
        return {"x": 1 // row["x"]}

    found = replay(Functor(checked), xs(1, 0, 1))
    table = found.table()
    assert xs(1) == table.rows
    assert str(table).endswith("1 row, then ZeroDivisionError: integer division or modulo by zero")
    assert "ZeroDivisionError" in html(found)
    assert {"x": 1} == next(found)
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert [] == list(found)


def test_a_column_that_is_missing_is_told_in_a_notebook():
    found = replay(totals(), [{"y": 1}])
    assert "SchemaError" in html(found)
    with pytest.raises(SchemaError):
        list(found)


@pytest.mark.parametrize("rows", [xs(1, 2), tuple(xs(1, 2)), pa.table({"x": [1, 2]})], ids=type)
def test_a_replay_of_what_is_at_hand_shows_its_rows(rows):
    assert ">3</td>" in html(replay(totals(), rows))


def test_a_source_that_may_have_to_wait_is_not_asked():
    def source():
        raise AssertionError("asked")
        yield

    found = replay(totals(), source())
    assert "computed when they are read" in html(found)
    with pytest.raises(AssertionError, match="asked"):
        next(found)


def test_an_operator_without_outputs_has_an_empty_table():
    class Sink(Operator):
        model = OperatorModel(ports_out=0)

        def on_tuple(self, tuple_, port): ...

    assert "0 rows" == str(replay(Sink(), xs(1)).table())


def test_two_inputs_are_shown_if_both_are_at_hand():
    join = Join(left=Sliding(Count(0)), right=Sliding(Count(9)), on="x")
    assert "computed when" not in html(replay(join, xs(1), xs(1), merge="x"))
    assert "computed when" in html(replay(join, xs(1), iter(xs(1)), merge="x"))


def test_a_replay_is_an_iterator_still():
    found = replay(totals(), xs(1, 2))
    assert isinstance(found, Replay)
    assert iter(found) is found


def test_looking_into_an_iterator_that_has_ended_finds_nothing():
    waiting: deque[int] = deque()
    ahead = Lookahead(map(waiting.append, [1]), waiting)
    assert [True, False, False] == [ahead.fetch() for _ in range(3)]
    assert [1] == list(ahead)


# -- tables --


@dataclass
class Trade:
    symbol: str
    price: float


class Pair(NamedTuple):
    a: int
    b: str


def test_numbers_stand_to_the_right_and_other_values_to_the_left():
    rows = [{"name": "a", "n": 5}, {"name": "bcd", "n": 1234}]
    assert "name     n\n----  ----\na        5\nbcd   1234\n2 rows" == str(Listing(rows))


def test_rows_of_every_form_have_columns():
    assert ["symbol", "price"] == Listing([Trade("IBM", 1.5)]).columns
    assert ["a", "b"] == Listing([Pair(1, "x")]).columns
    assert ["row"] == Listing([7, "seven", (1, 2)]).columns
    assert ["x", "y"] == Listing([{"x": 1}, {"y": 2}]).columns


def test_a_table_is_escaped_and_cut():
    listing = Listing([{"<i>": "<script>", "long": "a" * 500, "none": None, "odd": "\x00"}])
    shown = html(listing)
    assert "&lt;script&gt;" in shown
    assert "&lt;i&gt;" in shown
    assert "a" * 40 not in shown
    assert max(map(len, str(listing).splitlines())) < 80


def test_a_table_says_how_many_rows_it_has():
    assert "0 rows" == str(Listing([]))
    assert "<Listing of 1 row>" == repr(Listing([1]))
    assert "<Listing of 2 rows, and more may follow>" == repr(Listing([1, 2], more=True))
