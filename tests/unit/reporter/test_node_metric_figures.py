"""The figures of a NodeMetric: means and percentiles over windows, in bounded memory, and which change is one."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.core.node_metric.collect_policy import CollectPolicy
from services.reporter.core.node_metric.figures import NodeMetricFigures, node_metric_figures
from services.reporter.core.node_metric.status import left_over, node_metric_status
from services.reporter.core.node_metric.usage_series import BYTES_PER_SLOT, UsageSeries
from services.reporter.core.node_metric.usage_windows import UsageWindows, UsedResources
from shared.contracts.pod import Pod
from shared.contracts.sample import ApplicationReading, ContainerReading, NodeReading, NodeSample, PodReading

CRD = Path(__file__).parents[3] / "deploy/k8s/crds/nodemetrics.yaml"
GIB = 1 << 30
POLICY = CollectPolicy()
FIGURE = st.integers(0, 10**12).map(float)


def reading(name: str, cores: float | None = 0.3, used: int | None = GIB, **fields: Any) -> PodReading:
    """A pod of one container that uses so much."""
    pod = Pod(**{"uid": name.encode().hex(), "name": name} | fields)
    return PodReading(pod=pod, containers=(ContainerReading(name="c", cpu_usage_cores=cores, memory_rss_bytes=used),))


@pytest.fixture
def at(sample: NewSample) -> Any:
    """A sample of one second on a node of 10 GiB."""

    def make(*pods: PodReading, cores: float | None = 1.0, used: int | None = 2 * GIB, **over: Any) -> NodeSample:
        rest = None if used is None else 10 * GIB - used
        node = NodeReading(online_cpus="0-9", cpu_usage_cores=cores, memory_total_bytes=10 * GIB,
                           memory_available_bytes=rest, memory_free_bytes=GIB)  # fmt: skip
        return sample(**{"node_reading": node, "pods": pods, "window_s": 1.0} | over)

    return make


def followed(samples: Any, policy: CollectPolicy = POLICY) -> NodeMetricFigures | None:
    """The figures after a sample each second."""
    windows, now_s = UsageWindows(policy), 0.0
    for now_s, sample in enumerate(samples, start=1):
        windows.add(sample, now_s)
    return node_metric_figures(windows, policy, now_s)


def known(found: NodeMetricFigures | None) -> NodeMetricFigures:
    assert found is not None
    return found


def test_means_are_of_the_aggregation_and_the_system_is_what_is_no_pod(at: Any) -> None:
    found = known(followed([*[at(reading("web"), cores=4.0)] * 300, *[at(reading("web"), cores=1.0)] * 300]))
    assert found.node == UsedResources(1000, 2 * GIB)
    assert found.system == UsedResources(700, GIB)
    assert [(pod.namespace, pod.name, pod.used) for pod in found.pods] == [("default", "web", UsedResources(300, GIB))]


def test_applications_outside_of_pods_are_told_and_are_not_the_systems(at: Any) -> None:
    yarn = ApplicationReading(name="yarn", cpu_usage_cores=0.2, memory_rss_bytes=GIB // 2, qos="BE",
                              priority="koord-batch")  # fmt: skip
    new, gone = ApplicationReading(name="new", unmeasured="no cgroup new"), ApplicationReading(name="gone")
    samples = [at(reading("web"), host_applications=(gone, yarn)), at(reading("web"), host_applications=(yarn, new))]
    found = known(followed(samples))
    assert found.system == UsedResources(500, GIB // 2)
    assert [(one.name, one.used) for one in found.applications] == [("yarn", UsedResources(200, GIB // 2))]
    status = node_metric_status(found, datetime(2026, 1, 1, tzinfo=UTC))
    assert status["hostApplicationMetric"] == [
        {"name": "yarn", "usage": {"resources": {"cpu": "200m", "memory": str(GIB // 2)}}, "priority": "koord-batch",
         "qos": "BE"}
    ]  # fmt: skip
    without = known(followed([at(reading("web"))] * 2))
    assert found.differs(without, 5)
    assert "hostApplicationMetric" not in node_metric_status(without, datetime(2026, 1, 1, tzinfo=UTC))
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["hostApplicationMetric"]
    assert set(status["hostApplicationMetric"][0]) == set(schema["items"]["properties"])


def test_the_system_never_uses_less_than_nothing(at: Any) -> None:
    assert known(followed([at(reading("web", 9.0, 9 * GIB))])).system == UsedResources(0, 0)


@pytest.mark.parametrize("absent", [{"cores": None}, {"used": None}, {"window_s": None}])
def test_a_node_whose_use_is_not_known_has_no_figures(at: Any, absent: dict[str, Any]) -> None:
    assert followed([at(**absent)] * 20) is None


def test_a_pod_without_a_figure_is_left_out_and_not_0(at: Any) -> None:
    found = known(followed([at(reading("new", None, None), reading("half", 0.1, None), reading("web"))]))
    assert [pod.name for pod in found.pods] == ["web"]


def test_a_pod_that_is_gone_is_not_told(at: Any) -> None:
    found = known(followed([at(reading("web"), reading("job")), at(reading("web"))]))
    assert [pod.name for pod in found.pods] == ["web"]


def test_a_mean_is_by_time_and_not_by_sample(at: Any) -> None:
    """Samples come more often as soon as the load rises."""
    windows = UsageWindows(POLICY)
    windows.add(at(cores=1.0, window_s=9.0), 9.0)
    for part in range(1, 11):
        windows.add(at(cores=11.0, window_s=0.1), 9.0 + part / 10)
    assert known(node_metric_figures(windows, POLICY, 10.0)).node.cpu_millis == 2000


def test_a_figure_after_a_long_sleep_is_not_that_of_the_whole_time(at: Any) -> None:
    windows = UsageWindows(POLICY)
    for now_s in range(1, 121):
        windows.add(at(cores=1.0), float(now_s))
    windows.add(at(cores=4.0, window_s=7200.0), 240.0)
    assert known(node_metric_figures(windows, POLICY, 240.0)).node.cpu_millis == 2000


@pytest.mark.parametrize(
    ("seconds", "windows_s"), [(149, []), (150, [300]), (300, [300, 600]), (900, [300, 600, 1800])]
)
def test_percentiles_wait_for_half_of_their_window(at: Any, seconds: int, windows_s: list[int]) -> None:
    found = known(followed([at()] * seconds))
    assert [window.window_s for window in found.node_windows] == windows_s
    assert [window.window_s for window in found.system_windows] == windows_s


def test_time_that_was_not_measured_does_not_count_for_a_window(at: Any) -> None:
    """Two samples that lie far apart are no half of an hour."""
    windows = UsageWindows(POLICY)
    for now_s in (1.0, 290.0):
        windows.add(at(), now_s)
    assert known(node_metric_figures(windows, POLICY, 290.0)).node_windows == ()


def test_percentiles_are_those_of_the_seconds(at: Any) -> None:
    found = known(followed([at(cores=float(second)) for second in range(1, 301)]))
    used = found.node_windows[0].used
    assert {name: amounts.cpu_millis // 1000 for name, amounts in used.items()} == {
        "avg": 150, "p50": 150, "p90": 270, "p95": 285, "p99": 297,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "node_bytes", "pod_bytes"),
    [("usageWithoutPageCache", 2 * GIB, 3), ("usageWithPageCache", 9 * GIB, 8)],
)
def test_what_counts_as_used_memory(at: Any, policy: Any, node_bytes: int, pod_bytes: int) -> None:
    container = ContainerReading(name="c", cpu_usage_cores=0.1, memory_usage_bytes=8, memory_working_set_bytes=6,
                                 memory_rss_bytes=2, memory_shmem_bytes=1)  # fmt: skip
    pod = PodReading(pod=Pod(uid="aa", name="web"), containers=(container,))
    found = known(followed([at(pod)], replace(POLICY, memory=policy)))
    assert (found.node.memory_bytes, found.pods[0].used.memory_bytes) == (node_bytes, pod_bytes)


@pytest.mark.parametrize(
    ("fields", "qos", "priority"),
    [
        ({}, "LS", "koord-prod"),
        ({"qos": "reclaimed_cores"}, "BE", "koord-batch"),
        ({"qos": "dedicated_cores"}, "LSR", "koord-prod"),
        ({"qos": "system_cores"}, "SYSTEM", "koord-prod"),
        ({"qos": "dedicated_cores", "labels": {"koordinator.sh/qosClass": "LSE"}}, "LSE", "koord-prod"),
        ({"priority": 7500}, "LS", "koord-mid"),
        ({"labels": {"koordinator.sh/priority-class": "koord-free"}}, "LS", "koord-free"),
        ({"labels": {"koordinator.sh/qosClass": "<b>"}}, "LS", "koord-prod"),
    ],
)
def test_a_pod_is_of_the_class_as_which_it_runs_here(at: Any, fields: dict[str, Any], qos: str, priority: str) -> None:
    pod = known(followed([at(reading("web", **fields))])).pods[0]
    assert (pod.qos, pod.priority) == (qos, priority)


def test_a_full_node_is_kept_in_less_than_a_mebibyte(at: Any) -> None:
    """250 pods and a window of 30 minutes, twice as long as that."""
    windows = UsageWindows(POLICY)
    quiet, full = at(), at(*(reading(f"pod-{number}") for number in range(250)))
    for second in range(3600 - 360):
        windows.add(quiet, float(second))
    for second in range(3600 - 360, 3600):
        windows.add(full, float(second))
    assert windows.kept_slots == 4 * 1801 + 250 * 2 * 31
    assert windows.kept_slots * BYTES_PER_SLOT < 1 << 20


@given(st.lists(st.tuples(FIGURE, st.floats(0.01, 100)), min_size=1, max_size=200), st.integers(1, 60))
def test_a_series_is_bounded_and_its_figures_lie_within_what_was_added(rows: Any, slots: int) -> None:
    series, now_s = UsageSeries(1.0, slots), 0.0
    for value, step_s in rows:
        now_s += step_s
        series.add(value, now_s, step_s)
        assert 1 <= len(series) <= slots
    window = series.window(3600.0, now_s)
    values = [value for value, _ in rows]
    found = [window.mean, *(window.percentile(percent) for percent in (50, 90, 95, 99))]
    assert all(figure is not None and min(values) * 0.999 <= figure <= max(values) * 1.001 for figure in found)
    percentiles = [figure for figure in found[1:] if figure is not None]
    assert percentiles == sorted(percentiles)


def figures(cpu_millis: int = 1000, memory_bytes: int = GIB, pods: Any = ()) -> NodeMetricFigures:
    used = UsedResources(cpu_millis, memory_bytes)
    return NodeMetricFigures(used, UsedResources(0, 0), (), (), tuple(pods))


@pytest.mark.parametrize(
    ("now", "differs"),
    [
        (figures(), False),
        (figures(1050), False),
        (figures(949), True),
        (figures(1051), True),
        (figures(1000, GIB + GIB // 20), False),
        (figures(1000, GIB * 2), True),
        (replace(figures(), prod_reclaimable=UsedResources(1, 1)), True),
        (replace(figures(), prod_peak=UsedResources(1, 1)), True),
    ],
)
def test_an_amount_has_changed_beyond_a_small_part_of_it(now: NodeMetricFigures, *, differs: bool) -> None:
    assert now.differs(figures(), 5) is differs


@pytest.mark.parametrize(
    ("cpu_millis", "memory_bytes", "differs"),
    [(10, 16 << 20, False), (11, 0, True), (0, (16 << 20) + 1, True)],
)
def test_what_idles_does_not_change_with_every_tick(cpu_millis: int, memory_bytes: int, *, differs: bool) -> None:
    assert figures(cpu_millis, memory_bytes).differs(figures(0, 0), 5) is differs


def test_pods_that_come_go_or_change_class_are_a_change(at: Any) -> None:
    one, two = known(followed([at(reading("a"))])), known(followed([at(reading("a"), reading("b", 0.0, 0))]))
    other = known(followed([at(reading("a", qos="reclaimed_cores"))]))
    assert two.differs(one, 100)
    assert one.differs(two, 100)
    assert other.differs(one, 100)


def test_the_status_has_the_shape_of_the_first_release(at: Any) -> None:
    found = known(followed([at(reading("storage-service-6c7c59f868-k72r5"), cores=0.138, used=1815637738)] * 150))
    status = node_metric_status(found, datetime(2026, 1, 1, tzinfo=UTC))
    resources = {"resources": {"cpu": "138m", "memory": "1815637738"}}
    assert status["updateTime"] == "2026-01-01T00:00:00Z"
    assert status["nodeMetric"]["nodeUsage"] == resources
    assert status["nodeMetric"]["systemUsage"] == {"resources": {"cpu": "0", "memory": str(1815637738 - GIB)}}
    (window,) = status["nodeMetric"]["aggregatedNodeUsages"]
    assert window == {"duration": "5m0s", "usage": dict.fromkeys(("avg", "p50", "p90", "p95", "p99"), resources)}
    assert status["podsMetric"] == [{
        "name": "storage-service-6c7c59f868-k72r5", "namespace": "default", "priority": "koord-prod", "qos": "LS",
        "podUsage": {"resources": {"cpu": "300m", "memory": str(GIB)}},
    }]  # fmt: skip


@pytest.mark.parametrize(("seconds", "said"), [(60, "1m0s"), (90, "1m30s"), (3600, "1h0m0s"), (5400, "1h30m0s")])
def test_a_window_is_named_as_go_writes_it(at: Any, seconds: int, said: str) -> None:
    windows = UsageWindows(policy := replace(POLICY, windows_s=(seconds,)))
    for now_s in range(30, seconds + 1, 30):
        windows.add(at(window_s=30.0), float(now_s))
    status = node_metric_status(known(node_metric_figures(windows, policy, seconds)), datetime(2026, 1, 1, tzinfo=UTC))
    assert status["nodeMetric"]["aggregatedNodeUsages"][0]["duration"] == said


def declared(schema: Any, value: Any) -> bool:
    """Whether the kind declares all of it: the API server drops the rest in silence."""
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        return all(key in fields or others for key in value) and all(
            declared(fields.get(key, others), item) for key, item in value.items()
        )
    return all(declared(schema["items"], item) for item in value) if isinstance(value, list) else True


def test_the_kind_declares_all_that_is_written(at: Any) -> None:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    one = UsedResources(1, 1)
    found = known(followed([at(reading("web"))] * 300))
    found = replace(found, prod_reclaimable=one, prod_peak=one, numas=((0, one),))
    status = node_metric_status(found, datetime(2026, 1, 1, tzinfo=UTC))
    assert declared(schema["status"], status)
    assert not declared(schema["status"], {"nodeMetric": {"another": {}}})
    assert set(schema["spec"]["properties"]["metricCollectPolicy"]["properties"]) == {
        "aggregateDurationSeconds", "reportIntervalSeconds", "nodeAggregatePolicy", "nodeMemoryCollectPolicy",
    }  # fmt: skip


def test_fields_of_another_writer_are_taken_out_and_ours_stay() -> None:
    ours = {"updateTime": "t", "nodeMetric": {"nodeUsage": {}}, "podsMetric": []}
    theirs = {
        "updateTime": "u",
        "nodeMetric": {"nodeUsage": {}, "numaUsages": []},
        "podsMetric": [],
        "prodPeakMetric": {},
    }
    assert left_over(theirs, ours) == {"nodeMetric": {"numaUsages": None}, "prodPeakMetric": None}
    assert left_over(ours, ours) == {}
    assert left_over(None, ours) == {}
