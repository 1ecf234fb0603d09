"""Report what the machine has: `spec.nodeResourceProperties` (docs/facts/katalyst-cluster.md#customnoderesource)."""

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, plain
from shared.contracts.kube.quantities import format_units
from shared.core.cpus.cpuset import CpuSet


def fragment(view: FieldView) -> Fragment | None:
    """Counts of NUMA nodes and CPUs, and total memory; each only where the sample says it."""
    if view.sample is None:
        return None
    reading = view.sample.node_reading
    amounts = {
        "numa": len(view.sample.numas) or None,
        "cpu": len(CpuSet.parse(reading.online_cpus)) or None,
        "memory": reading.memory_total_bytes,
    }
    properties = [
        {"propertyName": name, "propertyQuantity": format_units(amount)}
        for name, amount in amounts.items()
        if amount is not None
    ]
    return {"spec": {"nodeResourceProperties": properties}} if properties else None


FIELD = ReportField(FieldSettings, plain(fragment))
