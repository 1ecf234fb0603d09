"""Processes work in order within a lane, lanes in parallel, and tracks how far all of it is done."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")

LANE_ITEMS, ALL_ITEMS = 1_000, 5_000
"""Most items that wait in one lane, and in all of them; an item has a few KiB."""


class Lanes(Generic[T]):
    """A lane's items one after the other; a lane that is stuck holds up no other.

    Args:
        work: does one item of a lane; what it raises ends all lanes.
        done: told the sequence up to which everything is done with, as it grows.
    """

    def __init__(self, work: Callable[[str, T], Awaitable[None]], done: Callable[[int], None]) -> None:
        self._work, self._done = work, done
        self._tasks = asyncio.TaskGroup()
        self._lanes: dict[str, deque[tuple[int, T]]] = {}
        self._open: dict[int, None] = {}
        """Sequences that are not done with, as they came."""
        self._newest = 0
        self._room = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Begin."""
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every lane; raises a group with what ended the first."""
        await self._tasks.__aexit__(kind, error, trace)

    def opened(self, sequence: int) -> None:
        """Note a sequence that is to be done; sequences come in the order of the stream."""
        self._open[sequence] = None
        self._newest = sequence

    def closed(self, sequence: int) -> None:
        """Note that a sequence is done with."""
        before = next(iter(self._open))
        del self._open[sequence]
        first = next(iter(self._open), None)
        if first is None:
            self._done(self._newest)
        elif first != before:
            # Only when the oldest open one closes: those behind it are done, but a restart must begin at the gap.
            self._done(first - 1)
        self._room.set()

    async def add(self, lane: str, sequence: int, item: T, *, waits: bool) -> bool:
        """Put it behind the others of its lane; False where that is full. `waits`: until the lane is empty instead."""
        # Without lanes the stream is read one by one: what waits at the server costs nothing here.
        most = 0 if waits else ALL_ITEMS
        while len(self._open) - 1 > most:
            self._room.clear()
            await self._room.wait()
        queue = self._lanes.get(lane)
        if queue is None:
            self._lanes[lane] = queue = deque()
            self._tasks.create_task(self._run(lane, queue))
        if len(queue) >= LANE_ITEMS:
            return False
        queue.append((sequence, item))
        return True

    async def _run(self, lane: str, queue: deque[tuple[int, T]]) -> None:
        while queue:
            sequence, item = queue.popleft()
            await self._work(lane, item)
            self.closed(sequence)
        # The lane goes with its last item: lanes are named by what events say, and there is no end of names.
        del self._lanes[lane]
