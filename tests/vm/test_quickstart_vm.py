"""The quick start on 48 emulated CPUs and a real kernel, cgroup v2: `sublet up`, the tutorial's pods, real load.

Every figure below is read from the guest's kernel and compared with what the tutorial prints.
"""

import json
from collections.abc import Callable

import pytest
from guest import listings as printed
from rig.boot import run_command
from rig.build import Parts
from rig.play import MACHINE, Told

from shared.core.cpus.cpuset import CpuSet

pytestmark = [pytest.mark.vm, pytest.mark.timeout(2400)]

TOPOLOGY_LIMIT_S, QUICKSTART_LIMIT_S = 600.0, 1800.0
TOPOLOGY = """
cat /sys/devices/system/node/node*/cpulist
cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | sort -n | uniq
echo said aside >&2
exit 7
"""


@pytest.fixture(scope="module")
def quickstart(tell: Callable[[str, float], Told]) -> Told:
    return tell("quickstart", QUICKSTART_LIMIT_S)


def test_the_machine_has_the_tutorials_numbering_and_hands_back_output_and_exit_code(
    parts: Parts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    done = run_command(parts, MACHINE, TOPOLOGY, tmp_path_factory.mktemp("empty"), limit_s=TOPOLOGY_LIMIT_S)
    assert (done.code, done.stderr) == (7, "said aside\n"), done
    nodes, siblings = done.stdout.splitlines()[:2], done.stdout.splitlines()[2:]
    assert tuple(nodes) == printed.NODE_CPUS
    assert [CpuSet.parse(text) for text in nodes] == [CpuSet.of(MACHINE.node_cpus(node)) for node in (0, 1)]
    assert siblings == [f"{cpu},{cpu + printed.SIBLING_DISTANCE}" for cpu in range(printed.SIBLING_DISTANCE)]


@pytest.mark.parametrize("step", printed.PRINTED)
def test_the_pools_are_what_the_tutorial_prints(quickstart: Told, step: str) -> None:
    seen, wanted = quickstart.seen(step), printed.PRINTED[step]
    assert {name: seen[name] for name in wanted} == wanted
    assert (seen["share_effective"], seen["reclaim_effective"]) == (wanted["share"], wanted["reclaim"])


@pytest.mark.parametrize(
    ("step", "pod", "cpus"),
    [
        ("pod", "shared-normal-pod", printed.SHARE_6),
        ("reclaimed pod", "shared-normal-pod", printed.SHARE_6),
        ("reclaimed pod", "reclaimed-normal-pod", printed.RECLAIM_42),
        ("peak", "shared-normal-pod", printed.SHARE_8),
        ("peak", "reclaimed-normal-pod", printed.RECLAIM_40),
    ],
)
def test_every_task_of_a_pod_may_run_on_the_cpus_that_the_tutorial_prints(
    quickstart: Told, step: str, pod: str, cpus: str
) -> None:
    seen = quickstart.seen(step)[pod]
    assert (seen["cpus"], seen["effective"]) == (cpus, cpus)
    assert seen["tasks"] == [cpus]


def test_the_nodes_object_says_42k_as_the_tutorial_prints_it(quickstart: Told) -> None:
    quickstart.seen("reclaimed pod")
    status = json.loads(quickstart.report["cnr"])["status"]
    for part in ("resourceAllocatable", "resourceCapacity"):
        assert status[part]["katalyst.kubewharf.io/reclaimed_millicpu"] == "42k"


def test_the_quick_start_evicts_nobody_and_leaves_nothing(quickstart: Told) -> None:
    quickstart.seen("idle again")
    assert quickstart.report["events"] == []
    assert (quickstart.done.code, quickstart.report["up_code"], quickstart.report["left"]) == (0, 0, [])
