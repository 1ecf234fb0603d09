"""The kinds that the arbiter answers: budgets, enough victims, who may go at all, and the order of soft candidates."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from services.evictor.core.arbiter.budgets import Account, Budget, BudgetGuard, Scope, account
from services.evictor.core.arbiter.guards import protection
from services.evictor.core.arbiter.soft_order import SoftVictim, last_goes
from services.evictor.core.arbiter.sufficient import excess, select
from services.evictor.core.plugin import Candidate, Pressure
from shared.contracts.envelope import Reason
from shared.contracts.ids import ObjectName
from shared.contracts.pod import Pod, QosClass
from shared.core.evictions.intents import Spent
from shared.core.pods.qos import qos_class
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision


class BudgetSaid(Question):
    """One budget."""

    scope: Scope
    limit: Annotated[int, Field(ge=0)]
    window_s: Annotated[float, Field(gt=0)]
    share: Annotated[float, Field(gt=0, le=1)] | None = None


class PastEviction(Question):
    """An eviction; without an age it is not over yet."""

    age_s: Annotated[float, Field(ge=0)] | None = None
    namespace: str
    owner: str | None = None


class BudgetPod(Question):
    """The pod to evict; its owner as namespace/Kind/name."""

    namespace: str
    owner: str | None = None


class BudgetQuestion(Question):
    """The budgets in the order in which they are asked, what was used, and how many pods of each owner are here."""

    budgets: list[BudgetSaid]
    evictions: list[PastEviction]
    staying: dict[str, int] | None = None
    pod: BudgetPod


class BudgetAnswer(Answer):
    """The first budget that refuses, and its sentence; null: all allow it."""

    guard: BudgetGuard | None
    why: str | None


@dataclass(frozen=True, slots=True)
class _OwnedPod:
    namespace: str
    owner_key: str | None


@decision("eviction_budget", area="eviction_arbiter", asks=BudgetQuestion, answers=BudgetAnswer)
def eviction_budget(question: BudgetQuestion) -> BudgetAnswer:
    """Is there a budget left to evict this pod?"""
    spent = (
        Spent("enforce", one.namespace, one.owner, None if one.age_s is None else -one.age_s)
        for one in question.evictions
    )
    budgets = (Budget(said.scope, said.limit, said.window_s, said.share) for said in question.budgets)
    pod = _OwnedPod(question.pod.namespace, question.pod.owner)
    over = account(budgets, spent, 0.0, question.staying).overdraft(pod)
    return BudgetAnswer(guard=over and over.guard, why=over and over.says)


class ReliefPod(Question):
    """A pod, and how far its eviction moves the observed value to the threshold; null: unknown."""

    name: ObjectName
    relief: float | None = None


class EnoughQuestion(Question):
    """The observed value, the threshold, the direction, and the pods, the first to evict first."""

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
    """Which pods bring the observed value to its threshold, without an unnecessary one?"""
    wanted = excess(Pressure(True, "", question.observed, question.threshold, below=question.below))
    candidates = (
        Candidate(Pod(uid=f"{number:x}", name=pod.name), Reason(rule="as given"), pod.relief)
        for number, pod in enumerate(question.pods)
    )
    victims, _ = select(candidates, Account(), wanted)
    return EnoughAnswer(gap=wanted, victims=[victim.pod.name for victim in victims])


class EvictableQuestion(Question):
    """What a pod declares about itself."""

    annotations: dict[str, str]
    priority: int | None = None
    expanded_selectors: dict[QosClass, dict[str, str]] | None = None


class EvictableAnswer(Answer):
    """Whether the pod may ever be evicted."""

    evictable: bool


@decision("pod_evictable", area="eviction_framework", asks=EvictableQuestion, answers=EvictableAnswer)
def pod_evictable(question: EvictableQuestion) -> EvictableAnswer:
    """May this pod ever be evicted? An unreadable level protects no pod."""
    try:
        system_cores = qos_class(question.annotations, question.expanded_selectors) == "system_cores"
    except Refused:
        system_cores = False
    guard = protection(question.annotations, question.priority, system_cores=system_cores)
    return EvictableAnswer(evictable=guard is None)


class SoftCandidate(Question):
    """A pod that somebody would like to see go."""

    name: str
    qos: QosClass
    priority: int | None = None
    scope: str


class SoftQuestion(Question):
    """All of them."""

    candidates: list[SoftCandidate]


class SoftAnswer(Answer):
    """The pods in order; the last one is evicted."""

    order: list[str]
    victim: str | None


@decision("soft_victim_order", area="eviction_framework", asks=SoftQuestion, answers=SoftAnswer)
def soft_victim_order(question: SoftQuestion) -> SoftAnswer:
    """The order of soft candidates; the last one is the victim."""
    candidates = (SoftVictim(c.name, c.qos, c.priority, c.scope, c.name) for c in question.candidates)
    order = [candidate.name for candidate in last_goes(candidates)]
    return SoftAnswer(order=order, victim=order[-1] if order else None)
