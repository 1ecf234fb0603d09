"""Evictions that an operator may hold: as long as a node is paused, none of its pods is announced or asked for."""

from collections.abc import Callable

from services.central.ports.nodes import PodEvictions
from shared.contracts.pod import Pod


class PausableEvictions:
    """The same evictions, for controllers that try again in every pass."""

    def __init__(self, evictions: PodEvictions, paused: Callable[[str], str]) -> None:
        self._evictions, self._paused = evictions, paused

    async def evict(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> None:
        """Evict, unless the node is paused, now or right before the call.

        Raises:
            SubletError: as the evictions themselves.
        """
        if not self._paused(node):
            await self._evictions.evict(node, pod, lambda one: self._paused(node) or objection(one))

    async def report_gone(self) -> None:
        """Publish which pods are gone now."""
        await self._evictions.report_gone()

    def state(self) -> list[dict[str, str]]:
        """The newest evictions, oldest first."""
        return self._evictions.state()
