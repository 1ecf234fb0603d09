"""Releases pods that wait behind the gate, in order, as reclaimed capacity becomes free. Only the leader does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.gate_release import GatedPod, Release, release
from services.central.core.scheduling.gate_words import decided_of
from services.central.core.scheduling.waiting_pods import WaitingPods
from services.central.leadership.leader import NotLeading
from services.central.ports.decisions import DecisionLog
from shared import telemetry
from shared.core.api_kind import PODS
from shared.errors import SubletError
from shared.ports import Clock, Objects

log = structlog.get_logger()

PASS_S = 1.0
MOST_RELEASED = 50
"""Most pods of one pass: a scheduler places some hundred a second, and their nodes should be visible by the next
pass."""
LISTED = 100


@dataclass(frozen=True, slots=True)
class GateView:
    """What the controller reads; `free` is what nodes offer beyond what was sold, None: unknown."""

    waiting: WaitingPods
    free: Callable[[], Amounts | None]
    hold: bool = True
    """False: everybody goes, as before the gate is switched off."""


class GateController:
    """Runs passes over the waiting pods; each starts from what is seen then.

    It therefore does not matter where a former leader has stopped. A pod counts from its release until its node is
    seen, first among the waiting, then among those that schedulers look at, so that no room is given twice.
    """

    def __init__(self, view: GateView, objects: Objects, clock: Clock, decisions: DecisionLog) -> None:
        self._view, self._objects, self._clock, self._decisions = view, objects, clock, decisions
        self._failures: dict[str, str] = {}
        self.failure = ""
        """Why the newest pass could do nothing; "" after a good one."""

    def state(self) -> dict[str, Any]:
        """Return who waits, failures, and gates that could not be removed."""
        gated = [pod for pod in self._view.waiting.pods.values() if GATE in pod.gates]
        return {"waiting": len(gated), "failure": self.failure, "not_released": dict(self._listed())}

    async def run(self) -> None:
        """Run passes until cancelled; a failed pass is logged and repeated."""
        while True:
            try:
                await self.reconcile()
            except SubletError as error:
                self._fail(str(error))
            await self._clock.sleep(PASS_S)

    async def reconcile(self) -> None:
        """Let go who may go.

        Raises:
            NotLeading: another one leads.
        """
        pods = list(self._view.waiting.pods.values())
        telemetry.GATED_PODS.set(sum(GATE in pod.gates for pod in pods))
        found = self._found(pods)
        if found is None:
            self._fail("what nodes offer or which pods they have is not known; nobody is let go until it is")
            return
        self._failures = {name: why for name, why in self._failures.items() if name in {pod.key for pod in found.pods}}
        released = [pod for pod in found.pods[:MOST_RELEASED] if await self._release(pod)]
        self.failure = ""
        for decided in decided_of(found, released, pods):
            self._decisions.say(decided)

    def _found(self, pods: Sequence[GatedPod]) -> Release | None:
        if not self._view.hold:
            alone = sorted((pod for pod in pods if set(pod.gates) == {GATE}), key=lambda pod: pod.turn)
            return Release(tuple(alone), None, {})
        free = self._view.free()
        if free is None:
            return None
        coming = self._view.waiting.coming
        return release(GATE, pods, {name: amount - coming[name] for name, amount in free.items()})

    async def _release(self, pod: GatedPod) -> bool:
        # Gates are only ever removed, and this was the last one, so an empty list removes no gate of others.
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        try:
            there = await self._objects.patch(PODS, {"metadata": metadata, "spec": {"schedulingGates": None}})
        except NotLeading:
            raise
        except SubletError as error:
            if self._failures.get(pod.key) != str(error):
                log.warning("gate.not_released", pod=pod.key, why=str(error))
            self._failures[pod.key] = str(error)
            return False
        self._failures.pop(pod.key, None)
        if there is None:
            return False  # gone meanwhile
        telemetry.GATE_RELEASES.inc()
        return True

    def _fail(self, why: str) -> None:
        if why != self.failure:
            log.warning("gate.pass_failed", why=why)
        self.failure = why

    def _listed(self) -> list[tuple[str, str]]:
        return sorted(self._failures.items())[:LISTED]
