"""A node in other hands that sends as fast as it can."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SEND = """
import asyncio, sys
import nats

async def main(url, count):
    client = await nats.connect(url)
    for number in range(count):
        large = number % 100 == 3
        await client.publish(SUBJECT, KINDS[3 if large else number % 3] % number)
        if number % 1000 == 0:
            await client.flush()
    await client.drain()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@contextmanager
def flooding(
    folder: Path, url: str, count: int, *, subject: str, kinds: Sequence[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that sends so many messages, and ends.

    The first three kinds take turns; each hundredth message is of the fourth, which is large. Each kind has a place for
    the message's number.
    """
    script = folder / "flood.py"
    script.write_text(f"SUBJECT, KINDS = {subject!r}, {list(kinds)!r}\n{SEND}")
    with subprocess.Popen([sys.executable, str(script), url, str(count)]) as process:
        yield process
        process.kill()
