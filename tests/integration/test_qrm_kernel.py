"""qrm's plans and writer on the real v1 kernel of this host, in a cgroup of their own."""

import errno
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cpuset_model import MEMS, TOP, CpusetModel, Refusal, as_tree, check_safe, trees, wishes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slow_machines import patience_s

from services.qrm.adapters.kernel.pod_limits import PodLimits
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.memory.limits import MemoryUse, limit_steps
from services.qrm.core.writes.classes import wanted_groups
from services.qrm.core.writes.kubelet_defaults import restore_group
from services.qrm.core.writes.plan import Sets, WantedSets, plan_writes
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import MIN_SHARES, UNLIMITED, Knob, Write
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.limits import GroupLimits, unsaid_memory_bytes

HOST = Path("/")
V1 = Path("/sys/fs/cgroup/cpuset")


def _cpus() -> int:
    """CPUs 0 to n-1 that the root cpuset has, four at most; 0 where there is nothing to test on."""
    if os.geteuid() or not os.access(V1 / "cgroup.procs", os.W_OK):
        return 0
    granted = CpuSet.parse((V1 / "cpuset.cpus").read_text())
    return next((n for n in (4, 3, 2) if CpuSet.of(range(n)) <= granted), 0)


CPUS = _cpus()
pytestmark = [pytest.mark.root, pytest.mark.skipif(not CPUS, reason="needs root and a writable v1 cpuset of 2 CPUs")]
_ONE_FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def cgroups() -> Cgroups:
    return Cgroups(HOST)


@pytest.fixture
def top(cgroups: Cgroups) -> Iterator[str]:
    name = f"sublet-test-{uuid.uuid4().hex[:8]}"
    try:
        yield name
    finally:
        assert cgroups.remove(name)


class Kernel:
    """The model's tree as real cgroups, with the model's names."""

    def __init__(self, cgroups: Cgroups, top: str, groups: dict[str, CpuSet]) -> None:
        self._cgroups, self._top = cgroups, top
        cgroups.remove(top)
        names = sorted(groups, key=lambda group: group.count("/"))
        for name in names:
            cgroups.make(self.real(name))
        for name in reversed(names):
            cgroups.write(self.real(name), Knob.CPUS, str(groups[name]))

    def real(self, group: str) -> str:
        return self._top + group.removeprefix(TOP)

    def groups(self) -> dict[str, CpuSet]:
        return {
            TOP + name.removeprefix(self._top): CpuSet.parse(str(self._cgroups.read(name, Knob.CPUS)))
            for name in self._cgroups.tree(self._top)
        }

    def run(self, write: Write) -> str:
        """The name of the errno, empty where the write was taken."""
        try:
            self._cgroups.write(self.real(write.group), write.knob, write.value)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        return ""


@settings(max_examples=60, deadline=None, suppress_health_check=_ONE_FIXTURE)
@given(groups=trees(CPUS or 2), wanted=wishes(CPUS or 2))
def test_the_kernel_takes_every_write_of_every_plan_and_every_prefix_is_safe(
    cgroups: Cgroups, top: str, groups: dict[str, CpuSet], wanted: dict[str, WantedSets]
) -> None:
    kernel, model = Kernel(cgroups, top, groups), CpusetModel(groups, CpuSet.of(range(CPUS)))
    for write in plan_writes(as_tree(groups), wanted):
        assert kernel.run(write) == ""
        model.run(write)
        assert kernel.groups() == model.groups
        check_safe(kernel.groups())


@settings(max_examples=60, deadline=None, suppress_health_check=_ONE_FIXTURE)
@given(groups=trees(CPUS or 2), data=st.data())
def test_the_model_refuses_exactly_what_the_kernel_refuses(
    cgroups: Cgroups, top: str, groups: dict[str, CpuSet], data: st.DataObject
) -> None:
    kernel, model = Kernel(cgroups, top, groups), CpusetModel(groups, CpuSet.of(range(CPUS)))
    some_cpus = st.sets(st.integers(0, CPUS - 1), min_size=1).map(CpuSet.of)
    for _ in range(8):
        write = Write(data.draw(st.sampled_from(sorted(groups))), Knob.CPUS, str(data.draw(some_cpus)))
        expected = ""
        try:
            model.run(write)
        except Refusal as refusal:
            expected = refusal.args[0]
        assert kernel.run(write) == expected
        assert kernel.groups() == model.groups


def test_the_kernel_refuses_to_empty_a_set_with_a_task_and_we_never_try(cgroups: Cgroups, top: str) -> None:
    cgroups.make(top)
    process = subprocess.Popen(["sleep", "60"])
    try:
        cgroups.attach(top, process.pid)
        with pytest.raises(OSError, match="No space left") as refused:
            (V1 / top / "cpuset.cpus").write_text("\n")
        assert refused.value.errno == errno.ENOSPC
        with pytest.raises(ValueError, match="an empty cpuset"):
            cgroups.write(top, Knob.CPUS, "")
    finally:
        process.kill()
        process.wait()


def _wanted(top: str, reclaimed: str, shared: str) -> dict[str, WantedSets]:
    whole = Sets(CpuSet.of(range(CPUS)), MEMS)
    return {
        top: WantedSets(whole),
        f"{top}/reclaimed_cores": WantedSets(Sets(CpuSet.parse(reclaimed), MEMS), 0),
        f"{top}/shared_cores": WantedSets(Sets(CpuSet.parse(shared), MEMS), 1),
    }


def test_a_pass_makes_writes_and_reads_back_what_the_kernel_grants(cgroups: Cgroups, top: str) -> None:
    counted: list[tuple[str, str]] = []
    writer = CgroupWriter(cgroups, top, lambda file, result: counted.append((file, result)))
    wanted = _wanted(top, "0", "1")
    writer.make(wanted)
    cgroups.make(f"{top}/reclaimed_cores/poda1/main")
    outcome = writer.apply(wanted)
    assert (outcome.problems, str(outcome.granted[f"{top}/reclaimed_cores/poda1/main"])) == ((), "0")
    assert counted == [("cpuset.cpus", "ok")] * 4
    assert writer.apply(wanted).writes == 0


def test_a_child_that_appears_within_a_pass_is_planned_for_again(cgroups: Cgroups, top: str) -> None:
    writer = CgroupWriter(cgroups, top)
    wanted = _wanted(top, "0", "1")
    writer.make(wanted)
    before = writer.read_tree(wanted.keys())
    cgroups.make(f"{top}/reclaimed_cores/poda1/main")  # after the tree was read: narrowing the class is now EBUSY
    outcome = writer.apply(wanted, tree_now=before)
    assert outcome.problems == ()
    assert str(outcome.granted[f"{top}/reclaimed_cores/poda1/main"]) == "0"


def test_a_group_that_vanishes_within_a_pass_is_no_problem(cgroups: Cgroups, top: str) -> None:
    writer = CgroupWriter(cgroups, top)
    wanted = _wanted(top, "0", "1")
    writer.make(wanted)
    cgroups.make(f"{top}/reclaimed_cores/poda1/main")
    before = writer.read_tree(wanted.keys())
    cgroups.remove(f"{top}/reclaimed_cores/poda1")
    outcome = writer.apply(wanted, tree_now=before)
    assert outcome.problems == ()
    assert f"{top}/reclaimed_cores/poda1" not in outcome.tree


def test_reclaimed_work_gets_the_lowest_weight_and_shares_are_not_written_beside_it(cgroups: Cgroups, top: str) -> None:
    writer = CgroupWriter(cgroups, top)
    group = f"{top}/reclaimed_cores"
    cgroups.make(group)
    if cgroups.raw(group, Knob.CPU_IDLE) is None:
        pytest.skip("this kernel has no cpu.idle")
    assert writer.settle([Write(group, Knob.CPU_IDLE, 1)]) == []
    assert cgroups.read(group, Knob.CPU_IDLE) == 1
    problems = writer.settle([Write(group, Knob.CPU_SHARES, 2)])
    assert "Invalid argument" in problems[0].why


def test_a_memory_limit_goes_down_to_what_is_in_use_and_never_below(cgroups: Cgroups, top: str) -> None:
    """A process that holds 64 MiB keeps it; the limit ends above its use, and nothing is killed."""
    writer, group = CgroupWriter(cgroups, top), f"{top}/reclaimed_cores"
    cgroups.make(group)
    hold = "import os,sys; held = bytearray(64 << 20); print('held', flush=True); sys.stdin.read()"
    command = ["sh", "-c", 'read go; exec python3 -c "$0"', hold]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        cgroups.attach(group, process.pid)
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "held\n"
        for _ in range(5):
            usage = int(cgroups.text(group, "memory.usage_in_bytes", "memory") or 0)
            steps = limit_steps(16 << 20, MemoryUse(usage), cgroups.version)
            assert writer.settle([Write(group, knob, value) for knob, value in steps]) == []
        limit = cgroups.read(group, Knob.MEMORY_MAX)
        assert isinstance(limit, int)
        assert limit >= int(cgroups.text(group, "memory.usage_in_bytes", "memory") or 0)
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(patience_s(10)) == 0


def test_kubelets_groups_are_written_from_the_pod_down_and_left_alone_above(cgroups: Cgroups, top: str) -> None:
    layout = KubeletLayout("cgroupfs", top)
    pods = [
        Pod(uid=uid * 8, name=uid, qos=qos, kube_qos=kube, containers=(Container(name="c", id=f"docker://{uid * 64}"),))
        for uid, qos, kube in (("a", "shared_cores", "Burstable"), ("b", "reclaimed_cores", "BestEffort"))
    ]
    containers = [layout.container_group(pod, pod.containers[0]) or "" for pod in pods]
    for group in containers:
        cgroups.make(group)
    wanted = wanted_groups(
        {"share": CpuSet.of([1]), "reclaim": CpuSet.of([0])}, Sets(CpuSet.of(range(CPUS)), MEMS), layout, pods
    )
    whole = cgroups.read(layout.top, Knob.CPUS)
    outcome = CgroupWriter(cgroups, layout.top).apply(wanted)
    assert outcome.problems == ()
    assert [str(outcome.granted[group]) for group in containers] == ["1", "0"]
    assert [cgroups.read(group, Knob.CPUS) for group in (layout.top, *layout.homes)] == [whole] * 4


MIB = 1 << 20
LIMIT_BYTES = 64 * MIB
HOLD = """
import sys
held = b""
for line in sys.stdin:
    held = b""
    held = bytearray(int(line) << 20)
    print("held", flush=True)
"""


class Holder:
    """A process in a cgroup that holds as many MiB as it is told to."""

    def __init__(self, cgroups: Cgroups, group: str) -> None:
        self.process = subprocess.Popen(
            ["sh", "-c", 'read go; exec python3 -c "$0"', HOLD],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        cgroups.attach(group, self.process.pid)
        self._say("go")

    def _say(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def hold(self, mib: int) -> bool:
        """Whether the kernel let it have them."""
        assert self.process.stdout
        self._say(str(mib))
        return self.process.stdout.readline() == "held\n"


@contextmanager
def holding(cgroups: Cgroups, group: str) -> Iterator[Holder]:
    holder = Holder(cgroups, group)
    try:
        yield holder
    finally:
        holder.process.kill()
        holder.process.communicate()


@pytest.fixture
def limited(cgroups: Cgroups, top: str) -> tuple[PodLimits, Pod, list[str]]:
    """A reclaimed pod of two containers as kubelet makes its groups; its limits are not written yet."""
    layout = KubeletLayout("cgroupfs", top)
    containers = tuple(
        Container(name=name, id=f"containerd://{name * 64}", cpu_request_millis=millis, memory_limit_bytes=LIMIT_BYTES)
        for name, millis in (("a", 500), ("b", 1500))
    )
    pod = Pod(uid="b" * 8, name="b", qos="reclaimed_cores", kube_qos="BestEffort", containers=containers)
    groups = [layout.pod_group(pod), *(layout.container_group(pod, one) or "" for one in containers)]
    for group in groups:
        cgroups.make(group)
        cgroups.write(group, Knob.CPU_SHARES, 2)
    return PodLimits(CgroupWriter(cgroups, layout.top), layout, unsaid_memory_bytes(0)), pod, groups


def _killed(cgroups: Cgroups, group: str) -> int:
    text = cgroups.text(group, "memory.oom_control", "memory") or ""
    return int(dict(line.split() for line in text.splitlines())["oom_kill"])


def test_who_takes_more_than_his_limit_is_ended_by_the_kernel_in_his_own_container(
    cgroups: Cgroups, limited: tuple[PodLimits, Pod, list[str]]
) -> None:
    limits, pod, groups = limited
    assert limits.settle([pod], 0.0, 10.0) == []
    assert [cgroups.read(group, Knob.MEMORY_MAX) for group in groups] == [2 * LIMIT_BYTES, LIMIT_BYTES, LIMIT_BYTES]
    assert [cgroups.read(group, Knob.CPU_SHARES) for group in groups] == [2, 512, 1536]
    with holding(cgroups, groups[1]) as greedy, holding(cgroups, groups[2]) as modest:
        assert greedy.hold(32)
        assert modest.hold(32)
        assert not greedy.hold(200)
        assert greedy.process.wait(patience_s(10)) == -signal.SIGKILL
        assert modest.hold(33)
    assert [_killed(cgroups, group) for group in groups[1:]] == [1, 0]


def test_who_has_more_than_his_limit_already_is_not_killed_for_it(
    cgroups: Cgroups, limited: tuple[PodLimits, Pod, list[str]]
) -> None:
    limits, pod, groups = limited
    with holding(cgroups, groups[1]) as early:
        assert early.hold(200)
        for now_s in range(4):
            assert limits.settle([pod], float(now_s), 10.0) == []
        limit = cgroups.read(groups[1], Knob.MEMORY_MAX)
        assert isinstance(limit, int)
        assert 200 * MIB < limit < 300 * MIB
        assert early.hold(1)
        assert limits.settle([pod], 4.0, 10.0) == []
        assert cgroups.read(groups[1], Knob.MEMORY_MAX) == LIMIT_BYTES
        assert early.hold(2)
    assert [_killed(cgroups, group) for group in groups] == [0, 0, 0]


def test_who_says_nothing_of_memory_is_bound_by_the_kernel_too(
    cgroups: Cgroups, limited: tuple[PodLimits, Pod, list[str]]
) -> None:
    limits, pod, groups = limited
    bare = pod.containers[1].model_copy(update={"memory_limit_bytes": 0})
    assert limits.settle([pod.model_copy(update={"containers": (pod.containers[0], bare)})], 0.0, 10.0) == []
    unsaid = unsaid_memory_bytes(0)
    assert [cgroups.read(group, Knob.MEMORY_MAX) for group in groups] == [LIMIT_BYTES + unsaid, LIMIT_BYTES, unsaid]


def test_a_pod_that_is_left_is_let_go_in_an_order_that_the_kernel_takes(
    cgroups: Cgroups, limited: tuple[PodLimits, Pod, list[str]]
) -> None:
    limits, pod, groups = limited
    limits.settle([pod], 0.0, 10.0)
    if cgroups.raw(groups[0], Knob.CPU_IDLE) is not None:
        cgroups.write(groups[0], Knob.CPU_IDLE, 1)
    for group in groups:
        hard = cgroups.read(group, Knob.MEMORY_MAX)
        assert isinstance(hard, int)
        assert limits.writer.settle(list(restore_group(group, GroupLimits(MIN_SHARES, None), hard))) == []
    assert [cgroups.read(group, Knob.MEMORY_MAX) for group in groups] == [UNLIMITED] * 3
    assert [cgroups.read(group, Knob.CPU_SHARES) for group in groups] == [2] * 3
    assert cgroups.read(groups[0], Knob.CPU_IDLE) in (None, 0)
