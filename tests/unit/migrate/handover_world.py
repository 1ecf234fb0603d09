"""A cluster of both agents in memory, which does what controllers and agents do, a little later."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.contracts.mode import NodeMode
from shared.core.api_kind import ADMIN_QOS_CONFIGS, KCCS
from shared.errors import Unavailable
from sublet.migrate.labels import AWAY, BEGUN, LEFT, TAKEOVER
from sublet.migrate.takeover.node_view import NodeView
from sublet.migrate.takeover.preparations import ClusterDocuments, ObjectChange

SECONDS = 4
"""How long everything takes here."""


def daemon_set() -> dict[str, Any]:
    meta = {"name": "koordlet", "namespace": "ks", "resourceVersion": "7"}
    containers = [{"name": "koordlet", "image": "koordlet:v1"}]
    return {"kind": "DaemonSet", "metadata": meta, "spec": {"template": {"spec": {"containers": containers}}}}


def config_map(text: str = '{"clusterStrategy": {"enable": true}}') -> dict[str, Any]:
    meta = {"name": "slo-controller-config", "namespace": "ks", "resourceVersion": "8"}
    return {"kind": "ConfigMap", "metadata": meta, "data": {"resource-threshold-config": text}}


@dataclass
class WorldNode:
    """One node: its labels, and since when they are so."""

    labels: dict[str, str] = field(default_factory=dict)
    changed_at_s: float = -1000.0
    mode: str = "observe"
    koordlet: bool = True
    suppresses: bool = True
    well: bool = True


class World:
    """See `HandoverCluster`: koordlet's pod, the NodeSLO and our mode follow the label, once the objects say so."""

    def __init__(self, *names: str, kccs: Any = (), configs: Any = ()) -> None:
        self.there = {name: WorldNode() for name in names}
        self.objects: dict[str, dict[str, Any]] = {"koordlet": daemon_set(), "slo-controller-config": config_map()}
        self.kccs, self.configs = list(kccs), list(configs)
        self.mode: NodeMode = "observe"
        self.changes: list[str] = []
        self.both_enforced: list[str] = []
        self.refuses = ""

    async def documents(self) -> ClusterDocuments:
        return ClusterDocuments(
            "sublet-system", self.kccs, self.configs, [self.objects["koordlet"]], self.objects["slo-controller-config"],
            self.mode,
        )  # fmt: skip

    async def nodes(self) -> Mapping[str, Mapping[str, str]]:
        return {name: dict(node.labels) for name, node in self.there.items()}

    async def hosts(self) -> frozenset[str]:
        return frozenset(name for name, node in self.there.items() if node.koordlet)

    async def view(self, node: str) -> NodeView:
        found = self.there[node]
        self.live(node)
        return NodeView(
            node, found.labels.get(TAKEOVER), called=False, ready=True,
            theirs=("ks/koordlet",) if found.koordlet else (), ours=True, observes=found.mode == "observe",
            well=found.well, why="" if found.well else "ServicesReady: qrm is silent", suppresses=found.suppresses,
        )  # fmt: skip

    def live(self, node: str) -> None:
        """What has happened on a node since its label was changed."""
        found = self.there[node]
        if asyncio.get_running_loop().time() - found.changed_at_s < SECONDS:
            return
        label = found.labels.get(TAKEOVER)
        text = self.objects["slo-controller-config"]["data"]["resource-threshold-config"]
        found.suppresses = not (label in (BEGUN, LEFT) and TAKEOVER in text)
        found.koordlet = not (label in AWAY and TAKEOVER in str(self.objects["koordlet"]))
        ours = [one["spec"] for one in self.configs if "nodeLabelSelector" in one["spec"]]
        modes = {one["nodeLabelSelector"]: one["config"]["sublet"]["mode"] for one in ours}
        found.mode = modes.get(f"{TAKEOVER}={label}", found.mode) if self.kccs else found.mode
        if found.koordlet and found.suppresses and found.mode == "enforce":
            self.both_enforced.append(node)

    async def change(self, change: ObjectChange) -> None:
        if change.title == self.refuses:
            raise Unavailable(f"{change.title}: forbidden")
        self.changes.append(change.title)
        body = {**change.body}
        if change.title.startswith(f"{KCCS.kind}/"):
            self.kccs = [body]
        elif change.title.startswith(f"{ADMIN_QOS_CONFIGS.kind}/"):
            name = change.title.partition("/")[2]
            meta = {**body["metadata"], "name": name, "namespace": "sublet-system", "uid": change.title}
            others = [one for one in self.configs if one["metadata"]["name"] != name]
            self.configs = [*others, {**body, "metadata": meta}]
        else:
            name = change.title.partition("/")[2]
            self.objects[name] = {**self.objects[name], **{key: body[key] for key in body if key != "metadata"}}

    async def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        found = self.there[node]
        self.live(node)
        for key, value in labels.items():
            found.labels.pop(key, None)
            if value is not None:
                found.labels[key] = value
        found.changed_at_s = asyncio.get_running_loop().time()
        self.changes.append(f"{node} {labels.get(TAKEOVER)}")
