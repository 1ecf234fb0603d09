"""Recommendations become requests of pods that run: paced, and one pod of a workload after the other."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import structlog

from services.central.core.lost_nodes.pacing import Pace
from services.central.core.recommendation.objects.resource_recommend import APPLY, IN_PLACE, OFF, RecommendSeen
from services.central.core.recommendation.objects.status import APPLIED, ConditionDue, quantities
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.recommendation.resizing import Resize, WantedRequest, is_in_force, next_resize
from services.central.ports.decisions import DecisionLog
from services.central.ports.recommendation import RecommendWriter
from services.central.recommendation.decided import decided_resize
from shared.core.evictions.intents import TokenBucket
from shared.core.node_mode import NodeSwitch
from shared.ports import Clock

log = structlog.get_logger()

IN_FORCE_S = 60.0
"""How long to wait until kubelet reports a resize as done; conditions of the pod are waited for without a bound."""
ASK_AGAIN_S = 600.0
"""How long until an API server that cannot resize is asked again: it may have been upgraded."""
NAMED_PODS = 5
UNSUPPORTED = "the API server has no pods/resize, which Kubernetes has from 1.33 on: nothing is applied"


class InPlaceResizes:
    """The pods themselves record what was requested, so a new leader continues where the last one stopped."""

    def __init__(
        self, writer: RecommendWriter, decisions: DecisionLog, switch: NodeSwitch, clock: Clock, pace: Pace
    ) -> None:
        self._writer, self._decisions, self._switch = writer, decisions, switch
        self._clock, self._pace = clock, pace
        self._bucket = TokenBucket(pace.burst, clock.monotonic())
        self._asked: dict[str, tuple[Resize, float]] = {}
        """By the UID of the ResourceRecommend, what was asked for last and when."""
        self._unsupported_until_s = float("-inf")

    def retain(self, uids: Collection[str]) -> None:
        """Forget what was asked for others."""
        self._asked = {uid: asked for uid, asked in self._asked.items() if uid in uids}

    async def step(
        self, seen: RecommendSeen, pods: Sequence[WorkloadPod], wanted: Mapping[str, WantedRequest]
    ) -> ConditionDue | None:
        """Resize one pod, or report what is waited for; None if it was not requested.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        if seen.apply == OFF:
            return None
        if seen.apply != IN_PLACE:
            return ConditionDue(APPLIED, False, "UnknownValue", f"{APPLY}: {seen.apply!r}: want {IN_PLACE} or {OFF}")
        if self._switch.observes:
            return ConditionDue(APPLIED, False, "Observes", "mode observe: pods stay as they are")
        if self._clock.monotonic() < self._unsupported_until_s:
            return ConditionDue(APPLIED, False, "ResizeUnsupported", UNSUPPORTED)
        if waiting := self._waits_for(seen.uid, pods):
            return ConditionDue(APPLIED, False, "Waiting", waiting)
        plan = next_resize(pods, wanted)
        if plan.waits_for:
            return ConditionDue(APPLIED, False, "Waiting", plan.waits_for)
        if plan.resize is None:
            return _settled(plan.held)
        rest = self._pace.spend(self._bucket, self._clock.monotonic())
        if rest is None:
            return ConditionDue(APPLIED, False, "Waiting", f"pod {plan.resize.pod.name} is next, as the pace allows")
        self._bucket = rest
        return await self._resize(seen, plan.resize)

    def _waits_for(self, uid: str, pods: Sequence[WorkloadPod]) -> str:
        asked = self._asked.get(uid)
        now = None if asked is None else next((pod for pod in pods if pod.uid == asked[0].pod.uid), None)
        if asked is None or now is None or is_in_force(asked[0], now):
            self._asked.pop(uid, None)
            return ""
        if self._clock.monotonic() - asked[1] > IN_FORCE_S and not now.resize:
            self._asked.pop(uid)
            return ""
        return f"pod {now.name}: its resize is not in force yet" + (f": {now.resize_said}" if now.resize_said else "")

    async def _resize(self, seen: RecommendSeen, resize: Resize) -> ConditionDue:
        pod = resize.pod
        said = ", ".join(
            f"{name} {resource} {amount}"
            for name, amounts in resize.requests.items()
            for resource, amount in quantities(amounts).items()
        )
        outcome = await self._writer.resize(resize)
        log.info("pod.resized", namespace=pod.namespace, pod=pod.name, requests=said, outcome=outcome)
        if outcome == "unsupported":
            self._unsupported_until_s = self._clock.monotonic() + ASK_AGAIN_S
            return ConditionDue(APPLIED, False, "ResizeUnsupported", UNSUPPORTED)
        if outcome == "asked":
            self._asked[seen.uid] = (resize, self._clock.monotonic())
            self._decisions.say(decided_resize(seen, resize))
            return ConditionDue(APPLIED, False, "Resizing", f"pod {pod.name} was asked to take {said}")
        return ConditionDue(APPLIED, False, "Waiting", f"pod {pod.name} has changed since it was seen")


def _settled(held: Mapping[str, str]) -> ConditionDue:
    if not held:
        return ConditionDue(APPLIED, True, "WithinBounds", "every pod asks for what it needs, within the bounds")
    named = "; ".join(f"{pod}: {why}" for pod, why in islice(sorted(held.items()), NAMED_PODS))
    more = f"; and {len(held) - NAMED_PODS} more" if len(held) > NAMED_PODS else ""
    return ConditionDue(APPLIED, False, "SomePodsStay", f"{named}{more}")
