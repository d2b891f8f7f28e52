"""Makes parts on one machine, with Arrow, and with DuckDB if there is a filter."""

from __future__ import annotations

import bisect
import resource
import tempfile
from pathlib import Path
from typing import Any, Iterator, Optional

import pyarrow as pa
import pyarrow.dataset as ds

from .errors import FleetError
from .part_files import Origin, write_counts, write_part
from .rows import LINES_SCHEMA, lines_of
from .work import Work

BATCH_ROWS = 262_144
"""Rows in memory while the table is read."""

PART_ROWS_LIMIT = 32_000_000
"""The most rows of a part. A part is sorted in memory, which takes about 6 GB for this number."""


class ArrowTable:
    """A Parquet or ORC table on a local file system.

    Attributes:
        schema: The table's.
    """

    def __init__(self, files: list[str], kind: str) -> None:
        """Opens the table.

        Args:
            files: Its files.
            kind: `parquet` or `orc`.

        Raises:
            FleetError: Exit code 2 if a file is not of this kind.
        """
        self._files = files
        self._kind = kind
        try:
            self._dataset = ds.dataset(files, format=kind)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error
        self.schema: pa.Schema = self._dataset.schema

    def batches(self, columns: list[str], condition: Optional[str]) -> Iterator[pa.RecordBatch]:
        """The rows that meet the condition, in batches of at most `BATCH_ROWS`.

        Raises:
            FleetError: Exit code 2 if a file can't be read, or if the condition is wrong.
        """
        if condition is None:
            try:
                yield from self._dataset.to_batches(
                    columns=columns, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1)
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(error) from error
            return
        try:
            import duckdb
        except ImportError as error:
            raise FleetError("--filter needs DuckDB: pip install duckdb") from error
        if self._kind != "parquet":
            raise FleetError("--filter: works for Parquet only: omit it, or use Spark")
        selected = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        try:
            reader = duckdb.connect().execute(
                f"SELECT {selected} FROM read_parquet($1) WHERE {condition}", [self._files]
            ).fetch_record_batch(BATCH_ROWS)
            yield from reader
        except (duckdb.Error, pa.ArrowException) as error:
            raise FleetError(f"--filter {condition}: {str(error).splitlines()[0]}") from error


def _unreadable(error: Exception) -> FleetError:
    return FleetError(f"--input: {str(error).splitlines()[0]}")


def make_parts(work: Work, table: ArrowTable, pin: dict[str, Any], missing: list[int]) -> None:
    """Makes the parts that are missing: reads the table once, then sorts part by part.

    Args:
        work: The work directory; a temporary directory in it holds the rows.
        table: The input.
        pin: The number of parts, the columns and the filter.
        missing: The parts to make.

    Raises:
        FleetError: Exit code 2 if a part has more than `PART_ROWS_LIMIT` rows.
    """
    _allow_open_files(len(missing) + 100)
    origin = Origin.of(pin)
    counted: list[tuple[int, str]] = []
    rows = dict.fromkeys(missing, 0)
    with tempfile.TemporaryDirectory(prefix=".spill.", dir=work.frozen) as spill:
        writers: dict[int, pa.RecordBatchStreamWriter] = {}
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            for batch in table.batches(pin["columns"], pin["filter"]):
                lines = lines_of(batch, pin["parts"], frozenset(missing)).sort_by("part")
                numbers = lines.column(0).to_pylist()
                start = 0
                while start < len(numbers):
                    part = numbers[start]
                    end = _end_of(numbers, start)
                    if part == 0:
                        zero = lines.slice(start, end - start)
                        counted += zip(zero.column(1).to_pylist(), zero.column(2).to_pylist())
                    else:
                        rows[part] += end - start
                        if rows[part] > PART_ROWS_LIMIT:
                            raise FleetError(
                                f"--parts {pin['parts']}: a part has more than {PART_ROWS_LIMIT:,}"
                                " rows: use more parts")
                        if part not in writers:
                            writers[part] = pa.ipc.new_stream(
                                Path(spill, str(part)), LINES_SCHEMA, options=options)
                        writers[part].write_batch(lines.slice(start, end - start))
                    start = end
        finally:
            for writer in writers.values():
                writer.close()
        for part in missing:
            if part:
                write_part(work, origin, part, _sorted_lines(Path(spill, str(part))))
    if 0 in missing:
        write_counts(work, origin, counted)


def _allow_open_files(count: int) -> None:
    """Raises the soft limit of open files, which is 1,024 on many systems, to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _end_of(numbers: list[int], start: int) -> int:
    """The end of a run of equal numbers in a sorted list."""
    return bisect.bisect_right(numbers, numbers[start], start)


def _sorted_lines(spilled: Path) -> Iterator[str]:
    if not spilled.exists():
        return
    with pa.memory_map(str(spilled)) as source:
        table = pa.ipc.open_stream(source).read_all()
    # The same order as in Spark: by the hash, then by the UTF-8 bytes of the line.
    table = table.sort_by([("hash", "ascending"), ("line", "ascending")])
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield from batch.column(2).to_pylist()
