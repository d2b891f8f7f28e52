#!/usr/bin/env python3
"""A server that misbehaves over TLS: `apns.py` with answers that no server should give.

Takes the options of `apns.py`, and

    --hostile N    only the first N connections misbehave, all others accept (default: all)
    --after N      a connection accepts so many requests before it begins (default: 0)
"""
import os
import struct
import threading
import time

import apns
from apns import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM,
                  SETTINGS, WINDOW_UPDATE)

PUSH_PROMISE = 5
OK = b"\x88"


def status(text):
    """A header block of a `:status`, literally."""
    return b"\x08" + bytes([len(text)]) + text.encode()


class Hostile(apns.Connection):
    """A connection that does as its mode says, from some request on."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        limit = self.options.hostile
        self.is_hostile = limit == 0 or self.number <= limit
        self.connection_window = 65535
        self.stream_window = 65535

    def run(self):
        begin = BEGINNINGS.get(self.options.behaviour)
        if self.is_hostile and begin:
            self.read(len(apns.PREFACE))
            begin(self)
            return
        super().run()

    def handle(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == 4:
                    self.stream_window = value
        if kind == WINDOW_UPDATE and stream == 0:
            self.connection_window += struct.unpack(">I", payload)[0]
        super().handle(kind, flags, stream, payload)

    def headers(self, stream, block, flags=END_HEADERS):
        return self.frame(HEADERS, flags, stream, block)

    def swallow(self):
        """Reads on and says nothing."""
        while self.socket.recv(65536):
            pass

    def flood(self, frames):
        """Sends without end, and reads nothing."""
        while True:
            self.send(frames)

    def flood_and_read(self, frames):
        """Sends without end while another thread reads what comes."""
        threading.Thread(target=self.read_away, daemon=True).start()
        self.flood(frames)

    def read_away(self):
        try:
            while os.read(self.socket.fileno(), 65536):
                pass
        except OSError:
            pass


def hostile(function):
    """A way to answer a request, for connections whose turn it is."""
    def behaviour(self, stream, path, count):
        if not self.is_hostile or self.taken < self.options.after:
            return self.accept(stream)
        self.record.write(event="hostile", connection=self.number, stream=stream)
        function(self, stream)
        return "hostile"
    apns.BEHAVIOURS[function.__name__.replace("_", "-")] = behaviour
    return function


# Frames

@hostile
def oversized_frame(self, stream):
    self.send(b"\xff\xff\xff" + bytes([DATA, 0]) + struct.pack(">I", stream))
    self.flood(bytes(65536))


@hostile
def push_promise(self, stream):
    self.send(self.frame(PUSH_PROMISE, END_HEADERS, stream, struct.pack(">I", 2) + OK))
    self.swallow()


@hostile
def window_overflow(self, stream):
    self.send(self.frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fffffff)) * 2)
    self.swallow()


@hostile
def stream_window_overflow(self, stream):
    self.send(self.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0x7fffffff)) * 2)


@hostile
def zero_window_update(self, stream):
    self.send(self.frame(WINDOW_UPDATE, 0, 0, bytes(4)))
    self.swallow()


@hostile
def rst_each(self, stream):
    """Each request is reset, with an error that says nothing of whether it was acted on."""
    self.send(self.frame(RST_STREAM, 0, stream, struct.pack(">I", 2)))


@hostile
def rst_flood(self, stream):
    self.flood(self.frame(RST_STREAM, 0, stream, struct.pack(">I", 2)) * 1000)


@hostile
def rst_idle(self, stream):
    self.send(self.frame(RST_STREAM, 0, stream + 1000, struct.pack(">I", 2)))
    self.swallow()


@hostile
def settings_flood(self, stream):
    self.flood(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 1000)


@hostile
def settings_flood_read(self, stream):
    self.flood_and_read(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 1000)


@hostile
def settings_bad_frame_size(self, stream):
    self.send(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1)))
    self.swallow()


@hostile
def settings_bad_window(self, stream):
    self.send(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0xffffffff)))
    self.swallow()


@hostile
def settings_half(self, stream):
    self.send(self.frame(SETTINGS, 0, 0, b"\0\3\0\0\1"))
    self.swallow()


@hostile
def ping_flood(self, stream):
    self.flood(self.frame(PING, 0, 0, b"12345678") * 1000)


@hostile
def ping_flood_read(self, stream):
    self.flood_and_read(self.frame(PING, 0, 0, b"12345678") * 1000)


@hostile
def goaway_flood(self, stream):
    self.flood(self.goaway(0x7fffffff) * 1000)


@hostile
def goaway_rising(self, stream):
    self.send(self.goaway(stream), self.goaway(stream + 100))
    self.swallow()


@hostile
def unknown_frames(self, stream):
    """Legal, and without end: RFC 9113, section 5.5, has a receiver ignore them."""
    self.flood(self.frame(0xbe, 0, 0, bytes(1000)) * 50)


@hostile
def data_unknown_stream(self, stream):
    self.send(self.frame(DATA, END_STREAM, stream + 1000, b"{}"))
    self.swallow()


@hostile
def data_closed_stream(self, stream):
    self.send(self.headers(stream, status("400"), END_HEADERS | END_STREAM))
    self.flood(self.frame(DATA, 0, stream, bytes(16384)))


@hostile
def data_first(self, stream):
    self.send(self.frame(DATA, END_STREAM, stream, b"{}"))
    self.swallow()


@hostile
def data_ignoring_windows(self, stream):
    self.send(self.headers(stream, status("400")))
    self.flood(self.frame(DATA, 0, stream, bytes(16384)))


@hostile
def accept_idle_stream(self, stream):
    self.send(self.headers(stream + 1000, OK, END_HEADERS | END_STREAM))
    self.swallow()


@hostile
def accept_pushed_stream(self, stream):
    self.send(self.headers(2, OK, END_HEADERS | END_STREAM))
    self.swallow()


# Header blocks

@hostile
def hpack_garbage(self, stream):
    self.send(self.headers(stream, b"\xff" * 40, END_HEADERS | END_STREAM))
    self.swallow()


@hostile
def hpack_dynamic(self, stream):
    """A reference into a table that has no room."""
    self.send(self.headers(stream, OK + b"\xbe", END_HEADERS | END_STREAM))
    self.swallow()


@hostile
def hpack_cut(self, stream):
    self.send(self.headers(stream, OK + b"\x0f", END_HEADERS | END_STREAM))
    self.swallow()


@hostile
def continuation_flood(self, stream):
    self.send(self.headers(stream, OK, 0))
    self.flood(self.frame(CONTINUATION, 0, stream, b"\x00\x01a\x01b" * 3000))


@hostile
def continuation_empty(self, stream):
    self.send(self.headers(stream, OK, 0))
    self.flood(self.frame(CONTINUATION, 0, stream) * 1000)


@hostile
def continuation_interrupted(self, stream):
    self.send(self.headers(stream, OK, END_STREAM), self.frame(PING, 0, 0, bytes(8)))
    self.swallow()


@hostile
def continuation_alone(self, stream):
    self.send(self.frame(CONTINUATION, END_HEADERS, stream, OK))
    self.swallow()


@hostile
def endless_interim(self, stream):
    self.flood(self.headers(stream, status("103")) * 1000)


@hostile
def endless_header(self, stream):
    """One field that never ends, in frames that each are sound."""
    self.send(self.headers(stream, OK + b"\x00\x01a\x7f\xff\xff\xff\x7f", 0))
    self.flood(self.frame(CONTINUATION, 0, stream, b"b" * 16384))


def malformed(name, block):
    """RFC 9113, section 8.1.1: a malformed response is an error of its stream."""
    def behaviour(self, stream):
        self.send(self.headers(stream, block, END_HEADERS | END_STREAM))
    behaviour.__name__ = name
    hostile(behaviour)


malformed("no_status", b"\x00\x06server\x01x")
malformed("status_999", status("999"))
malformed("status_20", status("20"))
malformed("status_2000", status("2000"))
malformed("status_plus", status("+200"))
malformed("status_space", status("200 "))
malformed("status_empty", status(""))
malformed("status_twice", status("400") + OK)
malformed("status_late", b"\x00\x06server\x01x" + OK)
malformed("status_interim_end", status("103"))
malformed("capital_name", OK + b"\x00\x06Server\x01x")
malformed("request_field", OK + b"\x82")


# Bodies

@hostile
def huge_body(self, stream):
    """A reason of 10 MB, as fast as the windows let it."""
    self.send(self.headers(stream, status("400")), self.frame(DATA, 0, stream, b'{"reason":"'))
    self.connection_window -= 11
    credit = self.stream_window - 11
    left = 10_000_000
    while left:
        count = min(left, credit, self.connection_window, 16384)
        if count > 0:
            self.send(self.frame(DATA, 0, stream, b"x" * count))
            left -= count
            credit -= count
            self.connection_window -= count
            continue
        header = self.read(9)
        length, kind = int.from_bytes(header[:3], "big"), header[3]
        to, payload = int.from_bytes(header[5:9], "big"), self.read(length)
        if kind == WINDOW_UPDATE and to == stream:
            credit += struct.unpack(">I", payload)[0]
        elif kind == RST_STREAM and to == stream:
            return
        else:
            self.handle(kind, header[4], to, payload)
    self.send(self.frame(DATA, END_STREAM, stream, b'"}'))


@hostile
def empty_data_flood(self, stream):
    self.send(self.headers(stream, status("400")))
    self.flood(self.frame(DATA, 0, stream) * 1000)


@hostile
def body_never_ends(self, stream):
    """A 200 whose stream stays open: the answer is not whole."""
    self.send(self.headers(stream, OK))


# The connection

@hostile
def cut(self, stream):
    """TCP ends without TLS's close_notify, in the middle of an answer."""
    self.send(self.headers(stream, OK, END_HEADERS | END_STREAM)[:-1])
    self.break_off()


@hostile
def partial_refused(self, stream):
    """A response without its end, whose stream is then said not to have been processed."""
    self.send(self.headers(stream, OK))
    self.refuse(stream)


@hostile
def interim_refused(self, stream):
    self.send(self.headers(stream, status("103")))
    self.refuse(stream)


@hostile
def partial_goaway(self, stream):
    """The same by a GOAWAY that leaves the stream out."""
    if not self.muted:
        self.muted = True
        self.send(self.headers(stream, OK), self.goaway(stream - 2))
        threading.Timer(0.3, self.break_off).start()


@hostile
def interim_goaway(self, stream):
    if not self.muted:
        self.muted = True
        self.send(self.headers(stream, status("103")), self.goaway(stream - 2))
        threading.Timer(0.3, self.break_off).start()


@hostile
def keep_half(self, stream):
    """As many requests as were accepted before get no answer; then TCP ends."""
    self.kept = getattr(self, "kept", 0) + 1
    if self.kept == self.options.after:
        self.break_off()


@hostile
def plaintext(self, stream):
    os.write(self.socket.fileno(), b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    self.swallow()


@hostile
def stop_reading(self, stream):
    time.sleep(600)


@hostile
def ping_only(self, stream):
    """PING is answered, requests never are."""


@hostile
def trickle(self, stream):
    """An answer a byte a while, that never becomes whole."""
    for byte in b"\x00\x40\x00\x01\x04" + struct.pack(">I", stream) + OK * 16384:
        self.send(bytes([byte]))
        time.sleep(0.02)


# From a connection's first byte

def no_settings(self):
    self.swallow()


def wrong_preface(self):
    self.send(self.frame(PING, 0, 0, bytes(8)))
    self.swallow()


def text(self):
    self.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    self.swallow()


def no_streams(self):
    """A stream limit of none, for good."""
    self.send(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 0)))
    self.keep_alive()


def no_window(self):
    """Windows that never hold a byte."""
    self.send(self.frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))
    self.keep_alive()


def cut_at_once(self):
    self.break_off()


def goaway_at_once(self):
    self.send(self.frame(SETTINGS, 0, 0), self.goaway(0))
    self.swallow()


def keep_alive(self):
    """Answers SETTINGS and PING."""
    while True:
        header = self.read(9)
        payload = self.read(int.from_bytes(header[:3], "big"))
        if header[3] in (SETTINGS, PING) and not header[4] & ACK:
            self.send(self.frame(header[3], ACK, 0, payload if header[3] == PING else b""))


Hostile.keep_alive = keep_alive
BEGINNINGS = {function.__name__.replace("_", "-"): function for function in (
    no_settings, wrong_preface, text, no_streams, no_window, cut_at_once, goaway_at_once)}
apns.BEHAVIOURS.update(dict.fromkeys(BEGINNINGS, apns.plain))


def add_options(parser):
    parser.add_argument("--hostile", type=int, default=0)
    parser.add_argument("--after", type=int, default=0)


if __name__ == "__main__":
    apns.main(Hostile, add_options)
