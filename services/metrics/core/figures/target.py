"""Name what is measured: the node, its NUMA nodes, pools, containers and applications outside of pods."""

from typing import Literal, NamedTuple

from shared.core.cgroups.layout import SHARE, class_group

Kind = Literal["node", "numa", "pool", "container", "application"]
GROUPS: tuple[Kind, ...] = ("pool", "container")
ALL_GROUPS: tuple[Kind, ...] = (*GROUPS, "application")
"""Every kind that has a cgroup; for an application only CPU and memory are read."""


class Target(NamedTuple):
    """What is measured: the node (no name), a NUMA node ("0"), a pool ("share"), a container ("<uid>/<name>") or an
    application outside of pods ("<name>")."""

    kind: Kind
    name: str = ""
    group: str = ""
    """Its cgroup; empty for the node and NUMA nodes."""
    pool: str = ""
    """The pool of a container, or the pool of which this group is a part (`services.metrics.core.reads.pooled`)."""


NODE = Target("node")
TENANTS = Target("pool", SHARE, class_group("shared_cores"))
USAGE_COUNTER = "cpu_usage_ns"
"""Raw CPU time of a cgroup: the one counter that the tripwire reads as well."""
