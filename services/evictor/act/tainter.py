"""Reconciles the node's taints with its conditions: on every change, and again after a while.

The node's object (CNR) shows the taints after they are written: what keeps pods away never waits for what only reports
it. Trouble with the taints never stops an eviction; it is a condition of the node.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import structlog

from services.evictor.core.taints.held_conditions import DetectorFinding, HeldConditions
from shared.contracts.allocation import Condition
from shared.contracts.kube.taint import Taint
from shared.core.backoff import delay_s
from shared.errors import SubletError
from shared.ports import Clock, NodeTaints

log = structlog.get_logger()

LOOK_AGAIN_S = 30.0
"""Longest time until a taint under our prefix that another writer has added or removed is corrected."""
RETRY_S, LONGEST_RETRY_S = 1.0, 30.0


class Tainter:
    """Writes the node's taints by the plugins' findings; taints of an evictor before this one are taken over."""

    def __init__(self, port: NodeTaints, clock: Clock) -> None:
        self._port, self._clock = port, clock
        self._conditions = HeldConditions()
        self._standing: tuple[Taint, ...] = ()
        self._taken_over = False
        self._failure, self._failures = "", 0
        self._news = asyncio.Event()

    def observe(
        self, findings: Mapping[str, DetectorFinding], t_s: float, *, transition_s: float, max_input_age_s: float
    ) -> None:
        """Follow one more sample; `run` writes what it changes."""
        before = self._conditions.held.keys()
        self._conditions = self._conditions.observe(
            findings, t_s, transition_s=transition_s, max_input_age_s=max_input_age_s
        )
        # Only the conditions decide about taints: figures that change within a condition need no write.
        if self._conditions.held.keys() != before:
            self._news.set()

    async def run(self) -> None:
        """Write for as long as the evictor lives; a change ends the pause after a failure."""
        while True:
            # Before the work: a change that comes while it is written starts another turn at once.
            self._news.clear()
            try:
                await self._reconcile()
                self._failure, self._failures, wait_s = "", 0, LOOK_AGAIN_S
            except Exception as error:  # noqa: BLE001 - whatever the substrate does, evictions go on
                wait_s = self._fail(error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._news.wait()

    def conditions(self) -> list[dict[str, str]]:
        """Return the conditions for operators."""
        return [Condition(type="TaintsNotWritten", message=self._failure).model_dump()] if self._failure else []

    def state(self) -> list[dict[str, Any]]:
        """The taints that stand, as written or read last."""
        return [taint.document() for taint in self._standing]

    async def _reconcile(self) -> None:
        # Read each time: people and other controllers change taints, and what was remembered may be wrong.
        self._standing = await self._port.read()
        # Only after the first read that worked: to write before it would remove the taints of the life before.
        if not self._taken_over:
            self._conditions = self._conditions.adopting(self._standing, self._clock.monotonic())
            self._taken_over = True
        # Whole seconds: Kubernetes stores no fractions, and would show another time than the one that was written.
        wanted = self._conditions.taints(self._standing, self._clock.wall().replace(microsecond=0))
        if not _as_wanted(self._standing, wanted):
            await self._port.write(wanted)
            log.info("taints.changed", taints=[f"{taint.key}:{taint.effect}" for taint in wanted])
        self._standing = wanted
        await self._port.show(wanted)

    def _fail(self, error: Exception) -> float:
        """Seconds until the next try."""
        failure = str(error) if isinstance(error, SubletError) else f"{type(error).__name__}: {error}"
        if failure != self._failure:
            log.error("taints.not_written", why=failure)
        wait_s = delay_s(self._failures, base_s=RETRY_S, cap_s=LONGEST_RETRY_S, roll=1.0)
        self._failure, self._failures = failure, self._failures + 1
        return wait_s


def _as_wanted(standing: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> bool:
    """Whether the taints are as wanted; a taint of the Node holds no causes, and is compared without."""
    return len(standing) == len(wanted) and all(
        one == (other if one.causes else other.model_copy(update={"causes": ()}))
        for one, other in zip(standing, wanted, strict=True)
    )
