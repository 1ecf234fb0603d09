"""`hand_over` prepares the cluster and takes nodes over one by one, or returns them; it may be repeated at any time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from shared.errors import Refused, Unavailable
from shared.ports import Clock
from sublet.migrate.labels import DONE, TAKEOVER
from sublet.migrate.takeover.node_view import NodeView
from sublet.migrate.takeover.origin import Origin
from sublet.migrate.takeover.preparations import (
    ClusterDocuments,
    ObjectChange,
    preparations,
    require_observing,
    require_own_config,
)
from sublet.migrate.takeover.steps import LabelStep, NoStep, Step, WaitStep, back_step, takeover_step

POLL_S = 2.0
MAX_LABELS = 10
"""Label steps of one node in one run: more would be a circle."""
Direction = Literal["takeover", "back"]


class HandoverCluster(Protocol):
    """The cluster, as far as handing nodes over goes."""

    async def documents(self) -> ClusterDocuments:
        """What is there already.

        Raises:
            Refused: Sublet is not installed.
            Unavailable: no answer, or no right to read.
        """
        ...

    async def nodes(self) -> Mapping[str, Mapping[str, str]]:
        """All nodes with their labels."""
        ...

    async def hosts(self) -> frozenset[str]:
        """The nodes on which the other agent runs."""
        ...

    async def view(self, node: str) -> NodeView:
        """One node as it is now."""
        ...

    async def change(self, change: ObjectChange) -> None:
        """Create or change an object.

        Raises:
            Unavailable: the API server refuses it, or cannot be reached; says why.
        """
        ...

    async def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        """Set labels of a Node; None takes one away."""
        ...


@dataclass(frozen=True, slots=True)
class Handover:
    """What was asked for."""

    direction: Direction
    origin: Origin
    nodes: Sequence[str]
    """Empty: all, one after the other."""
    applies: bool = False
    wait_s: float = 300.0

    def step(self, seen: NodeView) -> Step:
        """The next step of a node."""
        next_step = takeover_step if self.direction == "takeover" else back_step
        return next_step(seen, self.origin)


async def hand_over(wanted: Handover, cluster: HandoverCluster, clock: Clock, say: Callable[[str], None]) -> None:
    """Say what is done, and do it where `applies` says so; ends at the first node that does not get well.

    Raises:
        Refused: a node that is not there.
        Conflict, Unavailable: a precondition does not hold, or a node did not get there in its time.
    """
    there, labels = await cluster.documents(), await cluster.nodes()
    nodes = await _chosen(wanted, cluster, labels)
    # Everything that can refuse comes before the first change.
    for node in nodes[:1]:
        wanted.step(await cluster.view(node))
    for node in nodes:
        _require(wanted, there, node, labels[node])
    # Also where every node is there already: an upgrade of the other system takes its part away.
    begun = any(one.get(TAKEOVER) for one in labels.values())
    for change in preparations(there) if begun or (nodes and wanted.direction == "takeover") else ():
        say(f"{change.title} {'created' if change.creates else 'changed'}{_mark(wanted)}: {change.says}")
        if wanted.applies:
            await cluster.change(change)
    for node in nodes:
        if wanted.applies:
            await _bring(wanted, cluster, clock, node, say)
        else:
            rehearse(wanted, await cluster.view(node), say)


def _require(wanted: Handover, there: ClusterDocuments, node: str, labels: Mapping[str, str]) -> None:
    if wanted.direction == "takeover":
        require_own_config(there, node, labels)
    elif wanted.origin.beside and labels.get(TAKEOVER):
        require_observing(there, node, labels)


def _mark(wanted: Handover) -> str:
    return "" if wanted.applies else " (dry run)"


async def _chosen(wanted: Handover, cluster: HandoverCluster, there: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
    """The nodes that were named; else, by name, those that are not yet what was asked for."""
    if missing := [name for name in wanted.nodes if name not in there]:
        raise Refused(f"node {missing[0]}: there is no such node; see kubectl get nodes", reason="not_found")
    if wanted.nodes:
        return wanted.nodes
    if wanted.direction == "back":
        return sorted(name for name, labels in there.items() if TAKEOVER in labels)
    theirs = await cluster.hosts()
    return sorted(name for name, labels in there.items()
                  if name in theirs or labels.get(TAKEOVER, DONE) != DONE)  # fmt: skip


def rehearse(wanted: Handover, seen: NodeView, say: Callable[[str], None]) -> None:
    """Say the steps of a node, as if all that is waited for came at once.

    Raises:
        Conflict, Unavailable: as `Handover.step`.
    """
    for number in range(MAX_LABELS):
        step = wanted.step(seen)
        if isinstance(step, WaitStep):
            say(f"nodes/{seen.name} (dry run): would wait: {step.what}")
            seen = replace(seen, ready=True, well=True, theirs=(), suppresses=False, observes=seen.label != DONE)
            continue
        if isinstance(step, NoStep):
            if number == 0:
                say(step.says)
            return
        say(_said(seen.name, step, " (dry run)"))
        label = step.labels[TAKEOVER]
        seen = replace(seen, label=label, theirs=(), suppresses=False, observes=label != DONE, well=True)


def _said(node: str, step: LabelStep, mark: str) -> str:
    shown = ", ".join(f"{key}={value}" if value else f"{key} removed" for key, value in step.labels.items())
    return f"nodes/{node} {shown}{mark}: {step.says}"


async def _bring(
    wanted: Handover, cluster: HandoverCluster, clock: Clock, node: str, say: Callable[[str], None]
) -> None:
    """Bring one node there."""
    waiting = _Patience(clock, wanted, node, say)
    for _ in range(MAX_LABELS):
        while isinstance(step := wanted.step(await cluster.view(node)), WaitStep):
            await waiting.bear(step)
        if isinstance(step, NoStep):
            say(step.says)
            return
        say(_said(node, step, ""))
        await clock.sleep(step.settle_s)
        await cluster.label(node, step.labels)
        waiting.begin()
    raise Unavailable(f"node {node}: somebody else changes {TAKEOVER}; see kubectl get node {node} --show-labels",
                      reason="label")  # fmt: skip


class _Patience:
    """Waits for one thing at a time, and for each no longer than was asked for."""

    def __init__(self, clock: Clock, wanted: Handover, node: str, say: Callable[[str], None]) -> None:
        self._clock, self._wanted, self._node, self._say = clock, wanted, node, say
        self._said = ""
        self.begin()

    def begin(self) -> None:
        """Wait for the next thing from now on."""
        self._end_s = self._clock.monotonic() + self._wanted.wait_s

    async def bear(self, step: WaitStep) -> None:
        """Wait a moment.

        Raises:
            Unavailable: the time is up.
        """
        if step.what != self._said:
            self._say(f"nodes/{self._node}: waiting: {step.what}")
            self._said = step.what
        if self._clock.monotonic() >= self._end_s:
            raise Unavailable(
                f"node {self._node}: after {self._wanted.wait_s:g} s {step.what}; nothing further was done: run it "
                f"again, or give the node back: sublet migrate {self._wanted.origin.system} back {self._node} --apply",
                reason="not_there",
            )
        await self._clock.sleep(POLL_S)
