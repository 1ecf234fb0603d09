"""The evictions of central: the intent is announced, the pod evicted, the event published."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from services.central.leadership.leader import Leader, NotLeading
from shared import telemetry
from shared.contracts.bus.stored import read_event, read_intent
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, event_filter
from shared.contracts.envelope import Reason
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.eviction_phases import FINAL_PHASES, Phase
from shared.contracts.ids import intent_id, node_token
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Call, Outgoing
from shared.core.evictions.rulings import Ruling, while_going
from shared.errors import IdTaken, SubletError, Unavailable
from shared.evictions.announcement import IntentStream
from shared.evictions.messages import MAX_DETAIL, event_message, intent_message, send, under_another_id
from shared.evictions.procedure import EvictionOrder, EvictionProcedure
from shared.ports import Bus, Clock, EvictionActuator, Received
from shared.wire import Wire

log = structlog.get_logger()

EPISODE = 0
"""One intent per pod: a repeated eviction is the same one."""
KEPT, KEPT_EVENTS = 50, 2_000
TAKEN_UP = timedelta(hours=1)
"""How old an intent of a leader before may be; a pod goes within minutes."""
ALL = ">"
BUDGET_S = 5.0
"""For each publication: the leader's pass waits for it."""


@dataclass(frozen=True, slots=True)
class EvictionCause:
    """Why pods are evicted, as stated in intents, events and to the pods' owners."""

    plugin: str
    rule: str
    title: str
    """How the text of an event begins."""
    why: str
    """Of a pod on `{node}`."""


LOST_NODE = EvictionCause(
    plugin="lost-node",
    rule="the node's agent is lost while the node lives",
    title="Evict pod of lost node",
    why="the agent of node {node} is lost",
)
TIDE = EvictionCause(
    plugin="tide",
    rule="the node changes between services and batch work, and the pod belongs to the side that it leaves",
    title="Evict pod of node that changes sides",
    why="node {node} changes between services and batch work",
)


@dataclass(frozen=True, slots=True)
class _ChecksOfPod:
    """The checks of one pod: the caller's objection, and whether this central leads."""

    pod: Pod
    objection: Callable[[Pod], str]
    leader: Leader

    async def before_dry_run(self) -> Ruling | None:
        # No lookup: the objection has the pods of this pass, and the call itself looks for the UID.
        return self._ruling()

    def after_dry_run(self, call: Call) -> Ruling | None:
        del call
        return None

    def before_call(self) -> Ruling | None:
        # A rehearsal is a request to the API server, and takes long enough for an agent to come back.
        if (ruling := self._ruling()) is not None:
            return ruling
        # A lease is no fence: this is as close to the call as a check can be.
        self.leader.require()
        return None

    def _ruling(self) -> Ruling | None:
        return Ruling("cancelled", why) if (why := self.objection(self.pod)) else None


class _EventsOnce:
    """Events that are published once in this life, in place of a ledger.

    A second try of the same step, a pass later, repeats what may have been stored under the id that it had.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._newest: dict[str, tuple[Outgoing, bool]] = {}
        """By id the message, and whether a stream has it."""

    async def publish(self, message: Outgoing) -> None:
        message, stored = self._newest.get(message.fact_id, (message, False))
        if stored:
            return
        self._newest[message.fact_id] = (message, False)
        try:
            await send(self._bus, message, self._rename, budget_s=BUDGET_S)
            self._newest[message.fact_id] = (message, True)
        except SubletError as error:
            log.error("event.not_stored", fact=message.fact_id, why=str(error))
        if len(self._newest) > KEPT_EVENTS:
            del self._newest[next(iter(self._newest))]

    def _rename(self, message: Outgoing, error: IdTaken) -> Outgoing:
        renamed = under_another_id(message, error)
        self._newest[message.fact_id] = (renamed, False)
        return renamed


def _epoch(received: Received) -> int:
    """The epoch of a stored intent; 0 for what is none."""
    intent = read_intent(received.subject, received.data)
    return intent.epoch if isinstance(intent, EvictionIntent) else 0


class AnnouncedEvictions:
    """Evicts through the API server, and publishes each step. There is no ledger: a new leader reads which pods exist,
    and from the streams which evictions have begun and not ended."""

    def __init__(
        self, bus: Bus, clock: Clock, leader: Leader, evictor: EvictionActuator, cause: EvictionCause = LOST_NODE
    ) -> None:
        self._bus, self._clock, self._leader, self._cause = bus, clock, leader, cause
        self._procedure = EvictionProcedure(evictor, "central")
        # Another writer's intent for the pod takes precedence: the next pass starts again after it.
        self._intents = IntentStream(bus, under_another_id, yields_to=lambda _received: True)
        self._events = _EventsOnce(bus)
        self._going: dict[str, tuple[str, Pod]] = {}
        """Node and pod of each eviction under way, by UID."""
        self._taken_up: int | None = None
        """In which epoch the evictions of the leaders before were taken up last; None: they were not yet."""
        self._wires: dict[str, Wire] = {}
        self._done: deque[dict[str, str]] = deque(maxlen=KEPT)

    async def evict(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> None:
        """Announce, ask for an objection, evict, publish.

        Raises:
            SubletError: the intent could not be stored, or another one leads; then nothing is done.
        """
        wire, facts = self._facts(node, pod)
        about = {"intent_id": facts["intent_id"], "k8s.node.name": node, "k8s.pod.uid": pod.uid}
        with telemetry.span("central.evict", about):
            await self._evict(node, pod, objection, (wire, facts))

    async def _evict(
        self, node: str, pod: Pod, objection: Callable[[Pod], str], told: tuple[Wire, dict[str, Any]]
    ) -> None:
        wire, facts = told
        # Before anything is done: the node's own evictor, should it live after all, sees the intent
        # and keeps off this pod.
        await self._announce(wire, facts)
        ruling = await self._carry_out(node, pod, objection)
        phase, detail = ruling.phase, ruling.detail
        self._done.append({"node": node, "pod": pod.key, "phase": phase or "unknown", "detail": detail})
        log.warning(
            "pod.evicted",
            node=node,
            pod=pod.key,
            pod_uid=pod.uid,
            intent_id=facts["intent_id"],
            phase=phase,
            detail=detail,
        )
        if phase == "created":
            self._going[pod.uid] = (node, pod)
        if phase is not None:
            await self._publish(wire, facts, phase, detail)

    async def report_gone(self) -> None:
        """Publish which pods are gone now, also those that a leader before this one has evicted."""
        if self._taken_up != self._leader.epoch and await self._take_up():
            self._taken_up = self._leader.epoch
        for uid, (node, pod) in sorted(self._going.items()):
            # Without end: a pod that stays is seen by the next pass, which evicts it again.
            if while_going(await self._procedure.lookup(pod), waited_s=0.0, limit_s=math.inf) == "succeeded":
                del self._going[uid]
                wire, facts = self._facts(node, pod)
                await self._publish(wire, facts, "succeeded", f"pod {pod.key} is gone")

    async def _take_up(self) -> bool:
        """Take up what the leaders before have announced, and nobody has told the end of; False: try again."""
        try:
            for intent in await self._unfinished():
                pod = Pod(
                    uid=intent.pod_uid,
                    namespace=intent.namespace,
                    name=intent.pod,
                    qos=intent.qos,
                    grace_s=intent.grace_s,
                )
                standing = await self._procedure.lookup(pod)
                if standing == "unknown":
                    return False
                # One that runs was not evicted: where it still has to go, the next pass begins anew.
                if standing != "running":
                    self._going[pod.uid] = (intent.node, pod)
        except Unavailable as error:
            log.warning("evictions.not_taken_up", why=str(error))
            return False
        return True

    async def _unfinished(self) -> list[EvictionIntent]:
        """The intents of this cause within the last hour that have no last event.

        Raises:
            Unavailable: the streams cannot be read now.
        """
        held = await self._bus.replay(INTENTS_STREAM, ALL, last_per_subject=True)
        read = (read_intent(one.subject, one.data) for one in held)
        now = self._clock.wall()
        found = [
            intent
            for intent in read
            if isinstance(intent, EvictionIntent)
            and intent.plugin == self._cause.plugin
            and abs(now - intent.sent_at) <= TAKEN_UP
        ]
        over: set[str] = set()
        for node in {intent.node for intent in found}:
            told = await self._bus.replay(EVENTS_STREAM, event_filter(node=node_token(node)))
            events = (read_event(one.subject, one.headers, one.data) for one in told)
            over |= {e.intent_id for e in events if isinstance(e, EvictionEvent) and e.phase in FINAL_PHASES}
        return [intent for intent in found if intent.intent_id not in over]

    def _facts(self, node: str, pod: Pod) -> tuple[Wire, dict[str, Any]]:
        """Return the sender, and the fields that intent and events share."""
        wire = self._wires.setdefault(node, Wire(self._bus, self._clock, node=node, service="central"))
        return wire, {
            "intent_id": intent_id(node, pod.uid, self._cause.plugin, EPISODE),
            "namespace": pod.namespace,
            "pod": pod.name,
            "pod_uid": pod.uid,
            "qos": pod.qos,
            "plugin": self._cause.plugin,
            "scope": "node",
            "grace_s": pod.grace_s,
        }

    async def _carry_out(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> Ruling:
        """Return the outcome; without a step it is not known yet, or a budget is waited for."""
        order = EvictionOrder(pod, pod.grace_s, self._cause.why.format(node=node))
        checks = _ChecksOfPod(pod, objection, self._leader)
        ruling = await self._procedure.rehearse(order, checks)
        return await self._procedure.request(order, checks) if ruling.step == "requested" else ruling

    async def _announce(self, wire: Wire, facts: dict[str, Any]) -> None:
        reason = Reason(rule=self._cause.rule, numbers={"epoch": self._leader.epoch})
        intent = wire.stamp(EvictionIntent, episode=EPISODE, epoch=self._leader.epoch, why=(reason,), **facts)
        message = intent_message(intent)
        # Behind what is there now, which may be this central's own of the last pass: the write fails where another
        # central announces this eviction in the meantime.
        last = await self._intents.last(message.subject)
        if last is not None and _epoch(last) > self._leader.epoch:
            raise NotLeading(
                f"a later leader has announced the eviction of {intent.namespace}/{intent.pod}", reason="not_leading"
            )
        await self._intents.append(message, after=last.sequence if last is not None else 0, budget_s=BUDGET_S)

    async def _publish(self, wire: Wire, facts: dict[str, Any], phase: Phase, detail: str) -> None:
        """Publish the event, once in this run; the log reports an event that cannot be stored."""
        detail = detail[:MAX_DETAIL]
        event = wire.stamp(EvictionEvent, phase=phase, detail=detail, message=f"{self._cause.title}: {detail}", **facts)
        await self._events.publish(event_message(event))

    def state(self) -> list[dict[str, str]]:
        """The newest evictions, oldest first."""
        return list(self._done)
