"""A relay of TCP connections that takes offence at TLS 1.3 tickets: a ClientHello that offers one meets WAY.

    close     the connection is closed
    reset     it is reset
    silence   nothing is said, and nothing passed on
    midway    the handshake is passed on, and what follows is not: the connection is closed

A line for each connection tells whether a ticket was offered.
"""

import argparse
import asyncio
import socket
import struct

from relaying import copy

PRE_SHARED_KEY = 41

options = argparse.ArgumentParser()
options.add_argument("--to", type=int, required=True, help="a port of this machine")
options.add_argument("--way", choices=["close", "reset", "silence", "midway"], required=True)
options.add_argument("--record", required=True, help="takes the lines")
options = options.parse_args()


def offers_ticket(hello):
    """Whether a ClientHello (RFC 8446, section 4.1.2), record header and all, has that extension."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 1 + hello[at]
    end = at + 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 2
    while at < end:
        kind, count = struct.unpack(">HH", hello[at:at + 4])
        if kind == PRE_SHARED_KEY:
            return True
        at += 4 + count
    return False


async def relay(reader, writer):
    try:
        head = await reader.readexactly(5)
        hello = head + await reader.readexactly(int.from_bytes(head[3:5], "big"))
    except asyncio.IncompleteReadError:
        writer.close()
        return
    has_ticket = offers_ticket(hello)
    with open(options.record, "a") as record:
        record.write("ticket\n" if has_ticket else "none\n")
    if has_ticket and options.way == "silence":
        await reader.read()
    elif has_ticket and options.way == "reset":
        client = writer.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif has_ticket and options.way == "midway":
        there, back = await asyncio.open_connection("127.0.0.1", options.to)
        back.write(hello)
        writer.write(await there.read(1 << 16))
        # The end of the client's handshake, and what it says first.
        await reader.read(1 << 16)
        back.close()
    elif not has_ticket:
        there, back = await asyncio.open_connection("127.0.0.1", options.to)
        back.write(hello)
        await asyncio.gather(copy(reader, back), copy(there, writer))
    writer.close()


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
