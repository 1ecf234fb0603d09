"""The conditions of a descriptor: whether it is readable, how its service performs, and what nodes are told about
it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from services.central.core.service_profiles.descriptor import DescriptorSeen
from services.central.core.service_profiles.told import ToldService, bounded_indicators

MESSAGE_CHARACTERS = 1024


def conditions(seen: DescriptorSeen, told: ToldService, pods: int) -> list[dict[str, Any]]:
    """All of them, in their order."""
    valid = seen.spec is not None
    found = [_condition("Valid", valid, "Valid" if valid else "Unreadable", seen.problem)]
    if seen.spec is None:
        return found
    if bounded := [one.name for one in bounded_indicators(seen.spec)]:
        untold = sorted(set(bounded) - set(told.judged))
        words = "; ".join((*told.poor, *(f"nobody tells {name}" for name in untold)))
        # Absent is not zero: an unreported indicator is unknown.
        holds = None if untold and not told.poor else not told.poor
        reason = {True: "WithinBounds", False: "Poor", None: "NotTold"}[holds]
        found.append(_condition("PerformsWell", holds, reason, words))
    reason = "PartlyUsed" if told.problems else "Used"
    found.append(_condition("TargetsUsed", not told.problems, reason, _told_words(told, pods)))
    return found


def verdicts(found: object) -> list[tuple[Any, ...]]:
    """Return the conditions without their messages, also for those that another writer has put into a status."""
    rows = found if isinstance(found, list) else []
    return [(one.get("type"), one.get("status"), one.get("reason")) for one in rows if isinstance(one, Mapping)]


def _told_words(told: ToldService, pods: int) -> str:
    """Return the message; the unused part comes first, because the rest may be cut off."""
    targets = [f"{name} {value:g}" for name, value in told.targets.model_dump(exclude_none=True).items()]
    kept = [f"{count} of {pods} pods keep what they asked for ({why})"
            for why, count in sorted(Counter(told.kept.values()).items())]  # fmt: skip
    return "; ".join((*told.problems, *targets, *kept))


def _condition(name: str, holds: bool | None, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": name,
        "status": "Unknown" if holds is None else str(holds),
        "reason": reason,
        "message": message[:MESSAGE_CHARACTERS],
    }
