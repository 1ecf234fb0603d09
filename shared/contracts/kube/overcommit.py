"""Annotations of over-committed nodes, as Katalyst spells them, and the ratios in them.

Facts: docs/facts/katalyst-overcommit.md#annotations.
"""

import math
import re
from typing import Final, Literal

Resource = Literal["cpu", "memory"]
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory")
DOMAIN = "katalyst.kubewharf.io"
POOL_LABEL = f"{DOMAIN}/overcommit_node_pool"
CPU_MANAGER, MEMORY_MANAGER = f"{DOMAIN}/overcommit_cpu_manager", f"{DOMAIN}/overcommit_memory_manager"
GUARANTEED_CPUS = f"{DOMAIN}/guaranteed_cpus"
MOST_RATIO = 10.0
"""Nothing is sold more often, whatever a config or an annotation says."""
STATIC = "static"
"""The policy of kubelet's managers that binds pods to CPUs, and to memory; written `Static` for memory."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def set_ratio_key(resource: Resource) -> str:
    """Of a Node: the ratio of its config; of a CNR: what the node can bear of it."""
    return f"{DOMAIN}/{resource}_overcommit_ratio"


def realtime_ratio_key(resource: Resource) -> str:
    """Of a Node: what the node itself can bear."""
    return f"{DOMAIN}/realtime_{resource}_overcommit_ratio"


def figure_key(sort: Literal["original", "overcommit"], field: str, resource: Resource) -> str:
    """Of a Node: kubelet's figure, or the over-committed one; `field` is allocatable or capacity."""
    return f"{DOMAIN}/{sort}_{field}_{resource}"


def ratio_of(text: str) -> float | None:
    """A ratio as it is written; None where it is no number, or no finite one."""
    if len(text) > 64 or _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def binds(manager: str | None) -> bool:
    """Whether kubelet's manager of that policy gives pods CPUs, or memory, of their own."""
    return (manager or "").lower() == STATIC
