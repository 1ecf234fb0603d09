"""Selects the fewest candidates whose going brings the observed figure to its threshold."""

from collections.abc import Iterable, Sequence

from services.evictor.core.arbiter.budgets import Account
from services.evictor.core.arbiter.guards import Refusal
from services.evictor.core.plugin import Candidate, Pressure


def excess(pressure: Pressure) -> float | None:
    """By how much the observed figure exceeds its threshold, in the unit of the scope; None where it does not."""
    over = pressure.threshold - pressure.observed if pressure.below else pressure.observed - pressure.threshold
    return over if over > 0 else None


def select(
    candidates: Iterable[Candidate], account: Account, wanted: float | None
) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
    """Return the candidates that together free `wanted`, in the given order and within the budgets, and the refusals
    of budgets.

    Args:
        wanted: how much they should free together; None selects one. A candidate of unknown relief is selected alone,
            because its effect shows only after its eviction.
    """
    taken: list[Candidate] = []
    refusals = []
    freed = 0.0
    for candidate in candidates:
        # A plugin's ranking is not trusted: it may name a pod twice, and its relief would count twice.
        if candidate.pod.uid in {other.pod.uid for other in taken}:
            continue
        over = account.overdraft(candidate.pod)
        # Try the next in the ranking: one owner's used-up budget must not leave the pressure unrelieved.
        if over is not None:
            refusals.append(Refusal(candidate.pod.key, over.guard, candidate.pod.uid, over.says))
            continue
        known = wanted is not None and candidate.relief is not None and candidate.relief > 0
        # After a pod of known relief, no pod of unknown relief is added, because its effect could not be separated.
        if known or not taken:
            taken.append(candidate)
            account = account.after(candidate.pod)
            freed += candidate.relief or 0.0
        if wanted is None or not known or freed >= wanted:
            break
    return _needed(taken, wanted), tuple(refusals)


def _needed(taken: Sequence[Candidate], wanted: float | None) -> tuple[Candidate, ...]:
    """Return the selection without candidates that the others make superfluous, removing the last of the ranking
    first.

    A selection that frees too little stays as it is, because nothing more can be done now.
    """
    kept, freed = list(taken), sum(candidate.relief or 0.0 for candidate in taken)
    if wanted is None or freed < wanted:
        return tuple(kept)
    # The last of the ranking is spared first: the plugin wants the first to go most.
    for candidate in reversed(taken):
        relief = candidate.relief or 0.0
        if freed - relief >= wanted:
            kept.remove(candidate)
            freed -= relief
    return tuple(kept)
