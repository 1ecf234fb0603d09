"""A small model of the v1 cpuset rules, and random trees with a wanted change. The real kernel is held against it."""

from collections.abc import Mapping

from hypothesis import strategies as st

from services.qrm.core.writes.plan import Sets, WantedSets
from shared.core.cgroups.knobs import Knob, Write
from shared.core.cpus.cpuset import CpuSet

TOP = "t"
CLASSES = {f"{TOP}/reclaimed_cores": 0, f"{TOP}/shared_cores": 1, f"{TOP}/system_cores": 1}
MEMS = CpuSet.of([0])


class Refusal(Exception):
    """What the kernel answers; `args[0]` is the name of the errno."""


class CpusetModel:
    """cpuset.cpus of a tree of v1 cgroups (docs/facts/linux-cgroups.md#cpu-sets)."""

    def __init__(self, groups: Mapping[str, CpuSet], online: CpuSet) -> None:
        self.groups, self.online = dict(groups), online

    def write(self, group: str, cpus: CpuSet) -> None:
        if group not in self.groups:
            raise Refusal("ENOENT")
        if not cpus:
            raise Refusal("ENOSPC")  # taken as if every group held a task
        if any(not own <= cpus for child, own in self.groups.items() if parent(child) == group):
            raise Refusal("EBUSY")
        if not cpus <= self.groups.get(parent(group), self.online):
            raise Refusal("EACCES")
        self.groups[group] = cpus

    def run(self, write: Write) -> None:
        assert write.knob is Knob.CPUS
        self.write(write.group, CpuSet.parse(str(write.value)))


def parent(group: str) -> str:
    return group.rpartition("/")[0]


def check_safe(groups: Mapping[str, CpuSet]) -> None:
    """The invariants of every moment: no set is empty, every parent contains its children."""
    for group, cpus in groups.items():
        assert cpus, f"{group} is empty"
        assert parent(group) not in groups or cpus <= groups[parent(group)], f"{group} leaves its parent"


def as_tree(groups: Mapping[str, CpuSet]) -> dict[str, Sets]:
    return {group: Sets(cpus, MEMS) for group, cpus in groups.items()}


def cpu_sets(cpus: CpuSet) -> st.SearchStrategy[CpuSet]:
    return st.sets(st.sampled_from(list(cpus)), min_size=1).map(CpuSet.of)


@st.composite
def trees(draw: st.DrawFn, cpus: int) -> dict[str, CpuSet]:
    """Any consistent state: three classes, up to two pods each, up to two containers each."""
    whole = CpuSet.of(range(cpus))
    groups = {TOP: whole}
    for name in CLASSES:
        groups[name] = draw(cpu_sets(whole))
        for pod in range(draw(st.integers(0, 2))):
            groups[f"{name}/pod{pod}"] = draw(cpu_sets(groups[name]))
            for container in range(draw(st.integers(0, 2))):
                groups[f"{name}/pod{pod}/c{container}"] = draw(cpu_sets(groups[f"{name}/pod{pod}"]))
    return groups


@st.composite
def wishes(draw: st.DrawFn, cpus: int) -> dict[str, WantedSets]:
    """Any wanted state of the classes; the pods follow."""
    whole = CpuSet.of(range(cpus))
    wanted = {TOP: WantedSets(Sets(whole, MEMS))}
    for name, rank in CLASSES.items():
        wanted[name] = WantedSets(Sets(draw(cpu_sets(whole)), MEMS), rank)
    return wanted
