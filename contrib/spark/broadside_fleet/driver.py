"""The driver's share of a send: the canary first, then all other parts, and the rate among them."""

from __future__ import annotations

import secrets
import sys
import time
from typing import Any, Iterator, Optional, Union

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from .attempt import PartAttempt, Sending
from .errors import FleetError
from .files import read_json
from .metrics import MetricsEndpoint, MetricsFile, metrics_text
from .progress import progress_line
from .rate import RateDivider
from .work import Work

CANCEL_SECONDS_LIMIT = 60
"""How long parts may take to end in order before the job is cancelled: above `--request-timeout`."""


class SparkJob:
    """A Spark job with a task for each of some parts."""

    def __init__(self, spark: SparkSession, sending: Sending, parts: list[int]) -> None:
        self.parts = parts
        self.error: Optional[BaseException] = None
        self.group = f"broadside-{sending.start}-{parts[0]}"
        self._spark = spark

        def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    result = PartAttempt(sending, parts[index]).run()
                    yield pa.RecordBatch.from_pydict({
                        "part": pa.array([result["part"]], pa.int32()),
                        "code": pa.array([result["code"]], pa.int32())})

        def collect() -> None:
            spark.sparkContext.setJobGroup(
                self.group, f"Broadside: {len(parts)} parts", interruptOnCancel=True)
            try:
                (spark.range(0, len(parts), 1, len(parts))
                 .mapInArrow(send, "part int, code int").collect())
            except BaseException as error:  # Of any kind: another thread reports it.
                self.error = error

        self._thread = InheritableThread(target=collect, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether its tasks have not all ended."""
        return bool(self._thread.is_alive())

    def cancel(self) -> None:
        """Ends the tasks that are left."""
        self._spark.sparkContext.cancelJobGroup(self.group)
        self._thread.join(CANCEL_SECONDS_LIMIT)


class Driver:
    """Sends the parts of a frozen list that are not finished."""

    def __init__(
        self, spark: SparkSession, work: Work, broadside: str, rate: Optional[float], canary: int,
        metrics: Union[MetricsFile, MetricsEndpoint, None] = None
    ) -> None:
        """Prepares a start.

        Args:
            spark: Where tasks run.
            work: The shared directory; the caller holds its lock.
            broadside: The command, on each machine.
            rate: Requests per second in all; None: unlimited.
            canary: Rows of the first part that go first; 0: none.
            metrics: Where the whole campaign's numbers go each second.
        """
        self.spark = spark
        self.work = work
        self.manifest = work.read_manifest()
        self.parts = [file["part"] for file in self.manifest["files"] if file["rows"]]
        self.sending = Sending(
            work=work, broadside=broadside, rated=rate is not None, canary=canary,
            canary_part=self.parts[0], start=secrets.token_hex(8))
        self.metrics = metrics
        self.divider = None if rate is None else RateDivider(rate)
        self.sending.rate_file.unlink(missing_ok=True)
        self.jobs: list[SparkJob] = []

    def results(self) -> dict[int, dict[str, Any]]:
        """The results of finished parts."""
        found = {}
        for part in self.parts:
            result = read_json(self.work.state("result", part))
            if result is not None and result["campaign_id"] == self.manifest["campaign_id"]:
                found[part] = result
        return found

    def run(self) -> int:
        """Sends, and prints a line per second on standard error.

        Returns:
            0, or 6 if rows are failed or unknown.

        Raises:
            FleetError: With the exit code and the last message of the part that ended the campaign.
        """
        results = self.results()
        waiting = [part for part in self.parts if part not in results]
        first = self.sending.canary_part
        if waiting and self.sending.canary and first in waiting:
            self.jobs.append(SparkJob(self.spark, self.sending, [first]))
            waiting.remove(first)
        elif waiting:
            self.jobs.append(SparkJob(self.spark, self.sending, waiting))
            waiting = []
        try:
            while waiting or any(job.is_running for job in self.jobs):
                time.sleep(1)
                statuses = self._turn(results)
                if waiting and self._canary_passed(statuses, results):
                    self.jobs.append(SparkJob(self.spark, self.sending, waiting))
                    waiting = []
                self._stop_on_error(statuses)
                if waiting and not any(job.is_running for job in self.jobs) and not (
                    self._canary_passed(statuses, self.results())
                ):
                    raise FleetError(
                        f"part {first} has ended and its canary has not passed: see"
                        f" {self.work.state('log', first)}", 4)
            self._stop_on_error({})
        except BaseException:
            for job in self.jobs:
                if job.is_running:
                    job.cancel()
            raise
        results = self.results()
        self._tell(results, {})
        missing = [part for part in self.parts if part not in results]
        if missing:
            raise FleetError(f"part {missing[0]} is not finished: start the same command again", 3)
        return 6 if any(result["code"] == 6 for result in results.values()) else 0

    def _turn(self, results: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Reads what parts report, divides the rate, prints a line."""
        statuses = {}
        for part in self.parts:
            if part in results:
                continue
            status = read_json(self.work.state("status", part))
            if status is None or status["start"] != self.sending.start:
                continue
            result = read_json(self.work.state("result", part)) if status["state"] == "ended" else None
            if result is not None:
                results[part] = result
            else:
                statuses[part] = status
        if self.divider:
            division = self.divider.divide({
                part: int(status["applied"]) for part, status in statuses.items()
                if status["state"] != "ended"})
            self.divider.write(self.sending.rate_file, division)
        self._tell(results, statuses)
        return statuses

    def _tell(self, results: dict[int, Any], statuses: dict[int, Any]) -> None:
        print(progress_line(self.manifest, results.values(), statuses.values()), file=sys.stderr,
              flush=True)
        if self.metrics is not None:
            rate = None if self.divider is None else self.divider.total
            self.metrics.write(metrics_text(self.manifest, results, statuses, rate))

    def _canary_passed(self, statuses: dict[int, Any], results: dict[int, Any]) -> bool:
        return canary_passed(self.sending.canary_part, statuses, results)

    def _stop_on_error(self, statuses: dict[int, Any]) -> None:
        cause = self.sending.cancelled()
        if cause:
            # The other parts see the same file, and end in order.
            deadline = time.monotonic() + CANCEL_SECONDS_LIMIT
            while any(job.is_running for job in self.jobs) and time.monotonic() < deadline:
                time.sleep(0.2)
            raise FleetError(f"part {cause['part']}: {cause['message']}", int(cause["code"]))
        for job in self.jobs:
            if job.error is not None:
                lines = [line.strip() for line in str(job.error).splitlines()]
                told = [line for line in lines if "FleetError: " in line]
                message = told[-1].split("FleetError: ", 1)[1] if told else lines[0]
                raise FleetError(f"{message}: start the same command again to continue", 1)


def canary_passed(part: int, statuses: dict[int, Any], results: dict[int, Any]) -> bool:
    """Whether the part with the canary says that it has passed: other parts wait for that word.

    Args:
        part: The part with the canary.
        statuses: What running parts say.
        results: What parts that have ended said.
    """
    told = statuses[part]["progress"] if part in statuses else (
        results[part]["summary"] if part in results else {})
    return bool((told.get("guards") or {}).get("canary") == "passed")
