"""The sample as gauges: the same figures, absent ones without a series, and no more series than stated."""

from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.metrics.adapters.exposition import MOST_PODS, Exposition
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import (
    ContainerReading,
    CpuUsage,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
    Pressure,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, *usages: float | None) -> PodReading:
    named = [(f"c{n}", usage) for n, usage in enumerate(usages)]
    return PodReading(
        pod=Pod(uid=name.encode().hex(), name=name, containers=tuple(Container(name=c) for c, _ in named)),
        containers=tuple(ContainerReading(name=c, cpu_usage_cores=usage) for c, usage in named),
    )


def sample(**fields: Any) -> NodeSample:
    node = {"online_cpus": "0-3"} | fields.pop("node", {})
    return NodeSample(
        node="n", boot_id="0" * 8, seq=1, sent_at=NOW, node_reading=NodeReading.model_validate(node), **fields
    )


class Scrape:
    """Shows a sample and reads the page that Prometheus would."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._now_s = 100.0
        self._exposition = Exposition(lambda: self._now_s, self._registry)
        self.close = self._exposition.close

    def __call__(
        self, shown: NodeSample | None = None, *, after_s: float = 0.0, missing: int = 0
    ) -> dict[tuple[Any, ...], float]:
        if shown is not None:
            self._exposition.show(shown, missing=missing, failing=0)
        self._now_s += after_s
        page = generate_latest(self._registry).decode()
        return {
            (one.name, *sorted(one.labels.items())): one.value
            for family in text_string_to_metric_families(page)
            for one in family.samples
        }


@pytest.fixture
def scrape() -> Scrape:
    return Scrape()


def test_before_the_first_sample_there_is_nothing(scrape: Scrape) -> None:
    assert scrape() == {}


def test_the_page_has_the_figures_of_the_sample(scrape: Scrape) -> None:
    page = scrape(
        sample(
            node={
                "cpu_usage_cores": 1.5,
                "memory_pressure": Pressure(some_avg10_percent=3.0),
                "cpus": CpuUsage(cpus="0,2", busy_percent=(50, 7)),
                "extra": {"temperature_celsius": 41.5, "nic_up.eth0": 1.0, "nic_up.eth1.7": 0.0},
            },
            numas=(NumaReading(numa=1, memory_free_bytes=7),),
            pools=(PoolReading(pool="share", load1=2.5, extra={"odd-name": 3.0}),),
            pods=(pod("web", 0.25, 0.5),),
            figure_ages_s={"load1": 4.0},
        ),
        after_s=3.0,
        missing=2,
    )
    assert page[("sublet_sample_age_seconds",)] == 3.0
    assert page[("sublet_sample_figures_missing",)] == 2
    assert page[("sublet_figure_age_seconds", ("figure", "load1"))] == 4.0
    assert page[("sublet_node_cpu_usage_cores",)] == 1.5
    assert page[("sublet_node_cpus",)] == 4
    assert page[("sublet_node_temperature_celsius",)] == 41.5
    cards = {key[1]: value for key, value in page.items() if key[0] == "sublet_node_nic_up"}
    assert cards == {("name", "eth0"): 1, ("name", "eth1.7"): 0}
    where = (("resource", "memory"), ("stalled", "some"), ("window", "10s"))
    assert page[("sublet_node_pressure_percent", *where)] == 3.0
    cpus = {key[1][1]: value for key, value in page.items() if key[0] == "sublet_cpu_usage_ratio"}
    assert cpus == {"0": 0.5, "2": 0.07}
    assert page[("sublet_numa_memory_free_bytes", ("numa", "1"))] == 7
    assert page[("sublet_pool_load1", ("pool", "share"))] == 2.5
    assert page[("sublet_pool_odd_name", ("pool", "share"))] == 3.0
    assert page[("sublet_pod_cpu_usage_cores", ("namespace", "default"), ("pod", "web"))] == 0.75


def test_what_is_absent_has_no_series(scrape: Scrape) -> None:
    names = {key[0] for key in scrape(sample(pods=(pod("half", 0.5, None), pod("none"))))}
    assert names == {
        "sublet_node_cpus",
        "sublet_sample_age_seconds",
        "sublet_sample_figures_missing",
        "sublet_sample_sources_failing",
        "sublet_pods",
        "sublet_pods_left_out",
    }


def test_the_number_of_pods_with_series_is_bounded(scrape: Scrape) -> None:
    page = scrape(sample(pods=tuple(pod(f"p{n:03}", 0.1) for n in range(MOST_PODS + 3))))
    assert sum(key[0] == "sublet_pod_cpu_usage_cores" for key in page) == MOST_PODS
    assert page[("sublet_pods_left_out",)] == 3


def test_once_closed_it_shows_nothing(scrape: Scrape) -> None:
    scrape(sample())
    scrape.close()
    assert scrape() == {}
