"""The directory that all machines of a campaign share: its files, and its lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional

from .errors import FleetError
from .files import read_json


@dataclass(frozen=True)
class Work:
    """Paths below `--work`.

    Attributes:
        root: The directory, absolute: the same on all machines.
    """

    root: Path

    @property
    def frozen(self) -> Path:
        """The parts of the list, and their origin."""
        return self.root / "frozen"

    @property
    def pin(self) -> Path:
        """The options of the first start: campaign id, number of parts, input."""
        return self.frozen / "pin.json"

    @property
    def manifest(self) -> Path:
        """All parts with rows and SHA-256. This file is written last, when the freeze is complete."""
        return self.frozen / "manifest.json"

    @property
    def campaign(self) -> Path:
        """The campaign file that each part uses."""
        return self.frozen / "campaign.json"

    @property
    def parts_list(self) -> Path:
        """The parts, for `part.sh`."""
        return self.frozen / "parts.txt"

    @property
    def labels(self) -> Path:
        """The campaign's labels for `part.sh`, one per line."""
        return self.frozen / "labels.txt"

    def read_labels(self) -> dict[str, str]:
        """The campaign's labels by key."""
        lines = self.labels.read_text(encoding="utf-8").split("\n")
        return {key: value for key, equals, value in (line.partition("=") for line in lines) if equals}

    @property
    def script(self) -> Path:
        """The script that sends one part; every scheduler starts it."""
        return self.frozen / "part.sh"

    @property
    def run(self) -> Path:
        """The state of parts while they are sent."""
        return self.root / "run"

    def part_file(self, part: int) -> Path:
        """A part's list."""
        return self.frozen / f"part-{part:04d}.csv.zst"

    def part_record(self, part: int) -> Path:
        """Rows and SHA-256 of a part; part 0 counts the rows without a token."""
        return self.frozen / f"part-{part:04d}.json"

    def ledger(self, part: int) -> Path:
        """A part's ledger."""
        return self.root / "ledgers" / str(part)

    def ledger_attempt(self, part: int) -> Optional[str]:
        """An identifier of the last attempt of a part's ledger, which every attempt changes; None: no ledger."""
        try:
            return (self.ledger(part) / "epoch").read_text()
        except FileNotFoundError:
            return None

    def read_results(self, manifest: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """The results of finished parts whose ledger has had no later attempt."""
        found = {}
        for file in manifest["files"]:
            part = file["part"]
            result = read_json(self.state("result", part))
            if result is not None and result["campaign_id"] == manifest["campaign_id"] and (
                result.get("ledger") == self.ledger_attempt(part)
            ):
                found[part] = result
        return found

    def state(self, kind: str, part: int) -> Path:
        """A part's file of one kind: `status`, `result`, `summary`, `log`."""
        return self.run / kind / f"part-{part:04d}.{'log' if kind == 'log' else 'json'}"

    def make(self) -> None:
        """Creates the directories, readable only by this user because they contain tokens."""
        for directory in (
            self.root, self.frozen, self.run, self.root / "ledgers", self.root / "started",
            *(self.run / kind for kind in ("status", "result", "summary", "log")),
        ):
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise FleetError(f"--work {directory}: {error.strerror}", 2) from error

    def has_begun(self) -> bool:
        """Whether an attempt at some part may have sent: `part.sh` wrote a note, or there is a ledger."""
        return any(
            directory.is_dir() and any(directory.iterdir())
            for directory in (self.root / "started", self.root / "ledgers"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Locks the work directory for one driver.

        Raises:
            FleetError: Exit code 7 while another driver has it.
        """
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise FleetError(
                f"--work {self.root}: another start is using it: wait until it ends", 7
            ) from error
        finally:
            os.close(descriptor)

    def read_manifest(self) -> dict[str, Any]:
        """The manifest of a complete freeze.

        Raises:
            FleetError: Exit code 2 if there is none.
        """
        manifest = read_json(self.manifest)
        if manifest is None:
            raise FleetError(f"{self.manifest}: does not exist: freeze the list first", 2)
        return manifest
