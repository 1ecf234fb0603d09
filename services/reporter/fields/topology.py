"""Report the location of CPUs, memory and pods: `status.topologyZone`, and the older `status.topologyStatus`.

Both shapes: docs/facts/katalyst-cluster.md#customnoderesource. If the sample does not name the socket of a NUMA node,
the NUMA zones are top-level, and the older shape, which starts at sockets, is left out. Each NUMA zone has its share of
the offered CPU, according to its CPUs of the reclaimed pool, and of the batch resources if `reporter.batch.by_numa` is
set; the older shape has no such shares.
"""

from typing import Any

from services.reporter.core.cluster.numa_zones import NumaZone, numa_zones, reclaimed_shares
from services.reporter.core.field import FieldSettings, FieldView, Fragment, NumaShare, ReportField, changed, plain
from shared.contracts.kube.quantities import format_millis, format_units
from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY, RECLAIMED_CPU, RECLAIMED_MEMORY, Pod

OFFERS = (RECLAIMED_CPU, BATCH_CPU, BATCH_MEMORY)
"""Resources that move with every sample: the fields that report them decide what is urgent."""


def fragment(view: FieldView) -> Fragment | None:
    """Return the zones, ascending by number; None if the sample names no NUMA node."""
    if view.sample is None or not view.sample.numas:
        return None
    numas = list(numa_zones(view.sample, view.allocation))
    facts = {numa.numa: _facts(numa, applied=view.allocation is not None) for numa in numas}
    reclaimed = _reclaimed(view)
    zone = {n: _zone(n, facts[n], reclaimed.get(n, {}), _batch(view, n)) for n in facts}
    sockets: dict[int, list[int]] = {}
    for numa in numas:
        if numa.socket is None:
            # One unknown socket leaves out all of them: a tree in which some nodes have a socket and
            # some have none is neither shape.
            return {"status": {"topologyZone": list(zone.values())}}
        sockets.setdefault(numa.socket, []).append(numa.numa)
    zones = [
        {"type": "Socket", "name": str(socket), "children": [zone[n] for n in members]}
        for socket, members in sorted(sockets.items())
    ]
    older = [
        {"socketID": socket, "numas": [{"numaID": n, **facts[n]} for n in members]}
        for socket, members in sorted(sockets.items())
    ]
    return {"status": {"topologyZone": zones, "topologyStatus": {"sockets": older}}}


def _reclaimed(view: FieldView) -> dict[int, dict[str, dict[str, str]]]:
    """Return the shares of the reported offer and of the applied one, by NUMA node; empty if no CPU of the pool is
    known."""
    if view.allocation is None or view.sample is None:
        return {}
    applied = view.allocation.reclaimed_cpu_millis
    offered = view.offered.cpu_millis if view.offered else applied
    capacity, allocatable = (
        reclaimed_shares(view.allocation, view.sample.numas, amount) for amount in (applied, offered)
    )
    return {
        number: {
            "allocatable": {RECLAIMED_CPU: format_units(allocatable[number])},
            "capacity": {RECLAIMED_CPU: format_units(capacity[number])},
        }
        for number in allocatable
    }


def _batch(view: FieldView, number: int) -> dict[str, str]:
    """Return the shares of the batch resources. A NUMA node that has only memory counts as well, so that sums are
    right."""
    share = view.batch_by_numa.get(number, NumaShare(None, None))
    amounts = {BATCH_CPU: share.cpu_millis, BATCH_MEMORY: share.memory_bytes}
    return {name: format_units(amount) for name, amount in amounts.items() if amount is not None}


def _zone(
    number: int, facts: dict[str, Any], reclaimed: dict[str, dict[str, str]], batch: dict[str, str]
) -> dict[str, Any]:
    resources = {
        key: facts.get(key, {}) | (reclaimed.get(key, {}) if key in facts else {}) | batch
        for key in ("allocatable", "capacity")
        if key in facts or batch
    }
    zone = {"type": "Numa", "name": str(number), "resources": resources}
    return zone | ({"allocations": facts["allocations"]} if "allocations" in facts else {})


def _facts(zone: NumaZone, *, applied: bool) -> dict[str, Any]:
    """Return the capacity of one NUMA node; allocatable and allocations only if an allocation is known."""
    capacity = {} if zone.cpus is None else {"cpu": format_units(zone.cpus)}
    if zone.memory_bytes is not None:
        capacity["memory"] = format_units(zone.memory_bytes)
    facts: dict[str, Any] = {"capacity": capacity}
    if not applied:
        return facts
    if zone.free_cpus is not None:
        facts["allocatable"] = {"cpu": format_units(zone.free_cpus)}
    if zone.bound:
        facts["allocations"] = [
            {"consumer": f"{pod.namespace}/{pod.name}/{pod.uid}", "requests": _requests(pod)} for pod in zone.bound
        ]
    return facts


def _requests(pod: Pod) -> dict[str, str]:
    """Return the pod's requests; a resource that it does not name is left out."""
    if pod.qos == "reclaimed_cores":
        asked = {RECLAIMED_CPU: format_units(pod.cpu_request_millis)}
        memory = RECLAIMED_MEMORY
    else:
        asked, memory = {"cpu": format_millis(pod.cpu_request_millis)}, "memory"
    return {
        name: amount
        for name, amount in (asked | {memory: format_units(pod.memory_request_bytes)}).items()
        if amount != "0"
    }


def urgent(before: Fragment | None, now: Fragment | None, _settings: FieldSettings) -> bool:
    """Return whether anything but the offers' shares changed; the fields `reclaimed` and `batch` decide for those."""
    return before != now and changed(_without_offer(before), _without_offer(now))


def _without_offer(value: Any, *, resources: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_offer(item, resources=resources or key == "resources")
            for key, item in value.items()
            if not (resources and key in OFFERS)
        }
    return [_without_offer(item, resources=resources) for item in value] if isinstance(value, list) else value


def watches(view: FieldView) -> object:
    """Return where everything is located, without the offered amounts."""
    sample, allocation = view.sample, view.allocation
    return (
        sample and [(one.numa, one.socket, one.cpus, one.memory_total_bytes) for one in sample.numas],
        sample and [reading.pod for reading in sample.pods],
        allocation and ([(pool.pool, pool.cpus) for pool in allocation.pools], allocation.pods),
        {numa: (one.cpu_millis is None, one.memory_bytes is None) for numa, one in view.batch_by_numa.items()},
    )


FIELD = ReportField(FieldSettings, plain(fragment), urgent, watches)
