"""The guard checks what a policy returns before anything rests on it: policies are not trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from shared.contracts.envelope import Reason
from shared.errors import Refused

RAISED, NONSENSE, SLOW = "policy_raised", "policy_nonsense", "policy_slow"
MOST_CORES, MOST_BYTES = 1e6, 1 << 60
"""More than any machine has: an amount above is an error of the policy."""
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """A policy with its checked settings: the chosen one, or the one that decides where that fails."""

    policy: Policy[Any, Any]
    settings: PolicySettings
    learned: Mapping[str, Any] = field(default_factory=dict)
    """What the policy learned by region before the last round; a region that was not in that round continues from
    it."""


def judged(policy: Policy[Any, Any], state: Any, view: View, now_s: float, settings: Any) -> tuple[Any, Demand]:
    """Return the policy's next state and its demand, checked. Without a state (None) the policy starts from its
    initial one.

    Raises:
        Refused: `policy_raised`; `policy_nonsense`, not a state and a demand of finite amounts that are 0 or more.
    """
    answer: Any
    try:
        answer = policy.judge(policy.start() if state is None else state, view, now_s, settings)
    except Exception as error:  # whatever it is, it must not reach the pools
        words = f"policy {policy.name!r} raised {type(error).__name__}: {error}"
        raise Refused(words[:_SHOWN_CHARACTERS], reason=RAISED) from error
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], Demand):
        raise _nonsense(policy, f"{type(answer).__name__} instead of a state and a Demand")
    state, demand = answer
    return state, _checked(policy, demand)


def worded(policy: Policy[Any, Any], demand: Demand) -> Demand:
    """The demand with its reasons made: what fails there would fail while the advice is published.

    Raises:
        Refused: `policy_raised`; `policy_nonsense`, what was made is no `Reason`.
    """
    if type(demand.why) is not Reasons:
        return demand
    try:
        made = tuple(demand.why)
    except Exception as error:  # a function of the policy's, as `judge` is
        words = f"policy {policy.name!r} raised {type(error).__name__} in a reason: {error}"
        raise Refused(words[:_SHOWN_CHARACTERS], reason=RAISED) from error
    return _checked(policy, replace(demand, why=made))


def _checked(policy: Policy[Any, Any], demand: Demand) -> Demand:
    cores: Any = demand.cores
    memory: Any = demand.memory_bytes
    quota: Any = demand.reclaim_quota_cores
    now: Any = demand.now_cores
    ratio: Any = demand.most_offered_ratio
    why: Any = demand.why
    # The usual answer: one look at each field.
    if (
        type(cores) is float
        and 0.0 <= cores <= MOST_CORES
        and type(memory) is int
        and 0 <= memory <= MOST_BYTES
        and quota is None
        and (now is None or (type(now) is float and 0.0 <= now <= MOST_CORES))
        and type(ratio) is float
        and 0.0 <= ratio <= 1.0
        and type(why) is Reasons
    ):
        return demand
    if not _is_amount(cores, Real, MOST_CORES):
        raise _nonsense(policy, f"cores {cores!r}, want a number from 0 to {MOST_CORES:g}")
    if not _is_amount(memory, Integral, MOST_BYTES):
        raise _nonsense(policy, f"memory_bytes {memory!r}, want a whole number from 0 to {MOST_BYTES}")
    if quota is not None and not _is_amount(quota, Real, MOST_CORES):
        raise _nonsense(policy, f"reclaim_quota_cores {quota!r}, want None or a number from 0 to {MOST_CORES:g}")
    if now is not None and not _is_amount(now, Real, MOST_CORES):
        raise _nonsense(policy, f"now_cores {now!r}, want None or a number from 0 to {MOST_CORES:g}")
    if not _is_amount(ratio, Real, 1.0):
        raise _nonsense(policy, f"most_offered_ratio {ratio!r}, want a number from 0 to 1")
    # Reasons that are not built yet are checked by `worded` when they are read.
    if type(why) is not Reasons and (
        not isinstance(why, tuple) or not all(isinstance(reason, Reason) for reason in why)
    ):
        raise _nonsense(policy, "why is not a tuple of Reason")
    # The usual case keeps its object; numpy's numbers and whole cores are turned into plain ones,
    # which messages can hold.
    if type(cores) is float and type(memory) is int:
        return demand
    return replace(demand, cores=float(cores), memory_bytes=int(memory))


def _is_amount(value: Any, kind: type, most: float) -> bool:
    # A bool is an int to Python, and no amount.
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    number: Any = value
    return bool(0 <= number <= most)  # NaN is neither


def _nonsense(policy: Policy[Any, Any], what: str) -> Refused:
    return Refused(f"policy {policy.name!r} returned {what}"[:_SHOWN_CHARACTERS], reason=NONSENSE)
