"""The directory that all machines of a campaign share: what is where, and who may change it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional

from .errors import FleetError
from .files import read_json, sha256_of


@dataclass(frozen=True)
class Work:
    """Paths below `--work`.

    Attributes:
        root: The directory, absolute: the same on all machines.
    """

    root: Path

    @property
    def frozen(self) -> Path:
        """Parts of the list, and what they were made from."""
        return self.root / "frozen"

    @property
    def pin(self) -> Path:
        """What was asked for first: campaign id, number of parts, input."""
        return self.frozen / "pin.json"

    @property
    def manifest(self) -> Path:
        """All parts with rows and SHA-256: written last, when the freeze is complete."""
        return self.frozen / "manifest.json"

    @property
    def campaign(self) -> Path:
        """The campaign file that each part uses."""
        return self.frozen / "campaign.json"

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

    def state(self, kind: str, part: int) -> Path:
        """A part's file of one kind: `status`, `begun`, `result`, `summary`, `log`."""
        return self.run / kind / f"part-{part:04d}.{'log' if kind == 'log' else 'json'}"

    def make(self) -> None:
        """Makes the directories; the tokens in them are for the user alone."""
        for directory in (
            self.root, self.frozen, self.run, self.root / "ledgers",
            *(self.run / kind for kind in ("status", "begun", "result", "summary", "log")),
        ):
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise FleetError(f"--work {directory}: {error.strerror}", 2) from error

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the work directory for one driver.

        Raises:
            FleetError: Exit code 7 while another driver has it.
        """
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise FleetError(
                f"--work {self.root}: another start is using it: wait until it has ended", 7
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

    def check_part(self, part: int, manifest: dict[str, Any]) -> None:
        """Holds a part's file against the manifest.

        Raises:
            FleetError: Exit code 2 if it is another file than the one that was frozen.
        """
        path = self.part_file(part)
        try:
            found: Optional[str] = sha256_of(path)
        except FileNotFoundError:
            found = None
        except OSError as error:
            raise FleetError(f"{path}: can't be read: {error.strerror}", 5) from error
        if found != manifest["files"][part - 1]["sha256"]:
            problem = "is missing" if found is None else "is not the file that was frozen"
            raise FleetError(f"{path}: {problem}: restore it, its SHA-256 is in {self.manifest}")
