"""Computes how often a node can sell its resources, from what its pods request and use.

Facts: docs/facts/katalyst-overcommit.md#bearable.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadRules:
    """How full a resource may become, and how much of a request is taken for used at least."""

    target: float
    expected: float


CPU_RULES, MEMORY_RULES = LoadRules(0.6, 0.4), LoadRules(0.8, 0.8)


@dataclass(frozen=True, slots=True)
class ResourceLoad:
    """Requests and use of one resource, relative to what kubelet may give; `usage` None: unknown."""

    request: float
    usage: float | None
    allocatable: float


def bearable_ratio(load: ResourceLoad, rules: LoadRules) -> float:
    """Return how often the resource can be sold, if further pods use as much of their requests as the present ones
    do.

    At least 1, and 1 if nothing is requested or its use is unknown: without knowledge there is no promise.
    """
    if load.request <= 0 or load.allocatable <= 0 or load.usage is None:
        return 1.0
    part = max(min(load.usage / load.request, 1.0), rules.expected)
    if part <= 0:
        return 1.0
    room = (load.allocatable * rules.target - load.usage) / part
    return max(1.0, (room + load.request) / load.allocatable)
