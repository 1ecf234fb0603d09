"""The promises of one node: CPU sets (P6), leases (P7), stopping (P8), and offers (O)."""

import json
from collections import defaultdict
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from promise import Promises

from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.writer import CgroupWriter
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.kube.quantities import parse_units
from shared.core.cgroups.knobs import Knob
from shared.core.cpus.cpuset import CpuSet
from shared.ports import Received

if TYPE_CHECKING:
    from simulated_node import Machine
    from simulated_world import World

LEASE_LEFT_S = 2.0
"""The watchdog's tick, and the writes that it makes."""
TOLD_LATE_S = 0.5
"""So late the reporter may hear of what was applied: each request leaves with what is true then, however long the one
before it took."""


class NodePromises(Promises):
    """What kernel, lease and offer of each node must be."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._advised_s: dict[str, float] = defaultdict(lambda: float("-inf"))
        self._overlap: dict[tuple[str, str, str], CpuSet] = {}
        self._seen_expired: dict[str, float] = {}

    def offers(self, machine: "Machine", said: object) -> None:
        """Before an amount is offered."""
        if said is None:
            return
        millis, applied = parse_units(str(said)), 0
        known = self.applied[machine.name]
        for index, (_, amount) in enumerate(known):
            until_s = known[index + 1][0] if index + 1 < len(known) else self.world.now_s
            if until_s >= self.world.now_s - TOLD_LATE_S:
                applied = max(applied, amount)
        if millis > applied:
            self.fail("O", f"{machine.name} offers {millis} milli-cores, {applied} are applied")

    def node_sent(self, machine: "Machine", message: Received) -> None:
        """A state message of an agent."""
        if ".alloc." in message.subject:
            allocation = Allocation.decode(message.data)
            self.applied[machine.name].append((self.world.now_s, allocation.reclaimed_cpu_millis))
            self._is_applied(machine, allocation)
        elif ".advice." in message.subject:
            PoolAdvice.decode(message.data)
            self._advised_s[machine.name] = self.world.now_s

    def _is_applied(self, machine: "Machine", allocation: Allocation) -> None:
        """What qrm tells is what the kernel has."""
        pool = allocation.pool("reclaim")
        if pool is None or allocation.mode != "enforce":
            return
        told = CpuSet.parse(pool.cpus)
        if allocation.reclaimed_cpu_millis > 1000 * len(told):
            self.fail("O", f"{machine.name}: {allocation.reclaimed_cpu_millis} milli-cores of the pool {told}")
        groups = {pod.name: machine.layout.pod_group(pod) for pod in machine.pods() if pod.qos == "reclaimed_cores"}
        granted = {name: machine.kernel.cpus(group) for name, group in groups.items() if machine.kernel.exists(group)}
        if granted and not told <= reduce(or_, granted.values()):
            self.fail("O", f"{machine.name} tells the pool {told}, and the kernel grants {granted}")
        for name, has in granted.items():
            if allocation.status == "applied" and not told <= has:
                self.fail("O", f"{machine.name} tells the pool {told}, and the kernel grants {name} {has}")

    def kernel_written(self, machine: "Machine", group: str, knob: Knob) -> None:
        """After each write of a cgroup."""
        if knob is not Knob.CPUS:
            return
        kernel = machine.kernel
        own, parent = CpuSet.parse(kernel.files[group]["cpus"]), group.rpartition("/")[0]
        if not own <= kernel.cpus(parent):
            self.fail("P6", f"{machine.name}: {group} has {own}, its parent {kernel.cpus(parent)}")
        for child in kernel.below(group):
            below = CpuSet.parse(kernel.files[child]["cpus"])
            if not below <= own:
                self.fail("P6", f"{machine.name}: {group} has {own}, and {child} below it {below}")
        self._look_apart(machine, group)

    def _look_apart(self, machine: "Machine", written: str) -> None:
        """No write brings a reclaimed pod and one with CPUs of its own together; a new pod has none of its own yet."""
        pods = {machine.layout.pod_group(pod): pod for pod in machine.pods()}
        there = {group: machine.kernel.cpus(group) for group in pods if machine.kernel.exists(group)}
        for mine, owner in pods.items():
            if owner.qos != "dedicated_cores" or mine not in there:
                continue
            placed = machine.kernel.inode[mine] in machine.kernel.narrowed
            for theirs, other in pods.items():
                if other.qos != "reclaimed_cores" or theirs not in there:
                    continue
                key, now = (machine.name, mine, theirs), there[mine] & there[theirs]
                before = self._overlap.get(key, machine.topology.all)
                concerned = any(f"{one}/".startswith(f"{written}/") for one in (mine, theirs))
                if placed and concerned and now - before:
                    self.fail("P6", f"{machine.name}: {other.name} comes onto CPUs {now} of {owner.name}")
                self._overlap[key] = now

    def lease_renewed(self, machine: "Machine", left_s: float) -> None:
        """A lease runs no longer than its advice."""
        age_s = self.world.now_s - self._advised_s[machine.name]
        if left_s + age_s > 10.0 + 1.0 + 1.0:
            self.fail("P7", f"{machine.name} renews its lease for {left_s:.1f} s on advice that is {age_s:.1f} s old")

    def lease_ends(self, machine: "Machine") -> None:
        """Behind the end of the lease reclaimed pods are at the floor that it names."""
        path = machine.state / "lease.json"
        keeper = machine.keeper
        wide = ""
        if (
            keeper is not None
            and not keeper.frozen
            and not machine.kernel.read_only
            and not machine.kernel.refusal
            and path.exists()
        ):
            lease = json.loads(path.read_text())
            if (
                lease["boot"] == f"boot-{machine.name}-{machine.boots}"
                and machine.boottime_s > lease["deadline_s"] + LEASE_LEFT_S
            ):
                floor = {group: CpuSet.parse(one["cpus"]) for group, one in lease["floor"].items()}
                for pod in machine.pods():
                    group = machine.layout.pod_group(pod)
                    if pod.qos == "reclaimed_cores" and group in floor and machine.kernel.exists(group):
                        has = machine.kernel.cpus(group)
                        if len(has) > len(floor[group]):
                            wide = f"{pod.name} has CPUs {has}, its floor is {floor[group]}"
        if not wide:
            self._seen_expired.pop(machine.name, None)
        elif self.world.now_s - self._seen_expired.setdefault(machine.name, self.world.now_s) > 3.0:
            self.fail("P7", f"{machine.name}: the lease is over, and {wide}")

    def in_order(self, machine: "Machine") -> None:
        path = f"/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/{machine.name}"
        taints = (self.world.api.objects.get(path, {}).get("spec") or {}).get("taints") or []
        if taints:
            self.fail("end", f"{machine.name} is still tainted: {taints}")
        if machine.name not in self.world.plan.whole:
            return
        waiting = self._waiting(machine)
        if waiting:
            self.fail("P3", f"{machine.name} still has {waiting} messages to send")
        runner = machine.runner
        ill = [f"{health.service}: {health.why}" for health in runner.healths() if not health.ok] if runner else []
        if ill:
            self.fail("end", f"{machine.name} is not well: {ill}")
        for key, cpus in self._overlap.items():
            exists = all(machine.kernel.exists(group) for group in key[1:])
            if key[0] == machine.name and cpus and exists:
                self.fail("P6", f"{machine.name}: {key[1]} and {key[2]} share CPUs {cpus}")
        self._restores(machine)

    def _waiting(self, machine: "Machine") -> int:
        import sqlite3

        db = sqlite3.connect(f"file:{machine.state / 'ledger.db'}?mode=ro", uri=True)
        try:
            return int(
                db.execute("SELECT count(*) FROM outbox WHERE published_at_s IS NULL AND NOT held").fetchone()[0]
            )
        finally:
            db.close()

    def _restores(self, machine: "Machine") -> None:
        """An uninstalled node is the node that it was."""
        whole = machine.topology.all
        for process in (machine.agent, machine.keeper):
            if process is not None:
                process.kill()
        machine.kernel.written = lambda _group, _knob: None
        usable = HostMachine(machine.kernel, lambda: machine.topology)
        record = FormerValuesFile(machine.state, f"boot-{machine.name}-{machine.boots}")
        groups = CgroupGroups(CgroupWriter(machine.kernel, machine.layout.top), usable, machine.layout, None, record)
        groups.resume()
        problems = groups.restore(machine.pods(), at_once=True)
        left = {
            group: str(machine.kernel.cpus(group))
            for pod in machine.pods()
            if machine.kernel.exists(group := machine.layout.pod_group(pod)) and machine.kernel.cpus(group) != whole
        }
        if problems or left:
            self.fail("P8", f"{machine.name} is not as it was: {left}, {problems}")
