"""Nodes on paper at a real API server: their objects, made once, and then written as often as kubelets and agents do.

    python -m bench.kubernetes.paper_fleet --nodes 1000 --kubeconfig FILE --made FILE

It makes the file `--made` once all objects are there, and ends when its standard input does.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from services.central.core.objects.nodes import NODE_LEASES
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.contracts.pod import RECLAIMED_CPU
from shared.core.api_kind import CNCS, CNRS, LEASES, NODES, PODS
from shared.errors import Unavailable
from sublet.fleet import documents
from sublet.fleet.api_objects import turns
from sublet.fleet.api_server import LEASE_S, NODE_OBJECT_S, NODE_STATUS_S, TICK_S
from sublet.fleet.plan import FleetPlan

KUBELET, REPORTER = "kubelet", "sublet-reporter"
AT_ONCE = 24
"""Requests under way; more of them would make each wait, and none be answered sooner."""
NAMESPACES, ACCOUNTS = "/api/v1/namespaces", f"/api/v1/namespaces/{documents.AGENT_NAMESPACE}/serviceaccounts"


class PaperFleet:
    """The objects of these nodes, and who writes them."""

    def __init__(self, kube: Kube, names: list[str]) -> None:
        self._kube, self._names = kube, names
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting: set[tuple[str, str]] = set()
        self.refused = 0
        """Writes that the API server did not take."""
        self.left_out = 0
        """Writes that were due while the same one of that node was still waiting."""

    async def make(self) -> None:
        """Everything that is there before anybody looks."""
        for path, name in ((NAMESPACES, documents.AGENT_NAMESPACE), (ACCOUNTS, "default")):
            await self._kube.create(path, {"metadata": {"name": name}}, manager=KUBELET)
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(self._names):
                group.create_task(self._make_one(number, name))

    async def _make_one(self, number: int, name: str) -> None:
        async with self._room:
            node = documents.node(number, name)
            uid = (await self._created(NODES.collection(), node, KUBELET))["metadata"]["uid"]
            await self._status(NODES.path(name), node["status"], KUBELET)
            # What belongs to a Node names the identity that the API server has given to it.
            owned = (documents.lease(name), documents.node_object(number, name), documents.node_config(number, name))
            lease, cnr, cnc = (_renamed(one, documents.uid(f"node/{name}"), uid) for one in owned)
            lease["spec"]["renewTime"] = _now()
            await self._created(LEASES.collection(NODE_LEASES), lease, KUBELET)
            await self._created(CNRS.collection(), cnr, REPORTER)
            await self._status(CNRS.path(name), cnr["status"], REPORTER)
            await self._created(CNCS.collection(), cnc, REPORTER)
            agent = documents.agent(name)
            # On the host's network and without a token, as nobody is there who could give it either.
            agent["spec"] |= {"hostNetwork": True, "automountServiceAccountToken": False,
                              "containers": [{"name": "agent", "image": "none"}]}  # fmt: skip
            await self._created(PODS.collection(documents.AGENT_NAMESPACE), agent, KUBELET)
            path = PODS.path(agent["metadata"]["name"], documents.AGENT_NAMESPACE)
            await self._status(path, agent["status"], KUBELET)

    async def live(self) -> None:
        """Let the nodes live until cancelled: leases, offers that move, and an unchanged Node now and then."""
        count, loop = len(self._names), asyncio.get_running_loop()
        lives: tuple[tuple[Callable[[str], Awaitable[object]], float], ...] = (
            (self._renew, LEASE_S), (self._offer, NODE_OBJECT_S), (self._look_well, NODE_STATUS_S)
        )  # fmt: skip
        due = [(write, turns(count, every_s, TICK_S)) for write, every_s in lives]
        next_s = loop.time()
        async with asyncio.TaskGroup() as group:
            while True:
                for write, places in due:
                    for place in next(places):
                        self._write_soon(group, write, self._names[place % count])
                next_s += TICK_S
                await asyncio.sleep(max(0.0, next_s - loop.time()))

    def _write_soon(self, group: asyncio.TaskGroup, write: Callable[[str], Awaitable[object]], name: str) -> None:
        # As a kubelet does, which has one request under way: a slow server gets no heap of old ones.
        if (write.__name__, name) in self._waiting:
            self.left_out += 1
            return
        self._waiting.add((write.__name__, name))
        group.create_task(self._written(write, name))

    async def _written(self, write: Callable[[str], Awaitable[object]], name: str) -> None:
        try:
            async with self._room:
                await write(name)
        except (KubeError, Unavailable):
            self.refused += 1
        finally:
            self._waiting.discard((write.__name__, name))

    async def _renew(self, name: str) -> Document:
        return await self._kube.merge(
            LEASES.path(name, NODE_LEASES), {"spec": {"renewTime": _now()}}, manager=KUBELET
        )  # fmt: skip

    async def _offer(self, name: str) -> Document:
        millis = f"{30_000 + datetime.now(UTC).microsecond // 1000}"
        return await self._status(CNRS.path(name), {"resourceAllocatable": {RECLAIMED_CPU: millis}}, REPORTER)

    async def _look_well(self, name: str) -> Document:
        rows = documents.node(0, name)["status"]["conditions"]
        return await self._status(
            NODES.path(name), {"conditions": [row | {"lastHeartbeatTime": _now()[:19] + "Z"} for row in rows]}, KUBELET
        )

    async def _created(self, collection: str, document: Document, manager: str) -> Document:
        # What only a server writes, it writes itself.
        own = {"uid", "creationTimestamp", "managedFields"}
        metadata = {name: value for name, value in document["metadata"].items() if name not in own}
        return await self._kube.create(collection, {**document, "metadata": metadata}, manager=manager)

    async def _status(self, path: str, status: Document, manager: str) -> Document:
        return await self._kube.merge(f"{path}/status", {"status": status}, manager=manager)


def _renamed(document: Document, old: str, new: str) -> Document:
    found: Document = json.loads(json.dumps(document).replace(old, new))
    return found


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def live(nodes: int, kubeconfig: Path, made: Path) -> None:
    """Make so many nodes and let them live until standard input ends."""
    kube = Kube(kubeconfig)
    fleet = PaperFleet(kube, FleetPlan(nodes).names())
    try:
        await fleet.make()
        made.touch()
        living = asyncio.create_task(fleet.live())
        await asyncio.to_thread(sys.stdin.buffer.read)
        living.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await living
        print(
            f"writes of kubelets and agents: {fleet.refused} not taken, {fleet.left_out} left out, for the one before "
            "was still on its way", file=sys.stderr,
        )  # fmt: skip
    finally:
        await kube.close()


def main() -> None:
    """Read the command line and live."""
    words = argparse.ArgumentParser(prog="python -m bench.kubernetes.paper_fleet")
    words.add_argument("--nodes", type=int, required=True)
    words.add_argument("--kubeconfig", type=Path, required=True)
    words.add_argument("--made", type=Path, required=True)
    chosen = words.parse_args()
    asyncio.run(live(chosen.nodes, chosen.kubeconfig, chosen.made))


if __name__ == "__main__":
    main()
