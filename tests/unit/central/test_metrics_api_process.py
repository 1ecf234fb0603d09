"""A replica of the metrics API as the API server meets it: over HTTPS, by the front proxy's certificate."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
from client_authority import ClientAuthority

from services.central.adapters.metrics_api.api_services import API_SERVICES, NAMES, ApiServiceAuthorities
from services.central.core.custom_metrics.front_proxy import CONFIG_MAP, NAMESPACE
from services.central.custom_metrics.controller import WARM_S, MetricsController
from services.central.https_main import HttpsParts
from services.central.metrics_api import build
from services.central.settings import CentralSettings
from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.figures import FiguredPods, PodFigures
from shared.core.api_kind import CONFIG_MAPS, NODES, PODS
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import check

Until = Callable[[Callable[[], object]], Awaitable[None]]
SERVER = "sublet-metrics-api.sublet-system.svc"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
SETTINGS = check(CentralSettings, {"kubernetes": {"metrics_api": {"host": "127.0.0.1", "port": 0}}}, where="central")


class WarmClock(SystemClock):
    """Time as it is; monotonic time goes on when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@dataclass
class Held:
    """A bus as a process is given it."""

    bus: MemoryBus = field(default_factory=MemoryBus)

    async def get(self) -> MemoryBus:
        return self.bus


def api_service(name: str, service: str = "sublet-metrics-api") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"service": {"name": service, "namespace": "sublet-system"}}}


def proxy_is(api: MemoryObjects, authority: ClientAuthority) -> None:
    data = {"requestheader-client-ca-file": authority.pem.decode(), "requestheader-allowed-names": '["proxy"]'}
    api.put(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": data})


def cluster(authority: ClientAuthority | None) -> MemoryObjects:
    api = MemoryObjects(SystemClock())
    for name in NAMES:
        api.put(API_SERVICES, api_service(name))
    for name, app in (("web", "web"), ("db", "db")):
        meta = {"name": name, "namespace": "d", "labels": {"app": app}}
        api.put(PODS, {"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
    api.put(NODES, {"metadata": {"name": "n1"}})
    if authority is not None:
        proxy_is(api, authority)
    return api


@dataclass
class Replica:
    """One of them."""

    api: MemoryObjects
    clock: WarmClock = field(default_factory=WarmClock)
    held: Held = field(default_factory=Held)

    def __post_init__(self) -> None:
        parts = HttpsParts(self.api, self.clock, SETTINGS, "metrics-0", self.held)  # type: ignore[arg-type]
        self.process = build(parts)
        assert isinstance(self.process.answering, MetricsController)
        self.serving = self.process.answering.serving

    @property
    def why(self) -> str:
        return self.process.health().why

    async def says(self, node: str = "n1", seq: int = 1, age_s: float = 0.0) -> None:
        """A node says figures of both pods."""
        now = self.clock.wall()
        pods = FiguredPods(uids=("a1", "a2"), namespaces=("d", "d"), names=("web", "db"),
                           series={"pod_cpu_usage": (0.25, 2)})  # fmt: skip
        figures = PodFigures(
            node=node, boot_id="0123456789abcdef", seq=seq, sent_at=now, period_s=15.0, pods=pods,
            measured_at=now - timedelta(seconds=age_s), node_series={"node_cpu_usage": 3},
        )  # fmt: skip
        await self.held.bus.publish(state_subject(PodFigures, node), figures.encode())

    async def get(self, path: str, shown: Path | None, **query: str) -> tuple[int, Any]:
        """As the aggregator asks."""
        spec = self.api.documents[API_SERVICES, "", NAMES[0]]["spec"]
        trusted = ssl.create_default_context(cadata=base64.b64decode(spec["caBundle"]).decode())
        if shown is not None:
            trusted.load_cert_chain(shown)
        server = self.serving._server._server  # type: ignore[attr-defined]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{server.port}{path}", params=query, ssl=trusted, server_hostname=SERVER)
            as response,
        ):  # fmt: skip
            return response.status, await response.json()


@asynccontextmanager
async def running(api: MemoryObjects, until: Until, *, served: bool = True) -> AsyncIterator[Replica]:
    one, stop = Replica(api), asyncio.Event()
    task = asyncio.create_task(one.process.run(stop))
    try:
        if served:
            await until(lambda: not one.serving.failure)
        yield one
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def values(one: Replica, path: str, shown: Path, **query: str) -> list[tuple[str, str]]:
    status, body = await one.get(path, shown, **query)
    assert status == 200, body
    return [(item["describedObject"]["name"], item["value"]) for item in body["items"]]


async def test_what_a_node_says_is_answered_by_selector_to_the_front_proxy_alone(until: Until, tmp_path: Path) -> None:
    authority = ClientAuthority("proxies")
    proxy, other = authority.client(tmp_path, "proxy"), authority.client(tmp_path, "other")
    async with running(cluster(authority), until) as one:
        pods = f"{CUSTOM}/namespaces/d/pods/*/pod_cpu_usage"
        assert (await one.get(pods, proxy))[1]["items"] == []
        await one.says()
        for _ in range(3):
            await asyncio.sleep(0)
        assert await values(one, pods, proxy) == [("db", "2"), ("web", "250m")]
        assert await values(one, pods, proxy, labelSelector="app=web") == [("web", "250m")]
        assert await values(one, f"{CUSTOM}/nodes/n1/node_cpu_usage", proxy) == [("n1", "3")]
        assert await values(one, f"{CUSTOM}/namespaces/d/pods/web/cpu_usage", proxy) == [("web", "250m")]
        listed = (await one.get(CUSTOM, proxy))[1]["resources"]
        assert [(found["name"], found["namespaced"]) for found in listed] == [
            ("nodes/node_cpu_usage", False), ("pods/cpu_usage", True), ("pods/pod_cpu_usage", True),
        ]  # fmt: skip
        for who in (other, None):
            for path in (pods, CUSTOM, "/openapi/v2", "/"):
                assert (await one.get(path, who))[0] == 403
        assert (await one.get("/healthz", None))[0] == 200


async def test_discovery_and_open_api_answer_while_nothing_is_known(until: Until, tmp_path: Path) -> None:
    authority = ClientAuthority("proxies")
    proxy = authority.client(tmp_path, "proxy")
    async with running(cluster(authority), until) as one:
        for name in NAMES:
            version, group = name.split(".", 1)
            assert (await one.get(f"/apis/{group}/{version}", proxy))[1]["resources"] == []
            assert (await one.get(f"/apis/{group}", proxy))[1]["name"] == group
        assert (await one.get("/openapi/v2", proxy))[1]["paths"] == {}
        assert (await one.get("/openapi/v3", proxy))[1]["paths"] == {}
        assert (await one.get("/apis/metrics.k8s.io/v1beta1", proxy))[0] == 404
        assert (await one.get("/", proxy))[0] == 404


async def test_figures_that_are_too_old_are_answered_no_more(until: Until, tmp_path: Path) -> None:
    authority = ClientAuthority("proxies")
    proxy = authority.client(tmp_path, "proxy")
    async with running(cluster(authority), until) as one:
        await one.says(age_s=41.0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert await values(one, f"{CUSTOM}/namespaces/d/pods/*/pod_cpu_usage", proxy) == []
        assert (await one.get(f"{CUSTOM}/namespaces/d/pods/web/pod_cpu_usage", proxy))[0] == 404


async def test_the_proxy_of_now_is_asked_for_and_nobody_where_there_is_none(until: Until, tmp_path: Path) -> None:
    before, after = ClientAuthority("before"), ClientAuthority("after")
    old, new = before.client(tmp_path, "proxy"), after.client(tmp_path / "..", "proxy")
    api = cluster(None)
    async with running(api, until, served=False) as one:
        await until(lambda: "there is no ConfigMap" in one.why)
        proxy_is(api, before)
        await until(lambda: not one.serving.failure)
        assert (await one.get(CUSTOM, old))[0] == 200
        proxy_is(api, after)
        await asyncio.sleep(0)
        assert await one.serving.serve()
        assert (await one.get(CUSTOM, new))[0] == 200
        api.drop(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
        await asyncio.sleep(0)
        assert (await one.get(CUSTOM, new))[0] == 403


async def test_a_replica_is_ready_once_every_node_has_had_its_turn_and_also_without_a_bus(until: Until) -> None:
    async with running(cluster(ClientAuthority("proxies")), until) as one:
        assert "for the first time" in one.why
        one.clock.ahead_s = WARM_S
        assert one.process.health().ok


async def test_another_ones_api_service_is_left_alone() -> None:
    api = MemoryObjects(SystemClock())
    api.put(API_SERVICES, api_service(NAMES[0], "prometheus-adapter"))
    api.put(API_SERVICES, api_service(NAMES[1]))
    await ApiServiceAuthorities(api, "sublet-metrics-api", "sublet-system").publish(b"PEM", all_of_before=True)
    assert [name for _, _, name in api.writes] == [NAMES[1]]
    await ApiServiceAuthorities(api, "sublet-metrics-api", "sublet-system").publish(b"PEM", all_of_before=False)
    assert len(api.writes) == 1
