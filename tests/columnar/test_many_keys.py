"""Keys that come and go: the table of keys does not grow without end."""

import numpy as np
import pyarrow as pa

from windowlib import Count, Tumbling
from windowlib.columnar import handover
from windowlib.operators import Aggregate, agg


def test_keys_whose_partitions_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(handover, "CROWD", 1000)
    running = Aggregate(Tumbling(Count(2), by="id"), n=agg.count(), low=agg.min("x")).open()
    (window,) = running.operator.containers
    assert window is not None
    rows, most = 0, 0
    for batch in range(12):
        ids = np.repeat(np.arange(batch * 600, batch * 600 + 600), 2)
        ids[-1] = -1 - batch % 2  # two partitions go on from batch to batch
        found = running.process_batch(pa.table({"id": ids, "x": ids}))
        rows += found.num_rows
        engine = window.state.handover().engine
        most = max(most, 0 if engine is None or engine.keys is None else len(engine.keys))
    assert rows == 12 * 599 + 6
    assert 600 < most < 3600
    assert len(window) == 12  # one row without a second in each batch
