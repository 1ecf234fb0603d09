"""Pods come to a real node that others keep busy: all start, and reclaimed ones are behind all others only afterwards.

A pod that never has all of its containers running is not for ever as one that starts.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crowd import RECLAIMED, Crowd, pod
from kube_rig.cluster import Cluster
from kube_rig.product import Product
from rig_parts import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

TENANTS, BATCH, NEIGHBOURS = 8, 7, 2
READY_LIMIT_S, BEHIND_LIMIT_S, AGAIN_LIMIT_S = 300.0, 120.0, 120.0
UNSOLD = {"admission": {"enabled": False}}
"""The crowd's batch pods ask no scheduler, and say no amounts: admission would refuse them."""
BUDGET = {**UNSOLD, "settings": {"qrm": {"starts": {"each_cpu_s": 2}}}}
ENDLESS, UNSTARTED = "endless", "unstarted"


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    installed = Product(cluster)
    installed.install(BUDGET)
    yield installed
    installed.uninstall()
    installed.leave()


@pytest.fixture
def crowd(cluster: Cluster, sublet: Product) -> Iterator[Crowd]:
    """Not come yet, on a node that is busy."""
    crowd = Crowd(cluster, TENANTS, BATCH)
    with crowd.busy(NEIGHBOURS):
        yield crowd


def group_of(cluster: Cluster, uid: str) -> Path | None:
    """A pod's group with its weight."""
    return next((group for group in cluster.groups(f"kubepods/**/pod{uid}") if (group / "cpu.idle").exists()), None)


def behind_all(group: Path) -> bool:
    return (group / "cpu.idle").read_text().strip() == "1"


def test_all_start_and_reclaimed_pods_are_behind_all_others_once_their_containers_run_and_not_before(
    crowd: Crowd, cluster: Cluster
) -> None:
    crowd.create(pod(UNSTARTED, "image/that-is-not-there", RECLAIMED, "true"))
    crowd.come()
    until(crowd.all_ready, READY_LIMIT_S, "everybody being ready")
    for one in crowd.pods():
        group = group_of(cluster, one["metadata"]["uid"])
        assert group is not None
        name, whose = one["metadata"]["name"], RECLAIMED if crowd.reclaimed(one) else "tenant"
        if whose == RECLAIMED and name != UNSTARTED:
            until(partial(behind_all, group), BEHIND_LIMIT_S, f"{name} being behind all others")
        else:
            assert not behind_all(group), name


def test_a_pod_that_works_while_one_of_its_containers_never_runs_uses_up_its_budget(
    crowd: Crowd, cluster: Cluster
) -> None:
    document = pod(ENDLESS, cluster.images.stress.name, RECLAIMED, "stress", "-c", "1")
    (work,) = document["spec"]["containers"]
    document["spec"]["containers"].append(work | {"name": "never", "command": ["false"]})
    crowd.create(document)
    uid = cluster.get("pod", ENDLESS)["metadata"]["uid"]
    until(lambda: group_of(cluster, uid) is not None, READY_LIMIT_S, "the pod's group")
    group = group_of(cluster, uid)
    assert group is not None
    until(lambda: behind_all(group) and restarts(cluster) >= 1, BEHIND_LIMIT_S, "the end of the budget")
    before = restarts(cluster)
    until(lambda: restarts(cluster) > before, AGAIN_LIMIT_S, "one more start")
    assert behind_all(group)


def test_a_batch_pod_that_names_no_amounts_has_bounded_memory_in_the_kernel(crowd: Crowd, cluster: Cluster) -> None:
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    uid = cluster.get("pod", "busy-batch")["metadata"]["uid"]

    def bounded() -> bool:
        files = [group / "memory.limit_in_bytes" for group in cluster.groups(f"kubepods/**/pod{uid}")]
        limits = [int(file.read_text()) for file in files if file.exists()]
        return bool(limits) and max(limits) < machine_bytes // 2

    until(bounded, BEHIND_LIMIT_S, "a limit for the pod as a whole")


def restarts(cluster: Cluster) -> int:
    statuses: list[dict[str, Any]] = cluster.get("pod", ENDLESS)["status"].get("containerStatuses", [])
    return sum(one["restartCount"] for one in statuses)
