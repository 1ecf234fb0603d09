"""Report the machine's resources and Sublet's version in `spec.nodeResourceProperties`.

Facts: docs/facts/katalyst-cluster.md#customnoderesource.
"""

from typing import Any

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, plain
from shared.build import Build
from shared.contracts.kube.node_properties import AGENT_REVISION, AGENT_VERSION
from shared.contracts.kube.quantities import format_units
from shared.contracts.sample import NodeSample
from shared.core.cpus.cpuset import CpuSet


def fragment(view: FieldView) -> Fragment | None:
    """Return the counts of NUMA nodes and CPUs and the total memory, as far as the sample has them; version and
    revision."""
    properties = [*_machine(view.sample), *_agent(view.build)]
    return {"spec": {"nodeResourceProperties": properties}} if properties else None


def _machine(sample: NodeSample | None) -> list[dict[str, Any]]:
    if sample is None:
        return []
    reading = sample.node_reading
    amounts = {
        "numa": len(sample.numas) or None,
        "cpu": len(CpuSet.parse(reading.online_cpus)) or None,
        "memory": reading.memory_total_bytes,
    }
    return [
        {"propertyName": name, "propertyQuantity": format_units(amount)}
        for name, amount in amounts.items()
        if amount is not None
    ]


def _agent(build: Build | None) -> list[dict[str, Any]]:
    """Return version and revision; the revision only if the build recorded one."""
    if build is None:
        return []
    words = {AGENT_VERSION: build.version, AGENT_REVISION: build.revision}
    return [{"propertyName": name, "propertyValues": [word]} for name, word in words.items() if word]


FIELD = ReportField(FieldSettings, plain(fragment))
