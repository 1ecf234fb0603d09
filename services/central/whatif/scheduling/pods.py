"""A pod's containers as the what-if kinds on placement write them."""

from collections.abc import Iterable

from services.central.core.scheduling.amounts import effective_request
from shared.whatif.decisions import Question

Amounts = dict[str, int]


class PlacedContainer(Question):
    """A container's amounts by resource name."""

    name: str = ""
    requests: Amounts
    limits: Amounts | None = None
    init: bool = False
    sidecar: bool = False


def together(containers: Iterable[PlacedContainer], overhead: Amounts) -> dict[str, int]:
    """Return what a pod of these containers takes of a node."""
    rows = list(containers)
    return effective_request(
        [one.requests for one in rows if one.init], [one.requests for one in rows if not one.init], overhead
    )
