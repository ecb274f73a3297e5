"""A running graph: running operators whose outputs are each other's inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from windowlib.durations import Instant, as_instant
from windowlib.runtime.graph import Graph, Stream
from windowlib.runtime.running import (
    VERSION,
    Running,
    batch_states,
    collect_failures,
    nowhere,
    restore_batch_states,
)
from windowlib.window.arrow import OutputRows, chunks_of, in_order
from windowlib.window.failure import raise_first


class RunningGraph(Running):
    """Passes rows, punctuations, time and the end of input through a graph."""

    def __init__(self, graph: Graph, start: Instant = 0) -> None:
        self.definition = self.operator = graph
        self.model = graph.model
        self._now = as_instant(start, argument="start")
        self._ended = set()
        self.nodes: dict[str, Running] = {}
        for name in graph.names:
            self.nodes[name] = graph.operators[name].open(start)
        ports = len(self.model.outputs)
        self._rows, self._marks, self._finals = ([nowhere] * ports for _ in range(3))
        self._open_feeds = Counter((node, port) for node, port, _ in graph.edges())
        self._live = []
        self._direct = (None,) * len(self.model.inputs)  # rows go to operators, not to windows
        self._made = OutputRows()
        self._schemas = [None] * len(self.model.inputs)
        self._failures: list[Exception] = []  # of the operators fed in the current call
        self._wire()

    def _wire(self) -> None:
        graph = self.operator
        assert isinstance(graph, Graph)
        for name, running in self.nodes.items():
            for port in range(len(running.model.outputs)):
                running.connect(port, *self._targets(graph, Stream(name, port)))
            self._connect_columns(graph, name, running)
        entries = (self._targets(graph, Stream(None, port)) for port in range(len(graph.inputs)))
        self._entries = list(entries)

    def _targets(
        self, graph: Graph, stream: Stream
    ) -> tuple[Callable[[Any], None], Callable[[], None], Callable[[], None]]:
        """The functions for a row, a punctuation and the end of a stream."""
        rows: list[Callable[[Any], None]] = []
        marks: list[Callable[[], None]] = []
        ends: list[Callable[[], None]] = []
        for node, port, read in graph.edges():
            if read == stream:
                to = self.nodes[node]
                rows.append(to.insert if port == 0 else partial(_insert, to, port))
                if len(graph.feeds[node][port]) == 1:  # merged streams are not punctuated
                    marks.append(partial(to.punctuate, port))
                ends.append(partial(self._end_feed, node, port))
        for number, sink in enumerate(graph.sinks.values()):
            if sink == stream:
                rows.append(self._rows[number])
                marks.append(self._marks[number])
                ends.append(self._finals[number])
        return self._each(rows), self._each(marks), self._each(ends)

    def _connect_columns(self, graph: Graph, name: str, sender: Running) -> None:
        """Send columns to the only reader of a node, if the order of rows stays the same.

        That is so if nothing but sinks reads what else the node sends.
        """
        if not sender.operator.sends_columns:
            return
        first = Stream(name, 0)
        reads = [(node, port, read) for node, port, read in graph.edges() if read.node == name]
        if len(reads) != 1 or first in graph.sinks.values():
            return
        ((node, port, read),) = reads
        reader = self.nodes[node]
        if read == first and len(graph.feeds[node][port]) == 1 and type(reader) is Running:
            sender.operator._many = partial(self._take_columns, reader, port)
            sender.operator.folded_columns = _folded_columns(reader, port)

    def _take_columns(self, reader: Running, port: int, columns: Any) -> None:
        with collect_failures(self._failures):
            reader.take_columns(columns, port)

    def _each(self, targets: list[Callable[..., None]]) -> Callable[..., None]:
        """One function that calls all targets and collects what they raise.

        So the failure of one costs neither the others nor the one who sends: the rest of its batch
        goes on, and its windows have nothing to recover from.
        """
        failures = self._failures

        def send(*row: Any) -> None:
            for target in targets:
                try:
                    target(*row)
                except Exception as error:
                    failures.append(error)

        return send

    def _raise(self) -> None:
        """Raise the collected exceptions."""
        failures = self._failures.copy()
        self._failures.clear()
        raise_first(failures)

    def _end_feed(self, node: str, port: int) -> None:
        """One of the streams that a port reads has ended; the port ends with the last."""
        self._open_feeds[node, port] -= 1
        if not self._open_feeds[node, port]:
            self.nodes[node].finish(port)

    # -- input ------------------------------------------------------------------------------------

    def insert(self, row: Any, port: int = 0) -> None:
        """Take one row, through the whole graph."""
        if port not in self._taking:
            self._refuse("insert(row)", port)
        try:
            self._entries[port][0](row)
        except BaseException:  # an interrupt: anything else is kept
            self._break("taking a row")
            raise
        if self._failures:
            self._raise()

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order."""
        if port not in self._taking:
            self._refuse("insert_many(rows)", port)
        insert = self._entries[port][0]
        for row in rows:
            try:
                insert(row)
            except BaseException:
                self._break("taking a row")
                raise
            if self._failures:
                self._raise()

    def isolate_partition_ages(self) -> None:
        """For hosts that split keys: partitions age by themselves, in all operators."""
        for node in self.nodes.values():
            node.isolate_partition_ages()

    def collect(self, outputs: Sequence[OutputRows]) -> None:
        """For hosts: collect the rows of each output, as columns where one operator makes them."""
        for port, made in enumerate(outputs):
            self.connect(port, made.add)
            self._collect_columns(port, made)

    def _collect_columns(self, port: int, made: OutputRows) -> None:
        """Collect columns from the node of an output, unless another node reads its rows, too."""
        graph = self.operator
        assert isinstance(graph, Graph)
        sinks = list(graph.sinks.values())
        sink = sinks[port]
        read = any(stream == sink for _, _, stream in graph.edges())
        if sink.node is not None and sink.port == 0 and not read and sinks.count(sink) == 1:
            self.nodes[sink.node]._collect_columns(0, made)

    def _take_batch(self, batch: Any, port: int, times: str | None, order: Any) -> None:
        """Take the rows of an Arrow batch in order; whole if just one operator reads them."""
        if order is not None and batch.num_rows:
            batch = in_order(batch, order)
        graph = self.operator
        assert isinstance(graph, Graph)
        entry = Stream(None, port)
        readers = [(node, at) for node, at, read in graph.edges() if read == entry]
        if times is not None:
            for part in chunks_of(batch):
                self._insert_timed(part, port, times)
            return
        if len(readers) == 1 and entry not in graph.sinks.values():
            ((node, at),) = readers
            with self._atomic("taking a batch"), collect_failures(self._failures):
                reader = self.nodes[node]
                reader._note_schema(batch, at)
                reader._take_batch(batch, at, None, None)
            self._raise()
            return
        for part in chunks_of(batch):
            self.insert_many(part.to_pylist(), port)

    def punctuate(self, port: int = 0) -> None:
        """Take a window punctuation."""
        if port not in self._taking:
            self._refuse("punctuate()", port)
        with self._atomic("taking a punctuation"):
            self._entries[port][1]()
        self._raise()

    def finish(self, port: int | None = None) -> None:
        """The input of a port ends, or of all."""
        with self._atomic("ending its input"):
            for ending in self._end(port):
                self._entries[ending][2]()
        self._raise()

    # -- time -------------------------------------------------------------------------------------

    @property
    def timed(self) -> bool:
        """Whether something in it runs on the clock."""
        return any(node.timed for node in self.nodes.values())

    def due(self) -> int | None:
        """The next deadline in microseconds, or None."""
        times = [due for node in self.nodes.values() if (due := node.due()) is not None]
        return min(times, default=None)

    def _visible_due(self) -> int | None:
        times = [at for node in self.nodes.values() if (at := node._visible_due()) is not None]
        return min(times, default=None)

    def _set_clocks(self, now: int) -> None:
        self._now = now
        for node in self.nodes.values():
            node._set_clocks(now)

    def _act(self, failures: list[Exception]) -> None:
        for node in self.nodes.values():  # upstream first, so that what it emits finds the others
            node._act(failures)
            failures += self._failures
            self._failures.clear()

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """The state of every operator, as plain data; `arrays`: as it is where it is in arrays."""
        self._refuse_broken()
        feeds = [[node, port, left] for (node, port), left in self._open_feeds.items()]
        return {
            "v": VERSION,
            **(batch_states(self._schemas, ()) if arrays else {}),
            "operator": self.definition.describe(),
            "now": self._now,
            "ended": sorted(self._ended),
            "feeds": feeds,
            "state": {name: node.snapshot(arrays=arrays) for name, node in self.nodes.items()},
        }

    def _put(self, state: Mapping[str, Any]) -> None:
        for name, node in self.nodes.items():
            node._put(state["state"][name])
        self._now, self._ended = state["now"], set(state["ended"])
        if "arrays" in state:
            self._schemas = restore_batch_states(state, ())
        self._open_feeds = Counter({(node, port): left for node, port, left in state["feeds"]})


def _folded_columns(reader: Running, port: int) -> frozenset[str] | None:
    """The columns that an operator reads, if it only folds the rows between punctuations."""
    names = reader.operator.needs(port)
    folds = names is not None and reader.operator.folds_any_order(port)
    return frozenset(names or ()) if folds else None


def _insert(to: Running, port: int, row: Any) -> None:
    to.insert(row, port)
