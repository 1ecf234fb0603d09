"""Budgets count evictions within windows of time: of the node, of a namespace, of one owner.

Rates are bounded whatever the inputs say (docs/facts/safety-rules.md#bounds-of-eviction). A span counts as passed only
when it certainly has (`passed_s`), so neither a restart of the evictor nor a reboot of the machine restores a budget
too early.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from shared.core.evictions.intents import Spent

Scope = Literal["node", "namespace", "owner"]
BudgetGuard = Literal["node_budget", "namespace_budget", "owner_budget"]

_GUARDS: dict[Scope, BudgetGuard] = {
    "node": "node_budget",
    "namespace": "namespace_budget",
    "owner": "owner_budget",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most evictions within any window of time, per scope."""

    scope: Scope
    limit: int
    window_s: float
    share: float | None = None
    """Of an owner: also at most this share of its pods here, the evicted ones included, but always one."""

    def bound(self, used: int, staying: int) -> int:
        """Return the limit, or the share of the pods if that is less."""
        if self.share is None:
            return self.limit
        # Of all pods that were here, the evicted ones too: else each eviction would shrink the share for the next.
        # Always one: an owner with few pods must not be out of reach.
        return min(self.limit, max(1, math.floor(self.share * (used + staying))))


class BudgetedPod(Protocol):
    """What budgets read of a pod."""

    @property
    def namespace(self) -> str:
        """Its namespace."""
        ...

    @property
    def owner_key(self) -> str | None:
        """Return its owner as namespace/Kind/name; None if it has no owner."""
        ...


@dataclass(frozen=True, slots=True)
class Overdraft:
    """The refusal of a budget, with its numbers as a sentence."""

    guard: BudgetGuard
    says: str


@dataclass(frozen=True, slots=True)
class Account:
    """What the evictions so far have used of the budgets, at one moment."""

    budgets: tuple[Budget, ...] = ()
    ages_s: Mapping[tuple[Scope, str], tuple[float, ...]] = field(default_factory=dict)
    """Ages of the evictions inside the budget's window, by scope and by node, namespace or owner."""
    staying: Mapping[str, int] = field(default_factory=dict)
    """Pods of each owner that are here."""

    def overdraft(self, pod: BudgetedPod) -> Overdraft | None:
        """The first budget with nothing left for this pod; None: all have."""
        for budget in self.budgets:
            whose = _whose(budget.scope, pod.namespace, pod.owner_key)
            if whose is None:
                continue
            ages_s = self.ages_s.get((budget.scope, whose), ())
            bound = budget.bound(len(ages_s), self.staying.get(whose, 0))
            # Widest budget first, so that the answer names the node before the owner where both are used up.
            if len(ages_s) >= bound:
                return Overdraft(_GUARDS[budget.scope], _says(budget, whose, ages_s, bound))
        return None

    def after(self, pod: BudgetedPod) -> "Account":
        """The account once this pod is being evicted as well."""
        ages_s, staying = dict(self.ages_s), dict(self.staying)
        for budget in self.budgets:
            whose = _whose(budget.scope, pod.namespace, pod.owner_key)
            if whose is not None:
                key = (budget.scope, whose)
                ages_s[key] = (*ages_s.get(key, ()), 0.0)
        # It counts as used now, and no longer as staying, or it would count twice in its own share.
        if pod.owner_key is not None:
            staying[pod.owner_key] = max(0, staying.get(pod.owner_key, 0) - 1)
        return replace(self, ages_s=ages_s, staying=staying)


def account(
    budgets: Iterable[Budget], spent: Iterable[Spent], now_s: float, staying: Mapping[str, int] | None = None
) -> Account:
    """Count the ledger's evictions against the budgets. An eviction that has not ended counts, however old it is.

    Args:
        staying: by owner, its pods that are here and not on their way out.
    """
    budgets, ages_s = tuple(budgets), dict[tuple[Scope, str], tuple[float, ...]]()
    for one in spent:
        age_s = one.age_s(now_s)
        for budget in budgets:
            whose = _whose(budget.scope, one.namespace, one.owner)
            if whose is not None and age_s < budget.window_s:
                key = (budget.scope, whose)
                ages_s[key] = (*ages_s.get(key, ()), age_s)
    return Account(budgets, ages_s, staying or {})


def _whose(scope: Scope, namespace: str, owner: str | None) -> str | None:
    """The node (""), namespace or owner that a budget of this scope belongs to; None: a pod without an owner."""
    match scope:
        case "node":
            return ""
        case "namespace":
            return namespace
        case "owner":
            return owner


def _says(budget: Budget, whose: str, ages_s: tuple[float, ...], bound: int) -> str:
    name = f"{budget.scope} {whose}".strip()
    used = f"{len(ages_s)} of {bound} evictions of {name} in {budget.window_s:g} s are used up"
    if bound < 1:
        return f"{used}: this budget allows none"
    oldest_first = sorted(ages_s, reverse=True)
    # More may be used than the bound, after it was lowered: then several must run out before one may begin.
    again_s = budget.window_s - oldest_first[len(ages_s) - bound]
    return f"{used}; the next may begin in {math.ceil(again_s)} s"
