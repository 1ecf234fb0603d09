"""Reclaimed pods held to their own limits in kubelet's groups: both drivers, both versions, and nobody else touched."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_kubelet_groups import Kubelet

from services.qrm.adapters.kernel.pod_limits import PodLimits
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.memory.limits import MARGIN_BYTES
from services.qrm.former_values import FormerValues
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Version, from_file, to_file
from shared.core.cgroups.kubelet_layout import CONFIG_HASH, CONFIG_MIRROR, Driver
from shared.core.pods.limits import limits_of, unsaid_memory_bytes

MIB, GIB = 1 << 20, 1 << 30
DRIVERS: tuple[Driver, ...] = ("cgroupfs", "systemd")
VERSIONS: tuple[Version, ...] = (1, 2)
KINDS = [(driver, version) for driver in DRIVERS for version in VERSIONS]
MEMORY = {1: "memory.limit_in_bytes", 2: "memory.max"}
USE = {1: "memory.usage_in_bytes", 2: "memory.current"}
SHARES = {1: "cpu.shares", 2: "cpu.weight"}
VERIFY_S = 10.0
UNSAID = unsaid_memory_bytes(0)
"""These machines do not say how much memory they have."""


def container(name: str, millis: int = 500, memory: int = GIB) -> Container:
    mark = (name.encode().hex() * 12)[:24]
    return Container(name=name, cpu_request_millis=millis, cpu_limit_millis=millis, memory_request_bytes=memory,
                     memory_limit_bytes=memory, id=f"containerd://{mark}")  # fmt: skip


def batch(*containers: Container, qos: str = "reclaimed_cores", **fields: object) -> Pod:
    return Pod(uid="b", name="b", qos=qos, kube_qos="BestEffort", containers=containers, **fields)


PAIR = batch(container("a", 500, GIB), container("b", 2000, 2 * GIB))
TENANT = Pod(uid="e", name="t", kube_qos="BestEffort", containers=(container("t"),))


class Limited(Kubelet):
    """A node with kubelet's tree, and what is in force there."""

    def start(self, *pods: Pod) -> None:
        """As kubelet does: a best-effort pod gets the lowest shares and no limit."""
        for pod in pods:
            for group in limits_of(pod, self.layout, UNSAID):
                if not self.plain.cgroups.exists(group):
                    self.plain.add(group)
                    self.kubelet_writes(group)

    def kubelet_writes(self, group: str) -> None:
        self.plain.cgroups.write(group, Knob.CPU_SHARES, 2)
        self.plain.cgroups.write(group, Knob.MEMORY_MAX, UNLIMITED)

    def uses(self, group: str, used: int) -> None:
        self.plain.set(group, USE[self.plain.version], str(used), "memory")

    def limit(self, group: str) -> int:
        text = self.plain.get(group, MEMORY[self.plain.version], "memory")
        return int(from_file(Knob.MEMORY_MAX, text, self.plain.version))

    def weight(self, group: str) -> str:
        return self.plain.get(group, SHARES[self.plain.version], "cpu")

    def shares(self, millis: int) -> str:
        return to_file(Knob.CPU_SHARES, max(2, millis * 1024 // 1000), self.plain.version)

    def files(self, pod: Pod) -> dict[str, str]:
        """All that a pod's groups say of CPU time and memory."""
        return {
            str(path): path.read_text().strip()
            for controller in ("cpu", "memory")
            for path in self.plain.folder(self.layout.pod_group(pod), controller).rglob("*")
            if path.is_file() and not path.name.startswith("cpuset")
        }

    def alone(self) -> PodLimits:
        former = FormerValues(self.store)
        former.resume()
        return PodLimits(CgroupWriter(self.plain.cgroups, self.layout.top), self.layout, UNSAID, former)


@pytest.fixture(params=KINDS, ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Limited:
    return Limited(tmp_path, *request.param)


def groups_of(node: Limited, pod: Pod = PAIR) -> list[str]:
    return list(limits_of(pod, node.layout, UNSAID))


def test_each_container_has_its_limit_and_its_weight_and_the_pod_the_sum_behind_all_others(node: Limited) -> None:
    node.start(PAIR, TENANT)
    top, first, second = groups_of(node)
    assert not node.apply(PAIR, TENANT).problems
    assert [node.limit(group) for group in (top, first, second)] == [3 * GIB, GIB, 2 * GIB]
    assert [node.weight(group) for group in (first, second)] == [node.shares(500), node.shares(2000)]
    assert (node.plain.get(top, "cpu.idle", "cpu"), node.weight(top)) == ("1", node.shares(0))
    assert [node.plain.cgroups.read(group, Knob.CPU_QUOTA) for group in (top, first, second)] == [UNLIMITED] * 3


def test_a_tenants_groups_are_left_as_kubelet_made_them(node: Limited) -> None:
    node.start(PAIR, TENANT)
    before = node.files(TENANT)
    node.apply(PAIR, TENANT)
    node.apply(PAIR, TENANT)
    assert node.files(TENANT) == before


def test_a_container_that_says_nothing_is_bound_and_so_is_its_pod(node: Limited) -> None:
    pod = batch(container("a"), container("b", memory=0))
    node.start(pod)
    node.apply(pod)
    assert [node.limit(group) for group in groups_of(node, pod)] == [GIB + UNSAID, GIB, UNSAID]


def test_what_kubelet_writes_anew_is_written_again(node: Limited) -> None:
    node.start(PAIR)
    node.apply(PAIR)
    for group in groups_of(node)[1:]:
        node.kubelet_writes(group)
    node.apply(PAIR)
    assert [node.limit(group) for group in groups_of(node)] == [3 * GIB, GIB, 2 * GIB]
    assert node.weight(groups_of(node)[2]) == node.shares(2000)


def test_a_container_that_comes_late_is_limited_when_it_comes(node: Limited) -> None:
    early = batch(PAIR.containers[0].model_copy(update={"id": ""}), PAIR.containers[1])
    node.plain.add(node.layout.pod_group(PAIR))
    assert not node.apply(early).problems
    top, first, second = groups_of(node)
    assert node.limit(top) == 3 * GIB, "before a container runs"
    node.start(PAIR)
    node.apply(PAIR)
    assert [node.limit(group) for group in (top, first, second)] == [3 * GIB, GIB, 2 * GIB]


def test_an_init_container_is_not_held_to_the_containers_limits(node: Limited) -> None:
    pod = batch(container("a"), init_containers=(container("i", 500, 4 * GIB),))
    node.start(pod)
    node.apply(pod)
    assert sorted(node.limit(group) for group in groups_of(node, pod)) == [GIB, 4 * GIB, 4 * GIB]


def test_a_static_pod_is_found_by_the_hash_of_its_file(node: Limited) -> None:
    pod = batch(container("a"), annotations={CONFIG_MIRROR: "x", CONFIG_HASH: "5" * 32}, owner="Node/n1")
    node.start(pod)
    node.apply(pod)
    assert [node.limit(group) for group in groups_of(node, pod)] == [GIB, GIB]
    assert "5" * 32 in groups_of(node, pod)[0]


def test_who_uses_more_already_is_not_killed_for_it_and_gets_his_limit_once_he_has_given_back(node: Limited) -> None:
    node.start(PAIR)
    limits, group = node.alone(), groups_of(node)[1]
    for now_s, used in enumerate((3 * GIB, 3 * GIB + MIB, 3 * GIB + MARGIN_BYTES)):
        node.uses(group, used)
        assert limits.settle([PAIR], float(now_s), VERIFY_S) == []
        assert node.limit(group) == 3 * GIB + MARGIN_BYTES, "never up again"
    node.uses(group, MIB)
    assert limits.settle([PAIR], 3.0, VERIFY_S) == []
    assert node.limit(group) == GIB
    if node.plain.version == 2:
        assert node.plain.get(group, "memory.high", "memory") == "max"


def test_a_lower_limit_of_somebody_else_stays(node: Limited) -> None:
    node.start(PAIR)
    group = groups_of(node)[1]
    node.plain.cgroups.write(group, Knob.MEMORY_MAX, MIB)
    node.apply(PAIR)
    assert node.limit(group) == MIB


def test_a_limit_stays_though_somebody_calls_the_pod_a_tenant(node: Limited) -> None:
    node.start(PAIR)
    node.apply(PAIR)
    held = [node.limit(group) for group in groups_of(node)]
    turned = batch(*(container(one.name, 0, 0) for one in PAIR.containers), qos="shared_cores")
    limits = node.alone()
    for now_s, pod in enumerate((PAIR, turned, turned)):
        assert limits.settle([pod], float(now_s), VERIFY_S) == []
    assert [node.limit(group) for group in groups_of(node)] == held == [3 * GIB, GIB, 2 * GIB]
    assert node.plain.get(groups_of(node)[0], "cpu.idle", "cpu") == "1"


def test_what_is_in_force_is_not_read_again_before_its_time(node: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a group is gone: an init container that has ended keeps its id."""
    node.start(PAIR)
    pod = PAIR.model_copy(update={"init_containers": (container("i"),)})
    limits = node.alone()
    for now_s in (0.0, 1.0):
        assert limits.settle([pod], now_s, VERIFY_S) == []
    reads: list[str] = []
    raw = node.plain.cgroups.raw

    def counted(group: str, knob: Knob) -> str | None:
        reads.append(group)
        return raw(group, knob)

    monkeypatch.setattr(limits.writer.cgroups, "raw", counted)
    limits.settle([pod], 5.0, VERIFY_S)
    assert not reads
    limits.settle([pod], 1.0 + VERIFY_S, VERIFY_S)
    assert reads


def test_a_container_that_starts_anew_is_limited_at_once(node: Limited) -> None:
    node.start(PAIR)
    limits = node.alone()
    for now_s in (0.0, 1.0):
        assert limits.settle([PAIR], now_s, VERIFY_S) == []
    again = batch(PAIR.containers[0], PAIR.containers[1].model_copy(update={"id": f"containerd://{'c' * 24}"}))
    node.start(again)
    limits.settle([again], 2.0, VERIFY_S)
    assert node.limit(groups_of(node, again)[2]) == 2 * GIB


def test_a_group_that_comes_after_its_id_is_looked_for_until_it_is_there(node: Limited) -> None:
    node.start(batch(PAIR.containers[0]))
    limits = node.alone()
    for now_s in (0.0, 1.0, 2.0):
        assert limits.settle([PAIR], now_s, VERIFY_S) == []
    node.start(PAIR)
    limits.settle([PAIR], 3.0, VERIFY_S)
    assert node.limit(groups_of(node)[2]) == 2 * GIB


def test_without_a_memory_controller_it_is_looked_for_again_each_time(node: Limited) -> None:
    node.start(PAIR)
    limits, group = node.alone(), groups_of(node)[1]
    path = node.plain.folder(group, "memory") / MEMORY[node.plain.version]
    text = path.read_text()
    path.unlink()
    for now_s in (0.0, 1.0, 2.0):
        assert limits.settle([PAIR], now_s, VERIFY_S) == []
    path.write_text(text)
    limits.settle([PAIR], 3.0, VERIFY_S)
    assert node.limit(group) == GIB


AMOUNTS = st.lists(st.tuples(st.integers(0, 8000), st.sampled_from((0, MIB, GIB))), min_size=1, max_size=3)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(KINDS), amounts=AMOUNTS, used=st.lists(st.integers(0, 2 * GIB), min_size=4, max_size=4))
def test_after_two_passes_everybody_within_his_limit_is_held_to_it(
    tmp_path_factory: pytest.TempPathFactory,
    kind: tuple[Driver, Version],
    amounts: list[tuple[int, int]],
    used: list[int],
) -> None:
    node = Limited(tmp_path_factory.mktemp("host"), *kind)
    pod = batch(*(container(f"c{n}", *amount) for n, amount in enumerate(amounts)))
    node.start(pod)
    limits = limits_of(pod, node.layout, UNSAID)
    for group, use in zip(limits, used, strict=False):
        node.uses(group, use)
    for _ in range(2):
        assert not node.apply(pod).problems
    for (group, own), use in zip(limits.items(), used, strict=False):
        there = node.limit(group)
        assert own.memory_bytes is not None
        if use <= own.memory_bytes:
            assert there == own.memory_bytes
        else:
            assert there >= use
