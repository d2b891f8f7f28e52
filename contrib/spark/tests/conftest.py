"""What the tests share: a simulator, a table of devices, and what becomes of each computed here."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

PACKAGE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))
BROADSIDE = os.environ.get(
    "BROADSIDE_COMMAND", str(PACKAGE.parent.parent / ".build" / "release" / "broadside"))

SEED = 7
UNREGISTERED = 0.01
BAD_TOKEN = 0.001
WAIT_SECONDS = 300  # Far above what anything here takes: only a hang reaches it.


def token(number: int) -> str:
    """The token of a row: 64 digits."""
    return hashlib.sha256(b"device %d" % number).hexdigest()


def fate(device: str) -> tuple[str, str, int | None]:
    """State, reason and timestamp of a token, computed as `simulate --help` says."""
    mask = (1 << 64) - 1
    z = (int(device[:16], 16) ^ SEED) + 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    h = z ^ z >> 31
    u = h / 2**64
    if u < BAD_TOKEN:
        return "rejected", "BadDeviceToken", None
    if u < BAD_TOKEN + UNREGISTERED:
        return "rejected", "Unregistered", 1_700_000_000_000 + h % 86_400_000
    return "accepted", "", None


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[Any] | None = None) -> Any:
    """What a condition returns once it is true; fails if the process ends before."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        assert process is None or process.poll() is None, "the process ended early"
        time.sleep(0.05)
    return value


@dataclass
class Simulator:
    """A running simulator.

    Attributes:
        directory: Its state, its journal and the campaign file.
        campaign: A campaign file that connects to it.
        process: The simulator itself.
    """

    directory: Path
    campaign: Path
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        """Ends it; from now on the journal is complete."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def requests(self) -> list[list[str]]:
        """The journal: time, connection, stream, apns-id, token, status and reason per request.

        While the simulator runs the last requests may still be missing.
        """
        lines = (self.directory / "journal.csv").read_text().splitlines()
        return [line.split(",") for line in lines if line[:1].isdigit()]


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    with simulating(tmp_path) as running:
        yield running


class simulating:
    """Runs a simulator in a directory, until the block ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __enter__(self) -> Simulator:
        directory = self.directory
        said = directory / "simulator.txt"
        with open(said, "wb") as output:
            self.process = subprocess.Popen(
                [BROADSIDE, "simulate", "--listen", "127.0.0.1:0", "--state", str(directory / "apns"),
                 "--unregistered", str(UNREGISTERED), "--bad-token", str(BAD_TOKEN), "--seed", str(SEED),
                 "--latency", "20ms", "--journal", str(directory / "journal.csv")],
                stdout=output, stderr=subprocess.STDOUT)
        line = wait_for(
            lambda: re.search(r"^broadside send (.*) --tokens", said.read_text(), re.M), self.process)
        (directory / "payload.json").write_text('{"aps":{"alert":"Good evening, {{name|friend}}"}}')
        printed = subprocess.run(
            [BROADSIDE, "send", *line.group(1).split(), "--payload", str(directory / "payload.json"),
             "--tokens", os.devnull, "--duplicates", "skip", "--print-campaign"],
            check=True, capture_output=True, text=True)
        campaign = directory / "evening.json5"
        campaign.write_text(re.sub(r'^ *"tokens".*\n', "", printed.stdout, flags=re.M))
        return Simulator(directory, campaign, self.process)

    def __exit__(self, *_: Any) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
