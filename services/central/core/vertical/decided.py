"""The published decisions of vertical autoscalers, one per autoscaler and one per resized pod."""

from collections.abc import Mapping, Sequence

from services.central.core.recommendation.objects.status import ConditionDue, quantities
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.recommendation.vpa_target import ContainerFigures
from services.central.core.vertical.vpa_object import VpaSeen
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "vertical"
Figures = Mapping[str, ContainerFigures]
Numbers = dict[str, float | int | str | bool | None]


def decided_autoscaler(seen: VpaSeen, told: Sequence[ConditionDue], given: Figures) -> Decided:
    """Return whether all pods have their figures; otherwise the first failing condition, and the figures of each
    container."""
    first = next((one for one in told if not one.holds), told[-1])
    about = DecidedObject(kind=seen.kind.kind.lower(), namespace=seen.namespace, name=seen.name, uid=seen.uid)
    targets = [
        Reason(rule="recommended within its policies", numbers={"container": name, **_numbers("target", one)})
        for name, one in sorted(given.items())
    ]
    return Decided(
        area=AREA,
        about=about,
        verdict="applied" if first.holds else "not_applied",
        message=first.said or first.reason,
        why=(Reason(rule=first.reason), *targets),
    )


def decided_resize_by(seen: VpaSeen, pod: WorkloadPod, figures: Figures) -> Decided:
    """That a pod is asked to take other figures, and which it had."""
    about = DecidedObject(kind="pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
    reasons = []
    for name, one in figures.items():
        had = pod.containers[name]
        before = _numbers("before", ContainerFigures(had.requests, had.limits))
        numbers: Numbers = {"container": name, **before, **_numbers("after", one)}
        reasons.append(Reason(rule=f"by {seen.kind.kind}", numbers=numbers))
    said = f"by {seen.kind.kind} {seen.namespace}/{seen.name}: {figures_in_words(figures)}"
    return Decided(area=AREA, about=about, verdict="resized", message=said, why=tuple(reasons))


def figures_in_words(figures: Figures) -> str:
    """Requests and limits of each container."""
    return "; ".join(
        f"{name}: requests {quantities(one.requests)}, limits {quantities(one.limits)}" for name, one in figures.items()
    )


def _numbers(when: str, one: ContainerFigures) -> Numbers:
    """CPU in milli, memory in bytes."""
    parts = {"request": one.requests, "limit": one.limits}
    return {
        f"{resource}_{part}_{when}": amount for part, amounts in parts.items() for resource, amount in amounts.items()
    }
