"""What groups had before is on record before the first write: killed anywhere, the next life gives it back."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from qrm_world import Lease, Node, Run
from test_pod_limits_written import KINDS, PAIR, TENANT, Limited, groups_of
from test_restore import OWNER, Died, of_node

from services.qrm.adapters.checkpoint.former_values import FILE, FormerValuesFile
from services.qrm.adapters.kernel.isolation import STUCK_TRIES, GroupIsolation
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.former_values import FormerValues
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob
from shared.core.cgroups.layout import QOS_CLASSES
from shared.errors import Refused

BOOT = "f00d"
PODS = (PAIR, TENANT, OWNER)
VALUE = FormerValue(group="kubepods/poda", knob=Knob.CPU_BURST, value=70)
ISOLATION = NodeRules(50, dict.fromkeys(QOS_CLASSES, MemoryQos(50, 80, 90, wmark_ratio=0)), machine_bytes=64 << 30)
ISOLATED = GroupSettings(2000, isolation=ISOLATION, pod_quotas=True)
OFF = GroupSettings(2000)


@pytest.fixture(params=KINDS[:2], ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Limited:
    """A node on which somebody has given the tenant's groups a burst, and the pair's first container a quota."""
    made = Limited(tmp_path, *request.param)
    made.start(*PODS)
    for group in groups_of(made, TENANT):
        made.plain.cgroups.write(group, Knob.CPU_QUOTA, 500)
        made.plain.cgroups.write(group, Knob.CPU_BURST, 20)
    made.plain.cgroups.write(groups_of(made)[1], Knob.CPU_QUOTA, 330)
    # Sets, weights and limits are in force already: what follows writes isolation and quotas alone.
    for _ in range(3):
        made.apply(*PODS)
    return made


def off(node: Limited) -> None:
    """Another life, with all of it switched off."""
    after = node.another_life()
    after.resume()
    for now_s in (1.0, 2.0):
        assert not after.apply(node.what, PODS, OFF, now_s).problems


def test_what_was_there_before_is_given_back(node: Limited) -> None:
    before = of_node(node)
    node.groups.apply(node.what, PODS, ISOLATED, 1.0)
    assert of_node(node) != before
    off(node)
    assert of_node(node) == before
    assert not node.store.load()


def test_killed_at_any_write_or_record_the_next_life_gives_back_what_was_there(
    node: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two writes to a group or to the record, while values are given and while they go back."""
    before = of_node(node)
    steps: list[str] = []

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def step(*given: object) -> object:
            if len(steps) == alive:
                raise Died
            steps.append(real.__name__)
            return real(*given)

        return step

    alive, died = 0, True
    while died:
        steps.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Cgroups, "write", dying(Cgroups.write))
            patch.setattr(FormerValuesFile, "save", dying(FormerValuesFile.save))
            try:
                life = node.another_life()
                life.resume()
                life.apply(node.what, PODS, ISOLATED, 1.0)
                life.apply(node.what, PODS, OFF, 2.0)
                died = False
            except Died:
                alive += 1
        off(node)
        assert of_node(node) == before, (alive, steps)
    assert {"write", "save"} <= set(steps)
    assert alive == len(steps) > 10


def test_a_life_that_finds_its_own_values_in_force_does_not_take_them_for_what_was_there(node: Limited) -> None:
    before = of_node(node)
    for now_s in (1.0, 2.0):
        life = node.another_life()
        life.resume()
        life.apply(node.what, PODS, ISOLATED, now_s)
    off(node)
    assert of_node(node) == before


def test_before_a_pod_is_known_what_the_life_before_gave_stays(node: Limited) -> None:
    node.groups.apply(node.what, PODS, ISOLATED, 1.0)
    given = of_node(node)
    after = node.another_life()
    after.resume()
    after.apply(node.what, (), ISOLATED, 2.0)
    assert of_node(node) == given
    # Once they were known, none means that they have ended.
    after.apply(node.what, PODS, ISOLATED, 3.0)
    after.apply(node.what, (), ISOLATED, 4.0)
    assert {one.knob for one in node.store.load()} <= {Knob.CPU_QUOTA}


class FullDisk(FormerValuesFile):
    """Takes nothing."""

    def save(self, values: Sequence[FormerValue]) -> None:
        raise OSError(28, f"No space left on device for {len(values)}")


def test_what_cannot_be_put_on_record_is_not_written(node: Limited, tmp_path: Path) -> None:
    before = of_node(node)
    node.store = FullDisk(tmp_path / "full", BOOT)
    outcome = node.another_life().apply(node.what, PODS, ISOLATED, 1.0)
    assert of_node(node) == before
    assert "make room in the state folder" in outcome.problems[-1].why
    assert any("quotas cannot be put on record" in problem.why for problem in outcome.problems)


@pytest.mark.parametrize("dies", [False, True], ids=["written", "killed before it was written"])
def test_quotas_of_another_ratio_are_lifted_also_where_both_change_in_one_restart(
    node: Limited, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record says what was written: what the pod would get now is something else."""
    before = of_node(node)
    node.groups.apply(node.what, PODS, replace(OFF, pod_quotas=True), 1.0)
    faster = [pod.model_copy(update={"cpu_normalization_ratio": 1.25}) for pod in PODS]
    if dies:
        with monkeypatch.context() as patch:
            patch.setattr(Cgroups, "write", lambda *_: (_ for _ in ()).throw(Died))
            with pytest.raises(Died):
                node.groups.apply(node.what, faster, replace(OFF, pod_quotas=True), 2.0)
    life = node.another_life()
    life.resume()
    assert not life.apply(node.what, faster, OFF, 3.0).problems
    assert of_node(node) == before


def test_a_quota_that_somebody_else_wrote_since_stays(node: Limited) -> None:
    node.groups.apply(node.what, PODS, replace(OFF, pod_quotas=True), 1.0)
    second = groups_of(node)[2]
    node.plain.cgroups.write(second, Knob.CPU_QUOTA, 777)
    off(node)
    assert [node.plain.cgroups.read(group, Knob.CPU_QUOTA) for group in groups_of(node)] == [UNLIMITED, 330, 777]


def test_without_a_record_groups_get_what_new_ones_have_and_only_best_effort_pods_lose_quotas(node: Limited) -> None:
    node.groups.apply(node.what, PODS, ISOLATED, 1.0)
    node.damage_record()
    after = node.another_life()
    with pytest.raises(Refused, match="given back as new groups have it"):
        after.resume()
    for now_s in (1.0, 2.0):
        assert not after.apply(node.what, PODS, OFF, now_s).problems
    quotas = [node.plain.cgroups.read(group, Knob.CPU_QUOTA) for group in groups_of(node)]
    assert quotas == [UNLIMITED] * 3
    assert [node.plain.cgroups.read(group, Knob.CPU_QUOTA) for group in groups_of(node, TENANT)] == [500] * 2


def test_of_groups_that_have_ended_nothing_is_kept(node: Limited) -> None:
    former = FormerValues(node.store, node.plain.cgroups.exists)
    there = groups_of(node)[0]
    former.record([VALUE])
    former.record([VALUE.model_copy(update={"group": there})])
    assert [one.group for one in node.store.load()] == [there]


def test_what_an_earlier_boot_has_left_is_nothing(tmp_path: Path) -> None:
    FormerValuesFile(tmp_path, BOOT).save([VALUE])
    assert FormerValuesFile(tmp_path, BOOT).load() == (VALUE,)
    assert FormerValuesFile(tmp_path, "another").load() == ()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text[:-9], id="half written"),
        pytest.param(lambda _: "", id="empty"),
        pytest.param(lambda _: "[" * 100_000, id="deep"),
        pytest.param(lambda text: text.replace("poda", "podb"), id="changed"),
        pytest.param(lambda text: text + " " * (17 << 20), id="large"),
    ],
)
def test_a_damaged_record_is_set_aside_and_the_word_says_what_follows(
    tmp_path: Path, spoil: Callable[[str], str]
) -> None:
    store, path = FormerValuesFile(tmp_path, BOOT), tmp_path / FILE
    store.save([VALUE])
    path.write_text(spoil(path.read_text()))
    with pytest.raises(Refused, match=r"set aside as former-values\.json\.refused"):
        store.load()
    with pytest.raises(Refused, match=r"since former-values\.json\.refused was set aside"):
        store.load()
    store.save([])
    assert store.load() == ()


@pytest.mark.parametrize("group", ["../system.slice", "/kubepods", "kubepods//a", "", "a" * 5000, "kubepods/.."])
def test_a_record_names_groups_below_the_root_alone(group: str) -> None:
    body = json.loads(VALUE.model_dump_json())
    with pytest.raises(ValueError, match="group"):
        FormerValue.model_validate(body | {"group": group})


def test_memory_high_goes_back_in_steps_and_says_so_until_it_is_there(tmp_path: Path) -> None:
    node = Limited(tmp_path, "cgroupfs", 2)
    node.start(PAIR)
    group, used = groups_of(node)[1], 2 << 30
    node.plain.cgroups.write(group, Knob.MEMORY_HIGH, 1 << 30)
    former = FormerValues()
    isolation = GroupIsolation(CgroupWriter(node.plain.cgroups, node.layout.top), former)
    isolation.settle({(group, Knob.MEMORY_HIGH): 4 << 30}, 0.0, 0.0)
    node.plain.set(group, "memory.current", str(used), "memory")
    assert "in steps" in isolation.give_back()[0].why
    assert former
    node.plain.set(group, "memory.current", "0", "memory")
    assert isolation.give_back() == []
    assert node.plain.cgroups.read(group, Knob.MEMORY_HIGH) == 1 << 30
    assert not former


@pytest.mark.parametrize("enforcing", [True, False])
def test_a_memory_high_that_cannot_fall_stays_on_record_and_goes_back_in_the_end(
    tmp_path: Path, *, enforcing: bool
) -> None:
    node = Limited(tmp_path, "cgroupfs", 2)
    node.start(PAIR)
    group = groups_of(node)[1]
    node.plain.cgroups.write(group, Knob.MEMORY_HIGH, 500 << 20)
    former = FormerValues()
    isolation = GroupIsolation(CgroupWriter(node.plain.cgroups, node.layout.top), former)
    isolation.settle({(group, Knob.MEMORY_HIGH): 800 << 20}, 0.0, 0.0)
    node.plain.set(group, "memory.current", str(900 << 20), "memory")
    if enforcing:
        for at_s in range(3 * STUCK_TRIES):
            assert isolation.settle({}, float(at_s), 0.0) == []
    for _ in range(STUCK_TRIES):
        assert "in steps" in isolation.give_back()[0].why
        assert node.plain.cgroups.read(group, Knob.MEMORY_HIGH) == 800 << 20
        assert former
    assert isolation.give_back() == []
    assert node.plain.cgroups.read(group, Knob.MEMORY_HIGH) == 500 << 20
    assert not former


def test_whoever_leaves_gives_memory_high_back_at_once(tmp_path: Path) -> None:
    node = Limited(tmp_path, "cgroupfs", 2)
    node.start(PAIR)
    group = groups_of(node)[1]
    node.plain.cgroups.write(group, Knob.MEMORY_HIGH, 500 << 20)
    isolation = GroupIsolation(CgroupWriter(node.plain.cgroups, node.layout.top), FormerValues(node.store))
    isolation.settle({(group, Knob.MEMORY_HIGH): 800 << 20}, 0.0, 0.0)
    node.plain.set(group, "memory.current", str(900 << 20), "memory")
    assert isolation.give_back(at_once=True) == []
    assert node.plain.cgroups.read(group, Knob.MEMORY_HIGH) == 500 << 20
    assert node.store.load() == ()


STATIC = {"katalyst.kubewharf.io/cpu_enhancement": '{"cpu_burst_policy": "static"}'}
STATIC_POD = Pod(uid="a0", name="t", containers=(Container(name="c", cpu_limit_millis=1000),), annotations=STATIC)
GROUP = "sublet/shared_cores/poda0"


def test_what_was_written_before_any_advice_came_is_given_back_by_a_life_that_observes(
    tmp_path: Path, virtual: Run
) -> None:
    """No advice, so no lease and no checkpoint: the record alone tells of it."""

    async def story() -> None:
        node = Node(tmp_path, Lease())
        for group in (GROUP, f"{GROUP}/c"):
            node.plain.add(group)
            node.plain.cgroups.write(group, Knob.CPU_QUOTA, 1000)
        node.plain.cgroups.write(GROUP, Knob.CPU_BURST, 40)
        node.pods.known = [STATIC_POD]
        async with node:
            await asyncio.sleep(5)
            assert node.plain.cgroups.read(GROUP, Knob.CPU_BURST) == 1000
        after = Node(tmp_path, Lease(), plain=node.plain)
        after.pods.known, after.switch.mode = [STATIC_POD], "observe"
        async with after:
            await asyncio.sleep(5)
            assert node.plain.cgroups.read(GROUP, Knob.CPU_BURST) == 40
            assert node.plain.cgroups.read(f"{GROUP}/c", Knob.CPU_BURST) == 0
        assert not FormerValuesFile(tmp_path / "state", BOOT).load()

    virtual(story())


def test_a_damaged_record_is_no_condition_any_more_once_there_is_a_new_one(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / FILE).write_text("{}")
        node = Node(tmp_path, Lease())
        node.pods.known = [STATIC_POD]
        async with node:
            await node.hear(node.advice())
            await asyncio.sleep(5)
            assert "FormerValuesRefused" not in {condition.type for condition in node.last.conditions}
        assert (tmp_path / "state" / FILE).exists()

    virtual(story())


def test_a_damaged_record_is_a_condition(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / FILE).write_text("{}")
        async with Node(tmp_path, Lease()) as node:
            await asyncio.sleep(1)
            assert "FormerValuesRefused" in {condition.type for condition in node.last.conditions}

    virtual(story())
