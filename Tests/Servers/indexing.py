#!/usr/bin/env python3
"""A server that ignores SETTINGS_HEADER_TABLE_SIZE = 0: `apns.py` with a header table of 4,096 bytes,
used from the `--from`th response of a connection on.

The encoder is this file's own: RFC 7541 by hand, every field inserted or referred to.
"""
import json
import struct

import apns
from apns import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM
from hpack_walk import STATIC

NAMES = [entry[0] for entry in STATIC]


class Encoder:
    """Inserts each field once, and refers to it while it is in the table."""

    def __init__(self, capacity=4096):
        self.capacity = capacity
        self.entries = []
        self.size = 0

    @staticmethod
    def integer(value, bits, pattern):
        most = (1 << bits) - 1
        if value < most:
            return bytes([pattern | value])
        result = [pattern | most]
        value -= most
        while value >= 128:
            result.append(value & 127 | 128)
            value >>= 7
        return bytes(result + [value])

    @classmethod
    def text(cls, text):
        return cls.integer(len(text), 7, 0) + text.encode()

    def field(self, name, value):
        if (name, value) in self.entries:
            return self.integer(62 + self.entries.index((name, value)), 7, 0x80)
        known = [entry[0] for entry in self.entries]
        index = 62 + known.index(name) if name in known else (
            NAMES.index(name) + 1 if name in NAMES else 0)
        self.entries.insert(0, (name, value))
        self.size += 32 + len(name) + len(value)
        while self.size > self.capacity:
            oldest = self.entries.pop()
            self.size -= 32 + len(oldest[0]) + len(oldest[1])
        return self.integer(index, 6, 0x40) + (b"" if index else self.text(name)) + self.text(value)

    def block(self, *fields):
        return b"".join(self.field(*field) for field in fields)


def plain(status):
    return b"\x08\x03%d" % status


def index(self, stream, path, count):
    """By the row's last digit: 410, 400, a 200 with an interim response, in pieces, with trailers, or
    with its stream reset in the middle; all others a plain 200."""
    row = int(path.split("/")[-1][8:16], 16)
    # An interim response, too, counts as none.
    self.encoder = getattr(self, "encoder", None) or Encoder()
    encode = self.encoder.block
    fields = [("server", "scripted"), ("x-row", "%d" % (row % 300)), ("x-node", "n%d" % (row % 7))]
    indexes = self.taken + 1 >= self.options.first
    if not indexes:
        encode = lambda *fields: plain(int(fields[0][1]))
    frame, kind = self.frame, row % 10
    if kind in (1, 2):
        status, body = [(410, {"reason": "Unregistered", "timestamp": 1700000000000 + row}),
                        (400, {"reason": "BadDeviceToken"})][kind - 1]
        return self.answer(
            stream, frame(HEADERS, END_HEADERS, stream, encode((":status", str(status)), *fields)),
            frame(DATA, END_STREAM, stream, json.dumps(body).encode()))
    if kind == 3 and indexes:
        return self.answer(
            stream, frame(HEADERS, END_HEADERS, stream, encode((":status", "103"), ("link", path))),
            frame(HEADERS, END_HEADERS | END_STREAM, stream, encode((":status", "200"), *fields)))
    if kind == 4:
        block = encode((":status", "200"), *fields)
        return self.answer(
            stream, frame(HEADERS, END_STREAM, stream, block[:1]),
            frame(CONTINUATION, 0, stream, block[1:2]),
            frame(CONTINUATION, END_HEADERS, stream, block[2:]))
    if kind == 5 and indexes:
        return self.answer(
            stream, frame(HEADERS, END_HEADERS, stream, encode((":status", "200"), *fields)),
            frame(DATA, 0, stream, b"well"),
            frame(HEADERS, END_HEADERS | END_STREAM, stream, encode(("x-trailer", path[-9:]))))
    if kind == 6 and indexes:
        self.answer(
            stream, frame(HEADERS, END_HEADERS, stream, encode((":status", "200"), *fields)),
            frame(RST_STREAM, 0, stream, struct.pack(">I", 2)))
        return "reset"
    return self.answer(
        stream,
        frame(HEADERS, END_HEADERS | END_STREAM, stream, encode((":status", "200"), *fields)))


apns.BEHAVIOURS["index"] = index

if __name__ == "__main__":
    apns.main(add_options=lambda parser: parser.add_argument(
        "--from", dest="first", type=int, default=1))
