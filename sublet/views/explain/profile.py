"""A pod's service profile, the target in force, and the source of both."""

from collections.abc import Iterator
from typing import Any

from shared.contracts.pod import Pod
from sublet.views.facts import NodeFacts
from sublet.views.figures import UNKNOWN

Document = dict[str, Any]


def profile_part(facts: NodeFacts, pod: Pod) -> Document | None:
    """What the advisor was told of the pod's service; None where that has no profile, or nobody tells."""
    told = facts.answered("advisor", "service_profiles", None)
    found = [one for one in told["services"] if _names(one, pod.uid)] if told else []
    if not found or told is None:
        return None
    service = found[0]
    return {
        "service": f"{service['namespace']}/{service['name']}",
        "targets": service["targets"],
        "kept_for": next((why for why, uids in sorted(service["kept"].items()) if pod.uid in uids), None),
        "in_force": told["in_force"],
        "age_s": told["age_s"],
        "policy": facts.answered("advisor", "policy", None),
        "takes_targets": facts.answered("advisor", "takes_targets", False),
    }


def _names(service: Document, uid: str) -> bool:
    return uid in service["pods"] or any(uid in uids for uids in service["kept"].values())


def profile_lines(profile: Document | None) -> Iterator[str]:
    """The descriptor, what follows from it, and its targets."""
    for place, words in enumerate(profile_words(profile)):
        yield f"      {words}" if place else f"    service profile {words}"


def profile_words(profile: Document | None) -> Iterator[str]:
    """The same, one thing after the other."""
    if profile is None:
        return
    told = UNKNOWN if profile["age_s"] is None else f"{profile['age_s']:.0f} s ago"
    if not profile["in_force"]:
        yield f"{profile['service']}, told {told}: too long ago, the node's own settings hold"
        return
    yield f"{profile['service']}, told {told}"
    if why := profile["kept_for"]:
        yield f"nothing is lent of what it asked for ({why})"
    for name, value in profile["targets"].items():
        used = "" if profile["takes_targets"] else f"; not used, policy {profile['policy']} has no targets"
        yield f"{name} at most {value:g}{used}"
