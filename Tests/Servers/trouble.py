#!/usr/bin/env python3
"""A server in trouble: `apns.py` with what happens to sound servers, and passes."""
import json
import os
import socket
import struct
import threading
import time

import apns
from apns import DATA, END_HEADERS, END_STREAM, HEADERS, PING, SETTINGS, WINDOW_UPDATE

BEGAN = []
SILENT = []


def note_trouble(self):
    self.record.write(event="trouble", connection=self.number)


def reset_each_thousand(self, stream, path, count):
    """Each connection breaks off at its thousandth request, whatever is in flight."""
    if self.taken < 1000:
        return self.accept(stream)
    note_trouble(self)
    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    self.socket.close()
    raise EOFError


def stall_for_good(self, stream, path, count):
    """The connection that is first to send 500 responses then goes silent; the others live."""
    if self.taken >= 500 and not SILENT:
        SILENT.append(self.number)
        note_trouble(self)
    if SILENT == [self.number]:
        return "swallowed"
    return self.accept(stream)


def unavailable(self, stream, path, count):
    """For two seconds from the 500th request: 503 with Retry-After."""
    if self.seen.requests() >= 500 and not BEGAN:
        BEGAN.append(time.monotonic())
        note_trouble(self)
    if not BEGAN or time.monotonic() > BEGAN[0] + 2:
        return self.accept(stream)
    block = b"\x08\x03503" + b"\x0f\x26\x011"
    self.answer(
        stream, self.frame(HEADERS, END_HEADERS, stream, block),
        self.frame(DATA, END_STREAM, stream, json.dumps({"reason": "ServiceUnavailable"}).encode()))
    return "unavailable"


def refuse_each_seventh(self, stream, path, count):
    if (stream // 2) % 7 != 6:
        return self.accept(stream)
    note_trouble(self)
    return self.refuse(stream)


def changing_limit(self, stream, path, count):
    """The stream limit goes from 1000 to 1, to 10, and back."""
    limits = {500: 1, 550: 10, 700: 1000}
    action = self.accept(stream)
    if self.taken in limits:
        note_trouble(self)
        self.send(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 3, limits[self.taken])))
    return action


def read_slowly(self, stream, path, count):
    """The first connection, after 20 answers, lets 64 MB come, reads 50 bytes a second and lives."""
    if self.number > 1 or self.taken < 20:
        return self.accept(stream)
    self.send(self.frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 64 << 20)))
    while self.socket.recv(50):
        self.send(self.frame(PING, 0, 0, bytes(8)))
        time.sleep(1)
    raise EOFError


def closed_window(self, stream, path, count):
    """The first connection gives nothing back of its window after 20 answers, and answers all."""
    if self.number == 1 and self.taken >= 20:
        self.open_windows = lambda stream, count: None
    return self.accept(stream)


def silent_in_burst(self, stream, path, count):
    """After 100 answers on each connection the limit rises from 4 streams to 1,000, and of the burst
    that follows 50 are answered, nothing more until there is a file named `--record` and `.go`."""
    if self.taken < 150:
        action = self.accept(stream)
        if self.taken == 100:
            self.send(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 1000)))
        return action
    if not self.muted:
        self.muted = True
        self.waiting = []
        threading.Thread(target=self.go_on, daemon=True).start()
    if self.waiting is None:
        return self.accept(stream)
    self.waiting.append(stream)
    return "taken"


def go_on(self):
    """Answers what has been waiting, in order, once the word is there."""
    while not os.path.exists(self.options.record + ".go"):
        time.sleep(0.02)
    with self.lock:
        for stream in self.waiting:
            self.accept(stream)
        self.waiting = None


apns.Connection.go_on = go_on
apns.Seen.requests = lambda self: len(self.counts)
apns.BEHAVIOURS.update({function.__name__.replace("_", "-"): function for function in (
    reset_each_thousand, stall_for_good, unavailable, refuse_each_seventh, changing_limit,
    read_slowly, closed_window, silent_in_burst)})

if __name__ == "__main__":
    apns.main()
