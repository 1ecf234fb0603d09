"""The runner that every service trusts: start, watch over the tasks, answer for health, stop in order.

Crash-only: a task that ends or fails, and a bus client that closes for good, end the process with a non-zero code, and
whoever started it starts it again. SIGTERM stops timers, drains and ends with 0.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from shared import telemetry
from shared.contracts.readiness import Health, ServiceHealth
from shared.contracts.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY, ask_subject
from shared.errors import BadConfig, SubletError, Unavailable
from shared.ports import Bus, Clock, Entry
from shared.settings import CommonSettings
from shared.wire import Wire

log = structlog.get_logger()

LAG_PERIOD_S = 1.0


class App(Protocol):
    """What a service's `app.py` offers to the runner."""

    async def run(self) -> None:
        """Work until cancelled; returning is a crash."""
        ...

    def health(self) -> ServiceHealth:
        """How this service sees itself now; must not wait."""
        ...

    def state(self) -> Mapping[str, Any]:
        """The answer to `ask`: the last message and what explains it, as JSON values."""
        ...

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new dynamic settings for this service, whole or not at all.

        Raises:
            BadConfig: they cannot be used; the last good ones stay.
        """
        ...

    async def close(self) -> None:
        """Release what `run` left open; called once after `run` has ended."""
        ...


@dataclass(frozen=True)
class Context:
    """What a service's `main.build` gets to wire its app."""

    wire: Wire
    clock: Clock
    common: CommonSettings
    raw: Mapping[str, Any] = field(default_factory=dict)
    """All settings, unchecked; take your section with `shared.settings.section`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A service by name and how to build it."""

    name: str
    build: Callable[[Context], App]


class Closed(SubletError):
    """The bus client closed for good."""


@dataclass
class Runner:
    """One process: one bus connection, one event loop, one or more services."""

    plans: Sequence[Plan]
    bus: Bus
    clock: Clock
    common: CommonSettings
    raw: Mapping[str, Any] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)
    wires: dict[str, Wire] = field(default_factory=dict)

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set (exit code 0) or something dies (exit code 1)."""
        for plan in self.plans:
            wire = Wire(self.bus, self.clock, node=self.common.node, service=plan.name)
            self.wires[plan.name] = wire
            self.apps[plan.name] = plan.build(Context(wire, self.clock, self.common, self.raw))
        failed = False
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._never_returns(name, app), name=name) for name, app in self.apps.items()
                ]
                tasks += [
                    group.create_task(self._beat(), name="heartbeat"),
                    group.create_task(self._watch_loop(), name="loop-lag"),
                    group.create_task(self._serve(), name="ask"),
                    group.create_task(self._end_when_closed(), name="bus-closed"),
                ]
                await stop.wait()
                log.info("process.stopping", services=list(self.apps))
                for task in tasks:
                    task.cancel()
        except* Exception as failures:
            for failure in failures.exceptions:
                log.error("process.died", why=str(failure) or type(failure).__name__, exc_info=failure)
            failed = True
        finally:
            await self._close()
        return int(failed)

    def healths(self) -> list[ServiceHealth]:
        """Health of every service here."""
        return [app.health() for app in self.apps.values()]

    async def _close(self) -> None:
        for name, app in self.apps.items():
            try:
                await app.close()
            except Exception as error:  # noqa: BLE001 - the others must be closed too
                log.error("service.close_failed", of=name, why=str(error))
        with contextlib.suppress(SubletError):
            await self.bus.drain()

    async def _never_returns(self, name: str, app: App) -> None:
        await app.run()
        raise SubletError(f"service {name} ended by itself", reason="dead_task")

    async def _end_when_closed(self) -> None:
        raise Closed(f"bus client closed for good: {await self.bus.wait_closed()}", reason="closed")

    async def _beat(self) -> None:
        while True:
            for name, app in self.apps.items():
                health = app.health()
                if health.input_age_s is not None:
                    telemetry.INPUT_AGE.labels(name, "newest").set(health.input_age_s)
                wire = self.wires[name]
                await wire.publish(wire.stamp(Health, health=health), suffix=f".{name}")
            telemetry.CONNECTED.set(self.bus.connected)
            await self.clock.sleep(self.common.heartbeat_s)

    async def _watch_loop(self) -> None:
        while True:
            before = self.clock.monotonic()
            await self.clock.sleep(LAG_PERIOD_S)
            telemetry.LOOP_LAG.set(max(0.0, self.clock.monotonic() - before - LAG_PERIOD_S))

    async def _serve(self) -> None:
        """Answer `ask`, and hand dynamic configuration to the services."""
        for name, app in self.apps.items():
            await self.bus.serve(ask_subject(self.common.node, name), _answerer(app))
        with contextlib.suppress(Unavailable):
            await self.bus.watch(CONFIG_BUCKET, self._configure)
        await asyncio.Event().wait()

    def _configure(self, entry: Entry) -> None:
        if entry.key != GLOBAL_CONFIG_KEY or entry.value is None:
            return
        for name, app in self.apps.items():
            try:
                document = json.loads(entry.value)
                section = document.get(name, {}) if isinstance(document, dict) else None
                if not isinstance(section, dict):
                    raise BadConfig(f"configuration revision {entry.revision}: section {name!r} is not a mapping")
                app.reconfigure(section)
            except (BadConfig, json.JSONDecodeError) as error:
                telemetry.CONFIG_REFUSED.labels(name).inc()
                log.error("config.refused", of=name, revision=entry.revision, why=str(error))
            else:
                self.wires[name].config_rev = entry.revision


def _answerer(app: App) -> Callable[[bytes], bytes]:
    def answer(_question: bytes) -> bytes:
        return json.dumps(app.state(), default=str).encode()

    return answer
