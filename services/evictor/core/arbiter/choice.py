"""Chooses the victims of one round: hard pressure before soft.

A hard plugin evicts one pod, or as many as suffice; all soft plugins together evict one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from services.evictor.core.arbiter.budgets import Account
from services.evictor.core.arbiter.guards import Refusal, Surroundings, allowed, spared_by
from services.evictor.core.arbiter.soft_order import SoftVictim, last_goes
from services.evictor.core.arbiter.sufficient import excess, select
from services.evictor.core.plugin import Candidate, Pressure

Victims = Literal["one", "enough"]


@dataclass(frozen=True, slots=True)
class ConfirmedPressure:
    """A confirmed pressure that may act now."""

    pressure: Pressure
    candidates: Callable[[], tuple[Candidate, ...]]
    """The plugin's ranking, asked for only when it is needed."""


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """How many pods one round may evict."""

    victims: Victims = "one"
    """Of one hard plugin: the first, or the fewest of its ranking that bring what it observes to its threshold."""
    burst: int = 3
    """Of all plugins together."""


NO_BUDGETS, ONE_EACH = Account(), RoundLimits()


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """The outcome for one plugin."""

    plugin: str
    victims: tuple[Candidate, ...]
    refusals: tuple[Refusal, ...]

    @property
    def victim(self) -> Candidate | None:
        """The first that goes."""
        return self.victims[0] if self.victims else None


def choose(
    ready: Mapping[str, ConfirmedPressure],
    around: Surroundings,
    account: Account = NO_BUDGETS,
    limits: RoundLimits = ONE_EACH,
) -> tuple[PluginChoice, ...]:
    """The victims of this round, by plugin in the order of names; no pod twice, and never more than the burst.

    While any pressure is hard, soft ones wait: what the hard one frees may end them.
    """
    hard = any(r.pressure.hard for r in ready.values())
    acting = {plugin: r for plugin, r in ready.items() if r.pressure.hard == hard}
    # By name: upstream walks Go maps, so that chance decides whom the burst cuts off
    # (docs/facts/katalyst-eviction.md#the-round).
    ranked = {plugin: r.candidates() for plugin, r in sorted(acting.items())}
    found = {plugin: candidates for plugin, candidates in ranked.items() if candidates}
    choices = _each(found, acting, around, account, limits) if hard else _one_of_all(found, acting, around, account)
    nobody = (PluginChoice(plugin, (), ()) for plugin in acting.keys() - found.keys())
    return tuple(sorted([*choices, *nobody], key=lambda choice: choice.plugin))


def _each(
    by_plugin: Mapping[str, tuple[Candidate, ...]],
    ready: Mapping[str, ConfirmedPressure],
    around: Surroundings,
    account: Account,
    limits: RoundLimits,
) -> list[PluginChoice]:
    choices, left = [], limits.burst
    for plugin, candidates in by_plugin.items():
        able, refusals = allowed(candidates, around)
        wanted = excess(ready[plugin].pressure) if limits.victims == "enough" else None
        taken, over = select(able, account, wanted)
        victims, late = taken[:left], taken[left:]
        choices.append(
            PluginChoice(plugin, victims, (*refusals, *over, *(_out_of_burst(c, limits.burst) for c in late)))
        )
        left -= len(victims)
        # The next plugin sees them as leaving: no pod is named twice, and a reclaimed one that is terminating protects
        # tenants.
        around = replace(around, live_uids={*around.live_uids, *(c.pod.uid for c in victims)})
        # Only those that go: whom the burst has cut off uses up no budget.
        for candidate in victims:
            account = account.after(candidate.pod)
    return choices


def _out_of_burst(candidate: Candidate, burst: int) -> Refusal:
    pod = candidate.pod
    return Refusal(pod.key, "burst", pod.uid, f"{burst} of {burst} evictions of this round are used up")


def _one_of_all(
    by_plugin: Mapping[str, tuple[Candidate, ...]],
    ready: Mapping[str, ConfirmedPressure],
    around: Surroundings,
    account: Account,
) -> list[PluginChoice]:
    """One victim for all soft plugins: of their first candidates the one that the soft order puts last."""
    choices = []
    for plugin, candidates in by_plugin.items():
        able, refusals = allowed(candidates, around)
        taken, over = select(able, account, None)
        choices.append(PluginChoice(plugin, taken, (*refusals, *over)))
    going = _last(choices, ready)
    return [choice if choice.plugin == going else _waiting(choice) for choice in choices]


def _last(choices: Iterable[PluginChoice], ready: Mapping[str, ConfirmedPressure]) -> str | None:
    """The plugin whose victim goes; of several that name the same pod the first."""
    proposed = [
        SoftVictim(
            choice.victim.pod.key,
            choice.victim.pod.qos,
            choice.victim.pod.priority,
            ready[choice.plugin].pressure.scope.partition(".")[0],
            choice.plugin,
        )
        # Backwards, because the last of equals is evicted: the first name then wins, whatever the order of the mapping.
        for choice in sorted(choices, key=lambda choice: choice.plugin, reverse=True)
        if choice.victim is not None
    ]
    return last_goes(proposed)[-1].of if proposed else None


def _waiting(choice: PluginChoice) -> PluginChoice:
    if choice.victim is None:
        return choice
    return PluginChoice(choice.plugin, (), (*choice.refusals, spared_by("another_soft_victim", choice.victim.pod)))
