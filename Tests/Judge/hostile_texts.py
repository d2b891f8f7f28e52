#!/usr/bin/env python3
"""The test server of `Tests/Servers` with reasons from a file: the Nth token gets the Nth
reason."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Servers"))
import apns  # noqa: E402


def by_number(self, stream, path, count):
    with open("reasons.json", encoding="utf-8") as file:
        reasons = json.load(file)
    number = int(path.rsplit("/", 1)[-1], 16)
    if number >= len(reasons):
        return self.accept(stream)
    # Reasons are written without escapes if JSON allows it, because an escape would make most of
    # them harmless.
    body = json.dumps({"reason": reasons[number]}, ensure_ascii=False).encode()
    return self.answer(
        stream, self.frame(apns.HEADERS, apns.END_HEADERS, stream, b"\x08\x03400"),
        self.frame(apns.DATA, apns.END_STREAM, stream, body))


apns.BEHAVIOURS["by-number"] = by_number

if __name__ == "__main__":
    apns.main()
