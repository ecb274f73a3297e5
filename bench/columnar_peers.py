"""W1 to W5 and G14 in libraries that take whole columns: polars, duckdb and pandas.

Each gets all rows at once, in its own form, before the clock starts, and gives its results in any
order. W3 has no equal there: peers put windows on a grid of 10 s, while `delta` triggers where the
data do. Where several ways to write a query are known, all of them run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from bench.columnar_data import EVERY, LONG, RANGE, SIZE, SLIDE, Candidate, Data, Windows, windows
from bench.peers import module

PANES = RANGE // EVERY
Content = tuple[Any, Any, Any]
"""A window for W5's handler: key, number, values."""


def candidates(data: Data) -> dict[str, Candidate]:
    """The peers that are installed, by workload and name."""
    found: dict[str, Candidate] = {}
    for name, make in (("polars", Polars), ("duckdb", DuckDB), ("pandas", Pandas)):
        try:
            found |= make(data).candidates()
        except ImportError:
            print(f"{name} is not installed, and left out. To compare: pip install -e '.[bench]'")
        else:
            print(f"{name} {version(name)}")
    return found


def candidate(query: Callable[[], Any], read: Callable[[Any], Windows]) -> Candidate:
    """A query has no state to build."""
    return Candidate(lambda: query, read)


def handled(contents: Iterable[Content]) -> list[tuple[Any, Any, float]]:
    """W5's handler over lists."""
    return [(key, w, sorted(values)[94]) for key, w, values in contents]


def handled_arrays(contents: Iterable[Content]) -> list[tuple[Any, Any, float]]:
    """W5's handler over arrays."""
    return [(key, w, np.sort(values)[94]) for key, w, values in contents]


def read_handled(rows: list[tuple[Any, Any, float]]) -> Windows:
    return windows(pa.table(dict(zip(("key", "w", "p95"), zip(*rows, strict=True), strict=True))))


# -- polars ---------------------------------------------------------------------------------------


class Polars:
    """Lazy queries. Lists of a key's rows, cut into arrays of one size, are its fastest windows."""

    def __init__(self, data: Data) -> None:
        self.pl = pl = module("polars")
        self.rows = pl.from_arrow(data.rows).lazy()
        self.named = pl.from_arrow(data.named).lazy()
        coded = pl.from_arrow(data.named).with_columns(pl.col("key").cast(pl.Categorical))
        self.coded, self.few = coded.lazy(), pl.from_arrow(data.few).lazy()
        self.value = pl.col("value")

    def candidates(self) -> dict[str, Candidate]:
        queries: dict[str, Callable[[], Any]] = {
            "W1 polars int_range.over": lambda: self.w1(self.rows),
            "W1 polars reshape": lambda: self.w1_reshaped(self.rows),
            "W1s polars int_range.over": lambda: self.w1(self.named),
            "W1s polars reshape": lambda: self.w1_reshaped(self.named),
            "W1s polars Categorical": lambda: self.w1(self.coded),
            "W1s polars Categorical reshape": lambda: self.w1_reshaped(self.coded),
            "W2 polars rolling.over": self.w2,
            "W2 polars panes": self.w2_panes,
            "W2 polars reshape": self.w2_reshaped,
            "W3 polars group_by_dynamic": lambda: self.w3(self.rows),
            "W3 polars sort, group_by_dynamic": lambda: self.w3(self.rows.sort("key", "ts")),
            "W3 polars panes": self.w3_panes,
            "W4 polars rolling_max": self.w4,
            "G14 polars rolling_quantile": self.g14,
        }
        found = {name: candidate(query, self.read) for name, query in queries.items()}
        for name, query in {
            "W5 polars lists": self.w5_lists,
            "W5 polars lists as arrays": self.w5_arrays,
            "W5 polars a list for each key": self.w5_slices,
        }.items():
            found[name] = candidate(query, read_handled)
        return found

    def read(self, frame: Any) -> Windows:
        return windows(frame.to_arrow())

    def numbered(self, rows: Any, size: int) -> Any:
        """Each row with the number of its window within its key."""
        pl = self.pl
        return rows.select("key", "value", w=pl.int_range(pl.len()).over("key") // size)

    def cut(self, rows: Any, size: int) -> Any:
        """Whole windows as arrays; those of a key follow each other in order."""
        whole = self.pl.len() // size * size
        arrays = self.value.head(whole).reshape((-1, size))
        return rows.group_by("key").agg(arrays).explode("value")

    def w1(self, rows: Any) -> Any:
        pl = self.pl
        groups = self.numbered(rows, SIZE).group_by("key", "w")
        results = groups.agg(mean=self.value.mean(), n=pl.len()).filter(pl.col("n") == SIZE)
        return results.select("key", "w", "mean").collect()

    def w1_reshaped(self, rows: Any) -> Any:
        return self.cut(rows, SIZE).select("key", mean=self.value.arr.mean()).collect()

    def w2(self) -> Any:
        pl, value = self.pl, self.value
        everywhere = self.rows.select(
            "key",
            w=pl.int_range(1, pl.len() + 1).over("key"),
            mean=value.rolling_mean(SIZE).over("key"),
            max=value.rolling_max(SIZE).over("key"),
        )
        w = pl.col("w")
        return everywhere.filter((w >= SIZE) & (w % SLIDE == 0)).collect()

    def w2_panes(self) -> Any:
        pl, value = self.pl, self.value
        groups = self.numbered(self.rows, SLIDE).group_by("key", "w", maintain_order=True)
        panes = groups.agg(sum=value.sum(), max=value.max(), n=pl.len())
        return self.w2_of_panes(panes.filter(pl.col("n") == SLIDE))

    def w2_reshaped(self) -> Any:
        arrays = self.value.arr
        panes = self.cut(self.rows, SLIDE).select("key", sum=arrays.sum(), max=arrays.max())
        return self.w2_of_panes(panes)

    def w2_of_panes(self, panes: Any) -> Any:
        pl, n = self.pl, SIZE // SLIDE
        everywhere = panes.select(
            "key",
            mean=pl.col("sum").rolling_sum(n).over("key") / SIZE,
            max=pl.col("max").rolling_max(n).over("key"),
        )
        return everywhere.filter(pl.col("mean").is_not_null()).collect()

    def w3(self, rows: Any) -> Any:
        every, period = f"{EVERY}us", f"{RANGE}us"
        groups = rows.group_by_dynamic("ts", every=every, period=period, group_by="key")
        results = groups.agg(mean=self.value.mean(), max=self.value.max())
        return results.select("key", "mean", "max").collect()

    def w3_panes(self) -> Any:
        pl, value = self.pl, self.value
        rows = self.rows.select("key", "value", w=pl.col("ts").to_physical() // EVERY)
        panes = rows.group_by("key", "w").agg(sum=value.sum(), n=pl.len(), max=value.max())
        rolling = panes.sort("key", "w").rolling("w", period=f"{PANES}i", group_by="key")
        mean = pl.col("sum").sum() / pl.col("n").sum()
        return rolling.agg(mean=mean, max=pl.col("max").max()).collect()

    def w4(self) -> Any:
        return self.rows.select(max=self.value.rolling_max(LONG).slice(LONG - 1)).collect()

    def g14(self) -> Any:
        p95 = self.value.rolling_quantile(0.95, interpolation="linear", window_size=LONG)
        return self.few.select(p95=p95.slice(LONG - 1)).collect()

    def lists(self) -> Any:
        lists = self.numbered(self.rows, SIZE).group_by("key", "w").agg("value")
        return lists.filter(self.value.list.len() == SIZE).collect()

    def w5_lists(self) -> list[Any]:
        lists = self.lists()
        return handled(zip(*(lists[name].to_list() for name in lists.columns), strict=True))

    def w5_arrays(self) -> list[Any]:
        lists = self.lists()
        arrays = (each.to_numpy() for each in lists["value"])
        return handled_arrays(
            zip(lists["key"].to_list(), lists["w"].to_list(), arrays, strict=True)
        )

    def w5_slices(self) -> list[Any]:
        lists = self.rows.group_by("key").agg("value").collect()
        return handled_arrays(
            (key, start, values[start : start + SIZE])
            for key, each in zip(lists["key"].to_list(), lists["value"], strict=True)
            for values in (each.to_numpy(),)
            for start in range(0, len(values) - SIZE + 1, SIZE)
        )


# -- duckdb ---------------------------------------------------------------------------------------

NUMBERED = """
    select key, value, (row_number() over (partition by key order by i) - 1) // {size} as w
    from {rows}
"""
W1 = f"select key, w, avg(value) as mean from ({NUMBERED}) group by key, w having count(*) = {SIZE}"
W2 = f"""
    select * from (
        select key, row_number() over o as w, avg(value) over f as mean, max(value) over f as max
        from rows window
            o as (partition by key order by i),
            f as (partition by key order by i rows {SIZE - 1} preceding)
    ) where w >= {SIZE} and w % {SLIDE} = 0
"""
W2_PANES = f"""
    with panes as (
        select key, w, sum(value) as s, max(value) as m from ({NUMBERED})
        group by key, w having count(*) = {SLIDE}
    )
    select key, w, mean, max from (
        select key, w, sum(s) over f / {SIZE} as mean, max(m) over f as max, count(*) over f as n
        from panes window f as (partition by key order by w rows {SIZE // SLIDE - 1} preceding)
    ) where n = {SIZE // SLIDE}
"""
W3 = f"""
    select key, epoch_us(ts) as w, mean, max from (
        select key, ts, avg(value) over f as mean, max(value) over f as max,
            epoch_us(ts) // {EVERY} as this, epoch_us(lead(ts) over o) // {EVERY} as next
        from rows window
            o as (partition by key order by ts),
            f as (partition by key order by ts range interval {RANGE} microseconds preceding)
    ) where this <> next
"""
PANES_OF_ROWS = f"""
    select key, epoch_us(ts) // {EVERY} as w, sum(value) as s, count(*) as n, max(value) as m
    from rows group by key, w
"""
W3_PANES = f"""
    with panes as ({PANES_OF_ROWS})
    select key, w, sum(s) over f / sum(n) over f as mean, max(m) over f as max
    from panes window f as (partition by key order by w range {PANES - 1} preceding)
"""
W3_SPREAD = f"""
    with panes as ({PANES_OF_ROWS})
    select key, w + later as w, sum(s) / sum(n) as mean, max(m) as max
    from panes, range({PANES}) as windows(later) group by key, w + later
"""
W4 = f"""
    select m as max from (
        select i, max(value) over (order by i rows {LONG - 1} preceding) as m from rows
    ) where i >= {LONG - 1} order by i
"""
W5 = f"select key, w, list(value) from ({NUMBERED}) group by key, w having count(*) = {SIZE}"


class DuckDB:
    """SQL over tables of its own, with the number of each row, as tables have no order."""

    def __init__(self, data: Data) -> None:
        self.connection = module("duckdb").connect()
        self.connection.execute("set threads = 1")
        for name, table in data._asdict().items():
            numbered = table.append_column("i", pa.array(np.arange(len(table))))
            self.connection.register("arriving", numbered)
            self.connection.execute(f"create table {name} as select * from arriving")
            self.connection.unregister("arriving")

    def candidates(self) -> dict[str, Candidate]:
        queries = {
            "W1 duckdb": W1.format(size=SIZE, rows="rows"),
            "W1s duckdb": W1.format(size=SIZE, rows="named"),
            "W2 duckdb ROWS frame": W2,
            "W2 duckdb panes": W2_PANES.format(size=SLIDE, rows="rows"),
            "W3 duckdb RANGE frame": W3,
            "W3 duckdb panes": W3_PANES,
            "W3 duckdb panes, each spread to its windows": W3_SPREAD,
            "W4 duckdb ROWS frame": W4,
        }
        found = {name: candidate(self.query(text), windows) for name, text in queries.items()}
        lists = W5.format(size=SIZE, rows="rows")
        found["W5 duckdb lists"] = candidate(lambda: self.handled(lists), read_handled)
        return found

    def query(self, text: str) -> Callable[[], Any]:
        return lambda: self.connection.sql(text).to_arrow_table()

    def handled(self, text: str) -> list[Any]:
        return handled(self.connection.sql(text).fetchall())


# -- pandas ---------------------------------------------------------------------------------------


class Pandas:
    """Frames of numpy columns; string keys are pandas' own strings."""

    def __init__(self, data: Data) -> None:
        self.pd = module("pandas")
        self.rows, self.named = data.rows.to_pandas(), data.named.to_pandas()

    def candidates(self) -> dict[str, Candidate]:
        queries: dict[str, Callable[[], Any]] = {
            "W1 pandas": lambda: self.w1(self.rows),
            "W1s pandas": lambda: self.w1(self.named),
            "W2 pandas groupby.rolling": self.w2,
            "W3 pandas groupby.rolling": self.w3,
            "W4 pandas rolling.max": self.w4,
            "W5 pandas": self.w5,
        }
        return {name: candidate(query, self.read) for name, query in queries.items()}

    def read(self, frame: Any) -> Windows:
        return windows(pa.Table.from_pandas(frame, preserve_index=False))

    def groups(self, rows: Any) -> Any:
        w = (rows.groupby("key", sort=False).cumcount() // SIZE).rename("w")
        return rows["value"].groupby([rows["key"], w], sort=False)

    def w1(self, rows: Any) -> Any:
        found = self.groups(rows).agg(["mean", "size"])
        return found[found["size"] == SIZE].drop(columns="size").reset_index()

    def w2(self) -> Any:
        groups = self.rows.groupby("key", sort=False)
        rolling = groups["value"].rolling(SIZE)
        found = self.pd.DataFrame({"mean": rolling.mean(), "max": rolling.max()})
        keys, rows = (found.index.get_level_values(level) for level in (0, 1))
        w = groups.cumcount().to_numpy()[rows] + 1
        found = found.assign(key=keys, w=w)
        return found[(w >= SIZE) & (w % SLIDE == 0)]

    def w3(self) -> Any:
        """At every row, which is what it has."""
        groups = self.rows.set_index("ts").groupby("key", sort=False)
        rolling = groups["value"].rolling(self.pd.Timedelta(RANGE, unit="us"))
        return self.pd.DataFrame({"mean": rolling.mean(), "max": rolling.max()})

    def w4(self) -> Any:
        return self.rows["value"].rolling(LONG).max().iloc[LONG - 1 :].to_frame("max")

    def w5(self) -> Any:
        def p95(values: Any) -> float:
            return float(np.sort(values.to_numpy())[94]) if len(values) == SIZE else np.nan

        return self.groups(self.rows).agg(p95).dropna().rename("p95").reset_index()
