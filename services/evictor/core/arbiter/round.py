"""One round of the arbiter: what the plugins' answers come to (docs/facts/katalyst-eviction.md#the-round)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from services.evictor.core.detectors.reclaimed.overcommit import Met
from shared.core.decisions import Answer, Question, decision

EVERY = "*"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Said(Generic[T]):
    """What one plugin answers: pods by their names."""

    plugin: str
    met: Met
    top: Sequence[T] = ()
    """Whom it would take for a met threshold."""
    named: Sequence[tuple[T, bool]] = ()
    """Pods that it names by themselves, and whether at once."""
    held: bool = True
    """Whether the threshold has been met for its grace."""
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Round(Generic[T]):
    """By plugin, in the plugins' order: whom to evict now, and from whom one may be chosen; and the conditions."""

    force: Mapping[str, tuple[T, ...]]
    soft: Mapping[str, tuple[T, ...]]
    conditions: tuple[str, ...]


def gather(answers: Iterable[Said[T]], dry_run: Sequence[str] = ()) -> Round[T]:
    """Bring the answers together, plugins by name. A plugin on dry run contributes neither pods nor condition.

    A met threshold that has been held for its grace adds its pods: hard ones to `force`, soft ones to `soft`.
    """
    force: dict[str, tuple[T, ...]] = {}
    soft: dict[str, tuple[T, ...]] = {}
    conditions = set()
    for said in sorted(answers, key=lambda said: said.plugin):
        if EVERY in dry_run or said.plugin in dry_run:
            continue
        top = tuple(said.top) if said.held else ()
        force[said.plugin] = tuple(p for p, now in said.named if now) + (top if said.met == "HARD_MET" else ())
        soft[said.plugin] = tuple(p for p, now in said.named if not now) + (top if said.met == "SOFT_MET" else ())
        if said.condition is not None and said.met != "NOT_MET":
            conditions.add(said.condition)
    return Round(
        {plugin: pods for plugin, pods in force.items() if pods},
        {plugin: pods for plugin, pods in soft.items() if pods},
        tuple(sorted(conditions)),
    )


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
    found = gather((_said(plugin) for plugin in question.plugins), question.dry_run)
    return RoundAnswer(
        soft=_names(found.soft, question.active_pods),
        force=_names(found.force, question.active_pods),
        conditions=list(found.conditions),
    )


def _said(plugin: PluginAnswer) -> Said[str]:
    return Said(
        plugin.name,
        plugin.met,
        plugin.top_pods or (),
        [(named.pod, named.force) for named in plugin.evict_pods or ()],
        held=plugin.grace_period_s <= 0,
        condition=None if plugin.condition is None else plugin.condition.name,
    )


def _names(by_plugin: Mapping[str, tuple[str, ...]], active: Sequence[str]) -> list[str]:
    return sorted({name for names in by_plugin.values() for name in names} & set(active))
