"""Guards, confirmation and choice: who is spared, when nothing happens, and laws over random pods."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from evictor_world import pod
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.evictor.core.arbiter.choice import ConfirmedPressure, choose
from services.evictor.core.arbiter.confirmation import Confirmation, ConfirmationRules, HoldReason, relieved
from services.evictor.core.arbiter.guards import Never, Surroundings, allowed, never
from services.evictor.core.plugin import Candidate, Pressure, Silence
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_MEMORY, Pod
from shared.core.evictions.intents import Record, TokenBucket, passed_s
from shared.core.pods.kube_pod import pod_of
from shared.core.pods.qos import CRITICAL_PRIORITY

AROUND = Surroundings(protected_namespaces=("kube-system", "sublet-system"))


def candidates(*pods: Pod) -> tuple[Candidate, ...]:
    return tuple(Candidate(p, Reason(rule="test")) for p in pods)


def verdict(*pods: Pod, around: Surroundings = AROUND) -> tuple[str | None, dict[str, str]]:
    able, refusals = allowed(candidates(*pods), around)
    return (able[0].pod.name if able else None), {r.pod.removeprefix("default/"): r.why for r in refusals}


MIRROR = {"kubernetes.io/config.mirror": "x"}
BATCH, WEB = pod("batch"), pod("web", "shared_cores")


@pytest.mark.parametrize(
    ("pods", "around", "victim", "spared"),
    [
        pytest.param((BATCH,), AROUND, "batch", {}, id="a reclaimed pod"),
        pytest.param((WEB,), AROUND, "web", {}, id="a tenant where there is no reclaimed pod"),
        pytest.param((WEB, BATCH), AROUND, "batch", {"web": "tenant_before_reclaimed"}, id="a tenant ranked too early"),
        pytest.param((pod("s", "system_cores"),), AROUND, None, {"s": "system_cores"}, id="system cores"),
        pytest.param(
            (pod("c", "shared_cores", priority=CRITICAL_PRIORITY),),
            AROUND,
            None,
            {"c": "critical_priority"},
            id="critical priority",
        ),
        pytest.param(
            (pod("d", "shared_cores", owner="DaemonSet/d"),), AROUND, None, {"d": "daemonset_pod"}, id="daemonset"
        ),
        pytest.param(
            (pod("s", annotations=MIRROR | {"kubernetes.io/config.source": "file"}, owner="Node/n1"),),
            AROUND,
            None,
            {"s": "static_pod"},
            id="static",
        ),
        pytest.param((pod("m", annotations=MIRROR, owner="Node/n1"),), AROUND, None, {"m": "mirror_pod"}, id="mirror"),
        pytest.param(
            (pod("n", namespace="sublet-system"),),
            AROUND,
            None,
            {"sublet-system/n": "protected_namespace"},
            id="our own",
        ),
        pytest.param((pod("f", phase="Succeeded"),), AROUND, None, {"f": "finished"}, id="finished"),
        pytest.param(
            (pod("t", terminating=True), WEB),
            AROUND,
            None,
            {"t": "terminating", "web": "tenant_before_reclaimed"},
            id="a tenant waits for a reclaimed pod on its way out",
        ),
        pytest.param(
            (BATCH, WEB),
            Surroundings(live_uids={BATCH.uid}),
            None,
            {"batch": "live_intent", "web": "tenant_before_reclaimed"},
            id="one live intent a pod",
        ),
        pytest.param(
            (BATCH, WEB), Surroundings(backing_off_uids={BATCH.uid}), "web", {"batch": "backing_off"}, id="budget spent"
        ),
        pytest.param((), AROUND, None, {}, id="nobody"),
    ],
)
def test_guards_spare_whom_they_should_and_say_why(
    pods: tuple[Pod, ...], around: Surroundings, victim: str | None, spared: dict[str, Any]
) -> None:
    assert verdict(*pods, around=around) == (victim, spared)


FROM_KUBELET = MIRROR | {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "5" * 32}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "1", "controller": True}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
SETTERS = {
    "protected_namespace": "administrator",
    "system_cores": "administrator",
    "static_pod": "kubelet",
    "mirror_pod": "kubelet",
    "critical_priority": "administrator",
    "daemonset_pod": "administrator",
}
"""Who can bring it about that a pod is never evicted, for each guard: no tenant, whatever stands in a reclaimed pod.
System classes need a label of the namespace, protected namespaces are settings; priority and DaemonSet count in pods
alone that a scheduler has counted in native resources, which quotas bound. A mirror runs no container of its own.
"""


@pytest.mark.parametrize(
    ("guard", "meta", "spec"),
    [
        ("static_pod", {"annotations": {"kubernetes.io/config.source": "file"}}, {}),
        ("static_pod", {"annotations": FROM_KUBELET}, {}),
        ("static_pod", {"annotations": FROM_KUBELET, "ownerReferences": [NODE | {"name": "n2"}]}, {}),
        ("static_pod", {"annotations": {"kubernetes.io/config.source": "file"}, "ownerReferences": [NODE]}, {}),
        ("mirror_pod", {"annotations": MIRROR}, {}),
        ("mirror_pod", {"annotations": MIRROR, "ownerReferences": [NODE | {"controller": False}]}, {}),
        ("critical_priority", {}, {"priority": CRITICAL_PRIORITY, "priorityClassName": "system-node-critical"}),
        ("daemonset_pod", {"ownerReferences": [DAEMON_SET]}, {}),
        ("system_cores", {"labels": {"koordinator.sh/qosClass": "SYSTEM"}}, {}),
        ("system_cores", {"annotations": {"katalyst.kubewharf.io/qos_level": "system_cores"}}, {}),
        ("protected_namespace", {"labels": {"kubernetes.io/metadata.name": "kube-system"}}, {}),
    ],
)
def test_no_author_of_a_reclaimed_pod_makes_it_stay_for_ever(
    guard: str, meta: dict[str, Any], spec: dict[str, Any]
) -> None:
    meta = {"uid": "0f-1", "namespace": "default", "name": "batch"} | meta
    asked = {"name": "main", "resources": {"requests": {RECLAIMED_MEMORY: "1Gi"}}}
    made = pod_of({"metadata": meta, "spec": {"nodeName": "n1", "containers": [asked], **spec}})
    assert SETTERS[guard] != "tenant"
    assert made is not None
    assert (made.qos, never(made, AROUND.protected_namespaces)) == ("reclaimed_cores", None)


@pytest.mark.parametrize("annotations", [{"kubernetes.io/config.source": "file"}, FROM_KUBELET])
def test_what_a_manifest_says_in_kubelets_name_protects_no_pod(annotations: dict[str, str]) -> None:
    """Also where no API server has read it: on one host the pods come from their authors' files."""
    unprotected = Pod(uid="0f", name="batch", qos="reclaimed_cores", annotations=annotations)
    assert never(unprotected, ()) is None
    assert never(unprotected.model_copy(update={"qos": "shared_cores"}), ()) is None


def test_a_tenant_on_its_way_out_holds_back_no_other_as_a_reclaimed_pod_does() -> None:
    able, _ = allowed(candidates(pod("web2", "shared_cores", terminating=True), WEB), AROUND)
    assert [candidate.pod.name for candidate in able] == ["web"]
    able, _ = allowed(candidates(pod("batch2", terminating=True), WEB), AROUND)
    assert able == ()


def test_every_guard_of_never_says_who_can_bring_it_about() -> None:
    assert SETTERS.keys() == set(get_args(Never))
    assert set(SETTERS.values()) == {"administrator", "kubelet"}


some_pods = st.lists(
    st.builds(
        pod,
        name=st.sampled_from([f"p{i}" for i in range(9)]),
        qos=st.sampled_from(["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores"]),
        namespace=st.sampled_from(["default", "kube-system"]),
        priority=st.sampled_from([0, CRITICAL_PRIORITY - 1, CRITICAL_PRIORITY, CRITICAL_PRIORITY + 1]),
        annotations=st.sampled_from([{}, {"kubernetes.io/config.source": "file"}, {"kubernetes.io/config.mirror": ""}]),
        phase=st.sampled_from(["Running", "Pending", "Succeeded"]),
        terminating=st.booleans(),
    ),
    max_size=9,
    unique_by=lambda p: p.uid,
)


@given(pods=some_pods, live=st.sets(st.integers(0, 8)), late=st.sets(st.integers(0, 8)))
def test_no_protected_pod_and_no_tenant_before_a_reclaimed_one_is_ever_chosen(
    pods: list[Pod], live: set[int], late: set[int]
) -> None:
    uids = [p.uid for p in pods]
    around = Surroundings(
        AROUND.protected_namespaces,
        {uids[i] for i in live if i < len(uids)},
        {uids[i] for i in late if i < len(uids)},
    )
    able, refusals = allowed(candidates(*pods), around)
    assert len(refusals) + len(able) == len(pods)
    if not able:
        return
    victim = able[0]
    assert len({c.pod.qos == "reclaimed_cores" for c in able}) == 1
    assert never(victim.pod, around.protected_namespaces) is None
    assert victim.pod.phase != "Succeeded"
    assert not victim.pod.terminating
    assert victim.pod.uid not in {*around.live_uids, *around.backing_off_uids}
    if victim.pod.qos != "reclaimed_cores":
        reclaimed = [p for p in pods if p.qos == "reclaimed_cores" and p.phase != "Succeeded"]
        would_do = [p for p in reclaimed if never(p, around.protected_namespaces) is None]
        assert all(p.uid in around.backing_off_uids and p.uid not in around.live_uids for p in would_do)


HARD = Pressure(hard=True, scope="memory", observed=1, threshold=2)
SOFT = Pressure(hard=False, scope="cpu", observed=1, threshold=2)
RULES = ConfirmationRules()


def ready(pressure: Pressure, *pods: Pod) -> ConfirmedPressure:
    return ConfirmedPressure(pressure, lambda: candidates(*pods))


def test_each_plugin_takes_one_victim_and_nobody_is_taken_twice() -> None:
    other = pod("other")
    chosen = choose({"b": ready(HARD, BATCH, other), "a": ready(HARD, BATCH, other)}, AROUND)
    assert [(c.plugin, present(c.victim).pod.name) for c in chosen] == [("a", "batch"), ("b", "other")]


def test_soft_pressure_waits_while_there_is_hard_pressure() -> None:
    assert [c.plugin for c in choose({"a": ready(SOFT, BATCH), "b": ready(HARD, BATCH)}, AROUND)] == ["b"]
    assert [c.plugin for c in choose({"a": ready(SOFT, BATCH)}, AROUND)] == ["a"]


def holds(
    *findings: tuple[float, Pressure | Silence],
    now_s: float | None = None,
    record: Record | None = None,
    busy: bool = False,
) -> HoldReason | None:
    confirmation = Confirmation()
    for t_s, finding in findings:
        confirmation = confirmation.observe(finding, t_s, RULES)
    return confirmation.hold_reason(
        findings[-1][0] if now_s is None else now_s, RULES, record or Record(), under_way=busy
    )


CPU_HARD = Pressure(hard=True, scope="cpu", observed=1, threshold=2)


@pytest.mark.parametrize(
    ("findings", "extra", "want"),
    [
        pytest.param([(0, HARD)], {}, "unconfirmed", id="one sample"),
        pytest.param([(0, HARD), (1, HARD)], {}, None, id="two in a row"),
        pytest.param([(0, HARD), (1, "calm"), (2, HARD)], {}, "unconfirmed", id="calm between"),
        pytest.param([(0, HARD), (1, "unknown"), (2, HARD)], {}, "unconfirmed", id="unknown between"),
        pytest.param([(0, HARD), (1, HARD), (2, "unknown")], {}, "not_met", id="unknown now"),
        pytest.param([(0, HARD), (6, HARD)], {}, "unconfirmed", id="too far apart"),
        pytest.param([(0, HARD), (5, HARD)], {}, None, id="just near enough"),
        pytest.param([(0, HARD), (1, HARD)], {"now_s": 6}, None, id="just fresh enough"),
        pytest.param([(0, HARD), (1, CPU_HARD)], {}, "unconfirmed", id="another scope"),
        pytest.param([(0, SOFT), (1, CPU_HARD)], {}, "unconfirmed", id="a step from soft to hard"),
        pytest.param([(0, CPU_HARD), (1, SOFT)], {}, None, id="from hard to soft"),
        pytest.param([(0, HARD), (1, HARD)], {"now_s": 7}, "stale_input", id="stale by now"),
        pytest.param([(0, HARD), (1, HARD)], {"busy": True}, "eviction_under_way", id="one at a time"),
        pytest.param([(0, HARD), (1, HARD)], {"record": Record(1, -13.9)}, "cooling", id="cooling"),
        pytest.param([(0, HARD), (1, HARD)], {"record": Record(2, -14.0)}, None, id="cooled down"),
        pytest.param([(0, HARD), (1, HARD)], {"record": Record(3, -99.0)}, "ineffective", id="three without relief"),
    ],
)
def test_a_pressure_acts_only_when_nothing_holds_it_back(
    findings: list[tuple[int, Pressure | Silence]],
    extra: dict[str, Any],
    want: str | None,
) -> None:
    assert holds(*findings, **extra) == want


def test_a_plugin_may_want_a_pressure_for_longer_than_its_samples_take() -> None:
    rules, seen = replace(RULES, met_for_s=10), Confirmation()
    for t_s in range(0, 9, 2):
        assert seen.hold_reason(t_s, rules, Record(), under_way=False) == ("unconfirmed" if t_s else "not_met")
        seen = seen.observe(HARD, t_s, rules)
    assert [seen.hold_reason(now_s, rules, Record(), under_way=False) for now_s in (9.9, 10)] == ["unconfirmed", None]
    for t_s in (12, 14):
        seen = seen.observe("calm" if t_s == 12 else HARD, t_s, rules)
    assert seen.observe(HARD, 16, rules).hold_reason(16, rules, Record(), under_way=False) == "unconfirmed"


def test_only_a_calm_sample_is_relief() -> None:
    tired = Record(3, 5.0)
    assert relieved(tired, "calm") == Record(0, 5.0)
    assert relieved(tired, "unknown") == tired
    assert relieved(tired, HARD) == tired


@given(steps=st.lists(st.floats(0, 100), min_size=1, max_size=40), capacity=st.integers(1, 10))
def test_a_bucket_never_gives_more_than_capacity_and_rate_allow(steps: list[float], capacity: int) -> None:
    per_s, now, given_out = capacity / 60, 0.0, 0
    bucket = TokenBucket(float(capacity), 0.0)
    for step in steps:
        now += step
        left = bucket.spend(now, capacity=capacity, per_s=per_s)
        if left is not None:
            bucket, given_out = left, given_out + 1
    assert given_out <= capacity + now * per_s + 1e-6


@pytest.mark.parametrize(
    ("since", "now", "passed"), [(5, 9, 4), (5, 5, 0), (500, 3, 3)], ids=["later", "at once", "after a new start"]
)
def test_only_time_that_has_certainly_passed_counts(since: int, now: int, passed: int) -> None:
    assert passed_s(since, now) == passed


def soft(scope: str) -> Pressure:
    return Pressure(hard=False, scope=scope, observed=1, threshold=2)


HIGH, LOW = pod("high", priority=9), pod("low", priority=1)


@pytest.mark.parametrize(
    ("wishes", "going"),
    [
        pytest.param({"a": ("x", WEB), "b": ("x", HIGH)}, ("b", "high"), id="reclaimed before tenants"),
        pytest.param({"a": ("x", LOW), "b": ("x", HIGH)}, ("a", "low"), id="low priority"),
        pytest.param({"a": ("memory", BATCH), "b": ("nic", pod("other"))}, ("b", "other"), id="scope"),
        pytest.param({"a": ("cpu.load", BATCH), "b": ("mem", pod("any"))}, ("b", "any"), id="scope of a figure"),
        pytest.param({"a": ("x", BATCH), "b": ("x", BATCH)}, ("a", "batch"), id="the same pod: the first plugin"),
    ],
)
def test_of_all_soft_candidates_one_goes_and_the_others_wait(wishes: dict[str, Any], going: tuple[str, ...]) -> None:
    chosen = choose({plugin: ready(soft(scope), p) for plugin, (scope, p) in wishes.items()}, AROUND)
    assert [(c.plugin, present(c.victim).pod.name) for c in chosen if c.victim] == [going]
    (waiting,) = (c for c in chosen if not c.victim)
    assert [r.why for r in waiting.refusals] == ["another_soft_victim"]


def test_a_plugin_whose_candidates_all_stay_leaves_the_turn_to_another() -> None:
    spared = ready(SOFT, pod("dns", namespace="kube-system"))
    a, b, c = choose({"a": spared, "b": ready(SOFT, BATCH), "c": ready(SOFT)}, AROUND)
    assert (a.victim, present(b.victim).pod.name, c.victim) == (None, "batch", None)
    assert [refusal.why for refusal in a.refusals] == ["protected_namespace"]


def test_a_plugin_that_names_nobody_still_has_an_outcome() -> None:
    assert [(c.plugin, c.victim) for c in choose({"a": ready(SOFT), "b": ready(SOFT)}, AROUND)] == [
        ("a", None),
        ("b", None),
    ]
    assert [c.plugin for c in choose({"a": ready(HARD)}, AROUND)] == ["a"]
