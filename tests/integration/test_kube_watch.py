"""A mirror of a collection over real HTTP: what a watch may do, and what the mirror makes of it."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from present import present
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.kube import client as kube_client
from shared.adapters.kube.client import Kube, KubeError
from shared.adapters.kube.watch import Collection, Mirror
from shared.errors import Unavailable

PATH = "/api/v1/pods"


class ApiServer:
    """Lists `items` in pages of `page` at most; each watch follows its script and then stays open, or ends."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self.scripts: deque[list[Any]] = deque()
        self.lists = self.watches = 0
        self.page = 2
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await self._watch(request)
        self.lists += 1
        start = int(request.query.get("continue", 0))
        end = start + min(self.page, int(request.query.get("limit", self.page)))
        names = sorted(self.items)[start:end]
        more = {"continue": str(end)} if end < len(self.items) else {}
        items = [_object(name, self.items[name]) for name in names]
        return web.json_response({"metadata": {"resourceVersion": "7", **more}, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watches += 1
        script = self.scripts.popleft() if self.scripts else ["stay"]
        if isinstance(script[0], int):
            return web.json_response({"message": "too old", "code": script[0]}, status=script[0])
        response = web.StreamResponse()
        await response.prepare(request)
        for step in script:
            if step == "stay":
                await asyncio.Event().wait()
            elif step == "break":
                present(request.transport).close()
            else:
                await response.write(json.dumps(step).encode() + b"\n")
        return response


def _object(name: str, value: str) -> dict[str, Any]:
    return {"metadata": {"uid": f"uid-{name}", "name": name}, "value": value}


def event(kind: str, name: str, value: str = "1") -> dict[str, Any]:
    return {"type": kind, "object": _object(name, value)}


TOO_OLD = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    api = ApiServer()
    app = web.Application()
    app.router.add_get("/{path:.*}", api.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield api
    await runner.cleanup()


@pytest.fixture
async def kube(server: ApiServer, tmp_path: Path) -> AsyncIterator[Kube]:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server.url}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    client = Kube(tmp_path / "kubeconfig")
    yield client
    await client.close()


@dataclass
class Mirrored:
    """A mirror at work, and a way to wait until it holds something."""

    mirror: Mirror[str]
    holds: Callable[[dict[str, str]], Awaitable[None]]


@pytest.fixture
async def mirrored(kube: Kube) -> AsyncIterator[Mirrored]:
    """A mirror at work, and a way to wait until it holds something."""
    changed = asyncio.Event()
    mirror = Mirror(Collection(kube, PATH), lambda o: o["value"], SystemClock(), changed=changed.set, roll=lambda: 0.0)
    task = asyncio.create_task(mirror.run())

    async def holds(wanted: dict[str, str]) -> None:
        async with asyncio.timeout(patience_s(20)):
            while mirror.age_s is None or dict(mirror.objects) != {f"uid-{k}": v for k, v in wanted.items()}:
                changed.clear()
                await changed.wait()

    yield Mirrored(mirror, holds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_all_pages_are_listed_and_events_are_followed(server: ApiServer, mirrored: Mirrored) -> None:
    server.items = dict.fromkeys("abcde", "1")
    server.scripts.append([event("ADDED", "f"), event("MODIFIED", "a", "2"), BOOKMARK, event("DELETED", "b"), "stay"])
    await mirrored.holds({"a": "2", "c": "1", "d": "1", "e": "1", "f": "1"})
    assert (server.lists, server.watches) == (3, 1)


@pytest.mark.parametrize("script", [[TOO_OLD], [410], [500], [event("ADDED", "x"), "break"], [event("ADDED", "x")]])
async def test_whatever_ends_a_watch_the_collection_is_listed_again(
    server: ApiServer, mirrored: Mirrored, script: list[Any]
) -> None:
    server.items = {"a": "1"}
    server.scripts.append(script)
    await mirrored.holds({"a": "1"})
    server.items = {"b": "1"}  # an event of which the watch never told
    await mirrored.holds({"b": "1"})


async def test_a_watch_that_falls_silent_is_broken(
    server: ApiServer, mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_client, "SILENCE_S", 0.2)
    server.items = {"a": "1"}
    await mirrored.holds({"a": "1"})
    server.items = {"b": "1"}
    await mirrored.holds({"b": "1"})


async def test_what_was_never_listed_is_not_an_empty_list(kube: Kube) -> None:
    mirror = Mirror(Collection(kube, PATH), lambda o: o, SystemClock())
    assert mirror.age_s is None
    with pytest.raises(Unavailable, match="not listed yet"):
        _ = mirror.objects


async def test_a_server_that_does_not_answer_is_unavailable_within_the_time(kube: Kube, server: ApiServer) -> None:
    server.scripts.append(["stay"])
    with pytest.raises(Unavailable, match="no answer from the API server"):
        await kube.call("GET", PATH, query={"watch": "true"}, timeout_s=0.2)


async def test_a_refusal_carries_the_servers_words(kube: Kube, server: ApiServer) -> None:
    server.scripts.append([410])
    with pytest.raises(KubeError, match="too old") as caught:
        await kube.get(PATH, watch="true")
    assert caught.value.status == 410


async def test_without_a_cluster_it_is_said_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="set `kubeconfig`"):
        await Kube(tmp_path / "nothing").get(PATH)


async def test_a_collection_of_objects_too_large_for_a_page_is_read_in_smaller_pages(
    kube: Kube, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the objects are that tenants make, a page is bounded, and none of them is left out."""
    monkeypatch.setattr(kube_client, "MAX_ANSWER_BYTES", 4000)
    server.page, server.items = 500, {f"pod-{number:02}": "x" * 900 for number in range(40)}
    found = await kube.list(PATH)
    assert [item["metadata"]["name"] for item in found["items"]] == sorted(server.items)


async def test_an_object_too_large_for_any_page_is_said(
    kube: Kube, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_client, "MAX_ANSWER_BYTES", 500)
    server.items = {"pod-1": "x" * 900}
    with pytest.raises(Unavailable, match="more than 500 bytes"):
        await kube.list(PATH)
