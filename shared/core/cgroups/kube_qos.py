"""`kube_qos` finds a pod's Kubernetes QoS class, after which kubelet chooses the group above the pod's."""

from collections.abc import Iterable, Mapping

from shared.contracts.pod import KubeQos

_COMPUTE = ("cpu", "memory")


def kube_qos(containers: Iterable[tuple[Mapping[str, int], Mapping[str, int]]]) -> KubeQos:
    """The Kubernetes QoS class that follows from the requests and limits of the containers.

    Only cpu and memory above 0 count, and a limit without a request is the request too, as the API server has it.
    """
    anything, guaranteed = False, True
    for requests, limits in containers:
        bounds = {name: amount for name in _COMPUTE if (amount := limits.get(name, 0)) > 0}
        wants = bounds | {name: amount for name in _COMPUTE if (amount := requests.get(name, 0)) > 0}
        anything = anything or bool(wants)
        guaranteed = guaranteed and wants == bounds and len(bounds) == len(_COMPUTE)
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
