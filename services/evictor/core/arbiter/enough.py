"""Enough but not more: which of the candidates bring what is observed to its line, and nobody without need."""

from collections.abc import Iterable, Sequence

from services.evictor.core.arbiter.budgets import Account
from services.evictor.core.arbiter.guards import Refusal
from services.evictor.core.plugin import Candidate, Pressure
from shared.contracts.envelope import Reason
from shared.contracts.ids import ObjectName
from shared.contracts.pod import Pod
from shared.core.decisions import Answer, Question, decision


def gap(pressure: Pressure) -> float | None:
    """How much is too much, in the unit of the scope; None where the two figures do not say."""
    over = pressure.threshold - pressure.observed if pressure.below else pressure.observed - pressure.threshold
    return over if over > 0 else None


def take(
    candidates: Iterable[Candidate], account: Account, wanted: float | None
) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
    """Those that free what is wanted, in the order given, as far as the budgets go; and whom a budget spared.

    Args:
        wanted: what they are to free together; None takes one. A candidate of unknown relief goes alone: what it
            brings shows when it is gone.
    """
    taken: list[Candidate] = []
    refusals = []
    freed = 0.0
    for candidate in candidates:
        if candidate.pod.uid in {other.pod.uid for other in taken}:
            continue
        over = account.overdraft(candidate.pod)
        if over is not None:
            refusals.append(Refusal(candidate.pod.key, over.guard, candidate.pod.uid, over.says))
            continue
        known = wanted is not None and candidate.relief is not None and candidate.relief > 0
        if known or not taken:
            taken.append(candidate)
            account = account.after(candidate.pod)
            freed += candidate.relief or 0.0
        if wanted is None or not known or freed >= wanted:
            break
    return _needed(taken, wanted), tuple(refusals)


def _needed(taken: Sequence[Candidate], wanted: float | None) -> tuple[Candidate, ...]:
    """Without those that the others can do without; who ranks last stays first. Too little is left as it is."""
    kept, freed = list(taken), sum(candidate.relief or 0.0 for candidate in taken)
    if wanted is None or freed < wanted:
        return tuple(kept)
    for candidate in reversed(taken):
        relief = candidate.relief or 0.0
        if freed - relief >= wanted:
            kept.remove(candidate)
            freed -= relief
    return tuple(kept)


class ReliefPod(Question):
    """A pod, and by how much its going moves what is observed to the threshold; null: nobody can say."""

    name: ObjectName
    relief: float | None = None


class EnoughQuestion(Question):
    """What is observed, the line, which way it is to go, and the pods, first to go first."""

    observed: float
    threshold: float
    below: bool = False
    pods: list[ReliefPod]


class EnoughAnswer(Answer):
    """How much is too much (null: the figures do not say), and who goes, in the order given."""

    gap: float | None
    victims: list[str]


@decision("enough_victims", area="eviction_arbiter", asks=EnoughQuestion, answers=EnoughAnswer)
def enough_victims(question: EnoughQuestion) -> EnoughAnswer:
    """Which pods bring what is observed to its line, and nobody without need?"""
    wanted = gap(Pressure(True, "", question.observed, question.threshold, below=question.below))
    candidates = (
        Candidate(Pod(uid=f"{number:x}", name=pod.name), Reason(rule="as given"), pod.relief)
        for number, pod in enumerate(question.pods)
    )
    victims, _ = take(candidates, Account(), wanted)
    return EnoughAnswer(gap=wanted, victims=[victim.pod.name for victim in victims])
