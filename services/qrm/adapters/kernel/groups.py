"""The pods' cgroups get their sets, weights and limits, in the layout of this substrate."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from services.qrm.adapters.devices.disk_tuning import DiskTuning
from services.qrm.adapters.devices.queues import DiskQueues
from services.qrm.adapters.kernel.block_io import DiskLimits
from services.qrm.adapters.kernel.isolation import GroupIsolation
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.memory_use import memory_use
from services.qrm.adapters.kernel.moved_quotas import MovedQuotas
from services.qrm.adapters.kernel.pod_limits import PodLimits
from services.qrm.adapters.kernel.pod_lists import PodLists
from services.qrm.adapters.kernel.restore import give_back, restore_groups
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.resctrl.shares import CacheShares
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.rules import NEUTRAL
from services.qrm.core.isolation.wanted import may_be_given, may_have_quotas, wanted_values
from services.qrm.core.memory.limits import limit_steps
from services.qrm.core.placement.arrangement import Arrangement
from services.qrm.core.turns import Turns
from services.qrm.core.writes.apart import kept_apart
from services.qrm.core.writes.classes import RECLAIMED, lowest, weights
from services.qrm.core.writes.foreign import ForeignWatch
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.core.writes.kubelet_defaults import default_limits, restore_weight
from services.qrm.core.writes.outcome import Problem, WriteOutcome
from services.qrm.core.writes.plan import Sets, WantedSets, plan_writes
from services.qrm.core.writes.present import Members, Present, WantedGroups
from services.qrm.core.writes.young_groups import YoungGroups
from services.qrm.former_values import FormerValues
from services.qrm.ports import CacheControl, FormerValueStore
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write
from shared.core.cgroups.layout import RECLAIM, SHARE, Layout, OwnLayout
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.limits import unsaid_memory_bytes
from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class _Verified:
    """The last pass that read everything and found it as wanted."""

    wanted: Mapping[str, WantedSets]
    members: Members
    outcome: WriteOutcome


class CgroupGroups:
    """Applies pools to the groups of one layout; by default Sublet's own."""

    def __init__(
        self,
        writer: CgroupWriter,
        machine: HostMachine,
        layout: Layout | None = None,
        cache_control: CacheControl | None = None,
        former_store: FormerValueStore | None = None,
    ) -> None:
        self._writer, self._machine = writer, machine
        self.layout = layout or OwnLayout(writer.top)
        self._cgroups = writer.cgroups
        # Only Sublet's own layout has class groups to make; kubelet's groups are made and removed by kubelet alone.
        self._fixed = {writer.top, *self.layout.classes.values()} if self.layout.classes else set()
        self._reclaimed = self._limited = self.layout.reclaimed_group(())
        unsaid_bytes = unsaid_memory_bytes(sum(machine.memory_bytes.values()))
        self._former = former = FormerValues(former_store, self._cgroups.exists)
        self._pod_limits = None if self.layout.classes else PodLimits(writer, self.layout, unsaid_bytes, former)
        self._moved_quotas = MovedQuotas(writer, self.layout, former)
        self._isolation = GroupIsolation(writer, former)
        self._disks = DiskLimits(self._cgroups, self.layout, former)
        self._tuning = DiskTuning(self._cgroups, DiskQueues(self._cgroups.host_root), former)
        self._caches = None if cache_control is None else CacheShares(cache_control, self._cgroups, self.layout)
        self._pods_known = False
        self.unrecorded = False
        """Whether an earlier run may have written values that are not on record."""
        self._watch = ForeignWatch()
        self._verified: _Verified | None = None
        self._turns, self._named, self._young = Turns(), WantedGroups(self.layout), YoungGroups()
        self._lists = PodLists(writer.cgroups, self.layout.homes)
        self._weighed: dict[str, bool] = {}
        """By reclaimed pod's group whether it was given kubelet's weight, where the kernel has it so."""

    def wanted(self, arrangement: Arrangement, pods: Sequence[Pod]) -> dict[str, WantedSets]:
        """Return the values that every class group must have for this arrangement, and every existing pod group."""
        return self._wanted(arrangement, self._present(pods))

    def _wanted(self, arrangement: Arrangement, present: Present) -> dict[str, WantedSets]:
        return self._named.wanted(arrangement, present, Sets(self._machine.usable, self._machine.mems))

    def _present(self, pods: Sequence[Pod]) -> Present:
        return self._named.present(pods, self.members(), self._machine.pinned_pods)

    @property
    def numas(self) -> Mapping[int, CpuSet]:
        """The CPUs of each NUMA node."""
        return self._machine.topology.numas

    def has_idle_class(self) -> bool | None:
        """See the port."""
        # If nothing was written yet, our top group does not exist: any group with a weight shows it as well.
        groups = (self.layout.top, "", *self._cgroups.children(""))
        told = (self._has_idle(group) for group in groups if self._cgroups.raw(group, Knob.CPU_SHARES) is not None)
        return next(told, None)

    def planned(self, arrangement: Arrangement, pods: Sequence[Pod]) -> list[Write]:
        """The writes that `apply` would begin with; nothing is written."""
        wanted = self.wanted(arrangement, pods)
        return plan_writes(self._writer.read_tree(wanted.keys()), wanted)

    def in_force(self, pods: Sequence[Pod]) -> WriteOutcome:
        """Return what is in force now, without writing."""
        return self._writer.in_force(self._fixed or self._present(pods).groups.keys())

    def cpus_of(self, pods: Sequence[Pod]) -> dict[str, CpuSet]:
        """Return the CPUs of pods by UID, as read from the kernel."""
        texts = {pod.uid: self._cgroups.raw(self.layout.pod_group(pod), Knob.CPUS) for pod in pods}
        return {uid: CpuSet.parse(text) for uid, text in texts.items() if text and text.strip()}

    def apply(
        self,
        arrangement: Arrangement,
        pods: Sequence[Pod],
        settings: GroupSettings,
        now_s: float,
        verify_s: float = 0.0,
    ) -> WriteOutcome:
        """Create missing groups, write what differs, and read everything back.

        While nothing new is wanted, all went well, no pod came or went, and the classes are unchanged, pods' groups are
        read again only every `verify_s`, in turn: a group cannot have more than its class. If another program makes the
        groups, reclaimed pods get limits of their own.
        """
        # Listed once: groups that appear meanwhile are found by the next check for new groups.
        present = self._present(pods)
        outcome, turn = self._apply_sets(arrangement, present, settings, now_s, verify_s)
        there, own = list(present.groups.values()), self._pod_limits
        # Not before a pod is known: what the life before gave it would be taken away and given again.
        self._pods_known = self._pods_known or bool(pods)
        # Before anything is put on record: what a life before this one wrote is not what was there before.
        problems = self._adopt(pods) if self._pods_known else []
        if own is not None and settings.pod_quotas is False:
            # Before the quota of the class: v1 refuses one that is below a pod's.
            problems += own.lift_quotas(there)
        self._reclaimed = self.layout.reclaimed_group(pods)
        problems += self._lift_limits()
        # After the sets: the kernel reclaims memory while the writer waits, and a tenant's CPUs must not wait for that.
        limits = [*self._limits(settings.memory_limit_bytes), *self._quota(settings.quota_millis)]
        weights_now = self._weights(settings.asked_millis, present.groups, arrangement.starting, turn)
        problems += self._writer.settle([*weights_now, *limits])
        if own is not None:
            problems += own.settle(there, now_s, verify_s, quotas=settings.pod_quotas)
        if self._pods_known:
            problems += self._moved_quotas.settle(pods, settings.raised_quotas, now_s, verify_s)
            # Last: a burst is held against the quota that is there by now.
            wanted = wanted_values(pods, self.layout, settings.isolation)
            problems += self._isolation.settle(wanted, now_s, verify_s)
            problems += self._disks.settle(pods, settings.isolation.disks, now_s, verify_s)
        # Not next to a damaged record: a new record, with disks alone, would end the search for the rest. And in a
        # cluster not before a pod is known: without any, an uninstallation finds nothing to restore.
        if not self.unrecorded and (self._pods_known or self.layout.classes):
            problems += self._tuning.settle(settings.isolation.tuning, now_s, verify_s)
        lacking = (*self._isolation.lacking, *self._moved_quotas.lacking, *self._disks.lacking, *self._tuning.lacking)
        unheeded = (*self._moved_quotas.unheeded, *self._disks.unheeded, *self._tuning.unheeded)
        if self._caches is not None:
            problems += self._caches.settle(pods, settings.isolation.resctrl, now_s, verify_s)
            lacking, unheeded = lacking + self._caches.lacking, unheeded + self._caches.unheeded
        failed, pending = self._young.judge((*outcome.problems, *problems), present, now_s)
        return replace(outcome, problems=failed, pending=pending, lacking=lacking, unheeded=unheeded)

    def _apply_sets(
        self, arrangement: Arrangement, present: Present, settings: GroupSettings, now_s: float, verify_s: float
    ) -> tuple[WriteOutcome, Collection[str] | None]:
        """The outcome, and the groups whose turn it was; None where everything was read."""
        wanted, last = self._wanted(arrangement, present), self._verified
        # Most passes change nothing, and reading the groups of hundreds of pods is nearly all that they would cost.
        if last is not None and verify_s > 0 and (last.wanted, last.members) == (wanted, present.members):
            turn = self._turns.due(now_s, verify_s)
            if self._stands(last.outcome, turn):
                return last.outcome, turn
        # Before the sets: v1 moves pages only if the switch was on when `cpuset.mems` is written.
        moving = self._writer.settle(self._migrations(arrangement, present.pods)) if settings.migrate else []
        outcome = self._apply(wanted, self._behind(arrangement, present.groups), now_s).with_problems(moving)
        # Anything open means that the next pass reads everything again instead of trusting this one.
        sound = not outcome.problems and not self.foreign(now_s)
        self._verified = _Verified(wanted, present.members, outcome.unwritten()) if sound else None
        self._turns.begin(wanted, now_s, verify_s)
        return outcome, None

    def _stands(self, before: WriteOutcome, turn: Collection[str]) -> bool:
        """Whether our own upper groups, and those whose turn it is with all below them, are as they were left."""
        # A group below cannot have more than its parent, so a cheap look at the upper ones is enough in between.
        looks = [self._writer.in_force(self._fixed, below=False)] if self._fixed else []
        looks += [self._writer.in_force(set(turn))] if turn else []
        read = {group for now in looks for group in now.tree}
        return read.issuperset((*self._fixed, *turn)) and all(
            before.tree.get(group) == sets and before.granted.get(group) == now.granted.get(group)
            for now in looks
            for group, sets in now.tree.items()
        )

    def _apply(self, wanted: Mapping[str, WantedSets], behind: Iterable[Write], now_s: float) -> WriteOutcome:
        try:
            self._writer.make(self._fixed)
        except OSError as error:
            problem = Problem(
                self.layout.top, f"cannot be made: {error.strerror}; qrm must be able to write {self._cgroups.root}"
            )
            return WriteOutcome({}, {}, {}, 0, (problem,))
        # Before the sets, so that reclaimed work is never on a tenant's CPU at equal precedence.
        behind = list(behind)
        refused = self._writer.settle(behind)
        beside = {write.group for write in behind if self._writer.differs(write)}
        tree = self._writer.read_tree(wanted.keys())
        # A value found now that the last pass did not leave is another writer's, so detect it before this pass writes.
        self._watch.found(tree, now_s)
        safe = kept_apart(wanted, tree, beside)
        outcome = self._writer.apply(safe, self._watch.foreign(now_s), tree, needed=self._fixed)
        self._watch.left(outcome.tree, outcome.goal, now_s)
        # Includes groups that the kernel calls busy: nothing is fine until they have the lowest weight.
        open_ = [Problem(group, "is not behind tenants yet: it comes beside none anew") for group in sorted(beside)]
        return outcome.with_problems([*refused, *open_])

    def _behind(self, arrangement: Arrangement, present: Mapping[str, Pod]) -> Iterator[Write]:
        """The lowest weight for reclaimed work that shall share CPUs with tenants; pods that start keep kubelet's."""
        if not arrangement.pools[SHARE] & arrangement.pools[RECLAIM]:
            return
        pods = (group for group, pod in present.items() if pod.qos == RECLAIMED and pod.uid not in arrangement.starting)
        for group in (self.layout.classes[RECLAIMED],) if self.layout.classes else pods:
            yield lowest(group, has_idle=self._has_idle(group))

    def foreign(self, now_s: float) -> list[str]:
        """Return the groups that others write, which Sublet therefore leaves alone."""
        return sorted(self._watch.foreign(now_s))

    def forget_written(self) -> None:
        """The sets have changed for a known reason: that is no foreign writer."""
        self._watch.forget_written()
        self._verified = None

    def restore(self, pods: Sequence[Pod], *, at_once: bool = False) -> tuple[Problem, ...]:
        """Give every pod every CPU and memory node, and lift every weight and limit; return what could not be
        written.

        `at_once` is for a final restore: no further pass will wait for the kernel or retry.
        """
        self.forget_written()
        left = [*self._adopt(pods), *self._isolation.give_back(at_once=at_once), *self._disks.give_back()]
        left += self._tuning.give_back()
        left += give_back(self._writer, self._former, self._former.of((Knob.CPU_QUOTA,)).keys())
        left += [] if self._caches is None else self._caches.give_back()
        return (*restore_groups(self._writer, self.layout, self._machine, pods), *left)

    def leave(self) -> list[Problem]:
        """See the port."""
        if not self.layout.classes:
            return []
        return [*self._tuning.give_back(), *([] if self._caches is None else self._caches.give_back())]

    def end_quotas(self, pods: Sequence[Pod]) -> list[Problem]:
        """See the port."""
        return self._moved_quotas.end(pods)

    def resume(self) -> bool:
        """See the port."""
        try:
            self._former.resume()
        except (Refused, OSError):
            self.unrecorded = True
            raise
        return bool(self._former)

    def _adopt(self, pods: Sequence[Pod]) -> list[Problem]:
        """Without a record everything that may have been written counts as written, and a group as a new one before."""
        if not self.unrecorded:
            return []
        # Ids of packets are others' as well, and none of theirs may go.
        keys = may_be_given(pods, self.layout, NEUTRAL.keys() - {Knob.NET_CLASS})
        keys |= may_have_quotas(pods, self.layout) if self._pod_limits is not None else set()
        keys -= self._former.of(tuple(Knob)).keys()
        found = {(group, knob): NEUTRAL.get(knob, UNLIMITED) for group, knob in keys if self._cgroups.exists(group)}
        disks = self._disks.may_be_given(pods)
        try:
            self._former.adopt(
                (*(FormerValue(group=group, knob=knob, value=one) for (group, knob), one in found.items()), *disks)
            )
        except OSError as error:
            return [Problem(self.layout.top, f"what may have been written cannot be put on record: {error}")]
        # Before any pod is known, what it was given is not found.
        self.unrecorded = not pods
        return []

    def memory_limit(self) -> int | None:
        """Return the memory limit in force for reclaimed work, in bytes; None if there is none."""
        if self._reclaimed is None:
            return None
        limits = [self._cgroups.read(self._reclaimed, knob) for knob in (Knob.MEMORY_MAX, Knob.MEMORY_HIGH)]
        # Either bounds the class: `memory.high` slows down what `memory.max` would kill.
        return min((int(limit) for limit in limits if limit is not None and limit != UNLIMITED), default=None)

    def members(self, now_s: float | None = None) -> Members:
        """See the port."""
        return self._lists.members(now_s)

    def _migrations(self, arrangement: Arrangement, pods: Sequence[Pod]) -> Iterator[Write]:
        for pod in pods:
            # Only a pod that is bound to memory nodes gains by moved pages; for all others it would
            # be work for the kernel.
            if pod.uid in arrangement.owned and arrangement.owned[pod.uid].numas:
                for group in self._cgroups.tree(self.layout.pod_group(pod)):
                    yield Write(group, Knob.MEMORY_MIGRATE, 1)

    def _weights(
        self, asked_millis: int, present: Mapping[str, Pod], starting: Collection[str], turn: Collection[str] | None
    ) -> list[Write]:
        """Return the weights of Sublet's own groups; of others' groups only those of reclaimed pods.

        A starting reclaimed pod keeps kubelet's weight, or gets it back for a restarting container: at the lowest
        weight the runtime's work for it would take minutes, while holding locks that tenants wait for.
        """
        # Kubelet writes the weights of tenants itself, from their requests: writing against it would start a war of
        # writes (docs/facts/linux-cgroups.md#other-writers).
        if not self.layout.classes:
            return self._reclaimed_weights(present, starting, turn)
        has_idle = self._has_idle(self.layout.classes[RECLAIMED])
        cpus = len(self._machine.topology.all)
        return weights(cpus, asked_millis=asked_millis, has_idle=has_idle, top=self.layout.top)

    def _reclaimed_weights(
        self, present: Mapping[str, Pod], starting: Collection[str], turn: Collection[str] | None
    ) -> list[Write]:
        """The weights to be written of reclaimed pods; one that was found in force is looked at when it is its turn."""
        found: list[Write] = []
        before, self._weighed = self._weighed if turn is not None else {}, {}
        for group, pod in present.items():
            starts = pod.uid in starting
            if pod.qos != RECLAIMED:
                continue
            known = before.get(group) is starts and group not in (turn or ())
            writes = [] if known else [one for one in self._weight(pod, starts=starts) if self._writer.differs(one)]
            found += writes
            # Not known even if all goes well: the next pass reads back what the kernel made of it.
            if not writes:
                self._weighed[group] = starts
        return found

    def _weight(self, pod: Pod, *, starts: bool) -> list[Write]:
        group = self.layout.pod_group(pod)
        behind_all = lowest(group, has_idle=self._has_idle(group))
        if not starts:
            return [behind_all]
        shares = default_limits(pod, self.layout)[group].cpu_shares
        # Restored only if the group has the lowest weight now: any other weight is kubelet's and stays.
        return [] if self._writer.differs(behind_all) else list(restore_weight(group, shares))

    def _has_idle(self, group: str) -> bool:
        return self._cgroups.raw(group, Knob.CPU_IDLE) is not None

    def _lift_limits(self) -> list[Problem]:
        """Lift the limits of the class once its group holds others too: they would hit these, and move no more."""
        if self._reclaimed is not None:
            self._limited = self._reclaimed
        if self._reclaimed is not None or self._limited is None:
            return []
        knobs = (Knob.CPU_QUOTA, Knob.MEMORY_MAX, Knob.MEMORY_HIGH)
        problems = self._writer.settle([Write(self._limited, knob, UNLIMITED) for knob in knobs])
        # Once, because later foreign writes belong to others; what could not be lifted stays pending.
        self._limited = self._limited if problems else None
        return problems

    def _limits(self, limit_bytes: int | None) -> list[Write]:
        group = self._reclaimed
        use = None if group is None or limit_bytes is None else memory_use(self._cgroups, group)
        # No limit without knowing the use: a blind one might fall below it, and v2 kills then.
        if group is None or limit_bytes is None or use is None:
            return []
        return [Write(group, knob, value) for knob, value in limit_steps(limit_bytes, use, self._cgroups.version)]

    def _quota(self, millis: int | None) -> list[Write]:
        group = self._reclaimed
        return [] if group is None or millis is None else [Write(group, Knob.CPU_QUOTA, millis)]
