"""One round: which pods go now, at most one for each plugin, hard pressure before soft."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from services.evictor.core.guards import Refusal, Surroundings, first_allowed
from services.evictor.core.plugin import Candidate, Pressure


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
    """At most one victim for each plugin, nobody twice.

    While any pressure is hard, soft ones wait: what the hard one frees may end them. Plugins go by name.
    """
    hard = any(r.pressure.hard for r in ready.values())
    choices = []
    for plugin in sorted(ready):
        if hard and not ready[plugin].pressure.hard:
            continue
        victim, refusals = first_allowed(ready[plugin].candidates(), around)
        choices.append(Choice(plugin, victim, refusals))
        if victim is not None:
            around = replace(around, live_uids={*around.live_uids, victim.pod.uid})
    return tuple(choices)
