"""What the advisor does with inputs that repeat, freeze or grow old, and with policies that fail."""

import asyncio
import math
from dataclasses import replace
from typing import NoReturn

import pytest
from advisor_world import SOON_S, Live, MakeFields, MakePod, Node
from present import present

from services.advisor import settings
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.policies import canonical
from shared.contracts.allocation import PodAllocation
from shared.contracts.sample import PodReading


def test_a_sample_that_is_repeated_or_comes_late_is_not_used(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        old = await node.measure(fields(pod("web", cpu_usage_cores=1.0)))
        newest = await node.measure(fields(pod("web", cpu_usage_cores=20.0)))
        for sample in (old, newest, newest):
            await node.metrics.publish(sample)
            await asyncio.sleep(SOON_S)
        assert node.shares == [6, 30]
        assert node.advices[-1].based_on == (newest.ref,)

    live(story)


def test_a_frozen_source_that_says_the_same_again_and_again_counts_as_silent(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        frozen = await node.measure(fields(pod("web", cpu_millis=9000, cpu_usage_cores=1.0)))
        for _ in range(80):
            await node.metrics.publish(frozen)
            await asyncio.sleep(0.1)
        assert node.shares[-1] == 14  # what the pod asked for, and the reserve
        last_at, said = node.heard[-1][0], len(node.heard)
        assert last_at < 6.2
        health = node.app.health()
        assert not health.ok
        assert health.why == "the newest usable sample is 8.0 s old, 6 s is the bound"
        await asyncio.sleep(10)
        assert len(node.heard) == said

    live(story)


def test_the_health_says_that_only_first_passes_come(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(pod("web", cpu_millis=1000), window_s=None))
        assert node.app.health().why.endswith("the first pass of a measuring life: no CPU use yet")
        await node.measure(fields(pod("web", cpu_usage_cores=1.0)))
        assert (node.app.health().ok, node.app.health().why) == (True, "")

    live(story)


class Moody:
    """A policy whose mood can be changed."""

    def __init__(self, node: Node | None = None) -> None:
        self.mood, self.node = "well", node
        self.policy = Policy("moody", PolicySettings, lambda: 0, self.judge)

    def judge(self, state: int, _view: View, _now_s: float, _settings: PolicySettings) -> tuple[int, Demand]:
        if self.mood == "raises":
            raise ValueError("bad mood")
        if self.mood in ("slow", "starved"):
            present(self.node).clock.ahead_s += 0.3
        if self.mood == "starved":
            present(self.node).waited_s += 0.2
        return state, Demand(math.nan if self.mood == "nonsense" else 10.0, 0)


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> Moody:
    one = Moody()
    monkeypatch.setattr(settings, "known_policies", lambda: {"canonical": canonical.POLICY, "moody": one.policy})
    return one


def test_a_policy_that_had_to_wait_for_a_cpu_goes_on(
    live: Live, fields: MakeFields, pod: MakePod, moody: Moody
) -> None:
    """Busy neighbours are when its forecast is needed most; canonical would have to wait as long."""

    async def story(node: Node) -> None:
        moody.node, moody.mood = node, "starved"
        for _ in range(2):
            await node.measure(fields(pod("web", cpu_usage_cores=20.0)))
        assert (node.advices[-1].policy, node.app.health().why) == ("moody", "")

    live(story, {"policy": "moody"})


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("raises", "policy 'moody' raised ValueError: bad mood"),
        ("nonsense", "policy 'moody' returned cores nan"),
        ("slow", "policy 'moody' took 300 ms for a round, policy_budget_ms is 250"),
    ],
)
def test_a_policy_that_fails_is_passed_over_for_a_while_and_everybody_is_told(
    live: Live, fields: MakeFields, pod: MakePod, moody: Moody, mood: str, says: str
) -> None:
    async def story(node: Node) -> None:
        moody.node = node
        web = fields(pod("web", cpu_usage_cores=20.0))
        await node.measure(web)
        assert (node.shares, node.app.health().why) == ([14], "")
        moody.mood = mood
        await node.measure(web)
        moody.mood = "well"
        await node.measure(web)
        assert node.shares[-1] == 30
        assert node.advices[-1].policy == "canonical"
        assert node.advices[-1].why[0].rule.startswith(says)
        health = node.app.health()
        assert not health.ok
        assert health.why.startswith(says)
        assert "canonical decides" in health.why
        assert any(problem.startswith(says) for problem in node.app.state()["problems"])
        assert node.advices[-1].mode == "observe"
        await asyncio.sleep(300)
        await node.measure(web)
        assert (node.advices[-1].policy, node.app.health().ok) == ("moody", True)

    live(story, {"policy": "moody", "policies": {"moody": {"mode": "observe"}}})


def test_new_settings_give_a_policy_another_chance(live: Live, fields: MakeFields, moody: Moody) -> None:
    async def story(node: Node) -> None:
        moody.mood = "raises"
        await node.measure(fields())
        moody.mood = "well"
        node.app.reconfigure({"policies": {"moody": {"mode": "enforce"}}})
        await node.measure(fields())
        assert [advice.policy for advice in node.advices] == ["canonical", "moody"]

    live(story, {"policy": "moody"})


def test_where_nobody_can_decide_nothing_is_said(
    live: Live, fields: MakeFields, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> NoReturn:
        raise ValueError("bad day")

    broken = replace(canonical.POLICY, judge=explode)
    monkeypatch.setattr(settings, "known_policies", lambda: {"canonical": broken})

    async def story(node: Node) -> None:
        await node.measure(fields())
        assert node.heard == []
        assert "bad day" in node.app.health().why

    live(story, {"policy": "canonical"})


def numa_bound(pod: MakePod, name: str, millis: int, **reading: float) -> PodReading:
    """A dedicated pod that asks for CPUs of its own."""
    asked = pod(name, "dedicated_cores", millis, **reading)
    note = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
    return asked.model_copy(update={"pod": asked.pod.model_copy(update={"annotations": note})})


def test_a_dedicated_pod_counts_where_qrm_has_put_it(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        database = numa_bound(pod, "db", 8000)
        uid = database.pod.uid
        placed = {"uid": uid, "namespace": "default", "name": "db"}
        await node.measure(fields(database))
        assert (node.shares[-1], node.advices[-1].size_of("reclaim")) == (4, 36)
        await node.place(PodAllocation(**placed, pool="dedicated", cpus="0-3,24-27"))
        await node.measure(fields(database))
        assert (node.shares[-1], node.advices[-1].size_of("reclaim")) == (4, 36)
        await node.place(PodAllocation(**placed, pool="share", cpus="0-47"))
        await node.measure(fields(database))
        assert (node.shares[-1], node.advices[-1].size_of("reclaim")) == (12, 36)

    live(story)


def test_an_allocation_that_grew_old_is_not_used_and_the_health_says_so(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        database = numa_bound(pod, "db", 8000)
        placed = {"uid": database.pod.uid, "namespace": "default", "name": "db"}
        await node.place(PodAllocation(**placed, pool="share", cpus="0-47"))
        await node.measure(fields(database))
        assert node.shares == [12]
        await asyncio.sleep(31)
        await node.measure(fields(database))
        assert (
            node.advices[-1].size_of("reclaim") == 30
        )  # 8 for the pod alone, 10 for the share pool, which shrinks by a step
        health = node.app.health()
        assert health.ok
        assert "the newest allocation is 31.0 s old, 30 s is the bound" in health.why

    live(story)
