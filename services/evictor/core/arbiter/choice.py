"""One round: which pods go now, hard pressure before soft. A hard plugin takes one, or enough; all soft ones together
take one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from services.evictor.core.arbiter.budgets import Account
from services.evictor.core.arbiter.enough import gap, take
from services.evictor.core.arbiter.guards import Refusal, Surroundings, allowed, spared_by
from services.evictor.core.arbiter.round import Said, gather
from services.evictor.core.arbiter.soft_order import SoftCandidate, last_goes
from services.evictor.core.plugin import Candidate, Pressure

Victims = Literal["one", "enough"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A confirmed pressure that may act now."""

    pressure: Pressure
    candidates: Callable[[], tuple[Candidate, ...]]
    """The plugin's ranking, asked for only when it is needed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many pods one round may take."""

    victims: Victims = "one"
    """Of one hard plugin: the first, or the fewest of its ranking that bring what it observes to its threshold."""
    burst: int = 3
    """Of all plugins together."""


NO_BUDGETS, ONE_EACH = Account(), Limits()


@dataclass(frozen=True, slots=True)
class Choice:
    """The outcome for one plugin."""

    plugin: str
    victims: tuple[Candidate, ...]
    refusals: tuple[Refusal, ...]

    @property
    def victim(self) -> Candidate | None:
        """The first that goes."""
        return self.victims[0] if self.victims else None


def choose(
    ready: Mapping[str, Ready], around: Surroundings, account: Account = NO_BUDGETS, limits: Limits = ONE_EACH
) -> tuple[Choice, ...]:
    """Whom to evict now, plugins by name, nobody twice, never more than the burst.

    While any pressure is hard, soft ones wait: what the hard one frees may end them.
    """
    hard = any(r.pressure.hard for r in ready.values())
    acting = {plugin: r for plugin, r in ready.items() if r.pressure.hard == hard}
    found = gather(Said(plugin, "HARD_MET" if hard else "SOFT_MET", r.candidates()) for plugin, r in acting.items())
    choices = (
        _each(found.force, acting, around, account, limits)
        if hard
        else _one_of_all(found.soft, acting, around, account)
    )
    quiet = (Choice(plugin, (), ()) for plugin in acting.keys() - {choice.plugin for choice in choices})
    return tuple(sorted([*choices, *quiet], key=lambda choice: choice.plugin))


def _each(
    by_plugin: Mapping[str, tuple[Candidate, ...]],
    ready: Mapping[str, Ready],
    around: Surroundings,
    account: Account,
    limits: Limits,
) -> list[Choice]:
    choices, left = [], limits.burst
    for plugin, candidates in by_plugin.items():
        able, refusals = allowed(candidates, around)
        wanted = gap(ready[plugin].pressure) if limits.victims == "enough" else None
        taken, over = take(able, account, wanted)
        victims, late = taken[:left], taken[left:]
        choices.append(Choice(plugin, victims, (*refusals, *over, *(_out_of_burst(c, limits.burst) for c in late))))
        left -= len(victims)
        around = replace(around, live_uids={*around.live_uids, *(c.pod.uid for c in victims)})
        for candidate in victims:
            account = account.after(candidate.pod)
    return choices


def _out_of_burst(candidate: Candidate, burst: int) -> Refusal:
    pod = candidate.pod
    return Refusal(pod.key, "burst", pod.uid, f"{burst} of {burst} evictions of this round are used up")


def _one_of_all(
    by_plugin: Mapping[str, tuple[Candidate, ...]],
    ready: Mapping[str, Ready],
    around: Surroundings,
    account: Account,
) -> list[Choice]:
    """Of the first of each plugin the one that the order of soft candidates puts last."""
    choices = []
    for plugin, candidates in by_plugin.items():
        able, refusals = allowed(candidates, around)
        taken, over = take(able, account, None)
        choices.append(Choice(plugin, taken, (*refusals, *over)))
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
    return Choice(choice.plugin, (), (*choice.refusals, spared_by("another_soft_victim", choice.victim.pod)))
