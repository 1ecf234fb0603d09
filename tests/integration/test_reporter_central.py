"""Reporter and central in one process on a real NATS server, and the commands that look at them."""

import asyncio
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from fixture_types import Until
from present import present
from slow_machines import patience_s

from services.central.main import PLAN as CENTRAL
from services.reporter.main import PLAN as REPORTER
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.app import Runner
from shared.contracts.allocation import Allocation, PoolAllocation
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import (
    CONFIG_BUCKET,
    EVENTS_STREAM,
    GLOBAL_CONFIG_KEY,
    ask_subject,
    event_subject,
)
from shared.contracts.eviction import EvictionEvent
from shared.contracts.readiness import Health, ServiceHealth
from shared.contracts.sample import NodeReading, NodeSample
from shared.ports import DurableMessage
from shared.settings import common_settings
from shared.wire import Wire

NODE = "node1.example"
SERVICES = ("metrics", "advisor", "qrm", "evictor")


class Host:
    """The two services, the voices of the other four, and the command line."""

    def __init__(self, runner: Runner, bus: NatsBus, url: str, state_dir: Path) -> None:
        self.runner, self.bus, self.url, self.state_dir = runner, bus, url, state_dir
        self.wires = {name: Wire(bus, SystemClock(), node=NODE, service=name) for name in SERVICES}
        self.answers: dict[str, bytes] = {}

    @property
    def cnr(self) -> Path:
        return self.state_dir / "cnr.json"

    @property
    def environment(self) -> dict[str, str]:
        """Settings of the commands."""
        own = {"SUBLET_NATS_URL": self.url, "SUBLET_NODE": NODE, "SUBLET_STATE_DIR": str(self.state_dir)}
        return os.environ | own

    async def speak(self) -> None:
        """One round of the other services' messages, and their answers to questions."""
        qrm, metrics = self.wires["qrm"], self.wires["metrics"]
        allocation = qrm.stamp(
            Allocation,
            status="applied",
            reclaimed_cpu_millis=44_000,
            reclaimed_memory_bytes=195_257_901_056,
            pools=(PoolAllocation(pool="reclaim", cpus="0-43"), PoolAllocation(pool="share", cpus="44-47")),
        )
        sample = metrics.stamp(NodeSample, node_reading=NodeReading(online_cpus="0-47"))
        await metrics.publish(sample)
        await qrm.publish(allocation)
        for name, wire in self.wires.items():
            await wire.publish(wire.stamp(Health, health=ServiceHealth(service=name, ok=True)), suffix=f".{name}")
        for name, state in (("qrm", {"allocation": allocation}), ("metrics", {"sample": sample})):
            body = json.dumps({key: value.model_dump(mode="json") for key, value in state.items()}).encode()
            if name not in self.answers:
                await self.bus.serve(ask_subject(NODE, name), functools.partial(self._answer, name))
            self.answers[name] = body

    def _answer(self, name: str, _question: bytes) -> bytes:
        return self.answers[name]

    async def sublet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command as its user does."""
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "sublet", *arguments],
            env=self.environment,
            text=True,
            capture_output=True,
        )


@pytest.fixture
async def host(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Host]:
    common = common_settings({"node": NODE, "state_dir": tmp_path, "heartbeat_s": 0.2})
    clock, stop = SystemClock(), asyncio.Event()
    bus = await connect(nats_server.url, name="test", connect_timeout_s=10, clock=clock)
    others = await connect(nats_server.url, name="others", connect_timeout_s=10, clock=clock)
    raw = {
        "reporter": {"tick_s": 0.05},
        "central": {"assess_s": 0.05, "config_poll_s": 0.05, "retry_s": 0.05},
    }
    runner = Runner([REPORTER, CENTRAL], bus, clock, common, raw)
    task = asyncio.create_task(runner.run(stop))
    host = Host(runner, others, nats_server.url, tmp_path)
    try:
        yield host
    finally:
        stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            assert await task == 0
        await others.drain()


async def test_an_allocation_becomes_the_nodes_object_and_a_ready_node(host: Host, until: Until) -> None:
    async def ready() -> bool:
        await host.speak()
        return bool(host.runner.apps["central"].state()["nodes"]["ready"] == 1)

    async with asyncio.timeout(patience_s(20)):
        while not (host.runner.apps and await ready()):
            await asyncio.sleep(0.05)
    await until(host.cnr.exists)
    document = json.loads(host.cnr.read_text())
    assert document["metadata"]["name"] == NODE
    assert document["status"]["resourceAllocatable"] == {
        "katalyst.kubewharf.io/reclaimed_memory": "195257901056",
        "katalyst.kubewharf.io/reclaimed_millicpu": "44k",
    }

    screen = json.loads((await host.sublet("status", "-o", "json")).stdout)
    assert screen["silent"] == ["advisor", "evictor"]
    assert screen["reclaimed"]["offered_cpu_millis"] == 44_000
    assert [row for row in screen["services"] if not row["ok"]] == []
    shown = await host.sublet("status")
    assert "CPU 44.00 offered" in shown.stdout
    assert "RRRRRRRR" in shown.stdout
    assert "reclaim" in (await host.sublet("top", "--once")).stdout
    unknown = await host.sublet("explain", "pod/stranger")
    assert (unknown.returncode, unknown.stdout) == (1, "")


async def test_events_are_replayed_from_a_sequence_in_each_form(host: Host, until: Until) -> None:
    await until(lambda: host.runner.apps and host.runner.apps["central"].health().ok)
    wire = host.wires["evictor"]
    for phase in ("intended", "created", "succeeded"):
        event = wire.stamp(
            EvictionEvent,
            intent_id="0" * 8 + "-0000-0000-0000-" + "0" * 12,
            namespace="team-a",
            pod="encode",
            pod_uid="bb",
            qos="reclaimed_cores",
            plugin="p",
            scope="memory",
            observed=2.0,
            threshold=1.0,
            phase=phase,
            message=f"it is {phase}",
        )
        await host.bus.publish_durable(
            DurableMessage(event_subject(event), event.encode(), msg_id=event.event_id, headers=event_headers(event))
        )
    first = min(received.sequence for received in await host.bus.replay(EVENTS_STREAM, ">"))
    lines = (await host.sublet("events", "-n", "team-a", "-o", "json")).stdout.splitlines()
    assert [json.loads(line)["phase"] for line in lines] == ["intended", "created", "succeeded"]
    lines = (await host.sublet("events", "--since-seq", str(first + 1), "-o", "cloudevents")).stdout.splitlines()
    assert [json.loads(line)["data"]["phase"] for line in lines] == ["created", "succeeded"]
    table = (await host.sublet("events", "--phase", "created")).stdout.splitlines()
    assert len(table) == 2
    assert "team-a/encode" in table[1]
    assert "it is created" in table[1]
    follower = await asyncio.create_subprocess_exec(
        "env",
        "--ignore-signal=INT",  # as a shell starts what goes on in the background
        sys.executable,
        "-m",
        "sublet",
        "events",
        "--follow",
        "-o",
        "json",
        env=host.environment,
        stdout=asyncio.subprocess.PIPE,
    )
    followed = [json.loads(await present(follower.stdout).readline())["phase"] for _ in range(3)]
    follower.terminate()
    await follower.communicate()
    assert follower.returncode == 128 + signal.SIGTERM
    assert followed == ["intended", "created", "succeeded"]
    chain = json.loads((await host.sublet("explain", "pod/encode", "-n", "team-a", "-o", "json")).stdout)
    assert [phase["phase"] for phase in chain["evictions"][0]["phases"]] == ["intended", "created", "succeeded"]


async def test_a_configuration_goes_from_a_file_to_every_service_and_a_bad_one_stays_out(
    host: Host, until: Until, tmp_path: Path
) -> None:
    await until(lambda: host.runner.apps and host.runner.apps["central"].health().ok)
    file = tmp_path / "mine.yaml"
    file.write_text("reporter: {refresh_s: 5}\n")
    applied = await host.sublet("config", "apply", "-f", str(file))
    assert applied.returncode == 0, applied.stderr
    await until(lambda: host.runner.wires["reporter"].config_rev > 0)
    entry = present(await host.bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY))
    assert json.loads(present(entry.value)) == {"reporter": {"refresh_s": 5}}
    shown = await host.sublet("config", "show")
    assert yaml.safe_load(shown.stdout) == {"reporter": {"refresh_s": 5}}
    assert f"# revision {entry.revision}" in shown.stdout
    machine = json.loads((await host.sublet("config", "show", "-o", "json")).stdout)
    assert (machine["revision"], machine["configuration"]) == (entry.revision, {"reporter": {"refresh_s": 5}})

    listed = json.loads((await host.sublet("config", "history", "-o", "json")).stdout)
    assert [row["configuration"] for row in listed] == [{"reporter": {"refresh_s": 5}}]
    assert listed[0]["revision"] == entry.revision
    assert listed[0]["by"].startswith(f"central/{host.runner.common.node} /")
    assert listed[0]["at"]

    file.write_text("reporter: {refresh_s: 6}\n")
    changed = await host.sublet("config", "diff", "-f", str(file))
    assert changed.returncode == 1
    assert "-  refresh_s: 5\n+  refresh_s: 6" in changed.stdout
    for text in ("", "qrm: {}\n"):  # everything, or a section, would be taken away
        file.write_text(text)
        asked = await host.sublet("config", "apply", "-f", str(file))
        assert asked.returncode == 2
        assert "removes the sections reporter: say --yes" in asked.stderr
        assert "-reporter:" in asked.stderr
    assert present(await host.bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)).revision == entry.revision
    emptied = await host.sublet("config", "apply", "-f", str(file), "--yes")
    assert emptied.returncode == 0, emptied.stderr
    gone = await host.sublet("config", "rollback", "99")
    assert (gone.returncode, "kept are: " in gone.stderr) == (1, True)
    back = await host.sublet("config", "rollback", str(entry.revision))
    assert back.returncode == 0, back.stderr
    entry = present(await host.bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY))
    assert json.loads(present(entry.value)) == {"reporter": {"refresh_s": 5}}
    assert entry.revision == listed[0]["revision"] + 2

    file.write_text("reportr: {}\n")
    refused = await host.sublet("config", "apply", "-f", str(file))
    assert refused.returncode == 2
    assert "did you mean 'reporter'" in refused.stderr
    assert present(await host.bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)).revision == entry.revision
