"""What the windows of a query hold, read from its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as fn

from windowlib.errors import AccessError, HostError
from windowlib.extensions import extension
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import Running
from windowlib.spark.bucket.bucket import Bucket, BucketSpec, check_fingerprint
from windowlib.spark.bucket.state_store import (
    HEAD,
    HEAD_OF_2,
    PAGES_OF_2,
    STATE,
    StateHead,
    assembled,
    head_of,
)
from windowlib.spark.deployment import ship
from windowlib.spark.plan.shuffle import BUCKET
from windowlib.spark.versions import state_reader
from windowlib.window.container import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBWINDOW = pa.schema(
    {
        "id": pa.int32(),
        "operator": pa.string(),
        "bucket": pa.int32(),
        "input": pa.string(),
        "window": pa.string(),
        "key": pa.string(),
        "size": pa.int64(),
        "inserted": pa.int64(),
        "oldest": pa.string(),
        "newest": pa.string(),
        "content": pa.string(),
        "bucket_bytes": pa.int64(),
    }
)
SUBWINDOW_DDL = (
    "id int, operator string, bucket int, input string, window string, key string, size long, "
    "inserted long, oldest string, newest string, content string, bucket_bytes long"
)
LIMIT = 100
SPARKS = ("key", "buckets")
"""What fingerprints have of Spark's, whatever an operator calls so."""
OURS = {(STATE, "MapState")}
OURS_OF_2 = {(HEAD_OF_2, "ValueState"), (PAGES_OF_2, "MapState")}
"""The state variables of our operators, in the present format and in format 2."""
ROWS = 1000
"""Subwindows that go to Spark at once."""


def inspect_state(
    checkpoint: str | PathLike[str],
    spark: SparkSession | None = None,
    operator: Operator | Sequence[Operator] | None = None,
    *,
    batch_id: int | None = None,
    limit: int = LIMIT,
) -> DataFrame:
    """The subwindows in the checkpoint of a query, one a row; nothing is changed there.

    The columns: `id`, the number that Spark gives the operator in the query; `operator`, its
    name, in a graph that of the node; `bucket`; `input` and its `window`; `key`; `size`, the tuples
    in it; `inserted`, the tuples that ever came in; `oldest` and `newest` tuple; `content`, the
    newest tuples up to `limit`, or the value of the summary or the slices that stand for them;
    `bucket_bytes`, the state of the whole bucket. Keys and contents are JSON texts.

    An operator without windows that keeps something, or one of your own that has a `snapshot`, has
    one row more per bucket, without an `input`, whose content is that.

    Args:
        checkpoint: the checkpointLocation of the query, which may be running.
        spark: the session; the active one unless given.
        operator: the operator, or those of a query with several, where functions or classes are
            your own: a checkpoint describes operators, and holds no code.
        batch_id: after which batch; the last that was committed unless given.
        limit: how many tuples of a subwindow `content` has at most.
    """
    checkpoint = str(checkpoint)
    if spark is None:
        from windowlib.spark.session import session

        spark = session()
    ship(spark)
    tables = StateTables(spark, checkpoint, "inspect_state", batch_id)
    found: DataFrame | None = None
    given = (operator,) if isinstance(operator, Operator) else tuple(operator or ())
    for number in tables.ours:
        described = tables.operator(number, given)
        rows = tables.parts(number).mapInArrow(StateReader(number, described, limit), SUBWINDOW_DDL)
        found = rows if found is None else found.union(rows)
    assert found is not None  # a checkpoint without any is refused
    return found


class StateTables:
    """The state of a query after a batch, as DataFrames.

    Args:
        spark: the session.
        checkpoint: the checkpointLocation.
        reader: the function that reads it, for messages.
        batch_id: after which batch; the last that was committed if it is None.
    """

    def __init__(
        self, spark: SparkSession, checkpoint: str, reader: str, batch_id: int | None = None
    ) -> None:
        self.spark, self.checkpoint = spark, checkpoint
        self.shown = f"{reader}({checkpoint!r})"
        self.batch = self._batch(reader, batch_id)
        self._rows = self._metadata()
        if not self.ours:
            msg = (
                f"{self.shown}: no operator of windowlib has state in it. Pass the "
                f"checkpointLocation of a query with one."
            )
            raise HostError(msg)

    def _batch(self, reader: str, wanted: int | None) -> int:
        """A batch that was committed, so that all that is read belongs together."""
        try:
            folder = f"{self.checkpoint.rstrip('/')}/commits"
            log = self.spark.read.format("binaryFile").load(folder)
            paths = [row.path for row in log.select("path").collect()]
        except AnalysisException:
            paths = []
        names = [path.rsplit("/", 1)[-1] for path in paths]
        batches = sorted(int(name) for name in names if name.isdigit())
        if not batches:
            msg = (
                f"{self.shown}: there is no checkpoint with a committed batch. Pass the "
                f"checkpointLocation of a query that has run."
            )
            raise HostError(msg)
        if wanted is not None and wanted not in batches:
            msg = (
                f"{reader}(batch_id={wanted}): no such batch was committed, or it is no longer "
                f"kept. Batches: {batches[0]} to {batches[-1]}."
            )
            raise HostError(msg)
        return batches[-1] if wanted is None else wanted

    def _metadata(self) -> dict[int, tuple[str, dict[str, Any]]]:
        metadata = self.spark.read.format("state-metadata").load(self.checkpoint)
        rows = metadata.select("operatorId", "operatorName", "operatorProperties").distinct()
        return {
            int(row.operatorId): (row.operatorName, json.loads(row.operatorProperties or "{}"))
            for row in rows.collect()
        }

    @property
    def operators(self) -> list[tuple[int, str]]:
        """The numbers and the names of all operators of the query that have state."""
        return [(number, name) for number, (name, _) in sorted(self._rows.items())]

    @property
    def ours(self) -> list[int]:
        """The numbers of our operators among them."""
        return sorted(number for number in self._rows if self._named(number) in (OURS, OURS_OF_2))

    def _named(self, number: int) -> set[tuple[str, str]]:
        """The names of an operator's state variables, and what kind each is."""
        variables = self._rows[number][1].get("stateVariables", [])
        own = ((each["stateName"], each["stateVariableType"]) for each in variables)
        return {(name, kind) for name, kind in own if not name.startswith("$")}

    def mode(self, number: int) -> str:
        """The clock of an operator, as Spark calls it."""
        return str(self._rows[number][1]["timeMode"])

    def head(self, number: int) -> StateHead | None:
        """The head of one of an operator's buckets; None if there is no state yet."""
        found = self._values(number).where(fn.col("number") == HEAD).first()
        return None if found is None else head_of(bytes(found.data))

    def _variable(self, number: int, name: str) -> DataFrame:
        reader = state_reader(self.spark).option("operatorId", number)
        reader = reader.option("batchId", self.batch).option("stateVarName", name)
        return reader.load(self.checkpoint)

    def _values(self, number: int) -> DataFrame:
        """What an operator's buckets have stored, in format 2 as if it were of the present one."""
        if self._named(number) == OURS:
            return _numbered(self._variable(number, STATE))
        heads = self._variable(number, HEAD_OF_2).select(
            fn.col(f"key.{BUCKET}").alias("bucket"),
            fn.lit(HEAD).alias("number"),
            fn.concat(
                fn.to_json(fn.col("value").dropFields("data")).cast("binary"),
                fn.lit(b"\n"),
                fn.coalesce("value.data", fn.lit(b"")),
            ).alias("data"),
        )
        return heads.union(_numbered(self._variable(number, PAGES_OF_2)))

    def parts(self, number: int) -> DataFrame:
        """What an operator's buckets have stored, bucket by bucket, each with its head first."""
        rows = self._values(number).repartition("bucket")
        return rows.sortWithinPartitions("bucket", "number")

    def operator(self, number: int, given: Sequence[Operator]) -> Operator | None:
        """The operator of the state: the one that was passed, or as the checkpoint describes it.

        None if there is no state yet.
        """
        head = self.head(number)
        if head is None:
            return None
        about = json.loads(head.about)
        for each in given:
            was, now = _compared(about["fingerprint"], each)
            if was == now:
                return each
        if given and len(self.ours) == 1:
            check_fingerprint(*_compared(about["fingerprint"], given[0]))
        try:
            described: Operator = extension("operator_from")(about["text"])
        except HostError as error:
            raise HostError(f"{self.shown}: {error}") from error
        if "farm" not in about["fingerprint"]:  # the fingerprint of a farm is that of its operator
            check_fingerprint(*_compared(about["fingerprint"], described))
        return described


def _compared(fingerprint: dict[str, str], operator: Operator) -> tuple[dict[str, Any], ...]:
    """The fields of a fingerprint beside those of the operator."""
    now = {name: said for name, said in operator.describe().items() if name not in SPARKS}
    return {name: fingerprint.get(name) for name in now}, now


def _numbered(values: DataFrame) -> DataFrame:
    """The values of a map of the state store: for each its bucket, its number and its bytes."""
    names = {
        "bucket": f"key.{BUCKET}",
        "number": "user_map_key.number",
        "data": "user_map_value.data",
    }
    return values.select([fn.col(place).alias(name) for name, place in names.items()])


def stored_buckets(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, bytes, dict[int, bytes]]]:
    """The buckets of one task: the number, the head as it is stored, and the pages of each."""
    head: bytes | None = None
    bucket, pages = 0, dict[int, bytes]()
    for batch in batches:
        for at in range(batch.num_rows):
            (part,) = batch.slice(at, 1).to_pylist()  # a page may be large: one at a time
            if part["number"] != HEAD:
                pages[part["number"]] = part["data"]
                continue
            if head is not None:
                yield bucket, head, pages
            bucket, head, pages = part["bucket"], part["data"], {}
    if head is not None:
        yield bucket, head, pages


class StateReader:
    """Restores the buckets of one task, one after the other, and lists what is in them."""

    def __init__(self, number: int, operator: Operator | None, limit: int) -> None:
        self.number, self.operator, self.limit = number, operator, limit

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Subwindows, as rows."""
        for bucket, head, pages in stored_buckets(batches):
            yield from self._batches(bucket, head, pages)

    def _batches(
        self, bucket: int, stored: bytes, pages: dict[int, bytes]
    ) -> Iterator[pa.RecordBatch]:
        head = head_of(stored)
        assert self.operator is not None  # there is a head, so there is a description
        snapshot, log = assembled(head, lambda key: pages.get(key[0]))
        spec = reading_spec(self.operator, json.loads(head.about)["fingerprint"])
        restored = Bucket.restored(spec, head.nonce, snapshot, log)
        same = {"id": self.number, "bucket": bucket, "bucket_bytes": head.saved + head.logged}
        rows: list[dict[str, Any]] = []
        for row in subwindows(restored.running, self.limit):
            rows.append(row | same)
            if len(rows) == ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=SUBWINDOW)
                rows = []
        yield pa.RecordBatch.from_pylist(rows, schema=SUBWINDOW)


def reading_spec(operator: Operator, about: Mapping[str, str]) -> BucketSpec:
    """What it takes to restore a bucket, if nothing is to come in or out any more.

    Args:
        operator: the operator.
        about: what the checkpoint knows of the query: also which clock the log is on.
    """
    inputs = len(operator.model.inputs)
    return BucketSpec(
        operator=operator,
        inputs=(None,) * inputs,
        outputs=(None,) * len(operator.model.outputs),
        made=(None,) * len(operator.model.outputs),
        orders=(None,) * inputs,
        fingerprint={},
        nonce="",
        times=about.get("times"),
        follows=int("watermark" in about),
        holds="times" in about,
    )


def subwindows(running: Running, limit: int = LIMIT) -> Iterator[dict[str, Any]]:
    """What the windows of a running operator, or of all operators of a graph, hold.

    >>> from windowlib import Count, Sliding
    >>> from windowlib.operators import Sort
    >>> running = Sort("x", window=Sliding(Count(3))).open()
    >>> running.insert_many([{"x": 2}, {"x": 1}])
    >>> [(row["operator"], row["size"], row["content"]) for row in subwindows(running)]
    [('Sort', 2, '[{"x": 2}, {"x": 1}]')]
    """
    nodes: dict[str, Running] = getattr(running, "nodes", {})
    for name, node in nodes.items():
        for row in subwindows(node, limit):
            yield {**row, "operator": name}
    if nodes:
        return
    op = running.operator
    own = running.snapshot()["state"]  # which also brings the windows up to date
    for port, window in zip(op.model.inputs, op.containers, strict=True):
        if window is not None:
            for key in window.keys():  # noqa: SIM118 - the same, and says that they are keys
                about = {"operator": op.name, "input": port.name, "window": str(window.spec)}
                yield about | _subwindow(window, key, limit)
    theirs = not type(op).snapshot.__module__.startswith("windowlib.operators.")
    if own is not None and (theirs or all(window is None for window in op.containers)):
        yield {"operator": op.name, "content": json_text(own)}


def _subwindow(window: Window[Any, Any], key: Any, limit: int) -> dict[str, Any]:
    row = {"key": json_text(key), "size": window.size(key), "inserted": window.insertions(key)}
    try:
        tuples = window[key]
    except AccessError:  # a summary stands for them
        return row | {"content": json_text(_summary(window, key))}
    if not tuples:
        return row
    row |= {"oldest": json_text(tuples[0]), "newest": json_text(tuples[-1])}
    return row | {"content": json_text(tuples[max(len(tuples) - limit, 0) :])}


def _summary(window: Window[Any, Any], key: Any) -> Any:
    """The value of a summary; slices have none until a trigger puts them together."""
    try:
        return window.summary(key).value()
    except AccessError:
        return window.state.save_summary(window.state.subwindows[key])


def json_text(value: Any) -> str:
    """A value as JSON; what JSON has no form for is a text.

    >>> json_text({"k": ("a", 1)}), json_text(b"x"), json_text({("a", 1): None})
    ('{"k": ["a", 1]}', '"b\\'x\\'"', '"{(\\'a\\', 1): None}"')
    """
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError):
        return json.dumps(repr(value), ensure_ascii=False)
