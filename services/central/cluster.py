"""Controllers that need an API server: every central observes, and only the leader writes, until its lease ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from services.central.config.controller import ConfigController
from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.rules import Rules
from services.central.core.objects.nodes import NodeSeen
from services.central.leadership.leader import Leader
from services.central.nodes.controller import NodeController
from services.central.ports.controllers import LeaderController
from services.central.ports.mirrors import ClusterMirrors
from services.central.slo.controller import NodeSloController
from shared.errors import Unavailable

LISTED = 100
"""Nodes that are named in the answer to `ask`: it must fit one message."""


@dataclass(frozen=True, slots=True)
class LeaderControllers:
    """The controllers that run while this central leads."""

    nodes: NodeController
    configs: ConfigController
    slo: NodeSloController | None = None
    """Of NodeSLO objects; None where Koordinator's ConfigMap is not followed."""
    further: Mapping[str, LeaderController] = field(default_factory=dict)
    """Further controllers by name, which have their own objects and are independent of the others."""


class ClusterControllers:
    """Runs the mirrors and the election always, the controllers of nodes and of configuration while this one leads."""

    def __init__(
        self,
        leader: Leader,
        controllers: LeaderControllers,
        mirrors: ClusterMirrors,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.leader = leader
        self._nodes, self._configs, self._slo = controllers.nodes, controllers.configs, controllers.slo
        self._further = controllers.further
        self._mirrors, self._close = mirrors, close

    @property
    def leading(self) -> bool:
        """Whether this one may write now."""
        return self.leader.leading

    async def run(self, begin: Callable[[], None]) -> None:
        """Observe until cancelled, and act while this one leads; `begin` is called whenever it begins to."""

        async def lead() -> None:
            # Everything that another leader may have changed is forgotten before the first pass of this one.
            self._configs.begin()
            self._nodes.begin()
            begin()
            self._configs.wake()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._configs.run(), name="central-configs")
                tasks.create_task(self._nodes.run(), name="central-nodes")
                if self._slo is not None:
                    tasks.create_task(self._slo.run(), name="central-node-slos")
                for name, controller in self._further.items():
                    tasks.create_task(controller.run(), name=f"central-{name}")

        async with asyncio.TaskGroup() as tasks:
            further = [mirror for controller in self._further.values() for mirror in controller.mirrors]
            slo = [] if self._slo is None else [self._slo.mirror]
            for mirror in dict.fromkeys([*self._mirrors.every, *slo, *further]):  # some are shared by several
                # By every central: a new leader has a full mirror, and since when each agent is not ready.
                tasks.create_task(mirror.run(), name="central-mirror")
            tasks.create_task(self.leader.run(lead), name="central-leader")

    def wake(self) -> None:
        """Wake the configuration pass, because a node reports new configuration state."""
        self._configs.wake()

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """The Nodes that are ours, by name; None while that is not known."""
        return self._nodes.nodes()

    def sent_ago_s(self, node: str, sent_at: datetime) -> float | None:
        """How long ago, at least, a node sent something, by its own clock; None: unknown."""
        return self._nodes.sent_ago_s(node, sent_at)

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> None:
        """Hand over what the bus says about the nodes."""
        self._nodes.observe(ledger, assessment, rules, bus_well=bus_well)

    def failure(self) -> str:
        """Why the cluster is not as it should be; "" when it is, or while another one leads."""
        if not self.leading:
            return self.leader.failure
        try:
            for mirror in self._mirrors.configured:
                _ = mirror.objects
        except Unavailable as error:
            return str(error)
        return self._configs.failure or self._configs.slo_failure or self._further_failure()

    def state(self) -> dict[str, Any]:
        """Return the leader, refused objects, and every node that is not simply ready, with the reason."""
        not_done = sorted({**self._configs.not_done, **self._nodes.not_done}.items())
        return {
            "leader": self.leader.state(),
            "failure": self._configs.failure,
            "config_refused": dict(self._configs.refused),
            "nodes_not_written": dict(islice(not_done, LISTED)),
            "objects_not_read": {uid: why for mirror in self._mirrors.every
                                 for uid, why in islice(mirror.unread.items(), LISTED)},
            "lost_nodes": self._nodes.state(),
            **self._slo_state(),
            **{name: controller.state() for name, controller in self._further.items()},
        }  # fmt: skip

    def _further_failure(self) -> str:
        return next((controller.failure for controller in self._further.values() if controller.failure), "")

    def _slo_state(self) -> dict[str, Any]:
        if self._slo is None:
            return {}
        return {"slo": {**self._configs.slo_state(LISTED), "node_slos": self._slo.state(LISTED)}}

    async def close(self) -> None:
        """Release the lease, so that another central can lead at once."""
        # The lease first, for it needs the connection that is closed next.
        await self.leader.release()
        await self._close()
