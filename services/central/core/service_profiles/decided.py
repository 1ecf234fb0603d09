"""The published decisions of service profiles, one per descriptor."""

from collections.abc import Mapping, Sequence

from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.service_profiles.descriptor import DescribedDeployment, DescriptorSeen
from services.central.core.service_profiles.told import ToldService, bounded_indicators
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "service_profiles"


def decided_standing(seen: DescriptorSeen, told: ToldService, current: Mapping[str, float]) -> Decided:
    """Return how the service performs, by each business indicator with a bound; an unreported one has no value."""
    bounded = [] if seen.spec is None else bounded_indicators(seen.spec)
    why = [
        Reason(rule="UpperBound", numbers={"key": one.name, "value": current.get(one.name), "bound": one.upper_bound})
        for one in bounded
    ]
    return _decided(seen, "poor" if told.poor else "well", "; ".join(told.poor), *why)


def decided_baseline(seen: DescriptorSeen, marks: Mapping[str, str | None], pods: Sequence[WorkloadPod]) -> Decided:
    """Which pods are the border of its baselines."""
    percent = None if seen.spec is None else seen.spec.baseline_percent
    why = Reason(rule="baselinePercent", numbers={"percent": percent, "pods": sum(pod.active for pod in pods)})
    return _decided(seen, "baseline", "; ".join(f"{name} {text}" for name, text in sorted(marks.items())), why)


def decided_refusal(seen: DescriptorSeen) -> Decided:
    """That a descriptor cannot be read, and which field of it."""
    return _decided(seen, "refused", seen.problem, Reason(rule="Unreadable"))


def decided_removal(seen: DescriptorSeen) -> Decided:
    """That a descriptor that central has made goes."""
    return _decided(seen, "removed", "its Deployment asks for none any more", Reason(rule="not enabled"))


def decided_making(deployment: DescribedDeployment) -> Decided:
    """That a Deployment gets the descriptor that it asks for; the API server knows its UID."""
    about = DecidedObject(kind="serviceprofiledescriptor", namespace=deployment.namespace, name=deployment.name)
    said = "its Deployment asks for one"
    return Decided(area=AREA, about=about, verdict="made", message=said, why=(Reason(rule="enabled"),))


def _decided(seen: DescriptorSeen, verdict: str, said: str, *why: Reason) -> Decided:
    about = DecidedObject(kind="serviceprofiledescriptor", namespace=seen.namespace, name=seen.name, uid=seen.uid)
    return Decided(area=AREA, about=about, verdict=verdict, message=said, why=why)
