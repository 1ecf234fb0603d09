"""The series on the bus: names and values of Katalyst's metrics, absent where nothing was measured, bounded."""

import re
from typing import Any

import pytest
from cluster_samples import ENVELOPE, GIB, applied, placed, sampled
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.core.cluster.figures import MOST_AGE_S, figure_fields, shorter
from services.reporter.core.cluster.series import CONTAINER, NODE, NUMA, POD, POOL
from services.reporter.core.field import Offered
from shared.contracts.allocation import Allocation
from shared.contracts.cluster.figures import FigureRow, PodFigures
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import (
    ContainerReading,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
    Pressure,
)


def figures(sample: NodeSample, allocation: Allocation | None = None, labels: tuple[str, ...] = ()) -> PodFigures:
    fields = figure_fields(sample, allocation, Offered(4500, GIB), labels)
    return PodFigures(**{**ENVELOPE, "sent_at": sample.sent_at}, period_s=15.0, **fields)


def rows(sample: NodeSample, **kwargs: Any) -> list[FigureRow]:
    return list(PodFigures.decode(figures(sample, **kwargs).encode()).rows())


def reading(uid: str = "aa", *containers: ContainerReading, **fields: Any) -> PodReading:
    asks = Container(name="main", cpu_request_millis=2000, memory_request_bytes=2 * GIB)
    pod = Pod.model_validate({"uid": uid, "name": f"p-{uid}", "containers": (asks,), **fields})
    return PodReading(pod=pod, containers=containers)


def used(name: str = "main", **fields: Any) -> ContainerReading:
    return ContainerReading(name=name, **fields)


def test_a_pod_has_the_sums_of_its_containers() -> None:
    pod = reading(
        "aa",
        used("main", cpu_usage_cores=1.0, memory_working_set_bytes=GIB, memory_rss_bytes=GIB // 2, load1=2.0,
             sched_wait_tasks=0.5, throttled_cores=0.25, throttled_ratio=0.1, extra={"cpi": 2.0},
             cpu_pressure=Pressure(some_avg10_percent=7.0)),
        used("side", cpu_usage_cores=0.5, memory_usage_bytes=GIB, extra={"cpi": 0.5}),
    )  # fmt: skip
    found = {(row.name, row.labels.get("container")): row.figures for row in rows(sampled(pod)) if row.namespace}
    assert found["p-aa", None] == {
        "pod_cpu_usage": 1.5, "pod_cpu_usage_ratio": 0.75, "pod_cpu_load_1min": 2.0, "pod_cpu_cpi": 1.5,
        "pod_cpu_wanted": 2.25, "pod_cpu_throttled_ratio": 0.1, "pod_cpu_pressure_percent": 7.0,
        "pod_memory_usage": 2 * GIB, "pod_memory_usage_ratio": 1.0, "pod_memory_rss": GIB // 2,
    }  # fmt: skip
    assert found["p-aa", "side"] == {
        "container_cpu_usage": 0.5, "container_cpu_wanted": 0.5, "container_memory_usage": GIB
    }  # fmt: skip


def test_what_was_not_measured_is_absent_and_what_asks_for_nothing_has_no_ratio() -> None:
    bare = PodReading(pod=Pod(uid="bb", name="p-bb"), containers=(used(cpu_usage_cores=1.0),))
    told = {row.name: row.figures for row in rows(sampled(reading("aa"), bare)) if "container" not in row.labels}
    assert told["p-aa"] == {}
    assert told["p-bb"] == {"pod_cpu_usage": 1.0, "pod_cpu_wanted": 1.0}


def test_a_pod_that_does_not_run_is_left_out() -> None:
    assert [row.name for row in rows(sampled(reading(phase="Pending"))) if row.namespace] == []


def test_a_pod_has_labels() -> None:
    pods = (reading("aa", used(), labels={"app": "shop", "x": "y"}), reading("bb", qos="reclaimed_cores"))
    told = rows(sampled(*pods), allocation=applied(pods=(placed("aa", "0-1"),)), labels=("app", "none"))
    labels = {row.name: dict(row.labels) for row in told if row.namespace and "container" not in row.labels}
    assert labels == {
        "p-aa": {"node_name": "n1", "app": "shop", "qos_level": "shared_cores", "pool": "dedicated"},
        "p-bb": {"node_name": "n1", "qos_level": "reclaimed_cores"},
    }


@pytest.mark.parametrize("value", ["x" * 64, "-", "a b", "\x1b[31m", "é"])
def test_a_text_that_is_no_labels_value_is_left_out(value: str) -> None:
    (row,) = [row for row in rows(sampled(reading(labels={"app": value})), labels=("app",)) if row.namespace]
    assert "app" not in row.labels


def test_the_node_its_parts_and_its_offer() -> None:
    node = NodeReading(online_cpus="0-7", cpu_usage_cores=2.0, load1=3.0, sched_wait_tasks=1.0, cpu_steal_cores=0.5,
                       memory_total_bytes=8 * GIB, memory_free_bytes=GIB, memory_available_bytes=6 * GIB,
                       memory_pressure=Pressure(some_avg10_percent=1.25))  # fmt: skip
    numa = NumaReading(numa=0, cpus="0-7", memory_total_bytes=8 * GIB, memory_free_bytes=GIB)
    pool = PoolReading(pool="share", cpu_usage_cores=1.0, load1=2.5)
    sample = sampled(node_reading=node, numas=(numa,), pools=(pool, PoolReading(pool="no label!", load1=1.0)))
    whole, on_numa, of_pool = rows(sample)
    assert whole.figures == {
        "node_cpu_total": 8, "node_cpu_usage": 2.0, "node_cpu_usage_ratio": 0.25, "node_cpu_load_system_1min": 3.0,
        "node_cpu_wanted": 3.0, "node_cpu_steal": 0.5, "node_memory_pressure_percent": 1.25,
        "node_system_memory_total": 8 * GIB, "node_system_memory_free": GIB, "node_system_memory_available": 6 * GIB,
        "node_reclaimed_cpu_offer": 4.5, "node_reclaimed_memory_offer": GIB,
    }  # fmt: skip
    assert (on_numa.labels["numa"], on_numa.figures) == (
        "0", {"numa_memory_total": 8 * GIB, "numa_memory_free": GIB}
    )  # fmt: skip
    assert (of_pool.labels["pool"], of_pool.figures["node_advisor_pool_load_1min"]) == ("share", 2.5)


def test_figures_that_are_too_old_are_left_out() -> None:
    pod = reading("aa", used(cpu_usage_cores=1.0, load1=2.0, extra={"cpi": 1.0}))
    ages = {"load1": MOST_AGE_S + 1, "cpi": MOST_AGE_S + 1, "cpu_usage_cores": MOST_AGE_S}
    told = next(row for row in rows(sampled(pod, figure_ages_s=ages)) if row.namespace)
    assert told.figures.keys() == {"pod_cpu_usage", "pod_cpu_usage_ratio", "pod_cpu_wanted"}


def test_half_of_it_is_a_message_too() -> None:
    pods = [reading(f"a{number}", used(cpu_usage_cores=1.0), used("side")) for number in range(5)]
    fields = shorter(figure_fields(sampled(*pods), None, None, ()))
    assert fields is not None
    half = PodFigures(**ENVELOPE, period_s=15.0, **fields)
    assert (half.pods.names, half.containers.pods, half.pods_left_out) == (("p-a0", "p-a1"), (0, 0, 1, 1), 3)


def test_without_pods_it_is_short() -> None:
    assert shorter(figure_fields(sampled(), None, None, ())) is None


def test_every_series_can_be_asked_for_by_its_name() -> None:
    names = [*NODE, *NUMA, *POOL, *CONTAINER, *POD]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z][a-z0-9_]{0,62}", name) for name in names)


figure = st.none() | st.floats(0, 1e9)
containers = st.builds(
    ContainerReading, name=st.sampled_from(["a", "b"]), cpu_usage_cores=figure, load1=figure, sched_wait_tasks=figure,
    throttled_ratio=figure, memory_rss_bytes=st.none() | st.integers(0, 1 << 50),
    extra=st.dictionaries(st.sampled_from(["cpi", "x"]), st.floats(0, 1e9)),
)  # fmt: skip
pods = st.lists(st.lists(containers, max_size=3), max_size=5)


@given(pods, st.dictionaries(st.text(max_size=5), st.text(max_size=70), max_size=3), st.text(max_size=70))
def test_whatever_a_sample_holds_makes_a_message(
    told: list[list[ContainerReading]], labels: dict[str, str], pool: str
) -> None:
    readings = [reading(f"a{number}", *parts, labels=labels) for number, parts in enumerate(told)]
    sample = sampled(*readings, pools=(PoolReading(pool=pool, load1=1.0),))
    keys = tuple(key for key in labels if re.fullmatch("[A-Za-z]+", key))
    found = rows(sample, labels=keys)
    assert sum("container" not in row.labels for row in found if row.namespace) == len(told)
