"""Which worker gets a new key, and that it keeps it."""

import pickle
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import Count, Sliding, Tumbling
from windowlib.errors import PartitionError
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.key_farm import KeyPlacement
from windowlib.farms.virtual import VirtualPool
from windowlib.operators import Aggregate, agg

KEYS = st.one_of(st.integers(-3, 3), st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan"), None]))


def batch_of(name, keys, kind):
    values = [
        key if kind != "int" or key is None else int(key if key == key else 9) for key in keys
    ]
    if kind == "decimal":
        values = [None if v is None or v != v else Decimal(str(v)) for v in values]
    if kind == "float":
        values = [None if v is None else float(v) for v in values]
    return pa.record_batch({name: pa.array(values, TYPES[kind])})


TYPES = {"int": pa.int64(), "float": pa.float64(), "decimal": pa.decimal128(10, 3)}
BATCHES = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(sorted(TYPES)), st.lists(KEYS, min_size=1)),
    max_size=8,
)


@given(BATCHES, st.integers(1, 5), st.integers(0, 8))
def test_a_key_keeps_its_worker_in_all_batches_inputs_and_types(batches, workers, restart):
    placement = KeyPlacement([("a",), ("b",)], workers)
    seen: dict[Any, int] = {}
    for place, (port, kind, keys) in enumerate(batches):
        if place == restart:
            state = pickle.loads(pickle.dumps(placement.dump()))
            placement = KeyPlacement([("a",), ("b",)], workers)
            placement.load(state)
        batch = batch_of("ab"[port], keys, kind)
        found = placement.owners(batch, port).tolist()
        for key, worker in zip(batch.column(0).to_pylist(), found, strict=True):
            key = "nan" if key != key else key
            assert worker == seen.setdefault(key, worker)
            assert 0 <= worker < workers


@given(st.lists(st.integers(0, 12), min_size=1, max_size=200), st.integers(1, 6))
def test_new_keys_are_spread_as_evenly_as_their_sizes_allow(keys, workers):
    owners = KeyPlacement([("k",)], workers).owners(pa.record_batch({"k": keys}), 0)
    sizes = sorted(Counter(keys).values(), reverse=True)
    two = sum(sizes[workers - 1 : workers + 1]) if len(sizes) > workers else 0
    best = max(-(-len(keys) // workers), sizes[0], two)  # nobody can do better than these
    # Largest first is at most a third beyond the best.
    assert max(Counter(owners.tolist()).values()) <= best * (4 - 1 / workers) / 3


def test_a_heavy_key_has_a_worker_to_itself():
    keys = ["heavy"] * 500 + [f"light {i % 150}" for i in range(1500)]
    owners = KeyPlacement([("k",)], 4).owners(pa.record_batch({"k": keys}), 0)
    assert {500} == set(Counter(owners.tolist()).values())
    assert owners[0] not in owners[500:]


def test_a_later_key_goes_where_least_was_given():
    placement = KeyPlacement([("k",)], 3)
    placement.owners(pa.record_batch({"k": ["a"] * 5 + ["b"] * 3 + ["c"] * 4}), 0)
    found = placement.owners(pa.record_batch({"k": ["a", "d"]}), 0).tolist()
    assert found == placement.owners(pa.record_batch({"k": ["a", "b"]}), 0).tolist()


def test_rows_without_a_key_are_shared_out():
    owners = KeyPlacement([()], 2).owners(pa.record_batch({"k": [1] * 4}), 0)
    assert owners.tolist() == [0, 0, 1, 1]


def simulated(farm):
    return farm.open(pool=lambda n, setup: VirtualPool(n, setup, cost=lambda *_: 1.0))


FARMS = (KeyFarm, WindowFarm, PaneFarm, WindowPartition)
ODD = [
    pa.table({"k": [0.0, -0.0, 1.0, float("nan"), 1.0, float("nan"), None]}),
    pa.table({"k": [1, 0, 2, None, 0]}),
    pa.table({"k": [float("nan"), 2.0, -0.0, 1.0, float("nan")]}),
]


def spelled(batches):
    """Equal keys as one text: 1 and 1.0, both zeros, all NaN."""
    return [
        [(f"{row['k']}".lstrip("-").removesuffix(".0"), row["n"]) for row in rows]
        for rows in batches
    ]


@pytest.mark.parametrize("kind", FARMS)
def test_keys_that_only_python_compares_give_the_rows_of_the_operator(kind):
    """Zeros of both signs, columns that change their type, NaN and nulls, and a restart."""
    op = Aggregate(Sliding(Count(2), every=Count(1), by="k"), n=agg.count())
    running, found = op.open(), []
    expected = [running.process_batch(batch).to_pylist() for batch in ODD]
    state = None
    for batch in ODD:
        with simulated(kind(op, workers=2)) as run:
            if state is not None:
                run.restore(pickle.loads(state))
            found.append(run.process_batch(batch).to_pylist())
            state = pickle.dumps(run.snapshot())
    assert spelled(expected) == spelled(found)


def test_what_cannot_be_a_key_is_refused_by_the_operator():
    op = Aggregate(Tumbling(Count(2), by="k"), n=agg.count())
    for kind in FARMS:
        with (
            simulated(kind(op, workers=2)) as run,
            pytest.raises(PartitionError, match="a list cannot be a partition key"),
        ):
            run.process_batch(pa.table({"k": [[1], [2]]}))
