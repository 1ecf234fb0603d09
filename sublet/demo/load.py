"""Open-loop load on an HTTP server: requests leave on schedule, and latency counts from the scheduled moment.

A slow answer therefore never lowers the load, and waiting is never hidden.
"""

import asyncio
import math
import time
from dataclasses import dataclass, field

REQUEST = b"GET / HTTP/1.1\r\nHost: demo\r\n\r\n"
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class PageResponse:
    """One request: when it was due (monotonic seconds) and how long it took; None where none came in time."""

    due_s: float
    latency_s: float | None


@dataclass
class RequestLoad:
    """Sends requests at a rate that may change at any time."""

    port: int
    answers: list[PageResponse] = field(default_factory=list)
    _pending: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, rate_per_s: float, duration_s: float) -> None:
        """Send evenly spaced requests; returns when the last has left."""
        first = time.monotonic()
        for number in range(int(rate_per_s * duration_s)):
            due = first + number / rate_per_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            task = asyncio.create_task(self._one(due))
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)
        await asyncio.sleep(max(0.0, first + duration_s - time.monotonic()))

    async def finish(self) -> None:
        """Wait for the answers still under way."""
        await asyncio.gather(*self._pending)

    async def _one(self, due_s: float) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(REQUEST)
                answer = await reader.read(64)
                writer.close()
            ok = answer.startswith(b"HTTP/1.1 200")
        except (OSError, TimeoutError):
            ok = False
        self.answers.append(PageResponse(due_s, time.monotonic() - due_s if ok else None))


async def wait_listening(port: int, timeout_s: float) -> None:
    """Return once something answers on the port.

    Raises:
        TimeoutError: nothing did.
    """
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


def percentile(values: list[float], percent: float) -> float | None:
    """The nearest-rank percentile; None without values."""
    if not values:
        return None
    rank = math.ceil(percent / 100 * len(values))
    return sorted(values)[max(0, rank - 1)]
