"""The controller of ResourceRecommends: runs passes that write differences, only while this central leads.

A new leader reads the checkpoints first; figures that arrive earlier would begin a history of their own, and replace
the stored one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import structlog

from services.central.core.recommendation.ledger import UsageLedger, WorkloadKey, WorkloadUsage
from services.central.core.recommendation.objects.resource_recommend import RecommendSeen
from services.central.core.recommendation.objects.status import (
    figures_due,
    recommendation,
    status_due,
    written_targets,
)
from services.central.core.recommendation.objects.workloads import DeploymentSeen, WorkloadPod
from services.central.core.recommendation.outcome import recommend_outcome
from services.central.core.recommendation.resizing import WantedRequest
from services.central.core.recommendation.usage.checkpoint import restored, stored
from services.central.core.recommendation.validity import SUPPORTED_KINDS
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.decisions import DecisionLog
from services.central.ports.recommendation import RecommendWriter
from services.central.recommendation.applying import InPlaceResizes
from services.central.recommendation.decided import decided_recommendation
from services.central.recommendation.intake import FigureIntake
from services.central.settings import RecommendationSettings
from shared.core.node_mode import NodeSwitch
from shared.errors import Refused
from shared.ports import Bus, Clock, ObjectMirror, Subscription

log = structlog.get_logger()

LISTED = 50


@dataclass(frozen=True, slots=True)
class RecommendMirrors:
    """The mirrors that the controller reads."""

    recommends: ObjectMirror[RecommendSeen]
    deployments: ObjectMirror[DeploymentSeen]
    pods: ObjectMirror[WorkloadPod]


@dataclass(frozen=True, slots=True)
class RecommendPorts:
    """What the controller works with."""

    mirrors: RecommendMirrors
    bus: Bus
    writer: RecommendWriter
    decisions: DecisionLog
    switch: NodeSwitch


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The workloads of one pass."""

    deployments: Mapping[WorkloadKey, DeploymentSeen]
    pods: Mapping[WorkloadKey, Sequence[WorkloadPod]]


class RecommendationController:
    """Learns usage, writes statuses, resizes pods where asked, and keeps what it learned."""

    def __init__(
        self, ports: RecommendPorts, clock: Clock, settings: RecommendationSettings, changed: asyncio.Event
    ) -> None:
        """`changed` is set when anything that the mirrors see has changed."""
        self._ports, self._clock, self._settings = ports, clock, settings
        self._ledger = UsageLedger()
        self._intake = FigureIntake(self._ledger, lambda: ports.mirrors.pods.objects, clock)
        self._resizes = InPlaceResizes(ports.writer, ports.decisions, ports.switch, clock, settings.pace)
        self._each = EachNode(clock, "recommend")
        self._kept_at_s: dict[str, float] = {}
        """When the checkpoint of each was written."""
        self._subscription: Subscription | None = None
        self._passes = Passes("recommendation", clock, changed, self.reconcile, PassSchedule(lambda: settings.pass_s))

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """Of ResourceRecommends, Deployments and their pods."""
        return (self._ports.mirrors.recommends, self._ports.mirrors.deployments, self._ports.mirrors.pods)

    def state(self) -> dict[str, Any]:
        """Return failures, and nodes whose clocks are wrong."""
        return {
            "failure": self.failure,
            "not_done": dict(islice(sorted(self._each.failures.items()), LISTED)),
            "unread": dict(islice(sorted(self._ports.mirrors.recommends.unread.items()), LISTED)),
            "wrong_clocks": dict(islice(self._intake.wrong_clocks.items(), LISTED)),
        }

    async def run(self) -> None:
        """Run until cancelled; earlier knowledge is read again."""
        try:
            await self._passes.run()
        finally:
            if self._subscription is not None:
                await self._subscription.stop()
                self._subscription = None

    async def begin(self) -> None:
        """Continue from the checkpoints of the previous leader.

        Raises:
            SubletError: the API server is away or refuses; nothing is followed yet.
        """
        self._ledger.follow({})
        self._resizes.retain(())
        self._kept_at_s = {}
        mirrors = self._ports.mirrors
        followed = {seen.uid: key for seen in mirrors.recommends.objects.values() if (key := _workload(seen))}
        for mirror in self.mirrors:
            _ = mirror.objects
        for one in await self._ports.writer.kept_usages():
            if (workload := followed.get(one.uid)) is None:
                continue
            try:
                containers, kills = restored(one.usage, workload[0])
            except Refused as refusal:
                log.warning("checkpoint.unreadable", recommend=one.uid, why=str(refusal))
                continue
            self._ledger.begin(one.uid, WorkloadUsage(workload, containers, {kill.key: kill for kill in kills}))

    async def reconcile(self) -> None:
        """Bring every status, checkpoint and pod to what it should be.

        Raises:
            SubletError: the API server is away, or another one leads; what was done stays.
        """
        if self._subscription is None:
            await self.begin()
            self._subscription = await self._intake.listen(self._ports.bus)
        mirrors = self._ports.mirrors
        # An object that names another recommender has one, and is not ours to write.
        mine = {seen.path: seen for seen in mirrors.recommends.objects.values() if not seen.foreign}
        self._ledger.follow({seen.uid: key for seen in mine.values() if (key := _workload(seen))})
        uids = {seen.uid for seen in mine.values()}
        self._resizes.retain(uids)
        self._kept_at_s = {uid: at_s for uid, at_s in self._kept_at_s.items() if uid in uids}
        pods: dict[WorkloadKey, list[WorkloadPod]] = {}
        for pod in mirrors.pods.objects.values():
            pods.setdefault((pod.namespace, pod.workload), []).append(pod)
        deployments = {(one.namespace, one.name): one for one in mirrors.deployments.objects.values()}
        cluster = _Cluster(deployments, pods)
        self._each.retain(mine)
        await self._each.each(sorted(mine), lambda path: self._recommend(mine[path], cluster))

    async def _recommend(self, seen: RecommendSeen, cluster: _Cluster) -> None:
        key, now = _workload(seen), self._clock.wall()
        deployment = None if key is None else cluster.deployments.get(key)
        pods = () if key is None else cluster.pods.get(key, ())
        if key is not None:
            self._ledger.observe(seen.uid, pods, deployment, now.timestamp())
        outcome = recommend_outcome(seen, deployment, self._ledger, now.timestamp(), self._settings.min_history_s)
        verdict, advice = outcome.verdict, outcome.advice
        figures, wanted = None, {}
        if advice:
            current = {} if deployment is None else {n: one.requests for n, one in deployment.containers.items()}
            if figures_due(seen, advice, now, self._settings.refresh_s):
                figures = recommendation(advice, current)
            targets = written_targets(seen.status) if figures is None else {n: o.target for n, o in advice.items()}
            wanted = {name: WantedRequest(targets[name], one.bounds) for name, one in advice.items()}
        applied = await self._resizes.step(seen, pods, wanted) if wanted else None
        told = [*verdict, *([] if applied is None else [applied])]
        if (status := status_due(seen, told, figures, now)) is not None:
            await self._ports.writer.write_status(seen, status)
        self._ports.decisions.say(decided_recommendation(seen, told, advice))
        await self._keep(seen, now)

    async def _keep(self, seen: RecommendSeen, now: datetime) -> None:
        usage, now_s = self._ledger.of(seen.uid), self._clock.monotonic()
        since_s = now_s - self._kept_at_s.setdefault(seen.uid, now_s)
        if usage is None or since_s < self._settings.checkpoint_s or not (usage.containers or usage.kills):
            return
        await self._ports.writer.keep_usage(seen, stored(usage.containers, usage.newest_kills(now.timestamp())))
        self._kept_at_s[seen.uid] = now_s


def _workload(seen: RecommendSeen) -> WorkloadKey | None:
    """The workload whose use is learned: one that could be recommended for."""
    wanted = seen.wanted
    if seen.foreign or wanted is None or wanted.kind not in SUPPORTED_KINDS or not wanted.name:
        return None
    return (seen.namespace, wanted.name)
