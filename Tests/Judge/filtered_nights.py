#!/usr/bin/env python3
"""Twenty nights of a campaign with a filter, dead tokens, a cap, opt-outs and duplicates, in simulated time. This
file's own implementation of the rules decides the expected outcome of each row of each night. Nights are started twice,
killed, stopped, refused and given up. From Broadside, it uses only exit codes, exports, printed counts and the requests
that a server received. The rows that a night sends are computed before the night starts.

    filtered_nights.py COMMAND DIRECTORY CAMPAIGN RECORD FATES REFUSING TOKENS SEED FIRST PRELOAD KILLER

CAMPAIGN has the arguments of a send (JSON) without list and ledger. RECORD is the server's record, and FATES is the
file that decides its responses. REFUSING is an endpoint that refuses all requests. TOKENS is a file of tokens, and
FIRST the second at which day 1 begins (UTC). PRELOAD is libfaketime, and KILLER is Tests/Shims/kill-at-call.
"""
import collections
import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import night_month
import stale_clocks

(COMMAND, DIRECTORY, CAMPAIGN, RECORD, FATES, REFUSING, TOKENS, SEED, FIRST, PRELOAD, KILLER) = sys.argv[1:]
second_of = night_month.Month(int(FIRST)).second_of
NIGHTS = 20
HOUR = 3600
# Counted back from a night, these times never end exactly at another night.
CAP, PERIOD, DEAD_FOR = 3, 156 * HOUR, 204 * HOUR
chance = random.Random(int(SEED))
tokens = open(TOKENS).read().split()
opted_out = set(tokens[::13])
folder = os.path.join(DIRECTORY, "nights", "evening")
os.mkdir(os.path.join(DIRECTORY, "nights"))


def check(condition, *words):
    if not condition:
        print("WRONG:", *words)
        sys.exit(1)


def write(name, text):
    with open(os.path.join(DIRECTORY, name), "w") as file:
        file.write(text)


# The devices: most are alive, some die, some of these return weeks later, and some never had a valid token.
dies = {token: chance.randint(1, NIGHTS) for token in chance.sample(tokens, len(tokens) // 4)}
returns = {token: day + chance.randint(6, 14) for token, day in dies.items() if chance.random() < 0.5}
bad = set(chance.sample([token for token in tokens if token not in dies], 3))


def fate(token, day):
    if token in bad:
        return 400, "BadDeviceToken", None
    if day >= dies.get(token, NIGHTS + 99) and day < returns.get(token, NIGHTS + 99):
        return 410, "Unregistered", second_of(dies[token], "12:00") * 1000
    return None


class Night:
    def __init__(self, day):
        self.day = day
        self.at = second_of(day, "23:55")
        self.date = time.strftime("%Y-%m-%d", time.localtime(self.at))
        # State and reason by row; the server's status by token; rows that may be unknown after a kill.
        self.expected, self.answers, self.was_killed, self.lost = [], {}, False, None
        self.rows = self.make_rows()
        self.list = f"list-{self.date}.csv"
        write(self.list, "token,country,age\n" + "".join(",".join(row) + "\n" for row in self.rows))

    def make_rows(self):
        """Returns a list that differs each night: tokens are missing, repeated, broken, or in capitals."""
        rows = []
        for token in chance.sample(tokens, chance.randint(len(tokens) * 2 // 3, len(tokens))):
            for _ in range(2 if chance.random() < 0.1 else 1):
                country = chance.choice(["FR", "BE", "FR", "BE", "DE", ""])
                age = chance.choice(["17", "18", "18.0", "30", "44.5", "1e2", "", "old"])
                shown = token.upper() if chance.random() < 0.2 else token
                rows.append(("none" if chance.random() < 0.05 else shown, country, age))
        chance.shuffle(rows)
        return rows

    def matches(self, row):
        """Whether a row matches --where 'country=FR,BE' and --where 'age>=18'. An empty value of an ordered column
        never matches."""
        _, country, age = row
        try:
            return country in ("FR", "BE") and float(age) >= 18
        except ValueError:
            return False

    def expect(self, nights):
        """Computes the expected outcome of each row from the verdicts of the earlier nights."""
        verdicts = collections.defaultdict(list)
        for night in nights:
            for token, status in night.verdicts().items():
                verdicts[token].append((night.at, status))
        sent = set()
        for row in self.rows:
            token = row[0].lower()
            if token == "none":
                # The filter reads its columns before the token is checked.
                self.expected.append("invalid" if self.matches(row) else "Filtered")
                continue
            known = verdicts[token]
            dead = bool(known) and known[-1][1] == 410 and known[-1][0] >= self.at - DEAD_FOR
            reached = sum(status == 200 and at >= self.at - PERIOD for at, status in known)
            reason = ("Suppressed" if token in opted_out else "Duplicate" if token in sent
                      else "Filtered" if not self.matches(row) else "DeadToken" if dead
                      else "FrequencyCap" if reached >= CAP else None)
            if reason is None:
                sent.add(token)
            self.expected.append(reason or "sent")

    def export(self):
        done = subprocess.run([COMMAND, "ledger", "export", "--ledger", os.path.join(folder, self.date)],
                              cwd=DIRECTORY, capture_output=True, text=True)
        check(done.returncode == 0, self.date, "is not exported:", done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def unknown(self):
        if self.lost is None:
            self.lost = {row["token"].lower() for row in self.export() if row["state"] == "unknown"}
            check(self.was_killed or not self.lost, self.date, self.lost, "is unknown")
        return self.lost

    def verdicts(self):
        """Returns the statuses that count for later nights. Statuses that a kill kept from the ledger do not count."""
        unknown = self.unknown()
        return {token: status for token, status in self.answers.items() if token not in unknown}

    def judge(self, isWhole):
        """Compares each row of the ledger with the expected row."""
        found = self.export()
        lines = [int(row["line"]) - 2 for row in found]
        check(lines == sorted(set(lines) & set(range(len(self.rows)))), self.date, "other rows:", lines)
        check(not isWhole or len(lines) == len(self.rows), self.date, "has", len(lines), "of", len(self.rows), "rows")
        for index, row in zip(lines, found):
            expected = self.expected[index]
            token = self.rows[index][0].lower()
            what = (self.date, f"row {index}", self.rows[index], "expected", expected, "found", dict(row))
            state = row["state"]
            if not isWhole and state in ("remaining", "in-doubt"):
                check(token not in self.answers or expected != "sent" or self.was_killed, *what)
            elif expected == "sent":
                status = self.answers.get(token)
                if state == "unknown":
                    check(self.was_killed and row["reason"] == "ConnectionLost", *what)
                else:
                    check(status is not None, *what)
                    check(state == ("accepted" if status == 200 else "rejected"), *what)
                    check(int(row["status"]) == status, *what)
            elif expected == "invalid":
                check(state == "invalid" and row["reason"] == "MalformedToken", *what)
            else:
                check(state == "skipped" and row["reason"] == expected, *what)
        wanted = {row[0].lower() for row, expected in zip(self.rows, self.expected) if expected == "sent"}
        check(set(self.answers) <= wanted, self.date, "sent to", set(self.answers) - wanted)


record = night_month.Record(RECORD)


def settle(night):
    """Records the server's responses since the last start. They belong to `night`."""
    for response in record.new_responses():
        token = response["path"].split("/")[-1]
        check(token not in night.answers, night.date, token, "was sent twice")
        night.answers[token] = int(response["action"])


def environment(second, kill):
    values = dict(os.environ, PRELOAD=PRELOAD, FAKETIME=f"{second - int(time.time()):+d}", NO_FAKE_STAT="1",
                  FAKETIME_DONT_FAKE_MONOTONIC="1")
    return dict(values, KILLER=KILLER if kill else "", KILL_AT=str(kill or 0))


def begin(night, second, more=(), kill=None):
    settings = dict(json.loads(CAMPAIGN), tokens=night.list, suppress="opt-outs.txt", duplicates="skip",
                    where=["country=FR,BE", "age >= 18"], cap=f"{CAP}/{PERIOD // HOUR}h", history=["nights/evening"])
    settings["dead-for"] = f"{DEAD_FOR // HOUR}h"
    write("evening.json5", json.dumps(settings))
    write("fates.new", json.dumps({token: fate(token, night.day) for token in tokens if fate(token, night.day)}))
    os.rename(os.path.join(DIRECTORY, "fates.new"), FATES)
    stale_clocks.remove()
    # A process that is killed leaves its clock in shared memory if it was the first to load libfaketime. A shell
    # therefore loads it first.
    shell = """'LD_PRELOAD="$KILLER $LD_PRELOAD" "$@"; exit $?'"""
    front = ["bash", "-c", f'LD_PRELOAD="$PRELOAD" exec bash -c {shell} bash "$@"', "bash"]
    return subprocess.Popen(
        [*front, COMMAND, "night", "--campaign", "evening.json5", "--ledgers", "nights", *more], cwd=DIRECTORY,
        env=environment(second, kill), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(night, second, more=(), kill=None, codes=(0,), after=None, kill_signal=signal.SIGKILL):
    """Runs one start, to its end or until the ledger has some verdicts."""
    process = begin(night, second, more, kill)
    if after is not None:
        segment = os.path.join(folder, night.date, "segment-0001-00")
        while process.poll() is None and not (os.path.exists(segment) and os.path.getsize(segment) > after):
            time.sleep(0.01)
        children = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
        for child in children:
            try:
                os.kill(int(child), kill_signal)
            except ProcessLookupError:
                # It has come to its end.
                pass
    output, errors = process.communicate()
    settle(night)
    code = process.returncode
    night.lost = None
    if code == 137:
        night.was_killed = True
    check(code in codes, night.date, list(more), "exit", code, errors)
    check("WARN" not in errors and "Fatal" not in errors, errors)
    return code, output, errors


def dry(night):
    """Compares the counts of a dry run before the night begins."""
    _, output, _ = run(night, night.at, ["--dry-run"])
    counts = collections.Counter(night.expected)
    check(int(re.search(r"^to send +(\d+)$", output, re.M)[1]) == counts["sent"], night.date, output, counts)
    for reason in ("Suppressed", "Duplicate", "Filtered", "DeadToken", "FrequencyCap"):
        check(f"{reason} {counts[reason]}" in output, night.date, output, counts)
    check(not os.path.exists(os.path.join(folder, night.date)), night.date, "a dry run began it")


def finish(night, second):
    """Starts the night until it is finished, and once more: the last start must send nothing."""
    code = None
    while code not in (0, 6):
        code = run(night, second, codes=(0, 6))[0]
    before = dict(night.answers)
    again, _, errors = run(night, second + 60, codes=(0, 6))
    check(again == code and "is finished: nothing is sent" in errors, night.date, errors)
    check(night.answers == before, night.date, "a finished night was sent again")
    check((code == 6) == bool(night.unknown()), night.date, code)
    names = ", ".join(reversed(left))
    words = ("", f"the night of {names} is not complete, and is not continued by this start",
             f"the nights of {names} are not complete, and are not continued by this start")[len(left)]
    check(words in errors, night.date, left, errors)
    night.judge(True)


def notes():
    path = os.path.join(folder, "nights")
    return open(path).read().splitlines() if os.path.exists(path) else []


def evening(night, kind):
    after = second_of(night.day + 1, "00:10")
    if kind == "dry":
        dry(night)
    if kind == "twice":
        both = [begin(night, night.at, ["--rate", "30"]) for _ in range(2)]
        errors = [process.communicate()[1] for process in both]
        settle(night)
        check(sorted(process.returncode for process in both) in ([0, 0], [0, 7]), night.date, errors)
    elif kind == "killed at a call":
        # After midnight, a start before the first note would begin another night.
        while not any(line.startswith(night.date) for line in notes()):
            run(night, night.at, kill=chance.randint(1, 150), codes=(0, 137))
        run(night, after, kill=chance.randint(20, 150), codes=(0, 6, 137))
    elif kind == "killed":
        run(night, night.at, ["--rate", "30"], codes=(0, 137), after=chance.randint(60, 600))
    elif kind == "stopped":
        run(night, night.at, ["--rate", "20"], codes=(0, 3), after=200, kill_signal=signal.SIGTERM)
    elif kind == "refused":
        run(night, night.at, ["--endpoint", REFUSING, "--abort-after", "3"], codes=(4,))
        return finish(night, second_of(night.day + 1, "07:30"))
    elif kind == "given up":
        run(night, night.at, ["--rate", "1", "--deadline", "5s"], codes=(3,))
        left.append(night.date)
        return night.judge(False)
    else:
        run(night, night.at)
    finish(night, after)


write("opt-outs.txt", "".join(token + "\n" for token in sorted(opted_out)))
kinds = ["dry", "dry", "twice", "killed at a call", "killed at a call", "killed at a call", "killed", "killed",
         "killed", "stopped", "refused", "given up", "given up"]
plan = kinds + ["plain"] * (NIGHTS - len(kinds))
chance.shuffle(plan)
nights, left, total = [], [], collections.Counter()
for day, kind in enumerate(plan, start=1):
    night = Night(day)
    night.expect(nights)
    total.update(night.expected)
    nights.append(night)
    evening(night, kind)

# The rest of a night is sent with `--date`, to the rows that were chosen when the night began.
last = second_of(NIGHTS + 1, "20:00")
for night, kind in zip(nights, plan):
    if kind == "given up":
        run(night, last, ["--date", night.date], codes=(0, 6))
        night.judge(True)

for reason in ("Suppressed", "Duplicate", "Filtered", "DeadToken", "FrequencyCap", "invalid", "sent"):
    check(total[reason] > 20, reason, "was tried too rarely:", total)

# The pages must have the numbers of all nights.
text = subprocess.run([COMMAND, "report", "--all", folder, "--json"], capture_output=True, text=True, check=True).stdout
told = {os.path.basename(line["ledger"]): line for line in map(json.loads, text.splitlines())}
page = open(os.path.join(folder, "index.html")).read()
for night in nights:
    line, unknown = told[night.date], night.unknown()
    counts = collections.Counter(night.expected)
    statuses = collections.Counter(night.verdicts().values())
    numbers = {
        "rows": len(night.rows), "accepted": statuses[200], "rejected": statuses[400] + statuses[410],
        "invalid": counts["invalid"], "unknown": len(unknown), "remaining": 0,
        "skipped": sum(counts.values()) - counts["sent"] - counts["invalid"]}
    check({key: line[key] for key in numbers} == numbers, night.date, line, numbers)
    check(f'"{night.date}/report.html"' in page, night.date, "is not linked")
    check(os.path.exists(os.path.join(folder, night.date, "report.html")), night.date, "has no page")
print("nights", len(nights), "rows", dict(total), "unknown", sum(len(night.unknown()) for night in nights))
