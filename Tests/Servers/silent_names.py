#!/usr/bin/env python3
"""A name server that takes questions and never says a word, or says 127.0.0.1 to each, late: a line on stdout
for each question.

    silent_names.py --address 127.1.2.3 [--after SECONDS]
"""
import argparse
import socket
import struct
import threading
import time


def reply(server, question, client, after):
    time.sleep(after)
    name_end = question.index(b"\0", 12)
    (kind,) = struct.unpack(">H", question[name_end + 1 : name_end + 3])
    # RFC 1035, section 4.1: an address for A (1), nothing for AAAA.
    record = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 1, 4) + bytes([127, 0, 0, 1])
    records = [record] if kind == 1 else []
    header = question[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, len(records), 0, 0)
    server.sendto(header + question[12 : name_end + 5] + b"".join(records), client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--after", type=float)
    options = parser.parse_args()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((options.address, 53))
    print("listening on 53", flush=True)
    while True:
        question, client = server.recvfrom(4096)
        print("asked", flush=True)
        if options.after is not None:
            arguments = (server, question, client, options.after)
            threading.Thread(target=reply, args=arguments, daemon=True).start()
