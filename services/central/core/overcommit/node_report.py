"""What a node's CNR says about its over-commitment (docs/facts/katalyst-overcommit.md#annotations)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.contracts.kube.node_conditions import WITHDRAWN
from shared.contracts.kube.overcommit import (
    CPU_MANAGER,
    GUARANTEED_CPUS,
    RESOURCES,
    Resource,
    binds,
    ratio_of,
    set_ratio_key,
)

MOST_CPUS = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeOvercommitReport:
    """What a node can bear, and the CPUs that are bound to pods. A missing ratio is unknown."""

    name: str
    bearable: Mapping[Resource, str] = field(default_factory=dict)
    bound_cpu_millis: int = 0
    silent: bool = False
    """Whether central has found the node's agent silent: its last report is no longer valid."""


def node_report_of(document: Mapping[str, Any]) -> NodeOvercommitReport:
    """Read a CNR; an unreadable part counts as missing."""
    meta, status = _map(document.get("metadata")), _map(document.get("status"))
    annotations, rows = _map(meta.get("annotations")), status.get("conditions")
    said = {name: annotations.get(set_ratio_key(name)) for name in RESOURCES}
    return NodeOvercommitReport(
        name=str(meta.get("name") or ""),
        bearable={name: one for name, one in said.items() if isinstance(one, str) and ratio_of(one) is not None},
        bound_cpu_millis=bound_cpus(annotations) * 1000,
        silent=any(
            _map(row).get("type") == WITHDRAWN and _map(row).get("status") == "True"
            for row in (rows if isinstance(rows, list) else ())
        ),
    )


def bound_cpus(annotations: Mapping[str, Any]) -> int:
    """Return the CPUs that kubelet's static CPU manager has given to pods; 0 for another manager, or if unknown."""
    given, manager = annotations.get(GUARANTEED_CPUS), annotations.get(CPU_MANAGER)
    if not (isinstance(manager, str) and binds(manager) and isinstance(given, str) and given.isdecimal()):
        return 0
    return min(int(given), MOST_CPUS) if len(given) < 12 else 0


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}
