"""CPUs shared with tenants: qrm may die between any two writes, and its next life finishes."""

from pathlib import Path

from plain_cgroups import PlainCgroups

from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.placement.arrangement import Node, arrange
from services.qrm.core.writes.group_settings import GroupSettings
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.core.cgroups.knobs import Knob
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape

CPUS = 48
TOP = "sublet"


class DiesError(Exception):
    """The end of a life of qrm."""


class MortalCgroups(Cgroups):
    """The host's cgroups, for one life: so many writes, and no more. Looks at each state that it leaves behind."""

    def __init__(self, root: Path, writes: int) -> None:
        super().__init__(root)
        self.left = writes

    def write(self, group: str, knob: Knob, value: str | int) -> bool:
        if self.left == 0:
            raise DiesError
        self.left -= 1
        done = super().write(group, knob, value)
        assert_behind(self)
        return done


def assert_behind(cgroups: Cgroups) -> None:
    """Reclaimed work is behind all others wherever it is beside a tenant."""
    tenants, batch = (CpuSet.parse(cgroups.effective_cpus(f"{TOP}/{name}") or "") for name in NAMES)
    assert not tenants & batch or cgroups.read(f"{TOP}/{NAMES[1]}", Knob.CPU_IDLE) == 1


NAMES = ("shared_cores", "reclaimed_cores")


def _apply(cgroups: Cgroups, *, overlap: bool, now_s: float) -> None:
    topology = Topology.uniform(UniformShape(sockets=1, numa_per_socket=1, cores_per_numa=CPUS, threads=1))
    sizes = (PoolSize(pool="share", cpus=1), PoolSize(pool="reclaim", cpus=CPUS - 1))
    advice = PoolAdvice.model_validate(
        {"node": "n", "boot_id": "0" * 8, "seq": 1, "sent_at": "2026-01-01T00:00:00Z", "policy": "p", "pools": sizes,
         "overlap": overlap, "reclaimed_cpu_millis": 1000, "reclaimed_memory_bytes": 0}
    )  # fmt: skip
    groups = CgroupGroups(CgroupWriter(cgroups, TOP), HostMachine(cgroups, lambda: topology))
    outcome = groups.apply(arrange(Node(topology, {}), advice, "reclaim-first"), (), GroupSettings(1000), now_s)
    assert outcome.problems == ()
    assert groups.has_idle_class()


def test_wherever_qrm_dies_batch_work_is_behind_tenants_and_the_next_life_finishes(tmp_path: Path) -> None:
    plain, root = PlainCgroups(tmp_path / "host"), tmp_path / "host"
    plain.add_classes()
    cgroups, writes = plain.cgroups, 0
    _apply(cgroups, overlap=False, now_s=0.0)
    for writes in range(40):
        # As on a node whose reclaimed group somebody has taken out of the idle class.
        cgroups.write(f"{TOP}/{NAMES[1]}", Knob.CPU_IDLE, 0)
        try:
            _apply(MortalCgroups(root, writes), overlap=True, now_s=1.0)
            break
        except DiesError:
            assert_behind(cgroups)
            _apply(Cgroups(root), overlap=True, now_s=2.0)
            assert str(cgroups.effective_cpus(f"{TOP}/{NAMES[0]}")).strip() == "0-47"
            _apply(Cgroups(root), overlap=False, now_s=3.0)
    assert 0 < writes < 39, "some lives died, and one lived"
