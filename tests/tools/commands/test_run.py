"""`windowlib run`: rows from anywhere, through any operator, to anywhere."""
# ruff: noqa: SIM300 - asserts read expected first

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from windowlib import Count, Sliding, Time, Tumbling, replay
from windowlib.operators import Aggregate, Join, agg
from windowlib.samples import trades
from windowlib.tools.command_line import main
from windowlib.tools.commands import meter as meters
from windowlib.tools.commands.input_files import SocketRows
from windowlib.tools.commands.meter import Meter, colours
from windowlib.tools.commands.output_files import LiveTableWriter, TableWriter, table_lines

ROOT = Path(__file__).parents[3]
VWAP = (
    "Aggregate(Sliding(Count(100), every=Count(10), by='symbol'), "
    "vwap=agg.sum('notional') / agg.sum('qty'))"
)
EXPECTED = list(
    replay(
        Aggregate(
            Sliding(Count(100), every=Count(10), by="symbol"),
            vwap=agg.sum("notional") / agg.sum("qty"),
        ),
        trades(300),
    )
)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


# -- where rows come from --


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("operator", [VWAP, "job.py:vwap", "./job.py:vwap", "job:vwap"])
@pytest.mark.parametrize("file", ["trades.csv", "trades.jsonl", "trades.parquet"])
def test_an_operator_gives_the_same_rows_from_every_kind_of_file(operator, file, ran):
    out, err = ran("run", operator, "--input", file, "--output", "-")
    assert EXPECTED == lines(out)
    assert f"300 rows in, {len(EXPECTED)} rows out\n" == err
    assert EXPECTED


@pytest.mark.parametrize("file", ["trades.csv", "trades.jsonl"])
def test_stdin_may_be_csv_or_json_lines(file, folder, ran, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO((folder / file).read_text()))
    assert EXPECTED == lines(ran("run", VWAP, "-i", "-", "-o", "-")[0])


def test_a_socket_is_read_until_it_ends(sender, folder, ran):
    place = sender((folder / "trades.jsonl").read_bytes().rstrip(b"\n"))
    out, err = ran("run", VWAP, "-i", place, "-o", "-")
    assert EXPECTED == lines(out)
    assert f"300 rows in, {len(EXPECTED)} rows out\n" == err
    assert EXPECTED


def test_rows_of_a_socket_are_shown_as_they_come(sender, ran):
    place = sender(b'{"a": 1}\n\n{"a": 2.5}\n')
    out, _ = ran("run", "Filter(lambda t: t['a'] > 0)", "-i", place, "-q")
    assert "         a\n         1\n       2.5\n" == out


def test_the_rows_of_a_socket_have_the_columns_that_are_said(sender, ran):
    said = "a double, at timestamp, text string, tags array<bigint>, of struct<n: int>"
    line = b'{"a": 1, "x": 2, "at": "2024-03-01T10:00:00Z", "text": "2024-03-01", "tags": [1, 2.0]}'
    place = sender(line + b'\n{"of": {"n": 3}}\n')
    out, _ = ran("run", "Filter(lambda t: True)", "-i", place, "--schema", said, "-o", "-", "-q")
    first = {"a": 1.0, "at": "2024-03-01T10:00:00+00:00", "text": "2024-03-01", "tags": [1, 2]}
    empty = dict.fromkeys(first)
    assert [first | {"of": None}, empty | {"of": {"n": 3}}] == lines(out)


@pytest.mark.parametrize("bad", [b'{"n": [1.5]}', b'{"n": ["1"]}', b'{"n": 1}'])
def test_a_value_of_another_type_ends_it_after_the_rows_before(bad, sender, capsys):
    place = sender(b'{"n": [1]}\n' + bad)
    argv = ["run", "Filter(lambda t: True)", "-i", place, "--schema", "n array<int>", "-o", "-"]
    assert 2 == main(argv)
    out, err = capsys.readouterr()
    assert '{"n": [1]}\n' == out
    assert err.startswith(f"windowlib run: {place}, line 2: n is ")


def test_pieces_of_a_socket_are_its_rows(sender, monkeypatch):
    monkeypatch.setattr("windowlib.tools.commands.input_files.MOST", 2)
    text = b"".join(b'{"a": %d}\n' % n for n in range(5))
    pieces = list(SocketRows(sender(text)).batches())
    assert [{"a": n} for n in range(5)] == [row for piece in pieces for row in piece]
    assert max(map(len, pieces)) <= 2


def test_punctuations_stand_among_json_lines(folder, ran):
    (folder / "p.jsonl").write_text('{"a": 1}\n{"a": 2}\n{"punct": true}\n{"a": 5}\n')
    out, _ = ran("run", "Aggregate('tumbling, punct()', s=agg.sum('a'))", "-i", "p.jsonl", "-o-")
    assert [{"s": 3}, {"s": 5}] == lines(out)


class Wall:
    """A clock that goes on by a second whenever somebody looks at it."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        self.now += 1
        return self.now


def test_the_clock_of_a_socket_is_that_of_the_wall_and_never_goes_back(sender):
    rows = SocketRows(sender(b'{"a": 1}\n{"a": 2}\n'), clock=iter([50, 51, 40]).__next__)
    assert 50 == rows.start
    assert "[advance(51), {'a': 1}, advance(51), {'a': 2}]" == str(list(rows.rows(timed=True)))


def test_time_passes_while_a_socket_is_silent():
    ours, theirs = socket.socketpair()
    rows = SocketRows.__new__(SocketRows)
    rows.place, rows.clock, rows._socket, rows.start = "tcp://x:1", Wall(), ours, 1000.0
    ours.settimeout(0.01)
    with theirs:
        found = rows.rows(timed=True)
        assert ["advance(1001.0)", "advance(1002.0)"] == [repr(next(found)) for _ in range(2)]
    assert [] == [row for row in found if not repr(row).startswith("advance")]


def test_two_inputs_are_joined_in_the_order_of_a_column(folder, ran):
    (folder / "quotes.csv").write_text("ts,symbol,bid\n3,A,9\n1,A,7\n")
    (folder / "trades.csv").write_text("ts,symbol,qty\n2,A,100\n4,A,200\n")
    join = "Join(left=Sliding(Count(1)), right=Sliding(Count(1)), on='symbol', how='left')"
    files = ("-i", "right=quotes.csv", "-i", "left=trades.csv")
    made = lines(ran("run", join, *files, "--order-by", "ts", "-o", "-")[0])
    expected = list(
        replay(
            Join(left=Sliding(Count(1)), right=Sliding(Count(1)), on="symbol", how="left"),
            [{"ts": 2, "symbol": "A", "qty": 100}, {"ts": 4, "symbol": "A", "qty": 200}],
            [{"ts": 1, "symbol": "A", "bid": 7}, {"ts": 3, "symbol": "A", "bid": 9}],
            merge="ts",
        )
    )
    assert expected == made
    assert expected == lines(ran("run", join, *files, "--times", "ts", "-o", "-")[0])


@pytest.mark.usefixtures("folder")
def test_times_move_the_clock(ran):
    window = Tumbling(Time("10s"), by="symbol")
    expected = list(replay(Aggregate(window, n=agg.count()), trades(300), times="ts"))
    operator = "Aggregate(Tumbling(Time('10s'), by='symbol'), n=agg.count())"
    for file in ("trades.csv", "trades.jsonl"):
        out, _ = ran("run", operator, "-i", file, "--times", "ts", "-o", "-")
        assert expected == lines(out)
        assert expected


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_rows_are_put_in_order_first(suffix, folder, ran):
    values = [3, 1, 2]
    (folder / "a.csv").write_text("a,b\n" + "".join(f"{a},0\n" for a in values))
    (folder / "a.jsonl").write_text("".join(f'{{"a": {a}, "b": 0}}\n' for a in values))
    keep = "Aggregate(Tumbling(Count(3)), all=agg.collect('a'))"
    out, _ = ran("run", keep, "-i", f"a.{suffix}", "--order-by", "b, a", "-o", "-")
    assert [{"all": [1, 2, 3]}] == lines(out)
    own = keep.replace("Count(3)", "Count(3), order_by='a'")
    assert [{"all": [1, 2, 3]}] == lines(ran("run", own, "-i", f"a.{suffix}", "-o", "-")[0])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("operator", [VWAP, "job.py:vwap"])
def test_a_farm_gives_the_same_rows(operator, ran):
    out, _ = ran("run", operator, "-i", "trades.csv", "--workers", "2", "-o", "-")
    assert EXPECTED == lines(out)


# -- where they go --


@pytest.mark.usefixtures("folder")
def test_the_suffix_says_how_rows_are_written(ran):
    for file in ("out.csv", "out.jsonl", "out.parquet"):
        assert "" == ran("run", VWAP, "-i", "trades.csv", "-o", file, "--quiet")[0]
    assert EXPECTED == lines(Path("out.jsonl").read_text())
    assert EXPECTED == pq.read_table("out.parquet").to_pylist()
    with open("out.csv", newline="") as written:
        rows = list(csv.DictReader(written))
    assert EXPECTED == [{**row, "vwap": float(row["vwap"])} for row in rows]


@pytest.mark.usefixtures("folder")
def test_without_rows_a_file_still_has_its_columns(ran):
    few = VWAP.replace("100", "1000")
    ran("run", few, "-i", "trades.csv", "-o", "out.csv")
    ran("run", few, "-i", "trades.csv", "-o", "out.parquet")
    assert "symbol,vwap\n" == Path("out.csv").read_text()
    assert ["symbol", "vwap"] == pq.read_table("out.parquet").column_names
    assert "" == ran("run", few, "-i", "trades.csv")[0]


@pytest.mark.usefixtures("folder")
def test_rows_that_are_objects_have_columns(ran):
    first = [trade["price"] for trade in trades(300) if trade["symbol"] == "AAPL"][:50]
    made = lines(ran("run", "job.py:peaks", "-i", "trades.csv", "-o", "-")[0])
    assert {"symbol": "AAPL", "peak": max(first)} == made[0]


def test_values_of_all_kinds_are_written(folder, ran):
    (folder / "a.jsonl").write_text('{"at": "2024-03-01T10:00:00", "l": [1], "n": null}\n')
    for file in ("o.csv", "o.jsonl", "o.parquet"):
        ran("run", "Filter(lambda t: True)", "-i", "a.jsonl", "-o", file)
    assert "at,l,n\n2024-03-01T10:00:00,[1],\n" == Path("o.csv").read_text()
    assert [{"at": "2024-03-01T10:00:00", "l": [1], "n": None}] == lines(
        Path("o.jsonl").read_text()
    )
    assert [1] == pq.read_table("o.parquet").to_pylist()[0]["l"]
    with_spans = "Functor(span=lambda t: timedelta(seconds=1.5), kinds=lambda t: set([2, 1]))"
    out, _ = ran("run", with_spans, "-i", "a.jsonl", "-o", "-")
    row = lines(out)[0]
    assert (timedelta(seconds=1.5).total_seconds(), [1, 2]) == (row["span"], row["kinds"])


def test_several_outputs_are_told_apart_or_chosen(folder, ran):
    (folder / "a.csv").write_text("id\n1\n1\n2\n")
    dedup = "Dedup('id', within=Count(5), duplicates='port')"
    ports = [port.name for port in Dedupped().model.outputs]
    assert [(ports[0], 1), (ports[1], 1), (ports[0], 2)] == [
        (row["_port"], row["id"]) for row in lines(ran("run", dedup, "-i", "a.csv", "-o", "-")[0])
    ]
    chosen, _ = ran("run", dedup, "-i", "a.csv", "-o", "-", "--port", ports[1])
    assert [{"id": 1}] == lines(chosen)


def Dedupped():  # noqa: N802
    from windowlib.operators import Dedup

    return Dedup("id", within=Count(5), duplicates="port")


# -- tables --


@pytest.mark.usefixtures("folder")
def test_a_table_shows_the_first_rows_and_the_last(ran):
    shown = ran("run", VWAP, "-i", "trades.csv", "--show", "3")[0].splitlines()
    rows = [f"{row['symbol']:<6}  {row['vwap']:>7.6g}" for row in EXPECTED]
    more = f"… {len(rows) - 3} more; --output FILE takes them all"
    assert ["symbol     vwap", *rows[:2], more, rows[-1]] == shown
    assert ["symbol     vwap", *rows] == ran("run", VWAP, "-i", "trades.csv")[0].splitlines()


@pytest.mark.parametrize(("shown", "count"), [(1, 1), (1, 5), (2, 3), (4, 4), (4, 5), (5, 100)])
def test_a_table_never_loses_or_repeats_a_row(shown, count):
    out = io.StringIO()
    table = TableWriter(out, shown, 80)
    for number in range(count):
        table.add({"n": number})
    table.close()
    rows = [line.strip() for line in out.getvalue().splitlines()[1:]]
    numbers = [int(row) for row in rows if row.isdecimal()]
    assert min(shown, count) == len(numbers)
    assert sorted(set(numbers)) == numbers
    if count > shown:
        assert f"… {count - shown:,} more; --output FILE takes them all" in rows
    assert 0 == numbers[0]
    assert shown == 1 or count - 1 == numbers[-1]


@pytest.mark.parametrize("width", [40, 80, 100])
def test_a_table_fits_and_says_what_it_leaves_out(width):
    names = [f"column{i}" for i in range(20)]
    shown = table_lines(names, [dict.fromkeys(names, "x" * 30)], width)
    assert all(len(line) <= width for line in shown)
    assert shown[0].endswith(" more)")


def test_a_live_table_gets_a_new_head_when_columns_change():
    out = io.StringIO()
    table = LiveTableWriter(out, 80)
    for row in ({"a": 1}, {"a": None}, {"b": "x"}):
        table.add(row)
    assert ["a", "1", "", "b", "x"] == [line.strip() for line in out.getvalue().splitlines()]


# -- progress --


class Terminal(io.StringIO):
    """Somebody looks at it."""

    def isatty(self):
        return True


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch):
    monkeypatch.setattr(meters, "REDRAW_SECONDS", 0)
    monkeypatch.setenv("TERM", "xterm")
    meter = Meter(Terminal(), total=200)
    meter.update(50, 3)
    meter.update(200, 9)
    meter.end()
    assert (
        "[######..................]  25%  50 of 200 rows in, 3 out"
        "\r\x1b[K[########################] 100%  200 of 200 rows in, 9 out"
        "\r\x1b[K200 rows in, 9 rows out\n"
    ) == meter.out.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("term", [None, "dumb"])
def test_elsewhere_progress_is_lines(term, monkeypatch):
    monkeypatch.setattr(meters, "LINE_SECONDS", 0)
    monkeypatch.setenv("TERM", term or "xterm")
    meter = Meter(Terminal() if term else io.StringIO())
    meter.update(50, 3)
    meter.end()
    assert "50 rows in, 3 out\n50 rows in, 3 rows out\n" == meter.out.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("value", "wanted"), [("", True), ("1", False)])
def test_no_color_is_respected(value, wanted, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert wanted == colours(Terminal(), {"NO_COLOR": value})
    assert not colours(io.StringIO(), {})


# -- Ctrl-C --


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_what_has_come_before_ctrl_c_is_written(suffix, sender, folder, monkeypatch):
    def until_ctrl_c(self):
        yield '{"a": 1}'
        yield '{"a": 2}'
        raise KeyboardInterrupt

    monkeypatch.setattr(SocketRows, "_lines", until_ctrl_c)
    out = f"out.{suffix}"
    assert 130 == main(["run", "Filter(lambda t: True)", "-i", sender(b""), "-o", out])
    assert 0 == main(["run", "Filter(lambda t: True)", "-i", out, "-o", "again.jsonl"])
    assert [{"a": 1}, {"a": 2}] == lines((folder / "again.jsonl").read_text())


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_ends_with_130_and_no_traceback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        argv = [sys.executable, "-m", "windowlib", "run", "Filter(lambda t: True)", "-i", place]
        with subprocess.Popen(
            [*argv, "-o", "-"],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            server.settimeout(600)
            connection, _ = server.accept()
            with connection:
                connection.sendall(b'{"a": 1}\n')
                assert '{"a": 1}\n' == process.stdout.readline()
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=600)
    assert (130, "", "") == (process.returncode, out, err)
