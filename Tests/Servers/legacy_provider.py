#!/usr/bin/env python3
"""A provider of the binary protocol's days, after the C listings of Apple's documents, for tests.

    legacy_provider.py --port N --ca FILE --certificate FILE --key FILE [--feedback | NOTIFICATION...]

A notification is `command:identifier:expiry:priority:token:payload`, token and payload hexadecimal;
`raw:HEX` sends bytes as they are. All are written in one go, or with --piece in records of so many
bytes, a moment apart; --half-close ends its own part then. After --wait seconds without the gateway's end, it ends
its own part, and listens on until the gateway has taken everything and ends, too.
Prints JSON: the error packet as [command, status, identifier] or null, and how the gateway ended the
connection, "fin", "rst" or, if it did not begin with that, null. With --feedback: the tuples as [seconds, token].
"""
import argparse
import json
import socket
import ssl
import struct
import time


def simple(token, payload):
    """Listing "Sending a notification in the simple format via the binary interface"."""
    return struct.pack("!BH", 0, len(token)) + token + struct.pack("!H", len(payload)) + payload


def enhanced(identifier, expiry, token, payload):
    """Listing "Sending a notification in the enhanced format via the binary interface"."""
    head = struct.pack("!BIiH", 1, identifier, expiry, len(token))
    return head + token + struct.pack("!H", len(payload)) + payload


def framed(identifier, expiry, priority, token, payload):
    def item(number, data):
        return struct.pack("!BH", number, len(data)) + data
    items = item(1, token) + item(2, payload) + item(3, struct.pack("!I", identifier))
    items += item(4, struct.pack("!i", expiry)) + item(5, struct.pack("!B", priority))
    return struct.pack("!BI", 2, len(items)) + items


def from_hex(text):
    if text.startswith("raw:"):
        return bytes.fromhex(text[4:])
    command, identifier, expiry, priority, token, payload = text.split(":")
    token, payload = bytes.fromhex(token), bytes.fromhex(payload)
    if command == "0":
        return simple(token, payload)
    if command == "1":
        return enhanced(int(identifier), int(expiry), token, payload)
    return framed(int(identifier), int(expiry), int(priority), token, payload)


def everything(connection):
    data = b""
    try:
        while True:
            piece = connection.recv(65536)
            if not piece:
                # Behind TLS's own end comes that of TCP: no bytes, or an error where it is an RST.
                socket.socket.recv(connection, 1)
                return data, "fin"
            data += piece
    except TimeoutError:
        return data, None
    except ConnectionResetError:
        return data, "rst"
    except OSError:
        return data, "fin"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--feedback", action="store_true")
    parser.add_argument("--piece", type=int)
    parser.add_argument("--half-close", action="store_true")
    parser.add_argument("--wait", type=float, default=3)
    parser.add_argument("notification", nargs="*")
    options = parser.parse_args()
    context = ssl.create_default_context(cafile=options.ca)
    context.load_cert_chain(options.certificate, options.key)
    plain = socket.create_connection(("127.0.0.1", options.port), 10)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = context.wrap_socket(plain, server_hostname="localhost")
    connection.settimeout(options.wait)
    if not options.feedback:
        data = b"".join(from_hex(text) for text in options.notification)
        piece = options.piece or len(data) or 1
        for start in range(0, len(data), piece):
            connection.sendall(data[start:start + piece])
            if options.piece:
                # What lies in the gateway's socket together it takes as one.
                time.sleep(0.001)
        if options.half_close:
            # The end of TCP alone: what the gateway says can still be read.
            socket.socket.shutdown(connection, socket.SHUT_WR)
        data, end = everything(connection)
        if end is None and not options.half_close:
            socket.socket.shutdown(connection, socket.SHUT_WR)
            connection.settimeout(60)
            data += everything(connection)[0]
        packet = list(struct.unpack("!BBI", data)) if data else None
        print(json.dumps({"packet": packet, "end": end}))
        return
    data, end = everything(connection)
    tuples = []
    while data:
        seconds, count = struct.unpack("!IH", data[:6])
        tuples.append([seconds, data[6:6 + count].hex()])
        data = data[6 + count:]
    print(json.dumps({"tuples": tuples, "end": end}))


main()
