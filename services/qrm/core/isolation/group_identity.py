"""Group identity sets the precedence on a CPU, on kernels that support it (`cpu.bvt_warp_ns`).

Facts: docs/facts/koordinator-isolation.md#group-identity.
"""

from collections.abc import Mapping, Sequence

from services.qrm.core.isolation.rules import Values
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout


def identity_values(pods: Sequence[Pod], layout: Layout, identities: Mapping[QosClass, int]) -> Values:
    """Return the identity of every pod and container by class, and of a group that holds pods of one class only."""
    if not identities:
        return {}
    values: dict[tuple[str, Knob], int] = {}
    classes: dict[str, set[QosClass]] = {}
    for pod in pods:
        group = layout.pod_group(pod)
        classes.setdefault(group.rpartition("/")[0], set()).add(pod.qos)
        for name in (group, *(layout.container_group(pod, one) for one in pod.containers)):
            if name is not None:
                values[name, Knob.GROUP_IDENTITY] = identities.get(pod.qos, 0)
    for home, found in classes.items():
        # Right below the top lie pods of any class to come, and the homes of the other classes.
        if len(found) == 1 and home != layout.top:
            values[home, Knob.GROUP_IDENTITY] = identities.get(found.pop(), 0)
    return values
