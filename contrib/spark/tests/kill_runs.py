#!/usr/bin/env python3
"""Campaigns on Spark in which processes are killed at random instants, and what must hold after each.

    kill_runs.py RUNS [FIRST]

Each seed decides when which processes die: an executor, Broadside itself, or the driver, which is started
again. Every token is requested at most once; if Broadside itself was killed, rows in flight may be unknown, and
otherwise none is. Ends with 1 and the directory of the run that failed.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from conftest import simulating  # noqa: E402
from fleet import check, executor_of, make_table, running_parts, start  # noqa: E402

ROWS = 120_000
STARTS_LIMIT = 60


def child_of(process):
    """The process id of the child of a process that has `send` in its arguments; None if it has none."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == process and b"send" in (path.parent / "cmdline").read_bytes():
                return int(path.parent.name)
        except OSError:
            continue
    return None


def one_run(seed, directory):
    """Runs one campaign to its end, killing as the seed says; returns what was killed and the states."""
    random.seed(seed)
    victims = [random.choice(["executor", "driver", "broadside"]) for _ in range(random.randint(1, 3))]
    if seed % 4:
        victims = [victim for victim in victims if victim != "broadside"] or ["executor"]
    killed = []
    with simulating(directory) as simulator:
        make_table(directory / "devices.parquet", ROWS)
        options = ("--rate", "15000")
        driver = start(simulator, *options)
        starts = 1
        after = time.monotonic() + random.uniform(0, 3)
        while True:
            code = driver.poll()
            if code is not None:
                if code in (0, 6):
                    break
                # 7: what is left of the killed start is still ending.
                starts += 1
                assert starts < STARTS_LIMIT, f"exit code {code}"
                time.sleep(1)
                driver = start(simulator, *options)
            parts = running_parts(simulator)
            if victims and parts and time.monotonic() > after:
                try:
                    executor = executor_of(random.choice(list(parts.values())))
                except (AssertionError, OSError):
                    time.sleep(0.1)
                    continue  # The status of a process that has ended.
                victim = victims.pop(0)
                if victim == "driver":
                    driver.kill()
                elif victim == "executor":
                    os.kill(executor, signal.SIGKILL)
                else:
                    launcher = child_of(random.choice(list(parts.values()))["process"])
                    child = child_of(launcher)
                    if child is None:
                        continue
                    os.kill(child, signal.SIGKILL)
                killed.append(victim)
                after = time.monotonic() + random.uniform(0, 6)
            time.sleep(0.05)
        states = check(simulator, ROWS, may_lose="broadside" in killed)
    return killed, states


def main():
    runs, first = int(sys.argv[1]), int((sys.argv + ["1"])[2])
    for seed in range(first, first + runs):
        directory = Path(tempfile.mkdtemp(prefix=f"broadside-kill-{seed}."))
        try:
            killed, states = one_run(seed, directory)
        except BaseException:
            print(f"seed {seed}: see {directory}", file=sys.stderr)
            raise
        shutil.rmtree(directory)
        print(f"seed {seed}: killed {', '.join(killed) or 'nothing'}: {dict(states)}", flush=True)


if __name__ == "__main__":
    main()
