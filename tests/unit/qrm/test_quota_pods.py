"""Whose quotas move, by how much at most, when a step is made, and in which order groups are written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.isolation.quota_burst import QuotaBurstRules
from services.qrm.core.isolation.quota_pods import (
    BurstInput,
    PodQuotas,
    QuotaBursts,
    kubelets_quotas,
    may_burst,
    quota_writes,
    quotas_of,
)
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.cgroups.knobs import UNLIMITED
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import OwnLayout

ON, ASKED, OFF = QuotaBurstRules(enabled=True), QuotaBurstRules(by_annotation=True), QuotaBurstRules()
BURST, CPU = "koordinator.sh/cpuBurst", "katalyst.kubewharf.io/cpu_enhancement"
C, D = (Container(name="c", cpu_limit_millis=1000), Container(name="d", cpu_limit_millis=500))
GROUP = "sublet/shared_cores/poda1"


def pod(said: dict[str, Any] | None = None, **fields: Any) -> Pod:
    annotations = {} if said is None else {BURST: json.dumps(said)}
    known: dict[str, Any] = {"uid": "a1", "name": "p", "annotations": annotations, "containers": (C, D)}
    return Pod.model_validate(known | fields)


@pytest.mark.parametrize(
    ("one", "on", "asked"),
    [
        (pod(), True, False),
        (pod({}), True, False),
        (pod({"policy": "auto"}), True, True),
        (pod({"policy": "cfsQuotaBurstOnly"}), True, True),
        (pod({"policy": "cpuBurstOnly"}), False, False),
        (pod({"policy": "none"}), False, False),
        (pod({"policy": "sometimes"}), True, False),
        (pod(annotations={CPU: '{"cpu_burst_policy": "closed"}'}), False, False),
        (pod(annotations={CPU: '{"cpu_burst_policy": "closed"}', BURST: '{"policy": "auto"}'}), False, False),
        (pod(annotations={CPU: '{"cpu_burst_policy": "static"}'}), True, False),
        (pod({"policy": "auto"}, qos="system_cores"), True, True),
        (pod({"policy": "auto"}, qos="dedicated_cores"), False, False),
        (pod({"policy": "auto"}, qos="reclaimed_cores"), False, False),
        (pod({"policy": "auto"}, kube_qos="BestEffort"), False, False),
        (pod({"policy": "auto"}, as_one=True), False, False),
        (pod(kube_qos="Guaranteed"), True, False),
    ],
)
def test_whose_quotas_move(one: Pod, on: bool, asked: bool) -> None:
    assert (may_burst(one, ON), may_burst(one, ASKED), may_burst(one, OFF)) == (on, asked, False)


class Course:
    """One pod over time, sample by sample."""

    def __init__(self, one: Pod, rules: QuotaBurstRules = ON) -> None:
        self.bursts, self.pods, self.rules = QuotaBursts(), [one], rules
        self.now_s, self.seq = 100.0, 0

    def sample(self, throttled: float | None = 1.0, used: float = 0.5, busy: float = 1.0) -> NodeSample:
        self.seq += 1
        containers = (ContainerReading(name="c", throttled_ratio=throttled, cpu_usage_cores=used),)
        return NodeSample.model_validate(
            {"node": "n", "boot_id": "0" * 16, "seq": self.seq, "sent_at": "2026-01-01T00:00:00Z", "window_s": 2.0,
             "node_reading": NodeReading(online_cpus="0-9", cpu_usage_cores=busy),
             "pods": [PodReading(pod=one, containers=containers) for one in self.pods]}
        )  # fmt: skip

    def step(self, sample: NodeSample | None, after_s: float = 2.0, age_s: float | None = 0.1) -> dict[str, int]:
        self.now_s += after_s
        seen = BurstInput(sample, None if sample is None else age_s, self.now_s)
        self.bursts.step(self.pods, seen, self.rules, OwnLayout())
        return self.bursts.raised()


def test_each_new_sample_is_a_step() -> None:
    course = Course(pod())
    first = course.sample()
    assert course.step(first) == {f"{GROUP}/c": 1200}
    assert course.step(first) == {f"{GROUP}/c": 1200}, "the same sample says nothing new"
    assert course.step(course.sample()) == {f"{GROUP}/c": 1440}
    assert course.step(course.sample(), after_s=0.9) == {f"{GROUP}/c": 1440}, "too early"
    assert course.step(course.sample(None)) == {f"{GROUP}/c": 1440}


def test_without_samples_it_ends() -> None:
    course = Course(pod())
    last = course.sample()
    course.step(last)
    course.step(course.sample())
    assert course.step(last, age_s=11.0) == {f"{GROUP}/c": 1152}
    assert course.step(None) == {}


def test_a_pod_that_ended_or_must_not_have_it_waits_for_no_step() -> None:
    course = Course(pod())
    last = course.sample()
    course.step(last)
    course.pods = [pod({"policy": "none"})]
    assert course.step(last, after_s=0.1) == {}
    course.pods = [pod()]
    assert course.step(last, after_s=0.1) == {}, "it begins anew"


def test_a_container_that_starts_anew_has_the_budget_that_it_had() -> None:
    layout, rules = KubeletLayout("cgroupfs"), QuotaBurstRules(enabled=True, budget_s=10)
    course = Course(pod(), rules)
    for life in range(4):
        one = Container(name="c", cpu_limit_millis=1000, id=f"containerd://{str(life) * 64}")
        course.pods = [pod(containers=(one,), kube_qos="Burstable")]
        seen = BurstInput(course.sample(used=2.0), 0.1, 100.0 + 2 * life)
        course.bursts.step(course.pods, seen, rules, layout)
        found = course.bursts.raised()
    assert found == {layout.container_group(course.pods[0], one): 1382}


def test_what_is_told_of_it() -> None:
    course = Course(pod({"cfsQuotaBurstPeriodSeconds": 10}))
    course.step(course.sample())
    row = {"uid": "a1", "container": "c", "limit_millis": 1000, "quota_millis": 1200, "most_millis": 3000,
           "throttled_ratio": 1.0, "held_s": 58.0, "budget_left_s": 2.5}  # fmt: skip
    told = course.bursts.told(course.now_s + 2.0)
    assert (told["share_pool"], told["containers"][0]) == ("idle", row)


def test_bounds_that_change_hold_at_once() -> None:
    course = Course(pod())
    for _ in range(5):
        last = course.sample()
        course.step(last)
    assert course.bursts.raised() == {f"{GROUP}/c": 2489}
    course.rules = QuotaBurstRules(enabled=True, most_percent=150)
    assert course.step(last, after_s=0.1) == {f"{GROUP}/c": 1500}
    course.bursts.end()
    assert course.bursts.raised() == {}


@pytest.mark.parametrize(
    ("said", "most"),
    [
        ({"cfsQuotaBurstPercent": 150}, 1500),
        ({"cfsQuotaBurstPercent": 100_000}, 3000),
        ({"cfsQuotaBurstPercent": 0}, None),
        ({"cfsQuotaBurstPercent": -1}, 3000),
        ({"cfsQuotaBurstPeriodSeconds": 0}, None),
        ({"cfsQuotaBurstPeriodSeconds": -1}, 3000),
        ({"cfsQuotaBurstPeriodSeconds": True}, 3000),
    ],
)
def test_a_pod_narrows_what_the_node_allows(said: dict[str, Any], most: int | None) -> None:
    course = Course(pod(said))
    for _ in range(10):
        found = course.step(course.sample())
    assert found == ({} if most is None else {f"{GROUP}/c": most})


def test_the_shorter_budget_holds() -> None:
    """Ten seconds of three times the limit: 2000, of which a quarter is there at first, and 200 go with each step."""
    for said, rules in (
        ({"cfsQuotaBurstPeriodSeconds": 10}, ON),
        ({"cfsQuotaBurstPeriodSeconds": -1}, QuotaBurstRules(enabled=True, budget_s=10)),
        ({"cfsQuotaBurstPeriodSeconds": 1000}, QuotaBurstRules(enabled=True, budget_s=10)),
    ):
        course = Course(pod(said), rules)
        quotas = [course.step(course.sample(used=2.0)).get(f"{GROUP}/c", 1000) for _ in range(6)]
        assert quotas == [1200, 1440, 1728, 1382, 1105, 1000]


def test_a_pods_extra_is_what_its_containers_have_above_their_limits() -> None:
    raised = {f"{GROUP}/c": 1200, "another": 900}
    limits = {f"{GROUP}/c": 1000, f"{GROUP}/d": 500}
    assert quotas_of(pod(), raised, OwnLayout()) == PodQuotas(GROUP, limits, {f"{GROUP}/c": 200})


LIMITS = {"p/c": 1000, "p/d": 500}


@pytest.mark.parametrize(
    ("found", "on_record", "given"),
    [
        ({"p": 1500, **LIMITS}, set(), {"p": 1500, **LIMITS}),
        ({"p": 1550, "p/c": 1010, "p/d": 500}, set(), {"p": 1550, "p/c": 1010, "p/d": 500}),
        # Raised by a life of which no record is left.
        ({"p": 2950, "p/c": 2400, "p/d": 500}, set(), {"p": 1550, **LIMITS}),
        ({"p": UNLIMITED, "p/c": 2400, "p/d": 500}, set(), {"p": UNLIMITED, **LIMITS}),
        ({"p": 1550, "p/c": 2400, "p/d": 500}, {"p"}, {"p": 1550, **LIMITS}),
        ({"p": 1200, "p/c": 2400, "p/d": 500}, set(), {"p": 1000, **LIMITS}),
        # Resized since: kubelet's word.
        ({"p": 2550, "p/c": 2000, "p/d": 500}, {"p", "p/c"}, {"p": 2550, "p/c": 2000, "p/d": 500}),
        ({"p": 900, "p/c": 900, "p/d": UNLIMITED}, set(), {"p": 900, "p/c": 900, "p/d": UNLIMITED}),
    ],
)
def test_what_kubelet_gave(found: dict[str, int], on_record: set[str], given: dict[str, int]) -> None:
    assert kubelets_quotas(PodQuotas("p", LIMITS, {}), found, on_record) == given


@pytest.mark.parametrize(
    ("extra", "kubelets", "now", "writes"),
    [
        ({}, {"p": 1500, **LIMITS}, {"p": 1500, **LIMITS}, []),
        ({"p/c": 200}, {"p": 1500, **LIMITS}, {"p": 1500, **LIMITS}, [("p", 1700), ("p/c", 1200)]),
        ({}, {"p": 1500, **LIMITS}, {"p": 1700, "p/c": 1200, "p/d": 500}, [("p/c", 1000), ("p", 1500)]),
        # One falls and one rises, the pod with the sum.
        ({"p/d": 100}, {"p": 1500, **LIMITS}, {"p": 1700, "p/c": 1200, "p/d": 500},
         [("p/c", 1000), ("p", 1600), ("p/d", 600)]),
        ({"p/d": 400}, {"p": 1500, **LIMITS}, {"p": 1700, "p/c": 1200, "p/d": 500},
         [("p", 1900), ("p/c", 1000), ("p/d", 900)]),
        # A pod without a quota gets none, nor does a container without.
        ({"p/c": 200}, {"p": UNLIMITED, **LIMITS}, {"p": UNLIMITED, **LIMITS}, [("p/c", 1200)]),
        ({"p/c": 200}, {"p": 1500, "p/c": UNLIMITED, "p/d": 500}, {"p": 1500, "p/c": UNLIMITED, "p/d": 500}, []),
        # What kubelet gave stays below what is added: overhead, a rounded quota, a limit of the pod itself.
        ({"p/c": 200}, {"p": 1750, "p/c": 1005, "p/d": 500}, {"p": 1750, "p/c": 1005, "p/d": 500},
         [("p", 1950), ("p/c", 1205)]),
        # A container whose larger limit kubelet has not written yet, and one that is gone.
        ({"p/c": 200}, {"p": 1500, "p/c": 900, "p/d": 500}, {"p": 1500, "p/c": 900, "p/d": 500}, []),
        ({"p/c": 200}, {"p": 1500, "p/d": 500}, {"p": 1700, "p/d": 500}, [("p", 1500)]),
        ({"p/c": 200}, LIMITS, LIMITS, [("p/c", 1200)]),
        ({}, {}, {}, []),
    ],
)  # fmt: skip
def test_the_order_of_the_writes(
    extra: dict[str, int], kubelets: dict[str, int], now: dict[str, int], writes: list[tuple[str, int]]
) -> None:
    found = quota_writes(PodQuotas("p", LIMITS, extra), kubelets, now)
    assert [(write.group, write.value) for write in found] == writes


EXTRA = st.integers(0, 3000)


@given(before=st.tuples(EXTRA, EXTRA), after=st.tuples(EXTRA, EXTRA), overhead=st.integers(0, 500))
def test_at_every_write_a_pod_has_what_each_of_its_containers_has(
    before: tuple[int, int], after: tuple[int, int], overhead: int
) -> None:
    kubelets = {"p": 1500 + overhead, **LIMITS}
    now = {"p": 1500 + overhead + sum(before), "p/c": 1000 + before[0], "p/d": 500 + before[1]}
    extra = {"p/c": after[0], "p/d": after[1]}
    for write in quota_writes(PodQuotas("p", LIMITS, extra), kubelets, dict(now)):
        assert now[write.group] != write.value
        now[write.group] = int(write.value)
        assert now["p"] >= max(now["p/c"], now["p/d"])
        assert all(now[group] >= least for group, least in kubelets.items())
    assert now == {"p": kubelets["p"] + sum(after), "p/c": 1000 + after[0], "p/d": 500 + after[1]}
