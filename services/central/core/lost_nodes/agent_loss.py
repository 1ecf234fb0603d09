"""The agents of a node as probes find them, and what follows when (docs/facts/katalyst-cluster.md#lost-agents)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from services.central.core.lost_nodes.lost_node import next_step
from services.central.core.lost_nodes.rules import EVICT_S, TAINT_S
from shared.core.decisions import Answer, Question, decision

AgentState = Literal["Ready", "NotReady", "NotFound"]
Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class AgentWatch:
    """What the last probe found, and the moment from which an agent that is not ready counts as lost."""

    state: AgentState
    stamp_s: float

    def probed(self, state: AgentState, now_s: float) -> "AgentWatch":
        """After another probe: a ready agent is stamped each time, another one only when its state changed."""
        return AgentWatch(state, now_s) if state == "Ready" or state != self.state else self

    def not_ready_s(self, now_s: float) -> float:
        """For how long the agent has not been ready; 0 while it is."""
        return 0.0 if self.state == "Ready" else now_s - self.stamp_s


def all_ready(agents: Mapping[str, AgentWatch], now_s: float) -> tuple[bool | None, float]:
    """Whether every agent of a node is ready, and for how long one has not been; (None, 0) when none is watched."""
    if not agents:
        return None, 0.0
    lost_s = [watch.not_ready_s(now_s) for watch in agents.values() if watch.state != "Ready"]
    return not lost_s, max(lost_s, default=0.0)


class Condition(Answer):
    """One condition of a CNR."""

    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class AgentConditions:
    """The two conditions of a CNR that tell of the node's agents."""

    not_found: Condition
    all_ready: Condition

    @classmethod
    def of(cls, agents: Mapping[str, AgentState]) -> "AgentConditions":
        """From the agents' states by selector."""
        states = set(agents.values())
        missing = "NotFound" in states
        not_found = Condition(status="True", reason="withAgentsNotFound")
        found = Condition(status="False", reason="AllAgentsFound")
        if "NotReady" in states:
            all_ready = Condition(status="False", reason="WithAgentsNotReady")
        elif missing:
            all_ready = Condition(status="Unknown", reason="WithAgentsUnknown")
        else:
            all_ready = Condition(status="True", reason="AllAgentsReady")
        return cls(not_found if missing else found, all_ready)

    @property
    def ready(self) -> bool:
        """Whether every agent is there and ready."""
        return self.all_ready.status == "True"


class AgentConditionsQuestion(Question):
    """The state of each agent by its selector."""

    agents: dict[str, AgentState]


class AgentConditionsAnswer(Answer):
    """Conditions as they stand in the CNR."""

    AgentNotFound: Condition
    AgentReady: Condition
    ready: bool


@decision("agent_conditions", area="central", asks=AgentConditionsQuestion, answers=AgentConditionsAnswer)
def agent_conditions(question: AgentConditionsQuestion) -> AgentConditionsAnswer:
    """CNR conditions from the agents' states."""
    found = AgentConditions.of(question.agents)
    return AgentConditionsAnswer(AgentNotFound=found.not_found, AgentReady=found.all_ready, ready=found.ready)


@dataclass(frozen=True, slots=True)
class Ticks:
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
    probes = Ticks(question.probe_phase_s, question.probe_period_s)
    monitor = Ticks(question.monitor_phase_s, question.monitor_period_s)
    recover_at_s = math.inf if question.recover_at_s is None else question.recover_at_s
    back_s = math.inf if question.recover_at_s is None else probes.first(question.recover_at_s)
    seen_s = probes.first(question.fail_at_s)
    if seen_s >= recover_at_s:
        return AgentLossAnswer(tainted_at_s=None, eviction_queued_at_s=None)
    watch = AgentWatch("Ready", seen_s).probed("NotReady", seen_s)
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
