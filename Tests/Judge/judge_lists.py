#!/usr/bin/env python3
"""Runs every command on the same generated lists, and compares the results with an independent implementation.

    Tests/Judge/judge_lists.py BROADSIDE [COUNT [FIRST-SEED]] [--drawn]

For each list: `tokens check`, `send` and its export, the requests that a server received, `--suppress` with
`--duplicates skip`, shards and their merged ledger, `prune` and `dedupe`. With `--drawn`, the list's seed chooses half
of these, so that twice as many lists take the same time. If any row differs, ends with 1 and prints the seeds.
"""
import collections
import json
import os
import random
import sys
import unicodedata

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty_trial import FaultyTrial  # noqa: E402
from generated_list import GeneratedList  # noqa: E402
from judged_command import Difference, ServedTrials, expect, exported, fate, judge  # noqa: E402
from reference_list import Faulty, Reading, Refused, Unusable  # noqa: E402

STATES = ["accepted", "rejected", "invalid", "skipped", "failed", "unknown", "remaining"]
ALL = [word for state in STATES for word in ("--state", state)]


def begins_array(data):
    """Whether a file counts as a JSON array and is therefore refused, whatever its other lines are."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


class Trial(FaultyTrial):
    """One list, and the results of each command for it."""

    def __init__(self, seed, command, server, is_drawn):
        self.seed, self.command, self.server = seed, command, server
        # A separate generator, so that the list and the commands are the same without `--drawn`.
        self.draw = random.Random(seed * 11 + 3) if is_drawn else None
        self.rng = random.Random(seed * 7 + 1)
        self.directory = command.directory
        self.list = GeneratedList(seed)
        self.path = os.path.basename(self.list.write(self.directory))
        self.column = ["--token-column", self.list.column] if self.list.form != "lines" else []
        self.reading = self.refusal = self.fault = None
        try:
            self.reading = Reading(self.list.data, self.list.form, self.list.separator,
                                   self.list.column)
            self.reading.agree_with_python()
        except Refused as refusal:
            self.refusal = str(refusal)
            self.fault = refusal if isinstance(refusal, Faulty) else None
        if self.list.form == "jsonl" and begins_array(self.list.data):
            self.refusal, self.fault = "a JSON array", None

    def run(self):
        named = ["--tokens", self.path, *self.column]
        if self.fault:
            self.refused_by_all(named)
            return "faulty"
        if self.refusal or not any(self.reading.token(row) for row in self.reading.rows):
            # Every command finds nothing to send.
            for call in (["tokens", "check", *named], ["tokens", "check", "--max-invalid", "100",
                                                       *named],
                         ["tokens", "dedupe", *named, "--output", "none"], self.send("--dry-run"), self.send("--ledger", "none")):
                self.command(*call, codes=[2])
            expect(not os.path.exists(f"{self.directory}/none"), "a ledger was left behind")
            return "refused"
        self.check(named)
        is_whole, is_sharded = self.one_or_both()
        if self.takes_part():
            self.default_guard(named)
        if is_whole:
            self.whole_run()
        if self.takes_part():
            self.suppressed()
        if is_sharded:
            self.shards()
        self.hygiene()
        return "read"

    def takes_part(self):
        return not self.draw or self.draw.random() < 0.5

    def one_or_both(self):
        """Returns whether the list is sent as a whole, and whether it is sent in shards."""
        if not self.draw:
            return True, True
        is_whole = self.draw.random() < 0.6
        return is_whole, not is_whole

    # The expected outcome of each row

    def rendered(self, row):
        """Returns (alert, None) for a row's own payload, or (None, reason) if it has none."""
        if self.list.form == "lines":
            return "Good evening", None
        value = self.reading.field(row, "name")
        if value is Unusable:
            return None, "BadValue"
        text = value.decode("utf-8", "surrogatepass") if value else ""
        # The default replaces a text of which nothing can be seen.
        if all(c <= " " or unicodedata.category(c) in ("Zs", "Cf") for c in text):
            text = "friend"
        if len(text.encode()) > 5000:
            return None, "PayloadTooLarge"
        return "Hi " + text, None

    def outcome(self, row):
        """Returns (state, reasons, token) of a row that no option skips."""
        token = self.reading.token(row)
        if token is None:
            return "invalid", self.reading.reason(row), None
        _, fault = self.rendered(row)
        if fault:
            return "invalid", {fault}, token
        reason = fate(token)
        return ("rejected", {reason}, token) if reason else ("accepted", {""}, token)

    # Commands

    def send(self, *options):
        body = ('{"aps":{"alert":"Good evening"}}' if self.list.form == "lines"
                else '{"aps":{"alert":"Hi {{name|friend}}"}}')
        with open(f"{self.directory}/payload.json", "w") as file:
            file.write(body)
        return ["send", *self.server.options(), "--tokens", self.path, *self.column, "--payload",
                "payload.json", "--max-invalid", "100", "--abort-after", "100000",
                "--max-bad-tokens", "100", "--connections", "1", *options]

    def check(self, named):
        found = json.loads(self.command("tokens", "check", "--duplicates", "--json",
                                        "--max-invalid", "100", *named, codes=[0]))
        rows = self.reading.rows
        tokens = [self.reading.token(row) for row in rows]
        valid = [token for token in tokens if token]
        expect(found["rows"] == len(rows), "rows of tokens check", found["rows"], len(rows))
        expect(found["valid"] == len(valid), "valid of tokens check", found["valid"], len(valid))
        expect(found["invalid"] == len(rows) - len(valid), "invalid of tokens check", found)
        copies = len(valid) - len(set(valid))
        expect(found["duplicates"] == copies, "duplicates of tokens check", found, copies)
        first = [entry["line"] for entry in found["first_invalid"]]
        wanted = [row.line for row, token in zip(rows, tokens) if not token]
        expect(first == wanted[:len(first)], "invalid lines of tokens check", first, wanted)

    def default_guard(self, named):
        """Without --max-invalid, all commands refuse a list with more than a tenth of invalid rows."""
        rows = self.reading.rows
        bad = sum(self.reading.token(row) is None for row in rows)
        is_refused = bad * 10 > len(rows)
        self.command("tokens", "check", *named, codes=[2 if is_refused else 0])
        if is_refused:
            call = self.send("--ledger", "refused")
            place = call.index("--max-invalid")
            del call[place:place + 2]
            self.command(*call, codes=[2])
            expect(not os.path.exists(f"{self.directory}/refused"), "a ledger was left behind")
            expect(not self.server.requests(), "a refused list was sent")

    def compare(self, rows, wanted, what):
        """Compares the rows of an export with (row, state, reasons, token), in order."""
        expect(len(rows) == len(wanted), f"{what}: number of rows", len(rows), len(wanted))
        for found, (row, state, reasons, token) in zip(rows, wanted):
            expect(int(found["line"]) == row.line, f"{what}: line", found, row.line)
            expect(found["state"] == state, f"{what}: state", found, state, reasons)
            expect(found["reason"] in reasons, f"{what}: reason", found, reasons)
            if token:
                expect(found["token"] == token, f"{what}: token", found, token)

    def saw(self, wanted, what):
        """Compares the requests with (token, alert) pairs, in any order."""
        found = collections.Counter(
            (token, json.loads(body)["aps"]["alert"])
            for token, body in self.server.requests(len(wanted)))
        wanted = collections.Counter(wanted)
        expect(found == wanted, f"{what}: requests", list((found - wanted).items())[:3],
               list((wanted - found).items())[:3])

    def sent(self, wanted):
        return [(token, self.rendered(row)[0]) for row, state, _, token in wanted
                if state in ("accepted", "rejected")]

    def whole_run(self):
        wanted = [(row, *self.outcome(row)) for row in self.reading.rows]
        if not self.sent(wanted):
            return
        stdin = None
        call = self.send("--ledger", "whole")
        if self.rng.random() < 0.2:
            call[call.index("--tokens") + 1] = "-"
            call += ["--format", "csv" if self.list.form == "csv" else self.list.form]
            with open(f"{self.directory}/{self.path}", "rb") as file:
                stdin = file.read()
        self.command("send", *self.dry(call), input=stdin, codes=[0])
        expect(not self.server.requests(), "a dry run sent something")
        self.command(*call, input=stdin, codes=[0])
        self.saw(self.sent(wanted), "send")
        self.compare(exported(self.command("ledger", "export", "--ledger", "whole", *ALL,
                                           codes=[0])), wanted, "export")
        self.command("ledger", "verify", "--ledger", "whole", codes=[0])

    def dry(self, call):
        place = call.index("--ledger")
        return [*call[1:place], *call[place + 2:], "--dry-run"]

    def suppressed(self):
        """Suppresses some of the list's tokens with a list in another format: their devices get nothing."""
        other = GeneratedList(self.seed + 500_000_000, rows=6)
        valid = [token for row in self.reading.rows if (token := self.reading.token(row))]
        other.tokens = [self.rng.choice(valid) if self.rng.random() < 0.5 else token
                        for token in other.tokens]
        parts = {"lines": other.lines, "jsonl": other.json}.get(other.form, other.delimited)()
        other.column = "device.token" if b'"device"' in b"".join(
            part if isinstance(part, bytes) else part.encode() for part in parts[:1]) else "token"
        other.data = other.joined(parts)
        other.name = "stop-" + other.name
        path = os.path.basename(other.write(self.directory))
        if other.column != "token":
            # The suppression list is read with the same column as the list.
            return
        call = self.send("--ledger", "less", "--suppress", path, "--duplicates", "skip")
        if self.list.column != "token" and other.form != "lines":
            return
        try:
            stops = Reading(other.data, other.form, other.separator, "token")
        except Refused as refusal:
            self.command(*call, codes=[2])
            if isinstance(refusal, Faulty) and not begins_array(other.data):
                expect(f"line {refusal.line} " in self.command.said, "the line of a fault",
                       self.command.said, str(refusal))
            return
        if begins_array(other.data):
            self.command(*call, codes=[2])
            return
        tokens = {stops.token(row) for row in stops.rows} - {None}
        malformed = [row for row in stops.rows if row.fault and row.fault != "not an object"]
        if malformed or stops.rows and not tokens:
            self.command(*call, codes=[2])
            if malformed:
                expect(f"{malformed[0].line}" in self.command.said, "the line of a malformed row",
                       self.command.said, malformed[0].line)
            expect(not self.server.requests(), "sent in spite of its suppression list")
            return
        wanted, earlier = [], set()
        for row in self.reading.rows:
            state, reasons, token = self.outcome(row)
            if token in tokens:
                state, reasons = "skipped", {"Suppressed", "Duplicate"}
            elif token and token in earlier:
                state, reasons = "skipped", {"Duplicate"}
            elif token and state != "invalid":
                earlier.add(token)
            wanted.append((row, state, reasons, token))
        self.command(*call, codes=[0, 2] if not self.sent(wanted) else [0])
        self.saw(self.sent(wanted), "send with --suppress")
        if self.command.code == 0:
            self.compare(exported(self.command("ledger", "export", "--ledger", "less", *ALL,
                                               codes=[0])), wanted, "export with --suppress")

    def shards(self):
        """Sends shards. Every row is in exactly one part, and the merged ledger equals that of a whole run."""
        count = self.rng.choice([2, 3])
        names, everything = [], []
        size = len(self.list.data)
        for index in range(1, count + 1):
            def is_own(row):
                if self.list.packing:
                    return row.number % count == index - 1
                return size * (index - 1) // count <= row.start < size * index // count
            wanted = [(row, *self.outcome(row)) for row in self.reading.rows if is_own(row)]
            name = f"part{index}"
            self.command(*self.send("--ledger", name, "--shard", f"{index}/{count}"),
                         codes=[0] if self.sent(wanted) else [0, 2])
            self.saw(self.sent(wanted), f"shard {index}/{count}")
            if self.command.code == 2:
                return
            self.compare(exported(self.command("ledger", "export", "--ledger", name, *ALL,
                                               codes=[0])), wanted, f"shard {index}/{count}")
            names.append(name)
            everything += wanted
        everything.sort(key=lambda entry: entry[0].number)
        self.command("ledger", "merge", "--output", "merged", *names, codes=[0])
        self.compare(exported(self.command("ledger", "export", "--ledger", "merged", *ALL,
                                           codes=[0])), everything, "merged shards")

    def hygiene(self):
        rows, data = self.reading.rows, self.list.data
        if os.path.exists(f"{self.directory}/whole"):
            dead = {token for row in rows if (token := self.outcome(row)[2])
                    and self.outcome(row)[0] == "rejected" and fate(token) == "Unregistered"}
            wanted = self.without(lambda row: self.reading.token(row) in dead)
            self.command("prune", "--ledger", "whole", "--tokens", self.path, *self.column,
                         "--output", "pruned", "--max-removed", "100", codes=[0])
            self.same_bytes("pruned", wanted, "prune")
        seen = set()

        def is_copy(row):
            token = self.reading.token(row)
            if token is None or token not in seen:
                seen.add(token)
                return False
            return True
        wanted = self.without(is_copy)
        self.command("tokens", "dedupe", "--tokens", self.path, *self.column, "--output", "once",
                     codes=[0])
        self.same_bytes("once", wanted, "dedupe")

    def without(self, is_removed):
        pieces, place = [], 0
        for row in self.reading.rows:
            if is_removed(row):
                pieces.append(self.list.data[place:row.start])
                place = row.end
        return b"".join(pieces) + self.list.data[place:]

    def same_bytes(self, name, wanted, what):
        with open(f"{self.directory}/{name}", "rb") as file:
            found = file.read()
        if found != wanted:
            place = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b),
                         min(len(found), len(wanted)))
            raise Difference(f"{what}: the output differs at byte {place}: "
                             f"{found[place - 40:place + 60]!r} {wanted[place - 40:place + 60]!r}")


def main():
    is_drawn = "--drawn" in sys.argv
    if is_drawn:
        sys.argv.remove("--drawn")
    trials = ServedTrials(
        lambda seed, command, server: Trial(seed, command, server, is_drawn).run())
    judge("lists", 300, 20, trials.begin, lambda results, failed: (
        f"{results['read']} lists read alike by all, {results['refused']} refused by all, "
        f"{results['faulty']} with the same line, "
        f"{failed} read differently"), trials.end)


if __name__ == "__main__":
    main()
