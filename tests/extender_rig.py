"""An extender over objects and a bus in memory, asked as a scheduler asks."""

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Literal

import aiohttp

from services.central.adapters.https.serving_secret import SECRETS
from services.central.extender import Extender
from services.central.settings import ExtenderSettings
from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.decision import Decided
from shared.contracts.cluster.offer import NodeOffer, ResourceAmounts
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.api_kind import NODES, PODS
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import Clock

Document = dict[str, Any]


def node(name: str, **amounts: str) -> Document:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "10", "memory": "10Gi", **amounts}}}


def batch_pod(name: str, cpu_millis: int = 400, node_name: str = "") -> Document:
    requests = {RECLAIMED_CPU: str(cpu_millis), RECLAIMED_MEMORY: "1Mi"}
    spec: Document = {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}]}
    if node_name:
        spec["nodeName"] = node_name
    return {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"}, "spec": spec}


def asked(pod: Document, *nodes: str) -> Document:
    return {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}


def offer(name: str, seq: int, cpu_millis: int, used_millis: int | None = None) -> NodeOffer:
    use = {} if used_millis is None else {"usage_age_s": 1.0, "used": ResourceAmounts(cpu_millis=used_millis)}
    return NodeOffer(
        node=name, boot_id="0" * 16, seq=seq, sent_at=datetime(2026, 1, 1, tzinfo=UTC),
        reclaimed=ResourceAmounts(cpu_millis=cpu_millis, memory_bytes=1 << 30), **use,
    )  # fmt: skip


@dataclass
class Said:
    """A `DecisionLog` that keeps everything."""

    decided: list[Decided] = field(default_factory=list)

    def say(self, decided: Decided) -> None:
        self.decided.append(decided)


@dataclass
class ExtenderRig:
    api: MemoryObjects
    bus: MemoryBus
    settings: ExtenderSettings
    said: Said = field(default_factory=Said)
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.extender = Extender(self.api, self.clock, self.settings, self.said)
        self.process = self.extender.process("extender-0", self._bus, {})

    async def _bus(self) -> MemoryBus:
        return self.bus

    async def hear(self, said: NodeOffer) -> None:
        await self.bus.publish(state_subject(NodeOffer, said.node), said.encode())
        async with asyncio.timeout(5):
            while (known := self.extender.view.heard.get(said.node)) is None or known.offered != {
                RECLAIMED_CPU: said.reclaimed.cpu_millis if said.reclaimed else None,
                RECLAIMED_MEMORY: said.reclaimed.memory_bytes if said.reclaimed else None,
            }:
                await asyncio.sleep(0.001)

    def shown(self) -> ssl.SSLContext:
        """What a scheduler of ours shows and trusts."""
        data = self.api.documents[SECRETS, self.settings.namespace, self.settings.secret]["data"]
        context = ssl.create_default_context(cadata=base64.b64decode(data["ca.crt"]).decode())
        context.check_hostname = False
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(data["tls.crt"]) + base64.b64decode(data["tls.key"]))
            file.flush()
            context.load_cert_chain(file.name)
        return context

    async def post(self, path: str, body: object, *, method: str = "POST", ours: bool = True) -> tuple[int, Any]:
        """Status and JSON of an answer; a body that is bytes is sent as it is; `ours`: with a certificate."""
        url = f"https://127.0.0.1:{self.settings.port}{path}"
        data = BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        trusted = self.shown() if ours else False
        async with aiohttp.ClientSession() as session, session.request(method, url, data=data, ssl=trusted) as reply:
            text = await reply.read()
            return reply.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    async def filter(self, pod: Document, *nodes: str) -> Document:
        status, reply = await self.post("/v1/filter", asked(pod, *nodes))
        assert status == 200
        assert isinstance(reply, dict)
        return reply


@asynccontextmanager
async def extending(
    port: int, *nodes: Document, clock: Clock | None = None, gate: Literal["none", "hold", "release"] = "none"
) -> AsyncIterator[ExtenderRig]:
    """One that answers, over a cluster of these Nodes."""
    api = MemoryObjects(SystemClock())
    for one in nodes:
        api.put(NODES, one)
    settings = ExtenderSettings(host="127.0.0.1", port=port, wake_s=1, gate=gate)
    rig = ExtenderRig(api, MemoryBus(), settings, clock=clock or SystemClock())
    task = asyncio.create_task(rig.process.run(asyncio.Event()))
    try:
        async with asyncio.timeout(10):
            while not rig.process.health().ok:
                await asyncio.sleep(0.005)
        yield rig
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def bind(rig: ExtenderRig, pod: Document, node_name: str) -> None:
    """Do what the scheduler does, and what a watch tells of it."""
    rig.api.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": node_name}})
