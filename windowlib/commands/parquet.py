"""Parquet files of `run`: written as rows come, and there when they are whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.commands.results import Writer
from windowlib.commands.usage import UsageError, one_line

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

GROUP = 65_536
"""Rows that are kept until they are written as a row group."""


class Parquet(Writer):
    """A Parquet file, written a row group at a time under another name until it is whole.

    Without a schema the first rows say what columns there are. If later ones need more columns, or
    wider types, what is written is written once more with these: the same file as if all rows had
    been looked at first.
    """

    def __init__(self, path: Path, schema: pa.Schema | None) -> None:
        import pyarrow as pa

        self.path, self.draft = path, path.with_name(f".{path.name}.part")
        self.told = schema is not None
        self.schema = schema if schema is not None else pa.schema([])
        self.rows: list[Mapping[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None
        self._failed = False
        try:  # a place where nothing can be written is told of at once
            if path.exists():
                os.close(os.open(path, os.O_WRONLY))
            self.draft.touch()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row."""
        self.rows.append(row)
        if len(self.rows) >= GROUP:
            self._write()

    def close(self) -> None:
        """Write the rest, and give the file its name; nothing if rows could not be written."""
        try:
            if not self._failed:
                self._write()
                self._close()
                self.draft.replace(self.path)
        finally:
            self._close()
            self.draft.unlink(missing_ok=True)

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._failed = True  # until it has gone well
        try:
            table = self._table()
            if table.schema != self.schema:
                self._widen(table.schema)
            if self._writer is None:
                self._writer = pq.ParquetWriter(self.draft, self.schema)
            if table.num_rows:
                self._writer.write_table(fitted(table, self.schema))
        except (pa.ArrowException, TypeError, ValueError) as error:
            msg = f"--output {self.path}: the values of a column are not of one type"
            raise UsageError(f"{msg}: {one_line(error)}. Use .jsonl.") from None
        self.rows, self._failed = [], False

    def _table(self) -> pa.Table:
        import pyarrow as pa

        if self.told:
            return pa.Table.from_pylist(self.rows, self.schema)
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        columns = [pa.array([row.get(name) for row in self.rows]) for name in names]
        return pa.Table.from_arrays(columns, names)

    def _widen(self, more: pa.Schema) -> None:
        """A schema that holds what is written and what comes, and the file written with it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        both = pa.unify_schemas([self.schema, more], promote_options="permissive")
        if both == self.schema:
            return
        self.schema, written = both, self._writer is not None
        self._close()
        if not written:
            return
        before = self.draft.with_suffix(".old")
        self.draft.replace(before)
        try:
            self._writer = pq.ParquetWriter(self.draft, self.schema)
            with pq.ParquetFile(before) as file:
                for group in range(file.num_row_groups):
                    self._writer.write_table(fitted(file.read_row_group(group), self.schema))
        finally:
            before.unlink()

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with these columns, those that they lack being null.

    >>> import pyarrow as pa
    >>> fitted(pa.table({"a": [1]}), pa.schema({"b": pa.string(), "a": pa.float64()})).to_pylist()
    [{'b': None, 'a': 1.0}]
    """
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
