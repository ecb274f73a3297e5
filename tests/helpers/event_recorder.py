"""Handlers that write down what they see, and scripts that read like the paper's tables.

A *script* is text, one line per input, with the events it must fire:

    +1 age=0: insert 1
    +2 age=6: trigger [1]; insert 2
    t=10: flush [1 2]
    punct: empty

`insert 2` stands for a before-insert event without the tuple followed at once by an after-insert
event with it, and `evict 1` and `flush [1 2]` for their pairs likewise; a pair that does not
bracket its change exactly is written out in full, so it matches no script. In a partitioned
window each event starts with its key, `-` for the default key.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from windowlib import (
    KEY,
    AccessError,
    PunctuationError,
    SlidingWindow,
    Tumbling,
    TumblingWindow,
    Window,
    WindowEvents,
    WindowlibWarning,
)
from windowlib.window.events import HANDLERS

Ids = tuple[Any, ...]
Select = Callable[[Window[Any, Any], Sequence[Any]], list[Any]]
NO_TUPLE = "no tuple"
NAN = "NaN"
"""How a NaN key is written down, because NaN does not equal itself."""


class Row(NamedTuple):
    """A tuple with a number, an int and a float to measure deltas by, and two key columns."""

    id: int
    age: int = 0
    ts: float = 0.0
    k: Any = None
    g: int = 0


@dataclass(frozen=True)
class DataRow:
    """The same as a dataclass."""

    id: int
    age: int = 0
    ts: float = 0.0
    k: Any = None
    g: int = 0


class Entry(NamedTuple):
    """One event: who, where, and what the subwindow held meanwhile."""

    event: str
    key: Any
    id: Any
    contents: Any


def id_of(row: Any) -> Any:
    """The number of a row of any form; other tuples stand for themselves."""
    if isinstance(row, dict):
        return row["id"]
    return getattr(row, "id", row)


def key_text(key: Any) -> Any:
    """A key that equals itself."""
    return NAN if key != key else key


def ids(window: Window[Any, Any], key: Any) -> Any:
    """What a subwindow holds: the ids of its tuples, or how many it summarises."""
    try:
        return tuple(id_of(t) for t in window[key])
    except AccessError:
        return f"{window.size(key)} summarised"


def storage(window: Window[Any, Any]) -> Ids:
    """What every subwindow holds, in storage order."""
    return tuple((key_text(key), ids(window, key)) for key in window)


def state(window: Any) -> dict[str, Any]:
    """Everything a reader can ask a window for."""
    keys = list(window.keys())
    sliding = isinstance(window, SlidingWindow)
    return {
        "storage": storage(window),
        "sizes": [window.size(key) for key in keys],
        "insertions": [window.insertions(key) for key in keys],
        "full": [window.full(key) for key in keys] if sliding else [],
        "len": len(window),
        "seen": window.seen,
        "now": window.now,
        "next_due": window.next_due,
    }


class Recorder(WindowEvents[Any, Any]):
    """Holds the log; the subclasses that `recorder` makes write to it."""

    log: list[Entry]
    deep = False
    select: Select | None = None

    def write(self, window: Window[Any, Any], event: str, key: Any, row: Any = NO_TUPLE) -> None:
        held = storage(window) if self.deep else ids(window, key)
        number = NO_TUPLE if row is NO_TUPLE else id_of(row)
        self.log.append(Entry(event, key_text(key), number, held))

    def write_all(self, window: Window[Any, Any], event: str, keys: Sequence[Any]) -> None:
        held = tuple((key_text(key), ids(window, key)) for key in keys)
        self.log.append(Entry(event, None, NO_TUPLE, held))


def _method(name: str) -> Callable[..., Any]:
    def on_tuple(self: Recorder, window: Any, tuple_: Any, key: Any) -> None:
        self.write(window, name, key, tuple_)

    def on_partition(self: Recorder, window: Any, key: Any) -> None:
        self.write(window, name, key)

    def on_partitions(self: Recorder, window: Any, keys: Sequence[Any]) -> None:
        self.write_all(window, name, keys)

    def select_partitions(self: Recorder, window: Any, keys: Sequence[Any]) -> list[Any]:
        self.write_all(window, name, keys)
        return [] if self.select is None else self.select(window, keys)

    def on_window(self: Recorder, window: Any) -> None:
        self.log.append(Entry(name, None, NO_TUPLE, storage(window)))

    special: dict[str, Callable[..., Any]] = {
        "on_partitions_evicted": on_partitions,
        "select_partitions": select_partitions,
        "on_empty_punctuation": on_window,
    }
    if name in special:
        return special[name]
    return on_tuple if name.endswith(("insert", "evict")) else on_partition


METHODS = {name: _method(name) for name in HANDLERS}


def recorder(
    handlers: Iterable[str] = HANDLERS,
    *,
    select: Select | None = None,
    log: list[Entry] | None = None,
    deep: bool = False,
) -> Recorder:
    """A recorder that overrides just these handlers, so that the window pays for just these.

    Without `select` no partition selection handler is registered, unless asked for by name.
    `deep` writes the whole storage with every event instead of the event's subwindow.
    """
    names = set(handlers)
    if set(HANDLERS) == names and select is None:
        names.discard("select_partitions")
    made: Recorder = type("Recording", (Recorder,), {name: METHODS[name] for name in names})()
    made.log = [] if log is None else log
    made.select, made.deep = select, deep
    return made


def build(spec: Any, **more: Any) -> Any:
    """The container of a specification, without the warning for a missing selection handler."""
    made = TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WindowlibWarning)
        return made(spec, **more)


class Insert(NamedTuple):
    """One tuple; `key` is used by windows that take the key at insert."""

    row: Any
    key: Any = None


class Many(NamedTuple):
    """Several tuples at once."""

    inserts: tuple[Insert, ...]


class Advance(NamedTuple):
    """Time passes, in seconds."""

    by: float


class Punctuate(NamedTuple):
    """A punctuation: window, final or other."""

    mark: Any


Op = Insert | Many | Advance | Punctuate


def apply(window: Window[Any, Any], op: Op, log: list[Entry], *, one_by_one: bool = False) -> None:
    """Do one thing to a window; a punctuation that it refuses is written to the log."""
    takes_key = window.spec.by is KEY
    if isinstance(op, Many) and one_by_one:
        for insert in op.inserts:
            apply(window, insert, log)
    elif isinstance(op, Many):
        rows = [insert.row for insert in op.inserts]
        window.insert_many(rows, [insert.key for insert in op.inserts] if takes_key else None)
    elif isinstance(op, Insert):
        window.insert(op.row, op.key) if takes_key else window.insert(op.row)
    elif isinstance(op, Advance):
        window.advance(window.now + op.by)
    else:
        try:
            window.punctuate(op.mark)
        except PunctuationError:
            log.append(Entry("error", None, NO_TUPLE, storage(window)))


def play(window: Window[Any, Any], ops: Iterable[Op], log: list[Entry]) -> list[Entry]:
    """Do all of this to a window, and check its invariants after each; gives the log."""
    for op in ops:
        apply(window, op, log)
        window.state.check()
    return log


# -- scripts ------------------------------------------------------------------------------------


def played(spec: Any, script: str, *, select: Select | None = None, **more: Any) -> str:
    """The script with the events that really fire, to be compared with the script itself."""
    events = recorder(select=select)
    window = build(spec, events=events, **more)
    lines = []
    for line in dedent(script).splitlines():
        given = line.partition(":")[0]
        events.log.clear()
        _give(window, given, events.log)
        window.state.check()
        fired = "; ".join(_texts(events.log, window.spec.partitioned))
        lines.append(f"{given}: {fired}".rstrip())
    return "\n".join(lines)


def dedent(script: str) -> str:
    """A script without its indentation, comments (from #) and blank lines."""
    lines = [line.partition("#")[0].rstrip() for line in textwrap.dedent(script).splitlines()]
    return "\n".join(line for line in lines if line)


def _give(window: Window[Any, Any], given: str, log: list[Entry]) -> None:
    what, *fields = given.split()
    if what.startswith("t="):
        window.advance(float(what[2:]))
    elif what.startswith("+"):
        values = dict(field.split("=") for field in fields)
        key = values.get("k")
        row = Row(int(what[1:]), int(values.get("age", 0)), float(values.get("ts", 0)), key)
        apply(window, Insert(row, key), log)
    else:
        apply(window, Punctuate({"punct": "window"}.get(what, what)), log)


def _texts(log: list[Entry], keyed: bool) -> list[str]:
    texts, rest = [], list(log)
    while rest:
        first, second = rest[0], rest[1] if len(rest) > 1 else None
        paired = second is not None and _pair(first, second)
        texts.append((_key(first, keyed) + paired) if paired else _single(first, keyed))
        rest = rest[2:] if paired else rest[1:]
    return texts


def _key(entry: Entry, keyed: bool) -> str:
    return f"{'-' if entry.key is None else entry.key} " if keyed else ""


def _pair(first: Entry, second: Entry) -> str:
    """The text of two events that bracket a change exactly, or nothing."""
    before, _, what = first.event.partition("_")
    if before != "before" or second[:3] != (f"after_{what}", first.key, first.id):
        return ""
    if what == "insert" and second.contents == (*first.contents, first.id):
        return f"insert {first.id}"
    left = list(first.contents)
    if what == "evict" and first.id in left:
        left.remove(first.id)
        return f"evict {first.id}" if tuple(left) == second.contents else ""
    return f"flush {_list(first.contents)}" if what == "flush" and second.contents == () else ""


def _single(entry: Entry, keyed: bool) -> str:
    short = {"on_trigger": "trigger", "on_initial_full": "full", "error": "error"}
    if entry.event in ("on_partitions_evicted", "select_partitions"):
        parts = " ".join(f"{key}{_list(held)}" for key, held in entry.contents)
        return f"{'forget' if entry.event == 'on_partitions_evicted' else 'select'} {parts}"
    if entry.event == "on_empty_punctuation":
        return "empty"
    if entry.event == "error":
        return "error"
    what = short.get(entry.event) or f"{entry.event} {entry.id}"
    return f"{_key(entry, keyed)}{what} {_list(entry.contents)}"


def _list(contents: Ids) -> str:
    return f"[{' '.join(map(str, contents))}]"
