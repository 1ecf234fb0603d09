"""The eviction of a lost node's pod: the intent is announced, the pod evicted, the event published."""

from collections import deque
from collections.abc import Callable
from typing import Any

import structlog

from services.central.leadership.leader import Leader
from shared import telemetry
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import INTENTS_STREAM, event_subject, intent_subject
from shared.contracts.envelope import Reason
from shared.contracts.eviction import EvictionEvent, EvictionIntent, Phase
from shared.contracts.ids import intent_id
from shared.contracts.pod import Pod
from shared.errors import IdTaken, SubletError
from shared.ports import Bus, Clock, DurableMessage, EvictionActuator, Outcome
from shared.wire import Wire, message_id

log = structlog.get_logger()

PLUGIN = "lost-node"
EPISODE = 0
"""One intent for each pod: whoever evicts it again means the same eviction."""
KEPT, KEPT_EVENTS = 50, 2_000
MAX_DETAIL = 1024
"""Characters of an event's detail, which may be an answer of the API server."""

_PHASE: dict[Outcome, Phase] = {"accepted": "created", "gone": "succeeded", "refused": "refused", "failed": "failed"}
"""The phase that an outcome is published as; an outcome that is not known yet is not published."""


class LostPodEvictions:
    """Evicts by the API server, and publishes each step. No ledger: a new leader reads anew which pods there are."""

    def __init__(self, bus: Bus, clock: Clock, leader: Leader, evictor: EvictionActuator) -> None:
        self._bus, self._clock, self._leader, self._evictor = bus, clock, leader, evictor
        self._going: dict[str, tuple[str, Pod]] = {}
        """Node and pod of each eviction under way, by UID."""
        self._wires: dict[str, Wire] = {}
        self._published: dict[str, tuple[EvictionEvent, str, bool]] = {}
        """The newest events by id: the event, its message id, and whether a stream has it."""
        self._done: deque[dict[str, str]] = deque(maxlen=KEPT)

    async def evict(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> None:
        """Announce, ask for an objection, evict, publish.

        Raises:
            SubletError: the intent could not be stored, or another one leads; then nothing is done.
        """
        wire, facts = self._facts(node, pod)
        # Before anything is done: the node's own evictor, should it live after all, sees the intent
        # and keeps off this pod.
        await self._announce(wire, facts)
        phase, detail = await self._carry_out(node, pod, objection)
        self._done.append({"node": node, "pod": pod.key, "phase": phase or "unknown", "detail": detail})
        log.warning("pod.evicted", node=node, pod=pod.key, phase=phase, detail=detail)
        if phase == "created":
            self._going[pod.uid] = (node, pod)
        if phase is not None:
            await self._publish(wire, facts, phase, detail)

    async def report_gone(self) -> None:
        """Publish which pods are gone now."""
        for uid, (node, pod) in sorted(self._going.items()):
            if await self._evictor.lookup(pod) == "gone":
                del self._going[uid]
                wire, facts = self._facts(node, pod)
                await self._publish(wire, facts, "succeeded", f"pod {pod.key} is gone")

    def _facts(self, node: str, pod: Pod) -> tuple[Wire, dict[str, Any]]:
        """Who speaks, and what intent and events have in common."""
        wire = self._wires.setdefault(node, Wire(self._bus, self._clock, node=node, service="central"))
        return wire, {
            "intent_id": intent_id(node, pod.uid, PLUGIN, EPISODE),
            "namespace": pod.namespace,
            "pod": pod.name,
            "pod_uid": pod.uid,
            "qos": pod.qos,
            "plugin": PLUGIN,
            "scope": "node",
            "grace_s": pod.grace_s,
        }

    async def _carry_out(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> tuple[Phase | None, str]:
        """The event's phase and why; None: what became of it is not known yet, or a budget is waited for."""
        if why := objection(pod):
            return "cancelled", why
        result = await self._evictor.evict(pod, grace_s=pod.grace_s, dry_run=True)
        if result.outcome == "accepted":
            # A rehearsal is a request to the API server, and takes long enough for an agent to come back.
            if why := objection(pod):
                return "cancelled", why
            # A lease is no fence: this is as close to the call as a check can be.
            self._leader.require()
            result = await self._evictor.evict(pod, grace_s=pod.grace_s, why=f"the agent of node {node} is lost")
        return _PHASE.get(result.outcome), result.detail

    async def _announce(self, wire: Wire, facts: dict[str, Any]) -> None:
        reason = Reason(rule="the node's agent is lost while the node lives", numbers={"epoch": self._leader.epoch})
        intent = wire.stamp(EvictionIntent, episode=EPISODE, epoch=self._leader.epoch, why=(reason,), **facts)
        subject = intent_subject(intent)
        # The sequence makes the write fail where another central has announced this eviction in the meantime.
        last = await self._bus.replay(INTENTS_STREAM, subject, last_per_subject=True)
        before = last[-1].sequence if last else 0
        await self._bus.publish_durable(
            DurableMessage(
                subject, intent.encode(), msg_id=message_id(intent.intent_id), expect_last_subject_seq=before
            ),
            budget_s=5.0,
        )

    async def _publish(self, wire: Wire, facts: dict[str, Any], phase: Phase, detail: str) -> None:
        """The event, once in this life; one that cannot be stored is in the log, and the pod's fate at the API server.

        A second try of the same step, a pass later, repeats what may have been stored under the id that it had.
        """
        detail = detail[:MAX_DETAIL]
        event = wire.stamp(
            EvictionEvent, phase=phase, detail=detail, message=f"Evict pod of lost node: {detail}", **facts
        )
        event, msg_id, stored = self._published.get(event.event_id, (event, message_id(event.event_id), False))
        if stored:
            return
        try:
            await self._bus.publish_durable(
                DurableMessage(event_subject(event), event.encode(), msg_id=msg_id, headers=event_headers(event)),
                budget_s=5.0,
            )
            stored = True
        except IdTaken as error:
            telemetry.IDS_TAKEN.inc()
            msg_id = message_id(event.event_id)
            log.error("event.id_taken", event=event.event_id, why=str(error))
        except SubletError as error:
            log.error("event.not_stored", event=event.event_id, why=str(error))
        self._published[event.event_id] = (event, msg_id, stored)
        if len(self._published) > KEPT_EVENTS:
            del self._published[next(iter(self._published))]

    def state(self) -> list[dict[str, str]]:
        """The newest evictions, oldest first."""
        return list(self._done)
