"""The kind `eviction_round`: one round of Katalyst's eviction manager (docs/facts/katalyst-eviction.md#the-round).

The evictor's own round is `services.evictor.core.arbiter.choice`: its plugins rank pods and name nobody by themselves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from services.evictor.core.detectors.verdict import Met
from shared.whatif.decisions import Answer, Question, decision

EVERY = "*"


@dataclass(frozen=True, slots=True)
class PluginVote:
    """One plugin's answer: pods by their names."""

    plugin: str
    met: Met
    top: Sequence[str] = ()
    """The pods that it would evict for a met threshold."""
    named: Sequence[tuple[str, bool]] = ()
    """Pods that it names by themselves, and whether at once."""
    met_for_grace: bool = True
    """Whether the threshold has been met for its grace."""
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes together: pods to evict now, pods of which one may be chosen, and conditions."""

    force: frozenset[str]
    soft: frozenset[str]
    conditions: tuple[str, ...]


def count(votes: Iterable[PluginVote], dry_run: Sequence[str] = ()) -> Ballot:
    """Bring the votes together. A plugin on dry run contributes neither pods nor condition.

    A met threshold that has been met for its grace adds its pods: hard ones to `force`, soft ones to `soft`.
    """
    force: set[str] = set()
    soft: set[str] = set()
    conditions = set()
    for vote in votes:
        if EVERY in dry_run or vote.plugin in dry_run:
            continue
        for pod, at_once in vote.named:
            (force if at_once else soft).add(pod)
        if vote.met_for_grace and vote.met != "NOT_MET":
            (force if vote.met == "HARD_MET" else soft).update(vote.top)
        if vote.condition is not None and vote.met != "NOT_MET":
            conditions.add(vote.condition)
    return Ballot(frozenset(force), frozenset(soft), tuple(sorted(conditions)))


class NamedPod(Question):
    """A pod that a plugin names by itself."""

    pod: str
    force: bool


class RoundCondition(Question):
    """What a plugin says of the node."""

    name: str
    type: Literal["NODE", "CNR"]
    effects: list[str]


class PluginAnswer(Question):
    """What one plugin answers."""

    name: str
    met: Met
    evict_pods: list[NamedPod] | None = None
    scope: str | None = None
    grace_period_s: float = -1
    """How long the threshold must hold before it acts; in one round only 0 or less has been held."""
    top_pods: list[str] | None = None
    condition: RoundCondition | None = None


class RoundQuestion(Question):
    """The pods that are active, and what the plugins answer."""

    active_pods: list[str]
    plugins: list[PluginAnswer]
    dry_run: list[str] | Literal["*"]


class RoundAnswer(Answer):
    """Names, ascending."""

    soft: list[str]
    force: list[str]
    conditions: list[str]


@decision("eviction_round", area="eviction_framework", asks=RoundQuestion, answers=RoundAnswer)
def eviction_round(question: RoundQuestion) -> RoundAnswer:
    """One round of the arbiter over the plugins' answers: candidates, pods to evict at once, conditions."""
    ballot = count((_vote(plugin) for plugin in question.plugins), question.dry_run)
    active = set(question.active_pods)
    return RoundAnswer(
        soft=sorted(ballot.soft & active), force=sorted(ballot.force & active), conditions=list(ballot.conditions)
    )


def _vote(plugin: PluginAnswer) -> PluginVote:
    return PluginVote(
        plugin.name,
        plugin.met,
        plugin.top_pods or (),
        [(named.pod, named.force) for named in plugin.evict_pods or ()],
        met_for_grace=plugin.grace_period_s <= 0,
        condition=None if plugin.condition is None else plugin.condition.name,
    )
