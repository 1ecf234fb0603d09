"""The next step of handing a node over, or back, from its observed state. Pure; each step may be repeated.

Facts: docs/facts/other-agents.md#leaving-a-node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import Conflict, Unavailable
from sublet.migrate.labels import AGENT_LABEL, AWAY, BACK, BEGUN, DONE, HERE, LEFT, TAKEOVER
from sublet.migrate.takeover.node_view import NodeView
from sublet.migrate.takeover.origin import Origin

SETTLE_S = 5.0
"""After the other agent has been told to give back its limits: it looks once a second."""


@dataclass(frozen=True, slots=True)
class LabelStep:
    """Change labels of the Node, None: take it away, once so many seconds have passed."""

    labels: Mapping[str, str | None]
    says: str
    settle_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Look again later."""

    what: str


@dataclass(frozen=True, slots=True)
class NoStep:
    """Nothing is left to do."""

    says: str


Step = LabelStep | WaitStep | NoStep


def takeover_step(seen: NodeView, origin: Origin) -> Step:
    """Towards a node on which Sublet enforces and the other agent does not run.

    Raises:
        Unavailable, Conflict: a precondition does not hold; names it, and what to do.
    """
    match seen.label:
        case None | "":
            require_fit(seen, origin)
            return _label(BEGUN, f"{origin.agent} gives back what it has limited")
        case _ if seen.label == BEGUN:
            if seen.suppresses:
                return WaitStep(f"the NodeSLO of {seen.name} still switches suppression on")
            return _label(LEFT, f"{origin.agent} leaves", settle_s=SETTLE_S if origin.beside else 0.0)
        case _ if seen.label == LEFT:
            if seen.theirs:
                return WaitStep(f"{', '.join(seen.theirs)} still runs")
            called: dict[str, str | None] = {} if origin.beside else {AGENT_LABEL: HERE}
            return LabelStep({TAKEOVER: DONE, **called}, "Sublet enforces")
        case _ if seen.label == DONE:
            return _enforcing(seen)
        case _ if seen.label == BACK:
            if seen.theirs:
                return WaitStep(f"{', '.join(seen.theirs)} still runs")
            return _label(DONE, "Sublet enforces again")
    raise Conflict(
        f"node {seen.name}: its label {TAKEOVER} is {seen.label!r}, want {', '.join((BEGUN, *AWAY))} or none; "
        f"kubectl label node {seen.name} {TAKEOVER}-",
        reason="label",
    )


def require_fit(seen: NodeView, origin: Origin) -> None:
    """Refuse to begin with a node.

    Raises:
        Unavailable: it is not ready, or our agent is not well there.
        Conflict: Sublet enforces there beside the other agent.
    """
    if not seen.ready:
        raise Unavailable(f"node {seen.name} is not Ready: see kubectl describe node {seen.name}", reason="not_ready")
    if not origin.beside:
        return
    if seen.observes is None:
        raise Unavailable(f"node {seen.name}: no agent of Sublet reports there; install it first, in mode observe",
                          reason="no_agent")  # fmt: skip
    _require_one_writer(seen)
    if not seen.well:
        raise Unavailable(f"node {seen.name}: Sublet's agent is not well: {seen.why}; see kubectl get kcnr {seen.name}",
                          reason="not_well")  # fmt: skip


def _require_one_writer(seen: NodeView) -> None:
    if seen.observes is False and seen.theirs:
        raise Conflict(
            f"node {seen.name}: Sublet enforces there while {seen.theirs[0]} runs, and both write the same; "
            "set mode=observe first (helm upgrade … --set mode=observe)",
            reason="both_enforce",
        )


def back_step(seen: NodeView, origin: Origin) -> Step:
    """Towards a node that is the other agent's again.

    Raises:
        Conflict: Sublet enforces there beside the other agent.
    """
    if not seen.label:
        if origin.beside:
            _require_one_writer(seen)
        return NoStep(f"node {seen.name} is {origin.system.title()}'s")
    if seen.label != BACK:
        return _label(BACK, "Sublet observes, and gives pods back what kubelet gave them")
    if seen.ours and not seen.observes:
        return WaitStep(f"Sublet on {seen.name} does not report yet that it observes")
    return LabelStep({TAKEOVER: None, AGENT_LABEL: None}, f"{origin.agent} comes again")


def _enforcing(seen: NodeView) -> Step:
    if seen.theirs:
        return WaitStep(f"{', '.join(seen.theirs)} runs there again, and both write the same")
    if not seen.ready:
        return WaitStep(f"node {seen.name} is not Ready")
    if seen.observes is not False:
        return WaitStep(f"Sublet on {seen.name} does not report yet that it enforces")
    if not seen.well:
        return WaitStep(f"Sublet on {seen.name} is not well: {seen.why}")
    return NoStep(f"node {seen.name} is Sublet's")


def _label(value: str, says: str, *, settle_s: float = 0.0) -> LabelStep:
    return LabelStep({TAKEOVER: value}, says, settle_s)
