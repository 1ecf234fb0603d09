"""A promise that a world breaks is put down, and ends the world."""

import asyncio
from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulated_world import World


class Promises:
    """What is promised of one world."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.violations: list[str] = []
        self.broken = asyncio.Event()
        self.applied: dict[str, deque[tuple[float, int]]] = defaultdict(lambda: deque(maxlen=20))
        """By node, when how many milli-cores were told as applied."""

    def fail(self, promise: str, what: str) -> None:
        """A promise is broken."""
        line = f"{promise}: {what}"
        if line not in self.violations:
            self.violations.append(line)
            self.world.tell(f"VIOLATION {line}")
        self.broken.set()
