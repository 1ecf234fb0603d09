"""The qrm app applies the newest advice to the cgroups, verifies it, and publishes what the kernel then has."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog
from pydantic import ValidationError

from services.qrm.allocation_reporter import AllocationReporter, PassResult
from services.qrm.background.quota_steps import QuotaSteps
from services.qrm.background.tasks import BackgroundWork
from services.qrm.conditions import Conditions
from services.qrm.core.active_advice import ActiveAdvice
from services.qrm.core.admission.admit import admit
from services.qrm.core.placement.arrangement import Arrangement, Node
from services.qrm.core.state import NO_PODS, PassDecision, PassInput, QrmState, accept, arrange_as, lease_floor, step
from services.qrm.core.statement import observing_text, offer_reason, writes_reason
from services.qrm.core.writes.classes import tenant_millis
from services.qrm.core.writes.group_settings import GroupSettings, pod_quotas, quota_millis
from services.qrm.core.writes.outcome import WriteOutcome
from services.qrm.core.writes.present import Members
from services.qrm.idle_class import as_kernel_can
from services.qrm.inventory import PodInventory
from services.qrm.lease.group_restorer import GroupRestorer
from services.qrm.lease.renewal import LeaseRenewal
from services.qrm.ports import QrmPorts
from services.qrm.settings import NAME, QrmSettings
from services.qrm.settings_rules import MachineRules, SettingsRules
from shared import telemetry
from shared.app import Context
from shared.contracts.admission import AdmissionAsked, AdmissionTold
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.bus.subjects import admit_subject
from shared.contracts.envelope import Reason
from shared.contracts.mode import Mode
from shared.contracts.readiness import ServiceHealth
from shared.core.cgroups.layout import RESERVE
from shared.core.cpus.cpuset import CpuSet
from shared.core.node_mode import bounded, weaker
from shared.errors import Refused, SubletError, Unavailable
from shared.settings import check, merge
from shared.wire import Newest

log = structlog.get_logger()

DEDICATED_CORES = "dedicated_cores"
_LONG_AGO_S = float("-inf")


class _Mark(NamedTuple):
    generation: int
    members: Members
    starting: frozenset[str]


class QrmApp:
    """Applies the newest advice, verifies it every period, and drops it when the lease ends."""

    def __init__(self, context: Context, ports: QrmPorts, settings: QrmSettings) -> None:
        self._wire, self._clock, self._ports, self._settings = context.wire, context.clock, ports, settings
        self._static, self._switch = dict(context.raw.get(NAME) or {}), context.switch
        self._in_cluster = context.common.substrate == "kubernetes"
        self._conditions, self._rules_of = Conditions(), SettingsRules()
        self._inventory = PodInventory(ports.pods, context.clock, self._conditions)
        self._reporter = AllocationReporter(context.wire, ports.groups, self._conditions)
        self._renewal: LeaseRenewal | None = None
        if ports.lease is not None:
            self._renewal = LeaseRenewal(ports.lease, ports.groups, context.clock, self._conditions)
        self._quotas = QuotaSteps(context.wire, context.clock, ports.groups.layout)
        self._restorer = GroupRestorer(ports.groups, ports.lease, self._conditions)
        self._slot: Newest[PoolAdvice] | None = None
        self._state = QrmState()
        self._starting = NO_PODS
        self._applied_in_s = 0.0
        self._verify_at_s = 0.0
        self._mark: _Mark | None = None
        """The pods and groups that the last pass saw; see `_mark_now`."""

    async def run(self) -> None:
        """Run until cancelled: at once on new advice, otherwise when a pod appears, the lease ends, or the period
        ends."""
        self._slot = await self._wire.newest(PoolAdvice)
        await self._wire.serve(admit_subject(self._wire.node), self._admit)
        # Before `_resume`, which asks the kernel what these pods have.
        self._inventory.read()
        self._resume()
        async with asyncio.TaskGroup() as tasks:
            BackgroundWork(self._ports, self._conditions, self._inventory.listed, self._enforced).start(tasks)
            await self._work(self._slot)

    async def _work(self, slot: Newest[PoolAdvice]) -> None:
        await self._pass()
        while True:
            advice = await slot.next(self._settings.poll_s)
            if advice is not None:
                # From its arrival, not from now: advice that had to wait for a pass has lived in the meantime.
                received_s = self._clock.monotonic() - (slot.age_s or 0.0)
                active = ActiveAdvice(advice, received_s, received_s + self._settings.lease_s)
                with telemetry.span("qrm.pass", {"advice": advice.ref}, parent=slot.traceparent):
                    accepted = await self._pass(active)
                # Empty where it is refused or not in force: what earlier advice asked for is called off with it.
                self._ports.offloader.drop(advice.drop_cache if accepted and self._mode() == "enforce" else ())
            # Asked each `poll_s`, with a few small reads; a pass costs many.
            elif self._due():
                await self._pass()

    def _resume(self) -> None:
        """Take up what the life before had applied, for as long as its lease still runs."""
        pods, now_s = self._inventory.pods, self._clock.monotonic()
        # For the case without a checkpoint: what the kernel has is the best word on what pods were given.
        held = self._ports.groups.cpus_of([pod for pod in pods if pod.qos == DEDICATED_CORES])
        self._state = QrmState(held=held)
        self._resume_groups()
        try:
            found = self._ports.checkpoints.load()
        except (Refused, OSError) as error:
            self._conditions.set("CheckpointRefused", str(error))
            return
        if found is None:
            return
        left_s = self._ports.lease.left_s() if self._ports.lease else 0.0
        # `_renew` has extended the lease by one poll beyond the advice: if that counted as the advice's, each restart
        # would add one.
        left_s = max(0.0, left_s - self._settings.poll_s)
        self._state = QrmState(
            # Treated as received long ago, so it counts as "held" at most, and only for as long as the lease on disk
            # says.
            active=ActiveAdvice(found.advice, _LONG_AGO_S, now_s + left_s),
            reserve=CpuSet.parse(found.pools.get(RESERVE, "")),
            held={uid: CpuSet.parse(cpus) for uid, cpus in found.pods.items()},
        )
        log.info("checkpoint.resumed", advice=found.advice.ref, lease_left_s=round(left_s, 3), pools=found.pools)

    def _resume_groups(self) -> None:
        try:
            owed = self._ports.groups.resume()
        except (Refused, OSError) as error:
            self._conditions.set("FormerValuesRefused", str(error))
            owed = True
        # Also where no advice ever came, and with it no lease that would tell of it.
        self._restorer.owed |= owed

    def _due(self) -> bool:
        now_s, state = self._clock.monotonic(), self._state
        # Also while anything is to be restored: that waits for no period.
        owed = self._restorer.owed and self._switch.observes
        due = owed or now_s >= self._verify_at_s or state.stage_at(now_s) != state.stage
        return due or self._mark_now() != self._mark

    def _mark_now(self) -> "_Mark | None":
        """A mark that changes with the pods, their groups, and how far their starts are."""
        try:
            members = self._ports.groups.members(self._clock.monotonic())
            return _Mark(self._inventory.generation, members, self._read_starting())
        except (Unavailable, OSError):
            # Never equal to the mark of a pass that could read: so the next look runs a pass, which names the trouble.
            return None

    def _read_starting(self) -> frozenset[str]:
        """UIDs of the pods that keep what kubelet gave them; none where their groups cannot be read."""
        try:
            starting = self._ports.starts.exempt(self._inventory.pods, self._rules.starts, self._clock.monotonic())
        except OSError as error:
            self._conditions.set("StartsUnknown", f"{error}; reclaimed pods start behind all others")
            return NO_PODS
        self._conditions.set("StartsUnknown", "")
        return starting

    async def _pass(self, fresh: ActiveAdvice | None = None) -> bool:
        """Run one pass, with fresh advice if there is any, and return whether that advice was accepted.

        An unreadable kernel file ends the pass and becomes a condition; what is set stays for the lease.
        """
        try:
            fresh = fresh and as_kernel_can(fresh, self._ports, self._conditions)
            await self._observe_and_act(fresh)
        except OSError as error:
            self._conditions.set("GroupsUnreadable", f"{error}: nothing is told or written until it can be read")
        else:
            self._conditions.set("GroupsUnreadable", "")
        return fresh is not None and self._is_active(fresh)

    def _is_active(self, advice: ActiveAdvice) -> bool:
        return self._state.active is not None and self._state.active.advice is advice.advice

    async def _observe_and_act(self, fresh: ActiveAdvice | None) -> None:
        now_s = self._clock.monotonic()
        # First: a pass that fails halfway is retried after a period, and not at once without end.
        self._verify_at_s = now_s + self._settings.period_s
        # Before the pods are read: one that comes during the pass makes the mark differ, and leads to another pass.
        mark, pods = self._mark_now(), self._inventory.pods
        self._refresh_machine()
        self._inventory.read()
        # Looked for once a pass: it is a look into every reclaimed pod.
        unchanged = mark is not None and self._inventory.pods is pods
        self._mark, self._starting = mark, mark.starting if mark and unchanged else self._read_starting()
        decision = self._decide(fresh, now_s)
        mode = self._mode()
        await self._quotas.step(self._inventory.pods, self._rules.quota_burst, enforces=mode == "enforce")
        with telemetry.span("qrm.apply", {"stage": decision.stage, "mode": mode}):
            outcome, extra = self._act(decision, mode, now_s)
        self._verify_at_s = now_s + (self._settings.poll_s if outcome.pending else self._settings.period_s)
        if not self._ports.groups.unrecorded:
            self._conditions.set("FormerValuesRefused", "")
        if fresh is not None and self._is_active(fresh):
            self._applied_in_s = max(0.0, self._clock.monotonic() - fresh.received_s)
            telemetry.STEP_SECONDS.labels(NAME).observe(self._applied_in_s)
        done = PassResult(
            decision, mode, self._state.active, self._inventory.pods, outcome, extra, self._applied_in_s,
            observes=self._switch.observes,
        )  # fmt: skip
        allocation = self._reporter.report(done, self._clock.monotonic())
        await self._wire.publish(allocation)
        if mode == "enforce":
            self._offer_checkpoint(allocation)

    def _decide(self, fresh: ActiveAdvice | None, now_s: float) -> PassDecision:
        """Decide what must be in force now; the lease is renewed before any of it is written."""
        node, order = self._node(), self._settings.order
        arranged = self._accept(fresh, node) if fresh else None
        # On the disk before anything wider is written: should qrm die in between, the watchdog ends it.
        if fresh is not None and arranged is not None and not self._renew(node, fresh.lease_until_s):
            self._shorten_lease()
        seen = PassInput(node, now_s, order, arranged, self._inventory.known)
        self._state, decision = step(self._state, seen)
        if decision.refusal:
            self._conditions.set("AdviceRefused", decision.refusal)
        active = self._state.active
        # A pod has come since the lease was written: it must be in the floor before it is given
        # anything. The end of the lease stays.
        if active and arranged is None and decision.stage != "floor" and not self._covered():
            self._renew(node, active.lease_until_s)  # its floor names every pod
        return decision

    def _accept(self, fresh: ActiveAdvice, node: Node) -> Arrangement | None:
        """Return the arrangement of fresh advice. None means that the advice is refused as a whole, and the last
        good one stays."""
        try:
            self._state, arranged = accept(self._state, node, fresh, self._settings.order)
        except Refused as refusal:
            telemetry.REFUSED.labels(NAME, PoolAdvice.kind, refusal.reason).inc()
            self._conditions.set("AdviceRefused", str(refusal))
            return None
        self._conditions.set("AdviceRefused", "")
        return arranged

    def _renew(self, node: Node, lease_until_s: float) -> bool:
        """Renew the lease, where this mode writes limits that must end; False: no watchdog would end them."""
        if self._renewal is None or self._mode() != "enforce":
            return True
        # One poll more than our own deadline: while qrm lives it falls to the floor itself.
        left_s = lease_until_s - self._clock.monotonic() + self._settings.poll_s
        self._state, floor = lease_floor(self._state, node)
        return self._renewal.renew(left_s, floor, self._inventory.pods, self._mark)

    def _shorten_lease(self) -> None:
        """Let a lease that no watchdog would end run out one lease after a watchdog was last known to live."""
        if self._renewal is not None:
            self._state = self._state.with_lease_until(self._renewal.watched_at_s + self._settings.lease_s)

    def _covered(self) -> bool:
        return self._renewal is None or self._renewal.covered == self._mark

    def _act(self, decision: PassDecision, mode: Mode, now_s: float) -> tuple[WriteOutcome, list[Reason]]:
        groups, pods, arrangement = self._ports.groups, self._inventory.pods, decision.arrangement
        would_be = observing_text(arrangement.pools) if self._switch.observes else ""
        self._conditions.set("Observing", would_be)
        if mode == "enforce":
            self._restorer.enforced()
            self._ports.raise_own_weight()
            wanted = self._group_settings(decision)
            return groups.apply(arrangement, pods, wanted, now_s, self._settings.verify_s), []
        # Nothing lowers them any more, so they must not stay raised.
        self._restorer.end_quotas(pods)
        if self._switch.observes and self._mode_is_known():
            self._restorer.restore(pods, now_s)
        would = [writes_reason(groups.planned(arrangement, pods))] if mode == "dry-run" else []
        if self._switch.observes:
            active = self._state.active
            would.append(offer_reason(active.advice if active else None, arrangement.pools))
        return groups.in_force(pods), would

    def _mode_is_known(self) -> bool:
        """Whether the node's mode is certain. In a cluster it is certain after the first configuration: an agent
        that starts while the hub is away must not give up what its node enforces."""
        return not self._in_cluster or self._wire.config_rev > 0

    def _group_settings(self, decision: PassDecision) -> GroupSettings:
        active, settings = self._state.active, self._settings
        # At the floor limit and quota stay as they are: the CPUs bound what reclaimed pods can do,
        # and to lift a bound needs fresh advice.
        advice = active.advice if active and decision.stage != "floor" else None
        return GroupSettings(
            asked_millis=tenant_millis(self._inventory.pods, len(self._ports.machine.topology.all)),
            memory_limit_bytes=advice.reclaimed_memory_limit_bytes if advice else None,
            quota_millis=quota_millis(advice),
            pod_quotas=pod_quotas(advice, enabled=self._settings.pod_quotas),
            raised_quotas=self._quotas.raised,
            isolation=self._rules.isolation,
            migrate=settings.memory_migrate,
        )

    def _node(self) -> Node:
        machine, inventory = self._ports.machine, self._inventory
        ramping = inventory.came_within(self._settings.ramp_up_s)
        # Not in the arrangement at all, or qrm would find CPUs for a pod that kubelet has given some.
        ours = [pod for pod in inventory.pods if pod.uid not in machine.pinned_pods]
        pools = self._settings.pool_names(in_cluster=self._in_cluster)
        held = self._state.held
        return Node(machine.topology, machine.memory_bytes, ours, held, machine.barred, ramping, self._starting, pools)

    def _admit(self, question: bytes) -> bytes:
        """Answer a runtime that wants to start pods; what cannot be read or arranged is refused with the reason."""
        try:
            pods = AdmissionAsked.model_validate_json(question).pods
            told = admit(self._node(), pods, lambda node: arrange_as(self._state, node, self._settings.order))
        except (ValidationError, Refused) as error:
            told = AdmissionTold(refused={"": str(error)})
        return told.model_dump_json().encode()

    @property
    def _rules(self) -> MachineRules:
        machine = self._ports.machine
        return self._rules_of.of(self._settings, len(machine.topology.all), machine.memory_bytes)

    def _enforced(self) -> QrmSettings | None:
        return self._settings if self._mode() == "enforce" else None

    def _mode(self) -> Mode:
        if self._ports.machine.pins_unread:  # whom kubelet has pinned is not known: nobody is moved
            return "observe"
        active, own = self._state.active, self._settings.mode
        return bounded(weaker(own, active.advice.mode) if active else own, self._switch.mode)

    def _refresh_machine(self) -> None:
        machine, lease = self._ports.machine, self._ports.lease
        try:
            changed = machine.refresh()
        except (SubletError, OSError) as error:
            self._conditions.set("TopologyUnavailable", str(error))
            return
        self._conditions.set("TopologyUnavailable", "")
        unread, pinned = machine.pins_unread, machine.pinned
        self._conditions.set("KubeletStateUnreadable", f"{unread}: nothing is written" if unread else "")
        words = f"kubelet's static CPU manager has pinned CPUs {pinned}: they are left alone" if pinned else ""
        self._conditions.set("StaticCpuManager", words)
        if changed:
            log.warning("topology.changed", cpus=str(machine.topology.all))
        # The kernel narrows sets when CPUs go offline, and the watchdog writes the floor: neither is a foreign writer.
        if changed or (lease is not None and lease.watchdog_fired()):
            self._ports.groups.forget_written()

    def _offer_checkpoint(self, allocation: Allocation) -> None:
        # The floor is what a start without a checkpoint gives anyway; only what advice has made is worth keeping.
        if self._state.active is None or allocation.status not in ("applied", "partial"):
            return
        pools = {pool.pool: pool.cpus for pool in allocation.pools}
        pods = {uid: str(cpus) for uid, cpus in self._state.held.items()}
        self._ports.checkpoints.offer(self._state.active.advice, pools, pods)

    def health(self) -> ServiceHealth:
        """Well while fresh advice is applied as a whole."""
        age_s = self._slot.age_s if self._slot else None
        why, last = str(self._conditions), self._reporter.last
        ok = last is not None and last.status in ("applied", "dry-run") and not why
        return ServiceHealth(service=NAME, ok=ok, why=why or ("" if ok else "nothing applied yet"), input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """Return the last allocation and the advice behind it."""
        active, last, machine = self._state.active, self._reporter.last, self._ports.machine
        return {
            "allocation": None if last is None else last.model_dump(mode="json"),
            "advice": None if active is None else active.advice.model_dump(mode="json"),
            "topology": [[c.id, c.numa, c.socket, c.core, c.l3] for c in machine.whole.cpus],
            "offline_cpus": str(machine.offline()),
            "quota_burst": self._quotas.told() if self._rules.quota_burst.on else None,
            "settings": self._settings.model_dump(mode="json"),
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Use new settings, whole or not at all.

        Raises:
            BadConfig: a key or a value cannot be used.
        """
        self._settings = check(QrmSettings, merge(self._static, section), where=NAME)
        self._verify_at_s = 0.0  # another mode shows at the next poll, not a period later

    async def close(self) -> None:
        """End the subscriptions, raised quotas, and the lease with its watchdog.

        The sets stay until the groups are removed.
        """
        await self._wire.stop()
        self._restorer.leave(self._inventory.pods)
        if self._ports.lease is not None:
            await self._ports.lease.stop()
