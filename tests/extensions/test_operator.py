"""An operator that is written as docs/contributing.md says runs on every host here."""

import pyarrow as pa

from windowlib import Count, Operator, OperatorModel, Tumbling, replay
from windowlib.farms import KeyFarm
from windowlib.operators import Aggregate, agg


class Range(Operator):
    """The distance from the smallest to the largest value of each window."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")

    def __init__(self, window, column, **more):
        super().__init__(window, **more)
        self.column = column

    def reads(self, port):
        yield from super().reads(port)
        yield self.column, f"Range(column={self.column!r})"

    def before_flush(self, window, key):
        values = [row[self.column] for row in window[key]]
        self.emit({"k": key, "range": max(values) - min(values)})
        self.emit_punct()

    def schema(self, given):
        kind = pa.int64() if given is None else given.field(self.column).type
        return pa.schema({"k": pa.string(), "range": kind})


ROWS = [{"k": "ab"[i % 2], "x": (7 * i) % 10} for i in range(24)]
WINDOW = Tumbling(Count(3), by="k")


def wanted():
    low_high = Aggregate(WINDOW, low=agg.min("x"), high=agg.max("x"))
    return [{"k": r["k"], "range": r["high"] - r["low"]} for r in replay(low_high, ROWS)]


def test_rows_batches_and_farms_agree():
    op = Range(WINDOW, "x")
    assert wanted()
    assert wanted() == list(replay(op, ROWS))
    batch = pa.RecordBatch.from_pylist(ROWS)
    assert wanted() == op.open().process_batch(batch).to_pylist()
    assert wanted() == list(replay(KeyFarm(op, workers=1, when="always"), ROWS))


def test_it_stops_and_goes_on():
    op = Range(WINDOW, "x")
    got: list[dict[str, object]] = []
    first, second = op.open(), op.open()
    first.connect(0, got.append)
    first.insert_many(ROWS[:10])
    second.connect(0, got.append)
    second.restore(first.snapshot())
    second.insert_many(ROWS[10:])
    assert wanted() == got
