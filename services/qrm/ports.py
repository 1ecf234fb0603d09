"""The ports name what qrm's app needs of the world; `main` builds an adapter for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.qrm.core.checkpoint import Checkpoint, FormerValue
from services.qrm.core.placement.arrangement import Arrangement
from services.qrm.core.resctrl.hardware import Hardware
from services.qrm.core.resctrl.rates import ByteCounter
from services.qrm.core.resctrl.schemata import Schemata
from services.qrm.core.starting import StartRules
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.core.writes.outcome import Problem, WriteOutcome
from services.qrm.core.writes.plan import WantedSets
from services.qrm.core.writes.present import Members
from services.qrm.sections.resctrl import BandwidthSettings
from services.qrm.settings import OffloadSettings
from shared.contracts.advice import CacheDrop, PoolAdvice
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Write
from shared.core.cgroups.layout import Layout
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology
from shared.ports import PodSource


class UsableMachine(Protocol):
    """The machine as qrm may use it."""

    whole: Topology
    """Every online CPU, also those that the cgroup root does not grant."""
    topology: Topology
    memory_bytes: Mapping[int, int]
    """Memory of each NUMA node; the memory of a missing node is unknown."""
    pinned_pods: Mapping[str, CpuSet]
    """CPUs that another manager (kubelet's static CPU manager) has assigned to containers, by pod UID."""
    pins_unread: str
    """Why the pins cannot be read now; the last known ones stay then."""

    @property
    def pinned(self) -> CpuSet:
        """All CPUs that another manager has assigned."""
        ...

    @property
    def barred(self) -> CpuSet:
        """The CPUs of others: pinned, or kept from the scheduler."""
        ...

    def offline(self) -> CpuSet:
        """CPUs that exist and are offline."""
        ...

    def refresh(self) -> bool:
        """Whether CPUs or memory nodes came or went. The last good view stays otherwise.

        Raises:
            Unavailable: they changed, and the new topology cannot be read.
            OSError: a file of the kernel cannot be read.
        """
        ...


class CacheControl(Protocol):
    """The kernel's control of caches and memory bandwidth (resctrl). Whatever reads or writes may raise OSError."""

    def hardware(self) -> Hardware | None:
        """Return what this machine can control; None if it has no such control, or it is not mounted."""
        ...

    def taken(self) -> int:
        """Return the number of groups, including those of others and the root's."""
        ...

    def groups(self) -> Sequence[str]:
        """Our groups, by name."""
        ...

    def make(self, group: str) -> None:
        """Make a group."""
        ...

    def remove(self, group: str) -> None:
        """Remove a group; its tasks go back to the root's."""
        ...

    def schemata(self, group: str) -> Schemata | None:
        """Return the schemata of a group; None if the group does not exist."""
        ...

    def counters(self, group: str) -> Mapping[int, ByteCounter]:
        """Return the bytes that a group has moved, by L3 cache; the root group's name is "". An unreadable counter
        is left out."""
        ...

    def write(self, group: str, line: str) -> None:
        """Change one resource of a group; `last_status` explains a refused line."""
        ...

    def last_status(self) -> str:
        """Return what the kernel says about the last line or task; empty if it was accepted."""
        ...

    def tasks(self, group: str) -> frozenset[int]:
        """The tasks in a group."""
        ...

    def add_task(self, group: str, task: int) -> None:
        """Move a task into a group; one that has ended is no error."""
        ...


class PodGroups(Protocol):
    """The pods' cgroups. Whatever reads or writes them may raise OSError."""

    @property
    def layout(self) -> Layout:
        """Where they lie."""
        ...

    @property
    def numas(self) -> Mapping[int, CpuSet]:
        """The CPUs of each NUMA node."""
        ...

    def has_idle_class(self) -> bool | None:
        """Whether groups can be put into the idle class (`cpu.idle`), so that tenants may share their CPUs; None: no
        group shows it."""
        ...

    def members(self, now_s: float | None = None) -> Members:
        """The pods' groups; cheap, to notice new ones. With the time, a group that has taken another's place may be
        noticed seconds later."""
        ...

    def wanted(self, arrangement: Arrangement, pods: Sequence[Pod]) -> Mapping[str, WantedSets]:
        """Return the values that every class group, and every existing pod group, must have."""
        ...

    def planned(self, arrangement: Arrangement, pods: Sequence[Pod]) -> Sequence[Write]:
        """The writes that `apply` would begin with; nothing is written."""
        ...

    def apply(
        self, arrangement: Arrangement, pods: Sequence[Pod], settings: GroupSettings, now_s: float, verify_s: float
    ) -> WriteOutcome:
        """Write what differs, and read everything back."""
        ...

    def in_force(self, pods: Sequence[Pod]) -> WriteOutcome:
        """Return what is in force now, without writing."""
        ...

    def cpus_of(self, pods: Sequence[Pod]) -> Mapping[str, CpuSet]:
        """Return the CPUs of pods by UID, as read from the kernel."""
        ...

    def memory_limit(self) -> int | None:
        """Return the memory limit in force for reclaimed work, in bytes; None if there is none."""
        ...

    def foreign(self, now_s: float) -> Sequence[str]:
        """Return the groups that others write, which Sublet therefore leaves alone."""
        ...

    @property
    def unrecorded(self) -> bool:
        """Whether a life before this one may have written what is not on record yet."""
        ...

    def resume(self) -> bool:
        """Take up what a life before this one has on record; whether anything is to be given back.

        Raises:
            Refused: the record is damaged; everything that may have been written counts as on record.
            OSError: it cannot be read; as above.
        """
        ...

    def restore(self, pods: Sequence[Pod]) -> Sequence[Problem]:
        """Give every pod every CPU and memory node, and lift every weight and limit; what could not be written."""
        ...

    def leave(self) -> Sequence[Problem]:
        """Give back what outlives the groups where these end with Sublet, as on one host; what could not be written."""
        ...

    def end_quotas(self, pods: Sequence[Pod]) -> Sequence[Problem]:
        """Give tenants the quotas back that kubelet gave them; what could not be written."""
        ...

    def forget_written(self) -> None:
        """The sets have changed for a known reason: that is no foreign writer."""
        ...


class WatchedLease(Protocol):
    """The lease on the reclaimed limits; a watchdog ends it if qrm does not."""

    def left_s(self) -> float:
        """Seconds that the lease of an earlier life still runs."""
        ...

    def renew(self, left_s: float, floor: Mapping[str, WantedSets]) -> None:
        """Let the lease run for this many seconds from now, and name what is written when it expires.

        Raises:
            OSError: it cannot be written; the old lease expires.
        """
        ...

    def ensure_watchdog(self) -> None:
        """See to it that a watchdog is alive.

        Raises:
            OSError: none is, and none can be started.
        """
        ...

    def watchdog_fired(self) -> bool:
        """Whether the watchdog has applied the floor since the last call."""
        ...

    def left_behind(self) -> bool:
        """Return whether a lease of this boot exists, expired or not."""
        ...

    def remove(self) -> None:
        """Remove the lease: nothing is in force that would have to end.

        Raises:
            OSError: the folder cannot be written.
        """
        ...

    async def stop(self) -> None:
        """Remove the lease, where the watchdog would not see the agent end."""
        ...


class Offloader(Protocol):
    """Gives memory of pods back to the machine."""

    def drop(self, drops: Sequence[CacheDrop]) -> None:
        """Page cache that must go; what was asked for before and has not been done is forgotten."""
        ...

    async def run_drops(self, pods: Callable[[], Sequence[Pod]]) -> None:
        """Drop page cache of the pods on request, until cancelled."""
        ...

    async def run(self, pods: Callable[[], Sequence[Pod]], settings: Callable[[], OffloadSettings | None]) -> None:
        """Offload idle memory until cancelled; do nothing while there are no settings."""
        ...


class BandwidthSteering(Protocol):
    """Bounds the memory bandwidth of classes by what is measured."""

    async def run(self, settings: Callable[[], BandwidthSettings | None], report: Callable[[str], None]) -> None:
        """Steer until cancelled, and report after each pass what could not be done; do nothing while there are no
        settings."""
        ...


class StartingPods(Protocol):
    """Sees how far the starts of reclaimed pods are."""

    def exempt(self, pods: Sequence[Pod], rules: StartRules, now_s: float) -> frozenset[str]:
        """Return the UIDs of pods that keep kubelet's values because they are starting.

        Raises:
            OSError: a group exists and cannot be read.
        """
        ...


class FormerValueStore(Protocol):
    """Keeps what groups had before Sublet wrote to them, for as long as this boot lasts."""

    def load(self) -> Sequence[FormerValue]:
        """Return the values that the previous run recorded; empty if there are none.

        Raises:
            Refused: the record is damaged.
            OSError: it cannot be read.
        """
        ...

    def save(self, values: Sequence[FormerValue]) -> None:
        """Replace what is kept.

        Raises:
            OSError: it could not be written; what was kept stays.
        """
        ...


class CheckpointStore(Protocol):
    """Keeps what is applied over a restart."""

    def load(self) -> Checkpoint | None:
        """Return what the previous run applied; None if there is nothing.

        Raises:
            Refused: the checkpoint is damaged or belongs to somebody else.
            OSError: it cannot be read.
        """
        ...

    def offer(self, advice: PoolAdvice, pools: Mapping[str, str], pods: Mapping[str, str]) -> None:
        """Hand over what is applied now, without waiting for the disk."""
        ...

    async def run(self, report_failure: Callable[[str], None]) -> None:
        """Write what is offered until cancelled, and say after each write why it failed, or nothing."""
        ...


def no_own_pod() -> None:
    """Raise nothing, where this process is in no pod or is not to go before others."""


@dataclass(frozen=True, slots=True)
class QrmPorts:
    """All ports of qrm. Without a lease (in the simulator) no watchdog ends the reclaimed limits in qrm's place."""

    machine: UsableMachine
    groups: PodGroups
    pods: PodSource
    lease: WatchedLease | None
    offloader: Offloader
    bandwidth: BandwidthSteering
    starts: StartingPods
    checkpoints: CheckpointStore
    raise_own_weight: Callable[[], None] = no_own_pod
    """Lets the agent's own pod go before others of its kind, as far as the kernel permits it; may be called again."""
