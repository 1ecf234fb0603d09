"""Parts of a simulated node that are not its agent's own: clock, disk, measuring, lease and watchdog."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeded_loop import Process

from services.qrm.adapters.lease.client import LeaseClient
from services.qrm.adapters.lease.watchdog import LeaseWatchdog
from shared.adapters.clock import LoopClock
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.app import Context
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import (
    NodeSample,
)
from shared.errors import Unavailable

if TYPE_CHECKING:
    from simulated_node import Machine

SAMPLE_S = 3.0
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
"""When each world begins, by a clock that is right."""


class NodeClock(LoopClock):
    """Monotonic time since the node's boot; a wall clock that somebody may set."""

    def __init__(self, process: Process, booted_at_s: float) -> None:
        super().__init__(BEGAN)
        self._process, self._booted_at_s = process, booted_at_s

    def monotonic(self) -> float:
        """Seconds since boot."""
        return super().monotonic() - self._booted_at_s

    def wall(self) -> datetime:
        """As the node's clock is set."""
        return BEGAN + timedelta(seconds=super().monotonic() + self._process.skew_s)


class SimLedger(SqliteLedger):
    """The evictor's ledger on a disk that can be full, with a moment to die before and after each transaction."""

    def __init__(self, folder: Path, machine: "Machine", process: Process) -> None:
        super().__init__(folder)
        self._machine, self._process = machine, process
        process.on_kill.append(self.close)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        self._process.step()
        if self._machine.disk_full:
            raise Unavailable(f"eviction ledger {self._path}: database or disk is full", reason="ledger")
        with super().transaction() as db:
            yield db
        self._process.step()


class Sampler:
    """The measuring service, played: a sample of the node as it is, again and again."""

    def __init__(self, context: Context, machine: "Machine") -> None:
        self._context, self._machine = context, machine
        self._first = True

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            if not self._machine.metrics_silent:
                await self._context.wire.publish(
                    self._context.wire.stamp(NodeSample, **self._machine.sample(first=self._first))
                )
                self._first = False
            await self._context.clock.sleep(SAMPLE_S)

    def health(self) -> ServiceHealth:
        """Well while it measures."""
        silent = self._machine.metrics_silent
        return ServiceHealth(service="metrics", ok=not silent, why="no file can be read" if silent else "")

    def state(self) -> Mapping[str, Any]:
        """Nothing is asked of it."""
        return {}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """There is nothing to set."""

    async def close(self) -> None:
        """Nothing is open."""


class SimLease(LeaseClient):
    """The lease as in a pod: the watchdog is a container beside the agent's."""

    def __init__(self, machine: "Machine", process: Process) -> None:
        super().__init__(machine.state, machine.root, machine.layout.top, resident=True)
        self._machine, self._process = machine, process

    def renew(self, left_s: float, floor: Any) -> None:
        """As on a disk that may be full."""
        self._process.step()
        super().renew(left_s, floor)
        self._machine.world.checks.lease_renewed(self._machine, left_s)
        self._process.step()


class QuietWatchdog(LeaseWatchdog):
    """What it would print goes into the story."""

    say: Any = staticmethod(lambda _line: None)

    def print_once(self, line: str) -> None:
        """Tell it once."""
        if line != self._printed:
            self.say(line)
        self._printed = line
