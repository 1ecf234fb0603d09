"""Pods as the extender sees them: what they ask for, where they are, and what they tolerate."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.scheduling.cluster.assigned_pods import AssignedPods
from services.central.core.scheduling.cluster.cnr_taints import Toleration, keeping_away, toleration_of
from services.central.core.scheduling.cluster.pod_asks import (
    MOST_CONTAINERS,
    PodAsk,
    PodSeen,
    assigned_pod,
    pod_asked,
    pod_seen,
)
from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY, RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU
from shared.core.pods.qos import QOS_LEVEL
from shared.errors import Refused

Document = dict[str, Any]
GIB = 1 << 30


def container(name: str = "main", **requests: str) -> Document:
    return {"name": name, "resources": {"requests": requests}}


def pod(*containers: Document, qos: str = "", node: str = "", **spec: Any) -> Document:
    annotations = {QOS_LEVEL: qos} if qos else {}
    meta = {"name": "p", "namespace": "team", "uid": "u-1", "annotations": annotations}
    return {"metadata": meta, "spec": {"containers": list(containers), "nodeName": node, **spec}}


@pytest.mark.parametrize("cpu", [RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, BATCH_CPU])
def test_reclaimed_amounts_count_under_every_name(cpu: str) -> None:
    ask = pod_seen(pod(container(**{cpu: "500", RECLAIMED_MEMORY: "1Gi"}))).ask
    assert ask.qos == "reclaimed_cores"
    assert ask.reclaimed == {RECLAIMED_CPU: 500, RECLAIMED_MEMORY: GIB}
    assert not ask.prod


def test_a_service_takes_nothing_of_the_offer_whatever_it_asks_for() -> None:
    ask = pod_seen(pod(container(cpu="2", memory="1Gi"))).ask
    assert ask.reclaimed == {RECLAIMED_CPU: 0, RECLAIMED_MEMORY: 0}
    assert ask.requests == {"cpu": 2000, "memory": GIB}
    assert ask.prod


def test_the_largest_init_container_beside_the_sidecars_above_it_counts_where_it_is_more() -> None:
    sidecar = container("side", **{BATCH_CPU: "100"}) | {"restartPolicy": "Always"}
    starting = [container("first", **{BATCH_CPU: "900"}), sidecar, container("second", **{BATCH_CPU: "850"})]
    found = pod_seen(pod(container(**{BATCH_CPU: "500", BATCH_MEMORY: "8"}), initContainers=starting)).ask
    assert found.reclaimed == {RECLAIMED_CPU: 950, RECLAIMED_MEMORY: 8}


def test_equal_asks_are_one_object() -> None:
    one, other = (pod_seen(pod(container(cpu="2"))).ask for _ in range(2))
    assert one is other


def test_only_pods_that_bind_keep_their_containers() -> None:
    bound = pod(container(cpu="2", **{"nvidia.com/gpu": "1"}), qos="dedicated_cores")
    bound["metadata"]["annotations"]["katalyst.kubewharf.io/memory_enhancement"] = '{"numa_binding": "true"}'
    (only,) = pod_seen(bound).ask.containers
    assert dict(only.requests) == {"cpu": 2000, "nvidia.com/gpu": 1}
    assert not pod_seen(pod(container(cpu="2"))).ask.containers


def test_a_pod_is_kept_while_it_is_on_a_node_and_has_not_finished() -> None:
    assert assigned_pod(pod(container())) is None
    running = pod(container(), node="n1")
    assert assigned_pod(running) is not None
    assert assigned_pod(running | {"status": {"phase": "Failed"}}) is None


def test_when_it_was_given_its_node_is_read_where_that_can_be() -> None:
    row = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-23T10:00:00Z"}
    found = pod_seen(pod(container(), node="n1") | {"status": {"conditions": [row]}})
    assert found.assigned_at == 1795428000
    odd = row | {"lastTransitionTime": "yesterday"}
    assert pod_seen(pod(container(), node="n1") | {"status": {"conditions": [odd, 5]}}).assigned_at is None


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"metadata": {"name": ""}},
        {"metadata": {"name": 5}},
        {"metadata": {"name": "p"}, "spec": []},
        {"metadata": {"name": "p"}, "spec": {"containers": {}}},
        {"metadata": {"name": "p"}, "spec": {"containers": ["x"]}},
        {"metadata": {"name": "p"}, "spec": {"containers": [{}] * (MOST_CONTAINERS + 1)}},
        {"metadata": {"name": "p"}, "spec": {"tolerations": [7]}},
        {"metadata": {"name": "p", "annotations": []}},
    ],
)
def test_what_is_no_pod_is_refused(broken: Document) -> None:
    with pytest.raises(Refused):
        pod_asked(broken)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("containers", "initContainers", "tolerations", "nodeName", "overhead", "priority", "schedulerName")


@given(st.dictionaries(st.sampled_from(KEYS), JSON), st.dictionaries(st.sampled_from(("labels", "annotations")), JSON))
def test_whatever_stands_in_a_pod_is_read_or_refused(spec: Document, meta: Document) -> None:
    try:
        found = pod_asked({"metadata": {"name": "p", **meta}, "spec": spec})
    except Refused:
        return
    assert found.seen.ask.cpu_request_millis >= 0


LATER = CnrTaint(key="k", value="v", effect="NoSchedule", qos_level="reclaimed_cores")
OLDER = CnrTaint(key="k", effect="NoScheduleForReclaimedTasks")
ALL = CnrTaint(key="k", effect="NoExecute")
SOFT = CnrTaint(key="k", effect="PreferNoSchedule")


@pytest.mark.parametrize(
    ("taint", "qos", "tolerations", "away"),
    [
        (LATER, "reclaimed_cores", [], True),
        (LATER, "shared_cores", [], False),
        (OLDER, "reclaimed_cores", [], True),
        (OLDER, "dedicated_cores", [], False),
        (ALL, "shared_cores", [], True),
        (SOFT, "reclaimed_cores", [], False),
        (LATER, "reclaimed_cores", [{"key": "k", "operator": "Exists"}], False),
        (LATER, "reclaimed_cores", [{"key": "k", "value": "v", "effect": "NoSchedule"}], False),
        (LATER, "reclaimed_cores", [{"key": "k", "value": "w"}], True),
        (LATER, "reclaimed_cores", [{"key": "other", "operator": "Exists"}], True),
        (OLDER, "reclaimed_cores", [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], False),
        (OLDER, "reclaimed_cores", [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], True),
        (ALL, "shared_cores", [{"operator": "Exists"}], False),
        (ALL, "shared_cores", [{"key": "", "value": ""}], True),
        (ALL, "shared_cores", [{"key": "k", "operator": "Gt", "value": "1"}], True),
        (ALL, "shared_cores", [{"key": 5}], True),
    ],
)
def test_taints_of_a_cnr_keep_away_who_does_not_tolerate_them(
    taint: CnrTaint, qos: Any, tolerations: list[Document], away: bool
) -> None:
    read = [toleration_of(row) for row in tolerations]
    assert bool(keeping_away([taint], qos, read)) is away


def test_a_toleration_of_nothing_tolerates_nothing() -> None:
    assert keeping_away([ALL], "shared_cores", [Toleration()]) == [ALL]


RECLAIMED = PodAsk(qos="reclaimed_cores", cpu_request_millis=300, memory_request_bytes=7)
SERVICE = PodAsk(cpu_request_millis=900)
CHANGES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["n1", "n2", None]), st.sampled_from([RECLAIMED, SERVICE]))
)


@given(CHANGES)
def test_sums_of_nodes_are_those_of_their_pods_after_every_change(
    changes: list[tuple[str, str | None, PodAsk]],
) -> None:
    index, known = AssignedPods(), dict[str, PodSeen]()
    for uid, node, ask in changes:
        index.put(uid, None if node is None else PodSeen(uid, "team", uid, ask, node))
        known.pop(uid, None)
        if node is not None:
            known[uid] = PodSeen(uid, "team", uid, ask, node)
    assert len(index) == len(known)
    for node in ("n1", "n2"):
        there = {uid: one for uid, one in known.items() if one.node == node}
        assert dict(index.of(node).pods) == there
        assert index.of(node).reclaimed_millis == sum(one.ask.reclaimed[RECLAIMED_CPU] for one in there.values())
        assert index.of(node).reclaimed_bytes == sum(one.ask.reclaimed[RECLAIMED_MEMORY] for one in there.values())
    assert set(index.nodes) == {one.node for one in known.values()}


def test_whole_cpus_of_guaranteed_pods_are_their_own() -> None:
    def own(*containers: dict[str, dict[str, str]], starting: tuple[dict[str, dict[str, str]], ...] = ()) -> int:
        rows = [{"name": f"c{place}", "resources": one} for place, one in enumerate(containers)]
        spec = {"containers": rows, "initContainers": [{"name": "i", "resources": one} for one in starting]}
        return pod_asked({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}).seen.ask.own_cpus

    def equal(cpu: str) -> dict[str, dict[str, str]]:
        return {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu, "memory": "1Gi"}}

    assert own(equal("2"), equal("1")) == 3
    assert own(equal("2"), starting=(equal("4"),)) == 4
    assert own(equal("1500m"), equal("500m")) == 0
    assert own(equal("2") | {"limits": {"cpu": "2", "memory": "2Gi"}}) == 0
    assert own({"requests": {"cpu": "2", "memory": "1Gi"}}) == 0
