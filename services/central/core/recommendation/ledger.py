"""The ledger of usage: what the pods of each followed workload used, and how they were killed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.central.core.recommendation.objects.workloads import Amounts, DeploymentSeen, WorkloadPod
from services.central.core.recommendation.oom import ContainerKey, OomKill, is_news, kept
from services.central.core.recommendation.usage.checkpoint import MAX_CONTAINERS, MAX_KILLS
from services.central.core.recommendation.usage.samples import ContainerUsage, UsageSummary, summary

WorkloadKey = tuple[str, str]
"""Namespace and name of a Deployment."""


@dataclass(slots=True)
class WorkloadUsage:
    """What is known for one ResourceRecommend."""

    workload: WorkloadKey
    containers: dict[str, ContainerUsage] = field(default_factory=dict)
    kills: dict[ContainerKey, OomKill] = field(default_factory=dict)

    def newest_kills(self, now_s: float) -> list[OomKill]:
        """Those of the last week, the newest first."""
        return kept(self.kills, now_s, most=MAX_KILLS)


class UsageLedger:
    """Usage by the UID of the ResourceRecommend that it is kept for; nothing is kept of other workloads."""

    def __init__(self) -> None:
        self._of: dict[str, WorkloadUsage] = {}
        self._followed: dict[WorkloadKey, list[WorkloadUsage]] = {}

    def of(self, uid: str) -> WorkloadUsage | None:
        """Return what is known for a ResourceRecommend; None if it is not followed."""
        return self._of.get(uid)

    def begin(self, uid: str, usage: WorkloadUsage) -> None:
        """Go on from what another leader knew."""
        self._of[uid] = usage
        self._index()

    def follow(self, wanted: Mapping[str, WorkloadKey]) -> None:
        """Follow exactly these, by UID; one that now names another workload begins again."""
        if {uid: usage.workload for uid, usage in self._of.items()} == wanted:
            return
        there = self._of
        self._of = {
            uid: there[uid] if uid in there and there[uid].workload == workload else WorkloadUsage(workload)
            for uid, workload in wanted.items()
        }
        self._index()

    def _index(self) -> None:
        self._followed = {}
        for usage in self._of.values():
            self._followed.setdefault(usage.workload, []).append(usage)

    def see(self, pod: WorkloadPod, container: str, at_s: float, figures: Mapping[str, float | None]) -> None:
        """Take a reading of a container that the pod has; `figures` are cpu in cores and memory in bytes."""
        if container not in pod.containers:
            return
        for usage in self._followed.get((pod.namespace, pod.workload), ()):
            if container not in usage.containers and len(usage.containers) >= MAX_CONTAINERS:
                continue
            kept_of = usage.containers.setdefault(container, ContainerUsage())
            kept_of.see(pod.uid, at_s, cpu_cores=figures.get("cpu"), memory_bytes=figures.get("memory"))

    def observe(self, uid: str, pods: Iterable[WorkloadPod], deployment: DeploymentSeen | None, now_s: float) -> None:
        """Take the kills of a workload's pods, complete what was seen of pods that are gone, and forget containers
        that the workload has no more."""
        usage, there = self._of[uid], list(pods)
        for pod in there:
            for kill in pod.kills:
                given = _given(kill, deployment)
                if is_news(given, usage.kills.get(given.key)):
                    usage.kills[given.key] = given
        usage.kills = {kill.key: kill for kill in usage.newest_kills(now_s)}
        uids = {pod.uid for pod in there}
        for one in usage.containers.values():
            one.retain(uids)
        if deployment is not None:
            here = deployment.containers.keys() | {name for pod in there for name in pod.containers}
            usage.containers = {name: one for name, one in usage.containers.items() if name in here}

    def summaries(self, uid: str, containers: Iterable[str], now_s: float) -> dict[str, UsageSummary]:
        """Return what is known of each of these containers."""
        usage = self._of.get(uid)
        there = {} if usage is None else usage.containers
        return {name: summary(there.get(name), now_s) for name in containers}


def _given(kill: OomKill, deployment: DeploymentSeen | None) -> OomKill:
    """Return the kill with the owner's request. A request that was raised after a kill must not be raised again for
    the next one, or figures would grow without end."""
    asked = None if deployment is None else deployment.containers.get(kill.container)
    template: Amounts = {} if asked is None else asked.requests or asked.limits
    size_bytes = template.get("memory", kill.memory_bytes)
    return OomKill(kill.namespace, kill.pod, kill.container, min(size_bytes, kill.memory_bytes), kill.finished_s)
