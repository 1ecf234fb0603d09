"""A node of another version refuses what central publishes: central, metrics, the node's object and commands say so."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from until_met import until_met

from services.central.main import PLAN as CENTRAL
from services.reporter.app import ReporterApp
from services.reporter.main import build as build_reporter
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.app import Context, Plan, Runner
from shared.contracts.allocation import Allocation
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.errors import BadConfig
from shared.settings import common_settings
from shared.wire import Wire

HUB, OLDER, NEWER = "hub.example", "older.example", "newer.example"
PATIENCE_S = 20.0
WHY = "settings: reporter.ready_s: no such setting"
CENTRAL_SETTINGS = {"assess_s": 0.05, "config_poll_s": 0.05, "retry_s": 0.05}


class OlderReporter(ReporterApp):
    """A reporter of a version that has no `ready_s` yet."""

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        if "ready_s" in section:
            raise BadConfig(WHY)
        super().reconfigure(section)


def build_older(context: Context) -> ReporterApp:
    """The older node's reporter, as its `main` builds it."""
    app = build_reporter(context)
    assert isinstance(app, ReporterApp)
    app.__class__ = OlderReporter
    return app


class Chain:
    """Central on its own connection, a node of an older version on another, and the words of a newer one."""

    def __init__(self, central: Runner, others: NatsBus, url: str, folder: Path) -> None:
        self.central, self.folder, self._url = central, folder, url
        self.older = Wire(others, SystemClock(), node=OLDER, service="qrm")
        self._newer = Wire(others, SystemClock(), node=NEWER, service="reporter")

    @property
    def config(self) -> dict[str, Any]:
        """What central says of the configuration."""
        found: dict[str, Any] = self.central.apps["central"].state()["config"] if self.central.apps else {}
        return found

    def write(self, text: str) -> None:
        """Change the file that central reads, as an editor does."""
        file = self.folder / "hub/config.yaml"
        file.with_suffix(".new").write_text(text)
        file.with_suffix(".new").replace(file)

    async def speak(self) -> None:
        """The older node's allocation, without which its object is not written, and the newer node's heartbeat."""
        await self.older.publish(
            self.older.stamp(Allocation, status="applied", reclaimed_cpu_millis=4000, reclaimed_memory_bytes=1 << 30)
        )
        health = ServiceHealth(service="reporter", ok=True, config_revision=self.config.get("revision", 0))
        await self._newer.publish(self._newer.stamp(Readiness, ready=True, services=(health,)))

    async def type(self, node: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A command on a node."""
        own = {"SUBLET_NATS_URL": self._url, "SUBLET_NODE": node, "SUBLET_STATE_DIR": str(self.folder / "none")}
        typed = [sys.executable, "-m", "sublet", *words]
        return await asyncio.to_thread(subprocess.run, typed, env=os.environ | own, text=True, capture_output=True)


@pytest.fixture
async def chain(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Chain]:
    clock, stop = SystemClock(), asyncio.Event()
    buses = [
        await connect(nats_server.url, name=name, connect_timeout_s=10, clock=clock) for name in ("hub", "node", "x")
    ]
    (tmp_path / "hub").mkdir()

    def runner(plan: Plan, bus: NatsBus, node: str, raw: Mapping[str, Any]) -> Runner:
        folder = tmp_path / node.partition(".")[0]
        common = common_settings({"node": node, "state_dir": folder, "heartbeat_s": 0.2})
        return Runner([plan], bus, clock, common, {plan.name: raw})

    central = runner(CENTRAL, buses[0], HUB, CENTRAL_SETTINGS)
    older = runner(
        Plan("reporter", build_older), buses[1], OLDER, {"tick_s": 0.05, "refresh_s": 1, "services": ["reporter"]}
    )
    running = [asyncio.create_task(one.run(stop)) for one in (central, older)]
    try:
        yield Chain(central, buses[2], nats_server.url, tmp_path)
    finally:
        stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            assert await asyncio.gather(*running) == [0, 0]
        await buses[2].drain()


def refused_condition(folder: Path) -> str:
    """What the older node's object says of a refusal; "" where it says none."""
    file = folder / "older/cnr.json"
    conditions = json.loads(file.read_text())["status"]["conditions"] if file.exists() else []
    return next((str(row["message"]) for row in conditions if row["type"] == "ConfigRefused"), "")


async def eventually(chain: Chain, **counts: int) -> None:
    """Central counts so many nodes in each state, and the older node's object names the refusal."""
    wanted = {"applied": 0, "refused": 0, "behind": 0} | counts

    async def said() -> bool:
        await chain.speak()
        told = bool(refused_condition(chain.folder)) is ("refused" in counts)
        return told and chain.config.get("nodes") == wanted

    await until_met(said, PATIENCE_S)


async def test_a_refusal_is_said_from_the_node_to_the_command_and_ends_with_the_next_configuration(
    chain: Chain,
) -> None:
    await eventually(chain, applied=2)
    chain.write("reporter: {ready_s: 5}\n")
    await eventually(chain, applied=1, refused=1)

    revision = chain.config["revision"]
    assert chain.config["refusals"] == [
        {"service": "reporter", "revision": revision, "why": WHY, "nodes": 1, "such_as": [OLDER]}
    ]
    assert telemetry.CONFIG_NODES.labels("refused")._value.get() == 1
    assert telemetry.CONFIG_REFUSED_REVISION.labels("reporter")._value.get() == revision
    assert WHY in refused_condition(chain.folder)
    told = await chain.type(HUB, "config", "status")
    assert told.returncode == 1
    assert f"rev {revision}: 1 applied, 1 refused, 0 behind" in told.stdout
    assert f"1 refuse rev {revision}: reporter: {WHY} ({OLDER})" in told.stdout
    shown = await chain.type(OLDER, "status")
    assert shown.returncode == 1
    assert "configuration refused" in " ".join(shown.stdout.split())

    chain.write("reporter: {refresh_s: 2}\n")
    await eventually(chain, applied=2)
    assert telemetry.CONFIG_REFUSED_REVISION.labels("reporter")._value.get() == 0
    assert (await chain.type(HUB, "config", "status")).returncode == 0
