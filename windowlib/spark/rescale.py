"""A checkpoint with other buckets: the state of a stopped query, moved into a new checkpoint.

Spark has no writer of state but a query. So a query of one micro-batch takes what the old
checkpoint holds, bucket by bucket, and writes it with as many shuffle partitions as wanted. Its
state, under the number of the last batch, and the log of the old query make the new checkpoint: the
next batch has the number and the offsets that it would have had. The old checkpoint is only read;
the new one appears whole, under its name, or not at all.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from windowlib.attributes import one_key
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.errors import HostError, ModelError
from windowlib.runtime.operator import Operator
from windowlib.runtime.regrouping import check_regroups, key_columns, node_columns, regrouped
from windowlib.runtime.running import VERSION as OPERATOR_FORMAT
from windowlib.spark.bucket.bucket import PARTITIONS, Bucket, MicroBatchResult
from windowlib.spark.bucket.held_rows import joined
from windowlib.spark.bucket.state_store import (
    FORMAT,
    HEAD,
    PAGE,
    STATE,
    StateHead,
    StateStore,
    assembled,
    head_bytes,
    head_of,
)
from windowlib.spark.deployment import is_connect, ship
from windowlib.spark.observe.inspect import StateTables, reading_spec, stored_buckets
from windowlib.spark.plan.key_hash import check_hashes, key_hash
from windowlib.spark.plan.shuffle import BUCKET, REGISTER, spread
from windowlib.spark.plan.validation import PROVIDER
from windowlib.spark.versions import state_reader, transform_with_state
from windowlib.window.snapshot import VERSION as WINDOW_FORMAT
from windowlib.window.state_bytes import ENVELOPE, dump_state, load_state
from windowlib.window.state_bytes import VERSION as ENCODING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD_PART, PAGE_PART, STATE_PART = 0, 1, 2
"""What a row of moving state is: the head of a whole bucket, a page of it, or some of its keys."""
MOVING = pa.schema(
    {BUCKET: pa.int32(), "kind": pa.int32(), "number": pa.int32(), "data": pa.binary()}
)
MOVING_DDL = f"{BUCKET} int, kind int, number int, data binary"
NO_TIME, EVENT_TIME = "NoTime", "EventTime"
"""What the metadata of Spark calls no clock, and its watermark."""
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@dataclass(frozen=True)
class BucketMove:
    """From which buckets on how many shuffle partitions to which."""

    buckets: int
    partitions: int
    new_buckets: int
    new_partitions: int

    @property
    def splits(self) -> bool:
        """Whether keys change their buckets; otherwise buckets move whole."""
        return self.buckets != self.new_buckets

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the new buckets."""
        return spread(self.new_buckets, self.new_partitions)

    def new_number(self, bucket: int) -> int:
        """The new number of a bucket that moves whole."""
        if bucket == REGISTER:
            return bucket
        return self.numbers[spread(self.buckets, self.partitions).index(bucket)]

    def about(self, text: str) -> str:
        """What is written beside the state, with the new buckets."""
        told = json.loads(text)
        told["fingerprint"] |= {
            "buckets": str(self.new_buckets),
            PARTITIONS: str(self.new_partitions),
        }
        return json.dumps(told)


def rescale_state(
    checkpoint: str | PathLike[str],
    new: str | PathLike[str],
    spark: SparkSession | None = None,
    operator: Operator | Sequence[Operator] | None = None,
    *,
    buckets: int | None = None,
    partitions: int | None = None,
) -> None:
    """Write the checkpoint of a stopped query anew, for other buckets and shuffle partitions.

    The query goes on from the new checkpoint where it stopped: with the next batch, at the same
    offsets. `attach(op, buckets=...)` has to say the new number if it said one before. The old
    checkpoint stays as it is.

    Where the number of buckets stays, they move whole, whatever the operator. Otherwise what they
    hold is taken apart by key: windows must be partitioned by the columns that choose the bucket.

    Args:
        checkpoint: the checkpointLocation of the query, which must not be running.
        new: where the new checkpoint goes; there must be nothing yet.
        spark: the session; the active one unless given.
        operator: as for `inspect_state`; only needed where the number of buckets changes.
        buckets: how many buckets there are from now on; as many as before unless given, or as
            shuffle partitions if that was so.
        partitions: how many shuffle partitions there are from now on; as many as before unless
            given.
    """
    for name, number in (("buckets", buckets), ("partitions", partitions)):
        if number is not None and (type(number) is not int or number < 1):
            raise ModelError(f"rescale_state({name}={number!r}): not a number. Use 1 or more.")
    _rescaling("rescale_state", checkpoint, new, spark, operator).run(buckets, partitions)


def migrate_state(
    checkpoint: str | PathLike[str],
    new: str | PathLike[str],
    spark: SparkSession | None = None,
    operator: Operator | Sequence[Operator] | None = None,
) -> bool:
    """Write the checkpoint of a stopped query anew, in the present format of state.

    A query reads the formats of windows and operators that were ever released, and writes the
    present one, bucket by bucket, as rows come for them. This does it at once, so that none of an
    older format is left. State of format 2 is in other variables of Spark's, and has to be migrated
    before a query goes on from it.

    Args:
        checkpoint: the checkpointLocation of the query, which must not be running.
        new: where the new checkpoint goes; there must be nothing yet.
        spark: the session; the active one unless given.
        operator: as for `inspect_state`.

    Returns:
        Whether there was anything to do; if not, nothing is written.
    """
    rescaling = _rescaling("migrate_state", checkpoint, new, spark, operator)
    if rescaling.current():
        return False
    rescaling.run(None, None, rewrite=True)
    return True


def _rescaling(
    caller: str,
    checkpoint: str | PathLike[str],
    new: str | PathLike[str],
    spark: SparkSession | None,
    operator: Operator | Sequence[Operator] | None,
) -> Rescaling:
    """What writes one checkpoint to another, on executors that have this package."""
    if spark is None:
        from windowlib.spark.session import session

        spark = session()
    if is_connect(spark):
        msg = f"{caller}(...): not with Spark Connect. Use a session of the cluster itself."
        raise HostError(msg)
    ship(spark)
    operators = (operator,) if isinstance(operator, Operator) else tuple(operator or ())
    return Rescaling(spark, str(checkpoint), str(new), operators, caller)


class Rescaling:
    """The move of one checkpoint."""

    def __init__(
        self, spark: SparkSession, checkpoint: str, new: str, given: Sequence[Operator], by: str
    ) -> None:
        self.spark, self.given, self.by = spark, given, by
        self.files = Files(spark)
        self.old, self.new = self.files.absolute(checkpoint), self.files.absolute(new)
        self.draft = f"{self.new}.{uuid.uuid4().hex[:8]}.draft"
        self.owner = f"{by}({checkpoint!r}, {new!r})"

    def current(self) -> bool:
        """Whether all state is in the present format."""
        state = StateTables(self.spark, self.old, self.by)
        for number in state.ours:
            found = state.parts(number).mapInArrow(formats, "present boolean").where("not present")
            if found.first() is not None:
                return False
        return True

    def run(
        self, buckets: int | None, partitions: int | None, *, rewrite: bool = False
    ) -> None:  # fmt: skip
        """Write the new checkpoint, first under another name; `rewrite` what moves whole."""
        if self.files.exists(self.new):
            raise HostError(f"{self.owner}: the second exists already. Name a new folder.")
        state = StateTables(self.spark, self.old, self.by)
        self._check(state)
        try:
            for number in state.ours:
                self._operator(state, number, buckets, partitions, rewrite)
            self._log(state.batch, partitions)
            self.files.delete(f"{self.draft}/moving")
            self.files.rename(self.draft, self.new)
        finally:
            self.files.delete(self.draft)

    def _check(self, state: StateTables) -> None:
        """Refuse a checkpoint that has more than what is known how to move."""
        others = [name for number, name in state.operators if number not in state.ours]
        if others:
            msg = (
                f"{self.owner}: the query also has state of Spark's own, {others[0]}, which cannot "
                f"be moved. Use a new checkpoint."
            )
            raise HostError(msg)
        last = self.files.read(f"{self.old}/commits/{state.batch}")
        if json.loads(last.splitlines()[1]).get("stateUniqueIds"):
            msg = (
                f"{self.owner}: Spark has written its state in the format 2 of checkpoints, which "
                f"is not known here. Use a new checkpoint."
            )
            raise HostError(msg)

    def _operator(
        self,
        state: StateTables,
        number: int,
        buckets: int | None,
        partitions: int | None,
        rewrite: bool,
    ) -> None:
        """Move the state of one operator."""
        first = state.head(number)
        if first is None:
            return
        about = json.loads(first.about)
        had, over = (int(about["fingerprint"][name]) for name in ("buckets", PARTITIONS))
        after = partitions or over
        alone = not about.get("key", True)  # then one bucket has it all
        follows = had == over and not alone  # nothing said how many, or as many
        count = had if alone else buckets or (after if follows else had)
        move = BucketMove(had, over, count, after)
        operator, columns, kinds = None, [], []
        if move.splits or rewrite:
            operator = state.operator(number, self.given)
        if move.splits:
            assert operator is not None
            if "hashed" not in about or "farm" in about["fingerprint"]:
                msg = (
                    f"{self.owner}: keys of {about['name']} cannot be told apart in this state, "
                    f"which is of a farm or of an older version. Say buckets={had}, and change "
                    f"the shuffle partitions alone."
                )
                raise HostError(msg)
            columns = about["key"]
            kinds = [field.dataType for field in StructType.fromJson(about["hashed"])]
            check_regroups(operator, columns)
            check_hashes(kinds)
        mover = Splitter(operator, columns, kinds, move)
        rows = state.parts(number).mapInArrow(mover, MOVING_DDL)
        folder = f"{self.draft}/moving/{number}"
        rows.write.parquet(f"{folder}/rows")
        mode = state.mode(number)
        self._write(folder, after, mode, Mover(operator, move, mode == EVENT_TIME))
        self._adopt(folder, number, state.batch + 1)

    def _write(self, folder: str, partitions: int, mode: str, mover: Mover) -> None:
        """Let a query of one micro-batch write the state."""
        session = self.spark.newSession()
        pinned = self._pinned()
        for name, value in pinned.items():
            if ".stateStore." in name:
                session.conf.set(name, value)
        session.conf.set(PARTITIONS, partitions)
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        session.conf.set(CHANGELOG, "false")  # each version whole
        rows = session.readStream.schema(MOVING_DDL).parquet(f"{folder}/rows")
        if mode == EVENT_TIME:
            rows = rows.withColumn("at", fn.timestamp_seconds(fn.lit(1)))  # after a watermark of 0
            rows = rows.withWatermark("at", "0 seconds")
        done = transform_with_state(
            rows.groupBy(BUCKET), mover, "port int", "None" if mode == NO_TIME else mode
        )
        writer = done.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
        query.awaitTermination()
        moved = session.read.parquet(f"{folder}/rows").select(BUCKET).distinct().count()
        values = state_reader(session).option("stateVarName", STATE).load(f"{folder}/checkpoint")
        written = values.where(fn.col("user_map_key.number") == HEAD).count()
        if moved != written:
            msg = (
                f"{self.owner}: Spark has written {written} of {moved} buckets, so there is no new "
                f"checkpoint. Use the old one."
            )
            raise HostError(msg)

    def _pinned(self) -> dict[str, str]:
        """The settings that the old query keeps in its log."""
        names = self.files.names(f"{self.old}/offsets")
        last = max(int(name) for name in names if name.isdigit())
        found = json.loads(self.files.read(f"{self.old}/offsets/{last}").splitlines()[1])["conf"]
        return {name: value for name, value in found.items() if name != PROVIDER}

    def _adopt(self, folder: str, number: int, version: int) -> None:
        """Make what the query has written the state of an operator, under the next version."""
        made, state = f"{folder}/checkpoint/state/0", f"{self.draft}/state/{number}"
        self.files.make(f"{self.draft}/state")
        self.files.rename(made, state)
        for partition in self.files.names(state):
            for name in self.files.names(f"{state}/{partition}") if partition.isdigit() else ():
                begin, dot, rest = name.partition(".")
                if begin == "1" and dot:
                    place = f"{state}/{partition}"
                    self.files.rename(f"{place}/{name}", f"{place}/{version}.{rest}")
        final = f"{self.new}/state/{number}"
        for name in self.files.names(f"{state}/_metadata/v2"):
            path = f"{state}/_metadata/v2/{name}"
            text = self.files.read(path).replace(made, final)
            form, told = text.split("\n", 1)
            about = json.loads(told)
            about["operatorInfo"]["operatorId"] = number
            self.files.write(path, f"{form}\n{json.dumps(about)}")

    def _log(self, batch: int, partitions: int | None) -> None:
        """The log of the old query: what it has read, and what it will read next."""
        for name in self.files.names(self.old):
            if name not in ("state", "offsets") and not name.startswith("."):
                self.files.copy(f"{self.old}/{name}", f"{self.draft}/{name}")
        self.files.make(f"{self.draft}/offsets")
        for name in self.files.names(f"{self.old}/offsets"):
            if name.isdigit():
                text = self.files.read(f"{self.old}/offsets/{name}")
                if partitions is not None:
                    form, told, *rest = text.split("\n")
                    about = json.loads(told)
                    about["conf"][PARTITIONS] = str(partitions)
                    text = "\n".join([form, json.dumps(about, separators=(",", ":")), *rest])
                self.files.write(f"{self.draft}/offsets/{name}", text)


class Splitter:
    """Gives the state of the buckets of one task to the new buckets.

    Args:
        operator: the operator, where keys change their buckets.
        columns: for each input, the columns that choose the bucket.
        kinds: the types in which they are hashed.
        move: from which buckets to which.
    """

    def __init__(
        self,
        operator: Operator | None,
        columns: Sequence[Sequence[str]],
        kinds: Sequence[Any],
        move: BucketMove,
    ) -> None:
        self.operator, self.columns, self.kinds, self.move = operator, columns, kinds, move
        self._places: dict[Any, int] = {}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of moving state."""
        for bucket, stored, pages in stored_buckets(batches):
            head = head_of(stored)
            if self.operator is not None and not self.move.splits:
                head, pages = self._rewritten(head, pages)
            whole = not self.move.splits or bucket == REGISTER
            for row in self._whole(bucket, head, pages) if whole else self._split(head, pages):
                yield pa.RecordBatch.from_pylist([row], MOVING)  # a page may be large

    def _whole(
        self, bucket: int, head: StateHead, pages: Mapping[int, bytes]
    ) -> Iterator[dict[str, Any]]:
        """A bucket as it is, under its new number."""
        place = {BUCKET: self.move.new_number(bucket)}
        yield {**place, "kind": HEAD_PART, "number": 0, "data": head_bytes(head)}
        for number, data in pages.items():
            yield {**place, "kind": PAGE_PART, "number": number, "data": data}

    def _restored(self, head: StateHead, pages: Mapping[int, bytes]) -> Bucket:
        assert self.operator is not None
        about = json.loads(head.about)["fingerprint"]
        snapshot, log = assembled(head, partial(_page, pages))
        return Bucket.restored(reading_spec(self.operator, about), head.nonce, snapshot, log)

    def _rewritten(
        self, head: StateHead, pages: Mapping[int, bytes]
    ) -> tuple[StateHead, dict[int, bytes]]:
        """A bucket in the present format."""
        snapshot = self._restored(head, pages).snapshot()
        cuts = range(0, len(snapshot), PAGE)
        found = {n: snapshot[at : at + PAGE] for n, at in enumerate(cuts)}
        new = replace(head, saved=len(snapshot), logged=0, entries=0, pages=len(found), data=None)
        return new.sealed(), found

    def _split(self, head: StateHead, pages: Mapping[int, bytes]) -> Iterator[dict[str, Any]]:
        """The share of a bucket's state for each of the new buckets."""
        assert self.operator is not None
        bucket = self._restored(head, pages)
        states = regrouped(
            self.operator, [bucket.running.snapshot()], self._owner, self.move.new_buckets
        )
        held = self._held(None if bucket.held is None else bucket.held.snapshot())
        for place, state in enumerate(states):
            data = dump_state((head.about, head.timer, state, held[place]))
            number = self.move.numbers[place]
            yield {BUCKET: number, "kind": STATE_PART, "number": 0, "data": data}

    def _owner(self, operator: Operator, port: int, key: Any) -> int:
        place = operator.name, port, key
        if (found := self._places.get(place)) is None:
            columns = self.columns
            if operator is not self.operator:
                columns = node_columns(operator, columns)
            values = key_columns(operator, columns, port, key)
            found = self._places[place] = self._place(values)
        return found

    def _place(self, values: Sequence[Any]) -> int:
        return key_hash(values, self.kinds) % self.move.new_buckets

    def _held(self, held: dict[str, Any] | None) -> list[Any]:
        """The rows that wait for the clock, for each of the new buckets."""
        places = range(self.move.new_buckets)
        if held is None:
            return [None for _ in places]
        found = [{**held, "rows": []} for _ in places]
        for port, data in enumerate(held["rows"]):
            table = stream_table(data) if data else None
            if table is not None:
                keys = zip(*(table.column(n).to_pylist() for n in self.columns[port]), strict=True)
                owners = [self._place([one_key(value) for value in key]) for key in keys]
            for place in places:
                own = b""
                if table is not None and place in owners:
                    mine = table.filter(pa.array([owner == place for owner in owners]))
                    own = stream_bytes(joined([mine]))
                found[place]["rows"].append(own)
        return found


def _page(pages: Mapping[int, bytes], key: tuple[int]) -> bytes | None:
    return pages.get(key[0])


def formats(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each bucket, whether it is in the present format."""
    for _, stored, pages in stored_buckets(batches):
        head = head_of(stored)
        snapshot, log = assembled(head, partial(_page, pages))
        state = load_state(snapshot)[1]
        present = (
            head.format == FORMAT
            and all(ENVELOPE.unpack_from(blob)[1] == ENCODING for blob in (snapshot, *log))
            and state["v"] == OPERATOR_FORMAT
            and all(each["v"] == WINDOW_FORMAT for each in state.get("windows", ()))
        )
        yield pa.RecordBatch.from_pydict({"present": [present]})


class Mover(StatefulProcessor):
    """Writes moving state where it belongs.

    Args:
        operator: the operator, where keys change their buckets.
        move: from which buckets to which.
        follows: whether timers are of Spark's watermark, which is 0 here, and not of the clock.
    """

    def __init__(self, operator: Operator | None, move: BucketMove, follows: bool) -> None:
        self.operator, self.move, self.follows = operator, move, follows

    def init(self, handle: Any) -> None:
        """Name the state; this also runs on the driver."""
        self.handle, self.store = handle, StateStore(handle)

    # Spark's names, not ours: it calls some of them by keyword.
    # ruff: noqa: N802, N803
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """The state of a bucket, whole or in parts."""
        parts = sorted((int(row.kind), int(row.number), bytes(row.data)) for row in rows)
        now = 0 if self.follows else timerValues.getCurrentProcessingTimeInMs()
        if parts[0][0] == STATE_PART:
            head = self._merged([load_state(data) for _, _, data in parts], now)
        else:
            head = self._whole(parts, now)
        if head.timer:
            self.handle.registerTimer(head.timer)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:
        """None expires here: those that are due wait for the next batch of the query."""
        return iter(())

    def close(self) -> None:
        """Nothing is open."""

    def _whole(self, parts: Sequence[tuple[int, int, bytes]], now: int) -> StateHead:
        head = head_of(parts[0][2])
        head = replace(
            head,
            format=FORMAT,
            home="",
            about=self.move.about(head.about),
            timer=_later(head.timer, now),
        ).sealed()
        self.store.put(head, {number: data for kind, number, data in parts if kind == PAGE_PART})
        return head

    def _merged(self, parts: Sequence[Sequence[Any]], now: int) -> StateHead:
        assert self.operator is not None
        abouts, timers, states, helds = zip(*parts, strict=True)
        (state,) = regrouped(self.operator, states, lambda *_: 0, 1)
        nonce = uuid.uuid4().hex
        snapshot = dump_state((nonce, state, merged_rows(helds)))
        timer = _later(min((each for each in timers if each), default=0), now)
        result = MicroBatchResult(nonce, (), {}, None, snapshot, None)
        return self.store.write(None, self.move.about(abouts[0]), result, "", "", timer)


def _later(timer: int, now: int) -> int:
    """A timer that is not due yet, as it would be told of here."""
    return max(timer, now + 1) if timer else 0


def merged_rows(states: Sequence[Any]) -> Any:
    """The rows that wait for the clock in several buckets."""
    if states[0] is None:
        return None
    rows = []
    for pieces in zip(*(state["rows"] for state in states), strict=True):
        tables = [stream_table(data) for data in pieces if data]
        rows.append(stream_bytes(joined(tables)) if tables else b"")
    marks, firsts, lasts, started, late = zip(*(state["known"] for state in states), strict=True)
    known = [
        max((each for each in marks if each is not None), default=None),
        min((each for each in firsts if each is not None), default=None),
        max((each for each in lasts if each is not None), default=None),
        any(started),
        sum(late),
    ]
    return {"rows": rows, "known": known}


class Files:
    """Files and folders wherever a checkpoint is, by way of Hadoop."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)

    def absolute(self, path: str) -> str:
        """A path with the name of its file system."""
        return str(self._system(path).makeQualified(self._path(path)).toString()).rstrip("/")

    def exists(self, path: str) -> bool:
        """Whether there is something."""
        return bool(self._system(path).exists(self._path(path)))

    def names(self, path: str) -> list[str]:
        """What is in a folder."""
        if not self.exists(path):
            return []
        return [str(each.getPath().getName()) for each in self._system(path).listStatus(
            self._path(path))]  # fmt: skip

    def read(self, path: str) -> str:
        """A small file of text."""
        stream = self._system(path).open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a small file of text, over one that may be there."""
        stream = self._system(path).create(self._path(path), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def make(self, path: str) -> None:
        """Make a folder, and those that it is in."""
        self._system(path).mkdirs(self._path(path))

    def copy(self, path: str, to: str) -> None:
        """Copy a file, or a folder with all that is in it."""
        util = self._jvm.org.apache.hadoop.fs.FileUtil
        self.make(to.rpartition("/")[0])
        util.copy(self._system(path), self._path(path), self._system(to), self._path(to), False,
                  self._conf)  # fmt: skip

    def rename(self, path: str, to: str) -> None:
        """Give a file or a folder another name."""
        if path == to:
            return
        if not self._system(path).rename(self._path(path), self._path(to)):
            raise HostError(f"rescale_state(...): {path} could not be renamed to {to}.")

    def delete(self, path: str) -> None:
        """Remove a folder with all that is in it, if it is there."""
        self._system(path).delete(self._path(path), True)
