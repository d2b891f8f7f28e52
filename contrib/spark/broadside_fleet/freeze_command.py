"""`broadside-freeze`: the parts of a list, made on one machine without Spark."""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional, Sequence

import pyarrow as pa

from .campaign import read_campaign, run
from .errors import FleetError
from .freeze import FreezeOptions, freeze, local_files
from .freeze_arrow import ArrowTable, make_parts
from .rows import check_columns
from .tokens import normalized
from .work import Work

SAMPLE_ROWS = 1000
"""Rows that Broadside reads before a campaign begins."""

CELL_LIMIT = 1 << 20
"""The most characters of a cell in them: the most bytes of a row."""


def add_freeze_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that both commands share."""
    parser.add_argument("--input", required=True, metavar="TABLE", help="the table of devices")
    parser.add_argument("--token-column", default="token", metavar="NAME",
                        help="column that holds the token (default: token)")
    parser.add_argument("--campaign", required=True, type=Path, metavar="FILE",
                        help="campaign file, as for broadside send")
    parser.add_argument("--parts", required=True, type=int, metavar="N",
                        help="number of parts, at most 1023")
    parser.add_argument("--work", required=True, type=Path, metavar="DIR",
                        help="directory for parts and ledgers, on a file system of all machines")
    parser.add_argument("--filter", metavar="SQL", help="only rows for which this condition holds")
    parser.add_argument("--registered-column", metavar="NAME",
                        help="column with the time of registration, as for broadside prune")
    parser.add_argument("--broadside", default="broadside", metavar="PATH",
                        help="the command, on each machine (default: broadside)")


def freeze_options(arguments: argparse.Namespace) -> FreezeOptions:
    """The freeze options from the shared arguments."""
    return FreezeOptions(
        input=arguments.input, token_column=arguments.token_column, parts=arguments.parts,
        filter=arguments.filter, registered_column=arguments.registered_column)


def check_with_broadside(
    work: Work, manifest: dict[str, Any], broadside: str, max_invalid: float
) -> None:
    """Lets Broadside read some rows of a part with payloads and credentials, without connecting.

    The freeze has counted rows without a token in the whole table. The first other rows of a part are a random
    sample, because a part is sorted by a hash. If payloads can't be made for too many of them, this is exit code 2.

    Args:
        work: The work directory.
        manifest: The freeze's.
        broadside: The command.
        max_invalid: The most percent of rows that may be invalid.

    Raises:
        FleetError: With Broadside's message and exit code.
    """
    part = next(file["part"] for file in manifest["files"] if file["rows"])
    csv.field_size_limit(CELL_LIMIT)
    with tempfile.TemporaryDirectory(prefix=".sample.", dir=work.frozen) as directory:
        sample = Path(directory, f"sample-of-part-{part:04d}.csv")
        with pa.input_stream(str(work.part_file(part)), compression="zstd") as stream, \
                sample.open("w", newline="", errors="surrogatepass") as file:
            rows = csv.reader(io.TextIOWrapper(stream, "utf-8", "surrogatepass", newline=""))
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(next(rows))
            with_token = (row for row in rows if normalized(row[0]) is not None)
            writer.writerows(itertools.islice(with_token, SAMPLE_ROWS))
        run(broadside, "send", "--campaign", str(work.campaign), "--tokens", str(sample), "--format", "csv",
            "--part", f"{part}/{manifest['parts']}", "--max-invalid", f"{max_invalid:g}", "--dry-run")


def command(arguments: Optional[Sequence[str]]) -> None:
    """Freezes the list that the arguments name."""
    parser = argparse.ArgumentParser(prog="broadside-freeze", description=__doc__, allow_abbrev=False)
    add_freeze_options(parser)
    parser.add_argument("--format", choices=("parquet", "orc"), default="parquet",
                        help="format of the table (default: parquet)")
    parsed = parser.parse_args(arguments)
    options = freeze_options(parsed)
    campaign = read_campaign(parsed.campaign, parsed.broadside)
    source = Path(parsed.input)
    table = ArrowTable([file["path"] for file in local_files(source)], parsed.format)
    columns = check_columns(table.schema, options.columns(campaign))
    work = Work(parsed.work.resolve())
    work.make()
    with work.lock():
        manifest = freeze(
            work, options, campaign, lambda: local_files(source), columns,
            lambda pin, missing: make_parts(work, table, pin, missing))
        check_with_broadside(work, manifest, parsed.broadside, campaign.max_invalid)
    print(f"campaign {manifest['campaign_id']}: {manifest['rows']:,} rows in {manifest['parts']:,} parts,"
          f" {manifest['rows_without_token']:,} without a token: {work.frozen}")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns its exit code."""
    try:
        command(arguments)
        return 0
    except FleetError as error:
        print(f"broadside-freeze: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"broadside-freeze: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return 5
