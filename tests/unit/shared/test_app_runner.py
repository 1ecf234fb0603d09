"""The runner: it ends when asked, dies when something died, closes in order, and hands on configuration."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

import pytest
from fixture_types import Virtual

from shared import app, telemetry
from shared.adapters.clock import LoopClock
from shared.app import Context, Plan, Runner
from shared.build import BUILD
from shared.contracts.bus.subjects import CONFIG_BUCKET, ask_subject
from shared.contracts.readiness import WHY_CHARACTERS, ConfigRefusal, Health, ServiceHealth
from shared.errors import BadConfig
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings
from shared.wire import Wire

COMMON = CommonSettings(node="node-a")


class FakeApp:
    """A service whose life the test writes."""

    def __init__(self, name: str, log: list[str], life: Callable[[], Any] | None = None) -> None:
        self.name, self.log = name, log
        self.settings: dict[str, Any] = {}
        self._life = life

    async def run(self) -> None:
        self.log.append(f"{self.name} runs")
        await (self._life() if self._life else asyncio.Event().wait())

    def health(self) -> ServiceHealth:
        return ServiceHealth(service=self.name, ok=True, input_age_s=1.5)

    def state(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        if section.get("bad"):
            raise BadConfig("bad = true: want false", reason="invalid")
        self.settings = dict(section)

    async def close(self) -> None:
        self.log.append(f"{self.name} closed")


class World:
    def __init__(self, **lives: Callable[[], Any] | None) -> None:
        self.log: list[str] = []
        self.broker, self.clock = MemoryBroker(), LoopClock()
        self.bus = MemoryBus(self.broker, self.clock)
        self.contexts: dict[str, Context] = {}
        self.stop = asyncio.Event()
        plans = [Plan(name, self._builder(name, life)) for name, life in lives.items()]
        self.runner = Runner(plans, self.bus, self.clock, COMMON, {"qrm": {"x": 1}})

    def _builder(self, name: str, life: Callable[[], Any] | None) -> Callable[[Context], FakeApp]:
        def build(context: Context) -> FakeApp:
            self.contexts[name] = context
            return FakeApp(name, self.log, life)

        return build

    def settings(self, name: str) -> dict[str, Any]:
        """What a service was last configured with."""
        app = self.runner.apps[name]
        assert isinstance(app, FakeApp)
        return app.settings

    def start(self) -> "asyncio.Task[int]":
        return asyncio.create_task(self.runner.run(self.stop))


async def fails() -> None:
    await asyncio.sleep(5)
    raise RuntimeError("disk full")


async def returns() -> None:
    await asyncio.sleep(5)


def test_stop_ends_with_0_after_close_and_drain(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None, qrm=None)
        running = world.start()
        await asyncio.sleep(10)
        assert not running.done()
        world.stop.set()
        assert await running == 0
        assert world.log == ["metrics runs", "qrm runs", "metrics closed", "qrm closed"]
        assert not world.bus.connected

    virtual(story())


@pytest.mark.parametrize("life", [fails, returns], ids=["fails", "returns"])
def test_a_service_that_ends_takes_the_process_down_with_1(
    virtual: Virtual, life: Callable[[], Awaitable[None]]
) -> None:
    async def story() -> None:
        world = World(metrics=None, qrm=life)
        assert await world.start() == 1
        assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
        assert world.log[-2:] == ["metrics closed", "qrm closed"]
        assert not world.bus.connected

    virtual(story())


def test_a_bus_that_closed_for_good_takes_the_process_down_with_1(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None)
        running = world.start()
        await asyncio.sleep(3)
        world.bus.close("authorization violation")
        assert await running == 1
        assert world.log[-1] == "metrics closed"

    virtual(story())


def test_a_bus_that_is_only_away_takes_nothing_down(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None)
        running = world.start()
        world.bus.go_offline()
        await asyncio.sleep(3600)
        assert not running.done()
        assert telemetry.CONNECTED._value.get() == 0
        world.bus.go_online()
        await asyncio.sleep(3)
        assert telemetry.CONNECTED._value.get() == 1
        world.stop.set()
        assert await running == 0

    virtual(story())


@pytest.mark.parametrize("end", ["stop", "death"])
def test_a_service_that_misses_its_cancellation_is_cancelled_again(virtual: Virtual, end: str) -> None:
    async def deaf() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def story() -> None:
        world = World(metrics=deaf, qrm=fails if end == "death" else None)
        running = world.start()
        await asyncio.sleep(1)
        if end == "stop":
            world.stop.set()
        assert await running == int(end == "death")
        assert not world.bus.connected

    virtual(story())


def test_a_service_that_cannot_close_keeps_nobody_else_from_closing(
    virtual: Virtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        world = World(metrics=None, qrm=None)
        running = world.start()
        await asyncio.sleep(1)
        monkeypatch.setattr(world.runner.apps["metrics"], "close", lambda: asyncio.sleep(3600))
        world.stop.set()
        assert await running == 0
        assert asyncio.get_running_loop().time() <= 1.1 + app.CLOSE_TIMEOUT_S
        assert world.log[-1] == "qrm closed"
        assert not world.bus.connected

    virtual(story())


def test_a_service_that_cannot_be_built_is_told_and_the_others_are_closed(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None)

        def refuse(context: Context) -> FakeApp:
            raise BadConfig("qrm.period_s = -1: want more than 0")

        world.runner.plans = [*world.runner.plans, Plan("qrm", refuse)]
        with pytest.raises(BadConfig, match="period_s"):
            await world.start()
        assert world.log == ["metrics closed"]
        assert not world.bus.connected

    virtual(story())


def test_every_service_beats_asks_are_answered_and_input_age_is_shown(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None, qrm=None)
        beats: list[Health] = []
        other = MemoryBus(world.broker, world.clock)
        await other.subscribe("sublet.node.v1.health.node-a.*", lambda m: beats.append(Health.decode(m.data)))
        running = world.start()
        await asyncio.sleep(2 * COMMON.heartbeat_s + 0.1)
        assert [(b.health.service, b.seq) for b in beats[:6]] == [(n, s) for s in (1, 2, 3) for n in ("metrics", "qrm")]
        answer = json.loads(await other.request(ask_subject("node-a", "qrm")))
        assert answer == {"name": "qrm", "process": {**asdict(BUILD), "up_s": pytest.approx(4.1, abs=0.1)}}
        assert telemetry.INPUT_AGE.labels("qrm", "newest")._value.get() == 1.5
        assert world.contexts["qrm"].raw == {"qrm": {"x": 1}}
        world.stop.set()
        assert await running == 0

    virtual(story())


def test_configuration_reaches_its_service_and_its_revision_the_messages(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None, qrm=None)
        running = world.start()
        await asyncio.sleep(1)
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        await world.bus.put(CONFIG_BUCKET, "pool.x", b"not for all")
        await world.bus.put(CONFIG_BUCKET, "global", b'{"qrm": {"a": 1}, "unknown": 5}')
        await asyncio.sleep(1)
        assert world.settings("qrm") == {"a": 1}
        assert world.settings("metrics") == {}
        assert {w.config_rev for w in world.runner.wires.values()} == {2}
        world.stop.set()
        await running

    virtual(story())


@pytest.mark.parametrize(
    "document",
    [b'{"qrm": {"bad": true}}', b'{"qrm": [1]}', b"[]", b"{", b"\xff", b'{"qrm": 5}'],
    ids=["refused by the service", "section is a list", "list", "cut off", "no text", "section is a number"],
)
def test_configuration_that_cannot_be_used_is_counted_and_the_last_good_one_stays(
    virtual: Virtual, document: bytes
) -> None:
    async def story() -> None:
        world = World(qrm=None)
        running = world.start()
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        await world.bus.put(CONFIG_BUCKET, "global", b'{"qrm": {"a": 1}}')
        await asyncio.sleep(1)
        before = telemetry.CONFIG_REFUSED.labels("qrm")._value.get()
        await world.bus.put(CONFIG_BUCKET, "global", document)
        await asyncio.sleep(1)
        assert telemetry.CONFIG_REFUSED.labels("qrm")._value.get() == before + 1
        assert world.settings("qrm") == {"a": 1}
        assert world.runner.wires["qrm"].config_rev == 1
        assert not running.done()
        world.stop.set()
        assert await running == 0

    virtual(story())


def test_one_service_that_refuses_its_section_keeps_no_other_from_taking_its_own(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(metrics=None, qrm=None)
        running = world.start()
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        await world.bus.put(CONFIG_BUCKET, "global", b'{"metrics": {"bad": true}, "qrm": {"a": 2}}')
        await asyncio.sleep(1)
        assert world.settings("qrm") == {"a": 2}
        assert (world.runner.wires["metrics"].config_rev, world.runner.wires["qrm"].config_rev) == (0, 1)
        world.stop.set()
        await running

    virtual(story())


def test_the_node_observes_or_enforces_by_its_own_entry_then_by_that_of_all_then_by_its_settings(
    virtual: Virtual,
) -> None:
    async def story() -> None:
        world = World(qrm=None, evictor=None)
        running = world.start()
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        seen = []
        for key, value in (
            ("global", b"{}"),
            ("global", b'{"mode": "observe"}'),
            ("node.node-a", b'{"mode": "enforce"}'),
            ("global", b'{"mode": "observe", "qrm": {"a": 1}}'),
            ("node.node-a", b"{}"),
            ("global", b"{}"),
        ):
            await world.bus.put(CONFIG_BUCKET, key, value)
            await asyncio.sleep(1)
            seen.append({context.switch.mode for context in world.contexts.values()})
        assert seen == [{"enforce"}, {"observe"}, {"enforce"}, {"enforce"}, {"observe"}, {"enforce"}]
        world.stop.set()
        await running

    virtual(story())


@pytest.mark.parametrize("mode", ['"enforced"', '"dry-run"', "null", "true", "[]", '{"a": 1}', '"' + "x" * 5000 + '"'])
def test_a_switch_that_is_no_mode_is_refused_with_the_whole_entry(virtual: Virtual, mode: str) -> None:
    async def story() -> None:
        world = World(qrm=None)
        running = world.start()
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        await world.bus.put(CONFIG_BUCKET, "global", b'{"mode": "observe", "qrm": {"a": 1}}')
        await asyncio.sleep(1)
        await world.bus.put(CONFIG_BUCKET, "global", f'{{"mode": {mode}, "qrm": {{"a": 2}}}}'.encode())
        await asyncio.sleep(1)
        assert (world.contexts["qrm"].switch.mode, world.settings("qrm")) == ("observe", {"a": 1})
        assert not running.done()
        world.stop.set()
        assert await running == 0

    virtual(story())


def test_what_was_refused_is_told_with_its_revision_and_reason_until_something_newer_is_taken(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(qrm=None, evictor=None)
        listener = Wire(MemoryBus(world.broker), world.clock, node="node-a", service="reporter")
        slots = {name: await listener.newest(Health, suffix=f".{name}") for name in ("qrm", "evictor")}
        running = world.start()
        await world.bus.ensure_bucket(CONFIG_BUCKET)

        async def told(key: str, value: str) -> dict[str, tuple[int | None, ConfigRefusal | None]]:
            await world.bus.put(CONFIG_BUCKET, key, value.encode())
            await asyncio.sleep(5)
            healths = {name: slot.value.health for name, slot in slots.items() if slot.value is not None}
            return {name: (health.config_revision, health.config_refused) for name, health in healths.items()}

        assert await told("global", '{"qrm": {"a": 1}}') == {"qrm": (1, None), "evictor": (1, None)}
        refused = await told("global", '{"qrm": {"bad": true}}')
        assert refused["evictor"] == (2, None)
        revision, refusal = refused["qrm"]
        assert refusal is not None
        assert (revision, refusal.revision) == (1, 2)
        assert "bad = true: want false" in refusal.why
        # An entry of the node's own is taken; that of all nodes is still the one before.
        assert (await told("node.node-a", '{"qrm": {"b": 1}}'))["qrm"] == (3, refusal)
        assert telemetry.CONFIG_REFUSED_REVISION.labels("qrm")._value.get() == 2
        assert await told("global", '{"qrm": {"a": 3}}') == {"qrm": (4, None), "evictor": (4, None)}
        assert telemetry.CONFIG_REFUSED_REVISION.labels("qrm")._value.get() == 0
        long = (await told("global", json.dumps({"mode": "x" * 5000})))["qrm"][1]
        assert long is not None
        assert len(long.why) <= WHY_CHARACTERS
        world.stop.set()
        await running

    virtual(story())


def test_a_service_that_refuses_its_section_keeps_its_mode(virtual: Virtual) -> None:
    async def story() -> None:
        world = World(qrm=None)
        running = world.start()
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        await world.bus.put(CONFIG_BUCKET, "global", b'{"mode": "observe", "qrm": {"bad": true}}')
        await asyncio.sleep(1)
        assert world.contexts["qrm"].switch.mode == "enforce"
        world.stop.set()
        await running

    virtual(story())
