"""The admission policies on a real API server: pods with their QoS class, and what an agent may write."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kube_agents import bound, patched
from kube_cluster import IN_FORCE_LIMIT_S, SYSTEM, allowed, tried
from kube_rig.cluster import Cluster, CommandError
from kube_rig.programs import SPEAKS_FOR_A_POD
from rig_parts import until

from services.reporter.core.node_metric.writer_turn import last_writers
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Kube
from shared.adapters.kube.objects import KubeObjects
from shared.core.api_kind import NODE_METRICS
from shared.errors import Refused, Unavailable
from sublet.cluster.uninstall import uninstall_from_cluster

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

QUICK_START = Path(__file__).parent / "quick_start"
PREFIX = "katalyst.kubewharf.io"
NEW, OLD = f"resource.{PREFIX}/reclaimed_", f"{PREFIX}/reclaimed_"
Document = dict[str, Any]


def pod(
    level: str | None = None, *, asks: dict[str, str] | None = None, first: dict[str, str] | None = None, **notes: str
) -> Document:
    """A pod of a level that asks for something, its first init container for something else."""
    annotations = {f"{PREFIX}/{name}": text for name, text in notes.items()}
    if level is not None:
        annotations[f"{PREFIX}/qos_level"] = level
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "tried", "namespace": "default", "annotations": annotations},
        "spec": {
            "containers": [container("main", asks or {})],
            "initContainers": [container("first", first)] if first else [],
            "terminationGracePeriodSeconds": 0,
        },
    }


def container(name: str, asks: dict[str, str]) -> Document:
    return {"name": name, "image": "none.example/none", "resources": {"requests": asks, "limits": asks}}


def labelled(koord: str, document: Document | None = None, *, asks: dict[str, str] | None = None) -> Document:
    made = document or pod(asks=asks)
    return {**made, "metadata": made["metadata"] | {"labels": {"koordinator.sh/qosClass": koord}}}


def binding(policy: str) -> Document:
    """An LSR pod that requires a policy for its CPUs."""
    made = labelled("LSR", asks={"cpu": "2", "memory": "1Gi"})
    spec = {"scheduling.koordinator.sh/resource-spec": json.dumps({"requiredCPUBindPolicy": policy})}
    annotations = made["metadata"].get("annotations", {}) | spec
    return {**made, "metadata": made["metadata"] | {"annotations": annotations}}


def speaking_for_all(document: Document, asks: dict[str, str]) -> Document:
    """What a pod says for all of its containers together."""
    return {**document, "spec": document["spec"] | {"resources": {"requests": asks, "limits": asks}}}


def critical(document: Document) -> Document:
    return {**document, "spec": document["spec"] | {"priorityClassName": "system-node-critical"}}


RECLAIMED = {f"{NEW}millicpu": "2k", f"{NEW}memory": "1Gi"}
OLDER = {f"{OLD}millicpu": "2k", f"{OLD}memory": "1Gi"}
BATCH = {"kubernetes.io/batch-cpu": "2k", "kubernetes.io/batch-memory": "1Gi"}
NATIVE = {"cpu": "2", "memory": "1Gi"}
BOUND = '{"numa_binding": "true", "numa_exclusive": "true"}'
GOOD = {
    "no level": pod(asks=NATIVE),
    "shared": pod("shared_cores", asks=NATIVE),
    "reclaimed": pod("reclaimed_cores", asks=RECLAIMED),
    "reclaimed in Koordinator's words": labelled("BE", asks=BATCH),
    "whose level is a label": labelled("LS", asks=NATIVE),
    "what is no JSON is no enhancement": pod("shared_cores", memory_enhancement="numa_exclusive"),
    "exclusive said to be false": pod("shared_cores", memory_enhancement='{"numa_exclusive": "false"}'),
}
BAD = [
    (pod("gold"), 'there is no level "gold"; write shared_cores, dedicated_cores, reclaimed_cores or system_cores'),
    (pod(""), 'there is no level ""; write shared_cores'),
    (
        pod("reclaimed_cores", asks=RECLAIMED | NATIVE),
        f"this one also for cpu and memory; write {NEW}millicpu (1 CPU is 1000, or 1k)",
    ),
    (pod("reclaimed_cores", asks=RECLAIMED, first={"cpu": "1"}), "this one also for cpu; write"),
    *(
        [(speaking_for_all(pod("reclaimed_cores", asks=RECLAIMED), NATIVE), "this one also for cpu and memory; write")]
        if SPEAKS_FOR_A_POD
        else []
    ),
    (pod("reclaimed_cores"), f"for each container how much it takes, main does not; write {NEW}millicpu"),
    (pod("reclaimed_cores", asks={f"{NEW}memory": "1Gi"}), "main does not; write"),
    (pod("reclaimed_cores", asks=RECLAIMED | {f"{NEW}memory": "0"}), "main does not; write"),
    (pod("reclaimed_cores", asks=RECLAIMED, first={f"{NEW}memory": "1Gi"}), "first does not; write"),
    (
        critical(pod("reclaimed_cores", asks=RECLAIMED)),
        "cannot be critical for the cluster as system-node-critical says",
    ),
    (labelled("LSX"), 'label koordinator.sh/qosClass: there is no class "LSX"; write LS, LSR, LSE, BE or SYSTEM'),
    (
        labelled("LS", pod("reclaimed_cores", asks=RECLAIMED)),
        f"annotation {PREFIX}/qos_level: reclaimed_cores and label koordinator.sh/qosClass: LS name the QoS "
        "class in two dialects; remove one of them",
    ),
    (labelled("BE", pod("reclaimed_cores", asks=RECLAIMED)), "name the QoS class in two dialects; remove one of them"),
    (binding("ConstrainedBurst"), "requiredCPUBindPolicy is none that binds CPUs; write FullPCPUs or SpreadByPCPUs"),
    (binding("fullpcpus"), "requiredCPUBindPolicy is none that binds CPUs"),
    (binding("FullPCPUs"), "kubectl label namespace default sublet.io/dedicated-cores=allowed"),
    (labelled("LSR"), "LSR binds whole CPUs, and its containers request 0m of cpu together; write 1"),
    (labelled("LSE", asks={"cpu": "1500m", "memory": "1Gi"}), "request 1500m of cpu together; write 2"),
    (labelled("LSR", asks=NATIVE), "kubectl label namespace default sublet.io/dedicated-cores=allowed"),
    (labelled("SYSTEM"), "kubectl label namespace default sublet.io/system-cores=allowed"),
    (labelled("LS", asks=BATCH), "a shared_cores pod cannot ask for reclaimed resources"),
    (pod("shared_cores", asks=RECLAIMED), f"write the annotation {PREFIX}/qos_level: reclaimed_cores, or ask for cpu"),
    (pod(asks=RECLAIMED), "a shared_cores pod cannot ask for reclaimed resources"),
    (pod("reclaimed_cores", asks=OLDER), f"{OLD}millicpu is the older name; write {NEW}millicpu"),
    (
        pod("dedicated_cores"),
        "namespace default may not use it; write shared_cores, or have an administrator run: "
        "kubectl label namespace default sublet.io/dedicated-cores=allowed",
    ),
    (pod("system_cores"), "kubectl label namespace default sublet.io/system-cores=allowed"),
    (pod("shared_cores", memory_enhancement=BOUND), f"write {PREFIX}/qos_level: dedicated_cores and"),
    (
        pod("shared_cores", cpu_enhancement='{"cpuset_pool": "batch"}'),
        "cpuset_pool: namespace default may not use it; leave it out, or have an administrator run: "
        "kubectl label namespace default sublet.io/cpuset-pools=allowed",
    ),
    (pod("shared_cores", cpu_enhancement=r'{"cpuset\u005fpool": "batch"}'), "sublet.io/cpuset-pools=allowed"),
    (
        pod("reclaimed_cores", asks=RECLAIMED, cpu_enhancement='{ "cpuset_pool" : "batch" }'),
        f"this one is reclaimed_cores; write {PREFIX}/qos_level: shared_cores, or leave cpuset_pool out",
    ),
]


@pytest.mark.parametrize("document", GOOD.values(), ids=GOOD)
def test_a_good_pod_is_taken(guarded: Cluster, document: Document) -> None:
    assert tried(guarded, document) == "pod/tried created (server dry run)\n"


@pytest.mark.parametrize(("document", "words"), BAD, ids=[words[:50] for _, words in BAD])
def test_a_bad_pod_is_refused_in_words_that_say_what_to_write(guarded: Cluster, document: Document, words: str) -> None:
    said = tried(guarded, document)
    assert words in said
    assert "created" not in said


@pytest.mark.parametrize("name", ["shared-normal-pod", "reclaimed-normal-pod"])
def test_the_quick_starts_pods_are_taken_as_printed(guarded: Cluster, name: str) -> None:
    said = guarded.kubectl("create", "--dry-run=server", "--filename", str(QUICK_START / f"{name}.yaml"))
    assert said == f"pod/{name} created (server dry run)\n"


def test_a_reclaimed_request_that_is_not_its_limit_is_the_api_servers_own_to_refuse(guarded: Cluster) -> None:
    document = pod("reclaimed_cores", asks=RECLAIMED)
    document["spec"]["containers"][0]["resources"]["limits"] = RECLAIMED | {f"{NEW}millicpu": "3k"}
    assert f"must be equal to {NEW}millicpu limit of 3k" in tried(guarded, document)


def test_a_namespace_with_permission_may_use_the_classes_that_protect(guarded: Cluster, permitted: str) -> None:
    pooled = pod("shared_cores", cpu_enhancement='{"cpuset_pool": "batch"}')
    for document in (pod("dedicated_cores", asks=NATIVE, memory_enhancement=BOUND), pod("system_cores"), pooled):
        document["metadata"]["namespace"] = permitted
        until(partial(allowed, guarded, document), IN_FORCE_LIMIT_S, "the labels' effect")
    unbound = pod("dedicated_cores", memory_enhancement='{"numa_exclusive": "true"}')
    unbound["metadata"]["namespace"] = permitted
    assert '"numa_binding": "true" beside it' in tried(guarded, unbound)


# The agents.


def said(cluster: Cluster, who: Path, *words: str, given: Document | None = None) -> str:
    try:
        return cluster.kubectl(*words, given=json.dumps(given) if given else None, kubeconfig=who)
    except CommandError as refusal:
        return str(refusal)


def evicted(cluster: Cluster, who: Path, name: str, uid: str | None) -> str:
    options: Document = {"dryRun": ["All"]} | ({"preconditions": {"uid": uid}} if uid else {})
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    return said(cluster, who, "create", "--raw", path, "--filename", "-", given=body)


def uid_of(cluster: Cluster, name: str) -> str:
    uid: str = cluster.get("pod", name)["metadata"]["uid"]
    return uid


def test_an_agent_evicts_the_pods_of_its_own_node_alone(guarded: Cluster, nodes: tuple[str, str], agent: Path) -> None:
    own, foreign = (f"on-{name}" for name in nodes)
    until(lambda: '"status":"Success"' in evicted(guarded, agent, own, uid_of(guarded, own)),
          IN_FORCE_LIMIT_S, "an eviction of the node's own pod")  # fmt: skip
    words = "the agent of node paper-1 evicts pods of its own node alone; pod on-paper-2 is on paper-2"
    assert words in evicted(guarded, agent, foreign, uid_of(guarded, foreign))


def test_an_agent_evicts_by_uid(guarded: Cluster, nodes: tuple[str, str], agent: Path) -> None:
    assert "an agent evicts by UID: write deleteOptions.preconditions.uid" in evicted(
        guarded, agent, f"on-{nodes[0]}", None
    )


async def test_a_token_that_is_bound_to_no_node_may_nothing(
    guarded: Cluster, nodes: tuple[str, str], nobodys: Path
) -> None:
    own = f"on-{nodes[0]}"
    assert "this token names no node" in evicted(guarded, nobodys, own, uid_of(guarded, own))
    assert "this token names no node" in await patched(nobodys, nodes[0], offer("44k"), "/status")


def offer(amount: str) -> Document:
    return {"status": {part: {f"{NEW}millicpu": amount} for part in ("capacity", "allocatable")}}


async def test_an_agent_writes_the_reclaimed_resources_of_its_own_node(
    guarded: Cluster, nodes: tuple[str, str], agent: Path
) -> None:
    assert not await patched(agent, nodes[0], offer("44k"), "/status")
    assert guarded.get("node", nodes[0])["status"]["allocatable"][f"{NEW}millicpu"] == "44k"
    words = "the agent of node paper-1 writes of its own node alone, not of paper-2"
    assert words in await patched(agent, nodes[1], offer("44k"), "/status")


PRESSURE = {"key": "node.katalyst.kubewharf.io/MemoryPressure", "effect": "NoSchedule"}
HELD = {"key": "node.example/other", "effect": "NoSchedule"}
TAINTS_ALONE = "Sublet may change the taints under node.katalyst.kubewharf.io/ alone"
STATUS_ALONE = "Sublet may change capacity and allocatable of the reclaimed resources alone"


async def test_an_agent_taints_its_own_node(guarded: Cluster, nodes: tuple[str, str], agent: Path) -> None:
    listed = guarded.get("node", nodes[0])["spec"]["taints"]
    assert not await patched(agent, nodes[0], {"spec": {"taints": [*listed, PRESSURE]}})
    assert not await patched(agent, nodes[0], {"spec": {"taints": listed}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": {"taints": [PRESSURE]}}, TAINTS_ALONE),
        ({"spec": {"taints": [HELD, {"key": "mine", "effect": "NoSchedule"}]}}, TAINTS_ALONE),
        ({"spec": {"unschedulable": True}}, TAINTS_ALONE),
        ({"metadata": {"labels": {"pool": "mine"}}}, TAINTS_ALONE),
        ({"metadata": {"annotations": {"mine": "1"}}}, TAINTS_ALONE),
    ],
)
async def test_an_agent_changes_nothing_else_of_its_node(
    guarded: Cluster, nodes: tuple[str, str], agent: Path, change: Document, words: str
) -> None:
    assert words in await patched(agent, nodes[0], change)


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": {"cpu": "96"}},
        {"allocatable": {"memory": "1Ti"}},
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    ],
)
async def test_an_agent_changes_nothing_else_of_its_nodes_status(
    guarded: Cluster, nodes: tuple[str, str], agent: Path, change: Document
) -> None:
    assert STATUS_ALONE in await patched(agent, nodes[0], {"status": change}, "/status")


def test_an_agent_writes_the_cnr_of_its_own_node(guarded: Cluster, nodes: tuple[str, str], agent: Path) -> None:
    words = ("apply", "--server-side", "--field-manager=sublet-reporter", "--filename", "-")
    own, foreign = (
        {"apiVersion": f"node.{PREFIX}/v1alpha1", "kind": "CustomNodeResource", "metadata": {"name": name}, "spec": {}}
        for name in nodes
    )
    try:
        assert "serverside-applied" in said(guarded, agent, *words, given=own)
        assert "writes of its own node alone, not of paper-2" in said(guarded, agent, *words, given=foreign)
    finally:
        guarded.kubectl("delete", "kcnr", "--all")


async def test_an_agent_writes_the_node_metric_of_its_own_node_and_never_its_spec(
    guarded: Cluster, nodes: tuple[str, str], agent: Path
) -> None:
    kube, other = Kube(agent), Kube(guarded.admin)
    ours = KubeObjects(kube, SystemClock(), manager="sublet-node-metric")
    own, foreign = ({"metadata": {"name": name}} for name in nodes)
    used = {"status": {"updateTime": "2026-01-01T00:00:00Z", "podsMetric": []}}
    policy = {"spec": {"metricCollectPolicy": {"reportIntervalSeconds": 30}}}
    apply = partial(ours.apply, NODE_METRICS, manager="sublet-node-metric", status=True)
    try:
        assert await ours.get(NODE_METRICS, nodes[0]) is None
        await ours.create(NODE_METRICS, own)
        assert (await apply(own | used))["status"] == used["status"]
        there = await ours.patch(NODE_METRICS, own | {"status": {"podsMetric": None}}, status=True)
        assert last_writers(there or {}) == ["sublet-node-metric"]
        later = own | {"status": {"updateTime": "2026-01-01T00:01:00Z"}}
        there = await KubeObjects(other, SystemClock(), manager="koordlet").patch(NODE_METRICS, later, status=True)
        assert last_writers(there or {}) == ["koordlet"]
        with pytest.raises(Refused, match="writes of its own node alone, not of paper-2"):
            await ours.create(NODE_METRICS, foreign)
        await KubeObjects(other, SystemClock(), manager="koord-manager").create(NODE_METRICS, foreign | policy)
        with pytest.raises(Refused, match="writes of its own node alone, not of paper-2"):
            await apply(foreign | used)
        with pytest.raises(Refused, match="cannot patch resource"):
            await ours.patch(NODE_METRICS, own | policy)
    finally:
        await kube.close()
        await other.close()
        guarded.kubectl("delete", "nodemetrics", "--all")


async def test_an_uninstall_takes_away_what_agents_and_central_have_left(
    guarded: Cluster, nodes: tuple[str, str]
) -> None:
    kcc = {
        "apiVersion": f"config.{PREFIX}/v1alpha1",
        "kind": "KatalystCustomConfig",
        "metadata": {"name": "kept", "finalizers": ["kcc.katalyst.kubewharf.io/kcc-controller", "example.com/other"]},
        "spec": {"targetType": {"group": "g", "version": "v1", "resource": "r"}},
    }
    objects = {"CustomNodeResource": "node", "CustomNodeConfig": "config"}
    left = [
        {"apiVersion": f"{group}.{PREFIX}/v1alpha1", "kind": kind, "metadata": {"name": nodes[0]}}
        for kind, group in objects.items()
    ]
    guarded.apply(kcc, *left)
    before = guarded.get("node", nodes[1])["spec"]
    assert not await patched(guarded.admin, nodes[1], offer("44k"), "/status")
    assert not await patched(guarded.admin, nodes[1], {"spec": {"taints": [*before["taints"], PRESSURE]}})
    kube, said = Kube(guarded.admin), list[str]()
    try:
        await uninstall_from_cluster(kube, SystemClock(), SYSTEM, wait_s=0, say=said.append)
        assert len(said) >= 4
        again = list[str]()
        await uninstall_from_cluster(kube, SystemClock(), SYSTEM, wait_s=0, say=again.append)
        assert [words for words in again if "no DaemonSet sublet-give-back" not in words] == []
    finally:
        await kube.close()
        held = guarded.get("kcc", "kept")["metadata"]["finalizers"]
        guarded.kubectl("patch", "kcc", "kept", "--type=merge", "--patch", '{"metadata":{"finalizers":null}}')
        guarded.kubectl("delete", "kcc", "kept")
    assert held == ["example.com/other"]
    node = guarded.get("node", nodes[1])
    assert node["spec"] == before
    assert not {name for name in node["status"].get("allocatable", {}) if "reclaimed" in name}
    assert guarded.get("kcnr")["items"] == guarded.get("cnc")["items"] == []


async def test_an_uninstall_waits_for_the_agents(guarded: Cluster, nodes: tuple[str, str]) -> None:
    labels = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "node"}
    running = {
        **pod(),
        "metadata": {"name": "agent", "namespace": "default", "labels": labels},
        "spec": bound(nodes[0]),
    }
    guarded.apply(running)
    kube = Kube(guarded.admin)
    try:
        with pytest.raises(Unavailable, match="agents still run after 0 s in default: agent; delete DaemonSet"):
            await uninstall_from_cluster(kube, SystemClock(), "default", wait_s=0, say=lambda _: None)
    finally:
        await kube.close()
        guarded.kubectl("delete", "pod", "agent", "--grace-period=0", "--force")
