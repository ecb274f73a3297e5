"""Which worker has which key: a new key goes where there is least to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.attributes import one_key
from windowlib.columnar.primitives import Array
from windowlib.farms.keys import AnyKeys


class Placement:
    """Workers of keys, found for whole batches; a key stays where its state is.

    The batch that brings new keys also tells how often they come: the most frequent are placed
    first, so a heavy key has a worker nearly to itself. Inputs share the workers of equal keys.

    >>> placement = Placement([("k",)], workers=2)
    >>> placement.owners(pa.record_batch({"k": ["a", "b", "b", "b", "c", "d"]}), 0)
    array([1, 0, 0, 0, 1, 1])
    >>> placement.owners(pa.record_batch({"k": ["e", "a"]}), 0)
    array([0, 1])
    """

    def __init__(self, columns: Sequence[tuple[str, ...]], workers: int) -> None:
        self._columns = columns
        self._tables = [AnyKeys(names, len(names) > 1) if names else None for names in columns]
        self._owners: list[Array] = [np.empty(0, np.intp) for _ in columns]
        self._workers: dict[Any, int] = {}
        self._load: Array = np.zeros(workers, np.int64)

    def owners(self, batch: pa.RecordBatch, port: int) -> Array:
        """The worker of each row; without a key, all have the same share."""
        table = self._tables[port]
        columns = [batch.column(name) for name in self._columns[port]]
        if table is None:
            shares: Array = np.arange(batch.num_rows) * len(self._load) // max(batch.num_rows, 1)
            return shares
        ids, known = table.encode(columns), self._owners[port]
        if len(table) > len(known):
            keys = table.values(range(len(known), len(table)))
            counts = np.bincount(ids, minlength=len(table))[len(known) :]
            load = self._load + self._shares(known[ids[ids < len(known)]])
            self._place(zip(keys, counts.tolist(), strict=True), load)
            new = [self._workers[key] for key in keys]
            self._owners[port] = np.append(known, np.array(new, np.intp))
        found: Array = self._owners[port][ids]
        self._load += self._shares(found)
        return found

    def _shares(self, workers: Array) -> Array:
        """How many rows each worker has, of those with these workers."""
        found: Array = np.bincount(workers, minlength=len(self._load))
        return found

    def _place(self, counts: Iterable[tuple[Any, int]], load: Array) -> None:
        """Give a worker to the keys without one; those of other inputs have one."""
        new = []
        for key, count in counts:
            if (worker := self._workers.get(key)) is None:
                new.append((key, count))
            else:
                load[worker] += count
        least = [(each, worker) for worker, each in enumerate(load.tolist())]
        heapify(least)
        for key, count in sorted(new, key=lambda each: -each[1]):
            each, worker = least[0]
            heapreplace(least, (each + count, worker))
            self._workers[key] = worker

    def dump(self) -> list[Any]:
        """The workers of all keys, and how much they have been given, as plain data."""
        return [list(self._workers.items()), self._load.tolist()]

    def load(self, state: list[Any]) -> None:
        """Take back what `dump` gave."""
        self._workers = {one_key(key): worker for key, worker in state[0]}
        self._load = np.array(state[1], np.int64)
