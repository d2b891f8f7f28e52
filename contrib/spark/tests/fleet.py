"""A campaign on Spark in processes of its own, and what must hold when it has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conftest import BROADSIDE, PACKAGE, Simulator, fate, token

ROWS = 200_000
MALFORMED = 40
BLANK = 25


def make_table(path: Path, rows: int = ROWS) -> None:
    """A table of `rows` devices in Germany, some of them in upper case; others, which a filter leaves out.

    Of the Germans `MALFORMED` have no token but another text, and `BLANK` have none at all.
    """
    tokens: list[str | None] = [
        token(n).upper() if n % 7 == 0 else token(n) for n in range(rows)]
    tokens += [f"-no token {n}, \"{n}\"" for n in range(MALFORMED)] + [None] * (BLANK - 5) + [" "] * 5
    names = [None if n % 11 == 0 else f"Müller, \"{n}\"" for n in range(len(tokens))]
    countries = ["DE"] * len(tokens)
    tokens += [token(-1 - n) for n in range(1000)]
    names += ["Smith"] * 1000
    countries += ["GB"] * 1000
    table = pa.table({"name": names, "unused": list(range(len(tokens))), "Token": tokens,
                      "country": countries})
    path.mkdir()
    half = len(tokens) // 2
    pq.write_table(table.slice(0, half), path / "a.parquet", row_group_size=20_000)
    pq.write_table(table.slice(half), path / "b.parquet", row_group_size=20_000)


def start(simulator: Simulator, parts: int, *options: str) -> subprocess.Popen[bytes]:
    """Starts the campaign in `local-cluster[2,1,1024]`; its messages go into `spark.log`."""
    directory = simulator.directory
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(directory / "spark"),
        "SPARK_WORKER_DIR": str(directory / "workers")}
    environment.pop("SPARK_HOME", None)
    with open(directory / "spark.log", "ab") as log:
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "spark-submit"), "--master", "local-cluster[2,1,1024]",
             "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1",
             "--conf", "spark.sql.shuffle.partitions=4",
             str(PACKAGE / "broadside_spark.py"), "--input", str(directory / "devices.parquet"),
             "--token-column", "token", "--campaign", str(simulator.campaign),
             "--parts", str(parts), "--work", str(directory / "work"),
             "--outcomes", str(directory / "outcomes.parquet"), "--dead", str(directory / "dead.parquet"),
             "--filter", "country = 'DE'", "--broadside", BROADSIDE, *options],
            cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def running_parts(simulator: Simulator) -> dict[int, dict[str, Any]]:
    """The status of each part that is being sent and has settled rows."""
    found = {}
    for path in (simulator.directory / "work" / "run" / "status").glob("part-*.json"):
        status = json.loads(path.read_text())
        if status["state"] == "running" and (status["progress"].get("settled") or 0) > 0:
            found[status["part"]] = status
    return found


def parent_of(process: int) -> int:
    """The parent's process id."""
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def executor_of(status: dict[str, Any]) -> int:
    """The process id of the executor in which a part is being sent: parent of the daemon of its worker."""
    executor = parent_of(parent_of(status["process"]))
    command = Path(f"/proc/{executor}/cmdline").read_bytes()
    assert b"CoarseGrainedExecutorBackend" in command, command
    return executor


def check(simulator: Simulator, rows: int = ROWS, may_lose: bool = False) -> Counter[str]:
    """Ends the simulator, and holds requests, outcomes and dead tokens against what is computed here.

    Args:
        simulator: That took the requests.
        rows: How many devices the table has.
        may_lose: Whether rows may be unknown, and then not requested, because Broadside was killed.

    Returns:
        How many rows are in each state.
    """
    directory = simulator.directory
    simulator.end()
    requests = Counter(line[4] for line in simulator.requests())
    devices = {token(n) for n in range(rows)}
    outcomes = pq.read_table(directory / "outcomes.parquet").to_pylist()
    states = Counter(row["state"] for row in outcomes)
    unknown = {row["token"] for row in outcomes if row["state"] == "unknown"}
    assert may_lose or not unknown, f"{len(unknown)} unknown"
    assert set(requests.values()) == {1}, f"{len(requests)} tokens, {sum(requests.values())} requests"
    assert requests.keys() <= devices and devices - requests.keys() <= unknown
    found = {
        row["token"]: (row["state"], row["reason"] or "", row["apns_timestamp_ms"])
        for row in outcomes if row["state"] not in ("unknown", "invalid")}
    assert found == {device: fate(device) for device in devices - unknown}
    assert sorted(row["token"] for row in outcomes if row["state"] == "invalid") == sorted(
        f"-no token {n}, \"{n}\"" for n in range(MALFORMED))
    assert len(outcomes) == rows + MALFORMED
    ids = {row["apns_id"] for row in outcomes if row["state"] != "invalid"}
    assert len(ids) == rows

    dead = pq.read_table(directory / "dead.parquet").column("token").to_pylist()
    expected = {device for device in devices - unknown if fate(device)[1] == "Unregistered"}
    assert len(dead) == len(set(dead)) and set(dead) == expected
    return states
