"""A campaign on Spark in processes of its own, and what must hold when it has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conftest import BROADSIDE, PACKAGE, Simulator, fate, token

ROWS = 200_000
COPIES = 3000
MALFORMED = 40
BLANK = 25
PARTS = 4
CANARY = 500
FILTER = "country = 'DE'"


def registrations(number: int) -> list[int | None]:
    """When the rows of a device were registered, in Unix milliseconds: before its `fate`, after it, or unknown."""
    times = [1_600_000_000_000, 1_800_000_000_000, 1_600_000_000_000, None]
    return [times[number % 4]] + ([times[number // 4 % 4]] if number < COPIES else [])


def make_table(path: Path, rows: int = ROWS) -> None:
    """A table of `rows` devices in Germany, some of them in upper case; others, which a filter leaves out.

    Of the Germans `COPIES` are there once more, in the other case; `MALFORMED` have no token but another text,
    and `BLANK` have none at all.
    """
    tokens: list[str | None] = [
        token(n).upper() if n % 7 == 0 else token(n) for n in range(rows)]
    registered = [registrations(n)[0] for n in range(rows)]
    tokens += [f"-no token {n}, \"{n}\"" for n in range(MALFORMED)] + [None] * (BLANK - 5) + [" "] * 5
    registered += [None] * (MALFORMED + BLANK)
    tokens += [token(n) if n % 7 == 0 else token(n).upper() for n in range(COPIES)]
    registered += [registrations(n)[1] for n in range(COPIES)]
    names = [None if n % 11 == 0 else f"Müller, \"{n}\"" for n in range(len(tokens))]
    countries = ["DE"] * len(tokens)
    tokens += [token(-1 - n) for n in range(1000)]
    registered += [None] * 1000
    names += ["Smith"] * 1000
    countries += ["GB"] * 1000
    table = pa.table({"name": names, "unused": list(range(len(tokens))), "Token": tokens,
                      "country": countries, "Registered": pa.array(registered, pa.int64())})
    path.mkdir()
    half = len(tokens) // 2
    pq.write_table(table.slice(0, half), path / "a.parquet", row_group_size=20_000)
    pq.write_table(table.slice(half), path / "b.parquet", row_group_size=20_000)


def start(simulator: Simulator, *options: str) -> subprocess.Popen[bytes]:
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
             "--parts", str(PARTS), "--canary", str(CANARY), "--work", str(directory / "work"),
             "--outcomes", str(directory / "outcomes.parquet"), "--dead", str(directory / "dead.parquet"),
             "--filter", FILTER, "--registered-column", "registered", "--broadside", BROADSIDE, *options],
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
    journal = simulator.requests()
    requests = Counter(line[4] for line in journal)
    devices = {token(n) for n in range(rows)}
    outcomes = pq.read_table(directory / "outcomes.parquet").to_pylist()
    states = Counter(row["state"] for row in outcomes)
    unknown = {row["token"] for row in outcomes if row["state"] == "unknown"}
    assert may_lose or not unknown, f"{len(unknown)} unknown"
    assert set(requests.values()) == {1}, f"{len(requests)} tokens, {sum(requests.values())} requests"
    assert requests.keys() <= devices and devices - requests.keys() <= unknown
    assert len(outcomes) == rows + COPIES + MALFORMED
    found = {
        row["token"]: (row["state"], row["reason"] or "", row["apns_timestamp_ms"])
        for row in outcomes if row["state"] not in ("unknown", "invalid", "skipped")}
    assert found == {device: fate(device) for device in devices - unknown}
    assert sorted(row["token"] for row in outcomes if row["state"] == "invalid") == sorted(
        f"-no token {n}, \"{n}\"" for n in range(MALFORMED))
    assert sorted((row["token"], row["reason"]) for row in outcomes if row["state"] == "skipped") == sorted(
        (token(n), "Duplicate") for n in range(COPIES))
    ids = {row["apns_id"] for row in outcomes if row["state"] not in ("invalid", "skipped")}
    assert len(ids) == rows

    # The canary goes before all other parts; of its rows some make no request.
    begun: dict[int, list[int]] = {part: [] for part in range(PARTS)}
    for line in journal:
        begun[zlib.crc32(line[4].encode()) % PARTS].append(int(line[0]))
    canary = sorted(begun.pop(0))[CANARY - MALFORMED - 1]
    assert all(canary < min(times) for times in begun.values()), "a part did not wait for the canary"

    # Dead is a token none of whose rows was registered after APNs' time.
    dead = pq.read_table(directory / "dead.parquet").column("token").to_pylist()
    expected = {
        token(n) for n in range(rows) if token(n) not in unknown and fate(token(n))[1] == "Unregistered"
        and all(time == 1_600_000_000_000 for time in registrations(n))}
    assert len(dead) == len(set(dead)) and set(dead) == expected, (
        f"{len(dead)} dead tokens, {len(set(dead) - expected)} of them live, {len(expected)} expected")
    return states
