"""An API server on loopback for a fleet: nodes, their leases, agents' pods and objects, which change as in a cluster.

    python -m sublet.fleet.api_server --nodes 1000 --kubeconfig FILE

It writes a kubeconfig to the file once it answers, and ends when its standard input does. It knows what central asks
for, and nothing else: no rights, no admission, no history of versions.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp.web as web

from services.central.core.objects.nodes import NODE_LEASES
from shared.adapters.files.replaced import write_whole
from shared.core.api_kind import CNCS, CNRS, LEASES, NODES, PODS
from sublet.fleet import documents
from sublet.fleet.api_objects import ApiObjects, Document, InTheWay, NotThere, turns
from sublet.fleet.plan import FleetPlan

TICK_S = 0.1
LEASE_S, NODE_OBJECT_S, NODE_STATUS_S = 10.0, 60.0, 300.0
"""How often a kubelet renews its lease, a reporter writes what has changed, and a kubelet an unchanged Node."""
BOOKMARK_S = 30.0
PAGE = 500
KUBELETS_LEASES = LEASES.collection(NODE_LEASES)
AGENTS = PODS.collection(documents.AGENT_NAMESPACE)
EVERYWHERE = {PODS.collection(): AGENTS}
"""Collections of all namespaces, and the only one of which there are any here."""


class FleetApi:
    """The server and the life of its nodes."""

    def __init__(self, names: list[str]) -> None:
        self._names, self._objects = names, ApiObjects()
        for number, name in enumerate(names):
            self._objects.put(NODES.collection(), documents.node(number, name))
            self._objects.put(CNRS.collection(), documents.node_object(number, name))
            self._objects.put(CNCS.collection(), documents.node_config(number, name))
            self._objects.put(KUBELETS_LEASES, documents.lease(name))
            self._objects.put(AGENTS, documents.agent(name))

    async def live(self) -> None:
        """Let the nodes live until cancelled."""
        count, loop = len(self._names), asyncio.get_running_loop()
        lives = ((KUBELETS_LEASES, LEASE_S), (CNRS.collection(), NODE_OBJECT_S), (NODES.collection(), NODE_STATUS_S))
        due = [(collection, turns(count, every_s, TICK_S)) for collection, every_s in lives]
        next_s = loop.time()
        while True:
            renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            for collection, places in due:
                spec = {"renewTime": renewed} if collection == KUBELETS_LEASES else {}
                for place in next(places):
                    self._objects.touch(collection, self._names[place % count], **spec)
            next_s += TICK_S
            await asyncio.sleep(max(0.0, next_s - loop.time()))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        if request.query.get("watch"):
            return await self._watch(request)
        try:
            return web.json_response(await self._answer(request))
        except NotThere as error:
            return _status(404, f"{error} not found", "NotFound")
        except InTheWay as error:
            return _status(409, str(error), "Conflict")

    async def _answer(self, request: web.Request) -> Document:
        path = request.path
        if path == "/fleet/writes":
            return {"writes": self._objects.writes}
        match request.method:
            case "GET" if _is_object(path):
                return self._objects.get(path)
            case "GET":
                return self._list(path, request)
            case "POST":
                return self._objects.create(path, await request.json())
            case "PATCH":
                status = path.endswith("/status")
                return self._objects.change(path.removesuffix("/status"), await request.json(), status=status)
            case "DELETE":
                return self._objects.delete(path)
        raise NotThere(f"{request.method} {path}")

    def _list(self, path: str, request: web.Request) -> Document:
        first, size = int(request.query.get("continue") or 0), int(request.query.get("limit") or PAGE)
        items, left = self._objects.page(EVERYWHERE.get(path, path), first, size)
        more = {"continue": str(first + len(items))} if left else {}
        return {"metadata": {"resourceVersion": str(self._objects.version), **more}, "items": items}

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        collection = EVERYWHERE.get(request.path, request.path)
        response = web.StreamResponse()
        await response.prepare(request)
        queue = self._objects.watch(collection)
        try:
            while True:
                try:
                    async with asyncio.timeout(BOOKMARK_S):
                        line = await queue.get()
                except TimeoutError:
                    line = (
                        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n' % self._objects.version
                    )
                if line is None:
                    return response
                lines = [line]
                while not queue.empty() and (more := queue.get_nowait()) is not None:
                    lines.append(more)
                await response.write(b"".join(lines))
        finally:
            self._objects.unwatch(collection, queue)


def _is_object(path: str) -> bool:
    """Whether a path leads to an object, and not to a collection."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    return len(rest) in (2, 4) and not (len(rest) == 2 and rest[0] == "namespaces")


def _status(code: int, message: str, reason: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message, "reason": reason}, status=code)


@contextlib.asynccontextmanager
async def serving(api: FleetApi) -> AsyncIterator[str]:
    """The server on loopback; gives its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def kubeconfig(server: str) -> str:
    """The way to it."""
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "fleet",
        "clusters": [{"name": "fleet", "cluster": {"server": server}}],
        "users": [{"name": "central", "user": {"token": "none"}}],
        "contexts": [{"name": "fleet", "context": {"cluster": "fleet", "user": "central"}}],
    })  # fmt: skip


async def serve(nodes: int, file: Path) -> None:
    """Serve so many nodes until standard input ends."""
    api = FleetApi(FleetPlan(nodes).names())
    async with serving(api) as server:
        write_whole(file, kubeconfig(server).encode(), mode=0o600)
        living = asyncio.create_task(api.live())
        await asyncio.to_thread(sys.stdin.buffer.read)
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)


def main() -> None:
    """Read the command line and serve."""
    words = argparse.ArgumentParser(prog="python -m sublet.fleet.api_server")
    words.add_argument("--nodes", type=int, required=True)
    words.add_argument("--kubeconfig", type=Path, required=True)
    chosen = words.parse_args()
    asyncio.run(serve(chosen.nodes, chosen.kubeconfig))


if __name__ == "__main__":
    main()
