"""Compares the output of `ledger export --follow` with the segments of its ledger, read as
docs/ledger-format.md describes them, and with the list.

    python3 settled_rows.py LEDGER LIST OUTPUT

LIST is one token per line. The ledger is one of runs that have ended; OUTPUT is CSV. Each verdict has to be one
line, and those of a segment have to come in its order. Prints what differs and ends with 1.
"""

import collections
import csv
import os
import struct
import sys
import zlib

STATES = {1: "accepted", 2: "rejected", 3: "invalid", 4: "skipped", 5: "failed", 6: "unknown"}


def verdicts(path):
    """The verdicts of a segment in order: row, state, status, attempts, time."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 32:
        return
    seed = zlib.crc32(data[:28])
    assert struct.unpack_from("<I", data, 28)[0] == seed, path
    offset, clock = 32, 0
    while offset < len(data):
        check, slots, mark = struct.unpack_from("<IHH", data, offset) if offset + 8 <= len(data) else (0, 0, 0)
        end = offset + 8 + 16 * slots
        if mark != 0xB10C or slots == 0 or end > len(data):
            return
        if zlib.crc32(data[offset + 4:end], zlib.crc32(struct.pack("<Q", offset), seed)) != check:
            return
        at = offset + 8
        while at < end:
            first, second = struct.unpack_from("<QQ", data, at)
            row, delta, small, kind = first & (1 << 40) - 1, first >> 40 & 0xFFFF, first >> 56 & 15, first >> 60
            at += 16
            if kind == 1:
                yield row, "accepted", "200", str(small), str(clock + delta)
            elif kind == 2:
                status = second & 0xFFFF
                yield (row, STATES[small], str(status or ""), str(second >> 32 & 0xFFFF), str(clock + delta))
                size = (8 if second >> 24 & 1 else 0) + (second >> 48 & 0xFF) + (second >> 56)
                at += (size + 15) // 16 * 16
            elif kind == 3:
                at += 32
            elif kind == 6:
                clock = second
        offset = end


def main():
    ledger, tokens, output = sys.argv[1:]
    with open(tokens) as file:
        tokens = file.read().split()
    with open(output, newline="") as file:
        rows = list(csv.DictReader(file))
    found = [(int(row["apns_id"][-12:], 16), row["state"], row["status"], row["attempts"], row["settled_at_ms"])
             for row in rows]
    problems = []
    for row, line in zip(found, rows):
        if line["token"] != tokens[row[0]] or line["line"] != str(row[0] + 1):
            problems.append(f"row {row[0]} has line {line['line']}, token {line['token']}")
    expected = collections.Counter()
    places = {row: place for place, row in enumerate(found)}
    for name in sorted(os.listdir(ledger)):
        if not name.startswith("segment-"):
            continue
        own = list(verdicts(os.path.join(ledger, name)))
        expected.update(own)
        order = [places.get(row, -1) for row in own]
        if order != sorted(order):
            problems.append(f"{name}: its rows are not in the order in which they were settled")
    for row, count in (expected - collections.Counter(found)).items():
        problems.append(f"missing, {count} times: {row}")
    for row, count in (collections.Counter(found) - expected).items():
        problems.append(f"too often, {count} times: {row}")
    if not expected:
        problems.append("the ledger has no verdicts")
    print("\n".join(problems[:20]))
    sys.exit(1 if problems else 0)


main()
