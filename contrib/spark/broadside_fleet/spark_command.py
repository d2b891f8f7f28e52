"""`broadside_spark.py`: one campaign on Spark, from a table of devices to a table of outcomes."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Optional, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from . import freeze_spark
from .campaign import CampaignFile, read_campaign
from .driver import Driver
from .errors import FleetError
from .freeze import freeze
from .freeze_command import add_freeze_options, check_with_broadside, freeze_options
from .metrics import metrics_target
from .rows import check_columns
from .settle import Settlement, write_report
from .work import Work

DEFAULT_CANARY = 1000
"""The canary's number of rows if neither the command nor the campaign file has one."""


def arguments_of(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    """Reads the command line.

    Raises:
        FleetError: Exit code 2 if a value is out of range.
    """
    parser = argparse.ArgumentParser(
        prog="broadside_spark.py", description=__doc__, allow_abbrev=False)
    add_freeze_options(parser)
    parser.add_argument("--format", default="parquet", metavar="NAME",
                        help="format of the table: parquet, orc, or another of Spark's for files")
    parser.add_argument("--outcomes", metavar="TABLE", help="write each row's outcome here, as Parquet")
    parser.add_argument("--dead", metavar="TABLE", help="write the dead tokens here, as Parquet")
    parser.add_argument("--max-removed", type=float, default=50, metavar="P",
                        help="fail if more than P percent of the rows would be dead (default: 50)")
    parser.add_argument("--report", type=Path, metavar="FILE.html",
                        help="write one page about the whole campaign")
    parser.add_argument("--rate", type=float, metavar="N",
                        help="requests per second over all parts (default: the campaign file's)")
    parser.add_argument("--canary", type=int, metavar="N",
                        help="rows of the first part that go before all others; 0: none (default: the"
                        f" campaign file's, or {DEFAULT_CANARY:,})")
    parser.add_argument("--metrics", metavar="FILE|HOST:PORT",
                        help="Prometheus metrics of all parts: a file that is replaced every second, or an"
                        " HTTP endpoint; :PORT listens on loopback")
    parsed = parser.parse_args(arguments)
    if parsed.canary is not None and parsed.canary < 0:
        raise FleetError(f"--canary {parsed.canary}: is not a number of rows")
    return parsed


def ship_package(spark: SparkSession, directory: str) -> None:
    """Sends this package to the executors, which need no installation of it."""
    package = Path(__file__).parent
    if package.parent.is_dir():
        archive = shutil.make_archive(
            str(Path(directory, "broadside_fleet")), "zip", package.parent, package.name)
        spark.sparkContext.addPyFile(archive)


def command(arguments: Optional[Sequence[str]]) -> int:
    """Freezes, sends and settles the campaign of the arguments; returns 0, or 6."""
    parsed = arguments_of(arguments)
    metrics = None if parsed.metrics is None else metrics_target(parsed.metrics)
    campaign = read_campaign(parsed.campaign, parsed.broadside)
    rate = parsed.rate if parsed.rate is not None else campaign.rate
    if rate is not None and not 1 <= rate <= 1e9:
        # No part can have a share below 1.
        raise FleetError(f"--rate {rate:g}: is not a number from 1 to 1,000,000,000")
    spark = SparkSession.builder.appName("broadside").getOrCreate()
    if spark.conf.get("spark.speculation", "false").lower() == "true":
        raise FleetError(
            "spark.speculation is true: a second attempt at a part would only wait for its ledger: set it"
            " to false")
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        ship_package(spark, directory)
        options = freeze_options(parsed)
        table = freeze_spark.read_table(spark, parsed.input, parsed.format)
        schema = pa.schema(to_arrow_schema(table.schema))
        columns = check_columns(schema, options.columns(campaign))
        work = Work(parsed.work.resolve())
        work.make()
        with work.lock():
            manifest = freeze(
                work, options, campaign, lambda: freeze_spark.input_files(spark, table), columns,
                lambda pin, missing: freeze_spark.make_parts(work, table, pin, missing))
            check_with_broadside(work, manifest, parsed.broadside, campaign.max_invalid)
            empty = [file["part"] for file in manifest["files"] if not file["rows"]]
            if parsed.report and empty:
                raise FleetError(
                    f"--report: part {empty[0]} has no rows, and a report needs a ledger of each part: omit it,"
                    " or use fewer parts for so short a list")
            canary = parsed.canary if parsed.canary is not None else (
                campaign.canary if campaign.canary is not None else DEFAULT_CANARY)
            if campaign.waits:
                _check_waves(campaign, canary, manifest["parts"], spark.sparkContext.defaultParallelism)
            driver = Driver(spark, work, parsed.broadside, rate, canary, metrics)
            code = driver.run()
            settlement = Settlement(spark, work, parsed.broadside)
            if parsed.outcomes:
                settlement.write_outcomes(parsed.outcomes)
            if parsed.dead:
                settlement.write_dead(parsed.dead, parsed.registered_column, parsed.max_removed)
            if parsed.report:
                write_report(work, parsed.broadside, settlement.parts, parsed.report)
    print(f"campaign {manifest['campaign_id']}: finished, {manifest['rows']:,} rows in"
          f" {len(driver.parts):,} parts, {manifest['rows_without_token']:,} rows without a token")
    return code


def _check_waves(campaign: CampaignFile, canary: int, parts: int, cores: int) -> None:
    """Refuses options that would move rows to another wave; warns if parts would wait for each other."""
    late = campaign.options.get("late", "send")
    if canary and late != "send":
        raise FleetError(
            f"--canary {canary}: does not go with late: {late}, as the other parts begin after the canary's wave:"
            " add --canary 0, or remove late")
    if parts > cores:
        print(f"broadside_spark: warning: --parts {parts}: each part waits for its waves on a core, and Spark has"
              f" {cores}: parts that begin later send rows of earlier waves late", file=sys.stderr)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns its exit code."""
    try:
        return command(arguments)
    except FleetError as error:
        print(f"broadside_spark: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"broadside_spark: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return 5
