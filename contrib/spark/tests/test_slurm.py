"""The script of contrib/slurm on a cluster of one machine: slurmctld and slurmd as they are."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import BROADSIDE, PACKAGE, Simulator, token, wait_for

from broadside_fleet.freeze_command import main as freeze

SCRIPT = PACKAGE.parent / "slurm" / "parts.sh"
ROWS = 12_000
PARTS = 4

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4
"""


class Cluster:
    """A controller and a node on this machine, with ports and folders of their own."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        for name in ("state", "spool"):
            (directory / name).mkdir()
        sockets = [socket.socket() for _ in range(2)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        host = socket.gethostname().split(".")[0]
        path = directory / "slurm.conf"
        path.write_text(CONFIGURATION.format(host=host, ports=ports, directory=directory))
        self.directory = directory
        self.environment = {**os.environ, "SLURM_CONF": str(path)}
        self.daemons: list[subprocess.Popen[bytes]] = []
        for command in (["slurmctld", "-D", "-i"], ["slurmd", "-D", "-N", host]):
            with (directory / f"{command[0]}.out").open("wb") as log:
                self.daemons.append(subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment))

    def __enter__(self) -> Cluster:
        wait_for(lambda: " idle" in self.call("sinfo", "--noheader", "--format=%n %T"), self.daemons[0])
        return self

    def __exit__(self, *_: Any) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def call(self, *words: str, **more: str) -> str:
        return subprocess.run(
            words, env={**self.environment, **more}, capture_output=True, text=True, cwd=self.directory).stdout

    def submit(self, *words: str, **more: str) -> str:
        """Submits the script, and returns the job's number."""
        said = self.call("sbatch", "--parsable", *words, str(SCRIPT), **more).strip()
        assert re.fullmatch(r"\d+", said), said
        return said

    def tasks(self, job: str) -> str:
        """The states of a job's tasks that are not over."""
        return self.call("squeue", "--noheader", f"--job={job}", "--array", "--format=%K %t %r")


def sender(part: int, work: Path) -> int | None:
    """The process id of the Broadside that sends a part and has settled some rows; None if there is none."""
    if sum(path.stat().st_size for path in (work / "ledgers" / str(part)).glob("segment-*")) < 4000:
        return None
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(work / "ledgers" / str(part)).encode() in words and b"send" in words:
            return int(path.parent.name)
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root")
def test_an_array_over_frozen_parts(simulator: Simulator) -> None:
    """A task is killed, another requeued: every token once, and only what a killed process had in flight unknown."""
    assert shutil.which("slurmctld") and shutil.which("slurmd"), "tools/install-packages full"
    directory = simulator.directory
    pq.write_table(pa.table({"token": [token(n) for n in range(ROWS)], "name": ["x"] * ROWS}),
                   directory / "devices.parquet")
    work = directory / "work"
    assert freeze(["--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign),
                   "--parts", str(PARTS), "--work", str(work), "--broadside", BROADSIDE]) == 0
    (directory / "bin").mkdir()
    os.symlink(BROADSIDE, directory / "bin" / "broadside")
    settings = {"PATH": f"{directory}/bin:{os.environ['PATH']}", "WORK": str(work), "PARTS": str(PARTS),
                "RATE": "1000", "PAUSE": "1"}
    with Cluster(directory / "slurm") as cluster:
        first = cluster.submit("--array=1", CANARY="--canary 100", **settings)
        others = cluster.submit(
            f"--array=2-{PARTS}%2", f"--dependency=afterok:{first}", CANARY="--assume-canary", **settings)
        wait_for(lambda: sender(1, work), cluster.daemons[0])
        assert "Dependency" in cluster.tasks(others) and not (work / "ledgers" / "2").exists()
        killed = wait_for(lambda: sender(2, work), cluster.daemons[0])
        os.kill(killed, signal.SIGKILL)
        requeued = wait_for(lambda: sender(3, work), cluster.daemons[0])
        cluster.call("scontrol", "requeue", f"{others}_3")
        deadline = time.monotonic() + 300
        while cluster.tasks(others).strip() and time.monotonic() < deadline:
            time.sleep(0.5)
        assert not cluster.tasks(others).strip(), cluster.tasks(others)
        assert not Path(f"/proc/{requeued}").exists()
    states: Counter[str] = Counter()
    unknown = set()
    for part in range(1, PARTS + 1):
        lines = subprocess.run(
            [BROADSIDE, "ledger", "export", "--ledger", str(work / "ledgers" / str(part))],
            check=True, capture_output=True, text=True).stdout.splitlines()[1:]
        for line in lines:
            fields = line.split(",")
            states[fields[2]] += 1
            if fields[2] == "unknown":
                assert part == 2, line
                unknown.add(fields[1])
    assert sum(states.values()) == ROWS and not states["remaining"] and not states["in-doubt"], states
    attempts = [len(list((work / "ledgers" / str(part)).glob("segment-*"))) for part in range(1, PARTS + 1)]
    assert attempts == [1, 2, 2, 1]
    simulator.end()
    requests = Counter(line[4] for line in simulator.requests())
    devices = {token(n) for n in range(ROWS)}
    assert set(requests.values()) == {1}
    assert requests.keys() <= devices and devices - requests.keys() <= unknown


def freeze_parts(simulator: Simulator, rows: int, parts: int) -> tuple[Path, dict[str, str]]:
    """A work directory with frozen parts, and the environment of tasks that send them."""
    directory = simulator.directory
    pq.write_table(pa.table({"token": [token(n) for n in range(rows)], "name": ["x"] * rows}),
                   directory / "devices.parquet")
    work = directory / "work"
    assert freeze(["--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign),
                   "--parts", str(parts), "--work", str(work), "--broadside", BROADSIDE]) == 0
    (directory / "bin").mkdir()
    os.symlink(BROADSIDE, directory / "bin" / "broadside")
    return work, {"PATH": f"{directory}/bin:{os.environ['PATH']}", "WORK": str(work), "PARTS": str(parts),
                  "RATE": "5000", "CANARY": "--assume-canary", "PAUSE": "1"}


@pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root")
def test_a_node_without_the_work_directory(simulator: Simulator) -> None:
    """Its tasks go back to the queue for other nodes, and the array is not cancelled."""
    directory = simulator.directory
    work, settings = freeze_parts(simulator, 1000, 2)
    away = directory / "away"
    os.rename(work, away)
    with Cluster(directory / "slurm") as cluster:
        node = cluster.call("sinfo", "--noheader", "--format=%n").strip()
        job = cluster.submit("--array=1-2", **settings)

        def excluded(part: int) -> bool:
            shown = cluster.call("scontrol", "show", "job", f"{job}_{part}")
            return "JobState=PENDING" in shown and f"ExcNodeList={node}" in shown

        wait_for(lambda: excluded(1) and excluded(2), cluster.daemons[0])
        os.rename(away, work)
        for part in (1, 2):
            cluster.call("scontrol", "update", f"JobId={job}_{part}", "ExcNodeList=")
            wait_for(lambda: "Priority=0" in cluster.call("scontrol", "show", "job", f"{job}_{part}") or (
                "BeginTime" not in cluster.tasks(job)), cluster.daemons[0])
            cluster.call("scontrol", "release", f"{job}_{part}")
        wait_for(lambda: not cluster.tasks(job).strip(), cluster.daemons[0])
    simulator.end()
    assert Counter(line[4] for line in simulator.requests()) == Counter(token(n) for n in range(1000))


def test_what_a_node_lacks_is_not_the_campaigns_fault(simulator: Simulator) -> None:
    """No work directory, or no command: the task is put back without the node, and nothing is cancelled."""
    directory = simulator.directory
    work, settings = freeze_parts(simulator, 100, 2)
    for name in ("scancel", "scontrol"):
        (directory / "bin" / name).write_text(
            f"#!/bin/sh\necho {name} $@ >>{directory}/calls\n[ $1 != show ] || echo '   ExcNodeList=n1 x=y'\n")
        (directory / "bin" / name).chmod(0o755)

    def task(**more: str) -> tuple[int, list[str]]:
        done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, env={
            **os.environ, **settings, "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_JOB_ID": "77",
            "SLURMD_NODENAME": "n2", **more})
        calls = directory / "calls"
        said = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return done.returncode, said

    put_back = ["scontrol show job 77_2", "scontrol requeuehold 77_2",
                "scontrol update JobId=77_2 ExcNodeList=n1,n2", "scontrol release 77_2"]
    assert task(WORK=f"{directory}/nowhere") == (5, put_back)
    assert task(BROADSIDE="/nowhere") == (5, put_back)
    # Not without end.
    assert task(WORK=f"{directory}/nowhere", SLURM_RESTART_COUNT="20") == (5, [])
    # What is the campaign's fault still cancels it.
    (work / "frozen" / "part-0002.csv.zst").rename(directory / "part")
    assert task() == (2, ["scancel 77"])
    (directory / "part").rename(work / "frozen" / "part-0002.csv.zst")
    assert task() == (0, [])


def test_lost_ledgers_are_no_second_campaign(simulator: Simulator) -> None:
    """The script as a node runs it; of a list that was swapped nothing is sent, either."""
    directory = simulator.directory
    pq.write_table(pa.table({"token": [token(n) for n in range(1000)], "name": ["x"] * 1000}),
                   directory / "devices.parquet")
    work = directory / "work"
    assert freeze(["--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign),
                   "--parts", "3", "--work", str(work), "--broadside", BROADSIDE]) == 0
    (directory / "bin").mkdir()
    os.symlink(BROADSIDE, directory / "bin" / "broadside")
    (directory / "bin" / "scancel").write_text(f"#!/bin/sh\necho $1 >>{directory}/cancelled\n")
    (directory / "bin" / "scancel").chmod(0o755)

    def task(part: int) -> int:
        return subprocess.run(["bash", str(SCRIPT)], env={
            **os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "WORK": str(work), "PARTS": "3",
            "RATE": "5000", "CANARY": "--assume-canary", "PAUSE": "1", "ATTEMPTS": "2",
            "SLURM_ARRAY_TASK_ID": str(part), "SLURM_ARRAY_JOB_ID": "77"}).returncode

    assert [task(1), task(2), task(2)] == [0, 0, 0]
    os.rename(work / "ledgers", directory / "elsewhere")
    assert task(2) == 2
    assert (directory / "cancelled").read_text() == "77\n"
    shutil.copyfile(work / "frozen" / "part-0001.csv.zst", work / "frozen" / "part-0003.csv.zst")
    assert task(3) == 2
    simulator.end()
    sent = [token(n) for n in range(1000) if zlib.crc32(token(n).encode()) % 3 < 2]
    assert Counter(line[4] for line in simulator.requests()) == Counter(sent)
