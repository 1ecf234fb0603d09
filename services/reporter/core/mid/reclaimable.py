"""Computes what prod pods requested and, according to their past, will not use: per pod and for all together, the
smaller one.

Only a shared pod lends CPU, because no other pod runs on the CPUs of a dedicated pod or of the system. A pod that has
not been observed for long lends nothing, and neither does one that is terminating.

Facts: docs/facts/koordinator-batch.md#prod-reclaimable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.reporter.core.batch_demand import asked_cpu_millis, asked_memory_bytes, system_used, used_cpu_millis
from services.reporter.core.mid.peaks import UsageHistory, UsedAmounts
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample, PodReading
from shared.core.pods.koord_qos import priority_class

SYSTEM, PROD = "system", "prod"
"""Names of what is no pod and of all prod pods together; no pod has such a UID."""
COLD_START_S = 86_400.0
SAFETY_MARGIN_PERCENT = 10


@dataclass(frozen=True, slots=True)
class PredictionRules:
    """How long a pod must be known, and the margin on its peak."""

    cold_start_s: float = COLD_START_S
    safety_margin_percent: int = SAFETY_MARGIN_PERCENT

    def with_margin(self, amount: int) -> int:
        """Return a peak with its margin, rounded up."""
        return -(-amount * (100 + self.safety_margin_percent) // 100)


@dataclass(frozen=True, slots=True)
class ProdReclaimable:
    """What prod pods lend, and how many of them are known for long enough."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    known_pods: int = 0
    new_pods: int = 0
    peak: UsedAmounts | None = None
    """Peak of prod pods and the system, with margins; None if their past is too short."""


def used_now(sample: NodeSample) -> dict[str, UsedAmounts]:
    """Return the use of each prod pod, of all of them together and of the system, without unknown figures."""
    found = {
        pod.pod.uid: UsedAmounts(cpu_millis, memory_bytes)
        for pod in prod_pods(sample)
        if (cpu_millis := used_cpu_millis(pod)) is not None and (memory_bytes := pod.memory_usage_bytes) is not None
    }
    lending_cpu = {pod.pod.uid for pod in prod_pods(sample) if _lends_cpu(pod.pod)}
    together = UsedAmounts(
        sum(used.cpu_millis for uid, used in found.items() if uid in lending_cpu),
        sum(used.memory_bytes for used in found.values()),
    )
    system = system_used(sample)
    return found | {PROD: together} | ({} if system is None else {SYSTEM: UsedAmounts(*system)})


def prod_pods(sample: NodeSample) -> list[PodReading]:
    """Return the pods that run, or will run, as tenants of class prod, including pods without a class."""
    return [one for one in sample.pods if one.pod.phase in ("Running", "Pending") and is_prod(one.pod)]


def is_prod(pod: Pod) -> bool:
    """Whether what the pod asked for may be lent."""
    return pod.qos != "reclaimed_cores" and priority_class(pod.labels, pod.priority) in (None, "koord-prod")


def prod_reclaimable(
    pods: Iterable[PodReading], history: UsageHistory, allocatable: UsedAmounts, rules: PredictionRules
) -> ProdReclaimable:
    """Return what these pods lend according to their past; `allocatable` is what the node has for pods."""
    least_minutes = rules.cold_start_s / 60
    every = [one.pod for one in pods]
    peaks = {pod.uid: history.peak(pod.uid, least_minutes=least_minutes) for pod in every}
    known = [(pod, peak) for pod in every if (peak := peaks[pod.uid]) is not None and not pod.terminating]
    new_pods = sum(peak is None for peak in peaks.values())
    together = [history.peak(name, least_minutes=least_minutes) for name in (SYSTEM, PROD)]
    if None in together:
        return ProdReclaimable(new_pods=len(every))

    def lent(requests: Mapping[str, int], peaks_of: Mapping[str, int], all_used: int, all_has: int) -> int:
        by_pods = sum(max(0, requests[uid] - peaks_of[uid]) for uid in requests)
        by_pods = min(by_pods, all_has - sum(peaks_of.values()))
        by_all = min(sum(requests.values()), all_has) - all_used
        return max(0, min(by_pods, by_all))

    lending = [(pod, peak) for pod, peak in known if _lends_cpu(pod)]
    return ProdReclaimable(
        lent(
            {pod.uid: asked_cpu_millis(pod) for pod, _ in lending},
            {pod.uid: rules.with_margin(peak.cpu_millis) for pod, peak in lending},
            rules.with_margin(sum(peak.cpu_millis for peak in together if peak is not None)),
            allocatable.cpu_millis,
        ),
        lent(
            {pod.uid: asked_memory_bytes(pod) for pod, _ in known},
            {pod.uid: rules.with_margin(peak.memory_bytes) for pod, peak in known},
            rules.with_margin(sum(peak.memory_bytes for peak in together if peak is not None)),
            allocatable.memory_bytes,
        ),
        known_pods=len(known),
        new_pods=new_pods,
        peak=_peak([pod for pod in every if not pod.terminating], peaks, together, rules),
    )


def _peak(
    pods: Iterable[Pod],
    peaks: Mapping[str, UsedAmounts | None],
    together: Iterable[UsedAmounts | None],
    rules: PredictionRules,
) -> UsedAmounts:
    """Return the larger of two sums: of each pod's peak, and of the peak of all together with the system's.

    An unknown pod counts with its request. So does the CPU of pods that lend none, in both sums, because it is theirs
    whether they use it or not.
    """
    own_millis = by_pod_millis = by_pod_bytes = 0
    for pod in pods:
        peak, asked_millis = peaks[pod.uid], asked_cpu_millis(pod)
        by_pod_bytes += asked_memory_bytes(pod) if peak is None else rules.with_margin(peak.memory_bytes)
        used_millis = asked_millis if peak is None else rules.with_margin(peak.cpu_millis)
        if _lends_cpu(pod):
            by_pod_millis += used_millis
        else:
            own_millis += max(asked_millis, used_millis)
    known = [peak for peak in together if peak is not None]
    return UsedAmounts(
        own_millis + max(by_pod_millis, rules.with_margin(sum(peak.cpu_millis for peak in known))),
        max(by_pod_bytes, rules.with_margin(sum(peak.memory_bytes for peak in known))),
    )


def _lends_cpu(pod: Pod) -> bool:
    return pod.qos == "shared_cores"
