"""The controller of over-committed nodes: the leader writes annotations of Nodes and statuses of configs.

The Node holds everything that is known about it: kubelet's own figures, the ratio, what it can bear. After a crash
between two writes, the next pass continues from what it finds there.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import structlog

from services.central.core.overcommit.admit import ByResource
from services.central.core.overcommit.config_documents import OVERCOMMIT_CONFIGS, OvercommitConfig
from services.central.core.overcommit.config_status import ConfigStanding, status_due
from services.central.core.overcommit.decided import decided, decided_config
from services.central.core.overcommit.match import matched, ruled, winners
from services.central.core.overcommit.node_documents import FIELDS, OvercommitNode, quantity_text
from services.central.core.overcommit.node_plan import NodePlan, figures_to_write, node_plan
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes, PassSchedule
from services.central.overcommit.view import OvercommitView
from services.central.ports.decisions import DecisionLog
from services.central.settings import KubernetesSettings
from shared.core.api_kind import NODES
from shared.ports import Clock, ObjectMirror, Objects

log = structlog.get_logger()

SAY_AGAIN_S, SAID_AGAIN = 30.0, 100
"""Repetition of unchanged decisions: each of 5 000 nodes every 25 minutes, so what is stored for a day always has
the newest."""
AT_A_TIME = 200
"""Nodes that are looked at before others have their turn: the leader has more to do than this."""
LISTED = 100
"""Nodes and configs that are named in `state`."""


class OvercommitController:
    """Runs passes over all nodes, and writes only differences."""

    def __init__(
        self,
        view: OvercommitView,
        objects: Objects,
        decisions: DecisionLog,
        clock: Clock,
        settings: KubernetesSettings,
    ) -> None:
        self._view, self._objects, self._clock, self._settings = view, objects, clock, settings
        self._decisions = decisions
        self._nodes, self._configs = EachNode(clock, "over-commit"), EachNode(clock, "status of NodeOvercommitConfig")
        self._plans: Mapping[str, NodePlan] = {}
        self._made_of: dict[str, tuple[object, ...]] = {}
        """The inputs of each plan, because most nodes have not changed since."""
        self._said: dict[str, NodePlan] = {}
        self._said_at_s, self._said_last = float("-inf"), ""
        self._unheard_since: dict[str, float] = {}
        self._shown: dict[str, ByResource] = {}
        """By node the figures that were written last: where kubelet writes others, none are written against it."""
        schedule = PassSchedule(self._due_in_s, settings.settle_s)
        self._passes = Passes("overcommit", clock, view.changed, self.reconcile, schedule)

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """The mirrors that it reads."""
        return self._view.mirrors

    def state(self) -> dict[str, Any]:
        """Every node that has a ratio with the reason, and what could not be written."""
        told = {name: _told(plan) for name, plan in self._plans.items() if plan.standing != "none"}
        return {
            "failure": self.failure,
            "nodes": dict(islice(told.items(), LISTED)),
            "not_written": dict(islice({**self._configs.failures, **self._nodes.failures}.items(), LISTED)),
        }

    async def run(self) -> None:
        """Run passes until cancelled; a failed pass is logged and repeated."""
        for remembered in (self._unheard_since, self._shown, self._made_of, self._said):
            remembered.clear()
        await self._passes.run()

    def _due_in_s(self) -> float:
        due = [self._settings.resync_s, self._nodes.due_in_s, self._configs.due_in_s]
        return min(one for one in due if one is not None)

    async def reconcile(self) -> None:
        """Write differences, nodes first: a status reports what was done.

        Raises:
            SubletError: the API server is away, or another one leads; finished writes stay.
        """
        configs, nodes = self._view.configs, {node.name: node for node in self._view.nodes}
        limits = self._settings.overcommit.limits
        refusals = {config.name: config.refusal(limits) for config in configs}
        followed = {config.name: config for config in configs if not refusals[config.name]}
        claims = [config.claim for config in followed.values()]
        rulers = ruled(claims, {node.name: node.pool for node in nodes.values()})
        self._plans = await self._planned(nodes, {name: followed[by] for name, by in rulers.items() if by is not None})
        found, pools = matched(claims, rulers), winners(claims)
        standings = {
            config.name: ConfigStanding(
                refusals[config.name],
                pools[config.claim.pool].name if config.claim.pool in pools else None,
                {node: self._plans[node] for node in found.get(config.name, ())},
            )
            for config in configs
        }
        for config in configs:
            self._decisions.say(decided_config(config, standings[config.name]))
        await self._say()
        await self._write_nodes(nodes)
        by_name = {config.name: config for config in configs}

        async def status(name: str) -> None:
            await self._write_status(by_name[name], standings[name])

        self._configs.retain(refusals)
        await self._configs.each(list(refusals), status)

    async def _planned(
        self, nodes: Mapping[str, OvercommitNode], configs: Mapping[str, OvercommitConfig]
    ) -> dict[str, NodePlan]:
        reports, limits, now_s = self._view.reports, self._settings.overcommit.limits, self._clock.monotonic()
        found, made_of = dict[str, NodePlan](), dict[str, tuple[object, ...]]()
        for place, (name, node) in enumerate(nodes.items()):
            await _let_others(place)
            report = reports.get(name)
            if name not in configs or (report is not None and report.bearable):
                self._unheard_since.pop(name, None)
            else:
                self._unheard_since.setdefault(name, now_s)
            unheard_s = now_s - self._unheard_since.get(name, now_s)
            unheard = unheard_s >= self._settings.overcommit.unheard_s
            made_of[name] = (node, configs.get(name), report, unheard)
            if name in self._plans and self._made_of.get(name) == made_of[name]:
                found[name] = self._plans[name]
            else:
                found[name] = node_plan(node, configs.get(name), report, limits, unheard=unheard)
        self._made_of = made_of
        return found

    async def _say(self) -> None:
        """Publish new decisions at once, and repeat unchanged ones for a few nodes at a time, because messages may
        be lost."""
        told = {name: plan for name, plan in self._plans.items() if plan.standing != "none" or name in self._said}
        again = self._to_say_again(told)
        for place, (name, plan) in enumerate(told.items()):
            await _let_others(place)
            if name in again or self._said.get(name) is not plan:
                self._decisions.say(decided(name, plan))
        self._said = {name: plan for name, plan in told.items() if plan.standing != "none"}

    def _to_say_again(self, names: Collection[str]) -> frozenset[str]:
        now_s = self._clock.monotonic()
        if now_s - self._said_at_s < SAY_AGAIN_S:
            return frozenset()
        behind = sorted(name for name in names if name > self._said_last)[:SAID_AGAIN]
        self._said_at_s, self._said_last = now_s, behind[-1] if len(behind) == SAID_AGAIN else ""
        return frozenset(behind)

    async def _write_nodes(self, nodes: Mapping[str, OvercommitNode]) -> None:
        async def one(name: str) -> None:
            plan = self._plans[name]
            if plan.annotations:
                document = {"metadata": {"name": name, "annotations": dict(plan.annotations)}}
                await self._objects.patch(NODES, document)
                log.info("node.overcommitted", node=name, **_told(plan))
            await self._show(nodes[name], plan)

        concerned = {name for name, plan in self._plans.items() if plan.standing != "none" or plan.annotations}
        self._nodes.retain(concerned)
        self._shown = {name: figures for name, figures in self._shown.items() if name in concerned}
        to_write = [name for name in concerned if self._plans[name].annotations or self._to_show(nodes[name])]
        await self._nodes.each(sorted(to_write), one)

    def _to_show(self, node: OvercommitNode) -> ByResource:
        """The figures to write now; none where they stand there, or were written and kubelet wrote others."""
        plan = self._plans[node.name]
        figures = figures_to_write(node, plan)
        return {} if self._shown.get(node.name) == (plan.figures or figures) else figures

    async def _show(self, node: OvercommitNode, plan: NodePlan) -> None:
        """Once for each of its figures: kubelet writes them from then on, also where this was lost."""
        figures = self._to_show(node)
        if not figures:
            return
        status = {
            field: {name: quantity_text(name, getattr(amounts, field)) for name, amounts in figures.items()}
            for field in FIELDS
        }
        await self._objects.patch(NODES, {"metadata": {"name": node.name}, "status": status}, status=True)
        self._shown[node.name] = plan.figures or figures

    async def _write_status(self, config: OvercommitConfig, standing: ConfigStanding) -> None:
        status = status_due(config, standing, self._clock.wall())
        if status is not None:
            document = {"metadata": {"name": config.name}, "status": status}
            await self._objects.patch(OVERCOMMIT_CONFIGS, document, status=True)
            log.info("overcommit.judged", config=config.name, nodes=len(standing.plans), refused=standing.refusal)


def _told(plan: NodePlan) -> dict[str, Any]:
    """A plan for people."""
    return {
        "standing": plan.standing,
        "config": plan.config,
        "ratios": dict(plan.ratios),
        "set": dict(plan.set_ratios),
        "bearable": dict(plan.bearable),
    }


async def _let_others(place: int) -> None:
    if place % AT_A_TIME == AT_A_TIME - 1:
        await asyncio.sleep(0)
