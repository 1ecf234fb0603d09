"""The story of custom metrics on a real API server, kubelet and autoscaler: `kubectl get --raw` shows what a pod uses.
HorizontalPodAutoscalers give Deployments as many replicas as it calls for: by what pods use, and by an external metric
that one of them shows on a page of its own.

What was typed and said is kept in `out/kubernetes/custom-metrics-story.txt`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_rig.cluster import Cluster, CommandError
from kube_rig.installation import CHART, NAMESPACE, RELEASE
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until

from shared.contracts.kube.quantities import parse_millis

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

SETTINGS = {
    "metricsApi": {"enabled": True, "replicas": 1, "pages": True},
    "recommendation": {"enabled": True},
    "settings": {"central": {"kubernetes": {"recommendation": {"min_history_s": 1}}}},
}
API, SEEN_LIMIT_S, SCALED_LIMIT_S = "deployment/sublet-metrics-api", 90.0, 90.0
ROOT = "/apis/custom.metrics.k8s.io/v1beta2"
PODS = f"{ROOT}/namespaces/default/pods"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
ORDERS = f"{EXTERNAL}/namespaces/default/queue_length?labelSelector=topic%3Dorders"
BUSY = "trap exit TERM; (while :; do :; done) & wait"
TARGET_MILLIS = 100
TRANSCRIPT = Path(__file__).parents[2] / "out/kubernetes/custom-metrics-story.txt"
METRIC = {"name": "pod_cpu_usage"}
TARGET = {"type": "AverageValue", "averageValue": f"{TARGET_MILLIS}m"}
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 2,
        "metrics": [{"type": "Pods", "pods": {"metric": METRIC, "target": TARGET}}],
    },
}

LONGEST, ORDERS_A_WORKER = 12, 4
PAGE = "printf '# TYPE queue_length gauge\\nqueue_length{selector_topic=\"orders\"} %s\\n' $1 > /tmp/page/metrics"
QUEUE = f"mkdir -p /tmp/page; set -- {LONGEST}; {PAGE}; exec python3 -m http.server 8080 --directory /tmp/page"
BY_THE_QUEUE = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "workers"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "workers"},
        "minReplicas": 1,
        "maxReplicas": 5,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        "metrics": [
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue_length", "selector": {"matchLabels": {"topic": "orders"}}},
                    "target": {"type": "AverageValue", "averageValue": str(ORDERS_A_WORKER)},
                },
            }
        ],
    },
}

Document = dict[str, Any]


def deployment(image: str) -> Document:
    """One replica that uses a part of a CPU."""
    amounts = {"cpu": "300m", "memory": "32Mi"}
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", BUSY],
                 "resources": {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": amounts}}  # fmt: skip
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def queue(image: str) -> list[Document]:
    """A pod whose page says how many orders wait, and the Deployment whose pods would serve them."""

    def spec(command: list[str]) -> Document:
        container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": command,
                     "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}}}  # fmt: skip
        return {"terminationGracePeriodSeconds": 1, "containers": [container]}

    told = {"name": "queue", "labels": {"app": "queue"}, "annotations": {"metrics.sublet.io/page": "8080/metrics"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": told, "spec": spec(["sh", "-c", QUEUE])}
    labels = {"app": "workers"}
    template = {"metadata": {"labels": labels}, "spec": spec(["sleep", "infinity"])}
    workers = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return [pod, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "workers"}, "spec": workers}]


CONTROLLED = [{"resourceName": "cpu", "maxAllowed": "200m"}, {"resourceName": "memory"}]
RECOMMEND = {
    "apiVersion": "recommendation.katalyst.kubewharf.io/v1alpha1",
    "kind": "ResourceRecommend",
    "metadata": {"name": "web"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "resourcePolicy": {
            "algorithmPolicy": {"algorithm": "percentile"},
            "containerPolicies": [{"containerName": "*", "controlledResourcesPolicies": CONTROLLED}],
        },
    },
}


OF_ANOTHER = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
    "spec": {"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
             "versionPriority": 100, "insecureSkipTLSVerify": True, "service": {"name": "keda", "namespace": "keda"}},
}  # fmt: skip


def refused_beside_another(cluster: Cluster) -> str:
    """What an installation says where another one serves a group already; nothing is installed."""
    words = ["install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=server", "--set"]
    cluster.kubectl("apply", "--filename", "-", given=json.dumps(OF_ANOTHER))
    try:
        cluster.helm(*words, "metricsApi.enabled=true")
    except CommandError as error:
        return str(error)
    finally:
        cluster.kubectl("delete", "--filename", "-", given=json.dumps(OF_ANOTHER))
    return ""


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed with the metrics API, which is off in the chart, beside a service that works."""
    installed = Product(cluster)
    assert "served by keda/keda already" in refused_beside_another(cluster)
    installed.install(SETTINGS, mode=None)
    installed.type("apply", "--filename", "-", given=json.dumps(deployment(cluster.images.base.name), indent=1))
    cluster.apply(RECOMMEND, *queue(cluster.images.base.name))
    installed.in_system("rollout", "status", API, f"--timeout={SEEN_LIMIT_S:.0f}s")
    yield installed
    cluster.kubectl("delete", "hpa,deployment,resourcerecommend", "--all", "--wait")
    cluster.kubectl("delete", "pod", "queue", "--wait=false")
    cluster.kubectl("wait", "pod", "--all", "--for=delete", f"--timeout={SEEN_LIMIT_S:.0f}s")
    installed.uninstall()
    installed.leave()
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("\n".join(installed.transcript))


def raw(cluster: Cluster, path: str) -> Document:
    """What the API server passes on; empty where it says no."""
    try:
        found: Document = json.loads(cluster.kubectl("get", "--raw", path))
    except CommandError:
        return {}
    return found


def test_kubectl_shows_what_the_pods_of_a_selector_use(sublet: Product, cluster: Cluster) -> None:
    path = f"{PODS}/*/pod_cpu_usage?labelSelector=app%3Dweb"

    def used_millis() -> list[int]:
        return [parse_millis(item["value"]) for item in raw(cluster, path).get("items", [])]

    until(lambda: (used_millis() or [0])[0] > TARGET_MILLIS, SEEN_LIMIT_S, "the use of the pod that works")
    (item,) = json.loads(sublet.type("get", "--raw", path))["items"]
    assert (item["describedObject"]["kind"], item["metric"]["name"]) == ("Pod", "pod_cpu_usage")
    assert item["describedObject"]["name"].startswith("web-")
    (node,) = json.loads(sublet.type("get", "--raw", f"{ROOT}/nodes/{NODE}/node_cpu_usage"))["items"]
    assert parse_millis(node["value"]) > 0


def test_the_three_apis_are_available_and_list_their_metrics(sublet: Product, cluster: Cluster) -> None:
    for name in ("v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"):
        sublet.type("wait", f"apiservice/{name}", "--for=condition=Available", f"--timeout={SEEN_LIMIT_S:.0f}s")
    names = {one["name"] for one in raw(cluster, ROOT)["resources"]}
    assert {"pods/pod_cpu_usage", "pods/cpu_usage", "nodes/node_cpu_usage"} <= names
    until(lambda: [one["name"] for one in raw(cluster, EXTERNAL)["resources"]] == ["queue_length"], SEEN_LIMIT_S,
          "the one external metric")  # fmt: skip


def test_what_does_not_exist_is_said_and_nobody_comes_round_the_api_server(sublet: Product, cluster: Cluster) -> None:
    with pytest.raises(CommandError, match=r"NotFound|has no fresh value"):
        sublet.type("get", "--raw", f"{PODS}/nobody/pod_cpu_usage")
    with pytest.raises(CommandError, match=r"BadRequest|only an aggregate has groups"):
        sublet.type("get", "--raw", f"{PODS}/*/pod_cpu_usage?metricLabelSelector=groupBy%3Da")
    with pytest.raises(CommandError, match="orbidden"):
        cluster.kubectl("get", "--raw", f"{PODS}/*/pod_cpu_usage", "--as", "system:serviceaccount:default:default")


def wait_replicas(cluster: Cluster, name: str, want: int) -> None:
    """Wait until an autoscaler has given its Deployment so many replicas, and says that it scales by its metric.

    Raises:
        TimeoutError: it does not; with what it says of itself.
    """

    def reached() -> bool:
        return int(cluster.get("deployment", name)["spec"]["replicas"]) == want

    try:
        until(reached, SCALED_LIMIT_S, f"{want} replicas of {name}")
    except TimeoutError as error:
        raise TimeoutError(f"{error}\n{cluster.kubectl('describe', 'hpa', name)}") from error
    conditions = {one["type"]: one["status"] for one in cluster.get("hpa", name)["status"]["conditions"]}
    assert conditions["ScalingActive"] == "True"


def test_an_autoscaler_gives_a_deployment_more_replicas(sublet: Product, cluster: Cluster) -> None:
    sublet.type("apply", "--filename", "-", given=json.dumps(AUTOSCALER, indent=1))
    wait_replicas(cluster, "web", 2)
    sublet.type("describe", "hpa", "web")


def test_another_follows_an_external_metric_up_and_down(sublet: Product, cluster: Cluster) -> None:
    until(lambda: bool(raw(cluster, ORDERS).get("items")), SEEN_LIMIT_S, "the page of the queue")
    (item,) = json.loads(sublet.type("get", "--raw", ORDERS))["items"]
    assert (item["metricName"], item["metricLabels"]["topic"], item["value"]) == ("queue_length", "orders", "12")
    sublet.type("apply", "--filename", "-", given=json.dumps(BY_THE_QUEUE, indent=1))
    wait_replicas(cluster, "workers", LONGEST // ORDERS_A_WORKER)
    sublet.type("describe", "hpa", "workers")
    sublet.type("exec", "queue", "--", "sh", "-c", f"set -- {ORDERS_A_WORKER}; {PAGE}")
    wait_replicas(cluster, "workers", 1)


def test_by_the_same_figures_and_the_charts_rights_requests_are_recommended(sublet: Product, cluster: Cluster) -> None:
    provided = "--for=condition=RecommendationProvided"
    sublet.type("wait", "resourcerecommend/web", provided, f"--timeout={SEEN_LIMIT_S:.0f}s")
    status = cluster.get("resourcerecommend", "web")["status"]
    (row,) = status["recommendResources"]["containerRecommendations"]
    assert row["requests"]["target"]["cpu"] == "200m"
    assert parse_millis(row["requests"]["uncappedTarget"]["cpu"]) > TARGET_MILLIS
    sublet.type("annotate", "resourcerecommend/web", "recommendation.sublet.io/apply=InPlace")
    # It is installed as the chart has it, to observe: asked to change pods it says that it does not.
    sublet.type("wait", "resourcerecommend/web", "--for=condition=Applied=False", f"--timeout={SEEN_LIMIT_S:.0f}s")
    told = cluster.get("resourcerecommend", "web")["status"]["conditions"]
    assert [one["reason"] for one in told if one["type"] == "Applied"] == ["Observes"]
    central = "system:serviceaccount:sublet-system:sublet-central"
    resizes = ("patch", "pods", "--subresource=resize")
    for words in (resizes, ("create", "usagecheckpoints.recommendation.sublet.io")):
        assert cluster.kubectl("auth", "can-i", *words, "--as", central).strip() == "yes"
