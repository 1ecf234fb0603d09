"""The gauge of the pools' sizes: its series are those of the classes, however the tenants name their pools."""

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

from services.metrics.adapters.exposition import MOST_PODS, Exposition
from services.qrm.allocation_reporter import show_sizes
from shared.contracts.allocation import PoolAllocation
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading

ENVELOPE = {"node": "n1", "boot_id": "0" * 16, "seq": 1, "sent_at": "2026-01-01T00:00:00Z"}


def sizes() -> dict[str, float]:
    found = next(family for family in REGISTRY.collect() if family.name == "sublet_pool_cpus")
    return {sample.labels["pool"]: sample.value for sample in found.samples}


def pool(name: str, cpus: str) -> PoolAllocation:
    return PoolAllocation(pool=name, cpus=cpus, mems="0")


def test_pools_of_ones_own_are_one_sum() -> None:
    show_sizes([pool("share", "0-3"), pool("reclaim", "4-5"), pool("flink", "6"), pool("dedicated", "7-9")])
    assert sizes() == {"share": 4, "reclaim": 2, "own": 4}


def test_a_pool_that_is_gone_has_no_series_any_more() -> None:
    show_sizes([pool("share", "0-3"), pool("reclaim", "4-5"), pool("reserve", "6")])
    show_sizes([pool("share", "0-3"), pool("reclaim", "4-5")])
    assert sizes() == {"share": 4, "reclaim": 2, "own": 0}


def test_a_hundred_thousand_pools_and_pods_that_come_and_go_leave_nothing_behind() -> None:
    registry = CollectorRegistry()
    shown = Exposition(lambda: 0.0, registry)
    lines = []
    for turn in range(400):
        show_sizes([pool(f"pool{turn}-{number}", "0") for number in range(250)])
        pods = [
            PodReading(
                pod=Pod(uid=f"{turn:x}-{number:x}", name=f"p{turn}-{number}"),
                containers=(ContainerReading(name="main", cpu_usage_cores=1.0),),
            )
            for number in range(250)
        ]
        shown.show(NodeSample(**ENVELOPE, node_reading=NodeReading(online_cpus="0"), pods=pods), missing=0, failing=0)
        if turn in (0, 399):
            lines.append(len(generate_latest(registry).splitlines()))
    assert len(sizes()) <= 4
    assert lines[0] == lines[1] < 2 * MOST_PODS
