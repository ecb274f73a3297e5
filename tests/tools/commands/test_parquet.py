"""Parquet output: written as rows come, and the file that all rows at once would make."""
# ruff: noqa: SIM300 - asserts read expected first

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.tools.commands import output_files
from windowlib.tools.commands.output_files import row_writer
from windowlib.tools.commands.usage import UsageError


def groups(path):
    with pq.ParquetFile(path) as file:
        return file.num_row_groups


def test_parquet_is_written_as_rows_come_and_has_its_name_when_it_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(output_files, "GROUP", 2)
    path = tmp_path / "x.parquet"
    path.write_text("as it was")
    out = row_writer(str(path), pa.schema({"a": pa.float64()}))
    for n in range(5):
        out.add({"a": n})
    assert "as it was" == path.read_text()
    assert (tmp_path / ".x.parquet.part").stat().st_size > 0
    out.close()
    assert ([0.0, 1.0, 2.0, 3.0, 4.0], 3) == (pq.read_table(path)["a"].to_pylist(), groups(path))
    assert not list(tmp_path.glob(".x*"))


VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(-9, 9), st.floats(-9, 9), st.just([]), st.just([1])
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1)), st.integers(1, 4))
def test_types_and_columns_that_come_later_are_those_of_the_whole_file(rows, size):
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        columns = {name: pa.array([row.get(name) for row in rows]) for name in names}
    except pa.ArrowException:
        columns = None
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_files, "GROUP", size)
        path = Path(place, "x.parquet")
        out = row_writer(str(path))
        try:
            for row in rows:
                out.add(row)
            out.close()
        except UsageError:
            out.close()
            assert columns is None
            assert [] == list(Path(place).iterdir())
            return
        assert columns is not None
        assert pa.table(columns) == pq.read_table(path).select(names)


def test_no_rows_are_a_parquet_file_without_columns(tmp_path):
    row_writer(str(tmp_path / "x.parquet")).close()
    assert 0 == pq.read_table(tmp_path / "x.parquet").num_columns
