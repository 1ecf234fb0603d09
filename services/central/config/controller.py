"""The controller of configuration and companions: the leader brings the cluster to what its objects declare.

A pass observes the mirrors, decides the whole plan, and acts. Right before each write it validates that this central
still leads (`leadership.objects`), and that the current state still differs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import NodeSeen, utc
from services.central.core.rollout.plan import ConfigPlan, ConfigView, plan_configs, plan_statuses
from services.central.core.slo.node_strategies import NodeStrategies
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.config import ConfigPorts, PerNodeWork
from services.central.ports.mirrors import ClusterMirrors
from services.central.settings import KubernetesSettings
from shared.core.api_kind import CNCS, CNRS
from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

RETRY_S = 1.0


class ConfigController:
    """One pass after another; everything that must survive is in the API server and in the bucket."""

    def __init__(
        self,
        mirrors: ClusterMirrors,
        ports: ConfigPorts,
        clock: Clock,
        settings: KubernetesSettings,
        changed: asyncio.Event,
    ) -> None:
        self._mirrors, self._ports, self._clock, self._settings = mirrors, ports, clock, settings
        self._changed = changed
        """Set by the mirrors, too."""
        self._cleared_at_s: float | None = None
        schedule = PassSchedule(self._due_in_s, settings.settle_s, RETRY_S)
        self._passes = Passes("configuration", clock, changed, self._reconcile, schedule)
        self.refused: Mapping[str, str] = {}
        """Configuration objects that are not in force as they stand, and why."""

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    @property
    def not_done(self) -> dict[str, str]:
        """Nodes with a failed write, and why."""
        by_node = {node: why for work in self._by_node for node, why in work.failures.items()}
        return {**by_node, **self._ports.entries.failures}

    @property
    def _by_node(self) -> list[PerNodeWork]:
        return [*self._ports.companions.values(), self._ports.objects]

    @property
    def slo_failure(self) -> str:
        """Why Koordinator's ConfigMap is not followed; "" where it is, or need not be."""
        return "" if self._ports.slo is None else self._ports.slo.failure

    def slo_state(self, most: int) -> dict[str, Any]:
        """Return the parts of Koordinator's ConfigMap that are not in force, at most so many of each; {} if it is
        not followed."""
        slo = self._ports.slo
        if slo is None:
            return {}
        return {"failure": slo.failure, "refused": dict(slo.refused), "ignored": slo.ignored[:most]}

    def begin(self) -> None:
        """This one leads from now on: what another one may have written is read again."""
        self._ports.entries.forget()

    def wake(self) -> None:
        """Something has changed that a pass must see."""
        self._changed.set()

    async def run(self) -> None:
        """Run pass after pass until cancelled; a pass that fails is logged and tried again."""
        await self._passes.run()

    def _due_in_s(self) -> float:
        again_s = [due_in_s for work in self._by_node if (due_in_s := work.due_in_s) is not None]
        return min([self._settings.resync_s, *again_s])

    async def _reconcile(self) -> None:
        """Companions, then configuration; each is tried even where another fails."""
        nodes = sorted(self._mirrors.nodes.objects.values(), key=lambda node: node.name)
        companions = {CNRS: _by_name(self._mirrors.cnrs.objects), CNCS: _by_name(self._mirrors.cncs.objects)}
        failures: list[SubletError] = []
        for kind, there in companions.items():
            try:
                await self._ports.companions[kind].write(nodes, there)
            except SubletError as error:
                failures.append(error)
        try:
            view, now = self._observe(nodes, companions[CNCS]), utc(self._clock.wall())
            await self._act(plan_configs(view, now), view, now)
            # Rarely, because each orphan costs a request to the API server, and no user waits for its deletion.
            if self._clearing_is_due():
                for kind, there in companions.items():
                    await self._ports.companions[kind].clear(nodes, there)
                self._cleared_at_s = self._clock.monotonic()
        except SubletError as error:
            failures.append(error)
        if failures:
            raise failures[0]

    def _observe(self, nodes: Sequence[NodeSeen], cncs: Mapping[str, CompanionSeen]) -> ConfigView:
        """The config objects as the mirrors have them.

        Raises:
            Unavailable: one of the mirrors was never filled.
        """
        kccs = sorted(self._mirrors.kccs.objects.values(), key=lambda kcc: kcc.kcc.name)
        targets = {plural: list(mirror.objects.values()) for plural, mirror in self._mirrors.targets.items()}
        return ConfigView(nodes, cncs, kccs, targets)

    async def _act(self, plan: ConfigPlan, view: ConfigView, now: str) -> None:
        """Bring entries, CNCs and statuses to the plan.

        Settings are written before the CNC that points to them, so a node never sees the hash of settings that it
        cannot read.

        Raises:
            SubletError: bus or API server are away, or refuse; finished writes stay, and the next pass continues.
        """
        for kind, seen in plan.expired:
            await self._ports.objects.delete_expired(kind, seen)
        await self._ports.entries.write(plan.sources, self._strategies(view.nodes))
        refused = self._ports.entries.failures
        pointed = {node: entries for node, entries in plan.entries.items() if node not in refused}
        await self._ports.objects.point(pointed, view.cncs)
        applied = [node for node in pointed if self._ports.entries.applied(node, self._ports.applied(node))]
        statuses = plan_statuses(plan, applied, now)
        for write in statuses.writes:
            await self._ports.objects.write_status(write.kind, (write.namespace, write.name), write.status)
        # Only new ones, because the object's status reports it for as long as it lasts.
        for name in sorted(statuses.refused.keys() - self.refused.keys()):
            log.error("config.refused", object=name, why=statuses.refused[name])
        self.refused = {**statuses.refused, **(self._ports.slo.refused if self._ports.slo else {})}

    def _strategies(self, nodes: Sequence[NodeSeen]) -> dict[str, NodeStrategies] | None:
        """Return by node what Koordinator's ConfigMap says about it; None if it is not followed."""
        slo = self._ports.slo
        return None if slo is None else {node.name: slo.of(node.labels) for node in nodes}

    def _clearing_is_due(self) -> bool:
        since_s = self._cleared_at_s
        return since_s is None or self._clock.monotonic() - since_s >= self._settings.resync_s


def _by_name(objects: Mapping[str, CompanionSeen]) -> dict[str, CompanionSeen]:
    return {one.name: one for one in objects.values()}
