"""The driver of a send: it starts the canary, then all other parts, and divides the rate among them."""

from __future__ import annotations

import dataclasses
import secrets
import sys
import time
from typing import Any, Iterable, Iterator, Optional, Union

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from .attempt import PartAttempt, Sending
from .errors import FleetError, task_message
from .files import read_json, write_json
from .metrics import MetricsEndpoint, MetricsFile, metrics_text
from .progress import progress_line
from .rate import RateDivider
from .work import Work

CANCEL_SECONDS_LIMIT = 60
"""Seconds that parts may take to stop before the job is cancelled: above `--request-timeout`."""


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
        """Whether some of the job's tasks are still running."""
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
            canary: Rows of one part that go first; 0: none.
            metrics: Receives the numbers of the whole campaign each second.
        """
        self.spark = spark
        self.work = work
        self.manifest = work.read_manifest()
        self.parts = [file["part"] for file in self.manifest["files"] if file["rows"]]
        self.sending = Sending(
            work=work, broadside=broadside, rated=rate is not None, canary=canary, canary_part=None,
            start=secrets.token_hex(8))
        self.metrics = metrics
        self.labels = work.read_labels()
        self.divider = None if rate is None else RateDivider(rate)
        self.sending.rate_file.unlink(missing_ok=True)
        write_json(self.sending.start_file, {"start": self.sending.start})
        self.jobs: list[SparkJob] = []
        self.told: dict[int, str] = {}

    def run(self) -> int:
        """Sends, and prints a line per second on standard error.

        Returns:
            0, or 6 if rows are failed or unknown.

        Raises:
            FleetError: With the exit code and the last message of the part that ended the campaign.
        """
        results = self.work.read_results(self.manifest)
        waiting = [part for part in self.parts if part not in results]
        try:
            while True:
                is_running = any(job.is_running for job in self.jobs)
                statuses = self._turn(results)
                self._stop_on_error()
                if waiting and (not self.sending.canary or canary_passed(statuses, results)):
                    self._start(waiting, None)
                    waiting = []
                elif waiting and not is_running:
                    # The first part, or the part after one whose canary proved nothing.
                    self._start(waiting[:1], waiting[0])
                    del waiting[0]
                elif not is_running:
                    break
                time.sleep(1)
        except BaseException:
            for job in self.jobs:
                if job.is_running:
                    job.cancel()
            raise
        results = self.work.read_results(self.manifest)
        self._tell(results, {})
        missing = [part for part in self.parts if part not in results]
        if missing:
            raise FleetError(f"part {missing[0]} is not finished: start the same command again", 3)
        return 6 if any(result["code"] == 6 for result in results.values()) else 0

    def _start(self, parts: list[int], canary_part: Optional[int]) -> None:
        sending = dataclasses.replace(self.sending, canary_part=canary_part)
        self.jobs.append(SparkJob(self.spark, sending, parts))

    def _turn(self, results: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Reads what parts report, divides the rate, prints a line."""
        statuses = {}
        for part in self.parts:
            if part in results:
                continue
            status = read_json(self.work.state("status", part), durable=False)
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
        for part, status in statuses.items():
            reason = status.get("reason", "")
            if reason and reason != self.told.get(part):
                print(f"broadside_spark: part {part} waits: {reason}", file=sys.stderr, flush=True)
            self.told[part] = reason
        if self.metrics is not None:
            rate = None if self.divider is None else self.divider.total
            self.metrics.write(metrics_text(self.manifest, results, statuses, rate, self.labels))

    def _stop_on_error(self) -> None:
        cause = self.sending.cancelled()
        if cause:
            # The other parts read the same file, and stop cleanly.
            deadline = time.monotonic() + CANCEL_SECONDS_LIMIT
            while any(job.is_running for job in self.jobs) and time.monotonic() < deadline:
                time.sleep(0.2)
            raise FleetError(f"part {cause['part']}: {cause['message']}", int(cause["code"]))
        for job in self.jobs:
            if job.error is not None:
                raise FleetError(f"{task_message(job.error)}: start the same command again to continue", 1)


def canary_passed(statuses: dict[int, Any], results: dict[int, Any]) -> bool:
    """Whether a part reports that its canary has passed, and APNs has accepted one of its rows.

    A canary whose rows are all suppressed, or all have dead tokens, also passes, but proves nothing.

    Args:
        statuses: Reports of running parts.
        results: Reports of parts that have ended.
    """
    told: Iterable[dict[str, Any]] = [
        *(status["progress"] for status in statuses.values()),
        *(result["summary"] for result in results.values())]
    return any(
        (one.get("guards") or {}).get("canary") == "passed" and (one.get("accepted") or 0) > 0
        for one in told)
