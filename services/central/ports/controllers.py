"""What every controller that works while this central leads has in common."""

from collections.abc import Sequence
from typing import Any, Protocol

from shared.ports import ObjectMirror


class LeaderController(Protocol):
    """A controller of its own objects; `main` names it, and `ClusterControllers` runs it."""

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """What it sees; every central fills them, so that a new leader begins with all of it."""
        ...

    @property
    def failure(self) -> str:
        """Why it cannot work; "" while it can."""
        ...

    async def run(self) -> None:
        """Work until cancelled; whatever another leader may have changed is read anew at the start."""
        ...

    def state(self) -> dict[str, Any]:
        """What explains it, as JSON values of bounded length."""
        ...
