"""Objects of the API server, and a node's message, as the extender keeps them; what cannot be read is not known."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.overcommit.fit import kubelet_binding, sold_node
from services.central.core.scheduling.cluster.node_reports import (
    MeasuredNode,
    OfferingCnr,
    SaidByNode,
    SchedulableNode,
)
from services.central.core.scheduling.load.expected_use import REPORT_INTERVAL_S, LoadReport, UsedByPod
from services.central.core.scheduling.numa.machine import Machine, NumaNode, NumaTaken, counted
from shared.contracts.cluster.offer import NodeOffer, ResourceAmounts
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.contracts.pod import ALIASES, BATCH_CPU, BATCH_MEMORY, RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.text.durations import NS_PER_S, duration_ns
from shared.errors import Refused

REFUSES = "scheduling.sublet.io/refuses"
"""Annotation of a Node: what keeps pods away from it that its own amounts do not say. A change wakes the scheduler."""
_OFFERED = {
    RECLAIMED_CPU: (RECLAIMED_CPU, BATCH_CPU),
    RECLAIMED_MEMORY: (RECLAIMED_MEMORY, BATCH_MEMORY),
}
_OLDER = {newer: older for older, newer in ALIASES.items()}


def schedulable_node(document: Mapping[str, Any]) -> SchedulableNode:
    """A Node of its document."""
    meta, given = document["metadata"], (document.get("status") or {}).get("allocatable") or {}
    allocatable = dict(_plain(given))
    refuses = (meta.get("annotations") or {}).get(REFUSES)
    return SchedulableNode(meta["name"], allocatable, _offer(given), refuses, sold_node(document))


def offering_cnr(document: Mapping[str, Any]) -> OfferingCnr:
    """A CNR of its document, in either of its spellings (docs/facts/katalyst-cluster.md#two-spellings)."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    taints = tuple(
        CnrTaint(key=row["key"], value=row.get("value"), effect=row["effect"], qos_level=row.get("qosLevel"))
        for row in spec.get("taints") or ()
        if row.get("key") and row.get("effect")
    )
    given = (status.get("resources") or {}).get("allocatable") or status.get("resourceAllocatable")
    offered = None if given is None else _offer(given)
    return OfferingCnr(document["metadata"]["name"], taints, offered, kubelet_binding(document))


def measured_node(document: Mapping[str, Any]) -> MeasuredNode | None:
    """Read a NodeMetric; None before the first measurement."""
    status = document.get("status") or {}
    node = status.get("nodeMetric") or {}
    used = _resources(node.get("nodeUsage"))
    if not status.get("updateTime") or not used:
        return None
    measured_s = datetime.fromisoformat(status["updateTime"]).timestamp()
    policy = (document.get("spec") or {}).get("metricCollectPolicy") or {}
    pods = {
        f"{row.get('namespace')}/{row.get('name')}": UsedByPod(
            _resources(row.get("podUsage")), row.get("priority") == "koord-prod"
        )
        for row in status.get("podsMetric") or ()
    }
    interval_s = float(policy.get("reportIntervalSeconds") or REPORT_INTERVAL_S)
    load = LoadReport(measured_s, used, dict(_aggregated(node)), pods, interval_s)
    return MeasuredNode(document["metadata"]["name"], load)


def said_by_node(offer: NodeOffer, heard_s: float, wall_s: float) -> SaidByNode:
    """Read a node's own message, received at these times of our two clocks."""
    offered = None if offer.reclaimed is None else _reclaimed(offer.reclaimed)
    bound = frozenset(one.uid for numa in offer.numas for one in numa.allocations)
    return SaidByNode(heard_s, offered, _load(offer, wall_s), wall_s, _machine(offer), bound)


def _load(offer: NodeOffer, wall_s: float) -> LoadReport | None:
    used = _used(offer.used)
    if offer.usage_age_s is None or not used:
        return None
    told = offer.pods
    # Column by column: hundreds of nodes say this every second.
    pods = {
        f"{namespace}/{name}": UsedByPod(_named(cpu_millis, memory_bytes), prod)
        for namespace, name, cpu_millis, memory_bytes, prod in zip(
            told.namespaces, told.names, told.cpu_millis, told.memory_bytes, told.prod, strict=True
        )
    }
    aggregated: dict[tuple[str, float], dict[str, int]] = {
        (statistic, window.window_s): _used(amounts)
        for window in offer.windows
        for statistic, amounts in window.used.items()
    }
    # By our clock, not the node's: pods' times are those of other machines, too, and one clock is wrong once.
    return LoadReport(wall_s - offer.usage_age_s, used, aggregated, pods, offer.window_s or REPORT_INTERVAL_S)


def _machine(offer: NodeOffer) -> Machine | None:
    if offer.topology_policy is None or not offer.numas:
        return None
    numas = []
    for one in sorted(offer.numas, key=lambda numa: numa.numa):
        allocations = [NumaTaken(_used(held.requests), held.dedicated) for held in one.allocations]
        amounts = _used(one.allocatable), _used(one.capacity) or _used(one.allocatable)
        numas.append(NumaNode.of(one.numa, one.socket or 0, amounts, counted(allocations, "dynamic")))
    return Machine(offer.topology_policy, tuple(numas))


def _reclaimed(amounts: ResourceAmounts) -> dict[str, int]:
    found = {RECLAIMED_CPU: amounts.cpu_millis, RECLAIMED_MEMORY: amounts.memory_bytes}
    return {name: amount or 0 for name, amount in found.items()}


def _used(amounts: ResourceAmounts) -> dict[str, int]:
    return _named(amounts.cpu_millis, amounts.memory_bytes)


def _named(cpu_millis: int | None, memory_bytes: int | None) -> dict[str, int]:
    found = {} if cpu_millis is None else {"cpu": cpu_millis}
    return found if memory_bytes is None else found | {"memory": memory_bytes}


def _offer(given: Mapping[str, Any]) -> dict[str, int] | None:
    """Return reclaimed amounts under any of their names; None if there are none."""
    found: dict[str, int] = {}
    for name, spellings in _OFFERED.items():
        for spelling in (*spellings, _OLDER[name]):
            if spelling in given:
                with suppress(ValueError):
                    found.setdefault(name, max(0, parse_units(given[spelling])))
    return found or None


def _plain(given: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, parse in (("cpu", parse_millis), ("memory", parse_units)):
        with suppress(ValueError):
            if name in given:
                yield name, max(0, parse(given[name]))


def _resources(given: object) -> dict[str, int]:
    resources = given.get("resources") if isinstance(given, Mapping) else None
    return dict(_plain(resources)) if isinstance(resources, Mapping) else {}


def _aggregated(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, float], dict[str, int]]]:
    for window in node.get("aggregatedNodeUsages") or ():
        with suppress(Refused):
            seconds = duration_ns(window["duration"]) / NS_PER_S
            for statistic, usage in (window.get("usage") or {}).items():
                yield (str(statistic), seconds), _resources(usage)
