"""Makes the calls of an eviction in their order: objection, dry run, objection, call.

Each answer is a ruling. The caller records it, a node in its ledger and central in its memory, before it continues: a
restart knows only what was recorded.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from shared import telemetry
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Call
from shared.core.evictions.rulings import Ruling, Writer, after_call
from shared.errors import Unavailable
from shared.ports import ActionResult, Check, EvictionActuator, Standing


@dataclass(frozen=True, slots=True)
class EvictionOrder:
    """Whom to evict, and how."""

    pod: Pod
    grace_s: float
    why: str = ""
    """A sentence for the pod's owner."""


class EvictionChecks(Protocol):
    """What may object to one eviction, because the state changes between a decision and its call."""

    async def before_dry_run(self) -> Ruling | None:
        """Why it is not even rehearsed now; None: it is."""
        ...

    def after_dry_run(self, call: Call) -> Ruling | None:
        """Why it is not called for although it could be; None: it is."""
        ...

    def before_call(self) -> Ruling | None:
        """Return why the call must not be made after all; None: it may.

        Raises:
            Unavailable: the caller may not make calls any more.
        """
        ...


class _CalledOff(Exception):
    """Something objects after the last lookup; no call was made."""

    def __init__(self, ruling: Ruling) -> None:
        super().__init__(ruling.detail)
        self.ruling = ruling


class EvictionProcedure:
    """The calls of one writer's evictions; it remembers nothing between them."""

    def __init__(self, actuator: EvictionActuator, writer: Writer) -> None:
        self._actuator, self._writer = actuator, writer

    async def lookup(self, pod: Pod, *, within_s: float | None = None) -> Standing:
        """Return the state of this UID; unknown without an answer in time."""
        with telemetry.span("actuator.lookup", {"k8s.pod.uid": pod.uid}):
            try:
                async with asyncio.timeout(within_s):
                    standing = await self._actuator.lookup(pod)
            except (TimeoutError, Unavailable):
                standing = "unknown"
            telemetry.note({"standing": standing})
            return standing

    async def rehearse(self, order: EvictionOrder, checks: EvictionChecks, *, within_s: float | None = None) -> Ruling:
        """Make the dry run, unless something speaks against it; `requested` when the eviction may be called for."""
        objection = await checks.before_dry_run()
        if objection is not None:
            return objection
        call = Call("dry-run", *await self._call(order, within_s, dry_run=True))
        # The dry run has gone through every check that a real eviction would.
        if call.outcome == "accepted":
            return checks.after_dry_run(call) or Ruling("requested", calls=(call,))
        return after_call(call, order.pod.name, self._writer)

    async def request(
        self,
        order: EvictionOrder,
        checks: EvictionChecks,
        *,
        called_before: bool = False,
        within_s: float | None = None,
    ) -> Ruling:
        """Make the call that `requested` has announced, unless something speaks against it after all."""
        objection = checks.before_call()
        if objection is not None:
            return objection

        def last_check() -> None:
            try:
                late = checks.before_call()
            except Unavailable as error:
                raise _CalledOff(Ruling(None, str(error))) from error
            if late is not None:
                raise _CalledOff(late)

        try:
            # The actuator looks the pod up before it calls, which may take seconds: so it asks once more behind that.
            call = Call("evict", *await self._call(order, within_s, dry_run=False, last_check=last_check))
        except _CalledOff as called_off:
            return called_off.ruling
        return after_call(call, order.pod.name, self._writer, called_before=called_before)

    async def repeat(self, order: EvictionOrder, *, within_s: float | None = None) -> None:
        """Make an accepted call once more, for an actuator whose work ended with its process."""
        await self._call(order, within_s, dry_run=False)

    async def _call(
        self,
        order: EvictionOrder,
        within_s: float | None,
        *,
        dry_run: bool,
        last_check: Check = lambda: None,
    ) -> tuple[str, str]:
        with telemetry.span("actuator.evict", {"k8s.pod.uid": order.pod.uid, "dry_run": dry_run}):
            try:
                async with asyncio.timeout(within_s):
                    result = await self._actuator.evict(
                        order.pod, grace_s=order.grace_s, dry_run=dry_run, why=order.why, last_check=last_check
                    )
            except (TimeoutError, Unavailable) as error:
                result = ActionResult("unknown", str(error) or "no answer in time")
            telemetry.note({"outcome": result.outcome, "detail": result.detail})
            return result.outcome, result.detail
