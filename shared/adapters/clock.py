"""Clocks tell the machine's time; under a virtual-time event loop they tell the loop's."""

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """Monotonic and wall time of the machine."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    def wall(self) -> datetime:
        """Now, UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)


class LoopClock:
    """Time of the running event loop; with a virtual-time loop an hour passes in no time (simulator, tests)."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start

    def monotonic(self) -> float:
        """The loop's time in seconds."""
        return asyncio.get_running_loop().time()

    def wall(self) -> datetime:
        """The start moment plus the loop's time."""
        return self._start + timedelta(seconds=self.monotonic())

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)
