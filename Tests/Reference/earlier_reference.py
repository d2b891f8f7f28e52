#!/usr/bin/env python3
"""What earlier ledgers make of the rows of a campaign, read from exports alone, held against its own export.

    Tests/Reference/earlier_reference.py QUESTION.json

The question: "start" (ms), "earlier" and "own" (exports, CSV), and the rules: "dead_for" (ms, absent: any
age), "registered" (by line of the list, absent: no such column), "cap" and "period" (ms), "duplicates",
"suppress" (tokens), "skips_dead". Prints counts by what each row had to become, and the rows that became
something else.
"""

import collections
import csv
import datetime
import json
import sys

DEAD = ("Unregistered", "ExpiredToken")


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def registered_at(text, now):
    """The last millisecond that is meant; None if it can't be read."""
    if text.isdigit() and 9 <= len(text) <= 10:
        value = int(text) * 1000 + 999
    else:
        try:
            moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            return None
        value = int(moment.timestamp() * 1000) + 999
    return value if 1_230_768_000_000 <= value <= now + 86_400_000 + 999 else None


def main():
    with open(sys.argv[1]) as file:
        question = json.load(file)
    start = question["start"]
    verdicts = collections.defaultdict(list)
    for path in question["earlier"]:
        for row in rows(path):
            settled = int(row["settled_at_ms"] or 0)
            if row["state"] in ("accepted", "rejected") and settled < start:
                verdicts[row["token"]].append(
                    (settled, row["state"], row["reason"], row["apns_timestamp_ms"]))

    def died(token):
        """When a token died, by its newest verdict; None if it lives."""
        known = verdicts[token]
        if not known:
            return None
        newest = max(settled for settled, _, _, _ in known)
        last = [verdict for verdict in known if verdict[0] == newest]
        if any(state == "accepted" or reason not in DEAD for _, state, reason, _ in last):
            return None
        if "dead_for" in question and newest < start - question["dead_for"]:
            return None
        return min(int(stamp or newest) for _, _, _, stamp in last)

    def is_dead(token, line):
        moment = died(token) if question.get("skips_dead") else None
        if moment is None:
            return False
        if "registered" not in question:
            return True
        time = registered_at(question["registered"].get(str(line), ""), start)
        return time is not None and time <= moment

    def is_capped(token):
        if "cap" not in question:
            return False
        return question["cap"] <= sum(
            state == "accepted" and settled >= start - question["period"]
            for settled, state, _, _ in verdicts[token])

    suppressed = set(question.get("suppress", []))
    sent = set()
    counts = collections.Counter()
    wrong = []
    for row in rows(question["own"]):
        token = row["token"]
        if row["state"] == "invalid":
            expected = "invalid"
        elif token in suppressed:
            expected = "Suppressed"
        elif question.get("duplicates") and token in sent:
            expected = "Duplicate"
        elif is_dead(token, row["line"]):
            expected = "DeadToken"
        elif is_capped(token):
            expected = "FrequencyCap"
        else:
            expected = "sent"
            sent.add(token)
        found = row["reason"] if row["state"] == "skipped" else row["state"]
        found = "sent" if found in ("accepted", "rejected") else found
        counts[expected] += 1
        if found != expected:
            wrong.append(f"line {row['line']}: {found}, not {expected}")
    print(json.dumps({"counts": counts, "wrong": wrong[:20]}))


main()
