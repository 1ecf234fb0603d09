"""What tide pools see of Nodes and pods: where a pod may run, what it asks for, whose it is, and notes of a change."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.central.core.tide.change import CHANGE, LAST, NodeChange, read_change, read_last, seconds_since
from services.central.core.tide.edits import PoolMarks, closing, marked, standing
from services.central.core.tide.entry import EntryStep, Move, entry_step, unwelcome
from services.central.core.tide.marks import (
    BATCH_UNWANTED,
    ONLINE_POD,
    POD_LABEL,
    SERVICES_UNWANTED,
    SideTaints,
    TideTaint,
)
from services.central.core.tide.placement import placement_of
from services.central.core.tide.roles import Role, Standing
from services.central.core.tide.seen import (
    FITS_NOWHERE,
    TideNodeSeen,
    TidePodSeen,
    requests_of_pod,
    tide_node_of,
    tide_pod_of,
)
from shared.errors import Refused

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWN = PoolMarks("green", SideTaints())
GPU = TideTaint("gpu", "NoSchedule", "yes")
SERVICE = {"key": BATCH_UNWANTED.key, "operator": "Exists"}
BATCH = {"key": SERVICES_UNWANTED.key, "operator": "Exists"}
Json = dict[str, Any]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "value": "yes", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "tolerationSeconds": 300}, False),
        ({}, False),
        ("gpu", False),
    ],
)
def test_a_toleration_covers_a_taint_as_in_kubernetes_and_one_for_a_while_is_none(
    toleration: Any, tolerated: bool
) -> None:
    assert placement_of({"tolerations": [toleration]}).tolerates(GPU) is tolerated


def test_a_taint_that_keeps_nobody_away_is_tolerated() -> None:
    assert placement_of({}).tolerates(TideTaint("gpu", "PreferNoSchedule"))


def terms(*rows: Json) -> Json:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(rows)}}
    return {"affinity": {"nodeAffinity": required}}


def term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"nodeSelector": {"disk": ""}}, False),
        (terms(term("zone", "In", "a", "b")), True),
        (terms(term("zone", "NotIn", "a")), False),
        (terms(term("disk", "DoesNotExist")), True),
        (terms(term("zone", "In", "b"), term("zone", "Exists")), True),
        (terms({}), False),
        (terms(term("zone", "Near", "a")), False),
        (terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}), True),
        (terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}), False),
        ({"nodeSelector": {"zone": "b"}, **terms(term("zone", "In", "a"))}, False),
    ],
)
def test_a_pod_wants_nodes_by_selector_and_required_affinity(spec: Json, wanted: bool) -> None:
    assert placement_of(spec).wants("n1", {"zone": "a"}) is wanted


def container(cpu: str, **more: Any) -> Json:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu_millis"),
    [
        ({"containers": [container("1"), container("250m")]}, 1250),
        ({"containers": [container("1")], "initContainers": [container("3")]}, 3000),
        ({"containers": [container("1")], "initContainers": [container("500m", restartPolicy="Always")]}, 1500),
        (
            {"containers": [container("1")],
             "initContainers": [container("500m", restartPolicy="Always"), container("2")]}, 2500),
        ({"containers": [container("1")], "overhead": {"cpu": "100m"}}, 1100),
        ({"containers": [{}]}, 0),
        ({"containers": [container("much")]}, FITS_NOWHERE),
        ({"containers": [container("-1")]}, FITS_NOWHERE),
    ],
)  # fmt: skip
def test_a_pod_asks_as_the_scheduler_counts_it(spec: Json, cpu_millis: int) -> None:
    found = requests_of_pod(spec)
    assert (found.get("cpu", 0), found["pods"]) == (cpu_millis, 1)


def test_an_ended_pod_is_none_and_one_without_a_name_is_refused() -> None:
    meta = {"name": "p", "namespace": "d", "uid": "u"}
    assert tide_pod_of({"metadata": meta, "status": {"phase": "Succeeded"}}) is None
    with pytest.raises(Refused):
        tide_pod_of({"metadata": {"namespace": "d", "uid": "u"}})
    with pytest.raises(Refused):
        tide_node_of({"metadata": {"name": "n"}})


@pytest.mark.parametrize(
    ("meta", "stays"),
    [
        ({"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}, True),
        ({"ownerReferences": [{"kind": "DaemonSet"}]}, False),
        ({"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, True),
        ({}, False),
    ],
)
def test_a_daemon_sets_pod_and_the_kubelets_own_stay(meta: Json, stays: bool) -> None:
    found = tide_pod_of({"metadata": {"name": "p", "namespace": "d", "uid": "u", **meta}})
    assert found is not None
    assert found.stays is stays


def test_a_note_is_read_as_it_was_written_and_else_is_none() -> None:
    change = NodeChange(pool="green", to="tide_offline", since=NOW, why="w", for_pod="d/p")
    node = TideNodeSeen("n", "u", {}, (), {})
    notes = closing(node, change, OWN).annotations
    assert (read_change(notes[CHANGE]), notes[LAST]) == (change, None)
    for text in (None, 5, "", "{}", "x" * 5000, '{"pool":"g","to":"elsewhere","since":"2026-01-01T00:00:00Z"}',
                 '{"pool":"g","to":"tide_online","since":"2026-01-01T00:00:00"}'):  # fmt: skip
        assert read_change(text) is None
        assert read_last(text) is None


def test_a_moment_that_is_to_come_is_no_age_but_for_the_skew_of_clocks() -> None:
    assert seconds_since(NOW - timedelta(seconds=5), NOW) == 5
    assert seconds_since(NOW + timedelta(seconds=5), NOW) == 0
    assert seconds_since(NOW + timedelta(seconds=61), NOW) is None


def test_a_closed_node_keeps_its_taint_and_is_as_before_when_opened_again() -> None:
    before = marked(TideNodeSeen("n", "u", {"zone": "z"}, (GPU,), {}), "tide_online", OWN, None)
    node = TideNodeSeen("n", "u", before.labels, before.taints, {})
    shut = closing(node, NodeChange(pool="green", to="tide_offline", since=NOW), OWN)
    assert set(shut.taints) == {GPU, BATCH_UNWANTED, TideTaint(SERVICES_UNWANTED.key, "NoSchedule", "true")}
    closed = TideNodeSeen("n", "u", shut.labels, shut.taints, {}, change=shut.change)
    assert marked(closed, "tide_online", OWN, None) == before
    assert marked(closed, None, OWN, None) == standing(TideNodeSeen("n", "u", {"zone": "z"}, (GPU,), {}))


def pod(name: str, toleration: Json | None = None, **fields: Any) -> TidePodSeen:
    placement = placement_of({"tolerations": [toleration] if toleration else []})
    return TidePodSeen(f"d/{name}", name, "n", placement=placement, requests={}, **({"online": False} | fields))


def test_unwelcome_is_who_does_not_tolerate_the_side_and_can_go() -> None:
    pods = [pod("s", SERVICE), pod("b", BATCH), pod("none"), pod("all", {"operator": "Exists"}), pod("d", stays=True)]
    assert [one.uid for one in unwelcome(pods, "tide_offline", OWN)] == ["none", "s"]
    assert [one.uid for one in unwelcome(pods, "online_reserve", OWN)] == ["b", "none"]


@pytest.mark.parametrize(
    ("to", "before", "since_s", "leaving", "what"),
    [
        ("tide_offline", "tide_online", None, [], "close"),
        ("tide_offline", "tide_online", None, [pod("s")], "close"),
        ("tide_offline", "tide_online", 0, [], "enter"),
        ("tide_offline", "tide_online", 599, [pod("s")], "evict"),
        ("tide_offline", "tide_online", 600, [pod("s")], "give_up"),
        ("tide_offline", "tide_online", 600, [], "enter"),
        ("tide_online", "tide_offline", 600, [pod("b")], "enter"),
        ("tide_online", "tide_offline", 0, [pod("b")], "evict"),
        ("tide_online", None, None, [pod("s", online=True)], "wait"),
        ("tide_online", None, 5, [pod("s", online=True)], "give_up"),
        ("tide_offline", "tide_online", None, [pod("s", online=True)], "close"),
        ("tide_offline", "tide_online", None, [pod("dns", critical=True)], "wait"),
        ("tide_offline", "tide_online", -120, [], "close"),
    ],
)
def test_the_next_step(
    to: Role, before: Standing, since_s: float | None, leaving: list[TidePodSeen], what: str
) -> None:
    change = None if since_s is None else NodeChange(pool="green", to=to, since=NOW - timedelta(seconds=since_s))
    node = TideNodeSeen("n", "u", {}, (), {}, change=change)
    assert entry_step(Move("n", to, before, "why"), node, leaving, NOW, 600.0).what == what


@pytest.mark.parametrize(("since_s", "what"), [(None, "wait"), (5, "give_up")])
def test_who_is_hindered_goes_no_step_further(since_s: float | None, what: str) -> None:
    change = None if since_s is None else NodeChange(pool="green", to="tide_offline", since=NOW)
    node = TideNodeSeen("n", "u", {}, (), {}, change=change)
    move = Move("n", "tide_offline", "tide_online", "why", hindrance="pod d/w waits")
    assert entry_step(move, node, [], NOW, 600.0) == EntryStep(what, "pod d/w waits")  # type: ignore[arg-type]


def test_pods_that_are_on_their_way_out_are_waited_for_and_not_asked_again() -> None:
    change = NodeChange(pool="green", to="tide_offline", since=NOW)
    node = TideNodeSeen("n", "u", {}, (), {}, change=change)
    step = entry_step(
        Move("n", "tide_offline", "tide_online", ""), node, [pod("a", terminating=True), pod("b")], NOW, 9.0
    )
    assert (step.what, step.pods) == ("evict", ("d/b",))


def test_a_services_pod_is_one_with_the_label() -> None:
    meta = {"name": "p", "namespace": "d", "uid": "u"}
    for value, online in ((ONLINE_POD, True), ("offline", False)):
        found = tide_pod_of({"metadata": {**meta, "labels": {POD_LABEL: value}}})
        assert found is not None
        assert found.online is online
