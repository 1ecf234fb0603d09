"""Net classes mark the packets of a class of pods with an id, by which filters of others' tools find them.

Facts: docs/facts/linux-cgroups.md#class-ids-of-packets.
"""

from collections.abc import Mapping, Sequence

from services.qrm.core.isolation.rules import Values
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout


def net_class_values(pods: Sequence[Pod], layout: Layout, ids: Mapping[QosClass, int]) -> Values:
    """The id of every pod and container whose class has one: a group takes its parent's only when it is made."""
    values: dict[tuple[str, Knob], int] = {}
    for pod in pods if ids else ():
        number = ids.get(pod.qos, 0)
        groups = (layout.pod_group(pod), *(layout.container_group(pod, one) for one in pod.containers))
        values |= {(group, Knob.NET_CLASS): number for group in groups if number and group is not None}
    return values
