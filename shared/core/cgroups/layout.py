"""Where a pod's cgroups lie, relative to the cgroup root. On the `host` and `sim` substrates:

    sublet/                              weight of the whole machine's tenants
    sublet/<qos class>/                  one folder a QoS class: the pool's cpuset and weight live here
    sublet/<qos class>/pod<uid>/<container>/

Built from checked parts only (QoS class, UID, container name), never from free text
(docs/facts/safety-rules.md#rule-8-least-right). The layout of a Kubernetes node is
`shared.core.cgroups.kubelet_layout`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, get_args

from shared.contracts.pod import Container, Pod, QosClass

ROOT = "sublet"
QOS_CLASSES: tuple[QosClass, ...] = get_args(QosClass)
SHARE, RECLAIM, DEDICATED, RESERVE = "share", "reclaim", "dedicated", "reserve"
POOL_OF_QOS: dict[QosClass, str] = {
    "shared_cores": SHARE,
    "reclaimed_cores": RECLAIM,
    "dedicated_cores": DEDICATED,
    "system_cores": RESERVE,
}
"""Where the figures of a class are counted: a class of its own for each, whatever CPUs its pods run on."""
POOL_WITHOUT_OWN_CPUS: dict[QosClass, str] = POOL_OF_QOS | {"dedicated_cores": SHARE}
"""On whose CPUs the pods of a class run that have none of their own: dedicated pods get theirs with a NUMA binding."""


def class_group(qos: QosClass, top: str = ROOT) -> str:
    """The cgroup of one QoS class; tests use another `top`, to leave a running Sublet alone."""
    return f"{top}/{qos}"


def pod_group(pod: Pod, top: str = ROOT) -> str:
    """The cgroup of one pod; its UID has passed the pattern of `shared.contracts.ids`."""
    return f"{class_group(pod.qos, top)}/pod{pod.uid}"


def container_group(pod: Pod, container: str, top: str = ROOT) -> str:
    """The cgroup of one container of a pod."""
    return f"{pod_group(pod, top)}/{container}"


def above(group: str) -> list[str]:
    """The names of the groups above a group, the nearest first; the root has none."""
    parts = group.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]


class Layout(Protocol):
    """One way to lay out the pods' cgroups."""

    @property
    def top(self) -> str:
        """The group above all others."""
        ...

    @property
    def classes(self) -> Mapping[QosClass, str]:
        """The group of each QoS class, made and kept by Sublet; none where somebody else makes the groups."""
        ...

    @property
    def homes(self) -> Sequence[str]:
        """The groups right above the pods' groups."""
        ...

    def pod_group(self, pod: Pod) -> str:
        """The cgroup of one pod."""
        ...

    def container_group(self, pod: Pod, container: Container) -> str | None:
        """The cgroup of one container; None as long as it is not known."""
        ...

    def reclaimed_group(self, pods: Sequence[Pod]) -> str | None:
        """The group that holds all reclaimed pods and nobody else; None where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class OwnLayout:
    """Sublet's own groups; see `Layout`."""

    top: str = ROOT

    @property
    def classes(self) -> Mapping[QosClass, str]:
        """See `Layout`."""
        return {qos: class_group(qos, self.top) for qos in QOS_CLASSES}

    @property
    def homes(self) -> Sequence[str]:
        """See `Layout`."""
        return tuple(self.classes.values())

    def pod_group(self, pod: Pod) -> str:
        """See `Layout`."""
        return pod_group(pod, self.top)

    def container_group(self, pod: Pod, container: Container) -> str | None:
        """See `Layout`."""
        return container_group(pod, container.name, self.top)

    def reclaimed_group(self, pods: Sequence[Pod]) -> str | None:  # noqa: ARG002
        """See `Layout`."""
        return class_group("reclaimed_cores", self.top)
