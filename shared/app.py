"""`Runner` starts services in one process, supervises their tasks, reports their health, and stops them in order.

Crash-only: a task that ends or fails, or a bus client that closes permanently, ends the process with a non-zero code,
and its parent restarts it. SIGTERM stops timers, drains and ends with 0.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import structlog

from shared import telemetry
from shared.build import BUILD
from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY, MAX_CONFIG_BYTES, ask_subject
from shared.contracts.mode import NodeMode
from shared.contracts.readiness import ConfigRefusal, Health, ServiceHealth, entry_hash, node_config_key
from shared.core.node_mode import NodeSwitch, document_mode
from shared.core.text.json_text import read_json_object
from shared.errors import BadConfig, Refused, SubletError, Unavailable
from shared.ports import Bus, Clock, Entry
from shared.settings import CommonSettings, merge
from shared.wire import Wire

log = structlog.get_logger()

CANCEL_AGAIN_S = 1.0
CLOSE_TIMEOUT_S = 10.0
"""How long a service may take to release what it holds; less than a pod's usual grace of 30 s."""


class App(Protocol):
    """The interface of a service's `app.py` to the runner."""

    async def run(self) -> None:
        """Work until cancelled; returning is a crash."""
        ...

    def health(self) -> ServiceHealth:
        """Return the service's own health; must not wait."""
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
    """What a service's `main.build` receives to wire its app."""

    wire: Wire
    clock: Clock
    common: CommonSettings
    raw: Mapping[str, Any] = field(default_factory=dict)
    """All settings, unchecked; take your section with `shared.settings.section`."""
    switch: NodeSwitch = field(default_factory=NodeSwitch)
    """Whether the node observes or enforces; read it whenever something would be done."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A service by name and how to build it."""

    name: str
    build: Callable[[Context], App]


class Closed(SubletError):
    """The bus client closed permanently."""


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
    switches: dict[str, NodeSwitch] = field(default_factory=dict)
    _newest: dict[str, Entry] = field(default_factory=dict)
    _good: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """By service, the entries of the bucket that it works with."""
    _refusals: dict[str, ConfigRefusal] = field(default_factory=dict)
    """By service, the newest entry that it has refused, until one is accepted."""

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set (exit code 0) or something dies (exit code 1).

        Raises:
            SubletError: a service could not be built (BadConfig, Unfit, …); those built before are closed.
        """
        try:
            # In here, not before: where the third service cannot be built, the two before it must be closed all the
            # same.
            self._build()
            return await self._work(stop)
        finally:
            await self._close()

    async def _work(self, stop: asyncio.Event) -> int:
        stopping = asyncio.create_task(stop.wait(), name="stop")
        # Health and `ask` are tasks separate from the services, so a service that hangs in an await is still seen and
        # still answers.
        tasks = [asyncio.create_task(self._never_returns(name, app), name=name) for name, app in self.apps.items()]
        tasks += [
            asyncio.create_task(self._beat(), name="heartbeat"),
            asyncio.create_task(self._serve(), name="ask"),
            asyncio.create_task(self._end_when_closed(), name="bus-closed"),
        ]
        try:
            done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            log.info("process.stopping", services=list(self.apps))
            await end_tasks([stopping, *tasks])
        # Only what had ended before the cancellation: a task that fails while it is being stopped is no death.
        died = [task for task in tasks if task in done]
        for task in died:
            failure = task.exception()
            log.error("process.died", task=task.get_name(), why=str(failure), exc_info=failure)
        return int(bool(died))

    def _build(self) -> None:
        for plan in self.plans:
            # A wire for each, though they share a bus: sequence numbers, revision and subscriptions are the service's
            # own.
            wire = Wire(self.bus, self.clock, node=self.common.node, service=plan.name)
            self.wires[plan.name] = wire
            self.switches[plan.name] = switch = NodeSwitch(self.common.mode)
            try:
                self.apps[plan.name] = plan.build(Context(wire, self.clock, self.common, self.raw, switch))
            except OSError as error:  # SELinux, a mount that is missing: one line, not a traceback
                raise Unavailable(f"{plan.name} cannot start: {error}", reason="unreadable") from error

    def healths(self) -> list[ServiceHealth]:
        """Health of every service here."""
        return [self._health(name, app) for name, app in self.apps.items()]

    def _health(self, name: str, app: App) -> ServiceHealth:
        """Return the service's health, and whether another sender claims the identity of one that it listens to."""
        health, two_senders = app.health(), self.wires[name].two_senders
        if not two_senders:
            return health
        return health.model_copy(update={"ok": False, "why": "; ".join(filter(None, (health.why, two_senders)))})

    async def _close(self) -> None:
        for name, app in self.apps.items():
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await app.close()
            except Exception as error:  # noqa: BLE001 - the others must be closed too
                log.error("service.close_failed", of=name, why=str(error) or type(error).__name__)
        # The bus is drained last: what the services say in their `close` goes out with it.
        with contextlib.suppress(SubletError):
            await self.bus.drain()

    async def _never_returns(self, name: str, app: App) -> None:
        structlog.contextvars.bind_contextvars(service=name)  # this task's own context: the log says who speaks
        await app.run()
        raise SubletError(f"service {name} ended by itself", reason="dead_task")

    async def _end_when_closed(self) -> None:
        raise Closed(f"bus client closed for good: {await self.bus.wait_closed()}", reason="closed")

    async def _beat(self) -> None:
        while True:
            for name, app in self.apps.items():
                health = self._health(name, app)
                # Before the first input there is no age: a gauge at 0 would mean "fresh".
                if health.input_age_s is not None:
                    telemetry.INPUT_AGE.labels(name, "newest").set(health.input_age_s)
                wire = self.wires[name]
                own = self._good.get(name, {}).get(node_config_key(self.common.node))
                config = {
                    "config_hash": None if own is None else entry_hash(own.value),
                    "config_revision": wire.config_rev,
                    "config_refused": self._refusals.get(name),
                }
                health = health.model_copy(update=config)
                await wire.publish(wire.stamp(Health, health=health), suffix=f".{name}")
            telemetry.CONNECTED.set(self.bus.connected)
            before_s = self.clock.monotonic()
            await self.clock.sleep(self.common.heartbeat_s)
            # How late this timer runs is how long some handler has held the loop.
            telemetry.LOOP_LAG.set(max(0.0, self.clock.monotonic() - before_s - self.common.heartbeat_s))

    async def _serve(self) -> None:
        """Answer `ask`, and hand dynamic configuration to the services."""
        for name, app in self.apps.items():
            await self.bus.serve(ask_subject(self.common.node, name), self._answerer(app))
        with contextlib.suppress(Unavailable):
            keys = (GLOBAL_CONFIG_KEY, node_config_key(self.common.node))  # another node's is none of its business
            await self.bus.watch(CONFIG_BUCKET, self._configure, keys=keys)
        # For ever: a task of the runner that returns counts as a death.
        await asyncio.Event().wait()

    def _answerer(self, app: App) -> Callable[[bytes], bytes]:
        """Return a function that answers questions about the service's state and its process."""
        began_s = self.clock.monotonic()

        def answer(_question: bytes) -> bytes:
            process = {**asdict(BUILD), "up_s": round(self.clock.monotonic() - began_s, 1)}
            return json.dumps({**app.state(), "process": process}, default=str).encode()

        return answer

    def _configure(self, entry: Entry) -> None:
        """Apply an entry for all nodes, or for this one, which overrides it setting by setting."""
        if entry.key not in (GLOBAL_CONFIG_KEY, node_config_key(self.common.node)) or entry.value is None:
            return
        # Kept even if it is refused below: with the next entry the two together may be valid.
        self._newest[entry.key] = entry
        for name in self.apps:
            # For each service separately: one that refuses its section does not keep others from applying theirs.
            good = self._good.setdefault(name, {})
            wanted = [dict(self._newest)]
            if (beside_good := {**good, entry.key: entry}) != wanted[0]:
                wanted.append(beside_good)  # an entry refused before must not keep this one from being taken
            refusal: Exception | None = None
            for entries in wanted:
                try:
                    self._reconfigure(name, entries)
                except (Refused, ValueError) as error:  # not JSON, or a model's own refusal
                    refusal = refusal or error
                else:
                    self._good[name], self.wires[name].config_rev = entries, max(e.revision for e in entries.values())
                    break
            self._note_refusal(name, entry, refusal)

    def _note_refusal(self, name: str, entry: Entry, refusal: Exception | None) -> None:
        """Remember, count and log what a service has refused; None: it has accepted all entries."""
        telemetry.CONFIG_REVISION.labels(name).set(self.wires[name].config_rev)
        if refusal is None:
            self._refusals.pop(name, None)
        else:
            telemetry.CONFIG_REFUSED.labels(name).inc()
            log.error("config.refused", of=name, revision=entry.revision, why=str(refusal))
            # Applied without another one that was refused before, whose refusal stands.
            if self._good[name].get(entry.key) is not entry:
                self._refusals[name] = ConfigRefusal.of(entry.revision, str(refusal))
        refused = self._refusals.get(name)
        telemetry.CONFIG_REFUSED_REVISION.labels(name).set(refused.revision if refused else 0)

    def _reconfigure(self, name: str, entries: Mapping[str, Entry]) -> None:
        """Hand a service its section and the node's mode by these entries, those of this node on top."""
        section: dict[str, Any] = {}
        mode = self.common.mode
        for _, entry in sorted(entries.items()):  # "global" comes before "node."
            what = f"configuration {entry.key}, revision {entry.revision}"
            document = read_json_object(entry.value or b"{}", what=what, max_bytes=MAX_CONFIG_BYTES)
            part = document.get(name, {})
            if not isinstance(part, dict):
                raise BadConfig(f"{what}: section {name!r} is no mapping")
            section, mode = merge(section, part), document_mode(document, what) or mode
        self._switch(name, mode, section)

    def _switch(self, name: str, mode: NodeMode, section: Mapping[str, Any]) -> None:
        """Reconfigure a service under a mode; where it refuses, the mode stays what it was."""
        switch, before = self.switches[name], self.switches[name].mode
        switch.mode = mode
        try:
            self.apps[name].reconfigure(section)
        except BaseException:
            switch.mode = before
            raise
        if mode != before:
            log.warning("mode.changed", of=name, mode=mode, before=before)


async def end_tasks(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """Cancel tasks until they have ended. Once is not always enough: in Python 3.11 `asyncio.wait_for` forgets a
    cancellation that comes in the same turn of the loop as the result."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
