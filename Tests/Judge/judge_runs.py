#!/usr/bin/env python3
"""Interrupts runs at random times, and compares the ledger with the list and with a journal of the
requests.

    Tests/Judge/judge_runs.py BROADSIDE [COUNT [FIRST-SEED]]

Each run has a generated list in a random format, and random options. It is interrupted one to three
times (SIGINT or SIGKILL), exported with all states after each interruption, and resumed to its end.
Every row's line, token and state must agree with an independent implementation's result for the
list, and with the requests. With --on-lost record, no request is made twice. Some runs are the
shards of one list, which are merged at the end. If anything differs, ends with 1 and prints the
seeds.
"""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from generated_list import GeneratedList  # noqa: E402
from judged_command import Difference, judge, expect, exported  # noqa: E402
from reference_list import Reading, Refused  # noqa: E402

STATES = ["accepted", "rejected", "invalid", "skipped", "failed", "unknown", "remaining",
          "in-doubt"]
ALL = [word for state in STATES for word in ("--state", state)]
SETTLED = STATES[:6]


class Simulator:
    """`broadside simulate` with a journal. It is ended before the journal is read, so that the
    journal is complete."""

    def __init__(self, command, state):
        self.command, self.state = command, state
        self.number = 0
        self.requests = collections.OrderedDict()
        self.repeated = []

    def start(self, latency):
        self.number += 1
        self.journal = f"{self.command.directory}/journal{self.number}"
        self.process = subprocess.Popen(
            [self.command.path, "simulate", "--listen", "127.0.0.1:0", "--state", self.state,
             "--journal", self.journal, "--latency", latency, "--unregistered", "0.05",
             "--bad-token", "0.01"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.process.stdout.readline()
        self.line = self.process.stdout.readline().split()
        return self.line[2:self.line.index("--tokens")]

    def stop(self):
        """Ends the simulator, and records each request by its apns-id."""
        self.process.terminate()
        self.process.wait()
        with open(self.journal) as file:
            next(file)
            for line in file:
                _, _, _, name, token, status, reason = line.rstrip("\n").split(",")
                if name in self.requests:
                    self.repeated.append(name)
                self.requests[name] = (token, int(status), reason)


class Trial:
    def __init__(self, seed, command, state):
        self.seed, self.command = seed, command
        self.rng = rng = random.Random(seed * 13 + 5)
        self.directory = command.directory
        self.simulator = Simulator(command, state)
        count = rng.choice([300, 800, 1500, 3000])
        self.list = GeneratedList(seed, rows=count, malformed=rng.choice([0, 0.01, 0.03]))
        self.path = os.path.basename(self.list.write(self.directory))
        self.reading = Reading(self.list.data, self.list.form, self.list.separator,
                               self.list.column)
        self.tokens = [self.reading.token(row) for row in self.reading.rows]
        self.options, self.stdin = [], None
        self.limit = self.shards = None
        self.suppressed, self.skips_copies = set(), False
        self.choose()

    def choose(self):
        rng = self.rng
        rows = self.reading.rows
        if self.list.form != "lines":
            self.options += ["--token-column", self.list.column]
        if rng.random() < 0.25:
            self.shards = rng.choice([2, 3])
        elif rng.random() < 0.2:
            with open(f"{self.directory}/{self.path}", "rb") as file:
                self.stdin = file.read()
            self.path = "-"
            self.options += ["--format", self.list.form]
        if rng.random() < 0.3:
            self.limit = rng.randint(1, len(rows) * 5 // 4)
            self.options += ["--limit", str(self.limit)]
        if rng.random() < 0.3 and self.list.column == "token":
            tokens = [token for token in self.tokens if token]
            self.suppressed = set(rng.sample(tokens, len(tokens) // rng.choice([3, 20])))
            with open(f"{self.directory}/stops.txt", "w") as file:
                file.writelines(token + "\n" for token in sorted(self.suppressed | {"ab" * 32}))
            self.options += ["--suppress", "stops.txt"]
        if rng.random() < 0.3:
            self.skips_copies = True
            self.options += ["--duplicates", "skip"]
        if rng.random() < 0.25:
            self.options += ["--canary", str(rng.choice([10, 200])), "--canary-max-rejected", "100"]
        self.options += ["--connections", str(rng.randint(1, 3)), "--reactors",
                         str(rng.choice([1, 1, 2]))]
        if rng.random() < 0.5:
            self.options += ["--rate", str(rng.choice([2000, 10000, 40000]))]

    def of_shard(self, index):
        """Returns the rows of a run in order: those of its part, up to its limit."""
        rows = self.reading.rows
        if index is not None:
            count, size = self.shards, len(self.list.data)
            if self.list.packing:
                rows = [row for row in rows if row.number % count == index - 1]
            else:
                low, high = size * (index - 1) // count, size * index // count
                rows = [row for row in rows if low <= row.start < high]
        return rows[:self.limit]

    def call(self, ledger, index):
        with open(f"{self.directory}/payload.json", "w") as file:
            file.write('{"aps":{"alert":"Good evening"}}')
        # The paths in the line that the simulator prints are absolute.
        server = self.simulator.start(self.rng.choice(["0ms", "2ms", "20ms"]))
        shard = ["--shard", f"{index}/{self.shards}"] if index else []
        return ["send", *server, "--tokens", self.path, "--payload", "payload.json",
                "--max-invalid", "100", "--max-bad-tokens", "100", "--abort-after", "100000",
                "--ledger", ledger, "--resume-or-begin", *shard, *self.options]

    def run(self):
        if not any(self.tokens):
            return "empty"
        ledgers = []
        for index in range(1, self.shards + 1) if self.shards else [None]:
            ledger = f"ledger{index or ''}"
            if self.one(ledger, index):
                ledgers.append(ledger)
        if self.shards and len(ledgers) == self.shards:
            self.command("ledger", "merge", "--output", "merged", *ledgers, codes=[0])
            rows = sorted((row for index in range(1, self.shards + 1)
                           for row in self.of_shard(index)), key=lambda row: row.number)
            self.killed = self.was_killed
            self.judge("merged", rows, is_over=True)
        return "interrupted" if self.was_interrupted else "too quick"

    was_interrupted = was_killed = False

    def one(self, ledger, index):
        """Interrupts a run, checks each state that it leaves, and resumes it to its end."""
        rng, rows = self.rng, self.of_shard(index)
        self.killed = False
        for _ in range(rng.randint(1, 3)):
            call = self.call(ledger, index)
            process = subprocess.Popen(
                [self.command.path, *call], cwd=self.directory, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                process.stdin.write(self.stdin or b"")
                process.stdin.close()
            except BrokenPipeError:
                pass
            time.sleep(rng.random() ** 2 * 0.4)
            is_kill = rng.random() < 0.5
            process.send_signal(signal.SIGKILL if is_kill else signal.SIGINT)
            said = process.stderr.read().decode("utf-8", "replace")
            code = process.wait()
            process.stderr.close()
            self.simulator.stop()
            if code == 2 and not any(self.sendable(rows)):
                return False
            expect(code in ((-9, 0, 6) if is_kill else (0, 3, 6, -2)), f"exit code {code}", call,
                   said)
            self.killed |= code == -9
            self.was_killed |= code == -9
            self.was_interrupted |= code in (-9, 3)
            if os.path.exists(f"{self.directory}/{ledger}/manifest.json"):
                self.judge(ledger, rows, is_over=code in (0, 6))
        call = self.call(ledger, index)
        self.command(*call, input=self.stdin, codes=[0, 2, 6])
        self.simulator.stop()
        if self.command.code == 2:
            expect(not any(self.sendable(rows)), "refused", self.command.said)
            return False
        self.judge(ledger, rows, is_over=True)
        return True

    def sendable(self, rows):
        for row in rows:
            token = self.tokens[row.number]
            yield token is not None and token not in self.suppressed

    def judge(self, ledger, rows, is_over):
        """Compares an export with the list and the requests."""
        requests = self.simulator.requests
        expect(not self.simulator.repeated, "requests were made twice", self.simulator.repeated[:3])
        found = exported(self.command("ledger", "export", "--ledger", ledger, *ALL,
                                      *(["--tokens", self.path] if self.path != "-" else []),
                                      codes=[0]))
        expect(len(found) == len(rows), "rows of the export", len(found), len(rows))
        counts = collections.Counter()
        earlier = self.copies() if self.skips_copies else set()
        for entry, row in zip(found, rows):
            token = self.tokens[row.number]
            state = entry["state"]
            counts[state] += 1
            expect(int(entry["line"]) == row.line, "line", entry, row.line)
            if token:
                expect(entry["token"] == token, "token", entry, token)
            request = requests.get(entry["apns_id"])
            if state in ("accepted", "rejected"):
                expect(request and request[0] == token, "an outcome without its request", entry)
                expect(request[1] == int(entry["status"]), "status", entry, request)
                expect((request[1] == 200) == (state == "accepted"), "state", entry, request)
                expect(state == "accepted" or entry["reason"] == request[2], "reason", entry)
            elif state in ("invalid", "skipped", "remaining"):
                expect(request is None, f"a row that is {state} was sent", entry)
            if state == "invalid":
                expect(token is None and entry["reason"] in self.reading.reason(row), "invalid",
                       entry)
            if state == "skipped":
                expect(token in self.suppressed or row.number in earlier, "skipped", entry)
            expect(state != "unknown" or self.killed, "unknown without a kill", entry)
            expect(state != "failed", "failed", entry)
            if is_over:
                expect(state in SETTLED, "a finished run", entry)
                if token and (token in self.suppressed or row.number in earlier):
                    expect(state == "skipped", "sent in spite of its options", entry)
        statistics = json.loads(self.command("ledger", "stats", "--ledger", ledger, "--json",
                                             codes=[0]))
        for state in SETTLED:
            expect(statistics[state] == counts[state], f"stats: {state}", statistics, counts)
        if statistics["remaining"] is not None:
            expect(statistics["remaining"] == counts["remaining"] + counts["in-doubt"],
                   "stats: remaining", statistics, counts)
            expect(statistics["rows"] == len(rows), "stats: rows", statistics, len(rows))
        self.command("ledger", "verify", "--ledger", ledger, codes=[0])

    def copies(self):
        """Returns the numbers of valid rows whose token an earlier row has, too."""
        seen, found = set(), set()
        for row in self.reading.rows:
            token = self.tokens[row.number]
            if token is None or token in self.suppressed:
                continue
            (found if token in seen else seen).add(row.number if token in seen else token)
        return found


def run(seed, command, home):
    try:
        trial = Trial(seed, command, f"{home}/apns")
    except Refused:
        # judge_lists.py covers those.
        return "refused"
    try:
        return trial.run()
    except Difference as difference:
        raise Difference(
            f"{trial.list.form}{trial.list.packing} {trial.path} shards {trial.shards} "
            f"{' '.join(trial.options)}: {difference}") from difference
    finally:
        if trial.simulator.number and trial.simulator.process.poll() is None:
            trial.simulator.stop()


def main():
    judge("runs", 40, 20, run, lambda results, failed: (
        f"{results['interrupted']} runs interrupted and resumed, {results['too quick']} that ended"
        f" before, {failed} with a difference"))


if __name__ == "__main__":
    main()
