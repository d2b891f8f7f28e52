"""What a start of the same command does after the campaign is finished, on Spark without a cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from conftest import BROADSIDE, Simulator, token, wait_for

from broadside_fleet import spark_command
from broadside_fleet.errors import FleetError
from broadside_fleet.files import read_json
from broadside_fleet.freeze_command import main as freeze
from broadside_fleet.settle import export, further_columns
from broadside_fleet.spark_command import main
from broadside_fleet.work import Work

ROWS = 3000
PARTS = 3


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    session = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.shuffle.partitions", "3").getOrCreate())
    yield session
    session.stop()


class Campaign:
    """A small campaign, and the command that sends it."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.directory = simulator.directory
        self.work = Work(self.directory / "work")
        self.outcomes = self.directory / "outcomes.parquet"
        pq.write_table(pa.table({"token": [token(n) for n in range(ROWS)], "name": ["x"] * ROWS}),
                       self.directory / "devices.parquet")

    def start(self, *options: str) -> int:
        return main([
            "--input", str(self.directory / "devices.parquet"), "--campaign", str(self.simulator.campaign),
            "--parts", str(PARTS), "--work", str(self.work.root), "--broadside", BROADSIDE, *options])

    def settle(self, *options: str) -> int:
        return self.start("--outcomes", str(self.outcomes), *options)

    def freeze(self) -> int:
        """Makes the parts alone."""
        return freeze([
            "--input", str(self.directory / "devices.parquet"), "--campaign", str(self.simulator.campaign),
            "--parts", str(PARTS), "--work", str(self.work.root), "--broadside", BROADSIDE])

    def begin(self, part: int, *options: str) -> subprocess.Popen[bytes]:
        """Begins an attempt by hand."""
        return subprocess.Popen(
            ["sh", str(self.work.script), str(part), str(PARTS), "--progress", "none", *options],
            env={**os.environ, "BROADSIDE": BROADSIDE}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def send(self, part: int, *options: str) -> int:
        """An attempt by hand, to its end."""
        return self.begin(part, *options).wait()

    def canaries(self) -> list[Any]:
        return [json.loads(self.work.state("result", part).read_text())["summary"]["guards"]["canary"]
                for part in range(1, PARTS + 1)]

    def requests(self) -> Counter[str]:
        self.simulator.end()
        return Counter(line[4] for line in self.simulator.requests())


@pytest.fixture
def campaign(simulator: Simulator, spark: SparkSession) -> Campaign:
    return Campaign(simulator)


def test_tables_follow_the_ledgers(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    directory, work = campaign.directory, campaign.work
    report = "--report", str(directory / "page.html")
    assert campaign.settle(*report) == 0, capsys.readouterr().err
    assert pq.read_table(campaign.outcomes).num_rows == ROWS
    note = read_json(work.run / "outcomes.json")
    # As a start from another directory would name it.
    assert note and note["target"] == f"file:{campaign.outcomes}" and note["done"]
    before = campaign.outcomes.stat().st_mtime_ns, (work.root / "merged").stat().st_mtime_ns

    # Nothing has changed: nothing is written.
    assert campaign.settle(*report) == 0
    assert (campaign.outcomes.stat().st_mtime_ns, (work.root / "merged").stat().st_mtime_ns) == before

    # Nor if a person starts a part again that has nothing left.
    assert campaign.send(2) == 0
    assert campaign.settle(*report) == 0
    assert (campaign.outcomes.stat().st_mtime_ns, (work.root / "merged").stat().st_mtime_ns) == before

    # The table was deleted; merging was interrupted.
    shutil.rmtree(campaign.outcomes)
    (work.root / "merged" / "manifest.json").unlink()
    (work.root / ".merged.new").mkdir()
    assert campaign.settle(*report) == 0, capsys.readouterr().err
    assert pq.read_table(campaign.outcomes).num_rows == ROWS
    assert not (work.root / ".merged.new").exists()
    assert set(campaign.requests().values()) == {1}


def test_a_part_that_a_person_continues(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    """Its result, the table and the merged ledger follow."""
    directory, work = campaign.directory, campaign.work
    report = "--report", str(directory / "page.html")
    assert campaign.freeze() == 0
    attempt = campaign.begin(2, "--assume-canary", "--rate", "200")
    wait_for(
        lambda: sum(path.stat().st_size for path in work.ledger(2).glob("segment-*")) > 4000, attempt)
    attempt.kill()
    attempt.wait()
    # What was in flight is unknown.
    assert campaign.settle(*report) == 6, capsys.readouterr().err
    unknown = Counter(pq.read_table(campaign.outcomes)["state"].to_pylist())["unknown"]
    assert unknown > 0
    before = campaign.outcomes.stat().st_mtime_ns, (work.root / "merged").stat().st_mtime_ns

    assert campaign.send(2, "--assume-canary", "--retry", "unknown") == 0
    assert campaign.settle(*report) == 0, capsys.readouterr().err
    assert campaign.outcomes.stat().st_mtime_ns != before[0]
    assert (work.root / "merged").stat().st_mtime_ns != before[1]
    assert "unknown" not in pq.read_table(campaign.outcomes)["state"].to_pylist()
    requests = campaign.requests()
    assert len(requests) == ROWS and requests.total() - ROWS <= unknown


def test_a_table_that_was_there_before_is_never_replaced(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = campaign.directory / "foreign.parquet"
    foreign.mkdir()
    (foreign / "mine").touch()
    for _ in range(2):
        assert campaign.start("--dead", str(foreign)) == 2
        assert "exists already: name another path" in capsys.readouterr().err
    assert [path.name for path in foreign.iterdir()] == ["mine"]


def test_an_old_or_damaged_ledger_makes_no_table(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    work = campaign.work
    ledger, old, newest = work.ledger(2), campaign.directory / "old", campaign.directory / "newest"
    assert campaign.freeze() == 0
    attempt = campaign.begin(2, "--assume-canary", "--rate", "200")
    wait_for(lambda: sum(path.stat().st_size for path in ledger.glob("segment-*")) > 4000, attempt)
    shutil.copytree(ledger, old, ignore=shutil.ignore_patterns("control"))
    assert attempt.wait() == 0
    assert campaign.start() == 0
    shutil.copytree(ledger, newest)

    def settle(problem: str) -> None:
        capsys.readouterr()
        assert campaign.settle() == 5
        errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("broadside_spark: ")]
        assert len(errors) == 1 and errors[0].startswith("broadside_spark: part 2: "), errors
        assert problem in errors[0] and "Traceback" not in errors[0]
        note = read_json(work.run / "outcomes.json")
        assert note and not note["done"]

    # As if it was taken in the middle of the last attempt: of that, no other word is left.
    shutil.rmtree(ledger)
    shutil.copytree(old, ledger)
    shutil.copyfile(newest / "epoch", ledger / "epoch")
    settle("settled rows")
    next(ledger.glob("segment-*")).write_bytes(b"x" * 4096)
    settle("")
    shutil.rmtree(ledger)
    shutil.copytree(newest, ledger)
    assert campaign.settle() == 0, capsys.readouterr().err
    assert pq.read_table(campaign.outcomes).num_rows == ROWS
    # Lost: it is not begun again, and the campaign is not finished any more.
    ledger.rename(campaign.directory / "lost")
    assert campaign.settle() == 2
    assert set(campaign.requests().values()) == {1}


def test_an_input_that_can_not_be_read_is_one_line(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = campaign.directory / "devices.parquet"
    table = devices.read_bytes()
    devices.unlink()
    devices.mkdir()
    (devices / "a.parquet").write_bytes(table)
    for option, text, code, said in (
        ("--filter", "name =", 2, "--filter name =: [PARSE_SYNTAX_ERROR]"),
        ("--canary", "0", 5, "[FAILED_READ_FILE"),
    ):
        assert campaign.start(option, text) == code
        errors = [line for line in capsys.readouterr().err.splitlines() if "broadside_spark: " in line]
        assert len(errors) == 1 and f"broadside_spark: {said}" in errors[0], errors
        shutil.rmtree(campaign.work.root)
        (devices / "b.parquet").write_bytes(b"garbage" * 100)
    assert not campaign.requests()


def test_an_export_of_another_form_is_refused_at_once(tmp_path: Path) -> None:
    """A newer Broadside may write more columns, and does not end before all are read."""
    newer = tmp_path / "newer"
    newer.write_text("#!/bin/sh\nexec yes '{\"line\": 1, \"another\": 2}'\n")
    newer.chmod(0o755)
    errors: list[FleetError] = []

    def read() -> None:
        try:
            list(export(Work(tmp_path), str(newer), 1, {}))
        except FleetError as error:
            errors.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert errors[0].exit_code == 5 and "another" in errors[0].message, errors


def test_rows_that_name_their_topics_are_exported_with_them(tmp_path: Path) -> None:
    """The campaign says which columns an export has behind the others."""
    assert further_columns({"topic": "com.example.app"}) == []
    columns = further_columns({"topic": "{{app}}", "split": "a=50"})
    assert columns == ["arm", "topic"]
    row = {"line": 2, "token": "ab", "state": "accepted", "status": 200, "reason": None, "apns_timestamp_ms": None,
           "attempts": 1, "apns_id": "id", "settled_at_ms": 5, "arm": "a", "topic": "com.example.shop"}
    command = tmp_path / "broadside"
    command.write_text(f"#!/bin/sh\necho '{json.dumps(row)}'\n")
    command.chmod(0o755)
    batches = list(export(Work(tmp_path), str(command), 1, {"accepted": 1}, columns))
    assert [batch.to_pylist() for batch in batches] == [[{"part": 1, **row}]]


def test_a_canary_is_not_passed_by_starting_again(campaign: Campaign) -> None:
    """Part 1 was sent without one: the next part has it, and only then the others are told that it passed."""
    assert campaign.freeze() == 0
    assert campaign.send(1, "--assume-canary") == 0
    assert campaign.start("--canary", "50") == 0
    assert campaign.canaries()[1:] == ["passed", "assumed"]
    assert set(campaign.requests().values()) == {1}


def test_a_canary_without_a_request_proves_nothing(campaign: Campaign) -> None:
    suppressed = [token(n) for n in range(ROWS) if zlib.crc32(token(n).encode()) % PARTS == 0]
    (campaign.directory / "suppressed.txt").write_text("\n".join(suppressed) + "\n")
    text = campaign.simulator.campaign.read_text()
    campaign.simulator.campaign.write_text(text.replace("{", '{"suppress": "suppressed.txt",', 1))
    assert campaign.start("--canary", "50") == 0
    assert campaign.canaries()[1:] == ["passed", "assumed"]
    assert len(campaign.requests()) == ROWS - len(suppressed)


@pytest.mark.parametrize("file,option", [("0.5", None), ("0.5", "0"), ("5", "0.9"), ("5", "nan")])
def test_a_rate_below_one_is_refused(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: str,
    option: str | None
) -> None:
    """Whether the command or the campaign file has it: the least that a part can have is 1."""
    monkeypatch.setattr(spark_command, "Driver", None)
    text = campaign.simulator.campaign.read_text()
    campaign.simulator.campaign.write_text(text.replace("{", f'{{"rate": {file},', 1))
    assert campaign.start(*(["--rate", option] if option else [])) == 2
    assert "is not a number from 1 to 1,000,000,000" in capsys.readouterr().err
    assert not campaign.requests()


def test_a_report_without_a_ledger_of_each_part_is_refused_before_the_send(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"token": [token(1), token(2)], "name": ["x"] * 2}), campaign.directory / "devices.parquet")
    assert campaign.start("--report", str(campaign.directory / "page.html")) == 2
    assert "has no rows, and a report needs a ledger of each part" in capsys.readouterr().err
    assert not campaign.work.has_begun()
    assert campaign.settle() == 0
    assert sorted(campaign.requests()) == sorted([token(1), token(2)])


def test_speculation_is_refused(
    campaign: Campaign, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    spark.conf.set("spark.speculation", "true")
    try:
        assert campaign.start() == 2
        assert "spark.speculation is true" in capsys.readouterr().err
    finally:
        spark.conf.unset("spark.speculation")
    assert not campaign.requests()


def test_a_state_that_a_power_cut_has_emptied(campaign: Campaign) -> None:
    assert campaign.start("--canary", "0") == 0
    campaign.work.state("result", 2).unlink()
    campaign.work.state("status", 2).write_text("")
    assert campaign.start("--canary", "0", "--rate", "1000") == 0
