"""How often a node can sell what it has, by what its pods ask for and use.

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
    """What pods ask for and use of one resource, of what kubelet may give; `usage` None: not known."""

    request: float
    usage: float | None
    allocatable: float


def bearable_ratio(load: ResourceLoad, rules: LoadRules) -> float:
    """How often the resource can be sold, if further pods use of their requests what those that are there do.

    At least 1, and 1 where nothing is asked for or its use is not known: who knows nothing promises nothing.
    """
    if load.request <= 0 or load.allocatable <= 0 or load.usage is None:
        return 1.0
    part = max(min(load.usage / load.request, 1.0), rules.expected)
    if part <= 0:
        return 1.0
    room = (load.allocatable * rules.target - load.usage) / part
    return max(1.0, (room + load.request) / load.allocatable)
