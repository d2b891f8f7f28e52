#!/usr/bin/env python3
"""A small APNs for tests: records every request's bytes, and answers as it is told.

Standard library only, and none of Broadside's own code: frames are cut and header blocks walked by
hand, so that what Broadside sends is judged by another reading of RFC 9113 and RFC 7541.

    apns.py --certificate FILE --key FILE --record FILE [--behaviour NAME] [--port N] ...

Prints `listening on PORT`. Writes a JSON line for each thing that happens.
"""
import argparse
import json
import socket
import ssl
import struct
import sys
import threading
import time

import hpack_walk

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 6, 7, 8, 9)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
NO_ERROR, REFUSED_STREAM, ENHANCE_YOUR_CALM = 0, 7, 11
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def is_json(body):
    """Whether a body is an object to Python's reader, which takes NaN and such, so those are not."""
    def refuse(word):
        raise ValueError(word)
    try:
        return isinstance(json.loads(body.decode("utf-8"), parse_constant=refuse), dict)
    except ValueError:
        return False


class Record:
    """What happened, a JSON line each, in order over all connections."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1)
        self.lock = threading.Lock()

    def write(self, **entry):
        with self.lock:
            self.file.write(json.dumps(entry) + "\n")


class Seen:
    """What all connections know in common: how often each path was seen, and how often taken."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = {}
        self.connections = 0
        self.second_is_open = threading.Event()

    def note(self, path):
        with self.lock:
            self.counts[path] = self.counts.get(path, 0) + 1
            return self.counts[path]

    def connection(self):
        with self.lock:
            self.connections += 1
            return self.connections


class Connection:
    """One connection, from the preface to its end."""

    def __init__(self, socket, number, options, record, seen):
        self.socket = socket
        self.number = number
        self.options = options
        self.record = record
        self.seen = seen
        self.buffer = b""
        self.consumed = 0
        self.block = None
        self.bodies = {}
        self.paths = {}
        self.taken = 0
        self.open = 0
        self.most_open = 0
        self.muted = False
        # Timers send too; a TLS session takes one caller at a time.
        self.lock = threading.RLock()
        self.last_taken = 0
        self.walk = hpack_walk.Walk()

    def read(self, count):
        while len(self.buffer) - self.consumed < count:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.buffer, self.consumed = self.buffer[self.consumed:] + data, 0
        start = self.consumed
        self.consumed += count
        return self.buffer[start:self.consumed]

    def frame(self, kind, flags, stream, payload=b""):
        return (struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
                + struct.pack(">I", stream) + payload)

    def send(self, *frames):
        with self.lock:
            self.socket.sendall(b"".join(frames))

    def run(self):
        preface = self.read(len(PREFACE))
        self.record.write(event="preface", connection=self.number, sound=preface == PREFACE,
                          tls=self.socket.version(), alpn=self.socket.selected_alpn_protocol())
        if self.number == 2:
            self.seen.second_is_open.set()
        settings = b""
        for name, value in self.options.setting:
            settings += struct.pack(">HI", name, value)
        self.send(self.frame(SETTINGS, 0, 0, settings))
        try:
            while True:
                header = self.read(9)
                length = int.from_bytes(header[:3], "big")
                kind, flags = header[3], header[4]
                stream = int.from_bytes(header[5:9], "big")
                self.handle(kind, flags, stream, self.read(length))
        except (EOFError, OSError, ssl.SSLError) as error:
            self.record.write(event="end", connection=self.number, most_open=self.most_open,
                              error=type(error).__name__)

    def handle(self, kind, flags, stream, payload):
        if kind not in (DATA, HEADERS):
            self.record.write(event="frame", connection=self.number, kind=kind, flags=flags,
                              stream=stream, payload=payload.hex())
        if kind == SETTINGS and not flags & ACK:
            self.send(self.frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(self.frame(PING, ACK, 0, payload))
        elif kind == HEADERS:
            fields = self.walk.block(payload)
            path = next(field["value"] for field in fields if field["name"] == ":path")
            self.paths[stream] = path
            self.bodies[stream] = b""
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            entry = dict(event="request", connection=self.number, stream=stream, flags=flags,
                         time=time.monotonic(), path=path, table=self.walk.table_size)
            if self.walk.blocks in self.options.detail:
                entry.update(block=payload.hex(), fields=fields)
            self.record.write(**entry)
            self.remember(stream, fields)
        elif kind == DATA:
            self.bodies[stream] += payload
            if payload:
                self.open_windows(stream, len(payload))
            if flags & END_STREAM:
                self.request(stream)

    def remember(self, stream, fields):
        """What a kind of connection keeps of a request's fields until it answers."""

    def open_windows(self, stream, count):
        frames = [self.frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", count))]
        if self.options.stream_updates:
            frames.append(self.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", count)))
        self.send(*frames)

    def request(self, stream):
        path = self.paths.pop(stream)
        body = self.bodies.pop(stream)
        count = self.seen.note(path)
        with self.lock:
            action = BEHAVIOURS[self.options.behaviour](self, stream, path, count)
        self.record.write(event="answer", connection=self.number, stream=stream, path=path,
                          action=action, sound=is_json(body),
                          body=body.decode() if count == 1 or self.options.bodies else "")

    # Answers

    def answer(self, stream, *frames, closes=True):
        """Sends frames that end a stream."""
        self.open -= closes
        self.taken += 1
        self.last_taken = max(self.last_taken, stream)
        self.send(*frames)
        return "taken"

    def accept(self, stream):
        return self.answer(stream, self.frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x88"))

    def refuse(self, stream):
        self.open -= 1
        self.send(self.frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)))
        return "refused"

    def json(self, stream, status, body, retry_after=None):
        block = b"\x08\x03%d" % status + b"\x0f\x10\x10application/json"
        if retry_after is not None:
            block += b"\x0f\x26" + bytes([len(str(retry_after))]) + str(retry_after).encode()
        if self.options.date is not None:
            date = time.strftime(
                "%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + self.options.date)).encode()
            block += b"\x0f\x12" + bytes([len(date)]) + date
        return self.answer(
            stream, self.frame(HEADERS, END_HEADERS, stream, block),
            self.frame(DATA, END_STREAM, stream, json.dumps(body, ensure_ascii=False).encode()))

    def break_off(self):
        """Ends the connection under whoever reads from it."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def goaway(self, last, code=NO_ERROR, words=b""):
        return self.frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + words)


class RememberingConnection(Connection):
    """Remembers each request's headers until it is answered; values of one name are joined."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.headers = {}

    def remember(self, stream, fields):
        values = self.headers[stream] = {}
        for field in fields:
            values.setdefault(field["name"], []).append(field["value"])

    def header(self, stream, name, default=""):
        """A header of a request."""
        return " ".join(self.headers[stream].get(name, [default]))

    def request(self, stream):
        super().request(stream)
        del self.headers[stream]


def plain(self, stream, path, count):
    return self.accept(stream)


def empty_data(self, stream, path, count):
    """A 200 without END_STREAM, and an empty DATA frame in a segment of its own."""
    self.send(self.frame(HEADERS, END_HEADERS, stream, b"\x88"))
    return self.answer(stream, self.frame(DATA, END_STREAM, stream))


def body(self, stream, path, count):
    return self.answer(
        stream, self.frame(HEADERS, END_HEADERS, stream, b"\x88"),
        self.frame(DATA, 0, stream, b"wel"), self.frame(DATA, END_STREAM, stream, b"come"))


def identified(self, stream, path, count):
    """A 200 with an apns-unique-id, with all other forms: in upper case, before an empty DATA, without one."""
    import uuid  # Its import takes longer than most servers need to start.
    number = uuid.uuid5(uuid.NAMESPACE_URL, path)
    text = str(number).upper() if number.int % 7 == 0 else str(number)
    block = b"\x88\x00\x0eapns-unique-id\x24" + text.encode()
    if number.int % 5 == 0:
        self.accept(stream)
        return "none"
    if number.int % 3 == 0:
        self.send(self.frame(HEADERS, END_HEADERS, stream, block))
        self.answer(stream, self.frame(DATA, END_STREAM, stream))
    else:
        self.answer(stream, self.frame(HEADERS, END_HEADERS | END_STREAM, stream, block))
    return str(number)


def size_update(self, stream, path, count):
    """The size update that is due, and fields that are meant for a table of no size."""
    block = (b"\x20" if self.taken == 0 else b"") + b"\x88"
    block += b"\x40\x07apns-id\x24" + b"eabeae54-14a8-11e5-b60b-1697f925ec7b"
    return self.answer(stream, self.frame(HEADERS, END_HEADERS | END_STREAM, stream, block))


def no_size_update(self, stream, path, count):
    block = b"\x88\x40\x06server\x04test"
    return self.answer(stream, self.frame(HEADERS, END_HEADERS | END_STREAM, stream, block))


def in_pieces(self, stream, path, count):
    """An interim answer, padding, CONTINUATION, a Huffman-coded value, an unknown frame type."""
    block = b"\x88\x0f\x27\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"
    return self.answer(
        stream, self.frame(HEADERS, END_HEADERS, stream, b"\x08\x03103"),
        self.frame(0xbe, 0x55, stream, b"unknown"),
        self.frame(HEADERS, END_STREAM | PADDED, stream, b"\x05" + block[:3] + bytes(5)),
        self.frame(CONTINUATION, 0, stream), self.frame(CONTINUATION, 0, stream, block[3:7]),
        self.frame(CONTINUATION, END_HEADERS, stream, block[7:]))


def verdicts(self, stream, path, count):
    """An answer by the token's ninth to sixteenth digit, its row."""
    row = int(path.split("/")[-1][8:16], 16)
    if row % 10 == 1:
        return self.json(stream, 400, {"reason": "BadDeviceToken"})
    if row % 10 == 2:
        return self.json(stream, 410, {"reason": "Unregistered", "timestamp": 1700000000000 + row})
    if row % 10 == 3 and count == 1:
        return self.json(stream, 429, {"reason": "TooManyRequests"})
    if row % 10 == 4:
        return self.json(stream, 400, {"reason": "SomethingNobodyKnowsYet"})
    return self.accept(stream)


def forbidden(self, stream, path, count):
    return self.json(stream, 403, {"reason": "InvalidProviderToken"})


def reason(self, stream, path, count):
    return self.json(stream, self.options.status, {"reason": self.options.reason})


def reason_after_first(self, stream, path, count):
    """The same for all rows but the first, as for a list that begins with a device of one's own."""
    row = int(path.split("/")[-1][8:16], 16)
    return self.accept(stream) if row == 0 else reason(self, stream, path, count)


def reason_between(self, stream, path, count):
    """The same, but now and then one that says nothing of the campaign."""
    row = int(path.split("/")[-1][8:16], 16)
    if row % 7 == 3 and count == 1:
        return self.json(stream, 429, {"reason": "TooManyRequests"})
    if row % 7 == 5:
        return self.json(stream, 410, {"reason": "Unregistered", "timestamp": 1700000000000})
    return reason(self, stream, path, count)


def stray_once(self, stream, path, count):
    """One row gets a response without a reason, as from a proxy, and is accepted the second time."""
    row = int(path.split("/")[-1][8:16], 16)
    if row % 7 == 1 and count == 1:
        return self.json(stream, 404, {})
    return self.accept(stream)


def goaway_reason(self, stream, path, count):
    """Ends the connection before the request is acted on, as for a certificate that is refused."""
    self.send(self.goaway(0, NO_ERROR, json.dumps({"reason": self.options.reason}).encode()))
    return "ignored"


def refused(self, stream, path, count):
    """Every third request of a path's first time is not acted on."""
    row = int(path.split("/")[-1][8:16], 16)
    return self.refuse(stream) if row % 3 == 1 and count == 1 else self.accept(stream)


def goaway_above(self, stream, path, count):
    """After 20 answers: GOAWAY below what is in flight, whose streams were not acted on."""
    if self.muted:
        return "ignored"
    action = self.accept(stream)
    if self.taken == 20:
        self.muted = True
        self.send(self.goaway(self.last_taken, NO_ERROR, b'{"reason":"Shutdown"}'))
        threading.Timer(0.2, self.break_off).start()
    return action


def goaway_twice(self, stream, path, count):
    """After 20 answers a warning with the highest number, 200 ms later the true last stream."""
    if self.muted:
        return "ignored"
    action = self.accept(stream)
    if self.taken == 20:
        self.send(self.goaway(0x7fffffff))
        threading.Timer(0.2, self.end_twice).start()
    return action


def end_twice(self):
    """Streams up to the last are answered by now; what comes later is not acted on."""
    try:
        with self.lock:
            self.muted = True
            self.send(self.goaway(self.last_taken))
    except OSError:
        return
    time.sleep(0.2)
    self.break_off()


Connection.end_twice = end_twice


def goaway_calm(self, stream, path, count):
    """Two connections are thrown out with ENHANCE_YOUR_CALM and words that are not JSON."""
    if self.muted:
        return "ignored"
    action = self.accept(stream)
    if self.taken == 20 and self.number <= 2:
        self.muted = True
        self.send(self.goaway(stream, ENHANCE_YOUR_CALM, b"Maximum exceeded"))
        threading.Timer(0.2, self.break_off).start()
    return action


def stall(self, stream, path, count):
    """The first connection goes silent after 20 answers, PING and all."""
    if self.number == 1 and self.taken >= 20:
        return "swallowed"
    return self.accept(stream)


def reset(self, stream, path, count):
    """The first connection breaks off after 20 answers, whatever is in flight."""
    if self.number > 1 or self.taken < 20:
        return self.accept(stream)
    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    self.record.write(event="answer", connection=self.number, stream=stream, path=path,
                      action="swallowed", body="")
    self.socket.close()
    raise EOFError


def forgotten(self, stream, path, count):
    """The first connection reads nothing after its first response, as when a network has forgotten it."""
    action = self.accept(stream)
    if self.number == 1:
        time.sleep(300)
    return action


def lost(self, stream, path, count):
    """The first connection breaks off at its first request, unanswered."""
    if self.number > 1:
        return self.accept(stream)
    self.break_off()
    return "swallowed"


def busy_then_closed(self, stream, path, count):
    """The second connection says 20 times to try again later, and then breaks off. The first one responds once the
    second one is open, so that this one has its share of the rows."""
    if self.number != 2:
        self.seen.second_is_open.wait(10)
        return self.accept(stream)
    if self.taken < 20:
        self.json(stream, 429, {"reason": "TooManyRequests"}, self.options.retry_after)
        return "busy"
    self.break_off()
    return "swallowed"


BEHAVIOURS = {function.__name__.replace("_", "-"): function for function in (
    plain, empty_data, body, identified, size_update, no_size_update, in_pieces, verdicts, forbidden, reason,
    reason_after_first, reason_between, stray_once, goaway_reason, refused, goaway_above, goaway_twice, goaway_calm, stall, reset,
    forgotten, lost, busy_then_closed)}


def setting(text):
    name, value = text.split("=")
    return int(name), int(value)


def main(connection=Connection, add_options=None):
    parser = argparse.ArgumentParser()
    if add_options:
        add_options(parser)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--record", required=True)
    parser.add_argument("--behaviour", default="plain")
    parser.add_argument("--setting", type=setting, action="append", default=[])
    parser.add_argument("--bodies", action="store_true", help="of repeated requests too")
    parser.add_argument("--date", type=int, help="answers tell the time, so many seconds off")
    parser.add_argument("--reason", help="what the behaviours with that name say")
    parser.add_argument("--status", type=int, default=403, help="the status that goes with it")
    parser.add_argument("--retry-after", type=int, help="seconds, of busy-then-closed")
    parser.add_argument("--served", type=int, default=sys.maxsize,
                        help="connections that are served: later ones are open, and in silence")
    parser.add_argument("--stream-updates", action="store_true")
    parser.add_argument("--detail", type=lambda text: {int(n) for n in text.split(",")},
                        default={1, 2, 1000})
    parser.add_argument("--protocol", default="h2", help="ALPN: a name, or none")
    parser.add_argument("--answer", choices=["tls", "silence", "text"], default="tls")
    options = parser.parse_args()

    record = Record(options.record)
    seen = Seen()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    context = None
    if options.answer == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        if options.protocol != "none":
            context.set_alpn_protocols([options.protocol])
    print(f"listening on {listener.getsockname()[1]}", flush=True)

    def serve(client):
        number = seen.connection()
        try:
            if options.answer != "tls" or number > options.served:
                data = client.recv(65536)
                if options.answer == "text":
                    client.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                while data:
                    record.write(event="bytes", connection=number, count=len(data))
                    data = client.recv(65536)
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with context.wrap_socket(client, server_side=True) as secure:
                connection(secure, number, options, record, seen).run()
        except (OSError, EOFError) as error:
            record.write(event="failed", connection=number, error=str(error))

    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    main()
