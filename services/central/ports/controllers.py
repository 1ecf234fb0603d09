"""The interface of every controller that runs while this central leads."""

from collections.abc import Sequence
from typing import Any, Protocol

from shared.ports import ObjectMirror


class LeaderController(Protocol):
    """A controller of its own objects; `main` names it, and `ClusterControllers` runs it."""

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """The mirrors that it reads; every central fills them, so that a new leader starts with all of them."""
        ...

    @property
    def failure(self) -> str:
        """Why it cannot work; "" while it can."""
        ...

    async def run(self) -> None:
        """Run until cancelled; whatever another leader may have changed is read again at the start."""
        ...

    def state(self) -> dict[str, Any]:
        """Return its state as JSON values of bounded length."""
        ...
