"""The verdict on a silent node, and the actions due for it (docs/facts/safety-rules.md#verdict-on-a-silent-node).

There are four kinds of evidence, each with its own age: the node's heartbeat on the bus, whether central itself
receives from the bus, the agent's pod, and the node's lease as the API server has them. None means unknown, and no
action rests on an unknown.
"""

from dataclasses import dataclass
from typing import Literal

from services.central.core.lost_nodes.lost_node import next_step
from services.central.core.lost_nodes.rules import Rules

NodeVerdict = Literal["freeze", "ready", "suspect", "lost", "kubernetes"]
"""freeze: nothing is certain, so nothing is done. ready. suspect: silent, but its agent lives: no new reclaimed
pods, and never an eviction. lost: silent, its agent dead, the node alive. kubernetes: the node itself is
unreachable, which Kubernetes' own node life cycle handles."""

Action = Literal["nothing", "untaint", "taint", "evict"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything known about one node."""

    bus_well: bool
    """Whether central receives from the bus, and has for long enough."""
    silent_s: float | None
    """Seconds of certain silence; 0 while it is heard."""
    api_age_s: float | None
    """Age of the API server's last answer; None: there was none."""
    agent_ready: bool | None
    """Whether the agent's pod is ready."""
    agent_not_ready_s: float = 0.0
    """Seconds for which the agent has certainly not been ready."""
    node_stale: bool | None = None
    """Whether the node's lease has run out, or the node is not ready for Kubernetes either."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one node, and why in words."""

    verdict: NodeVerdict
    why: str
    lost_s: float = 0.0
    """For how long everything that the verdict rests on has held."""


READY = Judged("ready", "")
"""Of a node that is heard; there is one, for of 10 000 nodes it is true of nearly all."""


def judge(evidence: Evidence, rules: Rules) -> Judged:
    """One row of the table."""
    if unknown := _unknown(evidence, rules):
        return Judged("freeze", unknown)
    silent_s = evidence.silent_s or 0.0
    if silent_s <= rules.late_s:
        return READY
    # Before the agent: if Kubernetes has lost the node, its pod's readiness is only the last reported one.
    if evidence.node_stale:
        return Judged("kubernetes", "the node's lease ran out: its pods are Kubernetes' business", silent_s)
    if evidence.agent_ready:
        return Judged("suspect", f"silent for {silent_s:.0f} s while its agent is ready: the bus may be cut", silent_s)
    # The shorter one: for how long both have certainly been true.
    lost_s = min(silent_s, evidence.agent_not_ready_s)
    return Judged("lost", f"silent and its agent not ready for {lost_s:.0f} s, the node alive", lost_s)


def _unknown(evidence: Evidence, rules: Rules) -> str:
    """Return what is missing for a verdict; empty if nothing is."""
    # First: without hearing the bus every other figure would be of no use.
    if not evidence.bus_well:
        return "central does not hear the bus: silence means nothing"
    if evidence.api_age_s is None or evidence.api_age_s > rules.api_max_age_s:
        return "the API server does not answer"
    if evidence.silent_s is None:
        return "it is not known since when the node is silent"
    # A node that is heard needs no further evidence, so unknowns do not matter.
    if evidence.silent_s <= rules.late_s:
        return ""
    if evidence.node_stale is None:
        return "it is not known whether the node's lease is fresh"
    # Of a stale node the agent is not asked for: Kubernetes deals with it either way.
    if not evidence.node_stale and evidence.agent_ready is None:
        return "it is not known whether the node's agent is ready"
    return ""


def withdrawn(judged: Judged) -> bool | None:
    """Whether a node's reclaimed resources are taken from sale; None: as they are. This touches no running pod."""
    return None if judged.verdict == "freeze" else judged.verdict != "ready"


def due(judged: Judged, *, tainted: bool, has_reclaimed_pods: bool, rules: Rules) -> Action:
    """Return the actions that the verdict requests; the guards decide whether they are allowed."""
    if judged.verdict == "ready":
        return "untaint" if tainted else "nothing"
    if judged.verdict not in ("suspect", "lost"):
        return "nothing"
    step = next_step(
        judged.lost_s,
        tainted=tainted,
        # "suspect" is no loss: the agent lives, and only the bus may be cut.
        has_reclaimed_pods=has_reclaimed_pods and judged.verdict == "lost",
        taint_s=rules.taint_s,
        evict_s=rules.evict_s,
    )
    return "nothing" if step == "wait" else step
