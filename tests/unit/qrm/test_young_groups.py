"""What cannot be written to a group that is still being made is pending for a few tries, and then a failure."""

import asyncio
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups
from qrm_world import Node, Run, conditions

from services.qrm.core.writes.outcome import Problem
from services.qrm.core.writes.present import Present
from services.qrm.core.writes.young_groups import MAKINGS, SPAN_S, TRIES, YoungGroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.kubelet_layout import KubeletLayout

HOME = "kubepods.slice"
POD = Pod(uid="b", name="b", qos="reclaimed_cores", kube_qos="BestEffort", containers=(Container(name="c"),))
GROUP = f"{HOME}/pod-b.slice"
OFF = Problem(GROUP, "it has no CPU set: the cpuset controller is off")
BELOW = Problem(f"{GROUP}/c.scope", "cpuset.cpus=0-1: No such device")
BOOTED_S = 5000.0
"""A monotonic clock does not begin with qrm."""


def there(made: int = 1) -> Present:
    return Present((POD,), ({"pod-b.slice": made},), {}, {GROUP: POD}, {GROUP: made})


def test_a_problem_of_a_new_group_is_pending_for_its_tries_and_its_time_and_then_a_failure() -> None:
    young, pods = YoungGroups(), there()
    for attempt in range(TRIES):
        assert young.judge((OFF, BELOW), pods, BOOTED_S + attempt * SPAN_S) == ((), (OFF, BELOW))
    assert young.judge((OFF, BELOW), pods, BOOTED_S + TRIES * SPAN_S) == ((OFF, BELOW), ())


def test_many_passes_in_no_time_do_not_use_up_the_tries_nor_does_a_stall() -> None:
    young, pods = YoungGroups(), there()
    for _ in range(10 * TRIES):
        assert young.judge((OFF,), pods, BOOTED_S) == ((), (OFF,))
    assert young.judge((OFF,), pods, BOOTED_S + SPAN_S) == ((OFF,), ())
    stalled = YoungGroups()
    stalled.judge((OFF,), pods, 0.0)
    assert stalled.judge((OFF,), pods, 100 * SPAN_S) == ((), (OFF,))


def test_a_group_that_was_well_once_fails_at_once() -> None:
    young, pods = YoungGroups(), there()
    assert young.judge((), pods, 0.0) == ((), ())
    assert young.judge((OFF,), pods, 1.0) == ((OFF,), ())


def test_a_group_that_was_well_after_its_start_is_young_no_more() -> None:
    young, pods = YoungGroups(), there()
    assert young.judge((OFF,), pods, 0.0) == ((), (OFF,))
    assert young.judge((), pods, 1.0) == ((), ())
    assert young.judge((OFF,), pods, 2.0) == ((OFF,), ())


def test_what_is_in_no_pods_group_fails_at_once() -> None:
    beside = Problem(f"{GROUP}-another", "Permission denied")
    above = Problem(HOME, "Permission denied")
    assert YoungGroups().judge((beside, OFF, above), there(), 0.0) == ((beside, above), (OFF,))


def test_a_group_that_is_made_anew_is_young_again_but_not_without_end() -> None:
    young = YoungGroups()
    for attempt in range(MAKINGS * TRIES):
        assert young.judge((OFF,), there(attempt // TRIES), BOOTED_S + attempt * SPAN_S) == ((), (OFF,))
    assert young.judge((OFF,), there(MAKINGS), BOOTED_S + MAKINGS * TRIES * SPAN_S) == ((OFF,), ())


def test_a_failure_stays_one_and_another_pod_of_the_name_begins_anew() -> None:
    young, pods = YoungGroups(), there()
    for attempt in range(TRIES + 1):
        young.judge((OFF,), pods, attempt * SPAN_S)
    assert young.judge((OFF,), pods, 100.0) == ((OFF,), ())
    young.judge((), Present(), 101.0)
    assert young.judge((OFF,), there(2), 102.0) == ((), (OFF,))


class SystemdNode:
    """A node of cgroup v2 with the systemd driver, whose pods get their group before its controllers are on."""

    def __init__(self, folder: Path) -> None:
        self.layout = KubeletLayout("systemd")
        self.plain = PlainCgroups(folder / "host", version=2)
        for group in sorted({self.layout.top, *self.layout.homes}):
            self.plain.add(group)
        self.group = self.layout.pod_group(POD)

    def controllers_off(self) -> None:
        self.plain.add(self.group)
        for name in ("cpuset.cpus", "cpuset.mems", "cpuset.cpus.effective", "cpuset.mems.effective"):
            (self.plain.folder(self.group, "cpuset") / name).unlink()


def test_a_pod_whose_controllers_come_late_is_pending_and_well_soon(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        machine = SystemdNode(tmp_path)
        async with Node(tmp_path, plain=machine.plain, layout=machine.layout) as node:
            await node.hear(node.advice())
            machine.controllers_off()
            node.pods.known = [POD]
            await asyncio.sleep(0.6)
            assert "controller is off" in conditions(node.last)["WritePending"]
            assert "WriteFailed" not in conditions(node.last)
            assert (node.last.status, node.app.health().ok) == ("applied", True)
            machine.plain.add(machine.group)
            await asyncio.sleep(0.6)
            assert conditions(node.last).keys() & {"WritePending", "WriteFailed"} == set()
            assert machine.plain.get(machine.group) != "0-47"

    virtual(story())


@pytest.mark.parametrize("after_s", [4.0, 60.0])
def test_a_pod_whose_controllers_never_come_is_a_failure(tmp_path: Path, virtual: Run, after_s: float) -> None:
    async def story() -> None:
        machine = SystemdNode(tmp_path)
        async with Node(tmp_path, plain=machine.plain, layout=machine.layout) as node:
            await node.hear(node.advice(valid_for_s=600))
            machine.controllers_off()
            node.pods.known = [POD]
            await asyncio.sleep(after_s)
            assert "controller is off" in conditions(node.last)["WriteFailed"]
            assert not node.app.health().ok

    virtual(story())
