"""An API server in memory, by the paths of its reference: what Sublet relies on, as it was measured on a real one.

Pods with budgets, evictions and watches behave as measured (docs/facts/kubernetes.md#eviction-measured,
docs/facts/kubernetes.md#watch-of-an-old-version). `FakeKube` is a `Kube` over it without a wire; `serving` puts it
behind real HTTP.
"""

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from shared.adapters.kube.client import Kube, KubeError, KubeRequest
from shared.errors import Unavailable
from shared.fakes.server_side_apply import Appliers, copied

Document = dict[str, Any]
TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
REASONS = {404: "NotFound"}
NO_SLOT = "Cannot evict pod as it would violate the pod's disruption budget."


class Refusal(Exception):
    """A Status with its code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Api:
    """Objects by path. `failing` is the status that everything is answered with, 0 for none; `away` answers nobody."""

    def __init__(self) -> None:
        self.objects: dict[str, Document] = {}
        self.budgets: dict[str, dict[str, Any]] = {}
        """By budget, the label `app` it selects and what it still allows."""
        self.burnt = 0
        """Slots that a refused eviction has cost."""
        self.requests: list[tuple[str, str, Document | None]] = []
        self.writers: set[tuple[str, str]] = set()
        """Of what was made or changed, the path, and under whose name as field manager; "" for nobody's."""
        self.failing, self.away = 0, False
        self.refuse: dict[tuple[str, str], int] = {}
        """By method and path, a status in place of the answer."""
        self.before_write: Callable[[], None] = lambda: None
        """What somebody else does right before the next write."""
        self._version = 1
        self._appliers: dict[str, Appliers] = {}
        self._changes: dict[str, list[Document]] = {}
        self._changed = asyncio.Event()

    def put(self, path: str, document: Mapping[str, Any]) -> Document:
        """Somebody writes a whole object."""
        before = self.objects.get(path, {})
        made: Document = copied(dict(document))
        self._version += 1
        meta = made.setdefault("metadata", {})
        meta["resourceVersion"] = str(self._version)
        meta.setdefault("name", path.rpartition("/")[2])
        meta.setdefault("uid", f"uid-{self._version}")
        changed = not before or before.get("spec") != made.get("spec")
        meta["generation"] = before.get("metadata", {}).get("generation", 0) + changed
        self.objects[path] = made
        self._tell("MODIFIED" if before else "ADDED", made, path)
        return made

    def go_away(self) -> None:
        """Answer nobody, and break off all watches."""
        self.away = True
        self._changed.set()

    def remove(self, path: str) -> None:
        """Somebody deletes an object."""
        if (gone := self.objects.pop(path, None)) is not None:
            self._tell("DELETED", gone, path)

    def run_pod(self, name: str, uid: str, *, node: str = "n1", app: str = "", **parts: Any) -> Document:
        """A pod that runs on a node."""
        meta = {"name": name, "namespace": "default", "uid": uid, "labels": {"app": app}, **parts.pop("metadata", {})}
        spec = {"nodeName": node, "containers": [{"name": "main"}], **parts.pop("spec", {})}
        return self.put(
            pod_path(name), {"metadata": meta, "spec": spec, "status": {"phase": "Running", **parts.pop("status", {})}}
        )

    def end_terminating(self) -> None:
        """The kubelets have ended what was to end."""
        for path in [path for path, one in self.objects.items() if one["metadata"].get("deletionTimestamp")]:
            self.remove(path)

    def handle(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None, content: str = ""
    ) -> tuple[int, Document]:
        """Answer one request."""
        if query.get("dryRun") == "All":  # the answer is that of the change, and nothing has changed
            kept = {name: value for name, value in query.items() if name != "dryRun"}
            return copy.deepcopy(self).handle(method, path, kept, body, content)
        self.requests.append((method, path, copied(body)))
        if method in ("POST", "PATCH"):
            self.writers.add((path, query.get("fieldManager", "")))
        code = self.failing or self.refuse.get((method, path), 0)
        if code:
            return code, _status(code, "the test says so")
        try:
            match method:
                case "GET":
                    return 200, copied(self.objects[path]) if path in self.objects else self._list(path, query)
                case "POST" if path.endswith("/eviction"):
                    return 201, self._evict(path.removesuffix("/eviction"), body or {})
                case "POST":
                    return 201, self._create(path, body or {})
                case "PATCH":
                    self.before_write, before = (lambda: None), self.before_write
                    before()
                    manager = query.get("fieldManager", "somebody") if "apply" in content else ""
                    return 200, self._patch(path, body or {}, manager)
                case "DELETE":
                    return 200, self._delete(path, body or {})
                case _:
                    return 405, _status(405, method)
        except Refusal as refusal:
            return refusal.code, _status(refusal.code, refusal.message)

    async def events(self, path: str, version: str, query: Mapping[str, str]) -> AsyncIterator[Document]:
        """A watch: what has changed in a collection after a version, for as long as the server is there."""
        told = 0
        while not self.away:
            for event in self._changes.get(path, [])[told:]:
                told += 1
                one = event["object"]
                if int(one["metadata"]["resourceVersion"]) > int(version) and _wanted(one, query):
                    yield event
            self._changed.clear()
            await self._changed.wait()

    def _list(self, path: str, query: Mapping[str, str]) -> Document:
        if _collections(path):
            raise Refusal(404, f"{path} not found")
        found = [one for at, one in sorted(self.objects.items()) if path in _collections(at) and _wanted(one, query)]
        return {"metadata": {"resourceVersion": str(self._version)}, "items": copied(found)}

    def _create(self, path: str, body: Document) -> Document:
        at = f"{path}/{body['metadata'].get('name', self._version)}"
        if at in self.objects:
            raise Refusal(409, f"{at} already exists")
        return self.put(at, {key: value for key, value in body.items() if key != "status"})

    def _delete(self, path: str, options: Document) -> Document:
        standing = self.objects.get(path)
        if standing is None:
            raise Refusal(404, f"{path} not found")
        uid = (options.get("preconditions") or {}).get("uid")
        if uid not in (None, standing["metadata"]["uid"]):
            raise Refusal(409, f"Precondition failed: UID in precondition: {uid}")
        self.remove(path)
        return _status(200, "Success")

    def _patch(self, path: str, change: Document, manager: str) -> Document:
        """A merge patch, or what a manager applies; the status is written apart."""
        own, status = path.removesuffix("/status").removesuffix("/resize"), path.endswith("/status")
        if own not in self.objects:
            if not manager or status:
                raise Refusal(404, f"{own} not found")
            self.put(own, {key: value for key, value in change.items() if key not in ("spec", "status")})
        standing = self.objects[own]
        wanted = (change.get("metadata") or {}).pop("resourceVersion", None)
        if wanted not in (None, standing["metadata"]["resourceVersion"]):
            raise Refusal(409, "the object has been modified; please apply your changes to the latest version")
        uid = standing["metadata"]["uid"]
        if (change.get("metadata") or {}).get("uid", uid) != uid:
            raise Refusal(422, f'"{own}" is invalid: metadata.uid: Invalid value: field is immutable')
        said = {key: value for key, value in change.items() if (key == "status") == status}
        if manager:
            appliers = self._appliers.setdefault(standing["metadata"]["uid"], Appliers())
            merged = appliers.apply(standing, said, f"{manager}/{status}")
        else:
            merged = _merged(standing, said)
        answer: Document = copied(self.put(own, merged) if merged != standing else standing)
        return answer

    def _evict(self, path: str, body: Document) -> Document:
        if body.get("apiVersion") != "policy/v1":
            raise Refusal(400, "want policy/v1")
        pod = self.objects.get(path)
        if pod is None:
            raise Refusal(404, f"{path} not found")
        options = body.get("deleteOptions") or {}
        dry, terminating = "dryRun" in options, bool(pod["metadata"].get("deletionTimestamp"))
        budget = None if terminating else self._budget(pod)
        if budget is not None and not dry:  # before the preconditions are looked at: a wrong one burns it (M2, M3)
            budget["allowed"] -= 1
        for field, value in (options.get("preconditions") or {}).items():
            if pod["metadata"][field] != value:
                self.burnt += budget is not None and not dry
                raise Refusal(409, f"Precondition failed: {field} in precondition: {value}")
        if not dry and not terminating:
            self._end(path, pod, options)
        return _status(201, "Success")

    def _end(self, path: str, pod: Document, options: Document) -> None:
        self.put(path, _merged(pod, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
        if options.get("gracePeriodSeconds") == 0:
            self.remove(path)

    def _budget(self, pod: Document) -> dict[str, Any] | None:
        """The budget that allows one more of this pod's to go; None where it is under none."""
        budgets = [one for one in self.budgets.values() if one["app"] == pod["metadata"]["labels"]["app"]]
        if len(budgets) > 1:
            raise Refusal(500, TWO_BUDGETS)
        if budgets and budgets[0]["allowed"] < 1:
            raise Refusal(429, NO_SLOT)
        return budgets[0] if budgets else None

    def _tell(self, kind: str, one: Document, path: str) -> None:
        told = copied(one)
        if kind == "DELETED":
            self._version += 1
            told["metadata"]["resourceVersion"] = str(self._version)
        for collection in _collections(path):
            self._changes.setdefault(collection, []).append({"type": kind, "object": told})
        self._changed.set()


class FakeKube(Kube):
    """A client of that server without a wire."""

    def __init__(self, api: Api) -> None:
        super().__init__()
        self._api = api

    async def send(self, request: KubeRequest) -> Document:
        """One request and its answer."""
        what = f"{request.method} {request.path}"
        if self._api.away:
            raise Unavailable(f"{what}: no answer from the API server")
        plain = {key: str(value) for key, value in (request.query or {}).items()}
        body = json.loads(json.dumps(request.body))
        status, document = self._api.handle(request.method, request.path, plain, body, request.content)
        if status >= 400:
            raise KubeError(what, status, document)
        return document

    async def watch(self, path: str, version: str, **query: object) -> Any:
        """Events of a collection."""
        events = self._api.events(path, version, {key: str(value) for key, value in query.items()})
        async with contextlib.aclosing(events):  # type: ignore[type-var]
            async for event in events:
                yield event


@contextlib.asynccontextmanager
async def serving(api: Api, folder: Path) -> AsyncIterator[Path]:
    """The server behind HTTP; gives a kubeconfig for it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if api.away and request.transport is not None:
            request.transport.abort()
            return web.Response()
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            events = api.events(request.path, request.query["resourceVersion"], request.query)
            async with contextlib.aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    await response.write(json.dumps(event).encode() + b"\n")
            return response
        body = json.loads(text) if (text := await request.text()) else None
        status, document = api.handle(request.method, request.path, request.query, body, request.content_type)
        return web.json_response(document, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        yield path
    finally:
        await runner.cleanup()


def pod_path(name: str) -> str:
    """Where a pod of the namespace `default` is."""
    return f"/api/v1/namespaces/default/pods/{name}"


def _status(code: int, message: str) -> Document:
    return {"kind": "Status", "code": code, "message": message, "reason": REASONS.get(code, str(code))}


def _collections(path: str) -> tuple[str, ...]:
    """Those that an object is in, by its path: of its namespace and of all; none for the path of a collection."""
    parts = path.split("/")
    root, rest = (parts[:3], parts[3:]) if path.startswith("/api/") else (parts[:4], parts[4:])
    space = rest[:2] if rest[0] == "namespaces" and len(rest) > 2 else []
    *kind, _ = rest[len(space) :]
    every = ["/".join([*root, *space, *kind]), "/".join([*root, *kind])]
    return tuple(dict.fromkeys(every)) if kind else ()


def _wanted(one: Document, query: Mapping[str, str]) -> bool:
    """Whether the selectors of a query, all of the form a.b=c, meet an object."""
    labels = one["metadata"].get("labels") or {}
    chosen = [part.partition("=") for part in query.get("labelSelector", "").split(",") if part]
    field, _, value = query.get("fieldSelector", "").partition("=")
    here: Any = one
    for part in filter(None, field.split(".")):
        here = (here or {}).get(part)
    return all(labels.get(key) == said for key, _, said in chosen) and (not field or here == value)


def _merged(standing: Any, change: Any) -> Any:
    """A JSON merge patch (RFC 7386); shares with what stands all that does not change."""
    if not isinstance(change, Mapping):
        return copied(change)
    result = dict(standing) if isinstance(standing, Mapping) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
