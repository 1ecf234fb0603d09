"""A pod as the what-if kinds on colocation profiles write it: amounts are integers, cpu in milli-cores."""

from collections.abc import Mapping
from typing import Any

from services.central.core.profiles.pod_admission import PodClaims, requests_together
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.whatif.decisions import Question

Amounts = dict[str, int]


class ContainerAsked(Question):
    """A container's amounts by resource name."""

    name: str = ""
    requests: Amounts = {}
    limits: Amounts = {}


class PodAmounts(Question):
    """The part of a pod that profiles read and write; null if undeclared."""

    namespace: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    scheduler_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    init_containers: list[ContainerAsked] = []
    containers: list[ContainerAsked] = []
    overhead: Amounts = {}

    @property
    def document(self) -> dict[str, Any]:
        """As Kubernetes writes it."""
        said = {
            "schedulerName": self.scheduler_name,
            "priority": self.priority,
            "priorityClassName": self.priority_class_name,
            "preemptionPolicy": self.preemption_policy,
        }
        lists = {
            "initContainers": [_container_document(container) for container in self.init_containers],
            "containers": [_container_document(container) for container in self.containers],
            "overhead": _quantities(self.overhead),
        }
        return {
            "metadata": {"namespace": self.namespace, "labels": self.labels, "annotations": self.annotations},
            "spec": {name: value for name, value in said.items() if value is not None} | lists,
        }

    @property
    def claims(self) -> PodClaims:
        """Return what admission judges."""
        together = requests_together(
            [container.requests for container in self.init_containers],
            [container.requests for container in self.containers],
            self.overhead,
        )
        return PodClaims(labels=self.labels, priority=self.priority, requests=together)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "PodAmounts":
        """The view of a document."""
        meta, spec = document.get("metadata") or {}, document.get("spec") or {}
        return cls(
            namespace=meta.get("namespace"),
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            scheduler_name=spec.get("schedulerName"),
            priority=spec.get("priority"),
            priority_class_name=spec.get("priorityClassName"),
            preemption_policy=spec.get("preemptionPolicy"),
            init_containers=[_container(row) for row in spec.get("initContainers") or ()],
            containers=[_container(row) for row in spec.get("containers") or ()],
            overhead=_amounts(spec.get("overhead")),
        )


def _container_document(container: ContainerAsked) -> dict[str, Any]:
    resources = {"requests": _quantities(container.requests), "limits": _quantities(container.limits)}
    return {"name": container.name, "resources": resources}


def _container(row: Mapping[str, Any]) -> ContainerAsked:
    resources = row.get("resources") or {}
    parts = {part: _amounts(resources.get(part)) for part in ("requests", "limits")}
    return ContainerAsked(name=row.get("name", ""), **parts)


def _quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def _amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    """Batch and mid CPU are whole numbers of milli-cores already."""
    return {
        name: parse_millis(amount) if name == "cpu" else parse_units(amount)
        for name, amount in (quantities or {}).items()
    }
