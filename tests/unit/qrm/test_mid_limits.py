"""Mid pods, which kubelet takes for best-effort, weigh and are held to what they ask for under Koordinator's names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_pod_limits_written import GIB, KINDS, PAIR, Limited, groups_of
from test_restore import of_node

from services.qrm.core.writes.group_settings import GroupSettings
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob
from shared.core.pods.kube_pod import pod_of

VERIFY_S = 10.0
MID = {"kubernetes.io/mid-cpu": "2000", "kubernetes.io/mid-memory": str(GIB)}


def pod(*resources: dict[str, Any], init: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """As the API server holds it, of class mid by its priority."""

    def row(name: str, of: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": of, "limits": of}}

    names = [f"c{n}" for n in range(len(resources))]
    document = {
        "metadata": {"uid": "abc", "namespace": "d", "name": "mid", "labels": {"koordinator.sh/qosClass": "LS"}},
        "spec": {"priority": 7500, "containers": [row(*one) for one in zip(names, resources, strict=True)],
                 "initContainers": [] if init is None else [row("i", init)]} | spec,
        "status": {"qosClass": "BestEffort", "containerStatuses": [
            {"name": name, "containerID": f"containerd://{n:024x}"} for n, name in enumerate(names)]},
    }  # fmt: skip
    found = pod_of(document)
    assert found is not None
    return found


TWO = pod(MID, {"kubernetes.io/mid-cpu": "500", "kubernetes.io/mid-memory": str(2 * GIB)})
QUOTAS = GroupSettings(2000, pod_quotas=True)


@pytest.fixture(params=KINDS, ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Limited:
    return Limited(tmp_path, *request.param)


def quotas(node: Limited, *pods: Pod) -> list[int]:
    return [int(node.plain.cgroups.read(group, Knob.CPU_QUOTA) or 0) for one in pods for group in groups_of(node, one)]


def test_pod_and_containers_have_weight_and_memory_limit_of_their_mid_amounts(node: Limited) -> None:
    node.start(TWO, PAIR)
    assert not node.apply(TWO, PAIR).problems
    groups = groups_of(node, TWO)
    assert [node.weight(group) for group in groups] == [node.shares(millis) for millis in (2500, 2000, 500)]
    assert [node.limit(group) for group in groups] == [3 * GIB, GIB, 2 * GIB]
    assert quotas(node, TWO) == [UNLIMITED] * 3
    # It is a tenant: not behind all others, as batch pods are.
    assert [node.plain.get(groups_of(node, one)[0], "cpu.idle", "cpu") for one in (TWO, PAIR)] == ["0", "1"]


def test_quotas_are_theirs_as_of_batch_pods_and_the_ratio_of_batch_cpu_is_not(node: Limited) -> None:
    node.start(TWO, PAIR)
    node.apply(TWO, PAIR)
    node.groups.apply(node.what, (TWO, PAIR), QUOTAS, 1.0)
    assert quotas(node, TWO) == [2500, 2000, 500]
    node.groups.apply(node.what, (TWO, PAIR), replace(QUOTAS, pod_quotas=False), 2.0)
    assert quotas(node, TWO, PAIR) == [UNLIMITED] * 6


def test_what_somebody_else_writes_is_written_again(node: Limited) -> None:
    node.start(TWO)
    limits, (top, first, _) = node.alone(), groups_of(node, TWO)
    for now_s in (0.0, 1.0):
        limits.settle([TWO], now_s, VERIFY_S, quotas=True)
    node.plain.cgroups.write(top, Knob.CPU_SHARES, 2)
    node.plain.cgroups.write(top, Knob.MEMORY_MAX, UNLIMITED)
    node.plain.cgroups.write(first, Knob.CPU_QUOTA, UNLIMITED)
    limits.settle([TWO], 2.0, VERIFY_S, quotas=True)
    assert node.weight(top) == node.shares(0), "not looked at before the period is over"
    limits.settle([TWO], 1.0 + VERIFY_S, VERIFY_S, quotas=True)
    assert (node.weight(top), node.limit(top), quotas(node, TWO)) == (node.shares(2500), 3 * GIB, [2500, 2000, 500])


def test_a_container_without_amounts_leaves_its_pod_without_limit(node: Limited) -> None:
    half = pod(MID, {})
    node.start(half)
    node.alone().settle([half], 0.0, VERIFY_S, quotas=True)
    top, first, second = groups_of(node, half)
    assert [node.limit(group) for group in (top, first, second)] == [UNLIMITED, GIB, UNLIMITED]
    assert quotas(node, half) == [UNLIMITED, 2000, UNLIMITED]
    assert node.weight(top) == node.shares(2000)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod({}), id="asks for nothing"),
        pytest.param(pod(MID, priority=9500), id="of class prod"),
        pytest.param(pod({"cpu": "1", "memory": "1Gi"}).model_copy(update={"kube_qos": "Burstable"}), id="plain"),
        pytest.param(TWO.model_copy(update={"kube_qos": "Burstable"}), id="known to kubelet"),
        pytest.param(TWO.model_copy(update={"priority": 9500}), id="with amounts that are not mid's"),
    ],
)
def test_other_tenants_are_left_as_kubelet_made_them(node: Limited, other: Pod) -> None:
    node.start(other)
    before = node.files(other)
    node.apply(other)
    node.groups.apply(node.what, (other,), QUOTAS, 1.0)
    assert node.files(other) == before


def test_everything_is_given_back(node: Limited) -> None:
    node.start(TWO)
    before = of_node(node)
    node.apply(TWO)
    node.groups.apply(node.what, (TWO,), QUOTAS, 1.0)
    assert of_node(node) != before
    after = node.another_life()
    after.resume()
    assert after.restore((TWO,)) == ()
    assert of_node(node) == before


def test_an_init_container_counts_where_it_asks_for_more(node: Limited) -> None:
    large = pod(MID, init={"kubernetes.io/mid-cpu": "4000", "kubernetes.io/mid-memory": str(4 * GIB)})
    node.start(large)
    node.apply(large)
    top = groups_of(node, large)[0]
    assert (node.limit(top), node.weight(top)) == (4 * GIB, node.shares(4000))
