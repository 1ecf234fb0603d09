"""What the live page needs from outside: a server that shows it."""

from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from shared.contracts.ids import NodeName

Frames = Callable[[NodeName | None], AsyncGenerator[bytes, None]]
"""The frames of one viewer, who may look at the CPUs of one node."""


class PageServer(Protocol):
    """Serves the page's files, and frames to each viewer."""

    @property
    def url(self) -> str:
        """Where the page is, without its login."""
        ...

    async def start(self, frames: Frames) -> None:
        """Listen.

        Raises:
            Unavailable: the address cannot be had.
        """
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...
