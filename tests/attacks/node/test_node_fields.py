"""What may be written of a Node, field by field as the API server lists them, by agent, central and extender."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kube_agents import patched
from kube_rig.cluster import Cluster

from services.central.core.scheduling.cluster.judge import MOST_CHARACTERS
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.core.tide.change import CHANGE
from services.central.core.tide.marks import BATCH_UNWANTED, POOL_LABEL

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

Document = dict[str, Any]
NEW, OLD = "resource.katalyst.kubewharf.io/reclaimed_", "katalyst.kubewharf.io/reclaimed_"
BATCH = [f"{prefix}/batch-{name}" for prefix in ("kubernetes.io", "koordinator.sh") for name in ("cpu", "memory")]
RECLAIMED = [*(f"{prefix}{name}" for prefix in (NEW, OLD) for name in ("millicpu", "memory")), *BATCH]
PRESSURE = {"key": "node.katalyst.kubewharf.io/MemoryPressure", "effect": "NoSchedule"}
CORE = "io.k8s.api.core.v1."
PARTS = {
    "metadata": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "spec": f"{CORE}NodeSpec",
    "status": f"{CORE}NodeStatus",
}
SERVERS_OWN = {"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink", "name"}


class Schema:
    """What the API server says of its objects."""

    def __init__(self, cluster: Cluster) -> None:
        status, document = cluster.request("GET", "/openapi/v3/api/v1")
        assert status == 200
        self._schemas: Document = document["components"]["schemas"]

    def fields(self, kind: str) -> list[str]:
        return sorted(self._schemas[kind]["properties"])

    def another(self, kind: str, field: str) -> Any:
        """A value of a field that no Node has."""
        return self._value(self._schemas[kind]["properties"][field])

    def _value(self, schema: Document) -> Any:
        for one in schema.get("allOf", ()):
            schema = schema | one
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rpartition("/")[2]])
        match schema.get("type"):
            case "array":
                return [self._value(schema["items"])]
            case "integer":
                return 7
            case "boolean":
                return True
            case "object" if "properties" in schema:
                return {name: self._value(one) for name, one in schema["properties"].items()}
            case "object":
                return {"tried": self._value(schema.get("additionalProperties", {"type": "string"}))}
            case _:
                return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else "7"


@pytest.fixture
def node(nodes: tuple[str, str]) -> str:
    """A Node of 48 CPUs."""
    return nodes[0]


def seen(cluster: Cluster, node: str) -> Document:
    """The Node without what Sublet may write, and what the server writes itself."""
    found = cluster.get("node", node)
    for part in ("capacity", "allocatable"):
        amounts = found["status"].get(part, {})
        found["status"][part] = {name: amount for name, amount in amounts.items() if name not in RECLAIMED}
    taints = found["spec"].get("taints", ())
    found["spec"]["taints"] = [t for t in taints if not t["key"].startswith("node.katalyst.kubewharf.io/")]
    found["metadata"] = {name: value for name, value in found["metadata"].items() if name not in SERVERS_OWN}
    return found


@pytest.mark.parametrize("who", ["agent", "central", "extender"])
def test_no_field_of_a_node_but_those_that_are_needed_can_be_changed(
    guarded: Cluster, node: str, who: str, request: pytest.FixtureRequest
) -> None:
    login: Path = request.getfixturevalue(who)
    schema, before = Schema(guarded), seen(guarded, node)
    fields = [(part, kind, field) for part, kind in PARTS.items() for field in schema.fields(kind)]
    fields = [one for one in fields if not (one[0] == "metadata" and one[2] in SERVERS_OWN)]
    assert len(fields) > 25
    for part, kind, field in fields:
        change = {part: {field: schema.another(kind, field)}}
        for path in ("", "/status"):
            asyncio.run(patched(login, node, change, path))
        assert seen(guarded, node) == before, f"{who} changed {part}.{field}"


def offers(**amounts: str) -> Document:
    """An offer under the newer names."""
    offered = {f"{NEW}{name}": amount for name, amount in amounts.items()}
    return {"status": {"capacity": offered, "allocatable": offered}}


async def test_a_node_offers_at_most_what_it_has(guarded: Cluster, node: str, agent: Path) -> None:
    assert not await patched(agent, node, offers(millicpu="48k", memory="192Gi"), "/status")
    for too_much in (offers(millicpu="48001"), offers(memory="193Gi"), offers(millicpu="1M", memory="1Gi")):
        assert "a node offers at most what it has" in await patched(agent, node, too_much, "/status")
    for name in RECLAIMED:
        for part in ("capacity", "allocatable"):
            alone = {"status": {part: {name: "1P"}}}
            assert "a node offers at most what it has" in await patched(agent, node, alone, "/status")


async def test_central_takes_from_sale_and_offers_nothing(
    guarded: Cluster, node: str, agent: Path, central: Path
) -> None:
    assert not await patched(agent, node, offers(millicpu="44k", memory="1Gi"), "/status")
    assert "write 0" in await patched(central, node, offers(millicpu="45k"), "/status")
    assert not await patched(central, node, offers(millicpu="0", memory="0"), "/status")
    assert guarded.get("node", node)["status"]["allocatable"][f"{NEW}millicpu"] == "0"


async def test_an_agent_taints_under_its_prefix_and_central_not_even_there(
    guarded: Cluster, node: str, agent: Path, central: Path
) -> None:
    there = guarded.get("node", node)["spec"]["taints"]
    assert "central not even these" in await patched(central, node, {"spec": {"taints": [*there, PRESSURE]}})
    assert not await patched(agent, node, {"spec": {"taints": [*there, PRESSURE]}})
    assert not await patched(agent, node, {"spec": {"taints": there}})


async def test_the_extender_says_what_a_node_refuses_and_nothing_else(
    guarded: Cluster, node: str, extender: Path
) -> None:
    async def told(text: str | None, **more: str) -> str:
        return await patched(extender, node, {"metadata": {"annotations": {REFUSES: text, **more}}})

    assert not await told("cpu in use")
    assert guarded.get("node", node)["metadata"]["annotations"][REFUSES] == "cpu in use"
    assert "the annotation scheduling.sublet.io/refuses alone" in await told("cpu in use", other="1")
    assert f"at most {MOST_CHARACTERS} characters" in await told("x" * (MOST_CHARACTERS + 1))
    assert not await told("x" * MOST_CHARACTERS)
    assert not await told(None)


async def test_central_marks_nodes_of_tide_pools_where_these_are_on(guarded: Cluster, node: str, tidal: Path) -> None:
    there = guarded.get("node", node)["spec"]["taints"]
    unwanted = {"key": BATCH_UNWANTED.key, "value": "true", "effect": "NoSchedule"}
    marks = {"labels": {POOL_LABEL: "green"}, "annotations": {CHANGE: "{}"}}
    assert not await patched(tidal, node, {"metadata": marks, "spec": {"taints": [*there, unwanted]}})
    for key in ("labels", "annotations"):
        assert "but the marks of tide pools" in await patched(tidal, node, {"metadata": {key: {"mine": "1"}}})
    assert "but the marks of tide pools" in await patched(tidal, node, {"spec": {"taints": []}})
    gone = {"labels": {POOL_LABEL: None}, "annotations": {CHANGE: None}}
    assert not await patched(tidal, node, {"metadata": gone, "spec": {"taints": there}})


async def test_an_agent_marks_nothing_of_tide_pools(guarded: Cluster, node: str, agent: Path, tidal: Path) -> None:
    for key, name in (("labels", POOL_LABEL), ("annotations", CHANGE)):
        assert await patched(agent, node, {"metadata": {key: {name: "green"}}})
