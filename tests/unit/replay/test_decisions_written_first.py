"""Decisions of parts that write first and speak then: they come out the same from a recording that saw the write."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from decisions_world import ClusterStory, anew, batch_pod, uid_of, workload

from services.central.core.clock_bounds.autoscaler import PLAIN, STATUS, Kept
from services.central.core.clock_bounds.schedule import SCHEDULE
from services.central.core.profiles.capacity_gate import GATE
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.cluster.figures import FiguredPods, PodFigures
from shared.contracts.envelope import Reason
from sublet.replay.decisions.run import DecidedTwice

NUMBERS = dict[str, float | int | str | bool | None]


def said(area: str, kind: str, name: str, verdict: str, *why: Reason, namespace: str = "shop") -> Decided:
    about = DecidedObject(kind=kind.lower(), namespace=namespace, name=name, uid=uid_of(kind, name))
    return Decided(area=area, about=about, verdict=verdict, why=why)


def only(story: ClusterStory, area: str, verdict: str) -> DecidedTwice:
    (row,) = [one for one in anew(story.close()).rows
              if one.recorded is not None and (one.recorded.area, one.recorded.verdict) == (area, verdict)]  # fmt: skip
    return row


def same(row: DecidedTwice) -> None:
    assert row.replayed is not None, row.why_not
    assert row.differences == ()


# Clock bounds


def autoscaler(least: int, most: int, **ours: str) -> Mapping[str, Any]:
    schedule = {"timeBounds": [{"bounds": [{"cronTab": "5 12 * * *", "minReplicas": 10, "maxReplicas": 50}]}]}
    return {"metadata": {"annotations": {SCHEDULE: json.dumps(schedule), **ours}},
            "spec": {"minReplicas": least, "maxReplicas": most}}  # fmt: skip


def bounded(most: int) -> DecidedTwice:
    """An autoscaler gets its bounds at five past twelve."""
    story = ClusterStory()
    story.see("HorizontalPodAutoscaler", "web", autoscaler(3, 20), "shop")
    story.wait(300.1)
    written = {
        PLAIN: Kept((3, 20), (10, 50)).text,
        STATUS: "timeBounds[0].bounds[0] '5 12 * * *' (UTC): 10 to 50 replicas",
    }
    story.see("HorizontalPodAutoscaler", "web", autoscaler(10, 50, **written), "shop")
    numbers: NUMBERS = {"min_replicas": 10, "max_replicas": most, "plain_min_replicas": 3, "plain_max_replicas": 20,
                        "time_zone": "UTC"}  # fmt: skip
    story.decided(said("clock_bounds", "HorizontalPodAutoscaler", "web", "bounded",
                       Reason(rule="cron 5 12 * * *", numbers=numbers)))  # fmt: skip
    return only(story, "clock_bounds", "bounded")


def test_bounds_by_the_clock_are_decided_by_the_time_of_the_recording() -> None:
    same(bounded(50))


def test_a_bound_that_would_be_another_now_is_named() -> None:
    assert bounded(40).differences == ("cron 5 12 * * *: max_replicas: recorded 40, now 50",)


# Vertical autoscalers


def vertical_story() -> ClusterStory:
    """A workload whose ResourceRecommend says more than its pod asks for."""
    story = ClusterStory()
    workload(story)
    recommended = [{"containerName": "main", "requests": {"target": {"cpu": "3"}}}]
    story.see("ResourceRecommend", "web", {
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
        "status": {"recommendResources": {"containerRecommendations": recommended}},
    }, "shop")  # fmt: skip
    story.see("KatalystVerticalPodAutoscaler", "web", vpa(), "shop")
    story.wait(5)
    return story


def vpa(reason: str = "") -> Mapping[str, Any]:
    spec = {"targetRef": {"kind": "Deployment", "name": "web"}, "updatePolicy": {"podUpdatingStrategy": "Inplace"},
            "resourcePolicy": {"containerPolicies": [{"containerName": "*"}]}}  # fmt: skip
    return {"spec": spec, "status": {"conditions": [{"type": "Applied", "reason": reason}]} if reason else {}}


def resized_pod(story: ClusterStory) -> None:
    owner = {"kind": "ReplicaSet", "name": "web-5d4b7", "controller": True}
    meta = {"labels": {"pod-template-hash": "5d4b7"}, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3", "memory": "512Mi"}}}]}
    there = {"metadata": meta, "spec": {**spec, "nodeName": "node1"}, "status": {"phase": "Running"}}
    story.see("Pod", "web-5d4b7-abcde", there, "shop")


def test_a_resize_is_decided_by_the_pod_before_it() -> None:
    story = vertical_story()
    resized_pod(story)
    story.see("KatalystVerticalPodAutoscaler", "web", vpa("Resizing"), "shop")
    numbers: NUMBERS = {"container": "main", "cpu_request_before": 2000, "cpu_request_after": 3000,
                        "memory_request_before": 512 << 20, "memory_request_after": 512 << 20}  # fmt: skip
    story.decided(said("vertical", "Pod", "web-5d4b7-abcde", "resized",
                       Reason(rule="by KatalystVerticalPodAutoscaler", numbers=numbers)))  # fmt: skip
    same(only(story, "vertical", "resized"))


def test_what_an_autoscaler_says_of_itself_is_decided_by_its_status_before() -> None:
    story = vertical_story()
    story.see("KatalystVerticalPodAutoscaler", "web", vpa("Resizing"), "shop")
    story.decided(said("vertical", "KatalystVerticalPodAutoscaler", "web", "not_applied", Reason(rule="Resizing"),
                       Reason(rule="recommended within its policies",
                              numbers={"container": "main", "cpu_request_target": 3000})))  # fmt: skip
    same(only(story, "vertical", "not_applied"))


# Service profiles


def descriptor(sentinel: str = "") -> Mapping[str, Any]:
    bound = [{"indicatorLevel": "UpperBound", "value": 100}]
    spec = {"targetRef": {"kind": "Deployment", "name": "web"}, "baselinePercent": 50,
            "businessIndicator": [{"name": "latency", "indicators": bound}]}  # fmt: skip
    annotations = {"spd.katalyst.kubewharf.io/baselineSentinel": sentinel} if sentinel else {}
    return {"spec": spec, "metadata": {"annotations": annotations}}


def test_a_baseline_is_decided_by_the_descriptor_before_it() -> None:
    story = ClusterStory()
    workload(story)
    story.see("ServiceProfileDescriptor", "web", descriptor(), "shop")
    story.wait(5)
    story.see("ServiceProfileDescriptor", "web", descriptor("{}"), "shop")
    why = Reason(rule="baselinePercent", numbers={"percent": 50, "pods": 1})
    story.decided(said("service_profiles", "ServiceProfileDescriptor", "web", "baseline", why))
    same(only(story, "service_profiles", "baseline"))


def test_that_a_service_does_poorly_is_decided_by_what_its_nodes_told() -> None:
    story = ClusterStory()
    workload(story)
    name = "web-5d4b7-abcde"
    owner = {"kind": "ReplicaSet", "name": "web-5d4b7", "controller": True}
    meta = {"labels": {"pod-template-hash": "5d4b7"}, "ownerReferences": [owner],
            "annotations": {"spd.katalyst.kubewharf.io/name": "web"}}  # fmt: skip
    there = {"metadata": meta, "spec": {"nodeName": "node1"}, "status": {"phase": "Running"}}
    story.see("Pod", name, there, "shop")
    story.see("ServiceProfileDescriptor", "web", descriptor(), "shop")
    for latency in (90.0, 120.0):
        story.wait(15)
        pods = FiguredPods(uids=(uid_of("Pod", name),), namespaces=("shop",), names=(name,),
                           series={"latency": (latency,)})  # fmt: skip
        story.hear(PodFigures, measured_at=story.now, period_s=15.0, pods=pods)
    why = Reason(rule="UpperBound", numbers={"key": "latency", "value": 120.0, "bound": 100.0})
    story.decided(said("service_profiles", "ServiceProfileDescriptor", "web", "poor", why))
    same(only(story, "service_profiles", "poor"))


# The gate


def gated(cpu_millis: int, *gates: str) -> Mapping[str, Any]:
    pod = batch_pod(cpu_millis)
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": name} for name in gates]}}


def waiting(free: int) -> ClusterStory:
    """Two pods behind the gate, and so much free."""
    story = ClusterStory()
    story.see("Node", "node1", {"status": {"allocatable": {"cpu": "10", "memory": "10Gi"}}})
    story.offer(free)
    for number in (1, 2):
        meta = {"creationTimestamp": f"2026-01-30T11:00:0{number}Z"}
        pod = gated(400, GATE)
        story.see("Pod", f"b{number}", {**pod, "metadata": {**pod["metadata"], **meta}}, "team")
    story.wait(1)
    return story


def test_who_waits_behind_the_gate_waits_for_the_same_figures() -> None:
    story = waiting(300)
    cpu = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
    why = Reason(rule="gate", numbers={"resource": cpu, "asked": 400, "free": 300})
    story.decided(said("scheduling", "Pod", "b1", "gated", why, namespace="team"))
    same(only(story, "scheduling", "gated"))


@pytest.mark.parametrize(("free", "now"), [(500, "released"), (300, "gated")])
def test_who_was_let_go_is_let_go_by_what_was_free_before(free: int, now: str) -> None:
    story = waiting(free)
    story.see("Pod", "b1", gated(400), "team")
    story.wait(0.1)
    story.decided(said("scheduling", "Pod", "b1", "released", namespace="team"))
    row = only(story, "scheduling", "released")
    assert row.replayed is not None
    assert row.replayed.verdict == now
