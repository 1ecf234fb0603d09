"""qrm at work: newest advice and pods in, ordered cgroup writes, what the kernel then has out."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog
from pydantic import ValidationError

from services.qrm.adapters.kernel.groups import Groups
from services.qrm.adapters.kernel.machine import Machine
from services.qrm.adapters.kernel.offloader import Offloader
from services.qrm.adapters.kernel.start_watch import StartWatch
from services.qrm.adapters.kernel.writer import Outcome
from services.qrm.adapters.state.checkpoint import CheckpointFile
from services.qrm.conditions import Conditions
from services.qrm.core.placement.admit import admit
from services.qrm.core.placement.arrangement import Arrangement, Node, arrange, arrange_floor
from services.qrm.core.standing import Stage, Standing, weaker
from services.qrm.core.statement import writes_reason
from services.qrm.core.writes.classes import tenant_millis
from services.qrm.keeping import LeaseKeeping
from services.qrm.offloading import Offloading
from services.qrm.roster import Roster
from services.qrm.saving import Saving
from services.qrm.settings import OffloadSettings, QrmSettings
from services.qrm.teller import Pass, Teller
from shared import telemetry
from shared.app import Context
from shared.contracts.admission import AdmissionAsked, AdmissionTold
from shared.contracts.advice import Mode, PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.bus.subjects import admit_subject
from shared.contracts.envelope import Reason
from shared.contracts.readiness import ServiceHealth
from shared.core.cgroups.knobs import UNLIMITED
from shared.core.cgroups.layout import RESERVE
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused, SubletError, Unavailable
from shared.ports import PodSource
from shared.settings import check, merge, section
from shared.wire import Newest

log = structlog.get_logger()

NAME = "qrm"
DEDICATED_CORES = "dedicated_cores"
NOBODY: frozenset[str] = frozenset()
_LONG_AGO_S = float("-inf")


class QrmApp:
    """Applies the newest advice, verifies it every period, and lets it go when the lease ends."""

    def __init__(
        self,
        context: Context,
        *,
        machine: Machine,
        groups: Groups,
        pods: PodSource,
        keeping: LeaseKeeping | None,
        offloader: Offloader,
        starts: StartWatch,
    ) -> None:
        self._wire, self._clock = context.wire, context.clock
        self._in_cluster = context.common.substrate == "kubernetes"
        self._checkpoint = CheckpointFile(context.common.state_dir, context.wire.node)
        self._static = dict(context.raw.get(NAME) or {})
        self._settings = section(QrmSettings, context.raw, NAME)
        self._machine, self._groups, self._keeping = machine, groups, keeping
        self._starts, self._starting = starts, NOBODY
        self._slot: Newest[PoolAdvice] | None = None
        self._standing: Standing | None = None
        self._reserve = CpuSet()
        self._conditions = Conditions()
        self._saving = Saving(self._checkpoint, self._conditions)
        self._roster = Roster(pods, context.clock, self._conditions)
        self._teller = Teller(context.wire, groups, self._conditions)
        self._offloading = Offloading(
            offloader, groups.layout, context.clock, lambda: self._roster.pods, self._offload_settings
        )
        self._stage: Stage = "floor"
        self._applied_in_s = 0.0
        self._verify_at_s = 0.0
        self._seen: object = None
        self._covered: object = None
        """The pods and groups that the lease on disk knows of."""
        self._kept_at_s = float("inf")

    async def run(self) -> None:
        """Work until cancelled: at once on new advice, else when a pod appears, the lease ends, or the period ends."""
        self._slot = await self._wire.newest(PoolAdvice)
        await self._wire.serve(admit_subject(self._wire.node), self._admit)
        self._roster.read()
        self._resume()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._offloading.run(), name="qrm-offloading")
            tasks.create_task(self._offloading.run_drops(), name="qrm-cache-drops")
            tasks.create_task(self._saving.run(), name="qrm-checkpoints")
            await self._work(self._slot)

    async def _work(self, slot: Newest[PoolAdvice]) -> None:
        await self._pass()
        while True:
            advice = await slot.next(self._settings.poll_s)
            if advice is not None:
                received_s = self._clock.monotonic() - (slot.age_s or 0.0)
                taken = self._take(advice, received_s)
                await self._pass(began_s=received_s if taken else None)
                self._offloading.drop(advice.drop_cache if taken and self._mode() == "enforce" else ())
            elif self._due():
                await self._pass()

    def _resume(self) -> None:
        """Take up what the life before had applied, for as long as its lease still runs."""
        self._roster.held = self._groups.cpus_of([pod for pod in self._roster.pods if pod.qos == DEDICATED_CORES])
        try:
            found = self._checkpoint.load()
        except (Refused, OSError) as error:
            self._conditions.set("CheckpointRefused", str(error))
            return
        if found is None:
            return
        self._roster.held = {uid: CpuSet.parse(cpus) for uid, cpus in found.pods.items()}
        left_s = self._keeping.left_s() if self._keeping else 0.0
        self._reserve = CpuSet.parse(found.pools.get(RESERVE, ""))
        self._standing = Standing(found.advice, _LONG_AGO_S, self._clock.monotonic() + left_s)
        log.info("checkpoint.resumed", advice=found.advice.ref, lease_left_s=round(left_s, 3), pools=found.pools)

    def _take(self, advice: PoolAdvice, received_s: float) -> bool:
        """Make the advice the one that stands, or refuse it whole: then the last good one stays for its lease."""
        self._refresh_machine()
        try:
            what = arrange(self._node, advice, self._settings.order)
        except Refused as refusal:
            telemetry.REFUSED.labels(NAME, PoolAdvice.kind, refusal.reason).inc()
            self._conditions.set("AdviceRefused", str(refusal))
            return False
        self._conditions.set("AdviceRefused", "")
        self._reserve = what.pools.get(RESERVE, CpuSet())
        lease_until_s = received_s + self._settings.lease_s
        self._standing = Standing(advice, received_s, lease_until_s)
        if not self._renew(lease_until_s):  # limits that nobody would end are not let grow for longer than a lease
            self._standing = Standing(advice, received_s, self._kept_at_s + self._settings.lease_s)
        return True

    def _renew(self, lease_until_s: float) -> bool:
        """Before anything is written: should we die in between, the lease already runs. False: nobody would end it."""
        if self._keeping is None or self._mode() != "enforce":
            return True
        now_s = self._clock.monotonic()
        self._kept_at_s = min(self._kept_at_s, now_s)
        try:
            # One poll more than our own deadline: while qrm lives it falls to the floor itself.
            left_s = lease_until_s - now_s + self._settings.poll_s
            # Nobody would see a start end without us: the keeper's floor is the same for all.
            floor = arrange_floor(replace(self._node, starting=NOBODY), self._reserve)
            self._keeping.renew(left_s, self._groups.wanted(floor, self._roster.pods))
            self._keeping.watch()
        except OSError as error:
            self._conditions.set("LeaseUnkept", f"{error}; reclaimed limits would outlive qrm")
            return False
        self._conditions.set("LeaseUnkept", "")
        self._covered, self._kept_at_s = self._look(), now_s
        return True

    def _due(self) -> bool:
        now_s = self._clock.monotonic()
        return now_s >= self._verify_at_s or self._stage_at(now_s) != self._stage or self._look() != self._seen

    def _stage_at(self, now_s: float) -> Stage:
        return self._standing.stage(now_s) if self._standing else "floor"

    def _look(self) -> object:
        """A mark that changes with the pods, their groups, and how far their starts are."""
        try:
            return self._roster.generation, self._groups.members(), self._keep_starting()
        except (Unavailable, OSError):
            return None

    def _keep_starting(self) -> frozenset[str]:
        """UIDs of the pods that keep what kubelet gave them; nobody where that cannot be told."""
        rules = self._settings.starts.rules(len(self._machine.topology.all))
        try:
            starting = self._starts.keep(self._roster.pods, rules, self._clock.monotonic())
        except OSError as error:
            self._conditions.set("StartsUnknown", f"{error}; reclaimed pods start behind all others")
            return NOBODY
        self._conditions.set("StartsUnknown", "")
        return starting

    async def _pass(self, began_s: float | None = None) -> None:
        """One pass. A file of the kernel that cannot be read ends it and is a condition: what is set stays a lease."""
        try:
            await self._look_and_act(began_s)
        except OSError as error:
            self._conditions.set("GroupsUnreadable", f"{error}: nothing is told or written until it can be read")
        else:
            self._conditions.set("GroupsUnreadable", "")

    async def _look_and_act(self, began_s: float | None) -> None:
        now_s = self._clock.monotonic()
        self._verify_at_s = now_s + self._settings.period_s
        self._seen = self._look()
        self._refresh_machine()
        self._roster.read()
        self._starting = self._keep_starting()
        stage, what = self._decide(now_s)
        if self._standing and stage != "floor" and self._seen != self._covered:
            self._renew(self._standing.lease_until_s)  # its floor names every pod
        self._roster.hold(what.held)
        mode = self._mode()
        with telemetry.span("qrm.apply", {"stage": stage, "mode": mode}):
            outcome, extra = self._act(stage, what, mode, now_s)
        if began_s is not None:
            self._applied_in_s = max(0.0, self._clock.monotonic() - began_s)
            telemetry.STEP_SECONDS.labels(NAME).observe(self._applied_in_s)
        done = Pass(stage, mode, self._standing, what, self._roster.pods, outcome, extra, self._applied_in_s)
        allocation = self._teller.tell(done, self._clock.monotonic())
        await self._wire.publish(allocation)
        if mode == "enforce":
            self._save(allocation)

    def _act(self, stage: Stage, what: Arrangement, mode: Mode, now_s: float) -> tuple[Outcome, list[Reason]]:
        if mode == "enforce":
            fresh = self._standing.advice if self._standing and stage != "floor" else None
            limit = fresh.reclaimed_memory_limit_bytes if fresh else None
            asked = tenant_millis(self._roster.pods, len(self._machine.topology.all))
            settings = self._settings
            applied = self._groups.apply(
                what, self._roster.pods, limit, now_s,
                asked_millis=asked, verify_s=settings.verify_s, migrate=settings.memory_migrate,
                burst_percent=settings.burst_percent, quota_millis=_quota_millis(fresh),
            )  # fmt: skip
            return applied, []
        would = [writes_reason(self._groups.planned(what, self._roster.pods))] if mode == "dry-run" else []
        return self._groups.seen(self._roster.pods), would

    @property
    def _node(self) -> Node:
        machine, roster = self._machine, self._roster
        ramping = roster.came_within(self._settings.ramp_up_s)
        ours = [pod for pod in roster.pods if pod.uid not in machine.pinned_pods]
        pools = self._settings.pool_names(in_cluster=self._in_cluster)
        return Node(
            machine.topology, machine.memory_bytes, ours, roster.held, machine.barred, ramping, self._starting, pools
        )

    def _decide(self, now_s: float) -> tuple[Stage, Arrangement]:
        """What shall be in force now: by the standing advice while it counts, else the floor."""
        self._stage = self._stage_at(now_s)
        try:
            return self._stage, self._arranged(self._node)
        except Refused as refusal:  # the machine has become smaller since the advice came
            self._conditions.set("AdviceRefused", str(refusal))
            return "floor", arrange_floor(self._node, self._reserve)

    def _arranged(self, node: Node) -> Arrangement:
        if self._standing is None or self._stage == "floor":
            return arrange_floor(node, self._reserve)
        return arrange(node, self._standing.advice, self._settings.order)

    def _admit(self, question: bytes) -> bytes:
        """Answer a runtime that wants to start pods; what cannot be read or arranged is refused with the reason."""
        try:
            pods = AdmissionAsked.model_validate_json(question).pods
            told = admit(self._node, pods, self._arranged)
        except (ValidationError, Refused) as error:
            told = AdmissionTold(refused={"": str(error)})
        return told.model_dump_json().encode()

    def _offload_settings(self) -> OffloadSettings | None:
        on = self._settings.offload.enabled and self._mode() == "enforce"
        return self._settings.offload if on else None

    def _mode(self) -> Mode:
        if self._machine.pins_unread:  # whom kubelet has pinned is not known: nobody is moved
            return "observe"
        return weaker(self._settings.mode, self._standing.advice.mode) if self._standing else self._settings.mode

    def _refresh_machine(self) -> None:
        try:
            changed = self._machine.refresh()
        except (SubletError, OSError) as error:
            self._conditions.set("TopologyUnavailable", str(error))
            return
        self._conditions.set("TopologyUnavailable", "")
        unread = self._machine.pins_unread
        self._conditions.set("KubeletStateUnreadable", f"{unread}: nothing is written" if unread else "")
        pinned = self._machine.pinned
        words = f"kubelet's static CPU manager has pinned CPUs {pinned}: they are left alone" if pinned else ""
        self._conditions.set("StaticCpuManager", words)
        if changed:
            log.warning("topology.changed", cpus=str(self._machine.topology.all))
        if changed or (self._keeping is not None and self._keeping.fallen()):
            self._groups.forget_written()

    def _save(self, allocation: Allocation) -> None:
        """Keep what is applied, for the next life."""
        if self._standing is None or allocation.status not in ("applied", "partial"):
            return
        pools = {pool.pool: pool.cpus for pool in allocation.pools}
        pods = {uid: str(cpus) for uid, cpus in self._roster.held.items()}
        self._saving.offer(self._standing.advice, pools, pods)

    def health(self) -> ServiceHealth:
        """Well while fresh advice is applied as a whole."""
        age_s = self._slot.age_s if self._slot else None
        why = str(self._conditions)
        ok = self._teller.last is not None and self._teller.last.status in ("applied", "dry-run") and not why
        return ServiceHealth(service=NAME, ok=ok, why=why or ("" if ok else "nothing applied yet"), input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """The last allocation and the advice behind it."""
        return {
            "allocation": None if self._teller.last is None else self._teller.last.model_dump(mode="json"),
            "advice": None if self._standing is None else self._standing.advice.model_dump(mode="json"),
            "topology": [[c.id, c.numa, c.socket, c.core, c.l3] for c in self._machine.whole.cpus],
            "offline_cpus": str(self._machine.offline()),
            "settings": self._settings.model_dump(mode="json"),
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings, whole or not at all.

        Raises:
            BadConfig: a key or a value cannot be used.
        """
        self._settings = check(QrmSettings, merge(self._static, section), where=NAME)

    async def close(self) -> None:
        """End the subscription, and the lease with its keeper. The sets stay until the groups are removed."""
        await self._wire.stop()
        if self._keeping is not None:
            await self._keeping.stop()


def _quota_millis(advice: PoolAdvice | None) -> int | None:
    """The bound that fresh advice sets, or takes away; without it the last one stays."""
    if advice is None:
        return None
    return UNLIMITED if advice.reclaimed_quota_millis is None else advice.reclaimed_quota_millis
