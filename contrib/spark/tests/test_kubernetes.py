"""The manifests of contrib/kubernetes: as Kubernetes reads them, and their scripts as kubelet runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from kubernetes_validate import validate
from kubernetes_validate.utils import all_versions

from conftest import BROADSIDE, PACKAGE, Simulator, token

from broadside_fleet.freeze_command import main as freeze

MANIFESTS = PACKAGE.parent / "kubernetes"
VERSIONS = 3
LOCKED = 25  # More than backoffLimitPerIndex.


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


@pytest.mark.parametrize("name", sorted(path.name for path in MANIFESTS.glob("*.yaml")))
def test_manifests_are_valid(name: str) -> None:
    """Strictly, for the newest versions of Kubernetes."""
    versions = sorted(set(all_versions()), key=lambda version: [int(part) for part in version.split(".")])
    assert len(versions) >= VERSIONS
    for version in versions[-VERSIONS:]:
        for document in documents(name):
            validate(document, version, strict=True)


class Controller:
    """A Job controller: an index after the other, by the rules of the job's podFailurePolicy."""

    def __init__(self, job: dict[str, Any], directory: Path, environment: dict[str, str]) -> None:
        self.spec = job["spec"]
        self.container = self.spec["template"]["spec"]["containers"][0]
        self.directory = directory
        self.environment = environment
        self.failed: list[int] = []
        self.pods: list[tuple[int, int]] = []

    def pod(self, index: int) -> int:
        """Runs an index's pod to its end, as kubelet does, and returns its exit code."""
        script = self.container["args"][0].replace("$$", "$").replace("/key/", f"{self.directory}/")
        values = {entry["name"]: entry["value"] for entry in self.container["env"]}
        done = subprocess.run(
            [*self.container["command"], script], stdin=subprocess.DEVNULL, capture_output=True,
            env={**values, "PATH": f"{self.directory}/bin:/usr/bin:/bin",
                 "JOB_COMPLETION_INDEX": str(index), **self.environment})
        (self.directory / f"pod-{index}-{len(self.pods)}.log").write_bytes(done.stderr)
        self.pods.append((index, done.returncode))
        return done.returncode

    def run(self) -> bool:
        """Whether the job is complete at its end; raises if it fails as a whole."""
        for index in range(self.spec["completions"]):
            counted = 0
            while code := self.pod(index):
                action = self.action(code)
                if action == "FailJob":
                    raise RuntimeError(f"index {index}: exit code {code}")
                counted += action == "Count"
                if action == "FailIndex" or counted > self.spec["backoffLimitPerIndex"]:
                    self.failed.append(index)
                    break
            if len(self.failed) > self.spec["maxFailedIndexes"]:
                raise RuntimeError("too many indexes failed")
        return not self.failed

    def action(self, code: int) -> str:
        """The first rule that an exit code meets."""
        for rule in self.spec["podFailurePolicy"]["rules"]:
            if code in rule.get("onExitCodes", {}).get("values", []):
                return str(rule["action"])
        return "Count"


def test_an_indexed_job_over_frozen_parts(simulator: Simulator) -> None:
    """Interrupted, locked and finished parts: every token once; a lost ledger sends nothing."""
    directory = simulator.directory
    rows = 4000
    pq.write_table(pa.table({"token": [token(n) for n in range(rows)], "name": ["x"] * rows}),
                   directory / "devices.parquet")
    work = directory / "work"
    assert freeze(["--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign),
                   "--parts", "5", "--work", str(work), "--broadside", BROADSIDE]) == 0
    first, others = documents("indexed-job.yaml")
    assert others["spec"]["suspend"] is True and "suspend" not in first["spec"]
    assert first["spec"]["template"]["spec"]["containers"][0]["args"] == (
        others["spec"]["template"]["spec"]["containers"][0]["args"])

    campaign = (work / "frozen" / "campaign.json").read_text()
    key = re.search(r'"auth-key": "([^"]*)"', campaign)
    assert key
    os.symlink(key.group(1), directory / "auth-key")
    os.mkdir(directory / "bin")
    # Broadside, but LOCKED pods of the second part meet a lock, and the next one is interrupted.
    (directory / "bin" / "broadside").write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"n = len(os.listdir({str(directory)!r} + '/calls'))\n"
        f"open({str(directory)!r} + '/calls/' + str(n), 'w').write(' '.join(sys.argv))\n"
        f"extra = ['--deadline', '1ms'] if n == {LOCKED + 1} else []\n"
        f"sys.exit(7) if 0 < n <= {LOCKED} else os.execv({BROADSIDE!r}, [{BROADSIDE!r}, *sys.argv[1:], *extra])\n")
    (directory / "bin" / "broadside").chmod(0o755)
    os.mkdir(directory / "calls")
    environment = {
        "WORK": str(work),
        "KEY_ID": re.search(r'"key-id": "([^"]*)"', campaign).group(1),
        "TEAM_ID": re.search(r'"team-id": "([^"]*)"', campaign).group(1)}
    jobs = [Controller(job, directory, environment) for job in (first, others)]
    assert jobs[0].run(), jobs[0].pods
    assert jobs[1].run(), jobs[1].pods
    assert jobs[1].pods == [
        *[(0, 7)] * LOCKED, (0, 3), (0, 0), (1, 0), (2, 0), (3, 0)]
    said = [(directory / "calls" / str(n)).read_text() for n in range(LOCKED + 6)]
    assert "--canary 1000" in said[0] and "--assume-canary" in said[1]
    assert "--part 2/5" in said[1] and "--part 5/5" in said[-1]

    # Started once more: nothing is sent. With a ledger lost: nothing either, and the job fails.
    assert jobs[1].run()
    os.rename(work / "ledgers" / "3", work / "elsewhere")
    with pytest.raises(RuntimeError, match="index 1: exit code 2"):
        jobs[1].run()
    simulator.end()
    assert Counter(line[4] for line in simulator.requests()) == Counter(token(n) for n in range(rows))
