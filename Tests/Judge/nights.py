#!/usr/bin/env python3
"""Twenty nights of a nightly campaign, in simulated time. This file's own implementation of the rules decides what each
start must do. From Broadside, it uses only exit codes, exports and the requests that a server received.

    nights.py COMMAND DIRECTORY CAMPAIGN RECORD REFUSING TOKENS SEED FIRST PRELOAD KILLER

CAMPAIGN has the arguments of a send (JSON) without list and ledger. RECORD is the server's record. REFUSING is an
endpoint that refuses all requests. TOKENS is a file of tokens, and FIRST the second at which day 1 begins (UTC).
PRELOAD is libfaketime, and KILLER is Tests/Shims/kill-at-call.
"""
import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import night_month
import stale_clocks

(COMMAND, DIRECTORY, CAMPAIGN, RECORD, REFUSING, TOKENS, SEED, FIRST, PRELOAD, KILLER) = sys.argv[1:]
second_of = night_month.Month(int(FIRST)).second_of
NIGHTS = 20
KEEP = 9
LENGTH = 12 * 3600
random.seed(int(SEED))
tokens = open(TOKENS).read().split()
nights = os.path.join(DIRECTORY, "nights")
folder = os.path.join(nights, "evening")
os.mkdir(nights)


def date_of(second):
    return time.strftime("%Y-%m-%d", time.localtime(second))


class Night:
    """The state of a night's date."""

    def __init__(self, date):
        self.date = date
        self.list = sorted(random.sample(tokens, random.randint(40, 120)))
        self.requests = {}
        self.started = None
        self.begun = self.finished = self.lost = self.removed = False


all_nights = {}


def night(date):
    return all_nights.setdefault(date, Night(date))


def expected_date(second):
    """Returns the date of a start by the rule: the latest night that was started on its own day continues for LENGTH.
    Otherwise, it is today's date."""
    today = date_of(second)
    started = [n for n in all_nights.values() if n.started is not None]
    latest = max(started, key=lambda n: n.started, default=None)
    if latest and latest.date != today and second - latest.started < LENGTH and not latest.removed:
        return latest.date
    return today


def environment(second, kill=None):
    offset = second - int(time.time())
    values = dict(os.environ, LD_PRELOAD=PRELOAD, FAKETIME=f"{offset:+d}", NO_FAKE_STAT="1",
                  FAKETIME_DONT_FAKE_MONOTONIC="1")
    if kill:
        values.update(KILLER=KILLER, KILL_AT=str(kill))
    return values


def write(name, text):
    """Replaces a file that another start may be reading."""
    path = os.path.join(DIRECTORY, name)
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, "w") as file:
            file.write(text)


def start(second, more=(), kill=None, list_of=None):
    stale_clocks.remove()
    write("tokens.txt", "".join(token + "\n" for token in list_of.list))
    write("evening.json5", json.dumps(dict(json.loads(CAMPAIGN), tokens="tokens.txt")))
    # A process that is killed leaves libfaketime's shared memory if it was the first to load libfaketime.
    front = ["bash", "-c", 'LD_PRELOAD="$KILLER $LD_PRELOAD" "$@"; exit $?', "bash"] if kill else ["timeout", "--foreground", "200"]
    return subprocess.Popen(
        [*front, COMMAND, "night", "--campaign", "evening.json5", "--ledgers", "nights",
         "--keep", str(KEEP), *more],
        cwd=DIRECTORY, env=environment(second, kill), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def check(condition, *words):
    if not condition:
        print("WRONG:", *words)
        sys.exit(1)


def notes(date):
    try:
        lines = open(os.path.join(folder, "nights")).read().splitlines()
    except FileNotFoundError:
        return []
    return [line.split()[1] for line in lines if line.startswith(date + " ")]


def ledger_dates():
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(n for n in names if os.path.exists(os.path.join(folder, n, "manifest.json")) and n[0] != ".")


record = night_month.Record(RECORD)


def settle(which, second):
    """Records the requests that the server received since the last start. They belong to the night `which`."""
    for response in record.new_responses():
        token = response["path"].split("/")[-1]
        which.requests[token] = which.requests.get(token, 0) + 1
    check(all(count == 1 for count in which.requests.values()), which.date, "a row was sent twice")
    check(set(which.requests) <= set(which.list), which.date, "a row of another list was sent")


def export(date):
    text = subprocess.run([COMMAND, "ledger", "export", "--ledger", os.path.join(folder, date)],
                          capture_output=True, text=True, check=True).stdout
    return {row["token"]: row["state"] for row in csv.DictReader(io.StringIO(text))}


def run(second, more=(), kill=None, end=None, twice=False, given=None):
    """Runs one start, or two at the same time, and checks the result."""
    date = given or expected_date(second)
    which = night(date)
    others = [n for n in all_nights.values() if n.begun and not n.finished and not n.lost and n.date < date]
    if given:
        more = [*more, "--date", given]
    processes = [start(second, more, kill, which) for _ in range(2 if twice else 1)]
    if end:
        segment = os.path.join(folder, date, "segment-0001-00")
        while processes[0].poll() is None and not (os.path.exists(segment) and os.path.getsize(segment) > 400):
            time.sleep(0.02)
        processes[0].send_signal(end)
    errors = [process.communicate()[1] for process in processes]
    codes = [process.returncode for process in processes]
    settle(which, second)
    said = f"{date} at {date_of(second)}: exit {codes}: {errors}"
    if "intended" in notes(date) and not which.begun and date_of(second) == date:
        which.started = second
    which.begun = "begun" in notes(date) and notes(date)[-1] != "withdrawn"
    check(which.begun or not which.requests, said, "requests without a note")
    if twice:
        check(sorted(codes) in ([0, 7], [0, 0]), said)
        errors = [errors[codes.index(0)]]
        codes = [0]
    code = codes[0]
    if which.lost:
        check(code == 2 and "is gone" in errors[0], said)
        return code
    if kill:
        check(code in (137, 0, 6), said)
    if code in (0, 6):
        states = export(date)
        check(sorted(states) == which.list, said, "the ledger has another list")
        unknown = {token for token, state in states.items() if state == "unknown"}
        check(all(state in ("accepted", "unknown") for state in states.values()), said, states)
        check(code == (6 if unknown else 0), said)
        check({t for t, s in states.items() if s == "accepted"} <= set(which.requests), said)
        which.finished = True
        keep_newest(date)
    for other in others:
        if code in (0, 3, 4, 6) and not which.removed:
            check("not complete" in errors[0], said, "an incomplete night is not named")
    if code in (0, 6) and others:
        check(max(n.date for n in others) in errors[0], said)
    if os.path.isdir(folder) and code in (0, 3, 4, 6):
        page = open(os.path.join(folder, "index.html")).read()
        for name in ledger_dates():
            check(f'"{name}/report.html"' in page, said, name, "is not linked")
    return code


def keep_newest(sent):
    """Checks which ledgers exist: the newest, those that are not finished, and that of the night that was sent."""
    there = sorted(n.date for n in all_nights.values() if n.begun and not n.lost and not n.removed)
    for date in there[:-KEEP]:
        if all_nights[date].finished and date != sent:
            all_nights[date].removed = True
    left = [date for date in there if not all_nights[date].removed]
    check(ledger_dates() == left, "kept:", ledger_dates(), "expected:", left)


def evening(day, kind):
    at, after = second_of(day, "23:55"), second_of(day + 1, "00:10")
    date = date_of(at)
    if kind == "missed":
        return
    if night(date).finished:
        # A start on the evening before was killed before it had recorded anything, and was repeated after midnight.
        check(run(at) == 0, date, "is finished since the morning, and this start sends nothing")
        return
    if kind == "twice":
        run(at, twice=True)
    elif kind == "killed":
        code, second = run(at, kill=random.randint(1, 140)), after
        while code not in (0, 6):
            code = run(second, kill=random.choice([None, random.randint(20, 200)]))
            second += 60
    elif kind == "stopped":
        run(at, ["--rate", "60"], end=signal.SIGTERM)
        check(run(after) == 0, date, "after midnight")
    elif kind == "refused":
        check(run(at, ["--endpoint", REFUSING, "--abort-after", "3"]) == 4, date, "is not refused")
        check(run(second_of(day + 1, "07:30")) == 0, date, "in the morning")
    elif kind == "given up":
        check(run(at, ["--rate", "4", "--deadline", "5s"]) == 3, date, "is not stopped")
    elif kind == "wrong":
        check(run(at, ["--payload", "none.json"]) == 2, date, "is not refused")
        check(run(after) == 0, date, "after midnight")
    elif kind == "lost":
        check(run(at) == 0, date)
        subprocess.run(["rm", "-r", os.path.join(folder, date)], check=True)
        all_nights[date].lost = True
        check(run(after) == 2, date, "has no ledger")
    elif kind == "again":
        for second in (at, at + 60, after, second_of(day + 1, "11:50")):
            check(run(second) == 0, date)
    else:
        check(run(at) == 0, date)


kinds = ["twice", "killed", "killed", "stopped", "refused", "given up", "wrong", "lost", "again", "missed"]
plan = kinds + random.choices(kinds + ["plain"] * 4, k=NIGHTS - len(kinds) - 1)
random.shuffle(plan)
for day, kind in enumerate(plan + ["plain"], start=1):
    evening(day, kind)

# A night that was given up is sent if its date is given. A night whose ledger was removed or lost is not sent again.
last = second_of(NIGHTS, "23:59")
for which in sorted(all_nights.values(), key=lambda n: n.date):
    before = dict(which.requests)
    code = run(last, given=which.date) if not which.removed else None
    if which.removed:
        process = start(last, ["--date", which.date], list_of=which)
        errors = process.communicate()[1]
        settle(which, last)
        check(process.returncode == 0 and "has removed its ledger" in errors, which.date, errors)
    if which.finished and not which.lost:
        check(which.removed or code in (0, 6), which.date, code)
        check(which.requests == before or sorted(which.requests) == which.list, which.date)
print("nights", len(all_nights), "finished", sum(n.finished for n in all_nights.values()), "requests", sum(sum(n.requests.values()) for n in all_nights.values()))
