"""`KubeHandover`: what the API server is asked, and what it is told."""

import asyncio
from typing import Any

import pytest
from handover_world import config_map, daemon_set

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.errors import Refused, Unavailable
from sublet.migrate.labels import TAKEOVER
from sublet.migrate.takeover.cluster import KubeHandover
from sublet.migrate.takeover.origin import ORIGINS
from sublet.migrate.takeover.preparations import ObjectChange

NODE = "/api/v1/nodes/n1"
CNRS = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources"
CONFIGS = "/apis/config.katalyst.kubewharf.io/v1alpha1"
OWN = {"metadata": {"name": "sublet-node", "namespace": "sublet-system"}, "spec": {}}


def pod(name: str, node: str = "n1") -> Document:
    meta = {"name": name, "namespace": "ks", "ownerReferences": [{"kind": "DaemonSet", "name": "koordlet"}]}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [{"name": "koordlet"}]}}


def answers() -> dict[str, Any]:
    """By path, as an API server lists them: without a kind."""
    agent = {key: value for key, value in daemon_set().items() if key != "kind"}
    agent["spec"]["selector"] = {"matchLabels": {"koord-app": "koordlet"}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"metadata": {"name": "n1", "labels": {"pool": "hot"}}, "status": ready}
    return {
        "/apis/apps/v1/daemonsets": {"items": [OWN, agent]},
        "/api/v1/configmaps": {"items": [config_map()]},
        f"{CONFIGS}/katalystcustomconfigs": {"items": []},
        f"{CONFIGS}/adminqosconfigurations": {"items": []},
        "/api/v1/nodes": {"items": [node]},
        NODE: node,
        "/api/v1/pods": {"items": [pod("koordlet-a")]},
        "/api/v1/namespaces/ks/pods": {"items": [pod("koordlet-a"), pod("koordlet-b", "n2"), pod("koordlet-c", "")]},
        f"{CNRS}/n1": {"status": {"conditions": [{"type": "Observing", "status": "True"}]}},
    }


class Server(Kube):
    """Answers by path, and takes changes."""

    def __init__(self, found: dict[str, Any], refused: int = 0) -> None:
        super().__init__()
        self.found, self.refused = found, refused
        self.told: list[tuple[str, str, Any]] = []

    async def call(self, method: str, path: str, **words: Any) -> Document:
        if path not in self.found:
            raise KubeError(f"{method} {path}", self.refused or 404, {"message": "no"})
        return dict(self.found[path])

    async def create(self, path: str, body: Any, *, manager: str, **_: object) -> Document:
        return self._take("create", path, body, manager)

    async def merge(self, path: str, body: Any, *, manager: str, **_: object) -> Document:
        return self._take("merge", path, body, manager)

    def _take(self, how: str, path: str, body: Any, manager: str) -> Document:
        assert manager == "sublet-migrate"
        if self.refused:
            raise KubeError(f"PATCH {path}", self.refused, {"message": "the object has been modified"})
        self.told.append((how, path, body))
        return {}


def handover(found: dict[str, Any] | None = None, refused: int = 0) -> tuple[KubeHandover, Server]:
    server = Server(answers() if found is None else found, refused)
    return KubeHandover(server, ORIGINS["koordinator"], "sublet-system"), server


def test_what_is_there_is_read() -> None:
    found = asyncio.run(handover()[0].documents())
    assert [one["metadata"]["name"] for one in found.agents] == ["koordlet"]
    assert found.config_map == config_map()
    assert asyncio.run(handover()[0].nodes()) == {"n1": {"pool": "hot"}}
    assert asyncio.run(handover()[0].hosts()) == {"n1", "n2"}


def test_the_mode_of_all_nodes_is_read_where_sublet_is() -> None:
    found = answers()
    assert asyncio.run(handover(found)[0].documents()).mode == "enforce"  # built in
    maps = "/api/v1/namespaces/sublet-system/configmaps"
    found[f"{maps}/sublet-node"] = {"data": {"settings.yaml": "mode: observe"}}
    assert asyncio.run(handover(found)[0].documents()).mode == "observe"
    found[f"{maps}/sublet-central"] = {"data": {"config.yaml": "mode: enforce"}}
    assert asyncio.run(handover(found)[0].documents()).mode == "enforce"


def test_a_node_is_seen_with_both_agents() -> None:
    seen = asyncio.run(handover()[0].view("n1"))
    assert (seen.ready, seen.theirs, seen.observes, seen.label) == (True, ("ks/koordlet-a",), True, None)
    assert (seen.well, seen.why, seen.suppresses) == (False, "AgentReady: nobody reports it", None)


def test_without_sublet_it_is_refused_with_the_next_step() -> None:
    found = answers()
    found["/apis/apps/v1/daemonsets"]["items"].remove(OWN)
    with pytest.raises(Refused, match=r"not installed in the namespace sublet-system: helm install.*--values"):
        asyncio.run(handover(found)[0].documents())


def test_a_node_that_is_gone_is_refused() -> None:
    with pytest.raises(Refused, match="node n9: there is no such node"):
        asyncio.run(handover()[0].view("n9"))


def test_who_may_not_read_is_told_what() -> None:
    with pytest.raises(Unavailable, match="GET /apis/apps/v1/daemonsets: no"):
        asyncio.run(handover({}, 403)[0].documents())


def test_changes_are_sent_as_they_are() -> None:
    cluster, server = handover()
    asyncio.run(cluster.label("n1", {TAKEOVER: "done", "x": None}))
    asyncio.run(cluster.change(ObjectChange("a/b", "", "/made", {"a": 1}, creates=True)))
    asyncio.run(cluster.change(ObjectChange("a/b", "", "/changed", {"a": 2})))
    labels = {"metadata": {"labels": {TAKEOVER: "done", "x": None}}}
    assert server.told == [("merge", NODE, labels), ("create", "/made", {"a": 1}), ("merge", "/changed", {"a": 2})]


def test_an_object_that_has_changed_meanwhile_is_left_alone_and_named() -> None:
    cluster, _ = handover(refused=409)
    with pytest.raises(Unavailable, match=r"DaemonSet/koordlet: .*has been modified; run it again"):
        asyncio.run(cluster.change(ObjectChange("DaemonSet/koordlet", "", "/x", {})))
    with pytest.raises(Unavailable, match=r"nodes/n1: .*run it again"):
        asyncio.run(cluster.label("n1", {}))
