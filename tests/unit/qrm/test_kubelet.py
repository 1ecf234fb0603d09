"""CPUs that kubelet has pinned are left alone."""

import asyncio
import json
from pathlib import Path

import pytest
from qrm_world import TUTORIAL_NODE, Node, Run, conditions, pools

from services.qrm.adapters.kernel.kubelet import exclusive_cpus
from shared.adapters.host.kubelet_checkpoints import CPU_MANAGER_FILE, LARGEST_BYTES
from shared.contracts.pod import Container, Pod
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology
from shared.errors import Unavailable

STATIC = {"policyName": "static", "defaultCpuSet": "0,3-47", "entries": {"uid-1": {"main": "1", "side": "2"}}}


def kubelet_says(root: Path, text: str) -> None:
    path = root / CPU_MANAGER_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        (json.dumps(STATIC), "1-2"),
        (json.dumps(STATIC | {"policyName": "none"}), ""),
        (json.dumps({"policyName": "static", "defaultCpuSet": "0-47"}), ""),
        ("", ""),
    ],
)
def test_the_pinned_cpus_are_those_of_the_entries(tmp_path: Path, text: str, cpus: str) -> None:
    kubelet_says(tmp_path, text)
    assert str(CpuSet.union(exclusive_cpus(tmp_path).values())) == cpus


def test_without_kubelet_nothing_is_pinned(tmp_path: Path) -> None:
    assert exclusive_cpus(tmp_path) == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"entries": {}}', '{"policyName": "static", "entries": {"u": {"c": "x"}}}']
)
def test_a_file_that_cannot_be_read_is_not_taken_for_nothing(tmp_path: Path, text: str) -> None:
    kubelet_says(tmp_path, text)
    with pytest.raises(Unavailable, match="cpu_manager_state"):
        exclusive_cpus(tmp_path)


def test_qrm_places_nobody_on_them_and_says_so(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path)
        node.pinned = {"uid-1": CpuSet.parse("1-2")}
        async with node:
            await asyncio.sleep(3.1)
            assert not CpuSet.parse("1-2") & CpuSet.parse(pools(node.last)["share"])
            allocation = await node.hear(node.advice(6, 42))
            taken = [CpuSet.parse(cpus) for cpus in pools(allocation).values()]
            assert sum(map(len, taken)) == 46
            assert not any(CpuSet.parse("1-2") & cpus for cpus in taken)
            assert "1-2" in conditions(allocation)["StaticCpuManager"]
            assert node.app.health().ok

    virtual(story())


def test_a_pod_that_kubelet_has_pinned_gets_no_cpus_from_qrm_as_well(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path)
        bound = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
        amounts = Container(name="c", cpu_request_millis=4000)
        owner = Pod(uid="1", name="owner", qos="dedicated_cores", containers=(amounts,), annotations=bound)
        node.pods.known, node.pinned = [owner], {owner.uid: CpuSet.parse("1-4")}
        async with node:
            allocation = await node.hear(node.advice(6, 38))
            assert sum(len(CpuSet.parse(cpus)) for cpus in pools(allocation).values()) == 44

    virtual(story())


def test_nobody_is_placed_on_isolated_cpus_either(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        topology = Topology.of(TUTORIAL_NODE.cpus, CpuSet.parse("3,27"))
        async with Node(tmp_path, topology=topology) as isolating:
            allocation = await isolating.hear(isolating.advice(6, 42))
            taken = [CpuSet.parse(cpus) for cpus in pools(allocation).values()]
            assert sum(map(len, taken)) == 46
            assert not any(CpuSet.parse("3,27") & cpus for cpus in taken)

    virtual(story())


@pytest.mark.parametrize("kind", ["folder", "huge"])
def test_a_checkpoint_that_cannot_be_read_is_told_and_never_thrown(tmp_path: Path, kind: str) -> None:
    path = tmp_path / CPU_MANAGER_FILE
    path.parent.mkdir(parents=True)
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text(" " * (LARGEST_BYTES + 1))
    with pytest.raises(Unavailable, match="which CPUs kubelet has pinned is not known"):
        exclusive_cpus(tmp_path)


def test_while_it_is_not_known_who_is_pinned_nobody_is_moved_and_the_node_says_so(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path)
        node.pins_unread = "Permission denied"
        async with node:
            before = node.sets()
            allocation = await node.hear(node.advice(6, 20))
            assert (allocation.status, node.sets()) == ("dry-run", before)
            assert "Permission denied: nothing is written" in conditions(allocation)["KubeletStateUnreadable"]
            assert not node.app.health().ok
            node.pins_unread = ""
            allocation = await node.hear(node.advice(6, 20))
            assert allocation.status == "applied"
            assert node.sets() != before
            node.pins_unread = "Input/output error"
            before = node.sets()
            allocation = await node.hear(node.advice(6, 42))
            assert (allocation.status, node.sets()) == ("dry-run", before)

    virtual(story())
