"""Ask what over-commitment a node can bear: the what-if kind `overcommit_realtime`."""

from typing import Annotated

from pydantic import Field

from services.reporter.core.overcommit.bearable import (
    CPU_RULES,
    MEMORY_RULES,
    LoadRules,
    ResourceLoad,
    bearable_ratio,
)
from shared.contracts.kube.overcommit import Resource, ratio_of
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[float, Field(ge=0)]
Part = Annotated[float, Field(ge=0)]


class LoadAsked(Question):
    """What is asked for and used of one resource; `usage` null: not known."""

    request: Amount
    usage: Amount | None = None
    allocatable: Amount
    target_load: Part | None = None
    expected_load: Part | None = None

    def ratio(self, usual: LoadRules) -> float:
        """What can be borne."""
        target, expected = self.target_load, self.expected_load
        rules = LoadRules(usual.target if target is None else target, usual.expected if expected is None else expected)
        return bearable_ratio(ResourceLoad(self.request, self.usage, self.allocatable), rules)


class RealtimeQuestion(Question):
    """CPUs, bytes, and the ratios that a config has set."""

    cpu: LoadAsked
    memory: LoadAsked
    set: dict[Resource, str] = {}


class RealtimeAnswer(Answer):
    """What the node can bear, and what it says of the ratios that are set."""

    ratio: dict[Resource, float]
    reported: dict[Resource, str | None]


@decision("overcommit_realtime", area="overcommit", asks=RealtimeQuestion, answers=RealtimeAnswer)
def overcommit_realtime(question: RealtimeQuestion) -> RealtimeAnswer:
    """How far a node itself can bear to be over-committed."""
    ratios: dict[Resource, float] = {
        "cpu": question.cpu.ratio(CPU_RULES),
        "memory": question.memory.ratio(MEMORY_RULES),
    }
    reported = {name: _reported(ratio, question.set.get(name)) for name, ratio in ratios.items()}
    return RealtimeAnswer(ratio=ratios, reported=reported)


def _reported(bearable: float, set_text: str | None) -> str | None:
    """As Katalyst's agent says it; ours says what the node can bear, and central takes the smaller of both."""
    given = None if set_text is None else ratio_of(set_text)
    return None if given is None else f"{min(given, bearable):.2f}"
