"""The story of Koordinator's first release notes on a real kubelet, with its objects and its ConfigMap alone.

A profile makes a job's pods batch work, the stock scheduler counts them, the agent limits them; a service gets busy and
they are held back, memory runs short and the right one goes, the ConfigMap switches it off. What was typed and said is
kept in `out/kubernetes/koordinator-story.txt`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_rig.cluster import Cluster, CommandError
from kube_rig.node import NODE
from kube_rig.pods import group_setting
from kube_rig.product import Product
from rig_parts import until

from services.central.core.profiles.colocated_resources import BATCH_CPU, BATCH_MEMORY
from shared.contracts.kube.quantities import parse_units
from shared.core.cgroups.knobs import V1_FILES, Knob, from_file
from shared.core.pods.koord_qos import QOS_LABEL, SUB_PRIORITY_LABEL

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

SEEN_LIMIT_S, REPORT_LIMIT_S, REGROW_LIMIT_S = 60.0, 100.0, 150.0
IDLE_PERCENT, FLOOR_MILLIS = 95, 1000
RESTING = "trap exit TERM; sleep infinity & wait"
SERVICE, BUSY = "service", "trap exit TERM; (while :; do :; done) & (while :; do :; done) & wait"
CPU_MILLIS, MEMORY_BYTES = 100, 64 << 20
SETTINGS = {
    "profiles": {"enabled": True, "refuse": True},
    "slo": {"enabled": True},
    "settings": {
        "advisor": {"min_ramp_down_period_s": 5},
        "reporter": {"node_metric": {"enabled": True}, "rise_window_s": 5, "refresh_s": 5},
        "qrm": {"pod_quotas": True},
        "evictor": {"plugins": {"memory_usage": {"enabled": True}}},
    },
}
WORK = ("pods", "--selector", "job-name=work")
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "koord-batch"},
    "value": 5500,
}
SYSTEM, WEBHOOK = "koordinator-system", "deployment/sublet-webhook"

Document = dict[str, Any]


def config_map(**keys: Mapping[str, Any]) -> Document:
    """The ConfigMap as the release notes write it, with these keys."""
    data = {name.replace("_", "-"): json.dumps(value) for name, value in keys.items()}
    metadata = {"name": "slo-controller-config", "namespace": SYSTEM}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def thresholds(**strategy: object) -> Document:
    """Colocation is on, and thresholds are as given."""
    return config_map(colocation_config={"enable": True}, resource_threshold_config={"clusterStrategy": strategy})


PROFILE_FILE = Path(__file__).parent / "koordinator/colocation-profile.yaml"
PROFILE: Document = yaml.safe_load(PROFILE_FILE.read_text())
BY_HAND = {"launched-by": "hand"}
COLOCATED, MARK = (PROFILE["spec"][name]["matchLabels"] for name in ("namespaceSelector", "selector"))
WITHOUT_CLASS = {**PROFILE, "metadata": {"name": "lost"}, "spec": {"priorityClassName": "not-there"}}

TRANSCRIPT = Path(__file__).parents[2] / "out/kubernetes/koordinator-story.txt"
HOLD = 'import signal, sys; held = b"1" * int(sys.argv[1]); signal.sigwait([signal.SIGTERM])'
PROGRAM_BYTES = 64 << 20
ROOM_PERCENT, EVICTED_LIMIT_S = 3, 90.0


def pod_spec(image: str, script: str = RESTING) -> Document:
    """A container that asks for plain cpu and memory."""
    amounts = {"cpu": f"{CPU_MILLIS}m", "memory": str(MEMORY_BYTES)}
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", script],
                 "resources": {"requests": amounts, "limits": amounts}}  # fmt: skip
    return {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [container]}


def pod(name: str, image: str, labels: dict[str, str], *script: str) -> Document:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(image, *script)}


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed with profiles and batch resources, which are off in the chart."""
    installed = Product(cluster)
    cluster.apply(PRIORITY, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    installed.install(SETTINGS)
    installed.in_system("rollout", "status", WEBHOOK, f"--timeout={SEEN_LIMIT_S:.0f}s")
    cluster.kubectl("label", "namespace", "default", *(f"{key}={value}" for key, value in COLOCATED.items()))
    installed.type("apply", "--filename", "-", given=PROFILE_FILE.read_text())
    cluster.apply(WITHOUT_CLASS)
    installed.type("apply", "--filename", "-", given=json.dumps(thresholds(enable=True), indent=1))
    yield installed
    cluster.kubectl("delete", "job", "--all")
    cluster.kubectl("label", "namespace", "default", *(f"{key}-" for key in COLOCATED))
    for document in (PROFILE, WITHOUT_CLASS, PRIORITY):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", "-", given=json.dumps(document))
    if left := installed.pods():
        installed.end(*left)
    installed.uninstall()
    installed.leave()
    cluster.kubectl("delete", "namespace", SYSTEM, "--wait=false")
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("\n".join(installed.transcript))


def memory_bytes(name: str) -> int:
    """A figure of this machine's /proc/meminfo, which is the node's as well."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (found,) = (line.split() for line in lines if line.startswith(f"{name}:"))
    return int(found[1]) << 10


def used_percent() -> int:
    return 100 - 100 * memory_bytes("MemAvailable") // memory_bytes("MemTotal")


def batch_quota_millis(cluster: Cluster) -> int:
    """What all batch pods together may use; UNLIMITED: as much as there is."""
    (group,) = (one for one in cluster.groups("kubepods/besteffort") if (one / V1_FILES[Knob.CPU_QUOTA][1]).exists())
    return int(from_file(Knob.CPU_QUOTA, (group / V1_FILES[Knob.CPU_QUOTA][1]).read_text(), 1))


def slo_says(cluster: Cluster) -> object:
    """Whether suppression and evictions are on for the node."""
    return cluster.get("nodeslos", NODE)["spec"]["resourceUsedThresholdWithBE"]["enable"]


def batch(name: str, cluster: Cluster, held_bytes: int) -> Document:
    """A pod that the profile makes batch work, and that holds memory."""
    made = pod(name, cluster.images.base.name, MARK, f"exec python3 -c '{HOLD}' {held_bytes}")
    amounts = {"cpu": "100m", "memory": str(held_bytes + PROGRAM_BYTES)}
    made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return made


def valid(cluster: Cluster, name: str) -> str:
    """The status of a profile's condition; empty: it has none yet."""
    conditions = cluster.get("clustercolocationprofiles", name).get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == "Valid"), "")


def offered(cluster: Cluster) -> int:
    return parse_units(cluster.get("node", NODE)["status"]["allocatable"].get(BATCH_CPU, 0))


@pytest.fixture(scope="module")
def made(sublet: Product, cluster: Cluster) -> Document:
    """The pod of a job that says nothing of colocation but a label, as the API server has made it."""
    until(
        lambda: (valid(cluster, PROFILE["metadata"]["name"]), valid(cluster, "lost")) == ("True", "False"),
        SEEN_LIMIT_S,
        "both judged",
    )
    template = {"metadata": {"labels": MARK}, "spec": pod_spec(cluster.images.base.name)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": {"template": template}}
    sublet.type("create", "--filename", "-", given=json.dumps(job))
    until(lambda: cluster.get(*WORK)["items"], SEEN_LIMIT_S, "the job's pod")
    (found,) = cluster.get(*WORK)["items"]
    document: Document = found
    return document


@pytest.fixture(scope="module")
def worker(made: Document, cluster: Cluster) -> str:
    """Its name, once it runs on what the node has offered."""
    until(lambda: offered(cluster) >= CPU_MILLIS, SEEN_LIMIT_S, "batch-cpu on the Node")
    cluster.kubectl("wait", *WORK, "--for=condition=Ready", f"--timeout={SEEN_LIMIT_S:.0f}s")
    return str(made["metadata"]["name"])


def test_a_jobs_pod_is_made_batch_work_and_nothing_else_of_it_is_touched(made: Document, cluster: Cluster) -> None:
    labels, spec = made["metadata"]["labels"], made["spec"]
    assert MARK.items() <= labels.items()
    assert (labels[QOS_LABEL], labels[SUB_PRIORITY_LABEL], labels["koordinator.sh/mutated"]) == ("BE", "1000", "true")
    assert made["metadata"]["annotations"]["koordinator.sh/intercepted"] == "true"
    assert spec["schedulerName"] == "koord-scheduler"
    assert (spec["priorityClassName"], spec["priority"]) == ("koord-batch", PRIORITY["value"])
    assert spec["terminationGracePeriodSeconds"] == 30
    (container,) = spec["containers"]
    for amounts in (container["resources"]["requests"], container["resources"]["limits"]):
        assert {name: parse_units(amount) for name, amount in amounts.items()} == {
            BATCH_CPU: CPU_MILLIS, BATCH_MEMORY: MEMORY_BYTES}  # fmt: skip
    assert container["image"] == cluster.images.base.name


def test_the_scheduler_places_it_on_what_the_node_has_left(worker: str, sublet: Product, cluster: Cluster) -> None:
    assert cluster.get("pod", worker)["spec"]["nodeName"] == NODE
    sublet.type("describe", "node", NODE)


def test_its_groups_are_limited_to_what_it_may_have(sublet: Product, worker: str) -> None:
    def limits() -> set[tuple[int | None, int | None]]:
        return {
            (group_setting(sublet.cluster, Knob.CPU_QUOTA, worker, container),
             group_setting(sublet.cluster, Knob.MEMORY_MAX, worker, container))
            for container in ("", "main")
        }  # fmt: skip

    until(lambda: limits() == {(CPU_MILLIS, MEMORY_BYTES)}, SEEN_LIMIT_S, "quota and limit of pod and container")


def test_a_pod_without_a_profile_is_created_as_it_was_sent(sublet: Product, cluster: Cluster, made: Document) -> None:
    sublet.start(pod("plain", cluster.images.base.name, BY_HAND))
    found = cluster.get("pod", "plain")
    sublet.end("plain")
    assert found["metadata"]["labels"] == BY_HAND
    assert found["spec"]["containers"][0]["resources"]["requests"].keys() == {"cpu", "memory"}


def test_while_a_service_works_the_batch_pods_get_less_cpu_time(sublet: Product, cluster: Cluster, worker: str) -> None:
    strategy = thresholds(enable=True, cpuSuppressPolicy="cfsQuota", cpuSuppressThresholdPercent=IDLE_PERCENT)
    sublet.type("apply", "--filename", "-", given=json.dumps(strategy, indent=1))
    until(lambda: batch_quota_millis(cluster) > FLOOR_MILLIS, SEEN_LIMIT_S, "a quota above the floor")
    service = pod(SERVICE, cluster.images.base.name, {}, BUSY)
    del service["spec"]["containers"][0]["resources"]["limits"]
    sublet.start(service)
    until(lambda: batch_quota_millis(cluster) == FLOOR_MILLIS, SEEN_LIMIT_S, "a quota of the floor")
    sublet.end(SERVICE)
    until(lambda: batch_quota_millis(cluster) > FLOOR_MILLIS, REGROW_LIMIT_S, "a quota above the floor again")


def test_where_memory_runs_short_the_larger_batch_pod_goes_and_the_smaller_stays(
    sublet: Product, cluster: Cluster, worker: str
) -> None:
    threshold = used_percent() + ROOM_PERCENT
    strategy = thresholds(enable=True, memoryEvictThresholdPercent=threshold)
    sublet.type("apply", "--filename", "-", given=json.dumps(strategy, indent=1))
    total_percent_bytes = memory_bytes("MemTotal") // 100
    sublet.start(
        batch("small", cluster, total_percent_bytes),
        batch("large", cluster, (ROOM_PERCENT + 2) * total_percent_bytes),
    )
    sublet.wait_evicted("large", "memory.usage", EVICTED_LIMIT_S)
    assert {"small", worker} <= sublet.pods().keys()
    sublet.transcript.append("$ kubectl get event -A | grep evict\n" + "\n".join(sublet.evict_lines()))
    sublet.end("small")


def test_the_node_and_its_pods_are_measured_as_the_release_notes_show(
    sublet: Product, cluster: Cluster, worker: str
) -> None:
    def measured() -> list[Document]:
        listed: list[Document] = cluster.get("nodemetrics", NODE).get("status", {}).get("podsMetric", [])
        return [one for one in listed if one["name"] == worker]

    until(measured, REPORT_LIMIT_S, "the batch pod in the NodeMetric")
    said = yaml.safe_load(sublet.type("get", "nodemetrics", NODE, "--output", "yaml"))
    assert said["apiVersion"] == "slo.koordinator.sh/v1alpha1"
    assert said["status"]["nodeMetric"]["nodeUsage"]["resources"].keys() == {"cpu", "memory"}
    (own,) = measured()
    assert own["podUsage"]["resources"].keys() == {"cpu", "memory"}
    assert (own["namespace"], own["qos"], own["priority"]) == ("default", "BE", "koord-batch")


def test_the_config_map_switches_suppression_off_within_seconds(sublet: Product, cluster: Cluster, worker: str) -> None:
    until(lambda: "policy koordinator" in sublet.node_command("status"), SEEN_LIMIT_S, "the policy koordinator")
    assert slo_says(cluster) is True
    sublet.type("apply", "--filename", "-", given=json.dumps(thresholds(enable=False), indent=1))
    until(lambda: "policy adaptive" in sublet.node_command("status"), SEEN_LIMIT_S, "the node's own policy again")
    until(lambda: slo_says(cluster) is False, SEEN_LIMIT_S, "the NodeSLO")


def test_classes_that_do_not_go_together_are_refused_with_what_to_write(sublet: Product, cluster: Cluster) -> None:
    torn = pod("torn", cluster.images.base.name, {QOS_LABEL: "BE"})
    amounts = {BATCH_CPU: str(CPU_MILLIS), BATCH_MEMORY: str(MEMORY_BYTES)}
    torn["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    with pytest.raises(CommandError, match="want koord-mid, koord-batch or koord-free: a priorityClassName"):
        sublet.start(torn)
    assert "torn" not in sublet.pods()


def test_while_nobody_answers_pods_are_created_unchanged(sublet: Product, cluster: Cluster, made: Document) -> None:
    sublet.in_system("scale", WEBHOOK, "--replicas=0")
    until(lambda: not sublet.pods_of("webhook"), SEEN_LIMIT_S, "nobody who answers")
    sublet.start(pod("alone", cluster.images.base.name, MARK))
    assert cluster.get("pod", "alone")["metadata"]["labels"] == MARK
