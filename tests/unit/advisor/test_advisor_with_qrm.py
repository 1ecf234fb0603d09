"""Advisor and qrm together, as pure functions: what is advised is what is placed, and both come to rest."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from advisor_world import MakePod, MakeSample

from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.placement import PodPlace
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.sizing.isolation import IsolationRules
from services.advisor.policies import canonical
from services.qrm.core.placement.arrangement import Arrangement, Node, arrange
from shared.contracts.advice import PoolAdvice
from shared.contracts.sample import NumaReading, PodReading
from shared.core.cpus.topology import Topology, UniformShape

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
NUMAS = tuple(NumaReading(numa=numa, cpus=str(cpus)) for numa, cpus in TUTORIAL_NODE.numas.items())
BOUND = {"katalyst.kubewharf.io/memory_enhancement": json.dumps({"numa_binding": "true"})}
BATCH = {"katalyst.kubewharf.io/cpu_enhancement": json.dumps({"cpuset_pool": "batch"})}
ENVELOPE: dict[str, Any] = {"node": "n1", "boot_id": "0" * 16, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}
Together = Callable[..., tuple[Round, Arrangement]]
"""Runs rounds of both on the same pods: rules and number of rounds by name."""
NOISY = SizingRules(isolation=IsolationRules(lock_in_threshold=1, max_resource_ratio=1.0))


def noted(reading: PodReading, annotations: dict[str, str]) -> PodReading:
    return reading.model_copy(update={"pod": reading.pod.model_copy(update={"annotations": annotations})})


def where(placed: Arrangement) -> dict[str, PodPlace]:
    """What the advisor reads of an allocation."""
    return {
        uid: PodPlace(
            own.pool, tuple((n, len(cpus & own.cpus)) for n, cpus in TUTORIAL_NODE.numas.items() if cpus & own.cpus)
        )
        for uid, own in placed.owned.items()
    }


@pytest.fixture
def together(sample: MakeSample) -> Together:
    """A few rounds of both on the same pods; the last of each."""

    def run(*pods: PodReading, rules: SizingRules | None = None, rounds: int = 4) -> tuple[Round, Arrangement]:
        rules, last, placed = rules or SizingRules(), None, None
        for number in range(rounds):
            places: dict[str, PodPlace] = where(placed) if placed else {}
            view = view_of(sample(*pods, numas=NUMAS), Bounds.of(48, smt=True), places)
            last = decide(
                view, float(number), ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings()), rules, last
            )
            advice = PoolAdvice(**ENVELOPE, seq=number, **last.fields())
            node = Node(TUTORIAL_NODE, {}, [one.pod for one in pods], placed.held if placed else {})
            placed = arrange(node, advice, "reclaim-first")
        assert last is not None
        assert placed is not None
        return last, placed

    return run


def same(done: Round, placed: Arrangement) -> None:
    """Every advised size is in force, no CPU is in two pools, none is left over."""
    in_force = {pool: len(cpus) for pool, cpus in placed.pools.items()}
    own = {own.pool: own.cpus for own in placed.owned.values() if own.pool != "dedicated"}
    in_force |= {pool: len(cpus) for pool, cpus in own.items()}
    advised = {part.pool: part.cpus for part in done.fields()["pools"] if part.pool != "dedicated" and part.cpus}
    assert in_force == advised
    sets = [*placed.pools.values(), *own.values(), *(o.cpus for o in placed.owned.values() if o.pool == "dedicated")]
    assert sum(map(len, sets)) == 48
    assert placed.problems == {}


def test_shared_pods_only(together: Together, pod: MakePod) -> None:
    same(*together(pod("web", cpu_millis=2000, cpu_usage_cores=3.0)))


def test_a_dedicated_pod_beside_them(together: Together, pod: MakePod) -> None:
    database = noted(pod("db", "dedicated_cores", 8000, cpu_usage_cores=7.0), BOUND)
    done, placed = together(pod("web", cpu_usage_cores=3.0), database)
    same(done, placed)
    assert done.sizes.share_cpus == 8
    assert len(placed.owned[database.pod.uid].cpus) == 8


def test_a_named_pool_and_bound_pools_grow_with_their_load(together: Together, pod: MakePod) -> None:
    flink = noted(pod("flink", cpu_millis=14_000, cpu_usage_cores=9.0), BATCH)
    bound = noted(pod("near", cpu_millis=12_000, cpu_usage_cores=6.0), BOUND)
    done, placed = together(pod("web", cpu_usage_cores=3.0), flink, bound)
    same(done, placed)
    assert placed.owned[flink.pod.uid].pool == "batch"
    assert len(placed.owned[flink.pod.uid].cpus) >= 9 * 1.25
    assert len(placed.owned[bound.pod.uid].cpus) >= 6 * 1.25


def test_whatever_is_advised_they_have_no_more_than_their_pods_ask_for_and_the_shared_pool_has_the_rest(
    together: Together, pod: MakePod
) -> None:
    flink = noted(pod("flink", cpu_millis=1000, cpu_usage_cores=9.0), BATCH)
    bound = noted(pod("near", cpu_millis=2000, cpu_usage_cores=6.0), BOUND)
    done, placed = together(pod("web", cpu_usage_cores=3.0), flink, bound)
    assert [len(placed.owned[one.pod.uid].cpus) for one in (flink, bound)] == [1, 2]
    assert len(placed.pools["share"]) > done.sizes.share_cpus
    assert sum(map(len, placed.pools.values())) == 48 - 3


def test_a_noisy_pod_is_set_apart(together: Together, pod: MakePod) -> None:
    quiet = pod("web", cpu_millis=2000, cpu_usage_cores=3.0, runnable_tasks=1)
    noisy = pod("noisy", cpu_millis=6000, cpu_usage_cores=6.0, runnable_tasks=90)
    done, placed = together(quiet, noisy, rules=NOISY)
    same(done, placed)
    assert placed.owned[noisy.pod.uid].pool == "isolation-default.noisy"
    assert len(placed.owned[noisy.pod.uid].cpus) == 6


def test_everything_at_once(together: Together, pod: MakePod) -> None:
    pods = [
        pod("web", cpu_millis=2000, cpu_usage_cores=3.0, runnable_tasks=1),
        pod("noisy", cpu_millis=4000, cpu_usage_cores=6.0, runnable_tasks=90),
        noted(pod("db", "dedicated_cores", 6000, cpu_usage_cores=5.0), BOUND),
        noted(pod("flink", cpu_millis=8000, cpu_usage_cores=3.0, runnable_tasks=1), BATCH),
        noted(pod("near", cpu_millis=8000, cpu_usage_cores=2.0, runnable_tasks=1), BOUND),
    ]
    same(*together(*pods, rules=NOISY))
