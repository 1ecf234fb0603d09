"""The controller of service profiles: descriptors of Deployments that ask for one, and what they say."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import structlog

from services.central.core.lost_nodes.pacing import Pace
from services.central.core.recommendation.objects.workloads import DEPLOYMENTS, WorkloadPod, pod_of_workload
from services.central.core.service_profiles.conditions import conditions, verdicts
from services.central.core.service_profiles.decided import (
    decided_baseline,
    decided_making,
    decided_refusal,
    decided_removal,
    decided_standing,
)
from services.central.core.service_profiles.descriptor import (
    DESCRIPTORS,
    NAME,
    DescribedDeployment,
    DescriptorSeen,
    described_deployment_of,
    descriptor_of,
)
from services.central.core.service_profiles.standing import PodStanding, indicators_now, sentinels, standing
from services.central.core.service_profiles.told import ToldService, services_of_nodes, told_of
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.decisions import DecisionLog
from services.central.service_profiles.intake import StandingIntake
from services.central.service_profiles.telling import NodeTelling
from shared.contracts.cluster.figures import FIGURES_PERIOD_S
from shared.core.api_kind import PODS
from shared.core.evictions.intents import TokenBucket
from shared.core.node_mode import NodeSwitch
from shared.errors import Conflict
from shared.ports import Clock, ObjectMirror, Objects, Subscription
from shared.wire import Wire

log = structlog.get_logger()

LISTED: Final = 100
RESYNC_S: Final = 10.0
STATUS_S: Final = 60.0
"""Seconds between two statuses of one descriptor, because figures change all the time, and not each must be stored."""
POD_PACE: Final = Pace(per_s=10.0, burst=50)
"""Pace of writing descriptors' names to pods."""


@dataclass(frozen=True, slots=True)
class ProfileView:
    """What the controller reads; `changed` is set when a descriptor or a Deployment that wants one has changed."""

    descriptors: ObjectMirror[DescriptorSeen]
    deployments: ObjectMirror[DescribedDeployment]
    pods: ObjectMirror[WorkloadPod]
    changed: asyncio.Event


def profile_view(objects: Objects) -> ProfileView:
    """Return the mirrors over an API server; pods change all the time, and wake nothing."""
    changed = asyncio.Event()
    return ProfileView(
        descriptors=objects.mirror(DESCRIPTORS, descriptor_of, changed.set),
        deployments=objects.mirror(DEPLOYMENTS, described_deployment_of, changed.set),
        pods=objects.mirror(PODS, pod_of_workload, lambda: None),
        changed=changed,
    )


class ServiceProfileController:
    """Writes through objects that only the leader may write, and publishes to nodes. A failure does not delay the
    others."""

    def __init__(self, objects: Objects, wire: Wire, clock: Clock, switch: NodeSwitch, decisions: DecisionLog) -> None:
        self._objects, self._bus, self._clock = objects, wire.bus, clock
        self._switch, self._decisions = switch, decisions
        self._view = profile_view(objects)
        self._intake = StandingIntake(lambda: self._view.pods.objects, clock)
        self._descriptors = EachNode(clock, "write ServiceProfileDescriptor")
        self._naming = EachNode(clock, "name the ServiceProfileDescriptor of a pod")
        self._bucket = TokenBucket(POD_PACE.burst, 0.0)
        self._told_at_s: dict[str, float] = {}
        self._told: dict[str, ToldService] = {}
        """What nodes were last told, by the descriptor's UID."""
        self._nodes = NodeTelling(wire)
        self._passes = Passes(
            "service_profiles", clock, self._view.changed, self.reconcile, PassSchedule(lambda: RESYNC_S)
        )

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """Of descriptors, Deployments that want one, and pods."""
        return [self._view.descriptors, self._view.deployments, self._view.pods]

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    async def listen(self) -> Subscription:
        """Begin to hear what nodes tell of pods."""
        return await self._intake.listen(self._bus)

    async def run(self) -> None:
        """Work until cancelled."""
        subscription = await self.listen()
        try:
            await self._passes.run()
        finally:
            await subscription.stop()

    def state(self) -> dict[str, Any]:
        """Return what could not be written, by namespace and name."""
        failures = self._descriptors.failures | self._naming.failures
        not_written = dict(islice(sorted(failures.items()), LISTED))
        return {"failure": self.failure, "not_written": not_written, "told": self._nodes.state()}

    async def reconcile(self) -> None:
        """Tell nodes of their services; make, fill and remove descriptors, and name them on their pods.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        descriptors = {one.key: one for one in self._view.descriptors.objects.values()}
        wanted = {f"{one.namespace}/{one.name}": one for one in self._view.deployments.objects.values()}
        pods = self._view.pods.objects
        self._intake.retain(pods)
        of_target: dict[tuple[str, str], list[WorkloadPod]] = {}
        for pod in pods.values():
            of_target.setdefault((pod.namespace, pod.workload), []).append(pod)
        # Before anything is written: what nodes do must not wait for the API server.
        await self._tell(sorted(descriptors.values(), key=lambda seen: seen.key), of_target)
        if self._switch.observes:
            return
        self._told_at_s = {uid: at_s for uid, at_s in self._told_at_s.items()
                           if uid in self._view.descriptors.objects}  # fmt: skip
        self._descriptors.retain(descriptors.keys() | wanted.keys())

        async def one(key: str) -> None:
            there = descriptors.get(key)
            if there is None:
                await self._make(wanted[key])
            elif there.made_for and key not in wanted:
                await self._objects.delete(DESCRIPTORS, there.name, there.namespace, uid=there.uid)
                self._decisions.say(decided_removal(there))
            else:
                await self._fill(there, of_target.get((there.namespace, there.target), []))

        await self._descriptors.each(sorted(descriptors.keys() | wanted.keys()), one)
        await self._name(list(descriptors.values()), of_target, pods.values())

    async def _tell(
        self,
        descriptors: Sequence[DescriptorSeen],
        of_target: Mapping[tuple[str, str], Sequence[WorkloadPod]],
    ) -> None:
        """Publish to every node the services of its pods; of several descriptors of a workload only the first
        counts."""
        now_s, told, services, targets = self._clock.wall().timestamp(), {}, [], set()
        for seen in descriptors:
            pods = of_target.get((seen.namespace, seen.target), ())
            current = indicators_now(seen, self._known(pods), now_s)
            told[seen.uid] = said = told_of(seen, pods, current)
            if (seen.namespace, seen.target) not in targets:
                targets.add((seen.namespace, seen.target))
                services.append((seen, said, pods))
            if said.poor != self._told.get(seen.uid, ToldService()).poor:
                self._decisions.say(decided_standing(seen, said, current))
        self._told = told
        await self._nodes.publish(*services_of_nodes(services))

    def _known(self, pods: Iterable[WorkloadPod]) -> list[PodStanding]:
        return [one for pod in pods if (one := self._intake.standings.get(pod.uid)) is not None]

    async def _make(self, deployment: DescribedDeployment) -> None:
        try:
            await self._objects.create(DESCRIPTORS, deployment.document)
        except Conflict:
            return  # the mirror is behind: the next pass sees it
        self._decisions.say(decided_making(deployment))
        log.info("service_profile.made", namespace=deployment.namespace, name=deployment.name)

    async def _fill(self, seen: DescriptorSeen, pods: Sequence[WorkloadPod]) -> None:
        marks = {name: text for name, text in sentinels(seen, pods).items() if seen.annotations.get(name) != text}
        meta = {"name": seen.name, "namespace": seen.namespace, "uid": seen.uid}
        if marks:
            await self._objects.patch(DESCRIPTORS, {"metadata": {**meta, "annotations": marks}})
            self._decisions.say(decided_baseline(seen, marks, pods))
        now_s, said = self._clock.monotonic(), conditions(seen, self._told.get(seen.uid, ToldService()), len(pods))
        # Figures can wait for their turn; that a service does poorly, or that its descriptor cannot be read, cannot.
        is_news = verdicts(said) != verdicts(seen.status.get("conditions"))
        if not is_news and now_s - self._told_at_s.get(seen.uid, float("-inf")) < STATUS_S:
            return
        if is_news and seen.spec is None:
            self._decisions.say(decided_refusal(seen))
        status = standing(seen, self._known(pods), self._clock.wall().timestamp(), FIGURES_PERIOD_S)
        status["conditions"] = said
        if any(seen.status.get(name) != value for name, value in status.items()):
            await self._objects.patch(DESCRIPTORS, {"metadata": meta, "status": status}, status=True)
        self._told_at_s[seen.uid] = now_s

    async def _name(
        self,
        descriptors: Sequence[DescriptorSeen],
        of_target: Mapping[tuple[str, str], Sequence[WorkloadPod]],
        pods: Iterable[WorkloadPod],
    ) -> None:
        """Write each pod's descriptor on it, and take away that of one that is gone."""
        meant = {pod.uid: seen.name for seen in sorted(descriptors, key=lambda one: one.name, reverse=True)
                 for pod in of_target.get((seen.namespace, seen.target), ())}  # fmt: skip
        known = {one.key for one in descriptors}
        due = {pod.uid: pod for pod in pods if pod.active and _is_misnamed(pod, meant.get(pod.uid), known)}
        self._naming.retain(due)

        async def one(uid: str) -> None:
            rest = POD_PACE.spend(self._bucket, self._clock.monotonic())
            if rest is None:
                return
            self._bucket = rest
            pod = due[uid]
            meta = {"name": pod.name, "namespace": pod.namespace, "uid": uid, "annotations": {NAME: meant.get(uid)}}
            await self._objects.patch(PODS, {"metadata": meta})

        await self._naming.each(sorted(due), one)


def _is_misnamed(pod: WorkloadPod, meant: str | None, known: Collection[str]) -> bool:
    """Return whether a pod names another descriptor than it should; one that a user has named for it stays."""
    if meant is not None:
        return pod.descriptor != meant
    return bool(pod.descriptor) and f"{pod.namespace}/{pod.descriptor}" not in known
