"""Where a pod belongs: what it asks for, and what the newest allocation says of it."""

from datetime import UTC, datetime

import pytest

from services.advisor.core.observation.placement import PodPlace, place_of, places_in
from shared.contracts.allocation import Allocation, PodAllocation
from shared.contracts.pod import Pod
from shared.core.cpus.cpuset import CpuSet

MEMORY = "katalyst.kubewharf.io/memory_enhancement"
CPU = "katalyst.kubewharf.io/cpu_enhancement"
BOUND = {MEMORY: '{"numa_binding": "true"}'}
ALONE = {MEMORY: '{"numa_binding": "true", "numa_exclusive": "true"}'}
NAMED = {CPU: '{"cpuset_pool": "batch"}'}
NUMAS = {0: CpuSet.parse("0-11,24-35"), 1: CpuSet.parse("12-23,36-47")}


def pod(qos: str, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> Pod:
    return Pod(uid="aa", name="a", qos=qos, annotations=annotations or {}, labels=labels or {})


def at(pool: str, *cpus: tuple[int, int]) -> PodPlace:
    return PodPlace(pool, cpus)


@pytest.mark.parametrize(
    ("one", "seen", "place"),
    [
        pytest.param(pod("shared_cores"), None, PodPlace(), id="a plain pod"),
        pytest.param(pod("shared_cores", NAMED), None, PodPlace("batch"), id="a pool by name"),
        pytest.param(pod("shared_cores", NAMED), at("batch", (0, 4)), PodPlace("batch"), id="and there it is"),
        pytest.param(pod("shared_cores", NAMED), at("share"), PodPlace(), id="or not"),
        pytest.param(
            pod("shared_cores", NAMED), at("isolation-default.a", (0, 4)), PodPlace("batch"), id="isolated from"
        ),
        pytest.param(pod("shared_cores", {CPU: '{"cpuset_pool": "reclaim"}'}), None, PodPlace(), id="not for tenants"),
        pytest.param(pod("shared_cores", BOUND), None, PodPlace(), id="not on a node yet"),
        pytest.param(
            pod("shared_cores", BOUND), at("share-NUMA1", (1, 8)),
            PodPlace("share-NUMA1", ((1, 8),), bound=True), id="bound to a node",
        ),
        pytest.param(
            pod("shared_cores", BOUND | NAMED), at("batch-NUMA0", (0, 2)),
            PodPlace("batch-NUMA0", ((0, 2),), bound=True), id="a pool by name on a node",
        ),
        pytest.param(pod("dedicated_cores"), None, PodPlace(), id="dedicated without binding has no CPUs of its own"),
        pytest.param(pod("dedicated_cores", BOUND), None, PodPlace(dedicated=True), id="asks for some"),
        pytest.param(
            pod("dedicated_cores", ALONE), at("dedicated", (0, 24)),
            PodPlace("share", ((0, 24),), dedicated=True, bound=True, exclusive=True), id="has a node for itself",
        ),
        pytest.param(pod("dedicated_cores", BOUND), at("share"), PodPlace(), id="did not get any"),
        pytest.param(
            pod("dedicated_cores", labels={"koordinator.sh/qosClass": "LSR"}), None, PodPlace(dedicated=True),
            id="in Koordinator's words",
        ),
        pytest.param(pod("reclaimed_cores", BOUND), at("reclaim"), PodPlace(), id="reclaimed"),
        pytest.param(
            pod("shared_cores", labels={"koordinator.sh/qosClass": "LSR"}), at("share-NUMA1", (1, 8)), PodPlace(),
            id="a label that its class does not follow",
        ),
    ],
)  # fmt: skip
def test_where_a_pod_belongs(one: Pod, seen: PodPlace | None, place: PodPlace) -> None:
    assert place_of(one, seen) == place


def test_an_allocation_says_which_cpus_are_somebodys_own() -> None:
    pods = [("aa", "dedicated", "0-3,12"), ("bb", "share", "4-11"), ("cc", "ramp-up", "0-47")]
    allocation = Allocation(
        node="node1", boot_id="0" * 16, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), status="applied",
        pods=tuple(PodAllocation(uid=u, namespace="default", name=u, pool=p, cpus=c) for u, p, c in pods),
    )  # fmt: skip
    assert places_in(allocation, NUMAS) == {"aa": at("dedicated", (0, 4), (1, 1)), "bb": at("share")}
