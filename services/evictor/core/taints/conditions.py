"""Turns a condition of the node into a taint, and says how long it is held.

Facts: docs/facts/katalyst-eviction.md#conditions-and-taints.
"""

from shared.contracts.kube.taint import EFFECTS, TAINT_PREFIX

TRANSITION_PERIOD_S = 300.0
"""Katalyst's eviction-condition-transition-period."""


def taint_of(name: str, effect: str) -> tuple[str, str] | None:
    """Key and effect of the Node's taint; None for an effect that Kubernetes does not have."""
    return (f"{TAINT_PREFIX}{name}", effect) if effect in EFFECTS else None


def still_held(last_observed_s: float, now_s: float, transition_period_s: float) -> bool:
    """Whether a condition seen last at that time is held: for less than the whole period."""
    return now_s - last_observed_s < transition_period_s
