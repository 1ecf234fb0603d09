"""One of three nodes is hostile for long, and one node sends 20 000 heartbeats a second: nothing lost, forged or late.

`ATTACK_EVENTS` is how many events the hostile node sends (20 000), `ATTACK_HEARTBEATS_S` for how long heartbeats come
(5); `make test-attacks-scale` has a million and a minute. `pytest -s` prints what was measured.
"""

import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from bus_rights_rig import PASSWORD, Leaf, at_the_hub, running, started_hub
from central_rig import central_on

from services.central.adapters.streams import FactStreams
from services.central.app import MAKE_ROOM_S
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import CONFIG_BUCKET, EVENTS_STREAM, STREAMS, event_filter, state_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.ids import intent_id
from shared.contracts.readiness import Readiness
from shared.errors import Unavailable
from shared.evictions.messages import event_message, send, under_another_id
from shared.wire import Wire

EVENTS = int(os.environ.get("ATTACK_EVENTS", "20000"))
HEARTBEATS_S = float(os.environ.get("ATTACK_HEARTBEATS_S", "5"))
HEARTBEATS_PER_S = 20_000
pytestmark = pytest.mark.timeout(3600)

HOSTILE = """
import asyncio, json, sys
import nats

URL, COUNT = sys.argv[1], int(sys.argv[2])
EVENT = "sublet.cluster.v1.event.eviction.created.default.{}"

async def main():
    client = await nats.connect(URL, inbox_prefix="_INBOX_node.a")
    told = json.loads(sys.stdin.read())
    for number in range(COUNT):
        kind = number % 5
        if kind < 3:  # its own, without end
            subject, headers = EVENT.format("a"), {"Nats-Msg-Id": f"a{number}"}
        elif kind == 3:  # in the name of another
            subject, headers = EVENT.format("bc"[number % 2]), dict(told["headers"], **{"Nats-Msg-Id": f"f{number}"})
        else:  # what another is going to say, under its ids as far as they can be known
            subject, headers = EVENT.format("a"), dict(told["headers"])
        await client.publish(subject, told["body"].encode(), headers=headers)
        if number % 256 == 255:
            await client.flush(timeout=600)
    await client.drain()

asyncio.run(main())
"""
FLOOD = """
import asyncio, sys, time
import nats

TRUE = b'{"v":1,"node":"hostile","boot_id":"0123456789abcdef","seq":%d,"sent_at":"2026-01-01T00:00:00Z","ready":true}'

async def main(url, rate, for_s):
    client = await nats.connect(url)
    began_s, sent = time.monotonic(), 0
    while (now_s := time.monotonic() - began_s) < for_s:
        while sent < rate * now_s:
            await client.publish("sublet.cluster.v1.ready.hostile", TRUE % sent)
            sent += 1
        await client.flush()
        await asyncio.sleep(0.005)
    print(sent / (time.monotonic() - began_s), flush=True)
    await client.close()

asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
"""


class Honest:
    """A node that tells one eviction after the other, each until it is acknowledged, as its outbox does."""

    def __init__(self, node: str, bus: NatsBus) -> None:
        self.node, self._bus = node, bus
        self._wire = Wire(bus, SystemClock(), node=node, service="evictor")
        self.told: list[str] = []
        self.waits: list[float] = []

    def event(self, number: int) -> EvictionEvent:
        uid = f"{self.node}{number:08x}"
        return self._wire.stamp(
            EvictionEvent,
            intent_id=intent_id(self.node, uid, "p", 1), namespace="default", pod=f"pod-{number}", pod_uid=uid,
            qos="reclaimed_cores", plugin="p", scope="memory", phase="created", message="Evicted", observed=1.5,
        )  # fmt: skip

    async def tell_until(self, end: asyncio.Event) -> None:
        while not end.is_set():
            message, began_s = event_message(self.event(len(self.told))), time.monotonic()
            while True:
                try:
                    await send(self._bus, message, under_another_id, budget_s=20.0)
                    break
                except Unavailable:
                    continue
            self.waits.append(time.monotonic() - began_s)
            self.told.append(message.fact_id)
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def three_nodes(folder: Path) -> AsyncIterator[tuple[NatsBus, dict[str, NatsBus], str]]:
    """Central, the agents of three nodes behind their leaves, and the server of the hostile one, a."""
    hub = started_hub(folder / "hub")
    central = await hub.client(f"central:{PASSWORD}", "central/c")
    for spec in STREAMS:
        await central.ensure_stream(spec)
    await central.ensure_bucket(CONFIG_BUCKET)
    await central.put(CONFIG_BUCKET, "global", b"{}")
    leaves = [Leaf(folder / f"leaf-{node}", hub, node) for node in "abc"]
    for leaf in leaves:
        leaf.log_in_with(hub.reviews.issue(leaf.node, f"token-of-{leaf.node}"))
    async with hub.central_answers():
        with running(*(leaf.server for leaf in leaves)):
            agents = {leaf.node: await at_the_hub(leaf) for leaf in leaves}
            yield central, agents, leaves[0].server.url
            for agent in agents.values():
                await agent.drain()
    await hub.close()


async def _make_room(central: NatsBus) -> None:
    room = FactStreams(central, SystemClock())
    while True:
        await room.make_room()
        await asyncio.sleep(MAKE_ROOM_S)


async def test_one_of_three_nodes_is_hostile_and_no_event_of_the_others_is_lost_or_forged(tmp_path: Path) -> None:
    script = tmp_path / "hostile.py"
    script.write_text(HOSTILE)
    async with three_nodes(tmp_path) as (central, agents, hostiles_server):
        honest, end = [Honest(node, agents[node]) for node in "bc"], asyncio.Event()
        room = asyncio.create_task(_make_room(central))
        telling = [asyncio.create_task(one.tell_until(end)) for one in honest]
        sample = event_message(honest[0].event(0))
        told = json.dumps({"headers": dict(sample.headers), "body": sample.body.decode()})
        began_s = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(script), hostiles_server, str(EVENTS), stdin=asyncio.subprocess.PIPE
        )
        await process.communicate(told.encode())
        took_s = time.monotonic() - began_s
        assert process.returncode == 0
        end.set()
        await asyncio.gather(*telling)
        room.cancel()
        await asyncio.gather(room, return_exceptions=True)
        lost = forged = 0
        for one in honest:
            held = await central.replay(EVENTS_STREAM, event_filter(node=one.node))
            read = [read_event(message.subject, message.headers, message.data) for message in held]
            ids = [event.event_id for event in read if isinstance(event, EvictionEvent)]
            lost += len(set(one.told) - set(ids))
            forged += len(read) - len(ids) + len(set(ids) - set(one.told))
        of_hostile = await central.replay(EVENTS_STREAM, event_filter(node="a"))
        forged += sum(
            isinstance(event := read_event(m.subject, m.headers, m.data), EvictionEvent) and event.node != "a"
            for m in of_hostile
        )
        waits = sorted(wait for one in honest for wait in one.waits)
        print(
            f"\n{EVENTS} hostile events in {took_s:.0f} s; {len(waits)} honest ones, lost {lost}, forged {forged}; "
            f"acknowledged after p50 {waits[len(waits) // 2]:.3f} s, p99 {waits[len(waits) * 99 // 100]:.3f} s, "
            f"longest {waits[-1]:.3f} s"
        )
        assert (lost, forged) == (0, 0)


async def test_twenty_thousand_heartbeats_a_second_from_one_node_make_no_other_verdict_late(
    nats_server: NatsServer, tmp_path: Path, until: Callable[..., Any]
) -> None:
    script, clock = tmp_path / "flood.py", SystemClock()
    script.write_text(FLOOD)
    bus, others = [await connect(nats_server.url, name=name, connect_timeout_s=20, clock=clock) for name in "ab"]
    wire = Wire(bus, clock, node="hub", service="central")
    late_s = 4.0
    app = central_on(wire, clock, {"central": {"rules": {"late_s": late_s}, "assess_s": 0.5}})
    work = asyncio.create_task(app.run())
    nodes = [f"n{number}" for number in range(200)]
    senders = {name: Wire(others, clock, node=name, service="reporter") for name in nodes}
    silent: set[str] = set()
    beats: dict[str, float] = {}

    async def beat() -> None:
        while True:
            for name, sender in senders.items():
                if name not in silent:
                    await others.publish(state_subject(Readiness, name), sender.stamp(Readiness, ready=True).encode())
                    beats[name] = clock.monotonic()
            await clock.sleep(0.5)

    beating = asyncio.create_task(beat())
    try:
        await until(lambda: app.state()["nodes"]["ready"] == len(nodes))
        await until(lambda: not app.state()["paused"])
        used = resource.getrusage(resource.RUSAGE_SELF)
        began_s = clock.monotonic()
        arguments = (nats_server.url, str(HEARTBEATS_PER_S), str(HEARTBEATS_S + late_s + 4.0))
        with subprocess.Popen([sys.executable, str(script), *arguments], stdout=subprocess.PIPE) as flood:
            await clock.sleep(HEARTBEATS_S)
            assert flood.poll() is None
            wrong = {name for name in app.state()["not_ready"] if name != "hostile"}
            silent.add("n7")
            await until(lambda: app.state()["not_ready"].get("n7", {}).get("state") == "late")
            verdict_s = clock.monotonic() - beats["n7"]
            assert flood.poll() is None, "the flood went on all the time"
            wrong |= {name for name in app.state()["not_ready"] if name not in ("hostile", "n7")}
            spent = resource.getrusage(resource.RUSAGE_SELF)
            cpu = (spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime) / (clock.monotonic() - began_s)
            rate = float((await asyncio.to_thread(flood.stdout.readline)).decode() or 0) if flood.stdout else 0.0
        print(
            f"\n{rate:.0f} heartbeats a second from one node for {HEARTBEATS_S:g} s: a silent node is late after "
            f"{verdict_s:.2f} s (bound {late_s:g} s), wrong verdicts {len(wrong)}, central with 200 nodes uses "
            f"{100 * cpu:.0f} % of a CPU"
        )
        assert wrong == set()
        assert late_s <= verdict_s
        refused = telemetry.REFUSED.labels("central", Readiness.kind, "too_often")._value.get()
        assert refused > HEARTBEATS_S * rate / 2
    finally:
        beating.cancel()
        work.cancel()
        await asyncio.gather(beating, work, return_exceptions=True)
        await app.close()
        await asyncio.gather(bus.drain(), others.drain())
