"""Carries out one intent: announce, look up, rehearse, evict, watch. Every step is written before the next is made.

Started again from any step it ends the same way: an unknown outcome is looked up before anything is repeated, and every
call carries the pod's UID, so that it never reaches a successor of the same name
(docs/facts/kubernetes.md#eviction-measured).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from services.evictor.act.announcer import Announcer
from services.evictor.core.arbiter.confirmation import Evidence
from services.evictor.core.events import call_failed_text, met_text, timeout_text
from services.evictor.record.journal import IntentJournal
from shared import telemetry
from shared.core.backoff import delay_s
from shared.core.evictions.intents import Call, CallKind, IntentRecord, Step, passed_s
from shared.errors import Unavailable
from shared.ports import ActionResult, Clock, EvictionActuator

RETRY_BASE_S, RETRY_CAP_S = 0.25, 5.0
WATCH_BASE_S, WATCH_CAP_S = 0.05, 2.0
SHORTEST_WATCH_S = 10.0
GRACE_FACTOR = 1.5
PAUSED = "evictions are paused on this node"
OBSERVED = "the mode of this node is observe"
RELIEVED = "the pressure has gone before the eviction began"


def watch_time_s(grace_s: float) -> float:
    """How long a pod may take to go (docs/facts/katalyst-eviction.md#killing-a-pod)."""
    return max(SHORTEST_WATCH_S, GRACE_FACTOR * grace_s)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Time limits of one intent's calls, in seconds."""

    announce_s: float
    call_timeout_s: float


@dataclass(frozen=True, slots=True)
class LastChecks:
    """What is asked again right before a call: between the decision and the call both may have changed."""

    evidence: Callable[[str], Evidence]
    """What the newest sample says about a plugin's pressure: an old decision alone evicts nobody."""
    paused: Callable[[], str] = lambda: ""
    """Why nobody may be evicted now; "" when evictions go on."""
    observes: Callable[[], bool] = lambda: False
    """Whether the node only observes by now: what was decided before is called off, and rehearsals go on."""


class Executor:
    """Works on any number of intents at once, each in its own task."""

    def __init__(
        self,
        journal: IntentJournal,
        announcer: Announcer,
        actuator: EvictionActuator,
        clock: Clock,
        checks: LastChecks,
    ) -> None:
        self._journal, self._announcer, self._actuator, self._clock = journal, announcer, actuator, clock
        self._checks = checks

    async def carry_out(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Bring an intent from its step in the ledger to its end."""
        resumed = record.step != "intended"
        with telemetry.span("evictor.carry_out", {"intent": record.id, "plugin": record.intent.plugin}):
            if record.step == "intended":
                record = await self._announce(record, limits)
            # Still intended after a crash as well: until the dry run has passed nothing is done, so
            # all of it may be repeated.
            if record.step == "intended":
                record = await self._rehearse(record, limits)
            elif record.step == "requested":  # a call may have been made before a restart
                record = await self._settle(record, limits)
            # `requested` is on the disk before the call is made, so that a call without an answer is always looked up.
            while record.step == "requested":
                record = await self._request(record, limits)
            if record.step == "accepted":
                if resumed and await self._lookup(record, limits) != "gone":
                    await self._call(record, limits, dry_run=False)  # on a host the ending dies with its process
                record = await self._watch(record, limits)
            return record

    async def _announce(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        # Right after a long absence: the pressure that asked for it is not the one of now.
        if record.expired(self._clock.monotonic()):
            self._announcer.discard(record)
            return self._too_late(record)
        announced = await self._announcer.announce(record, limits.announce_s)
        if announced == "taken":
            return self._journal.move(record, "cancelled", detail="central has opened an intent for this pod")
        if announced == "away" and not record.hard:
            return self._journal.move(record, "cancelled", detail="the bus is away and the pressure is soft")
        return record

    async def _rehearse(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Look at pod and pressure again, and make the call as a dry run; until this ends nothing is done."""
        tries = 0
        while not record.expired(self._clock.monotonic()):
            # The evidence after the lookup, which may have taken seconds: what counts is the newest sample at the call.
            found, evidence = await self._lookup(record, limits), self._checks.evidence(record.intent.plugin)
            # A pod that is on its way out anyhow relieves as much, and a call would only use up a disruption budget.
            if found in ("gone", "terminating"):
                return self._journal.move(record, "cancelled", detail=f"the pod was {found} before its eviction began")
            if why := self._called_off(record):
                return self._journal.move(record, "cancelled", detail=why)
            if evidence == "against":
                return self._journal.move(record, "cancelled", detail=RELIEVED)
            # Anything less is not known: wait and look again until the deadline, but never act on a guess.
            if found == "running" and evidence == "for":
                result = await self._call(record, limits, dry_run=True)
                ended = self._after_rehearsal(record, result)
                if ended is not None:
                    return ended
            await self._pause(record, tries)
            tries += 1
        return self._too_late(record)

    def _after_rehearsal(self, record: IntentRecord, result: ActionResult) -> IntentRecord | None:
        if result.outcome == "accepted":
            calls = (Call("dry-run", result.outcome, result.detail),)
            # The dry run is the last step of a rehearsal: it has gone through every check that a real eviction would.
            if record.intent.mode != "enforce":
                return self._journal.move(record, "cancelled", detail="dry run: the pod would be evicted", calls=calls)
            # Looked at once more: the dry run itself may have taken up to the call's time limit.
            if record.expired(self._clock.monotonic()):
                return self._too_late(record)
            return self._journal.move(record, "requested", calls=calls)
        return self._ended(record, result, "dry-run")

    async def _request(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Make the call that `requested` has announced."""
        # Once more right before the call: `sublet pause` must stop what has been decided already.
        if why := self._called_off(record):
            return self._journal.move(record, "cancelled", detail=why)
        result = await self._call(record, limits, dry_run=False)
        # Gone at a later call: an earlier one, whose answer was lost, counts as what evicted it.
        if result.outcome == "accepted" or (result.outcome == "gone" and record.attempts > 1):
            return self._journal.move(record, "accepted", calls=(Call("evict", result.outcome, result.detail),))
        ended = self._ended(record, result, "evict")
        return ended if ended is not None else await self._settle(record, limits)

    def _called_off(self, record: IntentRecord) -> str:
        """Why the node calls an eviction off; "" where it goes on."""
        if why := self._checks.paused():
            return f"{PAUSED}: {why}"
        return OBSERVED if record.intent.mode == "enforce" and self._checks.observes() else ""

    def _ended(self, record: IntentRecord, result: ActionResult, what: CallKind) -> IntentRecord | None:
        """The end that a result without eviction means; None when it is not known what happened."""
        calls = (Call(what, result.outcome, result.detail),)
        step: Step
        match result.outcome:
            case "gone":
                step, detail = "cancelled", "the pod was gone before its eviction began"
            # Not waited out here: the arbiter chooses anew, and may find a pod whose budget allows it.
            case "wait":
                step, detail = "cancelled", f"the pod's disruption budget allows no eviction now: {result.detail}"
            case "refused":
                step, detail = "refused", result.detail or "refused"
            case "failed":
                step, detail = "failed", call_failed_text(record.pod.name, result.detail)
            case _:
                return None
        return self._journal.move(record, step, detail=detail, calls=calls)

    async def _settle(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Find out what an earlier call has done; only a pod that still runs is evicted again."""
        tries = 0
        while True:
            # First a pause: an API server that has just timed out needs one, and a pod some time to show that it ends.
            await self._pause(record, tries)
            tries += 1
            found = await self._lookup(record, limits)
            # Whoever made it go, an eviction of this UID needs no second call.
            if found in ("gone", "terminating"):
                return self._journal.move(record, "accepted", calls=(Call("lookup", found),))
            # `failed` and not `cancelled`: a call was made, and nobody knows whether it still takes effect.
            if record.expired(self._clock.monotonic()):
                return self._journal.move(
                    record,
                    "failed",
                    detail=f"the outcome of the call is not known and the pod is {found} after the deadline",
                    calls=(Call("lookup", found),),
                )
            evidence = self._checks.evidence(record.intent.plugin)
            if found == "running" and evidence == "against":
                return self._journal.move(record, "cancelled", detail=RELIEVED, calls=(Call("lookup", found),))
            if found == "running" and evidence == "for":
                return self._journal.move(record, "requested", calls=(Call("lookup", found),))

    async def _watch(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Wait until this UID is gone: an accepted call promises an eviction, only a missing pod proves it."""
        # Counted from the acceptance in the ledger: a restart does not give the pod its time anew.
        since_s = self._clock.monotonic() if record.accepted_at_s is None else record.accepted_at_s
        time_s, looks = watch_time_s(record.intent.grace_s), 0
        # "unknown" is not gone: an API server that does not answer proves nothing.
        while await self._lookup(record, limits) != "gone":
            if passed_s(since_s, self._clock.monotonic()) >= time_s:
                return self._journal.move(record, "failed", detail=timeout_text(time_s))
            await self._clock.sleep(delay_s(looks, base_s=WATCH_BASE_S, cap_s=WATCH_CAP_S, roll=1.0))
            looks += 1
        return self._journal.move(record, "succeeded")

    def _too_late(self, record: IntentRecord) -> IntentRecord:
        detail = f"not begun within {record.intent.deadline_s:g} s"
        return self._journal.move(record, "cancelled", detail=detail)

    async def _lookup(self, record: IntentRecord, limits: CallLimits) -> str:
        try:
            async with asyncio.timeout(limits.call_timeout_s):
                return await self._actuator.lookup(record.pod)
        except (TimeoutError, Unavailable):
            return "unknown"

    async def _call(self, record: IntentRecord, limits: CallLimits, *, dry_run: bool) -> ActionResult:
        try:
            async with asyncio.timeout(limits.call_timeout_s):
                intent = record.intent
                why = met_text(intent.plugin, intent.scope)
                return await self._actuator.evict(record.pod, grace_s=intent.grace_s, dry_run=dry_run, why=why)
        except (TimeoutError, Unavailable) as error:
            return ActionResult("unknown", str(error) or "no answer in time")

    async def _pause(self, record: IntentRecord, tries: int) -> None:
        """Wait before the next try, spread by the intent's id so that many nodes do not call one API server at once."""
        # By the id and not by chance: the same intent waits the same, so that a run can be repeated.
        roll = int(record.id[:8], 16) / 0xFFFFFFFF
        await self._clock.sleep(delay_s(tries, base_s=RETRY_BASE_S, cap_s=RETRY_CAP_S, roll=roll))
