"""From a sample to what policies look at, and the canonical policy on it: the tutorial's figures end to end."""

from typing import Any

import pytest
from advisor_world import MakePod, MakeSample

from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.placement import NO_PLACES, PodPlace
from services.advisor.core.observation.sample_view import SeenPods, has_no_rates, view_of
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies.canonical import POLICY, CanonicalSettings
from shared.contracts.sample import ApplicationReading, NodeReading, NodeSample, PoolReading

TUTORIAL_NODE = Bounds.of(48, smt=True)
GIB = 1 << 30


def advice(sample: NodeSample, settings: CanonicalSettings | None = None) -> dict[str, Any]:
    return decide(
        view_of(sample, TUTORIAL_NODE),
        0.0,
        ConfiguredPolicy(POLICY, settings or CanonicalSettings()),
        SizingRules(),
        None,
    ).fields()


def sizes(fields: dict[str, Any]) -> dict[str, int]:
    return {pool.pool: pool.cpus for pool in fields["pools"]}


def test_the_idle_node_of_the_tutorial(sample: MakeSample) -> None:
    fields = advice(sample())
    assert sizes(fields) == {"share": 4, "reclaim": 44, "reserve": 0}
    assert (fields["reclaimed_cpu_millis"], fields["reclaimed_memory_bytes"]) == (44_000, 195_257_901_056)


@pytest.mark.parametrize(
    ("reading", "share", "offer"),
    [
        pytest.param({}, 6, 42_000, id="not measured yet"),
        pytest.param({"cpu_usage_cores": 1.0, "load1": 1.0}, 6, 42_000, id="stress -c 1"),
        pytest.param({"cpu_usage_cores": 2.0, "load1": 3.0}, 8, 40_000, id="stress -c 2 more"),
    ],
)
def test_the_shared_pod_of_the_tutorial(
    sample: MakeSample, pod: MakePod, reading: dict[str, float], share: int, offer: int
) -> None:
    fields = advice(sample(pod("shared-normal-pod", cpu_millis=2000, **reading)))
    assert (sizes(fields)["share"], fields["reclaimed_cpu_millis"]) == (share, offer)


@pytest.mark.parametrize(
    ("of_the_pool", "of_the_pod", "want"),
    [
        pytest.param(3.0, 1.0, 3.75, id="a spike shows in the pool first"),
        pytest.param(1.0, 3.0, 3.75, id="the containers know more"),
        pytest.param(None, 1.0, 1.25, id="the pool is not measured"),
    ],
)
def test_the_tenants_need_at_least_what_their_pool_uses(
    sample: MakeSample, pod: MakePod, of_the_pool: float | None, of_the_pod: float, want: float
) -> None:
    pools = (PoolReading(pool="share", cpu_usage_cores=of_the_pool), PoolReading(pool="reclaim", cpu_usage_cores=9.0))
    assert advice(sample(pod("web", cpu_usage_cores=of_the_pod), pools=pools))["required_cores"] == want


def test_the_largest_containers_are_named_and_the_rest_is_summed(sample: MakeSample, pod: MakePod) -> None:
    numbers = advice(sample(*(pod(f"web-{n:02}", cpu_usage_cores=0.1 * n) for n in range(1, 13))))["why"][0].numbers
    assert numbers["default/web-12/main"] == 1.5
    assert numbers["containers"] == 12
    assert numbers["all other containers"] == pytest.approx(1.25 * (0.1 + 0.2 + 0.3 + 0.4))


def test_dedicated_pods_count_their_request_reclaimed_and_system_pods_nothing(sample: MakeSample, pod: MakePod) -> None:
    view = sample(
        pod("db", "dedicated_cores", cpu_millis=6000, cpu_usage_cores=0.5),
        pod("encode", "reclaimed_cores", cpu_millis=9000, cpu_usage_cores=20.0),
        pod("agent", "system_cores", cpu_millis=9000, cpu_usage_cores=20.0),
    )
    assert advice(view)["required_cores"] == 6


def test_a_pod_that_has_ended_holds_nothing_and_one_that_starts_does(sample: MakeSample, pod: MakePod) -> None:
    view = view_of(
        sample(*(pod(p.lower(), phase=p) for p in ("Pending", "Running", "Succeeded", "Failed"))), TUTORIAL_NODE
    )
    assert [container.pod for container in view.containers] == ["default/pending", "default/running"]


def test_a_successor_of_the_same_name_counts_beside_the_pod_that_is_leaving(sample: MakeSample, pod: MakePod) -> None:
    twins = (pod("web", uid="aa", cpu_usage_cores=2.0), pod("web", uid="bb", cpu_usage_cores=4.0))
    assert advice(sample(*twins))["required_cores"] == 7.5


def test_a_container_counts_whichever_list_it_is_in(sample: MakeSample, pod: MakePod) -> None:
    reading = pod("web", cpu_millis=2000, cpu_usage_cores=1.0)
    unknown = reading.model_copy(update={"containers": (reading.containers[0].model_copy(update={"name": "side"}),)})
    names = {c.name: (c.request_cores, c.cpu.usage_cores) for c in view_of(sample(unknown), TUTORIAL_NODE).containers}
    assert names == {"main": (2.0, None), "side": (0.0, 1.0)}


def test_memory_of_tenants_is_taken_from_the_offer_with_a_tenth_on_top(sample: MakeSample, pod: MakePod) -> None:
    tenants = pod("web", memory_rss_bytes=8 * GIB, memory_cache_bytes=2 * GIB, cpu_usage_cores=1.0)
    assert advice(sample(tenants))["reclaimed_memory_bytes"] == 195_257_901_056 - 11 * GIB


def test_free_memory_stands_in_for_available_memory(sample: MakeSample) -> None:
    reading = NodeReading(online_cpus="0-47", memory_total_bytes=100 * GIB, memory_free_bytes=7 * GIB)
    assert view_of(sample(node_reading=reading), TUTORIAL_NODE).memory.available_bytes == 7 * GIB


def test_the_settings_of_the_policy_change_its_factors(sample: MakeSample, pod: MakePod) -> None:
    tenant = sample(pod("web", cpu_usage_cores=4.0, memory_rss_bytes=10 * GIB))
    fields = advice(tenant, CanonicalSettings(usage_factor=2.0, memory_percent=200))
    assert fields["required_cores"] == 8
    assert fields["reclaimed_memory_bytes"] == 195_257_901_056 - 20 * GIB


@pytest.mark.parametrize(
    ("window_s", "qos", "reading", "want"),
    [
        pytest.param(None, "shared_cores", {}, True, id="first pass, nothing measured"),
        pytest.param(None, "shared_cores", {"load1": 0.5}, True, id="first pass, a load already"),
        pytest.param(None, "shared_cores", {"cpu_usage_cores": 1.0}, False, id="first pass, all known"),
        pytest.param(None, "reclaimed_cores", {}, False, id="first pass, only reclaimed pods"),
        pytest.param(1.0, "shared_cores", {}, False, id="later pass, a new container"),
    ],
)
def test_the_first_pass_of_a_measuring_life_is_not_judged_while_a_tenants_use_is_unknown(
    sample: MakeSample, pod: MakePod, window_s: float | None, qos: str, reading: dict[str, float], want: bool
) -> None:
    found = sample(pod("web", qos, **reading), window_s=window_s)
    assert has_no_rates(found, view_of(found, TUTORIAL_NODE)) is want


def test_applications_in_a_pools_own_group_are_in_the_pools_figure(sample: MakeSample) -> None:
    listed = (
        ApplicationReading(name="a", cpu_usage_cores=1.5),
        ApplicationReading(name="b", cpu_usage_cores=2.0, pool="reclaim"),
        ApplicationReading(name="c", unmeasured="no cgroup c"),
    )
    view = view_of(sample(host_applications=listed), TUTORIAL_NODE)
    assert view.applications_usage_cores == 1.5
    assert view.blind().applications_usage_cores is None


def test_a_pod_that_is_handed_on_as_it_was_keeps_its_view_and_everybody_elses_is_that_of_now(
    sample: MakeSample, pod: MakePod
) -> None:
    seen = SeenPods()
    still, works = pod("still", cpu_usage_cores=1.0), pod("works", cpu_usage_cores=1.0)
    first = sample(still, works, pod("gone", cpu_usage_cores=1.0))
    before = {view.pod: view for view in view_of(first, TUTORIAL_NODE, seen=seen).containers}
    second = sample(still, pod("works", cpu_usage_cores=2.0))
    after = {view.pod: view for view in view_of(second, TUTORIAL_NODE, seen=seen).containers}
    assert set(after) == {"default/still", "default/works"}
    assert after["default/still"] is before["default/still"]
    assert after["default/works"].cpu.usage_cores == 2.0
    assert view_of(second, TUTORIAL_NODE, seen=seen) == view_of(second, TUTORIAL_NODE)


def test_a_kept_view_is_made_anew_for_another_place_and_for_stolen_time(sample: MakeSample, pod: MakePod) -> None:
    seen = SeenPods()
    plain = pod("own", qos="dedicated_cores", cpu_usage_cores=1.0, sched_wait_tasks=1.0)
    bound = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
    own = plain.model_copy(update={"pod": plain.pod.model_copy(update={"annotations": bound})})
    places = {own.pod.uid: PodPlace("dedicated", ((0, 4),))}
    stolen = {"cpu_usage_cores": 1.0, "cpu_steal_cores": 1.0}
    views = []
    for one, seen_at in ((sample(own), NO_PLACES), (sample(own), places), (sample(own, node=stolen), places)):
        views.append(view_of(one, TUTORIAL_NODE, seen_at, seen))
        assert views[-1] == view_of(one, TUTORIAL_NODE, seen_at)
    containers = [view.containers[0] for view in views]
    assert containers[0].cpus_per_numa != containers[1].cpus_per_numa
    assert containers[1].cpu.wait != containers[2].cpu.wait
