"""Arms, a holdout and local time over parts: each device as in a single run."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterator, Optional

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from conftest import BROADSIDE, Simulator, simulating, token

from broadside_fleet.freeze_command import main as freeze
from broadside_fleet.spark_command import main

ROWS = 600
PARTS = 2
YEAR = datetime.date.today().year + 1
SALT = "spring"
WAVES: list[tuple[Optional[str], int]] = [
    ("Asia/Tokyo", 1), ("Europe/Berlin", 2), ("America/New_York", 4), ("Pacific/Kiritimati", 0), ("europe/berlin", 3),
    (None, 3), ("  Asia/Tokyo ", 1)]
"""Zones, and the wave of each at 09:00 on June 15: 0 has passed at the start, 3 is that of the default zone UTC."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    session = (
        SparkSession.builder.master(f"local[{PARTS}]").config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.shuffle.partitions", "2").getOrCreate())
    yield session
    session.stop()


def device(number: int) -> str:
    return token(number).upper() if number % 5 == 0 else token(number)


def zone(number: int) -> tuple[Optional[str], int]:
    # Neither part nor arm follow from it.
    return WAVES[divmod(number // 3, len(WAVES))[1]]


def arm(number: int) -> str:
    """By the rule that docs/lists-and-payloads.md has."""
    digest = hashlib.sha256(f"{SALT}:{token(number)}".encode()).digest()
    position = int.from_bytes(digest[:8], "big") * 10_000 >> 64
    return "a" if position < 4000 else "b" if position < 8000 else "holdout"


def clocked(directory: Path) -> str:
    """A Broadside whose clock begins on the evening before, and by which an hour passes in a second."""
    command = directory / "broadside"
    command.write_text(
        "#!/bin/sh\n"
        "export TZ=UTC FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1\n"
        "export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1\n"
        f"export FAKETIME='@{YEAR}-06-14 22:00:00 x3600'\n"
        # libfaketime changes the environment of the process that loads it first.
        f"exec timeout 500 '{BROADSIDE}' \"$@\"\n")
    command.chmod(0o755)
    return str(command)


def prepare(simulator: Simulator, **more: Any) -> None:
    """Adds arms and local time to the campaign, and makes the table and the list of all rows."""
    directory = simulator.directory
    campaign = json.loads(simulator.campaign.read_text())
    for key in ("auth-key", "key-id", "team-id", "payload"):
        campaign.pop(key, None)
    for name in "ab":
        (directory / f"{name}.json").write_text(json.dumps({"aps": {"alert": f"{name}: {{{{name}}}}"}}))
    state = directory / "apns"
    campaign |= {
        "certificate": str(state / "client.pem"), "private-key": str(state / "client.key"),
        "split": "a=40,b=40,holdout=20", "split-salt": SALT,
        "arms": {name: {"payload": str(directory / f"{name}.json")} for name in "ab"},
        "deliver-at": "09:00", "zone-column": "tz", "zone-default": "UTC", "on": f"{YEAR}-06-15", "late": "skip"}
    simulator.campaign.write_text(json.dumps(campaign | more))
    names = [f"n{n}" for n in range(ROWS)]
    if not (directory / "devices.parquet").exists():
        pq.write_table(
            pa.table({"token": [device(n) for n in range(ROWS)], "unused": names, "name": names,
                      "tz": [zone(n)[0] for n in range(ROWS)]}),
            directory / "devices.parquet")
    (directory / "all.csv").write_text("token,name,tz\n" + "".join(
        f"{device(n)},n{n},{zone(n)[0] or ''}\n" for n in range(ROWS)))


def waves_of(simulator: Simulator, parts: dict[str, int]) -> None:
    """Holds the requests of each run against the waves: each has all of its rows before the next begins."""
    number_of = {token(n): n for n in range(ROWS)}
    times: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    requests = simulator.requests()
    for line in requests:
        times[parts[line[4]]][zone(number_of[line[4]])[1]].append(int(line[0]))
    assert sorted(line[4] for line in requests) == sorted(
        token(n) for n in range(ROWS) if arm(n) != "holdout" and zone(n)[1] > 0)
    for waves in times.values():
        assert sorted(waves) == [1, 2, 3, 4]
        for wave in (1, 2, 3):
            # The waves are two hours apart or more: two seconds.
            assert max(waves[wave]) + 1_000_000 < min(waves[wave + 1]), wave


def check(rows: list[dict[str, Any]]) -> None:
    """Holds outcomes against the arm and the wave of each device."""
    found = {row["token"]: (row["arm"], row["state"], row["reason"] or "") for row in rows}
    assert len(rows) == len(found) == ROWS
    for n in range(ROWS):
        expected = (
            ("skipped", "Holdout") if arm(n) == "holdout" else ("skipped", "Late") if zone(n)[1] == 0 else None)
        mine, state, reason = found[token(n)]
        assert mine == arm(n), n
        assert (state, reason) == expected if expected else state in ("accepted", "rejected"), (n, state, reason)


def test_arms_and_waves_over_parts_are_those_of_a_single_run(
    simulator: Simulator, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(simulator)
    directory, command = simulator.directory, clocked(tmp_path)
    arguments = [
        "--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign), "--parts", str(PARTS),
        "--work", str(directory / "work"), "--broadside", command, "--outcomes", str(directory / "outcomes.parquet")]
    assert main(arguments) == 2
    assert "--canary 1000: does not go with late: skip" in capsys.readouterr().err
    assert main([*arguments, "--canary", "0"]) == 0, capsys.readouterr().err
    outcomes = pq.read_table(directory / "outcomes.parquet").to_pylist()
    check(outcomes)
    simulator.end()
    waves_of(simulator, {row["token"]: row["part"] for row in outcomes})

    alone = tmp_path / "alone"
    alone.mkdir()
    with simulating(alone) as single:
        prepare(single)
        subprocess.run(
            [command, "send", "--campaign", str(single.campaign), "--tokens", str(alone / "all.csv"), "--ledger",
             str(alone / "ledger"), "--progress", "none"], check=True)
        exported = subprocess.run(
            [command, "ledger", "export", "--ledger", str(alone / "ledger"), "--tokens", str(alone / "all.csv"),
             "--format", "jsonl"], check=True, capture_output=True, text=True)
        rows = [json.loads(line) for line in exported.stdout.splitlines()]
        check(rows)
        single.end()
        waves_of(single, {row["token"]: 0 for row in rows})


def test_a_freeze_has_what_arms_and_waves_need(
    simulator: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(simulator)
    directory = simulator.directory
    arguments = [
        "--input", str(directory / "devices.parquet"), "--campaign", str(simulator.campaign), "--parts", str(PARTS),
        "--work", str(directory / "work"), "--broadside", BROADSIDE]
    assert freeze(arguments) == 0, capsys.readouterr().err
    pin = json.loads((directory / "work/frozen/pin.json").read_text())
    assert pin["columns"] == ["token", "name", "tz"]
    # The freeze has its own copy of what arms send.
    assert (directory / "work/frozen/arms/a.json").read_bytes() == (directory / "a.json").read_bytes()
    for change in ({"on": f"{YEAR}-06-16"}, {"split-salt": "other"}, {"zone-default": "Asia/Tokyo"}):
        prepare(simulator, **change)
        assert freeze(arguments) == 2, change
        assert "campaign" in capsys.readouterr().err
    prepare(simulator)
    (directory / "b.json").write_text('{"aps":{"alert":"another"}}')
    assert freeze(arguments) == 2
    prepare(simulator)
    assert freeze(arguments) == 0
    campaign = json.loads(simulator.campaign.read_text())
    del campaign["on"]
    simulator.campaign.write_text(json.dumps(campaign))
    assert freeze(arguments) == 2
    assert "deliver-at needs a date" in capsys.readouterr().err
