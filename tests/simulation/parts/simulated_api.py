"""The API server of the simulated world, and clients whose ways fail: refused, silent, answers lost, watches broken."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from random import Random

from kube_api import Api, Document, FakeKube, _collections, _status, _wanted
from seeded_loop import CURRENT, Process

from shared.adapters.kube.client import SILENCE_S, Gone, KubeError, KubeRequest
from shared.errors import Unavailable

LEAST_S, MOST_S = 0.001, 0.02
BOOKMARK_S = 10.0
REFUSALS = (429, 500, 503)


@dataclass
class Route:
    """One client's way to the API server. Chances are of each request."""

    away: bool = False
    """No answer at all, and watches fall silent."""
    refusing: float = 0.0
    """Answered with 429, 500 or 503, and not done."""
    conflicts: float = 0.0
    """Writes answered with 409, and not done."""
    lost_answers: float = 0.0
    """Done, and the answer is lost."""
    slow_s: float = 0.0
    """How much longer an answer may take."""
    breaks: float = 0.0
    """Of each event of a watch: the watch breaks, half of the time with 410."""


class SimApi(Api):
    """Objects, budgets and evictions as measured on real servers; `done` is told of each request carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.done: Callable[[Process | None, KubeRequest, int], None] = lambda _process, _request, _status: None
        self.ended: Callable[[str, Document, bool], None] = lambda _path, _pod, _had_uid: None
        """Told of each pod that an eviction has sent on its way, and whether the call said whom it means."""
        self.pods_version = 0
        """Grows with each change of a pod."""
        self._listeners: dict[str, dict[asyncio.Event, None]] = {}
        """By collection; in the order in which they came, for a set's is another one in each process."""

    def listen(self, path: str, event: asyncio.Event) -> None:
        """Wake somebody when a collection changes."""
        self._listeners.setdefault(path, {})[event] = None

    def forget(self, path: str, event: asyncio.Event) -> None:
        """No more."""
        self._listeners.get(path, {}).pop(event, None)

    def _tell(self, kind: str, one: Document, path: str) -> None:
        super()._tell(kind, one, path)
        self.pods_version += "/pods/" in path
        for collection in _collections(path):
            for event in self._listeners.get(collection, ()):
                event.set()

    def changes(self, path: str) -> list[Document]:
        """What has happened to a collection so far."""
        return self._changes.setdefault(path, [])

    def _end(self, path: str, pod: Document, options: Document) -> None:
        super()._end(path, pod, options)
        self.ended(path, pod, "uid" in (options.get("preconditions") or {}))


class SimKube(FakeKube):
    """One client."""

    def __init__(self, api: SimApi, process: Process, route: Route, random: Random) -> None:
        super().__init__(api)
        self.server, self.process, self.route, self._random = api, process, route, random
        self.asked: Callable[[KubeRequest], None] = lambda _request: None
        """Told of each request as it leaves."""

    async def send(self, request: KubeRequest) -> Document:
        """One request and its answer."""
        self.process.step()
        what, route = f"{request.method} {request.path}", self.route
        self.asked(request)
        await asyncio.sleep(self._random.uniform(LEAST_S, MOST_S) + self._random.uniform(0.0, route.slow_s))
        if self._cut_off():
            await asyncio.sleep(min(request.limit.total or SILENCE_S, SILENCE_S))
            raise Unavailable(f"{what}: no answer from the API server")
        code = self._refusal(request)
        if code:
            raise KubeError(what, code, _status(code, "the simulated server says so"))
        plain = {key: str(value) for key, value in (request.query or {}).items()}
        body = json.loads(json.dumps(request.body))
        status, document = self.server.handle(request.method, request.path, plain, body, request.content)
        self.server.requests.clear()
        self.server.done(CURRENT.get(), request, status)
        self.process.step()
        await asyncio.sleep(self._random.uniform(LEAST_S, MOST_S))
        if self._cut_off() or (route.lost_answers and self._random.random() < route.lost_answers):
            await asyncio.sleep(min(request.limit.total or SILENCE_S, SILENCE_S))
            raise Unavailable(f"{what}: the answer got lost")
        if status >= 400:
            raise KubeError(what, status, document)
        return document

    def _cut_off(self) -> bool:
        return self.route.away

    def _refusal(self, request: KubeRequest) -> int:
        route = self.route
        if route.refusing and self._random.random() < route.refusing:
            return self._random.choice(REFUSALS)
        if request.method != "GET" and route.conflicts and self._random.random() < route.conflicts:
            return 409
        return 0

    async def watch(self, path: str, version: str, **query: object) -> AsyncGenerator[Document, None]:
        """Events of a collection, bookmarks among them."""
        wanted = {key: str(value) for key, value in query.items()}
        news, told, silent_s = asyncio.Event(), 0, 0.0
        if self._cut_off():
            raise Unavailable(f"watch {path}: no answer")
        self.server.listen(path, news)
        try:
            while True:
                changes = self.server.changes(path)
                while told < len(changes) and not self._cut_off():
                    event = changes[told]
                    told += 1
                    one = event["object"]
                    if int(one["metadata"]["resourceVersion"]) <= int(version) or not _wanted(one, wanted):
                        continue
                    if self.route.breaks and self._random.random() < self.route.breaks:
                        self._break(path)
                    silent_s = 0.0
                    yield event
                news.clear()
                try:
                    async with asyncio.timeout(BOOKMARK_S):
                        await news.wait()
                except TimeoutError:
                    silent_s = silent_s + BOOKMARK_S if self._cut_off() else 0.0
                    if silent_s >= SILENCE_S:
                        raise Unavailable(f"watch {path}: silent") from None
                    if not self._cut_off():
                        yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}
                # An event is a moment on its way.
                await asyncio.sleep(self._random.uniform(LEAST_S, MOST_S))
        finally:
            self.server.forget(path, news)

    def _break(self, path: str) -> None:
        if self._random.random() < 0.5:
            raise Gone(f"watch {path}: too old resource version")
        raise Unavailable(f"watch {path}: broken off")
