"""TideNodePools, Nodes and pods as nobody means them: each is read or refused by itself, a pass goes on past all of
them, and no node of a service is given away because of one.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from odd_documents import odd_documents

from services.central.core.tide.change import CHANGE, LAST
from services.central.core.tide.marks import BATCH_UNWANTED, ONLINE_POD, POD_LABEL, TideTaint, marks_of
from services.central.core.tide.plan import PoolPlan, PoolView, TidePace, of_pool, plan_pool
from services.central.core.tide.pool import TidePoolSeen, pool_of, refusals
from services.central.core.tide.roles import ONLINE, Role
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen, tide_node_of, tide_pod_of
from shared.core.object_reader import ObjectReader

pytestmark = pytest.mark.timeout(300)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PACE = TidePace(hold_s=600.0, release_s=10.0, retry_s=3600.0)
SELECTOR = {"pool": "green"}
COUNT = 4000
Json = dict[str, Any]


def pool(**spec: Any) -> Json:
    meta = {"name": "green", "uid": "p", "generation": 1, "creationTimestamp": "2025-01-01T00:00:00Z"}
    configs = {"nodeSelector": SELECTOR, "reserve": {"online": "30%", "offline": 1}}
    watermark = {"evictOnlinePodTaint": {"key": "a/b", "value": "", "effect": "NoExecute"}}
    schedule = {"utcOffsetMinutes": 60, "bounds": [{"cronTab": "0 6 * * 1-5", "minOnline": "50%"}]}
    said = {
        "nodeConfigs": configs,
        "evictStrategy": {"type": "watermark", "watermark": watermark},
        "schedule": schedule,
    }
    return {"metadata": meta, "spec": {**said, **spec}}


def node(name: str, role: Role, **annotations: str) -> Json:
    marks = marks_of(role, "green", SELECTOR, [TideTaint("gpu", "NoSchedule")], pool_seen().marks.taints)
    taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in marks.taints]
    meta = {"name": name, "uid": name, "labels": dict(marks.labels), "annotations": annotations}
    return {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}


def pod(name: str, on: str | None) -> Json:
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["green"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec: Json = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
        "overhead": {"memory": "1Mi"},
        "nodeSelector": SELECTOR,
        "affinity": {"nodeAffinity": required},
        "tolerations": [{"key": BATCH_UNWANTED.key, "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}],
        "priority": 0,
    }
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {POD_LABEL: ONLINE_POD}}
    status = {"phase": "Pending", "conditions": [waits]}
    return {"metadata": meta, "spec": {**spec, **({"nodeName": on} if on else {})}, "status": status}


def pool_seen() -> TidePoolSeen:
    return pool_of(pool())


GOOD_NODES = [node("n1", "online_reserve"), node("n2", "tide_online"), node("n3", "tide_offline")]
NOTE = '{"pool":"green","to":"tide_offline","since":"2026-01-01T00:00:00Z"}'


def plan(nodes: list[TideNodeSeen], pods: list[TidePodSeen]) -> PoolPlan:
    seen = pool_of(pool(schedule={}))
    assert seen.pool is not None
    return plan_pool(PoolView(seen.marks, seen.pool, [of_pool(one, seen.name) for one in nodes], pods), NOW, PACE)


def test_a_pool_is_read_whole_or_refused_with_a_reason() -> None:
    reader, good, bad = ObjectReader(pool_of), 0, 0
    labels = [SELECTOR]
    for number, document in odd_documents([pool()], COUNT, seed=19):
        before = len(reader.unread)
        seen = reader.read(number, document, None)
        if seen is None:
            assert reader.unread[number].startswith("Refused"), (number, reader.unread[number])
            assert len(reader.unread) == before + 1
            continue
        good, bad = good + (seen.pool is not None), bad + (seen.pool is None)
        assert (seen.pool is None) == bool(seen.problem), number
        if seen.pool is None:
            assert refusals([seen], labels)[seen.name][0] == "Unreadable"
        else:
            assert 0 <= seen.pool.least_online(7, NOW.timestamp()) <= 7, number
    assert good > COUNT / 50
    assert bad > COUNT / 4


def test_a_pass_goes_on_past_any_node() -> None:
    reader = ObjectReader(tide_node_of)
    odd = node("odd", "tide_online", **{CHANGE: NOTE, LAST: '{"pool":"green","at":"2026-01-01T00:00:00Z"}'})
    nodes = [tide_node_of(one) for one in GOOD_NODES]
    for number, document in odd_documents([odd], COUNT, seed=24):
        seen = reader.read(number, document, None)
        if seen is None:
            assert reader.unread[number].startswith("Refused"), (number, reader.unread[number])
        else:
            plan([*nodes, seen], [])


def test_a_pass_goes_on_past_any_pod_and_gives_no_node_away_for_what_it_cannot_read() -> None:
    reader = ObjectReader(tide_pod_of)
    nodes = [tide_node_of(one) for one in (*GOOD_NODES, node("n4", "tide_online"))]
    busy = [tide_pod_of(pod(f"on-{n}", name)) for n, name in enumerate(("n1", "n4") * 2)]
    there, kept = [one for one in busy if one is not None], 0
    for number, document in odd_documents([pod("odd", "n2"), pod("odd", None)], COUNT, seed=25):
        seen = reader.read(number, document, None)
        if seen is None:
            assert number not in reader.unread or reader.unread[number].startswith("Refused"), number
            continue
        found = plan(nodes, [*there, seen])
        given_away = {move.node for move in found.moves if move.changes_side and move.role not in ONLINE}
        kept += not given_away
        assert not given_away or seen.node != "n2" or not seen.online or _small(seen), number
    assert kept > COUNT / 20


def _small(seen: TidePodSeen) -> bool:
    """Whether the pod fits beside two others."""
    return seen.requests.get("cpu", 0) <= 1800 and seen.requests.get("memory", 0) <= 6 << 30


@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-01-01T00:00:00", "soon", "1e400"]
)
def test_a_note_of_another_time_holds_no_node_for_ever(moment: str) -> None:
    last = f'{{"pool":"green","at":"{moment}"}}'
    nodes = [tide_node_of(node(name, "tide_online", **{LAST: last})) for name in ("a", "b")]
    assert plan([tide_node_of(GOOD_NODES[0]), *nodes], []).roles["a"] == "tide_offline"
