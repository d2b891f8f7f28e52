"""A campaign on Spark, with an executor killed in the middle."""

from __future__ import annotations

import bisect
import json
import os
import signal

from conftest import BROADSIDE, Simulator, wait_for
from fleet import (
    BLANK, COPIES, FILTER, MALFORMED, PARTS, ROWS, check, executor_of, make_table, running_parts, start)

from broadside_fleet.freeze_command import main as freeze


RATE = 15_000


def test_an_executor_is_killed_in_the_middle(simulator: Simulator) -> None:
    """Every token once, nothing unknown, outcomes and dead tokens as computed here."""
    directory = simulator.directory
    make_table(directory / "devices.parquet")
    driver = start(
        simulator, "--rate", str(RATE), "--report", str(directory / "page.html"),
        "--metrics", str(directory / "metrics.prom"))
    # Not the canary's part alone: two executors have one each.
    parts = wait_for(
        lambda: len(found := running_parts(simulator)) == 2 and found or None, driver)
    victim = executor_of(next(iter(parts.values())))
    os.kill(victim, signal.SIGKILL)
    assert driver.wait() == 0, (directory / "spark.log").read_text()[-4000:]

    stopped = [
        path for path in (directory / "work/run/log").iterdir()
        if "broadside: stopped by a signal" in path.read_text()]
    assert len(stopped) == 1, "the attempt in the killed executor"
    said = (directory / "spark.log").read_text()
    assert f"{BLANK} rows without a token" in said
    assert "ETA" in said and f"of {ROWS + COPIES + MALFORMED:,}" in said
    assert "complete" in (directory / "page.html").read_text()
    metrics = (directory / "metrics.prom").read_text().splitlines()
    assert f'broadside_fleet_parts{{state="finished"}} {PARTS}' in metrics
    assert ROWS + COPIES + MALFORMED == sum(
        int(line.rsplit(" ", 1)[1]) for line in metrics if line.startswith("broadside_rows_settled_total{"))
    parts_of = {
        path.name: json.loads(path.read_text())["summary"]["guards"]["canary"]
        for path in (directory / "work/run/result").iterdir()}
    assert parts_of == {
        "part-0001.json": "passed", **{f"part-000{n}.json": "assumed" for n in (2, 3, 4)}}

    # One machine makes the same parts without Spark: DuckDB takes the same filter.
    assert freeze([
        "--input", str(directory / "devices.parquet"), "--filter", FILTER, "--campaign",
        str(simulator.campaign), "--parts", str(PARTS), "--registered-column", "Registered",
        "--work", str(directory / "alone"), "--broadside", BROADSIDE]) == 0
    frozen = [
        [file["sha256"] for file in json.loads(
            (directory / work / "frozen/manifest.json").read_text())["files"]]
        for work in ("work", "alone")]
    assert frozen[0] == frozen[1]

    # The same command again sends nothing, and leaves the tables alone.
    driver = start(simulator, "--rate", str(RATE))
    assert driver.wait() == 0
    states = check(simulator)
    # In flight at the kill were some hundreds: their responses were awaited and recorded.
    assert states["unknown"] == 0
    # In no five seconds were there more requests than the rate allows; a tenth more, as a simulator that had to
    # wait for a processor sees those of its pause later.
    times = sorted(int(line[0]) for line in simulator.requests())
    most = max(bisect.bisect_left(times, time + 5_000_000) - index for index, time in enumerate(times))
    assert most < 1.1 * 5 * RATE, f"{most} requests within five seconds"
