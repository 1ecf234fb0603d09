"""The kinds of deploy/k8s/crds on a real API server: what they take, and in which words they refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_rig.cluster import Cluster, CommandError

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

QUICK_START = Path(__file__).parent / "quick_start"
NODE_API, CONFIG_API = "node.katalyst.kubewharf.io/v1alpha1", "config.katalyst.kubewharf.io/v1alpha1"
Document = dict[str, Any]


def tried(cluster: Cluster, *objects: Document) -> str:
    """What is said of objects that are tried and not made."""
    given = yaml.safe_dump_all(objects)
    try:
        return cluster.kubectl("create", "--dry-run=server", "--filename", "-", given=given)
    except CommandError as refusal:
        return str(refusal)


def cnr(**parts: Any) -> Document:
    return {"apiVersion": NODE_API, "kind": "CustomNodeResource", "metadata": {"name": "tried"}, **parts}


def taint(**parts: str) -> Document:
    return cnr(spec={"taints": [{"key": "node.kubernetes.io/unschedulable", **parts}]})


def config(kind: str, **spec: Any) -> Document:
    return {"apiVersion": CONFIG_API, "kind": kind, "metadata": {"name": "tried"}, "spec": spec}


def kcc(**spec: Any) -> Document:
    target = {"group": "config.katalyst.kubewharf.io", "version": "v1alpha1", "resource": "adminqosconfigurations"}
    return config("KatalystCustomConfig", **({"targetType": target} | spec))


def aqc(**spec: Any) -> Document:
    return config("AdminQoSConfiguration", **({"config": {}} | spec))


def eviction(**parts: Any) -> Document:
    return aqc(config={"evictionConfig": parts})


def node_metric(**parts: Any) -> Document:
    return {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "tried"}, **parts}


def collected(**policy: Any) -> Document:
    return node_metric(spec={"metricCollectPolicy": policy})


GOOD = [
    node_metric(spec={}),
    collected(aggregateDurationSeconds=300, nodeAggregatePolicy={"durations": ["5m", "10m"]}),
    collected(reportIntervalSeconds=60, nodeMemoryCollectPolicy="usageWithPageCache"),
    taint(effect="NoScheduleForReclaimedTasks"),
    taint(effect="NoSchedule", qosLevel="shared_cores", value="x", timeAdded="2024-12-02T00:00:00Z"),
    cnr(spec={"nodeResourceProperties": [{"propertyName": "numa", "propertyQuantity": 2}]}),
    kcc(nodeLabelSelectorKey="pool"),
    kcc(nodeLabelSelectorAllowedKeyList=[{"priority": 1, "keyList": ["pool", "zone"]}]),
    aqc(nodeLabelSelector="pool in (a,b)", priority=2, updateStrategy={"rollingUpdate": {"canary": "10%"}}),
    aqc(ephemeralSelector={"nodeNames": ["a"], "lastDuration": "1h30m"}),
    aqc(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"canary": 3}}),
    aqc(config={"advisorConfig": {"cpuAdvisorConfig": {"allowSharedCoresOverlapReclaimedCores": True}}}),
    eviction(
        reclaimedResourcesEvictionConfig={"evictionThreshold": {"resource.katalyst.kubewharf.io/reclaimed_memory": 1.5}}
    ),
    eviction(memoryPressureEvictionConfig={"systemFreeMemoryThresholdMinimum": "10Gi", "gracePeriod": 0}),
    eviction(
        cpuPressureEvictionConfig={
            "loadUpperBoundRatio": 1.8,
            "loadLowerBoundRatio": 1,
            "loadEvictionCoolDownTime": "300s",
        }
    ),
]
BAD = [
    (collected(nodeMemoryCollectPolicy="all"), 'Unsupported value: "all"'),
    (collected(reportIntervalSeconds="60"), "must be of type integer"),
    (
        taint(effect="Never"),
        "effect Never: write NoSchedule, PreferNoSchedule, NoExecute or NoScheduleForReclaimedTasks",
    ),
    (
        taint(effect="NoScheduleForReclaimedTasks", qosLevel="shared_cores"),
        "write effect NoSchedule together with this qosLevel",
    ),
    (taint(effect="NoSchedule", qosLevel="gold"), 'Unsupported value: "gold"'),
    (config("KatalystCustomConfig"), "spec.targetType: Required value"),
    (
        kcc(nodeLabelSelectorKey="a", nodeLabelSelectorAllowedKeyList=[{"priority": 0, "keyList": ["a"]}]),
        "write nodeLabelSelectorAllowedKeyList alone",
    ),
    (aqc(ephemeralSelector={"nodeNames": ["a"]}), "nodeNames holds for a time only: add lastDuration, such as 1h"),
    (aqc(ephemeralSelector={"lastDuration": "1h"}), "lastDuration is for named nodes only: add nodeNames"),
    (aqc(ephemeralSelector={"nodeNames": ["a"], "lastDuration": "soon"}), "spec.ephemeralSelector.lastDuration"),
    (aqc(nodeLabelSelector="a=b", ephemeralSelector={"nodeNames": ["a"], "lastDuration": "1h"}), "not by both"),
    (aqc(updateStrategy={"rollingUpdate": {"canary": -1}}), "write a number of nodes, at least 0, or a percentage"),
    (aqc(updateStrategy={"rollingUpdate": {"canary": "110%"}}), "write a number of nodes, at least 0, or a percentage"),
    (aqc(revisionHistoryLimit=-1), "should be greater than or equal to 0"),
    (aqc(nodeLabelSelektor="a"), 'unknown field "spec.nodeLabelSelektor"'),
    (
        eviction(reclaimedResourcesEvictionConfig={"evictionThreshold": {"katalyst.kubewharf.io/reclaimed_memory": 0}}),
        "write a number above 0, such as 5",
    ),
    (
        eviction(
            reclaimedResourcesEvictionConfig={"evictionThreshold": {"cpu": 5}, "softEvictionThreshold": {"cpu": 6}}
        ),
        "write at most what evictionThreshold says",
    ),
    (eviction(memoryPressureEvictionConfig={"gracePeriod": -1}), "should be greater than or equal to 0"),
    (eviction(cpuPressureEvictionConfig={"loadUpperBoundRatio": 0.5}), "should be greater than or equal to 1"),
    (
        eviction(cpuPressureEvictionConfig={"loadUpperBoundRatio": 1.5, "loadLowerBoundRatio": 2}),
        "write at most the upper for the lower",
    ),
    (eviction(cpuPressureEvictionConfig={"loadThresholdMetPercentage": 1.1}), "should be less than or equal to 1"),
    (
        eviction(rootfsPressureEvictionConfig={"rootfsOveruseEvictionSupportedQoSLevels": ["gold"]}),
        'Unsupported value: "gold"',
    ),
    (
        eviction(systemLoadPressureEvictionConfig={"softThreshold": 3, "hardThreshold": 2}),
        "write at most hardThreshold",
    ),
    (
        config(
            "EvictionConfiguration",
            config={
                "evictionPluginsConfig": {
                    "reclaimedResourcesEvictionPluginConfig": {
                        "evictionThreshold": {"katalyst.kubewharf.io/reclaimed_memory": -5}
                    }
                }
            },
        ),
        "write a number above 0, such as 5",
    ),
]


@pytest.mark.parametrize("document", GOOD, ids=lambda d: json.dumps(d.get("spec"))[:60])
def test_a_good_object_is_taken(kinds: Cluster, document: Document) -> None:
    assert "created (server dry run)" in tried(kinds, document)


@pytest.mark.parametrize(("document", "words"), BAD, ids=[words for _, words in BAD])
def test_a_bad_object_is_refused_in_words_that_say_what_to_write(
    kinds: Cluster, document: Document, words: str
) -> None:
    said = tried(kinds, document)
    assert words in said
    assert "created" not in said


@pytest.mark.parametrize("name", ["eviction-threshold", "memory-thresholds"])
def test_the_quick_starts_configuration_is_taken_as_printed(kinds: Cluster, name: str) -> None:
    said = tried(kinds, *yaml.safe_load_all((QUICK_START / f"{name}.yaml").read_text()))
    assert said.splitlines() == [
        "katalystcustomconfig.config.katalyst.kubewharf.io/eviction-configuration created (server dry run)",
        "evictionconfiguration.config.katalyst.kubewharf.io/default created (server dry run)",
    ]


def test_what_a_target_is_of_does_not_change(kinds: Cluster) -> None:
    kinds.kubectl("create", "--filename", "-", given=json.dumps(kcc()))
    change = {"spec": {"targetType": {"resource": "evictionconfigurations"}}}
    try:
        with pytest.raises(CommandError, match="make another KatalystCustomConfig and delete this one"):
            kinds.kubectl("patch", "kcc", "tried", "--type=merge", "--patch", json.dumps(change))
    finally:
        kinds.kubectl("delete", "kcc", "tried")


def statuses() -> list[Document]:
    return [document["status"] for document in yaml.safe_load_all((QUICK_START / "node-status.yaml").read_text())]


@pytest.fixture
def node_object(kinds: Cluster) -> Iterator[str]:
    """The name of a CNR that is there for one test."""
    kinds.kubectl("create", "--filename", "-", given=json.dumps(cnr()))
    yield "tried"
    kinds.kubectl("delete", "kcnr", "tried")


def put_status(cluster: Cluster, status: Document) -> Document:
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", "kcnr", "tried", "--subresource=status", "--type=merge", "--patch", patch)
    kept: Document = cluster.get("kcnr", "tried")["status"]
    return kept


def test_every_status_that_the_quick_start_prints_is_kept_as_it_is(kinds: Cluster, node_object: str) -> None:
    for status in statuses():
        kept = put_status(kinds, status)
        assert {key: kept[key] | value for key, value in status.items()} == kept


def test_both_shapes_are_kept_side_by_side(kinds: Cluster, node_object: str) -> None:
    amounts = {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "44k"}
    owned = [{"consumer": "default/a/uid", "requests": {"cpu": "2"}}]
    numa = {"type": "Numa", "name": "0", "resources": {"allocatable": amounts}, "allocations": owned}
    status = {
        "resources": {"allocatable": amounts, "capacity": amounts},
        "topologyZone": [{"type": "Socket", "name": "0", "children": [numa]}],
        "topologyStatus": {
            "sockets": [{"socketID": 0, "numas": [{"numaID": 0, "allocatable": amounts, "allocations": owned}]}]
        },
        "nodeMetricStatus": {
            "groupMetric": [{"QoSLevel": "reclaimed_cores", "genericUsage": {"cpu": "1500m"}, "podList": ["a/b"]}]
        },
    }
    assert put_status(kinds, statuses()[0] | status).items() >= status.items()


def test_the_taint_of_a_lost_node_is_kept_as_the_quick_start_prints_it(kinds: Cluster, node_object: str) -> None:
    (*_, printed) = yaml.safe_load_all((QUICK_START / "node-taints.yaml").read_text())
    kinds.kubectl("patch", "kcnr", "tried", "--type=merge", "--patch", json.dumps({"spec": printed}))
    assert kinds.get("kcnr", "tried")["spec"] == printed


def test_the_first_question_is_answered_by_get(kinds: Cluster, node_object: str) -> None:
    ready = {"type": "AgentReady", "status": "True", "reason": "AllAgentsReady", "message": ""}
    put_status(kinds, statuses()[0] | {"conditions": [ready]})
    head, row = kinds.kubectl("get", "kcnr").splitlines()
    assert head.split() == ["NAME", "RECLAIMED-CPU", "RECLAIMED-MEMORY", "READY", "AGE"]
    assert row.split()[:-1] == ["tried", "44k", "195257901056", "True"]


COLUMNS = {
    "kcc": "NAME RESOURCE INVALID VALID REASON MESSAGE AGE",
    "aqc": "NAME SELECTOR TARGET UPDATED-TARGET HASH VALID REASON MESSAGE AGE",
    "ec": "NAME SELECTOR TARGET UPDATED-TARGET HASH VALID REASON MESSAGE AGE",
    "cnc": "NAME CONFIGS HASHES AGE",
}
MADE = {
    "kcc": kcc(),
    "aqc": aqc(),
    "ec": config("EvictionConfiguration", config={}),
    "cnc": {"apiVersion": CONFIG_API, "kind": "CustomNodeConfig", "metadata": {"name": "tried"}},
}


@pytest.mark.parametrize("short", COLUMNS)
def test_each_kind_has_its_short_name_and_its_columns(kinds: Cluster, short: str) -> None:
    kinds.kubectl("create", "--filename", "-", given=json.dumps(MADE[short]))
    try:
        assert " ".join(kinds.kubectl("get", short).splitlines()[0].split()) == COLUMNS[short]
    finally:
        kinds.kubectl("delete", short, "tried")
