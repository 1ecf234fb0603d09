"""Ports of the controller of recommendations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from services.central.core.recommendation.objects.resource_recommend import RecommendSeen
from services.central.core.recommendation.resizing import Resize

ResizeOutcome = Literal["asked", "gone", "changed", "unsupported"]


@dataclass(frozen=True, slots=True)
class KeptUsage:
    """A checkpoint: the UID of its ResourceRecommend, and its content."""

    uid: str
    usage: str


class RecommendWriter(Protocol):
    """Each method raises SubletError where it cannot."""

    async def write_status(self, seen: RecommendSeen, status: Mapping[str, Any]) -> None:
        """Change a ResourceRecommend's status; a deleted one is ignored."""
        ...

    async def kept_usages(self) -> Sequence[KeptUsage]:
        """All checkpoints as they are now."""
        ...

    async def keep_usage(self, seen: RecommendSeen, usage: str) -> None:
        """Write the checkpoint of a ResourceRecommend, which is deleted together with it."""
        ...

    async def resize(self, resize: Resize) -> ResizeOutcome:
        """Ask for new requests of a pod that runs and is as it was seen."""
        ...
