"""Rows of a table as lines of a CSV list: the same bytes with every engine that reads the table."""

from __future__ import annotations

import re
from typing import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .errors import FleetError
from .tokens import is_blank, normalized, part_of, token_hash

LINES_SCHEMA = pa.schema([("part", pa.int32()), ("hash", pa.int64()), ("line", pa.string())])
"""A row of a part: the hash of its token, and its line. In part 0: `hash` is the number of rows of the kind `line`."""

BLANK = "blank"
"""Rows with a blank token, which are in no part."""

MALFORMED = "malformed"
"""Rows of a part whose token is not valid."""

_QUOTED = re.compile(r'["\r\n,;]|^[ \t]|[ \t]$')


def header_line(columns: Sequence[str]) -> str:
    """The header of each part."""
    return ",".join(columns) + "\n"


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def check_columns(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """The names of these columns in the table.

    Args:
        schema: The schema of the table.
        columns: The columns as options and templates name them; the token's column is the first.

    Raises:
        FleetError: Exit code 2 if a column is missing, ambiguous, or of a type that has more than one
            form as text.
    """
    found = []
    for name in columns:
        exact = [field for field in schema if field.name == name]
        fields = exact or [field for field in schema if field.name.lower() == name.lower()]
        if len(fields) != 1:
            problem = "is not in the input" if not fields else "is in the input more than once"
            raise FleetError(
                f"column '{name}' {problem}: it has {', '.join(schema.names[:20])}")
        kind = fields[0].type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_text = (
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
            or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
            or pa.types.is_date32(kind)
        )
        if not is_text:
            raise FleetError(
                f"column '{name}' is of type {kind}: cast it to a string in the input, so that its"
                " text is the one that you want")
        if _QUOTED.search(fields[0].name):
            raise FleetError(f"column '{name}': a name with a separator or quote can't be used")
        found.append(fields[0].name)
    return found


def lines_of(batch: pa.RecordBatch, parts: int, wanted: frozenset[int]) -> pa.RecordBatch:
    """A batch of rows as lines with their parts.

    Args:
        batch: The token's column first, then the others, in the header's order.
        parts: The number of parts of the list.
        wanted: The parts that are still missing; with 0, all rows without a token are counted.

    Returns:
        Rows of `LINES_SCHEMA`, in the batch's order.

    Raises:
        FleetError: Exit code 2 if a text is not UTF-8.
    """
    cells = []
    for name, column in zip(batch.schema.names, batch.columns):
        try:
            cells.append(pc.fill_null(pc.cast(column, pa.string()), "").to_pylist())
        except UnicodeDecodeError as error:
            raise FleetError(f"column '{name}': a text is not UTF-8: correct it in the input") from error
    out_parts: list[int] = []
    hashes: list[int] = []
    lines: list[str] = []
    counts = {BLANK: 0, MALFORMED: 0}
    for row, text in enumerate(cells[0]):
        token = normalized(text)
        if token is None:
            if is_blank(text):
                counts[BLANK] += 1
                continue
            counts[MALFORMED] += 1
            token = text
        value = token_hash(token)
        part = part_of(value, parts)
        if part not in wanted:
            continue
        out_parts.append(part)
        hashes.append(value)
        lines.append(
            ",".join([_cell(token), *(_cell(column[row]) for column in cells[1:])]) + "\n")
    for kind, count in counts.items() if 0 in wanted else ():
        if count:
            out_parts.append(0)
            hashes.append(count)
            lines.append(kind)
    return pa.RecordBatch.from_arrays(
        [pa.array(out_parts, pa.int32()), pa.array(hashes, pa.int64()), pa.array(lines, pa.string())],
        schema=LINES_SCHEMA)
