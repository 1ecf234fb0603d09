"""`described` lists a pod's containers, or adds them up to one where there are too many."""

from collections.abc import Callable, Sequence
from typing import Any

from shared.contracts.pod import Container

MOST_CONTAINERS = 24
"""With init containers. The API server sets no bound: thousands of a pod's containers would fill the node's samples."""

Containers = Sequence[Container]
Amount = Callable[[Container], int]


def described(containers: Containers, init: Containers) -> dict[str, Any]:
    """The fields of a Pod for its containers.

    Too many become one, named as the first, that asks for what all ask for together. A limit that one of them does not
    have, they do not have together.
    """
    if len(containers) + len(init) <= MOST_CONTAINERS:
        return {"containers": containers, "init_containers": init}
    amounts: dict[str, Amount] = {
        "cpu_request_millis": lambda one: one.cpu_request_millis,
        "cpu_limit_millis": lambda one: one.cpu_limit_millis,
        "memory_request_bytes": lambda one: one.memory_request_bytes,
        "memory_limit_bytes": lambda one: one.memory_limit_bytes,
    }
    everyone = (*containers, *init)
    limited = {name: all(map(amount, everyone)) for name, amount in amounts.items() if "limit" in name}
    asked = {name: together(containers, init, of) for name, of in amounts.items() if limited.get(name, True)}
    return {"containers": (Container(name=everyone[0].name, **asked),), "as_one": True}


def together(containers: Containers, init: Containers, amount: Amount) -> int:
    """The most that is there at a time: all containers, or one init container and the sidecars started before it."""
    staying = {container.name for container in containers}
    beside = largest = 0
    for container in init:
        if container.name in staying:
            beside += amount(container)
        else:
            largest = max(largest, beside + amount(container))
    return max(largest, sum(map(amount, containers)))
