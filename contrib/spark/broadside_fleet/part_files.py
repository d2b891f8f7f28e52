"""Writes the parts of a list, each once; after a crash, a part is complete or missing."""

from __future__ import annotations

import hashlib
import json
import pkgutil
from dataclasses import dataclass
from typing import Any, Iterable, Optional

import pyarrow as pa

from .errors import FleetError
from .files import COPY_BYTES, read_json, replacing, sha256_of, write_json
from .rows import BLANK, MALFORMED, header_line
from .tokens import normalized
from .work import Work

_IDENTITY = ("campaign_id", "parts", "columns", "filter", "registered_column", "campaign", "files")


@dataclass(frozen=True)
class Origin:
    """The origin of parts. Each part's record has the digest of its origin; a record with another digest is ignored.

    Attributes:
        digest: SHA-256 of campaign id, input, filter, columns and number of parts, in hexadecimal digits.
        parts: The number of parts.
        columns: The names in the header.
    """

    digest: str
    parts: int
    columns: tuple[str, ...]

    @staticmethod
    def of(pin: dict[str, Any]) -> Origin:
        """The origin of the parts of a pin."""
        text = json.dumps([pin[key] for key in _IDENTITY], sort_keys=True)
        return Origin(hashlib.sha256(text.encode()).hexdigest(), pin["parts"], tuple(pin["columns"]))


def write_part(work: Work, origin: Origin, part: int, lines: Iterable[str]) -> dict[str, Any]:
    """Writes a part's list, then its record.

    Two processes may write the same part at once: they write the same bytes, each under a temporary
    name.

    Args:
        work: The work directory.
        origin: The origin of the part.
        part: From 1 to the number of parts.
        lines: The lines in the part's order, with their line breaks.

    Returns:
        The record: `part`, `parts`, `rows`, `bytes` and `sha256` of the file, `content_sha256` of its
        decompressed contents, in hexadecimal digits; `sendable`: whether a row has a token; `origin`.
    """
    path = work.part_file(part)
    digest = hashlib.sha256()
    rows = 0
    sendable = False
    with replacing(path) as file:
        with pa.CompressedOutputStream(pa.PythonFile(_Unclosed(file), "w"), "zstd") as stream:
            buffer = bytearray(header_line(origin.columns).encode())
            for line in lines:
                rows += 1
                sendable = sendable or normalized(line.rstrip("\n").split(",", 1)[0]) is not None
                buffer += line.encode("utf-8", "surrogatepass")
                # Always the same sizes, because the compressor's output may depend on them.
                while len(buffer) >= COPY_BYTES:
                    digest.update(buffer[:COPY_BYTES])
                    stream.write(bytes(buffer[:COPY_BYTES]))
                    del buffer[:COPY_BYTES]
            digest.update(buffer)
            stream.write(bytes(buffer))
    record = {
        "part": part, "parts": origin.parts, "rows": rows, "bytes": path.stat().st_size,
        "sha256": sha256_of(path), "content_sha256": digest.hexdigest(),
        "sendable": sendable, "origin": origin.digest,
    }
    write_json(work.part_record(part), record)
    return record


class _Unclosed:
    """A file that Arrow writes to and does not close, so that it can be synced first."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.closed = False

    def write(self, data: bytes) -> int:
        return int(self._file.write(data))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True


def write_counts(work: Work, origin: Origin, counted: Iterable[tuple[int, str]]) -> None:
    """Records how many rows of the whole input have no token, in the place of part 0.

    Args:
        work: The work directory.
        origin: The origin of the counted rows.
        counted: Numbers of rows, each with `BLANK` or `MALFORMED`.
    """
    counts = {BLANK: 0, MALFORMED: 0}
    for rows, kind in counted:
        counts[kind] += rows
    write_json(work.part_record(0), {
        "rows": counts[BLANK], "malformed": counts[MALFORMED], "origin": origin.digest})


def read_record(work: Work, origin: Origin, part: int) -> Optional[dict[str, Any]]:
    """The record of a part; None if there is none, or if the part has another origin."""
    record = read_json(work.part_record(part))
    return record if record is not None and record.get("origin") == origin.digest else None


def missing_parts(work: Work, origin: Origin) -> list[int]:
    """The parts without a record, including part 0 (the counts of rows without a token)."""
    return [
        part for part in range(origin.parts + 1) if read_record(work, origin, part) is None]


def write_manifest(work: Work, pin: dict[str, Any], max_invalid: float) -> dict[str, Any]:
    """Judges the whole table, when all parts have records, and writes the manifest.

    Args:
        work: The work directory.
        pin: The pin of the parts.
        max_invalid: The most percent of rows that may have no token.

    Returns:
        `campaign_id`, `parts`, `columns`, `rows`, `rows_without_token` (blank ones), `origin` and
        `files`, the records of all parts in order.

    Raises:
        FleetError: Exit code 2 if no row has a token, or if more than `max_invalid` percent have none.
    """
    origin = Origin.of(pin)
    records = []
    for part in range(origin.parts + 1):
        record = read_record(work, origin, part)
        if record is None:
            raise FleetError(f"{work.part_record(part)}: was not written: start the freeze again", 5)
        records.append(record)
    rows = sum(record["rows"] for record in records[1:])
    blank, malformed = records[0]["rows"], records[0]["malformed"]
    if rows == malformed:
        raise FleetError("no row of the input has a token: correct --token-column or --filter")
    if (blank + malformed) * 100 > max_invalid * (rows + blank):
        raise FleetError(
            f"{blank + malformed:,} of {rows + blank:,} rows have no token ({blank:,} are blank), more than"
            f" the {max_invalid:g} percent of max-invalid: correct --token-column, or raise max-invalid in"
            " the campaign file and start the same command again")
    for record in records[1:]:
        if record["rows"] and not record["sendable"]:
            raise FleetError(
                f"--parts {origin.parts}: no row of part {record['part']} has a token, and Broadside sends no"
                f" such list: remove {work.frozen} and use fewer parts: nothing was sent")
    manifest = {
        "campaign_id": pin["campaign_id"], "parts": origin.parts, "columns": pin["columns"],
        "rows": rows, "rows_without_token": blank, "origin": origin.digest, "files": records[1:],
    }
    write_json(work.manifest, manifest)
    return manifest


def write_parts_list(work: Work, manifest: dict[str, Any]) -> None:
    """Writes the file for `part.sh`: in each line a part's number, the number of parts, its rows, SHA-256 and path."""
    with replacing(work.parts_list) as file:
        for record in manifest["files"]:
            file.write((
                f"{record['part']} {manifest['parts']} {record['rows']} {record['sha256']}"
                f" {work.part_file(record['part'])}\n").encode())
    with replacing(work.script) as file:
        file.write(pkgutil.get_data(__package__, "part.sh") or b"")
