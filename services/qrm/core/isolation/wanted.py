"""Everything that isolation gives to groups, and the order in which the values are written."""

import math
from collections.abc import Collection, Mapping, Sequence

from services.qrm.core.isolation.burst import burst_values
from services.qrm.core.isolation.group_identity import identity_values
from services.qrm.core.isolation.memory_qos import memory_values
from services.qrm.core.isolation.net_classes import net_class_values
from services.qrm.core.isolation.rules import NodeRules, Values
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout, above
from shared.core.pods.limits import is_limited_here

Key = tuple[str, Knob]


def wanted_values(pods: Sequence[Pod], layout: Layout, rules: NodeRules) -> Values:
    """Return what the groups of these pods, and those above them, must have."""
    return {
        **burst_values(pods, layout, rules.burst_percent),
        **memory_values(pods, layout, rules),
        **identity_values(pods, layout, rules.identities),
        **net_class_values(pods, layout, rules.net_classes),
    }


def may_be_given(pods: Sequence[Pod], layout: Layout, knobs: Collection[Knob]) -> set[Key]:
    """Return what isolation may have changed of these knobs while these pods ran, including pods that have ended
    since."""
    own = {layout.pod_group(pod) for pod in pods}
    containers = {layout.container_group(pod, one) for pod in pods if not pod.as_one for one in pod.containers}
    throttled = {name for name in containers if name is not None}
    # The protection of a home outlives the pods that it was for.
    groups = own | throttled | {name for group in own for name in above(group)} | {layout.top, *layout.homes}
    # Above a container, `memory.high` is a limit of a pod or a class, and not ours to lift.
    return {(name, knob) for knob in knobs for name in (throttled if knob is Knob.MEMORY_HIGH else groups)}


def may_have_quotas(pods: Sequence[Pod], layout: Layout) -> set[Key]:
    """The quotas that kubelet did not write: it writes none for a best-effort pod."""
    own = [pod for pod in pods if is_limited_here(pod) and pod.kube_qos == "BestEffort"]
    containers = {layout.container_group(pod, one) for pod in own for one in (*pod.init_containers, *pod.containers)}
    return {(group, Knob.CPU_QUOTA) for group in containers | {layout.pod_group(pod) for pod in own} if group}


def in_order(changes: Mapping[Key, tuple[int, int]]) -> list[Key]:
    """Return the changes (from, to) in an order in which a group always has what its direct children have together.

    Falls go first, bottom up; rises follow, top down.
    """
    falls = [key for key, (now, wanted) in changes.items() if _size(wanted) < _size(now)]
    rises = [key for key in changes if key not in set(falls)]
    return sorted(falls, key=lambda key: (-_depth(key), key)) + sorted(rises, key=lambda key: (_depth(key), key))


def _size(value: int) -> float:
    return math.inf if value < 0 else value


def _depth(key: Key) -> int:
    return key[0].count("/")
