"""A ruling says at which step an eviction continues, and why; one table says what each answer to a call means.

Two writers evict. A node's evictor has a ledger and an arbiter that chooses again; central has neither, and repeats
unfinished evictions in its next pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.contracts.eviction_phases import Phase
from shared.core.evictions.intents import PHASE_OF_STEP, Call, Step

Writer = Literal["node", "central"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """The next step of an intent; without one the intent stays, because nothing certain is known yet."""

    step: Step | None = None
    detail: str = ""
    calls: tuple[Call, ...] = ()
    """The calls that led to it."""

    @property
    def phase(self) -> Phase | None:
        """Return the phase of its event; None: there is no event."""
        return PHASE_OF_STEP.get(self.step) if self.step is not None else None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one outcome of a call means for one writer; `{pod}` and `{answer}` are filled in."""

    step: Step | None
    detail: str = "{answer}"
    unsaid: str = ""
    """Stands for an answer without words."""


_REFUSED = Meaning("refused", unsaid="refused")
_UNKNOWN = Meaning(None)

OUTCOMES: Mapping[str, Mapping[Writer, Meaning]] = {
    "accepted": {"node": Meaning("accepted", ""), "central": Meaning("accepted")},
    # Central cannot distinguish its own call of the last pass from another's: gone is its goal, either way.
    "gone": {
        "node": Meaning("cancelled", "the pod was gone before its eviction began"),
        "central": Meaning("succeeded"),
    },
    # A node does not wait for the budget: its arbiter chooses again, and may find a pod whose budget allows it.
    "wait": {
        "node": Meaning("cancelled", "the pod's disruption budget allows no eviction now: {answer}"),
        "central": _UNKNOWN,
    },
    "refused": {"node": _REFUSED, "central": Meaning("refused")},
    "failed": {
        "node": Meaning("failed", 'error when evicting pod "{pod}": {answer}'),
        "central": Meaning("failed"),
    },
    "unknown": {"node": _UNKNOWN, "central": _UNKNOWN},
}
"""The meanings of the outcomes of `shared.ports.ActionResult`."""


def after_call(call: Call, pod: str, writer: Writer, *, called_before: bool = False) -> Ruling:
    """Return the ruling for a call's answer; `called_before`: an earlier call for this pod may have had its effect."""
    # Gone at a later call: an earlier one, whose answer was lost, counts as what evicted it.
    outcome = "accepted" if call.outcome == "gone" and called_before else call.outcome
    meaning = OUTCOMES[outcome][writer]
    detail = meaning.detail.format(pod=pod, answer=call.detail or meaning.unsaid)
    return Ruling(meaning.step, detail, (call,))


def while_going(standing: str, waited_s: float, limit_s: float) -> Step | None:
    """The last step of a pod whose eviction was accepted; None while it is awaited.

    `waited_s` is the wait at the moment of the lookup, not of its answer. Only a missing pod proves an eviction, and
    only a pod that is still there its failure: an API server that does not answer proves neither.
    """
    if standing == "gone":
        return "succeeded"
    return "failed" if standing != "unknown" and waited_s >= limit_s else None
