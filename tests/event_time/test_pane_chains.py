"""Chains behind `Panes` with a key are split by it, and each part gives the rows of its keys."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import Count, Operator, Punct, Sliding, Tumbling, replay
from windowlib.operators import Aggregate, Filter, Functor, KSlack, Panes, Sort, agg

OUT: dict[str, Any] = {"from": agg.first("from"), "n": agg.count(), "all": agg.collect("ts")}


def panes(**said: Any) -> Panes:
    return Panes("ts", **{"size": 10, "slack": 5, "start": "from", "by": "k", **said})


def windows(by: Any = "k") -> Aggregate:
    return Aggregate(Tumbling(Punct(), by=by), OUT)


CHAINS: dict[str, Operator] = {
    "tumbling": panes().then(windows()),
    "hopping, late rows aside": panes(every=5, late="port", slack=KSlack()).then(windows()),
    "filtered": panes().then(Filter(lambda row: row["ts"] % 3)).then(windows()),
    "two keys": panes().then(windows(("k", "j"))),
    "a window behind": panes()
    .then(windows())
    .then(Aggregate(Sliding(Count(2), by="k"), m=agg.max("n"), partial="emit")),
    "sorted": panes().then(Sort("j", "ts", window=Tumbling(Punct(), by="k"))),
}

WHOLE: dict[str, Operator] = {
    "punctuations of the stream": panes(by=None).then(windows()),
    "windows of all keys": panes().then(windows(None)),
    "windows of another key": panes().then(windows("j")),
    "the key goes": panes().then(Functor(keep=["ts", "j", "from"])).then(windows("j")),
    "windows that last": panes().then(
        Aggregate(Sliding(Count(3), every=Count(2), by="j"), n=agg.count())
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_with_the_key_of_its_panes_is_split_by_it(name):
    assert ("k",) == CHAINS[name].splits_by(0)


@pytest.mark.parametrize("name", WHOLE)
def test_other_chains_stay_whole(name):
    assert () == WHOLE[name].splits_by(0)


ROWS = st.lists(
    st.tuples(st.integers(0, 80), st.sampled_from("abc"), st.integers(0, 2)), max_size=40
)


@pytest.mark.parametrize("name", CHAINS)
@given(ROWS)
def test_each_key_alone_gives_its_rows(name, drawn):
    rows = [{"ts": ts, "k": k, "j": j} for ts, k, j in drawn]
    together = list(replay(CHAINS[name], rows).items())
    for key in "abc":
        alone = replay(CHAINS[name], [row for row in rows if row["k"] == key]).items()
        assert mine(together, key) == mine(alone, key)


def mine(items: Any, key: str) -> list[Any]:
    """The rows of a key, with their outputs."""
    return [(p, row) for p, row in items if isinstance(row, dict) and row.get("k") == key]
