"""A node that Sublet leaves for good is the node it was before: kubelet's groups."""

from pathlib import Path

import pytest
from present import present
from test_pod_limits_written import GIB, KINDS, PAIR, TENANT, Limited, batch, container, groups_of

from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.isolation.wanted import may_be_given
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.core.writes.outcome import Problem
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob
from shared.core.cgroups.layout import QOS_CLASSES
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused

OWNER = Pod(uid="c0", name="o", kube_qos="Guaranteed", containers=(container("o"),))
BURSTING = Pod(uid="c5", name="s", kube_qos="Burstable", containers=(container("s"),),
               annotations={"katalyst.kubewharf.io/cpu_enhancement": '{"cpu_burst_policy": "static"}'})  # fmt: skip
PODS = (PAIR, TENANT, OWNER, BURSTING)


def of_node(node: Limited) -> dict[str, str]:
    """Every setting of every group of the node."""
    top = node.layout.top.split("/")[0]
    return {
        str(path): path.read_text().strip()
        for controller in ("cpu", "cpuset", "memory")
        for path in node.plain.folder(top, controller).rglob("*")
        if path.is_file()
    }


def given_back(node: Limited, *pods: Pod) -> tuple[Problem, ...]:
    """By another process, which knows what is on record."""
    after = node.another_life()
    after.resume()
    return after.restore(pods)


@pytest.fixture(params=KINDS, ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Limited:
    made = Limited(tmp_path, *request.param)
    made.start(*PODS)
    for group in (node_group for pod in PODS for node_group in groups_of(made, pod)):
        made.plain.cgroups.write(group, Knob.CPUS, "0-47")
        made.plain.cgroups.write(group, Knob.MEMS, "0-1")
    for group in groups_of(made, BURSTING):
        made.plain.cgroups.write(group, Knob.CPU_QUOTA, 500)
    return made


def test_every_setting_of_every_group_is_what_kubelet_wrote(node: Limited) -> None:
    before = of_node(node)
    node.apply(*PODS, limit_bytes=4 * GIB)
    assert {path for path, text in of_node(node).items() if before.get(path) != text}, "nothing was taken"
    assert given_back(node, *PODS) == ()
    assert of_node(node) == before


def test_what_kubelets_cpu_manager_has_given_away_is_nobody_elses(node: Limited) -> None:
    node.pinned = {OWNER.uid: CpuSet.parse("1-4")}
    node.machine.refresh()
    node.apply(*PODS)
    before = [node.plain.get(group) for group in groups_of(node, OWNER)]
    assert given_back(node, *PODS) == ()
    assert [node.plain.get(group) for group in groups_of(node, OWNER)] == before
    assert {node.plain.get(group) for group in groups_of(node)} == {"0,5-47"}


def test_a_pod_that_is_gone_is_no_problem_and_a_second_time_changes_nothing(node: Limited) -> None:
    node.apply(*PODS)
    assert given_back(node, *PODS, batch(container("late"))) == ()
    left = of_node(node)
    assert given_back(node, *PODS) == ()
    assert of_node(node) == left


def test_the_limit_of_the_class_is_lifted(node: Limited) -> None:
    node.apply(PAIR, limit_bytes=4 * GIB)
    home = present(node.layout.reclaimed_group(()))
    assert given_back(node, PAIR) == ()
    assert node.plain.cgroups.read(home, Knob.MEMORY_MAX) in (None, UNLIMITED)


ISOLATION = NodeRules(50, dict.fromkeys(QOS_CLASSES, MemoryQos(50, 80, 90, wmark_ratio=0)), {}, 64 * GIB)
ISOLATED = GroupSettings(2000, isolation=ISOLATION)


def test_what_isolates_pods_is_given_back_also_by_the_next_life(node: Limited) -> None:
    before = of_node(node)
    node.apply(*PODS)
    node.groups.apply(node.what, PODS, ISOLATED, 1.0)
    knobs = {one.knob for one in node.store.load()}
    assert Knob.CPU_BURST in knobs
    assert (Knob.MEMORY_MIN in knobs) is (node.plain.version == 2)
    after = node.another_life()
    assert after.resume() is True
    assert after.restore(PODS) == ()
    assert of_node(node) == before
    assert node.another_life().resume() is False


def test_protection_of_homes_ends_also_when_its_pods_have_ended_in_between(node: Limited) -> None:
    homes = [group for group in (node.layout.top, *node.layout.homes) if node.plain.version == 2]
    node.apply(PAIR)
    node.groups.apply(node.what, [PAIR], ISOLATED, 1.0)
    for pods in ((), (PAIR,)):
        node.damage_record()
        for group in homes:
            node.plain.cgroups.write(group, Knob.MEMORY_MIN, GIB)
        after = node.another_life()
        with pytest.raises(Refused, match="set aside"):
            after.resume()
        after.apply(node.what, pods, GroupSettings(2000), 1.0) if pods else after.restore(pods)
        assert {node.plain.cgroups.read(group, Knob.MEMORY_MIN) for group in homes} <= {0}


def test_an_inherited_memory_high_is_that_of_containers_alone(node: Limited) -> None:
    node.apply(PAIR)
    found = may_be_given((PAIR,), node.layout, (Knob.MEMORY_HIGH,))
    assert {group for group, _ in found} == {node.layout.container_group(PAIR, one) for one in PAIR.containers}


def test_isolation_that_is_switched_off_ends_while_the_rest_stays(node: Limited) -> None:
    node.apply(*PODS)
    node.groups.apply(node.what, PODS, GroupSettings(2000), 1.0)
    before = of_node(node)
    node.groups.apply(node.what, PODS, ISOLATED, 2.0)
    # v1 has a file for the burst alone, and the only pod with a quota bursts anyhow.
    assert (of_node(node) != before) is (node.plain.version == 2)
    node.groups.apply(node.what, PODS, GroupSettings(2000), 3.0)
    assert of_node(node) == before


PLACES = 16
"""Writes that giving these pods back takes, each of which may be the last one."""


class Died(BaseException):
    """The process is killed."""


def test_killed_at_any_write_the_second_try_ends_with_the_node_that_it_was(
    node: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = of_node(node)
    write = Cgroups.write
    written: list[Knob] = []

    def dying(self: Cgroups, group: str, knob: Knob, value: int | str) -> bool | None:
        if len(written) == alive:
            raise Died
        written.append(knob)
        return write(self, group, knob, value)

    alive, places = 0, 0
    while True:
        node.groups = node.another_life()
        node.apply(*PODS, limit_bytes=4 * GIB)
        written.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Cgroups, "write", dying)
            try:
                assert given_back(node, *PODS) == ()
                break
            except Died:
                places += 1
        assert given_back(node, *PODS) == ()
        assert of_node(node) == before
        alive += 1
    assert places == alive >= PLACES
    assert of_node(node) == before
