#!/usr/bin/env python3
"""A legacy binary gateway and a feedback service, from the documents' tables, for tests.

    gateway.py --certificate FILE --key FILE --record FILE [--bad FILE] [--error-delay S] [--hold-errors]
        [--end fin|close|rst] [--shutdown-every N] [--lose-packet] [--feedback FILE [--cut]]

Prints `listening on PORT`. The record has a line for each notification that was taken:
`connection command identifier expiry priority token payload`. A token of the bad file (`token
status` a line) is answered with an error packet, after the delay and while reading and discarding
goes on, and the end; in command 0 with the end alone. With `--hold-errors`, the packet also waits for a
file whose name is that of `--record` with `.go`. With `--shutdown-every N` each Nth
notification of a connection is the last one: status 10. `--lose-packet` ends without the packet,
`--forget-identifier` with one that names no notification.
With `--feedback` it sends that file's bytes to whoever connects, and ends; with `--cut` without a close_notify.
"""
import argparse
import os
import socket
import ssl
import struct
import threading
import time


class Stream:
    """Whole pieces of what a peer sends."""

    def __init__(self, connection):
        self.connection = connection

    def take(self, count):
        pieces = b""
        while len(pieces) < count:
            piece = self.connection.recv(min(65536, count - len(pieces)))
            if not piece:
                raise EOFError
            pieces += piece
        return pieces

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]


def notification(stream):
    """command, identifier, expiry, priority, token, payload, as the document's tables have it."""
    command = stream.number("!B")
    if command in (0, 1):
        identifier, expiry = (stream.number("!I"), stream.number("!I")) if command else (None, None)
        token = stream.take(stream.number("!H"))
        payload = stream.take(stream.number("!H"))
        return command, identifier, expiry, 10, token, payload
    assert command == 2, f"command {command}"
    frame = stream.take(stream.number("!I"))
    items = {}
    while frame:
        item, length = struct.unpack("!BH", frame[:3])
        assert item not in items and len(frame) >= 3 + length, "a frame's items"
        items[item] = frame[3:3 + length]
        frame = frame[3 + length:]
    number = lambda data: int.from_bytes(data, "big") if data is not None else None
    return (2, number(items.get(3)), number(items.get(4)), number(items.get(5)), items[1], items[2])


class Gateway:
    def __init__(self, options):
        self.options = options
        self.record = open(options.record, "w", buffering=1)
        self.lock = threading.Lock()
        self.bad = {}
        if options.bad:
            for line in open(options.bad):
                token, status = line.split()
                self.bad[bytes.fromhex(token)] = int(status)

    def serve(self, connection, number):
        stream = Stream(connection)
        taken = 0
        try:
            while True:
                command, identifier, expiry, priority, token, payload = notification(stream)
                status = self.bad.get(token)
                if status is None:
                    taken += 1
                    with self.lock:
                        self.record.write(
                            f"{number} {command} {identifier} {expiry} {priority} {token.hex()} "
                            f"{payload.hex()}\n")
                    if taken == self.options.shutdown_every:
                        status = 10
                if status is not None:
                    self.end(connection, command, status, identifier)
                    return
        except (EOFError, OSError):
            pass
        finally:
            connection.close()

    def is_held(self):
        return self.options.hold_errors and not os.path.exists(self.options.record + ".go")

    def end(self, connection, command, status, identifier):
        """Reads and discards for a while, says what was wrong, and ends."""
        connection.settimeout(0.01)
        until = time.monotonic() + self.options.error_delay
        while time.monotonic() < until or self.is_held():
            try:
                if not connection.recv(65536):
                    return
            except (TimeoutError, ssl.SSLWantReadError):
                pass
        connection.settimeout(5)
        if self.options.forget_identifier:
            identifier = 0
        if command != 0 and not self.options.lose_packet:
            connection.sendall(struct.pack("!BBI", 8, status, identifier))
        if self.options.end == "rst":
            # What the peer has not read by then may be lost: give it a moment.
            time.sleep(0.2)
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if self.options.end == "close":
            return
        try:
            # In order: the end is said, and what still comes is read, so that no reset follows.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except (OSError, ValueError):
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--record", required=True)
    parser.add_argument("--client-ca")
    parser.add_argument("--bad")
    parser.add_argument("--error-delay", type=float, default=0.05)
    parser.add_argument("--hold-errors", action="store_true")
    parser.add_argument("--end", choices=["fin", "close", "rst"], default="fin")
    parser.add_argument("--shutdown-every", type=int)
    parser.add_argument("--lose-packet", action="store_true")
    parser.add_argument("--forget-identifier", action="store_true")
    parser.add_argument("--feedback")
    parser.add_argument("--cut", action="store_true")
    options = parser.parse_args()
    gateway = Gateway(options)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    if options.client_ca:
        context.load_verify_locations(options.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on {listener.getsockname()[1]}", flush=True)
    number = 0
    while True:
        plain, _ = listener.accept()
        number += 1

        def run(plain=plain, number=number):
            try:
                connection = context.wrap_socket(plain, server_side=True)
            except (ssl.SSLError, OSError):
                return
            if options.feedback:
                connection.sendall(open(options.feedback, "rb").read())
                try:
                    if not options.cut:
                        connection.unwrap()
                except OSError:
                    pass
                connection.close()
                return
            gateway.serve(connection, number)

        threading.Thread(target=run, daemon=True).start()


main()
