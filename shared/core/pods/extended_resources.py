"""The reclaimed resources as extended resources of a Node, under every name that they have, counted once.

A scheduler counts each name by itself. So each name shows what is offered less what pods ask for under the other ones:
whichever name a pod uses, no more than the offer can be given out. Pods that name the newer one alone (admission makes
them do so) see all of it (docs/facts/katalyst-cluster.md#two-spellings). Koordinator's batch resources are offered
beside them on the same account (docs/facts/koordinator.md#batch-resources). Its mid resources have an account of their
own, for they are no part of what reclaimed pods are offered: what mid pods were sold is taken off that already.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import (
    ALIASES,
    BATCH_ALIASES,
    BATCH_CPU,
    BATCH_MEMORY,
    MID_CPU,
    MID_MEMORY,
    RECLAIMED_CPU,
    RECLAIMED_MEMORY,
)

_ALIASES = ALIASES | BATCH_ALIASES
OTHER_NAME = {**_ALIASES, **{newer: older for older, newer in _ALIASES.items()}}
"""Every name of a reclaimed resource, with its other spelling in the same dialect."""
BATCH_NAMES = frozenset({*BATCH_ALIASES, *BATCH_ALIASES.values()})
MID_NAMES = frozenset({MID_CPU, MID_MEMORY})
KOORDINATOR_NAMES = BATCH_NAMES | MID_NAMES
OFFERED_NAMES = frozenset(OTHER_NAME) | MID_NAMES
"""Every name under which a Node may offer something."""
_ACCOUNTS = tuple(
    frozenset({*names, *(OTHER_NAME[name] for name in names)})
    for names in ((RECLAIMED_CPU, BATCH_CPU), (RECLAIMED_MEMORY, BATCH_MEMORY))
)
_ACCOUNT_OF = {name: account for account in _ACCOUNTS for name in account}
OWN_PREFIX = "sublet-"
"""How the field managers of Sublet's services begin."""


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
        # A sidecar starts in its turn and stays, so it counts next to every later init container.
        largest |= beside if container.get("restartPolicy") == "Always" else beside + own
    together = sum((_requests(container) for container in spec.get("containers") or ()), beside)
    return dict(together | largest)


def names_asked_for(document: Mapping[str, Any]) -> frozenset[str]:
    """Under which names one pod asks for anything that a Node may offer."""
    spec = document.get("spec") or {}
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    asked = {name for one in containers for name in (one.get("resources") or {}).get("requests") or ()}
    return OFFERED_NAMES & asked


def _requests(container: Mapping[str, Any]) -> Counter[str]:
    asked = (container.get("resources") or {}).get("requests") or {}
    found = Counter[str]()
    for name in OTHER_NAME.keys() & asked.keys():
        with suppress(ValueError):
            found[name] = parse_units(asked[name])
    return found


def node_amounts(offered: Mapping[str, int], asked: Mapping[str, int]) -> dict[str, int]:
    """What the Node shows under each name, never below zero; `offered` by one name of each dialect that is offered."""
    amounts = {}
    for name, amount in offered.items():
        if name in MID_NAMES:
            amounts[name] = amount
            continue
        for spelling in (name, OTHER_NAME[name]):
            elsewhere = sum(asked.get(other, 0) for other in _ACCOUNT_OF[spelling] - {spelling})
            amounts[spelling] = max(0, amount - elsewhere)
    return amounts


def own_names(node: Mapping[str, Any]) -> frozenset[str]:
    """Names of the amounts in a Node's status that are Sublet's to change: Koordinator's only where Sublet wrote them.

    On a cluster that runs Koordinator, its own controller writes those.
    """
    written: set[str] = set()
    for entry in (node.get("metadata") or {}).get("managedFields") or ():
        if str(entry.get("manager")).startswith(OWN_PREFIX):
            status = (entry.get("fieldsV1") or {}).get("f:status") or {}
            for part in ("f:capacity", "f:allocatable"):
                written |= {str(field).removeprefix("f:") for field in status.get(part) or ()}
    return OFFERED_NAMES - (KOORDINATOR_NAMES - written)
