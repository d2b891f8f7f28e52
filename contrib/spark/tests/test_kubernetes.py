"""The manifests of contrib/kubernetes: as Kubernetes reads them, and their scripts as kubelet runs them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
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
    """A Job controller: an index after the other, by the rules of the job's podFailurePolicy.

    Args:
        job: As the manifest has it.
        directory: For the pods' logs; it has what a pod finds in /key.
        environment: Instead of the manifest's values.
        evictions: By index, the signals that its first pods get once they send: SIGTERM as of a node that is
            drained, SIGKILL as of one that dies. Such a pod has the condition DisruptionTarget.
    """

    def __init__(
        self, job: dict[str, Any], directory: Path, environment: dict[str, str],
        evictions: dict[int, list[signal.Signals]] | None = None
    ) -> None:
        self.spec = job["spec"]
        self.evictions = {index: list(signals) for index, signals in (evictions or {}).items()}
        self.container = self.spec["template"]["spec"]["containers"][0]
        self.directory = directory
        self.environment = environment
        self.failed: list[int] = []
        self.pods: list[tuple[int, int]] = []
        self.disrupted = 0

    def pod(self, index: int) -> tuple[int, bool]:
        """Runs an index's pod to its end, as kubelet does.

        Returns:
            Its exit code, and whether it was evicted.
        """
        script = self.container["args"][0].replace("$$", "$").replace("/key/", f"{self.directory}/")
        values = {entry["name"]: entry["value"] for entry in self.container["env"]}
        environment = {**values, "PATH": f"{self.directory}/bin:/usr/bin:/bin",
                       "JOB_COMPLETION_INDEX": str(index), **self.environment}
        path = self.directory / f"pod-{index}-{len(self.pods)}.log"
        signals = self.evictions.get(index, [])
        with path.open("wb") as log:
            process = subprocess.Popen(
                [*self.container["command"], script], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment)
            evicted = bool(signals)
            if evicted:
                evicted = self.evict(process, environment, signals.pop(0))
            try:
                code = process.wait(self.spec["template"]["spec"]["terminationGracePeriodSeconds"])
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        self.pods.append((index, code))
        self.disrupted += evicted
        return code, evicted

    def evict(
        self, process: subprocess.Popen[bytes], environment: dict[str, str], word: signal.Signals
    ) -> bool:
        """Sends a signal once the pod has sent; false if it ended before."""
        part = int(environment["JOB_COMPLETION_INDEX"]) + int(environment["FIRST_PART"])
        ledger = Path(environment["WORK"], "ledgers", str(part))
        size = ledger_size(ledger)
        while process.poll() is None:
            # Its first rows are reserved, and some of them are settled.
            if size + 2000 < ledger_size(ledger):
                process.send_signal(word)
                return True
            time.sleep(0.02)
        return False

    def run(self) -> bool:
        """Whether the job is complete at its end; raises if it fails as a whole."""
        for index in range(self.spec["completions"]):
            counted = 0
            while True:
                code, evicted = self.pod(index)
                if code == 0:
                    break
                action = self.action(code, evicted)
                if action == "FailJob":
                    raise RuntimeError(f"index {index}: exit code {code}")
                counted += action == "Count"
                if action == "FailIndex" or counted > self.spec["backoffLimitPerIndex"]:
                    self.failed.append(index)
                    break
            if len(self.failed) > self.spec["maxFailedIndexes"]:
                raise RuntimeError("too many indexes failed")
        return not self.failed

    def action(self, code: int, evicted: bool) -> str:
        """The first rule that a pod's condition or its exit code meets."""
        for rule in self.spec["podFailurePolicy"]["rules"]:
            conditions = [condition["type"] for condition in rule.get("onPodConditions", [])]
            if evicted and "DisruptionTarget" in conditions or code in rule.get("onExitCodes", {}).get("values", []):
                return str(rule["action"])
        return "Count"


def ledger_size(ledger: Path) -> int:
    return sum(path.stat().st_size for path in ledger.glob("segment-*"))


def settings(simulator: Simulator, work: Path) -> dict[str, str]:
    """The environment of pods that work on a simulator's frozen parts; their key lies where they look for it."""
    campaign = (work / "frozen" / "campaign.json").read_text()
    key, key_id, team = (
        re.search(f'"{name}": "([^"]*)"', campaign) for name in ("auth-key", "key-id", "team-id"))
    assert key and key_id and team
    os.symlink(key.group(1), simulator.directory / "auth-key")
    return {"WORK": str(work), "KEY_ID": key_id.group(1), "TEAM_ID": team.group(1)}


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
    # Parts that are exit 6 end no others, however many they are.
    assert others["spec"]["maxFailedIndexes"] == others["spec"]["completions"] == 4
    assert first["spec"]["template"]["spec"]["containers"][0]["args"] == (
        others["spec"]["template"]["spec"]["containers"][0]["args"])

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
    environment = settings(simulator, work)
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
    os.rename(work / "elsewhere", work / "ledgers" / "3")
    os.rename(work / "ledgers", work / "elsewhere")
    with pytest.raises(RuntimeError, match="index 0: exit code 2"):
        jobs[1].run()
    simulator.end()
    assert Counter(line[4] for line in simulator.requests()) == Counter(token(n) for n in range(rows))


def test_pods_that_are_evicted(simulator: Simulator) -> None:
    """Drained nodes and dead ones: no token twice, what is not known is recorded as unknown, and no eviction counts."""
    directory = simulator.directory
    rows = 12_000
    pq.write_table(pa.table({"token": [token(n) for n in range(rows)], "name": ["x"] * rows}),
                   directory / "devices.parquet")
    work = directory / "work"
    assert freeze(["--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign),
                   "--parts", "3", "--work", str(work), "--broadside", BROADSIDE]) == 0
    _, job = documents("indexed-job.yaml")
    job["spec"]["completions"] = 3
    job["spec"]["backoffLimitPerIndex"] = 0
    os.mkdir(directory / "bin")
    os.symlink(BROADSIDE, directory / "bin" / "broadside")
    environment = {**settings(simulator, work), "PARTS": "3", "FIRST_PART": "1", "RATE": "2000"}
    drained, died = [signal.SIGTERM] * 2, [signal.SIGKILL]
    controller = Controller(job, directory, environment, {0: drained, 1: died, 2: [*drained, *died]})
    controller.run()
    assert controller.disrupted == 6, controller.pods
    codes = {index: [code for at, code in controller.pods if at == index] for index in range(3)}
    assert codes[0] == [3, 3, 0], codes
    assert codes[1][0] == codes[2][2] == -signal.SIGKILL, codes
    unknown = set()
    for part in (1, 2, 3):
        exported = subprocess.run(
            [BROADSIDE, "ledger", "export", "--ledger", str(work / "ledgers" / str(part)), "--state", "unknown"],
            check=True, capture_output=True, text=True).stdout.splitlines()[1:]
        # What was in flight when the node died, and no other: exit 6 fails the index.
        assert codes[part - 1][-1] == (6 if exported else 0), codes
        assert (part - 1 in controller.failed) == bool(exported)
        assert part > 1 or not exported
        unknown |= {line.split(",")[1] for line in exported}
    simulator.end()
    requests = Counter(line[4] for line in simulator.requests())
    assert set(requests.values()) == {1}
    devices = {token(n) for n in range(rows)}
    assert requests.keys() <= devices and devices - requests.keys() <= unknown
