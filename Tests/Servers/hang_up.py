#!/usr/bin/env python3
"""The server behind a proxy: HTTP/1.1 that takes requests, writes each down before it does anything about
it, and then hangs up on some of them.

    hang_up.py --record FILE --way WAY [--every N]

A request's row is read from its token (`DeviceTokens`). Of each N rows the last meets WAY, but only the
first time: a client that asks again gets a response. While there is a file named FILE and `.down`, the port is closed.
"""
import argparse
import os
import socket
import struct
import threading
import time


def respond(client, body=b"", status=b"200 OK", length=None):
    length = len(body) if length is None else length
    client.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, length, body))


def before(client):
    """Closed once the request is there."""


def reset_before(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_a_header(client):
    client.sendall(b"HTTP/1.1 200 OK\r\nConte")


def after_headers(client):
    """200, and less of a body than was announced."""
    respond(client, b"half", length=20)


def reset_after_headers(client):
    respond(client, b"half", length=20)
    time.sleep(0.1)
    reset_before(client)


def inside_chunk(client):
    client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf")


def silent(client):
    """Nothing at all, for longer than the proxy waits."""
    try:
        client.recv(1)
    except OSError:
        pass


def garbage(client):
    client.sendall(b"\x15\x03\x01\x00\x02\x02\x16")


WAYS = {function.__name__.replace("_", "-"): function for function in (
    before, reset_before, half_a_header, after_headers, reset_after_headers, inside_chunk, silent,
    garbage)}


class Backend:
    def __init__(self, options):
        self.options = options
        self.record = open(options.record, "a", buffering=1)
        self.lock = threading.Lock()
        self.seen = set()
        self.listener = None

    def listen(self, port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(512)
        self.listener = listener
        return listener.getsockname()[1]

    def serve(self):
        port = self.listen(0)
        print(f"listening on {port}", flush=True)
        self.listener.settimeout(0.02)
        while True:
            if os.path.exists(self.options.record + ".down"):
                self.listener.close()
                open(self.options.record + ".closed", "w").close()
                while os.path.exists(self.options.record + ".down"):
                    time.sleep(0.02)
                self.listen(port)
                self.listener.settimeout(0.02)
            try:
                client, _ = self.listener.accept()
            except TimeoutError:
                continue
            client.settimeout(30)
            threading.Thread(target=self.take, args=(client,), daemon=True).start()

    def take(self, client):
        with client:
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            while not body.endswith(b"0\r\n\r\n"):
                body += client.recv(65536)
            path = head.split(b" ")[1].decode()
            row = int(path.rsplit("/", 1)[1][8:16], 16)
            with self.lock:
                is_new = path not in self.seen
                self.seen.add(path)
                self.record.write(path + "\n")
            if is_new and row % self.options.every == self.options.every - 1:
                WAYS[self.options.way](client)
            elif row % 10 == 3:
                respond(
                    client, b'{"reason":"Unregistered","timestamp":1700000000000}', b"410 Gone")
            else:
                respond(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", required=True)
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--every", type=int, default=10)
    Backend(parser.parse_args()).serve()
