"""The reclaimed resources as extended resources of a Node, under both of their names, counted once.

A scheduler counts each name by itself. So each name shows what is offered less what pods ask for under the other one:
whichever name a pod uses, no more than the offer can be given out. Pods that name the newer one alone (admission makes
them do so) see all of it (docs/facts/katalyst-cluster.md#two-spellings).
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import ALIASES

OTHER_NAME = {**ALIASES, **{newer: older for older, newer in ALIASES.items()}}


def requests_of(document: Mapping[str, Any]) -> dict[str, int]:
    """What one pod asks for by reclaimed names, counted as a scheduler counts it; finished pods ask for nothing.

    Sidecars run beside the containers. Other init containers run one by one before them, beside the sidecars that stand
    above them in the list, and count where one of them is the larger (Kubernetes: "Resource sharing within containers"
    of init containers). What is no quantity asks for nothing: the API server holds none.
    """
    if (document.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    spec = document.get("spec") or {}
    beside, largest = Counter[str](), Counter[str]()
    for container in spec.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            beside += own
        # A sidecar starts in its turn and stays, so it counts beside every init container behind it.
        largest |= beside if container.get("restartPolicy") == "Always" else beside + own
    together = sum((_requests(container) for container in spec.get("containers") or ()), beside)
    return dict(together | largest)


def _requests(container: Mapping[str, Any]) -> Counter[str]:
    asked = (container.get("resources") or {}).get("requests") or {}
    found = Counter[str]()
    for name in OTHER_NAME.keys() & asked.keys():
        with suppress(ValueError):
            found[name] = parse_units(asked[name])
    return found


def node_amounts(offered: Mapping[str, int], asked: Mapping[str, int]) -> dict[str, int]:
    """What the Node shows under each name, never below zero; `offered` by either name."""
    amounts = {}
    for name, amount in offered.items():
        for spelling in (name, OTHER_NAME[name]):
            amounts[spelling] = max(0, amount - asked.get(OTHER_NAME[spelling], 0))
    return amounts
