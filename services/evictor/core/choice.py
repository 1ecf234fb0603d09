"""One round: which pods go now, hard pressure before soft, each hard plugin one and all soft ones together one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from services.evictor.core.guards import Refusal, Surroundings, first_allowed
from services.evictor.core.plugin import Candidate, Pressure
from services.evictor.core.round import Said, gather
from services.evictor.core.soft_order import SoftCandidate, last_goes


@dataclass(frozen=True, slots=True)
class Ready:
    """A confirmed pressure that may act now."""

    pressure: Pressure
    candidates: Callable[[], tuple[Candidate, ...]]
    """The plugin's ranking, asked for only when it is needed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The outcome for one plugin."""

    plugin: str
    victim: Candidate | None
    refusals: tuple[Refusal, ...]


def choose(ready: Mapping[str, Ready], around: Surroundings) -> tuple[Choice, ...]:
    """Whom to evict now, plugins by name, nobody twice.

    While any pressure is hard, soft ones wait: what the hard one frees may end them.
    """
    hard = any(r.pressure.hard for r in ready.values())
    acting = {plugin: r for plugin, r in ready.items() if r.pressure.hard == hard}
    found = gather(Said(plugin, "HARD_MET" if hard else "SOFT_MET", r.candidates()) for plugin, r in acting.items())
    choices = _one_each(found.force, around) if hard else _one_of_all(found.soft, around, acting)
    quiet = (Choice(plugin, None, ()) for plugin in acting.keys() - {choice.plugin for choice in choices})
    return tuple(sorted([*choices, *quiet], key=lambda choice: choice.plugin))


def _one_each(by_plugin: Mapping[str, tuple[Candidate, ...]], around: Surroundings) -> list[Choice]:
    choices = []
    for plugin, candidates in by_plugin.items():
        victim, refusals = first_allowed(candidates, around)
        choices.append(Choice(plugin, victim, refusals))
        if victim is not None:
            around = replace(around, live_uids={*around.live_uids, victim.pod.uid})
    return choices


def _one_of_all(
    by_plugin: Mapping[str, tuple[Candidate, ...]], around: Surroundings, ready: Mapping[str, Ready]
) -> list[Choice]:
    """Of the first of each plugin the one that the order of soft candidates puts last."""
    choices = [Choice(plugin, *first_allowed(candidates, around)) for plugin, candidates in by_plugin.items()]
    going = _last(choices, ready)
    return [choice if choice.plugin == going else _waiting(choice) for choice in choices]


class _Wish(SoftCandidate):
    plugin: str


def _last(choices: Iterable[Choice], ready: Mapping[str, Ready]) -> str | None:
    """The plugin whose victim goes; of several that name the same pod the first."""
    wishes = [
        _Wish(
            name=choice.victim.pod.key,
            qos=choice.victim.pod.qos,
            priority=choice.victim.pod.priority,
            scope=ready[choice.plugin].pressure.scope.partition(".")[0],
            plugin=choice.plugin,
        )
        for choice in sorted(choices, key=lambda choice: choice.plugin, reverse=True)
        if choice.victim is not None
    ]
    return last_goes(wishes)[-1].plugin if wishes else None


def _waiting(choice: Choice) -> Choice:
    if choice.victim is None:
        return choice
    return Choice(choice.plugin, None, (*choice.refusals, Refusal(choice.victim.pod.key, "another_soft_victim")))
