"""Services have a say: pods of which nothing is lent, targets of their own, and what holds while nobody tells."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from advisor_world import SOON_S, Live, MakeFields, MakePod, Node
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.kept import NOTHING_KEPT, keeping, kept_of, without_kept
from services.advisor.core.demand.targets import TargetInForce, target_in_force
from services.advisor.core.model.containers import Containers
from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.profile import PodProfile
from services.advisor.core.model.view import ContainerView, Signs, View
from services.advisor.core.observation.profiles import profiled, profiles_in
from services.advisor.core.policy import Demand
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.registry import known_policies
from shared.contracts.cluster.profiles import IndicatorTargets, ProfiledService, ServiceProfiles
from shared.contracts.pod import QosClass
from shared.wire import Wire

BIG = Bounds.of(48, smt=True)
POLICIES: Mapping[str, Any] = known_policies()
KEPT, LENT = PodProfile("shop/web", kept_for="baseline"), PodProfile("shop/web")


def container(
    name: str = "web", usage: float | None = 1.0, request: float = 6.0, qos: QosClass = "shared_cores", **over: Any
) -> ContainerView:
    return ContainerView(f"shop/{name}", name, "main", qos, request, 1000, Figures(usage), Resident(300, 100), **over)


def view_of_these(*containers: ContainerView, **over: Any) -> View:
    return View(BIG, Containers(sorted(containers, key=lambda c: c.uid)), **over)


def advised(policy: str, view: View, at_s: float = 0.0, last: Round | None = None, **settings: Any) -> Round:
    chosen = ConfiguredPolicy(POLICIES[policy], POLICIES[policy].settings.model_validate(settings))
    return decide(view, at_s, chosen, SizingRules(), last)


# Which part is kept


@pytest.mark.parametrize(
    ("one", "cores", "memory_bytes"),
    [
        pytest.param(container(), 0.0, 0, id="no profile"),
        pytest.param(container(profile=LENT), 0.0, 0, id="lends"),
        pytest.param(container(profile=KEPT), 5.0, 600, id="what it asked for and leaves idle"),
        pytest.param(container(usage=9.0, profile=KEPT), 0.0, 600, id="uses more than it asked for"),
        pytest.param(container(usage=None, profile=KEPT), 0.0, 600, id="not measured: policies count the request"),
        pytest.param(container(qos="dedicated_cores", profile=KEPT), 0.0, 600, id="CPUs of its own"),
        pytest.param(container(qos="system_cores", profile=KEPT), 0.0, 600, id="in the reserve pool"),
    ],
)
def test_what_a_container_keeps(one: ContainerView, cores: float, memory_bytes: int) -> None:
    kept = kept_of((one,))
    assert (kept.cores, kept.memory_bytes) == (cores, memory_bytes)


@pytest.mark.parametrize("lending", [container("api"), container("api", profile=LENT)])
def test_who_lends_beside_a_kept_container_goes_on_lending(lending: ContainerView) -> None:
    assert kept_of((container(profile=KEPT), lending)) == kept_of((container(profile=KEPT),))


def test_nothing_kept_changes_nothing() -> None:
    demand, view = Demand(3.0, 5), view_of_these(container(), size_cpus=8)
    assert keeping(demand, NOTHING_KEPT) is demand
    assert without_kept(view, kept_of(view.containers)) is view


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_gives_kept_pods_what_they_asked_for(policy: str) -> None:
    pods = [container(f"web-{place}", usage=1.0, request=5.0) for place in range(4)]
    lent = advised(policy, view_of_these(*pods, tenants_usage_cores=4.0))
    kept = advised(policy, view_of_these(*(replace(pod, profile=KEPT) for pod in pods), tenants_usage_cores=4.0))
    assert kept.demand.cores == pytest.approx(lent.demand.cores + 16)
    assert kept.demand.cores >= 20
    assert kept.demand.memory_bytes == lent.demand.memory_bytes + 4 * 600
    assert kept.offered_millis <= lent.offered_millis
    (why,) = [one for one in kept.why if one.rule.startswith("service profiles")]
    assert why.numbers["shop/web (baseline)"] == 16


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_what_is_kept_does_not_grow_from_round_to_round(policy: str) -> None:
    def settled(profile: PodProfile | None) -> float:
        pods = [container(f"web-{place}", usage=1.0, request=5.0, profile=profile) for place in range(4)]
        view, last, demands = view_of_these(*pods, tenants_usage_cores=4.0), None, []
        for second in range(0, 1200, 5):
            last = advised(policy, view, float(second), last)
            demands.append(last.demand.cores)
        return max(demands[-20:])

    assert settled(KEPT) <= settled(None) + 16 + 0.5


usages = st.none() | st.floats(0, 20)


@given(st.lists(st.tuples(usages, st.floats(0, 10), st.booleans()), min_size=1, max_size=6))
def test_law_nothing_of_a_kept_request_is_lent_and_nobody_gets_less(
    pods: list[tuple[float | None, float, bool]],
) -> None:
    made = [container(f"p{place}", usage, request, profile=KEPT if keeps else None)
            for place, (usage, request, keeps) in enumerate(pods)]  # fmt: skip
    kept = advised("canonical", view_of_these(*made)).demand
    plain = advised("canonical", view_of_these(*(replace(one, profile=None) for one in made))).demand
    least = sum(max(request, usage or 0.0) if keeps else (usage or 0.0) for usage, request, keeps in pods)
    assert kept.cores >= max(plain.cores, least) - 1e-6
    assert kept.memory_bytes >= plain.memory_bytes


# Targets


def test_the_strictest_target_of_a_pool_holds_and_who_has_none_has_that_of_the_settings() -> None:
    strict, loose = IndicatorTargets(cpi=1.0), IndicatorTargets(cpi=3.0)
    a, b = (container(name, profile=PodProfile(f"shop/{name}", targets))
            for name, targets in (("a", strict), ("b", loose)))  # fmt: skip

    def found(default: float | None, *containers: ContainerView) -> TargetInForce | None:
        return target_in_force(view_of_these(*containers), lambda own: own.cpi, default)

    assert found(2.0, a, b) == TargetInForce(1.0, "shop/a")
    assert found(2.0, b) == TargetInForce(3.0, "shop/b")
    assert found(2.0, b, container("c")) == TargetInForce(2.0)  # c is in the pool too
    assert found(None, b, container("c")) == TargetInForce(3.0, "shop/b")
    assert found(2.0) == TargetInForce(2.0)
    assert found(None, container("c")) is None


@pytest.mark.parametrize(
    ("targets", "signs"),
    [
        (IndicatorTargets(cpu_usage_ratio=0.5), Signs()),
        (IndicatorTargets(cpu_sched_wait=10), Signs(waiting_tasks=3.0)),
        (IndicatorTargets(cpu_pressure=1), Signs(pressure_percent=9.0)),
        (IndicatorTargets(cpi=1.0), Signs(cycles_per_instruction=2.0)),
    ],
)
def test_rama_keeps_a_services_indicators_at_its_targets(targets: IndicatorTargets, signs: Signs) -> None:
    judge, settings = POLICIES["rama"].judge, POLICIES["rama"].settings()

    def cores(profile: PodProfile | None) -> tuple[float, list[str]]:
        view = view_of_these(container(usage=15.0, profile=profile), size_cpus=20, tenants_usage_cores=15.0,
                             signs=signs, region_reserve_cores=4.0)  # fmt: skip
        _, demand = judge(POLICIES["rama"].start(), view, 0.0, settings)
        return demand.cores, list(demand.why[0].numbers)

    with_targets, said = cores(PodProfile("shop/web", targets))
    assert with_targets > cores(None)[0]
    assert any(name.endswith("target of shop/web") for name in said)


def test_a_service_may_have_less_of_the_machine_used_and_never_more() -> None:
    def quota(ratio: float) -> int | None:
        one = container(usage=4.0, profile=PodProfile("shop/web", IndicatorTargets(cpu_usage_ratio=ratio)))
        return advised(
            "dynamic_quota", view_of_these(one, node_usage_cores=14.0, reclaimed_usage_cores=10.0)
        ).quota_millis

    assert quota(0.9) == 24_800  # as by the settings, 0.6
    assert quota(0.5) == 20_000


# What is heard


def told(*services: ProfiledService) -> ServiceProfiles:
    envelope: dict[str, Any] = {"node": "node1", "boot_id": "0123456789abcdef", "seq": 1,
                                "sent_at": "2026-01-02T03:04:05Z"}  # fmt: skip
    return ServiceProfiles.model_validate(envelope | {"services": services})


def test_of_two_services_that_name_a_pod_the_first_counts_and_reclaimed_pods_have_none() -> None:
    a = ProfiledService(namespace="shop", name="a", pods=("aa", "bb"), kept={"poor": ("bb",)})
    b = ProfiledService(namespace="shop", name="b", pods=("aa", "cc"), kept={"baseline": ("aa", "cc")})
    profiles = profiles_in(told(a, b))
    assert {uid: (one.service, one.kept_for) for uid, one in profiles.items()} == {
        "aa": ("shop/a", ""), "bb": ("shop/a", "poor"), "cc": ("shop/b", "baseline")}  # fmt: skip
    view = view_of_these(container("aa"), container("cc", qos="reclaimed_cores"), container("dd"))
    seen = profiled(view, profiles)
    assert [one.profile and one.profile.service for one in seen.containers] == ["shop/a", None, None]
    assert profiled(view, {}) is view


SERVICE = ProfiledService(namespace="shop", name="web", pods=("aa",), kept={"baseline": ("aa",)})
ON: dict[str, Any] = {"policy": "canonical", "service_profiles": {"enabled": True, "max_age_s": 100}}


async def tell(node: Node, *services: ProfiledService) -> None:
    central = Wire(node.bus, node.clock, node="hub", service="central")
    message = central.stamp(ServiceProfiles, services=services).model_copy(update={"node": "node1"})
    await central.publish(message)
    await asyncio.sleep(SOON_S)


def test_what_central_tells_is_used_until_it_is_too_old(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        web = pod("web", uid="aa", cpu_millis=12_000, cpu_usage_cores=1.0)
        await node.measure(fields(web))
        without = node.shares[-1]
        assert node.app.state()["service_profiles"]["age_s"] is None
        assert node.app.health().why == ""  # never told: nothing is missing
        await tell(node, SERVICE)
        await node.measure(fields(web))
        assert node.shares[-1] == without + 12  # the idle 11, and an even number of CPUs
        assert node.app.state()["service_profiles"]["in_force"]
        await asyncio.sleep(101)
        await node.measure(fields(web))
        assert node.advices[-1].required_cores == node.advices[0].required_cores
        health = node.app.health()
        assert health.ok  # what central does not say must not take nodes out of service
        assert "ServiceProfilesStale" in health.why
        assert not node.app.state()["service_profiles"]["in_force"]
        await node.measure(fields(pod("other", uid="bb")))
        assert node.app.health().why == ""  # none of its pods is here any more

    live(story, ON)


def test_what_is_switched_off_is_not_heard(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        web = pod("web", uid="aa", cpu_millis=12_000, cpu_usage_cores=1.0)
        await tell(node, SERVICE)
        await node.measure(fields(web))
        await tell(node, SERVICE)
        await node.measure(fields(web))
        assert node.advices[-1].required_cores == node.advices[0].required_cores
        assert node.app.state()["service_profiles"] is None
        node.app.reconfigure({"service_profiles": {"enabled": True}})  # at any time, as by a configuration
        await node.measure(fields(web))
        await tell(node, SERVICE)
        await node.measure(fields(web))
        assert present_cores(node) > 12
        node.app.reconfigure({})
        await node.measure(fields(web))
        assert present_cores(node) < 12

    live(story, {"policy": "canonical"})


def present_cores(node: Node) -> float:
    return node.advices[-1].required_cores or 0.0
