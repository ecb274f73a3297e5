"""Conformance: recorded event traces run through the containers; also `windowlib conformance`.

A trace file holds one case per line (JSON, gzipped or not): a window, its input, and the events
that the original SPL window library fired.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from windowlib.errors import PolicyError, PunctuationError
from windowlib.spec.policies import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Time,
    TupleCount,
)
from windowlib.spec.specification import KEY, Sliding, Tumbling
from windowlib.summaries.summarizers import Summarizer
from windowlib.tools.commands.usage import UsageError, one_line
from windowlib.window.container import Engine, Window
from windowlib.window.events import WindowEvents
from windowlib.window.sliding import SlidingWindow
from windowlib.window.tumbling import TumblingWindow

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A tuple of the traces."""

    id: int
    age: int
    ts: float


class Mismatch(NamedTuple):
    """The first difference of a case."""

    case: str
    number: int
    expected: Event | None
    got: Event | None

    def __str__(self) -> str:
        return (
            f"{self.case}: event {self.number}: "
            f"expected {json.dumps(self.expected)}, got {json.dumps(self.got)}"
        )


def cases(paths: Iterable[str | Path]) -> Iterator[dict[str, Any]]:
    """Every case of some trace files, or of the trace files in some folders."""
    for path in map(Path, paths):
        files = sorted(path.glob("*.jsonl*")) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"{path}: no trace files (*.jsonl or *.jsonl.gz) in here.")
        for file in files:
            yield from _cases(file)


def _cases(file: Path) -> Iterator[dict[str, Any]]:
    try:
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{file}: not a trace file: {error}.") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                case = json.loads(line)
                yield {name: case[name] for name in ("id", "window", "input", "events")}
            except (ValueError, KeyError, TypeError) as error:
                msg = f"{file}, line {number}: not a recorded case: {error}."
                raise ValueError(msg) from None


def check(case: dict[str, Any], engine: Engine = "generated") -> Mismatch | None:
    """Run one case; the first event that differs, or None. A case that fails to run differs."""
    expected = case["events"]
    try:
        got = run(case, engine)
    except Exception as error:
        return Mismatch(case["id"], 0, None, {"e": type(error).__name__, "message": str(error)})
    for index in range(max(len(got), len(expected))):
        ours = got[index] if index < len(got) else None
        theirs = expected[index] if index < len(expected) else None
        if ours != theirs:
            return Mismatch(case["id"], index, theirs, ours)
    return None


def run(case: dict[str, Any], engine: Engine = "generated") -> list[Event]:
    """The events that our containers fire for a case."""
    log: list[Event] = []
    recorder = _recorder(case["window"], log)
    try:
        window = build(case["window"], recorder, engine)
    except PolicyError:
        return [{"i": -1, "e": "error"}]
    clock = 0.0
    for i, op in enumerate(case["input"]):
        recorder.i = i
        if op["op"] == "sleep":
            clock += op["s"]
        try:
            _apply(window, op, clock, case["window"]["partitioned"])
        except PunctuationError:
            log.append({"i": i, "e": "error"})
    return log


def _apply(window: Window[Row, Any], op: dict[str, Any], clock: float, partitioned: bool) -> None:
    if op["op"] == "tuple":
        row = Row(**op["t"])
        window.insert(row, key=op["p"]) if partitioned else window.insert(row)
    elif op["op"] == "sleep":
        window.advance(clock)
    else:
        window.punctuate({"punct": "window", "final": "final"}.get(op["op"], "other"))  # type: ignore[arg-type]


def build(
    window: dict[str, Any], events: WindowEvents[Row, Any], engine: Engine
) -> Window[Row, Any]:
    """A container from a trace's description of it."""
    evict = _policy(window["evict"])
    by, forget = KEY if window["partitioned"] else None, _forget(window["partition_eviction"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "no selection handler" is one of the recorded cases
        if window["kind"] == "sliding":
            sliding = Sliding(evict, every=_policy(window["trigger"]), by=by, forget=forget)
            return SlidingWindow(sliding, events=events, engine=engine)
        tumbling = Tumbling(evict, by=by, forget=forget)
        summarizer = _summarizer(events) if window["summarizer"] else None
        return TumblingWindow(tumbling, events=events, engine=engine, summarizer=summarizer)


def _policy(text: dict[str, Any]) -> Any:
    makers: dict[str, Callable[[], Any]] = {
        "count": lambda: Count(text["n"]),
        "delta": lambda: Delta(text["attr"], text["d"]),
        "time": lambda: Time(timedelta(seconds=text["p"])),
        "punct": Punct,
    }
    return makers[text["type"]]()


def _forget(text: dict[str, Any] | None) -> Any:
    if text is None:
        return None
    if text["type"] == "partition_age":
        return PartitionAge(timedelta(seconds=text["value"]))
    kind = PartitionCount if text["type"] == "partition_count" else TupleCount
    return kind(text["value"], "operator" if text["selection"] == "operator_defined" else "lru")


class _EventLog(WindowEvents[Row, Any]):
    """Writes every event the way the traces do."""

    i = -1

    def __init__(self, log: list[Event], summarizes: bool) -> None:
        self.log = log
        self.summarizes = summarizes

    def write(self, event: str, **more: Any) -> None:
        self.log.append({"i": self.i, "e": event, **more})

    def write_partition_event(
        self, event: str, window: Window[Row, Any], key: Any, row: Row | None = None
    ) -> None:
        more: Event = {} if row is None else {"t": row.id}
        more["p"] = key
        if not self.summarizes:
            more["w"] = [t.id for t in window[key]]
        elif event == "before_flush":
            more["n"] = window.size(key)
        self.write(event, **more)

    def before_insert(self, window: Window[Row, Any], row: Row, key: Any) -> None:
        self.write_partition_event("before_insert", window, key, row)

    def after_insert(self, window: Window[Row, Any], row: Row, key: Any) -> None:
        self.write_partition_event("after_insert", window, key, row)

    def before_evict(self, window: Window[Row, Any], row: Row, key: Any) -> None:
        self.write_partition_event("before_evict", window, key, row)

    def after_evict(self, window: Window[Row, Any], row: Row, key: Any) -> None:
        self.write_partition_event("after_evict", window, key, row)

    def before_flush(self, window: Window[Row, Any], key: Any) -> None:
        self.write_partition_event("before_flush", window, key)

    def after_flush(self, window: Window[Row, Any], key: Any) -> None:
        self.write_partition_event("after_flush", window, key)

    def on_trigger(self, window: Window[Row, Any], key: Any) -> None:
        self.write_partition_event("trigger", window, key)

    def on_initial_full(self, window: Window[Row, Any], key: Any) -> None:
        self.write_partition_event("initial_full", window, key)

    def on_empty_punctuation(self, window: Window[Row, Any]) -> None:
        self.write("empty_punct")

    def contents(self, window: Window[Row, Any], keys: Sequence[Any]) -> list[Event]:
        held = {key: () if self.summarizes else window[key] for key in keys}
        return [{"p": key, "w": [t.id for t in held[key]]} for key in keys]

    def on_partitions_evicted(self, window: Window[Row, Any], keys: Sequence[Any]) -> None:
        self.write("partition_eviction", parts=self.contents(window, keys))


def _recorder(window: dict[str, Any], log: list[Event]) -> _EventLog:
    forget = window["partition_eviction"] or {}
    if forget.get("selector") not in SELECTORS:
        return _EventLog(log, window["summarizer"])
    select = SELECTORS[forget["selector"]]

    class Selecting(_EventLog):
        def select_partitions(self, window: Window[Row, Any], keys: Sequence[Any]) -> list[Any]:
            marked = select(window, keys)
            self.write("partition_selection", parts=self.contents(window, keys), marked=marked)
            return marked

    return Selecting(log, window["summarizer"])


def _creation_order(window: Window[Row, Any]) -> Callable[[Any], int]:
    order = list(window.keys())
    return order.index


SELECTORS: dict[str, Callable[[Window[Row, Any], Sequence[Any]], list[Any]]] = {
    "first": lambda _, keys: list(keys[:1]),
    "last": lambda _, keys: list(keys[-1:]),
    "second": lambda _, keys: list(keys[1:2] or keys[:1]),
    "two": lambda _, keys: list(keys[:2]),
    "all": lambda _, keys: list(keys),
    "none": lambda _, keys: [],
    "minkey": lambda _, keys: [min(keys)],
    "largest": lambda window, keys: [max(keys, key=window.size)],
    "smallest": lambda window, keys: [min(keys, key=window.size)],
    "oldest": lambda window, keys: [min(keys, key=_creation_order(window))],
    "lfu": lambda window, keys: [min(keys, key=window.insertions)],
    "dup": lambda _, keys: [keys[0], keys[0]],
    "rev2": lambda _, keys: list(keys[1::-1]),
}


def _summarizer(recorder: WindowEvents[Row, Any]) -> type[Summarizer[Row]]:
    assert isinstance(recorder, _EventLog)
    write = recorder.write

    class Recording(Summarizer[Row]):
        def open(self, key: Any) -> None:
            self.key = key
            self.ids: list[int] = []
            write("summarizer_open", p=key, s=[])

        def insert(self, row: Row) -> None:
            self.ids.append(row.id)
            write("summarizer_insert", t=row.id, p=self.key, s=list(self.ids))

        def close(self) -> None:
            write("summarizer_close", p=self.key, s=list(self.ids))

    return Recording


# -- the command --


def add(commands: Any) -> None:
    """Declare the command and its options."""
    checking = commands.add_parser("conformance", help="check recorded event traces")
    checking.add_argument("paths", metavar="PATH", nargs="+", help="trace files, or their folders")
    checking.add_argument("--engine", choices=("generated", "reference"), default="generated")
    checking.set_defaults(command=report)


def report(arguments: argparse.Namespace) -> int:
    """Print the mismatches, and the number of cases."""
    total = wrong = 0
    for case in _recorded(arguments.paths):
        total += 1
        mismatch = check(case, arguments.engine)
        if mismatch is not None:
            wrong += 1
            print(mismatch)
    if not total:
        raise UsageError(f"{', '.join(arguments.paths)}: there are no recorded cases in it.")
    print(f"{total} cases, {wrong} mismatches")
    return 1 if wrong else 0


def _recorded(paths: list[str]) -> Iterator[dict[str, Any]]:
    try:
        yield from cases(paths)
    except ValueError as error:
        raise UsageError(one_line(error)) from None
