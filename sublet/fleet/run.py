"""`run_fleet` starts the servers, central and the simulated nodes, and takes all of it down again."""

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.errors import Unavailable
from shared.ports import Bus
from sublet.fleet.central_process import CENTRAL_START_S, NODE, CentralProcess
from sublet.fleet.herd import Herd, of_connections
from sublet.fleet.plan import FleetPlan
from sublet.fleet.report import FleetReport
from sublet.fleet.servers import FleetHub, FleetLeaf
from sublet.fleet.simulated_node import SimulatedNode
from sublet.fleet.stages import Fleet, FleetCluster, Progress, Stages

CONNECT_S = 20.0
API_START_S, API_START_A_NODE_S = 60.0, 0.02


async def run_fleet(plan: FleetPlan, progress: Progress, cluster: FleetCluster | None = None) -> FleetReport:
    """Measure one fleet; nothing of it is left behind.

    `cluster`: one that has these nodes already; None: an API server of its own, if the plan wants one.

    Raises:
        Unavailable: a part does not start, or ends; says which, and what it said last.
    """
    telemetry.setup_logging("fleet", "fleet", as_json=False, level="critical")
    with tempfile.TemporaryDirectory(prefix="sublet-fleet-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        progress(f"{plan.nodes} nodes: servers start")
        hub = FleetHub(folder / "hub", plan.shards)
        running.callback(hub.stop)
        hub.start()
        leaves = [FleetLeaf(folder / f"leaf-{number}", hub) for number in range(plan.leaves)]
        for leaf in leaves:
            running.callback(leaf.stop)
            leaf.start()
        if cluster is None and plan.cluster:
            cluster = _own_cluster(running.enter_context(_api_server(folder, plan.nodes)))
        kubeconfig = None if cluster is None else cluster.kubeconfig
        names = [NODE, *(f"{NODE}-{number}" for number in range(1, plan.shards))]
        centrals = [CentralProcess(folder / f"of-{one}", hub.central_url, kubeconfig, plan, one) for one in names]
        for central in centrals:
            running.callback(central.stop)
            central.start()
            if central is centrals[0]:  # is there before the others, and leads
                await central.wait_for_metrics(CENTRAL_START_S)
        nodes = [SimulatedNode(one) for one in plan.names()]
        async with _connected(hub.central_url, [leaf.url for leaf in leaves], plan) as (bus, connections):
            parts = zip(connections, of_connections(nodes, len(connections)), strict=True)
            herds = [Herd(one, SystemClock(), some, plan.period_s) for one, some in parts]
            fleet = Fleet(plan, SystemClock(), hub, leaves, centrals, bus, herds, nodes, cluster, progress)
            return await _measured(fleet)


async def _measured(fleet: Fleet) -> FleetReport:
    herds = [asyncio.create_task(herd.run(), name="herd") for herd in fleet.herds]
    stages = asyncio.create_task(Stages(fleet).run(), name="stages")
    try:
        # A herd works for ever: one that has ended is a fault, and no figure is worth anything then.
        await asyncio.wait([*herds, stages], return_when=asyncio.FIRST_COMPLETED)
        for herd in herds:
            if herd.done():
                await herd
        return await stages
    finally:
        stages.cancel()
        for herd in herds:
            herd.cancel()
        await asyncio.gather(*herds, stages, return_exceptions=True)


@contextlib.asynccontextmanager
async def _connected(central_url: str, leaves: list[str], plan: FleetPlan) -> AsyncIterator[tuple[Bus, list[Bus]]]:
    """A connection to ask central by, and those of the nodes."""
    clock = SystemClock()

    async def one(url: str, name: str) -> Bus:
        return await connect(url, name=name, connect_timeout_s=CONNECT_S, clock=clock)

    async with contextlib.AsyncExitStack() as open_now:
        asking = await one(central_url, "fleet/asks")
        open_now.push_async_callback(asking.drain)
        nodes: list[Bus] = []
        for number in range(plan.connections):
            nodes.append(await one(leaves[number % len(leaves)], f"fleet/nodes-{number}"))
            open_now.push_async_callback(nodes[-1].drain)
        yield asking, nodes


@contextlib.contextmanager
def _api_server(folder: Path, nodes: int) -> Iterator[Path]:
    """An API server of its own process; gives the kubeconfig for it.

    Raises:
        Unavailable: it does not come up.
    """
    file = folder / "kubeconfig"
    command = [sys.executable, "-m", "sublet.fleet.api_server", "--nodes", str(nodes), "--kubeconfig", str(file)]
    with (folder / "api.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        _wait_for(file, process, API_START_S + nodes * API_START_A_NODE_S, folder / "api.log")
        yield file
    finally:
        process.terminate()
        process.communicate()


def _wait_for(file: Path, process: "subprocess.Popen[bytes]", limit_s: float, log: Path) -> None:
    clock = SystemClock()
    deadline_s = clock.monotonic() + limit_s
    while not file.exists():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        if process.poll() is not None or clock.monotonic() > deadline_s:
            said = log.read_text(errors="replace").strip().splitlines()
            raise Unavailable(f"the fleet's API server does not come up: {said[-1][:500] if said else 'no word'}")


def _own_cluster(kubeconfig: Path) -> FleetCluster:
    address = str(json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])

    async def writes() -> int:
        async with aiohttp.ClientSession() as session, session.get(f"{address}/fleet/writes") as response:
            return int((await response.json())["writes"])

    return FleetCluster(kubeconfig, writes)
