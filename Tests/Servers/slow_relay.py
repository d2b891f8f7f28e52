"""A relay of TCP connections that lets each one wait before the first byte is passed on."""

import argparse
import asyncio

from relaying import copy

options = argparse.ArgumentParser()
options.add_argument("--to", type=int, required=True, help="a port of this machine")
options.add_argument("--delay", type=float, required=True, help="seconds")
options = options.parse_args()


async def relay(reader, writer):
    await asyncio.sleep(options.delay)
    there, back = await asyncio.open_connection("127.0.0.1", options.to)
    await asyncio.gather(copy(reader, back), copy(there, writer))


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
