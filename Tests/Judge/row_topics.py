#!/usr/bin/env python3
"""Reads the topics of a ledger's rows as docs/ledger-format.md describes them, without any of the project's code.
Compares them with the list that was sent, with an export and with the counts of `ledger stats --json`.

    python3 row_topics.py LEDGER LIST EXPORT STATS

LIST and EXPORT are CSV files: LIST with the columns token and app, EXPORT with the column topic. A row that was settled
after a request must have the topic that its line names. All other rows must have none. A merged ledger is read shard by
shard. Prints the differences, or the numbers of rows with a topic by state.
"""
import csv
import json
import os
import struct
import sys
import zlib

STATES = {1: "accepted", 2: "rejected", 3: "invalid", 4: "skipped", 5: "failed", 6: "unknown"}
problems = []


def blocks(path, limit):
    """Returns the payloads of a segment's valid blocks."""
    with open(path, "rb") as file:
        data = file.read()[:limit]
    seed = zlib.crc32(data[:28])
    offset = 32
    while offset + 8 <= len(data):
        check, slots, mark = struct.unpack_from("<IHH", data, offset)
        end = offset + 8 + 16 * slots
        if mark != 0xB10C or slots == 0 or end > len(data):
            return
        if zlib.crc32(data[offset + 4:end], zlib.crc32(struct.pack("<Q", offset), seed)) != check:
            return
        yield data[offset + 8:end]
        offset = end


def verdicts(block):
    """Returns each verdict of a block: its row, its state and its topic."""
    names, topic, at = {}, "", 0
    while at < len(block):
        first, second = struct.unpack_from("<QQ", block, at)
        kind, row, small, size = first >> 60, first & (1 << 40) - 1, first >> 56 & 15, 16
        if kind == 1:
            yield row, "accepted", topic
        elif kind == 2:
            length = (8 if second >> 24 & 1 else 0) + (second >> 48 & 0xFF) + (second >> 56)
            size += (length + 15) // 16 * 16
            yield row, STATES[small], topic
        elif kind == 3:
            size = 48
        elif kind == 7:
            size += ((second & 0xFFFFFFFF) + 127) // 128 * 16
        elif kind == 8:
            number, length = second & 0xFFFF, second >> 16 & 0xFF
            if length:
                if number != len(names) + 1:
                    problems.append(f"topic {number} follows {len(names)} others of its block")
                names[number] = block[at + 16:at + 16 + length].decode()
                size += (length + 15) // 16 * 16
                if any(block[at + 16 + length:at + size]):
                    problems.append("bytes behind the text of a topic")
            topic = names[number] if number else ""
        elif kind not in (4, 5, 6):
            problems.append(f"a record of kind {kind}")
            return
        at += size


def ledger(path):
    """Returns the last verdict of each row: its state and topic."""
    with open(os.path.join(path, "manifest.json")) as file:
        manifest = json.load(file)
    rows = {}
    for name in manifest.get("shards", []):
        rows.update(ledger(os.path.join(path, name)))
    if manifest["version"] != 3:
        problems.append(f"{path} has version {manifest['version']}")
    for epoch in manifest["epochs"]:
        lengths = {segment["reactor"]: segment["byteCount"] for segment in epoch.get("segments", [])}
        for name in sorted(os.listdir(path)):
            if not name.startswith("segment-%04d-" % epoch["number"]):
                continue
            limit = lengths.get(int(name.rsplit("-", 1)[1]), None if "segments" not in epoch else 0)
            for block in blocks(os.path.join(path, name), limit):
                for row, state, topic in verdicts(block):
                    rows[row] = (state, topic)
    return rows


def main():
    path, list_path, export_path, stats_path = sys.argv[1:]
    with open(list_path, newline="") as file:
        apps = [row["app"] for row in csv.DictReader(file)]
    rows = ledger(path)
    counts = {}
    for row, (state, topic) in rows.items():
        wanted = {"accepted": [apps[row]], "rejected": [apps[row]], "failed": [apps[row]],
                  "unknown": [apps[row], ""]}.get(state, [""])
        if topic not in wanted:
            problems.append(f"row {row}, {state}, has the topic {topic!r} instead of {wanted}")
        if topic:
            counts.setdefault(topic, dict.fromkeys(STATES.values(), 0))[state] += 1
    with open(export_path, newline="") as file:
        exported = {int(line["line"]) - 2: (line["state"], line["topic"]) for line in csv.DictReader(file)}
    if exported != rows:
        differing = [row for row in rows.keys() | exported.keys() if rows.get(row) != exported.get(row)]
        problems.append(f"the export differs in {len(differing)} rows, such as {sorted(differing)[:3]}")
    with open(stats_path) as file:
        if json.load(file)["rows_by_topic"] != counts:
            problems.append(f"the counts by topic are other ones than {counts}")
    print("\n".join(problems[:20]) if problems else json.dumps(counts, sort_keys=True))
    sys.exit(1 if problems else 0)


main()
