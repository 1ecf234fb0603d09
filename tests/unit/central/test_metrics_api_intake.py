"""What the metrics API takes of nodes and of the API server: whose figures, of when, of whom, and up to which bound."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.custom_metrics.cluster_objects import MeteredSeen, metered_node_of, metered_pod_of
from services.central.core.custom_metrics.figures import figure_samples
from services.central.core.custom_metrics.front_proxy import (
    MAX_AUTHORITY_BYTES,
    front_proxy_of,
)
from services.central.core.custom_metrics.series import MeteredObject, MetricSample, SeriesKey
from services.central.core.custom_metrics.store import MetricStore, StoreBounds
from services.central.custom_metrics.mirrors import MetricsMirrors
from shared.adapters.clock import SystemClock
from shared.contracts.cluster.figures import FiguredContainers, FiguredPods, PodFigures
from shared.errors import Refused
from shared.fakes.memory_objects import MemoryObjects

WEB = MeteredObject("pods", "d", "web")
SEEN: Mapping[MeteredObject, MeteredSeen] = {WEB: MeteredSeen(WEB, "n1", {"app": "web"})}


def figures(node: str = "n1", **changed: Any) -> PodFigures:
    """A node with one pod of one container, measured 2 s before it was said."""
    now = SystemClock().wall()
    pods = FiguredPods(uids=("1f3a-5b",), namespaces=("d",), names=("web",), labels={"qos_level": ("shared_cores",)},
                       series={"pod_cpu_usage": (0.5,), "pod_memory_usage": (None,)})  # fmt: skip
    said: dict[str, Any] = {
        "node": node, "boot_id": "0123456789abcdef", "seq": 1, "sent_at": now, "period_s": 15.0,
        "measured_at": now - timedelta(seconds=2), "node_series": {"node_cpu_usage": 3}, "pods": pods,
        "containers": FiguredContainers(pods=(0,), names=("main",), series={"container_cpu_usage": (0.5,)}),
    }  # fmt: skip
    return PodFigures(**(said | changed))


def test_a_nodes_figures_become_samples_of_its_objects_as_old_as_they_were() -> None:
    here = ("node_name", "n1")
    node, pod, container = figure_samples(figures(), 10_000, SEEN.get)
    assert node == MetricSample(SeriesKey("node_cpu_usage", MeteredObject("nodes", None, "n1"), (here,)), 8000, 3.0)
    assert pod.key == SeriesKey("pod_cpu_usage", WEB, (here, ("qos_level", "shared_cores")))
    assert container.key == SeriesKey("container_cpu_usage", WEB, (("container", "main"), *pod.key.labels))


def test_a_clock_that_is_wrong_changes_nothing_and_no_sample_is_of_later() -> None:
    now = SystemClock().wall()
    wrong = figures(sent_at=now + timedelta(days=900), measured_at=now + timedelta(days=900, seconds=-3))
    assert {one.timestamp_ms for one in figure_samples(wrong, 10_000, SEEN.get)} == {7000}
    later = figures(sent_at=now, measured_at=now + timedelta(hours=1))
    assert {one.timestamp_ms for one in figure_samples(later, 10_000, SEEN.get)} == {10_000}


def test_a_node_tells_nothing_of_another_ones_pods() -> None:
    assert [one.key.about.kind for one in figure_samples(figures("n2"), 10_000, SEEN.get)] == ["nodes"]


def sample(number: int, name: str = "web", metric: str = "m", at_ms: int = 1000) -> MetricSample:
    return MetricSample(SeriesKey(metric, WEB._replace(name=name), (("a", str(number)),)), at_ms, 1.0)


@pytest.mark.parametrize(
    ("bounds", "taken"),
    [
        pytest.param(StoreBounds(series=3, samples=100, series_of_object=100), 3, id="series"),
        pytest.param(StoreBounds(series=100, samples=4, series_of_object=100), 4, id="samples"),
        pytest.param(StoreBounds(series=100, samples=100, series_of_object=2), 2, id="series of one object"),
    ],
)
def test_beyond_a_bound_nothing_is_taken_until_something_expires(bounds: StoreBounds, taken: int) -> None:
    store = MetricStore(expire_s=10, bounds=bounds)
    added, dropped = store.insert((sample(number) for number in range(10)), now_ms=1000)
    assert (added, dict(dropped)) == (taken, {"full": 10 - taken})
    for _ in store.collect(11_000):
        pass
    assert store.insert([sample(99, at_ms=11_000)], now_ms=11_000)[0] == 1


def test_who_has_too_many_series_leaves_the_room_of_others_and_keeps_his_own_going() -> None:
    store = MetricStore(bounds=StoreBounds(series=100, samples=100, series_of_object=2))
    store.insert((sample(number, metric=f"m{number}") for number in range(10)), now_ms=1000)
    assert store.insert([sample(0, "db"), sample(0, metric="m0", at_ms=1001)], now_ms=1001)[0] == 2


def config_map(**data: object) -> dict[str, Any]:
    return {"metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"}, "data": data}


CA, NAMES = "requestheader-client-ca-file", "requestheader-allowed-names"


@pytest.mark.parametrize(
    ("given_names", "client", "allowed"),
    [
        pytest.param('["front-proxy-client"]', "front-proxy-client", True, id="the proxy"),
        pytest.param('["front-proxy-client"]', "somebody", False, id="another name of the same authority"),
        pytest.param('["front-proxy-client"]', None, False, id="no certificate"),
        pytest.param("[]", "somebody", True, id="every name is good"),
        pytest.param("[]", None, False, id="every name is good, and none is not"),
    ],
)
def test_the_front_proxy_is_known_by_its_name(given_names: str, client: str | None, *, allowed: bool) -> None:
    assert front_proxy_of(config_map(**{CA: "PEM", NAMES: given_names})).allows(client) is allowed


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="no aggregation layer"),
        pytest.param({CA: ""}, id="an empty authority"),
        pytest.param({CA: "x" * (MAX_AUTHORITY_BYTES + 1)}, id="far too large"),
        pytest.param({CA: 7}, id="no text"),
        pytest.param({CA: "PEM", NAMES: "front-proxy-client"}, id="names that are no JSON"),
        pytest.param({CA: "PEM", NAMES: '{"a": 1}'}, id="names that are no list"),
        pytest.param({CA: "PEM", NAMES: "[1]"}, id="a name that is no text"),
        pytest.param({CA: "PEM", NAMES: json.dumps(["x" * 20_000])}, id="names far too large"),
    ],
)
def test_who_cannot_be_known_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        front_proxy_of(config_map(**data))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_no_config_map_throws_anything_else(data: Any) -> None:
    for document in ({"data": data}, {"data": {CA: data}}, {"data": {CA: "PEM", NAMES: data}}):
        try:
            front_proxy_of(document)
        except Refused:
            continue


def pod(name: str = "web", node: str | None = "n1", phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "d", "labels": {"app": "web"}}, "spec": {"nodeName": node},
            "status": {"phase": phase}}  # fmt: skip


def test_pods_without_a_node_and_those_that_ended_have_no_figures() -> None:
    assert metered_pod_of(pod()) == MeteredSeen(WEB, "n1", {"app": "web"})
    assert metered_pod_of(pod(node=None)) is None
    assert metered_pod_of(pod(phase="Succeeded")) is None
    assert metered_node_of({"metadata": {"name": "n1"}}) == MeteredSeen(MeteredObject("nodes", None, "n1"), "n1", {})


async def test_an_object_is_known_while_it_is_there_and_the_next_one_of_its_name_is_another() -> None:
    api = MemoryObjects(SystemClock())
    mirrors = MetricsMirrors(api)
    mirrors._index("u1", SEEN[WEB])
    mirrors._index("u2", MeteredSeen(WEB, "n2", {}))
    mirrors._index("u1", None)
    found = mirrors.seen(WEB)
    assert found is not None
    assert found.node == "n2"
    mirrors._index("u2", None)
    mirrors._index("u2", None)
    assert (mirrors.seen(WEB), mirrors.labels(WEB)) == (None, None)


def test_until_all_is_listed_and_the_proxy_known_nobody_is_answered() -> None:
    api = MemoryObjects(SystemClock())
    mirrors = MetricsMirrors(api)
    assert "not listed" in mirrors.failure
    assert mirrors.proxy is None
