"""Makes parts on a cluster, with Spark: the same bytes as `freeze_arrow`."""

from __future__ import annotations

from typing import Any, Iterator
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.utils import AnalysisException

from .errors import FleetError, one_line, task_message
from .freeze import InputFiles
from .part_files import Origin, write_counts, write_part
from .rows import lines_of
from .work import Work

_LINES = "part int, hash long, line string"


def read_table(spark: SparkSession, path: str, kind: str) -> DataFrame:
    """The table in files of a kind that Spark reads.

    Raises:
        FleetError: Exit code 2 if it can't be read.
    """
    try:
        return spark.read.format(kind).load(path)
    except AnalysisException as error:
        raise FleetError(f"--input {path}: {task_message(error)}") from error


def input_files(spark: SparkSession, table: DataFrame) -> InputFiles:
    """The files of a table, on any file system that Spark reads."""
    jvm: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    found = []
    for uri in table.inputFiles():
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        status = path.getFileSystem(configuration).getFileStatus(path)
        name = unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
        found.append({"path": name, "bytes": status.getLen(),
                      "modified_ms": status.getModificationTime()})
    return sorted(found, key=lambda file: str(file["path"]))


def make_parts(work: Work, table: DataFrame, pin: dict[str, Any], missing: list[int]) -> None:
    """Makes the parts that are missing, a task for each.

    Raises:
        FleetError: Exit code 2 if the filter is wrong; 5 if a file can't be read or written.
    """
    origin = Origin.of(pin)
    wanted = frozenset(missing)
    if pin["filter"] is not None:
        try:
            table = table.filter(pin["filter"])
        except Exception as error:
            raise FleetError(f"--filter {pin['filter']}: {task_message(error)}") from error

    def lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield lines_of(batch, origin.parts, wanted)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows(batches)
        while (part := rows.part) is not None:
            if part == 0:
                write_counts(work, origin, rows.of_part())
            else:
                write_part(work, origin, part, (line for _, line in rows.of_part()))
            yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32())})

    made = (
        table.select(*(f"`{name}`" for name in origin.columns))
        .mapInArrow(lines, _LINES)
        .repartition(max(1, len(missing)), col("part"))
        .sortWithinPartitions("part", "hash", "line")
        .mapInArrow(write, "part int")
    )
    with one_line():
        done = {row["part"] for row in made.collect()}
    # No task handles a part without rows.
    for part in sorted(wanted - done):
        if part == 0:
            write_counts(work, origin, ())
        else:
            write_part(work, origin, part, ())


class _Rows:
    """Rows of a sorted partition, part by part.

    Attributes:
        part: The part of the next row; None at the end.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._rows = (
            row for batch in batches
            for row in zip(*(column.to_pylist() for column in batch.columns)))
        self.part: int | None = None
        self._advance()

    def _advance(self) -> None:
        self._next = next(self._rows, None)
        self.part = None if self._next is None else self._next[0]

    def of_part(self) -> Iterator[tuple[int, str]]:
        """Hash and line of each row of the next part; afterwards, `part` is the part after it."""
        part = self.part
        while self._next is not None and self.part == part:
            yield self._next[1], self._next[2]
            self._advance()
