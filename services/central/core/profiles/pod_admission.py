"""Whether a pod that names Koordinator's classes is admitted (docs/facts/koordinator-profiles.md#admission)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from services.central.core.profiles.colocated_resources import BATCH_CPU, BATCH_MEMORY
from shared.core.pods.koord_qos import (
    PRIORITY_CLASS_LABEL,
    QOS_LABEL,
    SUB_PRIORITY_LABEL,
    KoordQos,
    PriorityClass,
    koord_qos,
    priority_class,
)

Reason = Literal["qos_immutable", "priority_class_immutable", "sub_priority_immutable", "batch_needs_be",
                 "qos_priority_forbidden", "cpu_request_missing", "cpu_request_not_whole"]  # fmt: skip

_FORBIDDEN: dict[KoordQos, tuple[PriorityClass | None, ...]] = {
    "BE": (None, "koord-prod"),
    "LSR": (None, "koord-mid", "koord-batch", "koord-free"),
}
_WHOLE_CPUS: tuple[KoordQos, ...] = ("LSR", "LSE")


@dataclass(frozen=True, slots=True)
class PodClaims:
    """What is judged of a pod: labels, priority, and total requests by resource name, cpu in milli-cores."""

    labels: Mapping[str, str]
    priority: int | None = None
    requests: Mapping[str, int] = field(default_factory=dict)

    @property
    def qos(self) -> KoordQos | None:
        """By the label alone."""
        return koord_qos(self.labels)

    @property
    def priority_class(self) -> PriorityClass | None:
        """By label or value alone."""
        return priority_class(self.labels, self.priority)


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a pod is not admitted, and what to write instead."""

    reason: Reason
    message: str


def requests_together(
    init: Sequence[Mapping[str, int]], containers: Sequence[Mapping[str, int]], overhead: Mapping[str, int]
) -> dict[str, int]:
    """The requests of a pod: the containers' sum or the largest init container's, whichever is more, and overhead."""
    found: Counter[str] = Counter()
    for amounts in containers:
        found.update(amounts)
    for amounts in init:
        for name, amount in amounts.items():
            found[name] = max(found.get(name, amount), amount)
    found.update(overhead)
    return dict(found)


def objection(
    pod: PodClaims, old: PodClaims | None = None, *, sub_priority_may_change: bool = False
) -> Objection | None:
    """The first thing that speaks against a pod; None admits it. `old` is the pod before an update."""
    if old is not None and (changed := _changed(pod, old, sub_priority_may_change)) is not None:
        return changed
    checks: tuple[Callable[[PodClaims], Objection | None], ...] = (_batch, _pair, _whole_cpus)
    return next((found for found in (check(pod) for check in checks) if found is not None), None)


def _changed(pod: PodClaims, old: PodClaims, sub_priority_may_change: bool) -> Objection | None:
    if pod.qos != old.qos:
        return Objection("qos_immutable", f"label {QOS_LABEL}: {_said(old.qos)} cannot become {_said(pod.qos)} while "
                         "the pod lives; leave it, or delete the pod and create it anew")  # fmt: skip
    if pod.priority_class != old.priority_class:
        return Objection("priority_class_immutable", f"priority class {_said(old.priority_class)} cannot become "
                         f"{_said(pod.priority_class)} while the pod lives; leave spec.priority and the label "
                         f"{PRIORITY_CLASS_LABEL} as they are")  # fmt: skip
    before, after = (one.labels.get(SUB_PRIORITY_LABEL, "") for one in (old, pod))
    if before != after and not sub_priority_may_change:
        return Objection("sub_priority_immutable", f"label {SUB_PRIORITY_LABEL}: {before!r} cannot become {after!r} "
                         "while the pod lives; leave it as it is")  # fmt: skip
    return None


def _batch(pod: PodClaims) -> Objection | None:
    if pod.qos == "BE" or not any(pod.requests.get(name) for name in (BATCH_CPU, BATCH_MEMORY)):
        return None
    return Objection("batch_needs_be", f"the pod asks for {BATCH_CPU} or {BATCH_MEMORY} and its label {QOS_LABEL} is "
                     f"{_said(pod.qos)}; write {QOS_LABEL}: BE, or ask for cpu and memory")  # fmt: skip


def _pair(pod: PodClaims) -> Objection | None:
    if pod.qos is None or pod.priority_class not in _FORBIDDEN.get(pod.qos, ()):
        return None
    wanted = "koord-mid, koord-batch or koord-free" if pod.qos == "BE" else "koord-prod"
    return Objection("qos_priority_forbidden", f"{QOS_LABEL}: {pod.qos} does not go with priority class "
                     f"{_said(pod.priority_class)}; want {wanted}: a priorityClassName of that band")  # fmt: skip


def _whole_cpus(pod: PodClaims) -> Objection | None:
    if pod.qos not in _WHOLE_CPUS:
        return None
    millis = pod.requests.get("cpu", 0)
    if not millis:
        return Objection("cpu_request_missing", f"{QOS_LABEL}: {pod.qos} binds whole CPUs and the pod requests none; "
                         "write requests of cpu, such as 2")  # fmt: skip
    if millis % 1000:
        return Objection("cpu_request_not_whole", f"{QOS_LABEL}: {pod.qos} binds whole CPUs and the pod requests "
                         f"{millis}m; write {-(-millis // 1000)}")  # fmt: skip
    return None


def _said(name: str | None) -> str:
    return name or "none"
