"""Sends one part, from its frozen list to its finished ledger, on the machine that a scheduler chose."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Optional

from . import child as children
from .errors import FleetError
from .exit_codes import Decision, decide
from .files import read_json, write_json
from .rate import read_share
from .work import Work

ATTEMPTS_LIMIT = 5
"""The most attempts of one task that end with rows remaining or with an error."""

WAIT_SECONDS_LIMIT = 600
"""Seconds that a task waits until the process of an earlier attempt has released the ledger."""

WAIT_PAUSE_SECONDS_LIMIT = 15
"""The longest pause, in seconds, between two tries to use the ledger; each try reads the part's list."""

LOG_BYTES_LIMIT = 64 << 20
"""The most bytes of a part's log: if it is longer, the next attempt begins a new log."""

LINE_BYTES_LIMIT = 64 << 10
"""The most bytes of a line of progress; longer lines are ignored."""

POLL_SECONDS = 0.2
STATUS_SECONDS = 1.0


@dataclass(frozen=True)
class Sending:
    """Settings that the attempts of all parts share.

    Attributes:
        work: The shared directory.
        broadside: The command.
        rated: Whether each part waits for its share of a rate.
        canary: Rows of one part that go first; 0: no canary.
        canary_part: The part with the canary; None: it has passed.
        start: Identifies this start of the driver; files of an earlier start are ignored.
    """

    work: Work
    broadside: str
    rated: bool
    canary: int
    canary_part: Optional[int]
    start: str

    @property
    def rate_file(self) -> Any:
        """The division of the rate."""
        return self.work.run / "rate.json"

    @property
    def cancel_file(self) -> Any:
        """Why the campaign ends early, if it does."""
        return self.work.run / "cancel.json"

    @property
    def start_file(self) -> Any:
        """The newest start of the driver: tasks of earlier starts end, because the rate is divided without them."""
        return self.work.run / "start.json"

    def cancelled(self) -> Optional[dict[str, Any]]:
        """The cause for which this start of the campaign ended early: `start`, `part`, `code`, `message`; else None."""
        newest = read_json(self.start_file, durable=False)
        if newest is not None and newest["start"] != self.start:
            return {**newest, "part": "all", "code": 7, "message": "the driver was started again"}
        cause = read_json(self.cancel_file)
        return cause if cause is not None and cause["start"] == self.start else None


class PartAttempt:
    """The attempts at one part by one task."""

    def __init__(self, sending: Sending, part: int) -> None:
        self.sending = sending
        self.part = part
        self.work = sending.work
        self.manifest = self.work.read_manifest()
        self.applied = 0
        self.share: Optional[int] = None
        self.progress: dict[str, Any] = {}
        self.message = ""

    def run(self) -> dict[str, Any]:
        """Sends the part.

        Returns:
            `part`, `code` (0 or 6) and `summary`, Broadside's; also in the part's result file.

        Raises:
            FleetError: With the exit code of the last attempt. The cause is in the cancel file if no
                other part should be sent either.
        """
        failures = 0
        waited_since: Optional[float] = None
        waits = 0
        self._stop_if_cancelled()
        while True:
            if self.sending.rated:
                self._await_share()
            code = self._attempt()
            decision = decide(code)
            if decision is Decision.FINISHED:
                return self._finish(code)
            if decision is Decision.CANCEL:
                self._cancel(code, self.message)
                raise FleetError(f"part {self.part}: {self.message}", code)
            self._stop_if_cancelled()
            if decision is Decision.WAIT:
                now = time.monotonic()
                waited_since = now if waited_since is None else waited_since
                if now - waited_since > WAIT_SECONDS_LIMIT:
                    raise FleetError(f"part {self.part}: {self.message}", code)
                self._report("waiting", self.message)
                waits += 1
                time.sleep(min(2.0**waits / 2, WAIT_PAUSE_SECONDS_LIMIT))
                continue
            waited_since = None
            waits = 0
            failures += 1
            if failures >= ATTEMPTS_LIMIT:
                raise FleetError(f"part {self.part}: {self.message}", max(code, 1))
            time.sleep(min(2.0**failures, 60))

    def _arguments(self) -> list[str]:
        arguments = [
            "env", f"BROADSIDE={self.sending.broadside}",
            "sh", str(self.work.script), str(self.part), str(self.manifest["parts"]),
            "--progress", "json", "--summary", str(self.work.state("summary", self.part)),
        ]
        if self.share is not None:
            arguments += ["--rate", str(self.share)]
        if self.sending.canary and self.part == self.sending.canary_part:
            arguments += ["--canary", str(self.sending.canary)]
        elif self.sending.canary:
            arguments.append("--assume-canary")
        return arguments

    def _attempt(self) -> int:
        log = self.work.state("log", self.part)
        self.message = "it ended without a message"
        too_long = log.exists() and log.stat().st_size > LOG_BYTES_LIMIT
        with open(log, "wb" if too_long else "ab") as errors, open(log, "rb") as reader:
            reader.seek(0, os.SEEK_END)
            process = children.start(self._arguments(), errors)
            reported = float("-inf")
            rest = b""
            try:
                while True:
                    code = process.poll()
                    rest = self._read(rest + reader.read())
                    now = time.monotonic()
                    if code is not None:
                        # A shell that does not find the script may end with 2, which would end the campaign.
                        gone = code == 2 and not os.access(self.work.script, os.R_OK)
                        return 5 if gone else code
                    if now - reported >= STATUS_SECONDS:
                        reported = now
                        if self.sending.cancelled():
                            children.end(process)
                            continue
                        self._apply_share()
                        self._report("running")
                    time.sleep(POLL_SECONDS)
            finally:
                # An interrupted task must not leave a process behind.
                children.end(process)

    def _read(self, data: bytes) -> bytes:
        """Reads complete lines of progress and messages; returns the incomplete last line."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            if text.startswith("{"):
                try:
                    self.progress = json.loads(text)
                except ValueError:
                    continue
            elif text.startswith("broadside: "):
                self.message = text.removeprefix("broadside: ")
        return rest if len(rest) <= LINE_BYTES_LIMIT else b""

    def _report(self, state: str, reason: str = "") -> None:
        write_json(self.work.state("status", self.part), {
            "start": self.sending.start, "part": self.part, "state": state, "applied": self.applied,
            "progress": self.progress, "process": os.getpid(), "reason": reason,
        }, durable=False)

    def _await_share(self) -> None:
        while (found := read_share(self.sending.rate_file, self.part)) is None:
            self._stop_if_cancelled()
            self._report("waiting")
            time.sleep(STATUS_SECONDS)
        self.applied, self.share = found

    def _apply_share(self) -> None:
        """Passes a new share to the run. While no run listens, the caller tries again."""
        if not self.sending.rated:
            return
        found = read_share(self.sending.rate_file, self.part)
        if found is None:
            return
        sequence, share = found
        if share != self.share:
            done = subprocess.run(
                [self.sending.broadside, "control", "--ledger", str(self.work.ledger(self.part)),
                 "rate", str(share)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode != 0:
                return
        self.applied, self.share = sequence, share

    def _finish(self, code: int) -> dict[str, Any]:
        result = {
            "part": self.part, "code": code, "campaign_id": self.manifest["campaign_id"],
            "ledger": self.work.ledger_attempt(self.part),
            "summary": read_json(self.work.state("summary", self.part)) or {},
        }
        write_json(self.work.state("result", self.part), result)
        self._report("ended")
        return result

    def _cancel(self, code: int, message: str) -> None:
        if not self.sending.cancelled():
            write_json(self.sending.cancel_file, {
                "start": self.sending.start, "part": self.part, "code": code, "message": message})
        self._report("ended")

    def _stop_if_cancelled(self) -> None:
        cause = self.sending.cancelled()
        if cause:
            if cause["start"] == self.sending.start:
                self._report("ended")
            raise FleetError(f"part {cause['part']}: {cause['message']}", int(cause["code"]))
