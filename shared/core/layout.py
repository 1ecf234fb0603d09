"""Where a pod's cgroups lie on the `host` and `sim` substrates, relative to the cgroup root.

    sublet/                              weight of the whole machine's tenants
    sublet/<qos class>/                  one folder a QoS class: the pool's cpuset and weight live here
    sublet/<qos class>/pod<uid>/<container>/

Built from checked parts only (QoS class, UID, container name), never from free text (DESIGN section 7 rule 8).
"""

from typing import get_args

from shared.contracts.pod import Pod, QosClass

ROOT = "sublet"
QOS_CLASSES: tuple[QosClass, ...] = get_args(QosClass)
POOL_OF_QOS: dict[QosClass, str] = {
    "shared_cores": "share",
    "reclaimed_cores": "reclaim",
    "dedicated_cores": "dedicated",
    "system_cores": "reserve",
}
SHARE, RECLAIM, RESERVE = "share", "reclaim", "reserve"


def class_group(qos: QosClass, top: str = ROOT) -> str:
    """The cgroup of one QoS class; tests use another `top`, to leave a running Sublet alone."""
    return f"{top}/{qos}"


def pod_group(pod: Pod, top: str = ROOT) -> str:
    """The cgroup of one pod; its UID has passed the pattern of `shared.contracts.ids`."""
    return f"{class_group(pod.qos, top)}/pod{pod.uid}"


def container_group(pod: Pod, container: str, top: str = ROOT) -> str:
    """The cgroup of one container of a pod."""
    return f"{pod_group(pod, top)}/{container}"
