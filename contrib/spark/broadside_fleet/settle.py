"""The contents of the ledgers as tables: the outcome of each row, and the dead tokens."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from pyspark.sql import DataFrame, SparkSession

from .campaign import run
from .errors import FleetError, one_line
from .files import read_json, write_json
from .metrics import STATES
from .work import Work

GUARDED_ROWS = 1000
"""The least number of rows for which `max_removed` applies, as in `broadside prune`."""

BLOCK_BYTES = 4 << 20
"""Number of bytes of an export to read at a time."""

_EXPORT = pa.schema([
    ("line", pa.int64()), ("token", pa.string()), ("state", pa.string()), ("status", pa.int32()),
    ("reason", pa.string()), ("apns_timestamp_ms", pa.int64()), ("attempts", pa.int32()),
    ("apns_id", pa.string()), ("settled_at_ms", pa.int64()),
])
OUTCOMES = (
    "part int, line long, token string, state string, status int, reason string, apns_timestamp_ms long,"
    " attempts int, apns_id string, settled_at_ms long")
"""A row per settled row: `line` is the line in the part's list; times are Unix milliseconds."""

DEAD = "token string"
"""A row per dead token, in lower case."""


class Settlement:
    """The tables of a campaign whose parts are finished."""

    def __init__(self, spark: SparkSession, work: Work, broadside: str) -> None:
        self.spark = spark
        self.work = work
        self.broadside = broadside
        self.manifest = work.read_manifest()
        self.parts = [file["part"] for file in self.manifest["files"] if file["rows"]]
        self.results = work.read_results(self.manifest)

    def write_outcomes(self, target: str) -> None:
        """Writes the outcome of each row to Parquet: the columns of `OUTCOMES`, `arm` if there are arms, and `topic` if
        rows name their topics."""
        target = self._qualified(target)
        if self._is_complete(target, "outcomes"):
            return
        work, broadside = self.work, self.broadside
        expected = {
            file["part"]: expected_states(file, self.results) for file in self.manifest["files"] if file["rows"]}
        columns = further_columns(read_json(work.campaign) or {})
        self._write(target, "outcomes", self._table(
            lambda part: export(work, broadside, part, expected[part], columns),
            OUTCOMES + "".join(f", {column} string" for column in columns)))

    def write_dead(self, target: str, registered: Optional[str], max_removed: float) -> None:
        """Writes the tokens of which `broadside prune` keeps no row to Parquet, with the columns of `DEAD`.

        All copies of a token are in one part, so the ledger of this part decides. If one copy was registered
        again later, the token is not in the table.

        Raises:
            FleetError: Exit code 2 if more than `max_removed` percent of all rows would be removed.
        """
        target = self._qualified(target)
        if self._is_complete(target, "dead"):
            return
        work, broadside = self.work, self.broadside
        column = self.manifest["columns"][0]
        table = self._table(
            lambda part: dead(work, broadside, part, column, registered),
            "token string, removed int, kept int")
        table = table.groupBy("token").sum("removed", "kept").toDF("token", "rows", "kept")
        table = table.filter("rows > 0 and kept = 0").persist()
        try:
            with one_line():
                count = table.groupBy().sum("rows").collect()[0][0] or 0
            rows = self.manifest["rows"]
            if rows >= GUARDED_ROWS and count * 100 > max_removed * rows:
                raise FleetError(
                    f"--dead {target}: {count:,} of {rows:,} rows would be removed, more than"
                    f" --max-removed {max_removed:g} percent: nothing is written")
            self._write(target, "dead", table.select("token"))
        finally:
            table.unpersist()

    def _table(self, rows_of: Any, schema: str) -> DataFrame:
        parts = self.parts

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    try:
                        yield from rows_of(parts[index])
                    except FleetError as error:
                        raise FleetError(f"part {parts[index]}: {error.message}") from error

        return self.spark.range(0, len(parts), 1, len(parts)).mapInArrow(read, schema)

    def _write(self, target: str, name: str, table: DataFrame) -> None:
        """Writes a table once: begins an interrupted write again, and never replaces another program's table."""
        note = self.work.run / f"{name}.json"
        begun = read_json(note)
        if (begun is None or begun["target"] != target) and self._exists(target):
            raise FleetError(f"--{name} {target}: exists already: name another path")
        write_json(note, {"target": target, "done": False})
        with one_line():
            table.write.mode("overwrite").parquet(target)
        write_json(note, {"target": target, "done": True, "ledgers": attempts(self.work, self.parts)})

    def _is_complete(self, target: str, name: str) -> bool:
        """Whether this campaign has written the table from the current state of the ledgers."""
        begun = read_json(self.work.run / f"{name}.json")
        return (
            begun is not None and begun["target"] == target and begun["done"] is True
            and begun.get("ledgers") == attempts(self.work, self.parts) and self._exists(target))

    def _qualified(self, target: str) -> str:
        """The absolute form of a path, which does not depend on the directory of the start."""
        path, system = self._path(target)
        return str(system.makeQualified(path).toString())

    def _exists(self, target: str) -> bool:
        path, system = self._path(target)
        return bool(system.exists(path))

    def _path(self, target: str) -> tuple[Any, Any]:
        jvm: Any = self.spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(target)
        return path, path.getFileSystem(self.spark._jsc.hadoopConfiguration())


def attempts(work: Work, parts: list[int]) -> dict[str, Optional[str]]:
    """The last attempt of each part's ledger. If one has changed, tables and report are made again."""
    return {str(part): work.ledger_attempt(part) for part in parts}


def expected_states(file: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, int]:
    """The number of a part's rows in each state, by the summary of its last attempt.

    Raises:
        FleetError: Exit code 5 if the part has not ended, or has other rows than were frozen.
    """
    part = file["part"]
    if part not in results:
        raise FleetError(f"part {part}: its ledger is not that of its result: start the same command again", 5)
    summary = results[part]["summary"]
    states = {state: int(summary[state]) for state in STATES if summary.get(state)}
    if sum(states.values()) != file["rows"]:
        raise FleetError(
            f"part {part}: {sum(states.values()):,} of its {file['rows']:,} rows are settled: start the same"
            " command again", 5)
    return states


def further_columns(campaign: Mapping[str, Any]) -> list[str]:
    """The columns that an export has behind the others: for arms, and for rows that name their topics."""
    return (["arm"] if "split" in campaign else []) + (["topic"] if "{{" in str(campaign.get("topic", "")) else [])


def export(
    work: Work, broadside: str, part: int, expected: dict[str, int], columns: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The settled rows of a part, as `ledger export` writes them, with the part's number.

    Args:
        work: Where.
        broadside: The command.
        part: The part.
        expected: The number of rows in each state.
        columns: The columns behind the others, as `further_columns` says.

    Raises:
        FleetError: With the export's exit code, or 5 after the last row if the numbers of rows differ from `expected`.
    """
    states: Counter[str] = Counter()
    schema = pa.schema([*_EXPORT, *(pa.field(column, pa.string()) for column in columns)])
    with tempfile.TemporaryFile() as errors, subprocess.Popen(
        [broadside, "ledger", "export", "--ledger", str(work.ledger(part)),
         "--tokens", str(work.part_file(part)), "--format", "jsonl"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
    ) as process:
        assert process.stdout
        try:
            rows = pa.json.open_json(
                process.stdout, read_options=pa.json.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="error"))
            for batch in rows:
                states.update(batch.column(2).to_pylist())
                yield pa.RecordBatch.from_arrays(
                    [pa.array([part] * batch.num_rows, pa.int32()), *batch.columns],
                    names=["part", *schema.names])
        except pa.ArrowInvalid as error:
            # A failed export writes no more rows, and its message has the reason. Otherwise it may still be writing.
            process.stdout.close()
            if process.wait() in (0, -signal.SIGPIPE):
                raise FleetError(f"the export of {work.ledger(part)}: {error}", 5) from error
        if process.wait() != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace").splitlines() or ["no message"]
            raise FleetError(said[-1].removeprefix("broadside: "), max(process.returncode, 1))
    if states != expected:
        raise FleetError(
            f"{work.ledger(part)} has {sum(states.values()):,} settled rows ({_counts(states)}), and its last"
            f" attempt had {sum(expected.values()):,} ({_counts(expected)}): it is an old copy or damaged:"
            " restore the newest one", 5)


def _counts(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in sorted(states.items())) or "none"


def dead(
    work: Work, broadside: str, part: int, column: str, registered: Optional[str]
) -> Iterator[pa.RecordBatch]:
    """The tokens of a part's rows, each with a 1 in the column `removed` or `kept`, as `broadside prune` decides.

    The limit `max_removed` applies to the whole list, not to each part. A kept row of a removed token exists only
    if that row was registered later, so without `registered` the kept rows are not read.
    """
    with tempfile.TemporaryDirectory() as directory:
        removed, kept = Path(directory, "removed.csv"), Path(directory, "kept.csv")
        run(broadside, "prune", "--ledger", str(work.ledger(part)),
            "--tokens", str(work.part_file(part)), "--token-column", column, "--format", "csv",
            "--output", str(kept), "--removed", str(removed), "--max-removed", "100",
            *(["--registered-column", registered] if registered else []))
        for path, counts in ((removed, (1, 0)), (kept, (0, 1))):
            if path == kept and not registered:
                return
            table = pa.csv.open_csv(
                path, read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=[column], column_types={column: pa.string()}))
            for batch in table:
                yield pa.RecordBatch.from_arrays(
                    [batch.column(0), *(pa.array([n] * batch.num_rows, pa.int32()) for n in counts)],
                    names=["token", "removed", "kept"])


def write_report(work: Work, broadside: str, parts: list[int], target: Path) -> None:
    """Merges the ledgers of all parts, and writes one report about the campaign.

    The merged ledger stays in the work directory, for `ledger find` and `prune`. If a part's ledger has
    changed, it is merged again.
    """
    merged, half = work.root / "merged", work.root / ".merged.new"
    note = work.run / "merged.json"
    made = {"ledgers": attempts(work, parts)}
    if read_json(note) != made or not (merged / "manifest.json").exists():
        for old in (half, merged):
            if old.exists():
                shutil.rmtree(old)
        run(broadside, "ledger", "merge", "--output", str(half),
            *(str(work.ledger(part)) for part in parts))
        half.rename(merged)
        write_json(note, made)
    run(broadside, "report", "--ledger", str(merged), "--output", str(target))
