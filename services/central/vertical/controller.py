"""The controller of vertical autoscalers: statuses, and one pod of each target after the other."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import structlog

from services.central.core.lost_nodes.pacing import Pace
from services.central.core.recommendation.objects.resource_recommend import (
    IN_PLACE,
    RESOURCE_RECOMMENDS,
    RecommendSeen,
    recommend_of,
)
from services.central.core.recommendation.objects.status import (
    APPLIED,
    ConditionDue,
    conditions,
    quantities,
    written_targets,
)
from services.central.core.recommendation.objects.workloads import (
    DEPLOYMENTS,
    DeploymentSeen,
    WorkloadPod,
    deployment_of,
    pod_of_workload,
)
from services.central.core.recommendation.vpa_target import ContainerFigures
from services.central.core.vertical.decided import decided_autoscaler, decided_resize_by, figures_in_words
from services.central.core.vertical.stock_vpa import APPLIED_SAID, STOCK_VPAS, stock_vpa_of
from services.central.core.vertical.vpa_object import KATALYST_VPAS, VpaSeen, katalyst_vpa_of
from services.central.core.vertical.vpa_round import VpaStep, VpaTargetSeen, rivals, vpa_step
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.decisions import DecisionLog
from services.central.vertical.pod_figures import resize_pod
from shared.core.api_kind import PODS
from shared.core.evictions.intents import TokenBucket
from shared.core.node_mode import NodeSwitch
from shared.ports import Clock, ObjectMirror, Objects

log = structlog.get_logger()

LISTED: Final = 100
RESYNC_S: Final = 10.0
"""Pods wake nothing, because a pass comes soon enough."""
MAX_SAID: Final = 300
"""Most characters of the annotation on a stock object."""
PACE: Final = Pace(per_s=1.0, burst=5)
"""Of resizes in the whole cluster: kubelets and quotas of namespaces are to keep up."""
UNSUPPORTED: Final = "the API server has no pods/resize, which Kubernetes has from 1.33 on: nothing is applied"


@dataclass(frozen=True, slots=True)
class VerticalMirrors:
    """What the controller reads; `changed` is set when an autoscaler or a recommendation has changed."""

    vpas: Sequence[ObjectMirror[VpaSeen]]
    """Katalyst's, and stock ones if those are followed."""
    recommends: ObjectMirror[RecommendSeen]
    deployments: ObjectMirror[DeploymentSeen]
    pods: ObjectMirror[WorkloadPod]
    changed: asyncio.Event


def vertical_mirrors(objects: Objects, *, stock: bool) -> VerticalMirrors:
    """Return the mirrors over an API server; templates and pods change all the time, and wake nothing."""
    changed = asyncio.Event()
    vpas = [objects.mirror(KATALYST_VPAS, katalyst_vpa_of, changed.set)]
    if stock:
        vpas.append(objects.mirror(STOCK_VPAS, stock_vpa_of, changed.set))
    return VerticalMirrors(
        vpas=vpas,
        recommends=objects.mirror(RESOURCE_RECOMMENDS, recommend_of, changed.set),
        deployments=objects.mirror(DEPLOYMENTS, deployment_of, lambda: None),
        pods=objects.mirror(PODS, pod_of_workload, lambda: None),
        changed=changed,
    )


class VerticalController:
    """Writes through objects that only the leader may write. One that fails holds up no other."""

    def __init__(
        self, objects: Objects, mirrors: VerticalMirrors, clock: Clock, switch: NodeSwitch, decisions: DecisionLog
    ) -> None:
        self._objects, self._mirrors, self._clock = objects, mirrors, clock
        self._switch, self._decisions = switch, decisions
        self._each = EachNode(clock, "apply vertical autoscaler")
        self._bucket = TokenBucket(PACE.burst, 0.0)
        self._passes = Passes("vertical", clock, mirrors.changed, self.reconcile, PassSchedule(lambda: RESYNC_S))

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """Of autoscalers, recommendations, Deployments and their pods."""
        seen = self._mirrors
        return [*seen.vpas, seen.recommends, seen.deployments, seen.pods]

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    async def run(self) -> None:
        """Work until cancelled."""
        await self._passes.run()

    def state(self) -> dict[str, Any]:
        """Return what could not be written, by namespace and name."""
        return {"failure": self.failure, "not_written": dict(islice(sorted(self._each.failures.items()), LISTED))}

    async def reconcile(self) -> None:
        """Bring every autoscaler's status to what is so, and give one pod of each target its figures.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        vpas = {one.key: one for mirror in self._mirrors.vpas for one in mirror.objects.values()}
        older = rivals(vpas.values())
        targets = self._targets(vpas.values())
        self._each.retain(vpas)

        async def one(key: str) -> None:
            seen = vpas[key]
            await self._step(seen, vpa_step(seen, targets[key], older.get(seen.uid, "")))

        await self._each.each(sorted(vpas), one)

    def _targets(self, vpas: Iterable[VpaSeen]) -> dict[str, VpaTargetSeen]:
        pods: dict[tuple[str, str], list[WorkloadPod]] = {}
        for pod in self._mirrors.pods.objects.values():
            pods.setdefault((pod.namespace, pod.workload), []).append(pod)
        deployments = {(one.namespace, one.name): one for one in self._mirrors.deployments.objects.values()}
        recommends = {(one.namespace, one.wanted.name): one
                      for one in sorted(self._mirrors.recommends.objects.values(), key=lambda one: one.path)
                      if one.wanted is not None}  # fmt: skip
        found = {}
        for seen in vpas:
            key = (seen.namespace, "" if seen.wanted is None else seen.wanted.target)
            deployment, recommend = deployments.get(key), recommends.get(key)
            figures: Mapping[str, Mapping[str, int]] = {}
            if seen.own is not None:
                figures = seen.own
            elif recommend is not None:
                figures = written_targets(recommend.status)
            applied = recommend is not None and recommend.apply == IN_PLACE
            found[seen.key] = VpaTargetSeen(
                None if deployment is None else frozenset(deployment.containers),
                {name: ContainerFigures(amounts) for name, amounts in figures.items() if amounts},
                pods.get(key, ()),
                f"ResourceRecommend {recommend.name}" if recommend is not None and applied else "",
            )
        return found

    async def _step(self, seen: VpaSeen, step: VpaStep) -> None:
        told = list(step.conditions)
        if step.pod is not None:
            told[-1] = await self._resize(seen, step.pod, step.figures)
        await self._tell(seen, told, step.given)

    async def _resize(self, seen: VpaSeen, pod: WorkloadPod, figures: Mapping[str, ContainerFigures]) -> ConditionDue:
        if self._switch.observes:
            return ConditionDue(APPLIED, False, "Observing", f"pod {pod.name} would be resized; mode is observe")
        rest = PACE.spend(self._bucket, self._clock.monotonic())
        if rest is None:
            return ConditionDue(APPLIED, False, "Waiting", f"pod {pod.name} is next, as the pace allows")
        self._bucket = rest
        outcome = await resize_pod(self._objects, pod, figures)
        said = figures_in_words(figures)
        log.info("vpa.pod_resized", namespace=pod.namespace, pod=pod.name, figures=said, outcome=outcome)
        if outcome == "unsupported":
            return ConditionDue(APPLIED, False, "ResizeUnsupported", UNSUPPORTED)
        if outcome == "asked":
            self._decisions.say(decided_resize_by(seen, pod, figures))
        return ConditionDue(APPLIED, False, "Resizing", f"pod {pod.name}")

    async def _tell(self, seen: VpaSeen, told: Sequence[ConditionDue], given: Mapping[str, ContainerFigures]) -> None:
        first = next((one for one in told if not one.holds), told[-1])
        if await (self._annotate(seen, first) if seen.kind is STOCK_VPAS else self._write_status(seen, told, given)):
            self._decisions.say(decided_autoscaler(seen, told, given))

    async def _write_status(
        self, seen: VpaSeen, told: Sequence[ConditionDue], given: Mapping[str, ContainerFigures]
    ) -> bool:
        """Whether it had to be written."""
        wanted = {
            "conditions": conditions(told, seen.status.get("conditions"), self._clock.wall()),
            "containerResources": [
                {
                    "containerName": name,
                    "requests": {"target": quantities(one.requests)},
                    "limits": {"target": quantities(one.limits)},
                }
                for name, one in sorted(given.items())
            ],
        }
        if all(seen.status.get(name) == value for name, value in wanted.items()):
            return False
        meta = {"name": seen.name, "namespace": seen.namespace, "uid": seen.uid}
        await self._objects.patch(seen.kind, {"metadata": meta, "status": wanted}, status=True)
        return True

    async def _annotate(self, seen: VpaSeen, first: ConditionDue) -> bool:
        """The same of a stock object, in words: its status is its recommender's."""
        said = f"{first.reason}: {first.said}"[:MAX_SAID]
        if seen.said == said:
            return False
        meta = {"name": seen.name, "namespace": seen.namespace, "uid": seen.uid, "annotations": {APPLIED_SAID: said}}
        await self._objects.patch(seen.kind, {"metadata": meta})
        return True
