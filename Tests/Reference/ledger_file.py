"""Writes ledgers as docs/ledger-format.md describes them, without any of the project's code."""

import json
import os
import struct
import zlib

MASK = (1 << 64) - 1
KEYS = (0x9EB7F9B9FFA6D1C5, 0xBFD8E6B594D09BEB, 0xD6E8FD9CB2A7C48D, 0xE783F5A18CDAADB3)
REASONS = {"BadDeviceToken": (400, 2), "ExpiredToken": (410, 56), "Unregistered": (410, 57)}
CAMPAIGN = 0x0123456789ABCDEF


def fold(x, y):
    product = x * y
    return (product >> 64) ^ (product & MASK)


def fingerprint(digits):
    """The mixing hash of a token's lower-case digits, as the ledger keeps it of accepted rows."""
    a = b = len(digits)
    padded = digits + bytes(-len(digits) % 32)
    for w0, w1, w2, w3 in struct.iter_unpack("<4Q", padded):
        a = fold(w0 ^ KEYS[0] ^ a, w1 ^ KEYS[1])
        b = fold(w2 ^ KEYS[2] ^ b, w3 ^ KEYS[3])
    return fold(a ^ KEYS[2], b ^ KEYS[3])


def records(verdicts):
    """The records of verdicts: tuples of row, token, reason or None, settled ms, APNs' ms or None."""
    clock = None
    for row, token, reason, settled, timestamp in verdicts:
        if clock is None or not 0 <= settled - clock < 1 << 16:
            clock = settled
            yield struct.pack("<QQ", 6 << 60, clock)
        first = row | (settled - clock) << 40
        if reason is None:
            yield struct.pack("<QQ", first | 1 << 56 | 1 << 60, fingerprint(token))
            continue
        status, code = REASONS[reason]
        data = bytes.fromhex(token.decode())
        second = status | code << 16 | (timestamp is not None) << 24 | 1 << 32 | len(data) << 48
        tail = (b"" if timestamp is None else struct.pack("<Q", timestamp)) + data
        yield struct.pack("<QQ", first | 2 << 56 | 2 << 60, second) + tail + bytes(-len(tail) % 16)


def write(path, verdicts):
    """Makes a ledger of one finished run; one chunk for every 1,000 rows, in order."""
    os.mkdir(path, 0o700)
    start = b"BSLEDGER" + struct.pack("<HHIQI", 1, 0, 1, CAMPAIGN, 0)
    seed = zlib.crc32(start)
    out = bytearray(start + struct.pack("<I", seed))
    slots = bytearray()

    def end_block():
        head = struct.pack("<HH", len(slots) // 16, 0xB10C)
        check = zlib.crc32(bytes(slots), zlib.crc32(head, zlib.crc32(struct.pack("<Q", len(out)), seed)))
        out.extend(struct.pack("<I", check) + head + slots)
        slots.clear()

    def add(record):
        if len(slots) + len(record) > 4095 * 16:
            end_block()
        slots.extend(record)

    for first in range(0, len(verdicts), 1000):
        part = verdicts[first : first + 1000]
        add(struct.pack("<6Q", first | 3 << 60, len(part) | len(part) << 32, first * 65,
                        len(part) * 65, first + 1, 0))
    for record in records(verdicts):
        add(record)
    end_block()
    with open(os.path.join(path, "segment-0001-00"), "wb") as file:
        file.write(out)
    manifest = {
        "version": 1, "campaign": "%016x" % CAMPAIGN, "firstStartedAtMilliseconds": 1,
        "identity": {"listFormat": "lines", "columns": ["token"], "payloadSHA256": "00",
                     "topic": "com.example.shop", "pushType": "alert", "priority": 10,
                     "environment": "production"},
        "canaryPassed": False, "isFinished": True, "rowCount": len(verdicts), "checksum": 0,
        "epochs": [{"number": 1, "startedAtMilliseconds": 1,
                    "segments": [{"reactor": 0, "byteCount": len(out)}]}],
        "counters": {"retries": 0, "reconnects": 0, "connections": 1},
    }
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["checksum"] = zlib.crc32(text.encode())
    with open(os.path.join(path, "manifest.json"), "w") as file:
        json.dump(manifest, file)
