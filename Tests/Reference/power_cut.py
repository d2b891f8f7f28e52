"""Takes away from a killed run's segments what a power cut might have taken, by docs/ledger-format.md.

    power_cut.py LEDGER SEED < rows that the server has seen, a number a line

What had been synced stays: a segment's header, where the manifest says that all are made; all before
the offset of the last `synced` record, or before the position that the claim beside the ledger has; and
each reservation of which a row was sent, for it is synced ahead of use. The claim's positions themselves
are not synced: half of the power cuts take them. Of what lies behind the end is lost from a random
byte on, reads as zeros, or is torn. Prints what it did.
"""

import glob
import json
import os
import random
import struct
import sys


def blocks(data):
    """Offset, end and slots of each block."""
    offset = 32
    while offset + 8 <= len(data):
        slots = struct.unpack_from("<H", data, offset + 4)[0]
        end = offset + 8 + 16 * slots
        if slots == 0 or end > len(data):
            return
        yield offset, end, [
            struct.unpack_from("<QQ", data, at) for at in range(offset + 8, end, 16)]
        offset = end


def synced_end(data, seen):
    """How many bytes were surely synced."""
    kept = 0
    for _, end, slots in blocks(data):
        at = 0
        while at < len(slots):
            first, second = slots[at]
            kind = first >> 60
            if kind == 5:
                kept = max(kept, second)
            if kind == 3:
                row, count = first & (1 << 40) - 1, second & 0xFFFFFFFF
                if any(number in seen for number in range(row, row + count)):
                    kept = max(kept, end)
            if kind == 2:
                flags, token, text = second >> 24 & 0xFF, second >> 48 & 0xFF, second >> 56
                rest = (8 if flags & 1 else 0) + token + text
                at += (rest + 15) // 16
            at += 3 if kind == 3 else 1
    return kept


def positions(ledger, choice):
    """What the newest claim knows to be synced, by epoch and reactor: 16 bytes each from 8192 on."""
    claims = glob.glob(os.path.join(os.path.dirname(ledger), ".broadside-*"))
    known = {}
    for path in sorted(claims, key=lambda name: int(name.rsplit(".", 1)[1]))[-1:]:
        with open(path, "r+b") as claim:
            table = claim.read()[8192:]
            if choice.random() < 0.5:
                claim.seek(8192)
                claim.write(bytes(len(table)))
                return {}
        for at in range(0, len(table) - 15, 16):
            position, epoch, reactor = struct.unpack_from("<QIH", table, at)
            if position:
                known[epoch, reactor] = position
    return known


def main():
    ledger = sys.argv[1]
    choice = random.Random(int(sys.argv[2]))
    seen = {int(line) for line in sys.stdin}
    names = sorted(name for name in os.listdir(ledger) if name.startswith("segment-"))
    with open(os.path.join(ledger, "manifest.json")) as file:
        epochs = json.load(file)["epochs"]
    # Segments whose lengths are recorded were synced before: by their run's end, or a resume.
    recorded = {epoch["number"] for epoch in epochs if "segments" in epoch}
    made = {epoch["number"] for epoch in epochs if epoch.get("segmentsAreMade")}
    noted = positions(ledger, choice)
    for name in names:
        epoch, reactor = (int(number) for number in name.split("-")[1:])
        if epoch in recorded:
            continue
        path = os.path.join(ledger, name)
        with open(path, "rb") as file:
            data = file.read()
        kept = max(
            synced_end(data, seen), 32 if epoch in made else 0, noted.get((epoch, reactor), 0))
        if kept > len(data):
            sys.exit(f"{name} has {len(data)} bytes, and {kept} are known to be synced")
        cut = choice.randint(kept, len(data))
        lost = len(data) - cut
        kind = choice.choice(["cut", "zeros", "torn"])
        tail = b""
        if kind == "zeros":
            tail = bytes(lost)
        if kind == "torn" and lost:
            # Pages of a disk come back in any state: some of the new bytes, some of nothing.
            tail = bytearray(data[cut:])
            tail[0] ^= 0xFF
            for at in range(0, lost, 512):
                if choice.random() < 0.5:
                    tail[at:at + 512] = bytes(len(tail[at:at + 512]))
        with open(path, "wb") as file:
            file.write(data[:cut] + tail)
        print(f"{name}: {kind} at {cut} of {len(data)}, {kept} synced")


if __name__ == "__main__":
    main()
