"""Recordings through the rules of recommendation: what is learned, given and counted."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.recommendation.request import MIB, AllowedRange, requested_cpu, requested_memory
from services.central.core.recommendation.usage.samples import ContainerUsage
from shared.contracts.pod import Pod
from sublet.replay.requests import run as requests_run
from sublet.replay.requests.report import document, table
from sublet.replay.requests.run import RequestsReplay, replay_requests
from sublet.replay.requests.tally import GivenFigures, UseTally
from sublet.replay.requests.watched import RequestRules
from sublet.replay.requests.workloads import RecordedWorkload
from sublet.replay.traces.frames import EPOCH, Faults, Frame, Trace, sample_of

AT_ONCE = RequestRules(min_history_s=0.0)
Use = tuple[float | None, int | None]
"""Cores and MiB."""


def pod_with(
    owner: str | None = "ReplicaSet/web-5d4b7", name: str = "web-5d4b7-abcde", **fields: Any
) -> dict[str, Any]:
    container = {"name": "main", "cpu_request_millis": 2000, "memory_request_bytes": 512 * MIB}
    return {
        "uid": name.encode().hex()[:60],
        "namespace": "shop",
        "name": name,
        "owner": owner,
        "containers": [container],
    } | fields


def node_trace(
    uses: Iterable[Use], step_s: float = 15.0, node: str = "node1", pod: dict[str, Any] | None = None
) -> Trace:
    """A node with one pod that uses this, a frame every `step_s`."""

    def frame(number: int, use: Use) -> Frame:
        figures = {"cpu_usage_cores": use[0], "memory_working_set_bytes": None if use[1] is None else use[1] * MIB}
        known = {name: value for name, value in figures.items() if value is not None}
        told = {"pod": pod or pod_with(), "containers": [{"name": "main"} | known]}
        fields = {"window_s": step_s, "node_reading": {"online_cpus": "0-3"}, "pods": [told]}
        at_s = number * step_s
        return Frame(at_s, step_s if number else 0.0, sample_of(node, number + 1, at_s, fields))

    frames = [frame(number, use) for number, use in enumerate(uses)]
    return Trace(node, 4, True, lambda: iter(frames))


def told(replay: RequestsReplay) -> dict[str, Any]:
    return document(replay, ["a.gz"], Faults())


def only_workload(traces: Sequence[Trace], rules: RequestRules = AT_ONCE) -> dict[str, Any]:
    (found,) = told(replay_requests(traces, rules))["workloads"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("owner", "name", "kind", "workload"),
    [
        ("ReplicaSet/web-5d4b7", "web-5d4b7-abcde", "Deployment", "web"),
        ("ReplicaSet/my-web-5d4b7fcc9x", "x", "Deployment", "my-web"),
        ("ReplicaSet/web", "x", "ReplicaSet", "web"),
        ("ReplicaSet/web-front", "x", "ReplicaSet", "web-front"),  # a vowel: no hash
        ("ReplicaSet/web-55555555555", "x", "ReplicaSet", "web-55555555555"),  # too long for one
        ("ReplicaSet/-5d4b7", "x", "ReplicaSet", "-5d4b7"),
        ("StatefulSet/db", "db-0", "StatefulSet", "db"),
        (None, "alone", "Pod", "alone"),
    ],
)
def test_a_pod_belongs_to_its_owner(owner: str | None, name: str, kind: str, workload: str) -> None:
    pod = Pod.model_validate(pod_with(owner, name))
    assert RecordedWorkload.of(pod) == RecordedWorkload("shop", kind, workload)


def test_figures_are_those_of_the_rules_that_central_follows() -> None:
    uses = [(0.5 + (n % 40) / 20, 200 + n % 90) for n in range(240)]
    (container,) = only_workload([node_trace(uses)])["containers"]
    learned = ContainerUsage()
    for number, (cores, mib) in enumerate(uses):
        learned.see("p", EPOCH.timestamp() + number * 15.0, cpu_cores=cores, memory_bytes=mib * MIB)
    cpu, memory = learned.cpu_cores(), learned.memory_bytes()
    assert cpu is not None
    assert memory is not None
    free = AllowedRange({}, {})
    assert container["cpu"]["recommended"] == requested_cpu(cpu.target, 30, free)
    assert container["memory"]["recommended"] == requested_memory(memory.target, 30, None, free).size_bytes
    assert (container["cpu"]["peak"], container["memory"]["peak"]) == (2450, 289 * MIB)


def test_a_figure_is_learned_from_as_often_as_nodes_tell_it() -> None:
    """Between two messages of the node central hears nothing: what is used then teaches nothing, but it counts."""
    calm = [(0.5, 100)] * 240
    spikes = [(8.0 if n % 5 else 0.5, 100) for n in range(240)]
    quiet, spiky = (only_workload([node_trace(uses, step_s=3.0)])["containers"][0]["cpu"] for uses in (calm, spikes))
    assert quiet["recommended"] == spiky["recommended"]
    assert quiet["above_recommended_percent"] == 0.0
    assert spiky["above_recommended_percent"] == pytest.approx(80.0, abs=0.5)
    assert spiky["peak"] == 8000


def test_use_above_the_request_is_told_beside_that_above_the_recommendation() -> None:
    uses = [(1.0, 100)] + [(3.0 if n % 4 == 0 else 1.0, 100) for n in range(100)]
    cpu = only_workload([node_trace(uses)])["containers"][0]["cpu"]
    assert cpu["requested"] == 2000
    assert cpu["above_requested_percent"] == 25.0


def test_what_asks_for_nothing_is_above_nothing() -> None:
    pod = pod_with(containers=[{"name": "main"}])
    cpu = only_workload([node_trace([(1.0, 100)] * 10, pod=pod)])["containers"][0]["cpu"]
    assert cpu["requested"] is None
    assert cpu["above_requested_percent"] is None
    assert cpu["recommended"] is not None


@pytest.mark.parametrize("use", [(1.0, None), (None, 100), (None, None)])
def test_a_figure_that_is_not_known_is_no_use_of_zero(use: Use) -> None:
    workload = only_workload([node_trace([use] * 20)])
    assert workload["says"] == "NoSamples"
    assert workload["containers"][0]["cpu"]["recommended"] is None
    assert "no complete minute" in workload["message"]


def test_before_enough_is_known_a_status_has_no_figures() -> None:
    replay = replay_requests([node_trace([(1.0, 100)] * 240)], RequestRules())
    workload = told(replay)["workloads"][0]
    assert workload["says"] == "HistoryTooShort"
    assert workload["message"] == "container 'main': 1 hours of use are known, 24 are needed"
    assert workload["given"] == []
    assert workload["containers"][0]["cpu"]["recommended"] is not None
    assert "nothing before 1d of use are known (--min-history)" in table(told(replay), wide=True)


def test_figures_are_given_over_time_and_held_against_what_came() -> None:
    """An hour of 1 core, then hours of 2: the first figure is exceeded until the next one is written."""
    uses = [(1.0, 100)] * 241 + [(2.0, 400)] * 960
    rules = RequestRules(min_history_s=1800.0)
    workload = only_workload([node_trace(uses)], rules)
    first, *later = workload["given"]
    assert first["from_s"] == 1800.0
    assert first["cpu"]["recommended"] < 2000 < later[-1]["cpu"]["recommended"]
    assert first["until_s"] == later[0]["from_s"] == 1800.0 + rules.refresh_s
    assert first["cpu"]["above_percent"] == 50.0
    assert first["memory_exceeded"] == 1
    assert later[-1]["cpu"]["above_percent"] == 0.0
    assert workload["says"] == "Recommended"


def test_other_kinds_have_figures_and_are_said_to_be_left_out() -> None:
    workload = only_workload([node_trace([(1.0, 100)] * 10, pod=pod_with("StatefulSet/db", "db-0"))])
    assert (workload["kind"], workload["name"], workload["says"]) == ("StatefulSet", "db", "WorkloadsUnsupported")
    assert workload["containers"][0]["cpu"]["recommended"] is not None


def test_pods_of_one_workload_on_several_nodes_are_learned_from_together() -> None:
    busy = node_trace([(3.0, 100)] * 40, node="node2", pod=pod_with(name="web-5d4b7-fghij"))
    idle = node_trace([(0.1, 100)] * 40)
    workload = only_workload([idle, busy])
    assert workload["pods"] == 2
    assert workload["containers"][0]["cpu"]["recommended"] > 3000
    assert workload["containers"][0]["cpu"]["above_requested_percent"] == 50.0


def test_two_kinds_of_one_name_stay_apart() -> None:
    traces = [
        node_trace([(3.0, 100)] * 40, pod=pod_with("StatefulSet/web", "web-0")),
        node_trace([(0.1, 100)] * 40, node="node2"),
    ]
    found = told(replay_requests(traces, AT_ONCE))["workloads"]
    figures = {one["kind"]: one["containers"][0]["cpu"]["recommended"] for one in found}
    assert figures["Deployment"] < 1000 < figures["StatefulSet"]


def test_reclaimed_and_ended_pods_are_left_out() -> None:
    batch = pod_with("Job/encode", "encode-1", qos="reclaimed_cores")
    ended = pod_with("Job/old", "old-1", phase="Succeeded")
    traces = [node_trace([(1.0, 100)] * 9, pod=batch), node_trace([(1.0, 100)] * 9, node="node2", pod=ended)]
    found = told(replay_requests(traces, AT_ONCE))
    assert found["workloads"] == []
    assert found["reclaimed_pods_left_out"] == 1
    assert "1 pod of reclaimed_cores left out" in table(found, wide=False)


def test_a_rollout_changes_what_is_asked_for() -> None:
    first = node_trace([(1.0, 100)] * 20)
    changed = [{"name": "app", "cpu_request_millis": 500}]
    second = node_trace([(1.0, 100)] * 40, node="node2", pod=pod_with(name="web-5d4b7-new", containers=changed))
    assert [one["name"] for one in only_workload([first, second])["containers"]] == ["app"]


def test_more_workloads_than_can_be_followed_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_run, "MAX_WORKLOADS", 1)
    other = node_trace([(1.0, 100)] * 5, node="node2", pod=pod_with("StatefulSet/db", "db-0"))
    found = told(replay_requests([node_trace([(1.0, 100)] * 5), other], AT_ONCE))
    assert len(found["workloads"]) == 1
    assert found["workloads_left_out"] is True
    assert "workloads are looked at" in table(found, wide=False)


def test_the_same_recording_gives_the_same_words() -> None:
    uses = [(0.2 + n % 7, 100 + n % 50) for n in range(300)]
    one, other = (told(replay_requests([node_trace(uses)], AT_ONCE)) for _ in range(2))
    assert one == other
    assert table(one, wide=True) == table(other, wide=True)


@given(
    uses=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 60)), max_size=40),
    bound=st.integers(0, 5000),
    step=st.sampled_from([1, 7, 100]),
)
def test_a_tally_counts_the_time_above_any_bound_of_its_step(
    uses: list[tuple[int, int]], bound: int, step: int
) -> None:
    tally, bound = UseTally(step), bound * step
    for used, covers_s in uses:
        tally.add(used * step - (step // 2 if used else 0), None, covers_s)
    above = [covers_s for used, covers_s in uses if used * step - (step // 2 if used else 0) > bound]
    assert tally.above_s(bound) == sum(above)
    assert tally.total_s == sum(covers_s for _, covers_s in uses)
    assert tally.above_request_s == tally.requested_s == 0


def test_memory_is_exceeded_as_often_as_a_pod_begins_to() -> None:
    given_of = GivenFigures("main", 0.0, {"cpu": 1000, "memory": 100})
    for used in (90, 110, 120, 90, 130):
        given_of.add("a", {"memory": used}, 1.0)
    given_of.add("b", {"memory": 101}, 1.0)
    given_of.add("a", {"cpu": 500}, 1.0)  # nothing is known of its memory: it has not come back below
    given_of.add("a", {"memory": 130}, 1.0)
    assert given_of.memory_exceeded == 3
    assert given_of.judged_s == {"memory": 7.0, "cpu": 1.0}
    assert given_of.above_s == {"memory": 5.0, "cpu": 0.0}
