"""Replies of the aggregated API: paths, versions, refusals, and discovery."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.custom_metrics.discovery import MetricName, discovery_reply
from services.central.core.custom_metrics.paths import Get
from services.central.core.custom_metrics.query import MetricView
from services.central.core.custom_metrics.reply import kind_of, reply_to
from services.central.core.custom_metrics.series import MeteredObject, SeriesIndex, SeriesKey

V1, V2 = "/apis/custom.metrics.k8s.io/v1beta1", "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
AT_MS = 1_700_000_005_999


def view() -> MetricView:
    index = SeriesIndex()
    for about, labels in (
        (MeteredObject("pods", "d", "web"), ()),
        (MeteredObject("pods", "d", "db"), (("c", "a"),)),
        (MeteredObject("nodes", None, "n1"), ()),
        (MeteredObject("namespaces", None, "d"), ()),
        (MeteredObject(None, "d", None), (("t", "a"),)),
    ):
        index.series(SeriesKey("m", about, labels)).put(AT_MS, 0.25)
    return MetricView(index)


@pytest.mark.parametrize(
    ("path", "status", "names"),
    [
        (f"{V2}/namespaces/d/pods/web/m", 200, ["web"]),
        (f"{V1}/namespaces/d/pods/*/m", 200, ["db", "web"]),
        (f"{V1}/namespaces/d/pods/%2A/m", 200, ["db", "web"]),
        (f"{V2}/nodes/n1/m", 200, ["n1"]),
        (f"{V2}/nodes/*/m", 200, ["n1"]),
        (f"{V2}/namespaces/d/metrics/m", 200, ["d"]),
        (f"{V2}/namespaces/none/pods/*/m", 200, []),
        (f"{EXTERNAL}/namespaces/d/m", 200, [None]),
        (f"{EXTERNAL}/namespaces/d/none", 200, []),
        (f"{V2}/namespaces/d/pods/gone/m", 404, None),
        (f"{V2}/nodes/n2/m", 404, None),
        (f"{V2}/namespaces/e/metrics/m", 404, None),
        (f"{V2}/namespaces/d/pods/web/m/more", 404, None),
        (f"{V2}/nodes/n1/m/more", 404, None),
        (f"{EXTERNAL}/namespaces/d/m/more", 404, None),
        (f"{EXTERNAL.replace('v1beta1', 'v1beta2')}/namespaces/d/m", 404, None),
        ("/apis/custom.metrics.k8s.io/v1/nodes/n1/m", 404, None),
        ("/apis/metrics.k8s.io/v1beta1/nodes/n1/m", 404, None),
        ("/apis/custom.metrics.k8s.io", 404, None),
        ("/api/custom.metrics.k8s.io/v1beta2/nodes/n1/m", 404, None),
        ("nonsense", 404, None),
        ("", 404, None),
        (V2, 400, None),
        (f"{V2}/", 400, None),
        (f"{V2}/nodes", 400, None),
        (f"{V2}/nodes/n1", 400, None),
        (f"{V2}/namespaces/d", 400, None),
        (f"{V2}/namespaces/d/pods/web", 400, None),
        (f"{V2}/namespaces/d/pods/web/", 400, None),
        (f"{V2}/namespaces//pods/web/m", 400, None),
        (f"{EXTERNAL}/namespaces/d", 400, None),
        (f"{EXTERNAL}/namespaces/d/", 400, None),
    ],
)
def test_a_path_is_answered(path: str, status: int, names: list[str] | None) -> None:
    reply = reply_to(Get(path), view())
    assert reply.status == status, reply.body
    if names is None:
        assert (reply.body["kind"], reply.body["code"], reply.body["status"]) == ("Status", status, "Failure")
    else:
        found = [item.get("describedObject", {}).get("name") for item in reply.body["items"]]
        assert found == names


def test_the_words_of_each_version() -> None:
    time = "2023-11-14T22:13:25Z"
    described = {"kind": "Pod", "namespace": "d", "name": "web", "apiVersion": "v1"}
    aggregated = {"timestamp": time, "value": "250m"}

    def item(path: str, **selectors: str) -> dict[str, Any]:
        (only,) = reply_to(Get(path, **selectors), view()).body["items"]
        return dict(only)

    assert item(f"{V2}/namespaces/d/pods/web/m_agg_avg") == {
        "describedObject": described, "metric": {"name": "m_agg_avg", "selector": None}, "windowSeconds": 0,
    } | aggregated  # fmt: skip
    assert item(f"{V1}/namespaces/d/pods/web/m_agg_avg") == {
        "describedObject": described, "metricName": "m_agg_avg", "selector": None, "window": 0,
    } | aggregated  # fmt: skip
    assert item(f"{EXTERNAL}/namespaces/d/m") == {"metricName": "m", "metricLabels": {"t": "a"}} | aggregated
    assert item(f"{EXTERNAL}/namespaces/d/m_agg_max") == {
        "metricName": "m_agg_max", "metricLabels": {}, "window": 0,
    } | aggregated  # fmt: skip
    assert item(f"{V2}/namespaces/d/metrics/m") == {
        "describedObject": {"kind": "Namespace", "name": "d", "apiVersion": "v1"},
        "metric": {"name": "m", "selector": None},
    } | aggregated  # fmt: skip
    grouped = item(f"{V2}/namespaces/d/pods/*/m_agg_avg", metric_label_selector="groupBy=c")
    assert grouped["metric"]["selector"] == {"matchLabels": {"c": "a"}}
    assert item(f"{V2}/namespaces/d/pods/*/m", metric_label_selector="c=a")["metric"]["selector"] is None


def test_a_bad_selector_is_a_bad_request() -> None:
    for selectors in ({"label_selector": "a in"}, {"metric_label_selector": "groupBy=a"}):
        reply = reply_to(Get(f"{V2}/namespaces/d/pods/*/m", **selectors), view())
        assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


@given(st.text(alphabet="/apis%2*.m☃", max_size=60), st.text(max_size=20))
def test_no_path_throws(path: str, selector: str) -> None:
    for prefix in ("", V2, EXTERNAL):
        assert reply_to(Get(prefix + path, selector, selector), view()).status in (200, 400, 404)
        assert discovery_reply(prefix + path, []).status in (200, 404)


@pytest.mark.parametrize(
    ("resource", "kind"),
    [("pods", "Pod"), ("nodes", "Node"), ("ingresses.networking.k8s.io", "Ingress"), ("deployments.apps", "Deployment"),
     ("statefulsets.apps", "StatefulSet"), ("endpoints", "Endpoints")],
)  # fmt: skip
def test_a_kind_is_what_people_know(resource: str, kind: str) -> None:
    assert kind_of(resource) == kind


def test_discovery_lists_each_metric_once_by_name() -> None:
    metrics = [
        MetricName("m", "pods", True),
        MetricName("m", "nodes"),
        MetricName("m", "pods", True),
        MetricName("q", None),
    ]
    body = discovery_reply(V1, metrics).body
    assert [(one["name"], one["namespaced"]) for one in body["resources"]] == [("nodes/m", False), ("pods/m", True)]
    (external,) = discovery_reply(EXTERNAL, metrics).body["resources"]
    assert external == {
        "name": "q", "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"],
    }  # fmt: skip
    group = discovery_reply("/apis/custom.metrics.k8s.io", metrics).body
    assert [one["version"] for one in group["versions"]] == ["v1beta2", "v1beta1"]
    assert group["preferredVersion"] == group["versions"][0]
    assert discovery_reply("/apis", metrics).status == 404
