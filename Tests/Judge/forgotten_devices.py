#!/usr/bin/env python3
"""Compares a ledger with the same ledger after `ledger forget`. Both are read as docs/ledger-format.md describes them,
without any of the project's code.

    python3 forgotten_devices.py BEFORE AFTER TOKENS [--partly | --absent]

BEFORE is a copy of the directory. TOKENS has one device token per line, in lower-case digits. AFTER must not contain
any of these tokens: not in digits of any case, not in binary or base64, and not as a fingerprint. Everything else must
be as before. With --partly, each file may also be unchanged. With --absent, the tool only searches for the devices.
Prints the differences, or the numbers of records and rows that were changed.
"""
import base64
import json
import os
import re
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Reference"))
from ledger_file import fingerprint  # noqa: E402

UNKNOWN = (1 << 64) - 1
problems = []
changes = {"accepted": 0, "settled": 0, "texts": 0, "chunks": 0, "rows": 0}


def files(path):
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            if os.path.isfile(file) and not os.path.islink(file):
                with open(file, "rb") as opened:
                    found[os.path.relpath(file, path)] = opened.read()
    return found


def segment(name, data):
    """Returns the records of a segment as (offset, kind, words, bytes), and the offset where its valid part ends."""
    if len(data) < 32:
        return [], 0
    seed = zlib.crc32(data[:28])
    if struct.unpack_from("<I", data, 28)[0] != seed:
        return [], 0
    records, offset = [], 32
    while offset + 8 <= len(data):
        check, slots, mark = struct.unpack_from("<IHH", data, offset)
        end = offset + 8 + 16 * slots
        if mark != 0xB10C or slots == 0 or end > len(data):
            break
        if zlib.crc32(data[offset + 4:end], zlib.crc32(struct.pack("<Q", offset), seed)) != check:
            break
        at = offset + 8
        while at < end:
            first, second = struct.unpack_from("<QQ", data, at)
            kind, size = first >> 60, 16
            if kind == 2:
                length = (8 if second >> 24 & 1 else 0) + (second >> 48 & 0xFF) + (second >> 56)
                size += (length + 15) // 16 * 16
            elif kind == 3:
                size = 48
            elif kind == 7:
                size += ((second & 0xFFFFFFFF) + 127) // 128 * 16
            elif kind == 8:
                size += ((second >> 16 & 0xFF) + 15) // 16 * 16
            records.append((at, kind, first, second, data[at:at + size]))
            at += size
        offset = end
    return records, offset


def compare_records(name, old, new, devices, prints):
    """Returns the differences of two records at the same offset."""
    at, kind, first, second, bytes_before = old
    bytes_after = new[4]
    if (at, kind, first) != new[:3] or len(bytes_before) != len(bytes_after):
        return problems.append(f"{name}: another record at {at}")
    if kind == 1 and second in prints:
        if new[3] in prints or new[3] == 0:
            problems.append(f"{name}: the fingerprint at {at} is still one")
        changes["accepted"] += 1
        return
    if kind == 2:
        flags, size, start = second >> 24 & 0xFF, second >> 48 & 0xFF, 16 + (8 if second >> 24 & 1 else 0)
        token = bytes_before[start:start + size]
        if flags & 4 and struct.unpack("<Q", token)[0] in prints:
            changes["accepted"] += 1
            expected = bytes_before[:start] + bytes_after[start:start + 8] + bytes_before[start + 8:]
        elif not flags & 14 and token.hex() in devices:
            changes["settled"] += 1
            expected = (bytes_before[:11] + bytes([flags | 8]) + bytes_before[12:start]
                        + bytes_after[start:start + min(8, size)] + bytes(max(0, size - 8))
                        + bytes_before[start + size:])
        elif bytes_before != bytes_after:
            masked = bytes_before
            for device in devices:
                masked = re.sub(device.encode(), b"*" * len(device), masked, flags=re.I)
            expected = masked
            changes["texts"] += 1
        else:
            expected = bytes_before
        if bytes_after != expected:
            problems.append(f"{name}: the verdict at {at} differs in more than its token")
        return
    if kind == 3 and bytes_before != bytes_after:
        if bytes_after != bytes_before[:40] + struct.pack("<Q", UNKNOWN):
            problems.append(f"{name}: the reservation at {at} differs")
        changes["chunks"] += 1
        return
    if kind == 8:
        expected = bytes_before
        for device in devices:
            expected = re.sub(device.encode(), b"*" * len(device), expected, flags=re.I)
        changes["texts"] += expected != bytes_before
        bytes_before = expected
    if bytes_before != bytes_after:
        problems.append(f"{name}: the record at {at} differs")


def compare_segments(name, before, after, devices, prints):
    if len(before) != len(after) or before[:32] != after[:32]:
        return problems.append(f"{name}: another length or header")
    (old, old_end), (new, new_end) = segment(name, before), segment(name, after)
    if old_end != new_end or len(old) != len(new):
        return problems.append(f"{name}: sound up to {new_end} instead of {old_end}")
    for one, other in zip(old, new):
        compare_records(name, one, other, devices, prints)
    if after[new_end:] not in (before[old_end:], bytes(len(before) - old_end)):
        problems.append(f"{name}: the bytes behind the last block are neither old nor zero")


def checked(name, data):
    """Returns a manifest without its checksum, which must be correct."""
    found = json.loads(data)
    checksum = found["checksum"]
    text = json.dumps(dict(found, checksum=0), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if zlib.crc32(text.encode()) != checksum:
        problems.append(f"{name}: another checksum")
    del found["checksum"]
    return found


def spaced(device):
    """Returns a pattern for a token with separators between its digits."""
    return re.compile(rb"[-:<> \t\r]*".join(bytes([digit]) for digit in device.encode()), re.I)


def without_separators(data):
    """Returns data without the separators that a token's digits may have, in lower case."""
    return data.translate(None, b"-:<> \t\r").lower()


def row_numbers(elements):
    """Returns the numbers of erased rows. An element is a number, or the first of several rows and their count."""
    found = set()
    for element in elements:
        first, count = element if isinstance(element, list) else (element, 1)
        found.update(range(first, first + count))
    return found


def compare_manifests(name, before, after, list_changes, devices):
    plain = without_separators(before)
    for device in devices:
        if device.encode() not in plain:
            continue
        before = spaced(device).sub(lambda found: re.sub(rb"[0-9A-Fa-f]", b"*", found[0]), before)
    old, new = json.loads(before), checked(name, after)
    del old["checksum"]
    old.pop("listHash", None)
    if "listHash" in new and list_changes:
        problems.append(f"{name}: a hash of the list is left")
    new.pop("listHash", None)
    earlier, erased = old.pop("erasedRows", []), new.pop("erasedRows", [])
    if not row_numbers(earlier) <= row_numbers(erased):
        problems.append(f"{name}: rows that were erased before are not erased")
    if old != new:
        problems.append(f"{name}: more than the hash of the list and the erased rows differs")


def compare_lists(name, before, after, devices):
    if len(before) != len(after):
        return problems.append(f"{name}: another size")
    for old, new in zip(before.split(b"\n"), after.split(b"\n")):
        if old != new:
            changes["rows"] += 1
            text = re.sub(rb"[<> ]", b"", old).lower().decode(errors="replace")
            if not any(device in text for device in devices):
                problems.append(f"{name}: a row of another device differs: {old!r}")
            # The row of an erased device loses all its text. Another row that mentions the token loses only the token.
            masked = re.sub(rb"[0-9A-Za-z\x80-\xff]", b"*", old)
            if any(re.search(rb"[0-9A-Za-z]%b|%b[0-9A-Za-z]" % (device.encode(), device.encode()), old, re.I)
                   for device in devices):
                masked = re.sub(b"|".join(device.encode() for device in devices),
                                lambda found: b"*" * len(found[0]), old, flags=re.I)
            if masked != new:
                problems.append(f"{name}: more than letters and digits of a row differ: {new!r}")


def main():
    partly, absent = "--partly" in sys.argv, "--absent" in sys.argv
    before, after, tokens = [word for word in sys.argv[1:] if not word.startswith("--")]
    with open(tokens) as file:
        devices = {line.strip().lower() for line in file if line.strip()}
    prints = {fingerprint(device.encode()) for device in devices}
    old, new = files(before), files(after)
    for name in old.keys() ^ new.keys():
        kept = name in new and os.path.basename(name).startswith(".") and partly
        if not kept and not (name in old and os.path.basename(name).startswith(".")):
            problems.append(f"{name} is only {'before' if name in old else 'after'}")
    for name, data in new.items():
        if name not in old:
            continue
        if partly and data == old[name]:
            continue
        plain, lower = without_separators(data), data.lower()
        for device in devices:
            if device.encode() in plain:
                problems.append(f"{name}: {device[:16]} is there with separators")
            packed = bytes.fromhex(device)
            forms = {"digits": device.encode(), "capitals": device.upper().encode(), "binary": packed,
                     "base64": base64.b64encode(packed).rstrip(b"="),
                     "base64 for URLs": base64.urlsafe_b64encode(packed).rstrip(b"="),
                     "fingerprint": struct.pack("<Q", fingerprint(device.encode())),
                     "fingerprint, high byte first": struct.pack(">Q", fingerprint(device.encode())),
                     "fingerprint's digits": b"%016x" % fingerprint(device.encode())}
            for form, value in forms.items():
                if value in data or form == "digits" and value in lower:
                    problems.append(f"{name}: {device[:16]} is there as {form}")
        base = os.path.basename(name)
        if absent:
            continue
        if base.startswith("segment-"):
            compare_segments(name, old[name], data, devices, prints)
        elif base in ("manifest.json", "manifest.copy"):
            compare_manifests(name, old[name], data, not partly and old.get("tokens") != new.get("tokens"), devices)
        elif base == "tokens":
            compare_lists(name, old[name], data, devices)
        elif base not in ("telemetry.json", "report.html", "lock") and data != old[name]:
            problems.append(f"{name} differs")
    print("\n".join(problems[:20]) if problems else " ".join(f"{key} {value}" for key, value in changes.items()))
    sys.exit(1 if problems else 0)


main()
