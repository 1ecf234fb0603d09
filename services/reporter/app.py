"""The reporter at work: newest allocation, sample and health in, the node's object and its readiness out."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from services.reporter import fields as field_package
from services.reporter.core.health import facts, fold_health
from services.reporter.core.node_object import Fields, cnr, must_write, parts
from services.reporter.rising import Offers
from services.reporter.settings import ReporterSettings
from services.reporter.view import Field, Part, View
from shared.contracts.allocation import Allocation
from shared.contracts.readiness import Health, Readiness, ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import BadConfig, Unavailable
from shared.ports import Clock, NodeWriter
from shared.registry import Registry
from shared.settings import check, merge, section
from shared.wire import Newest, Wire

log = structlog.get_logger()

NAME = "reporter"


async def _nothing() -> None:
    """Nobody to wait for."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a substrate needs at work beside the reporter, which holds the credentials."""

    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    failure: Callable[[], str] = lambda: ""
    """Why it does not work; "" while it does."""
    close: Callable[[], Awaitable[None]] = _nothing


class ReporterApp:
    """Writes what is applied, never what is wished; says how the node's services are."""

    def __init__(
        self, wire: Wire, clock: Clock, writer: NodeWriter, raw: Mapping[str, Any], beside: Beside | None = None
    ) -> None:
        self._wire, self._clock, self._writer = wire, clock, writer
        self._beside = beside or Beside()
        self._static = dict(raw.get(NAME) or {})
        self._settings = section(ReporterSettings, raw, NAME)
        self._fields = _fields(self._settings)
        self._offers = Offers(self._settings)
        self._allocation: Newest[Allocation] | None = None
        self._sample: Newest[NodeSample] | None = None
        self._healths: dict[str, Newest[Health]] = {}
        self._started_at = clock.monotonic()
        self._written: dict[str, Part] | None = None
        self._written_at = 0.0
        self._written_wall: datetime | None = None
        self._write_failure = ""
        self._services: tuple[ServiceHealth, ...] = ()
        self._readiness: Readiness | None = None
        self._readiness_at = 0.0

    async def run(self) -> None:
        """Work until cancelled."""
        self._allocation = await self._wire.newest(Allocation)
        self._sample = await self._wire.newest(NodeSample)
        for service in self._settings.services:
            await self._listen(service)
        async with asyncio.TaskGroup() as tasks:
            if self._beside.run is not None:
                tasks.create_task(self._beside.run(), name="reporter-beside")
            await self._report_forever(self._allocation)

    async def _report_forever(self, allocations: Newest[Allocation]) -> None:
        """At once on a new allocation, else once every tick."""
        while True:
            await allocations.next(self._settings.tick_s)
            for service in self._settings.services:
                await self._listen(service)
            await self._heartbeat()
            await self._report()

    async def _listen(self, service: str) -> None:
        if service not in self._healths:
            self._healths[service] = await self._wire.newest(Health, suffix=f".{service}")

    async def _heartbeat(self) -> None:
        """Fold the services' health; publish on change and when the heartbeat is due."""
        heard = {
            name: (slot.value.health, slot.age_s)
            for name, slot in self._healths.items()
            if slot.value is not None and slot.age_s is not None
        }
        self._services = fold_health(self._settings.services, heard, max_age_s=self._settings.max_health_age_s)
        now = self._clock.monotonic()
        same = self._readiness is not None and facts(self._readiness.services) == facts(self._services)
        if same and now - self._readiness_at < self._settings.ready_s:
            return
        ready = all(health.ok for health in self._services)
        readiness = self._wire.stamp(Readiness, ready=ready, services=self._services)
        if await self._wire.publish(readiness):
            if not same:
                failing = [f"{h.service}: {h.why}" for h in self._services if not h.ok]
                log.info("readiness.changed", ready=ready, failing=failing)
            self._readiness, self._readiness_at = readiness, now

    async def _report(self) -> None:
        """Write the node's object if something in it has changed that must be seen."""
        if self._wait_for_allocation():
            return
        now = self._clock.monotonic()
        found = parts(self._view(now), self._fields)
        since_written_s = now - self._written_at
        if not must_write(
            self._fields, self._written, found, since_written_s=since_written_s, refresh_s=self._settings.refresh_s
        ):
            return
        try:
            await self._writer.write(cnr(self._wire.node, found))
        except Unavailable as error:
            if not self._write_failure:
                log.error("report.failed", why=str(error))
            self._write_failure = str(error)
            return
        self._write_failure = ""
        self._written, self._written_at, self._written_wall = found, now, self._clock.wall()
        log.info("report.written", based_on=self._ref(), fields=sorted(found))

    def _wait_for_allocation(self) -> bool:
        """A fresh start must not wipe the object of the life before while qrm is about to speak."""
        waited_s = self._clock.monotonic() - self._started_at
        heard = self._allocation is not None and self._allocation.value is not None
        return not heard and self._written is None and waited_s < self._settings.max_allocation_age_s

    def _view(self, now_s: float) -> View:
        allocation, sample, settings = self._allocation, self._sample, self._settings
        applied = allocation.value if allocation else None
        fresh = bool(allocation and allocation.within(settings.max_allocation_age_s))
        return View(
            now=self._clock.wall(),
            allocation=applied,
            allocation_fresh=fresh,
            offered=self._offers.look(applied, now_s, fresh=fresh),
            sample=sample.value if sample else None,
            sample_fresh=bool(sample and sample.within(settings.max_sample_age_s)),
            services=self._services,
        )

    def _ref(self) -> str | None:
        value = self._allocation.value if self._allocation else None
        return value.ref if value else None

    def health(self) -> ServiceHealth:
        """Well while allocations come and the object can be written."""
        age_s = self._allocation.age_s if self._allocation else None
        why = self._write_failure or self._beside.failure()
        if age_s is None:
            why = why or "no allocation received yet"
        elif age_s > self._settings.max_allocation_age_s:
            why = why or f"the newest allocation is older than {self._settings.max_allocation_age_s:g} s"
        return ServiceHealth(service=NAME, ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """The object as last written, the services' health, and the inputs behind them."""
        sample = self._sample.value if self._sample else None
        return {
            "cnr": None if self._written is None else cnr(self._wire.node, self._written),
            "written_at": None if self._written_wall is None else self._written_wall.isoformat(),
            "write_failure": self._write_failure,
            "services": [health.model_dump(mode="json") for health in self._services],
            "ready": bool(self._services) and all(health.ok for health in self._services),
            "allocation": self._ref(),
            "offered": self._offers.state(),
            "allocation_age_s": self._allocation.age_s if self._allocation else None,
            "sample": sample.ref if sample else None,
            "sample_age_s": self._sample.age_s if self._sample else None,
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings, whole or not at all.

        Raises:
            BadConfig: a key or a value cannot be used.
        """
        settings = check(ReporterSettings, merge(self._static, section), where=NAME)
        self._fields = _fields(settings)
        self._offers.reconfigure(settings)
        self._settings = settings

    async def close(self) -> None:
        """End the subscriptions. The object stays: it says what is applied until somebody removes what is applied."""
        await self._wire.stop()
        await self._beside.close()


def _fields(settings: ReporterSettings) -> Fields:
    fields: Registry[Field[Any]] = Registry(Field, field_package, "FIELD")
    known = fields.known()
    for name in settings.fields:
        if name not in known:
            meant = did_you_mean(name, known)
            raise BadConfig(f"settings: {NAME}.fields.{name}: no such report field; {meant}", reason="invalid")
    return {
        name: (field, check(field.settings, settings.fields.get(name, {}), where=f"{NAME}.fields.{name}"))
        for name, field in known.items()
    }
