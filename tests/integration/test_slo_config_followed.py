"""Koordinator's ConfigMap through a real NATS server: a change works on a node, a bad one changes nothing."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from central_rig import central_on
from fixture_types import Until

from services.advisor.main import PLAN as ADVISOR
from services.central.cluster import ClusterControllers
from services.central.core.objects.node_slos import node_slo_of
from services.central.main import ClusterAccess, build_cluster
from services.central.settings import CentralSettings
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.app import Runner
from shared.core.api_kind import CONFIG_MAPS, NODE_SLOS, NODES
from shared.core.node_mode import NodeSwitch
from shared.fakes.fake_evictor import FakeEvictor
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import check, common_settings
from shared.wire import Wire

META = {"name": "slo-controller-config", "namespace": "koordinator-system"}
NODE = "node-1"
CENTRAL_SETTINGS = {"retry_s": 0.05, "kubernetes": {"slo": {"enabled": True}, "settle_s": 0.05}}


async def nothing() -> None:
    """Nothing to close."""


class Cluster:
    """An API server in memory, central and a node's advisor on connections of their own."""

    def __init__(self, api: MemoryObjects, central: ClusterControllers, node: Runner, url: str) -> None:
        self.api, self._central, self._node, self._url = api, central, node, url

    async def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command on that bus."""
        typed = [sys.executable, "-m", "sublet", *words]
        env = os.environ | {"SUBLET_NATS_URL": self._url, "SUBLET_NODE": "elsewhere"}
        return await asyncio.to_thread(subprocess.run, typed, env=env, text=True, capture_output=True)

    @property
    def refused(self) -> str:
        """What central says is wrong with it."""
        return "; ".join(self._central.state()["slo"]["refused"].values())

    def write(self, text: str) -> None:
        """The thresholds of the ConfigMap."""
        self.api.put(CONFIG_MAPS, {"metadata": META, "data": {"resource-threshold-config": text}})

    @property
    def policy(self) -> str:
        """The one that the advisor works by."""
        state: dict[str, Any] = dict(self._node.apps["advisor"].state()) if self._node.apps else {}
        return str(state.get("policy"))

    @property
    def node_slo(self) -> Any:
        """What the node's NodeSLO says of suppression."""
        document = self.api.documents.get((NODE_SLOS, "", NODE))
        return None if document is None else node_slo_of(document).spec["resourceUsedThresholdWithBE"]


@pytest.fixture
async def cluster(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    clock, stop = SystemClock(), asyncio.Event()
    hub, node = [await connect(nats_server.url, name=name, connect_timeout_s=10, clock=clock) for name in ("hub", NODE)]
    api = MemoryObjects(clock)
    api.put(NODES, {"metadata": {"name": NODE, "labels": {"pool": "hot"}}})
    access = ClusterAccess(
        api, Wire(hub, clock, node="hub", service="central"), FakeEvictor(clock), "central-0", nothing
    )
    settings = check(CentralSettings, CENTRAL_SETTINGS, where="central")
    controllers = build_cluster(access, clock, settings.kubernetes, NodeSwitch())
    central = central_on(
        Wire(hub, clock, node="hub", service="central"), clock, {"central": CENTRAL_SETTINGS}, cluster=controllers
    )
    common = common_settings({"node": NODE, "state_dir": tmp_path, "heartbeat_s": 0.2})
    agent = Runner([ADVISOR], node, clock, common, {})
    running = [asyncio.create_task(central.run()), asyncio.create_task(agent.run(stop))]
    try:
        yield Cluster(api, controllers, agent, nats_server.url)
    finally:
        stop.set()
        running[0].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            assert await running[1] == 0
        await asyncio.gather(*running, return_exceptions=True)
        await hub.drain()


async def test_a_change_works_on_the_node_and_a_bad_one_leaves_the_last_good(cluster: Cluster, until: Until) -> None:
    await until(lambda: cluster.policy == "adaptive")
    cluster.write(json.dumps({"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 55}}))
    await until(lambda: cluster.policy == "koordinator")
    await until(lambda: cluster.node_slo is not None and cluster.node_slo["cpuSuppressThresholdPercent"] == 55)
    cluster.write("{")
    await until(lambda: "the last good one holds" in cluster.refused)
    assert (cluster.policy, cluster.node_slo["cpuSuppressThresholdPercent"]) == ("koordinator", 55)
    said = await cluster.type("config", "slo", "--node", NODE, "-o", "json")
    assert json.loads(said.stdout)["keys"]["resource-threshold-config"]["strategy"]["cpuSuppressThresholdPercent"] == 55
    hot = {"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}}, "cpuSuppressThresholdPercent": 500}
    cluster.write(json.dumps({"clusterStrategy": {"enable": True}, "nodeStrategies": [hot]}))
    await until(lambda: cluster.node_slo["cpuSuppressThresholdPercent"] == 65)
    assert cluster.policy == "koordinator"
    cluster.write(json.dumps({"clusterStrategy": {"enable": False}}))
    await until(lambda: cluster.policy == "adaptive")
    await until(lambda: cluster.node_slo["enable"] is False)
