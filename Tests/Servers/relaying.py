"""What relays of TCP connections have in common."""


async def copy(reader, writer):
    """Passes on all that comes, and then the end."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
