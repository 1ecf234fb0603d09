"""Quotas of tenants in kubelet's groups: raised with their pods, repaired, and given back as kubelet gave them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_pod_limits_written import KINDS, Limited
from test_restore import Died

from services.qrm.adapters.kernel.moved_quotas import MovedQuotas
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.conditions import Conditions
from services.qrm.core.isolation.rules import NodeRules
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.former_values import FormerValues
from services.qrm.lease.group_restorer import GroupRestorer
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write

VERIFY_S = 10.0
C = Container(name="c", cpu_limit_millis=1000, id=f"containerd://{'c' * 24}")
D = Container(name="d", cpu_limit_millis=500, id=f"containerd://{'d' * 24}")
WEB = Pod(uid="a", name="web", kube_qos="Burstable", containers=(C, D))
OTHER = Pod(uid="e", name="other", kube_qos="Burstable", containers=(C, D))
OVERHEAD = 50
"""Of the pod's runtime, which kubelet adds to the pod's own quota."""
KUBELETS = [1500 + OVERHEAD, 1000, 500]


class Tenants(Limited):
    """Two tenants' pods with the quotas that kubelet writes."""

    def __init__(self, folder: Path, *kind: object) -> None:
        super().__init__(folder, *kind)  # type: ignore[arg-type]
        for pod in (WEB, OTHER):
            for group, millis in zip(self.of(pod), KUBELETS, strict=True):
                self.plain.add(group)
                self.plain.cgroups.write(group, Knob.CPU_QUOTA, millis)
        self.moved = self.another()
        self.now_s = 0.0

    def of(self, pod: Pod) -> list[str]:
        groups = [self.layout.container_group(pod, one) for one in pod.containers]
        return [self.layout.pod_group(pod), *(group for group in groups if group is not None)]

    def another(self) -> MovedQuotas:
        former = FormerValues(self.store, self.plain.cgroups.exists)
        former.resume()
        return MovedQuotas(CgroupWriter(self.plain.cgroups, self.layout.top), self.layout, former)

    def quotas(self, pod: Pod = WEB) -> list[int]:
        return [int(self.plain.cgroups.read(group, Knob.CPU_QUOTA) or 0) for group in self.of(pod)]

    def settle(self, *raised: int, pods: tuple[Pod, ...] = (WEB, OTHER)) -> list[int]:
        """One pass, after which the containers of the first pod shall have these quotas; what its groups have then."""
        self.now_s += 1.0
        wanted = {g: q for g, q, had in zip(self.of(WEB)[1:], raised, KUBELETS[1:], strict=False) if q != had}
        assert self.moved.settle(pods, wanted, self.now_s, VERIFY_S) == []
        return self.quotas()

    def other_period(self, group: str, period_us: str = "50000") -> None:
        """The same quota in microseconds, by another period."""
        if self.plain.version == 1:
            self.plain.set(group, "cpu.cfs_period_us", period_us, "cpu")
        else:
            quota_us = (self.plain.cgroups.raw(group, Knob.CPU_QUOTA) or "").split()[0]
            self.plain.set(group, "cpu.max", f"{quota_us} {period_us}", "cpu")

    def rewrite(self, group: str, millis: int) -> None:
        self.plain.cgroups.write(group, Knob.CPU_QUOTA, millis)


@pytest.fixture(params=KINDS, ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Tenants:
    return Tenants(tmp_path, *request.param)


def test_container_and_pod_rise_and_fall_together_and_nobody_else(node: Tenants) -> None:
    assert node.settle(1200, 500) == [1750, 1200, 500]
    assert node.settle(1440, 600) == [2090, 1440, 600]
    assert node.settle(1000, 600) == [1650, 1000, 600]
    assert node.settle(1000, 500) == KUBELETS
    assert node.quotas(OTHER) == KUBELETS
    assert node.store.load() == ()


def test_nothing_is_written_where_nothing_changes(node: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(group: str, knob: Knob, value: str | int) -> bool:
        raise AssertionError(f"{group} {knob}={value} is written")

    node.settle(1200, 500)
    node.settle(1200, 500)
    monkeypatch.setattr(node.plain.cgroups, "write", write)
    assert node.settle(1200, 500) == [1750, 1200, 500]
    node.now_s += VERIFY_S
    assert node.settle(1200, 500) == [1750, 1200, 500]


def test_where_none_is_raised_nothing_is_read(node: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(group: str, knob: Knob) -> str | None:
        raise AssertionError(f"{group} {knob} is read")

    monkeypatch.setattr(node.plain.cgroups, "raw", read)
    assert node.moved.settle([WEB, OTHER], {}, 1.0, VERIFY_S) == []


def test_the_next_life_gives_back_what_kubelet_gave(node: Tenants) -> None:
    node.settle(1440, 600)
    node.moved = node.another()
    assert node.settle(1000, 500) == KUBELETS
    assert node.store.load() == ()


def test_an_uninstall_gives_back_what_kubelet_gave(node: Tenants) -> None:
    node.settle(1440, 600)
    after = node.another_life()
    assert after.resume() is True
    assert after.restore([WEB, OTHER]) == ()
    assert node.quotas() == KUBELETS
    assert node.another_life().resume() is False


def test_killed_at_any_write_the_next_life_gives_back_what_kubelet_gave(
    node: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def step(*given: object) -> object:
            if len(steps) == alive:
                raise Died
            steps.append(real.__name__)
            return real(*given)

        return step

    for alive in range(100):
        steps.clear()
        node.moved = node.another()
        with monkeypatch.context() as patched:
            patched.setattr(node.plain.cgroups, "write", dying(node.plain.cgroups.write))
            patched.setattr(node.store, "save", dying(node.store.save))
            try:
                for course in ((1200, 600), (1440, 500), (1000, 500)):
                    node.settle(*course)
                break
            except Died:
                pass
        node.moved = node.another()
        assert node.settle(1000, 500) == KUBELETS, (alive, steps)
    assert len(steps) > 10


def test_without_a_record_no_quota_rises_above_its_bounds(node: Tenants) -> None:
    node.settle(3000, 500)
    node.store.save(())
    node.moved = node.another()
    assert node.settle(1200, 500) == [1750, 1200, 500]
    assert node.settle(1000, 500) == KUBELETS


def test_a_container_that_ended_takes_its_part_of_the_pod_along(node: Tenants) -> None:
    node.settle(1440, 600)
    anew = WEB.model_copy(update={"containers": (C.model_copy(update={"id": f"containerd://{'f' * 24}"}), D)})
    group = node.of(anew)[1]
    node.plain.add(group)
    node.rewrite(group, 1000)
    node.moved.settle([anew], {node.of(WEB)[2]: 600}, 50.0, VERIFY_S)
    assert node.quotas(anew) == [1650, 1000, 600]


def test_what_kubelet_writes_meanwhile_is_what_it_gave(node: Tenants) -> None:
    """Resized in place: the pod's limits follow."""
    node.settle(1200, 500)
    for group, millis in zip(node.of(WEB)[:2], (2550, 2000), strict=True):
        node.rewrite(group, millis)
    larger = WEB.model_copy(update={"containers": (C.model_copy(update={"cpu_limit_millis": 2000}), D)})
    node.moved.settle([larger], {node.of(WEB)[1]: 2400}, 50.0, VERIFY_S)
    assert node.quotas() == [2950, 2400, 500]
    node.moved.settle([larger], {}, 51.0, VERIFY_S)
    assert node.quotas() == [2550, 2000, 500]


def test_what_somebody_else_lowered_is_raised_again_after_the_period(node: Tenants) -> None:
    node.settle(1200, 500)
    node.settle(1200, 500)
    node.rewrite(node.of(WEB)[1], 1000)
    assert node.settle(1200, 500) == [1750, 1000, 500], "not looked at before the period is over"
    node.now_s += VERIFY_S
    assert node.settle(1200, 500) == [1750, 1200, 500]


@pytest.mark.parametrize("group", [0, 1])
def test_a_group_without_a_quota_gets_none(node: Tenants, group: int) -> None:
    node.rewrite(node.of(WEB)[group], UNLIMITED)
    wanted = [UNLIMITED, 1200, 500] if group == 0 else [KUBELETS[0], UNLIMITED, 500]
    assert node.settle(1200, 500) == wanted


@pytest.mark.parametrize(
    "changed", [{"qos": "reclaimed_cores"}, {"qos": "dedicated_cores"}, {"kube_qos": "BestEffort"}, {"as_one": True}]
)
def test_whose_quota_is_not_kubelets_is_left_alone(node: Tenants, changed: dict[str, object]) -> None:
    pod = WEB.model_copy(update=changed)
    assert node.settle(1200, 500, pods=(pod,)) == KUBELETS


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_group_with_a_period_of_its_own_is_left_alone_and_named(node: Tenants, which: int) -> None:
    group = node.of(WEB)[which]
    node.other_period(group)
    before = node.quotas()[which]
    if which == 0:  # no container rises without its pod
        assert node.settle(1200, 600)[1:] == KUBELETS[1:]
    else:
        assert node.settle(1200, 600)[3 - which] == {1: 1200, 2: 600}[3 - which]
    assert node.quotas()[which] == before
    assert list(node.moved.unheeded) == [f"the quota of {group} does not move: its period is 50000 us; want 100000"]
    node.settle(1000, 500)
    node.other_period(group, "100000")
    node.moved.end((WEB, OTHER))
    assert node.store.load() == ()
    assert not node.moved.unheeded


@pytest.mark.parametrize("which", [0, 1, 2])
def test_raised_quotas_come_back_beside_a_group_that_got_another_period(node: Tenants, which: int) -> None:
    group = node.of(WEB)[which]
    node.settle(1200, 600)
    node.other_period(group)
    left = node.quotas()[which]
    for _ in range(2):
        now = node.settle(1000, 500)
        assert [millis for at, millis in enumerate(now) if at != which] == [
            millis for at, millis in enumerate(KUBELETS) if at != which
        ]
        assert now[which] == left
        assert [one.group for one in node.store.load()] == [group], "what is not given back stays on record"
    node.other_period(group, "100000")
    node.moved.end((WEB, OTHER))
    assert node.quotas() == KUBELETS
    assert node.store.load() == ()


def test_raised_quotas_come_back_beside_a_group_whose_file_cannot_be_read(node: Tenants) -> None:
    node.settle(1200, 600)
    path = node.plain.cgroups.file(node.of(WEB)[2], Knob.CPU_QUOTA)
    assert path is not None
    there = path.read_text()
    path.unlink()
    assert node.settle(1000, 500)[:2] == KUBELETS[:2]
    assert [one.group for one in node.store.load()] == [node.of(WEB)[2]]
    path.write_text(there)
    node.moved.end((WEB, OTHER))
    assert node.quotas() == KUBELETS
    assert node.store.load() == ()


def test_a_kernel_without_quotas_is_named(node: Tenants) -> None:
    for group in node.of(WEB):
        path = node.plain.cgroups.file(group, Knob.CPU_QUOTA)
        assert path is not None
        path.unlink()
    node.settle(1200, 500)
    assert node.moved.lacking == ({1: "cpu.cfs_quota_us", 2: "cpu.max"}[node.plain.version],)


def test_no_quota_moves_that_could_not_be_put_on_record(node: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(node.store, "save", save)
        problems = node.moved.settle([WEB], {node.of(WEB)[1]: 1200}, 1.0, VERIFY_S)
    assert node.quotas() == KUBELETS
    assert "make room in the state folder" in problems[0].why
    assert node.settle(1200, 500) == [1750, 1200, 500]


def test_what_the_kernel_refuses_is_named_and_stays_on_record(node: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    node.settle(1200, 500)
    real = Cgroups.write

    def write(self: Cgroups, group: str, knob: Knob, value: str | int) -> bool:
        if group == node.of(WEB)[0]:
            raise OSError(22, "Invalid argument")
        return real(self, group, knob, value)

    with monkeypatch.context() as patched:
        patched.setattr(Cgroups, "write", write)
        assert "Invalid argument" in node.moved.settle([WEB], {}, 5.0, VERIFY_S)[0].why
    assert {one.value for one in node.store.load()} == {KUBELETS[0], KUBELETS[1]}
    assert node.settle(1000, 500) == KUBELETS


def test_v1_is_never_asked_for_more_than_a_pod_has(node: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    top, *containers = node.of(WEB)
    real, seen = Cgroups.write, []

    def write(self: Cgroups, group: str, knob: Knob, value: str | int) -> bool:
        done = real(self, group, knob, value)
        seen.append(Write(group, knob, value))
        now = node.quotas()
        assert now[0] >= max(now[1:])
        assert now[0] >= sum(now[1:]) or group != top
        return done

    monkeypatch.setattr(Cgroups, "write", write)
    for course in ((3000, 500), (1000, 1500), (1000, 500)):
        node.settle(*course)
    assert {write.group for write in seen} == {top, *containers}


def test_a_burst_is_saved_up_within_the_limit_while_the_quota_is_higher(node: Tenants) -> None:
    node.apply(WEB)
    rules = GroupSettings(2000, isolation=NodeRules(burst_percent=100))
    raised = replace(rules, raised_quotas={node.of(WEB)[1]: 1200})
    for now_s, settings, quota in ((1.0, raised, 1200), (2.0, rules, 1000)):
        assert node.groups.apply(node.what, [WEB], settings, now_s).problems == ()
        assert node.quotas()[1] == quota
        assert node.plain.cgroups.read(node.of(WEB)[1], Knob.CPU_BURST) == 1000


def test_quotas_that_stay_raised_are_a_condition_while_they_do(node: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    node.settle(1200, 600)
    conditions = Conditions()
    after = node.another_life()
    after.resume()
    restorer = GroupRestorer(after, None, conditions)

    def write(self: Cgroups, group: str, knob: Knob, value: str | int) -> bool:
        raise OSError(22, "Invalid argument")

    with monkeypatch.context() as patched:
        patched.setattr(Cgroups, "write", write)
        restorer.end_quotas([WEB, OTHER])
    (one,) = conditions.all()
    assert one.type == "QuotasRaised"
    assert "Invalid argument" in one.message
    restorer.end_quotas([WEB, OTHER])
    assert conditions.all() == ()
    assert node.quotas() == KUBELETS
