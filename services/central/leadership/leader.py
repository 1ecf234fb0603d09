"""Elects the central that writes: the holder of a Lease, by its own clock (docs/facts/kubernetes.md#leases).

Clocks of different machines are never compared: a lease has expired if it was not seen to change for its duration. A
holder stops at its renewal deadline, well before others may take over. A lease is no fence: the epoch, which grows with
every change of the holder, lets receivers refuse decisions of a former one.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from services.central.settings import LeaseSettings
from shared.core.api_kind import LEASES
from shared.errors import Conflict, SubletError, Unavailable
from shared.ports import Clock, Objects

log = structlog.get_logger()


class NotLeading(Unavailable):
    """A write that only the leader may make."""


@dataclass(frozen=True, slots=True)
class _Observed:
    """A lease as it was first seen in this form."""

    version: str
    at_s: float


class Leader:
    """One candidate; `identity` names this run of the process."""

    def __init__(self, objects: Objects, clock: Clock, identity: str, settings: LeaseSettings) -> None:
        self._objects, self._clock, self._identity, self._settings = objects, clock, identity, settings
        self._held_until_s = float("-inf")
        self._observed: _Observed | None = None
        self.epoch = 0
        """Number of the leadership, from 1 on; of the newest lease seen. 0: none was seen, and no leader has it."""
        self.holder = ""
        self.failure = ""
        self.answered_at_s: float | None = None
        """When the API server was last asked and answered; None: it never did."""
        self.annotations: Mapping[str, str] = {}
        """What is stored with the lease, as last seen."""

    @property
    def leading(self) -> bool:
        """Whether writes may be made at this moment."""
        # Compared at each question and not set by a task: a process that was stopped for a minute
        # wakes up as a follower.
        return self._clock.monotonic() < self._held_until_s

    def require(self) -> None:
        """Check the lease right before a write.

        Raises:
            NotLeading: another one leads, or no leader is known.
        """
        if not self.leading:
            raise NotLeading(f"{self._identity} does not lead: {self.holder or 'nobody'} does", reason="not_leading")

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Try to lead until cancelled; `work` runs while this one leads, and is cancelled when it does not any more."""
        task: asyncio.Task[None] | None = None
        try:
            while True:
                await self._turn()
                if self.leading and task is None:
                    log.info("lease.taken", epoch=self.epoch, identity=self._identity)
                    task = asyncio.create_task(work(), name="central-leading")
                # Awaited, so that work in progress has ended before this central is reported as not leading.
                elif not self.leading and task is not None:
                    log.warning("lease.lost", holder=self.holder, why=self.failure)
                    await _ended(task)
                    task = None
                # Work never ends by itself: an end is a fault, and the process ends with it so that another one leads.
                elif task is not None and task.done():
                    task.result()
                    raise SubletError("the leader's work ended by itself", reason="dead_task")
                await self._clock.sleep(self._pause_s())
        finally:
            if task is not None:
                await _ended(task)

    def _pause_s(self) -> float:
        left_s = self._held_until_s - self._clock.monotonic()
        # Not past the end of the lease: that is when the work has to be cancelled.
        return min(self._settings.retry_s, left_s) if left_s > 0 else self._settings.retry_s

    async def _turn(self) -> None:
        """Renew, take over, or wait."""
        try:
            # Half of the deadline, so that a call that hangs leaves time for one more
            # (docs/facts/kubernetes.md#no-limit-of-time).
            async with asyncio.timeout(self._settings.renew_s / 2):
                await self._try()
            self.failure = ""
        except Conflict:
            self.failure = ""  # another one was quicker, or this one's own note was
        except (SubletError, TimeoutError) as error:
            self.failure = str(error) or "the API server does not answer in time"

    async def _try(self) -> None:
        # Before the question: the answer may be as old as that.
        asked_at_s = self._clock.monotonic()
        name, namespace = self._settings.name, self._settings.namespace
        lease = await self._objects.get(LEASES, name, namespace)
        self.answered_at_s = asked_at_s
        if lease is None:
            meta = {"name": name, "namespace": namespace}
            made = await self._objects.create(LEASES, {"metadata": meta, "spec": self._spec(0, fresh=True)})
            self._note(made, asked_at_s, mine=True)
            return
        spec = lease.get("spec") or {}
        self._note(lease, asked_at_s, mine=False)
        mine = spec.get("holderIdentity") == self._identity
        # Another one has it, whatever this one believed about its own deadline.
        if not mine and not self._free(spec, asked_at_s):
            self._held_until_s = float("-inf")
            return
        # Grows with each change of hands alone: a holder that renews keeps its epoch, and with it the
        # right to its decisions.
        transitions = int(spec.get("leaseTransitions") or 0) + (not mine)
        # With the version that was read: of two that find it free at once the API server admits one.
        meta = {"name": name, "namespace": namespace, "resourceVersion": lease["metadata"]["resourceVersion"]}
        written = await self._objects.patch(LEASES, {"metadata": meta, "spec": self._spec(transitions, fresh=not mine)})
        if written is not None:
            self._note(written, asked_at_s, mine=True)

    def _free(self, spec: Mapping[str, Any], now_s: float) -> bool:
        """Return whether the lease has no holder, or was not renewed for its duration by this machine's clock."""
        if not spec.get("holderIdentity"):
            return True
        lasts_s = float(spec.get("leaseDurationSeconds") or self._settings.lease_s)
        # `renewTime` is another machine's clock, and is not read (docs/facts/kubernetes.md#leases).
        return self._observed is not None and now_s - self._observed.at_s > lasts_s

    def _note(self, lease: Mapping[str, Any], asked_at_s: float, *, mine: bool) -> None:
        version, spec = lease["metadata"]["resourceVersion"], lease.get("spec") or {}
        if self._observed is None or self._observed.version != version:
            # After the answer, for what others hold: to see it late makes them keep it longer, which is the safe side.
            self._observed = _Observed(version, self._clock.monotonic())
        # From 1 on: a new lease has changed hands never, and epoch 0 would say that a node wrote its holder's intents.
        self.holder, self.epoch = spec.get("holderIdentity") or "", int(spec.get("leaseTransitions") or 0) + 1
        self.annotations = dict(lease["metadata"].get("annotations") or {})
        if (
            mine
        ):  # from the moment of the question: the server may have stored it, and others seen it, at any time since
            self._held_until_s = asked_at_s + self._settings.renew_s

    async def annotate(self, values: Mapping[str, str]) -> None:
        """Store values with the lease, for the next leader; this also proves that this one still holds it.

        Raises:
            NotLeading: another one holds it.
            Conflict: it was renewed meanwhile; try again.
            Unavailable, Refused: it could not be written.
        """
        self.require()
        name, namespace = self._settings.name, self._settings.namespace
        # Read and written in two steps with its version: a renewal in between makes it a Conflict, and nothing is lost.
        lease = await self._objects.get(LEASES, name, namespace)
        if lease is None or (lease.get("spec") or {}).get("holderIdentity") != self._identity:
            self._held_until_s = float("-inf")
            raise NotLeading(f"{self._identity} does not hold the lease any more", reason="not_leading")
        meta = {"name": name, "namespace": namespace, "resourceVersion": lease["metadata"]["resourceVersion"]}
        written = await self._objects.patch(LEASES, {"metadata": {**meta, "annotations": dict(values)}})
        if written is not None:
            self._observed = _Observed(written["metadata"]["resourceVersion"], self._clock.monotonic())
        # Once more: the write may have taken longer than the lease.
        self.require()

    def _spec(self, transitions: int, *, fresh: bool) -> dict[str, Any]:
        now = _micro(self._clock.wall())
        taken = {"acquireTime": now} if fresh else {}
        return {"holderIdentity": self._identity, "leaseDurationSeconds": round(self._settings.lease_s),
                "leaseTransitions": transitions, "renewTime": now, **taken}  # fmt: skip

    async def release(self) -> None:
        """Release the lease, so that another central takes over at once; if that fails, it expires by itself."""
        # First: from this line on this central writes nothing, whatever the result of the call.
        held, self._held_until_s = self.leading, float("-inf")
        if not held or self._observed is None:
            return
        meta = {"name": self._settings.name, "namespace": self._settings.namespace,
                "resourceVersion": self._observed.version}  # fmt: skip
        with contextlib.suppress(SubletError, TimeoutError):
            async with asyncio.timeout(self._settings.retry_s):
                await self._objects.patch(LEASES, {"metadata": meta, "spec": {"holderIdentity": ""}})

    def state(self) -> dict[str, Any]:
        """Return the leader, and the number of changes so far."""
        return {"leading": self.leading, "holder": self.holder, "epoch": self.epoch, "failure": self.failure}


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
