"""Transcripts are stable text, and golden files keep them."""
# ruff: noqa: SIM300 - asserts read expected first

import pytest

from windowlib import Count, Either, Sliding, Time, Tumbling
from windowlib.operators import Aggregate, Join, agg
from windowlib.testing import advance, assert_golden, punct, restart, to, transcript

TIMED = Aggregate(Tumbling(Either(Count(3), Time("5s"))), n=agg.count())


@pytest.fixture(autouse=True)
def _nobody_asked(monkeypatch):
    monkeypatch.delenv("WINDOWLIB_UPDATE_GOLDEN", raising=False)


def test_a_transcript_has_a_line_for_each_event():
    items = [{"x": 1}, advance(2), {"x": 2}, restart(), advance(7.5), punct(), {"x": 3}]
    assert (
        transcript(TIMED, items)
        == """\
Aggregate
  0  in       {'x': 1}
  2  time
  2  in       {'x': 2}
  2  restart
  5  out        {'n': 2}
  5  out        punct()
7.5  time
7.5  in       punct()
7.5  in       {'x': 3}
7.5  end
"""
    )


def test_arrival_times_move_the_clock_of_a_transcript():
    rows = [{"x": 1, "ts": 10.0}, {"x": 2, "ts": 16.0}]
    lines = transcript(TIMED, rows, times="ts").splitlines()
    assert ["10", "15", "15", "16", "16"] == [line.split()[0] for line in lines[1:]]


def test_ports_have_their_names_in_a_transcript():
    pairs = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k")
    text = transcript(pairs, [to("left", {"k": 1, "a": 1}), to("right", {"k": 1, "b": 2})])
    assert ["left", "right", "matches", "matches", "end"] == [
        line.split()[1] for line in text.splitlines()[1:]
    ]


def test_a_text_that_is_kept_is_the_same(tmp_path):
    path = tmp_path / "deep" / "a.txt"
    assert_golden("one\ntwo", path, update=True)
    assert "one\ntwo\n" == path.read_text()
    assert_golden("one\ntwo\n", path)


def test_a_difference_is_shown_line_by_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    with pytest.raises(AssertionError) as caught:
        assert_golden("one\nthree\n", path)
    told = str(caught.value).splitlines()
    assert f"{path}: the text is another one now." == told[0]
    assert {"-two", "+three"} <= set(told)
    assert "--update-golden" in told[-1]


def test_a_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(AssertionError, match="there is no such golden file") as caught:
        assert_golden("one", tmp_path / "a.txt")
    assert "pytest --update-golden, or set WINDOWLIB_UPDATE_GOLDEN=1" in str(caught.value)
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(("value", "written"), [("1", True), ("0", False), ("", False)])
def test_the_environment_may_ask_for_an_update(tmp_path, monkeypatch, value, written):
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    monkeypatch.setenv("WINDOWLIB_UPDATE_GOLDEN", value)
    if written:
        assert_golden("new", path)
        assert "new\n" == path.read_text()
    else:
        with pytest.raises(AssertionError):
            assert_golden("new", path)
