"""Over-committed nodes in memory: an API server with its webhook, a kubelet a node, and the controller."""

import asyncio
import copy
from collections.abc import Callable, Mapping
from typing import Any

from services.central.core.admission.allowed import AdmissionRequest
from services.central.core.overcommit.config_documents import OVERCOMMIT_CONFIGS
from services.central.core.overcommit.node_review import node_patch
from services.central.overcommit.controller import OvercommitController
from services.central.overcommit.view import OvercommitView
from services.central.settings import KubernetesSettings
from shared.adapters.clock import LoopClock
from shared.contracts.cluster.decision import Decided
from shared.contracts.kube.overcommit import DOMAIN, POOL_LABEL
from shared.core.api_kind import CNRS, NODES, ApiKind
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects

OWN = {"cpu": "4", "memory": "8Gi"}
Json = dict[str, Any]


class Decisions(list[Decided]):
    """Keeps what is said of nodes, and the last of each config."""

    def __init__(self) -> None:
        super().__init__()
        self.of_configs: dict[str, Decided] = {}

    def say(self, decided: Decided) -> None:
        if decided.about.kind == "nodeovercommitconfig":
            self.of_configs[decided.about.name] = decided
        elif not self or self[-1] != decided:
            self.append(decided)


class Dying(MemoryObjects):
    """Takes so many writes, and then answers nobody."""

    left = 10_000
    admit: Callable[[Json, Json, str], Json]

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Json | None:
        if self.left <= 0:
            raise Unavailable("died")
        self.left -= 1
        there = self.documents.get((kind.whole, "", document["metadata"]["name"]))
        stored = await super().patch(kind, document, status=status)
        if kind == NODES and status and there and stored:
            return self.put(NODES, self.admit(there, stored, "central"))
        return stored


class Cluster:
    """An API server with its webhook, a kubelet a node, and the controller."""

    def __init__(self, **settings: Any) -> None:
        self.clock = LoopClock()
        self.api, self.decisions, self.webhook = Dying(self.clock), Decisions(), True
        self.api.admit = self.admitted
        self.settings = KubernetesSettings.model_validate({"overcommit": {"enabled": True, **settings}})
        self.begin()

    def begin(self) -> None:
        """Another life of the controller."""
        view = OvercommitView(self.api)
        self.mirrors = [asyncio.ensure_future(mirror.run()) for mirror in view.mirrors]
        self.controller = OvercommitController(view, self.api, self.decisions, self.clock, self.settings)

    async def settled(self) -> None:
        """Controller and kubelets work until neither changes anything."""
        before: Any = None
        while before != self.api.documents:
            before = copy.deepcopy(self.api.documents)
            await asyncio.sleep(0)
            await self.controller.reconcile()
            for node in self.api.of(NODES):
                self.kubelet(node["metadata"]["name"])

    def node(self, name: str, pool: str | None = "p", bears: str | None = "9") -> None:
        status = {"allocatable": dict(OWN), "capacity": dict(OWN)}
        self.api.put(
            NODES, {"metadata": {"name": name, "labels": {POOL_LABEL: pool} if pool else {}}, "status": status}
        )
        self.says(name, bears)

    def says(self, name: str, bears: str | None, *conditions: Json, **more: str) -> None:
        ratios = {} if bears is None else {f"{DOMAIN}/{one}_overcommit_ratio": bears for one in ("cpu", "memory")}
        annotations = ratios | {f"{DOMAIN}/{key}": value for key, value in more.items()}
        status = {"conditions": list(conditions)}
        self.api.put(CNRS, {"metadata": {"name": name, "annotations": annotations}, "status": status})

    def config(self, name: str = "c", pool: str = "p", **ratios: str) -> None:
        spec = {"nodeOvercommitSelectorVal": pool, "resourceOvercommitRatio": ratios}
        self.api.put(OVERCOMMIT_CONFIGS, {"metadata": {"name": name}, "spec": spec})

    def kubelet(self, name: str, own: Mapping[str, str] = OWN) -> None:
        """Writes its figures where they are not there, as it does every ten seconds."""
        there = self.api.documents[NODES, "", name]
        if all(there["status"][field] == own for field in ("allocatable", "capacity")):
            return
        new = {**there, "status": {"allocatable": dict(own), "capacity": dict(own)}}
        stored = self.admitted(there, new, f"system:node:{name}")
        if stored != there:
            self.api.put(NODES, stored)

    def admitted(self, there: Json, new: Json, user: str) -> Json:
        fields = {"object": new, "oldObject": there, "subResource": "status", "userInfo": {"username": user}}
        stored = copy.deepcopy(new)
        for operation in node_patch(AdmissionRequest("u", "UPDATE", fields))[0] if self.webhook else ():
            *path, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
            place = stored
            for part in path:
                place = place[part]
            place[last] = operation["value"]
        return stored

    def cpu(self, name: str) -> str:
        return str(self.api.documents[NODES, "", name]["status"]["allocatable"]["cpu"])

    def annotations(self, name: str) -> Json:
        found: Json = self.api.documents[NODES, "", name]["metadata"].get("annotations") or {}
        return {key.removeprefix(f"{DOMAIN}/"): value for key, value in found.items()}

    def status(self, name: str = "c") -> tuple[list[str], dict[str, tuple[str, str]]]:
        found = self.api.documents[OVERCOMMIT_CONFIGS, "", name].get("status") or {}
        conditions = {row["type"]: (row["reason"], row["message"]) for row in found.get("conditions") or ()}
        return found.get("matchedNodeList") or [], conditions
