"""A wire to a server that is cut again and again: `python cut.py HOST:PORT EVERY_S FOR_S`, between port 4222 and there.

While it is cut nothing that is sent arrives on the other side, and nobody is told, as when a cable is pulled; what was
sent arrives afterwards.
"""

import asyncio
import contextlib
import sys

PORT, CHUNK_BYTES = 4222, 65536


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, whole: asyncio.Event) -> None:
    """Carry bytes one way for as long as the wire is whole."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            await whole.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


async def serve(host: str, port: int, whole: asyncio.Event) -> None:
    """Take connections, each to one of its own on the other side."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await whole.wait()
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection(host, port)
            await asyncio.gather(carry(reader, there[1], whole), carry(there[0], writer, whole))
        writer.close()

    async with await asyncio.start_server(connected, port=PORT) as server:
        await server.serve_forever()


async def cut(whole: asyncio.Event, every_s: float, for_s: float) -> None:
    """Cut the wire for a while, again and again."""
    number = 0
    while True:
        await asyncio.sleep(every_s)
        number += 1
        whole.clear()
        print(f"cut {number}", flush=True)
        await asyncio.sleep(for_s)
        whole.set()
        print(f"whole again after cut {number}", flush=True)


async def main(target: str, every_s: float, for_s: float) -> None:
    """Both at once, until it is ended."""
    host, _, port = target.rpartition(":")
    whole = asyncio.Event()
    whole.set()
    await asyncio.gather(serve(host, int(port), whole), cut(whole, every_s, for_s))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
