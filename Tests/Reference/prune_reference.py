#!/usr/bin/env python3
"""Prunes generated lists with `broadside prune` and in Python, and compares byte by byte.

    Tests/Reference/prune_reference.py PATH-OF-BROADSIDE [ROWS [SEED]]
"""

import datetime
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ledger_file  # noqa: E402

MONDAY = 1_790_000_000_000
DAY = 86_400_000


def make_ledgers(rng, tokens, directory):
    """Three ledgers over parts of the tokens; what the newest verdict on each token says."""
    newest = {}
    paths = []
    for number in range(3):
        verdicts = []
        for token in rng.sample(tokens, len(tokens) * 2 // 3):
            settled = MONDAY + rng.choice((0, 1, 2)) * DAY + rng.randrange(3)
            draw = rng.random()
            reason = ("Unregistered" if draw < 0.04 else "ExpiredToken" if draw < 0.05
                      else "BadDeviceToken" if draw < 0.06 else None)
            stamp = settled - rng.randrange(30 * DAY) if reason == "Unregistered" else None
            verdicts.append((len(verdicts), token, reason, settled, stamp))
            is_dead = reason in ("Unregistered", "ExpiredToken")
            died = settled if stamp is None else stamp
            # The latest counts; of two at the same instant, the one that keeps more.
            claim = (settled, not is_dead, -died)
            if token not in newest or claim > newest[token]:
                newest[token] = claim
        path = os.path.join(directory, "ledger-%d" % number)
        ledger_file.write(path, verdicts)
        paths.append(path)
    return paths, {t: -c[2] for t, c in newest.items() if not c[1]}


def written_time(rng, milliseconds):
    """A time in one of its forms, and what it means; None where nobody can read it."""
    form = rng.randrange(7)
    seconds = milliseconds // 1000
    utc = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    if form == 0:
        return b"%d" % seconds, seconds * 1000
    if form == 1:
        return b"%d" % milliseconds, milliseconds
    if form == 2:
        return utc.strftime("%Y-%m-%dT%H:%M:%SZ").encode(), seconds * 1000
    if form == 3:
        zone = datetime.timezone(datetime.timedelta(minutes=rng.choice((-570, -60, 0, 120, 345))))
        return utc.astimezone(zone).isoformat().encode(), seconds * 1000
    if form == 4:
        return (utc.strftime("%Y-%m-%d %H:%M:%S.") + "%03d" % (milliseconds % 1000)).encode(), milliseconds
    if form == 5:
        return rng.choice((b"", b"yesterday", b"17e8", b"2026-13-01", b"-5")), None
    return b" %d " % seconds, seconds * 1000


def field(rng, text):
    """A field as a program might write it."""
    if any(c in text for c in b'",\t\n\r') or rng.random() < 0.3:
        return b'"' + text.replace(b'"', b'""') + b'"'
    return text


def make_list(rng, kind, tokens, rows, dead):
    """A list of that kind, and what is left of it."""
    newline = rng.choice((b"\n", b"\r\n"))
    mark = rng.choice((b"", b"\xef\xbb\xbf"))
    separator = {"csv": b",", "tsv": b"\t", "lines": b""}[kind]
    source, kept, removed = [mark], [mark], []
    if kind != "lines":
        header = separator.join(field(rng, c) for c in (b"name", b"token", b"registered", b"note")) + newline
        source.append(header)
        kept.append(header)
        removed += [mark, header]
    notes = (b"", b"plain", b"with, comma", b"two\nlines", b"three\r\n\r\nlines", b'so "called"', b"\xc3\xa4", b'"', b"\t")
    for number in range(rows):
        if rng.random() < 0.01:
            blank = rng.choice((b"", b"  ")) + newline
            source.append(blank)
            kept.append(blank)
        token = rng.choice(tokens)
        text = token.upper() if rng.random() < 0.1 else token
        if rng.random() < 0.02:
            text = b" " + text + b" "
        elif rng.random() < 0.02:
            text = b"<" + b" ".join(token[i : i + 8] for i in range(0, len(token), 8)) + b">"
        elif rng.random() < 0.02:
            text, token = rng.choice((b"oops", b"abc", b'a"b', b"")), None
        end = b"" if number == rows - 1 and rng.random() < 0.5 else newline
        goes = token in dead
        if kind == "lines":
            text = text or b"none"
            row = text + end
        else:
            shown, registered = written_time(rng, MONDAY - rng.randrange(30 * DAY))
            if goes:
                goes = registered is not None and registered <= dead[token]
            parts = [b"customer %d" % number, text, shown, rng.choice(notes)]
            if rng.random() < 0.005:
                parts = parts[: rng.choice((1, 2))]
                goes = False
            row = separator.join(field(rng, p) for p in parts) + end
        source.append(row)
        (removed if goes else kept).append(row)
    return b"".join(source), b"".join(kept), b"".join(removed)


def compare(program, rng, kind, rows, directory):
    tokens = [b"%064x" % rng.getrandbits(256) for _ in range(max(10, rows * 3 // 4))]
    tokens += [b"%0160x" % rng.getrandbits(640) for _ in range(rows // 50)]
    ledgers, dead = make_ledgers(rng, tokens, directory)
    source, kept, removed = make_list(rng, kind, tokens, rows, dead)
    names = [os.path.join(directory, n) for n in ("list." + kind, "pruned", "removed")]
    with open(names[0], "wb") as file:
        file.write(source)
    command = [program, "prune", "--tokens", names[0], "--output", names[1], "--removed", names[2]]
    if kind == "lines":
        command += ["--format", "lines"]
    else:
        command += ["--registered-column", "registered"]
    for ledger in ledgers:
        command += ["--ledger", ledger]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(command, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        sys.exit("%s: exit %d: %s" % (kind, result.returncode, result.stderr.decode()))
    for name, expected in zip(names[1:], (kept, removed)):
        with open(name, "rb") as file:
            got = file.read()
        if got != expected:
            place = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b),
                         min(len(got), len(expected)))
            sys.exit("%s: %s differs at %d: %r, expected %r" % (
                kind, name, place, got[place - 80 : place + 80], expected[place - 80 : place + 80]))
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return len(source), cpu, result.stderr.decode()


def main():
    program = sys.argv[1]
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns() % 1_000_000
    for kind in ("lines", "csv", "tsv"):
        rng = random.Random("%d %s" % (seed, kind))
        with tempfile.TemporaryDirectory() as directory:
            count, cpu, told = compare(program, rng, kind, rows, directory)
        print("seed %d, %s: %d rows, %d bytes equal; %.3f s of CPU; %s" % (
            seed, kind, rows, count, cpu, re.sub(r"\s+", " ", told)))


main()
