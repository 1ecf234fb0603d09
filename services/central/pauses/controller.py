"""The controller of pauses: brings the bucket of configuration to what the operators' ConfigMap says."""

from collections.abc import Sequence
from typing import Any

import structlog

from services.central.leadership.passes import Passes, PassSchedule
from services.central.pauses.follower import PauseFollower
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.cluster.pauses import PAUSES_KEY, Pauses
from shared.ports import Bus, Clock, ObjectMirror

log = structlog.get_logger()

AGAIN_S = 5.0
"""Between two passes without a change: so late a pause that is over leaves the bucket; nodes end it by themselves."""


class PauseController:
    """Writes one entry for all nodes; each finds out by its pool whether it is meant."""

    def __init__(self, follower: PauseFollower, bus: Bus, clock: Clock) -> None:
        self._follower, self._bus = follower, bus
        self._passes = Passes("pauses", clock, follower.changed, self.reconcile, PassSchedule(lambda: AGAIN_S))

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """The operators' ConfigMap."""
        return [self._follower.mirror]

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    async def run(self) -> None:
        """Work until cancelled."""
        await self._passes.run()

    async def reconcile(self) -> None:
        """Bring the entry to the pauses that are in force.

        Raises:
            SubletError: the ConfigMap was never seen, or the bucket cannot be read or written.
        """
        wanted = Pauses(pauses=self._follower.in_force())
        value = wanted.encode()
        # Read in each pass: another central may have led, or the bucket be a new one.
        entry = await self._bus.get(CONFIG_BUCKET, PAUSES_KEY)
        there = None if entry is None else entry.value
        if there != value and (there is not None or wanted.pauses):
            revision = await self._bus.put(CONFIG_BUCKET, PAUSES_KEY, value)
            log.warning("pauses.published", revision=revision, pauses=[pause.words for pause in wanted.pauses])

    def state(self) -> dict[str, Any]:
        """The pauses, keys of the ConfigMap that are none, and why it is not followed."""
        failure = self._follower.failure
        seen = None if failure else self._follower.seen
        return {
            "failure": failure or self.failure,
            "in_force": [] if seen is None else [pause.model_dump(mode="json") for pause in self._follower.in_force()],
            "not_understood": [] if seen is None else list(seen.strange[:20]),
        }
