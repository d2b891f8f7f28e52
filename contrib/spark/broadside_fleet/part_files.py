"""Writes the parts of a list: each once, complete or not at all."""

from __future__ import annotations

import hashlib
from typing import Any, Iterable, Sequence

import pyarrow as pa

from .errors import FleetError
from .files import COPY_BYTES, read_json, replacing, sha256_of, write_json
from .rows import header_line
from .work import Work


def write_part(
    work: Work, part: int, parts: int, columns: Sequence[str], lines: Iterable[str]
) -> dict[str, Any]:
    """Writes a part's list, then its record.

    Two processes may write the same part at once: they write the same bytes, each under a temporary
    name.

    Args:
        work: Where.
        part: From 1 to `parts`.
        parts: How many parts there are.
        columns: The header.
        lines: In the part's order, with their line breaks.

    Returns:
        The record: `part`, `parts`, `rows`, `bytes` and `sha256` of the file, `content_sha256` of
        what it holds decompressed, in hexadecimal digits.
    """
    path = work.part_file(part)
    digest = hashlib.sha256()
    rows = 0
    with replacing(path) as file:
        with pa.CompressedOutputStream(pa.PythonFile(_Unclosed(file), "w"), "zstd") as stream:
            buffer = bytearray(header_line(columns).encode())
            for line in lines:
                rows += 1
                buffer += line.encode("utf-8", "surrogatepass")
                # Always the same amounts: what a compressor writes may depend on them.
                while len(buffer) >= COPY_BYTES:
                    digest.update(buffer[:COPY_BYTES])
                    stream.write(bytes(buffer[:COPY_BYTES]))
                    del buffer[:COPY_BYTES]
            digest.update(buffer)
            stream.write(bytes(buffer))
    record = {
        "part": part, "parts": parts, "rows": rows, "bytes": path.stat().st_size,
        "sha256": sha256_of(path), "content_sha256": digest.hexdigest(),
    }
    write_json(work.part_record(part), record)
    return record


class _Unclosed:
    """A file that Arrow may write to but not close: it is synced first."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.closed = False

    def write(self, data: bytes) -> int:
        return int(self._file.write(data))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True


def missing_parts(work: Work, parts: int) -> list[int]:
    """Parts without a record, part 0 (the count of rows without a token) among them."""
    return [part for part in range(parts + 1) if read_json(work.part_record(part)) is None]


def write_manifest(work: Work, pin: dict[str, Any]) -> dict[str, Any]:
    """Writes the manifest, when all parts have records.

    Args:
        work: Where.
        pin: The campaign's id, the number of parts and the columns.

    Returns:
        `campaign_id`, `parts`, `columns`, `rows`, `rows_without_token` and `files`, the records of all
        parts in order.

    Raises:
        FleetError: Exit code 2 if no row has a token, or if more than `--max-invalid` percent have none.
    """
    records = []
    for part in range(pin["parts"] + 1):
        record = read_json(work.part_record(part))
        if record is None:
            raise FleetError(f"{work.part_record(part)}: was not written: start the freeze again", 5)
        records.append(record)
    rows = sum(record["rows"] for record in records[1:])
    blank = records[0]["rows"]
    if rows == 0:
        raise FleetError("no row of the input has a token: correct --token-column or --filter")
    if blank * 100 > pin["max_invalid"] * (rows + blank):
        raise FleetError(
            f"{blank:,} of {rows + blank:,} rows have no token, more than --max-invalid"
            f" {pin['max_invalid']} percent: correct --token-column")
    manifest = {
        "campaign_id": pin["campaign_id"], "parts": pin["parts"], "columns": pin["columns"],
        "rows": rows, "rows_without_token": blank, "files": records[1:],
    }
    write_json(work.manifest, manifest)
    return manifest
