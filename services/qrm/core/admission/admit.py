"""May pods run here: would they get what they ask for, without taking it from those that run already?"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from services.qrm.core.placement.arrangement import Arrangement, Node
from shared.contracts.admission import AdmissionTold
from shared.contracts.pod import Pod


def admit(node: Node, pods: Sequence[Pod], arranged: Callable[[Node], Arrangement]) -> AdmissionTold:
    """Return what would become of pods that came to a node; `arranged` is the current way to arrange it.

    A pod is refused if it could not be placed, or if a running pod would lose its place to it.
    """
    before = arranged(node)
    after = arranged(replace(node, pods=(*node.pods, *pods), held=before.held))
    new = {pod.key for pod in pods}
    lost = sorted(after.problems.keys() - before.problems.keys() - new)
    refused = {key: why for key, why in after.problems.items() if key in new}
    if lost:
        # All of them, for they are started together; who cannot be placed is told that.
        why = f"{', '.join(lost)} would lose the CPUs that it has; ask for less"
        refused = dict.fromkeys(sorted(new), why) | refused
    own = {pod.key: str(after.owned[pod.uid].cpus) for pod in pods if pod.uid in after.owned}
    return AdmissionTold(refused=refused, cpus=own)
