"""When Katalyst taints the node of a silent agent and queues its pods (docs/facts/katalyst-cluster.md#lost-agents).

Katalyst probes agents and looks at what the probes found, each in a period of its own. Central judges each second.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from services.central.core.lost_nodes.agent_loss import AgentState, AgentWatch
from services.central.core.lost_nodes.lost_node import next_step
from services.central.core.lost_nodes.rules import EVICT_S, TAINT_S
from shared.whatif.decisions import Answer, Question, decision


@dataclass(frozen=True, slots=True)
class ProbedAgent(AgentWatch):
    """What the last probe found."""

    def probed(self, state: AgentState, now_s: float) -> "ProbedAgent":
        """After another probe: a ready agent is stamped each time, another one only when its state changed."""
        return ProbedAgent(state, now_s) if state == "Ready" or state != self.state else self


def all_ready(agents: Mapping[str, AgentWatch], now_s: float) -> tuple[bool | None, float]:
    """Whether every agent of a node is ready, and for how long one has not been; (None, 0) when none is watched."""
    if not agents:
        return None, 0.0
    lost_s = [watch.not_ready_s(now_s) for watch in agents.values() if watch.state != "Ready"]
    return not lost_s, max(lost_s, default=0.0)


@dataclass(frozen=True, slots=True)
class LossTicks:
    """Looks at `phase_s`, and every `period_s` after it."""

    phase_s: float
    period_s: float

    def first(self, since_s: float, *, after: bool = False) -> float:
        """The first look at that moment or later; with `after` only later."""
        turn = max(0, math.floor((since_s - self.phase_s) / self.period_s))
        while self._at(turn) < since_s or (after and self._at(turn) <= since_s):
            turn += 1
        return self._at(turn)

    def _at(self, turn: int) -> float:
        return self.phase_s + turn * self.period_s


Phase = Annotated[float, Field(ge=0, le=1e12)]
Period = Annotated[float, Field(ge=0.001, le=1e12)]


class AgentLossQuestion(Question):
    """When an agent falls silent and comes back, and who looks when."""

    fail_at_s: Phase
    recover_at_s: Phase | None = None
    probe_phase_s: Phase
    probe_period_s: Period = 60
    monitor_phase_s: Phase
    monitor_period_s: Period = 300
    taint_period_s: Phase = TAINT_S
    evict_period_s: Phase = EVICT_S
    node_has_reclaimed_pods: bool


class AgentLossAnswer(Answer):
    """When the node is tainted and its pods are queued; null: never."""

    tainted_at_s: float | None
    eviction_queued_at_s: float | None


@decision("agent_loss_timeline", area="central", asks=AgentLossQuestion, answers=AgentLossAnswer)
def agent_loss_timeline(question: AgentLossQuestion) -> AgentLossAnswer:
    """When a silent agent's node is tainted and its pods are queued for eviction.

    Of all looks only those are taken at which something can come due; a probe comes before a monitor's look at the
    same moment.
    """
    probes = LossTicks(question.probe_phase_s, question.probe_period_s)
    monitor = LossTicks(question.monitor_phase_s, question.monitor_period_s)
    recover_at_s = math.inf if question.recover_at_s is None else question.recover_at_s
    back_s = math.inf if question.recover_at_s is None else probes.first(question.recover_at_s)
    seen_s = probes.first(question.fail_at_s)
    if seen_s >= recover_at_s:
        return AgentLossAnswer(tainted_at_s=None, eviction_queued_at_s=None)
    watch = ProbedAgent("Ready", seen_s).probed("NotReady", seen_s)
    due: dict[str, float] = {}
    look_s = monitor.first(watch.stamp_s + question.taint_period_s, after=True)
    while look_s < back_s and "evict" not in due and not ("taint" in due and not question.node_has_reclaimed_pods):
        step = next_step(
            watch.not_ready_s(look_s),
            tainted="taint" in due,
            has_reclaimed_pods=question.node_has_reclaimed_pods,
            taint_s=question.taint_period_s,
            evict_s=question.evict_period_s,
        )
        if step != "wait":
            due[step] = look_s
        look_s = monitor.first(max(look_s, watch.stamp_s + question.evict_period_s), after=True)
    return AgentLossAnswer(tainted_at_s=due.get("taint"), eviction_queued_at_s=due.get("evict"))
