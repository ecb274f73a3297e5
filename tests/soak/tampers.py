"""State that was tampered with: `python -m tests.soak.tampers [TAMPERS] [SEED]`.

The head, the snapshot and the log of buckets are changed at random, as a disk or an intruder does:
bits flip, bytes are lost, copied or moved, entries are mixed up, the head says something else. Each
is refused, or what is restored is what was stored.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.spark.test_bucket import spec_of
from windowlib import Count, Event, Sliding, Tumbling
from windowlib.columnar.arrays.encoding import stream_bytes
from windowlib.errors import WindowlibError
from windowlib.operators import Aggregate, Dedup, Sort, agg
from windowlib.spark.bucket.bucket import Bucket, BucketSpec, MicroBatch
from windowlib.spark.bucket.state_store import (
    FORMAT,
    StateHead,
    assembled,
    first_key,
    head_bytes,
    head_of,
)
from windowlib.spark.plan.shuffle import PackedRows
from windowlib.window.state_bytes import dump_state

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "n": pa.int64()})
OPERATORS = (
    Aggregate(Tumbling(Count(4), by="k"), s=agg.sum("n"), m=agg.median("n")),
    Aggregate(Sliding(Count(5), every=Count(2), by="k"), s=agg.max("n")),
    Aggregate(Tumbling(Event("ts", 7), by="k"), s=agg.sum("n")),
    Sort("n", window=Sliding(Count(6), by="k")),
    Dedup("n", within=Count(5), by="k"),
)
Stored = tuple[bytes, dict[int, bytes]]
"""A head, and pages and entries by their keys."""


def stored(operator: Any, rng: random.Random) -> tuple[BucketSpec, Stored]:
    """A bucket after some micro-batches, with a log."""
    spec = spec_of(operator, SCHEMA)
    bucket, saved, log, nonce = Bucket(spec, 0), b"", list[bytes](), ""
    for number in range(12):
        size = 300 if not number else 12
        rows = [
            {"ts": number * 3, "k": rng.randrange(5), "n": rng.randrange(50)} for _ in range(size)
        ]
        chunk = PackedRows(0, 0, stream_bytes(pa.RecordBatch.from_pylist(rows, SCHEMA)))
        logged = sum(map(len, log))
        result = bucket.step(MicroBatch("run", (chunk,), None, len(saved), logged, False))
        if result.snapshot is not None:
            saved, log = result.snapshot, []
        elif result.entry is not None:
            log.append(result.entry)
        nonce = result.nonce
    pages = {first_key(n, entry=True)[0]: entry for n, entry in enumerate(log)}
    head = StateHead(
        FORMAT, 12, nonce, "run", "home", spec.about, 0, len(saved), sum(map(len, log)), 1,
        len(log), None,
    ).sealed()  # fmt: skip
    return spec, (head_bytes(head), {0: saved, **pages})


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Bytes that a disk, a network or somebody has changed."""
    found, at = bytearray(data), rng.randrange(len(data))
    kind = rng.randrange(5)
    if kind == 0:
        found[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del found[at : at + rng.randrange(1, 40)]
    elif kind == 2:
        found[at:at] = rng.randbytes(rng.randrange(1, 40))
    elif kind == 3:
        end = rng.randrange(len(data))
        found[min(at, end) : max(at, end)] = bytes(max(at, end) - min(at, end))
    else:
        found[at : at + 8] = rng.randbytes(8)
    return bytes(found)


def tampered(state: Stored, other: Stored, rng: random.Random) -> Stored:
    """The same with something changed; `other` is another state, of which parts may be taken."""
    head, pages = state[0], dict(state[1])
    place = rng.choice(sorted(pages))
    kind = rng.randrange(7)
    if kind < 2:
        pages[place] = flipped(pages[place], rng)
    elif kind == 2:
        values = json.loads(head)
        name = rng.choice([each for each in values if each != "checksum"])
        value = values[name]
        values[name] = value + rng.choice((-1, 1)) if isinstance(value, int) else f"{value}x"
        head = json.dumps(values).encode() + b"\n"
    elif kind == 3:
        mine, yours = rng.choice(sorted(pages)), rng.choice(sorted(pages))
        pages[mine], pages[yours] = pages[yours], pages[mine]
    elif kind == 4:
        pages[place] = rng.choice(list(other[1].values()))
    elif kind == 5:
        head = flipped(head, rng)
    elif rng.random() < 0.5:
        del pages[place]
    else:
        pages[place] = dump_state(rng.choice([None, [], {}, "x", 7, ("", {}, None)]))
    return head, pages


def restored(spec: BucketSpec, state: Stored) -> Any:
    """What comes out of a store."""
    head = head_of(state[0])
    head.check(spec)
    snapshot, log = assembled(head, lambda key: state[1].get(key[0]))
    return Bucket.restored(replace(spec), head.nonce, snapshot, log).running.snapshot()


def main(
    tampers: int = 3000, seed: int = 1, *, tell: Callable[[str], Any] = print
) -> Counter[str]:  # fmt: skip
    """Tamper, restore, and count how it went; anything else than a refusal must change nothing."""
    rng, went = random.Random(seed), Counter[str]()
    each = tampers // len(OPERATORS)
    for operator in OPERATORS:
        spec, state = stored(operator, rng)
        _, other = stored(operator, rng)
        whole = restored(spec, state)
        for _ in range(each):
            changed = tampered(state, other, rng)
            try:
                found = restored(spec, changed)
            except WindowlibError as error:
                went[type(error).__name__] += 1
                continue
            assert found == whole, f"{operator.name}: other state was accepted"
            assert changed == state or changed[1] == state[1], "a change was not noticed"
            went["unchanged"] += 1
    tell(", ".join(f"{count} {name}" for name, count in went.most_common()))
    return went


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
