"""Compares the node's offer to reclaimed pods, as the reporter wrote it, with a request."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from shared.adapters.local.runtime import START_IT, Runtime
from shared.contracts.kube.quantities import format_units, parse_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, canonical_resource
from shared.core.pods.manifest import PodRecord
from shared.errors import Unavailable


def read_cnr(runtime: Runtime) -> dict[str, Any]:
    """The node's object.

    Raises:
        Unavailable: there is none, or it cannot be read.
    """
    path = runtime.common.state_dir / "cnr.json"
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise Unavailable(f"node object {path}: not there, so nothing is reported; is Sublet up? {START_IT}") from error
    except (OSError, ValueError) as error:
        raise Unavailable(f"node object {path}: {error}") from error
    if not isinstance(document, dict):
        raise Unavailable(f"node object {path}: not a mapping; wait for the next report")
    return document


def offered(document: dict[str, Any]) -> dict[str, int]:
    """Allocatable reclaimed resources by today's name; a resource that is not reported is absent."""
    try:
        allocatable = document["status"]["resourceAllocatable"]
        return {canonical_resource(name): parse_units(quantity) for name, quantity in allocatable.items()}
    except (KeyError, TypeError, AttributeError, ValueError):
        return {}


def warn_over_offer(runtime: Runtime, records: Sequence[PodRecord]) -> Iterator[str]:
    """A line for each reclaimed resource of which more is asked, by all pods together, than is offered now.

    A warning and no more: on a single host its user is the scheduler, and the evictor has the last word.
    """
    fresh = [record.pod for record in records if record.pod.qos == "reclaimed_cores"]
    if not fresh:
        return
    try:
        offer = offered(read_cnr(runtime))
        pods = [*(pod for pod in runtime.pods.pods() if pod.qos == "reclaimed_cores"), *fresh]
    except Unavailable:
        return
    asked = {
        RECLAIMED_CPU: sum(pod.cpu_request_millis for pod in pods),
        RECLAIMED_MEMORY: sum(pod.memory_request_bytes for pod in pods),
    }
    for name, amount in asked.items():
        if name in offer and amount > offer[name]:
            yield (
                f"{name.rpartition('/')[2]}: reclaimed pods ask for {format_units(amount)} in all, "
                f"{format_units(offer[name])} is offered now; they will be slowed down, and may be evicted"
            )
